/* faults: stands in front of the C library (LD_PRELOAD) and makes the Nth call of a family fail;
 * counts calls and what is left.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * TEGULA_FAULT=FAMILY:N:KIND strikes at call N (from 1), FAMILY:N+:KIND at it and all later ones.
 * KIND is an errno's name, `short` (half of the bytes are transferred), `keep` (close and free do
 * nothing: proves that leaks are seen), `KILL` (the process is killed before the call) or `STOP`
 * (it stands still before the call, until it is sent SIGCONT). TEGULA_FAULT_ONLY=program: only
 * calls made by the program itself count and fail, not those of libraries. TEGULA_FAULT_LOG=PATH: a
 * line for each write, sync and rename, in their order. TEGULA_FAULT_REPORT=PATH: at exit one JSON
 * object with the calls of each family, the number of strikes, live allocations and open
 * descriptors. TEGULA_FAULT_WINDOW=1: only calls between tegula_faults_window(1) and (0) count;
 * tegula_faults_plan gives another plan. TEGULA_FAULT_SPARE=libjansson,libc (or one of them): their
 * allocations never fail. Linux with glibc on 64-bit machines; the loader's own allocations are
 * left alone. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);
void tegula_faults_window(int open);
void tegula_faults_plan(const char *plan);
void tegula_faults_counts(char *out, size_t room);

typedef enum family {
  OPEN,
  READ,
  WRITE,
  STAT,
  SIZE,
  SYNC,
  RENAME,
  MKDIR,
  LIST,
  REMOVE,
  CLOSE,
  MAP,
  THREAD,
  MEMORY,
  RELEASE,
  LOCK,
  RIGHTS,
  FAMILIES
} family;

static const char *const family_names[FAMILIES] = {
    "open",   "read",  "write", "stat",   "size",   "sync",    "rename", "mkdir", "list",
    "remove", "close", "map",   "thread", "memory", "release", "lock",   "rights"};

enum { NO_FAULT = 0, SHORT = -1, KEEP = -2, KILL = -3, STOP = -4 };

static const struct {
  const char *name;
  int fault;
} kinds[] = {{"short", SHORT},   {"keep", KEEP},
             {"EINTR", EINTR},   {"EAGAIN", EAGAIN},
             {"EIO", EIO},       {"ESTALE", ESTALE},
             {"ENOSPC", ENOSPC}, {"ENOMEM", ENOMEM},
             {"EMFILE", EMFILE}, {"ENOENT", ENOENT},
             {"EINVAL", EINVAL}, {"EACCES", EACCES},
             {"EDQUOT", EDQUOT}, {"EOPNOTSUPP", EOPNOTSUPP},
             {"ENOLCK", ENOLCK}, {"EPERM", EPERM},
             {"KILL", KILL},     {"STOP", STOP}};

typedef enum origin { PROGRAM, LIBC, LOADER, CXX, JANSSON, ORIGINS } origin;

static struct {
  _Atomic long calls[FAMILIES];
  _Atomic long strikes;
  atomic_bool counting;
  bool spare_jansson, spare_libc, only_program;
  int family, fault;
  long nth;
  bool onwards;
  uintptr_t base, end; /* of the program, for the addresses in the report */
  struct {
    uintptr_t lo, hi;
  } ranges[ORIGINS];
} faults;

/* ---- the plan ---- */

static bool in_program(const void *caller) {
  return (uintptr_t)caller >= faults.base && (uintptr_t)caller < faults.end;
}

/* The fault of this call: an errno, SHORT, KEEP or NO_FAULT. A library's does not count where only
 * the program's shall fail. */
static int strike_from(family of, const void *caller) {
  if (!atomic_load(&faults.counting) || (faults.only_program && !in_program(caller)))
    return NO_FAULT;
  long n = atomic_fetch_add(&faults.calls[of], 1) + 1;
  if ((int)of != faults.family || n < faults.nth || (n > faults.nth && !faults.onwards))
    return NO_FAULT;
  atomic_fetch_add(&faults.strikes, 1);
  if (faults.fault == KILL) kill(getpid(), SIGKILL);
  if (faults.fault == STOP) kill(getpid(), SIGSTOP);
  return faults.fault == STOP ? NO_FAULT : faults.fault;
}

/* ---- the log ---- */

static int log_file = -1;

static void log_line(const char *what, const char *first, const char *second) {
  if (log_file >= 0) dprintf(log_file, "%s %s %s\n", what, first, second);
}

