/* The table of files of a manifest that was joined from descriptions of one file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "manifest/manifest.h"

static int compare_paths(const void *a, const void *b, void *files) {
  int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
  int order = strcmp(((const tegula__file *)files)[i].path, ((const tegula__file *)files)[j].path);
  return order != 0 ? order : (i > j) - (i < j);
}

/* first[i]: the first entry with the path of entry i. `order` has room for as many. */
static void find_first(tegula__manifest *manifest, int64_t *order, int64_t *first) {
  for (int64_t i = 0; i < manifest->file_count; i++) order[i] = i;
  qsort_r(order, (size_t)manifest->file_count, sizeof *order, compare_paths, manifest->files);
  for (int64_t i = 0; i < manifest->file_count; i++) {
    bool same =
        i > 0 && strcmp(manifest->files[order[i - 1]].path, manifest->files[order[i]].path) == 0;
    first[order[i]] = same ? first[order[i - 1]] : order[i];
  }
}

static tegula_status check_stamps(const tegula__manifest *manifest, const int64_t *first,
                                  tegula_error *err) {
  for (int64_t i = 0; i < manifest->file_count; i++) {
    const tegula__file *file = &manifest->files[i];
    if (memcmp(&file->stamp, &manifest->files[first[i]].stamp, sizeof file->stamp) != 0)
      return tegula__fail(err, TEGULA_CHANGED, file->path, -1,
                          "\"%s\" changed while it was described", file->path);
  }
  return TEGULA_OK;
}

/* Keeps the first entry of each path; `numbers` becomes the place of each former entry. */
static void keep_first(tegula__manifest *manifest, int64_t *numbers) {
  int64_t kept = 0;
  for (int64_t i = 0; i < manifest->file_count; i++) {
    if (numbers[i] != i) {
      free(manifest->files[i].path);
      numbers[i] = numbers[numbers[i]];
      continue;
    }
    manifest->files[kept] = manifest->files[i];
    numbers[i] = kept++;
  }
  manifest->file_count = kept;
}

tegula_status tegula__manifest_merge_files(tegula__manifest *manifest, tegula_error *err) {
  int64_t count = manifest->file_count;
  int64_t *numbers = tegula__realloc_array(NULL, 2 * count + 1, sizeof *numbers);
  if (numbers == NULL) return tegula__out_of_memory(err, 2 * count * (int64_t)sizeof *numbers);
  find_first(manifest, numbers + count, numbers);
  tegula_status status = check_stamps(manifest, numbers, err);
  if (status == TEGULA_OK) {
    keep_first(manifest, numbers);
    for (int64_t i = 0; i < manifest->part_count; i++)
      if (manifest->parts[i].file >= 0) manifest->parts[i].file = numbers[manifest->parts[i].file];
    for (int64_t i = 0; i < manifest->grid_count; i++)
      manifest->grids[i]->file = numbers[manifest->grids[i]->file];
    for (int64_t i = 0; i < manifest->late_count; i++)
      manifest->lates[i]->file = numbers[manifest->lates[i]->file];
  }
  free(numbers);
  return status;
}
