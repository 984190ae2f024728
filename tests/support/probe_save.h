/* The probe's commands for saves: options, groups, and saves that come tile by tile.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Part of probe.c, which is one compilation unit; nothing else includes this. */
#ifndef TEGULA_TESTS_PROBE_SAVE_H
#define TEGULA_TESTS_PROBE_SAVE_H

#include <pthread.h>

#include "probe_json.h"

enum { PROBE_ATTRIBUTES = 64 };

/* What options of a save point to. */
typedef struct probe_wanted {
  int64_t chunk[TEGULA_MAX_DIMS];
  tegula_attribute attributes[PROBE_ATTRIBUTES];
  int64_t shapes[PROBE_ATTRIBUTES][TEGULA_MAX_DIMS];
  int attribute_count;
  unsigned char *fill;
} probe_wanted;

/* The bytes of a text of hexadecimal digits; NULL for NULL. */
static unsigned char *bytes_of(const char *digits) {
  size_t size = digits ? strlen(digits) / 2 : 0;
  unsigned char *out = digits ? malloc(size + 1) : NULL;
  for (size_t i = 0; out && i < size; i++) {
    unsigned value = 0;
    sscanf(digits + 2 * i, "%2x", &value);
    out[i] = (unsigned char)value;
  }
  return out;
}

/* {"name", "type", "shape": list or null, "values": digits or "texts": list}. */
static void attribute_read(const json_t *given, tegula_attribute *attribute,
                           int64_t shape[TEGULA_MAX_DIMS]) {
  const json_t *lengths = json_object_get(given, "shape"), *list = json_object_get(given, "texts");
  *attribute = (tegula_attribute){
      .struct_size = sizeof *attribute, .name = text(given, "name"), .type = text(given, "type")};
  if (json_is_array(lengths)) {
    attribute->ndim = numbers(lengths, shape);
    attribute->shape = shape;
    attribute->count = 1;
    for (int32_t k = 0; k < attribute->ndim; k++) {
      attribute->count *= shape[k];
    }
  }
  attribute->values = bytes_of(text(given, "values"));
  const char **texts = list ? calloc(json_array_size(list) + 1, sizeof *texts) : NULL;
  for (size_t i = 0; texts && i < json_array_size(list); i++) {
    texts[i] = json_string_value(json_array_get(list, i));
  }
  attribute->texts = texts;
}

static void wanted_read(const json_t *command, probe_wanted *wanted) {
  const json_t *list = json_object_get(command, "attributes");
  memset(wanted, 0, sizeof *wanted);
  numbers(json_object_get(command, "chunk"), wanted->chunk);
  wanted->fill = bytes_of(text(command, "fill"));
  for (size_t i = 0; i < json_array_size(list) && i < PROBE_ATTRIBUTES; i++) {
    attribute_read(json_array_get(list, i), &wanted->attributes[i], wanted->shapes[i]);
    wanted->attribute_count++;
  }
}

static void wanted_free(probe_wanted *wanted) {
  for (int i = 0; i < wanted->attribute_count; i++) {
    free((void *)(uintptr_t)wanted->attributes[i].values);
    free((void *)(uintptr_t)wanted->attributes[i].texts);
  }
  free(wanted->fill);
}

static void save_options_read(const json_t *command, probe_wanted *wanted,
                              tegula_save_options *options) {
  const char *order = text(command, "order"), *byte_order = text(command, "byte_order");
  const json_t *chunk = json_object_get(command, "chunk");
  wanted_read(command, wanted);
  tegula_save_options_init(options);
  options->format = text(command, "format");
  options->descr = text(command, "descr");
  options->shards = number(command, "shards", 0);
  options->order = order ? order[0] : 0;
  options->byte_order = byte_order ? byte_order[0] : 0;
  options->overwrite = (uint8_t)flag(command, "overwrite");
  options->durable = (uint8_t)flag(command, "durable");
  options->flags = flag(command, "whole_file") ? TEGULA_SAVE_WHOLE_FILE : 0;
  options->dataset = text(command, "dataset");
  options->layout = text(command, "layout");
  options->codec = text(command, "codec");
  options->chunk = chunk ? wanted->chunk : NULL;
  options->chunk_ndim = (int32_t)json_array_size(chunk);
  options->fill = wanted->fill;
  options->attributes = wanted->attribute_count ? wanted->attributes : NULL;
  options->attribute_count = wanted->attribute_count;
}

