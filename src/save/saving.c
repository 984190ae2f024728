/* A save from its beginning to its end.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "save/saving.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { HEAD_BYTES = 4096, PAGE = 4096, LARGEST_BLOCK = 8 << 20 };

/* A virtual dataset is a file over others and takes the place of the whole file: only where no
 * other dataset would be lost. */
static tegula_status refuse_to_lose(const tegula__saving *s, const char *lost, tegula_error *err) {
  return tegula__hint(
      err,
      tegula__fail(
          err, TEGULA_EXISTS, s->path, -1,
          "\"%s\" exists already, with \"%s\" in it, and a virtual dataset is not added to a file",
          s->path, lost),
      "choose another name, or ask to replace the whole file");
}

static tegula_status check_entry(void *state, const tegula_plugin_entry_info *entry,
                                 tegula_error *err) {
  const tegula__saving *s = state;
  return s->options.overwrite && strcmp(entry->name, s->members[0].dataset) == 0
             ? TEGULA_OK
             : refuse_to_lose(s, entry->name, err);
}

static tegula_status check_entries(tegula__saving *s, tegula_error *err) {
  tegula__discover_options discover;
  tegula_open_options open;
  tegula_open_options_init(&open);
  FORWARD(tegula__discover_options_of(&open, &discover, err));
  discover.describe.plugins = s->context->plugins;
  return tegula__discover_list(s->context->handles, s->path, &discover,
                               &(tegula__inside){.entry = check_entry, .state = s},
                               &s->tally.counts, err);
}

/* Is the target a file of the format already, to which datasets are added? */
static tegula_status look_at_target(tegula__saving *s, tegula_error *err) {
  struct stat info;
  char head[HEAD_BYTES];
  size_t got = 0;
  if (s->format->container == NULL || s->options.shards > 0 ||
      (s->options.flags & TEGULA_SAVE_WHOLE_FILE) != 0)
    return TEGULA_OK;
  if (stat(s->path, &info) != 0) { /* only what is known to be absent has nothing in it */
    s->absent = errno == ENOENT || errno == ENOTDIR;
    return s->absent
               ? TEGULA_OK
               : tegula__fail_errno(err, errno, s->path, -1, "could not examine \"%s\"", s->path);
  }
  if (!S_ISREG(info.st_mode)) return TEGULA_OK; /* publish says what is wrong with it */
  /* before anything is read: what comes later is noticed */
  FORWARD(tegula__io_stamp(s->path, &s->before, err));
  FORWARD(tegula__io_read_head(s->path, head, sizeof head, &got, &s->tally.counts, err));
  bool same = tegula__format_by_content(head, got) == s->format;
  s->guards = same;
  s->adds = same && s->members[0].layout != TEGULA__VIRTUAL;
  /* else publish: EXISTS unless overwrite */
  return same && !s->adds ? check_entries(s, err) : TEGULA_OK;
}

/* ---- files with a header in front: made by all threads ---- */

typedef struct making {
  tegula__saving *saving;
  tegula__first_error *first;
} making;

static void make_file(void *state, int32_t worker, int64_t i) {
  making *m = state;
  tegula__saving *s = m->saving;
  tegula_error error;
  (void)worker;
  if (!tegula__first_error_wanted(m->first, i)) return;
  const tegula__file *file = &s->members[0].manifest.files[i];
  const tegula__buffer *header = &s->targets[i].header;
  tegula_status status = tegula__io_create(
      file->path, file->stamp.size, header->data, header->size, s->options.durable != 0,
      s->publish.there && !s->publish.folder ? s->publish.mode | 0200 : 0666, &s->tally.counts,
      &error);
  if (status != TEGULA_OK) tegula__first_error_set(m->first, i, status, &error);
}

static tegula_status for_files(tegula__saving *s, void (*each)(void *, int32_t, int64_t),
                               tegula_error *err) {
  making m = {s, tegula__first_error_create()};
  if (m.first == NULL) return tegula__out_of_memory(err, 64);
  tegula__pool_run_waiting(s->context->engine.pool, s->members[0].manifest.file_count, each, &m);
  tegula_status status = tegula__first_error_get(m.first, err);
  tegula__first_error_destroy(m.first);
  return status;
}

/* ---- begin ---- */

/* What is certain to be written before the datasets of a container are made; how long encoded
 * chunks become shows later. */
static int64_t least_bytes(const tegula__saving *s) {
  int64_t sum = 0, bytes;
  for (int64_t i = 0; i < s->member_count; i++) {
    const tegula__member *m = &s->members[i];
    bool known = m->layout != TEGULA__CHUNKED || m->filter_count == 0;
    if (known &&
        (!tegula__shape_bytes(m->tiling->shape, m->tiling->ndim, m->stored.item_size, &bytes) ||
         !tegula__add(sum, bytes, &sum)))
      return INT64_MAX;
  }
  return sum;
}

/* A file that turns up although nobody was there at first is not what the caller asked to
 * overwrite. */
