/* Opens one file of a set, and lets its format describe it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each file costs one open, one fstat and one read unless its header is longer than HEAD_BYTES. All
 * of it runs on the pool; the error that is reported is that of the first file in order, whatever
 * thread met which first. Where headers are deferred, all files but the first cost a look at their
 * size. */

#include "discover/discover_priv.h"

/* ---- progress ---- */

#define PROGRESS_SECONDS 0.05

/* Before each file. Tells the caller, at most every PROGRESS_SECONDS and never from two threads at
 * once; false when it wants no more. */
static bool go_on(tegula__describe_job *job) {
  const tegula__discover_options *options = job->options;
  if (options->progress != NULL && !atomic_load(&job->cancelled) &&
      pthread_mutex_trylock(&job->progress_lock) == 0) {
    double now = tegula__now();
    if (now >= job->progress_next) {
      job->progress_next = now + PROGRESS_SECONDS;
      if (options->progress(options->progress_state, atomic_load(&job->done), job->count) != 0)
        atomic_store(&job->cancelled, true);
    }
    pthread_mutex_unlock(&job->progress_lock);
  }
  return !atomic_load(&job->cancelled);
}

tegula_status tegula__describe_check_cancelled(const tegula__describe_job *job, tegula_error *err) {
  if (!atomic_load(&job->cancelled)) return TEGULA_OK;
  return tegula__fail(err, TEGULA_CANCELLED, NULL, -1,
                      "cancelled after describing %lld of %lld files",
                      (long long)atomic_load(&job->done), (long long)job->count);
}

/* ---- one file ---- */

static tegula_status read_file(const tegula__source *source, int64_t offset, void *out, size_t size,
                               tegula_error *err) {
  const tegula__open_file *file = source->state;
  return tegula__io_read(file->fd, source->path, offset, out, size, file->counts, err);
}

static bool is_locked(const tegula__source *source) {
  const tegula__open_file *file = source->state;
  return tegula__io_locked(file->fd);
}

tegula_status tegula__describe_side_problem(const tegula__describe_job *job, tegula_error *err) {
  if (job->side.problem.status != TEGULA_OK && err != NULL) *err = job->side.problem;
  return job->side.problem.status;
}

/* Where a dtype is given, other formats may be read as raw: people skip their headers. */
static tegula_status check_foreign(const tegula__source *source, bool has_dtype,
                                   tegula_error *err) {
  const tegula__foreign *foreign =
      tegula__format_foreign(source->head, source->head_size, has_dtype);
  if (foreign == NULL) return TEGULA_OK;
  tegula_status status = tegula__fail(err, TEGULA_UNSUPPORTED, source->path, -1,
                                      "cannot load \"%s\": it is %s", source->path, foreign->is);
  return tegula__hint(err, status, "%s%s", foreign->hint,
                      has_dtype ? "; say format raw if its bytes are wanted as they are" : "");
}

/* By content first. A file that is named like a format but does not begin like it goes to that
 * format, which says what is wrong with it: a cut file must not pass for raw data. Where a dtype is
 * given, what is behind the first bytes is looked at in the first file alone: others follow it. */
static tegula_status choose_format(const tegula__describe_job *job, const tegula__source *source,
                                   bool first, const tegula__format **out, tegula_error *err) {
  bool has_dtype =
      job->options->describe.has_dtype || (job->side.file != NULL && job->side.file->has_dtype);
  *out = tegula__format_by_content(source->head, source->head_size);
  if (*out == NULL && (first || !has_dtype)) FORWARD(tegula__format_by_rest(source, out, err));
  if (*out == NULL) FORWARD(check_foreign(source, has_dtype, err));
  if (*out == NULL) *out = tegula__format_by_suffix(source->path);
  bool raw = *out == NULL || *out == &tegula__format_raw;
  if (raw && has_dtype) *out = &tegula__format_raw;
  if (*out != NULL && (!raw || has_dtype)) return TEGULA_OK;
  FORWARD(tegula__describe_side_problem(job, err));
  char names[128];
  tegula__format_names(names, sizeof names);
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_UNSUPPORTED, source->path, -1,
                                   "the format of \"%s\" is not known from its content",
                                   source->path),
                      "known formats: %s; raw needs to be told the dtype, as an option or "
                      "in " TEGULA__SIDE_FILE_NAME " beside it",
                      names);
}

/* When raw files are not as they were described, the side file may be why. */
static tegula_status doubt_side_file(const tegula__describe_job *job, const tegula_error *found,
                                     tegula_error *err) {
  const char *side_path = job->side.file->path;
  const tegula__describe_options *asked = &job->options->describe;
  *err = *found;
  if (found->status == TEGULA_SHORT_FILE || found->status == TEGULA_CORRUPT)
    return tegula__hint(err, found->status, "the file was cut, or \"%s\" is not what was written",
                        side_path);
  if (found->status != TEGULA_INVALID_ARGUMENT || asked->shape_ndim >= 0 || asked->row_ndim >= 0)
    return found->status;
  tegula__fail(err, TEGULA_CORRUPT, side_path, -1, "\"%s\" contradicts itself: %.700s", side_path,
               found->message);
  return tegula__hint(err, TEGULA_CORRUPT, "%s", found->hint);
}

/* Raw files are what the caller and the side file say; a side file that says something wrong must
 * not be passed over. */
