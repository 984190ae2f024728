/* Arrays: memory of the library as a buffer of bytes, and memory of Python lent to the library.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

static void destroy_array(tegula_array *handle) {
  Py_BEGIN_ALLOW_THREADS; /* wrapped memory is released, which takes the GIL */
  tegula_array_destroy(handle);
  Py_END_ALLOW_THREADS;
}

static Py_ssize_t bytes_of(const tegula_view *view) {
  Py_ssize_t bytes = view->dtype.item_size; /* the array exists: it fits */
  for (int32_t k = 0; k < view->box.ndim; k++)
    bytes *= (Py_ssize_t)(view->box.hi[k] - view->box.lo[k]);
  return bytes;
}

static core_array *wrap_handle(tegula_array *handle) {
  core_array *self = (core_array *)PyType_GenericAlloc(core_array_type, 0);
  if (self == NULL) {
    destroy_array(handle);
    return NULL;
  }
  self->handle = handle;
  self->generation = core_generation();
  return self;
}

PyObject *core_array_new(tegula_array *handle) {
  tegula_view block;
  tegula_error error;
  if (tegula_array_block(handle, &block, &error) != TEGULA_OK) {
    destroy_array(handle);
    return core_raise(&error);
  }
  core_array *self = wrap_handle(handle);
  if (self == NULL) return NULL;
  self->data = block.data;
  self->size = bytes_of(&block);
  return (PyObject *)self;
}

/* What is not in one block (of several ranks) is reached tile by tile. */
PyObject *core_array_of_rank(tegula_array *handle, bool here) {
  tegula_view block;
  bool whole = tegula_array_block(handle, &block, NULL) == TEGULA_OK;
  core_array *made = whole ? (core_array *)core_array_new(handle) : wrap_handle(handle);
  if (made != NULL) made->here = here;
  return (PyObject *)made;
}

/* Array.create(context, dtype, tiling): fresh memory */
static PyObject *array_create(PyObject *type, PyObject *arguments) {
  PyObject *context_object, *tiling_object;
  const char *text;
  tegula_dtype dtype;
  tegula_array *handle;
  tegula_error error;
  (void)type;
  if (!PyArg_ParseTuple(arguments, "OsO", &context_object, &text, &tiling_object) ||
      !core_dtype(text, &dtype))
    return NULL;
  tegula_context *context = core_context_of(context_object);
  const tegula_tiling *tiling = core_tiling_of(tiling_object);
  if (context == NULL || tiling == NULL) return NULL;
  tegula_status status;
  Py_BEGIN_ALLOW_THREADS; /* ranks wait for each other */
  status = tegula_array_create(context, dtype, tiling, NULL, &handle, &error);
  Py_END_ALLOW_THREADS;
  return status == TEGULA_OK ? core_array_of_rank(handle, core_context_here(context_object))
                             : core_raise(&error);
}

/* ---- memory of Python ---- */

/* Called by whatever thread gave the array up last. */
static void release_owner(void *owner) {
  if (!Py_IsInitialized()) return;
  PyGILState_STATE gil = PyGILState_Ensure();
  Py_DECREF((PyObject *)owner);
  PyGILState_Release(gil);
}

typedef struct lent {
  char *data;
  uint32_t flags;
  tegula_dtype dtype;
  int64_t strides[TEGULA_MAX_DIMS];
  int32_t ndim;
} lent;

static tegula_status view_tiles(const tegula_tiling *tiling, const lent *memory, tegula_view *views,
                                tegula_error *error) {
  int64_t count = tegula_tiling_count(tiling);
  for (int64_t i = 0; i < count; i++) {
    tegula_view *view = &views[i];
    *view = (tegula_view){.data = memory->data,
                          .flags = memory->flags,
                          .dtype = memory->dtype,
                          .device_type = TEGULA_DEVICE_HOST};
    tegula_status status = tegula_tiling_tile(tiling, i, &view->box, NULL, error);
    if (status != TEGULA_OK) return status;
    for (int32_t k = 0; k < memory->ndim; k++) {
      view->stride_bytes[k] = memory->strides[k];
      /* inside the memory: Python made the strides */
      view->data = (char *)view->data + memory->strides[k] * view->box.lo[k];
    }
  }
  return TEGULA_OK;
}

static PyObject *wrap_views(tegula_context *context, const tegula_tiling *tiling,
                            const lent *memory, PyObject *owner) {
  int64_t count = tegula_tiling_count(tiling);
  tegula_view *views = PyMem_Calloc((size_t)count, sizeof *views);
  tegula_array *handle = NULL;
  tegula_error error;
  if (views == NULL) return PyErr_NoMemory();
  tegula_status status = view_tiles(tiling, memory, views, &error);
  if (status == TEGULA_OK)
    status = tegula_array_wrap(context, memory->dtype, tiling, views, count, release_owner,
                               Py_NewRef(owner), &handle, &error);
  PyMem_Free(views);
  if (status == TEGULA_OK) return (PyObject *)wrap_handle(handle);
  Py_DECREF(owner);
  return core_raise(&error);
}

/* Array.wrap(context, dtype, tiling, owner, address, strides, read_only): owner is kept while the
 * library uses its memory */
