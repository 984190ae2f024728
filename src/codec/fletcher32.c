/* fletcher32: HDF5 filter 3. Four bytes behind the data check them; nothing is moved, the chain
 * drops them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The data are taken as 16-bit words w, high byte first, an odd last byte as a high byte. With n
 * words, the low half of the checksum is the sum of all w[i] mod 65535, the high half that of all
 * (n - i) * w[i]; 0 stands only for words that are all zero, else it is 65535. HDF5 before 1.6.3
 * wrote the bytes of each half the other way round on little-endian machines: that form is
 * accepted, as libhdf5 does. */
#include "codec/codec_priv.h"

/* Pairs of words in one vector of 32-bit numbers. Swapping the two bytes of a word is multiplying
 * it by 256 mod 65535, so the words are summed as the machine reads them, and swapped at the
 * end. */
typedef uint32_t quad __attribute__((vector_size(16)));

enum { LANES = 8, STEPS = 256, MODULUS = 65535 }; /* 65535 * 256 * 257 / 2 < 2^32 */

typedef struct sums {
  uint64_t first, second; /* below MODULUS */
} sums;

/* Goes on by STEPS x LANES words. Lane l of step j is word i = 8 * j + l; with N words to come, N -
 * i = 8 * (STEPS - j) - l. */
static sums add_block(sums sum, const char *data) {
  quad first[2] = {{0}, {0}}, second[2] = {{0}, {0}};
  for (int j = 0; j < STEPS; j++) {
    quad words;
    memcpy(&words, data + 16 * j, 16);
    first[0] += words & 0xffff;
    first[1] += words >> 16;
    second[0] += first[0];
    second[1] += first[1];
  }
  sum.second += STEPS * LANES * sum.first;
  int64_t back = 0;
  for (int lane = 0; lane < LANES; lane++) {
    int half = TEGULA__NATIVE_ORDER == '<' ? lane % 2 : 1 - lane % 2;
    sum.first += first[half][lane / 2];
    sum.second += (uint64_t)LANES * second[half][lane / 2];
    back += (int64_t)lane * first[half][lane / 2];
  }
  sum.second += (uint64_t)MODULUS * (1u << 30) - (uint64_t)back; /* back < 8 * 8 * 2^24 */
  return (sums){sum.first % MODULUS, sum.second % MODULUS};
}

static uint32_t swapped_half(uint64_t sum, bool any) {
  uint32_t half = (uint32_t)(sum * 256 % MODULUS);
  return half == 0 && any ? MODULUS : half;
}

static bool any_set(const char *data, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (data[i] != 0) return true;
  return false;
}

static uint32_t checksum(const char *data, size_t size) {
  const size_t block = 16 * STEPS;
  sums sum = {0, 0};
  size_t at = 0;
  for (; at + block <= size; at += block) sum = add_block(sum, data + at);
  for (; at < size; at += 2) {
    unsigned char bytes[2] = {(unsigned char)data[at],
                              at + 1 < size ? (unsigned char)data[at + 1] : 0};
    uint16_t word;
    memcpy(&word, bytes, 2);
    sum.first = (sum.first + word) % MODULUS;
    sum.second = (sum.second + sum.first) % MODULUS;
  }
  /* a big-endian machine has the words as they are meant: 256 * 256 = 1 */
  uint32_t scale = TEGULA__NATIVE_ORDER == '<' ? 1 : 256;
  bool any = (sum.first == 0 || sum.second == 0) && any_set(data, size);
  return swapped_half(sum.second * scale, any) << 16 | swapped_half(sum.first * scale, any);
}

tegula_status tegula__fletcher32_check(const char *in, size_t in_size, tegula_error *err) {
  const tegula__codec *codec = &tegula__codec_fletcher32;
  if (in_size < TEGULA__FLETCHER32_BYTES)
    return tegula__codec_corrupt(
        err, codec, "%zu stored bytes, expected at least the 4 of the checksum", in_size);
  size_t size = in_size - TEGULA__FLETCHER32_BYTES;
  uint32_t found = checksum(in, size), expected = tegula__read_le32(in + size);
  uint32_t old = (found & 0x00ff00ff) << 8 | (found >> 8 & 0x00ff00ff);
  if (expected == found || expected == old) return TEGULA_OK;
  return tegula__codec_corrupt(err, codec, "the checksum of %zu bytes is %08x, expected %08x", size,
                               found, expected);
}

void tegula__fletcher32_append(char *data, size_t size) {
  tegula__write_le32(data + size, checksum(data, size));
}

static int64_t growth(const tegula__filter *filter, int64_t size) {
  (void)filter, (void)size;
  return TEGULA__FLETCHER32_BYTES;
}

static int64_t most_encoded(const tegula__filter *filter, int64_t size) {
  (void)filter;
  return tegula__add(size, TEGULA__FLETCHER32_BYTES, &size) ? size : INT64_MAX;
}

const tegula__codec tegula__codec_fletcher32 = {
    .name = "fletcher32", .available = true, .growth = growth, .most_encoded = most_encoded};
