/* What is foretold of a file from its size and the header of the first one, and how a header is
 * compared with it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "test_format_support.h"

#include "discover/discover.h"

static tegula_error error;

/* The first file: 128 bytes of header, so many rows of three 4-byte numbers. */
static const char *const plain = "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 3), }";
enum { HEADER = 128, ROW = 12, ROWS = 5 };

static memory_file file_of(const char *text, size_t header, size_t data) {
  char padded[8192];
  assert_true(header <= sizeof padded);
  memset(padded, ' ', sizeof padded);
  memcpy(padded, text, strlen(text));
  return npy_make(1, padded, header - 10, data);
}

static void describe(const char *text, size_t header, size_t data, tegula__manifest *out) {
  memory_file file = file_of(text, header, data);
  tegula__describe_options options = no_options();
  if (memory_describe(&tegula__format_npy, &file, TEGULA__HEAD_BYTES, &options, out, &error) !=
      TEGULA_OK)
    fail_msg("%s", error.message);
  out->format = tegula__format_npy.name;
  memory_free(&file);
}

static void expect_from(const char *text, size_t header, size_t data, bool possible) {
  tegula__manifest first;
  describe(text, header, data, &first);
  if (tegula__predict_from(&first) != possible) fail_msg("%s", text);
  tegula__manifest_free(&first);
}

static void only_dense_rows_behind_short_headers_tell_of_others(void **state) {
  (void)state;
  expect_from(plain, HEADER, 60, true);
  expect_from("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }", HEADER, 4, true);
  expect_from("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3), }", HEADER, 0, true);
  /* one axis has no order */
  expect_from("{'descr': '<f4', 'fortran_order': True, 'shape': (4,), }", HEADER, 16, true);
  expect_from(plain, TEGULA__HEAD_BYTES, 60, true);
  expect_from(plain, TEGULA__HEAD_BYTES + 1, 60, false);
  expect_from("{'descr': '<f4', 'fortran_order': True, 'shape': (5, 3), }", HEADER, 60, false);
  expect_from("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", HEADER, 4, false);
  expect_from("{'descr': '<f4', 'fortran_order': False, 'shape': (5, 0), }", HEADER, 0, false);
  tegula__manifest raw;
  describe(plain, HEADER, 60, &raw);
  raw.format = tegula__format_raw.name;
  assert_false(tegula__predict_from(&raw));
  tegula__manifest_free(&raw);
}

static void rows_follow_from_the_size(void **state) {
  (void)state;
  static const struct {
    int64_t size, rows; /* 0: does not fit */
  } sizes[] = {{HEADER + 60, 5},
               {HEADER + ROW, 1},
               {HEADER + 1200, 100},
               {HEADER, 0},
               {HEADER + 1, 0},
               {HEADER + 61, 0},
               {HEADER - ROW, 0},
               {0, 0},
               {INT64_MAX, (INT64_MAX - HEADER) % ROW == 0 ? (INT64_MAX - HEADER) / ROW : 0}};
  tegula__manifest first, found;
  describe(plain, HEADER, 60, &first);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    bool fits;
    tegula__manifest_init(&found);
    assert_int_equal(tegula__predict(&first, sizes[i].size, &found, &fits, &error), TEGULA_OK);
    assert_int_equal(fits, sizes[i].rows > 0);
    if (fits) {
      assert_int_equal(found.shape[0], sizes[i].rows);
      assert_int_equal(found.shape[1], 3);
      assert_int_equal(found.ndim, 2);
      assert_int_equal(found.part_count, 1);
      assert_int_equal(found.parts[0].offset, HEADER);
      assert_int_equal(found.parts[0].hi[0], sizes[i].rows);
      assert_int_equal(found.parts[0].strides[0], ROW);
      assert_string_equal(found.format, "npy");
    }
    tegula__manifest_free(&found);
  }
  tegula__manifest_free(&first);
}

/* A set of three files like the first, of which the second and third were foretold. */
typedef struct set {
  tegula__manifest manifest;
  tegula__unread *unread;
} set;

static void set_make(set *s) {
  tegula__manifest shards[3];
  bool fits;
  describe(plain, HEADER, ROWS * ROW, &shards[0]);
  for (int i = 0; i < 3; i++) {
    if (i > 0) tegula__manifest_init(&shards[i]);
    if (i > 0)
      assert_int_equal(tegula__predict(&shards[0], HEADER + ROWS * ROW, &shards[i], &fits, &error),
                       TEGULA_OK);
    shards[i].files = calloc(1, sizeof *shards[i].files);
    assert_non_null(shards[i].files);
    char path[] = "file 0";
    path[5] = (char)('0' + i);
    shards[i].files[0] =
        (tegula__file){.path = strdup(path), .stamp.size = HEADER + ROWS * ROW, .predicted = i > 0};
    shards[i].file_count = 1;
  }
  assert_int_equal(tegula__manifest_join(shards, 3, &s->manifest, &error), TEGULA_OK);
  assert_int_equal(tegula__manifest_finish(&s->manifest, &error), TEGULA_OK);
  assert_int_equal(tegula__unread_create(&s->manifest, &s->unread, &error), TEGULA_OK);
}

