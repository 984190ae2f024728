/* Files that a driver opens besides the one it describes: through the handle cache, so that their
 * number counts. Pinned while they are read only: a virtual dataset may keep more files for its
 * readers than can be open at once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "discover/discover.h"

/* What the store works with. */
typedef struct store_state {
  tegula__handles *handles;
  tegula__folders *folders;
  tegula__io_counts *counts;
} store_state;

typedef struct store_file {
  tegula__file file;
  tegula__file_set *set;
  tegula__io_counts *counts; /* of the operation; its own once it is detached */
  tegula__io_counts own;
} store_file;

static void free_file(store_file *file) {
  tegula__file_set_destroy(file->set);
  free(file->file.path);
  free(file);
}

/* What cannot be opened is noted too: a missing source is described as lost. */
static tegula_status acquire_first(const store_state *state, store_file *file, tegula_error *err) {
  int fd;
  tegula_error error;
  tegula__file_set_enter(file->set, state->folders);
  tegula_status status = tegula__file_set_acquire(file->set, 0, state->counts, &fd, &error);
  if (status == TEGULA_OK) {
    tegula__file_set_release(file->set, 0);
    return tegula__folders_note(state->folders, file->file.path, &file->file.stamp, 0, err);
  }
  if (error.os_errno != 0)
    FORWARD(tegula__folders_note(state->folders, file->file.path, NULL, error.os_errno, err));
  if (err != NULL) *err = error;
  return status;
}

static tegula_status open_file(const tegula__store *store, const char *path, tegula__stamp *stamp,
                               void **handle, tegula_error *err) {
  const store_state *state = store->state;
  store_file *file = calloc(1, sizeof *file);
  if (file == NULL || (file->file.path = strdup(path)) == NULL) {
    free(file);
    return tegula__out_of_memory(err, (int64_t)sizeof *file);
  }
  tegula_status status =
      tegula__file_set_create(state->handles, &file->file, 1, false, &file->set, err);
  if (status == TEGULA_OK) status = acquire_first(state, file, err);
  if (status != TEGULA_OK) {
    free_file(file);
    return status;
  }
  file->counts = state->counts;
  *stamp = file->file.stamp;
  *handle = file;
  return TEGULA_OK;
}

static tegula_status read_file(void *handle, int64_t offset, void *out, size_t size,
                               tegula_error *err) {
  store_file *file = handle;
  int fd;
  FORWARD(tegula__file_set_acquire(file->set, 0, file->counts, &fd, err));
  tegula_status status = tegula__io_read(fd, file->file.path, offset, out, size, file->counts, err);
  tegula__file_set_release(file->set, 0);
  return status;
}

static tegula_status check_file(void *handle, tegula_error *err) {
  store_file *file = handle;
  int fd;
  FORWARD(tegula__file_set_acquire(file->set, 0, file->counts, &fd, err));
  tegula_status status = tegula__file_set_finish(file->set, 0, fd, false, file->counts, err);
  tegula__file_set_release(file->set, 0);
  return status;
}

static bool is_locked(void *handle) {
  store_file *file = handle;
  int fd;
  /* the next read says why */
  if (tegula__file_set_acquire(file->set, 0, file->counts, &fd, NULL) != TEGULA_OK) return false;
  bool locked = tegula__io_locked(fd);
  tegula__file_set_release(file->set, 0);
  return locked;
}

static void detach_file(void *handle) {
  store_file *file = handle;
  file->counts = &file->own;
  tegula__file_set_enter(file->set, NULL);
}

static void close_file(void *handle) { free_file(handle); }

tegula_status tegula__store_create(tegula__handles *handles, tegula__folders *folders,
                                   tegula__io_counts *counts, tegula__store *out,
                                   tegula_error *err) {
  store_state *state = malloc(sizeof *state);
  if (state == NULL) return tegula__out_of_memory(err, sizeof *state);
  *state = (store_state){handles, folders, counts};
  *out = (tegula__store){.open = open_file,
                         .read = read_file,
                         .check = check_file,
                         .detach = detach_file,
                         .close = close_file,
                         .locked = is_locked,
                         .state = state};
  return TEGULA_OK;
}

void tegula__store_free(tegula__store *store) {
  free(store->state);
  store->state = NULL;
}
