/* Operations in the background: their order by array and place, waiting, time-outs, cancelling, the
 * fence, and what they keep alive.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A reader whose callback waits for a gate stands for a slow load, so that order can be seen
 * without clocks. */
#include "test_api_support.h"

#include <pthread.h>
#include <stdatomic.h>

#include "order/queue.h"

static folder where;

static int setup(void **state) {
  (void)state;
  where = shards_write();
  return 0;
}

static int teardown(void **state) {
  (void)state;
  folder_remove(&where);
  return 0;
}

/* ---- a dataset that is read when the gate is open ---- */

typedef struct gate {
  _Atomic bool open, entered, released;
  tegula_status status;
  int32_t value;
  int policy; /* the scheduler's, where it was read */
} gate;

static void pause_a_little(void) { nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL); }

static tegula_status read_gate(void *state, const tegula_view *dst, tegula_error *err) {
  gate *g = state;
  g->policy = sched_getscheduler(0);
  g->entered = true;
  while (!g->open) pause_a_little();
  if (g->status != TEGULA_OK)
    return tegula_error_set(err, g->status, "gate", 7, "the gate is broken");
  for (int64_t i = 0; i < dst->box.hi[0] - dst->box.lo[0]; i++)
    *(int32_t *)((char *)dst->data + i * dst->stride_bytes[0]) = g->value;
  return TEGULA_OK;
}

static void release_gate(void *state) { ((gate *)state)->released = true; }

static tegula_dataset *gate_dataset(tegula_context *context, gate *g) {
  tegula_error error;
  tegula_dataset *dataset;
  tegula_reader reader;
  tegula_reader_init(&reader);
  reader.name = "gate";
  reader.dtype = dtype_of("<i4");
  reader.ndim = 1;
  reader.shape = (int64_t[]){4};
  reader.read = read_gate;
  reader.state = g;
  reader.release = release_gate;
  assert_ok(tegula_dataset_from_reader(context, &reader, &dataset, &error));
  return dataset;
}

static tegula_array *array_of_4(tegula_context *context) {
  tegula_error error;
  tegula_tiling *tiling;
  tegula_array *array;
  assert_ok(tegula_tiling_even((int64_t[]){4}, 1, 0, 1, 1, &tiling, &error));
  assert_ok(tegula_array_create(context, dtype_of("<i4"), tiling, NULL, &array, &error));
  tegula_tiling_destroy(tiling);
  return array;
}

static int32_t first_value(const tegula_array *array) {
  tegula_error error;
  tegula_view view;
  assert_ok(tegula_array_view(array, 0, &view, &error));
  return *(int32_t *)view.data;
}

static int32_t saved_value(tegula_context *context, const char *path) {
  tegula_error error;
  tegula_dataset *dataset = dataset_open(context, path);
  tegula_array *array = array_of_4(context);
  assert_ok(tegula_load(dataset, array, NULL, &error));
  int32_t value = first_value(array);
  tegula_array_destroy(array);
  tegula_dataset_close(dataset);
  return value;
}

/* ---- tests ---- */

static void a_load_in_the_background_ends_with_the_data(void **state) {
  (void)state;
  tegula_error error;
  tegula_context *context = context_make(2);
  gate g = {.value = 5};
  tegula_dataset *dataset = gate_dataset(context, &g);
  tegula_array *array = array_of_4(context);
  tegula_op *op;
  assert_ok(tegula_load_async(dataset, array, NULL, &op, &error));
  assert_refused(tegula_op_wait(op, 2000000, &error), TEGULA_TIMEOUT);
  assert_refused(tegula_op_wait(op, 0, &error), TEGULA_TIMEOUT);
  assert_int_equal(tegula_op_ended(op), 0);
  g.open = true;
  assert_ok(tegula_op_wait(op, -1, &error));
  assert_int_equal(tegula_op_ended(op), 1);
  assert_ok(tegula_op_wait(op, 0, &error)); /* again */
  assert_int_equal(first_value(array), 5);
  tegula_op_destroy(op);
  assert_ok(tegula_fence(context, &error));
  tegula_array_destroy(array);
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
  assert_true(g.released);
}

