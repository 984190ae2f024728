/* tegula: big arrays between files and the memory of many processors.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Reading order: errors, dtypes, boxes and views, context, dataset, tiling, array, load and save,
 * checks.
 *
 * Habits of this header
 * - Handles are opaque. `create` and `open` give one, `destroy` and `close` take it back and accept
 *   NULL.
 * - Functions that can fail return a tegula_status. The last argument `err` may be NULL. `*out` is
 *   written only on TEGULA_OK.
 * - Structs of options and of information begin with `struct_size`; fill them with their `_init`
 *   function. A struct smaller than version 1 is an error; a larger one than this library knows is
 *   accepted only when the unknown tail is zero.
 * - Ownership in fixed words: "owns", "borrows until X", "copies".
 * - Thread rule of each function: A = any thread, any time; O = one thread at a time per object; C
 *   = collective, every rank of the context calls it in the same order and gets the same status
 *   (with one process: the same as A unless it says O). On several ranks (tegula_mpi.h,
 *   docs/ranks.md) saves of chunks in pieces are UNSUPPORTED today.
 * - Sizes, offsets and strides are in bytes unless the name says otherwise; shapes and boxes count
 *   elements.
 * - No global state: the library never prints, exits, aborts, reads the environment, or changes
 *   locale, umask or signal handlers. */
#ifndef TEGULA_TEGULA_H
#define TEGULA_TEGULA_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TEGULA_API __attribute__((visibility("default")))
#define TEGULA_MUST_CHECK __attribute__((warn_unused_result))
#else
#define TEGULA_API
#define TEGULA_MUST_CHECK
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- version ---- */

#define TEGULA_VERSION_MAJOR 0
#define TEGULA_VERSION_MINOR 1
#define TEGULA_VERSION_PATCH 0
#define TEGULA_VERSION_STRING "0.1.0"

/* The version of the library that is running, as text such as "0.1.0". Static storage. [A] */
TEGULA_API const char *tegula_version(void);

/* ---- errors ---- */

/* X(name, value, short text, sentence). Values are pinned and have gaps; new ones may be added,
 * none is ever re-used. */
#define TEGULA_STATUS_MAP(X)                                                                       \
  X(OK, 0, "ok", "it worked")                                                                      \
  X(END, 1, "end", "there is nothing more")                                                        \
  X(INVALID_ARGUMENT, 10, "invalid_argument", "an argument makes no sense")                        \
  X(OUT_OF_MEMORY, 11, "out_of_memory", "there is not enough memory")                              \
  X(LIMIT_EXCEEDED, 12, "limit_exceeded", "a stated limit would be exceeded")                      \
  X(CANCELLED, 13, "cancelled", "the caller asked to stop")                                        \
  X(TIMEOUT, 14, "timeout", "it took longer than allowed")                                         \
  X(NOT_FOUND, 20, "not_found", "a file, folder or dataset is not there")                          \
  X(EXISTS, 21, "exists", "the target exists and may not be replaced")                             \
  X(PERMISSION, 22, "permission", "the operating system refuses access")                           \
  X(IO, 23, "io", "the operating system reports an input or output error")                         \
  X(SHORT_FILE, 24, "short_file", "a file holds fewer bytes than it must")                         \
  X(CHANGED, 25, "changed", "a file changed while it was in use")                                  \
  X(CORRUPT, 30, "corrupt", "the content of a file contradicts itself or its format")              \
  X(UNSUPPORTED, 31, "unsupported", "the content is valid but cannot be handled")                  \
  X(MISMATCH, 32, "mismatch", "two things that must agree do not")                                 \
  X(INCOMPLETE, 33, "incomplete", "a piece of the data is missing")                                \
  X(COMM, 40, "comm", "the communicator failed")                                                   \
  X(PEER_FAILED, 41, "peer_failed", "another rank failed")                                         \
  X(DEVICE, 50, "device", "a device failed")                                                       \
  X(INTERNAL, 90, "internal", "a defect of this library")

typedef enum tegula_status {
#define TEGULA_STATUS_ENUM(name, value, text, sentence) TEGULA_##name = (value),
  TEGULA_STATUS_MAP(TEGULA_STATUS_ENUM)
#undef TEGULA_STATUS_ENUM
} tegula_status;

/* "short_file" for TEGULA_SHORT_FILE; "unknown" for a value this library does not know. Static
 * storage. [A] */
TEGULA_API const char *tegula_status_name(tegula_status status);
/* One sentence about the status. Static storage. [A] */
TEGULA_API const char *tegula_status_text(tegula_status status);

/* What went wrong, as fields. The caller allocates it (stack or heap); filling it never allocates.
 * Texts that are too long are cut. `message` is one line, lower case, without a full stop; `hint`
 * (may be empty) says what to do; `path` (may be empty) is the file. */
typedef struct tegula_error {
  tegula_status status;
  int32_t os_errno; /* 0 where unset */
  int32_t rank;     /* the rank that failed, -1 where unset */
  int32_t reserved;
  int64_t offset; /* byte offset in `path`, -1 where unset */
  char message[1024];
  char hint[512];
  char path[1024];
} tegula_error;

/* For callbacks that fail: fills `err` (may be NULL) and returns `status`. Texts are copied; path
 * may be NULL, offset -1. [A] */
TEGULA_API tegula_status tegula_error_set(tegula_error *err, tegula_status status, const char *path,
                                          int64_t offset, const char *message);

/* Frees text that the library handed over (tegula_dataset_to_json, tegula_explain). Accepts NULL.
 * [A] */
TEGULA_API void tegula_free(void *memory);

/* ---- dtypes ---- */

/* Units of datetime64 and timedelta64, in numpy's order (numpy C-API, NPY_DATETIMEUNIT). */
typedef enum tegula_unit {
  TEGULA_UNIT_GENERIC = 0,
  TEGULA_UNIT_YEAR,
  TEGULA_UNIT_MONTH,
  TEGULA_UNIT_WEEK,
  TEGULA_UNIT_DAY,
  TEGULA_UNIT_HOUR,
  TEGULA_UNIT_MINUTE,
  TEGULA_UNIT_SECOND,
  TEGULA_UNIT_MILLISECOND,
  TEGULA_UNIT_MICROSECOND,
  TEGULA_UNIT_NANOSECOND,
  TEGULA_UNIT_PICOSECOND,
  TEGULA_UNIT_FEMTOSECOND,
  TEGULA_UNIT_ATTOSECOND
} tegula_unit;

/* The type of one element; a plain value, compared with tegula_dtype_same.
 * kind: b bool, i signed, u unsigned, f float, E bfloat16, c complex, M datetime64, m timedelta64,
 * S bytes, U UCS-4 text, V opaque bytes (also structured records: their description is in
 * tegula_dataset_info).
 * order: '<' little, '>' big, '|' where byte order has no meaning (one-byte items, S, V). */
typedef struct tegula_dtype {
  uint8_t kind;
  uint8_t order;
  uint8_t unit; /* tegula_unit, M and m only */
  uint8_t reserved;
  uint32_t unit_count; /* 25 in M8[25s]; 1 otherwise for M and m with a unit; 0 for all others */
  uint32_t item_size;  /* bytes, never 0 */
} tegula_dtype;

