/* `tegula write`: demonstration shards with uneven numbers of rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The array depends on shape, dtype, values and seed only; the cuts on seed, rows and number of
 * shards. The folder gets its name when everything is in it (write_folder.c); a failure or an
 * interruption leaves nothing behind, parent folders included. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli_report.h"
#include "commands.h"

#define DEFAULT_DTYPE "f4"

const char *write_suffix(const char *format) {
  return strcmp(format, "hdf5") == 0                                ? "h5"
         : strcmp(format, "npy") == 0 || strcmp(format, "raw") == 0 ? format
                                                                    : NULL;
}

/* What is to be written, and what is there already. */
typedef struct write_work {
  cli_job *job;
  target_folder target;
  const char *format, *suffix;
  tegula_dtype dtype;
  shape_value shape;
  tegula_values values;
  int name_digits;
  int64_t done;  /* shards that exist */
  int64_t *cuts; /* num_shards + 1 rows: shard i holds [cuts[i], cuts[i + 1]) */
} write_work;

#define SHARD_NAME 64

static const char *shard_name(const write_work *work, int64_t index, char out[SHARD_NAME]) {
  snprintf(out, SHARD_NAME, "shard_%0*" PRId64 ".%s", work->name_digits, index, work->suffix);
  return out;
}

static void remove_shards(const write_work *work) {
  char name[SHARD_NAME];
  for (int64_t i = 0; i < work->done; i++) {
    unlinkat(work->target.fd, shard_name(work, i, name), 0);
  }
}

static char *shard_path(const write_work *work, int64_t index) {
  char *path = NULL, name[SHARD_NAME];
  return asprintf(&path, "%s/%s", work->target.staging, shard_name(work, index, name)) < 0 ? NULL
                                                                                           : path;
}

/* ---- the cuts ---- */

