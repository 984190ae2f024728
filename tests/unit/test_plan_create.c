/* A plan reads what is wanted exactly once, in the order of the files, in steps of bearable size.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Brute force: every element of small random arrays is looked up in all steps. Items of up to 300
 * KB make steps be cut without data. */
#include "test_engine_support.h"

/* bytes of a direct step, docs/design.md */
static const int64_t LARGEST = (int64_t)8 << 20, SMALLEST = (int64_t)256 << 10;
static const int64_t LARGEST_WRITE = (int64_t)32 << 20;

/* Bytes that a step reads or writes, by the plan's own rule of requests (tested by itself against
 * hand-made values). */
static int64_t bytes_of_requests(const move_case *c, const tegula__step *step) {
  const tegula__part *part = &c->manifest.parts[step->part];
  tegula__file_order order;
  int64_t span;
  tegula__file_order_of(part, c->manifest.ndim, step->lo, step->hi, &order);
  int32_t inner = tegula__read_unit(&order, part->strides, step->lo, step->hi,
                                    c->manifest.dtype.item_size, step->gap, &span);
  for (int32_t i = 0; i < order.count - inner; i++)
    span *= step->hi[order.axes[i]] - step->lo[order.axes[i]];
  return span;
}

/* Each element: in one step of its own part if a tile wants it, in at most one otherwise. Returns
 * the number of wanted
 * elements. */
static int64_t check_cover(const move_case *c, const tegula__plan *plan) {
  int32_t ndim = c->manifest.ndim;
  int64_t index[MOST_AXES] = {0}, zero[MOST_AXES] = {0}, wanted = 0;
  if (box_is_empty(ndim, zero, c->manifest.shape)) return 0;
  do {
    int64_t part = part_of(c, index), steps = 0;
    bool asked = tile_of(c, index) >= 0;
    for (int64_t i = 0; i < plan->step_count; i++) {
      if (!box_holds(ndim, plan->steps[i].lo, plan->steps[i].hi, index)) continue;
      steps++;
      assert_int_equal(plan->steps[i].part, part);
    }
    if (steps > 1 || (asked && steps == 0))
      fail_msg("an element is in %lld steps", (long long)steps);
    wanted += asked;
  } while (next_index(ndim, zero, c->manifest.shape, index));
  return wanted;
}

static int64_t offset_of(const move_case *c, const tegula__step *step) {
  const tegula__part *part = &c->manifest.parts[step->part];
  int64_t offset = part->offset;
  for (int32_t k = 0; k < c->manifest.ndim; k++)
    offset += (step->lo[k] - part->lo[k]) * part->strides[k];
  return offset;
}

/* Parts in order, files numbered by groups, each step with something in it. */
static void check_order(const move_case *c, const tegula__plan *plan) {
  for (int64_t i = 0; i < plan->step_count; i++) {
    const tegula__step *step = &plan->steps[i], *before = i > 0 ? step - 1 : NULL;
    assert_true(step->bytes > 0);
    assert_true(step->bytes <= tegula__box_count(c->manifest.ndim, step->lo, step->hi) *
                                   c->manifest.dtype.item_size);
    if (before == NULL) {
      assert_int_equal(step->group, 0);
      continue;
    }
    assert_true(step->part >= before->part);
    int64_t file = c->manifest.parts[step->part].file,
            last_file = c->manifest.parts[before->part].file;
    assert_int_equal(step->group, before->group + (file != last_file));
    if (file == last_file) assert_true(offset_of(c, step) > offset_of(c, before));
  }
  assert_int_equal(plan->group_count,
                   plan->step_count > 0 ? plan->steps[plan->step_count - 1].group + 1 : 0);
}

