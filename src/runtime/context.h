/* The context: everything that calls share hangs on it.
 *
 * Begin reading at struct tegula_context. The folder holds what every operation needs: the context,
 * the handle of an array, structs of callers and the counts of a call. It includes the folders of
 * the mechanisms (base, comm, io, kernel, memory, engine, order, plugin, array), and no operation.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_RUNTIME_CONTEXT_H
#define TEGULA_RUNTIME_CONTEXT_H

#include <stdatomic.h>

#include "comm/comm.h"
#include "engine/engine.h"
#include "io/io.h"
#include "memory/block_cache.h"
#include "order/queue.h"
#include "plugin/plugin.h"
#include "runtime/caller_structs.h"

/* Counted: datasets and arrays keep their context alive, operations keep both. */
struct tegula_context {
  _Atomic int32_t references;
  tegula_comm *comm;
  tegula__engine engine;
  tegula__handles *handles;
  tegula__queue *queue;
  tegula__plugins *plugins;
  tegula__block_cache *cache;    /* chunks around small reads */
  struct tegula__later *pending; /* saves in the background on ranks that have not ended */
};

tegula_context *tegula__context_retain(tegula_context *context);
void tegula__context_release(tegula_context *context);

tegula_status tegula__context_create(const tegula_context_options *options, tegula_comm *comm,
                                     tegula_context **out, tegula_error *err);

#endif