static PyObject *array_wrap(PyObject *type, PyObject *arguments) {
  PyObject *context_object, *tiling_object, *owner, *strides;
  const char *text;
  unsigned long long address;
  int read_only;
  lent memory = {0};
  (void)type;
  if (!PyArg_ParseTuple(arguments, "OsOOKOp", &context_object, &text, &tiling_object, &owner,
                        &address, &strides, &read_only) ||
      !core_dtype(text, &memory.dtype) || !core_lengths(strides, memory.strides, &memory.ndim))
    return NULL;
  tegula_context *context = core_context_of(context_object);
  const tegula_tiling *tiling = core_tiling_of(tiling_object);
  if (context == NULL || tiling == NULL) return NULL;
  memory.data = (char *)(uintptr_t)address;
  memory.flags = read_only ? TEGULA_VIEW_READ_ONLY : 0;
  return wrap_views(context, tiling, &memory, owner);
}

/* ---- what it offers ---- */

static int array_getbuffer(PyObject *object, Py_buffer *view, int flags) {
  static char nothing[1];
  core_array *self = (core_array *)object;
  if (self->data == NULL && self->size > 0) {
    view->obj = NULL;
    PyErr_SetString(PyExc_BufferError, "this memory belongs to another object");
    return -1;
  }
  return PyBuffer_FillInfo(view, object, self->data != NULL ? self->data : nothing, self->size, 0,
                           flags);
}

typedef struct hash_call {
  core_call call;
  const tegula_array *array;
  char text[TEGULA_HASH_TEXT];
} hash_call;

static void run_hash(core_call *call) {
  hash_call *self = (hash_call *)call;
  call->status = tegula_array_hash(self->array, self->text, &call->error);
}

static PyObject *array_hash(PyObject *object, PyObject *unused) {
  core_array *array = core_array_of(object);
  hash_call self = {.call = {.run = run_hash}};
  (void)unused;
  if (array == NULL) return NULL;
  self.array = array->handle;
  return core_run(&self.call) == 0 ? PyUnicode_FromString(self.text) : NULL;
}

/* ---- tiles ---- */

/* Memory of one tile. */
typedef struct core_tile {
  PyObject_HEAD PyObject *array;
  void *data;
  Py_ssize_t size;
} core_tile;

static PyTypeObject *tile_type;

/* tiles() -> [(lo, hi, memory)] of this rank; the memory is dense where it does not lie in the
 * array's one block */
static PyObject *array_tiles(PyObject *object, PyObject *unused) {
  core_array *array = core_array_of(object);
  (void)unused;
  PyObject *list = array != NULL ? PyList_New(0) : NULL;
  for (int64_t i = 0; list != NULL && i < tegula_array_tiles(array->handle); i++) {
    tegula_view view;
    tegula_error error;
    if (tegula_array_view(array->handle, i, &view, &error) != TEGULA_OK) {
      Py_DECREF(list);
      return core_raise(&error);
    }
    core_tile *tile = (core_tile *)PyType_GenericAlloc(tile_type, 0);
    if (tile == NULL) {
      Py_DECREF(list);
      return NULL;
    }
    tile->array = Py_NewRef(object);
    tile->data = view.data;
    tile->size = bytes_of(&view);
    PyObject *item = Py_BuildValue("NNN", core_tuple(view.box.lo, view.box.ndim),
                                   core_tuple(view.box.hi, view.box.ndim), (PyObject *)tile);
    if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

static int tile_getbuffer(PyObject *object, Py_buffer *view, int flags) {
  static char nothing[1];
  core_tile *self = (core_tile *)object;
  return PyBuffer_FillInfo(view, object, self->data != NULL ? self->data : nothing, self->size, 0,
                           flags);
}

static void tile_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  Py_XDECREF(((core_tile *)object)->array);
  PyObject_Free(object);
  Py_DECREF(type);
}

static void array_dealloc(PyObject *object) {
  core_array *self = (core_array *)object;
  PyTypeObject *type = Py_TYPE(object);
  if (self->handle != NULL && self->generation == core_generation()) destroy_array(self->handle);
  PyObject_Free(object);
  Py_DECREF(type);
}

int core_array_init(PyObject *module) {
  static PyMethodDef methods[] = {{"create", array_create, METH_VARARGS | METH_STATIC, NULL},
                                  {"wrap", array_wrap, METH_VARARGS | METH_STATIC, NULL},
                                  {"hash", array_hash, METH_NOARGS, NULL},
                                  {"tiles", array_tiles, METH_NOARGS, NULL},
                                  {NULL, NULL, 0, NULL}};
  PyType_Slot slots[] = {{Py_tp_dealloc, array_dealloc},
                         {Py_tp_methods, methods},
                         {Py_bf_getbuffer, array_getbuffer},
                         {0, NULL}};
  PyType_Spec spec = {"tegula._core.Array", sizeof(core_array), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  PyType_Slot tile_slots[] = {
      {Py_tp_dealloc, tile_dealloc}, {Py_bf_getbuffer, tile_getbuffer}, {0, NULL}};
  PyType_Spec tile_spec = {"tegula._core.Tile", sizeof(core_tile), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, tile_slots};
  tile_type = core_add_type(module, "Tile", &tile_spec);
  if (tile_type == NULL) return -1;
  core_array_type = core_add_type(module, "Array", &spec);
  return core_array_type != NULL ? 0 : -1;
}