/* Woken threads of the background would else take the processor of the thread that woke them. */
static void what_runs_in_the_background_gives_way(void **state) {
  (void)state;
  tegula_error error;
  if (sched_getscheduler(0) != SCHED_OTHER) skip();
  tegula_context *context = context_make(2);
  gate g = {.open = true};
  tegula_dataset *dataset = gate_dataset(context, &g);
  tegula_array *array = array_of_4(context);
  assert_ok(tegula_load(dataset, array, NULL, &error));
  assert_int_equal(g.policy, SCHED_OTHER);
  assert_ok(tegula_load_async(dataset, array, NULL, NULL, &error));
  assert_ok(tegula_fence(context, &error));
  assert_int_equal(g.policy, SCHED_BATCH);
  assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
  tegula_array_destroy(array);
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
}

static void a_save_waits_for_the_load_into_its_array_and_an_open_for_the_save(void **state) {
  (void)state;
  tegula_error error;
  tegula_context *context = context_make(2);
  gate g = {.value = 7};
  tegula_dataset *dataset = gate_dataset(context, &g);
  tegula_array *array = array_of_4(context);
  file_name path = name_in(&where, "new/x.npy");
  assert_ok(tegula_load_async(dataset, array, NULL, NULL, &error));
  assert_ok(tegula_save_async(array, path.text, NULL, NULL, &error));
  while (!g.entered) pause_a_little();
  assert_int_not_equal(access(path.text, F_OK), 0);
  g.open = true;
  assert_int_equal(saved_value(context, path.text), 7); /* no fence in between */
  tegula_array_destroy(array);
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
}

/* The array's saves are in the order of its own context. */
static void a_load_by_another_context_has_its_turn(void **state) {
  (void)state;
  tegula_error error;
  tegula_context *context = context_make(2), *other = context_make(2);
  gate g = {.value = 6};
  tegula_dataset *dataset = gate_dataset(other, &g);
  tegula_array *array = array_of_4(context);
  file_name path = name_in(&where, "other.npy");
  assert_ok(tegula_load_async(dataset, array, NULL, NULL, &error));
  assert_ok(tegula_save_async(array, path.text, NULL, NULL, &error));
  while (!g.entered) pause_a_little();
  for (int i = 0; i < 50; i++) pause_a_little();
  assert_int_not_equal(access(path.text, F_OK), 0);
  g.open = true;
  assert_int_equal(saved_value(context, path.text), 6);
  tegula_array_destroy(array);
  tegula_dataset_close(dataset);
  tegula_context_destroy(other);
  tegula_context_destroy(context);
}

static void two_saves_to_one_file_keep_their_order_whatever_its_name(void **state) {
  (void)state;
  tegula_error error;
  tegula_context *context = context_make(4);
  tegula_save_options options;
  tegula_save_options_init(&options);
  options.overwrite = 1;
  assert_int_equal(mkdir(name_in(&where, "d").text, 0700), 0);
  assert_int_equal(symlink("d", name_in(&where, "alias").text), 0);
  /* released whenever a later call passes by: they must live as long as the context */
  static gate gates[30];
  for (int round = 0; round < 30; round++) {
    gate *slow = &gates[round];
    slow->value = 1;
    tegula_dataset *dataset = gate_dataset(context, slow);
    tegula_array *first = array_of_4(context), *second = array_of_4(context);
    tegula_view view;
    assert_ok(tegula_array_view(second, 0, &view, &error));
    *(int32_t *)view.data = 2;
    /* makes the first save start late */
    assert_ok(tegula_load_async(dataset, first, NULL, NULL, &error));
    assert_ok(tegula_save_async(first, name_in(&where, "d/x.npy").text, &options, NULL, &error));
    assert_ok(tegula_save_async(second, name_in(&where, "alias/../d/x.npy").text, &options, NULL,
                                &error));
    pause_a_little();
    slow->open = true;
    assert_int_equal(saved_value(context, name_in(&where, "alias/x.npy").text), 2);
    tegula_array_destroy(first);
    tegula_array_destroy(second);
    tegula_dataset_close(dataset);
  }
  assert_ok(tegula_fence(context, &error));
  tegula_context_destroy(context);
}

