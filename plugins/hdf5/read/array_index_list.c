/* Chunk indexes that are arrays with very many slots: libhdf5 would look at all of them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "read/stored_chunks.h"

#define MOST_WALKED ((uint64_t)1 << 28)  /* of what an array claims in its header */
#define MOST_WRITTEN ((uint64_t)1 << 32) /* by libhdf5 to an extensible one */
#define MANY_SLOTS (1 << 20)             /* from here on arrays are read without it */

/* How the array numbers chunks: in the largest grid there can be, the axis without end in front. */
typedef struct numbering {
  listing *list;
  int axes[HDF5_MAX_RANK];
  uint64_t counts[HDF5_MAX_RANK]; /* along them; of the first one nobody asks */
} numbering;

static bool numbering_of(listing *list, numbering *out, uint64_t *slots) {
  const hdf5_dataset *dataset = list->dataset;
  const hdf5_functions *call = &dataset->call->library->call;
  hsize_t dims[HDF5_MAX_RANK], largest[HDF5_MAX_RANK];
  hid_t space = call->H5Dget_space(dataset->id);
  bool known = space >= 0 && call->H5Sget_simple_extent_dims(space, dims, largest) >= 0;
  if (space >= 0) call->H5Sclose(space);
  if (!known) return false;
  int endless = 0;
  *slots = 1;
  for (int k = 0; k < dataset->ndim; k++)
    if (largest[k] == HDF5_UNDEFINED) endless = k;
  for (int k = 0; k < dataset->ndim; k++) {
    int axis = k == 0 ? endless : k <= endless ? k - 1 : k;
    hsize_t chunk = (hsize_t)dataset->chunk[axis];
    out->axes[k] = axis;
    out->counts[k] = largest[axis] / chunk + (largest[axis] % chunk != 0);
    if (out->counts[k] == 0) return false;
    if (largest[axis] != HDF5_UNDEFINED && __builtin_mul_overflow(*slots, out->counts[k], slots))
      return false;
  }
  out->list = list;
  return true;
}

static bool take_entry(void *state, const hdf5_array_entry *entry) {
  numbering *n = state;
  listing *list = n->list;
  uint64_t left = entry->number;
  stored item = {.offset = entry->address,
                 .length = entry->filtered ? entry->length : (uint64_t)list->chunk_bytes,
                 .mask = entry->mask};
  for (int k = list->dataset->ndim - 1; k >= 0; k--) {
    uint64_t at = k == 0 ? left : left % n->counts[k];
    left = k == 0 ? 0 : left / n->counts[k];
    list->odd = list->odd || at >= (uint64_t)list->counts[n->axes[k]];
    item.slot += at * (uint64_t)list->slot_strides[n->axes[k]];
  }
  return !list->odd && hdf5_listing_add(list, item);
}

/* Lists what is stored without a look at what is not, and compares some of it with libhdf5. */
static hdf5_array_result walk(listing *list, const char **wrong, int64_t *at) {
  hdf5_library *library = list->dataset->call->library;
  numbering n;
  uint64_t slots;
  if (library->array.size == 0 || !numbering_of(list, &n, &slots)) return HDF5_ARRAY_UNUSUAL;
  hdf5_array_result result =
      hdf5_array_walk(&library->array, list->dataset->file, slots, take_entry, &n, wrong, at);
  return result == HDF5_ARRAY_OK && !hdf5_listing_trusted(list) ? HDF5_ARRAY_UNUSUAL : result;
}

/* `alone`: libhdf5 cannot list it. */
static tegula_status list_by_walk(listing *list, bool alone, bool *done, tegula_error *err) {
  const hdf5_dataset *dataset = list->dataset;
  const tegula_plugin_host *host = dataset->call->library->host;
  const char *wrong = "";
  int64_t at = -1;
  hdf5_array_result result = walk(list, &wrong, &at);
  *done = result == HDF5_ARRAY_OK;
  RETURN_IF(*done, TEGULA_OK);
  bool odd = list->odd;
  list->odd = false;
  list->count = 0;
  RETURN_IF(result == HDF5_ARRAY_STOPPED && !odd, hdf5_out_of_memory(dataset->call->library, err));
  RETURN_IF(result == HDF5_ARRAY_UNUSUAL || !alone, TEGULA_OK);
  RETURN_IF(odd, hdf5_listing_outside(list, err));
  return host->fail(err, TEGULA_CORRUPT, dataset->file->path, at,
                    "\"%s\" of \"%s\" has a damaged chunk index: its block at %lld %s",
                    dataset->name, dataset->file->path, (long long)at, wrong);
}

/* libhdf5 walks over all slots that an array claims, for the largest shape there can be; a damaged
 * header would keep it busy for ever. */
