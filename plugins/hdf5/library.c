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

#include "hdf5_priv.h"

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

bool hdf5_library_from(const hdf5_library *library, unsigned major, unsigned minor,
                       unsigned release) {
  const unsigned *v = library->version;
  if (v[0] != major) return v[0] > major;
  return v[1] != minor ? v[1] > minor : v[2] >= release;
}

hid_t hdf5_predefined(const hdf5_library *library, const char *symbol) {
  const hid_t *id = dlsym(library->handle, symbol);
  return id ? *id : -1;
}

/* The first major release that can read all that is known to be written. */
enum { NEWEST_FORMATS = 2 };

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

/* ---- the lock, and what libhdf5 reports ---- */

/* The innermost entry says what went wrong, those around it only who asked. */
static herr_t take_text(unsigned n, const hdf5_error_entry *entry, void *state) {
  if (n == 0 && entry->text)
    snprintf(state, sizeof((hdf5_library *)NULL)->reason, "%s", entry->text);
  return 0;
}

/* Our own reason, if there is one, else libhdf5's. */
static void take_reason(hdf5_library *library, hid_t stack) {
  library->reason_at = library->damage[0] ? library->damage_at : -1;
  if (library->damage[0])
    snprintf(library->reason, sizeof library->reason, "%s", library->damage);
  else
    library->call.H5Ewalk2(stack, 0 /* innermost first */, take_text, library->reason);
  library->damage[0] = 0;
}

/* Takes the place of printing. Done at once: the next call forgets what went wrong in this one. */
static herr_t note_reason(hid_t stack, void *state) {
  hdf5_library *library = state;
  if (!library->quiet) take_reason(library, stack);
  return 0;
}

bool hdf5_lock(hdf5_library *library) {
  pthread_mutex_lock(&library->lock);
  if (library->lock_depth++ > 0) return false;
  bool reserved = library->reserve != NULL;
  hdf5_reserve_give_back(library);
  library->failure.status = TEGULA_OK;
  library->reason[0] = library->damage[0] = 0;
  library->reason_at = -1;
  library->call.H5Eset_auto2(HDF5_DEFAULT, (void *)note_reason, library);
  return reserved;
}

void hdf5_unlock(hdf5_library *library) {
  if (--library->lock_depth == 0) {
    library->call.H5Eclear2(HDF5_DEFAULT);
    /* nobody else uses it; at the end it would print what its failures left behind */
    library->call.H5Eset_auto2(HDF5_DEFAULT, NULL, NULL);
    hdf5_reserve_take(library);
  }
  pthread_mutex_unlock(&library->lock);
}

/* "bad version number for layout message", "bad version # of encoded VDS heap information", "wrong
 * fixed array header version" */
static bool names_version(const char *text) {
  static const char *const words[] = {"bad ", "wrong ", "unknown ", "incorrect "};
  for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
    if (strstr(text, words[k])) return strstr(text, "version") != NULL;
  return false;
}

tegula_status hdf5_failed(hdf5_library *library, tegula_error *err, tegula_status status,
                          const char *path, const char *format, ...) {
  char what[512], text[sizeof library->reason];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  tegula_error failure = library->failure;
  library->failure.status = TEGULA_OK;
  if (failure.status != TEGULA_OK) {
    if (err) *err = failure;
    return failure.status;
  }
  /* iterating fails without printing */
  if (!library->reason[0] && !library->quiet) take_reason(library, HDF5_DEFAULT);
  snprintf(text, sizeof text, "%s", library->reason[0] ? library->reason : "HDF5 gives no reason");
  library->reason[0] = 0;
  for (char *c = text; *c; c++)
    if (*c == '\n' || *c == '\r') *c = ' ';
  if (strstr(text, "truncated file")) status = TEGULA_SHORT_FILE;
  bool older =
      library->version[0] < NEWEST_FORMATS && status == TEGULA_CORRUPT && names_version(text);
  if (older) status = TEGULA_UNSUPPORTED;
  status =
      library->host->fail(err, status, path, library->reason_at, "could not %s: %s", what, text);
  library->reason_at = -1;
  if (older)
    return library->host->hint(err, status,
                               "read with %s; a newer HDF5 wrote the file, or it is damaged: "
                               "install a newer one (pip install h5py) or name "
                               "it in TEGULA_HDF5_LIBRARY",
                               library->text);
  if (status == TEGULA_CORRUPT)
    library->host->hint(
        err, status,
        "read with %s; a file that a newer HDF5 wrote may need a newer one: TEGULA_HDF5_LIBRARY",
        library->text);
  return status;
}

tegula_status hdf5_out_of_memory(const hdf5_library *library, tegula_error *err) {
  return library->host->fail(err, TEGULA_OUT_OF_MEMORY, NULL, -1,
                             "not enough memory for the description of an HDF5 file");
}
