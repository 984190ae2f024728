/* Memory that libhdf5 is sure to get.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * libhdf5, and constructors of libraries that it needs, may end the process when an allocation
 * fails. So nobody enters it unless a reserve can be had; the library keeps one between calls, for
 * those that must not fail (closing), and gives it back on entering. The driver asks again before
 * each read of a file: between two reads libhdf5 allocates about what it has read. It is address
 * space, which limits of the process (RLIMIT_AS, RLIMIT_DATA) and of the system (strict overcommit)
 * count; no page of it is ever touched. What other threads take meanwhile is not foreseen. */
#include <sys/mman.h>

#include "library/libhdf5.h"

static void *map(size_t bytes) {
  void *space = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return space == MAP_FAILED ? NULL : space;
}

bool hdf5_memory_there(size_t bytes) {
  void *space = map(bytes);
  if (space) munmap(space, bytes);
  return space != NULL;
}

void hdf5_reserve_take(hdf5_library *library) {
  if (!library->reserve) library->reserve = map(HDF5_RESERVE);
}

void hdf5_reserve_give_back(hdf5_library *library) {
  if (library->reserve) munmap(library->reserve, HDF5_RESERVE);
  library->reserve = NULL;
}

tegula_status hdf5_no_reserve(const tegula_plugin_host *host, size_t bytes, tegula_error *err) {
  tegula_status status = host->fail(
      err, TEGULA_OUT_OF_MEMORY, NULL, -1,
      "could not get the %zu bytes of memory without which libhdf5 may end the process", bytes);
  return host->hint(err, status,
                    "raise the limit of the memory of this process (ulimit -v), or free some");
}
