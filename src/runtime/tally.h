/* The counts of one operation, for the statistics of its caller.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_RUNTIME_TALLY_H
#define TEGULA_RUNTIME_TALLY_H

#include "io/io.h"

/* Collects what one operation did and adds it to the caller's statistics (may be NULL). */
typedef struct tegula__tally {
  tegula__io_counts counts;
  tegula_statistics statistics;
  double start;
} tegula__tally;
tegula_status tegula__tally_start(tegula__tally *tally, const tegula_statistics *wanted,
                                  tegula_error *err);
/* `seconds`: the member of statistics that gets the time, as an offset in the struct. */
void tegula__tally_end(tegula__tally *tally, tegula_statistics *wanted, size_t seconds);

#endif
