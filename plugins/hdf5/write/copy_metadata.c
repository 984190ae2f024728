/* What goes along with a dataset that is copied: its attributes, as they are stored, its comment,
 * and how far it may grow.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * libhdf5 reads each attribute in its own type and writes it in that type: sets of characters,
 * padding, names of enumerations, compounds stay what they are. What cannot go along is told by
 * name. */
#include "write/copy_metadata.h"

#include <stdlib.h>
#include <string.h>

static bool write_value(const hdf5_along *along, hid_t creation, const char *name,
                        const hdf5_value *value) {
  const hdf5_functions *call = &along->library->call;
  hid_t id = call->H5Acreate2(along->to, name, value->type, value->space, creation, HDF5_DEFAULT);
  bool good = id >= 0 && (!value->data || call->H5Awrite(id, value->type, value->data) >= 0);
  if (id >= 0) call->H5Aclose(id);
  return good;
}

/* With its creation list: the set of characters of the name. */
static tegula_status put_value(const hdf5_along *along, const char *name, const hdf5_value *value,
                               tegula_error *err) {
  hdf5_library *library = along->library;
  hid_t id = library->call.H5Aopen(along->from, name, HDF5_DEFAULT),
        creation = id >= 0 ? library->call.H5Aget_create_plist(id) : -1;
  bool good = creation >= 0 && write_value(along, creation, name, value);
  tegula_status status =
      good ? TEGULA_OK
           : hdf5_failed(library, err, TEGULA_IO, along->path,
                         "save the attribute \"%.200s\" in \"%s\"", name, along->path);
  if (creation >= 0) library->call.H5Pclose(creation);
  if (id >= 0) library->call.H5Aclose(id);
  return status;
}

static tegula_status copy_attribute(const hdf5_along *along, const char *name, tegula_error *err) {
  hdf5_library *library = along->library;
  hdf5_value value;
  tegula_status status = TEGULA_OK;
  if (!hdf5_value_read(library, along->from, name, &value))
    status = hdf5_failed(library, err, TEGULA_CORRUPT, along->from_file->path,
                         "read attribute \"%s\" of \"%s\" in \"%s\"", name, along->from_name,
                         along->from_file->path);
  const char *refused = status == TEGULA_OK ? hdf5_value_refused(library, name, &value) : NULL;
  if (refused)
    hdf5_drop(along, "attribute", name, "%s", refused);
  else if (status == TEGULA_OK)
    status = put_value(along, name, &value, err);
  hdf5_value_free(library, &value);
  return status;
}

/* Does the copy replace the dataset that it is a copy of? */
static bool takes_place(const hdf5_along *along) {
  char *target = realpath(along->path, NULL);
  bool same = target && strcmp(target, along->from_file->canonical) == 0 &&
              strcmp(along->from_name, along->layout->dataset) == 0;
  free(target);
  return same;
}

/* The scales: in their attribute's turn where there is an order, else behind all others. */
static tegula_status copy_attributes(const hdf5_along *along, tegula_error *err) {
  hdf5_library *library = along->library;
  hdf5_names names;
  FORWARD(hdf5_attribute_names(library, along->from_file->path, along->from, along->from_name,
                               along->ordered ? HDF5_BY_CREATION : HDF5_BY_NAME, &names, err));
  tegula_status status = TEGULA_OK;
  for (size_t k = 0; k < names.count && status == TEGULA_OK; k++) {
    const char *name = names.items[k];
    if (strcmp(name, DIMENSION_LIST) == 0 && along->ordered) status = hdf5_scales_along(along, err);
    if (strcmp(name, DIMENSION_LIST) == 0 || library->call.H5Aexists(along->to, name) > 0) continue;
    /* whoever uses it will use the new one */
    if (strcmp(name, REFERENCE_LIST) == 0 && along->replaced->count > 0 && takes_place(along))
      continue;
    if (strcmp(name, REFERENCE_LIST) == 0)
      hdf5_drop(along, "attribute", name,
                "the datasets whose axes this is a scale of are not copied");
    else
      status = copy_attribute(along, name, err);
  }
  hdf5_names_free(&names);
  return status == TEGULA_OK && !along->ordered ? hdf5_scales_along(along, err) : status;
}

static tegula_status copy_comment(const hdf5_along *along, tegula_error *err) {
  hdf5_library *library = along->library;
  char *text;
  if (!hdf5_comment_read(library, along->from, &text))
    return hdf5_failed(library, err, TEGULA_CORRUPT, along->from_file->path,
                       "read the comment of \"%s\" in \"%s\"", along->from_name,
                       along->from_file->path);
  bool good = !text || library->call.H5Oset_comment(along->to, text) >= 0;
  free(text);
  return good ? TEGULA_OK
              : hdf5_failed(library, err, TEGULA_IO, along->path,
                            "save the comment of \"%s\" in \"%s\"", along->from_name, along->path);
}

