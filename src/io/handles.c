/* The handle cache: at most `capacity` files open over all sets of a context, least recently used
 * closed first, pinned ones never.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * One lock guards the lists; open and fstat happen outside of it. A handle that is being opened is
 * marked, and others who want it wait. The first pin and the last are set and taken under the lock;
 * those in between, of threads that read one file side by side, are not. When every handle is
 * pinned a new one goes above the capacity rather than deadlock: at most one per running thread.
 * Where the system has no descriptors left, one of ours is closed, or waited for, before it is an
 * error. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io/io_priv.h"

enum { CLOSED = -1, OPENING = -2 };

/* tries, a millisecond apart, for a descriptor when none of ours can be closed */
#define PATIENCE 20

#define LONGEST_WAIT 4 /* seconds for one of ours to be let go */

typedef struct handle {
  int fd;               /* CLOSED, OPENING or a descriptor */
  _Atomic int32_t pins; /* above 0 the descriptor stays what it is */
  bool stamped;
  bool settled;                 /* it was open: a write since then shows in its times */
  struct handle *newer, *older; /* the list of open handles without a pin */
} handle;

struct tegula__handles {
  pthread_mutex_t lock;
  pthread_cond_t changed; /* a handle was opened, or its last pin fell */
  int64_t capacity;
  int64_t open;     /* being opened included */
  int64_t starving; /* of these, those that wait for a descriptor */
  handle *newest, *oldest;
  double patience;      /* seconds in which another machine's file comes to light */
  _Atomic bool touches; /* O_NOATIME was refused once: not tried again */
};

struct tegula__file_set {
  tegula__handles *handles;
  tegula__file *files;
  int64_t count;
  bool writing;
  char *folder;             /* where relative names are seen from; NULL: there are none */
  tegula__folders *folders; /* by way of which files are opened; NULL: by their paths */
  handle *items;
};

/* Descriptors in use. */
static int64_t count_open(void) {
  DIR *stream = opendir("/proc/self/fd");
  int64_t count = 0;
  if (stream == NULL) { /* no /proc: low numbers are given out first */
    for (int fd = 0; fd < 256; fd++) count += fcntl(fd, F_GETFD) >= 0;
    return count;
  }
  while (readdir(stream) != NULL) count++;
  closedir(stream);
  return count - 3; /* ".", ".." and the stream's own */
}

static int64_t default_capacity(void) {
  struct rlimit limit;
  int64_t most = 1024;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    most = tegula__min(most, (int64_t)(limit.rlim_cur / 2) - count_open());
  return tegula__max(4, most);
}

tegula_status tegula__handles_create(int32_t capacity, tegula__handles **out, tegula_error *err) {
  tegula__handles *handles = calloc(1, sizeof *handles);
  if (handles == NULL) return tegula__out_of_memory(err, sizeof *handles);
  handles->capacity = capacity > 0 ? capacity : default_capacity();
  pthread_mutex_init(&handles->lock, NULL);
  pthread_cond_init(&handles->changed, NULL);
  *out = handles;
  return TEGULA_OK;
}

void tegula__handles_wait_for_others(tegula__handles *handles, double seconds) {
  handles->patience = seconds;
}

void tegula__handles_destroy(tegula__handles *handles) {
  if (handles == NULL) return;
  pthread_mutex_destroy(&handles->lock);
  pthread_cond_destroy(&handles->changed);
  free(handles);
}

static void list_push(tegula__handles *handles, handle *item) {
  item->newer = NULL;
  item->older = handles->newest;
  if (handles->newest != NULL) handles->newest->newer = item;
  handles->newest = item;
  if (handles->oldest == NULL) handles->oldest = item;
}

static void list_remove(tegula__handles *handles, handle *item) {
  *(item->newer != NULL ? &item->newer->older : &handles->newest) = item->older;
  *(item->older != NULL ? &item->older->newer : &handles->oldest) = item->newer;
  item->newer = item->older = NULL;
}

static bool has_relative(const tegula__file *files, int64_t count) {
  for (int64_t i = 0; i < count; i++) /* NULL: the name comes later */
    if (files[i].path == NULL || files[i].path[0] != '/') return true;
  return false;
}

