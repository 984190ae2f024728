/* Are two datasets the same? Asked of scales: one that is there already serves when it is no other
 * one.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Compared are types, shapes, elements and attributes, as they are stored. What lies elsewhere
 * (text and sequences of any length) is compared where it is plain text; everything else that is
 * not certain counts as different. */
#include <stdlib.h>
#include <string.h>

#include "write/copy_metadata.h"

#define MOST_BYTES ((int64_t)64 << 20)

static bool same_spaces(hdf5_library *library, hid_t a, hid_t b) {
  const hdf5_functions *call = &library->call;
  hsize_t x[HDF5_MAX_RANK], y[HDF5_MAX_RANK];
  int kind = call->H5Sget_simple_extent_type(a), ndim;
  if (kind != call->H5Sget_simple_extent_type(b)) return false;
  if (kind != HDF5_SPACE_SIMPLE) return true;
  ndim = call->H5Sget_simple_extent_ndims(a);
  if (ndim < 0 || ndim > HDF5_MAX_RANK || ndim != call->H5Sget_simple_extent_ndims(b)) return false;
  if (call->H5Sget_simple_extent_dims(a, x, NULL) < 0 ||
      call->H5Sget_simple_extent_dims(b, y, NULL) < 0)
    return false;
  return memcmp(x, y, (size_t)ndim * sizeof *x) == 0;
}

static bool same_texts(const char *const *a, const char *const *b, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if ((!a[i] != !b[i]) || (a[i] && strcmp(a[i], b[i]) != 0)) return false;
  return true;
}

/* Elements of one type, whose parts may lie elsewhere. */
static bool same_values(hdf5_library *library, const hdf5_value *a, const hdf5_value *b) {
  if (a->count != b->count || (a->count > 0 && (!a->data || !b->data)) ||
      library->call.H5Tequal(a->type, b->type) <= 0)
    return false;
  if (!same_spaces(library, a->space, b->space) || hdf5_refers(library, a->type)) return false;
  if (a->count == 0) return true;
  if (!a->apart) return memcmp(a->data, b->data, (size_t)a->count * a->item) == 0;
  return library->call.H5Tget_class(a->type) == HDF5_STRING &&
         same_texts(a->data, b->data, a->count);
}

/* Of attributes that refer to other objects nothing is asked: they do not go along. */
static bool same_attribute(hdf5_library *library, hid_t a, hid_t b, const char *name) {
  hdf5_value x, y = {.type = -1, .space = -1};
  bool same = hdf5_value_read(library, a, name, &x);
  if (same && !hdf5_refers(library, x.type))
    same = library->call.H5Aexists(b, name) > 0 && hdf5_value_read(library, b, name, &y) &&
           same_values(library, &x, &y);
  hdf5_value_free(library, &x);
  hdf5_value_free(library, &y);
  return same;
}

/* Every attribute of the one is one of the other. */
static bool has_attributes(hdf5_library *library, hid_t a, hid_t b) {
  hdf5_names names;
  if (hdf5_attribute_names(library, "", a, "", HDF5_BY_NAME, &names, NULL) != TEGULA_OK)
    return false;
  bool same = true;
  for (size_t k = 0; same && k < names.count; k++)
    same = same_attribute(library, a, b, names.items[k]);
  hdf5_names_free(&names);
  return same;
}

/* All elements, in the type that they have in the file. */
static bool read_elements(hdf5_library *library, hid_t id, hdf5_value *out) {
  const hdf5_functions *call = &library->call;
  *out = (hdf5_value){.type = -1, .space = call->H5Dget_space(id)};
  hid_t stored = call->H5Dget_type(id);
  if (stored >= 0) {
    out->type = call->H5Tcopy(stored);
    call->H5Tclose(stored);
  }
  if (out->type < 0 || out->space < 0 || hdf5_refers(library, out->type)) return false;
  out->item = call->H5Tget_size(out->type);
  out->count = call->H5Sget_simple_extent_npoints(out->space);
  bool text = call->H5Tget_class(out->type) == HDF5_STRING;
  out->apart = text ? call->H5Tis_variable_str(out->type) > 0
                    : call->H5Tdetect_class(out->type, HDF5_VLEN) > 0 ||
                          call->H5Tdetect_class(out->type, HDF5_STRING) > 0;
  if ((out->apart && !text) || out->item == 0 || out->count < 0 ||
      out->count > MOST_BYTES / (int64_t)out->item)
    return false;
  out->data = calloc((size_t)out->count + 1, out->item);
  library->data = !out->apart;
  bool good = out->data && call->H5Dread(id, out->type, HDF5_DEFAULT, HDF5_DEFAULT, HDF5_DEFAULT,
                                         out->data) >= 0;
  library->data = false;
  return good;
}

bool hdf5_same_dataset(hdf5_library *library, hid_t a, hid_t b) {
  hdf5_value x, y = {.type = -1, .space = -1};
  if (!has_attributes(library, a, b) || !has_attributes(library, b, a)) return false;
  bool same = read_elements(library, a, &x) && read_elements(library, b, &y) &&
              same_values(library, &x, &y);
  hdf5_value_free(library, &x);
  hdf5_value_free(library, &y);
  return same;
}
