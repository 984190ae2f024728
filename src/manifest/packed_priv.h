/* What writing and reading packed manifests share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_MANIFEST_PACKED_PRIV_H
#define TEGULA_MANIFEST_PACKED_PRIV_H

#include <stdlib.h>

#include "manifest/manifest_priv.h"

#define TEGULA__PACKED_MAGIC "tegula1" /* with its zero; then the byte order of items */

/* Of a grid. */
enum { TEGULA__PACKED_COORDINATES = 1, TEGULA__PACKED_MASKS = 2, TEGULA__PACKED_SLICES = 4 };

/* What the next part's numbers are differences to. */
typedef struct tegula__packed_last {
  int64_t file, offset, grid, slot;
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], strides[TEGULA_MAX_DIMS],
      start[TEGULA_MAX_DIMS], chunk[TEGULA_MAX_DIMS], slot_strides[TEGULA_MAX_DIMS],
      step[TEGULA_MAX_DIMS];
  const tegula__texts *texts;
} tegula__packed_last;

/* Of a part's texts: none, those of the part before; else there are that many, less 2. */
enum { TEGULA__PACKED_NO_TEXTS, TEGULA__PACKED_SAME_TEXTS, TEGULA__PACKED_TEXTS };

#endif
