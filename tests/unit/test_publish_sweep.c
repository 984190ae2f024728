/* What killed saves left is taken away by the next save in that folder, and never what a save still
 * works on.
 *
 * SPDX-License-Identifier: Apache-2.0 */
/* link-options: -Wl,--wrap=flock,--wrap=renameat2,--wrap=renameat,--wrap=statvfs */
#include "support.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "publish/publish.h"

static folder where;

/* ---- the system, as it is elsewhere ---- */

static struct {
  bool no_locks, no_exchange;
  int killed_at; /* renames left until the process ends; 0: never */
  int64_t free;  /* -1: as it is */
} elsewhere;

int __real_flock(int fd, int operation);
int __real_renameat2(int a, const char *from, int b, const char *to, unsigned flags);
int __real_renameat(int a, const char *from, int b, const char *to);
int __real_statvfs(const char *path, struct statvfs *out);
int __wrap_flock(int fd, int operation);
int __wrap_renameat2(int a, const char *from, int b, const char *to, unsigned flags);
int __wrap_renameat(int a, const char *from, int b, const char *to);
int __wrap_statvfs(const char *path, struct statvfs *out);

int __wrap_flock(int fd, int operation) {
  if (!elsewhere.no_locks) return __real_flock(fd, operation);
  errno = ENOLCK;
  return -1;
}

int __wrap_renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
  if (elsewhere.no_exchange) {
    errno = EINVAL;
    return -1;
  }
  if (elsewhere.killed_at > 0 && --elsewhere.killed_at == 0) _exit(0);
  return __real_renameat2(a, from, b, to, flags);
}

int __wrap_renameat(int a, const char *from, int b, const char *to) {
  if (elsewhere.killed_at > 0 && --elsewhere.killed_at == 0) _exit(0);
  return __real_renameat(a, from, b, to);
}

int __wrap_statvfs(const char *path, struct statvfs *out) {
  int result = __real_statvfs(path, out);
  if (elsewhere.free >= 0)
    out->f_bavail = out->f_bfree = (fsblkcnt_t)elsewhere.free / out->f_frsize;
  return result;
}

/* ---- what the tests share ---- */

static int setup(void **state) {
  (void)state;
  where = folder_make();
  memset(&elsewhere, 0, sizeof elsewhere);
  elsewhere.free = -1;
  return 0;
}

static int teardown(void **state) {
  (void)state;
  folder_remove(&where);
  return 0;
}

static tegula__publish begin(const char *target, bool in_folder, bool overwrite) {
  tegula_error error;
  tegula__publish made;
  assert_ok(tegula__publish_begin(target, in_folder, overwrite, &made, &error));
  return made;
}

static void fill(const tegula__publish *publish, const char *text) {
  char name[2048];
  snprintf(name, sizeof name, publish->folder ? "%s/shard_0" : "%s", publish->temporary);
  file_write(name, text, strlen(text));
}

static void expect_text(const char *path, const char *text) {
  size_t size;
  unsigned char *data = file_read(path, &size);
  assert_int_equal(size, strlen(text));
  assert_memory_equal(data, text, size);
  free(data);
}

/* A save that is killed before its commit; at rename `at` of the commit when that is not 0. */
static void killed_save(const char *target, bool in_folder, bool overwrite, int at, bool pair) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    tegula__publish p;
    if (tegula__publish_begin(target, in_folder, overwrite, &p, NULL) != TEGULA_OK) _exit(1);
    fill(&p, "killed");
    if (pair && tegula__publish_companion(&p, "tiles", NULL) != TEGULA_OK) _exit(1);
    elsewhere.killed_at = at;
    if (at > 0) _exit(tegula__publish_commit(&p, false, NULL) == TEGULA_OK ? 2 : 3);
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

/* Another save in that folder, given up: only its sweep stays. */
static void sweep(const char *folder_path) {
  char name[2048];
  snprintf(name, sizeof name, "%s/sweeper", folder_path);
  tegula__publish p = begin(name, false, false);
  tegula__publish_abandon(&p);
}

