/* The manifest: where the bytes of one array are. Format drivers fill it, the planner cuts it, the
 * engine follows it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A manifest is a dataset (dtype, shape), a table of files, and parts: disjoint boxes that together
 * cover the array, sorted by their first rows (axis 0), so those of a range of rows are found by
 * bisection. A part is dense (bytes of one file), chunked (a box of a stored array of chunks),
 * filled (absent by the format's rules), lost, read by a function, or late: not looked at before a
 * box of it is wanted. After tegula__manifest_finish a manifest is immutable and may be read by any
 * threads.
 *
 * Begin reading at tegula__manifest and tegula__part. manifest.c begins, ends and searches one,
 * finish.c validates it, join.c joins shards, late.c finds out late parts, json_*.c and packed*.c
 * are its two written forms. The folder includes base. */
#ifndef TEGULA_MANIFEST_MANIFEST_H
#define TEGULA_MANIFEST_MANIFEST_H

#include <pthread.h>

#include "base/base.h"

/* A function that fills boxes: a user's own format, or what a driver cannot describe as bytes. */
typedef struct tegula__reader {
  tegula_reader_fn read;
  void *state;
  tegula_release_fn release; /* or NULL */
  char *name;
  /* there is one, for messages: "its filter szip is undone by libhdf5"; NULL: not known */
  char *why;
  int64_t cost; /* memory that one call needs */
  /* where its array begins in the joined one: boxes that it is given count from there */
  int64_t row;
  bool local; /* made by this program: it cannot be written down */
} tegula__reader;

/* One stored chunk. */
typedef struct tegula__chunk {
  uint64_t offset; /* in the file */
  uint32_t length; /* bytes stored; 0: absent */
  uint32_t mask;   /* bit i: stage i of the chain was skipped */
} tegula__chunk;

/* A stored array of chunks of one size. */
typedef struct tegula__grid {
  int64_t file;
  int64_t chunk_bytes; /* of a decoded chunk */
  uint8_t order;       /* byte order as stored: '<', '>' or '|' */
  int32_t filter_count;
  tegula__filter *filters; /* the chain, in encoding order; owned */
  int64_t slots;           /* chunk slots */
  int64_t count;           /* entries of the table */
  uint64_t *coordinates;   /* the slot of each entry, ascending; NULL: entry i is slot i; owned */
  tegula__chunk *chunks;   /* owned */
  /* for absent chunks: one item in native byte order; NULL: zeros, because none is defined */
  const void *fill;
  /* of contiguous bytes, which are read once for many parts; the file knows of no chunks */
  bool slices;
} tegula__grid;

typedef enum tegula__part_kind {
  /* the element at `index` is at offset + sum((index[k] - lo[k]) * strides[k]) of the file */
  TEGULA__PART_DENSE,
  TEGULA__PART_CHUNKED, /* see below */
  TEGULA__PART_FILL,    /* absent: every element is `fill` */
  TEGULA__PART_LOST,    /* should be there but is not: `lost` says why */
  TEGULA__PART_READ,    /* `reader` gives the elements */
  /* `late` says where the elements are when it is asked; never in what is planned */
  TEGULA__PART_LATE
} tegula__part_kind;

struct tegula__store; /* format/format.h */
typedef struct tegula__manifest tegula__manifest;

/* What several parts of a manifest hold is only found out when one of them is wanted: a source of a
 * virtual dataset over thousands. It is found out once, by whoever comes first; from then on it
 * stays as it is. */
typedef struct tegula__late tegula__late;
struct tegula__late {
  /* Gives an initialised manifest, whose dtype and shape are set, the files, grids and parts of
   * these boxes. `from` is the file that speaks of them, which has not changed. */
  tegula_status (*resolve)(const tegula__late *late, const struct tegula__store *store,
                           const tegula__file *from, tegula__manifest *out, tegula_error *err);
  void *state;
  tegula_release_fn release; /* or NULL */
  char *path;                /* where what it needs is expected */
  int64_t file;              /* the file of this manifest that speaks of it */
  /* where its array begins in the joined one: what `resolve` gives counts from there */
  int64_t row;
  int64_t number;          /* among those of the manifest */
  int64_t elements;        /* of its boxes; set by finish */
  pthread_mutex_t lock;    /* of `found` */
  tegula__manifest *found; /* NULL: nobody has asked yet */
};

/* Text in elements that the file pads otherwise than numpy, which takes all but zeros at the end
 * for text: `count` texts of `size` bytes, `stride` bytes apart, the first at `offset` of the
 * element. */