tegula_status tegula__file_set_create(tegula__handles *handles, tegula__file *files, int64_t count,
                                      bool writing, tegula__file_set **out, tegula_error *err) {
  tegula__file_set *set = calloc(1, sizeof *set);
  handle *items = tegula__realloc_array(NULL, count, sizeof *items);
  if (set == NULL || items == NULL) {
    free(set);
    free(items);
    return tegula__out_of_memory(err, count * (int64_t)sizeof *items);
  }
  for (int64_t i = 0; i < count; i++) items[i] = (handle){.fd = CLOSED, .stamped = false};
  *set = (tegula__file_set){
      .handles = handles, .files = files, .count = count, .writing = writing, .items = items};
  if (has_relative(files, count) && (set->folder = tegula__io_rooted("")) == NULL) {
    tegula__file_set_destroy(set);
    return tegula__out_of_memory(err, 1);
  }
  *out = set;
  return TEGULA_OK;
}

/* The name to open file `index` by; `room` is to be freed. The plain name where memory is short:
 * its stamp is compared in any case. */
static const char *name_of(const tegula__file_set *set, int64_t index, char **room) {
  const char *path = set->files[index].path;
  *room =
      set->folder != NULL && path[0] != '/' ? tegula__strprintf("%s%s", set->folder, path) : NULL;
  return *room != NULL ? *room : path;
}

void tegula__file_set_move(tegula__file_set *set, tegula__file *files) { set->files = files; }

void tegula__file_set_enter(tegula__file_set *set, tegula__folders *folders) {
  set->folders = folders;
}

void tegula__file_set_stamped(tegula__file_set *set) {
  for (int64_t i = 0; i < set->count; i++) set->items[i].stamped = !set->files[i].recorded;
}

void tegula__file_set_destroy(tegula__file_set *set) {
  if (set == NULL) return;
  tegula__handles *handles = set->handles;
  pthread_mutex_lock(&handles->lock);
  for (int64_t i = 0; i < set->count; i++) {
    if (set->items[i].fd < 0) continue;
    list_remove(handles, &set->items[i]);
    handles->open--;
    close(set->items[i].fd);
  }
  if (handles->starving > 0) pthread_cond_broadcast(&handles->changed);
  pthread_mutex_unlock(&handles->lock);
  free(set->folder);
  free(set->items);
  free(set);
}

