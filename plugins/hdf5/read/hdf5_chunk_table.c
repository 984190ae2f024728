/* The chunks of a dataset as a table for the host: checked, with the filters that undo them; or as
 * what was never stored of a dataset that libhdf5 reads.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "read/stored_chunks.h"

static int by_slot(const void *a, const void *b) {
  const stored *x = a, *y = b;
  return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static bool edge_chunk(const listing *list, uint64_t slot) {
  hsize_t offset[HDF5_MAX_RANK + 1];
  hdf5_listing_offset(list, slot, offset);
  for (int k = 0; k < list->dataset->ndim; k++)
    if ((int64_t)offset[k] + list->dataset->chunk[k] > list->dataset->shape[k]) return true;
  return false;
}

static tegula_status check_chunk(const listing *list, stored *item, uint32_t all_filters,
                                 bool edges_plain, tegula_error *err) {
  const hdf5_dataset *dataset = list->dataset;
  const tegula_plugin_host *host = dataset->call->library->host;
  const char *path = dataset->file->path;
  if (edges_plain && edge_chunk(list, item->slot)) item->mask = all_filters;
  item->mask &= all_filters;
  bool plain = item->mask == all_filters;
  if (plain && item->length != (uint64_t)list->chunk_bytes)
    return host->fail(err, TEGULA_CORRUPT, path, (int64_t)item->offset,
                      "an unfiltered chunk of \"%s\" in \"%s\" has %llu bytes: expected %lld",
                      dataset->name, path, (unsigned long long)item->length,
                      (long long)list->chunk_bytes);
  if (item->length == 0 || item->length > UINT32_MAX)
    return host->fail(err, item->length ? TEGULA_UNSUPPORTED : TEGULA_CORRUPT, path,
                      (int64_t)item->offset,
                      "a chunk of \"%s\" in \"%s\" has %llu bytes stored: expected 1 byte to 4 GiB",
                      dataset->name, path, (unsigned long long)item->length);
  uint64_t size = (uint64_t)dataset->file->size;
  if (item->offset <= size && item->length <= size - item->offset) return TEGULA_OK;
  return host->fail(
      err, TEGULA_SHORT_FILE, path, (int64_t)size,
      "\"%s\" is cut: a chunk of \"%s\" lies at %llu, %llu bytes long, the file has %llu bytes",
      path, dataset->name, (unsigned long long)item->offset, (unsigned long long)item->length,
      (unsigned long long)size);
}

static tegula_status check_all(listing *list, tegula_error *err) {
  const hdf5_dataset *dataset = list->dataset;
  uint32_t all =
      dataset->filter_count >= 32 ? UINT32_MAX : (UINT32_C(1) << dataset->filter_count) - 1;
  unsigned options = 0;
  dataset->call->library->call.H5Pget_chunk_opts(dataset->plist, &options);
  bool sorted = true;
  for (int64_t k = 0; k < list->count; k++) {
    FORWARD(check_chunk(list, &list->items[k], all, (options & HDF5_CHUNK_PARTIAL_UNFILTERED) != 0,
                        err));
    sorted = sorted && (k == 0 || list->items[k - 1].slot < list->items[k].slot);
  }
  if (!sorted) qsort(list->items, (size_t)list->count, sizeof *list->items, by_slot);
  for (int64_t k = 1; k < list->count && !sorted; k++)
    if (list->items[k - 1].slot == list->items[k].slot)
      return dataset->call->library->host->fail(err, TEGULA_CORRUPT, dataset->file->path, -1,
                                                "\"%s\" of \"%s\" stores a chunk twice",
                                                dataset->name, dataset->file->path);
  return TEGULA_OK;
}

/* Masks of chunks without bit k. */
static void drop_bit(listing *list, int k) {
  uint32_t below = (UINT32_C(1) << k) - 1;
  for (int64_t i = 0; i < list->count; i++) {
    uint32_t *mask = &list->items[i].mask;
    *mask = (*mask & below) | (*mask >> 1 & ~below);
  }
}

/* Filters that are absent must have been skipped by every chunk. */
static tegula_status drop_absent(listing *list, const hdf5_chain *chain, tegula_error *err) {
  for (int k = list->dataset->filter_count - 1; k >= 0; k--) {
    if (!(chain->absent >> k & 1)) continue;
    for (int64_t i = 0; i < list->count; i++)
      RETURN_IF(!(list->items[i].mask >> k & 1), hdf5_filters_refuse(list->dataset, k, err));
    drop_bit(list, k);
  }
  return TEGULA_OK;
}

/* Those that have a codec, too, need none that works where every chunk skipped them. False: there
 * are none. */
static bool drop_skipped(listing *list, hdf5_chain *chain) {
  uint32_t skipped = UINT32_MAX;
  int count = chain->count;
  for (int64_t i = 0; i < list->count; i++) skipped &= list->items[i].mask;
  for (int k = count - 1; k >= 0; k--) {
    if (!(skipped >> k & 1)) continue;
    drop_bit(list, k);
    chain->count--;
    memmove(&chain->filters[k], &chain->filters[k + 1],
            (size_t)(chain->count - k) * sizeof chain->filters[0]);
  }
  return chain->count < count;
}

