/* The virtual file driver: libhdf5 reads what it needs through the host, in blocks that are kept.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Metadata lies in small pieces near each other; on storage that answers in milliseconds every
 * request counts, so pieces come out of blocks of 64 KiB, of which each file keeps the 64 that were
 * used last. Files are never locked, and never shared between two opens; only one that is being
 * saved is written, and there nothing is kept. What libhdf5 wants to open on its own (external
 * links, virtual sources) is refused: the plugin follows names itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library/libhdf5.h"

enum { BLOCK = HDF5_BLOCK, BLOCKS = 64 };
enum { MEMORY_SUPER = 1, MEMORY_RAW = 3, MEMORY_HEAP = 4, MEMORY_TYPES = 7 };
enum { FEATURE_SWMR = 0x1000, SWMR_ATTEMPTS = 25 /* 34 ms in all */ };
enum { FEATURE_AGGREGATE_METADATA = 1, FEATURE_ACCUMULATE_METADATA = 2 };
/* large runs of bytes begin at a page of the file */
enum { ALIGNMENT = 4096, ALIGNED_FROM = 1 << 20 };

typedef struct block {
  int64_t index; /* -1: empty */
  uint64_t used;
  size_t size;
  char *bytes;
} block;

typedef struct driver_file {
  /* H5FD_t: for libhdf5 only. 72 to 80 bytes in all releases; the rest is room to spare. */
  union {
    hid_t driver;
    char room[256];
  } head;
  hdf5_library *library;
  tegula_plugin_file *host;
  tegula_plugin_sink *sink; /* NULL: the file is only read */
  int64_t size;
  size_t width;      /* of lengths */
  haddr_t rest;      /* of the collection of a global heap that was just read in part; 0: none */
  haddr_t eoa, most; /* most: of a file that is saved */
  /* a writer is at it: libhdf5 reads again what does not fit, so nothing may be kept */
  bool changing;
  uint64_t clock;
  block *last;
  block blocks[BLOCKS];
} driver_file;

/* While H5Fopen runs: whose file `open` is to take. libhdf5 hands the callback nothing that would
 * tell. */
static _Thread_local hdf5_library *opening_library;

/* H5FD_class_t up to 1.12; later ones begin with a version and a number, and have more functions.
 * Functions that are not here are NULL. */
#define CLASS_HEAD                                                                                 \
  const char *name;                                                                                \
  haddr_t maximum;                                                                                 \
  int close_degree;                                                                                \
  void *terminate;                                                                                 \
  void *superblock[3];                                                                             \
  size_t info_size;                                                                                \
  void *info[3];                                                                                   \
  size_t transfer_size;                                                                            \
  void *transfer[2];                                                                               \
  driver_file *(*open)(const char *, unsigned, hid_t, haddr_t);                                    \
  herr_t (*close)(driver_file *);                                                                  \
  int (*compare)(const driver_file *, const driver_file *);                                        \
  herr_t (*query)(const driver_file *, unsigned long *);                                           \
  void *type_map, *allocate, *release;                                                             \
  haddr_t (*get_eoa)(const driver_file *, int);                                                    \
  herr_t (*set_eoa)(driver_file *, int, haddr_t);                                                  \
  haddr_t (*get_eof)(const driver_file *, int);                                                    \
  void *handle;                                                                                    \
  herr_t (*read)(driver_file *, int, hid_t, haddr_t, size_t, void *);                              \
  herr_t (*write)(driver_file *, int, hid_t, haddr_t, size_t, const void *);

typedef struct driver_class_old { /* 1.8 to 1.12 */
  CLASS_HEAD
  void *flush;
  herr_t (*truncate)(driver_file *, hid_t, bool);
  void *lock, *unlock;
  int map[MEMORY_TYPES];
} driver_class_old;

typedef struct driver_class_new { /* 1.13 and later: version 1 */
  unsigned version;
  int value;
  CLASS_HEAD
  void *vectors[4];
  void *flush;
  herr_t (*truncate)(driver_file *, hid_t, bool);
  void *lock, *unlock, *delete, *control;
  int map[MEMORY_TYPES];
} driver_class_new;

