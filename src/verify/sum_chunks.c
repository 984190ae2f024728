/* Chunks that are hashed for the content while their bytes are at hand, so that they are read once.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A task of the walk through the files keeps the stored bytes of the chunks that it passes. When
 * there are some, they are decoded, all workers that have nothing else to do helping, and what they
 * hold is dealt out to the blocks of the content hash; a block that is whole is hashed and let go.
 * Only so many blocks may be open: where chunks come in an order that would need more, nothing more
 * is taken, and what is not hashed here is read through the engine (sum_content.c), as are chunks
 * that do not decode: that says what is wrong with them. */
#include <stdlib.h>
#include <string.h>

#include "codec/codec.h"
#include "verify/summing.h"

enum { BUCKETS = 1024 };

#define LARGEST_CHUNK TEGULA__SUM_BLOCK
#define ENOUGH ((int64_t)4 << 20) /* stored bytes that are decoded together */

/* A block of the content hash of which something is there. */
typedef struct open_block {
  struct open_block *next; /* in its bucket */
  int64_t index, filled;
  char data[];
} open_block;

struct tegula__assembly {
  tegula__summing *s;
  pthread_mutex_t lock; /* of what follows */
  open_block *buckets[BUCKETS];
  int64_t open, most;
  tegula__hash128 sum;
  uint8_t *done; /* a bit for each block */
  _Atomic bool full;
};

/* Chunks of a task whose bytes wait to be decoded. */
typedef struct kept_chunk {
  const tegula__chunk_sum *chunk;
  int64_t at; /* in `bytes` */
} kept_chunk;

struct tegula__kept {
  tegula__assembly *assembly;
  char *bytes;
  int64_t used, capacity;
  kept_chunk *chunks;
  int64_t count, room;
  bool taking; /* the chunk that is passed now */
};

/* ---- which parts ---- */

/* Bytes of the content from the first element of a chunk to its last; 0: they are one run. */
static int64_t span_of(const tegula__manifest *manifest, const tegula__part *part) {
  int64_t span = 0, row = manifest->dtype.item_size;
  bool one = true;
  for (int32_t k = manifest->ndim - 1; k >= 0; k--) {
    int64_t length = tegula__min(part->chunk[k], part->hi[k] - part->lo[k]);
    one = one && (length == 1 || span + manifest->dtype.item_size == row);
    span += (length - 1) * row; /* within the bytes of the array: no overflow */
    row *= manifest->shape[k];
  }
  return one ? 0 : span;
}

static int64_t budget_of(const tegula__summing *s) {
  return tegula__staging_budget(s->context->engine.staging);
}

/* True where the part's elements are all that a decoded chunk holds, byte by byte. Those of a
 * field, or of every second row, are not. */
static bool fills_chunks(const tegula__manifest *manifest, const tegula__part *part) {
  int64_t bytes = manifest->dtype.item_size;
  for (int32_t k = 0; k < manifest->ndim; k++)
    if (!tegula__mul(bytes, part->chunk[k], &bytes)) return false;
  return part->step == NULL && part->texts == NULL && bytes == part->grid->chunk_bytes;
}

/* Each worker may be in the middle of one chunk's span, and each task at the end of another. */
static bool is_wanted(const tegula__assembly *a, const tegula__part *part) {
  const tegula__manifest *manifest = &a->s->dataset->manifest;
  int64_t threads = tegula__pool_threads(a->s->context->engine.pool),
          least = 2 * a->s->content_block, ndim = manifest->ndim;
  if (ndim == 0 || !fills_chunks(manifest, part) ||
      (part->hi[ndim - 1] - part->lo[ndim - 1] > 1 &&
       part->strides[ndim - 1] != manifest->dtype.item_size))
    return false;
  return tegula__max(least, span_of(manifest, part)) <= budget_of(a->s) / (2 * threads + 1);
}

tegula__assembly *tegula__assembly_create(tegula__summing *s) {
  tegula__assembly *a = calloc(1, sizeof *a);
  if (a == NULL) return NULL;
  a->s = s;
  a->most = budget_of(s) / s->content_block;
  a->done = calloc((size_t)(tegula__ceil_div(s->content_bytes, s->content_block) / 8 + 1), 1);
  pthread_mutex_init(&a->lock, NULL);
  if (a->done != NULL) return a;
  tegula__assembly_destroy(a);
  return NULL;
}

static void drop_open(tegula__assembly *a) {
  for (int i = 0; i < BUCKETS; i++)
    for (open_block *block = a->buckets[i], *next; block != NULL; block = next) {
      next = block->next;
      free(block);
    }
  memset(a->buckets, 0, sizeof a->buckets);
}

void tegula__assembly_destroy(tegula__assembly *a) {
  if (a == NULL) return;
  drop_open(a);
  pthread_mutex_destroy(&a->lock);
  free(a->done);
  free(a);
}

