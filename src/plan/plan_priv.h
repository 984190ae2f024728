/* What the files of this folder share among themselves: cutting one part.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_PLAN_PLAN_PRIV_H
#define TEGULA_PLAN_PLAN_PRIV_H

#include "plan/plan.h"

/* How parts are cut. */
typedef struct tegula__cutting {
  tegula__plan *plan;
  const tegula__plan_limits *limits;
  int64_t share;      /* bytes of a step that make all workers end together */
  int64_t direct;     /* the same for direct steps, which may be longer in a save */
  int64_t first_part; /* parts from here on may be wanted */
  /* for each of those: the next part of the same grid, or one of the two below; NULL: none has
   * chunks */
  int64_t *next;
} tegula__cutting;

/* Bytes of a step. */
#define LARGEST_STEP ((int64_t)8 << 20)
#define SMALLEST_STEP ((int64_t)256 << 10)
/* most file systems let one thread at a time write to a file: fewer turns, fewer waits for them */
#define LARGEST_WRITE ((int64_t)32 << 20)

/* Plain chunks (or a row of them) from this size on are moved like a file of their own. */
#define DENSE_CHUNK ((int64_t)64 << 10)

#define TEGULA__NO_PART ((int64_t)-1)  /* the last one of its grid */
#define TEGULA__CUT_PART ((int64_t)-2) /* cut already, with an earlier one of its grid */

/* Finds the parts up to `last` that share grids, as `next`. */
tegula_status tegula__link_parts(tegula__cutting *cutting, int64_t last, tegula_error *err);

/* The bounding box of what the tiles want of the box, and how many bytes that is; false when they
 * want nothing. */
bool tegula__plan_wants(const tegula__plan *plan, const int64_t *box_lo, const int64_t *box_hi,
                        int64_t *lo, int64_t *hi, int64_t *bytes);
/* Adds a step; its group follows from its part's file. Vectors may be NULL for steps about several
 * chunks. */
tegula_status tegula__plan_add(tegula__plan *plan, const tegula__step *step, tegula_error *err);
/* Steps for dense bytes: `stored` is part `number`, or plain chunks of it that follow each other:
 * `count` of the plan's, from `chunk` on
 * (-1: none). */
tegula_status tegula__cut_dense(const tegula__cutting *cutting, const tegula__part *stored,
                                int64_t number, int64_t chunk, int64_t count, tegula_error *err);
/* Steps that fill the box [lo, hi) of part `number`, of which nothing is stored. */
tegula_status tegula__cut_fill(const tegula__cutting *cutting, int64_t number, const int64_t *lo,
                               const int64_t *hi, tegula_error *err);
/* The chunks between first and last of a part whose table says only what is stored: boxes of absent
 * ones become steps, all others go to `collect`. Both vectors are as they were afterwards. */
typedef tegula_status (*tegula__collect_fn)(const tegula__cutting *cutting, int64_t number,
                                            const int64_t *first, const int64_t *last,
                                            tegula_error *err);
tegula_status tegula__cut_sparse(const tegula__cutting *cutting, int64_t number, int64_t *first,
                                 int64_t *last, tegula__collect_fn collect, tegula_error *err);
/* `count` chunks of the plan from `index` on are of one large plain chunk: does each of them move
 * it like a file of its own? */
bool tegula__plan_apart(const tegula__plan *plan, int64_t index, int64_t count);
/* Puts them in the order in which they begin in the chunk. */
tegula_status tegula__plan_sort_apart(tegula__plan *plan, int64_t index, int64_t count,
                                      tegula_error *err);
/* Steps for a chunked part and those behind it that share its grid. */
tegula_status tegula__cut_chunked(const tegula__cutting *cutting, int64_t number,
                                  tegula_error *err);

/* Parts that are lost, or that a reader gives: the whole, or the reader's own pieces. */
tegula_status tegula__cut_other(const tegula__cutting *cutting, int64_t number,
                                tegula__step_kind kind, tegula_error *err);

/* Chunks of the plan from `first` on as dense bytes of the file. */
void tegula__plan_stored(const tegula__plan *plan, int64_t first, int64_t count,
                         tegula__stored *out);

#endif
