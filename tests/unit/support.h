/* What unit tests share: checks with readable failures, seeded random numbers, temporary folders
 * and files.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Everything is static inline, so a test takes what it needs. Random numbers depend on the seed
 * only: a failure can be
 * repeated. */
#ifndef TEGULA_TEST_SUPPORT_H
#define TEGULA_TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <tegula/tegula.h>

/* ---- how much ---- */

/* Rounds of a random test: a fifth under ThreadSanitizer, where each takes ten to thirty times as
 * long, but for TEGULA_ALL_ROUNDS (scripts/test --long=fuzz). */
static inline int rounds_of(int all) {
#ifdef __SANITIZE_THREAD__
  return getenv("TEGULA_ALL_ROUNDS") == NULL ? all / 5 : all;
#else
  return all;
#endif
}

/* ---- checks ---- */

static inline void assert_contains(const char *text, const char *part) {
  if (strstr(text, part) == NULL) fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

/* For a call that fills the variable `error`. */
#define assert_ok(call)                                                                            \
  do {                                                                                             \
    memset(&error, 0, sizeof error);                                                               \
    tegula_status status_of_call = (call);                                                         \
    if (status_of_call != TEGULA_OK)                                                               \
      fail_msg("%s: %s: %s", #call, tegula_status_name(status_of_call), error.message);            \
  } while (0)

/* The call must fail with this status, and fill `error` with it and with one line of message. */
#define assert_refused(call, expected)                                                             \
  do {                                                                                             \
    memset(&error, 0, sizeof error);                                                               \
    tegula_status status_of_call = (call);                                                         \
    if (status_of_call != (expected))                                                              \
      fail_msg("%s: expected %s, found %s: %s", #call, tegula_status_name(expected),               \
               tegula_status_name(status_of_call), error.message);                                 \
    assert_int_equal(error.status, status_of_call);                                                \
    assert_true(error.message[0] != '\0' && strchr(error.message, '\n') == NULL);                  \
  } while (0)

static inline tegula_dtype dtype_of(const char *text) {
  tegula_dtype dtype = {0};
  assert_int_equal(tegula_dtype_parse(text, &dtype, NULL), TEGULA_OK);
  return dtype;
}

/* ---- seeded random numbers (splitmix64) ---- */

static inline uint64_t random_next(uint64_t *seed) {
  uint64_t z = (*seed += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/* In [lo, hi]. */
static inline int64_t random_between(uint64_t *seed, int64_t lo, int64_t hi) {
  return lo + (int64_t)(random_next(seed) % (uint64_t)(hi - lo + 1));
}

static inline void random_bytes(uint64_t *seed, void *out, size_t size) {
  for (size_t i = 0; i < size; i++) ((unsigned char *)out)[i] = (unsigned char)random_next(seed);
}

/* ---- folders and files ---- */

typedef struct folder {
  char path[256];
} folder;

static inline folder folder_make(void) {
  folder made;
  const char *base = getenv("TMPDIR");
  snprintf(made.path, sizeof made.path, "%s/tegula-unit-XXXXXX",
           base != NULL && base[0] == '/' ? base : "/tmp");
  assert_non_null(mkdtemp(made.path));
  return made;
}

static inline int remove_entry(const char *path, const struct stat *info, int kind,
                               struct FTW *place) {
  (void)info, (void)kind, (void)place;
  return remove(path);
}

static inline void folder_remove(const folder *made) {
  assert_int_equal(nftw(made->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static inline int64_t *entry_counter(void) {
  static _Thread_local int64_t count;
  return &count;
}
static inline int count_entry(const char *path, const struct stat *info, int kind,
                              struct FTW *place) {
  (void)path, (void)info, (void)kind, (void)place;
  ++*entry_counter();
  return 0;
}

/* Files and folders below, at any depth. */
static inline int64_t folder_count(const char *path) {
  *entry_counter() = 0;
  assert_int_equal(nftw(path, count_entry, 16, FTW_PHYS), 0);
  return *entry_counter() - 1;
}

typedef struct file_name {
  char text[1024];
} file_name;

__attribute__((format(printf, 2, 3))) static inline file_name name_in(const folder *made,
                                                                      const char *format, ...) {
  file_name name;
  va_list arguments;
  int used = snprintf(name.text, sizeof name.text, "%s/", made->path);
  va_start(arguments, format);
  vsnprintf(name.text + used, sizeof name.text - (size_t)used, format, arguments);
  va_end(arguments);
  return name;
}

static inline void file_write(const char *path, const void *data, size_t size) {
  FILE *stream = fopen(path, "wb");
  assert_non_null(stream);
  assert_int_equal(fwrite(data, 1, size, stream), size);
  assert_int_equal(fclose(stream), 0);
}

/* The whole content, to be freed; *size gets its length. */
static inline unsigned char *file_read(const char *path, size_t *size) {
  FILE *stream = fopen(path, "rb");
  if (stream == NULL) fail_msg("cannot open \"%s\"", path);
  struct stat info;
  assert_int_equal(fstat(fileno(stream), &info), 0);
  unsigned char *data = malloc((size_t)info.st_size + 1);
  assert_non_null(data);
  *size = fread(data, 1, (size_t)info.st_size, stream);
  assert_int_equal(*size, info.st_size);
  fclose(stream);
  return data;
}

static inline bool path_exists(const char *path) {
  struct stat info;
  return lstat(path, &info) == 0;
}

static inline void sleep_ms(long milliseconds) {
  struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  nanosleep(&time, NULL);
}

#endif
