/* saving: a save on its way: begun, moved to as often as there is something to move, ended.
 * tegula_save does all of it at once.
 *
 * Begin reading at struct tegula__saving, then tegula__saving_begin. A save begins in four steps:
 * save_options.c (what is to be made), save_layout.c (files and places in them), save_target.c (the
 * container) and save_side.c (the side file). save_text.c is for other processes. On several ranks
 * save_ranks.h begins and ends a save. save_rounds.h writes chunks that ranks share. save_later.h
 * saves in the background. The folder includes dataset and all that it includes, and publish.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_SAVE_SAVING_H
#define TEGULA_SAVE_SAVING_H

#include "codec/codec.h"
#include "dataset/dataset.h"
#include "publish/publish.h"

/* One file that is written. */
typedef struct tegula__target {
  char *path;            /* where it is written */
  char *shown;           /* what the user will call it */
  tegula__buffer header; /* of formats that have one in front */
  tegula__sink sink;     /* containers */
  int64_t size;          /* without what the engine has written */
  int64_t reserved;      /* up to here there is space for it */
  int64_t wanted;        /* where the last contiguous dataset ends */
  int fd;                /* -1: not open */
  bool parked;           /* one of many: opened when something is read or written */
  void *saving;          /* of the format; NULL: not open */
  tegula__io_counts *counts;
} tegula__target;

typedef enum tegula__layout { TEGULA__CONTIGUOUS, TEGULA__CHUNKED, TEGULA__VIRTUAL } tegula__layout;

/* One array of a save. */
typedef struct tegula__member {
  struct tegula__saving *saving;
  tegula_dtype dtype, stored;
  const tegula_tiling *tiling;        /* owned */
  const char *descr;                  /* borrowed, or NULL */
  const void *fill;                   /* borrowed while the save begins, or NULL */
  const tegula_attribute *attributes; /* the same */
  int64_t attribute_count;
  const tegula__origin *origin; /* the same */
  char *dataset;                /* containers: its name; owned */
  tegula__layout layout;
  int64_t chunk[TEGULA_MAX_DIMS]; /* when chunked */
  tegula__filter filters[TEGULA__CHAIN_MAX];
  int32_t filter_count;
  int64_t file_count;        /* of its manifest */
  int64_t first_target;      /* file i is target first_target + i */
  int64_t *numbers;          /* containers: what the dataset is called in each file */
  _Atomic int64_t placed;    /* bytes of chunks that got a place */
  tegula__manifest manifest; /* of the files that are written */
  tegula__file_set *files;   /* of all members */
} tegula__member;

typedef struct tegula__saving {
  tegula_context *context;
  char *path; /* as the user names it */
  tegula_save_options options;
  const tegula__format *format;
  tegula__member *members;
  int64_t member_count;
  tegula__target *targets;
  int64_t target_count;
  tegula__publish publish;
  bool begun;  /* there is something to publish or to abandon */
  bool adds;   /* to a copy of the file that is there */
  bool absent; /* a container, and nothing was there when it was looked for */
  /* tiles come one by one, from other processes too: what is durable is so when all are there */
  bool pieces;
  int64_t align; /* blocks of the file system where they are larger than a page; 0 */
  bool alone;    /* other ranks have no part in its end: it is one of their steps */
  /* the files of a container were complete before the elements were written */
  bool early;
  bool completed; /* all is written */
  bool guards;    /* what is there is replaced only if it is still what was looked at: */
  tegula__stamp before;
  tegula__tally tally;
  /* NULL, or called when all is written and nothing visible yet */
  tegula_status (*check)(void *state, const struct tegula__saving *saving, tegula_error *err);
  void *check_state;
} tegula__saving;

/* A member, and what it is asked to be; texts are borrowed until begin returns. */
typedef struct tegula__wanted {
  tegula_dtype dtype;
  const tegula_tiling *tiling;
  const tegula_save_options *options; /* dataset, layout, chunk, codec, byte order */
  const tegula__origin *origin;       /* containers: what it is a copy of; NULL */
} tegula__wanted;

/* Checks everything and makes the files. `saving` is ended by tegula__saving_end in any case.
 * options is complete. */
