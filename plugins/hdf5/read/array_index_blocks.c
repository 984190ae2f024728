/* Chunk indexes that are arrays, read without libhdf5: it looks at every slot, stored or not, and
 * there may be 2^40 of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Fixed arrays are read page by page, by the bits that say which pages were ever written;
 * extensible ones block by block. All of it carries checksums, which are compared. Of the version
 * of both there is only 0. What is unusual (a page that is shared out otherwise than libhdf5 does
 * it) is left to libhdf5. Elements are an address, and with filters the stored length and the mask
 * of the chunk. */
#include <stdlib.h>
#include <string.h>

#include "read/hdf5_read.h"

enum { SUM = 4, MASK = 4, PREFIX = 6 /* signature, version, client */, MOST_BITMAP = 64 << 20 };
enum { ITEM = 6, FIXED_PAGE = 7, FIXED_COUNT = 8 };
enum {
  BITS = 7,
  IN_INDEX = 8,
  LEAST_BLOCK = 9,
  LEAST_POINTERS = 10,
  PAGE_BITS = 11,
  COUNTS = 12,
  CLAIMED = 4 /* lengths before it */
};

typedef struct walk {
  const hdf5_file *file;
  const hdf5_library *library;
  const unsigned char *head;
  hdf5_array_fn each;
  void *state;
  size_t item, width;  /* of elements and addresses */
  int64_t at;          /* what is being read: for messages */
  uint64_t left;       /* bytes: blocks do not overlap, so all of them are no more than the file */
  unsigned char *page; /* room for one */
} walk;

static const char cut[] = "reaches beyond the end of the file", no_memory[] = "",
                  unusual[] = "is of an unusual form";

static uint64_t number(const unsigned char *bytes, size_t width) {
  uint64_t value = 0;
  while (width-- > 0) value = value << 8 | bytes[width];
  return value;
}

static bool is_undefined(const walk *w, const unsigned char *bytes) {
  for (size_t k = 0; k < w->width; k++) RETURN_IF(bytes[k] != 0xff, false);
  return true;
}

/* Reads `size` bytes at an address of the file and compares the checksum at their end; NULL: all is
 * well. */
static const char *read_block(walk *w, uint64_t address, unsigned char *out, uint64_t size,
                              const char *signature) {
  uint64_t end = (uint64_t)w->file->size;
  w->at = address <= end ? w->file->base + (int64_t)address : -1;
  if (size > end || w->at < 0 || (uint64_t)w->at > end - size) return cut;
  if (size > w->left) return "overlaps another one";
  w->left -= size;
  tegula_error failure;
  if (w->library->host->file_read(w->file->host, w->at, out, size, &failure) != TEGULA_OK)
    return "cannot be read";
  if (hdf5_checksum(out, size - SUM) != number(out + size - SUM, SUM))
    return "has a wrong checksum";
  if (signature && (memcmp(out, signature, 4) != 0 || out[4] != 0))
    return "is not what it should be";
  return NULL;
}

static const char *read_new(walk *w, uint64_t address, uint64_t size, const char *signature,
                            unsigned char **out) {
  *out = size <= (uint64_t)w->file->size ? malloc(size) : NULL;
  if (!*out) return size <= (uint64_t)w->file->size ? no_memory : cut;
  return read_block(w, address, *out, size, signature);
}

static bool take_elements(const walk *w, const unsigned char *at, uint64_t first, uint64_t count) {
  size_t length = w->item > w->width ? w->item - w->width - MASK : 0;
  for (uint64_t k = 0; k < count; k++, at += w->item) {
    if (is_undefined(w, at)) continue;
    hdf5_array_entry entry = {.number = first + k,
                              .address = number(at, w->width) + (uint64_t)w->file->base,
                              .filtered = length > 0};
    if (length > 0) {
      entry.length = number(at + w->width, length);
      entry.mask = (uint32_t)number(at + w->width + length, MASK);
    }
    if (!w->each(w->state, &entry)) return false;
  }
  return true;
}

/* ---- fixed ---- */

