/* Texts in new memory, and where the names lead that a file gives.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "library/libhdf5.h"

char *hdf5_text(const char *format, ...) {
  char *out = NULL;
  va_list arguments;
  va_start(arguments, format);
  int length = vasprintf(&out, format, arguments);
  va_end(arguments);
  return length < 0 ? NULL : out;
}

char *hdf5_beside(const char *file, const char *name) {
  const char *slash = strrchr(file, '/');
  return slash ? hdf5_text("%.*s/%s", (int)(slash - file), file, name) : strdup(name);
}

char *hdf5_resolve(const hdf5_file *file, const char *name) {
  if (name[0] == '/') return strdup(name);
  char *here = hdf5_beside(file->path, name);
  if (!here || access(here, F_OK) == 0) return here;
  char *there = hdf5_beside(file->canonical, name);
  if (!there || access(there, F_OK) != 0) {
    free(there);
    return here;
  }
  free(here);
  return there;
}
