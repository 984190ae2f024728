/* Global heaps: where texts of any length and the mappings of virtual datasets are stored.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * libhdf5 trusts the lengths in a collection: damaged ones send it round in a circle for ever, or
 * out of its memory. So a collection is walked here before it gets it:
 *
 *   "GCOL", version 1, 3 bytes, size of all                 padded to 8 bytes
 *   number, references, 4 bytes, size; then the object      each padded to 8 bytes; no number twice
 *   0, 0, 4 bytes, size with this header                    what is free
 *
 * A rest that is shorter than a header has no header. */
#include <string.h>

#include "library/libhdf5.h"

enum { LEAST = 4096, NUMBERS = 65536 };

typedef struct heap {
  hdf5_heap_read get;
  void *state;
  int64_t end;
  size_t width;  /* of lengths */
  size_t header; /* of an object */
  unsigned char seen[NUMBERS / 8];
} heap;

static uint64_t number_at(const unsigned char *bytes, size_t width) {
  uint64_t out = 0;
  while (width-- > 0) out = out << 8 | bytes[width];
  return out;
}

static size_t padded(size_t size) { return (size + 7) / 8 * 8; }

/* Looks at the object at `at` and moves behind it; NULL, or what is wrong. */
static const char *step(heap *h, int64_t *at) {
  unsigned char bytes[16];
  if (!h->get(h->state, *at, bytes, h->header)) return "it cannot be read";
  uint64_t number = number_at(bytes, 2), size = number_at(bytes + 8, h->width),
           left = (uint64_t)(h->end - *at);
  if (h->seen[number / 8] >> number % 8 & 1) return "two of its objects have the same number";
  h->seen[number / 8] |= (unsigned char)(1 << number % 8);
  if (number == 0 && size < h->header) return "its free space is smaller than the header of that";
  if (size <= left && number != 0) size = h->header + padded((size_t)size);
  if (size > left) return "one of its objects reaches beyond its end";
  size_t object = number != 0 ? (size_t)number_at(bytes + 8, h->width) : 0;
  const char *wrong =
      hdf5_mapped_check(h->get, h->state, *at + (int64_t)h->header, object, h->width);
  RETURN_IF(wrong, wrong);
  *at += (int64_t)size;
  return NULL;
}

const char *hdf5_heap_check(hdf5_heap_read get, void *state, int64_t address, int64_t file_size,
                            size_t width, int64_t *size) {
  heap h = {.get = get, .state = state, .width = width, .header = padded(8 + width)};
  unsigned char bytes[16];
  *size = 0;
  if (width != 2 && width != 4 && width != 8) return "its lengths have a width that is not known";
  if (!get(state, address, bytes, 8 + width)) return "it cannot be read";
  if (bytes[4] != 1) return NULL; /* libhdf5 refuses it */
  uint64_t whole = number_at(bytes + 8, width);
  if (whole < LEAST) return "it says to have less than 4096 bytes";
  if (whole > (uint64_t)(file_size - address)) return "it says to be longer than the file";
  h.end = address + (int64_t)whole;
  *size = (int64_t)whole;
  const char *wrong = NULL;
  for (int64_t at = address + (int64_t)padded(8 + width);
       !wrong && h.end - at >= (int64_t)h.header;)
    wrong = step(&h, &at);
  return wrong;
}