static void set_values(const tegula_array *array, int32_t value) {
  tegula_error error;
  tegula_view view;
  assert_ok(tegula_array_view(array, 0, &view, &error));
  for (int i = 0; i < 4; i++) ((int32_t *)view.data)[i] = value;
}

/* A file with a symbolic and a hard link, and a folder of two shards. */
static void prepare_targets(const tegula_array *array) {
  tegula_error error;
  tegula_save_options options;
  tegula_save_options_init(&options);
  options.overwrite = 1;
  unlink(name_in(&where, "hard.npy").text);
  unlink(name_in(&where, "soft.npy").text);
  assert_ok(tegula_save(array, name_in(&where, "x.npy").text, &options, &error));
  assert_int_equal(symlink("x.npy", name_in(&where, "soft.npy").text), 0);
  assert_int_equal(link(name_in(&where, "x.npy").text, name_in(&where, "hard.npy").text), 0);
  options.shards = 2;
  assert_ok(tegula_save(array, name_in(&where, "sh").text, &options, &error));
}

/* A save that is held up holds up another one to the same place, whatever its name: links, "..", a
 * file in a folder, the folder. */
static void a_save_waits_for_one_to_the_same_place(void **state) {
  (void)state;
  tegula_error error;
  static const struct {
    const char *first, *second;
    int64_t first_shards, second_shards;
  } rows[] = {{"x.npy", "x.npy", 0, 0},          {"x.npy", "soft.npy", 0, 0},
              {"soft.npy", "x.npy", 0, 0},       {"x.npy", "hard.npy", 0, 0},
              {"hard.npy", "soft.npy", 0, 0},    {"x.npy", "sh/../x.npy", 0, 0},
              {"sh", "sh/shard_0000.npy", 2, 0}, {"sh/shard_0001.npy", "sh", 0, 2},
              {"new/a/x.npy", "new", 0, 2}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    tegula_context *context = context_make(4);
    gate g = {.value = 1};
    tegula_dataset *dataset = gate_dataset(context, &g);
    tegula_array *slow = array_of_4(context), *other = array_of_4(context);
    tegula_save_options first, second;
    tegula_op *op;
    set_values(other, 2);
    tegula_save_options_init(&first);
    first.overwrite = 1;
    second = first;
    first.shards = rows[i].first_shards;
    second.shards = rows[i].second_shards;
    prepare_targets(other);
    assert_ok(tegula_load_async(dataset, slow, NULL, NULL, &error));
    assert_ok(
        tegula_save_async(slow, name_in(&where, "%s", rows[i].first).text, &first, NULL, &error));
    assert_ok(
        tegula_save_async(other, name_in(&where, "%s", rows[i].second).text, &second, &op, &error));
    while (!g.entered) pause_a_little();
    if (tegula_op_wait(op, 10000000, NULL) != TEGULA_TIMEOUT)
      fail_msg("%s does not wait for %s", rows[i].second, rows[i].first);
    g.open = true;
    tegula_status ended = tegula_op_wait(op, -1, &error);
    if (strcmp(rows[i].second, "new") == 0)
      assert_int_equal(ended, TEGULA_EXISTS); /* by then there is a folder with a folder in it */
    else
      assert_int_equal(ended, TEGULA_OK);
    assert_ok(tegula_fence(context, &error));
    tegula_op_destroy(op);
    tegula_array_destroy(slow);
    tegula_array_destroy(other);
    tegula_dataset_close(dataset);
    tegula_context_destroy(context);
  }
}

static void *open_gate_later(void *state) {
  for (int i = 0; i < 20; i++) pause_a_little();
  ((gate *)state)->open = true;
  return NULL;
}

/* An open waits for the save in flight; when that fails, it finds what was there before: the old
 * file, or nothing. */
