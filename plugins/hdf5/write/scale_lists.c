/* The two attributes that tie scales to axes (HDF5 Dimension Scale Specification), and what becomes
 * of them when a dataset is replaced.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * DIMENSION_LIST of a dataset holds, for each axis, references to its scales; REFERENCE_LIST of a
 * scale the datasets and axes whose scale it is. libhdf5_hl, which writes them for others, is not
 * needed. References are addresses: those to an object that is no more would sooner or later lead
 * to another one that took its place. */
#include <stdlib.h>
#include <string.h>

#include "write/copy_metadata.h"

#define NEW_LIST "REFERENCE_LIST of tegula" /* until it takes the place of the old one */
enum { MOST_READ = 1 << 20 };

/* ---- REFERENCE_LIST ---- */

static hid_t user_type(hdf5_library *library) {
  const hdf5_functions *call = &library->call;
  hid_t type = call->H5Tcreate(HDF5_COMPOUND, sizeof(hdf5_user));
  bool good = type >= 0 &&
              call->H5Tinsert(type, "dataset", offsetof(hdf5_user, dataset),
                              hdf5_predefined(library, "H5T_STD_REF_OBJ_g")) >= 0 &&
              call->H5Tinsert(type, "dimension", offsetof(hdf5_user, axis),
                              hdf5_predefined(library, "H5T_NATIVE_UINT_g")) >= 0;
  if (good || type < 0) return type;
  call->H5Tclose(type);
  return -1;
}

/* What there is, with room for one more; NULL: libhdf5 cannot say. */
static hdf5_user *read_users(hdf5_library *library, hid_t id, hid_t type, size_t *count) {
  const hdf5_functions *call = &library->call;
  *count = 0;
  int has = call->H5Aexists(id, REFERENCE_LIST);
  if (has <= 0) return has == 0 ? calloc(1, sizeof(hdf5_user)) : NULL;
  hid_t attribute = call->H5Aopen(id, REFERENCE_LIST, HDF5_DEFAULT),
        space = attribute >= 0 ? call->H5Aget_space(attribute) : -1;
  int64_t there = space >= 0 ? call->H5Sget_simple_extent_npoints(space) : -1;
  hdf5_user *out = there >= 0 && there <= MOST_READ ? calloc((size_t)there + 1, sizeof *out) : NULL;
  if (out && there > 0 && call->H5Aread(attribute, type, out) < 0) {
    free(out);
    out = NULL;
  }
  if (out) *count = (size_t)there;
  if (space >= 0) call->H5Sclose(space);
  if (attribute >= 0) call->H5Aclose(attribute);
  return out;
}

static bool make_list(hdf5_library *library, hid_t id, const char *name, hid_t type,
                      const hdf5_user *users, size_t count) {
  const hdf5_functions *call = &library->call;
  hsize_t length = count;
  hid_t space = call->H5Screate_simple(1, &length, NULL), attribute = -1;
  if (space >= 0) attribute = call->H5Acreate2(id, name, type, space, HDF5_DEFAULT, HDF5_DEFAULT);
  bool good = attribute >= 0 && call->H5Awrite(attribute, type, users) >= 0;
  if (attribute >= 0) call->H5Aclose(attribute);
  if (space >= 0) call->H5Sclose(space);
  return good;
}

/* Where the header of the object has no room for so many, the old list stays. */
static bool write_users(hdf5_library *library, hid_t id, hid_t type, const hdf5_user *users,
                        size_t count) {
  const hdf5_functions *call = &library->call;
  bool has = call->H5Aexists(id, REFERENCE_LIST) > 0, beside = has && count > HDF5_MOST_USERS;
  if (beside && !make_list(library, id, NEW_LIST, type, users, count)) return false;
  if (has && call->H5Adelete(id, REFERENCE_LIST) < 0) return false;
  if (beside) return call->H5Arename(id, NEW_LIST, REFERENCE_LIST) >= 0;
  return count == 0 || make_list(library, id, REFERENCE_LIST, type, users, count);
}

