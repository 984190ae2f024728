/* The manifest: where the bytes of one array are. Format drivers fill it, the planner cuts it, the engine follows it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A manifest is a dataset (dtype, shape), a table of files, and parts. A part is a box of the array whose elements lie in one file at
 * offset + sum((index[k] - lo[k]) * strides[k]). Parts are disjoint, cover the array, are sorted by their rows (axis 0) and span all of
 * the other axes, so a row is found by bisection. After tegula__manifest_finish it is immutable and may be read by any threads. */
#ifndef TEGULA_MANIFEST_MANIFEST_H
#define TEGULA_MANIFEST_MANIFEST_H

#include "base/base.h"

/* A user's own format: elements come from a callback instead of files. */
typedef struct tegula__reader {
  tegula_reader_fn read;
  void *state;
  tegula_release_fn release; /* or NULL */
  char *name;
  int64_t cost;              /* memory that one call needs */
  bool chunked;
  int64_t chunk[TEGULA_MAX_DIMS]; /* when chunked: no box crosses a multiple of these */
} tegula__reader;

typedef struct tegula__part {
  int64_t file;           /* index in files, TEGULA__NO_FILE when the manifest has a reader */
  int64_t offset;         /* of the element at lo */
  const int64_t *lo;      /* ndim entries each; owned by the manifest */
  const int64_t *hi;
  const int64_t *strides; /* bytes, positive */
  uint8_t order;          /* byte order as stored: '<', '>' or '|' */
} tegula__part;

#define TEGULA__NO_FILE ((int64_t)-1)

/* Of each file so much is read at once to learn what it holds; nearly all headers fit. */
#define TEGULA__HEAD_BYTES 4096

typedef struct tegula__manifest {
  tegula_dtype dtype; /* native byte order */
  int32_t ndim;
  int64_t shape[TEGULA_MAX_DIMS];
  char *descr;        /* structured records: numpy's description, else NULL; owned */
  const char *format; /* static text: the driver's name */
  const char *name;   /* static text: the dataset's name */
  tegula__reader *reader; /* NULL: elements come from the files; owned, its release function is called with it */
  tegula__file *files; /* owned, paths too */
  int64_t file_count;
  tegula__part *parts;
  int64_t part_count;
  int64_t part_capacity;
  int64_t *vectors; /* one block behind all lo, hi, strides after finish; before, each part owns its vectors (one block at lo) */
} tegula__manifest;

void tegula__manifest_init(tegula__manifest *manifest);
void tegula__manifest_free(tegula__manifest *manifest);

/* Adds a part; the vectors (ndim entries each) are copied. `file` is the index the file has in this manifest. */
tegula_status tegula__manifest_add(tegula__manifest *manifest, int64_t file, int64_t offset, const int64_t *lo, const int64_t *hi,
                                   const int64_t *strides, uint8_t order, tegula_error *err);

/* Checks all that the head of this file promises, and that each part lies within its file's size. TEGULA_SHORT_FILE names the file,
 * the bytes expected and found. */
tegula_status tegula__manifest_finish(tegula__manifest *manifest, tegula_error *err);

/* Joins the manifests of shards along axis 0 into `out`, and moves files and parts (the shards are emptied). A difference in dtype,
 * trailing axes or record description is TEGULA_MISMATCH naming the file and both values; a 0-d shard is refused when count > 1. */
tegula_status tegula__manifest_join(tegula__manifest *shards, int64_t count, tegula__manifest *out, tegula_error *err);

/* The parts [*first, *last) that hold rows of [lo, hi), by bisection. For ndim 0 all of them. */
void tegula__manifest_find(const tegula__manifest *manifest, int64_t lo, int64_t hi, int64_t *first, int64_t *last);

/* ---- as JSON (docs/manifest.md) ---- */

#define TEGULA__MANIFEST_KEY "tegula_manifest" /* the first key, whose value is the version: 1 */
#define TEGULA__MANIFEST_BYTES ((size_t)256 << 20) /* the longest text */

/* Writes a finished manifest as text (to be freed). Names of files are relative to `folder` where they can be; NULL: absolute. UNSUPPORTED
 * for one with a reader. */
tegula_status tegula__manifest_write(const tegula__manifest *manifest, const char *folder, char **out, tegula_error *err);

/* Reads such a text into an initialised manifest, which is then like one from a driver: finish is still to come, but cannot find anything
 * out of place. `path` is the file of the text: names are relative to its folder. `formats` (ends with NULL) are the names of formats that
 * may stand in it; static texts. Nothing is opened. CORRUPT says where the text contradicts itself. */
tegula_status tegula__manifest_read(const void *text, size_t size, const char *path, const char *const *formats, tegula__manifest *out,
                                    tegula_error *err);

#endif
