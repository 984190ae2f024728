/* The entry: describe datasets, list all.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library/libhdf5.h"
#include "read/hdf5_read.h"
#include "write/hdf5_write.h"

static tegula_status plugin_open(const tegula_plugin_host *host,
                                 const tegula_plugin_options *options, void **plugin,
                                 tegula_error *err) {
  hdf5_library *library = NULL;
  FORWARD(hdf5_library_open(host, options, &library, err));
  *plugin = library;
  return TEGULA_OK;
}

/* Libraries stay: see find_library.c. */
static void plugin_close(void *plugin) { (void)plugin; }

static const char *plugin_library(void *plugin) { return ((const hdf5_library *)plugin)->text; }

static hdf5_place whole(const hdf5_dataset *dataset) {
  hdf5_place place = {.ndim = dataset->ndim};
  for (int k = 0; k < dataset->ndim; k++) {
    place.hi[k] = dataset->shape[k];
    place.axis[k] = k;
  }
  return place;
}

/* Without elements only the shape and the codecs of its chunks are there to be told, where the
 * engine decodes them. */
static tegula_status describe_empty(hdf5_dataset *dataset, tegula_error *err) {
  hdf5_chain chain = {0};
  tegula_error why;
  if (dataset->layout != HDF5_CHUNKED || dataset->type.converted) return TEGULA_OK;
  tegula_status status = hdf5_filters_map(dataset, &chain, &why);
  bool ours = status == TEGULA_OK && !chain.reader && !chain.absent;
  if (ours) status = hdf5_prepare(dataset, dataset, &why);
  hdf5_place place = whole(dataset);
  if (ours && status == TEGULA_OK && dataset->kind == HDF5_KIND_GRID)
    return hdf5_emit(dataset, &place, err);
  if (status != TEGULA_OUT_OF_MEMORY) return TEGULA_OK; /* nobody needs the codec */
  if (err) *err = why;
  return status;
}

static tegula_status describe_dataset(hdf5_call *call, hdf5_dataset *dataset, tegula_error *err) {
  FORWARD(hdf5_tell_array(call, dataset, err));
  RETURN_IF(dataset->bytes == 0, describe_empty(dataset, err));
  FORWARD(hdf5_prepare(dataset, dataset, err));
  hdf5_place place = whole(dataset);
  return hdf5_emit(dataset, &place, err);
}

static tegula_status describe_found(hdf5_call *call, const hdf5_found *found, tegula_error *err) {
  hdf5_dataset dataset;
  FORWARD(hdf5_dataset_open(call, found->file, found->id, found->name, &dataset, err));
  tegula_status status = describe_dataset(call, &dataset, err);
  hdf5_dataset_close(&dataset);
  return status;
}

/* One of the datasets; `file` is the one that was named. */
static tegula_status describe_named(hdf5_call *call, hdf5_file *file, const char *name,
                                    tegula_error *err) {
  hdf5_found found = {.id = -1};
  int64_t number;
  FORWARD(hdf5_file_number(call, file, &number, err)); /* file 0 is the one that was named */
  tegula_status status = hdf5_find(call, file, name, &found, err);
  if (status == TEGULA_OK) status = describe_found(call, &found, err);
  hdf5_found_free(call, &found);
  return status;
}

static tegula_status plugin_describe_many(void *plugin, tegula_plugin_builder *const *builders,
                                          const char *path, const char *const *names, int64_t count,
                                          tegula_error *err) {
  hdf5_call call = {.library = plugin, .builder = builders[0]};
  hdf5_file *file = NULL;
  FORWARD(hdf5_enter(call.library, 0, err));
  tegula_status status = hdf5_file_open(&call, path, &file, err);
  for (int64_t i = 0; status == TEGULA_OK && i < count; i++) {
    call.builder = builders[i];
    /* each builder has a table of its own */
    for (hdf5_file *open = call.files; open; open = open->next) open->number = -1;
    status = describe_named(&call, file, names[i], err);
  }
  hdf5_file_release(&call, file);
  hdf5_unlock(call.library);
  return status;
}

static tegula_status plugin_describe(void *plugin, tegula_plugin_builder *builder, const char *path,
                                     const char *name, tegula_error *err) {
  return plugin_describe_many(plugin, &builder, path, &name, 1, err);
}

/* ---- list ---- */

typedef struct listing {
  hdf5_call *call;
  tegula_plugin_list_fn each;
  void *state;
} listing;

