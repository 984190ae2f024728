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
#include "format/record_fields.h"

/* What is selected: along axis k of the source the elements lo, lo + step, ... below hi. */
typedef struct tegula__subset {
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], step[TEGULA_MAX_DIMS];
  const tegula__field *field; /* NULL: whole elements */
} tegula__subset;

/* All elements. */
void tegula__subset_whole(const tegula__manifest *manifest, tegula__subset *out);

/* selection.c: the same with the field of that name; INVALID_ARGUMENT where the elements are no
 * records, NOT_FOUND where they have no such field. */
tegula_status tegula__dataset_select_field(const tegula_dataset *dataset, tegula__subset *subset,
                                           const char *name, tegula_dataset **out,
                                           tegula_error *err);

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
