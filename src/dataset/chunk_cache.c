/* Chunks that are held for small reads.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dataset/chunk_cache.h"

#include <stdlib.h>
#include <string.h>

#include "dataset/chunk_align.h"
#include "dataset/dataset_priv.h"

#define HELD_BYTES ((int64_t)4 << 20)

/* Whole chunks around a box, of one part; false where to hold them makes no sense. */
static bool choose(const tegula_dataset *dataset, const tegula__tile *box, tegula_box *out,
                   int64_t *bytes, int64_t *file) {
  const tegula__manifest *manifest = &dataset->manifest;
  int64_t last[TEGULA_MAX_DIMS], lengths[TEGULA_MAX_DIMS];
  for (int32_t k = 0; k < manifest->ndim; k++) last[k] = box->hi[k] - 1;
  const tegula__part *part = tegula__encoded_part_at(manifest, box->lo);
  if (part == NULL || part != tegula__encoded_part_at(manifest, last)) return false;
  out->ndim = manifest->ndim;
  for (int32_t k = 0; k < manifest->ndim; k++) {
    out->lo[k] = tegula__border_before(part, k, box->lo[k]);
    out->hi[k] = tegula__border_behind(part, k, box->hi[k]);
    lengths[k] = out->hi[k] - out->lo[k];
  }
  *file = part->grid->file;
  return tegula__shape_bytes(lengths, manifest->ndim, manifest->dtype.item_size, bytes) &&
         *bytes <= HELD_BYTES;
}

static bool lies_in(const tegula__tile *box, const tegula_box *around) {
  for (int32_t k = 0; k < around->ndim; k++)
    if (box->lo[k] < around->lo[k] || around->hi[k] < box->hi[k]) return false;
  return true;
}

static bool same(const tegula_box *a, const tegula_box *b) {
  size_t bytes = (size_t)b->ndim * sizeof *b->lo;
  return a->ndim == b->ndim && memcmp(a->lo, b->lo, bytes) == 0 && memcmp(a->hi, b->hi, bytes) == 0;
}

/* Reads what is to be held. A failure may be of elements that nobody asked for: it is not told. */
static bool fill(tegula__held *held, const tegula_dataset *dataset, int64_t bytes,
                 const tegula_load_options *options, tegula__tally *tally) {
  int64_t lengths[TEGULA_MAX_DIMS], strides[TEGULA_MAX_DIMS];
  tegula_error error;
  if (held->room < bytes) {
    free(held->data);
    held->data = malloc((size_t)bytes);
    held->room = held->data != NULL ? bytes : 0;
    if (held->data == NULL) return false;
  }
  for (int32_t k = 0; k < held->around.ndim; k++)
    lengths[k] = held->around.hi[k] - held->around.lo[k];
  tegula__dense_strides(lengths, held->around.ndim, dataset->manifest.dtype.item_size, 'C',
                        strides);
  const tegula__tile tile = {.lo = held->around.lo,
                             .hi = held->around.hi,
                             .strides = strides,
                             .data = held->data,
                             .order = dataset->manifest.dtype.order};
  return tegula__dataset_move(dataset, &tile, 1, options, tally, &error) == TEGULA_OK;
}

/* Is its file what it was? */
static tegula_status check(const tegula__held *held, const tegula_dataset *dataset,
                           tegula__tally *tally, tegula_error *err) {
  int fd;
  FORWARD(tegula__file_set_acquire(dataset->files, held->file, &tally->counts, &fd, err));
  tegula_status status =
      tegula__file_set_finish(dataset->files, held->file, fd, false, &tally->counts, err);
  tegula__file_set_release(dataset->files, held->file);
  return status;
}

/* By one thread at a time. */
static tegula_status read_held(tegula__held *held, const tegula_dataset *dataset,
                               const tegula__tile *tile, const tegula_load_options *options,
                               tegula__tally *tally, bool *done, tegula_error *err) {
  if (!held->full || !lies_in(tile, &held->around)) {
    tegula_box around;
    int64_t bytes;
    held->full = false;
    if (!choose(dataset, tile, &around, &bytes, &held->file)) return TEGULA_OK;
    if (!same(&held->around, &around)) {
      held->around = around;
      held->refused = false;
      return TEGULA_OK;
    }
    if (held->refused) return TEGULA_OK;
    held->refused = true;
    if (!fill(held, dataset, bytes, options, tally)) return TEGULA_OK;
    /* chunks that were never written are counted each time */
    held->full = tally->statistics.missing == 0;
    held->refused = !held->full;
  } else {
    FORWARD(check(held, dataset, tally, err));
  }
  tegula__copy_out_of_box(dataset->context, dataset->manifest.dtype, &held->around, held->data,
                          tile);
  *done = true;
  return TEGULA_OK;
}

/* The place for it, made by whoever comes first; NULL: no memory. */
static tegula__held *held_of(const tegula_dataset *dataset) {
  tegula_dataset *shared = (tegula_dataset *)dataset; /* only what is known of it changes */
  tegula__held *held = atomic_load(&shared->held);
  if (held != NULL) return held;
  tegula__held *made = calloc(1, sizeof *made);
  if (made == NULL || atomic_compare_exchange_strong(&shared->held, &held, made)) return made;
  free(made);
  return held;
}

tegula_status tegula__held_read(const tegula_dataset *dataset, const tegula__tile *tile,
                                const tegula_load_options *options, tegula__tally *tally,
                                bool *done, tegula_error *err) {
  const tegula__manifest *manifest = &dataset->manifest;
  int64_t elements = tegula__box_count(manifest->ndim, tile->lo, tile->hi);
  *done = false;
  if (manifest->ndim == 0 || elements == 0 || elements > HELD_BYTES / 2 / manifest->dtype.item_size)
    return TEGULA_OK;
  if (dataset->codecs == NULL || dataset->views != NULL || options->progress != NULL ||
      options->missing != TEGULA_MISSING_ERROR)
    return TEGULA_OK;
  tegula__held *held = held_of(dataset);
  if (held == NULL || atomic_exchange(&held->busy, 1) != 0) return TEGULA_OK;
  tegula_status status = read_held(held, dataset, tile, options, tally, done, err);
  atomic_store(&held->busy, 0);
  return status;
}
