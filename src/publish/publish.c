/* Begin, commit, abandon.
 *
 * SPDX-License-Identifier: Apache-2.0 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io/io.h"
#include "publish/publish_priv.h"

/* The path without slashes at its end; NULL on lack of memory. */
static char *trimmed(const char *path) {
  size_t size = strlen(path);
  while (size > 1 && path[size - 1] == '/') size--;
  return strndup(path, size);
}

static tegula_status make_folder(tegula__publish *publish, const char *path, tegula_error *err) {
  char *copy = strdup(path);
  if (copy == NULL || !tegula__vector_reserve((void **)&publish->made, &publish->made_capacity,
                                              publish->made_count + 1, sizeof copy)) {
    free(copy);
    return tegula__out_of_memory(err, (int64_t)strlen(path));
  }
  int failed = mkdir(path, 0777) == 0 ? 0 : errno;
  if (failed == 0) {
    publish->made[publish->made_count++] = copy;
    return TEGULA_OK;
  }
  free(copy);
  return failed == EEXIST
             ? TEGULA_OK
             : tegula__fail_errno(err, failed, path, -1, "could not make folder \"%s\"", path);
}

/* Makes the missing folders of `path`, and notes them. */
static tegula_status make_folders(tegula__publish *publish, const char *path, tegula_error *err) {
  struct stat info;
  if (stat(path, &info) == 0)
    return S_ISDIR(info.st_mode) ? TEGULA_OK
                                 : tegula__fail(err, TEGULA_INVALID_ARGUMENT, path, -1,
                                                "\"%s\" is not a folder", path);
  if (errno != ENOENT)
    return tegula__fail_errno(err, errno, path, -1, "could not examine folder \"%s\"", path);
  char *parent = tegula__publish_parent(path);
  if (parent == NULL) return tegula__out_of_memory(err, (int64_t)strlen(path));
  tegula_status status = make_folders(publish, parent, err);
  free(parent);
  FORWARD(status);
  return make_folder(publish, path, err);
}

/* Could a save have made this? Shards, and files that go with them. */
static bool is_of_a_save(const char *name) {
  if (strcmp(name, "shard_meta.json") == 0 || strcmp(name, ".tegula-write.json") == 0) return true;
  return strncmp(name, "shard_", 6) == 0 && name[6] >= '0' && name[6] <= '9';
}

