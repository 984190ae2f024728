/* `tegula clean`: removes what `tegula write` made, and nothing else.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The list in the folder is not trusted: a name must be one that `write` makes (shard_0000.npy), of
 * a regular file (not a link) in that very folder whose size is the listed one. Any other name
 * makes the whole list void: nothing is removed then. While listed files stay, the list stays too,
 * with just these: clean can be repeated. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli_report.h"
#include "commands.h"

typedef struct clean_work {
  cli_job *job;
  const char *dir;
  int dir_fd;
  json_t *left; /* {name, reason}; may be NULL */
  size_t removed_count, left_count;
  const char *kept; /* why the empty folder is still there, or NULL */
  char first_left[512];
} clean_work;

/* shard_<at least 4 digits>.<suffix>: neither a path nor a file of somebody else. */
static int is_shard_name(const json_t *value, const char *suffix) {
  static const char prefix[] = "shard_";
  const char *name = json_string_value(value);
  if (name == NULL || strlen(name) != json_string_length(value) ||
      strncmp(name, prefix, strlen(prefix)) != 0) {
    return 0;
  }
  const char *digits = name + strlen(prefix);
  size_t count = strspn(digits, "0123456789");
  return count >= 4 && digits[count] == '.' && strcmp(digits + count + 1, suffix) == 0;
}

static tegula_status check_list(clean_work *work, const json_t *content) {
  const json_t *files = json_object_get(content, "files");
  const char *format = json_string_value(json_object_get(content, "format")),
             *suffix = format != NULL ? write_suffix(format) : NULL;
  size_t index;
  json_t *file;
  if (!json_is_array(files) || suffix == NULL) {
    return report_fail(&work->job->error, TEGULA_CORRUPT, "remove the folder by hand",
                       "%s in %s has no list of npy, raw or hdf5 files", SIDE_FILE, work->dir);
  }
  json_array_foreach(files, index, file) {
    if (!is_shard_name(json_object_get(file, "name"), suffix) ||
        !json_is_integer(json_object_get(file, "size"))) {
      const char *name = json_string_value(json_object_get(file, "name"));
      return report_fail(&work->job->error, TEGULA_CORRUPT,
                         "nothing was removed; remove the folder by hand",
                         "entry %zu of %s in %s is not the size and name of a file that tegula "
                         "write makes, found \"%s\"",
                         index, SIDE_FILE, work->dir, name != NULL ? name : "");
    }
  }
  return TEGULA_OK;
}

static void note_left(clean_work *work, const char *name, const char *reason) {
  if (work->left_count++ == 0) {
    snprintf(work->first_left, sizeof work->first_left, "%s (%s)", name, reason);
  }
  if (work->left != NULL) {
    json_array_append_new(work->left,
                          json_pack("{s:o, s:s}", "name", report_text(name), "reason", reason));
  }
}

/* One listed file: 1 when it stays. One that is gone already is no reason to complain. */
static int clean_file(clean_work *work, const char *name, json_int_t size) {
  struct stat info;
  if (fstatat(work->dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) {
      return 0;
    }
    note_left(work, name, strerror(errno));
  } else if (!S_ISREG(info.st_mode)) {
    note_left(work, name, "no regular file");
  } else if (info.st_size != size) {
    note_left(work, name, "its size changed");
  } else if (unlinkat(work->dir_fd, name, 0) != 0) {
    note_left(work, name, strerror(errno));
  } else {
    work->removed_count++;
    return 0;
  }
  return 1;
}

static int is_listed(const json_t *files, const char *name) {
  size_t index;
  json_t *file;
  json_array_foreach(files, index, file) {
    if (strcmp(json_string_value(json_object_get(file, "name")), name) == 0) {
      return 1;
    }
  }
  return 0;
}

/* What is still in the folder and was not on the list. */
static void note_strangers(clean_work *work, const json_t *files) {
  int fd = dup(work->dir_fd);
  DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
  if (stream == NULL) {
    note_left(work, work->dir, "could not be looked through");
    if (fd >= 0) {
      close(fd);
    }
    return;
  }
  for (struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
        strcmp(entry->d_name, SIDE_FILE) != 0 && !is_listed(files, entry->d_name)) {
      note_left(work, entry->d_name, "not made by tegula write");
    }
  }
  closedir(stream);
}

/* The listed files, one after the other; those that stay are appended to `staying`. */
static tegula_status clean_files(clean_work *work, const json_t *files, json_t *staying) {
  size_t index;
  json_t *file;
  json_array_foreach(files, index, file) {
    tegula_status status = job_check(work->job);
    if (status != TEGULA_OK) {
      return status;
    }
    if (clean_file(work, json_string_value(json_object_get(file, "name")),
                   json_integer_value(json_object_get(file, "size")))) {
      json_array_append(staying, file);
    }
  }
  return TEGULA_OK;
}

/* The list goes when no listed file stays. Where it cannot be shortened the old one stays: it still
 * holds what is there. */
static void clean_list(clean_work *work, json_t *content, json_t *staying) {
  if (work->left_count == 0) {
    if (unlinkat(work->dir_fd, SIDE_FILE, 0) != 0) {
      note_left(work, SIDE_FILE, strerror(errno));
    }
  } else if (work->removed_count > 0 && json_object_set(content, "files", staying) == 0) {
    tegula_error ignored;
    (void)side_file_write(work->dir_fd, work->dir, content, &ignored);
  }
}

