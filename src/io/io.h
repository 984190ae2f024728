/* io: how bytes come off and onto storage. The only folder that calls the read and write system
 * calls.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A file set is the files of one manifest with their open handles; the handle cache of a context
 * bounds how many are open at once over all sets. Loops end only when all bytes are there (short
 * transfers, EINTR, EAGAIN); an end of file before that is SHORT_FILE.
 *
 * Begin reading at transfer.c. handles.c opens files and keeps them open. transport.c chooses the
 * way of bytes (uring.c, direct_io.c). folders.c and unchanged.c prove that files are still those
 * that were described. The folder includes base. */
#ifndef TEGULA_IO_IO_H
#define TEGULA_IO_IO_H

#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/base.h"

/* Counted by all threads of an operation. */
typedef struct tegula__io_counts {
  _Atomic int64_t opens, stats, reads, writes, bytes_read, bytes_written;
} tegula__io_counts;

/* ---- files that are described together ---- */

/* Where the files of one description lie: see folders.c. Any threads may open files; the looks at
 * the end are those of one thread. */
typedef struct tegula__folders tegula__folders;
tegula_status tegula__folders_create(tegula__folders **out, tegula_error *err);
void tegula__folders_destroy(tegula__folders *folders);
/* open(2) and stat(2), relative to the folder of the file; and a descriptor with which the folder
 * `path` is listed. NULL: plain ones. */
int tegula__folders_open(tegula__folders *folders, const char *path, int flags);
int tegula__folders_stat(tegula__folders *folders, const char *path, struct stat *out);
int tegula__folders_scan(tegula__folders *folders, const char *path);
/* Notes a file that was opened (os_errno 0), or why it could not be; those whose stamps the caller
 * keeps need no note. NULL: nothing. */
tegula_status tegula__folders_note(tegula__folders *folders, const char *path,
                                   const tegula__stamp *stamp, int os_errno, tegula_error *err);
/* Was anything opened or noted? */
bool tegula__folders_used(const tegula__folders *folders);
/* Do all folders have the times that they had when they were opened? */
bool tegula__folders_untouched(const tegula__folders *folders);
/* Do these times prove that no name in them leads to another file than before? Else the files are
 * to be looked at: */
bool tegula__folders_certain(const tegula__folders *folders);
/* CHANGED: the name leads to another file, or that is written to. */
tegula_status tegula__folders_check_file(tegula__folders *folders, const char *path,
                                         const tegula__stamp *stamp, tegula_error *err);
tegula_status tegula__folders_check_notes(tegula__folders *folders, tegula_error *err);
/* CHANGED: the names of several folders lead to others than those from which files were opened. */
tegula_status tegula__folders_check_names(const tegula__folders *folders, tegula_error *err);

/* ---- one transfer ---- */

/* All of [offset, offset + size) of the file; `path` is for messages. */
tegula_status tegula__io_read(int fd, const char *path, int64_t offset, void *data, size_t size,
                              tegula__io_counts *counts, tegula_error *err);
tegula_status tegula__io_write(int fd, const char *path, int64_t offset, const void *data,
                               size_t size, tegula__io_counts *counts, tegula_error *err);
/* At most `size` bytes from `offset`, fewer only at the end of the file. */
tegula_status tegula__io_read_some(int fd, const char *path, int64_t offset, void *data,
                                   size_t size, size_t *got, tegula__io_counts *counts,
                                   tegula_error *err);
/* Scatter and gather: the vectors one after the other from `offset`. At most TEGULA__IO_VECTORS;
 * the vectors are changed. */
#define TEGULA__IO_VECTORS 1024
tegula_status tegula__io_readv(int fd, const char *path, int64_t offset, struct iovec *vectors,
                               int count, tegula__io_counts *counts, tegula_error *err);
tegula_status tegula__io_writev(int fd, const char *path, int64_t offset, struct iovec *vectors,
                                int count, tegula__io_counts *counts, tegula_error *err);

/* All of a regular file of at most `maximum` bytes, in new memory. NOT_FOUND when there is none.
 * `folders` may be NULL; what was found is noted there. */
tegula_status tegula__io_read_whole(tegula__folders *folders, const char *path, int64_t maximum,
                                    char **out, size_t *size, tegula__io_counts *counts,
                                    tegula_error *err);

/* ---- many transfers of one file, by the fastest way there is ---- */

/* What one request moves: the vectors, one after the other from `offset`. The vectors are
 * changed. */
