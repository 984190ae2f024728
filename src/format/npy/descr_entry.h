/* The entries of a record's description, one after the other.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Descriptions are those of manifests, as descr.c prints them: (name, format) and (name, format,
 * shape). Padding is an entry without a name. A format of kind O stands for bytes that cannot be
 * loaded, '|O16' for 16 of them. */
#ifndef TEGULA_FORMAT_NPY_DESCR_ENTRY_H
#define TEGULA_FORMAT_NPY_DESCR_ENTRY_H

#include "format/npy/literal.h"

typedef struct tegula__descr_entry {
  uint32_t title, name, format; /* nodes; title: that of the name where there is none */
  uint32_t next;                /* the entry behind it */
  int64_t item_size, offset;    /* offset in its record */
  bool loadable;                /* it has a dtype, and so has all that is within */
  int32_t ndim;
  int64_t shape[TEGULA_MAX_DIMS];
} tegula__descr_entry;

/* The entry at `node`, *offset bytes behind the begin of its record; moves *offset behind it. The
 * first entry of a record at node r is at r + 1. CORRUPT (INVALID_ARGUMENT for texts without a
 * path): it is none; LIMIT_EXCEEDED: the record is too long. */
tegula_status tegula__descr_next(const tegula__literal *literal, uint32_t node, int64_t *offset,
                                 tegula__descr_entry *out, tegula_error *err);

#endif
