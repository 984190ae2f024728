/* slowfs: shows a folder again, read-only, through FUSE, as storage that is slow or breaks.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   tegula_slowfs SOURCE MOUNT [name=value]...
 *
 * Prints "ready" when MOUNT can be used. Then each line of standard input is a command with one
 * line of answer: `set name=value ...`
 * ("ok"; counting for the fail_ and _after settings starts anew), `counts` (JSON), `zero` (counters
 * to 0, "ok"). The end of standard input unmounts, so that nothing stays mounted when the program
 * that started this one is gone. Requests wait side by side, each in a thread of its own: 200 of 1
 * ms that arrive together take about 1 ms. slowfs.py drives it and says what the settings mean. */
#define FUSE_USE_VERSION 312
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_THREADS 300

enum kind { READ, OPEN, GETATTR, LIST, KINDS };

static const char *const kind_names[KINDS] = {"read", "open", "getattr", "list"};

typedef struct settings {
  int64_t delay[KINDS];               /* microseconds */
  int64_t fail[KINDS];                /* number of the first request that fails; 0: none */
  int64_t fail_times, error;          /* how many fail, with which errno */
  int64_t short_read;                 /* most bytes in one answer; 0: all */
  int64_t vanish_after, resize_after; /* opens; -1: never */
  int64_t resize_by;
  int64_t change_after; /* reads; -1: never. Of one request: whether it finds the file changed */
  int64_t hold_read;
  int64_t direct_io, attr_cache, max_read; /* of the mount */
  char name[256];                          /* faults meet the paths that contain it */
} settings;

typedef struct slow_fs {
  pthread_mutex_t lock;
  pthread_cond_t set; /* `now` is another */
  settings now;
  int64_t matched[KINDS]; /* requests for files that faults may meet, since the last `set` */
  int64_t counts[KINDS];
  int64_t bytes, in_flight, most_in_flight, held;
  int source;
  const char *mount;
} slow_fs;

typedef struct open_file {
  int fd;
  char path[]; /* as FUSE gives it: with a slash in front */
} open_file;

/* ---- settings ---- */

typedef struct setting {
  const char *name;
  size_t offset;
  int64_t low, high;
  int fixed; /* cannot be changed after mounting */
} setting;

#define US_MOST 60000000
#define FIELD(field) offsetof(settings, field)

static const setting table[] = {
    {"delay_read", FIELD(delay[READ]), 0, US_MOST, 0},
    {"delay_open", FIELD(delay[OPEN]), 0, US_MOST, 0},
    {"delay_getattr", FIELD(delay[GETATTR]), 0, US_MOST, 0},
    {"delay_list", FIELD(delay[LIST]), 0, US_MOST, 0},
    {"fail_read", FIELD(fail[READ]), 0, INT64_MAX / 2, 0},
    {"fail_open", FIELD(fail[OPEN]), 0, INT64_MAX / 2, 0},
    {"fail_getattr", FIELD(fail[GETATTR]), 0, INT64_MAX / 2, 0},
    {"fail_list", FIELD(fail[LIST]), 0, INT64_MAX / 2, 0},
    {"fail_times", FIELD(fail_times), 0, INT64_MAX / 2, 0},
    {"error", FIELD(error), 1, 4095, 0},
    {"short_read", FIELD(short_read), 0, INT64_MAX, 0},
    {"vanish_after", FIELD(vanish_after), -1, INT64_MAX, 0},
    {"resize_after", FIELD(resize_after), -1, INT64_MAX, 0},
    {"resize_by", FIELD(resize_by), -INT64_MAX / 2, INT64_MAX / 2, 0},
    {"change_after", FIELD(change_after), -1, INT64_MAX / 2, 0},
    {"hold_read", FIELD(hold_read), 0, 1, 0},
    {"direct_io", FIELD(direct_io), 0, 1, 1},
    {"attr_cache", FIELD(attr_cache), 0, 1000000, 1},
    {"max_read", FIELD(max_read), 4096, 1 << 20, 1},
};

static int64_t *value_of(settings *set, const setting *row) {
  return (int64_t *)(void *)((char *)set + row->offset);
}

