/* What a virtual dataset has in memory: it is let go of with the dataset, or kept for late parts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "read/vds.h"

void hdf5_mapping_free(hdf5_mapping *mapping) {
  free(mapping->file);
  free(mapping->dataset);
  hdf5_selection_free(&mapping->to);
  hdf5_selection_free(&mapping->from);
}

/* ---- what is kept ---- */

void hdf5_kept_forget(hdf5_kept *k) {
  if (--k->references > 0) return;
  hdf5_library *library = k->file.library;
  if (k->dataset.type_id >= 0) library->call.H5Tclose(k->dataset.type_id);
  if (k->array.type_id >= 0) library->call.H5Tclose(k->array.type_id);
  hdf5_record_release(k->dataset.type.record);
  hdf5_record_release(k->array.type.record);
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

/* The dataset lets go of dataset->kept. */
static void late_forget(hdf5_dataset *dataset) {
  hdf5_kept_forget(dataset->kept);
  dataset->kept = NULL;
  dataset->mappings = NULL;
  dataset->mapping_count = 0;
  dataset->parts = NULL;
  dataset->sorted = NULL;
}

static unsigned char *copy_fill(const hdf5_dataset *dataset) {
  size_t size = (size_t)hdf5_type_bytes(&dataset->like->type);
  unsigned char *fill = dataset->fill ? malloc(size) : NULL;
  return fill ? memcpy(fill, dataset->fill, size) : NULL;
}

static bool copy_ancestors(hdf5_kept *k, const hdf5_ancestor *from) {
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

bool hdf5_late_keep(hdf5_dataset *dataset) {
  hdf5_library *library = dataset->call->library;
  if (dataset->kept) return true;
  hdf5_kept *k = calloc(1, sizeof *k);
  RETURN_IF(!k, false);
  *k = (hdf5_kept){.references = 1, .dataset = *dataset};
  k->file = (hdf5_file){.library = library, .id = -1, .number = -1, .references = 1};
  k->file.path = strdup(dataset->file->path);
  k->file.canonical = strdup(dataset->file->canonical);
  k->array = (hdf5_dataset){.type = dataset->like->type,
                            .type_id = library->call.H5Tcopy(dataset->like->type_id)};
  hdf5_record_retain(k->array.type.record);
  hdf5_record_retain(k->dataset.type.record);
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

/* ---- the end ---- */

void hdf5_virtual_close(hdf5_dataset *dataset) {
  if (dataset->kept) late_forget(dataset);
  for (int64_t k = 0; k < dataset->mapping_count; k++) hdf5_mapping_free(&dataset->mappings[k]);
  free(dataset->mappings);
  dataset->mappings = NULL;
  dataset->mapping_count = 0;
  if (dataset->parts) free(dataset->parts->data);
  free(dataset->parts);
  free(dataset->sorted);
  dataset->parts = NULL;
  dataset->sorted = NULL;
}
