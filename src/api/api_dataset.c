/* The public face of datasets: opening, and information.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "api/api.h"
#include "base/frame.h"
#include "codec/codec.h"
#include "dataset/selection.h"
#include "save/save_later.h"

tegula_status tegula_dataset_open(tegula_context *context, const char *path,
                                  const tegula_open_options *options, tegula_dataset **out,
                                  tegula_error *err) {
  return tegula__open_any(context, &path, 1, options, out, err);
}

tegula_status tegula_dataset_open_list(tegula_context *context, const char *const *paths,
                                       size_t count, const tegula_open_options *options,
                                       tegula_dataset **out, tegula_error *err) {
  return tegula__open_any(context, paths, count, options, out, err);
}

/* The vectors of a selection, completed. */
static tegula_status subset_of(const tegula__manifest *manifest, const tegula_selection *given,
                               tegula__subset *out, tegula_error *err) {
  bool vectors = given->lo != NULL || given->hi != NULL || given->step != NULL;
  if (vectors && given->ndim != manifest->ndim)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "the selection has %d axes, the dataset %d", given->ndim, manifest->ndim);
  tegula__subset_whole(manifest, out);
  for (int32_t k = 0; k < manifest->ndim; k++) {
    if (given->lo != NULL) out->lo[k] = given->lo[k];
    if (given->hi != NULL) out->hi[k] = given->hi[k];
    if (given->step != NULL) out->step[k] = given->step[k];
  }
  return TEGULA_OK;
}

tegula_status tegula_dataset_select(const tegula_dataset *dataset,
                                    const tegula_selection *selection, tegula_dataset **out,
                                    tegula_error *err) {
  tegula_selection local;
  tegula__subset subset;
  CHECK_ARGUMENT(dataset != NULL && selection != NULL && out != NULL,
                 "the dataset, the selection or the place for the result is NULL");
  tegula_selection_init(&local);
  FORWARD(tegula__options_copy(&local, sizeof local, FIRST_SELECTION, selection, "tegula_selection",
                               err));
  FORWARD(subset_of(&dataset->manifest, &local, &subset, err));
  if (local.field != NULL)
    return tegula__dataset_select_field(dataset, &subset, local.field, out, err);
  return tegula__dataset_select(dataset, &subset, out, err);
}

tegula_status tegula_find_files(const char *path, tegula_path_fn visit, void *state,
                                tegula_error *err) {
  CHECK_ARGUMENT(path != NULL && visit != NULL, "the path or the function to be called is NULL");
  tegula__paths found;
  tegula_error problem;
  FORWARD(tegula__paths_find_all(path, &found, &problem, err));
  tegula_status status = TEGULA_OK;
  for (int64_t i = 0; i < found.count && status == TEGULA_OK; i++)
    status = visit(state, found.items[i], err);
  tegula__paths_free(&found);
  if (status != TEGULA_OK || problem.status == TEGULA_OK) return status;
  if (err != NULL) *err = problem;
  return problem.status;
}

/* Chunks and bytes in the files. A grid that several parts refer to counts once. */
static void count_stored(const tegula__manifest *manifest, tegula_dataset_info_t *info) {
  for (int64_t i = 0; i < manifest->part_count; i++) {
    const tegula__part *part = &manifest->parts[i];
    if (!tegula__part_contiguous(part) && part->kind != TEGULA__PART_READ) continue;
    info->chunks++;
    info->stored_bytes +=
        tegula__box_count(manifest->ndim, part->lo, part->hi) * manifest->dtype.item_size;
  }
  for (int64_t i = 0; i < manifest->grid_count; i++)
    for (int64_t k = 0; k < manifest->grids[i]->count && !manifest->grids[i]->slices; k++) {
      info->chunks += manifest->grids[i]->chunks[k].length != 0;
      info->stored_bytes += manifest->grids[i]->chunks[k].length;
    }
}

tegula_status tegula_dataset_info(const tegula_dataset *dataset, tegula_dataset_info_t *out,
                                  tegula_error *err) {
  CHECK_ARGUMENT(dataset != NULL && out != NULL,
                 "the dataset or the place for its information is NULL");
  dataset = tegula__dataset_known(dataset);
  const tegula__manifest *manifest = &dataset->manifest;
  tegula_dataset_info_t info = {.dtype = manifest->dtype,
                                .ndim = manifest->ndim,
                                .files = manifest->file_count,
                                .format = manifest->format,
                                .name = manifest->name,
                                .descr = manifest->descr,
                                .sources = manifest->late_count};
  memcpy(info.shape, manifest->shape, sizeof info.shape);
  /* finish has checked it */
  tegula__shape_bytes(manifest->shape, manifest->ndim, manifest->dtype.item_size, &info.bytes);
  count_stored(manifest, &info);
  const tegula__part *part = tegula__storage_in_chunks(manifest);
  if (part != NULL && part->step == NULL) info.chunk = part->chunk;
  info.codecs = dataset->codecs != NULL ? dataset->codecs : "";
  info.fill = manifest->fill;
  return tegula__info_copy(out, sizeof info, FIRST_DATASET_INFO, &info, "tegula_dataset_info_t",
                           err);
}

