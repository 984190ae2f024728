/* The room of reading: what is in a file, and where the bytes of its datasets are.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A dataset is found by its name and opened. Preparing it finds where its bytes are; then it is
 * described to the host place by place. What only libhdf5 can decode becomes a reader.
 *
 * This room includes library. Begin with hdf5_dataset.c, prepare_dataset.c and describe_place.c;
 * vds.h begins what is about virtual datasets. */
#ifndef TEGULA_HDF5_READ_H
#define TEGULA_HDF5_READ_H

#include "library/libhdf5.h"

/* ---- names ---- */

typedef struct hdf5_found {
  hdf5_file *file; /* counted: release it */
  hid_t id;        /* a dataset */
  char *name;      /* its path in that file */
  bool circle;     /* not found: links lead round in a circle */
} hdf5_found;

/* The dataset of that name, or the only one for NULL. */
tegula_status hdf5_find(hdf5_call *call, hdf5_file *file, const char *name, hdf5_found *out,
                        tegula_error *err);
void hdf5_found_free(hdf5_call *call, hdf5_found *found);
/* `dataset` is -1 for what could not be opened: `why` says it, or is NULL where libhdf5 does. */
typedef tegula_status (*hdf5_each_fn)(void *state, hdf5_file *file, hid_t dataset, const char *name,
                                      const tegula_error *why, tegula_error *err);
/* Every dataset of the file, and with `groups` every group but the root, each once, links followed;
 * also objects and links that cannot be opened (a newer format, damage, a lock), but no links that
 * lead nowhere or round in a circle. */
tegula_status hdf5_walk(hdf5_call *call, hdf5_file *file, bool groups, hdf5_each_fn each,
                        void *state, tegula_error *err);
/* What is directly in a group, of whatever kind. INVALID_ARGUMENT: it is none. */
tegula_status hdf5_names_in(hdf5_call *call, hdf5_file *file, const char *group,
                            tegula_plugin_name_fn each, void *state, tegula_error *err);
bool hdf5_object_of(hdf5_library *library, hid_t id, hdf5_object *out);
/* Where it is, and how many links lead to it. */
bool hdf5_object_examine(hdf5_library *library, hid_t id, hdf5_object *object, unsigned *links);
/* what `each` returns when it has seen enough; hdf5_walk then returns OK */
#define HDF5_STOP TEGULA_END

/* ---- types ---- */

#define HDF5_MEMORY_TEXT 32

/* What is in records; counted, under the lock of the library. */
typedef struct hdf5_record {
  int64_t references;
  hdf5_library *library;
  char *descr;               /* numpy's description */
  char *refused;             /* a sentence about members that cannot be loaded; NULL: all can */
  hid_t readable;            /* with `refused`: the others, where they are in the file; else -1 */
  tegula_plugin_text *texts; /* those that HDF5 pads otherwise than numpy */
  int64_t text_count;
} hdf5_record;

typedef struct hdf5_type {
  tegula_dtype dtype; /* native byte order */
  char order;         /* of the stored bytes */
  /* libhdf5 must convert: the stored form is not one that numpy has */
  bool converted;
  /* with `converted`: what libhdf5 gives is in the other byte order */
  bool swapped;
  /* with `converted`: the predefined type to convert to, of a complex number that of its parts */
  char memory[HDF5_MEMORY_TEXT];
  char padding;        /* of text, as tegula_plugin_text has it; 0: by zeros */
  hdf5_record *record; /* NULL: it is none */
  hdf5_inner inner;    /* an element is an array of these */
} hdf5_type;

/* Bytes of an element; `converted`: in memory. */
static inline int64_t hdf5_type_bytes(const hdf5_type *type) {
  return (type->inner.ndim > 0 ? type->inner.count : 1) * (int64_t)type->dtype.item_size;
}

/* Which dtype an element of a dataset has, records and arrays too. False: cannot be loaded, and
 * `why` says it, as "has ...": "variable-length strings". `out->record` is to be released. */
bool hdf5_element_of(hdf5_library *library, size_t address_width, hid_t type, hdf5_type *out,
                     char *why, size_t size);
hdf5_record *hdf5_record_retain(hdf5_record *record); /* accepts NULL, as release */
void hdf5_record_release(hdf5_record *record);
/* The same of what is no record and no array. */
bool hdf5_type_of(hdf5_library *library, hid_t type, hdf5_type *out, char *why, size_t size);
/* Could the stored numbers of `from` stand in a dataset of the type `to`? Enumerations must have
 * the same names and numbers. */
bool hdf5_type_agrees(hdf5_library *library, hid_t from, hid_t to);
/* The type to ask H5Dread for, to get elements of `type`, native ones but for `swapped`; close
 * it. */
