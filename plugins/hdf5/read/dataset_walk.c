/* Every dataset of a file, the names in a group, and what to say when the one that was asked for is
 * not among them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Objects are remembered by file and address, so that each is met once however many links lead to
 * it, and circles end. Hard links come first: an object goes by the name that it has in its own
 * file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "read/hdf5_read.h"
#include "read/object_lookup.h"

enum { MOST_DEPTH = 500, MOST_NAMED = 12 };
#define MOST_OBJECTS (INT64_C(1) << 24)

typedef struct names {
  char **items;
  int64_t count, capacity;
  bool failed;
} names;

/* An open-addressed set; entries are never 0. */
typedef struct seen {
  uint64_t *keys;
  size_t count, capacity;
} seen;

typedef struct walk {
  hdf5_call *call;
  hdf5_each_fn each;
  void *state;
  seen objects;
  names later; /* links that are followed when all hard ones have been */
  int depth;
  bool groups; /* `each` is called for groups, too */
} walk;

static bool names_add(names *list, char *name) {
  if (name && list->count == list->capacity) {
    int64_t capacity = list->capacity ? 2 * list->capacity : 64;
    char **items = realloc(list->items, (size_t)capacity * sizeof *items);
    if (items) {
      list->items = items;
      list->capacity = capacity;
    }
  }
  list->failed = list->failed || !name || list->count == list->capacity;
  if (list->failed)
    free(name);
  else
    list->items[list->count++] = name;
  return !list->failed;
}

static void names_free(names *list) {
  for (int64_t k = 0; k < list->count; k++) free(list->items[k]);
  free(list->items);
  *list = (names){0};
}

static herr_t collect(hid_t group, const char *name, const void *info, void *state) {
  (void)group, (void)info;
  return names_add(state, strdup(name)) ? 0 : -1;
}

