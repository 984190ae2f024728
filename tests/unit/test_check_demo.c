/* Demonstration values against an independent implementation (numpy), through the content hash of
 * whole arrays and single values, and in views of any byte order, strides and box.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "verify/hash.h"

static tegula__pool *pool;

static int make_pool(void **state) {
  (void)state;
  return tegula__pool_create(3, 3, &pool, NULL);
}

static int drop_pool(void **state) {
  (void)state;
  tegula__pool_destroy(pool);
  return 0;
}

static tegula_dtype dtype_of(const char *text) {
  tegula_dtype dtype;
  assert_int_equal(tegula_dtype_parse(text, &dtype, NULL), TEGULA_OK);
  return dtype;
}

/* A view of the whole of a dense array. */
static tegula_view whole_view(tegula_dtype dtype, void *data, const int64_t *shape, int32_t ndim) {
  tegula_view view = {
      .data = data, .dtype = dtype, .device_type = TEGULA_DEVICE_HOST, .box = {.ndim = ndim}};
  for (int32_t k = 0; k < ndim; k++) view.box.hi[k] = shape[k];
  tegula__dense_strides(shape, ndim, dtype.item_size, 'C', view.stride_bytes);
  return view;
}

static tegula_status fill(const tegula_view *view, const int64_t *shape, tegula_values values,
                          uint64_t seed) {
  return tegula__demo_fill(pool, tegula__kernel_select(), view, shape, values, seed, NULL);
}

static tegula_status check(const tegula_view *view, const int64_t *shape, tegula_values values,
                           uint64_t seed, tegula_error *err) {
  return tegula__demo_check(pool, tegula__kernel_select(), view, shape, values, seed, err);
}

/* ---- single values, worked out with numpy ---- */

static void the_first_values_of_seed_0(void **state) {
  (void)state;
  const int64_t shape[] = {3};
  uint64_t u8[3];
  float f4[3];
  tegula_view view = whole_view(tegula_dtype_native(dtype_of("u8")), u8, shape, 1);
  assert_int_equal(fill(&view, shape, TEGULA_VALUES_RANDOM, 0), TEGULA_OK);
  assert_true(u8[0] == UINT64_C(16294208416658607535));
  assert_true(u8[1] == UINT64_C(7960286522194355700));
  view = whole_view(tegula_dtype_native(dtype_of("f4")), f4, shape, 1);
  assert_int_equal(fill(&view, shape, TEGULA_VALUES_RANDOM, 0), TEGULA_OK);
  assert_true(f4[0] == 0x1p-24f * 14819496); /* 0.8833108 */
}

static void ramps_wrap_round_and_cut(void **state) {
  (void)state;
  const int64_t shape[] = {2500};
  int8_t i1[2500];
  uint8_t b1[2500];
  uint16_t f2[2500], bf[2500];
  float c8[2500][2];
  tegula_view view = whole_view(dtype_of("i1"), i1, shape, 1);
  assert_int_equal(fill(&view, shape, TEGULA_VALUES_RAMP, 5), TEGULA_OK);
  assert_int_equal(i1[128], -128);
  assert_int_equal(i1[999], (int8_t)(999 - 1024));
  assert_int_equal(i1[1000], 0);
  view = whole_view(dtype_of("b1"), b1, shape, 1);
  assert_int_equal(fill(&view, shape, TEGULA_VALUES_RAMP, 5), TEGULA_OK);
  assert_int_equal(b1[0] + b1[1000] + b1[2000], 0);
  assert_int_equal(b1[1] + b1[256] + b1[999], 3);
  view = whole_view(tegula_dtype_native(dtype_of("f2")), f2, shape, 1);
  assert_int_equal(fill(&view, shape, TEGULA_VALUES_RAMP, 5), TEGULA_OK);
  assert_int_equal(f2[1], 0x3c00);    /* 1.0 */
  assert_int_equal(f2[1999], 0x63ce); /* 999 = 2^9 * (1 + 974/1024) */
  view = whole_view(tegula_dtype_native(dtype_of("bfloat16")), bf, shape, 1);
  assert_int_equal(fill(&view, shape, TEGULA_VALUES_RAMP, 5), TEGULA_OK);
  assert_int_equal(bf[255], 0x437f);
  assert_int_equal(bf[257], 0x4380); /* halfway between 256 and 258: to even */
  assert_int_equal(bf[259], 0x4382); /* halfway between 258 and 260: to even */
  view = whole_view(tegula_dtype_native(dtype_of("c8")), c8, shape, 1);
  assert_int_equal(fill(&view, shape, TEGULA_VALUES_RAMP, 5), TEGULA_OK);
  assert_true(c8[2003][0] == 3.0f && c8[2003][1] == 0.0f);
}

