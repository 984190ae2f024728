/* npy files: headers good, odd and hostile, read from memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shapes, sizes and strides are worked out by hand; record texts are what numpy 2.4 prints for the
 * same dtype. */
#include "test_format_support.h"

#include "format/npy/npy_priv.h"

static tegula_error error;

#define HEADER(descr, order, shape)                                                                \
  "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }\n"

static tegula_status describe_text(int major, const char *header, size_t data,
                                   tegula__manifest *out) {
  memory_file file = npy_make(major, header, strlen(header), data);
  tegula__describe_options options = no_options();
  tegula_status status = memory_describe(&tegula__format_npy, &file, 4096, &options, out, &error);
  memory_free(&file);
  return status;
}

/* The header must be refused with this status, and the message say `part` and the file. */
static void expect_refusal(int major, const char *header, size_t data, tegula_status expected,
                           const char *part) {
  tegula__manifest manifest;
  tegula_status status = describe_text(major, header, data, &manifest);
  tegula__manifest_free(&manifest);
  if (status != expected) fail_msg("%.80s: got %s", header, tegula_status_name(status));
  assert_contains(error.message, part);
  assert_string_equal(error.path, "memory/x.npy");
  assert_contains(error.message, "memory/x.npy");
}

static void describes_a_plain_array(void **state) {
  (void)state;
  tegula__manifest m;
  for (int major = 1; major <= 3; major++) {
    assert_int_equal(describe_text(major, HEADER("'>i2'", "False", "(2, 3)"), 12, &m), TEGULA_OK);
    assert_int_equal(m.ndim, 2);
    assert_int_equal(m.shape[0], 2);
    assert_int_equal(m.shape[1], 3);
    assert_int_equal(m.dtype.kind, 'i');
    assert_int_equal(m.dtype.item_size, 2);
    assert_int_equal(m.dtype.order, TEGULA__NATIVE_ORDER);
    assert_null(m.descr);
    assert_string_equal(m.name, "data");
    assert_int_equal(m.part_count, 1);
    assert_int_equal(m.parts[0].order, '>');
    assert_int_equal(m.parts[0].offset,
                     (major == 1 ? 10 : 12) + strlen(HEADER("'>i2'", "False", "(2, 3)")));
    assert_int_equal(m.parts[0].strides[0], 6);
    assert_int_equal(m.parts[0].strides[1], 2);
    assert_int_equal(m.parts[0].hi[1], 3);
    tegula__manifest_free(&m);
  }
}

static void describes_fortran_order(void **state) {
  (void)state;
  tegula__manifest m;
  assert_int_equal(describe_text(1, HEADER("'<c16'", "True", "(5, 3, 2)"), 480, &m), TEGULA_OK);
  assert_int_equal(m.parts[0].strides[0], 16);
  assert_int_equal(m.parts[0].strides[1], 80);
  assert_int_equal(m.parts[0].strides[2], 240);
  tegula__manifest_free(&m);
}

static void takes_scalars_empty_arrays_and_odd_spelling(void **state) {
  (void)state;
  static const struct {
    const char *header;
    size_t data;
    int32_t ndim;
  } rows[] = {{HEADER("'<f8'", "False", "()"), 8, 0},
              {HEADER("'<f4'", "False", "(0, 4)"), 0, 2},
              {HEADER("'<f4'", "False", "(7,)"), 28, 1},
              {HEADER("'<f4'", "False", "(7,)"), 29, 1}, /* what follows the array is left alone */
              {HEADER("'|b1'", "False", "(3L, 2L)"), 6, 2},
              {"{\"shape\":(2,),\"descr\":u'<f4',\"fortran_order\":False}", 8, 1},
              {"  {'shape': (2 ,) ,\n 'fortran_order': True, 'descr': '<M8[25s]'}   \n", 16, 1},
              {"{'d\\x65scr': '<f4', 'fortran_order': False, 'shape': (1,)}", 4, 1}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    tegula__manifest m;
    if (describe_text(1, rows[i].header, rows[i].data, &m) != TEGULA_OK)
      fail_msg("%s: %s", rows[i].header, error.message);
    assert_int_equal(m.ndim, rows[i].ndim);
    tegula__manifest_free(&m);
  }
}