static tegula_status begin_publish(tegula__saving *s, tegula_error *err) {
  bool overwrite = s->adds || (s->options.overwrite != 0 && !s->absent);
  FORWARD(tegula__publish_begin(s->path, s->options.shards > 0, overwrite, &s->publish, err));
  s->begun = true;
  if (s->guards) s->publish.expected = &s->before;
  int64_t least = s->format->container != NULL ? least_bytes(s) : 0;
  if (s->adds)
    s->publish.needed = least; /* whether the old file's copy takes space shows when it is made */
  else if (s->format->container != NULL)
    FORWARD(tegula__publish_space(&s->publish, least, 0, err));
  return s->members[0].layout == TEGULA__VIRTUAL
             ? tegula__publish_companion(&s->publish, "tiles", err)
             : TEGULA_OK;
}

/* Of formats that are laid out at once all must fit before the first byte is written. */
static tegula_status check_space(tegula__saving *s, tegula_error *err) {
  const tegula__manifest *manifest = &s->members[0].manifest;
  int64_t bytes = 0;
  for (int64_t i = 0; i < manifest->file_count; i++)
    if (!tegula__add(bytes, manifest->files[i].stamp.size, &bytes)) bytes = INT64_MAX;
  return tegula__publish_space(&s->publish, bytes, 0, err);
}

/* What the file system says of its blocks, once for all files: stripes, or what goes over the
 * network at once. */
static int64_t preferred_block(const tegula__saving *s) {
  const tegula__manifest *manifest = &s->members[0].manifest;
  struct stat info;
  bool said = manifest->file_count > 0 && stat(manifest->files[0].path, &info) == 0;
  int64_t size = said ? (int64_t)info.st_blksize : 0;
  return size > PAGE && size <= LARGEST_BLOCK && (size & (size - 1)) == 0 ? size : 0;
}

tegula_status tegula__saving_begin(tegula__saving *s, tegula_context *context, const char *path,
                                   const tegula_save_options *options, const tegula__wanted *wanted,
                                   int64_t count, tegula_error *err) {
  *s = (tegula__saving){.context = context, .options = *options, .path = strdup(path)};
  if (s->path == NULL) return tegula__out_of_memory(err, (int64_t)strlen(path));
  tegula_status status = tegula__tally_start(&s->tally, options->statistics, err);
  /* it is no such struct: nothing is added to it */
  if (status != TEGULA_OK) s->options.statistics = NULL;
  FORWARD(status);
  FORWARD(tegula__saving_choose(s, wanted, count, err));
  FORWARD(look_at_target(s, err));
  FORWARD(begin_publish(s, err));
  FORWARD(tegula__saving_lay_out(s, err));
  if (s->format->container == NULL) FORWARD(check_space(s, err));
  if (s->format->container == NULL) FORWARD(for_files(s, make_file, err));
  s->align = preferred_block(s);
  tegula__member *first = &s->members[0];
  FORWARD(tegula__file_set_create(context->handles, first->manifest.files,
                                  first->manifest.file_count, true, &first->files, err));
  /* several arrays are in one file, which is opened once */
  for (int64_t i = 1; i < count; i++) s->members[i].files = first->files;
  tegula__saving_let_go(s, least_bytes(s));
  return TEGULA_OK;
}

/* ---- names in errors ---- */

/* Every `from` in the message becomes `to`; false when there is no room. */
static bool replace_name(tegula_error *err, const char *from, const char *to) {
  char out[sizeof err->message];
  size_t used = 0, length = strlen(from), longer = strlen(to);
  for (const char *at = err->message; *at != '\0';) {
    bool here = strncmp(at, from, length) == 0;
    size_t part = here ? longer : 1;
    if (part >= sizeof out - used) return false;
    memcpy(out + used, here ? to : at, part);
    used += part;
    at += here ? length : 1;
  }
  out[used] = '\0';
  memcpy(err->message, out, used + 1);
  return true;
}

static bool is_below(const char *path, const char *folder) {
  return folder != NULL && strncmp(path, folder, strlen(folder)) == 0;
}

void tegula__saving_name_target(const tegula__saving *s, tegula_status status, tegula_error *err) {
  if (err == NULL || status == TEGULA_OK || err->path[0] == '\0') return;
  if (!is_below(err->path, s->publish.temporary) && !is_below(err->path, s->publish.companion))
    return;
  int32_t rank = err->rank;
  /* a call failed: say which error, the call's own words hold the temporary name */
  if (err->os_errno != 0)
    tegula__fail_errno(err, err->os_errno, s->path, err->offset, "could not save \"%s\"", s->path);
  else if (replace_name(err, err->path, s->path) &&
           strstr(err->message, s->publish.temporary) == NULL)
    snprintf(err->path, sizeof err->path, "%s", s->path);
  else
    tegula__fail(err, status, s->path, err->offset, "could not save \"%s\": %s", s->path,
                 tegula_status_text(status));
  err->rank = rank;
}