static tegula_status check_claimed(const listing *list, uint64_t claimed, uint64_t most,
                                   tegula_error *err) {
  const hdf5_dataset *dataset = list->dataset;
  hdf5_library *library = dataset->call->library;
  RETURN_IF(claimed <= most, TEGULA_OK);
  bool damaged = most == MOST_WRITTEN;
  return library->host->hint(
      err,
      library->host->fail(
          err, damaged ? TEGULA_CORRUPT : TEGULA_UNSUPPORTED, dataset->file->path, -1,
          "cannot list the chunks of \"%s\" in \"%s\": its index (an array) claims %llu slots, and "
          "%s walks "
          "over all",
          dataset->name, dataset->file->path, (unsigned long long)claimed, library->text),
      "%s",
      damaged ? "HDF5 writes 2^32 at most: the file is damaged"
              : "store the dataset with larger chunks, or with a B-tree (libver earliest)");
}

static tegula_status check_slots(const listing *list, tegula_error *err) {
  const hdf5_dataset *dataset = list->dataset;
  hdf5_library *library = dataset->call->library;
  RETURN_IF(list->slots <= HDF5_MOST_SLOTS, TEGULA_OK);
  return library->host->hint(
      err,
      library->host->fail(err, TEGULA_UNSUPPORTED, dataset->file->path, -1,
                          "cannot list the chunks of \"%s\" in \"%s\": its index is an array of "
                          "%lld slots, the limit is %lld",
                          dataset->name, dataset->file->path, (long long)list->slots,
                          (long long)HDF5_MOST_SLOTS),
      "larger chunks, or an index that is a B-tree (libver earliest), can be listed");
}

/* There is no header: nothing was ever stored, which libhdf5 says at once. */
static tegula_status list_nothing(listing *list, bool *done, tegula_error *err) {
  int64_t count = 0;
  FORWARD(hdf5_listing_count(list, &count, err));
  *done = count == 0;
  return *done ? TEGULA_OK : check_slots(list, err);
}

/* ---- the header ---- */

static bool recall(hdf5_library *library, const hdf5_file *file, const hdf5_object *object) {
  const hdf5_known_array *known = file->arrays;
  while (known && memcmp(&known->dataset, object, sizeof *object) != 0) known = known->next;
  if (known) library->array = known->head;
  return known != NULL;
}

static void remember(const hdf5_library *library, hdf5_file *file, const hdf5_object *object) {
  hdf5_known_array *known = malloc(sizeof *known);
  if (!known) return;
  *known = (hdf5_known_array){.next = file->arrays, .dataset = *object, .head = library->array};
  file->arrays = known;
}

/* No dataset of the file is open but this one. H5Drefresh (to 2.0 at least) leaves one that is open
 * a second time without the shape of its grid of chunks: to libhdf5 each of them is then the first
 * one, for those who read it, too. */
static bool is_alone(const hdf5_dataset *dataset) {
  return dataset->call->library->call.H5Fget_obj_count(dataset->file->id, HDF5_OPEN_DATASETS) == 1;
}

/* Has libhdf5 read the header, and notes it; size 0: there is none, or libhdf5 has it in memory and
 * does not read it again. */
static void find_head(const listing *list) {
  const hdf5_dataset *dataset = list->dataset;
  hdf5_library *library = dataset->call->library;
  hsize_t offset[HDF5_MAX_RANK + 1] = {0};
  hdf5_object object;
  stored item;
  library->array.size = 0;
  hdf5_listing_probe(list, offset, &item);
  bool read = library->array.size > 0, named = hdf5_object_of(library, dataset->id, &object);
  bool known = !read && named && recall(library, dataset->file, &object);
  if (!read && !known && is_alone(dataset) && library->call.H5Drefresh(dataset->id) >= 0)
    hdf5_listing_probe(list, offset, &item);
  library->failure.status = TEGULA_OK; /* if it could not be read the listing says so */
  if (named && !known && library->array.size > 0) remember(library, dataset->file, &object);
}

tegula_status hdf5_listing_array(listing *list, bool *done, tegula_error *err) {
  const hdf5_dataset *dataset = list->dataset;
  hdf5_library *library = dataset->call->library;
  find_head(list);
  if (library->array.size == 0) return list_nothing(list, done, err);
  bool extensible;
  uint64_t claimed = hdf5_array_claimed(&library->array, dataset->file, &extensible);
  if (extensible) FORWARD(check_claimed(list, claimed, MOST_WRITTEN, err));
  bool alone = list->slots > HDF5_MOST_SLOTS || claimed > MOST_WALKED;
  if (list->slots > MANY_SLOTS || claimed > MANY_SLOTS)
    FORWARD(list_by_walk(list, alone, done, err));
  RETURN_IF(*done, TEGULA_OK);
  FORWARD(check_slots(list, err));
  return check_claimed(list, claimed, MOST_WALKED, err);
}
