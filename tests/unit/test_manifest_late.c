/* Late parts: what is wanted of them is found out once, must be their boxes, and is shown by views
 * that leave the manifest as it is.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "manifest/manifest.h"

/* What a late part of these tests gives: dense rows of a file. */
typedef struct answer {
  int64_t boxes[3][2]; /* rows; equal: no more */
  const char *file;
  int64_t inode;
  tegula_status fails;
  int asked, released;
} answer;

static int64_t reader_rows;

static tegula_status no_read(void *state, const tegula_view *dst, tegula_error *err) {
  (void)state, (void)dst, (void)err;
  return TEGULA_OK;
}

static void add_file(tegula__manifest *to, const char *path, int64_t inode) {
  to->files = realloc(to->files, (size_t)(to->file_count + 1) * sizeof *to->files);
  assert_non_null(to->files);
  to->files[to->file_count++] =
      (tegula__file){.path = strdup(path), .stamp = {.size = 4096, .inode = (uint64_t)inode}};
}

static tegula_status answer_with(const tegula__late *late, const struct tegula__store *store,
                                 const tegula__file *from, tegula__manifest *out,
                                 tegula_error *err) {
  answer *a = late->state;
  (void)store;
  a->asked++;
  assert_string_equal(from->path, "virtual.h5");
  if (a->fails != TEGULA_OK)
    return tegula__fail(err, a->fails, a->file, -1, "\"%s\" is wrong", a->file);
  add_file(out, a->file, a->inode);
  for (int i = 0; i < 3 && a->boxes[i][0] < a->boxes[i][1]; i++) {
    int64_t lo[2] = {a->boxes[i][0], 0}, hi[2] = {a->boxes[i][1], 4};
    FORWARD(tegula__manifest_add(out, 0, lo[0] * 16, lo, hi, (int64_t[]){16, 4}, '<', err));
  }
  tegula__reader *reader = calloc(1, sizeof *reader); /* to see that its rows are moved */
  assert_non_null(reader);
  *reader = (tegula__reader){.read = no_read, .row = reader_rows};
  return tegula__manifest_add_reader(out, reader, err);
}

static void note_release(void *state) { ((answer *)state)->released++; }

static tegula__late *add_late(tegula__manifest *to, answer *state, const int64_t rows[][2]) {
  tegula__late *late = calloc(1, sizeof *late);
  assert_non_null(late);
  *late = (tegula__late){
      .resolve = answer_with, .state = state, .release = note_release, .path = strdup(state->file)};
  pthread_mutex_init(&late->lock, NULL);
  assert_int_equal(tegula__manifest_add_late(to, late, NULL), TEGULA_OK);
  for (int i = 0; rows[i][0] < rows[i][1]; i++) {
    tegula__part part = {.kind = TEGULA__PART_LATE,
                         .order = to->dtype.order,
                         .file = TEGULA__NO_FILE,
                         .lo = (int64_t[]){rows[i][0], 0},
                         .hi = (int64_t[]){rows[i][1], 4},
                         .strides = (int64_t[]){16, 4},
                         .late = late};
    assert_int_equal(tegula__manifest_add_part(to, &part, NULL), TEGULA_OK);
  }
  return late;
}

/* Rows 0 to 10 of 4 columns: [0, 2) is dense in the file itself, a has [2, 4) and [8, 10), b has
 * [4, 8). */
static void make(tegula__manifest *out, answer *a, answer *b) {
  tegula__manifest_init(out);
  out->dtype = tegula_dtype_native(dtype_of("<f4"));
  out->ndim = 2;
  out->shape[0] = 10;
  out->shape[1] = 4;
  add_file(out, "virtual.h5", 7);
  assert_int_equal(tegula__manifest_add(out, 0, 64, (int64_t[]){0, 0}, (int64_t[]){2, 4},
                                        (int64_t[]){16, 4}, '<', NULL),
                   TEGULA_OK);
  add_late(out, a, (const int64_t[][2]){{2, 4}, {8, 10}, {0, 0}});
  add_late(out, b, (const int64_t[][2]){{4, 8}, {0, 0}});
}

