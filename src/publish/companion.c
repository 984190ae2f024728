/* The folder that goes with a file: HDF5 tiles beside the file that refers to them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A record in it says which file it belongs to (inode, size and time stay with a file when it is renamed) and which companion that file's
 * predecessor had. So the one that belongs to what is replaced is known; the one before that can go, because nobody who has opened the
 * target since the last save needs it. Where one of these does not hold (a copy, a file of somebody else, another link to the old file),
 * nothing is removed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "publish/publish_priv.h"

#define RECORD ".tegula-companion"
#define RECORD_MOST 1024
#define RECORD_BEGINNING "tegula companion 1\n"
#define IDENTITY 96

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

tegula_status tegula__publish_companion(tegula__publish *publish, const char *suffix, tegula_error *err) {
  if (publish->workplace == NULL)
    return tegula__fail(err, TEGULA_UNSUPPORTED, publish->target, -1, "cannot save a virtual dataset inside of another save's folder");
  if (publish->folder || publish->companion != NULL || strchr(suffix, '/') != NULL)
    return tegula__fail(err, TEGULA_INTERNAL, publish->target, -1, "a companion belongs to one file");
  const char *digits = base_name(publish->workplace) + strlen(".tegula-");
  publish->companion = tegula__strprintf("%s/companion", publish->workplace);
  publish->companion_name = tegula__strprintf("%s.%s-%.*s", base_name(publish->target), suffix, WORKPLACE_DIGITS, digits);
  if (publish->companion == NULL || publish->companion_name == NULL) return tegula__out_of_memory(err, (int64_t)strlen(publish->target));
  if (strlen(publish->companion_name) > NAME_MAX)
    return tegula__fail_errno(err, ENAMETOOLONG, publish->target, -1, "could not name the folder \"%s\"", publish->companion_name);
  if (mkdir(publish->companion, 0777) != 0)
    return tegula__fail_errno(err, errno, publish->target, -1, "could not make a folder for \"%s\"", publish->target);
  return TEGULA_OK;
}

/* A link in the view: its name, and where it leads from there. */
static bool link_in(int view, const char *to, const char *name) { return symlinkat(to, view, name) == 0 || errno == EEXIST; }

