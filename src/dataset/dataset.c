/* Datasets: what they hold, from the end of their description to their close.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "codec/codec.h"
#include "dataset/dataset_priv.h"
#include "dataset/selection.h"

/* Where the dataset's operations meet others: what it was opened from, or the files that those
 * speak of. */
static tegula_status choose_places(tegula_dataset *dataset, const tegula__places *opened,
                                   bool others, tegula_error *err) {
  const tegula__manifest *manifest = &dataset->manifest;
  dataset->places = *opened;
  if (!others && manifest->late_count == 0) return TEGULA_OK;
  int64_t count = manifest->file_count + manifest->late_count;
  const char **paths = tegula__realloc_array(NULL, count, sizeof *paths);
  if (paths == NULL) return tegula__out_of_memory(err, count * (int64_t)sizeof *paths);
  for (int64_t i = 0; i < manifest->file_count; i++) paths[i] = manifest->files[i].path;
  for (int64_t i = 0; i < manifest->late_count; i++)
    paths[manifest->file_count + i] = manifest->lates[i]->path;
  tegula_status status = tegula__places_of(paths, count, &dataset->places, err);
  free(paths);
  return status;
}

tegula_status tegula__dataset_name_codecs(tegula_dataset *dataset, tegula_error *err) {
  const tegula__part *part = tegula__storage_in_chunks(&dataset->manifest);
  tegula__buffer text;
  tegula__buffer_init(&text, 4096);
  bool good = tegula__buffer_reserve(&text, 1);
  if (part != NULL)
    good = good && tegula__chain_format(part->grid->filters, part->grid->filter_count, &text);
  good = good && tegula__buffer_append(&text, "", 1);
  if (!good) {
    tegula__buffer_free(&text);
    return tegula__out_of_memory(err, 4096);
  }
  dataset->codecs = text.data;
  return TEGULA_OK;
}

/* How it is found again in its file. */
static tegula_status note_request(tegula_dataset *dataset, const tegula__describe_options *options,
                                  tegula_error *err) {
  dataset->locked = options->locked;
  dataset->asked = tegula__strdup(options->dataset);
  bool good = options->dataset == NULL || dataset->asked != NULL;
  return good ? TEGULA_OK : tegula__out_of_memory(err, (int64_t)strlen(options->dataset));
}

static tegula_status views_create(tegula_dataset *dataset, tegula_error *err) {
  const tegula__manifest *manifest = &dataset->manifest;
  RETURN_IF(manifest->late_count == 0, TEGULA_OK);
  tegula__views *views = calloc(1, sizeof *views);
  tegula__file *files = tegula__realloc_array(NULL, manifest->file_count, sizeof *files);
  if (views == NULL || files == NULL) {
    free(views);
    free(files);
    return tegula__out_of_memory(err, manifest->file_count * (int64_t)sizeof *files);
  }
  memcpy(files, manifest->files, (size_t)manifest->file_count * sizeof *files);
  views->files = files;
  pthread_mutex_init(&views->lock, NULL);
  dataset->views = views;
  return TEGULA_OK;
}

tegula_status tegula__dataset_finish(tegula_dataset *dataset, const tegula__places *places,
                                     const tegula__describe_options *options, bool others,
                                     tegula_error *err) {
  FORWARD(note_request(dataset, options, err));
  FORWARD(tegula__unread_create(&dataset->manifest, &dataset->unread, err));
  FORWARD(tegula__dataset_name_codecs(dataset, err));
  FORWARD(views_create(dataset, err));
  return choose_places(dataset, places, others, err);
}

static void views_destroy(tegula__views *views) {
  if (views == NULL) return;
  tegula_dataset_close(views->all);
  tegula_dataset_close(views->recent);
  pthread_mutex_destroy(&views->lock);
  free(views->in_recent);
  free(views->files);
  free(views);
}

void tegula__dataset_free_content(tegula_dataset *dataset) {
  views_destroy(dataset->views);
  if (dataset->selected == NULL) tegula__file_set_destroy(dataset->files);
  tegula__unread_destroy(dataset->unread);
  if (dataset->selected == NULL)
    tegula__manifest_free(&dataset->manifest);
  else
    tegula__subset_manifest_free(&dataset->manifest);
  free(dataset->codecs);
  free(dataset->opened);
  free(dataset->asked);
}

tegula_status tegula__dataset_of_manifest(tegula_context *context, tegula__manifest *manifest,
                                          tegula_dataset **out, tegula_error *err) {
  tegula_dataset *dataset = calloc(1, sizeof *dataset);
  tegula_status status = dataset == NULL ? tegula__out_of_memory(err, sizeof *dataset) : TEGULA_OK;
  if (dataset == NULL) {
    tegula__manifest_free(manifest);
    return status;
  }
  dataset->manifest = *manifest;
  manifest = &dataset->manifest;
  dataset->opened = strdup(manifest->files[0].path);
  if (dataset->opened == NULL)
    status = tegula__out_of_memory(err, (int64_t)strlen(manifest->files[0].path));
  if (status == TEGULA_OK)
    status = tegula__file_set_create(context->handles, manifest->files, manifest->file_count, false,
                                     &dataset->files, err);
  if (status == TEGULA_OK) status = tegula__dataset_name_codecs(dataset, err);
  atomic_init(&dataset->references, 1);
  dataset->context = tegula__context_retain(context);
  if (status == TEGULA_OK)
    *out = dataset;
  else
    tegula_dataset_close(dataset);
  return status;
}

tegula_dataset *tegula__dataset_retain(const tegula_dataset *dataset) {
  tegula_dataset *shared = (tegula_dataset *)dataset; /* only the count changes */
  atomic_fetch_add(&shared->references, 1);
  return shared;
}

void tegula_dataset_close(tegula_dataset *dataset) {
  if (dataset == NULL || atomic_fetch_sub(&dataset->references, 1) != 1) return;
  uint64_t owner = atomic_load(&dataset->cache_owner);
  if (owner != 0) tegula__block_cache_forget(dataset->context->cache, owner);
  if (dataset->selected == NULL) tegula__places_free(&dataset->places);
  tegula__dataset_free_content(dataset);
  tegula_dataset_close(dataset->source);
  tegula_dataset_close(dataset->selected);
  tegula__context_release(dataset->context);
  free(dataset);
}

tegula_status tegula__dataset_confirm(const tegula_dataset *dataset, tegula__io_counts *counts,
                                      tegula_error *err) {
  tegula__io_counts uncounted = {0};
  return tegula__unread_check_all(dataset->unread, dataset->context->engine.pool, dataset->files,
                                  counts != NULL ? counts : &uncounted, err);
}
