/* Virtual datasets over very many files: a source is looked at when a load first wants something of
 * it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * What is needed for that is kept with the host: the mappings, the type and the fill value of the
 * virtual dataset, and the name of its file. The file itself is closed, and not read again; the
 * host looks whether it is still the same. */
#include <stdlib.h>
#include <string.h>

#include "virtual.h"

/* The virtual dataset, without its file; counted by what is late of it, under the lock of the
 * library. */
typedef struct hdf5_kept {
  int64_t references;
  hdf5_file file;
  hdf5_dataset dataset, array; /* array: the type of the one that is described */
  hdf5_ancestor *ancestors;    /* of a source: what it is a source of, innermost first */
  int ancestor_count;
  size_t array_item;
} kept;

/* What a place wants of it; counted. */
typedef struct wanted {
  int64_t references;
  kept *kept;
  hdf5_place outer;
} wanted;

/* The pieces [from, from + count) of the order: those of one file. */
typedef struct late {
  wanted *wanted;
  int64_t from, count;
} late;

bool hdf5_sorted_here(const hdf5_sorted *sorted) {
  return !sorted->mapping || strcmp(sorted->mapping->file, ".") == 0;
}

static bool same_file(const hdf5_sorted *a, const hdf5_sorted *b) {
  return a->mapping && b->mapping && strcmp(a->mapping->file, b->mapping->file) == 0;
}

bool hdf5_late_wanted(const hdf5_dataset *dataset, const hdf5_sorted *sorted, int64_t count) {
  const tegula_plugin_host *host = dataset->call->library->host;
  if (dataset->call->late || dataset->measured) return false;
  if (host->struct_size < offsetof(tegula_plugin_host, new_late_of) + sizeof host->new_late_of ||
      !host->new_late_of)
    return false;
  int64_t files = 0;
  for (int64_t k = 0; k < count; k++)
    files += !hdf5_sorted_here(&sorted[k]) && (k == 0 || !same_file(&sorted[k - 1], &sorted[k]));
  return files > HDF5_AT_ONCE;
}

/* ---- what is kept ---- */

static void forget(kept *k) {
  if (--k->references > 0) return;
  hdf5_library *library = k->file.library;
  if (k->dataset.type_id >= 0) library->call.H5Tclose(k->dataset.type_id);
  if (k->array.type_id >= 0) library->call.H5Tclose(k->array.type_id);
  k->dataset.kept = NULL; /* they are its own now */
  hdf5_virtual_close(&k->dataset);
  for (int i = 0; i < k->ancestor_count; i++) {
    free((char *)k->ancestors[i].canonical);
    free((char *)k->ancestors[i].name);
  }
  free(k->ancestors);
  free((char *)k->dataset.name);
  free(k->dataset.fill);
  free(k->file.path);
  free(k->file.canonical);
  free(k);
}

void hdf5_late_forget(hdf5_dataset *dataset) {
  forget(dataset->kept);
  dataset->kept = NULL;
  dataset->mappings = NULL;
  dataset->mapping_count = 0;
  dataset->parts = NULL;
  dataset->sorted = NULL;
}

static unsigned char *copy_fill(const hdf5_dataset *dataset) {
  size_t size = dataset->like->type.dtype.item_size;
  unsigned char *fill = dataset->fill ? malloc(size) : NULL;
  return fill ? memcpy(fill, dataset->fill, size) : NULL;
}

static bool copy_ancestors(kept *k, const hdf5_ancestor *from) {
  int count = 0;
  for (const hdf5_ancestor *a = from; a; a = a->next) count++;
  if (count == 0) return true;
  k->ancestors = calloc((size_t)count, sizeof *k->ancestors);
  if (!k->ancestors) return false;
  bool good = true;
  for (const hdf5_ancestor *a = from; a; a = a->next) {
    hdf5_ancestor *copy = &k->ancestors[k->ancestor_count++];
    *copy = (hdf5_ancestor){k->ancestor_count < count ? copy + 1 : NULL, strdup(a->canonical),
                            strdup(a->name)};
    good = good && copy->canonical && copy->name;
  }
  return good;
}

