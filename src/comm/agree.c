/* Agreements and what else all ranks do together.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * One maximum over all ranks tells whether one failed (the lowest rank wins) and whether they were
 * called alike: for each item its hash h and -h are compared, max(h) = -max(-h) only when all are
 * the same. Then the rank that failed sends its error, of fixed size. */
#include <stdio.h>
#include <string.h>

#include "comm/comm_priv.h"

enum { FAILED, STAYING, FIRST_PAIR };

/* ---- calls ---- */

static uint64_t mix(uint64_t hash, const void *data, size_t size) {
  const unsigned char *bytes = data;
  for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3); /* FNV-1a */
  return hash;
}

#define START UINT64_C(0xcbf29ce484222325)

void tegula__call_init(tegula__call *call, const char *name) {
  memset(call, 0, sizeof *call);
  snprintf(call->name, sizeof call->name, "%s", name);
}

void tegula__call_add(tegula__call *call, const char *what, const char *format, ...) {
  bool full = call->count == TEGULA__CALL_ITEMS;
  int32_t i = full ? call->count - 1 : call->count++;
  uint64_t start = full ? call->items[i].hash : START; /* what has no place counts all the same */
  snprintf(call->items[i].what, sizeof call->items[i].what, "%s", what);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(call->items[i].text, sizeof call->items[i].text, format, arguments);
  va_end(arguments);
  call->items[i].hash = mix(start, call->items[i].text, strlen(call->items[i].text));
}

void tegula__call_mix(tegula__call *call, const void *data, size_t size) {
  uint64_t *hash = &call->items[call->count - 1].hash;
  *hash = mix(*hash, data, size);
}

/* ---- what the ranks say ---- */

/* 0 or more, so that it can be negated */
static int64_t as_number(uint64_t hash) { return (int64_t)(hash >> 1); }

static uint64_t name_hash(const char *name) { return mix(START, name, strlen(name)); }

static void put_pair(tegula_comm *comm, int pair, uint64_t hash) {
  comm->mine[FIRST_PAIR + 2 * pair] = as_number(hash);
  comm->mine[FIRST_PAIR + 2 * pair + 1] = -as_number(hash);
}

static bool pair_differs(const tegula_comm *comm, int pair) {
  return comm->all[FIRST_PAIR + 2 * pair] != -comm->all[FIRST_PAIR + 2 * pair + 1];
}

static tegula_status reduce(tegula_comm *comm, tegula_plugin_reduction reduction, int32_t count,
                            tegula_error *err) {
  tegula_plugin_request request;
  FORWARD(tegula__comm_usable(comm, err));
  tegula_status started =
      comm->plugin->reduce(comm->group, reduction, comm->mine, comm->all, count, &request, err);
  return tegula__comm_wait(comm, started, &request, true, err);
}

/* ---- not called alike ---- */

/* The first thing that differs between two calls; both have the same, or *what is "call". */
static void find_difference(const tegula__call *a, const tegula__call *b, const char **what,
                            const char **one, const char **other) {
  *what = "";
  *one = a->name;
  *other = b->name;
  if (strcmp(a->name, b->name) != 0) return;
  for (int32_t i = 0; i < a->count && i < b->count; i++) {
    if (a->items[i].hash == b->items[i].hash) continue;
    *what = a->items[i].what;
    *one = a->items[i].text;
    *other = b->items[i].text;
    return;
  }
}

static bool same_call(const tegula__call *a, const tegula__call *b) {
  const char *what, *one, *other;
  find_difference(a, b, &what, &one, &other);
  return what[0] == '\0' && strcmp(a->name, b->name) == 0;
}

/* All ranks are here: each learns what rank 0 was called with, and what the first rank that differs
 * from it. */
