/* A manifest -> packed bytes, for other ranks of the same run.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numbers are varints (7 bits a byte, the lowest first), mostly the difference to the one before in
 * the same place, so that a million chunks are some MB and read in milliseconds. The order of
 * everything is that of packed_read.c. */
#include <string.h>

#include "manifest/packed_priv.h"

static bool put(tegula__buffer *out, uint64_t number) {
  unsigned char bytes[10];
  size_t size = 0;
  for (; number >= 0x80; number >>= 7) bytes[size++] = (unsigned char)(number | 0x80);
  bytes[size++] = (unsigned char)number;
  return tegula__buffer_append(out, bytes, size);
}

/* The difference to *last, which then is the number. */
static bool put_next(tegula__buffer *out, int64_t number, int64_t *last) {
  uint64_t difference = (uint64_t)number - (uint64_t)*last;
  *last = number;
  return put(out, difference << 1 ^ ((int64_t)difference < 0 ? UINT64_MAX : 0));
}

static bool put_text(tegula__buffer *out, const char *text) {
  size_t size = strlen(text);
  return put(out, size) && tegula__buffer_append(out, text, size);
}

static bool put_byte(tegula__buffer *out, uint8_t byte) {
  return tegula__buffer_append(out, &byte, 1);
}

static bool put_item(tegula__buffer *out, const tegula__manifest *manifest, const void *item) {
  return put_byte(out, item != NULL) &&
         (item == NULL || tegula__buffer_append(out, item, manifest->dtype.item_size));
}

static bool put_head(tegula__buffer *out, const tegula__manifest *manifest) {
  char dtype[TEGULA_DTYPE_TEXT];
  tegula_dtype_format(manifest->dtype, dtype);
  bool good = tegula__buffer_append(out, TEGULA__PACKED_MAGIC, sizeof TEGULA__PACKED_MAGIC) &&
              put_byte(out, TEGULA__NATIVE_ORDER) && put_text(out, manifest->format) &&
              put_text(out, manifest->name) && put_text(out, dtype) &&
              put_text(out, manifest->descr != NULL ? manifest->descr : "") &&
              put(out, (uint64_t)manifest->ndim);
  for (int32_t k = 0; good && k < manifest->ndim; k++)
    good = put(out, (uint64_t)manifest->shape[k]);
  return good && put_item(out, manifest, manifest->fill);
}

static bool put_records(tegula__buffer *out, const tegula__frame *frame) {
  return put(out, (uint64_t)frame->record) &&
         (frame->record == 0 ||
          (put(out, (uint64_t)frame->first) && put(out, (uint64_t)frame->most) &&
           put_byte(out, frame->marker) && put_byte(out, frame->order)));
}

static tegula_status put_files(tegula__buffer *out, const tegula__manifest *manifest,
                               tegula__namer *namer, tegula_error *err) {
  int64_t size = 0, mtime = 0;
  if (!put(out, (uint64_t)manifest->file_count))
    return tegula__out_of_memory(err, (int64_t)out->size);
  for (int64_t i = 0; i < manifest->file_count; i++) {
    char *name = NULL;
    FORWARD(tegula__namer_name(namer, manifest->files[i].path, &name, err));
    const tegula__stamp *stamp = &manifest->files[i].stamp;
    bool good = put_text(out, name) && put_next(out, stamp->size, &size) &&
                put_next(out, stamp->mtime_ns, &mtime) &&
                put_records(out, &manifest->files[i].frame);
    free(name);
    if (!good) return tegula__out_of_memory(err, (int64_t)out->size);
  }
  return TEGULA_OK;
}

/* ---- grids ---- */

static bool put_filters(tegula__buffer *out, const tegula__grid *grid, const char *const *codecs) {
  bool good = put(out, (uint64_t)grid->filter_count);
  for (int32_t i = 0; good && i < grid->filter_count; i++) {
    const tegula__filter *filter = &grid->filters[i];
    good = put_text(out, codecs[filter->codec]) && put(out, filter->param_count);
    for (uint16_t k = 0; good && k < filter->param_count; k++) good = put(out, filter->params[k]);
  }
  return good;
}

/* Where a chunk begins is foretold from the one before: behind it. */
static bool put_chunks(tegula__buffer *out, const tegula__grid *grid, bool masks) {
  int64_t last = 0, place = 0;
  bool good = put(out, (uint64_t)grid->count);
  for (int64_t i = 0; good && i < grid->count; i++)
    good = put_next(out, grid->chunks[i].length, &last);
  for (int64_t i = 0; good && i < grid->count; i++) {
    const tegula__chunk *chunk = &grid->chunks[i];
    if (chunk->length == 0) continue; /* an absent chunk is nowhere */
    good = put_next(out, (int64_t)chunk->offset, &place) && (!masks || put(out, chunk->mask));
    place += chunk->length;
  }
  for (int64_t i = 0; good && grid->coordinates != NULL && i < grid->count; i++)
    good = put(out, grid->coordinates[i] - (i > 0 ? grid->coordinates[i - 1] + 1 : 0));
  return good;
}

