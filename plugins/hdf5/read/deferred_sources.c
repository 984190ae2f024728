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

#include "read/vds.h"

/* What a place wants of it; counted. */
typedef struct wanted {
  int64_t references;
  hdf5_kept *kept;
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

/* ---- late parts ---- */

static tegula_status resolve(void *state, tegula_plugin_builder *builder, tegula_error *err) {
  const late *l = state;
  hdf5_kept *k = l->wanted->kept;
  hdf5_call call = {.library = k->file.library,
                    .builder = builder,
                    .array_item = (size_t)hdf5_type_bytes(&k->array.type),
                    .inner = k->array.type.inner,
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
  hdf5_kept_forget(w->kept);
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
  int64_t number = -1;
  for (int64_t i = from; i < from + count; i++) {
    hdf5_place place;
    if (!hdf5_piece_seen(dataset, dataset->parts, dataset->sorted[i].piece, &w->outer, &place))
      continue;
    if (number < 0) FORWARD(new_late(dataset, w, from, count, &number, err));
    FORWARD(hdf5_tell_late(dataset->call, number, &place, err));
  }
  return TEGULA_OK;
}

tegula_status hdf5_late_emit(hdf5_dataset *dataset, const hdf5_place *outer,
                             const hdf5_sorted *sorted, int64_t count, tegula_error *err) {
  wanted *w = hdf5_late_keep(dataset) ? malloc(sizeof *w) : NULL;
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
