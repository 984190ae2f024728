/* tegula_copy: from a dataset to a save, window by window.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "copy/copy.h"

static tegula_status copy_elements(tegula__copying *c, tegula_error *err) {
  c->target = &c->saving.members[0].manifest;
  c->most = tegula__copying_window_bytes(c);
  tegula_status status = tegula__copying_make_blocks(c, err);
  if (status == TEGULA_OK) status = tegula__copying_windows(c, err);
  tegula__block_free(&c->blocks[0]);
  tegula__block_free(&c->blocks[1]);
  return status;
}

static tegula_status save_copy(tegula__copying *c, tegula__copy_wanted *w, tegula_error *err) {
  tegula__saving *s = &c->saving;
  tegula_status status = tegula__copying_prepare(c, w, err);
  if (!c->begun) return status;
  if (status == TEGULA_OK) status = copy_elements(c, err);
  if (status == TEGULA_OK) tegula__copying_note_target(c);
  if ((c->options.flags & TEGULA_COPY_VERIFY) != 0) {
    s->check = tegula__copying_check;
    s->check_state = c;
  }
  return tegula__saving_end(s, status, err);
}

static tegula_status copy(tegula__copying *c, tegula__copy_wanted *w, tegula_error *err) {
  tegula_statistics *statistics = w->save.statistics;
  FORWARD(tegula__tally_start(&c->reading, statistics, err));
  tegula_dataset *dataset = c->dataset, *view = NULL;
  tegula_status status = tegula__dataset_confirm(dataset, &c->reading.counts, err);
  if (status == TEGULA_OK)
    status = tegula__dataset_view_all(dataset, NULL, &c->reading.counts, &view, err);
  if (status == TEGULA_OK) {
    c->dataset = view;
    status = save_copy(c, w, err);
  }
  c->reading.start = tegula__now(); /* the time is that of the save */
  tegula__tally_end(&c->reading, statistics, offsetof(tegula_statistics, seconds_move));
  c->dataset = dataset;
  tegula_dataset_close(view);
  return status;
}

/* Takes the copy's turn: it reads some places and changes one. */
static tegula_status queue_copy(tegula__copying *c, tegula__copy_wanted *w, tegula_error *err) {
  tegula__places places;
  tegula_op turn;
  FORWARD(tegula__places_of(&c->path, 1, &places, err));
  tegula__queue_enter(
      c->dataset->context->queue, &turn,
      &(tegula__touch){.places = &places, .places_change = true, .reads = &c->dataset->places});
  tegula_status status = copy(c, w, err);
  tegula__queue_leave(&turn);
  tegula__places_free(&places);
  return status;
}

static tegula_status check_options(const tegula_copy_options *o, tegula_error *err) {
  CHECK_ARGUMENT(o->memory >= 0 && o->tiles >= 0, "memory and tiles must not be negative");
  CHECK_ARGUMENT(o->missing <= TEGULA_MISSING_FILL, "missing is none of TEGULA_MISSING_*");
  CHECK_ARGUMENT((o->flags & ~(TEGULA_COPY_VERIFY | TEGULA_COPY_STRICT | TEGULA_COPY_ALONG)) == 0,
                 "a flag is not known");
  return TEGULA_OK;
}

static tegula_status take_options(tegula__copying *c, tegula__copy_wanted *w,
                                  const tegula_save_options *options,
                                  const tegula_copy_options *copy_options,
                                  tegula_copy_report *report, tegula_error *err) {
  FORWARD(tegula__options_copy(&w->save, sizeof w->save, FIRST_SAVE_OPTIONS, options,
                               "tegula_save_options", err));
  FORWARD(tegula__options_copy(&c->options, sizeof c->options, FIRST_COPY_OPTIONS, copy_options,
                               "tegula_copy_options", err));
  FORWARD(check_options(&c->options, err));
  if (report != NULL)
    FORWARD(tegula__info_copy(report, sizeof c->report, FIRST_COPY_REPORT, &c->report,
                              "tegula_copy_report", err));
  c->progress = w->save.progress;
  c->progress_state = w->save.progress_state;
  c->total = (c->options.flags & TEGULA_COPY_VERIFY) != 0 ? 3 * c->bytes : c->bytes;
  w->save.progress = tegula__copying_progress;
  w->save.progress_state = c;
  return TEGULA_OK;
}

tegula_status tegula_copy(tegula_dataset *dataset, const char *path,
                          const tegula_save_options *options,
                          const tegula_copy_options *copy_options, tegula_copy_report *report,
                          tegula_error *err) {
  CHECK_ARGUMENT(dataset != NULL && path != NULL && path[0] != '\0',
                 "the dataset is NULL or the path is empty");
  tegula__copying c = {.dataset = dataset, .path = path};
  tegula__copy_wanted w = {0};
  tegula_save_options_init(&w.save);
  tegula_copy_options_init(&c.options);
  tegula_copy_report_init(&c.report);
  tegula__buffer_init(&w.codec, 4096);
  pthread_mutex_init(&c.lock, NULL);
  const tegula__manifest *manifest = &dataset->manifest;
  /* finish has checked it */
  tegula__shape_bytes(manifest->shape, manifest->ndim, manifest->dtype.item_size, &c.bytes);
  tegula_status status = take_options(&c, &w, options, copy_options, report, err);
  bool known = status == TEGULA_OK;
  if (dataset->context->comm->size > 1)
    status = tegula__copy_on_ranks(&c, &w, status, err);
  else if (known)
    status = queue_copy(&c, &w, err);
  tegula__tiling_release(w.tiling);
  tegula__buffer_free(&w.codec);
  pthread_mutex_destroy(&c.lock);
  if (report != NULL && known)
    FORWARD(tegula__info_copy(report, sizeof c.report, FIRST_COPY_REPORT, &c.report,
                              "tegula_copy_report", err));
  return status;
}
