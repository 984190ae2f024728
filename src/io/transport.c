/* Which way bytes go, and the lanes that workers use.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * "auto" decides for each group of requests by what it sees: the first ones go through the
 * reference, and when the thread slept through most of that, the others are handed to a ring all at
 * once. Data that is in memory never meets a ring. A ring that turns out slower than the reference
 * is given up until the job ends. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/pace.h"
#include "io/io_priv.h"

/* A group of at least MANY requests is worth a look: the first SAMPLE of them. */
#define MANY 8
#define SAMPLE 2
#define PATIENCE 3
#define PUSH_BYTES ((int64_t)1 << 20) /* fewer are not worth a call */
#define TRUST 4 /* groups that go to the ring without a sample after one that paid */

struct tegula__lane {
  tegula__lane *next;
  const tegula__backend *backend;
  bool adaptive; /* auto */
  void *state;   /* of the backend; NULL before its first use */
  int doubts;    /* samples in a row against which the ring was slower */
  int trust;     /* groups left that need no sample */
  tegula__io_use use;
};

struct tegula__transport {
  const tegula__backend *backend; /* NULL: the reference */
  bool adaptive;
  pthread_mutex_t lock;
  tegula__lane *idle;
};

static bool select_backend(const char *name, tegula__transport *transport) {
  transport->adaptive = strcmp(name, "auto") == 0;
  if (transport->adaptive || strcmp(name, "io_uring") == 0)
    transport->backend = &tegula__uring_backend;
  else if (strcmp(name, "direct") == 0)
    transport->backend = &tegula__direct_backend;
  return transport->backend != NULL || strcmp(name, "pread") == 0;
}

tegula_status tegula__transport_create(const char *name, tegula__transport **out,
                                       tegula_error *err) {
  tegula__transport *transport = calloc(1, sizeof *transport);
  if (transport == NULL) return tegula__out_of_memory(err, sizeof *transport);
  if (!select_backend(name != NULL ? name : "auto", transport)) {
    free(transport);
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "io must be auto, pread, io_uring or direct, not \"%.40s\"", name);
  }
  pthread_mutex_init(&transport->lock, NULL);
  *out = transport;
  return TEGULA_OK;
}

void tegula__transport_destroy(tegula__transport *transport) {
  if (transport == NULL) return;
  while (transport->idle != NULL) {
    tegula__lane *lane = transport->idle;
    transport->idle = lane->next;
    if (lane->state != NULL) lane->backend->stop(lane->state);
    free(lane);
  }
  pthread_mutex_destroy(&transport->lock);
  free(transport);
}

bool tegula__transport_is_reference(const tegula__transport *transport) {
  return transport == NULL || transport->backend == NULL || transport->adaptive;
}

tegula__lane *tegula__transport_take(tegula__transport *transport) {
  if (transport == NULL || transport->backend == NULL) return NULL;
  pthread_mutex_lock(&transport->lock);
  tegula__lane *lane = transport->idle;
  if (lane != NULL) transport->idle = lane->next;
  pthread_mutex_unlock(&transport->lock);
  if (lane == NULL) lane = calloc(1, sizeof *lane);
  if (lane == NULL) return NULL;
  *lane = (tegula__lane){.backend = transport->backend,
                         .adaptive = transport->adaptive,
                         .state = lane->state,
                         .use.way = transport->backend->name};
  return lane;
}

void tegula__transport_give(tegula__transport *transport, tegula__lane *lane) {
  if (lane == NULL) return;
  if (lane->state != NULL) lane->backend->rest(lane->state);
  pthread_mutex_lock(&transport->lock);
  lane->next = transport->idle;
  transport->idle = lane;
  pthread_mutex_unlock(&transport->lock);
}

int tegula__lane_depth(const tegula__lane *lane) { return lane == NULL ? 1 : TEGULA__IO_DEPTH; }

tegula__io_use tegula__lane_use(const tegula__lane *lane) {
  return lane != NULL ? lane->use : (tegula__io_use){0};
}

