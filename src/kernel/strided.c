/* strided: the fused pass of the staged path, from one strided memory to another with bytes
 * reversed on the way.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every case is brought to one form first: axes in the order of the destination's strides (largest
 * first, all positive), axes of length 1 gone, axes that are contiguous in both memories joined,
 * and what is dense in both folded into the item. So two dense arrays are one item; rows of a tile
 * are items of a row's length; C <- Fortran order is one plane of small items to transpose per step
 * of the rest.
 *
 * Where an axis of that plane is short, those that follow it without a gap in the same memory are
 * taken with it. In the other memory they lie here and there, so blocks of the plane go through
 * buffers in L1:
 *
 *   (2, 3, 100) <- Fortran order     rows: axis 2
 *                                    columns: axes 0 and 1, 6 items of 100 rows each,
 *                                    written to 6 places of dst
 *   (100, 3, 2) <- Fortran order     columns: axis 0
 *                                    rows: axes 2 and 1, 6 items for each column,
 *                                    read from 6 places of src */
#include <string.h>

#include "kernel/kernel.h"

typedef struct copy_axis {
  int64_t extent, dst, src; /* strides in bytes */
} copy_axis;

typedef struct copy_job {
  const tegula__kernels *kernels;
  char *dst;
  const char *src;
  size_t item;
  uint32_t swap_size;
  int32_t ndim;
  copy_axis axes[TEGULA_MAX_DIMS];
} copy_job;

/* ---- bringing a job to normal form ---- */

static int64_t magnitude(int64_t value) { return value < 0 ? -value : value; }

/* Walks an axis from its other end: negative strides become positive and the other way round. */
static void axis_flip(copy_job *job, copy_axis *axis) {
  job->dst += (axis->extent - 1) * axis->dst;
  job->src += (axis->extent - 1) * axis->src;
  axis->dst = -axis->dst;
  axis->src = -axis->src;
}

/* Puts an axis where the destination's strides fall from the outermost to the innermost. */
static void axis_insert(copy_job *job, copy_axis axis) {
  int32_t at = job->ndim++;
  for (; at > 0 && job->axes[at - 1].dst < axis.dst; at--) job->axes[at] = job->axes[at - 1];
  job->axes[at] = axis;
}

/* Joins neighbours such as rows that follow one another without a gap in both memories. */
static void axes_join(copy_job *job) {
  int32_t kept = 0;
  for (int32_t k = 1; k < job->ndim; k++) {
    copy_axis *outer = &job->axes[kept];
    const copy_axis *inner = &job->axes[k];
    if (outer->dst == inner->dst * inner->extent && outer->src == inner->src * inner->extent) {
      outer->extent *= inner->extent;
      outer->dst = inner->dst;
      outer->src = inner->src;
    } else {
      job->axes[++kept] = *inner;
    }
  }
  if (job->ndim > 0) job->ndim = kept + 1;
}

/* What is dense in both memories becomes part of the item. After axes_join only the innermost axis
 * can be. */
static void axes_fold(copy_job *job) {
  if (job->ndim == 0) return;
  const copy_axis *inner = &job->axes[job->ndim - 1];
  if (inner->dst != (int64_t)job->item || inner->src != (int64_t)job->item) return;
  job->item *= (size_t)inner->extent;
  job->ndim--;
}

/* ---- moving items ---- */

static void swap_groups(const copy_job *job, char *dst, const char *src, size_t bytes) {
  tegula__swap_groups(job->kernels, dst, src, bytes, job->swap_size);
}

/* A loop whose item size the compiler knows. */
#define COPY_ITEMS(size)                                                                           \
  case size:                                                                                       \
    for (int64_t i = 0; i < count; i++) memcpy(dst + i * dst_stride, src + i * src_stride, size);  \
    break

static void copy_items(char *dst, int64_t dst_stride, const char *src, int64_t src_stride,
                       int64_t count, size_t item) {
  switch (item) {
    COPY_ITEMS(1);
    COPY_ITEMS(2);
    COPY_ITEMS(3);
    COPY_ITEMS(4);
    COPY_ITEMS(6);
    COPY_ITEMS(8);
    COPY_ITEMS(12);
    COPY_ITEMS(16);
    COPY_ITEMS(24);
    COPY_ITEMS(32);
    COPY_ITEMS(48);
    COPY_ITEMS(64);
    default:
      for (int64_t i = 0; i < count; i++) memcpy(dst + i * dst_stride, src + i * src_stride, item);
  }
}

