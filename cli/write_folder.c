/* The folder that `tegula write` makes: filled under a temporary name, named when it is whole.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Whenever the program ends, DIR is absent, empty or whole: the last step is one rename(2) over the
 * empty DIR. A failure leaves nothing behind; a program that is killed leaves at most a folder
 * .tegula-<16 digits>.tmp beside DIR, and an empty DIR. That folder is a workplace as saves make
 * them (docs/design.md): its mark is locked as long as this program runs, and the next save there
 * removes it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli_report.h"
#include "commands.h"

#define MARK_MOST 1024

/* What the first digits of a workplace's name say: this boot of the machine (FNV-1a of its number);
 * 0: unknown. */
static uint32_t boot_number(void) {
  char text[64];
  int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  ssize_t size = fd >= 0 ? read(fd, text, sizeof text) : 0;
  if (fd >= 0) {
    close(fd);
  }
  while (size > 0 && text[size - 1] == '\n') {
    size--;
  }
  uint32_t hash = UINT32_C(2166136261);
  for (ssize_t i = 0; i < size; i++) {
    hash = (hash ^ (unsigned char)text[i]) * UINT32_C(16777619);
  }
  return size > 0 ? hash : 0;
}

void target_temporary_name(char out[TEMPORARY_NAME], int locked) {
  uint32_t random = 0;
  if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
    /* it need only be new: who makes it uses O_EXCL or mkdir */
    random = (uint32_t)time(NULL) << 16 ^ (uint32_t)getpid();
  }
  snprintf(out, TEMPORARY_NAME, ".tegula-%08" PRIx32 "%08" PRIx32 ".tmp",
           locked ? boot_number() : 0, random);
}

void target_remove_folder(const char *dir) {
  DIR *stream = opendir(dir);
  if (stream == NULL) {
    return;
  }
  for (struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
    unlinkat(dirfd(stream), entry->d_name, 0);
  }
  closedir(stream);
  rmdir(dir);
}

/* Makes one folder unless it is there, and notes that it did. */
static tegula_status make_folder(target_folder *target, size_t length, tegula_error *error) {
  char kept = target->made[length];
  target->made[length] = '\0';
  tegula_status status = TEGULA_OK;
  if (mkdir(target->made, 0777) == 0) {
    target->made_length[target->made_count++] = length;
  } else if (errno != EEXIST) {
    status =
        report_fail_os(error, target->made, errno, NULL, "could not make folder %s", target->made);
  }
  target->made[length] = kept;
  return status;
}

static tegula_status no_memory(const target_folder *target, tegula_error *error) {
  return report_fail(error, TEGULA_OUT_OF_MEMORY, NULL, "could not make folder %s: no memory",
                     target->dir);
}

static tegula_status make_folders(target_folder *target, tegula_error *error) {
  target->made = strdup(target->dir);
  target->made_length = calloc(strlen(target->dir) + 1, sizeof *target->made_length);
  if (target->made == NULL || target->made_length == NULL) {
    return no_memory(target, error);
  }
  tegula_status status = TEGULA_OK;
  for (size_t at = 1; target->made[at - 1] != '\0' && status == TEGULA_OK; at++) {
    if ((target->made[at] == '/' || target->made[at] == '\0') && target->made[at - 1] != '/') {
      status = make_folder(target, at, error);
    }
  }
  return status;
}

/* EXISTS: the folder cannot become what is to be written. */
static tegula_status refuse(const target_folder *target, const char *hint, const char *expected,
                            const char *found, tegula_error *error) {
  report_fail(error, TEGULA_EXISTS, hint, "will not write to %s: expected %s, found %s",
              target->dir, expected, found);
  snprintf(error->path, sizeof error->path, "%s", target->dir);
  return TEGULA_EXISTS;
}