/* H5P_CRT_ORDER_TRACKED, _INDEXED */
static bool read_order(hdf5_library *library, hid_t dataset, unsigned *order) {
  hid_t list = library->call.H5Dget_create_plist(dataset);
  bool good = list >= 0 && library->call.H5Pget_attr_creation_order(list, order) >= 0;
  if (list >= 0) library->call.H5Pclose(list);
  return good;
}

/* The dataset that this one is a copy of; `source` and `found` are to be let go of in any case. */
static tegula_status open_origin(hdf5_call *call, const tegula_plugin_origin *origin,
                                 hdf5_file **source, hdf5_found *found, tegula_error *err) {
  *found = (hdf5_found){.id = -1};
  FORWARD(hdf5_file_open(call, origin->path, source, err));
  return hdf5_find(call, *source, origin->dataset, found, err);
}

static void close_origin(hdf5_call *call, hdf5_file *source, hdf5_found *found) {
  hdf5_found_free(call, found);
  hdf5_file_release(call, source);
}

/* Where the original cannot grow, neither can the copy, however that is cut. */
static tegula_status read_limits(hdf5_library *library, const hdf5_found *found,
                                 const tegula_plugin_layout *layout, hsize_t *limits,
                                 tegula_error *err) {
  const hdf5_functions *call = &library->call;
  hsize_t shape[HDF5_MAX_RANK], most[HDF5_MAX_RANK];
  hid_t space = call->H5Dget_space(found->id);
  int ndim = space >= 0 ? call->H5Sget_simple_extent_ndims(space) : -1;
  bool good = ndim >= 0 && ndim <= HDF5_MAX_RANK &&
              call->H5Sget_simple_extent_dims(space, shape, most) >= 0;
  for (int k = 0; good && ndim == layout->ndim && k < ndim; k++)
    /* also HDF5_UNLIMITED, the largest number */
    if (most[k] > shape[k] && most[k] > limits[k]) limits[k] = most[k];
  if (space >= 0) call->H5Sclose(space);
  if (good) return TEGULA_OK;
  return hdf5_failed(library, err, TEGULA_CORRUPT, found->file->path,
                     "read the shape of \"%s\" in \"%s\"", found->name, found->file->path);
}

static tegula_status keep_order(hdf5_library *library, const hdf5_found *found, hid_t list,
                                tegula_error *err) {
  unsigned order = 0;
  if (read_order(library, found->id, &order) &&
      (order == 0 || library->call.H5Pset_attr_creation_order(list, order) >= 0))
    return TEGULA_OK;
  return hdf5_failed(library, err, TEGULA_CORRUPT, found->file->path,
                     "read how \"%s\" in \"%s\" keeps its attributes", found->name,
                     found->file->path);
}

tegula_status hdf5_save_as_origin(hdf5_library *library, const tegula_plugin_layout *layout,
                                  hid_t list, hsize_t *limits, tegula_error *err) {
  for (int k = 0; k < layout->ndim; k++) limits[k] = (hsize_t)layout->shape[k];
  RETURN_IF(!layout->origin || layout->origin->bare, TEGULA_OK);
  hdf5_call call = {.library = library, .builder = layout->origin->builder};
  hdf5_file *source = NULL;
  hdf5_found found;
  tegula_status status = open_origin(&call, layout->origin, &source, &found, err);
  if (status == TEGULA_OK && layout->chunk)
    status = read_limits(library, &found, layout, limits, err);
  if (status == TEGULA_OK) status = keep_order(library, &found, list, err);
  close_origin(&call, source, &found);
  return status;
}

tegula_status hdf5_save_along(hdf5_library *library, hid_t file, hid_t dataset,
                              const tegula_plugin_layout *layout, const hdf5_replaced *replaced,
                              const char *path, tegula_error *err) {
  const tegula_plugin_origin *origin = layout->origin;
  hdf5_call call = {.library = library, .builder = origin->builder};
  hdf5_file *source = NULL;
  hdf5_found found;
  hdf5_along along = {.library = library,
                      .layout = layout,
                      .path = path,
                      .file = file,
                      .to = dataset,
                      .replaced = replaced};
  tegula_status status;
  FORWARD_WITH(status, open_origin(&call, origin, &source, &found, err));
  along.from_file = found.file;
  along.from = found.id;
  along.from_name = found.name;
  unsigned order = 0;
  along.ordered = read_order(library, along.from, &order) && order != 0;
  FORWARD_WITH(status, copy_attributes(&along, err));
  FORWARD_WITH(status, copy_comment(&along, err));
done:
  close_origin(&call, source, &found);
  return status;
}
