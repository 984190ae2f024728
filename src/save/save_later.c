/* Saves in the background on several ranks: begun by all, written by each, ended by all.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "save/save_later.h"

#include <string.h>

/* ---- the list ---- */

static void append(tegula__later *l) {
  tegula__later **last = &l->array->context->pending;
  while (*last != NULL) last = &(*last)->next;
  *last = l;
}

static void take_out(tegula__later *l) {
  tegula__later **link = &l->array->context->pending;
  while (*link != l) link = &(*link)->next;
  *link = l->next;
  l->next = NULL;
}

/* ---- the end ---- */

/* Of this rank's part. */
static tegula_status outcome(const tegula__later *l, tegula_error *err) {
  if (!l->written || atomic_load(&l->op->cancelled))
    return tegula__fail(err, TEGULA_CANCELLED, NULL, -1,
                        "cancelled before all ranks had saved their parts");
  if (l->status != TEGULA_OK) *err = l->error;
  return l->status;
}

/* The operation has ended: the last reference to it may be given back here. */
static void conclude(tegula__later *l, tegula_status status, const tegula_error *err) {
  tegula_op *op = l->op;
  take_out(l);
  l->ended = true;
  tegula__queue_conclude(op, status, err);
  tegula__queue_forget(op);
}

/* All ranks' parts have ended. */
static void end(tegula__later *l) {
  tegula_comm *comm = l->array->context->comm;
  tegula_error error;
  tegula__error_clear(&error);
  tegula_status status = tegula__comm_agree(comm, outcome(l, &error), &error);
  if (status == TEGULA_OK && tegula__rank_save_in_rounds(&l->ranks, 0))
    status = tegula__comm_agree(
        comm, tegula__rank_save_array(&l->ranks, 0, &l->array->memory, &error), &error);
  status = tegula__rank_save_end(&l->ranks, status, &error);
  conclude(l, status, &error);
}

static tegula_status complete(tegula__later *l, const char *name, int64_t timeout_ns,
                              tegula_error *err) {
  tegula__call call;
  tegula__call_init(&call, name);
  tegula__call_add(&call, "the save", "%s", l->said);
  tegula__call_mix(&call, l->said, strlen(l->said)); /* the whole of a long one */
  tegula_status status = tegula__queue_wait(l->op, timeout_ns, err);
  FORWARD(tegula__comm_agree_call(l->array->context->comm, &call,
                                  status == TEGULA_TIMEOUT ? status : TEGULA_OK, err));
  end(l);
  return TEGULA_OK;
}

tegula_status tegula__later_wait(tegula__later *l, const char *name, int64_t timeout_ns,
                                 tegula_error *err) {
  tegula_op *op = l->op;
  if (!l->ended) FORWARD(complete(l, name, timeout_ns, err));
  return tegula__queue_wait(op, 0, err);
}

/* ---- before other calls ---- */

tegula_status tegula__later_end_all(tegula_context *context, const char *name, tegula_error *err) {
  while (context->pending != NULL) FORWARD(complete(context->pending, name, -1, err));
  return TEGULA_OK;
}

tegula_status tegula__later_end_of_array(tegula_context *context, const tegula_array *array,
                                         const char *name, tegula_error *err) {
  for (tegula__later *l = context->pending, *next; l != NULL; l = next) {
    next = l->next;
    /* else it is in the queue's order */
    if (l->array == array && tegula__rank_save_in_rounds(&l->ranks, 0))
      FORWARD(complete(l, name, -1, err));
  }
  return TEGULA_OK;
}

/* Of those that have not ended, how many there are from the first one to these places on; 0: none
 * is to them. */
static int64_t count_from_place(const tegula_context *context, const tegula__places *places) {
  int64_t count = 0;
  for (const tegula__later *l = context->pending; l != NULL; l = l->next)
    if (count > 0 || tegula__places_meet(&l->places, places)) count++;
  return count;
}

static tegula__later *last_but(tegula_context *context, int64_t behind) {
  tegula__later *found = context->pending;
  for (const tegula__later *l = found; l != NULL; l = l->next)
    if (behind-- < 0) found = found->next;
  return found;
}

/* Each that any rank knows as one to these places: ranks in other folders, or whose machine sees an
 * older state of one, know other names. `mine`: how this rank found the places. */
static tegula_status end_of_places(tegula_context *context, const tegula__places *places,
                                   const char *name, tegula_status mine, tegula_error *err) {
  tegula__call call;
  tegula__call_init(&call, name);
  while (context->pending != NULL) {
    int64_t count = mine == TEGULA_OK ? count_from_place(context, places) : 0;
    FORWARD(tegula__comm_agree_values(context->comm, &call, mine, &count, 1, err));
    if (count == 0) return TEGULA_OK;
    FORWARD(complete(last_but(context, count - 1), name, -1, err));
  }
  return mine;
}

tegula_status tegula__later_end_of_paths(tegula_context *context, const char *const *paths,
                                         size_t count, const char *name, tegula_error *err) {
  tegula__places places = {0};
  RETURN_IF(context->pending == NULL, TEGULA_OK);
  tegula_status status = tegula__places_of_paths(paths, count, &places, err);
  status = end_of_places(context, &places, name, status, err);
  tegula__places_free(&places);
  return status;
}

/* ---- the beginning ---- */

tegula_status tegula__later_begin(tegula__later *l, const char *path,
                                  const tegula_save_options *options, tegula_status status,
                                  tegula_error *err) {
  const tegula_array *array = l->array;
  tegula__wanted wanted = {
      .dtype = array->memory.dtype, .tiling = array->memory.tiling, .options = options};
  const tegula__group group = {.arrays = &array, .wanted = &wanted, .count = 1};
  l->ranks =
      (tegula__rank_save){.context = array->context, .options = options, .saving = &l->saving};
  if (status == TEGULA_OK)
    FORWARD(end_of_places(array->context, &l->places, "tegula_save_async", TEGULA_OK, err));
  return tegula__rank_save_begin(&l->ranks, &group, l->said, path, "tegula_save_async", status,
                                 err);
}

tegula_status tegula__later_queued(tegula__later *l, tegula_op *op, tegula_status status,
                                   tegula_error *err) {
  bool queued = status == TEGULA_OK;
  status = tegula__comm_agree(l->array->context->comm, status, err);
  if (status == TEGULA_OK) {
    l->op = tegula__queue_retain(op);
    append(l);
    return TEGULA_OK;
  }
  if (queued) tegula__queue_cancel(op);
  if (queued) (void)tegula__queue_wait(op, -1, NULL);
  return tegula__rank_save_end(&l->ranks, status, err);
}

void tegula__later_write(tegula__later *l) {
  const tegula__array *memory = &l->array->memory;
  l->written = true;
  tegula__error_clear(&l->error);
  if (!tegula__rank_save_in_rounds(&l->ranks, 0))
    l->status = tegula__rank_save_move(&l->ranks, 0, memory->tiles, memory->count, &l->error);
}

void tegula__later_give_up_all(tegula_context *context) {
  while (context->pending != NULL) {
    tegula__later *l = context->pending;
    tegula_error error;
    tegula__queue_cancel(l->op);
    (void)tegula__queue_wait(l->op, -1, NULL);
    tegula_status status = tegula__fail(&error, TEGULA_CANCELLED, NULL, -1,
                                        "the context was destroyed before the save was waited for");
    status = tegula__rank_save_end_here(&l->ranks, status, &error);
    conclude(l, status, &error);
  }
}
