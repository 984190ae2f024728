/* Dtype texts: every row of the first table is what numpy 2.4 says about the text (kind, dtype.str,
 * itemsize, datetime_data).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/base.h"

/* text, kind, order, item size, unit, unit count, numpy's dtype.str; orders as on a little-endian
 * processor */
static const struct {
  const char *text;
  char kind, order;
  uint32_t item_size;
  uint8_t unit;
  uint32_t unit_count;
  const char *numpy;
} table[] = {
    {"|b1", 'b', '|', 1, 0, 0, "|b1"},
    {"?", 'b', '|', 1, 0, 0, "|b1"},
    {"bool", 'b', '|', 1, 0, 0, "|b1"},
    {"int8", 'i', '|', 1, 0, 0, "|i1"},
    {"|i1", 'i', '|', 1, 0, 0, "|i1"},
    {"i1", 'i', '|', 1, 0, 0, "|i1"},
    {"<i2", 'i', '<', 2, 0, 0, "<i2"},
    {">i2", 'i', '>', 2, 0, 0, ">i2"},
    {"i2", 'i', '<', 2, 0, 0, "<i2"},
    {"int16", 'i', '<', 2, 0, 0, "<i2"},
    {"<i4", 'i', '<', 4, 0, 0, "<i4"},
    {">i4", 'i', '>', 4, 0, 0, ">i4"},
    {"int32", 'i', '<', 4, 0, 0, "<i4"},
    {"<i8", 'i', '<', 8, 0, 0, "<i8"},
    {">i8", 'i', '>', 8, 0, 0, ">i8"},
    {"int64", 'i', '<', 8, 0, 0, "<i8"},
    {"|u1", 'u', '|', 1, 0, 0, "|u1"},
    {"uint8", 'u', '|', 1, 0, 0, "|u1"},
    {"<u2", 'u', '<', 2, 0, 0, "<u2"},
    {">u2", 'u', '>', 2, 0, 0, ">u2"},
    {"uint16", 'u', '<', 2, 0, 0, "<u2"},
    {"u4", 'u', '<', 4, 0, 0, "<u4"},
    {">u4", 'u', '>', 4, 0, 0, ">u4"},
    {"uint32", 'u', '<', 4, 0, 0, "<u4"},
    {"u8", 'u', '<', 8, 0, 0, "<u8"},
    {">u8", 'u', '>', 8, 0, 0, ">u8"},
    {"uint64", 'u', '<', 8, 0, 0, "<u8"},
    {"<f2", 'f', '<', 2, 0, 0, "<f2"},
    {">f2", 'f', '>', 2, 0, 0, ">f2"},
    {"float16", 'f', '<', 2, 0, 0, "<f2"},
    {"f4", 'f', '<', 4, 0, 0, "<f4"},
    {"<f4", 'f', '<', 4, 0, 0, "<f4"},
    {">f4", 'f', '>', 4, 0, 0, ">f4"},
    {"float32", 'f', '<', 4, 0, 0, "<f4"},
    {"f8", 'f', '<', 8, 0, 0, "<f8"},
    {">f8", 'f', '>', 8, 0, 0, ">f8"},
    {"float64", 'f', '<', 8, 0, 0, "<f8"},
    {"<c8", 'c', '<', 8, 0, 0, "<c8"},
    {">c8", 'c', '>', 8, 0, 0, ">c8"},
    {"complex64", 'c', '<', 8, 0, 0, "<c8"},
    {"c16", 'c', '<', 16, 0, 0, "<c16"},
    {">c16", 'c', '>', 16, 0, 0, ">c16"},
    {"complex128", 'c', '<', 16, 0, 0, "<c16"},
    {"<M8", 'M', '<', 8, 0, 0, "<M8"},
    {"M8", 'M', '<', 8, 0, 0, "<M8"},
    {">M8[ns]", 'M', '>', 8, 10, 1, ">M8[ns]"},
    {"<M8[25s]", 'M', '<', 8, 7, 25, "<M8[25s]"},
    {"M8[D]", 'M', '<', 8, 4, 1, "<M8[D]"},
    {"datetime64[ms]", 'M', '<', 8, 8, 1, "<M8[ms]"},
    {"m8[as]", 'm', '<', 8, 13, 1, "<m8[as]"},
    {">m8[10ps]", 'm', '>', 8, 11, 10, ">m8[10ps]"},
    {"timedelta64[us]", 'm', '<', 8, 9, 1, "<m8[us]"},
    {"M8[Y]", 'M', '<', 8, 1, 1, "<M8[Y]"},
    {"M8[M]", 'M', '<', 8, 2, 1, "<M8[M]"},
    {"M8[W]", 'M', '<', 8, 3, 1, "<M8[W]"},
    {"M8[h]", 'M', '<', 8, 5, 1, "<M8[h]"},
    {"M8[m]", 'M', '<', 8, 6, 1, "<M8[m]"},
    {"m8[fs]", 'm', '<', 8, 12, 1, "<m8[fs]"},
    {"|S1", 'S', '|', 1, 0, 0, "|S1"},
    {"S10", 'S', '|', 10, 0, 0, "|S10"},
    {"<S10", 'S', '|', 10, 0, 0, "|S10"},
    {"|V12", 'V', '|', 12, 0, 0, "|V12"},
    {"V1", 'V', '|', 1, 0, 0, "|V1"},
    {"<U12", 'U', '<', 48, 0, 0, "<U12"},
    {">U12", 'U', '>', 48, 0, 0, ">U12"},
    {"U1", 'U', '<', 4, 0, 0, "<U1"},
    {"=f4", 'f', '<', 4, 0, 0, "<f4"},
    {"=i2", 'i', '<', 2, 0, 0, "<i2"},
    {"|i4", 'i', '<', 4, 0, 0, "<i4"},
    {">b1", 'b', '|', 1, 0, 0, "|b1"},
    {"<u1", 'u', '|', 1, 0, 0, "|u1"},
    {"bfloat16", 'E', '<', 2, 0, 0, "bfloat16"}, /* ours: numpy has no text for it */
    {"<bfloat16", 'E', '<', 2, 0, 0, "bfloat16"},
    {">bfloat16", 'E', '>', 2, 0, 0, ">bfloat16"},
};

