/* Dimension scales: datasets that give the values along an axis of another one (HDF5 Dimension
 * Scale Specification).
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * With a dataset that is copied its scales go along, copied by libhdf5 as they are stored, and are
 * attached (scale_lists.c). A scale keeps its path from the group of the dataset, or from the root
 * where it lies outside of that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "write/copy_metadata.h"

#define LARGEST_SCALE ((hsize_t)1 << 30) /* bytes: nothing can interrupt libhdf5 */
enum { MOST_SCALES = 4096 };

/* A scale in the target. */
typedef struct scale {
  char *name;
  hid_t id; /* -1: it could not go along */
  hdf5_reference reference;
} scale;

typedef struct work {
  const hdf5_along *along;
  const hdf5_functions *call;
  hdf5_reference to; /* the new dataset */
  int64_t from_shape[HDF5_MAX_RANK];
  scale scales[MOST_SCALES];
  size_t count;
  bool no_memory;
  hdf5_sequence axes[HDF5_MAX_RANK]; /* what DIMENSION_LIST is to be */
} work;

/* ---- one scale ---- */

/* What libhdf5 calls an object; new memory, NULL: nothing. */
static char *name_of(work *w, hid_t id) {
  const hdf5_functions *call = w->call;
  ptrdiff_t size = call->H5Iget_name(id, NULL, 0);
  char *name = size > 0 ? calloc(1, (size_t)size + 1) : NULL;
  w->no_memory = w->no_memory || (size > 0 && !name);
  if (name && call->H5Iget_name(id, name, (size_t)size + 1) > 0) return name;
  free(name);
  return NULL;
}

/* The path that the scale is to have; new memory. */
static char *target_name(const hdf5_along *along, const char *name) {
  const char *slash = strrchr(along->from_name, '/');
  size_t group = slash ? (size_t)(slash - along->from_name) : 0;
  bool inside = strncmp(name, along->from_name, group) == 0 && name[group] == '/';
  const char *to = strrchr(along->layout->dataset, '/');
  return inside ? hdf5_text("%.*s%s", to ? (int)(to - along->layout->dataset) : 0,
                            along->layout->dataset, name + group)
                : strdup(name);
}

/* Do the values of the scale belong to the axis as it is in the target? */
static bool fits_axis(const work *w, hid_t id, int axis) {
  hsize_t shape[HDF5_MAX_RANK];
  hid_t space = w->call->H5Dget_space(id);
  bool single = space >= 0 && w->call->H5Sget_simple_extent_ndims(space) == 1 &&
                w->call->H5Sget_simple_extent_dims(space, shape, NULL) == 1;
  if (space >= 0) w->call->H5Sclose(space);
  int64_t length = w->along->layout->shape[axis];
  return w->from_shape[axis] == length || (single && shape[0] == (hsize_t)length);
}

/* Are addresses and lengths as long in both files? H5Ocopy writes beyond its memory where
 * references are shorter in the target. */
static bool same_widths(const work *w) {
  const hdf5_functions *call = w->call;
  const hid_t files[2] = {w->along->from_file->id, w->along->file};
  size_t widths[2][2] = {{0}, {0}};
  for (int i = 0; i < 2; i++) {
    hid_t list = call->H5Fget_create_plist(files[i]);
    bool good = list >= 0 && call->H5Pget_sizes(list, &widths[i][0], &widths[i][1]) >= 0;
    if (list >= 0) call->H5Pclose(list);
    if (!good) return false;
  }
  return widths[0][0] == widths[1][0] && widths[0][1] == widths[1][1];
}

/* Why it cannot be copied as it is stored; NULL: it can. */
static const char *refuse_scale(const work *w, hid_t id) {
  const hdf5_functions *call = w->call;
  if (call->H5Iget_type(id) != HDF5_ID_DATASET) return "it is no dataset";
  hid_t list = call->H5Dget_create_plist(id), type = call->H5Dget_type(id);
  const char *why = NULL;
  if (list < 0 || type < 0)
    why = "it cannot be opened";
  else if (call->H5Pget_layout(list) == HDF5_VIRTUAL || call->H5Pget_external_count(list) > 0)
    why = "its elements are in other files";
  else if (hdf5_refers(w->along->library, type))
    why = "it refers to other objects of its file, which are not copied";
  else if (call->H5Dget_storage_size(id) > LARGEST_SCALE)
    why = "it has more than 1 GiB";
  if (list >= 0) call->H5Pclose(list);
  if (type >= 0) call->H5Tclose(type);
  return why;
}

static int is_there(const work *w, const char *name) {
  char *part = strdup(name);
  int there = part ? 1 : -1;
  for (char *at = part ? strchr(part + 1, '/') : NULL; at && there > 0; at = strchr(at + 1, '/')) {
    *at = 0;
    there = w->call->H5Lexists(w->along->file, part, HDF5_DEFAULT);
    *at = '/';
  }
  if (there > 0) there = w->call->H5Lexists(w->along->file, name, HDF5_DEFAULT);
  free(part);
  return there;
}