tegula_status tegula__saving_begin(tegula__saving *saving, tegula_context *context,
                                   const char *path, const tegula_save_options *options,
                                   const tegula__wanted *wanted, int64_t count, tegula_error *err);
/* Moves tiles of member `number` to its files. Any thread. */
tegula_status tegula__saving_move(tegula__saving *saving, int64_t number, const tegula__tile *tiles,
                                  int64_t count, tegula_error *err);
/* The same as a move to be run; `placer` gets the member's. */
tegula__move tegula__saving_move_of(tegula__saving *saving, int64_t number,
                                    const tegula__tile *tiles, int64_t count,
                                    tegula__placer *placer);
/* Errors of a save speak of the target, not of temporary names. */
void tegula__saving_name_target(const tegula__saving *saving, tegula_status status,
                                tegula_error *err);
/* Before the end, where others are to look at it: all that is still to be written. */
tegula_status tegula__saving_complete(tegula__saving *saving, tegula_error *err);
/* With OK makes it visible, else takes everything back; returns the status that it had or got. */
tegula_status tegula__saving_end(tegula__saving *saving, tegula_status status, tegula_error *err);

/* save_text.c: the text with which others write to a save. */
tegula_status tegula__saving_text(const tegula__member *member, char **out, tegula_error *err);
/* Reads such a text into an initialised manifest. `chunks`: it may be of a chunked save, whose
 * chunks have no places yet. */
tegula_status tegula__saving_read_text(const char *text, size_t size, bool chunks,
                                       tegula__manifest *out, tegula_error *err);
/* A move by such a manifest; `files` are its. `options`: progress, durable. */
tegula__move tegula__saving_move_by(const tegula__manifest *manifest, tegula__file_set *files,
                                    const tegula__tile *tiles, int64_t count,
                                    const tegula_save_options *options, tegula__tally *tally);
/* Of such a move: NOT_FOUND means that the save has ended. */
tegula_status tegula__saving_explain_ended(tegula_status status, tegula_error *err);

/* Several arrays that go into one save. */
typedef struct tegula__group {
  const tegula_array **arrays;
  tegula_save_options *options; /* what `wanted` points at, where it is ours */
  tegula__wanted *wanted;
  int64_t count;
} tegula__group;
/* The work of tegula_save, without its place in the order of operations; options are complete. */
tegula_status tegula__save(const tegula_array *array, const char *path,
                           const tegula_save_options *options, tegula_error *err);

/* The format that a save with these options makes. */
tegula_status tegula__saving_format(const char *path, const tegula_save_options *options,
                                    const tegula__format **out, tegula_error *err);

/* ---- parts of begin ---- */

/* save_options.c: the format, and what every member is; nothing is touched. */
tegula_status tegula__saving_choose(tegula__saving *saving, const tegula__wanted *wanted,
                                    int64_t count, tegula_error *err);
/* save_layout.c: the files, and the places in them. */
tegula_status tegula__saving_lay_out(tegula__saving *saving, tegula_error *err);

/* The rows of the array that shard i holds: from first_row(i) up to first_row(i + 1). */
int64_t tegula__saving_first_row(const tegula__member *member, int64_t i);
/* save_replaced.c: gives back the memory of what a durable save replaces, of up to as many bytes as
 * it writes. */
void tegula__saving_let_go(tegula__saving *saving, int64_t bytes);
/* save_side.c: what is to lie beside the shards, if anything. */
tegula_status tegula__saving_side_file(tegula__saving *saving, tegula_error *err);

/* save_target.c: opens the container. */
tegula_status tegula__target_open(tegula__saving *saving, tegula__target *target,
                                  tegula_error *err);
/* It is one of so many that it does not stay open; what the container has of it does. */
tegula_status tegula__target_park(tegula__target *target, tegula_error *err);
/* Space for all contiguous datasets, at once. */
tegula_status tegula__target_reserve(tegula__target *target, tegula_error *err);
/* All its metadata is in it; the bytes of the container's contiguous datasets may come later. */
tegula_status tegula__target_complete(const tegula__saving *saving, tegula__target *target,
                                      bool durable, tegula_error *err);
/* After a failure, and always at the end. */
void tegula__target_free(tegula__saving *saving, tegula__target *target);

tegula_status tegula__saving_write_text(const tegula__manifest *manifest, char **out,
                                        tegula_error *err);

#endif
