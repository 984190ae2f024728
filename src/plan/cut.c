/* Cutting parts into steps.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * For each part: the bounding box of what the tiles want of it is cut into a grid of blocks, from
 * the slowest axis of the file to the fastest, until a block is small enough. Where the order of
 * axes differs between file and memory (Fortran files), what lies within PATCH bytes in memory
 * stays together in a block, so that whole cache lines are written, and the file's own fastest axis
 * is cut last, so that reads stay long:
 *
 *   file (columns slow, rows fast)          one block: 64 columns x 16384 rows of 4 bytes
 *   reads runs of 64 KiB, writes runs of 256 bytes.
 *
 * Where blocks are too small for both, the patch gives way: a request costs more than a line that
 * is written twice. */
#include "plan/plan_priv.h"

#include <stdlib.h>
#include <string.h>

/* shorter runs are staged: a copy costs less than a vector of a system call */
#define DIRECT_RUN ((int64_t)1 << 10)
#define STAGED_STEP ((int64_t)1 << 20) /* stays in the second-level cache between read and copy */
#define PATCH ((int64_t)256)
#define LINE ((int64_t)64)               /* of a cache */
#define LONG_REQUEST ((int64_t)16 << 10) /* worth smaller patches down to lines */
#define SHORT_REQUEST ((int64_t)4 << 10) /* worth even parts of lines */
#define MOST_FILLS 1024                  /* steps for a box that is filled, however large it is */

/* What is known about a part before it is cut. */
typedef struct cut {
  const tegula__part *part;                         /* the bytes that are cut */
  int64_t number;                                   /* of the part in the manifest */
  int64_t chunk;                                    /* of the plan, -1: none */
  int64_t count;                                    /* chunks from there on */
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS]; /* bounding box of what is wanted */
  tegula__file_order order;
  int64_t block[TEGULA_MAX_DIMS]; /* lengths of a block */
  int32_t memory_axis;            /* densest axis in the memory of the largest piece, -1 for none */
  const int64_t *memory_strides;  /* of its tile */
  int64_t most_gap;               /* that is worth reading over */
  int64_t gap;                    /* as in a step, for a whole block */
  int64_t origin[TEGULA_MAX_DIMS]; /* blocks start at multiples of their length from here */
  tegula__step_kind kind;
} cut;

static void include_box(cut *c, int32_t ndim, const int64_t *lo, const int64_t *hi, bool first) {
  for (int32_t k = 0; k < ndim; k++) {
    c->lo[k] = first ? lo[k] : tegula__min(c->lo[k], lo[k]);
    c->hi[k] = first ? hi[k] : tegula__max(c->hi[k], hi[k]);
  }
}

static int32_t densest_axis(const tegula__tile *tile, int32_t ndim, const int64_t *lo,
                            const int64_t *hi) {
  int32_t best = -1;
  for (int32_t k = ndim - 1; k >= 0; k--)
    if (hi[k] - lo[k] > 1 && (best < 0 || llabs(tile->strides[k]) < llabs(tile->strides[best])))
      best = k;
  return best;
}

/* Walks the tiles that meet the box [lo, hi) of a part. */
typedef struct walk {
  int64_t at, last;
} walk;

static const tegula__tile *next_tile(const tegula__targets *targets, walk *w, const int64_t *lo,
                                     const int64_t *hi, int64_t *piece_lo, int64_t *piece_hi) {
  while (w->at < w->last) {
    const tegula__tile *tile = &targets->tiles[targets->sorted[w->at++]];
    if (tegula__box_intersect(targets->ndim, lo, hi, tile->lo, tile->hi, piece_lo, piece_hi))
      return tile;
  }
  return NULL;
}

static walk start_walk(const tegula__targets *targets, const int64_t *lo, const int64_t *hi) {
  walk w;
  tegula__targets_find(targets, lo, hi, &w.at, &w.last);
  return w;
}

bool tegula__plan_wants(const tegula__plan *plan, const int64_t *box_lo, const int64_t *box_hi,
                        int64_t *lo, int64_t *hi, int64_t *bytes) {
  int32_t ndim = plan->manifest->ndim;
  int64_t piece_lo[TEGULA_MAX_DIMS], piece_hi[TEGULA_MAX_DIMS], elements = 0;
  cut c = {0};
  walk w = start_walk(plan->targets, box_lo, box_hi);
  while (next_tile(plan->targets, &w, box_lo, box_hi, piece_lo, piece_hi) != NULL) {
    include_box(&c, ndim, piece_lo, piece_hi, elements == 0);
    elements += tegula__box_count(ndim, piece_lo, piece_hi);
  }
  for (int32_t k = 0; k < ndim; k++) {
    lo[k] = c.lo[k];
    hi[k] = c.hi[k];
  }
  *bytes = elements * plan->manifest->dtype.item_size;
  return elements > 0;
}