hid_t hdf5_type_memory(hdf5_library *library, hid_t stored, const hdf5_type *type);
/* The type of an element of arrays of arrays, and their lengths; of all other types a copy. Close
 * it. False: libhdf5 failed. */
bool hdf5_array_base(hdf5_library *library, hid_t type, hid_t *base, hdf5_inner *out);
hid_t hdf5_array_make(hdf5_library *library, hid_t base, const hdf5_inner *dims);
/* The predefined type of a native integer. */
void hdf5_native_integer(uint8_t kind, size_t size, char out[HDF5_MEMORY_TEXT]);
void hdf5_type_swap(tegula_dtype dtype, unsigned char *element);
void hdf5_type_swap_all(tegula_dtype dtype, void *elements, int64_t count);

/* ---- attributes ---- */

/* Those of the object `name`, a group or a dataset; for NULL of all groups and datasets. */
tegula_status hdf5_attributes(hdf5_call *call, hdf5_file *file, const char *name,
                              tegula_plugin_attribute_fn each, void *state, tegula_error *err);

/* The names of an object's attributes, in order. */
typedef struct hdf5_names {
  char **items;
  size_t count, capacity;
  bool failed;
} hdf5_names;
enum { HDF5_BY_NAME = 0, HDF5_BY_CREATION = 1 /* only where the object keeps it */ };
tegula_status hdf5_attribute_names(hdf5_library *library, const char *path, hid_t id,
                                   const char *object, int order, hdf5_names *out,
                                   tegula_error *err);
/* What is noted on an object; NULL without failure: nothing. To be freed. */
bool hdf5_comment_read(hdf5_library *library, hid_t id, char **out);
void hdf5_names_free(hdf5_names *names);

/* ---- datasets and where they are ---- */

typedef struct hdf5_filter {
  int number;
  unsigned flags;
  unsigned count;
  unsigned values[32];
  char name[64];
} hdf5_filter;

/* How elements become those of the array: libhdf5 is asked for `memory`, native numbers but for
 * `swapped`, which become `target`. */
typedef struct hdf5_conversion {
  hid_t memory;       /* 0: nobody asks libhdf5 */
  hid_t from, target; /* `memory` in native order; 0: it is that already */
  size_t item;        /* bytes of an element of `memory` */
  bool swapped;
  tegula_dtype own; /* of the elements that are to be swapped */
} hdf5_conversion;

typedef struct hdf5_dataset {
  hdf5_call *call;
  hdf5_file *file;
  const char *name;
  hid_t id, type_id, plist;
  hdf5_type type;
  int ndim;
  int64_t shape[HDF5_MAX_RANK];
  int64_t strides[HDF5_MAX_RANK]; /* C order, bytes */
  int64_t bytes;
  int layout;
  unsigned char *fill; /* native; NULL: none is defined */
  int64_t chunk[HDF5_MAX_RANK];
  int filter_count;
  hdf5_filter *filters;
  /* set by hdf5_prepare; `fill` is then an element of the array, where it is virtual or external */
  int kind;
  const struct hdf5_dataset *like; /* the one that is described: whose type the array has */
  int64_t file_number, offset;     /* dense */
  int64_t grid;                    /* chunks */
  struct hdf5_slices *slices;      /* dense, but read as plain chunks; NULL: it is not */
  struct hdf5_mapping *mappings;   /* virtual */
  int64_t mapping_count;
  /* virtual: sources were looked at, because mappings or the shape depend on them */
  bool measured;
  struct hdf5_pieces *parts;  /* virtual: all of them, from the first time that some are wanted */
  struct hdf5_sorted *sorted; /* the same by source */
  /* virtual: has mappings, parts and sorted for late parts, too; NULL: there are none */
  struct hdf5_kept *kept;
  /* of a reader, and of external bytes where they are not as the array's */
  hdf5_conversion conversion;
  bool unwritten;         /* reader: nothing was ever written */
  struct hdf5_gaps *gaps; /* reader: NULL: all of its chunks are stored */
} hdf5_dataset;

/* Which chunks are stored, of a dataset of which some are not: their slots, ascending. */
typedef struct hdf5_gaps {
  int64_t count, slot_strides[HDF5_MAX_RANK];
  uint64_t slots[];
} hdf5_gaps;

enum {
  HDF5_KIND_FILL,
  HDF5_KIND_DENSE,
  HDF5_KIND_GRID,
  HDF5_KIND_EXTERNAL,
  HDF5_KIND_READER,
  HDF5_KIND_VIRTUAL
};

