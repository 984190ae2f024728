/* tegula_bench: times loads and saves, prints one JSON object. bench/run.py chooses what and judges
 * the numbers.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   tegula_bench pairs PATH [--memory fresh|touched|cold] [--grid R,C] [--pairs N] [--threads N]
 *     load against the limit, and the limit against itself, in alternating order; one warm-up each.
 *   tegula_bench once PATH [--warm 1] [--threads N]
 *     one load in this process: seconds from the first open to the last close, what was counted,
 *     growth of VmHWM.
 *   tegula_bench limit PATH [--at FOLDER] [--threads N]
 *     plain pread of the same files where they are seen under FOLDER, from the first open to the
 *     last close. Names, sizes and offsets come from PATH: nothing at FOLDER is touched before the
 *     clock runs.
 *   tegula_bench batches PATH [--consumer sleeps|busy] [--pairs N] [--threads N]
 *   tegula_bench fence FOLDER [--pairs N] [--threads N]
 *     see background.c.
 *   tegula_bench save PATH --at FOLDER [--layout contiguous|chunked|virtual] [--codec CHAIN]
 *                [--durable 1] [--once 1] [--pairs N]
 *   tegula_bench group FOLDER
 *     see save.c. Without --layout npy is saved.
 *
 *   mpirun -n N tegula_bench ranks PATH [--pairs N]
 *     see ranks.c. TEGULA_MPI_LIBRARY names the library of the launcher.
 *
 * fresh: mmap and MADV_HUGEPAGE inside both clocks; touched: both sides read into the same block,
 * written beforehand; cold: fresh, and the files dropped from the page cache before each run.
 * Giving memory back and closing files is outside the clocks of `pairs`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"

enum memory_kind { FRESH, TOUCHED, COLD };

typedef struct bench_state {
  const char *path;
  const char *at; /* NULL, or the folder where the limit reads, or where is saved */
  save_kind save;
  enum memory_kind memory;
  int64_t grid[2]; /* tiles along the first two axes; 0: one tile in one block */
  int pairs;
  int busy; /* the consumer of batches computes */
  int warm; /* once: the dataset is opened and closed beforehand */
  tegula_context *context;
  tegula_statistics statistics;
  limit_plan limit;
  unsigned char *block; /* touched only */
  int *fds;
  char hash[TEGULA_HASH_TEXT];
} bench_state;

typedef struct loaded {
  tegula_dataset *dataset;
  tegula_tiling *tiling;
  tegula_array *array;
} loaded;

static void unload(loaded *load) {
  tegula_array_destroy(load->array);
  tegula_tiling_destroy(load->tiling);
  tegula_dataset_close(load->dataset);
}

static void make_tiling(const bench_state *bench, const tegula_dataset_info_t *info,
                        tegula_tiling **out) {
  tegula_error error;
  int64_t tile[TEGULA_MAX_DIMS];
  if (bench->grid[0] == 0) {
    must(tegula_tiling_even(info->shape, info->ndim, 0, 1, 1, out, &error), &error);
    return;
  }
  for (int axis = 0; axis < info->ndim; axis++) {
    int64_t parts = axis < 2 ? bench->grid[axis] : 1;
    tile[axis] = (info->shape[axis] + parts - 1) / parts;
  }
  must(tegula_tiling_grid(info->shape, tile, info->ndim, 1, out, &error), &error);
}

/* One array over the block that was written beforehand. */
static void wrap_block(const bench_state *bench, const tegula_dataset_info_t *info, loaded *load) {
  tegula_error error;
  tegula_view view = {.data = bench->block,
                      .dtype = info->dtype,
                      .device_type = TEGULA_DEVICE_HOST,
                      .box = {.ndim = info->ndim}};
  int64_t stride = info->dtype.item_size;
  for (int axis = info->ndim - 1; axis >= 0; axis--) {
    view.box.hi[axis] = info->shape[axis];
    view.stride_bytes[axis] = stride;
    stride *= info->shape[axis];
  }
  must(tegula_array_wrap(bench->context, info->dtype, load->tiling, &view, 1, NULL, NULL,
                         &load->array, &error),
       &error);
}

/* Describe, allocate and load. */
static loaded load_all(bench_state *bench) {
  tegula_error error;
  loaded load = {0};
  tegula_open_options open_options;
  tegula_load_options load_options;
  tegula_array_options array_options;
  tegula_dataset_info_t info;
  tegula_open_options_init(&open_options);
  tegula_load_options_init(&load_options);
  tegula_array_options_init(&array_options);
  tegula_dataset_info_init(&info);
  open_options.statistics = &bench->statistics;
  open_options.flags = TEGULA_OPEN_DEFER_HEADERS; /* all of it is loaded */
  load_options.statistics = &bench->statistics;
  if (bench->grid[0] > 0) array_options.flags = TEGULA_ARRAY_SEPARATE;
  must(tegula_dataset_open(bench->context, bench->path, &open_options, &load.dataset, &error),
       &error);
  must(tegula_dataset_info(load.dataset, &info, &error), &error);
  make_tiling(bench, &info, &load.tiling);
  if (bench->memory == TOUCHED)
    wrap_block(bench, &info, &load);
  else
    must(tegula_array_create(bench->context, info.dtype, load.tiling, &array_options, &load.array,
                             &error),
         &error);
  must(tegula_load(load.dataset, load.array, &load_options, &error), &error);
  return load;
}

