/* Virtual datasets over very many files: a source is looked at when a load first wants something of it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * What is needed for that is kept with the host: the mappings, the type and the fill value of the virtual dataset, and the name of its
 * file. The file itself is closed, and not read again; the host looks whether it is still the same. */
#include <stdlib.h>
#include <string.h>

#include "virtual.h"

enum { MOST_AT_ONCE = 256 }; /* files that are looked at when the dataset is described */

/* The virtual dataset, without its file; counted by its late parts, under the lock of the library. */
typedef struct kept {
  int64_t references;
  hdf5_file file;
  hdf5_dataset dataset;
  hdf5_place outer;
  size_t array_item;
  hdf5_sorted *sorted;
} kept;

/* The pieces [from, from + count) of the order: those of one file. */
typedef struct late {
  kept *kept;
  int64_t from, count;
} late;

bool hdf5_sorted_here(const hdf5_sorted *sorted) { return !sorted->mapping || strcmp(sorted->mapping->file, ".") == 0; }

static bool same_file(const hdf5_sorted *a, const hdf5_sorted *b) {
  return a->mapping && b->mapping && strcmp(a->mapping->file, b->mapping->file) == 0;
}

bool hdf5_late_wanted(const hdf5_dataset *dataset, const hdf5_sorted *sorted, int64_t count) {
  const tegula_plugin_host *host = dataset->call->library->host;
  if (dataset->call->late || dataset->call->ancestors || dataset->measured) return false;
  if (host->struct_size < offsetof(tegula_plugin_host, add_late) + sizeof host->add_late || !host->new_late) return false;
  int64_t files = 0;
  for (int64_t k = 0; k < count; k++) files += !hdf5_sorted_here(&sorted[k]) && (k == 0 || !same_file(&sorted[k - 1], &sorted[k]));
  return files > MOST_AT_ONCE;
}

/* ---- what is kept ---- */

static void forget(kept *k) {
  if (--k->references > 0) return;
  hdf5_library *library = k->file.library;
  if (k->dataset.type_id >= 0) library->call.H5Tclose(k->dataset.type_id);
  hdf5_virtual_close(&k->dataset);
  free((char *)k->dataset.name);
  free(k->dataset.fill);
  free(k->file.path);
  free(k->file.canonical);
  free(k->sorted);
  free(k);
}

static unsigned char *copy_fill(const hdf5_dataset *dataset) {
  size_t size = dataset->type.dtype.item_size;
  unsigned char *fill = dataset->fill ? malloc(size) : NULL;
  return fill ? memcpy(fill, dataset->fill, size) : NULL;
}

/* Takes the mappings and pieces out of the dataset. */
static kept *keep(hdf5_dataset *dataset, const hdf5_place *outer, const hdf5_sorted *sorted, int64_t count) {
  hdf5_library *library = dataset->call->library;
  kept *k = calloc(1, sizeof *k);
  RETURN_IF(!k, NULL);
  *k = (kept){.references = 1, .outer = *outer, .array_item = dataset->call->array_item, .dataset = *dataset};
  k->file = (hdf5_file){.library = library, .id = -1, .number = -1, .references = 1};
  k->file.path = strdup(dataset->file->path);
  k->file.canonical = strdup(dataset->file->canonical);
  k->sorted = malloc((size_t)count * sizeof *sorted);
  k->dataset.call = NULL;
  k->dataset.like = &k->dataset;
  k->dataset.file = &k->file;
  k->dataset.name = strdup(dataset->name);
  k->dataset.fill = copy_fill(dataset);
  k->dataset.filters = NULL;
  k->dataset.id = k->dataset.plist = -1;
  k->dataset.type_id = library->call.H5Tcopy(dataset->type_id);
  dataset->mappings = NULL;
  dataset->mapping_count = 0;
  dataset->parts = NULL;
  bool good = k->file.path && k->file.canonical && k->sorted && k->dataset.name && (!dataset->fill || k->dataset.fill);
  if (good && k->dataset.type_id >= 0) {
    memcpy(k->sorted, sorted, (size_t)count * sizeof *sorted);
    return k;
  }
  forget(k);
  return NULL;
}

/* ---- late parts ---- */

static tegula_status resolve(void *state, tegula_plugin_builder *builder, tegula_error *err) {
  const late *l = state;
  kept *k = l->kept;
  hdf5_call call = {.library = k->file.library, .builder = builder, .array_item = k->array_item, .late = true};
  hdf5_lock(call.library);
  k->dataset.call = &call;
  tegula_status status = hdf5_emit_sources(&k->dataset, k->dataset.parts, &k->outer, k->sorted + l->from, l->count, err);
  k->dataset.call = NULL;
  hdf5_unlock(call.library);
  return status;
}

static void release(void *state) {
  late *l = state;
  hdf5_library *library = l->kept->file.library;
  hdf5_lock(library);
  forget(l->kept);
  hdf5_unlock(library);
  free(l);
}

static tegula_status emit_file(hdf5_call *call, kept *k, int64_t from, int64_t count, tegula_error *err) {
  const tegula_plugin_host *host = call->library->host;
  const char *name = k->sorted[from].mapping->file;
  char *path = name[0] == '/' ? strdup(name) : hdf5_beside(k->file.path, name);
  late *l = path ? malloc(sizeof *l) : NULL;
  if (!l) {
    free(path);
    return hdf5_out_of_memory(call->library, err);
  }
  *l = (late){k, from, count};
  k->references++;
  int64_t number;
  tegula_status status =
      host->new_late(call->builder, &(tegula_plugin_late){.resolve = resolve, .state = l, .release = release, .path = path}, &number, err);
  free(path);
  for (int64_t i = from; status == TEGULA_OK && i < from + count; i++) {
    hdf5_place place;
    if (hdf5_piece_seen(&k->dataset, k->dataset.parts, k->sorted[i].piece, &k->outer, &place))
      status = host->add_late(call->builder, number, place.lo, place.hi, err);
  }
  return status;
}

tegula_status hdf5_late_emit(hdf5_dataset *dataset, const hdf5_place *outer, const hdf5_sorted *sorted, int64_t count, tegula_error *err) {
  hdf5_call *call = dataset->call;
  kept *k = keep(dataset, outer, sorted, count);
  RETURN_IF(!k, hdf5_out_of_memory(call->library, err));
  tegula_status status = TEGULA_OK;
  for (int64_t from = 0, to; status == TEGULA_OK && from < count; from = to) {
    to = from + 1;
    if (hdf5_sorted_here(&k->sorted[from])) continue;
    while (to < count && same_file(&k->sorted[from], &k->sorted[to])) to++;
    status = emit_file(call, k, from, to - from, err);
  }
  forget(k);
  return status;
}
