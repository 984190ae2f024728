/* Manifests as JSON: what is written reads back, and text that was tampered with is refused before
 * anything is believed.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Texts that are refused are a good text with one piece replaced, so each test row shows the one
 * thing that is wrong. */
#include "support.h"

#include <limits.h>

#include "manifest/manifest.h"

static tegula_error error;
static const char *const formats[] = {"npy", "raw", NULL};
static const tegula__manifest_names names = {
    .formats = formats, .codecs = (const char *const[]){"none", "deflate", "shuffle", NULL}};

/* Two files of 3 and 2 rows of 4 big-endian int16, the second in Fortran order behind 16 bytes. */
static const char good[] = "{\"tegula_manifest\": 1, \"format\": \"npy\", \"name\": \"data\", "
                           "\"dtype\": \"<i2\", \"shape\": [5, 4],\n"
                           " \"files\": [{\"path\": \"a.npy\", \"size\": 100, \"mtime_ns\": 7}, "
                           "{\"path\": \"/abs/b.npy\", \"size\": 32, \"mtime_ns\": -8}],\n"
                           " \"parts\": [{\"file\": 0, \"offset\": 10, \"lo\": [0, 0], \"hi\": [3, "
                           "4], \"strides\": [8, 2], \"order\": \">\"},\n"
                           "            {\"file\": 1, \"offset\": 16, \"lo\": [3, 0], \"hi\": [5, "
                           "4], \"strides\": [2, 4], \"order\": \"<\"}]}";

static tegula_status read_sized(const char *text, size_t size, tegula__manifest *out) {
  char *copy = malloc(size > 0 ? size : 1);
  assert_non_null(copy);
  memcpy(copy, text, size);
  tegula__manifest_init(out);
  memset(&error, 0, sizeof error);
  tegula_status status = tegula__manifest_read(copy, size, "dir/m.json", &names, out, &error);
  free(copy);
  return status;
}

static tegula_status read_text(const char *text, tegula__manifest *out) {
  return read_sized(text, strlen(text), out);
}

/* The good text with the first `old` from the `nth` on replaced. */
static char *with(const char *old, const char *new, int nth) {
  const char *at = strstr(good, old);
  while (nth-- > 0 && at != NULL) at = strstr(at + 1, old);
  assert_non_null(at);
  char *out = malloc(sizeof good + strlen(new));
  assert_non_null(out);
  sprintf(out, "%.*s%s%s", (int)(at - good), good, new, at + strlen(old));
  return out;
}

static void a_good_text_gives_every_field(void **state) {
  (void)state;
  tegula__manifest m;
  assert_ok(read_text(good, &m));
  assert_ok(tegula__manifest_finish(&m, &error));
  assert_string_equal(m.format, "npy");
  assert_ptr_equal(m.format, formats[0]); /* static text */
  assert_string_equal(m.name, "data");
  assert_int_equal(m.ndim, 2);
  assert_int_equal(m.shape[0] * 10 + m.shape[1], 54);
  assert_int_equal(m.file_count, 2);
  assert_string_equal(m.files[0].path, "dir/a.npy"); /* relative to the text's own folder */
  assert_string_equal(m.files[1].path, "/abs/b.npy");
  assert_int_equal(m.files[0].stamp.size, 100);
  assert_int_equal(m.files[1].stamp.mtime_ns, -8);
  assert_true(m.files[0].recorded && m.files[1].recorded);
  assert_int_equal(m.part_count, 2);
  assert_int_equal(m.parts[0].order, '>');
  assert_int_equal(m.parts[1].offset, 16);
  assert_int_equal(m.parts[1].strides[0], 2);
  assert_int_equal(m.parts[1].lo[0], 3);
  tegula__manifest_free(&m);
}

typedef struct wrong {
  const char *old, *new;
  int nth;
  tegula_status status;
  const char *part; /* of the message */
} wrong;