static int open_once(const tegula__file_set *set, const char *path, int mode,
                     tegula__io_counts *counts) {
  int fd;
  do {
    atomic_fetch_add_explicit(&counts->opens, 1, memory_order_relaxed);
    fd = tegula__folders_open(set->folders, path, mode | O_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

/* Reading never waits for the other end of a fifo. Files to be written exist already: publish made
 * them. That a file was read is not written down where the system leaves that to us (files of one's
 * own, or a capability): a write to the inode for each file, on every rank. */
static int open_file(const tegula__file_set *set, const char *path, tegula__io_counts *counts) {
  tegula__handles *handles = set->handles;
  if (set->writing) return open_once(set, path, O_WRONLY, counts);
  bool quiet = !atomic_load_explicit(&handles->touches, memory_order_relaxed);
  int fd = open_once(set, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | (quiet ? O_NOATIME : 0), counts);
  if (fd >= 0 || !quiet || errno != EPERM) return fd;
  atomic_store_explicit(&handles->touches, true, memory_order_relaxed);
  return open_once(set, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, counts);
}

/* On a network file system: a name that another machine has just made or replaced may not be there
 * yet. */
static bool may_come(const tegula__file_set *set, int os_errno) {
  return os_errno == ESTALE || (set->writing && os_errno == ENOENT);
}

static int open_when_there(const tegula__file_set *set, const char *path,
                           tegula__io_counts *counts) {
  int fd = open_file(set, path, counts);
  if (fd >= 0 || !may_come(set, errno) || set->handles->patience <= 0) return fd;
  double until = tegula__now() + set->handles->patience;
  for (long pause = 1000000; fd < 0 && may_come(set, errno) && tegula__now() < until;
       pause = (long)tegula__min(2 * pause, 200000000)) {
    nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
    fd = open_file(set, path, counts);
  }
  return fd;
}

/* Takes the oldest unpinned handle out of the cache; returns its descriptor to be closed, or
 * CLOSED. Lock held. */
static int evict(tegula__handles *handles) {
  if (handles->oldest == NULL) return CLOSED;
  handle *victim = handles->oldest;
  list_remove(handles, victim);
  int fd = victim->fd;
  victim->fd = CLOSED;
  handles->open--;
  return fd;
}

/* Makes room after the system has run out of descriptors: closes one of ours that nobody uses, or
 * waits for one to be let go, but not for ever. False when there is none. */
static bool make_room(tegula__handles *handles) {
  pthread_mutex_lock(&handles->lock);
  handles->starving++;
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += LONGEST_WAIT;
  /* it may be this thread that holds them: descriptions keep files open while they open others */
  int late = 0;
  while (handles->oldest == NULL && handles->open > handles->starving && late == 0)
    late = pthread_cond_timedwait(&handles->changed, &handles->lock, &until);
  int surplus = evict(handles);
  handles->starving--;
  pthread_cond_broadcast(&handles->changed); /* the others that starve look again */
  pthread_mutex_unlock(&handles->lock);
  if (surplus >= 0) close(surplus);
  return surplus >= 0;
}

/* Opens, and makes room where the system has no descriptors left. That none of ours is open just
 * now does not mean that they are all taken by others: one may have been closed since. So a few
 * tries fail in a row before it is an error. */
static int open_with_room(const tegula__file_set *set, const char *path,
                          tegula__io_counts *counts) {
  for (int failures = 0;;) {
    int fd = open_when_there(set, path, counts);
    if (fd >= 0 || (errno != EMFILE && errno != ENFILE)) return fd;
    int failed = errno;
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    failures = make_room(set->handles) ? 0 : failures + 1;
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (failures > 0 && end.tv_sec - begin.tv_sec >= LONGEST_WAIT) failures = PATIENCE;
    if (failures == PATIENCE) {
      errno = failed;
      return -1;
    }
    if (failures > 0) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
}

static tegula_status open_failed(const tegula__file *file, int os_errno, tegula_error *err) {
  tegula_status status =
      tegula__fail_errno(err, os_errno, file->path, -1, "could not open \"%s\"", file->path);
  if (status == TEGULA_LIMIT_EXCEEDED)
    return tegula__hint(err, status, "raise the limit of open files (ulimit -n), or close some");
  if (!file->recorded || status != TEGULA_NOT_FOUND) return status;
  return tegula__hint(err, status,
                      "the manifest names it as seen from its own folder: move both together, or "
                      "make the manifest again");
}

static tegula_status open_and_check(const tegula__file_set *set, int64_t index,
                                    tegula__io_counts *counts, int *out, tegula_error *err) {
  tegula__file *file = &set->files[index];
  bool stamped = set->items[index].stamped;
  char *room;
  int fd = open_with_room(set, name_of(set, index, &room), counts), failed = errno;
  free(room);
  if (fd < 0) return open_failed(file, failed, err);
  if (set->writing) {
    *out = fd;
    return TEGULA_OK;
  }
  tegula__stamp stamp;
  tegula_status status = tegula__stamp_read(fd, file->path, counts, &stamp, err);
  if (status == TEGULA_OK && stamped)
    status = tegula__stamp_compare(file->path, &file->stamp, &stamp, err);
  if (status == TEGULA_OK && !stamped && file->recorded)
    status = tegula__stamp_compare_recorded(file, &stamp, err);
  if (status != TEGULA_OK) {
    close(fd);
    return status;
  }
  if (!stamped && !file->recorded) file->stamp = stamp; /* later opens found it equal */
  *out = fd;
  return TEGULA_OK;
}

tegula_status tegula__file_set_stat(tegula__file_set *set, int64_t index, tegula__io_counts *counts,
                                    tegula_error *err) {
  char *room;
  struct stat info;
  const char *path = set->files[index].path;
  atomic_fetch_add_explicit(&counts->stats, 1, memory_order_relaxed);
  bool there = tegula__folders_stat(set->folders, name_of(set, index, &room), &info) == 0;
  int os_errno = errno;
  free(room);
  if (!there) return tegula__fail_errno(err, os_errno, path, -1, "could not examine \"%s\"", path);
  FORWARD(tegula__stamp_regular(&info, path, &set->files[index].stamp, err));
  set->items[index].stamped = true;
  return TEGULA_OK;
}

/* Adds to the pins of a handle, `by` 1 or -1, where others hold it before and after. */
static bool pin_beside(handle *item, int32_t by) {
  int32_t pins = atomic_load(&item->pins);
  while (pins > 0 && pins + by > 0)
    if (atomic_compare_exchange_weak(&item->pins, &pins, pins + by)) return true;
  return false;
}

tegula_status tegula__file_set_acquire(tegula__file_set *set, int64_t index,
                                       tegula__io_counts *counts, int *fd, tegula_error *err) {
  tegula__handles *handles = set->handles;
  handle *item = &set->items[index];
  if (pin_beside(item, 1)) {
    *fd = item->fd;
    return TEGULA_OK;
  }
  pthread_mutex_lock(&handles->lock);
  while (item->fd == OPENING) pthread_cond_wait(&handles->changed, &handles->lock);
  if (item->fd >= 0) {
    if (atomic_fetch_add(&item->pins, 1) == 0) list_remove(handles, item);
    *fd = item->fd;
    pthread_mutex_unlock(&handles->lock);
    return TEGULA_OK;
  }
  int surplus = handles->open >= handles->capacity ? evict(handles) : CLOSED;
  item->fd = OPENING;
  handles->open++;
  pthread_mutex_unlock(&handles->lock);

  if (surplus >= 0) close(surplus);
  int opened = CLOSED;
  tegula_status status = open_and_check(set, index, counts, &opened, err);
  if (status == TEGULA_OK && !set->writing && !item->settled)
    tegula__io_settle(opened, &set->files[index].stamp);

  pthread_mutex_lock(&handles->lock);
  item->fd = opened;
  if (status == TEGULA_OK) {
    item->stamped = item->settled = true;
    atomic_store(&item->pins, 1);
    *fd = opened;
  } else {
    handles->open--;
  }
  pthread_cond_broadcast(&handles->changed);
  pthread_mutex_unlock(&handles->lock);
  return status;
}

tegula_status tegula__file_set_check(const tegula__file_set *set, int64_t index,
                                     tegula__io_counts *counts, tegula_error *err) {
  int fd;
  FORWARD(open_and_check(set, index, counts, &fd, err));
  close(fd);
  return TEGULA_OK;
}

void tegula__file_set_release(tegula__file_set *set, int64_t index) {
  tegula__handles *handles = set->handles;
  handle *item = &set->items[index];
  int surplus = CLOSED;
  if (pin_beside(item, -1)) return;
  pthread_mutex_lock(&handles->lock);
  if (atomic_fetch_sub(&item->pins, 1) == 1) {
    list_push(handles, item);
    if (handles->open > handles->capacity) surplus = evict(handles);
    if (handles->starving > 0) pthread_cond_broadcast(&handles->changed);
  }
  pthread_mutex_unlock(&handles->lock);
  if (surplus >= 0) close(surplus);
}

tegula_status tegula__file_set_finish(tegula__file_set *set, int64_t index, int fd, bool durable,
                                      tegula__io_counts *counts, tegula_error *err) {
  const tegula__file *file = &set->files[index];
  if (set->writing) {
    if (durable && fdatasync(fd) != 0)
      return tegula__fail_errno(err, errno, file->path, -1, "could not bring \"%s\" to the disk",
                                file->path);
    /* network file systems report late write errors when a descriptor is closed */
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy >= 0 && close(copy) != 0)
      return tegula__fail_errno(err, errno, file->path, -1, "could not write all of \"%s\"",
                                file->path);
    return TEGULA_OK;
  }
  tegula__stamp now;
  FORWARD(tegula__stamp_read(fd, file->path, counts, &now, err));
  return tegula__stamp_compare(file->path, &file->stamp, &now, err);
}
