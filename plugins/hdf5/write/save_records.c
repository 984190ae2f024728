/* Compound types for records that are saved: what h5py stores the same structured dtype as.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "write/hdf5_write.h"

enum { DEEPEST = 24 /* what is read again: read/record_types.c */ };

typedef struct making {
  hdf5_library *library;
  const tegula_plugin_field *fields;
  char *why; /* empty: libhdf5 failed */
  size_t room;
} making;

static hid_t make_record(const making *m, int64_t first, int64_t last, size_t size, int depth);

/* Without its shape. */
static hid_t make_base(const making *m, int64_t at, int depth) {
  const tegula_plugin_field *field = &m->fields[at];
  if (field->fields == 0) return hdf5_type_make(m->library, field->dtype, m->why, m->room);
  return make_record(m, at + 1, at + 1 + field->fields, field->dtype.item_size, depth + 1);
}

static hid_t make_field(const making *m, int64_t at, int depth) {
  const tegula_plugin_field *field = &m->fields[at];
  if (field->ndim > HDF5_MAX_RANK) {
    snprintf(m->why, m->room, "its field \"%s\" has more than %d axes", field->name, HDF5_MAX_RANK);
    return -1;
  }
  hid_t base = make_base(m, at, depth);
  if (base < 0 || field->ndim == 0) return base;
  hdf5_inner dims = {.ndim = field->ndim};
  for (int k = 0; k < field->ndim; k++) dims.shape[k] = field->shape[k];
  hid_t type = hdf5_array_make(m->library, base, &dims);
  m->library->call.H5Tclose(base);
  return type;
}

/* Of the fields [first, last), those within others left out. */
static hid_t make_record(const making *m, int64_t first, int64_t last, size_t size, int depth) {
  const hdf5_functions *call = &m->library->call;
  if (depth > DEEPEST) {
    snprintf(m->why, m->room, "its records lie within records more than %d deep", DEEPEST);
    return -1;
  }
  hid_t type = call->H5Tcreate(HDF5_COMPOUND, size);
  bool good = type >= 0;
  for (int64_t at = first; good && at < last; at += 1 + m->fields[at].fields) {
    hid_t field = make_field(m, at, depth);
    good = field >= 0 &&
           call->H5Tinsert(type, m->fields[at].name, (size_t)m->fields[at].offset, field) >= 0;
    if (field >= 0) call->H5Tclose(field);
  }
  if (good || type < 0) return type;
  call->H5Tclose(type);
  return -1;
}

hid_t hdf5_record_make(hdf5_library *library, const tegula_plugin_layout *layout, char *why,
                       size_t size) {
  making m = {library, layout->fields, why, size};
  why[0] = 0;
  return make_record(&m, 0, layout->field_count, layout->dtype.item_size, 1);
}
