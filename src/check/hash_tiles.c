/* The content hash of an array that is spread over tiles: groups of blocks are gathered into scratch memory in C order and hashed there.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stdlib.h>

#include "check/check.h"

#define GROUP_BYTES ((int64_t)1 << 20)

typedef struct tile_hash {
  const tegula__kernels *kernels;
  tegula_dtype dtype; /* native */
  const int64_t *shape;
  int32_t ndim;
  const tegula__targets *targets;
  int64_t elements;         /* of the array */
  int64_t block;            /* elements of a block */
  int64_t group;            /* blocks in one item */
  char **scratch;           /* per worker */
  tegula__hash128 *sums;    /* per worker */
  _Atomic bool out_of_memory;
} tile_hash;

/* Copies what a tile has of the box into scratch memory, where the box lies densely. */
static void gather_tile(const tile_hash *h, const int64_t *lo, const int64_t *hi, const tegula__tile *tile, char *scratch) {
  int64_t piece_lo[TEGULA_MAX_DIMS], piece_hi[TEGULA_MAX_DIMS], extents[TEGULA_MAX_DIMS], strides[TEGULA_MAX_DIMS];
  if (!tegula__box_intersect(h->ndim, lo, hi, tile->lo, tile->hi, piece_lo, piece_hi)) return;
  for (int32_t k = 0; k < h->ndim; k++) extents[k] = hi[k] - lo[k];
  tegula__dense_strides(extents, h->ndim, h->dtype.item_size, 'C', strides);
  const char *source = tile->data;
  for (int32_t k = 0; k < h->ndim; k++) {
    scratch += (piece_lo[k] - lo[k]) * strides[k];
    source += (piece_lo[k] - tile->lo[k]) * tile->strides[k];
    extents[k] = piece_hi[k] - piece_lo[k];
  }
  uint32_t swap = tile->order != h->dtype.order ? tegula__dtype_swap_size(h->dtype) : 1;
  tegula__copy_strided(h->kernels, scratch, strides, source, tile->strides, extents, h->ndim, h->dtype.item_size, swap);
}

static void gather(const tile_hash *h, int64_t first, int64_t count, char *scratch, int64_t *vectors) {
  int32_t boxes = tegula__range_boxes(h->shape, h->ndim, first, count, vectors);
  for (int32_t i = 0; i < boxes; i++) {
    const int64_t *lo = vectors + (int64_t)i * 2 * h->ndim, *hi = lo + h->ndim;
    int64_t from, to;
    tegula__targets_find(h->targets, lo, hi, &from, &to);
    for (int64_t t = from; t < to; t++) gather_tile(h, lo, hi, &h->targets->tiles[h->targets->sorted[t]], scratch);
    scratch += tegula__box_count(h->ndim, lo, hi) * h->dtype.item_size;
  }
}

static void hash_group(void *state, int32_t worker, int64_t item) {
  tile_hash *h = state;
  int64_t vector_bytes = TEGULA__RANGE_BOXES * 2 * (int64_t)tegula__max(1, h->ndim) * (int64_t)sizeof(int64_t);
  int64_t data_bytes = h->group * h->block * h->dtype.item_size;
  if (h->scratch[worker] == NULL) h->scratch[worker] = malloc((size_t)(vector_bytes + data_bytes));
  if (h->scratch[worker] == NULL) {
    atomic_store(&h->out_of_memory, true);
    return;
  }
  char *data = h->scratch[worker] + vector_bytes;
  int64_t first = item * h->group * h->block, count = tegula__min(h->group * h->block, h->elements - first);
  gather(h, first, count, data, (int64_t *)(void *)h->scratch[worker]);
  tegula__hash_canonical(h->kernels, h->dtype, data, count);
  for (int64_t at = 0; at < count; at += h->block) {
    int64_t some = tegula__min(h->block, count - at);
    tegula__hash_xor(&h->sums[worker],
                     tegula__hash_block(data + at * h->dtype.item_size, (size_t)(some * h->dtype.item_size), (first + at) / h->block));
  }
}

tegula_status tegula__hash_tiles(tegula__pool *pool, const tegula__kernels *kernels, tegula_dtype dtype, const int64_t *shape,
                                 int32_t ndim, const tegula__targets *targets, tegula__hash128 *into, tegula_error *err) {
  tile_hash h = {.kernels = kernels, .dtype = tegula_dtype_native(dtype), .shape = shape, .ndim = ndim, .targets = targets};
  tegula__shape_count(shape, ndim, &h.elements); /* the tiling has checked it */
  h.block = tegula__hash_block_elements(dtype);
  h.group = tegula__max(1, GROUP_BYTES / (h.block * dtype.item_size));
  int32_t threads = tegula__pool_threads(pool);
  h.scratch = calloc((size_t)threads, sizeof *h.scratch);
  h.sums = calloc((size_t)threads, sizeof *h.sums);
  bool ready = h.scratch != NULL && h.sums != NULL;
  if (ready) tegula__pool_run(pool, tegula__ceil_div(h.elements, h.group * h.block), hash_group, &h);
  for (int32_t i = 0; ready && i < threads; i++) {
    tegula__hash_xor(into, h.sums[i]);
    free(h.scratch[i]);
  }
  free(h.scratch);
  free(h.sums);
  if (ready && !h.out_of_memory) return TEGULA_OK;
  return tegula__fail(err, TEGULA_OUT_OF_MEMORY, NULL, -1, "could not get memory for hashing");
}
