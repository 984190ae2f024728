/* Tiles and their sources as JSON: what `tegula plan` shows.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * {"box": [[0, 4], [0, 8]], "rank": 0, "sources": [{"file": "a.npy", "rows": [0, 4]}], "bytes":
 * 128, "reads": 1}: rows count from the start of the file. */
#include "plan/plan.h"

static bool is_empty(int32_t ndim, const int64_t *lo, const int64_t *hi) {
  for (int32_t k = 0; k < ndim; k++)
    if (lo[k] >= hi[k]) return true;
  return false;
}

static bool explain_sources(const tegula__manifest *manifest, const int64_t *lo, const int64_t *hi,
                            tegula__buffer *out) {
  int64_t first, last;
  bool scalar = manifest->ndim == 0, started = false;
  int64_t from = scalar ? 0 : lo[0], to = scalar ? 1 : hi[0];
  tegula__manifest_find(manifest, from, to, &first, &last);
  for (int64_t i = first; i < last; i++) {
    const tegula__part *part = &manifest->parts[i];
    int64_t start = scalar ? 0 : part->lo[0], end = scalar ? 1 : part->hi[0];
    int64_t some_lo[TEGULA_MAX_DIMS], some_hi[TEGULA_MAX_DIMS];
    if (start == end ||
        !tegula__box_intersect(manifest->ndim, lo, hi, part->lo, part->hi, some_lo, some_hi))
      continue;
    RETURN_IF(!tegula__buffer_printf(out, started ? ", {\"file\": " : "{\"file\": "), false);
    RETURN_IF(!tegula__buffer_json_text(out, tegula__part_file(part) >= 0
                                                 ? manifest->files[tegula__part_file(part)].path
                                                 : NULL),
              false);
    int64_t skipped = !scalar && part->kind == TEGULA__PART_CHUNKED ? part->start[0] : 0;
    RETURN_IF(!tegula__buffer_printf(out, ", \"rows\": [%lld, %lld]}",
                                     (long long)(skipped + tegula__max(from, start) - start),
                                     (long long)(skipped + tegula__min(to, end) - start)),
              false);
    started = true;
  }
  return true;
}

bool tegula__plan_explain_tile(const tegula__manifest *manifest, const int64_t *lo,
                               const int64_t *hi, int32_t rank, int64_t reads,
                               tegula__buffer *out) {
  RETURN_IF(!tegula__buffer_printf(out, "{\"box\": ["), false);
  for (int32_t k = 0; k < manifest->ndim; k++)
    RETURN_IF(!tegula__buffer_printf(out, k > 0 ? ", [%lld, %lld]" : "[%lld, %lld]",
                                     (long long)lo[k], (long long)hi[k]),
              false);
  RETURN_IF(!tegula__buffer_printf(out, "], \"rank\": %d, \"sources\": [", rank), false);
  RETURN_IF(!is_empty(manifest->ndim, lo, hi) && !explain_sources(manifest, lo, hi, out), false);
  int64_t bytes = tegula__box_count(manifest->ndim, lo, hi) * manifest->dtype.item_size;
  return tegula__buffer_printf(out, "], \"bytes\": %lld, \"reads\": %lld}", (long long)bytes,
                               (long long)reads);
}
