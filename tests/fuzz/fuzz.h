/* What the fuzz targets share: input in memory of exactly its size, and conditions that must hold.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A target is one file fuzz_NAME.c with LLVMFuzzerTestOneInput. A copy of the input ends where a
 * page begins that cannot be touched, so that reading one byte too many stops the program also
 * without a sanitizer. */
#ifndef TEGULA_FUZZ_FUZZ_H
#define TEGULA_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A condition that no input may break. */
#define MUST(condition)                                                                            \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition);                      \
      abort();                                                                                     \
    }                                                                                              \
  } while (0)

typedef struct guarded {
  char *data; /* `size` bytes, then a page that cannot be touched */
  size_t size;
  void *map;
  size_t mapped;
} guarded;

/* Copies the bytes; with `zero` one zero byte more. */
static inline guarded guarded_copy(const void *data, size_t size, bool zero) {
  const size_t page = 4096;
  size_t whole = size + zero, room = (whole + page - 1) / page * page;
  guarded out = {.size = whole, .mapped = room + page};
  out.map = mmap(NULL, out.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(out.map != MAP_FAILED);
  MUST(mprotect((char *)out.map + room, page, PROT_NONE) == 0);
  out.data = (char *)out.map + room - whole;
  if (size > 0) memcpy(out.data, data, size);
  return out;
}

static inline void guarded_free(guarded *memory) { munmap(memory->map, memory->mapped); }

/* The next `size` bytes of the input as a number; zeros when there are none left. */
static inline uint64_t take_number(const uint8_t **data, size_t *left, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i<size && * left> 0; i++) {
    value |= (uint64_t) * (*data)++ << 8 * i;
    (*left)--;
  }
  return value;
}

#endif