/* ---- whole arrays ---- */

/* Content hashes of shape (31, 977), seed 42, made with numpy, ml_dtypes and the xxhash package:
 * random, ramp */
static const char *const hashes[][3] = {
    {"b1", "tegula1:af056529e00c3aea67a0991615de33b6", "tegula1:38dbb7a91e1da9b60981d313dee25443"},
    {"i1", "tegula1:e93e3cb0716f7b0457aad59d09dd57fd", "tegula1:2c1fda405d8e2069484bb715e0b124bf"},
    {"u1", "tegula1:159d9226fd9cbe0550f1f66d9a30e0a4", "tegula1:5324ae1fd497e71af62735e3480fa37f"},
    {"i2", "tegula1:a202d8c2fd9e914f52d37d0c15a0c4f5", "tegula1:8bfc26be93a7312a368fad79d2480e4d"},
    {"u2", "tegula1:54cc0095f7d267783a25e10c9ae1ffab", "tegula1:86459feb5d3c2aea8b076fe6c3cbc5c4"},
    {"i4", "tegula1:37f842ddf79344ddcba25d3ad74b8b71", "tegula1:e9c93665a599e61166b1c1b7419cc9ca"},
    {"u4", "tegula1:e22ceec9b855e6871a41bb14973cec2c", "tegula1:76dbd1e876b486be601833f15a773a33"},
    {"i8", "tegula1:6c350bcb222d8500ad1c838a139df214", "tegula1:a636417e89fb0022087ab157900e145a"},
    {"u8", "tegula1:5cbf0572a229cb58e7651fa53267afe0", "tegula1:493f8a1cf78ac95b74a5afd0639250bd"},
    {"f2", "tegula1:99fa8ef67c14143bb51f59a9b2af6d0d", "tegula1:04f72c2d45f9db359e4ff61fe18d9a12"},
    {"bfloat16", "tegula1:1bde3366e8747d8e73442642483e85df",
     "tegula1:e8df35825f81fbe7b266ead80a45bac0"},
    {"f4", "tegula1:0198002d3978660b7988f26e8369ec1f", "tegula1:c826fc0fdefa31cf3676c8764741d392"},
    {"f8", "tegula1:918b54f83da1ec59703eb4bb87d71d3d", "tegula1:a445495a614f444f19fe2520b33bc989"},
    {"c8", "tegula1:a87098cf6bef8b933f40ef1c7c874f81", "tegula1:09be9d891c97ac8b60d0821125928a4d"},
    {"c16", "tegula1:e1a596e2eff4aca1ae5ae1fa91b9d54b", "tegula1:e118f6cc124266e98270aea91a7af4cf"},
};

enum { DTYPES = sizeof hashes / sizeof hashes[0] };
static const int64_t shape31[] = {31, 977};

static void hash_of(tegula_dtype dtype, const void *data, char out[TEGULA_HASH_TEXT]) {
  tegula__hash128 sum = {0, 0};
  assert_int_equal(
      tegula__hash_run(pool, tegula__kernel_select(), dtype, data, 0, 31 * 977, &sum, NULL),
      TEGULA_OK);
  tegula__hash_text(dtype, shape31, 2, sum, out);
}

