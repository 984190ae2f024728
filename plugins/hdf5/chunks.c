/* Listing where the chunks of a dataset are.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Two ways. H5Dchunk_iter (1.14 and later) visits what is stored; releases of it gave places in
 * other units, or forgot the user block, so some of its answers are compared with the other way:
 * H5Dread_chunk, with a driver that notes the address of the request for our buffer and reads
 * nothing. That works in every release and costs well under a microsecond for each chunk of the
 * grid; a grid that is much larger than what is stored is listed by H5Dget_chunk_info first where
 * nothing better is there.
 *
 * Releases without H5Dchunk_iter are asked for the number of chunks: then they walk over all of a
 * version 1 B-tree, and the driver notes what its leaves say. It counts if it is as many, in order,
 * and some of it is compared with the second way.
 *
 * Both H5Dchunk_iter and H5Dget_chunk_info (to 2.0 at least) name wrong places when the index is an
 * extensible array and the axis without end is not the first: they forget that the index puts that
 * axis in front. Only the second way is taken then.
 *
 * A damaged index looks to H5Dread_chunk like chunks that were never stored: what it found is
 * compared with H5Dget_num_chunks. */
#include <stdlib.h>
#include <string.h>

#include "chunks.h"

enum { INDEX_BTREE_1 = 0, INDEX_FIXED = 3, INDEX_EXTENSIBLE = 4, SAMPLES = 16 };

static char probe_target[16]; /* only its address counts */

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

static tegula_status measure(hdf5_dataset *dataset, listing *list, tegula_error *err) {
  const tegula_plugin_host *host = dataset->call->library->host;
  /* as stored */
  int64_t slots = 1, bytes = (int64_t)dataset->call->library->call.H5Tget_size(dataset->type_id);
  bool good = true;
  for (int k = dataset->ndim - 1; k >= 0 && good; k--) {
    list->counts[k] = ceil_div(dataset->shape[k], dataset->chunk[k]);
    list->slot_strides[k] = slots;
    good = !__builtin_mul_overflow(slots, list->counts[k], &slots) &&
           !__builtin_mul_overflow(bytes, dataset->chunk[k], &bytes);
  }
  list->slots = slots;
  list->chunk_bytes = bytes;
  if (!good || bytes > UINT32_MAX)
    return host->fail(err, TEGULA_UNSUPPORTED, dataset->file->path, -1,
                      "cannot load \"%s\" of \"%s\": its chunks have 4 GiB or more", dataset->name,
                      dataset->file->path);
  return TEGULA_OK;
}

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

/* The slot of the chunk at `offset`, in elements; false: there is none. */
static bool slot_of(const listing *list, const hsize_t *offset, uint64_t *slot) {
  const hdf5_dataset *dataset = list->dataset;
  *slot = 0;
  for (int k = 0; k < dataset->ndim; k++) {
    hsize_t chunk = (hsize_t)dataset->chunk[k];
    if (offset[k] % chunk != 0 || offset[k] / chunk >= (hsize_t)list->counts[k]) return false;
    *slot += offset[k] / chunk * (uint64_t)list->slot_strides[k];
  }
  return true;
}

/* Extensible array, axis 0 with an end. `index`: its kind. */
static bool is_turned(const hdf5_dataset *dataset, int *index) {
  const hdf5_functions *call = &dataset->call->library->call;
  hsize_t dims[HDF5_MAX_RANK], largest[HDF5_MAX_RANK] = {0};
  *index = INDEX_EXTENSIBLE;
  hid_t space = call->H5Dget_space(dataset->id);
  bool known = space >= 0 && call->H5Sget_simple_extent_dims(space, dims, largest) >= 0 &&
               call->H5Dget_chunk_index_type(dataset->id, index) >= 0;
  if (space >= 0) call->H5Sclose(space);
  return !known || (*index == INDEX_EXTENSIBLE && largest[0] != HDF5_UNDEFINED);
}

static void offset_of(const listing *list, uint64_t slot, hsize_t *offset) {
  for (int k = 0; k < list->dataset->ndim; k++) {
    offset[k] = slot / (uint64_t)list->slot_strides[k] * (hsize_t)list->dataset->chunk[k];
    slot %= (uint64_t)list->slot_strides[k];
  }
}

/* ---- the way that works everywhere ---- */

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

