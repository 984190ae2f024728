/* The one way in which formats read bytes of the file that they describe.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "format/format_priv.h"

tegula_status tegula__source_read(const tegula__source *source, int64_t offset, void *out,
                                  size_t size, tegula_error *err) {
  int64_t end = 0;
  bool inside =
      size <= INT64_MAX && tegula__add(offset, (int64_t)size, &end) && end <= source->size;
  if (!inside) {
    return tegula__fail(
        err, TEGULA_SHORT_FILE, source->path, offset,
        "\"%s\" is too short: expected at least %zu bytes at offset %lld, found %lld", source->path,
        size, (long long)offset, (long long)tegula__max(0, source->size - offset));
  }
  RETURN_IF(size == 0, TEGULA_OK);
  if ((uint64_t)end <= source->head_size) {
    memcpy(out, source->head + offset, size);
    return TEGULA_OK;
  }
  return source->read(source, offset, out, size, err);
}
