/* The benchmark program: tegula and the plain limit side by side in one process.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Uses the public header only. "The limit" is plain parallel pread of the same bytes into the same
 * kind of memory with the same number of threads; it knows all names, sizes and offsets beforehand.
 * Any failure ends the program: a benchmark has nothing to save. */
#ifndef TEGULA_BENCH_BENCH_H
#define TEGULA_BENCH_BENCH_H

#include <stddef.h>
#include <stdint.h>

#include <tegula/tegula.h>

/* ---- common.c ---- */

_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Ends the program with the error's message where status is not OK. */
void must(tegula_status status, const tegula_error *error);
void *must_allocate(size_t count, size_t size);
/* Seconds of a clock that only goes forward. */
double now(void);
/* A number of a field of /proc/self/status in KiB, as bytes. */
int64_t memory_status(const char *field);
/* Reserves memory for `size` bytes on a 2 MiB boundary and asks for huge pages; nothing is
 * touched. */
void *fresh_memory(size_t size);
void release_memory(void *memory, size_t size);

/* ---- pairs.c ---- */

/* What is compared: each call is one run and gives its seconds. */
typedef double (*timed_run)(void *state);

/* One warm-up of each, then `pairs` rounds (0: as many as fit the time) of subject, limit and the
 * limit twice more, in alternating order; prints `, "subject": [...], "limit": [...], "a": [...],
 * "b": [...]`. Returns the number of runs of the subject. */
int print_pairs(int pairs, timed_run subject, timed_run limit, void *state);

/* ---- background.c ---- */

/* A dataset in batches with a consumer that takes as long for a batch as reading one does, against
 * the longer of reading alone and consuming alone. `busy`: the consumer computes, else it sleeps.
 * Prints one JSON object, as does the next. */
void batches_pairs(tegula_context *context, const char *path, int busy, int pairs);
/* 100 small saves in the background and a fence, against the same saves one after the other; in the
 * empty folder `path`. */
void fence_pairs(tegula_context *context, const char *path, int pairs);

/* ---- save.c ---- */

typedef struct save_kind {
  const char *folder; /* where it is saved */
  const char *layout; /* of HDF5; NULL: npy */
  const char *codec;  /* chunks of 1024 x 1024; NULL: none */
  int durable, once;
} save_kind;

/* Saves the array of `path` against plain pwrite of its bytes, or alone (once). Prints one JSON
 * object, as does the next. */
void save_run(tegula_context *context, const char *path, const save_kind *kind, int pairs);
/* 100 arrays of 64 KiB into one HDF5 file in `folder`. */
void group_run(tegula_context *context, const char *folder);

/* ---- ranks.c ---- */

/* Loads on the ranks that a launcher has started against loads of one process. Prints one JSON
 * object. */
void ranks_pairs(const char *path, const tegula_context_options *options, int pairs);

/* ---- limit.c ---- */

typedef struct limit_file {
  char *path;
  int64_t offset; /* of the data in the file */
  int64_t size;   /* bytes of data */
  int64_t target; /* where they go in memory */
} limit_file;

typedef struct limit_plan {
  limit_file *files;
  int64_t count;
  int64_t bytes;
  int32_t threads;
  int64_t block; /* bytes that a thread takes at once */
} limit_plan;

/* Takes the files of an open dataset. */
limit_plan limit_plan_create(const tegula_dataset *dataset, int32_t threads);
/* The same names, but in `folder`. */
void limit_plan_move(limit_plan *plan, const char *folder);
void limit_plan_free(limit_plan *plan);
/* Opens every file, reads all bytes with all threads in blocks of 1 MiB, however uneven the files.
 * The descriptors come back in `fds` (count entries), to be closed outside the clock. */
void limit_read(const limit_plan *plan, unsigned char *memory, int *fds);
/* Drops the files from the page cache and looks (mincore) whether they are gone: at most 1 % may be
 * left. */
void limit_make_cold(const limit_plan *plan);

#endif