static void check_sizes(const move_case *c, const tegula__plan *plan,
                        const tegula__plan_limits *limits) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < plan->step_count; i++) {
    const tegula__step *step = &plan->steps[i];
    bytes += step->bytes;
    int64_t read = bytes_of_requests(c, step);
    /* a single item is never cut */
    if (tegula__box_count(c->manifest.ndim, step->lo, step->hi) == 1) continue;
    if (read > (step->kind != TEGULA__STEP_DIRECT ? limits->staging_slot
                : limits->writing                 ? LARGEST_WRITE
                                                  : LARGEST))
      fail_msg("a step that is %s reads %lld bytes",
               step->kind == TEGULA__STEP_DIRECT ? "direct" : "staged", (long long)read);
    assert_true(step->kind == TEGULA__STEP_DIRECT || step->bytes <= limits->staging_slot);
  }
  assert_int_equal(plan->bytes, bytes);
}

static void every_wanted_element_is_in_one_step(void **state) {
  (void)state;
  static const char *const dtypes[] = {"|u1",    "<f4",     "|V5",      "<c16",
                                       "|V2000", "|V65536", "|V300000", "<U20000"};
  uint64_t seed = 3;
  int64_t direct = 0, staged = 0, cut = 0;
  for (int round = 0; round < 3000; round++) {
    move_case c;
    tegula_error error;
    case_make(&seed, dtypes[round % 8], INT64_MAX / 1000, &c);
    /* enough of large cases, they take time */
    if (c.manifest.ndim == MOST_AXES && round % 8 == 0) {
      case_free(&c);
      continue;
    }
    tegula__plan_limits limits = {
        .threads = (int32_t)random_between(&seed, 1, 8),
        .staging_slot =
            random_between(&seed, 0, 1) ? (int64_t)4 << 20 : random_between(&seed, 1, 5000),
        .writing = random_between(&seed, 0, 1),
        .align = random_between(&seed, 0, 1) ? INT64_C(1) << random_between(&seed, 3, 20) : 0};
    tegula__targets targets;
    tegula__plan plan;
    assert_ok(tegula__targets_create(c.manifest.ndim, c.tiles, c.tile_count, &targets, &error));
    assert_ok(tegula__plan_create(&c.manifest, &targets, &limits, &plan, &error));
    int64_t wanted = check_cover(&c, &plan);
    assert_int_equal(plan.bytes, wanted * c.manifest.dtype.item_size);
    check_order(&c, &plan);
    check_sizes(&c, &plan, &limits);
    for (int64_t i = 0; i < plan.step_count; i++)
      *(plan.steps[i].kind == TEGULA__STEP_DIRECT ? &direct : &staged) += 1;
    cut += plan.step_count > c.manifest.part_count;
    tegula__plan_free(&plan);
    tegula__targets_free(&targets);
    case_free(&c);
  }
  assert_true(direct > 1000 && staged > 1000 && cut > 300); /* the cases are not all of one kind */
}

/* ---- larger arrays, whose plans are worked out by hand; parts in C order, one per file ---- */

typedef struct rows_case {
  tegula__manifest manifest;
  tegula__targets targets;
  tegula__plan plan;
} rows_case;

static void plan_rows(rows_case *c, const int64_t *rows, int64_t parts, int64_t columns,
                      const char *dtype, char order, const tegula__tile *tiles, int64_t tile_count,
                      const tegula__plan_limits *limits) {
  tegula_error error;
  tegula__manifest_init(&c->manifest);
  c->manifest.dtype = dtype_of(dtype);
  c->manifest.ndim = 2;
  c->manifest.shape[1] = columns;
  c->manifest.files = calloc((size_t)parts, sizeof *c->manifest.files);
  assert_non_null(c->manifest.files);
  c->manifest.file_count = parts;
  for (int64_t i = 0; i < parts; i++) {
    int64_t lo[2] = {c->manifest.shape[0], 0}, hi[2] = {lo[0] + rows[i], columns}, strides[2];
    tegula__dense_strides((int64_t[]){rows[i], columns}, 2, c->manifest.dtype.item_size, order,
                          strides);
    c->manifest.files[i] = (tegula__file){.path = strdup("x"), .stamp = {.size = INT64_MAX}};
    assert_ok(tegula__manifest_add(&c->manifest, i, 128, lo, hi, strides, c->manifest.dtype.order,
                                   &error));
    c->manifest.shape[0] += rows[i];
  }
  assert_ok(tegula__manifest_finish(&c->manifest, &error));
  assert_ok(tegula__targets_create(2, tiles, tile_count, &c->targets, &error));
  assert_ok(tegula__plan_create(&c->manifest, &c->targets, limits, &c->plan, &error));
}

