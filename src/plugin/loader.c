/* Finding and opening plugins.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin/plugin.h"

#ifndef TEGULA_PLUGIN_DIR
#define TEGULA_PLUGIN_DIR ""
#endif

enum { MOST_PLUGINS = 4 };

typedef struct loaded {
  const char *name; /* static text */
  void *object;
  const tegula_plugin *plugin;
  void *state;
} loaded;

struct tegula__plugins {
  pthread_mutex_t lock;
  char *path, *hdf5_library, *hdf5_candidates;
  loaded items[MOST_PLUGINS];
  int count;
};

tegula_status tegula__plugins_create(const char *path, const char *hdf5_library,
                                     const char *hdf5_candidates, tegula__plugins **out,
                                     tegula_error *err) {
  tegula__plugins *plugins = calloc(1, sizeof *plugins);
  if (plugins == NULL) return tegula__out_of_memory(err, sizeof *plugins);
  pthread_mutex_init(&plugins->lock, NULL);
  plugins->path = tegula__strdup(path);
  plugins->hdf5_library = tegula__strdup(hdf5_library);
  plugins->hdf5_candidates = tegula__strdup(hdf5_candidates);
  bool good = (path == NULL || plugins->path != NULL) &&
              (hdf5_library == NULL || plugins->hdf5_library != NULL) &&
              (hdf5_candidates == NULL || plugins->hdf5_candidates != NULL);
  if (!good) {
    tegula__plugins_destroy(plugins);
    return tegula__out_of_memory(err, sizeof *plugins);
  }
  *out = plugins;
  return TEGULA_OK;
}

/* The shared objects stay: what they have opened in turn may not survive being unloaded. */
void tegula__plugins_destroy(tegula__plugins *plugins) {
  if (plugins == NULL) return;
  for (int i = 0; i < plugins->count; i++)
    if (plugins->items[i].plugin->close != NULL)
      plugins->items[i].plugin->close(plugins->items[i].state);
  pthread_mutex_destroy(&plugins->lock);
  free(plugins->path);
  free(plugins->hdf5_library);
  free(plugins->hdf5_candidates);
  free(plugins);
}

/* ---- where they are ---- */

/* The file in the folder, if it is there; in new memory. */
static char *in_folder(const char *folder, size_t size, const char *below, const char *file) {
  char *path = tegula__strprintf("%.*s%s/%s", (int)size, folder, below, file);
  if (path != NULL && access(path, R_OK) == 0) return path;
  free(path);
  return NULL;
}

static char *find_in_list(const char *folders, const char *file) {
  while (folders != NULL && *folders != '\0') {
    size_t size = strcspn(folders, ":");
    char *found = size > 0 ? in_folder(folders, size, "", file) : NULL;
    if (found != NULL) return found;
    folders += size + (folders[size] == ':');
  }
  return NULL;
}

/* Beside the object that holds this code: the library in lib/, or a program in bin/ that was linked
 * to the static one. */
static char *find_beside(const char *file) {
  Dl_info info;
  if (dladdr((void *)&tegula__plugin_host, &info) == 0 || info.dli_fname == NULL) return NULL;
  char *object = realpath(info.dli_fname, NULL);
  if (object == NULL) object = realpath("/proc/self/exe", NULL);
  char *slash = object != NULL ? strrchr(object, '/') : NULL, *found = NULL;
  if (slash != NULL) found = in_folder(object, (size_t)(slash - object), "/tegula", file);
  if (slash != NULL && found == NULL)
    found = in_folder(object, (size_t)(slash - object), "/../lib/tegula", file);
  free(object);
  return found;
}

static tegula_status find(const tegula__plugins *plugins, const char *name, char **out,
                          tegula_error *err) {
  char *file = tegula__strprintf("libtegula_%s.so", name);
  if (file == NULL) return tegula__out_of_memory(err, 64);
  *out = find_in_list(plugins->path, file);
  if (*out == NULL) *out = find_beside(file);
  if (*out == NULL) *out = find_in_list(TEGULA_PLUGIN_DIR, file);
  tegula_status status = *out != NULL
                             ? TEGULA_OK
                             : tegula__hint(err,
                                            tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                                                         "the plugin %s was not found", file),
                                            "it belongs into the folder tegula/ beside the "
                                            "library, or into one of TEGULA_PLUGIN_PATH");
  free(file);
  return status;
}

