/* Borders of chunks, and copies out of a box.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dataset/chunk_align.h"

const tegula__part *tegula__encoded_part_at(const tegula__manifest *manifest,
                                            const int64_t *index) {
  int64_t first, last;
  tegula__manifest_find(manifest, index[0], index[0] + 1, &first, &last);
  for (int64_t i = first; i < last; i++) {
    const tegula__part *part = &manifest->parts[i];
    bool holds = true;
    for (int32_t k = 0; k < manifest->ndim && holds; k++)
      holds = part->lo[k] <= index[k] && index[k] < part->hi[k];
    if (holds) return tegula__part_in_chunks(part) && part->grid->filter_count > 0 ? part : NULL;
  }
  return NULL;
}

int64_t tegula__border_before(const tegula__part *part, int32_t k, int64_t index) {
  int64_t lo, hi;
  tegula__part_span(part, k, tegula__part_number(part, k, index), &lo, &hi);
  return lo;
}

int64_t tegula__border_behind(const tegula__part *part, int32_t k, int64_t index) {
  int64_t lo, hi;
  if (index >= part->hi[k]) return part->hi[k];
  tegula__part_span(part, k, tegula__part_number(part, k, index), &lo, &hi);
  return lo == index ? index : hi;
}

bool tegula__borders_at(const tegula__part *part, int32_t k, int64_t length) {
  return part->step == NULL && (part->start[k] - part->lo[k]) % part->chunk[k] % length == 0;
}

void tegula__copy_out_of_box(const tegula_context *context, tegula_dtype dtype,
                             const tegula_box *box, const char *data, const tegula__tile *tile) {
  int64_t lengths[TEGULA_MAX_DIMS], strides[TEGULA_MAX_DIMS], extents[TEGULA_MAX_DIMS];
  for (int32_t k = 0; k < box->ndim; k++) {
    lengths[k] = box->hi[k] - box->lo[k];
    extents[k] = tile->hi[k] - tile->lo[k];
  }
  tegula__dense_strides(lengths, box->ndim, dtype.item_size, 'C', strides);
  for (int32_t k = 0; k < box->ndim; k++) data += (tile->lo[k] - box->lo[k]) * strides[k];
  tegula__copy_strided(context->engine.kernels, tile->data, tile->strides, data, strides, extents,
                       box->ndim, dtype.item_size,
                       tile->order != dtype.order ? tegula__dtype_swap_size(dtype) : 1);
}
