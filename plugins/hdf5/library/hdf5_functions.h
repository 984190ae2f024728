/* What the plugin uses of libhdf5: types and functions whose form is the same in every release
 * from 1.10.5 to 2.x, declared here because no header of HDF5 fits all of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Functions that changed their name or form are in hdf5_library by hand (find_library.c). */
#ifndef TEGULA_HDF5_FUNCTIONS_H
#define TEGULA_HDF5_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef int64_t hid_t;
typedef uint64_t hsize_t;
typedef uint64_t haddr_t;
typedef int herr_t;

#define HDF5_UNDEFINED UINT64_MAX /* HADDR_UNDEF, H5S_UNLIMITED */
#define HDF5_MAX_RANK 32
#define HDF5_UNLIMITED UINT64_MAX /* H5S_UNLIMITED: an axis that may become as long as it likes */
#define HDF5_DEFAULT 0            /* H5P_DEFAULT, H5S_ALL */

enum { HDF5_READ_ONLY = 0, HDF5_READ_WRITE = 1, HDF5_TRUNCATE = 2, HDF5_SWMR_READ = 0x40 };
enum { HDF5_OPEN_DATASETS = 2 /* H5F_OBJ_DATASET */ };
enum {
  HDF5_ALLOCATE_EARLY = 1,
  HDF5_ALLOCATE_INCREMENTALLY = 3,
  HDF5_FILL_NEVER = 1,
  HDF5_FILTER_OPTIONAL = 1
};
enum { HDF5_ID_GROUP = 2, HDF5_ID_DATATYPE = 3, HDF5_ID_DATASET = 5 };
enum { HDF5_LINK_HARD = 0, HDF5_LINK_SOFT = 1, HDF5_LINK_EXTERNAL = 64 };
enum { HDF5_SPACE_SCALAR = 0, HDF5_SPACE_SIMPLE = 1, HDF5_SPACE_NULL = 2 };
enum {
  HDF5_SELECT_NONE = 0,
  HDF5_SELECT_POINTS = 1,
  HDF5_SELECT_HYPERSLABS = 2,
  HDF5_SELECT_ALL = 3
};
enum { HDF5_COMPACT = 0, HDF5_CONTIGUOUS = 1, HDF5_CHUNKED = 2, HDF5_VIRTUAL = 3 };
enum { HDF5_FILL_UNDEFINED = 0, HDF5_FILL_DEFAULT = 1, HDF5_FILL_USER = 2 };
enum {
  HDF5_INTEGER = 0,
  HDF5_FLOAT,
  HDF5_TIME,
  HDF5_STRING,
  HDF5_BITFIELD,
  HDF5_OPAQUE,
  HDF5_COMPOUND,
  HDF5_REFERENCE,
  HDF5_ENUM,
  HDF5_VLEN,
  HDF5_ARRAY,
  HDF5_COMPLEX
};
enum { HDF5_ORDER_TRACKED = 1 /* H5P_CRT_ORDER_TRACKED */ };
enum { HDF5_LITTLE = 0, HDF5_BIG = 1 };
#define HDF5_CHUNK_PARTIAL_UNFILTERED 0x2u

/* H5E_error2_t */
typedef struct hdf5_error_entry {
  hid_t class_id, major, minor;
  unsigned line;
  const char *function, *file, *text;
} hdf5_error_entry;

typedef herr_t (*hdf5_error_fn)(unsigned n, const hdf5_error_entry *entry, void *state);
typedef herr_t (*hdf5_link_fn)(hid_t group, const char *name, const void *info, void *state);
typedef int (*hdf5_chunk_fn)(const hsize_t *offset, unsigned mask, haddr_t address, hsize_t size,
                             void *state);

