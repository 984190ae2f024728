/* Formats: each one describes what is in a file (load) and lays out what is to be written (save).
 * It never moves array bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * registry.c holds the one table. Drivers read headers through a `source`, so tests and fuzzers can
 * feed them memory.
 *
 * Begin reading at tegula__format, then npy/npy.c. Each format has a folder; the row of HDF5 lies
 * in src/plugin. The folder includes base, manifest and codec. */
#ifndef TEGULA_FORMAT_FORMAT_H
#define TEGULA_FORMAT_FORMAT_H

#include <tegula/tegula_plugin.h>

#include "base/base.h"
#include "format/settings.h"
#include "manifest/manifest.h"

/* How a driver gets at files that its file speaks of. A handle outlives the store when it was
 * detached: it is then read and closed at any time, from any thread, and what is read is counted
 * nowhere. */
typedef struct tegula__store tegula__store;
struct tegula__store {
  tegula_status (*open)(const tegula__store *store, const char *path, tegula__stamp *stamp,
                        void **handle, tegula_error *err);
  tegula_status (*read)(void *handle, int64_t offset, void *out, size_t size, tegula_error *err);
  /* CHANGED: it is no longer the file that was opened */
  tegula_status (*check)(void *handle, tegula_error *err);
  void (*detach)(void *handle);
  void (*close)(void *handle);
  bool (*locked)(void *handle); /* as tegula__io_locked; NULL: nothing is */
  void *state;
};

/* A file that is being described. */
typedef struct tegula__source tegula__source;
struct tegula__source {
  const char *path; /* for messages */
  int64_t size;
  /* Reads exactly `size` bytes at `offset`; the caller has checked that they are inside the
   * file. */
  tegula_status (*read)(const tegula__source *source, int64_t offset, void *out, size_t size,
                        tegula_error *err);
  bool (*locked)(const tegula__source *source); /* as tegula__io_locked; NULL: it is not */
  void *state;
  const tegula__stamp *stamp; /* NULL: it is not a file */
  const tegula__store *store; /* NULL: there are no other files */
  /* The first bytes of the file, read already (may be fewer than the file has). Drivers look here
   * before they read. */
  const unsigned char *head;
  size_t head_size;
};

/* Bytes [offset, offset + size) of the source into `out`, from the head where it has them.
 * SHORT_FILE when the file ends before. */
tegula_status tegula__source_read(const tegula__source *source, int64_t offset, void *out,
                                  size_t size, tegula_error *err);

/* Can the chunks be decoded, and is none longer than their codecs make it? `path` is for messages:
 * the file they are in. */
tegula_status tegula__format_check_grid(const tegula__grid *grid, const char *path,
                                        tegula_error *err);

/* The plugins of a context: plugin/plugin.h. */
typedef struct tegula__plugins tegula__plugins;

/* What the user said about the files; texts parsed already. */
typedef struct tegula__describe_options {
  bool has_dtype;
  tegula_dtype dtype;
  const char *record; /* where it is a record: its description as it was given; NULL: it is none */
  const int64_t *shape;
  const int64_t *row_shape;
  int32_t shape_ndim; /* -1: not given */
  int32_t row_ndim;   /* -1: not given */
  int64_t offset;
  int64_t row_gap;
  char order;          /* 'C', 'F', 0 */
  char byte_order;     /* '<', '>', 0 */
  const char *dataset; /* NULL: the only one */
  /* datasets that are joined behind that one; only where something is asked about it, not
   * described */
  char *const *others;
  int64_t other_count;
  tegula__settings settings; /* checked */
  tegula__settings besides;  /* what the side file says; `settings` come first */
  bool locked;               /* files that others have locked are taken, too */
  tegula__plugins *plugins;  /* NULL: none */
} tegula__describe_options;

/* Where a box of a virtual dataset is: the whole of another file's dataset, which has its shape. */
typedef struct tegula__mapping {
  const char *file; /* as it is to stand in the file: from the folder of the virtual file */
  const char *dataset;
  const int64_t *lo, *hi;
} tegula__mapping;

/* Where a dataset that is saved comes from: what it has beside its elements goes along, where
 * container and format are the same. */
