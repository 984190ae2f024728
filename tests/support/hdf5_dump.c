/* tegula_hdf5_dump PLUGIN FILE [OPTION=VALUE ...]: what the HDF5 plugin says about a file, as one
 * JSON object.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A host that keeps what it is told and prints it: tests/plugin_hdf5 puts the values together from
 * it, with numpy. Options: dataset=NAME, library=PATH, candidate=PATH (any number), list=1,
 * chunks=0 (their number only), repeat=N (describe N times; the least time is printed). Parts that
 * the plugin reads itself are read, one chunk per call, and printed as hexadecimal bytes. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <tegula/tegula_plugin.h>

struct tegula_plugin_file {
  tegula_plugin_builder *builder;
  int descriptor;
  int64_t size;
  char *path;
};

typedef struct reader {
  tegula_reader_fn read;
  tegula_release_fn release;
  void *state;
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], chunk[TEGULA_MAX_DIMS];
  json_t *part;
  struct reader *next;
} reader;

struct tegula_plugin_builder {
  json_t *out, *files, *grids, *parts;
  int32_t ndim;
  tegula_dtype dtype;
  reader *readers;
  int print_chunks;
};

static long long opens, reads, bytes_read, open_now, most_open;

/* ---- errors ---- */

static tegula_status host_fail(tegula_error *err, tegula_status status, const char *path,
                               int64_t offset, const char *format, ...) {
  if (!err) return status;
  *err = (tegula_error){.status = status, .offset = offset, .rank = -1};
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(err->message, sizeof err->message, format, arguments);
  va_end(arguments);
  if (path) snprintf(err->path, sizeof err->path, "%s", path);
  return status;
}

static tegula_status host_hint(tegula_error *err, tegula_status status, const char *format, ...) {
  if (!err) return status;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(err->hint, sizeof err->hint, format, arguments);
  va_end(arguments);
  return status;
}

/* ---- files ---- */

static tegula_status host_file_open(tegula_plugin_builder *builder, const char *path,
                                    tegula_plugin_file **out, tegula_error *err) {
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  struct stat info;
  if (descriptor < 0 || fstat(descriptor, &info) != 0) {
    tegula_status status = errno == ENOENT   ? TEGULA_NOT_FOUND
                           : errno == EACCES ? TEGULA_PERMISSION
                                             : TEGULA_IO;
    return host_fail(err, status, path, -1, "could not open \"%s\": %s", path, strerror(errno));
  }
  tegula_plugin_file *file = calloc(1, sizeof *file);
  *file = (tegula_plugin_file){builder, descriptor, info.st_size, strdup(path)};
  opens++;
  open_now++;
  if (open_now > most_open) most_open = open_now;
  *out = file;
  return TEGULA_OK;
}

static void host_file_close(tegula_plugin_file *file) {
  close(file->descriptor);
  free(file->path);
  free(file);
  open_now--;
}

static tegula_status host_file_read(tegula_plugin_file *file, int64_t offset, void *out,
                                    size_t size, tegula_error *err) {
  ssize_t got = pread(file->descriptor, out, size, offset);
  reads++;
  bytes_read += got > 0 ? got : 0;
  if (got == (ssize_t)size) return TEGULA_OK;
  return host_fail(err, TEGULA_SHORT_FILE, file->path, offset, "expected %zu bytes, found %zd",
                   size, got);
}

static tegula_status host_file_check(tegula_plugin_file *file, tegula_error *err) {
  struct stat info;
  if (fstat(file->descriptor, &info) == 0 && info.st_size == file->size) return TEGULA_OK;
  return host_fail(err, TEGULA_CHANGED, file->path, -1, "\"%s\" changed", file->path);
}

static bool host_file_locked(const tegula_plugin_file *file) {
  (void)file;
  return false;
}

static int64_t host_file_size(const tegula_plugin_file *file) { return file->size; }
static const char *host_file_path(const tegula_plugin_file *file) { return file->path; }

/* ---- the description ---- */

static json_t *numbers(const int64_t *values, int32_t count) {
  json_t *out = json_array();
  for (int32_t k = 0; k < count; k++) json_array_append_new(out, json_integer(values[k]));
  return out;
}

