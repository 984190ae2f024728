/* tegula_ranks: opens and loads on ranks as it is told, and writes down what each rank got.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * usage: tegula_ranks OUT PATH [KEY=VALUE...]; @RANK:KEY=VALUE counts on that rank only. Each rank
 * writes OUT/RANK.json: status, message, rank and what else is known, and OUT/RANK.TILE.bin: the
 * bytes of each of its tiles. Steps are comm, open, tiling, array, load, hash, dataset_hash, save,
 * verify, compare, batches.
 *   dataset=NAME, field=NAME, axis=A, tiles=N, grid=A,B, box=LO,LO,LENGTH,LENGTH (of two axes),
 * separate=1, missing=N, deadline=SECONDS, threads=N stop=STEP, kill=STEP, sleep=STEP, pause=STEP:
 * SIGSTOP, SIGKILL, ten minutes or one second in front of a step; fail=STEP: an error of the
 * program's own there injections=FILE: all of it again for each line of the file, RANK PLAN
 * [KEY=VALUE...], with that fault on that rank (-1: on none); each rank writes OUT/RANK.lines, one
 * JSON object for each; counts is what was called until the end of each step self=1: the rank makes
 * a context without the communicator; skip=STEP: leaves a step out save=PATH: saves; format=F,
 * layout=L, chunk=N or A,B, codec=CHAIN, shards=N, durable=1, overwrite=1, group=N: N datasets in
 * one save, in turn contiguous, in plain chunks and with the codec; staging=BYTES pieces=1: piece
 * by piece, with token=1 by the text of the save; abandon=1: given up instead of committed
 *   copy=PATH: copies the dataset instead of saving the array, with memory=BYTES, readback=1
 *   later=WAY: saves in the background. wait: by the operation; poll: until it is done; fence;
 *     cancel: and waits; open: opens what was saved, hashes it; change: loads the dataset of
 *     change=PATH into the array (elsewhere=1: by another context) and waits; twice: the same
 *     again, replacing it, and a fence; leave: ends without waiting, after linger=MILLISECONDS;
 *     slow=1: ranks but 0 take their time
 *   as=NAME: three saves in the background, to PATH.0 to .2, of which NAME is opened, before a
 *     fence; folder=PATH: from there
 *   saves=FILE: instead of save, a save for each line of the file, whose words count before all
 *     others (grid, axis and tiles too)
 *   load=0: loads nothing; verify=LEVEL (0 sizes, 1 checksums, 2 decode), against=PATH: with these
 *     sums, files=1: without the dataset; compare=PATH, other=NAME: with that dataset; values=1
 *   batches=A,B: in pieces of that shape, which are written down as tiles; async=1: loads in the
 *     background, 2: and waits by a fence, 3: and does not wait; quiet=1: wants no error of it;
 *     progress=1: notes what a load tells */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tegula/tegula.h>
#include <tegula/tegula_mpi.h>

extern void tegula_faults_window(int open) __attribute__((weak));
extern void tegula_faults_plan(const char *plan) __attribute__((weak));
extern void tegula_faults_counts(char *out, size_t room) __attribute__((weak));

typedef struct ranks {
  int argc;
  char **argv;
  tegula_comm *comm;
  tegula_context *context;
  tegula_dataset *dataset;
  tegula_dataset_info_t info;
  tegula_tiling *tiling;
  tegula_array *array;
  tegula_statistics statistics;
  tegula_error error;
  char hash[TEGULA_HASH_TEXT], dataset_hash[TEGULA_HASH_TEXT];
  const char *step;
  char copied[128];
  char *line; /* words that count first, with zeros between them and two at the end; NULL */
  tegula_verify_report verified;
  int32_t content; /* of sums */
  tegula_difference difference;
  FILE *notes; /* problems, as items of a list */
  size_t noted;
  char *problems, *tiles;
  int pieces;
  int64_t told[1000], told_total;
  int told_count;
  _Atomic int slept;
  char host[256];
  FILE *counts;
} ranks;

/* The value of a key on this rank, or NULL; the last one counts. */
static const char *value_of(const ranks *r, const char *key) {
  const char *found = NULL;
  size_t size = strlen(key);
  for (const char *word = r->line; word != NULL && *word != '\0'; word += strlen(word) + 1)
    if (strncmp(word, key, size) == 0 && word[size] == '=') return word + size + 1;
  for (int i = 3; i < r->argc; i++) {
    const char *word = r->argv[i];
    if (word[0] == '@') {
      char *end;
      long rank = strtol(word + 1, &end, 10);
      if (r->comm == NULL || rank != tegula_comm_rank(r->comm)) continue;
      word = end + 1;
    }
    if (strncmp(word, key, size) == 0 && word[size] == '=') found = word + size + 1;
  }
  return found;
}

