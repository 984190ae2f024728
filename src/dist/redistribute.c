/* Pieces of chunks on their way between ranks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dist/redistribute.h"

#include <stdlib.h>
#include <string.h>

#define MESSAGE ((int64_t)1 << 20) /* bytes, unless a single item has more */

/* What of a chunk lies in a tile. `whole`: at its owner, the number among the tiles that are put
 * together. */
typedef struct piece {
  int32_t distance; /* the owner's number less that of the rank that has it, around the circle */
  int64_t order;    /* of pieces between the same two ranks: the same on both */
  int64_t chunk, tile, whole;
} piece;

typedef struct pieces {
  piece *items;
  int64_t count, capacity;
} pieces;

struct tegula__exchange {
  const tegula__deal *deal;
  tegula_comm *comm;
  const tegula__kernels *kernels;
  tegula_dtype dtype;
  const tegula__tile **mine; /* by the number in the tiling; NULL: another rank's */
  pieces going, coming;
  tegula__tile *tiles; /* put together */
  int64_t *vectors;
  int64_t count, capacity;
  tegula__block whole;
  char *out, *in;  /* messages */
  int64_t message; /* room of each */
};

tegula_status tegula__exchange_create(const tegula__deal *deal, tegula_comm *comm,
                                      const tegula__kernels *kernels, tegula_dtype dtype,
                                      const tegula__tile *tiles, const int64_t *numbers,
                                      int64_t count, tegula__exchange **out, tegula_error *err) {
  tegula__exchange *x = calloc(1, sizeof *x);
  *out = x;
  if (x == NULL) return tegula__out_of_memory(err, sizeof *x);
  *x = (tegula__exchange){.deal = deal,
                          .comm = comm,
                          .kernels = kernels,
                          .dtype = dtype,
                          .message = tegula__max(MESSAGE, dtype.item_size)};
  if (x->message > (int64_t)1 << 30)
    return tegula__fail(err, TEGULA_LIMIT_EXCEEDED, NULL, -1,
                        "items of %u bytes are too long to be sent to another rank",
                        dtype.item_size);
  x->mine = calloc((size_t)tegula__max(1, deal->everyone.count), sizeof(const tegula__tile *));
  if (x->mine == NULL)
    return tegula__out_of_memory(err, deal->everyone.count * (int64_t)sizeof(const tegula__tile *));
  for (int64_t i = 0; i < count; i++) x->mine[numbers[i]] = &tiles[i];
  return TEGULA_OK;
}

void tegula__exchange_destroy(tegula__exchange *x) {
  if (x == NULL) return;
  free((void *)x->mine);
  free(x->going.items);
  free(x->coming.items);
  free(x->tiles);
  free(x->vectors);
  tegula__block_free(&x->whole);
  free(x->out);
  free(x->in);
  free(x);
}

/* ---- what goes where ---- */

static tegula_status add_piece(pieces *to, const piece *item, tegula_error *err) {
  if (!tegula__vector_reserve((void **)&to->items, &to->capacity, to->count + 1, sizeof *to->items))
    return tegula__out_of_memory(err, to->count * (int64_t)sizeof *to->items);
  to->items[to->count++] = *item;
  return TEGULA_OK;
}

/* The pieces of a shared chunk that go from here, or come here. */
static tegula_status note_pieces(tegula__exchange *x, int64_t chunk, int64_t *order,
                                 tegula_error *err) {
  const tegula__deal *d = x->deal;
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], piece_lo[TEGULA_MAX_DIMS],
      piece_hi[TEGULA_MAX_DIMS], first, last;
  int32_t owner = tegula__deal_owner(d, chunk), rank = x->comm->rank;
  tegula__deal_box(d, chunk, lo, hi, NULL);
  tegula__targets_find(&d->everyone, lo, hi, &first, &last);
  for (int64_t i = first; i < last; i++) {
    int64_t tile = d->everyone.sorted[i];
    int32_t from = d->tile_owners[tile];
    if ((from != rank && owner != rank) ||
        !tegula__box_intersect(d->manifest->ndim, lo, hi, d->tiles[tile].lo, d->tiles[tile].hi,
                               piece_lo, piece_hi))
      continue;
    piece item = {.distance = (owner - from + d->ranks) % d->ranks,
                  .order = (*order)++,
                  .chunk = chunk,
                  .tile = tile,
                  .whole = x->count};
    if (owner == rank) FORWARD(add_piece(&x->coming, &item, err));
    if (owner != rank) FORWARD(add_piece(&x->going, &item, err));
  }
  return TEGULA_OK;
}

