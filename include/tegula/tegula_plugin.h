/* tegula: the interface of plugins. Version 0: it may still change with each release; plugin and
 * library come from the same release.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A format plugin describes what is in a file; it never moves array bytes (but see `reader`). The
 * library opens it when a file of its format is met, finds `tegula_plugin_entry`, and hands it a
 * table of functions: the plugin is linked to no library of ours. All functions of the host take
 * and return plain values; texts and vectors are copied unless the comment says otherwise. */
#ifndef TEGULA_TEGULA_PLUGIN_H
#define TEGULA_TEGULA_PLUGIN_H

#include <stdarg.h>
#include <stdbool.h>
#include <tegula/tegula.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TEGULA_PLUGIN_VERSION 0

/* ---- what the host gives ---- */

/* A file that the host has open for the plugin. */
typedef struct tegula_plugin_file tegula_plugin_file;

/* A file that is being saved: a new one, or a copy of an existing one that is added to. */
typedef struct tegula_plugin_sink tegula_plugin_sink;

/* The description that is being made: one array. Files are numbered from 0; file 0 is the one that
 * is described. */
typedef struct tegula_plugin_builder tegula_plugin_builder;

/* One stage of a codec chain, in encoding order; the names are those of docs/formats.md ("deflate",
 * "shuffle", ...). */
typedef struct tegula_plugin_filter {
  const char *codec;
  uint32_t params[4];
  int32_t param_count;
  int32_t reserved;
} tegula_plugin_filter;

/* One stored chunk. length 0: absent (never allocated). mask: bit i set: stage i of the chain was
 * skipped. */
typedef struct tegula_plugin_chunk {
  uint64_t offset; /* in the file, absolute */
  uint32_t length; /* bytes stored */
  uint32_t mask;
} tegula_plugin_chunk;

/* Where the elements of a box [lo, hi) of the array are: in chunks. For element i, along each axis
 * k of the array:
 *   g = start[k] + (i[k] - lo[k]);  its chunk is slot_base + sum((g / chunk[k]) * slot_stride[k]),
 *   and in the decoded chunk it stands at byte_base + sum((g % chunk[k]) * byte_stride[k]).
 * An axis that the stored array has not (or of which one index is fixed) is folded into the bases:
 * chunk[k] = 1, strides 0. */
typedef struct tegula_plugin_chunked {
  const int64_t *lo, *hi, *start, *chunk, *slot_stride, *byte_stride; /* ndim entries each */
  int64_t slot_base, byte_base;
} tegula_plugin_chunked;

/* What is only found out when a load wants it. */
typedef struct tegula_plugin_late {
  /* Adds files, grids and parts to a builder whose array is set: together they are the boxes of
   * this late part (add_late), no more and no less. Once it has succeeded it is not called again;
   * any thread. The described file has not changed since it was described. */
  tegula_status (*resolve)(void *state, tegula_plugin_builder *builder, tegula_error *err);
  void *state;
  tegula_release_fn release; /* or NULL */
  const char *path;          /* where what it needs is expected; copied */
} tegula_plugin_late;

/* `count` texts of `size` bytes in an element, `stride` bytes apart, the first at `offset`.
 * padding: '0': what is behind the first zero is none of the text, ' ': blanks at its end are not.
 */
typedef struct tegula_plugin_text {
  int64_t offset, count, stride;
  uint32_t size;
  char padding;
} tegula_plugin_text;