static void an_open_waits_for_a_save_that_fails_and_finds_the_old(void **state) {
  (void)state;
  tegula_error error;
  for (int old = 0; old < 2; old++) {
    tegula_context *context = context_make(4);
    gate g = {.value = 1};
    tegula_dataset *dataset = gate_dataset(context, &g), *found;
    tegula_array *slow = array_of_4(context), *other = array_of_4(context);
    /* there already; behind a file */
    file_name path = name_in(&where, old ? "x.npy" : "shard_0000.npy/x.npy");
    pthread_t opener;
    set_values(other, 2);
    if (old) assert_ok(tegula_save(other, path.text, NULL, &error));
    assert_ok(tegula_load_async(dataset, slow, NULL, NULL, &error));
    assert_ok(tegula_save_async(slow, path.text, NULL, NULL, &error));
    while (!g.entered) pause_a_little();
    assert_int_equal(pthread_create(&opener, NULL, open_gate_later, &g), 0);
    if (old)
      assert_int_equal(saved_value(context, path.text), 2);
    else
      assert_int_equal(tegula_dataset_open(context, path.text, NULL, &found, &error),
                       TEGULA_NOT_FOUND);
    assert_true(g.open);
    pthread_join(opener, NULL);
    assert_refused(tegula_fence(context, &error), old ? TEGULA_EXISTS : TEGULA_NOT_FOUND);
    tegula_array_destroy(slow);
    tegula_array_destroy(other);
    tegula_dataset_close(dataset);
    tegula_context_destroy(context);
  }
}

static void operations_that_do_not_meet_overlap(void **state) {
  (void)state;
  tegula_error error;
  tegula_context *context = context_make(2);
  gate a = {.value = 1}, b = {.value = 2};
  tegula_dataset *first = gate_dataset(context, &a), *second = gate_dataset(context, &b);
  tegula_array *to_first = array_of_4(context), *to_second = array_of_4(context);
  tegula_op *op;
  assert_ok(tegula_load_async(first, to_first, NULL, NULL, &error));
  assert_ok(tegula_load_async(second, to_second, NULL, &op, &error));
  b.open = true;
  assert_ok(tegula_op_wait(op, -1, &error)); /* although the first has not ended */
  assert_false(atomic_load(&a.open));
  a.open = true;
  assert_ok(tegula_fence(context, &error));
  tegula_op_destroy(op);
  tegula_array_destroy(to_first);
  tegula_array_destroy(to_second);
  tegula_dataset_close(first);
  tegula_dataset_close(second);
  tegula_context_destroy(context);
}

static void the_fence_tells_each_failure_once_in_order(void **state) {
  (void)state;
  tegula_error error;
  tegula_context *context = context_make(2);
  gate broken = {.open = true, .status = TEGULA_CORRUPT};
  tegula_dataset *dataset = gate_dataset(context, &broken);
  tegula_array *array = array_of_4(context);
  file_name taken = name_in(&where, "shard_0000.npy");
  tegula_op *waited;
  assert_ok(tegula_load_async(dataset, array, NULL, NULL, &error));
  assert_ok(tegula_save_async(array, taken.text, NULL, NULL, &error)); /* is there already */
  assert_ok(tegula_load_async(dataset, array, NULL, &waited, &error));
  assert_refused(tegula_op_wait(waited, -1, &error), TEGULA_CORRUPT);
  tegula_op_destroy(waited);
  assert_refused(tegula_fence(context, &error), TEGULA_CORRUPT);
  assert_string_equal(error.path, "gate");
  assert_string_equal(error.message, "the gate is broken");
  assert_int_equal(error.offset, 7);
  assert_contains(error.hint, "1 more operation");
  assert_refused(tegula_fence(context, &error), TEGULA_EXISTS);
  assert_ok(tegula_fence(context, &error)); /* the one that was waited for is not told again */
  tegula_array_destroy(array);
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
}

