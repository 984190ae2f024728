/* Chunks dealt out to ranks and rounds.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dist/chunk_assignment.h"

#include <stdlib.h>

void tegula__deal_free(tegula__deal *d) {
  tegula__targets_free(&d->everyone);
  free(d->tiles);
  free(d->vectors);
  free(d->tile_owners);
  free(d->bases);
  free(d->owners);
  free(d->starts);
  free(d->order);
  *d = (tegula__deal){0};
}

/* ---- chunks ---- */

static int64_t chunks_of(const tegula__part *part, int32_t ndim) {
  int64_t first[TEGULA_MAX_DIMS], last[TEGULA_MAX_DIMS];
  tegula__part_chunks(part, ndim, first, last);
  return tegula__box_count(ndim, first, last);
}

void tegula__deal_chunk(const tegula__deal *d, int64_t chunk, int64_t *part, int64_t *number) {
  int64_t low = 0, high = d->manifest->part_count - 1;
  while (low < high) {
    int64_t middle = low + (high - low + 1) / 2;
    if (d->bases[middle] <= chunk)
      low = middle;
    else
      high = middle - 1;
  }
  *part = low;
  *number = chunk - d->bases[low];
}

void tegula__deal_box(const tegula__deal *d, int64_t chunk, int64_t *lo, int64_t *hi, int64_t *at) {
  int64_t index, number, first[TEGULA_MAX_DIMS], last[TEGULA_MAX_DIMS], indices[TEGULA_MAX_DIMS];
  int32_t ndim = d->manifest->ndim;
  tegula__part piece;
  tegula__deal_chunk(d, chunk, &index, &number);
  const tegula__part *part = &d->manifest->parts[index];
  if (at == NULL) at = indices;
  tegula__part_chunks(part, ndim, first, last);
  for (int32_t k = ndim - 1; k >= 0; k--) {
    at[k] = first[k] + number % (last[k] - first[k]);
    number /= last[k] - first[k];
  }
  tegula__part_chunk(part, ndim, at, lo, hi, &piece);
}

static tegula_status count_chunks(tegula__deal *d, tegula_error *err) {
  int64_t parts = d->manifest->part_count;
  d->bases = tegula__realloc_array(NULL, parts + 1, sizeof *d->bases);
  if (d->bases == NULL) return tegula__out_of_memory(err, parts * (int64_t)sizeof *d->bases);
  for (int64_t i = 0; i < parts; i++) {
    d->bases[i] = d->count;
    if (!tegula__add(d->count, chunks_of(&d->manifest->parts[i], d->manifest->ndim), &d->count))
      return tegula__out_of_memory(err, INT64_MAX);
  }
  d->owners = tegula__realloc_array(NULL, d->count, sizeof *d->owners);
  d->order = tegula__realloc_array(NULL, d->count, sizeof *d->order);
  return d->owners != NULL && d->order != NULL
             ? TEGULA_OK
             : tegula__out_of_memory(err, d->count * (int64_t)sizeof *d->order);
}

/* ---- owners ---- */

static tegula_status collect_tiles(tegula__deal *d, const tegula_tiling *tiling,
                                   tegula_error *err) {
  size_t axes = (size_t)tiling->ndim;
  d->tiles = tegula__realloc_array(NULL, tiling->count, sizeof *d->tiles);
  d->vectors = tegula__realloc_array(NULL, tiling->count, 2 * axes * sizeof *d->vectors + 1);
  d->tile_owners = tegula__realloc_array(NULL, tiling->count, sizeof *d->tile_owners);
  if (d->tiles == NULL || d->vectors == NULL || d->tile_owners == NULL)
    return tegula__out_of_memory(
        err, tiling->count * (int64_t)(sizeof *d->tiles + 2 * axes * sizeof *d->vectors));
  for (int64_t i = 0; i < tiling->count; i++) {
    int64_t *lo = d->vectors + (size_t)i * 2 * axes;
    tegula__tiling_box(tiling, i, lo, lo + axes);
    d->tiles[i] = (tegula__tile){.lo = lo, .hi = lo + axes};
    d->tile_owners[i] = tegula__tiling_owner(tiling, i);
  }
  return tegula__targets_create(tiling->ndim, d->tiles, tiling->count, &d->everyone, err);
}

