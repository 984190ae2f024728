/* The mappings of a virtual dataset as its file gives them: names with numbers written out,
 * selections without end closed.
 *
 * SPDX-License-Identifier:
 * Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "read/vds.h"

#define MOST_MAPPINGS (INT64_C(1) << 20)

tegula_status hdf5_fail_mapping(const hdf5_dataset *dataset, tegula_status status, int64_t index,
                                const char *text, tegula_error *err) {
  return dataset->call->library->host->fail(
      err, status, dataset->file->path, -1,
      "mapping %lld of the virtual dataset \"%s\" in \"%s\" %s", (long long)index, dataset->name,
      dataset->file->path, text);
}

/* ---- names with numbers ---- */

static bool has_number(const char *name) {
  for (const char *c = name; *c; c++)
    if (c[0] == '%' && c[1] && *++c == 'b') return true;
  return false;
}

/* "%b" becomes the number, "%%" a percent sign; new memory. */
static char *expand(const char *name, int64_t number) {
  size_t room = strlen(name) + 1;
  for (const char *c = name; *c; c++) room += *c == '%' ? 24 : 0;
  char *out = malloc(room), *to = out;
  for (const char *c = name; out && *c; c++) {
    if (c[0] == '%' && c[1] == 'b') {
      to += snprintf(to, room - (size_t)(to - out), "%lld", (long long)number);
      c++;
    } else {
      *to++ = *c;
      c += c[0] == '%' && c[1] == '%';
    }
  }
  if (out) *to = 0;
  return out;
}

/* ---- reading the mappings ---- */

static char *read_name(hdf5_dataset *dataset, ptrdiff_t (*get)(hid_t, size_t, char *, size_t),
                       size_t index) {
  ptrdiff_t length = get(dataset->plist, index, NULL, 0);
  if (length < 0 || length > 1 << 16) return NULL;
  char *out = calloc(1, (size_t)length + 1);
  if (out && get(dataset->plist, index, out, (size_t)length + 1) < 0) {
    free(out);
    out = NULL;
  }
  return out;
}

static tegula_status read_selection(hdf5_dataset *dataset, int64_t index, hid_t space,
                                    hdf5_selection *out, tegula_error *err) {
  hdf5_selection_result result =
      space >= 0 ? hdf5_selection_read(dataset->call->library, space, out) : HDF5_SELECTION_BAD;
  if (space >= 0) dataset->call->library->call.H5Sclose(space);
  switch (result) {
    case HDF5_SELECTION_OK:
      return TEGULA_OK;
    case HDF5_SELECTION_NO_MEMORY:
      return hdf5_out_of_memory(dataset->call->library, err);
    case HDF5_SELECTION_POINTS:
      return hdf5_fail_mapping(dataset, TEGULA_UNSUPPORTED, index, "selects single points", err);
    default:
      return hdf5_fail_mapping(dataset, TEGULA_CORRUPT, index,
                               "has a selection that makes no sense, or more than a million boxes",
                               err);
  }
}

static tegula_status read_mapping(hdf5_dataset *dataset, int64_t index, hdf5_mapping *out,
                                  tegula_error *err) {
  const hdf5_functions *call = &dataset->call->library->call;
  out->file = read_name(dataset, call->H5Pget_virtual_filename, (size_t)index);
  out->dataset = read_name(dataset, call->H5Pget_virtual_dsetname, (size_t)index);
  if (!out->file || !out->dataset)
    return hdf5_fail_mapping(dataset, TEGULA_CORRUPT, index, "has no readable source name", err);
  FORWARD(read_selection(dataset, index, call->H5Pget_virtual_vspace(dataset->plist, (size_t)index),
                         &out->to, err));
  FORWARD(read_selection(dataset, index,
                         call->H5Pget_virtual_srcspace(dataset->plist, (size_t)index), &out->from,
                         err));
  if (out->to.ndim == dataset->ndim) return TEGULA_OK;
  return hdf5_fail_mapping(dataset, TEGULA_CORRUPT, index,
                           "has another number of axes than the dataset", err);
}

