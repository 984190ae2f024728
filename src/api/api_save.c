/* The public face of saves that are made by one call.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "save/save_later.h"

/* ---- one array ---- */

static tegula_status save_on_ranks(const tegula_array *array, const char *path,
                                   const tegula_save_options *options, tegula_status status,
                                   tegula_error *err) {
  tegula__wanted wanted = {
      .dtype = array->memory.dtype, .tiling = array->memory.tiling, .options = options};
  const tegula__group group = {.arrays = &array, .wanted = &wanted, .count = 1};
  return tegula__save_on_ranks(array->context, &group, path, options, "tegula_save", status, err);
}

tegula_status tegula_save(const tegula_array *array, const char *path,
                          const tegula_save_options *options, tegula_error *err) {
  CHECK_ARGUMENT(array != NULL && path != NULL && path[0] != '\0',
                 "the array is NULL or the path is empty");
  tegula_save_options local;
  tegula__places places;
  tegula_op turn;
  tegula_save_options_init(&local);
  tegula_status status = tegula__options_copy(&local, sizeof local, FIRST_SAVE_OPTIONS, options,
                                              "tegula_save_options", err);
  if (array->context->comm->size > 1) return save_on_ranks(array, path, &local, status, err);
  FORWARD(status);
  FORWARD(tegula__places_of(&path, 1, &places, err));
  tegula__queue_enter(array->context->queue, &turn,
                      &(tegula__touch){.array = array, .places = &places, .places_change = true});
  status = tegula__save(array, path, &local, err);
  tegula__queue_leave(&turn);
  tegula__places_free(&places);
  return status;
}

/* ---- several arrays in one container ---- */

/* What is said of the dataset, in the form of the options of a save. */
static tegula_status take_member(const tegula_save_member *given, tegula_save_options *options,
                                 tegula__wanted *wanted, tegula_error *err) {
  tegula_save_member member;
  tegula_save_member_init(&member);
  FORWARD(tegula__options_copy(&member, sizeof member, FIRST_SAVE_MEMBER, given,
                               "tegula_save_member", err));
  CHECK_ARGUMENT(member.array != NULL, "an array of the group is NULL");
  tegula_save_options_init(options);
  options->dataset = member.dataset;
  options->layout = member.layout;
  options->chunk = member.chunk;
  options->chunk_ndim = member.chunk_ndim;
  options->byte_order = member.byte_order;
  options->codec = member.codec;
  options->fill = member.fill;
  options->descr = member.descr;
  options->attributes = member.attributes;
  options->attribute_count = member.attribute_count;
  *wanted = (tegula__wanted){.dtype = member.array->memory.dtype,
                             .tiling = member.array->memory.tiling,
                             .options = options};
  return TEGULA_OK;
}

/* Members are as far apart as their caller's version of the struct is long. */
static tegula_status take_members(const tegula_save_member *members, tegula__group *g,
                                  tegula_error *err) {
  for (int64_t i = 0; i < g->count; i++) {
    const tegula_save_member *given =
        (const void *)((const char *)members + (size_t)i * members->struct_size);
    FORWARD(take_member(given, &g->options[i], &g->wanted[i], err));
    g->arrays[i] = given->array;
    CHECK_ARGUMENT(given->array->context == members->array->context,
                   "the arrays of a group are of several contexts");
  }
  return TEGULA_OK;
}

static tegula_status save_group(const tegula__group *g, const char *path,
                                const tegula_save_options *options, tegula_error *err) {
  tegula__saving s;
  tegula_status status =
      tegula__saving_begin(&s, g->arrays[0]->context, path, options, g->wanted, g->count, err);
  for (int64_t i = 0; status == TEGULA_OK && i < g->count; i++)
    status =
        tegula__saving_move(&s, i, g->arrays[i]->memory.tiles, g->arrays[i]->memory.count, err);
  return tegula__saving_end(&s, status, err);
}

static tegula_status queue_group(const tegula__group *g, const char *path,
                                 const tegula_save_options *options, tegula_error *err) {
  tegula__places places;
  tegula_op turn;
  FORWARD(tegula__places_of(&path, 1, &places, err));
  tegula__queue_enter(g->arrays[0]->context->queue, &turn,
                      &(tegula__touch){.arrays = (const void *const *)g->arrays,
                                       .array_count = g->count,
                                       .places = &places,
                                       .places_change = true});
  tegula_status status = save_group(g, path, options, err);
  tegula__queue_leave(&turn);
  tegula__places_free(&places);
  return status;
}

tegula_status tegula_save_group(const tegula_save_member *members, int64_t count, const char *path,
                                const tegula_save_options *options, tegula_error *err) {
  CHECK_ARGUMENT(members != NULL && count >= 1 && path != NULL && path[0] != '\0',
                 "there are no members, or the path is empty");
  CHECK_ARGUMENT(members[0].array != NULL, "an array of the group is NULL");
  tegula_context *context = members[0].array->context;
  tegula_save_options local;
  tegula_save_options_init(&local);
  tegula__group g = {.arrays = calloc((size_t)count, sizeof *g.arrays),
                     .options = calloc((size_t)count, sizeof *g.options),
                     .wanted = calloc((size_t)count, sizeof *g.wanted),
                     .count = count};
  bool there = g.arrays != NULL && g.options != NULL && g.wanted != NULL;
  tegula_status status = there ? take_members(members, &g, err)
                               : tegula__out_of_memory(err, count * (int64_t)sizeof *g.options);
  if (status == TEGULA_OK)
    status = tegula__options_copy(&local, sizeof local, FIRST_SAVE_OPTIONS, options,
                                  "tegula_save_options", err);
  if (context->comm->size > 1)
    status = tegula__save_on_ranks(context, &g, path, &local, "tegula_save_group", status, err);
  else if (status == TEGULA_OK)
    status = queue_group(&g, path, &local, err);
  free(g.arrays);
  free(g.options);
  free(g.wanted);
  return status;
}
