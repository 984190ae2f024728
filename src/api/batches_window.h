/* batches_window: chunks that several pieces of a dataset want are decoded once.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A window is a box of whole chunks around a piece, which fits in the staging budget. It is read when a piece comes that is not in the one
 * before; the pieces are copied out of it. One process only. */
#ifndef TEGULA_API_BATCHES_WINDOW_H
#define TEGULA_API_BATCHES_WINDOW_H

#include "api/api.h"

/* The part that holds an element, if it is one of chunks that are decoded as a whole; else NULL. */
const tegula__part *tegula__encoded_part_at(const tegula__manifest *manifest, const int64_t *index);
/* Elements from the last border of chunks along axis k to `index`. */
static inline int64_t tegula__past_border(const tegula__part *part, int32_t k, int64_t index) {
  return (part->start[k] + (index - part->lo[k])) % part->chunk[k];
}
/* The first border of chunks at `index` or behind it, or the end of the part. */
static inline int64_t tegula__next_border(const tegula__part *part, int32_t k, int64_t index) {
  int64_t past = tegula__past_border(part, k, index), rest = past > 0 ? part->chunk[k] - past : 0;
  return part->hi[k] - index < rest ? part->hi[k] : index + rest; /* which may be near the largest number there is */
}

typedef struct tegula__batches_window {
  tegula_array *array; /* NULL: none is held */
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS];
  bool off; /* one could not be read: from then on pieces are read by themselves, and those before the place still come */
} tegula__batches_window;

/* Fills the piece `box`, one of pieces of the lengths `piece`; *done: false where it is to be read by itself. */
tegula_status tegula__batches_window_fill(tegula__batches_window *window, const tegula_dataset *dataset, const int64_t *piece,
                                          const tegula_load_options *options, const tegula_box *box, tegula_array *array, bool *done,
                                          tegula_error *err);
void tegula__batches_window_release(tegula__batches_window *window);

#endif
