/* Lists of mappings of virtual datasets, in global heaps. libhdf5 decodes one before it compares
 * its checksum, and of a damaged one writes behind its own memory: so the checksum is compared here
 * first.
 *
 *   version 0, the number of entries; of each: the file's name, the dataset's name, two selections
 *   (kind, version, ...); the checksum
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Nothing says what an object of a heap is: one that begins like such a list is taken for one. */
#include <stdlib.h>
#include <string.h>

#include "library/libhdf5.h"

enum { PEEK = 2048, SUM = 4, MOST_KIND = 3, MOST_VERSION = 3 };

static uint32_t word(const unsigned char *bytes, size_t count) {
  uint32_t out = 0;
  while (count-- > 0) out = out << 8 | bytes[count];
  return out;
}

static uint32_t rotate(uint32_t x, int by) { return x << by | x >> (32 - by); }

/* The checksum of HDF5's metadata: lookup3 of Bob Jenkins. */
uint32_t hdf5_checksum(const unsigned char *bytes, size_t size) {
  uint32_t a = 0xdeadbeefu + (uint32_t)size, b = a, c = a;
  for (; size > 12; bytes += 12, size -= 12) {
    a += word(bytes, 4), b += word(bytes + 4, 4), c += word(bytes + 8, 4);
    a -= c, a ^= rotate(c, 4), c += b;
    b -= a, b ^= rotate(a, 6), a += c;
    c -= b, c ^= rotate(b, 8), b += a;
    a -= c, a ^= rotate(c, 16), c += b;
    b -= a, b ^= rotate(a, 19), a += c;
    c -= b, c ^= rotate(b, 4), b += a;
  }
  if (size == 0) return c;
  a += word(bytes, size < 4 ? size : 4);
  if (size > 4) b += word(bytes + 4, size < 8 ? size - 4 : 4);
  if (size > 8) c += word(bytes + 8, size - 8);
  c ^= b, c -= rotate(b, 14);
  a ^= c, a -= rotate(c, 11);
  b ^= a, b -= rotate(a, 25);
  c ^= b, c -= rotate(b, 16);
  a ^= c, a -= rotate(c, 4);
  b ^= a, b -= rotate(a, 14);
  c ^= b, c -= rotate(b, 24);
  return c;
}

/* Behind a name at `at`; 0: there is none. */
static size_t behind_name(const unsigned char *bytes, size_t size, size_t at) {
  size_t from = at;
  while (at < size && bytes[at] >= ' ' && bytes[at] != 127) at++;
  return at > from && at < size && bytes[at] == 0 ? at + 1 : 0;
}

static bool looks_like_it(const unsigned char *bytes, size_t size, size_t width) {
  size_t at = size > 1 + width && bytes[0] == 0 ? behind_name(bytes, size, 1 + width) : 0;
  if (at > 0) at = behind_name(bytes, size, at);
  if (at == 0 || size - at < 8) return false;
  /* so many entries there never are */
  for (size_t k = 1 + width / 2; k < 1 + width; k++) RETURN_IF(bytes[k] != 0, false);
  /* one of them may be the damage */
  return word(bytes + at, 4) <= MOST_KIND || word(bytes + at + 4, 4) - 1 < MOST_VERSION;
}

const char *hdf5_mapped_check(hdf5_heap_read get, void *state, int64_t offset, size_t size,
                              size_t width) {
  unsigned char head[PEEK];
  size_t some = size < PEEK ? size : PEEK;
  if (size <= SUM + 1) return NULL;
  if (!get(state, offset, head, 1)) return "one of its objects cannot be read";
  if (head[0] != 0) return NULL;
  if (!get(state, offset, head, some)) return "one of its objects cannot be read";
  if (!looks_like_it(head, some, width)) return NULL;
  unsigned char *all = malloc(size);
  if (!all) return "there is not enough memory to look at it";
  const char *wrong = get(state, offset, all, size) ? NULL : "one of its objects cannot be read";
  if (!wrong && hdf5_checksum(all, size - SUM) != word(all + size - SUM, SUM))
    wrong = "the checksum of a list of mappings is wrong";
  free(all);
  return wrong;
}