static answer answer_a(void) {
  return (answer){.boxes = {{2, 4}, {8, 9}, {9, 10}}, .file = "a.h5", .inode = 1};
}
static answer answer_b(void) { return (answer){.boxes = {{4, 8}}, .file = "b.h5", .inode = 2}; }

static void boxes_say_what_they_want(void **state) {
  (void)state;
  tegula_error error;
  static const struct {
    int64_t lo, hi, columns;
    bool a, b;
  } cases[] = {{0, 2, 4, false, false}, {1, 3, 4, true, false},  {4, 8, 1, false, true},
               {0, 10, 4, true, true},  {9, 10, 2, true, false}, {3, 5, 0, false, false},
               {4, 4, 4, false, false}};
  answer a = answer_a(), b = answer_b();
  tegula__manifest m;
  make(&m, &a, &b);
  assert_ok(tegula__manifest_finish(&m, &error));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    bool wanted[2] = {false, false};
    tegula__late_mark(&m, (int64_t[]){cases[i].lo, 0}, (int64_t[]){cases[i].hi, cases[i].columns},
                      wanted);
    assert_int_equal(wanted[0], cases[i].a);
    assert_int_equal(wanted[1], cases[i].b);
  }
  assert_int_equal(a.asked + b.asked, 0);
  tegula__manifest_free(&m);
  assert_int_equal(a.released, 1);
  assert_int_equal(b.released, 1);
}

static void what_is_found_is_asked_once_and_shown_by_views(void **state) {
  (void)state;
  tegula_error error;
  answer a = answer_a(), b = answer_b();
  tegula__manifest m, view;
  make(&m, &a, &b);
  assert_ok(tegula__manifest_finish(&m, &error));
  for (int twice = 0; twice < 2; twice++)
    assert_ok(tegula__late_resolve(&m, m.lates[0], NULL, &m.files[0], &error));
  assert_int_equal(a.asked, 1);
  assert_int_equal(m.part_count, 4); /* as it was */
  assert_ok(tegula__manifest_view(&m, m.files, (bool[]){true, false}, &view, &error));
  assert_int_equal(b.asked, 0);
  assert_int_equal(view.part_count, 4);
  const int64_t rows[4][2] = {{0, 2}, {2, 4}, {8, 9}, {9, 10}};
  for (int i = 0; i < 4; i++) {
    assert_int_equal(view.parts[i].kind, TEGULA__PART_DENSE);
    assert_int_equal(view.parts[i].lo[0], rows[i][0]);
    assert_int_equal(view.parts[i].hi[0], rows[i][1]);
    assert_int_equal(view.parts[i].file, i > 0);
  }
  assert_int_equal(view.file_count, 2);
  assert_string_equal(view.files[1].path, "a.h5");
  assert_int_equal(view.files[1].stamp.inode, 1);
  static const struct {
    int64_t lo, hi;
    bool holds;
  } spans[] = {{0, 4, true},  {8, 10, true}, {1, 9, false},
               {3, 5, false}, {5, 6, false}, {5, 5, true}};
  for (size_t i = 0; i < sizeof spans / sizeof *spans; i++)
    assert_int_equal(
        tegula__view_holds(&view, (int64_t[]){spans[i].lo, 1}, (int64_t[]){spans[i].hi, 3}),
        spans[i].holds);
  int64_t first, last;
  tegula__manifest_find(&view, 8, 10, &first, &last);
  assert_int_equal(first, 2);
  assert_int_equal(last, 4);
  tegula__manifest_free(&view); /* which owns nothing of it */
  assert_int_equal(m.lates[0]->found->parts[0].lo[0], 2);
  tegula__manifest_free(&m);
  assert_int_equal(a.released, 1);
}

/* Two sources in one file count it once; a file that was replaced between them is two, of which one
 * cannot be opened any more. */
