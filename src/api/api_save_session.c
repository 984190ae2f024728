/* The public face of saves piece by piece: begun, written to by whoever has a tile, in this process
 * or another, and ended.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "save/save_later.h"

struct tegula_saving {
  tegula__saving saving;
  tegula_context *context;
  tegula__places places;
  tegula__rank_save ranks;     /* on several; `saving` is rank 0's then */
  tegula_save_options options; /* what `ranks` points at */
};

/* A place in the order of operations for the path alone. */
static void enter(tegula_saving *s, tegula_op *turn) {
  tegula__queue_enter(s->context->queue, turn,
                      &(tegula__touch){.places = &s->places, .places_change = true});
}

static bool on_ranks(const tegula_saving *s) { return s->context->comm->size > 1; }

static void release(tegula_saving *s) {
  tegula__places_free(&s->places);
  tegula__context_release(s->context);
  free(s);
}

static tegula_status begin_alone(tegula_saving *s, const char *path, const tegula__wanted *wanted,
                                 tegula_error *err) {
  tegula_op turn;
  enter(s, &turn);
  tegula_status status =
      tegula__saving_begin(&s->saving, s->context, path, &s->options, wanted, 1, err);
  s->saving.pieces = true;
  if (status != TEGULA_OK) tegula__saving_end(&s->saving, status, err);
  tegula__queue_leave(&turn);
  return status;
}

/* Rank 0 would have to be asked for the place of each chunk, while it is anywhere. */
static tegula_status begin_for_all(tegula_saving *s, const char *path, const tegula__wanted *wanted,
                                   tegula_error *err) {
  tegula_status status =
      tegula__saving_begin(&s->saving, s->context, path, &s->options, wanted, 1, err);
  if (status != TEGULA_OK || s->saving.members[0].layout != TEGULA__CHUNKED) return status;
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_UNSUPPORTED, path, -1,
                                   "cannot save in chunks piece by piece on %d ranks",
                                   s->context->comm->size),
                      "save the whole array at once, or take the layout contiguous or virtual");
}

/* `rooted`: the path as it is here. */
static tegula_status begin_on_ranks(tegula_saving *s, const char *path, const char *rooted,
                                    const tegula__wanted *wanted, tegula_status status,
                                    tegula_error *err) {
  tegula_comm *comm = s->context->comm;
  tegula__call call;
  tegula__call_init(&call, "tegula_save_begin");
  s->ranks =
      (tegula__rank_save){.context = s->context, .options = &s->options, .saving = &s->saving};
  if (status == TEGULA_OK)
    status = tegula__tally_start(&s->ranks.tally, s->options.statistics, err);
  if (status == TEGULA_OK) {
    tegula__call_tiling(&call, wanted->tiling, wanted->dtype);
    tegula__call_save(&call, path, &s->options, wanted->dtype);
  }
  if (status == TEGULA_OK)
    FORWARD(tegula__later_end_of_paths(s->context, &path, 1, call.name, err));
  FORWARD(tegula__comm_agree_call(comm, &call, status, err));
  status = tegula__rank_save_share(
      &s->ranks, comm->rank == 0 ? begin_for_all(s, rooted, wanted, err) : TEGULA_OK, err);
  return status == TEGULA_OK ? TEGULA_OK : tegula__rank_save_end(&s->ranks, status, err);
}

static tegula_status check_begin(tegula_saving *s, tegula_dtype dtype, const tegula_tiling *tiling,
                                 const char *path, const tegula_save_options *options,
                                 tegula_error *err) {
  int64_t bytes;
  CHECK_ARGUMENT(tegula__dtype_valid(dtype), "the dtype makes no sense");
  FORWARD(tegula__options_copy(&s->options, sizeof s->options, FIRST_SAVE_OPTIONS, options,
                               "tegula_save_options", err));
  if (!tegula__shape_bytes(tiling->shape, tiling->ndim, dtype.item_size, &bytes))
    return tegula__fail(err, TEGULA_LIMIT_EXCEEDED, path, -1,
                        "the array would have more than 2^63 bytes");
  return tegula__places_of(&path, 1, &s->places, err);
}

tegula_status tegula_save_begin(tegula_context *context, tegula_dtype dtype,
                                const tegula_tiling *tiling, const char *path,
                                const tegula_save_options *options, tegula_saving **out,
                                tegula_error *err) {
  CHECK_ARGUMENT(context != NULL && tiling != NULL && path != NULL && path[0] != '\0' &&
                     out != NULL,
                 "the context, the tiling or the place for the save is NULL, or the path is empty");
  tegula_error unwanted;
  if (err == NULL) err = &unwanted;
  tegula_saving *s = calloc(1, sizeof *s);
  /* the program may go into another folder before it is ended */
  char *rooted = tegula__io_rooted(path);
  if (s == NULL || rooted == NULL) {
    free(s);
    free(rooted);
    return tegula__comm_agree(context->comm, tegula__out_of_memory(err, sizeof *s), err);
  }
  s->context = tegula__context_retain(context);
  tegula_save_options_init(&s->options);
  tegula_status status = check_begin(s, dtype, tiling, path, options, err);
  tegula__wanted wanted = {
      .dtype = tegula_dtype_native(dtype), .tiling = tiling, .options = &s->options};
  if (on_ranks(s))
    status = begin_on_ranks(s, path, rooted, &wanted, status, err);
  else if (status == TEGULA_OK)
    status = begin_alone(s, rooted, &wanted, err);
  free(rooted);
  if (status == TEGULA_OK)
    *out = s;
  else
    release(s);
  return status;
}

