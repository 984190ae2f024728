/* Values of attributes as they are stored, why one cannot go along with a copy, and telling of it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "write/copy_metadata.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 64000 }; /* of one attribute: see save_attributes.c */
enum { APART_BYTES = 16 };   /* in the file, of text or a sequence that lies elsewhere */

bool hdf5_refers(hdf5_library *library, hid_t type) {
  return library->call.H5Tget_class(type) == HDF5_REFERENCE ||
         library->call.H5Tdetect_class(type, HDF5_REFERENCE) > 0;
}

/* Fixed text is taken for text of any length here: what is freed of it is nothing. */
static bool is_apart(hdf5_library *library, hid_t type) {
  const hdf5_functions *call = &library->call;
  if (call->H5Tget_class(type) == HDF5_STRING) return call->H5Tis_variable_str(type) > 0;
  return call->H5Tdetect_class(type, HDF5_VLEN) > 0 || call->H5Tdetect_class(type, HDF5_STRING) > 0;
}

bool hdf5_value_read(hdf5_library *library, hid_t object, const char *name, hdf5_value *out) {
  const hdf5_functions *call = &library->call;
  *out = (hdf5_value){.type = -1, .space = -1};
  hid_t id = call->H5Aopen(object, name, HDF5_DEFAULT),
        stored = id >= 0 ? call->H5Aget_type(id) : -1;
  if (stored >= 0) out->type = call->H5Tcopy(stored); /* one of no file */
  if (stored >= 0) out->space = call->H5Aget_space(id);
  bool good = out->type >= 0 && out->space >= 0;
  if (good) {
    out->item = call->H5Tget_size(out->type);
    out->count = call->H5Sget_simple_extent_npoints(out->space);
    out->apart = is_apart(library, out->type);
    good = out->item > 0 && out->count >= 0;
  }
  if (good && out->count > 0 && !hdf5_value_refused(library, name, out)) {
    out->data = calloc((size_t)out->count, out->item);
    good = out->data && call->H5Aread(id, out->type, out->data) >= 0;
  }
  if (stored >= 0) call->H5Tclose(stored);
  if (id >= 0) call->H5Aclose(id);
  return good;
}

void hdf5_value_free(hdf5_library *library, hdf5_value *value) {
  const hdf5_functions *call = &library->call;
  if (value->data && value->apart)
    call->H5Dvlen_reclaim(value->type, value->space, HDF5_DEFAULT, value->data);
  free(value->data);
  if (value->space >= 0) call->H5Sclose(value->space);
  if (value->type >= 0) call->H5Tclose(value->type);
}

const char *hdf5_value_refused(hdf5_library *library, const char *name, const hdf5_value *value) {
  if (hdf5_refers(library, value->type) && strcmp(name, DIMENSION_LIST) != 0)
    return "it refers to other objects of its file, which are not copied";
  size_t item = value->apart && value->item < APART_BYTES ? APART_BYTES : value->item,
         name_size = strlen(name);
  if (name_size >= MOST_BYTES || (uint64_t)value->count > (MOST_BYTES - name_size) / item)
    return "it has more than 64,000 bytes";
  return NULL;
}

void hdf5_drop(const hdf5_along *along, const char *what, const char *name, const char *format,
               ...) {
  char reason[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reason, sizeof reason, format, arguments);
  va_end(arguments);
  const tegula_plugin_origin *origin = along->layout->origin;
  if (origin->dropped) origin->dropped(origin->state, what, name, reason);
}
