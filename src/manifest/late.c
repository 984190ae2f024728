/* Late parts: found out when they are wanted, and put into the manifest that a load is planned
 * with.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A manifest stays as it is. What was found out of a late part is kept with it, once for all; a
 * view is a manifest of its own that shows it. */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "manifest/manifest_priv.h"

void tegula__late_mark(const tegula__manifest *manifest, const int64_t *lo, const int64_t *hi,
                       bool *wanted) {
  int64_t first, last, from[TEGULA_MAX_DIMS], to[TEGULA_MAX_DIMS];
  tegula__manifest_find(manifest, manifest->ndim > 0 ? lo[0] : 0, manifest->ndim > 0 ? hi[0] : 1,
                        &first, &last);
  for (int64_t i = first; i < last; i++) {
    const tegula__part *part = &manifest->parts[i];
    if (part->kind == TEGULA__PART_LATE && !wanted[part->late->number])
      wanted[part->late->number] =
          tegula__box_intersect(manifest->ndim, part->lo, part->hi, lo, hi, from, to);
  }
}

/* ---- finding out ---- */

/* What counts from the start of its shard, from the start of the joined array. */
static void shift_rows(tegula__manifest *found, int64_t row) {
  if (found->ndim == 0) return;
  for (int64_t i = 0; i < found->part_count; i++) {
    int64_t *lo = (int64_t *)found->parts[i].lo; /* its own until it is finished */
    lo[0] += row;
    lo[found->ndim] += row;
  }
  for (int64_t i = 0; i < found->reader_count; i++) found->readers[i]->row += row;
}

static tegula_status find_out(const tegula__manifest *manifest, const tegula__late *late,
                              const struct tegula__store *store, const tegula__file *from,
                              tegula__manifest *out, tegula_error *err) {
  tegula__manifest_init(out);
  out->dtype = manifest->dtype;
  out->ndim = manifest->ndim;
  out->format = manifest->format;
  out->name = manifest->name;
  memcpy(out->shape, manifest->shape, sizeof out->shape);
  FORWARD(late->resolve(late, store, from, out, err));
  shift_rows(out, late->row);
  return tegula__manifest_finish_late(out, manifest, late, err);
}

tegula_status tegula__late_resolve(const tegula__manifest *manifest, tegula__late *late,
                                   const struct tegula__store *store, const tegula__file *from,
                                   tegula_error *err) {
  tegula_status status = TEGULA_OK;
  pthread_mutex_lock(&late->lock);
  tegula__manifest *found = late->found == NULL ? malloc(sizeof *found) : NULL;
  if (late->found == NULL)
    status = found != NULL ? find_out(manifest, late, store, from, found, err)
                           : tegula__out_of_memory(err, sizeof *found);
  if (status == TEGULA_OK && found != NULL) late->found = found;
  pthread_mutex_unlock(&late->lock);
  if (status == TEGULA_OK) return TEGULA_OK;
  if (found != NULL) tegula__manifest_free(found);
  free(found);
  return status;
}

/* ---- views ---- */

/* A view that is being made. */
typedef struct viewing {
  tegula__manifest *out;
  /* those of late parts, under the view's numbers of files; all but these are others' */
  tegula__grid *grids;
  int64_t grid_count;
  void *known;      /* a tree of the files that are in the table */
  int64_t *numbers; /* in the view, of the files of one late part */
} viewing;

/* The same name, and the same file under it. */
static int compare_files(const void *a, const void *b) {
  const tegula__file *x = a, *y = b;
  int names = strcmp(x->path, y->path);
  return names != 0 ? names : memcmp(&x->stamp, &y->stamp, sizeof x->stamp);
}

static tegula_status add_file(viewing *v, const tegula__file *file, int64_t *number,
                              tegula_error *err) {
  tegula__file *place = &v->out->files[v->out->file_count];
  *place = (tegula__file){.path = strdup(file->path), .stamp = file->stamp, .frame = file->frame};
  tegula__file **found = place->path != NULL ? tsearch(place, &v->known, compare_files) : NULL;
  if (found == NULL || *found != place) free(place->path);
  if (found == NULL) return tegula__out_of_memory(err, (int64_t)strlen(file->path));
  *number = *found - v->out->files;
  v->out->file_count += *found == place;
  return TEGULA_OK;
}

static tegula_status add_found(viewing *v, const tegula__manifest *found, tegula_error *err) {
  tegula__manifest *out = v->out;
  const tegula__grid *first = v->grids + v->grid_count;
  for (int64_t i = 0; i < found->file_count; i++)
    FORWARD(add_file(v, &found->files[i], &v->numbers[i], err));
  for (int64_t i = 0; i < found->grid_count; i++) {
    tegula__grid *grid = &v->grids[v->grid_count++];
    *grid = *found->grids[i];
    grid->file = v->numbers[grid->file];
    out->grids[out->grid_count++] = grid;
  }
  for (int64_t i = 0; i < found->reader_count; i++)
    out->readers[out->reader_count++] = found->readers[i];
  int64_t number = 0; /* parts mostly follow the order of their grids */
  for (int64_t i = 0; i < found->part_count; i++) {
    tegula__part part = found->parts[i];
    if (part.file >= 0) part.file = v->numbers[part.file];
    if (part.grid != NULL) {
      while (found->grids[number] != part.grid) number = (number + 1) % found->grid_count;
      part.grid = first + number;
    }
    out->parts[out->part_count++] = part;
  }
  return TEGULA_OK;
}

