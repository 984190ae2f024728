/* The public face of loading: a dataset into an array, or a box of it into any memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "save/save_later.h"
#include "dataset/chunk_cache.h"

tegula_status tegula_load(tegula_dataset *dataset, tegula_array *array,
                          const tegula_load_options *options, tegula_error *err) {
  CHECK_ARGUMENT(dataset != NULL && array != NULL, "the dataset or the array is NULL");
  tegula_load_options local;
  tegula_op turn;
  tegula_load_options_init(&local);
  tegula_status status = tegula__load_options_copy(&local, options, err);
  if (status != TEGULA_OK) return tegula__load_agree(dataset, array, &local, status, err);
  FORWARD(tegula__later_end_of_array(array->context, array, "tegula_load", err));
  /* where its saves are, if the dataset is of another context */
  tegula__queue_enter(
      array->context->queue, &turn,
      &(tegula__touch){.array = array, .array_changes = true, .places = &dataset->places});
  status = tegula__load(dataset, array, &local, err);
  tegula__queue_leave(&turn);
  return status;
}

tegula_status tegula_dataset_read(const tegula_dataset *dataset, const tegula_view *dst,
                                  const tegula_load_options *options, tegula_error *err) {
  CHECK_ARGUMENT(dataset != NULL && dst != NULL, "the dataset or the view is NULL");
  tegula_load_options local;
  tegula__tally tally;
  tegula_load_options_init(&local);
  FORWARD(tegula__load_options_copy(&local, options, err));
  FORWARD(tegula__view_check(dst, dataset->manifest.dtype, dataset->manifest.shape,
                             dataset->manifest.ndim, err));
  CHECK_ARGUMENT((dst->flags & TEGULA_VIEW_READ_ONLY) == 0, "the view is read-only");
  CHECK_ARGUMENT(!tegula__view_overlaps(dst),
                 "the strides of the view let several elements share a place");
  FORWARD(tegula__tally_start(&tally, local.statistics, err));
  tegula__tile tile = {.lo = dst->box.lo,
                       .hi = dst->box.hi,
                       .strides = dst->stride_bytes,
                       .data = dst->data,
                       .order = dst->dtype.order};
  bool done;
  tegula_status status = tegula__cached_read(dataset, &tile, &local, &tally, &done, err);
  if (status == TEGULA_OK && !done)
    status = tegula__dataset_move(dataset, &tile, 1, &local, &tally, err);
  tegula__tally_end(&tally, local.statistics, offsetof(tegula_statistics, seconds_move));
  return status;
}
