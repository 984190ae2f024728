/* Direct I/O: past the page cache, for data that is read once and is larger than memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The system wants offsets, lengths and addresses that are multiples of the block size; those of
 * arrays are not. Where offset and address agree modulo UNIT the bytes go straight into their
 * place, else through aligned memory of this worker:
 *
 *   file     |....[##|#######|###]....|   read: the blocks around it; the wanted part is copied
 *            0      4096    8192          write: whole blocks only; the ends through the page cache
 *
 * A second descriptor, made from the first one, leaves the other users of the file alone. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/io_priv.h"

#define UNIT ((size_t)4096)
#define BOUNCE ((size_t)512 << 10)
#define MOST_AT_ONCE ((size_t)1 << 30)

enum { CLOSED = -1, REFUSED = -2 };

typedef struct direct {
  char *bounce; /* BOUNCE bytes, aligned to UNIT */
  int fd;       /* of file `index`: a descriptor, CLOSED, or REFUSED */
  int64_t index;
} direct;

/* What is left of a request. */
typedef struct rest_of_request {
  int64_t offset;
  size_t size;
  struct iovec *vectors;
  int count;
} rest_of_request;

static void forget_file(void *state) {
  direct *d = state;
  if (d->fd >= 0) close(d->fd);
  d->fd = CLOSED;
}

static void stop(void *state) {
  direct *d = state;
  forget_file(d);
  free(d->bounce);
  free(d);
}

static const char *start(void **state) {
  direct *d = calloc(1, sizeof *d);
  if (d == NULL) return "no memory for direct i/o";
  d->fd = CLOSED;
  d->bounce = aligned_alloc(UNIT, BOUNCE);
  if (d->bounce == NULL) {
    free(d);
    return "no memory for direct i/o";
  }
  *state = d;
  return NULL;
}

static const char *reason_of(int os_errno) {
  if (os_errno == EINVAL || os_errno == EOPNOTSUPP) return "the file system has no direct i/o";
  if (os_errno == ENOENT) return "direct i/o needs /proc";
  if (os_errno == EMFILE || os_errno == ENFILE) return "too many open files for direct i/o";
  return "the file could not be opened for direct i/o";
}

/* The second descriptor of the file; false where there is none. */
static bool open_again(direct *d, const tegula__io_file *file, tegula__io_use *use) {
  if (d->fd != CLOSED && d->index == file->index) return d->fd >= 0;
  char name[32];
  forget_file(d);
  snprintf(name, sizeof name, "/proc/self/fd/%d", file->fd);
  atomic_fetch_add_explicit(&file->counts->opens, 1, memory_order_relaxed);
  int fd = open(name, (file->writing ? O_WRONLY : O_RDONLY | O_NONBLOCK) | O_DIRECT | O_CLOEXEC);
  if (fd < 0) use->declined = reason_of(errno);
  d->fd = fd < 0 ? REFUSED : fd;
  d->index = file->index;
  return fd >= 0;
}

