/* bitshuffle: HDF5 filter 32008, alone or with LZ4 or zstd inside.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Items are taken in blocks; in a block of n items (a multiple of 8) all first bits lie together,
 * then all second bits, ... The last block has the multiple of 8 that is left, and up to 7 items
 * behind it stay as they are. With a compressor a header precedes: decoded size (8 bytes), bytes of
 * a block (4); and before each block its stored size (4). All numbers big-endian. */
#include "codec/codec_priv.h"

#ifdef TEGULA_HAVE_LZ4
#include <limits.h>
#include <lz4.h>
#endif
#ifdef TEGULA_HAVE_ZSTD
#include <zstd.h>
#endif

enum { ALONE = 0, WITH_LZ4 = 2, WITH_ZSTD = 3 }; /* params[2] */
enum { HEADER = 12, MARK = 4, GROUP = 8 };
/* bytes that are between bits and items at a time: they stay in the innermost cache */
enum { PLANES = 16 << 10 };

static uint32_t param(const tegula__filter *filter, int index) {
  return filter->param_count > index ? filter->params[index] : 0;
}

/* As the encoder chooses it. */
static uint64_t default_block(uint64_t item) {
  uint64_t block = 8192 / item / GROUP * GROUP;
  return block > 128 ? block : 128;
}

#if !defined(TEGULA_HAVE_LZ4) || !defined(TEGULA_HAVE_ZSTD)
static tegula_status lacks(tegula_error *err, const char *inner, const char *library) {
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                                   "bitshuffle with %s: this build has no %s", inner, library),
                      "build tegula where %s is installed", library);
}
#endif

static tegula_status check(const tegula__filter *filter, tegula_error *err) {
  const tegula__codec *codec = &tegula__codec_bitshuffle;
  uint32_t with = param(filter, 2);
  if (param(filter, 0) < 1)
    return tegula__codec_corrupt(err, codec, "an item size of 0, expected 1 or more");
  if (param(filter, 1) % GROUP != 0)
    return tegula__codec_corrupt(err, codec, "blocks of %u items, expected a multiple of 8",
                                 param(filter, 1));
  if (with != ALONE && with != WITH_LZ4 && with != WITH_ZSTD)
    return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                        "bitshuffle: compressor %u, expected 0, 2 (lz4) or 3 (zstd)", with);
#ifndef TEGULA_HAVE_LZ4
  if (with == WITH_LZ4) return lacks(err, "lz4", "liblz4");
#endif
#ifndef TEGULA_HAVE_ZSTD
  if (with == WITH_ZSTD) return lacks(err, "zstd", "libzstd");
#endif
  return TEGULA_OK;
}

/* Blocks that do not get smaller take LZ4's (or zstd's) own marks and ours. */
static int64_t growth(const tegula__filter *filter, int64_t size) {
  uint64_t item = param(filter, 0) > 0 ? param(filter, 0) : 1;
  uint64_t block = param(filter, 1) > 0 ? param(filter, 1) : default_block(item);
  int64_t blocks = (int64_t)((uint64_t)size / item / block + 1), marks;
  if (param(filter, 2) == ALONE) return 0;
  return tegula__mul(blocks, 32, &marks) && tegula__add(marks, size / 128 + (64 << 10), &marks)
             ? marks
             : INT64_MAX;
}

/* `count` items (a multiple of 8): bits become planes of bytes, planes become items, some columns
 * at a time. */
static void join_block(const tegula__kernels *kernels, char *out, const char *in, size_t count,
                       size_t item, char *planes) {
  size_t row = count / GROUP, at_once = PLANES / GROUP / item * GROUP;
  if (item == 1) {
    kernels->join_bits(out, in, row, row);
    return;
  }
  if (at_once > 256) at_once = at_once / 256 * 256; /* whole registers */
  if (at_once < GROUP) at_once = GROUP;
  for (size_t first = 0; first < count; first += at_once) {
    size_t n = count - first < at_once ? count - first : at_once;
    for (size_t k = 0; k < item; k++)
      kernels->join_bits(planes + k * n, in + k * GROUP * row + first / GROUP, row, n / GROUP);
    tegula__unshuffle(kernels, out + first * item, planes, n * item, item);
  }
}