typedef struct tegula_plugin_host {
  size_t struct_size;
  int32_t version; /* TEGULA_PLUGIN_VERSION */
  int32_t reserved;

  /* Errors as in the public header: fill `err` (may be NULL), return `status`. */
  tegula_status (*fail)(tegula_error *err, tegula_status status, const char *path, int64_t offset,
                        const char *format, ...);
  tegula_status (*hint)(tegula_error *err, tegula_status status, const char *format, ...);

  /* Files. Opened by path as given; sizes and times are noted, and compared whenever the file is
   * opened again. Bytes are counted in the statistics of the call. `read` reads exactly `size`
   * bytes or fails (SHORT_FILE behind the end). A file may be kept when the description is done,
   * and then be read and closed at any time from any thread (readers do): what is read then is
   * counted nowhere. `check` fails (CHANGED) when the file is no longer what it was when it was
   * opened: readers ask when they have read. */
  tegula_status (*file_open)(tegula_plugin_builder *builder, const char *path,
                             tegula_plugin_file **out, tegula_error *err);
  void (*file_close)(tegula_plugin_file *file);
  tegula_status (*file_read)(tegula_plugin_file *file, int64_t offset, void *out, size_t size,
                             tegula_error *err);
  tegula_status (*file_check)(tegula_plugin_file *file, tegula_error *err);
  /* Does somebody else hold an exclusive lock on the file (flock(2)), so that it may not be read
   * now? Never where the caller asked for locked files (TEGULA_OPEN_LOCKED). */
  bool (*file_locked)(const tegula_plugin_file *file);
  int64_t (*file_size)(const tegula_plugin_file *file);
  const char *(*file_path)(const tegula_plugin_file *file);

  /* The array. set_array comes first; parts are disjoint boxes that together cover the shape. */
  tegula_status (*set_array)(tegula_plugin_builder *builder, const char *name, tegula_dtype dtype,
                             int32_t ndim, const int64_t *shape, tegula_error *err);
  /* Fill value of the array in native byte order (item_size bytes), or NULL: none is defined. */
  tegula_status (*set_fill)(tegula_plugin_builder *builder, const void *value, tegula_error *err);
  /* Adds a file to the table (the same one twice gives the same number). */
  tegula_status (*add_file)(tegula_plugin_builder *builder, const tegula_plugin_file *file,
                            int64_t *number, tegula_error *err);
  /* Dense bytes in a file: the element at lo is at `offset`; byte strides are positive. order: '<',
   * '>', '|'. */
  tegula_status (*add_dense)(tegula_plugin_builder *builder, int64_t file, int64_t offset,
                             const int64_t *lo, const int64_t *hi, const int64_t *byte_stride,
                             char order, tegula_error *err);
  /* A stored array of chunks, to which parts refer by the number that is returned. `slots`: how
   * many chunk slots there are. With `coordinates` (count entries, ascending) only those slots are
   * stored; NULL: count == slots. `fill` as in set_fill. The filters must be known to the host
   * (UNSUPPORTED names the one that is not). Takes chunks and coordinates (made with `allocate`) on
   * success. */
  tegula_status (*add_grid)(tegula_plugin_builder *builder, int64_t file, int64_t chunk_bytes,
                            char order, const tegula_plugin_filter *filters, int32_t filter_count,
                            const void *fill, int64_t slots, int64_t count, uint64_t *coordinates,
                            tegula_plugin_chunk *chunks, int64_t *grid, tegula_error *err);
  tegula_status (*add_chunked)(tegula_plugin_builder *builder, int64_t grid,
                               const tegula_plugin_chunked *part, tegula_error *err);
  /* A box that is absent by the format's rules: filled (NULL: zeros) and counted. The value is
   * native, item_size bytes, copied. */
  tegula_status (*add_fill)(tegula_plugin_builder *builder, const int64_t *lo, const int64_t *hi,
                            const void *fill, tegula_error *err);
  /* A box whose data is lost (a source that is not there): an error with this text, or filled where
   * the caller asked for it. os_errno: what the system said, 0 where it is not why. */
  tegula_status (*add_lost)(tegula_plugin_builder *builder, const int64_t *lo, const int64_t *hi,
                            const void *fill, tegula_status status, int32_t os_errno,
                            const char *text, const char *path, tegula_error *err);
  /* A box that the plugin itself reads, as tegula_dataset_from_reader: `read` and `state` live
   * until `release` is called, which the host does in any case, failure included, within this call
   * or later. The boxes that `read` is given count in the array of this description, like lo and
   * hi, also when it becomes a part of a longer one. `chunk`: NULL, or no call crosses a multiple
   * of these, counted from lo. `why`: the reason why the plugin reads it, a sentence for
   * messages. */
  tegula_status (*add_reader)(tegula_plugin_builder *builder, const int64_t *lo, const int64_t *hi,
                              const int64_t *chunk, int64_t cost_bytes, const char *why,
                              tegula_reader_fn read, void *state, tegula_release_fn release,
                              tegula_error *err);
  /* Memory that the host will take. */
  void *(*allocate)(size_t size);
  void (*release)(void *memory);

  /* numpy's text of a dtype, as in the public header. */
  tegula_status (*dtype_parse)(const char *text, tegula_dtype *out, tegula_error *err);
  void (*dtype_format)(tegula_dtype dtype, char out[TEGULA_DTYPE_TEXT]);

  /* A file that is saved, for all in it that is not array data. Exactly `size` bytes are read or
   * written; what is read lies inside the file. The path is that under which the user will see it:
   * for messages. */
  int64_t (*sink_size)(const tegula_plugin_sink *sink);
  const char *(*sink_path)(const tegula_plugin_sink *sink);
  tegula_status (*sink_read)(tegula_plugin_sink *sink, int64_t offset, void *out, size_t size,
                             tegula_error *err);
  tegula_status (*sink_write)(tegula_plugin_sink *sink, int64_t offset, const void *data,
                              size_t size, tegula_error *err);
  tegula_status (*sink_resize)(tegula_plugin_sink *sink, int64_t size, tegula_error *err);

  /* Late parts. NULL: this host wants to know all at once. new_late gives the number of a late
   * part, which the host releases in any case, failure included, within this call or later;
   * add_late a box of it. While one is resolved there are no further ones. */
  tegula_status (*new_late)(tegula_plugin_builder *builder, const tegula_plugin_late *late,
                            int64_t *number, tegula_error *err);
  tegula_status (*add_late)(tegula_plugin_builder *builder, int64_t late, const int64_t *lo,
                            const int64_t *hi, tegula_error *err);

  /* The chunks of that grid are slices of contiguous bytes, so that what several parts want of them
   * is read once: nobody is told of them as chunks. */
  tegula_status (*mark_slices)(tegula_plugin_builder *builder, int64_t grid, tegula_error *err);

  /* As new_late: of that part the file with this number in the table speaks, which must not
   * change. */
  tegula_status (*new_late_of)(tegula_plugin_builder *builder, int64_t file,
                               const tegula_plugin_late *late, int64_t *number, tegula_error *err);

  /* The array holds structured records: its dtype is V of their size, set before. `descr`: numpy's
   * description, as repr(numpy.lib.format.dtype_to_descr(dtype)) gives it; a member that has no
   * dtype stands in it as ('name', '|O16'), with its size in the file. `refused`: a sentence that
   * names such members and why, or NULL. */
  tegula_status (*set_record)(tegula_plugin_builder *builder, const char *descr,
                              const char *refused, tegula_error *err);

  /* Where elements of kind S, or of records, have text that the format pads by something else than
   * zeros: what is loaded is padded by zeros. Of all parts that are added afterwards, up to the
   * next call; at most 4096 places, 0: there is none. */
  tegula_status (*set_texts)(tegula_plugin_builder *builder, const tegula_plugin_text *texts,
                             int64_t count, tegula_error *err);
} tegula_plugin_host;

