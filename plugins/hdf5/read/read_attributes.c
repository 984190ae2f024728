/* Attributes of the file and of its datasets.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * libhdf5 reads the values, a few at most: what a damaged or hostile file claims beyond that is not
 * asked for. */
#include <stdlib.h>
#include <string.h>

#include "read/object_lookup.h"

#define MOST_BYTES ((int64_t)1 << 20)
#define MOST_TEXTS 4096 /* of variable length: each may be as long as the file */
#define MOST_NAMES (1 << 20)

enum { ENDED_BY_ZERO = 0, PADDED_WITH_SPACES = 2 };

typedef struct walk {
  hdf5_call *call;
  tegula_plugin_attribute_fn each;
  void *state;
} walk;

/* One attribute while it is read. */
typedef struct attribute {
  hdf5_library *library;
  hid_t id, type, space, memory;
  int64_t shape[HDF5_MAX_RANK];
  size_t item; /* bytes of an element in memory */
  char *data;
  char **texts;
  bool fixed;    /* text of a fixed length */
  bool variable; /* text of any length: the elements of data are pointers that libhdf5 made */
  hdf5_type form;
  char dtype[TEGULA_DTYPE_TEXT];
  tegula_attribute told;
} attribute;

static herr_t collect(hid_t object, const char *name, const void *info, void *state) {
  (void)object, (void)info;
  hdf5_names *list = state;
  if (list->count == list->capacity) {
    size_t capacity = list->capacity ? 2 * list->capacity : 16;
    char **items = list->count < MOST_NAMES ? realloc(list->items, capacity * sizeof *items) : NULL;
    list->failed = !items;
    if (!items) return -1;
    list->items = items;
    list->capacity = capacity;
  }
  char *copy = list->items[list->count] = strdup(name);
  list->failed = !copy;
  list->count += copy != NULL;
  return copy ? 0 : -1;
}

static const char *class_name(hdf5_library *library, hid_t type) {
  switch (library->call.H5Tget_class(type)) {
    case HDF5_INTEGER:
      return "integer";
    case HDF5_FLOAT:
      return "float";
    case HDF5_TIME:
      return "time";
    case HDF5_BITFIELD:
      return "bitfield";
    case HDF5_OPAQUE:
      return "opaque";
    case HDF5_COMPOUND:
      return "compound";
    case HDF5_REFERENCE:
      return "reference";
    case HDF5_ENUM:
      return "enum";
    case HDF5_VLEN:
      return "sequence of variable length";
    case HDF5_ARRAY:
      return "array";
    case HDF5_COMPLEX:
      return "complex";
    default:
      return "unknown";
  }
}

/* The shape, and how many elements; false: libhdf5 cannot say. */
static bool read_space(attribute *a) {
  const hdf5_functions *hdf5 = &a->library->call;
  hsize_t lengths[HDF5_MAX_RANK];
  int kind = hdf5->H5Sget_simple_extent_type(a->space), ndim = 0;
  if (kind == HDF5_SPACE_NULL) return true;
  if (kind != HDF5_SPACE_SCALAR) {
    ndim = hdf5->H5Sget_simple_extent_ndims(a->space);
    if (ndim < 0 || ndim > HDF5_MAX_RANK ||
        hdf5->H5Sget_simple_extent_dims(a->space, lengths, NULL) < 0)
      return false;
  }
  a->told.ndim = ndim;
  a->told.shape = a->shape;
  a->told.count = 1;
  bool empty = false;
  for (int k = 0; k < ndim; k++) {
    if (lengths[k] > INT64_MAX) return false;
    a->shape[k] = (int64_t)lengths[k];
    empty = empty || lengths[k] == 0;
    /* too many in any case, or 0 */
    if (__builtin_mul_overflow(a->told.count, a->shape[k], &a->told.count))
      a->told.count = INT64_MAX;
  }
  if (empty) a->told.count = 0;
  return true;
}

/* What its elements become in memory; `omitted` where they have no form here. */
static void read_type(attribute *a) {
  hdf5_library *library = a->library;
  hdf5_type type;
  char why[256];
  if (library->call.H5Tget_class(a->type) == HDF5_STRING &&
      library->call.H5Tis_variable_str(a->type) > 0) {
    a->told.type = "str";
    a->variable = true;
    a->item = sizeof(char *);
    a->memory = library->call.H5Tcopy(a->type);
    return;
  }
  a->told.type = class_name(library, a->type);
  a->told.omitted = "values of this type are not shown";
  if (!hdf5_type_of(library, a->type, &type, why, sizeof why) || type.dtype.kind == 'V') return;
  a->memory = hdf5_type_memory(library, a->type, &type);
  a->item = type.dtype.item_size;
  if (a->memory < 0 || library->call.H5Tget_size(a->memory) != a->item) return;
  a->library->host->dtype_format(type.dtype, a->dtype);
  a->told.type = a->dtype;
  a->told.omitted = NULL;
  a->fixed = type.dtype.kind == 'S';
  a->form = type;
  if (library->call.H5Tget_class(a->type) == HDF5_OPAQUE)
    a->form.swapped = type.order != '|' && type.order != HDF5_NATIVE_ORDER;
}