/* Copies `size` bytes between dense memory and the front of the vectors. */
static void copy_vectors(struct iovec *vectors, char *dense, size_t size, bool into_vectors) {
  for (int i = 0; size > 0; i++) {
    size_t part = vectors[i].iov_len < size ? vectors[i].iov_len : size;
    if (part == 0) continue;
    if (into_vectors)
      memcpy(vectors[i].iov_base, dense, part);
    else
      memcpy(dense, vectors[i].iov_base, part);
    dense += part;
    size -= part;
  }
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* Whole blocks at the front that need no copy: 0 where offset and address do not agree. */
static size_t straight(const struct iovec *first, size_t misplaced) {
  if (misplaced != 0 || (uintptr_t)first->iov_base % UNIT != 0) return 0;
  return smaller(first->iov_len, MOST_AT_ONCE) / UNIT * UNIT;
}

static ssize_t read_front(const direct *d, const rest_of_request *rest) {
  size_t before = (size_t)rest->offset % UNIT, blocks = straight(&rest->vectors[0], before);
  if (blocks > 0) return pread(d->fd, rest->vectors[0].iov_base, blocks, rest->offset);
  size_t window = smaller(BOUNCE, (before + rest->size + UNIT - 1) / UNIT * UNIT),
         to_block = UNIT - before;
  bool agrees = ((uintptr_t)rest->vectors[0].iov_base + to_block) % UNIT == 0 &&
                rest->vectors[0].iov_len >= to_block + UNIT;
  if (before > 0 && agrees) window = UNIT; /* the next block can go straight */
  ssize_t n = pread(d->fd, d->bounce, window, rest->offset - (int64_t)before);
  if (n <= (ssize_t)before) return n < 0 ? n : 0; /* no wanted byte among them */
  size_t got = smaller((size_t)n - before, rest->size);
  copy_vectors(rest->vectors, d->bounce + before, got, true);
  return (ssize_t)got;
}

static ssize_t write_front(const direct *d, const tegula__io_file *file,
                           const rest_of_request *rest) {
  size_t before = (size_t)rest->offset % UNIT, blocks = straight(&rest->vectors[0], before);
  if (blocks > 0) return pwrite(d->fd, rest->vectors[0].iov_base, blocks, rest->offset);
  bool is_end = before > 0 || rest->size < UNIT;
  size_t size =
      is_end ? smaller(rest->size, UNIT - before) : smaller(rest->size, BOUNCE) / UNIT * UNIT;
  copy_vectors(rest->vectors, d->bounce, size, false);
  return pwrite(is_end ? file->fd : d->fd, d->bounce, size, rest->offset);
}

static void count(const tegula__io_file *file, ssize_t n) {
  atomic_fetch_add_explicit(file->writing ? &file->counts->writes : &file->counts->reads, 1,
                            memory_order_relaxed);
  if (n > 0)
    atomic_fetch_add_explicit(file->writing ? &file->counts->bytes_written
                                            : &file->counts->bytes_read,
                              n, memory_order_relaxed);
}

static tegula_status move_request(direct *d, const tegula__io_file *file, rest_of_request *rest,
                                  tegula__io_use *use, tegula_error *err) {
  while (rest->size > 0 && d->fd >= 0) {
    while (rest->vectors[0].iov_len == 0) rest->vectors++, rest->count--;
    ssize_t n = file->writing ? write_front(d, file, rest) : read_front(d, rest);
    int os_errno = errno;
    count(file, n);
    if (n < 0 && os_errno == EINVAL) {
      forget_file(d);
      d->fd = REFUSED;
      use->declined = "the file system refuses direct i/o in blocks of 4096 bytes";
      break;
    }
    if (n < 0 && tegula__io_retry(file->fd, os_errno, file->writing ? POLLOUT : POLLIN)) continue;
    if (n < 0)
      return file->writing ? tegula__io_write_failed(os_errno, file->path, rest->offset, err)
                           : tegula__io_read_failed(os_errno, file->path, rest->offset, err);
    if (n == 0 && file->writing) return tegula__io_no_progress(file->path, rest->offset, err);
    /* the end of the file, or an answer too short to reach a wanted byte: the reference tells
     * which */
    if (n == 0) break;
    int gone = tegula__io_advance(rest->vectors, rest->count, (size_t)n);
    *rest = (rest_of_request){rest->offset + n, rest->size - (size_t)n, rest->vectors + gone,
                              rest->count - gone};
    use->way_bytes += n;
  }
  if (rest->size == 0) return TEGULA_OK;
  int64_t left = (int64_t)rest->size;
  FORWARD(tegula__reference_move(file, rest->offset, rest->vectors, rest->count, err));
  use->reference_bytes += left;
  return TEGULA_OK;
}

static tegula_status move(void *state, const tegula__io_file *file, tegula__request *requests,
                          int request_count, tegula__io_use *use, tegula_error *err) {
  direct *d = state;
  open_again(d, file, use);
  for (int i = 0; i < request_count; i++) {
    const tegula__request *request = &requests[i];
    int64_t size = tegula__io_total(request->vectors, request->count);
    rest_of_request rest = {request->offset, (size_t)size, request->vectors, request->count};
    FORWARD(move_request(d, file, &rest, use, err));
  }
  return TEGULA_OK;
}

const tegula__backend tegula__direct_backend = {
    .name = "direct", .start = start, .move = move, .rest = forget_file, .stop = stop};
