/* Communicators: ranks that mpi4py's communicators stand for.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * They are never given back: that is collective, and Python collects objects when it likes. */
#include <tegula/tegula_mpi.h>

#include "core.h"

PyTypeObject *core_comm_type;

typedef struct core_comm {
  PyObject_HEAD tegula_comm *handle;
  uint32_t generation;
} core_comm;

tegula_comm *core_comm_of(PyObject *object) {
  if (!PyObject_TypeCheck(object, core_comm_type)) {
    PyErr_SetString(PyExc_TypeError, "a communicator of tegula._core was expected");
    return NULL;
  }
  core_comm *comm = (core_comm *)object;
  return core_current(comm->generation) ? comm->handle : NULL;
}

/* Comm(address, size, plugin_path, seconds): of an MPI_Comm and its bytes; how long joining waits
 * for others */
static PyObject *comm_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  unsigned long long address, size;
  tegula_mpi_options options;
  tegula_error error;
  tegula_status status;
  (void)keywords;
  tegula_mpi_options_init(&options);
  if (!PyArg_ParseTuple(arguments, "KKzd", &address, &size, &options.plugin_path,
                        &options.deadline) ||
      !core_usable())
    return NULL;
  core_comm *self = (core_comm *)PyType_GenericAlloc(type, 0);
  if (self == NULL) return NULL;
  self->generation = core_generation();
  Py_BEGIN_ALLOW_THREADS;
  status = tegula_mpi_comm_create((const void *)(uintptr_t)address, (size_t)size, &options,
                                  &self->handle, &error);
  Py_END_ALLOW_THREADS;
  if (status == TEGULA_OK) return (PyObject *)self;
  Py_DECREF(self);
  return core_raise(&error);
}

static void comm_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  PyObject_Free(object);
  Py_DECREF(type);
}

static PyObject *comm_rank(PyObject *object, PyObject *unused) {
  tegula_comm *comm = core_comm_of(object);
  (void)unused;
  return comm != NULL ? PyLong_FromLong(tegula_comm_rank(comm)) : NULL;
}

static PyObject *comm_size(PyObject *object, PyObject *unused) {
  tegula_comm *comm = core_comm_of(object);
  (void)unused;
  return comm != NULL ? PyLong_FromLong(tegula_comm_size(comm)) : NULL;
}

static PyObject *comm_broken(PyObject *object, PyObject *unused) {
  tegula_comm *comm = core_comm_of(object);
  (void)unused;
  return comm != NULL ? PyBool_FromLong(tegula_comm_broken(comm)) : NULL;
}

static PyObject *comm_deadline(PyObject *object, PyObject *seconds) {
  tegula_comm *comm = core_comm_of(object);
  double value = PyFloat_AsDouble(seconds);
  if (comm == NULL || PyErr_Occurred()) return NULL;
  tegula_comm_deadline(comm, value);
  Py_RETURN_NONE;
}

/* fail(message): this rank was called with what makes no sense; the others get that from their
 * call */
static PyObject *comm_fail(PyObject *object, PyObject *arguments) {
  tegula_comm *comm = core_comm_of(object);
  const char *message;
  tegula_error error;
  if (comm == NULL || !PyArg_ParseTuple(arguments, "s", &message)) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  tegula_status status = tegula_error_set(&error, TEGULA_INVALID_ARGUMENT, NULL, -1, message);
  status = tegula_comm_agree(comm, status, &error);
  (void)status;
  Py_END_ALLOW_THREADS;
  Py_RETURN_NONE;
}

static PyObject *comm_abort(PyObject *object, PyObject *code) {
  tegula_comm *comm = core_comm_of(object);
  long value = PyLong_AsLong(code);
  if (comm == NULL || PyErr_Occurred()) return NULL;
  tegula_comm_abort(comm, (int32_t)value);
  Py_RETURN_NONE;
}

int core_comm_init(PyObject *module) {
  static PyMethodDef methods[] = {{"rank", comm_rank, METH_NOARGS, NULL},
                                  {"size", comm_size, METH_NOARGS, NULL},
                                  {"broken", comm_broken, METH_NOARGS, NULL},
                                  {"deadline", comm_deadline, METH_O, NULL},
                                  {"fail", comm_fail, METH_VARARGS, NULL},
                                  {"abort", comm_abort, METH_O, NULL},
                                  {NULL, NULL, 0, NULL}};
  PyType_Slot slots[] = {
      {Py_tp_new, comm_new}, {Py_tp_dealloc, comm_dealloc}, {Py_tp_methods, methods}, {0, NULL}};
  PyType_Spec spec = {"tegula._core.Comm", sizeof(core_comm), 0, Py_TPFLAGS_DEFAULT, slots};
  core_comm_type = core_add_type(module, "Comm", &spec);
  return core_comm_type != NULL ? 0 : -1;
}
