/* Folders, patterns and lists on disk: what is found, in which order, described how, and at what
 * cost.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each test works in a fresh temporary folder, which is the working directory while it runs. */
#include <ftw.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "test_format_support.h"

#include "discover/discover.h"

static tegula_error error;
static char folder[64];
static tegula__pool *pool;
static tegula__handles *handles;
static tegula__io_counts counts;

/* ---- the folder ---- */

static int enter_folder(void **state) {
  (void)state;
  strcpy(folder, "/tmp/tegula-test-XXXXXX");
  memset(&counts, 0, sizeof counts);
  if (mkdtemp(folder) == NULL || chdir(folder) != 0) return -1;
  if (tegula__pool_create(3, 3, &pool, &error) != TEGULA_OK) return -1;
  return tegula__handles_create(8, &handles, &error) == TEGULA_OK ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *place) {
  (void)info;
  (void)type;
  (void)place;
  return remove(path);
}

static int leave_folder(void **state) {
  (void)state;
  tegula__handles_destroy(handles);
  tegula__pool_destroy(pool);
  return chdir("/") == 0 ? nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS) : -1;
}

static void write_file(const char *path, const void *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

static void touch(const char *path) { write_file(path, "", 0); }

/* An npy file with this dtype and shape; `cut` bytes are missing at the end. */
static void write_npy(const char *path, const char *dtype, const char *shape, size_t data,
                      size_t cut) {
  char header[256];
  snprintf(header, sizeof header, "{'descr': %s, 'fortran_order': False, 'shape': %s, }\n", dtype,
           shape);
  memory_file file = npy_make(1, header, strlen(header), data);
  write_file(path, file.bytes, (size_t)file.size - cut);
  memory_free(&file);
}

/* ---- listing ---- */

static void expect_paths(const char *path, int64_t count, const char *first, const char *last) {
  tegula__paths paths;
  if (tegula__paths_find(path, NULL, &paths, &error) != TEGULA_OK)
    fail_msg("%s: %s", path, error.message);
  assert_int_equal(paths.count, count);
  assert_string_equal(paths.items[0], first);
  assert_string_equal(paths.items[count - 1], last);
  tegula__paths_free(&paths);
}

static void expect_no_paths(const char *path, tegula_status status, const char *part) {
  tegula__paths paths;
  tegula_status found = tegula__paths_find(path, NULL, &paths, &error);
  if (found != status) fail_msg("%s: %s", path, tegula_status_name(found));
  assert_contains(error.message, part);
}

static void folders_are_listed_in_numeric_order(void **state) {
  (void)state;
  assert_int_equal(mkdir("run", 0700), 0);
  for (int i = 0; i < 12; i++) {
    char name[32];
    snprintf(name, sizeof name, "run/part_%d", i);
    touch(name);
  }
  touch("run/.hidden_1");
  touch("run/_private");
  touch("run/shard_meta.json");
  assert_int_equal(mkdir("run/_cache", 0700), 0);
  assert_int_equal(mkdir("run/.git", 0700), 0);
  expect_paths("run", 12, "run/part_0", "run/part_11");
  expect_paths("run/", 12, "run/part_0", "run/part_11");
  expect_paths("run/part_*", 12, "run/part_0", "run/part_11");
  expect_paths("run/part_?", 10, "run/part_0", "run/part_9");
  expect_paths("run/*_1[01]", 2, "run/part_10", "run/part_11");
  expect_paths("r?n/*", 12, "run/part_0", "run/part_11");
  expect_paths("run/_p*", 1, "run/_private", "run/_private");
  expect_paths("r*/part_3", 1, "run/part_3", "run/part_3");
  expect_paths("run/part_3", 1, "run/part_3", "run/part_3");
  assert_int_equal(chdir("run"), 0);
  expect_paths("part_*", 12, "part_0", "part_11");
  expect_paths(".", 12, "./part_0", "./part_11");
}

static void patterns_over_folders_are_one_sequence(void **state) {
  (void)state;
  for (int i = 8; i < 12; i++) {
    char name[32];
    snprintf(name, sizeof name, "run%d", i);
    assert_int_equal(mkdir(name, 0700), 0);
    strcat(name, "/x.npy");
    touch(name);
  }
  expect_paths("run*/x.npy", 4, "run8/x.npy", "run11/x.npy");
  expect_paths("run*/*.npy", 4, "run8/x.npy", "run11/x.npy");
  assert_int_equal(remove("run10/x.npy"), 0);
  expect_no_paths("run*/x.npy", TEGULA_INCOMPLETE, "\"run10/x.npy\"");
}

/* Two folders with two files each, and what must not count among them. */
static void make_folders(void) {
  assert_int_equal(mkdir("a_2", 0700), 0);
  assert_int_equal(mkdir("a_10", 0700), 0);
  assert_int_equal(mkdir(".a_3", 0700), 0);
  assert_int_equal(mkdir("a_2/in", 0700), 0);
  assert_int_equal(mkdir("a_10/in", 0700), 0);
  touch("a_2/in/x_7");
  touch("a_10/in/x_7");
  touch("a_4");
  touch(".a_3/in_x");
}

static void patterns_go_through_folders_one_by_one(void **state) {
  (void)state;
  make_folders();
  /* no sequence, but the right files: the name of the first that does not fit says so */
  tegula__paths paths;
  assert_int_equal(tegula__paths_find("a_*/in/x_*", NULL, &paths, &error), TEGULA_INCOMPLETE);
  assert_int_equal(rename("a_10", "a_3"), 0);
  const char *patterns[] = {"a_*/in/x_*",   "a_*/*/x_7",        "*/in/x_7",     "?_[2-9]/in/x_*",
                            "a_*//in//x_7", "a_*/in/../in/x_7", "a_*/./in/x_?", "\\a_*/\\i\\n/x_*"};
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
    if (tegula__paths_find(patterns[i], NULL, &paths, &error) != TEGULA_OK)
      fail_msg("%s: %s", patterns[i], error.message);
    assert_int_equal(paths.count, 2);
    assert_non_null(strstr(paths.items[0], "a_2/"));
    assert_non_null(strstr(paths.items[1], "a_3/"));
    assert_non_null(strstr(paths.items[1], "x_7"));
    tegula__paths_free(&paths);
  }
  expect_paths("./a_*/in/x_7", 2, "./a_2/in/x_7", "./a_3/in/x_7");
  expect_paths(".a*/in_x", 1, ".a_3/in_x", ".a_3/in_x");
  expect_no_paths(".*/in/x_7", TEGULA_NOT_FOUND, "nothing matches"); /* neither . nor .. */
  expect_no_paths("a_*/out/*", TEGULA_NOT_FOUND, "nothing matches");
  expect_no_paths("a_*/in/", TEGULA_MISMATCH, "\"a_2/in\" is a folder");
  expect_no_paths("a_*/", TEGULA_MISMATCH, "\"a_2\" is a folder");
  expect_no_paths("a_*/in/x_7/", TEGULA_NOT_FOUND, "nothing matches");
  expect_no_paths("gone/*/in/x_7", TEGULA_NOT_FOUND, "could not list the folder \"gone/\"");
  assert_int_equal(rename("a_3", "_a_3"), 0); /* private names are those of files */
  expect_paths("_a*/in/x_7", 1, "_a_3/in/x_7", "_a_3/in/x_7");
  expect_no_paths("*/in/x_7", TEGULA_MISMATCH, "x_7");
}