static size_t planes_size(size_t item) { return item > PLANES / GROUP ? item * GROUP : PLANES; }

/* One compressed block into exactly `size` bytes. */
static bool unpack(const tegula__stage *stage, const char *in, size_t stored, char *out,
                   size_t size) {
#ifdef TEGULA_HAVE_ZSTD
  tegula__decoder *decoder = stage->decoder;
  if (stage->filter->params[2] == WITH_ZSTD)
    return ZSTD_decompressDCtx(decoder->zstd, out, size, in, stored) == size;
#endif
#ifdef TEGULA_HAVE_LZ4
  if (stage->filter->params[2] == WITH_LZ4)
    return stored <= INT_MAX && size <= INT_MAX &&
           LZ4_decompress_safe(in, out, (int)stored, (int)size) == (int)size;
#endif
  (void)stage, (void)in, (void)stored, (void)out, (void)size;
  return false;
}

static tegula_status prepare(tegula__decoder *decoder, uint32_t with, tegula_error *err) {
#ifdef TEGULA_HAVE_ZSTD
  if (with == WITH_ZSTD && decoder->zstd == NULL) decoder->zstd = ZSTD_createDCtx();
  if (with == WITH_ZSTD && decoder->zstd == NULL) return tegula__out_of_memory(err, 128 << 10);
#endif
  (void)decoder, (void)with, (void)err;
  return TEGULA_OK;
}

/* What undo walks over. */
typedef struct walk {
  const char *in;
  size_t left; /* bytes of `in` */
  char *out;
  char *planes, *packed; /* in the decoder's inner memory */
  size_t item, block;    /* bytes, items */
} walk;

/* The next block of `count` items. */
static bool undo_block(const tegula__stage *stage, walk *w, size_t count) {
  size_t size = count * w->item, stored = size;
  const char *bits = w->in;
  if (w->packed) {
    if (w->left < MARK) return false;
    stored = tegula__read_be32(w->in);
    w->in += MARK;
    w->left -= MARK;
    if (stored > w->left || !unpack(stage, w->in, stored, w->packed, size)) return false;
    bits = w->packed;
  } else if (w->left < size) {
    return false;
  }
  join_block(stage->decoder->kernels, w->out, bits, count, w->item, w->planes);
  w->in += stored;
  w->left -= stored;
  w->out += size;
  return true;
}

static tegula_status undo_blocks(const tegula__stage *stage, walk *w, size_t total,
                                 tegula_error *err) {
  size_t count = total / w->item, whole = count / GROUP * GROUP;
  for (size_t done = 0, n; done < whole; done += n) {
    n = w->block < whole - done ? w->block : whole - done;
    if (!undo_block(stage, w, n))
      return tegula__codec_corrupt(err, &tegula__codec_bitshuffle,
                                   "no valid block of %zu bytes for bytes from %zu on", n * w->item,
                                   done * w->item);
  }
  size_t rest = (count - whole) * w->item;
  if (w->left < rest)
    return tegula__codec_corrupt(err, &tegula__codec_bitshuffle,
                                 "%zu stored bytes for the last items, expected %zu", w->left,
                                 rest);
  memcpy(w->out, w->in, rest);
  return TEGULA_OK;
}

/* Reads the header, if there is one. */
static tegula_status begin(const tegula__stage *stage, walk *w, uint64_t *total,
                           tegula_error *err) {
  const tegula__codec *codec = &tegula__codec_bitshuffle;
  uint64_t block = param(stage->filter, 1);
  *w = (walk){
      .in = stage->in, .left = stage->in_size, .out = stage->out, .item = stage->filter->params[0]};
  *total = stage->in_size;
  if (param(stage->filter, 2) != ALONE) {
    if (w->left < HEADER)
      return tegula__codec_corrupt(err, codec, "%zu stored bytes, expected a header of 12",
                                   w->left);
    *total = tegula__read_be64(w->in);
    block = tegula__read_be32(w->in + 8) / w->item;
    w->in += HEADER;
    w->left -= HEADER;
    if (block % GROUP != 0)
      return tegula__codec_corrupt(err, codec, "blocks of %zu items, expected a multiple of 8",
                                   (size_t)block);
  }
  if (*total > stage->room) return tegula__codec_too_large(err, codec, stage, *total);
  if (*total % w->item != 0)
    return tegula__codec_corrupt(err, codec, "%zu bytes, expected whole items of %zu",
                                 (size_t)*total, w->item);
  if (block == 0) block = default_block(w->item);
  w->block = (size_t)(block < *total / w->item ? block : *total / w->item);
  if (w->block < GROUP) w->block = GROUP;
  return TEGULA_OK;
}