static const char *set_number(settings *set, const char *name, size_t length, const char *text,
                              int mounted) {
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (*text == '\0' || *end != '\0' || errno != 0) return "not a number";
  if (length == 5 && memcmp(name, "delay", 5) == 0) {
    if (value < 0 || value > US_MOST) return "out of bounds";
    for (int kind = 0; kind < KINDS; kind++) set->delay[kind] = value;
    return NULL;
  }
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (strlen(table[i].name) != length || memcmp(table[i].name, name, length) != 0) continue;
    if (table[i].fixed && mounted) return "cannot be changed after mounting";
    if (value < table[i].low || value > table[i].high) return "out of bounds";
    *value_of(set, &table[i]) = value;
    return NULL;
  }
  return "unknown setting";
}

/* One "name=value"; gives what is wrong, or NULL. */
static const char *set_one(settings *set, const char *word, int mounted) {
  const char *sign = strchr(word, '=');
  if (sign == NULL) return "expected name=value";
  size_t length = (size_t)(sign - word);
  if (length == 4 && memcmp(word, "name", 4) == 0) {
    if (strlen(sign + 1) >= sizeof set->name) return "name too long";
    strcpy(set->name, sign + 1);
    return NULL;
  }
  return set_number(set, word, length, sign + 1, mounted);
}

/* The kernel takes a short answer for the end of the file unless its page cache is bypassed. */
static const char *check(const settings *set) {
  return set->short_read > 0 && !set->direct_io ? "short_read needs direct_io=1" : NULL;
}

/* ---- what happens to a request ---- */

static slow_fs *here(void) { return fuse_get_context()->private_data; }

static void wait_us(int64_t us) {
  struct timespec rest = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
  while (us > 0 && nanosleep(&rest, &rest) != 0 && errno == EINTR) continue;
}

static int meets(const slow_fs *fs, const char *path) { return strstr(path, fs->now.name) != NULL; }

/* Lock held. */
static int changed(const slow_fs *fs, const char *path, int64_t after) {
  return after >= 0 && meets(fs, path) && fs->matched[OPEN] >= after;
}

/* Counts a request and waits as long as it is to take; gives what holds for it in `set` and the
 * error that it ends with, or 0. */
static int begin(slow_fs *fs, enum kind kind, const char *path, settings *set) {
  int error = 0;
  pthread_mutex_lock(&fs->lock);
  *set = fs->now;
  fs->counts[kind]++;
  if (++fs->in_flight > fs->most_in_flight) fs->most_in_flight = fs->in_flight;
  if (kind != READ && changed(fs, path, set->vanish_after)) error = ENOENT;
  if (!changed(fs, path, set->resize_after)) set->resize_by = 0;
  set->change_after =
      set->change_after >= 0 && meets(fs, path) && fs->matched[READ] >= set->change_after;
  if (meets(fs, path)) {
    int64_t number = ++fs->matched[kind], first = set->fail[kind];
    if (first > 0 && number >= first && number - first < set->fail_times) error = (int)set->error;
  }
  fs->held += kind == READ && fs->now.hold_read && meets(fs, path);
  while (kind == READ && fs->now.hold_read && meets(fs, path))
    pthread_cond_wait(&fs->set, &fs->lock);
  pthread_mutex_unlock(&fs->lock);
  wait_us(set->delay[kind]);
  return error;
}

static int end(slow_fs *fs, int result, int64_t bytes) {
  pthread_mutex_lock(&fs->lock);
  fs->in_flight--;
  fs->bytes += bytes;
  pthread_mutex_unlock(&fs->lock);
  return result;
}

static const char *inside(const char *path) { return path[1] != '\0' ? path + 1 : "."; }

/* ---- operations ---- */

static void *slow_init(struct fuse_conn_info *connection, struct fuse_config *config) {
  slow_fs *fs = here();
  const settings *set = &fs->now; /* nothing changes it yet */
  connection->want &=
      ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO);
  connection->want |= connection->capable & (FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_SPLICE_WRITE);
  /* the kernel's own default is 12 read-ahead and asynchronous requests */
  connection->max_background = MOST_THREADS;
  connection->congestion_threshold = MOST_THREADS;
  connection->max_read = (unsigned)set->max_read;
  config->use_ino = 1; /* numbers of FUSE's own would change when the kernel forgets a file */
  config->nullpath_ok = 1;
  config->direct_io = (int)set->direct_io;
  config->attr_timeout = config->entry_timeout = (double)set->attr_cache;
  config->negative_timeout = 0;
  return fs;
}