static void takes_64_axes_and_not_one_more(void **state) {
  (void)state;
  char header[512] = "{'descr': '|u1', 'fortran_order': False, 'shape': (";
  for (int k = 0; k < 64; k++) strcat(header, "1,");
  size_t size = strlen(header);
  tegula__manifest m;
  strcpy(header + size, ")}");
  assert_int_equal(describe_text(1, header, 1, &m), TEGULA_OK);
  assert_int_equal(m.ndim, 64);
  tegula__manifest_free(&m);
  strcpy(header + size, "1)}");
  expect_refusal(1, header, 1, TEGULA_LIMIT_EXCEEDED, "65 axes");
}

static void keeps_records_as_opaque_items_with_their_description(void **state) {
  (void)state;
  static const struct {
    const char *descr, *printed;
    uint32_t size;
  } rows[] = {
      {"[('a', '<f4'), ('b', '<i8', (2, 3))]", "[('a', '<f4'), ('b', '<i8', (2, 3))]", 52},
      {"[((u't', 'a'), \"<f4\"), ('b', [('x', 'u1'), ('y', '|S3')])]",
       "[(('t', 'a'), '<f4'), ('b', [('x', '|u1'), ('y', '|S3')])]", 8},
      {"[('a', '|u1'), ('', '|V7'), ('b', '<f8'), ('', '|V4')]",
       "[('a', '|u1'), ('', '|V7'), ('b', '<f8'), ('', '|V4')]", 20},
      {"[('a', '<f4', 3), ('b', ('<i2', (2,)), (5,))]",
       "[('a', '<f4', (3,)), ('b', '<i2', (5, 2))]", 32},
      {"[('a', '<f4', ())]", "[('a', '<f4')]", 4},
      {"[('a', '<f16'), ('b', '<c32'), ('c', '|V0'), ('d', '<f8', (0,))]",
       "[('a', '<f16'), ('b', '<c32'), ('c', '|V0'), ('d', '<f8', (0,))]", 48},
      {"[('}, {\\'shape\\': (9,)', '<U2'), ('descr', '<M8[ns]')]",
       "[(\"}, {'shape': (9,)\", '<U2'), ('descr', '<M8[ns]')]", 16},
      /* Latin-1 in version 1.0, UTF-8 in our text */
      {"[('\xe9', '<f4')]", "[('\xc3\xa9', '<f4')]", 4},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char header[512];
    snprintf(header, sizeof header, "{'descr': %s, 'fortran_order': False, 'shape': (2,)}",
             rows[i].descr);
    tegula__manifest m;
    if (describe_text(1, header, 2 * rows[i].size, &m) != TEGULA_OK)
      fail_msg("%s: %s", rows[i].descr, error.message);
    assert_int_equal(m.dtype.kind, 'V');
    assert_int_equal(m.dtype.item_size, rows[i].size);
    assert_string_equal(m.descr, rows[i].printed);
    assert_int_equal(m.parts[0].order, '|');
    tegula__manifest_free(&m);
  }
}

