/* Readers of selections: the source's reader gives boxes, what is selected of them is copied.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A box of the selection is cut until its bounding box in the source lies within one piece of the
 * reader (its chunk, where it has any), or is small. */
#include <stdlib.h>

#include "dataset/selection.h"

/* of a bounding box, where the reader may be asked for any */
#define LARGEST_BOX ((int64_t)4 << 20)

typedef struct picker {
  tegula__reader reader; /* first: it is freed with the rest */
  const tegula__reader *inner;
  const tegula__kernels *kernels;
  int32_t ndim; /* axes of the source */
  bool chunked, as_it_is;
  tegula_dtype record; /* what the source's reader gives */
  tegula_dtype dtype;  /* what is picked, as it is in the record */
  int64_t offset;      /* there */
  int64_t field_strides[TEGULA_MAX_DIMS];
  int64_t lo[TEGULA_MAX_DIMS], from[TEGULA_MAX_DIMS], step[TEGULA_MAX_DIMS];
  int64_t part_lo[TEGULA_MAX_DIMS], start[TEGULA_MAX_DIMS], chunk[TEGULA_MAX_DIMS];
} picker;

/* The element of the source that is number `index` of the selection along axis k. */
static int64_t element(const picker *p, int32_t k, int64_t index) {
  return p->from[k] + (index - p->lo[k]) * p->step[k];
}

/* The chunk of that element. */
static int64_t chunk_of(const picker *p, int32_t k, int64_t index) {
  return (p->start[k] + element(p, k, index) - p->part_lo[k]) / p->chunk[k];
}

/* ---- one box ---- */

/* The source's elements from the first to the last of the box, in new memory, C-ordered. */
static tegula_status read_bounds(const picker *p, const tegula_box *box, int64_t bytes,
                                 tegula_view *view, tegula_error *err) {
  int64_t lengths[TEGULA_MAX_DIMS];
  *view = (tegula_view){
      .dtype = p->record, .device_type = TEGULA_DEVICE_HOST, .box = {.ndim = p->ndim}};
  for (int32_t k = 0; k < p->ndim; k++) {
    int64_t row = k == 0 ? p->inner->row : 0;
    view->box.lo[k] = element(p, k, box->lo[k]) - row;
    view->box.hi[k] = element(p, k, box->hi[k] - 1) + 1 - row;
    lengths[k] = view->box.hi[k] - view->box.lo[k];
  }
  tegula__dense_strides(lengths, p->ndim, p->record.item_size, 'C', view->stride_bytes);
  view->data = malloc((size_t)bytes);
  if (view->data == NULL) return tegula__out_of_memory(err, bytes);
  tegula_status status = p->inner->read(p->inner->state, view, err);
  if (status != TEGULA_OK) free(view->data);
  return status;
}

static char *address_of(const tegula_view *dst, const tegula_box *box) {
  char *address = dst->data;
  for (int32_t k = 0; k < box->ndim; k++)
    address += (box->lo[k] - dst->box.lo[k]) * dst->stride_bytes[k];
  return address;
}

static tegula_status pick(const picker *p, const tegula_box *box, int64_t bytes,
                          const tegula_view *dst, tegula_error *err) {
  tegula_view source;
  int64_t extents[TEGULA_MAX_DIMS], strides[TEGULA_MAX_DIMS];
  FORWARD(read_bounds(p, box, bytes, &source, err));
  const char *from = (const char *)source.data + p->offset;
  for (int32_t k = 0; k < box->ndim; k++) {
    extents[k] = box->hi[k] - box->lo[k];
    strides[k] = k < p->ndim ? source.stride_bytes[k] * p->step[k] : p->field_strides[k - p->ndim];
    if (k >= p->ndim) from += box->lo[k] * strides[k];
  }
  tegula__copy_strided(p->kernels, address_of(dst, box), dst->stride_bytes, from, strides, extents,
                       box->ndim, dst->dtype.item_size,
                       p->dtype.order != dst->dtype.order ? tegula__dtype_swap_size(p->dtype) : 1);
  free(source.data);
  return TEGULA_OK;
}

/* ---- cutting ---- */

/* Bytes of the source from the first to the last element; INT64_MAX: too many. */
static int64_t bounds_bytes(const picker *p, const tegula_box *box) {
  int64_t lengths[TEGULA_MAX_DIMS], bytes;
  for (int32_t k = 0; k < p->ndim; k++) lengths[k] = (box->hi[k] - box->lo[k] - 1) * p->step[k] + 1;
  return tegula__shape_bytes(lengths, p->ndim, p->record.item_size, &bytes) ? bytes : INT64_MAX;
}