typedef struct tegula__text_place {
  int64_t offset, count, stride;
  uint32_t size;
  uint8_t padding; /* '0': what is behind the first zero is none of it; ' ': blanks at the end */
} tegula__text_place;

typedef struct tegula__texts {
  int64_t count;
  tegula__text_place places[];
} tegula__texts;

#define TEGULA__MOST_TEXTS 4096

/* Chunked: along axis k an element is number g = start[k] + (index[k] - lo[k]) * step[k] of the
 * stored array. Its chunk is slot slot_base + sum((g / chunk[k]) * slot_strides[k]) of the grid,
 * and in the decoded chunk it is at offset + sum((g % chunk[k]) * strides[k] / step[k]). Axes that
 * the stored array has not are folded: the part has length 1 there, chunk 1, strides 0. */
typedef struct tegula__part {
  tegula__part_kind kind;
  uint8_t order; /* byte order as stored: '<', '>' or '|' */
  int64_t file;  /* dense: index in files; else TEGULA__NO_FILE */
  int64_t offset;
  const int64_t *lo; /* ndim entries each; owned by the manifest */
  const int64_t *hi;
  const int64_t *strides; /* bytes from one index to the next, positive */
  /* chunked; also a reader's: no call crosses a multiple of chunk[k], counted by g. NULL: a reader
   * that may be asked for any box */
  const int64_t *start, *chunk;
  const int64_t *slot_strides;
  const int64_t *step; /* chunked; NULL: 1 along each axis */
  int64_t slot_base;
  const tegula__grid *grid;
  const void *fill; /* fill and lost: one item in native byte order; NULL: zeros */
  const tegula_error *lost;
  const tegula__reader *reader;
  tegula__late *late;
  const tegula__texts *texts; /* kept; NULL: elements are as they are stored */
} tegula__part;

#define TEGULA__NO_FILE ((int64_t)-1)

/* Of each file so much is read at once to learn what it holds; nearly all headers fit. */
#define TEGULA__HEAD_BYTES 4096

struct tegula__manifest {
  tegula_dtype dtype; /* native byte order */
  int32_t ndim;
  int64_t shape[TEGULA_MAX_DIMS];
  char *descr; /* structured records: numpy's description, else NULL; owned */
  /* with descr: a sentence about members that cannot be loaded, which have the dtype O in it; NULL:
   * all can; owned */
  char *refused;
  const char *format; /* static text: the driver's name */
  const char *name;   /* the dataset's name: static, or kept */
  /* kept: what the format says about elements that were never written; NULL: nothing */
  const void *fill;
  /* of a save that goes on: who writes to the files brings that to the disk; only as text */
  bool durable;
  /* kept: of all parts that are added without their own; NULL: none */
  const tegula__texts *texts;
  /* of the file that a driver describes, which is not in the table yet; record 0: it has none */
  tegula__frame frame;
  tegula__file *files; /* owned, paths too */
  int64_t file_count;
  tegula__part *parts;
  int64_t part_count;
  int64_t part_capacity;
  int64_t *reach; /* after finish: the largest hi[0] among parts[0..i] */
  /* one block behind the vectors of all parts after finish; before, each part owns its vectors (one
   * block at lo) */
  int64_t *vectors;
  tegula__grid **grids; /* owned */
  int64_t grid_count, grid_capacity;
  tegula__reader **readers; /* owned, their release functions are called with them */
  int64_t reader_count, reader_capacity;
  tegula__late **lates; /* owned */
  int64_t late_count, late_capacity;
  bool borrows; /* parts, grids and readers are another manifest's: only the tables are owned */
  void **kept;  /* fill values, texts and errors that parts point at; owned */
  int64_t kept_count, kept_capacity;
};

/* The records of a file; NULL: it has none. */
static inline const tegula__frame *tegula__file_frame(const tegula__file *file) {
  return file->frame.record > 0 ? &file->frame : NULL;
}

/* part.c: a list of that many, all zero, to be kept; NULL: no memory. */
tegula__texts *tegula__texts_new(int64_t count);
/* True where the places lie within elements of `item_size` bytes. */
bool tegula__texts_valid(const tegula__texts *texts, uint32_t item_size);

/* The file that its bytes come from; TEGULA__NO_FILE for parts without. */
static inline int64_t tegula__part_file(const tegula__part *part) {
  return part->grid != NULL ? part->grid->file : part->file;
}

/* Is the part stored in chunks, as its file knows them? */
static inline bool tegula__part_in_chunks(const tegula__part *part) {
  return part->kind == TEGULA__PART_CHUNKED && !part->grid->slices;
}
/* Dense bytes, or slices of such? */
static inline bool tegula__part_contiguous(const tegula__part *part) {
  return part->kind == TEGULA__PART_DENSE ||
         (part->kind == TEGULA__PART_CHUNKED && part->grid->slices);
}