static int64_t number_of(const ranks *r, const char *key, int64_t otherwise) {
  const char *text = value_of(r, key);
  return text != NULL ? strtoll(text, NULL, 10) : otherwise;
}

static int is_step(const ranks *r, const char *key) {
  const char *text = value_of(r, key);
  return text != NULL && strcmp(text, r->step) == 0;
}

/* What was called until now, as the end of a step. */
static void write_counts(const ranks *r) {
  char text[1024];
  if (r->counts == NULL || r->step == NULL) return;
  tegula_faults_window(0);
  tegula_faults_counts(text, sizeof text);
  fprintf(r->counts, "\"%s\": %s, ", r->step, text);
  tegula_faults_window(1);
}

/* What is to happen in front of a step. */
static tegula_status enter(ranks *r, const char *step) {
  write_counts(r);
  r->step = step;
  if (is_step(r, "stop")) raise(SIGSTOP);
  if (is_step(r, "kill")) raise(SIGKILL);
  if (is_step(r, "sleep")) sleep(600);
  if (is_step(r, "pause")) sleep(1);
  if (is_step(r, "fail"))
    return tegula_error_set(&r->error, TEGULA_IO, NULL, -1, "the program itself failed");
  return TEGULA_OK;
}

#define STEP(name, call)                                                                           \
  do {                                                                                             \
    tegula_status status_ = enter(r, name);                                                        \
    if (status_ == TEGULA_OK && !is_step(r, "skip")) status_ = (call);                             \
    if (status_ != TEGULA_OK) return status_;                                                      \
  } while (0)

static tegula_status open_dataset(ranks *r) {
  tegula_open_options options;
  tegula_open_options_init(&options);
  options.dataset = value_of(r, "dataset");
  options.field = value_of(r, "field");
  options.statistics = &r->statistics;
  const char *path = value_of(r, "path");
  tegula_status status = tegula_dataset_open(r->context, path != NULL ? path : r->argv[2], &options,
                                             &r->dataset, &r->error);
  tegula_dataset_info_init(&r->info);
  return status != TEGULA_OK ? status : tegula_dataset_info(r->dataset, &r->info, &r->error);
}

static int read_numbers(const char *text, int64_t *out) {
  int count = 0;
  for (char *end; text != NULL && *text != '\0' && count < 2 * TEGULA_MAX_DIMS;
       text = *end == ',' ? end + 1 : end)
    out[count++] = strtoll(text, &end, 10);
  return count;
}

static tegula_status make_tiling(ranks *r) {
  int64_t numbers[2 * TEGULA_MAX_DIMS], shape[TEGULA_MAX_DIMS];
  int32_t size = tegula_comm_size(r->comm);
  memcpy(shape, r->info.shape, sizeof shape);
  if (read_numbers(value_of(r, "box"), numbers) == 2 * r->info.ndim)
    memcpy(shape, numbers + r->info.ndim, (size_t)r->info.ndim * sizeof *shape);
  if (read_numbers(value_of(r, "grid"), numbers) == r->info.ndim && value_of(r, "grid") != NULL)
    return tegula_tiling_grid(shape, numbers, r->info.ndim, size, &r->tiling, &r->error);
  return tegula_tiling_even(shape, r->info.ndim, (int32_t)number_of(r, "axis", 0),
                            number_of(r, "tiles", size), size, &r->tiling, &r->error);
}

static tegula_status make_array(ranks *r) {
  tegula_array_options options;
  tegula_array_options_init(&options);
  options.flags = number_of(r, "separate", 0) ? TEGULA_ARRAY_SEPARATE : 0;
  return tegula_array_create(r->context, r->info.dtype, r->tiling, &options, &r->array, &r->error);
}

/* Notes what it is told; another rank than 0 takes its time. */
static int note_progress(void *state, int64_t done, int64_t total) {
  ranks *r = state;
  if (r->told_count < (int)(sizeof r->told / sizeof r->told[0])) r->told[r->told_count++] = done;
  r->told_total = total;
  if (tegula_comm_rank(r->comm) > 0) usleep(300000);
  return 0;
}

