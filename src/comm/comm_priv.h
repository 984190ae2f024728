/* What the files of comm share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_COMM_COMM_PRIV_H
#define TEGULA_COMM_COMM_PRIV_H

#include "comm/comm.h"

enum { TEGULA__TAG_DATA = 1, TEGULA__TAG_TOKEN = 2, TEGULA__TAG_REPORT = 3, TEGULA__TAG_NEWS = 4 };

/* May transfers be started? */
tegula_status tegula__comm_usable(tegula_comm *comm, tegula_error *err);
/* Waits for a transfer that was started with `started`; a failure of either breaks the group.
 * `collective`: all ranks take part. */
tegula_status tegula__comm_wait(tegula_comm *comm, tegula_status started,
                                tegula_plugin_request *request, bool collective, tegula_error *err);

/* Receives a message that was probed; false when it does not come at once. */
bool tegula__comm_take(tegula_comm *comm, void *data, int64_t bytes, int32_t rank, int32_t tag);
/* While a rank waits: rank 0 listens. */
void tegula__news_wait(tegula_comm *comm);
/* The end: rank 0 receives what is left of calls that failed. */
void tegula__news_drop(tegula_comm *comm);

/* ---- backing off ---- */

typedef struct tegula__pause {
  int turns;
  int64_t nanoseconds; /* of the last pause; 0: there was none yet */
  double since;
} tegula__pause;

/* First the processor is given away, which other ranks on it may need. Then come pauses, each a
 * small part of what has been waited: an answer goes through many hands, on processors that ranks
 * share, and each of them may be in a pause. */
void tegula__comm_pause(tegula__pause *pause);

/* All that rank `rank` has sent; the last one counts. */
void tegula__news_hear(tegula__news *news, int32_t rank);

#endif