static void links_among_the_folders_of_a_pattern_are_followed(void **state) {
  (void)state;
  make_folders();
  assert_int_equal(symlink("a_10", "a_3"), 0);
  expect_paths("a_?/in/x_7", 2, "a_2/in/x_7", "a_3/in/x_7");
  expect_paths("a_?/*/x_7", 2, "a_2/in/x_7", "a_3/in/x_7");
}

/* What hides behind it may be the last shards: nobody would miss them. */
static void what_cannot_be_searched_is_not_passed_over(void **state) {
  (void)state;
  make_folders();
  assert_int_equal(symlink("nowhere", "a_3"), 0);
  expect_no_paths("a_?/in/x_7", TEGULA_NOT_FOUND, "could not examine \"a_3\"");
  assert_int_equal(remove("a_3"), 0);
  assert_int_equal(symlink("a_3", "a_3"), 0); /* a circle */
  expect_no_paths("a_?/in/x_*", TEGULA_IO, "could not examine \"a_3\"");
  assert_int_equal(remove("a_3"), 0);
  assert_int_equal(mkdir("a_3", 0700), 0);
  assert_int_equal(symlink("in", "a_3/in"), 0);
  expect_no_paths("a_?/in/x_*", TEGULA_IO, "could not examine \"a_3/in\"");
  expect_no_paths("a_?/in", TEGULA_IO, "could not examine \"a_3/in\"");
  assert_int_equal(remove("a_3/in"), 0);
  assert_int_equal(symlink("gone/in", "a_3/in"), 0);
  expect_no_paths("a_?/in/x_7", TEGULA_NOT_FOUND, "could not examine \"a_3/in\"");
  if (geteuid() == 0) return; /* may look into everything */
  assert_int_equal(chmod("a_3", 0), 0);
  expect_no_paths("a_?/in/x_7", TEGULA_PERMISSION, "could not examine \"a_3/in\"");
  expect_no_paths("a_?/*/x_7", TEGULA_PERMISSION, "could not list the folder \"a_3\"");
  assert_int_equal(chmod("a_3", 0700), 0);
}