/* The same, of a call in the background; only the first two calls take time. */
static int note_slowly(void *state, int64_t done, int64_t total) {
  (void)done;
  (void)total;
  ranks *r = state;
  if (tegula_comm_rank(r->comm) > 0 && r->slept++ < 2) usleep(300000);
  return 0;
}

static tegula_status load(ranks *r) {
  int64_t numbers[2 * TEGULA_MAX_DIMS];
  tegula_load_options options;
  tegula_load_options_init(&options);
  options.statistics = &r->statistics;
  options.missing = (uint32_t)number_of(r, "missing", 0);
  options.progress = number_of(r, "progress", 0) ? note_progress : NULL;
  options.progress_state = r;
  if (read_numbers(value_of(r, "box"), numbers) == 2 * r->info.ndim && value_of(r, "box") != NULL) {
    options.origin = numbers;
    options.origin_ndim = r->info.ndim;
  }
  return tegula_load(r->dataset, r->array, &options, &r->error);
}

static tegula_status load_in_background(ranks *r) {
  tegula_load_options options;
  tegula_op *op = NULL;
  tegula_error *error = number_of(r, "quiet", 0) ? NULL : &r->error;
  tegula_load_options_init(&options);
  options.statistics = &r->statistics;
  options.missing = (uint32_t)number_of(r, "missing", 0);
  options.progress = number_of(r, "progress", 0) ? note_slowly : NULL;
  options.progress_state = r;
  tegula_status status = tegula_load_async(r->dataset, r->array, &options, &op, &r->error);
  if (status == TEGULA_OK && number_of(r, "async", 0) == 1) status = tegula_op_wait(op, -1, error);
  tegula_op_destroy(op);
  if (number_of(r, "async", 0) == 3) return status;
  return status == TEGULA_OK ? tegula_fence(r->context, error) : status;
}

static void write_view(const tegula_view *view, int32_t axis, const char *data, uint32_t item,
                       FILE *out) {
  if (axis == view->box.ndim) {
    fwrite(data, item, 1, out);
    return;
  }
  for (int64_t i = view->box.lo[axis]; i < view->box.hi[axis];
       i++, data += view->stride_bytes[axis])
    write_view(view, axis + 1, data, item, out);
}

/* Writes the tiles of a piece down, in the dataset's indices. */
static void note_piece(ranks *r, const tegula_array *array, const tegula_box *box) {
  for (int64_t i = 0; i < tegula_array_tiles(array); i++) {
    tegula_view view;
    char path[4096];
    if (tegula_array_view(array, i, &view, NULL) != TEGULA_OK) return;
    fprintf(r->notes, "%s[", ftell(r->notes) > 0 ? ", " : "");
    for (int32_t k = 0; k < box->ndim; k++)
      fprintf(r->notes, "%s[%" PRId64 ", %" PRId64 "]", k > 0 ? ", " : "",
              box->lo[k] + view.box.lo[k], box->lo[k] + view.box.hi[k]);
    fprintf(r->notes, "]");
    snprintf(path, sizeof path, "%s/%d.%d.bin", r->argv[1], tegula_comm_rank(r->comm), r->pieces++);
    FILE *file = fopen(path, "wb");
    if (file == NULL) return;
    write_view(&view, 0, view.data, view.dtype.item_size, file);
    fclose(file);
  }
}

static tegula_status read_batches(ranks *r) {
  int64_t chunk[2 * TEGULA_MAX_DIMS];
  tegula_load_options options;
  tegula_batches *batches;
  int count = read_numbers(value_of(r, "batches"), chunk);
  tegula_load_options_init(&options);
  options.statistics = &r->statistics;
  tegula_status status =
      tegula_batches_open(r->dataset, chunk, count, &options, &batches, &r->error);
  if (status != TEGULA_OK) return status;
  r->notes = open_memstream(&r->tiles, &r->noted);
  while (status == TEGULA_OK) {
    tegula_array *array;
    tegula_box box;
    status = tegula_batches_next(batches, &array, &box, &r->error);
    if (status != TEGULA_OK) continue;
    note_piece(r, array, &box);
    tegula_array_destroy(array);
  }
  fclose(r->notes);
  tegula_batches_close(batches);
  return status == TEGULA_END ? TEGULA_OK : status;
}