enum { ROWS = sizeof table / sizeof table[0] };

static void each_text_reads_as_numpy_reads_it(void **state) {
  (void)state;
  if (TEGULA__NATIVE_ORDER != '<') skip();
  for (size_t i = 0; i < ROWS; i++) {
    tegula_dtype dtype;
    char text[TEGULA_DTYPE_TEXT];
    if (tegula_dtype_parse(table[i].text, &dtype, NULL) != TEGULA_OK)
      fail_msg("\"%s\" was refused", table[i].text);
    tegula_dtype_format(dtype, text);
    bool same = dtype.kind == table[i].kind && dtype.order == table[i].order &&
                dtype.item_size == table[i].item_size && dtype.unit == table[i].unit &&
                dtype.unit_count == table[i].unit_count && dtype.reserved == 0 &&
                strcmp(text, table[i].numpy) == 0;
    if (!same)
      fail_msg("\"%s\" gave kind %c order %c size %u unit %d count %u, written \"%s\"",
               table[i].text, dtype.kind, dtype.order, dtype.item_size, dtype.unit,
               dtype.unit_count, text);
    assert_true(tegula__dtype_valid(dtype));
  }
}

static void each_text_survives_writing_and_reading(void **state) {
  (void)state;
  for (size_t i = 0; i < ROWS; i++) {
    tegula_dtype first, second;
    char text[TEGULA_DTYPE_TEXT];
    assert_int_equal(tegula_dtype_parse(table[i].text, &first, NULL), TEGULA_OK);
    tegula_dtype_format(first, text);
    assert_int_equal(tegula_dtype_parse(text, &second, NULL), TEGULA_OK);
    assert_memory_equal(&first, &second, sizeof first);
  }
}

static void nonsense_is_refused_with_its_text(void **state) {
  (void)state;
  static const char *const wrong[] = {
      "",   "f",    "f3",           "i3",    "b2",     "c4",     "x4",         "f4 ",  " f4",
      "<",  "<<f4", "f4x",          "M8[",   "M8[]",   "M8[xs]", "M8[0s]",     "M8[s", "M8[s]x",
      "M4", "U-1",  "S99999999999", "float", "bfloat", "u16",    "U1073741823"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    tegula_dtype dtype = {.kind = 'x'};
    tegula_error error;
    if (tegula_dtype_parse(wrong[i], &dtype, &error) != TEGULA_INVALID_ARGUMENT)
      fail_msg("\"%s\" was not called invalid", wrong[i]);
    assert_int_equal(dtype.kind, 'x'); /* out is written on success only */
    assert_non_null(strstr(error.message, wrong[i]));
    assert_int_equal(error.status, TEGULA_INVALID_ARGUMENT);
  }
}

