/* chain: the stages of one chunk, undone from last to first; the only place that knows how large
 * each must be.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Only the decoded size of the whole chunk is given. Going up from it, sizes before each stage are
 * exact until the first compressor, and bounds behind it. Stages move data from place to place, in
 * the caller's memory as far as that goes, so that the last one writes to where it is wanted. A
 * shuffle that comes last is left to the caller where it takes planes: then no second place is
 * needed. */
#include <inttypes.h>

#include "codec/codec_priv.h"

typedef struct chain {
  const tegula__filter *filters[TEGULA__CHAIN_MAX]; /* those that were applied */
  const tegula__codec *codecs[TEGULA__CHAIN_MAX];
  /* bytes that stage i was given when the chunk was encoded */
  int64_t before[TEGULA__CHAIN_MAX + 1];
  bool exact[TEGULA__CHAIN_MAX + 1]; /* else at most that many */
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
static void set_up(chain *c, const tegula__filter *filters, int32_t count, uint32_t mask,
                   int64_t decoded_size) {
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
    c->before[n + 1] = tegula__min(
        add_or_most(c->before[n], growth(&filters[i], codec, c->before[n])), cap(decoded_size));
  }
}

int64_t tegula__chain_bound(const tegula__filter *filters, int32_t count, int64_t decoded_size) {
  chain c;
  set_up(&c, filters, count, 0, decoded_size);
  return c.before[c.count];
}

/* libhdf5 fills in the parameters of the first filter of a kind only; others then fail when chunks
 * are written, are masked, and checked where they are not. */
static bool came_before(const tegula__filter *filters, int32_t i) {
  for (int32_t k = 0; k < i; k++)
    if (filters[k].codec == filters[i].codec) return true;
  return false;
}

static tegula_status check_codec(const tegula__filter *filter, int64_t size, bool again,
                                 tegula_error *err) {
  const tegula__codec *codec = tegula__codec_find(filter->codec);
  if (codec == NULL)
    return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1, "codec %u is not known", filter->codec);
  if (!codec->available)
    return tegula__hint(err,
                        tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1, "%s: this build has no %s",
                                     codec->name, codec->library),
                        "build tegula where %s is installed", codec->library);
  if (codec->found && !codec->found())
    return tegula__hint(
        err,
        tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1, "%s: no %s was found", codec->name,
                     codec->library),
        "install it where the system looks for libraries, or name its folder in LD_LIBRARY_PATH");
  if (filter->param_count > TEGULA__FILTER_PARAMS)
    return tegula__codec_corrupt(err, codec, "%u parameters, expected at most %d",
                                 filter->param_count, TEGULA__FILTER_PARAMS);
  if (codec->most > 0 && size > codec->most)
    return tegula__codec_corrupt(err, codec,
                                 "a chunk of up to %" PRId64 " bytes, expected at most %" PRId64,
                                 size, codec->most);
  return codec->check && !again ? codec->check(filter, err) : TEGULA_OK;
}

tegula_status tegula__chain_check(const tegula__filter *filters, int32_t count,
                                  int64_t decoded_size, tegula_error *err) {
  if (count < 0 || count > TEGULA__CHAIN_MAX)
    return tegula__fail(err, TEGULA_CORRUPT, NULL, -1, "a chain of %d codecs, expected 0 to %d",
                        count, TEGULA__CHAIN_MAX);
  if (decoded_size < 0)
    return tegula__fail(err, TEGULA_CORRUPT, NULL, -1, "a chunk of %" PRId64 " bytes",
                        decoded_size);
  bool exact = true;
  for (int32_t i = 0; i < count; i++) {
    FORWARD(check_codec(&filters[i], exact ? decoded_size : 0, came_before(filters, i), err));
    /* behind a compressor only the streams tell */
    exact = exact && tegula__codec_find(filters[i].codec)->keeps_size;
  }
  return TEGULA_OK;
}

/* ---- the way of a chunk ---- */

/* A chunk on its way. */
typedef struct journey {
  const chain *c;
  const tegula__passage *passage;
  bool in_free;     /* the memory of the encoded chunk may be written over */
  bool left_planes; /* what stage 0 makes of planes is not its business */
  tegula__stage stage;
} journey;

