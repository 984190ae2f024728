/* Saving: one array, several into one file, now or in the background. Piece by piece: saving.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

typedef struct attribute_shape {
  int64_t lengths[TEGULA_MAX_DIMS];
} attribute_shape;

/* ---- attributes: a list of (name, type, shape or None, bytes or a list of bytes) ---- */

static bool take_texts(PyObject *list, tegula_attribute *attribute) {
  Py_ssize_t count = PyList_Size(list);
  const char **texts = PyMem_Calloc((size_t)(count > 0 ? count : 1), sizeof *texts);
  attribute->texts = texts;
  attribute->count = count;
  for (Py_ssize_t i = 0; texts != NULL && i < count; i++) {
    texts[i] = PyBytes_AsString(PyList_GetItem(list, i));
    if (texts[i] == NULL) return false;
  }
  return texts != NULL || PyErr_NoMemory() != NULL;
}

static bool take_attribute(PyObject *tuple, tegula_attribute *attribute, attribute_shape *shape) {
  PyObject *shape_tuple, *values;
  long long count;
  attribute->struct_size = sizeof *attribute;
  if (!PyArg_ParseTuple(tuple, "ssOLO", &attribute->name, &attribute->type, &shape_tuple, &count,
                        &values) ||
      !core_lengths_or_none(shape_tuple, shape->lengths, &attribute->ndim))
    return false;
  attribute->shape = attribute->ndim >= 0 ? shape->lengths : NULL;
  if (attribute->ndim < 0) attribute->ndim = 0;
  if (PyList_Check(values)) return take_texts(values, attribute);
  attribute->count = count;
  attribute->values = count > 0 ? PyBytes_AsString(values) : NULL;
  return count == 0 || attribute->values != NULL;
}

void core_drop_described(core_described *self) {
  for (int64_t i = 0; i < self->attribute_count; i++) PyMem_Free((void *)self->attributes[i].texts);
  PyMem_Free(self->attributes);
}

/* The shapes lie behind the attributes in one block. */
static bool take_attributes(PyObject *list, core_described *self) {
  Py_ssize_t count = PyList_Size(list);
  if (count <= 0) return count == 0;
  self->attributes =
      PyMem_Calloc((size_t)count, sizeof *self->attributes + sizeof(attribute_shape));
  if (self->attributes == NULL) return PyErr_NoMemory() != NULL;
  attribute_shape *shapes = (attribute_shape *)(self->attributes + count);
  for (Py_ssize_t i = 0; i < count; i++) {
    self->attribute_count = i + 1;
    if (!take_attribute(PyList_GetItem(list, i), &self->attributes[i], &shapes[i])) return false;
  }
  return true;
}

/* (dataset, layout, chunk or None, codec, fill, attributes) */
bool core_take_described(PyObject *tuple, core_described *self) {
  PyObject *chunk, *fill, *attributes;
  if (!PyArg_ParseTuple(tuple, "zzOzOO!", &self->dataset, &self->layout, &chunk, &self->codec,
                        &fill, &PyList_Type, &attributes))
    return false;
  self->fill = fill != Py_None ? PyBytes_AsString(fill) : NULL;
  return (fill == Py_None || self->fill != NULL) &&
         core_lengths_or_none(chunk, self->chunk, &self->chunk_ndim) &&
         take_attributes(attributes, self);
}

/* ---- the target ---- */

void core_drop_target(tegula_save_options *options) { PyMem_Free((void *)options->settings); }

/* (format, descr, shards, order, byte_order, overwrite, durable, whole file[, settings]) */
bool core_take_target(PyObject *tuple, tegula_save_options *options) {
  const char *order, *byte_order;
  long long shards;
  int overwrite, durable, whole;
  PyObject *settings = NULL;
  if (!PyArg_ParseTuple(tuple, "zzLssppp|O!", &options->format, &options->descr, &shards, &order,
                        &byte_order, &overwrite, &durable, &whole, &PyTuple_Type, &settings))
    return false;
  if (settings != NULL) {
    options->settings = core_take_settings(settings, &options->setting_count);
    if (options->settings == NULL) return false;
  }
  options->shards = shards;
  options->order = order[0];
  options->byte_order = byte_order[0];
  options->overwrite = (uint8_t)overwrite;
  options->durable = (uint8_t)durable;
  options->flags = whole ? TEGULA_SAVE_WHOLE_FILE : 0;
  return true;
}

void core_describe(const core_described *from, tegula_save_options *options) {
  options->dataset = from->dataset;
  options->layout = from->layout;
  options->chunk = from->chunk_ndim >= 0 ? from->chunk : NULL;
  options->chunk_ndim = from->chunk_ndim >= 0 ? from->chunk_ndim : 0;
  options->codec = from->codec;
  options->fill = from->fill;
  options->attributes = from->attributes;
  options->attribute_count = from->attribute_count;
}

/* ---- one array ---- */

typedef struct save_call {
  core_call call;
  const tegula_array *array;
  const char *path;
  tegula_save_options options;
} save_call;

