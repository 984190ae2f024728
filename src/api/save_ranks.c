/* tegula_save on several ranks.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Rank 0 begins the save as a process alone would, and sends the others the text of it (where which bytes belong, under temporary names). Each rank
 * writes its own tiles there. When all have, rank 0 makes the target visible; when one has not, it takes everything back. Bytes never cross ranks,
 * so the file is that of one process. Chunks, whose places only the process that began can find, are refused. */
#include <stdlib.h>

#include "api/saving.h"

static void mix_text(tegula__call *call, const char *text) {
  tegula__call_mix(call, text != NULL ? text : "", text != NULL ? strlen(text) + 1 : 1);
}

static void describe(tegula__call *call, const tegula_array *array, const char *path, const tegula_save_options *options) {
  tegula__call_tiling(call, array->memory.tiling, array->memory.dtype);
  tegula__call_add(call, "the path", "%s", path);
  tegula__call_add(call, "the dataset", "%s", options->dataset != NULL ? options->dataset : "not given");
  tegula__call_add(call, "the options", "format %.20s, layout %.20s, %lld shards, flags %u, overwrite %d, durable %d",
                   options->format != NULL ? options->format : "not given", options->layout != NULL ? options->layout : "not given",
                   (long long)options->shards, (unsigned)options->flags, options->overwrite, options->durable);
  mix_text(call, options->codec);
  mix_text(call, options->descr);
  tegula__call_mix(call, &options->order, sizeof options->order);
  tegula__call_mix(call, &options->byte_order, sizeof options->byte_order);
}

typedef struct rank_save {
  const tegula_array *array;
  const char *path;
  const tegula_save_options *options;
  tegula__saving saving; /* rank 0's */
  bool begun;
  char *text;
  size_t size;
  tegula__tally tally; /* of the others */
} rank_save;

static tegula_status begin(rank_save *r, tegula_error *err) {
  const tegula__array *memory = &r->array->memory;
  tegula__wanted wanted = {.dtype = memory->dtype, .tiling = memory->tiling, .options = r->options};
  r->begun = true;
  tegula_status status = tegula__saving_begin(&r->saving, r->array->context, r->path, r->options, &wanted, 1, err);
  r->saving.alone = true;
  r->saving.pieces = true;
  if (status != TEGULA_OK) return status;
  if (r->saving.members[0].layout == TEGULA__CHUNKED)
    return tegula__hint(err, tegula__fail(err, TEGULA_UNSUPPORTED, r->path, -1, "cannot save in chunks on %d ranks", r->array->context->comm->size),
                        "take the layout contiguous or virtual, or save from one process");
  return tegula__saving_text(&r->saving, &r->text, err);
}

static tegula_status write_own(rank_save *r, tegula_error *err) {
  const tegula__array *memory = &r->array->memory;
  if (r->begun) return tegula__saving_move(&r->saving, 0, memory->tiles, memory->count, err);
  return tegula__saving_write_by_text(r->array->context, r->text, r->size, memory->tiles, memory->count, r->options, &r->tally, err);
}

/* Each step ends with an agreement, so rank 0 knows at the end whether all is written. */
static tegula_status save(rank_save *r, tegula_error *err) {
  tegula_context *context = r->array->context;
  tegula_comm *comm = context->comm;
  FORWARD(tegula__comm_agree(comm, comm->rank == 0 ? begin(r, err) : TEGULA_OK, err));
  tegula_status status = tegula__share_text(context, &r->text, &r->size, err);
  if (status == TEGULA_OK) status = write_own(r, err);
  return tegula__comm_agree(comm, status, err);
}

tegula_status tegula__save_on_ranks(const tegula_array *array, const char *path, const tegula_save_options *options, tegula_error *err) {
  tegula_comm *comm = array->context->comm;
  tegula_save_options local;
  tegula__call call;
  tegula_error unwanted;
  rank_save r = {.array = array, .path = path, .options = &local};
  if (err == NULL) err = &unwanted;
  tegula_save_options_init(&local);
  tegula__call_init(&call, "tegula_save");
  tegula_status status = tegula__options_copy(&local, sizeof local, FIRST_SAVE_OPTIONS, options, "tegula_save_options", err);
  if (status == TEGULA_OK) status = tegula__tally_start(&r.tally, local.statistics, err);
  if (status == TEGULA_OK) describe(&call, array, path, &local);
  FORWARD(tegula__comm_agree_call(comm, &call, status, err));
  status = save(&r, err);
  int32_t failed = status != TEGULA_OK ? err->rank : -1; /* what is added to the message does not change whose it is */
  if (r.begun)
    status = tegula__saving_end(&r.saving, status, err);
  else
    tegula__tally_end(&r.tally, local.statistics, offsetof(tegula_statistics, seconds_move));
  free(r.text);
  if (status != TEGULA_OK && failed >= 0) err->rank = failed;
  return tegula__comm_agree(comm, status, err);
}
