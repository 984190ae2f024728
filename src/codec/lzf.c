/* lzf: HDF5 filter 32000, one bare LZF stream; the sizes of both sides come from outside.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A byte below 32 begins that many literals and one more. Else its upper 3 bits are a length (7:
 * the next byte is added) and 2 more, its lower 5 bits and the next byte how far back a copy
 * begins, less 1. A copy may reach into itself: then it repeats a pattern. liblzf copies byte by
 * byte, which is slow where bytes repeat, as they do behind a shuffle. */
#include "codec/codec_priv.h"

enum { WIDE = 16, LITERALS = 32 };

typedef struct cursor {
  const unsigned char *in, *in_end;
  unsigned char *start, *out, *out_end;
} cursor;

/* The two may overlap: all is read before it is written. */
static inline void copy_wide(unsigned char *to, const unsigned char *from) {
  unsigned char wide[WIDE];
  memcpy(wide, from, WIDE);
  memcpy(to, wide, WIDE);
}

/* From `back` bytes before; there is room for one wide store behind the end. */
static void copy_near(unsigned char *out, size_t back, size_t length) {
  if (back == 1) {
    memset(out, out[-1], length);
    return;
  }
  /* so many bytes of each wide copy are right */
  size_t step = back >= WIDE ? WIDE : WIDE / back * back, done = 0;
  for (; back < WIDE && done < WIDE; done++) out[done] = out[(ptrdiff_t)done - (ptrdiff_t)back];
  for (size_t from = back >= WIDE ? back : step; done < length; done += step)
    copy_wide(out + done, out + (ptrdiff_t)done - (ptrdiff_t)from);
}

/* False: the stream ends too early, or reaches back before its start; *full when there is no
 * room. */
static bool literals(cursor *c, size_t count, bool *full) {
  size_t left = (size_t)(c->in_end - c->in), room = (size_t)(c->out_end - c->out);
  if (count > left) return false;
  if ((*full = count > room)) return false;
  if (left >= LITERALS && room >= LITERALS) {
    copy_wide(c->out, c->in);
    copy_wide(c->out + WIDE, c->in + WIDE);
  } else {
    memcpy(c->out, c->in, count);
  }
  c->in += count;
  c->out += count;
  return true;
}

static bool copy(cursor *c, unsigned first, bool *full) {
  size_t length = (first >> 5) + 2, room = (size_t)(c->out_end - c->out);
  if (c->in_end - c->in < (first >> 5 == 7 ? 2 : 1)) return false;
  if (first >> 5 == 7) length += *c->in++;
  size_t back = ((size_t)(first & 31) << 8 | *c->in++) + 1;
  if (back > (size_t)(c->out - c->start)) return false;
  if ((*full = length > room)) return false;
  if (room - length >= WIDE)
    copy_near(c->out, back, length);
  else
    for (size_t i = 0; i < length; i++) c->out[i] = c->out[(ptrdiff_t)i - (ptrdiff_t)back];
  c->out += length;
  return true;
}

static tegula_status undo(const tegula__stage *stage, size_t *size, tegula_error *err) {
  cursor c = {.in = (const unsigned char *)stage->in, .start = (unsigned char *)stage->out};
  bool good = true, full = false;
  c.in_end = c.in + stage->in_size;
  c.out = c.start;
  c.out_end = c.out + stage->room;
  while (good && c.in < c.in_end) {
    unsigned first = *c.in++;
    good = first < LITERALS ? literals(&c, first + 1, &full) : copy(&c, first, &full);
  }
  *size = (size_t)(c.out - c.start);
  if (good) return TEGULA_OK;
  return full ? tegula__codec_too_large(err, &tegula__codec_lzf, stage, 0)
              : tegula__codec_no_stream(err, &tegula__codec_lzf, stage);
}

/* ---- encoding: where the same three bytes were last, by a hash of them; the first match is taken
 * ---- */

enum { HASH_BITS = 14, SHORTEST = 3, LONGEST = 264, FARTHEST = 1 << 13, LONG_LENGTH = 7 };

typedef struct writer {
  const unsigned char *in;
  unsigned char *out;
  size_t at, room;
  bool full;
} writer;

static void put_literals(writer *w, size_t from, size_t end) {
  while (from < end && !w->full) {
    size_t n = end - from < LITERALS ? end - from : LITERALS;
    w->full = n + 1 > w->room - w->at;
    if (w->full) return;
    w->out[w->at] = (unsigned char)(n - 1);
    memcpy(w->out + w->at + 1, w->in + from, n);
    w->at += n + 1;
    from += n;
  }
}

static void put_copy(writer *w, size_t back, size_t length) {
  size_t upper = (back - 1) >> 8, code = length - 2;
  w->full = w->full || w->room - w->at < 3;
  if (w->full) return;
  w->out[w->at++] = (unsigned char)(upper | (code < LONG_LENGTH ? code : LONG_LENGTH) << 5);
  if (code >= LONG_LENGTH) w->out[w->at++] = (unsigned char)(code - LONG_LENGTH);
  w->out[w->at++] = (unsigned char)(back - 1);
}

static uint32_t hash_at(const unsigned char *in) {
  uint32_t three = (uint32_t)in[0] << 16 | (uint32_t)in[1] << 8 | in[2];
  return three * UINT32_C(2654435761) >> (32 - HASH_BITS);
}

static size_t match(const unsigned char *a, const unsigned char *b, size_t most) {
  size_t n = 0;
  while (n < most && a[n] == b[n]) n++;
  return n;
}

/* `seen` holds places plus 1; 0: none. */
static void compress(writer *w, size_t size, uint32_t *seen) {
  size_t at = 0, literals_from = 0;
  while (at + SHORTEST <= size && !w->full) {
    uint32_t *entry = &seen[hash_at(w->in + at)];
    size_t before = *entry, length = 0;
    *entry = (uint32_t)at + 1;
    if (before > 0 && at + 1 - before <= FARTHEST)
      length = match(w->in + before - 1, w->in + at, size - at < LONGEST ? size - at : LONGEST);
    if (length < SHORTEST) {
      at++;
      continue;
    }
    put_literals(w, literals_from, at);
    put_copy(w, at + 1 - before, length);
    literals_from = at += length;
  }
  put_literals(w, literals_from, size);
}

static tegula_status apply(const tegula__encode_stage *stage, size_t *size, tegula_error *err) {
  const size_t table = sizeof(uint32_t) << HASH_BITS;
  writer w = {.in = (const unsigned char *)stage->in,
              .out = (unsigned char *)stage->out,
              .room = stage->room};
  *size = TEGULA__SKIPPED;
  if (stage->in_size >= UINT32_MAX) return TEGULA_OK; /* places have 32 bits */
  FORWARD(tegula__scratch_reserve(&stage->encoder->inner, table, err));
  memset(stage->encoder->inner.data, 0, table);
  compress(&w, stage->in_size, (uint32_t *)(void *)stage->encoder->inner.data);
  if (!w.full) *size = w.at;
  return TEGULA_OK;
}

const tegula__codec tegula__codec_lzf = {
    .name = "lzf", .available = true, .undo = undo, .apply = apply};
