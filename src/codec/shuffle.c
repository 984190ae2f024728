/* shuffle: HDF5 filter 2. Bytes of equal weight lie together; bytes behind the last whole item stay
 * where they are.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "codec/codec_priv.h"

static tegula_status check(const tegula__filter *filter, tegula_error *err) {
  if (filter->param_count >= 1 && filter->params[0] >= 1) return TEGULA_OK;
  return tegula__codec_corrupt(err, &tegula__codec_shuffle,
                               "an item size of %u, expected 1 or more",
                               filter->param_count >= 1 ? filter->params[0] : 0);
}

static tegula_status undo(const tegula__stage *stage, size_t *size, tegula_error *err) {
  (void)err;
  tegula__unshuffle(stage->decoder->kernels, stage->out, stage->in, stage->in_size,
                    stage->filter->params[0]);
  *size = stage->in_size;
  return TEGULA_OK;
}

static tegula_status apply(const tegula__encode_stage *stage, size_t *size, tegula_error *err) {
  (void)err;
  tegula__shuffle(stage->encoder->kernels, stage->out, stage->in, stage->in_size,
                  stage->filter->params[0]);
  *size = stage->in_size;
  return TEGULA_OK;
}

static size_t planes(const tegula__filter *filter) { return filter->params[0]; }

const tegula__codec tegula__codec_shuffle = {.name = "shuffle",
                                             .available = true,
                                             .keeps_size = true,
                                             .check = check,
                                             .planes = planes,
                                             .only_planes = true,
                                             .undo = undo,
                                             .apply = apply};
