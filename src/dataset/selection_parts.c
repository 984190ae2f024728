/* The manifest of a selection.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Along axis k of the source the selected elements are lo + j * step. A part that holds elements j0
 * to j1 of them becomes a part [j0, j1) of the selection; its strides are `step` times as long. A
 * field is at the same strides with a smaller element; its own axes follow those of the source. */
#include <stdlib.h>

#include "dataset/selection.h"

/* A manifest that is being made. */
typedef struct selecting {
  const tegula__manifest *source;
  const tegula__subset *subset;
  const tegula__kernels *kernels;
  tegula__manifest *out;
  tegula__grid *grids; /* as those of the source, with what is read of them */
  int64_t grid;        /* of the last part: parts mostly follow the order of their grids */
  const tegula__texts *from, *to; /* of the last part, in the source and here */
} selecting;

/* The vectors of a part that is being made. */
typedef struct vectors {
  int64_t from[TEGULA_MAX_DIMS]; /* the first selected element, in the source */
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], strides[TEGULA_MAX_DIMS],
      start[TEGULA_MAX_DIMS], chunk[TEGULA_MAX_DIMS], slot_strides[TEGULA_MAX_DIMS],
      step[TEGULA_MAX_DIMS];
} vectors;

/* ---- items ---- */

/* True where all elements of an array field have the bytes of the first. */
static bool all_equal(const char *first, const tegula__field *field, int32_t k, const char *item) {
  if (k == field->ndim) return memcmp(first, item, field->dtype.item_size) == 0;
  for (int64_t i = 0; i < field->shape[k]; i++, item += field->strides[k])
    if (!all_equal(first, field, k + 1, item)) return false;
  return true;
}

/* The field of a record that stands for what was never written, in native byte order. */
static tegula_status item_of(selecting *s, const void *record, const void **out,
                             tegula_error *err) {
  const tegula__field *field = s->subset->field;
  *out = record;
  if (field == NULL || record == NULL) return TEGULA_OK;
  tegula_dtype native = s->out->dtype;
  int64_t zero[1] = {0}, one[1] = {1};
  const char *bytes = (const char *)record + field->offset;
  *out = NULL;
  for (int32_t k = 0; k < field->ndim; k++) RETURN_IF(field->shape[k] == 0, TEGULA_OK);
  if (!all_equal(bytes, field, 0, bytes))
    return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                        "the fill value of the field is an array of different values");
  char *item = malloc(native.item_size);
  if (item != NULL)
    tegula__copy_strided(s->kernels, item, zero, bytes, zero, one, 1, native.item_size,
                         field->dtype.order != native.order ? tegula__dtype_swap_size(native) : 1);
  *out = item;
  return tegula__manifest_keep(s->out, item, err);
}

static tegula_status copy_grids(selecting *s, tegula_error *err) {
  const tegula__manifest *source = s->source;
  s->grids = tegula__realloc_array(NULL, source->grid_count + 1, sizeof *s->grids);
  FORWARD(tegula__manifest_keep(s->out, s->grids, err));
  for (int64_t i = 0; i < source->grid_count; i++) {
    tegula__grid *grid = &s->grids[i];
    *grid = *source->grids[i];
    if (s->subset->field != NULL) grid->order = s->subset->field->dtype.order;
    FORWARD(item_of(s, grid->fill, &grid->fill, err));
    FORWARD(tegula__manifest_add_grid(s->out, grid, err));
  }
  return TEGULA_OK;
}

/* The texts of a field among those of its records. */
static tegula_status texts_of(selecting *s, const tegula__texts *records, const tegula__texts **out,
                              tegula_error *err) {
  const tegula__field *field = s->subset->field;
  *out = records;
  if (records == NULL || field == NULL) return TEGULA_OK;
  tegula__texts *texts = tegula__texts_new(records->count);
  FORWARD(tegula__manifest_keep(s->out, texts, err));
  texts->count = 0;
  for (int64_t i = 0; i < records->count; i++) {
    tegula__text_place place = records->places[i];
    place.offset -= field->offset;
    /* of a field that is an array of texts the first stands for all */
    if (field->descr == NULL) place.count = 1;
    if (place.offset < 0 || place.offset >= field->dtype.item_size) continue;
    texts->places[texts->count++] = place;
  }
  *out = texts->count > 0 ? texts : NULL;
  return TEGULA_OK;
}

/* ---- parts ---- */

/* The elements of the part that are selected; false: none is. */
static bool select_elements(const selecting *s, const tegula__part *part, vectors *v) {
  const tegula__subset *subset = s->subset;
  for (int32_t k = 0; k < s->source->ndim; k++) {
    int64_t lo = tegula__max(part->lo[k], subset->lo[k]) - subset->lo[k],
            hi = tegula__min(part->hi[k], subset->hi[k]) - subset->lo[k], step = subset->step[k];
    if (hi <= lo) return false;
    v->lo[k] = tegula__ceil_div(lo, step);
    v->hi[k] = tegula__ceil_div(hi, step);
    if (v->hi[k] <= v->lo[k]) return false;
    v->from[k] = subset->lo[k] + v->lo[k] * step;
  }
  return true;
}