/* Where to cut the box: at a border of chunks near its middle, or where it is long. False: it is
 * read at once. */
static bool find_cut(const picker *p, const tegula_box *box, int64_t bytes, int32_t *axis,
                     int64_t *at) {
  for (int32_t k = 0; p->chunked && k < p->ndim; k++) {
    int64_t first = chunk_of(p, k, box->lo[k]), last = chunk_of(p, k, box->hi[k] - 1);
    if (first == last) continue;
    int64_t border = (first + (last - first + 1) / 2) * p->chunk[k] - p->start[k] + p->part_lo[k];
    *axis = k;
    *at = p->lo[k] + tegula__ceil_div(border - p->from[k], p->step[k]);
    return true;
  }
  if (p->chunked || bytes <= LARGEST_BOX) return false;
  *axis = -1;
  for (int32_t k = 0; k < p->ndim; k++)
    if (box->hi[k] - box->lo[k] > 1 &&
        (*axis < 0 || box->hi[k] - box->lo[k] > box->hi[*axis] - box->lo[*axis]))
      *axis = k;
  if (*axis >= 0) *at = box->lo[*axis] + (box->hi[*axis] - box->lo[*axis]) / 2;
  return *axis >= 0;
}

static tegula_status read_box(const picker *p, const tegula_box *box, const tegula_view *dst,
                              tegula_error *err) {
  int32_t axis;
  int64_t at, bytes = bounds_bytes(p, box);
  if (!find_cut(p, box, bytes, &axis, &at)) return pick(p, box, bytes, dst, err);
  tegula_box half = *box;
  half.hi[axis] = at;
  FORWARD(read_box(p, &half, dst, err));
  half = *box;
  half.lo[axis] = at;
  return read_box(p, &half, dst, err);
}

/* Boxes without steps, of whole elements. */
static tegula_status pass_on(const picker *p, const tegula_view *dst, tegula_error *err) {
  tegula_view view = *dst;
  for (int32_t k = 0; k < p->ndim; k++) {
    int64_t row = k == 0 ? p->inner->row : 0;
    view.box.lo[k] = element(p, k, dst->box.lo[k]) - row;
    view.box.hi[k] = element(p, k, dst->box.hi[k]) - row;
  }
  return p->inner->read(p->inner->state, &view, err);
}

static tegula_status read_selected(void *state, const tegula_view *dst, tegula_error *err) {
  const picker *p = state;
  for (int32_t k = 0; k < dst->box.ndim; k++)
    if (dst->box.hi[k] <= dst->box.lo[k]) return TEGULA_OK;
  return p->as_it_is ? pass_on(p, dst, err) : read_box(p, &dst->box, dst, err);
}

/* ---- making one ---- */

/* Memory for a bounding box besides what the reader itself needs. */
static int64_t cost_of(const picker *p) {
  int64_t bytes = LARGEST_BOX, cost = tegula__max(0, p->inner->cost);
  if (p->as_it_is) return cost;
  if (p->chunked && !tegula__shape_bytes(p->chunk, p->ndim, p->record.item_size, &bytes))
    return INT64_MAX;
  return tegula__add(cost, bytes, &cost) ? cost : INT64_MAX;
}

static void take_field(picker *p, const tegula__field *field) {
  if (field == NULL) return;
  p->as_it_is = false;
  p->dtype = field->dtype;
  p->offset = field->offset;
  memcpy(p->field_strides, field->strides, sizeof p->field_strides);
}

tegula__reader *tegula__subset_reader(const tegula__manifest *source, const tegula__part *part,
                                      const tegula__subset *subset, const int64_t *from,
                                      const int64_t *lo, const tegula__kernels *kernels) {
  picker *p = calloc(1, sizeof *p);
  if (p == NULL) return NULL;
  p->inner = part->reader;
  p->kernels = kernels;
  p->ndim = source->ndim;
  p->chunked = part->chunk != NULL;
  p->as_it_is = true;
  p->record = p->dtype = source->dtype;
  for (int32_t k = 0; k < source->ndim; k++) {
    p->lo[k] = lo[k];
    p->from[k] = from[k];
    p->step[k] = subset->step[k];
    p->as_it_is = p->as_it_is && subset->step[k] == 1;
    p->part_lo[k] = part->lo[k];
    p->start[k] = p->chunked ? part->start[k] : 0;
    p->chunk[k] = p->chunked ? part->chunk[k] : 1;
  }
  take_field(p, subset->field);
  p->reader = (tegula__reader){.read = read_selected,
                               .state = p,
                               .name = part->reader->name,
                               .why = part->reader->why,
                               .cost = cost_of(p),
                               .local = part->reader->local};
  return &p->reader;
}
