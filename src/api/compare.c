/* tegula_compare: two datasets window by window, whatever their layouts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "api/stream.h"
#include "check/check.h"

void tegula_difference_init(tegula_difference *difference) { *difference = (tegula_difference){.struct_size = sizeof *difference}; }

/* Both texts and the reason. Texts that are too long are cut. */
static void differ(tegula_difference *out, const char *what, const char *a, const char *b) {
  out->equal = 0;
  snprintf(out->a, sizeof out->a, "%.127s", a);
  snprintf(out->b, sizeof out->b, "%.127s", b);
  snprintf(out->reason, sizeof out->reason, "%.100s: %.60s in the first, %.60s in the second", what, a, b);
}

/* Shape, dtype and, where both have one, the record description. */
static bool heads_differ(const tegula__manifest *a, const tegula__manifest *b, tegula_difference *out) {
  char left[TEGULA__SHAPE_TEXT], right[TEGULA__SHAPE_TEXT];
  bool same = a->ndim == b->ndim;
  for (int32_t k = 0; same && k < a->ndim; k++) same = a->shape[k] == b->shape[k];
  if (!same) {
    tegula__shape_format(a->shape, a->ndim, left);
    tegula__shape_format(b->shape, b->ndim, right);
    differ(out, "the shapes differ", left, right);
  } else if (!tegula_dtype_same(a->dtype, b->dtype)) {
    tegula_dtype_format(a->dtype, left);
    tegula_dtype_format(b->dtype, right);
    differ(out, "the dtypes differ", left, right);
  } else if (a->descr != NULL && b->descr != NULL && strcmp(a->descr, b->descr) != 0) {
    differ(out, "the record descriptions differ", a->descr, b->descr);
  }
  return out->equal == 0;
}

/* Element `number` in C order differs. */
static void describe_element(const tegula__manifest *manifest, int64_t number, const char *a, const char *b, tegula_difference *out) {
  char what[TEGULA__SHAPE_TEXT + 32], left[sizeof out->a], right[sizeof out->b], index[TEGULA__SHAPE_TEXT];
  out->has_index = 1;
  out->ndim = manifest->ndim;
  for (int32_t k = manifest->ndim - 1; k >= 0; k--) {
    out->index[k] = number % manifest->shape[k];
    number /= manifest->shape[k];
  }
  tegula__shape_format(out->index, out->ndim, index);
  snprintf(what, sizeof what, "the element at %s differs", index);
  tegula__element_format(manifest->dtype, a, left, sizeof left);
  tegula__element_format(manifest->dtype, b, right, sizeof right);
  differ(out, what, left, right);
}

static tegula_status compare_windows(tegula__stream *a, tegula__stream *b, int64_t elements, int64_t window, bool values,
                                     tegula_difference *out, tegula_error *err) {
  const tegula__manifest *manifest = &a->dataset->manifest;
  tegula__pool *pool = a->dataset->context->engine.pool;
  for (int64_t first = 0; first < elements && out->equal; first += window) {
    int64_t count = tegula__min(window, elements - first);
    FORWARD(tegula__stream_read(a, first, count, err));
    FORWARD(tegula__stream_read(b, first, count, err));
    int64_t found = tegula__compare_run(pool, manifest->dtype, a->window.data, b->window.data, count, values);
    if (found < 0) continue;
    int64_t at = found * manifest->dtype.item_size;
    describe_element(manifest, first + found, a->window.data + at, b->window.data + at, out);
  }
  return TEGULA_OK;
}

/* Rows that are stored together in chunks; 1 where there are none. */
static int64_t rows_together(const tegula__manifest *manifest) {
  int64_t rows = 1;
  for (int64_t i = 0; i < manifest->part_count && manifest->ndim > 0; i++)
    if (manifest->parts[i].kind == TEGULA__PART_CHUNKED) rows = tegula__max(rows, manifest->parts[i].chunk[0]);
  return rows;
}