static int compare_pieces(const void *one, const void *two) {
  const piece *a = one, *b = two;
  if (a->distance != b->distance) return a->distance < b->distance ? -1 : 1;
  return a->order < b->order ? -1 : a->order > b->order;
}

static void sort_pieces(pieces *p) {
  if (p->count > 1) qsort(p->items, (size_t)p->count, sizeof *p->items, compare_pieces);
}

/* Places for the chunks that are put together here. */
static tegula_status lay_out(tegula__exchange *x, int64_t bytes, tegula_error *err) {
  int32_t ndim = x->deal->manifest->ndim;
  if (bytes > (int64_t)x->whole.mapped) {
    tegula__block_free(&x->whole);
    FORWARD(tegula__block_create(bytes, &x->whole, err));
  }
  char *at = x->whole.data;
  for (int64_t i = 0; i < x->count; i++) {
    int64_t *lo = x->vectors + i * 3 * ndim, *hi = lo + ndim, *strides = hi + ndim,
            extents[TEGULA_MAX_DIMS] = {0};
    for (int32_t k = 0; k < ndim; k++) extents[k] = hi[k] - lo[k];
    tegula__dense_strides(extents, ndim, x->dtype.item_size, 'C', strides);
    x->tiles[i] =
        (tegula__tile){.lo = lo, .hi = hi, .strides = strides, .data = at, .order = x->dtype.order};
    at += tegula__box_count(ndim, lo, hi) * x->dtype.item_size;
  }
  return TEGULA_OK;
}

static tegula_status reserve(tegula__exchange *x, int64_t count, tegula_error *err) {
  int64_t axes = tegula__max(1, x->deal->manifest->ndim);
  if (x->out == NULL) x->out = malloc((size_t)x->message);
  if (x->in == NULL) x->in = malloc((size_t)x->message);
  if (x->out == NULL || x->in == NULL) return tegula__out_of_memory(err, 2 * x->message);
  if (count <= x->capacity) return TEGULA_OK;
  free(x->tiles);
  free(x->vectors);
  x->capacity = 0;
  x->tiles = tegula__realloc_array(NULL, count, sizeof *x->tiles);
  x->vectors = tegula__realloc_array(NULL, count, (size_t)(3 * axes) * sizeof *x->vectors);
  if (x->tiles == NULL || x->vectors == NULL)
    return tegula__out_of_memory(err, count * (int64_t)sizeof *x->tiles);
  x->capacity = count;
  return TEGULA_OK;
}

tegula_status tegula__exchange_prepare(tegula__exchange *x, int64_t round, tegula_error *err) {
  const tegula__deal *d = x->deal;
  int32_t ndim = d->manifest->ndim;
  int64_t bytes = 0, order = 0, own = 0, shared = 0;
  x->going.count = x->coming.count = x->count = 0;
  for (int64_t i = d->starts[round]; i < d->starts[round + 1]; i++) {
    shared += tegula__deal_shared(d, d->order[i]);
    own +=
        tegula__deal_shared(d, d->order[i]) && tegula__deal_owner(d, d->order[i]) == x->comm->rank;
  }
  if (shared == 0) return TEGULA_OK;
  FORWARD(reserve(x, own, err));
  for (int64_t i = d->starts[round]; i < d->starts[round + 1]; i++) {
    int64_t chunk = d->order[i];
    if (!tegula__deal_shared(d, chunk)) continue;
    FORWARD(note_pieces(x, chunk, &order, err));
    if (tegula__deal_owner(d, chunk) != x->comm->rank) continue;
    int64_t *lo = x->vectors + x->count++ * 3 * ndim;
    tegula__deal_box(d, chunk, lo, lo + ndim, NULL);
    bytes += tegula__box_count(ndim, lo, lo + ndim) * x->dtype.item_size;
  }
  sort_pieces(&x->going);
  sort_pieces(&x->coming);
  return lay_out(x, bytes, err);
}

