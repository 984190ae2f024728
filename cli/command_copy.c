/* `tegula copy`: one dataset into another format, layout or cut.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli_report.h"
#include "commands.h"
#include "launch_ranks.h"

#define SMALLEST_MEMORY ((int64_t)1 << 20)

typedef struct copy_work {
  int64_t peak_memory; /* of all ranks */
  load_run run;        /* what was read, as a load has it */
  load_seconds seconds;
  json_t *dropped; /* [{what, name, reason}, ...] */
  int no_memory;   /* for all of them */
  tegula_copy_report report;
} copy_work;

/* ---- before anything is read ---- */

/* The part of `path` that exists, without links; to be freed. NULL: none. */
static char *existing_part(const char *path) {
  char *part = strdup(path), *real = NULL;
  while (part != NULL && (real = realpath(part, NULL)) == NULL) {
    char *slash = strrchr(part, '/');
    if (slash == NULL || slash == part) {
      real = realpath(slash == NULL ? "." : "/", NULL);
      break;
    }
    *slash = '\0';
  }
  free(part);
  return real;
}

/* A folder that is read must not get another file: it would not be the same set any more. */
static tegula_status check_inside(cli_job *job) {
  const char *source = job->settings.paths[0], *target = job->settings.paths[1];
  struct stat info;
  if (stat(source, &info) != 0 || !S_ISDIR(info.st_mode)) {
    return TEGULA_OK;
  }
  char *folder = realpath(source, NULL), *place = existing_part(target);
  size_t size = folder != NULL ? strlen(folder) : 0;
  int inside = folder != NULL && place != NULL && strncmp(folder, place, size) == 0 &&
               (place[size] == '/' || place[size] == '\0');
  /* the library says so */
  int same = inside && place[size] == '\0' && stat(target, &info) == 0 && S_ISDIR(info.st_mode);
  free(folder);
  free(place);
  return inside && !same ? report_usage(&job->error, "copy",
                                        "the target %s would lie in the folder that is copied, %s",
                                        target, source)
                         : TEGULA_OK;
}

static tegula_status check_settings(cli_job *job) {
  const cli_settings *values = &job->settings;
  if (values->tiles > 0 && (values->layout == NULL || strcmp(values->layout, "virtual") != 0)) {
    return report_usage(&job->error, "copy",
                        "option --tiles is for --layout virtual (--shards: a folder of files)");
  }
  tegula_status status = open_check_settings(job);
  return status != TEGULA_OK ? status : check_inside(job);
}

/* ---- the copy ---- */

/* The source, as one tile. */
static tegula_status open_source(cli_job *job, copy_work *work) {
  load_run *run = &work->run;
  tegula_open_options options;
  open_fill_options(job, &run->statistics, &options);
  tegula_status status = tegula_dataset_open(job->context, job->settings.paths[0], &options,
                                             &run->dataset, &job->error);
  if (status != TEGULA_OK) {
    return status;
  }
  tegula_dataset_info_init(&run->info);
  status = tegula_dataset_info(run->dataset, &run->info, &job->error);
  if (status != TEGULA_OK) {
    return status;
  }
  run->bytes = run->info.bytes;
  run->box.ndim = run->info.ndim;
  memcpy(run->box.hi, run->info.shape, sizeof run->box.hi);
  int64_t tiles = job->settings.tiles > 0 ? job->settings.tiles : 1;
  return tegula_tiling_even(run->info.shape, run->info.ndim, 0, tiles, job->ranks, &run->tiling,
                            &job->error);
}

/* What the library leaves out; a tegula_dropped_fn. */
static void take_dropped(void *state, const char *what, const char *name, const char *reason) {
  copy_work *work = state;
  json_t *one =
      json_pack("{s:s, s:o, s:s}", "what", what, "name", report_text(name), "reason", reason);
  work->no_memory =
      one == NULL || json_array_append_new(work->dropped, one) != 0 || work->no_memory;
}

static void fill_save_options(cli_job *job, copy_work *work, tegula_save_options *options) {
  const cli_settings *values = &job->settings;
  tegula_save_options_init(options);
  options->format = values->to_format;
  options->shards = values->shards;
  options->overwrite = values->overwrite != 0;
  options->durable = values->durable != 0;
  options->progress = job_progress;
  options->progress_state = job;
  options->statistics = &work->run.statistics;
  options->settings = options_settings(&job->settings.to_set);
  options->setting_count = values->to_set.count;
  options->dataset = values->to_dataset;
  options->layout = values->layout;
  options->chunk = values->chunk_shape.ndim >= 0 ? values->chunk_shape.length : NULL;
  options->chunk_ndim = values->chunk_shape.ndim >= 0 ? values->chunk_shape.ndim : 0;
  options->codec = values->codec != NULL && strcmp(values->codec, "none") == 0 ? "" : values->codec;
}

