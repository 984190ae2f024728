/* publish: the second half of every save. Data is written under a temporary name in the target's own folder, then renamed.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Until commit nothing is seen under the final name; abandon takes everything back, parent folders that were made for it included.
 * Temporary names start with ".tegula-" and are skipped by discovery. */
#ifndef TEGULA_PUBLISH_PUBLISH_H
#define TEGULA_PUBLISH_PUBLISH_H

#include "base/base.h"

typedef struct tegula__publish {
  char *target;    /* symbolic links followed */
  char *parent;
  char *temporary; /* beside the target; of a folder it has been made, of a file not yet */
  bool folder;
  bool overwrite;  /* what is there may be replaced */
  unsigned mode;   /* permissions of what is there, to be kept; 0 for nothing */
  char *companion;      /* a folder with files that the target speaks of; NULL: none */
  char *companion_name; /* its name from the target's folder */
  char **made;      /* folders above the target that did not exist, outermost first */
  int64_t made_count, made_capacity;
} tegula__publish;

/* Checks the target and prepares the temporary name. EXISTS when it is there and `overwrite` is false; never replaces a folder by a file,
 * or a folder in which there is anything but shards. */
tegula_status tegula__publish_begin(const char *target, bool folder, bool overwrite, tegula__publish *out, tegula_error *err);
/* Makes a folder for files that the target will speak of, under a name that no other save has: "NAME.SUFFIX/GENERATION" beside it. It stays when the
 * target is committed and goes when it is abandoned. */
tegula_status tegula__publish_companion(tegula__publish *publish, const char *suffix, tegula_error *err);
/* Makes it visible. `durable`: names are on the disk before it returns (the data must be already). Ends `publish` in either case. */
tegula_status tegula__publish_commit(tegula__publish *publish, bool durable, tegula_error *err);
/* Removes all traces. Ends `publish`. */
void tegula__publish_abandon(tegula__publish *publish);

#endif
