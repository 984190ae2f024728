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
  int64_t share; /* bytes of a step that make all workers end together */
} tegula__cutting;

/* The bounding box of what the tiles want of the box, and how many bytes that is; false when they want nothing. */
bool tegula__plan_wants(const tegula__plan *plan, const int64_t *box_lo, const int64_t *box_hi, int64_t *lo, int64_t *hi, int64_t *bytes);
/* Adds a step; its group follows from its part's file. Vectors may be NULL for steps about several chunks. */
tegula_status tegula__plan_add(tegula__plan *plan, const tegula__step *step, tegula_error *err);
/* Steps for dense bytes: `stored` is part `number`, or plain chunks of it that follow each other: `count` of the plan's, from `chunk` on
 * (-1: none). */
tegula_status tegula__cut_dense(const tegula__cutting *cutting, const tegula__part *stored, int64_t number, int64_t chunk, int64_t count,
                                tegula_error *err);
/* Steps for a chunked part. */
tegula_status tegula__cut_chunked(const tegula__cutting *cutting, int64_t number, tegula_error *err);

#endif