static json_t *hexadecimal(const void *value, size_t size) {
  if (!value) return json_null();
  char *text = malloc(2 * size + 1);
  for (size_t k = 0; k < size; k++)
    snprintf(text + 2 * k, 3, "%02x", ((const unsigned char *)value)[k]);
  text[2 * size] = 0;
  json_t *out = json_string(text);
  free(text);
  return out;
}

static tegula_status host_set_array(tegula_plugin_builder *b, const char *name, tegula_dtype dtype,
                                    int32_t ndim, const int64_t *shape, tegula_error *err) {
  (void)err;
  char text[64];
  snprintf(text, sizeof text, "%c%c%u", dtype.order, dtype.kind, dtype.item_size);
  b->ndim = ndim;
  b->dtype = dtype;
  json_object_set_new(b->out, "name", json_string(name));
  json_object_set_new(b->out, "dtype", json_string(text));
  json_object_set_new(b->out, "shape", numbers(shape, ndim));
  return TEGULA_OK;
}

static tegula_status host_set_fill(tegula_plugin_builder *b, const void *value, tegula_error *err) {
  (void)err;
  json_object_set_new(b->out, "fill", hexadecimal(value, b->dtype.item_size));
  return TEGULA_OK;
}

/* Values are judged where they are loaded. */
static tegula_status host_set_texts(tegula_plugin_builder *b, const tegula_plugin_text *texts,
                                    int64_t count, tegula_error *err) {
  (void)b, (void)texts, (void)count, (void)err;
  return TEGULA_OK;
}

static tegula_status host_set_record(tegula_plugin_builder *b, const char *descr,
                                     const char *refused, tegula_error *err) {
  (void)err;
  json_object_set_new(b->out, "descr", json_string(descr));
  json_object_set_new(b->out, "refused", refused ? json_string(refused) : json_null());
  return TEGULA_OK;
}

static tegula_status host_add_file(tegula_plugin_builder *b, const tegula_plugin_file *file,
                                   int64_t *number, tegula_error *err) {
  (void)err;
  size_t count = json_array_size(b->files);
  for (*number = 0; *number < (int64_t)count; ++*number)
    if (strcmp(json_string_value(json_array_get(b->files, (size_t)*number)), file->path) == 0)
      return TEGULA_OK;
  json_array_append_new(b->files, json_string(file->path));
  return TEGULA_OK;
}

static json_t *add_part(tegula_plugin_builder *b, const char *kind, const int64_t *lo,
                        const int64_t *hi) {
  json_t *part = json_pack("{s:s}", "kind", kind);
  json_object_set_new(part, "lo", numbers(lo, b->ndim));
  json_object_set_new(part, "hi", numbers(hi, b->ndim));
  json_array_append_new(b->parts, part);
  return part;
}

static tegula_status host_add_dense(tegula_plugin_builder *b, int64_t file, int64_t offset,
                                    const int64_t *lo, const int64_t *hi,
                                    const int64_t *byte_stride, char order, tegula_error *err) {
  (void)err;
  json_t *part = add_part(b, "dense", lo, hi);
  json_object_set_new(part, "file", json_integer(file));
  json_object_set_new(part, "offset", json_integer(offset));
  json_object_set_new(part, "strides", numbers(byte_stride, b->ndim));
  json_object_set_new(part, "order", json_sprintf("%c", order));
  return TEGULA_OK;
}