static void whole_arrays_hash_as_numpys_do(void **state) {
  (void)state;
  char *data = malloc(31 * 977 * 16), text[TEGULA_HASH_TEXT];
  for (size_t i = 0; i < DTYPES; i++)
    for (int values = 0; values < 2; values++)
      for (const char *order = "<>"; *order; order++) {
        tegula_dtype dtype = dtype_of(hashes[i][0]);
        if (dtype.order != '|') dtype.order = (uint8_t)*order;
        tegula_view view = whole_view(dtype, data, shape31, 2);
        assert_int_equal(fill(&view, shape31, (tegula_values)values, 42), TEGULA_OK);
        assert_int_equal(check(&view, shape31, (tegula_values)values, 42, NULL), TEGULA_OK);
        hash_of(dtype, data, text);
        if (strcmp(text, hashes[i][1 + values]) != 0)
          fail_msg("%s, values %d, order %c: %s", hashes[i][0], values, *order, text);
      }
  free(data);
}

/* ---- parts of arrays ---- */

static void a_box_in_strange_memory_holds_the_same_elements(void **state) {
  /* shape (9, 40, 50): box [2:8, 5:40, 7:49] in memory with axes (1, 2, 0), gaps, axis 2
   * backwards */
  (void)state;
  const int64_t shape[] = {9, 40, 50};
  for (size_t i = 0; i < DTYPES; i++) {
    tegula_dtype dtype = dtype_of(hashes[i][0]);
    if (dtype.order != '|' && i % 2) dtype.order = '>';
    int64_t item = dtype.item_size, depth = 6 * item + 3, row = 42 * depth;
    char *full = malloc((size_t)(9 * 40 * 50 * item)), *part = malloc((size_t)(35 * row));
    tegula_view view = whole_view(dtype, full, shape, 3);
    assert_int_equal(fill(&view, shape, TEGULA_VALUES_RANDOM, 3), TEGULA_OK);
    tegula_view box = {.data = part + 41 * depth,
                       .dtype = dtype,
                       .box = {.ndim = 3, .lo = {2, 5, 7}, .hi = {8, 40, 49}}};
    box.stride_bytes[0] = item;
    box.stride_bytes[1] = row;
    box.stride_bytes[2] = -depth;
    memset(part, 0x77, (size_t)(35 * row));
    assert_int_equal(fill(&box, shape, TEGULA_VALUES_RANDOM, 3), TEGULA_OK);
    assert_int_equal(check(&box, shape, TEGULA_VALUES_RANDOM, 3, NULL), TEGULA_OK);
    for (int64_t a = 2; a < 8; a++)
      for (int64_t b = 5; b < 40; b++)
        for (int64_t c = 7; c < 49; c++)
          assert_memory_equal(full + ((a * 40 + b) * 50 + c) * item,
                              (char *)box.data + (a - 2) * item + (b - 5) * row - (c - 7) * depth,
                              (size_t)item);
    for (int64_t gap = 0; gap < 35 * 42; gap++)
      assert_memory_equal(part + gap * depth + 6 * item, "www", 3);
    free(full);
    free(part);
  }
}

static void boxes_need_not_cover_whole_axes(void **state) {
  (void)state; /* one column of a wide array: indices step by the width */
  const int64_t shape[] = {3000, 7};
  int32_t all[3000][7], column[3000];
  tegula_view view = whole_view(tegula_dtype_native(dtype_of("i4")), all, shape, 2);
  assert_int_equal(fill(&view, shape, TEGULA_VALUES_RANDOM, 1), TEGULA_OK);
  tegula_view narrow = {.data = column,
                        .dtype = view.dtype,
                        .box = {.ndim = 2, .lo = {0, 4}, .hi = {3000, 5}},
                        .stride_bytes = {4, 4}};
  assert_int_equal(fill(&narrow, shape, TEGULA_VALUES_RANDOM, 1), TEGULA_OK);
  for (int i = 0; i < 3000; i++) assert_int_equal(column[i], all[i][4]);
}

