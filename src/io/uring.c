/* io_uring: many requests of one thread on their way at once.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Up to TEGULA__IO_DEPTH requests are with the kernel; each that ends makes room for the next. What
 * ends short or is refused is finished by the reference. After a failure nothing new is handed in,
 * but everything that is with the kernel is waited for: it writes into the caller's memory.
 * Requests go in by ascending offset, so the lowest failure is always among those that were handed
 * in. */
#include "io/io_priv.h"

#include <errno.h>

const char *tegula__uring_reason(int os_errno) {
  switch (os_errno) {
    case ENOSYS:
      return "this kernel has no io_uring";
    case EPERM:
    case EACCES:
      return "io_uring is not allowed here (kernel.io_uring_disabled, or a seccomp filter as "
             "containers have)";
    case ENOMEM:
      return "no memory for an io_uring (with old kernels: ulimit -l)";
    case EMFILE:
    case ENFILE:
      return "too many open files for an io_uring";
    case EINVAL:
      return "the io_uring of this kernel is too old";
    default:
      return "io_uring could not be set up";
  }
}

#ifdef TEGULA_HAVE_URING

#include <liburing.h>
#include <stdlib.h>

/* Longer requests are cut, so that one request from one thread still keeps the storage busy. */
#define PIECE ((size_t)1 << 20)

/* One entry of the ring. */
typedef struct entry {
  struct entry *next; /* of the free ones */
  int64_t sequence;   /* -1: free */
  int64_t offset;
  size_t size;
  struct iovec one; /* where a piece of a longer vector goes */
  struct iovec *vectors;
  int count;
} entry;

typedef struct ring {
  struct io_uring uring;
  entry entries[TEGULA__IO_DEPTH];
  entry *free;
  int busy;           /* entries in use */
  const char *broken; /* why it is never used again: the kernel took no more entries */
  bool refused;       /* file `refused_index` does not take requests */
  int64_t refused_index;
} ring;

/* The requests of one call. */
typedef struct group {
  ring *r;
  const tegula__io_file *file;
  tegula__request *requests;
  int count, next; /* requests handed in */
  size_t done;     /* bytes of the next one that are handed in */
  int64_t sequence;
  tegula__io_use *use;
  tegula_status status; /* of the failure with the lowest sequence */
  int64_t failed_at;
  tegula_error *err;
} group;

static void stop(void *state) {
  ring *r = state;
  io_uring_queue_exit(&r->uring);
  free(r);
}

static void rest(void *state) { ((ring *)state)->refused = false; }

static const char *start(void **state) {
  ring *r = calloc(1, sizeof *r);
  if (r == NULL) return tegula__uring_reason(ENOMEM);
  int failed = io_uring_queue_init(TEGULA__IO_DEPTH, &r->uring, 0);
  if (failed < 0) {
    free(r);
    return tegula__uring_reason(-failed);
  }
  for (int i = 0; i < TEGULA__IO_DEPTH; i++) {
    r->entries[i].sequence = -1;
    r->entries[i].next = r->free;
    r->free = &r->entries[i];
  }
  *state = r;
  return NULL;
}

/* The next piece of the requests. */
static void take_piece(group *g, entry *e) {
  tegula__request *request = &g->requests[g->next];
  e->sequence = g->sequence++;
  e->offset = request->offset + (int64_t)g->done;
  e->vectors = request->vectors;
  e->count = request->count;
  if (request->count == 1) {
    size_t left = request->vectors[0].iov_len - g->done;
    e->one =
        (struct iovec){(char *)request->vectors[0].iov_base + g->done, left < PIECE ? left : PIECE};
    e->vectors = &e->one;
    g->done += e->one.iov_len;
    e->size = e->one.iov_len;
    if (left > PIECE) return;
  } else {
    e->size = (size_t)tegula__io_total(request->vectors, request->count);
  }
  g->next++;
  g->done = 0;
}

static void hand_in(struct io_uring_sqe *sqe, const group *g, entry *e) {
  int fd = g->file->fd;
  unsigned count = (unsigned)e->count;
  if (count == 1 && g->file->writing)
    io_uring_prep_write(sqe, fd, e->one.iov_base, (unsigned)e->size, (uint64_t)e->offset);
  else if (count == 1)
    io_uring_prep_read(sqe, fd, e->one.iov_base, (unsigned)e->size, (uint64_t)e->offset);
  else if (g->file->writing)
    io_uring_prep_writev(sqe, fd, e->vectors, count, (uint64_t)e->offset);
  else
    io_uring_prep_readv(sqe, fd, e->vectors, count, (uint64_t)e->offset);
  io_uring_sqe_set_data(sqe, e);
}

/* Fills the ring; nothing new after a failure. */
static void fill(group *g) {
  ring *r = g->r;
  while (r->free != NULL && g->next < g->count && g->status == TEGULA_OK) {
    struct io_uring_sqe *sqe = io_uring_get_sqe(&r->uring);
    if (sqe == NULL) return;
    entry *e = r->free;
    r->free = e->next;
    r->busy++;
    take_piece(g, e);
    hand_in(sqe, g, e);
  }
}

static void note_failure(group *g, int64_t sequence, tegula_status status,
                         const tegula_error *error) {
  if (g->status != TEGULA_OK && g->failed_at < sequence) return;
  g->status = status;
  g->failed_at = sequence;
  if (g->err != NULL) *g->err = *error;
}

