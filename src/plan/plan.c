/* Cutting parts into steps.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * For each part: the bounding box of what the tiles want of it is cut into a grid of blocks, from the slowest axis of the file to the
 * fastest, until a block is small enough. Where the order of axes differs between file and memory (Fortran files), the axis that is
 * dense in memory keeps at least PATCH bytes in each block, so that whole cache lines are written, and the file's own fastest axis is
 * cut last, so that reads stay long:
 *
 *   file (columns slow, rows fast)          one block: 64 columns x 16384 rows of 4 bytes
 *   reads runs of 64 KiB, writes runs of 256 bytes. */
#include "plan/plan.h"

#include <stdlib.h>

#define DIRECT_RUN ((int64_t)1 << 10)      /* shorter runs are staged: a copy costs less than a vector of a system call */
#define LARGEST_STEP ((int64_t)8 << 20)
#define SMALLEST_STEP ((int64_t)256 << 10)
#define STAGED_STEP ((int64_t)1 << 20)   /* stays in the second-level cache between read and copy */
#define PATCH ((int64_t)256)

/* What is known about a part before it is cut. */
typedef struct cut {
  const tegula__part *part;
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS]; /* bounding box of what is wanted */
  tegula__file_order order;
  int64_t block[TEGULA_MAX_DIMS]; /* lengths of a block */
  int32_t memory_axis;            /* densest axis of the tiles' memory, -1 for none */
  int64_t gap;                    /* as in a step */
  int64_t origin[TEGULA_MAX_DIMS]; /* blocks start at multiples of their length from here */
  bool direct;
} cut;

static void include_box(cut *c, int32_t ndim, const int64_t *lo, const int64_t *hi, bool first) {
  for (int32_t k = 0; k < ndim; k++) {
    c->lo[k] = first ? lo[k] : tegula__min(c->lo[k], lo[k]);
    c->hi[k] = first ? hi[k] : tegula__max(c->hi[k], hi[k]);
  }
}

static int32_t densest_axis(const tegula__tile *tile, int32_t ndim, const int64_t *lo, const int64_t *hi) {
  int32_t best = -1;
  for (int32_t k = ndim - 1; k >= 0; k--)
    if (hi[k] - lo[k] > 1 && (best < 0 || llabs(tile->strides[k]) < llabs(tile->strides[best]))) best = k;
  return best;
}

/* Walks the tiles that meet the box [lo, hi) of a part. */
typedef struct walk {
  int64_t at, last;
} walk;

static const tegula__tile *next_tile(const tegula__targets *targets, walk *w, const int64_t *lo, const int64_t *hi, int64_t *piece_lo,
                                     int64_t *piece_hi) {
  while (w->at < w->last) {
    const tegula__tile *tile = &targets->tiles[targets->sorted[w->at++]];
    if (tegula__box_intersect(targets->ndim, lo, hi, tile->lo, tile->hi, piece_lo, piece_hi)) return tile;
  }
  return NULL;
}

static walk start_walk(const tegula__targets *targets, const int64_t *lo, const int64_t *hi) {
  walk w = {0, targets->count};
  if (targets->ndim > 0) tegula__targets_find(targets, lo[0], hi[0], &w.at, &w.last);
  return w;
}

/* Fills bounding box, memory axis and the way bytes will travel; false when no tile wants anything. */
static bool look_at(const tegula__plan *plan, cut *c) {
  const tegula__manifest *manifest = plan->manifest;
  int32_t ndim = manifest->ndim;
  uint32_t item = manifest->dtype.item_size;
  bool swaps = tegula__dtype_swap_size(manifest->dtype) > 1, whole = true;
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], pieces = 0, shortest = INT64_MAX;
  walk w = start_walk(plan->targets, c->part->lo, c->part->hi);
  const tegula__tile *tile;
  c->direct = true;
  c->memory_axis = -1;
  while ((tile = next_tile(plan->targets, &w, c->part->lo, c->part->hi, lo, hi)) != NULL) {
    include_box(c, ndim, lo, hi, pieces++ == 0);
    if (c->memory_axis < 0) c->memory_axis = densest_axis(tile, ndim, lo, hi);
    if (swaps && tile->order != c->part->order) c->direct = false;
    tegula__file_order order;
    int32_t axes;
    tegula__file_order_of(c->part, ndim, lo, hi, &order);
    shortest = tegula__min(shortest, tegula__common_run(&order, c->part->strides, tile->strides, lo, hi, item, &axes));
    whole = axes == order.count;
  }
  if (pieces == 0) return false;
  if (shortest < DIRECT_RUN && !(pieces == 1 && whole)) c->direct = false;
  tegula__file_order_of(c->part, ndim, c->lo, c->hi, &c->order);
  return true;
}

