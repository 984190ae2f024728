/* The work of tegula_save and tegula_save_group on several ranks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "save/save_later.h"

/* Each step ends with an agreement, so rank 0 knows at the end whether all is written. */
static tegula_status write_all(tegula__rank_save *r, const tegula__group *g, tegula_error *err) {
  tegula_comm *comm = r->context->comm;
  for (int64_t i = 0; i < g->count; i++)
    FORWARD(
        tegula__comm_agree(comm, tegula__rank_save_array(r, i, &g->arrays[i]->memory, err), err));
  return TEGULA_OK;
}

tegula_status tegula__save_on_ranks(tegula_context *context, const tegula__group *group,
                                    const char *path, const tegula_save_options *options,
                                    const char *name, tegula_status status, tegula_error *err) {
  tegula_error unwanted;
  tegula__saving saving;
  tegula_op turn;
  tegula__rank_save r = {.context = context, .options = options, .saving = &saving};
  if (err == NULL) err = &unwanted;
  if (status == TEGULA_OK) FORWARD(tegula__later_end_of_paths(context, &path, 1, name, err));
  FORWARD(tegula__rank_save_begin(&r, group, path, path, name, status, err));
  tegula__queue_enter(
      context->queue, &turn,
      &(tegula__touch){.arrays = (const void *const *)group->arrays, .array_count = group->count});
  status = write_all(&r, group, err);
  tegula__queue_leave(&turn);
  return tegula__rank_save_end(&r, status, err);
}
