/* problems: what is wrong with files, found on several ranks and told on all.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_VERIFY_PROBLEMS_H
#define TEGULA_VERIFY_PROBLEMS_H

#include "comm/comm.h"

typedef struct tegula__problem {
  int64_t file;   /* TEGULA__NO_FILE: of none in particular */
  int64_t number; /* in the order in which they are told of one file; set by order */
  /* found when its bytes were read: told only when nothing else is wrong with the file */
  bool bytes;
  tegula_error error;
} tegula__problem;

typedef struct tegula__problems {
  tegula__problem *items;
  int64_t count, capacity;
} tegula__problems;

/* False: no memory. */
bool tegula__problems_add(tegula__problems *problems, const tegula__problem *problem);
/* Collective, after an agreement: every rank has those of all ranks then. */
tegula_status tegula__problems_share(tegula__problems *problems, tegula_comm *comm,
                                     tegula_error *err);
/* By file; of each file one stays, of those without a file all. */
void tegula__problems_order(tegula__problems *problems);

/* problems.c: does the status say something about this process rather than about the files? */
bool tegula__status_is_ours(tegula_status status);

#endif
