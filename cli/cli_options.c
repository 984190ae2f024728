/* The table-driven option parser and the help made from the same tables.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Options may stand before or after the paths, as `--name value` or `--name=value`; `--` ends them;
 * the last one given counts. Numbers are read strictly: the whole text, within the range, no
 * overflow. */
#include "cli_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli_report.h"

#define FIELD(name) offsetof(cli_settings, name)
#define MAX_THREADS 4096
#define MAX_SECONDS 1e9

static const cli_option common_rows[] = {
    {"json", NULL, "print one JSON object on standard output; errors too", FIELD(json), 0, 0,
     OPTION_FLAG, 0},
    {"threads", "N", "threads to use (default: all granted; TEGULA_THREADS)", FIELD(threads), 1,
     MAX_THREADS, OPTION_INTEGER, 0},
    {"timeout", "SECONDS", "give up after this time (TEGULA_TIMEOUT)", FIELD(timeout), 0, 0,
     OPTION_SECONDS, 0},
    {"progress", "auto|always|never", "a bar on standard error; auto: on a terminal",
     FIELD(progress), 0, 0, OPTION_CHOICE, 0},
    {"quiet", NULL, "print nothing but errors (and what --json asks for)", FIELD(quiet), 0, 0,
     OPTION_FLAG, 'q'},
    {"verbose", NULL, "say more; with load: what each tile reads", FIELD(verbose), 0, 0,
     OPTION_FLAG, 'v'},
    {"help", NULL, "show this text", FIELD(help), 0, 0, OPTION_FLAG, 'h'},
};

const option_group options_common = {"Options of every command", common_rows,
                                     sizeof common_rows / sizeof common_rows[0]};

static const cli_option raw_rows[] = {
    {"dataset", "NAME",
     "the array to take, by its path in an HDF5 file, or several by a quoted pattern ('/shard_*')",
     FIELD(dataset), 0, 0, OPTION_TEXT, 0},
    {"format", "npy|raw|hdf5|manifest", "default: found out from the content", FIELD(format), 0, 0,
     OPTION_CHOICE, 0},
    {"allow-locked", NULL, "read HDF5 files also while another program has them open for writing",
     FIELD(allow_locked), 0, 0, OPTION_FLAG, 0},
    {"dtype", "DTYPE",
     "what is stored: f4, <i8, >u2, bfloat16, ... (raw: needed unless shard_meta.json says it)",
     FIELD(dtype), 0, 0, OPTION_DTYPE, 0},
    {"shape", "N,N,..", "raw: the shape of each file; () is a scalar", FIELD(shape), 0, 0,
     OPTION_SHAPE, 0},
    {"row-shape", "N,N,..", "raw: the shape of one row; the rows follow from the size",
     FIELD(row_shape), 0, 0, OPTION_SHAPE, 0},
    {"offset", "BYTES", "raw: bytes in front of the data", FIELD(offset), 0, INT64_MAX,
     OPTION_INTEGER, 0},
    {"order", "C|F", "raw: row-major or column-major (default C)", FIELD(order), 0, 0,
     OPTION_CHOICE, 0},
    {"byte-order", "little|big|<|>", "raw: byte order (default: as in --dtype)", FIELD(byte_order),
     0, 0, OPTION_CHOICE, 0},
    {"row-gap", "BYTES", "raw: bytes between two rows", FIELD(row_gap), 0, INT64_MAX,
     OPTION_INTEGER, 0},
};

const option_group options_raw = {"What is stored", raw_rows, sizeof raw_rows / sizeof raw_rows[0]};

enum { NOT_RAW_ONLY = 3 }; /* rows in front */

const option_group options_raw_only = {"Raw files", raw_rows + NOT_RAW_ONLY,
                                       sizeof raw_rows / sizeof raw_rows[0] - NOT_RAW_ONLY};