/* The path of an open file, as it is now. */
static void log_open(const char *what, int fd) {
  char link[64], path[PATH_MAX];
  if (log_file < 0 || fd == log_file) return;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, path, sizeof path - 1);
  path[size > 0 ? size : 0] = '\0';
  log_line(what, path, "");
}

static void log_rename(int from_folder, const char *from, const char *to) {
  char link[64], path[PATH_MAX];
  if (log_file < 0) return;
  snprintf(link, sizeof link, "/proc/self/fd/%d", from_folder);
  ssize_t size = from[0] == '/' ? 0 : readlink(link, path, sizeof path - 1);
  path[size > 0 ? size : 0] = '\0';
  char whole[2 * PATH_MAX];
  snprintf(whole, sizeof whole, "%s%s%s", path, path[0] != '\0' ? "/" : "", from);
  log_line("rename", whole, to);
}

/* For calls that have no short form. */
static bool fails_from(family of, const void *caller) {
  int fault = strike_from(of, caller);
  if (fault > 0) errno = fault;
  return fault > 0;
}

/* In the functions that stand in front of others: */
#define strike(of) strike_from(of, __builtin_return_address(0))
#define fails(of) fails_from(of, __builtin_return_address(0))
#define allow(of, size) allow_from(of, size, __builtin_return_address(0))

static void refuse_plan(const char *plan) {
  dprintf(2, "faults: cannot understand TEGULA_FAULT=%s\n", plan);
  _exit(125);
}

static void read_plan(const char *plan) {
  char name[16], kind[16], plus[2] = "";
  faults.family = FAMILIES;
  if (plan == NULL || plan[0] == '\0') return;
  if (sscanf(plan, "%15[a-z]:%ld%1[+]:%15s", name, &faults.nth, plus, kind) != 4 &&
      sscanf(plan, "%15[a-z]:%ld:%15s", name, &faults.nth, kind) != 3)
    refuse_plan(plan);
  faults.onwards = plus[0] == '+';
  for (int i = 0; i < FAMILIES; i++)
    if (strcmp(family_names[i], name) == 0) faults.family = i;
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (strcmp(kinds[i].name, kind) == 0) faults.fault = kinds[i].fault;
  if (faults.family == FAMILIES || faults.fault == NO_FAULT) refuse_plan(plan);
}

static int note_module(struct dl_phdr_info *info, size_t size, void *state) {
  (void)size;
  (void)state;
  const char *slash = strrchr(info->dlpi_name, '/'),
             *name = slash != NULL ? slash + 1 : info->dlpi_name;
  if (name[0] == '\0') faults.base = info->dlpi_addr;
  origin of = strncmp(name, "libc.so", 7) == 0       ? LIBC
              : strncmp(name, "ld-linux", 8) == 0    ? LOADER
              : strncmp(name, "libstdc++", 9) == 0   ? CXX
              : strncmp(name, "libjansson", 10) == 0 ? JANSSON
                                                     : PROGRAM;
  uintptr_t lo = UINTPTR_MAX, hi = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr,
              end = start + info->dlpi_phdr[i].p_memsz;
    lo = start < lo ? start : lo;
    hi = end > hi ? end : hi;
  }
  if (name[0] == '\0' && faults.end == 0) faults.end = hi;
  if (of != PROGRAM) {
    faults.ranges[of].lo = lo;
    faults.ranges[of].hi = hi;
  }
  return 0;
}

static void forget_live(void);

/* What was allocated before (by constructors of libraries that were initialised earlier) is not the
 * program's. */
