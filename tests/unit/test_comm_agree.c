/* Agreements of ranks, over a communicator that lies in memory: the ranks are threads, so no MPI is
 * needed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <sys/mman.h>

#include "comm/comm.h"
#include "support.h"

enum { RANKS = 5, SLOTS = 64, LETTERS = 64, NUMBERS = 64 };

/* ---- the communicator in memory ---- */

typedef struct slot {
  int arrived;
  bool has_data;
  int64_t numbers[NUMBERS];
  char data[8192];
} slot;

typedef struct letter {
  bool taken;
  int32_t from, to, tag, bytes;
  char data[4096];
} letter;

typedef struct shared {
  pthread_mutex_t lock;
  slot slots[SLOTS];
  letter letters[LETTERS];
  int letter_count;
} shared;

typedef struct member {
  shared *group;
  int32_t rank;
  int next; /* collective */
  enum { REDUCE, BROADCAST, RECEIVE, SENT } kind;
  void *into;
  int32_t size, from, tag;
  slot *at;
} member;

static int32_t fake_rank(const void *group) { return ((const member *)group)->rank; }
static int32_t fake_size(const void *group) { return group != NULL ? RANKS : 0; }
static int32_t fake_processors(const void *group) { return group != NULL; }
static bool fake_any_thread(const void *group) { return group != NULL; }
static void fake_leave(void *group, bool broken) { (void)group, (void)broken; }

static tegula_status fake_reduce(void *group, tegula_plugin_reduction reduction,
                                 const int64_t *mine, int64_t *all, int32_t count,
                                 tegula_plugin_request *request, tegula_error *err) {
  member *m = group;
  (void)err;
  request->handle = 1;
  pthread_mutex_lock(&m->group->lock);
  slot *s = &m->group->slots[m->next++];
  for (int32_t i = 0; i < count; i++) {
    int64_t old = s->numbers[i];
    s->numbers[i] = s->arrived == 0                  ? mine[i]
                    : reduction == TEGULA_PLUGIN_SUM ? old + mine[i]
                    : reduction == TEGULA_PLUGIN_XOR ? old ^ mine[i]
                                                     : tegula__max(old, mine[i]);
  }
  s->arrived++;
  m->kind = REDUCE, m->into = all, m->size = count, m->at = s;
  pthread_mutex_unlock(&m->group->lock);
  return TEGULA_OK;
}

static tegula_status fake_broadcast(void *group, void *data, int32_t bytes, int32_t root,
                                    tegula_plugin_request *request, tegula_error *err) {
  member *m = group;
  (void)err;
  request->handle = 1;
  pthread_mutex_lock(&m->group->lock);
  slot *s = &m->group->slots[m->next++];
  if (m->rank == root) {
    memcpy(s->data, data, (size_t)bytes);
    s->has_data = true;
  }
  m->kind = BROADCAST, m->into = data, m->size = bytes, m->at = s;
  pthread_mutex_unlock(&m->group->lock);
  return TEGULA_OK;
}

static tegula_status fake_send(void *group, const void *data, int32_t bytes, int32_t rank,
                               int32_t tag, tegula_plugin_request *request, tegula_error *err) {
  member *m = group;
  (void)err;
  request->handle = 0;
  pthread_mutex_lock(&m->group->lock);
  letter *l = &m->group->letters[m->group->letter_count++];
  *l = (letter){.from = m->rank, .to = rank, .tag = tag, .bytes = bytes};
  memcpy(l->data, data, (size_t)bytes);
  pthread_mutex_unlock(&m->group->lock);
  return TEGULA_OK;
}

static letter *find_letter(const member *m, int32_t from, int32_t tag) {
  for (int i = 0; i < m->group->letter_count; i++) {
    letter *l = &m->group->letters[i];
    if (!l->taken && l->to == m->rank && l->from == from && l->tag == tag) return l;
  }
  return NULL;
}

static tegula_status fake_receive(void *group, void *data, int32_t bytes, int32_t rank, int32_t tag,
                                  tegula_plugin_request *request, tegula_error *err) {
  member *m = group;
  (void)err;
  request->handle = 1;
  m->kind = RECEIVE, m->into = data, m->size = bytes, m->from = rank, m->tag = tag;
  return TEGULA_OK;
}

static tegula_status fake_probe(void *group, int32_t rank, int32_t tag, bool *there,
                                tegula_error *err) {
  member *m = group;
  (void)err;
  pthread_mutex_lock(&m->group->lock);
  *there = find_letter(m, rank, tag) != NULL;
  pthread_mutex_unlock(&m->group->lock);
  return TEGULA_OK;
}

