/* What killed saves left in a folder: found by name, taken away when its lock can be had.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A lock that can be had tells that the save has ended only on the machine that took it, since it
 * was booted: some file systems keep locks to one machine, others have none. The workplace's name
 * says which boot that is. Of any other it is left alone for a week. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "publish/publish_priv.h"

#define OLD_SECONDS (7 * 24 * 3600)
#define LISTING 16384 /* bytes of names that are read at once */
#define SURE 24576    /* of them are always read */
#define MOST_PARENTS 64

/* Is nobody working there any more? Locks the mark: two that sweep do not get in each other's
 * way. */
static bool is_left(int place, int mark, uint32_t boot) {
  struct stat info;
  bool locked = flock(mark, LOCK_EX | LOCK_NB) == 0;
  if (!locked && errno == EWOULDBLOCK) return false;
  if (fstat(mark, &info) != 0 || !S_ISREG(info.st_mode) ||
      !tegula__workplace_is(place, "mark", mark))
    return false;
  if (locked && boot != 0 && boot == tegula__workplace_boot()) return true;
  return time(NULL) - info.st_mtime > OLD_SECONDS;
}

static bool exists(int folder, const char *name) {
  struct stat info;
  return fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

/* Killed between the two steps of a replacement: the old one gets its name back. Is there nothing
 * left to save? */
static bool put_back(int place, int folder, const char *target) {
  if (!exists(place, "old")) return true;
  if (target == NULL || *target == '\0' || strchr(target, '/') != NULL) return false;
  return exists(folder, target) || tegula__publish_rename_free(place, "old", folder, target) == 0;
}

/* Of parents that the killed save had made. */
static int clear(int folder, const char *name, int place) {
  static const char *const names[] = {"view", "data", "old", "companion", "note", "mark"};
  char text[MARK_MOST], again[MARK_MOST];
  if (!tegula__publish_read_text(place, "mark", text, sizeof text)) return 0;
  /* nothing of ours */
  if (*text != '\0' && strncmp(text, MARK_BEGINNING, strlen(MARK_BEGINNING)) != 0) return 0;
  memcpy(again, text, sizeof text);
  const char *parents = tegula__publish_line(again, "parents");
  char *target = strstr(text, "\ntarget "); /* last, and up to the end: it may hold line ends */
  if (target != NULL) target += strlen("\ntarget ");
  if (!put_back(place, folder, target)) return 0;
  tegula__companion_sweep(place, folder, !exists(place, "data"));
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!tegula__workplace_remove_tree(place, names[i])) return 0;
  /* the folder that it wanted to fill had been made by it */
  const char *empty = strstr(text, "\nempty 1\n");
  if (empty != NULL && target != NULL && empty < target && strchr(target, '/') == NULL)
    unlinkat(folder, target, AT_REMOVEDIR);
  unlinkat(folder, name, AT_REMOVEDIR);
  long count = parents != NULL ? strtol(parents, NULL, 10) : 0;
  return count > 0 && count <= MOST_PARENTS ? (int)count : 0;
}

/* The command's own lists have such names, without a lock. */
static void remove_old_file(int folder, const char *name) {
  struct stat info;
  if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode) &&
      time(NULL) - info.st_mtime > OLD_SECONDS)
    unlinkat(folder, name, 0);
}

static int sweep_one(int folder, const char *name, uint32_t boot) {
  int parents = 0;
  int place = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (place < 0) {
    if (errno == ENOTDIR) remove_old_file(folder, name);
    return 0;
  }
  int mark = openat(place, "mark", O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (mark < 0 && errno == ENOENT)
    /* only when empty: a save that has just made it makes another one */
    unlinkat(folder, name, AT_REMOVEDIR);
  else if (mark >= 0 && is_left(place, mark, boot))
    parents = clear(folder, name, place);
  if (mark >= 0) close(mark);
  close(place);
  return parents;
}

/* In a folder of very many names: twice as far with half the chance each time, so that a save costs
 * little and some save sees all. */
static bool go_on(ssize_t read, ssize_t *border) {
  unsigned char random = 0;
  if (read < *border) return true;
  while (*border <= read) *border *= 2;
  return getrandom(&random, sizeof random, GRND_NONBLOCK) == (ssize_t)sizeof random &&
         (random & 1) != 0;
}

int tegula__publish_sweep(const char *path) {
  _Alignas(struct dirent64) char entries[LISTING];
  int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), parents = 0;
  if (folder < 0) return 0;
  ssize_t size, read = 0, border = SURE;
  for (; go_on(read, &border) && (size = getdents64(folder, entries, sizeof entries)) > 0;
       read += size) {
    const struct dirent64 *entry;
    for (ssize_t at = 0; at < size; at += entry->d_reclen) {
      uint32_t boot;
      entry = (const struct dirent64 *)(entries + at);
      if (!tegula__workplace_parse(entry->d_name, &boot)) continue;
      int made = sweep_one(folder, entry->d_name, boot);
      parents = made > parents ? made : parents;
    }
  }
  close(folder);
  return parents;
}

bool tegula__publish_is_empty(const char *path) {
  _Alignas(struct dirent64) char entries[1024];
  int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  ssize_t size = getdents64(folder, entries, sizeof entries);
  bool empty = size > 0;
  const struct dirent64 *entry;
  for (ssize_t at = 0; at < size; at += entry->d_reclen) {
    entry = (const struct dirent64 *)(entries + at);
    empty = empty && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
  }
  close(folder);
  return empty;
}
