/* The memory of what a durable save replaces.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The old data stays until the new data is whole, and with it what the system keeps of it in
 * memory, so each save would have to get as much memory anew: from other files, or in a virtual
 * machine from its host, where that takes many times as long as the copy into it. Nobody will read
 * the old data for long, and the disk has it: its memory is given back before the new data comes,
 * which gets the same. */
#include <stdlib.h>
#include <string.h>

#include "save/saving.h"

#define PIECE ((int64_t)64 << 20)
#define LEAST ((int64_t)32 << 20) /* of a save: less is not worth the calls */

typedef struct replaced {
  tegula__saving *saving;
  int64_t bytes, pieces; /* of each file */
} replaced;

/* The one that file `i` takes the place of: shards keep their names. */
static char *old_path(const tegula__saving *s, int64_t i) {
  if (!s->publish.folder) return strdup(s->publish.target);
  return tegula__strprintf("%s%s", s->publish.target,
                           strrchr(s->members[0].manifest.files[i].path, '/'));
}

static void let_go(void *state, int32_t worker, int64_t item) {
  const replaced *r = state;
  int64_t offset = item % r->pieces * PIECE;
  char *path = old_path(r->saving, item / r->pieces);
  (void)worker;
  if (path != NULL)
    tegula__io_let_go(path, offset, tegula__min(PIECE, r->bytes - offset),
                      &r->saving->tally.counts);
  free(path);
}

void tegula__saving_let_go(tegula__saving *s, int64_t bytes) {
  int64_t count = s->members[0].manifest.file_count;
  bool replaces = s->publish.overwrite && s->publish.there && !s->adds;
  if (s->options.durable == 0 || !replaces || s->members[0].layout == TEGULA__VIRTUAL ||
      bytes < LEAST || count < 1)
    return;
  replaced r = {.saving = s, .bytes = (bytes - 1) / count + 1};
  r.pieces = (r.bytes - 1) / PIECE + 1;
  tegula__pool_run(s->context->engine.pool, count * r.pieces, let_go, &r);
}
