/* Communicators of MPI: the public face of a group of ranks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <tegula/tegula_mpi.h>

#include "api/api.h"
#include "plugin/mpi_library.h"

void tegula_mpi_options_init(tegula_mpi_options *options) {
  *options = (tegula_mpi_options){.struct_size = sizeof *options};
}

#define FIRST_MPI_OPTIONS FIRST_SIZE(tegula_mpi_options, deadline)

static tegula_status join_group(const tegula_plugin_comm *plugin, const tegula__mpi_choice *c,
                                const void *handle, size_t size, double seconds, void **group,
                                tegula_error *err) {
  const char *library = c->library[0] != '\0' ? c->library : NULL;
  bool within = plugin->struct_size >= sizeof *plugin;
  return within
             ? plugin->join_within(&tegula__plugin_host, library, handle, size, seconds, group, err)
             : plugin->join(&tegula__plugin_host, library, handle, size, group, err);
}

static tegula_status join(const tegula_plugin_comm *plugin, const tegula__mpi_choice *c,
                          const void *handle, size_t size, double seconds, tegula_comm **out,
                          tegula_error *err) {
  void *group = NULL;
  FORWARD(join_group(plugin, c, handle, size, seconds, &group, err));
  tegula_status status = tegula__comm_create(plugin, group, out, err);
  if (status != TEGULA_OK) plugin->leave(group, true);
  return status;
}

tegula_status tegula_mpi_comm_create(const void *comm, size_t comm_size,
                                     const tegula_mpi_options *options, tegula_comm **out,
                                     tegula_error *err) {
  CHECK_ARGUMENT(out != NULL, "the place for the communicator is NULL");
  tegula_mpi_options local;
  tegula__mpi_choice c;
  tegula__plugins *plugins = NULL;
  const tegula_plugin *plugin = NULL;
  void *state;
  tegula_mpi_options_init(&local);
  FORWARD(tegula__options_copy(&local, sizeof local, FIRST_MPI_OPTIONS, options,
                               "tegula_mpi_options", err));
  CHECK_ARGUMENT(local.deadline >= 0, "the deadline must not be negative");
  FORWARD(tegula__mpi_find(local.libraries, &c, err));
  FORWARD(tegula__plugins_create(local.plugin_path, NULL, NULL, &plugins, err));
  tegula_status status = tegula__plugins_open(plugins, c.plugin, &plugin, &state, err);
  tegula__plugins_destroy(plugins); /* the object stays */
  if (status == TEGULA_OK)
    status = join(plugin->comm, &c, comm, comm_size, local.deadline, out, err);
  if (status == TEGULA_OK) tegula_comm_deadline(*out, local.deadline);
  return status;
}

void tegula_comm_destroy(tegula_comm *comm) { tegula__comm_destroy(comm); }

int32_t tegula_comm_rank(const tegula_comm *comm) { return comm->rank; }
int32_t tegula_comm_size(const tegula_comm *comm) { return comm->size; }
const char *tegula_comm_library(const tegula_comm *comm) {
  return comm->plugin->library(comm->group);
}
int tegula_comm_any_thread(const tegula_comm *comm) {
  return comm->plugin->any_thread(comm->group);
}
int tegula_comm_broken(const tegula_comm *comm) { return comm->broken; }
void tegula_comm_deadline(tegula_comm *comm, double seconds) {
  comm->deadline = seconds > 0 ? tegula__now() + seconds : 0;
}
void tegula_comm_abort(tegula_comm *comm, int32_t code) { comm->plugin->abort(comm->group, code); }

tegula_status tegula_comm_agree(tegula_comm *comm, tegula_status mine, tegula_error *err) {
  CHECK_ARGUMENT(comm != NULL, "the communicator is NULL");
  return tegula__comm_agree(comm, mine, err);
}

tegula_status tegula_comm_end(tegula_comm *comm, tegula_status mine, tegula_error *err) {
  CHECK_ARGUMENT(comm != NULL, "the communicator is NULL");
  return tegula__comm_end(comm, mine, err);
}

tegula_status tegula_comm_reduce(tegula_comm *comm, tegula_reduction reduction, int64_t *values,
                                 int32_t count, tegula_error *err) {
  CHECK_ARGUMENT(comm != NULL && values != NULL && count >= 0,
                 "the communicator or the values are NULL, or their number is negative");
  tegula__call call;
  tegula__call_init(&call, "tegula_comm_reduce");
  tegula__call_add(&call, "the number of values", "%d", count);
  tegula__call_add(&call, "the kind of reduction", "%d", (int)reduction);
  if (reduction == TEGULA_REDUCTION_MAX && count <= TEGULA__CALL_VALUES)
    return tegula__comm_agree_values(comm, &call, TEGULA_OK, values, count, err);
  FORWARD(tegula__comm_agree_call(comm, &call, TEGULA_OK, err));
  return tegula__comm_reduce(
      comm, reduction == TEGULA_REDUCTION_SUM ? TEGULA_PLUGIN_SUM : TEGULA_PLUGIN_MAX, values,
      count, err);
}
