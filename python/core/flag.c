/* Flags: what other threads ask calls to stop by.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

static PyTypeObject *flag_type;

typedef struct flag {
  PyObject_HEAD atomic_bool set;
} flag;

atomic_bool *core_flag_of(PyObject *object) {
  return object != NULL && PyObject_TypeCheck(object, flag_type) ? &((flag *)object)->set : NULL;
}

int core_flag_note(void *state, int64_t done, int64_t total) {
  (void)done;
  (void)total;
  return atomic_load_explicit((atomic_bool *)state, memory_order_relaxed);
}

static PyObject *flag_set(PyObject *object, PyObject *unused) {
  (void)unused;
  atomic_store(&((flag *)object)->set, true);
  return Py_NewRef(Py_None);
}

static PyObject *flag_is_set(PyObject *object, PyObject *unused) {
  (void)unused;
  return PyBool_FromLong(atomic_load(&((flag *)object)->set));
}

static PyObject *flag_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  (void)keywords;
  return PyArg_ParseTuple(arguments, "") ? PyType_GenericAlloc(type, 0) : NULL;
}

static void flag_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  PyObject_Free(object);
  Py_DECREF(type);
}

int core_flag_init(PyObject *module) {
  static PyMethodDef methods[] = {{"set", flag_set, METH_NOARGS, NULL},
                                  {"is_set", flag_is_set, METH_NOARGS, NULL},
                                  {NULL, NULL, 0, NULL}};
  PyType_Slot slots[] = {
      {Py_tp_new, flag_new}, {Py_tp_dealloc, flag_dealloc}, {Py_tp_methods, methods}, {0, NULL}};
  PyType_Spec spec = {"tegula._core.Flag", sizeof(flag), 0, Py_TPFLAGS_DEFAULT, slots};
  flag_type = core_add_type(module, "Flag", &spec);
  return flag_type != NULL ? 0 : -1;
}
