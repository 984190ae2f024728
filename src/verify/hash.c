/* hash: the content hash "tegula1", the same for an array whatever its layout, byte order, tiling,
 * ranks and threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Elements in C order are cut into blocks of 65536 bytes (one element where it is larger). Each
 * block's canonical bytes (little-endian, bool 0 or 1) are hashed with XXH3 and the block's number
 * as seed; the XOR of all block hashes, the dtype and the shape make the digest. */
#include <stdio.h>
#include <string.h>

#ifdef TEGULA_HAVE_XXHASH_DISPATCH
/* gives the names of xxhash.h to functions that take the processor's widest registers */
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#include "verify/hash.h"

enum { BLOCK_BYTES = 65536, BLOCKS_PER_ITEM = 32, TEXT_BYTES = 128 + TEGULA_MAX_DIMS * 21 };

int64_t tegula__hash_block_elements(tegula_dtype dtype) {
  return tegula__max(1, BLOCK_BYTES / (int64_t)dtype.item_size);
}

static bool is_swapped(tegula_dtype dtype) {
  return dtype.order == '>' && tegula__dtype_swap_size(dtype) > 1;
}

bool tegula__hash_is_canonical(tegula_dtype dtype) {
  return dtype.kind != 'b' && !is_swapped(dtype);
}

/* Canonical form of `bytes` bytes; dst == src is allowed. */
static void canonical_copy(const tegula__kernels *kernels, tegula_dtype dtype, char *dst,
                           const char *src, size_t bytes) {
  if (dtype.kind == 'b') {
    for (size_t i = 0; i < bytes; i++) dst[i] = src[i] != 0;
    return;
  }
  uint32_t group = is_swapped(dtype) ? tegula__dtype_swap_size(dtype) : 1;
  if (group > 1 || dst != src) tegula__swap_groups(kernels, dst, src, bytes, group);
}

void tegula__hash_canonical(const tegula__kernels *kernels, tegula_dtype dtype, void *data,
                            int64_t count) {
  canonical_copy(kernels, dtype, data, data, (size_t)count * dtype.item_size);
}

tegula__hash128 tegula__hash_block(const void *canonical, size_t bytes, int64_t index) {
  XXH128_hash_t hash = XXH3_128bits_withSeed(canonical, bytes, (XXH64_hash_t)index);
  return (tegula__hash128){.low = hash.low64, .high = hash.high64};
}

/* ---- the digest ---- */

/* "tegula-content-1 <f4 1000,100" and a zero byte; returns the size with it. */
static size_t digest_head(tegula_dtype dtype, const int64_t *shape, int32_t ndim,
                          char out[TEXT_BYTES]) {
  char name[TEGULA_DTYPE_TEXT] = "bfloat16";
  if (dtype.order == '>') dtype.order = '<';
  if (dtype.kind != 'E') tegula_dtype_format(dtype, name);
  size_t used = (size_t)snprintf(out, TEXT_BYTES, "tegula-content-1 %s ", name);
  for (int32_t k = 0; k < ndim; k++)
    used +=
        (size_t)snprintf(out + used, TEXT_BYTES - used, k ? ",%lld" : "%lld", (long long)shape[k]);
  return used + 1;
}

static void put_big_endian(char *out, uint64_t value) {
  for (int k = 0; k < 8; k++) out[k] = (char)(value >> (56 - 8 * k));
}

void tegula__hash_text(tegula_dtype dtype, const int64_t *shape, int32_t ndim,
                       tegula__hash128 blocks, char out[TEGULA_HASH_TEXT]) {
  char bytes[TEXT_BYTES + 16];
  size_t head = digest_head(dtype, shape, ndim, bytes);
  put_big_endian(bytes + head, blocks.high);
  put_big_endian(bytes + head + 8, blocks.low);
  XXH128_hash_t digest = XXH3_128bits(bytes, head + 16);
  snprintf(out, TEGULA_HASH_TEXT, "tegula1:%016llx%016llx", (unsigned long long)digest.high64,
           (unsigned long long)digest.low64);
}

