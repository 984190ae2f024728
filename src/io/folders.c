/* The folders that the files of one description lie in.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A folder may be replaced while its files are opened one after the other. Each folder is opened
 * once, and files are opened relative to its descriptor, so all of them come from the same folder,
 * whatever its name leads to meanwhile. A folder whose times stay the same has had no name added,
 * removed or replaced. Where the times cannot tell, the caller looks at each file a second time: if
 * all names still lead to the files that were found, all of them were there together at the moment
 * between the two looks. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/io_priv.h"

enum {
  MOST = 32, /* folders that are held open; others are reached from those above them */
  SPARE = 8  /* descriptors that are left to files */
};

typedef struct folder {
  char *path;
  int fd;
  tegula__stamp stamp;
} folder;

/* A file that was opened, or could not be, besides those whose stamps the caller has. */
typedef struct note {
  char *path;
  tegula__stamp stamp;
  int os_errno; /* not 0: why it could not be opened */
} note;

struct tegula__folders {
  pthread_mutex_t lock;
  char *here;       /* the working directory with a slash; empty where it has no name */
  int count, limit; /* folders; descriptors of the process */
  bool uncertain;   /* times cannot tell: not all folders are held, or a clock is ahead of ours */
  bool links;       /* a file was opened through a symbolic link */
  bool outside; /* a file was opened by its path, or through a link: none of the folders held it */
  int64_t note_count, note_capacity;
  note *notes;
  folder items[MOST];
};

tegula_status tegula__folders_create(tegula__folders **out, tegula_error *err) {
  tegula__folders *folders = calloc(1, sizeof *folders);
  if (folders == NULL || (folders->here = tegula__io_rooted("")) == NULL) {
    free(folders);
    return tegula__out_of_memory(err, (int64_t)sizeof *folders);
  }
  struct rlimit most;
  bool limited = getrlimit(RLIMIT_NOFILE, &most) == 0 && most.rlim_cur < INT_MAX;
  folders->limit = limited ? (int)most.rlim_cur : INT_MAX;
  pthread_mutex_init(&folders->lock, NULL);
  *out = folders;
  return TEGULA_OK;
}

void tegula__folders_destroy(tegula__folders *folders) {
  if (folders == NULL) return;
  for (int i = 0; i < folders->count; i++) {
    close(folders->items[i].fd);
    free(folders->items[i].path);
  }
  for (int64_t i = 0; i < folders->note_count; i++) free(folders->notes[i].path);
  pthread_mutex_destroy(&folders->lock);
  free(folders->notes);
  free(folders->here);
  free(folders);
}

/* ---- one folder ---- */

/* Its name without slashes at the end. */
static size_t trimmed_size(const char *path, size_t size) {
  while (size > 1 && path[size - 1] == '/') size--;
  return size;
}

static char *rooted_name(const tegula__folders *folders, const char *path, size_t size) {
  if (size > 0 && path[0] == '/') return strndup(path, trimmed_size(path, size));
  if (size == 0 && folders->here[0] == '\0') return strdup(".");
  char *name = tegula__strprintf("%s%.*s", folders->here, (int)size, path);
  if (name != NULL) name[trimmed_size(name, strlen(name))] = '\0';
  return name;
}

/* The part of `path` behind the folder; NULL where it does not lie in there. */
static const char *part_behind(const tegula__folders *folders, const folder *item,
                               const char *path) {
  const char *outer = item->path;
  size_t here = strlen(folders->here), size;
  if (path[0] != '/') { /* as seen from the working directory */
    size = strlen(outer);
    if (here > 0 && size + 1 == here && strncmp(outer, folders->here, size) == 0) return path;
    if (strncmp(outer, folders->here, here) != 0) return NULL;
    outer += here;
  }
  size = strlen(outer);
  if (size == 0 || strncmp(path, outer, size) != 0 || path[size] != '/') return NULL;
  return path + size + strspn(path + size, "/");
}

/* The innermost folder that is held and in which `path` lies, and the name in there. AT_FDCWD and
 * the path itself where there is none. Lock held, or one thread. */
static int beneath(const tegula__folders *folders, const char *path, const char **rest) {
  int at = AT_FDCWD;
  *rest = path;
  for (int i = 0; i < folders->count; i++) {
    const char *part = part_behind(folders, &folders->items[i], path);
    if (part == NULL || part[0] == '\0' || (at != AT_FDCWD && part <= *rest)) continue;
    at = folders->items[i].fd;
    *rest = part;
  }
  return at;
}

