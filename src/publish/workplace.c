/* The workplace: made, marked, locked, removed.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Whoever wants to take a workplace away takes the lock of its mark first. A save locks the mark
 * that it has made and then looks whether it is still there; if not, or if somebody else has the
 * lock, it was swept in between, and the save makes another one. So there is no time in which it
 * could be taken from a save that goes on. The lock belongs to the open file: other saves of this
 * process do not share it, and a child of fork only makes it last longer. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/io.h"
#include "publish/publish_priv.h"

#define MOST_ATTEMPTS 64
#define REMOVE_ATTEMPTS 4 /* nobody may come by later to do what failed now */
/* a workplace, in it a folder that is saved to, in it a workplace, in it a folder: 4 */
#define DEEPEST 6

/* ---- names and texts ---- */

bool tegula__workplace_parse(const char *name, uint32_t *boot) {
  if (strncmp(name, ".tegula-", 8) != 0 || strlen(name) != WORKPLACE_NAME - 1) return false;
  if (strcmp(name + 8 + WORKPLACE_DIGITS, ".tmp") != 0 ||
      strspn(name + 8, "0123456789abcdef") != WORKPLACE_DIGITS)
    return false;
  return sscanf(name + 8, "%8x", boot) == 1;
}

bool tegula__publish_is_temporary(const char *path) {
  char name[WORKPLACE_NAME];
  uint32_t boot;
  for (const char *at = path, *end; (end = strchr(at, '/')) != NULL; at = end + 1) {
    if ((size_t)(end - at) != sizeof name - 1) continue;
    memcpy(name, at, sizeof name - 1);
    name[sizeof name - 1] = '\0';
    if (tegula__workplace_parse(name, &boot)) return true;
  }
  return false;
}

static size_t boot_text(char *out, size_t most) {
  size_t got = 0;
  int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  tegula__io_counts counts = {0};
  if (tegula__io_read_some(fd, "boot_id", 0, out, most - 1, &got, &counts, NULL) != TEGULA_OK)
    got = 0;
  close(fd);
  while (got > 0 && out[got - 1] == '\n') got--;
  out[got] = '\0';
  return got;
}

uint32_t tegula__workplace_boot(void) {
  char text[64];
  uint32_t hash = 2166136261u; /* FNV-1a */
  size_t size = boot_text(text, sizeof text);
  for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)text[i]) * 16777619u;
  return size == 0 ? 0 : hash;
}

/* Beyond the process's limit a signal would end the program. */
static tegula_status write_text(int fd, const char *name, const char *text, tegula_error *err) {
  struct rlimit limit;
  tegula__io_counts counts = {0};
  size_t size = strlen(text);
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      size > limit.rlim_cur)
    return tegula__fail_errno(err, EFBIG, name, -1, "could not write \"%s\"", name);
  return tegula__io_write(fd, name, 0, text, size, &counts, err);
}

tegula_status tegula__publish_write_text(int folder, const char *name, const char *text,
                                         bool durable, tegula_error *err) {
  int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return tegula__fail_errno(err, errno, name, -1, "could not make \"%s\"", name);
  tegula_status status = write_text(fd, name, text, err);
  if (status == TEGULA_OK && durable && fsync(fd) != 0)
    status = tegula__fail_errno(err, errno, name, -1, "could not bring \"%s\" to the disk", name);
  if (close(fd) != 0 && status == TEGULA_OK)
    status = tegula__fail_errno(err, errno, name, -1, "could not finish \"%s\"", name);
  return status;
}

bool tegula__publish_read_text(int folder, const char *name, char *out, size_t most) {
  size_t got = 0;
  struct stat info;
  int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return false;
  tegula__io_counts counts = {0};
  bool good = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size < (off_t)most &&
              tegula__io_read_some(fd, name, 0, out, most - 1, &got, &counts, NULL) == TEGULA_OK;
  close(fd);
  out[good ? got : 0] = '\0';
  return good;
}

