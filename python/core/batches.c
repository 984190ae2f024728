/* Walking over a dataset in pieces that are read ahead.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

static PyTypeObject *batches_type;

typedef struct batches {
  PyObject_HEAD tegula_batches *handle;
  uint32_t generation;
  atomic_bool stopped; /* what is being read is no longer wanted */
  bool here;           /* as in the dataset's context */
} batches;

static int note_piece(void *state, int64_t done, int64_t total) {
  (void)done;
  (void)total;
  return atomic_load_explicit(&((batches *)state)->stopped, memory_order_relaxed);
}

/* Batches(dataset, chunk, missing) */
static PyObject *batches_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  PyObject *dataset_object, *chunk_tuple;
  int64_t chunk[TEGULA_MAX_DIMS];
  int32_t ndim;
  tegula_load_options options;
  tegula_error error;
  (void)keywords;
  tegula_load_options_init(&options);
  if (!PyArg_ParseTuple(arguments, "OOI", &dataset_object, &chunk_tuple, &options.missing) ||
      !core_lengths(chunk_tuple, chunk, &ndim))
    return NULL;
  core_dataset *dataset = core_dataset_of(dataset_object);
  batches *self = dataset != NULL ? (batches *)PyType_GenericAlloc(type, 0) : NULL;
  if (self == NULL) return NULL;
  self->generation = core_generation();
  self->here = dataset->here;
  options.progress = note_piece;
  options.progress_state = self;
  core_enter(); /* the first piece is being read */
  tegula_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = tegula_batches_open(dataset->handle, chunk, ndim, &options, &self->handle, &error);
  Py_END_ALLOW_THREADS;
  if (status == TEGULA_OK) return (PyObject *)self;
  core_leave();
  Py_DECREF(self);
  return core_raise(&error);
}

static void close_batches(batches *self) {
  tegula_batches *handle = self->handle;
  if (handle == NULL || self->generation != core_generation()) return;
  self->handle = NULL;
  Py_BEGIN_ALLOW_THREADS;
  tegula_batches_close(handle);
  Py_END_ALLOW_THREADS;
  core_leave();
}

typedef struct next_call {
  core_call call;
  tegula_batches *handle;
  tegula_array *array;
  tegula_box box;
} next_call;

static void run_next(core_call *call) {
  next_call *self = (next_call *)call;
  call->status = tegula_batches_next(self->handle, &self->array, &self->box, &call->error);
}

/* next(timeout) -> (array, lo, hi), or None after the last */
static PyObject *batches_next(PyObject *object, PyObject *arguments) {
  batches *self = (batches *)object;
  next_call next = {
      .call = {.run = run_next, .slow = true, .here = self->here, .work = &self->stopped},
      .handle = self->handle};
  if (!PyArg_ParseTuple(arguments, "d", &next.call.timeout) || !core_current(self->generation))
    return NULL;
  if (self->handle == NULL) return Py_NewRef(Py_None);
  if (core_run(&next.call) < 0) {
    tegula_array_destroy(next.array);
    close_batches(self);
    return NULL;
  }
  if (next.call.status == TEGULA_END) {
    close_batches(self);
    return Py_NewRef(Py_None);
  }
  return Py_BuildValue("NNN", core_array_of_rank(next.array, self->here),
                       core_tuple(next.box.lo, next.box.ndim),
                       core_tuple(next.box.hi, next.box.ndim));
}

static PyObject *batches_close(PyObject *object, PyObject *unused) {
  (void)unused;
  close_batches((batches *)object);
  return Py_NewRef(Py_None);
}

static void batches_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  close_batches((batches *)object);
  PyObject_Free(object);
  Py_DECREF(type);
}

int core_batches_init(PyObject *module) {
  static PyMethodDef methods[] = {{"next", batches_next, METH_VARARGS, NULL},
                                  {"close", batches_close, METH_NOARGS, NULL},
                                  {NULL, NULL, 0, NULL}};
  PyType_Slot slots[] = {{Py_tp_new, batches_new},
                         {Py_tp_dealloc, batches_dealloc},
                         {Py_tp_methods, methods},
                         {0, NULL}};
  PyType_Spec spec = {"tegula._core.Batches", sizeof(batches), 0, Py_TPFLAGS_DEFAULT, slots};
  batches_type = core_add_type(module, "Batches", &spec);
  return batches_type != NULL ? 0 : -1;
}