static tegula_status move_plain(tegula__lane *lane, const tegula__io_file *file,
                                tegula__request *requests, int count, tegula_error *err) {
  for (int i = 0; i < count; i++) {
    int64_t bytes = lane != NULL ? tegula__io_total(requests[i].vectors, requests[i].count) : 0;
    FORWARD(tegula__reference_move(file, requests[i].offset, requests[i].vectors, requests[i].count,
                                   err));
    if (lane != NULL) lane->use.reference_bytes += bytes;
  }
  return TEGULA_OK;
}

/* The backend, started if need be; what it declines to start for goes through the reference. */
static tegula_status move_backend(tegula__lane *lane, const tegula__io_file *file,
                                  tegula__request *requests, int count, tegula_error *err) {
  if (lane->state == NULL && lane->use.declined == NULL)
    lane->use.declined = lane->backend->start(&lane->state);
  if (lane->state == NULL) return move_plain(lane, file, requests, count, err);
  return lane->backend->move(lane->state, file, requests, count, &lane->use, err);
}

/* The thread's clock, not its rusage: that lags by up to a tick of the scheduler, longer than the
 * two requests of a sample. */
static void note(tegula__lap *lap) {
  struct timespec now;
  tegula__pace_start(lap);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  lap->processor_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool slept(const tegula__lap *from, const tegula__lap *to) {
  int64_t total = to->total_ns - from->total_ns;
  return to->sleeps > from->sleeps && 2 * (to->processor_ns - from->processor_ns) < total;
}

static tegula_status move_measured(tegula__lane *lane, const tegula__io_file *file,
                                   tegula__request *requests, int count, tegula_error *err) {
  if (lane->trust > 0) {
    lane->trust--;
    return move_backend(lane, file, requests, count, err);
  }
  tegula__lap before, between, after;
  note(&before);
  FORWARD(move_plain(lane, file, requests, SAMPLE, err));
  note(&between);
  if (!slept(&before, &between))
    return move_plain(lane, file, requests + SAMPLE, count - SAMPLE, err);
  FORWARD(move_backend(lane, file, requests + SAMPLE, count - SAMPLE, err));
  note(&after);
  bool slower = (after.total_ns - between.total_ns) / (count - SAMPLE) >
                (between.total_ns - before.total_ns) / SAMPLE;
  lane->doubts = slower ? lane->doubts + 1 : 0;
  lane->trust = slower ? 0 : TRUST;
  return TEGULA_OK;
}

/* Markers are for the reference alone. */
static tegula_status move_records(tegula__lane *lane, const tegula__io_file *file,
                                  tegula__request *requests, int count, tegula_error *err) {
  for (int i = 0; i < count; i++) {
    int64_t bytes = tegula__io_total(requests[i].vectors, requests[i].count);
    FORWARD(tegula__records_move(file, &requests[i], err));
    if (lane != NULL) lane->use.reference_bytes += bytes;
  }
  return TEGULA_OK;
}

static tegula_status move(tegula__lane *lane, const tegula__io_file *file,
                          tegula__request *requests, int count, tegula_error *err) {
  if (lane == NULL) return move_plain(NULL, file, requests, count, err);
  if (!lane->adaptive) return move_backend(lane, file, requests, count, err);
  bool worth_a_look = count >= MANY && lane->doubts < PATIENCE && lane->use.declined == NULL;
  return worth_a_look ? move_measured(lane, file, requests, count, err)
                      : move_plain(lane, file, requests, count, err);
}

tegula_status tegula__lane_move(tegula__lane *lane, const tegula__io_file *file,
                                tegula__request *requests, int count, tegula_error *err) {
  if (file->frame != NULL) return move_records(lane, file, requests, count, err);
  int64_t first = requests[0].offset, bytes = 0; /* before the move: it changes the vectors */
  for (int i = 0; i < count && file->push; i++)
    bytes += tegula__io_total(requests[i].vectors, requests[i].count);
  int64_t behind = bytes >= PUSH_BYTES
                       ? requests[count - 1].offset + tegula__io_total(requests[count - 1].vectors,
                                                                       requests[count - 1].count)
                       : 0;
  FORWARD(move(lane, file, requests, count, err));
  /* advice: what fails is said by fdatasync */
  if (behind > first) sync_file_range(file->fd, first, behind - first, SYNC_FILE_RANGE_WRITE);
  return TEGULA_OK;
}
