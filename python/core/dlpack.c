/* DLPack: memory handed to other array libraries without a copy, in the versioned form and in that
 * of before 1.0.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The structs are those of the specification (dlpack.h 1.0), declared here because nothing else of
 * it is needed. A capsule that nobody took calls the deleter itself; a taken one is renamed by its
 * consumer. */
#include <stdlib.h>

#include "core.h"

typedef struct dl_tensor {
  void *data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides; /* in elements */
  uint64_t byte_offset;
} dl_tensor;

typedef struct dl_legacy {
  dl_tensor tensor;
  void *manager;
  void (*deleter)(struct dl_legacy *self);
} dl_legacy;

typedef struct dl_versioned {
  uint32_t major, minor;
  void *manager;
  void (*deleter)(struct dl_versioned *self);
  uint64_t flags;
  dl_tensor tensor;
} dl_versioned;

enum { DL_CPU = 1 };

/* One of the two, and what it points to. */
typedef struct exported {
  union {
    dl_legacy legacy;
    dl_versioned versioned;
  } as;
  PyObject *owner;
  int64_t shape[TEGULA_MAX_DIMS], strides[TEGULA_MAX_DIMS];
} exported;

static void drop(exported *self) {
  if (Py_IsInitialized()) {
    PyGILState_STATE gil = PyGILState_Ensure();
    Py_DECREF(self->owner);
    PyGILState_Release(gil);
  }
  free(self);
}

static void delete_legacy(dl_legacy *self) { drop(self->manager); }
static void delete_versioned(dl_versioned *self) { drop(self->manager); }

static void end_capsule(PyObject *capsule) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  void *legacy =
      PyCapsule_IsValid(capsule, "dltensor") ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;
  void *versioned = PyCapsule_IsValid(capsule, "dltensor_versioned")
                        ? PyCapsule_GetPointer(capsule, "dltensor_versioned")
                        : NULL;
  if (legacy != NULL) delete_legacy(legacy);
  if (versioned != NULL) delete_versioned(versioned);
  PyErr_Restore(type, value, traceback);
}

static bool is_empty(const exported *self, int32_t ndim) {
  for (int32_t k = 0; k < ndim; k++)
    if (self->shape[k] == 0) return true;
  return false;
}

/* dlpack(owner, address, shape, strides in elements, code, bits, versioned, flags) -> capsule */
PyObject *core_dlpack(PyObject *module, PyObject *arguments) {
  PyObject *owner, *shape, *strides;
  unsigned long long address, flags;
  unsigned char code, bits;
  int versioned;
  int32_t ndim, stride_count;
  (void)module;
  exported *self = calloc(1, sizeof *self);
  if (self == NULL) return PyErr_NoMemory();
  if (!PyArg_ParseTuple(arguments, "OKOObbpK", &owner, &address, &shape, &strides, &code, &bits,
                        &versioned, &flags) ||
      !core_lengths(shape, self->shape, &ndim) ||
      !core_lengths(strides, self->strides, &stride_count)) {
    free(self);
    return NULL;
  }
  dl_tensor tensor = {.data = is_empty(self, ndim) ? NULL : (void *)(uintptr_t)address,
                      .device_type = DL_CPU,
                      .ndim = ndim,
                      .code = code,
                      .bits = bits,
                      .lanes = 1,
                      .shape = ndim > 0 ? self->shape : NULL,
                      .strides = ndim > 0 ? self->strides : NULL};
  if (versioned)
    self->as.versioned = (dl_versioned){.major = 1,
                                        .minor = 0,
                                        .manager = self,
                                        .deleter = delete_versioned,
                                        .flags = flags,
                                        .tensor = tensor};
  else
    self->as.legacy = (dl_legacy){.tensor = tensor, .manager = self, .deleter = delete_legacy};
  self->owner = Py_NewRef(owner);
  PyObject *capsule =
      PyCapsule_New(&self->as, versioned ? "dltensor_versioned" : "dltensor", end_capsule);
  if (capsule == NULL) drop(self);
  return capsule;
}
