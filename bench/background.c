/* What runs in the background: batches that are read while the caller works, saves that are queued
 * and waited for at once.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The consumer of batches takes, for each, the time that reading one takes when nothing is
 * consumed, measured beforehand. One that sleeps stands for work on a device: reading has all
 * processors. One that is busy does a fixed amount of arithmetic and keeps one processor; reading
 * what is cached needs processors too, so that one belongs with fewer threads (--threads) on a
 * machine that is idle. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

enum { BATCH_BYTES = 16 << 20, SAVES = 100, SAVE_BYTES = 64 << 10 };

/* ---- batches ---- */

typedef struct consumer {
  tegula_dataset *dataset;
  int64_t chunk[TEGULA_MAX_DIMS];
  int32_t ndim;
  int64_t batches;
  int busy;
  double seconds; /* for one batch; 0: none */
  uint64_t steps; /* of arithmetic in that time, when busy */
} consumer;

/* Each step needs the one before. */
static uint64_t compute(uint64_t steps) {
  uint64_t x = steps;
  for (uint64_t i = 0; i < steps; i++) x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
  return x;
}

static void consume(const consumer *c) {
  if (c->busy) {
    volatile uint64_t result = compute(c->steps);
    (void)result;
  } else if (c->seconds > 0) {
    nanosleep(&(struct timespec){(time_t)c->seconds,
                                 (long)((c->seconds - (double)(time_t)c->seconds) * 1e9)},
              NULL);
  }
}

static double walk(consumer *c, int consuming) {
  tegula_error error;
  tegula_batches *batches;
  tegula_array *array;
  tegula_status status;
  double start = now();
  must(tegula_batches_open(c->dataset, c->chunk, c->ndim, NULL, &batches, &error), &error);
  for (c->batches = 0; (status = tegula_batches_next(batches, &array, NULL, &error)) == TEGULA_OK;
       c->batches++) {
    if (consuming) consume(c);
    tegula_array_destroy(array);
  }
  if (status != TEGULA_END) must(status, &error);
  tegula_batches_close(batches);
  return now() - start;
}

static double both(void *state) { return walk(state, 1); }

static double longer_alone(void *state) {
  const consumer *c = state;
  double reading = walk(state, 0), start = now();
  for (int64_t i = 0; i < c->batches; i++) consume(c);
  double consuming = now() - start;
  return reading > consuming ? reading : consuming;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* How long a batch is consumed: medians, because this is done once. */
static void calibrate(consumer *c) {
  enum { RUNS = 7, STEPS = 2000000 };
  double reading[RUNS], computing[RUNS];
  walk(c, 0);
  for (int i = 0; i < RUNS; i++) {
    reading[i] = walk(c, 0);
    double start = now();
    volatile uint64_t result = compute(STEPS);
    (void)result;
    computing[i] = now() - start;
  }
  qsort(reading, RUNS, sizeof *reading, by_size);
  qsort(computing, RUNS, sizeof *computing, by_size);
  c->seconds = reading[RUNS / 2] / (double)c->batches;
  c->steps = (uint64_t)(c->seconds / computing[RUNS / 2] * STEPS);
}

void batches_pairs(tegula_context *context, const char *path, int busy, int pairs) {
  tegula_error error;
  tegula_dataset_info_t info;
  consumer c = {.busy = busy};
  tegula_dataset_info_init(&info);
  must(tegula_dataset_open(context, path, NULL, &c.dataset, &error), &error);
  must(tegula_dataset_info(c.dataset, &info, &error), &error);
  if (info.ndim == 0 || info.bytes < BATCH_BYTES)
    die("\"%s\" is not large enough for batches of %d bytes", path, BATCH_BYTES);
  c.ndim = info.ndim;
  for (int32_t k = 0; k < info.ndim; k++) c.chunk[k] = info.shape[k];
  c.chunk[0] = BATCH_BYTES / (info.bytes / info.shape[0]);
  calibrate(&c);
  printf("{\"bytes\": %lld, \"batches\": %lld, \"seconds_a_batch\": %.9f", (long long)info.bytes,
         (long long)c.batches, c.seconds);
  print_pairs(pairs, both, longer_alone, &c);
  printf("}\n");
  tegula_dataset_close(c.dataset);
}

/* ---- fence ---- */

typedef struct saver {
  tegula_context *context;
  const char *folder;
  tegula_array *arrays[SAVES];
  char *paths[SAVES];
} saver;

static void remove_files(const saver *s) {
  for (int i = 0; i < SAVES; i++)
    if (unlink(s->paths[i]) != 0) die("could not remove \"%s\"", s->paths[i]);
}

static double save_and_fence(void *state) {
  const saver *s = state;
  tegula_error error;
  double start = now();
  for (int i = 0; i < SAVES; i++)
    must(tegula_save_async(s->arrays[i], s->paths[i], NULL, NULL, &error), &error);
  must(tegula_fence(s->context, &error), &error);
  double seconds = now() - start;
  remove_files(s);
  return seconds;
}

static double save_in_turn(void *state) {
  const saver *s = state;
  tegula_error error;
  double start = now();
  for (int i = 0; i < SAVES; i++)
    must(tegula_save(s->arrays[i], s->paths[i], NULL, &error), &error);
  double seconds = now() - start;
  remove_files(s);
  return seconds;
}

static void make_array(saver *s, int index, tegula_tiling *tiling) {
  tegula_error error;
  tegula_view view;
  tegula_dtype dtype;
  must(tegula_dtype_parse("<f4", &dtype, &error), &error);
  must(tegula_array_create(s->context, dtype, tiling, NULL, &s->arrays[index], &error), &error);
  must(tegula_array_block(s->arrays[index], &view, &error), &error);
  for (int i = 0; i < SAVE_BYTES / 4; i++) ((float *)view.data)[i] = (float)(index + i);
  if (asprintf(&s->paths[index], "%s/save_%03d.npy", s->folder, index) < 0)
    die("no memory for a name");
}

void fence_pairs(tegula_context *context, const char *path, int pairs) {
  tegula_error error;
  tegula_tiling *tiling;
  saver s = {.context = context, .folder = path};
  must(tegula_tiling_even((int64_t[]){SAVE_BYTES / 4}, 1, 0, 1, 1, &tiling, &error), &error);
  for (int i = 0; i < SAVES; i++) make_array(&s, i, tiling);
  tegula_tiling_destroy(tiling);
  printf("{\"bytes\": %d", SAVES * SAVE_BYTES);
  print_pairs(pairs, save_and_fence, save_in_turn, &s);
  printf("}\n");
  for (int i = 0; i < SAVES; i++) {
    tegula_array_destroy(s.arrays[i]);
    free(s.paths[i]);
  }
}