/* A box of the array that is described, and where in a dataset its elements are: along axis k of
 * the dataset at start[k] + (i[axis[k]] - lo[axis[k]]), or at start[k] where axis[k] is -1. Axes of
 * the array that no axis of the dataset follows are one long in the box. */
typedef struct hdf5_place {
  int ndim;
  int64_t lo[HDF5_MAX_RANK], hi[HDF5_MAX_RANK];
  int axis[HDF5_MAX_RANK];
  int64_t start[HDF5_MAX_RANK];
} hdf5_place;

/* Fills `out` from the dataset `id`, which stays the caller's. Refuses by name what cannot be
 * loaded. */
tegula_status hdf5_dataset_open(hdf5_call *call, hdf5_file *file, hid_t id, const char *name,
                                hdf5_dataset *out, tegula_error *err);
void hdf5_dataset_close(hdf5_dataset *dataset);
/* Bytes of an element in the file. */
int64_t hdf5_stored_item(const hdf5_dataset *dataset);
/* From the type of the dataset to that of `like`; false: libhdf5 failed. */
bool hdf5_conversion_make(hdf5_dataset *dataset);
bool hdf5_conversion_copy(hdf5_library *library, const hdf5_conversion *from, hdf5_conversion *out);
void hdf5_conversion_close(hdf5_library *library, hdf5_conversion *conversion);
/* In place: there is room for the longer of both items. */
bool hdf5_conversion_apply(hdf5_library *library, const hdf5_conversion *conversion, void *elements,
                           int64_t count);
/* How many elements of the dataset the place covers along its axis k. */
int64_t hdf5_place_length(const hdf5_place *place, int k);
/* Finds out once where the bytes are; `like` is the type of the array. */
tegula_status hdf5_prepare(hdf5_dataset *dataset, const hdf5_dataset *like, tegula_error *err);
/* Tells the host about one place of a prepared dataset. */
tegula_status hdf5_emit(hdf5_dataset *dataset, const hdf5_place *place, tegula_error *err);
/* The mappings of a virtual dataset, and its shape where that depends on its sources. */
tegula_status hdf5_virtual_open(hdf5_dataset *dataset, tegula_error *err);
void hdf5_virtual_close(hdf5_dataset *dataset);
tegula_status hdf5_set_strides(hdf5_dataset *dataset, tegula_error *err);
/* False: its chunk index is so large that libhdf5 would walk it for minutes. */
bool hdf5_chunks_countable(const hdf5_dataset *dataset);
tegula_status hdf5_prepare_chunks(hdf5_dataset *dataset, tegula_error *err);
/* Finds the gaps of a chunked dataset that libhdf5 reads. */
tegula_status hdf5_find_gaps(hdf5_dataset *dataset, tegula_error *err);
/* Is given pieces of a place that are stored, and those that never were. */
typedef tegula_status (*hdf5_gap_fn)(void *state, bool stored, const hdf5_place *piece,
                                     tegula_error *err);
tegula_status hdf5_gaps_cut(const hdf5_dataset *dataset, const hdf5_place *place, hdf5_gap_fn each,
                            void *state, tegula_error *err);
tegula_status hdf5_emit_external(hdf5_dataset *dataset, const hdf5_place *place, tegula_error *err);
/* Dense bytes of a file whose elements libhdf5 converts: from `offset` on, with these strides along
 * the axes of the array. `file` is borrowed. */
typedef struct hdf5_raw {
  struct hdf5_raw_file *file;
  int64_t offset, strides[HDF5_MAX_RANK];
} hdf5_raw;
/* takes it; NULL: no memory */
struct hdf5_raw_file *hdf5_raw_open(const hdf5_dataset *dataset, tegula_plugin_file *file);
void hdf5_raw_close(struct hdf5_raw_file *file);
tegula_status hdf5_emit_raw(hdf5_dataset *dataset, const hdf5_raw *raw, const hdf5_place *place,
                            tegula_error *err);
/* tell_host.c: the host's functions of the same names, for arrays with all their axes. Vectors have
 * an entry for each axis of the dataset that is described, fill values are elements of it. */
tegula_status hdf5_tell_array(hdf5_call *call, const hdf5_dataset *dataset, tegula_error *err);
/* The dataset's vector and the axes of its elements behind it; returns how many they are. */
int hdf5_all_axes(const hdf5_dataset *dataset, const int64_t *vector, int64_t *out);
/* Tells the host how text is padded in the places that follow. Each source of a virtual dataset
 * has padding of its own. */
tegula_status hdf5_tell_texts(hdf5_call *call, const hdf5_type *type, tegula_error *err);
tegula_status hdf5_tell_dense(hdf5_call *call, int64_t file, int64_t offset,
                              const hdf5_place *place, const int64_t *strides,
                              const hdf5_type *type, tegula_error *err);