/* Fills bounding box, memory axis and the way bytes will travel; false when no tile wants
 * anything. */
static bool look_at(const tegula__plan *plan, cut *c) {
  const tegula__manifest *manifest = plan->manifest;
  int32_t ndim = manifest->ndim;
  uint32_t item = manifest->dtype.item_size;
  bool swaps = tegula__dtype_swap_size(manifest->dtype) > 1, whole = true;
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], pieces = 0, shortest = INT64_MAX, most = 0;
  walk w = start_walk(plan->targets, c->part->lo, c->part->hi);
  const tegula__tile *tile;
  bool direct = true;
  c->memory_axis = -1;
  while ((tile = next_tile(plan->targets, &w, c->part->lo, c->part->hi, lo, hi)) != NULL) {
    include_box(c, ndim, lo, hi, pieces++ == 0);
    int64_t elements = tegula__box_count(ndim, lo, hi);
    if (elements > most) { /* a piece of one row, or of one column, says nothing about the others */
      most = elements;
      c->memory_strides = tile->strides;
      c->memory_axis = densest_axis(tile, ndim, lo, hi);
    }
    if (swaps && tile->order != c->part->order) direct = false;
    tegula__file_order order;
    int32_t axes;
    tegula__file_order_of(c->part, ndim, lo, hi, &order);
    shortest = tegula__min(
        shortest, tegula__common_run(&order, c->part->strides, tile->strides, lo, hi, item, &axes));
    whole = axes == order.count;
  }
  if (pieces == 0) return false;
  if (shortest < DIRECT_RUN && !(pieces == 1 && whole)) direct = false;
  if (c->part->kind == TEGULA__PART_DENSE)
    c->kind = direct ? TEGULA__STEP_DIRECT : TEGULA__STEP_STAGED;
  tegula__file_order_of(c->part, ndim, c->lo, c->hi, &c->order);
  return true;
}

/* The widest gap inside a request for the box [lo, hi) of a block: of those along axes that are not
 * cut, which nobody wants. */
static int64_t gap_within(const cut *c, const int64_t *lo, const int64_t *hi, uint32_t item) {
  int64_t bytes = item, widest = c->gap;
  bool is_cut = false;
  for (int32_t i = c->order.count - 1; i >= 0; i--) {
    int32_t k = c->order.axes[i];
    if (hi[k] - lo[k] > 1) {
      int64_t gap = c->part->strides[k] - bytes;
      if (gap > widest && (is_cut || gap > c->most_gap)) break;
      widest = tegula__max(widest, gap);
      bytes += (hi[k] - lo[k] - 1) * c->part->strides[k];
    }
    is_cut = is_cut || c->block[k] < c->hi[k] - c->lo[k];
  }
  return widest;
}

/* Bytes of one request for a block, of which it spans the `inner` fastest axes. */
static int64_t request(const cut *c, uint32_t item, int32_t *inner) {
  int64_t zero[TEGULA_MAX_DIMS] = {0}, span;
  *inner = tegula__read_unit(&c->order, c->part->strides, zero, c->block, item, c->gap, &span);
  return span;
}

/* Bytes that a block would read: gaps inside a request count, those between requests do not. */
static int64_t weight(const cut *c, uint32_t item) {
  int32_t inner;
  int64_t bytes = request(c, item, &inner);
  for (int32_t i = 0; i < c->order.count - inner; i++)
    if (!tegula__mul(bytes, c->block[c->order.axes[i]], &bytes)) return INT64_MAX;
  return bytes;
}

/* The longest length of axis k, at least `least`, with which the block weighs no more than
 * `most`. */
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
  return c->memory_axis >= 0 && c->order.count > 0 &&
         c->memory_axis != c->order.axes[c->order.count - 1];
}

/* Indices of axis k that lie within `patch` bytes of memory, at least one. */
static int64_t patch_indices(const cut *c, int32_t k, int64_t patch) {
  int64_t stride = c->memory_strides[k];
  return patch > 0 && stride != 0
             ? tegula__min(c->block[k], (patch + llabs(stride) - 1) / llabs(stride))
             : 1;
}

/* From the slowest axis to the fastest, until the block weighs no more than `most`; what lies
 * within `patch` bytes of memory stays together. */
