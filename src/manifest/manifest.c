/* A manifest: its beginning and end, and finding the parts of rows.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "manifest/manifest_priv.h"

static void late_free(tegula__late *late) {
  if (late == NULL) return;
  if (late->found != NULL) tegula__manifest_free(late->found); /* its readers may need the state */
  if (late->release != NULL) late->release(late->state);
  pthread_mutex_destroy(&late->lock);
  free(late->found);
  free(late->path);
  free(late);
}

void tegula__manifest_init(tegula__manifest *manifest) {
  *manifest = (tegula__manifest){.name = "", .format = ""};
}

void tegula__manifest_free(tegula__manifest *manifest) {
  /* not finished: each part owns its vectors */
  if (manifest->vectors == NULL && !manifest->borrows)
    for (int64_t i = 0; i < manifest->part_count; i++) free((void *)manifest->parts[i].lo);
  for (int64_t i = 0; i < manifest->file_count; i++) free(manifest->files[i].path);
  for (int64_t i = 0; i < manifest->grid_count && !manifest->borrows; i++)
    tegula__grid_free(manifest->grids[i]);
  for (int64_t i = 0; i < manifest->reader_count && !manifest->borrows; i++)
    tegula__reader_free(manifest->readers[i]);
  for (int64_t i = 0; i < manifest->late_count; i++) late_free(manifest->lates[i]);
  for (int64_t i = 0; i < manifest->kept_count; i++) free(manifest->kept[i]);
  free(manifest->grids);
  free(manifest->readers);
  free(manifest->lates);
  free(manifest->kept);
  free(manifest->reach);
  free(manifest->vectors);
  free(manifest->parts);
  free(manifest->files);
  free(manifest->descr);
  free(manifest->refused);
  tegula__manifest_init(manifest);
}

void tegula__manifest_find(const tegula__manifest *manifest, int64_t lo, int64_t hi, int64_t *first,
                           int64_t *last) {
  *first = 0;
  *last = manifest->part_count;
  if (manifest->ndim == 0) return;
  int64_t low = 0, high = manifest->part_count;
  while (low < high) { /* the first part that ends behind lo */
    int64_t middle = low + (high - low) / 2;
    if (manifest->reach[middle] <= lo)
      low = middle + 1;
    else
      high = middle;
  }
  *first = low;
  high = manifest->part_count;
  while (low < high) { /* the first part that starts at hi or later */
    int64_t middle = low + (high - low) / 2;
    if (manifest->parts[middle].lo[0] < hi)
      low = middle + 1;
    else
      high = middle;
  }
  *last = low;
}
