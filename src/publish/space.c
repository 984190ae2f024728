/* Space: looked at before the first byte, and told when it runs out on the way.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "publish/publish_priv.h"

/* Bytes that this user may still take; -1 when the file system does not say. A quota is not known
 * here. */
static int64_t free_bytes(const char *folder) {
  struct statvfs info;
  int64_t bytes;
  if (statvfs(folder, &info) != 0 || info.f_blocks == 0 || info.f_frsize == 0) return -1;
  uint64_t blocks = geteuid() == 0 ? info.f_bfree : info.f_bavail;
  if (blocks > INT64_MAX || !tegula__mul((int64_t)blocks, (int64_t)info.f_frsize, &bytes))
    return -1;
  return bytes;
}

/* What is needed, as text. How long encoded chunks become is not known before. */
static void write_sum(const tegula__publish *publish, char *out, size_t size) {
  long long copied = (long long)publish->copied, needed = (long long)publish->needed;
  int64_t both;
  if (!tegula__add(publish->needed, publish->copied, &both)) both = INT64_MAX;
  if (copied == 0)
    snprintf(out, size, "%lld bytes needed", needed);
  else if (needed == 0)
    snprintf(out, size, "%lld bytes needed for a copy of the old file, more for what is added",
             copied);
  else
    snprintf(out, size,
             "%lld bytes needed: %lld for what is added, %lld for a copy of the old file",
             (long long)both, needed, copied);
}

static tegula_status too_little(const tegula__publish *publish, int failed, const char *path,
                                int64_t offset, tegula_error *err) {
  char sum[192], before[64] = "";
  write_sum(publish, sum, sizeof sum);
  if (publish->free >= 0)
    snprintf(before, sizeof before, ", %lld free before", (long long)publish->free);
  tegula_status status = tegula__fail_errno(err, failed, path, offset,
                                            "could not save \"%s\" (%s%s)", path, sum, before);
  return tegula__hint(
      err, status, "free some space or save elsewhere%s",
      publish->there ? "; what is replaced keeps its space until the new one is whole" : "");
}

tegula_status tegula__publish_space(tegula__publish *publish, int64_t bytes, int64_t copied,
                                    tegula_error *err) {
  int64_t sum = 0;
  publish->needed = bytes;
  publish->copied = copied;
  publish->free = free_bytes(publish->parent);
  bool fits = tegula__add(bytes, copied, &sum) && sum <= publish->free;
  return publish->free < 0 || fits ? TEGULA_OK
                                   : too_little(publish, ENOSPC, publish->target, -1, err);
}

/* The call's own words hold the temporary name. */
void tegula__publish_explain(const tegula__publish *publish, const char *path, tegula_status status,
                             tegula_error *err) {
  if (err == NULL || status == TEGULA_OK) return;
  bool of_space = (err->os_errno == ENOSPC || err->os_errno == EDQUOT) &&
                  (publish->needed > 0 || publish->copied > 0);
  const char *ours = publish->workplace != NULL ? publish->workplace : publish->temporary;
  bool temporary = ours != NULL && strncmp(err->path, ours, strlen(ours)) == 0;
  if (of_space)
    too_little(publish, err->os_errno, path, err->offset, err);
  else if (temporary && err->os_errno != 0)
    tegula__fail_errno(err, err->os_errno, path, err->offset, "could not save \"%s\"", path);
  else if (temporary)
    tegula__fail(err, status, path, err->offset, "could not save \"%s\": %s", path,
                 tegula_status_text(status));
  if (err->os_errno == EMFILE)
    tegula__hint(err, err->status,
                 "save to fewer files, or raise the limit of open files (ulimit -n)");
}
