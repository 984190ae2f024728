/* Files that are made piece by piece.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/io_priv.h"

enum { COPY_BYTES = 4 << 20 };

tegula_status tegula__io_make(const char *path, unsigned mode, tegula__io_counts *counts, int *fd,
                              tegula_error *err) {
  atomic_fetch_add_explicit(&counts->opens, 1, memory_order_relaxed);
  *fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  return *fd >= 0 ? TEGULA_OK
                  : tegula__fail_errno(err, errno, path, -1, "could not make \"%s\"", path);
}

tegula_status tegula__io_reopen(const char *path, tegula__io_counts *counts, int *fd,
                                tegula_error *err) {
  atomic_fetch_add_explicit(&counts->opens, 1, memory_order_relaxed);
  *fd = open(path, O_RDWR | O_CLOEXEC);
  return *fd >= 0 ? TEGULA_OK
                  : tegula__fail_errno(err, errno, path, -1, "could not open \"%s\" again", path);
}

tegula_status tegula__io_read_head(const char *path, void *out, size_t size, size_t *got,
                                   tegula__io_counts *counts, tegula_error *err) {
  atomic_fetch_add_explicit(&counts->opens, 1, memory_order_relaxed);
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return tegula__fail_errno(err, errno, path, -1, "could not open \"%s\"", path);
  tegula_status status = tegula__io_read_some(fd, path, 0, out, size, got, counts, err);
  close(fd);
  return status;
}

static bool same(const tegula__stamp *a, const tegula__stamp *b) {
  return a->size == b->size && a->mtime_ns == b->mtime_ns && a->inode == b->inode &&
         a->device == b->device;
}

static tegula_status changed(const char *path, tegula_error *err) {
  return tegula__hint(
      err,
      tegula__fail(err, TEGULA_CHANGED, path, -1, "\"%s\" changed while it was saved to", path),
      "another program writes to it: try again when it is done");
}

tegula_status tegula__io_stamp(const char *path, tegula__stamp *stamp, tegula_error *err) {
  struct stat info;
  if (stat(path, &info) != 0)
    return tegula__fail_errno(err, errno, path, -1, "could not examine \"%s\"", path);
  *stamp = tegula__io_stamp_of(&info);
  return TEGULA_OK;
}

tegula_status tegula__io_check(const char *path, const tegula__stamp *stamp, tegula_error *err) {
  tegula__stamp now;
  FORWARD(tegula__io_stamp(path, &now, err));
  return same(&now, stamp) ? TEGULA_OK : changed(path, err);
}

static tegula_status copy_by_memory(int in, const char *from, int fd, const char *path,
                                    int64_t done, int64_t size, tegula__io_counts *counts,
                                    tegula_error *err) {
  char *buffer = malloc(COPY_BYTES);
  if (buffer == NULL) return tegula__out_of_memory(err, COPY_BYTES);
  tegula_status status = TEGULA_OK;
  for (size_t part; status == TEGULA_OK && done < size; done += (int64_t)part) {
    part = (size_t)tegula__min(COPY_BYTES, size - done);
    status = tegula__io_read(in, from, done, buffer, part, counts, err);
    if (status == TEGULA_OK) status = tegula__io_write(fd, path, done, buffer, part, counts, err);
  }
  free(buffer);
  return status;
}

/* Shares the blocks, or lets the kernel copy, or does it by hand. */
static tegula_status copy_bytes(int in, const char *from, int fd, const char *path, int64_t size,
                                const tegula__io_room *room, tegula__io_counts *counts,
                                tegula_error *err) {
  bool shared = ioctl(fd, FICLONE, in) == 0;
  FORWARD(room->ask(room->state, shared ? 0 : size, err));
  if (shared) return TEGULA_OK;
  off_t read_at = 0, write_at = 0;
  while (read_at < size) {
    ssize_t got = copy_file_range(in, &read_at, fd, &write_at, (size_t)(size - read_at), 0);
    if (got < 0 && errno == EINTR) continue;
    /* it may not work between these files: what is left is copied by hand, which says what is
     * wrong */
    if (got <= 0) break;
  }
  return copy_by_memory(in, from, fd, path, read_at, size, counts, err);
}

tegula_status tegula__io_copy(const char *from, int fd, const char *path,
                              const tegula__io_room *room, tegula__io_counts *counts,
                              tegula__stamp *stamp, tegula_error *err) {
  struct stat info;
  atomic_fetch_add_explicit(&counts->opens, 1, memory_order_relaxed);
  int in = open(from, O_RDONLY | O_CLOEXEC);
  if (in < 0) return tegula__fail_errno(err, errno, from, -1, "could not open \"%s\"", from);
  tegula_status status = TEGULA_OK;
  if (fstat(in, &info) != 0)
    status = tegula__fail_errno(err, errno, from, -1, "could not examine \"%s\"", from);
  if (status == TEGULA_OK && tegula__io_locked(in))
    status = tegula__hint(err,
                          tegula__fail(err, TEGULA_UNSUPPORTED, from, -1,
                                       "\"%s\" is locked by another program, which may be writing "
                                       "to it: nothing is added to it",
                                       from),
                          "wait until that program has closed it");
  if (status == TEGULA_OK) {
    *stamp = tegula__io_stamp_of(&info);
    tegula__io_settle(in, stamp);
    status = copy_bytes(in, from, fd, path, stamp->size, room, counts, err);
  }
  if (status == TEGULA_OK) status = tegula__io_check(from, stamp, err);
  close(in);
  return status;
}

tegula_status tegula__io_complete(int fd, const char *path, bool durable, tegula_error *err) {
  int failed = durable && fdatasync(fd) != 0 ? errno : 0;
  if (close(fd) != 0 && failed == 0 && errno != EINTR) failed = errno;
  return failed == 0 ? TEGULA_OK
                     : tegula__fail_errno(err, failed, path, -1,
                                          "could not bring \"%s\" to the disk", path);
}
