/* discover: paths -> ordered files -> headers described in parallel -> one joined manifest.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Begin reading at discover.c, which calls the others:
 *
 * - listing.c turns a folder or glob into names; name_order.c puts them in order, from names alone.
 * - describe_file.c opens a file and lets its format describe it. describe_job.c begins and ends
 *   the description of all files.
 * - side.c finds the file that describes raw ones.
 * - predict.c says what files hold whose headers are read later.
 * - join_shards.c joins the files; together.c proves that they were there at one moment.
 * - pattern.c takes several datasets of a file for one; list_inside.c lists containers.
 *
 * The folder includes base, io, manifest and format. */
#ifndef TEGULA_DISCOVER_DISCOVER_H
#define TEGULA_DISCOVER_DISCOVER_H

#include "base/base.h"
#include "base/pool.h"
#include "format/format.h"
#include "format/raw/side_file.h"
#include "io/io.h"
#include "manifest/manifest.h"

/* ---- names: pure text ---- */

/* Puts the names of a folder in numeric order (in place) by the rule "Order of files"
 * (docs/formats.md): they differ in exactly one run of digits, equal `prefix%0Wd suffix` for one
 * width W, and step by 1. `where` is the folder or pattern, for messages. Refusals: INCOMPLETE for
 * a hole (says which number), MISMATCH for duplicates, mixed padding, several differing runs,
 * foreign names. */
tegula_status tegula__names_order(char **names, int64_t count, const char *where,
                                  tegula_error *err);
/* What the names are of, for messages. */
typedef struct tegula__name_set {
  const char *where;
  const char *path;   /* the file that errors are of; NULL: the one of the name */
  const char *things; /* "files" */
  const char *foreign_hint, *hole_hint;
} tegula__name_set;

/* The same of any things. */
tegula_status tegula__names_order_set(char **names, int64_t count, const tegula__name_set *set,
                                      tegula_error *err);
/* Are these paths one numbered sequence out of numeric order, or are numbered names among them
 * sorted as text? Then INVALID_ARGUMENT with a hint, else OK. */
tegula_status tegula__names_check_order(const char *const *paths, int64_t count, tegula_error *err);

/* ---- listing ---- */

typedef struct tegula__paths {
  char **items; /* owned */
  int64_t count;
  bool whole;  /* all files of a folder */
  bool listed; /* found in folders, not given one by one */
} tegula__paths;

void tegula__paths_free(tegula__paths *paths);
/* A file, a folder or a glob pattern -> ordered files. A path that exists is never taken as a
 * pattern. NOT_FOUND: missing folder or file, no shards in it, nothing matches. Names that start
 * with '.' or '_' and side files (shard_meta.json) are skipped. Folders are listed by way of
 * `folders`, which may be NULL. */
tegula_status tegula__paths_find(const char *path, tegula__folders *folders, tegula__paths *out,
                                 tegula_error *err);
/* The same without a word about the names or what else lies there, in the order of names: all files
 * that can be found, also none. The scan goes on after a folder that cannot be seen; `problem` is
 * the first of them, its status OK when there is none. */
tegula_status tegula__paths_find_all(const char *path, tegula__paths *out, tegula_error *problem,
                                     tegula_error *err);

/* ---- the side file of raw files ---- */

/* What lies beside the files of a set; zeroed: nothing does. */
typedef struct tegula__side {
  tegula__side_file *file; /* NULL: there is none */
  tegula_error problem;    /* it is there, but cannot be used: said when it is needed */
  bool whole;              /* the files are all of the folder */
  int64_t total;           /* files of the folder */
  int64_t *places;         /* each file's number among them; NULL: its own */
} tegula__side;

/* Looks beside the files, when they all lie in one folder. Does not fail for what the side file
 * says. `folders` may be NULL. */
tegula_status tegula__side_find(const tegula__paths *paths, tegula__folders *folders,
                                tegula__side *out, tegula_error *err);
void tegula__side_free(tegula__side *side);

/* ---- other files ---- */

/* A store over the file system, for drivers whose files speak of others. What it opens is noted in
 * `folders`, as long as it is not detached. */
tegula_status tegula__store_create(tegula__handles *handles, tegula__folders *folders,
                                   tegula__io_counts *counts, tegula__store *out,
                                   tegula_error *err);
void tegula__store_free(tegula__store *store);

/* ---- headers that are read later ---- */

/* Can what other files hold be foretold from `first`, a described file? Rows of one size, in C
 * order, behind a short header. */
bool tegula__predict_from(const tegula__manifest *first);
/* Fills `out` with what a file of `size` bytes holds if its header is like that of `first`; *fits
 * is false where it cannot be. */
