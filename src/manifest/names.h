/* Names of files in JSON texts: as seen from the folder of the text, and as bytes where they are no
 * UTF-8.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_MANIFEST_NAMES_H
#define TEGULA_MANIFEST_NAMES_H

#include "base/json.h"

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
tegula_status tegula__namer_name(tegula__namer *namer, const char *file, char **out,
                                 tegula_error *err);

/* The member "path", or "path_hex" (hexadecimal digits) for a name that is no UTF-8. */
bool tegula__json_write_name(tegula__buffer *buffer, const char *name);
/* Of the object `file`: a name that can be opened from here, in new memory; it counts from the
 * folder of the document. */
tegula_status tegula__json_read_name(const tegula__json *file, char **out, tegula_error *err);
/* 0 to 15; -1: no digit (0-9, a-f). */
int tegula__json_hex_digit(char c);

#endif
