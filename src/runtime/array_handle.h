/* The handle of an array.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_RUNTIME_ARRAY_HANDLE_H
#define TEGULA_RUNTIME_ARRAY_HANDLE_H

#include "array/array.h"
#include "runtime/context.h"

struct tegula_array {
  _Atomic int32_t references;
  tegula_context *context;
  tegula__array memory;
  tegula_release_fn release;
  void *release_state;
};

tegula_array *tegula__array_retain(const tegula_array *array);
/* As tegula_array_create with default options, without an agreement. */
tegula_status tegula__array_create_here(tegula_context *context, tegula_dtype dtype,
                                        const tegula_tiling *tiling, tegula_array **out,
                                        tegula_error *err);

tegula_status tegula__array_check_group(const tegula_context *context, tegula_dtype dtype,
                                        const tegula_tiling *tiling, tegula_array **out,
                                        tegula_error *err);

tegula_status tegula__array_reserve_here(tegula_context *context, tegula_dtype dtype,
                                         const tegula_tiling *tiling,
                                         const tegula_array_options *options, tegula_array **out,
                                         tegula__array *memory, tegula_error *err);

#endif
