/* chain: the stages of one chunk, undone from last to first; the only place that knows how large each must be.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Only the decoded size of the whole chunk is given. Going up from it, sizes before each stage are exact until the first compressor, and
 * bounds behind it. Stages move data from place to place so that the last one writes to where the caller wants it. */
#include <inttypes.h>

#include "codec/codec_priv.h"

typedef struct chain {
  const tegula__filter *filters[TEGULA__CHAIN_MAX]; /* those that were applied */
  const tegula__codec *codecs[TEGULA__CHAIN_MAX];
  int64_t before[TEGULA__CHAIN_MAX + 1]; /* bytes that stage i was given when the chunk was encoded */
  bool exact[TEGULA__CHAIN_MAX + 1];     /* else at most that many */
  int32_t count;
} chain;

static int64_t add_or_most(int64_t a, int64_t b) {
  int64_t sum;
  return tegula__add(a, b, &sum) ? sum : INT64_MAX;
}

/* What no compressor exceeds that ends up longer than its input. */
static int64_t usual_growth(int64_t size) { return size / 8 + (64 << 10); }

static int64_t growth(const tegula__filter *filter, const tegula__codec *codec, int64_t size) {
  if (codec->keeps_size) return 0;
  return codec->growth ? codec->growth(filter, size) : usual_growth(size);
}

/* Many stages may not each add their growth: what is longer than this is not worth its memory. */
static int64_t cap(int64_t decoded_size) {
  int64_t four;
  return tegula__mul(decoded_size, 4, &four) ? add_or_most(four, 1 << 20) : INT64_MAX;
}

/* Leaves out what is masked and what does nothing. */
static void set_up(chain *c, const tegula__filter *filters, int32_t count, uint32_t mask, int64_t decoded_size) {
  c->count = 0;
  c->before[0] = decoded_size;
  c->exact[0] = true;
  for (int32_t i = 0; i < count; i++) {
    const tegula__codec *codec = tegula__codec_find(filters[i].codec);
    if (mask >> i & 1 || codec == NULL || filters[i].codec == TEGULA__CODEC_NONE) continue;
    int32_t n = c->count++;
    c->filters[n] = &filters[i];
    c->codecs[n] = codec;
    c->exact[n + 1] = c->exact[n] && (codec->keeps_size || codec == &tegula__codec_fletcher32);
    c->before[n + 1] = tegula__min(add_or_most(c->before[n], growth(&filters[i], codec, c->before[n])), cap(decoded_size));
  }
}

int64_t tegula__chain_bound(const tegula__filter *filters, int32_t count, int64_t decoded_size) {
  chain c;
  set_up(&c, filters, count, 0, decoded_size);
  return c.before[c.count];
}

/* libhdf5 fills in the parameters of the first filter of a kind only; others then fail when chunks are written, are masked, and checked
 * where they are not. */
static bool came_before(const tegula__filter *filters, int32_t i) {
  for (int32_t k = 0; k < i; k++)
    if (filters[k].codec == filters[i].codec) return true;
  return false;
}

static tegula_status check_codec(const tegula__filter *filter, int64_t size, bool again, tegula_error *err) {
  const tegula__codec *codec = tegula__codec_find(filter->codec);
  if (codec == NULL) return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1, "codec %u is not known", filter->codec);
  if (!codec->available)
    return tegula__hint(err, tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1, "%s: this build has no %s", codec->name, codec->library),
                        "build tegula where %s is installed", codec->library);
  if (codec->found && !codec->found())
    return tegula__hint(err, tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1, "%s: no %s was found", codec->name, codec->library),
                        "install it where the system looks for libraries, or name its folder in LD_LIBRARY_PATH");
  if (filter->param_count > TEGULA__FILTER_PARAMS)
    return tegula__codec_corrupt(err, codec, "%u parameters, expected at most %d", filter->param_count, TEGULA__FILTER_PARAMS);
  if (codec->most > 0 && size > codec->most)
    return tegula__codec_corrupt(err, codec, "a chunk of up to %" PRId64 " bytes, expected at most %" PRId64, size, codec->most);
  return codec->check && !again ? codec->check(filter, err) : TEGULA_OK;
}

