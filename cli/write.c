/* `tegula write`: demonstration shards with uneven numbers of rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The array depends on shape, dtype, values and seed only; the cuts on seed, rows and number of shards. A failure or an
 * interruption leaves nothing behind: files, folder and parent folders that were made are removed again. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.h"
#include "report.h"

#define DEFAULT_DTYPE "f4"
#define SHARD_NAME 64 /* bytes for "/shard_NUMBER.SUFFIX" */

/* What is to be written, and what is there already. */
typedef struct write_work {
  cli_job *job;
  const char *dir;
  const char *suffix;
  tegula_dtype dtype;
  shape_value shape;
  tegula_values values;
  int name_digits;
  char *path;          /* of the shard at hand: the folder and SHARD_NAME bytes */
  int64_t done;        /* shards that exist */
  int64_t *cuts;       /* num_shards + 1 rows: shard i holds [cuts[i], cuts[i + 1]) */
  char *made;          /* the path whose prefixes below were made */
  size_t *made_length; /* lengths of those prefixes, outermost first */
  size_t made_count;
} write_work;

/* ---- folders ------------------------------------------------------------------------------------------------------------- */

/* Makes one folder unless it is there, and notes that it did. */
static tegula_status make_folder(write_work *work, size_t length) {
  char kept = work->made[length];
  work->made[length] = '\0';
  tegula_status status = TEGULA_OK;
  if (mkdir(work->made, 0777) == 0) {
    work->made_length[work->made_count++] = length;
  } else if (errno != EEXIST) {
    status = report_fail_os(&work->job->error, work->made, errno, NULL, "could not make folder %s", work->made);
  }
  work->made[length] = kept;
  return status;
}

static tegula_status make_folders(write_work *work) {
  work->made = strdup(work->dir);
  work->made_length = calloc(strlen(work->dir) + 1, sizeof *work->made_length);
  if (work->made == NULL || work->made_length == NULL) {
    return report_fail(&work->job->error, TEGULA_OUT_OF_MEMORY, NULL, "could not make folder %s: no memory", work->dir);
  }
  tegula_status status = TEGULA_OK;
  for (size_t at = 1; work->made[at - 1] != '\0' && status == TEGULA_OK; at++) {
    if ((work->made[at] == '/' || work->made[at] == '\0') && work->made[at - 1] != '/') {
      status = make_folder(work, at);
    }
  }
  return status;
}

static tegula_status check_empty(write_work *work) {
  DIR *stream = opendir(work->dir);
  if (stream == NULL) {
    return report_fail_os(&work->job->error, work->dir, errno, NULL, "could not open folder %s", work->dir);
  }
  tegula_status status = TEGULA_OK;
  for (struct dirent *entry = readdir(stream); entry != NULL && status == TEGULA_OK; entry = readdir(stream)) {
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
      status = report_fail(&work->job->error, TEGULA_EXISTS, "choose a new folder, or run tegula clean on it first",
                           "will not write to %s: expected an empty folder, found %s in it", work->dir, entry->d_name);
      snprintf(work->job->error.path, sizeof work->job->error.path, "%s", work->dir);
    }
  }
  closedir(stream);
  return status;
}

/* In work->path. Needs no memory: also what is removed after memory ran out has a name. */
static const char *shard_path(const write_work *work, int64_t index) {
  snprintf(work->path, strlen(work->dir) + SHARD_NAME, "%s/shard_%0*" PRId64 ".%s", work->dir, work->name_digits, index, work->suffix);
  return work->path;
}

static void remove_all(write_work *work) {
  for (int64_t i = 0; i < work->done; i++) {
    unlink(shard_path(work, i));
  }
  for (size_t i = work->made_count; i > 0; i--) {
    work->made[work->made_length[i - 1]] = '\0';
    rmdir(work->made);
  }
}

/* ---- the cuts ------------------------------------------------------------------------------------------------------------ */

