/* Saves on several ranks.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Rank 0 begins the save as a process alone would, and sends the others the text of it (where which
 * bytes belong, under temporary names). Each rank writes its own tiles there; of chunks, whose
 * places only rank 0 can find, save_rounds.c says how. When all is written rank 0 makes the target
 * visible; when one rank has failed, it takes everything back. */
#include "save/save_ranks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/share_text.h"
#include "save/save_rounds.h"

/* ---- what must be the same ---- */

static void mix_text(tegula__call *call, const char *text) {
  tegula__call_mix(call, text != NULL ? text : "", text != NULL ? strlen(text) + 1 : 1);
}

static void mix_values(tegula__call *call, const void *data, size_t size) {
  tegula__call_mix(call, &size, sizeof size);
  if (data != NULL && size > 0) tegula__call_mix(call, data, size);
}

/* What a member may say for itself. */
static void mix_member(tegula__call *call, const tegula_save_options *o, tegula_dtype dtype) {
  mix_text(call, o->dataset);
  mix_text(call, o->layout);
  mix_text(call, o->codec);
  tegula__call_mix(call, &o->byte_order, sizeof o->byte_order);
  mix_values(call, o->chunk,
             o->chunk != NULL && o->chunk_ndim > 0 ? (size_t)o->chunk_ndim * sizeof *o->chunk : 0);
  mix_text(call, o->descr);
  mix_values(call, o->fill, o->fill != NULL ? dtype.item_size : 0);
  tegula__call_mix(call, &o->attribute_count, sizeof o->attribute_count);
}

void tegula__call_save(tegula__call *call, const char *path, const tegula_save_options *options,
                       tegula_dtype dtype) {
  tegula__call_add(call, "the path", "%s", path);
  mix_text(call, path); /* the whole of a long one */
  tegula__call_add(call, "the dataset", "%s",
                   options->dataset != NULL ? options->dataset : "not given");
  tegula__call_add(call, "the options",
                   "format %.20s, layout %.20s, %lld shards, flags %u, overwrite %d, durable %d",
                   options->format != NULL ? options->format : "not given",
                   options->layout != NULL ? options->layout : "not given",
                   (long long)options->shards, (unsigned)options->flags, options->overwrite,
                   options->durable);
  tegula__call_settings(call, options->settings, options->setting_count);
  tegula__call_mix(call, &options->order, sizeof options->order);
  mix_member(call, options, dtype);
}

/* One array as it is; of several the number, and the rest as what is added to it. */
static void describe(tegula__call *call, const tegula__group *g, const char *path,
                     const tegula_save_options *options) {
  const tegula__array *first = &g->arrays[0]->memory;
  if (g->count == 1)
    tegula__call_tiling(call, first->tiling, first->dtype);
  else
    tegula__call_add(call, "the arrays", "%lld", (long long)g->count);
  for (int64_t i = 0; g->count > 1 && i < g->count; i++) {
    tegula__call of = {0};
    tegula__call_tiling(&of, g->arrays[i]->memory.tiling, g->arrays[i]->memory.dtype);
    for (int32_t k = 0; k < of.count; k++)
      tegula__call_mix(call, &of.items[k].hash, sizeof of.items[k].hash);
  }
  tegula__call_save(call, path, options, first->dtype);
  for (int64_t i = 0; g->count > 1 && i < g->count; i++)
    mix_member(call, g->wanted[i].options, g->arrays[i]->memory.dtype);
}

/* ---- the text ---- */

/* Rank 0: those of all members, one behind the other. */
static tegula_status write_texts(const tegula__saving *saving, tegula__buffer *all,
                                 tegula_error *err) {
  for (int64_t i = 0; i < saving->member_count; i++) {
    char *text = NULL;
    FORWARD(tegula__saving_text(&saving->members[i], &text, err));
    bool good = tegula__texts_append(all, text);
    free(text);
    if (!good) return tegula__out_of_memory(err, (int64_t)all->size);
  }
  return TEGULA_OK;
}

/* The others: manifest and files of each member. */
static tegula_status read_texts(tegula__rank_save *r, const char *all, size_t size,
                                tegula_error *err) {
  int64_t count = tegula__texts_count(all, size);
  r->manifests = calloc((size_t)count + 1, sizeof *r->manifests);
  r->files = calloc((size_t)count + 1, sizeof *r->files);
  if (r->manifests == NULL || r->files == NULL)
    return tegula__out_of_memory(err, count * (int64_t)sizeof *r->manifests);
  for (const char *at = all, *text; (text = tegula__texts_next(&at, all + size)) != NULL;) {
    tegula__manifest *manifest = &r->manifests[r->count];
    tegula__file_set **files = &r->files[r->count++];
    tegula__manifest_init(manifest);
    FORWARD(tegula__saving_read_text(text, strlen(text), true, manifest, err));
    FORWARD(tegula__file_set_create(r->context->handles, manifest->files, manifest->file_count,
                                    true, files, err));
  }
  return TEGULA_OK;
}

