/* `tegula verify`: is everything there and readable? All problems, not the first one only.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * When the files cannot be opened as one array, that is a problem too, and each file is then
 * verified by itself, so that one bad header does not hide the other damage. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli_report.h"
#include "commands.h"
#include "launch_ranks.h"

typedef struct verify_work {
  cli_job *job;
  tegula_verify_level level;
  tegula_verify_report sum;
  json_t *problems;
  int32_t content;    /* with --against: 1: the same, 0: another, -1: not known */
  int lost;           /* for lack of memory: `problems` is not all of them */
  tegula_error first; /* problem */
} verify_work;

static const char *level_name(const cli_job *job) {
  return job->settings.level != NULL ? job->settings.level : "decode";
}

static tegula_verify_level level_of(const char *name) {
  return strcmp(name, "sizes") == 0       ? TEGULA_VERIFY_SIZES
         : strcmp(name, "checksums") == 0 ? TEGULA_VERIFY_CHECKSUMS
                                          : TEGULA_VERIFY_DECODE;
}

static json_t *problem_object(const tegula_error *problem) {
  return json_pack("{s:s, s:o, s:o, s:o}", "status", tegula_status_name(problem->status), "path",
                   report_text_or_null(problem->path), "offset",
                   problem->offset >= 0 ? json_integer(problem->offset) : json_null(), "message",
                   report_text(problem->message));
}

/* A tegula_problem_fn. */
static void add_problem(void *state, const tegula_error *problem) {
  verify_work *work = state;
  if (json_array_size(work->problems) == 0) {
    work->first = *problem;
  }
  if (json_array_append_new(work->problems, problem_object(problem)) != 0) {
    work->lost = 1;
  }
}

/* Does the status say that something is wrong with what is stored? Otherwise the command itself
 * failed. */
static int is_problem(tegula_status status) {
  switch (status) {
    case TEGULA_NOT_FOUND:
    case TEGULA_PERMISSION:
    case TEGULA_IO:
    case TEGULA_SHORT_FILE:
    case TEGULA_CHANGED:
    case TEGULA_CORRUPT:
    case TEGULA_UNSUPPORTED:
    case TEGULA_MISMATCH:
    case TEGULA_INCOMPLETE:
      return 1;
    default:
      return 0;
  }
}

/* Problems are noted; anything else is returned. */
static tegula_status verify_dataset(verify_work *work, tegula_dataset *dataset) {
  cli_job *job = work->job;
  tegula_verify_report report;
  tegula_load_options options;
  tegula_verify_report_init(&report);
  tegula_load_options_init(&options);
  options.progress = job_progress;
  options.progress_state = job;
  tegula_status status = tegula_dataset_verify(dataset, work->level, add_problem, work, &options,
                                               &report, &job->error);
  work->sum.files += report.files;
  work->sum.chunks += report.chunks;
  work->sum.bytes += report.bytes;
  return is_problem(status) ? TEGULA_OK : status;
}

/* ---- each file by itself ---- */

/* Is there a problem of the same file, or with the same message, already? */
static int is_known(const verify_work *work, const tegula_error *problem) {
  size_t index;
  json_t *known, *message = report_text(problem->message), *path = report_text(problem->path);
  int found = 0;
  json_array_foreach(work->problems, index, known) {
    found = found || json_equal(json_object_get(known, "message"), message) ||
            json_equal(json_object_get(known, "path"), path);
  }
  json_decref(message);
  json_decref(path);
  return found;
}

static tegula_status verify_file(verify_work *work, const char *path) {
  tegula_dataset *dataset = NULL;
  tegula_status status = open_alone(work->job, path, &dataset);
  if (status == TEGULA_OK) {
    status = verify_dataset(work, dataset);
  } else if (is_problem(status)) {
    work->sum.files++;
    add_problem(work, &work->job->error);
    status = TEGULA_OK;
  }
  tegula_dataset_close(dataset);
  return status == TEGULA_OK ? job_check(work->job) : status;
}

/* A tegula_path_fn. */
static tegula_status visit_file(void *state, const char *path, tegula_error *err) {
  (void)err; /* it is the job's */
  return verify_file(state, path);
}

/* What could not be looked through is a problem too: damage in it is not named. That nothing is
 * there has been said. */
static tegula_status verify_all(verify_work *work, const char *path) {
  tegula_status status = tegula_find_files(path, visit_file, work, &work->job->error);
  if (!is_problem(status)) {
    return status;
  }
  if (!is_known(work, &work->job->error)) {
    add_problem(work, &work->job->error);
  }
  return TEGULA_OK;
}

static tegula_status verify_each(verify_work *work) {
  const cli_settings *values = &work->job->settings;
  if (values->path_count == 1) {
    return verify_all(work, values->paths[0]);
  }
  tegula_status status = TEGULA_OK;
  for (size_t i = 0; i < values->path_count && status == TEGULA_OK; i++) {
    status = verify_file(work, values->paths[i]);
  }
  return status;
}

