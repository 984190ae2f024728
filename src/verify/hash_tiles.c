/* The content hash of an array that is spread over tiles: groups of blocks are gathered into
 * scratch memory in C order and hashed there.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A group is a range of elements, so a few boxes; each meets some tiles in pieces. What is done
 * with the pieces differs: they are gathered, or packed to be sent to another rank, or put where
 * they came from another rank. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "verify/hash.h"

#define GROUP_BYTES ((int64_t)1 << 20)

/* ---- walking over the pieces of a group ---- */

typedef struct piece_walk {
  const tegula__hash_groups *h;
  const int64_t *lo, *hi; /* the box */
  char *box;              /* its memory in the group: dense */
  const tegula__tile *tile;
  int64_t number;                                     /* of the tile */
  int64_t from[TEGULA_MAX_DIMS], to[TEGULA_MAX_DIMS]; /* the piece */
} piece_walk;

typedef void (*piece_fn)(void *state, const piece_walk *walk);

static void walk_pieces(const tegula__hash_groups *h, int64_t group, const tegula__targets *targets,
                        int64_t *vectors, char *memory, piece_fn each, void *state) {
  int64_t first = group * h->group * h->block,
          count = tegula__min(h->group * h->block, h->elements - first);
  int32_t boxes = tegula__range_boxes(h->shape, h->ndim, first, count, vectors);
  piece_walk walk = {.h = h, .box = memory};
  for (int32_t i = 0; i < boxes; i++) {
    walk.lo = vectors + (int64_t)i * 2 * h->ndim;
    walk.hi = walk.lo + h->ndim;
    int64_t from, to;
    tegula__targets_find(targets, walk.lo, walk.hi, &from, &to);
    for (int64_t t = from; t < to; t++) {
      walk.number = targets->sorted[t];
      walk.tile = &targets->tiles[walk.number];
      if (tegula__box_intersect(h->ndim, walk.lo, walk.hi, walk.tile->lo, walk.tile->hi, walk.from,
                                walk.to))
        each(state, &walk);
    }
    if (walk.box != NULL)
      walk.box += tegula__box_count(h->ndim, walk.lo, walk.hi) * h->dtype.item_size;
  }
}

/* The piece in the memory of its box: address and strides. */
static char *in_box(const piece_walk *walk, int64_t *strides) {
  int64_t extents[TEGULA_MAX_DIMS];
  const tegula__hash_groups *h = walk->h;
  char *address = walk->box;
  for (int32_t k = 0; k < h->ndim; k++) extents[k] = walk->hi[k] - walk->lo[k];
  tegula__dense_strides(extents, h->ndim, h->dtype.item_size, 'C', strides);
  for (int32_t k = 0; k < h->ndim; k++) address += (walk->from[k] - walk->lo[k]) * strides[k];
  return address;
}

static void extents_of(const piece_walk *walk, int64_t *extents) {
  for (int32_t k = 0; k < walk->h->ndim; k++) extents[k] = walk->to[k] - walk->from[k];
}

/* Copies the piece out of its tile, to native byte order. */
static void copy_out(const piece_walk *walk, char *to, const int64_t *to_strides) {
  const tegula__hash_groups *h = walk->h;
  int64_t extents[TEGULA_MAX_DIMS];
  const char *source = walk->tile->data;
  extents_of(walk, extents);
  for (int32_t k = 0; k < h->ndim; k++)
    source += (walk->from[k] - walk->tile->lo[k]) * walk->tile->strides[k];
  uint32_t swap = walk->tile->order != h->dtype.order ? tegula__dtype_swap_size(h->dtype) : 1;
  tegula__copy_strided(h->kernels, to, to_strides, source, walk->tile->strides, extents, h->ndim,
                       h->dtype.item_size, swap);
}

static void gather_piece(void *state, const piece_walk *walk) {
  int64_t strides[TEGULA_MAX_DIMS];
  (void)state;
  char *to = in_box(walk, strides);
  copy_out(walk, to, strides);
}