/* X(result, name, arguments) */
#define HDF5_FUNCTIONS(X)                                                                          \
  X(herr_t, H5open, (void))                                                                        \
  X(herr_t, H5free_memory, (void *))                                                               \
  X(hid_t, H5Pcreate, (hid_t))                                                                     \
  X(herr_t, H5Pclose, (hid_t))                                                                     \
  X(herr_t, H5Pset_driver, (hid_t, hid_t, const void *))                                           \
  X(herr_t, H5Pset_page_buffer_size, (hid_t, size_t, unsigned, unsigned))                          \
  X(herr_t, H5Pset_metadata_read_attempts, (hid_t, unsigned))                                      \
  X(herr_t, H5Pset_cache, (hid_t, int, size_t, size_t, double))                                    \
  X(int, H5Pget_layout, (hid_t))                                                                   \
  X(int, H5Pget_chunk, (hid_t, int, hsize_t *))                                                    \
  X(herr_t, H5Pget_chunk_opts, (hid_t, unsigned *))                                                \
  X(int, H5Pget_nfilters, (hid_t))                                                                 \
  X(int, H5Pget_filter2,                                                                           \
    (hid_t, unsigned, unsigned *, size_t *, unsigned *, size_t, char *, unsigned *))               \
  X(int, H5Pget_external_count, (hid_t))                                                           \
  X(herr_t, H5Pget_external, (hid_t, unsigned, size_t, char *, int64_t *, hsize_t *))              \
  X(herr_t, H5Pfill_value_defined, (hid_t, int *))                                                 \
  X(herr_t, H5Pget_fill_value, (hid_t, hid_t, void *))                                             \
  X(herr_t, H5Pget_virtual_count, (hid_t, size_t *))                                               \
  X(hid_t, H5Pget_virtual_vspace, (hid_t, size_t))                                                 \
  X(hid_t, H5Pget_virtual_srcspace, (hid_t, size_t))                                               \
  X(ptrdiff_t, H5Pget_virtual_filename, (hid_t, size_t, char *, size_t))                           \
  X(ptrdiff_t, H5Pget_virtual_dsetname, (hid_t, size_t, char *, size_t))                           \
  X(int, H5Zfilter_avail, (int))                                                                   \
  X(hid_t, H5FDregister, (const void *))                                                           \
  X(hid_t, H5Fopen, (const char *, unsigned, hid_t))                                               \
  X(herr_t, H5Fflush, (hid_t, int))                                                                \
  X(herr_t, H5Fclose, (hid_t))                                                                     \
  X(ssize_t, H5Fget_obj_count, (hid_t, unsigned))                                                  \
  X(int, H5Iget_type, (hid_t))                                                                     \
  X(hid_t, H5Oopen, (hid_t, const char *, hid_t))                                                  \
  X(ptrdiff_t, H5Oget_comment, (hid_t, char *, size_t))                                            \
  X(herr_t, H5Oset_comment, (hid_t, const char *))                                                 \
  X(herr_t, H5Pget_attr_creation_order, (hid_t, unsigned *))                                       \
  X(herr_t, H5Pset_attr_creation_order, (hid_t, unsigned))                                         \
  X(herr_t, H5Oclose, (hid_t))                                                                     \
  X(herr_t, H5Aiterate2, (hid_t, int, int, hsize_t *, hdf5_link_fn, void *))                       \
  X(hid_t, H5Aopen, (hid_t, const char *, hid_t))                                                  \
  X(herr_t, H5Aclose, (hid_t))                                                                     \
  X(hid_t, H5Aget_space, (hid_t))                                                                  \
  X(hid_t, H5Aget_type, (hid_t))                                                                   \
  X(herr_t, H5Aread, (hid_t, hid_t, void *))                                                       \
  X(int, H5Aexists, (hid_t, const char *))                                                         \
  X(herr_t, H5Arename, (hid_t, const char *, const char *))                                        \
  X(herr_t, H5Adelete, (hid_t, const char *))                                                      \
  X(hid_t, H5Aget_create_plist, (hid_t))                                                           \
  X(ptrdiff_t, H5Iget_name, (hid_t, char *, size_t))                                               \
  X(herr_t, H5Ocopy, (hid_t, const char *, hid_t, const char *, hid_t, hid_t))                     \
  X(herr_t, H5Rcreate, (void *, hid_t, const char *, int, hid_t))                                  \
  X(hid_t, H5Rdereference2, (hid_t, hid_t, int, const void *))                                     \
  X(herr_t, H5Dvlen_reclaim, (hid_t, hid_t, hid_t, void *))                                        \
  X(int64_t, H5Sget_simple_extent_npoints, (hid_t))                                                \
  X(int, H5Tdetect_class, (hid_t, int))                                                            \
  X(hid_t, H5Tvlen_create, (hid_t))                                                                \
  X(int, H5Tget_strpad, (hid_t))                                                                   \
  X(int, H5Lexists, (hid_t, const char *, hid_t))                                                  \
  X(herr_t, H5Lget_val, (hid_t, const char *, void *, size_t, hid_t))                              \
  X(herr_t, H5Lunpack_elink_val, (const void *, size_t, unsigned *, const char **, const char **)) \
  X(hid_t, H5Dget_space, (hid_t))                                                                  \
  X(hid_t, H5Dget_type, (hid_t))                                                                   \
  X(hid_t, H5Dget_create_plist, (hid_t))                                                           \
  X(haddr_t, H5Dget_offset, (hid_t))                                                               \
  X(hsize_t, H5Dget_storage_size, (hid_t))                                                         \
  X(herr_t, H5Drefresh, (hid_t))                                                                   \
  X(herr_t, H5Dget_chunk_index_type, (hid_t, int *))                                               \
  X(herr_t, H5Dget_num_chunks, (hid_t, hid_t, hsize_t *))                                          \
  X(herr_t, H5Dget_chunk_info,                                                                     \
    (hid_t, hid_t, hsize_t, hsize_t *, unsigned *, haddr_t *, hsize_t *))                          \
  X(herr_t, H5Dread, (hid_t, hid_t, hid_t, hid_t, hid_t, void *))                                  \
  X(hid_t, H5Screate_simple, (int, const hsize_t *, const hsize_t *))                              \
  X(herr_t, H5Sclose, (hid_t))                                                                     \
  X(int, H5Sget_simple_extent_type, (hid_t))                                                       \
  X(int, H5Sget_simple_extent_ndims, (hid_t))                                                      \
  X(int, H5Sget_simple_extent_dims, (hid_t, hsize_t *, hsize_t *))                                 \
  X(herr_t, H5Sselect_hyperslab,                                                                   \
    (hid_t, int, const hsize_t *, const hsize_t *, const hsize_t *, const hsize_t *))              \
  X(int, H5Sget_select_type, (hid_t))                                                              \
  X(int, H5Sis_regular_hyperslab, (hid_t))                                                         \
  X(herr_t, H5Sget_regular_hyperslab, (hid_t, hsize_t *, hsize_t *, hsize_t *, hsize_t *))         \
  X(int64_t, H5Sget_select_hyper_nblocks, (hid_t))                                                 \
  X(herr_t, H5Sget_select_hyper_blocklist, (hid_t, hsize_t, hsize_t, hsize_t *))                   \
  X(int, H5Tget_class, (hid_t))                                                                    \
  X(size_t, H5Tget_size, (hid_t))                                                                  \
  X(int, H5Tget_order, (hid_t))                                                                    \
  X(herr_t, H5Tset_order, (hid_t, int))                                                            \
  X(size_t, H5Tget_precision, (hid_t))                                                             \
  X(int, H5Tget_offset, (hid_t))                                                                   \
  X(int, H5Tget_sign, (hid_t))                                                                     \
  X(herr_t, H5Tget_fields, (hid_t, size_t *, size_t *, size_t *, size_t *, size_t *))              \
  X(size_t, H5Tget_ebias, (hid_t))                                                                 \
  X(int, H5Tget_norm, (hid_t))                                                                     \
  X(hid_t, H5Tget_super, (hid_t))                                                                  \
  X(int, H5Tget_nmembers, (hid_t))                                                                 \
  X(char *, H5Tget_member_name, (hid_t, unsigned))                                                 \
  X(herr_t, H5Tget_member_value, (hid_t, unsigned, void *))                                        \
  X(size_t, H5Tget_member_offset, (hid_t, unsigned))                                               \
  X(hid_t, H5Tget_member_type, (hid_t, unsigned))                                                  \
  X(hid_t, H5Tget_native_type, (hid_t, int))                                                       \
  X(int, H5Tget_array_ndims, (hid_t))                                                              \
  X(int, H5Tget_array_dims2, (hid_t, hsize_t *))                                                   \
  X(hid_t, H5Tarray_create2, (hid_t, unsigned, const hsize_t *))                                   \
  X(int, H5Tis_variable_str, (hid_t))                                                              \
  X(hid_t, H5Tcreate, (int, size_t))                                                               \
  X(herr_t, H5Tinsert, (hid_t, const char *, size_t, hid_t))                                       \
  X(herr_t, H5Tconvert, (hid_t, hid_t, size_t, void *, void *, hid_t))                             \
  X(int, H5Tequal, (hid_t, hid_t))                                                                 \
  X(hid_t, H5Tcopy, (hid_t))                                                                       \
  X(herr_t, H5Tclose, (hid_t))                                                                     \
  X(herr_t, H5Tset_size, (hid_t, size_t))                                                          \
  X(herr_t, H5Tset_fields, (hid_t, size_t, size_t, size_t, size_t, size_t))                        \
  X(herr_t, H5Tset_ebias, (hid_t, size_t))                                                         \
  X(herr_t, H5Tset_strpad, (hid_t, int))                                                           \
  X(char *, H5Tget_tag, (hid_t))                                                                   \
  X(herr_t, H5Tset_tag, (hid_t, const char *))                                                     \
  X(hid_t, H5Tenum_create, (hid_t))                                                                \
  X(herr_t, H5Tenum_insert, (hid_t, const char *, const void *))                                   \
  X(hid_t, H5Fcreate, (const char *, unsigned, hid_t, hid_t))                                      \
  X(hid_t, H5Screate, (int))                                                                       \
  X(hid_t, H5Dcreate2, (hid_t, const char *, hid_t, hid_t, hid_t, hid_t, hid_t))                   \
  X(herr_t, H5Dwrite_chunk, (hid_t, hid_t, uint32_t, const hsize_t *, size_t, const void *))       \
  X(herr_t, H5Ldelete, (hid_t, const char *, hid_t))                                               \
  X(herr_t, H5Pset_alignment, (hid_t, hsize_t, hsize_t))                                           \
  X(herr_t, H5Pset_chunk, (hid_t, int, const hsize_t *))                                           \
  X(herr_t, H5Pset_layout, (hid_t, int))                                                           \
  X(herr_t, H5Pset_filter, (hid_t, int, unsigned, size_t, const unsigned *))                       \
  X(herr_t, H5Pset_virtual, (hid_t, hid_t, const char *, const char *, hid_t))                     \
  X(herr_t, H5Pset_fill_value, (hid_t, hid_t, const void *))                                       \
  X(hid_t, H5Acreate2, (hid_t, const char *, hid_t, hid_t, hid_t, hid_t))                          \
  X(herr_t, H5Awrite, (hid_t, hid_t, const void *))                                                \
  X(herr_t, H5Tset_cset, (hid_t, int))                                                             \
  X(herr_t, H5Pset_fill_time, (hid_t, int))                                                        \
  X(herr_t, H5Pset_alloc_time, (hid_t, int))                                                       \
  X(herr_t, H5Pset_obj_track_times, (hid_t, bool))                                                 \
  X(hid_t, H5Fget_create_plist, (hid_t))                                                           \
  X(herr_t, H5Pget_sizes, (hid_t, size_t *, size_t *))                                             \
  X(hid_t, H5Gcreate2, (hid_t, const char *, hid_t, hid_t, hid_t))                                 \
  X(herr_t, H5Zregister, (const void *))                                                           \
  X(herr_t, H5Eset_auto2, (hid_t, void *, void *))                                                 \
  X(herr_t, H5Ewalk2, (hid_t, int, hdf5_error_fn, void *))                                         \
  X(herr_t, H5Eclear2, (hid_t))

