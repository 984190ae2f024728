/* Chunks that are kept for small reads.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The key of what is kept is the box of its elements. A block without bytes says that its chunks
 * cannot be kept: they fail, or were never written and are counted each time. */
#include "dataset/chunk_cache.h"

#include <stdlib.h>
#include <string.h>

#include "dataset/chunk_align.h"
#include "dataset/dataset_priv.h"

/* Whole chunks around a box. */
typedef struct surroundings {
  tegula_box box;
  int64_t bytes, file;
  int64_t key[2 * TEGULA_MAX_DIMS]; /* lo and hi */
  size_t key_length;
} surroundings;

/* The chunks around a box, of one part; false where to keep them makes no sense. */
static bool choose(const tegula_dataset *dataset, const tegula__tile *tile, int64_t elements,
                   surroundings *out) {
  const tegula__manifest *manifest = &dataset->manifest;
  const tegula__block_cache *cache = dataset->context->cache;
  int64_t last[TEGULA_MAX_DIMS], lengths[TEGULA_MAX_DIMS];
  for (int32_t k = 0; k < manifest->ndim; k++) last[k] = tile->hi[k] - 1;
  const tegula__part *part = tegula__encoded_part_at(manifest, tile->lo);
  if (part == NULL || part != tegula__encoded_part_at(manifest, last)) return false;
  out->box.ndim = manifest->ndim;
  for (int32_t k = 0; k < manifest->ndim; k++) {
    out->key[k] = out->box.lo[k] = tegula__border_before(part, k, tile->lo[k]);
    out->key[manifest->ndim + k] = out->box.hi[k] = tegula__border_behind(part, k, tile->hi[k]);
    lengths[k] = out->box.hi[k] - out->box.lo[k];
  }
  out->file = part->grid->file;
  out->key_length = 2 * (size_t)manifest->ndim;
  return tegula__shape_bytes(lengths, manifest->ndim, manifest->dtype.item_size, &out->bytes) &&
         out->bytes <= tegula__block_cache_limit(cache) / 4 &&
         elements <= out->bytes / manifest->dtype.item_size / 2;
}

static tegula_status fill(char *data, const surroundings *around, const tegula_dataset *dataset,
                          const tegula_load_options *options, tegula__tally *tally,
                          tegula_error *err) {
  int64_t lengths[TEGULA_MAX_DIMS], strides[TEGULA_MAX_DIMS];
  tegula_load_options quiet = *options;
  quiet.progress = NULL; /* it would be told of more bytes than were asked for */
  for (int32_t k = 0; k < around->box.ndim; k++) lengths[k] = around->box.hi[k] - around->box.lo[k];
  tegula__dense_strides(lengths, around->box.ndim, dataset->manifest.dtype.item_size, 'C', strides);
  const tegula__tile tile = {.lo = around->box.lo,
                             .hi = around->box.hi,
                             .strides = strides,
                             .data = data,
                             .order = dataset->manifest.dtype.order};
  return tegula__dataset_move(dataset, &tile, 1, &quiet, tally, err);
}

/* CHANGED where its file is no longer what it was. */
static tegula_status check(int64_t file, const tegula_dataset *dataset, tegula__tally *tally,
                           tegula_error *err) {
  int fd;
  FORWARD(tegula__file_set_acquire(dataset->files, file, &tally->counts, &fd, err));
  tegula_status status =
      tegula__file_set_finish(dataset->files, file, fd, false, &tally->counts, err);
  tegula__file_set_release(dataset->files, file);
  return status;
}

static void note_refusal(tegula__block_cache *cache, uint64_t owner, const surroundings *around) {
  tegula__cached *nothing =
      tegula__block_cache_new(cache, owner, around->key, around->key_length, 0);
  if (nothing == NULL) return;
  tegula__block_cache_put(cache, nothing);
  tegula__block_cache_give(cache, nothing);
}

/* Reads what is to be kept. A failure may be of elements that nobody asked for: it is not told. */
static void read_around(const tegula_dataset *dataset, uint64_t owner, const surroundings *around,
                        const tegula__tile *tile, const tegula_load_options *options,
                        tegula__tally *tally, bool *done) {
  tegula__block_cache *cache = dataset->context->cache;
  int64_t missing = tally->statistics.missing;
  tegula_error unwanted;
  tegula__cached *block =
      tegula__block_cache_new(cache, owner, around->key, around->key_length, around->bytes);
  if (block == NULL) return;
  *done = fill(block->data, around, dataset, options, tally, &unwanted) == TEGULA_OK;
  if (*done)
    tegula__copy_out_of_box(dataset->context, dataset->manifest.dtype, &around->box, block->data,
                            tile);
  if (*done && tally->statistics.missing == missing) {
    tegula__block_cache_put(cache, block);
    tegula__block_cache_give(cache, block);
  } else {
    tegula__block_cache_free(cache, block);
    note_refusal(cache, owner, around);
  }
}

/* The dataset's number in the cache, which whoever comes first gets for it. */
static uint64_t owner_of(const tegula_dataset *dataset) {
  tegula_dataset *shared = (tegula_dataset *)dataset; /* only what is known of it changes */
  uint64_t owner = atomic_load(&shared->cache_owner);
  if (owner != 0) return owner;
  uint64_t made = tegula__block_cache_owner(dataset->context->cache);
  return atomic_compare_exchange_strong(&shared->cache_owner, &owner, made) ? made : owner;
}

tegula_status tegula__cached_read(const tegula_dataset *dataset, const tegula__tile *tile,
                                  const tegula_load_options *options, tegula__tally *tally,
                                  bool *done, tegula_error *err) {
  const tegula__manifest *manifest = &dataset->manifest;
  tegula__block_cache *cache = dataset->context->cache;
  surroundings around;
  *done = false;
  if (dataset->codecs == NULL || dataset->codecs[0] == '\0' || dataset->views != NULL ||
      options->missing != TEGULA_MISSING_ERROR || manifest->ndim == 0)
    return TEGULA_OK;
  int64_t elements = tegula__box_count(manifest->ndim, tile->lo, tile->hi);
  if (elements == 0 || !choose(dataset, tile, elements, &around)) return TEGULA_OK;
  uint64_t owner = owner_of(dataset);
  tegula__cached *block = tegula__block_cache_find(cache, owner, around.key, around.key_length);
  if (block == NULL) {
    read_around(dataset, owner, &around, tile, options, tally, done);
    return TEGULA_OK;
  }
  tegula_status status = TEGULA_OK;
  *done = block->bytes > 0;
  if (*done) status = check(around.file, dataset, tally, err);
  if (*done && status == TEGULA_OK)
    tegula__copy_out_of_box(dataset->context, manifest->dtype, &around.box, block->data, tile);
  tegula__block_cache_give(cache, block);
  return status;
}
