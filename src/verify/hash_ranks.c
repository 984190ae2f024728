/* The content hash of an array that is spread over ranks.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The blocks are taken in groups of about 1 MiB. What of a group lies in the tiles of one rank is
 * hashed there, on all threads. A group that several ranks share has one owner among them: the
 * others send what they have of it, in C order. All ranks walk over the shared groups in the same
 * order, so the lowest one that is not done always goes on, and no rank holds more than one of
 * them. */
#include <stdlib.h>

#include "verify/verify.h"

typedef struct rank_hash {
  const tegula_array *array;
  const tegula_tiling *tiling;
  tegula__hash_groups groups;
  tegula__tile *all;        /* the tiles of all ranks, those of others without memory */
  int64_t *vectors;         /* of their boxes */
  tegula__targets everyone; /* over `all` */
  tegula__targets mine;
  int32_t *owners;  /* of each tile */
  char *scratch;    /* a group, and the part of it that is sent */
  int32_t *sharers; /* ranks that have something of a group, ascending */
} rank_hash;

static void release(rank_hash *h) {
  tegula__targets_free(&h->everyone);
  tegula__targets_free(&h->mine);
  tegula__hash_groups_free(&h->groups);
  free(h->all);
  free(h->vectors);
  free(h->owners);
  free(h->scratch);
  free(h->sharers);
}

static tegula_status collect_tiles(rank_hash *h, tegula_error *err) {
  const tegula_tiling *tiling = h->tiling;
  size_t axes = (size_t)tiling->ndim;
  h->all = tegula__realloc_array(NULL, tiling->count, sizeof *h->all);
  h->vectors = tegula__realloc_array(NULL, tiling->count, 2 * axes * sizeof *h->vectors + 1);
  h->owners = tegula__realloc_array(NULL, tiling->count, sizeof *h->owners);
  h->sharers = calloc((size_t)tiling->ranks, sizeof *h->sharers);
  if (h->all == NULL || h->vectors == NULL || h->owners == NULL || h->sharers == NULL)
    return tegula__out_of_memory(
        err, tiling->count * (int64_t)(sizeof *h->all + 2 * axes * sizeof *h->vectors));
  for (int64_t i = 0; i < tiling->count; i++) {
    int64_t *lo = h->vectors + (size_t)i * 2 * axes;
    tegula__tiling_box(tiling, i, lo, lo + axes);
    h->all[i] = (tegula__tile){.lo = lo, .hi = lo + axes};
    h->owners[i] = tegula__tiling_owner(tiling, i);
  }
  const tegula__array *memory = &h->array->memory;
  for (int64_t i = 0; i < memory->count; i++) h->all[memory->numbers[i]] = memory->tiles[i];
  FORWARD(tegula__targets_create(tiling->ndim, h->all, tiling->count, &h->everyone, err));
  return tegula__targets_create(tiling->ndim, h->array->memory.tiles, h->array->memory.count,
                                &h->mine, err);
}

static tegula_status prepare(rank_hash *h, tegula_error *err) {
  const tegula__array *memory = &h->array->memory;
  const tegula__engine *engine = &h->array->context->engine;
  FORWARD(collect_tiles(h, err));
  FORWARD(tegula__hash_groups_create(engine->kernels, memory->dtype, h->tiling->shape,
                                     h->tiling->ndim, &h->groups, err));
  h->scratch = malloc((size_t)(2 * h->groups.bytes));
  return h->scratch != NULL ? TEGULA_OK : tegula__out_of_memory(err, 2 * h->groups.bytes);
}

typedef struct sharer_list {
  rank_hash *h;
  int32_t count;
} sharer_list;

/* Keeps the list ascending, each rank once. */
static void add_sharer(void *state, int64_t tile) {
  sharer_list *list = state;
  int32_t *sharers = list->h->sharers, owner = list->h->owners[tile], at = list->count;
  while (at > 0 && sharers[at - 1] > owner) at--;
  if (at > 0 && sharers[at - 1] == owner) return;
  memmove(sharers + at + 1, sharers + at, (size_t)(list->count - at) * sizeof *sharers);
  sharers[at] = owner;
  list->count++;
}

/* Who has something of the group. */
static int32_t find_sharers(rank_hash *h, int64_t group) {
  sharer_list list = {.h = h};
  tegula__hash_groups_visit(&h->groups, group, &h->everyone, add_sharer, &list);
  return list.count;
}

/* One group that several ranks share: to its owner, who hashes it. */
static tegula_status exchange(rank_hash *h, int64_t group, int32_t sharers, tegula__hash128 *sum,
                              tegula_error *err) {
  tegula_comm *comm = h->array->context->comm;
  int32_t owner = h->sharers[group % sharers];
  char *whole = h->scratch, *part = h->scratch + h->groups.bytes;
  if (comm->rank != owner) {
    bool shares = false;
    for (int32_t i = 0; i < sharers; i++) shares = shares || h->sharers[i] == comm->rank;
    if (!shares) return TEGULA_OK;
    int64_t bytes =
        tegula__hash_groups_take(&h->groups, group, &h->everyone, h->owners, comm->rank, part);
    return tegula__comm_send(comm, part, bytes, owner, err);
  }
  tegula__hash_groups_gather(&h->groups, group, &h->mine, whole);
  for (int32_t i = 0; i < sharers; i++) {
    if (h->sharers[i] == owner) continue;
    int64_t bytes = tegula__hash_groups_put(&h->groups, group, &h->everyone, h->owners,
                                            h->sharers[i], NULL, whole);
    FORWARD(tegula__comm_receive(comm, part, bytes, h->sharers[i], err));
    tegula__hash_groups_put(&h->groups, group, &h->everyone, h->owners, h->sharers[i], part, whole);
  }
  tegula__hash_groups_sum(&h->groups, group, whole, sum);
  return TEGULA_OK;
}

static tegula_status hash_groups(rank_hash *h, tegula__hash128 *sum, tegula_error *err) {
  tegula_comm *comm = h->array->context->comm;
  tegula_status status = TEGULA_OK;
  for (int64_t group = 0; group < h->groups.count; group++)
    h->groups.wanted[group] = find_sharers(h, group) == 1 && h->sharers[0] == comm->rank;
  /* those that are this rank's alone */
  status = tegula__hash_groups_run(&h->groups, h->array->context->engine.pool, &h->mine, sum, err);
  FORWARD(tegula__comm_agree(comm, status, err));
  for (int64_t group = 0; group < h->groups.count; group++) {
    int32_t sharers = find_sharers(h, group);
    if (sharers > 1) FORWARD(exchange(h, group, sharers, sum, err));
  }
  return TEGULA_OK;
}

tegula_status tegula__hash_on_ranks(const tegula_array *array, tegula__hash128 *sum,
                                    tegula_error *err) {
  tegula_comm *comm = array->context->comm;
  rank_hash h = {.array = array, .tiling = array->memory.tiling};
  tegula__call call;
  tegula__call_init(&call, "tegula_array_hash");
  tegula__call_tiling(&call, h.tiling, array->memory.dtype);
  tegula_status status = tegula__comm_agree_call(comm, &call, prepare(&h, err), err);
  if (status == TEGULA_OK) status = hash_groups(&h, sum, err);
  int64_t words[2] = {(int64_t)sum->low, (int64_t)sum->high};
  if (status == TEGULA_OK) status = tegula__comm_reduce(comm, TEGULA_PLUGIN_XOR, words, 2, err);
  *sum = (tegula__hash128){.low = (uint64_t)words[0], .high = (uint64_t)words[1]};
  if (!comm->broken) release(&h); /* else a transfer may still write to it */
  return status;
}