tegula_status tegula__rank_save_share(tegula__rank_save *r, tegula_status status,
                                      tegula_error *err) {
  tegula_comm *comm = r->context->comm;
  tegula__buffer all;
  tegula__buffer_init(&all, TEGULA__MANIFEST_BYTES);
  if (comm->rank == 0) {
    r->begun = true;
    r->saving->alone = true;
    r->saving->pieces = true;
    if (status == TEGULA_OK) status = write_texts(r->saving, &all, err);
  }
  status = tegula__comm_agree(comm, status, err);
  if (status == TEGULA_OK) status = tegula__share_text(r->context, &all.data, &all.size, err);
  if (status == TEGULA_OK && comm->rank != 0) status = read_texts(r, all.data, all.size, err);
  free(all.data); /* not of the buffer any more */
  return tegula__comm_agree(comm, status, err);
}

/* ---- writing ---- */

const tegula__manifest *tegula__rank_save_manifest(const tegula__rank_save *r, int64_t number) {
  return r->begun ? &r->saving->members[number].manifest : &r->manifests[number];
}

bool tegula__rank_save_in_rounds(const tegula__rank_save *r, int64_t number) {
  const tegula__manifest *manifest = tegula__rank_save_manifest(r, number);
  return manifest->part_count > 0 && manifest->parts[0].kind == TEGULA__PART_CHUNKED;
}

tegula__move tegula__rank_save_move_of(tegula__rank_save *r, int64_t number,
                                       const tegula__tile *tiles, int64_t count,
                                       tegula__placer *placer) {
  if (r->begun) return tegula__saving_move_of(r->saving, number, tiles, count, placer);
  return tegula__saving_move_by(&r->manifests[number], r->files[number], tiles, count, r->options,
                                &r->tally);
}

/* Rank 0 is still in the save, and so is what it made: a rank that does not find it looks
 * elsewhere. The error is one of the target's folder, for the user knows no temporary names. */
static tegula_status explain_unseen(const tegula__rank_save *r, tegula_error *err) {
  char folder[sizeof err->path];
  snprintf(folder, sizeof folder, "%s", err->path);
  char *temporary = strstr(folder, "/.tegula-");
  if (temporary != NULL) *temporary = '\0';
  tegula_status status = tegula__fail(err, TEGULA_NOT_FOUND, folder, -1,
                                      "rank %d does not see what rank 0 has made in \"%.500s\": "
                                      "another file system may be mounted there",
                                      r->context->comm->rank, folder);
  err->os_errno = ENOENT;
  return tegula__hint(err, status, "save to a folder that is the same file system on all ranks");
}

tegula_status tegula__rank_save_explain(const tegula__rank_save *r, tegula_status status,
                                        tegula_error *err) {
  if (!r->begun) return status == TEGULA_NOT_FOUND && err != NULL ? explain_unseen(r, err) : status;
  tegula__saving_name_target(r->saving, status, err);
  return status;
}

tegula_status tegula__rank_save_move(tegula__rank_save *r, int64_t number,
                                     const tegula__tile *tiles, int64_t count, tegula_error *err) {
  tegula__placer placer;
  tegula__move move = tegula__rank_save_move_of(r, number, tiles, count, &placer);
  return tegula__rank_save_explain(r, tegula__engine_run(&r->context->engine, &move, err), err);
}

tegula_status tegula__rank_save_array(tegula__rank_save *r, int64_t number,
                                      const tegula__array *array, tegula_error *err) {
  tegula__placer placer;
  if (!tegula__rank_save_in_rounds(r, number))
    return tegula__rank_save_move(r, number, array->tiles, array->count, err);
  tegula__move move = tegula__rank_save_move_of(r, number, array->tiles, array->count, &placer);
  return tegula__rank_save_explain(
      r, tegula__save_rounds(r->context, &move, array->tiling, array->dtype, array->numbers, err),
      err);
}

/* ---- the end ---- */

tegula_status tegula__rank_save_end_here(tegula__rank_save *r, tegula_status status,
                                         tegula_error *err) {
  /* what is added to the message does not change whose it is */
  int32_t failed = status != TEGULA_OK ? err->rank : -1;
  for (int64_t i = 0; i < r->count; i++) {
    if (r->files[i] != NULL) tegula__file_set_destroy(r->files[i]);
    tegula__manifest_free(&r->manifests[i]);
  }
  free(r->manifests);
  free(r->files);
  if (r->begun) {
    tegula__saving_name_target(r->saving, status, err);
    status = tegula__saving_end(r->saving, status, err);
  } else {
    tegula__tally_end(&r->tally, r->options->statistics, offsetof(tegula_statistics, seconds_move));
  }
  if (status != TEGULA_OK && failed >= 0) err->rank = failed;
  return status;
}

tegula_status tegula__rank_save_end(tegula__rank_save *r, tegula_status status, tegula_error *err) {
  return tegula__comm_agree(r->context->comm, tegula__rank_save_end_here(r, status, err), err);
}

tegula_status tegula__rank_save_begin(tegula__rank_save *r, const tegula__group *g,
                                      const char *said, const char *path, const char *name,
                                      tegula_status status, tegula_error *err) {
  tegula_comm *comm = r->context->comm;
  tegula__call call;
  tegula__call_init(&call, name);
  if (status == TEGULA_OK) status = tegula__tally_start(&r->tally, r->options->statistics, err);
  if (status == TEGULA_OK) describe(&call, g, said, r->options);
  FORWARD(tegula__comm_agree_call(comm, &call, status, err));
  if (comm->rank == 0)
    status =
        tegula__saving_begin(r->saving, r->context, path, r->options, g->wanted, g->count, err);
  status = tegula__rank_save_share(r, status, err);
  return status == TEGULA_OK ? TEGULA_OK : tegula__rank_save_end(r, status, err);
}
