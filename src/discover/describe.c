/* Opens the files of a set, lets their format describe each, and joins what comes out.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each file costs one open, one fstat and one read unless its header is longer than HEAD_BYTES. All
 * of it runs on the pool; the error that is reported is that of the first file in order, whatever
 * thread met which first. Where headers are deferred, all files but the first cost a look at their
 * size. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "discover/discover.h"

enum {
  TURNS = 7 /* more tries where files were replaced meanwhile */,
  PAUSE_NS = 500000 /* before the first of them */
};

typedef struct describe_job {
  const tegula__discover_options *options;
  const tegula__format *format; /* the user's word, or NULL */
  tegula__folders *folders;     /* from which files are opened */
  bool held;                    /* those of the job, too: else it is one, opened by its path */
  tegula__side side;            /* what lies beside the files */
  tegula__store store;
  tegula__file *files; /* paths of the job until they move into the shards */
  int64_t count;
  tegula__file_set *set;
  tegula__manifest *shards;
  tegula__first_error *first_error;
  tegula__io_counts *counts;
  tegula__handles *handles;
  bool whole;  /* the files are all of a folder */
  bool listed; /* found by their names */
  bool others; /* the files speak of others */
  bool alike;  /* what the other files hold can be foretold from the first */
  _Atomic int64_t done;
  _Atomic bool cancelled;
  pthread_mutex_t progress_lock;
  double progress_next;
} describe_job;

/* ---- progress ---- */

#define PROGRESS_SECONDS 0.05

/* Before each file. Tells the caller, at most every PROGRESS_SECONDS and never from two threads at
 * once; false when it wants no more. */
