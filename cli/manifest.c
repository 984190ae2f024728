/* `tegula info --manifest`: the manifest of a dataset as a file.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Written under a temporary name in the same folder, then renamed: it is there whole or not at all. A file that is no manifest is never
 * replaced: the name may be a slip. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "report.h"

static const char beginning[] = "{\"tegula_manifest\":";

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

/* May `path` be written? Nothing is there, or an older manifest. */
static tegula_status check_target(const char *path, tegula_error *error) {
  char found[sizeof beginning] = "";
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) {
    return errno == ENOENT ? TEGULA_OK : report_fail_os(error, path, errno, NULL, "could not look at %s", path);
  }
  ssize_t got = read_beginning(fd, found, sizeof beginning - 1);
  int failed = got < 0 ? errno : 0;
  close(fd);
  if (failed != 0 && failed != EISDIR && failed != EAGAIN) { /* a folder, a pipe that nobody writes to: there, and no manifest */
    return report_fail_os(error, path, failed, NULL, "could not look at %s", path);
  }
  if (got == (ssize_t)sizeof beginning - 1 && memcmp(found, beginning, sizeof beginning - 1) == 0) {
    return TEGULA_OK;
  }
  return report_fail(error, TEGULA_EXISTS, "choose another name, or remove the file", "%s is there already and is no manifest", path);
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

static tegula_status write_and_rename(const char *temporary, const char *path, const char *text, tegula_error *error) {
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

tegula_status manifest_save(cli_job *job, const tegula_dataset *dataset, const char *path) {
  const char *slash = strrchr(path, '/');
  char *folder = slash == NULL ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
  char *temporary = NULL, *text = NULL;
  tegula_status status = check_target(path, &job->error);
  if (folder == NULL || asprintf(&temporary, "%s/.%s.%ld.part", folder, slash != NULL ? slash + 1 : path, (long)getpid()) < 0) {
    temporary = NULL;
    status = report_fail(&job->error, TEGULA_OUT_OF_MEMORY, NULL, "could not write %s: no memory", path);
  }
  if (status == TEGULA_OK) {
    status = tegula_dataset_to_json(dataset, folder, &text, &job->error);
  }
  if (status == TEGULA_OK) {
    status = write_and_rename(temporary, path, text, &job->error);
  }
  tegula_free(text);
  free(temporary);
  free(folder);
  return status;
}