#define TEGULA_DTYPE_TEXT 48

/* Reads numpy's text ("<f4", "f4", "float32", "|b1", "<M8[25s]", "<U12", "|V12") or "bfloat16"
 * (">bfloat16" when stored big-endian). Without an order character the order is the processor's.
 * INVALID_ARGUMENT: no such text; UNSUPPORTED: a type that exists but cannot be held (object, long
 * double, items of zero bytes). [A] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_dtype_parse(const char *text, tegula_dtype *out,
                                                              tegula_error *err);
/* Writes numpy's text, or "bfloat16". [A] */
TEGULA_API void tegula_dtype_format(tegula_dtype dtype, char out[TEGULA_DTYPE_TEXT]);
/* The same dtype in the processor's byte order. [A] */
TEGULA_API tegula_dtype tegula_dtype_native(tegula_dtype dtype);
/* 1 when both hold the same values (byte order aside), else 0. [A] */
TEGULA_API int tegula_dtype_same(tegula_dtype a, tegula_dtype b);

/* ---- boxes and views ---- */

#define TEGULA_MAX_DIMS 64 /* numpy 2's limit (NPY_MAXDIMS) */

/* Half open: element i of axis k is inside when lo[k] <= i < hi[k]. Entries beyond ndim are not
 * read. */
typedef struct tegula_box {
  int32_t ndim;
  int32_t reserved;
  int64_t lo[TEGULA_MAX_DIMS];
  int64_t hi[TEGULA_MAX_DIMS];
} tegula_box;

typedef enum tegula_device {
  TEGULA_DEVICE_HOST = 1 /* DLPack's kDLCPU */
} tegula_device;

#define TEGULA_VIEW_READ_ONLY 1u

/* Memory that exists somewhere. `data` is the address of the element at box.lo; strides are in
 * bytes and may be negative or zero. A view owns nothing. */
typedef struct tegula_view {
  void *data;
  uint32_t flags;
  tegula_dtype dtype;
  int32_t device_type; /* tegula_device; 0 counts as host */
  int32_t device_id;
  tegula_box box;
  int64_t stride_bytes[TEGULA_MAX_DIMS];
} tegula_view;

/* ---- statistics and progress ---- */

/* What an operation did. Set to zero by the caller; every call that is given it adds to it, so one
 * struct can collect a describe and a load. Written by one call at a time. */
typedef struct tegula_statistics {
  size_t struct_size;
  int64_t opens;      /* files opened */
  int64_t stats;      /* fstat and stat calls on data files */
  int64_t reads;      /* read calls (with io_uring: requests) on data files, headers included */
  int64_t writes;     /* write calls or requests */
  int64_t bytes_read; /* bytes those reads returned, headers included */
  int64_t bytes_written;
  int64_t direct_bytes; /* bytes that went between file and final place without staging */
  int64_t staged_bytes; /* bytes that passed through staging memory */
  int64_t reader_bytes; /* bytes that came from a reader callback */
  int64_t missing;      /* absent pieces that were filled */
  int64_t steps;        /* plan steps that ran */
  /* the most workers that moved bytes at once (not added: the largest number) */
  int64_t workers;
  double seconds_describe;
  double seconds_move;
  /* static text: how most bytes travelled: "pread", "pwrite", "io_uring", "direct", "reader"; NULL
   * before any did */
  const char *io_path;
  /* static text: why a faster way was not taken; NULL where none was tried */
  const char *fallback_reason;
} tegula_statistics;

TEGULA_API void tegula_statistics_init(tegula_statistics *statistics);

/* Called now and then while bytes move, from whichever worker has news, never from two at once. A
 * return value other than 0 cancels the operation: it ends with TEGULA_CANCELLED, as soon as the
 * chunks that are being encoded or decoded are done. It must not call the library. */
typedef int (*tegula_progress_fn)(void *state, int64_t bytes_done, int64_t bytes_total);

/* ---- context ---- */

typedef struct tegula_context tegula_context;
typedef struct tegula_comm tegula_comm; /* a group of ranks; NULL is this process alone */

typedef struct tegula_context_options {
  size_t struct_size;
  /* workers, the caller's thread included; 0: as many as granted (affinity mask, cgroup cpu.max) */
  int32_t threads;
  /* handles kept open; 0: min(1024, RLIMIT_NOFILE / 2 - open ones), at least 4 */
  int32_t max_open_files;
  int64_t staging_bytes; /* memory for staged bytes; 0: 64 MiB */
  /* most workers while storage is slow (measured: most of the time nobody runs); 0: 128, or 1 when
   * threads is 1 */
  int32_t io_threads;
  uint32_t reserved;
  /* "pread"; "io_uring": many requests of each thread on their way; "direct": past the page cache;
   * "auto", NULL: pread, and io_uring for separate requests that wait for storage, where it is
   * measured to be faster. A way that cannot be taken here falls back to pread, and statistics say
   * why */
  const char *io;
  /* folders in which plugins are looked for first, separated by ':'; then tegula/ beside the
   * library, then where it was installed */
  const char *plugin_path;
  /* the libhdf5 that is used, by path; NULL: the newest of the candidates and the system's */
  const char *hdf5_library;
  /* further places of a libhdf5 (a Python's h5py brings one), separated by ':' */
  const char *hdf5_candidates;
} tegula_context_options;

TEGULA_API void tegula_context_options_init(tegula_context_options *options);

/* Threads are started at the first use, not here. Options NULL: all defaults. Borrows `comm` until
 * destroy. Datasets, tilings and arrays keep what they need of their context alive: the order of
 * destruction is free. [C] */
TEGULA_API TEGULA_MUST_CHECK tegula_status
tegula_context_create(const tegula_context_options *options, tegula_comm *comm,
                      tegula_context **out, tegula_error *err);
TEGULA_API void tegula_context_destroy(tegula_context *context);
/* The number of workers that calls on this context use. [A] */
TEGULA_API int32_t tegula_context_threads(const tegula_context *context);

/* ---- dataset: what is in the files ---- */

typedef struct tegula_dataset tegula_dataset;

/* tegula_dataset_open_list: refuse names that form one numbered sequence but are not in numeric
 * order, and numbered names in any list that are in text order (a shell expands part_* to part_1,
 * part_10, part_2). Without it the caller's order stands. */
#define TEGULA_OPEN_CHECK_ORDER 1u
/* Flag of tegula_open_options: for sets of many files that will be loaded whole. Of all npy files
 * but the first only the size is looked at: what they hold is foretold from it and the first
 * header. Their own headers are read together with their data, and compared: each file is opened
 * once and a small one is read by one request. A file whose size does not fit is opened at once;
 * when opening fails for what files hold, all headers are read as usual.
 * - The shape in tegula_dataset_info (and bytes, chunks) is the foretold one until a call that
 *   reads the files has succeeded.
 * - Nothing else follows from what was foretold: tegula_load, tegula_dataset_read and all others
 *   that take the dataset compare the headers of all files before they return OK, those of files
 *   that they do not read, too. Where one is not as foretold they fail with MISMATCH and the path
 *   of that file: open again without the flag and load into an array of the shape that is there
 *   then (tegula load does).
 * - Files that were told to be raw are not opened before their data is read. */