/* Adds that axis of the dataset; -1: takes all of the dataset away. */
bool hdf5_users_set(hdf5_library *library, hid_t id, hdf5_reference dataset, int axis) {
  hid_t type = user_type(library);
  size_t count = 0, kept = 0;
  hdf5_user *users = type >= 0 ? read_users(library, id, type, &count) : NULL;
  for (size_t k = 0; k < count; k++)
    if (axis >= 0 || users[k].dataset != dataset) users[kept++] = users[k];
  bool good = users && (axis < 0 || kept < MOST_READ);
  if (good && axis >= 0) users[kept++] = (hdf5_user){.dataset = dataset, .axis = axis};
  if (good && (axis >= 0 || kept < count)) good = write_users(library, id, type, users, kept);
  free(users);
  if (type >= 0) library->call.H5Tclose(type);
  return good;
}

/* To a scale that has just been made. */
static bool add_users(hdf5_library *library, hid_t id, const hdf5_user *users, size_t count) {
  hid_t type = user_type(library);
  size_t there = 0;
  hdf5_user *old = type >= 0 ? read_users(library, id, type, &there) : NULL,
            *all = old ? realloc(old, (there + count + 1) * sizeof *all) : NULL;
  if (all) memcpy(all + there, users, count * sizeof *users);
  bool good = all && write_users(library, id, type, all, there + count);
  free(all ? all : old);
  if (type >= 0) library->call.H5Tclose(type);
  return good;
}

/* ---- DIMENSION_LIST ---- */

static hid_t list_type(hdf5_library *library) {
  return library->call.H5Tvlen_create(hdf5_predefined(library, "H5T_STD_REF_OBJ_g"));
}

bool hdf5_axes_read(hdf5_library *library, hid_t dataset, hdf5_value *out) {
  const hdf5_functions *call = &library->call;
  if (!hdf5_value_read(library, dataset, DIMENSION_LIST, out)) return false;
  bool good =
      out->data && call->H5Tget_class(out->type) == HDF5_VLEN && out->item == sizeof(hdf5_sequence);
  hid_t base = good ? call->H5Tget_super(out->type) : -1;
  /* others are longer */
  good = base >= 0 && call->H5Tget_class(base) == HDF5_REFERENCE &&
         call->H5Tget_size(base) == sizeof(hdf5_reference);
  if (base >= 0) call->H5Tclose(base);
  return good;
}

bool hdf5_axes_write(hdf5_library *library, hid_t dataset, const hdf5_sequence *axes,
                     int64_t ndim) {
  const hdf5_functions *call = &library->call;
  hsize_t count = (hsize_t)ndim;
  size_t used = 0;
  for (int64_t k = 0; k < ndim; k++) used += axes[k].count;
  if (call->H5Aexists(dataset, DIMENSION_LIST) > 0 && call->H5Adelete(dataset, DIMENSION_LIST) < 0)
    return false;
  if (used == 0) return true;
  hid_t type = list_type(library), space = call->H5Screate_simple(1, &count, NULL), id = -1;
  if (type >= 0 && space >= 0)
    id = call->H5Acreate2(dataset, DIMENSION_LIST, type, space, HDF5_DEFAULT, HDF5_DEFAULT);
  bool good = id >= 0 && call->H5Awrite(id, type, axes) >= 0;
  if (id >= 0) call->H5Aclose(id);
  if (space >= 0) call->H5Sclose(space);
  if (type >= 0) call->H5Tclose(type);
  return good;
}

/* ---- a dataset that is replaced ---- */

/* Nothing else leads to the object. */
static bool ends_with_link(hdf5_library *library, hid_t id) {
  hdf5_object object;
  unsigned links;
  return hdf5_object_examine(library, id, &object, &links) && links == 1;
}

/* False: a scale keeps it in its list. */
static bool leave_scales(hdf5_library *library, hid_t old, hdf5_reference self) {
  const hdf5_functions *call = &library->call;
  hdf5_value list = {.type = -1, .space = -1};
  bool good = true;
  if (hdf5_axes_read(library, old, &list))
    for (int64_t k = 0; k < list.count; k++) {
      const hdf5_sequence *axis = (const hdf5_sequence *)list.data + k;
      for (size_t i = 0; i < axis->count; i++) {
        hid_t scale = call->H5Rdereference2(old, HDF5_DEFAULT, HDF5_OBJECT, &axis->items[i]);
        if (scale >= 0) good = hdf5_users_set(library, scale, self, -1) && good;
        if (scale >= 0) call->H5Oclose(scale);
      }
    }
  hdf5_value_free(library, &list);
  return good;
}

