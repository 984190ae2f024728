/* What the files of this folder share among themselves: vectors of parts, names of files as seen from a folder.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_MANIFEST_MANIFEST_PRIV_H
#define TEGULA_MANIFEST_MANIFEST_PRIV_H

#include "manifest/manifest.h"

/* How many vectors of ndim entries a part has, and pointing it at a block that holds them. */
int64_t tegula__part_vectors(const tegula__part *part);
void tegula__part_point(tegula__part *part, int64_t *block, int32_t ndim);
/* Are the parts, all of them dense, such as the text can hold (docs/manifest.md): rows after rows, in C or Fortran order? */
bool tegula__manifest_is_rows(const tegula__manifest *manifest);
/* Of a table with coordinates: the first entry whose slot is not below; `count` when all are. */
int64_t tegula__grid_entry_from(const tegula__grid *grid, int64_t slot);
void tegula__reader_free(tegula__reader *reader);

/* The files of a set mostly lie in one folder, which is resolved once. */
typedef struct tegula__namer {
  char *base;   /* resolved folder that names are relative to; NULL: names are absolute */
  char *folder; /* the last folder that was asked for, as text, */
  char *real;   /* and resolved */
} tegula__namer;

/* `base` must exist; NULL for absolute names. Free in any case. */
tegula_status tegula__namer_init(tegula__namer *namer, const char *base, tegula_error *err);
void tegula__namer_free(tegula__namer *namer);
/* The name of `file` as seen from the base, in new memory. Its folder must exist. */
tegula_status tegula__namer_name(tegula__namer *namer, const char *file, char **out, tegula_error *err);

#endif
