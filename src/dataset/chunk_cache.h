/* chunk_cache: of datasets that are read in small boxes, the decoded chunks around the last ones.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A box that wants less than half of the chunks that it meets has these decoded whole and kept in
 * the context's block cache, for it and the next boxes. What is kept counts as read only while its
 * file is the one that was described: that is looked at each time, as when it is read. */
#ifndef TEGULA_DATASET_CHUNK_CACHE_H
#define TEGULA_DATASET_CHUNK_CACHE_H

#include "dataset/dataset.h"

/* Fills a tile of a dataset; *done: false where it is to be read as any other. */
tegula_status tegula__cached_read(const tegula_dataset *dataset, const tegula__tile *tile,
                                  const tegula_load_options *options, tegula__tally *tally,
                                  bool *done, tegula_error *err);

#endif
