/* scan: a dataset's elements in C order, window by window, through the engine: how hash, verify and
 * compare read.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Memory stays within a window, whatever the size of the dataset; progress is that of all windows
 * together. */
#ifndef TEGULA_DATASET_SCAN_H
#define TEGULA_DATASET_SCAN_H

#include "dataset/dataset.h"
#include "memory/memory.h"

/* Memory for the windows of one call: half of the default staging budget. */
#define TEGULA__STREAM_BYTES ((int64_t)32 << 20)

/* What the windows of one call share. */
typedef struct tegula__stream_call {
  const tegula_load_options *options;
  tegula__tally *tally;
  int64_t done, total; /* bytes of windows that have ended; of all */
  int64_t told;        /* the most that progress was told: it never goes back */
} tegula__stream_call;

/* Moves tiles as one part of the call. */
tegula_status tegula__stream_move(tegula__stream_call *call, const tegula_dataset *dataset,
                                  const tegula__tile *tiles, int64_t count, int64_t bytes,
                                  tegula_error *err);

typedef struct tegula__stream {
  tegula__stream_call *call;
  const tegula_dataset *dataset;
  tegula__block window;
  int64_t *vectors; /* of the boxes of a window */
} tegula__stream;

/* A window of up to `elements`. Free it in any case. */
tegula_status tegula__stream_create(tegula__stream_call *call, const tegula_dataset *dataset,
                                    int64_t elements, tegula__stream *out, tegula_error *err);
void tegula__stream_free(tegula__stream *stream);
/* Reads the elements [first, first + count) densely into the window, in native byte order. */
tegula_status tegula__stream_read(tegula__stream *stream, int64_t first, int64_t count,
                                  tegula_error *err);

#endif
