/* Chunk indexes as they pass on their way to libhdf5: leaves of B-trees of version 1, headers of
 * arrays.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A node is "TREE", its type (1: of chunks), its level (0: a leaf), the number of its entries (2
 * bytes) and the addresses of two siblings. Then come keys and addresses in turn, a key at both
 * ends. A key is the length of a chunk as it is stored, its filter mask (4 bytes each) and its
 * offset in elements, 8 bytes along each axis and 8 for the bytes of an element. */
#include <string.h>

#include "library/libhdf5.h"

static uint64_t number(const unsigned char *bytes, size_t width) {
  uint64_t value = 0;
  while (width-- > 0) value = value << 8 | bytes[width];
  return value;
}

void hdf5_leaves_note(const hdf5_leaves *leaves, const unsigned char *bytes, size_t size) {
  enum { HEAD = 8, BEFORE = 8, COORDINATE = 8 };
  static const unsigned char leaf[6] = {'T', 'R', 'E', 'E', 1, 0};
  size_t width = leaves->width, key = BEFORE + COORDINATE * ((size_t)leaves->ndim + 1),
         step = key + width;
  if (width == 0 || width > sizeof(haddr_t) || size < HEAD + 2 * width + key ||
      memcmp(bytes, leaf, sizeof leaf) != 0)
    return;
  size_t count = number(bytes + 6, 2);
  const unsigned char *at = bytes + HEAD + 2 * width;
  if ((size - HEAD - 2 * width - key) / step < count) return; /* libhdf5 refuses it */
  for (; count-- > 0; at += step) {
    hsize_t offset[HDF5_MAX_RANK];
    for (int k = 0; k < leaves->ndim; k++)
      offset[k] = number(at + BEFORE + COORDINATE * k, COORDINATE);
    haddr_t address = number(at + key, width);
    if (leaves->each(offset, (unsigned)number(at + 4, 4), address, number(at, 4), leaves->state) !=
        0)
      return;
  }
}

/* ---- arrays ---- */

enum { PREFIX = 6 /* signature, version, client */ };

void hdf5_array_note(hdf5_array_head *head, const unsigned char *bytes, size_t size) {
  if (size < PREFIX || size > sizeof head->bytes ||
      (memcmp(bytes, "EAHD", 4) != 0 && memcmp(bytes, "FAHD", 4) != 0))
    return;
  memcpy(head->bytes, bytes, size);
  head->size = size;
}