static tegula_status host_add_grid(tegula_plugin_builder *b, int64_t file, int64_t chunk_bytes,
                                   char order, const tegula_plugin_filter *filters,
                                   int32_t filter_count, const void *fill, int64_t slots,
                                   int64_t count, uint64_t *coordinates,
                                   tegula_plugin_chunk *chunks, int64_t *grid, tegula_error *err) {
  (void)err;
  json_t *out =
      json_pack("{s:I,s:I,s:I,s:I}", "file", (json_int_t)file, "chunk_bytes",
                (json_int_t)chunk_bytes, "slots", (json_int_t)slots, "count", (json_int_t)count);
  json_t *chain = json_array(), *table = json_array(),
         *where = coordinates ? json_array() : json_null();
  for (int32_t k = 0; k < filter_count; k++) {
    json_t *filter = json_pack("[s]", filters[k].codec);
    for (int32_t j = 0; j < filters[k].param_count; j++)
      json_array_append_new(filter, json_integer(filters[k].params[j]));
    json_array_append_new(chain, filter);
  }
  for (int64_t k = 0; k < count && b->print_chunks; k++) {
    json_array_append_new(table,
                          json_pack("[I,I,I]", (json_int_t)chunks[k].offset,
                                    (json_int_t)chunks[k].length, (json_int_t)chunks[k].mask));
    if (coordinates) json_array_append_new(where, json_integer((json_int_t)coordinates[k]));
  }
  json_object_set_new(out, "order", json_sprintf("%c", order));
  json_object_set_new(out, "fill", hexadecimal(fill, b->dtype.item_size));
  json_object_set_new(out, "filters", chain);
  json_object_set_new(out, "chunks", table);
  json_object_set_new(out, "coordinates", where);
  *grid = (int64_t)json_array_size(b->grids);
  json_array_append_new(b->grids, out);
  free(coordinates);
  free(chunks);
  return TEGULA_OK;
}

static tegula_status host_mark_slices(tegula_plugin_builder *b, int64_t grid, tegula_error *err) {
  (void)err;
  json_object_set_new(json_array_get(b->grids, (size_t)grid), "slices", json_true());
  return TEGULA_OK;
}

static tegula_status host_add_chunked(tegula_plugin_builder *b, int64_t grid,
                                      const tegula_plugin_chunked *p, tegula_error *err) {
  (void)err;
  json_t *part = add_part(b, "chunked", p->lo, p->hi);
  json_object_set_new(part, "grid", json_integer(grid));
  json_object_set_new(part, "start", numbers(p->start, b->ndim));
  json_object_set_new(part, "chunk", numbers(p->chunk, b->ndim));
  json_object_set_new(part, "slot_stride", numbers(p->slot_stride, b->ndim));
  json_object_set_new(part, "byte_stride", numbers(p->byte_stride, b->ndim));
  json_object_set_new(part, "slot_base", json_integer(p->slot_base));
  json_object_set_new(part, "byte_base", json_integer(p->byte_base));
  return TEGULA_OK;
}

static tegula_status host_add_fill(tegula_plugin_builder *b, const int64_t *lo, const int64_t *hi,
                                   const void *fill, tegula_error *err) {
  (void)err;
  json_object_set_new(add_part(b, "fill", lo, hi), "fill", hexadecimal(fill, b->dtype.item_size));
  return TEGULA_OK;
}

static tegula_status host_add_lost(tegula_plugin_builder *b, const int64_t *lo, const int64_t *hi,
                                   const void *fill, tegula_status status, int32_t os_errno,
                                   const char *text, const char *path, tegula_error *err) {
  (void)err;
  json_t *part = add_part(b, "lost", lo, hi);
  json_object_set_new(part, "fill", hexadecimal(fill, b->dtype.item_size));
  json_object_set_new(part, "status", json_string(tegula_status_name(status)));
  json_object_set_new(part, "errno", json_integer(os_errno));
  json_object_set_new(part, "text", json_string(text));
  json_object_set_new(part, "path", path ? json_string(path) : json_null());
  return TEGULA_OK;
}

static tegula_status host_add_reader(tegula_plugin_builder *b, const int64_t *lo, const int64_t *hi,
                                     const int64_t *chunk, int64_t cost_bytes, const char *why,
                                     tegula_reader_fn read, void *state, tegula_release_fn release,
                                     tegula_error *err) {
  (void)err;
  reader *r = calloc(1, sizeof *r);
  *r = (reader){.read = read,
                .release = release,
                .state = state,
                .next = b->readers,
                .part = add_part(b, "reader", lo, hi)};
  json_object_set_new(r->part, "cost", json_integer(cost_bytes));
  json_object_set_new(r->part, "why", json_string(why));
  for (int32_t k = 0; k < b->ndim; k++) {
    r->lo[k] = lo[k];
    r->hi[k] = hi[k];
    r->chunk[k] = chunk ? chunk[k] : hi[k] - lo[k];
  }
  b->readers = r;
  return TEGULA_OK;
}

