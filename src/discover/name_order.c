/* The order of the files (or datasets) of a set, from their names alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Names are compared with one reference: outside of digits they must be equal, and exactly one run
 * of digits may differ. Numbers stay text, so they may have any length. The work is linear but for
 * one sort. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "discover/discover.h"

/* A name and its number: the digits behind the leading zeros. */
typedef struct numbered {
  char *name;
  const char *run; /* all digits of the run */
  size_t run_size;
  const char *digits;
  size_t size; /* at least 1: "0" for zero */
} numbered;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Behind the run of digits at `text`. */
static const char *skip_digits(const char *text) {
  while (is_digit(*text)) text++;
  return text;
}

/* ---- two names ---- */

/* Are two names equal outside of their runs of digits? If so: how many runs differ, and which is
 * the last of these. */
static bool compare_skeletons(const char *a, const char *b, int *differing, int *which) {
  *differing = 0;
  *which = -1;
  for (int run = 0;;) {
    if (is_digit(*a) && is_digit(*b)) {
      const char *a_end = skip_digits(a), *b_end = skip_digits(b);
      if (a_end - a != b_end - b || memcmp(a, b, (size_t)(a_end - a)) != 0) {
        (*differing)++;
        *which = run;
      }
      run++;
      a = a_end;
      b = b_end;
    }
    if (*a != *b) return false;
    if (*a == '\0') return true;
    a++;
    b++;
  }
}

/* The name whose form most others share, if there is one (Boyer and Moore's vote): so that it is
 * the foreign one that gets
 * named. */
static const char *find_reference(char *const *names, int64_t count) {
  const char *candidate = names[0];
  int64_t votes = 0;
  int differing, which;
  for (int64_t i = 0; i < count; i++) {
    if (votes == 0) candidate = names[i];
    votes += compare_skeletons(candidate, names[i], &differing, &which) ? 1 : -1;
  }
  return candidate;
}

static numbered make_numbered(char *name, int run) {
  const char *at = name;
  for (; run >= 0; run--) {
    while (!is_digit(*at)) at++;
    if (run > 0) at = skip_digits(at);
  }
  const char *end = skip_digits(at), *digits = at;
  while (digits + 1 < end && *digits == '0') digits++;
  return (numbered){.name = name,
                    .run = at,
                    .run_size = (size_t)(end - at),
                    .digits = digits,
                    .size = (size_t)(end - digits)};
}

static int compare_numbers(const numbered *a, const numbered *b) {
  if (a->size != b->size) return a->size < b->size ? -1 : 1;
  return memcmp(a->digits, b->digits, a->size);
}

static int compare_for_sort(const void *a, const void *b) {
  const numbered *x = a, *y = b;
  int order = compare_numbers(x, y);
  return order != 0 ? order : (x->run_size > y->run_size) - (x->run_size < y->run_size);
}

/* Is b = a + 1? Walks from the last digit while there is a carry. */
static bool follows(const numbered *a, const numbered *b) {
  size_t nines = 0;
  while (nines < a->size && a->digits[a->size - 1 - nines] == '9') nines++;
  for (size_t i = 0; i < nines; i++) {
    if (i >= b->size || b->digits[b->size - 1 - i] != '0') return false;
  }
  if (nines == a->size) return b->size == a->size + 1 && b->digits[0] == '1';
  size_t same = a->size - 1 - nines;
  return b->size == a->size && memcmp(a->digits, b->digits, same) == 0 &&
         b->digits[same] == a->digits[same] + 1;
}

/* ---- refusals ---- */

/* A name without the folder that the message names anyway. */
static const char *shown(const char *name, const tegula__name_set *set) {
  const char *where = set->where;
  size_t size = strlen(where);
  while (size > 1 && where[size - 1] == '/') size--;
  return size > 0 && strncmp(name, where, size) == 0 && name[size] == '/' ? name + size + 1 : name;
}

static const char *path_of(const tegula__name_set *set, const char *name) {
  return set->path != NULL ? set->path : name;
}

static tegula_status refuse_pair(const tegula__name_set *set, tegula_status status, const char *a,
                                 const char *b, const char *what, tegula_error *err) {
  return tegula__hint(err,
                      tegula__fail(err, status, path_of(set, a), -1,
                                   "\"%s\" is no sequence of %s: \"%.200s\" and \"%.200s\" %s",
                                   set->where, set->things, shown(a, set), shown(b, set), what),
                      "%s", set->foreign_hint);
}

static tegula_status refuse_foreign(const tegula__name_set *set, const char *name,
                                    const char *reference, tegula_error *err) {
  return tegula__hint(
      err,
      tegula__fail(err, TEGULA_MISMATCH, path_of(set, name), -1,
                   "\"%s\" is no sequence of %s: \"%.200s\" is not named like \"%.200s\"",
                   set->where, set->things, shown(name, set), shown(reference, set)),
      "%s", set->foreign_hint);
}

/* The number after a's, written as in a's name: 0009 gives 0010. */
static void next_number(const numbered *a, char *out, size_t size) {
  size_t digits = a->run_size < size - 2 ? a->run_size : size - 2;
  out[0] = '0';
  memcpy(out + 1, a->run + (a->run_size - digits), digits);
  out[digits + 1] = '\0';
  size_t i = digits;
  while (i > 0 && out[i] == '9') out[i--] = '0';
  out[i]++;
  if (i > 0) memmove(out, out + 1, digits + 1);
}

