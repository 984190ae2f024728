/* Plugins: what the host's functions refuse and copy, who owns what when they fail, how plugins are
 * found and opened.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "support.h"

#include "codec/codec.h"
#include "plugin/plugin_priv.h"

static const tegula_plugin_host *host = &tegula__plugin_host;

/* ---- the builder ---- */

typedef struct making {
  tegula__stamp stamp;
  tegula__source source;
  tegula__manifest manifest;
  tegula_plugin_builder builder;
  int opened, closed;
  tegula__store store;
} making;

static tegula_status read_zeros(const tegula__source *source, int64_t offset, void *out,
                                size_t size, tegula_error *err) {
  (void)source, (void)offset, (void)err;
  memset(out, 'z', size);
  return TEGULA_OK;
}

static tegula_status store_open(const tegula__store *store, const char *path, tegula__stamp *stamp,
                                void **handle, tegula_error *err) {
  making *m = store->state;
  if (strcmp(path, "missing") == 0)
    return tegula__fail(err, TEGULA_NOT_FOUND, path, -1, "\"%s\" is not there", path);
  m->opened++;
  *stamp = (tegula__stamp){.size = 10, .inode = (uint64_t)path[0]};
  *handle = m;
  return TEGULA_OK;
}

static tegula_status store_read(void *handle, int64_t offset, void *out, size_t size,
                                tegula_error *err) {
  (void)handle, (void)err;
  assert_true(offset >= 0 && offset + (int64_t)size <= 10);
  memset(out, 's', size);
  return TEGULA_OK;
}

static void store_close(void *handle) { ((making *)handle)->closed++; }
static void store_detach(void *handle) { (void)handle; }

/* An array (6, 5) of f4 in file 0, of 1000 bytes. */
static void making_start(making *m, bool array) {
  tegula_error error;
  *m = (making){.stamp = {.size = 1000, .inode = 1}};
  m->store = (tegula__store){.open = store_open,
                             .read = store_read,
                             .detach = store_detach,
                             .close = store_close,
                             .state = m};
  m->source = (tegula__source){
      .path = "x.h5", .size = 1000, .read = read_zeros, .stamp = &m->stamp, .store = &m->store};
  tegula__manifest_init(&m->manifest);
  m->manifest.format = "test";
  m->builder = (tegula_plugin_builder){.source = &m->source, .out = &m->manifest};
  tegula_plugin_file *file;
  int64_t number;
  assert_ok(host->file_open(&m->builder, "x.h5", &file, &error));
  assert_ok(host->add_file(&m->builder, file, &number, &error));
  assert_int_equal(number, 0);
  host->file_close(file);
  if (array)
    assert_ok(host->set_array(&m->builder, "/x", dtype_of("<f4"), 2, (int64_t[]){6, 5}, &error));
}

static void making_end(making *m) { tegula__manifest_free(&m->manifest); }

static const int64_t lo[2] = {0, 0}, hi[2] = {6, 5}, strides[2] = {20, 4};

static void files_are_opened_once_and_read_inside(void **state) {
  (void)state;
  tegula_error error;
  making m;
  tegula_plugin_file *own, *other, *again;
  int64_t number;
  char bytes[16];
  making_start(&m, true);
  assert_ok(host->file_open(&m.builder, "x.h5", &own, &error));
  assert_int_equal(m.opened, 0); /* it is open already */
  assert_int_equal(host->file_size(own), 1000);
  assert_ok(host->file_read(own, 990, bytes, 10, &error));
  assert_refused(host->file_read(own, 991, bytes, 10, &error), TEGULA_SHORT_FILE);
  assert_refused(host->file_read(own, -1, bytes, 1, &error), TEGULA_SHORT_FILE);
  assert_ok(host->file_open(&m.builder, "other", &other, &error));
  assert_string_equal(host->file_path(other), "other");
  assert_int_equal(host->file_size(other), 10);
  assert_ok(host->file_read(other, 0, bytes, 10, &error));
  assert_int_equal(bytes[9], 's');
  assert_refused(host->file_read(other, 1, bytes, 10, &error), TEGULA_SHORT_FILE);
  assert_refused(host->file_read(other, -1, bytes, 1, &error), TEGULA_SHORT_FILE);
  assert_refused(host->file_read(other, INT64_MAX, bytes, 1, &error), TEGULA_SHORT_FILE);
  assert_refused(host->file_read(other, 0, bytes, SIZE_MAX, &error), TEGULA_SHORT_FILE);
  assert_refused(host->file_open(&m.builder, "missing", &again, &error), TEGULA_NOT_FOUND);
  for (int64_t i = 0; i < 3; i++) {
    char name[] = "a";
    name[0] = (char)('a' + i);
    assert_ok(host->file_open(&m.builder, name, &again, &error));
    assert_ok(host->add_file(&m.builder, again, &number, &error));
    assert_int_equal(number, 1 + i);
    assert_ok(host->add_file(&m.builder, again, &number, &error));
    assert_int_equal(number, 1 + i);
    host->file_close(again);
  }
  assert_ok(host->add_file(&m.builder, own, &number, &error));
  assert_int_equal(number, 0);
  assert_int_equal(m.manifest.files[2].stamp.size, 10);
  host->file_close(own);
  host->file_close(other);
  host->file_close(NULL);
  assert_int_equal(m.opened, 4);
  assert_int_equal(m.closed, 4);
  making_end(&m);
}