static file_name only_entry(void) {
  char command[600], text[256] = "";
  snprintf(command, sizeof command, "ls -A %s", where.path);
  FILE *stream = popen(command, "r");
  assert_non_null(stream);
  assert_non_null(fgets(text, sizeof text, stream));
  pclose(stream);
  text[strcspn(text, "\n")] = '\0';
  return name_in(&where, "%s", text);
}

/* The workplace that is left, as one of another boot (digits in front), `days` old. */
static file_name moved(const char *digits, int days) {
  file_name old = only_entry(), new = old;
  memcpy(strstr(new.text, ".tegula-") + 8, digits, 8);
  assert_int_equal(rename(old.text, new.text), 0);
  char mark[1100];
  snprintf(mark, sizeof mark, "%s/mark", new.text);
  struct timespec times[2] = {{.tv_sec = time(NULL) - days * 86400},
                              {.tv_sec = time(NULL) - days * 86400}};
  assert_int_equal(utimensat(AT_FDCWD, mark, times, 0), 0);
  return new;
}

/* ---- clean-up ---- */

static void what_a_killed_save_left_goes_with_the_next_save(void **state) {
  (void)state;
  for (int in_folder = 0; in_folder < 2; in_folder++) {
    killed_save(name_in(&where, "x").text, in_folder, false, 0, false);
    assert_true(folder_count(where.path) >= 3);
    sweep(where.path);
    assert_int_equal(folder_count(where.path), 0);
  }
}

static void folders_that_a_killed_save_made_are_taken_back(void **state) {
  (void)state;
  assert_int_equal(mkdir(name_in(&where, "was").text, 0700), 0);
  killed_save(name_in(&where, "was/a/b/x").text, false, false, 0, false);
  sweep(name_in(&where, "was/a/b").text);
  assert_int_equal(folder_count(where.path), 1);
}

static void a_save_that_goes_on_is_left_alone(void **state) {
  (void)state;
  tegula_error error;
  tegula__publish file = begin(name_in(&where, "x").text, false, false),
                  whole = begin(name_in(&where, "y").text, true, false);
  fill(&file, "file");
  fill(&whole, "folder");
  sweep(where.path);
  pid_t child = fork(); /* from another process too */
  if (child == 0) {
    sweep(where.path);
    _exit(0);
  }
  assert_int_equal(waitpid(child, NULL, 0), child);
  assert_ok(tegula__publish_commit(&file, false, &error));
  assert_ok(tegula__publish_commit(&whole, false, &error));
  expect_text(name_in(&where, "x").text, "file");
  expect_text(name_in(&where, "y/shard_0").text, "folder");
  assert_int_equal(folder_count(where.path), 3);
}

/* The lock belongs to the open file, which a child shares: it is let go when both have ended. */
static void a_child_of_fork_makes_the_lock_last_longer_and_no_more(void **state) {
  (void)state;
  int gate[2];
  assert_int_equal(pipe(gate), 0);
  pid_t saver = fork();
  if (saver == 0) {
    tegula__publish p;
    char byte;
    if (tegula__publish_begin(name_in(&where, "x").text, false, false, &p, NULL) != TEGULA_OK)
      _exit(1);
    close(gate[1]);
    if (fork() == 0) _exit((int)read(gate[0], &byte, 1)); /* until the test closes its end */
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(saver, &status, 0), saver);
  assert_int_equal(status, 0);
  close(gate[0]);
  sweep(where.path);
  assert_int_equal(folder_count(where.path), 2);
  close(gate[1]);
  for (int i = 0; i < 6000 && folder_count(where.path) > 0; i++) { /* the child ends in a moment */
    sleep_ms(10);
    sweep(where.path);
  }
  assert_int_equal(folder_count(where.path), 0);
}

