/* tegula_copy: from a dataset to a save, window by window, the next one read while one is written.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/copy.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "codec/codec.h"

#define USUAL_MEMORY ((int64_t)256 << 20)

/* ---- what the options leave open ---- */

/* Chunk shape and codec of a chunked dataset, where the target is to be chunked too. */
static tegula_status keep_chunks(const tegula__manifest *manifest, tegula__copy_wanted *w,
                                 tegula_error *err) {
  const tegula__part *part = tegula__storage_in_chunks(manifest);
  tegula_save_options *o = &w->save;
  if (part == NULL || (o->layout != NULL && strcmp(o->layout, "chunked") != 0)) return TEGULA_OK;
  if (o->chunk == NULL) {
    o->chunk = part->chunk;
    o->chunk_ndim = manifest->ndim;
  }
  if (o->codec != NULL) return TEGULA_OK;
  if (!tegula__chain_format(part->grid->filters, part->grid->filter_count, &w->codec) ||
      !tegula__buffer_append(&w->codec, "", 1))
    return tegula__out_of_memory(err, 4096);
  o->codec = w->codec.data;
  return TEGULA_OK;
}

static bool is_zero(const void *item, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (((const char *)item)[i] != 0) return false;
  return true;
}

static tegula_status inherit(tegula__copying *c, const char *path, tegula__copy_wanted *w,
                             tegula_error *err) {
  const tegula__manifest *manifest = &c->dataset->manifest;
  const tegula__format *format;
  tegula_save_options *o = &w->save;
  FORWARD(tegula__saving_format(path, o, &format, err));
  bool fill = manifest->fill != NULL && !is_zero(manifest->fill, manifest->dtype.item_size);
  if (manifest->descr != NULL && o->descr == NULL && format == &tegula__format_npy)
    o->descr = manifest->descr;
  if (manifest->descr != NULL && o->descr == NULL)
    tegula__copying_drop(c, TEGULA_DROPPED_DESCR, "fields", NULL,
                         "the format has no records: they are items of bytes");
  if (format->container == NULL) {
    FORWARD(tegula__copying_list_attributes(c, err));
    for (int64_t i = 0; i < o->attribute_count; i++)
      tegula__copying_drop(c, TEGULA_DROPPED_ATTRIBUTES, "attribute", o->attributes[i].name,
                           "the format has no attributes");
    if (fill || o->fill != NULL)
      tegula__copying_drop(c, TEGULA_DROPPED_FILL, "fill value", NULL,
                           "the format has no fill value");
    o->fill = NULL;
    o->attribute_count = 0;
    return TEGULA_OK;
  }
  if (o->dataset == NULL) o->dataset = manifest->name;
  if (o->fill == NULL && fill) o->fill = manifest->fill;
  return keep_chunks(manifest, w, err);
}

static tegula_status check_dropped(const tegula__copying *c, tegula_error *err) {
  if ((c->options.flags & TEGULA_COPY_STRICT) == 0 || c->report.dropped == 0) return TEGULA_OK;
  return tegula__fail(err, TEGULA_MISMATCH, c->path, -1, "\"%s\" cannot hold %s", c->path,
                      c->first_dropped);
}

/* ---- source and target ---- */

static bool same_inode(const struct stat *info, uint64_t device, uint64_t inode) {
  return (uint64_t)info->st_dev == device && (uint64_t)info->st_ino == inode;
}

/* Is the file in the folder? Files of one folder follow each other: `known` is the folder of the
 * last one that was not. */
static bool lies_in(const char *path, const struct stat *folder, const char **known) {
  const char *slash = strrchr(path, '/');
  size_t size = slash != NULL ? (size_t)(slash - path) + 1 : 0;
  struct stat info;
  if (*known != NULL && strncmp(*known, path, size) == 0 && strchr(*known + size, '/') == NULL)
    return false;
  char *parent = size > 0 ? strndup(path, size) : strdup(".");
  bool same = parent != NULL && stat(parent, &info) == 0 &&
              same_inode(&info, (uint64_t)folder->st_dev, (uint64_t)folder->st_ino);
  free(parent);
  *known = path;
  return same;
}

const char *tegula__copying_reads(const tegula__manifest *manifest, const char *path) {
  struct stat info;
  const char *known = NULL;
  if (stat(path, &info) != 0) return NULL;
  for (int64_t i = 0; i < manifest->file_count; i++) {
    const tegula__file *file = &manifest->files[i];
    bool same = S_ISDIR(info.st_mode) ? lies_in(file->path, &info, &known)
                                      : same_inode(&info, file->stamp.device, file->stamp.inode);
    if (same) return file->path;
  }
  return NULL;
}

/* May the target be replaced while the dataset is read, and afterwards? `adds`: its file stays what
 * it is but for one dataset. */