static tegula_status fake_test(void *group, tegula_plugin_request *request, bool *done,
                               tegula_error *err) {
  member *m = group;
  (void)err;
  *done = request->handle == 0;
  if (*done) return TEGULA_OK;
  pthread_mutex_lock(&m->group->lock);
  if (m->kind == REDUCE && m->at->arrived == RANKS) {
    memcpy(m->into, m->at->numbers, (size_t)m->size * sizeof(int64_t));
    *done = true;
  } else if (m->kind == BROADCAST && m->at->has_data) {
    memcpy(m->into, m->at->data, (size_t)m->size);
    *done = true;
  } else if (m->kind == RECEIVE) {
    letter *l = find_letter(m, m->from, m->tag);
    if (l != NULL) {
      assert_int_equal(l->bytes, m->size);
      memcpy(m->into, l->data, (size_t)m->size);
      l->taken = true;
      *done = true;
    }
  }
  pthread_mutex_unlock(&m->group->lock);
  return TEGULA_OK;
}

static const tegula_plugin_comm plugin = {.struct_size = sizeof plugin,
                                          .leave = fake_leave,
                                          .rank = fake_rank,
                                          .size = fake_size,
                                          .processors = fake_processors,
                                          .any_thread = fake_any_thread,
                                          .reduce = fake_reduce,
                                          .broadcast = fake_broadcast,
                                          .send = fake_send,
                                          .receive = fake_receive,
                                          .probe = fake_probe,
                                          .test = fake_test};

/* ---- ranks as threads ---- */

typedef struct rank {
  pthread_t thread;
  member member;
  tegula_comm *comm;
  void (*act)(struct rank *r);
  tegula_status status;
  tegula_error error;
  int64_t numbers[3];
} rank;

static rank ranks[RANKS];

static void *run_rank(void *state) {
  rank *r = state;
  r->act(r);
  return NULL;
}

static void run_all(void (*act)(rank *r)) {
  shared *group = calloc(1, sizeof *group);
  assert_non_null(group);
  pthread_mutex_init(&group->lock, NULL);
  memset(ranks, 0, sizeof ranks);
  for (int i = 0; i < RANKS; i++) {
    ranks[i].act = act;
    ranks[i].member = (member){.group = group, .rank = i};
    assert_int_equal(tegula__comm_create(&plugin, &ranks[i].member, &ranks[i].comm, NULL),
                     TEGULA_OK);
  }
  for (int i = 0; i < RANKS; i++)
    assert_int_equal(pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]), 0);
  for (int i = 0; i < RANKS; i++) pthread_join(ranks[i].thread, NULL);
  for (int i = 0; i < RANKS; i++) {
    /* which the library must not: nothing is on its way here */
    if (ranks[i].comm->broken)
      free(ranks[i].comm);
    else
      tegula__comm_destroy(ranks[i].comm);
  }
  free(group);
}

static void all_have(tegula_status status, int32_t failed, const char *message) {
  for (int i = 0; i < RANKS; i++) {
    assert_int_equal(ranks[i].status, status);
    assert_string_equal(ranks[i].error.message, message);
    assert_int_equal(ranks[i].error.rank, failed);
  }
}

static tegula_status fail_as(rank *r, tegula_status status) {
  return tegula__fail(&r->error, status, NULL, -1, "rank %d cannot", r->comm->rank);
}

/* ---- tests ---- */

static void act_fail(rank *r) {
  int32_t me = r->comm->rank;
  r->status = tegula__comm_agree(r->comm, TEGULA_OK, &r->error);
  assert_int_equal(r->status, TEGULA_OK);
  r->status = me == 3 ? fail_as(r, TEGULA_IO) : me == 2 ? fail_as(r, TEGULA_CORRUPT) : TEGULA_OK;
  r->status = tegula__comm_agree(r->comm, r->status, &r->error);
}

static void the_error_of_the_lowest_rank_is_on_all(void **state) {
  (void)state;
  run_all(act_fail);
  all_have(TEGULA_CORRUPT, 2, "rank 2 cannot");
}

static void act_alike(rank *r) {
  tegula__call call;
  tegula__call_init(&call, "open");
  tegula__call_add(&call, "the path", "%s", "a");
  tegula__call_add(&call, "the options", "%d", 7);
  tegula__call_mix(&call, r->comm->rank == 4 ? "x" : "y", 1);
  r->status = tegula__comm_agree_call(r->comm, &call, TEGULA_OK, &r->error);
}

static void act_other_call(rank *r) {
  tegula__call call;
  tegula__call_init(&call, r->comm->rank == 0 ? "load" : "hash");
  r->status = tegula__comm_agree_call(r->comm, &call, TEGULA_OK, &r->error);
}

