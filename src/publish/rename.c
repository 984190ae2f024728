/* Folders of paths: their names on disk, and renames that replace nothing.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/io.h"
#include "publish/publish_priv.h"

char *tegula__publish_parent(const char *path) {
  const char *slash = strrchr(path, '/');
  if (slash == NULL) return strdup(".");
  return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

tegula_status tegula__publish_sync_folder(const char *path, tegula_error *err) {
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return tegula__fail_errno(err, errno, path, -1, "could not open folder \"%s\"", path);
  int failed = fsync(fd) != 0 ? errno : 0;
  close(fd);
  return failed == 0 ? TEGULA_OK
                     : tegula__fail_errno(err, failed, path, -1,
                                          "could not bring folder \"%s\" to the disk", path);
}

/* Without the flag of renameat2 (NFS answers EINVAL) what must not be there is looked for
 * before. */
int tegula__publish_rename_free(int from_folder, const char *from, int to_folder, const char *to) {
  struct stat info;
  if (renameat2(from_folder, from, to_folder, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (fstatat(to_folder, to, &info, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
  return renameat(from_folder, from, to_folder, to) == 0 ? 0 : errno;
}
