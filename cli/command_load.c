/* `tegula load`: discover, load into memory, report.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * One run is describe -> tile and allocate -> move; the clock covers all three and nothing else. A
 * box is read as an array of its own shape, with the place where it begins. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tegula/tegula_mpi.h>

#include "cli_report.h"
#include "commands.h"
#include "launch_ranks.h"

#define MAX_REPEAT 1000000

/* ---- the box and its tiles ---- */

/* What is read: the whole array, or --box. */
static tegula_status take_box(cli_job *job, const tegula_dataset_info_t *info, tegula_box *box) {
  const box_value *wanted = &job->settings.box;
  char text[REPORT_TEXT];
  if (wanted->ndim > info->ndim) {
    return report_usage(
        &job->error, job->command->name,
        "option --box: expected at most %d axes, found %d (the array's shape is %s)",
        (int)info->ndim, (int)wanted->ndim, report_shape_text(info->shape, info->ndim, text));
  }
  memset(box, 0, sizeof *box);
  box->ndim = info->ndim;
  for (int32_t axis = 0; axis < info->ndim; axis++) {
    int given = axis < wanted->ndim;
    box->lo[axis] = given ? wanted->lo[axis] : 0;
    box->hi[axis] = given && wanted->hi[axis] >= 0 ? wanted->hi[axis] : info->shape[axis];
    if (box->lo[axis] > box->hi[axis] || box->hi[axis] > info->shape[axis]) {
      return report_usage(
          &job->error, job->command->name,
          "option --box: %" PRId64 ":%" PRId64 " on axis %d is outside the shape %s", box->lo[axis],
          box->hi[axis], (int)axis, report_shape_text(info->shape, info->ndim, text));
    }
  }
  return TEGULA_OK;
}

static void move_view(tegula_view *view, const tegula_box *box) {
  for (int32_t axis = 0; axis < box->ndim; axis++) {
    view->box.lo[axis] += box->lo[axis];
    view->box.hi[axis] += box->lo[axis];
  }
}

static int64_t box_bytes(const tegula_box *box, int64_t item_size) {
  int64_t bytes = item_size;
  for (int32_t axis = 0; axis < box->ndim; axis++) {
    if (__builtin_mul_overflow(bytes, box->hi[axis] - box->lo[axis], &bytes)) {
      return INT64_MAX;
    }
  }
  return bytes;
}

/* ---- one run ---- */

static tegula_status describe(cli_job *job, uint32_t flags, load_run *run) {
  tegula_status status = open_dataset(job, flags, &run->statistics, &run->dataset);
  if (status != TEGULA_OK) {
    return status;
  }
  tegula_dataset_info_init(&run->info);
  status = tegula_dataset_info(run->dataset, &run->info, &job->error);
  return status != TEGULA_OK ? status : take_box(job, &run->info, &run->box);
}

static tegula_status allocate(cli_job *job, load_run *run) {
  int64_t shape[TEGULA_MAX_DIMS] = {0};
  for (int32_t axis = 0; axis < run->box.ndim; axis++) {
    shape[axis] = run->box.hi[axis] - run->box.lo[axis];
  }
  run->bytes = box_bytes(&run->box, run->info.dtype.item_size);
  tegula_status status = tiling_make(job, shape, run->box.ndim, job->ranks, &run->tiling);
  return status != TEGULA_OK ? status
                             : tegula_array_create(job->context, run->info.dtype, run->tiling, NULL,
                                                   &run->array, &job->error);
}

static tegula_status move_bytes(cli_job *job, load_run *run) {
  tegula_load_options options;
  tegula_load_options_init(&options);
  options.progress = job_progress;
  options.progress_state = job;
  options.statistics = &run->statistics;
  options.missing = open_missing(&job->settings);
  if (job->settings.box.ndim >= 0) {
    options.origin = run->box.lo;
    options.origin_ndim = run->box.ndim;
  }
  job_phase(job, 0);
  tegula_status status = tegula_load(run->dataset, run->array, &options, &job->error);
  job_phase_end(job);
  return status != TEGULA_OK ? status : job_check(job);
}

static tegula_status load_steps(cli_job *job, uint32_t flags, load_run *run,
                                load_seconds *seconds) {
  double began = job_now();
  tegula_status status = describe(job, flags, run);
  double described = job_now();
  if (status == TEGULA_OK) {
    status = allocate(job, run);
  }
  double allocated = job_now();
  if (status == TEGULA_OK) {
    status = move_bytes(job, run);
  }
  double moved = job_now();
  seconds->total += moved - began;
  seconds->describe += described - began;
  seconds->allocate += allocated - described;
  seconds->move += moved - allocated;
  return status;
}

