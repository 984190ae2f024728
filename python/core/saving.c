/* Saving piece by piece: begun, written to by tasks of a runtime, ended.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

static PyTypeObject *saving_type;

typedef struct saving {
  PyObject_HEAD tegula_saving *handle; /* NULL once it has ended */
  uint32_t generation;
  tegula_dtype dtype;
  PyObject *stop; /* a flag, or None */
  int64_t busy;   /* calls that write tiles now: the save must not end under them */
} saving;

static saving *live(PyObject *object) {
  saving *self = (saving *)object;
  if (!core_current(self->generation)) return NULL;
  if (self->handle != NULL) return self;
  PyErr_SetString(PyExc_ValueError, "this save has ended");
  return NULL;
}

/* The same for a call that ends it. */
static saving *idle(PyObject *object) {
  saving *self = live(object);
  if (self == NULL || self->busy == 0) return self;
  PyErr_SetString(
      PyExc_ValueError,
      "tiles of this save are still being written: wait for these calls before it ends");
  return NULL;
}

typedef struct saving_call {
  core_call call;
  tegula_context *context;
  tegula_saving *saving;
  const tegula_tiling *tiling;
  const char *path, *json;
  tegula_dtype dtype;
  tegula_view view;
  tegula_save_options options;
} saving_call;

/* ---- begin ---- */

static void run_begin(core_call *call) {
  saving_call *self = (saving_call *)call;
  call->status = tegula_save_begin(self->context, self->dtype, self->tiling, self->path,
                                   &self->options, &self->saving, &call->error);
}

static PyObject *wrap(tegula_saving *handle, tegula_dtype dtype, PyObject *stop) {
  saving *self = (saving *)PyType_GenericAlloc(saving_type, 0);
  if (self == NULL) {
    tegula_save_abandon(handle);
    return NULL;
  }
  self->handle = handle;
  self->generation = core_generation();
  self->dtype = dtype;
  self->stop = Py_NewRef(stop);
  return (PyObject *)self;
}

/* save_begin(context, dtype, tiling, path, target, described, stop = None) -> Saving; `stop`: a
 * flag, which ends the writing of tiles */
PyObject *core_save_begin(PyObject *module, PyObject *arguments) {
  PyObject *context, *tiling, *target, *what, *stop = Py_None, *result = NULL;
  const char *text;
  core_described dataset = {0};
  saving_call self = {.call = {.run = run_begin}};
  (void)module;
  tegula_save_options_init(&self.options);
  if (!PyArg_ParseTuple(arguments, "OsOyOO|O", &context, &text, &tiling, &self.path, &target, &what,
                        &stop) ||
      !core_dtype(text, &self.dtype))
    return NULL;
  self.context = core_context_of(context);
  self.tiling = core_tiling_of(tiling);
  if (self.context != NULL && self.tiling != NULL && core_take_target(target, &self.options) &&
      core_take_described(what, &dataset)) {
    core_describe(&dataset, &self.options);
    self.options.progress_state = core_flag_of(stop);
    if (self.options.progress_state != NULL) self.options.progress = core_flag_note;
    if (core_run(&self.call) == 0) result = wrap(self.saving, self.dtype, stop);
  }
  core_drop_described(&dataset);
  core_drop_target(&self.options);
  return result;
}

/* ---- tiles ---- */

/* Reads (address, lo, hi, strides) from position `at` on. */
static bool take_view(PyObject *arguments, Py_ssize_t at, tegula_dtype dtype, tegula_view *view) {
  int32_t counts[2];
  *view = (tegula_view){
      .dtype = dtype, .device_type = TEGULA_DEVICE_HOST, .flags = TEGULA_VIEW_READ_ONLY};
  view->data = (void *)(uintptr_t)PyLong_AsUnsignedLongLong(PyTuple_GetItem(arguments, at));
  if (PyErr_Occurred() ||
      !core_lengths(PyTuple_GetItem(arguments, at + 1), view->box.lo, &view->box.ndim) ||
      !core_lengths(PyTuple_GetItem(arguments, at + 2), view->box.hi, &counts[0]) ||
      !core_lengths(PyTuple_GetItem(arguments, at + 3), view->stride_bytes, &counts[1]))
    return false;
  if (counts[0] == view->box.ndim && counts[1] == view->box.ndim) return true;
  PyErr_SetString(PyExc_ValueError, "expected a box and strides of the same number of axes");
  return false;
}

