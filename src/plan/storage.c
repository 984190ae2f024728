/* In which ways the bytes of a manifest are stored.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A folder may begin with a shard that is empty, has one row, or was written by another program. So
 * what is chosen for all parts follows the bytes in them, never the first part. A new way takes the
 * place of the lightest one and adds to its weight (the space-saving algorithm). So every way with
 * more than 1 / TEGULA__WAYS of all bytes is there in the end. */
#include <string.h>

#include "plan/plan.h"

static bool same_filters(const tegula__grid *a, const tegula__grid *b) {
  if (a == b) return true;
  bool same = a != NULL && b != NULL && a->filter_count == b->filter_count;
  for (int32_t i = 0; same && i < a->filter_count; i++) {
    const tegula__filter *p = &a->filters[i], *q = &b->filters[i];
    same = p->codec == q->codec && p->param_count == q->param_count &&
           memcmp(p->params, q->params, p->param_count * sizeof *p->params) == 0;
  }
  return same;
}

static bool same_order(const tegula__part *a, const tegula__part *b, int32_t ndim) {
  tegula__file_order p, q;
  tegula__file_order_of(a, ndim, a->lo, a->hi, &p);
  tegula__file_order_of(b, ndim, b->lo, b->hi, &q);
  return p.count == q.count && memcmp(p.axes, q.axes, (size_t)p.count * sizeof *p.axes) == 0;
}

static bool same_way(const tegula__part *a, const tegula__part *b, int32_t ndim) {
  if (a->kind != b->kind) return false;
  if (a->chunk == NULL) return same_order(a, b, ndim);
  return memcmp(a->chunk, b->chunk, (size_t)ndim * sizeof *a->chunk) == 0 &&
         same_filters(a->grid, b->grid);
}

static bool stop(void *state, const tegula__chunk *chunk, const int64_t *lo, const int64_t *hi) {
  (void)state, (void)chunk, (void)lo, (void)hi;
  return false;
}

/* Bytes of the part; 0 where nothing of it is stored, and where it may be read in any boxes. */
static double weight_of(const tegula__manifest *manifest, const tegula__part *part) {
  double item = manifest->dtype.item_size,
         bytes = item * (double)tegula__box_count(manifest->ndim, part->lo, part->hi);
  if (part->chunk == NULL) return part->kind == TEGULA__PART_DENSE ? bytes : 0;
  if (part->kind != TEGULA__PART_CHUNKED || part->grid == NULL || bytes == 0) return bytes;
  if (tegula__part_visit(part, manifest->ndim, stop, NULL)) return 0;
  double stored = (double)part->grid->count * (double)part->grid->chunk_bytes;
  return stored < bytes ? stored : bytes;
}

static tegula__way *place_for(tegula__storage *storage, const tegula__part *part, int32_t ndim) {
  tegula__way *lightest = &storage->ways[0];
  for (int32_t i = 0; i < storage->count; i++) {
    tegula__way *way = &storage->ways[i];
    if (same_way(way->part, part, ndim)) return way;
    if (way->bytes < lightest->bytes) lightest = way;
  }
  if (storage->count < TEGULA__WAYS) lightest = &storage->ways[storage->count++];
  lightest->largest = 0;
  return lightest;
}

void tegula__storage_of(const tegula__manifest *manifest, tegula__storage *out) {
  *out = (tegula__storage){0};
  for (int64_t i = 0; i < manifest->part_count; i++) {
    const tegula__part *part = &manifest->parts[i];
    double bytes = weight_of(manifest, part);
    if (bytes == 0) continue;
    tegula__way *way = place_for(out, part, manifest->ndim);
    if (bytes > way->largest) {
      way->part = part;
      way->largest = bytes;
    }
    way->bytes += bytes;
    out->bytes += bytes;
  }
}

const tegula__part *tegula__storage_in_chunks(const tegula__manifest *manifest) {
  tegula__storage storage;
  const tegula__way *best = NULL;
  tegula__storage_of(manifest, &storage);
  for (int32_t i = 0; i < storage.count; i++) {
    const tegula__way *way = &storage.ways[i];
    if (tegula__part_in_chunks(way->part) && (best == NULL || way->bytes > best->bytes)) best = way;
  }
  if (best != NULL) return best->part;
  for (int64_t i = 0; i < manifest->part_count; i++) /* of one in which nothing is stored */
    if (tegula__part_in_chunks(&manifest->parts[i])) return &manifest->parts[i];
  return NULL;
}