typedef struct tegula__request {
  int64_t offset;
  struct iovec *vectors;
  int count; /* at most TEGULA__IO_VECTORS */
} tegula__request;

typedef struct tegula__io_file {
  int fd;
  int64_t index;    /* tells the files of one job apart */
  const char *path; /* for messages */
  bool writing;
  /* writing: what is written starts on its way to the disk at once, for who waits for it in the
   * end */
  bool push;
  tegula__io_counts *counts;
  /* NULL: it has no records. Else requests count places without markers, which are compared or
   * written on the way: CORRUPT */
  const tegula__frame *frame;
} tegula__io_file;

/* Which way the bytes of a context go: "pread" is the reference and always there; "io_uring" keeps
 * many requests of one thread on their way; "direct" goes past the page cache. The last two may
 * decline, for good or for a file: the reference then does the work, and says why. "auto" starts
 * with the reference and takes io_uring for what waits for storage, as long as that is measured to
 * be faster. */
typedef struct tegula__transport tegula__transport;
/* `name` as above; NULL: auto. */
tegula_status tegula__transport_create(const char *name, tegula__transport **out,
                                       tegula_error *err);
/* All lanes are back. */
void tegula__transport_destroy(tegula__transport *transport);

/* Is a single read made by the reference? NULL: yes. */
bool tegula__transport_is_reference(const tegula__transport *transport);

/* What one worker of one job uses; not shared. Rings and aligned memory are made at the first use
 * and stay with the transport. */
typedef struct tegula__lane tegula__lane;
/* NULL: no memory, or no transport; a NULL lane is the reference. */
tegula__lane *tegula__transport_take(tegula__transport *transport);
void tegula__transport_give(tegula__transport *transport, tegula__lane *lane);

/* How many requests are worth collecting for one call of tegula__lane_move. */
#define TEGULA__IO_DEPTH 64
int tegula__lane_depth(const tegula__lane *lane);
/* Moves all requests, which are in ascending order of offsets. A failure is that of the lowest
 * offset. */
tegula_status tegula__lane_move(tegula__lane *lane, const tegula__io_file *file,
                                tegula__request *requests, int count, tegula_error *err);

/* How the bytes of a job went. `declined`: why the way that was wanted was not taken, NULL where it
 * was. Static texts. */
typedef struct tegula__io_use {
  const char *way; /* NULL: only the reference was ever wanted */
  int64_t way_bytes, reference_bytes;
  const char *declined;
} tegula__io_use;
tegula__io_use tegula__lane_use(const tegula__lane *lane);

/* Makes a new file of `size` bytes (its space is reserved where the file system can) that starts
 * with `header`. With `durable` and nothing behind the header it is on the disk when this returns.
 * `mode`: permissions, as open(2) takes them. */
tegula_status tegula__io_create(const char *path, int64_t size, const void *header,
                                size_t header_size, bool durable, unsigned mode,
                                tegula__io_counts *counts, tegula_error *err);

/* Has another open of the file an exclusive lock (flock(2)), as writers of HDF5 have? Asked by a
 * lock that is let go at once. Where the file system has no locks: false. */
bool tegula__io_locked(int fd);
/* A file that is made piece by piece: a new one, open for reading and writing, which the caller
 * closes with tegula__io_complete. */
tegula_status tegula__io_make(const char *path, unsigned mode, tegula__io_counts *counts, int *fd,
                              tegula_error *err);
/* To read and write what was made. */
tegula_status tegula__io_reopen(const char *path, tegula__io_counts *counts, int *fd,
                                tegula_error *err);
/* Asked before bytes are copied: is there room for so many, and for what comes later? */
typedef struct tegula__io_room {
  tegula_status (*ask)(void *state, int64_t bytes, tegula_error *err);
  void *state;
} tegula__io_room;
/* Makes it hold what the file `from` holds, at no cost where the file system can share blocks; asks
 * for room. *stamp is that of `from`; CHANGED when that was written to meanwhile, UNSUPPORTED when
 * somebody has locked it. */
tegula_status tegula__io_copy(const char *from, int fd, const char *path,
                              const tegula__io_room *room, tegula__io_counts *counts,
                              tegula__stamp *stamp, tegula_error *err);
/* Its length; space for the bytes from `from` on is reserved where the file system can: those
 * before have theirs. */
tegula_status tegula__io_resize(int fd, const char *path, int64_t from, int64_t size,
                                tegula_error *err);
