/* Transfers that end only when all bytes are there.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "io/io_priv.h"

/* One call never asks for more: Linux transfers at most 0x7ffff000 bytes at once (read(2)). */
#define MOST_AT_ONCE ((size_t)1 << 30)

bool tegula__io_retry(int fd, int os_errno, short events) {
  if (os_errno == EINTR) return true;
  if (os_errno != EAGAIN && os_errno != EWOULDBLOCK) return false;
  struct pollfd wait = {.fd = fd, .events = events};
  poll(&wait, 1, 100);
  return true;
}

tegula_status tegula__io_read_failed(int os_errno, const char *path, int64_t offset,
                                     tegula_error *err) {
  return tegula__fail_errno(err, os_errno, path, offset, "could not read \"%s\" at byte %lld", path,
                            (long long)offset);
}

tegula_status tegula__io_write_failed(int os_errno, const char *path, int64_t offset,
                                      tegula_error *err) {
  return tegula__fail_errno(err, os_errno, path, offset, "could not write \"%s\" at byte %lld",
                            path, (long long)offset);
}

tegula_status tegula__io_ended(const char *path, int64_t offset, int64_t missing,
                               tegula_error *err) {
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_SHORT_FILE, path, offset,
                                   "\"%s\" ends at byte %lld: expected %lld bytes more", path,
                                   (long long)offset, (long long)missing),
                      "the file was cut while it was in use");
}

tegula_status tegula__io_no_progress(const char *path, int64_t offset, tegula_error *err) {
  return tegula__fail(err, TEGULA_IO, path, offset,
                      "could not write \"%s\" at byte %lld: the system took no bytes", path,
                      (long long)offset);
}

tegula_status tegula__io_read_some(int fd, const char *path, int64_t offset, void *data,
                                   size_t size, size_t *got, tegula__io_counts *counts,
                                   tegula_error *err) {
  size_t done = 0;
  while (done < size) {
    size_t most = size - done < MOST_AT_ONCE ? size - done : MOST_AT_ONCE;
    ssize_t n = pread(fd, (char *)data + done, most, offset + (int64_t)done);
    atomic_fetch_add_explicit(&counts->reads, 1, memory_order_relaxed);
    if (n < 0 && tegula__io_retry(fd, errno, POLLIN)) continue;
    if (n < 0) return tegula__io_read_failed(errno, path, offset + (int64_t)done, err);
    atomic_fetch_add_explicit(&counts->bytes_read, n, memory_order_relaxed);
    done += (size_t)n;
    if (n == 0) break;
  }
  *got = done;
  return TEGULA_OK;
}

tegula_status tegula__io_read(int fd, const char *path, int64_t offset, void *data, size_t size,
                              tegula__io_counts *counts, tegula_error *err) {
  size_t got;
  FORWARD(tegula__io_read_some(fd, path, offset, data, size, &got, counts, err));
  return got == size ? TEGULA_OK
                     : tegula__io_ended(path, offset + (int64_t)got, (int64_t)(size - got), err);
}

tegula_status tegula__io_write(int fd, const char *path, int64_t offset, const void *data,
                               size_t size, tegula__io_counts *counts, tegula_error *err) {
  for (size_t done = 0; done < size;) {
    size_t most = size - done < MOST_AT_ONCE ? size - done : MOST_AT_ONCE;
    ssize_t n = pwrite(fd, (const char *)data + done, most, offset + (int64_t)done);
    atomic_fetch_add_explicit(&counts->writes, 1, memory_order_relaxed);
    if (n < 0 && tegula__io_retry(fd, errno, POLLOUT)) continue;
    if (n < 0) return tegula__io_write_failed(errno, path, offset + (int64_t)done, err);
    if (n == 0) return tegula__io_no_progress(path, offset + (int64_t)done, err);
    atomic_fetch_add_explicit(&counts->bytes_written, n, memory_order_relaxed);
    done += (size_t)n;
  }
  return TEGULA_OK;
}

int tegula__io_advance(struct iovec *vectors, int count, size_t n) {
  int gone = 0;
  while (gone < count && n >= vectors[gone].iov_len) n -= vectors[gone++].iov_len;
  if (gone < count) {
    vectors[gone].iov_base = (char *)vectors[gone].iov_base + n;
    vectors[gone].iov_len -= n;
  }
  return gone;
}

int64_t tegula__io_total(const struct iovec *vectors, int count) {
  int64_t sum = 0;
  for (int i = 0; i < count; i++) sum += (int64_t)vectors[i].iov_len;
  return sum;
}

tegula_status tegula__io_readv(int fd, const char *path, int64_t offset, struct iovec *vectors,
                               int count, tegula__io_counts *counts, tegula_error *err) {
  while (count > 0) {
    ssize_t n = preadv(fd, vectors, count, offset);
    atomic_fetch_add_explicit(&counts->reads, 1, memory_order_relaxed);
    if (n < 0 && tegula__io_retry(fd, errno, POLLIN)) continue;
    if (n < 0) return tegula__io_read_failed(errno, path, offset, err);
    if (n == 0) return tegula__io_ended(path, offset, tegula__io_total(vectors, count), err);
    atomic_fetch_add_explicit(&counts->bytes_read, n, memory_order_relaxed);
    offset += n;
    int gone = tegula__io_advance(vectors, count, (size_t)n);
    vectors += gone;
    count -= gone;
  }
  return TEGULA_OK;
}

tegula_status tegula__io_writev(int fd, const char *path, int64_t offset, struct iovec *vectors,
                                int count, tegula__io_counts *counts, tegula_error *err) {
  while (count > 0) {
    ssize_t n = pwritev(fd, vectors, count, offset);
    atomic_fetch_add_explicit(&counts->writes, 1, memory_order_relaxed);
    if (n < 0 && tegula__io_retry(fd, errno, POLLOUT)) continue;
    if (n < 0) return tegula__io_write_failed(errno, path, offset, err);
    if (n == 0) return tegula__io_no_progress(path, offset, err);
    atomic_fetch_add_explicit(&counts->bytes_written, n, memory_order_relaxed);
    offset += n;
    int gone = tegula__io_advance(vectors, count, (size_t)n);
    vectors += gone;
    count -= gone;
  }
  return TEGULA_OK;
}

tegula_status tegula__reference_move(const tegula__io_file *file, int64_t offset,
                                     struct iovec *vectors, int count, tegula_error *err) {
  if (count == 1) { /* the plain call is a little cheaper, and the common case */
    void *data = vectors[0].iov_base;
    size_t size = vectors[0].iov_len;
    return file->writing
               ? tegula__io_write(file->fd, file->path, offset, data, size, file->counts, err)
               : tegula__io_read(file->fd, file->path, offset, data, size, file->counts, err);
  }
  return file->writing
             ? tegula__io_writev(file->fd, file->path, offset, vectors, count, file->counts, err)
             : tegula__io_readv(file->fd, file->path, offset, vectors, count, file->counts, err);
}