static tegula_status failed(const attribute *a, const hdf5_file *file, const char *object,
                            const char *name, tegula_error *err) {
  return hdf5_failed(a->library, err, TEGULA_CORRUPT, file->path,
                     "read attribute \"%s\" of \"%s\" in \"%s\"", name, object, file->path);
}

/* Bytes behind a zero that are part of the text: C has no form for it. Behind the zero that ends a
 * text there may be anything. */
static bool has_zeros_within(const attribute *a) {
  if (a->library->call.H5Tget_strpad(a->type) == ENDED_BY_ZERO) return false;
  for (int64_t i = 0; i < a->told.count; i++) {
    const char *text = a->data + (size_t)i * a->item;
    for (size_t at = strnlen(text, a->item); at < a->item; at++)
      if (text[at] != 0) return true;
  }
  return false;
}

/* Texts of fixed length: one block for all, each with a zero behind it. */
static bool cut_texts(attribute *a) {
  size_t count = (size_t)a->told.count, stride = a->item + 1;
  bool spaces = a->library->call.H5Tget_strpad(a->type) == PADDED_WITH_SPACES;
  char *block = calloc(count, stride);
  if (!block) return false;
  a->texts = calloc(count, sizeof *a->texts);
  for (size_t i = 0; a->texts && i < count; i++) {
    char *text = a->texts[i] = memcpy(block + i * stride, a->data + i * a->item, a->item);
    size_t length = strnlen(text, a->item);
    while (spaces && length > 0 && text[length - 1] == ' ') length--;
    text[length] = 0;
  }
  free(a->data);
  a->data = block;
  return a->texts != NULL;
}

/* Every text that libhdf5 made is one of ours; none (NULL) is the empty one. */
static bool name_texts(attribute *a) {
  size_t count = (size_t)a->told.count;
  a->texts = calloc(count, sizeof *a->texts);
  for (size_t i = 0; a->texts && i < count; i++) {
    memcpy(&a->texts[i], a->data + i * sizeof(char *), sizeof(char *));
    if (!a->texts[i]) a->texts[i] = "";
  }
  return a->texts != NULL;
}

static tegula_status read_values(attribute *a, const hdf5_file *file, const char *object,
                                 const char *name, tegula_error *err) {
  int64_t most = a->variable ? MOST_TEXTS : MOST_BYTES / (int64_t)a->item;
  if (a->told.count > most) {
    a->told.omitted =
        a->variable ? "there are more than 4,096 texts" : "there is more than 1 MiB of it";
    return TEGULA_OK;
  }
  a->data = calloc((size_t)a->told.count, a->item);
  if (!a->data) return hdf5_out_of_memory(a->library, err);
  if (a->library->call.H5Aread(a->id, a->memory, a->data) < 0)
    return failed(a, file, object, name, err);
  if (a->form.swapped) hdf5_type_swap_all(a->form.dtype, a->data, a->told.count);
  if (a->fixed && has_zeros_within(a)) {
    a->told.omitted = "there are zero bytes within its texts";
    return TEGULA_OK;
  }
  if ((a->fixed && !cut_texts(a)) || (a->variable && !name_texts(a)))
    return hdf5_out_of_memory(a->library, err);
  if (a->texts)
    a->told.texts = (const char *const *)a->texts;
  else
    a->told.values = a->data;
  return TEGULA_OK;
}

static void close_attribute(attribute *a) {
  const hdf5_functions *hdf5 = &a->library->call;
  for (int64_t i = 0; a->variable && a->data && i < a->told.count; i++) {
    void *text;
    memcpy(&text, a->data + (size_t)i * sizeof text, sizeof text);
    if (text) hdf5->H5free_memory(text);
  }
  free(a->data);
  free(a->texts);
  if (a->memory > 0) hdf5->H5Tclose(a->memory);
  if (a->space >= 0) hdf5->H5Sclose(a->space);
  if (a->type >= 0) hdf5->H5Tclose(a->type);
  if (a->id >= 0) hdf5->H5Aclose(a->id);
}

static tegula_status open_attribute(attribute *a, const hdf5_file *file, hid_t id,
                                    const char *object, const char *name, tegula_error *err) {
  const hdf5_functions *hdf5 = &a->library->call;
  a->id = hdf5->H5Aopen(id, name, HDF5_DEFAULT);
  if (a->id >= 0) a->type = hdf5->H5Aget_type(a->id);
  if (a->id >= 0) a->space = hdf5->H5Aget_space(a->id);
  if (a->type < 0 || a->space < 0 || !read_space(a)) return failed(a, file, object, name, err);
  read_type(a);
  return a->told.omitted || a->told.count == 0 ? TEGULA_OK
                                               : read_values(a, file, object, name, err);
}