static void run_tile(core_call *call) {
  saving_call *self = (saving_call *)call;
  call->status = tegula_save_tile(self->saving, &self->view, &call->error);
}

/* tile(address, lo, hi, strides) */
static PyObject *saving_tile(PyObject *object, PyObject *arguments) {
  saving *self = live(object);
  saving_call call = {.call = {.run = run_tile}};
  if (self == NULL) return NULL;
  if (PyTuple_Size(arguments) != 4)
    return PyErr_Format(PyExc_TypeError, "expected 4 arguments, found %zd",
                        PyTuple_Size(arguments));
  if (!take_view(arguments, 0, self->dtype, &call.view)) return NULL;
  call.saving = self->handle;
  self->busy++;
  int failed = core_run(&call.call);
  self->busy--;
  return failed == 0 ? Py_NewRef(Py_None) : NULL;
}

static void run_tile_from(core_call *call) {
  saving_call *self = (saving_call *)call;
  call->status = tegula_save_tile_from(self->context, self->json, &self->view, &call->error);
}

/* save_tile_from(context, json, dtype, address, lo, hi, strides) */
PyObject *core_save_tile_from(PyObject *module, PyObject *arguments) {
  PyObject *context, *unused[4];
  const char *text;
  saving_call self = {.call = {.run = run_tile_from}};
  (void)module;
  if (!PyArg_ParseTuple(arguments, "OssOOOO", &context, &self.json, &text, &unused[0], &unused[1],
                        &unused[2], &unused[3]) ||
      !core_dtype(text, &self.dtype) || !take_view(arguments, 3, self.dtype, &self.view))
    return NULL;
  self.context = core_context_of(context);
  return self.context != NULL && core_run(&self.call) == 0 ? Py_NewRef(Py_None) : NULL;
}

/* to_json() -> the text with which other processes write tiles */
static PyObject *saving_to_json(PyObject *object, PyObject *unused) {
  saving *self = live(object);
  char *text = NULL;
  tegula_error error;
  (void)unused;
  if (self == NULL) return NULL;
  return tegula_saving_to_json(self->handle, &text, &error) == TEGULA_OK ? core_take_text(text)
                                                                         : core_raise(&error);
}

/* ---- end ---- */

static void run_commit(core_call *call) {
  saving_call *self = (saving_call *)call;
  call->status = tegula_save_commit(self->saving, &call->error);
}

static PyObject *saving_commit(PyObject *object, PyObject *unused) {
  saving *self = idle(object);
  saving_call call = {.call = {.run = run_commit}};
  (void)unused;
  if (self == NULL) return NULL;
  call.saving = self->handle;
  self->handle = NULL; /* commit ends it in any case */
  return core_run(&call.call) == 0 ? Py_NewRef(Py_None) : NULL;
}

static void abandon(saving *self) {
  tegula_saving *handle = self->handle;
  self->handle = NULL;
  /* of the process that this one was forked from */
  if (handle == NULL || self->generation != core_generation()) return;
  Py_BEGIN_ALLOW_THREADS;
  tegula_save_abandon(handle);
  Py_END_ALLOW_THREADS;
}

static PyObject *saving_abandon(PyObject *object, PyObject *unused) {
  saving *self = (saving *)object;
  (void)unused;
  if (self->handle != NULL && self->busy > 0 && idle(object) == NULL) return NULL;
  abandon(self);
  return Py_NewRef(Py_None);
}

static void saving_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  abandon((saving *)object);
  Py_XDECREF(((saving *)object)->stop);
  PyObject_Free(object);
  Py_DECREF(type);
}

int core_saving_init(PyObject *module) {
  static PyMethodDef methods[] = {{"tile", saving_tile, METH_VARARGS, NULL},
                                  {"to_json", saving_to_json, METH_NOARGS, NULL},
                                  {"commit", saving_commit, METH_NOARGS, NULL},
                                  {"abandon", saving_abandon, METH_NOARGS, NULL},
                                  {NULL, NULL, 0, NULL}};
  PyType_Slot slots[] = {{Py_tp_dealloc, saving_dealloc}, {Py_tp_methods, methods}, {0, NULL}};
  PyType_Spec spec = {"tegula._core.Saving", sizeof(saving), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  saving_type = core_add_type(module, "Saving", &spec);
  return saving_type != NULL ? 0 : -1;
}
