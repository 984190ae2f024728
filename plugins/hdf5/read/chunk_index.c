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
#include "read/stored_chunks.h"

enum { INDEX_BTREE_1 = 0, INDEX_FIXED = 3, INDEX_EXTENSIBLE = 4 };

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

tegula_status hdf5_listing_measure(hdf5_dataset *dataset, listing *list, tegula_error *err) {
  const tegula_plugin_host *host = dataset->call->library->host;
  /* as stored */
  int64_t slots = 1, bytes = hdf5_stored_item(dataset);
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

/* ---- the way that works everywhere ---- */

static tegula_status internal(const listing *list, tegula_error *err) {
  const hdf5_dataset *dataset = list->dataset;
  return dataset->call->library->host->fail(
      err, TEGULA_INTERNAL, dataset->file->path, -1,
      "%s did not ask for the chunks of \"%s\" in \"%s\" as it should",
      dataset->call->library->text, dataset->name, dataset->file->path);
}

static tegula_status probe_one(listing *list, uint64_t slot, tegula_error *err) {
  hsize_t offset[HDF5_MAX_RANK + 1] = {0};
  stored item = {.slot = slot};
  hdf5_listing_offset(list, slot, offset);
  int found = hdf5_listing_probe(list, offset, &item);
  RETURN_IF(found < 0, internal(list, err));
  hdf5_library *library = list->dataset->call->library;
  if (library->failure.status != TEGULA_OK)
    return hdf5_failed(library, err, TEGULA_IO, list->dataset->file->path,
                       "list the chunks of \"%s\"", list->dataset->name);
  RETURN_IF(found && !hdf5_listing_add(list, item), hdf5_out_of_memory(library, err));
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
      status = hdf5_listing_slot(list, offset, &slot) ? probe_one(list, slot, err)
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
  list->odd = list->odd || !hdf5_listing_slot(list, offset, &item.slot);
  if (list->odd) return -1;
  if (address == HDF5_UNDEFINED) return 0;
  return hdf5_listing_add(list, item) ? 0 : -1;
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

/* ---- which way ---- */

tegula_status hdf5_listing_fill(listing *list, tegula_error *err) {
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