/* Elements of a chunk by rank, for the ranks that have some. */
typedef struct shares {
  int64_t *elements; /* for each rank; zeros between two chunks */
  int32_t *ranks;    /* those that are not zero */
  int32_t count;
} shares;

/* Those that have at least half as much as the one with the most take turns. */
static int32_t choose(const shares *s, int64_t chunk) {
  int64_t most = 0, good = 0;
  for (int32_t i = 0; i < s->count; i++) most = tegula__max(most, s->elements[s->ranks[i]]);
  for (int32_t i = 0; i < s->count; i++) good += s->elements[s->ranks[i]] >= most - most / 2;
  int64_t turn = good > 0 ? chunk % good : 0;
  for (int32_t i = 0; i < s->count; i++)
    if (s->elements[s->ranks[i]] >= most - most / 2 && turn-- == 0) return s->ranks[i];
  return 0; /* nobody has any of it, which the rank that encodes it finds out */
}

static int32_t find_owner(const tegula__deal *d, shares *s, int64_t chunk) {
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], piece_lo[TEGULA_MAX_DIMS],
      piece_hi[TEGULA_MAX_DIMS], first, last;
  int32_t ndim = d->manifest->ndim;
  tegula__deal_box(d, chunk, lo, hi, NULL);
  tegula__targets_find(&d->everyone, lo, hi, &first, &last);
  s->count = 0;
  for (int64_t i = first; i < last; i++) {
    int64_t tile = d->everyone.sorted[i];
    int32_t rank = d->tile_owners[tile];
    if (!tegula__box_intersect(ndim, lo, hi, d->tiles[tile].lo, d->tiles[tile].hi, piece_lo,
                               piece_hi))
      continue;
    if (s->elements[rank] == 0) s->ranks[s->count++] = rank;
    s->elements[rank] += tegula__box_count(ndim, piece_lo, piece_hi);
  }
  int32_t owner = choose(s, chunk);
  for (int32_t i = 0; i < s->count; i++) s->elements[s->ranks[i]] = 0;
  return s->count > 1 ? ~owner : owner;
}

static tegula_status find_owners(tegula__deal *d, tegula_error *err) {
  shares s = {.elements = calloc((size_t)d->ranks, sizeof *s.elements),
              .ranks = calloc((size_t)d->ranks, sizeof *s.ranks)};
  tegula_status status = s.elements != NULL && s.ranks != NULL
                             ? TEGULA_OK
                             : tegula__out_of_memory(err, d->ranks * (int64_t)sizeof *s.elements);
  for (int64_t i = 0; status == TEGULA_OK && i < d->count; i++) d->owners[i] = find_owner(d, &s, i);
  free(s.elements);
  free(s.ranks);
  return status;
}

/* ---- rounds ---- */

/* Where each rank is. */
typedef struct place {
  int64_t round, bytes, chunks;
} place;

static int64_t cost_of(const tegula__deal *d, int64_t part, bool shared) {
  int64_t cost = tegula__rounds_bound(d->manifest, part);
  if (shared && !tegula__add(cost, d->manifest->parts[part].grid->chunk_bytes, &cost))
    return INT64_MAX;
  return cost;
}

static int64_t next_round(place *p, int64_t cost, const tegula__deal_limits *limits) {
  bool fits =
      cost <= limits->bytes - tegula__min(limits->bytes, p->bytes) || p->chunks < limits->least;
  if (!fits || p->chunks >= limits->most) *p = (place){.round = p->round + 1};
  if (!tegula__add(p->bytes, cost, &p->bytes)) p->bytes = INT64_MAX;
  p->chunks++;
  return p->round;
}

/* d->order has the round of each chunk for a while. */
static void find_rounds(tegula__deal *d, place *places, const tegula__deal_limits *limits) {
  for (int64_t part = 0; part < d->manifest->part_count; part++) {
    int64_t end = part + 1 < d->manifest->part_count ? d->bases[part + 1] : d->count;
    int64_t costs[2] = {cost_of(d, part, false), cost_of(d, part, true)};
    for (int64_t i = d->bases[part]; i < end; i++) {
      d->order[i] =
          next_round(&places[tegula__deal_owner(d, i)], costs[tegula__deal_shared(d, i)], limits);
      d->rounds = tegula__max(d->rounds, d->order[i] + 1);
    }
  }
}