tegula_status hdf5_tell_chunked(hdf5_call *call, int64_t grid, int ndim,
                                const tegula_plugin_chunked *part, const hdf5_type *type,
                                tegula_error *err);
tegula_status hdf5_tell_fill(hdf5_call *call, const hdf5_place *place, const void *fill,
                             tegula_error *err);
tegula_status hdf5_tell_lost(hdf5_call *call, const hdf5_place *place, const void *fill,
                             tegula_status status, int32_t os_errno, const char *text,
                             const char *path, tegula_error *err);
tegula_status hdf5_tell_late(hdf5_call *call, int64_t late, const hdf5_place *place,
                             tegula_error *err);
tegula_status hdf5_tell_reader(hdf5_call *call, const hdf5_place *place, const int64_t *chunk,
                               int64_t cost, const char *why, tegula_reader_fn read, void *state,
                               tegula_release_fn release, tegula_error *err);
tegula_status hdf5_emit_virtual(hdf5_dataset *dataset, const hdf5_place *place, tegula_error *err);
tegula_status hdf5_emit_reader(hdf5_dataset *dataset, const hdf5_place *place, tegula_error *err);
/* What is read for places of a dense dataset, for each by itself; first to last: the range of bytes
 * in which they are. */
typedef struct hdf5_reads {
  int64_t places, bytes, first, last;
} hdf5_reads;

void hdf5_reads_add(hdf5_reads *reads, const hdf5_dataset *dataset, const hdf5_place *place);
/* So many places want some of a dense dataset here and there: it is described as plain chunks,
 * unless that would be too many. */
void hdf5_slice(hdf5_dataset *dataset, int64_t places);
tegula_status hdf5_emit_slices(hdf5_dataset *dataset, const hdf5_place *place, tegula_error *err);
/* One place of a grid over `shape` in chunks; its start counts in that. */
tegula_status hdf5_emit_grid(hdf5_dataset *dataset, int64_t grid, const int64_t *shape,
                             const int64_t *chunks, const hdf5_place *place, tegula_error *err);
/* The part of `outer` whose elements are in [lo, hi) of its dataset; false: none. */
bool hdf5_place_clip(const hdf5_place *outer, int dataset_ndim, const int64_t *lo,
                     const int64_t *hi, hdf5_place *out);

/* ---- filters ---- */

/* Reads the pipeline of `plist`. */
tegula_status hdf5_filters_read(hdf5_dataset *dataset, tegula_error *err);
/* How a chain is undone. */
typedef struct hdf5_chain {
  bool reader; /* by libhdf5 */
  /* filters that nobody has, by their bits in a chunk's mask: right where all chunks skipped
   * them */
  uint32_t absent;
  int count;
  tegula_plugin_filter filters[32]; /* without those that are absent */
} hdf5_chain;

/* `chain->reader` on entry: libhdf5 must do it in any case. Refused where it must and cannot. */
tegula_status hdf5_filters_map(const hdf5_dataset *dataset, hdf5_chain *chain, tegula_error *err);
/* Says that the filter is not at hand. */
tegula_status hdf5_filters_refuse(const hdf5_dataset *dataset, int index, tegula_error *err);
/* Has libhdf5 all of them? */
bool hdf5_filters_known(const hdf5_dataset *dataset);
void hdf5_filters_text(const hdf5_dataset *dataset, char *out, size_t size);
/* The name of the first filter that is none of tegula's codecs; NULL: there is none. */
const char *hdf5_filters_other(const hdf5_dataset *dataset);

/* ---- chunk indexes that are arrays ---- */

/* Slots that the header of an array says to have; 0: it is none. */
uint64_t hdf5_array_claimed(const hdf5_array_head *head, const hdf5_file *file, bool *extensible);
/* A chunk that an array says is stored. */
typedef struct hdf5_array_entry {
  uint64_t number, address, length;
  uint32_t mask;
  bool filtered; /* else the array tells no length */
} hdf5_array_entry;
typedef bool (*hdf5_array_fn)(void *state, const hdf5_array_entry *entry); /* false: enough */
typedef enum hdf5_array_result {
  HDF5_ARRAY_OK,
  HDF5_ARRAY_UNUSUAL,
  HDF5_ARRAY_STOPPED,
  HDF5_ARRAY_DAMAGED
} hdf5_array_result;
/* Visits what is stored, in as many steps. `slots`: of a fixed array. DAMAGED: `wrong` says what of
 * the block at `at`. */
hdf5_array_result hdf5_array_walk(const hdf5_array_head *head, const hdf5_file *file,
                                  uint64_t slots, hdf5_array_fn each, void *state,
                                  const char **wrong, int64_t *at);

#endif