/* True when the key was not there yet; `failed` on lack of memory. */
static bool seen_add(seen *set, uint64_t key, bool *failed) {
  if (2 * (set->count + 1) > set->capacity) {
    seen grown = {.capacity = set->capacity ? 2 * set->capacity : 256};
    grown.keys = calloc(grown.capacity, sizeof *grown.keys);
    *failed = !grown.keys;
    if (*failed) return false;
    for (size_t k = 0; k < set->capacity; k++)
      if (set->keys[k]) seen_add(&grown, set->keys[k], failed);
    free(set->keys);
    *set = grown;
  }
  size_t at = (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (set->capacity - 1);
  for (; set->keys[at]; at = (at + 1) & (set->capacity - 1))
    if (set->keys[at] == key) return false;
  set->keys[at] = key;
  set->count++;
  return true;
}

/* A number for the object, made of its address and the name of its file. */
static uint64_t object_key(hdf5_library *library, const hdf5_file *file, hid_t id) {
  /* H5O_info1_t: file, address (64 bits); H5O_info2_t: file, token (address first) */
  uint64_t info[64] = {0};
  library->call.object_info(id, info,
                            1 /* basic: all there is would be a walk over the chunk index */);
  uint64_t key = UINT64_C(14695981039346656037); /* FNV-1a */
  for (const char *c = file->canonical; *c; c++)
    key = (key ^ (unsigned char)*c) * UINT64_C(1099511628211);
  key ^= info[1] * UINT64_C(0x9E3779B97F4A7C15);
  return key ? key : 1;
}

static tegula_status visit(walk *w, hdf5_file *file, hid_t id, const char *path, tegula_error *err);

static tegula_status visit_child(walk *w, hdf5_file *file, hid_t group, const char *path,
                                 const char *name, tegula_error *err) {
  hdf5_link link;
  tegula_status status = hdf5_link_read(w->call, group, name, &link);
  /* kinds of link that users define */
  if (status == TEGULA_UNSUPPORTED || status == TEGULA_NOT_FOUND) return TEGULA_OK;
  RETURN_IF(status == TEGULA_OUT_OF_MEMORY, hdf5_out_of_memory(w->call->library, err));
  int kind = link.kind;
  hdf5_link_free(&link);
  char *full = hdf5_text("%s/%s", path, name);
  RETURN_IF(!full, hdf5_out_of_memory(w->call->library, err));
  if (status != TEGULA_OK) {
    status = w->each(w->state, file, -1, full, NULL, err);
    free(full);
    return status;
  }
  if (kind != HDF5_LINK_HARD)
    return names_add(&w->later, full) ? TEGULA_OK : hdf5_out_of_memory(w->call->library, err);
  hid_t id = w->call->library->call.H5Oopen(group, name, HDF5_DEFAULT);
  status = id >= 0 ? visit(w, file, id, full, err) : w->each(w->state, file, -1, full, NULL, err);
  if (id >= 0) w->call->library->call.H5Oclose(id);
  free(full);
  return status;
}

/* The names in a group, which are freed in any case. */
static tegula_status read_names(hdf5_call *call, hdf5_file *file, hid_t id, const char *path,
                                names *list, tegula_error *err) {
  hsize_t from = 0;
  if (call->library->call.iterate(id, 0 /* by name */, 0 /* increasing */, &from, collect, list) >=
      0)
    return TEGULA_OK;
  return hdf5_failed(call->library, err, TEGULA_CORRUPT, file->path, "list group \"%s\" of \"%s\"",
                     path[0] ? path : "/", file->path);
}

static tegula_status visit_group(walk *w, hdf5_file *file, hid_t id, const char *path,
                                 tegula_error *err) {
  names list = {0};
  if (w->depth >= MOST_DEPTH)
    return w->call->library->host->fail(err, TEGULA_LIMIT_EXCEEDED, file->path, -1,
                                        "\"%s\" has groups in groups over more than %d levels",
                                        file->path, MOST_DEPTH);
  tegula_status status = read_names(w->call, file, id, path, &list, err);
  w->depth++;
  for (int64_t k = 0; status == TEGULA_OK && k < list.count; k++)
    status = visit_child(w, file, id, path, list.items[k], err);
  w->depth--;
  names_free(&list);
  return status;
}

static tegula_status visit(walk *w, hdf5_file *file, hid_t id, const char *path,
                           tegula_error *err) {
  hdf5_library *library = w->call->library;
  bool failed = false;
  bool fresh = seen_add(&w->objects, object_key(library, file, id), &failed);
  RETURN_IF(failed || (int64_t)w->objects.count > MOST_OBJECTS, hdf5_out_of_memory(library, err));
  RETURN_IF(!fresh, TEGULA_OK);
  int type = library->call.H5Iget_type(id);
  if (type == HDF5_ID_DATASET) return w->each(w->state, file, id, path, NULL, err);
  if (type != HDF5_ID_GROUP) return TEGULA_OK;
  if (w->groups && path[0]) FORWARD(w->each(w->state, file, id, path, NULL, err));
  return visit_group(w, file, id, path, err);
}

/* A link that leads to something which cannot be opened may lead to a dataset: it is told. */
static tegula_status visit_broken(walk *w, hdf5_file *file, const char *path, tegula_status status,
                                  const hdf5_found *found, const tegula_error *why,
                                  tegula_error *err) {
  if (status == TEGULA_NOT_FOUND || found->circle) return TEGULA_OK;
  if (status != TEGULA_OUT_OF_MEMORY && status != TEGULA_CANCELLED)
    return w->each(w->state, file, -1, path, why, err);
  if (err) *err = *why;
  return status;
}

/* What soft and external links lead to; those that lead nowhere are no datasets. */
static tegula_status visit_links(walk *w, hdf5_file *file, tegula_error *err) {
  tegula_status status = TEGULA_OK;
  /* links found behind an external link have names that start at the link */
  for (int64_t k = 0; status == TEGULA_OK && k < w->later.count; k++) {
    hdf5_found found;
    const char *path = w->later.items[k];
    tegula_error why = {0};
    status = hdf5_follow(w->call, file, path, &found, &why);
    status = status == TEGULA_OK ? visit(w, found.file, found.id, path, err)
                                 : visit_broken(w, file, path, status, &found, &why, err);
    hdf5_found_free(w->call, &found);
  }
  return status;
}

/* What is in a group, which has the name `path` when it is looked for from `top`. */
static tegula_status walk_in(hdf5_call *call, hdf5_file *top, hdf5_file *file, hid_t group,
                             const char *path, bool groups, hdf5_each_fn each, void *state,
                             tegula_error *err) {
  walk w = {.call = call, .each = each, .state = state, .groups = groups};
  tegula_status status = visit(&w, file, group, path, err);
  if (status == TEGULA_OK) status = visit_links(&w, top, err);
  names_free(&w.later);
  free(w.objects.keys);
  return status == HDF5_STOP ? TEGULA_OK : status;
}

tegula_status hdf5_walk(hdf5_call *call, hdf5_file *file, bool groups, hdf5_each_fn each,
                        void *state, tegula_error *err) {
  hid_t root = call->library->call.H5Oopen(file->id, "/", HDF5_DEFAULT);
  if (root < 0)
    return hdf5_failed(call->library, err, TEGULA_CORRUPT, file->path,
                       "open the root group of \"%s\"", file->path);
  tegula_status status = walk_in(call, file, file, root, "", groups, each, state, err);
  call->library->call.H5Oclose(root);
  return status;
}

/* ---- which dataset is meant ---- */

enum { MOST_COUNTED = 10000 }; /* names for messages; more are not looked for */

/* What is said behind a count. */
static const char *or_more(int64_t count) { return count >= MOST_COUNTED ? " or more" : ""; }

static tegula_status note_name(void *state, hdf5_file *file, hid_t dataset, const char *name,
                               const tegula_error *why, tegula_error *err) {
  (void)file, (void)dataset, (void)why, (void)err;
  names *list = state;
  if (!names_add(list, strdup(name))) return HDF5_STOP;
  return list->count < MOST_COUNTED ? TEGULA_OK : HDF5_STOP;
}

/* "a", "b", "c", ... (17 in all) */
static void join(const names *list, char *out, size_t size) {
  size_t used = 0;
  int64_t shown = 0;
  out[0] = 0;
  for (int64_t k = 0; k < list->count; k++) {
    if (shown >= MOST_NAMED || used + strlen(list->items[k]) + 40 > size) continue;
    used +=
        (size_t)snprintf(out + used, size - used, "%s\"%s\"", shown ? ", " : "", list->items[k]);
    shown++;
  }
  if (shown < list->count)
    snprintf(out + used, size - used, "%s... (%lld%s in all)", shown ? ", " : "",
             (long long)list->count, or_more(list->count));
}

/* Levenshtein's distance, case ignored for letters; names over 255 bytes count as far. */
static int distance(const char *a, const char *b) {
  size_t n = strlen(a), m = strlen(b);
  int row[256];
  if (n > 255 || m > 255) return 1000;
  for (size_t j = 0; j <= m; j++) row[j] = (int)j;
  for (size_t i = 1; i <= n; i++) {
    int diagonal = row[0];
    row[0] = (int)i;
    for (size_t j = 1; j <= m; j++) {
      int change = diagonal + ((a[i - 1] | 32) != (b[j - 1] | 32));
      int least = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
      diagonal = row[j];
      row[j] = change < least ? change : least;
    }
  }
  return row[m];
}

static const char *last_part(const char *name) {
  const char *slash = strrchr(name, '/');
  return slash ? slash + 1 : name;
}

/* Keeps the names that are near `wanted`: nearly the same, or the same in another group. */
static void keep_near(names *list, const char *wanted) {
  char *full = hdf5_text("%s%s", wanted[0] == '/' ? "" : "/", wanted);
  int64_t kept = 0;
  for (int64_t k = 0; full && k < list->count; k++) {
    int limit = 1 + (int)strlen(last_part(full)) / 4;
    bool near = distance(full, list->items[k]) <= limit ||
                distance(last_part(full), last_part(list->items[k])) < limit;
    char *name = list->items[k];
    list->items[k] = list->items[kept];
    list->items[kept] = name;
    kept += near;
  }
  for (int64_t k = kept; k < list->count; k++) free(list->items[k]);
  list->count = kept;
  free(full);
}

static void suggest(hdf5_call *call, hdf5_file *file, const char *wanted, tegula_status status,
                    tegula_error *err) {
  const tegula_plugin_host *host = call->library->host;
  names list = {0}, near = {0};
  char text[400];
  if (!err || hdf5_walk(call, file, false, note_name, &list, NULL) != TEGULA_OK) goto done;
  for (int64_t k = 0; k < list.count; k++) names_add(&near, strdup(list.items[k]));
  keep_near(&near, wanted);
  join(near.count ? &near : &list, text, sizeof text);
  if (near.count)
    host->hint(err, status, "is it %s?", text);
  else if (list.count)
    host->hint(err, status, "its datasets are %s", text);
  else
    host->hint(err, status, "it holds no datasets");
done:
  names_free(&list);
  names_free(&near);
}

static tegula_status is_group(hdf5_call *call, hdf5_file *top, const char *name,
                              const hdf5_found *found, tegula_error *err) {
  const tegula_plugin_host *host = call->library->host;
  names list = {0};
  char text[600];
  size_t length = strlen(name), front = strspn(name, "/");
  while (length > front && name[length - 1] == '/') length--;
  if (found->file == top && !found->name[0]) length = front; /* the root group, by any name */
  char *path = hdf5_text("%s%.*s", length > front ? "/" : "", (int)(length - front), name + front);
  if (path) walk_in(call, top, found->file, found->id, path, false, note_name, &list, NULL);
  join(&list, text, sizeof text);
  free(path);
  names_free(&list);
  tegula_status status = host->fail(err, TEGULA_INVALID_ARGUMENT, top->path, -1,
                                    "\"%s\" in \"%s\" is a group, not a dataset", name, top->path);
  return text[0] ? host->hint(err, status, "name a dataset in it: %s", text)
                 : host->hint(err, status, "there are no datasets in it");
}

static tegula_status find_only(hdf5_call *call, hdf5_file *file, hdf5_found *out,
                               tegula_error *err) {
  const tegula_plugin_host *host = call->library->host;
  names list = {0};
  char text[600];
  tegula_status status = hdf5_walk(call, file, false, note_name, &list, err);
  if (status == TEGULA_OK && list.failed) status = hdf5_out_of_memory(call->library, err);
  if (status == TEGULA_OK && list.count == 0)
    status =
        host->fail(err, TEGULA_NOT_FOUND, file->path, -1, "\"%s\" holds no datasets", file->path);
  if (status == TEGULA_OK && list.count > 1) {
    join(&list, text, sizeof text);
    status = host->hint(err,
                        host->fail(err, TEGULA_INVALID_ARGUMENT, file->path, -1,
                                   "\"%s\" holds %lld%s datasets: which one is meant must be said",
                                   file->path, (long long)list.count, or_more(list.count)),
                        "name one of them, or a numbered sequence by a pattern: %s", text);
  }
  if (status == TEGULA_OK) status = hdf5_follow(call, file, list.items[0], out, err);
  names_free(&list);
  return status;
}

tegula_status hdf5_find(hdf5_call *call, hdf5_file *file, const char *name, hdf5_found *out,
                        tegula_error *err) {
  *out = (hdf5_found){.id = -1};
  RETURN_IF(!name, find_only(call, file, out, err));
  tegula_status status = hdf5_follow(call, file, name, out, err);
  if (status == TEGULA_NOT_FOUND && err && !err->hint[0]) suggest(call, file, name, status, err);
  FORWARD(status);
  int type = call->library->call.H5Iget_type(out->id);
  RETURN_IF(type == HDF5_ID_DATASET, TEGULA_OK);
  const tegula_plugin_host *host = call->library->host;
  status = type == HDF5_ID_GROUP ? is_group(call, file, name, out, err)
                                 : host->fail(err, TEGULA_INVALID_ARGUMENT, file->path, -1,
                                              "\"%s\" in \"%s\" is a named datatype, not a dataset",
                                              name, file->path);
  hdf5_found_free(call, out);
  return status;
}

tegula_status hdf5_names_in(hdf5_call *call, hdf5_file *file, const char *group,
                            tegula_plugin_name_fn each, void *state, tegula_error *err) {
  hdf5_found found;
  names list = {0};
  tegula_status status = hdf5_follow(call, file, group, &found, err);
  if (status == TEGULA_NOT_FOUND && err && !err->hint[0]) suggest(call, file, group, status, err);
  if (status == TEGULA_OK && call->library->call.H5Iget_type(found.id) != HDF5_ID_GROUP)
    status = call->library->host->fail(err, TEGULA_INVALID_ARGUMENT, file->path, -1,
                                       "\"%s\" in \"%s\" is no group", group, file->path);
  if (status == TEGULA_OK) status = read_names(call, found.file, found.id, found.name, &list, err);
  for (int64_t k = 0; status == TEGULA_OK && k < list.count; k++)
    status = each(state, list.items[k], err);
  names_free(&list);
  hdf5_found_free(call, &found);
  return status;
}