static tegula_status tell(const walk *w, const hdf5_file *file, hid_t id, const char *object,
                          const char *name, tegula_error *err) {
  attribute a = {.library = w->call->library, .id = -1, .type = -1, .space = -1};
  a.told = (tegula_attribute){.struct_size = sizeof a.told, .object = object, .name = name};
  tegula_status status = open_attribute(&a, file, id, object, name, err);
  if (status == TEGULA_OK) status = w->each(w->state, &a.told, err);
  close_attribute(&a);
  return status;
}

tegula_status hdf5_attribute_names(hdf5_library *library, const char *path, hid_t id,
                                   const char *object, int order, hdf5_names *out,
                                   tegula_error *err) {
  hsize_t from = 0;
  *out = (hdf5_names){0};
  if (library->call.H5Aiterate2(id, order, 0 /* increasing */, &from, collect, out) >= 0)
    return TEGULA_OK;
  bool failed = out->failed;
  hdf5_names_free(out);
  return failed ? hdf5_out_of_memory(library, err)
                : hdf5_failed(library, err, TEGULA_CORRUPT, path,
                              "list the attributes of \"%s\" in \"%s\"", object, path);
}

void hdf5_names_free(hdf5_names *names) {
  for (size_t k = 0; k < names->count; k++) free(names->items[k]);
  free(names->items);
  *names = (hdf5_names){0};
}

bool hdf5_comment_read(hdf5_library *library, hid_t id, char **out) {
  *out = NULL;
  ptrdiff_t size = library->call.H5Oget_comment(id, NULL, 0);
  RETURN_IF(size <= 0, size == 0);
  char *text = calloc(1, (size_t)size + 1);
  if (text && library->call.H5Oget_comment(id, text, (size_t)size + 1) >= 0)
    *out = text;
  else
    free(text);
  return *out != NULL;
}

static tegula_status tell_comment(const walk *w, const hdf5_file *file, hid_t id,
                                  const char *object, tegula_error *err) {
  char *text;
  if (!hdf5_comment_read(w->call->library, id, &text))
    return hdf5_failed(w->call->library, err, TEGULA_CORRUPT, file->path,
                       "read the comment of \"%s\" in \"%s\"", object, file->path);
  RETURN_IF(!text, TEGULA_OK);
  const char *const texts[] = {text};
  const tegula_attribute told = {
      .struct_size = sizeof told, .object = object, .type = "str", .count = 1, .texts = texts};
  tegula_status status = w->each(w->state, &told, err);
  free(text);
  return status;
}

/* An hdf5_each_fn. */
static tegula_status visit(void *state, hdf5_file *file, hid_t id, const char *object,
                           const tegula_error *why, tegula_error *err) {
  const walk *w = state;
  (void)why;
  hdf5_names list;
  if (id < 0) return TEGULA_OK; /* the list of datasets says what is wrong with it */
  tegula_status status =
      hdf5_attribute_names(w->call->library, file->path, id, object, HDF5_BY_NAME, &list, err);
  for (size_t k = 0; status == TEGULA_OK && k < list.count; k++)
    status = tell(w, file, id, object, list.items[k], err);
  hdf5_names_free(&list);
  return status == TEGULA_OK ? tell_comment(w, file, id, object, err) : status;
}

static tegula_status visit_all(walk *w, hdf5_file *file, tegula_error *err) {
  const hdf5_functions *hdf5 = &w->call->library->call;
  hid_t root = hdf5->H5Oopen(file->id, "/", HDF5_DEFAULT);
  if (root < 0)
    return hdf5_failed(w->call->library, err, TEGULA_CORRUPT, file->path,
                       "open the root group of \"%s\"", file->path);
  tegula_status status = visit(w, file, root, "/", NULL, err);
  hdf5->H5Oclose(root);
  return status == TEGULA_OK ? hdf5_walk(w->call, file, true, visit, w, err) : status;
}

tegula_status hdf5_attributes(hdf5_call *call, hdf5_file *file, const char *name,
                              tegula_plugin_attribute_fn each, void *state, tegula_error *err) {
  walk w = {.call = call, .each = each, .state = state};
  hdf5_found found;
  if (!name) return visit_all(&w, file, err);
  tegula_status status = hdf5_follow(call, file, name, &found, NULL);
  if (status != TEGULA_OK) { /* said as for a dataset, with names that are near */
    hdf5_found_free(call, &found);
    FORWARD(hdf5_find(call, file, name, &found, err));
  }
  status = visit(&w, found.file, found.id, found.name[0] ? found.name : "/", NULL, err);
  hdf5_found_free(call, &found);
  return status;
}
