/* What the tests of codecs share: golden chunks (tests/golden/generate_codec.py), and memory of
 * exactly the size.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * To be included behind cmocka.h. */
#ifndef TEGULA_TEST_CODEC_SUPPORT_H
#define TEGULA_TEST_CODEC_SUPPORT_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/codec.h"

/* A chunk as libhdf5 stored it, and what must come out. */
typedef struct golden {
  char name[256];
  tegula__filter filters[TEGULA__CHAIN_MAX];
  int32_t count;
  uint32_t mask;
  unsigned char *stored, *plain;
  size_t stored_size, plain_size;
} golden;

static inline unsigned char *read_whole(const char *name, const char *suffix, size_t *size) {
  char path[512];
  snprintf(path, sizeof path, "%s/codec/%s%s", TEGULA_GOLDEN, name, suffix);
  FILE *file = fopen(path, "rb");
  if (file == NULL) fail_msg("could not open %s", path);
  unsigned char *data = malloc(1 << 20);
  *size = fread(data, 1, 1 << 20, file);
  fclose(file);
  return data;
}

/* The same bytes in memory that ends with them. */
static inline unsigned char *exactly(const unsigned char *data, size_t size) {
  unsigned char *copy = malloc(size ? size : 1);
  memcpy(copy, data, size);
  return copy;
}

static inline uint16_t codec_named(const char *name) {
  for (uint16_t codec = 1; codec < TEGULA__CODEC_COUNT; codec++)
    if (strcmp(tegula__codec_name(codec), name) == 0) return codec;
  fail_msg("no codec is named %s", name);
  return 0;
}

/* "NAME[:PARAMETER...]" */
static inline tegula__filter filter_of(char *word) {
  tegula__filter filter = {0};
  char *rest, *part = strtok_r(word, ":", &rest);
  filter.codec = codec_named(part);
  while ((part = strtok_r(NULL, ":", &rest)) != NULL && filter.param_count < TEGULA__FILTER_PARAMS)
    filter.params[filter.param_count++] = (uint32_t)strtoul(part, NULL, 10);
  return filter;
}

static inline golden golden_read(const char *name) {
  golden out = {0};
  size_t size;
  unsigned char *data = read_whole(name, ".chunk", &size), *end = memchr(data, '\n', size);
  assert_non_null(end);
  *end = 0;
  snprintf(out.name, sizeof out.name, "%s", name);
  char *rest, *word = strtok_r((char *)data, " ", &rest);
  out.plain = read_whole(word, ".raw", &out.plain_size);
  out.mask = (uint32_t)strtoul(strtok_r(NULL, " ", &rest), NULL, 10);
  while ((word = strtok_r(NULL, " ", &rest)) != NULL) out.filters[out.count++] = filter_of(word);
  out.stored_size = size - (size_t)(end + 1 - data);
  out.stored = exactly(end + 1, out.stored_size);
  free(data);
  return out;
}

static inline void golden_free(golden *g) {
  free(g->stored);
  free(g->plain);
}

/* bitshuffle is always there, its compressors are not. */
static inline bool filter_available(const tegula__filter *filter) {
  bool inner = filter->codec == TEGULA__CODEC_BITSHUFFLE && filter->param_count > 2;
  if (inner && filter->params[2] == 2) return tegula__codec_available(TEGULA__CODEC_LZ4);
  if (inner && filter->params[2] == 3) return tegula__codec_available(TEGULA__CODEC_ZSTD);
  return tegula__codec_available(filter->codec);
}

static inline bool golden_available(const golden *g) {
  for (int32_t i = 0; i < g->count; i++)
    if (!filter_available(&g->filters[i])) return false;
  return true;
}

/* Calls `visit` with every golden chunk; returns how many there are. */
static inline int golden_each(void (*visit)(const golden *g)) {
  int count = 0;
  DIR *folder = opendir(TEGULA_GOLDEN "/codec");
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    char *dot = strrchr(entry->d_name, '.');
    if (dot == NULL || strcmp(dot, ".chunk") != 0) continue;
    *dot = 0;
    golden g = golden_read(entry->d_name);
    visit(&g);
    golden_free(&g);
    count++;
  }
  closedir(folder);
  return count;
}

/* libblosc2 keeps memory of arrays whose chunks do not decode (3.3.5). */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libblosc2.so"; }

#endif
