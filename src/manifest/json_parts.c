/* The grids and parts of a manifest's JSON text: where the elements are.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Checked here: every number's range, that tables of chunks are in order and parts stay inside of
 * them, that no two elements of a dense part share a byte, and that the parts hold each element of
 * the shape once. Memory is in proportion to the text. */
#include <stdlib.h>
#include <string.h>

#include "manifest/manifest_priv.h"

/* ---- items ---- */

static bool from_hex(const char *hex, unsigned char *out, size_t size) {
  if (strlen(hex) != 2 * size) return false;
  for (size_t i = 0; i < size; i++) {
    int high = tegula__json_hex_digit(hex[2 * i]), low = tegula__json_hex_digit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    out[i] = (unsigned char)(high << 4 | low);
  }
  return true;
}

static void to_native(unsigned char *item, uint32_t size, uint32_t group) {
  if (TEGULA__NATIVE_ORDER == '<') return;
  for (uint32_t at = 0; at + group <= size; at += group)
    for (uint32_t i = 0; i < group / 2; i++) {
      unsigned char kept = item[at + i];
      item[at + i] = item[at + group - 1 - i];
      item[at + group - 1 - i] = kept;
    }
}

tegula_status tegula__json_read_item(const tegula__json *object, const char *key,
                                     tegula__manifest *out, const void **item, tegula_error *err) {
  tegula__json member = tegula__json_member(object, key);
  tegula__json_kind kind = tegula__json_kind_of(&member);
  const char *text = NULL;
  uint32_t size = out->dtype.item_size;
  *item = NULL;
  if (kind == TEGULA__JSON_ABSENT || kind == TEGULA__JSON_NULL) return TEGULA_OK;
  FORWARD(tegula__json_text(&member, &text, err));
  if (strlen(text) != 2 * (size_t)size)
    return tegula__json_wrong(&member, err, "%llu hexadecimal digits, or null", 2ULL * size);
  unsigned char *bytes = malloc(size);
  if (bytes != NULL && !from_hex(text, bytes, size)) {
    free(bytes);
    return tegula__json_wrong(&member, err, "%llu hexadecimal digits (0-9, a-f), or null",
                              2ULL * size);
  }
  if (bytes != NULL) to_native(bytes, size, tegula__dtype_swap_size(out->dtype));
  FORWARD(tegula__manifest_keep(out, bytes, err));
  *item = bytes;
  return TEGULA_OK;
}

static tegula_status read_order(const tegula__json *object, tegula_dtype dtype, uint8_t *out,
                                tegula_error *err) {
  tegula__json member = tegula__json_member(object, "order");
  const char *text = NULL;
  bool ordered = dtype.order != '|';
  FORWARD(tegula__json_text(&member, &text, err));
  bool good = text[1] == '\0' && (ordered ? text[0] == '<' || text[0] == '>' : text[0] == '|');
  if (!good)
    return tegula__json_wrong(&member, err, ordered ? "\"<\" or \">\"" : "\"|\" for this dtype");
  *out = (uint8_t)text[0];
  return TEGULA_OK;
}

static tegula_status read_number(const tegula__json *object, const char *key, int64_t least,
                                 int64_t most, int64_t *out, tegula_error *err) {
  tegula__json member = tegula__json_member(object, key);
  return tegula__json_integer(&member, least, most, out, err);
}

/* ---- grids ---- */

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
  FORWARD(read_number(json, "file", 0, out->file_count - 1, &grid->file, err));
  FORWARD(read_number(json, "chunk_bytes", 1, INT64_MAX, &grid->chunk_bytes, err));
  FORWARD(read_number(json, "slots", 0, INT64_MAX, &grid->slots, err));
  FORWARD(read_order(json, out->dtype, &grid->order, err));
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

/* ---- one part ---- */

typedef struct part_text {
  const tegula__json *whole;
  tegula__part part;
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], strides[TEGULA_MAX_DIMS],
      start[TEGULA_MAX_DIMS], chunk[TEGULA_MAX_DIMS], slot_strides[TEGULA_MAX_DIMS];
} part_text;

static tegula_status read_vector(const tegula__json *part, const char *key, int32_t ndim,
                                 int64_t *out, tegula_error *err) {
  tegula__json member = tegula__json_member(part, key);
  int32_t count;
  return tegula__json_lengths(&member, ndim, ndim, false, out, &count, err);
}

