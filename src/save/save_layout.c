/* The files of a save and the places in them, as the manifests that the engine writes by.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * One array in one file; its rows in shards; its tiles in tile files, with a main file that maps
 * them (virtual); or several arrays in one container. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/frame.h"
#include "save/saving.h"

#define LARGEST_HEADER ((size_t)64 << 20)

/* What one file holds: a box of the array, and its shape. */
typedef struct held {
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], shape[TEGULA_MAX_DIMS];
  int64_t chunk[TEGULA_MAX_DIMS]; /* when chunked: no longer than the file's part */
} held;

/* Shards are as even as they can be, all have some rows. */
int64_t tegula__saving_first_row(const tegula__member *m, int64_t i) {
  return m->tiling->ndim == 0 ? 0 : (int64_t)((__int128)m->tiling->shape[0] * i / m->file_count);
}

static void held_by(const tegula__member *m, int64_t i, held *out) {
  const tegula_tiling *tiling = m->tiling;
  *out = (held){.lo = {0}};
  if (m->layout == TEGULA__VIRTUAL) {
    tegula__tiling_box(tiling, i, out->lo, out->hi);
  } else {
    memcpy(out->hi, tiling->shape, sizeof out->hi);
    if (tiling->ndim > 0) {
      out->lo[0] = tegula__saving_first_row(m, i);
      out->hi[0] = tegula__saving_first_row(m, i + 1);
    }
  }
  for (int32_t k = 0; k < tiling->ndim; k++) {
    out->shape[k] = out->hi[k] - out->lo[k];
    out->chunk[k] = out->shape[k] > 0 ? tegula__min(m->chunk[k], out->shape[k]) : m->chunk[k];
  }
}

static tegula__layout_request request_for(const tegula__member *m, const int64_t *shape,
                                          const int64_t *chunk) {
  const tegula_save_options *o = &m->saving->options;
  return (tegula__layout_request){.dtype = m->stored,
                                  .descr = m->descr,
                                  .ndim = m->tiling->ndim,
                                  .shape = shape,
                                  .order = o->order != 0 ? o->order : 'C',
                                  .byte_order = o->byte_order,
                                  .settings = {o->settings, o->setting_count},
                                  .dataset = m->dataset,
                                  .replace = o->overwrite != 0,
                                  .chunk = m->layout == TEGULA__CHUNKED ? chunk : NULL,
                                  .filters = m->filters,
                                  .filter_count = m->filter_count,
                                  .fill = m->fill,
                                  .attributes = m->attributes,
                                  .attribute_count = m->attribute_count};
}

static tegula_status too_large(const tegula__member *m, tegula_error *err) {
  return tegula__fail(err, TEGULA_LIMIT_EXCEEDED, m->saving->path, -1,
                      "the array or its file would be larger than 2^63 bytes");
}

/* ---- a header in front ---- */

static tegula_status lay_out_header(tegula__member *m, int64_t i, const held *h,
                                    tegula_error *err) {
  int64_t strides[TEGULA_MAX_DIMS], bytes, period;
  int32_t ndim = m->tiling->ndim;
  tegula__layout_request request = request_for(m, h->shape, h->chunk);
  tegula__buffer *header = &m->saving->targets[m->first_target + i].header;
  tegula__buffer_init(header, LARGEST_HEADER);
  tegula__frame *frame = &m->manifest.files[i].frame;
  request.frame = frame;
  FORWARD(m->saving->format->lay_out(&request, header, strides, err));
  if (!tegula__shape_bytes(h->shape, ndim, m->stored.item_size, &bytes) ||
      (frame->record > 0 && (!tegula__frame_period(frame, &period) ||
                             !tegula__mul(bytes / frame->record, period, &bytes))) ||
      !tegula__add(bytes, (int64_t)header->size, &m->manifest.files[i].stamp.size))
    return too_large(m, err);
  return tegula__manifest_add(&m->manifest, i, (int64_t)header->size, h->lo, h->hi, strides,
                              m->stored.order, err);
}

/* ---- containers ---- */

/* A table of chunks without entries: they get their places one by one. */
static tegula_status add_grid(tegula__member *m, int64_t i, int64_t slots, int64_t chunk_bytes,
                              tegula__grid **out, tegula_error *err) {
  tegula__grid *grid = calloc(1, sizeof *grid);
  if (grid == NULL) return tegula__out_of_memory(err, sizeof *grid);
  *grid = (tegula__grid){
      .file = i, .chunk_bytes = chunk_bytes, .order = m->stored.order, .slots = slots};
  grid->filters = calloc((size_t)tegula__max(1, m->filter_count), sizeof *grid->filters);
  grid->coordinates = calloc(1, sizeof *grid->coordinates);
  tegula_status status = grid->filters != NULL && grid->coordinates != NULL
                             ? TEGULA_OK
                             : tegula__out_of_memory(err, sizeof *grid);
  if (status == TEGULA_OK) {
    memcpy(grid->filters, m->filters, (size_t)m->filter_count * sizeof *grid->filters);
    grid->filter_count = m->filter_count;
    status = tegula__manifest_add_grid(&m->manifest, grid, err);
  }
  if (status != TEGULA_OK) tegula__grid_free(grid);
  *out = grid;
  return status;
}

