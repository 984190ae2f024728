/* Making one dataset of a file that is being saved, with all that goes with it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "write/saved_file.h"

/* In names of sources "%b" would be a number, and "%%" is a percent sign. All have the same
 * dataset. */
static char *without_patterns(const char *name) {
  char *out = malloc(2 * strlen(name) + 1), *to = out;
  for (const char *c = name; out && *c; c++) {
    *to++ = *c;
    if (*c == '%') *to++ = '%';
  }
  if (out) *to = 0;
  return out;
}

/* Each mapping is a box here and the whole of a dataset there. */
static bool map_boxes(const saving *s, const tegula_plugin_layout *layout, hid_t list) {
  const hdf5_functions *call = &s->library->call;
  hsize_t shape[HDF5_MAX_RANK], start[HDF5_MAX_RANK], count[HDF5_MAX_RANK];
  for (int k = 0; k < layout->ndim; k++) shape[k] = (hsize_t)layout->shape[k];
  hid_t space = call->H5Screate_simple(layout->ndim, shape, NULL);
  char *dataset =
      layout->mapping_count > 0 ? without_patterns(layout->mappings[0].dataset) : strdup("");
  bool good = space >= 0 && dataset;
  for (int64_t i = 0; good && i < layout->mapping_count; i++) {
    const tegula_plugin_mapping *mapping = &layout->mappings[i];
    for (int k = 0; k < layout->ndim; k++) {
      start[k] = (hsize_t)mapping->lo[k];
      count[k] = (hsize_t)(mapping->hi[k] - mapping->lo[k]);
    }
    hid_t source = call->H5Screate_simple(layout->ndim, count, NULL);
    char *file = without_patterns(mapping->file);
    good = source >= 0 && file &&
           call->H5Sselect_hyperslab(space, 0 /* set */, start, NULL, count, NULL) >= 0 &&
           call->H5Pset_virtual(list, space, file, dataset, source) >= 0;
    free(file);
    if (source >= 0) call->H5Sclose(source);
  }
  if (space >= 0) call->H5Sclose(space);
  free(dataset);
  return good;
}

/* The value comes in native byte order, libhdf5 takes it in any type that it is told. */
static bool set_fill(const saving *s, const tegula_plugin_layout *layout, hid_t type, hid_t list) {
  unsigned char *value = malloc(layout->dtype.item_size);
  if (!value) return false;
  memcpy(value, layout->fill, layout->dtype.item_size);
  if (layout->dtype.order != '|' && layout->dtype.order != HDF5_NATIVE_ORDER)
    hdf5_type_swap(layout->dtype, value);
  bool good = s->library->call.H5Pset_fill_value(list, type, value) >= 0;
  free(value);
  return good;
}

/* A creation list; -1 on failure. */
static hid_t make_list(const saving *s, const tegula_plugin_layout *layout, hid_t type) {
  const hdf5_functions *call = &s->library->call;
  hid_t list = call->H5Pcreate(call->dataset_create_class);
  hsize_t chunk[HDF5_MAX_RANK];
  bool good = list >= 0 && call->H5Pset_obj_track_times(list, false) >= 0;
  if (layout->chunk) {
    for (int k = 0; k < layout->ndim; k++) chunk[k] = (hsize_t)layout->chunk[k];
    good = good && call->H5Pset_chunk(list, layout->ndim, chunk) >= 0 &&
           call->H5Pset_alloc_time(list, HDF5_ALLOCATE_INCREMENTALLY) >= 0;
  } else if (layout->mappings) {
    good = good && call->H5Pset_layout(list, HDF5_VIRTUAL) >= 0 && map_boxes(s, layout, list);
  } else {
    good = good && call->H5Pset_layout(list, HDF5_CONTIGUOUS) >= 0 &&
           call->H5Pset_alloc_time(list, HDF5_ALLOCATE_EARLY) >= 0 &&
           /* chunks that are absent do have the fill value */
           call->H5Pset_fill_time(list, HDF5_FILL_NEVER) >= 0;
  }
  if (layout->fill) good = good && set_fill(s, layout, type, list);
  if (good || list < 0) return list;
  call->H5Pclose(list);
  return -1;
}