/* ---- what a communicator plugin gives ---- */

/* A transfer on its way. What it reads and writes belongs to it until it is done. */
typedef struct tegula_plugin_request {
  uint64_t handle;
} tegula_plugin_request;

typedef enum tegula_plugin_reduction {
  TEGULA_PLUGIN_MAX = 0,
  TEGULA_PLUGIN_SUM = 1,
  TEGULA_PLUGIN_XOR = 2
} tegula_plugin_reduction;

/* A group of processes. Nothing waits here: calls start a transfer and `test` says whether it is
 * done, so that the host keeps the time. One thread at a time. Collective calls (reduce, broadcast)
 * are made by all ranks in the same order. */
typedef struct tegula_plugin_comm {
  size_t struct_size;
  /* Joins the group of the communicator at `handle` (handle_size bytes; NULL: all processes that
   * were started together; MPI is then initialised where nobody has done it), through a
   * communicator of its own. `library`: the MPI to use, by path or name; NULL: what this process
   * has already. Collective. */
  tegula_status (*join)(const tegula_plugin_host *host, const char *library, const void *handle,
                        size_t handle_size, void **group, tegula_error *err);
  /* Collective unless `broken`: then nothing is waited for, and what is on its way stays so. */
  void (*leave)(void *group, bool broken);
  int32_t (*rank)(const void *group);
  int32_t (*size)(const void *group);
  /* for this rank: those that the group's ranks of this machine may use, shared out */
  int32_t (*processors)(const void *group);
  /* false: only the thread that initialised MPI may call */
  bool (*any_thread)(const void *group);
  const char *(*library)(const void *group); /* "MPICH 5.0.2": borrowed until leave */
  tegula_status (*reduce)(void *group, tegula_plugin_reduction reduction, const int64_t *mine,
                          int64_t *all, int32_t count, tegula_plugin_request *request,
                          tegula_error *err);
  tegula_status (*broadcast)(void *group, void *data, int32_t bytes, int32_t root,
                             tegula_plugin_request *request, tegula_error *err);
  tegula_status (*send)(void *group, const void *data, int32_t bytes, int32_t rank, int32_t tag,
                        tegula_plugin_request *request, tegula_error *err);
  tegula_status (*receive)(void *group, void *data, int32_t bytes, int32_t rank, int32_t tag,
                           tegula_plugin_request *request, tegula_error *err);
  /* Has a message of that rank and tag come that nobody received yet? */
  tegula_status (*probe)(void *group, int32_t rank, int32_t tag, bool *there, tegula_error *err);
  tegula_status (*test)(void *group, tegula_plugin_request *request, bool *done, tegula_error *err);
  /* Ends all processes of the group. */
  void (*abort)(void *group, int32_t code);
  /* As join, but it waits for the other ranks no longer than `seconds`, and then fails with
   * TIMEOUT; 0: as long as it takes. MPI's own start is not counted. */
  tegula_status (*join_within)(const tegula_plugin_host *host, const char *library,
                               const void *handle, size_t handle_size, double seconds, void **group,
                               tegula_error *err);
} tegula_plugin_comm;

