/* A path -> the files it stands for: one file, the shards of a folder, or what a pattern matches.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * No file is opened here, and none is examined one by one where the folder's listing tells its type. What cannot be a shard is
 * refused by name, the first in the order of names, so that the message is the same on every run. */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "discover/discover.h"

/* What a scan of folders collects. */
typedef struct listing {
  tegula__paths paths;
  int64_t capacity;
  char *refused;        /* the first name in text order that cannot be a shard; owned */
  const char *is_what;  /* what it is; static text */
} listing;

void tegula__paths_free(tegula__paths *paths) {
  for (int64_t i = 0; i < paths->count; i++) free(paths->items[i]);
  free(paths->items);
  *paths = (tegula__paths){0};
}

/* Takes `path`. */
static tegula_status add_path(listing *list, char *path, tegula_error *err) {
  if (path == NULL ||
      !tegula__vector_reserve((void **)&list->paths.items, &list->capacity, list->paths.count + 1, sizeof *list->paths.items)) {
    free(path);
    return tegula__out_of_memory(err, (list->paths.count + 1) * (int64_t)sizeof *list->paths.items);
  }
  list->paths.items[list->paths.count++] = path;
  return TEGULA_OK;
}

/* Takes `path`. */
static tegula_status note_refused(listing *list, char *path, const char *is_what, tegula_error *err) {
  if (path == NULL) return tegula__out_of_memory(err, PATH_MAX);
  bool first = list->refused == NULL || strcmp(path, list->refused) < 0;
  free(first ? list->refused : path);
  if (!first) return TEGULA_OK;
  list->refused = path;
  list->is_what = is_what;
  return TEGULA_OK;
}

/* ---- types of files ---- */

/* What a thing that is not a regular file is, in words; NULL for a regular file. */
static const char *what_is(mode_t mode) {
  if (S_ISREG(mode)) return NULL;
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return S_ISCHR(mode) || S_ISBLK(mode) ? "a device" : "no regular file";
}

/* From the folder's listing where it says, else by a look at the file (links, some file systems). */
static tegula_status entry_type(DIR *folder, const struct dirent *entry, const char *path, const char **is_what,
                                tegula_error *err) {
  *is_what = NULL;
  if (entry->d_type == DT_REG) return TEGULA_OK;
  if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK) {
    *is_what = what_is(DTTOIF(entry->d_type));
    return TEGULA_OK;
  }
  struct stat info;
  if (fstatat(dirfd(folder), entry->d_name, &info, 0) != 0)
    return tegula__fail_errno(err, errno, path, -1, "could not examine \"%s\"", path);
  *is_what = what_is(info.st_mode);
  return TEGULA_OK;
}

/* ---- folders ---- */

/* Hidden and private names are left out unless the pattern itself begins with that character. */
static bool is_wanted(const char *name, const char *pattern) {
  if (name[0] == '.' && (pattern == NULL || pattern[0] != '.' || name[1] == '\0' || strcmp(name, "..") == 0)) return false;
  if (name[0] == '_' && (pattern == NULL || pattern[0] != '_')) return false;
  return strcmp(name, TEGULA__SIDE_FILE_NAME) != 0 && (pattern == NULL || fnmatch(pattern, name, FNM_PERIOD) == 0);
}

static char *join_path(const char *folder, const char *name) {
  size_t length = strlen(folder), extra = strlen(name);
  bool slash = length > 0 && folder[length - 1] != '/';
  char *path = malloc(length + slash + extra + 1);
  if (path == NULL) return NULL;
  memcpy(path, folder, length);
  if (slash) path[length] = '/';
  memcpy(path + length + slash, name, extra + 1);
  return path;
}

static tegula_status add_entry(listing *list, DIR *folder, const struct dirent *entry, const char *prefix, tegula_error *err) {
  char *path = join_path(prefix, entry->d_name);
  const char *is_what = NULL;
  if (path != NULL) {
    tegula_status status = entry_type(folder, entry, path, &is_what, err);
    if (status != TEGULA_OK) {
      free(path);
      return status;
    }
  }
  return is_what == NULL ? add_path(list, path, err) : note_refused(list, path, is_what, err);
}

static tegula_status scan_entries(listing *list, DIR *folder, const char *prefix, const char *pattern, const char *shown,
                                  tegula_error *err) {
  for (;;) {
    errno = 0;
    const struct dirent *entry = readdir(folder);
    if (entry == NULL && errno != 0) return tegula__fail_errno(err, errno, shown, -1, "could not list \"%s\"", shown);
    if (entry == NULL) return TEGULA_OK;
    if (is_wanted(entry->d_name, pattern)) FORWARD(add_entry(list, folder, entry, prefix, err));
  }
}

/* Adds what is in a folder (`prefix` "" is the working directory) and matches the pattern (NULL: all). */
static tegula_status scan_folder(listing *list, const char *prefix, const char *pattern, tegula_error *err) {
  const char *shown = prefix[0] != '\0' ? prefix : ".";
  DIR *folder = opendir(shown);
  if (folder == NULL) return tegula__fail_errno(err, errno, shown, -1, "could not list the folder \"%s\"", shown);
  tegula_status status = scan_entries(list, folder, prefix, pattern, shown, err);
  closedir(folder);
  return status;
}

/* ---- patterns ---- */

static bool is_pattern(const char *text) { return strpbrk(text, "*?[\\") != NULL; }

