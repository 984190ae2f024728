/* The types of the module, and which of them an object has.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

PyTypeObject *core_context_type, *core_dataset_type, *core_tiling_type, *core_array_type;

PyTypeObject *core_add_type(PyObject *module, const char *name, PyType_Spec *spec) {
  PyTypeObject *type = (PyTypeObject *)PyType_FromSpec(spec);
  if (type == NULL || PyModule_AddObjectRef(module, name, (PyObject *)type) < 0) return NULL;
  return type;
}

static void *handle_of(PyObject *object, PyTypeObject *type) {
  if (PyObject_TypeCheck(object, type)) return object;
  PyErr_SetString(PyExc_TypeError, "an object of tegula._core of another type was expected");
  return NULL;
}

tegula_context *core_context_of(PyObject *object) {
  core_context *context = handle_of(object, core_context_type);
  return context != NULL && core_current(context->generation) ? context->handle : NULL;
}

core_dataset *core_dataset_of(PyObject *object) {
  core_dataset *dataset = handle_of(object, core_dataset_type);
  return dataset != NULL && core_current(dataset->generation) ? dataset : NULL;
}

tegula_tiling *core_tiling_of(PyObject *object) {
  core_tiling *tiling = handle_of(object, core_tiling_type);
  return tiling != NULL ? tiling->handle : NULL;
}

core_array *core_array_of(PyObject *object) {
  core_array *array = handle_of(object, core_array_type);
  return array != NULL && core_current(array->generation) ? array : NULL;
}

bool core_context_here(PyObject *object) {
  return PyObject_TypeCheck(object, core_context_type) && ((core_context *)object)->here;
}
