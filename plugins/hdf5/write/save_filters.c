/* Filter pipelines of datasets that are made.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "write/hdf5_write.h"

enum { MOST_VALUES = 8 };

/* The parameters as the filters' own encoders note them; returns their number. `bytes`: of a
 * chunk. */
static size_t values_of(const tegula_plugin_filter *filter, uint64_t bytes,
                        unsigned values[MOST_VALUES]) {
  const uint32_t *p = filter->params;
  /* item size, level, shuffle, compressor */
  if (strcmp(filter->codec, "blosc") == 0 || strcmp(filter->codec, "blosc2") == 0) {
    const unsigned blosc[] = {2, 2, p[0], (unsigned)bytes, p[1], p[2], p[3]};
    memcpy(values, blosc, sizeof blosc);
    return sizeof blosc / sizeof blosc[0];
  }
  if (strcmp(filter->codec, "bitshuffle") == 0) { /* item size, block, compressor, level */
    const unsigned bitshuffle[] = {0, 4, p[0], p[1], p[2], p[3]};
    memcpy(values, bitshuffle, sizeof bitshuffle);
    return p[2] == 3 ? 6 : 5;
  }
  if (strcmp(filter->codec, "lzf") == 0) {
    const unsigned lzf[] = {4, 0x0105, (unsigned)bytes};
    memcpy(values, lzf, sizeof lzf);
    return sizeof lzf / sizeof lzf[0];
  }
  for (int32_t k = 0; k < filter->param_count; k++) values[k] = p[k];
  return (size_t)filter->param_count;
}

static tegula_status add_filter(hdf5_library *library, const tegula_plugin_filter *filter,
                                uint64_t bytes, hid_t list, const char *path, tegula_error *err) {
  const tegula_plugin_host *host = library->host;
  unsigned values[MOST_VALUES] = {0};
  int k = 0, most = (int)(sizeof hdf5_stored_filters / sizeof hdf5_stored_filters[0]);
  while (k < most && strcmp(hdf5_stored_filters[k].codec, filter->codec) != 0) k++;
  if (k == most)
    return host->fail(err, TEGULA_UNSUPPORTED, path, -1,
                      "cannot save with %s: HDF5 has no filter of that name", filter->codec);
  if (!hdf5_filter_register(library, k))
    return host->hint(err,
                      host->fail(err, TEGULA_UNSUPPORTED, path, -1,
                                 "cannot save with %s: %s was built without it", filter->codec,
                                 library->text),
                      "name another libhdf5 (TEGULA_HDF5_LIBRARY), or another codec");
  size_t count = values_of(filter, bytes, values);
  if (library->call.H5Pset_filter(list, hdf5_stored_filters[k].number,
                                  hdf5_stored_filters[k].optional ? HDF5_FILTER_OPTIONAL : 0, count,
                                  values) >= 0)
    return TEGULA_OK;
  return hdf5_failed(library, err, TEGULA_INTERNAL, path, "save with %s", filter->codec);
}

tegula_status hdf5_save_filters(hdf5_library *library, const tegula_plugin_layout *layout,
                                hid_t list, const char *path, tegula_error *err) {
  uint64_t bytes = layout->dtype.item_size; /* the host has seen that chunks are not too large */
  for (int k = 0; k < layout->ndim && layout->chunk; k++) bytes *= (uint64_t)layout->chunk[k];
  for (int32_t i = 0; i < layout->filter_count; i++)
    FORWARD(add_filter(library, &layout->filters[i], bytes, list, path, err));
  return TEGULA_OK;
}
