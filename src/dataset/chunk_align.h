/* chunk_align: of chunks that are decoded as a whole, the borders around what is wanted, and copies
 * out of what was decoded.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_DATASET_CHUNK_ALIGN_H
#define TEGULA_DATASET_CHUNK_ALIGN_H

#include "dataset/dataset.h"

/* The part that holds an element, if it is one of chunks that are decoded as a whole; else NULL. */
const tegula__part *tegula__encoded_part_at(const tegula__manifest *manifest, const int64_t *index);
/* The last border of chunks along axis k at `index` or before it, or the beginning of the part. */
int64_t tegula__border_before(const tegula__part *part, int32_t k, int64_t index);
/* The first border of chunks at `index` or behind it, or the end of the part. */
int64_t tegula__border_behind(const tegula__part *part, int32_t k, int64_t index);
/* Is every border of chunks of the stored array along axis k a multiple of `length` in the dataset?
 * `length` divides that of a chunk. */
bool tegula__borders_at(const tegula__part *part, int32_t k, int64_t length);

/* Fills a tile that lies in `box`, whose elements are at `data`, C-ordered and in native byte
 * order. */
void tegula__copy_out_of_box(const tegula_context *context, tegula_dtype dtype,
                             const tegula_box *box, const char *data, const tegula__tile *tile);

#endif
