/* The grids of a manifest's JSON text: tables of chunks.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Checked here: every number's range, and that tables of chunks are in order. Memory is in
 * proportion to the text. */
#include <stdlib.h>
#include <string.h>

#include "manifest/manifest_priv.h"

static tegula_status read_codec(const tegula__json *json, const char *const *codecs,
                                tegula__filter *out, tegula_error *err) {
  const char *name = NULL;
  int64_t count = tegula__json_count(json), number;
  if (tegula__json_kind_of(json) != TEGULA__JSON_LIST || count < 1 ||
      count > 1 + TEGULA__FILTER_PARAMS)
    return tegula__json_wrong(json, err, "a list of a codec's name and up to %d parameters",
                              TEGULA__FILTER_PARAMS);
  tegula__json first = tegula__json_item(json, 0);
  FORWARD(tegula__json_text(&first, &name, err));
  while (codecs[out->codec] != NULL && strcmp(codecs[out->codec], name) != 0) out->codec++;
  if (codecs[out->codec] == NULL)
    return tegula__fail(err, TEGULA_UNSUPPORTED, json->file, -1,
                        "\"%s\": the codec \"%.60s\" is not known", json->file, name);
  for (int64_t i = 1; i < count; i++) {
    tegula__json item = tegula__json_item(json, i);
    FORWARD(tegula__json_integer(&item, 0, UINT32_MAX, &number, err));
    out->params[out->param_count++] = (uint32_t)number;
  }
  return TEGULA_OK;
}

static tegula_status read_codecs(const tegula__json *json, const char *const *codecs,
                                 tegula__grid *out, tegula_error *err) {
  tegula__json list = tegula__json_member(json, "codecs");
  FORWARD(tegula__json_expect(&list, TEGULA__JSON_LIST, err));
  int64_t count = tegula__json_count(&list);
  if (count > TEGULA__CHAIN_MAX)
    return tegula__json_wrong(&list, err, "a list of up to %d codecs", TEGULA__CHAIN_MAX);
  out->filters = calloc((size_t)count + 1, sizeof *out->filters);
  if (out->filters == NULL)
    return tegula__out_of_memory(err, count * (int64_t)sizeof *out->filters);
  out->filter_count = (int32_t)count;
  for (int64_t i = 0; i < count; i++) {
    tegula__json item = tegula__json_item(&list, i);
    FORWARD(read_codec(&item, codecs, &out->filters[i], err));
  }
  return TEGULA_OK;
}

static tegula_status expect_count(const tegula__json *list, int64_t count, tegula_error *err) {
  if (tegula__json_kind_of(list) == TEGULA__JSON_LIST && tegula__json_count(list) == count)
    return TEGULA_OK;
  return tegula__json_wrong(list, err, "a list of %lld integers, as many as offsets",
                            (long long)count);
}

/* Slots in ascending order. */
static tegula_status read_coordinates(const tegula__json *json, tegula__grid *out,
                                      tegula_error *err) {
  tegula__json list = tegula__json_member(json, "coordinates");
  int64_t last = -1, number = 0;
  if (list.value == NULL) return TEGULA_OK;
  FORWARD(expect_count(&list, out->count, err));
  out->coordinates = calloc((size_t)out->count + 1, sizeof *out->coordinates);
  if (out->coordinates == NULL)
    return tegula__out_of_memory(err, out->count * (int64_t)sizeof *out->coordinates);
  for (int64_t i = 0; i < out->count; i++, last = number) {
    tegula__json item = tegula__json_item(&list, i);
    FORWARD(tegula__json_integer(&item, 0, INT64_MAX, &number, err));
    if (number <= last || number >= out->slots)
      return tegula__json_wrong(&item, err, "a slot of %lld to %lld, in ascending order",
                                (long long)last + 1, (long long)out->slots - 1);
    out->coordinates[i] = (uint64_t)number;
  }
  return TEGULA_OK;
}

