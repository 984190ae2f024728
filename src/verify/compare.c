/* tegula_compare: two datasets window by window, whatever their layouts. On several ranks each
 * compares a run of windows; the first difference, or failure, counts, as in one process.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "dataset/scan.h"
#include "verify/hash.h"
#include "verify/problems.h"
#include "verify/verify.h"

/* Both texts and the reason. Texts that are too long are cut. */
static void differ(tegula_difference *out, const char *what, const char *a, const char *b) {
  out->equal = 0;
  snprintf(out->a, sizeof out->a, "%.127s", a);
  snprintf(out->b, sizeof out->b, "%.127s", b);
  snprintf(out->reason, sizeof out->reason, "%.100s: %.60s in the first, %.60s in the second", what,
           a, b);
}

/* Shape, dtype and, where both have one, the record description. */
static bool heads_differ(const tegula__manifest *a, const tegula__manifest *b,
                         tegula_difference *out) {
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
static void describe_element(const tegula__manifest *manifest, int64_t number, const char *a,
                             const char *b, tegula_difference *out) {
  char what[TEGULA__SHAPE_TEXT + 32], left[sizeof out->a], right[sizeof out->b],
      index[TEGULA__SHAPE_TEXT];
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

/* The elements [begin, end). */
static tegula_status compare_windows(tegula__stream *a, tegula__stream *b, int64_t begin,
                                     int64_t end, int64_t window, bool values,
                                     tegula_difference *out, tegula_error *err) {
  const tegula__manifest *manifest = &a->dataset->manifest;
  tegula__pool *pool = a->dataset->context->engine.pool;
  for (int64_t first = begin; first < end && out->equal; first += window) {
    int64_t count = tegula__min(window, end - first);
    FORWARD(tegula__stream_read(a, first, count, err));
    FORWARD(tegula__stream_read(b, first, count, err));
    int64_t found =
        tegula__compare_run(pool, manifest->dtype, a->window.data, b->window.data, count, values);
    if (found < 0) continue;
    int64_t at = found * manifest->dtype.item_size;
    describe_element(manifest, first + found, a->window.data + at, b->window.data + at, out);
  }
  return TEGULA_OK;
}

/* Rows that are stored together in most chunks; 1 where there are none. */
static int64_t rows_together(const tegula__manifest *manifest) {
  const tegula__part *part = manifest->ndim > 0 ? tegula__storage_in_chunks(manifest) : NULL;
  return part != NULL ? tegula__part_chunk_length(part, 0) : 1;
}

/* Elements of a window: whole rows, so that none is read in two windows, and whole chunks, where so
 * much goes into one. On ranks there is one for each at least, where there are so many elements. */
static int64_t choose_window(const tegula__manifest *a, const tegula__manifest *b, int64_t elements,
                             int32_t ranks) {
  int64_t window =
              tegula__min(elements, tegula__max(1, TEGULA__STREAM_BYTES / 2 / a->dtype.item_size)),
          slab;
  int64_t row = elements > 0 && a->ndim > 0 ? elements / a->shape[0] : 1;
  if (ranks > 1) window = tegula__max(1, tegula__min(window, tegula__ceil_div(elements, ranks)));
  if (window > row) window -= window % row;
  bool fits = tegula__mul(row, tegula__max(rows_together(a), rows_together(b)), &slab) &&
              slab > 0 && window > slab;
  return fits ? window - window % slab : window;
}

/* The first element of the windows of a rank. */
static int64_t window_of(int64_t elements, int64_t window, int64_t rank, int64_t ranks) {
  int64_t windows = elements > 0 ? tegula__ceil_div(elements, window) : 0;
  return tegula__min(elements, (windows / ranks * rank + windows % ranks * rank / ranks) * window);
}

static tegula_status compare_elements(const tegula_dataset *a, const tegula_dataset *b, bool values,
                                      const tegula_load_options *options, tegula__tally *tally,
                                      tegula_difference *out, tegula_error *err) {
  const tegula__manifest *manifest = &a->manifest;
  const tegula_comm *comm = a->context->comm;
  int64_t item = manifest->dtype.item_size, elements;
  tegula__shape_count(manifest->shape, manifest->ndim, &elements);
  int64_t window = choose_window(manifest, &b->manifest, elements, comm->size);
  int64_t begin = window_of(elements, window, comm->rank, comm->size),
          end = window_of(elements, window, comm->rank + 1, comm->size);
  tegula__stream_call call = {
      .options = options, .tally = tally, .total = 2 * (end - begin) * item};
  tegula__stream left = {0}, right = {0};
  tegula_status status = tegula__stream_create(&call, a, window, &left, err);
  if (status == TEGULA_OK) status = tegula__stream_create(&call, b, window, &right, err);
  if (status == TEGULA_OK)
    status = compare_windows(&left, &right, begin, end, window, values, out, err);
  tegula__stream_free(&left);
  tegula__stream_free(&right);
  return status;
}

/* Windows are cut by the chunks of both. */
static tegula_status compare_all(const tegula_dataset *a, const tegula_dataset *b, bool values,
                                 const tegula_load_options *options, tegula__tally *tally,
                                 tegula_difference *out, tegula_error *err) {
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

/* Of the lowest rank that found a difference or failed, what it found, on all: ranks follow the
 * order of the elements. One that was cancelled, or has no memory, fails for all in any case. */
static tegula_status conclude(tegula_comm *comm, tegula_status mine, tegula_difference *found,
                              tegula_error *err) {
  bool event = mine != TEGULA_OK || !found->equal;
  int64_t values[2] = {event ? comm->size - comm->rank : 0,
                       mine != TEGULA_OK ? comm->size - comm->rank : 0};
  RETURN_IF(comm->size == 1, tegula__comm_agree(comm, mine, err));
  FORWARD(tegula__comm_reduce(comm, TEGULA_PLUGIN_MAX, values, 2, err));
  if (mine != TEGULA_OK && values[0] > values[1] && !tegula__status_is_ours(mine)) mine = TEGULA_OK;
  FORWARD(tegula__comm_agree(comm, mine, err));
  if (values[0] == 0) return TEGULA_OK;
  tegula_difference *shared = malloc(sizeof *shared);
  tegula_status status = tegula__comm_agree(
      comm, shared != NULL ? TEGULA_OK : tegula__out_of_memory(err, sizeof *shared), err);
  if (shared != NULL) *shared = *found;
  if (status == TEGULA_OK)
    status = tegula__comm_broadcast(comm, shared, sizeof *shared, (int32_t)(comm->size - values[0]),
                                    err);
  else
    free(shared);
  if (status != TEGULA_OK) return status; /* kept: a transfer that is not done may write to it */
  *found = *shared;
  free(shared);
  return TEGULA_OK;
}

/* Both datasets' places in one list, so that the two turns are one. */
static tegula_status join_places(const tegula_dataset *a, const tegula_dataset *b,
                                 tegula__places *out, tegula_error *err) {
  int64_t count = a->places.count + b->places.count;
  *out = (tegula__places){.items = tegula__realloc_array(NULL, count, sizeof *out->items),
                          .count = count};
  if (out->items == NULL) return tegula__out_of_memory(err, count * (int64_t)sizeof *out->items);
  for (int64_t i = 0; i < count; i++)
    out->items[i] = i < a->places.count ? a->places.items[i] : b->places.items[i - a->places.count];
  return TEGULA_OK;
}

static tegula_status check_arguments(tegula_dataset *a, tegula_dataset *b, uint32_t flags,
                                     tegula_difference *out, const tegula_difference *found,
                                     tegula_error *err) {
  CHECK_ARGUMENT(b != NULL && out != NULL, "a dataset or the place for the difference is NULL");
  CHECK_ARGUMENT(a->context == b->context, "the datasets belong to different contexts");
  CHECK_ARGUMENT((flags & ~TEGULA_COMPARE_VALUES) == 0, "unknown flags are set");
  /* a wrong size is said at once */
  return tegula__info_copy(out, sizeof *found, FIRST_DIFFERENCE, found, "tegula_difference", err);
}

/* On ranks: they were called alike. */
static tegula_status agree_call(const tegula_dataset *a, const tegula_dataset *b, uint32_t flags,
                                const tegula_load_options *options, tegula_status mine,
                                tegula_error *err) {
  tegula__call call;
  tegula__call_init(&call, "tegula_compare");
  if (mine == TEGULA_OK) {
    tegula__call_dataset(&call, a);
    tegula__call_dataset(&call, b);
    tegula__call_add(&call, "the flags", "%u, missing %u", flags, options->missing);
  }
  return tegula__comm_agree_call(a->context->comm, &call, mine, err);
}

tegula_status tegula_compare(tegula_dataset *a, tegula_dataset *b, uint32_t flags,
                             const tegula_load_options *options, tegula_difference *out,
                             tegula_error *err) {
  CHECK_ARGUMENT(a != NULL, "a dataset or the place for the difference is NULL");
  tegula_load_options local;
  tegula__tally tally;
  tegula__places places = {0};
  tegula_op turn;
  tegula_difference found = {.equal = 1};
  tegula_error unwanted;
  tegula__news news;
  if (err == NULL) err = &unwanted;
  tegula_load_options_init(&local);
  tegula_status status = check_arguments(a, b, flags, out, &found, err);
  if (status == TEGULA_OK) status = tegula__load_options_copy(&local, options, err);
  if (status == TEGULA_OK) status = tegula__tally_start(&tally, local.statistics, err);
  if (status == TEGULA_OK) status = join_places(a, b, &places, err);
  status = agree_call(a, b, flags, &local, status, err);
  if (status != TEGULA_OK) {
    free(places.items);
    return status;
  }
  int64_t bytes = 0;
  tegula__shape_bytes(a->manifest.shape, a->manifest.ndim, a->manifest.dtype.item_size, &bytes);
  tegula__news_begin(&news, a->context->comm, tegula__mul(bytes, 2, &bytes) ? bytes : INT64_MAX,
                     &local.progress, &local.progress_state);
  tegula__queue_enter(a->context->queue, &turn, &(tegula__touch){.places = &places});
  status = tegula__dataset_confirm(a, &tally.counts, err);
  if (status == TEGULA_OK) status = tegula__dataset_confirm(b, &tally.counts, err);
  if (status == TEGULA_OK)
    status = compare_all(a, b, (flags & TEGULA_COMPARE_VALUES) != 0, &local, &tally, &found, err);
  tegula__queue_leave(&turn);
  free(places.items);
  status = conclude(a->context->comm, status, &found, err);
  tegula__news_end(&news, status);
  tegula__tally_end(&tally, local.statistics, offsetof(tegula_statistics, seconds_move));
  return status != TEGULA_OK ? status
                             : tegula__info_copy(out, sizeof found, FIRST_DIFFERENCE, &found,
                                                 "tegula_difference", err);
}