void tegula__manifest_init(tegula__manifest *manifest);
void tegula__manifest_free(tegula__manifest *manifest);

/* Adds a part; the vectors (ndim entries each) are copied. `file` is the index the file has in this
 * manifest. */
tegula_status tegula__manifest_add(tegula__manifest *manifest, int64_t file, int64_t offset,
                                   const int64_t *lo, const int64_t *hi, const int64_t *strides,
                                   uint8_t order, tegula_error *err);

/* Adds any part: as manifest_add, with all that its kind needs. Vectors are copied; grid, fill,
 * lost and reader must be of this manifest. */
tegula_status tegula__manifest_add_part(tegula__manifest *manifest, const tegula__part *part,
                                        tegula_error *err);
/* Takes memory from malloc, or frees it and fails. */
tegula_status tegula__manifest_keep(tegula__manifest *manifest, void *memory, tegula_error *err);
/* Take the struct and what it owns on success. */
tegula_status tegula__manifest_add_grid(tegula__manifest *manifest, tegula__grid *grid,
                                        tegula_error *err);
tegula_status tegula__manifest_add_reader(tegula__manifest *manifest, tegula__reader *reader,
                                          tegula_error *err);
tegula_status tegula__manifest_add_late(tegula__manifest *manifest, tegula__late *late,
                                        tegula_error *err);
void tegula__grid_free(tegula__grid *grid);

/* Is the chunk stored as it is: no filter, or all of them skipped? */
static inline bool tegula__chunk_plain(const tegula__grid *grid, const tegula__chunk *chunk) {
  uint32_t all = grid->filter_count >= 32 ? UINT32_MAX : (UINT32_C(1) << grid->filter_count) - 1;
  return (chunk->mask & all) == all;
}

/* The entry of a slot in the grid's table; NULL when nothing is stored there. */
const tegula__chunk *tegula__grid_find(const tegula__grid *grid, int64_t slot);

/* Of a chunked part along axis k: the step, and the number in the stored array of an element. */
static inline int64_t tegula__part_step(const tegula__part *part, int32_t k) {
  return part->step != NULL ? part->step[k] : 1;
}
static inline int64_t tegula__part_element(const tegula__part *part, int32_t k, int64_t index) {
  return part->start[k] + (index - part->lo[k]) * tegula__part_step(part, k);
}
/* Chunks that a part meets are numbered along each axis so that each number has elements of the
 * part. A step up to a chunk's length meets all chunks: the number is that of the stored array. A
 * longer step has one element in each chunk that it meets: the number is index - lo. */
static inline int64_t tegula__part_number(const tegula__part *part, int32_t k, int64_t index) {
  return tegula__part_step(part, k) <= part->chunk[k]
             ? tegula__part_element(part, k, index) / part->chunk[k]
             : index - part->lo[k];
}
/* The elements of the part along axis k in the chunk of that number: [*lo, *hi). */
void tegula__part_span(const tegula__part *part, int32_t k, int64_t number, int64_t *lo,
                       int64_t *hi);
/* The most elements of the part that a chunk has along axis k. */
static inline int64_t tegula__part_chunk_length(const tegula__part *part, int32_t k) {
  return tegula__ceil_div(part->chunk[k], tegula__part_step(part, k));
}

/* The chunks that a chunked part (or a reader's with chunks) meets: along axis k from number lo[k]
 * to hi[k]. */
void tegula__part_chunks(const tegula__part *part, int32_t ndim, int64_t *lo, int64_t *hi);
/* What chunk `at` (ndim numbers of chunks) holds of the part: a dense part with the box [lo, hi)
 * whose offset counts from the start of the decoded chunk. Returns its slot. `out` points at lo, hi
 * and the part's strides. */
int64_t tegula__part_chunk(const tegula__part *part, int32_t ndim, const int64_t *at, int64_t *lo,
                           int64_t *hi, tegula__part *out);
/* Is none of the chunks from `first` up to `last` stored? Found out by one look at a table that
 * says only what is there; false also where that does not tell. */
bool tegula__part_bare(const tegula__part *part, int32_t ndim, const int64_t *first,
                       const int64_t *last);

/* Is given one stored chunk of a part and the box of the array that it holds; false: no more. */
typedef bool (*tegula__chunk_fn)(void *state, const tegula__chunk *chunk, const int64_t *lo,
                                 const int64_t *hi);