static void fill_options(const ranks *r, tegula_save_options *options, int64_t *chunks) {
  tegula_save_options_init(options);
  int count = read_numbers(value_of(r, "chunk"), chunks);
  for (int32_t k = count; count > 0 && k < r->info.ndim; k++) chunks[k] = chunks[count - 1];
  options->format = value_of(r, "format");
  options->layout = value_of(r, "layout");
  options->codec = value_of(r, "codec");
  options->chunk = count > 0 ? chunks : NULL;
  options->chunk_ndim = count > 0 ? r->info.ndim : 0;
  options->shards = number_of(r, "shards", 0);
  options->durable = (uint8_t)number_of(r, "durable", 0);
  options->overwrite = (uint8_t)number_of(r, "overwrite", 0);
}

/* Every third one is contiguous, in plain chunks, in encoded ones. */
static tegula_status save_group(ranks *r, int64_t count, const char *path,
                                const tegula_save_options *options) {
  enum { MOST = 100 };
  tegula_save_member members[MOST];
  char names[MOST][16];
  tegula_save_options group;
  tegula_save_options_init(&group);
  group.format = options->format;
  group.durable = options->durable;
  group.overwrite = options->overwrite;
  for (int64_t i = 0; i < count && i < MOST; i++) {
    snprintf(names[i], sizeof names[i], "/g/%d", (int)i);
    tegula_save_member_init(&members[i]);
    members[i].array = r->array;
    members[i].dataset = names[i];
    if (i % 3 > 0) members[i].chunk = options->chunk;
    if (i % 3 > 0) members[i].chunk_ndim = options->chunk_ndim;
    if (i % 3 == 2) members[i].codec = options->codec;
  }
  return tegula_save_group(members, count, path, &group, &r->error);
}

static tegula_status write_pieces(ranks *r, tegula_saving *saving) {
  char *text = NULL;
  tegula_status status =
      number_of(r, "token", 0) ? tegula_saving_to_json(saving, &text, &r->error) : TEGULA_OK;
  for (int64_t i = 0; status == TEGULA_OK && i < tegula_array_tiles(r->array); i++) {
    tegula_view view;
    status = tegula_array_view(r->array, i, &view, &r->error);
    if (status == TEGULA_OK)
      status = text != NULL ? tegula_save_tile_from(r->context, text, &view, &r->error)
                            : tegula_save_tile(saving, &view, &r->error);
  }
  tegula_free(text);
  return status;
}

static tegula_status save_pieces(ranks *r, const char *path, const tegula_save_options *options) {
  tegula_saving *saving = NULL;
  tegula_status status =
      tegula_save_begin(r->context, r->info.dtype, r->tiling, path, options, &saving, &r->error);
  if (status == TEGULA_OK) status = write_pieces(r, saving);
  if (status == TEGULA_OK && number_of(r, "abandon", 0))
    status = tegula_error_set(&r->error, TEGULA_CANCELLED, NULL, -1, "this rank has given up");
  if (status == TEGULA_OK) return tegula_save_commit(saving, &r->error);
  tegula_save_abandon(saving);
  return status;
}

static tegula_status copy_dataset(ranks *r, const char *path, const tegula_save_options *options) {
  tegula_copy_options how;
  tegula_copy_report report;
  tegula_copy_options_init(&how);
  tegula_copy_report_init(&report);
  how.memory = number_of(r, "memory", 0);
  how.tiles = number_of(r, "tiles", 0);
  how.flags = TEGULA_COPY_ALONG | (number_of(r, "readback", 0) ? TEGULA_COPY_VERIFY : 0);
  tegula_status status = tegula_copy(r->dataset, path, options, &how, &report, &r->error);
  snprintf(r->copied, sizeof r->copied, "%s files %d windows %d stored %d", report.hash,
           (int)report.files, (int)report.windows, (int)report.stored_bytes);
  return status;
}

/* Whether the file is there yet, before the save is waited for. */
static tegula_status open_saved(ranks *r, const char *path) {
  tegula_dataset *saved = NULL;
  tegula_status status = tegula_dataset_open(r->context, path, NULL, &saved, &r->error);
  if (status == TEGULA_OK) status = tegula_dataset_hash(saved, r->dataset_hash, NULL, &r->error);
  tegula_dataset_close(saved);
  return status;
}

