/* Finding libhdf5 and opening it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Of the candidates the newest one is taken: old releases cannot read what new ones write. It stays
 * open for the rest of the process (it cannot be unloaded), so the list of what is open is kept for
 * the process too: the one thing here that is global. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library/libhdf5.h"

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
/* Those whose version was asked for stay loaded, also when another is taken: a libhdf5 with threads
 * leaves a destructor of its own for each thread that called it. */
static hdf5_library *open_libraries;

/* What the system may have. Releases of that name are older than `below` (0: who knows): where a
 * newer one is at hand it is not loaded, which with all that it needs takes longer than opening a
 * file. Names without a number are those of the others, or a last resort. */
typedef struct system_name {
  const char *name;
  unsigned below[2];
} system_name;

static const system_name SYSTEM[] = {
    {"libhdf5.so.320", {0, 0}},  {"libhdf5_serial.so.320", {0, 0}},
    {"libhdf5.so.310", {1, 15}}, {"libhdf5_serial.so.310", {1, 15}},
    {"libhdf5.so.200", {1, 13}}, {"libhdf5_serial.so.103", {1, 11}},
    {"libhdf5.so.103", {1, 11}}, {"libhdf5_serial.so", {0, 1}},
    {"libhdf5.so", {0, 1}},
};

#define LOAD(member, name) (*(void **)&(member) = dlsym(handle, name))

/* NULL, or the name of the function that is not there. */
static const char *load_functions(void *handle, hdf5_functions *call) {
#define HDF5_LOAD(result, name, arguments)                                                         \
  if (!LOAD(call->name, #name)) return #name;
  HDF5_FUNCTIONS(HDF5_LOAD)
#undef HDF5_LOAD
  if (!LOAD(call->read_chunk, "H5Dread_chunk1") && !LOAD(call->read_chunk, "H5Dread_chunk"))
    return "H5Dread_chunk";
  if (!LOAD(call->link_info, "H5Lget_info2") && !LOAD(call->link_info, "H5Lget_info"))
    return "H5Lget_info";
  if (!LOAD(call->iterate, "H5Literate2") && !LOAD(call->iterate, "H5Literate"))
    return "H5Literate";
  if (!LOAD(call->object_info, "H5Oget_info3") && !LOAD(call->object_info, "H5Oget_info2"))
    return "H5Oget_info2";
  LOAD(call->set_file_locking, "H5Pset_file_locking");
  return NULL;
}

static bool load_version(void *handle, hdf5_library *library) {
  herr_t (*version)(unsigned *, unsigned *, unsigned *);
  unsigned *v = library->version;
  return LOAD(version, "H5get_libversion") && version(&v[0], &v[1], &v[2]) >= 0;
}

/* Everything after dlopen; false with the reason in `why`. */
static bool start(hdf5_library *library, char *why, size_t size) {
  void *handle = library->handle;
  hdf5_functions *call = &library->call;
  const char *lacking = load_functions(handle, call);
  if (lacking) {
    snprintf(why, size, "HDF5 %u.%u.%u has no %s: 1.10.5 or newer is needed", library->version[0],
             library->version[1], library->version[2], lacking);
    return false;
  }
  herr_t (*dont_atexit)(void);
  if (LOAD(dont_atexit, "H5dont_atexit")) dont_atexit();
  if (hdf5_library_from(library, 1, 14, 0)) LOAD(call->chunk_iter, "H5Dchunk_iter");
  bool good = call->H5open() >= 0;
  if (good) {
    hdf5_lock(library);
    call->file_access_class = hdf5_predefined(library, "H5P_CLS_FILE_ACCESS_ID_g");
    call->dataset_access_class = hdf5_predefined(library, "H5P_CLS_DATASET_ACCESS_ID_g");
    call->dataset_create_class = hdf5_predefined(library, "H5P_CLS_DATASET_CREATE_ID_g");
    call->file_create_class = hdf5_predefined(library, "H5P_CLS_FILE_CREATE_ID_g");
    call->group_create_class = hdf5_predefined(library, "H5P_CLS_GROUP_CREATE_ID_g");
    good = call->file_access_class > 0 && call->dataset_access_class > 0 &&
           call->dataset_create_class > 0 && call->file_create_class > 0 &&
           call->group_create_class > 0 && hdf5_driver_register(library);
    hdf5_unlock(library);
  }
  if (!good) snprintf(why, size, "it does not start");
  return good;
}

/* A candidate that opened; NULL with the reason in `why`. */
static hdf5_library *try_candidate(const tegula_plugin_host *host, const char *path, char *why,
                                   size_t size) {
  hdf5_library *library = calloc(1, sizeof *library);
  if (!library) {
    snprintf(why, size, "not enough memory");
    return NULL;
  }
  library->host = host;
  pthread_mutexattr_t recursive;
  pthread_mutexattr_init(&recursive);
  pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&library->lock, &recursive);
  pthread_mutexattr_destroy(&recursive);
  library->handle = hdf5_open_private(path, &library->descriptor, why, size);
  library->path = strdup(path);
  if (library->handle && library->path && load_version(library->handle, library)) {
    snprintf(library->text, sizeof library->text, "HDF5 %u.%u.%u (%s)", library->version[0],
             library->version[1], library->version[2], path);
    library->next = open_libraries;
    open_libraries = library;
    return library;
  }
  if (library->handle) {
    snprintf(why, size, "it is no libhdf5");
    hdf5_close_private(library->handle, library->descriptor);
  }
  free(library->path);
  free(library);
  return NULL;
}

static hdf5_library *known(const char *path) {
  for (hdf5_library *library = open_libraries; library; library = library->next)
    if (strcmp(library->path, path) == 0) return library;
  return NULL;
}

typedef struct search {
  const tegula_plugin_host *host;
  hdf5_library *best;
  bool starved;  /* there was too little memory to look at all of them */
  char why[256]; /* about the last one that did not do */
  char which[512];
} search;

/* libhdf5 and all that it needs take 20 MiB (Debian 12). */
enum { ENOUGH_TO_LOAD = 32 << 20 };

/* Looks at one more candidate and keeps the newer one. */
static void consider(search *found, const char *path) {
  hdf5_library *library = known(path);
  char why[256] = "";
  if (!library && !hdf5_memory_there(ENOUGH_TO_LOAD)) {
    found->starved = true;
    return;
  }
  if (!library) library = try_candidate(found->host, path, why, sizeof why);
  if (!library || library->unusable) {
    if (library) snprintf(why, sizeof why, "%s", library->unusable);
    if (strchr(path, '/') || !found->which[0]) {
      snprintf(found->why, sizeof found->why, "%s", why);
      snprintf(found->which, sizeof found->which, "%s", path);
    }
    return;
  }
  hdf5_library *best = found->best;
  const unsigned *v = library->version;
  bool newer =
      !best ||
      (best->version[0] != v[0] || best->version[1] != v[1] || best->version[2] != v[2]
           ? hdf5_library_from(library, best->version[0], best->version[1], best->version[2])
           : false);
  if (newer) found->best = library;
}

static tegula_status none_found(const search *found, const char *asked, tegula_error *err) {
  const tegula_plugin_host *host = found->host;
  tegula_status status =
      asked ? host->fail(err, TEGULA_UNSUPPORTED, asked, -1, "cannot use \"%s\" as libhdf5: %s",
                         asked, found->why)
            : host->fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                         "found no libhdf5 (last tried: \"%s\": %s)", found->which, found->why);
  return host->hint(err, status, "%s",
                    "install one (apt install libhdf5-103-1, or pip install h5py), or name it: "
                    "TEGULA_HDF5_LIBRARY=/path/to/libhdf5.so");
}

