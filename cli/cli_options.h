/* What the command line can say, and the table-driven parser that reads it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each command is one row of data (struct cli_command): its groups of options, its number of paths,
 * its help and its function. Options that several commands share are one group (options_common,
 * options_raw, options_files, options_tiling), so each is described and checked in one
 * place. */
#ifndef TEGULA_CLI_OPTIONS_H
#define TEGULA_CLI_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include <tegula/tegula.h>

#define MAX_SHARDS 1000000
#define MAX_THREADS 4096

struct cli_job;

typedef struct shape_value {
  int32_t ndim; /* -1: not given */
  int64_t length[TEGULA_MAX_DIMS];
} shape_value;

typedef struct box_value {
  int32_t ndim; /* -1: not given */
  int64_t lo[TEGULA_MAX_DIMS];
  int64_t hi[TEGULA_MAX_DIMS]; /* -1: up to the end */
  int64_t step[TEGULA_MAX_DIMS];
} box_value;

#define MAX_SETTINGS 16

/* Settings in the order in which they were given, by --set or a flag of their own. */
typedef struct setting_list {
  int32_t count;
  char keys[MAX_SETTINGS][48];
  const char *values[MAX_SETTINGS];   /* borrowed from argv */
  tegula_setting items[MAX_SETTINGS]; /* made by options_settings */
} setting_list;

/* The values of all options of all commands; those that a command does not have keep their
 * defaults. */
typedef struct cli_settings {
  /* every command */
  int json, quiet, verbose, help;
  int64_t threads; /* 0: as many as granted */
  double timeout;  /* seconds; 0: none */
  const char *progress;
  /* what is opened */
  const char *format, *dataset, *field, *dtype, *order, *byte_order;
  shape_value shape, row_shape;
  int64_t offset, row_gap, expect_files, expect_rows; /* expect_*: -1: not given */
  int as_given;
  int allow_locked;
  setting_list set, to_set; /* of what is opened; of what is saved */
  /* info */
  const char *manifest; /* the file to write */
  int chunks, attributes;
  /* load and bench */
  /* tiles, overdecompose, repeat: 0: not given; axis: -1: not given */
  int64_t tiles, axis, overdecompose, repeat;
  int64_t check_seed; /* -1: not given */
  shape_value tile_shape;
  box_value box;
  int hash;
  const char *missing;
  /* plan, verify, compare */
  int64_t ranks;                 /* 0: not given */
  int64_t nodes, ranks_per_node; /* run; 0: not given */
  const char *launcher;
  const char *level;
  const char *write, *against; /* files with sums */
  int by_value;
  const char *io;
  /* write */
  int64_t num_shards, seed;
  const char *values;
  int uniform;
  /* copy */
  const char *to_format, *to_dataset, *layout, *codec;
  shape_value chunk_shape;
  int64_t shards, memory; /* 0: not given */
  int verify, overwrite, durable, strict;
  /* what stands between the options; borrowed from argv */
  const char **paths;
  size_t path_count;
} cli_settings;

typedef enum option_kind {
  OPTION_FLAG,    /* int */
  OPTION_TEXT,    /* const char *, not empty */
  OPTION_CHOICE,  /* const char *, one of `argument`, separated by | */
  OPTION_DTYPE,   /* const char *, something tegula_dtype_parse takes */
  OPTION_INTEGER, /* int64_t, minimum to maximum */
  OPTION_BYTES,   /* int64_t, the same with K, M, G or T behind it: times 1024, ... */
  OPTION_SECONDS, /* double */
  OPTION_SHAPE,   /* shape_value, each entry at least minimum */
  OPTION_BOX,     /* box_value */
  OPTION_SET,     /* setting_list, one more KEY=VALUE */
  OPTION_KEY      /* setting_list, one more: "row-prefix 4" is raw.row_prefix=4 */
} option_kind;

typedef struct cli_option {
  const char *name; /* without the two hyphens */
  const char *argument;
  const char *help;
  size_t field; /* offset in struct cli_settings */
  int64_t minimum, maximum;
  option_kind kind;
  char letter; /* of the short form, or 0 */
} cli_option;

typedef struct option_group {
  const char *title;
  const cli_option *options;
  size_t count;
} option_group;

typedef struct cli_command {
  const char *name;
  const char *summary;     /* one line for `tegula --help` */
  const char *paths;       /* as shown in the usage line, "" where there are none */
  const char *description; /* paragraphs for `tegula COMMAND --help` */
  const char *examples;
  size_t min_paths, max_paths;
  const option_group *groups[6]; /* ends with NULL */
  int hidden;                    /* not in `tegula --help` */
  /* started several times: rank 0 does it; all together; refused */
  enum { RANKS_FIRST, RANKS_ALL, RANKS_NONE } on_ranks;
  tegula_status (*run)(struct cli_job *job);
} cli_command;

extern const option_group options_common;
extern const option_group options_raw;
/* without the rows that are not about raw files alone */
extern const option_group options_raw_only;
extern const option_group options_files;
extern const option_group options_tiling;

void options_init(cli_settings *values);
/* Reads argv[0 .. argc) into `values`; values->paths is allocated (the caller frees it). A failure
 * is INVALID_ARGUMENT with a message that names the option and the value. */
tegula_status options_parse(const cli_command *command, int argc, char **argv, cli_settings *values,
                            tegula_error *error);
/* option_values.c: writes the value into its field; 0 when it is not what the option takes. */
int options_store_value(const cli_option *row, const char *text, cli_settings *values);
/* What a list holds, as the library takes it; valid as long as the list. */
const tegula_setting *options_settings(setting_list *list);
/* INVALID_ARGUMENT with a message that says what the option takes. */
tegula_status options_wrong_value(const cli_command *command, const cli_option *row,
                                  const char *text, tegula_error *error);
/* TEGULA_THREADS and TEGULA_TIMEOUT, where the options did not say it. */
tegula_status options_environment(cli_settings *values, tegula_error *error);
void options_help(const cli_command *command);
/* The name nearest to `text` among `count` names, or NULL when none is near. */
const char *options_nearest(const char *text, const char *const *names, size_t count);

#endif