static tegula_status change_array(ranks *r, const char *path) {
  tegula_dataset *other = NULL;
  tegula_context *context = r->context;
  tegula_status status = number_of(r, "elsewhere", 0)
                             ? tegula_context_create(NULL, r->comm, &context, &r->error)
                             : TEGULA_OK;
  if (status == TEGULA_OK) status = tegula_dataset_open(context, path, NULL, &other, &r->error);
  if (status == TEGULA_OK) status = tegula_load(other, r->array, NULL, &r->error);
  tegula_dataset_close(other);
  if (context != r->context) tegula_context_destroy(context);
  return status;
}

static tegula_status poll(ranks *r, tegula_op *op) {
  tegula_status status = TEGULA_TIMEOUT;
  for (r->told_total = 0; status == TEGULA_TIMEOUT && !tegula_comm_broken(r->comm); r->told_total++)
    status = tegula_op_wait(op, 10000000, &r->error);
  return status;
}

static tegula_status save_later(ranks *r, const char *way, const char *path,
                                tegula_save_options *options) {
  tegula_op *op = NULL;
  int waits = strcmp(way, "fence") != 0 && strcmp(way, "open") != 0 && strcmp(way, "twice") != 0;
  if (number_of(r, "slow", 0)) options->progress = note_slowly;
  options->progress_state = r;
  tegula_status status = tegula_save_async(r->array, path, options, waits ? &op : NULL, &r->error);
  snprintf(r->copied, sizeof r->copied, "%s", access(path, F_OK) == 0 ? "there" : "not there");
  if (status != TEGULA_OK) return status;
  if (strcmp(way, "cancel") == 0) tegula_op_cancel(op);
  /* all have written: a rank looks for five seconds for a file that another one has taken away */
  if (strcmp(way, "leave") == 0) usleep((unsigned)number_of(r, "linger", 200) * 1000);
  if (strcmp(way, "change") == 0) status = change_array(r, value_of(r, "change"));
  if (strcmp(way, "open") == 0) status = open_saved(r, path);
  options->overwrite = 1;
  if (strcmp(way, "twice") == 0)
    status = tegula_save_async(r->array, path, options, NULL, &r->error);
  if (strcmp(way, "poll") == 0) status = poll(r, op);
  if (status == TEGULA_OK && strcmp(way, "leave") != 0)
    status = waits ? tegula_op_wait(op, -1, &r->error) : tegula_fence(r->context, &r->error);
  tegula_op_destroy(op);
  return status;
}

/* To PATH.0, .1 and .2; the second is opened, by another name of it, and written down which are
 * there then. */
static tegula_status save_several(ranks *r, const char *path, const tegula_save_options *options) {
  tegula_status status = TEGULA_OK;
  char name[4096];
  if (value_of(r, "folder") != NULL && chdir(value_of(r, "folder")) != 0) return TEGULA_IO;
  for (int i = 0; status == TEGULA_OK && i < 3; i++) {
    snprintf(name, sizeof name, "%s.%d", path, i);
    status = tegula_save_async(r->array, name, options, NULL, &r->error);
  }
  if (status == TEGULA_OK) status = open_saved(r, value_of(r, "as"));
  for (int i = 0; i < 3; i++) {
    snprintf(name, sizeof name, "%s.%d", path, i);
    r->copied[i] = access(name, F_OK) == 0 ? '1' : '0';
  }
  return status == TEGULA_OK ? tegula_fence(r->context, &r->error) : status;
}

static tegula_status save_one(ranks *r) {
  const char *path = value_of(r, "save"), *copy = value_of(r, "copy");
  int64_t chunks[2 * TEGULA_MAX_DIMS], count = number_of(r, "group", 0);
  tegula_save_options options;
  fill_options(r, &options, chunks);
  if (copy != NULL) return copy_dataset(r, copy, &options);
  if (path == NULL) return TEGULA_OK;
  if (number_of(r, "pieces", 0)) return save_pieces(r, path, &options);
  if (value_of(r, "as") != NULL) return save_several(r, path, &options);
  if (value_of(r, "later") != NULL) return save_later(r, value_of(r, "later"), path, &options);
  return count > 0 ? save_group(r, count, path, &options)
                   : tegula_save(r->array, path, &options, &r->error);
}