static void files_are_in_the_table_once(void **state) {
  (void)state;
  tegula_error error;
  for (int64_t inode = 1; inode <= 2; inode++) {
    answer a = answer_a(), b = answer_b();
    b.file = "a.h5";
    b.inode = inode;
    tegula__manifest m, view;
    make(&m, &a, &b);
    assert_ok(tegula__manifest_finish(&m, &error));
    for (int i = 0; i < 2; i++)
      assert_ok(tegula__late_resolve(&m, m.lates[i], NULL, &m.files[0], &error));
    assert_ok(tegula__manifest_view(&m, m.files, (bool[]){true, true}, &view, &error));
    assert_int_equal(view.file_count, inode == 1 ? 2 : 3);
    assert_int_equal(view.part_count, 5);
    for (int64_t i = 0; i < 5; i++)
      assert_int_equal(view.parts[i].file, i == 0                                   ? 0
                                           : inode == 2 && view.parts[i].lo[0] == 4 ? 2
                                                                                    : 1);
    tegula__manifest_free(&view);
    tegula__manifest_free(&m);
  }
}

static void grids_get_the_numbers_of_the_view(void **state) {
  (void)state;
  tegula_error error;
  answer a = answer_a(), b = answer_b();
  tegula__manifest m, view;
  make(&m, &a, &b);
  assert_ok(tegula__manifest_finish(&m, &error));
  for (int i = 0; i < 2; i++)
    assert_ok(tegula__late_resolve(&m, m.lates[i], NULL, &m.files[0], &error));
  tegula__manifest *found = m.lates[1]->found; /* as if b had given one chunk */
  tegula__grid *grid = calloc(1, sizeof *grid);
  assert_non_null(grid);
  grid->chunk_bytes = 64;
  assert_ok(tegula__manifest_add_grid(found, grid, &error));
  found->parts[0].kind = TEGULA__PART_CHUNKED;
  found->parts[0].file = TEGULA__NO_FILE;
  found->parts[0].grid = grid;
  assert_ok(tegula__manifest_view(&m, m.files, (bool[]){true, true}, &view, &error));
  assert_int_equal(view.grid_count, 1);
  assert_int_equal(view.grids[0]->file, 2);
  assert_ptr_equal(view.parts[2].grid, view.grids[0]);
  assert_int_equal(grid->file, 0);
  tegula__manifest_free(&view);
  tegula__manifest_free(&m);
}

static void other_boxes_than_those_asked_for_are_refused(void **state) {
  (void)state;
  tegula_error error;
  static const int64_t wrong[][3][2] = {
      {{2, 4}},                  /* too little */
      {{2, 4}, {8, 10}, {4, 6}}, /* too much */
      {{2, 4}, {2, 4}},          /* one twice */
      {{2, 4}, {7, 9}},          /* beside it */
      {{2, 6}},                  /* over the end of a box */
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    answer a = answer_a(), b = answer_b();
    memcpy(a.boxes, wrong[i], sizeof a.boxes);
    tegula__manifest m;
    make(&m, &a, &b);
    assert_ok(tegula__manifest_finish(&m, &error));
    assert_refused(tegula__late_resolve(&m, m.lates[0], NULL, &m.files[0], &error),
                   TEGULA_INTERNAL);
    assert_contains(error.message, "a.h5");
    assert_null(m.lates[0]->found);
    tegula__manifest_free(&m);
  }
}

/* A file of 4096 bytes: rows that lie behind its end are found then, as they are when a manifest is
 * finished. */