static void a_cancelled_operation_ends_and_does_not_hold_up_others(void **state) {
  (void)state;
  tegula_error error;
  tegula_context *context = context_make(2);
  gate g = {.value = 1};
  tegula_dataset *dataset = gate_dataset(context, &g);
  tegula_array *array = array_of_4(context);
  file_name path = name_in(&where, "never.npy");
  tegula_op *load, *save;
  assert_ok(tegula_load_async(dataset, array, NULL, &load, &error));
  assert_ok(tegula_save_async(array, path.text, NULL, &save, &error));
  tegula_op_cancel(save);
  /* at once: it had not started */
  assert_refused(tegula_op_wait(save, -1, &error), TEGULA_CANCELLED);
  assert_false(atomic_load(&g.open));
  tegula_op_cancel(load);
  g.open = true;
  /* one step: it may have ended before it looked */
  tegula_status status = tegula_op_wait(load, -1, &error);
  assert_true(status == TEGULA_CANCELLED || status == TEGULA_OK);
  assert_int_not_equal(access(path.text, F_OK), 0);
  tegula_op_destroy(load);
  tegula_op_destroy(save);
  assert_ok(tegula_fence(context, &error));
  tegula_array_destroy(array);
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
}

static void destroying_everything_waits_for_what_is_in_flight(void **state) {
  (void)state;
  tegula_error error;
  tegula_context *context = context_make(2);
  gate g = {.value = 9};
  tegula_dataset *dataset = gate_dataset(context, &g);
  tegula_array *array = array_of_4(context);
  file_name path = name_in(&where, "kept.npy");
  assert_ok(tegula_load_async(dataset, array, NULL, NULL, &error));
  assert_ok(tegula_save_async(array, path.text, NULL, NULL, &error));
  tegula_array_destroy(array);
  tegula_dataset_close(dataset);
  pthread_t opener;
  assert_int_equal(pthread_create(&opener, NULL, open_gate_later, &g), 0);
  tegula_context_destroy(context);
  assert_true(g.released);
  assert_int_equal(access(path.text, F_OK), 0);
  assert_int_equal(pthread_join(opener, NULL), 0);
  context = context_make(1);
  assert_int_equal(saved_value(context, path.text), 9);
  tegula_context_destroy(context);
}

static void nothing_can_be_queued_after_the_context(void **state) {
  (void)state;
  tegula_error error;
  tegula_context *context = context_make(2);
  gate g = {.open = true};
  tegula_dataset *dataset = gate_dataset(context, &g);
  tegula_array *array = array_of_4(context);
  tegula_context_destroy(context);
  tegula_op *op = NULL;
  assert_refused(tegula_load_async(dataset, array, NULL, &op, &error), TEGULA_INVALID_ARGUMENT);
  assert_null(op);
  assert_ok(tegula_load(dataset, array, NULL, &error)); /* the foreground still works */
  tegula_array_destroy(array);
  tegula_dataset_close(dataset);
  assert_true(g.released);
}

static void places_meet_by_name_by_inode_and_inside_each_other(void **state) {
  (void)state;
  tegula_error error;
  assert_int_equal(mkdir(name_in(&where, "a").text, 0700), 0);
  assert_int_equal(symlink(name_in(&where, "a").text, name_in(&where, "b").text), 0);
  file_write(name_in(&where, "a/f").text, "x", 1);
  assert_int_equal(link(name_in(&where, "a/f").text, name_in(&where, "g").text), 0);
  static const struct {
    const char *a, *b;
    bool meet;
  } rows[] = {{"a", "a", true},
              {"a", "a/f", true},
              {"a/f", "b/f", true},
              {"a/new/x", "b/./new/x", true},
              {"a/new", "b/new/x", true},
              {"a/f", "g", true},
              {"a/f", "a/ff", false},
              {"a/new", "a/newer", false},
              {"a/x", "shard_0000.npy", false},
              {".", "a/x", true}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    file_name a = name_in(&where, "%s", rows[i].a), b = name_in(&where, "%s", rows[i].b);
    const char *path_a = a.text, *path_b = b.text;
    tegula__places x, y;
    assert_ok(tegula__places_of(&path_a, 1, &x, &error));
    assert_ok(tegula__places_of(&path_b, 1, &y, &error));
    if (tegula__places_meet(&x, &y) != rows[i].meet || tegula__places_meet(&y, &x) != rows[i].meet)
      fail_msg("\"%s\" and \"%s\"", rows[i].a, rows[i].b);
    tegula__places_free(&x);
    tegula__places_free(&y);
  }
}

