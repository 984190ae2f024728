/* The comparison of two runs: the first difference wherever it is, by bytes and by value; elements
 * as text.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * What floats of given bits are is written down by hand, after IEEE 754. */
#include "support.h"

#include "verify/hash.h"

static tegula__pool *pool_make(int32_t threads) {
  tegula_error error;
  tegula__pool *pool = NULL;
  assert_ok(tegula__pool_create(threads, threads, &pool, &error));
  return pool;
}

static void the_first_difference_is_found_anywhere(void **state) {
  (void)state;
  tegula__pool *pool = pool_make(4);
  enum { COUNT = 900000 };
  const char *dtypes[] = {"?", "u1", "<i2", "<f4", "<f8", "<c16", "V3"};
  char *a = calloc(COUNT, 16), *b = calloc(COUNT, 16);
  assert_true(a != NULL && b != NULL);
  const int64_t places[] = {0,     1,     255,    256,    8191,      8192,
                            65535, 65536, 262143, 262144, COUNT - 2, COUNT - 1};
  for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
    tegula_dtype dtype = dtype_of(dtypes[d]);
    for (int values = 0; values < 2; values++) {
      assert_int_equal(tegula__compare_run(pool, dtype, a, b, COUNT, values), -1);
      assert_int_equal(tegula__compare_run(pool, dtype, a, b, 0, values), -1);
      for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        size_t at = (size_t)places[i] * dtype.item_size + (size_t)(places[i] % dtype.item_size),
               later = (size_t)(COUNT - 1) * dtype.item_size;
        b[at] = b[later] = 1;
        assert_int_equal(tegula__compare_run(pool, dtype, a, b, COUNT, values), places[i]);
        if (places[i] < COUNT - 1)
          assert_int_equal(tegula__compare_run(pool, dtype, a, b, places[i], values), -1);
        b[at] = b[later] = 0;
      }
    }
  }
  free(a);
  free(b);
  tegula__pool_destroy(pool);
}

static void expect(const char *dtype, uint64_t a, uint64_t b, bool same_bytes, bool same_value) {
  tegula__pool *pool = pool_make(1);
  char left[16] = {0}, right[16] = {0};
  tegula_dtype type = dtype_of(dtype);
  memcpy(left, &a, sizeof a);
  memcpy(right, &b, sizeof b);
  assert_int_equal(tegula__compare_run(pool, type, left, right, 1, false), same_bytes ? -1 : 0);
  assert_int_equal(tegula__compare_run(pool, type, left, right, 1, true), same_value ? -1 : 0);
  tegula__pool_destroy(pool);
}

static void floats_are_compared_by_value_when_asked(void **state) {
  (void)state;
  expect("<f4", 0x80000000, 0, false, true);           /* -0, +0 */
  expect("<f4", 0x7fc00000, 0xffc00001, false, true);  /* two NaNs */
  expect("<f4", 0x7f800001, 0x7fc00000, false, true);  /* a signalling one */
  expect("<f4", 0x7f800000, 0x7fc00000, false, false); /* infinity is no NaN */
  expect("<f4", 0x7f800000, 0xff800000, false, false); /* two infinities */
  expect("<f4", 0x00000001, 0, false, false);          /* the smallest number is not 0 */
  expect("<f4", 0x80000001, 0x00000001, false, false);
  expect("<f4", 0x3f800000, 0xbf800000, false, false); /* 1, -1 */
  expect("<f8", UINT64_C(1) << 63, 0, false, true);
  expect("<f8", 0x7ff8000000000000, 0xfff0000000000001, false, true);
  expect("<f8", 0x7ff0000000000000, 0x7ff0000000000001, false, false);
  expect("<f2", 0x8000, 0, false, true);
  expect("<f2", 0x7c01, 0xfe00, false, true);
  expect("<f2", 0x7c00, 0x7c01, false, false);
  expect("bfloat16", 0x8000, 0, false, true);
  expect("bfloat16", 0x7f81, 0xffc0, false, true);
  expect("bfloat16", 0x7c01, 0x7e00, false, false); /* NaNs in float16 only */
  expect("<c8", 0x8000000080000000, 0, false, true);
  expect("<c8", 0x3f8000007fc00000, 0xbf8000007fc00000, false, false); /* nan + 1j, nan - 1j */
  expect("<i4", 0x80000000, 0, false, false);                          /* integers have one zero */
  expect("?", 1, 2, true, true);                                       /* both true */
  expect("?", 0, 2, false, false);
}

static void expect_text(const char *dtype, const void *element, const char *text) {
  char out[128];
  tegula__element_format(dtype_of(dtype), element, out, sizeof out);
  assert_string_equal(out, text);
}

static void elements_are_shown_as_people_write_them(void **state) {
  (void)state;
  expect_text("?", "\x02", "True");
  expect_text("i1", "\x80", "-128");
  expect_text("u1", "\xff", "255");
  expect_text("<i2", "\xff\xff", "-1");
  expect_text("<u8", "\xff\xff\xff\xff\xff\xff\xff\xff", "18446744073709551615");
  expect_text("<f4", &(float){0.1f}, "0.1");
  expect_text("<f8", &(double){0.1}, "0.1");
  expect_text("<f8", &(double){1.0 / 3}, "0.3333333333333333");
  expect_text("<f8", &(double){-0.0}, "-0");
  expect_text("<f4", "\0\0\x80\xff", "-inf");
  expect_text("<f4", "\0\0\xc0\xff", "nan");
  expect_text("<f2", "\x00\x3c", "1");
  expect_text("<f2", "\x01\x00", "5.9604645e-08"); /* 2^-24 */
  expect_text("<f2", "\xff\xfb", "-65504");
  expect_text("bfloat16", "\x80\x3f", "1");
  expect_text("<c8", ((float[]){1.5f, -2}), "(1.5-2j)");
  expect_text("<c16", ((double[]){0, 2}), "(0+2j)");
  expect_text("<M8[s]", &(int64_t){INT64_MIN}, "NaT");
  expect_text("<m8[ns]", &(int64_t){-5}, "-5");
  expect_text("S5", "a'\n\0\0", "b'a\\x27\\x0a'");
  expect_text("<U3", "a\0\0\0\xe9\0\0\0\0\0\0\0", "'a\\u00e9'");
  expect_text("V3", "\x00\x7f\xff", "0x007fff");
}

static void long_elements_are_cut(void **state) {
  (void)state;
  char element[400], out[128];
  memset(element, 'x', sizeof element);
  for (const char **dtype = (const char *[]){"S400", "<U100", "V400", NULL}; *dtype != NULL;
       dtype++) {
    memset(out, 1, sizeof out);
    tegula__element_format(dtype_of(*dtype), element, out, sizeof out);
    assert_in_range(strlen(out), 100, 127);
    assert_string_equal(out + strlen(out) - 3, "...");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_first_difference_is_found_anywhere),
      cmocka_unit_test(floats_are_compared_by_value_when_asked),
      cmocka_unit_test(elements_are_shown_as_people_write_them),
      cmocka_unit_test(long_elements_are_cut),
  };
  return cmocka_run_group_tests_name("check: compare", tests, NULL, NULL);
}