static tegula_status add_table(listing *list, const hdf5_chain *chain, tegula_error *err) {
  hdf5_dataset *dataset = list->dataset;
  const tegula_plugin_host *host = dataset->call->library->host;
  bool sparse = list->slots / 4 > list->count + 1024;
  int64_t rows = sparse ? list->count : list->slots, file;
  FORWARD(hdf5_file_number(dataset->call, dataset->file, &file, err));
  tegula_plugin_chunk *chunks = host->allocate((size_t)(rows ? rows : 1) * sizeof *chunks);
  uint64_t *coordinates =
      sparse ? host->allocate((size_t)(rows ? rows : 1) * sizeof *coordinates) : NULL;
  tegula_status status = chunks && (coordinates || !sparse)
                             ? TEGULA_OK
                             : hdf5_out_of_memory(dataset->call->library, err);
  if (status == TEGULA_OK) {
    if (!sparse) memset(chunks, 0, (size_t)rows * sizeof *chunks);
    for (int64_t k = 0; k < list->count; k++) {
      const stored *item = &list->items[k];
      chunks[sparse ? (uint64_t)k : item->slot] =
          (tegula_plugin_chunk){item->offset, (uint32_t)item->length, item->mask};
      if (sparse) coordinates[k] = item->slot;
    }
    status = host->add_grid(dataset->call->builder, file, list->chunk_bytes, dataset->type.order,
                            chain->filters, chain->count, dataset->fill, list->slots, rows,
                            coordinates, chunks, &dataset->grid, err);
  }
  if (status != TEGULA_OK) {
    host->release(chunks);
    host->release(coordinates);
  }
  return status;
}

static tegula_status keep_gaps(listing *list, tegula_error *err) {
  hdf5_dataset *dataset = list->dataset;
  RETURN_IF(list->count == list->slots, TEGULA_OK);
  hdf5_gaps *gaps = malloc(sizeof *gaps + (size_t)list->count * sizeof gaps->slots[0]);
  RETURN_IF(!gaps, hdf5_out_of_memory(dataset->call->library, err));
  gaps->count = list->count;
  memcpy(gaps->slot_strides, list->slot_strides, sizeof gaps->slot_strides);
  for (int64_t k = 0; k < list->count; k++) gaps->slots[k] = list->items[k].slot;
  dataset->gaps = gaps;
  return TEGULA_OK;
}

tegula_status hdf5_find_gaps(hdf5_dataset *dataset, tegula_error *err) {
  listing list = {.dataset = dataset};
  FORWARD(hdf5_listing_measure(dataset, &list, err));
  tegula_status status = list.slots == 0 ? TEGULA_OK : hdf5_listing_fill(&list, err);
  if (status == TEGULA_OK) status = check_all(&list, err);
  if (status == TEGULA_OK) status = keep_gaps(&list, err);
  free(list.items);
  return status;
}

static tegula_status use_reader(hdf5_dataset *dataset, tegula_error *err) {
  dataset->kind = HDF5_KIND_READER;
  if (hdf5_conversion_make(dataset)) return hdf5_find_gaps(dataset, err);
  return hdf5_failed(dataset->call->library, err, TEGULA_INTERNAL, dataset->file->path,
                     "make a type in memory for \"%s\"", dataset->name);
}

/* A codec that this build of tegula lacks may be one that libhdf5 has. */
static tegula_status without_codec(hdf5_dataset *dataset, const tegula_error *why,
                                   tegula_error *err) {
  const tegula_plugin_host *host = dataset->call->library->host;
  RETURN_IF(why->status == TEGULA_UNSUPPORTED && hdf5_filters_known(dataset),
            use_reader(dataset, err));
  tegula_status status =
      host->fail(err, why->status, why->path, why->offset, "cannot load \"%s\" of \"%s\": %.400s",
                 dataset->name, dataset->file->path, why->message);
  return why->hint[0] ? host->hint(err, status, "%s", why->hint) : status;
}

tegula_status hdf5_prepare_chunks(hdf5_dataset *dataset, tegula_error *err) {
  hdf5_chain chain = {0};
  listing list = {.dataset = dataset};
  FORWARD(hdf5_filters_map(dataset, &chain, err));
  RETURN_IF(chain.reader, use_reader(dataset, err));
  dataset->kind = HDF5_KIND_GRID;
  FORWARD(hdf5_listing_measure(dataset, &list, err));
  tegula_error why = {0};
  tegula_status status = list.slots == 0 ? TEGULA_OK : hdf5_listing_fill(&list, err);
  if (status == TEGULA_OK) status = check_all(&list, err);
  if (status == TEGULA_OK) status = drop_absent(&list, &chain, err);
  bool good = status == TEGULA_OK &&
              (add_table(&list, &chain, &why) == TEGULA_OK ||
               (drop_skipped(&list, &chain) && add_table(&list, &chain, &why) == TEGULA_OK));
  if (status == TEGULA_OK && !good) status = without_codec(dataset, &why, err);
  free(list.items);
  return status;
}