#define TEGULA_OPEN_DEFER_HEADERS 2u
/* Flag of tegula_open_options: read HDF5 files also while another program holds them locked, as
 * libhdf5 does while it writes. They are refused otherwise: what the writer did not flush is
 * missing in them, and what it did may contradict itself. */
#define TEGULA_OPEN_LOCKED 4u

/* What only some formats know, as texts; keys begin with the name of their format
 * ("raw.row_prefix"). The tables of keys are in docs/formats.md. INVALID_ARGUMENT: an unknown key
 * (the message names those that there are), a value that it does not take, a setting of another
 * format than the file's. */
typedef struct tegula_setting {
  const char *key;
  const char *value; /* a whole number in decimal digits, or a word */
} tegula_setting;

typedef struct tegula_open_options {
  size_t struct_size;
  /* "npy", "raw", "hdf5", "manifest"; NULL: found out from the content, and raw where dtype is
   * given and nothing else fits */
  const char *format;
  /* name inside a container; NULL: the only one there is. npy and raw hold one array: its name is
   * "data". A pattern ("/shard_*"): all datasets that match it, in the order of their numbers,
   * joined along axis 0 (docs/formats.md) */
  const char *dataset;
  /* what is stored (no conversion): needed for raw without a side file; otherwise it must agree.
   * Structured records: numpy's description, "[('x', '<f4'), ('y', '>f8', (3,))]";
   * npy: turns |V2 into bfloat16 */
  const char *dtype;
  /* raw only; what is left out here may be said by shard_meta.json beside the files
   * (docs/formats.md) */
  const int64_t *shape; /* shape of each file, shape_ndim entries */
  /* or the shape of one row, row_ndim entries: the number of rows follows from the file's size */
  const int64_t *row_shape;
  int32_t shape_ndim; /* -1: not given; 0: a scalar */
  int32_t row_ndim;   /* -1: not given; 0: rows are single elements */
  int64_t offset;     /* bytes in front of the data (a header of another program) */
  /* bytes between the rows (after each but the last; bytes after the last are allowed too) */
  int64_t row_gap;
  char order;      /* 'C', 'F'; 0: C */
  char byte_order; /* '<', '>'; 0: as dtype says */
  uint16_t reserved;
  uint32_t flags;       /* TEGULA_OPEN_* */
  int64_t expect_files; /* -1: any number; otherwise another number of files is MISMATCH */
  int64_t expect_rows;  /* -1: any number; otherwise another length of axis 0 is MISMATCH */
  tegula_statistics *statistics; /* NULL, or added to */
  /* as in tegula_load_options, but it is told files: those that were described, and all of them */
  tegula_progress_fn progress;
  void *progress_state;
  /* structured records: one field of them, as in tegula_selection; NULL: whole elements */
  const char *field;
  const tegula_setting *settings; /* setting_count of them; borrowed during the call */
  int32_t setting_count;
  int32_t reserved_end;
} tegula_open_options;

TEGULA_API void tegula_open_options_init(tegula_open_options *options);

/* Describes a file, a folder of shards, or a glob pattern; reads headers only (see
 * TEGULA_OPEN_DEFER_HEADERS), in parallel. A folder or glob is put in numeric order and refused
 * where it is not one contiguous sequence (holes, duplicates, mixed padding, foreign files: the
 * message names the file). Shards are joined along axis 0; dtype and trailing axes must agree.
 * Strings in `options` are copied. [C] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_dataset_open(tegula_context *context,
                                                               const char *path,
                                                               const tegula_open_options *options,
                                                               tegula_dataset **out,
                                                               tegula_error *err);
/* The same for a list of files, in the caller's order. With count 1: as tegula_dataset_open. [C] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_dataset_open_list(
    tegula_context *context, const char *const *paths, size_t count,
    const tegula_open_options *options, tegula_dataset **out, tegula_error *err);
TEGULA_API void tegula_dataset_close(tegula_dataset *dataset);

/* Some elements of a dataset, or one field of them. Vectors have ndim entries, one for each axis of
 * the dataset, and are read during the call only. */
typedef struct tegula_selection {
  size_t struct_size;
  const int64_t *lo;   /* first element along each axis; NULL: 0 */
  const int64_t *hi;   /* behind the last; NULL: the dataset's shape */
  const int64_t *step; /* every step-th element from lo on, 1 or more; NULL: 1 */
  int32_t ndim;        /* of the vectors; not read where all three are NULL */
  int32_t reserved;
  /* structured records: the name of one field ("mass", or "position.x" for a field of a record
   * within the record); NULL: whole elements */
  const char *field;
} tegula_selection;

TEGULA_API void tegula_selection_init(tegula_selection *selection);
/* A dataset of what is selected: its shape is max(0, ceil((hi - lo) / step)) along each axis, the
 * axes of a field that is an array behind them. All calls but tegula_dataset_sums take it like any
 * other; its bytes are read from the files of `dataset`, each range once, whatever the steps. No
 * array data is read here; deferred headers, and sources of virtual datasets that the box meets,
 * are. The selection keeps what it needs of `dataset`, which may be closed.
 * INVALID_ARGUMENT: a box outside of the shape, a step below 1, a field of what is no record;
 * NOT_FOUND: no such field; UNSUPPORTED: a field that cannot be loaded. [A] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_dataset_select(const tegula_dataset *dataset,
                                                                 const tegula_selection *selection,
                                                                 tegula_dataset **out,
                                                                 tegula_error *err);

/* A status other than TEGULA_OK, for which it fills `err` (tegula_error_set; may be NULL), ends the
 * walk. `path` is borrowed until it returns. */
typedef tegula_status (*tegula_path_fn)(void *state, const char *path, tegula_error *err);
/* Calls `visit` for each file that a path, folder or pattern stands for, in the order of names
 * (numbers by value), for programs that look at damaged sets: nothing is opened, what
 * tegula_dataset_open refuses for its name is visited too, and other things than files are left
 * out. Folders that cannot be listed are passed over; the error of the first of them is returned in
 * the end. NOT_FOUND: the path is neither a file nor a folder nor a pattern. Does not wait for
 * operations in the background. [A] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_find_files(const char *path, tegula_path_fn visit,
                                                             void *state, tegula_error *err);

typedef struct tegula_dataset_info {
  size_t struct_size;
  tegula_dtype dtype; /* native byte order: what arrays of this dataset hold */
  int32_t ndim;
  int32_t reserved;
  int64_t shape[TEGULA_MAX_DIMS];
  int64_t files;
  int64_t chunks;       /* stored pieces in all files together; one per file for npy and raw */
  int64_t bytes;        /* of the array in memory */
  int64_t stored_bytes; /* of the array in the files, without headers */
  const char *format;   /* borrowed until close, like all texts here */
  const char *name;
  /* structured records: numpy's description as text, for example [('a', '<f4'), ('b', '<i8')]; else
   * NULL */
  const char *descr;
  /* shape of the stored chunks, ndim entries; NULL where data is not stored in chunks (of several:
   * those of most bytes) */
  const int64_t *chunk;
  /* what such chunks went through, in that order, for example "shuffle,deflate:6"; "" for
   * nothing */
  const char *codecs;
  /* what elements that were never written are: one item in native byte order; NULL: the format does
   * not say */
  const void *fill;
  /* further files (virtual datasets over more than 256): each is opened when a load first meets
   * it. Until all were, files, chunks, stored_bytes, chunk and codecs do not count them */
  int64_t sources;
} tegula_dataset_info_t;

