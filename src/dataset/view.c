/* What a call needs to know of late parts is found out before anything is planned: the call then
 * works with a view, a dataset of its own.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A view has the files and parts of the dataset and of the late parts that are wanted. The last one
 * is kept for the next call, and one of all for good: what it says is borrowed by whoever asks for
 * information. Views borrow from their dataset and end before it. */
#include <stdlib.h>

#include "dataset/dataset_priv.h"

#define PROGRESS_SECONDS 0.05

/* One call's wish. */
typedef struct wish {
  const tegula_dataset *dataset;
  bool *wanted; /* an entry for each late part */
  int64_t count;
  const tegula_load_options *options; /* for progress; may be NULL */
  double next;                        /* when it is told again */
} wish;

const tegula_dataset *tegula__dataset_known(const tegula_dataset *dataset) {
  if (dataset->views == NULL) return dataset;
  pthread_mutex_lock(&dataset->views->lock);
  const tegula_dataset *known = dataset->views->all != NULL ? dataset->views->all : dataset;
  pthread_mutex_unlock(&dataset->views->lock);
  return known;
}

/* ---- finding out ---- */

static tegula_status go_on(wish *w, int64_t done, tegula_error *err) {
  const tegula_load_options *options = w->options;
  double now = tegula__now();
  if (options == NULL || options->progress == NULL || now < w->next) return TEGULA_OK;
  w->next = now + PROGRESS_SECONDS;
  int64_t bytes = 0;
  tegula__shape_bytes(w->dataset->manifest.shape, w->dataset->manifest.ndim,
                      w->dataset->manifest.dtype.item_size, &bytes);
  if (options->progress(options->progress_state, 0, bytes) == 0) return TEGULA_OK;
  return tegula__fail(err, TEGULA_CANCELLED, NULL, -1,
                      "cancelled after describing %lld of %lld sources", (long long)done,
                      (long long)w->count);
}

/* What is found out is what the files say that were described: they have not changed since. */
static tegula_status check_from(const wish *w, int64_t file, int64_t *checked,
                                tegula__io_counts *counts, tegula_error *err) {
  const tegula__file *from = &w->dataset->views->files[file];
  if (file == *checked) return TEGULA_OK;
  *checked = file;
  return tegula__io_unchanged(from->path, &from->stamp, counts, err);
}

static tegula_status resolve_each(wish *w, tegula__store *store, tegula__io_counts *counts,
                                  tegula_error *err) {
  const tegula_dataset *dataset = w->dataset;
  const tegula__manifest *manifest = &dataset->manifest;
  int64_t done = 0, checked = TEGULA__NO_FILE;
  for (int64_t i = 0; i < manifest->late_count; i++) {
    tegula__late *late = manifest->lates[i];
    if (!w->wanted[i]) continue;
    FORWARD(go_on(w, done++, err));
    FORWARD(check_from(w, late->file, &checked, counts, err));
    FORWARD(tegula__late_resolve(manifest, late, store, &dataset->views->files[late->file], err));
  }
  return TEGULA_OK;
}

/* All sources were opened before this: those that still have their names were there together, with
 * the files that speak of them. */
static tegula_status check_together(const wish *w, tegula__folders *folders,
                                    tegula__io_counts *counts, tegula_error *err) {
  const tegula__manifest *manifest = &w->dataset->manifest;
  int64_t checked = TEGULA__NO_FILE;
  if (!tegula__folders_used(folders)) return TEGULA_OK;
  for (int64_t i = 0; i < manifest->late_count; i++) {
    if (!w->wanted[i] || manifest->lates[i]->file == checked) continue;
    checked = manifest->lates[i]->file;
    const tegula__file *from = &w->dataset->views->files[checked];
    atomic_fetch_add(&counts->stats, 1);
    FORWARD(tegula__folders_check_file(folders, from->path, &from->stamp, err));
  }
  if (!tegula__folders_certain(folders)) FORWARD(tegula__folders_check_notes(folders, err));
  return tegula__folders_check_names(folders, err);
}

static tegula_status resolve_wanted(wish *w, tegula__io_counts *counts, tegula_error *err) {
  tegula__folders *folders = NULL;
  tegula__store store = {.state = NULL};
  tegula_status status;
  FORWARD_WITH(status, tegula__folders_create(&folders, err));
  FORWARD_WITH(status,
               tegula__store_create(w->dataset->context->handles, folders, counts, &store, err));
  FORWARD_WITH(status, resolve_each(w, &store, counts, err));
  status = check_together(w, folders, counts, err);
done:
  tegula__store_free(&store);
  tegula__folders_destroy(folders);
  return status;
}

/* ---- views ---- */

/* How the dataset is found again in its file. */
static tegula_status copy_request(const tegula_dataset *dataset, tegula_dataset *view,
                                  tegula_error *err) {
  view->locked = dataset->locked;
  view->opened = tegula__strdup(dataset->opened);
  view->asked = tegula__strdup(dataset->asked);
  bool good = (view->opened != NULL || dataset->opened == NULL) &&
              (view->asked != NULL || dataset->asked == NULL);
  return good ? TEGULA_OK : tegula__out_of_memory(err, 64);
}