static int slow_getattr(const char *path, struct stat *out, struct fuse_file_info *info) {
  slow_fs *fs = here();
  const open_file *file = info != NULL ? (open_file *)(uintptr_t)info->fh : NULL;
  settings set;
  int error = begin(fs, GETATTR, file != NULL ? file->path : path, &set);
  if (error == ENOENT && file != NULL) error = 0; /* an open file stays when its name is gone */
  if (error == 0) {
    int result = file != NULL ? fstat(file->fd, out)
                              : fstatat(fs->source, inside(path), out, AT_SYMLINK_NOFOLLOW);
    if (result != 0) error = errno;
  }
  if (error == 0 && set.resize_by != 0 && S_ISREG(out->st_mode)) {
    out->st_size = out->st_size + set.resize_by > 0 ? out->st_size + set.resize_by : 0;
    out->st_mtim.tv_sec++;
  }
  if (error == 0 && set.change_after && S_ISREG(out->st_mode)) out->st_mtim.tv_sec += 2;
  return end(fs, -error, 0);
}

/* Leaves an open_file in `info`; gives an errno or 0. */
static int open_inside(const slow_fs *fs, const char *path, int flags,
                       struct fuse_file_info *info) {
  open_file *file = malloc(sizeof *file + strlen(path) + 1);
  if (file == NULL) return ENOMEM;
  strcpy(file->path, path);
  file->fd = openat(fs->source, inside(path), O_RDONLY | O_CLOEXEC | flags);
  if (file->fd < 0) {
    int error = errno;
    free(file);
    return error;
  }
  info->fh = (uintptr_t)file;
  return 0;
}

static int slow_open(const char *path, struct fuse_file_info *info) {
  slow_fs *fs = here();
  settings set;
  int error = begin(fs, OPEN, path, &set);
  return end(fs, -(error != 0 ? error : open_inside(fs, path, 0, info)), 0);
}

static int slow_opendir(const char *path, struct fuse_file_info *info) {
  return -open_inside(here(), path, O_DIRECTORY, info);
}

static int slow_release(const char *path, struct fuse_file_info *info) {
  (void)path;
  open_file *file = (open_file *)(uintptr_t)info->fh;
  close(file->fd);
  free(file);
  return 0;
}

/* How many of `size` bytes from `offset` are answered. */
static size_t answered(const settings *set, const open_file *file, size_t size, off_t offset) {
  struct stat status;
  if (set->short_read > 0 && (int64_t)size > set->short_read) size = (size_t)set->short_read;
  if (set->resize_by >= 0 || fstat(file->fd, &status) != 0) return size;
  int64_t left = status.st_size + set->resize_by - offset;
  return left <= 0 ? 0 : left < (int64_t)size ? (size_t)left : size;
}

/* Other bytes in place of those that lie there: each one inverted. Gives an errno or 0. */
static int invert(struct fuse_bufvec *buffer, const open_file *file, off_t offset) {
  struct fuse_buf *answer = &buffer->buf[0];
  unsigned char *bytes = malloc(answer->size + 1); /* freed by libfuse */
  if (bytes == NULL) return ENOMEM;
  ssize_t got = pread(file->fd, bytes, answer->size, offset);
  if (got < 0) {
    int error = errno;
    free(bytes);
    return error;
  }
  for (ssize_t i = 0; i < got; i++) bytes[i] ^= 0xFF;
  *answer = (struct fuse_buf){.size = (size_t)got, .mem = bytes};
  return 0;
}

/* The bytes stay in the kernel where it can splice them. */
static int slow_read(const char *path, struct fuse_bufvec **out, size_t size, off_t offset,
                     struct fuse_file_info *info) {
  (void)path;
  slow_fs *fs = here();
  const open_file *file = (open_file *)(uintptr_t)info->fh;
  settings set;
  int error = begin(fs, READ, file->path, &set);
  if (error != 0) return end(fs, -error, 0);
  struct fuse_bufvec *buffer = malloc(sizeof *buffer);
  if (buffer == NULL) return end(fs, -ENOMEM, 0);
  *buffer = FUSE_BUFVEC_INIT(answered(&set, file, size, offset));
  buffer->buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
  buffer->buf[0].fd = file->fd;
  buffer->buf[0].pos = offset;
  int64_t asked = (int64_t)buffer->buf[0].size;
  if (set.change_after) error = invert(buffer, file, offset);
  if (error != 0)
    free(buffer);
  else
    *out = buffer;
  return end(fs, -error, asked);
}

