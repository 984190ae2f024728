/* Text files that are there whole or not at all: manifests and sums.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Written under a temporary name in the same folder, then renamed. A file of another kind is never
 * replaced: the name may be a slip. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli_report.h"
#include "commands.h"

/* The first bytes of a file, up to `most`; -1 when it cannot be read. */
static ssize_t read_beginning(int fd, char *out, size_t most) {
  size_t used = 0;
  while (used < most) {
    ssize_t got = read(fd, out + used, most - used);
    if (got == 0) {
      break;
    }
    if (got < 0 && errno != EINTR) {
      return -1;
    }
    used += got > 0 ? (size_t)got : 0;
  }
  return (ssize_t)used;
}

tegula_status whole_check(const char *path, const char *beginning, const char *what,
                          tegula_error *error) {
  char found[64] = "";
  size_t wanted = strlen(beginning);
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) {
    return errno == ENOENT ? TEGULA_OK
                           : report_fail_os(error, path, errno, NULL, "could not look at %s", path);
  }
  ssize_t got = read_beginning(fd, found, wanted);
  int failed = got < 0 ? errno : 0;
  close(fd);
  /* a folder, a pipe that nobody writes to: there, and no manifest */
  if (failed != 0 && failed != EISDIR && failed != EAGAIN) {
    return report_fail_os(error, path, failed, NULL, "could not look at %s", path);
  }
  if (got == (ssize_t)wanted && memcmp(found, beginning, wanted) == 0) {
    return TEGULA_OK;
  }
  return report_fail(error, TEGULA_EXISTS, "choose another name, or remove the file",
                     "%s is there already and %s", path, what);
}

static int write_text(int fd, const char *text) {
  for (size_t left = strlen(text); left > 0;) {
    ssize_t wrote = write(fd, text, left);
    if (wrote < 0 && errno != EINTR) {
      return -1;
    }
    text += wrote > 0 ? wrote : 0;
    left -= wrote > 0 ? (size_t)wrote : 0;
  }
  return 0;
}

static tegula_status write_and_rename(const char *temporary, const char *path, const char *text,
                                      tegula_error *error) {
  int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) {
    return report_fail_os(error, path, errno, NULL, "could not make %s", temporary);
  }
  int failed = write_text(fd, text) != 0 ? errno : 0;
  if (close(fd) != 0 && failed == 0) {
    failed = errno;
  }
  if (failed == 0 && rename(temporary, path) != 0) {
    failed = errno;
  }
  if (failed == 0) {
    return TEGULA_OK;
  }
  unlink(temporary);
  return report_fail_os(error, path, failed, NULL, "could not write %s", path);
}

tegula_status whole_write(const char *path, const char *text, tegula_error *error) {
  const char *slash = strrchr(path, '/');
  char *temporary = NULL;
  if (asprintf(&temporary, "%.*s.%s.%ld.part", slash != NULL ? (int)(slash - path + 1) : 0, path,
               slash != NULL ? slash + 1 : path, (long)getpid()) < 0) {
    return report_fail(error, TEGULA_OUT_OF_MEMORY, NULL, "could not write %s: no memory", path);
  }
  tegula_status status = write_and_rename(temporary, path, text, error);
  free(temporary);
  return status;
}

char *whole_folder(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
}
