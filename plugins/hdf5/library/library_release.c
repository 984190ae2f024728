/* Which release a libhdf5 is, and its predefined types.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>

#include "library/libhdf5.h"

bool hdf5_library_from(const hdf5_library *library, unsigned major, unsigned minor,
                       unsigned release) {
  const unsigned *v = library->version;
  if (v[0] != major) return v[0] > major;
  return v[1] != minor ? v[1] > minor : v[2] >= release;
}

hid_t hdf5_predefined(const hdf5_library *library, const char *symbol) {
  const hid_t *id = dlsym(library->handle, symbol);
  return id ? *id : -1;
}