/* Is there anything in the folder that would be lost? */
static tegula_status check_replaceable(const char *folder, tegula_error *err) {
  DIR *stream = opendir(folder);
  if (stream == NULL)
    return tegula__fail_errno(err, errno, folder, -1, "could not list folder \"%s\"", folder);
  tegula_status status = TEGULA_OK;
  for (struct dirent *entry; status == TEGULA_OK && (entry = readdir(stream)) != NULL;) {
    struct stat info;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    /* gone meanwhile */
    if (fstatat(dirfd(stream), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISREG(info.st_mode) && is_of_a_save(entry->d_name)) continue;
    status = tegula__hint(err,
                          tegula__fail(err, TEGULA_EXISTS, folder, -1,
                                       "folder \"%s\" cannot be replaced: \"%s\" in it is no shard",
                                       folder, entry->d_name),
                          "save to another name, or remove the folder first");
  }
  closedir(stream);
  return status;
}

/* What the commit would meet only after all has been written. */
static tegula_status check_rights(const tegula__publish *publish, const struct stat *target,
                                  tegula_error *err) {
  struct stat parent;
  if (S_ISDIR(target->st_mode) && faccessat(AT_FDCWD, publish->target, W_OK, AT_EACCESS) != 0)
    return tegula__fail_errno(err, errno, publish->target, -1, "cannot replace folder \"%s\"",
                              publish->target);
  if (geteuid() == 0 || stat(publish->parent, &parent) != 0 || (parent.st_mode & S_ISVTX) == 0)
    return TEGULA_OK;
  if (target->st_uid == geteuid() || parent.st_uid == geteuid()) return TEGULA_OK;
  return tegula__fail_errno(
      err, EPERM, publish->target, -1,
      "cannot replace \"%s\", which belongs to somebody else in a sticky folder", publish->target);
}

static tegula_status check_kind(const tegula__publish *publish, const struct stat *info,
                                tegula_error *err) {
  const char *target = publish->target;
  if (!publish->overwrite)
    return tegula__hint(
        err, tegula__fail(err, TEGULA_EXISTS, target, -1, "\"%s\" exists already", target),
        "choose another name, or ask to overwrite it");
  if (S_ISDIR(info->st_mode) && !publish->folder)
    return tegula__fail(err, TEGULA_EXISTS, target, -1,
                        "\"%s\" is a folder and cannot be replaced by a file", target);
  if (!S_ISDIR(info->st_mode) && !S_ISREG(info->st_mode))
    return tegula__fail(err, TEGULA_EXISTS, target, -1,
                        "\"%s\" is neither a file nor a folder and cannot be replaced", target);
  return S_ISDIR(info->st_mode) ? check_replaceable(target, err) : TEGULA_OK;
}

static tegula_status check_target(tegula__publish *publish, tegula_error *err) {
  struct stat info;
  const char *target = publish->target;
  if (stat(target, &info) != 0) {
    if (errno == ENOENT) return TEGULA_OK;
    return tegula__fail_errno(err, errno, target, -1, "could not examine \"%s\"", target);
  }
  FORWARD(check_kind(publish, &info, err));
  FORWARD(check_rights(publish, &info, err));
  publish->there = S_ISDIR(info.st_mode) == publish->folder;
  if (!publish->there) return TEGULA_OK;
  publish->mode = info.st_mode & 07777;
  publish->owner = info.st_uid;
  publish->group = info.st_gid;
  return TEGULA_OK;
}

/* With symbolic links of the target followed, so that the link stays a link. */
static tegula_status set_names(tegula__publish *publish, const char *target, tegula_error *err) {
  char *plain = trimmed(target);
  struct stat info;
  if (plain != NULL && lstat(plain, &info) == 0 && S_ISLNK(info.st_mode)) {
    publish->target = realpath(plain, NULL);
    if (publish->target == NULL) {
      tegula_status status =
          tegula__fail_errno(err, errno, target, -1, "could not follow the link \"%s\"", target);
      free(plain);
      return status;
    }
    free(plain);
  } else {
    publish->target = plain;
  }
  if (publish->target != NULL) publish->parent = tegula__publish_parent(publish->target);
  return publish->parent != NULL ? TEGULA_OK : tegula__out_of_memory(err, (int64_t)strlen(target));
}

/* Folders that a killed save had made, nearest last, count as made by this one. */
static tegula_status adopt_parents(tegula__publish *publish, const char *path, int count,
                                   tegula_error *err) {
  if (count == 0) return TEGULA_OK;
  char *copy = strdup(path), *above = tegula__publish_parent(path);
  tegula_status status = copy != NULL && above != NULL
                             ? adopt_parents(publish, above, count - 1, err)
                             : tegula__out_of_memory(err, 64);
  free(above);
  if (status == TEGULA_OK &&
      !tegula__vector_reserve((void **)&publish->made, &publish->made_capacity,
                              publish->made_count + 1, sizeof copy))
    status = tegula__out_of_memory(err, 64);
  if (status == TEGULA_OK)
    publish->made[publish->made_count++] = copy;
  else
    free(copy);
  return status;
}

/* When the target's folder is in a workplace (a save of many files): the folder around that. NULL:
 * it is not. */
static char *around_workplace(const tegula__publish *publish) {
  uint32_t boot;
  char *place = tegula__publish_parent(publish->parent);
  const char *slash = place != NULL ? strrchr(place, '/') : NULL;
  char *around = slash != NULL && tegula__workplace_parse(slash + 1, &boot)
                     ? tegula__publish_parent(place)
                     : NULL;
  free(place);
  return around;
}

/* The folder of the target. What is left in a workplace goes with it: then the folder `around` it
 * instead, once for all its files. */
static tegula_status sweep(tegula__publish *publish, const char *around, tegula_error *err) {
  if (around == NULL)
    return adopt_parents(publish, publish->parent, tegula__publish_sweep(publish->parent), err);
  if (tegula__publish_is_empty(publish->parent)) tegula__publish_sweep(around);
  return TEGULA_OK;
}

static tegula_status make_workplace(tegula__publish *publish, const char *around,
                                    tegula_error *err) {
  if (around != NULL && !publish->folder) return tegula__workplace_share(publish, err);
  FORWARD(tegula__workplace_make(publish, err));
  FORWARD(tegula__workplace_write_mark(publish, err));
  publish->temporary = tegula__strprintf("%s/data", publish->workplace);
  publish->source = "data";
  if (publish->temporary == NULL)
    return tegula__out_of_memory(err, (int64_t)strlen(publish->workplace));
  if (publish->folder &&
      mkdir(publish->temporary, publish->there ? publish->mode | 0700 : 0777) != 0)
    return tegula__fail_errno(err, errno, publish->target, -1,
                              "could not make a temporary folder in \"%s\"", publish->parent);
  return TEGULA_OK;
}

tegula_status tegula__publish_begin(const char *target, bool folder, bool overwrite,
                                    tegula__publish *out, tegula_error *err) {
  *out = (tegula__publish){.folder = folder, .overwrite = overwrite, .place = -1, .mark = -1};
  tegula_status status;
  char *around = NULL;
  size_t size = strlen(target);
  if (size == 0 || (!folder && target[size - 1] == '/'))
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, target, -1,
                        "\"%s\" is not the name of a file", target);
  FORWARD_WITH(status, set_names(out, target, err));
  around = around_workplace(out);
  FORWARD_WITH(status, sweep(out, around, err));
  FORWARD_WITH(status, check_target(out, err));
  FORWARD_WITH(status, make_folders(out, out->parent, err));
  FORWARD_WITH(status, make_workplace(out, around, err));
done:
  free(around);
  if (status != TEGULA_OK) {
    tegula__publish_explain(out, target, status, err);
    tegula__publish_abandon(out);
  }
  return status;
}

