/* Names of files as seen from a folder, so that both can be moved together.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Links in the way to a file are resolved, as the system does when it meets "..", but the file's
 * own name stays: it may be a link on purpose. Names that share no folder but the root are
 * absolute. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "manifest/manifest_priv.h"

tegula_status tegula__namer_init(tegula__namer *namer, const char *base, tegula_error *err) {
  *namer = (tegula__namer){0};
  if (base == NULL) return TEGULA_OK;
  namer->base = realpath(base, NULL);
  return namer->base != NULL
             ? TEGULA_OK
             : tegula__fail_errno(err, errno, base, -1, "could not find the folder \"%s\"", base);
}

void tegula__namer_free(tegula__namer *namer) {
  free(namer->base);
  free(namer->folder);
  free(namer->real);
  *namer = (tegula__namer){0};
}

/* Resolves the folder in front of the name, unless it is the last one again. */
static tegula_status resolve(tegula__namer *namer, const char *file, size_t size,
                             tegula_error *err) {
  if (namer->folder != NULL && strlen(namer->folder) == size &&
      memcmp(namer->folder, file, size) == 0)
    return TEGULA_OK;
  free(namer->folder);
  free(namer->real);
  namer->real = NULL;
  namer->folder = strndup(file, size);
  if (namer->folder == NULL) return tegula__out_of_memory(err, (int64_t)size);
  namer->real = realpath(size == 0 ? "." : namer->folder, NULL);
  if (namer->real != NULL) return TEGULA_OK;
  int os_errno = errno;
  free(namer->folder);
  namer->folder = NULL;
  return tegula__fail_errno(err, os_errno, file, -1, "could not find the folder of \"%s\"", file);
}

/* From one canonical name to another: "/a/b" to "/a/c/x" is "../c/x". */
static char *relative(const char *folder, const char *file) {
  size_t common = 0, at = 0, ups = 0;
  if (strcmp(folder, "/") == 0) return strdup(file + 1);
  for (; folder[at] != '\0' && folder[at] == file[at]; at++)
    if (file[at] == '/') common = at;
  if (folder[at] == '\0' && file[at] == '/') common = at; /* the file is below the folder */
  if (common == 0) return strdup(file);
  for (const char *rest = folder + common; *rest != '\0'; rest++) ups += *rest == '/';
  char *out = malloc(3 * ups + strlen(file + common) + 1), *end = out;
  for (size_t i = 0; out != NULL && i < ups; i++) end = stpcpy(end, "../");
  if (out != NULL) strcpy(end, file + common + 1);
  return out;
}

tegula_status tegula__namer_name(tegula__namer *namer, const char *file, char **out,
                                 tegula_error *err) {
  const char *slash = strrchr(file, '/'), *name = slash != NULL ? slash + 1 : file;
  FORWARD(resolve(namer, file,
                  slash == file   ? 1
                  : slash == NULL ? 0
                                  : (size_t)(slash - file),
                  err));
  char *whole = tegula__strprintf("%s/%s", strcmp(namer->real, "/") == 0 ? "" : namer->real, name);
  if (whole == NULL || namer->base == NULL) {
    *out = whole;
  } else {
    *out = relative(namer->base, whole);
    free(whole);
  }
  return *out != NULL ? TEGULA_OK : tegula__out_of_memory(err, (int64_t)strlen(file));
}
