/* Inside the engine: what the parts of a running move share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_ENGINE_ENGINE_PRIV_H
#define TEGULA_ENGINE_ENGINE_PRIV_H

#include "codec/codec.h"
#include "engine/engine.h"

/* Chunks on their way from encoding to the file, in order: encode_steps.c. */
typedef struct tegula__ring tegula__ring;

/* What one worker keeps from step to step. */
typedef struct tegula__worker {
  tegula__piece *pieces;
  int64_t piece_count, piece_capacity;
  int64_t *vectors; /* behind the pieces' lo and hi */
  int64_t vector_capacity;
  tegula__run_walk *walks; /* one per piece of a direct step */
  int64_t walk_capacity;
  int64_t *heap;
  int64_t heap_capacity;
  struct iovec *iov; /* 2 * TEGULA__IO_VECTORS, shared by requests that are moved together */
  tegula__request requests[TEGULA__IO_DEPTH];
  tegula__lane *lane;
  tegula__decoder *decoder;
  tegula__encoder *encoder;
  tegula__block gathered; /* a chunk before it is encoded */
  bool extra;             /* there are more workers than processors, and it is one of these */
  char *waste;            /* TEGULA__GAP bytes: where unwanted gaps are read to */
  int64_t direct_bytes, staged_bytes, reader_bytes, steps;
} tegula__worker;

/* A step that is being done. */
typedef struct tegula__doing {
  const tegula__engine *engine;
  const tegula__move *move;
  const tegula__targets *targets;
  const tegula__plan *plan;
  const tegula__step *step;
  /* of the manifest; for direct and staged steps the dense bytes that are moved */
  const tegula__part *part;
  tegula__io_file file;
  char *head;       /* where the first bytes of the file go */
  size_t head_size; /* 0: this step does not read them */
  uint32_t item_size;
  uint32_t swap_size; /* of the dtype */
} tegula__doing;

void tegula__worker_free(const tegula__engine *engine, tegula__worker *worker);

/* Does the whole move when it is small and simple enough to need no plan; false: it is not, nothing
 * was done. */
bool tegula__small_run(const tegula__engine *engine, const tegula__move *move,
                       tegula_status *status, tegula_error *err);

/* The pieces of all tiles in the box, in the worker. */
tegula_status tegula__find_pieces(tegula__worker *worker, const tegula__doing *doing,
                                  const int64_t *lo, const int64_t *hi, tegula_error *err);

/* Moves the pieces with vectored calls. */
tegula_status tegula__direct_step(tegula__worker *worker, const tegula__doing *doing,
                                  tegula_error *err);
/* Moves the pieces through a staging slot. */
tegula_status tegula__staged_step(tegula__worker *worker, const tegula__doing *doing,
                                  tegula_error *err);

/* Reads chunks, decodes each and scatters it. */
tegula_status tegula__chunks_step(tegula__worker *worker, const tegula__doing *doing,
                                  tegula_error *err);
/* Bytes of the memory through which shuffled chunks become items. */
#define TEGULA__STRIP ((int64_t)64 << 10)
/* The items in which the chunks of the step may be left shuffled: those of the dtype, or 0 where
 * that does not fit. */
size_t tegula__planes_item(const tegula__doing *doing);
/* Moves the worker's pieces out of a chunk that is still in planes of `plane` bytes; `part` is what
 * it holds of the array. */
void tegula__scatter_planes(tegula__worker *worker, const tegula__doing *doing,
                            const tegula__part *part, const char *planes, size_t plane,
                            char *strip);
/* One chunk on its way to the file. */
typedef struct tegula__encoded {
  int64_t chunk; /* of the plan */
  const char *data;
  uint64_t offset;
  uint32_t length, mask;
} tegula__encoded;

/* Gathers the chunk of the plan from the tiles and encodes it; `out` has room for it. */
tegula_status tegula__encode_chunk(tegula__worker *worker, const tegula__doing *doing, char *out,
                                   tegula__encoded *to, tegula_error *err);
/* Writes chunks of one part that have their places. */
tegula_status tegula__encoded_write(tegula__worker *worker, const tegula__move *move, int64_t part,
                                    const tegula__encoded *chunks, int64_t count,
                                    tegula_error *err);
/* A ring for the steps of the plan; NULL when it has none that encode. */
tegula_status tegula__ring_create(const tegula__engine *engine, const tegula__plan *plan,
                                  tegula__ring **out, tegula_error *err);
void tegula__ring_destroy(tegula__ring *ring);
/* Steps from this one on are not to be waited for any more. */
void tegula__ring_stop(tegula__ring *ring, int64_t step);
/* Gathers and encodes the chunks of a step, then writes what has its turn. A failure is that of
 * step *item. */
tegula_status tegula__encode_step(tegula__worker *worker, const tegula__doing *doing,
                                  tegula__ring *ring, int64_t *item, tegula_error *err);

/* Nothing is stored, or it is lost: fills, or says so, as the move wants it. */
tegula_status tegula__absent_step(tegula__worker *worker, const tegula__doing *doing,
                                  tegula_error *err);
/* Fills the pieces from the part's reader. */
tegula_status tegula__reader_step(tegula__worker *worker, const tegula__doing *doing,
                                  tegula_error *err);
/* Where a whole chunk lies in memory as it is stored, when one tile holds it so: what it is decoded
 * into, or encoded from; else NULL. `chunk` is the stored chunk as dense bytes; the worker has its
 * pieces. */
char *tegula__as_stored(const tegula__worker *worker, const tegula__doing *doing,
                        const tegula__part *chunk);
/* Between a slot that holds the box from `lo` on with these strides, and the piece's memory: swaps
 * and transposes on the way. */
void tegula__copy_piece(const tegula__doing *doing, const int64_t *lo, const int64_t *slot_strides,
                        char *slot, const tegula__piece *piece);

#endif