char *tegula__publish_line(char *text, const char *word) {
  size_t size = strlen(word);
  for (char *line = text; line != NULL; line = strchr(line, '\n')) {
    if (*line == '\n') line++;
    if (strncmp(line, word, size) != 0 || line[size] != ' ') continue;
    char *end = strchr(line, '\n');
    if (end != NULL) *end = '\0';
    return line + size + 1;
  }
  return NULL;
}

/* The target's name comes last: it may hold anything but a slash. */
tegula_status tegula__workplace_write_mark(const tegula__publish *publish, tegula_error *err) {
  char text[MARK_MOST], host[65] = "";
  const char *slash = strrchr(publish->target, '/');
  if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  int size = snprintf(text, sizeof text, "%shost %s\nprocess %ld\nparents %lld\ntarget %s",
                      MARK_BEGINNING, host, (long)getpid(), (long long)publish->made_count,
                      slash != NULL ? slash + 1 : publish->target);
  if (size < 0 || (size_t)size >= sizeof text)
    return tegula__fail_errno(err, ENAMETOOLONG, publish->target, -1, "could not save \"%s\"",
                              publish->target);
  return write_text(publish->mark, publish->workplace, text, err);
}

/* ---- making ---- */

bool tegula__workplace_is(int folder, const char *name, int fd) {
  struct stat open_one, named;
  return fstat(fd, &open_one) == 0 && fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         open_one.st_ino == named.st_ino && open_one.st_dev == named.st_dev;
}

static void close_both(tegula__publish *publish) {
  if (publish->mark >= 0) close(publish->mark);
  if (publish->place >= 0) close(publish->place);
  publish->mark = publish->place = -1;
}

