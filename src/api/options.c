/* Structs that callers compiled against another version of the header may hand in, and the counting
 * of what an operation did.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api.h"

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

/* The size that a caller's struct says, and that nothing is set in what lies beyond the known
 * part. */
static tegula_status check_struct(const void *given, size_t known, size_t first, const char *name,
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
  FORWARD(check_struct(given, known, first, name, &size, err));
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
  FORWARD(check_struct(out, known, first, name, &size, err));
  memcpy(out, local, size < known ? size : known);
  memcpy(out, &size, sizeof size);
  return TEGULA_OK;
}

void tegula_statistics_init(tegula_statistics *statistics) {
  *statistics = (tegula_statistics){.struct_size = sizeof *statistics};
}

tegula_status tegula__tally_start(tegula__tally *tally, const tegula_statistics *wanted,
                                  tegula_error *err) {
  size_t size;
  memset(tally, 0, sizeof *tally);
  tally->statistics.struct_size = sizeof tally->statistics;
  if (wanted != NULL)
    FORWARD(
        check_struct(wanted, sizeof *wanted, FIRST_STATISTICS, "tegula_statistics", &size, err));
  tally->start = wanted != NULL ? tegula__now() : 0; /* nobody asks else */
  return TEGULA_OK;
}

void tegula__tally_end(tegula__tally *tally, tegula_statistics *wanted, size_t seconds) {
  if (wanted == NULL) return;
  const tegula_statistics *did = &tally->statistics;
  tegula_statistics sum = {0}; /* the caller's struct may be an older, smaller one */
  size_t size = wanted->struct_size < sizeof sum ? wanted->struct_size : sizeof sum;
  memcpy(&sum, wanted, size);
  *(double *)(void *)((char *)&sum + seconds) += tegula__now() - tally->start;
  sum.opens += atomic_load(&tally->counts.opens);
  sum.stats += atomic_load(&tally->counts.stats);
  sum.reads += atomic_load(&tally->counts.reads);
  sum.writes += atomic_load(&tally->counts.writes);
  sum.bytes_read += atomic_load(&tally->counts.bytes_read);
  sum.bytes_written += atomic_load(&tally->counts.bytes_written);
  sum.direct_bytes += did->direct_bytes;
  sum.staged_bytes += did->staged_bytes;
  sum.reader_bytes += did->reader_bytes;
  sum.missing += did->missing;
  sum.steps += did->steps;
  sum.workers = tegula__max(sum.workers, did->workers);
  if (did->io_path != NULL) sum.io_path = did->io_path;
  if (did->fallback_reason != NULL) sum.fallback_reason = did->fallback_reason;
  memcpy(wanted, &sum, size);
}