static bool is_plain(const tegula_plugin_layout *layout) {
  return !layout->chunk && !layout->mappings && !layout->fill && layout->filter_count == 0 &&
         !layout->origin;
}

/* The list of a dataset: to be closed but for the one of all plain datasets. Making one costs as
 * much as making a dataset. */
static hid_t creation_list(saving *s, const tegula_plugin_layout *layout, hid_t type, bool roomy) {
  if (!is_plain(layout) || roomy) return make_list(s, layout, type);
  if (s->plain < 0) s->plain = make_list(s, layout, type);
  return s->plain;
}

static hid_t space_of(const saving *s, const tegula_plugin_layout *layout, const hsize_t *limits) {
  hsize_t shape[HDF5_MAX_RANK];
  for (int k = 0; k < layout->ndim; k++) shape[k] = (hsize_t)layout->shape[k];
  return layout->ndim == 0 ? s->library->call.H5Screate(HDF5_SPACE_SCALAR)
                           : s->library->call.H5Screate_simple(layout->ndim, shape, limits);
}

static tegula_status could_not_make(const saving *s, const tegula_plugin_layout *layout,
                                    tegula_error *err) {
  return hdf5_failed(s->library, err, TEGULA_IO, s->path, "make the dataset \"%s\" in \"%s\"",
                     layout->dataset, s->path);
}

static tegula_status create(saving *s, const tegula_plugin_layout *layout, hid_t type, hid_t list,
                            hid_t *id, tegula_error *err) {
  const hdf5_functions *call = &s->library->call;
  hsize_t limits[HDF5_MAX_RANK];
  FORWARD(hdf5_save_as_origin(s->library, layout, list, limits, err));
  for (int k = 0; k < layout->ndim; k++)
    if (limits[k] != HDF5_UNLIMITED && limits[k] > (hsize_t)s->longest)
      limits[k] = (hsize_t)s->longest;
  hid_t space = space_of(s, layout, limits);
  if (space >= 0 && hdf5_make_groups(s->library, s->file, layout->dataset))
    *id = call->H5Dcreate2(s->file, layout->dataset, type, space, HDF5_DEFAULT, list, HDF5_DEFAULT);
  tegula_status status = *id >= 0 ? TEGULA_OK : could_not_make(s, layout, err);
  if (space >= 0) call->H5Sclose(space);
  return status;
}

/* roomy: an attribute may become longer than the 64 KiB that the oldest form of headers allows.
 * libhdf5 takes a newer one where it keeps the order of attributes. */
static tegula_status create_typed(saving *s, const tegula_plugin_layout *layout, hid_t type,
                                  bool roomy, hid_t *id, tegula_error *err) {
  hid_t list = creation_list(s, layout, type, roomy);
  RETURN_IF(list < 0, could_not_make(s, layout, err));
  bool good = !roomy || s->library->call.H5Pset_attr_creation_order(list, HDF5_ORDER_TRACKED) >= 0;
  tegula_status status = good ? hdf5_save_filters(s->library, layout, list, s->path, err)
                              : could_not_make(s, layout, err);
  if (status == TEGULA_OK) status = create(s, layout, type, list, id, err);
  if (list != s->plain) s->library->call.H5Pclose(list);
  return status;
}

static bool is_hard_link(const saving *s, const char *name) {
  union {
    uint64_t words[16]; /* H5L_info1_t, H5L_info2_t: the type is first */
    int type;
  } info = {{0}};
  return s->library->call.link_info(s->file, name, &info, HDF5_DEFAULT) >= 0 &&
         info.type == HDF5_LINK_HARD;
}

