/* What this process may use, not what the machine has: affinity mask and cgroups (version 2).
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Sources: sched(7), proc(5), the kernel's Documentation/admin-guide/cgroup-v2.rst. Files that are
 * not there mean "no limit". */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"

double tegula__now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The start of a small text file, terminated; false when it cannot be read. */
static bool read_text(const char *path, char *out, size_t size) {
  FILE *file = fopen(path, "re");
  RETURN_IF(file == NULL, false);
  size_t got = fread(out, 1, size - 1, file);
  fclose(file);
  out[got] = '\0';
  return got > 0;
}

/* This process's folder in the version 2 hierarchy ("0::/a/b" in /proc/self/cgroup), or "" for the
 * root. */
static void cgroup_folder(char out[2048]) {
  char text[2048];
  out[0] = '\0';
  if (!read_text("/proc/self/cgroup", text, sizeof text)) return;
  char *line = strstr(text, "0::/");
  if (line == NULL || (line != text && line[-1] != '\n')) return;
  line += 3;
  line[strcspn(line, "\n")] = '\0';
  if (strcmp(line, "/") != 0) memmove(out, line, strlen(line) + 1);
}

typedef void (*folder_fn)(const char *folder, void *state);

/* Calls visit for the process's cgroup folder and each of its parents: the tightest limit
 * counts. */
static void each_cgroup(folder_fn visit, void *state) {
  char relative[2048], folder[2304];
  cgroup_folder(relative);
  for (;;) {
    snprintf(folder, sizeof folder, "/sys/fs/cgroup%s", relative);
    visit(folder, state);
    char *slash = strrchr(relative, '/');
    if (slash == NULL) return;
    *slash = '\0';
  }
}

static bool read_limit(const char *folder, const char *name, char *text, size_t size) {
  char path[2560];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return read_text(path, text, size);
}

static void tighten_processors(const char *folder, void *state) {
  char text[128];
  long long quota, period;
  if (!read_limit(folder, "cpu.max", text, sizeof text) ||
      sscanf(text, "%lld %lld", &quota, &period) != 2)
    return;
  if (quota <= 0 || period <= 0) return;
  int64_t granted = tegula__ceil_div(quota, period);
  if (granted < *(int64_t *)state) *(int64_t *)state = granted;
}

/* Processors in the affinity mask, however many the machine has. */
static int64_t affinity_count(void) {
  for (int bits = 1024; bits <= 1 << 20; bits *= 4) {
    cpu_set_t *set = CPU_ALLOC((size_t)bits);
    if (set == NULL) break;
    size_t size = CPU_ALLOC_SIZE((size_t)bits);
    int count = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? online : 1;
}

int32_t tegula__granted_threads(void) {
  int64_t granted = affinity_count();
  each_cgroup(tighten_processors, &granted);
  return (int32_t)tegula__max(1, tegula__min(granted, 4096));
}

/* The value of "name <number>" in a text of lines; -1 when it is not there. */
static long long line_value(const char *text, const char *name) {
  size_t size = strlen(name);
  for (const char *line = text; line != NULL && *line != '\0';
       line = strchr(line, '\n'), line = line ? line + 1 : NULL)
    if (strncmp(line, name, size) == 0 && (line[size] == ' ' || line[size] == ':'))
      return atoll(line + size + 1);
  return -1;
}

/* memory.max less what cannot be given back: the file cache of the group is reclaimable. */
static void tighten_memory(const char *folder, void *state) {
  char text[8192];
  if (!read_limit(folder, "memory.max", text, sizeof text) || strncmp(text, "max", 3) == 0) return;
  long long most = atoll(text);
  if (most <= 0 || !read_limit(folder, "memory.current", text, sizeof text)) return;
  long long used = atoll(text);
  if (read_limit(folder, "memory.stat", text, sizeof text)) {
    long long cache = line_value(text, "file");
    if (cache > 0) used = tegula__max(0, used - cache);
  }
  int64_t left = tegula__max(0, most - used);
  if (left < *(int64_t *)state) *(int64_t *)state = left;
}

int64_t tegula__granted_memory(void) {
  char text[4096];
  int64_t granted = INT64_MAX;
  if (read_text("/proc/meminfo", text, sizeof text)) {
    long long available = line_value(text, "MemAvailable"), swap = line_value(text, "SwapFree");
    if (available >= 0) granted = (available + tegula__max(swap, 0)) * 1024;
  }
  each_cgroup(tighten_memory, &granted);
  return granted;
}