static tegula_status copy_dataset(cli_job *job, copy_work *work) {
  const cli_settings *values = &job->settings;
  tegula_save_options options;
  tegula_copy_options copy_options;
  fill_save_options(job, work, &options);
  tegula_copy_options_init(&copy_options);
  copy_options.memory = values->memory;
  copy_options.tiles = values->tiles;
  copy_options.missing = open_missing(values);
  copy_options.flags = TEGULA_COPY_ALONG | (values->verify ? TEGULA_COPY_VERIFY : 0) |
                       (values->strict ? TEGULA_COPY_STRICT : 0);
  copy_options.dropped = take_dropped;
  copy_options.dropped_state = work;
  tegula_copy_report_init(&work->report);
  job_phase(job, 0);
  tegula_status status = tegula_copy(work->run.dataset, values->paths[1], &options, &copy_options,
                                     &work->report, &job->error);
  job_phase_end(job);
  /* with all its sources */
  return status != TEGULA_OK ? status
                             : tegula_dataset_info(work->run.dataset, &work->run.info, &job->error);
}

/* ---- report ---- */

static json_t *copy_object(const cli_job *job, const copy_work *work) {
  const char *hash = work->report.hash[0] != '\0' ? work->report.hash : NULL;
  load_summary summary = {.run = &work->run,
                          .seconds = work->seconds,
                          .hash = hash,
                          .ranks = job->ranks,
                          .peak_memory = work->peak_memory};
  json_t *object = load_report_object(&summary, NULL);
  int failed =
      object == NULL ||
      json_object_set_new(object, "path", report_text(job->settings.paths[1])) != 0 ||
      json_object_set_new(object, "stored_bytes", json_integer(work->report.stored_bytes)) != 0 ||
      json_object_set(object, "dropped", work->dropped) != 0;
  if (failed) {
    json_decref(object);
    return NULL;
  }
  return object;
}

/* One line for each: what, its name, why. */
static void print_dropped(const json_t *dropped) {
  const json_t *one;
  size_t index;
  json_array_foreach(dropped, index, one) {
    const char *name = json_string_value(json_object_get(one, "name")),
               *what = json_string_value(json_object_get(one, "what"));
    char *line = NULL;
    int size =
        asprintf(&line, "%s%s%s: %s", what, name != NULL ? " " : "", name != NULL ? name : "",
                 json_string_value(json_object_get(one, "reason")));
    report_line(stdout, "dropped ", size >= 0 ? line : what);
    free(size >= 0 ? line : NULL);
  }
}

static void print_copy(const cli_job *job, const copy_work *work) {
  const load_run *run = &work->run;
  char shape[REPORT_TEXT], dtype[TEGULA_DTYPE_TEXT], bytes[32], stored[32];
  tegula_dtype_format(run->info.dtype, dtype);
  printf("copied  %s of %s: shape %s, dtype %s\n", report_bytes_text((double)run->bytes, bytes),
         run->info.format, report_shape_text(run->info.shape, run->info.ndim, shape), dtype);
  report_line(stdout, "to      ", job->settings.paths[1]);
  printf("stored  %s in %" PRId64 " file%s\n",
         report_bytes_text((double)work->report.stored_bytes, stored), work->report.files,
         work->report.files == 1 ? "" : "s");
  printf("time    %.4f s\n", work->seconds.total);
  if (run->statistics.missing > 0) {
    printf("missing %" PRId64 " piece%s filled\n", run->statistics.missing,
           run->statistics.missing == 1 ? "" : "s");
  }
  if (work->report.hash[0] != '\0') {
    printf("hash    %s, of both\n", work->report.hash);
  }
  print_dropped(work->dropped);
}

/* What is listed stands beside the error, too. */
static tegula_status fail_check(cli_job *job, copy_work *work) {
  tegula_error why = job->error;
  if (job->settings.json && !work->no_memory) {
    job->report = json_pack("{s:O}", "dropped", work->dropped);
  }
  job->error = why;
  return TEGULA_MISMATCH;
}