static void consider_system(search *found, const system_name *known_as) {
  const unsigned *below = known_as->below;
  bool older = found->best && (below[0] || below[1]) &&
               hdf5_library_from(found->best, below[0], below[1], 0);
  if (!older) consider(found, known_as->name);
}

static void consider_all(search *found, const tegula_plugin_options *options) {
  const char *asked = options ? options->library : NULL;
  found->best = NULL;
  found->starved = false;
  if (asked) consider(found, asked);
  for (const char *const *c = options && !asked ? options->candidates : NULL; c && *c; c++)
    consider(found, *c);
  for (size_t k = 0; !asked && k < sizeof SYSTEM / sizeof SYSTEM[0]; k++)
    consider_system(found, &SYSTEM[k]);
}

/* The newest that starts. */
static tegula_status choose(const tegula_plugin_host *host, const tegula_plugin_options *options,
                            hdf5_library **out, tegula_error *err) {
  search found = {.host = host};
  char why[256];
  for (consider_all(&found, options); found.best || found.starved; consider_all(&found, options)) {
    *out = found.best;
    bool started = found.best && found.best->started;
    RETURN_IF(found.starved && !started, hdf5_no_reserve(host, ENOUGH_TO_LOAD, err));
    RETURN_IF(!started && !hdf5_memory_there(HDF5_RESERVE),
              hdf5_no_reserve(host, HDF5_RESERVE, err));
    if (!started) found.best->started = start(found.best, why, sizeof why);
    if (found.best->started) return TEGULA_OK;
    found.best->unusable = strdup(why); /* it may have started in part: it stays loaded */
    RETURN_IF(!found.best->unusable, hdf5_out_of_memory(found.best, err));
  }
  return none_found(&found, options ? options->library : NULL, err);
}

tegula_status hdf5_library_open(const tegula_plugin_host *host,
                                const tegula_plugin_options *options, hdf5_library **out,
                                tegula_error *err) {
  pthread_mutex_lock(&open_lock);
  tegula_status status = choose(host, options, out, err);
  pthread_mutex_unlock(&open_lock);
  return status;
}
