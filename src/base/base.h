/* base: what every other folder stands on: errors, checked size arithmetic, dtypes, boxes, growable
 * memory with a maximum.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Nothing here knows about files or arrays. All functions are thread safe on distinct objects.
 *
 * Begin reading here; error.c makes the messages, pool.h the threads, json.h the JSON with limits.
 * The folder includes no other. */
#ifndef TEGULA_BASE_BASE_H
#define TEGULA_BASE_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tegula/tegula.h>

/* ---- error flow: three macros, nothing else hides control flow ---- */

#define RETURN_IF(condition, value)                                                                \
  do {                                                                                             \
    if (condition) return (value);                                                                 \
  } while (0)

/* Hands a failure on. */
#define FORWARD(expression)                                                                        \
  do {                                                                                             \
    tegula_status status_ = (expression);                                                          \
    if (status_ != TEGULA_OK) return status_;                                                      \
  } while (0)

/* The same where something is to be released: sets `status` and jumps to `done`. */
#define FORWARD_WITH(status, expression)                                                           \
  do {                                                                                             \
    (status) = (expression);                                                                       \
    if ((status) != TEGULA_OK) goto done;                                                          \
  } while (0)

#define TEGULA__PRINTF(text, first) __attribute__((format(printf, text, first)))

/* Fills `err` (may be NULL) and returns `status`. `path` may be NULL, `offset` is -1 where there is
 * none. The path is a field of its own: the message names it too where a reader needs it. */
tegula_status tegula__fail(tegula_error *err, tegula_status status, const char *path,
                           int64_t offset, const char *format, ...) TEGULA__PRINTF(5, 6);
/* From an errno value: picks the status (ENOENT not_found, EACCES permission, ENOMEM out_of_memory,
 * ... else io) and appends the system's text: "could not open "x": No such file or directory". */
tegula_status tegula__fail_errno(tegula_error *err, int os_errno, const char *path, int64_t offset,
                                 const char *format, ...) TEGULA__PRINTF(5, 6);
/* Adds a hint and passes `status` through: return tegula__hint(err, tegula__fail(...), "..."). */
tegula_status tegula__hint(tegula_error *err, tegula_status status, const char *format, ...)
    TEGULA__PRINTF(3, 4);
tegula_status tegula__out_of_memory(tegula_error *err, int64_t bytes);
void tegula__error_clear(tegula_error *err);

/* ---- checked arithmetic on sizes: false when the result does not fit in 63 bits or an operand is
 * negative ---- */

static inline bool tegula__add(int64_t a, int64_t b, int64_t *out) {
  return a >= 0 && b >= 0 && !__builtin_add_overflow(a, b, out);
}

static inline bool tegula__mul(int64_t a, int64_t b, int64_t *out) {
  return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, out);
}

static inline int64_t tegula__min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t tegula__max(int64_t a, int64_t b) { return a > b ? a : b; }
/* a / b rounded up; a >= 0, b > 0 */
static inline int64_t tegula__ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/* Elements of a shape (1 for no axes). Also false when the product of the non-zero lengths
 * overflows: a shape like (0, 2^62, 2^62) cannot be strided over. */
bool tegula__shape_count(const int64_t *shape, int32_t ndim, int64_t *count);
/* Bytes of a dense array. */
bool tegula__shape_bytes(const int64_t *shape, int32_t ndim, uint32_t item_size, int64_t *bytes);
/* Byte strides of a dense array; order 'C' or 'F'. The shape has passed tegula__shape_bytes. */
void tegula__dense_strides(const int64_t *shape, int32_t ndim, uint32_t item_size, char order,
                           int64_t *strides);
/* "(3, 4)", "(5,)", "()": numpy's text, cut with "..." when it does not fit. */
#define TEGULA__SHAPE_TEXT 256
void tegula__shape_format(const int64_t *shape, int32_t ndim, char out[TEGULA__SHAPE_TEXT]);

/* ---- boxes in compact form: two vectors of ndim entries, half open ---- */

/* Intersection into (lo, hi); false when it is empty (for ndim 0 never): then the outputs are of no
 * use. Outputs may alias inputs. */
bool tegula__box_intersect(int32_t ndim, const int64_t *a_lo, const int64_t *a_hi,
                           const int64_t *b_lo, const int64_t *b_hi, int64_t *lo, int64_t *hi);
/* Elements of a box that lies within a checked shape. */
int64_t tegula__box_count(int32_t ndim, const int64_t *lo, const int64_t *hi);

/* A tile's memory in compact form: the element at `lo` is at `data`. The vectors belong to whoever
 * made the tile. */
typedef struct tegula__tile {
  const int64_t *lo;
  const int64_t *hi;
  const int64_t *strides;
  char *data;
  uint8_t order; /* byte order of what the memory holds: '<', '>' or '|' */
} tegula__tile;

/* ---- dtypes ---- */

#define TEGULA__NATIVE_ORDER (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>')

/* Bytes that are reversed as one group when the byte order changes: 8 for c16, 4 for U, 1 where
 * nothing is swapped. */
uint32_t tegula__dtype_swap_size(tegula_dtype dtype);
/* Is this a value that tegula_dtype_parse could have given? For dtypes that come from a caller. */
bool tegula__dtype_valid(tegula_dtype dtype);

/* ---- memory that grows up to a stated maximum ---- */

typedef struct tegula__buffer {
  char *data;
  size_t size;
  size_t capacity;
  size_t maximum; /* growing beyond it fails */
} tegula__buffer;