/* A folder that cannot be read may hold shards: stop instead of leaving them out. */
static int stop_at(const char *path, int os_errno) {
  (void)path;
  return os_errno != ENOENT && os_errno != ENOTDIR;
}

static tegula_status run_glob(const char *pattern, glob_t *found, tegula_error *err) {
  errno = 0;
  int result = glob(pattern, GLOB_NOSORT, stop_at, found);
  if (result == 0 || result == GLOB_NOMATCH) return TEGULA_OK;
  if (result == GLOB_NOSPACE) return tegula__out_of_memory(err, PATH_MAX);
  return tegula__fail_errno(err, errno != 0 ? errno : EIO, pattern, -1, "could not list what matches \"%s\"", pattern);
}

/* One match of a pattern whose last component is plain. */
static tegula_status add_match(listing *list, const char *path, tegula_error *err) {
  struct stat info;
  if (stat(path, &info) != 0) return tegula__fail_errno(err, errno, path, -1, "could not examine \"%s\"", path);
  const char *is_what = what_is(info.st_mode);
  char *copy = tegula__strdup(path);
  return is_what == NULL ? add_path(list, copy, err) : note_refused(list, copy, is_what, err);
}

/* One folder that the front of a pattern matches; a file there is no folder to look into. */
static tegula_status scan_match(listing *list, const char *path, const char *last, tegula_error *err) {
  struct stat info;
  if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) return TEGULA_OK;
  return scan_folder(list, path, last, err);
}

static tegula_status match_glob(listing *list, const char *pattern, const char *last, tegula_error *err) {
  glob_t found = {0};
  tegula_status status = run_glob(pattern, &found, err);
  for (size_t i = 0; status == TEGULA_OK && i < found.gl_pathc; i++) {
    status = last != NULL ? scan_match(list, found.gl_pathv[i], last, err) : add_match(list, found.gl_pathv[i], err);
  }
  globfree(&found);
  return status;
}

/* The last component is matched against a folder's listing, which tells the types for nothing; the front is left to glob(3). */
static tegula_status match_pattern(listing *list, const char *pattern, tegula_error *err) {
  const char *slash = strrchr(pattern, '/');
  const char *last = slash != NULL ? slash + 1 : pattern;
  if (!is_pattern(last)) return match_glob(list, pattern, NULL, err);
  char *front = strndup(pattern, (size_t)(last - pattern));
  if (front == NULL) return tegula__out_of_memory(err, (int64_t)strlen(pattern));
  tegula_status status = is_pattern(front) ? match_glob(list, front, last, err) : scan_folder(list, front, last, err);
  free(front);
  return status;
}

/* ---- the whole ---- */

static tegula_status check_listing(const listing *list, const char *path, bool folder, tegula_error *err) {
  if (list->refused != NULL)
    return tegula__hint(err,
                        tegula__fail(err, TEGULA_MISMATCH, list->refused, -1, "\"%s\" is no set of files: \"%s\" is %s", path,
                                     list->refused, list->is_what),
                        "move it away, or pass the files as a list");
  if (list->paths.count > 0) return TEGULA_OK;
  tegula_status status = folder ? tegula__fail(err, TEGULA_NOT_FOUND, path, -1, "no shards in the folder \"%s\"", path)
                                : tegula__fail(err, TEGULA_NOT_FOUND, path, -1, "nothing matches the pattern \"%s\"", path);
  return tegula__hint(err, status, "names that begin with . or _ and side files do not count");
}

/* A folder or a pattern: list, check, order. */
static tegula_status find_many(const char *path, bool folder, tegula__paths *out, tegula_error *err) {
  listing list = {0};
  tegula_status status = folder ? scan_folder(&list, path, NULL, err) : match_pattern(&list, path, err);
  if (status == TEGULA_OK) status = check_listing(&list, path, folder, err);
  if (status == TEGULA_OK) status = tegula__names_order(list.paths.items, list.paths.count, path, err);
  free(list.refused);
  list.paths.whole = folder;
  if (status == TEGULA_OK)
    *out = list.paths;
  else
    tegula__paths_free(&list.paths);
  return status;
}

static tegula_status find_one(const char *path, const struct stat *info, tegula__paths *out, tegula_error *err) {
  const char *is_what = what_is(info->st_mode);
  if (is_what != NULL)
    return tegula__fail(err, TEGULA_UNSUPPORTED, path, -1, "cannot load \"%s\": it is %s, no file or folder", path, is_what);
  listing list = {0};
  FORWARD(add_path(&list, tegula__strdup(path), err));
  *out = list.paths;
  return TEGULA_OK;
}

tegula_status tegula__paths_find(const char *path, tegula__paths *out, tegula_error *err) {
  struct stat info;
  if (path[0] == '\0') return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1, "the path is empty");
  if (stat(path, &info) == 0) return S_ISDIR(info.st_mode) ? find_many(path, true, out, err) : find_one(path, &info, out, err);
  int os_errno = errno;
  if ((os_errno == ENOENT || os_errno == ENAMETOOLONG) && is_pattern(path)) return find_many(path, false, out, err);
  if (os_errno == ENOENT)
    return tegula__fail(err, TEGULA_NOT_FOUND, path, -1, "no file or folder \"%s\"", path);
  return tegula__fail_errno(err, os_errno, path, -1, "could not examine \"%s\"", path);
}