static void what_is_found_is_checked_like_any_manifest(void **state) {
  (void)state;
  tegula_error error;
  answer a = answer_a(), b = answer_b();
  tegula__manifest m;
  make(&m, &a, &b);
  m.shape[0] = 1000;
  tegula__part part = {
      .kind = TEGULA__PART_LATE, .order = '<', .file = TEGULA__NO_FILE, .late = m.lates[1]};
  part.lo = (int64_t[]){10, 0};
  part.hi = (int64_t[]){1000, 4};
  part.strides = (int64_t[]){16, 4};
  assert_ok(tegula__manifest_add_part(&m, &part, &error));
  b.boxes[1][0] = 10;
  b.boxes[1][1] = 1000;
  assert_ok(tegula__manifest_finish(&m, &error));
  assert_refused(tegula__late_resolve(&m, m.lates[1], NULL, &m.files[0], &error),
                 TEGULA_SHORT_FILE);
  tegula__manifest_free(&m);
}

static void a_failure_is_told_and_asked_again(void **state) {
  (void)state;
  tegula_error error;
  answer a = answer_a(), b = answer_b();
  a.fails = TEGULA_MISMATCH;
  tegula__manifest m;
  make(&m, &a, &b);
  assert_ok(tegula__manifest_finish(&m, &error));
  assert_refused(tegula__late_resolve(&m, m.lates[0], NULL, &m.files[0], &error), TEGULA_MISMATCH);
  assert_contains(error.message, "a.h5");
  a.fails = TEGULA_OK;
  assert_ok(tegula__late_resolve(&m, m.lates[0], NULL, &m.files[0], &error));
  assert_int_equal(a.asked, 2);
  tegula__manifest_free(&m);
}

/* The rows of the second of two shards are counted from its own start when they are found, and lie
 * behind those of the first. */
static void joined_shards_move_what_is_found(void **state) {
  (void)state;
  tegula_error error;
  answer answers[4] = {answer_a(), answer_b(), answer_a(), answer_b()};
  tegula__manifest shards[2], m, view;
  make(&shards[0], &answers[0], &answers[1]);
  make(&shards[1], &answers[2], &answers[3]);
  assert_ok(tegula__manifest_join(shards, 2, &m, &error));
  assert_ok(tegula__manifest_finish(&m, &error));
  assert_int_equal(m.late_count, 4);
  assert_int_equal(m.lates[3]->file, 1);
  assert_int_equal(m.lates[3]->number, 3);
  reader_rows = 5;
  assert_ok(tegula__late_resolve(&m, m.lates[3], NULL, &m.files[1], &error));
  reader_rows = 0;
  assert_ok(tegula__manifest_view(&m, m.files, (bool[]){false, false, false, true}, &view, &error));
  assert_int_equal(view.part_count, 3);
  assert_int_equal(view.parts[2].lo[0], 14);
  assert_int_equal(view.parts[2].hi[0], 18);
  assert_int_equal(view.parts[2].offset, 64);
  assert_int_equal(view.readers[0]->row, 15);
  assert_int_equal(answers[1].asked, 0);
  tegula__manifest_free(&view);
  tegula__manifest_free(&m);
  for (int i = 0; i < 4; i++) assert_int_equal(answers[i].released, 1);
}

static void a_manifest_with_late_parts_is_not_written_down(void **state) {
  (void)state;
  tegula_error error;
  static const char *const codecs[] = {NULL};
  answer a = answer_a(), b = answer_b();
  tegula__manifest m;
  char *text = NULL;
  make(&m, &a, &b);
  assert_ok(tegula__manifest_finish(&m, &error));
  assert_refused(
      tegula__manifest_write(&m, &(tegula__manifest_names){.codecs = codecs}, NULL, &text, &error),
      TEGULA_INTERNAL);
  tegula__manifest_free(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(boxes_say_what_they_want),
      cmocka_unit_test(what_is_found_is_asked_once_and_shown_by_views),
      cmocka_unit_test(files_are_in_the_table_once),
      cmocka_unit_test(grids_get_the_numbers_of_the_view),
      cmocka_unit_test(other_boxes_than_those_asked_for_are_refused),
      cmocka_unit_test(what_is_found_is_checked_like_any_manifest),
      cmocka_unit_test(a_failure_is_told_and_asked_again),
      cmocka_unit_test(joined_shards_move_what_is_found),
      cmocka_unit_test(a_manifest_with_late_parts_is_not_written_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
