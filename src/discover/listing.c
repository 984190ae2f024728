/* A path -> the files it stands for: one file, the shards of a folder, or what a pattern matches.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * No file is opened here, and none is examined one by one where the folder's listing tells its
 * type. What cannot be a shard is refused by name, the first in the order of names, so that the
 * message is the same on every run. */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "discover/discover.h"

/* What a scan of folders collects. */
typedef struct listing {
  tegula__paths paths;
  int64_t capacity;
  char *refused;         /* the first name in text order that cannot be a shard; owned */
  const char *is_what;   /* what it is; static text */
  bool folders;          /* folders are wanted, not files */
  tegula__folders *held; /* by way of which folders are scanned; may be NULL */
  /* NULL: what cannot be seen is an error; else the scan goes on, and the first such error is kept
   * here */
  tegula_error *problem;
} listing;

void tegula__paths_free(tegula__paths *paths) {
  for (int64_t i = 0; i < paths->count; i++) free(paths->items[i]);
  free(paths->items);
  *paths = (tegula__paths){0};
}

/* Takes `path`. */
static tegula_status add_path(listing *list, char *path, tegula_error *err) {
  if (path == NULL || !tegula__vector_reserve((void **)&list->paths.items, &list->capacity,
                                              list->paths.count + 1, sizeof *list->paths.items)) {
    free(path);
    return tegula__out_of_memory(err, (list->paths.count + 1) * (int64_t)sizeof *list->paths.items);
  }
  list->paths.items[list->paths.count++] = path;
  return TEGULA_OK;
}

/* Takes `path`. */
static tegula_status note_refused(listing *list, char *path, const char *is_what,
                                  tegula_error *err) {
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

/* Something that may hold shards cannot be seen: the end, unless the scan is to go on. */
static tegula_status pass_over(listing *list, int os_errno, const char *what, const char *path,
                               tegula_error *err) {
  bool ends = list->problem == NULL || os_errno == ENOMEM;
  if (!ends && list->problem->status != TEGULA_OK) return TEGULA_OK;
  tegula_status status = tegula__fail_errno(ends ? err : list->problem, os_errno, path, -1,
                                            "could not %s \"%s\"", what, path);
  return ends ? status : TEGULA_OK;
}

/* What cannot be examined counts as a file where the scan goes on: whoever opens it gets the
 * reason. */
static tegula_status unexamined(listing *list, int os_errno, const char *path, mode_t *mode,
                                tegula_error *err) {
  bool is_file = list->problem != NULL && !list->folders && os_errno != ENOMEM;
  *mode = is_file ? S_IFREG : 0;
  return is_file ? TEGULA_OK : pass_over(list, os_errno, "examine", path, err);
}

/* From the folder's listing where it says, else by a look at the file (links, some file
 * systems). */
static tegula_status entry_type(listing *list, DIR *folder, const struct dirent *entry,
                                const char *path, mode_t *mode, tegula_error *err) {
  struct stat info;
  *mode = DTTOIF(entry->d_type);
  if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK) return TEGULA_OK;
  if (fstatat(dirfd(folder), entry->d_name, &info, 0) != 0)
    return unexamined(list, errno, path, mode, err);
  *mode = info.st_mode;
  return TEGULA_OK;
}

/* ---- folders ---- */

/* Hidden and private names are left out unless the pattern itself begins with that character. */
static bool is_wanted(const char *name, const char *pattern) {
  if (name[0] == '.' &&
      (pattern == NULL || pattern[0] != '.' || name[1] == '\0' || strcmp(name, "..") == 0))
    return false;
  if (name[0] == '_' && (pattern == NULL || pattern[0] != '_')) return false;
  return strcmp(name, TEGULA__SIDE_FILE_NAME) != 0 &&
         (pattern == NULL || fnmatch(pattern, name, FNM_PERIOD) == 0);
}