static void refuses_descriptions_by_name(void **state) {
  (void)state;
  static const struct {
    const char *descr;
    tegula_status status;
    const char *part;
  } rows[] = {
      {"'|O'", TEGULA_UNSUPPORTED, "pickled Python objects"},
      {"'O8'", TEGULA_UNSUPPORTED, "pickled Python objects"},
      {"[('a', '<f4'), ('b', [('c', '|O')])]", TEGULA_UNSUPPORTED, "pickled Python objects"},
      {"'<f16'", TEGULA_UNSUPPORTED, "long double"},
      {"'<c32'", TEGULA_UNSUPPORTED, "long double"},
      {"'g'", TEGULA_UNSUPPORTED, "long double"},
      {"'|S0'", TEGULA_UNSUPPORTED, "no bytes"},
      {"[]", TEGULA_UNSUPPORTED, "no bytes"},
      {"[('a', '|V0')]", TEGULA_UNSUPPORTED, "no bytes"},
      {"'<q9'", TEGULA_UNSUPPORTED, "unknown dtype \"<q9\""},
      {"[('a', '<i3')]", TEGULA_UNSUPPORTED, "unknown dtype \"<i3\""},
      {"'<f4,<i4'", TEGULA_UNSUPPORTED, "unknown dtype"},
      {"'<M8[fortnight]'", TEGULA_UNSUPPORTED, "unknown dtype"},
      {"'|V99999999999999999999999'", TEGULA_UNSUPPORTED, "unknown dtype"},
      {"'                                                                            '",
       TEGULA_UNSUPPORTED, "unknown dtype"},
      {"'\xff'", TEGULA_UNSUPPORTED, "unknown dtype"},
      {"None", TEGULA_CORRUPT, "neither text nor a list"},
      {"('<f4', (2,))", TEGULA_CORRUPT, "neither text nor a list"},
      {"[('a',)]", TEGULA_CORRUPT, "(name, format)"},
      {"['a']", TEGULA_CORRUPT, "(name, format)"},
      {"[(1, '<f4')]", TEGULA_CORRUPT, "not text"},
      {"[(('t', 'a', 'b'), '<f4')]", TEGULA_CORRUPT, "not text"},
      {"[('a', 4)]", TEGULA_CORRUPT, "neither text nor a list"},
      {"[('a', '<f4', (-1,))]", TEGULA_CORRUPT, "no size"},
      {"[('a', '<f4', ('x',))]", TEGULA_CORRUPT, "no size"},
      {"[('a', '<f4'), ('b', '<f4'), ('a', '<i4')]", TEGULA_CORRUPT,
       "two fields have the name 'a'"},
      {"[(('b', 'a'), '<f4'), ('b', '<f4')]", TEGULA_CORRUPT, "two fields have the name 'b'"},
      {"[('a', '<f4', (1000000, 1000000))]", TEGULA_LIMIT_EXCEEDED, "2147483647 bytes"},
      {"[('a', '<f4', (9223372036854775807, 9223372036854775807))]", TEGULA_LIMIT_EXCEEDED,
       "2147483647 bytes"},
      {"[('a', '|V2000000000'), ('b', '|V2000000000')]", TEGULA_LIMIT_EXCEEDED, "2147483647 bytes"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char header[512];
    snprintf(header, sizeof header, "{'descr': %s, 'fortran_order': False, 'shape': (2,)}",
             rows[i].descr);
    expect_refusal(1, header, 64, rows[i].status, rows[i].part);
  }
}

static void refuses_hostile_headers(void **state) {
  (void)state;
  static const struct {
    const char *header;
    tegula_status status;
    const char *part;
  } rows[] = {
      {HEADER("'<f4'", "False", "(9223372036854775807,)"), TEGULA_CORRUPT,
       "larger than 2^63 bytes"},
      /* with the offset */
      {HEADER("'|u1'", "False", "(9223372036854775807,)"), TEGULA_CORRUPT,
       "larger than 2^63 bytes"},
      {HEADER("'|u1'", "False", "(9223372036854775000,)"), TEGULA_SHORT_FILE,
       "9223372036854775000 of data"},
      {HEADER("'|u1'", "False", "(9223372036854775808,)"), TEGULA_CORRUPT,
       "above 9223372036854775807"},
      {HEADER("'|u1'", "False", "(4294967296, 4294967296)"), TEGULA_CORRUPT,
       "larger than 2^63 bytes"},
      {HEADER("'|u1'", "False", "(0, 4294967296, 4294967296)"), TEGULA_CORRUPT,
       "larger than 2^63 bytes"},
      {HEADER("'<f4'", "False", "(-1,)"), TEGULA_CORRUPT, "negative"},
      {HEADER("'<f4'", "False", "(-99999999999999999999999,)"), TEGULA_CORRUPT, "negative"},
      {HEADER("'<f4'", "False", "(True,)"), TEGULA_CORRUPT, "no integer"},
      {HEADER("'<f4'", "False", "(2.0,)"), TEGULA_CORRUPT, "found '.'"},
      {HEADER("'<f4'", "False", "[2]"), TEGULA_CORRUPT, "no tuple"},
      {HEADER("'<f4'", "False", "2"), TEGULA_CORRUPT, "no tuple"},
      {HEADER("'<f4'", "0", "(2,)"), TEGULA_CORRUPT, "fortran_order"},
      {HEADER("'<f4'", "'True'", "(2,)"), TEGULA_CORRUPT, "fortran_order"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'descr': '<f8'}", TEGULA_CORRUPT,
       "\"descr\" is there twice"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}", TEGULA_CORRUPT,
       "unknown key \"more\""},
      {"{'descr': '<f4', 'fortran_order': False, 'x': {'shape': (2,)}}", TEGULA_CORRUPT,
       "unknown key \"x\""},
      {"{'descr': '<f4', 'fortran_order': False}", TEGULA_CORRUPT, "\"shape\" is missing"},
      {"{}", TEGULA_CORRUPT, "\"descr\" is missing"},
      {"{1: 2}", TEGULA_CORRUPT, "unknown key"},
      {"[]", TEGULA_CORRUPT, "no dictionary"},
      {"", TEGULA_CORRUPT, "found the end"},
      {"{'descr': '<f4, 'fortran_order': False, 'shape': (2,)}", TEGULA_CORRUPT, "expected"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", TEGULA_CORRUPT,
       "expected ',' or '}'"},
      {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
       TEGULA_LIMIT_EXCEEDED, "nested"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    expect_refusal(1, rows[i].header, 64, rows[i].status, rows[i].part);
}

static void knows_three_versions(void **state) {
  (void)state;
  tegula__describe_options options = no_options();
  static const unsigned char versions[][2] = {{0, 0}, {1, 1}, {2, 9}, {4, 0}, {255, 255}};
  for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
    memory_file file =
        npy_make(1, HEADER("'<f4'", "False", "()"), strlen(HEADER("'<f4'", "False", "()")), 4);
    memcpy(file.bytes + 6, versions[i], 2);
    tegula__manifest m;
    assert_int_equal(memory_describe(&tegula__format_npy, &file, 4096, &options, &m, &error),
                     TEGULA_UNSUPPORTED);
    char text[32];
    snprintf(text, sizeof text, "npy version %d.%d", versions[i][0], versions[i][1]);
    assert_contains(error.message, text);
    memory_free(&file);
  }
  expect_refusal(3, HEADER("[('\xe9', '<f4')]", "False", "(1,)"), 4, TEGULA_CORRUPT, "UTF-8");
}