TEGULA_API void tegula_dataset_info_init(tegula_dataset_info_t *info);
/* [A] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_dataset_info(const tegula_dataset *dataset,
                                                               tegula_dataset_info_t *out,
                                                               tegula_error *err);

typedef struct tegula_file_info {
  size_t struct_size;
  const char *path; /* borrowed until close */
  int64_t size;     /* bytes */
  /* the rows [row_lo, row_hi) of the array that it holds (a 0-d file: 0 to 1), from the first to
   * the last */
  int64_t row_lo;
  int64_t row_hi;
  int64_t data_offset; /* where its first element is */
} tegula_file_info;

TEGULA_API void tegula_file_info_init(tegula_file_info *info);
/* File `index` (0 to files - 1) in the order of rows. [A] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_dataset_file(const tegula_dataset *dataset,
                                                               int64_t index, tegula_file_info *out,
                                                               tegula_error *err);

/* Lost piece `index` of the dataset, from 0 on: the box that a file should hold which is not there,
 * or not as it must be; `why` (may be NULL) says so in words. END behind the last. A load that
 * touches one fails with that error, unless it fills (TEGULA_MISSING_FILL). [A] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_dataset_lost(const tegula_dataset *dataset,
                                                               int64_t index, tegula_box *box,
                                                               tegula_error *why,
                                                               tegula_error *err);

/* One stored piece of a dataset: a chunk, or dense bytes. Text and vectors live during the call. */
typedef struct tegula_chunk_info {
  size_t struct_size;
  /* of the file; NULL where only a reader knows where the bytes are: then offset and length are
   * -1 */
  const char *path;
  int64_t offset; /* of its first byte in the file */
  /* bytes stored; of a piece that is not a chunk: from its first to its last byte */
  int64_t length;
  uint32_t mask; /* bit i: stage i of the codecs (tegula_dataset_info) was skipped */
  int32_t ndim;
  /* the box of the array that it holds, clipped to the array: from lo up to hi, ndim entries
   * each */
  const int64_t *lo;
  const int64_t *hi;
} tegula_chunk_info;

/* Returns 0 to go on. */
typedef int (*tegula_chunk_fn)(void *state, const tegula_chunk_info *chunk);

/* Calls `each` for every piece that is stored; what is absent (filled) or lost is left out. The
 * time is linear in their number. A chunk that a virtual dataset shows in several places is visited
 * for each. CANCELLED when `each` had enough. [A] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_dataset_chunks(const tegula_dataset *dataset,
                                                                 tegula_chunk_fn each, void *state,
                                                                 tegula_error *err);

/* One dataset of a container (an HDF5 file). Texts and vectors live during the call. */
typedef struct tegula_entry {
  size_t struct_size;
  const char *name;
  const char *dtype;   /* numpy's text; NULL when it cannot be loaded */
  const char *refused; /* then: why not */
  /* what chunks went through, in that order: "shuffle,deflate:6"; "" for nothing */
  const char *codecs;
  int32_t ndim;
  int32_t reserved;
  const int64_t *shape; /* NULL: there is none (a null dataspace), or it cannot be read */
  const int64_t *chunk; /* NULL: not stored in chunks */
  int64_t stored_bytes;
  /* structured records: numpy's description, in which members that cannot be loaded have the dtype
   * O and their size in the file; else NULL */
  const char *descr;
} tegula_entry;

/* Returns 0 to go on. */
typedef int (*tegula_entry_fn)(void *state, const tegula_entry *entry);

/* Calls `each` for every dataset of the file, in the order of their names. UNSUPPORTED: a format
 * whose files hold one array (npy, raw). Options as for tegula_dataset_open. [C] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_list(tegula_context *context, const char *path,
                                                       const tegula_open_options *options,
                                                       tegula_entry_fn each, void *state,
                                                       tegula_error *err);

/* An attribute of a dataset, or of the file. Texts and vectors live during the call. */
typedef struct tegula_attribute {
  size_t struct_size;
  const char *object; /* the dataset, by the name that tegula_list gives; "/": the file */
  const char *name;
  /* numpy's text for numbers, bools and text of fixed length ("<f8", "|S5"), "str" for text of any
   * length; else what it is called: "compound", "reference", ... */
  const char *type;
  int32_t ndim; /* 0: a scalar */
  int32_t reserved;
  const int64_t *shape; /* NULL: it is empty (a null dataspace) */
  int64_t count;        /* elements; 0: neither values nor texts are given */
  /* numbers and bools, in C order and native byte order; NULL for others */
  const void *values;
  const char *const *texts; /* text: count of them, as stored, without padding; NULL for others */
  const char *omitted;      /* why there are neither; NULL */
} tegula_attribute;

/* Returns 0 to go on. It must not call the library. */
typedef int (*tegula_attribute_fn)(void *state, const tegula_attribute *attribute);

/* Calls `each` for every attribute of the file's groups, the root ("/") among them, and of its
 * datasets, or, with `dataset` in the options, of that group or dataset only. Values of more than 1
 * MiB, more than 4,096 texts of any length, texts with zero bytes within, and types that have no
 * form here are omitted. CORRUPT names an attribute that cannot be read. UNSUPPORTED: a format
 * without attributes. CANCELLED when `each` had enough. [C] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_attributes(tegula_context *context,
                                                             const char *path,
                                                             const tegula_open_options *options,
                                                             tegula_attribute_fn each, void *state,
                                                             tegula_error *err);

/* ---- a user's own format ---- */

/* Fills dst->data (dst->stride_bytes, native byte order) with the elements of dst->box. Called from
 * many threads at once, never twice at the same time for the same element. On failure it fills
 * `err` (tegula_error_set) and returns the status; the caller of the load gets both. It must not
 * call the library on the same context. */
typedef tegula_status (*tegula_reader_fn)(void *state, const tegula_view *dst, tegula_error *err);
typedef void (*tegula_release_fn)(void *state);

typedef struct tegula_reader {
  size_t struct_size;
  const char *name; /* of the format, for reports and messages; copied */
  tegula_dtype dtype;
  int32_t ndim;
  const int64_t *shape; /* copied */
  /* NULL: boxes are cut anywhere; else ndim lengths: no box crosses a multiple of them, so that
   * each stored piece is decoded once; copied */
  const int64_t *chunk;
  /* memory that one call needs besides dst: as many calls run at once as the staging budget allows,
   * at least one */
  int64_t cost_bytes;
  tegula_reader_fn read;
  void *state;
  /* NULL, or called with state when the dataset is closed and nothing reads it any more */
  tegula_release_fn release;
} tegula_reader;