/* Chunks sorted by round, in the order of the array within each. */
static tegula_status sort_rounds(tegula__deal *d, tegula_error *err) {
  int64_t *sorted = tegula__realloc_array(NULL, d->count, sizeof *sorted);
  d->starts = calloc((size_t)d->rounds + 2, sizeof *d->starts);
  if (sorted == NULL || d->starts == NULL) {
    free(sorted);
    return tegula__out_of_memory(err, (d->count + d->rounds) * (int64_t)sizeof *sorted);
  }
  for (int64_t i = 0; i < d->count; i++) d->starts[d->order[i] + 2]++;
  for (int64_t i = 2; i < d->rounds + 2; i++) d->starts[i] += d->starts[i - 1];
  for (int64_t i = 0; i < d->count; i++) sorted[d->starts[d->order[i] + 1]++] = i;
  free(d->order);
  d->order = sorted;
  return TEGULA_OK;
}

static tegula_status make_rounds(tegula__deal *d, const tegula__deal_limits *limits,
                                 tegula_error *err) {
  place *places = calloc((size_t)d->ranks, sizeof *places);
  if (places == NULL) return tegula__out_of_memory(err, d->ranks * (int64_t)sizeof *places);
  find_rounds(d, places, limits);
  free(places);
  return sort_rounds(d, err);
}

tegula_status tegula__deal_create(const tegula__manifest *manifest, const tegula_tiling *tiling,
                                  const tegula__deal_limits *limits, tegula__deal *out,
                                  tegula_error *err) {
  *out = (tegula__deal){.manifest = manifest, .ranks = tiling->ranks};
  FORWARD(count_chunks(out, err));
  FORWARD(collect_tiles(out, tiling, err));
  FORWARD(find_owners(out, err));
  return make_rounds(out, limits, err);
}

/* ---- windows ---- */

/* The chunks of the window, in their order, from d->order[*used] on. */
static void deal_window(tegula__deal *d, const tegula__windows *w, int32_t owner, int64_t *used) {
  const tegula__part *part = &d->manifest->parts[w->part];
  int64_t first[TEGULA_MAX_DIMS], last[TEGULA_MAX_DIMS], lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS],
      at[TEGULA_MAX_DIMS];
  int32_t ndim = d->manifest->ndim, k;
  tegula__part_chunks(part, ndim, first, last);
  for (k = 0; k < ndim; k++) {
    at[k] = lo[k] = (part->start[k] + w->lo[k] - part->lo[k]) / part->chunk[k];
    hi[k] = (part->start[k] + w->hi[k] - part->lo[k] - 1) / part->chunk[k] + 1;
  }
  do {
    int64_t number = 0;
    for (k = 0; k < ndim; k++) number = number * (last[k] - first[k]) + (at[k] - first[k]);
    d->owners[d->bases[w->part] + number] = owner;
    d->order[(*used)++] = d->bases[w->part] + number;
    for (k = ndim - 1; k >= 0 && ++at[k] == hi[k]; k--) at[k] = lo[k];
  } while (k >= 0);
}

tegula_status tegula__deal_windows(const tegula__windows *windows, int32_t ranks, tegula__deal *out,
                                   tegula_error *err) {
  tegula__windows w = *windows;
  int64_t count = 0, used = 0;
  *out = (tegula__deal){.manifest = windows->target, .ranks = ranks, .in_turn = true};
  FORWARD(count_chunks(out, err));
  while (tegula__windows_next(&w)) count++;
  out->rounds = tegula__ceil_div(count, ranks);
  out->starts = calloc((size_t)out->rounds + 1, sizeof *out->starts);
  if (out->starts == NULL)
    return tegula__out_of_memory(err, out->rounds * (int64_t)sizeof *out->starts);
  w = *windows;
  for (int64_t i = 0; tegula__windows_next(&w); i++) {
    if (i % ranks == 0) out->starts[i / ranks] = used;
    deal_window(out, &w, (int32_t)(i % ranks), &used);
  }
  out->starts[out->rounds] = used;
  return used == out->count ? TEGULA_OK
                            : tegula__fail(err, TEGULA_INTERNAL, NULL, -1,
                                           "the windows of a copy do not hold each chunk once");
}