__attribute__((constructor)) static void begin(void) {
  forget_live();
  dl_iterate_phdr(note_module, NULL);
  read_plan(getenv("TEGULA_FAULT"));
  const char *spare = getenv("TEGULA_FAULT_SPARE");
  faults.spare_jansson = spare != NULL && strstr(spare, "libjansson") != NULL;
  faults.only_program = getenv("TEGULA_FAULT_ONLY") != NULL;
  faults.spare_libc = spare != NULL && strstr(spare, "libc") != NULL;
  const char *log = getenv("TEGULA_FAULT_LOG");
  if (log != NULL)
    log_file =
        (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  atomic_store(&faults.counting, getenv("TEGULA_FAULT_WINDOW") == NULL);
}

void tegula_faults_window(int open) { atomic_store(&faults.counting, open != 0); }

/* Another plan (NULL: none), and counting begins anew. */
void tegula_faults_plan(const char *plan) {
  for (int i = 0; i < FAMILIES; i++) atomic_store(&faults.calls[i], 0);
  read_plan(plan);
}

/* The calls so far, as a JSON object. */
void tegula_faults_counts(char *out, size_t room) {
  size_t used = 0;
  for (int i = 0; i < FAMILIES && used < room; i++)
    used += (size_t)snprintf(out + used, room - used, "%s\"%s\": %ld", i > 0 ? ", " : "{",
                             family_names[i], atomic_load(&faults.calls[i]));
  if (used < room) snprintf(out + used, room - used, "}");
}

/* ---- live allocations: a table of addresses, so that blocks keep their alignment and may come
 * from anywhere ---- */

#ifdef TEGULA_FAULTS_WITHOUT_MEMORY
static void forget_live(void) {}
#else

#define PLACES ((size_t)1 << 18)
#define REMOVED ((void *)1)

static struct {
  void *block;
  const void *caller;
} live[PLACES];
static atomic_flag live_lock = ATOMIC_FLAG_INIT;

static void forget_live(void) { memset(live, 0, sizeof live); }

static size_t first_place(const void *block) {
  return (size_t)((uintptr_t)block * UINT64_C(0x9E3779B97F4A7C15) >> 40) % PLACES;
}

static void lock(void) {
  while (atomic_flag_test_and_set(&live_lock)) sched_yield();
}

static void unlock(void) { atomic_flag_clear(&live_lock); }

static void live_add(void *block, const void *caller) {
  if (block == NULL) return;
  lock();
  size_t i = first_place(block);
  for (size_t tries = 0; tries < PLACES && live[i].block != NULL && live[i].block != REMOVED;
       tries++)
    i = (i + 1) % PLACES;
  live[i].block = block;
  live[i].caller = caller;
  unlock();
}

static const void *live_remove(const void *block) {
  const void *caller = NULL;
  lock();
  for (size_t i = first_place(block), tries = 0; tries < PLACES && live[i].block != NULL;
       i = (i + 1) % PLACES, tries++) {
    if (live[i].block != block) continue;
    live[i].block = REMOVED;
    caller = live[i].caller;
    break;
  }
  unlock();
  return caller;
}

static origin origin_of(const void *caller) {
  for (int i = LIBC; i < ORIGINS; i++)
    if ((uintptr_t)caller >= faults.ranges[i].lo && (uintptr_t)caller < faults.ranges[i].hi)
      return (origin)i;
  return PROGRAM;
}

/* Must this allocation fail? */
static bool starved(const void *caller) {
  origin of = origin_of(caller);
  if (of == LOADER || of == CXX || (of == JANSSON && faults.spare_jansson) ||
      (of == LIBC && faults.spare_libc))
    return false;
  return fails_from(MEMORY, caller);
}

/* The C library keeps buffers of its own until the end: those are not the program's leaks. */
static void *made(void *block, const void *caller) {
  origin of = origin_of(caller);
  if (of == PROGRAM || of == JANSSON) live_add(block, caller);
  return block;
}

#define CALLER __builtin_return_address(0)

void *malloc(size_t size) { return starved(CALLER) ? NULL : made(__libc_malloc(size), CALLER); }

void *calloc(size_t count, size_t size) {
  return starved(CALLER) ? NULL : made(__libc_calloc(count, size), CALLER);
}

void *aligned_alloc(size_t alignment, size_t size) {
  return starved(CALLER) ? NULL : made(__libc_memalign(alignment, size), CALLER);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
  if (starved(CALLER)) return ENOMEM;
  void *block = made(__libc_memalign(alignment, size), CALLER);
  if (block == NULL) return ENOMEM;
  *out = block;
  return 0;
}

void *realloc(void *block, size_t size) {
  if (starved(CALLER)) return NULL;
  const void *before = block != NULL ? live_remove(block) : NULL;
  void *grown = __libc_realloc(block, size);
  if (grown == NULL && size > 0 && before != NULL) live_add(block, before);
  return made(grown, CALLER);
}

void free(void *block) {
  if (block == NULL || strike(RELEASE) == KEEP) return;
  live_remove(block);
  __libc_free(block);
}

/* These allocate inside the C library on behalf of their caller. */

static char *copy_text(const char *text, size_t size, const void *caller) {
  if (starved(caller)) return NULL;
  char *copy = made(__libc_malloc(size + 1), caller);
  if (copy == NULL) return NULL;
  memcpy(copy, text, size);
  copy[size] = '\0';
  return copy;
}

char *strdup(const char *text) { return copy_text(text, strlen(text), CALLER); }

char *strndup(const char *text, size_t most) {
  return copy_text(text, strnlen(text, most), CALLER);
}

static int print_text(char **out, const char *format, va_list arguments, const void *caller) {
  va_list again;
  va_copy(again, arguments);
  int size = vsnprintf(NULL, 0, format, again);
  va_end(again);
  if (size < 0 || starved(caller)) return -1;
  char *text = made(__libc_malloc((size_t)size + 1), caller);
  if (text == NULL) return -1;
  *out = text;
  return vsnprintf(text, (size_t)size + 1, format, arguments);
}

int vasprintf(char **out, const char *format, va_list arguments) {
  return print_text(out, format, arguments, CALLER);
}

int asprintf(char **out, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int size = print_text(out, format, arguments, CALLER);
  va_end(arguments);
  return size;
}

#endif

/* ---- files ---- */

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static mode_t mode_argument(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

int open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = mode_argument(flags, arguments);
  va_end(arguments);
  return fails(OPEN) ? -1 : NEXT(open)(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = mode_argument(flags, arguments);
  va_end(arguments);
  return fails(OPEN) ? -1 : NEXT(openat)(folder, path, flags, mode);
}

/* One transfer of `size` bytes: false when it fails, else the bytes that it may have. */
static bool allow_from(family of, size_t *size, const void *caller) {
  int fault = strike_from(of, caller);
  if (fault == SHORT && *size > 1) *size /= 2;
  if (fault > 0) errno = fault;
  return fault <= 0;
}

ssize_t read(int fd, void *data, size_t size) {
  return allow(READ, &size) ? NEXT(read)(fd, data, size) : -1;
}

ssize_t pread(int fd, void *data, size_t size, off_t offset) {
  return allow(READ, &size) ? NEXT(pread)(fd, data, size, offset) : -1;
}

ssize_t write(int fd, const void *data, size_t size) {
  return allow(WRITE, &size) ? NEXT(write)(fd, data, size) : -1;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
  log_open("write", fd);
  return allow(WRITE, &size) ? NEXT(pwrite)(fd, data, size, offset) : -1;
}

/* A short vectored call ends in the middle of its first vector that has bytes. */
ssize_t preadv(int fd, const struct iovec *vectors, int count, off_t offset) {
  int fault = strike(READ);
  if (fault == SHORT && count > 0 && vectors[0].iov_len > 1)
    return NEXT(pread)(fd, vectors[0].iov_base, vectors[0].iov_len / 2, offset);
  if (fault > 0) errno = fault;
  return fault > 0 ? -1 : NEXT(preadv)(fd, vectors, count, offset);
}

ssize_t pwritev(int fd, const struct iovec *vectors, int count, off_t offset) {
  log_open("write", fd);
  int fault = strike(WRITE);
  if (fault == SHORT && count > 0 && vectors[0].iov_len > 1)
    return NEXT(pwrite)(fd, vectors[0].iov_base, vectors[0].iov_len / 2, offset);
  if (fault > 0) errno = fault;
  return fault > 0 ? -1 : NEXT(pwritev)(fd, vectors, count, offset);
}

int fstat(int fd, struct stat *out) { return fails(STAT) ? -1 : NEXT(fstat)(fd, out); }

int stat(const char *restrict path, struct stat *restrict out) {
  return fails(STAT) ? -1 : NEXT(stat)(path, out);
}

int lstat(const char *restrict path, struct stat *restrict out) {
  return fails(STAT) ? -1 : NEXT(lstat)(path, out);
}

int fstatat(int folder, const char *restrict path, struct stat *restrict out, int flags) {
  return fails(STAT) ? -1 : NEXT(fstatat)(folder, path, out, flags);
}

int ftruncate(int fd, off_t size) { return fails(SIZE) ? -1 : NEXT(ftruncate)(fd, size); }

int fallocate(int fd, int mode, off_t offset, off_t size) {
  return fails(SIZE) ? -1 : NEXT(fallocate)(fd, mode, offset, size);
}

int fsync(int fd) {
  log_open("sync", fd);
  return fails(SYNC) ? -1 : NEXT(fsync)(fd);
}

int fdatasync(int fd) {
  log_open("sync", fd);
  return fails(SYNC) ? -1 : NEXT(fdatasync)(fd);
}

/* What Linux does: the descriptor is gone whatever close returns. */
int close(int fd) {
  int fault = strike(CLOSE);
  int result = fault == KEEP ? 0 : NEXT(close)(fd);
  if (fault > 0) errno = fault;
  return fault > 0 ? -1 : result;
}

/* ---- names ---- */

int rename(const char *from, const char *to) { return fails(RENAME) ? -1 : NEXT(rename)(from, to); }

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
  log_rename(from_folder, from, to);
  return fails(RENAME) ? -1 : NEXT(renameat)(from_folder, from, to_folder, to);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
  log_rename(from_folder, from, to);
  return fails(RENAME) ? -1 : NEXT(renameat2)(from_folder, from, to_folder, to, flags);
}

int mkdir(const char *path, mode_t mode) { return fails(MKDIR) ? -1 : NEXT(mkdir)(path, mode); }

int unlink(const char *path) { return fails(REMOVE) ? -1 : NEXT(unlink)(path); }

int unlinkat(int folder, const char *path, int flags) {
  return fails(REMOVE) ? -1 : NEXT(unlinkat)(folder, path, flags);
}

int rmdir(const char *path) { return fails(REMOVE) ? -1 : NEXT(rmdir)(path); }

DIR *opendir(const char *path) { return fails(LIST) ? NULL : NEXT(opendir)(path); }

DIR *fdopendir(int fd) { return fails(LIST) ? NULL : NEXT(fdopendir)(fd); }

ssize_t getdents64(int fd, void *entries, size_t size) {
  return fails(LIST) ? -1 : NEXT(getdents64)(fd, entries, size);
}

struct dirent *readdir(DIR *folder) {
  return fails(LIST) ? NULL : NEXT(readdir)(folder);
}

int flock(int fd, int operation) { return fails(LOCK) ? -1 : NEXT(flock)(fd, operation); }

int chmod(const char *path, mode_t mode) { return fails(RIGHTS) ? -1 : NEXT(chmod)(path, mode); }

int chown(const char *path, uid_t owner, gid_t group) {
  return fails(RIGHTS) ? -1 : NEXT(chown)(path, owner, group);
}

/* TEGULA_FAULT_FREE=N: so many bytes are free, whatever the disk says. */
int statvfs(const char *restrict path, struct statvfs *restrict out) {
  int result = NEXT(statvfs)(path, out);
  const char *bytes = getenv("TEGULA_FAULT_FREE");
  if (result == 0 && bytes != NULL)
    out->f_bavail = out->f_bfree = (fsblkcnt_t)(strtoull(bytes, NULL, 10) / out->f_frsize);
  return result;
}

/* ---- the rest ---- */

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
  return fails(MAP) ? MAP_FAILED : NEXT(mmap)(address, size, protection, flags, fd, offset);
}

