/* The stored pieces of a dataset, one by one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dataset/dataset.h"

typedef struct visitor {
  tegula_chunk_fn each;
  void *state;
  tegula_chunk_info told;
} visitor;

static bool tell(visitor *v, const int64_t *lo, const int64_t *hi) {
  v->told.lo = lo;
  v->told.hi = hi;
  return v->each(v->state, &v->told) == 0;
}

static bool tell_chunk(void *state, const tegula__chunk *chunk, const int64_t *lo,
                       const int64_t *hi) {
  visitor *v = state;
  v->told.offset = (int64_t)chunk->offset;
  v->told.length = chunk->length;
  v->told.mask = chunk->mask;
  return tell(v, lo, hi);
}

/* From the first byte of a dense part to its last; finish has checked that it fits. */
static int64_t dense_length(const tegula__manifest *manifest, const tegula__part *part) {
  int64_t length = manifest->dtype.item_size;
  for (int32_t k = 0; k < manifest->ndim; k++)
    length += (part->hi[k] - part->lo[k] - 1) * part->strides[k];
  return length;
}

/* Where an element of a part in slices is stored; -1: nowhere. */
static int64_t sliced_offset(const tegula__part *part, int32_t ndim, const int64_t *index) {
  int64_t at[TEGULA_MAX_DIMS] = {0}, lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS];
  tegula__part slice;
  for (int32_t k = 0; k < ndim; k++) at[k] = tegula__part_number(part, k, index[k]);
  const tegula__chunk *chunk =
      tegula__grid_find(part->grid, tegula__part_chunk(part, ndim, at, lo, hi, &slice));
  return chunk != NULL ? (int64_t)chunk->offset + tegula__part_offset(&slice, ndim, index) : -1;
}

/* From the first byte to the last. */
static void find_sliced(const tegula__manifest *manifest, const tegula__part *part,
                        tegula_chunk_info *told) {
  int64_t end[TEGULA_MAX_DIMS] = {0};
  for (int32_t k = 0; k < manifest->ndim; k++) end[k] = part->hi[k] - 1;
  int64_t first = sliced_offset(part, manifest->ndim, part->lo),
          last = sliced_offset(part, manifest->ndim, end);
  if (first < 0 || last < first) return;
  told->offset = first;
  told->length = last - first + manifest->dtype.item_size;
}

static bool visit_part(visitor *v, const tegula__manifest *manifest, const tegula__part *part) {
  int64_t file = tegula__part_file(part);
  if (part->kind == TEGULA__PART_FILL || part->kind == TEGULA__PART_LOST) return true;
  if (tegula__box_count(manifest->ndim, part->lo, part->hi) == 0) return true;
  v->told = (tegula_chunk_info){.struct_size = sizeof v->told,
                                .path = file != TEGULA__NO_FILE ? manifest->files[file].path : NULL,
                                .offset = -1,
                                .length = -1,
                                .ndim = manifest->ndim};
  if (tegula__part_in_chunks(part)) return tegula__part_visit(part, manifest->ndim, tell_chunk, v);
  if (part->kind == TEGULA__PART_DENSE) {
    v->told.offset = part->offset;
    v->told.length = dense_length(manifest, part);
  }
  if (part->kind == TEGULA__PART_CHUNKED) find_sliced(manifest, part, &v->told);
  return tell(v, part->lo, part->hi);
}

tegula_status tegula_dataset_chunks(const tegula_dataset *dataset, tegula_chunk_fn each,
                                    void *state, tegula_error *err) {
  CHECK_ARGUMENT(dataset != NULL && each != NULL,
                 "the dataset or the function to be called is NULL");
  FORWARD(tegula__dataset_confirm(dataset, NULL, err));
  tegula_dataset *view;
  FORWARD(tegula__dataset_view_all(dataset, NULL, NULL, &view, err));
  const tegula__manifest *manifest = &view->manifest;
  visitor v = {.each = each, .state = state};
  bool wanted = true;
  for (int64_t i = 0; i < manifest->part_count && wanted; i++)
    wanted = visit_part(&v, manifest, &manifest->parts[i]);
  tegula_dataset_close(view);
  return wanted ? TEGULA_OK
                : tegula__fail(err, TEGULA_CANCELLED, NULL, -1,
                               "the list of chunks was not wanted any further");
}