static void the_array_comes_first_and_once(void **state) {
  (void)state;
  tegula_error error;
  making m;
  float value = 3;
  making_start(&m, false);
  assert_refused(host->set_fill(&m.builder, &value, &error), TEGULA_INTERNAL);
  assert_refused(host->add_dense(&m.builder, 0, 0, lo, hi, strides, '<', &error), TEGULA_INTERNAL);
  assert_refused(host->add_fill(&m.builder, lo, hi, NULL, &error), TEGULA_INTERNAL);
  assert_refused(host->set_array(&m.builder, "/x", dtype_of("<f4"), -1, hi, &error),
                 TEGULA_INTERNAL);
  assert_refused(
      host->set_array(&m.builder, "/x", dtype_of("<f4"), TEGULA_MAX_DIMS + 1, hi, &error),
      TEGULA_INTERNAL);
  assert_refused(host->set_array(&m.builder, "/x", (tegula_dtype){0}, 2, hi, &error),
                 TEGULA_INTERNAL);
  assert_ok(host->set_array(&m.builder, "/x", dtype_of(">f4"), 2, hi, &error));
  assert_int_equal(m.manifest.dtype.order, TEGULA__NATIVE_ORDER);
  /* its items would be longer */
  assert_refused(host->set_array(&m.builder, "/x", dtype_of("<f8"), 2, hi, &error),
                 TEGULA_INTERNAL);
  assert_ok(host->set_fill(&m.builder, &value, &error));
  value = 4;
  assert_memory_equal(m.manifest.fill, &(float){3}, 4);
  assert_ok(host->set_fill(&m.builder, NULL, &error));
  assert_null(m.manifest.fill);
  making_end(&m);
}

/* ---- grids ---- */

typedef struct grid_call {
  int64_t file, chunk_bytes, slots, count;
  tegula_plugin_filter filters[40];
  int32_t filter_count;
  bool sparse, no_chunks;
} grid_call;

static tegula_status add_grid(making *m, const grid_call *call, int64_t *number,
                              tegula_error *error) {
  size_t entries = call->count > 0 && call->count < 100 ? (size_t)call->count : 1;
  tegula_plugin_chunk *chunks = host->allocate(entries * sizeof *chunks);
  uint64_t *coordinates = call->sparse ? host->allocate(entries * sizeof *coordinates) : NULL;
  assert_non_null(chunks);
  memset(chunks, 0, entries * sizeof *chunks);
  for (size_t i = 0; i < entries && coordinates != NULL; i++) coordinates[i] = i;
  tegula_status status = host->add_grid(
      &m->builder, call->file, call->chunk_bytes, '<', call->filters, call->filter_count, NULL,
      call->slots, call->count, coordinates, call->no_chunks ? NULL : chunks, number, error);
  /* still the caller's: AddressSanitizer sees a second time */
  if (status != TEGULA_OK || call->no_chunks) host->release(chunks);
  if (status != TEGULA_OK) host->release(coordinates);
  return status;
}

