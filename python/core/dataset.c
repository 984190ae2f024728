/* Datasets: what is known of them, and reading boxes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core.h"

static void close_dataset(tegula_dataset *handle) {
  Py_BEGIN_ALLOW_THREADS; /* a reader is released, which takes the GIL */
  tegula_dataset_close(handle);
  Py_END_ALLOW_THREADS;
}

PyObject *core_dataset_new(tegula_dataset *handle, bool here) {
  tegula_dataset_info_t info;
  tegula_error error;
  tegula_dataset_info_init(&info);
  if (tegula_dataset_info(handle, &info, &error) != TEGULA_OK) {
    close_dataset(handle);
    return core_raise(&error);
  }
  core_dataset *self = (core_dataset *)PyType_GenericAlloc(core_dataset_type, 0);
  if (self == NULL) {
    close_dataset(handle);
    return NULL;
  }
  self->handle = handle;
  self->generation = core_generation();
  self->dtype = info.dtype;
  self->ndim = info.ndim;
  self->depth = core_depth();
  memcpy(self->shape, info.shape, (size_t)info.ndim * sizeof *self->shape);
  self->here = here;
  return (PyObject *)self;
}

static void dataset_dealloc(PyObject *object) {
  core_dataset *self = (core_dataset *)object;
  PyTypeObject *type = Py_TYPE(object);
  if (self->handle != NULL && self->generation == core_generation()) close_dataset(self->handle);
  Py_XDECREF(self->empty);
  Py_XDECREF(self->numpy_dtype);
  PyObject_Free(object);
  Py_DECREF(type);
}

/* info() -> (dtype, descr, shape, format, name, files, pieces, bytes, stored_bytes, chunk,
 * codecs) */
static PyObject *dataset_info(PyObject *object, PyObject *unused) {
  core_dataset *self = core_dataset_of(object);
  tegula_dataset_info_t info;
  tegula_error error;
  char dtype[TEGULA_DTYPE_TEXT];
  (void)unused;
  if (self == NULL) return NULL;
  tegula_dataset_info_init(&info);
  if (tegula_dataset_info(self->handle, &info, &error) != TEGULA_OK) return core_raise(&error);
  tegula_dtype_format(info.dtype, dtype);
  return Py_BuildValue("sNNsNLLLLNN", dtype, core_text(info.descr),
                       core_tuple(info.shape, info.ndim), info.format, core_text(info.name),
                       (long long)info.files, (long long)info.chunks, (long long)info.bytes,
                       (long long)info.stored_bytes,
                       info.chunk != NULL ? core_tuple(info.chunk, info.ndim) : Py_NewRef(Py_None),
                       core_text(info.codecs));
}

static PyObject *dataset_file(PyObject *object, PyObject *number) {
  core_dataset *self = core_dataset_of(object);
  tegula_file_info info;
  tegula_error error;
  long long index = PyLong_AsLongLong(number);
  if (self == NULL || (index == -1 && PyErr_Occurred())) return NULL;
  tegula_file_info_init(&info);
  return tegula_dataset_file(self->handle, index, &info, &error) == TEGULA_OK ? core_path(info.path)
                                                                              : core_raise(&error);
}

static PyObject *dataset_to_json(PyObject *object, PyObject *unused) {
  core_dataset *self = core_dataset_of(object);
  tegula_error error;
  char *text = NULL;
  tegula_status status;
  (void)unused;
  if (self == NULL) return NULL;
  core_enter();
  Py_BEGIN_ALLOW_THREADS;
  status = tegula_dataset_to_json(self->handle, NULL, &text, &error);
  Py_END_ALLOW_THREADS;
  core_leave();
  return status == TEGULA_OK ? core_take_text(text) : core_raise(&error);
}

static PyObject *dataset_explain(PyObject *object, PyObject *tiling_object) {
  core_dataset *self = core_dataset_of(object);
  const tegula_tiling *tiling = core_tiling_of(tiling_object);
  tegula_error error;
  char *text = NULL;
  tegula_status status;
  if (self == NULL || tiling == NULL) return NULL;
  core_enter();
  Py_BEGIN_ALLOW_THREADS;
  status = tegula_explain(self->handle, tiling, &text, &error);
  Py_END_ALLOW_THREADS;
  core_leave();
  return status == TEGULA_OK ? core_take_text(text) : core_raise(&error);
}

