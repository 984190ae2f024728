/* The room of libhdf5: which one it is, and how it reads and writes files through the host.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * libhdf5 says what is in a file: names, types, where the bytes are. It moves none of them, but for
 * datasets that only it can decode. Every call into it is made under the lock of its library, with
 * its printing of errors off.
 *
 * This room includes no other one. Begin with find_library.c, then library_lock.c, file_driver.c
 * and hdf5_open_files.c. */
#ifndef TEGULA_HDF5_LIBHDF5_H
#define TEGULA_HDF5_LIBHDF5_H

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

/* Axes behind those of a dataset: its elements are arrays themselves. */
typedef struct hdf5_inner {
  int ndim;
  int64_t count; /* of numbers in an element */
  int64_t shape[HDF5_MAX_RANK];
} hdf5_inner;

/* One call of describe or list. */
typedef struct hdf5_call {
  hdf5_library *library;
  tegula_plugin_builder *builder;
  hdf5_file *files;  /* those that are open */
  size_t array_item; /* bytes of an element of the array that is described */
  hdf5_inner inner;  /* of that array */
  const struct hdf5_ancestor *ancestors;
  bool late; /* a late part is resolved */
} hdf5_call;

/* Do these 12 bytes begin a superblock? And its consistency flags; 0 for versions that have
 * none. */
bool hdf5_is_superblock(const unsigned char *bytes);
unsigned hdf5_superblock_flags(const unsigned char *bytes);
tegula_status hdf5_file_open(hdf5_call *call, const char *path, hdf5_file **out, tegula_error *err);
void hdf5_file_release(hdf5_call *call, hdf5_file *file);
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

/* ---- filters ---- */

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

#endif
