/* Finds the side file of a set of files, and which of its folder's files they are.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A side file that cannot be used is no error yet: files that describe themselves may lie beside
 * one of another program. */
#include <stdlib.h>
#include <string.h>

#include "discover/discover.h"

/* The length of the folder in front of a name, with its slash. */
static size_t folder_size(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? (size_t)(slash - path) + 1 : 0;
}

static bool in_one_folder(const tegula__paths *paths) {
  size_t size = folder_size(paths->items[0]);
  for (int64_t i = 1; i < paths->count; i++)
    RETURN_IF(folder_size(paths->items[i]) != size ||
                  memcmp(paths->items[i], paths->items[0], size) != 0,
              false);
  return true;
}

static tegula_status read_side_file(tegula__side *side, tegula__folders *folders, const char *path,
                                    tegula_error *err) {
  tegula__io_counts counts; /* not data: no part of the caller's statistics */
  char *text = NULL;
  size_t size = 0;
  memset(&counts, 0, sizeof counts);
  tegula_status status = tegula__io_read_whole(folders, path, TEGULA__SIDE_FILE_BYTES, &text, &size,
                                               &counts, &side->problem);
  if (status == TEGULA_NOT_FOUND) side->problem.status = TEGULA_OK;
  if (status != TEGULA_OK) return TEGULA_OK;
  side->file = calloc(1, sizeof *side->file);
  if (side->file == NULL) {
    free(text);
    return tegula__out_of_memory(err, sizeof *side->file);
  }
  tegula__side_file_parse(text, size, path, side->file, &side->problem);
  free(text);
  return TEGULA_OK;
}

/* ---- a few of the folder's files ---- */

static int compare_paths(const void *a, const void *b, void *items) {
  char *const *paths = items;
  return strcmp(paths[*(const int64_t *)a], paths[*(const int64_t *)b]);
}

/* The number of each file in the listing of its folder; what is not there stays as it is. Both are
 * sorted by name and merged. */
static tegula_status find_places(tegula__side *side, const tegula__paths *paths,
                                 const tegula__paths *listing, tegula_error *err) {
  int64_t count = paths->count, total = listing->count;
  int64_t *orders = tegula__realloc_array(NULL, 2 * count + total, sizeof *orders);
  if (orders == NULL)
    return tegula__out_of_memory(err, (2 * count + total) * (int64_t)sizeof *orders);
  int64_t *places = orders, *mine = orders + count, *theirs = orders + 2 * count;
  for (int64_t i = 0; i < count; i++) places[i] = mine[i] = i;
  for (int64_t i = 0; i < total; i++) theirs[i] = i;
  qsort_r(mine, (size_t)count, sizeof *mine, compare_paths, paths->items);
  qsort_r(theirs, (size_t)total, sizeof *theirs, compare_paths, listing->items);
  for (int64_t i = 0, j = 0; i < count && j < total;) {
    int order = strcmp(paths->items[mine[i]], listing->items[theirs[j]]);
    if (order == 0) places[mine[i]] = theirs[j];
    i += order <= 0;
    j += order > 0;
  }
  side->places = places;
  return TEGULA_OK;
}

/* Where the side file speaks of the folder as a whole, and only some of its files may be opened. In
 * a folder that is no set of files, those that are opened are the set. */
static tegula_status look_around(tegula__side *side, const tegula__paths *paths,
                                 tegula__folders *folders, tegula_error *err) {
  const tegula__side_file *file = side->file;
  if (side->whole ||
      (file->rows_kind != TEGULA__SIDE_ROWS_LIST && !file->has_length && !file->has_files))
    return TEGULA_OK;
  size_t size = folder_size(paths->items[0]);
  char *folder = size > 0 ? strndup(paths->items[0], size) : strdup("");
  tegula__paths listing = {0};
  if (folder == NULL) return tegula__out_of_memory(err, (int64_t)size);
  tegula_error error;
  tegula_status status = TEGULA_OK,
                listed = tegula__paths_find(size > 0 ? folder : ".", folders, &listing, &error);
  free(folder);
  if (listed == TEGULA_OK) {
    for (int64_t i = 0; size == 0 && i < listing.count; i++)
      memmove(listing.items[i], listing.items[i] + 2, strlen(listing.items[i]) - 1);
    status = find_places(side, paths, &listing, err);
    side->total = listing.count;
    side->whole = listing.count == paths->count;
    tegula__paths_free(&listing);
  } else if (listed == TEGULA_OUT_OF_MEMORY ||
             error.os_errno != 0) { /* that is no word about the files in it */
    if (err != NULL) *err = error;
    status = listed;
  } else {
    side->whole = true;
  }
  return status;
}

tegula_status tegula__side_find(const tegula__paths *paths, tegula__folders *folders,
                                tegula__side *out, tegula_error *err) {
  *out = (tegula__side){.whole = paths->whole, .total = paths->count};
  if (!in_one_folder(paths)) return TEGULA_OK;
  char *path = tegula__strprintf("%.*s" TEGULA__SIDE_FILE_NAME, (int)folder_size(paths->items[0]),
                                 paths->items[0]);
  if (path == NULL) return tegula__out_of_memory(err, (int64_t)strlen(paths->items[0]));
  tegula_status status =
      strcmp(path, paths->items[0]) == 0 ? TEGULA_OK : read_side_file(out, folders, path, err);
  free(path);
  if (status == TEGULA_OK && out->file != NULL && out->problem.status == TEGULA_OK)
    status = look_around(out, paths, folders, err);
  return status;
}

void tegula__side_free(tegula__side *side) {
  if (side->file != NULL) tegula__side_file_free(side->file);
  free(side->file);
  free(side->places);
  *side = (tegula__side){0};
}