static tegula_status read_chunks(const tegula__json *json, tegula__grid *out, tegula_error *err) {
  tegula__json offsets = tegula__json_member(json, "offsets"),
               lengths = tegula__json_member(json, "lengths"),
               masks = tegula__json_member(json, "masks");
  FORWARD(tegula__json_expect(&offsets, TEGULA__JSON_LIST, err));
  out->count = tegula__json_count(&offsets);
  FORWARD(expect_count(&lengths, out->count, err));
  if (masks.value != NULL) FORWARD(expect_count(&masks, out->count, err));
  out->chunks = calloc((size_t)out->count + 1, sizeof *out->chunks);
  if (out->chunks == NULL)
    return tegula__out_of_memory(err, out->count * (int64_t)sizeof *out->chunks);
  for (int64_t i = 0; i < out->count; i++) {
    int64_t offset, length, mask = 0;
    tegula__json item = tegula__json_item(&offsets, i);
    FORWARD(tegula__json_integer(&item, 0, INT64_MAX, &offset, err));
    item = tegula__json_item(&lengths, i);
    FORWARD(tegula__json_integer(&item, 0, UINT32_MAX, &length, err));
    item = tegula__json_item(&masks, i);
    if (masks.value != NULL) FORWARD(tegula__json_integer(&item, 0, UINT32_MAX, &mask, err));
    out->chunks[i] = (tegula__chunk){
        .offset = (uint64_t)offset, .length = (uint32_t)length, .mask = (uint32_t)mask};
  }
  return TEGULA_OK;
}

/* Only bytes as they are have slices. */
static tegula_status read_slices(const tegula__json *json, tegula__grid *grid, tegula_error *err) {
  tegula__json member = tegula__json_member(json, "slices");
  int64_t slices = 0;
  if (member.value != NULL)
    FORWARD(tegula__json_integer(&member, 0, grid->filter_count == 0, &slices, err));
  grid->slices = slices != 0;
  return TEGULA_OK;
}

static tegula_status read_table(const tegula__json *json, const char *const *codecs,
                                tegula__manifest *out, tegula__grid *grid, tegula_error *err) {
  static const char *const keys[] = {"file",    "chunk_bytes", "order",       "codecs",
                                     "fill",    "slots",       "coordinates", "offsets",
                                     "lengths", "masks",       "slices",      NULL};
  FORWARD(tegula__json_expect(json, TEGULA__JSON_OBJECT, err));
  FORWARD(tegula__json_only(json, keys, err));
  FORWARD(tegula__json_read_number(json, "file", 0, out->file_count - 1, &grid->file, err));
  FORWARD(tegula__json_read_number(json, "chunk_bytes", 1, INT64_MAX, &grid->chunk_bytes, err));
  FORWARD(tegula__json_read_number(json, "slots", 0, INT64_MAX, &grid->slots, err));
  FORWARD(tegula__json_read_order(json, out->dtype, &grid->order, err));
  FORWARD(read_codecs(json, codecs, grid, err));
  FORWARD(tegula__json_read_item(json, "fill", out, &grid->fill, err));
  FORWARD(read_chunks(json, grid, err));
  FORWARD(read_coordinates(json, grid, err));
  FORWARD(read_slices(json, grid, err));
  if (grid->coordinates != NULL || grid->count == grid->slots) return TEGULA_OK;
  tegula__json offsets = tegula__json_member(json, "offsets");
  return tegula__json_wrong(
      &offsets, err, "a list of %lld integers, one for each slot, because there are no coordinates",
      (long long)grid->slots);
}

tegula_status tegula__json_read_grids(const tegula__json *root, const char *const *codecs,
                                      tegula__manifest *out, tegula_error *err) {
  tegula__json grids = tegula__json_member(root, "grids");
  if (grids.value == NULL) return TEGULA_OK;
  FORWARD(tegula__json_expect(&grids, TEGULA__JSON_LIST, err));
  int64_t count = tegula__json_count(&grids);
  for (int64_t i = 0; i < count; i++) {
    tegula__json item = tegula__json_item(&grids, i);
    tegula__grid *grid = calloc(1, sizeof *grid);
    if (grid == NULL) return tegula__out_of_memory(err, sizeof *grid);
    tegula_status status = read_table(&item, codecs, out, grid, err);
    if (status == TEGULA_OK) status = tegula__manifest_add_grid(out, grid, err);
    if (status == TEGULA_OK) continue;
    tegula__grid_free(grid);
    return status;
  }
  return TEGULA_OK;
}
