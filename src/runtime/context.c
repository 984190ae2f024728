/* The context: everything that calls share hangs on it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "runtime/context.h"

/* Enough for 1 ms a request at 1 MiB to reach 100 GB/s, and for a hundred thousand small files. */
#define MOST_IO_THREADS 128
#define MOST_CACHE_BYTES ((int64_t)32 << 20)
#define OTHERS_SECONDS 5 /* for which names that another machine has made may take to be seen */

tegula_context *tegula__context_retain(tegula_context *context) {
  atomic_fetch_add(&context->references, 1);
  return context;
}

void tegula__context_release(tegula_context *context) {
  if (context == NULL || atomic_fetch_sub(&context->references, 1) != 1) return;
  tegula__queue_destroy(context->queue);
  tegula__pool_destroy(context->engine.pool);
  tegula__staging_destroy(context->engine.staging);
  tegula__transport_destroy(context->engine.transport);
  tegula__handles_destroy(context->handles);
  tegula__plugins_destroy(context->plugins);
  tegula__block_cache_destroy(context->cache);
  free(context);
}

/* A part of what may be taken as buffers. */
static int64_t cache_bytes(const tegula__staging *staging) {
  return tegula__min(MOST_CACHE_BYTES, tegula__staging_budget(staging) / 4);
}

/* Ranks of one machine share its processors. */
static int32_t granted_threads(const tegula_comm *comm) {
  int32_t granted = tegula__granted_threads();
  return comm != NULL && comm->processors > 0 && comm->processors < granted ? comm->processors
                                                                            : granted;
}

tegula_status tegula__context_create(const tegula_context_options *options, tegula_comm *comm,
                                     tegula_context **out, tegula_error *err) {
  CHECK_ARGUMENT(out != NULL, "the place for the context is NULL");
  tegula_context_options local;
  tegula_context_options_init(&local);
  FORWARD(tegula__options_copy(&local, sizeof local, FIRST_CONTEXT_OPTIONS, options,
                               "tegula_context_options", err));
  CHECK_ARGUMENT(local.threads >= 0 && local.threads <= 4096, "threads must be 0 to 4096");
  CHECK_ARGUMENT(local.io_threads >= 0 && local.io_threads <= 4096 && local.reserved == 0,
                 "io_threads must be 0 to 4096");
  CHECK_ARGUMENT(local.max_open_files >= 0, "max_open_files must not be negative");
  CHECK_ARGUMENT(local.staging_bytes >= 0, "staging_bytes must not be negative");
  int32_t threads = local.threads > 0 ? local.threads : granted_threads(comm);
  int32_t most = local.io_threads > 0 ? local.io_threads : local.threads == 1 ? 1 : MOST_IO_THREADS;
  tegula_context *context = calloc(1, sizeof *context);
  if (context == NULL) return tegula__out_of_memory(err, sizeof *context);
  atomic_init(&context->references, 1);
  context->comm = comm != NULL ? comm : tegula__comm_self();
  context->engine.kernels = tegula__kernel_select();
  tegula_status status;
  FORWARD_WITH(status, tegula__pool_create(threads, most, &context->engine.pool, err));
  FORWARD_WITH(status,
               tegula__staging_create(local.staging_bytes, threads, &context->engine.staging, err));
  FORWARD_WITH(status, tegula__block_cache_create(cache_bytes(context->engine.staging),
                                                  &context->cache, err));
  FORWARD_WITH(status, tegula__transport_create(local.io, &context->engine.transport, err));
  FORWARD_WITH(status, tegula__handles_create(local.max_open_files, &context->handles, err));
  if (context->comm->size > 1) tegula__handles_wait_for_others(context->handles, OTHERS_SECONDS);
  FORWARD_WITH(status, tegula__plugins_create(local.plugin_path, local.hdf5_library,
                                              local.hdf5_candidates, &context->plugins, err));
  FORWARD_WITH(status, tegula__queue_create(threads, &context->queue, err));
done:
  if (status == TEGULA_OK)
    *out = context;
  else
    tegula__context_release(context);
  return status;
}
