/* blosc2: HDF5 filter 32026, a contiguous frame of c-blosc2 with one chunk, or with an array
 * (metalayer "b2nd", once "caterva") that fills one chunk of the dataset.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The library is opened when a dataset in Blosc2 is first met, under the name
 * (TEGULA_BLOSC2_SONAME) that stands for the binary interface of the headers compiled with. Linked,
 * the one in the Python package would put its own copies of LZ4 and zstd before ours, and programs
 * would not start where it is absent.
 *
 * It has codecs that are plugins: for these it runs `python` to ask where they are, because a chunk
 * says so. No such chunk reaches it. */
#include "codec/codec_priv.h"

#ifdef TEGULA_HAVE_BLOSC2
#include <b2nd.h>
#include <blosc2.h>
#include <blosc2/codecs-registry.h>
#include <blosc2/filters-registry.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

/* What is called of the library; written once, before anything reads it. */
static struct {
  bool found;
  __typeof__(&blosc2_init) init;
  __typeof__(&blosc2_schunk_from_buffer) frame_open;
  __typeof__(&blosc2_schunk_free) frame_close;
  __typeof__(&blosc2_schunk_get_chunk) chunk;
  __typeof__(&blosc2_schunk_decompress_chunk) decompress;
  __typeof__(&blosc2_schunk_new) frame_new;
  __typeof__(&blosc2_schunk_append_buffer) append;
  __typeof__(&blosc2_schunk_to_buffer) frame_bytes;
  __typeof__(&blosc2_compcode_to_compname) compressor_name;
  __typeof__(&blosc2_list_compressors) compressors;
  __typeof__(&b2nd_from_schunk) array_open;
  __typeof__(&b2nd_free) array_close;
  __typeof__(&b2nd_get_slice_cbuffer) array_read;
} library;

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* It stays open: whether it survives being unloaded is its own affair. */
static void open_library(void) {
  const struct {
    const char *name;
    void *place;
  } functions[] = {{"blosc2_init", &library.init},
                   {"blosc2_schunk_from_buffer", &library.frame_open},
                   {"blosc2_schunk_free", &library.frame_close},
                   {"blosc2_schunk_get_chunk", &library.chunk},
                   {"blosc2_schunk_decompress_chunk", &library.decompress},
                   {"blosc2_schunk_new", &library.frame_new},
                   {"blosc2_schunk_append_buffer", &library.append},
                   {"blosc2_schunk_to_buffer", &library.frame_bytes},
                   {"blosc2_compcode_to_compname", &library.compressor_name},
                   {"blosc2_list_compressors", &library.compressors},
                   {"b2nd_from_schunk", &library.array_open},
                   {"b2nd_free", &library.array_close},
                   {"b2nd_get_slice_cbuffer", &library.array_read}};
  void *object = dlopen(TEGULA_BLOSC2_SONAME, RTLD_NOW | RTLD_LOCAL);
  bool all = object != NULL;
  for (size_t i = 0; all && i < sizeof functions / sizeof *functions; i++) {
    void *function = dlsym(object, functions[i].name);
    memcpy(functions[i].place, &function, sizeof function);
    all = function != NULL;
  }
  if (all) library.init(); /* fills its tables of codecs, not thread safely */
  library.found = all;
}

static bool found(void) {
  pthread_once(&once, open_library);
  return library.found;
}

static tegula_status not_found(tegula_error *err) {
  return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                      "blosc2: no " TEGULA_BLOSC2_SONAME " was found");
}

/* Memory that decoding takes must be in proportion: blocks and chunks may reach beyond the array's
 * edge, not far. */
static bool in_proportion(const blosc2_schunk *frame, size_t room) {
  int64_t most = tegula__min((int64_t)(room / 2), INT32_MAX) + (64 << 10);
  return frame->chunksize >= 0 && frame->chunksize / 16 <= most && frame->nchunks >= 0 &&
         frame->nchunks / 2 <= most;
}

/* A chunk's header of 32 bytes: are its codec and filters those that the library has in itself, and
 * were its values set? */
