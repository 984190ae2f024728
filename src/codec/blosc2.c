/* blosc2: HDF5 filter 32026, a contiguous frame of c-blosc2 with one chunk, or with an array (metalayer "b2nd", once "caterva") that
 * fills one chunk of the dataset.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "codec/codec_priv.h"

#ifdef TEGULA_HAVE_BLOSC2
#include <b2nd.h>
#include <blosc2.h>
#include <pthread.h>

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

const tegula__codec tegula__codec_blosc2 = {
    .name = "blosc2", .library = "libblosc2", .available = true, .most = BLOSC2_MAX_BUFFERSIZE, .growth = growth, .undo = undo};
#else
const tegula__codec tegula__codec_blosc2 = {.name = "blosc2", .library = "libblosc2"};
#endif