static void close_run(load_run *run) {
  tegula_array_destroy(run->array);
  tegula_tiling_destroy(run->tiling);
  tegula_dataset_close(run->dataset);
  run->array = NULL;
  run->tiling = NULL;
  run->dataset = NULL;
}

/* Can a load have failed because a header is not as foretold? Up to the array all that is known is
 * foretold. A file that changed meanwhile is an error, whatever a second load would find. */
static int may_be_foretold(const cli_job *job, const load_run *run, tegula_status status) {
  int other_reason = status == TEGULA_OK || status == TEGULA_CHANGED ||
                     status == TEGULA_CANCELLED || status == TEGULA_TIMEOUT ||
                     status == TEGULA_OUT_OF_MEMORY || job->error.os_errno != 0;
  if (run->dataset == NULL || other_reason) {
    return 0;
  }
  return run->array == NULL || status == TEGULA_MISMATCH;
}

/* Of the whole array all headers are read anyway, so they may come with the data. If that fails, a
 * second load reads all headers first: it finds what is there, or says what is wrong. */
tegula_status load_once(cli_job *job, load_run *run, load_seconds *seconds) {
  memset(run, 0, sizeof *run);
  memset(seconds, 0, sizeof *seconds);
  tegula_statistics_init(&run->statistics);
  /* ranks are told what rank 0 has read */
  uint32_t flags = job->settings.box.ndim < 0 && job->ranks == 1 ? TEGULA_OPEN_DEFER_HEADERS : 0;
  tegula_status status = load_steps(job, flags, run, seconds);
  if (flags != 0 && may_be_foretold(job, run, status)) {
    close_run(run);
    status = load_steps(job, 0, run, seconds);
  }
  return status;
}

void load_release(load_run *run) {
  close_run(run);
  memset(run, 0, sizeof *run);
}

/* ---- checks ---- */

/* What `write` noted of its array in the folder `path`; *out stays NULL where there is no note. */
static tegula_status read_note(cli_job *job, const char *path, json_t **out) {
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) { /* a file or a pattern is no folder */
    return errno == ENOENT || errno == ENOTDIR
               ? TEGULA_OK
               : report_fail_os(&job->error, path, errno, NULL,
                                "could not look for the note of tegula write in %s", path);
  }
  tegula_error error;
  tegula_status status = side_file_read(fd, path, out, &error);
  close(fd);
  if (status == TEGULA_NOT_FOUND) {
    return TEGULA_OK;
  }
  if (status != TEGULA_OK) {
    job->error = error;
  }
  return status;
}

/* The note's values; CORRUPT when it does not say what every note says. */
static tegula_status parse_note(cli_job *job, const json_t *note, shape_value *shape,
                                tegula_dtype *dtype, json_int_t *seed) {
  const json_t *lengths = json_object_get(note, "shape");
  const char *dtype_text = json_string_value(json_object_get(note, "dtype"));
  size_t ndim = json_array_size(lengths), axis;
  json_t *length;
  int valid = json_is_array(lengths) && ndim <= TEGULA_MAX_DIMS && dtype_text != NULL &&
              json_is_integer(json_object_get(note, "seed")) &&
              tegula_dtype_parse(dtype_text, dtype, NULL) == TEGULA_OK;
  *seed = json_integer_value(json_object_get(note, "seed"));
  shape->ndim = valid ? (int32_t)ndim : 0;
  json_array_foreach(lengths, axis, length) {
    valid = valid && json_is_integer(length);
    if (valid) {
      shape->length[axis] = json_integer_value(length);
    }
  }
  return valid ? TEGULA_OK
               : report_fail(&job->error, TEGULA_CORRUPT,
                             "remove that file to compare the values alone",
                             "%s in %s does not tell shape, dtype and seed", SIDE_FILE,
                             job->settings.paths[0]);
}

/* MISMATCH when the folder is not what `write` left: a lost last shard cannot be seen in the
 * values. */
static tegula_status compare_note(cli_job *job, const load_run *run, const json_t *note) {
  shape_value shape;
  tegula_dtype dtype;
  json_int_t seed = 0;
  tegula_status status = parse_note(job, note, &shape, &dtype, &seed);
  if (status != TEGULA_OK) {
    return status;
  }
  const char *path = job->settings.paths[0];
  char noted[REPORT_TEXT], found[REPORT_TEXT], noted_dtype[TEGULA_DTYPE_TEXT],
      found_dtype[TEGULA_DTYPE_TEXT];
  if (shape.ndim != run->info.ndim ||
      memcmp(shape.length, run->info.shape, (size_t)shape.ndim * sizeof *shape.length) != 0) {
    return report_fail(&job->error, TEGULA_MISMATCH, "is a shard missing?",
                       "%s: expected shape %s, as %s says, found %s", path,
                       report_shape_text(shape.length, shape.ndim, noted), SIDE_FILE,
                       report_shape_text(run->info.shape, run->info.ndim, found));
  }
  if (!tegula_dtype_same(dtype, run->info.dtype)) {
    tegula_dtype_format(dtype, noted_dtype);
    tegula_dtype_format(run->info.dtype, found_dtype);
    return report_fail(&job->error, TEGULA_MISMATCH, NULL,
                       "%s: expected dtype %s, as %s says, found %s", path, noted_dtype, SIDE_FILE,
                       found_dtype);
  }
  if (seed != job->settings.check_seed) {
    return report_fail(&job->error, TEGULA_MISMATCH, NULL,
                       "%s: expected seed %lld, as %s says, found --check-seed %" PRId64, path,
                       (long long)seed, SIDE_FILE, job->settings.check_seed);
  }
  return TEGULA_OK;
}