/* ---- what a format plugin gives ---- */

typedef struct tegula_plugin_options {
  size_t struct_size;
  const char *library; /* the heavy library, by path: this one or none; NULL: found by the plugin */
  /* NULL, or paths that end with NULL: taken into account besides what the system has; the newest
   * wins */
  const char *const *candidates;
} tegula_plugin_options;

/* One dataset of a container. */
typedef struct tegula_plugin_entry_info {
  const char *name;    /* "/group/x" */
  const char *dtype;   /* numpy's text, or NULL with `refused` */
  const char *refused; /* why it cannot be loaded, or NULL */
  int32_t ndim;
  const int64_t *shape; /* NULL: there is none, or it cannot be read */
  const int64_t *chunk; /* NULL: not chunked */
  const char *codecs;   /* "shuffle,deflate:6"; "" for none */
  int64_t stored_bytes; /* -1: not known without too much work */
  const char *descr;    /* of records, as in set_record; else NULL */
} tegula_plugin_entry_info;

typedef tegula_status (*tegula_plugin_list_fn)(void *state, const tegula_plugin_entry_info *entry,
                                               tegula_error *err);

/* A name in a group, without the group; another status than OK ends the list. */
typedef tegula_status (*tegula_plugin_name_fn)(void *state, const char *name, tegula_error *err);

/* An attribute; one without a name is the comment of its object, a text. */
typedef tegula_status (*tegula_plugin_attribute_fn)(void *state, const tegula_attribute *attribute,
                                                    tegula_error *err);

/* A box [lo, hi) of a virtual dataset, which is the whole of another file's dataset. */
typedef struct tegula_plugin_mapping {
  const char *file; /* from the folder of the virtual file */
  const char *dataset;
  const int64_t *lo, *hi;
} tegula_plugin_mapping;

/* Something that was to go along with a dataset and cannot: "attribute", "dimension scale" or
 * "comment", its name, and why. */
typedef void (*tegula_plugin_dropped_fn)(void *state, const char *what, const char *name,
                                         const char *reason);

/* The dataset of which one that is saved is a copy: its attributes, comment and the scales of its
 * axes go along, as they are stored. */
typedef struct tegula_plugin_origin {
  size_t struct_size;
  tegula_plugin_builder *builder; /* opens its files */
  const char *path;
  const char *dataset; /* NULL: the only one */
  tegula_plugin_dropped_fn dropped;
  void *state;
  /* its elements are in the target, too: none of the datasets that they are in may be replaced */
  uint8_t reads_target;
  uint8_t bare; /* nothing goes along */
  /* the datasets whose elements follow those of `dataset`: of them nothing goes along */
  const char *const *others;
  int64_t other_count;
} tegula_plugin_origin;

/* A field of structured records. Those of a record within follow it. */
typedef struct tegula_plugin_field {
  const char *name; /* in UTF-8, or the bytes that a file has */
  /* order: as it is stored; a record within: V, of its size */
  tegula_dtype dtype;
  int64_t offset; /* bytes, in the record that it is in */
  int64_t fields; /* how many follow that are within; 0: it is no record */
  int32_t ndim;   /* of a field that is an array */
  int32_t reserved;
  const int64_t *shape;
} tegula_plugin_field;

