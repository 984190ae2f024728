/* Parts that share a grid are planned together: a stored chunk is read once, whoever wants it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Stored are `rows` rows in chunks of `chunk_rows` whole rows. The array has the same rows, dealt
 * out: every `every`-th row of it goes on where the one before was stored, so each row is a part.
 * Nothing is read. */
#include "support.h"

#include "plan/plan.h"

typedef struct dealt {
  tegula__manifest manifest;
  tegula__grid *grid;
  tegula__targets targets;
  tegula__tile tile;
  tegula__plan plan;
  int64_t zero[2], strides[2];
} dealt;

static void add_row(dealt *d, int64_t row, int64_t stored, int64_t chunk_rows) {
  tegula_error error;
  int64_t columns = d->manifest.shape[1];
  tegula__part part = {.kind = TEGULA__PART_CHUNKED,
                       .order = '|',
                       .file = TEGULA__NO_FILE,
                       .grid = d->grid,
                       .lo = (int64_t[]){row, 0},
                       .hi = (int64_t[]){row + 1, columns},
                       .strides = (int64_t[]){columns, 1},
                       .start = (int64_t[]){stored, 0},
                       .chunk = (int64_t[]){chunk_rows, columns},
                       .slot_strides = (int64_t[]){1, 1}};
  assert_ok(tegula__manifest_add_part(&d->manifest, &part, &error));
}

/* every < 0: the stored rows are dealt out from the last one on. */
static void dealt_make(dealt *d, int64_t rows, int64_t every, int64_t columns, int64_t chunk_rows,
                       bool encoded) {
  tegula_error error;
  int64_t slots = rows / chunk_rows, length = encoded ? 100 : chunk_rows * columns;
  *d = (dealt){.strides = {columns, 1}};
  tegula__manifest *m = &d->manifest;
  tegula__manifest_init(m);
  m->dtype = dtype_of("|u1");
  m->name = "/x";
  m->ndim = 2;
  m->shape[0] = rows;
  m->shape[1] = columns;
  m->files = calloc(1, sizeof *m->files);
  d->grid = calloc(1, sizeof *d->grid);
  assert_true(m->files != NULL && d->grid != NULL);
  m->file_count = 1;
  m->files[0] = (tegula__file){.path = strdup("x.bin"), .stamp = {.size = slots * length}};
  *d->grid = (tegula__grid){
      .chunk_bytes = chunk_rows * columns, .order = '|', .slots = slots, .count = slots};
  d->grid->chunks = calloc((size_t)slots, sizeof *d->grid->chunks);
  d->grid->filters = calloc(1, sizeof *d->grid->filters);
  assert_true(d->grid->chunks != NULL && d->grid->filters != NULL);
  d->grid->filter_count = encoded;
  d->grid->filters[0].codec = TEGULA__CODEC_DEFLATE;
  for (int64_t i = 0; i < slots; i++) /* the first one last */
    d->grid->chunks[i] =
        (tegula__chunk){.offset = (uint64_t)((slots - 1 - i) * length), .length = (uint32_t)length};
  assert_ok(tegula__manifest_add_grid(m, d->grid, &error));
  int64_t step = llabs(every);
  for (int64_t row = 0; row < rows; row++) {
    int64_t stored = row % step * (rows / step) + row / step;
    add_row(d, row, every > 0 ? stored : rows - 1 - stored, chunk_rows);
  }
  assert_ok(tegula__manifest_finish(m, &error));
}

static void dealt_plan(dealt *d) {
  tegula_error error;
  d->tile =
      (tegula__tile){.lo = d->zero, .hi = d->manifest.shape, .strides = d->strides, .order = '|'};
  assert_ok(tegula__targets_create(2, &d->tile, 1, &d->targets, &error));
  tegula__plan_limits limits = {.threads = 2, .staging_slot = (int64_t)4 << 20};
  assert_ok(tegula__plan_create(&d->manifest, &d->targets, &limits, &d->plan, &error));
}

static void dealt_free(dealt *d) {
  tegula__plan_free(&d->plan);
  tegula__targets_free(&d->targets);
  tegula__manifest_free(&d->manifest);
}

static int64_t count_steps(const dealt *d, tegula__step_kind kind) {
  int64_t count = 0;
  for (int64_t i = 0; i < d->plan.step_count; i++) count += d->plan.steps[i].kind == kind;
  return count;
}

/* All bytes, in the order of the file, and each chunk within one step. */
static void check_once(const dealt *d) {
  const tegula__plan *plan = &d->plan;
  int64_t bytes = 0, next = 0;
  for (int64_t i = 0; i < plan->step_count; i++) {
    const tegula__step *step = &plan->steps[i];
    int64_t own = 0;
    assert_int_equal(step->kind, TEGULA__STEP_CHUNKS);
    assert_int_equal(step->first, next);
    next += step->count;
    for (int64_t k = step->first; k < next; k++) own += plan->chunks[k].bytes;
    assert_int_equal(own, step->bytes);
    bytes += own;
    if (i > 0)
      assert_true(plan->chunks[step->first].entry->offset >
                  plan->chunks[step->first - 1].entry->offset);
  }
  for (int64_t k = 1; k < plan->chunk_count; k++) {
    const tegula__planned_chunk *one = &plan->chunks[k], *before = one - 1;
    if (one->entry == before->entry)
      assert_true(one->part > before->part);
    else
      assert_true(one->entry->offset > before->entry->offset);
  }
  assert_int_equal(next, plan->chunk_count);
  assert_int_equal(bytes, d->manifest.shape[0] * d->manifest.shape[1]);
  assert_int_equal(plan->bytes, bytes);
  assert_int_equal(plan->group_count, 1);
}

