/* `tegula clean`: removes what `tegula write` made, and nothing else.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The list in the folder is not trusted: a name must be a plain name in that very folder, of a regular file (not a link) whose
 * size is the listed one. One name that is not plain makes the whole list void: nothing is removed then. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.h"
#include "report.h"

typedef struct clean_work {
  cli_job *job;
  const char *dir;
  int dir_fd;
  int64_t removed;
  json_t *left;    /* {name, reason}; may be NULL */
  size_t left_count;
  char first_left[512];
} clean_work;

static int is_plain_name(const json_t *value) {
  const char *name = json_string_value(value);
  return name != NULL && strlen(name) == json_string_length(value) && name[0] != '\0' && strchr(name, '/') == NULL &&
         strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strcmp(name, SIDE_FILE) != 0;
}

static tegula_status check_list(clean_work *work, const json_t *files) {
  size_t index;
  json_t *file;
  if (!json_is_array(files)) {
    return report_fail(&work->job->error, TEGULA_CORRUPT, "remove the folder by hand", "%s in %s has no list of files", SIDE_FILE,
                       work->dir);
  }
  json_array_foreach(files, index, file) {
    if (!is_plain_name(json_object_get(file, "name")) || !json_is_integer(json_object_get(file, "size"))) {
      const char *name = json_string_value(json_object_get(file, "name"));
      return report_fail(&work->job->error, TEGULA_CORRUPT, "nothing was removed; remove the folder by hand",
                         "entry %zu of %s in %s is not the name and size of a file in that folder, found \"%s\"", index,
                         SIDE_FILE, work->dir, name != NULL ? name : "");
    }
  }
  return TEGULA_OK;
}

static void note_left(clean_work *work, const char *name, const char *reason) {
  if (work->left_count++ == 0) {
    snprintf(work->first_left, sizeof work->first_left, "%s (%s)", name, reason);
  }
  if (work->left != NULL) { /* where there is no memory for it, the list is shorter than left_count, which is told */
    json_array_append_new(work->left, json_pack("{s:o, s:s}", "name", report_text(name), "reason", reason));
  }
}

/* One listed file. One that is gone already is no reason to complain. */
static void clean_file(clean_work *work, const char *name, json_int_t size) {
  struct stat info;
  if (fstatat(work->dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno != ENOENT) {
      note_left(work, name, strerror(errno));
    }
  } else if (!S_ISREG(info.st_mode)) {
    note_left(work, name, "no regular file");
  } else if (info.st_size != size) {
    note_left(work, name, "its size changed");
  } else if (unlinkat(work->dir_fd, name, 0) != 0) {
    note_left(work, name, strerror(errno));
  } else {
    work->removed++;
  }
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
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && !is_listed(files, entry->d_name)) {
      note_left(work, entry->d_name, "not made by tegula write");
    }
  }
  closedir(stream);
}

static tegula_status clean_listed(clean_work *work, const json_t *files) {
  size_t index;
  json_t *file;
  json_array_foreach(files, index, file) {
    tegula_status status = job_check(work->job);
    if (status != TEGULA_OK) {
      return status;
    }
    clean_file(work, json_string_value(json_object_get(file, "name")), json_integer_value(json_object_get(file, "size")));
  }
  if (unlinkat(work->dir_fd, SIDE_FILE, 0) != 0) {
    note_left(work, SIDE_FILE, strerror(errno));
  }
  if (rmdir(work->dir) == 0) {
    return TEGULA_OK;
  }
  int reason = errno;
  note_strangers(work, files);
  if (work->left_count == 0) {
    return report_fail_os(&work->job->error, work->dir, reason, NULL, "could not remove folder %s", work->dir);
  }
  tegula_status status = report_fail(&work->job->error, TEGULA_EXISTS, "look at them and remove them by hand",
                                     "left %zu file%s in %s, the first is %s", work->left_count, work->left_count == 1 ? "" : "s",
                                     work->dir, work->first_left);
  snprintf(work->job->error.path, sizeof work->job->error.path, "%s", work->dir);
  return status;
}

tegula_status clean_folder(cli_job *job, const char *dir, int64_t *removed, json_t *left) {
  clean_work work = {.job = job, .dir = dir, .left = left};
  *removed = 0;
  work.dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (work.dir_fd < 0) {
    return report_fail_os(&job->error, dir, errno, NULL, "could not open folder %s", dir);
  }
  json_t *content = NULL;
  tegula_status status = side_file_read(work.dir_fd, dir, &content, &job->error);
  const json_t *files = json_object_get(content, "files");
  if (status == TEGULA_OK) {
    status = check_list(&work, files);
  }
  if (status == TEGULA_OK) {
    status = clean_listed(&work, files);
  }
  json_decref(content);
  close(work.dir_fd);
  *removed = work.removed;
  return status;
}

static void print_left(const json_t *left) {
  size_t index;
  json_t *entry;
  json_array_foreach(left, index, entry) {
    char *name = json_dumps(json_object_get(entry, "name"), JSON_ENCODE_ANY);
    printf("left    %s: %s\n", name != NULL ? name : "?", json_string_value(json_object_get(entry, "reason")));
    free(name);
  }
}

/* The report is made before anything is removed: what was done must not stay unsaid for lack of memory. */
static tegula_status run_clean(cli_job *job) {
  const char *dir = job->settings.paths[0];
  int64_t removed = 0;
  json_t *left = json_array(), *count = json_integer(0);
  json_t *report = json_pack("{s:o, s:O, s:O}", "dir", report_text(dir), "removed", count, "left", left);
  tegula_status status = report != NULL ? clean_folder(job, dir, &removed, left) : report_no_memory(&job->error);
  json_integer_set(count, removed);
  if (job->settings.json) {
    job->report = json_incref(report);
  } else if (report != NULL) {
    print_left(left);
    if (status == TEGULA_OK && !job->settings.quiet) {
      printf("removed %" PRId64 " files and the folder %s\n", removed, dir);
    }
  }
  json_decref(report);
  json_decref(count);
  json_decref(left);
  return status;
}

const cli_command clean_command = {
  .name = "clean",
  .summary = "remove what tegula write made",
  .paths = "DIR",
  .description = "Removes the files that `tegula write` listed in DIR/" SIDE_FILE " and that still have their size, then the\n"
                 "list, then DIR if it is empty. Anything else stays; what stays is named, and the exit status is then 1.\n\n"
                 "With --json: dir, removed, left [{name, reason}].\n",
  .examples = "  tegula clean shards\n",
  .min_paths = 1,
  .max_paths = 1,
  .groups = {&options_common, NULL},
  .run = run_clean,
};