/* Where the first stored byte of a part is; -1 when nothing of it is. */
static int64_t first_offset(const tegula__manifest *manifest, const tegula__part *part) {
  const tegula__grid *grid = part->grid;
  if (grid == NULL) return tegula__frame_place(&manifest->files[part->file].frame, part->offset);
  for (int64_t i = 0; i < grid->count; i++)
    if (grid->chunks[i].length != 0) return (int64_t)grid->chunks[i].offset;
  return -1;
}

/* The rows of a file. Drivers give one part per file, in the same order; a manifest may speak of
 * several parts of one file, or of none. */
static void find_rows(const tegula__manifest *manifest, int64_t file, tegula_file_info *out) {
  bool usual = file < manifest->part_count && manifest->part_count == manifest->file_count &&
               tegula__part_file(&manifest->parts[file]) == file;
  int64_t first = usual ? file : 0, last = usual ? file + 1 : manifest->part_count;
  bool found = false;
  for (int64_t i = first; i < last; i++) {
    const tegula__part *part = &manifest->parts[i];
    if (tegula__part_file(part) != file) continue;
    int64_t lo = manifest->ndim > 0 ? part->lo[0] : 0, hi = manifest->ndim > 0 ? part->hi[0] : 1;
    if (!found) out->data_offset = first_offset(manifest, part);
    out->row_lo = found ? tegula__min(out->row_lo, lo) : lo;
    out->row_hi = found ? tegula__max(out->row_hi, hi) : hi;
    found = true;
  }
}

tegula_status tegula_dataset_file(const tegula_dataset *dataset, int64_t index,
                                  tegula_file_info *out, tegula_error *err) {
  CHECK_ARGUMENT(dataset != NULL && out != NULL,
                 "the dataset or the place for its information is NULL");
  const tegula__manifest *manifest = &tegula__dataset_known(dataset)->manifest;
  if (index < 0 || index >= manifest->file_count)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "file %lld was asked for, the dataset has %lld", (long long)index,
                        (long long)manifest->file_count);
  FORWARD(tegula__dataset_confirm(dataset, NULL, err));
  tegula_file_info info = {.path = manifest->files[index].path,
                           .size = manifest->files[index].stamp.size};
  find_rows(manifest, index, &info);
  return tegula__info_copy(out, sizeof info, FIRST_FILE_INFO, &info, "tegula_file_info", err);
}

tegula_status tegula_dataset_to_json(const tegula_dataset *dataset, const char *folder, char **out,
                                     tegula_error *err) {
  CHECK_ARGUMENT(dataset != NULL && out != NULL, "the dataset or the place for its text is NULL");
  FORWARD(tegula__dataset_confirm(dataset, NULL, err));
  const tegula__manifest_names names = {.codecs = tegula__codec_names()};
  tegula_dataset *view;
  FORWARD(tegula__dataset_view_all(dataset, NULL, NULL, &view, err));
  tegula_status status = tegula__manifest_write(&view->manifest, &names, folder, out, err);
  tegula_dataset_close(view);
  return status;
}

static tegula_status find_lost(const tegula__manifest *manifest, int64_t index, tegula_box *box,
                               tegula_error *why) {
  for (int64_t i = 0; i < manifest->part_count; i++) {
    const tegula__part *part = &manifest->parts[i];
    if (part->kind != TEGULA__PART_LOST || index-- > 0) continue;
    box->ndim = manifest->ndim;
    for (int32_t k = 0; k < manifest->ndim; k++) {
      box->lo[k] = part->lo[k];
      box->hi[k] = part->hi[k];
    }
    if (why != NULL) *why = *part->lost;
    return TEGULA_OK;
  }
  return TEGULA_END;
}

tegula_status tegula_dataset_lost(const tegula_dataset *dataset, int64_t index, tegula_box *box,
                                  tegula_error *why, tegula_error *err) {
  CHECK_ARGUMENT(dataset != NULL && box != NULL, "the dataset or the place for the box is NULL");
  CHECK_ARGUMENT(index >= 0, "the index is negative");
  tegula_dataset *view;
  FORWARD(tegula__dataset_view_all(dataset, NULL, NULL, &view, err));
  tegula_status status = find_lost(&view->manifest, index, box, why);
  tegula_dataset_close(view);
  return status;
}