static void rows_free(rows_case *c) {
  tegula__plan_free(&c->plan);
  tegula__targets_free(&c->targets);
  tegula__manifest_free(&c->manifest);
}

static int64_t largest_step(const tegula__plan *plan) {
  int64_t largest = 0;
  for (int64_t i = 0; i < plan->step_count; i++)
    largest = tegula__max(largest, plan->steps[i].bytes);
  return largest;
}

/* One file of 64 MiB and seven of 1 KiB, 4 workers: the large one is shared out in pieces of 64 MiB
 * / (8 * 4) = 2 MiB. */
static void work_is_even_however_uneven_the_files(void **state) {
  (void)state;
  const int64_t rows[8] = {1, 1, 1, 65536, 1, 1, 1, 1};
  const int64_t lo[2] = {0, 0}, hi[2] = {65543, 256}, strides[2] = {1024, 4};
  const tegula__tile tile = {.lo = lo, .hi = hi, .strides = strides, .order = '<'};
  const tegula__plan_limits limits = {.threads = 4, .staging_slot = (int64_t)4 << 20};
  rows_case c;
  plan_rows(&c, rows, 8, 256, "<f4", 'C', &tile, 1, &limits);
  assert_int_equal(c.plan.bytes, 65543 * 1024);
  assert_true(largest_step(&c.plan) <= ((int64_t)2 << 20) + 1024);
  assert_true(c.plan.step_count >= 7 + 32 && c.plan.step_count <= 7 + 34);
  for (int64_t i = 0; i < c.plan.step_count; i++)
    assert_true(c.plan.steps[i].kind == TEGULA__STEP_DIRECT);
  rows_free(&c);
}

static void small_arrays_are_not_cut_to_crumbs(void **state) {
  (void)state;
  const int64_t rows[1] = {1024}, lo[2] = {0, 0}, hi[2] = {1024, 256},
                strides[2] = {1024, 4}; /* 1 MiB on 64 workers: 4 x 256 KiB */
  const tegula__tile tile = {.lo = lo, .hi = hi, .strides = strides, .order = '<'};
  const tegula__plan_limits limits = {.threads = 64, .staging_slot = (int64_t)4 << 20};
  rows_case c;
  plan_rows(&c, rows, 1, 256, "<f4", 'C', &tile, 1, &limits);
  assert_int_equal(c.plan.step_count, 4);
  assert_int_equal(largest_step(&c.plan), SMALLEST);
  rows_free(&c);
}

/* 256 MiB on one worker. Threads that write to one file take turns: the fewer the better. */
static void written_steps_are_longer_than_read_ones(void **state) {
  (void)state;
  const int64_t lo[2] = {0, 0}, hi[2] = {65536, 1024}, strides[2] = {4096, 4};
  const tegula__tile tile = {.lo = lo, .hi = hi, .strides = strides, .order = '<'};
  for (int writing = 0; writing < 2; writing++) {
    const tegula__plan_limits limits = {
        .threads = 1, .staging_slot = (int64_t)4 << 20, .writing = writing != 0};
    rows_case c;
    plan_rows(&c, (int64_t[]){65536}, 1, 1024, "<f4", 'C', &tile, 1, &limits);
    assert_int_equal(c.plan.step_count, writing ? 8 : 32);
    assert_int_equal(largest_step(&c.plan), writing ? LARGEST_WRITE : LARGEST);
    rows_free(&c);
  }
}

/* Where steps of a file with a header of 128 bytes begin, when rows of `columns` floats are
 * written. */
