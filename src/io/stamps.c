/* What tells one content of a file from another, and when it can be relied on.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A write sets the times of a file before it copies the bytes, and the clock of these times
 * advances in ticks of some milliseconds. Two looks that find the same times therefore prove
 * nothing in two cases: a write had begun before the first look, or a write began after it within
 * the same tick. Both are met before the first byte is read: by waiting until the tick is over, and
 * then for the lock that a write holds. */
#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "io/io_priv.h"

#define SECOND INT64_C(1000000000)
#define LONGEST_WAIT                                                                               \
  (SECOND + SECOND / 10)            /* longer only where another machine's clock is ahead of ours */
#define LONGEST_WRITE (60 * SECOND) /* one write(2) of 2 GiB to slow storage */

static int64_t nanoseconds(struct timespec time) {
  return (int64_t)time.tv_sec * SECOND + time.tv_nsec;
}

tegula__stamp tegula__io_stamp_of(const struct stat *info) {
  return (tegula__stamp){.size = info->st_size,
                         .mtime_ns = nanoseconds(info->st_mtim),
                         .ctime_ns = nanoseconds(info->st_ctim),
                         .inode = info->st_ino,
                         .device = info->st_dev};
}

static int64_t read_clock(struct timespec *resolution) {
  struct timespec now;
  clock_getres(CLOCK_REALTIME_COARSE, resolution);
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return nanoseconds(now);
}

/* Nanoseconds until the clock has passed these times. */
static int64_t time_left(const tegula__stamp *stamp) {
  struct timespec tick;
  int64_t newest = stamp->ctime_ns; /* no program can set it back */
  int64_t now = read_clock(&tick);
  if (newest % SECOND == 0)
    newest += 2 * SECOND - 1; /* kept in whole seconds, or in pairs of them */
  return now > newest ? 0 : newest - now + nanoseconds(tick);
}

bool tegula__io_wait(const tegula__stamp *stamp) {
  for (;;) {
    int64_t left = time_left(stamp);
    if (left == 0 || left > LONGEST_WAIT) return left == 0;
    nanosleep(&(struct timespec){.tv_sec = left / SECOND, .tv_nsec = left % SECOND}, NULL);
  }
}

void tegula__io_settle(int fd, const tegula__stamp *stamp) {
  struct timespec tick;
  (void)tegula__io_wait(stamp);
  int64_t age = read_clock(&tick) - stamp->mtime_ns;
  /* The answer does not matter: file systems give it under the lock under which they write. */
  if (age < LONGEST_WRITE) (void)lseek(fd, stamp->size, SEEK_HOLE);
}
