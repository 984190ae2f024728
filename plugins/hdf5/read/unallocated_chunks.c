/* What was never written of datasets that libhdf5 reads. It gives the fill value there without a
 * word, also where a damaged index has lost a chunk: so the index is listed, which finds that out,
 * and what is not in it is told to the host as absent.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "read/hdf5_read.h"

#define MOST_PIECES (INT64_C(1) << 20)

typedef struct cutting {
  const hdf5_dataset *dataset;
  const hdf5_place *place;
  hdf5_gap_fn each;
  void *state;
  int64_t pieces;
} cutting;

/* How many stored slots are below. */
static int64_t below(const hdf5_gaps *gaps, uint64_t slot) {
  int64_t low = 0, high = gaps->count;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (gaps->slots[middle] < slot)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static bool inside(const hdf5_gaps *gaps, int ndim, uint64_t slot, const int64_t *lo,
                   const int64_t *hi) {
  for (int k = 0; k < ndim; k++) {
    int64_t at = (int64_t)(slot / (uint64_t)gaps->slot_strides[k]);
    if (at < lo[k] || at >= hi[k]) return false;
    slot %= (uint64_t)gaps->slot_strides[k];
  }
  return true;
}

/* Stored ones of a box of chunks. */
static int64_t count_stored(const hdf5_gaps *gaps, int ndim, const int64_t *lo, const int64_t *hi) {
  uint64_t first = 0, last = 0;
  for (int k = 0; k < ndim; k++) {
    first += (uint64_t)lo[k] * (uint64_t)gaps->slot_strides[k];
    last += (uint64_t)(hi[k] - 1) * (uint64_t)gaps->slot_strides[k];
  }
  int64_t count = 0, end = below(gaps, last + 1);
  for (int64_t i = below(gaps, first); i < end; i++)
    count += inside(gaps, ndim, gaps->slots[i], lo, hi);
  return count;
}

static tegula_status tell(cutting *c, bool stored, const int64_t *lo, const int64_t *hi,
                          tegula_error *err) {
  const hdf5_dataset *dataset = c->dataset;
  int64_t from[HDF5_MAX_RANK], to[HDF5_MAX_RANK];
  for (int k = 0; k < dataset->ndim; k++) {
    from[k] = lo[k] * dataset->chunk[k];
    if (__builtin_mul_overflow(hi[k], dataset->chunk[k], &to[k])) to[k] = dataset->shape[k];
  }
  hdf5_place piece;
  if (!hdf5_place_clip(c->place, dataset->ndim, from, to, &piece)) return TEGULA_OK;
  if (c->pieces++ < MOST_PIECES) return c->each(c->state, stored, &piece, err);
  return dataset->call->library->host->fail(
      err, TEGULA_LIMIT_EXCEEDED, dataset->file->path, -1,
      "what is stored of \"%s\" in \"%s\" falls into more than 2^20 pieces", dataset->name,
      dataset->file->path);
}

/* Halves the box along its slowest axis until all of it is stored, or nothing: slots of a half lie
 * together. */
static tegula_status cut(cutting *c, const int64_t *lo, const int64_t *hi, tegula_error *err) {
  int ndim = c->dataset->ndim, k = 0;
  int64_t all = 1, half[HDF5_MAX_RANK];
  for (int i = 0; i < ndim; i++) all *= hi[i] - lo[i]; /* no more than there are slots */
  int64_t stored = count_stored(c->dataset->gaps, ndim, lo, hi);
  if (stored == 0 || stored == all) return tell(c, stored > 0, lo, hi, err);
  while (hi[k] - lo[k] == 1) k++;
  for (int i = 0; i < ndim; i++) half[i] = hi[i];
  half[k] = lo[k] + (hi[k] - lo[k]) / 2;
  FORWARD(cut(c, lo, half, err));
  for (int i = 0; i < ndim; i++) half[i] = lo[i];
  half[k] = lo[k] + (hi[k] - lo[k]) / 2;
  return cut(c, half, hi, err);
}

tegula_status hdf5_gaps_cut(const hdf5_dataset *dataset, const hdf5_place *place, hdf5_gap_fn each,
                            void *state, tegula_error *err) {
  int64_t lo[HDF5_MAX_RANK], hi[HDF5_MAX_RANK];
  if (dataset->unwritten || !dataset->gaps) return each(state, !dataset->unwritten, place, err);
  for (int k = 0; k < dataset->ndim; k++) {
    int64_t length = hdf5_place_length(place, k);
    if (length == 0) return TEGULA_OK;
    lo[k] = place->start[k] / dataset->chunk[k];
    hi[k] = (place->start[k] + length - 1) / dataset->chunk[k] + 1;
  }
  return cut(&(cutting){dataset, place, each, state, 0}, lo, hi, err);
}