/* ---- opening ---- */

static tegula_status enter(void *object, const char *path, const char *name,
                           const tegula_plugin **out, tegula_error *err) {
  union { /* a function's address comes as an object's */
    void *object;
    tegula_plugin_entry_fn entry;
  } symbol = {.object = dlsym(object, TEGULA_PLUGIN_ENTRY)};
  *out = symbol.object != NULL ? symbol.entry(TEGULA_PLUGIN_VERSION) : NULL;
  if (*out != NULL && (*out)->version == TEGULA_PLUGIN_VERSION && strcmp((*out)->name, name) == 0)
    return TEGULA_OK;
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_UNSUPPORTED, path, -1,
                                   "\"%s\" is not the plugin %s of this version", path, name),
                      "plugin and library must come from the same release");
}

/* "a:b" -> a, b, NULL in a copy of the text. */
static tegula_status split(const char *text, char **copy, char ***out, tegula_error *err) {
  size_t count = 0;
  *copy = strdup(text != NULL ? text : "");
  *out = calloc(strlen(text != NULL ? text : "") / 2 + 2, sizeof **out);
  if (*copy == NULL || *out == NULL) {
    free(*copy);
    free(*out);
    return tegula__out_of_memory(err, 64);
  }
  for (char *rest = *copy, *one; (one = strsep(&rest, ":")) != NULL;)
    if (one[0] != '\0') (*out)[count++] = one;
  return TEGULA_OK;
}

static tegula_status open_object(tegula__plugins *plugins, const char *path, const char *name,
                                 tegula_error *err) {
  loaded *item = &plugins->items[plugins->count];
  *item = (loaded){.name = name, .object = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
  if (item->object == NULL) {
    const char *why = dlerror();
    return tegula__fail(err, TEGULA_UNSUPPORTED, path, -1,
                        "could not open the plugin \"%s\": %.300s", path,
                        why != NULL ? why : "unknown");
  }
  FORWARD(enter(item->object, path, name, &item->plugin, err));
  if (item->plugin->comm != NULL) { /* a communicator opens its library when a group is joined */
    plugins->count++;
    return TEGULA_OK;
  }
  char *copy, **candidates;
  FORWARD(split(plugins->hdf5_candidates, &copy, &candidates, err));
  tegula_plugin_options options = {.struct_size = sizeof options,
                                   .library = plugins->hdf5_library,
                                   .candidates = (const char *const *)candidates};
  tegula_status status = item->plugin->open(&tegula__plugin_host, &options, &item->state, err);
  free(candidates);
  free(copy);
  if (status == TEGULA_OK) plugins->count++;
  return status;
}

static tegula_status open_locked(tegula__plugins *plugins, const char *name, const loaded **out,
                                 tegula_error *err) {
  for (int i = 0; i < plugins->count; i++)
    if (strcmp(plugins->items[i].name, name) == 0) {
      *out = &plugins->items[i];
      return TEGULA_OK;
    }
  if (plugins->count == MOST_PLUGINS)
    return tegula__fail(err, TEGULA_INTERNAL, NULL, -1, "more than %d plugins", MOST_PLUGINS);
  char *path = NULL;
  FORWARD(find(plugins, name, &path, err));
  tegula_status status = open_object(plugins, path, name, err);
  free(path);
  if (status == TEGULA_OK) *out = &plugins->items[plugins->count - 1];
  return status;
}

tegula_status tegula__plugins_open(tegula__plugins *plugins, const char *name,
                                   const tegula_plugin **plugin, void **state, tegula_error *err) {
  if (plugins == NULL)
    return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                        "the format %s needs a plugin, and there is none here", name);
  const loaded *found = NULL;
  pthread_mutex_lock(&plugins->lock);
  tegula_status status = open_locked(plugins, name, &found, err);
  pthread_mutex_unlock(&plugins->lock);
  if (status != TEGULA_OK) return status;
  *plugin = found->plugin;
  *state = found->state;
  return TEGULA_OK;
}
