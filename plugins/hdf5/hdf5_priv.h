/* What the files of this plugin share.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * libhdf5 says what is in a file: names, types, where the bytes are. It moves none of them, but for
 * datasets that only it can decode. Every call into it is made under the lock of its library, with
 * its printing of errors off. */
#ifndef TEGULA_HDF5_HDF5_PRIV_H
#define TEGULA_HDF5_HDF5_PRIV_H

#include <pthread.h>
#include <tegula/tegula_plugin.h>

#include "library/hdf5_functions.h"

#define RETURN_IF(condition, value)                                                                \
  do {                                                                                             \
    if (condition) return (value);                                                                 \
  } while (0)
#define FORWARD(expression)                                                                        \
  do {                                                                                             \
    tegula_status status_ = (expression);                                                          \
    if (status_ != TEGULA_OK) return status_;                                                      \
  } while (0)
#define FORWARD_WITH(status, expression)                                                           \
  do {                                                                                             \
    (status) = (expression);                                                                       \
    if ((status) != TEGULA_OK) goto done;                                                          \
  } while (0)

#define HDF5_NATIVE_ORDER (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>')

/* ---- the library ---- */

/* The request that is being watched for (stored_chunks.c): known by its buffer, answered without
 * reading. */
typedef struct hdf5_probe {
  const void *buffer; /* NULL: none */
  int hits;
  haddr_t address;
  size_t size;
} hdf5_probe;

/* Leaves of a version 1 B-tree of chunks are told of when libhdf5 reads them (chunk_index_scan.c).
 */
typedef struct hdf5_leaves {
  hdf5_chunk_fn each; /* NULL: nobody listens */
  void *state;
  int ndim;
  size_t width; /* of addresses in the file */
} hdf5_leaves;

/* The header of a chunk index that is an array, as it was read; size 0: none was. */
typedef struct hdf5_array_head {
  unsigned char bytes[96];
  size_t size;
} hdf5_array_head;

typedef struct hdf5_library {
  struct hdf5_library *next;
  const tegula_plugin_host *host;
  void *handle;
  bool started;   /* not only asked for its version */
  char *unusable; /* why it did not start; NULL: it did, or was not tried */
  int descriptor; /* of the copy that `handle` is of; -1: none */
  char *path;
  char text[512]; /* "HDF5 1.14.6 (/usr/lib/...)" */
  unsigned version[3];
  hdf5_functions call;
  hid_t driver;
  /* memory that is given back when libhdf5 is entered; NULL: none could be had, or it is entered */
  void *reserve;
  pthread_mutex_t lock; /* recursive: the host may release a reader while it is called */
  int lock_depth;
  /* the file that the driver's `open` takes; NULL: libhdf5 opens files on its own, and may not */
  tegula_plugin_file *opening;
  char *opening_block;        /* the first bytes of that file */
  size_t opening_width;       /* of its lengths */
  tegula_plugin_sink *saving; /* the file that the driver's `open` takes to be written */
  int64_t saving_most;        /* the largest address that it can tell */
  bool discarding;            /* a save is given up: its file is closed without being written */
  /* filters that are only registered so that datasets can be made with them: a bit for each in
   * filter_stubs.c */
  uint64_t stubs;
  hdf5_probe probe;
  hdf5_leaves leaves;
  hdf5_array_head array; /* of the fixed or extensible array that was read last */
  /* what the host said when a read of the driver failed; status OK: none did */
  tegula_error failure;
  char damage[256]; /* why the driver did not give libhdf5 what it read; "": it did */
  int64_t damage_at;
  char reason[256];  /* what libhdf5 said of its last failure */
  int64_t reason_at; /* where in the file; -1: it does not say */
  bool data;         /* data is read, which may look like anything */
  bool quiet;        /* failures are expected: not noted */
} hdf5_library;

/* Finds and opens libhdf5. Libraries are kept until the process ends: they cannot be unloaded. */
tegula_status hdf5_library_open(const tegula_plugin_host *host,
                                const tegula_plugin_options *options, hdf5_library **out,
                                tegula_error *err);
/* For what must not fail, such as closing; all else enters. True: the reserve was held, and is free
 * memory now. */
