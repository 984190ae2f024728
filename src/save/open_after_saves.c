/* Opening a dataset after saves in the background have ended that go to its paths.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "save/save_later.h"

/* Rank 0 describes, the others get its manifest. */
static tegula_status open_on_ranks(tegula_context *context, const char *const *paths, size_t count,
                                   const tegula_open_options *options, tegula_dataset **out,
                                   tegula_error *err) {
  tegula_open_options local;
  tegula__discover_options discover;
  tegula__call call;
  tegula_error unwanted;
  if (err == NULL) err = &unwanted;
  tegula__call_init(&call, "tegula_dataset_open");
  tegula_status status = tegula__open_check(paths, count, options, &local, &discover, err);
  if (status == TEGULA_OK) tegula__call_open(&call, paths, count, &local);
  if (status == TEGULA_OK)
    FORWARD(tegula__later_end_of_paths(context, paths, count, call.name, err));
  FORWARD(tegula__comm_agree_call(context->comm, &call, status, err));
  tegula_dataset *made = NULL;
  status = tegula__open_from_root(context, paths, count, options, &made, err);
  if (status == TEGULA_OK)
    *out = made;
  else
    tegula_dataset_close(made);
  return status;
}

tegula_status tegula__open_any(tegula_context *context, const char *const *paths, size_t count,
                               const tegula_open_options *options, tegula_dataset **out,
                               tegula_error *err) {
  CHECK_ARGUMENT(context != NULL && out != NULL,
                 "the context or the place for the dataset is NULL");
  if (context->comm->size > 1) return open_on_ranks(context, paths, count, options, out, err);
  return tegula__comm_agree(context->comm,
                            tegula__open_here(context, paths, count, options, out, err), err);
}