static void check_aligned(int64_t rows, int64_t columns, int64_t align, bool writing,
                          bool expected) {
  const int64_t lo[2] = {3, 0}, hi[2] = {rows, columns}, strides[2] = {4 * columns, 4};
  const tegula__tile tile = {.lo = lo, .hi = hi, .strides = strides, .order = '<'};
  const tegula__plan_limits limits = {
      .threads = 4, .staging_slot = (int64_t)4 << 20, .writing = writing, .align = align};
  rows_case c;
  plan_rows(&c, &rows, 1, columns, "<f4", 'C', &tile, 1, &limits);
  int64_t next = 3;
  bool aligned = true;
  assert_true(c.plan.step_count > 8);
  for (int64_t i = 0; i < c.plan.step_count; i++) {
    const tegula__step *step = &c.plan.steps[i];
    assert_true(step->lo[0] == next && step->lo[1] == 0 && step->hi[1] == columns &&
                step->bytes <= LARGEST);
    next = step->hi[0];
    if (i > 0 && (128 + step->lo[0] * columns * 4) % align != 0) aligned = false;
  }
  assert_true(next == rows && aligned == expected);
  rows_free(&c);
}

static void written_steps_end_at_blocks_of_the_file_system(void **state) {
  (void)state;
  check_aligned(9000000, 1, 1 << 20, true, true);
  check_aligned(9000000, 1, 1 << 20, false, false); /* reads stay as even as they are */
  check_aligned(9000000, 1, 0x10000, true, true);
  /* rows of 32 bytes, four of them in the header */
  check_aligned(2000000, 8, 1 << 18, true, true);
  check_aligned(500000, 24, 1 << 18, true, true);   /* 96 and 128 bytes are multiples of 32 */
  check_aligned(100000, 250, 1 << 18, true, false); /* a row of 1000 bytes does once in 32 MiB */
  /* rows of 4096 bytes never do behind that header */
  check_aligned(20000, 1024, 1 << 20, true, false);
}

static void a_file_is_read_once_for_all_columns_of_tiles(void **state) {
  (void)state;
  int64_t lo[4][2], hi[4][2], strides[4][2];
  tegula__tile tiles[4];
  /* 4 tiles side by side, each a quarter of every row of 16 KiB */
  for (int64_t i = 0; i < 4; i++) {
    lo[i][0] = 0, hi[i][0] = 512, lo[i][1] = 1024 * i, hi[i][1] = 1024 * (i + 1);
    strides[i][0] = 4096, strides[i][1] = 4;
    tiles[i] = (tegula__tile){.lo = lo[i], .hi = hi[i], .strides = strides[i], .order = '<'};
  }
  const tegula__plan_limits limits = {.threads = 1, .staging_slot = (int64_t)4 << 20};
  rows_case c;
  plan_rows(&c, (int64_t[]){512}, 1, 4096, "<f4", 'C', tiles, 4, &limits);
  /* whole rows of the file, all four tiles in each step */
  for (int64_t i = 0; i < c.plan.step_count; i++) {
    assert_int_equal(c.plan.steps[i].lo[1], 0);
    assert_int_equal(c.plan.steps[i].hi[1], 4096);
    assert_true(c.plan.steps[i].kind == TEGULA__STEP_DIRECT);
  }
  rows_free(&c);
}

static void fortran_files_are_staged_in_patches(void **state) {
  (void)state;
  const int64_t rows[1] = {100000}, lo[2] = {0, 0}, hi[2] = {100000, 512}, strides[2] = {2048, 4};
  const tegula__tile tile = {.lo = lo, .hi = hi, .strides = strides, .order = '<'};
  const tegula__plan_limits limits = {.threads = 2, .staging_slot = (int64_t)4 << 20};
  rows_case c;
  plan_rows(&c, rows, 1, 512, "<f4", 'F', &tile, 1, &limits);
  int64_t last = -1;
  for (int64_t i = 0; i < c.plan.step_count; i++) {
    const tegula__step *step = &c.plan.steps[i];
    assert_false(step->kind == TEGULA__STEP_DIRECT);
    assert_true(step->bytes <= limits.staging_slot);
    assert_true((step->hi[1] - step->lo[1]) * 4 >= 256); /* whole cache lines are written */
    int64_t offset = step->lo[0] * 4 + step->lo[1] * 400000;
    assert_true(offset > last);
    last = offset;
  }
  assert_int_equal(c.plan.bytes, 100000 * 2048);
  rows_free(&c);
}

