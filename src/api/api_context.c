/* The public face of contexts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "save/save_later.h"

tegula_status tegula_context_create(const tegula_context_options *options, tegula_comm *comm,
                                    tegula_context **out, tegula_error *err) {
  tegula_status status = tegula__context_create(options, comm, out, err);
  if (comm == NULL) return status;
  tegula_context *made = status == TEGULA_OK ? *out : NULL;
  status = tegula__comm_agree(comm, status, err);
  if (status != TEGULA_OK) tegula__context_release(made);
  return status;
}

void tegula_context_destroy(tegula_context *context) {
  if (context == NULL) return;
  tegula__later_give_up_all(context);
  tegula__queue_close(context->queue); /* waits for what is in flight */
  tegula__context_release(context);
}

int32_t tegula_context_threads(const tegula_context *context) {
  return tegula__pool_threads(context->engine.pool);
}
