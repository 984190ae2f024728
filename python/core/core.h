/* tegula._core: the public header of tegula as Python objects, and nothing more. Arguments are
 * checked and made pleasant in Python.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * - Limited API of CPython 3.11. The lock of the interpreter (GIL) is released in every call that
 * works.
 * - Objects borrow nothing from each other: the library keeps what it needs.
 * - Process-global state is here and not in the library: the number of calls that are running, for
 * fork (fork.c).
 *
 * The folder includes Python.h and the public headers, nothing of src. Begin in module.c: it lists
 * the functions and types of the module. A type is one file with its name (dataset.c, array.c),
 * contexts and tilings share context.c. A call that may take long goes through core_run
 * (call.c). objects.c, errors.c, values.c and fork.c serve all of them. No two files use each
 * other. */
#ifndef TEGULA_PYTHON_CORE_H
#define TEGULA_PYTHON_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tegula/tegula.h>

/* ---- fork.c ---- */

/* Counts forks: a handle of an older generation must not be touched, the threads and locks behind
 * it belong to the parent. */
uint32_t core_generation(void);
/* How deep in readers' functions this thread is: what they read belongs to another context. */
int core_depth(void);
void core_deepen(int by);
/* How many calls and background operations are running. */
void core_enter(void);
void core_leave(void);
/* False with an exception when this process was forked while a call was running: locks of libhdf5
 * may be held for ever. */
bool core_usable(void);
bool core_current(uint32_t generation);
int core_fork_init(void);

/* ---- errors.c ---- */

/* Sets the exception for an error; always returns NULL. */
PyObject *core_raise(const tegula_error *error);
/* Turns the exception of a callback into an error and clears it. */
tegula_status core_catch(PyObject *callback, tegula_error *error);

/* ---- call.c: calls that work ---- */

typedef struct core_call core_call;
struct core_call {
  /* without the GIL, perhaps in a thread of its own; sets status and error */
  void (*run)(core_call *call);
  /* borrowed; NULL or None: nobody is told; a flag: it stops the call */
  PyObject *progress;
  double timeout; /* seconds; 0: no limit */
  bool slow;      /* signals must be heard meanwhile */
  /* in the caller's thread, whatever that means for signals and time */
  bool here;
  tegula_status status;
  tegula_error error;
  atomic_bool cancelled;
  atomic_bool *stop; /* of the flag */
  /* NULL, or what is set too when the call is cancelled: for work that outlives it */
  atomic_bool *work;
  _Atomic int64_t done, total;
  pthread_mutex_t lock;
  pthread_cond_t ended;
  bool finished;
  uint32_t process; /* the generation that it began in */
};

/* 0, or -1 with an exception: the call failed, was interrupted, took too long, or the progress
 * callback raised. */
int core_run(core_call *call);
/* A tegula_progress_fn; its state is the call. */
int core_note(void *call, int64_t done, int64_t total);

/* ---- flag.c ---- */

/* Where a Flag keeps whether it is set, as long as the object lives; NULL (without an exception)
 * for other objects. */
atomic_bool *core_flag_of(PyObject *object);
/* A tegula_progress_fn; its state is what core_flag_of gave. */
int core_flag_note(void *flag, int64_t done, int64_t total);

/* ---- values.c ---- */

PyObject *core_tuple(const int64_t *values, int32_t count);
/* Reads a tuple of integers; false with an exception. */
bool core_lengths(PyObject *tuple, int64_t out[TEGULA_MAX_DIMS], int32_t *count);
/* The same, and None gives count -1. */
bool core_lengths_or_none(PyObject *tuple, int64_t out[TEGULA_MAX_DIMS], int32_t *count);
/* (lo, hi) as two tuples. */
PyObject *core_box(const tegula_box *box);
/* Text or None; `text` is borrowed from static or C memory. */
PyObject *core_text(const char *text);
PyObject *core_path(const char *path);
bool core_dtype(const char *text, tegula_dtype *out);
/* Frees and returns text of the library. */
PyObject *core_take_text(char *text);

/* ---- objects.c ---- */

typedef struct core_context {
  PyObject_HEAD tegula_context *handle;
  uint32_t generation;
  PyObject *comm; /* what it borrows; NULL: this process alone */
  bool here;      /* calls must be made in the caller's thread: that of MPI */
} core_context;