static void empty_boxes_and_scalars(void **state) {
  (void)state;
  tegula_view none = {.dtype = dtype_of("<f4"), .box = {.ndim = 2, .lo = {0, 3}, .hi = {0, 5}}};
  assert_int_equal(fill(&none, (int64_t[]){0, 9}, TEGULA_VALUES_RANDOM, 1), TEGULA_OK);
  assert_int_equal(check(&none, (int64_t[]){0, 9}, TEGULA_VALUES_RANDOM, 1, NULL), TEGULA_OK);
  uint64_t value = 0;
  tegula_view scalar = {.data = &value, .dtype = tegula_dtype_native(dtype_of("u8"))};
  assert_int_equal(fill(&scalar, NULL, TEGULA_VALUES_RANDOM, 0), TEGULA_OK);
  assert_true(value == UINT64_C(16294208416658607535));
}

/* ---- differences ---- */

static void the_first_difference_is_named(void **state) {
  (void)state;
  const int64_t shape[] = {1000, 500};
  float *data = malloc(1000 * 500 * 4);
  tegula_error error;
  tegula_view view = whole_view(tegula_dtype_native(dtype_of("f4")), data, shape, 2);
  assert_int_equal(fill(&view, shape, TEGULA_VALUES_RAMP, 0), TEGULA_OK);
  /* the lowest is 300999 = (601, 499) */
  for (int64_t i = 499999; i >= 300123; i -= 1000) data[i] += 0.5f;
  for (int round = 0; round < 20; round++) {
    assert_int_equal(check(&view, shape, TEGULA_VALUES_RAMP, 0, &error), TEGULA_MISMATCH);
    assert_string_equal(
        error.message,
        "values differ from the ramp, first at index (601, 499): expected 999, found 999.5");
  }
  tegula_view box = view; /* rows [700, 1000): the place is named in the whole array */
  box.box.lo[0] = 700;
  box.data = data + 700 * 500;
  assert_int_equal(check(&box, shape, TEGULA_VALUES_RAMP, 0, &error), TEGULA_MISMATCH);
  assert_non_null(strstr(error.message, "first at index (701, 499): expected 999, found 999.5"));
  free(data);
}

