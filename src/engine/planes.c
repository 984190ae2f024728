/* Chunks whose shuffle is still to be undone: a strip of items at a time, which goes on to the
 * tiles while it is in the caches.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A strip is a box whose items lie within TEGULA__STRIP bytes of the decoded chunk: whole inner
 * axes, some steps of one axis, one index of those outside of it. */
#include "engine/engine_priv.h"

/* How the box that is wanted of a chunk is cut. */
typedef struct strips {
  tegula__file_order order;
  int32_t cut;  /* the axis order.axes[cut] is cut; -1: one strip holds it all */
  int64_t step; /* indices of a strip along it */
} strips;

static bool lies_in_items(const tegula__part *part, int32_t ndim, int64_t item) {
  bool fits = part->offset % item == 0;
  for (int32_t k = 0; fits && k < ndim; k++) fits = part->strides[k] % item == 0;
  return fits;
}

/* Chunks that several parts want are not left shuffled: each part would unshuffle what lies between
 * its own items too. */
size_t tegula__planes_item(const tegula__doing *doing) {
  const tegula__manifest *manifest = doing->move->manifest;
  const tegula__grid *grid = doing->part->grid;
  const tegula__planned_chunk *chunks = doing->plan->chunks + doing->step->first;
  int64_t item = doing->item_size;
  bool fits =
      grid->filter_count > 0 && item > 1 && item <= TEGULA__STRIP && grid->chunk_bytes % item == 0;
  for (int64_t i = 0; fits && i < doing->step->count; i++) {
    if (i > 0 && chunks[i].entry == chunks[i - 1].entry) return 0;
    if (i == 0 || chunks[i].part != chunks[i - 1].part)
      fits = lies_in_items(&manifest->parts[chunks[i].part], manifest->ndim, item);
  }
  return fits ? (size_t)item : 0;
}

/* The smallest box that holds all pieces. */
static void find_wanted(const tegula__worker *worker, int32_t ndim, int64_t *lo, int64_t *hi) {
  for (int32_t k = 0; k < ndim; k++) {
    lo[k] = worker->pieces[0].lo[k];
    hi[k] = worker->pieces[0].hi[k];
    for (int64_t i = 1; i < worker->piece_count; i++) {
      lo[k] = tegula__min(lo[k], worker->pieces[i].lo[k]);
      hi[k] = tegula__max(hi[k], worker->pieces[i].hi[k]);
    }
  }
}

static strips cut(const tegula__part *part, int32_t ndim, int64_t item, const int64_t *lo,
                  const int64_t *hi) {
  strips out = {.cut = -1};
  tegula__file_order_of(part, ndim, lo, hi, &out.order);
  int64_t reach = item; /* bytes of the inner axes */
  for (int32_t i = out.order.count - 1; i >= 0; i--) {
    int32_t k = out.order.axes[i];
    int64_t more = (hi[k] - lo[k] - 1) * part->strides[k];
    if (more > TEGULA__STRIP - reach) {
      out.cut = i;
      out.step = (TEGULA__STRIP - reach) / part->strides[k] + 1;
      break;
    }
    reach += more;
  }
  return out;
}

/* The box of the next strip; false after the last. At first lo and hi are those of the first
 * one. */
static bool next_strip(const strips *s, const int64_t *all_lo, const int64_t *all_hi, int64_t *lo,
                       int64_t *hi) {
  for (int32_t i = s->cut; i >= 0; i--) {
    int32_t k = s->order.axes[i];
    int64_t step = i == s->cut ? s->step : 1;
    lo[k] = hi[k] < all_hi[k] ? hi[k] : all_lo[k];
    hi[k] = tegula__min(lo[k] + step, all_hi[k]);
    if (lo[k] != all_lo[k]) return true;
  }
  return false;
}

static void first_strip(const strips *s, int32_t ndim, const int64_t *all_lo, const int64_t *all_hi,
                        int64_t *lo, int64_t *hi) {
  for (int32_t k = 0; k < ndim; k++) {
    lo[k] = all_lo[k];
    hi[k] = all_hi[k];
  }
  for (int32_t i = 0; i <= s->cut; i++) {
    int32_t k = s->order.axes[i];
    hi[k] = tegula__min(lo[k] + (i == s->cut ? s->step : 1), all_hi[k]);
  }
}

/* The items of the strip, those between them included, and from there the parts of the pieces. */
static void scatter_strip(tegula__worker *worker, const tegula__doing *doing,
                          const tegula__part *part, const char *planes, size_t plane, char *strip,
                          const int64_t *lo, const int64_t *hi) {
  int32_t ndim = doing->move->manifest->ndim;
  int64_t first = tegula__part_offset(part, ndim, lo), bytes = doing->item_size,
          item = doing->item_size;
  int64_t piece_lo[TEGULA_MAX_DIMS], piece_hi[TEGULA_MAX_DIMS];
  for (int32_t k = 0; k < ndim; k++) bytes += (hi[k] - lo[k] - 1) * part->strides[k];
  tegula__unshuffle_items(doing->engine->kernels, strip, planes + first / item, plane,
                          (size_t)(bytes / item), (size_t)item);
  for (int64_t i = 0; i < worker->piece_count; i++) {
    tegula__piece piece = {.tile = worker->pieces[i].tile, .lo = piece_lo, .hi = piece_hi};
    if (tegula__box_intersect(ndim, worker->pieces[i].lo, worker->pieces[i].hi, lo, hi, piece_lo,
                              piece_hi))
      tegula__copy_piece(doing, lo, part->strides, strip, &piece);
  }
}

void tegula__scatter_planes(tegula__worker *worker, const tegula__doing *doing,
                            const tegula__part *part, const char *planes, size_t plane,
                            char *strip) {
  int32_t ndim = doing->move->manifest->ndim;
  int64_t all_lo[TEGULA_MAX_DIMS], all_hi[TEGULA_MAX_DIMS], lo[TEGULA_MAX_DIMS],
      hi[TEGULA_MAX_DIMS];
  if (worker->piece_count == 0) return;
  find_wanted(worker, ndim, all_lo, all_hi);
  strips s = cut(part, ndim, doing->item_size, all_lo, all_hi);
  first_strip(&s, ndim, all_lo, all_hi, lo, hi);
  do scatter_strip(worker, doing, part, planes, plane, strip, lo, hi);
  while (next_strip(&s, all_lo, all_hi, lo, hi));
}