/* Mappings and pieces become those of dataset->kept; once. */
static bool keep(hdf5_dataset *dataset) {
  hdf5_library *library = dataset->call->library;
  if (dataset->kept) return true;
  kept *k = calloc(1, sizeof *k);
  RETURN_IF(!k, false);
  *k = (kept){.references = 1, .array_item = dataset->call->array_item, .dataset = *dataset};
  k->file = (hdf5_file){.library = library, .id = -1, .number = -1, .references = 1};
  k->file.path = strdup(dataset->file->path);
  k->file.canonical = strdup(dataset->file->canonical);
  k->array = (hdf5_dataset){.type = dataset->like->type,
                            .type_id = library->call.H5Tcopy(dataset->like->type_id)};
  k->dataset.call = NULL;
  k->dataset.like = &k->array;
  k->dataset.file = &k->file;
  k->dataset.name = strdup(dataset->name);
  k->dataset.fill = copy_fill(dataset);
  k->dataset.filters = NULL;
  k->dataset.conversion = (hdf5_conversion){0};
  k->dataset.id = k->dataset.plist = -1;
  k->dataset.type_id = library->call.H5Tcopy(dataset->type_id);
  dataset->kept = k;
  bool good =
      k->file.path && k->file.canonical && k->dataset.name && (!dataset->fill || k->dataset.fill);
  return copy_ancestors(k, dataset->call->ancestors) && good && k->dataset.type_id >= 0 &&
         k->array.type_id >= 0;
}

/* ---- late parts ---- */

static tegula_status resolve(void *state, tegula_plugin_builder *builder, tegula_error *err) {
  const late *l = state;
  kept *k = l->wanted->kept;
  hdf5_call call = {.library = k->file.library,
                    .builder = builder,
                    .array_item = k->array_item,
                    .ancestors = k->ancestors,
                    .late = true};
  FORWARD(hdf5_enter(call.library, 0, err));
  k->dataset.call = &call;
  tegula_status status = hdf5_emit_sources(&k->dataset, k->dataset.parts, &l->wanted->outer,
                                           k->dataset.sorted + l->from, l->count, err);
  k->dataset.call = NULL;
  hdf5_unlock(call.library);
  return status;
}

static void forget_wanted(wanted *w) {
  if (--w->references > 0) return;
  forget(w->kept);
  free(w);
}

static void release(void *state) {
  late *l = state;
  hdf5_library *library = l->wanted->kept->file.library;
  hdf5_lock(library);
  forget_wanted(l->wanted);
  hdf5_unlock(library);
  free(l);
}

static tegula_status new_late(hdf5_dataset *dataset, wanted *w, int64_t from, int64_t count,
                              int64_t *number, tegula_error *err) {
  hdf5_call *call = dataset->call;
  const tegula_plugin_host *host = call->library->host;
  const char *name = dataset->sorted[from].mapping->file;
  int64_t file;
  FORWARD(hdf5_file_number(call, dataset->file, &file, err));
  char *path = name[0] == '/' ? strdup(name) : hdf5_beside(dataset->file->path, name);
  late *l = path ? malloc(sizeof *l) : NULL;
  if (!l) {
    free(path);
    return hdf5_out_of_memory(call->library, err);
  }
  *l = (late){w, from, count};
  w->references++;
  tegula_plugin_late what = {.resolve = resolve, .state = l, .release = release, .path = path};
  tegula_status status = host->new_late_of(call->builder, file, &what, number, err);
  free(path);
  return status;
}

/* A late part, if the place wants something of that file. */
static tegula_status emit_file(hdf5_dataset *dataset, wanted *w, int64_t from, int64_t count,
                               tegula_error *err) {
  const tegula_plugin_host *host = dataset->call->library->host;
  int64_t number = -1;
  for (int64_t i = from; i < from + count; i++) {
    hdf5_place place;
    if (!hdf5_piece_seen(dataset, dataset->parts, dataset->sorted[i].piece, &w->outer, &place))
      continue;
    if (number < 0) FORWARD(new_late(dataset, w, from, count, &number, err));
    FORWARD(host->add_late(dataset->call->builder, number, place.lo, place.hi, err));
  }
  return TEGULA_OK;
}

tegula_status hdf5_late_emit(hdf5_dataset *dataset, const hdf5_place *outer,
                             const hdf5_sorted *sorted, int64_t count, tegula_error *err) {
  wanted *w = keep(dataset) ? malloc(sizeof *w) : NULL;
  RETURN_IF(!w, hdf5_out_of_memory(dataset->call->library, err));
  *w = (wanted){1, dataset->kept, *outer};
  dataset->kept->references++;
  tegula_status status = TEGULA_OK;
  for (int64_t from = 0, to; status == TEGULA_OK && from < count; from = to) {
    to = from + 1;
    if (hdf5_sorted_here(&sorted[from])) continue;
    while (to < count && same_file(&sorted[from], &sorted[to])) to++;
    status = emit_file(dataset, w, from, to - from, err);
  }
  forget_wanted(w);
  return status;
}
