/* Inside io: what a backend is, and the parts of the reference that backends share.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A backend may decline at any time: when it starts, for a file, or for one request. Whatever it
 * declines goes through the reference (transfer.c), so that messages and the handling of short
 * transfers are the same everywhere. */
#ifndef TEGULA_IO_IO_PRIV_H
#define TEGULA_IO_IO_PRIV_H

#include <sys/stat.h>

#include "io/io.h"

typedef struct tegula__backend {
  const char *name;
  /* Makes the state of one worker: NULL, or why it cannot be had here (static text). */
  const char *(*start)(void **state);
  /* Moves all requests; adds to use->way_bytes what it moved itself, to use->reference_bytes the
   * rest, and says in use->declined why. */
  tegula_status (*move)(void *state, const tegula__io_file *file, tegula__request *requests,
                        int count, tegula__io_use *use, tegula_error *err);
  /* The job is over: forgets its files. */
  void (*rest)(void *state);
  void (*stop)(void *state);
} tegula__backend;

/* stamps.c */
tegula__stamp tegula__io_stamp_of(const struct stat *info);
/* Waits until each later change gives a file or folder other times than these. False where another
 * machine's clock is too far ahead. */
bool tegula__io_wait(const tegula__stamp *stamp);
/* Before the first read of an open file: from now on, what is written to it gives it other times
 * than `stamp`, or is there already. */
void tegula__io_settle(int fd, const tegula__stamp *stamp);

extern const tegula__backend tegula__uring_backend;
extern const tegula__backend tegula__direct_backend;

/* Why io_uring_setup failed with this errno, as static text. */
const char *tegula__uring_reason(int os_errno);

/* One request through the reference (transfer.c). */
tegula_status tegula__reference_move(const tegula__io_file *file, int64_t offset,
                                     struct iovec *vectors, int count, tegula_error *err);

/* records.c: one request of a file of records, through the reference. */
tegula_status tegula__records_move(const tegula__io_file *file, tegula__request *request,
                                   tegula_error *err);

/* Should a failed call be made again? Waits where it is worth it. */
bool tegula__io_retry(int fd, int os_errno, short events);
tegula_status tegula__io_read_failed(int os_errno, const char *path, int64_t offset,
                                     tegula_error *err);
tegula_status tegula__io_write_failed(int os_errno, const char *path, int64_t offset,
                                      tegula_error *err);
/* The file ended before all bytes were there. */
tegula_status tegula__io_ended(const char *path, int64_t offset, int64_t missing,
                               tegula_error *err);
/* A write that took nothing and gave no reason. */
tegula_status tegula__io_no_progress(const char *path, int64_t offset, tegula_error *err);
/* Drops `n` transferred bytes from the front; returns how many vectors are gone. */
int tegula__io_advance(struct iovec *vectors, int count, size_t n);
int64_t tegula__io_total(const struct iovec *vectors, int count);

tegula_status tegula__stamp_regular(const struct stat *info, const char *path, tegula__stamp *out,
                                    tegula_error *err);

/* `fd`: CLOSED for what the name leads to. */
tegula_status tegula__stamp_read(int fd, const char *path, tegula__io_counts *counts,
                                 tegula__stamp *out, tegula_error *err);

tegula_status tegula__stamp_compare(const char *path, const tegula__stamp *was,
                                    const tegula__stamp *is, tegula_error *err);

/* The first open of a file that a manifest speaks of. Only what was not recorded is noted: the rest
 * may be read by others meanwhile. */
tegula_status tegula__stamp_compare_recorded(tegula__file *file, const tegula__stamp *is,
                                             tegula_error *err);

#endif