/* An empty folder that was named in a way in which none can be removed stays, and that is no
 * failure. */
static const char *reason_to_keep(int os_errno) {
  return os_errno == EINVAL    ? "it was named as . or a path that ends so"
         : os_errno == ENOTDIR ? "a link leads to it"
         : os_errno == EBUSY   ? "it is a mount point or in use"
                               : NULL;
}

static tegula_status clean_dir(clean_work *work, const json_t *files) {
  tegula_error *error = &work->job->error;
  int reason = rmdir(work->dir) == 0 ? 0 : errno;
  if (reason == 0) {
    return TEGULA_OK;
  }
  note_strangers(work, files);
  if (work->left_count == 0) {
    work->kept = reason_to_keep(reason);
    return work->kept != NULL ? TEGULA_OK
                              : report_fail_os(error, work->dir, reason, NULL,
                                               "could not remove the empty folder %s", work->dir);
  }
  report_fail(error, TEGULA_EXISTS, "look at them; remove them by hand, or run tegula clean again",
              "left %zu file%s in %s, the first is %s", work->left_count,
              work->left_count == 1 ? "" : "s", work->dir, work->first_left);
  snprintf(error->path, sizeof error->path, "%s", work->dir);
  return TEGULA_EXISTS;
}

static tegula_status clean_listed(clean_work *work, json_t *content) {
  json_t *files = json_incref(json_object_get(content, "files")), *staying = json_array();
  tegula_status status = clean_files(work, files, staying);
  if (status == TEGULA_OK) {
    clean_list(work, content, staying);
    status = clean_dir(work, files);
  }
  json_decref(files);
  json_decref(staying);
  return status;
}

static tegula_status clean_work_run(clean_work *work) {
  tegula_error *error = &work->job->error;
  work->dir_fd = open(work->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (work->dir_fd < 0) {
    return report_fail_os(error, work->dir, errno, NULL, "could not open folder %s", work->dir);
  }
  json_t *content = NULL;
  tegula_status status = side_file_read(work->dir_fd, work->dir, &content, error);
  if (status == TEGULA_NOT_FOUND) {
    snprintf(error->hint, sizeof error->hint, "only folders made by tegula write can be cleaned");
  }
  if (status == TEGULA_OK) {
    status = check_list(work, content);
  }
  if (status == TEGULA_OK) {
    status = clean_listed(work, content);
  }
  json_decref(content);
  close(work->dir_fd);
  return status;
}

tegula_status clean_folder(cli_job *job, const char *dir) {
  clean_work work = {.job = job, .dir = dir};
  return clean_work_run(&work);
}

static void print_left(const json_t *left) {
  size_t index;
  json_t *entry;
  json_array_foreach(left, index, entry) {
    char *name = json_dumps(json_object_get(entry, "name"), JSON_ENCODE_ANY);
    printf("left    %s: %s\n", name != NULL ? name : "?",
           json_string_value(json_object_get(entry, "reason")));
    free(name);
  }
}

static void print_clean(const clean_work *work, tegula_status status) {
  print_left(work->left);
  if (status != TEGULA_OK || work->job->settings.quiet) {
    return;
  }
  if (work->kept == NULL) {
    printf("removed %zu files and the folder %s\n", work->removed_count, work->dir);
  } else {
    printf("removed %zu files; the folder %s stays, empty: %s\n", work->removed_count, work->dir,
           work->kept);
  }
}

/* The report is made before anything is removed: what was done must not stay unsaid for lack of
 * memory. */
static tegula_status run_clean(cli_job *job) {
  clean_work work = {.job = job, .dir = job->settings.paths[0], .left = json_array()};
  json_t *count = json_integer(0);
  json_t *report = json_pack("{s:o, s:O, s:O, s:n}", "dir", report_text(work.dir), "removed", count,
                             "left", work.left, "folder_kept");
  tegula_status status = report != NULL ? clean_work_run(&work) : report_no_memory(&job->error);
  json_integer_set(count, (json_int_t)work.removed_count);
  if (work.kept != NULL &&
      json_object_set_new(report, "folder_kept", json_string(work.kept)) != 0) {
    status = report_no_memory(&job->error);
  }
  if (job->settings.json) {
    job->report = json_incref(report);
  } else if (report != NULL) {
    print_clean(&work, status);
  }
  json_decref(report);
  json_decref(count);
  json_decref(work.left);
  return status;
}

const cli_command clean_command = {
    .name = "clean",
    .summary = "remove what tegula write made",
    .paths = "DIR",
    .description =
        "Removes the files that `tegula write` listed in DIR/" SIDE_FILE
        " and that still have their size, then the\n"
        "list, then DIR if it is empty. Anything else stays; what stays is named, and the exit "
        "status is then 1. While\n"
        "listed files stay, so does the list (of just these): clean can be run again. A list with "
        "any name that\n"
        "`tegula write` does not make is not followed at all. A DIR that was named as . or through "
        "a link, or that\n"
        "is a mount point, stays as an empty folder; that is said, and is no failure.\n\n"
        "With --json: dir, removed, left [{name, reason}], folder_kept (why, or null when DIR is "
        "gone or not empty).\n",
    .examples = "  tegula clean shards\n",
    .min_paths = 1,
    .max_paths = 1,
    .groups = {&options_common, NULL},
    .run = run_clean,
};