void tegula__hash_groups_gather(const tegula__hash_groups *h, int64_t group,
                                const tegula__targets *targets, char *whole) {
  walk_pieces(h, group, targets, h->vectors, whole, gather_piece, NULL);
}

/* ---- pieces between ranks ---- */

static int64_t piece_bytes(const piece_walk *walk) {
  return tegula__box_count(walk->h->ndim, walk->from, walk->to) * walk->h->dtype.item_size;
}

/* Either side walks over the tiles of all ranks, so that both meet the pieces in the same order. */
typedef struct part_state {
  const int32_t *owners;
  int32_t owner;
  char *part; /* NULL: count only */
  int64_t bytes;
  bool take;
} part_state;

static void copy_part(void *opaque, const piece_walk *walk) {
  part_state *state = opaque;
  int64_t extents[TEGULA_MAX_DIMS], dense[TEGULA_MAX_DIMS], strides[TEGULA_MAX_DIMS];
  if (state->owners[walk->number] != state->owner) return;
  const tegula__hash_groups *h = walk->h;
  extents_of(walk, extents);
  tegula__dense_strides(extents, h->ndim, h->dtype.item_size, 'C', dense);
  if (state->part != NULL && state->take) {
    copy_out(walk, state->part + state->bytes, dense);
  } else if (state->part != NULL) {
    char *to = in_box(walk, strides);
    tegula__copy_strided(h->kernels, to, strides, state->part + state->bytes, dense, extents,
                         h->ndim, h->dtype.item_size, 1);
  }
  state->bytes += piece_bytes(walk);
}

int64_t tegula__hash_groups_take(const tegula__hash_groups *h, int64_t group,
                                 const tegula__targets *everyone, const int32_t *owners,
                                 int32_t owner, char *part) {
  part_state state = {.owners = owners, .owner = owner, .part = part, .take = true};
  walk_pieces(h, group, everyone, h->vectors, NULL, copy_part, &state);
  return state.bytes;
}

int64_t tegula__hash_groups_put(const tegula__hash_groups *h, int64_t group,
                                const tegula__targets *everyone, const int32_t *owners,
                                int32_t owner, const char *part, char *whole) {
  part_state state = {.owners = owners, .owner = owner, .part = (char *)part}; /* only read */
  walk_pieces(h, group, everyone, h->vectors, whole, copy_part, &state);
  return state.bytes;
}

typedef struct visit_state {
  tegula__hash_tile_fn each;
  void *state;
} visit_state;

static void visit_piece(void *opaque, const piece_walk *walk) {
  const visit_state *state = opaque;
  state->each(state->state, walk->number);
}

void tegula__hash_groups_visit(const tegula__hash_groups *h, int64_t group,
                               const tegula__targets *targets, tegula__hash_tile_fn each,
                               void *state) {
  visit_state visit = {.each = each, .state = state};
  walk_pieces(h, group, targets, h->vectors, NULL, visit_piece, &visit);
}

/* ---- hashing ---- */

void tegula__hash_groups_sum(const tegula__hash_groups *h, int64_t group, char *whole,
                             tegula__hash128 *into) {
  int64_t first = group * h->group * h->block,
          count = tegula__min(h->group * h->block, h->elements - first);
  tegula__hash_canonical(h->kernels, h->dtype, whole, count);
  for (int64_t at = 0; at < count; at += h->block) {
    int64_t some = tegula__min(h->block, count - at);
    tegula__hash_xor(into, tegula__hash_block(whole + at * h->dtype.item_size,
                                              (size_t)(some * h->dtype.item_size),
                                              (first + at) / h->block));
  }
}

/* Entries for the boxes of a group. */
static int64_t vector_count(const tegula__hash_groups *h) {
  return TEGULA__RANGE_BOXES * 2 * (int64_t)tegula__max(1, h->ndim);
}