/* ---- groups ---- */

/* Puts the array aside: the next one is another, and a group can have both. */
static json_t *do_keep(probe_state *state, const json_t *command) {
  (void)command;
  if (!state->array || state->kept_count == PROBE_KEPT) {
    return misuse(state, "there is no array, or too many are kept");
  }
  state->kept[state->kept_count++] = state->array;
  state->array = NULL;
  state->blocks = NULL;
  return json_pack("{s:i}", "kept", state->kept_count);
}

static void kept_drop(probe_state *state) {
  while (state->kept_count > 0) {
    tegula_array_destroy(state->kept[--state->kept_count]);
  }
}

static void member_read(const probe_state *state, const json_t *given, probe_wanted *wanted,
                        tegula_save_member *member) {
  const char *byte_order = text(given, "byte_order");
  const json_t *chunk = json_object_get(given, "chunk");
  int64_t array = number(given, "array", 0);
  wanted_read(given, wanted);
  tegula_save_member_init(member);
  member->array = array >= 0 && array < state->kept_count ? state->kept[array] : NULL;
  member->dataset = text(given, "dataset");
  member->layout = text(given, "layout");
  member->codec = text(given, "codec");
  member->chunk = chunk ? wanted->chunk : NULL;
  member->chunk_ndim = (int32_t)json_array_size(chunk);
  member->byte_order = byte_order ? byte_order[0] : 0;
  member->fill = wanted->fill;
  member->attributes = wanted->attribute_count ? wanted->attributes : NULL;
  member->attribute_count = wanted->attribute_count;
}

/* "members": [{"array": its number among the kept ones, "dataset", "layout", ...}], "path",
 * "overwrite", ... */
static json_t *do_save_group(probe_state *state, const json_t *command) {
  const json_t *list = json_object_get(command, "members");
  int64_t count = (int64_t)json_array_size(list);
  tegula_save_member *members = calloc((size_t)count + 1, sizeof *members);
  probe_wanted *wanted = calloc((size_t)count + 1, sizeof *wanted), of_all;
  tegula_save_options options;
  tegula_error error;
  if (!members || !wanted) {
    abort();
  }
  for (int64_t i = 0; i < count; i++) {
    member_read(state, json_array_get(list, (size_t)i), &wanted[i], &members[i]);
  }
  tegula_statistics statistics;
  tegula_statistics_init(&statistics);
  save_options_read(command, &of_all, &options);
  options.statistics = &statistics;
  tegula_status status = tegula_save_group(members, count, text(command, "path"), &options, &error);
  for (int64_t i = 0; i < count; i++) {
    wanted_free(&wanted[i]);
  }
  wanted_free(&of_all);
  free(wanted);
  free(members);
  return status == TEGULA_OK ? json_pack("{s:o}", "statistics", statistics_answer(&statistics))
                             : error_answer(state, status, &error);
}

/* ---- tile by tile ---- */

/* "dtype", "path" and options; the tiling is the probe's. */
static json_t *do_save_begin(probe_state *state, const json_t *command) {
  tegula_dtype dtype;
  tegula_error error;
  probe_wanted wanted;
  tegula_save_options options;
  tegula_saving *saving = NULL;
  save_options_read(command, &wanted, &options);
  tegula_status status = tegula_dtype_parse(text(command, "dtype"), &dtype, &error);
  if (status == TEGULA_OK) {
    status = tegula_save_begin(state->context, dtype, state->tiling, text(command, "path"),
                               &options, &saving, &error);
  }
  wanted_free(&wanted);
  if (status != TEGULA_OK) {
    return error_answer(state, status, &error);
  }
  tegula_save_abandon(state->saving);
  state->saving = saving;
  return json_object();
}

