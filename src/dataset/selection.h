/* Selections: datasets of some elements, or of one field, of another.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A selection has a manifest of its own, over the files of its source: boxes, offsets and strides
 * are other numbers, so everything that reads a dataset reads a selection. Begin reading at
 * selection.c; selection_parts.c computes the parts, selection_reader.c is a reader's part. */
#ifndef TEGULA_DATASET_SELECTION_H
#define TEGULA_DATASET_SELECTION_H

#include "dataset/dataset.h"

/* One field of structured records. */
typedef struct tegula__field {
  tegula_dtype dtype; /* in the byte order in which it is stored */
  int64_t offset;     /* in the record */
  int32_t ndim;       /* axes of a field that is an array */
  int64_t shape[TEGULA_MAX_DIMS];
  char *descr; /* of a field that is a record; NULL: it is none; owned */
} tegula__field;

/* What is selected: along axis k of the source the elements lo, lo + step, ... below hi. */
typedef struct tegula__subset {
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], step[TEGULA_MAX_DIMS];
  const tegula__field *field; /* NULL: whole elements */
} tegula__subset;

/* selection_parts.c: the manifest of a subset of `source`, which has no late parts. It borrows from
 * `source`: its files, grids and readers. Free it with tegula__subset_manifest_free. */
tegula_status tegula__subset_manifest(const tegula__manifest *source, const tegula__subset *subset,
                                      const tegula__kernels *kernels, tegula__manifest *out,
                                      tegula_error *err);
void tegula__subset_manifest_free(tegula__manifest *manifest);

/* selection_reader.c: a reader of what `part`, a reader's part of `source`, has of the subset;
 * `from` is the part's first selected element and `lo` its place in the subset. One block of
 * memory. It borrows from `source`. */
tegula__reader *tegula__subset_reader(const tegula__manifest *source, const tegula__part *part,
                                      const tegula__subset *subset, const int64_t *from,
                                      const int64_t *lo, const tegula__kernels *kernels);

#endif
