/* Failing, allocating and looking at the clock.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Nothing here returns an error: every failure ends the program with status 1. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "bench.h"

#define HUGE_PAGE ((size_t)2 << 20)

_Noreturn void die(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("tegula_bench: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

void must(tegula_status status, const tegula_error *error) {
  if (status != TEGULA_OK) die("%s (%s)", error->message, tegula_status_name(status));
}

void *must_allocate(size_t count, size_t size) {
  void *memory = calloc(count > 0 ? count : 1, size);
  if (memory == NULL) die("no memory for %zu items of %zu bytes", count, size);
  return memory;
}

double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int64_t memory_status(const char *field) {
  char line[256];
  long long kib = -1;
  size_t length = strlen(field);
  FILE *file = fopen("/proc/self/status", "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, field, length) == 0 && line[length] == ':') kib = atoll(line + length + 1);
  if (file != NULL) fclose(file);
  if (kib < 0) die("/proc/self/status has no %s", field);
  return kib * 1024;
}

/* The mapping is longer than asked, so that a 2 MiB boundary with `size` bytes behind it is inside;
 * the ends are given back. */
void *fresh_memory(size_t size) {
  size_t whole = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE + HUGE_PAGE;
  char *memory =
      mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) die("no memory for %zu bytes", size);
  size_t before = (HUGE_PAGE - (uintptr_t)memory % HUGE_PAGE) % HUGE_PAGE;
  if (before > 0) munmap(memory, before);
  munmap(memory + before + whole - HUGE_PAGE, HUGE_PAGE - before);
  madvise(memory + before, whole - HUGE_PAGE, MADV_HUGEPAGE);
  return memory + before;
}

void release_memory(void *memory, size_t size) {
  munmap(memory, (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
}
