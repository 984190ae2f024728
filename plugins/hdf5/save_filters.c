/* Filter pipelines of datasets that are made.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * libhdf5 makes a dataset only with filters that it has. It never runs them here, since chunks come
 * to it encoded; those that it has not are registered as stubs, which fail when they are called. */
#include <string.h>

#include "hdf5_priv.h"

enum { MOST_VALUES = 8 };

/* H5Z_class2_t */
typedef struct filter_class {
  int version, number;
  unsigned encoder, decoder;
  const char *name;
  void *can_apply, *set_local;
  size_t (*filter)(unsigned, size_t, const unsigned *, size_t, size_t *, void **);
} filter_class;

static size_t no_filter(unsigned flags, size_t count, const unsigned *values, size_t bytes,
                        size_t *room, void **buffer) {
  (void)flags, (void)count, (void)values, (void)bytes, (void)room, (void)buffer;
  return 0;
}

/* How one of tegula's codecs stands in a file. */
typedef struct stored_filter {
  const char *codec;
  int number;
  bool optional; /* chunks that it makes no smaller are stored without it */
  const char *name;
} stored_filter;

static const stored_filter STORED[] = {
    {"deflate", 1, true, "deflate"},
    {"shuffle", 2, true, "shuffle"},
    {"fletcher32", 3, false, "fletcher32"},
    {"szip", 4, true, "szip"},
    {"lzf", 32000, true, "lzf"},
    {"blosc", 32001, true, "blosc"},
    {"lz4", 32004, true, "lz4"},
    {"zstd", 32015, true, "zstd"},
    {"blosc2", 32026, true, "blosc2"},
    {"bitshuffle", 32008, true, "bitshuffle"},
};

static int index_of(int number) {
  for (size_t k = 0; k < sizeof STORED / sizeof STORED[0]; k++)
    if (STORED[k].number == number) return (int)k;
  return -1;
}

bool hdf5_filter_works(const hdf5_library *library, int number) {
  int k = index_of(number);
  return library->call.H5Zfilter_avail(number) > 0 && !(k >= 0 && library->stubs >> k & 1);
}

static bool make_known(hdf5_library *library, int k) {
  if (library->call.H5Zfilter_avail(STORED[k].number) > 0) return true;
  filter_class stub = {.version = 1,
                       .number = STORED[k].number,
                       .encoder = 1,
                       .decoder = 1,
                       .name = STORED[k].name,
                       .filter = no_filter};
  /* libhdf5's own filters cannot be registered */
  if (library->call.H5Zregister(&stub) < 0) return false;
  library->stubs |= UINT64_C(1) << k;
  return true;
}

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
  int k = 0, most = (int)(sizeof STORED / sizeof STORED[0]);
  while (k < most && strcmp(STORED[k].codec, filter->codec) != 0) k++;
  if (k == most)
    return host->fail(err, TEGULA_UNSUPPORTED, path, -1,
                      "cannot save with %s: HDF5 has no filter of that name", filter->codec);
  if (!make_known(library, k))
    return host->hint(err,
                      host->fail(err, TEGULA_UNSUPPORTED, path, -1,
                                 "cannot save with %s: %s was built without it", filter->codec,
                                 library->text),
                      "name another libhdf5 (TEGULA_HDF5_LIBRARY), or another codec");
  size_t count = values_of(filter, bytes, values);
  if (library->call.H5Pset_filter(list, STORED[k].number,
                                  STORED[k].optional ? HDF5_FILTER_OPTIONAL : 0, count,
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
