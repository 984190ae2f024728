/* The side file of `tegula write`: which files were made, how long they are, and what is in them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * It lies in a folder that anybody may have touched, so reading it promises nothing about its
 * content: a name from it must pass command_clean.c's own test before anything is done with it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli_report.h"
#include "commands.h"

#define MAX_SIDE_FILE_BYTES (256LL << 20)

/* All of it, or -1 with errno. (json_dumpfd does not see every write that was short.) */
static int write_text(int fd, const char *text, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t n = write(fd, text + done, size - done);
    if (n < 0 && errno != EINTR) {
      return -1;
    }
    done += n > 0 ? (size_t)n : 0;
  }
  return 0;
}

static tegula_status dump(int fd, const char *dir, const char *text, tegula_error *error) {
  int os_errno = write_text(fd, text, strlen(text)) != 0 ? errno : 0;
  if (close(fd) != 0 && os_errno == 0) {
    os_errno = errno;
  }
  return os_errno == 0 ? TEGULA_OK
                       : report_fail_os(error, dir, os_errno, NULL, "could not write %s in %s",
                                        SIDE_FILE, dir);
}

/* Under a temporary name first: a list that is there is replaced whole or not at all. */
static tegula_status write_list(int dir_fd, const char *dir, const char *text,
                                tegula_error *error) {
  char name[TEMPORARY_NAME];
  target_temporary_name(name, 0);
  int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) {
    return report_fail_os(error, dir, errno, NULL, "could not make %s in %s", SIDE_FILE, dir);
  }
  tegula_status status = dump(fd, dir, text, error);
  if (status == TEGULA_OK && renameat(dir_fd, name, dir_fd, SIDE_FILE) != 0) {
    status = report_fail_os(error, dir, errno, NULL, "could not make %s in %s", SIDE_FILE, dir);
  }
  if (status != TEGULA_OK) {
    unlinkat(dir_fd, name, 0);
  }
  return status;
}

tegula_status side_file_write(int dir_fd, const char *dir, const json_t *content,
                              tegula_error *error) {
  char *text = report_dump(content, JSON_INDENT(1));
  tegula_status status = report_memory(error);
  if (status == TEGULA_OK) {
    status = text != NULL ? write_list(dir_fd, dir, text, error) : report_no_memory(error);
  }
  free(text);
  return status;
}

/* Only a regular file of a sane size is read: no device, no link to elsewhere. */
static tegula_status check_side_file(int fd, const char *dir, size_t *size, tegula_error *error) {
  struct stat info;
  if (fstat(fd, &info) != 0) {
    return report_fail_os(error, dir, errno, NULL, "could not look at %s in %s", SIDE_FILE, dir);
  }
  if (!S_ISREG(info.st_mode) || info.st_size > MAX_SIDE_FILE_BYTES) {
    return report_fail(error, TEGULA_CORRUPT, NULL,
                       "%s in %s is no regular file of at most %lld bytes", SIDE_FILE, dir,
                       MAX_SIDE_FILE_BYTES);
  }
  *size = (size_t)info.st_size;
  return TEGULA_OK;
}

/* Up to `size` bytes; fewer only at the end of the file. -1 with errno. */
static ssize_t read_text(int fd, char *text, size_t size) {
  size_t done = 0;
  while (done < size) {
    ssize_t n = pread(fd, text + done, size - done, (off_t)done);
    if (n == 0) {
      break;
    }
    if (n < 0 && errno != EINTR) {
      return -1;
    }
    done += n > 0 ? (size_t)n : 0;
  }
  return (ssize_t)done;
}

static tegula_status parse(const char *text, size_t size, const char *dir, json_t **out,
                           tegula_error *error) {
  json_error_t reason;
  *out = json_loadb(text, size, JSON_REJECT_DUPLICATES, &reason);
  if (*out != NULL) {
    return TEGULA_OK;
  }
  if (report_memory(error) != TEGULA_OK) {
    return report_fail(error, TEGULA_OUT_OF_MEMORY, NULL, "could not read %s in %s: no memory",
                       SIDE_FILE, dir);
  }
  return report_fail(error, TEGULA_CORRUPT, NULL, "%s in %s is no valid JSON: line %d: %s",
                     SIDE_FILE, dir, reason.line, reason.text);
}

static tegula_status load_side_file(int fd, const char *dir, json_t **out, tegula_error *error) {
  size_t size = 0;
  tegula_status status = check_side_file(fd, dir, &size, error);
  if (status != TEGULA_OK) {
    return status;
  }
  char *text = malloc(size + 1);
  ssize_t got = text != NULL ? read_text(fd, text, size) : -1;
  if (text == NULL) {
    status = report_fail(error, TEGULA_OUT_OF_MEMORY, NULL, "could not read %s in %s: no memory",
                         SIDE_FILE, dir);
  } else if (got < 0) {
    status = report_fail_os(error, dir, errno, NULL, "could not read %s in %s", SIDE_FILE, dir);
  } else {
    status = parse(text, (size_t)got, dir, out, error);
  }
  free(text);
  return status;
}

tegula_status side_file_read(int dir_fd, const char *dir, json_t **out, tegula_error *error) {
  int fd = openat(dir_fd, SIDE_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) {
    return report_fail_os(error, dir, errno, NULL, "cannot open %s in %s", SIDE_FILE, dir);
  }
  tegula_status status = load_side_file(fd, dir, out, error);
  close(fd);
  return status;
}
