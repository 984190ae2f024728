/* Ranks by MPI: a communicator of our own, and transfers that are started here and tested later.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Built three times (abi.h). MPI is asked for SERIALIZED; with FUNNELED all calls must come from
 * the thread that initialised it. Errors are returned, never fatal. What this plugin has
 * initialised it finalizes; an MPI that somebody else has finalized is not called any more. */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tegula/tegula_plugin.h>

#include "group.h"

enum { SPINS = 200, PAUSE_NS = 200000 };

static tegula_status check(const group *g, int code, const char *what, tegula_error *err) {
  if (code == 0) return TEGULA_OK;
  char text[MPI_ERROR_TEXT + 1] = "";
  int length = 0;
  if (g->mpi.Error_string(code, text, &length) != 0) text[0] = '\0';
  return g->host->fail(err, TEGULA_COMM, NULL, -1, "MPI could not %s: %.300s", what,
                       text[0] != '\0' ? text : "it does not say why");
}

#define CHECK(call, what)                                                                          \
  do {                                                                                             \
    tegula_status status_ = check(g, (call), (what), err);                                         \
    if (status_ != TEGULA_OK) return status_;                                                      \
  } while (0)

/* ---- joining ---- */

static tegula_status initialise(group *g, bool may, tegula_error *err) {
  int flag = 0, provided = 0;
  CHECK(g->mpi.Finalized(&flag), "say whether it was finalized");
  if (flag)
    return g->host->fail(err, TEGULA_COMM, NULL, -1,
                         "MPI was finalized already, no ranks can be joined any more");
  CHECK(g->mpi.Initialized(&flag), "say whether it was initialised");
  if (!flag && !may)
    return g->host->fail(err, TEGULA_COMM, NULL, -1,
                         "MPI must be initialised before its communicator is used");
  if (!flag) {
    CHECK(g->mpi.Init_thread(NULL, NULL, MPI_SERIALIZED, &provided), "be initialised");
    g->ours = true;
  }
  CHECK(g->mpi.Query_thread(&provided), "say how it may be called");
  g->any_thread = provided >= MPI_SERIALIZED;
  if (g->any_thread || provided >= MPI_FUNNELED) return TEGULA_OK;
  /* SINGLE: no other thread of this process may know of it, which is the program's word; ours never
   * call it */
  int main_thread = 0;
  CHECK(g->mpi.Is_thread_main(&main_thread), "say which thread may call it");
  if (main_thread) return TEGULA_OK;
  return g->host->fail(err, TEGULA_COMM, NULL, -1,
                       "MPI was initialised for one thread only, and this is another one");
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static bool is_late(group *g) {
  if (g->seconds <= 0) return false;
  if (g->until <= 0) g->until = now() + g->seconds;
  return now() >= g->until;
}

/* Tests until it is done, and gives the processor away meanwhile: blocking calls of MPI do not,
 * which costs milliseconds each where ranks share one. */
static tegula_status finish(group *g, mpi_handle *request, const char *what, tegula_error *err) {
  int done = 0;
  g->waits = true;
  for (int turns = 0; true; turns++) {
    CHECK(g->mpi.Test(request, &done, MPI_IGNORE), what);
    g->waits = !done;
    if (done) return TEGULA_OK;
    if (is_late(g))
      return g->host->fail(
          err, TEGULA_TIMEOUT, NULL, -1,
          "not all ranks of the communicator came to join it within the deadline of %g s",
          g->seconds);
    if (turns < SPINS)
      sched_yield();
    else
      nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
  }
}

/* ---- processors ---- */

/* Names the machine: ranks that find the same number share its processors. */
static int64_t machine(void) {
  char text[HOST_NAME_MAX + 1] = "";
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  if (gethostname(text, sizeof text - 1) != 0) text[0] = '\0';
  /* FNV-1a */
  for (const char *at = text; *at != '\0'; at++)
    hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
  return (int64_t)hash;
}

static processors granted(void) {
  processors found = {{0}};
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0)
    for (int i = 0; i < CPU_SETSIZE; i++)
      if (CPU_ISSET(i, &mask)) found.words[i / 64] |= UINT64_C(1) << (i % 64);
  return found;
}