static bool open_folder(const tegula__folders *folders, char *path, folder *out) {
  struct stat info;
  const char *rest;
  int at = beneath(folders, path, &rest);
  int fd = openat(at, rest, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  if (fd + SPARE >= folders->limit || fstat(fd, &info) != 0) {
    close(fd);
    return false;
  }
  *out = (folder){.path = path, .fd = fd, .stamp = tegula__io_stamp_of(&info)};
  return true;
}

/* The folder `path` of `size` characters, opened at the first call. NULL where it cannot be held.
 * Lock held. */
static const folder *find_folder(tegula__folders *folders, const char *path, size_t size) {
  char *name = rooted_name(folders, path, size);
  for (int i = 0; name != NULL && i < folders->count; i++) {
    if (strcmp(folders->items[i].path, name) != 0) continue;
    free(name);
    return &folders->items[i];
  }
  folder *place = &folders->items[folders->count];
  if (name != NULL && folders->count < MOST && open_folder(folders, name, place)) {
    folders->count++;
    if (!tegula__io_wait(&place->stamp)) folders->uncertain = true;
    return place;
  }
  free(name);
  folders->uncertain = true;
  return NULL;
}

/* The descriptor from which `path` is reached, and the name as seen from there. */
static int enter(tegula__folders *folders, const char *path, const char **name) {
  const char *slash = strrchr(path, '/');
  size_t size = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
  pthread_mutex_lock(&folders->lock);
  const folder *found = find_folder(folders, path, size);
  int fd = found != NULL ? found->fd : beneath(folders, path, name);
  if (found != NULL) *name = slash != NULL ? slash + 1 : path;
  folders->outside = folders->outside || fd == AT_FDCWD;
  pthread_mutex_unlock(&folders->lock);
  return fd;
}

/* What a link leads to may lie anywhere. */
static void note_link(tegula__folders *folders) {
  pthread_mutex_lock(&folders->lock);
  folders->uncertain = folders->links = folders->outside = true;
  pthread_mutex_unlock(&folders->lock);
}

static bool has_links(tegula__folders *folders) {
  pthread_mutex_lock(&folders->lock);
  bool links = folders->links;
  pthread_mutex_unlock(&folders->lock);
  return links;
}

int tegula__folders_scan(tegula__folders *folders, const char *path) {
  const int flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC;
  if (folders == NULL) return open(path, flags);
  const char *rest = ".";
  pthread_mutex_lock(&folders->lock);
  const folder *found = find_folder(folders, path, strlen(path));
  int at = found != NULL ? found->fd : beneath(folders, path, &rest);
  folders->outside = folders->outside || at == AT_FDCWD;
  pthread_mutex_unlock(&folders->lock);
  int fd = openat(at, rest, flags);
  if (fd >= 0 || errno != EACCES || found == NULL) return fd;
  note_link(folders); /* it may be read, but not searched: its files cannot be opened either */
  return open(path, flags);
}

int tegula__folders_open(tegula__folders *folders, const char *path, int flags) {
  const char *name;
  if (folders == NULL) return open(path, flags);
  int at = enter(folders, path, &name);
  if (has_links(folders)) return openat(at, name, flags);
  int fd = openat(at, name, flags | O_NOFOLLOW);
  if (fd >= 0 || errno != ELOOP) return fd;
  note_link(folders);
  return openat(at, name, flags);
}

int tegula__folders_stat(tegula__folders *folders, const char *path, struct stat *out) {
  const char *name;
  if (folders == NULL) return stat(path, out);
  int at = enter(folders, path, &name);
  if (has_links(folders)) return fstatat(at, name, out, 0);
  if (fstatat(at, name, out, AT_SYMLINK_NOFOLLOW) != 0) return -1;
  if (!S_ISLNK(out->st_mode)) return 0;
  note_link(folders);
  return fstatat(at, name, out, 0);
}

tegula_status tegula__folders_note(tegula__folders *folders, const char *path,
                                   const tegula__stamp *stamp, int os_errno, tegula_error *err) {
  if (folders == NULL) return TEGULA_OK;
  char *copy = strdup(path);
  pthread_mutex_lock(&folders->lock);
  bool good =
      copy != NULL && tegula__vector_reserve((void **)&folders->notes, &folders->note_capacity,
                                             folders->note_count + 1, sizeof *folders->notes);
  if (good)
    folders->notes[folders->note_count++] = (note){
        .path = copy, .stamp = stamp != NULL ? *stamp : (tegula__stamp){0}, .os_errno = os_errno};
  pthread_mutex_unlock(&folders->lock);
  if (good) return TEGULA_OK;
  free(copy);
  return tegula__out_of_memory(err, (int64_t)sizeof *folders->notes);
}

/* ---- the second look ---- */

bool tegula__folders_used(const tegula__folders *folders) {
  return folders->count > 0 || folders->note_count > 0 || folders->outside;
}

static bool same_place(const tegula__stamp *a, const tegula__stamp *b) {
  return a->inode == b->inode && a->device == b->device;
}

static bool same_times(const tegula__stamp *a, const tegula__stamp *b) {
  return a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

/* Does the name of the folder lead to it still, as seen from the one above? */
static bool is_named(const tegula__folders *folders, const folder *item, bool alone) {
  struct stat info;
  const char *rest;
  int at = beneath(folders, item->path, &rest);
  if (at == AT_FDCWD && alone) return true;
  if (fstatat(at, rest, &info, 0) != 0) return false;
  tegula__stamp now = tegula__io_stamp_of(&info);
  return same_place(&now, &item->stamp);
}

/* The first folder whose name leads to another one now; NULL: none. Where all files came from below
 * one folder its own name does not matter. */
static const folder *renamed(const tegula__folders *folders) {
  const char *rest;
  int tops = 0;
  for (int i = 0; i < folders->count; i++)
    tops += beneath(folders, folders->items[i].path, &rest) == AT_FDCWD;
  bool alone = tops < 2 && !folders->outside;
  for (int turn = 0; turn < 2; turn++) /* twice: names may be exchanged between two looks */
    for (int i = 0; i < folders->count; i++)
      if (!is_named(folders, &folders->items[i], alone)) return &folders->items[i];
  return NULL;
}

bool tegula__folders_untouched(const tegula__folders *folders) {
  struct stat info;
  for (int i = 0; i < folders->count; i++) {
    if (fstat(folders->items[i].fd, &info) != 0) return false;
    tegula__stamp now = tegula__io_stamp_of(&info);
    if (!same_times(&now, &folders->items[i].stamp)) return false;
  }
  return true;
}

bool tegula__folders_certain(const tegula__folders *folders) {
  return !folders->uncertain && tegula__folders_untouched(folders);
}

static tegula_status moved(const char *path, tegula_error *err) {
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_CHANGED, path, -1,
                                   "\"%s\" was replaced while the files of its set were described",
                                   path),
                      "open it again when nothing replaces its files any more");
}