TEGULA_API void tegula_reader_init(tegula_reader *reader);
/* A dataset whose elements come from a callback. Such a dataset is local: it cannot be written as
 * JSON. On failure release is not called. [C] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_dataset_from_reader(tegula_context *context,
                                                                      const tegula_reader *reader,
                                                                      tegula_dataset **out,
                                                                      tegula_error *err);

/* The manifest as JSON text (docs/manifest.md): where the bytes of the dataset are. A file with
 * this text can be opened like any other path; file names in it are relative to the folder of that
 * file where they can be. `folder` is that folder, or NULL for absolute names. Free with
 * tegula_free. [A] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_dataset_to_json(const tegula_dataset *dataset,
                                                                  const char *folder, char **out,
                                                                  tegula_error *err);

/* ---- tiling: who owns which box ---- */

/* immutable; may be shared by any threads and destroyed at any time */
typedef struct tegula_tiling tegula_tiling;

/* Cuts one axis into tiles of t = max(1, ceil(n / tiles)) elements, the last one short: max(1,
 * ceil(n / t)) tiles, possibly fewer than asked, none empty (an array without elements has one
 * empty tile). Tile i belongs to rank floor(i * ranks / tiles). ndim 0 has one tile; axis is then
 * not read. [A] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_tiling_even(const int64_t *shape, int32_t ndim,
                                                              int32_t axis, int64_t tiles,
                                                              int32_t ranks, tegula_tiling **out,
                                                              tegula_error *err);
/* A regular grid: tile[k] elements along axis k, clipped at the end; tiles in C order. [A] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_tiling_grid(const int64_t *shape,
                                                              const int64_t *tile, int32_t ndim,
                                                              int32_t ranks, tegula_tiling **out,
                                                              tegula_error *err);
/* Whole files per tile: neighbouring files are put together so that about `tiles` tiles of even
 * size come out. With fewer files than `tiles`, or a 0-d dataset: as tegula_tiling_even along axis
 * 0. [A] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_tiling_from_dataset(const tegula_dataset *dataset,
                                                                      int64_t tiles, int32_t ranks,
                                                                      tegula_tiling **out,
                                                                      tegula_error *err);
/* Any boxes; they must be inside the shape, disjoint and together cover it. owners NULL: as in
 * tegula_tiling_even. [A] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_tiling_custom(
    const int64_t *shape, int32_t ndim, const tegula_box *boxes, const int32_t *owners,
    int64_t count, int32_t ranks, tegula_tiling **out, tegula_error *err);
TEGULA_API void tegula_tiling_destroy(tegula_tiling *tiling);
/* Number of tiles over all ranks. [A] */
TEGULA_API int64_t tegula_tiling_count(const tegula_tiling *tiling);
/* Box and owner of tile `index`; `rank` may be NULL. [A] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_tiling_tile(const tegula_tiling *tiling,
                                                              int64_t index, tegula_box *box,
                                                              int32_t *rank, tegula_error *err);

/* ---- array: this rank's tiles ---- */

typedef struct tegula_array tegula_array;

/* one block of memory per tile even where the tiles together are a box */
#define TEGULA_ARRAY_SEPARATE 1u

typedef struct tegula_array_options {
  size_t struct_size;
  int32_t device_type; /* tegula_device; 0: host */
  int32_t device_id;
  uint32_t flags; /* TEGULA_ARRAY_* */
  uint32_t reserved;
} tegula_array_options;

TEGULA_API void tegula_array_options_init(tegula_array_options *options);

/* Memory for the tiles of this rank: one C-ordered block where they form a box, else one block per
 * tile. The dtype is taken in native byte order. Memory is reserved, not touched; OUT_OF_MEMORY
 * when more is asked than this process can get. Copies the tiling. [C] */
TEGULA_API TEGULA_MUST_CHECK tegula_status
tegula_array_create(tegula_context *context, tegula_dtype dtype, const tegula_tiling *tiling,
                    const tegula_array_options *options, tegula_array **out, tegula_error *err);

/* An array over memory of the caller: `tiles` has one view per tile of this rank, in order; each
 * view's box must be the tile's, and no two views may share memory (within one view that is
 * checked, between views it is the caller's word). Borrows the memory until it is destroyed and no
 * operation uses it any more; then release(state) is called unless release is NULL. On failure it
 * is not called. [C] */
TEGULA_API TEGULA_MUST_CHECK tegula_status
tegula_array_wrap(tegula_context *context, tegula_dtype dtype, const tegula_tiling *tiling,
                  const tegula_view *tiles, int64_t count, tegula_release_fn release, void *state,
                  tegula_array **out, tegula_error *err);
TEGULA_API void tegula_array_destroy(tegula_array *array);
/* Number of tiles of this rank. [A] */
TEGULA_API int64_t tegula_array_tiles(const tegula_array *array);
/* Tile `index` of this rank; the memory is borrowed until destroy. [A] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_array_view(const tegula_array *array,
                                                             int64_t index, tegula_view *out,
                                                             tegula_error *err);
/* All tiles of this rank as one C-ordered view; UNSUPPORTED when they do not lie in one block.
 * Borrowed until destroy. [A] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_array_block(const tegula_array *array,
                                                              tegula_view *out, tegula_error *err);

/* ---- move ---- */

/* What happens to pieces of a dataset that are not there. */
typedef enum tegula_missing {
  /* absent by the rules of the format (a chunk that was never written): filled with the fill value
   * and counted in the statistics; lost (a file that another one speaks of): an error */
  TEGULA_MISSING_ERROR = 0,
  TEGULA_MISSING_STRICT, /* every absent piece is TEGULA_INCOMPLETE */
  TEGULA_MISSING_FILL    /* both are filled and counted */
} tegula_missing;

typedef struct tegula_load_options {
  size_t struct_size;
  tegula_progress_fn progress;
  void *progress_state;
  tegula_statistics *statistics; /* NULL, or added to */
  /* tegula_load: NULL, and the array has the dataset's shape; or the place of the array's first
   * element in the dataset (origin_ndim entries): the array is then a box of it, cut into tiles
   * like any other; copied */
  const int64_t *origin;
  int32_t origin_ndim;
  uint32_t missing; /* tegula_missing */
} tegula_load_options;

TEGULA_API void tegula_load_options_init(tegula_load_options *options);

/* Fills every tile of `array` from the dataset: same shape (or a box of it, see origin), same dtype
 * (no conversion; byte order is changed on the way). Each part of a file is read once, however many
 * tiles it feeds. On failure the content of the array is undefined and the error is the first in
 * the order of files and offsets, whatever thread met it. [C] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_load(tegula_dataset *dataset, tegula_array *array,
                                                       const tegula_load_options *options,
                                                       tegula_error *err);
/* Reads the box dst->box of the dataset into the memory of `dst`, any strides. Not collective.
 * Where small boxes follow one another in the same compressed chunks, these are decoded once: up to
 * 4 MiB of them are held with the dataset, and given only while their file is as it was described.
 * [A] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_dataset_read(const tegula_dataset *dataset,
                                                               const tegula_view *dst,
                                                               const tegula_load_options *options,
                                                               tegula_error *err);

/* a container is replaced as a whole (with overwrite), not added to */
#define TEGULA_SAVE_WHOLE_FILE 1u