/* Every stored chunk of a chunked part that is not empty, by slot or in the order of the array: as
 * many steps as the part has chunks, or its grid entries, whichever are fewer. False: `each` had
 * enough. */
bool tegula__part_visit(const tegula__part *part, int32_t ndim, tegula__chunk_fn each, void *state);

/* Checks all that the head of this file promises, and that each part lies within its file's size.
 * TEGULA_SHORT_FILE names the file, the bytes expected and found. */
tegula_status tegula__manifest_finish(tegula__manifest *manifest, tegula_error *err);

/* Joins the manifests of shards along axis 0 into `out`, and moves files and parts (the shards are
 * emptied). A difference in dtype, trailing axes or record description is TEGULA_MISMATCH naming
 * the file (of shards of one file: the dataset) and both values; a 0-d shard is refused when count
 * > 1. */
tegula_status tegula__manifest_join(tegula__manifest *shards, int64_t count, tegula__manifest *out,
                                    tegula_error *err);

/* Files that are several times in the table of an unfinished manifest, by their paths, are there
 * once. CHANGED: they were not the same file. */
tegula_status tegula__manifest_merge_files(tegula__manifest *manifest, tegula_error *err);

/* ---- late parts (late.c) ---- */

/* Marks in `wanted` (an entry for each of manifest->lates) those of which the box wants
 * something. */
void tegula__late_mark(const tegula__manifest *manifest, const int64_t *lo, const int64_t *hi,
                       bool *wanted);
/* Finds out what it is, unless that is known. What it gives must be its boxes, no more and no less.
 * Any threads. */
tegula_status tegula__late_resolve(const tegula__manifest *manifest, tegula__late *late,
                                   const struct tegula__store *store, const tegula__file *from,
                                   tegula_error *err);
/* The manifest with all that has been found out of those that are wanted in the place of late
 * parts, and nothing in the place of the others: it may be planned for boxes that want nothing of
 * them. It borrows from `manifest`, which must outlive it. `files`: the manifest's, with stamps
 * that nobody changes any more. */
tegula_status tegula__manifest_view(const tegula__manifest *manifest, const tegula__file *files,
                                    const bool *wanted, tegula__manifest *out, tegula_error *err);

/* Do the parts of a view give every element of the box? */
bool tegula__view_holds(const tegula__manifest *view, const int64_t *lo, const int64_t *hi);

/* Among the parts [*first, *last) are all that hold rows of [lo, hi): by bisection. For ndim 0 all
 * of them. */
void tegula__manifest_find(const tegula__manifest *manifest, int64_t lo, int64_t hi, int64_t *first,
                           int64_t *last);

/* ---- as JSON (docs/manifest.md) ---- */

#define TEGULA__MANIFEST_KEY "tegula_manifest" /* the first key, whose value is the version: 1 */
#define TEGULA__MANIFEST_BYTES ((size_t)256 << 20) /* the longest text */

/* Names that may stand in a text; static, lists end with NULL. */
typedef struct tegula__manifest_names {
  const char *const *formats;
  const char *const *codecs; /* entry i is codec i */
} tegula__manifest_names;

/* Writes a finished manifest as text (to be freed). Names of files are relative to `folder` where
 * they can be; NULL: absolute. UNSUPPORTED for one with a reader. */
tegula_status tegula__manifest_write(const tegula__manifest *manifest,
                                     const tegula__manifest_names *names, const char *folder,
                                     char **out, tegula_error *err);

/* Reads such a text into an initialised manifest, which is then like one from a driver: finish is
 * still to come, but cannot find anything out of place but pieces behind the end of their file.
 * `path` is the file of the text: names are relative to its folder. Nothing is opened, and whether
 * chains of codecs can be undone is not looked at. CORRUPT says where the text contradicts
 * itself. */
tegula_status tegula__manifest_read(const void *text, size_t size, const char *path,
                                    const tegula__manifest_names *names, tegula__manifest *out,
                                    tegula_error *err);

/* ---- as bytes, for other ranks of the same run (packed.c) ---- */

/* Writes a finished manifest; names of files are absolute. The buffer's maximum should be more than
 * what the manifest takes in memory. UNSUPPORTED as above. */
tegula_status tegula__manifest_pack(const tegula__manifest *manifest,
                                    const tegula__manifest_names *names, tegula__buffer *out,
                                    tegula_error *err);
/* As tegula__manifest_read. `path`: of what it speaks, for messages. CORRUPT where it contradicts
 * itself. */
tegula_status tegula__manifest_unpack(const void *data, size_t size, const char *path,
                                      const tegula__manifest_names *names, tegula__manifest *out,
                                      tegula_error *err);

#endif