static const cli_option files_rows[] = {
    {"expect-files", "N", "fail (status 3) unless there are N files", FIELD(expect_files), 0,
     INT64_MAX, OPTION_INTEGER, 0},
    {"expect-rows", "N", "fail (status 3) unless axis 0 has length N", FIELD(expect_rows), 0,
     INT64_MAX, OPTION_INTEGER, 0},
    {"as-given", NULL, "keep the order of the PATHs whatever their names say", FIELD(as_given), 0,
     0, OPTION_FLAG, 0},
};

const option_group options_files = {"Which files", files_rows,
                                    sizeof files_rows / sizeof files_rows[0]};

void options_init(cli_settings *values) {
  memset(values, 0, sizeof *values);
  values->progress = "auto";
  values->io = "auto";
  values->shape.ndim = -1;
  values->row_shape.ndim = -1;
  values->tile_shape.ndim = -1;
  values->chunk_shape.ndim = -1;
  values->box.ndim = -1;
  values->axis = -1;
  values->check_seed = -1;
  values->expect_files = -1;
  values->expect_rows = -1;
  values->num_shards = 8;
  values->values = "random";
}

/* ---- values ---- */

/* A whole number in decimal digits, nothing else; 0 when it is none or is out of range. */
static int parse_integer(const char *text, size_t length, int64_t minimum, int64_t maximum,
                         int64_t *out) {
  int64_t value = 0;
  if (length == 0) {
    return 0;
  }
  for (size_t at = 0; at < length; at++) {
    if (text[at] < '0' || text[at] > '9' || __builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, text[at] - '0', &value)) {
      return 0;
    }
  }
  *out = value;
  return value >= minimum && value <= maximum;
}

/* "256M": a whole number of bytes, or of units of 2^10, 2^20, 2^30, 2^40. */
static int parse_bytes(const char *text, int64_t minimum, int64_t maximum, int64_t *out) {
  static const char units[] = "KMGT";
  size_t length = strlen(text);
  const char *unit = length > 0 ? strchr(units, text[length - 1]) : NULL;
  if (unit == NULL || text[length - 1] == '\0') {
    return parse_integer(text, length, minimum, maximum, out);
  }
  int64_t factor = INT64_C(1) << (10 * (unit - units + 1));
  return parse_integer(text, length - 1, 0, INT64_MAX, out) &&
         !__builtin_mul_overflow(*out, factor, out) && *out >= minimum && *out <= maximum;
}

/* Digits with at most one point: no exponent, no sign, no "inf". */
static int parse_seconds(const char *text, double *out) {
  size_t digits = strspn(text, "0123456789");
  const char *rest = text + digits;
  if (*rest == '.') {
    size_t more = strspn(rest + 1, "0123456789");
    digits += more;
    rest += 1 + more;
  }
  if (digits == 0 || *rest != '\0') {
    return 0;
  }
  *out = strtod(text, NULL);
  return *out > 0 && *out <= MAX_SECONDS;
}

static int parse_shape(const char *text, int64_t minimum, shape_value *out) {
  shape_value shape = {.ndim = 0};
  int more = strcmp(text, "()") != 0;
  while (more) {
    size_t length = strcspn(text, ",");
    if (shape.ndim == TEGULA_MAX_DIMS ||
        !parse_integer(text, length, minimum, INT64_MAX, &shape.length[shape.ndim])) {
      return 0;
    }
    shape.ndim++;
    more = text[length] == ',';
    text += length + 1;
  }
  *out = shape;
  return 1;
}

/* "lo:hi" where either may be left out. */
static int parse_range(const char *text, size_t length, int64_t *lo, int64_t *hi) {
  const char *colon = memchr(text, ':', length);
  if (colon == NULL) {
    return 0;
  }
  size_t before = (size_t)(colon - text), after = length - before - 1;
  *lo = 0;
  *hi = -1;
  return (before == 0 || parse_integer(text, before, 0, INT64_MAX, lo)) &&
         (after == 0 || parse_integer(colon + 1, after, 0, INT64_MAX, hi)) &&
         (*hi == -1 || *lo <= *hi);
}

