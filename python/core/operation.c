/* Operations in the background.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <tegula/tegula_mpi.h>

#include "core.h"

static PyTypeObject *operation_type;

typedef struct operation {
  PyObject_HEAD tegula_op *handle;
  uint32_t generation;
  bool ended; /* and counted as such */
} operation;

PyObject *core_operation_new(tegula_op *handle) {
  operation *self = (operation *)PyType_GenericAlloc(operation_type, 0);
  if (self == NULL) {
    tegula_op_destroy(handle); /* it goes on, and counts as running for ever: a fork is refused */
    return NULL;
  }
  self->handle = handle;
  self->generation = core_generation();
  return (PyObject *)self;
}

/* wait(seconds, comm or None) -> whether it has ended; raises what it failed with, also that ranks
 * of the communicator are missing. Signals are heard between two calls. */
static PyObject *operation_wait(PyObject *object, PyObject *arguments) {
  operation *self = (operation *)object;
  double seconds;
  tegula_error error;
  tegula_status status;
  int32_t ended;
  PyObject *comm_object = Py_None;
  if (!PyArg_ParseTuple(arguments, "d|O", &seconds, &comm_object) ||
      !core_current(self->generation))
    return NULL;
  tegula_comm *comm = comm_object != Py_None ? core_comm_of(comm_object) : NULL;
  if (comm == NULL && comm_object != Py_None) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  status = tegula_op_wait(self->handle, (int64_t)(seconds * 1e9), &error);
  ended = tegula_op_ended(self->handle);
  /* after the wait, which does not know how it went */
  if (status == TEGULA_TIMEOUT && ended && comm == NULL)
    status = tegula_op_wait(self->handle, 0, &error);
  Py_END_ALLOW_THREADS;
  if (!ended) {
    bool waits = status == TEGULA_TIMEOUT && !(comm != NULL && tegula_comm_broken(comm));
    return waits ? PyBool_FromLong(0) : core_raise(&error);
  }
  if (!self->ended) core_leave();
  self->ended = true;
  return status == TEGULA_OK ? PyBool_FromLong(1) : core_raise(&error);
}

/* ended() -> whether wait would say how it went */
static PyObject *operation_ended(PyObject *object, PyObject *unused) {
  operation *self = (operation *)object;
  (void)unused;
  return core_current(self->generation) ? PyBool_FromLong(tegula_op_ended(self->handle)) : NULL;
}

static PyObject *operation_cancel(PyObject *object, PyObject *unused) {
  operation *self = (operation *)object;
  (void)unused;
  if (!core_current(self->generation)) return NULL;
  tegula_op_cancel(self->handle);
  return Py_NewRef(Py_None);
}

static void operation_dealloc(PyObject *object) {
  operation *self = (operation *)object;
  PyTypeObject *type = Py_TYPE(object);
  if (self->handle != NULL && self->generation == core_generation()) {
    Py_BEGIN_ALLOW_THREADS;
    tegula_op_destroy(self->handle);
    Py_END_ALLOW_THREADS;
  }
  PyObject_Free(object);
  Py_DECREF(type);
}

int core_operation_init(PyObject *module) {
  static PyMethodDef methods[] = {{"wait", operation_wait, METH_VARARGS, NULL},
                                  {"ended", operation_ended, METH_NOARGS, NULL},
                                  {"cancel", operation_cancel, METH_NOARGS, NULL},
                                  {NULL, NULL, 0, NULL}};
  PyType_Slot slots[] = {{Py_tp_dealloc, operation_dealloc}, {Py_tp_methods, methods}, {0, NULL}};
  PyType_Spec spec = {"tegula._core.Operation", sizeof(operation), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  operation_type = core_add_type(module, "Operation", &spec);
  return operation_type != NULL ? 0 : -1;
}