typedef struct core_dataset {
  PyObject_HEAD tegula_dataset *handle;
  uint32_t generation;
  int depth; /* where it was opened */
  tegula_dtype dtype;
  int32_t ndim;
  int64_t shape[TEGULA_MAX_DIMS];
  PyObject *empty, *numpy_dtype; /* for quick.c; NULL before it is prepared */
  unsigned missing;
  bool here; /* as in its context */
} core_dataset;

typedef struct core_tiling {
  PyObject_HEAD tegula_tiling *handle;
} core_tiling;

typedef struct core_array {
  PyObject_HEAD tegula_array *handle;
  uint32_t generation;
  bool here;       /* as in its context */
  void *data;      /* of its block, for the buffer protocol; NULL: wrapped memory */
  Py_ssize_t size; /* bytes */
} core_array;

extern PyTypeObject *core_context_type, *core_dataset_type, *core_tiling_type, *core_array_type;

/* The handle of an object of that type, or NULL with an exception. */
tegula_context *core_context_of(PyObject *object);
core_dataset *core_dataset_of(PyObject *object);
tegula_tiling *core_tiling_of(PyObject *object);
core_array *core_array_of(PyObject *object);

/* takes the handle, also when it fails */
PyObject *core_dataset_new(tegula_dataset *handle, bool here);
PyObject *core_array_new(tegula_array *handle);                /* the same */
PyObject *core_array_of_rank(tegula_array *handle, bool here); /* the same, of what one rank has */
PyTypeObject *core_add_type(PyObject *module, const char *name, PyType_Spec *spec);

/* quick.c: methods of datasets. */
PyObject *core_dataset_quick(PyObject *object, PyObject *key);
PyObject *core_dataset_prepare(PyObject *object, PyObject *arguments);
int core_quick_init(void);

tegula_comm *core_comm_of(PyObject *object);
/* Must calls on this context be made in the caller's thread? */
bool core_context_here(PyObject *object);

int core_comm_init(PyObject *module);
int core_context_init(PyObject *module);
int core_dataset_init(PyObject *module);
int core_tiling_init(PyObject *module);
int core_array_init(PyObject *module);
int core_batches_init(PyObject *module);
int core_operation_init(PyObject *module);
int core_saving_init(PyObject *module);
int core_exporter_init(PyObject *module);
int core_flag_init(PyObject *module);

/* ---- save.c: what is saved, and where ---- */

/* What is said of a dataset; texts and bytes are borrowed from the arguments. */
typedef struct core_described {
  const char *dataset, *layout, *codec, *fill;
  int64_t chunk[TEGULA_MAX_DIMS];
  int32_t chunk_ndim;
  tegula_attribute *attributes;
  int64_t attribute_count;
} core_described;

/* A tuple of (key, value) -> new memory for PyMem_Free, which borrows the texts; NULL: an error is
 * set. */
tegula_setting *core_take_settings(PyObject *tuple, int32_t *count);
/* (format, descr, shards, order, byte_order, overwrite, durable, whole file[, settings]); to be
 * dropped, also when it fails. */
bool core_take_target(PyObject *tuple, tegula_save_options *options);
void core_drop_target(tegula_save_options *options);
/* (dataset, layout, chunk or None, codec, fill, attributes); to be dropped, also when it fails. */
bool core_take_described(PyObject *tuple, core_described *self);
void core_drop_described(core_described *self);
void core_describe(const core_described *from, tegula_save_options *options);

/* Functions of the module. */
PyObject *core_open(PyObject *module, PyObject *arguments);
PyObject *core_from_reader(PyObject *module, PyObject *arguments);
PyObject *core_attributes(PyObject *module, PyObject *arguments);
PyObject *core_save(PyObject *module, PyObject *arguments);
PyObject *core_save_group(PyObject *module, PyObject *arguments);
PyObject *core_save_begin(PyObject *module, PyObject *arguments);
PyObject *core_save_tile_from(PyObject *module, PyObject *arguments);
PyObject *core_dlpack(PyObject *module, PyObject *arguments);

PyObject *core_operation_new(tegula_op *handle);

#endif
