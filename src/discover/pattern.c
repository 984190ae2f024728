/* Patterns of datasets: those of a container whose names match are one array, joined along axis 0.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Names are put in order by the rule for files. In each group a name that is there as it stands
 * wins over what it would match. The file is opened once for each group that is looked into, and
 * once for all datasets. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "discover/discover.h"

typedef struct name_list {
  char **items; /* owned */
  int64_t count, capacity;
} name_list;

typedef struct matching {
  const tegula__format *format;
  const tegula__source *source;
  const tegula__describe_options *options;
  name_list names; /* with their groups */
} matching;

static void free_names(name_list *list) {
  for (int64_t i = 0; i < list->count; i++) free(list->items[i]);
  free(list->items);
  *list = (name_list){0};
}

/* Takes `name`. */
static tegula_status add_name(name_list *list, char *name, tegula_error *err) {
  if (name == NULL || !tegula__vector_reserve((void **)&list->items, &list->capacity,
                                              list->count + 1, sizeof *list->items)) {
    free(name);
    return tegula__out_of_memory(err, (list->count + 1) * (int64_t)sizeof *list->items);
  }
  list->items[list->count++] = name;
  return TEGULA_OK;
}

/* ---- what matches ---- */

/* One group, and the part of the pattern that its names are compared with. */
typedef struct level {
  const char *group;
  const char *wanted;
  name_list names;
  bool exact; /* a name is `wanted` itself: the only one that counts */
} level;

/* A tegula__name_fn. */
static tegula_status take_name(void *state, const char *name, tegula_error *err) {
  level *at = state;
  bool exact = strcmp(at->wanted, name) == 0;
  if (at->exact || (!exact && fnmatch(at->wanted, name, 0) != 0)) return TEGULA_OK;
  if (exact) free_names(&at->names);
  at->exact = exact;
  return add_name(&at->names, tegula__strprintf("%s/%s", at->group, name), err);
}

static tegula_status expand(matching *m, const char *group, const char *rest, bool behind,
                            tegula_error *err);

static tegula_status expand_level(matching *m, level *at, const char *inside, bool behind,
                                  tegula_error *err) {
  tegula_error error;
  tegula_status status = m->format->names(
      m->source, m->options, at->group[0] != '\0' ? at->group : "/", take_name, at, &error);
  /* what matches a part in the middle need not be a group */
  if (behind && status == TEGULA_INVALID_ARGUMENT) return TEGULA_OK;
  if (status != TEGULA_OK) {
    if (err != NULL) *err = error;
    return status;
  }
  for (int64_t i = 0; i < at->names.count; i++) {
    if (inside != NULL)
      FORWARD(expand(m, at->names.items[i], inside, true, err));
    else
      FORWARD(add_name(&m->names, strdup(at->names.items[i]), err));
  }
  return TEGULA_OK;
}

/* Adds what matches `rest` in the group; `behind` a part with wildcards. */
static tegula_status expand(matching *m, const char *group, const char *rest, bool behind,
                            tegula_error *err) {
  size_t size = strcspn(rest, "/"), slashes = strspn(rest + size, "/");
  const char *inside = rest[size + slashes] != '\0' ? rest + size + slashes : NULL;
  char *wanted = strndup(rest, size);
  if (wanted == NULL) return tegula__out_of_memory(err, (int64_t)size);
  level at = {.group = group, .wanted = wanted};
  tegula_status status = expand_level(m, &at, inside, behind, err);
  free_names(&at.names);
  free(wanted);
  return status;
}

/* What is in front of the first part with wildcards is taken as it is. */
static tegula_status find_names(matching *m, tegula_error *err) {
  const char *pattern = m->options->dataset + strspn(m->options->dataset, "/");
  size_t front = strcspn(pattern, TEGULA__WILDCARDS);
  while (front > 0 && pattern[front - 1] != '/') front--;
  size_t size = front;
  while (size > 0 && pattern[size - 1] == '/') size--;
  char *group = tegula__strprintf("%s%.*s", size > 0 ? "/" : "", (int)size, pattern);
  if (group == NULL) return tegula__out_of_memory(err, (int64_t)size);
  tegula_status status = expand(m, group, pattern + front, false, err);
  free(group);
  return status;
}

/* The format says what there is instead. */
static tegula_status nothing_matches(const matching *m, tegula__manifest *out, tegula_error *err) {
  tegula_error found;
  tegula_status status = m->format->describe(m->source, m->options, out, &found);
  /* by a name that is no path of plain parts, such as "./a*" */
  if (status == TEGULA_OK) return TEGULA_OK;
  const char *path = m->source->path;
  if (status == TEGULA_NOT_FOUND)
    tegula__fail(err, status, path, -1, "no dataset in \"%s\" matches \"%.200s\"", path,
                 m->options->dataset);
  else if (err != NULL)
    *err = found;
  return status == TEGULA_NOT_FOUND && found.hint[0] != '\0'
             ? tegula__hint(err, status, "%s", found.hint)
             : status;
}

static tegula_status order_names(matching *m, tegula_error *err) {
  /* quoted as a whole */
  char *where = tegula__strprintf("%.200s\" in \"%s", m->options->dataset, m->source->path);
  if (where == NULL) return tegula__out_of_memory(err, (int64_t)strlen(m->source->path));
  const tegula__name_set set = {
      .where = where,
      .path = m->source->path,
      .things = "datasets",
      .foreign_hint = "choose a pattern that matches only the datasets of one numbered sequence",
      .hole_hint = "the dataset was lost or never written; a pattern with [ ] can take those in "
                   "front of it"};
  tegula_status status = tegula__names_order_set(m->names.items, m->names.count, &set, err);
  free(where);
  return status;
}

