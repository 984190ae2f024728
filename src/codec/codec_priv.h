/* codec_priv: what the codecs share: the row of the table, scratch memory, messages.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A codec that needs a library is compiled with TEGULA_HAVE_NAME; without it its row is there too,
 * as not available. */
#ifndef TEGULA_CODEC_CODEC_PRIV_H
#define TEGULA_CODEC_CODEC_PRIV_H

#include <string.h>

#include "codec/codec.h"

/* Memory that is kept and only grows. */
typedef struct tegula__scratch {
  char *data; /* starts at a cache line */
  size_t size;
} tegula__scratch;

struct tegula__decoder {
  const tegula__kernels *kernels;
  tegula__scratch place[2]; /* between two stages */
  tegula__scratch inner;    /* within one stage */
  void *deflate;            /* libdeflate's decompressor, made when first needed */
  void *zstd;               /* zstd's context, the same */
};

enum { TEGULA__LIBDEFLATE_LEVELS = 13 };
/* What encoders take where the filter does not say: as the HDF5 filters, or their usual users. */
enum {
  TEGULA__DEFLATE_LEVEL = 4,
  TEGULA__ZSTD_LEVEL = 3,
  TEGULA__LZ4_BLOCK = 1 << 30,
  TEGULA__BLOSC_LEVEL = 5
};
enum { TEGULA__LZ4_MOST = 0x7E000000 }; /* LZ4_MAX_INPUT_SIZE */
/* Parameters of blosc and blosc2 as encoders take them; compressors are numbered as in both
 * libraries. */
enum {
  TEGULA__BLOSC_ITEM,
  TEGULA__BLOSC_LEVEL_PARAM,
  TEGULA__BLOSC_SHUFFLE,
  TEGULA__BLOSC_COMPRESSOR
};

struct tegula__encoder {
  const tegula__kernels *kernels;
  tegula__scratch place; /* between two stages */
  tegula__scratch inner; /* within one stage */
  /* libdeflate's compressors by their level, made when first needed */
  void *deflate[TEGULA__LIBDEFLATE_LEVELS];
  void *zstd; /* zstd's context, the same */
};

/* One stage that is applied: `room` is what `most_encoded` says, or less than in_size where that is
 * absent. Addresses are never NULL. */
typedef struct tegula__encode_stage {
  tegula__encoder *encoder;
  const tegula__filter *filter;
  const char *in;
  size_t in_size;
  char *out;
  size_t room;
} tegula__encode_stage;

/* What a stage gives as its size where its output would not have fit in the room. */
#define TEGULA__SKIPPED SIZE_MAX

/* One stage that is undone: at most `room` bytes go to `out`. Addresses are never NULL. */
typedef struct tegula__stage {
  tegula__decoder *decoder;
  const tegula__filter *filter;
  const char *in;
  size_t in_size;
  char *out;
  size_t room;
  bool planes; /* the codec's `planes` are wanted as they are */
} tegula__stage;

typedef struct tegula__codec {
  const char *name;
  /* what a build needs for it, or what is to be found when it runs; NULL: nothing */
  const char *library;
  bool available;  /* this build had what it needs */
  bool keeps_size; /* as many bytes before as after it */
  int64_t most;    /* decoded bytes that its form can state; 0: any number */
  /* Is a library there that is opened only when it is needed? NULL: there is none. */
  bool (*found)(void);
  /* Are the parameters what an encoder can have used? NULL: none matter. */
  tegula_status (*check)(const tegula__filter *filter, tegula_error *err);
  /* Bytes that its form can be longer than `size` decoded bytes. NULL: as usual for a
   * compressor. */
  int64_t (*growth)(const tegula__filter *filter, int64_t size);
  /* The size of the items whose bytes its form, or what it decodes to, holds in planes, as a
   * shuffle does; 0: none. NULL: never. */
  size_t (*planes)(const tegula__filter *filter);
  bool only_planes; /* nothing but them: there is nothing to undo when planes are wanted */
  /* Undoes it; *size is how many bytes came. NULL: nothing is to be done. */
  tegula_status (*undo)(const tegula__stage *stage, size_t *size, tegula_error *err);
  /* Gives back what it keeps in the decoder; NULL: nothing. */
  void (*release)(tegula__decoder *decoder);
  /* Are the parameters what apply takes, beyond what check asks? NULL: yes. INVALID_ARGUMENT or
   * UNSUPPORTED. */
  tegula_status (*check_encode)(const tegula__filter *filter, tegula_error *err);
  /* The most bytes that `size` bytes can become. NULL: no more than they are, else the stage is
   * skipped. */
  int64_t (*most_encoded)(const tegula__filter *filter, int64_t size);
  /* Does it; *size is how many bytes came, or TEGULA__SKIPPED. NULL: it cannot. */
  tegula_status (*apply)(const tegula__encode_stage *stage, size_t *size, tegula_error *err);
  /* Gives back what it keeps in the encoder; NULL: nothing. */
  void (*release_encoder)(tegula__encoder *encoder);
} tegula__codec;

