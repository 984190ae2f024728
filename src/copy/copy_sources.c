/* Is a file or folder one that a dataset is read from?
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <sys/stat.h>

#include "copy/copy.h"

static bool same_inode(const struct stat *info, uint64_t device, uint64_t inode) {
  return (uint64_t)info->st_dev == device && (uint64_t)info->st_ino == inode;
}

/* Is the file in the folder? Files of one folder follow each other: `known` is the folder of the
 * last one that was not. */
static bool lies_in(const char *path, const struct stat *folder, const char **known) {
  const char *slash = strrchr(path, '/');
  size_t size = slash != NULL ? (size_t)(slash - path) + 1 : 0;
  struct stat info;
  if (*known != NULL && strncmp(*known, path, size) == 0 && strchr(*known + size, '/') == NULL)
    return false;
  char *parent = size > 0 ? strndup(path, size) : strdup(".");
  bool same = parent != NULL && stat(parent, &info) == 0 &&
              same_inode(&info, (uint64_t)folder->st_dev, (uint64_t)folder->st_ino);
  free(parent);
  *known = path;
  return same;
}

const char *tegula__copying_reads(const tegula__manifest *manifest, const char *path) {
  struct stat info;
  const char *known = NULL;
  if (stat(path, &info) != 0) return NULL;
  for (int64_t i = 0; i < manifest->file_count; i++) {
    const tegula__file *file = &manifest->files[i];
    bool same = S_ISDIR(info.st_mode) ? lies_in(file->path, &info, &known)
                                      : same_inode(&info, file->stamp.device, file->stamp.inode);
    if (same) return file->path;
  }
  return NULL;
}
