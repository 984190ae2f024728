/* Texts and packed manifests of rank 0, sent to all ranks: compressed where they are long.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "dist/share_text.h"

enum { COMPRESS_FROM = 64 << 10, SMALL = 16 << 10 }; /* bytes */

static const tegula__filter packers[] = {
    {.codec = TEGULA__CODEC_ZSTD, .param_count = 1, .params = {1}},
    {.codec = TEGULA__CODEC_DEFLATE, .param_count = 1, .params = {1}}};

static const tegula__filter *packer_of(int64_t codec) {
  for (size_t i = 0; i < sizeof packers / sizeof packers[0]; i++)
    if (packers[i].codec == codec && tegula__codec_available(packers[i].codec)) return &packers[i];
  return NULL;
}

void tegula__parcel_compress(const tegula_context *context, char **text, tegula__parcel *p) {
  const tegula__filter *packer = packer_of(TEGULA__CODEC_ZSTD) != NULL ? &packers[0] : &packers[1];
  p->sent = p->size;
  p->codec = TEGULA__CODEC_NONE;
  if (p->size < COMPRESS_FROM || tegula__encode_check(packer, 1, p->size, NULL) != TEGULA_OK)
    return;
  int64_t room = tegula__encode_bound(packer, 1, p->size);
  tegula__encoder *encoder = tegula__encoder_create(context->engine.kernels);
  char *packed = room < INT64_MAX ? malloc((size_t)room) : NULL;
  size_t size = 0;
  uint32_t mask = 0;
  bool good = encoder != NULL && packed != NULL &&
              tegula__encode(encoder, packer, 1, *text, (size_t)p->size, packed, (size_t)room,
                             &size, &mask, NULL) == TEGULA_OK &&
              mask == 0 && (int64_t)size < p->size;
  tegula__encoder_destroy(encoder);
  if (good) {
    free(*text);
    *text = packed;
    p->sent = (int64_t)size;
    p->codec = packer->codec;
  } else {
    free(packed);
  }
}

tegula_status tegula__parcel_decompress(const tegula_context *context, char **text,
                                        const tegula__parcel *p, tegula_error *err) {
  if (p->codec == TEGULA__CODEC_NONE) return TEGULA_OK;
  const tegula__filter *packer = packer_of(p->codec);
  if (packer == NULL)
    return tegula__fail(
        err, TEGULA_UNSUPPORTED, NULL, -1,
        "rank 0 has compressed what it sends by a codec that this rank does not have");
  tegula__decoder *decoder = tegula__decoder_create(context->engine.kernels);
  char *whole = malloc((size_t)p->size);
  tegula_status status = decoder != NULL && whole != NULL
                             ? tegula__decode(decoder, packer, 1, 0, *text, (size_t)p->sent, whole,
                                              (size_t)p->size, err)
                             : tegula__out_of_memory(err, p->size);
  tegula__decoder_destroy(decoder);
  free(*text);
  *text = whole;
  return status;
}

tegula_status tegula__parcel_send(tegula_context *context, char **text, tegula__parcel *p,
                                  tegula_status mine, tegula_error *err) {
  tegula_comm *comm = context->comm;
  bool receives = comm->rank != 0;
  int64_t words[3] = {p->size, p->sent, p->codec};
  if (mine == TEGULA_OK && receives && (*text = malloc(SMALL)) == NULL)
    mine = tegula__out_of_memory(err, SMALL);
  /* those of the others are 0 */
  FORWARD(tegula__comm_agree_values(comm, NULL, mine, words, 3, err));
  *p = (tegula__parcel){.size = words[0], .sent = words[1], .codec = words[2]};
  if (p->size == 0) return TEGULA_OK;
  if (p->sent > SMALL) {
    char *more = receives ? realloc(*text, (size_t)p->sent) : *text;
    if (more != NULL) *text = more;
    FORWARD(tegula__comm_agree(comm, more != NULL ? TEGULA_OK : tegula__out_of_memory(err, p->sent),
                               err));
  }
  tegula_status status = tegula__comm_broadcast(comm, *text, p->sent, 0, err);
  if (status != TEGULA_OK) *text = NULL; /* kept: a transfer that is not done may write to it */
  return status;
}

tegula_status tegula__share_text(tegula_context *context, char **text, size_t *size,
                                 tegula_error *err) {
  tegula__parcel p = {.size = *text != NULL ? (int64_t)*size : 0};
  if (*text != NULL) tegula__parcel_compress(context, text, &p);
  FORWARD(tegula__parcel_send(context, text, &p, TEGULA_OK, err));
  tegula_status status = tegula__parcel_decompress(context, text, &p, err);
  *size = (size_t)p.size;
  return status;
}