static void *host_allocate(size_t size) { return malloc(size); }
static void host_release(void *memory) { free(memory); }

static const tegula_plugin_host HOST = {
    .struct_size = sizeof HOST,
    .version = TEGULA_PLUGIN_VERSION,
    .fail = host_fail,
    .dtype_parse = tegula_dtype_parse,
    .dtype_format = tegula_dtype_format,
    .hint = host_hint,
    .file_open = host_file_open,
    .file_close = host_file_close,
    .file_read = host_file_read,
    .file_check = host_file_check,
    .file_locked = host_file_locked,
    .file_size = host_file_size,
    .file_path = host_file_path,
    .set_array = host_set_array,
    .set_fill = host_set_fill,
    .set_record = host_set_record,
    .set_texts = host_set_texts,
    .add_file = host_add_file,
    .add_dense = host_add_dense,
    .add_grid = host_add_grid,
    .add_chunked = host_add_chunked,
    .add_fill = host_add_fill,
    .add_lost = host_add_lost,
    .add_reader = host_add_reader,
    .allocate = host_allocate,
    .release = host_release,
    .mark_slices = host_mark_slices,
};

/* ---- readers ---- */

/* Reads the part into C order, each call one chunk of it, so most calls get strides. */
static tegula_status read_part(tegula_plugin_builder *b, reader *r, tegula_error *err) {
  int64_t strides[TEGULA_MAX_DIMS], total = b->dtype.item_size, at[TEGULA_MAX_DIMS];
  for (int32_t k = b->ndim - 1; k >= 0; k--) {
    strides[k] = total;
    total *= r->hi[k] - r->lo[k];
    at[k] = r->lo[k];
  }
  char *out = malloc((size_t)total);
  tegula_status status = TEGULA_OK;
  for (int32_t k = 0; status == TEGULA_OK && k >= 0;) {
    tegula_view view = {.data = out,
                        .dtype = b->dtype,
                        .device_type = TEGULA_DEVICE_HOST,
                        .box = {.ndim = b->ndim}};
    for (int32_t a = 0; a < b->ndim; a++) {
      view.box.lo[a] = at[a];
      view.box.hi[a] = at[a] + r->chunk[a] < r->hi[a] ? at[a] + r->chunk[a] : r->hi[a];
      view.stride_bytes[a] = strides[a];
      view.data = (char *)view.data + (at[a] - r->lo[a]) * strides[a];
    }
    status = r->read(r->state, &view, err);
    for (k = b->ndim - 1; k >= 0; k--) {
      if ((at[k] += r->chunk[k]) < r->hi[k]) break;
      at[k] = r->lo[k];
    }
  }
  if (status == TEGULA_OK) json_object_set_new(r->part, "data", hexadecimal(out, (size_t)total));
  free(out);
  return status;
}

static void free_builder(tegula_plugin_builder *b) {
  for (reader *r = b->readers, *next; r; r = next) {
    next = r->next;
    r->release(r->state);
    free(r);
  }
  json_decref(b->out);
}

/* ---- the program ---- */

