/* Saving: libhdf5 makes datasets and finds places, the engine writes the bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A contiguous dataset is allocated when it is made, so its place is known at once. Of a chunk
 * libhdf5 is told by H5Dwrite_chunk, whose write the driver knows by its buffer: it notes the
 * address and leaves the bytes to the engine. Nothing of ours is ever filled by libhdf5. Object
 * times are left out, so that the same array makes the same file. */
#include <stdlib.h>

#include "write/saved_file.h"

/* The largest number of `bytes` bytes; INT64_MAX for 8. */
static int64_t most_of(unsigned bytes) {
  return bytes < 8 ? (INT64_C(1) << 8 * bytes) - 1 : INT64_MAX;
}

/* Is the file marked as open for writing (II.A, file consistency flags)? What another program is
 * about to write would be lost. Also notes what its addresses and lengths can tell: libhdf5 cuts
 * those that are longer. */
static tegula_status look_at_superblock(saving *s, tegula_plugin_sink *sink, tegula_error *err) {
  const tegula_plugin_host *host = s->library->host;
  int64_t size = host->sink_size(sink);
  for (int64_t at = 0; at <= size - 16; at = at ? at * 2 : 512) {
    unsigned char bytes[16];
    FORWARD(host->sink_read(sink, at, bytes, sizeof bytes, err));
    if (!hdf5_is_superblock(bytes)) continue;
    const unsigned char *sizes = bytes + (bytes[8] >= 2 ? 9 : 13);
    s->library->saving_most = most_of(sizes[0]);
    s->longest = most_of(sizes[1]);
    if (hdf5_superblock_flags(bytes) == 0) return TEGULA_OK;
    return host->hint(err,
                      host->fail(err, TEGULA_UNSUPPORTED, s->path, at + 11,
                                 "\"%s\" is marked as open for writing: nothing is added to it",
                                 s->path),
                      "wait until its writer has closed it; if no program has it open, one was "
                      "killed: h5clear -s \"%s\" takes the mark away",
                      s->path);
  }
  return TEGULA_OK; /* libhdf5 says that it is no HDF5 file */
}

static tegula_status open_file(saving *s, tegula_plugin_sink *sink, tegula_error *err) {
  hdf5_library *library = s->library;
  bool existing = library->host->sink_size(sink) > 0;
  library->saving_most = s->longest = INT64_MAX;
  if (existing) FORWARD(look_at_superblock(s, sink, err));
  s->file = hdf5_driver_save(library, sink);
  if (s->file >= 0) return TEGULA_OK;
  return hdf5_failed(library, err, existing ? TEGULA_CORRUPT : TEGULA_IO, s->path,
                     existing ? "open \"%s\" to add to it" : "make \"%s\"", s->path);
}

tegula_status hdf5_save_open(void *plugin, tegula_plugin_sink *sink, void **out,
                             tegula_error *err) {
  hdf5_library *library = plugin;
  saving *s = calloc(1, sizeof *s);
  RETURN_IF(!s, hdf5_out_of_memory(library, err));
  *s =
      (saving){.library = library, .path = library->host->sink_path(sink), .file = -1, .plain = -1};
  tegula_status status = hdf5_enter(library, 0, err);
  if (status == TEGULA_OK) {
    status = open_file(s, sink, err);
    hdf5_unlock(library);
  }
  if (status != TEGULA_OK) {
    free(s);
    return status;
  }
  *out = s;
  return TEGULA_OK;
}

/* ---- places of chunks ---- */

static tegula_status place(saving *s, const made *dataset, const int64_t *chunk, uint32_t length,
                           uint32_t mask, uint64_t *offset, tegula_error *err) {
  static const char bytes; /* known by its address; nobody looks at it */
  hdf5_library *library = s->library;
  hsize_t first[HDF5_MAX_RANK];
  for (int k = 0; k < dataset->ndim; k++) first[k] = (hsize_t)(chunk[k] * dataset->chunk[k]);
  library->probe = (hdf5_probe){.buffer = &bytes};
  herr_t done =
      library->call.H5Dwrite_chunk(dataset->id, HDF5_DEFAULT, mask, first, length, &bytes);
  hdf5_probe seen = library->probe;
  library->probe.buffer = NULL;
  if (done < 0)
    return hdf5_failed(library, err, TEGULA_IO, s->path,
                       "find a place for a chunk of %u bytes in \"%s\"", length, s->path);
  bool good = seen.hits == 1 && seen.size == length &&
              (dataset->plain == 0 || length == dataset->plain) &&
              seen.address <= (haddr_t)INT64_MAX - length;
  if (!good)
    return library->host->fail(err, TEGULA_INTERNAL, s->path, -1,
                               "libhdf5 placed a chunk of %u bytes %d times, with %zu bytes",
                               length, seen.hits, seen.size);
  *offset = seen.address;
  return TEGULA_OK;
}

tegula_status hdf5_save_place(void *state, int64_t number, const int64_t *chunk, uint32_t length,
                              uint32_t mask, uint64_t *offset, tegula_error *err) {
  saving *s = state;
  FORWARD(hdf5_enter(s->library, 0, err));
  tegula_status status = place(s, &s->datasets[number], chunk, length, mask, offset, err);
  hdf5_unlock(s->library);
  return status;
}

/* ---- the end ---- */

/* libhdf5 cannot close a file that it cannot write: it would keep all of it. So everything is
 * written before it is closed; and when that fails, or the save is given up, the driver lets what
 * is still to be written go. */
static tegula_status close_all(saving *s, bool keep, tegula_error *err) {
  hdf5_library *library = s->library;
  const hdf5_functions *call = &library->call;
  bool good = true;
  library->discarding = !keep;
  for (int64_t i = 0; i < s->count; i++) good = call->H5Oclose(s->datasets[i].id) >= 0 && good;
  if (s->plain >= 0) call->H5Pclose(s->plain);
  good = good && (!keep || call->H5Fflush(s->file, 0 /* this file */) >= 0);
  tegula_status status =
      good ? TEGULA_OK : hdf5_failed(library, err, TEGULA_IO, s->path, "complete \"%s\"", s->path);
  library->discarding = !keep || !good;
  good = call->H5Fclose(s->file) >= 0;
  library->discarding = false;
  return status != TEGULA_OK || good
             ? status
             : hdf5_failed(library, err, TEGULA_IO, s->path, "complete \"%s\"", s->path);
}

static tegula_status end(saving *s, bool keep, tegula_error *err) {
  hdf5_library *library = s->library;
  tegula_status status = keep ? hdf5_enter(library, 0, err) : TEGULA_OK, closed;
  if (!keep || status != TEGULA_OK) hdf5_lock(library);
  closed = close_all(s, keep && status == TEGULA_OK, status == TEGULA_OK ? err : NULL);
  if (status == TEGULA_OK) status = closed;
  hdf5_unlock(library);
  free(s->datasets);
  free(s);
  return status;
}

tegula_status hdf5_save_close(void *state, tegula_error *err) { return end(state, true, err); }

void hdf5_save_abandon(void *state) { (void)end(state, false, NULL); }
