/* tegula_explain: the plan of a load as text, rank by rank, without a byte of data read.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "api/api.h"
#include "plan/plan.h"

#define LARGEST_TEXT ((size_t)1 << 31)

void tegula_free(void *memory) { free(memory); }

static tegula_status check_tiling(const tegula__manifest *manifest, const tegula_tiling *tiling,
                                  tegula_error *err) {
  bool same = manifest->ndim == tiling->ndim;
  for (int32_t k = 0; same && k < manifest->ndim; k++)
    same = manifest->shape[k] == tiling->shape[k];
  if (same) return TEGULA_OK;
  char expected[TEGULA__SHAPE_TEXT], found[TEGULA__SHAPE_TEXT];
  tegula__shape_format(manifest->shape, manifest->ndim, expected);
  tegula__shape_format(tiling->shape, tiling->ndim, found);
  return tegula__fail(err, TEGULA_MISMATCH, NULL, -1,
                      "the tiling is for an array of shape %s, but the dataset has shape %s", found,
                      expected);
}

/* Plans what one rank would load; reads[i] is for tile i of the whole tiling. */
static tegula_status plan_rank(const tegula_dataset *dataset, const tegula_tiling *tiling,
                               int32_t rank, int64_t *reads, int64_t *total, tegula_error *err) {
  const tegula__engine *engine = &dataset->context->engine;
  tegula__plan_limits limits = {.threads = tegula__pool_threads(engine->pool),
                                .staging_slot = tegula__staging_slot(engine->staging)};
  tegula__array places;
  tegula__targets targets = {0};
  tegula__plan plan = {0};
  FORWARD(tegula__array_lay_out(dataset->manifest.dtype, tiling, rank, &places, err));
  int64_t *own = calloc((size_t)tegula__max(1, places.count), sizeof *own);
  tegula_status status;
  FORWARD_WITH(status, own != NULL
                           ? TEGULA_OK
                           : tegula__out_of_memory(err, places.count * (int64_t)sizeof *own));
  FORWARD_WITH(status,
               tegula__targets_create(tiling->ndim, places.tiles, places.count, &targets, err));
  FORWARD_WITH(status, tegula__plan_create(&dataset->manifest, &targets, &limits, &plan, err));
  FORWARD_WITH(status, tegula__plan_requests(&plan, TEGULA__IO_VECTORS, own, total, err));
  for (int64_t i = 0; i < places.count; i++) reads[places.numbers[i]] = own[i];
done:
  tegula__plan_free(&plan);
  tegula__targets_free(&targets);
  tegula__array_free(&places);
  free(own);
  return status;
}

static bool write_head(const tegula__manifest *manifest, const tegula_tiling *tiling, int64_t total,
                       tegula__buffer *out) {
  char dtype[TEGULA_DTYPE_TEXT];
  int64_t bytes = 0;
  tegula_dtype_format(manifest->dtype, dtype);
  /* finish has checked it */
  tegula__shape_bytes(manifest->shape, manifest->ndim, manifest->dtype.item_size, &bytes);
  RETURN_IF(!tegula__buffer_printf(out, "{\"shape\": ["), false);
  for (int32_t k = 0; k < manifest->ndim; k++)
    RETURN_IF(!tegula__buffer_printf(out, k > 0 ? ", %lld" : "%lld", (long long)manifest->shape[k]),
              false);
  RETURN_IF(!tegula__buffer_printf(out, "], \"dtype\": ") || !tegula__buffer_json_text(out, dtype),
            false);
  return tegula__buffer_printf(
      out, ", \"files\": %lld, \"ranks\": %d, \"bytes\": %lld, \"reads\": %lld, \"tiles\": [",
      (long long)manifest->file_count, tiling->ranks, (long long)bytes, (long long)total);
}

static bool write_text(const tegula__manifest *manifest, const tegula_tiling *tiling,
                       const int64_t *reads, int64_t total, tegula__buffer *out) {
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS];
  RETURN_IF(!write_head(manifest, tiling, total, out), false);
  for (int64_t i = 0; i < tiling->count; i++) {
    tegula__tiling_box(tiling, i, lo, hi);
    RETURN_IF(i > 0 && !tegula__buffer_append(out, ", ", 2), false);
    RETURN_IF(!tegula__plan_explain_tile(manifest, lo, hi, tegula__tiling_owner(tiling, i),
                                         reads[i], out),
              false);
  }
  return tegula__buffer_append(out, "]}", 3); /* with its zero byte */
}

static tegula_status explain(const tegula_dataset *dataset, const tegula_tiling *tiling, char **out,
                             tegula_error *err) {
  int64_t total = 0, *reads = tegula__realloc_array(NULL, tiling->count, sizeof *reads);
  if (reads == NULL) return tegula__out_of_memory(err, tiling->count * (int64_t)sizeof *reads);
  tegula_status status = TEGULA_OK;
  for (int32_t rank = 0; rank < tiling->ranks && status == TEGULA_OK; rank++)
    status = plan_rank(dataset, tiling, rank, reads, &total, err);
  tegula__buffer text;
  tegula__buffer_init(&text, LARGEST_TEXT);
  if (status == TEGULA_OK && !write_text(&dataset->manifest, tiling, reads, total, &text))
    status = tegula__fail(err, TEGULA_OUT_OF_MEMORY, NULL, -1,
                          "could not get memory for the text of a plan of %lld tiles",
                          (long long)tiling->count);
  free(reads);
  if (status == TEGULA_OK)
    *out = text.data;
  else
    tegula__buffer_free(&text);
  return status;
}

tegula_status tegula_explain(const tegula_dataset *dataset, const tegula_tiling *tiling, char **out,
                             tegula_error *err) {
  CHECK_ARGUMENT(dataset != NULL && tiling != NULL && out != NULL,
                 "the dataset, the tiling or the place for the text is NULL");
  FORWARD(check_tiling(&dataset->manifest, tiling, err));
  FORWARD(tegula__dataset_confirm(dataset, NULL, err));
  tegula_dataset *view; /* tiles are all of the array */
  FORWARD(tegula__dataset_view_all(dataset, NULL, NULL, &view, err));
  tegula_status status = explain(view, tiling, out, err);
  tegula_dataset_close(view);
  return status;
}