/* ---- the names ---- */

/* What was taken from the target's name is a file, or a folder in which somebody has put nothing
 * meanwhile. */
static bool may_go(const tegula__publish *publish, const char *name) {
  struct stat info;
  if (fstatat(publish->place, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if (!S_ISDIR(info.st_mode)) return S_ISREG(info.st_mode);
  char *path = tegula__strprintf("%s/%s", publish->workplace, name);
  bool good = path != NULL && check_replaceable(path, NULL) == TEGULA_OK;
  free(path);
  return good;
}

/* For file systems without RENAME_EXCHANGE: the old folder steps aside first, and back if the new
 * one cannot take its place. A sweep does the same when this process is killed in between. */
static int replace_in_two_steps(const tegula__publish *publish) {
  int place = publish->place;
  if (renameat(AT_FDCWD, publish->target, place, "old") != 0) return errno;
  int failed = !may_go(publish, "old")                                   ? ENOTEMPTY
               : renameat(place, "data", AT_FDCWD, publish->target) == 0 ? 0
                                                                         : errno;
  if (failed != 0) tegula__publish_rename_free(place, "old", AT_FDCWD, publish->target);
  return failed;
}

/* A folder is exchanged with what is there, so that the name is never free in between; what was
 * replaced goes with the workplace. */
static int replace_folder(const tegula__publish *publish) {
  int place = publish->place, failed = EAGAIN;
  const char *to = publish->target;
  /* the target may come and go meanwhile */
  for (int attempt = 0; attempt < 8 && failed != 0; attempt++) {
    failed = renameat2(place, "data", AT_FDCWD, to, RENAME_EXCHANGE) == 0 ? 0 : errno;
    if (failed == 0 && !may_go(publish, "data")) {
      renameat2(place, "data", AT_FDCWD, to, RENAME_EXCHANGE);
      return ENOTEMPTY;
    }
    if (failed == EINVAL || failed == ENOSYS) failed = replace_in_two_steps(publish);
    if (failed == ENOENT) failed = tegula__publish_rename_free(place, "data", AT_FDCWD, to);
    if (failed != ENOENT && failed != EEXIST) return failed;
  }
  return failed;
}

static int rename_into_place(const tegula__publish *publish) {
  if (!publish->overwrite)
    return tegula__publish_rename_free(publish->place, publish->source, AT_FDCWD, publish->target);
  if (publish->folder) return replace_folder(publish);
  return renameat(publish->place, publish->source, AT_FDCWD, publish->target) == 0 ? 0 : errno;
}

/* The rights of what is replaced, and to the disk what is not there yet: those, and the names in a
 * folder. */
static tegula_status settle(const tegula__publish *publish, bool durable, tegula_error *err) {
  int fd = -1, failed = 0;
  /* opened first: the rights may not allow it */
  if (durable && (publish->folder || publish->there)) {
    fd = openat(publish->place, publish->source,
                (publish->folder ? O_RDONLY | O_DIRECTORY : O_WRONLY) | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) failed = errno;
  }
  if (failed == 0) failed = tegula__publish_keep_rights(publish);
  if (fd >= 0 && failed == 0 && fsync(fd) != 0) failed = errno;
  if (fd >= 0) close(fd);
  if (failed == 0) return TEGULA_OK;
  return tegula__fail_errno(err, failed, publish->target, -1,
                            "could not finish what is to become \"%s\"", publish->target);
}

/* ---- the turn ---- */

enum { TURN_TRIES = 2000, TURN_PAUSE_NS = 1000000 };

/* Saves that replace a file of this folder take turns between the look at it and the rename: else
 * two that add to the same file could both find it as it was. The lock is the folder's, held for
 * two calls; whoever has it for longer is somebody else, and file systems without locks have none:
 * then it goes on without. -1: not locked. */
static int take_turn(const char *folder) {
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int i = 0; fd >= 0 && i < TURN_TRIES; i++) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
    if (errno != EWOULDBLOCK && errno != EINTR) break;
    nanosleep(&(struct timespec){.tv_nsec = TURN_PAUSE_NS}, NULL);
  }
  if (fd >= 0) close(fd);
  return -1;
}

