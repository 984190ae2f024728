/* What the files of publish share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_PUBLISH_PUBLISH_PRIV_H
#define TEGULA_PUBLISH_PUBLISH_PRIV_H

#include <limits.h>
#include <sys/types.h>

#include "publish/publish.h"

/* ---- names ---- */

/* The folder that a path says; NULL on lack of memory. */
char *tegula__publish_parent(const char *path);
tegula_status tegula__publish_sync_folder(const char *path, tegula_error *err);
/* Gives `from` the name `to`, which must be free: else EEXIST. An errno, or 0. */
int tegula__publish_rename_free(int from_folder, const char *from, int to_folder, const char *to);

/* ---- the workplace ---- */

#define WORKPLACE_DIGITS 16
/* with the zero at its end */
#define WORKPLACE_NAME (sizeof ".tegula-" + WORKPLACE_DIGITS + sizeof ".tmp" - 1)
/* The first half of the digits tells the boot of the machine whose lock guards it, 0: no lock does.
 * The other half is random. */
bool tegula__workplace_parse(const char *name, uint32_t *boot);
/* Of this boot; 0 when that cannot be told. */
uint32_t tegula__workplace_boot(void);

/* Makes and locks the workplace of `publish`. Its mark is not written yet. */
tegula_status tegula__workplace_make(tegula__publish *publish, tegula_error *err);
/* Instead, for a file in a folder that is itself in a workplace: only a name. What holds for the
 * folder holds for all in it. */
tegula_status tegula__workplace_share(tegula__publish *publish, tegula_error *err);
/* Who saves what: read when the save was killed. */
tegula_status tegula__workplace_write_mark(const tegula__publish *publish, tegula_error *err);
/* Is what has `name` in the folder still the open file `fd`? */
bool tegula__workplace_is(int folder, const char *name, int fd);
/* Removes it with all that is in it. Needs no memory from the heap: this must work when that is
 * what has run out. */
void tegula__workplace_remove(tegula__publish *publish);
/* A file, or a folder with all that is in it, on this file system. Is it gone? */
bool tegula__workplace_remove_tree(int folder, const char *name);

#define MARK_MOST 1024
#define NOTE_MOST 1024
/* The first line says which kind of file it is. */
#define MARK_BEGINNING "tegula save 1\n"
tegula_status tegula__publish_write_text(int folder, const char *name, const char *text,
                                         bool durable, tegula_error *err);
/* All of a small text; false when there is none, or a longer one. */
bool tegula__publish_read_text(int folder, const char *name, char *out, size_t most);
/* Behind the line's first word, up to its end: "target x" gives "x". NULL when there is no such
 * line. Cuts the text there. */
char *tegula__publish_line(char *text, const char *word);

/* ---- what killed saves left ---- */

/* Removes it from the folder. Gives the number of parent folders that had been made for what was
 * removed. */
int tegula__publish_sweep(const char *folder);
bool tegula__publish_is_empty(const char *folder);

/* ---- rights of what is replaced ---- */

/* Those of the target, noted at the beginning, for what takes its place. An errno, or 0. */
int tegula__publish_keep_rights(const tegula__publish *publish);

/* ---- the companion ---- */

/* Before the target is renamed: gives the companion its final name, and notes what will be obsolete
 * then. */
tegula_status tegula__companion_stand(tegula__publish *publish, bool durable, tegula_error *err);
/* After it: removes that. */
void tegula__companion_commit(tegula__publish *publish);
/* Instead of it. */
void tegula__companion_abandon(tegula__publish *publish);
/* The same for a killed save, in its workplace and the folder around: `published`, when the target
 * had got its name. */
void tegula__companion_sweep(int place, int folder, bool published);

#endif