/* One dataset that is saved. */
typedef struct tegula_plugin_layout {
  size_t struct_size;
  const char *dataset; /* "/group/x": groups that are not there are made */
  int32_t replace;     /* what has the name already is taken away first; 0: EXISTS */
  int32_t ndim;
  const int64_t *shape;
  tegula_dtype dtype;   /* order: as it is stored */
  const int64_t *chunk; /* NULL: one run of bytes */
  const tegula_plugin_filter *filters;
  int32_t filter_count;
  int32_t reserved;
  const tegula_plugin_mapping *mappings; /* NULL: not virtual */
  int64_t mapping_count;
  const void *fill;                   /* one item in native byte order; NULL: none is defined */
  const tegula_attribute *attributes; /* those of the origin of the same name do not go along */
  int64_t attribute_count;
  const tegula_plugin_origin *origin; /* NULL: it is no copy */
  /* structured records: numpy's description, and what is in it; NULL: dtype says all */
  const char *descr;
  const tegula_plugin_field *fields;
  int64_t field_count;
} tegula_plugin_layout;

typedef struct tegula_plugin {
  size_t struct_size;
  int32_t version;
  int32_t reserved;
  const char *name; /* "hdf5" */
  /* Opens the heavy library; once per process and path. */
  tegula_status (*open)(const tegula_plugin_host *host, const tegula_plugin_options *options,
                        void **plugin, tegula_error *err);
  void (*close)(void *plugin);
  /* "HDF5 1.14.6 (/usr/lib/...)": for reports. Borrowed until close. */
  const char *(*library)(void *plugin);
  /* Describes one dataset of a file. `dataset`: NULL for the only one there is. Any thread; the
   * plugin locks what must be locked. */
  tegula_status (*describe)(void *plugin, tegula_plugin_builder *builder, const char *path,
                            const char *dataset, tegula_error *err);
  /* All datasets of a file, in order of names. */
  tegula_status (*list)(void *plugin, tegula_plugin_builder *builder, const char *path,
                        tegula_plugin_list_fn each, void *state, tegula_error *err);
  /* Attributes of the file and of its datasets; with `dataset` those of that one. NULL: the format
   * has none. */
  tegula_status (*attributes)(void *plugin, tegula_plugin_builder *builder, const char *path,
                              const char *dataset, tegula_plugin_attribute_fn each, void *state,
                              tegula_error *err);

  /* Saving; NULL: the plugin only reads. One thread at a time per file.
   * Opens the file (new when it has no bytes). `saving` lives until save_close or save_abandon,
   * whatever they return. */
  tegula_status (*save_open)(void *plugin, tegula_plugin_sink *sink, void **saving,
                             tegula_error *err);
  /* Adds a dataset; `number` counts from 0. Not chunked: its bytes will stand at `offset`, in C
   * order (-1: it has none). */
  tegula_status (*save_dataset)(void *saving, const tegula_plugin_layout *layout, int64_t *number,
                                int64_t *offset, tegula_error *err);
  /* Finds a place for the chunk with these indices (in chunks), which has `length` bytes when it is
   * encoded; the caller writes them there. mask: the stages that were skipped. Once for each
   * chunk. */
  tegula_status (*save_place)(void *saving, int64_t number, const int64_t *chunk, uint32_t length,
                              uint32_t mask, uint64_t *offset, tegula_error *err);
  /* Completes the file, but for the bytes of arrays. */
  tegula_status (*save_close)(void *saving, tegula_error *err);
  void (*save_abandon)(void *saving);

  /* Not NULL: this is a communicator, and all above but the name is NULL. */
  const tegula_plugin_comm *comm;

  /* Patterns of datasets; NULL: the format knows none.
   * What a group holds, in order of names: of whatever kind it is and wherever links lead.
   * INVALID_ARGUMENT: it is no group. */
  tegula_status (*names)(void *plugin, tegula_plugin_builder *builder, const char *path,
                         const char *group, tegula_plugin_name_fn each, void *state,
                         tegula_error *err);
  /* As describe of each of the datasets, into the builder of the same number; the file is opened
   * once. The error is that of the first. */
  tegula_status (*describe_many)(void *plugin, tegula_plugin_builder *const *builders,
                                 const char *path, const char *const *datasets, int64_t count,
                                 tegula_error *err);
} tegula_plugin;

/* The one symbol that a plugin exports. NULL: another version. */
typedef const tegula_plugin *(*tegula_plugin_entry_fn)(int32_t host_version);
#define TEGULA_PLUGIN_ENTRY "tegula_plugin_entry"

#ifdef __cplusplus
}
#endif

#endif