/* "All of the source": as long as what it is mapped to, along the axes that are longer than one. */
static void take_whole(hdf5_mapping *mapping) {
  const hdf5_selection *to = &mapping->to;
  hdf5_selection *from = &mapping->from;
  *from = (hdf5_selection){.unlimited = -1, .whole = true};
  for (int k = 0; k < to->ndim; k++) {
    int64_t length = to->axes[k].total;
    if (length == 1) continue;
    from->extent[from->ndim] = length;
    from->axes[from->ndim++] =
        (hdf5_slab){.stride = length ? length : 1, .block = length ? length : 1, .total = length};
  }
}

/* ---- selections without end ---- */

/* How far a mapping of that axis reaches when it holds `count` elements of it. */
static tegula_status close_axis(hdf5_dataset *dataset, int64_t index, hdf5_selection *selection,
                                int64_t count, tegula_error *err) {
  selection->axes[selection->unlimited].total = count;
  if (selection->axes[selection->unlimited].block == INT64_MAX) { /* one block without end */
    selection->axes[selection->unlimited].block = count ? count : 1;
    selection->axes[selection->unlimited].stride = count ? count : 1;
  }
  if (hdf5_slab_extent(&selection->axes[selection->unlimited], count) == INT64_MAX)
    return hdf5_fail_mapping(dataset, TEGULA_CORRUPT, index, "reaches beyond 2^63 elements", err);
  selection->unlimited = -1;
  return TEGULA_OK;
}

/* Both ends open: as far as the source reaches now. */
static tegula_status close_mapping(hdf5_dataset *dataset, int64_t index, hdf5_mapping *mapping,
                                   tegula_error *err) {
  hdf5_source s;
  FORWARD(hdf5_source_find(dataset, mapping, &s, err));
  tegula_status status = hdf5_source_read(dataset, &s, err);
  if (status == TEGULA_OK && s.dataset.ndim != mapping->from.ndim)
    status = hdf5_fail_mapping(dataset, TEGULA_MISMATCH, index,
                               "selects in a source that has another number of axes", err);
  int64_t count = 0;
  if (status == TEGULA_OK) {
    int axis = mapping->from.unlimited;
    count = hdf5_slab_count(&mapping->from.axes[axis], s.dataset.shape[axis]);
  }
  hdf5_source_close(dataset->call, &s);
  FORWARD(status);
  FORWARD(close_axis(dataset, index, &mapping->to, count, err));
  return close_axis(dataset, index, &mapping->from, count, err);
}

/* Mapping `number` of a pattern: its block of the virtual dataset. Free it on failure, too. */
static tegula_status expand_one(const hdf5_dataset *dataset, int64_t index,
                                const hdf5_mapping *pattern, int64_t number, hdf5_mapping *out,
                                tegula_error *err) {
  *out = (hdf5_mapping){.file = expand(pattern->file, number),
                        .dataset = expand(pattern->dataset, number),
                        .to = pattern->to,
                        .from = pattern->from};
  RETURN_IF(!out->file || !out->dataset, hdf5_out_of_memory(dataset->call->library, err));
  hdf5_slab *slab = &out->to.axes[pattern->to.unlimited];
  bool fits = !__builtin_mul_overflow(number, slab->stride, &slab->start) &&
              !__builtin_add_overflow(slab->start, pattern->to.axes[pattern->to.unlimited].start,
                                      &slab->start);
  slab->total = slab->block;
  out->to.unlimited = -1;
  if (out->from.whole) take_whole(out);
  return fits ? TEGULA_OK
              : hdf5_fail_mapping(dataset, TEGULA_CORRUPT, index, "reaches beyond 2^63 elements",
                                  err);
}

