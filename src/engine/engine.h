/* engine: runs a plan. The only place where array bytes move, in both directions.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Workers take steps in order. A direct step moves bytes between the file and their final place
 * with vectored calls; a staged one reads into a slot and scatters in one fused pass (swap,
 * transpose, copy), or gathers and writes; chunks are decoded in between. The error that is
 * returned is that of the first step in the order of files and offsets, whatever thread met it.
 *
 * Begin reading at tegula__engine_run. Each kind of step has a file: direct_steps.c, staged.c,
 * chunk_steps.c, encode_steps.c, reader.c, absent.c; small.c reads small boxes without a plan,
 * rounds.c writes chunks that several ranks share. The folder includes base, manifest, plan, io,
 * codec, kernel and memory. */
#ifndef TEGULA_ENGINE_ENGINE_H
#define TEGULA_ENGINE_ENGINE_H

#include "base/base.h"
#include "base/pool.h"
#include "io/io.h"
#include "kernel/kernel.h"
#include "manifest/manifest.h"
#include "memory/memory.h"
#include "plan/plan.h"

/* What a move works with; all borrowed. */
typedef struct tegula__engine {
  tegula__pool *pool;
  tegula__staging *staging;
  const tegula__kernels *kernels;
  tegula__transport *transport; /* NULL: pread and pwrite */
} tegula__engine;

/* What the files begin with, where that is still to be looked at: read together with the first data
 * of each file. */
typedef struct tegula__heads {
  /* bytes that are wanted, at most TEGULA__HEAD_BYTES; 0: none */
  size_t (*size)(void *state, int64_t file);
  tegula_status (*check)(void *state, int64_t file, const void *head, size_t size,
                         tegula_error *err);
  void *state;
} tegula__heads;

/* Where chunks that are written go: asked in the order of the array, by one thread at a time. */
typedef struct tegula__placer {
  /* For the chunk of this part with these indices (counted in chunks), which has `length` bytes and
   * whose stages in `mask` were skipped. */
  tegula_status (*find)(void *state, int64_t part, const int64_t *chunk, uint32_t length,
                        uint32_t mask, uint64_t *offset, tegula_error *err);
  void *state;
} tegula__placer;

typedef struct tegula__move {
  const tegula__manifest *manifest;
  tegula__file_set *files; /* of the manifest's files */
  const tegula__tile *tiles;
  int64_t tile_count;
  const tegula__heads *heads; /* reading; may be NULL. Files without a step are not looked at */
  bool writing;               /* from tiles to files */
  /* writing chunked parts: the tiles hold each chunk that they touch whole */
  const tegula__placer *placer;
  tegula_missing missing;
  int64_t align;               /* writing: as in tegula__plan_limits */
  bool durable;                /* writing: each file is on the disk when its last byte is written */
  bool push;                   /* writing: the files are to be on the disk before long */
  tegula_progress_fn progress; /* may be NULL */
  void *progress_state;
  /* may be NULL; added to: steps, direct_bytes, staged_bytes, io_path */
  tegula_statistics *statistics;
  tegula__io_counts *counts;
} tegula__move;

/* Plans and moves. Tiles may not overlap. On failure the content of the tiles (or files) is
 * undefined. */
tegula_status tegula__engine_run(const tegula__engine *engine, const tegula__move *move,
                                 tegula_error *err);

/* ---- chunks in rounds: where their places are found between encoding and writing, by somebody
 * else ---- */

/* Whose places are asked for in the order of part and number. */
typedef struct tegula__round_chunk {
  int64_t part, number; /* of the manifest; in C order among all chunks of the part */
  /* it has all of the chunk, and nothing else; NULL: the tiles of the move have it */
  const tegula__tile *whole;
  uint64_t offset;
  uint32_t length, mask;
} tegula__round_chunk;

typedef struct tegula__rounds tegula__rounds;
/* For as many rounds as there are to be. `move` is borrowed. */
tegula_status tegula__rounds_create(const tegula__engine *engine, const tegula__move *move,
                                    tegula__rounds **out, tegula_error *err);
/* Bytes that an encoded chunk of the part may have. */
int64_t tegula__rounds_bound(const tegula__manifest *manifest, int64_t part);
/* Other tiles, from the next round on. */
tegula_status tegula__rounds_retile(tegula__rounds *rounds, const tegula__tile *tiles,
                                    int64_t count, tegula_error *err);
/* Encodes the chunks, in memory for all of them, and sets length and mask. */
tegula_status tegula__rounds_encode(tegula__rounds *rounds, tegula__round_chunk *chunks,
                                    int64_t count, tegula_error *err);
/* Writes what was encoded to its offsets. */
tegula_status tegula__rounds_write(tegula__rounds *rounds, const tegula__round_chunk *chunks,
                                   int64_t count, tegula_error *err);
/* After the last one: as the move wants it, what was written is on the disk. Adds to its
 * statistics. */
tegula_status tegula__rounds_finish(tegula__rounds *rounds, tegula_error *err);
void tegula__rounds_destroy(tegula__rounds *rounds);

#endif