int pthread_create(pthread_t *restrict out, const pthread_attr_t *restrict attributes,
                   void *(*run)(void *), void *restrict state) {
  int fault = strike(THREAD);
  return fault > 0 ? fault : NEXT(pthread_create)(out, attributes, run, state);
}

/* ---- the report ---- */

static void report_live(int out) {
  long count = 0;
  dprintf(out, ", \"callers\": [");
#ifndef TEGULA_FAULTS_WITHOUT_MEMORY
  for (size_t i = 0; i < PLACES; i++) {
    if (live[i].block == NULL || live[i].block == REMOVED) continue;
    if (count++ < 8)
      dprintf(out, "%s\"%#lx\"", count > 1 ? ", " : "",
              (unsigned long)((uintptr_t)live[i].caller - faults.base));
  }
#endif
  dprintf(out, "], \"live\": %ld", count);
}

__attribute__((destructor)) static void end(void) {
  atomic_store(&faults.counting, false);
  const char *path = getenv("TEGULA_FAULT_REPORT");
  if (path == NULL) return;
  long descriptors = 0;
  for (int fd = 3; fd < 1024; fd++) descriptors += fcntl(fd, F_GETFD) >= 0;
  int out = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (out < 0) return;
  dprintf(out, "{\"calls\": {");
  for (int i = 0; i < FAMILIES; i++)
    dprintf(out, "%s\"%s\": %ld", i > 0 ? ", " : "", family_names[i],
            atomic_load(&faults.calls[i]));
  dprintf(out, "}, \"strikes\": %ld, \"descriptors\": %ld", atomic_load(&faults.strikes),
          descriptors);
  report_live(out);
  dprintf(out, "}\n");
}
