/* Packed manifests: what unpacks is what was packed, judged by its JSON; damaged bytes are refused
 * before anything is believed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "manifest/manifest.h"

static tegula_error error;
static const char *const formats[] = {"npy", "raw", "hdf5", NULL};
static const tegula__manifest_names names = {
    .formats = formats, .codecs = (const char *const[]){"none", "deflate", "shuffle", NULL}};

#define FILES                                                                                      \
  "\"files\": [{\"path\": \"/a\", \"size\": 9000, \"mtime_ns\": 7}, {\"path_hex\": \"2fff62\", "   \
  "\"size\": 32, \"mtime_ns\": -8}]"
#define HEAD "{\"tegula_manifest\": 1, \"format\": \"hdf5\", \"name\": \"/x\", \"dtype\": "
#define GRID "\"chunk_bytes\": 24, \"order\": \">\", \"codecs\": "
#define PART                                                                                       \
  "\"offset\": 0, \"strides\": [8, 2], \"start\": [0, 0], \"chunk\": [3, 4], \"slot_strides\": "   \
  "[1, 0]"

static const char *const texts[] = {
    /* dense parts, numbers that go up and down, Fortran order */
    HEAD "\"<i2\", \"shape\": [5, 4], " FILES ", \"parts\": ["
         "{\"file\": 0, \"offset\": 4000, \"lo\": [0, 0], \"hi\": [3, 4], \"strides\": [8, 2], "
         "\"order\": \">\"},"
         "{\"file\": 1, \"offset\": 16, \"lo\": [3, 0], \"hi\": [5, 4], \"strides\": [2, 4], "
         "\"order\": \"<\"}]}",
    /* chunks: absent ones, masks, few of very many, slices; fill values, lost pieces */
    HEAD "\"<i2\", \"shape\": [10, 8], \"fill\": \"0102\", " FILES ", \"grids\": ["
         "{\"file\": 0, " GRID "[[\"shuffle\", 2], [\"deflate\", 4294967295]], \"fill\": \"0102\", "
         "\"slots\": 4, \"offsets\": [4000, 0, 30, 54],"
         " \"lengths\": [20, 0, 24, 7], \"masks\": [0, 0, 3, 1]},"
         "{\"file\": 0, " GRID "[], \"fill\": null, \"slots\": 1099511627776, \"coordinates\": [0, "
         "1, 549755813888], \"offsets\": [100, 124, 8976],"
         " \"lengths\": [24, 24, 24]},"
         "{\"file\": 1, " GRID
         "[], \"fill\": null, \"slots\": 1, \"offsets\": [8], \"lengths\": [24], \"slices\": 1}],"
         " \"parts\": [{\"grid\": 0, \"lo\": [0, 0], \"hi\": [5, 4], \"slot\": 1, " PART "},"
         "{\"grid\": 1, \"lo\": [0, 4], \"hi\": [5, 8], \"slot\": 549755813888, " PART "},"
         "{\"fill\": null, \"lo\": [5, 0], \"hi\": [8, 4]},"
         "{\"lost\": {\"status\": \"not_found\", \"message\": \"gone\", \"hint\": \"look\", "
         "\"path\": \"x.h5\", \"errno\": 2}, \"fill\": \"0a0b\","
         " \"lo\": [5, 4], \"hi\": [8, 8]},"
         "{\"grid\": 2, \"lo\": [8, 0], \"hi\": [10, 4], \"slot\": 0, \"offset\": 0, "
         "\"strides\": [16, 2], \"start\": [0, 0], \"chunk\": [3, 4], \"slot_strides\": [1, 0], "
         "\"step\": [2, 1]},"
         "{\"lost\": {\"status\": \"io\", \"message\": \"bad\", \"hint\": null, \"path\": null, "
         "\"errno\": 0}, \"fill\": null, \"lo\": [8, 4], \"hi\": [10, 8]}]}",
    HEAD "\"|V3\", \"descr\": \"[('a', 'V3')]\", \"shape\": [], " FILES ", \"parts\": ["
         "{\"texts\": [[0, 2, 1, 1, 1], [1, 1, 0, 2, 0]], \"file\": 1, \"offset\": 0, \"lo\": [], "
         "\"hi\": [], \"strides\": [], \"order\": \"|\"}]}",
    HEAD "\"bfloat16\", \"shape\": [0, 7], " FILES ", \"parts\": []}",
};
enum { TEXTS = sizeof texts / sizeof texts[0] };

static void read_json(const char *text, tegula__manifest *out) {
  tegula__manifest_init(out);
  assert_ok(tegula__manifest_read(text, strlen(text), "/m.json", &names, out, &error));
  assert_ok(tegula__manifest_finish(out, &error));
}

static void pack(const tegula__manifest *m, tegula__buffer *out) {
  tegula__buffer_init(out, 1 << 20);
  assert_ok(tegula__manifest_pack(m, &names, out, &error));
}

/* From memory of exactly that size. */
static tegula_status unpack(const void *bytes, size_t size, tegula__manifest *out) {
  char *copy = malloc(size > 0 ? size : 1);
  assert_non_null(copy);
  memcpy(copy, bytes, size);
  tegula__manifest_init(out);
  memset(&error, 0, sizeof error);
  tegula_status status = tegula__manifest_unpack(copy, size, "of rank 0", &names, out, &error);
  free(copy);
  return status;
}