typedef struct hdf5_functions {
#define HDF5_MEMBER(result, name, arguments) result(*name) arguments;
  HDF5_FUNCTIONS(HDF5_MEMBER)
#undef HDF5_MEMBER
  /* the same under several names */
  /* H5Dread_chunk, H5Dread_chunk1 */
  herr_t (*read_chunk)(hid_t, hid_t, const hsize_t *, uint32_t *, void *);
  /* H5Lget_info2, H5Lget_info */
  herr_t (*link_info)(hid_t, const char *, void *, hid_t);
  /* H5Literate2, H5Literate */
  herr_t (*iterate)(hid_t, int, int, hsize_t *, hdf5_link_fn, void *);
  /* H5Oget_info3, H5Oget_info2: the beginning is the same */
  herr_t (*object_info)(hid_t, void *, unsigned);
  /* not in every release */
  herr_t (*chunk_iter)(hid_t, hid_t, hdf5_chunk_fn, void *); /* only where it is to be trusted */
  herr_t (*set_file_locking)(hid_t, bool, bool);
  herr_t (*dont_atexit)(void);
  herr_t (*version)(unsigned *, unsigned *, unsigned *);
  hid_t file_access_class; /* H5P_FILE_ACCESS */
  hid_t dataset_access_class;
  hid_t dataset_create_class;
  hid_t file_create_class;
  hid_t group_create_class;
} hdf5_functions;

#endif