static driver_file *driver_open(const char *name, unsigned flags, hid_t access, haddr_t maximum) {
  (void)name, (void)access, (void)maximum;
  hdf5_library *library = opening_library;
  if (!library || (!library->opening && !library->saving)) return NULL;
  driver_file *file = calloc(1, sizeof *file);
  if (!file) return NULL;
  file->library = library;
  /* asked twice when a file is made: whether it can be opened, then to open it */
  if (library->saving) {
    file->sink = library->saving;
    file->most = (haddr_t)library->saving_most;
    file->size = library->host->sink_size(file->sink);
    return file;
  }
  file->host = library->opening;
  library->opening = NULL;
  file->size = library->host->file_size(file->host);
  file->width = library->opening_width;
  file->changing = (flags & HDF5_SWMR_READ) != 0;
  for (int k = 0; k < BLOCKS; k++) file->blocks[k].index = -1;
  file->blocks[0] = (block){.size = file->size < BLOCK ? (size_t)file->size : BLOCK,
                            .bytes = library->opening_block};
  library->opening_block = NULL;
  return file;
}

static herr_t driver_close(driver_file *file) {
  for (int k = 0; k < BLOCKS; k++) free(file->blocks[k].bytes);
  if (!file->sink) file->library->host->file_close(file->host);
  free(file);
  return 0;
}

/* Two opens are two files, whatever they open. */
static int driver_compare(const driver_file *a, const driver_file *b) {
  return a == b ? 0 : (uintptr_t)a < (uintptr_t)b ? -1 : 1;
}

static herr_t driver_query(const driver_file *file, unsigned long *flags) {
  *flags =
      file && file->sink ? FEATURE_AGGREGATE_METADATA | FEATURE_ACCUMULATE_METADATA : FEATURE_SWMR;
  return 0;
}

static haddr_t driver_get_eoa(const driver_file *file, int type) {
  (void)type;
  return file->eoa;
}

static haddr_t driver_get_eof(const driver_file *file, int type) {
  (void)type;
  return (haddr_t)file->size;
}

/* What the host says is kept: libhdf5 only knows that it failed. */
static herr_t host_said(hdf5_library *library, tegula_status status, const tegula_error *failure) {
  if (status == TEGULA_OK) return 0;
  if (library->failure.status == TEGULA_OK) {
    library->failure = *failure;
    library->failure.status = status;
  }
  return -1;
}

static void out_of_memory(hdf5_library *library) {
  tegula_error failure;
  host_said(library, hdf5_out_of_memory(library, &failure), &failure);
}

/* An address that does not fit the file's own would be cut without a word. */
static herr_t driver_set_eoa(driver_file *file, int type, haddr_t address) {
  (void)type;
  const tegula_plugin_host *host = file->library->host;
  tegula_error failure;
  if (file->sink && address > file->most) {
    const char *path = host->sink_path(file->sink);
    return host_said(
        file->library,
        host->hint(&failure,
                   host->fail(&failure, TEGULA_LIMIT_EXCEEDED, path, -1,
                              "\"%s\" would grow beyond %lld bytes: its addresses tell no more",
                              path, (long long)file->most),
                   "save to another file"),
        &failure);
  }
  file->eoa = address;
  return 0;
}

static herr_t host_read(driver_file *file, int64_t offset, void *out, size_t size) {
  tegula_error failure;
  tegula_status status =
      hdf5_memory_there(HDF5_RESERVE)
          ? file->library->host->file_read(file->host, offset, out, size, &failure)
          : hdf5_no_reserve(file->library->host, HDF5_RESERVE, &failure);
  return host_said(file->library, status, &failure);
}

/* The block of that index, read if it is not there; NULL on failure. */
static const block *get_block(driver_file *file, int64_t index) {
  file->clock++;
  if (file->last && file->last->index == index) return file->last;
  block *oldest = &file->blocks[0];
  for (int k = 0; k < BLOCKS; k++) {
    block *candidate = &file->blocks[k];
    if (candidate->index == index) {
      candidate->used = file->clock;
      return file->last = candidate;
    }
    if (candidate->used < oldest->used) oldest = candidate;
  }
  int64_t offset = index * BLOCK, left = file->size - offset;
  oldest->index = -1;
  oldest->size = left < BLOCK ? (size_t)left : BLOCK;
  if (!oldest->bytes) oldest->bytes = malloc(BLOCK);
  if (!oldest->bytes) out_of_memory(file->library);
  if (!oldest->bytes || host_read(file, offset, oldest->bytes, oldest->size) < 0) return NULL;
  oldest->index = index;
  oldest->used = file->clock;
  return file->last = oldest;
}

