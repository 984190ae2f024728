/* Is the dataset that a copy replaces one that it is read from? Virtual datasets are followed to
 * their sources.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The target is a copy of a file that is read, byte for byte, so the same object has the same
 * address in both. */
#include <stdlib.h>
#include <string.h>

#include "read/vds.h"
#include "write/hdf5_write.h"

/* What is taken away. */
typedef struct taken {
  hdf5_call *call;
  const char *file, *name; /* the target, and the name in it */
  hdf5_object object;
} taken;

static bool is_taken(const taken *t, const hdf5_found *found) {
  hdf5_object object;
  if (strcmp(found->file->canonical, t->file) != 0) return false;
  if (strcmp(found->name, t->name) == 0) return true;
  return hdf5_object_of(t->call->library, found->id, &object) &&
         memcmp(&object, &t->object, sizeof object) == 0;
}

static bool same_source(const hdf5_mapping *a, const hdf5_mapping *b) {
  return strcmp(a->file, b->file) == 0 && strcmp(a->dataset, b->dataset) == 0;
}

static tegula_status look(const taken *t, hdf5_dataset *dataset, bool *found, tegula_error *err);

/* What cannot be opened is lost already. */
static tegula_status look_at_source(const taken *t, hdf5_dataset *dataset,
                                    const hdf5_mapping *mapping, bool *found, tegula_error *err) {
  hdf5_source source;
  tegula_error lost;
  if (hdf5_source_find(dataset, mapping, &source, &lost) != TEGULA_OK) return TEGULA_OK;
  *found = is_taken(t, &source.found);
  tegula_status status = TEGULA_OK;
  if (!*found && hdf5_source_read(dataset, &source, &lost) == TEGULA_OK &&
      source.dataset.layout == HDF5_VIRTUAL)
    status = look(t, &source.dataset, found, err);
  hdf5_source_close(t->call, &source);
  return status;
}

static tegula_status look(const taken *t, hdf5_dataset *dataset, bool *found, tegula_error *err) {
  hdf5_ancestor self = {
      .next = t->call->ancestors, .canonical = dataset->file->canonical, .name = dataset->name};
  tegula_status status = TEGULA_OK;
  t->call->ancestors = &self;
  for (int64_t k = 0; status == TEGULA_OK && k < dataset->mapping_count && !*found; k++)
    if (k == 0 || !same_source(&dataset->mappings[k], &dataset->mappings[k - 1]))
      status = look_at_source(t, dataset, &dataset->mappings[k], found, err);
  t->call->ancestors = self.next;
  return status;
}

static tegula_status look_at_origin(const taken *t, const hdf5_found *origin, bool *found,
                                    tegula_error *err) {
  hdf5_dataset dataset;
  FORWARD(hdf5_dataset_open(t->call, origin->file, origin->id, origin->name, &dataset, err));
  tegula_status status = dataset.layout == HDF5_VIRTUAL ? look(t, &dataset, found, err) : TEGULA_OK;
  hdf5_dataset_close(&dataset);
  return status;
}

/* Of one dataset whose elements are copied. */
static tegula_status spares_sources_of(const taken *t, hdf5_file *source, const char *name,
                                       const char *path, tegula_error *err) {
  const tegula_plugin_host *host = t->call->library->host;
  hdf5_found found;
  bool one = false;
  tegula_status status = hdf5_find(t->call, source, name, &found, err);
  if (status == TEGULA_OK) status = look_at_origin(t, &found, &one, err);
  if (status == TEGULA_OK && one)
    status = host->hint(err,
                        host->fail(err, TEGULA_INVALID_ARGUMENT, path, -1,
                                   "cannot copy \"%s\" in \"%s\" to \"%s\" in \"%s\": that would "
                                   "replace a source of what is copied",
                                   found.name, found.file->path, t->name, path),
                        "copy to another name, or to another file");
  hdf5_found_free(t->call, &found);
  return status;
}

tegula_status hdf5_save_spares_sources(hdf5_library *library, const tegula_plugin_layout *layout,
                                       hid_t old, const char *path, tegula_error *err) {
  const tegula_plugin_origin *origin = layout->origin;
  RETURN_IF(!origin || !origin->reads_target, TEGULA_OK);
  hdf5_call call = {.library = library, .builder = origin->builder};
  char *file = realpath(path, NULL);
  taken t = {.call = &call, .file = file, .name = layout->dataset};
  hdf5_file *source = NULL;
  RETURN_IF(!file, hdf5_out_of_memory(library, err));
  tegula_status status = hdf5_object_of(library, old, &t.object)
                             ? hdf5_file_open(&call, origin->path, &source, err)
                             : hdf5_failed(library, err, TEGULA_CORRUPT, path,
                                           "examine \"%s\" in \"%s\"", layout->dataset, path);
  if (status == TEGULA_OK) status = spares_sources_of(&t, source, origin->dataset, path, err);
  for (int64_t i = 0; status == TEGULA_OK && i < origin->other_count; i++)
    status = spares_sources_of(&t, source, origin->others[i], path, err);
  hdf5_file_release(&call, source);
  free(file);
  return status;
}
