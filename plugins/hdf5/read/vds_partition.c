/* Pieces of a virtual dataset that may overlap and leave gaps -> disjoint ones that cover it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A box is cut in two at a border of its pieces, best one that cuts no piece, until one piece (the
 * last mapping that has a say) covers what is left, or none does. Grids of pieces, which are the
 * rule, come out uncut. */
#include <stdlib.h>
#include <string.h>

#include "read/vds.h"

enum { MOST_DEPTH = 2000, PICKY_DEPTH = 200 };

typedef struct box {
  int64_t lo[HDF5_MAX_RANK], hi[HDF5_MAX_RANK];
} box;

typedef struct partition {
  const hdf5_pieces *in;
  hdf5_pieces *out;
  int64_t *scratch; /* borders */
} partition;

static bool touches(const partition *p, int64_t index, const box *area) {
  const int64_t *piece = hdf5_piece(p->in, index);
  for (int k = 0; k < p->in->to; k++)
    if (piece[k] >= area->hi[k] || piece[p->in->to + k] <= area->lo[k]) return false;
  return true;
}

static bool covers(const partition *p, int64_t index, const box *area) {
  const int64_t *piece = hdf5_piece(p->in, index);
  for (int k = 0; k < p->in->to; k++)
    if (piece[k] > area->lo[k] || piece[p->in->to + k] < area->hi[k]) return false;
  return true;
}

/* The part of a piece in the area; index -1: a gap. */
static bool put(partition *p, int64_t index, const box *area) {
  int64_t *out = hdf5_pieces_add(p->out);
  if (!out) return false;
  int to = p->in->to;
  memcpy(out, area->lo, (size_t)to * sizeof *out);
  memcpy(out + to, area->hi, (size_t)to * sizeof *out);
  *hdf5_piece_mapping(p->out, out) = -1;
  if (index < 0) return true;
  int64_t *piece = hdf5_piece(p->in, index);
  for (int k = 0; k < p->in->from; k++) {
    int64_t axis = hdf5_piece_axis(p->in, piece)[k];
    hdf5_piece_axis(p->out, out)[k] = axis;
    hdf5_piece_start(p->out, out)[k] =
        hdf5_piece_start(p->in, piece)[k] + (axis < 0 ? 0 : area->lo[axis] - piece[axis]);
  }
  *hdf5_piece_mapping(p->out, out) = *hdf5_piece_mapping(p->in, piece);
  return true;
}

/* One piece that does not fill the area: the rest are gaps, at most two for each axis. */
static bool put_with_gaps(partition *p, int64_t index, box area) {
  const int64_t *piece = hdf5_piece(p->in, index);
  int to = p->in->to;
  for (int k = 0; k < to; k++) {
    box gap = area;
    gap.hi[k] = piece[k];
    if (gap.lo[k] < gap.hi[k] && !put(p, -1, &gap)) return false;
    gap = area;
    gap.lo[k] = piece[to + k];
    if (gap.lo[k] < gap.hi[k] && !put(p, -1, &gap)) return false;
    if (area.lo[k] < piece[k]) area.lo[k] = piece[k];
    if (area.hi[k] > piece[to + k]) area.hi[k] = piece[to + k];
  }
  return put(p, index, &area);
}

static int by_value(const void *a, const void *b) {
  const int64_t *x = a, *y = b;
  return *x < *y ? -1 : *x > *y;
}

typedef struct plane {
  int axis;             /* -1: none */
  int64_t at, cut, off; /* pieces that it cuts; how far from the middle it is */
} plane;

/* The best plane along one axis. */
static void look_along(partition *p, const int64_t *list, int64_t count, const box *area, int k,
                       bool picky, plane *best) {
  int64_t *lo = p->scratch, *hi = lo + count, n = count;
  for (int64_t j = 0; j < n; j++) {
    const int64_t *piece = hdf5_piece(p->in, list[j]);
    lo[j] = piece[k] > area->lo[k] ? piece[k] : area->lo[k];
    hi[j] = piece[p->in->to + k] < area->hi[k] ? piece[p->in->to + k] : area->hi[k];
  }
  qsort(lo, (size_t)n, sizeof *lo, by_value);
  qsort(hi, (size_t)n, sizeof *hi, by_value);
  /* over all borders, upwards: i begin below `at`, j end at or below it */
  for (int64_t i = 0, j = 0; i < n || j < n;) {
    int64_t at = j == n || (i < n && lo[i] < hi[j]) ? lo[i] : hi[j];
    while (j < n && hi[j] <= at) j++;
    int64_t begun = i;
    while (i < n && lo[i] <= at) i++;
    if (at <= area->lo[k] || at >= area->hi[k]) continue;
    int64_t left = j, right = n - begun, off = left > right ? left - right : right - left;
    plane now = {k, at, begun - j, off};
    bool better = best->axis < 0 ||
                  (picky && now.cut != best->cut ? now.cut < best->cut : now.off < best->off);
    if (better) *best = now;
  }
}

static bool split(partition *p, int64_t *list, int64_t count, const box *area, int depth);

static bool split_at(partition *p, const int64_t *list, int64_t count, const box *area,
                     const plane *at, int depth) {
  int64_t *part = malloc((size_t)count * sizeof *part);
  bool good = part != NULL;
  for (int side = 0; good && side < 2; side++) {
    box half = *area;
    int64_t n = 0;
    *(side ? &half.lo[at->axis] : &half.hi[at->axis]) = at->at;
    for (int64_t j = 0; j < count; j++)
      if (touches(p, list[j], &half)) part[n++] = list[j];
    good = split(p, part, n, &half, depth + 1);
  }
  free(part);
  return good;
}

/* `list`: the pieces that touch the area, in the order of their mappings. It may be changed. */
static bool split(partition *p, int64_t *list, int64_t count, const box *area, int depth) {
  for (int64_t j = count - 1; j > 0; j--) /* what lies below one that covers all is not seen */
    if (covers(p, list[j], area)) {
      memmove(list, list + j, (size_t)(count - j) * sizeof *list);
      count -= j;
      break;
    }
  if (count == 0) return put(p, -1, area);
  if (covers(p, list[count - 1], area)) return put(p, list[count - 1], area);
  if (count == 1) return put_with_gaps(p, list[0], *area);
  plane best = {.axis = -1};
  for (int k = 0; k < p->in->to; k++)
    look_along(p, list, count, area, k, depth < PICKY_DEPTH, &best);
  if (best.axis < 0 || depth > MOST_DEPTH) return false;
  return split_at(p, list, count, area, &best, depth);
}

bool hdf5_pieces_partition(const hdf5_pieces *in, const int64_t *shape, hdf5_pieces *out) {
  partition p = {
      .in = in, .out = out, .scratch = malloc((size_t)(in->count + 1) * 2 * sizeof(int64_t))};
  int64_t *list = malloc((size_t)(in->count + 1) * sizeof *list);
  box area = {{0}, {0}};
  memcpy(area.hi, shape, (size_t)in->to * sizeof *shape);
  for (int64_t k = 0; list && k < in->count; k++) list[k] = k;
  bool good = list && p.scratch && split(&p, list, in->count, &area, 0);
  free(list);
  free(p.scratch);
  return good;
}