/* What keeps the files from being one array comes first, unless a file of its own says it too. */
static tegula_status verify_what_does_not_open(verify_work *work) {
  tegula_error whole = work->job->error;
  tegula_status status = verify_each(work);
  if (status != TEGULA_OK) {
    return status;
  }
  if (!is_known(work, &whole)) {
    work->first = whole;
    work->lost |= json_array_insert_new(work->problems, 0, problem_object(&whole)) != 0;
  }
  return TEGULA_OK;
}

/* ---- sums ---- */

/* What was gone through to make the sums. */
static tegula_status count_all(verify_work *work, const tegula_dataset *dataset) {
  tegula_dataset_info_t info;
  tegula_dataset_info_init(&info);
  tegula_status status = tegula_dataset_info(dataset, &info, &work->job->error);
  work->sum.files = info.files;
  work->sum.chunks = info.chunks;
  return status;
}

/* Nothing is written unless everything could be read; else all is looked through for problems. */
static tegula_status write_sums(verify_work *work, tegula_dataset *dataset) {
  cli_job *job = work->job;
  char *text = NULL;
  tegula_statistics statistics;
  tegula_statistics_init(&statistics);
  tegula_status status = sums_make(job, dataset, work->level, &statistics, &text);
  if (is_problem(status)) {
    tegula_error problem = job->error;
    status = verify_dataset(work, dataset);
    if (status == TEGULA_OK && !is_known(work, &problem)) {
      add_problem(work, &problem);
    }
    return status;
  }
  if (status == TEGULA_OK) {
    status = ranks_sum(job, &statistics, &(int64_t){0});
  }
  work->sum.bytes = statistics.bytes_read;
  if (status == TEGULA_OK) {
    status = count_all(work, dataset);
  }
  if (status == TEGULA_OK && !job->silent) {
    status = whole_write(job->settings.write, text, &job->error);
  }
  tegula_free(text);
  return status;
}

/* `dataset`: NULL where it does not open. A failure without a problem is one of the command: the
 * sums cannot be read, say. */
static tegula_status check_sums(verify_work *work, tegula_dataset *dataset) {
  cli_job *job = work->job;
  tegula_sums_report report;
  tegula_load_options options;
  tegula_sums_report_init(&report);
  tegula_load_options_init(&options);
  options.progress = job_progress;
  options.progress_state = job;
  tegula_status status =
      tegula_sums_check(job->context, job->settings.against, dataset, work->level, add_problem,
                        work, &options, &report, &job->error);
  work->sum.files = report.files;
  work->sum.chunks = report.chunks;
  work->sum.bytes += report.bytes;
  work->content = report.content;
  return report.problems > 0 && is_problem(status) ? TEGULA_OK : status;
}

static tegula_status look_at_dataset(verify_work *work, tegula_dataset *dataset) {
  const cli_settings *values = &work->job->settings;
  return values->write != NULL     ? write_sums(work, dataset)
         : values->against != NULL ? check_sums(work, dataset)
                                   : verify_dataset(work, dataset);
}

static tegula_status look_at_what_does_not_open(verify_work *work) {
  tegula_status status = verify_what_does_not_open(work);
  return status == TEGULA_OK && work->job->settings.against != NULL ? check_sums(work, NULL)
                                                                    : status;
}

/* ---- the command ---- */

/* NULL: it was not compared. */
static const char *content_text(const verify_work *work) {
  return work->content < 0 ? NULL : work->content != 0 ? "same" : "different";
}

static void print_text(const verify_work *work) {
  char bytes[32];
  size_t index, count = json_array_size(work->problems);
  json_t *problem;
  json_array_foreach(work->problems, index, problem) {
    printf("problem %s", json_string_value(json_object_get(problem, "status")));
    report_line(stdout, ": ", json_string_value(json_object_get(problem, "message")));
  }
  printf("checked %" PRId64 " file%s (%s), %s read: %zu problem%s\n", work->sum.files,
         work->sum.files == 1 ? "" : "s", level_name(work->job),
         report_bytes_text((double)work->sum.bytes, bytes), count, count == 1 ? "" : "s");
  if (work->job->settings.against != NULL) {
    printf("content %s\n", content_text(work) != NULL ? content_text(work) : "not compared");
  }
  if (work->job->settings.write != NULL) {
    report_line(stdout, count == 0 ? "sums written to " : "sums not written to ",
                work->job->settings.write);
  }
}

/* Adds what --write and --against have to say. */
static int add_sums(verify_work *work) {
  const cli_settings *values = &work->job->settings;
  const char *path = values->write != NULL ? values->write : values->against;
  const char *content = content_text(work);
  if (path == NULL) {
    return 0;
  }
  int failed = json_object_set_new(work->job->report, "sums", report_text(path)) != 0;
  if (values->against != NULL) {
    failed |= json_object_set_new(work->job->report, "content",
                                  content != NULL ? json_string(content) : json_null()) != 0;
  }
  return failed;
}

