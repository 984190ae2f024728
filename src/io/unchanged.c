/* Is a file still the one that was described?
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "io/io_priv.h"

#define CLOSED (-1)

tegula_status tegula__stamp_regular(const struct stat *info, const char *path, tegula__stamp *out,
                                    tegula_error *err) {
  if (!S_ISREG(info->st_mode))
    return tegula__hint(
        err, tegula__fail(err, TEGULA_UNSUPPORTED, path, -1, "\"%s\" is not a regular file", path),
        "a list holds files; a folder or a quoted pattern is given alone");
  *out = tegula__io_stamp_of(info);
  return TEGULA_OK;
}

tegula_status tegula__stamp_read(int fd, const char *path, tegula__io_counts *counts,
                                 tegula__stamp *out, tegula_error *err) {
  struct stat info;
  atomic_fetch_add_explicit(&counts->stats, 1, memory_order_relaxed);
  if ((fd == CLOSED ? stat(path, &info) : fstat(fd, &info)) != 0)
    return tegula__fail_errno(err, errno, path, -1, "could not examine \"%s\"", path);
  return tegula__stamp_regular(&info, path, out, err);
}

tegula_status tegula__stamp_compare(const char *path, const tegula__stamp *was,
                                    const tegula__stamp *is, tegula_error *err) {
  if (memcmp(was, is, sizeof *was) == 0) return TEGULA_OK;
  tegula_status status;
  if (was->inode != is->inode || was->device != is->device)
    status = tegula__fail(err, TEGULA_CHANGED, path, -1,
                          "\"%s\" was replaced by another file while it was in use", path);
  else if (was->size != is->size)
    status = tegula__fail(err, TEGULA_CHANGED, path, -1,
                          "\"%s\" changed while it was in use: it had %lld bytes, now %lld", path,
                          (long long)was->size, (long long)is->size);
  else
    status = tegula__fail(err, TEGULA_CHANGED, path, -1,
                          "\"%s\" was written to while it was in use", path);
  return tegula__hint(err, status, "open it again when nothing writes to it any more");
}

tegula_status tegula__io_unchanged(const char *path, const tegula__stamp *stamp,
                                   tegula__io_counts *counts, tegula_error *err) {
  tegula__stamp now;
  FORWARD(tegula__stamp_read(CLOSED, path, counts, &now, err));
  return tegula__stamp_compare(path, stamp, &now, err);
}

tegula_status tegula__stamp_compare_recorded(tegula__file *file, const tegula__stamp *is,
                                             tegula_error *err) {
  tegula__stamp *was = &file->stamp;
  tegula_status status = TEGULA_OK;
  if (was->size != is->size)
    status = tegula__fail(
        err, TEGULA_CHANGED, file->path, -1,
        "\"%s\" is not the file that the manifest speaks of: expected %lld bytes, found %lld",
        file->path, (long long)was->size, (long long)is->size);
  else if (was->mtime_ns != is->mtime_ns)
    status = tegula__fail(err, TEGULA_CHANGED, file->path, -1,
                          "\"%s\" was written to after the manifest was made: expected the time "
                          "%lld ns, found %lld ns",
                          file->path, (long long)was->mtime_ns, (long long)is->mtime_ns);
  if (status != TEGULA_OK)
    return tegula__hint(err, status,
                        "make the manifest again: tegula info FILES --manifest OUT.json");
  was->ctime_ns = is->ctime_ns;
  was->inode = is->inode;
  was->device = is->device;
  return TEGULA_OK;
}