static bool go_on(describe_job *job) {
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

static tegula_status check_cancelled(const describe_job *job, tegula_error *err) {
  if (!atomic_load(&job->cancelled)) return TEGULA_OK;
  return tegula__fail(err, TEGULA_CANCELLED, NULL, -1,
                      "cancelled after describing %lld of %lld files",
                      (long long)atomic_load(&job->done), (long long)job->count);
}

/* ---- one file ---- */

typedef struct open_file {
  int fd;
  tegula__io_counts *counts;
} open_file;

static tegula_status read_file(const tegula__source *source, int64_t offset, void *out, size_t size,
                               tegula_error *err) {
  const open_file *file = source->state;
  return tegula__io_read(file->fd, source->path, offset, out, size, file->counts, err);
}

static bool is_locked(const tegula__source *source) {
  const open_file *file = source->state;
  return tegula__io_locked(file->fd);
}

static tegula_status side_problem(const describe_job *job, tegula_error *err) {
  if (job->side.problem.status != TEGULA_OK && err != NULL) *err = job->side.problem;
  return job->side.problem.status;
}

/* A file that is named like a format but does not begin like it goes to that format, which says
 * what is wrong with it: a cut file must not pass for raw data. */
static tegula_status choose_format(const describe_job *job, const tegula__source *source,
                                   const tegula__format **out, tegula_error *err) {
  *out = tegula__format_by_content(source->head, source->head_size);
  if (*out == NULL) *out = tegula__format_by_suffix(source->path);
  bool raw = *out == NULL || *out == &tegula__format_raw;
  bool has_dtype =
      job->options->describe.has_dtype || (job->side.file != NULL && job->side.file->has_dtype);
  if (raw && has_dtype) *out = &tegula__format_raw;
  if (*out != NULL && (!raw || has_dtype)) return TEGULA_OK;
  FORWARD(side_problem(job, err));
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
static tegula_status doubt_side_file(const describe_job *job, const tegula_error *found,
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
static tegula_status describe_raw(const describe_job *job, const tegula__source *source,
                                  int64_t index, tegula__manifest *shard, tegula_error *err) {
  const tegula__side *side = &job->side;
  int64_t shape[TEGULA_MAX_DIMS];
  tegula__describe_options options;
  FORWARD(side_problem(job, err));
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

/* The file as drivers see it, and its format. `state` and `head` are what the source works with. */
static tegula_status look_at(const describe_job *job, int64_t index, open_file *state,
                             unsigned char head[TEGULA__HEAD_BYTES], tegula__source *source,
                             const tegula__format **format, tegula_error *err) {
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
  return *format == NULL ? choose_format(job, source, format, err) : TEGULA_OK;
}

static tegula_status describe_open(const describe_job *job, int64_t index, int fd,
                                   tegula_error *err) {
  unsigned char head[TEGULA__HEAD_BYTES];
  open_file state = {fd, job->counts};
  tegula__source source;
  const tegula__format *format;
  FORWARD(look_at(job, index, &state, head, &source, &format, err));
  tegula__manifest *shard = &job->shards[index];
  shard->format = format->name;
  if (format == &tegula__format_raw) return describe_raw(job, &source, index, shard, err);
  FORWARD(tegula__describe_datasets(format, &source, &job->options->describe, shard, err));
  if (format->list == NULL) return TEGULA_OK; /* one read is no mixture, and a load looks again */
  return tegula__file_set_finish(job->set, index, fd, false, job->counts, err);
}

/* What was found wrong with a file that is being written to is no news about it: that it changed
 * is. */
static tegula_status unless_changed(const describe_job *job, int64_t index, int fd,
                                    tegula_status status, tegula_error *err) {
  if (status == TEGULA_OK || status == TEGULA_OUT_OF_MEMORY || status == TEGULA_IO) return status;
  tegula_error changed;
  if (tegula__file_set_finish(job->set, index, fd, false, job->counts, &changed) != TEGULA_CHANGED)
    return status;
  if (err != NULL) *err = changed;
  return TEGULA_CHANGED;
}

static tegula_status describe_file(describe_job *job, int64_t index, tegula_error *err) {
  int fd;
  FORWARD(tegula__file_set_acquire(job->set, index, job->counts, &fd, err));
  tegula_status status = unless_changed(job, index, fd, describe_open(job, index, fd, err), err);
  tegula__file_set_release(job->set, index);
  return status;
}

/* Of raw files only the size counts. */
static tegula_status describe_unopened(describe_job *job, int64_t index, tegula_error *err) {
  FORWARD(tegula__file_set_stat(job->set, index, job->counts, err));
  return describe_open(job, index, -1, err);
}

static void describe_one(void *state, int32_t worker, int64_t index) {
  (void)worker;
  describe_job *job = state;
  if (!tegula__first_error_wanted(job->first_error, index) || !go_on(job)) return;
  tegula_error error;
  tegula_status status = job->options->defer_headers && job->format == &tegula__format_raw
                             ? describe_unopened(job, index, &error)
                             : describe_file(job, index, &error);
  atomic_fetch_add(&job->done, 1);
  if (status != TEGULA_OK) tegula__first_error_set(job->first_error, index, status, &error);
}

/* A file like the first one, by its size; any other is described. */
static void predict_one(void *state, int32_t worker, int64_t item) {
  describe_job *job = state;
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
    describe_one(job, worker, index);
  else
    atomic_fetch_add(&job->done, 1);
}

/* ---- all files ---- */

static void describe_all(describe_job *job, tegula__pool *pool) {
  if (!job->options->defer_headers || job->format == &tegula__format_raw) {
    tegula__pool_run_waiting(pool, job->count, describe_one, job);
    return;
  }
  describe_one(job, 0, 0);
  job->alike = tegula__predict_from(&job->shards[0]);
  tegula__pool_run_waiting(pool, job->count - 1, predict_one, job);
}

static tegula_status check_formats(const describe_job *job, tegula_error *err) {
  for (int64_t i = 1; i < job->count; i++) {
    if (job->shards[i].format == job->shards[0].format) continue;
    return tegula__hint(err,
                        tegula__fail(err, TEGULA_MISMATCH, job->files[i].path, -1,
                                     "the format of \"%s\" is %s, but that of \"%s\" is %s",
                                     job->files[i].path, job->shards[i].format, job->files[0].path,
                                     job->shards[0].format),
                        "all files of one array need the same format");
  }
  return TEGULA_OK;
}

/* Files that say themselves what they hold are compared with the side file where it speaks of them:
 * when all of a folder is opened. */
static tegula_status check_side(describe_job *job, tegula_error *err) {
  tegula__side *side = &job->side;
  bool raw = job->shards[0].format == tegula__format_raw.name, own_files = false;
  /* manifests, not shards */
  for (int64_t i = 0; i < job->count; i++) own_files = own_files || job->shards[i].file_count > 0;
  if (own_files || (!raw && !job->whole)) return TEGULA_OK;
  FORWARD(side_problem(job, err));
  if (side->file == NULL) return TEGULA_OK;
  FORWARD(tegula__side_file_check_names(side->file, job->files, job->count, job->whole, side->total,
                                        err));
  return tegula__side_file_check(side->file, job->shards, job->files, side->places, job->count,
                                 side->whole, err);
}

/* Each path moves from the job's table into its shard, unless the shard speaks of files of its
 * own. */
static tegula_status move_files(describe_job *job, bool *others, tegula_error *err) {
  for (int64_t i = 0; i < job->count; i++) {
    if (job->shards[i].file_count > 0) {
      *others = true;
      continue;
    }
    tegula__file *file = malloc(sizeof *file);
    if (file == NULL) return tegula__out_of_memory(err, sizeof *file);
    *file = job->files[i];
    job->shards[i].files = file;
    job->shards[i].file_count = 1;
    job->files[i].path = NULL;
  }
  return TEGULA_OK;
}

static tegula_status check_rows(const tegula__manifest *manifest, int64_t expected,
                                tegula_error *err) {
  if (expected < 0) return TEGULA_OK;
  const char *path = manifest->files[0].path;
  if (manifest->ndim == 0)
    return tegula__fail(err, TEGULA_MISMATCH, path, -1,
                        "expected %lld rows, but \"%s\" holds a scalar", (long long)expected, path);
  if (manifest->shape[0] == expected) return TEGULA_OK;
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_MISMATCH, path, -1,
                                   "expected %lld rows, found %lld in %lld files from \"%s\" on",
                                   (long long)expected, (long long)manifest->shape[0],
                                   (long long)manifest->file_count, path),
                      "a file is missing at the end, or one was written short");
}

static tegula_status check_files(const describe_job *job, const tegula__manifest *manifest,
                                 tegula_error *err) {
  int64_t expected = job->options->expect_files,
          found = manifest->file_count + manifest->late_count;
  if (expected < 0 || found == expected) return TEGULA_OK;
  return tegula__hint(
      err,
      tegula__fail(err, TEGULA_MISMATCH, manifest->files[0].path, -1,
                   "expected %lld files, found %lld from \"%s\" on", (long long)expected,
                   (long long)found, manifest->files[0].path),
      "a file is missing at the end, or one is there that does not belong to the set");
}

/* Another table of files than the one that was described: they are opened when they are needed, and
 * must be those that were described, or recorded by a manifest. */
static tegula_status replace_set(describe_job *job, const tegula__manifest *manifest,
                                 tegula_error *err) {
  tegula__file_set *set = NULL;
  FORWARD(tegula__file_set_create(job->handles, manifest->files, manifest->file_count, false, &set,
                                  err));
  tegula__file_set_stamped(set);
  tegula__file_set_destroy(job->set);
  job->set = set;
  return TEGULA_OK;
}

static tegula_status finish_joined(describe_job *job, tegula__manifest *joined, tegula_error *err) {
  FORWARD(check_files(job, joined, err));
  FORWARD(check_rows(joined, job->options->expect_rows, err));
  FORWARD(tegula__manifest_finish(joined, err));
  if (job->others) return replace_set(job, joined, err);
  tegula__file_set_move(job->set, joined->files);
  return TEGULA_OK;
}

static tegula_status join_all(describe_job *job, tegula__manifest *out, tegula_error *err) {
  tegula__manifest joined;
  FORWARD(check_formats(job, err));
  FORWARD(check_side(job, err));
  FORWARD(move_files(job, &job->others, err));
  tegula__manifest_init(&joined);
  FORWARD(tegula__manifest_join(job->shards, job->count, &joined, err));
  tegula_status status = finish_joined(job, &joined, err);
  if (status == TEGULA_OK)
    *out = joined;
  else
    tegula__manifest_free(&joined);
  return status;
}

static tegula_status check_format(const tegula__discover_options *options,
                                  const tegula__format **format, tegula_error *err) {
  *format = NULL;
  if (options->format == NULL) return TEGULA_OK;
  *format = tegula__format_by_name(options->format);
  if (*format != NULL) return TEGULA_OK;
  char names[128];
  tegula__format_names(names, sizeof names);
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                                   "unknown format \"%.60s\"", options->format),
                      "known formats: %s", names);
}