static uint64_t mixed(uint64_t value) {
  value = (value ^ (value >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  value = (value ^ (value >> 27)) * UINT64_C(0x94D049BB133111EB);
  return value ^ (value >> 31);
}

/* Shards weigh 2^18 to 5 * 2^18, or all the same; the cuts are the rounded sums, so they always end
 * at `rows`. Where there are rows enough each shard gets one in advance and none is empty. */
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

/* ---- one shard ---- */

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

static tegula_status fill_array(const write_work *work, const tegula_array *array,
                                int64_t first_row) {
  tegula_view view;
  tegula_error *error = &work->job->error;
  tegula_status status = tegula_array_view(array, 0, &view, error);
  if (status != TEGULA_OK) {
    return status;
  }
  view.box.lo[0] += first_row;
  view.box.hi[0] += first_row;
  return tegula_demo_fill(work->job->context, &view, work->shape.length, work->values,
                          (uint64_t)work->job->settings.seed, error);
}

static tegula_status save_array(const write_work *work, const tegula_array *array,
                                const char *path) {
  tegula_save_options options;
  tegula_save_options_init(&options);
  options.format = work->format;
  options.byte_order = work->dtype.order == '>' ? '>' : '<';
  options.progress = job_progress;
  options.progress_state = work->job;
  return tegula_save(array, path, &options, &work->job->error);
}

static tegula_status write_shard(write_work *work, int64_t index) {
  int64_t shape[TEGULA_MAX_DIMS];
  memcpy(shape, work->shape.length, sizeof shape);
  shape[0] = work->cuts[index + 1] - work->cuts[index];
  char *path = shard_path(work, index);
  if (path == NULL) {
    return report_fail(&work->job->error, TEGULA_OUT_OF_MEMORY, NULL,
                       "could not name shard %" PRId64 ": no memory", index);
  }
  tegula_array *array = NULL;
  tegula_status status = make_array(work, shape, &array);
  if (status == TEGULA_OK) {
    status = fill_array(work, array, work->cuts[index]);
  }
  if (status == TEGULA_OK) {
    status = job_check(work->job);
  }
  if (status == TEGULA_OK) {
    status = save_array(work, array, path);
    work->done += status == TEGULA_OK;
  }
  tegula_array_destroy(array);
  free(path);
  return status;
}

/* ---- all of them ---- */

/* {name, size} of each shard, appended to `files`. */
static tegula_status list_files(const write_work *work, json_t *files) {
  for (int64_t i = 0; i < work->done; i++) {
    char name[SHARD_NAME];
    struct stat info;
    if (fstatat(work->target.fd, shard_name(work, i, name), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      return report_fail_os(&work->job->error, work->target.dir, errno, NULL,
                            "could not look at %s of %s after writing it", name, work->target.dir);
    }
    json_array_append_new(files,
                          json_pack("{s:s, s:I}", "name", name, "size", (json_int_t)info.st_size));
  }
  return TEGULA_OK;
}

static tegula_status write_side_file(const write_work *work) {
  json_t *files = json_array();
  tegula_status status = list_files(work, files);
  json_t *content = json_pack("{s:s, s:s, s:o, s:o, s:I, s:o}", "format", work->format, "values",
                              work->values == TEGULA_VALUES_RAMP ? "ramp" : "random", "shape",
                              report_shape(work->shape.length, work->shape.ndim), "dtype",
                              report_dtype(work->dtype), "seed",
                              (json_int_t)work->job->settings.seed, "files", files);
  if (status == TEGULA_OK) {
    status = side_file_write(work->target.fd, work->target.dir, content, &work->job->error);
  }
  json_decref(content);
  return status;
}

static tegula_status write_all(write_work *work) {
  const cli_settings *values = &work->job->settings;
  int64_t bytes = work->dtype.item_size;
  for (int32_t axis = 0; axis < work->shape.ndim; axis++) {
    if (__builtin_mul_overflow(bytes, work->shape.length[axis], &bytes)) {
      return report_usage(&work->job->error, "write",
                          "option --shape: the array would have more than 2^63 bytes");
    }
  }
  tegula_status status = target_begin(&work->target, work->target.dir, &work->job->error);
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
  return status == TEGULA_OK ? write_side_file(work) : status;
}

/* The settings as values: dtype, shape, values, cuts. */
static tegula_status prepare(write_work *work) {
  const cli_settings *values = &work->job->settings;
  tegula_status status = tegula_dtype_parse(values->dtype != NULL ? values->dtype : DEFAULT_DTYPE,
                                            &work->dtype, &work->job->error);
  if (status != TEGULA_OK) {
    return status;
  }
  work->shape =
      values->shape.ndim >= 0 ? values->shape : (shape_value){.ndim = 2, .length = {1000000, 16}};
  if (work->shape.ndim == 0) {
    return report_usage(&work->job->error, "write",
                        "option --shape: shards need at least one axis, found ()");
  }
  work->format = values->format != NULL ? values->format : "npy";
  work->suffix = write_suffix(work->format);
  work->values = strcmp(values->values, "ramp") == 0 ? TEGULA_VALUES_RAMP : TEGULA_VALUES_RANDOM;
  int digits = snprintf(NULL, 0, "%" PRId64, values->num_shards - 1);
  work->name_digits = digits > 4 ? digits : 4;
  work->cuts = calloc((size_t)values->num_shards + 1, sizeof *work->cuts);
  if (work->cuts == NULL) {
    return report_fail(&work->job->error, TEGULA_OUT_OF_MEMORY, NULL,
                       "could not plan %" PRId64 " shards: no memory", values->num_shards);
  }
  cut_rows(work->shape.length[0], values->num_shards, values->seed, values->uniform, work->cuts);
  return TEGULA_OK;
}

static json_t *write_object(const write_work *work) {
  return json_pack("{s:o, s:I, s:o, s:o, s:I}", "dir", report_text(work->target.dir), "files",
                   (json_int_t)work->done, "shape",
                   report_shape(work->shape.length, work->shape.ndim), "dtype",
                   report_dtype(work->dtype), "seed", (json_int_t)work->job->settings.seed);
}

static void print_write(const write_work *work) {
  char shape[REPORT_TEXT], dtype[TEGULA_DTYPE_TEXT];
  tegula_dtype_format(work->dtype, dtype);
  printf("wrote   %" PRId64 " %s files: shape %s, dtype %s, seed %" PRId64 "\n", work->done,
         work->format, report_shape_text(work->shape.length, work->shape.ndim, shape), dtype,
         work->job->settings.seed);
}

/* The report is made before the folder gets its name: after that only printing can fail. */
static tegula_status publish(write_work *work) {
  cli_job *job = work->job;
  json_t *object = job->settings.json ? write_object(work) : NULL;
  tegula_status status = report_memory(&job->error);
  if (status == TEGULA_OK) {
    status = target_publish(&work->target, &job->error);
  }
  if (status != TEGULA_OK) {
    json_decref(object);
    return status;
  }
  job->report = object;
  if (object == NULL && !job->settings.quiet) {
    print_write(work);
  }
  return TEGULA_OK;
}

tegula_status write_shards(cli_job *job, const char *dir) {
  write_work work = {.job = job, .target = {.dir = dir, .fd = -1, .place = -1, .mark = -1}};
  tegula_status status = prepare(&work);
  if (status == TEGULA_OK) {
    status = write_all(&work);
  }
  if (status == TEGULA_OK) {
    status = publish(&work);
  }
  if (status != TEGULA_OK) {
    remove_shards(&work);
  }
  target_end(&work.target);
  free(work.cuts);
  return status;
}

static tegula_status run_write(cli_job *job) { return write_shards(job, job->settings.paths[0]); }

#define FIELD(name) offsetof(cli_settings, name)

static const cli_option write_rows[] = {
    {"num-shards", "N", "number of files (default 8)", FIELD(num_shards), 1, MAX_SHARDS,
     OPTION_INTEGER, 0},
    {"shape", "N,N,..", "shape of the whole array (default 1000000,16)", FIELD(shape), 0, INT64_MAX,
     OPTION_SHAPE, 0},
    {"dtype", "DTYPE", "numbers, bool, complex; bfloat16 as raw (default f4)", FIELD(dtype), 0, 0,
     OPTION_DTYPE, 0},
    {"seed", "S", "the values and the uneven cuts follow from it (default 0)", FIELD(seed), 0,
     INT64_MAX, OPTION_INTEGER, 0},
    {"format", "npy|raw|hdf5", "default npy; hdf5: one dataset /data in each file", FIELD(format),
     0, 0, OPTION_CHOICE, 0},
    {"uniform", NULL, "the same number of rows in each file, or nearly so", FIELD(uniform), 0, 0,
     OPTION_FLAG, 0},
    {"values", "random|ramp", "ramp: the element's index modulo 1000", FIELD(values), 0, 0,
     OPTION_CHOICE, 0},
};

static const option_group write_group = {"What is written", write_rows,
                                         sizeof write_rows / sizeof write_rows[0]};

const cli_command write_command = {
    .name = "write",
    .summary = "make demonstration shards",
    .paths = "DIR",
    .description =
        "Makes the folder DIR with shard_0000.npy, shard_0001.npy, ... whose numbers of rows "
        "differ. The array that\n"
        "they hold together depends on shape, dtype, values and seed only, so that `tegula load "
        "DIR --check-seed S`\n"
        "can tell whether each value is right. The list of files is left in DIR/" SIDE_FILE
        " for `tegula clean`.\n"
        "A DIR that has anything in it is refused. The files are written to a folder .tegula-*.tmp "
        "beside DIR,\n"
        "which gets the name DIR when all are there: DIR is never a part of what it should be, "
        "even if tegula is\n"
        "killed; what a killed run leaves is removed by the next one beside it. An empty DIR is "
        "replaced and keeps\n"
        "its mode; the working folder and a mount point cannot be.\n\n"
        "With --json: dir, files, shape, dtype, seed.\n",
    .examples = "  tegula write shards\n"
                "  tegula write shards --num-shards 32 --shape 131072,1024 --dtype f4 --seed 7\n"
                "  tegula write raw --format raw --dtype '>i2' --shape 1000,64\n"
                "  tegula load raw --format raw --dtype '>i2' --row-shape 64 --check-seed 0\n"
                "  tegula write shards --format hdf5 && tegula load shards --check-seed 0\n",
    .min_paths = 1,
    .max_paths = 1,
    .groups = {&write_group, &options_common, NULL},
    .on_ranks = RANKS_FIRST,
    .run = run_write,
};