/* The axes of a field that is an array: whole, and within each element. */
static void add_field_axes(const selecting *s, vectors *v) {
  const tegula__field *field = s->subset->field;
  int32_t first = s->source->ndim;
  if (field == NULL) return;
  for (int32_t i = 0; i < field->ndim; i++) {
    int32_t k = first + i;
    v->lo[k] = v->start[k] = v->slot_strides[k] = 0;
    v->hi[k] = v->chunk[k] = field->shape[i];
    v->strides[k] = field->strides[i];
    v->step[k] = 1;
  }
}

/* Axis k of a part in chunks; *offset moves with the first element where steps fit into chunks: the
 * part is then like one whose chunks are shorter, without steps. */
static bool step_axis(const selecting *s, const tegula__part *part, int32_t k, vectors *v,
                      int64_t *offset) {
  int64_t old = tegula__part_step(part, k), stride = part->strides[k] / old,
          step = v->hi[k] - v->lo[k] > 1 ? old * s->subset->step[k] : 1,
          start = tegula__part_element(part, k, v->from[k]);
  v->slot_strides[k] = part->slot_strides != NULL ? part->slot_strides[k] : 0;
  if (!tegula__mul(stride, step, &v->strides[k])) return false;
  bool fits = part->chunk[k] % step == 0;
  v->start[k] = fits ? start / step : start;
  v->chunk[k] = fits ? part->chunk[k] / step : part->chunk[k];
  v->step[k] = fits ? 1 : step;
  if (fits) *offset += start % step * stride;
  return true;
}

static tegula_status too_long_a_step(tegula_error *err) {
  return tegula__fail(err, TEGULA_LIMIT_EXCEEDED, NULL, -1,
                      "the steps of a selection span more than 2^63 bytes");
}

static tegula_status add_dense(selecting *s, const tegula__part *part, vectors *v,
                               tegula_error *err) {
  tegula__part made = *part;
  for (int32_t k = 0; k < s->source->ndim; k++) {
    made.offset += (v->from[k] - part->lo[k]) * part->strides[k];
    v->strides[k] = part->strides[k] * (v->hi[k] - v->lo[k] > 1 ? s->subset->step[k] : 1);
  }
  add_field_axes(s, v);
  if (s->subset->field != NULL) {
    made.offset += s->subset->field->offset;
    made.order = s->subset->field->dtype.order;
  }
  made.lo = v->lo;
  made.hi = v->hi;
  made.strides = v->strides;
  return tegula__manifest_add_part(s->out, &made, err);
}

static tegula_status add_chunked(selecting *s, const tegula__part *part, vectors *v,
                                 tegula_error *err) {
  tegula__part made = *part;
  bool steps = false;
  while (s->source->grids[s->grid] != part->grid) s->grid = (s->grid + 1) % s->source->grid_count;
  for (int32_t k = 0; k < s->source->ndim; k++) {
    if (!step_axis(s, part, k, v, &made.offset)) return too_long_a_step(err);
    steps = steps || v->step[k] > 1;
  }
  add_field_axes(s, v);
  if (s->subset->field != NULL) made.offset += s->subset->field->offset;
  made.grid = &s->grids[s->grid];
  made.order = made.grid->order;
  made.lo = v->lo;
  made.hi = v->hi;
  made.strides = v->strides;
  made.start = v->start;
  made.chunk = v->chunk;
  made.slot_strides = v->slot_strides;
  made.step = steps ? v->step : NULL;
  return tegula__manifest_add_part(s->out, &made, err);
}

/* A part without bytes in a file: its strides are those of C order. */
static tegula_status add_other(selecting *s, const tegula__part *part, vectors *v,
                               tegula_error *err) {
  tegula__part made = *part;
  int64_t extents[TEGULA_MAX_DIMS], unused = 0;
  if (part->chunk != NULL)
    for (int32_t k = 0; k < s->source->ndim; k++) {
      if (!step_axis(s, part, k, v, &unused)) return too_long_a_step(err);
      v->start[k] /= v->step[k];
      v->chunk[k] = tegula__ceil_div(v->chunk[k], v->step[k]);
    }
  add_field_axes(s, v);
  for (int32_t k = 0; k < s->out->ndim; k++) extents[k] = v->hi[k] - v->lo[k];
  tegula__dense_strides(extents, s->out->ndim, s->out->dtype.item_size, 'C', v->strides);
  FORWARD(item_of(s, part->fill, &made.fill, err));
  made.order = s->out->dtype.order;
  made.lo = v->lo;
  made.hi = v->hi;
  made.strides = v->strides;
  made.start = part->chunk != NULL ? v->start : NULL;
  made.chunk = part->chunk != NULL ? v->chunk : NULL;
  made.slot_strides = part->chunk != NULL ? v->slot_strides : NULL;
  if (part->kind == TEGULA__PART_READ) {
    tegula__reader *reader =
        tegula__subset_reader(s->source, part, s->subset, v->from, v->lo, s->kernels);
    FORWARD(tegula__manifest_keep(s->out, reader, err));
    FORWARD(tegula__manifest_add_reader(s->out, reader, err));
    made.reader = reader;
  }
  return tegula__manifest_add_part(s->out, &made, err);
}