static int parse_box(const char *text, box_value *out) {
  box_value box = {.ndim = 0};
  for (int more = 1; more;) {
    size_t length = strcspn(text, ",");
    if (box.ndim == TEGULA_MAX_DIMS ||
        !parse_range(text, length, &box.lo[box.ndim], &box.hi[box.ndim])) {
      return 0;
    }
    box.ndim++;
    more = text[length] == ',';
    text += length + 1;
  }
  *out = box;
  return 1;
}

static int is_choice(const char *choices, const char *text) {
  size_t wanted = strlen(text);
  for (const char *at = choices;;) {
    size_t length = strcspn(at, "|");
    if (length == wanted && memcmp(at, text, length) == 0) {
      return 1;
    }
    if (at[length] == '\0') {
      return 0;
    }
    at += length + 1;
  }
}

/* What a value of this option must be, for the message. */
static const char *expectation(const cli_option *row, char out[128]) {
  switch (row->kind) {
    case OPTION_INTEGER:
      snprintf(out, 128, "a whole number from %" PRId64 " to %" PRId64, row->minimum, row->maximum);
      break;
    case OPTION_BYTES:
      snprintf(out, 128, "a number of bytes from %" PRId64 " on, also as 64M (K, M, G, T)",
               row->minimum);
      break;
    case OPTION_SECONDS:
      snprintf(out, 128, "a number of seconds above 0, up to %.0f", MAX_SECONDS);
      break;
    case OPTION_SHAPE:
      snprintf(out, 128, "up to %d whole numbers from %" PRId64 " on, separated by commas",
               TEGULA_MAX_DIMS, row->minimum);
      break;
    case OPTION_BOX:
      snprintf(out, 128, "lo:hi per axis with 0 <= lo <= hi, separated by commas");
      break;
    case OPTION_CHOICE:
      snprintf(out, 128, "one of %s", row->argument);
      break;
    default:
      snprintf(out, 128, "a text that is not empty");
      break;
  }
  return out;
}

static int is_dtype(const char *text) {
  tegula_dtype dtype;
  return tegula_dtype_parse(text, &dtype, NULL) == TEGULA_OK;
}

/* Writes the value into its field; 0 when it is not what the option takes. */
static int store_value(const cli_option *row, const char *text, cli_settings *values) {
  void *field = (char *)values + row->field;
  switch (row->kind) {
    case OPTION_INTEGER:
      return parse_integer(text, strlen(text), row->minimum, row->maximum, field);
    case OPTION_BYTES:
      return parse_bytes(text, row->minimum, row->maximum, field);
    case OPTION_SECONDS:
      return parse_seconds(text, field);
    case OPTION_SHAPE:
      return parse_shape(text, row->minimum, field);
    case OPTION_BOX:
      return parse_box(text, field);
    case OPTION_CHOICE:
      memcpy(field, &text, sizeof text);
      return is_choice(row->argument, text);
    case OPTION_DTYPE:
      memcpy(field, &text, sizeof text);
      return is_dtype(text);
    default:
      memcpy(field, &text, sizeof text);
      return text[0] != '\0';
  }
}

static tegula_status wrong_value(const cli_command *command, const cli_option *row,
                                 const char *text, tegula_error *error) {
  char expected[128];
  tegula_error reason;
  tegula_dtype dtype;
  if (row->kind == OPTION_DTYPE && text[0] != '\0' &&
      tegula_dtype_parse(text, &dtype, &reason) != TEGULA_OK) {
    return report_usage(error, command->name, "option --%s: cannot take \"%s\": %s", row->name,
                        text, reason.message);
  }
  return report_usage(error, command->name, "option --%s: expected %s, found \"%s\"", row->name,
                      expectation(row, expected), text);
}

/* ---- names ---- */

#define NAME_MAX_BYTES 40

