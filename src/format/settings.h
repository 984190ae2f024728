/* Settings: what only some formats know, as texts of keys and values.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each format has a table of its keys, which begin with its name ("raw.row_prefix"). So a new key
 * needs no new field in public structs, options and calls. */
#ifndef TEGULA_FORMAT_SETTINGS_H
#define TEGULA_FORMAT_SETTINGS_H

#include "base/base.h"

#define TEGULA__SETTING_OPEN 1u
#define TEGULA__SETTING_SAVE 2u

/* One row of the table of a format. */
typedef struct tegula__setting_row {
  const char *key;     /* NULL at the end of the table */
  bool number;         /* takes a whole number from 0 on */
  const char *choices; /* takes one of these words, "a|b"; NULL: none */
  unsigned uses;       /* TEGULA__SETTING_* */
  const char *help;
} tegula__setting_row;

/* Borrowed. */
typedef struct tegula__settings {
  const tegula_setting *items;
  int32_t count;
} tegula__settings;

/* INVALID_ARGUMENT: a key that is not known (the keys that there are follow), one that is not for
 * `use`, a value that it does not take, one key with two values. */
tegula_status tegula__settings_check(const tegula__settings *settings, unsigned use,
                                     tegula_error *err);
/* INVALID_ARGUMENT: a setting of another format than the one that `path` has. */
tegula_status tegula__settings_check_format(const tegula__settings *settings, const char *format,
                                            const char *path, tegula_error *err);
/* Those of them that are for `use`, in `out`, which has room for all; returns how many. */
int32_t tegula__settings_for(const tegula__settings *settings, unsigned use, tegula_setting *out);
/* The value of a key; NULL where it is not given. */
const char *tegula__settings_find(const tegula__settings *settings, const char *key);
/* A whole number in decimal digits, nothing else. */
bool tegula__setting_number(const char *text, int64_t *out);
/* Of a value that was checked; `otherwise` where it is not given or is a word. */
int64_t tegula__settings_number(const tegula__settings *settings, const char *key,
                                int64_t otherwise);

#endif