static char *json_of(const tegula__manifest *m) {
  char *text = NULL;
  assert_ok(tegula__manifest_write(m, &names, NULL, &text, &error));
  return text;
}

static void what_is_packed_unpacks_to_the_same_manifest(void **state) {
  (void)state;
  for (size_t i = 0; i < TEXTS; i++) {
    tegula__manifest m, out;
    tegula__buffer bytes;
    read_json(texts[i], &m);
    pack(&m, &bytes);
    assert_ok(unpack(bytes.data, bytes.size, &out));
    assert_ok(tegula__manifest_finish(&out, &error));
    char *expected = json_of(&m), *found = json_of(&out);
    assert_string_equal(found, expected);
    assert_true(strlen(texts[i]) > 2 * bytes.size); /* that is what it is for */
    assert_true(out.files[0].recorded && out.files[1].recorded);
    assert_ptr_equal(out.format, formats[2]);
    free(expected);
    free(found);
    tegula__buffer_free(&bytes);
    tegula__manifest_free(&m);
    tegula__manifest_free(&out);
  }
}

/* Refused as damaged, or a manifest that finish accepts or refuses for its sizes. */
static void check_damaged(const void *bytes, size_t size) {
  tegula__manifest m;
  tegula_status status = unpack(bytes, size, &m);
  if (status == TEGULA_OK) status = tegula__manifest_finish(&m, &error);
  if (status != TEGULA_OK && status != TEGULA_CORRUPT && status != TEGULA_SHORT_FILE)
    fail_msg("%s: %s", tegula_status_name(status), error.message);
  if (status == TEGULA_CORRUPT) assert_contains(error.message, "\"");
  tegula__manifest_free(&m);
}

static void damaged_bytes_never_pass_what_finish_calls_out_of_place(void **state) {
  (void)state;
  static const unsigned char values[] = {0, 1, 2, 3, 4, 7, 0x3C, 0x7F, 0x80, 0xFE, 0xFF};
  for (size_t i = 0; i < TEXTS; i++) {
    tegula__manifest m, out;
    tegula__buffer bytes;
    read_json(texts[i], &m);
    pack(&m, &bytes);
    tegula__manifest_free(&m);
    for (size_t at = 0; at < bytes.size; at++) {
      assert_refused(unpack(bytes.data, at, &out), TEGULA_CORRUPT); /* every prefix */
      tegula__manifest_free(&out);
      char kept = bytes.data[at];
      for (size_t k = 0; k < sizeof values; k++) {
        bytes.data[at] = (char)values[k];
        check_damaged(bytes.data, bytes.size);
      }
      bytes.data[at] = kept;
    }
    assert_true(tegula__buffer_append(&bytes, "", 1));
    assert_refused(unpack(bytes.data, bytes.size, &out), TEGULA_CORRUPT);
    assert_contains(error.message, "more than a manifest");
    tegula__manifest_free(&out);
    tegula__buffer_free(&bytes);
  }
}

/* A few bytes that claim 2^62 chunks, files or parts: no memory is asked for. */
static void counts_are_compared_with_what_is_there(void **state) {
  (void)state;
  static const char huge[] = "\xff\xff\xff\xff\xff\xff\xff\xff\x3f";
  static const char head[] = "tegula1\0<"
                             "\4hdf5"
                             "\2/x"
                             "\3<i2"
                             "\0"
                             "\1\5"
                             "\0";
  char bytes[sizeof head + sizeof huge];
  tegula__manifest out;
  memcpy(bytes, head, sizeof head - 1);
  memcpy(bytes + sizeof head - 1, huge, sizeof huge);
  assert_refused(unpack(bytes, sizeof head - 1 + sizeof huge - 1, &out), TEGULA_CORRUPT);
  assert_contains(error.message, "too large");
  assert_null(out.files);
  tegula__manifest_free(&out);
}

static void other_versions_and_byte_orders_are_named(void **state) {
  (void)state;
  tegula__manifest m, out;
  tegula__buffer bytes;
  read_json(texts[0], &m);
  pack(&m, &bytes);
  bytes.data[6] = '2';
  assert_refused(unpack(bytes.data, bytes.size, &out), TEGULA_CORRUPT);
  assert_contains(error.message, "another version");
  bytes.data[6] = '1';
  bytes.data[8] = bytes.data[8] == '<' ? '>' : '<';
  assert_refused(unpack(bytes.data, bytes.size, &out), TEGULA_CORRUPT);
  assert_contains(error.message, "byte order");
  tegula__manifest_free(&out);
  tegula__buffer_free(&bytes);
  tegula__manifest_free(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_packed_unpacks_to_the_same_manifest),
      cmocka_unit_test(damaged_bytes_never_pass_what_finish_calls_out_of_place),
      cmocka_unit_test(counts_are_compared_with_what_is_there),
      cmocka_unit_test(other_versions_and_byte_orders_are_named),
  };
  return cmocka_run_group_tests_name("manifest: packed", tests, NULL, NULL);
}