static tegula_status internal(const listing *list, tegula_error *err) {
  const hdf5_dataset *dataset = list->dataset;
  return dataset->call->library->host->fail(
      err, TEGULA_INTERNAL, dataset->file->path, -1,
      "%s did not ask for the chunks of \"%s\" in \"%s\" as it should",
      dataset->call->library->text, dataset->name, dataset->file->path);
}

tegula_status hdf5_listing_outside(const listing *list, tegula_error *err) {
  const hdf5_dataset *dataset = list->dataset;
  return dataset->call->library->host->fail(
      err, TEGULA_CORRUPT, dataset->file->path, -1,
      "\"%s\" of \"%s\" has a damaged chunk index: it holds a chunk outside of the array",
      dataset->name, dataset->file->path);
}

static tegula_status probe_one(listing *list, uint64_t slot, tegula_error *err) {
  hsize_t offset[HDF5_MAX_RANK + 1] = {0};
  stored item = {.slot = slot};
  offset_of(list, slot, offset);
  int found = hdf5_listing_probe(list, offset, &item);
  RETURN_IF(found < 0, internal(list, err));
  hdf5_library *library = list->dataset->call->library;
  if (library->failure.status != TEGULA_OK)
    return hdf5_failed(library, err, TEGULA_IO, list->dataset->file->path,
                       "list the chunks of \"%s\"", list->dataset->name);
  RETURN_IF(found && !hdf5_listing_add(list, item), hdf5_out_of_memory(library, err));
  return TEGULA_OK;
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

/* The slots of what is stored, one by one: the k-th costs k steps. */
static tegula_status list_by_number(listing *list, int64_t count, tegula_error *err) {
  hdf5_dataset *dataset = list->dataset;
  hdf5_library *library = dataset->call->library;
  hid_t space = library->call.H5Dget_space(dataset->id);
  tegula_status status = TEGULA_OK;
  for (int64_t k = 0; space >= 0 && status == TEGULA_OK && k < count; k++) {
    hsize_t offset[HDF5_MAX_RANK + 1] = {0}, length;
    haddr_t address;
    unsigned mask;
    uint64_t slot;
    if (library->call.H5Dget_chunk_info(dataset->id, space, (hsize_t)k, offset, &mask, &address,
                                        &length) < 0)
      status =
          hdf5_failed(library, err, TEGULA_CORRUPT, dataset->file->path,
                      "list the chunks of \"%s\" in \"%s\"", dataset->name, dataset->file->path);
    else
      status = slot_of(list, offset, &slot) ? probe_one(list, slot, err)
                                            : hdf5_listing_outside(list, err);
  }
  if (space >= 0) library->call.H5Sclose(space);
  return status;
}

static tegula_status list_by_probes(listing *list, int64_t count, tegula_error *err) {
  hdf5_dataset *dataset = list->dataset;
  const tegula_plugin_host *host = dataset->call->library->host;
  /* about 0.5 us for each slot, 20 ns for each step of a list by number */
  double all = (double)list->slots * 0.5, numbered = (double)count * (double)count * 0.01;
  if (list->turned) numbered = 1e300;
  if (all > 60e6 && numbered > 60e6)
    return host->hint(
        err,
        host->fail(err, TEGULA_UNSUPPORTED, dataset->file->path, -1,
                   "cannot list the chunks of \"%s\" in \"%s\" with %s: %lld of %lld are stored",
                   dataset->name, dataset->file->path, dataset->call->library->text,
                   (long long)count, (long long)list->slots),
        "%s",
        list->turned ? "its index is an extensible array along another axis than the first: store "
                       "it with a B-tree (libver earliest)"
                     : "HDF5 1.14 or newer can: pip install h5py, or TEGULA_HDF5_LIBRARY");
  if (numbered < all / 4) {
    FORWARD(list_by_number(list, count, err));
  } else {
    for (int64_t slot = 0; slot < list->slots; slot++)
      FORWARD(probe_one(list, (uint64_t)slot, err));
  }
  if (list->count == count) return TEGULA_OK;
  return host->fail(err, TEGULA_CORRUPT, dataset->file->path, -1,
                    "\"%s\" of \"%s\" has a damaged chunk index: expected %lld chunks, found %lld",
                    dataset->name, dataset->file->path, (long long)count, (long long)list->count);
}

/* ---- the fast way ---- */

static int take_chunk(const hsize_t *offset, unsigned mask, haddr_t address, hsize_t size,
                      void *state) {
  listing *list = state;
  stored item = {.offset = address, .length = size, .mask = mask};
  list->odd = list->odd || !slot_of(list, offset, &item.slot);
  if (list->odd) return -1;
  if (address == HDF5_UNDEFINED) return 0;
  return hdf5_listing_add(list, item) ? 0 : -1;
}

/* Are the answers those of the other way? Old releases leave the user block out: then it is added
 * to all. */
static bool confirmed(listing *list, int64_t index, int64_t *shift) {
  hsize_t offset[HDF5_MAX_RANK + 1] = {0};
  stored *item = &list->items[index], other = {0};
  offset_of(list, item->slot, offset);
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

/* True when the list is complete and to be trusted. */
static bool list_by_iteration(listing *list) {
  hdf5_dataset *dataset = list->dataset;
  bool good =
      dataset->call->library->call.chunk_iter(dataset->id, HDF5_DEFAULT, take_chunk, list) >= 0;
  return good && !list->odd && !list->no_memory && hdf5_listing_trusted(list);
}

/* Counts the chunks; true when the list is also complete and to be trusted. */
static tegula_status list_by_leaves(listing *list, int64_t *count, bool *complete,
                                    tegula_error *err) {
  hdf5_library *library = list->dataset->call->library;
  library->leaves =
      (hdf5_leaves){take_chunk, list, list->dataset->ndim, list->dataset->file->address_width};
  tegula_status status = hdf5_listing_count(list, count, err);
  library->leaves.each = NULL;
  if (status != TEGULA_OK) return status;
  *complete = !list->odd && !list->no_memory && list->count == *count;
  for (int64_t k = 1; k < list->count && *complete; k++)
    *complete = list->items[k - 1].slot < list->items[k].slot;
  *complete = *complete && hdf5_listing_trusted(list);
  return TEGULA_OK;
}

/* ---- checks, and the table for the host ---- */

static int by_slot(const void *a, const void *b) {
  const stored *x = a, *y = b;
  return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static bool edge_chunk(const listing *list, uint64_t slot) {
  hsize_t offset[HDF5_MAX_RANK + 1];
  offset_of(list, slot, offset);
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

static tegula_status list_chunks(listing *list, tegula_error *err) {
  hdf5_library *library = list->dataset->call->library;
  int index;
  bool done = false;
  list->turned = is_turned(list->dataset, &index);
  if (index == INDEX_FIXED || index == INDEX_EXTENSIBLE)
    FORWARD(hdf5_listing_array(list, &done, err));
  RETURN_IF(done, TEGULA_OK);
  bool iterate = library->call.chunk_iter && !list->turned,
       complete = iterate && list_by_iteration(list);
  int64_t count = 0;
  if (!iterate && index == INDEX_BTREE_1)
    FORWARD(list_by_leaves(list, &count, &complete, err));
  else if (!complete)
    FORWARD(hdf5_listing_count(list, &count, err));
  if (list->no_memory) return hdf5_out_of_memory(library, err);
  if (complete) return TEGULA_OK;
  list->count = 0;
  list->odd = false;
  return list_by_probes(list, count, err);
}

bool hdf5_chunks_countable(const hdf5_dataset *dataset) {
  int64_t slots = 1;
  int index;
  for (int k = 0; k < dataset->ndim; k++)
    if (__builtin_mul_overflow(slots, ceil_div(dataset->shape[k], dataset->chunk[k]), &slots))
      return false;
  is_turned(dataset, &index);
  return (index != INDEX_FIXED && index != INDEX_EXTENSIBLE) || slots <= HDF5_MOST_SLOTS;
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
  FORWARD(measure(dataset, &list, err));
  tegula_status status = list.slots == 0 ? TEGULA_OK : list_chunks(&list, err);
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
  FORWARD(measure(dataset, &list, err));
  tegula_error why = {0};
  tegula_status status = list.slots == 0 ? TEGULA_OK : list_chunks(&list, err);
  if (status == TEGULA_OK) status = check_all(&list, err);
  if (status == TEGULA_OK) status = drop_absent(&list, &chain, err);
  bool good = status == TEGULA_OK &&
              (add_table(&list, &chain, &why) == TEGULA_OK ||
               (drop_skipped(&list, &chain) && add_table(&list, &chain, &why) == TEGULA_OK));
  if (status == TEGULA_OK && !good) status = without_codec(dataset, &why, err);
  free(list.items);
  return status;
}