static tegula_status no_name(const tegula__publish *publish, int failed, tegula_error *err) {
  const char *target = publish->target;
  if (failed == EEXIST)
    return tegula__hint(
        err,
        tegula__fail(err, TEGULA_EXISTS, target, -1,
                     "\"%s\" was made by another program while this one saved to it", target),
        "save again: what is there is then added to, or replaced by a save that overwrites; "
        "or choose another name");
  tegula_status status = tegula__fail_errno(
      err, failed, target, -1, "could not give the saved data its name \"%s\"", target);
  if (failed != ENOTEMPTY) return status;
  return tegula__hint(
      err, status, "another program has put files into it: move them away, or choose another name");
}

static tegula_status give_name(const tegula__publish *publish, tegula_error *err) {
  int turn = publish->overwrite && !publish->folder ? take_turn(publish->parent) : -1;
  tegula_status status = publish->expected != NULL
                             ? tegula__io_check(publish->target, publish->expected, err)
                             : TEGULA_OK;
  int failed = status == TEGULA_OK ? rename_into_place(publish) : 0;
  if (turn >= 0) close(turn);
  return failed == 0 ? status : no_name(publish, failed, err);
}

/* ---- the end ---- */

static void forget(tegula__publish *publish) {
  free(publish->target);
  free(publish->parent);
  free(publish->workplace);
  free(publish->temporary);
  free(publish->companion);
  free(publish->companion_name);
  for (int64_t i = 0; i < publish->made_count; i++) free(publish->made[i]);
  free(publish->made);
  *publish = (tegula__publish){.place = -1, .mark = -1};
}

/* The target's name, and those of the folders that were made for it. */
static tegula_status sync_names(const tegula__publish *publish, tegula_error *err) {
  FORWARD(tegula__publish_sync_folder(publish->parent, err));
  for (int64_t i = publish->made_count - 1; i >= 0; i--) {
    char *above = tegula__publish_parent(publish->made[i]);
    if (above == NULL) return tegula__out_of_memory(err, (int64_t)strlen(publish->made[i]));
    tegula_status status = tegula__publish_sync_folder(above, err);
    free(above);
    FORWARD(status);
  }
  return TEGULA_OK;
}

tegula_status tegula__publish_commit(tegula__publish *publish, bool durable, tegula_error *err) {
  tegula_status status;
  FORWARD_WITH(status, settle(publish, durable, err));
  if (publish->companion != NULL)
    FORWARD_WITH(status, tegula__companion_stand(publish, durable, err));
  FORWARD_WITH(status, give_name(publish, err));
done:
  if (status != TEGULA_OK) {
    tegula__publish_explain(publish, publish->target, status, err);
    tegula__publish_abandon(publish);
    return status;
  }
  if (durable) status = sync_names(publish, err);
  tegula__companion_commit(publish);
  tegula__workplace_remove(publish);
  forget(publish);
  return status;
}

void tegula__publish_abandon(tegula__publish *publish) {
  tegula__companion_abandon(publish);
  tegula__workplace_remove(publish);
  /* stays when somebody else uses it already */
  for (int64_t i = publish->made_count - 1; i >= 0; i--) rmdir(publish->made[i]);
  forget(publish);
}