static tegula_status check_target(const tegula__manifest *manifest, const char *path, bool adds,
                                  tegula_error *err) {
  const char *read = adds ? NULL : tegula__copying_reads(manifest, path);
  if (read == NULL) return TEGULA_OK;
  return tegula__hint(
      err,
      tegula__fail(err, TEGULA_INVALID_ARGUMENT, path, -1,
                   "cannot copy \"%s\" to \"%s\": that would replace what is copied", read, path),
      "copy to another name, then rename");
}

/* ---- progress ---- */

int tegula__copying_progress(void *state, int64_t bytes_done, int64_t bytes_total) {
  tegula__copying *c = state;
  (void)bytes_total;
  pthread_mutex_lock(&c->lock);
  c->told = tegula__max(c->told, c->done + bytes_done);
  int stop = c->progress != NULL ? c->progress(c->progress_state, c->told, c->total) : 0;
  pthread_mutex_unlock(&c->lock);
  return stop;
}

/* What is read ahead has no progress of its own. */
static int reading_progress(void *state, int64_t bytes_done, int64_t bytes_total) {
  tegula__copying *c = state;
  (void)bytes_done;
  (void)bytes_total;
  pthread_mutex_lock(&c->lock);
  int stop = c->progress != NULL ? c->progress(c->progress_state, c->told, c->total) : 0;
  pthread_mutex_unlock(&c->lock);
  return stop;
}

/* ---- windows ---- */

struct tegula__copy_reading {
  tegula_op op; /* first: the queue knows this part only */
  tegula__copying *copying;
  tegula_load_options options;
  tegula__tile tile;
  int64_t bytes;
  int64_t lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS], strides[TEGULA_MAX_DIMS];
};

typedef tegula__copy_reading reading;

static tegula_status run_reading(tegula_op *op, tegula_error *err) {
  reading *r = (reading *)op;
  return tegula__dataset_move(r->copying->dataset, &r->tile, 1, &r->options, &r->copying->reading,
                              err);
}

static void release_reading(tegula_op *op) { free(op); }

/* Of several ranks each has its turn. */
static bool next_window(tegula__copying *c) {
  const tegula_comm *comm = c->dataset->context->comm;
  while (tegula__windows_next(&c->windows))
    if (c->turn++ % comm->size == comm->rank) return true;
  return false;
}

tegula_status tegula__copying_read(tegula__copying *c, reading **out, tegula_error *err) {
  const tegula__manifest *manifest = &c->dataset->manifest;
  int32_t ndim = manifest->ndim;
  int64_t extents[TEGULA_MAX_DIMS];
  *out = NULL;
  if (!next_window(c)) return TEGULA_OK;
  reading *r = calloc(1, sizeof *r);
  if (r == NULL) return tegula__out_of_memory(err, sizeof *r);
  r->op.run = run_reading;
  r->op.release = release_reading;
  r->copying = c;
  tegula_load_options_init(&r->options);
  r->options.missing = c->options.missing;
  r->options.progress = reading_progress;
  r->options.progress_state = c;
  tegula__queue_watch(&r->op, &r->options.progress, &r->options.progress_state);
  for (int32_t k = 0; k < ndim; k++) {
    r->lo[k] = c->windows.lo[k];
    r->hi[k] = c->windows.hi[k];
    extents[k] = r->hi[k] - r->lo[k];
  }
  tegula__dense_strides(extents, ndim, manifest->dtype.item_size, 'C', r->strides);
  r->bytes = tegula__box_count(ndim, r->lo, r->hi) * manifest->dtype.item_size;
  r->tile = (tegula__tile){.lo = r->lo,
                           .hi = r->hi,
                           .strides = r->strides,
                           .data = c->blocks[c->report.windows++ % 2].data,
                           .order = manifest->dtype.order};
  tegula_status status = tegula__queue_submit(c->dataset->context->queue, &r->op, err);
  if (status == TEGULA_OK)
    *out = r;
  else
    free(r);
  return status;
}

void tegula__copying_give_up(reading *r) {
  if (r == NULL) return;
  tegula__queue_cancel(&r->op);
  tegula__queue_wait(&r->op, -1, NULL);
  tegula__queue_forget(&r->op);
}

tegula_status tegula__copying_wait(reading *r, const tegula__tile **tile, tegula_error *err) {
  *tile = &r->tile;
  return tegula__queue_wait(&r->op, -1, err);
}

void tegula__copying_done(tegula__copying *c, reading *r) {
  pthread_mutex_lock(&c->lock);
  c->done += r->bytes;
  pthread_mutex_unlock(&c->lock);
  tegula__queue_forget(&r->op);
}

