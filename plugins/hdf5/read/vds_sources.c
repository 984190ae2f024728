/* The sources of virtual datasets: opened one after the other, each once, and closed again.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * libhdf5 would keep all of them open, and fill what it cannot open without a word. A source is
 * looked for in the folder of the virtual file and nowhere else. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "read/vds.h"

enum { MOST_DEPTH = 32 };

void hdf5_source_close(hdf5_call *call, hdf5_source *s) {
  if (s->dataset.call) hdf5_dataset_close(&s->dataset);
  hdf5_found_free(call, &s->found);
  hdf5_file_release(call, s->file);
  *s = (hdf5_source){.found = {.id = -1}};
}

/* A file of that name where it was not looked for: the user will want to know. */
static void tell_decoy(hdf5_dataset *dataset, const char *name, const char *path,
                       tegula_status status, tegula_error *err) {
  const tegula_plugin_host *host = dataset->call->library->host;
  const char *slash = strrchr(name, '/');
  char *beside = name[0] == '/' ? hdf5_beside(dataset->file->path, slash + 1) : strdup(name);
  if (beside && strcmp(beside, path) != 0 && access(beside, F_OK) == 0)
    host->hint(
        err, status,
        "\"%s\" has that name too, but is not what the virtual dataset names: it was not taken",
        beside);
  else
    host->hint(
        err, status,
        "names are resolved from the folder of the virtual file; were its files moved or deleted?");
  free(beside);
}

/* Opens the file and finds the dataset. What fails here is a source that is lost. */
tegula_status hdf5_source_find(hdf5_dataset *dataset, const hdf5_mapping *mapping, hdf5_source *out,
                               tegula_error *err) {
  hdf5_call *call = dataset->call;
  *out = (hdf5_source){.found = {.id = -1}};
  bool same = strcmp(mapping->file, ".") == 0;
  char *path = same ? strdup(dataset->file->path) : hdf5_resolve(dataset->file, mapping->file);
  RETURN_IF(!path, hdf5_out_of_memory(call->library, err));
  tegula_status status = hdf5_file_open(call, path, &out->file, err);
  if (status == TEGULA_NOT_FOUND && !same) tell_decoy(dataset, mapping->file, path, status, err);
  free(path);
  FORWARD(status);
  status = hdf5_find(call, out->file, mapping->dataset, &out->found, err);
  if (status != TEGULA_OK) hdf5_source_close(call, out);
  return status;
}

/* Reads what the source is. What fails here is an error. */
tegula_status hdf5_source_read(hdf5_dataset *dataset, hdf5_source *s, tegula_error *err) {
  hdf5_call *call = dataset->call;
  hdf5_ancestor self = {
      .next = call->ancestors, .canonical = dataset->file->canonical, .name = dataset->name};
  int depth = 0;
  for (const hdf5_ancestor *a = &self; a; a = a->next, depth++)
    if (depth == MOST_DEPTH || (strcmp(a->name, s->found.name) == 0 &&
                                strcmp(a->canonical, s->found.file->canonical) == 0))
      return call->library->host->fail(
          err, TEGULA_CORRUPT, dataset->file->path, -1,
          depth == MOST_DEPTH
              ? "virtual datasets lie in one another over more than 32 levels at \"%s\" in \"%s\""
              : "the virtual dataset \"%s\" in \"%s\" is a source of itself",
          s->found.name, s->found.file->path);
  call->ancestors = &self;
  tegula_status status =
      hdf5_dataset_open(call, s->found.file, s->found.id, s->found.name, &s->dataset, err);
  call->ancestors = self.next;
  if (status != TEGULA_OK) s->dataset.call = NULL;
  return status;
}
