/* The side file of `tegula write`: which files were made, how long they are, and what is in them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * It lies in a folder that anybody may have touched, so reading it promises nothing about its content: a name from it must pass
 * clean.c's own test before anything is done with it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.h"
#include "report.h"

#define MAX_SIDE_FILE_BYTES (256LL << 20)

static tegula_status dump(int fd, const char *path, const json_t *content, tegula_error *error) {
  int failed = json_dumpfd(content, fd, JSON_INDENT(1)) != 0;
  if (close(fd) != 0 || failed) {
    return report_fail_os(error, path, errno != 0 ? errno : EIO, NULL, "could not write %s", path);
  }
  return TEGULA_OK;
}

tegula_status side_file_write(const char *dir, json_t *content, tegula_error *error) {
  char *path = NULL;
  if (content == NULL || asprintf(&path, "%s/%s", dir, SIDE_FILE) < 0) {
    return report_fail(error, TEGULA_OUT_OF_MEMORY, NULL, "could not list the files of %s: no memory", dir);
  }
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  tegula_status status;
  if (fd < 0) {
    status = report_fail_os(error, path, errno, NULL, "could not make %s", path);
  } else {
    errno = 0;
    status = dump(fd, path, content, error);
    if (status != TEGULA_OK) {
      unlink(path);
    }
  }
  free(path);
  return status;
}

/* Only a regular file of a sane size is read: no device, no link to elsewhere. */
static tegula_status check_side_file(int fd, const char *dir, tegula_error *error) {
  struct stat info;
  if (fstat(fd, &info) != 0) {
    return report_fail_os(error, dir, errno, NULL, "could not look at %s in %s", SIDE_FILE, dir);
  }
  if (!S_ISREG(info.st_mode) || info.st_size > MAX_SIDE_FILE_BYTES) {
    return report_fail(error, TEGULA_CORRUPT, NULL, "%s in %s is no regular file of at most %lld bytes", SIDE_FILE, dir,
                       MAX_SIDE_FILE_BYTES);
  }
  return TEGULA_OK;
}

tegula_status side_file_read(int dir_fd, const char *dir, json_t **out, tegula_error *error) {
  int fd = openat(dir_fd, SIDE_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) {
    return report_fail_os(error, dir, errno, "only folders made by tegula write can be cleaned", "cannot open %s in %s",
                          SIDE_FILE, dir);
  }
  tegula_status status = check_side_file(fd, dir, error);
  if (status == TEGULA_OK) {
    json_error_t reason;
    json_t *content = json_loadfd(fd, JSON_REJECT_DUPLICATES, &reason);
    if (content == NULL) {
      status = report_fail(error, TEGULA_CORRUPT, NULL, "%s in %s is no valid JSON: line %d: %s", SIDE_FILE, dir, reason.line,
                           reason.text);
    } else {
      *out = content;
    }
  }
  close(fd);
  return status;
}
