/* Loads on ranks against a load of one process with as many threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every rank is bound to a processor of its own and has one thread; alone, rank 0 has all of these
 * processors and a thread for each, while the others sleep. The clock runs from a barrier to the
 * end of the last rank; all agree on it, so that they go on alike. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tegula/tegula_mpi.h>

#include "bench.h"

typedef struct ranks_state {
  const char *path;
  tegula_comm *comm;
  tegula_context *shared, *alone;
  cpu_set_t one, all;  /* processors of this rank, of all ranks */
  double processor[2]; /* seconds of this rank's threads in all runs of the two kinds */
  char hash[2][TEGULA_HASH_TEXT];
} ranks_state;

static void bind_to(const cpu_set_t *set) {
  if (sched_setaffinity(0, sizeof *set, set) != 0) die("could not choose a processor");
}

static void choose_processors(ranks_state *r) {
  cpu_set_t granted;
  int rank = tegula_comm_rank(r->comm), size = tegula_comm_size(r->comm), found = 0;
  if (sched_getaffinity(0, sizeof granted, &granted) != 0) die("could not ask for the processors");
  CPU_ZERO(&r->one);
  CPU_ZERO(&r->all);
  for (int i = 0; i < CPU_SETSIZE && found < size; i++) {
    if (!CPU_ISSET(i, &granted)) continue;
    CPU_SET(i, &r->all);
    if (found++ == rank) CPU_SET(i, &r->one);
  }
  if (found < size) die("%d ranks need as many processors, there are %d", size, found);
}

/* Open, allocate, load. Returns when it ended. */
static double load_in(ranks_state *r, tegula_context *context, int32_t ranks,
                      char hash[TEGULA_HASH_TEXT]) {
  tegula_error error;
  tegula_dataset *dataset;
  tegula_tiling *tiling;
  tegula_array *array;
  tegula_dataset_info_t info;
  tegula_dataset_info_init(&info);
  must(tegula_dataset_open(context, r->path, NULL, &dataset, &error), &error);
  must(tegula_dataset_info(dataset, &info, &error), &error);
  must(tegula_tiling_even(info.shape, info.ndim, 0, tegula_comm_size(r->comm), ranks, &tiling,
                          &error),
       &error);
  must(tegula_array_create(context, info.dtype, tiling, NULL, &array, &error), &error);
  must(tegula_load(dataset, array, NULL, &error), &error);
  double end = now();
  if (hash[0] == '\0') must(tegula_array_hash(array, hash, &error), &error);
  tegula_array_destroy(array);
  tegula_tiling_destroy(tiling);
  tegula_dataset_close(dataset);
  return end;
}

static double barrier(const ranks_state *r) {
  tegula_error error;
  must(tegula_comm_agree(r->comm, TEGULA_OK, &error), &error);
  return now();
}

/* From the first start to the last end: clocks of one machine. */
static double span(const ranks_state *r, double start, double end) {
  tegula_error error;
  int64_t values[2] = {(int64_t)(-start * 1e9), (int64_t)(end * 1e9)};
  must(tegula_comm_reduce(r->comm, TEGULA_REDUCTION_MAX, values, 2, &error), &error);
  return (double)(values[0] + values[1]) * 1e-9;
}

static double processor_time(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double time_shared(void *state) {
  ranks_state *r = state;
  bind_to(&r->one);
  double start = barrier(r), before = processor_time();
  double end = load_in(r, r->shared, tegula_comm_size(r->comm), r->hash[0]);
  r->processor[0] += processor_time() - before;
  return span(r, start, end);
}

static double time_alone(void *state) {
  ranks_state *r = state;
  bind_to(&r->all);
  double start = barrier(r), before = processor_time();
  double end = tegula_comm_rank(r->comm) == 0 ? load_in(r, r->alone, 1, r->hash[1]) : start;
  r->processor[1] += processor_time() - before;
  return span(r, start, end);
}

/* The limit runs three times for each run of the subject. */
static void print_processor_time(const ranks_state *r, int runs) {
  tegula_error error;
  int64_t values[2] = {(int64_t)(r->processor[0] * 1e9), (int64_t)(r->processor[1] * 1e9)};
  must(tegula_comm_reduce(r->comm, TEGULA_REDUCTION_SUM, values, 2, &error), &error);
  printf(", \"processor\": [%.6f, %.6f]", (double)values[0] * 1e-9 / runs,
         (double)values[1] * 1e-9 / (3 * runs - 2));
}

void ranks_pairs(const char *path, const tegula_context_options *given, int pairs) {
  tegula_error error;
  tegula_mpi_options mpi;
  tegula_context_options options = *given;
  ranks_state r = {.path = path};
  tegula_mpi_options_init(&mpi);
  mpi.libraries = getenv("TEGULA_MPI_LIBRARY");
  must(tegula_mpi_comm_create(NULL, 0, &mpi, &r.comm, &error), &error);
  choose_processors(&r);
  options.threads = tegula_comm_size(r.comm);
  bind_to(&r.all);
  must(tegula_context_create(&options, NULL, &r.alone, &error), &error);
  options.threads = 1;
  bind_to(&r.one);
  must(tegula_context_create(&options, r.comm, &r.shared, &error), &error);
  if (tegula_comm_rank(r.comm) != 0 && freopen("/dev/null", "w", stdout) == NULL)
    die("could not be silent");
  printf("{\"ranks\": %d", (int)tegula_comm_size(r.comm));
  print_processor_time(&r, print_pairs(pairs, time_shared, time_alone, &r));
  if (tegula_comm_rank(r.comm) == 0 && strcmp(r.hash[0], r.hash[1]) != 0)
    die("other values on ranks: %s, %s", r.hash[0], r.hash[1]);
  printf(", \"hash\": \"%s\"}\n", r.hash[0]);
  fflush(stdout);
  tegula_context_destroy(r.shared);
  tegula_context_destroy(r.alone);
  tegula_comm_destroy(r.comm);
}