static void ranks_that_are_called_differently(void **state) {
  (void)state;
  run_all(act_alike);
  all_have(TEGULA_MISMATCH, 4,
           "the ranks were not called alike: the options of rank 0: 7, of rank 4: 7");
  run_all(act_other_call);
  all_have(TEGULA_MISMATCH, 1,
           "the ranks do not make the same call: rank 0 is in load, rank 1 in hash");
}

/* Two items and eight numbers fill an agreement. */
static void act_values(rank *r) {
  tegula__call call;
  int32_t me = r->comm->rank;
  int64_t values[TEGULA__CALL_VALUES];
  for (int32_t i = 0; i < TEGULA__CALL_VALUES; i++)
    values[i] = me == i % RANKS ? 100 * i - 250 : -1000 - me;
  tegula__call_init(&call, "measure");
  tegula__call_add(&call, "the number", "%d", 8);
  tegula__call_add(&call, "the kind", "%d", 1);
  int64_t before = r->comm->step;
  r->status =
      tegula__comm_agree_values(r->comm, &call, TEGULA_OK, values, TEGULA__CALL_VALUES, &r->error);
  assert_int_equal(r->status, TEGULA_OK);
  assert_int_equal(r->comm->step, before + 1);
  for (int32_t i = 0; i < TEGULA__CALL_VALUES; i++) assert_int_equal(values[i], 100 * i - 250);
  values[0] = me;
  r->status = tegula__comm_agree_values(r->comm, NULL, me == 1 ? fail_as(r, TEGULA_IO) : TEGULA_OK,
                                        values, 1, &r->error);
  assert_int_equal(values[0], me); /* nothing is agreed */
}

/* Rank 2 is in a call with items where the others have their numbers. */
static void act_values_elsewhere(rank *r) {
  tegula__call call;
  int64_t values[TEGULA__CALL_VALUES] = {1, 2, 3, 4, 5, 6, 7, 8};
  tegula__call_init(&call, r->comm->rank == 2 ? "open" : "measure");
  for (int i = 0; r->comm->rank == 2 && i < TEGULA__CALL_ITEMS; i++)
    tegula__call_add(&call, "an item", "%d", i);
  r->status = r->comm->rank == 2 ? tegula__comm_agree_call(r->comm, &call, TEGULA_OK, &r->error)
                                 : tegula__comm_agree_values(r->comm, &call, TEGULA_OK, values,
                                                             TEGULA__CALL_VALUES, &r->error);
}

static void numbers_travel_with_an_agreement(void **state) {
  (void)state;
  run_all(act_values);
  all_have(TEGULA_IO, 1, "rank 1 cannot");
  run_all(act_values_elsewhere);
  all_have(TEGULA_MISMATCH, 2,
           "the ranks do not make the same call: rank 0 is in measure, rank 2 in open");
}

/* Rank 1 fails by itself in front of the second of three steps. */
static void act_end(rank *r) {
  for (int step = 0; step < 3 && r->status == TEGULA_OK; step++) {
    if (step == 1 && r->comm->rank == 1) {
      r->status = fail_as(r, TEGULA_IO);
      break;
    }
    r->status = tegula__comm_agree(r->comm, TEGULA_OK, &r->error);
  }
  r->status = tegula__comm_end(r->comm, r->status, &r->error);
}

static void a_failure_between_calls_reaches_all(void **state) {
  (void)state;
  run_all(act_end);
  all_have(TEGULA_IO, 1, "rank 1 cannot");
  /* nobody waits for one more */
  for (int i = 1; i < RANKS; i++) assert_int_equal(ranks[i].member.next, ranks[0].member.next);
}

static pthread_barrier_t started;
static double deadline;

static void act_missing(rank *r) {
  if (r->comm->rank == 0 || r->comm->rank == 3) return;
  pthread_barrier_wait(&started); /* a thread that starts late would be missing, too */
  r->comm->deadline = tegula__now() + deadline;
  r->status = tegula__comm_agree(r->comm, TEGULA_OK, &r->error);
  assert_int_equal(tegula__comm_agree(r->comm, TEGULA_OK, NULL), TEGULA_TIMEOUT); /* at once */
}

static const char missing[] =
    "ranks 0 and 3 did not come to an agreement of 5 ranks within the deadline";

static bool wait_for_missing(double seconds) {
  deadline = seconds;
  assert_int_equal(pthread_barrier_init(&started, NULL, RANKS - 2), 0);
  run_all(act_missing);
  pthread_barrier_destroy(&started);
  bool named = true;
  for (int i = 1; i < RANKS; i++)
    if (i != 3) named = named && strcmp(ranks[i].error.message, missing) == 0;
  return named;
}