static const char *read_pages(walk *w, const unsigned char *bits, uint64_t first, uint64_t count,
                              uint64_t page) {
  for (uint64_t k = 0; k * page < count; k++) {
    uint64_t here = count - k * page < page ? count - k * page : page;
    if (!(bits[k / 8] & 0x80 >> k % 8)) continue;
    const char *wrong =
        read_block(w, first + k * (page * w->item + SUM), w->page, here * w->item + SUM, NULL);
    RETURN_IF(wrong, wrong);
    RETURN_IF(!take_elements(w, w->page, k * page, here), no_memory);
  }
  return NULL;
}

static const char *walk_fixed(walk *w, uint64_t slots, size_t lengths) {
  uint64_t count = number(w->head + FIXED_COUNT, lengths),
           address = number(w->head + FIXED_COUNT + lengths, w->width);
  unsigned bits = w->head[FIXED_PAGE];
  if (is_undefined(w, w->head + FIXED_COUNT + lengths)) return NULL; /* nothing is stored */
  if (bits > 20 || (count - 1) >> bits == 0 || count != slots ||
      count - 1 > UINT64_MAX / w->item / 2)
    return unusual;
  uint64_t page = UINT64_C(1) << bits, pages = (count - 1) / page + 1, bitmap = (pages + 7) / 8;
  if (bitmap > MOST_BITMAP) return unusual;
  unsigned char *prefix = NULL;
  uint64_t size = PREFIX + w->width + bitmap + SUM;
  const char *wrong = read_new(w, address, size, "FADB", &prefix);
  w->page = wrong ? NULL : malloc(page * w->item + SUM);
  if (!wrong)
    wrong = w->page ? read_pages(w, prefix + PREFIX + w->width, address + size, count, page)
                    : no_memory;
  free(w->page);
  free(prefix);
  return wrong;
}

/* ---- extensible ---- */

typedef struct shape {
  uint64_t in_index, least_block, page; /* elements */
  /* levels of data blocks; of them those that the index block points at itself */
  unsigned supers, direct;
  size_t offset_width;
} shape;

static uint64_t blocks_of(unsigned level) { return UINT64_C(1) << level / 2; }
static uint64_t elements_of(const shape *s, unsigned level) {
  return s->least_block << (level + 1) / 2;
}

/* A data block with the elements from `first` on; `bits` from bit `bit` on say which of its pages
 * there are. */
static const char *read_data(walk *w, const shape *s, uint64_t address, uint64_t first,
                             uint64_t count, const unsigned char *bits, uint64_t bit) {
  uint64_t before = PREFIX + w->width + s->offset_width;
  unsigned char *block = NULL;
  const char *wrong;
  if (count <= s->page) {
    wrong = read_new(w, address, before + count * w->item + SUM, "EADB", &block);
    if (!wrong && !take_elements(w, block + before, first, count)) wrong = no_memory;
    free(block);
    return wrong;
  }
  wrong = read_new(w, address, before + SUM, "EADB", &block);
  free(block);
  for (uint64_t k = 0; !wrong && k < count / s->page; k++, bit++) {
    if (!(bits[bit / 8] & 0x80 >> bit % 8)) continue;
    wrong = read_new(w, address + before + SUM + k * (s->page * w->item + SUM),
                     s->page * w->item + SUM, NULL, &block);
    if (!wrong && !take_elements(w, block, first + k * s->page, s->page)) wrong = no_memory;
    free(block);
  }
  return wrong;
}

static const char *read_super(walk *w, const shape *s, unsigned level, uint64_t address,
                              uint64_t first) {
  uint64_t count = elements_of(s, level), blocks = blocks_of(level),
           pages = count > s->page ? count / s->page : 0;
  uint64_t before = PREFIX + w->width + s->offset_width, bitmap = blocks * ((pages + 7) / 8);
  unsigned char *super = NULL;
  const char *wrong =
      read_new(w, address, before + bitmap + blocks * w->width + SUM, "EASB", &super);
  for (uint64_t k = 0; !wrong && k < blocks; k++) {
    const unsigned char *at = super + before + bitmap + k * w->width;
    if (!is_undefined(w, at))
      wrong = read_data(w, s, number(at, w->width), first + k * count, count, super + before,
                        k * pages);
  }
  free(super);
  return wrong;
}