typedef struct tegula__origin {
  const tegula__source *source;
  const tegula__describe_options *options; /* the dataset in it */
  tegula_plugin_dropped_fn dropped;        /* told what cannot; NULL */
  void *state;
  bool reads_target; /* its elements are in the target, too */
  bool bare;         /* nothing goes along */
} tegula__origin;

/* What is to be written. */
typedef struct tegula__layout_request {
  tegula_dtype dtype; /* order: as it is to be stored */
  const char *descr;  /* or NULL */
  int32_t ndim;
  const int64_t *shape;
  char order;                /* 'C' or 'F' */
  char byte_order;           /* as it was asked for: '<', '>' or 0 */
  tegula__settings settings; /* checked */
  tegula__frame *frame;      /* filled by lay_out where the file is to have records */
  /* containers */
  const char *dataset;
  bool replace;         /* what has that name already */
  const int64_t *chunk; /* NULL: contiguous */
  const tegula__filter *filters;
  int32_t filter_count;
  const tegula__mapping *mappings; /* NULL: not virtual */
  int64_t mapping_count;
  const void *fill; /* one item in native byte order; NULL: none is defined */
  const tegula_attribute *attributes;
  int64_t attribute_count;
  const tegula__origin *origin; /* or NULL */
} tegula__layout_request;

/* A file that is being saved, for a driver that writes more of it than a header in front. */
typedef struct tegula_plugin_sink tegula__sink;
struct tegula_plugin_sink {
  const char *path; /* for messages: the name that it will have */
  int64_t (*size)(const tegula__sink *sink);
  tegula_status (*read)(tegula__sink *sink, int64_t offset, void *out, size_t size,
                        tegula_error *err);
  tegula_status (*write)(tegula__sink *sink, int64_t offset, const void *data, size_t size,
                         tegula_error *err);
  tegula_status (*resize)(tegula__sink *sink, int64_t size, tegula_error *err);
  void *state;
};

/* How a file of several datasets is saved. The driver makes datasets and finds places; the bytes of
 * arrays are the engine's. One thread at a time per file. */
typedef struct tegula__container {
  /* A file without bytes is a new one. */
  tegula_status (*open)(tegula__plugins *plugins, tegula__sink *sink, void **saving,
                        tegula_error *err);
  /* Adds a dataset. *offset: where its first byte will stand; -1: there are no bytes, or chunks,
   * whose places are still to be found. */
  tegula_status (*add)(void *saving, const tegula__layout_request *request, int64_t *number,
                       int64_t *offset, tegula_error *err);
  /* Where the chunk with these indices (counted in chunks) goes, which has `length` bytes and whose
   * stages in `mask` were skipped. */
  tegula_status (*place)(void *saving, int64_t number, const int64_t *chunk, uint32_t length,
                         uint32_t mask, uint64_t *offset, tegula_error *err);
  /* Either ends `saving`. */
  tegula_status (*close)(void *saving, tegula_error *err);
  void (*abandon)(void *saving);
  int64_t largest_chunk; /* bytes, encoded or not */
} tegula__container;

/* Called for each dataset of a container; another status than OK ends the list. */
typedef tegula_plugin_list_fn tegula__list_fn;
typedef tegula_plugin_attribute_fn tegula__attribute_fn;
typedef tegula_plugin_name_fn tegula__name_fn;