static int list_into(const open_file *file, void *buffer, fuse_fill_dir_t fill) {
  int fd = openat(file->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
  if (folder == NULL) {
    int error = errno;
    if (fd >= 0) close(fd);
    return error;
  }
  errno = 0;
  for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    struct stat status = {.st_ino = entry->d_ino, .st_mode = (mode_t)entry->d_type << 12};
    if (fill(buffer, entry->d_name, &status, 0, 0) != 0) break;
  }
  int error = errno;
  closedir(folder);
  return error;
}

/* Called once for a whole listing: one delay, however many answers it takes. */
static int slow_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset,
                        struct fuse_file_info *info, enum fuse_readdir_flags flags) {
  (void)path, (void)offset, (void)flags;
  slow_fs *fs = here();
  const open_file *file = (open_file *)(uintptr_t)info->fh;
  settings set;
  int error = begin(fs, LIST, file->path, &set);
  return end(fs, -(error != 0 ? error : list_into(file, buffer, fill)), 0);
}

static int slow_readlink(const char *path, char *out, size_t size) {
  ssize_t length = readlinkat(here()->source, inside(path), out, size - 1);
  if (length < 0) return -errno;
  out[length] = '\0';
  return 0;
}

static const struct fuse_operations operations = {
    .init = slow_init,
    .getattr = slow_getattr,
    .open = slow_open,
    .release = slow_release,
    .opendir = slow_opendir,
    .releasedir = slow_release,
    .read_buf = slow_read,
    .readdir = slow_readdir,
    .readlink = slow_readlink,
};

/* libfuse before 3.16.3 does not pass on that names may be looked up side by side (libfuse pull
 * request 861). Its calls of writev come here; the first one answers the kernel's INIT: 16 bytes of
 * header, then version, version, read-ahead, flags. */
__attribute__((visibility("default"))) ssize_t writev(int fd, const struct iovec *vectors,
                                                      int count) {
  static atomic_flag answered_init = ATOMIC_FLAG_INIT;
  uint32_t *words = count == 2 && vectors[1].iov_len >= 24 ? vectors[1].iov_base : NULL;
  if (words != NULL && words[0] == FUSE_KERNEL_VERSION && !atomic_flag_test_and_set(&answered_init))
    words[3] |= FUSE_PARALLEL_DIROPS;
  return syscall(SYS_writev, fd, vectors, count);
}

/* ---- commands on standard input ---- */

static void answer(const char *first, const char *second) {
  printf("%s%s\n", first, second);
  fflush(stdout);
}

static void do_set(slow_fs *fs, char *words) {
  const char *problem = NULL;
  pthread_mutex_lock(&fs->lock);
  settings set = fs->now;
  for (char *rest, *word = strtok_r(words, " ", &rest); word != NULL && problem == NULL;
       word = strtok_r(NULL, " ", &rest))
    problem = set_one(&set, word, 1);
  if (problem == NULL) problem = check(&set);
  if (problem == NULL) {
    fs->now = set;
    memset(fs->matched, 0, sizeof fs->matched);
    pthread_cond_broadcast(&fs->set);
  }
  pthread_mutex_unlock(&fs->lock);
  answer(problem == NULL ? "ok" : "error: ", problem == NULL ? "" : problem);
}

static void do_counts(slow_fs *fs) {
  pthread_mutex_lock(&fs->lock);
  printf("{\"bytes\": %lld, \"most_in_flight\": %lld, \"held\": %lld", (long long)fs->bytes,
         (long long)fs->most_in_flight, (long long)fs->held);
  for (int kind = 0; kind < KINDS; kind++)
    printf(", \"%s\": %lld", kind_names[kind], (long long)fs->counts[kind]);
  pthread_mutex_unlock(&fs->lock);
  answer("}", "");
}

