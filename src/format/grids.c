/* What every description of chunks must keep to, whoever made it: a plugin or a text.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "codec/codec.h"
#include "format/format_priv.h"

static tegula_status check_chain(const tegula__grid *grid, const char *path, tegula_error *err) {
  tegula_error why; /* it does not know the file */
  tegula_status status =
      tegula__chain_check(grid->filters, grid->filter_count, grid->chunk_bytes, &why);
  if (status == TEGULA_OK) return TEGULA_OK;
  tegula__fail(err, status, path, -1, "the chunks of \"%s\" cannot be decoded: %.300s", path,
               why.message);
  return why.hint[0] != '\0' ? tegula__hint(err, status, "%s", why.hint) : status;
}

tegula_status tegula__format_check_grid(const tegula__grid *grid, const char *path,
                                        tegula_error *err) {
  FORWARD(check_chain(grid, path, err));
  int64_t bound = tegula__chain_bound(grid->filters, grid->filter_count, grid->chunk_bytes);
  for (int64_t i = 0; i < grid->count; i++)
    if (grid->chunks[i].length > bound)
      return tegula__fail(
          err, TEGULA_CORRUPT, path, (int64_t)grid->chunks[i].offset,
          "\"%s\": a stored chunk has %lld bytes, more than its %lld decoded bytes can need", path,
          (long long)grid->chunks[i].length, (long long)grid->chunk_bytes);
  return TEGULA_OK;
}
