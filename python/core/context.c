/* Contexts and tilings.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <tegula/tegula_mpi.h>

#include "core.h"

/* ---- context ---- */

/* Context(threads, plugin_path, hdf5_library, hdf5_candidates, comm or None) */
static PyObject *context_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  tegula_context_options options;
  tegula_error error;
  PyObject *comm_object = Py_None;
  tegula_status status;
  (void)keywords;
  tegula_context_options_init(&options);
  if (!PyArg_ParseTuple(arguments, "izzz|O", &options.threads, &options.plugin_path,
                        &options.hdf5_library, &options.hdf5_candidates, &comm_object) ||
      !core_usable())
    return NULL;
  tegula_comm *comm = comm_object != Py_None ? core_comm_of(comm_object) : NULL;
  if (comm_object != Py_None && comm == NULL) return NULL;
  core_context *self = (core_context *)PyType_GenericAlloc(type, 0);
  if (self == NULL) return NULL;
  self->generation = core_generation();
  self->comm = comm != NULL ? Py_NewRef(comm_object) : NULL;
  self->here = comm != NULL && !tegula_comm_any_thread(comm);
  Py_BEGIN_ALLOW_THREADS;
  status = tegula_context_create(&options, comm, &self->handle, &error);
  Py_END_ALLOW_THREADS;
  if (status == TEGULA_OK) return (PyObject *)self;
  Py_DECREF(self);
  return core_raise(&error);
}

static void context_dealloc(PyObject *object) {
  core_context *self = (core_context *)object;
  PyTypeObject *type = Py_TYPE(object);
  if (self->handle != NULL && self->generation == core_generation()) {
    Py_BEGIN_ALLOW_THREADS;
    tegula_context_destroy(self->handle);
    Py_END_ALLOW_THREADS;
  }
  Py_XDECREF(self->comm);
  PyObject_Free(object);
  Py_DECREF(type);
}

static PyObject *context_threads(PyObject *object, PyObject *unused) {
  (void)unused;
  tegula_context *context = core_context_of(object);
  return context != NULL ? PyLong_FromLong(tegula_context_threads(context)) : NULL;
}

int core_context_init(PyObject *module) {
  static PyMethodDef methods[] = {{"threads", context_threads, METH_NOARGS, NULL},
                                  {NULL, NULL, 0, NULL}};
  PyType_Slot slots[] = {{Py_tp_new, context_new},
                         {Py_tp_dealloc, context_dealloc},
                         {Py_tp_methods, methods},
                         {0, NULL}};
  PyType_Spec spec = {"tegula._core.Context", sizeof(core_context), 0, Py_TPFLAGS_DEFAULT, slots};
  core_context_type = core_add_type(module, "Context", &spec);
  return core_context_type != NULL ? 0 : -1;
}

/* ---- tiling ---- */

/* Tiling(shape, tile or None, axis, tiles, ranks = 1): a grid of `tile`, or `tiles` even ones along
 * `axis` */
static PyObject *tiling_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  PyObject *shape_tuple, *tile_tuple;
  int64_t shape[TEGULA_MAX_DIMS], tile[TEGULA_MAX_DIMS];
  int32_t ndim, tile_ndim;
  int axis, ranks = 1;
  long long tiles;
  tegula_error error;
  (void)keywords;
  if (!PyArg_ParseTuple(arguments, "OOiL|i", &shape_tuple, &tile_tuple, &axis, &tiles, &ranks) ||
      !core_lengths(shape_tuple, shape, &ndim) ||
      !core_lengths_or_none(tile_tuple, tile, &tile_ndim))
    return NULL;
  if (tile_ndim >= 0 && tile_ndim != ndim)
    return PyErr_Format(PyExc_ValueError, "tile_shape: expected %d lengths, found %d", ndim,
                        tile_ndim);
  core_tiling *self = (core_tiling *)PyType_GenericAlloc(type, 0);
  if (self == NULL) return NULL;
  tegula_status status =
      tile_ndim >= 0 ? tegula_tiling_grid(shape, tile, ndim, ranks, &self->handle, &error)
                     : tegula_tiling_even(shape, ndim, axis, tiles, ranks, &self->handle, &error);
  if (status == TEGULA_OK) return (PyObject *)self;
  Py_DECREF(self);
  return core_raise(&error);
}

static void tiling_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  tegula_tiling_destroy(((core_tiling *)object)->handle);
  PyObject_Free(object);
  Py_DECREF(type);
}

static PyObject *tiling_boxes(PyObject *object, PyObject *unused) {
  (void)unused;
  const tegula_tiling *tiling = ((core_tiling *)object)->handle;
  int64_t count = tegula_tiling_count(tiling);
  PyObject *list = PyList_New(0);
  for (int64_t i = 0; list != NULL && i < count; i++) {
    tegula_box box;
    tegula_error error;
    if (tegula_tiling_tile(tiling, i, &box, NULL, &error) != TEGULA_OK) {
      Py_DECREF(list);
      return core_raise(&error);
    }
    PyObject *item = core_box(&box);
    if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

int core_tiling_init(PyObject *module) {
  static PyMethodDef methods[] = {{"boxes", tiling_boxes, METH_NOARGS, NULL},
                                  {NULL, NULL, 0, NULL}};
  PyType_Slot slots[] = {{Py_tp_new, tiling_new},
                         {Py_tp_dealloc, tiling_dealloc},
                         {Py_tp_methods, methods},
                         {0, NULL}};
  PyType_Spec spec = {"tegula._core.Tiling", sizeof(core_tiling), 0, Py_TPFLAGS_DEFAULT, slots};
  core_tiling_type = core_add_type(module, "Tiling", &spec);
  return core_tiling_type != NULL ? 0 : -1;
}