/* Attributes of the copy that libhdf5 emptied: references. */
static bool tidy(const work *w, hid_t from, hid_t to, const char *name) {
  hdf5_names names;
  if (hdf5_attribute_names(w->along->library, w->along->path, from, name, HDF5_BY_NAME, &names,
                           NULL) != TEGULA_OK)
    return false;
  bool good = true;
  for (size_t k = 0; good && k < names.count; k++) {
    hid_t id = w->call->H5Aopen(from, names.items[k], HDF5_DEFAULT),
          type = id >= 0 ? w->call->H5Aget_type(id) : -1;
    bool refers = type >= 0 && hdf5_refers(w->along->library, type);
    good = type >= 0;
    if (type >= 0) w->call->H5Tclose(type);
    if (id >= 0) w->call->H5Aclose(id);
    if (!refers) continue;
    good = w->call->H5Adelete(to, names.items[k]) >= 0;
    if (strcmp(names.items[k], REFERENCE_LIST) != 0)
      hdf5_drop(w->along, "attribute", names.items[k],
                "it is one of the scale \"%s\" and refers to other objects of its file", name);
  }
  hdf5_names_free(&names);
  return good;
}

static hid_t copy_scale(const work *w, hid_t from, const char *name) {
  hdf5_library *library = w->along->library;
  const hdf5_functions *call = w->call;
  hid_t id = -1;
  if (hdf5_make_groups(library, w->along->file, name) &&
      call->H5Ocopy(from, ".", w->along->file, name, HDF5_DEFAULT, HDF5_DEFAULT) >= 0)
    id = call->H5Oopen(w->along->file, name, HDF5_DEFAULT);
  if (id < 0) {
    tegula_error why = {0};
    if (library->failure.status == TEGULA_OK)
      hdf5_failed(library, &why, TEGULA_CORRUPT, NULL, "be copied");
    hdf5_drop(w->along, "dimension scale", name, "it %s",
              why.message[0] ? why.message : "could not be copied");
  } else if (!tidy(w, from, id, name)) {
    hdf5_drop(w->along, "dimension scale", name, "its attributes cannot be read");
  }
  return id;
}

/* Is it one and the same object, in a file that the copy is added to? */
static bool stays(const work *w, const char *name, const char *to_name) {
  char *target = strcmp(name, to_name) == 0 ? realpath(w->along->path, NULL) : NULL;
  bool same = target && strcmp(target, w->along->from_file->canonical) == 0;
  free(target);
  return same;
}

/* The scale in the target, the same object for the same scale; NULL: not one more. */
static scale *find_scale(work *w, hid_t from, const char *name, const char *to_name) {
  const hdf5_functions *call = w->call;
  for (size_t k = 0; k < w->count; k++)
    if (strcmp(w->scales[k].name, name) == 0) return &w->scales[k];
  if (w->count == MOST_SCALES) return NULL;
  scale *out = &w->scales[w->count];
  *out = (scale){.name = strdup(name), .id = -1};
  w->no_memory = w->no_memory || !out->name;
  if (!out->name) return NULL;
  w->count++;
  const char *why = refuse_scale(w, from);
  int there = why ? 0 : is_there(w, to_name);
  if (why)
    hdf5_drop(w->along, "dimension scale", name, "%s", why);
  else if (strcmp(to_name, w->along->layout->dataset) == 0)
    hdf5_drop(w->along, "dimension scale", name, "the copied dataset has its name");
  else if (there == 0 && !same_widths(w))
    hdf5_drop(w->along, "dimension scale", name,
              "addresses in its file have another width than in the target");
  else if (there == 0)
    out->id = copy_scale(w, from, to_name);
  else {
    hid_t id = there > 0 ? call->H5Oopen(w->along->file, to_name, HDF5_DEFAULT) : -1;
    bool same = id >= 0 && call->H5Iget_type(id) == HDF5_ID_DATASET &&
                (stays(w, name, to_name) || hdf5_same_dataset(w->along->library, from, id));
    /* an object that was in the new one's place before */
    if (same && hdf5_users_set(w->along->library, id, w->to, -1))
      out->id = id;
    else
      hdf5_drop(w->along, "dimension scale", name, "\"%s\" is there already, and is another one",
                to_name);
    if (out->id < 0 && id >= 0) call->H5Oclose(id);
  }
  if (out->id >= 0 && call->H5Rcreate(&out->reference, out->id, ".", HDF5_OBJECT, -1) < 0) {
    hdf5_drop(w->along, "dimension scale", name, "it cannot be referred to");
    call->H5Oclose(out->id);
    out->id = -1;
  }
  return out;
}