static void tampered_texts_are_refused(void **state) {
  (void)state;
  static const wrong rows[] = {
      {"\"tegula_manifest\": 1", "\"tegula_manifest\": 2", 0, TEGULA_UNSUPPORTED, "version 2"},
      {"\"tegula_manifest\": 1", "\"tegula_manifest\": 1.0", 0, TEGULA_CORRUPT,
       "tegula_manifest is the number 1"},
      {"\"tegula_manifest\": 1", "\"tegula_manifest\": true", 0, TEGULA_CORRUPT,
       "tegula_manifest is true"},
      {"\"tegula_manifest\": 1, ", "", 0, TEGULA_CORRUPT, "tegula_manifest is missing"},
      {"\"format\"", "\"fromat\"", 0, TEGULA_CORRUPT, "fromat is no key"},
      {"\"npy\"", "\"zarr\"", 0, TEGULA_UNSUPPORTED, "format \"zarr\""},
      {"\"data\"", "\"\"", 0, TEGULA_CORRUPT, "name is the text \"\""},
      {"\"<i2\"", "\"O\"", 0, TEGULA_CORRUPT, "dtype is the text \"O\""},
      {"\"<i2\"", "2", 0, TEGULA_CORRUPT, "dtype is 2"},
      {"\"<i2\"", "\"<i2\", \"descr\": \"[('a', '<i2')]\"", 0, TEGULA_CORRUPT, "descr"},
      {"[5, 4]", "[5, -4]", 0, TEGULA_CORRUPT, "shape[1] is -4"},
      {"[5, 4]", "5", 0, TEGULA_CORRUPT, "shape is 5"},
      {"[5, 4]", "[4611686018427387904, 4611686018427387904]", 0, TEGULA_CORRUPT, "2^63"},
      {"[5, 4]", "[0, 4611686018427387904, 4]", 0, TEGULA_CORRUPT, "2^63"},
      {"[5, 4]", "[6, 4]", 0, TEGULA_CORRUPT, "parts hold 5 rows, expected 6"},
      {"[5, 4]", "[4, 4]", 0, TEGULA_CORRUPT, "parts[1] holds [3, 5) of axis 0"},
      {"[5, 4]", "[5, 3]", 0, TEGULA_CORRUPT, "parts[0] holds [0, 4) of axis 1"},
      {"[5, 4]", "[5, 4, 1]", 0, TEGULA_CORRUPT,
       "parts[0].lo is a list of 2, expected a list of 3"},
      {"[5, 4]", "[]", 0, TEGULA_CORRUPT, "parts is a list of 2"},
      {"[5, 4]", "[5, 4], \"durable\": 2", 0, TEGULA_CORRUPT,
       "durable is 2, expected an integer of 0 to 1"},
      {"\"a.npy\"", "\"\"", 0, TEGULA_CORRUPT, "files[0].path"},
      {"\"a.npy\"", "3", 0, TEGULA_CORRUPT, "files[0].path is 3"},
      {"\"path\": \"a.npy\", ", "", 0, TEGULA_CORRUPT, "files[0].path is missing"},
      {"\"a.npy\"", "\"a\", \"path_hex\": \"61\"", 0, TEGULA_CORRUPT, "not both"},
      {"\"path\": \"a.npy\"", "\"path_hex\": \"6\"", 0, TEGULA_CORRUPT, "hexadecimal"},
      {"\"path\": \"a.npy\"", "\"path_hex\": \"6100\"", 0, TEGULA_CORRUPT, "hexadecimal"},
      {"\"path\": \"a.npy\"", "\"path_hex\": \"xy\"", 0, TEGULA_CORRUPT, "hexadecimal"},
      {"\"size\": 100", "\"size\": -1", 0, TEGULA_CORRUPT, "files[0].size is -1"},
      {"\"size\": 100", "\"size\": 1e2", 0, TEGULA_CORRUPT, "files[0].size is the number 100"},
      {", \"mtime_ns\": 7", "", 0, TEGULA_CORRUPT, "files[0].mtime_ns is missing"},
      {"\"mtime_ns\": 7", "\"mtime_ns\": 7, \"hash\": 3", 0, TEGULA_CORRUPT,
       "files[0].hash is no key"},
      {"\"file\": 0", "\"file\": 2", 0, TEGULA_CORRUPT,
       "parts[0].file is 2, expected an integer of 0 to 1"},
      {"\"file\": 0", "\"file\": -1", 0, TEGULA_CORRUPT, "parts[0].file is -1"},
      {"\"offset\": 10", "\"offset\": -1", 0, TEGULA_CORRUPT, "parts[0].offset"},
      {"\"lo\": [0, 0]", "\"lo\": [1, 0]", 0, TEGULA_CORRUPT, "parts[0] holds [1, 3)"},
      /* three rows in columns of two */
      {"\"lo\": [3, 0]", "\"lo\": [2, 0]", 0, TEGULA_CORRUPT, "parts[1].strides"},
      {"\"lo\": [3, 0]", "\"lo\": [4, 0]", 0, TEGULA_CORRUPT, "parts[1] holds [4, 5)"},
      {"\"hi\": [5, 4]", "\"hi\": [2, 4]", 0, TEGULA_CORRUPT, "parts[1] holds [3, 2)"},
      {"\"hi\": [5, 4]", "\"hi\": [9223372036854775807, 4]", 0, TEGULA_CORRUPT, "parts[1]"},
      {"[8, 2]", "[6, 2]", 0, TEGULA_CORRUPT, "parts[0].strides is (6, 2), expected (8, 2)"},
      {"[8, 2]", "[8, 3]", 0, TEGULA_CORRUPT, "parts[0].strides"},
      {"[8, 2]", "[8, 0]", 0, TEGULA_CORRUPT, "parts[0].strides"},
      {"[8, 2]", "[-8, 2]", 0, TEGULA_CORRUPT, "parts[0].strides[0] is -8"},
      {"[2, 4]", "[3, 4]", 0, TEGULA_CORRUPT, "parts[1].strides"},
      {"\">\"", "\"|\"", 0, TEGULA_CORRUPT, "parts[0].order"},
      {"\">\"", "\"\"", 0, TEGULA_CORRUPT, "parts[0].order"},
      {"\">\"", "\"<>\"", 0, TEGULA_CORRUPT, "parts[0].order"},
      {"\"order\": \">\"", "\"order\": \">\", \"codec\": \"lz4\"", 0, TEGULA_CORRUPT,
       "parts[0].codec is no key"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    tegula__manifest m;
    char *text = with(rows[i].old, rows[i].new, rows[i].nth);
    tegula_status status = read_text(text, &m);
    tegula__manifest_free(&m);
    if (status != rows[i].status)
      fail_msg("%s -> %s: %s: %s", rows[i].old, rows[i].new, tegula_status_name(status),
               error.message);
    assert_contains(error.message, rows[i].part);
    assert_contains(error.message, "dir/m.json");
    assert_null(strchr(error.message, '\n'));
    free(text);
  }
}

static void parts_must_lie_within_the_recorded_size(void **state) {
  (void)state;
  static const char *const rows[][2] = {
      {"\"size\": 32", "\"size\": 31"}, /* 16 + 2 * 4 * 2 */
      {"\"offset\": 16", "\"offset\": 17"},
      {"\"offset\": 16", "\"offset\": 9223372036854775807"},
      {"[8, 2]", "[9223372036854775807, 2]"},
      {"[8, 2]", "[40, 2]"}, /* 10 + 2 * 40 + 8 = 98 of 100 fits, 42 does not */
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    tegula__manifest m;
    char *text = with(rows[i][0], rows[i][1], 0);
    assert_ok(read_text(text, &m));
    tegula_status status = tegula__manifest_finish(&m, &error);
    assert_true(i == 4 ? status == TEGULA_OK
                       : status == TEGULA_SHORT_FILE || status == TEGULA_CORRUPT);
    tegula__manifest_free(&m);
    free(text);
  }
}

static void every_prefix_is_refused_without_a_leak(void **state) {
  (void)state;
  for (size_t size = 0; size < sizeof good - 1; size++) {
    tegula__manifest m;
    assert_refused(read_sized(good, size, &m), TEGULA_CORRUPT);
    tegula__manifest_free(&m);
  }
}

/* Any change of one byte: refused, or a manifest that finish accepts or refuses for its sizes;
 * never a crash, never out of place. */
static void random_changes_never_pass_what_finish_calls_out_of_place(void **state) {
  (void)state;
  uint64_t seed = 1;
  char text[sizeof good];
  static const char bytes[] = "0123456789-[]{},:\".e<>|n \\";
  for (int i = 0; i < 20000; i++) {
    memcpy(text, good, sizeof good);
    for (int64_t changes = random_between(&seed, 1, 3); changes > 0; changes--)
      text[random_between(&seed, 0, (int64_t)sizeof good - 2)] =
          bytes[random_between(&seed, 0, (int64_t)sizeof bytes - 2)];
    tegula__manifest m;
    if (read_text(text, &m) == TEGULA_OK) {
      tegula_status status = tegula__manifest_finish(&m, &error);
      if (status == TEGULA_INTERNAL) fail_msg("%s: %s", error.message, text);
    }
    tegula__manifest_free(&m);
  }
}

static void a_scalar_and_an_empty_array_are_read(void **state) {
  (void)state;
  tegula__manifest m;
  assert_ok(read_text(
      "{\"tegula_manifest\": 1, \"format\": \"raw\", \"name\": \"data\", \"dtype\": \"|V3\", "
      "\"descr\": \"[('a', 'V3')]\", "
      "\"shape\": [], \"files\": [{\"path_hex\": \"ff2f41\", \"size\": 3, \"mtime_ns\": 0}], "
      "\"parts\": [{\"file\": 0, "
      "\"offset\": 0, \"lo\": [], \"hi\": [], \"strides\": [], \"order\": \"|\"}], \"_mine\": 3}",
      &m));
  assert_ok(tegula__manifest_finish(&m, &error));
  assert_string_equal(m.descr, "[('a', 'V3')]");
  assert_string_equal(m.files[0].path, "dir/\xff/A");
  tegula__manifest_free(&m);
  assert_ok(
      read_text("{\"tegula_manifest\": 1, \"format\": \"raw\", \"name\": \"data\", \"dtype\": "
                "\"f8\", \"shape\": [0, 3], "
                "\"files\": [{\"path\": \"x\", \"size\": 0, \"mtime_ns\": 0}], \"parts\": []}",
                &m));
  assert_ok(tegula__manifest_finish(&m, &error));
  tegula__manifest_free(&m);
}

/* ---- writing ---- */

static void what_is_written_reads_back(void **state) {
  (void)state;
  folder made = folder_make();
  char real[PATH_MAX], *text = NULL;
  assert_non_null(realpath(made.path, real));
  assert_int_equal(mkdir(name_in(&made, "data").text, 0700), 0);
  assert_int_equal(mkdir(name_in(&made, "out").text, 0700), 0);
  tegula__manifest m, back;
  assert_ok(read_text(good, &m));
  free(m.files[0].path);
  free(m.files[1].path);
  m.files[0].path = strdup(name_in(&made, "data/a \"b\"\n.npy").text);
  m.files[1].path = strdup(name_in(&made, "data/\xff.npy").text); /* no UTF-8 */
  assert_ok(tegula__manifest_finish(&m, &error));
  assert_ok(tegula__manifest_write(&m, &names, name_in(&made, "out").text, &text, &error));
  assert_memory_equal(text, "{\"tegula_manifest\": 1", 21);
  assert_contains(text,
                  "{\"path\": \"../data/a \\\"b\\\"\\n.npy\", \"size\": 100, \"mtime_ns\": 7}");
  assert_contains(text,
                  "{\"path_hex\": \"2e2e2f646174612fff2e6e7079\", \"size\": 32, \"mtime_ns\": -8}");
  tegula__manifest_init(&back);
  assert_ok(tegula__manifest_read(text, strlen(text), "p/q.json", &names, &back, &error));
  assert_ok(tegula__manifest_finish(&back, &error));
  assert_string_equal(back.files[0].path, "p/../data/a \"b\"\n.npy");
  assert_string_equal(back.files[1].path, "p/../data/\xff.npy");
  assert_int_equal(back.part_count, 2);
  for (int64_t i = 0; i < 2; i++) {
    assert_int_equal(back.parts[i].offset, m.parts[i].offset);
    assert_int_equal(back.parts[i].order, m.parts[i].order);
    assert_memory_equal(back.parts[i].lo, m.parts[i].lo, 2 * sizeof(int64_t));
    assert_memory_equal(back.parts[i].hi, m.parts[i].hi, 2 * sizeof(int64_t));
    assert_memory_equal(back.parts[i].strides, m.parts[i].strides, 2 * sizeof(int64_t));
  }
  tegula__manifest_free(&back);
  free(text);
  text = NULL;
  assert_ok(tegula__manifest_write(&m, &names, name_in(&made, "data").text, &text, &error));
  assert_contains(text, "{\"path\": \"a \\\"b");
  free(text);
  assert_ok(tegula__manifest_write(&m, &names, made.path, &text, &error));
  assert_contains(text, "{\"path\": \"data/a \\\"b");
  free(text);
  char absolute[PATH_MAX + 32];
  snprintf(absolute, sizeof absolute, "{\"path\": \"%s/data/a \\\"b", real);
  assert_ok(tegula__manifest_write(&m, &names, NULL, &text, &error));
  assert_contains(text, absolute);
  free(text);
  /* nothing in common but the root */
  assert_ok(tegula__manifest_write(&m, &names, "/usr", &text, &error));
  assert_contains(text, absolute);
  free(text);
  assert_refused(tegula__manifest_write(&m, &names, name_in(&made, "none").text, &text, &error),
                 TEGULA_NOT_FOUND);
  tegula__manifest_free(&m);
  folder_remove(&made);
}

static void a_dataset_from_a_function_is_refused(void **state) {
  (void)state;
  tegula__manifest m;
  char *text = NULL;
  tegula__manifest_init(&m);
  tegula__reader *reader = calloc(1, sizeof *reader);
  assert_non_null(reader);
  reader->name = strdup("mine");
  reader->local = true;
  assert_ok(tegula__manifest_add_reader(&m, reader, &error));
  assert_refused(tegula__manifest_write(&m, &names, NULL, &text, &error), TEGULA_UNSUPPORTED);
  assert_contains(error.message, "\"mine\"");
  assert_null(text);
  reader->local = false;
  reader->why = strdup("it is read by a library");
  assert_refused(tegula__manifest_write(&m, &names, NULL, &text, &error), TEGULA_UNSUPPORTED);
  assert_contains(error.message, "cannot be written as JSON: it is read by a library");
  tegula__manifest_free(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_good_text_gives_every_field),
      cmocka_unit_test(tampered_texts_are_refused),
      cmocka_unit_test(parts_must_lie_within_the_recorded_size),
      cmocka_unit_test(every_prefix_is_refused_without_a_leak),
      cmocka_unit_test(random_changes_never_pass_what_finish_calls_out_of_place),
      cmocka_unit_test(a_scalar_and_an_empty_array_are_read),
      cmocka_unit_test(what_is_written_reads_back),
      cmocka_unit_test(a_dataset_from_a_function_is_refused),
  };
  return cmocka_run_group_tests_name("manifest: JSON", tests, NULL, NULL);
}
