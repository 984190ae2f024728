/* What the files of this folder share among themselves: vectors of parts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_MANIFEST_MANIFEST_PRIV_H
#define TEGULA_MANIFEST_MANIFEST_PRIV_H

#include "base/json.h"
#include "manifest/manifest.h"
#include "manifest/names.h"

/* How many vectors of ndim entries a part has, and pointing it at a block that holds them. */
int64_t tegula__part_vectors(const tegula__part *part);
void tegula__part_point(tegula__part *part, int64_t *block, int32_t ndim);
/* Does no byte belong to two elements of a box with these strides, all of them positive? */
bool tegula__strides_distinct(int32_t ndim, uint32_t item_size, const int64_t *lo,
                              const int64_t *hi, const int64_t *strides);
/* The number in the part of a chunk of the stored array, between those of its first and its last
 * element; false: the part has no element in it. */
bool tegula__part_number_of(const tegula__part *part, int32_t k, int64_t chunk, int64_t *number);
/* What is wrong with a chunked part's numbers, as a sentence's end; NULL: nothing. */
const char *tegula__part_chunk_problem(const tegula__manifest *manifest, const tegula__part *part);
/* How the parts of a manifest, boxes within its shape, share it out. */
typedef struct tegula__cover {
  bool good; /* each element belongs to one part */
  /* else the numbers of two parts that meet; -1: none do, but there are too few or too many
   * elements */
  int64_t one, two;
} tegula__cover;
tegula_status tegula__parts_cover(const tegula__manifest *manifest, tegula__cover *out,
                                  tegula_error *err);
/* The same where they are to have `wanted` elements. */
tegula_status tegula__parts_share(const tegula__manifest *manifest, int64_t wanted,
                                  tegula__cover *out, tegula_error *err);

/* json_grids.c and json_parts.c: the lists "grids" (may be missing) and "parts" of a text. */
tegula_status tegula__json_read_grids(const tegula__json *root, const char *const *codecs,
                                      tegula__manifest *out, tegula_error *err);
tegula_status tegula__json_read_parts(const tegula__json *root, tegula__manifest *out,
                                      tegula_error *err);
/* An item of the dtype as hexadecimal digits in little-endian order, or null; NULL where there is
 * no such member or it is null. */
tegula_status tegula__json_read_item(const tegula__json *object, const char *key,
                                     tegula__manifest *out, const void **item, tegula_error *err);

/* Of a table with coordinates: the first entry whose slot is not below; `count` when all are. */
int64_t tegula__grid_entry_from(const tegula__grid *grid, int64_t slot);
void tegula__reader_free(tegula__reader *reader);
/* As finish, for parts that are to be the boxes of `late` in `whole`. */
tegula_status tegula__manifest_finish_late(tegula__manifest *manifest,
                                           const tegula__manifest *whole, const tegula__late *late,
                                           tegula_error *err);
/* Each part begins where the last one ended, and spans all of the other axes: what most formats
 * give. */
bool tegula__parts_follow(const tegula__manifest *manifest);
/* The number of a part's grid. Parts mostly follow the order of their grids: the search begins at
 * `last`, that of the part before. */
int64_t tegula__part_grid_number(const tegula__manifest *manifest, const tegula__part *part,
                                 int64_t last);
/* Can it be written down: without readers and late parts, no byte twice? */
tegula_status tegula__manifest_check_writable(const tegula__manifest *manifest, tegula_error *err);
/* The status with this name, if that is an error. */
bool tegula__status_named(const char *name, tegula_status *out);
/* Sorts parts by where they begin, unless they are. */
void tegula__manifest_sort(tegula__manifest *manifest);
/* Fills manifest->reach. */
tegula_status tegula__manifest_reach(tegula__manifest *manifest, tegula_error *err);

tegula_status tegula__json_read_order(const tegula__json *object, tegula_dtype dtype, uint8_t *out,
                                      tegula_error *err);

tegula_status tegula__json_read_number(const tegula__json *object, const char *key, int64_t least,
                                       int64_t most, int64_t *out, tegula_error *err);

#endif
