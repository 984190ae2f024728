/* What must be the same on all ranks of a tiling and of a dataset.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "dataset/dataset.h"

void tegula__call_settings(tegula__call *call, const tegula_setting *settings, int32_t count) {
  tegula__call_mix(call, &count, sizeof count);
  for (int32_t i = 0; settings != NULL && i < count; i++) {
    const char *texts[] = {settings[i].key, settings[i].value};
    for (int k = 0; k < 2; k++)
      if (texts[k] != NULL) tegula__call_mix(call, texts[k], strlen(texts[k]) + 1);
  }
}

void tegula__call_tiling(tegula__call *call, const tegula_tiling *tiling, tegula_dtype dtype) {
  char shape[TEGULA__SHAPE_TEXT], tile[TEGULA__SHAPE_TEXT], text[TEGULA_DTYPE_TEXT];
  size_t axes = (size_t)tiling->ndim;
  tegula__shape_format(tiling->shape, tiling->ndim, shape);
  tegula_dtype_format(dtype, text);
  tegula__call_add(call, "the array", "%s %s", text, shape);
  tegula__call_mix(call, tiling->shape, axes * sizeof *tiling->shape);
  if (tiling->boxes == NULL) {
    tegula__shape_format(tiling->tile, tiling->ndim, tile);
    tegula__call_add(call, "the tiling", "%lld tiles of shape %s", (long long)tiling->count, tile);
    tegula__call_mix(call, tiling->tile, axes * sizeof *tiling->tile);
    return;
  }
  tegula__call_add(call, "the tiling", "%lld boxes", (long long)tiling->count);
  tegula__call_mix(call, tiling->boxes, (size_t)tiling->count * 2 * axes * sizeof *tiling->boxes);
  if (tiling->owners != NULL)
    tegula__call_mix(call, tiling->owners, (size_t)tiling->count * sizeof *tiling->owners);
}

void tegula__call_dataset(tegula__call *call, const tegula_dataset *dataset) {
  const tegula__manifest *manifest = &dataset->manifest;
  char shape[TEGULA__SHAPE_TEXT], text[TEGULA_DTYPE_TEXT];
  tegula__shape_format(manifest->shape, manifest->ndim, shape);
  tegula_dtype_format(manifest->dtype, text);
  tegula__call_add(call, "the dataset", "%.60s %s %s from %lld files",
                   manifest->name != NULL ? manifest->name : "", text, shape,
                   (long long)manifest->file_count);
  tegula__call_mix(call, manifest->shape, (size_t)manifest->ndim * sizeof *manifest->shape);
}

/* What each rank has found out for itself must be the same: how many steps a call has depends on
 * it. */
void tegula__call_view(tegula__call *call, const tegula_dataset *view) {
  const tegula__manifest *manifest = &view->manifest;
  int64_t chunks = 0;
  for (int64_t i = 0; i < manifest->grid_count; i++) chunks += manifest->grids[i]->count;
  tegula__call_add(call, "the files", "%lld files, %lld parts, %lld chunks",
                   (long long)manifest->file_count, (long long)manifest->part_count,
                   (long long)chunks);
  for (int64_t i = 0; i < manifest->file_count; i++)
    tegula__call_mix(call, &manifest->files[i].stamp.size, sizeof manifest->files[i].stamp.size);
}