static tegula_status check_chunk(const uint8_t *header, tegula_error *err) {
  enum {
    EXTENDED = BLOSC_DOSHUFFLE | BLOSC_DOBITSHUFFLE,
    CODEC = BLOSC2_CHUNK_FILTER_CODES + BLOSC2_MAX_FILTERS
  };
  bool extended = (header[BLOSC2_CHUNK_FLAGS] & EXTENDED) == EXTENDED;
  unsigned codec = header[BLOSC2_CHUNK_FLAGS] >> 5;
  if (codec == BLOSC_UDCODEC_FORMAT && extended) codec = header[CODEC];
  if (codec > BLOSC_ZSTD && (codec < BLOSC_CODEC_NDLZ || codec > BLOSC_CODEC_ZFP_FIXED_RATE))
    return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                        "blosc2: codec %u is a plugin, expected one that libblosc2 has itself",
                        codec);
  for (int k = 0; extended && k < BLOSC2_MAX_FILTERS; k++) {
    unsigned filter = header[BLOSC2_CHUNK_FILTER_CODES + k];
    if (filter >= BLOSC_LAST_FILTER &&
        (filter < BLOSC_FILTER_NDCELL || filter > BLOSC_FILTER_INT_TRUNC))
      return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                          "blosc2: filter %u is a plugin, expected one that libblosc2 has itself",
                          filter);
  }
  if (extended &&
      (header[BLOSC2_CHUNK_BLOSC2_FLAGS] >> 4 & BLOSC2_SPECIAL_MASK) == BLOSC2_SPECIAL_UNINIT)
    return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                        "blosc2: a chunk whose values were never set");
  return TEGULA_OK;
}

/* The index of a frame is a chunk too, behind all others. */
static tegula_status check_index(const tegula__stage *stage, tegula_error *err) {
  enum { HEADER_LENGTH = 11, STORED_BYTES = 39, LEAST = 87, HEADER = BLOSC_EXTENDED_HEADER_LENGTH };
  if (stage->in_size < LEAST + HEADER)
    return tegula__codec_no_stream(err, &tegula__codec_blosc2, stage);
  uint64_t first = tegula__read_be32(stage->in + HEADER_LENGTH),
           stored = tegula__read_be64(stage->in + STORED_BYTES);
  uint64_t most = stage->in_size - HEADER;
  if (first > most || stored > most - first)
    return tegula__codec_no_stream(err, &tegula__codec_blosc2, stage);
  return check_chunk((const uint8_t *)stage->in + first + stored, err);
}

static tegula_status check_chunks(const tegula__stage *stage, blosc2_schunk *frame,
                                  tegula_error *err) {
  tegula_status status = TEGULA_OK;
  for (int64_t k = 0; status == TEGULA_OK && k < frame->nchunks; k++) {
    uint8_t *chunk = NULL;
    bool ours = false;
    int stored = library.chunk(frame, k, &chunk, &ours);
    if (stored < BLOSC_MIN_HEADER_LENGTH)
      status = tegula__codec_no_stream(err, &tegula__codec_blosc2, stage);
    else {
      uint8_t header[BLOSC_EXTENDED_HEADER_LENGTH] = {0};
      memcpy(header, chunk, tegula__min(stored, BLOSC_EXTENDED_HEADER_LENGTH));
      status = check_chunk(header, err);
    }
    if (ours) free(chunk);
  }
  return status;
}

static bool undo_array(const tegula__stage *stage, b2nd_array_t *array, size_t *size) {
  int64_t start[B2ND_MAX_DIM] = {0}, bytes = array->sc->typesize;
  for (int8_t k = 0; k < array->ndim; k++)
    if (!tegula__mul(bytes, array->shape[k], &bytes)) return false;
  *size = (size_t)bytes;
  return *size <= stage->room &&
         library.array_read(array, start, array->shape, stage->out, array->shape, bytes) >= 0;
}

static bool undo_chunk(const tegula__stage *stage, blosc2_schunk *frame, size_t *size) {
  if (frame->nchunks != 1 || frame->nbytes < 0 || (uint64_t)frame->nbytes > stage->room)
    return false;
  int got = library.decompress(frame, 0, stage->out,
                               (int32_t)tegula__min((int64_t)stage->room, INT32_MAX));
  *size = got < 0 ? 0 : (size_t)got;
  return got >= 0 && got == frame->nbytes;
}

static bool is_array(blosc2_schunk *frame) {
  return blosc2_meta_exists(frame, "b2nd") >= 0 || blosc2_meta_exists(frame, "caterva") >= 0;
}

