/* Joins what the files of a set hold, and compares it with what was said of them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "discover/discover_priv.h"

static tegula_status check_formats(const tegula__describe_job *job, tegula_error *err) {
  for (int64_t i = 1; i < job->count; i++) {
    if (job->shards[i].format == job->shards[0].format) continue;
    return tegula__hint(err,
                        tegula__fail(err, TEGULA_MISMATCH, job->files[i].path, -1,
                                     "the format of \"%s\" is %s, but that of \"%s\" is %s",
                                     job->files[i].path, job->shards[i].format, job->files[0].path,
                                     job->shards[0].format),
                        "all files of one array need the same format");
  }
  return TEGULA_OK;
}

/* Files that say themselves what they hold are compared with the side file where it speaks of them:
 * when all of a folder is opened. */
static tegula_status check_side(tegula__describe_job *job, tegula_error *err) {
  tegula__side *side = &job->side;
  bool raw = job->shards[0].format == tegula__format_raw.name, own_files = false;
  /* manifests, not shards */
  for (int64_t i = 0; i < job->count; i++) own_files = own_files || job->shards[i].file_count > 0;
  if (own_files || (!raw && !job->whole)) return TEGULA_OK;
  FORWARD(tegula__describe_side_problem(job, err));
  if (side->file == NULL) return TEGULA_OK;
  FORWARD(tegula__side_file_check_names(side->file, job->files, job->count, job->whole, side->total,
                                        err));
  return tegula__side_file_check(side->file, job->shards, job->files, side->places, job->count,
                                 side->whole, err);
}

/* Each path moves from the job's table into its shard, unless the shard speaks of files of its
 * own. */
static tegula_status move_files(tegula__describe_job *job, bool *others, tegula_error *err) {
  for (int64_t i = 0; i < job->count; i++) {
    if (job->shards[i].file_count > 0) {
      *others = true;
      continue;
    }
    tegula__file *file = malloc(sizeof *file);
    if (file == NULL) return tegula__out_of_memory(err, sizeof *file);
    *file = job->files[i];
    file->frame = job->shards[i].frame;
    job->shards[i].files = file;
    job->shards[i].file_count = 1;
    job->files[i].path = NULL;
  }
  return TEGULA_OK;
}

static tegula_status check_rows(const tegula__manifest *manifest, int64_t expected,
                                tegula_error *err) {
  if (expected < 0) return TEGULA_OK;
  const char *path = manifest->files[0].path;
  if (manifest->ndim == 0)
    return tegula__fail(err, TEGULA_MISMATCH, path, -1,
                        "expected %lld rows, but \"%s\" holds a scalar", (long long)expected, path);
  if (manifest->shape[0] == expected) return TEGULA_OK;
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_MISMATCH, path, -1,
                                   "expected %lld rows, found %lld in %lld files from \"%s\" on",
                                   (long long)expected, (long long)manifest->shape[0],
                                   (long long)manifest->file_count, path),
                      "a file is missing at the end, or one was written short");
}

static tegula_status check_files(const tegula__describe_job *job, const tegula__manifest *manifest,
                                 tegula_error *err) {
  int64_t expected = job->options->expect_files,
          found = manifest->file_count + manifest->late_count;
  if (expected < 0 || found == expected) return TEGULA_OK;
  return tegula__hint(
      err,
      tegula__fail(err, TEGULA_MISMATCH, manifest->files[0].path, -1,
                   "expected %lld files, found %lld from \"%s\" on", (long long)expected,
                   (long long)found, manifest->files[0].path),
      "a file is missing at the end, or one is there that does not belong to the set");
}

/* Another table of files than the one that was described: they are opened when they are needed, and
 * must be those that were described, or recorded by a manifest. */
static tegula_status replace_set(tegula__describe_job *job, const tegula__manifest *manifest,
                                 tegula_error *err) {
  tegula__file_set *set = NULL;
  FORWARD(tegula__file_set_create(job->handles, manifest->files, manifest->file_count, false, &set,
                                  err));
  tegula__file_set_stamped(set);
  tegula__file_set_destroy(job->set);
  job->set = set;
  return TEGULA_OK;
}

static tegula_status finish_joined(tegula__describe_job *job, tegula__manifest *joined,
                                   tegula_error *err) {
  FORWARD(check_files(job, joined, err));
  FORWARD(check_rows(joined, job->options->expect_rows, err));
  FORWARD(tegula__manifest_finish(joined, err));
  if (job->others) return replace_set(job, joined, err);
  tegula__file_set_move(job->set, joined->files);
  return TEGULA_OK;
}

tegula_status tegula__describe_join(tegula__describe_job *job, tegula__manifest *out,
                                    tegula_error *err) {
  tegula__manifest joined;
  FORWARD(check_formats(job, err));
  FORWARD(check_side(job, err));
  FORWARD(move_files(job, &job->others, err));
  tegula__manifest_init(&joined);
  FORWARD(tegula__manifest_join(job->shards, job->count, &joined, err));
  tegula_status status = finish_joined(job, &joined, err);
  if (status == TEGULA_OK)
    *out = joined;
  else
    tegula__manifest_free(&joined);
  return status;
}