static tegula_status add_part(selecting *s, const tegula__part *source, tegula_error *err) {
  vectors v;
  tegula__part part = *source;
  if (!select_elements(s, source, &v)) return TEGULA_OK;
  if (source->texts != s->from) FORWARD(texts_of(s, source->texts, &s->to, err));
  s->from = source->texts;
  part.texts = s->from != NULL ? s->to : NULL;
  switch (part.kind) {
    case TEGULA__PART_DENSE:
      return add_dense(s, &part, &v, err);
    case TEGULA__PART_CHUNKED:
      return add_chunked(s, &part, &v, err);
    case TEGULA__PART_LATE:
      break; /* whoever selects finds out first; what is not known is not selected */
    default:
      return add_other(s, &part, &v, err);
  }
  return tegula__fail(err, TEGULA_INTERNAL, NULL, -1, "a selection meets a part that is not known");
}

/* ---- the manifest ---- */

/* Without elements there is one empty part, as drivers give. */
static tegula_status add_empty(selecting *s, tegula_error *err) {
  int64_t zero[TEGULA_MAX_DIMS] = {0}, strides[TEGULA_MAX_DIMS];
  for (int32_t k = 0; k < s->out->ndim; k++) strides[k] = s->out->dtype.item_size;
  return tegula__manifest_add_part(s->out,
                                   &(tegula__part){.kind = TEGULA__PART_FILL,
                                                   .file = TEGULA__NO_FILE,
                                                   .order = s->out->dtype.order,
                                                   .lo = zero,
                                                   .hi = s->out->shape,
                                                   .strides = strides},
                                   err);
}

static tegula_status add_parts(selecting *s, tegula_error *err) {
  const tegula__manifest *source = s->source;
  int64_t first = 0, last = source->part_count;
  FORWARD(copy_grids(s, err));
  FORWARD(item_of(s, source->fill, &s->out->fill, err));
  if (source->ndim > 0)
    tegula__manifest_find(source, s->subset->lo[0], s->subset->hi[0], &first, &last);
  for (int64_t i = first; i < last; i++) FORWARD(add_part(s, &source->parts[i], err));
  int64_t zero[TEGULA_MAX_DIMS] = {0};
  bool empty = tegula__box_count(s->out->ndim, zero, s->out->shape) == 0;
  return empty ? add_empty(s, err) : TEGULA_OK;
}

/* dtype, shape and names. */
static tegula_status describe(selecting *s, tegula_error *err) {
  const tegula__manifest *source = s->source;
  const tegula__field *field = s->subset->field;
  tegula__manifest *out = s->out;
  const char *descr = field != NULL ? field->descr : source->descr;
  out->dtype = tegula_dtype_native(field != NULL ? field->dtype : source->dtype);
  out->ndim = source->ndim + (field != NULL ? field->ndim : 0);
  out->format = source->format;
  out->name = source->name;
  out->files = source->files;
  out->file_count = source->file_count;
  if (out->ndim > TEGULA_MAX_DIMS)
    return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                        "the field has %d axes, the dataset %d: together more than %d", field->ndim,
                        source->ndim, TEGULA_MAX_DIMS);
  for (int32_t k = 0; k < source->ndim; k++)
    out->shape[k] = tegula__ceil_div(s->subset->hi[k] - s->subset->lo[k], s->subset->step[k]);
  for (int32_t k = source->ndim; k < out->ndim; k++) out->shape[k] = field->shape[k - source->ndim];
  out->descr = tegula__strdup(descr);
  return descr == NULL || out->descr != NULL ? TEGULA_OK : tegula__out_of_memory(err, 64);
}

void tegula__subset_manifest_free(tegula__manifest *manifest) {
  if (manifest->vectors == NULL)
    for (int64_t i = 0; i < manifest->part_count; i++) free((void *)manifest->parts[i].lo);
  manifest->borrows = true;
  manifest->files = NULL;
  manifest->file_count = 0;
  tegula__manifest_free(manifest);
}

tegula_status tegula__subset_manifest(const tegula__manifest *source, const tegula__subset *subset,
                                      const tegula__kernels *kernels, tegula__manifest *out,
                                      tegula_error *err) {
  selecting s = {.source = source, .subset = subset, .kernels = kernels, .out = out};
  tegula__manifest_init(out);
  tegula_status status = describe(&s, err);
  if (status == TEGULA_OK) status = add_parts(&s, err);
  if (status == TEGULA_OK) status = tegula__manifest_finish(out, err);
  if (status != TEGULA_OK) tegula__subset_manifest_free(out);
  return status;
}