/* Does stage i write anything, when planes are left (or not)? */
static bool writes(const chain *c, int32_t i, bool left_planes) {
  return c->codecs[i] != &tegula__codec_fletcher32 &&
         !(i == 0 && left_planes && c->codecs[0]->only_planes);
}

/* Are planes of these items, as they come out of the chain, as good as items? 0: the items may be
 * any. */
static bool leaves_planes(const chain *c, size_t size, size_t item) {
  if (c->count == 0 || c->codecs[0]->planes == NULL) return false;
  size_t found = c->codecs[0]->planes(c->filters[0]);
  return found > 0 && (item == 0 || (found == item && size % item == 0));
}

static int32_t stages_left(const journey *j, int32_t i) {
  int32_t left = 0;
  for (int32_t k = 0; k < i; k++) left += writes(j->c, k, j->left_planes);
  return left;
}

/* May the stage write to `place`: is there one, with room, which is not where its input stands? */
static bool takes(const journey *j, const char *place, size_t room, size_t need) {
  return place != NULL && place != j->stage.in && need <= room;
}

/* Where stage i puts its bytes: the last one where the chunk is wanted; the one before it must not
 * be there. */
static tegula_status next_place(const journey *j, int32_t i, char **place, tegula_error *err) {
  const tegula__passage *p = j->passage;
  tegula__decoder *decoder = j->stage.decoder;
  if ((uint64_t)j->c->before[i] > SIZE_MAX / 2) return tegula__out_of_memory(err, j->c->before[i]);
  size_t need = (size_t)j->c->before[i];
  /* planes become items on the last step */
  int32_t left = stages_left(j, i) + (j->left_planes && p->out != NULL);
  bool to_out = takes(j, p->out, p->size, need);
  *place = p->out;
  if (to_out && left == 0) return TEGULA_OK;
  *place = p->scratch;
  if (takes(j, p->scratch, p->scratch_size, need)) return TEGULA_OK;
  *place = p->in;
  if (j->in_free && takes(j, p->in, p->in_size, need)) return TEGULA_OK;
  *place = p->out;
  if (to_out && left != 1) return TEGULA_OK;
  tegula__scratch *own =
      &decoder->place[decoder->place[0].data != NULL && decoder->place[0].data == j->stage.in];
  FORWARD(tegula__scratch_reserve(own, need + 1, err));
  *place = own->data;
  return TEGULA_OK;
}

/* Stage i is about to give `size` bytes, or gave them. */
static tegula_status check_size(const chain *c, int32_t i, size_t size, tegula_error *err) {
  if (c->exact[i] ? size == (uint64_t)c->before[i] : size <= (uint64_t)c->before[i])
    return TEGULA_OK;
  return tegula__codec_corrupt(err, c->codecs[i],
                               "the chunk comes to %zu bytes, expected %s%" PRId64, size,
                               c->exact[i] ? "" : "at most ", c->before[i]);
}

static tegula_status undo_stage(journey *j, int32_t i, tegula_error *err) {
  const chain *c = j->c;
  const tegula__codec *codec = c->codecs[i];
  tegula__stage *stage = &j->stage;
  size_t size = 0;
  if (codec == &tegula__codec_fletcher32) {
    FORWARD(tegula__fletcher32_check(stage->in, stage->in_size, err));
    stage->in_size -= TEGULA__FLETCHER32_BYTES;
    return check_size(c, i, stage->in_size, err);
  }
  if (codec->keeps_size) FORWARD(check_size(c, i, stage->in_size, err));
  if (codec->undo == NULL)
    return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1, "%s: this build has no %s", codec->name,
                        codec->library);
  if (codec->check) FORWARD(codec->check(c->filters[i], err));
  if (!writes(c, i, j->left_planes)) return TEGULA_OK;
  FORWARD(next_place(j, i, &stage->out, err));
  stage->filter = c->filters[i];
  stage->room = (size_t)c->before[i];
  stage->planes = i == 0 && j->left_planes;
  FORWARD(codec->undo(stage, &size, err));
  FORWARD(check_size(c, i, size, err));
  stage->in = stage->out;
  stage->in_size = size;
  return TEGULA_OK;
}

