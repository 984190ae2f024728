/* What targets of manifests from outside share: one that finish accepts has each element in its
 * file and nowhere twice.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_FUZZ_MANIFEST_H
#define TEGULA_FUZZ_MANIFEST_H

#include "base/frame.h"
#include "codec/codec.h"
#include "format/format.h"
#include "fuzz_plan.h"

static const char *const formats[] = {"npy", "raw", "hdf5", NULL};

static inline void check_head(const tegula__manifest *manifest) {
  MUST(tegula__dtype_valid(manifest->dtype) && manifest->ndim >= 0 &&
       manifest->ndim <= TEGULA_MAX_DIMS);
  MUST((manifest->format == formats[0] || manifest->format == formats[1] ||
        manifest->format == formats[2]) &&
       manifest->name[0] != '\0');
  MUST(manifest->descr == NULL || manifest->dtype.kind == 'V');
  MUST(manifest->reader_count == 0 && manifest->file_count > 0);
  for (int64_t i = 0; i < manifest->file_count; i++) {
    const char *path = manifest->files[i].path;
    MUST(path != NULL && path[0] != '\0');
    MUST(manifest->files[i].recorded && manifest->files[i].stamp.size >= 0);
  }
}

/* Independent of the library's own arithmetic: sorted by stride, each axis steps over all that lies
 * inside it. */
static inline bool no_element_twice(const tegula__manifest *manifest, const tegula__part *part) {
  bool done[TEGULA_MAX_DIMS] = {false};
  __int128 inside = manifest->dtype.item_size;
  for (int32_t n = 0; n < manifest->ndim; n++) {
    int32_t next = -1;
    for (int32_t k = 0; k < manifest->ndim; k++) {
      if (part->hi[k] - part->lo[k] < 2) done[k] = true;
      if (!done[k] && (next < 0 || part->strides[k] < part->strides[next])) next = k;
    }
    if (next < 0) break;
    if (part->strides[next] < inside) return false;
    inside += (__int128)(part->hi[next] - part->lo[next] - 1) * part->strides[next];
    done[next] = true;
  }
  return true;
}

static inline void check_box(const tegula__manifest *manifest, const tegula__part *part,
                             __int128 *count) {
  *count = 1;
  for (int32_t k = 0; k < manifest->ndim; k++) {
    MUST(part->lo[k] >= 0 && part->lo[k] <= part->hi[k] && part->hi[k] <= manifest->shape[k]);
    *count *= part->hi[k] - part->lo[k];
  }
}

static inline void check_dense(const tegula__manifest *manifest, const tegula__part *part) {
  MUST(part->file >= 0 && part->file < manifest->file_count && part->offset >= 0);
  __int128 end = (__int128)part->offset + manifest->dtype.item_size;
  for (int32_t k = 0; k < manifest->ndim; k++) {
    MUST(part->strides[k] > 0);
    end += (__int128)(part->hi[k] - part->lo[k] - 1) * part->strides[k];
  }
  const tegula__file *file = &manifest->files[part->file];
  MUST(end <= file->stamp.size);
  if (file->frame.record > 0) {
    MUST(tegula__frame_valid(&file->frame) && part->offset >= file->frame.first);
    int64_t last = tegula__frame_place(&file->frame, (int64_t)end - 1);
    MUST(last >= end - 1 && last < file->stamp.size - file->frame.marker + 1);
  }
  MUST(no_element_twice(manifest, part));
}

static inline void check_part(const tegula__manifest *manifest, const tegula__part *part,
                              __int128 *count) {
  check_box(manifest, part, count);
  bool stored = part->kind == TEGULA__PART_DENSE || part->kind == TEGULA__PART_CHUNKED;
  MUST(manifest->dtype.order == '|' ? part->order == '|'
                                    : part->order == '<' || part->order == '>');
  MUST(part->kind != TEGULA__PART_READ && (stored || part->order == manifest->dtype.order));
  MUST((part->kind == TEGULA__PART_LOST) == (part->lost != NULL) &&
       (part->kind == TEGULA__PART_CHUNKED) == (part->grid != NULL));
  if (part->kind == TEGULA__PART_LOST)
    MUST(part->lost->status != TEGULA_OK && part->lost->message[0] != '\0');
  if (part->kind == TEGULA__PART_DENSE && *count > 0) check_dense(manifest, part);
  for (int32_t k = 0; part->chunk != NULL && k < manifest->ndim; k++)
    MUST(part->chunk[k] > 0 && part->start[k] >= 0);
}

/* Each element belongs to one part: by pairs, where they are few. */
static inline void check_disjoint(const tegula__manifest *manifest) {
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], elements;
  MUST(tegula__shape_count(manifest->shape, manifest->ndim, &elements));
  for (int64_t i = 0; elements > 0 && manifest->part_count <= 64 && i < manifest->part_count; i++)
    for (int64_t j = 0; j < i; j++)
      MUST(!tegula__box_intersect(manifest->ndim, manifest->parts[i].lo, manifest->parts[i].hi,
                                  manifest->parts[j].lo, manifest->parts[j].hi, lo, hi));
}

static inline void check_finished(const tegula__manifest *manifest) {
  int64_t first, last, elements;
  __int128 sum = 0, count;
  for (int64_t i = 0; i < manifest->part_count; i++) {
    check_part(manifest, &manifest->parts[i], &count);
    sum += count;
  }
  MUST(tegula__shape_count(manifest->shape, manifest->ndim, &elements) && sum == elements);
  MUST(manifest->ndim > 0 || manifest->part_count == 1);
  check_disjoint(manifest);
  tegula__manifest_find(manifest, 0, manifest->ndim > 0 ? manifest->shape[0] : 1, &first, &last);
  MUST(first >= 0 && last <= manifest->part_count && (elements == 0 || first < last));
  plan_all(manifest);
}

static inline void check_error(tegula_status status, const tegula_error *error) {
  MUST(status != TEGULA_INTERNAL && error->status == status && error->message[0] != '\0' &&
       strchr(error->message, '\n') == NULL);
}

/* What the reader gave: finished and looked at, or an error with all that it needs. Ends the
 * manifest. */
static inline void finish_and_check(tegula_status status, tegula__manifest *manifest,
                                    tegula_error *error) {
  if (status == TEGULA_OK) {
    check_head(manifest);
    for (int64_t i = 0; i < manifest->grid_count && status == TEGULA_OK; i++)
      status = tegula__format_check_grid(manifest->grids[i], "f", error);
    if (status == TEGULA_OK) status = tegula__manifest_finish(manifest, error);
    if (status == TEGULA_OK) check_finished(manifest);
  }
  if (status != TEGULA_OK) check_error(status, error);
  tegula__manifest_free(manifest);
}

#endif