/* ---- a run of blocks ---- */

typedef struct run_state {
  const tegula__kernels *kernels;
  tegula_dtype dtype;
  const char *data;
  int64_t first_block, blocks; /* number of the first; how many */
  int64_t count;               /* elements */
  int64_t elements;            /* of a block */
  tegula__hash128 sum;
  bool out_of_memory;
} run_state;

/* An element of more than a block that has to be swapped: hashed piece by piece. */
static bool hash_large(const run_state *state, const char *data, size_t bytes, int64_t index,
                       tegula__hash128 *out) {
  char piece[4096];
  XXH3_state_t *stream = XXH3_createState();
  RETURN_IF(stream == NULL, false);
  XXH3_128bits_reset_withSeed(stream, (XXH64_hash_t)index);
  for (size_t at = 0; at < bytes; at += sizeof piece) {
    size_t some = bytes - at < sizeof piece ? bytes - at : sizeof piece;
    canonical_copy(state->kernels, state->dtype, piece, data + at, some);
    XXH3_128bits_update(stream, piece, some);
  }
  XXH128_hash_t hash = XXH3_128bits_digest(stream);
  XXH3_freeState(stream);
  *out = (tegula__hash128){.low = hash.low64, .high = hash.high64};
  return true;
}

static bool hash_one(const run_state *state, int64_t block, char *scratch, tegula__hash128 *out) {
  int64_t from = block * state->elements;
  size_t bytes = (size_t)tegula__min(state->elements, state->count - from) * state->dtype.item_size;
  const char *data = state->data + from * (int64_t)state->dtype.item_size;
  int64_t index = state->first_block + block;
  if (!tegula__hash_is_canonical(state->dtype)) {
    if (bytes > BLOCK_BYTES) return hash_large(state, data, bytes, index, out);
    canonical_copy(state->kernels, state->dtype, scratch, data, bytes);
    data = scratch;
  }
  *out = tegula__hash_block(data, bytes, index);
  return true;
}

static void hash_blocks(void *opaque, int32_t worker, int64_t item) {
  (void)worker;
  run_state *state = opaque;
  char scratch[BLOCK_BYTES];
  tegula__hash128 sum = {0, 0}, one;
  int64_t end = tegula__min(state->blocks, (item + 1) * BLOCKS_PER_ITEM);
  for (int64_t block = item * BLOCKS_PER_ITEM; block < end; block++) {
    if (!hash_one(state, block, scratch, &one)) {
      __atomic_store_n(&state->out_of_memory, true, __ATOMIC_RELAXED);
      return;
    }
    tegula__hash_xor(&sum, one);
  }
  __atomic_fetch_xor(&state->sum.low, sum.low, __ATOMIC_RELAXED);
  __atomic_fetch_xor(&state->sum.high, sum.high, __ATOMIC_RELAXED);
}

tegula_status tegula__hash_run(tegula__pool *pool, const tegula__kernels *kernels,
                               tegula_dtype dtype, const void *data, int64_t first, int64_t count,
                               tegula__hash128 *into, tegula_error *err) {
  if (count == 0) return TEGULA_OK;
  int64_t elements = tegula__hash_block_elements(dtype);
  run_state state = {.kernels = kernels,
                     .dtype = dtype,
                     .data = data,
                     .first_block = first / elements,
                     .blocks = tegula__ceil_div(count, elements),
                     .count = count,
                     .elements = elements};
  tegula__pool_run(pool, tegula__ceil_div(state.blocks, BLOCKS_PER_ITEM), hash_blocks, &state);
  if (state.out_of_memory)
    return tegula__fail(err, TEGULA_OUT_OF_MEMORY, NULL, -1, "could not get memory for hashing");
  tegula__hash_xor(into, state.sum);
  return TEGULA_OK;
}