static void names_with_brackets_that_exist_are_taken_as_they_are(void **state) {
  (void)state;
  touch("data[1].npy");
  touch("data1.npy");
  touch("what?");
  expect_paths("data[1].npy", 1, "data[1].npy", "data[1].npy");
  expect_paths("what?", 1, "what?", "what?");
  expect_paths("data[12].npy", 1, "data1.npy", "data1.npy");
  assert_int_equal(mkdir("set[7]", 0700), 0);
  touch("set[7]/a_1");
  expect_paths("set[7]", 1, "set[7]/a_1", "set[7]/a_1");
}

static void what_is_not_there_is_said(void **state) {
  (void)state;
  assert_int_equal(mkdir("empty", 0700), 0);
  touch("file");
  expect_no_paths("missing", TEGULA_NOT_FOUND, "no file or folder \"missing\"");
  expect_no_paths("missing/x.npy", TEGULA_NOT_FOUND, "missing/x.npy");
  expect_no_paths("empty", TEGULA_NOT_FOUND, "no shards in the folder \"empty\"");
  expect_no_paths("empty/*.npy", TEGULA_NOT_FOUND, "nothing matches the pattern \"empty/*.npy\"");
  expect_no_paths("missing/*.npy", TEGULA_NOT_FOUND, "\"missing/\"");
  expect_no_paths("mis*/*.npy", TEGULA_NOT_FOUND, "nothing matches");
  expect_no_paths("file/x", TEGULA_NOT_FOUND, "file/x");
  expect_no_paths("", TEGULA_INVALID_ARGUMENT, "empty");
}

static void what_cannot_be_a_shard_is_refused_by_name(void **state) {
  (void)state;
  assert_int_equal(mkdir("run", 0700), 0);
  touch("run/s_0");
  touch("run/s_2");
  assert_int_equal(mkdir("run/s_1", 0700), 0);
  assert_int_equal(mkdir("run/s_3", 0700), 0);
  expect_no_paths("run", TEGULA_MISMATCH, "\"run/s_1\" is a folder");
  expect_no_paths("run/s_*", TEGULA_MISMATCH, "\"run/s_1\" is a folder");
  expect_no_paths("r*/s_1", TEGULA_MISMATCH, "\"run/s_1\" is a folder");
  assert_int_equal(rmdir("run/s_1"), 0);
  assert_int_equal(rmdir("run/s_3"), 0);
  assert_int_equal(mkfifo("run/s_1", 0600), 0);
  expect_no_paths("run", TEGULA_MISMATCH, "\"run/s_1\" is a named pipe");
  expect_no_paths("run/s_1", TEGULA_UNSUPPORTED, "it is a named pipe");
  assert_int_equal(remove("run/s_1"), 0);
  assert_int_equal(symlink("nowhere", "run/s_1"), 0);
  expect_no_paths("run", TEGULA_NOT_FOUND, "\"run/s_1\"");
  assert_int_equal(remove("run/s_1"), 0);
  assert_int_equal(symlink("/dev/null", "run/s_1"), 0);
  expect_no_paths("run", TEGULA_MISMATCH, "\"run/s_1\" is a device");
  assert_int_equal(remove("run/s_1"), 0);
  assert_int_equal(symlink("s_0", "run/s_1"), 0);
  expect_paths("run", 3, "run/s_0", "run/s_2");
  touch("run/notes.txt");
  expect_no_paths("run", TEGULA_MISMATCH, "\"notes.txt\" is not named like \"s_");
}