static tegula_status list_one(void *state, hdf5_file *file, hid_t id, const char *name,
                              const tegula_error *unopened, tegula_error *err) {
  listing *list = state;
  hdf5_library *library = list->call->library;
  hdf5_dataset dataset;
  tegula_error refusal = {0};
  char dtype[TEGULA_DTYPE_TEXT], codecs[512] = "", why[sizeof refusal.message];
  int64_t shape[TEGULA_MAX_DIMS], chunk[TEGULA_MAX_DIMS];
  tegula_plugin_entry_info info = {.name = name, .codecs = codecs};
  dataset.ndim = -1;
  tegula_status status = TEGULA_CORRUPT;
  if (unopened)
    refusal = *unopened;
  else if (id < 0)
    hdf5_failed(library, &refusal, status, file->path, "open \"%s\" in \"%s\"", name, file->path);
  else
    status = hdf5_dataset_open(list->call, file, id, name, &dataset, &refusal);
  if (status == TEGULA_OUT_OF_MEMORY || status == TEGULA_CANCELLED || status == TEGULA_IO) {
    if (err) *err = refusal;
    return status;
  }
  if (dataset.ndim >= 0) {
    info.ndim = hdf5_all_axes(&dataset, dataset.shape, shape);
    info.shape = shape;
  }
  if (status != TEGULA_OK) {
    snprintf(why, sizeof why, "%s", refusal.message);
    info.refused = why;
    return list->each(list->state, &info, err);
  }
  library->host->dtype_format(dataset.type.dtype, dtype);
  hdf5_filters_text(&dataset, codecs, sizeof codecs);
  info.dtype = dtype;
  if (dataset.layout == HDF5_CHUNKED) {
    hdf5_all_axes(&dataset, dataset.chunk, chunk);
    info.chunk = chunk;
  }
  if (dataset.type.record) {
    info.descr = dataset.type.record->descr;
    info.refused = dataset.type.record->refused;
    if (info.refused) info.dtype = NULL;
  }
  bool countable = dataset.layout != HDF5_CHUNKED || hdf5_chunks_countable(&dataset);
  info.stored_bytes = countable ? (int64_t)library->call.H5Dget_storage_size(id) : -1;
  status = list->each(list->state, &info, err);
  hdf5_dataset_close(&dataset);
  return status;
}

static tegula_status plugin_list(void *plugin, tegula_plugin_builder *builder, const char *path,
                                 tegula_plugin_list_fn each, void *state, tegula_error *err) {
  hdf5_call call = {.library = plugin, .builder = builder};
  hdf5_file *file = NULL;
  listing list = {.call = &call, .each = each, .state = state};
  FORWARD(hdf5_enter(call.library, 0, err));
  tegula_status status = hdf5_file_open(&call, path, &file, err);
  if (status == TEGULA_OK) status = hdf5_walk(&call, file, false, list_one, &list, err);
  hdf5_file_release(&call, file);
  hdf5_unlock(call.library);
  return status;
}

static tegula_status plugin_names(void *plugin, tegula_plugin_builder *builder, const char *path,
                                  const char *group, tegula_plugin_name_fn each, void *state,
                                  tegula_error *err) {
  hdf5_call call = {.library = plugin, .builder = builder};
  hdf5_file *file = NULL;
  FORWARD(hdf5_enter(call.library, 0, err));
  tegula_status status = hdf5_file_open(&call, path, &file, err);
  if (status == TEGULA_OK) status = hdf5_names_in(&call, file, group, each, state, err);
  hdf5_file_release(&call, file);
  hdf5_unlock(call.library);
  return status;
}

static tegula_status plugin_attributes(void *plugin, tegula_plugin_builder *builder,
                                       const char *path, const char *name,
                                       tegula_plugin_attribute_fn each, void *state,
                                       tegula_error *err) {
  hdf5_call call = {.library = plugin, .builder = builder};
  hdf5_file *file = NULL;
  FORWARD(hdf5_enter(call.library, 0, err));
  tegula_status status = hdf5_file_open(&call, path, &file, err);
  if (status == TEGULA_OK) status = hdf5_attributes(&call, file, name, each, state, err);
  hdf5_file_release(&call, file);
  hdf5_unlock(call.library);
  return status;
}

__attribute__((visibility("default"))) const tegula_plugin *
tegula_plugin_entry(int32_t host_version);

const tegula_plugin *tegula_plugin_entry(int32_t host_version) {
  static const tegula_plugin plugin = {
      .struct_size = sizeof plugin,
      .version = TEGULA_PLUGIN_VERSION,
      .name = "hdf5",
      .open = plugin_open,
      .close = plugin_close,
      .library = plugin_library,
      .describe = plugin_describe,
      .list = plugin_list,
      .attributes = plugin_attributes,
      .save_open = hdf5_save_open,
      .save_dataset = hdf5_save_dataset,
      .save_place = hdf5_save_place,
      .save_close = hdf5_save_close,
      .save_abandon = hdf5_save_abandon,
      .names = plugin_names,
      .describe_many = plugin_describe_many,
  };
  return host_version == TEGULA_PLUGIN_VERSION ? &plugin : NULL;
}
