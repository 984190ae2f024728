/* Small values between C and Python.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core.h"

PyObject *core_tuple(const int64_t *values, int32_t count) {
  PyObject *tuple = PyTuple_New(count);
  for (int32_t i = 0; tuple != NULL && i < count; i++) {
    PyObject *item = PyLong_FromLongLong(values[i]);
    if (item == NULL || PyTuple_SetItem(tuple, i, item) < 0) Py_CLEAR(tuple);
  }
  return tuple;
}

bool core_lengths(PyObject *tuple, int64_t out[TEGULA_MAX_DIMS], int32_t *count) {
  Py_ssize_t size = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : -1;
  if (size < 0) {
    PyErr_SetString(PyExc_TypeError, "expected a tuple of integers");
    return false;
  }
  if (size > TEGULA_MAX_DIMS) {
    PyErr_Format(PyExc_ValueError, "expected at most %d axes, found %zd", TEGULA_MAX_DIMS, size);
    return false;
  }
  for (Py_ssize_t i = 0; i < size; i++) {
    out[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
    if (out[i] == -1 && PyErr_Occurred()) return false;
  }
  *count = (int32_t)size;
  return true;
}

bool core_lengths_or_none(PyObject *tuple, int64_t out[TEGULA_MAX_DIMS], int32_t *count) {
  *count = -1;
  return tuple == Py_None || core_lengths(tuple, out, count);
}

PyObject *core_box(const tegula_box *box) {
  return Py_BuildValue("NN", core_tuple(box->lo, box->ndim), core_tuple(box->hi, box->ndim));
}

PyObject *core_text(const char *text) {
  return text != NULL ? PyUnicode_DecodeFSDefault(text) : Py_NewRef(Py_None);
}

PyObject *core_path(const char *path) { return PyUnicode_DecodeFSDefault(path); }

PyObject *core_take_text(char *text) {
  PyObject *out = PyUnicode_DecodeFSDefault(text);
  tegula_free(text);
  return out;
}

bool core_dtype(const char *text, tegula_dtype *out) {
  tegula_error error;
  if (tegula_dtype_parse(text, out, &error) == TEGULA_OK) return true;
  core_raise(&error);
  return false;
}
