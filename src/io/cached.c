/* What the system keeps of a file in memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/io.h"

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* Linux 6.5; newer than the headers of many systems */
#endif

bool tegula__io_cached_clean(int fd, int64_t offset, int64_t size) {
  struct {
    uint64_t offset, size;
  } range = {(uint64_t)offset, (uint64_t)size};
  struct {
    uint64_t cached, dirty, on_their_way, gone, gone_lately;
  } found = {0};
  return syscall(SYS_cachestat, fd, &range, &found, 0U) == 0 && found.cached > 0 &&
         found.dirty == 0 && found.on_their_way == 0;
}

void tegula__io_let_go(const char *path, int64_t offset, int64_t size, tegula__io_counts *counts) {
  struct stat info;
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return;
  atomic_fetch_add_explicit(&counts->opens, 1, memory_order_relaxed);
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > offset &&
      tegula__io_cached_clean(fd, offset, size))
    posix_fadvise(fd, offset, size, POSIX_FADV_DONTNEED);
  close(fd);
}