static tegula_status add_chunked(tegula__member *m, int64_t i, const held *h, tegula_error *err) {
  static const int64_t start[TEGULA_MAX_DIMS];
  int64_t strides[TEGULA_MAX_DIMS], slot_strides[TEGULA_MAX_DIMS], slots = 1, bytes;
  int32_t ndim = m->tiling->ndim;
  for (int32_t k = ndim - 1; k >= 0; k--) {
    slot_strides[k] = slots;
    if (!tegula__mul(slots, tegula__ceil_div(h->shape[k], h->chunk[k]), &slots))
      return too_large(m, err);
  }
  if (!tegula__shape_bytes(h->chunk, ndim, m->stored.item_size, &bytes)) return too_large(m, err);
  tegula__dense_strides(h->chunk, ndim, m->stored.item_size, 'C', strides);
  tegula__grid *grid = NULL;
  FORWARD(add_grid(m, i, slots, bytes, &grid, err));
  tegula__part part = {.kind = TEGULA__PART_CHUNKED,
                       .order = grid->order,
                       .file = TEGULA__NO_FILE,
                       .lo = h->lo,
                       .hi = h->hi,
                       .strides = strides,
                       .start = start,
                       .chunk = h->chunk,
                       .slot_strides = slot_strides,
                       .grid = grid};
  return tegula__manifest_add_part(&m->manifest, &part, err);
}

/* One run of bytes. */
static tegula_status add_dense(tegula__member *m, int64_t i, const held *h, int64_t offset,
                               int64_t bytes, tegula_error *err) {
  int64_t strides[TEGULA_MAX_DIMS], *size = &m->manifest.files[i].stamp.size;
  tegula__target *target = &m->saving->targets[m->first_target + i];
  if (offset < 0 || !tegula__add(offset, bytes, size)) return too_large(m, err);
  target->wanted = tegula__max(target->wanted, *size);
  tegula__dense_strides(h->shape, m->tiling->ndim, m->stored.item_size, 'C', strides);
  return tegula__manifest_add(&m->manifest, i, offset, h->lo, h->hi, strides, m->stored.order, err);
}

static tegula_status lay_out_dataset(tegula__member *m, int64_t i, const held *h,
                                     tegula_error *err) {
  int64_t offset, bytes;
  tegula__layout_request request = request_for(m, h->shape, h->chunk);
  tegula__saving *s = m->saving;
  tegula__target *target = &s->targets[m->first_target + i];
  if (!tegula__shape_bytes(h->shape, m->tiling->ndim, m->stored.item_size, &bytes))
    return too_large(m, err);
  tegula__origin origin =
      m->origin != NULL && m->layout != TEGULA__VIRTUAL ? *m->origin : (tegula__origin){0};
  if (i > 0) origin.dropped = NULL; /* said once */
  request.origin = origin.source != NULL ? &origin : NULL;
  FORWARD(tegula__target_open(s, target, err));
  FORWARD(s->format->container->add(target->saving, &request, &m->numbers[i], &offset, err));
  if (bytes > 0)
    FORWARD(m->layout == TEGULA__CHUNKED ? add_chunked(m, i, h, err)
                                         : add_dense(m, i, h, offset, bytes, err));
  /* of many files, none stays open for its metadata: the engine opens as many at a time as it
   * may */
  if (m->file_count == 1) return TEGULA_OK;
  if (m->layout == TEGULA__CHUNKED) return tegula__target_park(target, err);
  FORWARD(tegula__target_reserve(target, err));
  s->early = true;
  return tegula__target_complete(s, target, false, err);
}

/* The main file of a virtual dataset: where each tile is, by a name from the folder of the main
 * file. */
