/* publish: the second half of every save. Data is written under a temporary name in the target's
 * own folder, then renamed.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Until commit nothing is seen under the final name; abandon takes everything back, parent folders
 * that were made for it included. All that is temporary lies in a workplace, a folder ".tegula-<16
 * digits>.tmp" beside the target, which discovery skips:
 *
 *   data        what is written; after the exchange of folders: what was replaced
 *   mark        says whose it is; locked (flock) as long as the save runs
 *   old         what was replaced, where folders cannot be exchanged
 *   companion   the folder that goes with a file; note: under which name
 *   view        links to data and companion under their final names, to read them before
 *
 * A save that was killed leaves its workplace; the next begin in that folder takes it away
 * (sweep.c), and only then.
 *
 * Begin reading at publish.c; workplace.c makes the temporary folder, sweep.c removes those of
 * killed saves, companion.c keeps the folder that goes with a file. The folder includes base and
 * io. */
#ifndef TEGULA_PUBLISH_PUBLISH_H
#define TEGULA_PUBLISH_PUBLISH_H

#include "base/base.h"

typedef struct tegula__publish {
  char *target; /* symbolic links followed */
  char *parent;
  /* beside the target; NULL: none yet, or none at all (a file in another save's workplace, which
   * guards it too) */
  char *workplace;
  char *temporary;    /* "data" in it; of a folder it has been made, of a file not yet */
  const char *source; /* its name in `place` */
  int place, mark;    /* the folder that holds it and the workplace's mark, open; -1: not yet */
  bool folder;
  bool overwrite; /* what is there may be replaced */
  bool there;     /* something of the same kind is there; its rights are kept: */
  unsigned mode, owner, group;
  /* what is there must still be that when it is replaced: else CHANGED; NULL: whatever it is. Set
   * by the caller */
  const tegula__stamp *expected;
  /* bytes, as tegula__publish_space found them; needed is 0 before that, and where it is not
   * known */
  int64_t needed, free;
  /* bytes of the old file, in a copy of which is written; 0: there is none, or it takes no space */
  int64_t copied;
  char **made; /* folders above the target that did not exist, outermost first */
  int64_t made_count, made_capacity;
  char *companion;       /* where the companion is written; NULL: there is none */
  char *companion_name;  /* its final name, without folder; unique */
  bool companion_stands; /* it has got it */
} tegula__publish;

/* Sweeps the target's folder, checks the target and makes the workplace. EXISTS when the target is
 * there and `overwrite` is false; never replaces a folder by a file, or a folder in which there is
 * anything but shards. */
tegula_status tegula__publish_begin(const char *target, bool folder, bool overwrite,
                                    tegula__publish *out, tegula_error *err);
/* Before anything is written, where it is known how much that will be: IO (ENOSPC) when it is more
 * than is free. `copied`: bytes of the old file that are copied first. */
tegula_status tegula__publish_space(tegula__publish *publish, int64_t bytes, int64_t copied,
                                    tegula_error *err);
/* An error of the save as one of the target, which the caller calls `path`: no temporary names; how
 * much was free when space ran out. */
void tegula__publish_explain(const tegula__publish *publish, const char *path, tegula_status status,
                             tegula_error *err);
/* A folder of files that belongs to the target, which is a file: it gets its final name
 * NAME.<suffix>-<16 digits> just before the target gets its own, and goes when the save is
 * abandoned. Until then it is written at publish->companion; the target speaks of it as
 * publish->companion_name. The companion of what is replaced stays for those who have that open;
 * the one before it is removed. */
tegula_status tegula__publish_companion(tegula__publish *publish, const char *suffix,
                                        tegula_error *err);
/* A path by which what was written can be read as it will be: the companion is found from there.
 * New memory. */
tegula_status tegula__publish_view(const tegula__publish *publish, char **path, tegula_error *err);
/* Does the path lead through a workplace? */
bool tegula__publish_is_temporary(const char *path);
/* Makes it visible. `durable`: names are on the disk before it returns (the data must be already).
 * Ends `publish` in either case. */
tegula_status tegula__publish_commit(tegula__publish *publish, bool durable, tegula_error *err);
/* Removes all traces. Ends `publish`. */
void tegula__publish_abandon(tegula__publish *publish);

#endif
