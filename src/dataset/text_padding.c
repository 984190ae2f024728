/* After a load: what is behind the end of each text becomes zeros.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * HDF5 pads text of fixed length by zeros, by blanks, or by anything behind a zero that ends it;
 * numpy by zeros. The rules are those of H5T__conv_s_s. */
#include "dataset/text_padding.h"

#include <stdlib.h>
#include <string.h>

#define ROWS_BYTES ((int64_t)1 << 20) /* of a task */

/* Elements of one tile that are in one part. */
typedef struct padded_box {
  const tegula__tile *tile;
  const tegula__texts *texts;
  int64_t first, last; /* of axis 0 */
  int64_t vectors[];   /* lo and hi of all axes */
} padded_box;

typedef struct padding_job {
  int32_t ndim;
  padded_box **boxes;
  int64_t count, capacity;
} padding_job;

/* ---- one element ---- */

static void pad_text(char *text, const tegula__text_place *place) {
  size_t end = place->padding == '0' ? strnlen(text, place->size) : place->size;
  if (place->padding == ' ')
    while (end > 0 && text[end - 1] == ' ') end--;
  memset(text + end, 0, place->size - end);
}

static void pad_element(char *element, const tegula__texts *texts) {
  for (int64_t i = 0; i < texts->count; i++) {
    const tegula__text_place *place = &texts->places[i];
    for (int64_t k = 0; k < place->count; k++)
      pad_text(element + place->offset + k * place->stride, place);
  }
}

static void pad_axis(const padding_job *job, const padded_box *box, int32_t k, char *at) {
  if (k == job->ndim) {
    pad_element(at, box->texts);
    return;
  }
  int64_t lo = k == 0 ? box->first : box->vectors[k],
          hi = k == 0 ? box->last : box->vectors[job->ndim + k], stride = box->tile->strides[k];
  at += (lo - box->tile->lo[k]) * stride;
  for (; lo < hi; lo++, at += stride) pad_axis(job, box, k + 1, at);
}

static void pad_box(void *state, int32_t worker, int64_t index) {
  const padding_job *job = state;
  (void)worker;
  pad_axis(job, job->boxes[index], 0, job->boxes[index]->tile->data);
}

/* ---- the boxes ---- */

static tegula_status add_rows(padding_job *job, const tegula__part *part, const tegula__tile *tile,
                              int64_t first, int64_t last, tegula_error *err) {
  size_t axes = (size_t)job->ndim, size = sizeof(padded_box) + 2 * axes * sizeof(int64_t);
  padded_box *box = malloc(size);
  if (box == NULL || !tegula__vector_reserve((void **)&job->boxes, &job->capacity, job->count + 1,
                                             sizeof(padded_box *))) {
    free(box);
    return tegula__out_of_memory(err, (int64_t)size);
  }
  *box = (padded_box){.tile = tile, .texts = part->texts, .first = first, .last = last};
  for (size_t k = 0; k < axes; k++) {
    box->vectors[k] = tegula__max(part->lo[k], tile->lo[k]);
    box->vectors[axes + k] = tegula__min(part->hi[k], tile->hi[k]);
  }
  job->boxes[job->count++] = box;
  return TEGULA_OK;
}

/* What the tile has of the part, some rows to a task. */
static tegula_status add_box(padding_job *job, uint32_t item_size, const tegula__part *part,
                             const tegula__tile *tile, tegula_error *err) {
  int64_t row = item_size; /* bytes; more than are anywhere where it overflows */
  if (part->texts == NULL) return TEGULA_OK;
  for (int32_t k = 0; k < job->ndim; k++) {
    int64_t length = tegula__min(part->hi[k], tile->hi[k]) - tegula__max(part->lo[k], tile->lo[k]);
    if (length <= 0) return TEGULA_OK;
    if (k > 0 && !tegula__mul(row, length, &row)) row = INT64_MAX;
  }
  if (job->ndim == 0) return add_rows(job, part, tile, 0, 1, err);
  int64_t hi = tegula__min(part->hi[0], tile->hi[0]), rows = tegula__max(1, ROWS_BYTES / row);
  for (int64_t at = tegula__max(part->lo[0], tile->lo[0]); at < hi; at += rows)
    FORWARD(add_rows(job, part, tile, at, tegula__min(hi, at + rows), err));
  return TEGULA_OK;
}

static tegula_status add_boxes(padding_job *job, const tegula__manifest *manifest,
                               const tegula__tile *tile, tegula_error *err) {
  int64_t first = 0, last = manifest->part_count;
  if (manifest->ndim > 0) tegula__manifest_find(manifest, tile->lo[0], tile->hi[0], &first, &last);
  for (int64_t i = first; i < last; i++)
    FORWARD(add_box(job, manifest->dtype.item_size, &manifest->parts[i], tile, err));
  return TEGULA_OK;
}

static bool has_texts(const tegula__manifest *manifest) {
  for (int64_t i = 0; i < manifest->part_count; i++)
    if (manifest->parts[i].texts != NULL) return true;
  return false;
}

tegula_status tegula__texts_pad(tegula__pool *pool, const tegula__manifest *manifest,
                                const tegula__tile *tiles, int64_t count, tegula_error *err) {
  padding_job job = {.ndim = manifest->ndim};
  tegula_status status = TEGULA_OK;
  bool text = manifest->dtype.kind == 'S' || manifest->dtype.kind == 'V';
  if (!text || !has_texts(manifest)) return TEGULA_OK;
  for (int64_t i = 0; status == TEGULA_OK && i < count; i++)
    status = add_boxes(&job, manifest, &tiles[i], err);
  if (status == TEGULA_OK && job.count == 1) pad_box(&job, 0, 0);
  if (status == TEGULA_OK && job.count > 1) tegula__pool_run(pool, job.count, pad_box, &job);
  for (int64_t i = 0; i < job.count; i++) free(job.boxes[i]);
  free(job.boxes);
  return status;
}