static uint64_t mixed(uint64_t value) {
  value = (value ^ (value >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  value = (value ^ (value >> 27)) * UINT64_C(0x94D049BB133111EB);
  return value ^ (value >> 31);
}

/* Shards weigh 2^18 to 5 * 2^18, or all the same; the cuts are the rounded sums, so they always end at `rows`. Where there are
 * rows enough each shard gets one in advance and none is empty. */
static void cut_rows(int64_t rows, int64_t shards, int64_t seed, int uniform, int64_t *cuts) {
  int64_t each = !uniform && rows >= shards ? 1 : 0, shared = rows - each * shards;
  int64_t sum = 0;
  cuts[0] = 0;
  for (int64_t i = 0; i < shards; i++) {
    uint64_t random = mixed(mixed((uint64_t)seed + UINT64_C(0x9E3779B97F4A7C15)) + (uint64_t)i);
    sum += uniform ? 1 : (INT64_C(1) << 18) + (int64_t)(random >> 44);
    cuts[i + 1] = sum;
  }
  for (int64_t i = 1; i <= shards; i++) {
    cuts[i] = (int64_t)((__int128)shared * cuts[i] / sum) + each * i;
  }
}

/* ---- one shard ----------------------------------------------------------------------------------------------------------- */

static tegula_status make_array(const write_work *work, const int64_t *shape, tegula_array **out) {
  tegula_tiling *tiling = NULL;
  tegula_error *error = &work->job->error;
  tegula_status status = tegula_tiling_even(shape, work->shape.ndim, 0, 1, 1, &tiling, error);
  if (status == TEGULA_OK) {
    status = tegula_array_create(work->job->context, work->dtype, tiling, NULL, out, error);
  }
  tegula_tiling_destroy(tiling);
  return status;
}

static tegula_status fill_array(const write_work *work, const tegula_array *array, int64_t first_row) {
  tegula_view view;
  tegula_error *error = &work->job->error;
  tegula_status status = tegula_array_view(array, 0, &view, error);
  if (status != TEGULA_OK) {
    return status;
  }
  view.box.lo[0] += first_row;
  view.box.hi[0] += first_row;
  return tegula_demo_fill(work->job->context, &view, work->shape.length, work->values, (uint64_t)work->job->settings.seed, error);
}

static tegula_status save_array(const write_work *work, const tegula_array *array, const char *path) {
  tegula_save_options options;
  tegula_save_options_init(&options);
  options.format = work->suffix;
  options.byte_order = work->dtype.order == '>' ? '>' : '<';
  options.progress = job_progress;
  options.progress_state = work->job;
  return tegula_save(array, path, &options, &work->job->error);
}

static tegula_status write_shard(write_work *work, int64_t index) {
  int64_t shape[TEGULA_MAX_DIMS];
  memcpy(shape, work->shape.length, sizeof shape);
  shape[0] = work->cuts[index + 1] - work->cuts[index];
  tegula_array *array = NULL;
  tegula_status status = make_array(work, shape, &array);
  if (status == TEGULA_OK) {
    status = fill_array(work, array, work->cuts[index]);
  }
  if (status == TEGULA_OK) {
    status = job_check(work->job);
  }
  if (status == TEGULA_OK) {
    status = save_array(work, array, shard_path(work, index));
    work->done += status == TEGULA_OK;
  }
  tegula_array_destroy(array);
  return status;
}

/* ---- all of them --------------------------------------------------------------------------------------------------------- */

/* {name, size} of each shard. NULL with the reason in job->error. */
static json_t *list_files(const write_work *work) {
  json_t *files = json_array();
  for (int64_t i = 0; i < work->done; i++) {
    const char *path = shard_path(work, i);
    struct stat info;
    if (lstat(path, &info) != 0) {
      report_fail_os(&work->job->error, path, errno, NULL, "could not look at %s after writing it", path);
      json_decref(files);
      return NULL;
    }
    int failed =
      json_array_append_new(files, json_pack("{s:s, s:I}", "name", strrchr(path, '/') + 1, "size", (json_int_t)info.st_size));
    if (failed) {
      report_fail(&work->job->error, TEGULA_OUT_OF_MEMORY, NULL, "could not list the files of %s: no memory", work->dir);
      json_decref(files);
      return NULL;
    }
  }
  return files;
}

static tegula_status write_side_file(const write_work *work) {
  json_t *files = list_files(work);
  if (files == NULL) {
    return work->job->error.status;
  }
  json_t *content =
    json_pack("{s:s, s:s, s:o, s:o, s:I, s:o}", "format", work->suffix, "values",
              work->values == TEGULA_VALUES_RAMP ? "ramp" : "random", "shape", report_shape(work->shape.length, work->shape.ndim),
              "dtype", report_dtype(work->dtype), "seed", (json_int_t)work->job->settings.seed, "files", files);
  tegula_status status = side_file_write(work->dir, content, &work->job->error);
  json_decref(content);
  return status;
}

/* Made before the side file: when there is no memory for it, nothing has been finished. */
static tegula_status make_report(cli_job *job, const write_work *work) {
  if (!job->settings.json) {
    return TEGULA_OK;
  }
  job->report = json_pack("{s:o, s:I, s:o, s:o, s:I}", "dir", report_text(work->dir), "files", (json_int_t)work->done, "shape",
                          report_shape(work->shape.length, work->shape.ndim), "dtype", report_dtype(work->dtype), "seed",
                          (json_int_t)job->settings.seed);
  return job->report != NULL ? TEGULA_OK : report_no_memory(&job->error);
}

static void print_report(const cli_job *job, const write_work *work) {
  char shape[REPORT_TEXT], dtype[TEGULA_DTYPE_TEXT];
  tegula_dtype_format(work->dtype, dtype);
  printf("wrote   %" PRId64 " %s files: shape %s, dtype %s, seed %" PRId64 "\n", work->done, work->suffix,
         report_shape_text(work->shape.length, work->shape.ndim, shape), dtype, job->settings.seed);
}

static tegula_status write_all(write_work *work) {
  const cli_settings *values = &work->job->settings;
  int64_t bytes = work->dtype.item_size;
  for (int32_t axis = 0; axis < work->shape.ndim; axis++) {
    if (__builtin_mul_overflow(bytes, work->shape.length[axis], &bytes)) {
      return report_usage(&work->job->error, "write", "option --shape: the array would have more than 2^63 bytes");
    }
  }
  tegula_status status = make_folders(work);
  if (status == TEGULA_OK) {
    status = check_empty(work);
  }
  if (status != TEGULA_OK) {
    return status;
  }
  job_phase(work->job, bytes);
  for (int64_t i = 0; i < values->num_shards && status == TEGULA_OK; i++) {
    status = write_shard(work, i);
    int64_t rows = work->shape.length[0];
    job_advance(work->job, rows > 0 ? bytes / rows * (work->cuts[i + 1] - work->cuts[i]) : 0);
  }
  job_phase_end(work->job);
  if (status == TEGULA_OK) {
    status = make_report(work->job, work);
  }
  return status == TEGULA_OK ? write_side_file(work) : status;
}

/* The settings as values: dtype, shape, values, cuts. */
static tegula_status prepare(write_work *work) {
  const cli_settings *values = &work->job->settings;
  tegula_status status =
    tegula_dtype_parse(values->dtype != NULL ? values->dtype : DEFAULT_DTYPE, &work->dtype, &work->job->error);
  if (status != TEGULA_OK) {
    return status;
  }
  work->shape = values->shape.ndim >= 0 ? values->shape : (shape_value){.ndim = 2, .length = {1000000, 16}};
  if (work->shape.ndim == 0) {
    return report_usage(&work->job->error, "write", "option --shape: shards need at least one axis, found ()");
  }
  work->suffix = values->format != NULL ? values->format : "npy";
  work->values = strcmp(values->values, "ramp") == 0 ? TEGULA_VALUES_RAMP : TEGULA_VALUES_RANDOM;
  int digits = snprintf(NULL, 0, "%" PRId64, values->num_shards - 1);
  work->name_digits = digits > 4 ? digits : 4;
  work->cuts = calloc((size_t)values->num_shards + 1, sizeof *work->cuts);
  work->path = malloc(strlen(work->dir) + SHARD_NAME);
  if (work->cuts == NULL || work->path == NULL) {
    return report_fail(&work->job->error, TEGULA_OUT_OF_MEMORY, NULL, "could not plan %" PRId64 " shards: no memory",
                       values->num_shards);
  }
  cut_rows(work->shape.length[0], values->num_shards, values->seed, values->uniform, work->cuts);
  return TEGULA_OK;
}

tegula_status write_shards(cli_job *job, const char *dir) {
  write_work work = {.job = job, .dir = dir};
  tegula_status status = prepare(&work);
  if (status == TEGULA_OK) {
    status = write_all(&work);
    if (status != TEGULA_OK) {
      remove_all(&work);
      json_decref(job->report);
      job->report = NULL;
    } else if (!job->settings.json && !job->settings.quiet) {
      print_report(job, &work);
    }
  }
  free(work.cuts);
  free(work.path);
  free(work.made);
  free(work.made_length);
  return status;
}

static tegula_status run_write(cli_job *job) {
  return write_shards(job, job->settings.paths[0]);
}

#define FIELD(name) offsetof(cli_settings, name)

static const cli_option write_rows[] = {
  {"num-shards", "N", "number of files (default 8)", FIELD(num_shards), 1, MAX_SHARDS, OPTION_INTEGER, 0},
  {"shape", "N,N,..", "shape of the whole array (default 1000000,16)", FIELD(shape), 0, INT64_MAX, OPTION_SHAPE, 0},
  {"dtype", "DTYPE", "numbers, bool, complex; bfloat16 as raw (default f4)", FIELD(dtype), 0, 0, OPTION_DTYPE, 0},
  {"seed", "S", "the values and the uneven cuts follow from it (default 0)", FIELD(seed), 0, INT64_MAX, OPTION_INTEGER, 0},
  {"format", "npy|raw", "default npy", FIELD(format), 0, 0, OPTION_CHOICE, 0},
  {"uniform", NULL, "the same number of rows in each file, or nearly so", FIELD(uniform), 0, 0, OPTION_FLAG, 0},
  {"values", "random|ramp", "ramp: the element's index modulo 1000", FIELD(values), 0, 0, OPTION_CHOICE, 0},
};

static const option_group write_group = {"What is written", write_rows, sizeof write_rows / sizeof write_rows[0]};

const cli_command write_command = {
  .name = "write",
  .summary = "make demonstration shards",
  .paths = "DIR",
  .description = "Makes the folder DIR with shard_0000.npy, shard_0001.npy, ... whose numbers of rows differ. The array that\n"
                 "they hold together depends on shape, dtype, values and seed only, so that `tegula load DIR --check-seed S`\n"
                 "can tell whether each value is right. The list of files is left in DIR/" SIDE_FILE " for `tegula clean`.\n"
                 "A DIR that has anything in it is refused.\n\n"
                 "With --json: dir, files, shape, dtype, seed.\n",
  .examples = "  tegula write shards\n"
              "  tegula write shards --num-shards 32 --shape 131072,1024 --dtype f4 --seed 7\n"
              "  tegula write raw --format raw --dtype '>i2' --shape 1000,64\n"
              "  tegula load raw --format raw --dtype '>i2' --row-shape 64 --check-seed 0\n",
  .min_paths = 1,
  .max_paths = 1,
  .groups = {&write_group, &options_common, NULL},
  .run = run_write,
};