static void free_job(describe_job *job) {
  pthread_mutex_destroy(&job->progress_lock);
  tegula__file_set_destroy(job->set);
  for (int64_t i = 0; job->shards != NULL && i < job->count; i++)
    tegula__manifest_free(&job->shards[i]);
  for (int64_t i = 0; job->files != NULL && i < job->count; i++) free(job->files[i].path);
  free(job->shards);
  free(job->files);
  tegula__store_free(&job->store);
  tegula__side_free(&job->side);
  tegula__first_error_destroy(job->first_error);
  tegula__folders_destroy(job->folders);
}

/* Takes the paths on success. */
static tegula_status start_job(describe_job *job, tegula__handles *handles, tegula__paths *paths,
                               tegula_error *err) {
  job->count = paths->count;
  job->whole = paths->whole;
  job->listed = paths->listed;
  job->handles = handles;
  job->files = calloc((size_t)job->count, sizeof *job->files);
  job->shards = tegula__realloc_array(NULL, job->count, sizeof *job->shards);
  for (int64_t i = 0; job->shards != NULL && i < job->count; i++)
    tegula__manifest_init(&job->shards[i]);
  job->first_error = tegula__first_error_create();
  if (job->files == NULL || job->shards == NULL || job->first_error == NULL)
    return tegula__out_of_memory(err,
                                 job->count * (int64_t)(sizeof *job->shards + sizeof *job->files));
  FORWARD(tegula__store_create(handles, job->folders, job->counts, &job->store, err));
  FORWARD(tegula__file_set_create(handles, job->files, job->count, false, &job->set, err));
  if (job->held) tegula__file_set_enter(job->set, job->folders);
  for (int64_t i = 0; i < job->count; i++) job->files[i].path = paths->items[i];
  paths->count = 0;
  tegula__paths_free(paths);
  return TEGULA_OK;
}