static tegula_status undo(const tegula__stage *stage, size_t *size, tegula_error *err) {
  tegula__scratch *inner = &stage->decoder->inner;
  uint64_t total;
  walk w;
  FORWARD(begin(stage, &w, &total, err));
  bool packed = param(stage->filter, 2) != ALONE;
  if (total / w.item >= GROUP) {
    size_t planes = planes_size(w.item);
    FORWARD(prepare(stage->decoder, param(stage->filter, 2), err));
    FORWARD(tegula__scratch_reserve(inner, planes + (packed ? w.block * w.item : 0), err));
    w.planes = inner->data;
    if (packed) w.packed = inner->data + planes;
  }
  FORWARD(undo_blocks(stage, &w, (size_t)total, err));
  *size = (size_t)total;
  return TEGULA_OK;
}

/* ---- encoding ---- */

static size_t block_of(const tegula__filter *filter) {
  return param(filter, 1) > 0 ? param(filter, 1) : (size_t)default_block(param(filter, 0));
}

static tegula_status check_encode(const tegula__filter *filter, tegula_error *err) {
  const tegula__codec *codec = &tegula__codec_bitshuffle;
  uint64_t block = (uint64_t)block_of(filter) * param(filter, 0);
  if (param(filter, 2) != ALONE && block > TEGULA__LZ4_MOST)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "bitshuffle: blocks of %zu items of %u bytes, expected at most %d bytes",
                        block_of(filter), param(filter, 0), TEGULA__LZ4_MOST);
#ifdef TEGULA_HAVE_ZSTD
  if (param(filter, 2) == WITH_ZSTD)
    return tegula__codec_range(err, codec, "level",
                               tegula__filter_param(filter, 3, TEGULA__ZSTD_LEVEL), 1,
                               (uint32_t)ZSTD_maxCLevel());
#endif
  (void)codec;
  return TEGULA_OK;
}

/* The most that a block of `size` bytes can become. */
static size_t packed_most(uint32_t with, size_t size) {
#ifdef TEGULA_HAVE_LZ4
  if (with == WITH_LZ4) return (size_t)LZ4_compressBound((int)size);
#endif
#ifdef TEGULA_HAVE_ZSTD
  if (with == WITH_ZSTD) return ZSTD_compressBound(size);
#endif
  (void)with;
  return size;
}

static int64_t most_encoded(const tegula__filter *filter, int64_t size) {
  if (param(filter, 2) == ALONE) return size;
  int64_t block = (int64_t)block_of(filter) * param(filter, 0), most;
  int64_t blocks = size / block + 1,
          each = (int64_t)packed_most(param(filter, 2), (size_t)tegula__min(block, size)) + MARK;
  /* the last block may be short, and then needs no more than a whole one */
  return tegula__mul(blocks, each, &most) &&
                 tegula__add(most, HEADER + tegula__min((int64_t)param(filter, 0) * GROUP, size),
                             &most)
             ? most
             : INT64_MAX;
}

/* `count` items (a multiple of 8): items become planes of bytes, planes become bits, some columns
 * at a time. */
static void split_block(const tegula__kernels *kernels, char *out, const char *in, size_t count,
                        size_t item, char *planes) {
  size_t row = count / GROUP, at_once = PLANES / GROUP / item * GROUP;
  if (item == 1) {
    kernels->forward->split_bits(out, row, in, row);
    return;
  }
  if (at_once > 256) at_once = at_once / 256 * 256;
  if (at_once < GROUP) at_once = GROUP;
  for (size_t first = 0; first < count; first += at_once) {
    size_t n = count - first < at_once ? count - first : at_once;
    tegula__shuffle(kernels, planes, in + first * item, n * item, item);
    for (size_t k = 0; k < item; k++)
      kernels->forward->split_bits(out + k * GROUP * row + first / GROUP, row, planes + k * n,
                                   n / GROUP);
  }
}

