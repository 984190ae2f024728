/* Which file and chunk of a dataset is which of the sums.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "manifest/names.h"
#include "verify/sums_check.h"

/* What cannot be resolved is no file of the dataset. */
static char *absolute_name(tegula__namer *namer, const char *path) {
  char *name = NULL;
  return tegula__namer_name(namer, path, &name, NULL) == TEGULA_OK ? name : tegula__strdup(path);
}

static int compare_names(const void *a, const void *b, void *state) {
  char *const *names = state;
  int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
  int order = strcmp(names[i], names[j]);
  return order != 0 ? order : (i > j) - (i < j);
}

tegula_status tegula__sums_name_files(tegula__sums_checking *c, tegula__namer *namer,
                                      tegula_error *err) {
  int64_t count = c->sums.file_count;
  c->names = calloc((size_t)tegula__max(1, count), sizeof *c->names);
  c->by_name = tegula__realloc_array(NULL, count, sizeof *c->by_name);
  bool good = c->names != NULL && c->by_name != NULL;
  for (int64_t i = 0; good && i < count; i++) {
    c->names[i] = absolute_name(namer, c->sums.files[i].path);
    c->by_name[i] = i;
    good = c->names[i] != NULL;
  }
  if (!good) return tegula__out_of_memory(err, count * (int64_t)sizeof *c->names);
  if (count > 1) qsort_r(c->by_name, (size_t)count, sizeof *c->by_name, compare_names, c->names);
  return TEGULA_OK;
}

/* The first file of the sums that has this name; -1: none. */
static int64_t find_name(const tegula__sums_checking *c, const char *name) {
  int64_t low = 0, high = c->sums.file_count;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (strcmp(c->names[c->by_name[middle]], name) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low < c->sums.file_count && strcmp(c->names[c->by_name[low]], name) == 0 ? c->by_name[low]
                                                                                  : -1;
}

typedef struct match {
  tegula__sums *sums;
  const tegula__file_sums *file;
  const tegula__part *part;
} match;

static bool match_chunk(void *state, const tegula__chunk *chunk, const int64_t *lo,
                        const int64_t *hi) {
  (void)hi;
  const match *m = state;
  int64_t low = m->file->first_chunk, high = low + m->file->chunk_count, end = high;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (m->sums->chunks[middle].offset < (int64_t)chunk->offset)
      low = middle + 1;
    else
      high = middle;
  }
  tegula__chunk_sum *found = low < end ? &m->sums->chunks[low] : NULL;
  if (found == NULL || found->offset != (int64_t)chunk->offset || found->length != chunk->length)
    return true;
  bool here = memcmp(m->sums->vectors + found->at, lo, (size_t)m->sums->ndim * sizeof *lo) == 0;
  found->part = here ? m->part : NULL; /* another place: several parts show it */
  return true;
}

/* Those that are the same can be hashed for the content in passing. */
static void match_chunks(tegula__sums_checking *c) {
  const tegula__manifest *manifest = &c->dataset->manifest;
  if (c->sums.ndim != manifest->ndim) return;
  c->summing.chunk_vectors = c->sums.vectors;
  for (int64_t i = 0; i < manifest->part_count; i++) {
    const tegula__part *part = &manifest->parts[i];
    int64_t file = tegula__part_in_chunks(part) ? tegula__part_file(part) : -1,
            number = file >= 0 ? c->number[file] : -1;
    if (number < 0 || c->summing.files[number].index != file ||
        tegula__box_count(manifest->ndim, part->lo, part->hi) == 0)
      continue;
    tegula__part_visit(part, manifest->ndim, match_chunk,
                       &(match){.sums = &c->sums, .file = &c->sums.files[number], .part = part});
  }
}

tegula_status tegula__sums_match_files(tegula__sums_checking *c, tegula__namer *namer,
                                       tegula_error *err) {
  const tegula__manifest *manifest = &c->dataset->manifest;
  c->number = tegula__realloc_array(NULL, manifest->file_count, sizeof *c->number);
  if (c->number == NULL)
    return tegula__out_of_memory(err, manifest->file_count * (int64_t)sizeof *c->number);
  for (int64_t i = 0; i < manifest->file_count; i++) {
    char *name = absolute_name(namer, manifest->files[i].path);
    if (name == NULL) return tegula__out_of_memory(err, 1024);
    c->number[i] = find_name(c, name);
    free(name);
    tegula__sum_file *file = c->number[i] >= 0 ? &c->summing.files[c->number[i]] : NULL;
    if (file == NULL) continue;
    file->set = c->dataset->files;
    file->file = &manifest->files[i];
    file->index = i;
  }
  for (int64_t i = 0; i < manifest->part_count; i++) {
    const tegula__part *part = &manifest->parts[i];
    int64_t number = part->kind == TEGULA__PART_DENSE ? c->number[part->file] : -1;
    const tegula__sum_file *file = number >= 0 ? &c->summing.files[number] : NULL;
    if (file != NULL && file->index == part->file && file->size == file->file->stamp.size)
      FORWARD(tegula__summing_part(&c->summing, part, number, err));
  }
  match_chunks(c);
  return TEGULA_OK;
}
