/* Packed bytes -> a manifest. Nothing in them is believed: what finish would call a driver's
 * mistake is refused here.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The first problem stays; from then on every number is 0, and no count is larger than what the
 * bytes that are left can hold, so memory is in proportion to them. */
#include <string.h>

#include "base/frame.h"
#include "manifest/packed_priv.h"

typedef struct unpacking {
  const unsigned char *begin, *at, *end;
  const char *problem;
  const tegula__manifest_names *names;
  tegula__manifest *out;
} unpacking;

static void wrong(unpacking *u, const char *problem) {
  if (u->problem == NULL) u->problem = problem;
}

static int64_t left(const unpacking *u) { return u->end - u->at; }

static uint64_t take(unpacking *u) {
  uint64_t number = 0;
  for (unsigned shift = 0; shift < 64 && u->at < u->end && u->problem == NULL; shift += 7) {
    unsigned char byte = *u->at++;
    if (shift == 63 && byte > 1) break;
    number |= (uint64_t)(byte & 0x7F) << shift;
    if (byte < 0x80) return number;
  }
  wrong(u, "a number has no end");
  return 0;
}

static int64_t take_upto(unpacking *u, int64_t most) {
  uint64_t number = take(u);
  if (most >= 0 && number <= (uint64_t)most) return (int64_t)number;
  wrong(u, "a number is too large");
  return 0;
}

/* Things of which each takes at least `bytes` bytes. */
static int64_t take_count(unpacking *u, int64_t bytes) {
  int64_t count = take_upto(u, INT64_MAX); /* its own bytes do not count */
  if (count <= left(u) / bytes) return count;
  wrong(u, "a number is too large");
  return 0;
}

static int64_t take_next(unpacking *u, int64_t *last) {
  uint64_t folded = take(u), difference = folded >> 1 ^ (folded & 1 ? UINT64_MAX : 0);
  *last = (int64_t)((uint64_t)*last + difference);
  return *last;
}

static int64_t take_next_upto(unpacking *u, int64_t *last, int64_t most) {
  int64_t number = take_next(u, last);
  if (number >= 0 && number <= most) return number;
  wrong(u, "a number is out of its range");
  return 0;
}

static uint8_t take_byte(unpacking *u) {
  if (u->problem == NULL && left(u) > 0) return *u->at++;
  wrong(u, "bytes are missing");
  return 0;
}

/* In new memory; NULL when something is wrong. */
static char *take_text(unpacking *u) {
  int64_t size = take_count(u, 1);
  if (u->problem == NULL && memchr(u->at, '\0', (size_t)size) != NULL)
    wrong(u, "a text holds a zero byte");
  RETURN_IF(u->problem != NULL, NULL);
  char *text = strndup((const char *)u->at, (size_t)size);
  u->at += size;
  if (text == NULL) wrong(u, "out of memory");
  return text;
}

/* A text that is one of the list, as it stands there: its number, or -1. */
static int32_t take_known(unpacking *u, const char *const *list) {
  char *text = take_text(u);
  int32_t found = -1;
  for (int32_t i = 0; text != NULL && found < 0 && list[i] != NULL; i++)
    if (strcmp(list[i], text) == 0) found = i;
  free(text);
  if (found < 0) wrong(u, "a format or codec is not known to this rank");
  return found;
}

static void *keep(unpacking *u, void *memory) {
  if (tegula__manifest_keep(u->out, memory, NULL) == TEGULA_OK) return memory;
  wrong(u, "out of memory");
  return NULL;
}

static const void *take_item(unpacking *u) {
  size_t size = u->out->dtype.item_size;
  uint8_t there = take_byte(u);
  if (there > 1 || (there == 1 && left(u) < (int64_t)size)) wrong(u, "a value is cut");
  RETURN_IF(u->problem != NULL || there == 0, NULL);
  void *item = malloc(size);
  if (item != NULL) memcpy(item, u->at, size);
  u->at += size;
  return keep(u, item);
}

/* ---- the array and its files ---- */

static void take_dtype(unpacking *u) {
  char *text = take_text(u);
  if (text != NULL && tegula_dtype_parse(text, &u->out->dtype, NULL) != TEGULA_OK)
    wrong(u, "the dtype is none");
  u->out->dtype = tegula_dtype_native(u->out->dtype);
  free(text);
}

static void take_shape(unpacking *u) {
  tegula__manifest *out = u->out;
  int64_t bytes;
  out->ndim = (int32_t)take_upto(u, TEGULA_MAX_DIMS);
  for (int32_t k = 0; k < out->ndim; k++) out->shape[k] = take_upto(u, INT64_MAX);
  if (u->problem == NULL &&
      !tegula__shape_bytes(out->shape, out->ndim, out->dtype.item_size, &bytes))
    wrong(u, "the shape is too large");
}