/* All stages; then what is wanted elsewhere is put there. */
static tegula_status travel(journey *j, tegula_error *err) {
  const tegula__passage *p = j->passage;
  tegula__stage *stage = &j->stage;
  for (int32_t i = j->c->count - 1; i >= 0; i--) FORWARD(undo_stage(j, i, err));
  if (stage->in_size != p->size)
    return tegula__fail(err, TEGULA_CORRUPT, NULL, -1, "the chunk has %zu bytes, expected %zu",
                        stage->in_size, p->size);
  if (p->out == NULL || stage->in == p->out) return TEGULA_OK;
  if (j->left_planes)
    tegula__unshuffle(stage->decoder->kernels, p->out, stage->in, p->size,
                      j->c->codecs[0]->planes(j->c->filters[0]));
  else
    memcpy(p->out, stage->in, p->size);
  return TEGULA_OK;
}

static tegula_status decode(tegula__decoder *decoder, const tegula__filter *filters, int32_t count,
                            uint32_t mask, const tegula__passage *passage, bool in_free,
                            tegula__decoded *decoded, tegula_error *err) {
  chain c;
  if (passage->size > INT64_MAX)
    return tegula__fail(err, TEGULA_LIMIT_EXCEEDED, NULL, -1, "a chunk of %zu bytes",
                        passage->size);
  set_up(&c, filters, count, mask, (int64_t)passage->size);
  journey j = {.c = &c,
               .passage = passage,
               .in_free = in_free,
               .stage = {.decoder = decoder, .in = passage->in, .in_size = passage->in_size}};
  if (passage->out != NULL)
    j.left_planes = leaves_planes(&c, passage->size, 0);
  else
    j.left_planes = passage->item > 0 && leaves_planes(&c, passage->size, passage->item);
  FORWARD(travel(&j, err));
  *decoded = (tegula__decoded){.data = passage->out != NULL ? passage->out : j.stage.in,
                               .planes = passage->out == NULL && j.left_planes};
  return TEGULA_OK;
}

size_t tegula__chain_room(int64_t decoded_size) {
  int64_t room = add_or_most(decoded_size, TEGULA__CHAIN_MAX * TEGULA__FLETCHER32_BYTES);
  return (uint64_t)room < SIZE_MAX ? (size_t)room : SIZE_MAX;
}

int64_t tegula__chain_own(const tegula__filter *filters, int32_t count, int64_t decoded_size,
                          size_t item) {
  chain c;
  set_up(&c, filters, count, 0, decoded_size);
  bool planes = item > 0 && leaves_planes(&c, (size_t)decoded_size, item);
  int32_t stages = 0;
  bool inner = false;
  for (int32_t i = 0; i < c.count; i++) {
    stages += writes(&c, i, planes);
    inner = inner || c.codecs[i] == &tegula__codec_blosc2 ||
            (c.codecs[i]->planes != NULL && !c.codecs[i]->only_planes && !planes);
  }
  return (stages > 1 ? c.before[c.count] : 0) + (inner ? decoded_size : 0);
}

tegula_status tegula__decode_with(tegula__decoder *decoder, const tegula__filter *filters,
                                  int32_t count, uint32_t mask, const tegula__passage *passage,
                                  tegula__decoded *decoded, tegula_error *err) {
  return decode(decoder, filters, count, mask, passage, true, decoded, err);
}

tegula_status tegula__decode(tegula__decoder *decoder, const tegula__filter *filters, int32_t count,
                             uint32_t mask, const void *in, size_t in_size, void *out,
                             size_t out_size, tegula_error *err) {
  char nothing[1] = {0}, none[1];
  tegula__decoded decoded;
  /* nothing is written to `in`: it is not free, and takes part without being const */
  tegula__passage passage = {.in = in != NULL ? (char *)(uintptr_t)in : nothing,
                             .in_size = in_size,
                             .out = out != NULL ? out : none,
                             .size = out_size};
  return decode(decoder, filters, count, mask, &passage, false, &decoded, err);
}
