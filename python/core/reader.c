/* A user's own format: the library's callback calls a Python function.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core.h"

/* The lowest address of a view and the number of bytes from there to its end. */
static char *extent(const tegula_view *view, Py_ssize_t *bytes) {
  char *low = view->data;
  Py_ssize_t size = view->dtype.item_size;
  for (int32_t k = 0; k < view->box.ndim; k++) {
    /* the memory exists: no overflow */
    int64_t reach = (view->box.hi[k] - view->box.lo[k] - 1) * view->stride_bytes[k];
    if (reach < 0) low += reach;
    size += (Py_ssize_t)(reach < 0 ? -reach : reach);
  }
  *bytes = size;
  return low;
}

/* fill(memory, offset of the first element, strides, lo, hi) */
static tegula_status read_box(void *state, const tegula_view *dst, tegula_error *error) {
  tegula_status status = TEGULA_OK;
  Py_ssize_t bytes;
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *fill = state, *done = NULL;
  char *low = extent(dst, &bytes);
  PyObject *memory = PyMemoryView_FromMemory(low, bytes, PyBUF_WRITE);
  if (memory != NULL)
    done = PyObject_CallFunction(fill, "OnNNN", memory, (Py_ssize_t)((char *)dst->data - low),
                                 core_tuple(dst->stride_bytes, dst->box.ndim),
                                 core_tuple(dst->box.lo, dst->box.ndim),
                                 core_tuple(dst->box.hi, dst->box.ndim));
  if (done == NULL) status = core_catch(fill, error);
  Py_XDECREF(done);
  Py_XDECREF(memory);
  PyGILState_Release(gil);
  return status;
}

static void release_fill(void *state) {
  if (!Py_IsInitialized()) return;
  PyGILState_STATE gil = PyGILState_Ensure();
  Py_DECREF((PyObject *)state);
  PyGILState_Release(gil);
}

/* from_reader(context, fill, name, dtype, shape, chunk or None, cost_bytes) */
PyObject *core_from_reader(PyObject *module, PyObject *arguments) {
  PyObject *context_object, *fill, *shape_tuple, *chunk_tuple;
  const char *text;
  int64_t shape[TEGULA_MAX_DIMS], chunk[TEGULA_MAX_DIMS];
  int32_t chunk_ndim;
  long long cost;
  tegula_reader reader;
  tegula_dataset *dataset;
  tegula_error error;
  (void)module;
  tegula_reader_init(&reader);
  if (!PyArg_ParseTuple(arguments, "OOssOOL", &context_object, &fill, &reader.name, &text,
                        &shape_tuple, &chunk_tuple, &cost) ||
      !core_dtype(text, &reader.dtype) || !core_lengths(shape_tuple, shape, &reader.ndim) ||
      !core_lengths_or_none(chunk_tuple, chunk, &chunk_ndim))
    return NULL;
  if (chunk_ndim >= 0 && chunk_ndim != reader.ndim)
    return PyErr_Format(PyExc_ValueError, "chunks: expected %d lengths, found %d", reader.ndim,
                        chunk_ndim);
  tegula_context *context = core_context_of(context_object);
  if (context == NULL) return NULL;
  reader.shape = shape;
  reader.chunk = chunk_ndim >= 0 ? chunk : NULL;
  reader.cost_bytes = cost;
  reader.read = read_box;
  reader.release = release_fill;
  reader.state = Py_NewRef(fill);
  tegula_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = tegula_dataset_from_reader(context, &reader, &dataset, &error);
  Py_END_ALLOW_THREADS;
  if (status == TEGULA_OK) return core_dataset_new(dataset, false);
  Py_DECREF(fill);
  return core_raise(&error);
}