typedef struct tegula_save_options {
  size_t struct_size;
  /* "npy", "raw", "hdf5"; NULL: by the path's suffix, npy where it has none; an unknown suffix is
   * UNSUPPORTED */
  const char *format;
  const char *descr; /* npy, hdf5: the description of structured records; NULL: |V<size> */
  /* 0: one file; N: a folder with N files shard_0000.npy ... cut along axis 0 (at most one per
   * row) */
  int64_t shards;
  char order;      /* 'C', 'F'; 0: C */
  char byte_order; /* '<', '>'; 0: the processor's */
  /* replace what is there: a file by a file, a folder that holds nothing but shards by a folder;
   * it keeps its mode. In a container: the dataset of that name only, unless the file is of
   * another format */
  uint8_t overwrite;
  uint8_t durable; /* data and names are on the disk before the call returns */
  uint32_t flags;  /* TEGULA_SAVE_* */
  tegula_progress_fn progress;
  void *progress_state;
  tegula_statistics *statistics; /* NULL, or added to */
  /* containers (hdf5) */
  /* name in the file, "/" in front may be left out; groups are made; NULL: "/data" */
  const char *dataset;
  /* "contiguous", "chunked", or "virtual": each tile of the array in a file of its own, in a
   * folder NAME.tiles-DIGITS beside the file, which maps them. NULL: chunked where chunk or codec
   * is given, else contiguous */
  const char *layout;
  /* chunk_ndim lengths, cut to the array's where they are longer; NULL: whole rows of about 1 to 4
   * MiB */
  const int64_t *chunk;
  int32_t chunk_ndim;
  int32_t reserved;
  /* a chain in encoding order, "shuffle,deflate:4" (docs/formats.md); NULL, "": none */
  const char *codec;
  /* what elements that were never written are to be: one item in native byte order; NULL: not
   * said */
  const void *fill;
  /* of the dataset: attribute_count of them; their `object` is not looked at. UNSUPPORTED for one
   * that has neither values nor texts though it is not empty */
  const tegula_attribute *attributes;
  int64_t attribute_count;
  const tegula_setting *settings; /* setting_count of them, for saving; borrowed during the call */
  int32_t setting_count;
  int32_t reserved_end;
} tegula_save_options;

TEGULA_API void tegula_save_options_init(tegula_save_options *options);

/* Writes the array to `path`: under a temporary name in the same folder first, then renamed. On
 * failure the old target is untouched and nothing is left behind (one exception: with durable, when
 * all is in place and only the names cannot be brought to the disk, the new target stays and the
 * error says so). Missing parent folders are made. An existing target is EXISTS unless overwrite.
 * What a killed save left in that folder (.tegula-<digits>.tmp) is removed, what a running one has
 * there is not.
 *
 * Containers: a file that is one of that format already is added to, everything in it stays; its
 * dataset of the same name is EXISTS unless overwrite. That works on a copy, which takes the file's
 * place: CHANGED when somebody else wrote to it meanwhile. A virtual dataset is not added: with
 * overwrite it takes the place of a file that has no dataset but the one of its name, else EXISTS.
 * LIMIT_EXCEEDED for an attribute above 64 KiB, and for what the addresses and lengths of an
 * existing file cannot tell (HDF5).
 *
 * On several ranks each writes its tiles, rank 0 all else; options and fill value must be the same
 * on all, attributes are rank 0's. [C] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_save(const tegula_array *array, const char *path,
                                                       const tegula_save_options *options,
                                                       tegula_error *err);

/* One array of a group: what in tegula_save_options is said of a dataset. */
typedef struct tegula_save_member {
  size_t struct_size;
  const tegula_array *array; /* of the same context as the others */
  const char *dataset;
  const char *layout; /* not "virtual" */
  const int64_t *chunk;
  int32_t chunk_ndim;
  char byte_order;
  char reserved[3];
  const char *codec;
  const void *fill;
  const tegula_attribute *attributes;
  int64_t attribute_count;
  const char *descr; /* of structured records; NULL: |V<size> */
} tegula_save_member;

TEGULA_API void tegula_save_member_init(tegula_save_member *member);

/* Saves several arrays into one container, which appears (or is replaced) once, with all of them or
 * none. What the options say of a dataset is not looked at. INVALID_ARGUMENT for two of the same
 * name. [C] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_save_group(const tegula_save_member *members,
                                                             int64_t count, const char *path,
                                                             const tegula_save_options *options,
                                                             tegula_error *err);

/* ---- save: piece by piece, and from other processes ---- */

typedef struct tegula_saving tegula_saving;

/* A save whose tiles come later, one by one: for arrays that are never in memory as a whole, and
 * for runtimes whose tasks write. Makes the files under temporary names; the tiling says what the
 * tile files of a virtual dataset hold. Borrows nothing; a relative path stays that of the folder
 * in which the process is now. It must be ended by commit or abandon; other operations on the same
 * path are ordered against begin and commit, not against what is between. On several ranks all
 * begin and all end it, and each writes the pieces that it has; chunks are UNSUPPORTED there.
 * [C] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_save_begin(
    tegula_context *context, tegula_dtype dtype, const tegula_tiling *tiling, const char *path,
    const tegula_save_options *options, tegula_saving **out, tegula_error *err);
/* Writes the view's box; each element once. Of a chunked dataset a view must hold each chunk that
 * it touches whole (up to the end of the array); chunks stand in the file in the order in which
 * they came. [A] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_save_tile(tegula_saving *saving,
                                                            const tegula_view *tile,
                                                            tegula_error *err);
/* A text with which other processes on the same file system write tiles: tegula_save_tile_from.
 * UNSUPPORTED for chunked datasets, whose places only this process can find. Free with tegula_free.
 * [A] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_saving_to_json(const tegula_saving *saving,
                                                                 char **out, tegula_error *err);
/* Writes a tile of a save that another process has begun, any thread, any process. The caller sees
 * to it that commit comes after all of them; with `durable` the tile is on the disk when this
 * returns. CORRUPT for a text that is none. [A] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_save_tile_from(tegula_context *context,
                                                                 const char *json,
                                                                 const tegula_view *tile,
                                                                 tegula_error *err);
/* Makes it visible; ends `saving` in any case. Elements that no tile brought are zeros or
 * undefined: the caller's word. [C, O] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_save_commit(tegula_saving *saving,
                                                              tegula_error *err);
/* Takes everything back and ends `saving`. Accepts NULL. On several ranks: where one abandons,
 * commit of the others is CANCELLED. [C, O] */
TEGULA_API void tegula_save_abandon(tegula_saving *saving);

/* ---- copy ---- */

#define TEGULA_HASH_TEXT 48 /* see tegula_dataset_hash */

