/* Windows of a copy.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "plan/copy_windows.h"

#include <string.h>

static int64_t bytes_of(const tegula__windows *w, const int64_t *length) {
  int64_t bytes;
  return tegula__shape_bytes(length, w->target->ndim, w->target->dtype.item_size, &bytes)
             ? bytes
             : INT64_MAX;
}

static int64_t common_multiple(int64_t a, int64_t b) {
  int64_t x = a, y = b, product;
  while (y != 0) {
    int64_t rest = x % y;
    x = y;
    y = rest;
  }
  return tegula__mul(a / x, b, &product) ? product : INT64_MAX;
}

/* ---- what windows cost ---- */

/* In bytes that could be moved meanwhile. */
static const double READ = 2048, WRITE = 8192, DECODE = 2 /* of each byte */, WINDOW = 65536;

/* Bytes that follow one another both in a window and in the part, whose axes have these extents. */
static double run_of(const tegula__windows *w, const tegula__part *part, const int64_t *extents,
                     const int64_t *length) {
  static const int64_t zero[TEGULA_MAX_DIMS];
  tegula__file_order order; /* without axes of length 1 */
  tegula__file_order_of(part, w->target->ndim, zero, extents, &order);
  double run = w->target->dtype.item_size;
  for (int32_t i = order.count - 1; i >= 0; i--) {
    int32_t k = order.axes[i];
    run *= (double)tegula__min(length[k], extents[k]);
    if (length[k] < extents[k]) break;
  }
  return run;
}

static void extents_of(const tegula__part *part, int32_t ndim, int64_t *extents) {
  for (int32_t k = 0; k < ndim; k++) extents[k] = part->hi[k] - part->lo[k];
}

/* How often a byte of the source is decoded: a chunk of it once in each window that it meets. */
static double decodes(const tegula__windows *w, const tegula__part *source,
                      const tegula__part *part, const int64_t *length) {
  double times = 1;
  for (int32_t k = 0; k < w->target->ndim; k++)
    if (length[k] < part->hi[k] - part->lo[k] &&
        length[k] % tegula__part_chunk_length(source, k) != 0)
      times *= 1 + (double)(tegula__part_chunk_length(source, k) - 1) / (double)length[k];
  return times;
}

/* Are chunks of it decoded as a whole, however little is wanted? */
static bool whole_chunks(const tegula__part *source) {
  return source->chunk != NULL && (source->grid == NULL || source->grid->filter_count > 0);
}

/* To read a byte that is stored like that. */
static double read_cost(const tegula__windows *w, const tegula__part *source,
                        const tegula__part *part, const int64_t *length) {
  int64_t extents[TEGULA_MAX_DIMS];
  if (whole_chunks(source)) return DECODE * decodes(w, source, part, length);
  extents_of(source, w->target->ndim, extents);
  return READ / run_of(w, source, source->chunk != NULL ? source->chunk : extents, length);
}

/* For each byte, whichever way it is stored. */
static double cost_of(const tegula__windows *w, const tegula__part *part, const int64_t *length) {
  int64_t extents[TEGULA_MAX_DIMS];
  double cost = WINDOW / (double)bytes_of(w, length);
  extents_of(part, w->target->ndim, extents);
  if (part->chunk == NULL) cost += WRITE / run_of(w, part, extents, length);
  for (int32_t i = 0; i < w->source.count; i++)
    cost += w->source.ways[i].bytes / w->source.bytes *
            read_cost(w, w->source.ways[i].part, part, length);
  return cost;
}

/* ---- lengths of windows ---- */

typedef struct measures {
  int64_t unit[TEGULA_MAX_DIMS]; /* of the target: its chunks */
  int64_t both[TEGULA_MAX_DIMS]; /* in which chunks of the source are whole, too; else the unit */
  int64_t extents[TEGULA_MAX_DIMS];
  bool whole; /* chunks of the source are decoded as a whole */
} measures;

/* `source`: a part of it for all that are stored like that; NULL: nothing is. */
static measures measures_of(const tegula__windows *w, const tegula__part *part,
                            const tegula__part *source) {
  measures m;
  memset(&m, 0, sizeof m);
  bool chunks = source != NULL && source->chunk != NULL;
  m.whole = chunks && whole_chunks(source);
  extents_of(part, w->target->ndim, m.extents);
  for (int32_t k = 0; k < w->target->ndim; k++) {
    int64_t chunk = part->chunk != NULL ? part->chunk[k] : 1;
    m.unit[k] = tegula__min(m.extents[k], chunk);
    m.both[k] = chunks ? tegula__min(m.extents[k],
                                     common_multiple(chunk, tegula__part_chunk_length(source, k)))
                       : m.unit[k];
  }
  return m;
}

static bool fits(const tegula__windows *w, const int64_t *length, int32_t k, int64_t next) {
  int64_t longer[TEGULA_MAX_DIMS];
  memcpy(longer, length, (size_t)w->target->ndim * sizeof *length);
  longer[k] = next;
  return bytes_of(w, longer) <= w->most;
}