static bool shorten_all(cut *c, int64_t most, uint32_t item, int64_t patch) {
  for (int32_t i = 0; i < c->order.count; i++) {
    int32_t k = c->order.axes[i];
    shorten(c, k, patch_indices(c, k, patch), most, item);
    if (weight(c, item) <= most) return true;
  }
  return false;
}

static void take_whole(cut *c) {
  for (int32_t k = 0; k < TEGULA_MAX_DIMS; k++) c->block[k] = 1;
  for (int32_t i = 0; i < c->order.count; i++)
    c->block[c->order.axes[i]] = c->hi[c->order.axes[i]] - c->lo[c->order.axes[i]];
}

/* With the largest patch that leaves requests long enough; false: none does. */
static bool choose_patch(cut *c, int64_t most, uint32_t item) {
  int32_t inner;
  /* a fast axis may be cut while a slow one is not: what lies in between is wanted by other blocks,
   * not to be read twice */
  c->gap = 0;
  c->gap = gap_within(c, c->lo, c->hi, item);
  int64_t longest = tegula__min(most, request(c, item, &inner));
  for (int64_t patch = PATCH; patch > item; patch /= 2) {
    int64_t wanted = tegula__min(longest, patch >= LINE ? LONG_REQUEST : SHORT_REQUEST);
    if (shorten_all(c, most, item, patch) && request(c, item, &inner) >= wanted) return true;
    take_whole(c);
  }
  return false;
}

static void choose_block(cut *c, int64_t most, uint32_t item) {
  take_whole(c);
  if (weight(c, item) <= most) return;
  if (is_transposed(c) && choose_patch(c, most, item)) return;
  shorten_all(c, most, item, 0);
}

tegula_status tegula__plan_add(tegula__plan *plan, const tegula__step *step, tegula_error *err) {
  size_t axes = (size_t)plan->manifest->ndim;
  if (!tegula__vector_reserve((void **)&plan->steps, &plan->step_capacity, plan->step_count + 1,
                              sizeof *plan->steps) ||
      !tegula__vector_reserve((void **)&plan->vectors, &plan->vector_capacity,
                              plan->vector_count + 2 * (int64_t)axes + 1,
                              /* one more: steps of a scalar point at something too */
                              sizeof *plan->vectors))
    return tegula__out_of_memory(err, plan->step_count * (int64_t)sizeof *plan->steps);
  if (tegula__step_has_box(step) && axes > 0) {
    memcpy(plan->vectors + plan->vector_count, step->lo, axes * sizeof *step->lo);
    memcpy(plan->vectors + plan->vector_count + axes, step->hi, axes * sizeof *step->hi);
    plan->vector_count += 2 * (int64_t)axes;
  }
  const tegula__part *parts = plan->manifest->parts;
  const tegula__step *last = plan->step_count > 0 ? &plan->steps[plan->step_count - 1] : NULL;
  bool same_file = last != NULL &&
                   tegula__part_file(&parts[last->part]) == tegula__part_file(&parts[step->part]);
  int64_t group = last == NULL ? 0 : same_file ? last->group : last->group + 1;
  plan->steps[plan->step_count] = *step;
  plan->steps[plan->step_count++].group = group;
  plan->group_count = group + 1;
  plan->bytes += step->bytes;
  return TEGULA_OK;
}

/* A step for the block [lo, hi), shrunk to what the tiles want of it; none when they want
 * nothing. */