/* ---- were the files there together? ---- */

static void check_one(void *state, int32_t worker, int64_t index) {
  (void)worker;
  describe_job *job = state;
  tegula_error error;
  if (!tegula__first_error_wanted(job->first_error, index)) return;
  atomic_fetch_add(&job->counts->stats, 1);
  tegula_status status = tegula__folders_check_file(job->folders, job->files[index].path,
                                                    &job->files[index].stamp, &error);
  if (status != TEGULA_OK) tegula__first_error_set(job->first_error, index, status, &error);
}

static bool same_names(const describe_job *job, const tegula__paths *listing) {
  if (listing->count != job->count) return false;
  for (int64_t i = 0; i < job->count; i++)
    if (strcmp(listing->items[i], job->files[i].path) != 0) return false;
  return true;
}

/* Does the path still stand for these files? */
static tegula_status check_listing(const describe_job *job, const tegula__selection *selection,
                                   tegula_error *err) {
  tegula__paths again = {0};
  if (!job->listed) return TEGULA_OK;
  const char *path = selection->paths[0];
  tegula_status status = tegula__paths_find(path, job->folders, &again, err);
  bool same = status == TEGULA_OK && same_names(job, &again);
  tegula__paths_free(&again);
  if (same) return TEGULA_OK;
  if (status == TEGULA_OUT_OF_MEMORY || (status != TEGULA_OK && err != NULL && err->os_errno != 0))
    return status;
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_CHANGED, path, -1,
                                   "the files of \"%s\" changed while they were described", path),
                      "open it again when nothing adds or removes files any more");
}

/* All files were opened, or their sizes looked at, before this. A name that leads to the same file
 * after it did so at this moment, too. */
static tegula_status check_together(describe_job *job, tegula__pool *pool,
                                    const tegula__selection *selection, tegula_error *err) {
  if (!job->held) { /* one file, and what it speaks of */
    if (!tegula__folders_used(job->folders)) return TEGULA_OK;
    FORWARD(
        tegula__folders_check_file(job->folders, job->files[0].path, &job->files[0].stamp, err));
  } else if (!tegula__folders_certain(job->folders)) {
    FORWARD(check_listing(job, selection, err));
    tegula__pool_run_waiting(pool, job->count, check_one, job);
    FORWARD(tegula__first_error_get(job->first_error, err));
  }
  if (!tegula__folders_certain(job->folders))
    FORWARD(tegula__folders_check_notes(job->folders, err));
  return tegula__folders_check_names(job->folders, err);
}

/* The one file of a list, and those that it speaks of. */
static tegula_status check_listed(describe_job *job, tegula_error *err) {
  if (tegula__folders_certain(job->folders)) return tegula__folders_check_names(job->folders, err);
  FORWARD(tegula__folders_check_file(job->folders, job->files[0].path, &job->files[0].stamp, err));
  FORWARD(tegula__folders_check_notes(job->folders, err));
  return tegula__folders_check_names(job->folders, err);
}