static void header_length_has_a_limit(void **state) {
  (void)state;
  tegula__describe_options options = no_options();
  static const uint32_t lengths[] = {(1u << 24) + 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF};
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
    memory_file file = npy_make(2, "{}", 2, 0);
    for (int k = 0; k < 4; k++) file.bytes[8 + k] = (unsigned char)(lengths[i] >> 8 * k);
    file.claimed = INT64_MAX; /* the limit does not hang on the file's size */
    tegula__manifest m;
    assert_int_equal(memory_describe(&tegula__format_npy, &file, 4096, &options, &m, &error),
                     TEGULA_LIMIT_EXCEEDED);
    assert_contains(error.message, "the limit is 16777216");
    memory_free(&file);
  }
}

/* A cut at any place is SHORT_FILE: no byte beyond the end is looked at, and no array comes out. */
static void every_cut_of_a_good_file_is_short(void **state) {
  (void)state;
  tegula__describe_options options = no_options();
  for (int major = 1; major <= 2; major++) {
    const char *header = HEADER("[('a', '<f4')]", "False", "(3,)");
    memory_file whole = npy_make(major, header, strlen(header), 12);
    for (int64_t size = 0; size < whole.size; size++) {
      memory_file file = memory_make(whole.bytes, (size_t)size);
      for (size_t head = 0; head <= 4096; head += 4096) {
        tegula__manifest m;
        assert_int_equal(memory_describe(&tegula__format_npy, &file, head, &options, &m, &error),
                         TEGULA_SHORT_FILE);
        assert_int_equal(m.part_count, 0);
      }
      memory_free(&file);
    }
    memory_free(&whole);
  }
  expect_refusal(1, HEADER("'<f4'", "False", "(100,)"), 200, TEGULA_SHORT_FILE, "400 of data");
}