static tegula_status lay_out_mapping(tegula__member *m, tegula__target *main, tegula_error *err) {
  tegula__saving *s = m->saving;
  int32_t ndim = m->tiling->ndim;
  int64_t count = m->file_count, offset, number;
  tegula__mapping *mappings = calloc((size_t)tegula__max(1, count), sizeof *mappings);
  int64_t *vectors = calloc((size_t)(2 * tegula__max(1, count) * ndim), sizeof *vectors);
  tegula_status status = mappings != NULL && vectors != NULL
                             ? TEGULA_OK
                             : tegula__out_of_memory(err, count * (int64_t)sizeof *mappings);
  int64_t used = 0;
  for (int64_t i = 0; status == TEGULA_OK && i < count; i++) {
    int64_t *lo = vectors + 2 * i * ndim, *hi = lo + ndim;
    tegula__tiling_box(m->tiling, i, lo, hi);
    if (tegula__box_count(ndim, lo, hi) == 0) continue;
    mappings[used++] = (tegula__mapping){
        .file = s->targets[m->first_target + i].shown, .dataset = m->dataset, .lo = lo, .hi = hi};
  }
  tegula__layout_request request = request_for(m, m->tiling->shape, NULL);
  request.mappings = mappings;
  request.mapping_count = used;
  request.origin = m->origin; /* tile files are no datasets for others */
  if (status == TEGULA_OK) status = tegula__target_open(s, main, err);
  if (status == TEGULA_OK)
    status = s->format->container->add(main->saving, &request, &number, &offset, err);
  free(mappings);
  free(vectors);
  return status;
}

/* ---- all of them ---- */

/* "shard_0012.npy": as many digits as the last number needs, at least 4. */
static char *numbered(const tegula__member *m, const char *folder, const char *stem, int64_t i) {
  int width = snprintf(NULL, 0, "%" PRId64, m->file_count - 1);
  return tegula__strprintf("%s/%s_%0*" PRId64 "%s", folder, stem, width < 4 ? 4 : width, i,
                           m->saving->format->suffixes[0]);
}

/* Where file i of the member is written, and what it will be called. */
static tegula_status name_file(tegula__member *m, int64_t i, tegula_error *err) {
  tegula__saving *s = m->saving;
  tegula__target *target = &s->targets[m->first_target + i];
  const tegula__publish *p = &s->publish;
  if (target->path == NULL) {
    bool tile = m->layout == TEGULA__VIRTUAL;
    target->path = tile        ? numbered(m, p->companion, "tile", i)
                   : p->folder ? numbered(m, p->temporary, "shard", i)
                               : strdup(p->temporary);
    target->shown = tile        ? numbered(m, p->companion_name, "tile", i)
                    : p->folder ? numbered(m, p->target, "shard", i)
                                : strdup(p->target);
  }
  m->manifest.files[i].path = tegula__strdup(target->path);
  m->manifest.file_count = i + 1;
  return target->shown != NULL && m->manifest.files[i].path != NULL
             ? TEGULA_OK
             : tegula__out_of_memory(err, 64);
}

static tegula_status lay_out_member(tegula__member *m, tegula_error *err) {
  tegula__manifest *manifest = &m->manifest;
  int64_t room = tegula__max(1, m->file_count);
  manifest->format = m->saving->format->name;
  manifest->name = "data";
  manifest->dtype = m->dtype;
  manifest->ndim = m->tiling->ndim;
  memcpy(manifest->shape, m->tiling->shape, sizeof manifest->shape);
  manifest->files = calloc((size_t)room, sizeof *manifest->files);
  m->numbers = calloc((size_t)room, sizeof *m->numbers);
  if (manifest->files == NULL || m->numbers == NULL)
    return tegula__out_of_memory(err, room * (int64_t)sizeof *manifest->files);
  for (int64_t i = 0; i < m->file_count; i++) {
    held h;
    held_by(m, i, &h);
    FORWARD(name_file(m, i, err));
    FORWARD(m->saving->format->container != NULL ? lay_out_dataset(m, i, &h, err)
                                                 : lay_out_header(m, i, &h, err));
  }
  return tegula__manifest_finish(manifest, err);
}

/* The last target of a virtual dataset. */
static tegula_status lay_out_main(tegula__saving *s, tegula_error *err) {
  tegula__target *main = &s->targets[s->target_count - 1];
  main->path = strdup(s->publish.temporary);
  main->shown = strdup(s->publish.target);
  if (main->path == NULL || main->shown == NULL) return tegula__out_of_memory(err, 64);
  return lay_out_mapping(&s->members[0], main, err);
}

tegula_status tegula__saving_lay_out(tegula__saving *s, tegula_error *err) {
  bool virtual = s->members[0].layout == TEGULA__VIRTUAL;
  s->target_count = s->members[0].file_count + (virtual ? 1 : 0);
  s->targets = calloc((size_t)s->target_count, sizeof *s->targets);
  if (s->targets == NULL)
    return tegula__out_of_memory(err, s->target_count * (int64_t)sizeof *s->targets);
  for (int64_t i = 0; i < s->target_count; i++) s->targets[i].fd = -1;
  for (int64_t i = 0; i < s->member_count; i++) FORWARD(lay_out_member(&s->members[i], err));
  for (int64_t i = 0; i < s->target_count; i++)
    if (s->targets[i].fd >= 0) FORWARD(tegula__target_reserve(&s->targets[i], err));
  return virtual ? lay_out_main(s, err) : TEGULA_OK;
}
