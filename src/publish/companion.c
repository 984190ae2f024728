/* The folder that goes with a file: HDF5 tiles beside the file that refers to them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A record in it says which file it belongs to (inode, size and time stay with a file when it is
 * renamed) and which companion that file's predecessor had: a chain of generations. A program that
 * has an old file open finds the tiles when it first reads them, and without them would read fill
 * values without a word. So the companions of the last two generations before the new one stay in
 * any case, and an older one as long as somebody holds a lock on its file, as HDF5 does for
 * reading; a second link to the file, in the companion, is what can be asked. Where one of these
 * does not hold (a copy, a file of somebody else, another link to the old file), nothing is
 * removed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "publish/publish_priv.h"

#define RECORD ".tegula-companion"
#define RECORD_MOST 1024
#define RECORD_BEGINNING "tegula companion 1\n"
#define IDENTITY 96
#define MAIN ".tegula-file" /* a link to the file that it belongs to */
enum { KEPT = 2, MOST_GENERATIONS = 64 };

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

tegula_status tegula__publish_companion(tegula__publish *publish, const char *suffix,
                                        tegula_error *err) {
  if (publish->workplace == NULL)
    return tegula__fail(err, TEGULA_UNSUPPORTED, publish->target, -1,
                        "cannot save a virtual dataset inside of another save's folder");
  if (publish->folder || publish->companion != NULL || strchr(suffix, '/') != NULL)
    return tegula__fail(err, TEGULA_INTERNAL, publish->target, -1,
                        "a companion belongs to one file");
  const char *digits = base_name(publish->workplace) + strlen(".tegula-");
  publish->companion = tegula__strprintf("%s/companion", publish->workplace);
  publish->companion_name =
      tegula__strprintf("%s.%s-%.*s", base_name(publish->target), suffix, WORKPLACE_DIGITS, digits);
  if (publish->companion == NULL || publish->companion_name == NULL)
    return tegula__out_of_memory(err, (int64_t)strlen(publish->target));
  if (strlen(publish->companion_name) > NAME_MAX)
    return tegula__fail_errno(err, ENAMETOOLONG, publish->target, -1,
                              "could not name the folder \"%s\"", publish->companion_name);
  if (mkdir(publish->companion, 0777) != 0)
    return tegula__fail_errno(err, errno, publish->target, -1, "could not make a folder for \"%s\"",
                              publish->target);
  return TEGULA_OK;
}

/* A link in the view: its name, and where it leads from there. */
static bool link_in(int view, const char *to, const char *name) {
  return symlinkat(to, view, name) == 0 || errno == EEXIST;
}