/* ---- calls that read ---- */

typedef struct read_call {
  core_call call;
  tegula_dataset *dataset;
  tegula_load_options options;
  tegula_view view;
  tegula_array *array;
  int64_t origin[TEGULA_MAX_DIMS], step[TEGULA_MAX_DIMS];
  char hash[TEGULA_HASH_TEXT];
} read_call;

static void prepare(read_call *self, const core_dataset *dataset, unsigned missing) {
  self->dataset = dataset->handle;
  self->call.here = dataset->here;
  tegula_load_options_init(&self->options);
  self->options.missing = missing;
  self->options.progress = core_note;
  self->options.progress_state = &self->call;
}

static void run_read(core_call *call) {
  read_call *self = (read_call *)call;
  call->status = tegula_dataset_read(self->dataset, &self->view, &self->options, &call->error);
}

/* Every step-th element of the view's box: the whole of a selection. */
static void run_read_steps(core_call *call) {
  read_call *self = (read_call *)call;
  tegula_box *box = &self->view.box;
  tegula_selection selection;
  tegula_dataset *selected;
  tegula_selection_init(&selection);
  selection.lo = box->lo;
  selection.hi = box->hi;
  selection.step = self->step;
  selection.ndim = box->ndim;
  call->status = tegula_dataset_select(self->dataset, &selection, &selected, &call->error);
  if (call->status != TEGULA_OK) return;
  for (int32_t k = 0; k < box->ndim; k++) {
    int64_t span = box->hi[k] - box->lo[k];
    box->lo[k] = 0;
    box->hi[k] = span > 0 ? (span - 1) / self->step[k] + 1 : 0;
  }
  call->status = tegula_dataset_read(selected, &self->view, &self->options, &call->error);
  tegula_dataset_close(selected);
}

typedef struct select_call {
  core_call call;
  const tegula_dataset *dataset;
  tegula_selection selection;
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], step[TEGULA_MAX_DIMS];
  tegula_dataset *selected;
} select_call;

static void run_select(core_call *call) {
  select_call *self = (select_call *)call;
  call->status =
      tegula_dataset_select(self->dataset, &self->selection, &self->selected, &call->error);
}

/* select(lo, hi, step or None, field or None, timeout) */
static PyObject *dataset_select(PyObject *object, PyObject *arguments) {
  core_dataset *dataset = core_dataset_of(object);
  PyObject *lo, *hi, *step;
  int32_t counts[3];
  select_call self = {.call = {.run = run_select, .slow = true}};
  tegula_selection *selection = &self.selection;
  tegula_selection_init(selection);
  if (dataset == NULL ||
      !PyArg_ParseTuple(arguments, "OOOzd", &lo, &hi, &step, &selection->field,
                        &self.call.timeout) ||
      !core_lengths(lo, self.lo, &counts[0]) || !core_lengths(hi, self.hi, &counts[1]) ||
      !core_lengths_or_none(step, self.step, &counts[2]))
    return NULL;
  for (int i = 0; i < (step != Py_None ? 3 : 2); i++)
    if (counts[i] != dataset->ndim)
      return PyErr_Format(PyExc_ValueError, "expected boxes of %d axes", dataset->ndim);
  selection->ndim = dataset->ndim;
  selection->lo = self.lo;
  selection->hi = self.hi;
  selection->step = step != Py_None ? self.step : NULL;
  self.dataset = dataset->handle;
  if (core_run(&self.call) == 0) return core_dataset_new(self.selected, dataset->here);
  tegula_dataset_close(self.selected);
  return NULL;
}

enum { SLOW_BYTES = 1 << 20 }; /* a read of fewer bytes is over before anybody can press a key */