static tegula_status append(hdf5_dataset *dataset, int64_t index, const hdf5_mapping *mapping,
                            tegula_error *err) {
  if (dataset->mapping_count == MOST_MAPPINGS)
    return hdf5_fail_mapping(dataset, TEGULA_LIMIT_EXCEEDED, index, "has more than 2^20 sources",
                             err);
  hdf5_mapping *grown =
      realloc(dataset->mappings, (size_t)(dataset->mapping_count + 1) * sizeof *grown);
  RETURN_IF(!grown, hdf5_out_of_memory(dataset->call->library, err));
  dataset->mappings = grown;
  dataset->mappings[dataset->mapping_count++] = *mapping;
  return TEGULA_OK;
}

static tegula_status is_there(hdf5_dataset *dataset, const hdf5_mapping *mapping, hdf5_source *last,
                              bool *there, tegula_error *err) {
  tegula_error failure = {.rank = -1, .offset = -1};
  hdf5_source s;
  tegula_status status = hdf5_source_find(dataset, mapping, &s, &failure);
  hdf5_source_close(dataset->call, last); /* not before: mostly it is of the same file */
  *last = s;
  *there = status == TEGULA_OK;
  if (status == TEGULA_OK || status == TEGULA_NOT_FOUND) return TEGULA_OK;
  if (err) *err = failure;
  return status;
}

static tegula_status has_file(const hdf5_dataset *dataset, const hdf5_mapping *mapping, bool *there,
                              tegula_error *err) {
  char *path = hdf5_resolve(dataset->file, mapping->file);
  RETURN_IF(!path, hdf5_out_of_memory(dataset->call->library, err));
  *there = access(path, F_OK) == 0;
  free(path);
  return TEGULA_OK;
}

/* Appends the sources from 0 to the first that is not there: by their files alone, or by all that
 * they need. */
static tegula_status expand_all(hdf5_dataset *dataset, int64_t index, const hdf5_mapping *pattern,
                                bool by_file, tegula_error *err) {
  hdf5_source last = {.found = {.id = -1}};
  tegula_status status = TEGULA_OK;
  bool there = true;
  for (int64_t number = 0; status == TEGULA_OK && there; number++) {
    hdf5_mapping one;
    status = expand_one(dataset, index, pattern, number, &one, err);
    if (status == TEGULA_OK)
      status = by_file ? has_file(dataset, &one, &there, err)
                       : is_there(dataset, &one, &last, &there, err);
    if (status == TEGULA_OK && there) status = append(dataset, index, &one, err);
    if (status == TEGULA_OK && there) continue;
    free(one.file);
    free(one.dataset);
  }
  hdf5_source_close(dataset->call, &last);
  return status;
}

/* One block of the virtual dataset for each source that is there, counted from 0 to the first that
 * is not. Of very many files only the first and the last are opened: a file in between without the
 * dataset is a source that is lost. */
static tegula_status expand_mapping(hdf5_dataset *dataset, int64_t index,
                                    const hdf5_mapping *pattern, tegula_error *err) {
  int64_t first = dataset->mapping_count;
  if (!has_number(pattern->file)) return expand_all(dataset, index, pattern, false, err);
  FORWARD(expand_all(dataset, index, pattern, true, err));
  bool there = dataset->mapping_count - first > HDF5_AT_ONCE;
  for (int end = 0; there && end < 2; end++) {
    hdf5_source s = {.found = {.id = -1}};
    tegula_status status = is_there(
        dataset, &dataset->mappings[end ? dataset->mapping_count - 1 : first], &s, &there, err);
    hdf5_source_close(dataset->call, &s);
    FORWARD(status);
  }
  RETURN_IF(there, TEGULA_OK);
  while (dataset->mapping_count > first)
    hdf5_mapping_free(&dataset->mappings[--dataset->mapping_count]);
  return expand_all(dataset, index, pattern, false, err);
}

