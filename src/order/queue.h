/* queue: the order of operations on a context, and the threads that run those in the background.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every operation says what it touches: an array, and places in the file system. It may start when
 * no earlier operation that has not ended touches the same and one of the two changes it. Calls in
 * the foreground take their place in the same list and wait there. places.c says which paths
 * overlap. The folder includes base only. */
#ifndef TEGULA_ORDER_QUEUE_H
#define TEGULA_ORDER_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/base.h"

/* A place in the file system under its canonical name. Two places meet when one is the other or
 * lies inside it. */
typedef struct tegula__place {
  char *path;
  uint64_t device, inode; /* of what is there, 0 for nothing */
} tegula__place;

typedef struct tegula__places {
  tegula__place *items;
  int64_t count;
} tegula__places;

/* The places of some paths; a list of many is reduced to the folders they lie in. What does not
 * exist yet keeps its name behind the part that does. */
tegula_status tegula__places_of(const char *const *paths, int64_t count, tegula__places *out,
                                tegula_error *err);
/* Where the files of paths are, or of a pattern: the folder in front of its first wildcard. */
tegula_status tegula__places_of_paths(const char *const *paths, size_t count, tegula__places *out,
                                      tegula_error *err);
void tegula__places_free(tegula__places *places);
bool tegula__places_meet(const tegula__places *a, const tegula__places *b);

/* What an operation touches; all borrowed until it has ended. */
typedef struct tegula__touch {
  const void *array; /* NULL: none */
  bool array_changes;
  const void *const *arrays; /* further ones, which are only read */
  int64_t array_count;
  const tegula__places *places; /* NULL: none */
  bool places_change;
  const tegula__places *reads; /* further places, which are only read; NULL: none */
} tegula__touch;

typedef struct tegula__queue tegula__queue;

/* An operation. In the background `run` is called on a thread of the queue, and `release` once on a
 * thread of the program when nothing needs the operation any more. */
struct tegula_op {
  tegula__queue *queue;
  tegula__touch touch;
  tegula_status (*run)(tegula_op *op, tegula_error *err);
  void (*release)(tegula_op *op);
  _Atomic bool cancelled;
  tegula_progress_fn progress; /* the caller's; NULL: none */
  void *progress_state;
  /* under the queue's lock */
  tegula_op *next, *previous; /* in the list of those that have not ended */
  tegula_op *next_ended;
  int64_t number; /* in order of arrival */
  int32_t references;
  bool running, ended, reported;
  tegula_status status;
  tegula_error error;
};

tegula_status tegula__queue_create(int32_t threads, tegula__queue **out, tegula_error *err);
/* Waits for all operations, ends the threads, releases what has ended. Later calls in the
 * background are refused. */
void tegula__queue_close(tegula__queue *queue);
void tegula__queue_destroy(tegula__queue *queue);

/* Queues a background operation; the queue takes one reference and the caller another. Not OK:
 * nothing was queued. */
tegula_status tegula__queue_submit(tegula__queue *queue, tegula_op *op, tegula_error *err);
/* One more reference; the caller has one. */
tegula_op *tegula__queue_retain(tegula_op *op);
/* Gives a reference back. */
void tegula__queue_forget(tegula_op *op);
/* Gives an operation that has ended another outcome. */
void tegula__queue_conclude(tegula_op *op, tegula_status status, const tegula_error *error);
tegula_status tegula__queue_wait(tegula_op *op, int64_t timeout_ns, tegula_error *err);
bool tegula__queue_ended(const tegula_op *op);
void tegula__queue_cancel(tegula_op *op);
/* Keeps the caller's progress function and puts one in its place that also ends the operation when
 * it is cancelled. */
void tegula__queue_watch(tegula_op *op, tegula_progress_fn *progress, void **progress_state);
tegula_status tegula__queue_fence(tegula__queue *queue, tegula_error *err);

/* A call in the foreground: waits for its turn; `op` is the caller's memory, `touch` filled in.
 * Leave in any case. Was there something to wait for? */
bool tegula__queue_enter(tegula__queue *queue, tegula_op *op, const tegula__touch *touch);
void tegula__queue_leave(tegula_op *op);

#endif
