/* lz4: HDF5 filter 32004. Decoded size (8 bytes) and size of a decoded block (4), then for each
 * block its stored size (4) and LZ4 data, or the bytes themselves where the two sizes are equal.
 * All numbers big-endian.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "codec/codec_priv.h"

/* Every block may be stored as it is; encoders take blocks of params[0] bytes, by default 1 GiB. */
static int64_t growth(const tegula__filter *filter, int64_t size) {
  int64_t block = filter->param_count >= 1 && filter->params[0] > 0 ? filter->params[0] : 1 << 30,
          marks;
  return tegula__mul(tegula__ceil_div(size, block), 4, &marks) &&
                 tegula__add(marks, size / 128 + (64 << 10), &marks)
             ? marks
             : INT64_MAX;
}

#ifdef TEGULA_HAVE_LZ4
#include <limits.h>
#include <lz4.h>

enum { HEADER = 12, MARK = 4 };

/* Block of `size` bytes from `at`, which moves on. */
static bool undo_block(const tegula__stage *stage, size_t *at, char *out, size_t size) {
  if (stage->in_size - *at < MARK) return false;
  size_t stored = tegula__read_be32(stage->in + *at);
  *at += MARK;
  if (stored > stage->in_size - *at) return false;
  const char *in = stage->in + *at;
  *at += stored;
  if (stored == size) {
    memcpy(out, in, size);
    return true;
  }
  return stored <= INT_MAX && size <= INT_MAX &&
         LZ4_decompress_safe(in, out, (int)stored, (int)size) == (int)size;
}

static tegula_status undo(const tegula__stage *stage, size_t *size, tegula_error *err) {
  const tegula__codec *codec = &tegula__codec_lz4;
  if (stage->in_size < HEADER)
    return tegula__codec_corrupt(err, codec, "%zu stored bytes, expected a header of 12",
                                 stage->in_size);
  uint64_t total = tegula__read_be64(stage->in), block = tegula__read_be32(stage->in + 8);
  if (total > stage->room) return tegula__codec_too_large(err, codec, stage, total);
  if (block == 0 && total > 0) return tegula__codec_corrupt(err, codec, "blocks of 0 bytes");
  size_t at = HEADER;
  for (size_t done = 0; done < total; done += block) {
    block = block < total - done ? block : total - done;
    if (!undo_block(stage, &at, stage->out + done, (size_t)block))
      return tegula__codec_corrupt(err, codec, "no valid block of %zu bytes for bytes from %zu on",
                                   (size_t)block, done);
  }
  *size = (size_t)total;
  return TEGULA_OK;
}

static uint32_t block_of(const tegula__filter *filter) {
  uint32_t block = tegula__filter_param(filter, 0, TEGULA__LZ4_BLOCK);
  return block > 0 ? block : TEGULA__LZ4_BLOCK;
}

static tegula_status check_encode(const tegula__filter *filter, tegula_error *err) {
  return tegula__codec_range(err, &tegula__codec_lz4, "block of bytes", block_of(filter), 1,
                             TEGULA__LZ4_MOST);
}

static int64_t most_encoded(const tegula__filter *filter, int64_t size) {
  int64_t marks;
  return tegula__mul(tegula__ceil_div(size, block_of(filter)), MARK, &marks) &&
                 tegula__add(marks, HEADER, &marks) && tegula__add(marks, size, &size)
             ? size
             : INT64_MAX;
}

static tegula_status apply(const tegula__encode_stage *stage, size_t *size, tegula_error *err) {
  size_t block =
      block_of(stage->filter) < stage->in_size ? block_of(stage->filter) : stage->in_size;
  char *to = stage->out + HEADER;
  (void)err;
  tegula__write_be64(stage->out, stage->in_size);
  tegula__write_be32(stage->out + 8, (uint32_t)block);
  for (size_t done = 0, n; done < stage->in_size; done += n) {
    n = block < stage->in_size - done ? block : stage->in_size - done;
    /* 0: as long as it was, or longer */
    int stored = LZ4_compress_default(stage->in + done, to + MARK, (int)n, (int)n - 1);
    if (stored <= 0) memcpy(to + MARK, stage->in + done, n);
    if (stored <= 0) stored = (int)n;
    tegula__write_be32(to, (uint32_t)stored);
    to += MARK + stored;
  }
  *size = (size_t)(to - stage->out);
  return TEGULA_OK;
}

const tegula__codec tegula__codec_lz4 = {.name = "lz4",
                                         .library = "liblz4",
                                         .available = true,
                                         .growth = growth,
                                         .undo = undo,
                                         .check_encode = check_encode,
                                         .most_encoded = most_encoded,
                                         .apply = apply};
#else
const tegula__codec tegula__codec_lz4 = {.name = "lz4", .library = "liblz4", .growth = growth};
#endif
