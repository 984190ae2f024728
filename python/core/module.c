/* The module, and a base class whose buffer is that of its attribute `_exported`.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

static int exporter_getbuffer(PyObject *object, Py_buffer *view, int flags) {
  PyObject *local = PyObject_GetAttrString(object, "_exported");
  view->obj = NULL;
  if (local == NULL) return -1;
  int status = PyObject_GetBuffer(local, view, flags);
  Py_DECREF(local);
  /* numpy says ValueError for dtypes without a format character */
  if (status < 0 && !PyErr_ExceptionMatches(PyExc_BufferError)) {
    PyErr_Clear();
    PyErr_SetString(PyExc_BufferError,
                    "this dtype has no form in the buffer protocol: use numpy.asarray");
  }
  return status;
}

int core_exporter_init(PyObject *module) {
  PyType_Slot slots[] = {{Py_bf_getbuffer, exporter_getbuffer}, {0, NULL}};
  PyType_Spec spec = {"tegula._core.Exporter", sizeof(PyObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  return core_add_type(module, "Exporter", &spec) != NULL ? 0 : -1;
}

static PyObject *generation(PyObject *module, PyObject *unused) {
  (void)module;
  (void)unused;
  return PyLong_FromUnsignedLong(core_generation());
}

static PyObject *depth(PyObject *module, PyObject *unused) {
  (void)module;
  (void)unused;
  return PyLong_FromLong(core_depth());
}

static PyObject *deepen(PyObject *module, PyObject *by) {
  long some = PyLong_AsLong(by);
  (void)module;
  if (some == -1 && PyErr_Occurred()) return NULL;
  core_deepen((int)some);
  return Py_NewRef(Py_None);
}

static PyObject *version(PyObject *module, PyObject *unused) {
  (void)module;
  (void)unused;
  return PyUnicode_FromString(tegula_version());
}

static PyMethodDef functions[] = {{"generation", generation, METH_NOARGS, NULL},
                                  {"depth", depth, METH_NOARGS, NULL},
                                  {"deepen", deepen, METH_O, NULL},
                                  {"version", version, METH_NOARGS, NULL},
                                  {"open", core_open, METH_VARARGS, NULL},
                                  {"from_reader", core_from_reader, METH_VARARGS, NULL},
                                  {"attributes", core_attributes, METH_VARARGS, NULL},
                                  {"save", core_save, METH_VARARGS, NULL},
                                  {"save_group", core_save_group, METH_VARARGS, NULL},
                                  {"save_begin", core_save_begin, METH_VARARGS, NULL},
                                  {"save_tile_from", core_save_tile_from, METH_VARARGS, NULL},
                                  {"dlpack", core_dlpack, METH_VARARGS, NULL},
                                  {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "tegula._core", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void) {
  PyObject *module = PyModule_Create(&definition);
  if (module == NULL) return NULL;
  if (core_fork_init() == 0 && core_comm_init(module) == 0 && core_context_init(module) == 0 &&
      core_dataset_init(module) == 0 && core_quick_init() == 0 && core_tiling_init(module) == 0 &&
      core_array_init(module) == 0 && core_batches_init(module) == 0 &&
      core_operation_init(module) == 0 && core_saving_init(module) == 0 &&
      core_exporter_init(module) == 0 && core_flag_init(module) == 0)
    return module;
  Py_DECREF(module);
  return NULL;
}