static void sockets_are_refused(void **state) {
  (void)state;
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "s_0"};
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0) {
    if (fd >= 0) close(fd);
    print_message("skipped: no local socket can be made here\n");
    skip();
  }
  expect_no_paths(".", TEGULA_MISMATCH, "\"./s_0\" is a socket");
  close(fd);
}

/* ---- describing ---- */

static tegula__discover_options plain(void) {
  return (tegula__discover_options){
      .describe = no_options(), .expect_files = -1, .expect_rows = -1};
}

static tegula_status discover(const char *path, const tegula__discover_options *options,
                              tegula__manifest *out, tegula__file_set **files) {
  const tegula__selection selection = {.paths = &path, .count = 1};
  tegula__discovered found;
  tegula_status status =
      tegula__discover(pool, handles, &selection, options, &found, &counts, &error);
  if (status != TEGULA_OK) return status;
  free(found.first);
  *out = found.manifest;
  *files = found.files;
  return status;
}

static void expect_failure(const char *path, const tegula__discover_options *options,
                           tegula_status status, const char *part) {
  tegula__manifest manifest;
  tegula__file_set *files;
  tegula_status found = discover(path, options, &manifest, &files);
  if (found != status)
    fail_msg("%s: %s %s", path, tegula_status_name(found), found != TEGULA_OK ? error.message : "");
  assert_contains(error.message, part);
}

static void uneven_shards_join(void **state) {
  (void)state;
  write_npy("s_8.npy", "'<f4'", "(2, 3)", 24, 0);
  write_npy("s_9.npy", "'>f4'", "(0, 3)", 0, 0);
  write_npy("s_10.npy", "'<f4'", "(5, 3)", 60, 0);
  tegula__discover_options options = plain();
  options.expect_files = 3;
  options.expect_rows = 7;
  tegula__manifest manifest;
  tegula__file_set *files;
  if (discover("s_*.npy", &options, &manifest, &files) != TEGULA_OK) fail_msg("%s", error.message);
  assert_string_equal(manifest.format, "npy");
  assert_int_equal(manifest.ndim, 2);
  assert_int_equal(manifest.shape[0], 7);
  assert_int_equal(manifest.shape[1], 3);
  assert_int_equal(manifest.file_count, 3);
  assert_int_equal(manifest.part_count, 3);
  assert_string_equal(manifest.files[2].path, "s_10.npy");
  assert_true(manifest.files[2].stamp.size > 60);
  assert_int_equal(manifest.parts[1].order, '>');
  assert_int_equal(manifest.parts[2].lo[0], 2);
  assert_int_equal(manifest.parts[2].hi[0], 7);
  /* The file set speaks of the manifest's table. */
  int fd;
  assert_int_equal(tegula__file_set_acquire(files, 2, &counts, &fd, &error), TEGULA_OK);
  assert_int_equal(tegula__file_set_finish(files, 2, fd, false, &counts, &error), TEGULA_OK);
  tegula__file_set_release(files, 2);
  tegula__file_set_destroy(files);
  tegula__manifest_free(&manifest);
}

