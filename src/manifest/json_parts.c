/* The parts of a manifest's JSON text: where the elements are.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Checked here: every number's range, that parts stay inside of their tables of chunks, that no two
 * elements of a dense part share a byte, and that the parts hold each element of the shape once.
 * Memory is in proportion to the text. */
#include <stdlib.h>
#include <string.h>

#include "manifest/manifest_priv.h"

/* ---- one part ---- */

typedef struct part_text {
  const tegula__json *whole;
  tegula__part part;
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], strides[TEGULA_MAX_DIMS],
      start[TEGULA_MAX_DIMS], chunk[TEGULA_MAX_DIMS], slot_strides[TEGULA_MAX_DIMS],
      step[TEGULA_MAX_DIMS];
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
  static const char *const keys[] = {"file",    "offset", "lo",    "hi",
                                     "strides", "order",  "texts", NULL};
  FORWARD(tegula__json_only(text->whole, keys, err));
  text->part.kind = TEGULA__PART_DENSE;
  FORWARD(
      tegula__json_read_number(text->whole, "file", 0, out->file_count - 1, &text->part.file, err));
  FORWARD(tegula__json_read_number(text->whole, "offset", 0, INT64_MAX, &text->part.offset, err));
  FORWARD(read_box(out, text, err));
  FORWARD(read_vector(text->whole, "strides", out->ndim, text->strides, err));
  FORWARD(tegula__json_read_order(text->whole, out->dtype, &text->part.order, err));
  return check_strides(out, text, err);
}

static tegula_status read_chunked(tegula__manifest *out, part_text *text, tegula_error *err) {
  static const char *const keys[] = {"grid",  "offset", "lo",           "hi",   "strides", "start",
                                     "chunk", "slot",   "slot_strides", "step", "texts",   NULL};
  int64_t grid = 0;
  FORWARD(tegula__json_only(text->whole, keys, err));
  FORWARD(tegula__json_read_number(text->whole, "grid", 0, out->grid_count - 1, &grid, err));
  FORWARD(tegula__json_read_number(text->whole, "offset", 0, INT64_MAX, &text->part.offset, err));
  FORWARD(read_box(out, text, err));
  FORWARD(read_vector(text->whole, "strides", out->ndim, text->strides, err));
  FORWARD(read_vector(text->whole, "start", out->ndim, text->start, err));
  FORWARD(read_vector(text->whole, "chunk", out->ndim, text->chunk, err));
  FORWARD(tegula__json_read_number(text->whole, "slot", 0, INT64_MAX, &text->part.slot_base, err));
  FORWARD(read_vector(text->whole, "slot_strides", out->ndim, text->slot_strides, err));
  tegula__json step = tegula__json_member(text->whole, "step");
  bool steps = tegula__json_kind_of(&step) != TEGULA__JSON_ABSENT;
  if (steps) FORWARD(read_vector(text->whole, "step", out->ndim, text->step, err));
  text->part.kind = TEGULA__PART_CHUNKED;
  text->part.grid = out->grids[grid];
  text->part.order = out->grids[grid]->order;
  text->part.start = text->start;
  text->part.chunk = text->chunk;
  text->part.slot_strides = text->slot_strides;
  text->part.step = steps ? text->step : NULL;
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
  static const char *const keys[] = {"fill", "lo", "hi", "texts", NULL};
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
  static const char *const keys[] = {"lost", "fill", "lo", "hi", "texts", NULL},
                           *const reasons[] = {"status", "message", "hint", "path", "errno", NULL};
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
  FORWARD(tegula__json_read_number(&lost, "errno", 0, INT32_MAX, &number, err));
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

/* Where the elements have text that is padded. */
static tegula_status read_texts(tegula__manifest *out, part_text *text, tegula_error *err) {
  tegula__json list = tegula__json_member(text->whole, "texts");
  if (tegula__json_kind_of(&list) == TEGULA__JSON_ABSENT) return TEGULA_OK;
  FORWARD(tegula__json_expect(&list, TEGULA__JSON_LIST, err));
  int64_t count = tegula__json_count(&list);
  if (count > TEGULA__MOST_TEXTS)
    return tegula__json_wrong(&list, err, "a list of at most %d", TEGULA__MOST_TEXTS);
  tegula__texts *texts = tegula__texts_new(count);
  FORWARD(tegula__manifest_keep(out, texts, err));
  for (int64_t i = 0; i < count; i++) {
    tegula__json item = tegula__json_item(&list, i);
    int64_t numbers[5];
    int32_t found;
    FORWARD(tegula__json_lengths(&item, 5, 5, false, numbers, &found, err));
    if (numbers[3] > INT32_MAX || numbers[4] > 1)
      return tegula__json_wrong(&item, err, "offset, count, stride, size, and 0 or 1");
    texts->places[i] = (tegula__text_place){.offset = numbers[0],
                                            .count = numbers[1],
                                            .stride = numbers[2],
                                            .size = (uint32_t)numbers[3],
                                            .padding = numbers[4] == 1 ? ' ' : '0'};
  }
  text->part.texts = texts;
  if (tegula__texts_valid(texts, out->dtype.item_size)) return TEGULA_OK;
  return tegula__json_wrong(&list, err, "texts that lie within an element");
}

static tegula_status read_part(const tegula__json *json, tegula__manifest *out, tegula_error *err) {
  part_text text = {.whole = json, .part = {.file = TEGULA__NO_FILE}};
  text.part.lo = text.lo;
  text.part.hi = text.hi;
  text.part.strides = text.strides;
  FORWARD(read_kind(out, &text, err));
  FORWARD(read_texts(out, &text, err));
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