static herr_t read_blocks(driver_file *file, haddr_t address, size_t size, void *out) {
  for (char *to = out; size > 0;) {
    const block *from = get_block(file, (int64_t)(address / BLOCK));
    if (!from) return -1;
    size_t skip = (size_t)(address % BLOCK),
           part = from->size - skip < size ? from->size - skip : size;
    memcpy(to, from->bytes + skip, part);
    to += part;
    address += part;
    size -= part;
  }
  return 0;
}

/* A hdf5_heap_read. */
static bool read_for_heap(void *state, int64_t offset, void *out, size_t size) {
  driver_file *file = state;
  if (offset > file->size || (int64_t)size > file->size - offset) return false;
  return (file->changing ? host_read(file, offset, out, size)
                         : read_blocks(file, (haddr_t)offset, size, out)) >= 0;
}

/* Raw bytes that are no data are of a global heap: the first 4096 of a collection, then its
 * rest. */
static herr_t check_heap(driver_file *file, haddr_t address, size_t size, const void *bytes) {
  hdf5_library *library = file->library;
  bool rest = file->rest != 0 && address == file->rest;
  file->rest = 0;
  if (rest || size < 16 || memcmp(bytes, "GCOL", 4) != 0) return 0;
  int64_t whole = 0;
  const char *wrong =
      hdf5_heap_check(read_for_heap, file, (int64_t)address, file->size, file->width, &whole);
  if (!wrong && (uint64_t)whole > size) file->rest = address + size;
  if (!wrong) return 0;
  library->damage_at = (int64_t)address;
  snprintf(library->damage, sizeof library->damage,
           "the global heap collection at offset %lld is damaged: %s", (long long)address, wrong);
  return -1;
}

/* Of a file that is saved. Behind its end there are zeros: space that was reserved and not written
 * yet. */
static herr_t sink_read(driver_file *file, haddr_t address, size_t size, void *out) {
  size_t there = address < (haddr_t)file->size ? (size_t)((haddr_t)file->size - address) : 0;
  if (there > size) there = size;
  if (file->library->discarding) there = 0;
  memset((char *)out + there, 0, size - there);
  RETURN_IF(there == 0, 0);
  tegula_error failure;
  return host_said(
      file->library,
      file->library->host->sink_read(file->sink, (int64_t)address, out, there, &failure), &failure);
}

static herr_t driver_read(driver_file *file, int type, hid_t transfer, haddr_t address, size_t size,
                          void *out) {
  (void)transfer;
  hdf5_probe *probe = &file->library->probe;
  if (probe->buffer && out == probe->buffer) {
    probe->hits++;
    probe->address = address;
    probe->size = size;
    return 0;
  }
  bool inside = address <= (haddr_t)file->size && size <= (haddr_t)file->size - address;
  if (file->sink) return sink_read(file, address, size, out);
  if (!inside && type != MEMORY_SUPER) return -1;
  if (!inside) { /* a superblock is asked for with room to spare */
    size_t there = address < (haddr_t)file->size ? (size_t)((haddr_t)file->size - address) : 0;
    memset((char *)out + there, 0, size - there);
    size = there;
  }
  bool raw = type == MEMORY_RAW || type == MEMORY_HEAP, data = raw && file->library->data;
  bool direct = data || file->changing || size >= BLOCK;
  if ((direct ? host_read(file, (int64_t)address, out, size)
              : read_blocks(file, address, size, out)) < 0)
    return -1;
  if (raw) return data ? 0 : check_heap(file, address, size, out);
  hdf5_array_note(&file->library->array, out, size);
  if (file->library->leaves.each) hdf5_leaves_note(&file->library->leaves, out, size);
  return 0;
}

static herr_t driver_write(driver_file *file, int type, hid_t transfer, haddr_t address,
                           size_t size, const void *bytes) {
  (void)type, (void)transfer;
  haddr_t end = address + size;
  RETURN_IF(!file->sink || end < address || end > INT64_MAX, -1);
  hdf5_probe *probe = &file->library->probe;
  if (probe->buffer && bytes == probe->buffer) { /* a chunk: the engine writes it */
    probe->hits++;
    probe->address = address;
    probe->size = size;
    return 0;
  }
  tegula_error failure;
  /* what is read again of it would be wrong, but nobody looks at the file any more */
  if (file->library->discarding) {
    if (end > (haddr_t)file->size) file->size = (int64_t)end;
    return 0;
  }
  if (host_said(
          file->library,
          file->library->host->sink_write(file->sink, (int64_t)address, bytes, size, &failure),
          &failure) < 0)
    return -1;
  if (end > (haddr_t)file->size) file->size = (int64_t)end;
  return 0;
}

