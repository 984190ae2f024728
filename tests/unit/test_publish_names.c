/* Publishing: under the final name there is the old, then at once the whole new; what is given up
 * leaves no trace.
 *
 * SPDX-License-Identifier: Apache-2.0 */
/* link-options: -Wl,--wrap=fsync */
#include "support.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>

#include "publish/publish.h"

static folder where;

/* ---- what is brought to the disk: the folders that were synced, by inode ---- */

int __wrap_fsync(int fd);

enum { MOST_SYNCS = 16 };
static ino_t synced[MOST_SYNCS];
static int sync_count;

int __wrap_fsync(int fd) {
  struct stat info;
  if (fstat(fd, &info) == 0 && sync_count < MOST_SYNCS) synced[sync_count++] = info.st_ino;
  return 0;
}

static bool was_synced(const char *path) {
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  for (int i = 0; i < sync_count; i++)
    if (synced[i] == info.st_ino) return true;
  return false;
}

static int setup(void **state) {
  (void)state;
  where = folder_make();
  sync_count = 0;
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

/* Writes the data of a file, or two files of a folder. */
static void fill(const tegula__publish *publish, const char *text) {
  char name[2048];
  if (!publish->folder) {
    file_write(publish->temporary, text, strlen(text));
    return;
  }
  for (int i = 0; i < 2; i++) {
    snprintf(name, sizeof name, "%s/shard_%d", publish->temporary, i);
    file_write(name, text, strlen(text));
  }
}

static void expect_text(const char *path, const char *text) {
  size_t size;
  unsigned char *data = file_read(path, &size);
  assert_int_equal(size, strlen(text));
  assert_memory_equal(data, text, size);
  free(data);
}

static void nothing_is_seen_before_the_commit(void **state) {
  (void)state;
  tegula_error error;
  for (int in_folder = 0; in_folder < 2; in_folder++)
    for (int durable = 0; durable < 2; durable++) {
      file_name target = name_in(&where, "new%d%d", in_folder, durable);
      tegula__publish p = begin(target.text, in_folder, false);
      fill(&p, "data");
      assert_false(path_exists(target.text));
      const char *name = strrchr(p.workplace, '/') + 1;
      assert_memory_equal(p.temporary, p.workplace, strlen(p.workplace));
      assert_memory_equal(p.workplace, where.path, strlen(where.path)); /* beside the target */
      assert_memory_equal(name, ".tegula-", 8);                         /* discovery skips it */
      assert_ok(tegula__publish_commit(&p, durable, &error));
      expect_text(in_folder ? name_in(&where, "new1%d/shard_1", durable).text : target.text,
                  "data");
      assert_null(p.temporary); /* ended */
    }
  assert_int_equal(folder_count(where.path), 2 + 2 * 3);
}

static void what_is_abandoned_leaves_no_trace(void **state) {
  (void)state;
  for (int in_folder = 0; in_folder < 2; in_folder++)
    for (int filled = 0; filled < 2; filled++) {
      tegula__publish p = begin(name_in(&where, "a/b/c/x").text, in_folder, false);
      assert_true(path_exists(name_in(&where, "a/b/c").text));
      if (filled) fill(&p, "data");
      tegula__publish_abandon(&p);
      assert_int_equal(folder_count(where.path), 0); /* the folders that were made went too */
    }
}

static void folders_of_others_stay(void **state) {
  (void)state;
  assert_int_equal(mkdir(name_in(&where, "a").text, 0700), 0);
  tegula__publish p = begin(name_in(&where, "a/b/x").text, false, false);
  fill(&p, "data");
  /* somebody else uses the new folder already */
  file_write(name_in(&where, "a/b/other").text, "1", 1);
  tegula__publish_abandon(&p);
  assert_int_equal(folder_count(where.path), 3);
  assert_int_equal(unlink(name_in(&where, "a/b/other").text), 0);
  p = begin(name_in(&where, "a/x").text, false, false);
  tegula__publish_abandon(&p);
  assert_true(path_exists(name_in(&where, "a").text)); /* was there before */
}

static void a_folder_that_cannot_be_made_leaves_no_trace(void **state) {
  (void)state;
  tegula_error error;
  tegula__publish p;
  char name[300];
  memset(name, 'n', sizeof name);
  name[299] = '\0'; /* longer than any file system takes */
  assert_int_not_equal(
      tegula__publish_begin(name_in(&where, "new/%s/x", name).text, false, false, &p, &error),
      TEGULA_OK);
  assert_int_equal(error.os_errno, ENAMETOOLONG);
  assert_int_equal(folder_count(where.path), 0);
}

static void oddly_written_parents_are_taken_back_too(void **state) {
  (void)state;
  static const char *const names[] = {"a//x", "a/b//c/x", "a/./b/x", "./a/./x"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    tegula__publish p = begin(name_in(&where, "%s", names[i]).text, false, false);
    tegula__publish_abandon(&p);
    if (folder_count(where.path) != 0) fail_msg("\"%s\" left a folder behind", names[i]);
  }
}

static void what_exists_is_kept(void **state) {
  (void)state;
  tegula_error error;
  tegula__publish p;
  file_name file = name_in(&where, "x"), directory = name_in(&where, "d");
  file_write(file.text, "old", 3);
  assert_int_equal(mkdir(directory.text, 0700), 0);
  for (int in_folder = 0; in_folder < 2; in_folder++) {
    assert_refused(tegula__publish_begin(file.text, in_folder, false, &p, &error), TEGULA_EXISTS);
    assert_string_equal(error.path, file.text);
    assert_true(error.hint[0] != '\0');
    assert_refused(tegula__publish_begin(directory.text, in_folder, false, &p, &error),
                   TEGULA_EXISTS);
  }
  assert_int_equal(tegula__publish_begin(file.text, false, false, &p, NULL), TEGULA_EXISTS);
  expect_text(file.text, "old");
  assert_int_equal(folder_count(where.path), 2);
}

static void what_comes_meanwhile_is_kept_too(void **state) {
  (void)state;
  tegula_error error;
  for (int in_folder = 0; in_folder < 2; in_folder++) {
    file_name target = name_in(&where, "x%d", in_folder);
    tegula__publish p = begin(target.text, in_folder, false);
    fill(&p, "mine");
    file_write(target.text, "theirs", 6);
    assert_refused(tegula__publish_commit(&p, false, &error), TEGULA_EXISTS);
    expect_text(target.text, "theirs");
    assert_int_equal(folder_count(where.path), in_folder + 1);
  }
}

static void overwriting_replaces_files_and_folders_of_files(void **state) {
  (void)state;
  tegula_error error;
  file_name target = name_in(&where, "x");
  file_write(target.text, "old", 3);
  tegula__publish p = begin(target.text, false, true); /* file by file */
  fill(&p, "new");
  expect_text(target.text, "old"); /* until the commit */
  assert_ok(tegula__publish_commit(&p, false, &error));
  expect_text(target.text, "new");
  p = begin(target.text, true, true); /* file by folder */
  fill(&p, "one");
  assert_ok(tegula__publish_commit(&p, true, &error));
  expect_text(name_in(&where, "x/shard_0").text, "one");
  file_write(name_in(&where, "x/shard_7").text, "left", 4);
  p = begin(target.text, true, true); /* folder by folder: nothing of the old one stays */
  fill(&p, "two");
  expect_text(name_in(&where, "x/shard_0").text, "one");
  assert_ok(tegula__publish_commit(&p, false, &error));
  expect_text(name_in(&where, "x/shard_0").text, "two");
  assert_false(path_exists(name_in(&where, "x/shard_7").text));
  assert_int_equal(folder_count(where.path), 3);
}

/* Between begin and commit of an overwriting save the target comes, or goes: it is still what the
 * caller wants to have there. */
static void overwriting_does_not_mind_what_happens_meanwhile(void **state) {
  (void)state;
  tegula_error error;
  for (int in_folder = 0; in_folder < 2; in_folder++)
    for (int comes = 0; comes < 2; comes++) {
      file_name target = name_in(&where, "x%d%d", in_folder, comes);
      if (!comes) file_write(target.text, "old", 3);
      tegula__publish p = begin(target.text, in_folder, true);
      fill(&p, "mine");
      if (comes)
        file_write(target.text, "theirs", 6);
      else
        assert_int_equal(unlink(target.text), 0);
      assert_ok(tegula__publish_commit(&p, false, &error));
      expect_text(in_folder ? name_in(&where, "x1%d/shard_0", comes).text : target.text, "mine");
    }
  assert_int_equal(folder_count(where.path), 2 + 2 * 3);
}

static void durable_names_are_on_the_disk(void **state) {
  (void)state;
  tegula_error error;
  for (int durable = 0; durable < 2; durable++) {
    tegula__publish p = begin(name_in(&where, "a%d/b/x", durable).text, true, false);
    fill(&p, "data");
    sync_count = 0;
    assert_ok(tegula__publish_commit(&p, durable, &error));
    /* the names of the files in it */
    assert_int_equal(was_synced(name_in(&where, "a%d/b/x", durable).text), durable);
    /* its own name */
    assert_int_equal(was_synced(name_in(&where, "a%d/b", durable).text), durable);
    /* and those of the folders made for it */
    assert_int_equal(was_synced(name_in(&where, "a%d", durable).text), durable);
    assert_int_equal(was_synced(where.path), durable);
  }
}

static void abandoning_an_overwrite_keeps_the_old(void **state) {
  (void)state;
  file_name target = name_in(&where, "x");
  file_write(target.text, "old", 3);
  tegula__publish p = begin(target.text, false, true);
  fill(&p, "new");
  tegula__publish_abandon(&p);
  expect_text(target.text, "old");
  assert_int_equal(folder_count(where.path), 1);
}

static void folders_with_more_than_files_are_never_replaced(void **state) {
  (void)state;
  tegula_error error;
  tegula__publish p;
  file_name target = name_in(&where, "d");
  assert_int_equal(mkdir(target.text, 0700), 0);
  /* a folder by a file: never */
  assert_refused(tegula__publish_begin(target.text, false, true, &p, &error), TEGULA_EXISTS);
  assert_int_equal(mkdir(name_in(&where, "d/sub").text, 0700), 0);
  assert_refused(tegula__publish_begin(target.text, true, true, &p, &error), TEGULA_EXISTS);
  assert_contains(error.message, "\"sub\"");
  assert_int_equal(rmdir(name_in(&where, "d/sub").text), 0);
  assert_int_equal(symlink("/", name_in(&where, "d/link").text), 0);
  assert_refused(tegula__publish_begin(target.text, true, true, &p, &error), TEGULA_EXISTS);
  assert_contains(error.message, "\"link\"");
  assert_int_equal(mkfifo(name_in(&where, "pipe").text, 0600), 0);
  assert_refused(tegula__publish_begin(name_in(&where, "pipe").text, false, true, &p, &error),
                 TEGULA_EXISTS);
  assert_int_equal(folder_count(where.path), 3);
}

static void a_link_stays_a_link(void **state) {
  (void)state;
  tegula_error error;
  file_name link = name_in(&where, "link"), real = name_in(&where, "deep/real");
  struct stat info;
  assert_int_equal(mkdir(name_in(&where, "deep").text, 0700), 0);
  file_write(real.text, "old", 3);
  assert_int_equal(symlink("deep/real", link.text), 0);
  tegula__publish p;
  assert_refused(tegula__publish_begin(link.text, false, false, &p, &error), TEGULA_EXISTS);
  p = begin(link.text, false, true);
  fill(&p, "new");
  assert_ok(tegula__publish_commit(&p, false, &error));
  assert_int_equal(lstat(link.text, &info), 0);
  assert_true(S_ISLNK(info.st_mode));
  expect_text(real.text, "new");
  assert_int_equal(symlink("nowhere", name_in(&where, "dangling").text), 0);
  assert_refused(tegula__publish_begin(name_in(&where, "dangling").text, false, true, &p, &error),
                 TEGULA_NOT_FOUND);
  assert_int_equal(folder_count(where.path), 4);
}

static void a_name_of_full_length_can_be_saved(void **state) {
  (void)state;
  tegula_error error;
  char name[257];
  memset(name, 'n', 256);
  name[255] = '\0';
  for (int in_folder = 0; in_folder < 2; in_folder++) {
    name[0] = in_folder ? 'a' : 'b';
    tegula__publish p = begin(name_in(&where, "%s", name).text, in_folder, false);
    fill(&p, "data");
    assert_ok(tegula__publish_commit(&p, false, &error));
    assert_true(path_exists(name_in(&where, "%s", name).text));
  }
  name[255] = 'n', name[256] = '\0';
  tegula__publish p;
  assert_int_not_equal(
      tegula__publish_begin(name_in(&where, "%s", name).text, false, false, &p, &error), TEGULA_OK);
}

static void names_without_a_file_are_refused(void **state) {
  (void)state;
  tegula_error error;
  tegula__publish p;
  assert_refused(tegula__publish_begin("", false, false, &p, &error), TEGULA_INVALID_ARGUMENT);
  assert_refused(tegula__publish_begin(name_in(&where, "x/").text, false, false, &p, &error),
                 TEGULA_INVALID_ARGUMENT);
  file_write(name_in(&where, "f").text, "1", 1);
  assert_int_not_equal(tegula__publish_begin(name_in(&where, "f/x").text, false, false, &p, &error),
                       TEGULA_OK);                      /* a file on the way */
  p = begin(name_in(&where, "d///").text, true, false); /* a folder may be written with slashes */
  assert_ok(tegula__publish_commit(&p, false, &error));
  assert_true(path_exists(name_in(&where, "d").text));
}

static void a_bare_name_is_saved_in_the_working_folder(void **state) {
  (void)state;
  tegula_error error;
  char before[1024];
  assert_non_null(getcwd(before, sizeof before));
  assert_int_equal(chdir(where.path), 0);
  tegula__publish p = begin("bare", false, false);
  fill(&p, "data");
  assert_ok(tegula__publish_commit(&p, true, &error));
  assert_int_equal(chdir(before), 0);
  expect_text(name_in(&where, "bare").text, "data");
}

/* ---- without the right to write ---- */

/* The status of beginning a save of folder/x as a user that is not root. */
static int begin_as_nobody(const char *target, bool in_folder) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    tegula__publish p;
    tegula_error error;
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(255);
    int status = tegula__publish_begin(target, in_folder, false, &p, &error);
    if (status != TEGULA_OK && (strstr(error.message, where.path) == NULL || error.os_errno == 0))
      status = 254;
    _exit(status);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static void a_folder_without_write_permission_is_told(void **state) {
  (void)state;
  assert_int_equal(mkdir(name_in(&where, "closed").text, 0755), 0);
  assert_int_equal(chmod(name_in(&where, "closed").text, 0555), 0);
  assert_int_equal(chmod(where.path, 0755), 0);
  int status = begin_as_nobody(name_in(&where, "closed/x").text, true);
  if (status == 255) {
    print_message("skipped: cannot become another user\n");
    skip();
  }
  assert_int_equal(status, TEGULA_PERMISSION);
  assert_int_equal(begin_as_nobody(name_in(&where, "closed/new/x").text, false), TEGULA_PERMISSION);
  assert_int_equal(folder_count(where.path), 1);
}

/* ---- several at once ---- */

enum { SAVERS = 4 };

typedef struct saver {
  const char *target;
  int number;
  bool in_folder;
  tegula_status status;
} saver;

static void *save_once(void *state) {
  saver *s = state;
  tegula__publish p;
  char text[32], name[2048];
  s->status = tegula__publish_begin(s->target, s->in_folder, false, &p, NULL);
  if (s->status != TEGULA_OK) return NULL;
  snprintf(text, sizeof text, "saver %d", s->number);
  for (int i = 0; i < 2; i++) {
    snprintf(name, sizeof name, s->in_folder ? "%s/%d" : "%s", p.temporary, i);
    FILE *stream = fopen(name, "wb");
    if (stream == NULL) continue; /* the comparison below finds what is missing */
    fputs(text, stream);
    fclose(stream);
  }
  s->status = tegula__publish_commit(&p, false, NULL);
  return NULL;
}

static void of_several_savers_one_wins_whole(void **state) {
  (void)state;
  for (int round = 0; round < 20; round++) {
    bool in_folder = round % 2;
    file_name target = name_in(&where, "x");
    saver savers[SAVERS];
    pthread_t threads[SAVERS];
    int winner = -1, winners = 0;
    for (int i = 0; i < SAVERS; i++) {
      savers[i] = (saver){.target = target.text, .number = i, .in_folder = in_folder};
      assert_int_equal(pthread_create(&threads[i], NULL, save_once, &savers[i]), 0);
    }
    for (int i = 0; i < SAVERS; i++) {
      assert_int_equal(pthread_join(threads[i], NULL), 0);
      assert_true(savers[i].status == TEGULA_OK || savers[i].status == TEGULA_EXISTS);
      if (savers[i].status != TEGULA_OK) continue;
      winner = i;
      winners++;
    }
    assert_int_equal(winners, 1);
    char text[32];
    snprintf(text, sizeof text, "saver %d", winner);
    assert_int_equal(folder_count(where.path), in_folder ? 3 : 1); /* no temporary names are left */
    for (int i = 0; i < 1 + in_folder; i++)
      expect_text(in_folder ? name_in(&where, "x/%d", i).text : target.text, text);
    folder_remove(&where);
    where = folder_make();
  }
}

#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_A_FOLDER(nothing_is_seen_before_the_commit),
      IN_A_FOLDER(what_is_abandoned_leaves_no_trace),
      IN_A_FOLDER(folders_of_others_stay),
      IN_A_FOLDER(a_folder_that_cannot_be_made_leaves_no_trace),
      IN_A_FOLDER(oddly_written_parents_are_taken_back_too),
      IN_A_FOLDER(what_exists_is_kept),
      IN_A_FOLDER(what_comes_meanwhile_is_kept_too),
      IN_A_FOLDER(overwriting_replaces_files_and_folders_of_files),
      IN_A_FOLDER(overwriting_does_not_mind_what_happens_meanwhile),
      IN_A_FOLDER(durable_names_are_on_the_disk),
      IN_A_FOLDER(abandoning_an_overwrite_keeps_the_old),
      IN_A_FOLDER(folders_with_more_than_files_are_never_replaced),
      IN_A_FOLDER(a_link_stays_a_link),
      IN_A_FOLDER(a_name_of_full_length_can_be_saved),
      IN_A_FOLDER(names_without_a_file_are_refused),
      IN_A_FOLDER(a_bare_name_is_saved_in_the_working_folder),
      IN_A_FOLDER(a_folder_without_write_permission_is_told),
      IN_A_FOLDER(of_several_savers_one_wins_whole),
  };
  return cmocka_run_group_tests_name("publish: names", tests, NULL, NULL);
}
