/* Temporary names, rename, clean-up.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "publish/publish.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static char *parent_of(const char *path) {
  const char *slash = strrchr(path, '/');
  if (slash == NULL) return strdup(".");
  return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* The path without slashes at its end; NULL on lack of memory. */
static char *trimmed(const char *path) {
  size_t size = strlen(path);
  while (size > 1 && path[size - 1] == '/') size--;
  return strndup(path, size);
}

static tegula_status make_folder(tegula__publish *publish, const char *path, tegula_error *err) {
  char *copy = strdup(path);
  if (copy == NULL || !tegula__vector_reserve((void **)&publish->made, &publish->made_capacity, publish->made_count + 1, sizeof copy)) {
    free(copy);
    return tegula__out_of_memory(err, (int64_t)strlen(path));
  }
  if (mkdir(path, 0777) == 0) {
    publish->made[publish->made_count++] = copy;
    return TEGULA_OK;
  }
  int failed = errno;
  free(copy);
  return failed == EEXIST ? TEGULA_OK : tegula__fail_errno(err, failed, path, -1, "could not make folder \"%s\"", path);
}

/* Makes the missing folders of `path`, and notes them. */
static tegula_status make_folders(tegula__publish *publish, const char *path, tegula_error *err) {
  struct stat info;
  if (stat(path, &info) == 0)
    return S_ISDIR(info.st_mode) ? TEGULA_OK : tegula__fail(err, TEGULA_INVALID_ARGUMENT, path, -1, "\"%s\" is not a folder", path);
  if (errno != ENOENT) return tegula__fail_errno(err, errno, path, -1, "could not examine folder \"%s\"", path);
  char *parent = parent_of(path);
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
  if (stream == NULL) return tegula__fail_errno(err, errno, folder, -1, "could not list folder \"%s\"", folder);
  tegula_status status = TEGULA_OK;
  for (struct dirent *entry; status == TEGULA_OK && (entry = readdir(stream)) != NULL;) {
    struct stat info;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (fstatat(dirfd(stream), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue; /* gone meanwhile */
    if (S_ISREG(info.st_mode) && is_of_a_save(entry->d_name)) continue;
    status = tegula__hint(err,
                          tegula__fail(err, TEGULA_EXISTS, folder, -1, "folder \"%s\" cannot be replaced: \"%s\" in it is no shard", folder,
                                       entry->d_name),
                          "save to another name, or remove the folder first");
  }
  closedir(stream);
  return status;
}

static tegula_status check_target(tegula__publish *publish, tegula_error *err) {
  struct stat info;
  const char *target = publish->target;
  if (stat(target, &info) != 0) {
    if (errno == ENOENT) return TEGULA_OK;
    return tegula__fail_errno(err, errno, target, -1, "could not examine \"%s\"", target);
  }
  if (!publish->overwrite)
    return tegula__hint(err, tegula__fail(err, TEGULA_EXISTS, target, -1, "\"%s\" exists already", target),
                        "choose another name, or ask to overwrite it");
  if (S_ISDIR(info.st_mode) && !publish->folder)
    return tegula__fail(err, TEGULA_EXISTS, target, -1, "\"%s\" is a folder and cannot be replaced by a file", target);
  if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode))
    return tegula__fail(err, TEGULA_EXISTS, target, -1, "\"%s\" is neither a file nor a folder and cannot be replaced", target);
  bool same_kind = S_ISDIR(info.st_mode) == publish->folder;
  publish->mode = same_kind ? info.st_mode & 07777 : 0;
  return S_ISDIR(info.st_mode) ? check_replaceable(target, err) : TEGULA_OK;
}