/* The view as a tile; its box lies in the shape. */
static tegula_status check_view(const tegula_view *view, const tegula__manifest *manifest,
                                tegula__tile *out, tegula_error *err) {
  CHECK_ARGUMENT(view != NULL, "the tile is NULL");
  CHECK_ARGUMENT(view->device_type == 0 || view->device_type == TEGULA_DEVICE_HOST,
                 "the tile is not in host memory");
  CHECK_ARGUMENT(view->box.ndim == manifest->ndim,
                 "the tile has another number of axes than the array");
  CHECK_ARGUMENT(tegula_dtype_same(view->dtype, manifest->dtype),
                 "the tile has another dtype than the array");
  for (int32_t k = 0; k < manifest->ndim; k++)
    CHECK_ARGUMENT(view->box.lo[k] >= 0 && view->box.lo[k] <= view->box.hi[k] &&
                       view->box.hi[k] <= manifest->shape[k],
                   "the tile reaches out of the array");
  CHECK_ARGUMENT(view->data != NULL ||
                     tegula__box_count(manifest->ndim, view->box.lo, view->box.hi) == 0,
                 "the tile has no memory");
  *out = (tegula__tile){.lo = view->box.lo,
                        .hi = view->box.hi,
                        .strides = view->stride_bytes,
                        .data = view->data,
                        .order = view->dtype.order};
  return TEGULA_OK;
}

tegula_status tegula_save_tile(tegula_saving *saving, const tegula_view *view, tegula_error *err) {
  CHECK_ARGUMENT(saving != NULL, "the save is NULL");
  tegula__tile tile;
  if (on_ranks(saving)) {
    FORWARD(check_view(view, tegula__rank_save_manifest(&saving->ranks, 0), &tile, err));
    return tegula__rank_save_move(&saving->ranks, 0, &tile, 1, err);
  }
  FORWARD(check_view(view, &saving->saving.members[0].manifest, &tile, err));
  return tegula__saving_move(&saving->saving, 0, &tile, 1, err);
}

tegula_status tegula_saving_to_json(const tegula_saving *saving, char **out, tegula_error *err) {
  CHECK_ARGUMENT(saving != NULL && out != NULL, "the save or the place for the text is NULL");
  if (on_ranks(saving))
    return tegula__saving_write_text(tegula__rank_save_manifest(&saving->ranks, 0), out, err);
  const tegula__member *m = &saving->saving.members[0];
  if (m->layout == TEGULA__CHUNKED)
    return tegula__fail(err, TEGULA_UNSUPPORTED, saving->saving.path, -1,
                        "only the process that began a chunked save can write to it: it finds the "
                        "places of chunks");
  return tegula__saving_text(m, out, err);
}

static tegula_status write_tile(tegula_context *context, const tegula__manifest *manifest,
                                const tegula__tile *tile, tegula_error *err) {
  tegula__file_set *files = NULL;
  tegula__tally tally = {0};
  tegula_save_options options;
  tegula_save_options_init(&options);
  /* here: the process that commits may be on another machine */
  options.durable = manifest->durable;
  FORWARD(tegula__file_set_create(context->handles, manifest->files, manifest->file_count, true,
                                  &files, err));
  tegula__move move = tegula__saving_move_by(manifest, files, tile, 1, &options, &tally);
  tegula_status status = tegula__engine_run(&context->engine, &move, err);
  tegula__file_set_destroy(files);
  return tegula__saving_explain_ended(status, err);
}

tegula_status tegula_save_tile_from(tegula_context *context, const char *json,
                                    const tegula_view *view, tegula_error *err) {
  CHECK_ARGUMENT(context != NULL && json != NULL, "the context or the text is NULL");
  tegula__manifest manifest;
  tegula__tile tile;
  tegula__manifest_init(&manifest);
  tegula_status status = tegula__saving_read_text(json, strlen(json), false, &manifest, err);
  if (status == TEGULA_OK) status = check_view(view, &manifest, &tile, err);
  if (status == TEGULA_OK) status = write_tile(context, &manifest, &tile, err);
  tegula__manifest_free(&manifest);
  return status;
}

static tegula_status end(tegula_saving *s, tegula_status status, tegula_error *err) {
  tegula_op turn;
  enter(s, &turn);
  status = tegula__saving_end(&s->saving, status, err);
  tegula__queue_leave(&turn);
  release(s);
  return status;
}

/* A rank that gives up while others commit: it was given up. */
static tegula_status end_on_ranks(tegula_saving *s, tegula_status status, tegula_error *err) {
  tegula__call call;
  tegula__call_init(&call, "tegula_save_commit");
  status = tegula__comm_agree_call(s->context->comm, &call, status, err);
  status = tegula__rank_save_end(&s->ranks, status, err);
  release(s);
  return status;
}

tegula_status tegula_save_commit(tegula_saving *saving, tegula_error *err) {
  CHECK_ARGUMENT(saving != NULL, "the save is NULL");
  tegula_error unwanted;
  if (err == NULL) err = &unwanted;
  return on_ranks(saving) ? end_on_ranks(saving, TEGULA_OK, err) : end(saving, TEGULA_OK, err);
}

void tegula_save_abandon(tegula_saving *saving) {
  tegula_error error;
  if (saving == NULL) return;
  tegula_status status = tegula__fail(&error, TEGULA_CANCELLED, NULL, -1, "the save was given up");
  (void)(on_ranks(saving) ? end_on_ranks(saving, status, &error) : end(saving, status, &error));
}