static void other_content_is_no_npy(void **state) {
  (void)state;
  tegula__describe_options options = no_options();
  memory_file file = memory_make("\x89HDF\r\n\x1a\n and more bytes", 24);
  tegula__manifest m;
  assert_int_equal(memory_describe(&tegula__format_npy, &file, 24, &options, &m, &error),
                   TEGULA_CORRUPT);
  assert_contains(error.message, "not an npy file");
  memory_free(&file);
}

/* 1,800 fields: a header of version 2.0 with more than 65,535 bytes, beyond the head. */
static void case_01_long_headers_parse(void **state) {
  (void)state;
  tegula__describe_options options = no_options();
  tegula__buffer text;
  tegula__buffer_init(&text, 1 << 20);
  assert_true(tegula__buffer_printf(&text, "{'descr': ["));
  for (int i = 0; i < 1800; i++)
    assert_true(tegula__buffer_printf(&text, "('a_field_with_a_name_%08d', '<f8'), ", i));
  assert_true(tegula__buffer_printf(&text, "], 'fortran_order': False, 'shape': (3,), }\n"));
  assert_true(text.size > 65535);
  memory_file file = npy_make(2, text.data, text.size, 3 * 14400);
  tegula__manifest m;
  assert_int_equal(memory_describe(&tegula__format_npy, &file, 4096, &options, &m, &error),
                   TEGULA_OK);
  assert_int_equal(file.reads, 1);
  assert_int_equal(m.dtype.item_size, 14400);
  assert_int_equal(m.parts[0].offset, 12 + (int64_t)text.size);
  tegula__manifest_free(&m);
  memory_free(&file);
  tegula__buffer_free(&text);
}

static tegula_status describe_as(const char *descr, const char *dtype, tegula__manifest *out) {
  char header[128];
  snprintf(header, sizeof header, "{'descr': %s, 'fortran_order': False, 'shape': (2,)}", descr);
  memory_file file = npy_make(1, header, strlen(header), 64);
  tegula__describe_options options = no_options();
  options.has_dtype = true;
  options.dtype = dtype_of(dtype);
  tegula_status status = memory_describe(&tegula__format_npy, &file, 4096, &options, out, &error);
  memory_free(&file);
  return status;
}

static void case_09_bfloat16_on_the_users_word_only(void **state) {
  (void)state;
  static const struct {
    const char *descr, *dtype;
    char order;
  } rows[] = {{"'|V2'", "<bfloat16", '<'},
              {"'|V2'", ">bfloat16", '>'},
              {"'<V2'", "bfloat16", '<'},
              {"'>V2'", "bfloat16", '>'}};
  tegula__manifest m;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    assert_int_equal(describe_as(rows[i].descr, rows[i].dtype, &m), TEGULA_OK);
    assert_int_equal(m.dtype.kind, 'E');
    assert_int_equal(m.parts[0].order, rows[i].order);
    tegula__manifest_free(&m);
  }
  assert_int_equal(describe_text(1, HEADER("'<V2'", "False", "(2,)"), 4, &m), TEGULA_OK);
  assert_int_equal(m.dtype.kind, 'V');
  assert_int_equal(m.dtype.item_size, 2);
  assert_int_equal(m.parts[0].order, '|');
  tegula__manifest_free(&m);
}

static void a_given_dtype_must_agree(void **state) {
  (void)state;
  static const char *const bad[][2] = {{"'<f4'", "<i4"},        {"'<f4'", "<f8"},
                                       {"'<u2'", "bfloat16"},   {"'|V2'", "<f2"},
                                       {"'|V4'", "bfloat16"},   {"[('a', '|V2')]", "bfloat16"},
                                       {"'<M8[s]'", "<M8[ms]"}, {"[('a', '<f4')]", "<f4"}};
  tegula__manifest m;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    assert_int_equal(describe_as(bad[i][0], bad[i][1], &m), TEGULA_MISMATCH);
    assert_string_equal(error.path, "memory/x.npy");
    tegula__manifest_free(&m);
  }
  assert_int_equal(describe_as("'<f4'", "<i4", &m), TEGULA_MISMATCH);
  assert_contains(error.message, "is <f4, but <i4");
  /* byte order is the file's business */
  assert_int_equal(describe_as("'>f4'", "f4", &m), TEGULA_OK);
  tegula__manifest_free(&m);
  assert_int_equal(describe_as("[('a', '<f4'), ('b', '<f8')]", "V12", &m), TEGULA_OK);
  tegula__manifest_free(&m);
}

