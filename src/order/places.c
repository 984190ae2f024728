/* Canonical names: which operations meet in the file system.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "order/queue.h"

/* Takes the last component off `path`; false when only one is left. The component is moved to
 * `rest`, in front of what is there. */
static bool split_last(char *path, char **rest) {
  size_t size = strlen(path);
  while (size > 1 && path[size - 1] == '/') path[--size] = '\0';
  char *slash = strrchr(path, '/');
  const char *name = slash != NULL ? slash + 1 : path;
  RETURN_IF(*name == '\0', false);
  char *joined = *rest == NULL ? strdup(name) : tegula__strprintf("%s/%s", name, *rest);
  free(*rest);
  *rest = joined;
  if (slash == NULL)
    strcpy(path, "."); /* a name in the working folder; path had at least one character */
  else
    slash[slash == path ? 1 : 0] = '\0';
  return joined != NULL;
}

/* The canonical name of the part that exists, and the rest behind it. NULL on lack of memory. */
static char *canonical(const char *path) {
  char *head = strdup(path), *rest = NULL, *real = NULL;
  while (head != NULL && (real = realpath(head, NULL)) == NULL)
    if (errno == ENOMEM || strcmp(head, ".") == 0 || !split_last(head, &rest)) break;
  char *whole = real == NULL ? strdup(path)
                : rest == NULL
                    ? strdup(real)
                    : tegula__strprintf("%s/%s", strcmp(real, "/") == 0 ? "" : real, rest);
  free(head);
  free(rest);
  free(real);
  return whole;
}

static bool make_place(const char *path, tegula__place *out) {
  struct stat info;
  *out = (tegula__place){.path = canonical(path)};
  RETURN_IF(out->path == NULL, false);
  if (stat(out->path, &info) == 0) {
    out->device = info.st_dev;
    out->inode = info.st_ino;
  }
  return true;
}

/* The folder that a file's name says, as text of `size` bytes in `path`. */
static size_t folder_size(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
}

static tegula_status add_folders(const char *const *paths, int64_t count, tegula__places *out,
                                 tegula_error *err) {
  int64_t capacity = 0;
  for (int64_t i = 0; i < count; i++) {
    size_t size = folder_size(paths[i]);
    if (i > 0 && size == folder_size(paths[i - 1]) && memcmp(paths[i], paths[i - 1], size) == 0)
      continue;
    char *folder = size == 0 ? strdup(".") : strndup(paths[i], size);
    bool good = folder != NULL &&
                tegula__vector_reserve((void **)&out->items, &capacity, out->count + 1,
                                       sizeof *out->items) &&
                make_place(folder, &out->items[out->count]);
    free(folder);
    if (!good) return tegula__out_of_memory(err, count);
    out->count++;
  }
  return TEGULA_OK;
}

tegula_status tegula__places_of(const char *const *paths, int64_t count, tegula__places *out,
                                tegula_error *err) {
  *out = (tegula__places){0};
  tegula_status status = TEGULA_OK;
  if (count == 1) {
    out->items = malloc(sizeof *out->items);
    if (out->items == NULL || !make_place(paths[0], &out->items[0]))
      status = tegula__out_of_memory(err, (int64_t)strlen(paths[0]));
    else
      out->count = 1;
  } else {
    status = add_folders(paths, count, out, err);
  }
  if (status != TEGULA_OK) tegula__places_free(out);
  return status;
}

void tegula__places_free(tegula__places *places) {
  for (int64_t i = 0; i < places->count; i++) free(places->items[i].path);
  free(places->items);
  *places = (tegula__places){0};
}

/* Is `inner` the same as `outer`, or inside of it? */
static bool holds(const char *outer, const char *inner) {
  size_t size = strlen(outer);
  if (size > 0 && outer[size - 1] == '/') size--; /* the root */
  return strncmp(outer, inner, size) == 0 && (inner[size] == '\0' || inner[size] == '/');
}

bool tegula__places_meet(const tegula__places *a, const tegula__places *b) {
  if (a == NULL || b == NULL) return false;
  for (int64_t i = 0; i < a->count; i++)
    for (int64_t j = 0; j < b->count; j++) {
      const tegula__place *x = &a->items[i], *y = &b->items[j];
      if (x->inode != 0 && x->inode == y->inode && x->device == y->device) return true;
      if (holds(x->path, y->path) || holds(y->path, x->path)) return true;
    }
  return false;
}

/* Where the files of a pattern are: the folder in front of its first wildcard. Anything else stands
 * for itself. */
tegula_status tegula__places_of_paths(const char *const *paths, size_t count, tegula__places *out,
                                      tegula_error *err) {
  size_t size = strcspn(paths[0], "*?[\\");
  if (count > 1 || paths[0][size] == '\0' || access(paths[0], F_OK) == 0)
    return tegula__places_of(paths, (int64_t)count, out, err);
  while (size > 0 && paths[0][size - 1] != '/') size--;
  char *folder = size == 0 ? strdup(".") : strndup(paths[0], size);
  if (folder == NULL) return tegula__out_of_memory(err, (int64_t)size);
  tegula_status status = tegula__places_of((const char *const *)&folder, 1, out, err);
  free(folder);
  return status;
}