static tegula_status undo(const tegula__stage *stage, size_t *size, tegula_error *err) {
  if (!found()) return not_found(err);
  FORWARD(check_index(stage, err));
  /* nothing is written to the frame: it is not copied, and the library takes no const */
  blosc2_schunk *frame =
      library.frame_open((uint8_t *)(uintptr_t)stage->in, (int64_t)stage->in_size, false);
  if (frame == NULL) return tegula__codec_no_stream(err, &tegula__codec_blosc2, stage);
  bool good = in_proportion(frame, stage->room);
  tegula_status status = good ? check_chunks(stage, frame, err) : TEGULA_OK;
  if (status != TEGULA_OK) {
    library.frame_close(frame);
    return status;
  }
  if (good && is_array(frame)) {
    b2nd_array_t *array = NULL;
    good = library.array_open(frame, &array) >= 0;
    if (good) frame = NULL; /* the array's now */
    good = good && undo_array(stage, array, size);
    if (array) library.array_close(array);
  } else if (good) {
    good = undo_chunk(stage, frame, size);
  }
  if (frame) library.frame_close(frame);
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
  FORWARD(tegula__codec_range(
      err, codec, "level",
      tegula__filter_param(filter, TEGULA__BLOSC_LEVEL_PARAM, TEGULA__BLOSC_LEVEL), 0, 9));
  FORWARD(tegula__codec_range(err, codec, "shuffle",
                              tegula__filter_param(filter, TEGULA__BLOSC_SHUFFLE, BLOSC_SHUFFLE), 0,
                              2));
  FORWARD(tegula__codec_range(err, codec, "compressor", compressor, BLOSC_BLOSCLZ, BLOSC_ZSTD));
  if (!found()) return not_found(err);
  if (library.compressor_name((int)compressor, &name) >= 0) return TEGULA_OK;
  return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                      "blosc2: this libblosc2 has no compressor %u, only %s", compressor,
                      library.compressors());
}

enum { FRAME = 4096 }; /* more than header, offsets and trailer of a frame with one chunk */

static int64_t most_encoded(const tegula__filter *filter, int64_t size) {
  (void)filter;
  return tegula__add(size, FRAME, &size) ? size : INT64_MAX;
}

/* Item sizes that do not divide the chunk (it comes from another compressor) confuse the
 * library. */
static blosc2_schunk *new_frame(const tegula__filter *filter, size_t size) {
  blosc2_cparams how = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams back = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_storage storage = {.contiguous = true, .cparams = &how, .dparams = &back};
  how.typesize = (int32_t)tegula__blosc_item(tegula__filter_param(filter, TEGULA__BLOSC_ITEM, 1));
  if (size % (size_t)how.typesize != 0) how.typesize = 1;
  how.clevel =
      (uint8_t)tegula__filter_param(filter, TEGULA__BLOSC_LEVEL_PARAM, TEGULA__BLOSC_LEVEL);
  how.compcode = (uint8_t)tegula__filter_param(filter, TEGULA__BLOSC_COMPRESSOR, BLOSC_BLOSCLZ);
  how.filters[BLOSC2_MAX_FILTERS - 1] =
      (uint8_t)tegula__filter_param(filter, TEGULA__BLOSC_SHUFFLE, BLOSC_SHUFFLE);
  how.nthreads = back.nthreads = 1;
  return library.frame_new(&storage);
}

static tegula_status apply(const tegula__encode_stage *stage, size_t *size, tegula_error *err) {
  uint8_t *stored = NULL;
  bool ours = false, good = false;
  if (!found()) return not_found(err);
  blosc2_schunk *frame = new_frame(stage->filter, stage->in_size);
  if (frame == NULL) return tegula__out_of_memory(err, (int64_t)stage->in_size);
  if (library.append(frame, stage->in, (int32_t)stage->in_size) == 1) {
    int64_t got = library.frame_bytes(frame, &stored, &ours);
    good = got > 0 && (uint64_t)got <= stage->room;
    if (good) memcpy(stage->out, stored, (size_t)got);
    if (good) *size = (size_t)got;
  }
  if (ours) free(stored);
  library.frame_close(frame);
  return good ? TEGULA_OK : tegula__codec_refused(err, &tegula__codec_blosc2, stage);
}

const tegula__codec tegula__codec_blosc2 = {.name = "blosc2",
                                            .library = TEGULA_BLOSC2_SONAME,
                                            .available = true,
                                            .most = BLOSC2_MAX_BUFFERSIZE,
                                            .found = found,
                                            .growth = growth,
                                            .undo = undo,
                                            .check_encode = check_encode,
                                            .most_encoded = most_encoded,
                                            .apply = apply};
#else
const tegula__codec tegula__codec_blosc2 = {.name = "blosc2", .library = "libblosc2"};
#endif
