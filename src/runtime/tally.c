/* Counting of what an operation did.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/caller_structs.h"
#include "runtime/tally.h"

tegula_status tegula__tally_start(tegula__tally *tally, const tegula_statistics *wanted,
                                  tegula_error *err) {
  size_t size;
  memset(tally, 0, sizeof *tally);
  tally->statistics.struct_size = sizeof tally->statistics;
  if (wanted != NULL)
    FORWARD(tegula__struct_check(wanted, sizeof *wanted, FIRST_STATISTICS, "tegula_statistics",
                                 &size, err));
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