/* read(address, lo, hi, step or None, strides, missing, bytes, progress, timeout) */
static PyObject *dataset_read(PyObject *object, PyObject *arguments) {
  core_dataset *dataset = core_dataset_of(object);
  PyObject *lo, *hi, *step, *strides;
  unsigned long long address;
  int32_t counts[4];
  unsigned missing;
  long long bytes;
  read_call self = {.call = {.run = run_read}};
  if (dataset == NULL ||
      !PyArg_ParseTuple(arguments, "KOOOOILOd", &address, &lo, &hi, &step, &strides, &missing,
                        &bytes, &self.call.progress, &self.call.timeout))
    return NULL;
  prepare(&self, dataset, missing);
  self.view = (tegula_view){.data = (void *)(uintptr_t)address,
                            .dtype = dataset->dtype,
                            .device_type = TEGULA_DEVICE_HOST};
  self.view.box.ndim = dataset->ndim;
  if (!core_lengths(lo, self.view.box.lo, &counts[0]) ||
      !core_lengths(hi, self.view.box.hi, &counts[1]) ||
      !core_lengths(strides, self.view.stride_bytes, &counts[2]) ||
      !core_lengths_or_none(step, self.step, &counts[3]))
    return NULL;
  for (int i = 0; i < (step != Py_None ? 4 : 3); i++)
    if (counts[i] != dataset->ndim)
      return PyErr_Format(PyExc_ValueError, "expected boxes of %d axes", dataset->ndim);
  if (step != Py_None) self.call.run = run_read_steps;
  self.call.slow = bytes >= SLOW_BYTES;
  return core_run(&self.call) == 0 ? Py_NewRef(Py_None) : NULL;
}

static void run_load(core_call *call) {
  read_call *self = (read_call *)call;
  call->status = tegula_load(self->dataset, self->array, &self->options, &call->error);
}

/* load(array, origin or None, missing, progress, timeout) */
static PyObject *dataset_load(PyObject *object, PyObject *arguments) {
  core_dataset *dataset = core_dataset_of(object);
  PyObject *array_object, *origin;
  unsigned missing;
  read_call self = {.call = {.run = run_load, .slow = true}};
  if (dataset == NULL || !PyArg_ParseTuple(arguments, "OOIOd", &array_object, &origin, &missing,
                                           &self.call.progress, &self.call.timeout))
    return NULL;
  prepare(&self, dataset, missing);
  core_array *array = core_array_of(array_object);
  if (array == NULL || !core_lengths_or_none(origin, self.origin, &self.options.origin_ndim))
    return NULL;
  self.options.origin = self.options.origin_ndim >= 0 ? self.origin : NULL;
  if (self.options.origin == NULL) self.options.origin_ndim = 0;
  self.array = array->handle;
  return core_run(&self.call) == 0 ? Py_NewRef(Py_None) : NULL;
}

static void run_hash(core_call *call) {
  read_call *self = (read_call *)call;
  call->status = tegula_dataset_hash(self->dataset, self->hash, &self->options, &call->error);
}

/* hash(missing, progress, timeout) */
static PyObject *dataset_hash(PyObject *object, PyObject *arguments) {
  core_dataset *dataset = core_dataset_of(object);
  unsigned missing;
  read_call self = {.call = {.run = run_hash, .slow = true}};
  if (dataset == NULL ||
      !PyArg_ParseTuple(arguments, "IOd", &missing, &self.call.progress, &self.call.timeout))
    return NULL;
  prepare(&self, dataset, missing);
  return core_run(&self.call) == 0 ? PyUnicode_FromString(self.hash) : NULL;
}

int core_dataset_init(PyObject *module) {
  static PyMethodDef methods[] = {{"info", dataset_info, METH_NOARGS, NULL},
                                  {"file", dataset_file, METH_O, NULL},
                                  {"to_json", dataset_to_json, METH_NOARGS, NULL},
                                  {"explain", dataset_explain, METH_O, NULL},
                                  {"read", dataset_read, METH_VARARGS, NULL},
                                  {"select", dataset_select, METH_VARARGS, NULL},
                                  {"load", dataset_load, METH_VARARGS, NULL},
                                  {"hash", dataset_hash, METH_VARARGS, NULL},
                                  {"quick", core_dataset_quick, METH_O, NULL},
                                  {"prepare", core_dataset_prepare, METH_VARARGS, NULL},
                                  {NULL, NULL, 0, NULL}};
  PyType_Slot slots[] = {{Py_tp_dealloc, dataset_dealloc}, {Py_tp_methods, methods}, {0, NULL}};
  PyType_Spec spec = {"tegula._core.Dataset", sizeof(core_dataset), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  core_dataset_type = core_add_type(module, "Dataset", &spec);
  return core_dataset_type != NULL ? 0 : -1;
}