/* Names, with symbolic links of the target followed, so that the link stays a link. */
static tegula_status set_names(tegula__publish *publish, const char *target, tegula_error *err) {
  char *plain = trimmed(target);
  struct stat info;
  if (plain != NULL && lstat(plain, &info) == 0 && S_ISLNK(info.st_mode)) {
    publish->target = realpath(plain, NULL);
    if (publish->target == NULL) {
      tegula_status status = tegula__fail_errno(err, errno, target, -1, "could not follow the link \"%s\"", target);
      free(plain);
      return status;
    }
    free(plain);
  } else {
    publish->target = plain;
  }
  if (publish->target != NULL) publish->parent = parent_of(publish->target);
  uint64_t random;
  if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
    return tegula__fail_errno(err, errno, target, -1, "could not choose a temporary name for \"%s\"", target);
  if (publish->parent != NULL)
    publish->temporary = tegula__strprintf("%s/.tegula-%016llx.tmp", publish->parent, (unsigned long long)random);
  return publish->temporary != NULL ? TEGULA_OK : tegula__out_of_memory(err, (int64_t)strlen(target));
}

tegula_status tegula__publish_begin(const char *target, bool folder, bool overwrite, tegula__publish *out, tegula_error *err) {
  *out = (tegula__publish){.folder = folder, .overwrite = overwrite};
  tegula_status status;
  size_t size = strlen(target);
  if (size == 0 || (!folder && target[size - 1] == '/'))
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, target, -1, "\"%s\" is not the name of a file", target);
  FORWARD_WITH(status, set_names(out, target, err));
  FORWARD_WITH(status, check_target(out, err));
  FORWARD_WITH(status, make_folders(out, out->parent, err));
  if (folder && mkdir(out->temporary, out->mode != 0 ? out->mode | 0700 : 0777) != 0)
    status = tegula__fail_errno(err, errno, target, -1, "could not make a temporary folder in \"%s\"", out->parent);
done:
  if (status != TEGULA_OK) tegula__publish_abandon(out);
  return status;
}

/* Unlinks what is in a folder. Reads it without memory from the heap: this must work when that is what has run out. */
static void empty_folder(const char *path) {
  _Alignas(struct dirent64) char entries[4096];
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  for (ssize_t size; (size = getdents64(fd, entries, sizeof entries)) > 0;) {
    const struct dirent64 *entry;
    for (ssize_t at = 0; at < size; at += entry->d_reclen) {
      entry = (const struct dirent64 *)(entries + at);
      if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) unlinkat(fd, entry->d_name, 0);
    }
  }
  close(fd);
}

/* Removes a file, or a folder with the plain files in it. Nobody comes by later to do what failed now, so it is tried again. */
static void remove_target(const char *path) {
  for (int attempt = 0; attempt < 4; attempt++) {
    if (unlink(path) == 0 || errno == ENOENT) return;
    if (errno != EISDIR && errno != EPERM) continue;
    empty_folder(path);
    if (rmdir(path) == 0) return;
  }
}

static tegula_status sync_folder(const char *path, tegula_error *err) {
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return tegula__fail_errno(err, errno, path, -1, "could not open folder \"%s\"", path);
  int failed = fsync(fd) != 0 ? errno : 0;
  close(fd);
  return failed == 0 ? TEGULA_OK : tegula__fail_errno(err, failed, path, -1, "could not bring folder \"%s\" to the disk", path);
}

/* Without the flag of renameat2 (NFS answers EINVAL) what must not be there is looked for before. */
static int rename_to_free_name(const char *from, const char *to) {
  struct stat info;
  if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (lstat(to, &info) == 0) return EEXIST;
  return rename(from, to) == 0 ? 0 : errno;
}

/* For file systems without RENAME_EXCHANGE: the old folder steps aside first, and back if the new one cannot take its place. */
static int replace_in_two_steps(const tegula__publish *publish) {
  char *aside = tegula__strprintf("%s.old", publish->temporary);
  if (aside == NULL) return ENOMEM;
  int failed = rename(publish->target, aside) == 0 ? 0 : errno;
  if (failed == 0) {
    failed = rename(publish->temporary, publish->target) == 0 ? 0 : errno;
    if (failed == 0)
      remove_target(aside);
    else
      rename(aside, publish->target);
  }
  free(aside);
  return failed;
}