static tegula_status say_difference(tegula_comm *comm, const tegula__call *call,
                                    tegula_error *err) {
  tegula__call of_root = *call, mine = *call;
  const char *what, *one, *other;
  comm->call = *call;
  FORWARD(tegula__comm_broadcast(comm, &comm->call, sizeof comm->call, 0, err));
  of_root = comm->call;
  comm->mine[0] = same_call(&of_root, &mine) ? 0 : comm->size - comm->rank;
  FORWARD(reduce(comm, TEGULA_PLUGIN_MAX, 1, err));
  int32_t rank = (int32_t)(comm->size - comm->all[0]);
  if (rank >= comm->size) rank = 0;
  comm->call = mine;
  FORWARD(tegula__comm_broadcast(comm, &comm->call, sizeof comm->call, rank, err));
  find_difference(&of_root, &comm->call, &what, &one, &other);
  tegula_status status =
      what[0] == '\0'
          ? tegula__fail(err, TEGULA_MISMATCH, NULL, -1,
                         "the ranks do not make the same call: rank 0 is in %s, rank %d in %s", one,
                         rank, other)
          : tegula__fail(err, TEGULA_MISMATCH, NULL, -1,
                         "the ranks were not called alike: %s of rank 0: %s, of rank %d: %s", what,
                         one, rank, other);
  if (err != NULL) err->rank = rank;
  return tegula__hint(
      err, status,
      "all ranks must make the same calls, in the same order, with the same paths and options");
}

/* ---- agreements ---- */

/* The error of the rank that failed, on all. */
static tegula_status share_error(tegula_comm *comm, int32_t rank, tegula_status mine,
                                 tegula_error *err) {
  if (rank == comm->rank) {
    comm->error = *err;
    comm->error.status = mine;
    if (comm->error.rank < 0) comm->error.rank = rank; /* else it was agreed before */
  }
  FORWARD(tegula__comm_broadcast(comm, &comm->error, sizeof comm->error, rank, err));
  *err = comm->error;
  return comm->error.status;
}

static tegula_status agree_alone(tegula_comm *comm, tegula_status mine, tegula_error *err) {
  if (mine != TEGULA_OK && err != NULL && err->rank < 0) err->rank = comm->rank;
  return mine;
}

typedef struct agreement {
  const tegula__call *call;
  bool leaves; /* in tegula__comm_end */
  int64_t *values;
  int32_t value_count;
} agreement;

/* *all_leave: every rank is in tegula__comm_end. */
static tegula_status agree(tegula_comm *comm, const agreement *a, bool *all_leave,
                           tegula_status mine, tegula_error *err) {
  const tegula__call *call = a->call;
  int pairs = a->value_count > 0 ? 1 + call->count : 1 + TEGULA__CALL_ITEMS;
  memset(comm->mine, 0, sizeof comm->mine);
  comm->mine[FAILED] = mine != TEGULA_OK ? comm->size - comm->rank : 0;
  comm->mine[STAYING] = !a->leaves;
  put_pair(comm, 0, name_hash(call->name));
  for (int32_t i = 0; i < call->count; i++) put_pair(comm, 1 + i, call->items[i].hash);
  for (int32_t i = 0; i < a->value_count; i++)
    comm->mine[TEGULA__AGREEMENT - a->value_count + i] = a->values[i];
  FORWARD(reduce(comm, TEGULA_PLUGIN_MAX, TEGULA__AGREEMENT, err));
  *all_leave = comm->all[STAYING] == 0;
  if (comm->all[FAILED] > 0)
    return share_error(comm, (int32_t)(comm->size - comm->all[FAILED]), mine, err);
  for (int pair = 0; pair < pairs; pair++)
    if (pair_differs(comm, pair)) return say_difference(comm, call, err);
  for (int32_t i = 0; i < a->value_count; i++)
    a->values[i] = comm->all[TEGULA__AGREEMENT - a->value_count + i];
  return TEGULA_OK;
}

tegula_status tegula__comm_agree_values(tegula_comm *comm, const tegula__call *call,
                                        tegula_status mine, int64_t *values, int32_t count,
                                        tegula_error *err) {
  tegula__call end;
  tegula_error unwanted;
  bool all_leave;
  tegula__error_clear(&unwanted);
  if (comm->size == 1) return agree_alone(comm, mine, err);
  if (comm->broken) return tegula__comm_usable(comm, err);
  if (call == NULL) {
    tegula__call_init(&end, count > 0 ? "the end of a step with values" : "the end of a step");
    call = &end;
  }
  agreement a = {.call = call, .values = values, .value_count = count};
  return agree(comm, &a, &all_leave, mine, err != NULL ? err : &unwanted);
}

tegula_status tegula__comm_agree_call(tegula_comm *comm, const tegula__call *call,
                                      tegula_status mine, tegula_error *err) {
  return tegula__comm_agree_values(comm, call, mine, NULL, 0, err);
}