#define GRID_CASE(expected, change)                                                                \
  do {                                                                                             \
    grid_call call = {.chunk_bytes = 48, .slots = 4, .count = 4};                                  \
    change;                                                                                        \
    assert_refused(add_grid(&m, &call, &number, &error), expected);                                \
    assert_int_equal(m.manifest.grid_count, 0);                                                    \
  } while (0)

static void bad_grids_stay_with_the_plugin(void **state) {
  (void)state;
  tegula_error error;
  making m;
  int64_t number = -7;
  making_start(&m, true);
  GRID_CASE(TEGULA_INTERNAL, call.file = 1);
  GRID_CASE(TEGULA_INTERNAL, call.file = -1);
  GRID_CASE(TEGULA_INTERNAL, call.chunk_bytes = 0);
  GRID_CASE(TEGULA_INTERNAL, call.chunk_bytes = -1);
  GRID_CASE(TEGULA_INTERNAL, call.slots = -1);
  GRID_CASE(TEGULA_INTERNAL, call.slots = 5); /* all slots have an entry, without coordinates */
  GRID_CASE(TEGULA_INTERNAL, call.count = -1);
  GRID_CASE(TEGULA_INTERNAL, (call.sparse = true, call.slots = 3));
  GRID_CASE(TEGULA_INTERNAL, call.no_chunks = true);
  GRID_CASE(TEGULA_UNSUPPORTED, (call.filter_count = 1, call.filters[0].codec = "no such codec"));
  assert_contains(error.message, "no such codec");
  assert_contains(error.message, "x.h5");
  GRID_CASE(TEGULA_UNSUPPORTED, call.filter_count = TEGULA__CHAIN_MAX + 1);
  GRID_CASE(TEGULA_UNSUPPORTED, call.filter_count = -1);
  const char *codec = tegula__codec_name(TEGULA__CODEC_DEFLATE);
  GRID_CASE(TEGULA_INTERNAL, (call.filter_count = 1, call.filters[0].codec = codec,
                              call.filters[0].param_count = 5));
  GRID_CASE(TEGULA_INTERNAL, (call.filter_count = 1, call.filters[0].codec = codec,
                              call.filters[0].param_count = -1));
  assert_int_equal(number, -7);
  making_end(&m);
}

static void a_stored_chunk_that_is_too_long_is_corrupt(void **state) {
  (void)state;
  tegula_error error;
  making m;
  int64_t number;
  making_start(&m, true);
  tegula_plugin_chunk *chunks = host->allocate(sizeof *chunks);
  assert_non_null(chunks);
  chunks[0] = (tegula_plugin_chunk){.offset = 100, .length = UINT32_MAX};
  assert_refused(
      host->add_grid(&m.builder, 0, 120, '<', NULL, 0, NULL, 1, 1, NULL, chunks, &number, &error),
      TEGULA_CORRUPT);
  assert_int_equal(error.offset, 100);
  host->release(chunks);
  making_end(&m);
}

static void a_grid_and_its_parts_make_a_manifest(void **state) {
  (void)state;
  tegula_error error;
  making m;
  int64_t number;
  making_start(&m, true);
  float fill = 5;
  uint64_t *coordinates = host->allocate(2 * sizeof *coordinates);
  tegula_plugin_chunk *chunks = host->allocate(2 * sizeof *chunks);
  assert_true(coordinates != NULL && chunks != NULL);
  coordinates[0] = 1, coordinates[1] = 3;
  chunks[0] = (tegula_plugin_chunk){.offset = 0, .length = 48},
  chunks[1] = (tegula_plugin_chunk){.offset = 952, .length = 48};
  assert_ok(host->add_grid(&m.builder, 0, 48, '>', NULL, 0, &fill, 4, 2, coordinates, chunks,
                           &number, &error));
  fill = 6;
  int64_t start[2] = {0, 0}, chunk[2] = {4, 3}, slot_stride[2] = {2, 1}, byte_stride[2] = {12, 4};
  tegula_plugin_chunked part = {.lo = lo,
                                .hi = hi,
                                .start = start,
                                .chunk = chunk,
                                .slot_stride = slot_stride,
                                .byte_stride = byte_stride};
  assert_refused(host->add_chunked(&m.builder, number + 1, &part, &error), TEGULA_INTERNAL);
  assert_refused(host->add_chunked(&m.builder, -1, &part, &error), TEGULA_INTERNAL);
  assert_ok(host->add_chunked(&m.builder, number, &part, &error));
  chunk[0] = slot_stride[0] = byte_stride[0] = -1;
  assert_ok(tegula__manifest_finish(&m.manifest, &error));
  const tegula__part *made = &m.manifest.parts[0];
  assert_true(made->kind == TEGULA__PART_CHUNKED && made->order == '>' && made->chunk[0] == 4 &&
              made->strides[0] == 12);
  assert_memory_equal(made->grid->fill, &(float){5}, 4);
  assert_null(tegula__grid_find(made->grid, 2));
  assert_int_equal(tegula__grid_find(made->grid, 3)->offset, 952);
  making_end(&m);
}