static tegula_status write_window(tegula__copying *c, const tegula__tile *tile, tegula_error *err) {
  return c->ranks != NULL ? tegula__rank_save_move(c->ranks, 0, tile, 1, err)
                          : tegula__saving_move(&c->saving, 0, tile, 1, err);
}

tegula_status tegula__copying_windows(tegula__copying *c, tegula_error *err) {
  reading *now, *next = NULL;
  const tegula__tile *tile;
  FORWARD(tegula__copying_read(c, &now, err));
  while (now != NULL) {
    tegula_status status = tegula__copying_wait(now, &tile, err);
    if (status == TEGULA_OK) status = tegula__copying_read(c, &next, err);
    if (status == TEGULA_OK) status = write_window(c, tile, err);
    tegula__copying_done(c, now);
    if (status != TEGULA_OK) {
      tegula__copying_give_up(next);
      return status;
    }
    now = next;
    next = NULL;
  }
  return TEGULA_OK;
}

/* ---- all of it ---- */

/* Two of them, the staging of reads and the chunks that are encoded share the memory. */
int64_t tegula__copying_window_bytes(const tegula__copying *c) {
  int64_t memory = c->options.memory > 0 ? c->options.memory : USUAL_MEMORY;
  int64_t staging = tegula__staging_budget(c->dataset->context->engine.staging);
  return tegula__max(memory / 4, memory / 2 - tegula__min(memory / 2, staging));
}

tegula_status tegula__copying_make_blocks(tegula__copying *c, tegula_error *err) {
  const tegula__manifest *source = &c->dataset->manifest;
  int64_t largest = tegula__windows_largest(source, c->target, c->most);
  tegula__windows_start(&c->windows, source, c->target, c->most);
  FORWARD(tegula__block_create(largest, &c->blocks[0], err));
  return largest < c->bytes ? tegula__block_create(largest, &c->blocks[1], err) : TEGULA_OK;
}

static tegula_status copy_elements(tegula__copying *c, tegula_error *err) {
  c->target = &c->saving.members[0].manifest;
  c->most = tegula__copying_window_bytes(c);
  tegula_status status = tegula__copying_make_blocks(c, err);
  if (status == TEGULA_OK) status = tegula__copying_windows(c, err);
  tegula__block_free(&c->blocks[0]);
  tegula__block_free(&c->blocks[1]);
  return status;
}

void tegula__copying_note_target(tegula__copying *c) {
  const tegula__member *m = &c->saving.members[0];
  c->report.bytes = c->bytes;
  c->report.files = m->file_count;
  c->report.stored_bytes = m->layout == TEGULA__CHUNKED ? atomic_load(&m->placed) : c->bytes;
}

/* A codec that the options did not name, but the dataset has. */
static tegula_status explain_codec(const tegula__copy_wanted *w, tegula_status status,
                                   tegula_error *err) {
  bool kept = w->codec.size > 1 && w->save.codec == w->codec.data;
  bool about_it =
      status != TEGULA_OK && err != NULL && strstr(err->message, "with the codec") != NULL;
  return kept && about_it
             ? tegula__hint(err, status,
                            "the dataset's codec would be kept: say another one, or none")
             : status;
}

static tegula_status make_tiling(const tegula__copying *c, tegula_tiling **out, tegula_error *err) {
  const tegula__manifest *manifest = &c->dataset->manifest;
  tegula_context *context = c->dataset->context;
  int64_t tiles = c->options.tiles > 0 ? c->options.tiles : tegula_context_threads(context);
  return tegula__tiling_even(manifest->shape, manifest->ndim, 0, tiles, context->comm->size, out,
                             err);
}

tegula_status tegula__copying_prepare(tegula__copying *c, tegula__copy_wanted *w,
                                      tegula_error *err) {
  FORWARD(inherit(c, c->path, w, err));
  FORWARD(check_dropped(c, err));
  FORWARD(make_tiling(c, &w->tiling, err));
  c->wanted = (tegula__wanted){.dtype = c->dataset->manifest.dtype, .tiling = w->tiling};
  FORWARD(explain_codec(w, tegula__copying_begin(c, &w->save, err), err));
  FORWARD(check_dropped(c, err));
  return check_target(&c->dataset->manifest, c->path, c->saving.adds, err);
}

static tegula_status save_copy(tegula__copying *c, tegula__copy_wanted *w, tegula_error *err) {
  tegula__saving *s = &c->saving;
  tegula_status status = tegula__copying_prepare(c, w, err);
  if (!c->begun) return status;
  if (status == TEGULA_OK) status = copy_elements(c, err);
  if (status == TEGULA_OK) tegula__copying_note_target(c);
  if ((c->options.flags & TEGULA_COPY_VERIFY) != 0) {
    s->check = tegula__copying_check;
    s->check_state = c;
  }
  return tegula__saving_end(s, status, err);
}

