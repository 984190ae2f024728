/* Saves against plain parallel pwrite of the same bytes, and alone for comparisons with other
 * programs.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The array is in memory before any clock runs. Plain pwrite makes one file of the array's bytes
 * with all threads, in blocks of 4 MiB. With --durable both bring their data to the disk within the
 * clock. What was written is removed outside of it. */
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"

enum { BLOCK = 4 << 20, GROUP = 100, GROUP_BYTES = 64 << 10 };

typedef struct saver {
  tegula_context *context;
  const save_kind *kind;
  tegula_array *array;
  tegula_view view;
  int64_t bytes;
  /* what is saved, the pattern of its tile folders, what plain pwrite makes */
  char *path, *tiles, *plain;
  int64_t stored; /* bytes of all files of the last save */
} saver;

static void load_array(saver *s, const char *path) {
  tegula_error error;
  tegula_dataset *dataset;
  tegula_tiling *tiling;
  tegula_dataset_info_t info;
  tegula_dataset_info_init(&info);
  must(tegula_dataset_open(s->context, path, NULL, &dataset, &error), &error);
  must(tegula_dataset_info(dataset, &info, &error), &error);
  must(tegula_tiling_even(info.shape, info.ndim, 0, tegula_context_threads(s->context), 1, &tiling,
                          &error),
       &error);
  must(tegula_array_create(s->context, info.dtype, tiling, NULL, &s->array, &error), &error);
  must(tegula_load(dataset, s->array, NULL, &error), &error);
  must(tegula_array_block(s->array, &s->view, &error), &error);
  s->bytes = info.bytes;
  tegula_tiling_destroy(tiling);
  tegula_dataset_close(dataset);
}

static int64_t walked; /* nftw has no state */

static int measure_one(const char *path, const struct stat *info, int kind, struct FTW *walk) {
  (void)path, (void)walk;
  walked += kind == FTW_F ? info->st_size : 0;
  return 0;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk) {
  (void)info, (void)kind, (void)walk;
  return remove(path);
}