/* An errno; EAGAIN: it was swept meanwhile; EOPNOTSUPP: there are no locks here. */
static int mark_and_lock(tegula__publish *publish, bool with_lock) {
  publish->place = open(publish->workplace, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (publish->place < 0) return errno == ENOENT || errno == ESTALE ? EAGAIN : errno;
  publish->mark =
      openat(publish->place, "mark", O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (publish->mark < 0) return errno == ENOENT || errno == ESTALE ? EAGAIN : errno;
  if (with_lock && flock(publish->mark, LOCK_EX | LOCK_NB) != 0)
    return errno == EWOULDBLOCK ? EAGAIN : EOPNOTSUPP;
  return tegula__workplace_is(publish->place, "mark", publish->mark) ? 0 : EAGAIN;
}

/* One attempt, with a name of its own. An errno as above. */
static int make_one(tegula__publish *publish, uint32_t boot, uint32_t random) {
  snprintf(publish->workplace + strlen(publish->parent), WORKPLACE_NAME + 1,
           "/.tegula-%08x%08x.tmp", boot, random);
  if (mkdir(publish->workplace, 0700) != 0) return errno == EEXIST ? EAGAIN : errno;
  int failed = mark_and_lock(publish, boot != 0);
  if (failed == 0) return 0;
  if (publish->place >= 0 && publish->mark >= 0) unlinkat(publish->place, "mark", 0);
  rmdir(publish->workplace);
  close_both(publish);
  return failed;
}

tegula_status tegula__workplace_make(tegula__publish *publish, tegula_error *err) {
  char *path = tegula__strprintf("%s/%*s", publish->parent, (int)WORKPLACE_NAME, "");
  if (path == NULL) return tegula__out_of_memory(err, (int64_t)strlen(publish->parent));
  publish->workplace = path;
  uint32_t boot = tegula__workplace_boot();
  int failed = EAGAIN;
  for (int attempt = 0; attempt < MOST_ATTEMPTS && failed != 0; attempt++) {
    uint32_t random;
    failed = getrandom(&random, sizeof random, 0) == (ssize_t)sizeof random
                 ? make_one(publish, boot, random)
                 : errno;
    if (failed == EOPNOTSUPP && boot != 0)
      boot = 0;
    else if (failed != EAGAIN)
      break;
  }
  if (failed == 0) return TEGULA_OK;
  free(publish->workplace);
  publish->workplace = NULL;
  tegula_status status =
      tegula__fail_errno(err, failed, publish->target, -1,
                         "could not make a temporary folder in \"%s\"", publish->parent);
  if (failed != EACCES && failed != EPERM && failed != EROFS) return status;
  return tegula__hint(err, status,
                      "a save writes beside its target, so the folder must be writable, whatever "
                      "the target's own rights are");
}

tegula_status tegula__workplace_share(tegula__publish *publish, tegula_error *err) {
  uint64_t random;
  publish->place = open(publish->parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (publish->place < 0 || getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
    return tegula__fail_errno(err, errno, publish->target, -1, "could not open folder \"%s\"",
                              publish->parent);
  publish->temporary =
      tegula__strprintf("%s/.tegula-%016llx.tmp", publish->parent, (unsigned long long)random);
  if (publish->temporary == NULL)
    return tegula__out_of_memory(err, (int64_t)strlen(publish->parent));
  publish->source = publish->temporary + strlen(publish->parent) + 1;
  return TEGULA_OK;
}

/* ---- removing ---- */

static bool remove_at(int folder, const char *name, dev_t device, int depth);

static void empty_at(int folder, const char *name, dev_t device, int depth) {
  _Alignas(struct dirent64) char entries[4096];
  struct stat info;
  int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return;
  /* nothing that is mounted there */
  bool same_device = fstat(fd, &info) == 0 && info.st_dev == device;
  for (ssize_t size; same_device && (size = getdents64(fd, entries, sizeof entries)) > 0;) {
    const struct dirent64 *entry;
    for (ssize_t at = 0; at < size; at += entry->d_reclen) {
      entry = (const struct dirent64 *)(entries + at);
      if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
        remove_at(fd, entry->d_name, device, depth - 1);
    }
  }
  close(fd);
}

static bool remove_at(int folder, const char *name, dev_t device, int depth) {
  for (int attempt = 0; attempt < REMOVE_ATTEMPTS; attempt++) {
    if (unlinkat(folder, name, 0) == 0 || errno == ENOENT) return true;
    if (errno != EISDIR && errno != EPERM) continue;
    if (depth > 0) empty_at(folder, name, device, depth);
    if (unlinkat(folder, name, AT_REMOVEDIR) == 0) return true;
  }
  return false;
}

bool tegula__workplace_remove_tree(int folder, const char *name) {
  struct stat info;
  int failed = 0;
  for (int attempt = 0; attempt < REMOVE_ATTEMPTS; attempt++) {
    failed = fstat(folder, &info) == 0 ? 0 : errno;
    if (failed == 0) return remove_at(folder, name, info.st_dev, DEEPEST);
  }
  return false;
}

/* The mark goes last: what cannot be removed now may be by a later save. It is closed first, as is
 * its folder: what is unlinked while it is open costs a file system much more; and whoever gets the
 * lock then finds nothing but the mark. */
void tegula__workplace_remove(tegula__publish *publish) {
  static const char *const names[] = {"view", "data", "old", "companion", "note"};
  if (publish->workplace == NULL) {
    if (publish->place >= 0 && publish->source != NULL)
      tegula__workplace_remove_tree(publish->place, publish->source);
    close_both(publish);
    return;
  }
  bool gone = publish->place >= 0;
  for (size_t i = 0; gone && i < sizeof names / sizeof *names; i++)
    gone = tegula__workplace_remove_tree(publish->place, names[i]);
  if (publish->mark >= 0) close(publish->mark);
  publish->mark = -1;
  if (gone) tegula__workplace_remove_tree(publish->place, "mark");
  close_both(publish);
  for (int attempt = 0; attempt < REMOVE_ATTEMPTS && rmdir(publish->workplace) != 0; attempt++)
    continue;
}