static void of_another_machine_it_is_left_for_a_week(void **state) {
  (void)state;
  static const struct {
    const char *digits;
    int days, left;
  } rows[] = {{"deadbeef", 0, 3},
              {"deadbeef", 6, 3},
              {"deadbeef", 8, 0},
              {"00000000", 6, 3},
              {"00000000", 8, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    killed_save(name_in(&where, "x").text, false, false, 0, false);
    moved(rows[i].digits, rows[i].days);
    sweep(where.path);
    if (folder_count(where.path) != rows[i].left)
      fail_msg("%s of %d days", rows[i].digits, rows[i].days);
    folder_remove(&where);
    where = folder_make();
  }
}

static void an_old_one_with_a_lock_is_left_alone(void **state) {
  (void)state;
  killed_save(name_in(&where, "x").text, false, false, 0, false);
  char mark[1100];
  snprintf(mark, sizeof mark, "%s/mark", moved("deadbeef", 30).text);
  int fd = open(mark, O_RDWR);
  assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
  sweep(where.path);
  assert_int_equal(folder_count(where.path), 3);
  close(fd);
  sweep(where.path);
  assert_int_equal(folder_count(where.path), 0);
}

static void without_locks_a_save_works_and_sweeps_nothing(void **state) {
  (void)state;
  tegula_error error;
  elsewhere.no_locks = true;
  tegula__publish p = begin(name_in(&where, "x").text, false, false);
  assert_non_null(strstr(p.workplace, "/.tegula-00000000"));
  fill(&p, "data");
  sweep(where.path);
  elsewhere.no_locks = false; /* nor where locks work for others */
  sweep(where.path);
  assert_ok(tegula__publish_commit(&p, false, &error));
  expect_text(name_in(&where, "x").text, "data");
  assert_int_equal(folder_count(where.path), 1);
}

static void what_is_nobodys_workplace_is_left_alone(void **state) {
  (void)state;
  static const char *const names[] = {".tegula-0123456789abcdef.tmp",
                                      ".tegula-0123456789abcdef.old",
                                      ".tegula-0123456789ABCDEF.tmp", ".tegula-x.tmp"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    assert_int_equal(mkdir(name_in(&where, "%s", names[i]).text, 0700), 0);
    file_write(name_in(&where, "%s/data", names[i]).text, "mine", 4); /* no mark */
  }
  sweep(where.path);
  assert_int_equal(folder_count(where.path), 8);
  file_write(name_in(&where, "%s/mark", names[0]).text, "mine", 4); /* not ours */
  struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
  assert_int_equal(utimensat(AT_FDCWD, name_in(&where, "%s/mark", names[0]).text, long_ago, 0), 0);
  sweep(where.path);
  assert_int_equal(folder_count(where.path), 9);
}

static void links_in_it_are_not_followed(void **state) {
  (void)state;
  folder other = folder_make();
  file_write(name_in(&other, "precious").text, "1", 1);
  killed_save(name_in(&where, "x").text, true, false, 0, false);
  char link_name[1100];
  snprintf(link_name, sizeof link_name, "%s/data/link", only_entry().text);
  assert_int_equal(symlink(other.path, link_name), 0);
  assert_int_equal(symlink(other.path, name_in(&where, ".tegula-0123456789abcdef.tmp").text), 0);
  sweep(where.path);
  assert_int_equal(folder_count(where.path), 1); /* a link with the name of a workplace */
  expect_text(name_in(&other, "precious").text, "1");
  folder_remove(&other);
}

static void a_save_into_a_workplace_sweeps_around_it(void **state) {
  (void)state;
  killed_save(name_in(&where, "x").text, false, false, 0, false);
  tegula__publish outer = begin(name_in(&where, "outer").text, true, false);
  killed_save(name_in(&where, "y").text, false, false, 0, false);
  char inner[1100];
  snprintf(inner, sizeof inner, "%s/shard_0", outer.temporary);
  tegula__publish p = begin(inner, false, false);
  tegula__publish_abandon(&p);
  assert_int_equal(folder_count(where.path), 3); /* outer's */
  tegula__publish_abandon(&outer);
}

/* ---- a replacement in two steps, where folders cannot be exchanged ---- */

static void the_old_folder_comes_back_when_a_save_was_killed_between_the_steps(void **state) {
  (void)state;
  for (int at = 1; at <= 2; at++) {
    file_name target = name_in(&where, "odd\nname");
    assert_int_equal(mkdir(target.text, 0700), 0);
    file_write(name_in(&where, "odd\nname/shard_0").text, "old", 3);
    elsewhere.no_exchange = true;
    killed_save(target.text, true, true, at, false);
    assert_int_equal(path_exists(target.text), at == 1);
    tegula__publish p;
    /* it is there again */
    assert_int_equal(tegula__publish_begin(target.text, true, false, &p, NULL), TEGULA_EXISTS);
    expect_text(name_in(&where, "odd\nname/shard_0").text, "old");
    assert_int_equal(folder_count(where.path), 2);
    folder_remove(&where);
    where = folder_make();
  }
}

static void who_has_taken_the_name_meanwhile_keeps_it(void **state) {
  (void)state;
  file_name target = name_in(&where, "x");
  assert_int_equal(mkdir(target.text, 0700), 0);
  file_write(name_in(&where, "x/shard_0").text, "old", 3);
  elsewhere.no_exchange = true;
  killed_save(target.text, true, true, 2, false);
  file_write(target.text, "theirs", 6);
  sweep(where.path);
  expect_text(target.text, "theirs");
  assert_int_equal(folder_count(where.path), 1);
}

static void two_steps_replace_too(void **state) {
  (void)state;
  tegula_error error;
  file_name target = name_in(&where, "x");
  elsewhere.no_exchange = true;
  for (int round = 0; round < 2; round++) {
    tegula__publish p = begin(target.text, true, true);
    fill(&p, round == 0 ? "one" : "two");
    assert_ok(tegula__publish_commit(&p, false, &error));
  }
  expect_text(name_in(&where, "x/shard_0").text, "two");
  assert_int_equal(folder_count(where.path), 2);
}

/* What somebody puts into the old folder between the check and the exchange would be lost with
 * it. */
static void a_folder_that_has_got_something_else_meanwhile_stays(void **state) {
  (void)state;
  tegula_error error;
  for (int exchange = 0; exchange < 2; exchange++) {
    file_name target = name_in(&where, "x");
    elsewhere.no_exchange = !exchange;
    assert_int_equal(mkdir(target.text, 0700), 0);
    tegula__publish p = begin(target.text, true, true);
    fill(&p, "new");
    file_write(name_in(&where, "x/notes.txt").text, "mine", 4);
    assert_refused(tegula__publish_commit(&p, false, &error), TEGULA_EXISTS);
    expect_text(name_in(&where, "x/notes.txt").text, "mine");
    assert_int_equal(folder_count(where.path), 2);
    folder_remove(&where);
    where = folder_make();
  }
}

/* ---- many at once ---- */

enum { SAVERS = 4, ROUNDS = 150 };

static void *save_often(void *state) {
  int number = *(int *)state;
  for (int round = 0; round < ROUNDS; round++) {
    tegula__publish p;
    bool in_folder = round % 2;
    char target[600];
    snprintf(target, sizeof target, "%s/x%d_%d", where.path, number, round);
    if (tegula__publish_begin(target, in_folder, false, &p, NULL) != TEGULA_OK)
      return "a save could not begin";
    char name[1200];
    snprintf(name, sizeof name, in_folder ? "%s/shard_0" : "%s", p.temporary);
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0) return "its workplace is gone";
    close(fd);
    if (tegula__publish_commit(&p, false, NULL) != TEGULA_OK) return "it could not be published";
  }
  return NULL;
}

