/* The communicator of one process, and the making and ending of others.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "comm/comm_priv.h"

static const tegula_comm self = {.rank = 0, .size = 1};

/* With one rank the struct is never written to; the type is not const because other communicators
 * have state. */
tegula_comm *tegula__comm_self(void) { return (tegula_comm *)&self; }

tegula_status tegula__comm_create(const tegula_plugin_comm *plugin, void *group, tegula_comm **out,
                                  tegula_error *err) {
  tegula_comm *comm = calloc(1, sizeof *comm);
  if (comm == NULL) return tegula__out_of_memory(err, sizeof *comm);
  comm->plugin = plugin;
  comm->group = group;
  comm->rank = plugin->rank(group);
  comm->size = plugin->size(group);
  comm->processors = plugin->processors(group);
  comm->thread = pthread_self();
  *out = comm;
  return TEGULA_OK;
}

void tegula__comm_destroy(tegula_comm *comm) {
  if (comm == NULL || comm->plugin == NULL) return;
  bool broken = comm->broken;
  if (!broken) tegula__news_drop(comm);
  comm->plugin->leave(comm->group, broken);
  if (!broken) free(comm); /* else what never ended may still write to it */
}
