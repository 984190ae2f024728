/* What the tests of the public header share: a folder with a small set of npy shards, and short
 * ways to open, cut and make.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Only the public header is used. The shards hold 0, 1, 2, ... as '<i4' rows of 4: shard i has i +
 * 1 rows, so three have 6
 * rows. */
#ifndef TEGULA_TEST_API_SUPPORT_H
#define TEGULA_TEST_API_SUPPORT_H

#include "support.h"

enum { SHARDS = 3, SHARD_COLUMNS = 4, SHARD_ROWS = 6 };

/* An npy file, version 1, of `rows` x `columns` 4-byte integers that count up from `first`. */
static inline void npy_write(const char *path, int rows, int columns, int32_t first) {
  char header[128];
  memset(header, ' ', sizeof header);
  memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10); /* 118 = 128 - 10 bytes of text */
  int used =
      snprintf(header + 10, sizeof header - 10,
               "{'descr': '<i4', 'fortran_order': False, 'shape': (%d, %d), }", rows, columns);
  header[10 + used] = ' ';
  header[127] = '\n';
  FILE *stream = fopen(path, "wb");
  assert_non_null(stream);
  assert_int_equal(fwrite(header, 1, sizeof header, stream), sizeof header);
  for (int32_t i = 0; i < rows * columns; i++) {
    int32_t value = first + i;
    assert_int_equal(fwrite(&value, sizeof value, 1, stream), 1);
  }
  assert_int_equal(fclose(stream), 0);
}

static inline folder shards_write(void) {
  folder made = folder_make();
  int32_t first = 0;
  for (int i = 0; i < SHARDS; i++) {
    npy_write(name_in(&made, "shard_%04d.npy", i).text, i + 1, SHARD_COLUMNS, first);
    first += (i + 1) * SHARD_COLUMNS;
  }
  return made;
}

static inline tegula_context *context_make(int32_t threads) {
  tegula_error error;
  tegula_context *context = NULL;
  tegula_context_options options;
  tegula_context_options_init(&options);
  options.threads = threads;
  assert_ok(tegula_context_create(&options, NULL, &context, &error));
  return context;
}

static inline tegula_dataset *dataset_open(tegula_context *context, const char *path) {
  tegula_error error;
  tegula_dataset *dataset = NULL;
  assert_ok(tegula_dataset_open(context, path, NULL, &dataset, &error));
  return dataset;
}

static inline tegula_tiling *tiling_make(int64_t rows, int64_t columns, int64_t tiles) {
  tegula_error error;
  tegula_tiling *tiling = NULL;
  assert_ok(tegula_tiling_even((int64_t[]){rows, columns}, 2, 0, tiles, 1, &tiling, &error));
  return tiling;
}

static inline tegula_array *array_make(tegula_context *context, int64_t rows, int64_t columns,
                                       int64_t tiles) {
  tegula_error error;
  tegula_array *array = NULL;
  tegula_tiling *tiling = tiling_make(rows, columns, tiles);
  assert_ok(tegula_array_create(context, dtype_of("<i4"), tiling, NULL, &array, &error));
  tegula_tiling_destroy(tiling);
  return array;
}

/* Does each element hold its own number in C order? */
static inline void expect_counting(const tegula_array *array) {
  for (int64_t t = 0; t < tegula_array_tiles(array); t++) {
    tegula_error error;
    tegula_view view;
    assert_ok(tegula_array_view(array, t, &view, &error));
    for (int64_t i = view.box.lo[0]; i < view.box.hi[0]; i++)
      for (int64_t k = view.box.lo[1]; k < view.box.hi[1]; k++) {
        int32_t value;
        memcpy(&value,
               (char *)view.data + (i - view.box.lo[0]) * view.stride_bytes[0] +
                   (k - view.box.lo[1]) * view.stride_bytes[1],
               4);
        assert_int_equal(value, i * SHARD_COLUMNS + k);
      }
  }
}

#endif
