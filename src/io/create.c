/* New files for a save.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "io/io.h"

/* Writing beyond the process's limit would raise a signal that ends the program, so it is looked up
 * first. */
static bool beyond_limit(int64_t size) {
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
         (uint64_t)size > limit.rlim_cur;
}

/* Length, and space where the file system can reserve it without writing: a full disk is then said
 * before the first byte. */
static int set_size(int fd, int64_t from, int64_t size) {
  if (beyond_limit(size)) return EFBIG;
  if (ftruncate(fd, size) != 0) return errno;
  if (size <= from || fallocate(fd, 0, from, size - from) == 0) return 0;
  /* else it just cannot reserve */
  return errno == ENOSPC || errno == EDQUOT || errno == EFBIG || errno == EIO ? errno : 0;
}

tegula_status tegula__io_resize(int fd, const char *path, int64_t from, int64_t size,
                                tegula_error *err) {
  int failed = set_size(fd, from, size);
  if (failed == 0) return TEGULA_OK;
  return tegula__fail_errno(err, failed, path, size, "could not get %lld bytes for \"%s\"",
                            (long long)size, path);
}

tegula_status tegula__io_create(const char *path, int64_t size, const void *header,
                                size_t header_size, bool durable, unsigned mode,
                                tegula__io_counts *counts, tegula_error *err) {
  atomic_fetch_add_explicit(&counts->opens, 1, memory_order_relaxed);
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0) return tegula__fail_errno(err, errno, path, -1, "could not make \"%s\"", path);
  tegula_status status = tegula__io_resize(fd, path, 0, size, err);
  if (status == TEGULA_OK) status = tegula__io_write(fd, path, 0, header, header_size, counts, err);
  if (status == TEGULA_OK && durable && size == (int64_t)header_size && fdatasync(fd) != 0)
    status = tegula__fail_errno(err, errno, path, -1, "could not bring \"%s\" to the disk", path);
  if (close(fd) != 0 && status == TEGULA_OK)
    status = tegula__fail_errno(err, errno, path, -1, "could not finish \"%s\"", path);
  return status;
}
