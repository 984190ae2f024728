/* Files as plugins see them: opened and read while they describe, or written to by a save.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "plugin/plugin_priv.h"

static tegula_status no_store(const char *path, tegula_error *err) {
  return tegula__fail(err, TEGULA_UNSUPPORTED, path, -1, "\"%s\" cannot be opened from here", path);
}

/* Of a file that is left without a handle. */
static tegula_status no_handle(const tegula_plugin_file *file, tegula_error *err) {
  if (!file->changed) return no_store(file->path, err);
  return tegula__fail(err, TEGULA_CHANGED, file->path, -1, "\"%s\" changed while it was described",
                      file->path);
}

static tegula_status open_in_store(const tegula__source *source, tegula_plugin_file *file,
                                   tegula_error *err) {
  if (source->store == NULL) return no_store(file->path, err);
  file->store = *source->store;
  return source->store->open(source->store, file->path, &file->stamp, &file->handle, err);
}

static void free_file(tegula_plugin_file *file) {
  free(file->path);
  free(file);
}

tegula_status tegula__plugin_file_open(tegula_plugin_builder *builder, const char *path,
                                       tegula_plugin_file **out, tegula_error *err) {
  const tegula__source *source = builder->source;
  if (source->stamp == NULL)
    return tegula__fail(err, TEGULA_UNSUPPORTED, path, -1, "\"%s\" is not opened as a file",
                        source->path);
  tegula_plugin_file *file = calloc(1, sizeof *file);
  if (file == NULL || (file->path = strdup(path)) == NULL) {
    free(file);
    return tegula__out_of_memory(err, (int64_t)sizeof *file);
  }
  if (!builder->late && strcmp(path, source->path) == 0) {
    file->stamp = *source->stamp;
  } else {
    tegula_status status = open_in_store(source, file, err);
    if (status != TEGULA_OK) {
      free_file(file);
      return status;
    }
  }
  file->builder = builder;
  file->next = builder->open;
  if (file->next != NULL) file->next->last = file;
  builder->open = file;
  *out = file;
  return TEGULA_OK;
}

void tegula__plugin_file_close(tegula_plugin_file *file) {
  if (file == NULL) return;
  if (file->next != NULL) file->next->last = file->last;
  if (file->last != NULL) file->last->next = file->next;
  if (file->builder != NULL && file->builder->open == file) file->builder->open = file->next;
  if (file->handle != NULL) file->store.close(file->handle);
  free_file(file);
}

tegula_status tegula__plugin_file_read(tegula_plugin_file *file, int64_t offset, void *out,
                                       size_t size, tegula_error *err) {
  int64_t end;
  if (size > INT64_MAX || !tegula__add(offset, (int64_t)size, &end) || end > file->stamp.size)
    return tegula__fail(err, TEGULA_SHORT_FILE, file->path, offset,
                        "\"%s\" is too short: expected %zu bytes at offset %lld, found %lld",
                        file->path, size, (long long)offset,
                        (long long)tegula__max(0, file->stamp.size - offset));
  if (file->handle != NULL) return file->store.read(file->handle, offset, out, size, err);
  if (file->builder == NULL) return no_handle(file, err);
  return tegula__source_read(file->builder->source, offset, out, size, err);
}

tegula_status tegula__plugin_file_check(tegula_plugin_file *file, tegula_error *err) {
  if (file->handle != NULL) return file->store.check(file->handle, err);
  /* whoever describes looks after the described file */
  return file->builder != NULL ? TEGULA_OK : no_handle(file, err);
}

bool tegula__plugin_file_locked(const tegula_plugin_file *file) {
  if (file->builder == NULL || file->builder->locked) return false;
  const tegula__source *source = file->builder->source;
  if (file->handle != NULL) return file->store.locked != NULL && file->store.locked(file->handle);
  return source->locked != NULL && source->locked(source);
}

/* The description is done: what the plugin keeps open (for its readers) gets handles of its own.
 * The file that was described must be the same when it is opened again; if it is not, reads
 * fail. */
void tegula__plugin_detach(tegula_plugin_builder *builder) {
  for (tegula_plugin_file *file = builder->open, *next; file != NULL; file = next) {
    tegula__stamp stamp = file->stamp;
    next = file->next;
    if (file->handle == NULL && open_in_store(builder->source, file, NULL) == TEGULA_OK &&
        memcmp(&stamp, &file->stamp, sizeof stamp) != 0) {
      file->store.close(file->handle);
      file->handle = NULL;
      file->changed = true;
    }
    if (file->handle != NULL) file->store.detach(file->handle);
    file->builder = NULL;
    file->next = file->last = NULL;
  }
  builder->open = NULL;
}

int64_t tegula__plugin_file_size(const tegula_plugin_file *file) { return file->stamp.size; }
const char *tegula__plugin_file_path(const tegula_plugin_file *file) { return file->path; }

/* ---- files that are saved ---- */

int64_t tegula__plugin_sink_size(const tegula_plugin_sink *sink) { return sink->size(sink); }

const char *tegula__plugin_sink_path(const tegula_plugin_sink *sink) { return sink->path; }

tegula_status tegula__plugin_sink_read(tegula_plugin_sink *sink, int64_t offset, void *out,
                                       size_t size, tegula_error *err) {
  return sink->read(sink, offset, out, size, err);
}

tegula_status tegula__plugin_sink_write(tegula_plugin_sink *sink, int64_t offset, const void *data,
                                        size_t size, tegula_error *err) {
  return sink->write(sink, offset, data, size, err);
}

tegula_status tegula__plugin_sink_resize(tegula_plugin_sink *sink, int64_t size,
                                         tegula_error *err) {
  return sink->resize(sink, size, err);
}