/* ---- batches ---- */

static void batches_walk_in_c_order_and_clip(void **state) {
  (void)state;
  tegula_error error;
  tegula_context *context = context_make(2);
  tegula_dataset *dataset = dataset_open(context, where.path); /* 6 x 4, counting up */
  tegula_batches *batches;
  assert_ok(tegula_batches_open(dataset, (int64_t[]){4, 3}, 2, NULL, &batches, &error));
  static const int64_t expected[4][4] = {{0, 4, 0, 3}, {0, 4, 3, 4}, {4, 6, 0, 3}, {4, 6, 3, 4}};
  tegula_array *kept = NULL;
  for (int i = 0; i < 4; i++) {
    tegula_array *array;
    tegula_box box;
    tegula_view view;
    assert_ok(tegula_batches_next(batches, &array, &box, &error));
    assert_int_equal(box.ndim, 2);
    for (int k = 0; k < 2; k++) {
      assert_int_equal(box.lo[k], expected[i][2 * k]);
      assert_int_equal(box.hi[k], expected[i][2 * k + 1]);
    }
    assert_ok(tegula_array_block(array, &view, &error));
    for (int64_t r = 0; r < box.hi[0] - box.lo[0]; r++)
      for (int64_t c = 0; c < box.hi[1] - box.lo[1]; c++)
        assert_int_equal(
            *(int32_t *)((char *)view.data + r * view.stride_bytes[0] + c * view.stride_bytes[1]),
            (box.lo[0] + r) * 4 + box.lo[1] + c);
    if (i == 0)
      kept = array; /* stays valid while others come */
    else
      tegula_array_destroy(array);
  }
  tegula_array *none = NULL;
  assert_int_equal(tegula_batches_next(batches, &none, NULL, &error), TEGULA_END);
  assert_int_equal(tegula_batches_next(batches, &none, NULL, &error), TEGULA_END);
  assert_null(none);
  tegula_batches_close(batches);
  tegula_dataset_close(dataset);
  assert_int_equal(first_value(kept), 0);
  tegula_array_destroy(kept);
  tegula_context_destroy(context);
}

static void batches_refuse_chunks_that_make_no_sense(void **state) {
  (void)state;
  tegula_error error;
  tegula_context *context = context_make(2);
  tegula_dataset *dataset = dataset_open(context, where.path);
  tegula_batches *batches = NULL;
  assert_refused(tegula_batches_open(dataset, (int64_t[]){4, 0}, 2, NULL, &batches, &error),
                 TEGULA_INVALID_ARGUMENT);
  assert_contains(error.message, "entry 1 of the chunk is 0");
  assert_refused(tegula_batches_open(dataset, (int64_t[]){-3, 1}, 2, NULL, &batches, &error),
                 TEGULA_INVALID_ARGUMENT);
  assert_contains(error.message, "entry 0 of the chunk is -3");
  assert_refused(tegula_batches_open(dataset, (int64_t[]){4}, 1, NULL, &batches, &error),
                 TEGULA_INVALID_ARGUMENT);
  assert_contains(error.message, "1 entries");
  assert_null(batches);
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
}

static void batches_tell_a_failure_and_may_be_closed_at_any_time(void **state) {
  (void)state;
  tegula_error error;
  tegula_context *context = context_make(2);
  tegula_dataset *dataset = dataset_open(context, where.path);
  tegula_batches *batches;
  assert_ok(tegula_batches_open(dataset, (int64_t[]){1, 4}, 2, NULL, &batches, &error));
  tegula_batches_close(batches);
  assert_int_equal(truncate(name_in(&where, "shard_0002.npy").text, 130), 0);
  assert_ok(tegula_batches_open(dataset, (int64_t[]){6, 4}, 2, NULL, &batches, &error));
  tegula_array *array = NULL;
  tegula_status status = tegula_batches_next(batches, &array, NULL, &error);
  assert_true(status == TEGULA_CHANGED || status == TEGULA_SHORT_FILE);
  assert_contains(error.path, "shard_0002.npy");
  assert_null(array);
  tegula_batches_close(batches);
  assert_ok(tegula_fence(context, &error)); /* it was told already */
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
}

