/* What the parts share that take attributes and scales along with a dataset that is copied.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_HDF5_COPY_METADATA_H
#define TEGULA_HDF5_COPY_METADATA_H

#include "write/hdf5_write.h"

#define DIMENSION_LIST "DIMENSION_LIST" /* of a dataset: for each axis references to its scales */
#define REFERENCE_LIST "REFERENCE_LIST" /* of a scale: the datasets and axes whose scale it is */

/* A copy on its way. */
typedef struct hdf5_along {
  hdf5_library *library;
  const tegula_plugin_layout *layout;
  const char *path;     /* of the target, for messages */
  hdf5_file *from_file; /* the dataset that is copied */
  hid_t from;
  const char *from_name;
  bool ordered;                  /* it keeps the order in which its attributes were made */
  hid_t file, to;                /* the target, and its new dataset */
  const hdf5_replaced *replaced; /* what had its name before */
} hdf5_along;

void hdf5_drop(const hdf5_along *along, const char *what, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The value of an attribute as it is stored, in memory of its own type. */
typedef struct hdf5_value {
  hid_t type, space;
  int64_t count;
  size_t item;
  bool apart; /* parts of it lie elsewhere: text or sequences of any length */
  void *data;
} hdf5_value;

/* False: libhdf5 could not, or there is not enough memory; what is there is to be freed in any
 * case. */
bool hdf5_value_read(hdf5_library *library, hid_t object, const char *name, hdf5_value *out);
void hdf5_value_free(hdf5_library *library, hdf5_value *value);
/* Does the type hold references? They mean nothing in another file. */
bool hdf5_refers(hdf5_library *library, hid_t type);
/* Why not, or NULL when the attribute is there. */
const char *hdf5_value_refused(hdf5_library *library, const char *name, const hdf5_value *value);

/* ---- scale_lists.c ---- */

enum { HDF5_OBJECT = 0 /* H5R_OBJECT */ };
typedef uint64_t hdf5_reference; /* hobj_ref_t */

typedef struct hdf5_sequence { /* hvl_t */
  size_t count;
  hdf5_reference *items;
} hdf5_sequence;

/* An entry of REFERENCE_LIST in memory. */
typedef struct hdf5_user {
  hdf5_reference dataset;
  int32_t axis, padding;
} hdf5_user;

/* The scale is one of that axis of the dataset, too; -1: of none of its axes any more. */
bool hdf5_users_set(hdf5_library *library, hid_t scale, hdf5_reference dataset, int axis);
/* The references of all axes (hdf5_sequence), if they are plain ones; `out` is to be freed in any
 * case. */
bool hdf5_axes_read(hdf5_library *library, hid_t dataset, hdf5_value *out);
/* In place of what is there. */
bool hdf5_axes_write(hdf5_library *library, hid_t dataset, const hdf5_sequence *axes, int64_t ndim);

/* copy_scales.c: the scales of the axes. */
tegula_status hdf5_scales_along(const hdf5_along *along, tegula_error *err);
/* dataset_equal.c: do two datasets hold the same, with the same attributes but for REFERENCE_LIST?
 * No, where it is not certain. */
bool hdf5_same_dataset(hdf5_library *library, hid_t a, hid_t b);

#endif