static tegula_status send_mask(group *g, const processors *mask, int to, tegula_error *err) {
  const mpi_library *mpi = &g->mpi;
  mpi_handle request = CONSTANT(no_request);
  CHECK(mpi->Isend(mask, sizeof *mask, CONSTANT(byte), to, 0, g->comm, &request), "send");
  return finish(g, &request, "share out processors", err);
}

static tegula_status receive_mask(group *g, processors *mask, int from, tegula_error *err) {
  const mpi_library *mpi = &g->mpi;
  mpi_handle request = CONSTANT(no_request);
  CHECK(mpi->Irecv(mask, sizeof *mask, CONSTANT(byte), from, 0, g->comm, &request), "receive");
  return finish(g, &request, "share out processors", err);
}

/* All that the ranks of this machine may use: the first of them puts it together. */
static tegula_status unite(group *g, const int64_t *machines, int first, tegula_error *err) {
  processors *all = &g->all;
  tegula_status status = TEGULA_OK;
  if (g->rank != first) {
    status = send_mask(g, all, first, err);
    return status == TEGULA_OK ? receive_mask(g, all, first, err) : status;
  }
  for (int i = first + 1; i < g->size && status == TEGULA_OK; i++) {
    if (machines[i] == machines[first]) status = receive_mask(g, &g->theirs, i, err);
    for (size_t k = 0; k < sizeof all->words / sizeof all->words[0]; k++)
      all->words[k] |= g->theirs.words[k];
  }
  for (int i = first + 1; i < g->size && status == TEGULA_OK; i++)
    if (machines[i] == machines[first]) status = send_mask(g, all, i, err);
  return status;
}

/* The processors that the ranks of this machine may use together, shared out among them. */
static tegula_status share_processors(group *g, int64_t *machines, tegula_error *err) {
  const mpi_library *mpi = &g->mpi;
  int first = -1, ranks = 0, count = 0;
  mpi_handle request = CONSTANT(no_request);
  g->machine = machine();
  CHECK(mpi->Iallgather(&g->machine, 1, CONSTANT(int64), machines, 1, CONSTANT(int64), g->comm,
                        &request),
        "find the ranks of this machine");
  tegula_status status = finish(g, &request, "find the ranks of this machine", err);
  if (status != TEGULA_OK) return status;
  for (int i = g->size - 1; i >= 0; i--)
    if (machines[i] == g->machine) {
      first = i;
      ranks++;
    }
  g->all = granted();
  status = unite(g, machines, first, err);
  for (size_t k = 0; k < sizeof g->all.words / sizeof g->all.words[0]; k++)
    count += __builtin_popcountll(g->all.words[k]);
  g->processors = count / ranks > 1 ? count / ranks : 1;
  return status;
}

static void name_library(group *g) {
  char *text = calloc(1, MPI_VERSION_TEXT + 1);
  int length = 0;
  if (text != NULL && g->mpi.Get_library_version(text, &length) == 0) {
    text[strcspn(text, "\n,")] = '\0';
    for (char *at = text; *at != '\0'; at++)
      if ((unsigned char)*at < 0x20) *at = ' ';
    strncpy(g->library, text, sizeof g->library - 1);
  }
  free(text);
}