tegula_status tegula__folders_check_file(tegula__folders *folders, const char *path,
                                         const tegula__stamp *stamp, tegula_error *err) {
  struct stat info;
  if (tegula__folders_stat(folders, path, &info) != 0)
    return errno == ENOENT || errno == ENOTDIR
               ? moved(path, err)
               : tegula__fail_errno(err, errno, path, -1, "could not examine \"%s\"", path);
  tegula__stamp now = tegula__io_stamp_of(&info);
  return memcmp(&now, stamp, sizeof now) == 0 ? TEGULA_OK : moved(path, err);
}

/* What could not be opened must not be there now: the reason may be another then. */
static tegula_status check_absent(tegula__folders *folders, const note *absent, tegula_error *err) {
  struct stat info;
  if (absent->os_errno != ENOENT && absent->os_errno != ENOTDIR) return TEGULA_OK;
  return tegula__folders_stat(folders, absent->path, &info) == 0 ? moved(absent->path, err)
                                                                 : TEGULA_OK;
}

tegula_status tegula__folders_check_notes(tegula__folders *folders, tegula_error *err) {
  for (int64_t i = 0; i < folders->note_count; i++) {
    const note *item = &folders->notes[i];
    FORWARD(item->os_errno != 0
                ? check_absent(folders, item, err)
                : tegula__folders_check_file(folders, item->path, &item->stamp, err));
  }
  return TEGULA_OK;
}

tegula_status tegula__folders_check_names(const tegula__folders *folders, tegula_error *err) {
  const folder *other = renamed(folders);
  return other == NULL ? TEGULA_OK : moved(other->path, err);
}
