/* Owner, group, mode and access list of what is replaced are those of what takes its place, as far
 * as the system allows.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "publish/publish_priv.h"

#define ACCESS_LIST "system.posix_acl_access"
#define INHERITED_LIST "system.posix_acl_default"

/* The same list, or none where there is none. */
static int keep_list(const tegula__publish *publish, const char *name) {
  char list[4096];
  ssize_t size = getxattr(publish->target, name, list, sizeof list);
  if (size > 0) return setxattr(publish->temporary, name, list, (size_t)size, 0) == 0 ? 0 : errno;
  if (size < 0 && errno != ENODATA && errno != ENOTSUP && errno != ENOENT) return errno;
  /* one that it has by its folder's default; there may be none */
  removexattr(publish->temporary, name);
  return 0;
}

/* Only root can give files away, and others only to groups of their own. Whoever cannot keep the
 * group gives it no more than others get. */
static unsigned keep_owner(const tegula__publish *publish) {
  struct stat info;
  unsigned mode = publish->mode;
  if (stat(publish->temporary, &info) != 0) return mode;
  bool owner = info.st_uid == publish->owner, group = info.st_gid == publish->group;
  if (!owner) owner = group = chown(publish->temporary, publish->owner, publish->group) == 0;
  if (!group)
    group =
        info.st_gid == publish->group || chown(publish->temporary, (uid_t)-1, publish->group) == 0;
  if (!owner) mode &= ~(unsigned)S_ISUID;
  if (!group) mode &= ~(unsigned)(S_ISGID | 070) | (mode & 07) << 3;
  return mode;
}

int tegula__publish_keep_rights(const tegula__publish *publish) {
  if (!publish->there) return 0;
  if (chmod(publish->temporary, keep_owner(publish)) != 0) return errno;
  int failed = keep_list(publish, ACCESS_LIST);
  return failed == 0 && publish->folder ? keep_list(publish, INHERITED_LIST) : failed;
}