tegula_status tegula__publish_view(const tegula__publish *publish, char **path, tegula_error *err) {
  const char *name = base_name(publish->target);
  *path = publish->companion != NULL ? tegula__strprintf("%s/view/%s", publish->workplace, name)
                                     : strdup(publish->temporary);
  if (*path == NULL) return tegula__out_of_memory(err, (int64_t)strlen(publish->target));
  if (publish->companion == NULL) return TEGULA_OK;
  bool good = mkdirat(publish->place, "view", 0700) == 0 || errno == EEXIST;
  int view = good ? openat(publish->place, "view", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  good = view >= 0 && link_in(view, "../data", name) &&
         link_in(view, "../companion", publish->companion_name);
  tegula_status status = good ? TEGULA_OK
                              : tegula__fail_errno(err, errno, publish->target, -1,
                                                   "could not read back \"%s\"", publish->target);
  if (view >= 0) close(view);
  if (status != TEGULA_OK) free(*path);
  return status;
}

/* ---- who belongs to whom ---- */

static void identity_of(const struct stat *info, char out[IDENTITY]) {
  snprintf(out, IDENTITY, "%" PRIu64 " %" PRId64 " %" PRId64 ".%09ld", (uint64_t)info->st_ino,
           (int64_t)info->st_size, (int64_t)info->st_mtim.tv_sec, info->st_mtim.tv_nsec);
}

/* The record of a companion in the folder: whose it is, and the name of the one before it, "" for
 * none. */
static bool read_record(int folder, const char *name, char text[RECORD_MOST], char **main,
                        char **previous) {
  int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return false;
  bool good = tegula__publish_read_text(fd, RECORD, text, RECORD_MOST);
  close(fd);
  if (!good || strncmp(text, RECORD_BEGINNING, strlen(RECORD_BEGINNING)) != 0) return false;
  /* up to the end, as a name may hold anything but a slash */
  char *last = strstr(text, "\nprevious ");
  if (last == NULL) return false;
  *previous = last + strlen("\nprevious ");
  *last = '\0';
  *main = tegula__publish_line(text, "main");
  return *main != NULL;
}

/* NAME<suffix>-<16 digits> of the same target and suffix as `like`. */
static bool is_sibling(const char *like, const char *name) {
  size_t size = strlen(like), stem = size - WORKPLACE_DIGITS;
  return size > WORKPLACE_DIGITS && strlen(name) == size && memcmp(name, like, stem) == 0 &&
         strspn(name + stem, "0123456789abcdef") == WORKPLACE_DIGITS;
}

/* Does the record say that the file is its own? It may have one more name, that in the
 * companion. */
static bool belongs(const tegula__publish *publish, int folder, const char *name,
                    const char *identity, const struct stat *file) {
  char text[RECORD_MOST], *main, *previous;
  struct stat link;
  if (!is_sibling(publish->companion_name, name) ||
      !read_record(folder, name, text, &main, &previous) || strcmp(main, identity) != 0)
    return false;
  int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  bool linked = fd >= 0 && fstatat(fd, MAIN, &link, AT_SYMLINK_NOFOLLOW) == 0 &&
                link.st_ino == file->st_ino && link.st_dev == file->st_dev;
  if (fd >= 0) close(fd);
  return file->st_nlink == (linked ? 2u : 1u);
}

/* The companion of what is to be replaced: its name, or "". */
static void find_current(const tegula__publish *publish, char out[NAME_MAX + 1]) {
  char identity[IDENTITY];
  struct stat info;
  out[0] = '\0';
  if (lstat(publish->target, &info) != 0 || !S_ISREG(info.st_mode)) return;
  identity_of(&info, identity);
  DIR *stream = opendir(publish->parent);
  if (stream == NULL) return;
  for (struct dirent *entry; (entry = readdir(stream)) != NULL && out[0] == '\0';)
    if (belongs(publish, dirfd(stream), entry->d_name, identity, &info))
      snprintf(out, NAME_MAX + 1, "%s", entry->d_name);
  closedir(stream);
}

/* Does somebody hold a lock on the file of the companion? */
static bool is_held(int folder, const char *name) {
  int companion = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  int fd =
      companion >= 0 ? openat(companion, MAIN, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
  if (fd < 0 && companion >= 0)
    fd = openat(companion, MAIN, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  bool held = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (fd >= 0) close(fd);
  if (companion >= 0) close(companion);
  return held;
}

/* From the one that belonged to what was replaced: those before it that nobody needs any more, the
 * oldest first, so that no link of the chain is lost while there is one behind it. */
static void remove_old(int folder, const char *replaced) {
  char names[MOST_GENERATIONS][NAME_MAX + 1], text[RECORD_MOST], *main, *previous;
  int count = 0;
  for (const char *name = replaced; count < MOST_GENERATIONS && is_sibling(replaced, name);
       name = previous) {
    bool known = false;
    /* records that lead round in a circle */
    for (int k = 0; k < count; k++) known = known || strcmp(names[k], name) == 0;
    snprintf(names[count], sizeof names[0], "%s", name);
    if (known || !read_record(folder, names[count], text, &main, &previous)) break;
    count++;
  }
  while (count > KEPT && !is_held(folder, names[count - 1]))
    tegula__workplace_remove_tree(folder, names[--count]);
}

/* ---- publishing ---- */

/* What fails on a file of ours is said of the target. */
static tegula_status of_target(const tegula__publish *publish, tegula_status status,
                               tegula_error *err) {
  if (status == TEGULA_OK || err == NULL || err->os_errno == 0) return status;
  return tegula__fail_errno(err, err->os_errno, publish->target, -1, "could not save \"%s\"",
                            publish->target);
}

/* In the companion: whose it is. In the workplace: what a sweep needs to know when this save is
 * killed. */
static tegula_status write_record(tegula__publish *publish, const char *replaced, bool durable,
                                  tegula_error *err) {
  char text[RECORD_MOST], identity[IDENTITY];
  struct stat info;
  if (fstatat(publish->place, "data", &info, AT_SYMLINK_NOFOLLOW) != 0)
    return tegula__fail_errno(err, errno, publish->target, -1,
                              "could not examine what was saved as \"%s\"", publish->target);
  identity_of(&info, identity);
  snprintf(text, sizeof text, "%smain %s\nprevious %s", RECORD_BEGINNING, identity, replaced);
  int fd = open(publish->companion, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return tegula__fail_errno(err, errno, publish->companion, -1,
                              "could not open the folder of \"%s\"", publish->target);
  tegula_status status = tegula__publish_write_text(fd, RECORD, text, durable, err);
  /* where there are links */
  if (status == TEGULA_OK) (void)!linkat(publish->place, "data", fd, MAIN, 0);
  close(fd);
  FORWARD(status);
  if (durable) FORWARD(tegula__publish_sync_folder(publish->companion, err));
  snprintf(text, sizeof text, "%s\n%s", publish->companion_name, replaced);
  return tegula__publish_write_text(publish->place, "note", text, false, err);
}

tegula_status tegula__companion_stand(tegula__publish *publish, bool durable, tegula_error *err) {
  char replaced[NAME_MAX + 1];
  find_current(publish, replaced);
  FORWARD(of_target(publish, write_record(publish, replaced, durable, err), err));
  char *name = tegula__strprintf("%s/%s", publish->parent, publish->companion_name);
  if (name == NULL) return tegula__out_of_memory(err, (int64_t)strlen(publish->target));
  int failed = tegula__publish_rename_free(publish->place, "companion", AT_FDCWD, name);
  publish->companion_stands = failed == 0;
  tegula_status status = TEGULA_OK;
  if (failed != 0)
    status = tegula__fail_errno(err, failed, publish->target, -1,
                                "could not give the folder of \"%s\" its name \"%s\"",
                                publish->target, name);
  else if (durable)
    /* before the file that refers to it has its name */
    status = tegula__publish_sync_folder(publish->parent, err);
  free(name);
  return status;
}

/* Does what the note says: the companion's name, a line end, and the name of the one that it takes
 * over from or nothing. The two have the same length and end in a digit; what is before may hold
 * line ends. */
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
  if (*name == '\0' || strchr(name, '/') != NULL || strcmp(name, ".") == 0 ||
      strcmp(name, "..") == 0)
    return;
  if (published)
    remove_old(folder, name);
  else
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

void tegula__companion_sweep(int place, int folder, bool published) {
  follow_note(place, folder, published);
}