void tegula__buffer_init(tegula__buffer *buffer, size_t maximum);
void tegula__buffer_free(tegula__buffer *buffer);
/* Room for `more` further bytes; false on lack of memory or above the maximum. */
bool tegula__buffer_reserve(tegula__buffer *buffer, size_t more);
bool tegula__buffer_append(tegula__buffer *buffer, const void *data, size_t size);
bool tegula__buffer_printf(tegula__buffer *buffer, const char *format, ...) TEGULA__PRINTF(2, 3);
/* Text as a JSON string, quotes included; bytes that are no UTF-8 become U+FFFD. NULL gives
 * null. */
bool tegula__buffer_json_text(tegula__buffer *buffer, const char *text);

/* ---- several texts as one, for another process: each with its zero byte, the only byte that no
 * text holds ---- */

bool tegula__texts_append(tegula__buffer *buffer, const char *text);
int64_t tegula__texts_count(const char *data, size_t size);
/* The text at *at, which is moved behind it; NULL at the end, and where no zero byte follows. */
const char *tegula__texts_next(const char **at, const char *end);

/* realloc for `count` items of `item` bytes with checked arithmetic; NULL on failure, the old block
 * then stands. */
void *tegula__realloc_array(void *block, int64_t count, size_t item);
/* Grows a vector to hold at least `need` items, doubling; false on failure. */
bool tegula__vector_reserve(void **items, int64_t *capacity, int64_t need, size_t item);
/* strdup; NULL for NULL or lack of memory. */
char *tegula__strdup(const char *text);
/* printf into new memory; NULL on lack of memory. */
char *tegula__strprintf(const char *format, ...) TEGULA__PRINTF(1, 2);

/* ---- files as every folder names them ---- */

/* What identifies the content of a file: compared at every (re)open and after the last read. */
typedef struct tegula__stamp {
  int64_t size;
  int64_t mtime_ns;
  int64_t ctime_ns;
  uint64_t inode;
  uint64_t device;
} tegula__stamp;

/* A file of records with a marker before and after each, as Fortran's sequential unformatted files
 * are: base/frame.h. Places in it are counted without the markers, from `first` on. */
typedef struct tegula__frame {
  int64_t first;  /* where the first marker is */
  int64_t record; /* bytes of a record without its markers; 0: the file has no records */
  int64_t most;   /* bytes of a sub-record, of which a longer record consists; the last has fewer */
  uint8_t marker; /* bytes of a marker: 4 or 8 */
  uint8_t order;  /* of the markers: '<', '>' */
} tegula__frame;

typedef struct tegula__file {
  char *path;
  tegula__stamp stamp;
  tegula__frame frame;
  /* size and mtime_ns of the stamp were written down earlier: the file must still have them when it
   * is first opened */
  bool recorded;
  /* never opened: what is said of it follows from its size, and its header is still to be
   * compared */
  bool predicted;
} tegula__file;

/* ---- what stored chunks went through ---- */

/* The codecs. Numbers are stable within a run only; names are those of docs/formats.md. */
typedef enum tegula__codec_id {
  TEGULA__CODEC_NONE = 0, /* bytes as they are */
  TEGULA__CODEC_DEFLATE,  /* zlib streams (RFC 1950) */
  TEGULA__CODEC_SHUFFLE,  /* params: item size */
  TEGULA__CODEC_FLETCHER32,
  /* params: options mask, pixels per block, bits per pixel, pixels per scanline */
  TEGULA__CODEC_SZIP,
  TEGULA__CODEC_ZSTD,
  TEGULA__CODEC_LZ4,    /* HDF5 filter 32004: framed blocks */
  TEGULA__CODEC_BLOSC,  /* HDF5 filter 32001 */
  TEGULA__CODEC_BLOSC2, /* HDF5 filter 32026 */
  /* HDF5 filter 32008; params: item size, elements per block (0: default), compressor (0, 2 lz4, 3
     zstd) */
  TEGULA__CODEC_BITSHUFFLE,
  TEGULA__CODEC_LZF, /* HDF5 filter 32000 */
  TEGULA__CODEC_COUNT
} tegula__codec_id;

#define TEGULA__FILTER_PARAMS 4
#define TEGULA__CHAIN_MAX 32 /* as HDF5: a filter mask has 32 bits */

/* One stage of a chain; chains are in encoding order. */
typedef struct tegula__filter {
  uint16_t codec; /* tegula__codec_id */
  uint16_t param_count;
  uint32_t params[TEGULA__FILTER_PARAMS];
} tegula__filter;

/* ---- what this process is granted ---- */

/* Processors: the affinity mask, and the cgroup's cpu.max rounded up, whichever is less; at
 * least 1. */
int32_t tegula__granted_threads(void);
/* Bytes that could be had without swapping: MemAvailable and the cgroups' memory.max less what is
 * used; INT64_MAX where unknown. */
int64_t tegula__granted_memory(void);

/* Seconds of a clock that only goes forward. */
double tegula__now(void);

/* range.c. The elements [first, first + count) of an array in C order as boxes, at most max(1, 2 *
 * ndim): box i has its lo at vectors + i * 2 * ndim and its hi behind it. In C order the boxes
 * follow each other. */
#define TEGULA__RANGE_BOXES (2 * TEGULA_MAX_DIMS)
int32_t tegula__range_boxes(const int64_t *shape, int32_t ndim, int64_t first, int64_t count,
                            int64_t *vectors);

#endif