/* ---- other parts ---- */

static int released;
static void release(void *state) {
  assert_ptr_equal(state, &released);
  released++;
}

static tegula_status never(void *state, const tegula_view *view, tegula_error *err) {
  (void)state, (void)view;
  return tegula__fail(err, TEGULA_INTERNAL, NULL, -1, "never called");
}

static void dense_filled_and_lost_parts_are_checked(void **state) {
  (void)state;
  tegula_error error;
  making m;
  making_start(&m, true);
  char text[] = "gone", path[] = "y.h5";
  const int64_t before[2] = {-1, 0};
  assert_refused(host->add_dense(&m.builder, 1, 0, lo, hi, strides, '<', &error), TEGULA_INTERNAL);
  assert_refused(host->add_dense(&m.builder, -1, 0, lo, hi, strides, '<', &error), TEGULA_INTERNAL);
  assert_refused(host->add_fill(&m.builder, hi, lo, NULL, &error), TEGULA_INTERNAL);
  assert_refused(host->add_fill(&m.builder, before, hi, NULL, &error), TEGULA_INTERNAL);
  assert_refused(host->add_lost(&m.builder, lo, hi, NULL, TEGULA_OK, 0, text, path, &error),
                 TEGULA_INTERNAL);
  assert_int_equal(m.manifest.part_count, 0);
  assert_ok(host->add_lost(&m.builder, lo, hi, NULL, TEGULA_NOT_FOUND, ENOENT, text, path, &error));
  memset(text, 'x', 4);
  memset(path, 'x', 4);
  assert_ok(tegula__manifest_finish(&m.manifest, &error));
  const tegula_error *lost = m.manifest.parts[0].lost;
  assert_int_equal(lost->status, TEGULA_NOT_FOUND);
  assert_string_equal(lost->message, "lost from (0, 0) up to (6, 5): gone");
  assert_string_equal(lost->path, "y.h5");
  assert_contains(lost->hint, "missing=fill");
  assert_int_equal(lost->os_errno, ENOENT);
  making_end(&m);
}

static void a_reader_is_released_once_whatever_happens(void **state) {
  (void)state;
  tegula_error error;
  for (int which = 0; which < 3; which++) {
    making m;
    released = 0;
    making_start(&m, which != 1);
    const int64_t chunk[2] = {which == 2 ? 0 : 2, 2};
    tegula_status status = host->add_reader(&m.builder, which == 0 ? hi : lo, which == 0 ? lo : hi,
                                            chunk, 0, "why", never, &released, release, &error);
    if (which < 2) assert_int_equal(status, TEGULA_INTERNAL);
    if (which == 2) assert_refused(tegula__manifest_finish(&m.manifest, &error), TEGULA_INTERNAL);
    making_end(&m);
    assert_int_equal(released, 1);
  }
}

/* ---- finding and opening ---- */

static tegula_status describe_with(const char *folders, const char *library, const char *dataset,
                                   tegula__manifest *out, tegula_error *error) {
  making m;
  tegula__plugins *plugins = NULL;
  making_start(&m, false);
  making_end(&m);
  tegula__manifest_init(out);
  out->format = "tiny";
  assert_int_equal(tegula__plugins_create(folders, library, NULL, &plugins, NULL), TEGULA_OK);
  tegula__describe_options options = {
      .shape_ndim = -1, .row_ndim = -1, .plugins = plugins, .dataset = dataset};
  tegula_status status = tegula__plugin_describe("tiny", &m.source, &options, out, error);
  /* it stays open */
  if (status == TEGULA_OK)
    status = tegula__plugin_describe("tiny", &m.source, &options, &m.manifest, error);
  making_end(&m);
  tegula__plugins_destroy(plugins);
  return status;
}

