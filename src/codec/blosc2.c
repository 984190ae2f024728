/* blosc2: HDF5 filter 32026, a contiguous frame of c-blosc2 with one chunk, or with an array (metalayer "b2nd", once "caterva") that
 * fills one chunk of the dataset.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "codec/codec_priv.h"

#ifdef TEGULA_HAVE_BLOSC2
#include <b2nd.h>
#include <blosc2.h>
#include <pthread.h>
#include <stdlib.h>

/* The library fills its tables of codecs once and not thread safely. */
static pthread_once_t ready = PTHREAD_ONCE_INIT;

/* Memory that decoding takes must be in proportion: blocks may reach beyond the array's edge, not far. */
static bool in_proportion(const blosc2_schunk *frame, size_t room) {
  return frame->chunksize >= 0 && frame->chunksize / 16 <= (int64_t)tegula__min((int64_t)(room / 2), INT32_MAX) + (64 << 10);
}

static bool undo_array(const tegula__stage *stage, b2nd_array_t *array, size_t *size) {
  int64_t start[B2ND_MAX_DIM] = {0}, bytes = array->sc->typesize;
  for (int8_t k = 0; k < array->ndim; k++)
    if (!tegula__mul(bytes, array->shape[k], &bytes)) return false;
  *size = (size_t)bytes;
  return *size <= stage->room && b2nd_get_slice_cbuffer(array, start, array->shape, stage->out, array->shape, bytes) >= 0;
}

static bool undo_chunk(const tegula__stage *stage, blosc2_schunk *frame, size_t *size) {
  if (frame->nchunks != 1 || frame->nbytes < 0 || (uint64_t)frame->nbytes > stage->room) return false;
  int got = blosc2_schunk_decompress_chunk(frame, 0, stage->out, (int32_t)tegula__min((int64_t)stage->room, INT32_MAX));
  *size = got < 0 ? 0 : (size_t)got;
  return got >= 0 && got == frame->nbytes;
}

static tegula_status undo(const tegula__stage *stage, size_t *size, tegula_error *err) {
  pthread_once(&ready, blosc2_init);
  /* nothing is written to the frame: it is not copied, and the library takes no const */
  blosc2_schunk *frame = blosc2_schunk_from_buffer((uint8_t *)(uintptr_t)stage->in, (int64_t)stage->in_size, false);
  if (frame == NULL) return tegula__codec_no_stream(err, &tegula__codec_blosc2, stage);
  bool good = in_proportion(frame, stage->room);
  if (good && (blosc2_meta_exists(frame, "b2nd") >= 0 || blosc2_meta_exists(frame, "caterva") >= 0)) {
    b2nd_array_t *array = NULL;
    good = b2nd_from_schunk(frame, &array) >= 0;
    if (good) frame = NULL; /* the array's now */
    good = good && undo_array(stage, array, size);
    if (array) b2nd_free(array);
  } else if (good) {
    good = undo_chunk(stage, frame, size);
  }
  if (frame) blosc2_schunk_free(frame);
  return good ? TEGULA_OK : tegula__codec_no_stream(err, &tegula__codec_blosc2, stage);
}

/* Blocks that reach beyond the edge may be stored as they are. */
static int64_t growth(const tegula__filter *filter, int64_t size) {
  (void)filter;
  return size < INT64_MAX / 4 ? 2 * size + (64 << 10) : INT64_MAX;
}

static tegula_status check_encode(const tegula__filter *filter, tegula_error *err) {
  const tegula__codec *codec = &tegula__codec_blosc2;
  const char *name = NULL;
  uint32_t compressor = tegula__filter_param(filter, TEGULA__BLOSC_COMPRESSOR, BLOSC_BLOSCLZ);
  FORWARD(tegula__codec_range(err, codec, "level", tegula__filter_param(filter, TEGULA__BLOSC_LEVEL_PARAM, TEGULA__BLOSC_LEVEL), 0, 9));
  FORWARD(tegula__codec_range(err, codec, "shuffle", tegula__filter_param(filter, TEGULA__BLOSC_SHUFFLE, BLOSC_SHUFFLE), 0, 2));
  FORWARD(tegula__codec_range(err, codec, "compressor", compressor, BLOSC_BLOSCLZ, BLOSC_ZSTD));
  pthread_once(&ready, blosc2_init);
  if (blosc2_compcode_to_compname((int)compressor, &name) >= 0) return TEGULA_OK;
  return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1, "blosc2: this libblosc2 has no compressor %u, only %s", compressor,
                      blosc2_list_compressors());
}

enum { FRAME = 4096 }; /* more than header, offsets and trailer of a frame with one chunk */

static int64_t most_encoded(const tegula__filter *filter, int64_t size) {
  (void)filter;
  return tegula__add(size, FRAME, &size) ? size : INT64_MAX;
}

/* Item sizes that do not divide the chunk (it comes from another compressor) confuse the library. */
static blosc2_schunk *new_frame(const tegula__filter *filter, size_t size) {
  blosc2_cparams how = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams back = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_storage storage = {.contiguous = true, .cparams = &how, .dparams = &back};
  how.typesize = (int32_t)tegula__blosc_item(tegula__filter_param(filter, TEGULA__BLOSC_ITEM, 1));
  if (size % (size_t)how.typesize != 0) how.typesize = 1;
  how.clevel = (uint8_t)tegula__filter_param(filter, TEGULA__BLOSC_LEVEL_PARAM, TEGULA__BLOSC_LEVEL);
  how.compcode = (uint8_t)tegula__filter_param(filter, TEGULA__BLOSC_COMPRESSOR, BLOSC_BLOSCLZ);
  how.filters[BLOSC2_MAX_FILTERS - 1] = (uint8_t)tegula__filter_param(filter, TEGULA__BLOSC_SHUFFLE, BLOSC_SHUFFLE);
  how.nthreads = back.nthreads = 1;
  return blosc2_schunk_new(&storage);
}

static tegula_status apply(const tegula__encode_stage *stage, size_t *size, tegula_error *err) {
  uint8_t *stored = NULL;
  bool ours = false, good = false;
  pthread_once(&ready, blosc2_init);
  blosc2_schunk *frame = new_frame(stage->filter, stage->in_size);
  if (frame == NULL) return tegula__out_of_memory(err, (int64_t)stage->in_size);
  if (blosc2_schunk_append_buffer(frame, stage->in, (int32_t)stage->in_size) == 1) {
    int64_t got = blosc2_schunk_to_buffer(frame, &stored, &ours);
    good = got > 0 && (uint64_t)got <= stage->room;
    if (good) memcpy(stage->out, stored, (size_t)got);
    if (good) *size = (size_t)got;
  }
  if (ours) free(stored);
  blosc2_schunk_free(frame);
  return good ? TEGULA_OK : tegula__codec_refused(err, &tegula__codec_blosc2, stage);
}

const tegula__codec tegula__codec_blosc2 = {.name = "blosc2",
                                            .library = "libblosc2",
                                            .available = true,
                                            .most = BLOSC2_MAX_BUFFERSIZE,
                                            .growth = growth,
                                            .undo = undo,
                                            .check_encode = check_encode,
                                            .most_encoded = most_encoded,
                                            .apply = apply};
#else
const tegula__codec tegula__codec_blosc2 = {.name = "blosc2", .library = "libblosc2"};
#endif