static tegula_status describe_raw(const tegula__describe_job *job, const tegula__source *source,
                                  int64_t index, tegula__manifest *shard, tegula_error *err) {
  const tegula__side *side = &job->side;
  int64_t shape[TEGULA_MAX_DIMS];
  tegula__describe_options options;
  FORWARD(tegula__describe_side_problem(job, err));
  if (side->file == NULL)
    return tegula__format_raw.describe(source, &job->options->describe, shard, err);
  /* else each file may find a wrong entry */
  FORWARD(tegula__side_file_check_names(side->file, NULL, 0, false, side->total, err));
  FORWARD(tegula__side_file_options(side->file, &job->options->describe, source->path,
                                    side->places != NULL ? side->places[index] : index,
                                    side->whole && job->count == 1, shape, &options, err));
  tegula_error found;
  return tegula__format_raw.describe(source, &options, shard, &found) == TEGULA_OK
             ? TEGULA_OK
             : doubt_side_file(job, &found, err);
}

tegula_status tegula__describe_look_at(const tegula__describe_job *job, int64_t index,
                                       tegula__open_file *state,
                                       unsigned char head[TEGULA__HEAD_BYTES],
                                       tegula__source *source, const tegula__format **format,
                                       tegula_error *err) {
  const tegula__file *file = &job->files[index];
  *source = (tegula__source){.path = file->path,
                             .size = file->stamp.size,
                             .read = read_file,
                             .locked = is_locked,
                             .state = state,
                             .stamp = &file->stamp,
                             .store = &job->store,
                             .head = head};
  *format = job->format;
  if (*format == NULL || *format != &tegula__format_raw) {
    source->head_size = (size_t)tegula__min(TEGULA__HEAD_BYTES, source->size);
    FORWARD(tegula__io_read(state->fd, file->path, 0, head, source->head_size, job->counts, err));
  }
  return *format == NULL ? choose_format(job, source, index == 0, format, err) : TEGULA_OK;
}

static tegula_status describe_open(const tegula__describe_job *job, int64_t index, int fd,
                                   tegula_error *err) {
  unsigned char head[TEGULA__HEAD_BYTES];
  tegula__open_file state = {fd, job->counts};
  tegula__source source;
  const tegula__format *format;
  FORWARD(tegula__describe_look_at(job, index, &state, head, &source, &format, err));
  tegula__manifest *shard = &job->shards[index];
  shard->format = format->name;
  FORWARD(tegula__settings_check_format(&job->options->describe.settings, format->name, source.path,
                                        err));
  if (format == &tegula__format_raw) return describe_raw(job, &source, index, shard, err);
  FORWARD(tegula__describe_datasets(format, &source, &job->options->describe, shard, err));
  if (format->list == NULL) return TEGULA_OK; /* one read is no mixture, and a load looks again */
  return tegula__file_set_finish(job->set, index, fd, false, job->counts, err);
}

tegula_status tegula__describe_unless_changed(const tegula__describe_job *job, int64_t index,
                                              int fd, tegula_status status, tegula_error *err) {
  if (status == TEGULA_OK || status == TEGULA_OUT_OF_MEMORY || status == TEGULA_IO) return status;
  tegula_error changed;
  if (tegula__file_set_finish(job->set, index, fd, false, job->counts, &changed) != TEGULA_CHANGED)
    return status;
  if (err != NULL) *err = changed;
  return TEGULA_CHANGED;
}

static tegula_status describe_file(tegula__describe_job *job, int64_t index, tegula_error *err) {
  int fd;
  FORWARD(tegula__file_set_acquire(job->set, index, job->counts, &fd, err));
  tegula_status status =
      tegula__describe_unless_changed(job, index, fd, describe_open(job, index, fd, err), err);
  tegula__file_set_release(job->set, index);
  return status;
}

/* Of raw files only the size counts. */
static tegula_status describe_unopened(tegula__describe_job *job, int64_t index,
                                       tegula_error *err) {
  FORWARD(tegula__file_set_stat(job->set, index, job->counts, err));
  return describe_open(job, index, -1, err);
}

/* True where raw files are described by their size alone. */
static bool by_size(const tegula__describe_job *job) {
  const char *key = "raw.record_markers";
  tegula__settings besides = {0};
  if (job->side.file != NULL)
    besides = (tegula__settings){job->side.file->settings, job->side.file->setting_count};
  return job->format == &tegula__format_raw &&
         tegula__settings_find(&job->options->describe.settings, key) == NULL &&
         tegula__settings_find(&besides, key) == NULL;
}

void tegula__describe_one(void *state, int32_t worker, int64_t index) {
  (void)worker;
  tegula__describe_job *job = state;
  if (!tegula__first_error_wanted(job->first_error, index) || !go_on(job)) return;
  tegula_error error;
  tegula_status status = job->options->defer_headers && by_size(job)
                             ? describe_unopened(job, index, &error)
                             : describe_file(job, index, &error);
  atomic_fetch_add(&job->done, 1);
  if (status != TEGULA_OK) tegula__first_error_set(job->first_error, index, status, &error);
}

void tegula__describe_predicted(void *state, int32_t worker, int64_t item) {
  tegula__describe_job *job = state;
  int64_t index = item + 1;
  if (!tegula__first_error_wanted(job->first_error, index) || !go_on(job)) return;
  tegula_error error;
  tegula_status status = TEGULA_OK;
  if (job->alike) status = tegula__file_set_stat(job->set, index, job->counts, &error);
  if (job->alike && status == TEGULA_OK)
    status = tegula__predict(&job->shards[0], job->files[index].stamp.size, &job->shards[index],
                             &job->files[index].predicted, &error);
  if (status != TEGULA_OK)
    tegula__first_error_set(job->first_error, index, status, &error);
  else if (!job->files[index].predicted)
    tegula__describe_one(job, worker, index);
  else
    atomic_fetch_add(&job->done, 1);
}