/* A folder is exchanged with what is there, so that the name is never free in between; what was replaced is removed. */
static int replace_folder(const tegula__publish *publish) {
  const char *from = publish->temporary, *to = publish->target;
  int failed = EAGAIN;
  for (int attempt = 0; attempt < 8 && failed != 0; attempt++) { /* the target may come and go meanwhile */
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) == 0) {
      remove_target(from);
      return 0;
    }
    failed = errno;
    if (failed == EINVAL || failed == ENOSYS) failed = replace_in_two_steps(publish);
    if (failed == ENOENT) failed = rename_to_free_name(from, to);
    if (failed != ENOENT && failed != EEXIST && failed != ENOTEMPTY) return failed;
  }
  return failed;
}

static int rename_into_place(const tegula__publish *publish) {
  const char *from = publish->temporary, *to = publish->target;
  if (publish->mode != 0 && chmod(from, publish->mode) != 0) return errno; /* the new one is as private as the old one */
  if (!publish->overwrite) return rename_to_free_name(from, to);
  if (publish->folder) return replace_folder(publish);
  return rename(from, to) == 0 ? 0 : errno;
}

tegula_status tegula__publish_companion(tegula__publish *publish, const char *suffix, tegula_error *err) {
  uint64_t random;
  const char *slash = strrchr(publish->target, '/'), *name = slash != NULL ? slash + 1 : publish->target;
  if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
    return tegula__fail_errno(err, errno, publish->target, -1, "could not choose a name for the files of \"%s\"", publish->target);
  char *above = tegula__strprintf("%s/%s.%s", publish->parent, name, suffix);
  publish->companion_name = tegula__strprintf("%s.%s/%016llx", name, suffix, (unsigned long long)random);
  if (publish->companion_name != NULL) publish->companion = tegula__strprintf("%s/%s", publish->parent, publish->companion_name);
  tegula_status status = above != NULL && publish->companion != NULL ? TEGULA_OK : tegula__out_of_memory(err, 64);
  if (status == TEGULA_OK) status = make_folders(publish, above, err);
  if (status == TEGULA_OK) status = make_folder(publish, publish->companion, err);
  free(above);
  return status;
}

static void forget(tegula__publish *publish) {
  free(publish->target);
  free(publish->parent);
  free(publish->temporary);
  free(publish->companion);
  free(publish->companion_name);
  for (int64_t i = 0; i < publish->made_count; i++) free(publish->made[i]);
  free(publish->made);
  *publish = (tegula__publish){0};
}

/* The target's name, and those of the folders that were made for it. */
static tegula_status sync_names(const tegula__publish *publish, tegula_error *err) {
  FORWARD(sync_folder(publish->parent, err));
  for (int64_t i = publish->made_count - 1; i >= 0; i--) {
    char *above = parent_of(publish->made[i]);
    if (above == NULL) return tegula__out_of_memory(err, (int64_t)strlen(publish->made[i]));
    tegula_status status = sync_folder(above, err);
    free(above);
    FORWARD(status);
  }
  return TEGULA_OK;
}

tegula_status tegula__publish_commit(tegula__publish *publish, bool durable, tegula_error *err) {
  tegula_status status = durable && publish->folder ? sync_folder(publish->temporary, err) : TEGULA_OK;
  if (status == TEGULA_OK) {
    int failed = rename_into_place(publish);
    if (failed != 0)
      status = tegula__fail_errno(err, failed, publish->target, -1, "could not give the saved data its name \"%s\"", publish->target);
  }
  if (status != TEGULA_OK) {
    tegula__publish_abandon(publish);
    return status;
  }
  if (durable) status = sync_names(publish, err);
  forget(publish);
  return status;
}

void tegula__publish_abandon(tegula__publish *publish) {
  if (publish->temporary != NULL) remove_target(publish->temporary);
  if (publish->companion != NULL) remove_target(publish->companion);
  for (int64_t i = publish->made_count - 1; i >= 0; i--) rmdir(publish->made[i]); /* stays when somebody else uses it already */
  forget(publish);
}