/* Levenshtein distance, one row of the table at a time. */
static size_t edit_distance(const char *a, const char *b) {
  size_t row[NAME_MAX_BYTES + 1], length = strlen(b);
  for (size_t j = 0; j <= length; j++) {
    row[j] = j;
  }
  for (size_t i = 0; a[i] != '\0'; i++) {
    size_t corner = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < length; j++) {
      size_t change = corner + (a[i] != b[j]),
             shorter = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
      corner = row[j + 1];
      row[j + 1] = change < shorter ? change : shorter;
    }
  }
  return row[length];
}

const char *options_nearest(const char *text, const char *const *names, size_t count) {
  const char *best = NULL;
  size_t limit = strlen(text) < 6 ? 2 : 3;
  if (strlen(text) > NAME_MAX_BYTES) {
    return NULL;
  }
  for (size_t i = 0; i < count; i++) {
    size_t distance = edit_distance(text, names[i]);
    if (distance <= limit && distance < strlen(names[i])) {
      best = names[i];
      limit = distance - (distance > 0);
    }
  }
  return best;
}

static tegula_status unknown_option(const cli_command *command, const char *text, size_t length,
                                    tegula_error *error) {
  const char *names[64];
  size_t count = 0;
  char name[NAME_MAX_BYTES + 1];
  snprintf(name, sizeof name, "%.*s", (int)(length < NAME_MAX_BYTES ? length : NAME_MAX_BYTES),
           text);
  for (size_t g = 0; command->groups[g] != NULL; g++) {
    for (size_t i = 0; i < command->groups[g]->count && count < sizeof names / sizeof names[0];
         i++) {
      names[count++] = command->groups[g]->options[i].name;
    }
  }
  report_usage(error, command->name, "%s has no option --%s", command->name, name);
  const char *nearest = options_nearest(name, names, count);
  if (nearest != NULL) {
    snprintf(error->hint, sizeof error->hint, "did you mean --%s? (see tegula %s --help)", nearest,
             command->name);
  }
  return TEGULA_INVALID_ARGUMENT;
}

static const cli_option *find_option(const cli_command *command, const char *name, size_t length,
                                     char letter) {
  for (size_t g = 0; command->groups[g] != NULL; g++) {
    for (size_t i = 0; i < command->groups[g]->count; i++) {
      const cli_option *row = &command->groups[g]->options[i];
      if (letter != 0 ? row->letter == letter
                      : strlen(row->name) == length && memcmp(row->name, name, length) == 0) {
        return row;
      }
    }
  }
  return NULL;
}

/* ---- the command line ---- */

static void set_flag(const cli_option *row, cli_settings *values) {
  *(int *)(void *)((char *)values + row->field) = 1;
}

/* -q, -v, -h, also together (-qv); none takes a value. */
static tegula_status parse_short(const cli_command *command, const char *text, cli_settings *values,
                                 tegula_error *error) {
  for (const char *letter = text + 1; *letter != '\0'; letter++) {
    const cli_option *row = find_option(command, NULL, 0, *letter);
    if (row == NULL) {
      return report_usage(error, command->name, "%s has no option \"%s\"", command->name, text);
    }
    set_flag(row, values);
  }
  return TEGULA_OK;
}

/* Option argv[*at]; moves *at on when the value is the next argument. */
static tegula_status parse_long(const cli_command *command, int argc, char **argv, int *at,
                                cli_settings *values, tegula_error *error) {
  const char *name = argv[*at] + 2;
  size_t length = strcspn(name, "=");
  const char *value = name[length] == '=' ? name + length + 1 : NULL;
  const cli_option *row = find_option(command, name, length, 0);
  if (row == NULL) {
    return unknown_option(command, name, length, error);
  }
  if (row->kind == OPTION_FLAG) {
    if (value != NULL) {
      return report_usage(error, command->name, "option --%s takes no value, found \"%s\"",
                          row->name, value);
    }
    set_flag(row, values);
    return TEGULA_OK;
  }
  if (value == NULL && *at + 1 >= argc) {
    return report_usage(error, command->name, "option --%s needs a value (%s)", row->name,
                        row->argument);
  }
  if (value == NULL) {
    value = argv[++*at];
  }
  return store_value(row, value, values) ? TEGULA_OK : wrong_value(command, row, value, error);
}