/* With the words of a line, on an array of its own. */
static tegula_status save_line(ranks *r, char *line) {
  tegula_tiling *tiling = r->tiling;
  tegula_array *array = r->array;
  for (char *c = line; *c != '\0'; c++)
    if (*c == ' ' || *c == '\n') *c = '\0';
  r->line = line;
  r->tiling = NULL;
  r->array = NULL;
  tegula_status status = make_tiling(r);
  if (status == TEGULA_OK) status = make_array(r);
  if (status == TEGULA_OK) status = load(r);
  if (status == TEGULA_OK) status = save_one(r);
  tegula_array_destroy(r->array);
  tegula_tiling_destroy(r->tiling);
  r->line = NULL;
  r->tiling = tiling;
  r->array = array;
  return status;
}

static tegula_status try_save(ranks *r) {
  const char *path = value_of(r, "saves");
  tegula_status status = TEGULA_OK;
  if (path == NULL) return save_one(r);
  FILE *file = fopen(path, "r");
  if (file == NULL) return tegula_error_set(&r->error, TEGULA_IO, path, -1, "no file of saves");
  for (char line[4096] = ""; status == TEGULA_OK && fgets(line, sizeof line - 1, file) != NULL;) {
    line[strlen(line) + 1] = '\0';
    status = save_line(r, line);
  }
  fclose(file);
  return status;
}

static void print_text(FILE *out, const char *key, const char *text);

static void note_problem(void *state, const tegula_error *problem) {
  ranks *r = state;
  fprintf(r->notes, "%s{", ftell(r->notes) > 0 ? ", " : "");
  print_text(r->notes, "status", tegula_status_name(problem->status));
  print_text(r->notes, "path", problem->path);
  print_text(r->notes, "message", problem->message);
  fprintf(r->notes, "\"rank\": %d}", (int)problem->rank);
}

static tegula_status verify(ranks *r) {
  tegula_load_options options;
  tegula_load_options_init(&options);
  options.missing = (uint32_t)number_of(r, "missing", 0);
  options.statistics = &r->statistics;
  r->notes = open_memstream(&r->problems, &r->noted);
  tegula_status status =
      tegula_dataset_verify(r->dataset, (tegula_verify_level)number_of(r, "verify", 0),
                            note_problem, r, &options, &r->verified, &r->error);
  fclose(r->notes);
  return status;
}

static tegula_status check_sums(ranks *r) {
  tegula_load_options options;
  tegula_sums_report report;
  tegula_load_options_init(&options);
  tegula_sums_report_init(&report);
  options.statistics = &r->statistics;
  r->notes = open_memstream(&r->problems, &r->noted);
  tegula_dataset *dataset = number_of(r, "files", 0) ? NULL : r->dataset;
  tegula_status status = tegula_sums_check(r->context, value_of(r, "against"), dataset,
                                           (tegula_verify_level)number_of(r, "verify", 0),
                                           note_problem, r, &options, &report, &r->error);
  fclose(r->notes);
  r->verified.files = report.files;
  r->verified.chunks = report.chunks;
  r->verified.bytes = report.bytes;
  r->verified.problems = report.problems;
  r->content = report.content;
  return status;
}

static tegula_status compare(ranks *r) {
  tegula_open_options options;
  tegula_load_options reading;
  tegula_dataset *other = NULL;
  tegula_open_options_init(&options);
  tegula_load_options_init(&reading);
  reading.statistics = &r->statistics;
  options.dataset = value_of(r, "other");
  tegula_status status =
      tegula_dataset_open(r->context, value_of(r, "compare"), &options, &other, &r->error);
  if (status == TEGULA_OK)
    status =
        tegula_compare(r->dataset, other, number_of(r, "values", 0) ? TEGULA_COMPARE_VALUES : 0,
                       &reading, &r->difference, &r->error);
  tegula_dataset_close(other);
  return status;
}

static tegula_status work(ranks *r) {
  tegula_context_options options;
  tegula_context_options_init(&options);
  options.threads = (int32_t)number_of(r, "threads", 2);
  options.staging_bytes = number_of(r, "staging", 0);
  options.hdf5_library = getenv("TEGULA_HDF5_LIBRARY");
  options.plugin_path = getenv("TEGULA_PLUGIN_PATH");
  STEP("context", tegula_context_create(&options, r->comm, &r->context, &r->error));
  if (tegula_faults_window != NULL) tegula_faults_window(1);
  r->step = NULL;
  STEP("open", open_dataset(r));
  if (number_of(r, "load", 1)) {
    STEP("tiling", make_tiling(r));
    STEP("array", make_array(r));
    STEP("load", number_of(r, "async", 0) ? load_in_background(r) : load(r));
  }
  if (number_of(r, "hash", 0)) STEP("hash", tegula_array_hash(r->array, r->hash, &r->error));
  if (number_of(r, "dataset_hash", 0))
    STEP("dataset_hash", tegula_dataset_hash(r->dataset, r->dataset_hash, NULL, &r->error));
  STEP("save", try_save(r));
  if (value_of(r, "batches") != NULL) STEP("batches", read_batches(r));
  if (number_of(r, "verify", -1) >= 0)
    STEP("verify", value_of(r, "against") != NULL ? check_sums(r) : verify(r));
  if (value_of(r, "compare") != NULL) STEP("compare", compare(r));
  return TEGULA_OK;
}

