/* Backing off while something is waited for, and receiving a message that was probed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <time.h>

#include "comm/comm_priv.h"

enum { SPINS = 200, SHORTEST_NS = 20000, LONGEST_NS = 1000000, PART = 16 };

void tegula__comm_pause(tegula__pause *pause) {
  if (pause->turns < SPINS) {
    pause->turns++;
    sched_yield();
    return;
  }
  double now = tegula__now();
  if (pause->since <= 0) pause->since = now;
  int64_t part = (int64_t)((now - pause->since) * 1e9 / PART);
  pause->nanoseconds = tegula__max(SHORTEST_NS, tegula__min(LONGEST_NS, part));
  nanosleep(&(struct timespec){.tv_nsec = (long)pause->nanoseconds}, NULL);
}

bool tegula__comm_take(tegula_comm *comm, void *data, int64_t bytes, int32_t rank, int32_t tag) {
  tegula_plugin_request request;
  bool done = false;
  if (comm->plugin->receive(comm->group, data, (int32_t)bytes, rank, tag, &request, NULL) !=
      TEGULA_OK)
    return false;
  for (tegula__pause pause = {0}; !done && pause.nanoseconds < LONGEST_NS;
       tegula__comm_pause(&pause))
    if (comm->plugin->test(comm->group, &request, &done, NULL) != TEGULA_OK) return false;
  return done;
}