static void set_free(set *s) {
  tegula__unread_destroy(s->unread);
  tegula__manifest_free(&s->manifest);
}

static tegula_status check(set *s, int64_t index, const char *text, size_t header) {
  memory_file file = file_of(text, header, ROWS * ROW);
  unsigned char *head = malloc(HEADER); /* of exactly that size: a read beyond it is seen */
  assert_non_null(head);
  memcpy(head, file.bytes, HEADER);
  tegula_status status = tegula__unread_check(s->unread, index, head, HEADER, &error);
  free(head);
  memory_free(&file);
  return status;
}

static void each_file_is_asked_for_until_it_is_as_foretold(void **state) {
  (void)state;
  set s;
  set_make(&s);
  assert_int_equal(tegula__unread_left(s.unread), 2);
  assert_int_equal(tegula__unread_size(s.unread, 0), 0);
  assert_int_equal(tegula__unread_size(s.unread, 1), HEADER);
  assert_int_equal(check(&s, 1, plain, HEADER), TEGULA_OK);
  assert_int_equal(check(&s, 1, plain, HEADER), TEGULA_OK); /* twice counts once */
  assert_int_equal(tegula__unread_size(s.unread, 1), 0);
  assert_int_equal(tegula__unread_left(s.unread), 1);
  assert_int_equal(
      check(&s, 2, "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 3), }", HEADER),
      TEGULA_MISMATCH);
  assert_int_equal(tegula__unread_left(s.unread), 1);
  assert_int_equal(check(&s, 2, plain, HEADER), TEGULA_OK);
  assert_int_equal(tegula__unread_left(s.unread), 0);
  set_free(&s);
  assert_int_equal(tegula__unread_left(NULL), 0);
}

static void differences_say_what_was_expected_and_found(void **state) {
  (void)state;
  static const struct {
    const char *text;
    size_t header;
    const char *found;
  } others[] = {
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 3), }", HEADER,
       "shape (4, 3) of <f4 from byte 128 on"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 5), }", HEADER, "shape (3, 5)"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (15,), }", HEADER, "shape (15,)"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (5, 3, 1), }", HEADER, "shape (5, 3, 1)"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }", HEADER, "shape ()"},
      {"{'descr': '<i4', 'fortran_order': False, 'shape': (5, 3), }", HEADER, "<i4"},
      {"{'descr': '>f4', 'fortran_order': False, 'shape': (5, 3), }", HEADER, ">f4"},
      {"{'descr': '<f2', 'fortran_order': False, 'shape': (5, 3), }", HEADER, "<f2"},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (5, 3), }", HEADER,
       "the same in another order"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (5, 3), }", HEADER - ROW,
       "from byte 116 on"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 3), }", HEADER + ROW,
       "longer than expected: 140 bytes instead of 128"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (6, 3), }", HEADER, "too short"},
      {"{'descr': '|O', 'fortran_order': False, 'shape': (5, 3), }", HEADER, "pickle"},
      {"nonsense", HEADER, "header of"},
  };
  set s;
  set_make(&s);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    if (check(&s, 1, others[i].text, others[i].header) != TEGULA_MISMATCH)
      fail_msg("%s passes", others[i].text);
    assert_contains(error.message,
                    "\"file 1\" is not what its size and the header of \"file 0\" promise");
    assert_contains(error.message, others[i].found);
    assert_string_equal(error.path, "file 1");
  }
  unsigned char zeros[HEADER] = {0};
  assert_int_equal(tegula__unread_check(s.unread, 2, zeros, HEADER, &error), TEGULA_MISMATCH);
  assert_contains(error.message, "does not begin with");
  assert_int_equal(tegula__unread_left(s.unread), 2);
  set_free(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(only_dense_rows_behind_short_headers_tell_of_others),
      cmocka_unit_test(rows_follow_from_the_size),
      cmocka_unit_test(each_file_is_asked_for_until_it_is_as_foretold),
      cmocka_unit_test(differences_say_what_was_expected_and_found),
  };
  return cmocka_run_group_tests_name("discover: predict", tests, NULL, NULL);
}