static tegula_status conclude(cli_job *job, copy_work *work) {
  tegula_status status = work->no_memory ? report_no_memory(&job->error) : TEGULA_OK;
  if (status == TEGULA_OK && job->settings.json) {
    job->report = copy_object(job, work);
    status = job->report != NULL ? TEGULA_OK : report_no_memory(&job->error);
  } else if (status == TEGULA_OK && !job->settings.quiet && !job->silent) {
    print_copy(job, work);
  }
  return status;
}

/* Numbers of all ranks. */
static tegula_status gather(cli_job *job, copy_work *work) {
  work->peak_memory = load_peak_memory();
  tegula_status status =
      ranks_longest(job, &work->seconds.total, sizeof work->seconds / sizeof work->seconds.total);
  return status == TEGULA_OK ? ranks_sum(job, &work->run.statistics, &work->peak_memory) : status;
}

/* ---- the command ---- */

static tegula_status copy_steps(cli_job *job, copy_work *work) {
  double began = job_now();
  work->dropped = json_array();
  tegula_status status =
      work->dropped != NULL ? open_source(job, work) : report_no_memory(&job->error);
  double described = job_now();
  if (status == TEGULA_OK) {
    status = copy_dataset(job, work);
  }
  double moved = job_now();
  work->seconds = (load_seconds){
      .total = moved - began, .describe = described - began, .move = moved - described};
  /* not files that do not fit together, which may also show only when they are read */
  int check_failed =
      status == TEGULA_MISMATCH &&
      ((job->settings.strict && work->report.dropped != 0) || work->report.hash[0] != '\0');
  job->check_failed = job->check_failed || check_failed;
  return check_failed ? fail_check(job, work) : status;
}

static tegula_status run_copy(cli_job *job) {
  copy_work work;
  memset(&work, 0, sizeof work);
  tegula_statistics_init(&work.run.statistics);
  tegula_status status = check_settings(job);
  if (status == TEGULA_OK) {
    status = copy_steps(job, &work);
  }
  if (status == TEGULA_OK) {
    status = gather(job, &work);
  }
  if (status == TEGULA_OK) {
    status = conclude(job, &work);
  }
  json_decref(work.dropped);
  load_release(&work.run);
  return status;
}

#define FIELD(name) offsetof(cli_settings, name)

static const cli_option source_rows[] = {
    {"dataset", "NAME", "the array to take, by its path in an HDF5 file", FIELD(dataset), 0, 0,
     OPTION_TEXT, 0},
    {"field", "NAME", "one field of structured records, such as mass, or position.x within another",
     FIELD(field), 0, 0, OPTION_TEXT, 0},
    {"from-format", "npy|raw|hdf5|manifest", "of SRC (default: found out from the content)",
     FIELD(format), 0, 0, OPTION_CHOICE, 0},
    {"allow-locked", NULL, "read HDF5 files also while another program has them open for writing",
     FIELD(allow_locked), 0, 0, OPTION_FLAG, 0},
    {"missing", "error|strict|fill",
     "pieces that were never written are filled and lost ones an error; both an error; both filled",
     FIELD(missing), 0, 0, OPTION_CHOICE, 0},
};

static const cli_option target_rows[] = {
    {"format", "npy|raw|hdf5", "of DST (default: by its suffix; npy where it has none)",
     FIELD(to_format), 0, 0, OPTION_CHOICE, 0},
    {"to-dataset", "NAME",
     "HDF5: its path in DST (default: as in SRC, /data for an array without a name)",
     FIELD(to_dataset), 0, 0, OPTION_TEXT, 0},
    {"layout", "contiguous|chunked|virtual",
     "HDF5 (default: see above); virtual: tile files in DST.tiles-*, and DST over them",
     FIELD(layout), 0, 0, OPTION_CHOICE, 0},
    {"chunks", "N,N,..",
     "HDF5: shape of a chunk (default: as in SRC, else whole rows of up to 4 MiB)",
     FIELD(chunk_shape), 1, INT64_MAX, OPTION_SHAPE, 0},
    {"codec", "CHAIN", "HDF5: what chunks go through: shuffle,zstd:3; none (default: as in SRC)",
     FIELD(codec), 0, 0, OPTION_TEXT, 0},
    {"shards", "N", "a folder DST with N files, cut along axis 0", FIELD(shards), 1, MAX_SHARDS,
     OPTION_INTEGER, 0},
    {"tiles", "N", "--layout virtual: number of tile files (default: threads)", FIELD(tiles), 1,
     MAX_SHARDS, OPTION_INTEGER, 0},
    {"to-record-markers", "fortran4|fortran8",
     "raw: each row becomes a record of a Fortran sequential file", FIELD(to_set), 0, 0, OPTION_KEY,
     0},
    {"to-set", "KEY=VALUE", "a setting of the format of DST; may be given again", FIELD(to_set), 0,
     0, OPTION_SET, 0},
    {"overwrite", NULL, "replace DST, or in an HDF5 file the dataset of that name",
     FIELD(overwrite), 0, 0, OPTION_FLAG, 0},
};