/* Bytes that a block would read: gaps inside a request count, those between requests do not. */
static int64_t weight(const cut *c, uint32_t item) {
  int64_t zero[TEGULA_MAX_DIMS] = {0}, span;
  int32_t inner = tegula__read_unit(&c->order, c->part->strides, zero, c->block, item, c->gap, &span);
  for (int32_t i = 0; i < c->order.count - inner; i++)
    if (!tegula__mul(span, c->block[c->order.axes[i]], &span)) return INT64_MAX;
  return span;
}

/* The longest length of axis k, at least `least`, with which the block weighs no more than `most`. */
static void shorten(cut *c, int32_t k, int64_t least, int64_t most, uint32_t item) {
  int64_t low = least, high = c->block[k];
  while (low < high) {
    c->block[k] = low + (high - low + 1) / 2;
    if (weight(c, item) <= most)
      low = c->block[k];
    else
      high = c->block[k] - 1;
  }
  c->block[k] = low;
}

static bool is_transposed(const cut *c) {
  return c->memory_axis >= 0 && c->order.count > 0 && c->memory_axis != c->order.axes[c->order.count - 1];
}

/* From the slowest axis to the fastest, until the block weighs no more than `most`; the axis that is dense in memory keeps `patch`. */
static bool shorten_all(cut *c, int64_t most, uint32_t item, int64_t patch) {
  for (int32_t i = 0; i < c->order.count; i++) {
    int32_t k = c->order.axes[i];
    shorten(c, k, k == c->memory_axis ? tegula__min(c->block[k], patch) : 1, most, item);
    if (weight(c, item) <= most) return true;
  }
  return false;
}

static void choose_block(cut *c, int64_t most, uint32_t item) {
  for (int32_t k = 0; k < TEGULA_MAX_DIMS; k++) c->block[k] = 1;
  for (int32_t i = 0; i < c->order.count; i++) c->block[c->order.axes[i]] = c->hi[c->order.axes[i]] - c->lo[c->order.axes[i]];
  if (weight(c, item) <= most) return;
  if (is_transposed(c)) {
    c->gap = 0; /* a fast axis may be cut while a slow one is not: what lies in between is wanted by other blocks, not to be read twice */
    if (shorten_all(c, most, item, tegula__max(1, PATCH / item))) return;
  }
  shorten_all(c, most, item, 1);
}

static tegula_status add_step(tegula__plan *plan, const cut *c, const int64_t *lo, const int64_t *hi, int64_t elements, tegula_error *err) {
  int64_t ndim = plan->manifest->ndim;
  if (!tegula__vector_reserve((void **)&plan->steps, &plan->step_capacity, plan->step_count + 1, sizeof *plan->steps) ||
      !tegula__vector_reserve((void **)&plan->vectors, &plan->vector_capacity, plan->vector_count + 2 * ndim, sizeof *plan->vectors))
    return tegula__out_of_memory(err, plan->step_count * (int64_t)sizeof *plan->steps);
  for (int64_t k = 0; k < ndim; k++) {
    plan->vectors[plan->vector_count + k] = lo[k];
    plan->vectors[plan->vector_count + ndim + k] = hi[k];
  }
  plan->vector_count += 2 * ndim;
  tegula__step *last = plan->step_count > 0 ? &plan->steps[plan->step_count - 1] : NULL;
  const tegula__part *parts = plan->manifest->parts;
  bool same_file = last != NULL && parts[last->part].file == c->part->file;
  int64_t group = last == NULL ? 0 : same_file ? last->group : last->group + 1;
  plan->steps[plan->step_count++] = (tegula__step){.part = c->part - parts,
                                                   .group = group,
                                                   .bytes = elements * plan->manifest->dtype.item_size,
                                                   .gap = c->gap,
                                                   .direct = c->direct};
  plan->group_count = group + 1;
  plan->bytes += elements * plan->manifest->dtype.item_size;
  return TEGULA_OK;
}

/* A step for the block [lo, hi), shrunk to what the tiles want of it; none when they want nothing. */
static tegula_status step_for_block(tegula__plan *plan, const cut *c, const int64_t *lo, const int64_t *hi, tegula_error *err) {
  int32_t ndim = plan->manifest->ndim;
  int64_t piece_lo[TEGULA_MAX_DIMS], piece_hi[TEGULA_MAX_DIMS], elements = 0;
  cut shrunk = {.part = c->part};
  walk w = start_walk(plan->targets, lo, hi);
  while (next_tile(plan->targets, &w, lo, hi, piece_lo, piece_hi) != NULL) {
    include_box(&shrunk, ndim, piece_lo, piece_hi, elements == 0);
    elements += tegula__box_count(ndim, piece_lo, piece_hi);
  }
  return elements == 0 ? TEGULA_OK : add_step(plan, c, shrunk.lo, shrunk.hi, elements, err);
}

