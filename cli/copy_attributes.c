/* What goes along with a dataset that `tegula copy` copies, and what cannot.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commands.h"
#include "report.h"

int copy_drop(json_t *dropped, const char *what, const char *name, const char *reason) {
  json_t *one = json_pack("{s:s, s:o, s:s}", "what", what, "name", report_text(name), "reason", reason);
  return one != NULL && json_array_append_new(dropped, one) == 0;
}

enum { MOST_BYTES = 65000 }; /* of an attribute in the header of its dataset; text of any length lies elsewhere */

/* Why it cannot go along, in `out`; 0: it can. */
static int is_refused(const tegula_attribute *attribute, size_t *item_size, char out[128]) {
  tegula_dtype dtype = {.item_size = 16};
  int known = strcmp(attribute->type, "str") == 0 || tegula_dtype_parse(attribute->type, &dtype, NULL) == TEGULA_OK;
  *item_size = dtype.item_size;
  out[0] = '\0';
  if (strcmp(attribute->name, "DIMENSION_LIST") == 0) {
    snprintf(out, 128, "the scales of the axes are other datasets, which are not copied");
  } else if (strcmp(attribute->name, "REFERENCE_LIST") == 0) {
    snprintf(out, 128, "the datasets whose axes this is a scale of are not copied");
  } else if (!known) {
    snprintf(out, 128, "its type (%.60s) has no form here", attribute->type);
  } else if (attribute->omitted != NULL) {
    snprintf(out, 128, "%.100s", attribute->omitted);
  } else if (attribute->count > (MOST_BYTES - (int64_t)strlen(attribute->name)) / (int64_t)*item_size) {
    snprintf(out, 128, "it has more than %d bytes", MOST_BYTES);
  }
  return out[0] != '\0';
}

static void free_attribute(tegula_attribute *attribute) {
  for (int64_t i = 0; attribute->texts != NULL && i < attribute->count; i++) {
    free((void *)(uintptr_t)attribute->texts[i]);
  }
  free((void *)(uintptr_t)attribute->texts);
  free((void *)(uintptr_t)attribute->values);
  free((void *)(uintptr_t)attribute->shape);
  free((void *)(uintptr_t)attribute->type);
  free((void *)(uintptr_t)attribute->name);
}

static void *copied(const void *from, size_t size) {
  void *to = malloc(size > 0 ? size : 1);
  return to != NULL && size > 0 ? memcpy(to, from, size) : to;
}

/* Its own copy of everything; 0 on lack of memory, what there is can be freed. */
static int take_texts(const tegula_attribute *from, tegula_attribute *to) {
  char **texts = calloc((size_t)from->count, sizeof *texts);
  to->texts = (const char *const *)texts;
  for (int64_t i = 0; texts != NULL && i < from->count; i++) {
    texts[i] = strdup(from->texts[i]);
    if (texts[i] == NULL) {
      return 0;
    }
  }
  return texts != NULL;
}

static int take_attribute(const tegula_attribute *from, size_t item_size, tegula_attribute *to) {
  memset(to, 0, sizeof *to);
  to->struct_size = sizeof *to;
  to->ndim = from->ndim;
  to->count = from->count;
  to->name = strdup(from->name);
  to->type = strdup(from->type);
  if (to->name == NULL || to->type == NULL) {
    return 0;
  }
  if (from->shape != NULL && (to->shape = copied(from->shape, (size_t)from->ndim * sizeof *from->shape)) == NULL) {
    return 0;
  }
  if (from->count > 0 && from->texts != NULL) {
    return take_texts(from, to);
  }
  return from->count == 0 || from->values == NULL || (to->values = copied(from->values, (size_t)from->count * item_size)) != NULL;
}

static int take(void *state, const tegula_attribute *attribute) {
  copied_attributes *all = state;
  size_t item_size;
  char reason[128];
  if (is_refused(attribute, &item_size, reason)) {
    const char *what = strcmp(attribute->name, "DIMENSION_LIST") == 0 ? "dimension scales" : "attribute";
    all->no_memory = !copy_drop(all->dropped, what, attribute->name, reason);
    return all->no_memory;
  }
  if (all->count == all->room) {
    int64_t room = all->room > 0 ? 2 * all->room : 16;
    tegula_attribute *items = realloc(all->items, (size_t)room * sizeof *items);
    all->no_memory = items == NULL;
    if (items == NULL) {
      return 1;
    }
    all->items = items;
    all->room = room;
  }
  all->no_memory = !take_attribute(attribute, item_size, &all->items[all->count++]);
  return all->no_memory;
}

void copy_attributes_free(copied_attributes *attributes) {
  for (int64_t i = 0; i < attributes->count; i++) {
    free_attribute(&attributes->items[i]);
  }
  free(attributes->items);
  memset(attributes, 0, sizeof *attributes);
}

typedef struct first_path {
  char *path;
  int found;
} first_path;

static tegula_status take_first(void *state, const char *path, tegula_error *error) {
  first_path *first = state;
  first->path = strdup(path);
  first->found = 1;
  return tegula_error_set(error, TEGULA_CANCELLED, NULL, -1, "one was enough");
}

/* The file that has them: of several the first. */
static tegula_status find_file(cli_job *job, const char *path, char **out) {
  struct stat info;
  first_path first = {NULL, 0};
  if (stat(path, &info) == 0 && S_ISREG(info.st_mode)) {
    *out = strdup(path);
    return *out != NULL ? TEGULA_OK : report_no_memory(&job->error);
  }
  tegula_status status = tegula_find_files(path, take_first, &first, &job->error);
  *out = first.path;
  return first.path != NULL ? TEGULA_OK : first.found || status == TEGULA_OK ? report_no_memory(&job->error) : status;
}

tegula_status copy_attributes_read(cli_job *job, const char *name, copied_attributes *out) {
  char *path = NULL;
  tegula_open_options options;
  tegula_status status = find_file(job, job->settings.paths[0], &path);
  if (status != TEGULA_OK) {
    return status;
  }
  open_fill_options(job, NULL, &options);
  options.dataset = name;
  status = tegula_attributes(job->context, path, &options, take, out, &job->error);
  free(path);
  if (status == TEGULA_UNSUPPORTED) { /* a manifest, for example */
    status = TEGULA_OK;
    out->no_memory = !copy_drop(out->dropped, "attributes", NULL, job->error.message);
  }
  return out->no_memory ? report_no_memory(&job->error) : status;
}