/* ---- a program that goes into another folder ---- */

static void relative_paths_stay_where_they_were(void **state) {
  (void)state;
  tegula_error error;
  tegula_context *context = context_make(2);
  gate g = {.value = 13};
  tegula_dataset *dataset = gate_dataset(context, &g);
  tegula_array *array = array_of_4(context);
  tegula_saving *saving;
  tegula_view view;
  assert_int_equal(mkdir(name_in(&where, "elsewhere").text, 0700), 0);
  assert_int_equal(chdir(where.path), 0);
  assert_ok(tegula_load_async(dataset, array, NULL, NULL, &error));
  assert_ok(tegula_save_async(array, "new/x.npy", NULL, NULL, &error));
  tegula_tiling *tiling;
  assert_ok(tegula_tiling_even((int64_t[]){4}, 1, 0, 1, 1, &tiling, &error));
  assert_ok(
      tegula_save_begin(context, dtype_of("<i4"), tiling, "pieces.npy", NULL, &saving, &error));
  assert_int_equal(chdir("elsewhere"), 0);
  g.open = true;
  assert_ok(tegula_fence(context, &error));
  assert_ok(tegula_array_view(array, 0, &view, &error));
  assert_ok(tegula_save_tile(saving, &view, &error));
  assert_ok(tegula_save_commit(saving, &error));
  assert_int_equal(chdir("/"), 0);
  assert_int_equal(saved_value(context, name_in(&where, "new/x.npy").text), 13);
  assert_int_equal(saved_value(context, name_in(&where, "pieces.npy").text), 13);
  assert_int_equal(rmdir(name_in(&where, "elsewhere").text), 0); /* nothing came there */
  tegula_tiling_destroy(tiling);
  tegula_array_destroy(array);
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
}

/* Of the three shards only one can be open: the others are opened again, and where the program is
 * now there are others of their names. */
static void files_are_opened_again_where_they_were(void **state) {
  (void)state;
  tegula_error error;
  tegula_context_options options;
  tegula_context *context;
  tegula_context_options_init(&options);
  options.max_open_files = 1;
  assert_ok(tegula_context_create(&options, NULL, &context, &error));
  folder other = folder_make();
  for (int i = 0; i < SHARDS; i++)
    npy_write(name_in(&other, "shard_%04d.npy", i).text, i + 1, SHARD_COLUMNS, 1000);
  assert_int_equal(chdir(where.path), 0);
  tegula_dataset *dataset = dataset_open(context, "./");
  assert_int_equal(chdir(other.path), 0);
  tegula_array *array = array_make(context, SHARD_ROWS, SHARD_COLUMNS, 3);
  assert_ok(tegula_load(dataset, array, NULL, &error));
  expect_counting(array);
  assert_ok(tegula_load_async(dataset, array, NULL, NULL, &error));
  assert_ok(tegula_fence(context, &error));
  expect_counting(array);
  assert_int_equal(chdir("/"), 0);
  tegula_array_destroy(array);
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
  folder_remove(&other);
}

#define WITH_SHARDS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

/* However the pattern spells the folder. */
static void opening_a_pattern_waits_for_a_save_into_its_folder(void **state) {
  (void)state;
  const char *patterns[] = {"su?/x_*.npy", "sub/x_?.npy", "s\\ub/x_0.npy", "sub/x_[0].npy"};
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
    tegula_error error;
    tegula_context *context = context_make(2);
    gate g = {.value = 11};
    pthread_t thread;
    tegula_dataset *dataset = gate_dataset(context, &g);
    tegula_array *array = array_of_4(context);
    file_name target = name_in(&where, "sub/x_0.npy"), pattern = name_in(&where, "%s", patterns[i]);
    assert_ok(tegula_load_async(dataset, array, NULL, NULL, &error));
    /* waits for the load, which waits for the gate */
    assert_ok(tegula_save_async(array, target.text, NULL, NULL, &error));
    assert_int_equal(pthread_create(&thread, NULL, open_gate_later, &g), 0);
    assert_int_equal(saved_value(context, pattern.text), 11);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_ok(tegula_fence(context, &error));
    tegula_array_destroy(array);
    tegula_dataset_close(dataset);
    tegula_context_destroy(context);
    assert_int_equal(unlink(target.text), 0);
    assert_int_equal(rmdir(name_in(&where, "sub").text), 0);
  }
}

