/* tegula on several processes (ranks), by MPI.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A communicator is made once and given to tegula_context_create. The functions of tegula.h that
 * are marked C are then made by all ranks of the context, in the same order and with the same
 * arguments; each returns the same status and error on all of them, and none waits for ever when
 * there is a deadline. No header and no library of MPI is needed to build a program: the MPI of the
 * process is used, or one that is found when the communicator is made. Habits and thread rules are
 * those of tegula.h. */
#ifndef TEGULA_TEGULA_MPI_H
#define TEGULA_TEGULA_MPI_H

#include <tegula/tegula.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tegula_mpi_options {
  size_t struct_size;
  /* MPI libraries by path or name, separated by ':'; the first that can be opened is taken. NULL:
   * an MPI that is in the process already, else libmpi_abi.so.1 (MPI 5), libmpi.so.12 or
   * libmpich.so.12 (MPICH and its family), libmpi.so.40 (Open MPI) */
  const char *libraries;
  const char *plugin_path; /* as in tegula_context_options */
  /* seconds that other ranks are waited for, after the start of MPI; once joined, as by
   * tegula_comm_deadline. 0: no limit */
  double deadline;
} tegula_mpi_options;

TEGULA_API void tegula_mpi_options_init(tegula_mpi_options *options);

/* Duplicates a communicator: `comm` is the address of an MPI_Comm and `comm_size` its sizeof (both
 * differ between MPIs):
 *     MPI_Comm comm = MPI_COMM_WORLD;
 *     tegula_mpi_comm_create(&comm, sizeof comm, NULL, &group, &error);
 * NULL, 0: all processes that were started together; MPI is then initialised if nobody has done
 * that, and finalized by destroy. MPI is asked for MPI_THREAD_SERIALIZED; where a program has
 * initialised it with less, calls that are collective must come from the thread that may call MPI.
 * UNSUPPORTED: no MPI can be opened. All ranks of `comm` call it. */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_mpi_comm_create(const void *comm,
                                                                  size_t comm_size,
                                                                  const tegula_mpi_options *options,
                                                                  tegula_comm **out,
                                                                  tegula_error *err);
/* After all contexts that borrow it. Accepts NULL. All ranks call it; after a failure of status
 * TIMEOUT or COMM it waits for nobody, and an MPI that was initialised here stays as it is. */
TEGULA_API void tegula_comm_destroy(tegula_comm *comm);
/* This process among the ranks: 0 to size - 1. [A] */
TEGULA_API int32_t tegula_comm_rank(const tegula_comm *comm);
TEGULA_API int32_t tegula_comm_size(const tegula_comm *comm);
/* The MPI that is used, such as "Open MPI v4.1.4"; borrowed until destroy. [A] */
TEGULA_API const char *tegula_comm_library(const tegula_comm *comm);
/* 0 when collective calls must come from the thread that initialised MPI, else 1. [A] */
TEGULA_API int tegula_comm_any_thread(const tegula_comm *comm);
/* No wait for other ranks lasts beyond `seconds` from now; 0: no limit. Then the call fails with
 * TIMEOUT, whose message names the ranks that did not come; so does every later call on the
 * communicator, because what the others will do is not known. A program then best says so and calls
 * abort. [O] */
TEGULA_API void tegula_comm_deadline(tegula_comm *comm, double seconds);
/* The end of a step of the program's own: all ranks get the status and error of the lowest rank
 * whose `mine` is not OK. `err` holds that error on ranks that failed. [C, O] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_comm_agree(tegula_comm *comm, tegula_status mine,
                                                             tegula_error *err);

/* The end of all collective calls. A rank that failed on its own, between two of them, comes here
 * at once: its error is what the others get from the call they are in or make next, and it waits
 * until all have come. Returns OK, or the same error on all ranks. [C, O] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_comm_end(tegula_comm *comm, tegula_status mine,
                                                           tegula_error *err);

typedef enum tegula_reduction {
  TEGULA_REDUCTION_MAX = 0,
  TEGULA_REDUCTION_SUM = 1
} tegula_reduction;

/* Sums or largest numbers over all ranks, on all ranks. [C, O] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_comm_reduce(tegula_comm *comm,
                                                              tegula_reduction reduction,
                                                              int64_t *values, int32_t count,
                                                              tegula_error *err);
/* 1 after a failure of the communicator itself, or a deadline: nothing can be agreed on it any
 * more. [A] */
TEGULA_API int tegula_comm_broken(const tegula_comm *comm);
/* Ends all processes of the communicator (MPI_Abort). [A] */
TEGULA_API void tegula_comm_abort(tegula_comm *comm, int32_t code);

#ifdef __cplusplus
}
#endif
#endif
