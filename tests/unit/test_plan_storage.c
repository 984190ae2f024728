/* In which ways a manifest is stored: whatever stands first, those ways are told that hold the
 * bytes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "plan/plan.h"

enum { COLUMNS = 10, MOST = 200 };

/* Parts of a table with ten columns of bytes, one below the other. */
typedef struct table {
  tegula__manifest manifest;
  tegula__part parts[MOST];
  int64_t vectors[MOST][8];
} table;

/* chunk_rows 0: dense. */
static void add(table *t, int64_t rows, bool columns_first, int64_t chunk_rows) {
  int64_t number = t->manifest.part_count++, *v = t->vectors[number], from = t->manifest.shape[0];
  const int64_t values[8] = {from,
                             0,
                             from + rows,
                             COLUMNS,
                             columns_first ? 1 : COLUMNS,
                             columns_first ? rows : 1,
                             chunk_rows,
                             COLUMNS};
  memcpy(v, values, sizeof values);
  t->parts[number] =
      (tegula__part){.kind = chunk_rows > 0 ? TEGULA__PART_CHUNKED : TEGULA__PART_DENSE,
                     .lo = v,
                     .hi = v + 2,
                     .strides = v + 4,
                     .chunk = chunk_rows > 0 ? v + 6 : NULL};
  t->manifest.shape[0] += rows;
}

static void start(table *t) {
  *t = (table){.manifest = {.dtype = {.kind = 'u', .order = '|', .item_size = 1},
                            .ndim = 2,
                            .shape = {0, COLUMNS}}};
  t->manifest.parts = t->parts;
}

static const tegula__way *heaviest(const tegula__storage *storage) {
  const tegula__way *best = &storage->ways[0];
  for (int32_t i = 1; i < storage->count; i++)
    if (storage->ways[i].bytes > best->bytes) best = &storage->ways[i];
  return best;
}

static void empty_parts_are_no_way(void **state) {
  (void)state;
  table t;
  tegula__storage storage;
  start(&t);
  add(&t, 0, true, 0);
  add(&t, 0, false, 7);
  tegula__storage_of(&t.manifest, &storage);
  assert_int_equal(storage.count, 0);
  add(&t, 100, false, 0);
  add(&t, 0, true, 0);
  tegula__storage_of(&t.manifest, &storage);
  assert_int_equal(storage.count, 1);
  assert_ptr_equal(storage.ways[0].part, &t.parts[2]);
  assert_true(storage.bytes == 1000);
}

static void parts_that_are_alike_are_one_way(void **state) {
  (void)state;
  table t;
  tegula__storage storage;
  start(&t);
  add(&t, 10, false, 0);
  add(&t, 20, true, 0);
  add(&t, 30, false, 0);
  add(&t, 12, false, 4);
  add(&t, 5, true, 0);
  add(&t, 40, false, 4);
  add(&t, 50, false, 3);
  tegula__storage_of(&t.manifest, &storage);
  assert_int_equal(storage.count, 4);
  static const int64_t bytes[] = {400, 250, 520, 500}, largest[] = {2, 1, 5, 6};
  for (int i = 0; i < 4; i++) {
    assert_true(storage.ways[i].bytes == (double)bytes[i]);
    assert_ptr_equal(storage.ways[i].part, &t.parts[largest[i]]);
  }
}

/* One way has more than an eighth of all bytes; more ways than can be kept stand around it, in any
 * order. */
static void a_way_with_many_bytes_is_always_told(void **state) {
  (void)state;
  for (int before = 0; before <= 150; before += 15) {
    table t;
    tegula__storage storage;
    start(&t);
    for (int i = 0; i < before; i++) add(&t, 10, false, 100 + i);
    for (int i = 0; i < 25; i++) add(&t, 20, true, 0);
    for (int i = before; i < 150; i++) add(&t, 10, false, 100 + i);
    tegula__storage_of(&t.manifest, &storage);
    assert_int_equal(storage.count, TEGULA__WAYS);
    bool told = false;
    for (int32_t i = 0; i < storage.count; i++) told = told || storage.ways[i].part->chunk == NULL;
    assert_true(told);
  }
}

static void the_part_in_chunks_is_one_of_those_with_most_bytes(void **state) {
  (void)state;
  static const int64_t zeros[2];
  table t;
  tegula__storage storage;
  tegula__grid grid = {
      .slots = 1, .count = 1, .chunk_bytes = 1000, .chunks = &(tegula__chunk){.length = 0}};
  tegula__grid stored = {
      .slots = 1, .count = 1, .chunk_bytes = 1000, .chunks = &(tegula__chunk){.length = 1000}};
  start(&t);
  add(&t, 5000, false, 0);
  add(&t, 1, false, 1);
  add(&t, 90, false, 90);
  for (int i = 1; i <= 2; i++) {
    t.parts[i].grid = &stored;
    t.parts[i].start = t.parts[i].slot_strides = zeros;
  }
  assert_ptr_equal(tegula__storage_in_chunks(&t.manifest), &t.parts[2]);
  t.parts[2].grid = &grid; /* nothing of it is stored */
  assert_ptr_equal(tegula__storage_in_chunks(&t.manifest), &t.parts[1]);
  t.parts[1].grid = &grid;
  assert_ptr_equal(tegula__storage_in_chunks(&t.manifest), &t.parts[1]);
  tegula__storage_of(&t.manifest, &storage);
  assert_ptr_equal(heaviest(&storage)->part, &t.parts[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(empty_parts_are_no_way),
      cmocka_unit_test(parts_that_are_alike_are_one_way),
      cmocka_unit_test(a_way_with_many_bytes_is_always_told),
      cmocka_unit_test(the_part_in_chunks_is_one_of_those_with_most_bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