tegula_status tegula__chain_check(const tegula__filter *filters, int32_t count, int64_t decoded_size, tegula_error *err) {
  if (count < 0 || count > TEGULA__CHAIN_MAX)
    return tegula__fail(err, TEGULA_CORRUPT, NULL, -1, "a chain of %d codecs, expected 0 to %d", count, TEGULA__CHAIN_MAX);
  if (decoded_size < 0) return tegula__fail(err, TEGULA_CORRUPT, NULL, -1, "a chunk of %" PRId64 " bytes", decoded_size);
  bool exact = true;
  for (int32_t i = 0; i < count; i++) {
    FORWARD(check_codec(&filters[i], exact ? decoded_size : 0, came_before(filters, i), err));
    exact = exact && tegula__codec_find(filters[i].codec)->keeps_size; /* behind a compressor only the streams tell */
  }
  return TEGULA_OK;
}

/* Where stage i puts its bytes. Stages that are left alternate, so that the last ends in `out`; a checksum in front means one more copy. */
static tegula_status next_place(tegula__decoder *decoder, const chain *c, int32_t i, char *out, size_t out_size, char **place,
                                tegula_error *err) {
  int32_t left = i > 0 && c->codecs[0] == &tegula__codec_fletcher32;
  for (int32_t k = 0; k < i; k++) left += c->codecs[k] != &tegula__codec_fletcher32;
  *place = out;
  if (left % 2 == 0 && (uint64_t)c->before[i] <= out_size) return TEGULA_OK;
  if ((uint64_t)c->before[i] > SIZE_MAX / 2) return tegula__out_of_memory(err, c->before[i]);
  tegula__scratch *scratch = &decoder->place[left % 2 == 0];
  FORWARD(tegula__scratch_reserve(scratch, (size_t)c->before[i] + 1, err));
  *place = scratch->data;
  return TEGULA_OK;
}

/* Stage i is about to give `size` bytes, or gave them. */
static tegula_status check_size(const chain *c, int32_t i, size_t size, tegula_error *err) {
  if (c->exact[i] ? size == (uint64_t)c->before[i] : size <= (uint64_t)c->before[i]) return TEGULA_OK;
  return tegula__codec_corrupt(err, c->codecs[i], "the chunk comes to %zu bytes, expected %s%" PRId64, size, c->exact[i] ? "" : "at most ",
                               c->before[i]);
}

static tegula_status undo_stage(const chain *c, int32_t i, tegula__stage *stage, char *out, size_t out_size, tegula_error *err) {
  const tegula__codec *codec = c->codecs[i];
  size_t size = 0;
  if (codec == &tegula__codec_fletcher32) {
    FORWARD(tegula__fletcher32_check(stage->in, stage->in_size, err));
    stage->in_size -= TEGULA__FLETCHER32_BYTES;
    return check_size(c, i, stage->in_size, err);
  }
  if (codec->keeps_size) FORWARD(check_size(c, i, stage->in_size, err));
  if (codec->undo == NULL) return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1, "%s: this build has no %s", codec->name, codec->library);
  if (codec->check) FORWARD(codec->check(c->filters[i], err));
  FORWARD(next_place(stage->decoder, c, i, out, out_size, &stage->out, err));
  stage->filter = c->filters[i];
  stage->room = (size_t)c->before[i];
  FORWARD(codec->undo(stage, &size, err));
  FORWARD(check_size(c, i, size, err));
  stage->in = stage->out;
  stage->in_size = size;
  return TEGULA_OK;
}

tegula_status tegula__decode(tegula__decoder *decoder, const tegula__filter *filters, int32_t count, uint32_t mask, const void *in,
                             size_t in_size, void *out, size_t out_size, tegula_error *err) {
  char nothing[1] = {0};
  chain c;
  if (out_size > INT64_MAX) return tegula__fail(err, TEGULA_LIMIT_EXCEEDED, NULL, -1, "a chunk of %zu bytes", out_size);
  if (in == NULL) in = nothing;
  if (out == NULL) out = nothing;
  set_up(&c, filters, count, mask, (int64_t)out_size);
  tegula__stage stage = {.decoder = decoder, .in = in, .in_size = in_size};
  for (int32_t i = c.count - 1; i >= 0; i--) FORWARD(undo_stage(&c, i, &stage, out, out_size, err));
  if (stage.in_size != out_size)
    return tegula__fail(err, TEGULA_CORRUPT, NULL, -1, "the chunk has %zu bytes, expected %zu", stage.in_size, out_size);
  if (stage.in != out) memcpy(out, stage.in, out_size);
  return TEGULA_OK;
}