static tegula_status check_empty(const target_folder *target, tegula_error *error) {
  DIR *stream = opendir(target->dir);
  if (stream == NULL) {
    return report_fail_os(error, target->dir, errno, NULL, "could not open folder %s", target->dir);
  }
  tegula_status status = TEGULA_OK;
  for (struct dirent *entry = readdir(stream); entry != NULL && status == TEGULA_OK;
       entry = readdir(stream)) {
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
      char found[sizeof entry->d_name + 8];
      snprintf(found, sizeof found, "%s in it", entry->d_name);
      status = refuse(target, "choose a new folder, or run tegula clean on it first",
                      "an empty folder", found, error);
    }
  }
  closedir(stream);
  return status;
}

/* A folder that is somebody's working folder or a mount point must not be replaced by another one.
 * Sets the names. */
static tegula_status check_place(target_folder *target, tegula_error *error) {
  static const char hint[] = "give a new folder inside it";
  struct stat parent, working;
  target->real = realpath(target->dir, NULL);
  if (target->real == NULL) {
    return report_fail_os(error, target->dir, errno, NULL, "could not find folder %s", target->dir);
  }
  char *around = strndup(target->real, (size_t)(strrchr(target->real, '/') - target->real) + 1);
  if (around == NULL) {
    return no_memory(target, error);
  }
  int failed = stat(target->real, &target->old) != 0 || stat(around, &parent) != 0;
  free(around);
  if (failed) {
    return report_fail_os(error, target->dir, errno, NULL, "could not look at folder %s",
                          target->dir);
  }
  if (target->old.st_dev != parent.st_dev) {
    return refuse(target, hint, "a folder that can be replaced", "a mount point", error);
  }
  if (stat(".", &working) == 0 && working.st_dev == target->old.st_dev &&
      working.st_ino == target->old.st_ino) {
    return refuse(target, hint, "a folder that can be replaced", "the working folder", error);
  }
  return TEGULA_OK;
}

/* The names of a new workplace. */
static int choose_names(target_folder *target, int locked) {
  char name[TEMPORARY_NAME];
  int length = (int)(strrchr(target->real, '/') - target->real) + 1;
  free(target->workplace);
  free(target->staging);
  target->workplace = target->staging = NULL;
  target_temporary_name(name, locked);
  if (asprintf(&target->workplace, "%.*s%s", length, target->real, name) < 0) {
    target->workplace = NULL;
    return 0;
  }
  if (asprintf(&target->staging, "%s/data", target->workplace) < 0) {
    target->staging = NULL;
    return 0;
  }
  return 1;
}

/* Was DIR itself made, and how many folders above it? Says what a save needs to know that finds
 * this after the program was killed. */
static int write_mark(const target_folder *target) {
  struct rlimit limit;
  size_t length = strlen(target->dir);
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      limit.rlim_cur < MARK_MOST) {
    return EFBIG; /* where writing would end in a signal */
  }
  while (length > 1 && target->dir[length - 1] == '/') {
    length--;
  }
  int made = target->made_count > 0 && target->made_length[target->made_count - 1] == length;
  const char *name = strrchr(target->real, '/') + 1;
  size_t parents = target->made_count - (size_t)made;
  static const char format[] = "tegula save 1\nprocess %ld\nparents %zu\nempty %d\ntarget %s";
  return dprintf(target->mark, format, (long)getpid(), parents, made, name) > 0 ? 0 : errno;
}

/* The mark is made, locked, and then still there: else a save has taken the workplace for a left
 * one, EAGAIN. */
