/* Elements that libhdf5 converts: in two steps, because its own way is wrong at times.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * libhdf5 converts between numbers in native order by the processor, all else bit by bit: there, up
 * to 2.0 at least, floats between -1 and 0 become the smallest integer, and integers of the other
 * byte order that do not fit wrap; of halves neither way is right. So elements come as the native
 * numbers that hold all of their type, and those become what the array has. */
#include <stdio.h>
#include <string.h>

#include "read/hdf5_read.h"

static bool same_dtype(tegula_dtype a, tegula_dtype b) {
  return a.kind == b.kind && a.item_size == b.item_size;
}

/* What the processor has; of `like` where it has none. */
static hid_t native_number(hdf5_library *library, tegula_dtype dtype, hid_t like) {
  char name[HDF5_MEMORY_TEXT];
  hid_t out;
  if (dtype.kind == 'i' || dtype.kind == 'u') {
    snprintf(name, sizeof name, "H5T_NATIVE_%sINT%u_g", dtype.kind == 'i' ? "" : "U",
             8 * dtype.item_size);
    out = library->call.H5Tcopy(hdf5_predefined(library, name));
  } else if (dtype.item_size >= 4) {
    out = library->call.H5Tcopy(hdf5_predefined(
        library, dtype.item_size == 4 ? "H5T_NATIVE_FLOAT_g" : "H5T_NATIVE_DOUBLE_g"));
  } else {
    out = library->call.H5Tcopy(like);
    if (out >= 0)
      library->call.H5Tset_order(out, HDF5_NATIVE_ORDER == '<' ? HDF5_LITTLE : HDF5_BIG);
  }
  return out;
}

bool hdf5_conversion_make(hdf5_dataset *dataset) {
  hdf5_library *library = dataset->call->library;
  const hdf5_type *type = &dataset->type, *to = &dataset->like->type;
  hdf5_conversion c = {
      .item = (size_t)hdf5_type_bytes(type), .own = type->dtype, .swapped = type->swapped};
  bool same = same_dtype(type->dtype, to->dtype),
       half = !same && type->dtype.item_size == 2 && strchr("fE", type->dtype.kind);
  if (half) c.item = 4;
  c.memory = half ? library->call.H5Tcopy(hdf5_predefined(library, "H5T_NATIVE_FLOAT_g"))
                  : hdf5_type_memory(library, dataset->type_id, type);
  if (!same) {
    c.from = half ? library->call.H5Tcopy(c.memory) : native_number(library, type->dtype, c.memory);
    c.target = native_number(library, to->dtype, dataset->like->type_id);
  }
  hdf5_conversion_close(library, &dataset->conversion);
  dataset->conversion = c;
  return c.memory > 0 && c.from >= 0 && c.target >= 0;
}

bool hdf5_conversion_copy(hdf5_library *library, const hdf5_conversion *from,
                          hdf5_conversion *out) {
  *out = *from;
  out->memory = library->call.H5Tcopy(from->memory);
  if (from->target > 0) {
    out->from = library->call.H5Tcopy(from->from);
    out->target = library->call.H5Tcopy(from->target);
  }
  return out->memory > 0 && out->from >= 0 && out->target >= 0;
}

void hdf5_conversion_close(hdf5_library *library, hdf5_conversion *c) {
  hid_t types[] = {c->memory, c->from, c->target};
  for (int k = 0; k < 3; k++)
    if (types[k] > 0) library->call.H5Tclose(types[k]);
  c->memory = c->from = c->target = 0;
}

bool hdf5_conversion_apply(hdf5_library *library, const hdf5_conversion *c, void *elements,
                           int64_t count) {
  if (c->swapped) hdf5_type_swap_all(c->own, elements, count);
  if (c->target <= 0) return true;
  return library->call.H5Tconvert(c->from, c->target, (size_t)count, elements, NULL,
                                  HDF5_DEFAULT) >= 0;
}
