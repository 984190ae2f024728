/* npy headers that are written equal numpy's byte for byte.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The dictionaries and header sizes below are what numpy 2.4.6 wrote (numpy.save of zeros with that
 * dtype, shape and order); the rest of a header is spaces and a newline. */
#include "test_format_support.h"

#include "format/npy/npy_priv.h"

static tegula_error error;

typedef struct golden {
  const char *dtype, *descr;
  char order;
  int64_t shape[3];
  int32_t ndim;
  int version;
  size_t size; /* of the whole header */
  const char *dictionary;
} golden;

static tegula_status lay_out(const char *dtype, const char *descr, char order, const int64_t *shape,
                             int32_t ndim, tegula__buffer *out, int64_t *strides) {
  tegula__layout_request request = {
      .dtype = dtype_of(dtype), .descr = descr, .ndim = ndim, .shape = shape, .order = order};
  tegula__buffer_init(out, (size_t)32 << 20);
  return tegula__format_npy.lay_out(&request, out, strides, &error);
}

static void expect_header(const golden *row, const tegula__buffer *header) {
  size_t prefix = row->version == 1 ? 10 : 12, text = strlen(row->dictionary);
  if (header->size != row->size) fail_msg("%s: %zu bytes", row->dictionary, header->size);
  assert_memory_equal(header->data, "\x93NUMPY", 6);
  assert_int_equal(header->data[6], row->version);
  assert_int_equal(header->data[7], 0);
  size_t length = row->size - prefix;
  for (size_t i = 8; i < prefix; i++)
    assert_int_equal((unsigned char)header->data[i], length >> 8 * (i - 8) & 0xFF);
  if (memcmp(header->data + prefix, row->dictionary, text) != 0)
    fail_msg("expected %s, found %.*s", row->dictionary, (int)length, header->data + prefix);
  for (size_t i = prefix + text; i < row->size - 1; i++) assert_int_equal(header->data[i], ' ');
  assert_int_equal(header->data[row->size - 1], '\n');
}