static void take_head(unpacking *u) {
  tegula__manifest *out = u->out;
  if (left(u) < (int64_t)sizeof TEGULA__PACKED_MAGIC ||
      memcmp(u->at, TEGULA__PACKED_MAGIC, sizeof TEGULA__PACKED_MAGIC) != 0)
    return wrong(u, "it is of another version of tegula");
  u->at += sizeof TEGULA__PACKED_MAGIC;
  if (take_byte(u) != TEGULA__NATIVE_ORDER)
    wrong(u, "it comes from a machine of another byte order");
  int32_t format = take_known(u, u->names->formats);
  if (format >= 0) out->format = u->names->formats[format];
  char *name = take_text(u);
  if (name != NULL && (name = keep(u, name)) != NULL) out->name = name;
  take_dtype(u);
  out->descr = take_text(u);
  if (out->descr != NULL && out->descr[0] == '\0') {
    free(out->descr);
    out->descr = NULL;
  }
  if (out->descr != NULL && out->dtype.kind != 'V')
    wrong(u, "a dtype without records has a description of them");
  take_shape(u);
  if (u->problem == NULL) out->fill = take_item(u);
}

static void take_records(unpacking *u, tegula__frame *out) {
  out->record = take_upto(u, INT64_MAX);
  if (out->record == 0) return;
  out->first = take_upto(u, INT64_MAX);
  out->most = take_upto(u, INT64_MAX);
  out->marker = take_byte(u);
  out->order = take_byte(u);
  if (u->problem == NULL && !tegula__frame_valid(out)) wrong(u, "the records of a file are none");
}

static void take_files(unpacking *u) {
  tegula__manifest *out = u->out;
  int64_t count = take_count(u, 4), size = 0, mtime = 0;
  if (count == 0) wrong(u, "it has no files");
  if (u->problem != NULL) return;
  out->files = calloc((size_t)count, sizeof *out->files);
  if (out->files == NULL) return wrong(u, "out of memory");
  for (; u->problem == NULL && out->file_count < count; out->file_count++) {
    tegula__file *file = &out->files[out->file_count];
    file->path = take_text(u);
    if (file->path != NULL && file->path[0] == '\0') wrong(u, "a file has no name");
    file->stamp.size = take_next_upto(u, &size, INT64_MAX);
    file->stamp.mtime_ns = take_next(u, &mtime);
    take_records(u, &file->frame);
    file->recorded = true;
  }
}

/* ---- grids ---- */

static uint8_t take_order(unpacking *u) {
  uint8_t order = take_byte(u);
  bool ordered = u->out->dtype.order != '|';
  if (ordered ? order != '<' && order != '>' : order != '|')
    wrong(u, "a byte order is none of the dtype's");
  return order;
}

static void take_filters(unpacking *u, tegula__grid *grid) {
  int32_t count = (int32_t)take_upto(u, TEGULA__CHAIN_MAX);
  grid->filters = calloc((size_t)count + 1, sizeof *grid->filters);
  if (grid->filters == NULL) return wrong(u, "out of memory");
  grid->filter_count = count;
  for (int32_t i = 0; u->problem == NULL && i < count; i++) {
    tegula__filter *filter = &grid->filters[i];
    int32_t codec = take_known(u, u->names->codecs);
    filter->codec = (uint16_t)tegula__max(0, codec);
    filter->param_count = (uint16_t)take_upto(u, TEGULA__FILTER_PARAMS);
    for (uint16_t k = 0; k < filter->param_count; k++)
      filter->params[k] = (uint32_t)take_upto(u, UINT32_MAX);
  }
}

static void take_places(unpacking *u, tegula__grid *grid, bool masks) {
  int64_t length = 0, place = 0;
  for (int64_t i = 0; u->problem == NULL && i < grid->count; i++)
    grid->chunks[i].length = (uint32_t)take_next_upto(u, &length, UINT32_MAX);
  for (int64_t i = 0; u->problem == NULL && i < grid->count; i++) {
    tegula__chunk *chunk = &grid->chunks[i];
    if (chunk->length == 0) continue;
    chunk->offset = (uint64_t)take_next_upto(u, &place, INT64_MAX);
    if (!tegula__add(place, chunk->length, &place)) wrong(u, "the place of a chunk overflows");
    if (masks) chunk->mask = (uint32_t)take_upto(u, UINT32_MAX);
  }
}

