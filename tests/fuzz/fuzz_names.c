/* The order of the files of a set: what comes out are the names that went in, and what is accepted
 * counts up by one.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The input is a list of names, one per line; zero bytes end a name early, as they do in a path. */
#include "discover/discover.h"
#include "fuzz.h"

enum { MOST_NAMES = 64 };

/* Where a and b differ first, moved back to the start of the digits there. */
static size_t differing_run(const char *a, const char *b) {
  size_t at = 0;
  while (a[at] == b[at] && a[at] != '\0') at++;
  while (at > 0 && a[at - 1] >= '0' && a[at - 1] <= '9') at--;
  return at;
}

/* Is the number in b one more than that in a? Adds one to a copy of a's digits, which may grow by
 * one. */
static bool counts_up(const char *a, const char *b) {
  size_t at = differing_run(a, b), a_size = strspn(a + at, "0123456789"),
         b_size = strspn(b + at, "0123456789");
  if (a_size == 0 || b_size == 0 || strcmp(a + at + a_size, b + at + b_size) != 0) return false;
  char *next = malloc(a_size + 2);
  MUST(next != NULL);
  next[0] = '0';
  memcpy(next + 1, a + at, a_size);
  next[a_size + 1] = '\0';
  size_t i = a_size;
  while (next[i] == '9') next[i--] = '0';
  next[i]++;
  const char *expected = i > 0 ? next + 1 : next;
  bool good = strlen(expected) == b_size && memcmp(expected, b + at, b_size) == 0;
  free(next);
  return good;
}

static bool is_known(char *const *names, int count, const char *name) {
  for (int i = 0; i < count; i++)
    if (names[i] == name) return true;
  return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  guarded copies[MOST_NAMES];
  char *names[MOST_NAMES], *ordered[MOST_NAMES];
  int count = 0;
  for (size_t at = 0; at < size && count < MOST_NAMES; count++) {
    const uint8_t *end = memchr(data + at, '\n', size - at);
    size_t length = end != NULL ? (size_t)(end - data) - at : size - at;
    copies[count] = guarded_copy(data + at, length, true);
    names[count] = ordered[count] = copies[count].data;
    at += length + 1;
  }
  tegula_error error;
  tegula_status status = tegula__names_order(ordered, count, "folder", &error);
  for (int i = 0; i < count; i++) {
    MUST(is_known(names, count, ordered[i]) && is_known(ordered, count, names[i]));
    if (status == TEGULA_OK && i > 0) MUST(counts_up(ordered[i - 1], ordered[i]));
  }
  if (status == TEGULA_OK && count > 0)
    MUST(tegula__names_check_order((const char *const *)ordered, count, &error) == TEGULA_OK);
  else if (status != TEGULA_OK)
    MUST(status == TEGULA_INCOMPLETE || status == TEGULA_MISMATCH);
  status = tegula__names_check_order((const char *const *)names, count, &error);
  MUST(status == TEGULA_OK || status == TEGULA_INVALID_ARGUMENT);
  for (int i = 0; i < count; i++) guarded_free(&copies[i]);
  return 0;
}