tegula_status tegula__publish_view(const tegula__publish *publish, char **path, tegula_error *err) {
  const char *name = base_name(publish->target);
  *path = publish->companion != NULL ? tegula__strprintf("%s/view/%s", publish->workplace, name) : strdup(publish->temporary);
  if (*path == NULL) return tegula__out_of_memory(err, (int64_t)strlen(publish->target));
  if (publish->companion == NULL) return TEGULA_OK;
  bool good = mkdirat(publish->place, "view", 0700) == 0 || errno == EEXIST;
  int view = good ? openat(publish->place, "view", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  good = view >= 0 && link_in(view, "../data", name) && link_in(view, "../companion", publish->companion_name);
  tegula_status status = good ? TEGULA_OK : tegula__fail_errno(err, errno, publish->target, -1, "could not read back \"%s\"", publish->target);
  if (view >= 0) close(view);
  if (status != TEGULA_OK) free(*path);
  return status;
}

/* ---- who belongs to whom ---- */

static void identity_of(const struct stat *info, char out[IDENTITY]) {
  snprintf(out, IDENTITY, "%" PRIu64 " %" PRId64 " %" PRId64 ".%09ld", (uint64_t)info->st_ino, (int64_t)info->st_size,
           (int64_t)info->st_mtim.tv_sec, info->st_mtim.tv_nsec);
}

/* The record of a companion in the folder: whose it is, and the name of the one before it, "" for none. */
static bool read_record(int folder, const char *name, char text[RECORD_MOST], char **main, char **previous) {
  int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return false;
  bool good = tegula__publish_read_text(fd, RECORD, text, RECORD_MOST);
  close(fd);
  if (!good || strncmp(text, RECORD_BEGINNING, strlen(RECORD_BEGINNING)) != 0) return false;
  char *last = strstr(text, "\nprevious "); /* up to the end, as a name may hold anything but a slash */
  if (last == NULL) return false;
  *previous = last + strlen("\nprevious ");
  *last = '\0';
  *main = tegula__publish_line(text, "main");
  return *main != NULL;
}

/* NAME<suffix>-<16 digits> of the same target and suffix. */
static bool is_sibling(const tegula__publish *publish, const char *name) {
  size_t size = strlen(publish->companion_name), stem = size - WORKPLACE_DIGITS;
  return strlen(name) == size && memcmp(name, publish->companion_name, stem) == 0 &&
         strspn(name + stem, "0123456789abcdef") == WORKPLACE_DIGITS;
}

/* The companion of what is to be replaced, and the one before it: names, or "". */
typedef struct generations {
  char current[NAME_MAX + 1], before[NAME_MAX + 1];
} generations;

static void compare(const tegula__publish *publish, int folder, const char *name, const char *identity, generations *out) {
  char text[RECORD_MOST], *main, *previous;
  if (!is_sibling(publish, name) || !read_record(folder, name, text, &main, &previous) || strcmp(main, identity) != 0) return;
  snprintf(out->current, sizeof out->current, "%s", name);
  if (is_sibling(publish, previous)) snprintf(out->before, sizeof out->before, "%s", previous);
}

static void find_generations(const tegula__publish *publish, generations *out) {
  char identity[IDENTITY];
  struct stat info;
  *out = (generations){0};
  if (lstat(publish->target, &info) != 0 || !S_ISREG(info.st_mode) || info.st_nlink != 1) return;
  identity_of(&info, identity);
  DIR *stream = opendir(publish->parent);
  if (stream == NULL) return;
  for (struct dirent *entry; (entry = readdir(stream)) != NULL && out->current[0] == '\0';)
    compare(publish, dirfd(stream), entry->d_name, identity, out);
  closedir(stream);
}

/* ---- publishing ---- */

/* What fails on a file of ours is said of the target. */
static tegula_status of_target(const tegula__publish *publish, tegula_status status, tegula_error *err) {
  if (status == TEGULA_OK || err == NULL || err->os_errno == 0) return status;
  return tegula__fail_errno(err, err->os_errno, publish->target, -1, "could not save \"%s\"", publish->target);
}

/* In the companion: whose it is. In the workplace: what a sweep needs to know when this save is killed. */
static tegula_status write_record(tegula__publish *publish, const generations *old, bool durable, tegula_error *err) {
  char text[RECORD_MOST], identity[IDENTITY];
  struct stat info;
  if (fstatat(publish->place, "data", &info, AT_SYMLINK_NOFOLLOW) != 0)
    return tegula__fail_errno(err, errno, publish->target, -1, "could not examine what was saved as \"%s\"", publish->target);
  identity_of(&info, identity);
  snprintf(text, sizeof text, "%smain %s\nprevious %s", RECORD_BEGINNING, identity, old->current);
  int fd = open(publish->companion, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return tegula__fail_errno(err, errno, publish->companion, -1, "could not open the folder of \"%s\"", publish->target);
  tegula_status status = tegula__publish_write_text(fd, RECORD, text, durable, err);
  close(fd);
  FORWARD(status);
  if (durable) FORWARD(tegula__publish_sync_folder(publish->companion, err));
  snprintf(text, sizeof text, "%s\n%s", publish->companion_name, old->before);
  return tegula__publish_write_text(publish->place, "note", text, false, err);
}

tegula_status tegula__companion_stand(tegula__publish *publish, bool durable, tegula_error *err) {
  generations old;
  find_generations(publish, &old);
  FORWARD(of_target(publish, write_record(publish, &old, durable, err), err));
  char *name = tegula__strprintf("%s/%s", publish->parent, publish->companion_name);
  if (name == NULL) return tegula__out_of_memory(err, (int64_t)strlen(publish->target));
  int failed = tegula__publish_rename_free(publish->place, "companion", AT_FDCWD, name);
  publish->companion_stands = failed == 0;
  tegula_status status = TEGULA_OK;
  if (failed != 0)
    status = tegula__fail_errno(err, failed, publish->target, -1, "could not give the folder of \"%s\" its name \"%s\"", publish->target,
                                name);
  else if (durable)
    status = tegula__publish_sync_folder(publish->parent, err); /* before the file that refers to it has its name */
  free(name);
  return status;
}

/* Does what the note says: the companion's name, a line end, and the name of the one that is obsolete when it is published or nothing. The
 * two have the same length and end in a digit; what is before may hold line ends. */
static void follow_note(int place, int folder, bool published) {
  char text[NOTE_MOST];
  if (!tegula__publish_read_text(place, "note", text, sizeof text)) return;
  size_t size = strlen(text);
  if (size < 2) return;
  bool alone = text[size - 1] == '\n';
  size_t first = alone ? size - 1 : size / 2;
  if (text[first] != '\n') return;
  text[first] = '\0';
  const char *name = published ? text + first + 1 : text;
  if (*name != '\0' && strchr(name, '/') == NULL && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
    tegula__workplace_remove_tree(folder, name);
}

static void finish(const tegula__publish *publish, bool published) {
  if (publish->companion == NULL || !publish->companion_stands) return;
  int folder = open(publish->parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  if (published)
    follow_note(publish->place, folder, true);
  else
    tegula__workplace_remove_tree(folder, publish->companion_name);
  close(folder);
}

void tegula__companion_commit(tegula__publish *publish) { finish(publish, true); }

void tegula__companion_abandon(tegula__publish *publish) { finish(publish, false); }

void tegula__companion_sweep(int place, int folder, bool published) { follow_note(place, folder, published); }