static void take_coordinates(unpacking *u, tegula__grid *grid) {
  int64_t next = 0; /* the least that the slot can be: at most the number of slots */
  grid->coordinates = calloc((size_t)grid->count + 1, sizeof *grid->coordinates);
  if (grid->coordinates == NULL) return wrong(u, "out of memory");
  for (int64_t i = 0; u->problem == NULL && i < grid->count; i++) {
    int64_t slot = next + take_upto(u, grid->slots - 1 - next);
    grid->coordinates[i] = (uint64_t)slot;
    next = slot + 1;
  }
}

static void take_table(unpacking *u, tegula__grid *grid, int64_t *file) {
  uint8_t flags = take_byte(u);
  if (flags > (TEGULA__PACKED_COORDINATES | TEGULA__PACKED_MASKS | TEGULA__PACKED_SLICES))
    wrong(u, "a grid has unknown flags");
  grid->file = take_next_upto(u, file, u->out->file_count - 1);
  grid->chunk_bytes = take_upto(u, INT64_MAX);
  if (grid->chunk_bytes == 0) wrong(u, "a chunk has no bytes");
  grid->order = take_order(u);
  take_filters(u, grid);
  grid->fill = take_item(u);
  grid->slots = take_upto(u, INT64_MAX);
  grid->slices = (flags & TEGULA__PACKED_SLICES) != 0;
  if (grid->slices && grid->filter_count > 0) wrong(u, "slices have codecs");
  grid->count = take_count(u, 1);
  bool some = (flags & TEGULA__PACKED_COORDINATES) != 0;
  if (!some && grid->count != grid->slots) wrong(u, "a table of chunks has not one for each slot");
  if (u->problem != NULL) return;
  grid->chunks = calloc((size_t)grid->count + 1, sizeof *grid->chunks);
  if (grid->chunks == NULL) return wrong(u, "out of memory");
  take_places(u, grid, (flags & TEGULA__PACKED_MASKS) != 0);
  if (some) take_coordinates(u, grid);
}

static void take_grids(unpacking *u) {
  int64_t count = take_count(u, 8), file = 0;
  for (int64_t i = 0; u->problem == NULL && i < count; i++) {
    tegula__grid *grid = calloc(1, sizeof *grid);
    if (grid == NULL) return wrong(u, "out of memory");
    take_table(u, grid, &file);
    if (u->problem == NULL && tegula__manifest_add_grid(u->out, grid, NULL) == TEGULA_OK) continue;
    wrong(u, "out of memory");
    tegula__grid_free(grid);
  }
}

/* ---- parts ---- */

static void take_vector(unpacking *u, int64_t *last) {
  for (int32_t k = 0; k < u->out->ndim; k++) (void)take_next(u, &last[k]);
}

static void take_box(unpacking *u, tegula__packed_last *last) {
  take_vector(u, last->lo);
  take_vector(u, last->hi);
  for (int32_t k = 0; k < u->out->ndim; k++)
    if (last->lo[k] < 0 || last->lo[k] > last->hi[k] || last->hi[k] > u->out->shape[k])
      wrong(u, "a part lies outside of the shape");
}

static void take_dense(unpacking *u, tegula__part *part, tegula__packed_last *last) {
  part->order = take_order(u);
  part->file = take_next_upto(u, &last->file, u->out->file_count - 1);
  part->offset = take_next_upto(u, &last->offset, INT64_MAX);
  take_vector(u, last->strides);
  part->strides = last->strides;
  if (u->problem == NULL && !tegula__strides_distinct(u->out->ndim, u->out->dtype.item_size,
                                                      part->lo, part->hi, part->strides))
    wrong(u, "two elements of a part share a byte");
}

static void take_chunked(unpacking *u, tegula__part *part, tegula__packed_last *last) {
  int64_t grid = take_next_upto(u, &last->grid, u->out->grid_count - 1);
  part->offset = take_next_upto(u, &last->offset, INT64_MAX);
  part->slot_base = take_next_upto(u, &last->slot, INT64_MAX);
  take_vector(u, last->strides);
  take_vector(u, last->start);
  take_vector(u, last->chunk);
  take_vector(u, last->slot_strides);
  bool steps = take_byte(u) != 0;
  if (steps) take_vector(u, last->step);
  if (u->problem != NULL) return;
  part->grid = u->out->grids[grid];
  part->order = part->grid->order;
  part->strides = last->strides;
  part->start = last->start;
  part->chunk = last->chunk;
  part->slot_strides = last->slot_strides;
  part->step = steps ? last->step : NULL;
  const char *problem = tegula__part_chunk_problem(u->out, part);
  if (problem != NULL) wrong(u, problem);
}

