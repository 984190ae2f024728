/* How an array is cut into tiles: the options that load and plan share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "cli_report.h"
#include "commands.h"

tegula_status tiling_check_settings(cli_job *job) {
  const cli_settings *values = &job->settings;
  if (values->tile_shape.ndim >= 0 &&
      (values->tiles > 0 || values->axis >= 0 || values->overdecompose > 0)) {
    return report_usage(&job->error, job->command->name, "give --tile-shape or %s, not both",
                        values->tiles > 0   ? "--tiles"
                        : values->axis >= 0 ? "--axis"
                                            : "--overdecompose");
  }
  return TEGULA_OK;
}

tegula_status tiling_make(cli_job *job, const int64_t *shape, int32_t ndim, int32_t ranks,
                          tegula_tiling **out) {
  const cli_settings *values = &job->settings;
  const char *name = job->command->name;
  if (values->tile_shape.ndim >= 0) {
    if (values->tile_shape.ndim != ndim) {
      return report_usage(&job->error, name,
                          "option --tile-shape: expected %d lengths, one per axis, found %d",
                          (int)ndim, (int)values->tile_shape.ndim);
    }
    return tegula_tiling_grid(shape, values->tile_shape.length, ndim, ranks, out, &job->error);
  }
  if (values->axis >= ndim && values->axis > 0) {
    return report_usage(&job->error, name,
                        "option --axis: expected an axis below %d, found %" PRId64, (int)ndim,
                        values->axis);
  }
  int64_t tiles = values->tiles > 0 ? values->tiles : ranks,
          factor = values->overdecompose > 0 ? values->overdecompose : 1;
  if (__builtin_mul_overflow(tiles, factor, &tiles)) {
    return report_usage(&job->error, name,
                        "option --overdecompose: %" PRId64 " times the tiles asked for is too many",
                        factor);
  }
  return tegula_tiling_even(shape, ndim, values->axis > 0 ? (int32_t)values->axis : 0, tiles, ranks,
                            out, &job->error);
}

#define FIELD(name) offsetof(cli_settings, name)

static const cli_option tiling_rows[] = {
    {"tiles", "N", "cut into about N even tiles (default: one per rank)", FIELD(tiles), 1,
     INT64_MAX, OPTION_INTEGER, 0},
    {"axis", "A", "the axis that --tiles cuts (default 0)", FIELD(axis), 0, TEGULA_MAX_DIMS - 1,
     OPTION_INTEGER, 0},
    {"tile-shape", "N,N,..", "a grid of tiles of this shape instead", FIELD(tile_shape), 1,
     INT64_MAX, OPTION_SHAPE, 0},
    {"overdecompose", "K", "K times as many tiles", FIELD(overdecompose), 1, INT64_MAX,
     OPTION_INTEGER, 0},
};

const option_group options_tiling = {"How it is cut", tiling_rows,
                                     sizeof tiling_rows / sizeof tiling_rows[0]};
