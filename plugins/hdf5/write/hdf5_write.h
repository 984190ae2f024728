/* The room of writing: datasets that are made, and what goes along with one that is copied.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * libhdf5 makes datasets and finds places for chunks; the engine writes their bytes.
 *
 * This room includes library and read: a copy looks at what it is a copy of. Begin with
 * saved_file.c and create_datasets.c, then copy_metadata.c. */
#ifndef TEGULA_HDF5_WRITE_H
#define TEGULA_HDF5_WRITE_H

#include "library/libhdf5.h"
#include "read/hdf5_read.h"

/* The type that h5py stores this dtype as; close it. -1: libhdf5 failed, or there is none and `why`
 * says so. */
hid_t hdf5_type_make(hdf5_library *library, tegula_dtype dtype, char *why, size_t size);
/* The same of the structured records that a layout describes. */
hid_t hdf5_record_make(hdf5_library *library, const tegula_plugin_layout *layout, char *why,
                       size_t size);
/* Puts the chain on a creation list; filters that libhdf5 has not are registered as stubs. */
tegula_status hdf5_save_filters(hdf5_library *library, const tegula_plugin_layout *layout,
                                hid_t plist, const char *path, tegula_error *err);
/* Writes the attributes of a dataset that was made. */
tegula_status hdf5_save_attributes(hdf5_library *library, hid_t dataset,
                                   const tegula_plugin_layout *layout, const char *path,
                                   tegula_error *err);
/* The groups above an object that is to be made, where they are not there. */
bool hdf5_make_groups(hdf5_library *library, hid_t file, const char *name);
/* scale_lists.c: what other datasets have to do with one that is replaced. `note` before its name
 * is taken away: its scales have it no longer (false: one of them, or what it says itself, cannot
 * be read or written; its users are to be freed in any case); `mend` when the new one has its
 * attributes: if that is a scale too it takes the old one's place, else axes have no scale
 * there. */
enum { HDF5_MOST_USERS = 3900 }; /* that fit in any header of an object */
typedef struct hdf5_replaced {
  uint64_t reference;
  struct hdf5_user *users; /* datasets whose scale it was; free them */
  size_t count;
} hdf5_replaced;
bool hdf5_replaced_note(hdf5_library *library, hid_t old, hdf5_replaced *out);
bool hdf5_replaced_mend(hdf5_library *library, hid_t new, hdf5_replaced *replaced);
/* overwrite_guard.c: INVALID_ARGUMENT when what is copied is read from `old`, which is to be
 * replaced. */
tegula_status hdf5_save_spares_sources(hdf5_library *library, const tegula_plugin_layout *layout,
                                       hid_t old, const char *path, tegula_error *err);
/* copy_metadata.c: how long its axes may become: chunked copies may grow as the original, all else
 * not at all; and in the creation list, whether the order of its attributes is kept, as in the
 * original. */
tegula_status hdf5_save_as_origin(hdf5_library *library, const tegula_plugin_layout *layout,
                                  hid_t list, hsize_t *limits, tegula_error *err);
/* What goes along from the dataset that this one is a copy of. */
tegula_status hdf5_save_along(hdf5_library *library, hid_t file, hid_t dataset,
                              const tegula_plugin_layout *layout, const hdf5_replaced *replaced,
                              const char *path, tegula_error *err);
tegula_status hdf5_save_open(void *plugin, tegula_plugin_sink *sink, void **saving,
                             tegula_error *err);
tegula_status hdf5_save_dataset(void *saving, const tegula_plugin_layout *layout, int64_t *number,
                                int64_t *offset, tegula_error *err);
tegula_status hdf5_save_place(void *saving, int64_t number, const int64_t *chunk, uint32_t length,
                              uint32_t mask, uint64_t *offset, tegula_error *err);
tegula_status hdf5_save_close(void *saving, tegula_error *err);
void hdf5_save_abandon(void *saving);

#endif