typedef struct slow_rows {
  _Atomic int calls;
  _Atomic bool closing;
} slow_rows;

/* One row each; from the sixth row of the second piece on it waits for the close, then 10 ms: all
 * of the piece would take 10 seconds. */
static tegula_status read_slow_row(void *state, const tegula_view *dst, tegula_error *err) {
  slow_rows *rows = state;
  (void)err;
  *(int32_t *)dst->data = (int32_t)dst->box.lo[0];
  if (++rows->calls <= 1005) return TEGULA_OK;
  while (!rows->closing) pause_a_little();
  for (int i = 0; i < 50; i++) pause_a_little();
  return TEGULA_OK;
}

/* The piece that is read ahead is 1000 rows: closing does not wait for all of them. */
static void closing_batches_stops_what_is_read_ahead(void **state) {
  (void)state;
  tegula_error error;
  tegula_context *context = context_make(1);
  slow_rows rows = {.calls = 0};
  tegula_dataset *dataset;
  tegula_reader reader;
  tegula_batches *batches;
  tegula_array *piece;
  tegula_reader_init(&reader);
  reader.name = "rows";
  reader.dtype = dtype_of("<i4");
  reader.ndim = 1;
  reader.shape = (int64_t[]){2000};
  reader.chunk = (int64_t[]){1};
  reader.read = read_slow_row;
  reader.state = &rows;
  assert_ok(tegula_dataset_from_reader(context, &reader, &dataset, &error));
  assert_ok(tegula_batches_open(dataset, (int64_t[]){1000}, 1, NULL, &batches, &error));
  assert_ok(tegula_batches_next(batches, &piece, NULL, &error));
  while (rows.calls < 1006) pause_a_little();
  rows.closing = true;
  tegula_batches_close(batches);
  tegula_array_destroy(piece);
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
  assert_true(rows.calls < 2000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_SHARDS(closing_batches_stops_what_is_read_ahead),
      WITH_SHARDS(opening_a_pattern_waits_for_a_save_into_its_folder),
      WITH_SHARDS(relative_paths_stay_where_they_were),
      WITH_SHARDS(files_are_opened_again_where_they_were),
      WITH_SHARDS(a_load_in_the_background_ends_with_the_data),
      WITH_SHARDS(what_runs_in_the_background_gives_way),
      WITH_SHARDS(a_save_waits_for_the_load_into_its_array_and_an_open_for_the_save),
      WITH_SHARDS(a_load_by_another_context_has_its_turn),
      WITH_SHARDS(two_saves_to_one_file_keep_their_order_whatever_its_name),
      WITH_SHARDS(a_save_waits_for_one_to_the_same_place),
      WITH_SHARDS(an_open_waits_for_a_save_that_fails_and_finds_the_old),
      WITH_SHARDS(operations_that_do_not_meet_overlap),
      WITH_SHARDS(the_fence_tells_each_failure_once_in_order),
      WITH_SHARDS(a_cancelled_operation_ends_and_does_not_hold_up_others),
      WITH_SHARDS(destroying_everything_waits_for_what_is_in_flight),
      WITH_SHARDS(nothing_can_be_queued_after_the_context),
      WITH_SHARDS(places_meet_by_name_by_inode_and_inside_each_other),
      WITH_SHARDS(batches_walk_in_c_order_and_clip),
      WITH_SHARDS(batches_refuse_chunks_that_make_no_sense),
      WITH_SHARDS(batches_tell_a_failure_and_may_be_closed_at_any_time),
  };
  return cmocka_run_group_tests_name("api: operations", tests, NULL, NULL);
}