static tegula_status look_inside(const tegula__format *format, const tegula__source *source,
                                 const tegula__describe_options *options,
                                 const tegula__inside *wanted, tegula_error *err) {
  if (wanted->within != NULL) return wanted->within(wanted->state, source, options, err);
  if (wanted->attribute != NULL && format->attributes != NULL)
    return format->attributes(source, options, wanted->attribute, wanted->state, err);
  if (wanted->attribute != NULL)
    return tegula__fail(err, TEGULA_UNSUPPORTED, source->path, -1,
                        "\"%s\" has no attributes: it is a file of the format %s", source->path,
                        format->name);
  if (format->list != NULL) return format->list(source, options, wanted->entry, wanted->state, err);
  return tegula__fail(err, TEGULA_UNSUPPORTED, source->path, -1,
                      "\"%s\" holds one array only: it is a file of the format %s", source->path,
                      format->name);
}

static tegula_status list_open(const describe_job *job, int fd, const tegula__inside *wanted,
                               tegula_error *err) {
  unsigned char head[TEGULA__HEAD_BYTES];
  open_file state = {fd, job->counts};
  tegula__source source;
  const tegula__format *format;
  tegula__describe_options options = job->options->describe;
  char **names;
  int64_t count;
  FORWARD(look_at(job, 0, &state, head, &source, &format, err));
  FORWARD(tegula__matching_datasets(format, &source, &options, &names, &count, err));
  if (count > 0) {
    options.dataset = names[0];
    options.others = names + 1;
    options.other_count = count - 1;
  }
  tegula_status status = look_inside(format, &source, &options, wanted, err);
  for (int64_t i = 0; i < count; i++) free(names[i]);
  free(names);
  return status;
}

static tegula_status check_one_file(const tegula__paths *paths, const tegula__inside *wanted,
                                    tegula_error *err) {
  if (paths->count == 1) return TEGULA_OK;
  return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                      "%s are listed of one file, not of %lld",
                      wanted->entry != NULL ? "datasets" : "attributes", (long long)paths->count);
}

static tegula_status check_expected(const describe_job *job, const tegula__stamp *expected,
                                    tegula_error *err) {
  if (expected == NULL || memcmp(expected, &job->files[0].stamp, sizeof *expected) == 0)
    return TEGULA_OK;
  const char *path = job->files[0].path;
  return tegula__hint(
      err, tegula__fail(err, TEGULA_CHANGED, path, -1, "\"%s\" changed while it was in use", path),
      "open it again when nothing writes to it any more");
}

tegula_status tegula__discover_list(tegula__handles *handles, const char *path,
                                    const tegula__discover_options *options,
                                    const tegula__inside *wanted, tegula__io_counts *counts,
                                    tegula_error *err) {
  describe_job job = {.options = options, .counts = counts, .held = true};
  tegula__paths paths = {0};
  tegula_status status;
  int fd;
  FORWARD_WITH(status, check_format(options, &job.format, err));
  FORWARD_WITH(status, tegula__folders_create(&job.folders, err));
  FORWARD_WITH(status, tegula__paths_find(path, job.folders, &paths, err));
  FORWARD_WITH(status, check_one_file(&paths, wanted, err));
  FORWARD_WITH(status, start_job(&job, handles, &paths, err));
  FORWARD_WITH(status, tegula__file_set_acquire(job.set, 0, counts, &fd, err));
  status = check_expected(&job, wanted->expected, err);
  if (status == TEGULA_OK)
    status = unless_changed(&job, 0, fd, list_open(&job, fd, wanted, err), err);
  /* nothing looks at the file again */
  if (status == TEGULA_OK) status = tegula__file_set_finish(job.set, 0, fd, false, counts, err);
  tegula__file_set_release(job.set, 0);
  if (status == TEGULA_OK) status = check_listed(&job, err);
done:
  free_job(&job);
  tegula__paths_free(&paths);
  return status;
}

/* ---- the whole ---- */

static tegula_status copy_paths(const tegula__selection *selection, tegula__paths *out,
                                tegula_error *err) {
  *out = (tegula__paths){.items = calloc((size_t)selection->count, sizeof *out->items),
                         .count = selection->count};
  if (out->items == NULL) {
    out->count = 0;
    return tegula__out_of_memory(err, selection->count * (int64_t)sizeof *out->items);
  }
  for (int64_t i = 0; i < selection->count; i++)
    if ((out->items[i] = strdup(selection->paths[i])) == NULL)
      return tegula__out_of_memory(err, (int64_t)strlen(selection->paths[i]));
  return TEGULA_OK;
}

