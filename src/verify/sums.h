/* sums: digests of stored bytes: of files, of their blocks, of their chunks; and the JSON text that
 * keeps them (docs/checks.md).
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * All are XXH3-128 without a seed. A file is cut into blocks so that many threads can work on one
 * file; the sum of a file of one block is that of its bytes, of more than one that of its blocks'
 * digests (16 bytes each, big-endian) one after the other. */
#ifndef TEGULA_VERIFY_SUMS_H
#define TEGULA_VERIFY_SUMS_H

#include "verify/hash.h"

#define TEGULA__SUMS_KEY "tegula_sums"         /* the first key, whose value is the version: 1 */
#define TEGULA__SUMS_BYTES ((size_t)256 << 20) /* the longest text */
#define TEGULA__SUM_BLOCK ((int64_t)16 << 20)

/* ---- digests ---- */

typedef struct tegula__sum_state tegula__sum_state;
/* NULL: no memory. */
tegula__sum_state *tegula__sum_create(void);
void tegula__sum_destroy(tegula__sum_state *state);
void tegula__sum_reset(tegula__sum_state *state, int64_t seed);
void tegula__sum_update(tegula__sum_state *state, const void *data, size_t size);
tegula__hash128 tegula__sum_digest(const tegula__sum_state *state);
tegula__hash128 tegula__sum_of(const void *data, size_t size);
/* Of a file, from its blocks: at least one. False: no memory. */
bool tegula__sum_of_blocks(const tegula__hash128 *blocks, int64_t count, tegula__hash128 *out);

static inline bool tegula__sum_same(tegula__hash128 a, tegula__hash128 b) {
  return a.low == b.low && a.high == b.high;
}
/* 32 hexadecimal digits and a zero. */
#define TEGULA__SUM_TEXT 33
void tegula__sum_format(tegula__hash128 sum, char out[TEGULA__SUM_TEXT]);

/* Blocks of a file of so many bytes: one also when it is empty. */
static inline int64_t tegula__sum_blocks(int64_t size) {
  return size == 0 ? 1 : tegula__ceil_div(size, TEGULA__SUM_BLOCK);
}

/* ---- what is kept ---- */

typedef struct tegula__chunk_sum {
  int64_t file, offset, length;
  int64_t at;               /* of its first element: ndim numbers from here on in `vectors` */
  const tegula__part *part; /* that alone shows it, of the dataset it was listed from; or NULL */
  tegula__hash128 sum;
} tegula__chunk_sum;

typedef struct tegula__file_sums {
  char *path; /* owned */
  int64_t size;
  tegula__hash128 sum;
  int64_t first_block, first_chunk; /* in the lists below; blocks: tegula__sum_blocks(size) */
  int64_t chunk_count;
} tegula__file_sums;

typedef struct tegula__sums {
  char *format, *name; /* of the dataset; owned */
  tegula_dtype dtype;
  int32_t ndim;
  int64_t shape[TEGULA_MAX_DIMS];
  char content[TEGULA_HASH_TEXT]; /* empty: not kept */
  tegula__file_sums *files;
  int64_t file_count;
  tegula__hash128 *blocks; /* of all files, in their order */
  int64_t block_count, block_capacity;
  tegula__chunk_sum *chunks; /* by file and offset */
  int64_t chunk_count, chunk_capacity;
  int64_t *vectors;
  int64_t vector_count, vector_capacity;
} tegula__sums;

void tegula__sums_free(tegula__sums *sums);
/* Names of files relative to `folder` where they can be; NULL: absolute. The text (to be freed)
 * ends with a digest of itself. */
tegula_status tegula__sums_write(const tegula__sums *sums, const char *folder, char **out,
                                 tegula_error *err);
/* `path` is the file of the text: names are relative to its folder. Nothing in the text is
 * believed; nothing is opened. */
tegula_status tegula__sums_read(const void *text, size_t size, const char *path, tegula__sums *out,
                                tegula_error *err);

#endif
