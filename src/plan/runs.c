/* Walks over the runs of a direct step: bytes that are contiguous both in the file and in a tile's
 * memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each piece is a walk in the file's order; a heap merges the walks of all pieces by offset. */
#include "plan/plan.h"

void tegula__run_start(tegula__run_walk *w, const tegula__part *part, int32_t ndim,
                       uint32_t item_size, const tegula__piece *piece) {
  int32_t inner;
  tegula__file_order order;
  tegula__file_order_of(part, ndim, piece->lo, piece->hi, &order);
  w->run = tegula__common_run(&order, part->strides, piece->tile->strides, piece->lo, piece->hi,
                              item_size, &inner);
  w->offset = tegula__part_offset(part, ndim, piece->lo);
  w->address = tegula__tile_address(piece->tile, ndim, piece->lo);
  w->axes = order.count - inner;
  for (int32_t i = 0; i < w->axes; i++) {
    int32_t k = order.axes[i];
    w->steps[i].length = piece->hi[k] - piece->lo[k];
    w->steps[i].index = 0;
    w->steps[i].file = part->strides[k];
    w->steps[i].memory = piece->tile->strides[k];
  }
}

/* To the next run; false after the last. */
static bool advance(tegula__run_walk *w) {
  for (int32_t i = w->axes - 1; i >= 0; i--) {
    if (++w->steps[i].index < w->steps[i].length) {
      w->offset += w->steps[i].file;
      w->address += w->steps[i].memory;
      return true;
    }
    w->offset -= (w->steps[i].length - 1) * w->steps[i].file;
    w->address -= (w->steps[i].length - 1) * w->steps[i].memory;
    w->steps[i].index = 0;
  }
  return false;
}

static void sift_down(const tegula__run_walk *walks, int64_t *heap, int64_t count, int64_t at) {
  for (;;) {
    int64_t least = at;
    for (int64_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
      if (walks[heap[child]].offset < walks[heap[least]].offset) least = child;
    if (least == at) return;
    int64_t held = heap[at];
    heap[at] = heap[least];
    heap[least] = held;
    at = least;
  }
}

void tegula__run_order(const tegula__run_walk *walks, int64_t *heap, int64_t count) {
  for (int64_t i = count / 2 - 1; i >= 0; i--) sift_down(walks, heap, count, i);
}

int64_t tegula__run_next(tegula__run_walk *walks, int64_t *heap, int64_t count) {
  if (!advance(&walks[heap[0]])) heap[0] = heap[--count];
  sift_down(walks, heap, count, 0);
  return count;
}