static void headers_equal_numpys(void **state) {
  (void)state;
  static const golden rows[] = {
      {"<f4",
       NULL,
       'C',
       {0, 3},
       2,
       1,
       128,
       "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3), }"},
      {"<f8", NULL, 'C', {0}, 0, 1, 128, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }"},
      {">i2",
       NULL,
       'F',
       {2, 3},
       2,
       1,
       128,
       "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }"},
      {"<i2",
       NULL,
       'F',
       {3, 1},
       2,
       1,
       128,
       "{'descr': '<i2', 'fortran_order': False, 'shape': (3, 1), }"},
      {"<i2",
       NULL,
       'F',
       {0, 3},
       2,
       1,
       128,
       "{'descr': '<i2', 'fortran_order': False, 'shape': (0, 3), }"},
      {"<c16",
       NULL,
       'F',
       {1234, 5, 6},
       3,
       1,
       128,
       "{'descr': '<c16', 'fortran_order': True, 'shape': (1234, 5, 6), }"},
      {"<M8[25s]",
       NULL,
       'C',
       {3},
       1,
       1,
       128,
       "{'descr': '<M8[25s]', 'fortran_order': False, 'shape': (3,), }"},
      {">U3",
       NULL,
       'C',
       {2},
       1,
       1,
       128,
       "{'descr': '>U3', 'fortran_order': False, 'shape': (2,), }"},
      {"S5",
       NULL,
       'C',
       {2},
       1,
       1,
       128,
       "{'descr': '|S5', 'fortran_order': False, 'shape': (2,), }"},
      {"?", NULL, 'C', {2}, 1, 1, 128, "{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }"},
      {"V12",
       NULL,
       'C',
       {2},
       1,
       1,
       128,
       "{'descr': '|V12', 'fortran_order': False, 'shape': (2,), }"},
      {"V52",
       "[('a', '<f4'), ('b', '<i8', (2, 3))]",
       'C',
       {3},
       1,
       1,
       128,
       "{'descr': [('a', '<f4'), ('b', '<i8', (2, 3))], 'fortran_order': False, 'shape': (3,), }"},
      {"V8",
       "[ ((\"t\", 'a'), 'f4'), ('b', [('x', 'u1'), ('y', 'S3')]), ]",
       'C',
       {3},
       1,
       1,
       192,
       "{'descr': [(('t', 'a'), '<f4'), ('b', [('x', '|u1'), ('y', '|S3')])], 'fortran_order': "
       "False, 'shape': (3,), }"},
      {"V4",
       "[('\xc3\xa9', '<f4')]",
       'C',
       {3},
       1,
       1,
       128,
       "{'descr': [('\xe9', '<f4')], 'fortran_order': False, 'shape': (3,), }"},
      {"V4",
       "[('\xd0\x96', '<f4')]",
       'C',
       {3},
       1,
       3,
       128,
       "{'descr': [('\xd0\x96', '<f4')], 'fortran_order': False, 'shape': (3,), }"},
      {"V5",
       "[('a\\'b', '<f4'), ('c\\\\\\n', '|u1')]",
       'C',
       {3},
       1,
       1,
       128,
       "{'descr': [(\"a'b\", '<f4'), ('c\\\\\\n', '|u1')], 'fortran_order': False, 'shape': (3,), "
       "}"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    tegula__buffer header;
    int64_t strides[TEGULA_MAX_DIMS];
    tegula_status status = lay_out(rows[i].dtype, rows[i].descr, rows[i].order, rows[i].shape,
                                   rows[i].ndim, &header, strides);
    if (status != TEGULA_OK) fail_msg("%s: %s", rows[i].dictionary, error.message);
    expect_header(&rows[i], &header);
    tegula__buffer_free(&header);
  }
}

/* A record of one field with a name of `length` letters: where numpy's padding and versions
 * change. */
static void padding_and_versions_change_where_numpys_do(void **state) {
  (void)state;
  static const struct {
    size_t length, size;
    int version;
  } rows[] = {{1, 128, 1},       {31, 128, 1},      {32, 192, 1},
              {95, 192, 1},      {96, 256, 1},      {65375, 65472, 1},
              {65376, 65536, 1}, {65439, 65536, 1}, {65440, 65600, 2}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char *descr = malloc(rows[i].length + 32), *dictionary = malloc(rows[i].length + 128);
    assert_true(descr != NULL && dictionary != NULL);
    strcpy(descr, "[('");
    memset(descr + 3, 'n', rows[i].length);
    strcpy(descr + 3 + rows[i].length, "', '<f4')]");
    sprintf(dictionary, "{'descr': %s, 'fortran_order': False, 'shape': (1,), }", descr);
    golden row = {"V4", descr, 'C', {1}, 1, rows[i].version, rows[i].size, dictionary};
    tegula__buffer header;
    int64_t strides[TEGULA_MAX_DIMS];
    assert_int_equal(lay_out(row.dtype, descr, 'C', row.shape, 1, &header, strides), TEGULA_OK);
    expect_header(&row, &header);
    tegula__buffer_free(&header);
    free(descr);
    free(dictionary);
  }
}

static void strides_follow_the_order(void **state) {
  (void)state;
  tegula__buffer header;
  int64_t strides[TEGULA_MAX_DIMS];
  static const int64_t shape[3] = {4, 3, 2};
  assert_int_equal(lay_out("<f8", NULL, 'C', shape, 3, &header, strides), TEGULA_OK);
  assert_true(strides[0] == 48 && strides[1] == 16 && strides[2] == 8);
  tegula__buffer_free(&header);
  assert_int_equal(lay_out("<f8", NULL, 'F', shape, 3, &header, strides), TEGULA_OK);
  assert_true(strides[0] == 8 && strides[1] == 32 && strides[2] == 96);
  tegula__buffer_free(&header);
}

static void what_is_written_reads_back(void **state) {
  (void)state;
  static const int64_t shape[2] = {4, 3};
  const char *descr = "[(('\xd0\x96', 'a'), '<f4', (2,)), ('', '|V3'), ('\xc3\xa9\\n', '>M8[ns]')]";
  tegula__buffer header;
  int64_t strides[TEGULA_MAX_DIMS];
  assert_int_equal(lay_out("V19", descr, 'F', shape, 2, &header, strides), TEGULA_OK);
  size_t size = header.size;
  assert_true(tegula__buffer_reserve(&header, 228));
  memset(header.data + size, 0, 228);
  memory_file file = memory_make(header.data, size + 228);
  tegula__describe_options options = no_options();
  tegula__manifest m;
  assert_int_equal(memory_describe(&tegula__format_npy, &file, 64, &options, &m, &error),
                   TEGULA_OK);
  assert_string_equal(m.descr, descr);
  assert_int_equal(m.parts[0].offset, size);
  assert_int_equal(m.parts[0].strides[0], 19);
  assert_int_equal(m.parts[0].strides[1], 76);
  tegula__manifest_free(&m);
  memory_free(&file);
  tegula__buffer_free(&header);
}

static void refuses_what_npy_cannot_say(void **state) {
  (void)state;
  static const struct {
    const char *dtype, *descr;
    tegula_status status;
    const char *part;
  } rows[] = {{"bfloat16", NULL, TEGULA_UNSUPPORTED, "bfloat16"},
              {"V12", "[('a', '<f4')]", TEGULA_INVALID_ARGUMENT, "records of 4 bytes"},
              {"<f4", "[('a', '<f4')]", TEGULA_INVALID_ARGUMENT, "records of 4 bytes"},
              {"V4", "'<f4'", TEGULA_INVALID_ARGUMENT, "expected a list of fields"},
              {"V4", "[('a', '<f4')", TEGULA_INVALID_ARGUMENT, "descr: expected ',' or ']'"},
              {"V4", "[('a', '<f4')], 'shape': ()", TEGULA_INVALID_ARGUMENT,
               "descr: expected nothing more"},
              {"V4", "[('a', '|O')]", TEGULA_UNSUPPORTED, "pickled"},
              {"V8", "[('a', '<f4'), ('a', '<f4')]", TEGULA_INVALID_ARGUMENT, "two fields"},
              {"V4", "[('\xff', '<f4')]", TEGULA_INVALID_ARGUMENT, "UTF-8"},
              {"V4", "", TEGULA_INVALID_ARGUMENT, "descr: expected a value"}};
  static const int64_t shape[1] = {2};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    tegula__buffer header;
    int64_t strides[TEGULA_MAX_DIMS];
    assert_int_equal(lay_out(rows[i].dtype, rows[i].descr, 'C', shape, 1, &header, strides),
                     rows[i].status);
    assert_contains(error.message, rows[i].part);
    tegula__buffer_free(&header);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(headers_equal_numpys),
      cmocka_unit_test(padding_and_versions_change_where_numpys_do),
      cmocka_unit_test(strides_follow_the_order),
      cmocka_unit_test(what_is_written_reads_back),
      cmocka_unit_test(refuses_what_npy_cannot_say),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