bool tegula__assembly_end(tegula__assembly *a) {
  tegula__summing *s = a->s;
  int64_t blocks = tegula__ceil_div(s->content_bytes, s->content_block);
  drop_open(a);
  tegula__hash_xor(&s->content, a->sum);
  for (int64_t i = 0, end; i < blocks; i = end) {
    bool done = (a->done[i / 8] >> i % 8 & 1) != 0;
    for (end = i + 1; end < blocks && ((a->done[end / 8] >> end % 8 & 1) != 0) == done;) end++;
    if (!done) continue;
    if (!tegula__vector_reserve((void **)&s->runs, &s->run_capacity, s->run_count + 1,
                                sizeof *s->runs))
      return false;
    s->runs[s->run_count++] = (tegula__sum_run){.first = i, .last = end};
  }
  return true;
}

/* ---- blocks ---- */

static int64_t bytes_of(const tegula__summing *s, int64_t index) {
  return tegula__min(s->content_block, s->content_bytes - index * s->content_block);
}

/* With the lock: the place of the block in its bucket; NULL: it cannot be had. */
static open_block **find_open(tegula__assembly *a, int64_t index) {
  open_block **place = &a->buckets[index % BUCKETS];
  while (*place != NULL && (*place)->index != index) place = &(*place)->next;
  if (*place != NULL) return place;
  *place = a->open < a->most ? malloc(sizeof **place + (size_t)bytes_of(a->s, index)) : NULL;
  if (*place == NULL) return NULL;
  **place = (open_block){.index = index};
  a->open++;
  return place;
}

static void hash_whole(tegula__assembly *a, char *data, int64_t index) {
  const tegula__summing *s = a->s;
  tegula_dtype dtype = s->dataset->manifest.dtype;
  int64_t bytes = bytes_of(s, index);
  if (dtype.order == '>') dtype.order = '<'; /* as it is by now */
  tegula__hash_canonical(s->context->engine.kernels, dtype, data, bytes / dtype.item_size);
  tegula__hash128 sum = tegula__hash_block(data, (size_t)bytes, index);
  pthread_mutex_lock(&a->lock);
  tegula__hash_xor(&a->sum, sum);
  a->done[index / 8] |= (uint8_t)(1 << index % 8);
  pthread_mutex_unlock(&a->lock);
  atomic_fetch_add(&a->s->unpacked, bytes);
}

/* `size` bytes of the block, from `skip` on. Nobody else has any of these. */
static bool fill_block(tegula__assembly *a, int64_t index, int64_t skip, char *data, int64_t size) {
  if (size == bytes_of(a->s, index)) {
    hash_whole(a, data, index);
    return true;
  }
  pthread_mutex_lock(&a->lock);
  open_block **place = find_open(a, index), *block = place != NULL ? *place : NULL;
  pthread_mutex_unlock(&a->lock);
  if (block == NULL) return false;
  memcpy(block->data + skip, data, (size_t)size); /* the block stays until all of it is there */
  pthread_mutex_lock(&a->lock);
  block->filled += size;
  bool whole = block->filled == bytes_of(a->s, index);
  if (whole) {
    place = find_open(a, index);
    *place = block->next;
    a->open--;
  }
  pthread_mutex_unlock(&a->lock);
  if (!whole) return true;
  hash_whole(a, block->data, index);
  free(block);
  return true;
}

/* Bytes of the content from `at` on. */
static bool deal_run(tegula__assembly *a, int64_t at, char *data, int64_t size) {
  int64_t block = a->s->content_block;
  for (int64_t part; size > 0; at += part, data += part, size -= part) {
    part = tegula__min(size, block - at % block);
    RETURN_IF(!fill_block(a, at / block, at % block, data, part), false);
  }
  return true;
}

/* All that the part has of a chunk: runs along the axes that are dense in the chunk and in the
 * array. */
static bool deal_out(tegula__assembly *a, const tegula__part *piece, char *data) {
  const tegula__manifest *manifest = &a->s->dataset->manifest;
  int32_t last = manifest->ndim - 1;
  int64_t rows[TEGULA_MAX_DIMS], at[TEGULA_MAX_DIMS], run = manifest->dtype.item_size;
  tegula__dense_strides(manifest->shape, manifest->ndim, manifest->dtype.item_size, 'C', rows);
  while (last >= 0 && (piece->hi[last] - piece->lo[last] == 1 ||
                       (rows[last] == run && piece->strides[last] == run))) {
    run *= piece->hi[last] - piece->lo[last];
    last--;
  }
  for (int32_t k = 0; k < manifest->ndim; k++) at[k] = piece->lo[k];
  for (;;) {
    int64_t to = 0, from = piece->offset;
    for (int32_t k = 0; k < manifest->ndim; k++) {
      to += at[k] * rows[k];
      from += (at[k] - piece->lo[k]) * piece->strides[k];
    }
    RETURN_IF(!deal_run(a, to, data + from, run), false);
    int32_t k = last;
    for (; k >= 0; k--) {
      if (++at[k] < piece->hi[k]) break;
      at[k] = piece->lo[k];
    }
    RETURN_IF(k < 0, true);
  }
}

