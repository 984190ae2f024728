/* The groups above an object that is to be made.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "write/hdf5_write.h"

/* How groups are made: without times; -1 on failure. */
static hid_t timeless_list(const hdf5_library *library) {
  const hdf5_functions *call = &library->call;
  hid_t list = call->H5Pcreate(call->group_create_class);
  if (list < 0 || call->H5Pset_obj_track_times(list, false) >= 0) return list;
  call->H5Pclose(list);
  return -1;
}

/* Groups that libhdf5 makes on the way have times. */
bool hdf5_make_groups(hdf5_library *library, hid_t file, const char *name) {
  const hdf5_functions *call = &library->call;
  RETURN_IF(!strchr(name + 1, '/'), true);
  char *part = strdup(name);
  hid_t list = -1;
  bool good = part != NULL;
  for (char *at = part ? strchr(part + 1, '/') : NULL; at && good; at = strchr(at + 1, '/')) {
    *at = 0;
    int there = call->H5Lexists(file, part, HDF5_DEFAULT);
    if (there == 0 && list < 0) list = timeless_list(library);
    hid_t group = there == 0 && list >= 0
                      ? call->H5Gcreate2(file, part, HDF5_DEFAULT, list, HDF5_DEFAULT)
                      : -1;
    good = there > 0 || group >= 0;
    if (group >= 0) call->H5Oclose(group);
    *at = '/';
  }
  if (list >= 0) call->H5Pclose(list);
  free(part);
  return good;
}