static tegula_status step_for_block(tegula__plan *plan, const cut *c, const int64_t *lo,
                                    const int64_t *hi, tegula_error *err) {
  int64_t want_lo[TEGULA_MAX_DIMS], want_hi[TEGULA_MAX_DIMS];
  tegula__step step = {.kind = c->kind, .part = c->number, .lo = want_lo, .hi = want_hi};
  if (!tegula__plan_wants(plan, lo, hi, want_lo, want_hi, &step.bytes)) return TEGULA_OK;
  step.gap = gap_within(c, want_lo, want_hi, plan->manifest->dtype.item_size);
  if (c->chunk >= 0) {
    step.first = c->chunk;
    step.count = c->count;
  }
  return tegula__plan_add(plan, &step, err);
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

/* Blocks end where those of the file system do, at multiples of `align` bytes (a power of two),
 * along the slowest axis: where an index of it stands at such a place at all, and the pieces do not
 * get longer than they may be. */
static void align_block(cut *c, int32_t ndim, int64_t align) {
  if (align <= 1 || c->order.count == 0) return;
  int32_t k = c->order.axes[0];
  int64_t stride = c->part->strides[k], base = tegula__part_offset(c->part, ndim, c->lo);
  /* it is not cut */
  if (stride <= 0 || c->block[k] >= c->hi[k] - c->lo[k]) return;
  /* indices from one such place to the next */
  int64_t divisor = tegula__min(stride & -stride, align), unit = align / divisor;
  if (base % divisor != 0 || c->block[k] < unit) return;
  for (int32_t i = 1; i < c->order.count; i++) /* cut along others too */
    if (c->block[c->order.axes[i]] < c->hi[c->order.axes[i]] - c->lo[c->order.axes[i]]) return;
  /* of an odd number, by Newton: each round doubles the bits that are right */
  uint64_t odd = (uint64_t)(stride / divisor), inverse = odd;
  for (int round = 0; round < 5; round++) inverse *= 2 - odd * inverse;
  int64_t skip = (int64_t)((0 - (uint64_t)(base / divisor)) * inverse & (uint64_t)(unit - 1));
  c->block[k] -= c->block[k] % unit;
  c->origin[k] = skip > 0 ? c->lo[k] + skip - c->block[k] : c->lo[k];
}

tegula_status tegula__cut_dense(const tegula__cutting *cutting, const tegula__part *stored,
                                int64_t number, int64_t chunk, int64_t count, tegula_error *err) {
  tegula__plan *plan = cutting->plan;
  int64_t most_gap = cutting->limits->writing ? 0 : TEGULA__GAP;
  cut c = {.part = stored,
           .number = number,
           .chunk = chunk,
           .count = count,
           .most_gap = most_gap,
           .gap = most_gap};
  if (!look_at(plan, &c)) return TEGULA_OK;
  for (int32_t k = 0; k < plan->manifest->ndim; k++) c.origin[k] = c.lo[k];
  int64_t staged =
      tegula__min(cutting->limits->staging_slot,
                  is_transposed(&c) ? LARGEST_STEP : tegula__min(cutting->share, STAGED_STEP));
  choose_block(&c, c.kind == TEGULA__STEP_DIRECT ? cutting->direct : staged,
               plan->manifest->dtype.item_size);
  if (cutting->limits->writing) align_block(&c, plan->manifest->ndim, cutting->limits->align);
  return step_all_blocks(plan, &c, err);
}

tegula_status tegula__cut_other(const tegula__cutting *cutting, int64_t number,
                                tegula__step_kind kind, tegula_error *err) {
  tegula__plan *plan = cutting->plan;
  const tegula__part *part = &plan->manifest->parts[number];
  cut c = {.part = part, .number = number, .chunk = -1, .kind = kind};
  if (!look_at(plan, &c)) return TEGULA_OK;
  plan->absent += kind != TEGULA__STEP_READ;
  for (int32_t k = 0; k < plan->manifest->ndim; k++) {
    c.origin[k] = part->chunk != NULL ? part->lo[k] - part->start[k] : c.lo[k];
    if (part->chunk != NULL) c.block[k] = part->chunk[k];
  }
  if (part->chunk == NULL) choose_block(&c, cutting->share, plan->manifest->dtype.item_size);
  return step_all_blocks(plan, &c, err);
}

tegula_status tegula__cut_fill(const tegula__cutting *cutting, int64_t number, const int64_t *lo,
                               const int64_t *hi, tegula_error *err) {
  tegula__plan *plan = cutting->plan;
  int32_t ndim = plan->manifest->ndim;
  uint32_t item = plan->manifest->dtype.item_size;
  int64_t extents[TEGULA_MAX_DIMS], strides[TEGULA_MAX_DIMS];
  for (int32_t k = 0; k < ndim; k++) extents[k] = hi[k] - lo[k];
  tegula__dense_strides(extents, ndim, item, 'C', strides);
  tegula__part box = {.kind = TEGULA__PART_FILL,
                      .file = TEGULA__NO_FILE,
                      .order = plan->manifest->dtype.order,
                      .lo = lo,
                      .hi = hi,
                      .strides = strides};
  cut c = {.part = &box, .number = number, .chunk = -1, .kind = TEGULA__STEP_FILL};
  if (!look_at(plan, &c)) return TEGULA_OK;
  memcpy(c.origin, c.lo, sizeof c.origin);
  choose_block(&c, tegula__max(cutting->share, tegula__box_count(ndim, lo, hi) / MOST_FILLS * item),
               item);
  return step_all_blocks(plan, &c, err);
}