typedef struct probe_tile {
  pthread_t thread;
  probe_state *state;
  const char *token;
  probe_block block;
  tegula_status status;
  tegula_error error;
} probe_tile;

static void *tile_run(void *state) {
  probe_tile *tile = state;
  tile->status = tile->token
                     ? tegula_save_tile_from(tile->state->context, tile->token, &tile->block.view,
                                             &tile->error)
                     : tegula_save_tile(tile->state->saving, &tile->block.view, &tile->error);
  return NULL;
}

/* {"box", "values": a file with its elements in C order}; false when they do not fit. */
static int tile_make(probe_tile *tile, const json_t *given, tegula_dtype dtype) {
  tegula_box box;
  size_t size = 0;
  box_read(json_object_get(given, "box"), &box);
  probe_block_make(&tile->block, dtype, &box, json_object_get(given, "layout"));
  unsigned char *values = file_read(text(given, "values"), &size);
  int fits = values && size == (size_t)probe_box_count(&box) * dtype.item_size;
  if (fits) {
    probe_copy copy = {values, dtype.item_size};
    probe_view_walk(&tile->block.view, probe_item_in, &copy);
  }
  free(values);
  return fits;
}

/* "tiles": at once from a thread each, or with "turn" one after the other; by "token" or to the
 * save that was begun here. */
static json_t *do_save_tiles(probe_state *state, const json_t *command) {
  const json_t *list = json_object_get(command, "tiles");
  size_t count = json_array_size(list);
  probe_tile *tiles = calloc(count + 1, sizeof *tiles);
  tegula_dtype dtype;
  json_t *answer = NULL;
  if (!tiles) {
    abort();
  }
  if (tegula_dtype_parse(text(command, "dtype"), &dtype, NULL) != TEGULA_OK) {
    answer = misuse(state, "no such dtype");
  }
  for (size_t i = 0; i < count && !answer; i++) {
    tiles[i].state = state;
    tiles[i].token = text(command, "token");
    if (!tile_make(&tiles[i], json_array_get(list, i), dtype)) {
      answer = misuse(state, "the values do not fit a tile");
    }
  }
  int run = !answer, turn = flag(command, "turn");
  for (size_t i = 0; run && i < count; i++) {
    if (turn) {
      tile_run(&tiles[i]);
    } else if (pthread_create(&tiles[i].thread, NULL, tile_run, &tiles[i])) {
      abort();
    }
  }
  for (size_t i = 0; i < count; i++) {
    if (run && !turn) {
      pthread_join(tiles[i].thread, NULL);
    }
    if (run && tiles[i].status != TEGULA_OK && !answer) {
      answer = error_answer(state, tiles[i].status, &tiles[i].error);
    }
    free(tiles[i].block.base);
  }
  free(tiles);
  return answer ? answer : json_object();
}

static json_t *do_save_token(probe_state *state, const json_t *command) {
  (void)command;
  char *out = NULL;
  tegula_error error;
  tegula_status status = tegula_saving_to_json(state->saving, &out, &error);
  if (status != TEGULA_OK) {
    return error_answer(state, status, &error);
  }
  json_t *answer = json_pack("{s:s}", "token", out);
  tegula_free(out);
  return answer;
}

static json_t *do_save_commit(probe_state *state, const json_t *command) {
  (void)command;
  tegula_error error;
  tegula_saving *saving = state->saving;
  state->saving = NULL;
  tegula_status status = tegula_save_commit(saving, &error);
  return status == TEGULA_OK ? json_object() : error_answer(state, status, &error);
}

static json_t *do_save_abandon(probe_state *state, const json_t *command) {
  (void)command;
  tegula_save_abandon(state->saving);
  state->saving = NULL;
  return json_object();
}

#endif
