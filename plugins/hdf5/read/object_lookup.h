/* Links and groups, for the two files that walk over them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_HDF5_OBJECT_LOOKUP_H
#define TEGULA_HDF5_OBJECT_LOOKUP_H

#include "read/hdf5_read.h"

typedef struct hdf5_link {
  int kind;
  char *file;   /* external */
  char *object; /* soft and external */
} hdf5_link;

/* NOT_FOUND: there is no link of that name; UNSUPPORTED: of a kind that users define. */
tegula_status hdf5_link_read(hdf5_call *call, hid_t group, const char *name, hdf5_link *out);
void hdf5_link_free(hdf5_link *link);
/* The object (of any kind) of that name. */
tegula_status hdf5_follow(hdf5_call *call, hdf5_file *file, const char *name, hdf5_found *out,
                          tegula_error *err);

#endif