static void a_plugin_describes(void **state) {
  (void)state;
  tegula_error error;
  tegula__manifest made;
  assert_ok(describe_with(TEST_PLUGINS "0", NULL, NULL, &made, &error));
  assert_string_equal(made.name, "/four bytes");
  assert_int_equal(made.file_count, 0); /* the file that is described is not told again */
  assert_int_equal(made.part_count, 1);
  assert_int_equal(made.parts[0].offset, 2);
  assert_int_equal(made.parts[0].hi[0], 4);
  tegula__manifest_free(&made);
  assert_refused(describe_with(TEST_PLUGINS "0", NULL, "none", &made, &error), TEGULA_NOT_FOUND);
  tegula__manifest_free(&made);
}

static void folders_are_searched_in_their_order(void **state) {
  (void)state;
  tegula_error error;
  tegula__manifest made;
  static const struct {
    const char *folders;
    bool good;
  } cases[] = {{TEST_PLUGINS "0:" TEST_PLUGINS "77", true},
               {TEST_PLUGINS "77:" TEST_PLUGINS "0", false},
               {"/nowhere::" TEST_PLUGINS "0:", true},
               {":", false},
               {"", false},
               {NULL, false}};
  for (int i = 0; i < 6; i++) {
    if (cases[i].good)
      assert_ok(describe_with(cases[i].folders, NULL, NULL, &made, &error));
    else
      assert_refused(describe_with(cases[i].folders, NULL, NULL, &made, &error),
                     TEGULA_UNSUPPORTED);
    if (i == 1) assert_contains(error.message, "is not the plugin tiny of this version");
    if (i > 2) assert_contains(error.message, "the plugin libtegula_tiny.so was not found");
    if (i > 2) assert_contains(error.hint, "TEGULA_PLUGIN_PATH");
    tegula__manifest_free(&made);
  }
}

static void what_does_not_open_says_why(void **state) {
  (void)state;
  tegula_error error;
  tegula__manifest made;
  folder where = folder_make();
  assert_refused(describe_with(TEST_PLUGINS "0", "broken", NULL, &made, &error),
                 TEGULA_UNSUPPORTED);
  assert_contains(error.message, "the heavy library is broken");
  tegula__manifest_free(&made);
  file_write(name_in(&where, "libtegula_tiny.so").text, "no object", 9);
  assert_refused(describe_with(where.path, NULL, NULL, &made, &error), TEGULA_UNSUPPORTED);
  assert_contains(error.message, "could not open the plugin");
  tegula__manifest_free(&made);
  making m;
  making_start(&m, false);
  tegula__describe_options options = {.shape_ndim = -1, .row_ndim = -1};
  tegula__manifest_init(&made);
  assert_refused(tegula__plugin_describe("tiny", &m.source, &options, &made, &error),
                 TEGULA_UNSUPPORTED);
  assert_contains(error.message, "needs a plugin");
  making_end(&m);
  folder_remove(&where);
}

static tegula_status see(void *state, const tegula_plugin_entry_info *entry, tegula_error *err) {
  int *left = state;
  assert_int_equal(entry->shape[0], 4);
  return --*left >= 0 ? TEGULA_OK : tegula__fail(err, TEGULA_CANCELLED, NULL, -1, "enough");
}

static tegula_status never_told(void *state, const tegula_attribute *attribute, tegula_error *err) {
  (void)state, (void)attribute, (void)err;
  fail();
  return TEGULA_INTERNAL;
}

static void lists_end_when_they_are_not_wanted(void **state) {
  (void)state;
  tegula_error error;
  tegula__plugins *plugins = NULL;
  making m;
  making_start(&m, false);
  assert_ok(tegula__plugins_create(TEST_PLUGINS "0", NULL, NULL, &plugins, &error));
  tegula__describe_options options = {.shape_ndim = -1, .row_ndim = -1, .plugins = plugins};
  int left = 5;
  assert_ok(tegula__plugin_list("tiny", &m.source, &options, see, &left, &error));
  assert_int_equal(left, 3);
  left = 1;
  assert_refused(tegula__plugin_list("tiny", &m.source, &options, see, &left, &error),
                 TEGULA_CANCELLED);
  /* has none */
  assert_refused(tegula__plugin_attributes("tiny", &m.source, &options, never_told, NULL, &error),
                 TEGULA_UNSUPPORTED);
  assert_contains(error.message, "no attributes");
  tegula__plugins_destroy(plugins);
  making_end(&m);
}