static bool attach(work *w, const scale *s, int axis) {
  hdf5_sequence *list = &w->axes[axis];
  hdf5_reference *items = realloc(list->items, (list->count + 1) * sizeof *items);
  w->no_memory = w->no_memory || !items;
  if (!items) return false;
  list->items = items;
  if (!hdf5_users_set(w->along->library, s->id, w->to, axis)) return false;
  items[list->count++] = s->reference;
  return true;
}

static void take_scale(work *w, int axis, const hdf5_reference *from) {
  const hdf5_functions *call = w->call;
  char axis_text[32];
  snprintf(axis_text, sizeof axis_text, "of axis %d", axis);
  hid_t id = call->H5Rdereference2(w->along->from, HDF5_DEFAULT, HDF5_OBJECT, from);
  char *name = id >= 0 ? name_of(w, id) : NULL,
       *to_name = name ? target_name(w->along, name) : NULL;
  w->no_memory = w->no_memory || (name && !to_name);
  if (!to_name)
    hdf5_drop(w->along, "dimension scale", axis_text, "%s",
              id < 0 ? "it is not there" : "it has no name");
  else if (call->H5Iget_type(id) == HDF5_ID_DATASET && !fits_axis(w, id, axis))
    hdf5_drop(w->along, "dimension scale", name,
              "axis %d is cut: it has %lld elements there and %lld here", axis,
              (long long)w->from_shape[axis], (long long)w->along->layout->shape[axis]);
  else {
    const scale *s = find_scale(w, id, name, to_name);
    if (!s || (s->id >= 0 && !attach(w, s, axis)))
      hdf5_drop(w->along, "dimension scale", name, "it cannot be attached");
  }
  free(name);
  free(to_name);
  if (id >= 0) call->H5Oclose(id);
}

/* ---- all of them ---- */

/* False: other axes than the target has. */
static bool read_shape(work *w) {
  hsize_t shape[HDF5_MAX_RANK];
  hid_t space = w->call->H5Dget_space(w->along->from);
  int ndim = space >= 0 ? w->call->H5Sget_simple_extent_dims(space, shape, NULL) : -1;
  if (space >= 0) w->call->H5Sclose(space);
  for (int k = 0; k < ndim && k < HDF5_MAX_RANK; k++) w->from_shape[k] = (int64_t)shape[k];
  return ndim == w->along->layout->ndim;
}

static void take_scales(work *w) {
  const hdf5_along *along = w->along;
  hdf5_value list = {.type = -1, .space = -1};
  size_t attached = 0;
  bool good = w->call->H5Rcreate(&w->to, along->to, ".", HDF5_OBJECT, -1) >= 0 && read_shape(w);
  if (good && hdf5_axes_read(along->library, along->from, &list) &&
      list.count == along->layout->ndim) {
    const hdf5_sequence *axes = list.data;
    for (int k = 0; k < along->layout->ndim; k++)
      for (size_t i = 0; i < axes[k].count && i < MOST_SCALES; i++)
        take_scale(w, k, &axes[k].items[i]);
  } else {
    hdf5_drop(along, "dimension scale", DIMENSION_LIST,
              "it is no list of references for each axis");
  }
  hdf5_value_free(along->library, &list);
  for (int k = 0; k < along->layout->ndim; k++) attached += w->axes[k].count;
  if (attached > 0 && !hdf5_axes_write(along->library, along->to, w->axes, along->layout->ndim))
    hdf5_drop(along, "dimension scale", DIMENSION_LIST, "the scales cannot be attached");
}

tegula_status hdf5_scales_along(const hdf5_along *along, tegula_error *err) {
  hdf5_library *library = along->library;
  RETURN_IF(library->call.H5Aexists(along->from, DIMENSION_LIST) <= 0 ||
                library->call.H5Aexists(along->to, DIMENSION_LIST) > 0,
            TEGULA_OK);
  work *w = calloc(1, sizeof *w);
  RETURN_IF(!w, hdf5_out_of_memory(library, err));
  w->along = along;
  w->call = &library->call;
  take_scales(w);
  for (size_t k = 0; k < w->count; k++) {
    if (w->scales[k].id >= 0) library->call.H5Oclose(w->scales[k].id);
    free(w->scales[k].name);
  }
  for (int k = 0; k < HDF5_MAX_RANK; k++) free(w->axes[k].items);
  bool no_memory = w->no_memory;
  free(w);
  if (no_memory) return hdf5_out_of_memory(library, err);
  if (library->failure.status == TEGULA_OK) return TEGULA_OK;
  return hdf5_failed(library, err, TEGULA_IO, along->path,
                     "copy the dimension scales of \"%s\" to \"%s\"", along->from_name,
                     along->path);
}