/* Of the folders in a pattern only hidden ones are left out. */
static bool is_wanted_folder(const char *name, const char *pattern) {
  return strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
         fnmatch(pattern, name, FNM_PERIOD) == 0;
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

/* Takes `path`. */
static tegula_status add_found(listing *list, char *path, mode_t mode, tegula_error *err) {
  if (!list->folders)
    return S_ISREG(mode) ? add_path(list, path, err) : note_refused(list, path, what_is(mode), err);
  if (S_ISDIR(mode)) return add_path(list, path, err);
  free(path);
  return TEGULA_OK;
}

static tegula_status add_entry(listing *list, DIR *folder, const struct dirent *entry,
                               const char *prefix, tegula_error *err) {
  char *path = join_path(prefix, entry->d_name);
  mode_t mode;
  if (path == NULL) return tegula__out_of_memory(err, PATH_MAX);
  tegula_status status = entry_type(list, folder, entry, path, &mode, err);
  if (status == TEGULA_OK) return add_found(list, path, mode, err);
  free(path);
  return status;
}

static tegula_status scan_entries(listing *list, DIR *folder, const char *prefix,
                                  const char *pattern, const char *shown, tegula_error *err) {
  for (;;) {
    errno = 0;
    const struct dirent *entry = readdir(folder);
    if (entry == NULL)
      return errno != 0 ? pass_over(list, errno, "list the folder", shown, err) : TEGULA_OK;
    bool wanted = list->folders ? is_wanted_folder(entry->d_name, pattern)
                                : is_wanted(entry->d_name, pattern);
    if (wanted) FORWARD(add_entry(list, folder, entry, prefix, err));
  }
}

/* Adds what is in a folder (`prefix` "" is the working directory) and matches the pattern (NULL:
 * all). */
static tegula_status scan_folder(listing *list, const char *prefix, const char *pattern,
                                 tegula_error *err) {
  const char *shown = prefix[0] != '\0' ? prefix : ".";
  int fd = tegula__folders_scan(list->held, shown);
  DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
  if (folder == NULL) {
    int os_errno = errno;
    if (fd >= 0) close(fd);
    return pass_over(list, os_errno, "list the folder", shown, err);
  }
  tegula_status status = scan_entries(list, folder, prefix, pattern, shown, err);
  closedir(folder);
  return status;
}

/* Numbers in names by their value. */
static int compare_names(const void *a, const void *b) {
  return strverscmp(*(char *const *)a, *(char *const *)b);
}

static void sort_names(listing *list) {
  if (list->paths.count > 1)
    qsort(list->paths.items, (size_t)list->paths.count, sizeof *list->paths.items, compare_names);
}

/* ---- patterns: component by component ---- */

static bool is_pattern(const char *text) { return strpbrk(text, TEGULA__WILDCARDS) != NULL; }

static tegula_status expand(listing *list, const char *path, const char *rest, tegula_error *err);

/* What a plain name behind a wildcard leads to; *mode is 0 where there is none in this folder. A
 * link that leads nowhere is there. */
static tegula_status examine(listing *list, const char *path, mode_t *mode, tegula_error *err) {
  struct stat info;
  *mode = 0;
  if (tegula__folders_stat(list->held, path, &info) == 0) {
    *mode = info.st_mode;
    return TEGULA_OK;
  }
  int os_errno = errno;
  bool absent = (os_errno == ENOENT || os_errno == ENOTDIR) && lstat(path, &info) != 0 &&
                (errno == ENOENT || errno == ENOTDIR);
  return absent ? TEGULA_OK : unexamined(list, os_errno, path, mode, err);
}

/* `path` is a plain name behind a wildcard; `inside`: what is looked for in it, NULL: itself. Takes
 * the path. */
static tegula_status expand_plain(listing *list, char *path, const char *inside,
                                  tegula_error *err) {
  mode_t mode;
  if (path == NULL) return tegula__out_of_memory(err, PATH_MAX);
  tegula_status status = examine(list, path, &mode, err);
  if (status == TEGULA_OK && mode != 0 && inside == NULL) return add_found(list, path, mode, err);
  if (status == TEGULA_OK && S_ISDIR(mode)) status = expand(list, path, inside, err);
  free(path);
  return status;
}

/* All folders in `path` that match, in the order of their names, so that the first error is always
 * the same. */
static tegula_status expand_folders(listing *list, const char *path, const char *pattern,
                                    const char *inside, tegula_error *err) {
  listing found = {.folders = true, .held = list->held, .problem = list->problem};
  tegula_status status = scan_folder(&found, path, pattern, err);
  sort_names(&found);
  for (int64_t i = 0; status == TEGULA_OK && i < found.paths.count; i++)
    status = expand(list, found.paths.items[i], inside, err);
  tegula__paths_free(&found.paths);
  return status;
}

/* Adds what matches `rest` inside the folder `path`. glob(3) is not used: it passes over folders
 * that may not be searched, and glibc's crashes where there is no memory. */
static tegula_status expand(listing *list, const char *path, const char *rest, tegula_error *err) {
  /* a slash was the end */
  if (rest[0] == '\0') return note_refused(list, tegula__strdup(path), "a folder", err);
  size_t size = strcspn(rest, "/"), slashes = strspn(rest + size, "/");
  const char *inside = slashes > 0 ? rest + size + slashes : NULL;
  char *name = strndup(rest, size);
  tegula_status status;
  if (name == NULL)
    status = tegula__out_of_memory(err, (int64_t)size);
  else if (!is_pattern(name))
    status = expand_plain(list, join_path(path, name), inside, err);
  else
    status = inside != NULL ? expand_folders(list, path, name, inside, err)
                            : scan_folder(list, path, name, err);
  free(name);
  return status;
}

/* What is in front of the first wildcard is taken as it is. */
static tegula_status match_pattern(listing *list, const char *pattern, tegula_error *err) {
  size_t front = strcspn(pattern, TEGULA__WILDCARDS);
  while (front > 0 && pattern[front - 1] != '/') front--;
  char *path = strndup(pattern, front);
  if (path == NULL) return tegula__out_of_memory(err, (int64_t)front);
  tegula_status status = expand(list, path, pattern + front, err);
  free(path);
  return status;
}

/* ---- hints ---- */

/* The pattern that matches a name as it is. */
static char *escaped(const char *name) {
  char *out = malloc(3 * strlen(name) + 1), *at = out;
  for (; out != NULL && *name != '\0'; name++) {
    if (*name == '\\') *at++ = '\\'; /* which has no meaning of its own in brackets */
    bool wild = strchr("*?[", *name) != NULL;
    if (wild) *at++ = '[';
    *at++ = *name;
    if (wild) *at++ = ']';
  }
  if (out != NULL) *at = '\0';
  return out;
}

/* A folder may be called run[3]: where the folder of a pattern is there as it is written, its name
 * is what the pattern does not match. */
static tegula_status hint_at_folder(const char *pattern, tegula_status status, tegula_error *err) {
  struct stat info;
  const char *slash = strrchr(pattern, '/');
  char *folder = slash != NULL ? strndup(pattern, (size_t)(slash - pattern)) : NULL;
  char *name =
      folder != NULL && is_pattern(folder) && stat(folder, &info) == 0 ? escaped(folder) : NULL;
  status =
      name != NULL
          ? tegula__hint(err, status, "there is a folder \"%s\": in a pattern its name is \"%s\"",
                         folder, name)
          : tegula__hint(err, status, "names that begin with . or _ and side files do not count");
  free(name);
  free(folder);
  return status;
}

/* Other programs take FILE:/DATASET, or FILE/DATASET. */
static tegula_status hint_at_dataset(const char *path, tegula_status status, tegula_error *err) {
  struct stat info;
  for (const char *at = path + strcspn(path, ":/"); *at != '\0'; at += 1 + strcspn(at + 1, ":/")) {
    char *file = at > path ? strndup(path, (size_t)(at - path)) : NULL;
    bool is_file = file != NULL && stat(file, &info) == 0 && S_ISREG(info.st_mode);
    at += is_file ? strspn(at, ":") : 0;
    if (is_file && *at != '\0')
      status = tegula__hint(err, status,
                            "\"%s\" is a file: give the dataset beside the path, as dataset \"%s\"",
                            file, at);
    free(file);
    if (is_file) break;
  }
  return status;
}

/* ---- the whole ---- */

static tegula_status check_listing(const listing *list, const char *path, bool folder,
                                   tegula_error *err) {
  if (list->refused != NULL)
    return tegula__hint(err,
                        tegula__fail(err, TEGULA_MISMATCH, list->refused, -1,
                                     "\"%s\" is no set of files: \"%s\" is %s", path, list->refused,
                                     list->is_what),
                        "move it away, or pass the files as a list");
  if (list->paths.count > 0) return TEGULA_OK;
  if (!folder)
    return hint_at_folder(
        path,
        tegula__fail(err, TEGULA_NOT_FOUND, path, -1, "nothing matches the pattern \"%s\"", path),
        err);
  return tegula__hint(
      err, tegula__fail(err, TEGULA_NOT_FOUND, path, -1, "no shards in the folder \"%s\"", path),
      "names that begin with . or _ and side files do not count");
}

/* A folder or a pattern: list, check, order; or, with a place for a problem, all that can be found
 * in the order of names. */
static tegula_status find_many(const char *path, bool folder, tegula__folders *held,
                               tegula_error *problem, tegula__paths *out, tegula_error *err) {
  listing list = {.held = held, .problem = problem};
  tegula_status status =
      folder ? scan_folder(&list, path, NULL, err) : match_pattern(&list, path, err);
  if (status == TEGULA_OK && problem == NULL) status = check_listing(&list, path, folder, err);
  if (status == TEGULA_OK && problem == NULL)
    status = tegula__names_order(list.paths.items, list.paths.count, path, err);
  if (problem != NULL) sort_names(&list);
  free(list.refused);
  list.paths.whole = folder;
  list.paths.listed = true;
  if (status == TEGULA_OK)
    *out = list.paths;
  else
    tegula__paths_free(&list.paths);
  return status;
}

static tegula_status find_one(const char *path, const struct stat *info, tegula__paths *out,
                              tegula_error *err) {
  const char *is_what = what_is(info->st_mode);
  if (is_what != NULL)
    return tegula__fail(err, TEGULA_UNSUPPORTED, path, -1,
                        "cannot load \"%s\": it is %s, no file or folder", path, is_what);
  listing list = {0};
  FORWARD(add_path(&list, tegula__strdup(path), err));
  *out = list.paths;
  return TEGULA_OK;
}

static tegula_status find(const char *path, tegula__folders *held, tegula_error *problem,
                          tegula__paths *out, tegula_error *err) {
  struct stat info;
  if (path[0] == '\0')
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1, "the path is empty");
  if (stat(path, &info) == 0)
    return S_ISDIR(info.st_mode) ? find_many(path, true, held, problem, out, err)
                                 : find_one(path, &info, out, err);
  int os_errno = errno;
  if ((os_errno == ENOENT || os_errno == ENAMETOOLONG) && is_pattern(path))
    return find_many(path, false, held, problem, out, err);
  tegula_status status =
      os_errno == ENOENT
          ? tegula__fail(err, TEGULA_NOT_FOUND, path, -1, "no file or folder \"%s\"", path)
          : tegula__fail_errno(err, os_errno, path, -1, "could not examine \"%s\"", path);
  return hint_at_dataset(path, status, err);
}

tegula_status tegula__paths_find(const char *path, tegula__folders *folders, tegula__paths *out,
                                 tegula_error *err) {
  return find(path, folders, NULL, out, err);
}

tegula_status tegula__paths_find_all(const char *path, tegula__paths *out, tegula_error *problem,
                                     tegula_error *err) {
  *problem = (tegula_error){.status = TEGULA_OK};
  return find(path, NULL, problem, out, err);
}
