/* The probe's crowd: many threads open and load datasets at the same time, through one context or
 * several.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Part of probe.c, which is one compilation unit; nothing else includes this. */
#ifndef TEGULA_TESTS_PROBE_CROWD_H
#define TEGULA_TESTS_PROBE_CROWD_H

#include <pthread.h>

#include "probe_json.h"

enum { PROBE_CROWD = 64, PROBE_CONTEXTS = 8 };

typedef struct probe_member {
  pthread_t thread;
  tegula_context *context;
  const char *path;
  const char *name;
  int64_t rounds;
  int background; /* loads that are queued */
  tegula_status status;
  tegula_error error;
  char hash[TEGULA_HASH_TEXT];
} probe_member;

static tegula_status member_load(probe_member *m, tegula_dataset *dataset, tegula_array *array) {
  if (!m->background) {
    return tegula_load(dataset, array, NULL, &m->error);
  }
  tegula_op *op = NULL;
  tegula_status status = tegula_load_async(dataset, array, NULL, &op, &m->error);
  status = status == TEGULA_OK ? tegula_op_wait(op, -1, &m->error) : status;
  tegula_op_destroy(op);
  return status;
}

static tegula_status member_array(probe_member *m, tegula_dataset *dataset,
                                  char hash[TEGULA_HASH_TEXT]) {
  tegula_dataset_info_t info;
  tegula_dataset_info_init(&info);
  tegula_tiling *tiling = NULL;
  tegula_array *array = NULL;
  tegula_status status = tegula_dataset_info(dataset, &info, &m->error);
  status = status == TEGULA_OK
               ? tegula_tiling_even(info.shape, info.ndim, 0, 3, 1, &tiling, &m->error)
               : status;
  status = status == TEGULA_OK
               ? tegula_array_create(m->context, info.dtype, tiling, NULL, &array, &m->error)
               : status;
  status = status == TEGULA_OK ? member_load(m, dataset, array) : status;
  status = status == TEGULA_OK ? tegula_array_hash(array, hash, &m->error) : status;
  tegula_array_destroy(array);
  tegula_tiling_destroy(tiling);
  return status;
}

static void *member_run(void *state) {
  probe_member *m = state;
  for (int64_t round = 0; round < m->rounds && m->status == TEGULA_OK; round++) {
    tegula_open_options options;
    tegula_open_options_init(&options);
    options.dataset = m->name;
    tegula_dataset *dataset = NULL;
    char hash[TEGULA_HASH_TEXT] = "";
    m->status = tegula_dataset_open(m->context, m->path, &options, &dataset, &m->error);
    m->status = m->status == TEGULA_OK ? member_array(m, dataset, hash) : m->status;
    tegula_dataset_close(dataset);
    if (round == 0) {
      memcpy(m->hash, hash, sizeof hash);
    } else if (strcmp(hash, m->hash) != 0) {
      strcpy(m->hash, "another in a later round");
    }
  }
  return NULL;
}

static json_t *crowd_run(probe_state *state, probe_member *members, int count) {
  int started = 0;
  while (started < count &&
         !pthread_create(&members[started].thread, NULL, member_run, &members[started]))
    started++;
  for (int i = 0; i < started; i++) pthread_join(members[i].thread, NULL);
  json_t *hashes = json_array();
  for (int i = 0; i < started; i++) {
    if (members[i].status != TEGULA_OK) {
      json_decref(hashes);
      return error_answer(state, members[i].status, &members[i].error);
    }
    json_array_append_new(hashes, json_string(members[i].hash));
  }
  return started == count ? json_pack("{s:o}", "hashes", hashes)
                          : (json_decref(hashes), misuse(state, "a thread could not be started"));
}

/* "items": [[path, name], ...], one thread each; "contexts": how many, taken in turn; "rounds";
 * "threads" of a context. */
static json_t *do_crowd(probe_state *state, const json_t *command) {
  static probe_member members[PROBE_CROWD];
  tegula_context *contexts[PROBE_CONTEXTS] = {NULL};
  const json_t *items = json_object_get(command, "items");
  int count = (int)json_array_size(items), many = (int)number(command, "contexts", 1);
  if (count > PROBE_CROWD || many > PROBE_CONTEXTS || many < 1) {
    return misuse(state, "too many");
  }
  tegula_context_options options;
  context_options_read(command, &options);
  tegula_error error;
  tegula_status status = TEGULA_OK;
  for (int i = 0; i < many && status == TEGULA_OK; i++) {
    status = tegula_context_create(&options, NULL, &contexts[i], &error);
  }
  for (int i = 0; i < count; i++) {
    const json_t *item = json_array_get(items, (size_t)i);
    members[i] = (probe_member){.context = contexts[i % many],
                                .path = json_string_value(json_array_get(item, 0)),
                                .name = json_string_value(json_array_get(item, 1)),
                                .rounds = number(command, "rounds", 1),
                                .background = i % 2};
  }
  json_t *answer =
      status == TEGULA_OK ? crowd_run(state, members, count) : error_answer(state, status, &error);
  for (int i = 0; i < many; i++) tegula_context_destroy(contexts[i]);
  return answer;
}

/* ---- one dataset ---- */

typedef struct probe_turn {
  pthread_t thread;
  const tegula_dataset *dataset;
  probe_block *blocks;
  int first, step, count;
  tegula_status status;
  tegula_error error;
} probe_turn;

static void *turn_run(void *state) {
  probe_turn *t = state;
  for (int i = t->first; i < t->count && t->status == TEGULA_OK; i += t->step) {
    t->status = tegula_dataset_read(t->dataset, &t->blocks[i].view, NULL, &t->error);
  }
  return NULL;
}

/* "boxes" of the open dataset, read by "threads" at the same time; their elements go to the file
 * "path" one after the other. */
static json_t *do_read_boxes(probe_state *state, const json_t *command) {
  const json_t *list = json_object_get(command, "boxes");
  int count = (int)json_array_size(list), threads = (int)number(command, "threads", 1);
  probe_turn turns[PROBE_CROWD];
  tegula_dtype dtype;
  if (threads < 1 || threads > PROBE_CROWD ||
      tegula_dtype_parse(text(command, "dtype"), &dtype, NULL) != TEGULA_OK) {
    return misuse(state, "too many threads, or no dtype");
  }
  probe_block *blocks = calloc((size_t)count + 1, sizeof *blocks);
  for (int i = 0; i < count; i++) {
    tegula_box box;
    box_read(json_array_get(list, (size_t)i), &box);
    probe_block_make(&blocks[i], dtype, &box, NULL);
  }
  for (int i = 0; i < threads; i++) {
    turns[i] = (probe_turn){
        .dataset = state->dataset, .blocks = blocks, .first = i, .step = threads, .count = count};
    if (pthread_create(&turns[i].thread, NULL, turn_run, &turns[i])) {
      abort();
    }
  }
  json_t *answer = NULL;
  for (int i = 0; i < threads; i++) {
    pthread_join(turns[i].thread, NULL);
    if (turns[i].status != TEGULA_OK && !answer) {
      answer = error_answer(state, turns[i].status, &turns[i].error);
    }
  }
  for (int i = 0; i < count; i++) {
    size_t bytes;
    unsigned char *data = probe_view_bytes(&blocks[i].view, &bytes);
    file_write(text(command, "path"), data, bytes, i > 0 ? "ab" : "wb");
    free(data);
    free(blocks[i].base);
  }
  free(blocks);
  return answer ? answer : json_object();
}

#endif