/* ---- chunks ---- */

typedef struct decoding {
  tegula__kept *kept;
  int64_t groups;
} decoding;

static void decode_chunk(tegula__kept *kept, const kept_chunk *k, tegula__decoder *decoder,
                         char *scratch, size_t room) {
  tegula__assembly *a = kept->assembly;
  const tegula__manifest *manifest = &a->s->dataset->manifest;
  const tegula__part *part = k->chunk->part;
  const tegula__grid *grid = part->grid;
  int64_t number[TEGULA_MAX_DIMS], lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS];
  const int64_t *first = a->s->chunk_vectors + k->chunk->at;
  for (int32_t i = 0; i < manifest->ndim; i++) number[i] = tegula__part_number(part, i, first[i]);
  tegula__part piece;
  const tegula__chunk *entry =
      tegula__grid_find(grid, tegula__part_chunk(part, manifest->ndim, number, lo, hi, &piece));
  if (entry == NULL || (int64_t)entry->offset != k->chunk->offset ||
      entry->length != k->chunk->length)
    return;
  tegula__passage passage = {.in = kept->bytes + k->at,
                             .in_size = entry->length,
                             .scratch = scratch,
                             .scratch_size = room,
                             .size = (size_t)grid->chunk_bytes};
  tegula__decoded decoded;
  tegula_error unused; /* it is decoded again, by who says it */
  if (tegula__decode_with(decoder, grid->filters, grid->filter_count, entry->mask, &passage,
                          &decoded, &unused) != TEGULA_OK)
    return;
  char *data = (char *)(uintptr_t)decoded.data;
  uint32_t swap = part->order == '>' ? tegula__dtype_swap_size(manifest->dtype) : 1;
  if (swap > 1) tegula__swap_groups(a->s->context->engine.kernels, data, data, passage.size, swap);
  if (!deal_out(a, &piece, data)) atomic_store(&a->full, true);
}

static void decode_group(void *state, int32_t worker, int64_t group) {
  (void)worker;
  const decoding *d = state;
  const tegula__engine *engine = &d->kept->assembly->s->context->engine;
  tegula__decoder *decoder = tegula__decoder_create(engine->kernels);
  if (decoder == NULL) return;
  for (int64_t i = d->kept->count * group / d->groups; i < d->kept->count * (group + 1) / d->groups;
       i++) {
    const kept_chunk *k = &d->kept->chunks[i];
    const tegula__grid *grid = k->chunk->part->grid;
    size_t room = grid->filter_count > 0 ? tegula__chain_room(grid->chunk_bytes) : 0;
    int64_t own = tegula__chain_own(grid->filters, grid->filter_count, grid->chunk_bytes, 0);
    tegula__block block;
    if (room > INT64_MAX ||
        tegula__staging_lend(engine->staging, (int64_t)room, own, &block, NULL) != TEGULA_OK)
      continue;
    decode_chunk(d->kept, k, decoder, block.data, room);
    tegula__staging_return(engine->staging, &block, own);
  }
  tegula__decoder_destroy(decoder);
}

bool tegula__kept_wants(const tegula__kept *kept, const tegula__chunk_sum *chunk) {
  return kept != NULL && chunk->part != NULL && chunk->length <= LARGEST_CHUNK &&
         !atomic_load(&kept->assembly->full) && is_wanted(kept->assembly, chunk->part);
}

void tegula__kept_flush(tegula__kept *kept) {
  tegula__pool *pool = kept->assembly->s->context->engine.pool;
  decoding d = {.kept = kept,
                .groups = tegula__min(kept->count, 4 * (int64_t)tegula__pool_threads(pool))};
  tegula__pool_run(pool, d.groups, decode_group, &d);
  kept->used = kept->count = 0;
}

/* What is not kept for lack of memory is read again. */
void tegula__kept_add(tegula__kept *kept, const tegula__chunk_sum *chunk, int64_t done,
                      const char *data, int64_t size) {
  if (done == 0) {
    if (kept->used >= ENOUGH) tegula__kept_flush(kept);
    kept->taking = tegula__vector_reserve((void **)&kept->bytes, &kept->capacity,
                                          kept->used + chunk->length, 1) &&
                   tegula__vector_reserve((void **)&kept->chunks, &kept->room, kept->count + 1,
                                          sizeof *kept->chunks);
  }
  if (!kept->taking) return;
  memcpy(kept->bytes + kept->used + done, data, (size_t)size);
  if (done + size < chunk->length) return;
  kept->chunks[kept->count++] = (kept_chunk){.chunk = chunk, .at = kept->used};
  kept->used += chunk->length;
}

tegula__kept *tegula__kept_create(tegula__assembly *assembly) {
  tegula__kept *kept = assembly != NULL ? calloc(1, sizeof *kept) : NULL;
  if (kept != NULL) kept->assembly = assembly;
  return kept;
}

void tegula__kept_destroy(tegula__kept *kept) {
  if (kept == NULL) return;
  free(kept->bytes);
  free(kept->chunks);
  free(kept);
}
