/* Relative paths of a process that may go into another folder.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/io.h"

char *tegula__io_rooted(const char *path) {
  if (path[0] == '/') return strdup(path);
  char *here = getcwd(NULL, 0);
  if (here == NULL && errno != ENOMEM) return strdup(path); /* a folder that has no name any more */
  char *rooted = here == NULL             ? NULL
                 : strcmp(here, "/") == 0 ? tegula__strprintf("/%s", path)
                                          : tegula__strprintf("%s/%s", here, path);
  free(here);
  return rooted;
}
