/* Were the files of a description there together?
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "discover/discover_priv.h"

static void check_one(void *state, int32_t worker, int64_t index) {
  (void)worker;
  tegula__describe_job *job = state;
  tegula_error error;
  if (!tegula__first_error_wanted(job->first_error, index)) return;
  atomic_fetch_add(&job->counts->stats, 1);
  tegula_status status = tegula__folders_check_file(job->folders, job->files[index].path,
                                                    &job->files[index].stamp, &error);
  if (status != TEGULA_OK) tegula__first_error_set(job->first_error, index, status, &error);
}

static bool same_names(const tegula__describe_job *job, const tegula__paths *listing) {
  if (listing->count != job->count) return false;
  for (int64_t i = 0; i < job->count; i++)
    if (strcmp(listing->items[i], job->files[i].path) != 0) return false;
  return true;
}

/* Does the path still stand for these files? */
static tegula_status check_listing(const tegula__describe_job *job,
                                   const tegula__selection *selection, tegula_error *err) {
  tegula__paths again = {0};
  if (!job->listed) return TEGULA_OK;
  const char *path = selection->paths[0];
  tegula_status status = tegula__paths_find(path, job->folders, &again, err);
  bool same = status == TEGULA_OK && same_names(job, &again);
  tegula__paths_free(&again);
  if (same) return TEGULA_OK;
  if (status == TEGULA_OUT_OF_MEMORY || (status != TEGULA_OK && err != NULL && err->os_errno != 0))
    return status;
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_CHANGED, path, -1,
                                   "the files of \"%s\" changed while they were described", path),
                      "open it again when nothing adds or removes files any more");
}

tegula_status tegula__describe_check_together(tegula__describe_job *job, tegula__pool *pool,
                                              const tegula__selection *selection,
                                              tegula_error *err) {
  if (!job->held) { /* one file, and what it speaks of */
    if (!tegula__folders_used(job->folders)) return TEGULA_OK;
    FORWARD(
        tegula__folders_check_file(job->folders, job->files[0].path, &job->files[0].stamp, err));
  } else if (!tegula__folders_certain(job->folders)) {
    FORWARD(check_listing(job, selection, err));
    tegula__pool_run_waiting(pool, job->count, check_one, job);
    FORWARD(tegula__first_error_get(job->first_error, err));
  }
  if (!tegula__folders_certain(job->folders))
    FORWARD(tegula__folders_check_notes(job->folders, err));
  return tegula__folders_check_names(job->folders, err);
}

tegula_status tegula__describe_check_listed(tegula__describe_job *job, tegula_error *err) {
  if (tegula__folders_certain(job->folders)) return tegula__folders_check_names(job->folders, err);
  FORWARD(tegula__folders_check_file(job->folders, job->files[0].path, &job->files[0].stamp, err));
  FORWARD(tegula__folders_check_notes(job->folders, err));
  return tegula__folders_check_names(job->folders, err);
}
