/* News: how far the other ranks are in a call that all make, for rank 0's progress function.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each rank sends the bytes that it has done to rank 0, at most every 0.2 seconds and without
 * waiting; rank 0 looks for them when its own progress function is called, and while it waits for
 * the others. Only the thread that made the call calls MPI: it is one of those that move bytes.
 * When the call has ended well rank 0 hears what is left, because messages that nobody receives are
 * no good end for an MPI; after a failure, in which ranks may be in different calls, they are
 * dropped later. */
#include <stdlib.h>

#include "comm/comm_priv.h"

static const double interval = 0.2; /* seconds, and a ten-thousandth more for each rank */

static bool is_time(tegula__news *news) {
  double now = tegula__now();
  if (now < news->next) return false;
  news->next = now + interval + 1e-4 * news->comm->size;
  return true;
}

static void send_news(tegula__news *news) {
  tegula_comm *comm = news->comm;
  if (comm->telling &&
      comm->plugin->test(comm->group, &comm->told, &comm->told_done, NULL) == TEGULA_OK &&
      comm->told_done)
    comm->telling = false;
  if (comm->telling || !is_time(news)) return;
  comm->news_text[0] = news->call;
  comm->news_text[1] = atomic_load(&news->done);
  comm->telling = comm->plugin->send(comm->group, comm->news_text, sizeof comm->news_text, 0,
                                     TEGULA__TAG_NEWS, &comm->told, NULL) == TEGULA_OK;
  news->count += comm->telling;
}

void tegula__news_hear(tegula__news *news, int32_t rank) {
  tegula_comm *comm = news->comm;
  bool there = false;
  while (comm->plugin->probe(comm->group, rank, TEGULA__TAG_NEWS, &there, NULL) == TEGULA_OK &&
         there) {
    const int64_t *text = comm->news_heard;
    comm->deaf =
        !tegula__comm_take(comm, comm->news_heard, sizeof comm->news_heard, rank, TEGULA__TAG_NEWS);
    if (comm->deaf) return; /* what is on its way may still be written there */
    news->count += text[0] == news->call;
    if (text[0] != news->call || news->others == NULL || text[1] <= news->others[rank]) continue;
    atomic_fetch_add(&news->sum, text[1] - news->others[rank]);
    news->others[rank] = text[1];
  }
}

static void hear_all(tegula__news *news) {
  if (!is_time(news)) return;
  for (int32_t rank = 1; rank < news->comm->size && !news->comm->deaf; rank++)
    tegula__news_hear(news, rank);
}

static int tell(tegula__news *news) {
  int64_t done = tegula__min(news->total, atomic_load(&news->done) + atomic_load(&news->sum));
  return news->progress != NULL ? news->progress(news->state, done, news->total) : 0;
}

/* The progress function of a rank's own part. One call at a time, from any of its threads. */
static int own_progress(void *state, int64_t done, int64_t total) {
  tegula__news *news = state;
  bool mine = pthread_equal(pthread_self(), news->thread), first = news->comm->rank == 0;
  atomic_store(&news->done, done);
  if (mine && !news->comm->broken) first ? hear_all(news) : send_news(news);
  if (first) return tell(news);
  return news->progress != NULL ? news->progress(news->state, done, total) : 0;
}

void tegula__news_wait(tegula_comm *comm) {
  tegula__news *news = comm->news;
  int64_t before = atomic_load(&news->sum);
  if (comm->rank != 0) return;
  hear_all(news);
  /* too late to cancel: this rank's part is done */
  if (atomic_load(&news->sum) != before) (void)tell(news);
}

void tegula__news_begin(tegula__news *news, tegula_comm *comm, int64_t total,
                        tegula_progress_fn *progress, void **state) {
  *news = (tegula__news){.comm = comm,
                         .total = total,
                         .call = comm->step,
                         .thread = pthread_self(),
                         .progress = *progress,
                         .state = *state};
  if (comm->size == 1) return;
  news->next = tegula__now() + interval;
  /* without it they are not counted */
  if (comm->rank == 0 && *progress != NULL)
    news->others = calloc((size_t)comm->size, sizeof *news->others);
  comm->news = news;
  *progress = own_progress;
  *state = news;
}

void tegula__news_drop(tegula_comm *comm) {
  tegula__news none = {.comm = comm, .call = -1};
  for (int32_t rank = 1; comm->rank == 0 && rank < comm->size && !comm->deaf; rank++)
    tegula__news_hear(&none, rank);
}
