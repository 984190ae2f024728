/* The public face of demonstration values.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api.h"

tegula_status tegula_demo_fill(tegula_context *context, const tegula_view *view,
                               const int64_t *shape, tegula_values values, uint64_t seed,
                               tegula_error *err) {
  CHECK_ARGUMENT(context != NULL && view != NULL, "the context or the view is NULL");
  return tegula__demo_fill(context->engine.pool, context->engine.kernels, view, shape, values, seed,
                           err);
}

tegula_status tegula_demo_check(tegula_context *context, const tegula_view *view,
                                const int64_t *shape, tegula_values values, uint64_t seed,
                                tegula_error *err) {
  CHECK_ARGUMENT(context != NULL && view != NULL, "the context or the view is NULL");
  return tegula__demo_check(context->engine.pool, context->engine.kernels, view, shape, values,
                            seed, err);
}
