/* The communicator of one process: it agrees with itself.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/comm.h"

static tegula_status agree_alone(tegula_comm *comm, tegula_status mine, tegula_error *err) {
  if (mine != TEGULA_OK && err != NULL && err->rank < 0) err->rank = comm->rank;
  return mine;
}

static const tegula_comm self = {.rank = 0, .size = 1, .agree = agree_alone};

/* The struct is never written to; the type is not const because other communicators have state. */
tegula_comm *tegula__comm_self(void) { return (tegula_comm *)&self; }