static void do_zero(slow_fs *fs) {
  pthread_mutex_lock(&fs->lock);
  memset(fs->counts, 0, sizeof fs->counts);
  fs->bytes = fs->held = 0;
  fs->most_in_flight = fs->in_flight;
  pthread_mutex_unlock(&fs->lock);
  answer("ok", "");
}

/* Detached at once; the loop ends when the last file on it is closed. */
static void unmount(const slow_fs *fs) {
  char *const words[] = {(char[]){"fusermount3"},
                         (char[]){"-u"},
                         (char[]){"-z"},
                         (char[]){"--"},
                         (char *)(uintptr_t)fs->mount,
                         NULL};
  pid_t child;
  if (posix_spawnp(&child, words[0], NULL, NULL, words, (char *[]){NULL}) == 0)
    waitpid(child, NULL, 0);
}

static void let_go(slow_fs *fs) {
  pthread_mutex_lock(&fs->lock);
  fs->now.hold_read = 0;
  pthread_cond_broadcast(&fs->set);
  pthread_mutex_unlock(&fs->lock);
}

static void *listen_to_commands(void *state) {
  slow_fs *fs = state;
  char line[1024];
  while (fgets(line, sizeof line, stdin) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "set ", 4) == 0)
      do_set(fs, line + 4);
    else if (strcmp(line, "counts") == 0)
      do_counts(fs);
    else if (strcmp(line, "zero") == 0)
      do_zero(fs);
    else
      answer("error: unknown command: ", line);
  }
  let_go(fs);
  unmount(fs);
  return NULL;
}

/* ---- start ---- */

static int fail(const char *what, const char *about) {
  fprintf(stderr, "tegula_slowfs: %s: %s\n", what, about);
  return 1;
}

/* Every file that is open on the mount is open here too. */
static void allow_many_files(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

static int serve(struct fuse *fuse, slow_fs *fs) {
  pthread_t listener;
  struct fuse_loop_config *loop = fuse_loop_cfg_create();
  fuse_loop_cfg_set_max_threads(loop, MOST_THREADS);
  fuse_loop_cfg_set_idle_threads(loop, MOST_THREADS); /* a thread that was needed once stays */
  if (fuse_set_signal_handlers(fuse_get_session(fuse)) != 0)
    return fail("signals", "could not set handlers");
  if (pthread_create(&listener, NULL, listen_to_commands, fs) != 0)
    return fail("threads", "could not start one");
  pthread_detach(listener);
  answer("ready", "");
  int result = fuse_loop_mt(fuse, loop);
  fuse_loop_cfg_destroy(loop);
  return result < 0;
}

int main(int argc, char **argv) {
  slow_fs fs = {.lock = PTHREAD_MUTEX_INITIALIZER,
                .set = PTHREAD_COND_INITIALIZER,
                .now = {.fail_times = 1,
                        .error = EIO,
                        .vanish_after = -1,
                        .resize_after = -1,
                        .change_after = -1,
                        .max_read = 1 << 20}};
  if (argc < 3) return fail("usage", "tegula_slowfs SOURCE MOUNT [name=value]...");
  for (int i = 3; i < argc; i++) {
    const char *problem = set_one(&fs.now, argv[i], 0);
    if (problem != NULL) return fail(argv[i], problem);
  }
  if (check(&fs.now) != NULL) return fail("settings", check(&fs.now));
  fs.mount = argv[2];
  fs.source = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fs.source < 0) return fail(argv[1], strerror(errno));
  allow_many_files();
  prctl(PR_SET_TIMERSLACK, 1); /* threads inherit it: a delay of 1 ms is not 1.06 */

  char mount_options[128];
  snprintf(mount_options, sizeof mount_options, "-oro,fsname=tegula_slowfs,max_read=%lld",
           (long long)fs.now.max_read);
  char *words[] = {argv[0], mount_options, NULL};
  struct fuse_args arguments = FUSE_ARGS_INIT(2, words);
  struct fuse *fuse = fuse_new(&arguments, &operations, sizeof operations, &fs);
  if (fuse == NULL) return fail("FUSE", "could not be started");
  if (fuse_mount(fuse, fs.mount) != 0) return fail(fs.mount, "could not be mounted");
  int result = serve(fuse, &fs);
  fuse_unmount(fuse);
  fuse_destroy(fuse);
  fuse_opt_free_args(&arguments);
  return result;
}
