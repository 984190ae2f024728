/* What the files of tegula_dataset_verify share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_VERIFY_VERIFY_PRIV_H
#define TEGULA_VERIFY_VERIFY_PRIV_H

#include <pthread.h>
#include <stdlib.h>

#include "dataset/scan.h"
#include "verify/problems.h"
#include "verify/verify.h"

enum {
  GROUP = 1024 /* files */,
  LEAST_AT_ONCE = 64 << 10 /* bytes, on ranks */,
  ASK = 4096 /* boxes that are passed over */
};

/* A tile of the window, and the file that it is read from. */
typedef struct tegula__verify_piece {
  int64_t file;
  tegula__tile tile;
} tegula__verify_piece;

typedef struct tegula__verify {
  tegula_dataset *dataset;
  const tegula__manifest *manifest;
  tegula__stream_call call;
  int64_t *order; /* parts by file; NULL: they are in that order already */
  tegula_verify_report report;
  tegula_problem_fn visit;
  void *visit_state;
  tegula_error first; /* problem of all */
  /* the group: files [group, group + GROUP); -1 alone is the file of a reader */
  int64_t group;
  bool bad[GROUP];
  int64_t most;            /* bytes that are read at once */
  int64_t position, share; /* of the group's bytes: those that were given out, those of each rank */
  pthread_mutex_t lock;    /* of what follows */
  tegula__problems problems;
  tegula_status stop; /* not OK: verifying itself failed, or was cancelled */
  tegula_error stop_error;
  /* the window */
  tegula__block window;
  int64_t used;   /* bytes */
  int64_t passed; /* boxes */
  tegula__verify_piece *pieces;
  int64_t piece_count, piece_capacity;
  tegula__tile *tiles; /* of the pieces, as the engine takes them */
  int64_t tile_capacity;
  int64_t *vectors; /* per piece ndim lo, hi, strides */
  int64_t vector_capacity;
  int64_t *boxes; /* scratch for tegula__range_boxes */
} tegula__verify;

tegula_comm *tegula__verify_comm(const tegula__verify *v);

void tegula__verify_note(tegula__verify *v, int64_t file, bool bytes, const tegula_error *error);

/* Reads what the window is laid out for, and empties it. */
void tegula__verify_flush(tegula__verify *v);

void tegula__verify_read_part(tegula__verify *v, const tegula__part *part);

/* Bytes of a block of so many chunks, as far as the part goes. */
int64_t tegula__verify_block_bytes(const tegula__verify *v, const tegula__part *part,
                                   const int64_t *chunks);

/* Where no bytes move, nobody else asks whether to go on. */
void tegula__verify_ask(tegula__verify *v);

/* In blocks of whole chunks, so that none lies in two windows. */
void tegula__verify_read_chunked(tegula__verify *v, const tegula__part *part);

#endif