/* ---- one array ---- */

/* What the numbered names have in common in front of their numbers: "/data" for /data_0001 and
 * /data_0002. */
static char *common_name(const name_list *names) {
  const char *first = names->items[0], *last = names->items[names->count - 1];
  size_t size = 0;
  while (first[size] != '\0' && first[size] == last[size]) size++;
  while (size > 0 && first[size - 1] >= '0' && first[size - 1] <= '9') size--;
  while (size > 0 && strchr("_-. ", first[size - 1]) != NULL) size--;
  return tegula__strprintf("%.*s%s", (int)size, first,
                           size == 0 || first[size - 1] == '/' ? "data" : "");
}

static tegula_status rename_array(tegula__manifest *manifest, char *name, tegula_error *err) {
  FORWARD(tegula__manifest_keep(manifest, name, err));
  manifest->name = name;
  return TEGULA_OK;
}

/* Shards without files of their own have that of the source. */
static tegula_status own_file(const matching *m, tegula__manifest *shard, tegula_error *err) {
  if (shard->file_count > 0) return TEGULA_OK;
  shard->files = calloc(1, sizeof *shard->files);
  char *path = shard->files != NULL ? strdup(m->source->path) : NULL;
  if (path == NULL) return tegula__out_of_memory(err, (int64_t)strlen(m->source->path));
  shard->files[0] = (tegula__file){.path = path, .stamp = *m->source->stamp};
  shard->file_count = 1;
  return TEGULA_OK;
}

/* The table of files as any description has it: empty where there is only the source. */
static tegula_status share_files(const matching *m, tegula__manifest *joined, tegula_error *err) {
  FORWARD(tegula__manifest_merge_files(joined, err));
  if (joined->file_count > 1 || strcmp(joined->files[0].path, m->source->path) != 0)
    return TEGULA_OK;
  free(joined->files[0].path);
  free(joined->files);
  joined->files = NULL;
  joined->file_count = 0;
  return TEGULA_OK;
}

static tegula_status join_shards(const matching *m, tegula__manifest *shards, tegula__manifest *out,
                                 tegula_error *err) {
  for (int64_t i = 0; i < m->names.count; i++) {
    FORWARD(own_file(m, &shards[i], err));
    /* links have the names of what they lead to */
    FORWARD(rename_array(&shards[i], strdup(m->names.items[i]), err));
  }
  FORWARD(tegula__manifest_join(shards, m->names.count, out, err));
  FORWARD(share_files(m, out, err));
  return rename_array(out, common_name(&m->names), err);
}

static tegula_status describe_names(const matching *m, tegula__manifest *out, tegula_error *err) {
  int64_t count = m->names.count;
  tegula__describe_options options = *m->options;
  options.dataset = m->names.items[0];
  if (count == 1) return m->format->describe(m->source, &options, out, err);
  tegula__manifest *shards = tegula__realloc_array(NULL, count, sizeof *shards);
  if (shards == NULL) return tegula__out_of_memory(err, count * (int64_t)sizeof *shards);
  for (int64_t i = 0; i < count; i++) {
    tegula__manifest_init(&shards[i]);
    shards[i].format = out->format;
  }
  tegula_status status = m->format->describe_many(
      m->source, &options, (const char *const *)m->names.items, count, shards, err);
  if (status == TEGULA_OK) status = join_shards(m, shards, out, err);
  for (int64_t i = 0; i < count; i++) tegula__manifest_free(&shards[i]);
  free(shards);
  return status;
}

static bool has_pattern(const tegula__format *format, const tegula__describe_options *options) {
  return format->names != NULL && options->dataset != NULL &&
         strpbrk(options->dataset, TEGULA__WILDCARDS) != NULL;
}

tegula_status tegula__describe_datasets(const tegula__format *format, const tegula__source *source,
                                        const tegula__describe_options *options,
                                        tegula__manifest *out, tegula_error *err) {
  matching m = {.format = format, .source = source, .options = options};
  if (!has_pattern(format, options)) return format->describe(source, options, out, err);
  tegula_status status = find_names(&m, err);
  if (status == TEGULA_OK && m.names.count == 0)
    status = nothing_matches(&m, out, err);
  else if (status == TEGULA_OK)
    status = order_names(&m, err);
  if (status == TEGULA_OK && m.names.count > 0) status = describe_names(&m, out, err);
  free_names(&m.names);
  return status;
}

tegula_status tegula__matching_datasets(const tegula__format *format, const tegula__source *source,
                                        const tegula__describe_options *options, char ***out,
                                        int64_t *count, tegula_error *err) {
  matching m = {.format = format, .source = source, .options = options};
  *out = NULL;
  *count = 0;
  if (!has_pattern(format, options)) return TEGULA_OK;
  tegula_status status = find_names(&m, err);
  if (status == TEGULA_OK) status = order_names(&m, err);
  if (status != TEGULA_OK) {
    free_names(&m.names);
    return status;
  }
  *out = m.names.items;
  *count = m.names.count;
  return TEGULA_OK;
}