static void types_that_cannot_be_held_are_unsupported(void **state) {
  (void)state;
  static const char *const wrong[] = {"O",          "|O8", "f16", "<c32", "g",
                                      "longdouble", "S0",  "V0",  "<U0"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    tegula_dtype dtype;
    if (tegula_dtype_parse(wrong[i], &dtype, NULL) != TEGULA_UNSUPPORTED)
      fail_msg("\"%s\" was not called unsupported", wrong[i]);
  }
}

static uint32_t swap_size_of(const char *text) {
  tegula_dtype dtype;
  assert_int_equal(tegula_dtype_parse(text, &dtype, NULL), TEGULA_OK);
  return tegula__dtype_swap_size(dtype);
}

static void swap_groups_are_the_units_numpy_byteswaps(void **state) {
  /* as numpy.ndarray.byteswap does: complex by halves, text by code units, bytes and records not */
  (void)state;
  assert_int_equal(swap_size_of("b1"), 1);
  assert_int_equal(swap_size_of("i1"), 1);
  assert_int_equal(swap_size_of("f2"), 2);
  assert_int_equal(swap_size_of("bfloat16"), 2);
  assert_int_equal(swap_size_of("u4"), 4);
  assert_int_equal(swap_size_of("f8"), 8);
  assert_int_equal(swap_size_of("c8"), 4);
  assert_int_equal(swap_size_of("c16"), 8);
  assert_int_equal(swap_size_of("M8[s]"), 8);
  assert_int_equal(swap_size_of("U12"), 4);
  assert_int_equal(swap_size_of("S12"), 1);
  assert_int_equal(swap_size_of("V16"), 1);
}

static void sameness_ignores_byte_order_only(void **state) {
  (void)state;
  tegula_dtype little, big, other;
  assert_int_equal(tegula_dtype_parse("<M8[25s]", &little, NULL), TEGULA_OK);
  assert_int_equal(tegula_dtype_parse(">M8[25s]", &big, NULL), TEGULA_OK);
  assert_int_equal(tegula_dtype_parse("<M8[5s]", &other, NULL), TEGULA_OK);
  assert_int_equal(tegula_dtype_same(little, big), 1);
  assert_int_equal(tegula_dtype_same(little, other), 0);
  assert_int_equal(tegula_dtype_parse("<m8[25s]", &other, NULL), TEGULA_OK);
  assert_int_equal(tegula_dtype_same(little, other), 0);
  assert_int_equal(tegula_dtype_native(big).order, TEGULA__NATIVE_ORDER);
}

static void values_no_text_gives_are_not_valid(void **state) {
  (void)state;
  static const tegula_dtype wrong[] = {
      {0},
      {.kind = 'f', .order = '<', .item_size = 3},
      {.kind = 'f', .order = '|', .item_size = 4},
      {.kind = 'f', .order = '=', .item_size = 4},
      {.kind = 'i', .order = '<', .item_size = 1},
      {.kind = 'S', .order = '|', .item_size = 0},
      {.kind = 'V', .order = '|', .item_size = UINT32_MAX},
      {.kind = 'U', .order = '<', .item_size = 6},
      {.kind = 'f', .order = '<', .item_size = 4, .unit = 3},
      {.kind = 'f', .order = '<', .item_size = 4, .unit_count = 1},
      {.kind = 'f', .order = '<', .item_size = 4, .reserved = 1},
      {.kind = 'M', .order = '<', .item_size = 8, .unit = 14, .unit_count = 1},
      {.kind = 'M', .order = '<', .item_size = 8, .unit = 7, .unit_count = 0},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    if (tegula__dtype_valid(wrong[i])) fail_msg("row %zu was called valid", i);
}

static void a_missing_argument_is_an_error(void **state) {
  (void)state;
  tegula_dtype dtype;
  assert_int_equal(tegula_dtype_parse(NULL, &dtype, NULL), TEGULA_INVALID_ARGUMENT);
  assert_int_equal(tegula_dtype_parse("f4", NULL, NULL), TEGULA_INVALID_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_text_reads_as_numpy_reads_it),
      cmocka_unit_test(each_text_survives_writing_and_reading),
      cmocka_unit_test(nonsense_is_refused_with_its_text),
      cmocka_unit_test(types_that_cannot_be_held_are_unsupported),
      cmocka_unit_test(swap_groups_are_the_units_numpy_byteswaps),
      cmocka_unit_test(sameness_ignores_byte_order_only),
      cmocka_unit_test(values_no_text_gives_are_not_valid),
      cmocka_unit_test(a_missing_argument_is_an_error),
  };
  return cmocka_run_group_tests_name("base: dtype", tests, NULL, NULL);
}