static tegula_status check_paths(const cli_command *command, const cli_settings *values,
                                 tegula_error *error) {
  if (values->help) {
    return TEGULA_OK;
  }
  if (values->path_count < command->min_paths) {
    return report_usage(error, command->name, "%s needs %s, found %s", command->name,
                        command->paths, values->path_count == 0 ? "no path" : "one path");
  }
  if (values->path_count > command->max_paths) {
    return report_usage(error, command->name, "%s takes %s, found %zu paths (the last is \"%s\")",
                        command->name,
                        command->max_paths == 0   ? "no path"
                        : command->max_paths == 1 ? "one path"
                                                  : "two paths",
                        values->path_count, values->paths[values->path_count - 1]);
  }
  for (size_t i = 0; i < values->path_count; i++) {
    /* a program may take an empty word */
    if (values->paths[i][0] == '\0' && strcmp(command->name, "run") != 0) {
      return report_usage(error, command->name, "path %zu is empty", i + 1);
    }
  }
  return TEGULA_OK;
}

tegula_status options_parse(const cli_command *command, int argc, char **argv, cli_settings *values,
                            tegula_error *error) {
  values->paths = calloc((size_t)argc + 1, sizeof *values->paths);
  if (values->paths == NULL) {
    return report_fail(error, TEGULA_OUT_OF_MEMORY, NULL,
                       "could not read the command line: no memory");
  }
  int ended = 0;
  for (int at = 0; at < argc; at++) {
    const char *text = argv[at];
    tegula_status status = TEGULA_OK;
    if (ended || text[0] != '-' || text[1] == '\0') {
      values->paths[values->path_count++] = text;
    } else if (strcmp(text, "--") == 0) {
      ended = 1;
    } else if (text[1] == '-') {
      status = parse_long(command, argc, argv, &at, values, error);
    } else {
      status = parse_short(command, text, values, error);
    }
    if (status != TEGULA_OK) {
      return status;
    }
  }
  return check_paths(command, values, error);
}

tegula_status options_environment(cli_settings *values, tegula_error *error) {
  const char *threads = getenv("TEGULA_THREADS"), *timeout = getenv("TEGULA_TIMEOUT");
  if (threads != NULL && values->threads == 0 &&
      !parse_integer(threads, strlen(threads), 1, MAX_THREADS, &values->threads)) {
    return report_usage(
        error, "",
        "environment variable TEGULA_THREADS: expected a whole number from 1 to %d, found \"%s\"",
        MAX_THREADS, threads);
  }
  if (timeout != NULL && values->timeout <= 0 && !parse_seconds(timeout, &values->timeout)) {
    return report_usage(
        error, "",
        "environment variable TEGULA_TIMEOUT: expected a number of seconds above 0, found \"%s\"",
        timeout);
  }
  return TEGULA_OK;
}

/* ---- help ---- */

static void print_group(const option_group *group) {
  printf("\n%s:\n", group->title);
  for (size_t i = 0; i < group->count; i++) {
    const cli_option *row = &group->options[i];
    char left[64], letter[8] = "";
    if (row->letter != 0) {
      snprintf(letter, sizeof letter, "-%c, ", row->letter);
    }
    snprintf(left, sizeof left, "%s--%s%s%s", letter, row->name, row->argument != NULL ? " " : "",
             row->argument != NULL ? row->argument : "");
    printf("  %-28s %s\n", left, row->help);
  }
}

void options_help(const cli_command *command) {
  printf("Usage: tegula %s%s%s [OPTIONS]\n\n%s", command->name,
         command->paths[0] != '\0' ? " " : "", command->paths, command->description);
  for (size_t g = 0; command->groups[g] != NULL; g++) {
    print_group(command->groups[g]);
  }
  printf("\nExamples:\n%s", command->examples);
  printf("\nExit status: 0 done; 1 it failed; 2 wrong usage; 3 data differ or a check failed; 130 "
         "interrupted.\n");
}