/* Each begin sweeps what it finds of the others, just made and not yet locked. Processes too, as
 * they do not share descriptors. */
static void savers_that_sweep_at_once_do_not_hurt_each_other(void **state) {
  (void)state;
  int numbers[SAVERS];
  pthread_t threads[SAVERS];
  pid_t child = fork();
  assert_true(child >= 0);
  int first = child == 0 ? SAVERS : 0;
  char *bad = NULL;
  for (int i = 0; i < SAVERS; i++) {
    numbers[i] = first + i;
    if (pthread_create(&threads[i], NULL, save_often, &numbers[i]) != 0) abort();
  }
  for (int i = 0; i < SAVERS; i++) {
    void *answer;
    pthread_join(threads[i], &answer);
    if (answer != NULL) bad = answer;
  }
  if (child == 0) _exit(bad != NULL);
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (bad != NULL) fail_msg("%s", bad);
  assert_int_equal(status, 0);
  assert_int_equal(folder_count(where.path), 2 * SAVERS * ROUNDS * 3 / 2);
}

/* ---- space ---- */

static void what_does_not_fit_is_refused_with_numbers(void **state) {
  (void)state;
  tegula_error error;
  file_name target = name_in(&where, "x");
  elsewhere.free = 8192;
  tegula__publish p = begin(target.text, false, false);
  assert_ok(tegula__publish_space(&p, 8192, 0, &error));
  assert_refused(tegula__publish_space(&p, 8193, 0, &error), TEGULA_IO);
  assert_int_equal(error.os_errno, ENOSPC);
  assert_contains(error.message, "8193 bytes needed");
  assert_contains(error.message, "8192 free");
  assert_contains(error.message, target.text);
  assert_string_equal(error.path, target.text);
  assert_ok(tegula__publish_space(&p, 4096, 4096, &error));
  assert_refused(tegula__publish_space(&p, 4096, 4097, &error), TEGULA_IO);
  assert_contains(error.message, "8193 bytes needed: 4096 for what is added, 4097 for a copy");
  assert_refused(tegula__publish_space(&p, INT64_MAX, 1, &error), TEGULA_IO);
  tegula__publish_abandon(&p);
  assert_int_equal(folder_count(where.path), 0);
}