/* A tile of one column stands first; the memory of the other one is in the order of the file, whose
 * rows stay whole. */
static void a_narrow_tile_does_not_stand_for_the_wide_one(void **state) {
  (void)state;
  const int64_t columns = 1 << 20, lo[2][2] = {{0, 0}, {0, 1}}, hi[2][2] = {{64, 1}, {64, columns}};
  const int64_t strides[2][2] = {{4, 4}, {4 * (columns - 1), 4}};
  tegula__tile tiles[2];
  for (int i = 0; i < 2; i++)
    tiles[i] = (tegula__tile){.lo = lo[i], .hi = hi[i], .strides = strides[i], .order = '<'};
  const tegula__plan_limits limits = {.threads = 1, .staging_slot = (int64_t)4 << 20};
  rows_case c;
  plan_rows(&c, (int64_t[]){64}, 1, columns, "<f4", 'C', tiles, 2, &limits);
  for (int64_t i = 0; i < c.plan.step_count; i++) {
    const tegula__step *step = &c.plan.steps[i];
    assert_true(step->hi[0] - step->lo[0] == 1 || step->hi[1] - step->lo[1] == columns);
  }
  rows_free(&c);
}

static void nothing_wanted_makes_no_steps(void **state) {
  (void)state;
  const int64_t lo[2] = {2, 1}, hi[2] = {2, 3}, strides[2] = {16, 4};
  const tegula__tile empty = {.lo = lo, .hi = hi, .strides = strides, .order = '<'};
  const tegula__plan_limits limits = {.threads = 2, .staging_slot = 4096};
  for (int64_t tiles = 0; tiles < 2; tiles++) {
    rows_case c;
    plan_rows(&c, (int64_t[]){3, 0, 2}, 3, 4, "<f4", 'C', &empty, tiles, &limits);
    assert_int_equal(c.plan.step_count, 0);
    assert_int_equal(c.plan.bytes, 0);
    rows_free(&c);
  }
}

static void unwanted_files_have_no_steps(void **state) {
  (void)state;
  const int64_t lo[2] = {4, 1}, hi[2] = {6, 3}, strides[2] = {16, 4};
  const tegula__tile tile = {.lo = lo, .hi = hi, .strides = strides, .order = '<'};
  const tegula__plan_limits limits = {.threads = 2, .staging_slot = 4096};
  rows_case c;
  /* rows 4 and 5: one row each of files 1 and 2 */
  plan_rows(&c, (int64_t[]){3, 2, 2, 3}, 4, 4, "<f4", 'C', &tile, 1, &limits);
  assert_int_equal(c.plan.step_count, 2);
  assert_int_equal(c.plan.group_count, 2);
  assert_int_equal(c.plan.steps[0].part, 1);
  assert_int_equal(c.plan.steps[1].part, 2);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(c.plan.steps[i].lo[0], 4 + i);
    assert_int_equal(c.plan.steps[i].hi[0], 5 + i);
    assert_int_equal(c.plan.steps[i].lo[1], 1);
    assert_int_equal(c.plan.steps[i].hi[1], 3);
    assert_int_equal(c.plan.steps[i].bytes, 8);
  }
  rows_free(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_wanted_element_is_in_one_step),
      cmocka_unit_test(work_is_even_however_uneven_the_files),
      cmocka_unit_test(small_arrays_are_not_cut_to_crumbs),
      cmocka_unit_test(written_steps_are_longer_than_read_ones),
      cmocka_unit_test(written_steps_end_at_blocks_of_the_file_system),
      cmocka_unit_test(a_file_is_read_once_for_all_columns_of_tiles),
      cmocka_unit_test(fortran_files_are_staged_in_patches),
      cmocka_unit_test(a_narrow_tile_does_not_stand_for_the_wide_one),
      cmocka_unit_test(nothing_wanted_makes_no_steps),
      cmocka_unit_test(unwanted_files_have_no_steps),
  };
  return cmocka_run_group_tests_name("plan: steps", tests, NULL, NULL);
}