/* On a machine that stands still for longer than the deadline others are missing, too: then a
 * deadline decides that outlasts it. */
static void those_that_are_missing_are_named(void **state) {
  (void)state;
  if (!wait_for_missing(1)) wait_for_missing(40);
  for (int i = 1; i < RANKS; i++) {
    if (i == 3) continue;
    assert_int_equal(ranks[i].status, TEGULA_TIMEOUT);
    assert_string_equal(ranks[i].error.message, missing);
  }
}

static void act_data(rank *r) {
  char text[100] = "";
  int64_t values[40] = {0}, bits[2] = {1 << r->comm->rank, -1};
  for (int i = 0; i < 40; i++) values[i] = r->comm->rank * 100 + i;
  assert_int_equal(tegula__comm_reduce(r->comm, TEGULA_PLUGIN_SUM, values, 40, NULL), TEGULA_OK);
  for (int i = 0; i < 40; i++) assert_int_equal(values[i], 1000 + 5 * i);
  assert_int_equal(tegula__comm_reduce(r->comm, TEGULA_PLUGIN_XOR, bits, 2, NULL), TEGULA_OK);
  assert_int_equal(bits[0], 31);
  assert_int_equal(bits[1], -1);
  if (r->comm->rank == 2) snprintf(text, sizeof text, "from rank 2");
  assert_int_equal(tegula__comm_broadcast(r->comm, text, sizeof text, 2, NULL), TEGULA_OK);
  assert_string_equal(text, "from rank 2");
  if (r->comm->rank == 1)
    assert_int_equal(tegula__comm_send(r->comm, "to rank 4", 10, 4, NULL), TEGULA_OK);
  if (r->comm->rank == 4)
    assert_int_equal(tegula__comm_receive(r->comm, text, 10, 1, NULL), TEGULA_OK);
  assert_string_equal(text, r->comm->rank == 4 ? "to rank 4" : "from rank 2");
}

static void numbers_and_bytes_come_over(void **state) {
  (void)state;
  run_all(act_data);
}

/* ---- much data: nobody looks at it, it is only counted ---- */

typedef struct counted {
  int calls;
  int64_t next, largest;
  const char *data;
} counted;

static int32_t count_rank(const void *group) { return group != NULL ? 0 : 1; }
static int32_t count_size(const void *group) { return group != NULL ? 2 : 0; }

static tegula_status count_broadcast(void *group, void *data, int32_t bytes, int32_t root,
                                     tegula_plugin_request *request, tegula_error *err) {
  counted *c = group;
  (void)root, (void)err;
  assert_true(bytes > 0 && (const char *)data == c->data + c->next);
  c->calls++;
  c->next += bytes;
  c->largest = bytes > c->largest ? bytes : c->largest;
  *request = (tegula_plugin_request){0};
  return TEGULA_OK;
}

static tegula_status count_test(void *group, tegula_plugin_request *request, bool *done,
                                tegula_error *err) {
  (void)group, (void)request, (void)err;
  *done = true;
  return TEGULA_OK;
}

static tegula_status count_probe(void *group, int32_t from, int32_t tag, bool *there,
                                 tegula_error *err) {
  (void)group, (void)from, (void)tag, (void)err;
  *there = false;
  return TEGULA_OK;
}

static void much_data_goes_in_pieces_of_at_most_a_gibibyte(void **state) {
  (void)state;
  tegula_plugin_comm counting = plugin;
  counting.rank = count_rank, counting.size = count_size, counting.broadcast = count_broadcast,
  counting.test = count_test, counting.probe = count_probe;
  int64_t size = ((int64_t)5 << 30) + 7;
  void *data =
      mmap(NULL, (size_t)size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  assert_true(data != MAP_FAILED);
  counted group = {.data = data};
  tegula_comm *comm;
  assert_int_equal(tegula__comm_create(&counting, &group, &comm, NULL), TEGULA_OK);
  assert_int_equal(tegula__comm_broadcast(comm, data, size, 0, NULL), TEGULA_OK);
  assert_int_equal(group.calls, 6);
  assert_int_equal(group.next, size);
  assert_int_equal(group.largest, (int64_t)1 << 30);
  tegula__comm_destroy(comm);
  munmap(data, (size_t)size);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(much_data_goes_in_pieces_of_at_most_a_gibibyte),
      cmocka_unit_test(the_error_of_the_lowest_rank_is_on_all),
      cmocka_unit_test(ranks_that_are_called_differently),
      cmocka_unit_test(a_failure_between_calls_reaches_all),
      cmocka_unit_test(those_that_are_missing_are_named),
      cmocka_unit_test(numbers_and_bytes_come_over),
      cmocka_unit_test(numbers_travel_with_an_agreement),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