tegula_status tegula__comm_end(tegula_comm *comm, tegula_status mine, tegula_error *err) {
  tegula__call end;
  tegula_error unwanted;
  tegula__error_clear(&unwanted);
  if (err == NULL) err = &unwanted;
  if (comm->size == 1) return agree_alone(comm, mine, err);
  tegula__call_init(&end, "tegula_comm_end");
  for (bool all_leave = false; !all_leave;) {
    if (comm->broken) return tegula__comm_usable(comm, err);
    mine = agree(comm, &(agreement){.call = &end, .leaves = true}, &all_leave, mine, err);
  }
  return mine;
}

tegula_status tegula__comm_agree(tegula_comm *comm, tegula_status mine, tegula_error *err) {
  return tegula__comm_agree_call(comm, NULL, mine, err);
}

/* ---- data ---- */

#define PIECE ((int64_t)1 << 30)

tegula_status tegula__comm_reduce(tegula_comm *comm, tegula_plugin_reduction reduction,
                                  int64_t *values, int32_t count, tegula_error *err) {
  if (comm->size == 1) return TEGULA_OK;
  for (int32_t at = 0; at < count; at += TEGULA__AGREEMENT) {
    int32_t some = (int32_t)tegula__min(TEGULA__AGREEMENT, count - at);
    memcpy(comm->mine, values + at, (size_t)some * sizeof *values);
    FORWARD(reduce(comm, reduction, some, err));
    memcpy(values + at, comm->all, (size_t)some * sizeof *values);
  }
  return TEGULA_OK;
}

tegula_status tegula__comm_broadcast(tegula_comm *comm, void *data, int64_t bytes, int32_t root,
                                     tegula_error *err) {
  if (comm->size == 1) return TEGULA_OK;
  for (int64_t at = 0; at < bytes; at += PIECE) {
    tegula_plugin_request request;
    FORWARD(tegula__comm_usable(comm, err));
    tegula_status started =
        comm->plugin->broadcast(comm->group, (char *)data + at,
                                (int32_t)tegula__min(PIECE, bytes - at), root, &request, err);
    FORWARD(tegula__comm_wait(comm, started, &request, true, err));
  }
  return TEGULA_OK;
}

tegula_status tegula__comm_send(tegula_comm *comm, const void *data, int64_t bytes, int32_t rank,
                                tegula_error *err) {
  tegula_plugin_request request;
  FORWARD(tegula__comm_usable(comm, err));
  tegula_status started =
      comm->plugin->send(comm->group, data, (int32_t)bytes, rank, TEGULA__TAG_DATA, &request, err);
  return tegula__comm_wait(comm, started, &request, false, err);
}

tegula_status tegula__comm_receive(tegula_comm *comm, void *data, int64_t bytes, int32_t rank,
                                   tegula_error *err) {
  tegula_plugin_request request;
  FORWARD(tegula__comm_usable(comm, err));
  tegula_status started = comm->plugin->receive(comm->group, data, (int32_t)bytes, rank,
                                                TEGULA__TAG_DATA, &request, err);
  return tegula__comm_wait(comm, started, &request, false, err);
}

tegula_status tegula__comm_exchange(tegula_comm *comm, const void *data, int64_t bytes, int32_t to,
                                    void *in, int64_t in_bytes, int32_t from, tegula_error *err) {
  tegula_plugin_request coming, going;
  tegula_status received = TEGULA_OK, sent = TEGULA_OK;
  FORWARD(tegula__comm_usable(comm, err));
  if (in_bytes > 0)
    received = comm->plugin->receive(comm->group, in, (int32_t)in_bytes, from, TEGULA__TAG_DATA,
                                     &coming, err);
  if (bytes > 0 && received == TEGULA_OK)
    sent = comm->plugin->send(comm->group, data, (int32_t)bytes, to, TEGULA__TAG_DATA, &going, err);
  /* what was to come stays on its way: the group is broken */
  if (sent != TEGULA_OK) received = sent;
  if (in_bytes > 0 || received != TEGULA_OK)
    FORWARD(tegula__comm_wait(comm, received, &coming, false, err));
  return bytes > 0 ? tegula__comm_wait(comm, sent, &going, false, err) : TEGULA_OK;
}
