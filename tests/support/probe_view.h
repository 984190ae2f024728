/* Memory with any strides for the probe, and element-by-element copies between it and C-ordered
 * bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Blocks have exactly the size that their elements need, so that a sanitizer sees the first byte
 * outside them, and are filled with a pattern, so that bytes between the elements that somebody
 * wrote to are found without one. Used by probe.c alone. */
#ifndef TEGULA_TESTS_PROBE_VIEW_H
#define TEGULA_TESTS_PROBE_VIEW_H

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <tegula/tegula.h>

#define PROBE_PATTERN 0xA5

typedef struct probe_block {
  unsigned char *base;
  size_t bytes;
  tegula_view view;
} probe_block;

static int64_t probe_box_count(const tegula_box *box) {
  int64_t count = 1;
  for (int32_t axis = 0; axis < box->ndim; axis++) {
    count *= box->hi[axis] > box->lo[axis] ? box->hi[axis] - box->lo[axis] : 0;
  }
  return count;
}

static int probe_list_has(const json_t *list, int64_t value) {
  for (size_t i = 0; i < json_array_size(list); i++) {
    if (json_integer_value(json_array_get(list, i)) == value) {
      return 1;
    }
  }
  return 0;
}

/* layout: {"axes": [slowest .. fastest], "pad": [elements behind each row, per axis], "negative":
 * [axes], "shift": bytes}. */
static void probe_block_strides(probe_block *block, const json_t *layout) {
  const tegula_box *box = &block->view.box;
  const json_t *axes = json_object_get(layout, "axes");
  const json_t *pad = json_object_get(layout, "pad");
  const json_t *negative = json_object_get(layout, "negative");
  int64_t stride = block->view.dtype.item_size;
  int64_t lowest = 0;
  int64_t highest = 0;
  for (int32_t i = box->ndim; i-- > 0;) {
    int64_t axis = axes ? json_integer_value(json_array_get(axes, (size_t)i)) : i;
    int64_t extent = box->hi[axis] - box->lo[axis];
    int64_t span = extent > 0 ? (extent - 1) * stride : 0;
    int backwards = probe_list_has(negative, axis);
    block->view.stride_bytes[axis] = backwards ? -stride : stride;
    lowest -= backwards ? span : 0;
    highest += backwards ? 0 : span;
    stride *= (extent > 0 ? extent : 1) + json_integer_value(json_array_get(pad, (size_t)axis));
  }
  int64_t shift = json_integer_value(json_object_get(layout, "shift"));
  block->bytes = (size_t)(shift - lowest + highest) +
                 (probe_box_count(box) > 0 ? block->view.dtype.item_size : 0);
  block->base = malloc(block->bytes ? block->bytes : 1);
  if (!block->base) {
    abort(); /* the probe itself is out of memory: nothing to report about the library */
  }
  memset(block->base, PROBE_PATTERN, block->bytes);
  block->view.data = probe_box_count(box) > 0 ? block->base + shift - lowest : block->base;
}

static void probe_block_make(probe_block *block, tegula_dtype dtype, const tegula_box *box,
                             const json_t *layout) {
  memset(block, 0, sizeof *block);
  block->view.dtype = dtype;
  block->view.device_type = TEGULA_DEVICE_HOST;
  block->view.box = *box;
  probe_block_strides(block, layout);
}

typedef void (*probe_item_fn)(void *state, unsigned char *item, int64_t position);

/* Calls `visit` for each element in C order. */
static void probe_view_walk(const tegula_view *view, probe_item_fn visit, void *state) {
  int64_t index[TEGULA_MAX_DIMS] = {0};
  int64_t count = probe_box_count(&view->box);
  unsigned char *item = view->data;
  for (int64_t position = 0; position < count; position++) {
    visit(state, item, position);
    for (int32_t axis = view->box.ndim; axis-- > 0;) {
      int64_t extent = view->box.hi[axis] - view->box.lo[axis];
      item += view->stride_bytes[axis];
      if (++index[axis] < extent) {
        break;
      }
      item -= view->stride_bytes[axis] * extent;
      index[axis] = 0;
    }
  }
}

typedef struct probe_copy {
  unsigned char *bytes;
  size_t item_size;
} probe_copy;

static void probe_item_out(void *state, unsigned char *item, int64_t position) {
  probe_copy *copy = state;
  memcpy(copy->bytes + (size_t)position * copy->item_size, item, copy->item_size);
}

static void probe_item_in(void *state, unsigned char *item, int64_t position) {
  probe_copy *copy = state;
  memcpy(item, copy->bytes + (size_t)position * copy->item_size, copy->item_size);
}

/* The elements of the view as C-ordered bytes; the caller frees them. */
static unsigned char *probe_view_bytes(const tegula_view *view, size_t *bytes) {
  *bytes = (size_t)probe_box_count(&view->box) * view->dtype.item_size;
  probe_copy copy = {malloc(*bytes ? *bytes : 1), view->dtype.item_size};
  if (!copy.bytes) {
    abort();
  }
  probe_view_walk(view, probe_item_out, &copy);
  return copy.bytes;
}

typedef struct probe_cover {
  const probe_block *block;
  unsigned char *covered;
} probe_cover;

static void probe_item_cover(void *state, unsigned char *item, int64_t position) {
  probe_cover *cover = state;
  (void)position;
  memset(cover->covered + (item - cover->block->base), 1, cover->block->view.dtype.item_size);
}

/* How many bytes that belong to no element lost the pattern. */
static int64_t probe_block_stray(const probe_block *block) {
  probe_cover cover = {block, calloc(block->bytes + 1, 1)};
  if (!cover.covered) {
    abort();
  }
  probe_view_walk(&block->view, probe_item_cover, &cover);
  int64_t stray = 0;
  for (size_t i = 0; i < block->bytes; i++) {
    stray += !cover.covered[i] && block->base[i] != PROBE_PATTERN;
  }
  free(cover.covered);
  return stray;
}

#endif