enum {
  SMALL_ITEM = 64,
  STAGE_BYTES = 2048,
  SHORT_RUN = 256,
  LINE = 64 /* of a cache */,
  BLOCK_BYTES = 16384
};

/* One line of items: small ones with swapped bytes are collected densely first, so that the swap
 * kernels get long runs. */
static void copy_line(const copy_job *job, char *dst, int64_t dst_stride, const char *src,
                      int64_t src_stride, int64_t count) {
  if (job->swap_size == 1) {
    copy_items(dst, dst_stride, src, src_stride, count, job->item);
    return;
  }
  if (job->item > SMALL_ITEM) {
    for (int64_t i = 0; i < count; i++)
      swap_groups(job, dst + i * dst_stride, src + i * src_stride, job->item);
    return;
  }
  char stage[STAGE_BYTES];
  int64_t item = (int64_t)job->item;
  int64_t step = STAGE_BYTES / item;
  for (int64_t i = 0; i < count; i += step) {
    int64_t some = tegula__min(step, count - i);
    copy_items(stage, item, src + i * src_stride, src_stride, some, job->item);
    if (dst_stride == item) {
      swap_groups(job, dst + i * item, stage, (size_t)(some * item));
    } else {
      swap_groups(job, stage, stage, (size_t)(some * item));
      copy_items(dst + i * dst_stride, dst_stride, stage, item, some, job->item);
    }
  }
}

/* A plane whose fast axis differs between the two memories, in tiles of a few cache lines each
 * way. */
static void copy_tiled(const copy_job *job, char *dst, const char *src, const copy_axis *outer,
                       const copy_axis *inner) {
  int64_t edge = tegula__max(4, 256 / (int64_t)job->item);
  for (int64_t a = 0; a < outer->extent; a += edge) {
    int64_t a_end = tegula__min(outer->extent, a + edge);
    for (int64_t b = 0; b < inner->extent; b += edge) {
      int64_t count = tegula__min(edge, inner->extent - b);
      for (int64_t row = a; row < a_end; row++)
        copy_line(job, dst + row * outer->dst + b * inner->dst, inner->dst,
                  src + row * outer->src + b * inner->src, inner->src, count);
    }
  }
}

/* ---- choosing the inner loops ---- */

static tegula__transpose_fn transpose_for(const copy_job *job) {
  switch (job->item) {
    case 1:
      return job->kernels->transpose1;
    case 2:
      return job->kernels->transpose2;
    case 4:
      return job->kernels->transpose4;
    case 8:
      return job->kernels->transpose8;
    case 16:
      return job->kernels->transpose16;
    default:
      return NULL;
  }
}

/* The axis along which the source is read best: the smallest stride that moves. */
static int32_t source_axis(const copy_job *job) {
  int32_t best = job->ndim - 1;
  for (int32_t k = job->ndim - 2; k >= 0; k--) {
    int64_t stride = magnitude(job->axes[k].src);
    if (stride != 0 && stride < magnitude(job->axes[best].src)) best = k;
  }
  return best;
}

/* Axes that are one in one of the memories. */
typedef struct axis_group {
  int64_t unit;  /* from item to item there */
  int64_t items; /* of all axes */
  int32_t count;
  /* fastest first; steps in the other memory */
  int64_t extents[TEGULA_MAX_DIMS], steps[TEGULA_MAX_DIMS];
} axis_group;

/* How the innermost axes are moved; the rest is stepped through around them. */
typedef struct inner_loops {
  tegula__transpose_fn transpose; /* NULL: not a plane to transpose */
  axis_group rows;                /* one in dst */
  axis_group columns;             /* one in src; only of a plane */
  bool plane;
  bool stream; /* the whole copy is large */
} inner_loops;

static size_t job_bytes(const copy_job *job) {
  size_t bytes = job->item;
  for (int32_t k = 0; k < job->ndim; k++) bytes *= (size_t)job->axes[k].extent;
  return bytes;
}

static copy_axis axis_take(copy_job *job, int32_t at) {
  copy_axis axis = job->axes[at];
  job->ndim--;
  memmove(&job->axes[at], &job->axes[at + 1], (size_t)(job->ndim - at) * sizeof *job->axes);
  return axis;
}

