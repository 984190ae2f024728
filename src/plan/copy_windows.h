/* copy_windows: how a copy is cut into parts that fit in memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A window lies in one part of the target's manifest (a file of a set, a tile file) and holds whole
 * chunks of it. Its lengths are those that cost least in the memory there is: by the requests for
 * what follows one another in both files, and by how often chunks that go through a codec are
 * decoded. Windows come in the order of the target. */
#ifndef TEGULA_PLAN_COPY_WINDOWS_H
#define TEGULA_PLAN_COPY_WINDOWS_H

#include "plan/plan.h"

typedef struct tegula__windows {
  const tegula__manifest *target;
  tegula__storage source; /* how it is stored */
  int64_t most;           /* bytes of a window, unless a single chunk has more */
  int64_t part;           /* of the target; -1: not begun */
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS]; /* of the window */
  int64_t length[TEGULA_MAX_DIMS];                  /* of windows of this part */
  int64_t extents[TEGULA_MAX_DIMS];                 /* of the part for which these were found out */
} tegula__windows;

void tegula__windows_start(tegula__windows *windows, const tegula__manifest *source,
                           const tegula__manifest *target, int64_t most);
/* The next window in lo and hi; false: there are no more. */
bool tegula__windows_next(tegula__windows *windows);
/* Bytes of the largest one. */
int64_t tegula__windows_largest(const tegula__manifest *source, const tegula__manifest *target,
                                int64_t most);

#endif