static void options_of_raw_files_are_refused(void **state) {
  (void)state;
  static const int64_t shape[1] = {1};
  tegula__describe_options good = no_options(), bad[7];
  for (int i = 0; i < 7; i++) bad[i] = good;
  bad[0].shape = shape, bad[0].shape_ndim = 1;
  bad[1].row_ndim = 0;
  bad[2].offset = 128;
  bad[3].row_gap = 1;
  bad[4].order = 'F';
  bad[5].byte_order = '<';
  bad[6].dataset = "other";
  memory_file file =
      npy_make(1, HEADER("'<f4'", "False", "()"), strlen(HEADER("'<f4'", "False", "()")), 4);
  tegula__manifest m;
  for (int i = 0; i < 7; i++) {
    tegula_status expected = i == 6 ? TEGULA_NOT_FOUND : TEGULA_INVALID_ARGUMENT;
    assert_int_equal(memory_describe(&tegula__format_npy, &file, 4096, &bad[i], &m, &error),
                     expected);
    assert_string_equal(error.path, "memory/x.npy");
    assert_true(error.hint[0] != '\0');
  }
  good.dataset = "/data";
  assert_int_equal(memory_describe(&tegula__format_npy, &file, 4096, &good, &m, &error), TEGULA_OK);
  tegula__manifest_free(&m);
  memory_free(&file);
}

/* Seeded damage to good files: any answer will do, but never a crash, an overread, or an array
 * beyond the file. */
static void damaged_headers_never_hurt(void **state) {
  (void)state;
  static const char *const headers[] = {
      HEADER("[(('t', 'a'), '<f4'), ('', '|V7'), ('b', [('x', '|u1')], (2, 3))]", "False",
             "(3, 2)"),
      HEADER("'>M8[25s]'", "True", "(3, 2)")};
  tegula__describe_options options = no_options();
  uint64_t random = 12345;
  for (int round = 0; round < 40000; round++) {
    const char *header = headers[round % 2];
    memory_file file = npy_make(1 + round / 2 % 3, header, strlen(header), 256);
    for (int k = 0; k <= round % 3; k++) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      size_t at = (size_t)((random >> 33) % (uint64_t)file.size);
      file.bytes[at] =
          (unsigned char)(random >> 20 & 1
                              ? random >> 24
                              : (unsigned char)"()[]{}',:\\09-LTF|"[(random >> 24) % 17]);
    }
    tegula__manifest m;
    if (memory_describe(&tegula__format_npy, &file, 4096, &options, &m, &error) == TEGULA_OK) {
      int64_t bytes;
      assert_true(tegula__shape_bytes(m.shape, m.ndim, m.dtype.item_size, &bytes));
      assert_true(m.parts[0].offset + bytes <= file.size);
    }
    tegula__manifest_free(&m);
    memory_free(&file);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(describes_a_plain_array),
      cmocka_unit_test(describes_fortran_order),
      cmocka_unit_test(takes_scalars_empty_arrays_and_odd_spelling),
      cmocka_unit_test(takes_64_axes_and_not_one_more),
      cmocka_unit_test(keeps_records_as_opaque_items_with_their_description),
      cmocka_unit_test(refuses_descriptions_by_name),
      cmocka_unit_test(refuses_hostile_headers),
      cmocka_unit_test(knows_three_versions),
      cmocka_unit_test(header_length_has_a_limit),
      cmocka_unit_test(every_cut_of_a_good_file_is_short),
      cmocka_unit_test(other_content_is_no_npy),
      cmocka_unit_test(case_01_long_headers_parse),
      cmocka_unit_test(case_09_bfloat16_on_the_users_word_only),
      cmocka_unit_test(a_given_dtype_must_agree),
      cmocka_unit_test(options_of_raw_files_are_refused),
      cmocka_unit_test(damaged_headers_never_hurt),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