static tegula_status compare_elements(const tegula_dataset *a, const tegula_dataset *b, bool values, const tegula_load_options *options,
                                      tegula__tally *tally, tegula_difference *out, tegula_error *err) {
  const tegula__manifest *manifest = &a->manifest;
  int64_t item = manifest->dtype.item_size, elements;
  tegula__shape_count(manifest->shape, manifest->ndim, &elements);
  int64_t window = tegula__min(elements, tegula__max(1, TEGULA__STREAM_BYTES / 2 / item));
  int64_t row = elements > 0 && manifest->ndim > 0 ? elements / manifest->shape[0] : 1;
  if (window > row) window -= window % row; /* whole rows: none is read in two windows; */
  int64_t slab;                             /* and whole chunks, where so much goes into a window */
  bool fits = tegula__mul(row, tegula__max(rows_together(manifest), rows_together(&b->manifest)), &slab) && slab > 0 && window > slab;
  if (fits) window -= window % slab;
  tegula__stream_call call = {.options = options, .tally = tally, .total = 2 * elements * item};
  tegula__stream left = {0}, right = {0};
  tegula_status status = tegula__stream_create(&call, a, window, &left, err);
  if (status == TEGULA_OK) status = tegula__stream_create(&call, b, window, &right, err);
  if (status == TEGULA_OK) status = compare_windows(&left, &right, elements, window, values, out, err);
  tegula__stream_free(&left);
  tegula__stream_free(&right);
  return status;
}

/* Windows are cut by the chunks of both. */
static tegula_status compare_all(const tegula_dataset *a, const tegula_dataset *b, bool values, const tegula_load_options *options,
                                 tegula__tally *tally, tegula_difference *out, tegula_error *err) {
  tegula_dataset *left, *right;
  if (heads_differ(&a->manifest, &b->manifest, out)) return TEGULA_OK;
  FORWARD(tegula__dataset_view_all(a, options, &tally->counts, &left, err));
  tegula_status status = tegula__dataset_view_all(b, options, &tally->counts, &right, err);
  if (status == TEGULA_OK) {
    status = compare_elements(left, right, values, options, tally, out, err);
    tegula_dataset_close(right);
  }
  tegula_dataset_close(left);
  return status;
}

/* Both datasets' places in one list, so that the two turns are one. */
static tegula_status join_places(const tegula_dataset *a, const tegula_dataset *b, tegula__places *out, tegula_error *err) {
  int64_t count = a->places.count + b->places.count;
  *out = (tegula__places){.items = tegula__realloc_array(NULL, count, sizeof *out->items), .count = count};
  if (out->items == NULL) return tegula__out_of_memory(err, count * (int64_t)sizeof *out->items);
  for (int64_t i = 0; i < count; i++)
    out->items[i] = i < a->places.count ? a->places.items[i] : b->places.items[i - a->places.count];
  return TEGULA_OK;
}

tegula_status tegula_compare(tegula_dataset *a, tegula_dataset *b, uint32_t flags, const tegula_load_options *options,
                             tegula_difference *out, tegula_error *err) {
  CHECK_ARGUMENT(a != NULL && b != NULL && out != NULL, "a dataset or the place for the difference is NULL");
  CHECK_ARGUMENT(a->context == b->context, "the datasets belong to different contexts");
  CHECK_ARGUMENT((flags & ~TEGULA_COMPARE_VALUES) == 0, "unknown flags are set");
  FORWARD(tegula__alone(a->context, "compare", err));
  tegula_load_options local;
  tegula__tally tally;
  tegula__places places;
  tegula_op turn;
  tegula_difference found = {.equal = 1};
  tegula_load_options_init(&local);
  FORWARD(tegula__load_options_copy(&local, options, err));
  FORWARD(tegula__info_copy(out, sizeof found, FIRST_DIFFERENCE, &found, "tegula_difference", err)); /* a wrong size is said at once */
  FORWARD(tegula__tally_start(&tally, local.statistics, err));
  FORWARD(join_places(a, b, &places, err));
  tegula__queue_enter(a->context->queue, &turn, &(tegula__touch){.places = &places});
  tegula_status status = tegula__dataset_confirm(a, &tally.counts, err);
  if (status == TEGULA_OK) status = tegula__dataset_confirm(b, &tally.counts, err);
  if (status == TEGULA_OK)
    status = compare_all(a, b, (flags & TEGULA_COMPARE_VALUES) != 0, &local, &tally, &found, err);
  tegula__queue_leave(&turn);
  free(places.items);
  status = tegula__comm_agree(a->context->comm, status, err);
  tegula__tally_end(&tally, local.statistics, offsetof(tegula_statistics, seconds_move));
  return status != TEGULA_OK ? status : tegula__info_copy(out, sizeof found, FIRST_DIFFERENCE, &found, "tegula_difference", err);
}