/* Room for the manifest and all that was found. */
static tegula_status make_room(viewing *v, const tegula__manifest *manifest, const bool *wanted,
                               tegula_error *err) {
  tegula__manifest *out = v->out;
  int64_t files = manifest->file_count, parts = manifest->part_count, grids = 0,
          readers = manifest->reader_count, most = 0;
  for (int64_t i = 0; i < manifest->late_count; i++) {
    if (!wanted[i]) continue;
    const tegula__manifest *found = manifest->lates[i]->found;
    files += found->file_count;
    parts += found->part_count;
    grids += found->grid_count;
    readers += found->reader_count;
    most = tegula__max(most, found->file_count);
  }
  /* one more is looked at before it is known */
  out->files = tegula__realloc_array(NULL, files + 1, sizeof *out->files);
  out->parts = tegula__realloc_array(NULL, tegula__max(1, parts), sizeof *out->parts);
  out->grids = tegula__realloc_array(NULL, grids + manifest->grid_count + 1, sizeof *out->grids);
  out->readers = tegula__realloc_array(NULL, tegula__max(1, readers), sizeof *out->readers);
  v->numbers = tegula__realloc_array(NULL, tegula__max(1, most), sizeof *v->numbers);
  v->grids = tegula__realloc_array(NULL, tegula__max(1, grids), sizeof *v->grids);
  FORWARD(tegula__manifest_keep(out, v->grids, err));
  bool good = out->files != NULL && out->parts != NULL && out->grids != NULL &&
              out->readers != NULL && v->numbers != NULL;
  return good ? TEGULA_OK : tegula__out_of_memory(err, parts * (int64_t)sizeof *out->parts);
}

static tegula_status fill_view(viewing *v, const tegula__manifest *manifest,
                               const tegula__file *files, const bool *wanted, tegula_error *err) {
  tegula__manifest *out = v->out;
  int64_t number;
  FORWARD(make_room(v, manifest, wanted, err));
  out->descr = tegula__strdup(manifest->descr);
  if (manifest->descr != NULL && out->descr == NULL)
    return tegula__out_of_memory(err, (int64_t)strlen(manifest->descr));
  for (int64_t i = 0; i < manifest->file_count; i++) { /* all of them, in their order */
    FORWARD(add_file(v, &files[i], &number, err));
    if (number == i) continue;
    out->files[out->file_count] = (tegula__file){
        .path = strdup(files[i].path), .stamp = files[i].stamp, .frame = files[i].frame};
    if (out->files[out->file_count++].path == NULL)
      return tegula__out_of_memory(err, (int64_t)strlen(files[i].path));
  }
  for (int64_t i = 0; i < manifest->grid_count; i++)
    out->grids[out->grid_count++] = manifest->grids[i];
  for (int64_t i = 0; i < manifest->reader_count; i++)
    out->readers[out->reader_count++] = manifest->readers[i];
  for (int64_t i = 0; i < manifest->part_count; i++)
    if (manifest->parts[i].kind != TEGULA__PART_LATE)
      out->parts[out->part_count++] = manifest->parts[i];
  for (int64_t i = 0; i < manifest->late_count; i++)
    if (wanted[i]) FORWARD(add_found(v, manifest->lates[i]->found, err));
  tegula__manifest_sort(out);
  return tegula__manifest_reach(out, err);
}

static void leave(void *item) { (void)item; }

tegula_status tegula__manifest_view(const tegula__manifest *manifest, const tegula__file *files,
                                    const bool *wanted, tegula__manifest *out, tegula_error *err) {
  tegula__manifest_init(out);
  out->borrows = true;
  out->dtype = manifest->dtype;
  out->ndim = manifest->ndim;
  out->format = manifest->format;
  out->name = manifest->name;
  out->fill = manifest->fill;
  memcpy(out->shape, manifest->shape, sizeof out->shape);
  viewing v = {.out = out};
  tegula_status status = fill_view(&v, manifest, files, wanted, err);
  tdestroy(v.known, leave);
  free(v.numbers);
  if (status != TEGULA_OK) tegula__manifest_free(out);
  return status;
}

bool tegula__view_holds(const tegula__manifest *view, const int64_t *lo, const int64_t *hi) {
  int64_t first, last, from[TEGULA_MAX_DIMS], to[TEGULA_MAX_DIMS],
      left = tegula__box_count(view->ndim, lo, hi);
  if (left == 0) return true;
  tegula__manifest_find(view, view->ndim > 0 ? lo[0] : 0, view->ndim > 0 ? hi[0] : 1, &first,
                        &last);
  for (int64_t i = first; i < last; i++)
    if (tegula__box_intersect(view->ndim, view->parts[i].lo, view->parts[i].hi, lo, hi, from, to))
      left -= tegula__box_count(view->ndim, from, to);
  return left == 0;
}
