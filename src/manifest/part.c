/* Parts: adding them to a manifest, and what the chunks of a chunked one hold.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The vectors of a part lie in one block: lo, hi, strides, and where it has chunks start, chunk,
 * slot_strides, and where it has steps those. */
#include <stdlib.h>
#include <string.h>

#include "manifest/manifest_priv.h"

int64_t tegula__part_vectors(const tegula__part *part) {
  return part->chunk == NULL ? 3 : part->step == NULL ? 6 : 7;
}

void tegula__part_point(tegula__part *part, int64_t *block, int32_t ndim) {
  part->lo = block;
  part->hi = block + ndim;
  part->strides = block + 2 * ndim;
  if (part->chunk == NULL) return;
  part->start = block + 3 * ndim;
  part->chunk = block + 4 * ndim;
  part->slot_strides = block + 5 * ndim;
  if (part->step != NULL) part->step = block + 6 * ndim;
}

tegula_status tegula__manifest_add_part(tegula__manifest *manifest, const tegula__part *part,
                                        tegula_error *err) {
  size_t axes = (size_t)manifest->ndim, bytes = axes * sizeof(int64_t);
  int64_t count = tegula__part_vectors(part), *block = malloc((size_t)count * bytes + 1);
  if (block == NULL || !tegula__vector_reserve((void **)&manifest->parts, &manifest->part_capacity,
                                               manifest->part_count + 1, sizeof *manifest->parts)) {
    free(block);
    return tegula__out_of_memory(err, count * (int64_t)bytes);
  }
  const int64_t *from[] = {part->lo,    part->hi,           part->strides, part->start,
                           part->chunk, part->slot_strides, part->step};
  for (int64_t i = 0; i < count; i++) {
    if (from[i] != NULL)
      memcpy(block + (size_t)i * axes, from[i], bytes);
    else
      memset(block + (size_t)i * axes, 0, bytes);
  }
  tegula__part *copy = &manifest->parts[manifest->part_count++];
  *copy = *part;
  if (copy->texts == NULL) copy->texts = manifest->texts;
  tegula__part_point(copy, block, manifest->ndim);
  return TEGULA_OK;
}

tegula_status tegula__manifest_add(tegula__manifest *manifest, int64_t file, int64_t offset,
                                   const int64_t *lo, const int64_t *hi, const int64_t *strides,
                                   uint8_t order, tegula_error *err) {
  tegula__part part = {.kind = TEGULA__PART_DENSE,
                       .file = file,
                       .offset = offset,
                       .lo = lo,
                       .hi = hi,
                       .strides = strides,
                       .order = order};
  return tegula__manifest_add_part(manifest, &part, err);
}

/* ---- what parts point at ---- */

tegula_status tegula__manifest_keep(tegula__manifest *manifest, void *memory, tegula_error *err) {
  if (memory != NULL && tegula__vector_reserve((void **)&manifest->kept, &manifest->kept_capacity,
                                               manifest->kept_count + 1, sizeof *manifest->kept)) {
    manifest->kept[manifest->kept_count++] = memory;
    return TEGULA_OK;
  }
  free(memory);
  return tegula__out_of_memory(err, (manifest->kept_count + 1) * (int64_t)sizeof *manifest->kept);
}

tegula_status tegula__manifest_add_grid(tegula__manifest *manifest, tegula__grid *grid,
                                        tegula_error *err) {
  if (!tegula__vector_reserve((void **)&manifest->grids, &manifest->grid_capacity,
                              manifest->grid_count + 1, sizeof *manifest->grids))
    return tegula__out_of_memory(err,
                                 (manifest->grid_count + 1) * (int64_t)sizeof *manifest->grids);
  manifest->grids[manifest->grid_count++] = grid;
  return TEGULA_OK;
}

tegula_status tegula__manifest_add_reader(tegula__manifest *manifest, tegula__reader *reader,
                                          tegula_error *err) {
  if (!tegula__vector_reserve((void **)&manifest->readers, &manifest->reader_capacity,
                              manifest->reader_count + 1, sizeof *manifest->readers))
    return tegula__out_of_memory(err,
                                 (manifest->reader_count + 1) * (int64_t)sizeof *manifest->readers);
  manifest->readers[manifest->reader_count++] = reader;
  return TEGULA_OK;
}

tegula_status tegula__manifest_add_late(tegula__manifest *manifest, tegula__late *late,
                                        tegula_error *err) {
  if (!tegula__vector_reserve((void **)&manifest->lates, &manifest->late_capacity,
                              manifest->late_count + 1, sizeof *manifest->lates))
    return tegula__out_of_memory(err,
                                 (manifest->late_count + 1) * (int64_t)sizeof *manifest->lates);
  late->number = manifest->late_count;
  manifest->lates[manifest->late_count++] = late;
  return TEGULA_OK;
}

void tegula__grid_free(tegula__grid *grid) {
  if (grid == NULL) return;
  free(grid->filters);
  free(grid->coordinates);
  free(grid->chunks);
  free(grid);
}

void tegula__reader_free(tegula__reader *reader) {
  if (reader == NULL) return;
  if (reader->release != NULL) reader->release(reader->state);
  free(reader->name);
  free(reader->why);
  free(reader);
}

/* ---- text ---- */

tegula__texts *tegula__texts_new(int64_t count) {
  tegula__texts *texts = calloc(1, sizeof *texts + (size_t)count * sizeof *texts->places);
  if (texts != NULL) texts->count = count;
  return texts;
}

