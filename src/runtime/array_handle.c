/* The handle of an array: made, shared and given back.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "runtime/array_handle.h"

tegula_status tegula__array_check_group(const tegula_context *context, tegula_dtype dtype,
                                        const tegula_tiling *tiling, tegula_array **out,
                                        tegula_error *err) {
  CHECK_ARGUMENT(tiling != NULL && out != NULL, "the tiling or the place for the array is NULL");
  CHECK_ARGUMENT(tegula__dtype_valid(dtype), "the dtype is not one that tegula_dtype_parse gives");
  if (tiling->ranks != context->comm->size)
    return tegula__fail(err, TEGULA_MISMATCH, NULL, -1,
                        "the tiling is for %d ranks, the context has %d", tiling->ranks,
                        context->comm->size);
  return TEGULA_OK;
}

tegula_status tegula__array_reserve_here(tegula_context *context, tegula_dtype dtype,
                                         const tegula_tiling *tiling,
                                         const tegula_array_options *options, tegula_array **out,
                                         tegula__array *memory, tegula_error *err) {
  tegula_array_options local;
  tegula_array_options_init(&local);
  FORWARD(tegula__array_check_group(context, dtype, tiling, out, err));
  FORWARD(tegula__options_copy(&local, sizeof local, FIRST_ARRAY_OPTIONS, options,
                               "tegula_array_options", err));
  CHECK_ARGUMENT((local.flags & ~TEGULA_ARRAY_SEPARATE) == 0 && local.reserved == 0,
                 "unknown flags are set");
  if (local.device_type != 0 && local.device_type != TEGULA_DEVICE_HOST)
    return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                        "cannot make arrays on device type %d: only host memory is supported",
                        local.device_type);
  return tegula__array_reserve(dtype, tiling, context->comm->rank,
                               (local.flags & TEGULA_ARRAY_SEPARATE) != 0, memory, err);
}

tegula_status tegula__array_create_here(tegula_context *context, tegula_dtype dtype,
                                        const tegula_tiling *tiling, tegula_array **out,
                                        tegula_error *err) {
  tegula_array *array = calloc(1, sizeof *array);
  if (array == NULL) return tegula__out_of_memory(err, sizeof *array);
  tegula_status status =
      tegula__array_reserve_here(context, dtype, tiling, NULL, out, &array->memory, err);
  if (status != TEGULA_OK) {
    free(array);
    return status;
  }
  atomic_init(&array->references, 1);
  array->context = tegula__context_retain(context);
  *out = array;
  return TEGULA_OK;
}

tegula_array *tegula__array_retain(const tegula_array *array) {
  tegula_array *shared = (tegula_array *)array; /* only the count changes */
  atomic_fetch_add(&shared->references, 1);
  return shared;
}

void tegula_array_destroy(tegula_array *array) {
  if (array == NULL || atomic_fetch_sub(&array->references, 1) != 1) return;
  tegula__array_free(&array->memory);
  if (array->release != NULL) array->release(array->release_state);
  tegula__context_release(array->context);
  free(array);
}
