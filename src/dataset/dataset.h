/* A dataset: an array in files, opened; and reading it.
 *
 * Begin reading at struct tegula_dataset, then open_dataset.c. open_ranks.c opens on several ranks.
 * view.c finds out late parts. load_array.c moves elements into memory. chunk_cache.c keeps decoded
 * chunks of small reads, batch_window.c those of batches. scan.c goes through a dataset in windows.
 * The folder includes runtime, dist and the folders of mechanisms (tools/check_layers.py).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_DATASET_DATASET_H
#define TEGULA_DATASET_DATASET_H

#include <stdatomic.h>
#include <string.h>

#include "base/base.h"
#include "base/pool.h"
#include "discover/discover.h"
#include "manifest/manifest.h"
#include "runtime/array_handle.h"
#include "runtime/caller_structs.h"
#include "runtime/tally.h"

typedef struct tegula__views tegula__views;

struct tegula_dataset {
  _Atomic int32_t references;
  tegula_context *context;
  tegula__places places; /* what it was opened from */
  tegula__manifest manifest;
  tegula__file_set *files;
  /* headers that are to be compared before anything else is said of the files; NULL: none */
  tegula__unread *unread;
  tegula__views *views;         /* what is known of its late parts; NULL: it has none */
  char *codecs;                 /* names of the chain that most bytes in chunks went through */
  char *opened;                 /* the first of the files that were found */
  char *asked;                  /* containers: the name that was asked for; NULL: none */
  bool locked;                  /* files that others have locked were taken, too */
  _Atomic uint64_t cache_owner; /* in the context's cache; 0: nothing was kept so far */
  /* of a selection: what it was selected from, and that with what was found out; it has their
   * places and files. NULL: it is no selection */
  tegula_dataset *selected, *source;
};

tegula_dataset *tegula__dataset_retain(const tegula_dataset *dataset);

/* ---- opening ---- */

/* open_dataset.c: by this process alone, whatever the context. Nothing is agreed. */
tegula_status tegula__open_here(tegula_context *context, const char *const *paths, size_t count,
                                const tegula_open_options *options, tegula_dataset **out,
                                tegula_error *err);
tegula_status tegula__open_check(const char *const *paths, size_t count,
                                 const tegula_open_options *options, tegula_open_options *local,
                                 tegula__discover_options *discover, tegula_error *err);
/* A handle for a finished manifest, which it takes with its files in any case. Without places:
 * nothing in this process saves there. */
tegula_status tegula__dataset_of_manifest(tegula_context *context, tegula__manifest *manifest,
                                          tegula_dataset **out, tegula_error *err);
/* open_dataset.c: what the options say, checked. */
tegula_status tegula__discover_options_of(const tegula_open_options *options,
                                          tegula__discover_options *out, tegula_error *err);

/* selection.c: a dataset of what is selected of another, which it keeps. Nothing is read but
 * deferred headers and late parts. */
struct tegula__subset;
tegula_status tegula__dataset_select(const tegula_dataset *dataset,
                                     const struct tegula__subset *subset, tegula_dataset **out,
                                     tegula_error *err);

/* ---- what must be the same on all ranks ---- */

/* call_dataset.c: what must be the same on all ranks of a tiling, of a dataset, of paths and
 * options. */
void tegula__call_tiling(tegula__call *call, const tegula_tiling *tiling, tegula_dtype dtype);
void tegula__call_dataset(tegula__call *call, const tegula_dataset *dataset);
/* Adds the settings to what was added last. */
void tegula__call_settings(tegula__call *call, const tegula_setting *settings, int32_t count);
/* Of a dataset whose late parts were found out: by each rank for itself, where there are some. */
void tegula__call_view(tegula__call *call, const tegula_dataset *view);

/* ---- loading ---- */

/* load_array.c: the work of tegula_load, without its place in the order of operations; options are
 * complete. */
tegula_status tegula__load(const tegula_dataset *dataset, const tegula_array *array,
                           const tegula_load_options *options, tegula_error *err);
/* Of a load: what this rank does, which makes no call of MPI; and what must be the same on all
 * ranks. */
tegula_status tegula__load_here(const tegula_dataset *dataset, const tegula_array *array,
                                const tegula_load_options *options, tegula_error *err);
void tegula__call_load(tegula__call *call, const tegula_dataset *dataset, const tegula_array *array,
                       const tegula_load_options *options);

/* Reads and compares the headers that were deferred, where that has not been done: what the
 * manifest says of the files is certain then. Everything that shows more of it than the whole shape
 * calls this first. `counts` may be NULL. */
tegula_status tegula__dataset_confirm(const tegula_dataset *dataset, tegula__io_counts *counts,
                                      tegula_error *err);

/* view.c: a dataset whose manifest can be planned for the tiles, or for everything: late parts are
 * found out first. Itself where it has none. Close it before the dataset. `options` are asked
 * whether to go on; they and `counts` may be NULL. */
tegula_status tegula__dataset_view(const tegula_dataset *dataset, const tegula__tile *tiles,
                                   int64_t count, const tegula_load_options *options,
                                   tegula__io_counts *counts, tegula_dataset **out,
                                   tegula_error *err);
tegula_status tegula__dataset_view_all(const tegula_dataset *dataset,
                                       const tegula_load_options *options,
                                       tegula__io_counts *counts, tegula_dataset **out,
                                       tegula_error *err);
/* The dataset with what has been found out of it; borrowed, as long as the dataset lives. */
const tegula_dataset *tegula__dataset_known(const tegula_dataset *dataset);
/* dataset.c */
tegula_status tegula__dataset_name_codecs(tegula_dataset *dataset, tegula_error *err);

/* Moves tiles between a dataset's files and memory, and confirms the dataset. */
tegula_status tegula__dataset_move(const tegula_dataset *dataset, const tegula__tile *tiles,
                                   int64_t count, const tegula_load_options *options,
                                   tegula__tally *tally, tegula_error *err);

/* The places belong to the dataset on success, unless it has others. */
tegula_status tegula__dataset_finish(tegula_dataset *dataset, const tegula__places *places,
                                     const tegula__describe_options *options, bool others,
                                     tegula_error *err);

/* What a dataset owns but its context and its places. */
void tegula__dataset_free_content(tegula_dataset *dataset);

/* The end of a load: what must be the same on all ranks is compared where all is well so far. */
tegula_status tegula__load_agree(const tegula_dataset *dataset, const tegula_array *array,
                                 const tegula_load_options *options, tegula_status status,
                                 tegula_error *err);

void tegula__call_open(tegula__call *call, const char *const *paths, size_t count,
                       const tegula_open_options *options);

tegula_status tegula__open_from_root(tegula_context *context, const char *const *paths,
                                     size_t count, const tegula_open_options *options,
                                     tegula_dataset **made, tegula_error *err);

#endif
