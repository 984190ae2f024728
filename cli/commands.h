/* The `tegula` command: its commands, and the steps that more than one of them takes.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The folder is the shell command. It includes the public headers and jansson, nothing of src.
 * Begin in main.c: it has the table of commands, reads the options and runs one command.
 *
 * - command_NAME.c implements `tegula NAME`: its row of the table is at the end of the file.
 * - NAME_*.c (info, load, verify, write, bench) is a part of `tegula NAME`. `demo` and `bench` take
 *   steps of other commands.
 * - cli_*.c and option_*.c serve all commands: a run (cli_job.h), the command line (cli_options.h)
 *   and what is printed (cli_report.h).
 * - launch_ranks.c joins the processes that a launcher has started; hdf5_candidates.c looks for
 *   copies of libhdf5.
 *
 * No two files use each other, except main.c and the two commands that read its table: `completion`
 * and `run`. */
#ifndef TEGULA_CLI_COMMANDS_H
#define TEGULA_CLI_COMMANDS_H

#include <sys/stat.h>

#include <jansson.h>
#include <tegula/tegula.h>

#include "cli_job.h"

#define SIDE_FILE ".tegula-write.json"

extern const cli_command demo_command;
extern const cli_command write_command;
extern const cli_command load_command;
extern const cli_command info_command;
extern const cli_command clean_command;
extern const cli_command bench_command;
extern const cli_command plan_command;
extern const cli_command verify_command;
extern const cli_command compare_command;
extern const cli_command copy_command;
extern const cli_command run_command_row;
extern const cli_command completion_command;

/* main.c: all of them in the order of the help, NULL behind the last. */
extern const cli_command *const cli_commands[];

/* cli_open.c: the dataset that the settings name. `statistics` may be NULL. `flags`: TEGULA_OPEN_*
 * besides those of the settings. */
tegula_status open_dataset(cli_job *job, uint32_t flags, tegula_statistics *statistics,
                           tegula_dataset **out);
/* One path of several: no order and no expected numbers are checked. */
tegula_status open_alone(cli_job *job, const char *path, tegula_dataset **out);
/* One of two paths that may be stored differently: the options of raw files count only if it does
 * not describe itself. */
tegula_status open_side(cli_job *job, const char *path, const char *name, tegula_dataset **out);
/* Usage errors that can be seen before any file is touched. */
tegula_status open_check_settings(cli_job *job);
void open_fill_options(const cli_job *job, tegula_statistics *statistics,
                       tegula_open_options *options);
/* What --missing says. */
uint32_t open_missing(const cli_settings *values);

/* hdf5_candidates.c: paths of the libhdf5s that the Pythons at hand bring along, separated by ':',
 * to be freed; NULL on lack of memory. */
char *hdf5_candidates(void);

/* info_list.c: is the path one file that may hold several datasets? Then they are listed:
 * UNSUPPORTED when it holds one array. */
int info_may_list(const cli_job *job);
tegula_status info_list(cli_job *job, const tegula_open_options *options);
/* "shuffle,deflate:6" as a list; NULL on lack of memory. */
json_t *info_codecs(const char *text);
/* info_chunks.c: prints every stored piece, or adds `chunk_list` to `object`, the report on the
 * dataset (NULL: prints). */
tegula_status info_chunks(cli_job *job, const tegula_dataset *dataset, json_t *object);
/* info_attributes.c: the attributes of each object, {object: [attribute, ...]}, of all or of
 * settings.dataset. */
tegula_status info_attributes(cli_job *job, json_t **out);
/* Moves those of `object` (NULL: of the only one) into its report. */
tegula_status info_take_attributes(cli_job *job, json_t *all, const char *object, json_t *report);
/* Adds "groups", each with its attributes, to the report: all that is left. */
tegula_status info_add_groups(cli_job *job, json_t *all, json_t *report);
/* Print what a report has. */
void info_print_attributes(const json_t *report);
void info_print_groups(const json_t *report);

/* cli_tiling.c: the tiles that the settings ask for. */
tegula_status tiling_check_settings(cli_job *job);
tegula_status tiling_make(cli_job *job, const int64_t *shape, int32_t ndim, int32_t ranks,
                          tegula_tiling **out);

/* load_run.c: one load as the settings say it. What `run` holds is released by load_release,
 * also after a failure. */
typedef struct load_run {
  tegula_dataset *dataset;
  tegula_tiling *tiling; /* of the box that is read */
  tegula_array *array;
  tegula_dataset_info_t info;
  tegula_box box; /* what is read, in the dataset's coordinates */
  int64_t bytes;  /* of the box in memory */
  tegula_statistics statistics;
} load_run;

