/* Types in memory: what libhdf5 is asked for where it reads elements.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Of records and arrays these are the bytes of the file: members in their places, and of those that
 * cannot be loaded nothing. */
#include <string.h>

#include "read/hdf5_read.h"

/* Complex numbers of that part, as `stored` has them: a compound with the same names, or the native
 * class. */
static hid_t memory_pair(hdf5_library *library, hid_t stored, const hdf5_type *type) {
  const hdf5_functions *call = &library->call;
  bool single = type->dtype.item_size == 8;
  if (call->H5Tget_class(stored) == HDF5_COMPLEX)
    return call->H5Tcopy(hdf5_predefined(library, single ? "H5T_NATIVE_FLOAT_COMPLEX_g"
                                                         : "H5T_NATIVE_DOUBLE_COMPLEX_g"));
  size_t size = type->dtype.item_size;
  hid_t out = call->H5Tcreate(HDF5_COMPOUND, size), part = hdf5_predefined(library, type->memory);
  bool good = out >= 0;
  for (unsigned k = 0; good && k < 2; k++) {
    char *name = call->H5Tget_member_name(stored, k);
    good = name && call->H5Tinsert(out, name, k * size / 2, part) >= 0;
    if (name) call->H5free_memory(name);
  }
  if (!good && out >= 0) call->H5Tclose(out);
  return good ? out : -1;
}

static hid_t memory_of(hdf5_library *library, hid_t stored, const hdf5_type *type) {
  const hdf5_functions *call = &library->call;
  if (type->record) return call->H5Tcopy(type->record->refused ? type->record->readable : stored);
  if (type->converted && type->dtype.kind == 'c') return memory_pair(library, stored, type);
  if (type->converted) {
    hid_t memory = call->H5Tcopy(hdf5_predefined(library, type->memory));
    if (memory >= 0 && type->swapped)
      call->H5Tset_order(memory, HDF5_NATIVE_ORDER == '<' ? HDF5_BIG : HDF5_LITTLE);
    return memory;
  }
  /* enumerations lose numbers without a name in conversions */
  if (type->dtype.kind != 'b' && call->H5Tget_class(stored) == HDF5_ENUM) {
    char native[HDF5_MEMORY_TEXT];
    hdf5_native_integer(type->dtype.kind, type->dtype.item_size, native);
    return call->H5Tcopy(hdf5_predefined(library, native));
  }
  if (type->order == '|' || type->order == HDF5_NATIVE_ORDER) return call->H5Tcopy(stored);
  if (type->dtype.kind != 'E' && type->dtype.kind != 'f')
    return call->H5Tget_native_type(stored, 1 /* ascending */);
  hid_t memory = call->H5Tcopy(stored);
  if (memory >= 0) call->H5Tset_order(memory, HDF5_NATIVE_ORDER == '<' ? HDF5_LITTLE : HDF5_BIG);
  return memory;
}

hid_t hdf5_type_memory(hdf5_library *library, hid_t stored, const hdf5_type *type) {
  hdf5_inner dims;
  hid_t base;
  RETURN_IF(type->inner.ndim == 0, memory_of(library, stored, type));
  RETURN_IF(!hdf5_array_base(library, stored, &base, &dims), -1);
  hid_t memory = memory_of(library, base, type),
        out = memory >= 0 ? hdf5_array_make(library, memory, &dims) : -1;
  if (memory >= 0) library->call.H5Tclose(memory);
  library->call.H5Tclose(base);
  return out;
}
