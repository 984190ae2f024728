/* hash: what tells whether data in memory is right: the content hash, comparison and demonstration
 * values.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * All are defined on elements in C order of the whole array, so they do not depend on layout,
 * tiling or threads. */
#ifndef TEGULA_VERIFY_HASH_H
#define TEGULA_VERIFY_HASH_H

#include "base/base.h"
#include "base/pool.h"
#include "kernel/kernel.h"
#include "plan/plan.h"

/* ---- content hash "tegula1" ---- */

typedef struct tegula__hash128 {
  uint64_t low, high;
} tegula__hash128;

/* Elements in one block: max(1, 65536 / item_size). */
int64_t tegula__hash_block_elements(tegula_dtype dtype);
/* Changes `count` dense elements of byte order dtype.order in place to canonical form:
 * little-endian, bool 0 or 1. */
void tegula__hash_canonical(const tegula__kernels *kernels, tegula_dtype dtype, void *data,
                            int64_t count);
/* Is memory of this dtype canonical already for every value, so that it can be hashed where it
 * lies? (bool never is.) */
bool tegula__hash_is_canonical(tegula_dtype dtype);
/* Hash of block `index` whose canonical bytes are given. */
tegula__hash128 tegula__hash_block(const void *canonical, size_t bytes, int64_t index);
static inline void tegula__hash_xor(tegula__hash128 *into, tegula__hash128 value) {
  into->low ^= value.low;
  into->high ^= value.high;
}
/* The final text from the XOR of all block hashes. */
void tegula__hash_text(tegula_dtype dtype, const int64_t *shape, int32_t ndim,
                       tegula__hash128 blocks, char out[TEGULA_HASH_TEXT]);

/* XOR of the block hashes of a run of elements in C order that lie densely in memory: elements
 * [first, first + count), first a multiple of the block, count too or up to the array's end. Uses
 * the pool. Memory is not changed; OUT_OF_MEMORY possible for dtypes that need a canonical copy. */
tegula_status tegula__hash_run(tegula__pool *pool, const tegula__kernels *kernels,
                               tegula_dtype dtype, const void *data, int64_t first, int64_t count,
                               tegula__hash128 *into, tegula_error *err);

/* XOR of all block hashes of an array whose elements are spread over tiles that together cover it;
 * any strides and byte orders. */
tegula_status tegula__hash_tiles(tegula__pool *pool, const tegula__kernels *kernels,
                                 tegula_dtype dtype, const int64_t *shape, int32_t ndim,
                                 const tegula__targets *targets, tegula__hash128 *into,
                                 tegula_error *err);

/* The same in steps, for an array whose tiles belong to several ranks. A group is a range of whole
 * blocks, about 1 MiB: group g has the elements from g * group * block on. `memory` of a group is
 * dense, in C order. Calls on one struct are made by one thread. */
typedef struct tegula__hash_groups {
  const tegula__kernels *kernels;
  tegula_dtype dtype; /* native */
  const int64_t *shape;
  int32_t ndim;
  int64_t elements; /* of the array */
  int64_t block;    /* elements of a block */
  int64_t group;    /* blocks of a group */
  int64_t count;    /* groups */
  int64_t bytes;    /* of a group */
  int64_t *vectors; /* scratch */
  char *wanted;     /* by group: is it hashed by run? All are, at first */
} tegula__hash_groups;

/* `shape` is borrowed. Free it in any case. */
tegula_status tegula__hash_groups_create(const tegula__kernels *kernels, tegula_dtype dtype,
                                         const int64_t *shape, int32_t ndim,
                                         tegula__hash_groups *out, tegula_error *err);
void tegula__hash_groups_free(tegula__hash_groups *groups);
/* XOR of the block hashes of all groups that are wanted, whose elements lie in `targets`. */
tegula_status tegula__hash_groups_run(const tegula__hash_groups *groups, tegula__pool *pool,
                                      const tegula__targets *targets, tegula__hash128 *into,
                                      tegula_error *err);
/* Calls `each` with the number of every tile that has something of the group, for each piece. */
typedef void (*tegula__hash_tile_fn)(void *state, int64_t tile);
void tegula__hash_groups_visit(const tegula__hash_groups *groups, int64_t group,
                               const tegula__targets *targets, tegula__hash_tile_fn each,
                               void *state);
/* Copies what the tiles have of the group to where it stands in the group's memory. */
void tegula__hash_groups_gather(const tegula__hash_groups *groups, int64_t group,
                                const tegula__targets *targets, char *memory);
/* Copies what the tiles of `owner` have of it piece by piece, one behind the other, in native byte
 * order; returns the bytes, at most those of a group. `everyone` has the tiles of all ranks, of
 * which those of `owner` have memory here. */
int64_t tegula__hash_groups_take(const tegula__hash_groups *groups, int64_t group,
                                 const tegula__targets *everyone, const int32_t *owners,
                                 int32_t owner, char *part);
/* Puts what another rank has taken where it stands in the memory. Returns the bytes; `part` NULL:
 * only that. */
int64_t tegula__hash_groups_put(const tegula__hash_groups *groups, int64_t group,
                                const tegula__targets *everyone, const int32_t *owners,
                                int32_t owner, const char *part, char *memory);
/* Adds the block hashes of a group in memory, which is changed to canonical form. */
void tegula__hash_groups_sum(const tegula__hash_groups *groups, int64_t group, char *memory,
                             tegula__hash128 *into);

/* ---- comparison ---- */

/* Number of the first of `count` dense elements of native byte order that differs, -1 when none
 * does. Bytes in canonical form are compared; with `values` NaN equals NaN and -0 equals +0, each
 * part of a complex number by itself. Uses the pool. */
int64_t tegula__compare_run(tegula__pool *pool, tegula_dtype dtype, const void *a, const void *b,
                            int64_t count, bool values);
/* One element of native byte order as text: as numpy shows it where that is short, V as hexadecimal
 * digits; cut with "..." */
void tegula__element_format(tegula_dtype dtype, const void *element, char *out, size_t size);

/* ---- demonstration values ---- */

/* What tegula_demo_fill and tegula_demo_check promise; arguments are checked here. */
tegula_status tegula__demo_fill(tegula__pool *pool, const tegula__kernels *kernels,
                                const tegula_view *view, const int64_t *shape, tegula_values values,
                                uint64_t seed, tegula_error *err);
tegula_status tegula__demo_check(tegula__pool *pool, const tegula__kernels *kernels,
                                 const tegula_view *view, const int64_t *shape,
                                 tegula_values values, uint64_t seed, tegula_error *err);

#endif