static void found_values_are_written_in_their_type(void **state) {
  (void)state;
  static const struct {
    const char *dtype, *bytes, *text;
  } rows[] = {
      {"<i1", "\xfe", "expected 0, found -2"},
      {"b1", "\x02", "expected 0, found 2"},
      {">i2", "\xff\xfe", "expected 0, found -2"},
      {">u4", "\xff\xff\xff\xfe", "expected 0, found 4294967294"},
      {"<i8", "\0\0\0\0\0\0\0\x80", "expected 0, found -9223372036854775808"},
      {">u8", "\xff\xff\xff\xff\xff\xff\xff\xff", "expected 0, found 18446744073709551615"},
      {">f2", "\xb5\x55", "expected 0, found -0.33325"},
      {"<f2", "\x00\x7c", "expected 0, found inf"},
      {"<f2", "\x01\x00", "expected 0, found 5.9605e-08"},
      {">f2", "\x7b\xff", "expected 0, found 65504"},
      {">bfloat16", "\x43\x7f", "expected 0, found 255"},
      {">f4", "\xc0\x20\0\0", "expected 0, found -2.5"},
      {"<f8", "\0\0\0\0\0\0\xf8\x3f", "expected 0, found 1.5"},
      {">c8", "\x40\x20\0\0\xc0\x20\0\0", "expected (0, 0), found (2.5, -2.5)"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char item[16];
    tegula_error error;
    tegula_view view = {.data = item, .dtype = dtype_of(rows[i].dtype)};
    memcpy(item, rows[i].bytes, view.dtype.item_size);
    assert_int_equal(check(&view, NULL, TEGULA_VALUES_RAMP, 0, &error), TEGULA_MISMATCH);
    if (strstr(error.message, rows[i].text) == NULL) fail_msg("row %zu: %s", i, error.message);
  }
}

static void another_seed_differs_at_once(void **state) {
  (void)state;
  const int64_t shape[] = {10};
  int64_t data[10];
  tegula_error error;
  tegula_view view = whole_view(tegula_dtype_native(dtype_of("i8")), data, shape, 1);
  assert_int_equal(fill(&view, shape, TEGULA_VALUES_RANDOM, 1), TEGULA_OK);
  assert_int_equal(check(&view, shape, TEGULA_VALUES_RANDOM, 2, &error), TEGULA_MISMATCH);
  assert_non_null(
      strstr(error.message, "values differ from seed 2, first at index (0,): expected "));
}

/* ---- arguments ---- */

static void arguments_that_make_no_sense_are_refused(void **state) {
  (void)state;
  const int64_t shape[] = {4};
  float data[4];
  tegula_view good = whole_view(dtype_of("<f4"), data, shape, 1), view = good;
  assert_int_equal(fill(NULL, shape, TEGULA_VALUES_RANDOM, 0), TEGULA_INVALID_ARGUMENT);
  assert_int_equal(fill(&good, NULL, TEGULA_VALUES_RANDOM, 0), TEGULA_INVALID_ARGUMENT);
  assert_int_equal(fill(&good, shape, (tegula_values)2, 0), TEGULA_INVALID_ARGUMENT);
  /* box beyond the shape */
  assert_int_equal(fill(&good, (int64_t[]){3}, TEGULA_VALUES_RANDOM, 0), TEGULA_INVALID_ARGUMENT);
  view.box.lo[0] = -1;
  assert_int_equal(fill(&view, shape, TEGULA_VALUES_RANDOM, 0), TEGULA_INVALID_ARGUMENT);
  view = good;
  view.box.ndim = TEGULA_MAX_DIMS + 1;
  assert_int_equal(fill(&view, shape, TEGULA_VALUES_RANDOM, 0), TEGULA_INVALID_ARGUMENT);
  view = good;
  view.data = NULL;
  assert_int_equal(fill(&view, shape, TEGULA_VALUES_RANDOM, 0), TEGULA_INVALID_ARGUMENT);
  view = good;
  view.flags = TEGULA_VIEW_READ_ONLY;
  assert_int_equal(fill(&view, shape, TEGULA_VALUES_RANDOM, 0), TEGULA_INVALID_ARGUMENT);
  /* reading is allowed */
  assert_int_not_equal(check(&view, shape, TEGULA_VALUES_RANDOM, 0, NULL), TEGULA_INVALID_ARGUMENT);
  view = good;
  view.device_type = 2;
  assert_int_equal(fill(&view, shape, TEGULA_VALUES_RANDOM, 0), TEGULA_UNSUPPORTED);
  view = good;
  view.dtype.order = '=';
  assert_int_equal(fill(&view, shape, TEGULA_VALUES_RANDOM, 0), TEGULA_INVALID_ARGUMENT);
  view = (tegula_view){.data = data, .dtype = dtype_of("<f4"), .box = {.ndim = 2, .hi = {1, 1}}};
  assert_int_equal(fill(&view, (int64_t[]){INT64_MAX, 2}, TEGULA_VALUES_RANDOM, 0),
                   TEGULA_INVALID_ARGUMENT);
}

static void types_without_demonstration_values_are_unsupported(void **state) {
  (void)state;
  static const char *const texts[] = {"M8[s]", "m8", "S4", "U1", "V4"};
  char data[8];
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    tegula_view view = {.data = data, .dtype = dtype_of(texts[i])};
    assert_int_equal(fill(&view, NULL, TEGULA_VALUES_RANDOM, 0), TEGULA_UNSUPPORTED);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_first_values_of_seed_0),
      cmocka_unit_test(ramps_wrap_round_and_cut),
      cmocka_unit_test(whole_arrays_hash_as_numpys_do),
      cmocka_unit_test(a_box_in_strange_memory_holds_the_same_elements),
      cmocka_unit_test(boxes_need_not_cover_whole_axes),
      cmocka_unit_test(empty_boxes_and_scalars),
      cmocka_unit_test(the_first_difference_is_named),
      cmocka_unit_test(found_values_are_written_in_their_type),
      cmocka_unit_test(another_seed_differs_at_once),
      cmocka_unit_test(arguments_that_make_no_sense_are_refused),
      cmocka_unit_test(types_without_demonstration_values_are_unsupported),
  };
  return cmocka_run_group_tests_name("check: demo", tests, make_pool, drop_pool);
}