static tegula_status enter(group *g, const void *handle, size_t handle_size, tegula_error *err) {
  const mpi_library *mpi = &g->mpi;
  mpi_handle parent = CONSTANT(world);
  int inter = 0;
  if (handle != NULL && handle_size != sizeof parent)
    return g->host->fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                         "a communicator of this MPI has %zu bytes, found %zu", sizeof parent,
                         handle_size);
  if (handle != NULL) memcpy(&parent, handle, sizeof parent);
  tegula_status status = initialise(g, handle == NULL, err);
  if (status != TEGULA_OK) return status;
  CHECK(mpi->Comm_test_inter(parent, &inter), "look at the communicator");
  if (inter)
    return g->host->fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                         "an intercommunicator has two groups of ranks, expected one");
  mpi_handle request = CONSTANT(no_request);
  CHECK(mpi->Comm_idup(parent, &g->comm, &request), "duplicate the communicator");
  status = finish(g, &request, "duplicate the communicator", err);
  if (status != TEGULA_OK) return status;
  CHECK(mpi->Comm_set_errhandler(g->comm, CONSTANT(errors_return)), "return errors");
  CHECK(mpi->Comm_rank(g->comm, &g->rank), "say the rank");
  CHECK(mpi->Comm_size(g->comm, &g->size), "say the number of ranks");
  name_library(g);
  int64_t *machines = calloc((size_t)g->size, sizeof *machines);
  if (machines == NULL)
    return g->host->fail(err, TEGULA_OUT_OF_MEMORY, NULL, -1,
                         "could not get memory for a list of %d ranks", g->size);
  status = share_processors(g, machines, err);
  if (status == TEGULA_OK) free(machines); /* else a transfer may still write to it */
  return status;
}

static tegula_status mpi_join_within(const tegula_plugin_host *host, const char *library,
                                     const void *handle, size_t handle_size, double seconds,
                                     void **out, tegula_error *err) {
  group *g = calloc(1, sizeof *g);
  if (g == NULL)
    return host->fail(err, TEGULA_OUT_OF_MEMORY, NULL, -1,
                      "could not get memory for a communicator");
  g->host = host;
  g->seconds = seconds;
  tegula_status status = mpi_open_library(host, library, &g->mpi, err);
  if (status == TEGULA_OK) status = enter(g, handle, handle_size, err);
  if (status == TEGULA_OK)
    *out = g;
  else if (!g->waits)
    free(g);
  return status;
}

static tegula_status mpi_join(const tegula_plugin_host *host, const char *library,
                              const void *handle, size_t handle_size, void **out,
                              tegula_error *err) {
  return mpi_join_within(host, library, handle, handle_size, 0, out, err);
}

static void mpi_leave(void *opaque, bool broken) {
  group *g = opaque;
  int finalized = 1;
  if (!broken && g->mpi.Finalized(&finalized) == 0 && !finalized) {
    g->mpi.Comm_free(&g->comm);
    if (g->ours) g->mpi.Finalize();
  }
  free(g);
}

static int32_t mpi_rank(const void *g) { return ((const group *)g)->rank; }
static int32_t mpi_size(const void *g) { return ((const group *)g)->size; }
static int32_t mpi_processors(const void *g) { return ((const group *)g)->processors; }
static bool mpi_any_thread(const void *g) { return ((const group *)g)->any_thread; }
static const char *mpi_library_name(const void *g) { return ((const group *)g)->library; }

/* ---- transfers ---- */

static void keep(mpi_handle from, tegula_plugin_request *request) {
  request->handle = 0;
  memcpy(&request->handle, &from, sizeof from);
}

static tegula_status mpi_reduce(void *opaque, tegula_plugin_reduction reduction,
                                const int64_t *mine, int64_t *all, int32_t count,
                                tegula_plugin_request *request, tegula_error *err) {
  group *g = opaque;
  const mpi_library *mpi = &g->mpi;
  mpi_handle op = reduction == TEGULA_PLUGIN_MAX   ? CONSTANT(max)
                  : reduction == TEGULA_PLUGIN_SUM ? CONSTANT(sum)
                                                   : CONSTANT(bxor);
  mpi_handle handle = CONSTANT(no_request);
  CHECK(mpi->Iallreduce(mine, all, count, CONSTANT(int64), op, g->comm, &handle),
        "start a reduction");
  keep(handle, request);
  return TEGULA_OK;
}