/* "parts[1] holds [3, 5) of axis 0, expected ..." */
static tegula_status wrong_box(const tegula__json *whole, const tegula__part *part, int32_t k,
                               int64_t lo, bool row, int64_t hi, tegula_error *err) {
  char way[TEGULA__JSON_WAY];
  tegula__json_way(whole, way);
  return tegula__fail(err, TEGULA_CORRUPT, whole->file, -1,
                      "\"%s\": %s holds [%lld, %lld) of axis %d, expected [%lld, %s%lld)",
                      whole->file, way, (long long)part->lo[k], (long long)part->hi[k], k,
                      (long long)lo, row ? "at most " : "", (long long)hi);
}

static tegula_status read_box(const tegula__manifest *out, part_text *text, tegula_error *err) {
  FORWARD(read_vector(text->whole, "lo", out->ndim, text->lo, err));
  FORWARD(read_vector(text->whole, "hi", out->ndim, text->hi, err));
  for (int32_t k = 0; k < out->ndim; k++)
    if (text->lo[k] > text->hi[k] || text->hi[k] > out->shape[k])
      return wrong_box(text->whole, &text->part, k, 0, true, out->shape[k], err);
  return TEGULA_OK;
}

static tegula_status check_strides(const tegula__manifest *out, const part_text *text,
                                   tegula_error *err) {
  if (tegula__strides_distinct(out->ndim, out->dtype.item_size, text->lo, text->hi, text->strides))
    return TEGULA_OK;
  int64_t shape[TEGULA_MAX_DIMS], dense[TEGULA_MAX_DIMS];
  tegula__json strides = tegula__json_member(text->whole, "strides");
  char c[TEGULA__SHAPE_TEXT], f[TEGULA__SHAPE_TEXT], way[TEGULA__JSON_WAY],
      found[TEGULA__SHAPE_TEXT];
  for (int32_t k = 0; k < out->ndim; k++) shape[k] = text->hi[k] - text->lo[k];
  tegula__dense_strides(shape, out->ndim, out->dtype.item_size, 'C', dense);
  tegula__shape_format(dense, out->ndim, c);
  tegula__dense_strides(shape, out->ndim, out->dtype.item_size, 'F', dense);
  tegula__shape_format(dense, out->ndim, f);
  tegula__shape_format(text->strides, out->ndim, found);
  tegula__json_way(&strides, way);
  return tegula__fail(err, TEGULA_CORRUPT, strides.file, -1,
                      "\"%s\": %s is %s, expected %s (C), %s (Fortran) or others by which no two "
                      "elements share a byte",
                      strides.file, way, found, c, f);
}

static tegula_status read_dense(tegula__manifest *out, part_text *text, tegula_error *err) {
  static const char *const keys[] = {"file", "offset", "lo", "hi", "strides", "order", NULL};
  FORWARD(tegula__json_only(text->whole, keys, err));
  text->part.kind = TEGULA__PART_DENSE;
  FORWARD(read_number(text->whole, "file", 0, out->file_count - 1, &text->part.file, err));
  FORWARD(read_number(text->whole, "offset", 0, INT64_MAX, &text->part.offset, err));
  FORWARD(read_box(out, text, err));
  FORWARD(read_vector(text->whole, "strides", out->ndim, text->strides, err));
  FORWARD(read_order(text->whole, out->dtype, &text->part.order, err));
  return check_strides(out, text, err);
}

static tegula_status read_chunked(tegula__manifest *out, part_text *text, tegula_error *err) {
  static const char *const keys[] = {"grid",  "offset", "lo",   "hi",           "strides",
                                     "start", "chunk",  "slot", "slot_strides", NULL};
  int64_t grid = 0;
  FORWARD(tegula__json_only(text->whole, keys, err));
  FORWARD(read_number(text->whole, "grid", 0, out->grid_count - 1, &grid, err));
  FORWARD(read_number(text->whole, "offset", 0, INT64_MAX, &text->part.offset, err));
  FORWARD(read_box(out, text, err));
  FORWARD(read_vector(text->whole, "strides", out->ndim, text->strides, err));
  FORWARD(read_vector(text->whole, "start", out->ndim, text->start, err));
  FORWARD(read_vector(text->whole, "chunk", out->ndim, text->chunk, err));
  FORWARD(read_number(text->whole, "slot", 0, INT64_MAX, &text->part.slot_base, err));
  FORWARD(read_vector(text->whole, "slot_strides", out->ndim, text->slot_strides, err));
  text->part.kind = TEGULA__PART_CHUNKED;
  text->part.grid = out->grids[grid];
  text->part.order = out->grids[grid]->order;
  text->part.start = text->start;
  text->part.chunk = text->chunk;
  text->part.slot_strides = text->slot_strides;
  const char *problem = tegula__part_chunk_problem(out, &text->part);
  if (problem == NULL) return TEGULA_OK;
  char way[TEGULA__JSON_WAY];
  tegula__json_way(text->whole, way);
  return tegula__fail(err, TEGULA_CORRUPT, text->whole->file, -1,
                      "\"%s\": %s does not fit grids[%lld]: %s", text->whole->file, way,
                      (long long)grid, problem);
}

