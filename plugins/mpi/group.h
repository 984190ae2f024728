/* group: the functions of the MPI library, its constants, and a communicator of our own.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Begin reading at mpi.c. bind.c opens the library, abi.h says what differs between the three
 * builds. The folder includes tegula_plugin.h and nothing of src. */
#ifndef TEGULA_MPI_GROUP_H
#define TEGULA_MPI_GROUP_H

#include <sched.h>
#include <string.h>

#include <tegula/tegula_plugin.h>

#include "abi.h"

typedef struct mpi_library {
#define FIELD(name, arguments) int(*name) arguments;
  MPI_FUNCTIONS(FIELD)
#undef FIELD
#ifdef MPI_HAS_SYMBOLS
#define FIELD(name, abi, mpich, symbol) mpi_handle symbol_##name;
  MPI_CONSTANTS(FIELD)
#undef FIELD
#endif
} mpi_library;

typedef struct processors {
  uint64_t words[CPU_SETSIZE / 64];
} processors;

typedef struct group {
  const tegula_plugin_host *host;
  mpi_library mpi;
  mpi_handle comm;
  bool ours; /* MPI was initialised here */
  bool any_thread;
  int rank, size;
  int32_t processors;
  char library[256];
  /* joining: what a transfer that never ends may still read and write, so the group is not freed
   * then */
  double seconds; /* how long others are waited for; 0: as long as it takes */
  double until;   /* of CLOCK_MONOTONIC; 0: nobody was waited for yet */
  bool waits;     /* a transfer did not end */
  int64_t machine;
  processors all, theirs;
} group;

#define CONSTANT(name) constant_##name(mpi)
#define CONSTANT_FUNCTION(name, abi, mpich, symbol)                                                \
  static inline mpi_handle constant_##name(const mpi_library *mpi) {                               \
    (void)mpi;                                                                                     \
    return MPI_FIXED(name, abi, mpich);                                                            \
  }
MPI_CONSTANTS(CONSTANT_FUNCTION)
#undef CONSTANT_FUNCTION

/* Opens the library, NULL: the process itself, and finds all functions and constants in it. */
tegula_status mpi_open_library(const tegula_plugin_host *host, const char *library,
                               mpi_library *mpi, tegula_error *err);

#endif
