/* The end of a call whose progress rank 0 shows: it receives what the other ranks still sent.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <stdlib.h>

#include "comm/comm_priv.h"

static const double longest_end = 2; /* seconds */

/* Rank 0 knows how many were sent, and hears them. */
static void hear_the_rest(tegula__news *news) {
  tegula_comm *comm = news->comm;
  int64_t sent = comm->rank == 0 ? 0 : news->count;
  if (tegula__comm_reduce(comm, TEGULA_PLUGIN_SUM, &sent, 1, NULL) != TEGULA_OK || comm->rank != 0)
    return;
  for (double until = tegula__now() + longest_end;
       news->count < sent && !comm->deaf && tegula__now() < until; sched_yield())
    for (int32_t rank = 1; rank < comm->size && !comm->deaf; rank++) tegula__news_hear(news, rank);
}

void tegula__news_end(tegula__news *news, tegula_status status) {
  if (news->comm->size == 1) return;
  if (news->comm->news == news) news->comm->news = NULL;
  if (status == TEGULA_OK) hear_the_rest(news);
  if (status == TEGULA_OK && news->comm->rank == 0 && news->progress != NULL &&
      atomic_load(&news->done) + atomic_load(&news->sum) < news->total)
    (void)news->progress(news->state, news->total, news->total);
  free(news->others);
}