static double now(void) { /* of this process: others do not count */
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static tegula_status print_entry(void *state, const tegula_plugin_entry_info *e,
                                 tegula_error *err) {
  (void)err;
  json_t *entry =
      json_pack("{s:s,s:s?,s:s?,s:s,s:I}", "name", e->name, "dtype", e->dtype, "refused",
                e->refused, "codecs", e->codecs, "stored_bytes", (json_int_t)e->stored_bytes);
  json_object_set_new(entry, "shape", numbers(e->shape, e->ndim));
  json_object_set_new(entry, "chunk", e->chunk ? numbers(e->chunk, e->ndim) : json_null());
  json_array_append_new(state, entry);
  return TEGULA_OK;
}

static void builder_init(tegula_plugin_builder *b, int print_chunks) {
  *b = (tegula_plugin_builder){.out = json_object(),
                               .files = json_array(),
                               .grids = json_array(),
                               .parts = json_array(),
                               .print_chunks = print_chunks};
  json_object_set_new(b->out, "files", b->files);
  json_object_set_new(b->out, "grids", b->grids);
  json_object_set_new(b->out, "parts", b->parts);
}

typedef struct arguments {
  const char *plugin, *file, *dataset;
  tegula_plugin_options options;
  const char *candidates[32];
  int count, list, chunks, repeat;
} arguments;

static void parse(int argc, char **argv, arguments *out) {
  *out = (arguments){.plugin = argv[1],
                     .file = argv[2],
                     .chunks = 1,
                     .repeat = 1,
                     .options = {.struct_size = sizeof out->options}};
  for (int k = 3; k < argc; k++) {
    const char *value = strchr(argv[k], '=');
    if (!value) continue;
    size_t length = (size_t)(value++ - argv[k]);
    if (strncmp(argv[k], "dataset", length) == 0) out->dataset = value;
    if (strncmp(argv[k], "library", length) == 0) out->options.library = value;
    if (strncmp(argv[k], "candidate", length) == 0 && out->count < 31)
      out->candidates[out->count++] = value;
    if (strncmp(argv[k], "list", length) == 0) out->list = atoi(value);
    if (strncmp(argv[k], "chunks", length) == 0) out->chunks = atoi(value);
    if (strncmp(argv[k], "repeat", length) == 0) out->repeat = atoi(value);
  }
  out->options.candidates = out->candidates;
}

static tegula_status run(const arguments *a, const tegula_plugin *plugin, void *state,
                         tegula_plugin_builder *b, tegula_error *err) {
  tegula_status status = TEGULA_OK;
  double least = 1e9;
  if (a->list) {
    json_t *entries = json_array();
    json_object_set_new(b->out, "datasets", entries);
    return plugin->list(state, b, a->file, print_entry, entries, err);
  }
  for (int k = 0; status == TEGULA_OK && k < a->repeat; k++) {
    free_builder(b);
    builder_init(b, a->chunks);
    double start = now();
    status = plugin->describe(state, b, a->file, a->dataset, err);
    double seconds = now() - start;
    least = seconds < least ? seconds : least;
  }
  json_object_set_new(b->out, "seconds", json_real(least));
  json_object_set_new(b->out, "described_opens", json_integer(opens));
  json_object_set_new(b->out, "described_reads", json_integer(reads));
  for (reader *r = b->readers; status == TEGULA_OK && r; r = r->next) status = read_part(b, r, err);
  return status;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  arguments a;
  parse(argc, argv, &a);
  void *handle = dlopen(a.plugin, RTLD_NOW | RTLD_LOCAL);
  tegula_plugin_entry_fn entry;
  if (!handle || !(*(void **)&entry = dlsym(handle, TEGULA_PLUGIN_ENTRY))) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  const tegula_plugin *plugin = entry(TEGULA_PLUGIN_VERSION);
  void *state = NULL;
  tegula_error err = {.offset = -1};
  tegula_plugin_builder b;
  builder_init(&b, a.chunks);
  tegula_status status = plugin->open(&HOST, &a.options, &state, &err);
  if (status == TEGULA_OK) {
    status = run(&a, plugin, state, &b, &err);
    json_object_set_new(b.out, "library", json_string(plugin->library(state)));
  }
  if (status != TEGULA_OK)
    json_object_set_new(b.out, "error",
                        json_pack("{s:s,s:s,s:s,s:s}", "status", tegula_status_name(err.status),
                                  "message", err.message, "hint", err.hint, "path", err.path));
  json_object_set_new(b.out, "opens", json_integer(opens));
  json_object_set_new(b.out, "bytes_read", json_integer(bytes_read));
  json_object_set_new(b.out, "most_open", json_integer(most_open));
  json_t *printed = json_incref(b.out);
  free_builder(&b);
  json_object_set_new(printed, "left_open", json_integer(open_now));
  json_dumpf(printed, stdout, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
  json_decref(printed);
  if (state) plugin->close(state);
  return status == TEGULA_OK ? 0 : 1;
}