tegula_status tegula__predict(const tegula__manifest *first, int64_t size, tegula__manifest *out,
                              bool *fits, tegula_error *err);

/* The files of a finished manifest whose headers are still to be compared with what was foretold.
 * Any threads may use it. */
typedef struct tegula__unread tegula__unread;
/* *out is NULL when there are none. The manifest is borrowed. */
tegula_status tegula__unread_create(const tegula__manifest *manifest, tegula__unread **out,
                                    tegula_error *err);
void tegula__unread_destroy(tegula__unread *unread);
/* Files that are left; 0 for NULL. */
int64_t tegula__unread_left(const tegula__unread *unread);
/* Bytes from the start of the file that are to be compared, at most TEGULA__HEAD_BYTES; 0: none any
 * more. `state` is the tegula__unread. */
size_t tegula__unread_size(void *state, int64_t file);
/* Compares them. MISMATCH: the file is not what was foretold, so the rows of all files behind it
 * are somewhere else. */
tegula_status tegula__unread_check(void *state, int64_t file, const void *head, size_t size,
                                   tegula_error *err);
/* Reads and compares the headers that are left, in parallel. The error is that of the first file in
 * order. */
tegula_status tegula__unread_check_all(tegula__unread *unread, tegula__pool *pool,
                                       tegula__file_set *files, tegula__io_counts *counts,
                                       tegula_error *err);

/* ---- datasets ---- */

/* Characters that make a pattern of a name: of files, of datasets. */
#define TEGULA__WILDCARDS "*?[\\"

/* As format->describe; where options->dataset is a pattern, of all datasets that match it, put in
 * the order of their numbers and joined along axis 0. out->format is set. */
tegula_status tegula__describe_datasets(const tegula__format *format, const tegula__source *source,
                                        const tegula__describe_options *options,
                                        tegula__manifest *out, tegula_error *err);
/* The names of the datasets that match a pattern, in order; they and the list are to be freed. What
 * the array has beside its elements is what the first has. 0: options->dataset is no pattern, or
 * nothing matches it. */
tegula_status tegula__matching_datasets(const tegula__format *format, const tegula__source *source,
                                        const tegula__describe_options *options, char ***out,
                                        int64_t *count, tegula_error *err);

/* ---- describe ---- */

typedef struct tegula__discover_options {
  const char *format; /* NULL: by content */
  tegula__describe_options describe;
  int64_t expect_files;        /* -1: any */
  int64_t expect_rows;         /* -1: any */
  tegula_progress_fn progress; /* told files; may be NULL */
  void *progress_state;
  /* open no more files than needed: see tegula__unread; an error may then not be the first one, or
   * none at all */
  bool defer_headers;
} tegula__discover_options;

/* The files that a caller wants: one path, which may stand for many, or a list. */
typedef struct tegula__selection {
  const char *const *paths;
  int64_t count;
  bool check_order; /* of a list: names that form one sequence must be in its order */
} tegula__selection;

typedef struct tegula__discovered {
  tegula__manifest manifest;
  tegula__file_set *files; /* of the manifest; to be freed before it */
  char *first;             /* the first of the files that were found; it may speak of others */
  bool others;             /* the manifest has a table of files that these files gave */
} tegula__discovered;

/* Finds the files, opens each once through the handle cache (handles stay open while there is
 * room), describes all in parallel, joins, finishes. The files are described as they were together
 * at one moment: where some were replaced meanwhile all is begun again, a few times, then it is
 * CHANGED. The error is that of the first file in order. */
tegula_status tegula__discover(tegula__pool *pool, tegula__handles *handles,
                               const tegula__selection *selection,
                               const tegula__discover_options *options, tegula__discovered *out,
                               tegula__io_counts *counts, tegula_error *err);

/* Called with the open file. */
typedef tegula_status (*tegula__within_fn)(void *state, const tegula__source *source,
                                           const tegula__describe_options *options,
                                           tegula_error *err);

/* What is wanted of a container: its datasets, or attributes, or just the open file. The others are
 * NULL. */
typedef struct tegula__inside {
  tegula__list_fn entry;
  tegula__attribute_fn attribute;
  tegula__within_fn within;
  void *state;
  const tegula__stamp *expected; /* the file must be this one; NULL: any */
} tegula__inside;

/* Lists the datasets of one file, in the order of their names, or its attributes. INVALID_ARGUMENT:
 * the path stands for several files. UNSUPPORTED: a format that holds one array, or has no
 * attributes. CHANGED: what was told is not to be relied on. */
tegula_status tegula__discover_list(tegula__handles *handles, const char *path,
                                    const tegula__discover_options *options,
                                    const tegula__inside *wanted, tegula__io_counts *counts,
                                    tegula_error *err);

#endif