static const char *read_index(walk *w, const shape *s, const unsigned char *at) {
  RETURN_IF(!take_elements(w, at, 0, s->in_index), no_memory);
  uint64_t first = s->in_index;
  const char *wrong = NULL;
  at += s->in_index * w->item;
  for (unsigned level = 0; !wrong && level < s->supers; level++) {
    uint64_t count = elements_of(s, level), blocks = blocks_of(level);
    if (level >= s->direct) {
      if (!is_undefined(w, at)) wrong = read_super(w, s, level, number(at, w->width), first);
      at += w->width;
    }
    for (uint64_t k = 0; !wrong && level < s->direct && k < blocks; k++, at += w->width)
      if (!is_undefined(w, at))
        wrong = read_data(w, s, number(at, w->width), first + k * count, count, NULL, 0);
    first += blocks * count;
  }
  return wrong;
}

static unsigned log2_of(uint64_t value) { return 63 - (unsigned)__builtin_clzll(value | 1); }

static const char *walk_extensible(walk *w, size_t lengths) {
  const unsigned char *head = w->head, *index = head + COUNTS + 6 * lengths;
  unsigned bits = head[BITS], least = head[LEAST_BLOCK], pointers = head[LEAST_POINTERS],
           page_bits = head[PAGE_BITS];
  if (is_undefined(w, index)) return NULL;
  bool powers = least && pointers && !(least & (least - 1)) && !(pointers & (pointers - 1));
  if (!powers || bits > 48 || bits <= log2_of(least) || page_bits > 20) return unusual;
  shape s = {.in_index = head[IN_INDEX],
             .least_block = least,
             .page = UINT64_C(1) << page_bits,
             .offset_width = (bits + 7) / 8};
  s.supers = 1 + bits - log2_of(least);
  s.direct = 2 * log2_of(pointers);
  if (s.direct > s.supers || (s.direct > 0 && elements_of(&s, s.direct - 1) > s.page))
    return unusual;
  uint64_t size = PREFIX + w->width + s.in_index * w->item +
                  (2 * (uint64_t)(pointers - 1) + s.supers - s.direct) * w->width + SUM;
  unsigned char *block = NULL;
  const char *wrong = read_new(w, number(index, w->width), size, "EAIB", &block);
  if (!wrong) wrong = read_index(w, &s, block + PREFIX + w->width);
  free(block);
  return wrong;
}

/* ---- both ---- */

uint64_t hdf5_array_claimed(const hdf5_array_head *head, const hdf5_file *file, bool *extensible) {
  size_t lengths = file->length_width, least = FIXED_COUNT + lengths;
  *extensible = head->size > 0 && head->bytes[0] == 'E';
  if (*extensible) least = COUNTS + (CLAIMED + 1) * lengths;
  return head->size >= least ? number(head->bytes + least - lengths, lengths) : 0;
}

hdf5_array_result hdf5_array_walk(const hdf5_array_head *head, const hdf5_file *file,
                                  uint64_t slots, hdf5_array_fn each, void *state,
                                  const char **wrong, int64_t *at) {
  size_t lengths = file->length_width, width = file->address_width;
  walk w = {.file = file,
            .library = file->library,
            .head = head->bytes,
            .each = each,
            .state = state,
            .width = width,
            .at = -1};
  w.left = (uint64_t)file->size;
  w.item = head->bytes[ITEM];
  bool fixed = head->bytes[0] == 'F',
       sound = head->size == (fixed ? FIXED_COUNT + lengths : COUNTS + 6 * lengths) + width + SUM;
  sound = sound && width >= 2 && width <= 8 && lengths >= 2 && lengths <= 8 && head->bytes[4] == 0;
  sound = sound && hdf5_checksum(head->bytes, head->size - SUM) ==
                       number(head->bytes + head->size - SUM, SUM);
  size_t rest = w.item - width - MASK; /* the length of a chunk */
  bool filtered = head->bytes[5] == 1 && w.item > width + MASK && rest <= 8,
       plain = head->bytes[5] == 0 && w.item == width;
  RETURN_IF(!sound || (!filtered && !plain), HDF5_ARRAY_UNUSUAL);
  *wrong = fixed ? walk_fixed(&w, slots, lengths) : walk_extensible(&w, lengths);
  *at = w.at;
  if (!*wrong) return HDF5_ARRAY_OK;
  return *wrong == unusual     ? HDF5_ARRAY_UNUSUAL
         : *wrong == no_memory ? HDF5_ARRAY_STOPPED
                               : HDF5_ARRAY_DAMAGED;
}