/* ---- move, end ---- */

static tegula_status find_place(void *state, int64_t part, const int64_t *chunk, uint32_t length,
                                uint32_t mask, uint64_t *offset, tegula_error *err) {
  tegula__member *m = state;
  int64_t file = m->manifest.parts[part].grid->file;
  const tegula__saving *s = m->saving;
  atomic_fetch_add(&m->placed, length);
  return s->format->container->place(s->targets[m->first_target + file].saving, m->numbers[file],
                                     chunk, length, mask, offset, err);
}

tegula__move tegula__saving_move_of(tegula__saving *s, int64_t number, const tegula__tile *tiles,
                                    int64_t count, tegula__placer *placer) {
  tegula__member *m = &s->members[number];
  *placer = (tegula__placer){.find = find_place, .state = m};
  return (tegula__move){.manifest = &m->manifest,
                        .files = m->files,
                        .tiles = tiles,
                        .tile_count = count,
                        .writing = true,
                        .placer = placer,
                        .align = s->align,
                        .durable =
                            s->options.durable != 0 && s->format->container == NULL && !s->pieces,
                        .push = s->options.durable != 0,
                        .progress = s->options.progress,
                        .progress_state = s->options.progress_state,
                        .statistics = &s->tally.statistics,
                        .counts = &s->tally.counts};
}

tegula_status tegula__saving_move(tegula__saving *s, int64_t number, const tegula__tile *tiles,
                                  int64_t count, tegula_error *err) {
  tegula__placer placer;
  tegula__move move = tegula__saving_move_of(s, number, tiles, count, &placer);
  tegula_status status = tegula__engine_run(&s->context->engine, &move, err);
  tegula__saving_name_target(s, status, err);
  return status;
}

static void bring_to_disk(void *state, int32_t worker, int64_t i) {
  making *m = state;
  tegula__saving *s = m->saving;
  tegula__file_set *files = s->members[0].files;
  tegula_error error;
  int fd;
  (void)worker;
  if (!tegula__first_error_wanted(m->first, i)) return;
  tegula_status status = tegula__file_set_acquire(files, i, &s->tally.counts, &fd, &error);
  if (status == TEGULA_OK) {
    status = tegula__file_set_finish(files, i, fd, true, &s->tally.counts, &error);
    tegula__file_set_release(files, i);
  }
  if (status != TEGULA_OK) tegula__first_error_set(m->first, i, status, &error);
}

/* Each of these files once, whoever has written to it. */
static tegula_status bring_all_to_disk(tegula__saving *s, tegula_error *err) {
  tegula_status status = for_files(s, bring_to_disk, err);
  tegula__saving_name_target(s, status, err);
  return status;
}

tegula_status tegula__saving_complete(tegula__saving *s, tegula_error *err) {
  bool durable = s->options.durable != 0;
  if (s->completed) return TEGULA_OK;
  s->completed = true;
  if (durable && (s->early || (s->pieces && s->format->container == NULL)))
    FORWARD(bring_all_to_disk(s, err));
  if (s->format->container == NULL) return tegula__saving_side_file(s, err);
  for (int64_t i = 0; i < s->target_count; i++)
    if (s->targets[i].fd >= 0 || s->targets[i].parked)
      FORWARD(tegula__target_complete(s, &s->targets[i], durable, err));
  /* again, for good, before the rename */
  return s->guards ? tegula__io_check(s->publish.target, &s->before, err) : TEGULA_OK;
}

static void release(tegula__saving *s) {
  if (s->member_count > 0) tegula__file_set_destroy(s->members[0].files); /* of all */
  for (int64_t i = 0; i < s->member_count; i++) {
    tegula__member *m = &s->members[i];
    tegula__manifest_free(&m->manifest);
    tegula__tiling_release((tegula_tiling *)(uintptr_t)m->tiling);
    free(m->numbers);
    free(m->dataset);
  }
  for (int64_t i = 0; s->targets != NULL && i < s->target_count; i++)
    tegula__target_free(s, &s->targets[i]);
  free(s->members);
  free(s->targets);
}

tegula_status tegula__saving_end(tegula__saving *s, tegula_status status, tegula_error *err) {
  if (status == TEGULA_OK) status = tegula__saving_complete(s, err);
  if (status == TEGULA_OK && s->check != NULL) status = s->check(s->check_state, s, err);
  release(s);
  if (!s->alone) status = tegula__comm_agree(s->context->comm, status, err);
  if (s->begun) tegula__publish_explain(&s->publish, s->path, status, err);
  if (s->begun && status == TEGULA_OK)
    status = tegula__publish_commit(&s->publish, s->options.durable != 0, err);
  else if (s->begun)
    tegula__publish_abandon(&s->publish);
  tegula__tally_end(&s->tally, s->options.statistics, offsetof(tegula_statistics, seconds_move));
  free(s->path);
  return status;
}
