/* encode_chain: the stages of one chunk, applied from first to last.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Data move between `out` and one scratch of the same room, so that the last stage writes to `out`;
 * where a stage is skipped the order no longer fits, and one copy follows at the end. A checksum is
 * put behind the data where they are. */
#include <inttypes.h>

#include "codec/codec_priv.h"

static bool moves(const tegula__filter *filter) {
  return filter->codec != TEGULA__CODEC_NONE && filter->codec != TEGULA__CODEC_FLETCHER32;
}

static int64_t most_after(const tegula__filter *filter, int64_t size) {
  const tegula__codec *codec = tegula__codec_find(filter->codec);
  return codec && codec->most_encoded ? codec->most_encoded(filter, size) : size;
}

int64_t tegula__encode_bound(const tegula__filter *filters, int32_t count, int64_t size) {
  int64_t most = size;
  for (int32_t i = 0; i < count; i++) {
    size = most_after(&filters[i], size);
    most = tegula__max(most, size);
  }
  return most;
}

static tegula_status check_stage(const tegula__filter *filter, int64_t size, tegula_error *err) {
  const tegula__codec *codec = tegula__codec_find(filter->codec);
  if (moves(filter) && codec->apply == NULL)
    return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1, "%s: tegula cannot encode it",
                        codec->name);
  if (codec->most > 0 && size > codec->most)
    return tegula__hint(err,
                        tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                                     "%s: up to %" PRId64
                                     " bytes of a chunk, expected at most %" PRId64,
                                     codec->name, size, codec->most),
                        "take smaller chunks");
  /* of every filter of a kind, not only the first */
  if (codec->check) FORWARD(codec->check(filter, err));
  return codec->check_encode ? codec->check_encode(filter, err) : TEGULA_OK;
}

tegula_status tegula__encode_check(const tegula__filter *filters, int32_t count, int64_t size,
                                   tegula_error *err) {
  if (size < 0)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1, "a chunk of %" PRId64 " bytes",
                        size);
  if (count > 0 && size > UINT32_MAX)
    return tegula__hint(err,
                        tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                                     "a chunk of %" PRId64
                                     " bytes: codecs take chunks below 4 GiB (4294967296 bytes)",
                                     size),
                        "take smaller chunks");
  if (count > TEGULA__CHAIN_MAX)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "a chain of %d codecs, expected at most %d", count, TEGULA__CHAIN_MAX);
  tegula_status status = tegula__chain_check(filters, count, 0, err);
  for (int32_t i = 0; i < count && status == TEGULA_OK; i++) {
    status = check_stage(&filters[i], size, err);
    if (status == TEGULA_OK) size = most_after(&filters[i], size);
  }
  if (status != TEGULA_CORRUPT) return status;
  /* nothing is read here: it is what the caller asks for */
  if (err) err->status = TEGULA_INVALID_ARGUMENT;
  return TEGULA_INVALID_ARGUMENT;
}

typedef struct run {
  tegula__encoder *encoder;
  const char *data; /* now: the caller's, in `out`, or in the scratch */
  size_t size;
  char *out;
  size_t room; /* of `out` and of the scratch */
} run;

/* Where the next stage puts its bytes, `left` more stages that move them following. */
static tegula_status next_place(run *r, int32_t left, char **place, tegula_error *err) {
  tegula__scratch *scratch = &r->encoder->place;
  *place = r->out;
  if (r->data != r->out && (left % 2 == 0 || r->data == scratch->data)) return TEGULA_OK;
  FORWARD(tegula__scratch_reserve(scratch, r->room, err)); /* no data are in it */
  *place = scratch->data;
  return TEGULA_OK;
}

static tegula_status append_checksum(run *r, const void *in, int32_t left, tegula_error *err) {
  char *place = (char *)(uintptr_t)r->data;
  if (r->data == in) { /* not ours to write behind */
    FORWARD(next_place(r, left + 1, &place, err));
    memcpy(place, r->data, r->size);
    r->data = place;
  }
  tegula__fletcher32_append(place, r->size);
  r->size += TEGULA__FLETCHER32_BYTES;
  return TEGULA_OK;
}

static tegula_status apply_stage(run *r, const tegula__filter *filter, int32_t left, bool *skipped,
                                 tegula_error *err) {
  const tegula__codec *codec = tegula__codec_find(filter->codec);
  tegula__encode_stage stage = {
      .encoder = r->encoder, .filter = filter, .in = r->data, .in_size = r->size, .room = r->size};
  size_t size = 0;
  *skipped = r->size == 0; /* nothing is shorter */
  if (*skipped) return TEGULA_OK;
  if (!codec->keeps_size)
    stage.room =
        codec->most_encoded ? (size_t)codec->most_encoded(filter, (int64_t)r->size) : r->size - 1;
  FORWARD(next_place(r, left, &stage.out, err));
  FORWARD(codec->apply(&stage, &size, err));
  *skipped = size == TEGULA__SKIPPED;
  if (*skipped) return TEGULA_OK;
  r->data = stage.out;
  r->size = size;
  return TEGULA_OK;
}

tegula_status tegula__encode(tegula__encoder *encoder, const tegula__filter *filters, int32_t count,
                             const void *in, size_t in_size, void *out, size_t out_room,
                             size_t *size, uint32_t *mask, tegula_error *err) {
  char nothing[1] = {0};
  int32_t left = 0;
  if (in == NULL) in = nothing;
  if (out == NULL) out = nothing;
  int64_t bound =
      in_size <= INT64_MAX ? tegula__encode_bound(filters, count, (int64_t)in_size) : INT64_MAX;
  if ((uint64_t)bound > out_room)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "room for %zu bytes of an encoded chunk, expected %" PRId64, out_room,
                        bound);
  run r = {.encoder = encoder, .data = in, .size = in_size, .out = out, .room = (size_t)bound};
  for (int32_t i = 0; i < count; i++) left += moves(&filters[i]);
  *mask = 0;
  for (int32_t i = 0; i < count; i++) {
    bool skipped = false;
    if (filters[i].codec == TEGULA__CODEC_FLETCHER32) FORWARD(append_checksum(&r, in, left, err));
    if (!moves(&filters[i])) continue;
    FORWARD(apply_stage(&r, &filters[i], --left, &skipped, err));
    *mask |= (uint32_t)skipped << i;
  }
  *size = r.size;
  bound = tegula__chain_bound(filters, count, (int64_t)in_size);
  if ((uint64_t)bound < r.size) /* tiny blocks, many stages */
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "%zu bytes of a chunk became %zu, and readers take at most %" PRId64,
                        in_size, r.size, bound);
  if (r.data != out) memcpy(out, r.data, r.size);
  return TEGULA_OK;
}
