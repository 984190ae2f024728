/* What this plugin needs of MPI, declared for one of three binary interfaces, so that no MPI is
 * needed to build it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * TEGULA_MPI_ABI: the standard ABI of MPI 5 (libmpi_abi.so.1): handles are small numbers in
 * pointers. TEGULA_MPI_MPICH: MPICH, Intel MPI, Cray MPICH, MVAPICH (libmpi.so.12): handles are
 * ints. TEGULA_MPI_OMPI: Open MPI 4 and 5 (libmpi.so.40): handles are addresses of variables of the
 * library. */
#ifndef TEGULA_PLUGINS_MPI_ABI_H
#define TEGULA_PLUGINS_MPI_ABI_H

#include <stdint.h>

#if defined(TEGULA_MPI_MPICH)
typedef int mpi_handle;
#define MPI_NAME "mpi_mpich"
#define MPI_FIXED(name, abi, mpich) (mpich)
enum { MPI_SERIALIZED = 2, MPI_FUNNELED = 1 };
#define MPI_IGNORE ((void *)1)
#elif defined(TEGULA_MPI_OMPI)
typedef void *mpi_handle;
#define MPI_NAME "mpi_ompi"
#define MPI_FIXED(name, abi, mpich) (mpi->symbol_##name)
enum { MPI_SERIALIZED = 2, MPI_FUNNELED = 1 };
#define MPI_IGNORE NULL
#define MPI_HAS_SYMBOLS 1
#elif defined(TEGULA_MPI_ABI)
typedef void *mpi_handle;
#define MPI_NAME "mpi_abi"
#define MPI_FIXED(name, abi, mpich) ((mpi_handle)(uintptr_t)(abi))
enum { MPI_SERIALIZED = 2048, MPI_FUNNELED = 1024 };
#define MPI_IGNORE NULL
#else
#error "define TEGULA_MPI_ABI, TEGULA_MPI_MPICH or TEGULA_MPI_OMPI"
#endif

/* name, value in the standard ABI, in that of MPICH, symbol of Open MPI */
#define MPI_CONSTANTS(X)                                                                           \
  X(world, 0x101, 0x44000000, ompi_mpi_comm_world)                                                 \
  X(byte, 0x247, 0x4c00010d, ompi_mpi_byte)                                                        \
  X(int64, 0x258, 0x4c00083a, ompi_mpi_int64_t)                                                    \
  X(max, 0x23, 0x58000001, ompi_mpi_op_max)                                                        \
  X(sum, 0x21, 0x58000003, ompi_mpi_op_sum)                                                        \
  X(bxor, 0x2a, 0x5800000a, ompi_mpi_op_bxor)                                                      \
  X(no_request, 0x180, 0x2c000000, ompi_request_null)                                              \
  X(errors_return, 0x143, 0x54000001, ompi_mpi_errors_return)

enum { MPI_ERROR_TEXT = 512, MPI_VERSION_TEXT = 8192 }; /* the longest of the three */

/* name, arguments; all return an int, 0 for success */
#define MPI_FUNCTIONS(X)                                                                           \
  X(Initialized, (int *flag))                                                                      \
  X(Finalized, (int *flag))                                                                        \
  X(Init_thread, (int *argc, char ***argv, int required, int *provided))                           \
  X(Query_thread, (int *provided))                                                                 \
  X(Is_thread_main, (int *flag))                                                                   \
  X(Finalize, (void))                                                                              \
  X(Get_library_version, (char *text, int *length))                                                \
  X(Error_string, (int code, char *text, int *length))                                             \
  X(Comm_idup, (mpi_handle comm, mpi_handle * out, mpi_handle * request))                          \
  X(Comm_free, (mpi_handle * comm))                                                                \
  X(Comm_rank, (mpi_handle comm, int *rank))                                                       \
  X(Comm_size, (mpi_handle comm, int *size))                                                       \
  X(Comm_test_inter, (mpi_handle comm, int *flag))                                                 \
  X(Comm_set_errhandler, (mpi_handle comm, mpi_handle handler))                                    \
  X(Iallgather, (const void *mine, int count, mpi_handle type, void *all, int each, mpi_handle of, \
                 mpi_handle comm, mpi_handle *request))                                            \
  X(Iallreduce, (const void *mine, void *all, int count, mpi_handle type, mpi_handle op,           \
                 mpi_handle comm, mpi_handle *request))                                            \
  X(Ibcast,                                                                                        \
    (void *data, int count, mpi_handle type, int root, mpi_handle comm, mpi_handle *request))      \
  X(Isend, (const void *data, int count, mpi_handle type, int rank, int tag, mpi_handle comm,      \
            mpi_handle *request))                                                                  \
  X(Irecv, (void *data, int count, mpi_handle type, int rank, int tag, mpi_handle comm,            \
            mpi_handle *request))                                                                  \
  X(Iprobe, (int rank, int tag, mpi_handle comm, int *flag, void *status))                         \
  X(Test, (mpi_handle * request, int *flag, void *status))                                         \
  X(Abort, (mpi_handle comm, int code))

#endif
