/* Structs that callers compiled against another version of the header may hand in.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/caller_structs.h"

tegula_status tegula__argument(tegula_error *err, const char *what) {
  return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1, "%s", what);
}

static tegula_status size_of(const void *given, size_t first, const char *name, size_t *size,
                             tegula_error *err) {
  memcpy(size, given, sizeof *size);
  if (*size >= first && *size <= 1 << 20) return TEGULA_OK;
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                                   "%s has struct_size %zu, expected %zu or more", name, *size,
                                   first),
                      "fill it with its _init function");
}

tegula_status tegula__struct_check(const void *given, size_t known, size_t first, const char *name,
                                   size_t *size, tegula_error *err) {
  FORWARD(size_of(given, first, name, size, err));
  for (size_t i = known; i < *size; i++)
    if (((const char *)given)[i] != 0)
      return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                          "%s asks for something that this version of the library does not know",
                          name);
  return TEGULA_OK;
}

tegula_status tegula__options_copy(void *local, size_t known, size_t first, const void *given,
                                   const char *name, tegula_error *err) {
  RETURN_IF(given == NULL, TEGULA_OK);
  size_t size;
  FORWARD(tegula__struct_check(given, known, first, name, &size, err));
  memcpy(local, given, size < known ? size : known);
  memcpy(local, &known, sizeof known);
  return TEGULA_OK;
}

tegula_status tegula__load_options_copy(tegula_load_options *local,
                                        const tegula_load_options *given, tegula_error *err) {
  FORWARD(tegula__options_copy(local, sizeof *local, FIRST_LOAD_OPTIONS, given,
                               "tegula_load_options", err));
  CHECK_ARGUMENT(local->missing <= TEGULA_MISSING_FILL, "missing is none of TEGULA_MISSING_*");
  return TEGULA_OK;
}

tegula_status tegula__info_copy(void *out, size_t known, size_t first, const void *local,
                                const char *name, tegula_error *err) {
  size_t size;
  FORWARD(tegula__struct_check(out, known, first, name, &size, err));
  memcpy(out, local, size < known ? size : known);
  memcpy(out, &size, sizeof size);
  return TEGULA_OK;
}