static bool put_grid(tegula__buffer *out, const tegula__manifest *manifest,
                     const tegula__grid *grid, const char *const *codecs, int64_t *file) {
  bool masks = false;
  for (int64_t i = 0; !masks && i < grid->count; i++)
    masks = grid->chunks[i].length > 0 && grid->chunks[i].mask != 0;
  uint8_t flags =
      (uint8_t)((grid->coordinates != NULL ? TEGULA__PACKED_COORDINATES : 0) |
                (masks ? TEGULA__PACKED_MASKS : 0) | (grid->slices ? TEGULA__PACKED_SLICES : 0));
  return put_byte(out, flags) && put_next(out, grid->file, file) &&
         put(out, (uint64_t)grid->chunk_bytes) && put_byte(out, grid->order) &&
         put_filters(out, grid, codecs) && put_item(out, manifest, grid->fill) &&
         put(out, (uint64_t)grid->slots) && put_chunks(out, grid, masks);
}

static bool put_grids(tegula__buffer *out, const tegula__manifest *manifest,
                      const char *const *codecs) {
  int64_t file = 0;
  bool good = put(out, (uint64_t)manifest->grid_count);
  for (int64_t i = 0; good && i < manifest->grid_count; i++)
    good = put_grid(out, manifest, manifest->grids[i], codecs, &file);
  return good;
}

/* ---- parts ---- */

static bool put_vector(tegula__buffer *out, const int64_t *numbers, int32_t ndim, int64_t *last) {
  bool good = true;
  for (int32_t k = 0; good && k < ndim; k++) good = put_next(out, numbers[k], &last[k]);
  return good;
}

static bool put_lost(tegula__buffer *out, const tegula_error *lost) {
  return put_text(out, tegula_status_name(lost->status)) && put_text(out, lost->message) &&
         put_text(out, lost->hint) && put_text(out, lost->path) &&
         put(out, (uint64_t)tegula__max(0, lost->os_errno));
}

static bool put_texts(tegula__buffer *out, const tegula__texts *texts, tegula__packed_last *last) {
  if (texts == NULL) return put(out, TEGULA__PACKED_NO_TEXTS);
  if (texts == last->texts) return put(out, TEGULA__PACKED_SAME_TEXTS);
  last->texts = texts;
  bool good = put(out, TEGULA__PACKED_TEXTS + (uint64_t)texts->count);
  for (int64_t i = 0; good && i < texts->count; i++) {
    const tegula__text_place *place = &texts->places[i];
    good = put(out, (uint64_t)place->offset) && put(out, (uint64_t)place->count) &&
           put(out, (uint64_t)place->stride) && put(out, place->size) &&
           put_byte(out, place->padding);
  }
  return good;
}

static bool put_part(tegula__buffer *out, const tegula__manifest *manifest,
                     const tegula__part *part, tegula__packed_last *last) {
  int32_t ndim = manifest->ndim;
  bool good = put_byte(out, (uint8_t)part->kind) && put_vector(out, part->lo, ndim, last->lo) &&
              put_vector(out, part->hi, ndim, last->hi) && put_texts(out, part->texts, last);
  switch (part->kind) {
    case TEGULA__PART_DENSE:
      return good && put_byte(out, part->order) && put_next(out, part->file, &last->file) &&
             put_next(out, part->offset, &last->offset) &&
             put_vector(out, part->strides, ndim, last->strides);
    case TEGULA__PART_CHUNKED: {
      int64_t grid = tegula__part_grid_number(manifest, part, last->grid);
      return good && put_next(out, grid, &last->grid) &&
             put_next(out, part->offset, &last->offset) &&
             put_next(out, part->slot_base, &last->slot) &&
             put_vector(out, part->strides, ndim, last->strides) &&
             put_vector(out, part->start, ndim, last->start) &&
             put_vector(out, part->chunk, ndim, last->chunk) &&
             put_vector(out, part->slot_strides, ndim, last->slot_strides) &&
             put_byte(out, part->step != NULL) &&
             (part->step == NULL || put_vector(out, part->step, ndim, last->step));
    }
    case TEGULA__PART_LOST:
      return good && put_item(out, manifest, part->fill) && put_lost(out, part->lost);
    default:
      return good && put_item(out, manifest, part->fill);
  }
}

static bool put_parts(tegula__buffer *out, const tegula__manifest *manifest) {
  tegula__packed_last last = {0};
  bool good = put(out, (uint64_t)manifest->part_count);
  for (int64_t i = 0; good && i < manifest->part_count; i++)
    good = put_part(out, manifest, &manifest->parts[i], &last);
  return good;
}

tegula_status tegula__manifest_pack(const tegula__manifest *manifest,
                                    const tegula__manifest_names *names, tegula__buffer *out,
                                    tegula_error *err) {
  tegula__namer namer;
  FORWARD(tegula__manifest_check_writable(manifest, err));
  FORWARD(tegula__namer_init(&namer, NULL, err));
  bool good = put_head(out, manifest);
  tegula_status status =
      good ? put_files(out, manifest, &namer, err) : tegula__out_of_memory(err, (int64_t)out->size);
  tegula__namer_free(&namer);
  if (status != TEGULA_OK) return status;
  good = put_grids(out, manifest, names->codecs) && put_parts(out, manifest);
  return good ? TEGULA_OK : tegula__out_of_memory(err, (int64_t)out->size);
}