/* Takes `mapping` in among the dataset's, with its ends closed and its names written out. */
static tegula_status take_mapping(hdf5_dataset *dataset, int64_t index, hdf5_mapping *mapping,
                                  tegula_error *err) {
  bool open = mapping->to.unlimited >= 0,
       numbered = has_number(mapping->file) || has_number(mapping->dataset);
  if (open && mapping->from.unlimited < 0) {
    if (!numbered || mapping->from.boxes)
      return hdf5_fail_mapping(dataset, TEGULA_CORRUPT, index, "has no end, but its source has one",
                               err);
    if (mapping->to.axes[mapping->to.unlimited].block == INT64_MAX)
      return hdf5_fail_mapping(dataset, TEGULA_CORRUPT, index, "has a block without end", err);
    return expand_mapping(dataset, index, mapping, err);
  }
  if (mapping->from.unlimited >= 0 && !open)
    return hdf5_fail_mapping(dataset, TEGULA_CORRUPT, index, "has an end, but its source has none",
                             err);
  char *file = expand(mapping->file, 0), *name = expand(mapping->dataset, 0);
  hdf5_mapping *grown =
      realloc(dataset->mappings, (size_t)(dataset->mapping_count + 1) * sizeof *grown);
  if (grown) dataset->mappings = grown;
  if (!file || !name || !grown) {
    free(file);
    free(name);
    return hdf5_out_of_memory(dataset->call->library, err);
  }
  free(mapping->file);
  free(mapping->dataset);
  mapping->file = file;
  mapping->dataset = name;
  if (open) FORWARD(close_mapping(dataset, index, mapping, err));
  dataset->measured = dataset->measured || open;
  /* which element is which would depend on the shape of the hdf5_source */
  if (mapping->from.whole && mapping->to.boxes)
    return hdf5_fail_mapping(dataset, TEGULA_UNSUPPORTED, index,
                             "takes all of its source to a selection that is not regular", err);
  if (mapping->from.whole) take_whole(mapping);
  dataset->mappings[dataset->mapping_count++] = *mapping;
  *mapping = (hdf5_mapping){0};
  return TEGULA_OK;
}

static void grow_shape(hdf5_dataset *dataset, int axis) {
  int64_t most = 0;
  for (int64_t k = 0; k < dataset->mapping_count; k++) {
    const hdf5_selection *to = &dataset->mappings[k].to;
    int64_t reach = to->boxes ? 0 : hdf5_slab_extent(&to->axes[axis], to->axes[axis].total);
    for (int64_t b = 0; b < to->box_count; b++) {
      int64_t hi = to->boxes[(2 * b + 1) * to->ndim + axis];
      if (hi > reach) reach = hi;
    }
    if (reach > most) most = reach;
  }
  dataset->shape[axis] = most;
}

tegula_status hdf5_virtual_open(hdf5_dataset *dataset, tegula_error *err) {
  size_t count = 0;
  bool open[HDF5_MAX_RANK] = {false};
  if (dataset->call->library->call.H5Pget_virtual_count(dataset->plist, &count) < 0 ||
      (int64_t)count > MOST_MAPPINGS)
    return hdf5_failed(dataset->call->library, err, TEGULA_CORRUPT, dataset->file->path,
                       "read the mappings of \"%s\" in \"%s\"", dataset->name, dataset->file->path);
  for (size_t k = 0; k < count; k++) {
    hdf5_mapping mapping = {.to = {.unlimited = -1}, .from = {.unlimited = -1}};
    tegula_status status = read_mapping(dataset, (int64_t)k, &mapping, err);
    if (status == TEGULA_OK && mapping.to.unlimited >= 0) open[mapping.to.unlimited] = true;
    if (status == TEGULA_OK) status = take_mapping(dataset, (int64_t)k, &mapping, err);
    hdf5_mapping_free(&mapping);
    FORWARD(status);
  }
  bool any = false;
  for (int k = 0; k < dataset->ndim; k++) {
    any = any || open[k];
    if (open[k]) grow_shape(dataset, k);
  }
  return any ? hdf5_set_strides(dataset, err) : TEGULA_OK;
}