static void each_file_costs_one_open_one_stat_one_read(void **state) {
  (void)state;
  for (int i = 0; i < 100; i++) {
    char name[32];
    snprintf(name, sizeof name, "s_%03d.npy", i);
    write_npy(name, "'<f4'", "(2, 3)", 24, 0);
  }
  tegula__discover_options options = plain();
  tegula__manifest manifest;
  tegula__file_set *files;
  assert_int_equal(discover(".", &options, &manifest, &files), TEGULA_OK);
  assert_int_equal(manifest.shape[0], 200);
  assert_int_equal(atomic_load(&counts.opens), 100);
  assert_int_equal(atomic_load(&counts.stats), 100);
  assert_int_equal(atomic_load(&counts.reads), 100);
  tegula__file_set_destroy(files);
  tegula__manifest_free(&manifest);
  options.format = "raw"; /* nothing in a raw file tells what it is: it is not read */
  options.describe.has_dtype = true;
  options.describe.dtype = dtype_of("u1");
  assert_int_equal(discover(".", &options, &manifest, &files), TEGULA_OK);
  assert_int_equal(atomic_load(&counts.opens), 200);
  assert_int_equal(atomic_load(&counts.reads), 100);
  tegula__file_set_destroy(files);
  tegula__manifest_free(&manifest);
}

static void a_scalar_loads_alone_but_is_no_shard(void **state) {
  (void)state;
  tegula__discover_options options = plain();
  tegula__manifest manifest;
  tegula__file_set *files;
  write_npy("s_0.npy", "'<f8'", "()", 8, 0);
  assert_int_equal(discover("s_0.npy", &options, &manifest, &files), TEGULA_OK);
  assert_int_equal(manifest.ndim, 0);
  tegula__file_set_destroy(files);
  tegula__manifest_free(&manifest);
  write_npy("s_1.npy", "'<f8'", "(1,)", 8, 0);
  expect_failure(".", &options, TEGULA_MISMATCH, "s_0.npy");
  options.expect_rows = 1;
  expect_failure("s_0.npy", &options, TEGULA_MISMATCH, "holds a scalar");
}

static void case_10_empty_shards_add_no_rows(void **state) {
  (void)state;
  tegula__discover_options options = plain();
  tegula__manifest manifest;
  tegula__file_set *files;
  for (int i = 0; i < 3; i++) {
    char name[32];
    snprintf(name, sizeof name, "s_%d.npy", i);
    write_npy(name, "'<f4'", "(0, 4)", 0, 0);
  }
  assert_int_equal(discover(".", &options, &manifest, &files), TEGULA_OK);
  assert_int_equal(manifest.shape[0], 0);
  assert_int_equal(manifest.shape[1], 4);
  tegula__file_set_destroy(files);
  tegula__manifest_free(&manifest);
}

/* The reported file is the first in order, whatever thread came first. */
static void case_07_the_first_bad_file_is_named(void **state) {
  (void)state;
  for (int i = 0; i < 40; i++) {
    char name[32];
    snprintf(name, sizeof name, "s_%02d.npy", i);
    write_npy(name, "'<f4'", "(10, 3)", 120, i == 17 ? 60 : i > 20 ? 61 : 0);
  }
  tegula__discover_options options = plain();
  for (int round = 0; round < 20; round++) {
    expect_failure(".", &options, TEGULA_SHORT_FILE, "s_17.npy");
    assert_contains(error.message, "120 of data");
    assert_string_equal(error.path, "./s_17.npy");
  }
}

static void shards_that_do_not_fit_together_are_refused(void **state) {
  (void)state;
  tegula__discover_options options = plain();
  write_npy("s_0.npy", "'<f4'", "(2, 3)", 24, 0);
  write_npy("s_1.npy", "'<f8'", "(2, 3)", 48, 0);
  expect_failure(".", &options, TEGULA_MISMATCH, "s_1.npy");
  write_npy("s_1.npy", "'<f4'", "(2, 4)", 32, 0);
  expect_failure(".", &options, TEGULA_MISMATCH, "s_1.npy");
  write_file("s_1.npy", "no header here, only text", 25);
  expect_failure(".", &options, TEGULA_CORRUPT, "s_1.npy");
}

static void counts_that_were_expected_are_checked(void **state) {
  (void)state;
  tegula__discover_options options = plain();
  write_npy("s_0.npy", "'<f4'", "(2, 3)", 24, 0);
  write_npy("s_1.npy", "'<f4'", "(2, 3)", 24, 0);
  options.expect_files = 3;
  expect_failure(".", &options, TEGULA_MISMATCH, "expected 3 files, found 2");
  options.expect_files = 2;
  options.expect_rows = 5;
  expect_failure(".", &options, TEGULA_MISMATCH, "expected 5 rows, found 4");
}

