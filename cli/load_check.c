/* `--check-seed`: compares what was loaded with the demonstration values and the side file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cli_report.h"
#include "commands.h"

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

static void move_view(tegula_view *view, const tegula_box *box) {
  for (int32_t axis = 0; axis < box->ndim; axis++) {
    view->box.lo[axis] += box->lo[axis];
    view->box.hi[axis] += box->lo[axis];
  }
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