void tegula__hash_groups_free(tegula__hash_groups *h) {
  free(h->vectors);
  free(h->wanted);
  *h = (tegula__hash_groups){0};
}

tegula_status tegula__hash_groups_create(const tegula__kernels *kernels, tegula_dtype dtype,
                                         const int64_t *shape, int32_t ndim,
                                         tegula__hash_groups *out, tegula_error *err) {
  tegula__hash_groups *h = out;
  *h = (tegula__hash_groups){
      .kernels = kernels, .dtype = tegula_dtype_native(dtype), .shape = shape, .ndim = ndim};
  tegula__shape_count(shape, ndim, &h->elements); /* the tiling has checked it */
  h->block = tegula__hash_block_elements(dtype);
  h->group = tegula__max(1, GROUP_BYTES / (h->block * dtype.item_size));
  h->count = tegula__ceil_div(h->elements, h->group * h->block);
  h->bytes = h->group * h->block * dtype.item_size;
  h->vectors = malloc((size_t)vector_count(h) * sizeof *h->vectors);
  h->wanted = malloc((size_t)h->count + 1);
  if (h->vectors == NULL || h->wanted == NULL)
    return tegula__fail(err, TEGULA_OUT_OF_MEMORY, NULL, -1, "could not get memory for hashing");
  memset(h->wanted, 1, (size_t)h->count + 1);
  return TEGULA_OK;
}

typedef struct hash_job {
  const tegula__hash_groups *h;
  const tegula__targets *targets;
  char **scratch;        /* per worker */
  tegula__hash128 *sums; /* per worker */
  _Atomic bool out_of_memory;
} hash_job;

static void hash_group(void *state, int32_t worker, int64_t group) {
  hash_job *job = state;
  const tegula__hash_groups *h = job->h;
  if (!h->wanted[group]) return;
  int64_t vector_bytes = vector_count(h) * (int64_t)sizeof(int64_t);
  if (job->scratch[worker] == NULL)
    job->scratch[worker] = malloc((size_t)(vector_bytes + h->bytes));
  if (job->scratch[worker] == NULL) {
    atomic_store(&job->out_of_memory, true);
    return;
  }
  char *data = job->scratch[worker] + vector_bytes;
  walk_pieces(h, group, job->targets, (int64_t *)(void *)job->scratch[worker], data, gather_piece,
              NULL);
  tegula__hash_groups_sum(h, group, data, &job->sums[worker]);
}

tegula_status tegula__hash_groups_run(const tegula__hash_groups *h, tegula__pool *pool,
                                      const tegula__targets *targets, tegula__hash128 *into,
                                      tegula_error *err) {
  hash_job job = {.h = h, .targets = targets};
  int32_t threads = tegula__pool_threads(pool);
  job.scratch = calloc((size_t)threads, sizeof *job.scratch);
  job.sums = calloc((size_t)threads, sizeof *job.sums);
  bool ready = job.scratch != NULL && job.sums != NULL;
  if (ready) tegula__pool_run(pool, h->count, hash_group, &job);
  for (int32_t i = 0; ready && i < threads; i++) {
    tegula__hash_xor(into, job.sums[i]);
    free(job.scratch[i]);
  }
  free(job.scratch);
  free(job.sums);
  if (ready && !job.out_of_memory) return TEGULA_OK;
  return tegula__fail(err, TEGULA_OUT_OF_MEMORY, NULL, -1, "could not get memory for hashing");
}

tegula_status tegula__hash_tiles(tegula__pool *pool, const tegula__kernels *kernels,
                                 tegula_dtype dtype, const int64_t *shape, int32_t ndim,
                                 const tegula__targets *targets, tegula__hash128 *into,
                                 tegula_error *err) {
  tegula__hash_groups groups;
  tegula_status status = tegula__hash_groups_create(kernels, dtype, shape, ndim, &groups, err);
  if (status == TEGULA_OK) status = tegula__hash_groups_run(&groups, pool, targets, into, err);
  tegula__hash_groups_free(&groups);
  return status;
}