/* before the target gets its name it is read back, and its content hash compared with the
 * dataset's: MISMATCH */
#define TEGULA_COPY_VERIFY 1u
/* MISMATCH, before any element is written, when the target cannot hold something
 * (TEGULA_DROPPED_*) */
#define TEGULA_COPY_STRICT 2u
#define TEGULA_COPY_ALONG                                                                          \
  4u /* what a dataset of a container has beside its elements goes along as it is stored:          \
        attributes, and in the same container format its comment and the dimension scales of its   \
        axes, which become datasets of the target, too */

/* Something that the target cannot hold: "attribute", "comment", "dimension scale", "fill value",
 * "fields", or all "attributes"; its name, or NULL; and why. */
typedef void (*tegula_dropped_fn)(void *state, const char *what, const char *name,
                                  const char *reason);

typedef struct tegula_copy_options {
  size_t struct_size;
  /* bytes for what is on its way: the part that is written, the part that is read meanwhile, and
   * staging; 0: 256 MiB. Of a context whose staging budget is more than a quarter of it, half goes
   * to the two parts nevertheless. Never less than one chunk of the target each; each worker takes
   * a decoded chunk of the dataset besides */
  int64_t memory;
  int64_t tiles;    /* virtual targets: tile files, cut along axis 0; 0: the context's threads */
  uint32_t missing; /* tegula_missing */
  uint32_t flags;   /* TEGULA_COPY_* */
  /* called for each thing that is left out, before any element is written; it must not call the
   * library; NULL */
  tegula_dropped_fn dropped;
  void *dropped_state;
} tegula_copy_options;

TEGULA_API void tegula_copy_options_init(tegula_copy_options *options);

/* those of the save options, or some of the dataset, or its comment */
#define TEGULA_DROPPED_ATTRIBUTES 1u
#define TEGULA_DROPPED_FILL 2u   /* a fill value that is not zero */
#define TEGULA_DROPPED_DESCR 4u  /* the fields of records: they are opaque items */
#define TEGULA_DROPPED_SCALES 8u /* dimension scales */

typedef struct tegula_copy_report {
  size_t struct_size;
  int64_t bytes;        /* of the array in memory */
  int64_t stored_bytes; /* of the array in the target, without headers */
  int64_t files;        /* of the target that hold data */
  int64_t windows;      /* parts in which it went */
  /* TEGULA_DROPPED_*: what the target cannot hold; also filled in when the copy failed */
  uint32_t dropped;
  uint32_t reserved;
  char hash[TEGULA_HASH_TEXT]; /* with TEGULA_COPY_VERIFY: of both; else empty */
} tegula_copy_report;

TEGULA_API void tegula_copy_report_init(tegula_copy_report *report);

/* Saves a dataset under another name, in any format and layout, part by part: memory stays within
 * copy->memory, whatever the size. The next part is read while one is written. A target appears
 * whole or not at all, as with tegula_save.
 * - What the save options leave open is taken from the dataset: its name and fill value, the
 *   description of records; of a chunked one the chunk shape and the codec (an empty text: no
 *   codec) that tegula_dataset_info tells, unless they ask for another layout. Values are stored in
 *   the processor's byte order unless the options say another. Attributes go along when the options
 *   hold them, and with TEGULA_COPY_ALONG those of the dataset (of a folder of shards: of the
 *   first) whose names the options do not use.
 * - What the target cannot hold of all this is left out and said: in the report, and to `dropped`
 *   by name.
 * - Parts end where chunks of the target do, and where memory allows also where those of the
 *   dataset do: then none is decoded twice. Chunks stand in the target in the order of the parts,
 *   in each in the order of the array; that order is the same on every run.
 * - INVALID_ARGUMENT: the target is one of the dataset's own files, unless it is a container that
 *   is added to; or a folder that holds them.
 *
 * Statistics of the save options count both directions. `report` may be NULL. The dataset is
 * confirmed as by a load. [C] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_copy(tegula_dataset *dataset, const char *path,
                                                       const tegula_save_options *options,
                                                       const tegula_copy_options *copy,
                                                       tegula_copy_report *report,
                                                       tegula_error *err);

/* ---- operations in the background ---- */

typedef struct tegula_op tegula_op;

/* Like tegula_load and tegula_save, but the call returns when the operation is queued. Not OK:
 * nothing was queued. The operation keeps dataset and array alive; the memory of the array belongs
 * to it until it has ended. `options` is copied with all that it points to; its statistics and what
 * the progress function uses must live until the end. A relative path is that of the folder in
 * which the process is now. `out` may be NULL: the operation then reports to tegula_fence only.
 *
 * Order, on one context (a load is one of its array's): operations on the same array, or on the
 * same file or folder (also one inside the other, and whatever name leads there), run in the order
 * in which they were queued; two that only read it may overlap. Calls that are not in the
 * background, opening included, take their place in the same order: opening a path waits for a save
 * to it. On several ranks a load is of each rank's own part, nothing waits for the others before
 * tegula_op_wait or tegula_fence. A save begins on all ranks in this call, which fails with what is
 * wrong by then; each writes its tiles in the background, and it ends in tegula_op_wait,
 * tegula_fence, or a call that opens or saves to its path: in these the target appears, and chunks
 * are written. One that has not ended when the context is destroyed is given up. [C] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_load_async(tegula_dataset *dataset,
                                                             tegula_array *array,
                                                             const tegula_load_options *options,
                                                             tegula_op **out, tegula_error *err);
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_save_async(const tegula_array *array,
                                                             const char *path,
                                                             const tegula_save_options *options,
                                                             tegula_op **out, tegula_error *err);
/* Waits until the operation has ended and returns its status and error; TEGULA_TIMEOUT when it has
 * not after timeout_ns (-1: no limit), it then goes on. May be called again. [A; C on several
 * ranks: all get the same, TIMEOUT where one has not ended] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_op_wait(tegula_op *op, int64_t timeout_ns,
                                                          tegula_error *err);
/* Asks it to stop: it ends with TEGULA_CANCELLED unless it ended before; on several ranks one is
 * enough. Does not wait. [A] */
TEGULA_API void tegula_op_cancel(tegula_op *op);
/* 1 when it has ended: tegula_op_wait would return its status at once; it may have ended since a
 * wait that returned TIMEOUT. A wait that fails and leaves this 0 has not waited: ranks made
 * different calls, or one is missing. Asks no other rank. [A] */
TEGULA_API int32_t tegula_op_ended(const tegula_op *op);
/* Gives the handle back; an operation that still runs goes on. [O] */
TEGULA_API void tegula_op_destroy(tegula_op *op);
/* Waits until everything queued before on this context has ended: saves are then visible to every
 * program. Returns the error of the first operation that failed and that neither tegula_op_wait nor
 * an earlier tegula_fence has returned; the hint says how many more there are, the next calls
 * return those. [C] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_fence(tegula_context *context, tegula_error *err);

/* ---- batches ---- */

typedef struct tegula_batches tegula_batches;