/* ---- late parts ---- */

typedef struct late_state {
  const char *opens;
  bool nests;
  int released;
} late_state;

/* All of the array from the file `opens`, whose bytes are looked at. */
static tegula_status late_resolve(void *state, tegula_plugin_builder *builder, tegula_error *err) {
  const late_state *s = state;
  tegula_plugin_file *file;
  int64_t number, other;
  char byte;
  if (s->nests) return host->new_late(builder, &(tegula_plugin_late){.path = "inner"}, &other, err);
  FORWARD(host->file_open(builder, s->opens, &file, err));
  tegula_status status = host->add_file(builder, file, &number, err);
  if (status == TEGULA_OK) status = host->file_read(file, 9, &byte, 1, err);
  assert_true(status != TEGULA_OK || byte == 's');
  if (status == TEGULA_OK) status = host->add_dense(builder, number, 0, lo, hi, strides, '<', err);
  host->file_close(file);
  return status;
}

static void late_release(void *state) { ((late_state *)state)->released++; }

static void late_parts_are_asked_for_what_they_are(void **state) {
  (void)state;
  tegula_error error;
  static const char *const opens[] = {
      "other", "x.h5" /* the described file, which is not open any more */, "missing", NULL};
  for (size_t i = 0; i < sizeof opens / sizeof *opens; i++) {
    making m;
    late_state s = {.opens = opens[i], .nests = opens[i] == NULL};
    int64_t number = -1;
    making_start(&m, true);
    tegula_plugin_late late = {
        .resolve = late_resolve, .state = &s, .release = late_release, .path = "folder/other"};
    assert_ok(host->new_late(&m.builder, &late, &number, &error));
    assert_int_equal(number, 0);
    assert_refused(host->add_late(&m.builder, 1, lo, hi, &error), TEGULA_INTERNAL);
    assert_refused(host->add_late(&m.builder, -1, lo, hi, &error), TEGULA_INTERNAL);
    assert_refused(host->add_late(&m.builder, 0, hi, lo, &error), TEGULA_INTERNAL);
    assert_ok(host->add_late(&m.builder, 0, lo, hi, &error));
    assert_string_equal(m.manifest.lates[0]->path, "folder/other");
    assert_int_equal(m.manifest.parts[0].kind, TEGULA__PART_LATE);
    tegula__manifest found;
    tegula__manifest_init(&found);
    found.dtype = m.manifest.dtype;
    found.ndim = 2;
    tegula__late *made = m.manifest.lates[0];
    tegula_status status = made->resolve(made, &m.store, &m.manifest.files[0], &found, &error);
    assert_int_equal(status, i < 2 ? TEGULA_OK : i == 2 ? TEGULA_NOT_FOUND : TEGULA_INTERNAL);
    assert_int_equal(found.part_count, i < 2);
    assert_int_equal(m.opened, i < 2);
    assert_int_equal(m.closed, m.opened);
    if (i < 2) assert_string_equal(found.files[0].path, opens[i]);
    assert_int_equal(s.released, 0);
    tegula__manifest_free(&found);
    making_end(&m);
    assert_int_equal(s.released, 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(late_parts_are_asked_for_what_they_are),
      cmocka_unit_test(files_are_opened_once_and_read_inside),
      cmocka_unit_test(the_array_comes_first_and_once),
      cmocka_unit_test(bad_grids_stay_with_the_plugin),
      cmocka_unit_test(a_stored_chunk_that_is_too_long_is_corrupt),
      cmocka_unit_test(a_grid_and_its_parts_make_a_manifest),
      cmocka_unit_test(dense_filled_and_lost_parts_are_checked),
      cmocka_unit_test(a_reader_is_released_once_whatever_happens),
      cmocka_unit_test(a_plugin_describes),
      cmocka_unit_test(folders_are_searched_in_their_order),
      cmocka_unit_test(what_does_not_open_says_why),
      cmocka_unit_test(lists_end_when_they_are_not_wanted),
  };
  return cmocka_run_group_tests_name("format: plugin", tests, NULL, NULL);
}