static void group_add(axis_group *group, int64_t extent, int64_t unit, int64_t step) {
  if (group->count == 0) {
    group->unit = unit;
    group->items = 1;
  }
  group->extents[group->count] = extent;
  group->steps[group->count++] = step;
  group->items *= extent;
}

/* Until rows are long enough, axes that follow in dst. */
static void rows_grow(copy_job *job, axis_group *rows) {
  for (int32_t k = job->ndim - 1; k >= 0 && rows->items * (int64_t)job->item < SHORT_RUN; k--) {
    if (job->axes[k].dst != rows->items * rows->unit) continue;
    copy_axis axis = axis_take(job, k);
    group_add(rows, axis.extent, axis.dst, axis.src);
    k = job->ndim;
  }
}

/* The same for columns: axes that follow in src. */
static void columns_grow(copy_job *job, axis_group *columns) {
  for (int32_t k = job->ndim - 1; k >= 0 && columns->items * (int64_t)job->item < SHORT_RUN; k--) {
    if (magnitude(job->axes[k].src) != columns->items * columns->unit) continue;
    if (job->axes[k].src < 0) axis_flip(job, &job->axes[k]);
    copy_axis axis = axis_take(job, k);
    group_add(columns, axis.extent, axis.src, axis.dst);
    k = job->ndim;
  }
}

/* Takes the inner axes out of the job. */
static void inner_take(copy_job *job, inner_loops *loops) {
  loops->transpose = NULL;
  /* the tables behind it are long: a small copy would take as long as clearing them */
  loops->rows.count = loops->columns.count = 0;
  loops->stream = job_bytes(job) >= TEGULA__KERNEL_STREAM_BYTES;
  int32_t fast = source_axis(job);
  loops->plane = fast != job->ndim - 1 && job->item < SMALL_ITEM;
  copy_axis inner = axis_take(job, job->ndim - 1);
  group_add(&loops->rows, inner.extent, inner.dst, inner.src);
  if (!loops->plane) return;
  if (job->axes[fast].src < 0) axis_flip(job, &job->axes[fast]);
  copy_axis outer = axis_take(job, fast);
  group_add(&loops->columns, outer.extent, outer.src, outer.dst);
  rows_grow(job, &loops->rows);
  /* else writing them here and there costs more */
  if (loops->columns.items * (int64_t)job->item < LINE) columns_grow(job, &loops->columns);
  int64_t item = (int64_t)job->item;
  if ((loops->rows.unit == item || loops->columns.count > 1) &&
      (loops->columns.unit == item || loops->rows.count > 1))
    loops->transpose = transpose_for(job);
}

/* One place of a group in the other memory, and the way to the next. Only the entries of the
 * group's axes are set. */
typedef struct group_walk {
  int64_t index[TEGULA_MAX_DIMS], at;
} group_walk;

static void walk_to(const axis_group *group, int64_t number, group_walk *walk) {
  walk->at = 0;
  for (int32_t k = 0; k < group->count; number /= group->extents[k++]) {
    walk->index[k] = number % group->extents[k];
    walk->at += walk->index[k] * group->steps[k];
  }
}

static void walk_on(const axis_group *group, group_walk *walk) {
  for (int32_t k = 0; k < group->count; k++) {
    walk->at += group->steps[k];
    if (++walk->index[k] < group->extents[k]) return;
    walk->at -= group->extents[k] * group->steps[k];
    walk->index[k] = 0;
  }
}

static void copy_run(char *dst, int64_t dst_stride, const char *src, int64_t src_stride,
                     int64_t count, size_t item) {
  if (dst_stride == (int64_t)item && src_stride == (int64_t)item)
    memcpy(dst, src, (size_t)count * item);
  else
    copy_items(dst, dst_stride, src, src_stride, count, item);
}

/* rows->extent items of each of columns->extent lines. */
static void plane_run(const copy_job *job, const inner_loops *loops, char *dst, const char *src,
                      const copy_axis *columns, const copy_axis *rows, bool stream) {
  if (loops->transpose)
    loops->transpose(dst, columns->dst, src, rows->src, rows->extent, columns->extent,
                     job->swap_size, stream);
  else
    copy_tiled(job, dst, src, columns, rows);
}