/* A part without bytes: its strides are those of C order. */
static tegula_status read_absent(tegula__manifest *out, part_text *text, tegula_error *err) {
  int64_t shape[TEGULA_MAX_DIMS];
  FORWARD(read_box(out, text, err));
  FORWARD(tegula__json_read_item(text->whole, "fill", out, &text->part.fill, err));
  for (int32_t k = 0; k < out->ndim; k++) shape[k] = text->hi[k] - text->lo[k];
  tegula__dense_strides(shape, out->ndim, out->dtype.item_size, 'C', text->strides);
  text->part.order = out->dtype.order;
  return TEGULA_OK;
}

static tegula_status read_fill(tegula__manifest *out, part_text *text, tegula_error *err) {
  static const char *const keys[] = {"fill", "lo", "hi", NULL};
  FORWARD(tegula__json_only(text->whole, keys, err));
  text->part.kind = TEGULA__PART_FILL;
  return read_absent(out, text, err);
}

bool tegula__status_named(const char *name, tegula_status *out) {
#define STATUS_VALUE(name, value, text, sentence) TEGULA_##name,
  static const tegula_status all[] = {TEGULA_STATUS_MAP(STATUS_VALUE)};
#undef STATUS_VALUE
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    *out = all[i];
    if (all[i] != TEGULA_OK && all[i] != TEGULA_END &&
        strcmp(tegula_status_name(all[i]), name) == 0)
      return true;
  }
  return false;
}

static tegula_status read_status(const tegula__json *lost, tegula_status *out, tegula_error *err) {
  tegula__json member = tegula__json_member(lost, "status");
  const char *text = NULL;
  FORWARD(tegula__json_text(&member, &text, err));
  return tegula__status_named(text, out)
             ? TEGULA_OK
             : tegula__json_wrong(&member, err, "the name of a status that is an error");
}

/* "" where there is none, or it is null. */
static tegula_status read_any_text(const tegula__json *object, const char *key, const char **out,
                                   tegula_error *err) {
  tegula__json member = tegula__json_member(object, key);
  tegula__json_kind kind = tegula__json_kind_of(&member);
  *out = "";
  if (kind == TEGULA__JSON_ABSENT || kind == TEGULA__JSON_NULL) return TEGULA_OK;
  return tegula__json_text(&member, out, err);
}

static tegula_status read_lost(tegula__manifest *out, part_text *text, tegula_error *err) {
  static const char *const keys[] = {"lost", "fill", "lo", "hi", NULL}, *const reasons[] = {
                                                                            "status", "message",
                                                                            "hint",   "path",
                                                                            "errno",  NULL};
  tegula__json lost = tegula__json_member(text->whole, "lost"),
               message = tegula__json_member(&lost, "message");
  const char *said = NULL, *hint, *path;
  tegula_status status;
  int64_t number;
  FORWARD(tegula__json_only(text->whole, keys, err));
  FORWARD(tegula__json_expect(&lost, TEGULA__JSON_OBJECT, err));
  FORWARD(tegula__json_only(&lost, reasons, err));
  FORWARD(read_status(&lost, &status, err));
  FORWARD(tegula__json_text(&message, &said, err));
  FORWARD(read_any_text(&lost, "hint", &hint, err));
  FORWARD(read_any_text(&lost, "path", &path, err));
  FORWARD(read_number(&lost, "errno", 0, INT32_MAX, &number, err));
  tegula_error *why = malloc(sizeof *why);
  if (why != NULL) {
    tegula__hint(why, tegula__fail(why, status, path, -1, "%s", said), "%s", hint);
    why->os_errno = (int32_t)number;
  }
  FORWARD(tegula__manifest_keep(out, why, err));
  text->part.kind = TEGULA__PART_LOST;
  text->part.lost = why;
  return read_absent(out, text, err);
}