bool hdf5_lock(hdf5_library *library);
/* Locks it where the reserve and `more` bytes can be had, else OUT_OF_MEMORY. */
tegula_status hdf5_enter(hdf5_library *library, size_t more, tegula_error *err);
void hdf5_unlock(hdf5_library *library);
/* Is it this release or a newer one? */
bool hdf5_library_from(const hdf5_library *library, unsigned major, unsigned minor,
                       unsigned release);
/* Turns what libhdf5 reported (or the host, in a read of the driver) into one line: "could not
 * WHAT: ITS TEXT". */
tegula_status hdf5_failed(hdf5_library *library, tegula_error *err, tegula_status status,
                          const char *path, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* A predefined type by its symbol, for example "H5T_NATIVE_INT32_g"; -1: there is none. */
hid_t hdf5_predefined(const hdf5_library *library, const char *symbol);
/* A copy of libhdf5 that nobody else in the process shares; NULL with the reason in `why`. */
void *hdf5_open_private(const char *path, int *descriptor, char *why, size_t size);
void hdf5_close_private(void *handle, int descriptor);

/* ---- the reserve ---- */

enum { HDF5_RESERVE = 4 << 20 }; /* libhdf5 starts and opens a file with 1 MiB */
bool hdf5_memory_there(size_t bytes);
void hdf5_reserve_take(hdf5_library *library);
void hdf5_reserve_give_back(hdf5_library *library);
tegula_status hdf5_no_reserve(const tegula_plugin_host *host, size_t bytes, tegula_error *err);

/* ---- the driver ---- */

/* What a file says of itself in its first bytes. */
typedef struct hdf5_superblock {
  int64_t base;   /* where it is: at 0, 512, 1024, 2048, ... */
  unsigned flags; /* consistency flags; 0 for versions that have none */
  size_t width;   /* of lengths, bytes */
  size_t address_width;
} hdf5_superblock;

/* Registers the virtual file driver; false on failure. */
bool hdf5_driver_register(hdf5_library *library);
/* Opens `file` through the driver; `first`: its first HDF5_BLOCK bytes (malloc), or as many as it
 * has. Takes both: the file is closed with the id, or at once on failure. */
enum { HDF5_BLOCK = 64 * 1024 };
hid_t hdf5_driver_open(hdf5_library *library, tegula_plugin_file *file, char *first,
                       const hdf5_superblock *super, bool swmr);

/* Reads exactly `size` bytes; false on failure. */
typedef bool (*hdf5_heap_read)(void *state, int64_t offset, void *out, size_t size);
/* Is the collection of a global heap at `address` sound, as far as its lengths go? NULL, or what is
 * wrong. `width`: of lengths in the file. `size` is set to the bytes of the collection. */
const char *hdf5_heap_check(hdf5_heap_read get, void *state, int64_t address, int64_t file_size,
                            size_t width, int64_t *size);
/* The same for an object of one that begins like a list of mappings: is its checksum right? */
const char *hdf5_mapped_check(hdf5_heap_read get, void *state, int64_t offset, size_t size,
                              size_t width);
/* Calls `leaves->each` for the chunks of a leaf, until it returns other than 0. Metadata that is
 * none is passed over. */
void hdf5_leaves_note(const hdf5_leaves *leaves, const unsigned char *bytes, size_t size);
/* The checksum of HDF5's metadata. */
uint32_t hdf5_checksum(const unsigned char *bytes, size_t size);
/* Keeps the header of an array, if these bytes are one. */
void hdf5_array_note(hdf5_array_head *head, const unsigned char *bytes, size_t size);
/* Opens a file to write to it; one without bytes is made. The sink is borrowed until the id is
 * closed. */
hid_t hdf5_driver_save(hdf5_library *library, tegula_plugin_sink *sink);

/* ---- files ---- */

/* Where an object is in its file. */
typedef struct hdf5_object {
  unsigned char place[16];
} hdf5_object;

/* The header of a dataset's array, for the next time: libhdf5 reads it once. */
typedef struct hdf5_known_array {
  struct hdf5_known_array *next;
  hdf5_object dataset;
  hdf5_array_head head;
} hdf5_known_array;

/* An open file; counted, because readers keep theirs. */
typedef struct hdf5_file {
  hdf5_library *library;
  int64_t references;
  char *path;      /* as named */
  char *canonical; /* without symbolic links; what files are compared by */
  tegula_plugin_file *host;
  int64_t size;
  int64_t base; /* where its superblock is */
  size_t address_width, length_width;
  hid_t id;
  int64_t number; /* in the host's table; -1: not yet there */
  hdf5_known_array *arrays;
  struct hdf5_file *next;
} hdf5_file;

/* One call of describe or list. */
typedef struct hdf5_call {
  hdf5_library *library;
  tegula_plugin_builder *builder;
  hdf5_file *files;  /* those that are open */
  size_t array_item; /* item size of the array that is described */
  const struct hdf5_ancestor *ancestors;
  bool late; /* a late part is resolved */
} hdf5_call;

/* Do these 12 bytes begin a superblock? And its consistency flags; 0 for versions that have
 * none. */
bool hdf5_is_superblock(const unsigned char *bytes);
unsigned hdf5_superblock_flags(const unsigned char *bytes);
tegula_status hdf5_file_open(hdf5_call *call, const char *path, hdf5_file **out, tegula_error *err);
void hdf5_file_release(hdf5_call *call, hdf5_file *file);
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
/* The number of the file in the host's table. */
tegula_status hdf5_file_number(hdf5_call *call, hdf5_file *file, int64_t *number,
                               tegula_error *err);
/* A name that a file gives, from the folder of that file; new memory. */
char *hdf5_beside(const char *file, const char *name);
/* Where a name that `file` gives leads: absolute as it is, else from the folder of the file, then
 * from the folder that a symbolic link to the file leads to. Never from the working directory. New
 * memory, also when nothing is there. */
char *hdf5_resolve(const hdf5_file *file, const char *name);
char *hdf5_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
tegula_status hdf5_out_of_memory(const hdf5_library *library, tegula_error *err);

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
/* Every dataset of the file, each once, links followed; also objects and links that cannot be
 * opened (a newer format, damage, a lock), but no links that lead nowhere or round in a circle. */
tegula_status hdf5_walk(hdf5_call *call, hdf5_file *file, hdf5_each_fn each, void *state,
                        tegula_error *err);
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

typedef struct hdf5_type {
  tegula_dtype dtype; /* native byte order */
  char order;         /* of the stored bytes */
  /* libhdf5 must convert: the stored form is not one that numpy has */
  bool converted;
  /* with `converted`: what libhdf5 gives is in the other byte order */
  bool swapped;
  /* with `converted`: the predefined type to convert to, of a complex number that of its parts */
  char memory[HDF5_MEMORY_TEXT];
} hdf5_type;

/* False: cannot be loaded, and `why` says it, as "has ...": "variable-length strings". */
bool hdf5_type_of(hdf5_library *library, hid_t type, hdf5_type *out, char *why, size_t size);
/* Could the stored numbers of `from` stand in a dataset of the type `to`? Enumerations must have
 * the same names and numbers. */
bool hdf5_type_agrees(hdf5_library *library, hid_t from, hid_t to);
/* The type to ask H5Dread for, to get elements of `type`, native ones but for `swapped`; close
 * it. */
hid_t hdf5_type_memory(hdf5_library *library, hid_t stored, const hdf5_type *type);
void hdf5_type_swap(tegula_dtype dtype, unsigned char *element);
void hdf5_type_swap_all(tegula_dtype dtype, void *elements, int64_t count);
/* The type that h5py stores this dtype as; close it. -1: libhdf5 failed, or there is none and `why`
 * says so. */
hid_t hdf5_type_make(hdf5_library *library, tegula_dtype dtype, char *why, size_t size);

/* ---- attributes ---- */

/* Those of the dataset `name`; for NULL of the root group and all datasets. */
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
/* How one of tegula's codecs stands in a file. */
typedef struct hdf5_stored_filter {
  const char *codec;
  int number;
  bool optional; /* chunks that it makes no smaller are stored without it */
  const char *name;
} hdf5_stored_filter;

enum { HDF5_STORED_FILTERS = 10 };
extern const hdf5_stored_filter hdf5_stored_filters[HDF5_STORED_FILTERS];
/* Is the filter at hand to do its work (not only a stub)? */
bool hdf5_filter_works(const hdf5_library *library, int number);
/* Sees to it that datasets can be made with filter k of these; false: libhdf5 does not let it. */
bool hdf5_filter_register(hdf5_library *library, int k);

/* ---- saving ---- */

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
