/* Which library of MPI is used.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_PLUGIN_MPI_LIBRARY_H
#define TEGULA_PLUGIN_MPI_LIBRARY_H

#include "base/base.h"

typedef struct tegula__mpi_choice {
  const char *plugin;
  char library[1024]; /* "": the process itself */
  char tried[600];    /* what could not be opened, and why */
} tegula__mpi_choice;

/* An MPI that the process has is the only one that can be right. */
tegula_status tegula__mpi_find(const char *libraries, tegula__mpi_choice *c, tegula_error *err);

#endif
