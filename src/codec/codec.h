/* codec: what stored chunks go through, in both directions. One file per codec, one table, one
 * chain.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Codecs work from memory to memory and know nothing of files. What they are given is untrusted: no
 * input makes them read or write outside of the two ranges, and the memory they take is bounded by
 * the decoded size that the caller states. All are thread safe on distinct decoders and
 * encoders.
 *
 * Begin reading at codec.c, the table, and chain.c, which undoes a chain; encode_chain.c applies
 * one, chain_text.c reads and writes it as text. The folder includes base and kernel. */
#ifndef TEGULA_CODEC_CODEC_H
#define TEGULA_CODEC_CODEC_H

#include "base/base.h"
#include "kernel/kernel.h"

/* "deflate", "shuffle", ...; "unknown". Static texts. */
const char *tegula__codec_name(uint16_t codec);
/* Names for all: entry i is codec i, NULL at the end. */
const char *const *tegula__codec_names(void);
/* Was this build given the library that the codec needs, and is it there? */
bool tegula__codec_available(uint16_t codec);

/* Can this chain be undone for chunks of `decoded_size` bytes: known codecs, parameters that make
 * sense? Called once, when a dataset is described; decode relies on it. The error has no path. */
tegula_status tegula__chain_check(const tegula__filter *filters, int32_t count,
                                  int64_t decoded_size, tegula_error *err);
/* The most bytes that the encoded form of a chunk can be worth reading: more is CORRUPT. At most 4
 * x decoded_size + 1 MiB; INT64_MAX where overflow. */
int64_t tegula__chain_bound(const tegula__filter *filters, int32_t count, int64_t decoded_size);

/* What one worker keeps from chunk to chunk: contexts of the libraries, and scratch memory where a
 * caller of tegula__decode_with gave none, or too little: see tegula__chain_own. */
typedef struct tegula__decoder tegula__decoder;
/* NULL: no memory. `kernels` is borrowed. */
tegula__decoder *tegula__decoder_create(const tegula__kernels *kernels);
void tegula__decoder_destroy(tegula__decoder *decoder);
/* Undoes the chain from last to first, but for the filters whose bit is set in `mask` (bit i:
 * filters[i] was skipped for this chunk), and puts exactly `out_size` bytes in `out`, which may be
 * the final place. A stream that does not decode, decodes to another size, or whose checksum fails
 * is CORRUPT; the message names the codec and what was expected and found, the error has no path.
 * On failure `out` is undefined. `in` and `out` do not overlap. With nothing to undo, in_size must
 * be out_size, and the bytes are copied. */
tegula_status tegula__decode(tegula__decoder *decoder, const tegula__filter *filters, int32_t count,
                             uint32_t mask, const void *in, size_t in_size, void *out,
                             size_t out_size, tegula_error *err);

/* Memory that a chunk passes through on its way. */
typedef struct tegula__passage {
  char *in; /* as stored; may be written over, once it is read */
  size_t in_size;
  char *scratch; /* or NULL */
  size_t scratch_size;
  void *out;   /* where the decoded chunk is wanted; NULL: it is taken from wherever it ends up */
  size_t size; /* of the decoded chunk */
  /* with `out` NULL, not 0: the chunk may be left as planes of the bytes of such items, as a
   * shuffle makes them */
  size_t item;
} tegula__passage;

/* Where a chunk ended up: in one of the memories of its passage, or in the decoder until its next
 * chunk. */
typedef struct tegula__decoded {
  const char *data;
  bool planes; /* still shuffled, in items of passage.item bytes, which divides the size */
} tegula__decoded;

/* Room for a decoded chunk and what its checksums add: with such scratch memory the usual chains
 * need nothing of the decoder. */
size_t tegula__chain_room(int64_t decoded_size);
/* Bytes that a decoder may take for a chunk of the chain besides that scratch memory: 0 for a
 * shuffle, a compressor and checksums in any order that ends (in decoding) with the shuffle of such
 * items; up to tegula__chain_bound and more where one compressor follows another. */
int64_t tegula__chain_own(const tegula__filter *filters, int32_t count, int64_t decoded_size,
                          size_t item);
/* As tegula__decode, with memory of the caller's. */
tegula_status tegula__decode_with(tegula__decoder *decoder, const tegula__filter *filters,
                                  int32_t count, uint32_t mask, const tegula__passage *passage,
                                  tegula__decoded *decoded, tegula_error *err);

/* ---- encoding ---- */

/* Can chunks of `size` bytes go through this chain: codecs that this build can encode, parameters
 * and sizes that they take? Called once for a shape of chunks; encode relies on it.
 * INVALID_ARGUMENT or UNSUPPORTED; the error has no path. */
tegula_status tegula__encode_check(const tegula__filter *filters, int32_t count, int64_t size,
                                   tegula_error *err);
/* The room that encode needs: no encoded chunk, and nothing between two stages, is longer.
 * INT64_MAX where overflow. */
int64_t tegula__encode_bound(const tegula__filter *filters, int32_t count, int64_t size);

/* What one worker keeps from chunk to chunk: contexts of the libraries; one scratch of
 * tegula__encode_bound where one stage follows another; one of a block (bitshuffle) or a table of
 * 64 KiB (lzf) within a stage. */
typedef struct tegula__encoder tegula__encoder;
/* NULL: no memory. `kernels` is borrowed. */
tegula__encoder *tegula__encoder_create(const tegula__kernels *kernels);
void tegula__encoder_destroy(tegula__encoder *encoder);
/* Takes `in` through the chain from first to last; *size bytes are then in `out`, which has room
 * for at least tegula__encode_bound, and bit i of *mask is set where filters[i] was skipped: its
 * output would not have been shorter than its input (deflate, lzf; the other compressors have a
 * form for such data), or its input was not made of whole items (bitshuffle behind a compressor).
 * `in` and `out` do not overlap; `in` is not changed. On failure `out` is undefined. */
tegula_status tegula__encode(tegula__encoder *encoder, const tegula__filter *filters, int32_t count,
                             const void *in, size_t in_size, void *out, size_t out_room,
                             size_t *size, uint32_t *mask, tegula_error *err);

/* ---- chains as text ---- */

/* "shuffle,deflate:4", in encoding order, to at most TEGULA__CHAIN_MAX filters; "" is no filter.
 * Names, arguments and defaults are those of docs/formats.md. Item sizes become `item_size`. Only
 * what this build can encode; INVALID_ARGUMENT or UNSUPPORTED, the error has no path. */
tegula_status tegula__chain_parse(const char *text, uint32_t item_size, tegula__filter *filters,
                                  int32_t *count, tegula_error *err);
/* The text that parse makes the same filters of, arguments left out where they are the default
 * (levels of deflate and zstd are always there); for chains from files: of filters without
 * parameters the name. False: the buffer could not grow. */
bool tegula__chain_format(const tegula__filter *filters, int32_t count, tegula__buffer *out);

#endif