static double time_load(void *state) {
  bench_state *bench = state;
  tegula_error error;
  if (bench->memory == COLD) limit_make_cold(&bench->limit);
  double start = now();
  loaded load = load_all(bench);
  double seconds = now() - start;
  if (bench->hash[0] == '\0') must(tegula_array_hash(load.array, bench->hash, &error), &error);
  unload(&load);
  return seconds;
}

static double time_limit(void *state) {
  const bench_state *bench = state;
  size_t bytes = (size_t)bench->limit.bytes;
  if (bench->memory == COLD) limit_make_cold(&bench->limit);
  double start = now();
  unsigned char *memory = bench->memory == TOUCHED ? bench->block : fresh_memory(bytes);
  limit_read(&bench->limit, memory, bench->fds);
  double seconds = now() - start;
  for (int64_t i = 0; i < bench->limit.count; i++) close(bench->fds[i]);
  if (bench->memory != TOUCHED) release_memory(memory, bytes);
  return seconds;
}

static void print_counts(const bench_state *bench, int64_t files, int64_t runs) {
  const tegula_statistics *s = &bench->statistics;
  printf(", \"files\": %lld, \"runs\": %lld, \"opens\": %lld, \"stats\": %lld", (long long)files,
         (long long)runs, (long long)s->opens, (long long)s->stats);
  printf(", \"reads\": %lld, \"bytes_read\": %lld", (long long)s->reads, (long long)s->bytes_read);
  printf(", \"direct_bytes\": %lld, \"staged_bytes\": %lld", (long long)s->direct_bytes,
         (long long)s->staged_bytes);
  printf(", \"threads\": %d", (int)tegula_context_threads(bench->context));
}

/* Plain descriptions of the files, from a dataset that is closed again before anything is timed. */
static void prepare(bench_state *bench) {
  tegula_error error;
  tegula_dataset *dataset = NULL;
  must(tegula_dataset_open(bench->context, bench->path, NULL, &dataset, &error), &error);
  bench->limit = limit_plan_create(dataset, tegula_context_threads(bench->context));
  tegula_dataset_close(dataset);
  bench->fds = must_allocate((size_t)bench->limit.count, sizeof *bench->fds);
  if (bench->memory == TOUCHED) {
    bench->block = fresh_memory((size_t)bench->limit.bytes);
    memset(bench->block, 1, (size_t)bench->limit.bytes);
  }
}

static void run_pairs(bench_state *bench) {
  prepare(bench);
  printf("{\"bytes\": %lld", (long long)bench->limit.bytes);
  int runs = print_pairs(bench->pairs, time_load, time_limit, bench);
  printf(", \"hash\": \"%s\"", bench->hash);
  print_counts(bench, bench->limit.count, runs);
  printf("}\n");
  if (bench->block != NULL) release_memory(bench->block, (size_t)bench->limit.bytes);
  limit_plan_free(&bench->limit);
  free(bench->fds);
}

/* Loads the plugin, as importing a peer loads its libraries before the clock runs. */
static void warm_up(const bench_state *bench) {
  tegula_error error;
  tegula_dataset *dataset;
  must(tegula_dataset_open(bench->context, bench->path, NULL, &dataset, &error), &error);
  tegula_dataset_close(dataset);
}

static void run_once(bench_state *bench) {
  tegula_error error;
  tegula_dataset_info_t info;
  tegula_dataset_info_init(&info);
  if (bench->warm) warm_up(bench);
  int64_t before = memory_status("VmHWM");
  double start = now();
  loaded load = load_all(bench);
  double loaded_at = now();
  int64_t growth = memory_status("VmHWM") - before;
  must(tegula_dataset_info(load.dataset, &info, &error), &error);
  int64_t files = info.files, bytes = info.bytes;
  double closing = now();
  tegula_dataset_close(load.dataset);
  load.dataset = NULL;
  double seconds = loaded_at - start + now() - closing;
  printf("{\"bytes\": %lld, \"seconds\": %.9f, \"describe\": %.9f, \"peak_growth\": %lld",
         (long long)bytes, seconds, bench->statistics.seconds_describe, (long long)growth);
  print_counts(bench, files, 1);
  printf("}\n");
  unload(&load);
}

/* Every file stays open until the last is read. */
static void allow_open_files(int64_t count) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) die("could not get the limit of open files");
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || (int64_t)limit.rlim_max < count + 100)
    die("%lld files cannot be open at once here: the limit is %lld", (long long)count,
        (long long)limit.rlim_max);
}