static void run_save(core_call *call) {
  save_call *self = (save_call *)call;
  call->status = tegula_save(self->array, self->path, &self->options, &call->error);
}

static PyObject *save_later(save_call *self) {
  tegula_op *op;
  tegula_status status;
  core_enter();
  Py_BEGIN_ALLOW_THREADS;
  status = tegula_save_async(self->array, self->path, &self->options, &op, &self->call.error);
  Py_END_ALLOW_THREADS;
  if (status == TEGULA_OK) return core_operation_new(op); /* leaves when it has ended */
  core_leave();
  return core_raise(&self->call.error);
}

static PyObject *save_now(save_call *self) {
  self->options.progress = core_note;
  self->options.progress_state = &self->call;
  return core_run(&self->call) == 0 ? Py_NewRef(Py_None) : NULL;
}

/* save(array, path, target, described, block, progress, timeout) -> None, or an Operation unless
 * block */
PyObject *core_save(PyObject *module, PyObject *arguments) {
  PyObject *array_object, *target, *what, *result = NULL;
  int block;
  core_described dataset = {0};
  save_call self = {.call = {.run = run_save, .slow = true}};
  (void)module;
  tegula_save_options_init(&self.options);
  if (!PyArg_ParseTuple(arguments, "OyOOpOd", &array_object, &self.path, &target, &what, &block,
                        &self.call.progress, &self.call.timeout))
    return NULL;
  core_array *array = core_array_of(array_object);
  if (array != NULL && core_take_target(target, &self.options) &&
      core_take_described(what, &dataset)) {
    core_describe(&dataset, &self.options);
    self.array = array->handle;
    self.call.here = array->here;
    result = block ? save_now(&self) : save_later(&self);
  }
  core_drop_described(&dataset);
  core_drop_target(&self.options);
  return result;
}

/* ---- several ---- */

typedef struct group_call {
  core_call call;
  tegula_save_member *members;
  int64_t count;
  const char *path;
  tegula_save_options options;
} group_call;

static void run_group(core_call *call) {
  group_call *self = (group_call *)call;
  call->status =
      tegula_save_group(self->members, self->count, self->path, &self->options, &call->error);
}

/* (array, described, descr) */
static bool take_member(PyObject *tuple, group_call *self, core_described *dataset,
                        tegula_save_member *member) {
  PyObject *array_object, *what;
  const char *descr;
  tegula_save_options options;
  if (!PyArg_ParseTuple(tuple, "OOz", &array_object, &what, &descr) ||
      !core_take_described(what, dataset))
    return false;
  core_array *array = core_array_of(array_object);
  if (array == NULL) return false;
  tegula_save_options_init(&options);
  core_describe(dataset, &options);
  tegula_save_member_init(member);
  member->array = array->handle;
  self->call.here = self->call.here || array->here;
  member->dataset = options.dataset;
  member->layout = options.layout;
  member->chunk = options.chunk;
  member->chunk_ndim = options.chunk_ndim;
  member->byte_order = self->options.byte_order;
  member->codec = options.codec;
  member->fill = options.fill;
  member->attributes = options.attributes;
  member->attribute_count = options.attribute_count;
  member->descr = descr;
  return true;
}

static bool take_members(PyObject *list, group_call *self, core_described *datasets) {
  for (int64_t i = 0; i < self->count; i++)
    if (!take_member(PyList_GetItem(list, (Py_ssize_t)i), self, &datasets[i], &self->members[i]))
      return false;
  return true;
}

static PyObject *save_members(PyObject *list, group_call *self) {
  PyObject *result = NULL;
  self->count = PyList_Size(list);
  size_t count = (size_t)(self->count > 0 ? self->count : 1);
  core_described *datasets = PyMem_Calloc(count, sizeof *datasets);
  self->members = PyMem_Calloc(count, sizeof *self->members);
  if (datasets == NULL || self->members == NULL)
    PyErr_NoMemory();
  else if (take_members(list, self, datasets))
    result = core_run(&self->call) == 0 ? Py_NewRef(Py_None) : NULL;
  for (int64_t i = 0; datasets != NULL && i < self->count; i++) core_drop_described(&datasets[i]);
  PyMem_Free(self->members);
  PyMem_Free(datasets);
  return result;
}

/* save_group(members, path, target, progress, timeout) */
PyObject *core_save_group(PyObject *module, PyObject *arguments) {
  PyObject *list, *target;
  group_call self = {.call = {.run = run_group, .slow = true}};
  (void)module;
  tegula_save_options_init(&self.options);
  PyObject *result = NULL;
  if (!PyArg_ParseTuple(arguments, "O!yOOd", &PyList_Type, &list, &self.path, &target,
                        &self.call.progress, &self.call.timeout))
    return NULL;
  self.options.progress = core_note;
  self.options.progress_state = &self.call;
  if (core_take_target(target, &self.options)) result = save_members(list, &self);
  core_drop_target(&self.options);
  return result;
}