/* Compares with the note of `write`, and takes from it which values were made; without a note they
 * are the random ones. */
static tegula_status check_note(cli_job *job, const load_run *run, tegula_values *values) {
  json_t *note = NULL;
  *values = TEGULA_VALUES_RANDOM;
  tegula_status status =
      job->settings.path_count == 1 ? read_note(job, job->settings.paths[0], &note) : TEGULA_OK;
  if (note != NULL) {
    const char *name = json_string_value(json_object_get(note, "values"));
    *values = name != NULL && strcmp(name, "ramp") == 0 ? TEGULA_VALUES_RAMP : TEGULA_VALUES_RANDOM;
    status = compare_note(job, run, note);
  }
  json_decref(note);
  return status;
}

tegula_status load_check(cli_job *job, const load_run *run) {
  tegula_values values;
  tegula_status status = check_note(job, run, &values);
  for (int64_t tile = 0; tile < tegula_array_tiles(run->array) && status == TEGULA_OK; tile++) {
    tegula_view view;
    status = tegula_array_view(run->array, tile, &view, &job->error);
    if (status == TEGULA_OK) {
      move_view(&view, &run->box);
      status = tegula_demo_check(job->context, &view, run->info.shape, values,
                                 (uint64_t)job->settings.check_seed, &job->error);
    }
    if (status == TEGULA_OK) {
      status = job_check(job);
    }
  }
  job->check_failed = status == TEGULA_MISMATCH;
  return status;
}

/* ---- the command ---- */