/* Is anything in the way? A name that leads through a dataset, or to one. */
static tegula_status make_way(saving *s, const tegula_plugin_layout *layout,
                              hdf5_replaced *replaced, tegula_error *err) {
  const hdf5_functions *call = &s->library->call;
  const tegula_plugin_host *host = s->library->host;
  char *name = strdup(layout->dataset);
  RETURN_IF(!name, hdf5_out_of_memory(s->library, err));
  tegula_status status = TEGULA_OK;
  int there = 1;
  for (char *at = strchr(name + 1, '/'); at && there > 0; at = strchr(at + 1, '/')) {
    *at = 0;
    there = call->H5Lexists(s->file, name, HDF5_DEFAULT);
    hid_t id = there > 0 ? call->H5Oopen(s->file, name, HDF5_DEFAULT) : -1;
    if (there > 0 && (id < 0 || call->H5Iget_type(id) != HDF5_ID_GROUP)) {
      status = host->fail(err, TEGULA_EXISTS, s->path, -1,
                          "cannot make \"%s\" in \"%s\": \"%s\" is there and is no group",
                          layout->dataset, s->path, name);
      there = 0;
    }
    if (id >= 0) call->H5Oclose(id);
    *at = '/';
  }
  free(name);
  FORWARD(status);
  if (there > 0) there = call->H5Lexists(s->file, layout->dataset, HDF5_DEFAULT);
  RETURN_IF(there <= 0, TEGULA_OK);
  if (!layout->replace)
    return host->hint(err,
                      host->fail(err, TEGULA_EXISTS, s->path, -1,
                                 "\"%s\" is there already in \"%s\"", layout->dataset, s->path),
                      "choose another name, or ask to overwrite it");
  hid_t id = call->H5Oopen(s->file, layout->dataset, HDF5_DEFAULT);
  bool group = id >= 0 && call->H5Iget_type(id) == HDF5_ID_GROUP;
  bool old =
      id >= 0 && call->H5Iget_type(id) == HDF5_ID_DATASET && is_hard_link(s, layout->dataset);
  if (id >= 0 && !group) status = hdf5_save_spares_sources(s->library, layout, id, s->path, err);
  /* else their lists would lead to what takes its place */
  if (status == TEGULA_OK && old && !hdf5_replaced_note(s->library, id, replaced))
    status =
        hdf5_failed(s->library, err, TEGULA_UNSUPPORTED, s->path,
                    "untie \"%s\" in \"%s\" from its dimension scales", layout->dataset, s->path);
  if (id >= 0) call->H5Oclose(id);
  FORWARD(status);
  if (group)
    return host->fail(err, TEGULA_EXISTS, s->path, -1,
                      "\"%s\" in \"%s\" is a group and is not replaced by a dataset",
                      layout->dataset, s->path);
  return call->H5Ldelete(s->file, layout->dataset, HDF5_DEFAULT) >= 0
             ? TEGULA_OK
             : could_not_make(s, layout, err);
}

static tegula_status check_layout(const saving *s, const tegula_plugin_layout *layout,
                                  tegula_error *err) {
  const tegula_plugin_host *host = s->library->host;
  const char *name = layout->dataset, *wrong = NULL;
  if (name[0] != '/' || name[1] == 0)
    wrong = "it does not begin with \"/\" and a name";
  else if (name[strlen(name) - 1] == '/' || strstr(name, "//"))
    wrong = "it has an empty part";
  else if (strstr(name, "/./") || strstr(name, "/../") || strcmp(strrchr(name, '/'), "/.") == 0 ||
           strcmp(strrchr(name, '/'), "/..") == 0)
    wrong = "\".\" and \"..\" mean nothing in HDF5";
  if (wrong)
    return host->fail(err, TEGULA_INVALID_ARGUMENT, s->path, -1, "cannot name a dataset \"%s\": %s",
                      name, wrong);
  if (layout->ndim > HDF5_MAX_RANK)
    return host->fail(err, TEGULA_UNSUPPORTED, s->path, -1,
                      "cannot save %d axes in HDF5: it has at most %d", layout->ndim,
                      HDF5_MAX_RANK);
  return TEGULA_OK;
}

static tegula_status check_lengths(const saving *s, const tegula_plugin_layout *layout,
                                   tegula_error *err) {
  int64_t most = s->longest, bytes = layout->dtype.item_size;
  bool fits = true;
  for (int k = 0; k < layout->ndim; k++) {
    int64_t length = layout->shape[k];
    fits = fits && length <= most;
    bytes = length == 0 ? 0 : bytes > most / length ? INT64_MAX : bytes * length;
  }
  if (fits && (layout->chunk || bytes <= most)) return TEGULA_OK;
  return s->library->host->fail(
      err, TEGULA_LIMIT_EXCEEDED, s->path, -1,
      "cannot add \"%s\" to \"%s\": lengths in this file are at most %lld", layout->dataset,
      s->path, (long long)most);
}