static const cli_option way_rows[] = {
    {"memory", "BYTES", "for what is on its way, as 64M or 2G (default 256M)", FIELD(memory),
     SMALLEST_MEMORY, INT64_MAX, OPTION_BYTES, 0},
    {"verify", NULL,
     "read the copy back before it gets its name, and compare content hashes (status 3)",
     FIELD(verify), 0, 0, OPTION_FLAG, 0},
    {"strict", NULL, "copy nothing if something cannot go along (status 3)", FIELD(strict), 0, 0,
     OPTION_FLAG, 0},
    {"durable", NULL, "the copy is on the disk when the command ends", FIELD(durable), 0, 0,
     OPTION_FLAG, 0},
};

static const option_group source_group = {"What is copied", source_rows,
                                          sizeof source_rows / sizeof source_rows[0]};
static const option_group target_group = {"What it becomes", target_rows,
                                          sizeof target_rows / sizeof target_rows[0]};
static const option_group way_group = {"How", way_rows, sizeof way_rows / sizeof way_rows[0]};

const cli_command copy_command = {
    .name = "copy",
    .summary = "copy an array into another format, layout or cut",
    .paths = "SRC DST",
    .description = "Copies the array of SRC (a file, a folder of shards, a quoted pattern, a "
                   "manifest) to DST, in parts that fit in\n"
                   "--memory: one is read while the one before is written, on all granted threads. "
                   "DST appears whole or not at all.\n"
                   "A DST that exists is refused without --overwrite; into an HDF5 file the array "
                   "is added beside what is there.\n\n"
                   "Of HDF5, the attributes of the dataset, its fill value and the dimension "
                   "scales of its axes go along, as they are\n"
                   "stored: a scale becomes a dataset of DST, unless the same one is there "
                   "already. What DST cannot hold is listed\n"
                   "as dropped: references to other objects, scales of an axis that is cut "
                   "(--shards) or whose name another dataset\n"
                   "of DST has, everything of it in npy and raw.\n"
                   "Like h5repack, a copy from a chunked HDF5 dataset to HDF5 keeps the shape of "
                   "chunks and the codec unless\n"
                   "--chunks, --codec or another --layout is given (--codec none: no codec); all "
                   "else becomes contiguous unless one\n"
                   "of them is given. Byte order becomes that of this machine.\n\n"
                   "Started by mpirun or srun, each rank copies a share (docs/ranks.md).\n\n"
                   "With --json: what load reports about reading SRC (tiles: 1, or --tiles; "
                   "seconds: of everything; opens, reads,\n"
                   "bytes_read: of both sides), path, stored_bytes (of the array in DST), dropped: "
                   "[{what, name, reason}], hash with\n"
                   "--verify.\n",
    .examples =
        "  tegula copy shards all.npy                               a folder of shards into one "
        "file\n"
        "  tegula copy all.npy run.h5 --to-dataset /entry/data --chunks 64,1024 --codec "
        "shuffle,zstd:3\n"
        "                                                           compressed by all threads, an "
        "ordinary HDF5 file\n"
        "  tegula copy run.h5 small.h5 --dataset /entry/data --codec shuffle,deflate:6 --verify\n"
        "                                                           another codec; read back "
        "before it gets its name\n"
        "  tegula copy run.h5 shards --dataset /entry/data --format npy --shards 32\n"
        "  tegula copy field.bin field.h5 --dtype '>f8' --row-shape 512,512 --offset 4096\n",
    .min_paths = 2,
    .max_paths = 2,
    .groups = {&source_group, &options_raw_only, &target_group, &way_group, &options_common, NULL},
    .on_ranks = RANKS_ALL,
    .run = run_copy,
};
