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
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/io_priv.h"

enum { MOST = 32 /* folders that are held open; files of others are opened by their paths */ };

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
  char *here; /* the working directory with a slash; empty where it has no name */
  int count;
  bool uncertain; /* a file was opened by its path, or through a symbolic link, or a clock is ahead
                     of ours */
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

static bool open_folder(char *path, folder *out) {
  struct stat info;
  int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  if (fstat(fd, &info) != 0) {
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
  if (name != NULL && folders->count < MOST && open_folder(name, place)) {
    folders->count++;
    if (!tegula__io_wait(&place->stamp)) folders->uncertain = true;
    return place;
  }
  free(name);
  folders->uncertain = true;
  return NULL;
}

/* The folder in which `path` lies, and the name in it. AT_FDCWD and the path itself where it is not
 * held. */
static int enter(tegula__folders *folders, const char *path, const char **name) {
  const char *slash = strrchr(path, '/');
  *name = slash != NULL ? slash + 1 : path;
  pthread_mutex_lock(&folders->lock);
  const folder *found = find_folder(folders, path,
                                    slash == NULL   ? 0
                                    : slash == path ? 1
                                                    : (size_t)(slash - path));
  int fd = found != NULL ? found->fd : AT_FDCWD;
  pthread_mutex_unlock(&folders->lock);
  if (found == NULL) *name = path;
  return fd;
}

static void note_uncertain(tegula__folders *folders) {
  pthread_mutex_lock(&folders->lock);
  folders->uncertain = true;
  pthread_mutex_unlock(&folders->lock);
}

int tegula__folders_scan(tegula__folders *folders, const char *path) {
  const int flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC;
  if (folders == NULL) return open(path, flags);
  pthread_mutex_lock(&folders->lock);
  const folder *found = find_folder(folders, path, strlen(path));
  int fd = found != NULL ? found->fd : AT_FDCWD;
  pthread_mutex_unlock(&folders->lock);
  return openat(fd, found != NULL ? "." : path, flags);
}

int tegula__folders_open(tegula__folders *folders, const char *path, int flags) {
  const char *name;
  if (folders == NULL) return open(path, flags);
  int at = enter(folders, path, &name);
  int fd = openat(at, name, flags | O_NOFOLLOW);
  if (fd >= 0 || errno != ELOOP) return fd;
  note_uncertain(folders); /* what it leads to may lie anywhere */
  return openat(at, name, flags);
}

int tegula__folders_stat(tegula__folders *folders, const char *path, struct stat *out) {
  const char *name;
  if (folders == NULL) return stat(path, out);
  int at = enter(folders, path, &name);
  if (fstatat(at, name, out, AT_SYMLINK_NOFOLLOW) != 0) return -1;
  if (!S_ISLNK(out->st_mode)) return 0;
  note_uncertain(folders);
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
  return folders->count > 0 || folders->note_count > 0 || folders->uncertain;
}

static bool same_place(const tegula__stamp *a, const tegula__stamp *b) {
  return a->inode == b->inode && a->device == b->device;
}

static bool same_times(const tegula__stamp *a, const tegula__stamp *b) {
  return a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

/* Do the names still lead to the folders that are held? One folder alone need not: all files came
 * from it. */
static bool named_as_before(const tegula__folders *folders) {
  struct stat info;
  if (folders->count < 2 && !folders->uncertain) return true;
  for (int turn = 0; turn < 2;
       turn++) /* twice: names may go back and forth between the looks at two of them */
    for (int i = 0; i < folders->count; i++) {
      if (stat(folders->items[i].path, &info) != 0) return false;
      tegula__stamp now = tegula__io_stamp_of(&info);
      if (!same_place(&now, &folders->items[i].stamp)) return false;
    }
  return true;
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
  return named_as_before(folders) ? TEGULA_OK : moved(folders->items[0].path, err);
}
