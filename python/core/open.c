/* Opening: from paths and options to a dataset.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "core.h"

typedef struct open_call {
  core_call call;
  tegula_context *context;
  const char **paths;
  size_t count;
  tegula_open_options options;
  int64_t shape[TEGULA_MAX_DIMS], row_shape[TEGULA_MAX_DIMS];
  tegula_setting *settings;
  tegula_dataset *dataset;
} open_call;

static void run_open(core_call *call) {
  open_call *self = (open_call *)call;
  call->status = self->count == 1
                     ? tegula_dataset_open(self->context, self->paths[0], &self->options,
                                           &self->dataset, &call->error)
                     : tegula_dataset_open_list(self->context, self->paths, self->count,
                                                &self->options, &self->dataset, &call->error);
}

/* The texts are borrowed from the tuple of bytes. */
static bool take_paths(PyObject *tuple, open_call *self) {
  Py_ssize_t count = PyTuple_Size(tuple);
  self->paths = count > 0 ? calloc((size_t)count, sizeof *self->paths) : NULL;
  self->count = (size_t)count;
  if (self->paths == NULL) {
    PyErr_SetString(PyExc_ValueError, "no path was given");
    return false;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    self->paths[i] = PyBytes_AsString(PyTuple_GetItem(tuple, i));
    if (self->paths[i] == NULL) return false;
  }
  return true;
}

tegula_setting *core_take_settings(PyObject *tuple, int32_t *count) {
  Py_ssize_t items = PyTuple_Size(tuple);
  if (items < 0) return NULL;
  tegula_setting *settings = PyMem_Calloc((size_t)items + 1, sizeof *settings);
  if (settings == NULL) PyErr_NoMemory();
  for (Py_ssize_t i = 0; settings != NULL && i < items; i++) {
    if (PyArg_ParseTuple(PyTuple_GetItem(tuple, i), "ss", &settings[i].key, &settings[i].value))
      continue;
    PyMem_Free(settings);
    return NULL;
  }
  *count = (int32_t)items;
  return settings;
}

/* open(context, paths, format, dataset, field, dtype, shape, row_shape, offset, row_gap, order,
 * byte_order, expect_files, expect_rows, locked, settings, defer, timeout) */
static bool take_arguments(PyObject *arguments, open_call *self) {
  PyObject *context, *paths, *shape, *row_shape, *settings;
  const char *order, *byte_order;
  long long offset, row_gap, files, rows;
  int locked, defer;
  tegula_open_options *options = &self->options;
  tegula_open_options_init(options);
  if (!PyArg_ParseTuple(arguments, "OO!zzzzOOLLssLLpO!pd", &context, &PyTuple_Type, &paths,
                        &options->format, &options->dataset, &options->field, &options->dtype,
                        &shape, &row_shape, &offset, &row_gap, &order, &byte_order, &files, &rows,
                        &locked, &PyTuple_Type, &settings, &defer, &self->call.timeout) ||
      !core_lengths_or_none(shape, self->shape, &options->shape_ndim) ||
      !core_lengths_or_none(row_shape, self->row_shape, &options->row_ndim))
    return false;
  self->settings = core_take_settings(settings, &options->setting_count);
  options->settings = self->settings;
  if (self->settings == NULL) return false;
  options->shape = options->shape_ndim >= 0 ? self->shape : NULL;
  options->row_shape = options->row_ndim >= 0 ? self->row_shape : NULL;
  options->offset = offset;
  options->row_gap = row_gap;
  options->order = order[0];
  options->byte_order = byte_order[0];
  options->expect_files = files;
  options->expect_rows = rows;
  options->flags = (locked ? TEGULA_OPEN_LOCKED : 0) | (defer ? TEGULA_OPEN_DEFER_HEADERS : 0);
  options->progress = core_note;
  options->progress_state = &self->call;
  self->context = core_context_of(context);
  self->call.here = core_context_here(context);
  return self->context != NULL && take_paths(paths, self);
}

PyObject *core_open(PyObject *module, PyObject *arguments) {
  (void)module;
  open_call self = {.call = {.run = run_open, .slow = true}};
  PyObject *result = NULL;
  if (take_arguments(arguments, &self)) {
    if (core_run(&self.call) == 0)
      result = core_dataset_new(self.dataset, self.call.here);
    else
      tegula_dataset_close(self.dataset);
  }
  PyMem_Free(self.settings);
  free(self.paths);
  return result;
}

/* ---- attributes of HDF5 files ---- */

typedef struct attributes_call {
  core_call call;
  tegula_context *context;
  const char *path;
  tegula_open_options options;
  PyObject *list;
} attributes_call;

static PyObject *texts_of(const tegula_attribute *attribute) {
  PyObject *list = PyList_New(0);
  for (int64_t i = 0; list != NULL && i < attribute->count; i++) {
    PyObject *text = PyBytes_FromString(attribute->texts[i]);
    if (text == NULL || PyList_Append(list, text) < 0) Py_CLEAR(list);
    Py_XDECREF(text);
  }
  return list;
}

static PyObject *values_of(const tegula_attribute *attribute) {
  tegula_dtype dtype;
  if (attribute->texts != NULL) return texts_of(attribute);
  if (attribute->values == NULL) return Py_NewRef(Py_None);
  if (!core_dtype(attribute->type, &dtype)) return NULL;
  return PyBytes_FromStringAndSize(attribute->values,
                                   (Py_ssize_t)(attribute->count * dtype.item_size));
}

/* (name, type, shape or None, bytes | list of bytes | None, why omitted or None) */
static PyObject *attribute_tuple(const tegula_attribute *attribute) {
  PyObject *shape =
      attribute->shape != NULL ? core_tuple(attribute->shape, attribute->ndim) : Py_NewRef(Py_None);
  return Py_BuildValue("NsNNN", core_text(attribute->name), attribute->type, shape,
                       values_of(attribute), core_text(attribute->omitted));
}

static int note_attribute(void *state, const tegula_attribute *attribute) {
  attributes_call *self = state;
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *tuple = attribute_tuple(attribute);
  if (tuple == NULL || PyList_Append(self->list, tuple) < 0) {
    PyErr_Clear();
    atomic_store(&self->call.cancelled, true);
  }
  Py_XDECREF(tuple);
  PyGILState_Release(gil);
  return atomic_load(&self->call.cancelled);
}

static void run_attributes(core_call *call) {
  attributes_call *self = (attributes_call *)call;
  call->status = tegula_attributes(self->context, self->path, &self->options, note_attribute, self,
                                   &call->error);
}

/* attributes(context, path, dataset) -> list */
PyObject *core_attributes(PyObject *module, PyObject *arguments) {
  (void)module;
  attributes_call self = {.call = {.run = run_attributes, .slow = true}};
  PyObject *context;
  tegula_open_options_init(&self.options);
  if (!PyArg_ParseTuple(arguments, "Oyz", &context, &self.path, &self.options.dataset)) return NULL;
  self.options.progress = core_note;
  self.options.progress_state = &self.call;
  self.context = core_context_of(context);
  self.list = self.context != NULL ? PyList_New(0) : NULL;
  if (self.list == NULL || core_run(&self.call) < 0) Py_CLEAR(self.list);
  return self.list;
}