static tegula_status refuse_hole(const tegula__name_set *set, const numbered *a, const numbered *b,
                                 tegula_error *err) {
  char number[80];
  next_number(a, number, sizeof number);
  const char *name = shown(a->name, set);
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_INCOMPLETE, path_of(set, a->name), -1,
                                   "\"%s\" has a hole: number %s (\"%.*s%s%.100s\") is missing "
                                   "between \"%.200s\" and \"%.200s\"",
                                   set->where, number, (int)tegula__min(a->run - name, 200), name,
                                   number, a->run + a->run_size, name, shown(b->name, set)),
                      "%s", set->hole_hint);
}

/* ---- the sequence ---- */

/* The number of the only run of digits that differs. */
static tegula_status find_run(char *const *names, int64_t count, const char *reference,
                              const tegula__name_set *set, int *run, tegula_error *err) {
  *run = -1;
  for (int64_t i = 0; i < count; i++) {
    int differing, which;
    if (!compare_skeletons(reference, names[i], &differing, &which))
      return refuse_foreign(set, names[i], reference, err);
    if (differing == 0) continue;
    if (differing > 1 || (*run >= 0 && *run != which))
      return refuse_pair(set, TEGULA_MISMATCH, names[i], reference,
                         "and their like differ in more than one number", err);
    *run = which;
  }
  if (*run < 0)
    return refuse_pair(set, TEGULA_MISMATCH, names[0], names[1], "are the same name", err);
  return TEGULA_OK;
}

/* All widths must be those of one %0Wd: a number with leading zeros fixes W, and no number is
 * shorter. */
static tegula_status check_widths(const numbered *items, int64_t count, const tegula__name_set *set,
                                  tegula_error *err) {
  const numbered *padded = NULL;
  for (int64_t i = 0; i < count && padded == NULL; i++) {
    if (items[i].run_size > items[i].size) padded = &items[i];
  }
  for (int64_t i = 0; i < count && padded != NULL; i++) {
    bool zeros = items[i].run_size > items[i].size;
    bool good =
        zeros ? items[i].run_size == padded->run_size : items[i].run_size >= padded->run_size;
    if (!good)
      return refuse_pair(set, TEGULA_MISMATCH, padded->name, items[i].name,
                         "pad their numbers differently", err);
  }
  return TEGULA_OK;
}

static tegula_status check_sequence(const numbered *items, int64_t count,
                                    const tegula__name_set *set, tegula_error *err) {
  for (int64_t i = 1; i < count; i++) {
    if (compare_numbers(&items[i - 1], &items[i]) == 0)
      return refuse_pair(set, TEGULA_MISMATCH, items[i - 1].name, items[i].name,
                         "have the same number", err);
  }
  FORWARD(check_widths(items, count, set, err));
  for (int64_t i = 1; i < count; i++) {
    if (!follows(&items[i - 1], &items[i])) return refuse_hole(set, &items[i - 1], &items[i], err);
  }
  return TEGULA_OK;
}

tegula_status tegula__names_order_set(char **names, int64_t count, const tegula__name_set *set,
                                      tegula_error *err) {
  if (count < 2) return TEGULA_OK;
  const char *reference = find_reference(names, count);
  int run;
  FORWARD(find_run(names, count, reference, set, &run, err));
  numbered *items = tegula__realloc_array(NULL, count, sizeof *items);
  if (items == NULL) return tegula__out_of_memory(err, count * (int64_t)sizeof *items);
  for (int64_t i = 0; i < count; i++) items[i] = make_numbered(names[i], run);
  qsort(items, (size_t)count, sizeof *items, compare_for_sort);
  tegula_status status = check_sequence(items, count, set, err);
  for (int64_t i = 0; i < count; i++) names[i] = items[i].name;
  free(items);
  return status;
}

tegula_status tegula__names_order(char **names, int64_t count, const char *where,
                                  tegula_error *err) {
  const tegula__name_set files = {
      .where = where,
      .things = "files",
      .foreign_hint = "move away what does not belong to the set, open a quoted pattern, or pass "
                      "the files as a list in the order wanted",
      .hole_hint = "bring the missing file back, or pass the files as a list to load without it"};
  return tegula__names_order_set(names, count, &files, err);
}

/* ---- lists in the caller's order ---- */

/* Do all paths differ in one and the same number only? */
static bool is_one_sequence(const char *const *paths, int64_t count) {
  int run = -1;
  for (int64_t i = 1; i < count; i++) {
    int differing, which;
    if (!compare_skeletons(paths[0], paths[i], &differing, &which)) return false;
    if (differing == 0) continue;
    if (differing > 1 || (run >= 0 && run != which)) return false;
    run = which;
  }
  return true;
}

/* Two neighbours that differ in one number only. In one sequence that number must not fall; in any
 * other list it must not fall while the text rises (part_12, part_2): that is how a shell sorts,
 * and nobody else. */
tegula_status tegula__names_check_order(const char *const *paths, int64_t count,
                                        tegula_error *err) {
  bool sequence = is_one_sequence(paths, count);
  for (int64_t i = 1; i < count; i++) {
    int differing, run;
    if (!compare_skeletons(paths[i - 1], paths[i], &differing, &run) || differing != 1) continue;
    numbered before = make_numbered((char *)paths[i - 1], run),
             now = make_numbered((char *)paths[i], run);
    if (compare_numbers(&before, &now) <= 0 || (!sequence && strcmp(paths[i - 1], paths[i]) > 0))
      continue;
    return tegula__hint(
        err,
        tegula__fail(
            err, TEGULA_INVALID_ARGUMENT, paths[i], -1,
            "the files are a numbered sequence out of order: \"%.300s\" comes after \"%.300s\"",
            paths[i], paths[i - 1]),
        "quote the pattern so that the shell does not expand it, or say that the order is as given "
        "(--as-given)");
  }
  return TEGULA_OK;
}