static void formats_come_from_word_content_or_dtype(void **state) {
  (void)state;
  tegula__discover_options options = plain();
  tegula__manifest manifest;
  tegula__file_set *files;
  write_file("a.bin", "0123456789abcdef", 16);
  write_npy("b.bin", "'<f4'", "(4,)", 16, 0);
  touch("c.npy");
  expect_failure("a.bin", &options, TEGULA_UNSUPPORTED, "not known from its content");
  assert_contains(error.hint, "npy, raw");
  options.format = "zip";
  expect_failure("a.bin", &options, TEGULA_INVALID_ARGUMENT, "unknown format \"zip\"");
  options.format = "npy";
  expect_failure("a.bin", &options, TEGULA_CORRUPT, "not an npy file");
  options.format = NULL;
  options.describe.has_dtype = true;
  options.describe.dtype = dtype_of("<f4");
  assert_int_equal(discover("a.bin", &options, &manifest, &files), TEGULA_OK);
  assert_string_equal(manifest.format, "raw");
  assert_int_equal(manifest.shape[0], 4);
  tegula__file_set_destroy(files);
  tegula__manifest_free(&manifest);
  /* content goes before the dtype */
  assert_int_equal(discover("b.bin", &options, &manifest, &files), TEGULA_OK);
  assert_string_equal(manifest.format, "npy");
  tegula__file_set_destroy(files);
  tegula__manifest_free(&manifest);
  /* a cut npy file is no empty raw file */
  expect_failure("c.npy", &options, TEGULA_SHORT_FILE, "c.npy");
  expect_no_paths("?.bin", TEGULA_MISMATCH, "is not named like");
  assert_int_equal(rename("a.bin", "s_0"), 0);
  assert_int_equal(rename("b.bin", "s_1"), 0);
  expect_failure("s_?", &options, TEGULA_MISMATCH,
                 "the format of \"s_1\" is npy, but that of \"s_0\" is raw");
}

static void files_that_vanish_or_cannot_be_read_are_named(void **state) {
  (void)state;
  tegula__discover_options options = plain();
  const char *const list[] = {"s_0.npy", "s_1.npy"};
  const tegula__selection selection = {.paths = list, .count = 2};
  tegula__discovered found;
  write_npy("s_0.npy", "'<f4'", "(2, 3)", 24, 0);
  assert_int_equal(tegula__discover(pool, handles, &selection, &options, &found, &counts, &error),
                   TEGULA_NOT_FOUND);
  assert_contains(error.message, "s_1.npy");
  if (geteuid() == 0) return; /* root may read everything */
  write_npy("s_1.npy", "'<f4'", "(2, 3)", 24, 0);
  assert_int_equal(chmod("s_1.npy", 0), 0);
  expect_failure(".", &options, TEGULA_PERMISSION, "s_1.npy");
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(folders_are_listed_in_numeric_order),
      IN_FOLDER(patterns_over_folders_are_one_sequence),
      IN_FOLDER(patterns_go_through_folders_one_by_one),
      IN_FOLDER(links_among_the_folders_of_a_pattern_are_followed),
      IN_FOLDER(what_cannot_be_searched_is_not_passed_over),
      IN_FOLDER(names_with_brackets_that_exist_are_taken_as_they_are),
      IN_FOLDER(what_is_not_there_is_said),
      IN_FOLDER(what_cannot_be_a_shard_is_refused_by_name),
      IN_FOLDER(sockets_are_refused),
      IN_FOLDER(uneven_shards_join),
      IN_FOLDER(each_file_costs_one_open_one_stat_one_read),
      IN_FOLDER(a_scalar_loads_alone_but_is_no_shard),
      IN_FOLDER(case_10_empty_shards_add_no_rows),
      IN_FOLDER(case_07_the_first_bad_file_is_named),
      IN_FOLDER(shards_that_do_not_fit_together_are_refused),
      IN_FOLDER(counts_that_were_expected_are_checked),
      IN_FOLDER(formats_come_from_word_content_or_dtype),
      IN_FOLDER(files_that_vanish_or_cannot_be_read_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
