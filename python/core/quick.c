/* dataset[key] for the commonest keys and little data: all in one call, because Python around it
 * would take longer than the read.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * What is not as simple is left to tegula/_dataset.py, which knows every key and says what is wrong
 * with others. */
#include "core.h"

/* Of numpy's __array_struct__ (its array interface, version 3). */
typedef struct array_struct {
  int two, ndim;
  char kind;
  int item_size, flags;
  Py_intptr_t *shape, *strides;
  void *data;
  PyObject *descr;
} array_struct;

enum { QUICK_BYTES = 1 << 20 }; /* from here on signals and the time limit matter */

static PyObject *interface_name, *no_axes;

/* What was asked for: the box in the view, and the axes that stay. */
typedef struct request {
  tegula_view view;
  int64_t kept[TEGULA_MAX_DIMS];
  int32_t kept_ndim;
} request;

/* One axis; false where the part is not an int in bounds or a slice with step 1. An exception may
 * be set. */
static bool take_part(const core_dataset *self, PyObject *part, int32_t axis, request *wanted) {
  Py_ssize_t length = (Py_ssize_t)self->shape[axis], start, stop, step;
  if (PyLong_CheckExact(part)) {
    start = PyLong_AsSsize_t(part);
    if (start == -1 && PyErr_Occurred()) return false;
    if (start < 0) start += length;
    if (start < 0 || start >= length) return false;
    stop = start + 1;
  } else {
    if (!PySlice_Check(part) || PySlice_Unpack(part, &start, &stop, &step) < 0 || step != 1)
      return false;
    wanted->kept[wanted->kept_ndim++] = PySlice_AdjustIndices(length, &start, &stop, step);
    if (stop < start) stop = start;
  }
  wanted->view.box.lo[axis] = start;
  wanted->view.box.hi[axis] = stop;
  return true;
}

static void take_whole(const core_dataset *self, int32_t axis, request *wanted) {
  wanted->kept[wanted->kept_ndim++] = self->shape[axis];
  wanted->view.box.lo[axis] = 0;
  wanted->view.box.hi[axis] = self->shape[axis];
}

static bool take_key(const core_dataset *self, PyObject *key, request *wanted) {
  bool is_tuple = PyTuple_Check(key);
  /* axes that an ellipsis stands for */
  Py_ssize_t count = is_tuple ? PyTuple_Size(key) : 1, covered = self->ndim - (count - 1);
  int32_t axis = 0;
  if (covered < 0) return false;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *part = is_tuple ? PyTuple_GetItem(key, i) : key;
    if (part != Py_Ellipsis) {
      if (axis == self->ndim || !take_part(self, part, axis++, wanted)) return false;
      continue;
    }
    if (covered < 0) return false; /* the second one */
    for (; covered > 0; covered--) take_whole(self, axis++, wanted);
    covered = -1;
  }
  while (axis < self->ndim) take_whole(self, axis++, wanted);
  return true;
}

/* Strides of fresh memory in C order; false where there is too much of it. */
static bool take_strides(const core_dataset *self, request *wanted) {
  int64_t bytes = self->dtype.item_size;
  for (int32_t k = self->ndim - 1; k >= 0; k--) {
    wanted->view.stride_bytes[k] = bytes;
    int64_t length = wanted->view.box.hi[k] - wanted->view.box.lo[k];
    if (length > QUICK_BYTES || (bytes *= length > 0 ? length : 1) >= QUICK_BYTES) return false;
  }
  return true;
}

/* Fresh memory of numpy; its address goes into the view. */
static PyObject *fresh(const core_dataset *self, request *wanted) {
  PyObject *shape = core_tuple(wanted->kept, wanted->kept_ndim);
  PyObject *array = shape != NULL
                        ? PyObject_CallFunctionObjArgs(self->empty, shape, self->numpy_dtype, NULL)
                        : NULL;
  Py_XDECREF(shape);
  PyObject *capsule = array != NULL ? PyObject_GetAttr(array, interface_name) : NULL;
  const array_struct *found = capsule != NULL ? PyCapsule_GetPointer(capsule, NULL) : NULL;
  if (found != NULL && found->item_size != (int)self->dtype.item_size) {
    PyErr_SetString(PyExc_SystemError, "numpy made items of another size");
    found = NULL;
  }
  if (found != NULL) wanted->view.data = found->data;
  Py_XDECREF(capsule);
  if (found == NULL) Py_CLEAR(array);
  return array;
}

static PyObject *fill(const core_dataset *self, const request *wanted, PyObject *array) {
  tegula_load_options options;
  tegula_error error;
  tegula_status status;
  tegula_load_options_init(&options);
  options.missing = self->missing;
  core_enter();
  Py_BEGIN_ALLOW_THREADS;
  status = tegula_dataset_read(self->handle, &wanted->view, &options, &error);
  Py_END_ALLOW_THREADS;
  core_leave();
  if (status != TEGULA_OK) {
    Py_DECREF(array);
    return core_raise(&error);
  }
  if (wanted->kept_ndim > 0) return array;
  PyObject *scalar = PyObject_GetItem(array, no_axes);
  Py_DECREF(array);
  return scalar;
}

PyObject *core_dataset_quick(PyObject *object, PyObject *key) {
  const core_dataset *self = (const core_dataset *)object;
  request wanted;
  bool usable = self->empty != NULL && self->ndim > 0 && self->generation == core_generation() &&
                self->depth == core_depth();
  wanted.kept_ndim = 0;
  if (!usable || !take_key(self, key, &wanted) || !take_strides(self, &wanted)) {
    PyErr_Clear();
    return Py_NewRef(Py_None);
  }
  wanted.view.flags = 0;
  wanted.view.dtype = self->dtype;
  wanted.view.device_type = TEGULA_DEVICE_HOST;
  wanted.view.device_id = 0;
  wanted.view.box.ndim = self->ndim;
  PyObject *array = fresh(self, &wanted);
  return array != NULL ? fill(self, &wanted, array) : NULL;
}

/* prepare(empty, dtype, missing): numpy.empty and the dtype of what it makes */
PyObject *core_dataset_prepare(PyObject *object, PyObject *arguments) {
  core_dataset *self = (core_dataset *)object;
  PyObject *empty, *dtype;
  if (!PyArg_ParseTuple(arguments, "OOI", &empty, &dtype, &self->missing)) return NULL;
  Py_XDECREF(self->empty);
  Py_XDECREF(self->numpy_dtype);
  self->empty = Py_NewRef(empty);
  self->numpy_dtype = Py_NewRef(dtype);
  return Py_NewRef(Py_None);
}

int core_quick_init(void) {
  interface_name = PyUnicode_InternFromString("__array_struct__");
  no_axes = PyTuple_New(0);
  return interface_name != NULL && no_axes != NULL ? 0 : -1;
}
