/* comm: the group of ranks that make a call together, and how they agree on its outcome.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A phase is local work, then one agreement; every rank leaves it with the same status and the same error. */
#ifndef TEGULA_COMM_COMM_H
#define TEGULA_COMM_COMM_H

#include "base/base.h"

struct tegula_comm {
  int32_t rank;
  int32_t size;
  /* Gives every rank the status and error of the lowest rank that failed, or OK. Called by all ranks at the end of each phase. */
  tegula_status (*agree)(tegula_comm *comm, tegula_status mine, tegula_error *err);
};

/* This process alone. Constant, so it needs no end. */
tegula_comm *tegula__comm_self(void);

#endif