/* Walks over a dataset in pieces of `chunk` (ndim lengths, all 1 or more; else INVALID_ARGUMENT
 * that says which), in C order from low to high, clipped at the end: length 5 with chunk 2 gives 2,
 * 2, 1. The next piece is read while the caller works on this one. In one process stored chunks
 * that go through a codec, and of which several pieces want something, are held for the next ones
 * instead of being decoded for each, where that saves a third of it and they fit in the staging
 * budget, besides which they count. [C] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_batches_open(tegula_dataset *dataset,
                                                               const int64_t *chunk, int32_t ndim,
                                                               const tegula_load_options *options,
                                                               tegula_batches **out,
                                                               tegula_error *err);
/* The next piece as an array of its own, which the caller destroys, and its box in the dataset.
 * TEGULA_END after the last. [C, O] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_batches_next(tegula_batches *batches,
                                                               tegula_array **out, tegula_box *box,
                                                               tegula_error *err);
TEGULA_API void tegula_batches_close(tegula_batches *batches);

/* ---- checks ---- */

/* The content hash "tegula1:" + 32 hex digits: depends on shape, dtype and values only, not on
 * layout, tiling or threads. It finds accidents, not attackers. docs/content-hash.md defines it.
 * The dataset form streams: memory stays within the staging budget. [C] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_array_hash(const tegula_array *array,
                                                             char out[TEGULA_HASH_TEXT],
                                                             tegula_error *err);
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_dataset_hash(tegula_dataset *dataset,
                                                               char out[TEGULA_HASH_TEXT],
                                                               const tegula_load_options *options,
                                                               tegula_error *err);

/* The plan of a load as JSON, without reading data: shape, dtype, and for each tile its box, rank,
 * bytes, read requests and the rows of each file that it comes from (docs/plan.md). Free with
 * tegula_free. [A] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_explain(const tegula_dataset *dataset,
                                                          const tegula_tiling *tiling, char **out,
                                                          tegula_error *err);

typedef enum tegula_verify_level {
  TEGULA_VERIFY_SIZES = 0,     /* every file is there and as long as it was described */
  TEGULA_VERIFY_CHECKSUMS = 1, /* also checksums, where the format has them */
  TEGULA_VERIFY_DECODE = 2     /* also every byte can be read and decoded */
} tegula_verify_level;

typedef struct tegula_verify_report {
  size_t struct_size;
  int64_t files;    /* looked at */
  int64_t chunks;   /* stored pieces, as in tegula_dataset_info */
  int64_t bytes;    /* read and decoded */
  int64_t problems; /* found */
} tegula_verify_report;

TEGULA_API void tegula_verify_report_init(tegula_verify_report *report);
/* Called once for each problem, in the order of files; `problem` is borrowed until it returns. */
typedef void (*tegula_problem_fn)(void *state, const tegula_error *problem);
/* Goes on after a problem, so that all are found. Returns the first one; OK when there is none.
 * `visit` and `report` may be NULL. [C] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_dataset_verify(
    tegula_dataset *dataset, tegula_verify_level level, tegula_problem_fn visit, void *state,
    const tegula_load_options *options, tegula_verify_report *report, tegula_error *err);

/* Sums of a dataset as JSON text (docs/checks.md): of each of its files the size and digests
 * (XXH3-128), of each stored chunk the digest of its bytes, and with TEGULA_VERIFY_DECODE the
 * content hash; TEGULA_VERIFY_CHECKSUMS leaves that out and decodes nothing. File names in it are
 * relative to `folder`, where the text will be kept (NULL: absolute). Memory stays within the
 * staging budget and what the text needs. Free with tegula_free. [C] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_dataset_sums(tegula_dataset *dataset,
                                                               const char *folder,
                                                               tegula_verify_level level,
                                                               const tegula_load_options *options,
                                                               char **out, tegula_error *err);

typedef struct tegula_sums_report {
  size_t struct_size;
  int64_t files;    /* in the sums */
  int64_t chunks;   /* compared */
  int64_t bytes;    /* of files: read and compared */
  int64_t problems; /* found */
  int32_t content;  /* 1: the array is that of the sums; 0: it is another; -1: not known */
  int32_t reserved;
} tegula_sums_report;

TEGULA_API void tegula_sums_report_init(tegula_sums_report *report);
/* Compares files with the sums in the file `path`, and what `dataset` holds with their content
 * hash. SIZES: that the files are there and as long as they were; CHECKSUMS: also their bytes,
 * chunk by chunk; DECODE: also the content. Goes on after a problem: each is told, in the order of
 * the sums, those of the whole last. `dataset` may be NULL, where it cannot be opened any more: its
 * files are then looked at alone. Returns the first problem; a failure with report->problems 0 is
 * none, such as sums that cannot be read. `visit` and `report` may be NULL. On several ranks each
 * reads a share, and all get the same report. [C] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_sums_check(
    tegula_context *context, const char *path, tegula_dataset *dataset, tegula_verify_level level,
    tegula_problem_fn visit, void *state, const tegula_load_options *options,
    tegula_sums_report *report, tegula_error *err);

/* NaN equals NaN and -0 equals +0; otherwise bytes in canonical form are compared */
#define TEGULA_COMPARE_VALUES 1u

typedef struct tegula_difference {
  size_t struct_size;
  int32_t equal; /* 1 or 0 */
  int32_t ndim;
  /* of the first element in C order that differs; only when has_index */
  int64_t index[TEGULA_MAX_DIMS];
  int32_t has_index;
  int32_t reserved;
  char a[128]; /* the two values (or shapes, or dtypes) as text */
  char b[128];
  char reason[256]; /* one line: what differs */
} tegula_difference;

TEGULA_API void tegula_difference_init(tegula_difference *difference);
/* Do two datasets hold the same array, whatever their layouts? Streams both; memory stays within
 * the staging budget. OK means that they could be compared: out->equal says the result. Both are of
 * the same context. [C] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_compare(tegula_dataset *a, tegula_dataset *b,
                                                          uint32_t flags,
                                                          const tegula_load_options *options,
                                                          tegula_difference *out,
                                                          tegula_error *err);

typedef enum tegula_values {
  TEGULA_VALUES_RANDOM = 0, /* depends on seed and index */
  TEGULA_VALUES_RAMP = 1    /* index mod 1000 */
} tegula_values;

/* Demonstration values (docs/demonstration-values.md): the element at each index of an array of
 * `shape` depends on its index in C order and the seed only. Kinds b i u f E c (of standard sizes);
 * others are UNSUPPORTED. `fill` writes the view's box; `check` compares and returns MISMATCH with
 * the first index in C order that differs. Byte order of the view is honoured. Works on the
 * context's threads. [A] */
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_demo_fill(tegula_context *context,
                                                            const tegula_view *view,
                                                            const int64_t *shape,
                                                            tegula_values values, uint64_t seed,
                                                            tegula_error *err);
TEGULA_API TEGULA_MUST_CHECK tegula_status tegula_demo_check(tegula_context *context,
                                                             const tegula_view *view,
                                                             const int64_t *shape,
                                                             tegula_values values, uint64_t seed,
                                                             tegula_error *err);

#ifdef __cplusplus
}
#endif
#endif