static void give_back(group *g, entry *e) {
  e->sequence = -1;
  e->next = g->r->free;
  g->r->free = e;
  g->r->busy--;
}

/* The reference does what the ring left. */
static void finish_entry(group *g, entry *e) {
  tegula_error error;
  int64_t left = tegula__io_total(e->vectors, e->count);
  tegula__error_clear(&error);
  tegula_status status = tegula__reference_move(g->file, e->offset, e->vectors, e->count, &error);
  if (status != TEGULA_OK)
    note_failure(g, e->sequence, status, &error);
  else
    g->use->reference_bytes += left;
}

static void refuse(group *g) {
  g->r->refused = true;
  g->r->refused_index = g->file->index;
  g->use->declined = "the file system refuses requests from io_uring";
}

static void moved(group *g, entry *e, int bytes) {
  tegula__io_counts *counts = g->file->counts;
  atomic_fetch_add_explicit(g->file->writing ? &counts->bytes_written : &counts->bytes_read, bytes,
                            memory_order_relaxed);
  g->use->way_bytes += bytes;
  e->offset += bytes;
  int gone = tegula__io_advance(e->vectors, e->count, (size_t)bytes);
  e->vectors += gone;
  e->count -= gone;
}

/* One entry has ended with `result`: bytes, or an errno below zero. */
static void end_entry(group *g, entry *e, int result) {
  int os_errno = result < 0 ? -result : 0;
  bool refused = os_errno == EOPNOTSUPP || os_errno == EINVAL || os_errno == ENOSYS;
  bool again = os_errno == EINTR || os_errno == EAGAIN || os_errno == ECANCELED;
  tegula__io_counts *counts = g->file->counts;
  atomic_fetch_add_explicit(g->file->writing ? &counts->writes : &counts->reads, 1,
                            memory_order_relaxed);
  if (os_errno != 0 && !refused && !again) {
    tegula_error error;
    tegula__error_clear(&error);
    tegula_status status = g->file->writing
                               ? tegula__io_write_failed(os_errno, g->file->path, e->offset, &error)
                               : tegula__io_read_failed(os_errno, g->file->path, e->offset, &error);
    note_failure(g, e->sequence, status, &error);
  } else {
    if (refused) refuse(g);
    bool whole = result >= 0 && (size_t)result == e->size;
    if (result > 0) moved(g, e, result);
    if (!whole) finish_entry(g, e);
  }
  give_back(g, e);
}

static void reap(group *g) {
  struct io_uring_cqe *ends[TEGULA__IO_DEPTH];
  unsigned count = io_uring_peek_batch_cqe(&g->r->uring, ends, TEGULA__IO_DEPTH);
  for (unsigned i = 0; i < count; i++) end_entry(g, io_uring_cqe_get_data(ends[i]), ends[i]->res);
  io_uring_cq_advance(&g->r->uring, count);
}

/* The kernel takes nothing and has nothing: what lies in the ring goes through the reference, and
 * the ring is not used again. */
static void give_up(group *g, int os_errno) {
  g->r->broken = tegula__uring_reason(os_errno);
  for (int i = 0; i < TEGULA__IO_DEPTH; i++) {
    entry *e = &g->r->entries[i];
    if (e->sequence < 0) continue;
    finish_entry(g, e);
    give_back(g, e);
  }
}

/* The rest of the requests, by the reference. */
static void finish_group(group *g) {
  entry e;
  while (g->next < g->count && g->status == TEGULA_OK) {
    take_piece(g, &e);
    finish_entry(g, &e);
  }
}

static tegula_status move(void *state, const tegula__io_file *file, tegula__request *requests,
                          int count, tegula__io_use *use, tegula_error *err) {
  ring *r = state;
  group g = {.r = r, .file = file, .requests = requests, .count = count, .use = use, .err = err};
  for (;;) {
    bool usable = r->broken == NULL && !(r->refused && r->refused_index == file->index);
    if (usable) fill(&g);
    if (r->busy == 0) break;
    int result = io_uring_submit_and_wait(&r->uring, 1);
    bool stuck = result < 0 && result != -EINTR;
    struct io_uring_cqe *ignored;
    if (stuck && (int)io_uring_sq_ready(&r->uring) == r->busy)
      give_up(&g, -result);
    else if (stuck)
      io_uring_wait_cqe(&r->uring, &ignored);
    reap(&g);
  }
  if (r->broken != NULL) use->declined = r->broken;
  finish_group(&g);
  return g.status;
}

#else

static const char *start(void **state) {
  (void)state;
  return "built without io_uring (liburing)";
}

static tegula_status move(void *state, const tegula__io_file *file, tegula__request *requests,
                          int count, tegula__io_use *use, tegula_error *err) {
  (void)state, (void)file, (void)requests, (void)count, (void)use;
  return tegula__fail(err, TEGULA_INTERNAL, NULL, -1,
                      "io_uring was used without having been built");
}

static void rest(void *state) { (void)state; }
static void stop(void *state) { (void)state; }

#endif

const tegula__backend tegula__uring_backend = {
    .name = "io_uring", .start = start, .move = move, .rest = rest, .stop = stop};
