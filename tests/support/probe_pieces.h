/* The probe's commands for batches, datasets from a function, and the fence.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Part of probe.c, which is one compilation unit; nothing else includes this. Between the library's
 * calls nothing here takes memory, so that allocations which are made to fail are the library's. */
#ifndef TEGULA_TESTS_PROBE_PIECES_H
#define TEGULA_TESTS_PROBE_PIECES_H

#include "probe_json.h"

/* ---- batches ---- */

static void pieces_drop(probe_state *state) {
  tegula_batches_close(state->batches);
  state->batches = NULL;
  for (int i = 0; i < state->piece_count; i++) {
    tegula_array_destroy(state->pieces[i].array);
  }
  state->piece_count = 0;
}

/* "chunk": begins a walk over the dataset; without it the last one goes on. Takes pieces until the
 * end or an error, and keeps them. */
static json_t *do_batches(probe_state *state, const json_t *command) {
  tegula_error error;
  tegula_status status = TEGULA_OK;
  const json_t *chunk = json_object_get(command, "chunk");
  if (chunk) {
    int64_t lengths[TEGULA_MAX_DIMS];
    int32_t ndim = numbers(chunk, lengths);
    tegula_load_options options;
    pieces_drop(state);
    tegula_load_options_init(&options);
    tegula_statistics_init(&state->piece_statistics);
    options.statistics = &state->piece_statistics;
    status = tegula_batches_open(state->dataset, lengths, ndim, &options, &state->batches, &error);
  }
  while (status == TEGULA_OK && state->piece_count < PROBE_PIECES) {
    probe_piece *piece = &state->pieces[state->piece_count];
    status = tegula_batches_next(state->batches, &piece->array, &piece->box, &error);
    state->piece_count += status == TEGULA_OK;
  }
  json_t *answer = status == TEGULA_END ? json_object() : error_answer(state, status, &error);
  json_object_set_new(answer, "begun", json_boolean(state->batches != NULL));
  if (status == TEGULA_END)
    json_object_set_new(answer, "statistics", statistics_answer(&state->piece_statistics));
  return answer;
}

/* Their boxes in the dataset, and their elements one after the other as C-ordered bytes in a
 * file. */
static json_t *do_pieces(probe_state *state, const json_t *command) {
  const char *path = text(command, "path");
  json_t *boxes = json_array();
  int good = path && file_write(path, "", 0, "wb");
  for (int i = 0; good && i < state->piece_count; i++) {
    size_t bytes;
    tegula_view view;
    good = tegula_array_view(state->pieces[i].array, 0, &view, NULL) == TEGULA_OK;
    unsigned char *data = good ? probe_view_bytes(&view, &bytes) : NULL;
    good = good && file_write(path, data, bytes, "ab");
    free(data);
    json_array_append_new(boxes, box_answer(&state->pieces[i].box));
  }
  return good ? json_pack("{s:o}", "boxes", boxes)
              : (json_decref(boxes), misuse(state, "the pieces could not be written"));
}

/* ---- a dataset from a function ---- */

typedef struct probe_place {
  const probe_reader_state *from;
  const tegula_box *box;
} probe_place;

/* Element n of the array in C order is n * 1.5. */
static void probe_item_value(void *state, unsigned char *item, int64_t position) {
  const probe_place *place = state;
  int64_t index = 0;
  int64_t step = 1;
  for (int32_t axis = place->box->ndim; axis-- > 0;) {
    int64_t extent = place->box->hi[axis] - place->box->lo[axis];
    index += (place->box->lo[axis] + position % extent) * step;
    position /= extent;
    step *= place->from->shape[axis];
  }
  float value = (float)index * 1.5f;
  memcpy(item, &value, sizeof value);
}

static tegula_status reader_fill(void *state, const tegula_view *dst, tegula_error *err) {
  probe_reader_state *from = state;
  if (atomic_fetch_add(&from->calls, 1) + 1 == from->fail_at) {
    return tegula_error_set(err, TEGULA_CORRUPT, "the store", 7, "the probe was told to fail here");
  }
  probe_place place = {from, &dst->box};
  probe_view_walk(dst, probe_item_value, &place);
  return TEGULA_OK;
}

static void reader_release(void *state) { ((probe_reader_state *)state)->released++; }

/* "shape", "chunk", and "fail_at": the call of the function that fails. The dataset takes the place
 * of one that was opened. */
static json_t *do_reader(probe_state *state, const json_t *command) {
  tegula_error error;
  tegula_reader reader;
  tegula_dataset *dataset = NULL;
  int64_t chunk[TEGULA_MAX_DIMS];
  tegula_dataset_close(state->dataset);
  state->dataset = NULL;
  tegula_reader_init(&reader);
  state->reader.fail_at = number(command, "fail_at", 0);
  atomic_store(&state->reader.calls, 0);
  reader.name = "probe";
  reader.ndim = numbers(json_object_get(command, "shape"), state->reader.shape);
  reader.shape = state->reader.shape;
  reader.chunk = numbers(json_object_get(command, "chunk"), chunk) > 0 ? chunk : NULL;
  reader.read = reader_fill;
  reader.state = &state->reader;
  reader.release = reader_release;
  tegula_status status = tegula_dtype_parse("<f4", &reader.dtype, &error);
  if (status == TEGULA_OK) {
    status = tegula_dataset_from_reader(state->context, &reader, &dataset, &error);
  }
  if (status != TEGULA_OK) {
    return error_answer(state, status, &error);
  }
  state->reader.made++;
  state->dataset = dataset;
  return json_object();
}

/* How many such datasets there were, and how often the function's state was let go of. */
static json_t *do_readers(probe_state *state, const json_t *command) {
  (void)command;
  return json_pack("{s:i, s:i}", "made", state->reader.made, "released", state->reader.released);
}

/* ---- the fence ---- */

static json_t *do_fence(probe_state *state, const json_t *command) {
  (void)command;
  tegula_error error;
  tegula_status status = tegula_fence(state->context, &error);
  return status == TEGULA_OK ? json_object() : error_answer(state, status, &error);
}

#endif