/* ---- what this rank got ---- */

static void print_text(FILE *out, const char *key, const char *text) {
  fprintf(out, "\"%s\": \"", key);
  for (; *text != '\0'; text++) fprintf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
  fprintf(out, "\", ");
}

static void print_tiles(const ranks *r, int rank, FILE *out) {
  fprintf(out, "\"tiles\": [%s", r->tiles != NULL ? r->tiles : "");
  for (int64_t i = 0; r->array != NULL && i < tegula_array_tiles(r->array); i++) {
    tegula_view view;
    char path[4096];
    if (tegula_array_view(r->array, i, &view, NULL) != TEGULA_OK) break;
    fprintf(out, "%s[", i > 0 ? ", " : "");
    for (int32_t k = 0; k < view.box.ndim; k++)
      fprintf(out, "%s[%" PRId64 ", %" PRId64 "]", k > 0 ? ", " : "", view.box.lo[k],
              view.box.hi[k]);
    fprintf(out, "]");
    snprintf(path, sizeof path, "%s/%d.%d.bin", r->argv[1], rank, (int)i);
    FILE *file = fopen(path, "wb");
    if (file == NULL) continue;
    write_view(&view, 0, view.data, view.dtype.item_size, file);
    fclose(file);
  }
  fprintf(out, "]}\n");
}

static void write_down(const ranks *r, int rank, tegula_status status) {
  char path[4096], final[4096], dtype[TEGULA_DTYPE_TEXT] = "";
  snprintf(path, sizeof path, "%s/%d.part", r->argv[1], rank);
  snprintf(final, sizeof final, "%s/%d.json", r->argv[1], rank);
  FILE *out = fopen(path, "w");
  if (out == NULL) return;
  if (r->dataset != NULL) tegula_dtype_format(r->info.dtype, dtype);
  fprintf(out, "{");
  print_text(out, "status", tegula_status_name(status));
  print_text(out, "message", status != TEGULA_OK ? r->error.message : "");
  print_text(out, "path", status != TEGULA_OK ? r->error.path : "");
  print_text(out, "step", r->step != NULL ? r->step : "");
  print_text(out, "dtype", dtype);
  print_text(out, "hash", r->hash);
  print_text(out, "dataset_hash", r->dataset_hash);
  print_text(out, "copied", r->copied);
  print_text(out, "host", r->host);
  print_text(out, "library", r->comm != NULL ? tegula_comm_library(r->comm) : "");
  fprintf(out,
          "\"rank\": %d, \"failed\": %d, \"ranks\": %d, \"threads\": %d, \"opens\": %" PRId64
          ", \"stats\": %" PRId64 ", \"reads\": %" PRId64 ", \"bytes_read\": %" PRId64 ", ",
          rank, status != TEGULA_OK ? (int)r->error.rank : -1,
          r->comm != NULL ? (int)tegula_comm_size(r->comm) : 0,
          r->context != NULL ? (int)tegula_context_threads(r->context) : 0, r->statistics.opens,
          r->statistics.stats, r->statistics.reads, r->statistics.bytes_read);
  fprintf(out,
          "\"verified\": {\"files\": %" PRId64 ", \"chunks\": %" PRId64 ", \"bytes\": %" PRId64
          ", \"problems\": %" PRId64 "}, \"problems\": [%s], ",
          r->verified.files, r->verified.chunks, r->verified.bytes, r->verified.problems,
          r->problems != NULL ? r->problems : "");
  print_text(out, "difference", r->difference.reason);
  fprintf(out, "\"told_total\": %" PRId64 ", \"told\": [", r->told_total);
  for (int i = 0; i < r->told_count; i++) fprintf(out, "%s%" PRId64, i > 0 ? ", " : "", r->told[i]);
  fprintf(out, "], ");
  fprintf(out, "\"equal\": %d, \"content\": %d, ", (int)r->difference.equal, (int)r->content);
  print_tiles(r, rank, out);
  /* whole or not at all: a launcher may end this process now */
  if (fclose(out) == 0) rename(path, final);
}