/* ---- a file and its folder ---- */

/* Saves "<text>" with a companion that holds one file; gives the companion's name. */
static file_name save_pair(const char *text) {
  tegula_error error;
  char inside[1200];
  tegula__publish p = begin(name_in(&where, "x").text, false, true);
  fill(&p, text);
  assert_ok(tegula__publish_companion(&p, "tiles", &error));
  file_name made = name_in(&where, "%s", p.companion_name);
  snprintf(inside, sizeof inside, "%s/tile", p.companion);
  file_write(inside, text, strlen(text));
  assert_false(path_exists(made.text));
  assert_ok(tegula__publish_commit(&p, true, &error));
  expect_text(name_in(&where, "x").text, text);
  snprintf(inside, sizeof inside, "%s/tile", made.text);
  expect_text(inside, text);
  return made;
}

enum { IN_COMPANION = 4 }; /* the folder, a record, a link to the file, a tile */

static void a_companion_goes_two_generations_late(void **state) {
  (void)state;
  file_name first = save_pair("one"), second = save_pair("two"), third = save_pair("three");
  /* for those who have an old file open */
  assert_true(path_exists(first.text) && path_exists(second.text));
  file_name fourth = save_pair("four");
  assert_false(path_exists(first.text));
  assert_true(path_exists(second.text));
  file_name fifth = save_pair("five");
  assert_false(path_exists(second.text));
  assert_true(path_exists(third.text) && path_exists(fourth.text) && path_exists(fifth.text));
  assert_int_equal(folder_count(where.path), 1 + 3 * IN_COMPANION);
}

/* HDF5 locks what it reads: the companion stays as long as that lasts, and goes with the next
 * save. */
static void the_companion_of_a_file_that_is_locked_stays(void **state) {
  (void)state;
  file_name first = save_pair("one");
  int reader = open(name_in(&where, "x").text, O_RDONLY | O_CLOEXEC);
  assert_true(reader >= 0 && flock(reader, LOCK_SH) == 0);
  for (int i = 0; i < 5; i++) save_pair("more");
  assert_true(path_exists(first.text));
  assert_int_equal(folder_count(where.path), 1 + 6 * IN_COMPANION);
  close(reader);
  save_pair("last");
  assert_false(path_exists(first.text));
  assert_int_equal(folder_count(where.path), 1 + 3 * IN_COMPANION);
}

