/* The lock of libhdf5, and what libhdf5 reports while it is held.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "library/libhdf5.h"

/* The first major release that can read all that is known to be written. */
enum { NEWEST_FORMATS = 2 };

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

tegula_status hdf5_enter(hdf5_library *library, size_t more, tegula_error *err) {
  bool reserved = hdf5_lock(library); /* as much as this is there then */
  size_t bytes = more > SIZE_MAX - HDF5_RESERVE ? SIZE_MAX : HDF5_RESERVE + more;
  RETURN_IF((reserved && more == 0) || hdf5_memory_there(bytes), TEGULA_OK);
  hdf5_unlock(library);
  return hdf5_no_reserve(library->host, bytes, err);
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
