/* A file that is being saved, for the files that add datasets to it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_HDF5_SAVED_FILE_H
#define TEGULA_HDF5_SAVED_FILE_H

#include "write/hdf5_write.h"

typedef struct made {
  hid_t id;
  int ndim;
  int64_t chunk[HDF5_MAX_RANK], shape[HDF5_MAX_RANK];
  uint64_t plain; /* bytes of a chunk that no filter touches; 0: filters do */
} made;

typedef struct saving {
  hdf5_library *library;
  const char *path; /* the sink's */
  /* plain: the list of how plain contiguous datasets are made, the same for all; -1: not made
   * yet */
  hid_t file, plain;
  int64_t longest; /* the largest length that the file can tell */
  made *datasets;
  int64_t count, capacity;
} saving;

#endif