extern const tegula__codec tegula__codec_deflate, tegula__codec_shuffle, tegula__codec_fletcher32,
    tegula__codec_szip, tegula__codec_zstd, tegula__codec_lz4, tegula__codec_blosc,
    tegula__codec_blosc2, tegula__codec_bitshuffle, tegula__codec_lzf;

/* NULL: there is no such codec. */
const tegula__codec *tegula__codec_find(uint16_t codec);

/* The last bytes of `in` are the checksum of those before. */
enum { TEGULA__FLETCHER32_BYTES = 4 };
tegula_status tegula__fletcher32_check(const char *in, size_t in_size, tegula_error *err);
/* Puts the checksum behind the data. */
void tegula__fletcher32_append(char *data, size_t size);

/* At least `size` bytes; what was in it is lost. */
tegula_status tegula__scratch_reserve(tegula__scratch *scratch, size_t size, tegula_error *err);

/* Parameter `index`, `otherwise` where there are fewer. */
static inline uint32_t tegula__filter_param(const tegula__filter *filter, int index,
                                            uint32_t otherwise) {
  return filter->param_count > index ? filter->params[index] : otherwise;
}

/* INVALID_ARGUMENT unless the value is within the two ends; `what` is its name. */
tegula_status tegula__codec_range(tegula_error *err, const tegula__codec *codec, const char *what,
                                  uint32_t value, uint32_t least, uint32_t most);
/* INTERNAL: a library refused what it has no reason to. */
tegula_status tegula__codec_refused(tegula_error *err, const tegula__codec *codec,
                                    const tegula__encode_stage *stage);

/* Blosc's type size is one byte; the HDF5 filters take larger items as bytes. */
static inline uint32_t tegula__blosc_item(uint32_t item_size) {
  return item_size >= 1 && item_size <= 255 ? item_size : 1;
}

/* CORRUPT, the message begins with the codec's name. */
tegula_status tegula__codec_corrupt(tegula_error *err, const tegula__codec *codec,
                                    const char *format, ...) TEGULA__PRINTF(3, 4);
/* More than the room; `found` is what the stream states, 0 where it does not. */
tegula_status tegula__codec_too_large(tegula_error *err, const tegula__codec *codec,
                                      const tegula__stage *stage, uint64_t found);
/* Whatever else the library says. */
tegula_status tegula__codec_no_stream(tegula_error *err, const tegula__codec *codec,
                                      const tegula__stage *stage);

static inline uint32_t tegula__read_le32(const char *from) {
  uint32_t value;
  memcpy(&value, from, 4);
  return TEGULA__NATIVE_ORDER == '<' ? value : __builtin_bswap32(value);
}

static inline void tegula__write_le32(char *to, uint32_t value) {
  value = TEGULA__NATIVE_ORDER == '<' ? value : __builtin_bswap32(value);
  memcpy(to, &value, 4);
}

static inline void tegula__write_be32(char *to, uint32_t value) {
  tegula__write_le32(to, __builtin_bswap32(value));
}

static inline void tegula__write_be64(char *to, uint64_t value) {
  tegula__write_be32(to, (uint32_t)(value >> 32));
  tegula__write_be32(to + 4, (uint32_t)value);
}

static inline uint32_t tegula__read_be32(const char *from) {
  return __builtin_bswap32(tegula__read_le32(from));
}

static inline uint64_t tegula__read_be64(const char *from) {
  return (uint64_t)tegula__read_be32(from) << 32 | tegula__read_be32(from + 4);
}

#endif