static tegula_status copy(tegula__copying *c, tegula__copy_wanted *w, tegula_error *err) {
  tegula_statistics *statistics = w->save.statistics;
  FORWARD(tegula__tally_start(&c->reading, statistics, err));
  tegula_dataset *dataset = c->dataset, *view = NULL;
  tegula_status status = tegula__dataset_confirm(dataset, &c->reading.counts, err);
  if (status == TEGULA_OK)
    status = tegula__dataset_view_all(dataset, NULL, &c->reading.counts, &view, err);
  if (status == TEGULA_OK) {
    c->dataset = view;
    status = save_copy(c, w, err);
  }
  c->reading.start = tegula__now(); /* the time is that of the save */
  tegula__tally_end(&c->reading, statistics, offsetof(tegula_statistics, seconds_move));
  c->dataset = dataset;
  tegula_dataset_close(view);
  return status;
}

/* Takes the copy's turn: it reads some places and changes one. */
static tegula_status queue_copy(tegula__copying *c, tegula__copy_wanted *w, tegula_error *err) {
  tegula__places places;
  tegula_op turn;
  FORWARD(tegula__places_of(&c->path, 1, &places, err));
  tegula__queue_enter(
      c->dataset->context->queue, &turn,
      &(tegula__touch){.places = &places, .places_change = true, .reads = &c->dataset->places});
  tegula_status status = copy(c, w, err);
  tegula__queue_leave(&turn);
  tegula__places_free(&places);
  return status;
}

static tegula_status check_options(const tegula_copy_options *o, tegula_error *err) {
  CHECK_ARGUMENT(o->memory >= 0 && o->tiles >= 0, "memory and tiles must not be negative");
  CHECK_ARGUMENT(o->missing <= TEGULA_MISSING_FILL, "missing is none of TEGULA_MISSING_*");
  CHECK_ARGUMENT((o->flags & ~(TEGULA_COPY_VERIFY | TEGULA_COPY_STRICT | TEGULA_COPY_ALONG)) == 0,
                 "a flag is not known");
  return TEGULA_OK;
}

static tegula_status take_options(tegula__copying *c, tegula__copy_wanted *w,
                                  const tegula_save_options *options,
                                  const tegula_copy_options *copy_options,
                                  tegula_copy_report *report, tegula_error *err) {
  FORWARD(tegula__options_copy(&w->save, sizeof w->save, FIRST_SAVE_OPTIONS, options,
                               "tegula_save_options", err));
  FORWARD(tegula__options_copy(&c->options, sizeof c->options, FIRST_COPY_OPTIONS, copy_options,
                               "tegula_copy_options", err));
  FORWARD(check_options(&c->options, err));
  if (report != NULL)
    FORWARD(tegula__info_copy(report, sizeof c->report, FIRST_COPY_REPORT, &c->report,
                              "tegula_copy_report", err));
  c->progress = w->save.progress;
  c->progress_state = w->save.progress_state;
  c->total = (c->options.flags & TEGULA_COPY_VERIFY) != 0 ? 3 * c->bytes : c->bytes;
  w->save.progress = tegula__copying_progress;
  w->save.progress_state = c;
  return TEGULA_OK;
}

tegula_status tegula_copy(tegula_dataset *dataset, const char *path,
                          const tegula_save_options *options,
                          const tegula_copy_options *copy_options, tegula_copy_report *report,
                          tegula_error *err) {
  CHECK_ARGUMENT(dataset != NULL && path != NULL && path[0] != '\0',
                 "the dataset is NULL or the path is empty");
  tegula__copying c = {.dataset = dataset, .path = path};
  tegula__copy_wanted w = {0};
  tegula_save_options_init(&w.save);
  tegula_copy_options_init(&c.options);
  tegula_copy_report_init(&c.report);
  tegula__buffer_init(&w.codec, 4096);
  pthread_mutex_init(&c.lock, NULL);
  const tegula__manifest *manifest = &dataset->manifest;
  /* finish has checked it */
  tegula__shape_bytes(manifest->shape, manifest->ndim, manifest->dtype.item_size, &c.bytes);
  tegula_status status = take_options(&c, &w, options, copy_options, report, err);
  bool known = status == TEGULA_OK;
  if (dataset->context->comm->size > 1)
    status = tegula__copy_on_ranks(&c, &w, status, err);
  else if (known)
    status = queue_copy(&c, &w, err);
  tegula_tiling_destroy(w.tiling);
  tegula__buffer_free(&w.codec);
  pthread_mutex_destroy(&c.lock);
  if (report != NULL && known)
    FORWARD(tegula__info_copy(report, sizeof c.report, FIRST_COPY_REPORT, &c.report,
                              "tegula_copy_report", err));
  return status;
}