/* The file ends where what is allocated ends. */
static herr_t driver_truncate(driver_file *file, hid_t transfer, bool closing) {
  (void)transfer, (void)closing;
  if (!file->sink || (haddr_t)file->size == file->eoa || file->library->discarding) return 0;
  tegula_error failure;
  if (host_said(file->library,
                file->library->host->sink_resize(file->sink, (int64_t)file->eoa, &failure),
                &failure) < 0)
    return -1;
  file->size = (int64_t)file->eoa;
  return 0;
}

#define CLASS_VALUES                                                                               \
  .name = "tegula", .maximum = (haddr_t)1 << 62, .close_degree = 1 /* weak */,                     \
  .open = driver_open, .close = driver_close, .compare = driver_compare, .query = driver_query,    \
  .get_eoa = driver_get_eoa, .set_eoa = driver_set_eoa, .get_eof = driver_get_eof,                 \
  .read = driver_read, .write = driver_write, .truncate = driver_truncate,                         \
  .map = {1, 1, 1, 3, 3, 1, 1}

bool hdf5_driver_register(hdf5_library *library) {
  static const driver_class_old old = {CLASS_VALUES};
  static const driver_class_new new = {.version = 1, .value = 0x7e9a, CLASS_VALUES};
  library->driver = library->call.H5FDregister(
      hdf5_library_from(library, 1, 13, 0) ? (const void *)&new : (const void *)&old);
  return library->driver >= 0;
}

hid_t hdf5_driver_open(hdf5_library *library, tegula_plugin_file *file, char *first,
                       const hdf5_superblock *super, bool swmr) {
  const hdf5_functions *call = &library->call;
  hid_t access = call->H5Pcreate(call->file_access_class), id = -1;
  library->opening = file;
  library->opening_block = first;
  library->opening_width = super->width;
  bool good = access >= 0 && call->H5Pset_driver(access, library->driver, NULL) >= 0;
  /* a page buffer would answer requests in place of the driver; chunks are never read twice */
  good = good && call->H5Pset_page_buffer_size(access, 0, 0, 0) >= 0 &&
         call->H5Pset_cache(access, 0, 1, 0, 0.75) >= 0;
  /* SWMR: what does not fit its checksum is read again, with pauses of 1, 2, 4, ... ns between;
   * libhdf5's own 100 times never end */
  good = good && call->H5Pset_metadata_read_attempts(access, swmr ? SWMR_ATTEMPTS : 1) >= 0;
  if (good && call->set_file_locking) good = call->set_file_locking(access, false, true) >= 0;
  opening_library = library;
  if (good) id = call->H5Fopen("file", swmr ? HDF5_SWMR_READ : HDF5_READ_ONLY, access);
  opening_library = NULL;
  if (access >= 0) call->H5Pclose(access);
  if (library->opening) library->host->file_close(file);
  library->opening = NULL;
  free(library->opening_block);
  library->opening_block = NULL;
  return id;
}

hid_t hdf5_driver_save(hdf5_library *library, tegula_plugin_sink *sink) {
  const hdf5_functions *call = &library->call;
  hid_t access = call->H5Pcreate(call->file_access_class),
        creation = call->H5Pcreate(call->file_create_class), id = -1;
  bool existing = library->host->sink_size(sink) > 0;
  library->saving = sink;
  bool good =
      access >= 0 && creation >= 0 && call->H5Pset_driver(access, library->driver, NULL) >= 0;
  good = good && call->H5Pset_obj_track_times(creation, false) >= 0; /* of the root group */
  /* a page buffer would take the place of the driver; no chunk is ever read or kept by libhdf5 */
  good = good && call->H5Pset_page_buffer_size(access, 0, 0, 0) >= 0 &&
         call->H5Pset_cache(access, 0, 1, 0, 0.75) >= 0;
  /* not where something may be replaced: what lies between aligned pieces is lost when the file is
   * closed, and would keep those before it from being given back */
  good = good && (existing || call->H5Pset_alignment(access, ALIGNED_FROM, ALIGNMENT) >= 0);
  if (good && call->set_file_locking) good = call->set_file_locking(access, false, true) >= 0;
  opening_library = library;
  if (good)
    id = existing ? call->H5Fopen("file", HDF5_READ_WRITE, access)
                  : call->H5Fcreate("file", HDF5_TRUNCATE, creation, access);
  opening_library = NULL;
  if (creation >= 0) call->H5Pclose(creation);
  if (access >= 0) call->H5Pclose(access);
  library->saving = NULL;
  return id;
}
