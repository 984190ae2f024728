/* Types for datasets that are made: what h5py stores the same dtype as.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "write/hdf5_write.h"

enum { NULL_PADDED = 1 /* H5T_STR_NULLPAD */ };

static hid_t copy_of(hdf5_library *library, const char *symbol) {
  hid_t id = hdf5_predefined(library, symbol);
  return id >= 0 ? library->call.H5Tcopy(id) : -1;
}

static char letter_of(tegula_dtype dtype) {
  return dtype.order == '>' || (dtype.order == '|' && HDF5_NATIVE_ORDER == '>') ? 'B' : 'L';
}

/* Takes `type` when it is no good. */
static hid_t unless(hdf5_library *library, bool good, hid_t type) {
  if (good || type < 0) return type;
  library->call.H5Tclose(type);
  return -1;
}

static hid_t integer(hdf5_library *library, tegula_dtype dtype) {
  char symbol[HDF5_MEMORY_TEXT];
  snprintf(symbol, sizeof symbol, "H5T_STD_%c%u%cE_g", dtype.kind == 'i' ? 'I' : 'U',
           8 * dtype.item_size, letter_of(dtype));
  return copy_of(library, symbol);
}

/* Half and bfloat16 (IEEE 754; the upper half of a single). */
static hid_t small_float(hdf5_library *library, tegula_dtype dtype) {
  const hdf5_functions *call = &library->call;
  hid_t type = copy_of(library, letter_of(dtype) == 'B' ? "H5T_IEEE_F32BE_g" : "H5T_IEEE_F32LE_g");
  bool brain = dtype.kind == 'E';
  bool good = type >= 0 &&
              (brain ? call->H5Tset_fields(type, 15, 7, 8, 0, 7)
                     : call->H5Tset_fields(type, 15, 10, 5, 0, 10)) >= 0 &&
              call->H5Tset_size(type, 2) >= 0 && call->H5Tset_ebias(type, brain ? 127 : 15) >= 0;
  return unless(library, good, type);
}

static hid_t floating(hdf5_library *library, tegula_dtype dtype) {
  char symbol[HDF5_MEMORY_TEXT];
  RETURN_IF(dtype.item_size == 2, small_float(library, dtype));
  snprintf(symbol, sizeof symbol, "H5T_IEEE_F%u%cE_g", 8 * dtype.item_size, letter_of(dtype));
  return copy_of(library, symbol);
}

static hid_t boolean(hdf5_library *library) {
  const hdf5_functions *call = &library->call;
  signed char no = 0, yes = 1;
  hid_t base = copy_of(library, "H5T_STD_I8LE_g"),
        type = base >= 0 ? call->H5Tenum_create(base) : -1;
  bool good = type >= 0 && call->H5Tenum_insert(type, "FALSE", &no) >= 0 &&
              call->H5Tenum_insert(type, "TRUE", &yes) >= 0;
  if (base >= 0) call->H5Tclose(base);
  return unless(library, good, type);
}

static hid_t complex_pair(hdf5_library *library, tegula_dtype dtype) {
  const hdf5_functions *call = &library->call;
  size_t half = dtype.item_size / 2;
  hid_t part = floating(
      library, (tegula_dtype){.kind = 'f', .order = dtype.order, .item_size = (uint32_t)half});
  hid_t type = part >= 0 ? call->H5Tcreate(HDF5_COMPOUND, dtype.item_size) : -1;
  bool good = type >= 0 && call->H5Tinsert(type, "r", 0, part) >= 0 &&
              call->H5Tinsert(type, "i", half, part) >= 0;
  if (part >= 0) call->H5Tclose(part);
  return unless(library, good, type);
}

static hid_t text(hdf5_library *library, tegula_dtype dtype) {
  const hdf5_functions *call = &library->call;
  hid_t type = copy_of(library, "H5T_C_S1_g");
  bool good = type >= 0 && call->H5Tset_size(type, dtype.item_size) >= 0 &&
              call->H5Tset_strpad(type, NULL_PADDED) >= 0;
  return unless(library, good, type);
}

/* Opaque bytes; with the dtype in the tag where HDF5 has no type for it. */
static hid_t opaque(hdf5_library *library, tegula_dtype dtype) {
  char tag[TEGULA_DTYPE_TEXT + 8] = "NUMPY:";
  if (dtype.kind == 'V')
    tag[0] = 0;
  else
    library->host->dtype_format(dtype, tag + strlen(tag));
  hid_t type = library->call.H5Tcreate(HDF5_OPAQUE, dtype.item_size);
  return unless(library, type >= 0 && library->call.H5Tset_tag(type, tag) >= 0, type);
}

hid_t hdf5_type_make(hdf5_library *library, tegula_dtype dtype, char *why, size_t size) {
  why[0] = 0;
  switch (dtype.kind) {
    case 'b':
      return boolean(library);
    case 'i':
    case 'u':
      return integer(library, dtype);
    case 'f':
    case 'E':
      return floating(library, dtype);
    case 'c':
      return complex_pair(library, dtype);
    case 'S':
      return text(library, dtype);
    case 'M':
    case 'm':
    case 'U':
    case 'V':
      return opaque(library, dtype);
    default:
      snprintf(why, size, "the dtype has no form in HDF5");
      return -1;
  }
}
