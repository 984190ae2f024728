/* The table-driven option parser and the help made from the same tables.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Options may stand before or after the paths, as `--name value` or `--name=value`; `--` ends them;
 * the last one given counts. */
#include "cli_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli_report.h"

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
  return options_store_value(row, value, values) ? TEGULA_OK
                                                 : options_wrong_value(command, row, value, error);
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
