/* Small files read at once: what lies beside the data and describes it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The memory is bounded by the caller's maximum whatever the file's size says, and nothing but a
 * regular file is read. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/io_priv.h"

/* What is in the open file, up to one byte more than the size that was found: a file that grows is
 * an error of the reader of its text. */
static tegula_status read_content(int fd, const char *path, int64_t maximum, char **out,
                                  size_t *size, tegula__stamp *stamp, tegula__io_counts *counts,
                                  tegula_error *err) {
  struct stat info;
  if (fstat(fd, &info) != 0)
    return tegula__fail_errno(err, errno, path, -1, "could not examine \"%s\"", path);
  if (!S_ISREG(info.st_mode))
    return tegula__fail(err, TEGULA_UNSUPPORTED, path, -1, "\"%s\" is not a regular file", path);
  if (info.st_size > maximum)
    return tegula__fail(err, TEGULA_LIMIT_EXCEEDED, path, -1,
                        "\"%s\" is too long: expected at most %lld bytes, found %lld", path,
                        (long long)maximum, (long long)info.st_size);
  *stamp = tegula__io_stamp_of(&info);
  tegula__io_settle(fd, stamp);
  char *content = malloc((size_t)info.st_size + 1);
  if (content == NULL) return tegula__out_of_memory(err, info.st_size + 1);
  tegula_status status =
      tegula__io_read_some(fd, path, 0, content, (size_t)info.st_size + 1, size, counts, err);
  if (status != TEGULA_OK) {
    free(content);
    return status;
  }
  *out = content;
  return TEGULA_OK;
}

tegula_status tegula__io_read_whole(tegula__folders *folders, const char *path, int64_t maximum,
                                    char **out, size_t *size, tegula__io_counts *counts,
                                    tegula_error *err) {
  int fd, os_errno;
  tegula__stamp stamp;
  do fd = tegula__folders_open(folders, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  while (fd < 0 && errno == EINTR);
  os_errno = errno;
  if (fd < 0) {
    FORWARD(tegula__folders_note(folders, path, NULL, os_errno, err));
    return tegula__fail_errno(err, os_errno, path, -1, "could not open \"%s\"", path);
  }
  atomic_fetch_add_explicit(&counts->opens, 1, memory_order_relaxed);
  tegula_status status = read_content(fd, path, maximum, out, size, &stamp, counts, err);
  close(fd);
  if (status != TEGULA_OK) return status;
  status = tegula__folders_note(folders, path, &stamp, 0, err);
  if (status != TEGULA_OK) free(*out);
  return status;
}
