/* batch_window: chunks that several pieces of a dataset want are decoded once.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A window is a box of whole chunks around a piece, which fits in the staging budget. It is read
 * when a piece comes that is not in the one before; the pieces are copied out of it. One process
 * only. */
#ifndef TEGULA_DATASET_BATCH_WINDOW_H
#define TEGULA_DATASET_BATCH_WINDOW_H

#include "dataset/dataset.h"

typedef struct tegula__batches_window {
  tegula_array *array; /* NULL: none is held */
  tegula_box box;
  /* one could not be read: from then on pieces are read by themselves, and those before the place
   * still come */
  bool off;
} tegula__batches_window;

/* Fills the piece `box`, one of pieces of the lengths `piece`; *done: false where it is to be read
 * by itself. */
tegula_status tegula__batches_window_fill(tegula__batches_window *window,
                                          const tegula_dataset *dataset, const int64_t *piece,
                                          const tegula_load_options *options, const tegula_box *box,
                                          tegula_array *array, bool *done, tegula_error *err);
void tegula__batches_window_release(tegula__batches_window *window);

#endif
