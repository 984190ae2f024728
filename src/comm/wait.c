/* Waiting for the other ranks: until the deadline, and then finding out who is missing.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A rank that has waited for a while, and each whose deadline is over, sends a token with the
 * number of its wait to ranks 0 and 1. After the deadline rank 0 looks who has sent none, tells all
 * that did, and every rank fails with that message. Rank 1 does it when rank 0 is the one that is
 * missing. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "comm/comm_priv.h"

static const double token_after = 0.5; /* seconds */
static const double collect_for = 1.0;
static const double report_for = 4.0;

static tegula_status broken(const tegula_comm *comm, tegula_error *err) {
  if (err != NULL) *err = comm->why;
  return comm->why.status;
}

static tegula_status breaks(tegula_comm *comm, const tegula_error *why, tegula_error *err) {
  comm->broken = true;
  comm->why = *why;
  if (comm->why.status == TEGULA_OK) comm->why.status = TEGULA_COMM;
  return broken(comm, err);
}

tegula_status tegula__comm_usable(tegula_comm *comm, tegula_error *err) {
  if (comm->broken) return broken(comm, err);
  if (comm->plugin->any_thread(comm->group) || pthread_equal(comm->thread, pthread_self()))
    return TEGULA_OK;
  return tegula__hint(
      err,
      tegula__fail(err, TEGULA_COMM, NULL, -1,
                   "this thread may not call MPI, which was initialised for calls from one thread"),
      "initialise MPI with MPI_THREAD_SERIALIZED or more");
}

/* ---- who is missing ---- */

/* Sends without waiting: the ranks that it goes to may be the ones that do nothing any more. */
static void tell(tegula_comm *comm, const void *data, int64_t bytes, int32_t rank, int32_t tag) {
  tegula_plugin_request request;
  if (rank != comm->rank && rank < comm->size)
    (void)comm->plugin->send(comm->group, data, (int32_t)bytes, rank, tag, &request, NULL);
}

static void send_tokens(tegula_comm *comm) {
  comm->token = comm->step;
  tell(comm, &comm->token, sizeof comm->token, 0, TEGULA__TAG_TOKEN);
  tell(comm, &comm->token, sizeof comm->token, 1, TEGULA__TAG_TOKEN);
}

/* Is rank `rank` at this wait? Earlier tokens of it are dropped. */
static bool has_come(tegula_comm *comm, int32_t rank) {
  bool there = false;
  while (comm->plugin->probe(comm->group, rank, TEGULA__TAG_TOKEN, &there, NULL) == TEGULA_OK &&
         there) {
    int64_t step = -1;
    if (!tegula__comm_take(comm, &step, sizeof step, rank, TEGULA__TAG_TOKEN)) return false;
    if (step >= comm->step) return true;
  }
  return false;
}

/* "rank 3", "ranks 1, 2 and 5", "ranks 1, 2, 3 and 40 more" */
static void name_missing(const tegula_comm *comm, const char *come, char *out, size_t room) {
  int32_t count = 0, named = 0;
  for (int32_t i = 0; i < comm->size; i++) count += !come[i];
  size_t used = (size_t)snprintf(out, room, count == 1 ? "rank " : "ranks ");
  for (int32_t i = 0; i < comm->size && named < 16; i++) {
    if (come[i]) continue;
    named++;
    const char *between = named == 1 ? "" : named == count ? " and " : ", ";
    used += (size_t)snprintf(out + used, room - used, "%s%d", between, i);
  }
  if (named < count) snprintf(out + used, room - used, " and %d more", count - named);
}

static void compose(tegula_comm *comm, const char *come) {
  char names[256];
  int32_t count = 0, first = -1;
  for (int32_t i = comm->size - 1; i >= 0; i--)
    if (!come[i]) {
      count++;
      first = i;
    }
  name_missing(comm, come, names, sizeof names);
  tegula__hint(
      &comm->error,
      count == 0 ? tegula__fail(&comm->error, TEGULA_TIMEOUT, NULL, -1,
                                "the %d ranks did not agree within the deadline", comm->size)
                 : tegula__fail(&comm->error, TEGULA_TIMEOUT, NULL, -1,
                                "%s did not come to an agreement of %d ranks within the deadline",
                                names, comm->size),
      "a rank that is gone, stopped, or waits for storage; give more time where it is only slow");
  comm->error.rank = first;
}

/* Rank 0 and 1: collects tokens, and composes the message unless that is rank 0's turn. */
static bool report(tegula_comm *comm) {
  char *come = comm->size <= 65536 ? __builtin_alloca((size_t)comm->size) : NULL;
  if (come == NULL) return false;
  memset(come, 0, (size_t)comm->size);
  come[comm->rank] = 1;
  double until = tegula__now() + collect_for;
  for (tegula__pause pause = {0}; tegula__now() < until; tegula__comm_pause(&pause))
    for (int32_t i = 0; i < comm->size; i++)
      if (!come[i]) come[i] = (char)has_come(comm, i);
  if (comm->rank == 1 && come[0]) return false;
  compose(comm, come);
  /* a late one hears it, too */
  for (int32_t i = 0; i < comm->size; i++)
    tell(comm, &comm->error, sizeof comm->error, i, TEGULA__TAG_REPORT);
  return true;
}

/* The others: what one of the two says. */
static bool hear(tegula_comm *comm) {
  double until = tegula__now() + report_for;
  for (tegula__pause pause = {0}; tegula__now() < until; tegula__comm_pause(&pause))
    for (int32_t i = 0; i < 2; i++) {
      bool there = false;
      if (i == comm->rank ||
          comm->plugin->probe(comm->group, i, TEGULA__TAG_REPORT, &there, NULL) != TEGULA_OK ||
          !there)
        continue;
      if (tegula__comm_take(comm, &comm->error, sizeof comm->error, i, TEGULA__TAG_REPORT))
        return true;
    }
  return false;
}

static tegula_status give_up(tegula_comm *comm, tegula_error *err) {
  send_tokens(comm);
  bool known = comm->rank < 2 && report(comm);
  if (!known) known = hear(comm);
  if (!known) {
    tegula__fail(&comm->error, TEGULA_TIMEOUT, NULL, -1,
                 "ranks 0 and 1 of %d did not come to an agreement within the deadline",
                 comm->size);
    comm->error.rank = 0;
  }
  tegula_error why = comm->error;
  return breaks(comm, &why, err);
}

/* ---- the wait ---- */

tegula_status tegula__comm_wait(tegula_comm *comm, tegula_status started,
                                tegula_plugin_request *request, bool collective,
                                tegula_error *err) {
  tegula_error local;
  tegula__error_clear(&local);
  if (started != TEGULA_OK) {
    if (err != NULL) local = *err;
    local.status = started;
    return breaks(comm, &local, err);
  }
  if (collective) comm->step++;
  double began = comm->deadline > 0 ? tegula__now() : 0;
  bool done = false, told = false;
  for (tegula__pause pause = {0}; true; tegula__comm_pause(&pause)) {
    if (comm->plugin->test(comm->group, request, &done, &local) != TEGULA_OK)
      return breaks(comm, &local, err);
    if (done) return TEGULA_OK;
    if (comm->news != NULL && pause.nanoseconds > 0) tegula__news_wait(comm);
    if (comm->deadline <= 0 || pause.nanoseconds == 0) continue;
    double now = tegula__now();
    if (now >= comm->deadline) return give_up(comm, err);
    if (!told && now - began > token_after) {
      send_tokens(comm);
      told = true;
    }
  }
}