/* A plane with a group of several axes. Before the next columns come all rows of these: what their
 * lines still lack. */
static void blocks_run(const copy_job *job, const inner_loops *loops, char *dst, const char *src) {
  const axis_group *rows = &loops->rows, *columns = &loops->columns;
  _Alignas(64) char gathered[BLOCK_BYTES], scattered[BLOCK_BYTES];
  int64_t item = (int64_t)job->item, edge = item == 1 ? 128 : tegula__min(64, SHORT_RUN / item);
  group_walk row, column;
  for (int64_t c = 0; c < columns->items; c += edge) {
    copy_axis across = {tegula__min(edge, columns->items - c), columns->steps[0], columns->unit};
    walk_to(rows, 0, &row);
    for (int64_t r = 0; r < rows->items; r += edge) {
      copy_axis along = {tegula__min(edge, rows->items - r), rows->unit, rows->steps[0]};
      const char *from = src + c * columns->unit;
      char *to = dst + r * rows->unit;
      if (rows->count > 1) {
        along.src = across.extent * item;
        across.src = item;
        for (int64_t k = 0; k < along.extent; k++, walk_on(rows, &row))
          copy_run(gathered + k * along.src, item, from + row.at, columns->unit, across.extent,
                   job->item);
        from = gathered;
      } else {
        from += r * rows->steps[0];
      }
      if (columns->count == 1) {
        plane_run(job, loops, to + c * columns->steps[0], from, &across, &along, loops->stream);
        continue;
      }
      along.dst = item;
      across.dst = along.extent * item;
      plane_run(job, loops, scattered, from, &across, &along, false);
      walk_to(columns, c, &column);
      for (int64_t k = 0; k < across.extent; k++, walk_on(columns, &column))
        copy_run(to + column.at, rows->unit, scattered + k * across.dst, item, along.extent,
                 job->item);
    }
  }
}

static void inner_run(const copy_job *job, const inner_loops *loops, char *dst, const char *src) {
  const axis_group *rows = &loops->rows, *columns = &loops->columns;
  if (!loops->plane) {
    copy_line(job, dst, rows->unit, src, rows->steps[0], rows->items);
  } else if (rows->count == 1 && columns->count == 1) {
    copy_axis inner = {rows->items, rows->unit, rows->steps[0]},
              outer = {columns->items, columns->steps[0], columns->unit};
    plane_run(job, loops, dst, src, &outer, &inner, loops->stream);
  } else {
    blocks_run(job, loops, dst, src);
  }
}

/* Steps through the axes that are left, the last one fastest. */
static void outer_run(const copy_job *job, const inner_loops *loops) {
  int64_t index[TEGULA_MAX_DIMS];
  char *dst = job->dst;
  const char *src = job->src;
  for (int32_t k = 0; k < job->ndim; k++) index[k] = 0;
  for (;;) {
    inner_run(job, loops, dst, src);
    int32_t k = job->ndim - 1;
    for (; k >= 0; k--) {
      const copy_axis *axis = &job->axes[k];
      dst += axis->dst;
      src += axis->src;
      if (++index[k] < axis->extent) break;
      dst -= axis->extent * axis->dst;
      src -= axis->extent * axis->src;
      index[k] = 0;
    }
    if (k < 0) return;
  }
}

void tegula__copy_strided(const tegula__kernels *kernels, char *dst, const int64_t *dst_strides,
                          const char *src, const int64_t *src_strides, const int64_t *extents,
                          int32_t ndim, uint32_t item_size, uint32_t swap_size) {
  copy_job job;
  job.kernels = kernels;
  job.dst = dst;
  job.src = src;
  job.item = item_size;
  job.swap_size = swap_size;
  job.ndim = 0;
  for (int32_t k = 0; k < ndim; k++) {
    if (extents[k] == 0) return;
    if (extents[k] == 1) continue;
    copy_axis axis = {extents[k], dst_strides[k], src_strides[k]};
    if (axis.dst < 0) axis_flip(&job, &axis);
    axis_insert(&job, axis);
  }
  axes_join(&job);
  axes_fold(&job);
  if (job.ndim == 0) {
    swap_groups(&job, job.dst, job.src, job.item);
    return;
  }
  inner_loops loops;
  inner_take(&job, &loops);
  outer_run(&job, &loops);
}
