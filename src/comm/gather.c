/* What every rank has some of, for all of them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "comm/comm_priv.h"

static tegula_status fill(tegula_comm *comm, char **all, const void *own, int64_t count,
                          int64_t item, tegula_error *err) {
  int64_t at = 0;
  for (int32_t rank = 0; rank < comm->size; rank++) {
    int64_t some = rank == comm->rank ? count : 0;
    FORWARD(tegula__comm_reduce(comm, TEGULA_PLUGIN_MAX, &some, 1, err));
    if (some == 0) continue;
    if (rank == comm->rank) memcpy(*all + at, own, (size_t)(some * item));
    tegula_status status = tegula__comm_broadcast(comm, *all + at, some * item, rank, err);
    if (status != TEGULA_OK) *all = NULL; /* kept: a transfer that is not done may write to it */
    FORWARD(status);
    at += some * item;
  }
  return TEGULA_OK;
}

tegula_status tegula__comm_gather(tegula_comm *comm, void **items, int64_t *count, size_t item,
                                  tegula_error *err) {
  int64_t all = *count;
  RETURN_IF(comm->size == 1, TEGULA_OK);
  FORWARD(tegula__comm_reduce(comm, TEGULA_PLUGIN_SUM, &all, 1, err));
  RETURN_IF(all == 0, TEGULA_OK);
  char *made = tegula__realloc_array(NULL, all, item);
  tegula_status status = made != NULL ? TEGULA_OK : tegula__out_of_memory(err, all * (int64_t)item);
  status = tegula__comm_agree(comm, status, err);
  if (status == TEGULA_OK) status = fill(comm, &made, *items, *count, (int64_t)item, err);
  if (status != TEGULA_OK) {
    free(made);
    return status;
  }
  free(*items);
  *items = made;
  *count = all;
  return TEGULA_OK;
}
