/* Where a libhdf5 may be found: that of the h5py in the Python at hand. The newest one is taken.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Nothing of Python is run: wheels lie in PREFIX/lib/python3.N/site-packages, with their libraries
 * in h5py.libs beside them. PREFIX is the active virtual environment, or where the python3 of PATH
 * belongs to. */
#include <dirent.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"

enum { MOST_CANDIDATES = 4096 };

static int is_python(const struct dirent *entry) {
  return fnmatch("python3*", entry->d_name, 0) == 0;
}

static int is_libhdf5(const struct dirent *entry) {
  return fnmatch("libhdf5-*.so*", entry->d_name, 0) == 0;
}

static void free_names(struct dirent **names, int count) {
  for (int i = 0; i < count; i++) {
    free(names[i]);
  }
  free(names);
}

static void add_library(const char *folder, const char *name, char *out, size_t size) {
  size_t used = strlen(out), more = strlen(folder) + 1 + strlen(name);
  if (used + more + 2 <= size && strchr(folder, ':') == NULL && strchr(name, ':') == NULL) {
    snprintf(out + used, size - used, "%s%s/%s", used > 0 ? ":" : "", folder, name);
  }
}

/* PREFIX/lib/python3.N/PACKAGES/h5py.libs, for each N in the order of names. glob(3) is not used:
 * that of glibc 2.36 frees twice where there is no memory. */
static void add_matches(const char *prefix, const char *packages, char *out, size_t size) {
  char folder[PATH_MAX];
  struct dirent **pythons, **libraries;
  snprintf(folder, sizeof folder, "%s/lib", prefix);
  int python_count = scandir(folder, &pythons, is_python, alphasort);
  for (int i = 0; i < python_count; i++) {
    if (snprintf(folder, sizeof folder, "%s/lib/%s/%s/h5py.libs", prefix, pythons[i]->d_name,
                 packages) >= (int)sizeof folder) {
      continue;
    }
    int count = scandir(folder, &libraries, is_libhdf5, alphasort);
    for (int k = 0; k < count; k++) {
      add_library(folder, libraries[k]->d_name, out, size);
    }
    if (count >= 0) {
      free_names(libraries, count);
    }
  }
  if (python_count >= 0) {
    free_names(pythons, python_count);
  }
}

static void add_prefix(const char *prefix, char *out, size_t size) {
  add_matches(prefix, "site-packages", out, size);
  add_matches(prefix, "dist-packages", out, size);
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
  add_matches("/usr/local", "dist-packages", out, MOST_CANDIDATES);
  return out;
}
