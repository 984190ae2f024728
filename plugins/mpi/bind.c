/* The library of MPI, opened at run time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>

#include "group.h"

static tegula_status bind_all(const tegula_plugin_host *host, void *object, const char *library,
                              mpi_library *mpi, tegula_error *err) {
  const char *missing = NULL;
  void *symbol;
#define BIND(name, arguments)                                                                      \
  symbol = dlsym(object, "MPI_" #name);                                                            \
  if (symbol == NULL && missing == NULL) missing = "MPI_" #name;                                   \
  memcpy(&mpi->name, &symbol, sizeof symbol);
  MPI_FUNCTIONS(BIND)
#undef BIND
#ifdef MPI_HAS_SYMBOLS
#define BIND(name, abi, mpich, variable)                                                           \
  mpi->symbol_##name = dlsym(object, #variable);                                                   \
  if (mpi->symbol_##name == NULL && missing == NULL) missing = #variable;
  MPI_CONSTANTS(BIND)
#undef BIND
#endif
  if (missing == NULL) return TEGULA_OK;
  return host->fail(err, TEGULA_UNSUPPORTED, library, -1, "the MPI library \"%s\" has no %s",
                    library != NULL ? library : "of this process", missing);
}

tegula_status mpi_open_library(const tegula_plugin_host *host, const char *library,
                               mpi_library *mpi, tegula_error *err) {
  int mode = RTLD_NOW | RTLD_LOCAL;
#ifdef TEGULA_MPI_OMPI
  mode = RTLD_NOW | RTLD_GLOBAL; /* its own plugins look for its symbols */
#endif
  void *object = dlopen(library, mode); /* stays open */
  if (object != NULL) return bind_all(host, object, library, mpi, err);
  const char *why = dlerror();
  return host->fail(err, TEGULA_UNSUPPORTED, library, -1,
                    "could not open the MPI library \"%s\": %.300s", library,
                    why != NULL ? why : "unknown");
}