static tegula_status find_paths(const tegula__selection *selection, tegula__folders *folders,
                                tegula__paths *out, tegula_error *err) {
  FORWARD(selection->count == 1 ? tegula__paths_find(selection->paths[0], folders, out, err)
                                : copy_paths(selection, out, err));
  return selection->check_order ? tegula__names_check_order(selection->paths, selection->count, err)
                                : TEGULA_OK;
}

/* A single file and what lies beside it are one set. */
static tegula_status find_side(describe_job *job, const tegula__paths *paths, tegula_error *err) {
  FORWARD(tegula__side_find(paths, job->held ? job->folders : NULL, &job->side, err));
  if (job->held || (job->side.file == NULL && job->side.problem.status == TEGULA_OK))
    return TEGULA_OK;
  job->held = true;
  tegula__side_free(&job->side);
  return tegula__side_find(paths, job->folders, &job->side, err);
}

static tegula_status describe_set(describe_job *job, tegula__pool *pool, tegula__handles *handles,
                                  const tegula__selection *selection, tegula__paths *paths,
                                  tegula__discovered *out, tegula_error *err) {
  FORWARD(find_paths(selection, job->folders, paths, err));
  /* what lies beside it may tell more */
  bool raw = job->format == &tegula__format_raw || job->options->describe.has_dtype;
  job->held = job->held || paths->count > 1 || paths->listed || raw;
  FORWARD(find_side(job, paths, err));
  FORWARD(start_job(job, handles, paths, err));
  out->first = strdup(job->files[0].path);
  if (out->first == NULL) return tegula__out_of_memory(err, (int64_t)strlen(job->files[0].path));
  describe_all(job, pool);
  FORWARD(tegula__first_error_get(job->first_error, err));
  FORWARD(check_cancelled(job, err));
  FORWARD(check_together(job, pool, selection, err));
  FORWARD(join_all(job, &out->manifest, err));
  tegula__file_set_enter(job->set, NULL);
  out->files = job->set;
  out->others = job->others;
  job->set = NULL;
  return TEGULA_OK;
}

/* Begin again? What is said of files that are being replaced may be wrong for that reason alone. */
static bool may_differ(const describe_job *job, tegula_status status) {
  if (status == TEGULA_OK || status == TEGULA_OUT_OF_MEMORY || status == TEGULA_CANCELLED)
    return false;
  /* one file: it is being written to */
  bool alone = !job->held && !tegula__folders_used(job->folders);
  return !alone && (status == TEGULA_CHANGED || !tegula__folders_untouched(job->folders));
}

static tegula_status discover_once(tegula__pool *pool, tegula__handles *handles,
                                   const tegula__selection *selection,
                                   const tegula__discover_options *options, bool held,
                                   tegula__discovered *out, bool *again, tegula__io_counts *counts,
                                   tegula_error *err) {
  describe_job job = {.options = options,
                      .counts = counts,
                      .held = held,
                      .progress_lock = PTHREAD_MUTEX_INITIALIZER};
  tegula__paths paths = {0};
  tegula_status status;
  *out = (tegula__discovered){.first = NULL};
  FORWARD_WITH(status, check_format(options, &job.format, err));
  FORWARD_WITH(status, tegula__folders_create(&job.folders, err));
  status = describe_set(&job, pool, handles, selection, &paths, out, err);
  *again = may_differ(&job, status);
done:
  free_job(&job);
  tegula__paths_free(&paths);
  if (status != TEGULA_OK) free(out->first);
  return status;
}

/* Is it the failure of the try before? Then it is not one of a moment. */
static bool is_again(const tegula_error *before, tegula_status status, const tegula_error *error) {
  return status != TEGULA_CHANGED && before->status == status &&
         strcmp(before->message, error->message) == 0;
}

tegula_status tegula__discover(tegula__pool *pool, tegula__handles *handles,
                               const tegula__selection *selection,
                               const tegula__discover_options *options, tegula__discovered *out,
                               tegula__io_counts *counts, tegula_error *err) {
  tegula_error before = {.status = TEGULA_OK}, error = {.status = TEGULA_OK};
  for (int turn = 0;; turn++) {
    bool again = false;
    tegula_status status =
        discover_once(pool, handles, selection, options, turn > 0, out, &again, counts, &error);
    if (!again || turn == TURNS || is_again(&before, status, &error)) {
      if (status != TEGULA_OK && err != NULL) *err = error;
      return status;
    }
    before = error;
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS << turn}, NULL);
  }
}