static int lock_mark(target_folder *target, int locked) {
  struct stat open_one, named;
  target->place = open(target->workplace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (target->place < 0) {
    return errno == ENOENT || errno == ESTALE ? EAGAIN : errno;
  }
  target->mark = openat(target->place, "mark", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (target->mark < 0) {
    return errno == ENOENT || errno == ESTALE ? EAGAIN : errno;
  }
  if (locked && flock(target->mark, LOCK_EX | LOCK_NB) != 0) {
    return errno == EWOULDBLOCK ? EAGAIN : EOPNOTSUPP;
  }
  if (fstat(target->mark, &open_one) != 0 || fstatat(target->place, "mark", &named, 0) != 0 ||
      open_one.st_ino != named.st_ino) {
    return EAGAIN;
  }
  return write_mark(target);
}

static void close_descriptor(int *fd) {
  if (*fd >= 0) {
    close(*fd);
  }
  *fd = -1;
}

/* Only a folder that is not empty needs memory for it. */
static void remove_workplace(target_folder *target) {
  if (rmdir(target->staging) != 0 && errno != ENOENT) {
    target_remove_folder(target->staging);
  }
  for (int attempt = 0; attempt < 4 && target->place >= 0 &&
                        unlinkat(target->place, "mark", 0) != 0 && errno != ENOENT;
       attempt++) {}
  for (int attempt = 0; attempt < 4 && rmdir(target->workplace) != 0; attempt++) {}
  close_descriptor(&target->mark);
  close_descriptor(&target->place);
}

/* An errno; EAGAIN: try another one; EOPNOTSUPP: without a lock. */
static int make_workplace(target_folder *target, int locked) {
  if (!choose_names(target, locked)) {
    return ENOMEM;
  }
  if (mkdir(target->workplace, 0700) != 0) {
    return errno == EEXIST ? EAGAIN : errno;
  }
  int failed = lock_mark(target, locked);
  if (failed == 0 && mkdir(target->staging, 0700) != 0) {
    failed = errno;
  }
  if (failed != 0) {
    remove_workplace(target);
  }
  return failed;
}

static tegula_status make_staging(target_folder *target, tegula_error *error) {
  int failed = EAGAIN, locked = 1;
  for (int attempt = 0; attempt < 64 && (failed == EAGAIN || (failed == EOPNOTSUPP && locked));
       attempt++) {
    locked = locked && failed != EOPNOTSUPP;
    failed = make_workplace(target, locked);
  }
  if (failed != 0) {
    return report_fail_os(error, target->dir, failed,
                          "write to a new folder inside it, or elsewhere",
                          "could not make a temporary folder beside %s", target->dir);
  }
  target->fd = open(target->staging, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (target->fd < 0) {
    int os_errno = errno;
    remove_workplace(target);
    return report_fail_os(error, target->staging, os_errno, NULL, "could not open folder %s",
                          target->staging);
  }
  return TEGULA_OK;
}

tegula_status target_begin(target_folder *target, const char *dir, tegula_error *error) {
  *target = (target_folder){.dir = dir, .fd = -1, .place = -1, .mark = -1};
  tegula_status status = make_folders(target, error);
  if (status == TEGULA_OK) {
    status = check_empty(target, error);
  }
  if (status == TEGULA_OK) {
    status = check_place(target, error);
  }
  return status == TEGULA_OK ? make_staging(target, error) : status;
}

/* Owner, group and mode of the empty folder that is replaced. */
static int take_over_mode(const target_folder *target) {
  const struct stat old = target->old;
  struct stat own;
  if (stat(target->staging, &own) != 0) {
    return 0;
  }
  if ((old.st_uid != own.st_uid || old.st_gid != own.st_gid) &&
      chown(target->staging, old.st_uid, old.st_gid) != 0) {
    return 0;
  }
  return chmod(target->staging, old.st_mode & 07777) == 0;
}

tegula_status target_publish(target_folder *target, tegula_error *error) {
  if (!take_over_mode(target) || rename(target->staging, target->real) != 0) {
    return report_fail_os(error, target->dir, errno, NULL,
                          "could not put the finished folder in the place of %s", target->dir);
  }
  remove_workplace(target);
  close(target->fd);
  target->fd = -1;
  target->made_count = 0;
  return TEGULA_OK;
}

void target_end(target_folder *target) {
  if (target->fd >= 0) {
    unlinkat(target->fd, SIDE_FILE, 0);
    close(target->fd);
    remove_workplace(target);
  }
  for (size_t i = target->made_count; i > 0; i--) {
    target->made[target->made_length[i - 1]] = '\0';
    rmdir(target->made);
  }
  free(target->made);
  free(target->made_length);
  free(target->real);
  free(target->workplace);
  free(target->staging);
}
