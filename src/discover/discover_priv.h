/* What the files of this folder share: the description of a set of files.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_DISCOVER_DISCOVER_PRIV_H
#define TEGULA_DISCOVER_DISCOVER_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "discover/discover.h"

typedef struct tegula__describe_job {
  const tegula__discover_options *options;
  const tegula__format *format; /* the user's word, or NULL */
  tegula__folders *folders;     /* from which files are opened */
  bool held;                    /* those of the job, too: else it is one, opened by its path */
  tegula__side side;            /* what lies beside the files */
  tegula__store store;
  tegula__file *files; /* paths of the job until they move into the shards */
  int64_t count;
  tegula__file_set *set;
  tegula__manifest *shards;
  tegula__first_error *first_error;
  tegula__io_counts *counts;
  tegula__handles *handles;
  bool whole;  /* the files are all of a folder */
  bool listed; /* found by their names */
  bool others; /* the files speak of others */
  bool alike;  /* what the other files hold can be foretold from the first */
  _Atomic int64_t done;
  _Atomic bool cancelled;
  pthread_mutex_t progress_lock;
  double progress_next;
} tegula__describe_job;

/* What the source of a file works with. */
typedef struct tegula__open_file {
  int fd;
  tegula__io_counts *counts;
} tegula__open_file;

void tegula__describe_one(void *state, int32_t worker, int64_t index);

/* A file like the first one, by its size; any other is described. */
void tegula__describe_predicted(void *state, int32_t worker, int64_t item);

tegula_status tegula__describe_check_cancelled(const tegula__describe_job *job, tegula_error *err);

tegula_status tegula__describe_side_problem(const tegula__describe_job *job, tegula_error *err);

/* What was found wrong with a file that is being written to is no news about it: that it changed
 * is. */
tegula_status tegula__describe_unless_changed(const tegula__describe_job *job, int64_t index,
                                              int fd, tegula_status status, tegula_error *err);

/* The file as drivers see it, and its format. `state` and `head` are what the source works with. */
tegula_status tegula__describe_look_at(const tegula__describe_job *job, int64_t index,
                                       tegula__open_file *state,
                                       unsigned char head[TEGULA__HEAD_BYTES],
                                       tegula__source *source, const tegula__format **format,
                                       tegula_error *err);

tegula_status tegula__describe_join(tegula__describe_job *job, tegula__manifest *out,
                                    tegula_error *err);

tegula_status tegula__describe_check_format(const tegula__discover_options *options,
                                            const tegula__format **format, tegula_error *err);

void tegula__describe_free(tegula__describe_job *job);

/* Takes the paths on success. */
tegula_status tegula__describe_start(tegula__describe_job *job, tegula__handles *handles,
                                     tegula__paths *paths, tegula_error *err);

/* All files were opened, or their sizes looked at, before this. A name that leads to the same file
 * after it did so at this moment, too. */
tegula_status tegula__describe_check_together(tegula__describe_job *job, tegula__pool *pool,
                                              const tegula__selection *selection,
                                              tegula_error *err);

/* The one file of a list, and those that it speaks of. */
tegula_status tegula__describe_check_listed(tegula__describe_job *job, tegula_error *err);

#endif