typedef struct tegula__format {
  const char *name;
  const tegula__setting_row *settings; /* ends with a NULL key; NULL: none */
  const char *const *suffixes; /* ".npy", ...; ends with NULL; NULL: not recognised by name */
  const void *magic;           /* NULL: not recognised by its first bytes */
  size_t magic_size;
  bool (*recognise)(const void *head, size_t size); /* or NULL: where fixed bytes do not tell */
  /* Of a file whose first bytes do not tell: looks behind them. NULL: there is nothing to see. */
  tegula_status (*recognise_rest)(const tegula__source *source, bool *found, tegula_error *err);
  /* the files of one set mostly have headers of one length and size, and say nothing but their
   * number of rows */
  bool alike;
  /* Fills dtype, ndim, shape, descr, name and the parts (file index 0) of an initialised manifest.
   * Never reads array data; every size from the file is compared with source->size. A description
   * of other files brings their table along, and their format's name. */
  tegula_status (*describe)(const tegula__source *source, const tegula__describe_options *options,
                            tegula__manifest *out, tegula_error *err);
  /* Both or none; none: it knows no patterns of datasets. The names in a group, in order, of
   * whatever is there (INVALID_ARGUMENT: it is no group); and as `describe` of each of the
   * datasets, each into a manifest of its own, at the cost of opening the file once. */
  tegula_status (*names)(const tegula__source *source, const tegula__describe_options *options,
                         const char *group, tegula__name_fn each, void *state, tegula_error *err);
  tegula_status (*describe_many)(const tegula__source *source,
                                 const tegula__describe_options *options,
                                 const char *const *datasets, int64_t count, tegula__manifest *out,
                                 tegula_error *err);
  /* NULL: it holds one array only. */
  tegula_status (*list)(const tegula__source *source, const tegula__describe_options *options,
                        tegula__list_fn each, void *state, tegula_error *err);
  /* Of the file and its datasets, or of options->dataset; NULL: there are none. */
  tegula_status (*attributes)(const tegula__source *source, const tegula__describe_options *options,
                              tegula__attribute_fn each, void *state, tegula_error *err);
  /* NULL: cannot be saved. Appends the header to `header` and gives the byte strides of the array,
   * whose first element follows the header. */
  tegula_status (*lay_out)(const tegula__layout_request *request, tegula__buffer *header,
                           int64_t *strides, tegula_error *err);
  /* NULL: files say all themselves. What is to lie beside the shards of a folder, as a text: `rows`
   * and `names` are those of the `count` files. False: the buffer could not grow. */
  bool (*side_file)(const tegula__layout_request *request, const char *const *names,
                    const int64_t *rows, int64_t count, tegula__buffer *out);
  const tegula__container *container; /* instead: saved as a file of several datasets; NULL */
} tegula__format;

/* NULL at the end. */
const tegula__format *tegula__format_at(size_t index);
const tegula__format *tegula__format_by_name(const char *name);
/* By the first bytes; NULL when none fits. */
const tegula__format *tegula__format_by_content(const void *head, size_t size);
/* By what is behind the first bytes; NULL when none fits. Reads a few bytes here and there. */
tegula_status tegula__format_by_rest(const tegula__source *source, const tegula__format **out,
                                     tegula_error *err);
/* By the path's suffix; NULL when none fits. */
const tegula__format *tegula__format_by_suffix(const char *path);
/* "npy, raw, hdf5, manifest": for messages. */
void tegula__format_names(char *out, size_t size);

/* A kind of files that no format here takes. */
typedef struct tegula__foreign {
  const char *is; /* "a netCDF classic file": the rest of a sentence */
  const char *hint;
} tegula__foreign;
/* By the first bytes; NULL: not known, or a kind that people read as raw, where that is asked. */
const tegula__foreign *tegula__format_foreign(const void *head, size_t size, bool may_be_raw);

extern const tegula__format tegula__format_npy;
extern const tegula__format tegula__format_raw;
extern const tegula__format tegula__format_hdf5;
extern const tegula__format tegula__format_manifest;
/* Packed bytes (tegula__manifest_pack) of another rank -> an initialised manifest that is still to
 * be finished; chains of codecs are looked at. `path`: of what they speak, for messages. */
tegula_status tegula__format_manifest_packed(const void *data, size_t size, const char *path,
                                             tegula__manifest *out, tegula_error *err);

/* check_options.c, for formats. */
/* INVALID_ARGUMENT when an option is given that only raw files need; `is`: "an npy file, whose
 * header says it". */
tegula_status tegula__format_check_raw_only(const tegula__source *source,
                                            const tegula__describe_options *options, const char *is,
                                            const char *format, tegula_error *err);
/* MISMATCH when a dtype is given and the file has another one, byte order aside, or other
 * records than `descr` says. */
tegula_status tegula__format_check_dtype(const tegula__source *source,
                                         const tegula__describe_options *options,
                                         tegula_dtype dtype, const char *descr, const char *format,
                                         tegula_error *err);

#endif
