/* codec: undoes what stored chunks went through. One file per codec, one table, one chain.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Codecs work from memory to memory and know nothing of files. What they are given is untrusted: no input makes them read or write outside
 * of the two ranges, and the memory they take is bounded by the decoded size that the caller states. All are thread safe on distinct
 * decoders. */
#ifndef TEGULA_CODEC_CODEC_H
#define TEGULA_CODEC_CODEC_H

#include "base/base.h"
#include "kernel/kernel.h"

/* "deflate", "shuffle", ...; "unknown". Static texts. */
const char *tegula__codec_name(uint16_t codec);
/* Was this build given the library that the codec needs? */
bool tegula__codec_available(uint16_t codec);

/* Can this chain be undone for chunks of `decoded_size` bytes: known codecs, parameters that make sense? Called once, when a dataset is
 * described; decode relies on it. The error has no path. */
tegula_status tegula__chain_check(const tegula__filter *filters, int32_t count, int64_t decoded_size, tegula_error *err);
/* The most bytes that the encoded form of a chunk can be worth reading: more is CORRUPT. At most 4 x decoded_size + 1 MiB; INT64_MAX where
 * overflow. */
int64_t tegula__chain_bound(const tegula__filter *filters, int32_t count, int64_t decoded_size);

/* What one worker keeps from chunk to chunk: contexts of the libraries and scratch memory: at most one decoded chunk (and slack) for the
 * usual chains, one more for szip of 32- and 64-bit pixels, up to twice tegula__chain_bound where one compressor follows another. */
typedef struct tegula__decoder tegula__decoder;
/* NULL: no memory. `kernels` is borrowed. */
tegula__decoder *tegula__decoder_create(const tegula__kernels *kernels);
void tegula__decoder_destroy(tegula__decoder *decoder);
/* Undoes the chain from last to first, but for the filters whose bit is set in `mask` (bit i: filters[i] was skipped for this chunk), and
 * puts exactly `out_size` bytes in `out`, which may be the final place. A stream that does not decode, decodes to another size, or whose
 * checksum fails is CORRUPT; the message names the codec and what was expected and found, the error has no path. On failure `out` is
 * undefined. `in` and `out` do not overlap. With nothing to undo, in_size must be out_size, and the bytes are copied. */
tegula_status tegula__decode(tegula__decoder *decoder, const tegula__filter *filters, int32_t count, uint32_t mask, const void *in,
                             size_t in_size, void *out, size_t out_size, tegula_error *err);

#endif
