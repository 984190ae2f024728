/* comm: the group of ranks that make a call together, and how they agree on its outcome.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A phase is local work, then one agreement; every rank leaves it with the same status and the same
 * error. Collectives have sizes that all ranks know. No wait lasts beyond the deadline; who is
 * missing then is known by tokens that waiting ranks send (wait.c). After that, or when the
 * communicator itself failed, the group is broken: every later call fails at once.
 * A group of one rank does nothing of this. One thread at a time.
 *
 * Begin reading at agree.c; wait.c has the deadline, news.c progress of the other ranks, self.c
 * the group of one. The folder includes base. */
#ifndef TEGULA_COMM_COMM_H
#define TEGULA_COMM_COMM_H

#include <pthread.h>
#include <stdatomic.h>
#include <tegula/tegula_plugin.h>

#include "base/base.h"

/* What a rank was called with: a name of the call, and things that must be the same on all ranks,
 * as text to be shown. */
enum { TEGULA__CALL_ITEMS = 6, TEGULA__CALL_TEXT = 192 };

typedef struct tegula__call {
  char name[32];
  int32_t count;
  struct {
    char what[24];
    uint64_t hash;
    char text[TEGULA__CALL_TEXT];
  } items[TEGULA__CALL_ITEMS];
} tegula__call;

void tegula__call_init(tegula__call *call, const char *name);
/* `what`: "the paths". The text is cut, and its hash is that of what is left: what may be longer is
 * mixed in, too. At most TEGULA__CALL_ITEMS; a further one takes the place of the last in messages.
 */
void tegula__call_add(tegula__call *call, const char *what, const char *format, ...)
    TEGULA__PRINTF(3, 4);
/* Further bytes that count as part of the last item. */
void tegula__call_mix(tegula__call *call, const void *data, size_t size);

/* failed, staying, name of the call, items: each with its complement, so that one maximum tells
 * whether all are the same */
/* in the place of the last items */
enum { TEGULA__AGREEMENT = 2 + 2 * (1 + TEGULA__CALL_ITEMS), TEGULA__CALL_VALUES = 8 };

/* One call's progress over all ranks (news.c). Rank 0's function gets sums, the others' what they
 * have done themselves. */
typedef struct tegula__news {
  tegula_comm *comm;
  pthread_t thread;            /* that made the call */
  tegula_progress_fn progress; /* the program's; may be NULL */
  void *state;
  int64_t call;              /* the same on all ranks, and of no other call */
  int64_t total;             /* of all ranks */
  _Atomic int64_t done, sum; /* by this rank; by others, as far as rank 0 has heard */
  int64_t *others;
  int64_t count; /* of messages that were sent; rank 0: heard */
  double next;   /* when news are sent or looked for again */
} tegula__news;

struct tegula_comm {
  int32_t rank;
  int32_t size;
  int32_t processors;               /* for this rank; 0: all that it is granted */
  const tegula_plugin_comm *plugin; /* NULL: one rank */
  void *group;
  pthread_t thread; /* that joined */
  double deadline;  /* on tegula__now's clock; 0: none */
  int64_t step;     /* waits so far: the same on all ranks */
  bool broken;
  tegula_error why; /* when broken */
  /* what is on its way stays here, for the case that it never ends */
  int64_t mine[TEGULA__AGREEMENT], all[TEGULA__AGREEMENT];
  int64_t token;
  tegula_error error;
  tegula__call call;
  tegula__news *news; /* of the call that is being made; NULL: it has none */
  int64_t news_text[2], news_heard[2];
  tegula_plugin_request told;
  bool telling, told_done, deaf;
};

/* This process alone. Constant, so it needs no end. */
tegula_comm *tegula__comm_self(void);
/* Takes a group that the plugin has joined. */
tegula_status tegula__comm_create(const tegula_plugin_comm *plugin, void *group, tegula_comm **out,
                                  tegula_error *err);
/* Collective, unless broken. */
void tegula__comm_destroy(tegula_comm *comm);

/* The end of a phase. Gives every rank the status and error of the lowest rank that failed, or
 * OK. */
tegula_status tegula__comm_agree(tegula_comm *comm, tegula_status mine, tegula_error *err);
/* The same, and MISMATCH where the ranks were not called alike. `call` NULL: as above. */
tegula_status tegula__comm_agree_call(tegula_comm *comm, const tegula__call *call,
                                      tegula_status mine, tegula_error *err);
/* The same for a call of at most two items, and in `values` the largest of each over all ranks: of
 * at most TEGULA__CALL_VALUES. */
tegula_status tegula__comm_agree_values(tegula_comm *comm, const tegula__call *call,
                                        tegula_status mine, int64_t *values, int32_t count,
                                        tegula_error *err);
/* The end of all: a rank that failed by itself tells that to the others, wherever they are, and
 * waits until all have come here. */
tegula_status tegula__comm_end(tegula_comm *comm, tegula_status mine, tegula_error *err);

/* Puts a function of its own in the place of a call's progress function, which may be NULL; `news`
 * lives until the end. All ranks or none. */
void tegula__news_begin(tegula__news *news, tegula_comm *comm, int64_t total,
                        tegula_progress_fn *progress, void **state);
/* After the call's last agreement, with its status. */
void tegula__news_end(tegula__news *news, tegula_status status);

/* Collective; called after an agreement, with sizes that all ranks know. */
tegula_status tegula__comm_reduce(tegula_comm *comm, tegula_plugin_reduction reduction,
                                  int64_t *values, int32_t count, tegula_error *err);
/* Any size, in pieces of at most 1 GiB. When it fails `data` may be written to later: it must not
 * be freed while the group is broken. */
tegula_status tegula__comm_broadcast(tegula_comm *comm, void *data, int64_t bytes, int32_t root,
                                     tegula_error *err);
/* In place of this rank's items (from malloc) those of all, in the order of the ranks. */
tegula_status tegula__comm_gather(tegula_comm *comm, void **items, int64_t *count, size_t item,
                                  tegula_error *err);
/* Between two ranks, at most 1 GiB; both wait. When it fails: as broadcast. */
tegula_status tegula__comm_send(tegula_comm *comm, const void *data, int64_t bytes, int32_t rank,
                                tegula_error *err);
tegula_status tegula__comm_receive(tegula_comm *comm, void *data, int64_t bytes, int32_t rank,
                                   tegula_error *err);
/* Sends to one rank while it receives from another; 0 bytes: nothing is sent, or received. When it
 * fails: as broadcast. */
tegula_status tegula__comm_exchange(tegula_comm *comm, const void *data, int64_t bytes, int32_t to,
                                    void *in, int64_t in_bytes, int32_t from, tegula_error *err);

#endif