static tegula_status make_view(const wish *w, tegula_dataset **out, tegula_error *err) {
  const tegula_dataset *dataset = w->dataset;
  tegula_dataset *view = calloc(1, sizeof *view);
  if (view == NULL) return tegula__out_of_memory(err, sizeof *view);
  atomic_init(&view->references, 1);
  tegula__manifest *manifest = &view->manifest;
  tegula_status status =
      tegula__manifest_view(&dataset->manifest, dataset->views->files, w->wanted, manifest, err);
  if (status == TEGULA_OK)
    status = tegula__file_set_create(dataset->context->handles, manifest->files,
                                     manifest->file_count, false, &view->files, err);
  if (status == TEGULA_OK) status = tegula__dataset_name_codecs(view, err);
  if (status == TEGULA_OK) status = copy_request(dataset, view, err);
  if (status == TEGULA_OK) {
    tegula__file_set_stamped(view->files);
    view->context = tegula__context_retain(dataset->context);
    *out = view;
    return TEGULA_OK;
  }
  tegula__file_set_destroy(view->files);
  tegula__manifest_free(manifest);
  free(view->codecs);
  free(view->opened);
  free(view->asked);
  free(view);
  return status;
}

/* One that is there; NULL: there is none with all that is wanted. */
static tegula_dataset *find_view(const wish *w) {
  tegula__views *views = w->dataset->views;
  pthread_mutex_lock(&views->lock);
  tegula_dataset *view = views->all != NULL ? views->all : views->recent;
  for (int64_t i = 0; view != NULL && view != views->all && i < w->dataset->manifest.late_count;
       i++)
    if (w->wanted[i] && !views->in_recent[i]) view = NULL;
  if (view != NULL) (void)tegula__dataset_retain(view);
  pthread_mutex_unlock(&views->lock);
  return view;
}

/* Keeps the view for later calls. The one that was kept lives as long as somebody works with it.
 * Takes w->wanted. */
static void keep_view(wish *w, tegula_dataset *view) {
  tegula__views *views = w->dataset->views;
  tegula_dataset *old;
  bool *rest = w->wanted;
  pthread_mutex_lock(&views->lock);
  bool all = w->count == w->dataset->manifest.late_count;
  if (views->all != NULL) { /* somebody was faster: what has been borrowed of it stays */
    old = NULL;
  } else if (all) {
    old = views->recent;
    views->recent = NULL;
    views->all = tegula__dataset_retain(view);
  } else {
    old = views->recent;
    rest = views->in_recent;
    views->in_recent = w->wanted;
    views->recent = tegula__dataset_retain(view);
  }
  pthread_mutex_unlock(&views->lock);
  free(rest);
  w->wanted = NULL;
  tegula_dataset_close(old);
}

static tegula_status view_of(wish *w, tegula__io_counts *counts, tegula_dataset **out,
                             tegula_error *err) {
  tegula__io_counts uncounted = {0};
  *out = find_view(w);
  if (*out != NULL) return TEGULA_OK;
  for (int64_t i = 0; i < w->dataset->manifest.late_count; i++) w->count += w->wanted[i];
  FORWARD(resolve_wanted(w, counts != NULL ? counts : &uncounted, err));
  FORWARD(make_view(w, out, err));
  keep_view(w, *out);
  return TEGULA_OK;
}

/* What a plan finds nothing for would be left as it was in memory. */
static tegula_status check_view(const tegula_dataset *view, const tegula__tile *tiles,
                                int64_t count, tegula_error *err) {
  for (int64_t i = 0; i < count; i++)
    if (!tegula__view_holds(&view->manifest, tiles[i].lo, tiles[i].hi))
      return tegula__fail(err, TEGULA_INTERNAL, NULL, -1, "tile %lld is not described to its end",
                          (long long)i);
  return TEGULA_OK;
}

static tegula_status start(const tegula_dataset *dataset, const tegula_load_options *options,
                           wish *out, tegula_error *err) {
  *out = (wish){.dataset = dataset,
                .options = options,
                .wanted = calloc((size_t)dataset->manifest.late_count, sizeof *out->wanted)};
  return out->wanted != NULL ? TEGULA_OK : tegula__out_of_memory(err, dataset->manifest.late_count);
}

tegula_status tegula__dataset_view(const tegula_dataset *dataset, const tegula__tile *tiles,
                                   int64_t count, const tegula_load_options *options,
                                   tegula__io_counts *counts, tegula_dataset **out,
                                   tegula_error *err) {
  wish w;
  if (dataset->views == NULL) {
    *out = tegula__dataset_retain(dataset);
    return TEGULA_OK;
  }
  FORWARD(start(dataset, options, &w, err));
  for (int64_t i = 0; i < count; i++)
    tegula__late_mark(&dataset->manifest, tiles[i].lo, tiles[i].hi, w.wanted);
  tegula_status status = view_of(&w, counts, out, err);
  free(w.wanted);
  if (status != TEGULA_OK) return status;
  status = check_view(*out, tiles, count, err);
  if (status != TEGULA_OK) tegula_dataset_close(*out);
  return status;
}

tegula_status tegula__dataset_view_all(const tegula_dataset *dataset,
                                       const tegula_load_options *options,
                                       tegula__io_counts *counts, tegula_dataset **out,
                                       tegula_error *err) {
  wish w;
  if (dataset->views == NULL) {
    *out = tegula__dataset_retain(dataset);
    return TEGULA_OK;
  }
  FORWARD(start(dataset, options, &w, err));
  for (int64_t i = 0; i < dataset->manifest.late_count; i++) w.wanted[i] = true;
  tegula_status status = view_of(&w, counts, out, err);
  free(w.wanted);
  return status;
}
