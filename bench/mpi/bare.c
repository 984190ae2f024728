/* tegula_bench_mpi LIBRARY: what a job of several ranks costs that does nothing: MPI_Init, one
 * barrier, MPI_Finalize.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The library is opened at run time, so that no MPI is needed to build this. MPI_COMM_WORLD is a
 * variable of Open MPI, a number in a pointer in the standard ABI of MPI 5, and an int in the older
 * one of MPICH. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *symbol(void *library, const char *name) {
  void *found = dlsym(library, name);
  if (found == NULL) {
    fprintf(stderr, "tegula_bench_mpi: the library has no %s\n", name);
    exit(1);
  }
  return found;
}

static int barrier(void *library, const char *path) {
  union {
    void *symbol;
    int (*of_pointer)(void *comm);
    int (*of_int)(int comm);
  } call = {.symbol = symbol(library, "MPI_Barrier")};
  void *world = dlsym(library, "ompi_mpi_comm_world");
  if (world != NULL) return call.of_pointer(world);
  return strstr(path, "libmpi_abi") != NULL ? call.of_pointer((void *)(uintptr_t)0x101)
                                            : call.of_int(0x44000000);
}

int main(int argc, char **argv) {
  union {
    void *symbol;
    int (*init)(int *argc, char ***argv);
    int (*finalize)(void);
  } call;
  void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
  if (library == NULL) {
    fprintf(stderr, "usage: tegula_bench_mpi LIBRARY: %s\n", argc == 2 ? dlerror() : "which MPI?");
    return 1;
  }
  call.symbol = symbol(library, "MPI_Init");
  if (call.init(&argc, &argv) != 0 || barrier(library, argv[1]) != 0) return 1;
  call.symbol = symbol(library, "MPI_Finalize");
  return call.finalize() != 0;
}