/* ---- pieces in messages ---- */

/* Where a stream of pieces is: in piece `at`, of which a slab is taken after the other: rows `row`
 * up to `row + rows` of axis `axis` at the indices `index` of the axes before it. */
typedef struct stream {
  const pieces *pieces;
  int64_t at, end;
  bool inside; /* the piece has been begun */
  int32_t axis;
  int64_t rows;
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS]; /* of the piece */
  int64_t index[TEGULA_MAX_DIMS];
} stream;

static stream stream_of(const pieces *p, int64_t *next, int32_t distance) {
  stream s = {.pieces = p, .at = *next, .end = *next};
  while (s.end < p->count && p->items[s.end].distance == distance) s.end++;
  *next = s.end;
  return s;
}

static void enter_piece(const tegula__exchange *x, stream *s) {
  const piece *p = &s->pieces->items[s->at];
  int32_t ndim = x->deal->manifest->ndim;
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], bytes = x->dtype.item_size;
  const tegula__tile *tile = &x->deal->tiles[p->tile];
  tegula__deal_box(x->deal, p->chunk, lo, hi, NULL);
  tegula__box_intersect(ndim, lo, hi, tile->lo, tile->hi, s->lo, s->hi);
  memcpy(s->index, s->lo, sizeof s->index);
  s->inside = true;
  s->axis = ndim;
  while (s->axis > 0 && bytes * (s->hi[s->axis - 1] - s->lo[s->axis - 1]) <= x->message) {
    s->axis--;
    bytes *= s->hi[s->axis] - s->lo[s->axis];
  }
  if (s->axis > 0) s->rows = tegula__max(1, x->message / bytes); /* of axis - 1 */
}

/* The next slab, as a box; its bytes. The stream stays where it is. */
static int64_t look(const tegula__exchange *x, stream *s, int64_t *lo, int64_t *hi) {
  int32_t ndim = x->deal->manifest->ndim;
  if (!s->inside) enter_piece(x, s);
  for (int32_t k = 0; k < ndim; k++) {
    lo[k] = s->index[k];
    hi[k] = k >= s->axis       ? s->hi[k]
            : k == s->axis - 1 ? tegula__min(s->hi[k], s->index[k] + s->rows)
                               : s->index[k] + 1;
  }
  return tegula__box_count(ndim, lo, hi) * x->dtype.item_size;
}

static void step(stream *s) {
  for (int32_t k = s->axis - 1; k >= 0; k--) {
    s->index[k] += k == s->axis - 1 ? s->rows : 1;
    if (s->index[k] < s->hi[k]) return;
    s->index[k] = s->lo[k];
  }
  s->inside = false;
  s->at++;
}

