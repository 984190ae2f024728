/* The filters of tegula's codecs, and stubs for those that libhdf5 has not.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * libhdf5 makes a dataset only with filters that it has. It never runs them here, since chunks come
 * to it encoded; those that it has not are registered as stubs, which fail when they are called. */
#include "library/libhdf5.h"

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

const hdf5_stored_filter hdf5_stored_filters[HDF5_STORED_FILTERS] = {
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
  for (size_t k = 0; k < sizeof hdf5_stored_filters / sizeof hdf5_stored_filters[0]; k++)
    if (hdf5_stored_filters[k].number == number) return (int)k;
  return -1;
}

bool hdf5_filter_works(const hdf5_library *library, int number) {
  int k = index_of(number);
  return library->call.H5Zfilter_avail(number) > 0 && !(k >= 0 && library->stubs >> k & 1);
}

bool hdf5_filter_register(hdf5_library *library, int k) {
  if (library->call.H5Zfilter_avail(hdf5_stored_filters[k].number) > 0) return true;
  filter_class stub = {.version = 1,
                       .number = hdf5_stored_filters[k].number,
                       .encoder = 1,
                       .decoder = 1,
                       .name = hdf5_stored_filters[k].name,
                       .filter = no_filter};
  /* libhdf5's own filters cannot be registered */
  if (library->call.H5Zregister(&stub) < 0) return false;
  library->stubs |= UINT64_C(1) << k;
  return true;
}