/* Bytes that came; 0: the library refused. */
static size_t pack(const tegula__encode_stage *stage, const char *in, size_t size, char *out,
                   size_t room) {
#ifdef TEGULA_HAVE_ZSTD
  if (stage->filter->params[2] == WITH_ZSTD) {
    size_t got = ZSTD_compressCCtx(stage->encoder->zstd, out, room, in, size,
                                   (int)tegula__filter_param(stage->filter, 3, TEGULA__ZSTD_LEVEL));
    return ZSTD_isError(got) ? 0 : got;
  }
#endif
#ifdef TEGULA_HAVE_LZ4
  if (stage->filter->params[2] == WITH_LZ4) {
    int got = LZ4_compress_default(in, out, (int)size, room < INT_MAX ? (int)room : INT_MAX);
    return got > 0 ? (size_t)got : 0;
  }
#endif
  (void)stage, (void)in, (void)size, (void)out, (void)room;
  return 0;
}

static tegula_status prepare_encoder(tegula__encoder *encoder, uint32_t with, tegula_error *err) {
#ifdef TEGULA_HAVE_ZSTD
  if (with == WITH_ZSTD && encoder->zstd == NULL) encoder->zstd = ZSTD_createCCtx();
  if (with == WITH_ZSTD && encoder->zstd == NULL) return tegula__out_of_memory(err, 128 << 10);
#endif
  (void)encoder, (void)with, (void)err;
  return TEGULA_OK;
}

/* One block to `to`, which moves on; `bits` is where the bits of a block lie before they are
 * compressed, NULL: they are not. */
static bool apply_block(const tegula__encode_stage *stage, const char *from, size_t count,
                        char *planes, char *bits, char **to) {
  size_t item = stage->filter->params[0], size = count * item, stored = size;
  split_block(stage->encoder->kernels, bits ? bits : *to, from, count, item, planes);
  if (bits) {
    stored = pack(stage, bits, size, *to + MARK, stage->room - (size_t)(*to + MARK - stage->out));
    if (stored == 0) return false;
    tegula__write_be32(*to, (uint32_t)stored);
    *to += MARK;
  }
  *to += stored;
  return true;
}

static tegula_status apply(const tegula__encode_stage *stage, size_t *size, tegula_error *err) {
  tegula__scratch *inner = &stage->encoder->inner;
  size_t item = stage->filter->params[0], count = stage->in_size / item,
         whole = count / GROUP * GROUP, block = block_of(stage->filter);
  bool packed = stage->filter->params[2] != ALONE;
  char *to = stage->out;
  *size = TEGULA__SKIPPED;
  if (stage->in_size % item != 0) return TEGULA_OK; /* as the filter: whole items only */
  if (packed) {
    tegula__write_be64(to, stage->in_size);
    tegula__write_be32(to + 8, (uint32_t)(block * item));
    to += HEADER;
  }
  if (whole > 0) {
    size_t largest = (block < whole ? block : whole) * item;
    FORWARD(prepare_encoder(stage->encoder, stage->filter->params[2], err));
    FORWARD(tegula__scratch_reserve(inner, planes_size(item) + (packed ? largest : 0), err));
  }
  for (size_t done = 0, n; done < whole; done += n) {
    n = block < whole - done ? block : whole - done;
    if (!apply_block(stage, stage->in + done * item, n, inner->data,
                     packed ? inner->data + planes_size(item) : NULL, &to))
      return tegula__codec_refused(err, &tegula__codec_bitshuffle, stage);
  }
  memcpy(to, stage->in + whole * item, (count - whole) * item);
  *size = (size_t)(to - stage->out) + (count - whole) * item;
  return TEGULA_OK;
}

const tegula__codec tegula__codec_bitshuffle = {.name = "bitshuffle",
                                                .available = true,
                                                .check = check,
                                                .growth = growth,
                                                .undo = undo,
                                                .check_encode = check_encode,
                                                .most_encoded = most_encoded,
                                                .apply = apply};