/* Closes it in any case; with `durable` when it is on the disk. */
tegula_status tegula__io_complete(int fd, const char *path, bool durable, tegula_error *err);
/* Gives back the memory in which the system keeps these bytes of a file, which stay as they are:
 * whoever reads them next waits for the disk. Only if all of them are on the disk, else the system
 * would begin to write them; best effort. `size` is above 0. */
void tegula__io_let_go(const char *path, int64_t offset, int64_t size, tegula__io_counts *counts);
/* Is some of it in memory, and all of that on the disk? False where the system does not say (Linux
 * before 6.5). */
bool tegula__io_cached_clean(int fd, int64_t offset, int64_t size);
/* The first bytes of a file: at most `size`. */
tegula_status tegula__io_read_head(const char *path, void *out, size_t size, size_t *got,
                                   tegula__io_counts *counts, tegula_error *err);
/* The stamp of the file that has the name now. */
tegula_status tegula__io_stamp(const char *path, tegula__stamp *stamp, tegula_error *err);
/* Is the file at `path` (still) the one with that stamp? CHANGED. */
tegula_status tegula__io_check(const char *path, const tegula__stamp *stamp, tegula_error *err);

/* ---- handle cache ---- */

/* The path as seen from the root, whatever folder the process goes into later; NULL on lack of
 * memory. To be freed. */
char *tegula__io_rooted(const char *path);

typedef struct tegula__handles tegula__handles;
/* capacity 0: min(1024, RLIMIT_NOFILE / 2 - open ones), at least 4. */
tegula_status tegula__handles_create(int32_t capacity, tegula__handles **out, tegula_error *err);
/* For ranks, whose file system may be of a network: a file to be written that is not there, and one
 * whose handle is stale, is opened again for so many seconds. Before anything is opened. */
void tegula__handles_wait_for_others(tegula__handles *handles, double seconds);
void tegula__handles_destroy(tegula__handles *handles);

typedef struct tegula__file_set tegula__file_set;
/* `files` is borrowed. For reading: their stamps are noted at the first open. For writing: the
 * files exist already. Relative names stay those of the folder in which the process is now. */
tegula_status tegula__file_set_create(tegula__handles *handles, tegula__file *files, int64_t count,
                                      bool writing, tegula__file_set **out, tegula_error *err);
/* Nothing may be pinned. */
void tegula__file_set_destroy(tegula__file_set *set);
/* Opens by way of these folders from now on; NULL: by paths. Before the set is shared. */
void tegula__file_set_enter(tegula__file_set *set, tegula__folders *folders);
/* Points the set at another table with the same files (after a join has moved it). */
void tegula__file_set_move(tegula__file_set *set, tegula__file *files);

/* The stamps in the table are of files that were open, but for those that are recorded: the first
 * open compares them. Before the set is shared. */
void tegula__file_set_stamped(tegula__file_set *set);
/* Notes the stamp of file `index` by its name, without opening it; the first open compares it.
 * Before the set is shared. */
tegula_status tegula__file_set_stat(tegula__file_set *set, int64_t index, tegula__io_counts *counts,
                                    tegula_error *err);
/* Opens file `index` if it is not open, and pins it until release; several threads may hold pins.
 * Of a file that is read, the first open notes the stamp (and compares what was recorded of it
 * before) and each later one compares it: TEGULA_CHANGED. */
tegula_status tegula__file_set_acquire(tegula__file_set *set, int64_t index,
                                       tegula__io_counts *counts, int *fd, tegula_error *err);
void tegula__file_set_release(tegula__file_set *set, int64_t index);
/* Of a set that is read: is the file still there under its name, can it be opened, and is it the
 * one that was described? Looks at what the name leads to now, also when the set has the file
 * open. */
tegula_status tegula__file_set_check(const tegula__file_set *set, int64_t index,
                                     tegula__io_counts *counts, tegula_error *err);
/* Does the name still lead to the file with that stamp? CHANGED. */
tegula_status tegula__io_unchanged(const char *path, const tegula__stamp *stamp,
                                   tegula__io_counts *counts, tegula_error *err);
/* After the last transfer of a pinned file. Read: compares the stamp again, TEGULA_CHANGED says
 * what changed. Written: with `durable`, waits until the data is on the disk. */
tegula_status tegula__file_set_finish(tegula__file_set *set, int64_t index, int fd, bool durable,
                                      tegula__io_counts *counts, tegula_error *err);

#endif
