/* Errors of the library as exceptions, and exceptions of callbacks as errors. What they look like
 * is said in tegula/_errors.py.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

static PyObject *errors_function(const char *name) {
  PyObject *module = PyImport_ImportModule("tegula._errors");
  PyObject *function = module != NULL ? PyObject_GetAttrString(module, name) : NULL;
  Py_XDECREF(module);
  return function;
}

PyObject *core_raise(const tegula_error *error) {
  PyObject *make = errors_function("make"), *exception = NULL;
  if (make != NULL) {
    PyObject *message = PyUnicode_DecodeFSDefault(error->message),
             *hint = PyUnicode_DecodeFSDefault(error->hint);
    PyObject *path =
        error->path[0] != '\0' ? PyUnicode_DecodeFSDefault(error->path) : Py_NewRef(Py_None);
    if (message != NULL && hint != NULL && path != NULL)
      exception = PyObject_CallFunction(
          make, "isOOOLii", (int)error->status, tegula_status_name(error->status), message, hint,
          path, (long long)error->offset, (int)error->rank, (int)error->os_errno);
    Py_XDECREF(message);
    Py_XDECREF(hint);
    Py_XDECREF(path);
  }
  if (exception != NULL) PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
  Py_XDECREF(exception);
  Py_XDECREF(make);
  return NULL;
}

/* describe(callback, exception) -> (status, message, path or None, offset) */
static tegula_status describe(PyObject *callback, PyObject *exception, tegula_error *error) {
  PyObject *function = errors_function("describe");
  PyObject *found =
      function != NULL ? PyObject_CallFunctionObjArgs(function, callback, exception, NULL) : NULL;
  Py_XDECREF(function);
  int status = TEGULA_IO;
  const char *message = "a callback failed", *path = NULL;
  long long offset = -1;
  if (found != NULL && !PyArg_ParseTuple(found, "iszL", &status, &message, &path, &offset))
    status = TEGULA_IO;
  PyErr_Clear();
  tegula_status result = tegula_error_set(error, (tegula_status)status, path, offset, message);
  Py_XDECREF(found);
  return result;
}

tegula_status core_catch(PyObject *callback, tegula_error *error) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value != NULL && traceback != NULL) PyException_SetTraceback(value, traceback);
  tegula_status status = describe(callback, value != NULL ? value : Py_None, error);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return status;
}