/* Makes longer what saves most for its memory; false when nothing does or fits. */
static bool grow(const tegula__windows *w, const tegula__part *part, const measures *m,
                 int64_t *length) {
  double before = cost_of(w, part, length), best = 0;
  int64_t best_length = 0;
  int32_t best_axis = -1;
  for (int32_t k = w->target->ndim - 1; k >= 0; k--) {
    int64_t old = length[k], left = m->extents[k] - old;
    /* at least double, so that there are few */
    const int64_t steps[] = {old, old < m->both[k] ? m->both[k] - old : old, left};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
      int64_t next = steps[i] < left ? old + steps[i] : m->extents[k];
      if (next == old || !fits(w, length, k, next)) continue;
      length[k] = next;
      double gain = (before - cost_of(w, part, length)) / ((double)next / (double)old - 1);
      length[k] = old;
      if (gain <= best) continue;
      best = gain;
      best_axis = k;
      best_length = next;
    }
  }
  if (best_axis >= 0) length[best_axis] = best_length;
  return best_axis >= 0;
}

/* What memory is left goes to the fastest axes of the target, in whole chunks of the source where
 * it is in these. */
static void fill(const tegula__windows *w, const tegula__part *part, const measures *m,
                 int64_t *length) {
  tegula__file_order order;
  tegula__file_order_of(part, w->target->ndim, part->lo, part->hi, &order);
  for (int32_t i = order.count - 1; i >= 0; i--) {
    int32_t k = order.axes[i];
    bool whole = m->whole && length[k] % m->both[k] == 0;
    int64_t step = whole ? m->both[k] : m->unit[k],
            most = w->most / (bytes_of(w, length) / length[k]);
    length[k] = most >= m->extents[k] ? m->extents[k] : tegula__max(length[k], most / step * step);
  }
}

/* Takes these lengths if they cost less than those of the windows. */
static void take_cheaper(tegula__windows *w, const tegula__part *part, const measures *m,
                         const int64_t *begin) {
  int64_t length[TEGULA_MAX_DIMS] = {0};
  memcpy(length, begin, (size_t)w->target->ndim * sizeof *length);
  if (bytes_of(w, length) > w->most) return;
  fill(w, part, m, length);
  if (cost_of(w, part, length) < cost_of(w, part, w->length))
    memcpy(w->length, length, sizeof length);
}

/* Growth by what is best next can miss what is best of all. So whole axes of the target's chunks,
 * and of both sides', are looked at, too. */
static void measure_for(tegula__windows *w, const tegula__part *part, const measures *m) {
  int64_t length[TEGULA_MAX_DIMS];
  memcpy(length, m->unit, sizeof m->unit);
  while (grow(w, part, m, length)) continue;
  take_cheaper(w, part, m, length);
  take_cheaper(w, part, m, m->unit);
  take_cheaper(w, part, m, m->both);
}

/* The lengths of windows of a part; those of the part before where it is as large: all parts of a
 * target are alike. Lengths that suit each way of the source are looked at; those that cost least
 * for all of it are taken. */
static void measure(tegula__windows *w, const tegula__part *part) {
  measures m = measures_of(w, part, NULL);
  if (memcmp(m.extents, w->extents, sizeof m.extents) == 0) return;
  memcpy(w->extents, m.extents, sizeof m.extents);
  memcpy(w->length, m.unit, sizeof m.unit);
  if (w->source.count == 0) measure_for(w, part, &m);
  for (int32_t i = 0; i < w->source.count; i++) {
    m = measures_of(w, part, w->source.ways[i].part);
    measure_for(w, part, &m);
  }
}

static bool is_empty(const tegula__windows *w, const tegula__part *part) {
  return tegula__box_count(w->target->ndim, part->lo, part->hi) == 0;
}

void tegula__windows_start(tegula__windows *w, const tegula__manifest *source,
                           const tegula__manifest *target, int64_t most) {
  *w = (tegula__windows){.target = target, .most = tegula__max(1, most), .part = -1};
  tegula__storage_of(source, &w->source);
}

/* The first window of the next part. */
static bool enter_part(tegula__windows *w) {
  do w->part++;
  while (w->part < w->target->part_count && is_empty(w, &w->target->parts[w->part]));
  if (w->part >= w->target->part_count) return false;
  const tegula__part *part = &w->target->parts[w->part];
  measure(w, part);
  for (int32_t k = 0; k < w->target->ndim; k++) {
    w->lo[k] = part->lo[k];
    w->hi[k] = tegula__min(part->hi[k], part->lo[k] + w->length[k]);
  }
  return true;
}

bool tegula__windows_next(tegula__windows *w) {
  if (w->part < 0) return enter_part(w);
  if (w->part >= w->target->part_count) return false;
  const tegula__part *part = &w->target->parts[w->part];
  for (int32_t k = w->target->ndim - 1; k >= 0; k--) {
    bool more = w->hi[k] < part->hi[k];
    w->lo[k] = more ? w->hi[k] : part->lo[k];
    w->hi[k] = part->hi[k] - w->lo[k] < w->length[k] ? part->hi[k] : w->lo[k] + w->length[k];
    if (more) return true;
  }
  return enter_part(w);
}

int64_t tegula__windows_largest(const tegula__manifest *source, const tegula__manifest *target,
                                int64_t most) {
  tegula__windows w;
  int64_t largest = 0;
  tegula__windows_start(&w, source, target, most);
  for (int64_t i = 0; i < target->part_count; i++) {
    if (is_empty(&w, &target->parts[i])) continue;
    measure(&w, &target->parts[i]);
    largest = tegula__max(largest, bytes_of(&w, w.length));
  }
  return largest;
}