static void companions_that_others_may_need_stay(void **state) {
  (void)state;
  file_name first = save_pair("one");
  /* still refers to it */
  assert_int_equal(rename(name_in(&where, "x").text, name_in(&where, "kept").text), 0);
  file_name second = save_pair("two");
  /* so does this */
  assert_int_equal(link(name_in(&where, "x").text, name_in(&where, "linked").text), 0);
  file_name third = save_pair("three");
  for (int i = 0; i < 3; i++) save_pair("more");
  assert_true(path_exists(first.text) && path_exists(second.text));
  assert_false(path_exists(third.text));
  assert_int_equal(folder_count(where.path), 3 + (2 + 3) * IN_COMPANION);
}

static void an_abandoned_companion_goes(void **state) {
  (void)state;
  tegula_error error;
  tegula__publish p = begin(name_in(&where, "x").text, false, false);
  fill(&p, "data");
  assert_ok(tegula__publish_companion(&p, "tiles", &error));
  tegula__publish_abandon(&p);
  assert_int_equal(folder_count(where.path), 0);
  p = begin(name_in(&where, "x").text, false, false);
  fill(&p, "data");
  assert_ok(tegula__publish_companion(&p, "tiles", &error));
  /* the folder has got its name when this is found */
  file_write(name_in(&where, "x").text, "theirs", 6);
  assert_refused(tegula__publish_commit(&p, false, &error), TEGULA_EXISTS);
  assert_int_equal(folder_count(where.path), 1);
}

static void a_killed_pair_is_old_or_new(void **state) {
  (void)state;
  file_name first = save_pair("one"), second = save_pair("two");
  for (int at = 1; at <= 2; at++) { /* before the folder, and before the file has its name */
    killed_save(name_in(&where, "x").text, false, true, at, true);
    sweep(where.path);
    expect_text(name_in(&where, "x").text, "two");
    assert_true(path_exists(first.text) && path_exists(second.text));
    assert_int_equal(folder_count(where.path), 1 + 2 * IN_COMPANION);
  }
}

#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_A_FOLDER(what_a_killed_save_left_goes_with_the_next_save),
      IN_A_FOLDER(folders_that_a_killed_save_made_are_taken_back),
      IN_A_FOLDER(a_save_that_goes_on_is_left_alone),
      IN_A_FOLDER(a_child_of_fork_makes_the_lock_last_longer_and_no_more),
      IN_A_FOLDER(of_another_machine_it_is_left_for_a_week),
      IN_A_FOLDER(an_old_one_with_a_lock_is_left_alone),
      IN_A_FOLDER(without_locks_a_save_works_and_sweeps_nothing),
      IN_A_FOLDER(what_is_nobodys_workplace_is_left_alone),
      IN_A_FOLDER(links_in_it_are_not_followed),
      IN_A_FOLDER(a_save_into_a_workplace_sweeps_around_it),
      IN_A_FOLDER(the_old_folder_comes_back_when_a_save_was_killed_between_the_steps),
      IN_A_FOLDER(who_has_taken_the_name_meanwhile_keeps_it),
      IN_A_FOLDER(two_steps_replace_too),
      IN_A_FOLDER(a_folder_that_has_got_something_else_meanwhile_stays),
      IN_A_FOLDER(savers_that_sweep_at_once_do_not_hurt_each_other),
      IN_A_FOLDER(what_does_not_fit_is_refused_with_numbers),
      IN_A_FOLDER(a_companion_goes_two_generations_late),
      IN_A_FOLDER(the_companion_of_a_file_that_is_locked_stays),
      IN_A_FOLDER(companions_that_others_may_need_stay),
      IN_A_FOLDER(an_abandoned_companion_goes),
      IN_A_FOLDER(a_killed_pair_is_old_or_new),
  };
  return cmocka_run_group_tests_name("publish: sweep", tests, NULL, NULL);
}