/* Copies between a tile and dense bytes in native byte order. */
static void copy(const tegula__exchange *x, const tegula__tile *tile, const int64_t *lo,
                 const int64_t *hi, char *bytes, bool to_tile) {
  int32_t ndim = x->deal->manifest->ndim;
  int64_t extents[TEGULA_MAX_DIMS] = {0}, strides[TEGULA_MAX_DIMS];
  for (int32_t k = 0; k < ndim; k++) extents[k] = hi[k] - lo[k];
  tegula__dense_strides(extents, ndim, x->dtype.item_size, 'C', strides);
  char *memory = tegula__tile_address(tile, ndim, lo);
  uint32_t swap = tile->order != x->dtype.order ? tegula__dtype_swap_size(x->dtype) : 1;
  if (to_tile)
    tegula__copy_strided(x->kernels, memory, tile->strides, bytes, strides, extents, ndim,
                         x->dtype.item_size, swap);
  else
    tegula__copy_strided(x->kernels, bytes, strides, memory, tile->strides, extents, ndim,
                         x->dtype.item_size, swap);
}

/* Bytes of the next message; 0: there is none. Packs it into `out`, or unpacks it from `in`, or
 * only counts where both are NULL. */
static int64_t message(const tegula__exchange *x, stream *s, char *out, char *in) {
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], used = 0;
  while (s->at < s->end) {
    int64_t bytes = look(x, s, lo, hi);
    if (used + bytes > x->message) break;
    const piece *p = &s->pieces->items[s->at];
    if (out != NULL) copy(x, x->mine[p->tile], lo, hi, out + used, false);
    if (in != NULL) copy(x, &x->tiles[p->whole], lo, hi, in + used, true);
    used += bytes;
    step(s);
  }
  return used;
}

/* ---- all of a round ---- */

/* From this rank's tiles. */
static void take_own(const tegula__exchange *x, stream *s) {
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS];
  int32_t ndim = x->deal->manifest->ndim;
  for (; s->at < s->end; s->at++) {
    const piece *p = &s->pieces->items[s->at];
    const tegula__tile *from = x->mine[p->tile], *to = &x->tiles[p->whole];
    int64_t extents[TEGULA_MAX_DIMS] = {0};
    tegula__box_intersect(ndim, to->lo, to->hi, from->lo, from->hi, lo, hi);
    for (int32_t k = 0; k < ndim; k++) extents[k] = hi[k] - lo[k];
    uint32_t swap = from->order != x->dtype.order ? tegula__dtype_swap_size(x->dtype) : 1;
    tegula__copy_strided(x->kernels, tegula__tile_address(to, ndim, lo), to->strides,
                         tegula__tile_address(from, ndim, lo), from->strides, extents, ndim,
                         x->dtype.item_size, swap);
  }
}

/* With the ranks so far ahead and so far behind. */
static tegula_status exchange(tegula__exchange *x, stream *going, stream *coming, int32_t distance,
                              tegula_error *err) {
  tegula_comm *comm = x->comm;
  int32_t to = (comm->rank + distance) % comm->size,
          from = (comm->rank - distance + comm->size) % comm->size;
  while (going->at < going->end || coming->at < coming->end) {
    stream counted = *coming;
    int64_t sent = message(x, going, x->out, NULL), received = message(x, &counted, NULL, NULL);
    FORWARD(tegula__comm_exchange(comm, x->out, sent, to, x->in, received, from, err));
    message(x, coming, NULL, x->in);
  }
  return TEGULA_OK;
}

tegula_status tegula__exchange_run(tegula__exchange *x, tegula_error *err) {
  int64_t next_going = 0, next_coming = 0;
  while (next_going < x->going.count || next_coming < x->coming.count) {
    int32_t distance = x->deal->ranks;
    if (next_going < x->going.count) distance = x->going.items[next_going].distance;
    if (next_coming < x->coming.count)
      distance = (int32_t)tegula__min(distance, x->coming.items[next_coming].distance);
    stream going = stream_of(&x->going, &next_going, distance),
           coming = stream_of(&x->coming, &next_coming, distance);
    if (distance == 0)
      take_own(x, &coming);
    else
      FORWARD(exchange(x, &going, &coming, distance, err));
  }
  return TEGULA_OK;
}

const tegula__tile *tegula__exchange_tiles(const tegula__exchange *x, int64_t *count) {
  *count = x->count;
  return x->tiles;
}