/* Which kind it is says the key that only this kind has. */
static tegula_status read_kind(tegula__manifest *out, part_text *text, tegula_error *err) {
  FORWARD(tegula__json_expect(text->whole, TEGULA__JSON_OBJECT, err));
  if (tegula__json_member(text->whole, "file").value != NULL) return read_dense(out, text, err);
  if (tegula__json_member(text->whole, "grid").value != NULL) return read_chunked(out, text, err);
  if (tegula__json_member(text->whole, "lost").value != NULL) return read_lost(out, text, err);
  if (tegula__json_member(text->whole, "fill").value != NULL) return read_fill(out, text, err);
  return tegula__json_wrong(text->whole, err, "one with file, grid, fill or lost");
}

static tegula_status read_part(const tegula__json *json, tegula__manifest *out, tegula_error *err) {
  part_text text = {.whole = json, .part = {.file = TEGULA__NO_FILE}};
  text.part.lo = text.lo;
  text.part.hi = text.hi;
  text.part.strides = text.strides;
  FORWARD(read_kind(out, &text, err));
  return tegula__manifest_add_part(out, &text.part, err);
}

/* ---- all parts ---- */

/* Do all parts span the other axes than the first? */
static bool are_rows(const tegula__manifest *out) {
  for (int64_t i = 0; i < out->part_count; i++)
    for (int32_t k = 1; k < out->ndim; k++)
      if (out->parts[i].lo[k] != 0 || out->parts[i].hi[k] != out->shape[k]) return false;
  return true;
}

/* Rows after rows. */
static tegula_status check_rows(const tegula__json *parts, const tegula__manifest *out,
                                tegula_error *err) {
  int64_t row = 0;
  for (int64_t i = 0; i < out->part_count; i++) {
    const tegula__part *part = &out->parts[i];
    tegula__json item = tegula__json_item(parts, i);
    if (part->lo[0] != row) return wrong_box(&item, part, 0, row, true, out->shape[0], err);
    row = part->hi[0];
  }
  if (row == out->shape[0]) return TEGULA_OK;
  return tegula__fail(err, TEGULA_CORRUPT, parts->file, -1,
                      "\"%s\": the parts hold %lld rows, expected %lld as in the shape",
                      parts->file, (long long)row, (long long)out->shape[0]);
}

static tegula_status check_sorted(const tegula__json *parts, const tegula__manifest *out,
                                  tegula_error *err) {
  for (int64_t i = 1; i < out->part_count; i++) {
    const int64_t *before = out->parts[i - 1].lo, *lo = out->parts[i].lo;
    int32_t k = 0;
    while (k + 1 < out->ndim && lo[k] == before[k]) k++;
    if (lo[k] < before[k])
      return tegula__fail(
          err, TEGULA_CORRUPT, parts->file, -1,
          "\"%s\": parts[%lld] begins before parts[%lld], expected them in C order of lo",
          parts->file, (long long)i, (long long)i - 1);
  }
  return TEGULA_OK;
}

static tegula_status check_cover(const tegula__json *parts, const tegula__manifest *out,
                                 tegula_error *err) {
  tegula__cover cover;
  char shape[TEGULA__SHAPE_TEXT];
  if (out->ndim == 0) return TEGULA_OK; /* one part */
  for (int32_t k = 0; k < out->ndim; k++)
    if (out->shape[k] == 0 && out->part_count == 0) return TEGULA_OK; /* no elements, no parts */
  if (are_rows(out)) return check_rows(parts, out, err);
  FORWARD(check_sorted(parts, out, err));
  FORWARD(tegula__parts_cover(out, &cover, err));
  if (cover.good) return TEGULA_OK;
  if (cover.one >= 0)
    return tegula__fail(err, TEGULA_CORRUPT, parts->file, -1,
                        "\"%s\": parts[%lld] and parts[%lld] hold the same elements", parts->file,
                        (long long)cover.one, (long long)cover.two);
  tegula__shape_format(out->shape, out->ndim, shape);
  return tegula__fail(err, TEGULA_CORRUPT, parts->file, -1,
                      "\"%s\": the parts do not hold each element of the shape %s once",
                      parts->file, shape);
}

tegula_status tegula__json_read_parts(const tegula__json *root, tegula__manifest *out,
                                      tegula_error *err) {
  tegula__json parts = tegula__json_member(root, "parts");
  FORWARD(tegula__json_expect(&parts, TEGULA__JSON_LIST, err));
  int64_t count = tegula__json_count(&parts);
  if (out->ndim == 0 && count != 1)
    return tegula__json_wrong(&parts, err, "one part, because the shape is that of a scalar");
  for (int64_t i = 0; i < count; i++) {
    tegula__json part = tegula__json_item(&parts, i);
    FORWARD(read_part(&part, out, err));
  }
  return check_cover(&parts, out, err);
}