static void run_limit(bench_state *bench) {
  tegula_error error;
  tegula_dataset *dataset;
  must(tegula_dataset_open(bench->context, bench->path, NULL, &dataset, &error), &error);
  bench->limit = limit_plan_create(dataset, tegula_context_threads(bench->context));
  tegula_dataset_close(dataset);
  if (bench->at != NULL) limit_plan_move(&bench->limit, bench->at);
  allow_open_files(bench->limit.count);
  bench->fds = must_allocate((size_t)bench->limit.count, sizeof *bench->fds);
  double start = now();
  unsigned char *memory = fresh_memory((size_t)bench->limit.bytes);
  limit_read(&bench->limit, memory, bench->fds);
  for (int64_t i = 0; i < bench->limit.count; i++) close(bench->fds[i]);
  printf("{\"bytes\": %lld, \"seconds\": %.9f}\n", (long long)bench->limit.bytes, now() - start);
  release_memory(memory, (size_t)bench->limit.bytes);
  limit_plan_free(&bench->limit);
  free(bench->fds);
}

static int number(const char *text, long low, long high) {
  char *end;
  long value = strtol(text, &end, 10);
  if (*text == '\0' || *end != '\0' || value < low || value > high)
    die("not a number from %ld to %ld: %s", low, high, text);
  return (int)value;
}

static void parse_option(bench_state *bench, tegula_context_options *options, const char *name,
                         const char *value) {
  int rows, columns;
  if (strcmp(name, "--memory") == 0 && strcmp(value, "fresh") == 0)
    bench->memory = FRESH;
  else if (strcmp(name, "--memory") == 0 && strcmp(value, "touched") == 0)
    bench->memory = TOUCHED;
  else if (strcmp(name, "--memory") == 0 && strcmp(value, "cold") == 0)
    bench->memory = COLD;
  else if (strcmp(name, "--at") == 0)
    bench->at = value;
  else if (strcmp(name, "--consumer") == 0 && strcmp(value, "busy") == 0)
    bench->busy = 1;
  else if (strcmp(name, "--consumer") == 0 && strcmp(value, "sleeps") == 0)
    bench->busy = 0;
  else if (strcmp(name, "--warm") == 0)
    bench->warm = number(value, 0, 1);
  else if (strcmp(name, "--layout") == 0)
    bench->save.layout = value;
  else if (strcmp(name, "--codec") == 0)
    bench->save.codec = value;
  else if (strcmp(name, "--durable") == 0)
    bench->save.durable = number(value, 0, 1);
  else if (strcmp(name, "--once") == 0)
    bench->save.once = number(value, 0, 1);
  else if (strcmp(name, "--pairs") == 0)
    bench->pairs = number(value, 1, 1000);
  else if (strcmp(name, "--threads") == 0)
    options->threads = number(value, 1, 1024);
  else if (strcmp(name, "--grid") == 0 && sscanf(value, "%d,%d", &rows, &columns) == 2 &&
           rows > 0 && columns > 0) {
    bench->grid[0] = rows;
    bench->grid[1] = columns;
  } else
    die("unknown option or value: %s %s", name, value);
}

int main(int argc, char **argv) {
  tegula_error error;
  bench_state bench = {0};
  tegula_context_options options;
  tegula_context_options_init(&options);
  options.hdf5_library = getenv("TEGULA_HDF5_LIBRARY");
  tegula_statistics_init(&bench.statistics);
  if (argc < 3 || argc % 2 == 0)
    die("usage: tegula_bench pairs|once|limit|batches|fence|save|group|ranks PATH [--option "
        "value]...");
  bench.path = argv[2];
  for (int i = 3; i < argc; i += 2) parse_option(&bench, &options, argv[i], argv[i + 1]);
  bench.save.folder = bench.at;
  if (strcmp(argv[1], "ranks") == 0) {
    ranks_pairs(bench.path, &options, bench.pairs);
    return 0;
  }
  must(tegula_context_create(&options, NULL, &bench.context, &error), &error);
  if (strcmp(argv[1], "pairs") == 0)
    run_pairs(&bench);
  else if (strcmp(argv[1], "once") == 0)
    run_once(&bench);
  else if (strcmp(argv[1], "limit") == 0)
    run_limit(&bench);
  else if (strcmp(argv[1], "batches") == 0)
    batches_pairs(bench.context, bench.path, bench.busy, bench.pairs);
  else if (strcmp(argv[1], "fence") == 0)
    fence_pairs(bench.context, bench.path, bench.pairs);
  else if (strcmp(argv[1], "save") == 0)
    save_run(bench.context, bench.path, &bench.save, bench.pairs);
  else if (strcmp(argv[1], "group") == 0)
    group_run(bench.context, bench.path);
  else
    die("unknown command: %s", argv[1]);
  tegula_context_destroy(bench.context);
  return 0;
}