static tegula_status mpi_broadcast(void *opaque, void *data, int32_t bytes, int32_t root,
                                   tegula_plugin_request *request, tegula_error *err) {
  group *g = opaque;
  const mpi_library *mpi = &g->mpi;
  mpi_handle handle = CONSTANT(no_request);
  CHECK(mpi->Ibcast(data, bytes, CONSTANT(byte), root, g->comm, &handle), "start a broadcast");
  keep(handle, request);
  return TEGULA_OK;
}

static tegula_status mpi_send(void *opaque, const void *data, int32_t bytes, int32_t rank,
                              int32_t tag, tegula_plugin_request *request, tegula_error *err) {
  group *g = opaque;
  const mpi_library *mpi = &g->mpi;
  mpi_handle handle = CONSTANT(no_request);
  CHECK(mpi->Isend(data, bytes, CONSTANT(byte), rank, tag, g->comm, &handle), "send");
  keep(handle, request);
  return TEGULA_OK;
}

static tegula_status mpi_receive(void *opaque, void *data, int32_t bytes, int32_t rank, int32_t tag,
                                 tegula_plugin_request *request, tegula_error *err) {
  group *g = opaque;
  const mpi_library *mpi = &g->mpi;
  mpi_handle handle = CONSTANT(no_request);
  CHECK(mpi->Irecv(data, bytes, CONSTANT(byte), rank, tag, g->comm, &handle), "receive");
  keep(handle, request);
  return TEGULA_OK;
}

static tegula_status mpi_probe(void *opaque, int32_t rank, int32_t tag, bool *there,
                               tegula_error *err) {
  group *g = opaque;
  int flag = 0;
  CHECK(g->mpi.Iprobe(rank, tag, g->comm, &flag, MPI_IGNORE), "look for a message");
  *there = flag != 0;
  return TEGULA_OK;
}

static tegula_status mpi_test(void *opaque, tegula_plugin_request *request, bool *done,
                              tegula_error *err) {
  group *g = opaque;
  mpi_handle handle;
  int flag = 0;
  memcpy(&handle, &request->handle, sizeof handle);
  CHECK(g->mpi.Test(&handle, &flag, MPI_IGNORE), "finish a transfer");
  keep(handle, request);
  *done = flag != 0;
  return TEGULA_OK;
}

/* MPI_Abort of MPICH 4.0 spins for ever where another rank than 0 calls it and rank 0 is stopped. A
 * process that is killed makes the launcher end the others. */
static void *end_process(void *unused) {
  nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
  kill(getpid(), SIGKILL);
  return unused;
}

static void mpi_abort(void *opaque, int32_t code) {
  group *g = opaque;
  pthread_t thread;
  if (pthread_create(&thread, NULL, end_process, NULL) == 0) pthread_detach(thread);
  g->mpi.Abort(g->comm, code);
}

/* ---- the entry ---- */

static const tegula_plugin_comm comm = {
    .struct_size = sizeof comm,
    .join = mpi_join,
    .leave = mpi_leave,
    .rank = mpi_rank,
    .size = mpi_size,
    .processors = mpi_processors,
    .any_thread = mpi_any_thread,
    .library = mpi_library_name,
    .reduce = mpi_reduce,
    .broadcast = mpi_broadcast,
    .send = mpi_send,
    .receive = mpi_receive,
    .probe = mpi_probe,
    .test = mpi_test,
    .abort = mpi_abort,
    .join_within = mpi_join_within,
};

static const tegula_plugin plugin = {.struct_size = sizeof plugin,
                                     .version = TEGULA_PLUGIN_VERSION,
                                     .name = MPI_NAME,
                                     .comm = &comm};

TEGULA_API const tegula_plugin *tegula_plugin_entry(int32_t host_version);
const tegula_plugin *tegula_plugin_entry(int32_t host_version) {
  return host_version == TEGULA_PLUGIN_VERSION ? &plugin : NULL;
}
