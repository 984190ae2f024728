/* The rule of struct_size, tried on every struct of the public header that has one.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Part of probe.c, which is one compilation unit; nothing else includes this. */
#ifndef TEGULA_TESTS_PROBE_SIZES_H
#define TEGULA_TESTS_PROBE_SIZES_H

#include "probe_json.h"

typedef union probe_sized {
  size_t struct_size;
  max_align_t align;
  unsigned char bytes[4096];
} probe_sized;

static void init_context(void *options) { tegula_context_options_init(options); }
static void init_open(void *options) { tegula_open_options_init(options); }
static void init_array(void *options) { tegula_array_options_init(options); }
static void init_load(void *options) { tegula_load_options_init(options); }
static void init_save(void *options) { tegula_save_options_init(options); }
static void init_statistics(void *options) { tegula_statistics_init(options); }
static void init_info(void *options) { tegula_dataset_info_init(options); }
static void init_file(void *options) { tegula_file_info_init(options); }

static tegula_status size_context(probe_state *state, const json_t *command, void *options) {
  (void)state;
  (void)command;
  tegula_context *context = NULL;
  tegula_status status = tegula_context_create(options, NULL, &context, NULL);
  tegula_context_destroy(context);
  return status;
}

static tegula_status size_open(probe_state *state, const json_t *command, void *options) {
  tegula_dataset *dataset = NULL;
  tegula_status status =
      tegula_dataset_open(state->context, text(command, "path"), options, &dataset, NULL);
  tegula_dataset_close(dataset);
  return status;
}

static tegula_status size_array(probe_state *state, const json_t *command, void *options) {
  (void)command;
  tegula_dtype dtype = {.kind = 'u', .order = '|', .item_size = 1};
  tegula_array *array = NULL;
  tegula_status status =
      tegula_array_create(state->context, dtype, state->tiling, options, &array, NULL);
  tegula_array_destroy(array);
  return status;
}

static tegula_status size_load(probe_state *state, const json_t *command, void *options) {
  (void)command;
  return tegula_load(state->dataset, state->array, options, NULL);
}

static tegula_status size_save(probe_state *state, const json_t *command, void *options) {
  tegula_save_options *save = options;
  save->overwrite = 1;
  return tegula_save(state->array, text(command, "target"), options, NULL);
}

static tegula_status size_statistics(probe_state *state, const json_t *command, void *statistics) {
  (void)command;
  tegula_load_options options;
  tegula_load_options_init(&options);
  options.statistics = statistics;
  return tegula_load(state->dataset, state->array, &options, NULL);
}

static tegula_status size_info(probe_state *state, const json_t *command, void *info) {
  (void)command;
  return tegula_dataset_info(state->dataset, info, NULL);
}

static tegula_status size_file(probe_state *state, const json_t *command, void *info) {
  (void)command;
  return tegula_dataset_file(state->dataset, 0, info, NULL);
}

static const struct {
  const char *name;
  size_t size, first; /* own; of version 1 */
  void (*init)(void *options);
  tegula_status (*call)(probe_state *state, const json_t *command, void *options);
} sized_structs[] = {
    {"context", sizeof(tegula_context_options), sizeof(tegula_context_options), init_context,
     size_context},
    {"open", sizeof(tegula_open_options), offsetof(tegula_open_options, progress), init_open,
     size_open},
    {"array", sizeof(tegula_array_options), sizeof(tegula_array_options), init_array, size_array},
    {"load", sizeof(tegula_load_options), sizeof(tegula_load_options), init_load, size_load},
    {"save", sizeof(tegula_save_options), offsetof(tegula_save_options, settings), init_save,
     size_save},
    {"statistics", sizeof(tegula_statistics), sizeof(tegula_statistics), init_statistics,
     size_statistics},
    {"info", sizeof(tegula_dataset_info_t), offsetof(tegula_dataset_info_t, sources), init_info,
     size_info},
    {"file", sizeof(tegula_file_info), sizeof(tegula_file_info), init_file, size_file},
};

/* For each struct the status with: its own size, 0, one byte less than version 1, a zero tail, a
 * tail that says something. Needs all objects. */
static json_t *do_sizes(probe_state *state, const json_t *command) {
  json_t *answer = json_object();
  for (size_t i = 0; i < sizeof sized_structs / sizeof *sized_structs; i++) {
    size_t own = sized_structs[i].size, first = sized_structs[i].first;
    const size_t sizes[] = {own, 0, first - 1, own + 64, own + 64};
    json_t *list = json_array();
    for (size_t turn = 0; turn < 5; turn++) {
      probe_sized options = {.bytes = {0}};
      sized_structs[i].init(&options);
      options.struct_size = sizes[turn];
      options.bytes[own + 63] = turn == 4;
      json_array_append_new(
          list, json_string(tegula_status_name(sized_structs[i].call(state, command, &options))));
    }
    json_object_set_new(answer, sized_structs[i].name, list);
  }
  return answer;
}

#endif