bool hdf5_replaced_note(hdf5_library *library, hid_t old, hdf5_replaced *out) {
  const hdf5_functions *call = &library->call;
  *out = (hdf5_replaced){0};
  RETURN_IF(!ends_with_link(library, old), true);
  int axes = call->H5Aexists(old, DIMENSION_LIST), users = call->H5Aexists(old, REFERENCE_LIST);
  if (axes < 0 || users < 0 || call->H5Rcreate(&out->reference, old, ".", HDF5_OBJECT, -1) < 0)
    return false;
  if (axes > 0 && !leave_scales(library, old, out->reference)) return false;
  RETURN_IF(users == 0, true);
  hid_t type = user_type(library);
  if (type >= 0) out->users = read_users(library, old, type, &out->count);
  if (type >= 0) call->H5Tclose(type);
  return out->users != NULL;
}

static bool is_scale(hdf5_library *library, hid_t id) {
  static const char word[] = "DIMENSION_SCALE";
  hdf5_value value = {.type = -1, .space = -1};
  bool good = library->call.H5Aexists(id, "CLASS") > 0 &&
              hdf5_value_read(library, id, "CLASS", &value) && value.count == 1 && value.data &&
              library->call.H5Tget_class(value.type) == HDF5_STRING;
  if (good && !value.apart)
    good = value.item >= sizeof word - 1 && memcmp(value.data, word, sizeof word - 1) == 0;
  else if (good)
    good = *(char **)value.data && strcmp(*(char **)value.data, word) == 0;
  hdf5_value_free(library, &value);
  return good;
}

/* What was a reference to the old object becomes one to the new; 0: it goes. *found: there was one.
 * False: it could not be written. */
static bool change_axis(hdf5_library *library, hid_t dataset, int64_t axis, hdf5_reference old,
                        hdf5_reference new, bool *found) {
  hdf5_value list = {.type = -1, .space = -1};
  bool good = hdf5_axes_read(library, dataset, &list) && axis >= 0 && axis < list.count,
       done = true;
  *found = false;
  hdf5_sequence *axes = good ? calloc((size_t)list.count, sizeof *axes) : NULL;
  if (axes) {
    /* the items are shared; libhdf5 frees its own */
    memcpy(axes, list.data, (size_t)list.count * sizeof *axes);
    size_t kept = 0;
    for (size_t i = 0; i < axes[axis].count; i++) {
      bool same = axes[axis].items[i] == old;
      *found = *found || same;
      if (!same || new != 0) axes[axis].items[kept++] = same ? new : axes[axis].items[i];
    }
    axes[axis].count = kept;
    done = !*found || hdf5_axes_write(library, dataset, axes, list.count);
  }
  done = done && (!good || axes);
  free(axes);
  hdf5_value_free(library, &list);
  return done;
}

bool hdf5_replaced_mend(hdf5_library *library, hid_t new, hdf5_replaced *replaced) {
  const hdf5_functions *call = &library->call;
  hdf5_reference self = 0;
  bool scale = replaced->count > 0 && is_scale(library, new), good = true;
  if (scale && call->H5Rcreate(&self, new, ".", HDF5_OBJECT, -1) < 0) return false;
  size_t kept = 0; /* moved to the front */
  for (size_t k = 0; k < replaced->count && good; k++) {
    hdf5_user user = replaced->users[k];
    hid_t dataset = call->H5Rdereference2(new, HDF5_DEFAULT, HDF5_OBJECT, &user.dataset);
    bool found = false;
    if (dataset >= 0 && call->H5Iget_type(dataset) == HDF5_ID_DATASET)
      good = change_axis(library, dataset, user.axis, replaced->reference, self, &found);
    if (found && scale) replaced->users[kept++] = user;
    if (dataset >= 0) call->H5Oclose(dataset);
  }
  return good && (kept == 0 || add_users(library, new, replaced->users, kept));
}
