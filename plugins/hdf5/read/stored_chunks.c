/* A list of the chunks that a dataset has stored, and what libhdf5 says of one of them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "read/stored_chunks.h"

enum { SAMPLES = 16 };

static char probe_target[16]; /* only its address counts */

bool hdf5_listing_add(listing *list, stored item) {
  if (list->count == list->capacity) {
    int64_t capacity = list->capacity ? 2 * list->capacity : 1024;
    stored *items = realloc(list->items, (size_t)capacity * sizeof *items);
    list->no_memory = !items;
    if (!items) return false;
    list->items = items;
    list->capacity = capacity;
  }
  list->items[list->count++] = item;
  return true;
}

bool hdf5_listing_slot(const listing *list, const hsize_t *offset, uint64_t *slot) {
  const hdf5_dataset *dataset = list->dataset;
  *slot = 0;
  for (int k = 0; k < dataset->ndim; k++) {
    hsize_t chunk = (hsize_t)dataset->chunk[k];
    if (offset[k] % chunk != 0 || offset[k] / chunk >= (hsize_t)list->counts[k]) return false;
    *slot += offset[k] / chunk * (uint64_t)list->slot_strides[k];
  }
  return true;
}

void hdf5_listing_offset(const listing *list, uint64_t slot, hsize_t *offset) {
  for (int k = 0; k < list->dataset->ndim; k++) {
    offset[k] = slot / (uint64_t)list->slot_strides[k] * (hsize_t)list->dataset->chunk[k];
    slot %= (uint64_t)list->slot_strides[k];
  }
}

/* 1: stored, 0: not, -1: libhdf5 did what it should not. A damaged index gives chunks of no bytes,
 * which are never asked for: length 0. */
int hdf5_listing_probe(const listing *list, const hsize_t *offset, stored *out) {
  hdf5_library *library = list->dataset->call->library;
  library->probe = (hdf5_probe){.buffer = probe_target};
  library->quiet = true; /* a chunk that is not stored is a failure to libhdf5 */
  uint32_t mask = 0;
  herr_t result =
      library->call.read_chunk(list->dataset->id, HDF5_DEFAULT, offset, &mask, probe_target);
  hdf5_probe probe = library->probe;
  library->probe.buffer = NULL;
  library->quiet = false;
  if (result < 0) return probe.hits == 0 ? 0 : -1;
  if (probe.hits > 1) return -1;
  out->offset = probe.address;
  out->length = probe.size;
  out->mask = mask;
  return 1;
}

tegula_status hdf5_listing_outside(const listing *list, tegula_error *err) {
  const hdf5_dataset *dataset = list->dataset;
  return dataset->call->library->host->fail(
      err, TEGULA_CORRUPT, dataset->file->path, -1,
      "\"%s\" of \"%s\" has a damaged chunk index: it holds a chunk outside of the array",
      dataset->name, dataset->file->path);
}

/* How many chunks are stored, by libhdf5's own count. */
tegula_status hdf5_listing_count(const listing *list, int64_t *count, tegula_error *err) {
  const hdf5_dataset *dataset = list->dataset;
  const hdf5_functions *call = &dataset->call->library->call;
  hsize_t number = 0;
  hid_t space = call->H5Dget_space(dataset->id);
  herr_t result = space >= 0 ? call->H5Dget_num_chunks(dataset->id, space, &number) : -1;
  if (space >= 0) call->H5Sclose(space);
  if (result < 0)
    return hdf5_failed(dataset->call->library, err, TEGULA_CORRUPT, dataset->file->path,
                       "count the chunks of \"%s\" in \"%s\"", dataset->name, dataset->file->path);
  *count = (int64_t)number;
  return TEGULA_OK;
}

/* Are the answers those of the other way? Old releases leave the user block out: then it is added
 * to all. */
static bool confirmed(listing *list, int64_t index, int64_t *shift) {
  hsize_t offset[HDF5_MAX_RANK + 1] = {0};
  stored *item = &list->items[index], other = {0};
  hdf5_listing_offset(list, item->slot, offset);
  if (hdf5_listing_probe(list, offset, &other) != 1) return false;
  *shift = (int64_t)(other.offset - item->offset);
  return item->length == other.length && item->mask == other.mask &&
         (*shift == 0 || *shift == list->dataset->file->base);
}

/* Are some of the answers right, and so all? */
bool hdf5_listing_trusted(listing *list) {
  int64_t shift = 0, first_shift = 0;
  for (int64_t k = 0; k < SAMPLES && list->count > 0; k++) {
    int64_t index = k * (list->count - 1) / (SAMPLES - 1); /* the first and the last among them */
    if (!confirmed(list, index, &shift) || (k > 0 && shift != first_shift)) return false;
    first_shift = shift;
  }
  for (int64_t k = 0; k < list->count && shift; k++) list->items[k].offset += (uint64_t)shift;
  return true;
}
