/* tegula_copy on several ranks: the windows are dealt out, and written as a save on ranks is.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Window i is rank i % ranks', which reads and writes it by itself, the next one in the background.
 * Chunks go in rounds, a window of each rank at a time, so they get their places in the order in
 * which one process writes them. */
#include <stdlib.h>

#include "copy/copy.h"
#include "save/save_later.h"
#include "save/save_rounds.h"

static void describe(tegula__call *call, const tegula__copying *c,
                     const tegula_save_options *options) {
  tegula__call_dataset(call, c->dataset);
  tegula__call_save(call, c->path, options, c->dataset->manifest.dtype);
  tegula__call_add(call, "the options of the copy", "memory %lld, %lld tiles, missing %u, flags %u",
                   (long long)c->options.memory, (long long)c->options.tiles, c->options.missing,
                   c->options.flags);
}

/* Bytes of a window, the same on all ranks. In rounds all of a window is encoded before it is
 * written: that counts, too. */
static tegula_status agree_window(tegula__copying *c, bool rounds, tegula_error *err) {
  int64_t most = tegula__copying_window_bytes(c),
          memory = c->options.memory > 0 ? c->options.memory : INT64_MAX;
  if (rounds) most = tegula__min(most, tegula__max(1, memory / 4));
  most = -most;
  FORWARD(tegula__comm_reduce(c->dataset->context->comm, TEGULA_PLUGIN_MAX, &most, 1, err));
  c->most = -most;
  return TEGULA_OK;
}

/* ---- in rounds ---- */

typedef struct windows_of_rank {
  tegula__copying *copying;
  tegula__copy_reading *now, *next;
} windows_of_rank;

/* The window before has been encoded, so its memory is free. */
static tegula_status next_tiles(void *state, int64_t round, const tegula__tile **tiles,
                                int64_t *count, tegula_error *err) {
  windows_of_rank *w = state;
  if (w->now != NULL) tegula__copying_done(w->copying, w->now);
  w->now = w->next;
  w->next = NULL;
  if (round == 0) FORWARD(tegula__copying_read(w->copying, &w->now, err));
  *tiles = NULL;
  *count = w->now != NULL;
  if (w->now == NULL) return TEGULA_OK;
  FORWARD(tegula__copying_wait(w->now, tiles, err));
  return tegula__copying_read(w->copying, &w->next, err);
}

static tegula_status copy_rounds(tegula__copying *c, tegula_status ready, tegula_error *err) {
  tegula_context *context = c->dataset->context;
  windows_of_rank w = {.copying = c};
  const tegula__round_tiles tiles = {.next = next_tiles, .state = &w};
  tegula__placer placer;
  tegula__deal deal = {0};
  tegula__move move = tegula__rank_save_move_of(c->ranks, 0, NULL, 0, &placer);
  if (ready == TEGULA_OK)
    ready = tegula__deal_windows(&c->windows, context->comm->size, &deal, err);
  tegula_status status = tegula__save_rounds_dealt(context, &move, &deal, ready, &tiles, err);
  if (w.now != NULL && status == TEGULA_OK)
    tegula__copying_done(c, w.now);
  else
    tegula__copying_give_up(w.now);
  tegula__copying_give_up(w.next);
  return tegula__rank_save_explain(c->ranks, status, err);
}

/* ---- all of it ---- */

static tegula_status copy_elements(tegula__copying *c, tegula_error *err) {
  bool rounds = tegula__rank_save_in_rounds(c->ranks, 0);
  c->target = tegula__rank_save_manifest(c->ranks, 0);
  FORWARD(agree_window(c, rounds, err));
  tegula_status status = tegula__copying_make_blocks(c, err);
  if (rounds)
    status = copy_rounds(c, status, err);
  else if (status == TEGULA_OK)
    status = tegula__copying_windows(c, err);
  tegula__block_free(&c->blocks[0]);
  tegula__block_free(&c->blocks[1]);
  return tegula__comm_agree(c->dataset->context->comm, status, err);
}

static tegula_status write_and_check(tegula__copying *c, tegula_status begun, tegula_error *err) {
  FORWARD(tegula__rank_save_share(c->ranks, begun, err));
  FORWARD(copy_elements(c, err));
  if (c->ranks->begun) tegula__copying_note_target(c);
  return (c->options.flags & TEGULA_COPY_VERIFY) != 0 ? tegula__copying_check_on_ranks(c, err)
                                                      : TEGULA_OK;
}

/* What rank 0 knows, and how many windows all have written. */
static tegula_status share_report(tegula__copying *c, tegula_error *err) {
  tegula_copy_report *report = &c->report;
  int64_t words[4] = {c->ranks->begun ? report->files : 0,
                      c->ranks->begun ? report->stored_bytes : 0, report->dropped, report->windows};
  FORWARD(tegula__comm_reduce(c->dataset->context->comm, TEGULA_PLUGIN_SUM, words, 4, err));
  report->bytes = c->bytes;
  report->files = words[0];
  report->stored_bytes = words[1];
  report->dropped = (uint32_t)words[2];
  report->windows = words[3];
  return TEGULA_OK;
}

static tegula_status copy(tegula__copying *c, tegula__copy_wanted *w, tegula_error *err) {
  tegula_comm *comm = c->dataset->context->comm;
  tegula_dataset *dataset = c->dataset, *view = NULL;
  tegula__rank_save save = {.context = dataset->context, .options = &w->save, .saving = &c->saving};
  FORWARD(tegula__comm_agree(comm, tegula__tally_start(&save.tally, w->save.statistics, err), err));
  tegula__call call;
  tegula__call_init(&call, "the sources of tegula_copy");
  tegula_status status = tegula__dataset_view_all(dataset, NULL, &c->reading.counts, &view, err);
  if (status == TEGULA_OK) tegula__call_view(&call, view);
  status = tegula__comm_agree_call(comm, &call, status, err);
  if (status == TEGULA_OK) {
    c->dataset = view;
    c->ranks = &save;
    status =
        write_and_check(c, comm->rank == 0 ? tegula__copying_prepare(c, w, err) : TEGULA_OK, err);
    status = tegula__rank_save_end(&save, status, err);
  }
  if (status == TEGULA_OK) status = share_report(c, err);
  c->dataset = dataset;
  tegula_dataset_close(view);
  return status;
}

tegula_status tegula__copy_on_ranks(tegula__copying *c, tegula__copy_wanted *w,
                                    tegula_status status, tegula_error *err) {
  tegula_statistics *statistics = w->save.statistics;
  tegula__call call;
  tegula_error unwanted;
  if (err == NULL) err = &unwanted;
  tegula__call_init(&call, "tegula_copy");
  if (status == TEGULA_OK) status = tegula__tally_start(&c->reading, statistics, err);
  if (status == TEGULA_OK) describe(&call, c, &w->save);
  if (status == TEGULA_OK)
    FORWARD(tegula__later_end_of_paths(c->dataset->context, &c->path, 1, call.name, err));
  FORWARD(tegula__comm_agree_call(c->dataset->context->comm, &call, status, err));
  status = copy(c, w, err);
  c->reading.start = tegula__now(); /* the time is that of the save */
  tegula__tally_end(&c->reading, statistics, offsetof(tegula_statistics, seconds_move));
  return status;
}
