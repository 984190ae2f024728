/* The folder that `tegula write` makes: filled under a temporary name, named when it is whole.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Whenever the program ends, DIR is absent, empty or whole: the last step is one rename(2) over the empty DIR. A failure leaves
 * nothing behind; a program that is killed leaves at most a folder .tegula-<random>.tmp beside DIR, and an empty DIR. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"
#include "report.h"

void target_temporary_name(char out[TEMPORARY_NAME]) {
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
    random = (uint64_t)time(NULL) << 32 ^ (uint64_t)getpid(); /* it need only be new: who makes it uses O_EXCL or mkdir */
  }
  snprintf(out, TEMPORARY_NAME, ".tegula-%016" PRIx64 ".tmp", random);
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
    status = report_fail_os(error, target->made, errno, NULL, "could not make folder %s", target->made);
  }
  target->made[length] = kept;
  return status;
}

static tegula_status no_memory(const target_folder *target, tegula_error *error) {
  return report_fail(error, TEGULA_OUT_OF_MEMORY, NULL, "could not make folder %s: no memory", target->dir);
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
static tegula_status refuse(const target_folder *target, const char *hint, const char *expected, const char *found,
                            tegula_error *error) {
  report_fail(error, TEGULA_EXISTS, hint, "will not write to %s: expected %s, found %s", target->dir, expected, found);
  snprintf(error->path, sizeof error->path, "%s", target->dir);
  return TEGULA_EXISTS;
}

static tegula_status check_empty(const target_folder *target, tegula_error *error) {
  DIR *stream = opendir(target->dir);
  if (stream == NULL) {
    return report_fail_os(error, target->dir, errno, NULL, "could not open folder %s", target->dir);
  }
  tegula_status status = TEGULA_OK;
  for (struct dirent *entry = readdir(stream); entry != NULL && status == TEGULA_OK; entry = readdir(stream)) {
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
      char found[sizeof entry->d_name + 8];
      snprintf(found, sizeof found, "%s in it", entry->d_name);
      status = refuse(target, "choose a new folder, or run tegula clean on it first", "an empty folder", found, error);
    }
  }
  closedir(stream);
  return status;
}

/* A folder that is somebody's working folder or a mount point must not be replaced by another one. Sets the names. */
static tegula_status check_place(target_folder *target, tegula_error *error) {
  static const char hint[] = "give a new folder inside it";
  char name[TEMPORARY_NAME];
  struct stat folder, parent, working;
  target->real = realpath(target->dir, NULL);
  if (target->real == NULL) {
    return report_fail_os(error, target->dir, errno, NULL, "could not find folder %s", target->dir);
  }
  target_temporary_name(name);
  char *slash = strrchr(target->real, '/');
  int length = (int)(slash - target->real) + 1;
  if (asprintf(&target->staging, "%.*s%s", length, target->real, name) < 0) {
    target->staging = NULL;
    return no_memory(target, error);
  }
  char *around = strndup(target->real, (size_t)length);
  if (around == NULL) {
    return no_memory(target, error);
  }
  int failed = stat(target->real, &folder) != 0 || stat(around, &parent) != 0;
  free(around);
  if (failed) {
    return report_fail_os(error, target->dir, errno, NULL, "could not look at folder %s", target->dir);
  }
  if (folder.st_dev != parent.st_dev) {
    return refuse(target, hint, "a folder that can be replaced", "a mount point", error);
  }
  if (stat(".", &working) == 0 && working.st_dev == folder.st_dev && working.st_ino == folder.st_ino) {
    return refuse(target, hint, "a folder that can be replaced", "the working folder", error);
  }
  return TEGULA_OK;
}

static tegula_status make_staging(target_folder *target, tegula_error *error) {
  if (mkdir(target->staging, 0700) != 0) {
    return report_fail_os(error, target->staging, errno, "write to a new folder inside it, or elsewhere",
                          "could not make a temporary folder beside %s", target->dir);
  }
  target->fd = open(target->staging, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (target->fd < 0) {
    int os_errno = errno;
    rmdir(target->staging);
    return report_fail_os(error, target->staging, os_errno, NULL, "could not open folder %s", target->staging);
  }
  return TEGULA_OK;
}

tegula_status target_begin(target_folder *target, const char *dir, tegula_error *error) {
  *target = (target_folder){.dir = dir, .fd = -1};
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
  struct stat old, own;
  if (stat(target->real, &old) != 0 || stat(target->staging, &own) != 0) {
    return 0;
  }
  if ((old.st_uid != own.st_uid || old.st_gid != own.st_gid) && chown(target->staging, old.st_uid, old.st_gid) != 0) {
    return 0;
  }
  return chmod(target->staging, old.st_mode & 07777) == 0;
}

tegula_status target_publish(target_folder *target, tegula_error *error) {
  if (!take_over_mode(target) || rename(target->staging, target->real) != 0) {
    return report_fail_os(error, target->dir, errno, NULL, "could not put the finished folder in the place of %s", target->dir);
  }
  close(target->fd);
  target->fd = -1;
  target->made_count = 0;
  return TEGULA_OK;
}

void target_end(target_folder *target) {
  if (target->fd >= 0) {
    unlinkat(target->fd, SIDE_FILE, 0);
    close(target->fd);
    if (rmdir(target->staging) != 0) {
      target_remove_folder(target->staging); /* needs memory, the rest does not */
    }
  }
  for (size_t i = target->made_count; i > 0; i--) {
    target->made[target->made_length[i - 1]] = '\0';
    rmdir(target->made);
  }
  free(target->made);
  free(target->made_length);
  free(target->real);
  free(target->staging);
}
