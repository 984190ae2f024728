/* chunk_cache: of a dataset that is read in small boxes one behind the other, the chunks around the
 * last one stay decoded.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Nothing is held until two boxes in a row lie in the same chunks; then at most HELD_BYTES for a
 * dataset, until it is closed. What is held counts as read only while its file is the one that was
 * described: that is looked at each time, as when it is read. A thread that finds another one at it
 * reads by itself. */
#ifndef TEGULA_DATASET_CHUNK_CACHE_H
#define TEGULA_DATASET_CHUNK_CACHE_H

#include "dataset/dataset.h"

/* Fills a tile of a dataset; *done: false where it is to be read as any other. */
tegula_status tegula__held_read(const tegula_dataset *dataset, const tegula__tile *tile,
                                const tegula_load_options *options, tegula__tally *tally,
                                bool *done, tegula_error *err);

#endif