static int64_t requests(const dealt *d) {
  tegula_error error;
  int64_t reads = 0, total = 0;
  assert_ok(tegula__plan_requests(&d->plan, 64, &reads, &total, &error));
  assert_int_equal(reads, total);
  return total;
}

static void encoded_chunks_are_in_one_step(void **state) {
  (void)state;
  static const int64_t columns[] = {3, 1000, 40000};
  for (int i = 0; i < 3; i++) {
    dealt d;
    dealt_make(&d, 240, 4, columns[i], 10, true);
    dealt_plan(&d);
    check_once(&d);
    assert_int_equal(d.plan.chunk_count, 240);
    assert_int_equal(requests(&d), d.plan.step_count);
    /* 10 rows of 40,000 bytes are a step's share */
    assert_int_equal(d.plan.step_count, i == 0 ? 1 : i == 1 ? 1 : 24);
    dealt_free(&d);
  }
}

static void small_and_short_plain_chunks_too(void **state) {
  (void)state;
  dealt d;
  dealt_make(&d, 240, 4, 100, 10, false);
  dealt_plan(&d);
  check_once(&d);
  assert_int_equal(requests(&d), 1);
  dealt_free(&d);
  dealt_make(&d, 4000, 4, 100, 1000, false); /* of 100 KB, but of short rows */
  dealt_plan(&d);
  check_once(&d);
  assert_int_equal(requests(&d), 2); /* as many as a step's share allows */
  dealt_free(&d);
}

static void long_rows_of_large_plain_chunks_go_by_themselves(void **state) {
  (void)state;
  dealt d;
  for (int64_t every = -4; every <= 4; every += 8) {
    dealt_make(&d, 8, every, (int64_t)64 << 10, 4, false);
    dealt_plan(&d);
    assert_int_equal(d.plan.step_count, 8);
    assert_int_equal(count_steps(&d, TEGULA__STEP_DIRECT), 8);
    assert_int_equal(requests(&d), 8);
    int64_t last = -1;
    for (int64_t i = 0; i < 8; i++) {
      tegula__stored stored;
      const tegula__step *step = &d.plan.steps[i];
      int64_t offset =
          tegula__part_offset(tegula__step_stored(&d.plan, step, &stored), 2, step->lo);
      assert_true(offset > last);
      last = offset;
    }
    dealt_free(&d);
  }
  dealt_make(&d, 8, 4, (int64_t)63 << 10, 4, false);
  dealt_plan(&d);
  check_once(&d);
  dealt_free(&d);
}

/* Too large to be held in memory as a whole. */
static void huge_plain_chunks_are_not_held(void **state) {
  (void)state;
  dealt d;
  dealt_make(&d, 4096, 2, (int64_t)32 << 10, 2048, false);
  dealt_plan(&d);
  assert_int_equal(count_steps(&d, TEGULA__STEP_CHUNKS), 2);
  dealt_free(&d);
  dealt_make(&d, 8192, 2, (int64_t)32 << 10, 4096, false);
  dealt_plan(&d);
  assert_int_equal(count_steps(&d, TEGULA__STEP_CHUNKS), 0);
  dealt_free(&d);
}

static void absent_chunks_are_filled_part_by_part(void **state) {
  (void)state;
  dealt d;
  dealt_make(&d, 240, 4, 100, 10, true);
  d.grid->chunks[0].length = d.grid->chunks[1].length = 0; /* rows 0, 4 .. 76 of the array */
  dealt_plan(&d);
  assert_int_equal(d.plan.absent, 20);
  assert_int_equal(count_steps(&d, TEGULA__STEP_FILL), 20);
  int64_t bytes = 0;
  for (int64_t i = 0; i < d.plan.step_count; i++) {
    const tegula__step *step = &d.plan.steps[i];
    bytes += step->bytes;
    if (step->kind != TEGULA__STEP_FILL) continue;
    assert_int_equal(step->count, 1);
    assert_int_equal(d.plan.chunks[step->first].part, step->part);
    assert_int_equal(step->part, 4 * (i - (d.plan.step_count - 20)));
  }
  assert_int_equal(bytes, 24000);
  dealt_free(&d);
}

/* What grows with the square of the parts does not end. */
static void two_hundred_thousand_parts(void **state) {
  (void)state;
  dealt d;
  dealt_make(&d, 200000, 4, 8, 50, true);
  dealt_plan(&d);
  check_once(&d);
  assert_int_equal(d.plan.chunk_count, 200000);
  dealt_free(&d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(encoded_chunks_are_in_one_step),
      cmocka_unit_test(small_and_short_plain_chunks_too),
      cmocka_unit_test(long_rows_of_large_plain_chunks_go_by_themselves),
      cmocka_unit_test(huge_plain_chunks_are_not_held),
      cmocka_unit_test(absent_chunks_are_filled_part_by_part),
      cmocka_unit_test(two_hundred_thousand_parts),
  };
  return cmocka_run_group_tests_name("plan: parts that share a grid", tests, NULL, NULL);
}