static const tegula_error *take_lost(unpacking *u) {
  char *status = take_text(u), *message = take_text(u), *hint = take_text(u), *path = take_text(u);
  int32_t number = (int32_t)take_upto(u, INT32_MAX);
  tegula_error *why = NULL;
  tegula_status named;
  if (u->problem == NULL && !tegula__status_named(status, &named))
    wrong(u, "a status is not known");
  if (u->problem == NULL && message[0] == '\0') wrong(u, "what is lost has no reason");
  if (u->problem == NULL && (why = malloc(sizeof *why)) != NULL) {
    tegula__hint(why, tegula__fail(why, named, path[0] != '\0' ? path : NULL, -1, "%s", message),
                 "%s", hint);
    why->os_errno = number;
  }
  if (u->problem == NULL) why = keep(u, why);
  free(status);
  free(message);
  free(hint);
  free(path);
  return why;
}

/* Without bytes: its strides are those of C order. */
static void take_absent(unpacking *u, tegula__part *part, int64_t *strides) {
  int64_t shape[TEGULA_MAX_DIMS];
  part->fill = take_item(u);
  if (part->kind == TEGULA__PART_LOST) part->lost = take_lost(u);
  if (u->problem != NULL) return;
  for (int32_t k = 0; k < u->out->ndim; k++) shape[k] = part->hi[k] - part->lo[k];
  tegula__dense_strides(shape, u->out->ndim, u->out->dtype.item_size, 'C', strides);
  part->strides = strides;
  part->order = u->out->dtype.order;
}

static const tegula__texts *take_texts(unpacking *u, tegula__packed_last *last) {
  int64_t code = take_upto(u, TEGULA__PACKED_TEXTS + TEGULA__MOST_TEXTS);
  if (code == TEGULA__PACKED_NO_TEXTS) return NULL;
  if (code == TEGULA__PACKED_SAME_TEXTS) return last->texts;
  tegula__texts *texts = keep(u, tegula__texts_new(code - TEGULA__PACKED_TEXTS));
  for (int64_t i = 0; u->problem == NULL && i < texts->count; i++) {
    tegula__text_place *place = &texts->places[i];
    place->offset = take_upto(u, INT64_MAX);
    place->count = take_upto(u, INT64_MAX);
    place->stride = take_upto(u, INT64_MAX);
    place->size = (uint32_t)take_upto(u, INT32_MAX);
    place->padding = take_byte(u);
  }
  if (u->problem == NULL && !tegula__texts_valid(texts, u->out->dtype.item_size))
    wrong(u, "a text lies outside of its element");
  return last->texts = texts;
}

static void take_part(unpacking *u, tegula__packed_last *last) {
  int64_t strides[TEGULA_MAX_DIMS];
  uint8_t kind = take_byte(u);
  tegula__part part = {.kind = kind, .file = TEGULA__NO_FILE, .lo = last->lo, .hi = last->hi};
  take_box(u, last);
  part.texts = take_texts(u, last);
  if (kind == TEGULA__PART_DENSE)
    take_dense(u, &part, last);
  else if (kind == TEGULA__PART_CHUNKED)
    take_chunked(u, &part, last);
  else if (kind == TEGULA__PART_FILL || kind == TEGULA__PART_LOST)
    take_absent(u, &part, strides);
  else
    wrong(u, "a part is of no known kind");
  if (u->problem == NULL && tegula__manifest_add_part(u->out, &part, NULL) != TEGULA_OK)
    wrong(u, "out of memory");
}

/* Each element of the shape belongs to one part. */
static void check_cover(unpacking *u) {
  tegula__cover cover;
  if (u->problem != NULL || tegula__parts_follow(u->out)) return;
  if (tegula__parts_cover(u->out, &cover, NULL) != TEGULA_OK) return wrong(u, "out of memory");
  if (!cover.good) wrong(u, "the parts do not hold each element once");
}

static void take_parts(unpacking *u) {
  tegula__packed_last last = {0};
  int64_t count = take_count(u, 1);
  for (int64_t i = 0; u->problem == NULL && i < count; i++) take_part(u, &last);
  if (left(u) > 0) wrong(u, "there is more than a manifest");
  check_cover(u);
}

tegula_status tegula__manifest_unpack(const void *data, size_t size, const char *path,
                                      const tegula__manifest_names *names, tegula__manifest *out,
                                      tegula_error *err) {
  unpacking u = {.begin = data,
                 .at = data,
                 .end = (const unsigned char *)data + size,
                 .names = names,
                 .out = out};
  take_head(&u);
  take_files(&u);
  take_grids(&u);
  take_parts(&u);
  if (u.problem == NULL) return TEGULA_OK;
  if (strcmp(u.problem, "out of memory") == 0) return tegula__out_of_memory(err, (int64_t)size);
  return tegula__fail(
      err, TEGULA_CORRUPT, path, -1,
      "cannot read the manifest of \"%s\" that another rank has sent (byte %lld of %zu): %s", path,
      (long long)(u.at - u.begin), size, u.problem);
}