typedef struct load_seconds {
  double total, describe, allocate, move;
} load_seconds;

tegula_status load_once(cli_job *job, load_run *run, load_seconds *seconds);
void load_release(load_run *run);
/* load_check.c: compares what was loaded with the demonstration values of settings.check_seed. */
tegula_status load_check(cli_job *job, const load_run *run);

/* load_report.c */
typedef struct load_summary {
  const load_run *run;
  load_seconds seconds;     /* medians */
  const load_seconds *runs; /* `repeat` entries, NULL without --repeat */
  int64_t repeat;
  const char *hash; /* NULL: not asked for */
  int32_t ranks;
  int64_t peak_memory; /* of all ranks; -1: not known */
} load_summary;

tegula_status load_report(cli_job *job, const load_summary *summary);
int64_t load_peak_memory(void);
/* The object of --json. `tile_list` may be NULL. NULL on lack of memory. */
json_t *load_report_object(const load_summary *summary, json_t *tile_list);

/* command_write.c: demonstration shards in `dir`, all of them or none. */
tegula_status write_shards(cli_job *job, const char *dir);
/* What its files' names end with, without the dot; NULL: it makes none of that format. */
const char *write_suffix(const char *format);

/* write_folder.c: the folder that `write` makes. Between begin and publish its files go to
 * `staging`; end removes what is not published. */
typedef struct target_folder {
  const char *dir;     /* as it was given */
  char *real;          /* the same without links */
  char *workplace;     /* beside it */
  char *staging;       /* the folder in that */
  int fd, place, mark; /* `staging`, the workplace and its mark, open; -1: there is none */
  struct stat old;     /* of the empty folder that is replaced */
  char *made;          /* the path whose prefixes below were made */
  size_t *made_length; /* lengths of those prefixes, outermost first */
  size_t made_count;
} target_folder;

tegula_status target_begin(target_folder *target, const char *dir, tegula_error *error);
tegula_status target_publish(target_folder *target, tegula_error *error);
void target_end(target_folder *target);
/* Removes a folder with the files in it, whatever they are; it has no sub-folders. */
void target_remove_folder(const char *dir);
#define TEMPORARY_NAME 32
/* `locked`: it is guarded by a lock, as long as this machine runs. */
void target_temporary_name(char out[TEMPORARY_NAME], int locked);

/* write_side_file.c: the list that `write` leaves and `clean` goes by. `dir_fd` is the open folder,
 * `dir` its name for messages. A list that is there already is replaced at once. */
tegula_status side_file_write(int dir_fd, const char *dir, const json_t *content,
                              tegula_error *error);
tegula_status side_file_read(int dir_fd, const char *dir, json_t **out, tegula_error *error);

/* verify_sums_file.c: verify with --write and --against. Usage errors and targets that cannot be
 * taken, before any file is read. */
tegula_status sums_check_settings(cli_job *job);
/* The dataset's sums as text for settings.write, to be freed with tegula_free. */
tegula_status sums_make(cli_job *job, tegula_dataset *dataset, tegula_verify_level level,
                        tegula_statistics *statistics, char **out);

/* command_clean.c: removes what write_shards made. */
tegula_status clean_folder(cli_job *job, const char *dir);

/* info_manifest.c: writes the dataset's manifest to `path`, whole or not at all. Only a manifest is
 * replaced. */
tegula_status manifest_save(cli_job *job, const tegula_dataset *dataset, const char *path);

/* cli_text_file.c: may `path` be written? Nothing is there, or a file that begins so; else EXISTS,
 * with `what` in the message. */
tegula_status whole_check(const char *path, const char *beginning, const char *what,
                          tegula_error *error);
/* Writes a text file whole or not at all, in place of what is there. */
tegula_status whole_write(const char *path, const char *text, tegula_error *error);
/* The folder of a path, to be freed; NULL on lack of memory. */
char *whole_folder(const char *path);

/* bench_limit.c: plain parallel pread of the same bytes into fresh memory. */
typedef struct limit_plan limit_plan;
tegula_status limit_prepare(cli_job *job, const tegula_dataset *dataset, limit_plan **out);
tegula_status limit_run(cli_job *job, const limit_plan *plan, double *seconds);
void limit_free(limit_plan *plan);

/* cli_timing.c: median of `count` values; `stride` bytes from one to the next. */
double median(const double *values, int64_t count, size_t stride);

#endif