static tegula_status conclude(verify_work *work) {
  cli_job *job = work->job;
  if (work->lost) {
    return report_fail(&job->error, TEGULA_OUT_OF_MEMORY, NULL,
                       "could not note all problems: no memory");
  }
  if (job->settings.json) {
    job->report = json_pack("{s:s, s:I, s:I, s:I, s:O}", "level", level_name(job), "files",
                            (json_int_t)work->sum.files, "chunks", (json_int_t)work->sum.chunks,
                            "bytes", (json_int_t)work->sum.bytes, "problems", work->problems);
    if (job->report == NULL || add_sums(work)) {
      return report_fail(&job->error, TEGULA_OUT_OF_MEMORY, NULL,
                         "could not make the report: no memory");
    }
  } else if (!job->settings.quiet && !job->silent) {
    print_text(work);
  }
  if (json_array_size(work->problems) == 0) {
    return TEGULA_OK;
  }
  job->check_failed = 1;
  job->error = work->first;
  return job->error.status;
}

static tegula_status run_verify(cli_job *job) {
  verify_work work = {
      .job = job, .level = level_of(level_name(job)), .content = -1, .problems = json_array()};
  tegula_dataset *dataset = NULL;
  tegula_status status = open_check_settings(job);
  if (status == TEGULA_OK) {
    status = sums_check_settings(job);
  }
  if (status == TEGULA_OK) {
    status = open_dataset(job, 0, NULL, &dataset);
    job_phase(job, 0);
    status = status == TEGULA_OK  ? look_at_dataset(&work, dataset)
             : is_problem(status) ? look_at_what_does_not_open(&work)
                                  : status;
    job_phase_end(job);
  }
  if (status == TEGULA_OK) {
    status = conclude(&work);
  }
  json_decref(work.problems);
  tegula_dataset_close(dataset);
  return status;
}

#define FIELD(name) offsetof(cli_settings, name)

static const cli_option verify_rows[] = {
    {"level", "sizes|checksums|decode", "how closely to look (default decode)", FIELD(level), 0, 0,
     OPTION_CHOICE, 0},
    {"write", "SUMS.json",
     "keep digests of all files and chunks, and the content hash, in this file", FIELD(write), 0, 0,
     OPTION_TEXT, 0},
    {"against", "SUMS.json", "compare with such a file: each file, chunk and the content",
     FIELD(against), 0, 0, OPTION_TEXT, 0},
    {"overwrite", NULL, "with --write: replace older sums", FIELD(overwrite), 0, 0, OPTION_FLAG, 0},
};

static const option_group verify_group = {"How it is verified", verify_rows,
                                          sizeof verify_rows / sizeof verify_rows[0]};

const cli_command verify_command = {
    .name = "verify",
    .summary = "say whether everything is there and readable, and name all that is not",
    .paths = "PATH...",
    .description =
        "Opens the PATHs as load does and goes through all files, on after a problem, so that one "
        "run names all of them:\n"
        "files that are missing, short, changed or unreadable, holes in the numbering, headers "
        "that do not fit together.\n"
        "Levels: sizes looks at names, sizes and headers; checksums also checks checksums where "
        "the format has them\n"
        "(npy and raw have none); decode also reads every byte. Of each file one problem is named. "
        "Status 3 when there\n"
        "is any.\n\n"
        "--write keeps digests (XXH3-128) of every file and every stored chunk, and the content "
        "hash (not with --level\n"
        "checksums), unless there is a problem. --against looks at the same again: what is "
        "missing, has another size, holds\n"
        "other bytes (in which block, in which chunk), or was added; sizes compares sizes only, "
        "checksums does not look at\n"
        "the content. Where files differ and the content is the same, it says so; that is status "
        "3, too. The file may not\n"
        "lie in the folder of shards that it speaks of, unless its name begins with . or _.\n\n"
        "With --json: level, files, chunks, bytes (read), problems [{status, path, offset, "
        "message}]; sums with --write and\n"
        "--against; content (same, different, or null) with --against.\n",
    .examples =
        "  tegula verify shards                           read everything\n"
        "  tegula verify shards --level sizes             quick: names, sizes and headers only\n"
        "  tegula verify 'run42/part_*.npy' --expect-files 128\n"
        "                                                 a lost last file is a problem too\n"
        "  tegula verify shards --write sums.json         keep digests, and later:\n"
        "  tegula verify shards --against sums.json       which files, blocks and chunks changed\n",
    .min_paths = 1,
    .max_paths = SIZE_MAX,
    .groups = {&verify_group, &options_files, &options_raw, &options_common, NULL},
    .run = run_verify,
    .on_ranks = RANKS_ALL,
};