bool tegula__texts_valid(const tegula__texts *texts, uint32_t item_size) {
  for (int64_t i = 0; i < texts->count; i++) {
    const tegula__text_place *place = &texts->places[i];
    int64_t reach, end;
    if (place->offset < 0 || place->count < 1 || place->stride < 0 || place->size < 1 ||
        (place->padding != '0' && place->padding != ' ') ||
        !tegula__mul(place->count - 1, place->stride, &reach) ||
        !tegula__add(place->offset, reach, &end) || !tegula__add(end, place->size, &end) ||
        end > item_size)
      return false;
  }
  return true;
}

/* ---- strides ---- */

bool tegula__strides_distinct(int32_t ndim, uint32_t item_size, const int64_t *lo,
                              const int64_t *hi, const int64_t *strides) {
  bool taken[TEGULA_MAX_DIMS] = {false}, positive = true;
  int64_t inside = item_size, more; /* bytes up to the end of the axes that were looked at */
  for (int32_t k = 0; k < ndim; k++) positive = positive && strides[k] > 0;
  for (int32_t k = 0; k < ndim; k++) RETURN_IF(hi[k] == lo[k], positive);
  for (;;) { /* from the smallest stride on, each steps over all that lies inside it */
    int32_t next = -1;
    for (int32_t k = 0; k < ndim; k++)
      if (hi[k] - lo[k] > 1 && !taken[k] && (next < 0 || strides[k] < strides[next])) next = k;
    RETURN_IF(next < 0 || !positive, positive);
    RETURN_IF(strides[next] < inside, false);
    /* beyond any file */
    RETURN_IF(!tegula__mul(hi[next] - lo[next] - 1, strides[next], &more) ||
                  !tegula__add(inside, more, &inside),
              true);
    taken[next] = true;
  }
}

/* ---- chunks ---- */

int64_t tegula__grid_entry_from(const tegula__grid *grid, int64_t slot) {
  int64_t low = 0, high = grid->count;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (grid->coordinates[middle] < (uint64_t)slot)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

const tegula__chunk *tegula__grid_find(const tegula__grid *grid, int64_t slot) {
  int64_t entry = slot;
  if (grid->coordinates != NULL) {
    entry = tegula__grid_entry_from(grid, slot);
    RETURN_IF(entry == grid->count || grid->coordinates[entry] != (uint64_t)slot, NULL);
  }
  return grid->chunks[entry].length != 0 ? &grid->chunks[entry] : NULL;
}

void tegula__part_chunks(const tegula__part *part, int32_t ndim, int64_t *lo, int64_t *hi) {
  for (int32_t k = 0; k < ndim; k++) {
    lo[k] = tegula__part_number(part, k, part->lo[k]);
    hi[k] = part->hi[k] == part->lo[k] ? lo[k] : tegula__part_number(part, k, part->hi[k] - 1) + 1;
  }
}

void tegula__part_span(const tegula__part *part, int32_t k, int64_t number, int64_t *lo,
                       int64_t *hi) {
  int64_t step = tegula__part_step(part, k), chunk = part->chunk[k];
  if (step > chunk) {
    *lo = part->lo[k] + number;
    *hi = *lo + 1;
    return;
  }
  int64_t first = number * chunk, before = tegula__max(0, first - part->start[k]);
  *lo = part->lo[k] + tegula__ceil_div(before, step);
  int64_t rest = chunk - (tegula__part_element(part, k, *lo) - first);
  *hi = *lo + tegula__min(tegula__ceil_div(rest, step), part->hi[k] - *lo);
}

/* The chunk of the stored array that has this number in the part. */
static int64_t stored_chunk(const tegula__part *part, int32_t k, int64_t number) {
  int64_t step = tegula__part_step(part, k);
  return step <= part->chunk[k] ? number : (part->start[k] + number * step) / part->chunk[k];
}

bool tegula__part_number_of(const tegula__part *part, int32_t k, int64_t chunk, int64_t *number) {
  int64_t step = tegula__part_step(part, k);
  *number = chunk;
  if (step <= part->chunk[k]) return true;
  int64_t before = tegula__max(0, chunk * part->chunk[k] - part->start[k]);
  *number = tegula__ceil_div(before, step);
  return *number < part->hi[k] - part->lo[k] && stored_chunk(part, k, *number) == chunk;
}

int64_t tegula__part_chunk(const tegula__part *part, int32_t ndim, const int64_t *at, int64_t *lo,
                           int64_t *hi, tegula__part *out) {
  int64_t slot = part->slot_base, offset = part->offset;
  for (int32_t k = 0; k < ndim; k++) {
    int64_t chunk = stored_chunk(part, k, at[k]);
    tegula__part_span(part, k, at[k], &lo[k], &hi[k]);
    /* elements of the chunk in front of the part's first */
    int64_t skipped = tegula__part_element(part, k, lo[k]) - chunk * part->chunk[k];
    offset += skipped * (part->strides[k] / tegula__part_step(part, k));
    slot += chunk * part->slot_strides[k];
  }
  *out = (tegula__part){.kind = TEGULA__PART_DENSE,
                        .order = part->order,
                        .file = part->grid != NULL ? part->grid->file : TEGULA__NO_FILE,
                        .offset = offset,
                        .lo = lo,
                        .hi = hi,
                        .strides = part->strides};
  return slot;
}

bool tegula__part_bare(const tegula__part *part, int32_t ndim, const int64_t *first,
                       const int64_t *last) {
  const tegula__grid *grid = part->grid;
  int64_t low = part->slot_base, high = part->slot_base;
  RETURN_IF(grid == NULL || grid->coordinates == NULL, false);
  for (int32_t k = 0; k < ndim; k++) {
    low += stored_chunk(part, k, first[k]) * part->slot_strides[k];
    high += stored_chunk(part, k, last[k] - 1) * part->slot_strides[k];
  }
  int64_t entry = tegula__grid_entry_from(grid, low);
  return entry == grid->count || grid->coordinates[entry] > (uint64_t)high;
}
