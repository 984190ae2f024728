/* Where a libhdf5 may be found: that of the h5py in the Python at hand. The newest one is taken.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Nothing of Python is run: wheels lie in PREFIX/lib/python3.N/site-packages, with their libraries
 * in h5py.libs beside them. PREFIX is the active virtual environment, or where the python3 of PATH
 * belongs to. */
#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"

enum { MOST_CANDIDATES = 4096 };

static void add_matches(const char *prefix, const char *below, char *out, size_t size) {
  char pattern[PATH_MAX];
  glob_t found;
  if (snprintf(pattern, sizeof pattern, "%s/%s/h5py.libs/libhdf5-*.so*", prefix, below) >=
      (int)sizeof pattern) {
    return;
  }
  if (glob(pattern, 0, NULL, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; i++) {
      size_t used = strlen(out), more = strlen(found.gl_pathv[i]);
      if (used + more + 2 <= size && strchr(found.gl_pathv[i], ':') == NULL) {
        snprintf(out + used, size - used, "%s%s", used > 0 ? ":" : "", found.gl_pathv[i]);
      }
    }
    globfree(&found);
  }
}

static void add_prefix(const char *prefix, char *out, size_t size) {
  add_matches(prefix, "lib/python3*/site-packages", out, size);
  add_matches(prefix, "lib/python3*/dist-packages", out, size);
}

/* PREFIX of PREFIX/bin/python3; 0 when there is none. A link is not followed: it leads out of a
 * virtual environment. */
static int prefix_of_python(char out[PATH_MAX]) {
  const char *path = getenv("PATH");
  while (path != NULL && *path != '\0') {
    size_t length = strcspn(path, ":");
    char program[PATH_MAX];
    if (length > 0 &&
        snprintf(program, sizeof program, "%.*s/python3", (int)length, path) <
            (int)sizeof program &&
        access(program, X_OK) == 0) {
      snprintf(out, PATH_MAX, "%.*s", (int)length, path);
      char *slash = strrchr(out, '/');
      if (slash == NULL || slash == out) {
        return 0;
      }
      *slash = '\0';
      return 1;
    }
    path += length + (path[length] == ':');
  }
  return 0;
}

char *hdf5_candidates(void) {
  char *out = calloc(1, MOST_CANDIDATES), prefix[PATH_MAX];
  const char *environment = getenv("VIRTUAL_ENV");
  if (out == NULL) {
    return NULL;
  }
  if (environment != NULL && environment[0] == '/') {
    add_prefix(environment, out, MOST_CANDIDATES);
  }
  if (prefix_of_python(prefix)) {
    add_prefix(prefix, out, MOST_CANDIDATES);
  }
  add_matches("/usr/local", "lib/python3*/dist-packages", out, MOST_CANDIDATES);
  return out;
}