static int64_t size_and_remove(const char *path) {
  struct stat info;
  walked = 0;
  if (stat(path, &info) != 0) return 0;
  if (nftw(path, measure_one, 16, FTW_PHYS) != 0 ||
      nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
    die("could not remove \"%s\"", path);
  return walked;
}

/* The folder of tiles has a name of its own for each save. */
static int64_t size_and_remove_all(const char *pattern) {
  glob_t found;
  int64_t size = 0;
  if (glob(pattern, 0, NULL, &found) != 0) return 0;
  for (size_t i = 0; i < found.gl_pathc; i++) size += size_and_remove(found.gl_pathv[i]);
  globfree(&found);
  return size;
}

static double time_save(void *state) {
  saver *s = state;
  tegula_error error;
  tegula_save_options options;
  tegula_save_options_init(&options);
  options.format = s->kind->layout != NULL ? "hdf5" : "npy";
  options.layout = s->kind->layout;
  options.codec = s->kind->codec;
  options.dataset = s->kind->layout != NULL ? "x" : NULL;
  options.chunk = s->kind->codec != NULL ? (int64_t[]){1024, 1024} : NULL;
  options.chunk_ndim = s->kind->codec != NULL ? 2 : 0;
  options.durable = (uint8_t)s->kind->durable;
  double start = now();
  must(tegula_save(s->array, s->path, &options, &error), &error);
  double seconds = now() - start;
  s->stored = size_and_remove(s->path) + size_and_remove_all(s->tiles);
  return seconds;
}

/* ---- plain pwrite ---- */

typedef struct plain_write {
  int fd;
  const char *data;
  int64_t bytes;
  _Atomic int64_t next;
} plain_write;

static void *write_blocks(void *state) {
  plain_write *w = state;
  for (int64_t at; (at = atomic_fetch_add(&w->next, BLOCK)) < w->bytes;) {
    int64_t end = at + BLOCK < w->bytes ? at + BLOCK : w->bytes;
    while (at < end) {
      ssize_t done = pwrite(w->fd, w->data + at, (size_t)(end - at), at);
      if (done <= 0) die("plain pwrite failed");
      at += done;
    }
  }
  return NULL;
}

static double time_plain(void *state) {
  const saver *s = state;
  int threads = (int)tegula_context_threads(s->context);
  pthread_t *ids = must_allocate((size_t)threads, sizeof *ids);
  double start = now();
  plain_write w = {.data = s->view.data,
                   .bytes = s->bytes,
                   .fd = open(s->plain, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
  if (w.fd < 0 || ftruncate(w.fd, s->bytes) != 0) die("could not make \"%s\"", s->plain);
  for (int i = 1; i < threads; i++)
    if (pthread_create(&ids[i], NULL, write_blocks, &w) != 0) die("could not start a thread");
  write_blocks(&w);
  for (int i = 1; i < threads; i++) pthread_join(ids[i], NULL);
  if (s->kind->durable && fdatasync(w.fd) != 0) die("could not sync \"%s\"", s->plain);
  close(w.fd);
  double seconds = now() - start;
  free(ids);
  unlink(s->plain);
  return seconds;
}

static void name(char **out, const char *folder, const char *file) {
  if (asprintf(out, "%s/%s", folder, file) < 0) die("no memory for a name");
}

void save_run(tegula_context *context, const char *path, const save_kind *kind, int pairs) {
  saver s = {.context = context, .kind = kind};
  if (kind->folder == NULL) die("save needs --at FOLDER");
  name(&s.path, kind->folder, kind->layout != NULL ? "saved.h5" : "saved.npy");
  name(&s.tiles, kind->folder, "saved.h5.tiles-*");
  name(&s.plain, kind->folder, "plain");
  load_array(&s, path);
  printf("{\"bytes\": %lld", (long long)s.bytes);
  if (kind->once) {
    /* libraries are loaded, pages are there: as for a peer that has written before */
    time_save(&s);
    printf(", \"seconds\": %.9f", time_save(&s));
  } else {
    print_pairs(pairs, time_save, time_plain, &s);
  }
  printf(", \"stored\": %lld}\n", (long long)s.stored);
  tegula_array_destroy(s.array);
  free(s.path);
  free(s.tiles);
  free(s.plain);
}

/* ---- many small arrays ---- */

static void make_member(tegula_context *context, int index, tegula_tiling *tiling,
                        tegula_array **array) {
  tegula_error error;
  tegula_view view;
  tegula_dtype dtype;
  must(tegula_dtype_parse("<f4", &dtype, &error), &error);
  must(tegula_array_create(context, dtype, tiling, NULL, array, &error), &error);
  must(tegula_array_block(*array, &view, &error), &error);
  for (int i = 0; i < GROUP_BYTES / 4; i++) ((float *)view.data)[i] = (float)(index + i);
}

static double time_group(const tegula_save_member *members, const char *path) {
  tegula_error error;
  tegula_save_options options;
  tegula_save_options_init(&options);
  options.format = "hdf5";
  double start = now();
  must(tegula_save_group(members, GROUP, path, &options, &error), &error);
  double seconds = now() - start;
  unlink(path);
  return seconds;
}

void group_run(tegula_context *context, const char *folder) {
  tegula_error error;
  tegula_tiling *tiling;
  tegula_save_member members[GROUP];
  tegula_array *arrays[GROUP];
  char names[GROUP][16], *path;
  name(&path, folder, "group.h5");
  must(tegula_tiling_even((int64_t[]){GROUP_BYTES / 4}, 1, 0, 1, 1, &tiling, &error), &error);
  for (int i = 0; i < GROUP; i++) {
    make_member(context, i, tiling, &arrays[i]);
    snprintf(names[i], sizeof names[i], "a%03d", i);
    tegula_save_member_init(&members[i]);
    members[i].array = arrays[i];
    members[i].dataset = names[i];
  }
  tegula_tiling_destroy(tiling);
  time_group(members, path);
  printf("{\"bytes\": %d, \"seconds\": %.9f}\n", GROUP * GROUP_BYTES, time_group(members, path));
  for (int i = 0; i < GROUP; i++) tegula_array_destroy(arrays[i]);
  free(path);
}