static int compare_doubles(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

double median(const double *values, int64_t count, size_t stride) {
  double *sorted = report_allocate((size_t)count * sizeof *sorted);
  if (sorted == NULL) {
    return values[0]; /* never shown: the report fails */
  }
  for (int64_t i = 0; i < count; i++) {
    memcpy(&sorted[i], (const char *)values + (size_t)i * stride, sizeof *sorted);
  }
  qsort(sorted, (size_t)count, sizeof *sorted, compare_doubles);
  double middle =
      count % 2 != 0 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
  free(sorted);
  return middle;
}

static load_seconds median_seconds(const load_seconds *runs, int64_t count) {
  return (load_seconds){
      median(&runs->total, count, sizeof *runs),
      median(&runs->describe, count, sizeof *runs),
      median(&runs->allocate, count, sizeof *runs),
      median(&runs->move, count, sizeof *runs),
  };
}

static tegula_status check_settings(cli_job *job) {
  tegula_status status = tiling_check_settings(job);
  return status != TEGULA_OK ? status : open_check_settings(job);
}

/* Hash, check and report of the last run. */
static tegula_status conclude(cli_job *job, const load_run *run, const load_seconds *runs,
                              int64_t count, int64_t peak_memory) {
  char hash[TEGULA_HASH_TEXT];
  load_summary summary = {.run = run, .seconds = median_seconds(runs, count), .repeat = count};
  summary.runs = job->settings.repeat > 0 ? runs : NULL;
  summary.ranks = job->ranks;
  summary.peak_memory = peak_memory;
  if (job->settings.hash) {
    tegula_status status = tegula_array_hash(run->array, hash, &job->error);
    if (status != TEGULA_OK) {
      return status;
    }
    summary.hash = hash;
  }
  tegula_status status = job->settings.check_seed >= 0 ? load_check(job, run) : TEGULA_OK;
  if (job->ranks > 1 && job->settings.check_seed >= 0) {
    status = tegula_comm_agree(job->comm, status, &job->error);
    job->check_failed = status == TEGULA_MISMATCH;
  }
  return status != TEGULA_OK ? status : load_report(job, &summary);
}

static tegula_status run_load(cli_job *job) {
  int64_t count = job->settings.repeat > 0 ? job->settings.repeat : 1;
  tegula_status status = check_settings(job);
  if (status != TEGULA_OK) {
    return status;
  }
  load_seconds *runs = calloc((size_t)count, sizeof *runs);
  if (runs == NULL) {
    return report_fail(&job->error, TEGULA_OUT_OF_MEMORY, NULL,
                       "could not keep the times of %" PRId64 " runs: no memory", count);
  }
  load_run run;
  int64_t peak_memory = 0;
  memset(&run, 0, sizeof run);
  for (int64_t i = 0; i < count && status == TEGULA_OK; i++) {
    load_release(&run);
    status = load_once(job, &run, &runs[i]);
    if (status == TEGULA_OK) {
      status = ranks_longest(job, &runs[i].total, sizeof runs[i] / sizeof runs[i].total);
    }
  }
  if (status == TEGULA_OK) {
    peak_memory = load_peak_memory();
    status = ranks_sum(job, &run.statistics, &peak_memory);
  }
  if (status == TEGULA_OK) {
    /* of sources that the load met, too */
    status = tegula_dataset_info(run.dataset, &run.info, &job->error);
  }
  if (status == TEGULA_OK) {
    status = conclude(job, &run, runs, count, peak_memory);
  }
  load_release(&run);
  free(runs);
  return status;
}

#define FIELD(name) offsetof(cli_settings, name)

static const cli_option load_rows[] = {
    {"box", "LO:HI,..", "read only this part; an end may be left out", FIELD(box), 0, 0, OPTION_BOX,
     0},
    {"missing", "error|strict|fill",
     "pieces that were never written are filled and lost ones an error; both an error; both filled",
     FIELD(missing), 0, 0, OPTION_CHOICE, 0},
    {"check-seed", "S", "compare with what tegula write --seed S makes", FIELD(check_seed), 0,
     INT64_MAX, OPTION_INTEGER, 0},
    {"hash", NULL, "report the content hash", FIELD(hash), 0, 0, OPTION_FLAG, 0},
    {"io", "auto|pread|io_uring|direct", "how bytes are read (see above)", FIELD(io), 0, 0,
     OPTION_CHOICE, 0},
    {"repeat", "N", "load N times; times are medians", FIELD(repeat), 1, MAX_REPEAT, OPTION_INTEGER,
     0},
};

static const option_group load_group = {"What is loaded", load_rows,
                                        sizeof load_rows / sizeof load_rows[0]};

const cli_command load_command = {
    .name = "load",
    .summary = "load files into memory in parallel and report",
    .paths = "PATH...",
    .description =
        "Finds out what the PATHs hold, loads it into memory on all granted threads and reports "
        "what was found\n"
        "and how fast it was. A PATH is a file, a folder of shards, a quoted pattern, or a "
        "manifest (tegula info\n"
        "--manifest). Shards are joined along axis 0 in numeric order; a hole, a short file or "
        "shapes that differ are an error.\n"
        "Raw files may be described by shard_meta.json beside them instead of by options.\n"
        "With --check-seed, a folder that `tegula write` made must also have the shape, dtype and "
        "seed that are noted\n"
        "in it (" SIDE_FILE ").\n\n"
        "--io: pread; io_uring keeps many requests of each thread on their way; direct goes past "
        "the page cache;\n"
        "auto takes pread, and io_uring where separate requests wait for storage. A way that "
        "cannot be taken here\n"
        "falls back to pread, and the report says why.\n\n"
        "With --json: format, shape, dtype, files, sources (virtual datasets over more than 256 "
        "files, while not all\n"
        "of them were met: those of which files and chunks do not speak), chunks, tiles, ranks, "
        "bytes, seconds (from\n"
        "the first open to the last byte), seconds_describe, seconds_allocate, seconds_move, "
        "gb_per_s, opens, reads, bytes_read,\n"
        "reader_bytes, missing, missing_list (lost pieces that were filled), peak_rss_bytes, "
        "io_path, fallback_reason,\n"
        "hash; runs with --repeat; tile_list with -v\n"
        "(boxes count from the start of what is loaded, the rows of a source from the start of its "
        "file).\n",
    .examples = "  tegula load shards                             a folder of shard_0000.npy, "
                "shard_0001.npy, ...\n"
                "  tegula load 'run42/part_*.npy' --tiles 8 -v    a pattern, eight tiles, and what "
                "each one reads\n"
                "  tegula load big.npy --box 0:1000,:             the first thousand rows\n"
                "  tegula load run.h5 --dataset /entry/data       one array of an HDF5 file\n"
                "  tegula load data.bin --format raw --dtype '<f4' --row-shape 16 --offset 512\n"
                "                                                 raw rows of 16 numbers behind a "
                "header of 512 bytes\n"
                "  tegula load shards --expect-files 8 --hash     fail when a shard is lost; print "
                "the content hash\n",
    .min_paths = 1,
    .max_paths = SIZE_MAX,
    .groups = {&load_group, &options_tiling, &options_files, &options_raw, &options_common, NULL},
    .on_ranks = RANKS_ALL,
    .run = run_load,
};
