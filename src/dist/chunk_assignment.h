/* chunk_assignment: which rank encodes which chunk of a save, and in which round.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * All ranks work it out alike, from the tiling and the places of chunks. A chunk that lies in tiles
 * of one rank is that rank's. One that several have pieces of goes to one that has much of it;
 * those that have at least half of what the first has take turns. Each rank takes its chunks in the
 * order of the array, as many in a round as fit in memory. */
#ifndef TEGULA_DIST_CHUNK_ASSIGNMENT_H
#define TEGULA_DIST_CHUNK_ASSIGNMENT_H

#include "array/array.h"
#include "comm/comm.h"
#include "engine/engine.h"
#include "kernel/kernel.h"
#include "manifest/manifest.h"
#include "plan/copy_windows.h"

/* What a rank may hold in a round; the same on all. */
typedef struct tegula__deal_limits {
  int64_t bytes; /* encoded chunks, and those that are put together; unless ... */
  int64_t least; /* so many chunks have more */
  int64_t most;  /* chunks */
} tegula__deal_limits;

typedef struct tegula__deal {
  const tegula__manifest *manifest; /* borrowed */
  int32_t ranks;
  int64_t count;   /* chunks of all parts */
  int64_t *bases;  /* the first chunk of each part */
  int32_t *owners; /* of each chunk; ~owner where other ranks have pieces of it */
  int64_t rounds;
  /* round i has the chunks order[starts[i]] up to order[starts[i + 1]], in the order of the
   * array */
  int64_t *starts;
  int64_t *order;
  bool in_turn; /* one round after the other is the order of one process */
  /* by tiles: the tiles of all ranks, without memory; else empty */
  tegula__targets everyone;
  tegula__tile *tiles;
  int64_t *vectors;
  int32_t *tile_owners;
} tegula__deal;

/* By the tiles that the ranks have. */
tegula_status tegula__deal_create(const tegula__manifest *manifest, const tegula_tiling *tiling,
                                  const tegula__deal_limits *limits, tegula__deal *out,
                                  tegula_error *err);
/* By the windows of a copy, as `windows` will give them: window i is rank i % ranks', in round i /
 * ranks. */
tegula_status tegula__deal_windows(const tegula__windows *windows, int32_t ranks, tegula__deal *out,
                                   tegula_error *err);
void tegula__deal_free(tegula__deal *deal);

static inline int32_t tegula__deal_owner(const tegula__deal *deal, int64_t chunk) {
  return deal->owners[chunk] < 0 ? ~deal->owners[chunk] : deal->owners[chunk];
}
/* Do other ranks have pieces of it? */
static inline bool tegula__deal_shared(const tegula__deal *deal, int64_t chunk) {
  return deal->owners[chunk] < 0;
}

/* Part and number of a chunk. */
void tegula__deal_chunk(const tegula__deal *deal, int64_t chunk, int64_t *part, int64_t *number);
/* Its box of the array, and its indices (counted in chunks of the part); `at` may be NULL. */
void tegula__deal_box(const tegula__deal *deal, int64_t chunk, int64_t *lo, int64_t *hi,
                      int64_t *at);

#endif
