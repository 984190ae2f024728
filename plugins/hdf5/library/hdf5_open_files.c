/* Open files of one call: each once however often it is named, closed as soon as nobody needs it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "library/libhdf5.h"

enum { FLAG_WRITE = 1, FLAG_SWMR = 4 };

bool hdf5_is_superblock(const unsigned char *bytes) {
  static const unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  return memcmp(bytes, signature, sizeof signature) == 0;
}

unsigned hdf5_superblock_flags(const unsigned char *bytes) { return bytes[8] >= 3 ? bytes[11] : 0; }

/* `first` is the file's first block: one request serves this and most of what libhdf5 reads. */
static tegula_status find_superblock(hdf5_call *call, tegula_plugin_file *host_file,
                                     const char *path, char *first, hdf5_superblock *out,
                                     tegula_error *err) {
  const tegula_plugin_host *host = call->library->host;
  enum { NEEDED = 15 };
  int64_t size = host->file_size(host_file), there = size < HDF5_BLOCK ? size : HDF5_BLOCK;
  if (there > 0) FORWARD(host->file_read(host_file, 0, first, (size_t)there, err));
  for (int64_t at = 0; at <= size - NEEDED; at = at ? at * 2 : 512) {
    unsigned char bytes[NEEDED];
    if (at <= there - NEEDED)
      memcpy(bytes, first + at, sizeof bytes);
    else
      FORWARD(host->file_read(host_file, at, bytes, sizeof bytes, err));
    if (!hdf5_is_superblock(bytes)) continue;
    *out = (hdf5_superblock){.base = at,
                             .flags = hdf5_superblock_flags(bytes),
                             .width = bytes[bytes[8] >= 2 ? 10 : 14],
                             .address_width = bytes[bytes[8] >= 2 ? 9 : 13]};
    return TEGULA_OK;
  }
  return host->fail(
      err, TEGULA_CORRUPT, path, -1,
      "\"%s\" is not an HDF5 file: no HDF5 signature at 0, 512, 1024, ... in its %lld bytes", path,
      (long long)size);
}

static tegula_status refuse_marked(const hdf5_call *call, const char *path, int64_t offset,
                                   tegula_error *err) {
  const tegula_plugin_host *host = call->library->host;
  return host->hint(
      err,
      host->fail(err, TEGULA_UNSUPPORTED, path, offset,
                 "\"%s\" is marked as open for writing: its content may be incomplete", path),
      "wait until its writer has closed it; if no program has it open, one was killed: h5clear -s "
      "\"%s\" takes the mark away",
      path);
}

/* A writer that makes the earliest formats leaves no mark, but it holds a lock until it closes the
 * file or goes on as SWMR. */
static tegula_status refuse_locked(const hdf5_call *call, const char *path, tegula_error *err) {
  const tegula_plugin_host *host = call->library->host;
  return host->hint(err,
                    host->fail(err, TEGULA_UNSUPPORTED, path, -1,
                               "\"%s\" is locked by another program, as HDF5 does for writing: its "
                               "content may be incomplete",
                               path),
                    "wait until its writer has closed it, or take it as it is: --allow-locked "
                    "(TEGULA_OPEN_LOCKED)");
}

static tegula_status open_id(hdf5_call *call, tegula_plugin_file *host_file, hdf5_file *file,
                             tegula_error *err) {
  hdf5_library *library = call->library;
  hdf5_superblock super = {0};
  char *first = malloc(HDF5_BLOCK);
  tegula_status status = first ? find_superblock(call, host_file, file->path, first, &super, err)
                               : hdf5_out_of_memory(library, err);
  bool swmr = (super.flags & FLAG_SWMR) != 0;
  if (status == TEGULA_OK && (super.flags & FLAG_WRITE) && !swmr)
    status = refuse_marked(call, file->path, super.base + 11, err);
  /* what it is to begin with may not be written yet */
  bool writing = (status == TEGULA_OK && !swmr) || status == TEGULA_CORRUPT;
  if (writing && library->host->file_locked(host_file))
    status = refuse_locked(call, file->path, err);
  if (status != TEGULA_OK) {
    library->host->file_close(host_file);
    free(first);
    return status;
  }
  file->base = super.base;
  file->address_width = super.address_width;
  file->length_width = super.width;
  file->id = hdf5_driver_open(library, host_file, first, &super, swmr); /* takes both */
  return file->id >= 0
             ? TEGULA_OK
             : hdf5_failed(library, err, TEGULA_CORRUPT, file->path, "open \"%s\"", file->path);
}

static void free_file(hdf5_file *file) {
  for (hdf5_known_array *known = file->arrays, *next; known; known = next) {
    next = known->next;
    free(known);
  }
  free(file->path);
  free(file->canonical);
  free(file);
}

tegula_status hdf5_file_open(hdf5_call *call, const char *path, hdf5_file **out,
                             tegula_error *err) {
  hdf5_library *library = call->library;
  char *canonical = realpath(path, NULL);
  for (hdf5_file *file = canonical ? call->files : NULL; file; file = file->next) {
    if (strcmp(file->canonical, canonical) != 0) continue;
    free(canonical);
    file->references++;
    *out = file;
    return TEGULA_OK;
  }
  hdf5_file *file = calloc(1, sizeof *file);
  if (!file) {
    free(canonical);
    return hdf5_out_of_memory(library, err);
  }
  *file = (hdf5_file){.library = library,
                      .references = 1,
                      .path = strdup(path),
                      .canonical = canonical ? canonical : strdup(path),
                      .id = -1,
                      .number = -1};
  tegula_status status =
      file->path && file->canonical ? TEGULA_OK : hdf5_out_of_memory(library, err);
  tegula_plugin_file *host_file = NULL;
  if (status == TEGULA_OK) status = library->host->file_open(call->builder, path, &host_file, err);
  if (status == TEGULA_OK) {
    file->host = host_file;
    file->size = library->host->file_size(host_file);
    status = open_id(call, host_file, file, err);
  }
  if (status != TEGULA_OK) {
    free_file(file);
    return status;
  }
  file->next = call->files;
  call->files = file;
  *out = file;
  return TEGULA_OK;
}

void hdf5_file_release(hdf5_call *call, hdf5_file *file) {
  if (!file || --file->references > 0) return;
  for (hdf5_file **at = call ? &call->files : NULL; at && *at; at = &(*at)->next)
    if (*at == file) {
      *at = file->next;
      break;
    }
  file->library->call.H5Fclose(file->id); /* closes the host's file too */
  free_file(file);
}

tegula_status hdf5_file_number(hdf5_call *call, hdf5_file *file, int64_t *number,
                               tegula_error *err) {
  if (file->number < 0)
    FORWARD(call->library->host->add_file(call->builder, file->host, &file->number, err));
  *number = file->number;
  return TEGULA_OK;
}