/* Where the block that starts at (or holds) `lo` ends along axis k. */
static int64_t block_end(const cut *c, int32_t k, int64_t lo) {
  int64_t left = c->block[k] - (lo - c->origin[k]) % c->block[k];
  return c->hi[k] - lo < left ? c->hi[k] : lo + left;
}

/* All blocks of the grid in the file's order. */
static tegula_status step_all_blocks(tegula__plan *plan, const cut *c, tegula_error *err) {
  int32_t ndim = plan->manifest->ndim;
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS];
  for (int32_t k = 0; k < ndim; k++) {
    lo[k] = c->lo[k];
    hi[k] = block_end(c, k, lo[k]);
  }
  for (;;) {
    FORWARD(step_for_block(plan, c, lo, hi, err));
    int32_t i = c->order.count - 1;
    for (; i >= 0; i--) { /* the next block, fastest axis first */
      int32_t k = c->order.axes[i];
      lo[k] = hi[k] < c->hi[k] ? hi[k] : c->lo[k];
      bool wrapped = hi[k] >= c->hi[k];
      hi[k] = block_end(c, k, lo[k]);
      if (!wrapped) break;
    }
    if (i < 0) return TEGULA_OK;
  }
}

/* Bytes that make enough steps for all workers to end together. */
static int64_t even_share(const tegula__targets *targets, uint32_t item, int32_t threads) {
  int64_t total = 0;
  for (int64_t i = 0; i < targets->count; i++) total += tegula__box_count(targets->ndim, targets->tiles[i].lo, targets->tiles[i].hi) * item;
  return tegula__max(SMALLEST_STEP, tegula__min(LARGEST_STEP, total / (8 * (int64_t)threads)));
}

static void point_at_vectors(tegula__plan *plan) {
  int64_t ndim = plan->manifest->ndim;
  for (int64_t i = 0; i < plan->step_count; i++) {
    plan->steps[i].lo = plan->vectors + 2 * ndim * i;
    plan->steps[i].hi = plan->vectors + 2 * ndim * i + ndim;
  }
}

static tegula_status cut_part(tegula__plan *plan, const tegula__part *part, const tegula__plan_limits *limits, int64_t share,
                              tegula_error *err) {
  cut c = {.part = part, .gap = limits->writing ? 0 : TEGULA__GAP};
  if (!look_at(plan, &c)) return TEGULA_OK;
  const tegula__reader *reader = plan->manifest->reader;
  if (reader != NULL && reader->chunked) { /* one step for each stored piece */
    for (int32_t k = 0; k < plan->manifest->ndim; k++) c.block[k] = reader->chunk[k];
    return step_all_blocks(plan, &c, err);
  }
  for (int32_t k = 0; k < plan->manifest->ndim; k++) c.origin[k] = c.lo[k];
  int64_t staged = tegula__min(limits->staging_slot, is_transposed(&c) ? LARGEST_STEP : tegula__min(share, STAGED_STEP));
  choose_block(&c, c.direct ? share : staged, plan->manifest->dtype.item_size);
  return step_all_blocks(plan, &c, err);
}

tegula_status tegula__plan_create(const tegula__manifest *manifest, const tegula__targets *targets, const tegula__plan_limits *limits,
                                  tegula__plan *out, tegula_error *err) {
  *out = (tegula__plan){.manifest = manifest, .targets = targets};
  int64_t share = even_share(targets, manifest->dtype.item_size, limits->threads), first = 0, last = manifest->part_count;
  if (manifest->ndim > 0 && targets->count > 0)
    tegula__manifest_find(manifest, targets->tiles[targets->sorted[0]].lo[0], targets->reach[targets->count - 1], &first, &last);
  for (int64_t i = first; i < last; i++) {
    tegula_status status = cut_part(out, &manifest->parts[i], limits, share, err);
    if (status != TEGULA_OK) {
      tegula__plan_free(out);
      return status;
    }
  }
  point_at_vectors(out);
  return TEGULA_OK;
}

void tegula__plan_free(tegula__plan *plan) {
  free(plan->steps);
  free(plan->vectors);
  *plan = (tegula__plan){0};
}