static void forget(ranks *r) {
  tegula_array_destroy(r->array);
  tegula_tiling_destroy(r->tiling);
  tegula_dataset_close(r->dataset);
  tegula_context_destroy(r->context);
  r->array = NULL;
  r->tiling = NULL;
  r->dataset = NULL;
  r->context = NULL;
  memset(&r->error, 0, sizeof r->error);
  r->hash[0] = r->dataset_hash[0] = '\0';
}

/* One line: the fault, on its rank, and words that this run has. */
static tegula_status inject(ranks *r, char *line, FILE *out) {
  char *rest = NULL;
  char *rank = strtok_r(line, " \n", &rest), *plan = strtok_r(NULL, " \n", &rest);
  if (rank == NULL || plan == NULL) return TEGULA_INVALID_ARGUMENT;
  r->line = strtok_r(NULL, " \n", &rest);
  while (strtok_r(NULL, " \n", &rest) != NULL) continue;
  r->step = NULL;
  fprintf(out, "{\"counts\": {");
  tegula_faults_plan(atoi(rank) == tegula_comm_rank(r->comm) ? plan : NULL);
  tegula_status status = work(r);
  write_counts(r);
  tegula_faults_window(0);
  tegula_faults_plan(NULL);
  r->line = NULL;
  status = tegula_comm_end(r->comm, status, &r->error);
  fprintf(out, "\"\": {}}, ");
  print_text(out, "step", r->step != NULL ? r->step : "");
  print_text(out, "hash", r->hash);
  print_text(out, "message", status != TEGULA_OK ? r->error.message : "");
  fprintf(out, "\"status\": \"%s\", \"failed\": %d}\n", tegula_status_name(status),
          status != TEGULA_OK ? (int)r->error.rank : -1);
  return status;
}

static tegula_status inject_all(ranks *r, int rank, const char *path) {
  char line[4096];
  tegula_status status = TEGULA_OK;
  snprintf(line, sizeof line, "%s/%d.lines", r->argv[1], rank);
  FILE *in = fopen(path, "r"), *out = fopen(line, "w");
  if (in == NULL || out == NULL || tegula_faults_plan == NULL) return TEGULA_IO;
  r->counts = out;
  while (status != TEGULA_TIMEOUT && status != TEGULA_COMM &&
         fgets(line, sizeof line, in) != NULL) {
    status = inject(r, line, out);
    fflush(out);
    forget(r);
  }
  fclose(in);
  fclose(out);
  return status == TEGULA_TIMEOUT || status == TEGULA_COMM ? status : TEGULA_OK;
}

int main(int argc, char **argv) {
  ranks r = {.argc = argc, .argv = argv};
  gethostname(r.host, sizeof r.host - 1);
  tegula_mpi_options options;
  if (argc < 3) return 2;
  tegula_statistics_init(&r.statistics);
  tegula_verify_report_init(&r.verified);
  tegula_difference_init(&r.difference);
  tegula_mpi_options_init(&options);
  options.libraries = getenv("TEGULA_MPI_LIBRARY");
  options.plugin_path = getenv("TEGULA_PLUGIN_PATH");
  tegula_status status = tegula_mpi_comm_create(NULL, 0, &options, &r.comm, &r.error);
  if (status != TEGULA_OK) {
    fprintf(stderr, "tegula_ranks: %s\n", r.error.message);
    return 1;
  }
  int rank = tegula_comm_rank(r.comm);
  tegula_comm_deadline(r.comm, (double)number_of(&r, "deadline", 0));
  const char *injections = value_of(&r, "injections");
  status = injections != NULL ? inject_all(&r, rank, injections) : work(&r);
  if (tegula_faults_window != NULL) tegula_faults_window(0);
  status = tegula_comm_end(r.comm, status, &r.error);
  write_down(&r, rank, status);
  if (status == TEGULA_TIMEOUT) { /* those that are missing will not come to the end, either */
    sleep(1);
    tegula_comm_abort(r.comm, 1);
  }
  forget(&r);
  tegula_comm_destroy(r.comm);
  return status == TEGULA_OK ? 0 : 1;
}
