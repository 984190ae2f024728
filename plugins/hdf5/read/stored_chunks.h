/* A list of the chunks of a dataset that is being made.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_HDF5_STORED_CHUNKS_H
#define TEGULA_HDF5_STORED_CHUNKS_H

#include "read/hdf5_read.h"

/* libhdf5 visits all slots of an index that is an array: about 50 ns each */
#define HDF5_MOST_SLOTS (INT64_C(1) << 27)

typedef struct stored {
  uint64_t slot;
  uint64_t offset, length;
  uint32_t mask;
} stored;

typedef struct listing {
  hdf5_dataset *dataset;
  int64_t counts[HDF5_MAX_RANK], slot_strides[HDF5_MAX_RANK]; /* chunks along each axis */
  int64_t slots;
  int64_t chunk_bytes;
  stored *items;
  int64_t count, capacity;
  bool no_memory, odd; /* odd: an answer that cannot be */
  bool turned;         /* an index whose places libhdf5 names wrongly */
} listing;

/* The numbers of the grid of chunks. */
tegula_status hdf5_listing_measure(hdf5_dataset *dataset, listing *list, tegula_error *err);
/* Lists what is stored, in no order. */
tegula_status hdf5_listing_fill(listing *list, tegula_error *err);
/* The slot of the chunk at `offset`, in elements; false: there is none. */
bool hdf5_listing_slot(const listing *list, const hsize_t *offset, uint64_t *slot);
void hdf5_listing_offset(const listing *list, uint64_t slot, hsize_t *offset);
bool hdf5_listing_add(listing *list, stored item);
/* Are some of the answers right, and so all? */
bool hdf5_listing_trusted(listing *list);
/* It has a chunk that cannot be. */
tegula_status hdf5_listing_outside(const listing *list, tegula_error *err);
/* Asks libhdf5 for one chunk, by its offset in elements. 1: stored, 0: not, -1: it did what it
 * should not. */
int hdf5_listing_probe(const listing *list, const hsize_t *offset, stored *out);
/* How many chunks are stored, by libhdf5's own count. */
tegula_status hdf5_listing_count(const listing *list, int64_t *count, tegula_error *err);
/* Of a fixed or extensible array: lists what is stored, if there are very many slots (*done), or
 * says whether libhdf5 may. */
tegula_status hdf5_listing_array(listing *list, bool *done, tegula_error *err);

#endif