static tegula_status make(saving *s, const tegula_plugin_layout *layout, hid_t *id,
                          tegula_error *err) {
  char why[256];
  FORWARD(check_layout(s, layout, err));
  FORWARD(check_lengths(s, layout, err));
  hid_t type = layout->fields ? hdf5_record_make(s->library, layout, why, sizeof why)
                              : hdf5_type_make(s->library, layout->dtype, why, sizeof why);
  if (type < 0 && why[0])
    return s->library->host->fail(err, TEGULA_UNSUPPORTED, s->path, -1,
                                  "cannot save \"%s\" as HDF5: %s", layout->dataset, why);
  RETURN_IF(type < 0, could_not_make(s, layout, err));
  hdf5_replaced replaced = {0};
  tegula_status status = make_way(s, layout, &replaced, err);
  if (status == TEGULA_OK)
    status = create_typed(s, layout, type, replaced.count > HDF5_MOST_USERS, id, err);
  if (status == TEGULA_OK) status = hdf5_save_attributes(s->library, *id, layout, s->path, err);
  if (status == TEGULA_OK && layout->origin && !layout->origin->bare)
    status = hdf5_save_along(s->library, s->file, *id, layout, &replaced, s->path, err);
  if (status == TEGULA_OK && !hdf5_replaced_mend(s->library, *id, &replaced))
    status = could_not_make(s, layout, err);
  free(replaced.users);
  s->library->call.H5Tclose(type);
  return status;
}

/* The place of contiguous bytes; libhdf5 has allocated all of them. */
static tegula_status find_offset(const saving *s, const made *dataset,
                                 const tegula_plugin_layout *layout, int64_t *offset,
                                 tegula_error *err) {
  const hdf5_functions *call = &s->library->call;
  *offset = -1;
  hsize_t bytes = layout->dtype.item_size;
  for (int k = 0; k < layout->ndim; k++) bytes *= (hsize_t)layout->shape[k];
  RETURN_IF(layout->chunk || layout->mappings || bytes == 0, TEGULA_OK);
  haddr_t address = call->H5Dget_offset(dataset->id);
  if (address == HDF5_UNDEFINED || address > INT64_MAX ||
      call->H5Dget_storage_size(dataset->id) != bytes)
    return s->library->host->fail(err, TEGULA_INTERNAL, s->path, -1,
                                  "libhdf5 found no place for \"%s\" in \"%s\"", layout->dataset,
                                  s->path);
  *offset = (int64_t)address;
  return TEGULA_OK;
}

static tegula_status add(saving *s, const tegula_plugin_layout *layout, int64_t *number,
                         int64_t *offset, tegula_error *err) {
  if (s->count == s->capacity) {
    int64_t capacity = s->capacity ? 2 * s->capacity : 4;
    made *larger = realloc(s->datasets, (size_t)capacity * sizeof *larger);
    RETURN_IF(!larger, hdf5_out_of_memory(s->library, err));
    s->datasets = larger;
    s->capacity = capacity;
  }
  made dataset = {.id = -1, .ndim = layout->ndim};
  tegula_status status = make(s, layout, &dataset.id, err);
  if (status != TEGULA_OK) {
    if (dataset.id >= 0) s->library->call.H5Oclose(dataset.id);
    return status;
  }
  uint64_t bytes = layout->dtype.item_size;
  for (int k = 0; k < layout->ndim; k++) {
    dataset.shape[k] = layout->shape[k];
    dataset.chunk[k] = layout->chunk ? layout->chunk[k] : 0;
    bytes *= (uint64_t)dataset.chunk[k];
  }
  if (layout->chunk && layout->filter_count == 0) dataset.plain = bytes;
  *number = s->count;
  s->datasets[s->count++] = dataset;
  return find_offset(s, &dataset, layout, offset, err);
}

tegula_status hdf5_save_dataset(void *state, const tegula_plugin_layout *layout, int64_t *number,
                                int64_t *offset, tegula_error *err) {
  saving *s = state;
  FORWARD(hdf5_enter(s->library, 0, err));
  tegula_status status = add(s, layout, number, offset, err);
  hdf5_unlock(s->library);
  return status;
}
