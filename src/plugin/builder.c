/* What the host table and late parts share of building a manifest.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "plugin/plugin_priv.h"

tegula_status tegula__plugin_wrong(const tegula_plugin_builder *builder, const char *what,
                                   tegula_error *err) {
  const char *path = builder->source->path;
  return tegula__fail(err, TEGULA_INTERNAL, path, -1, "the plugin that describes \"%s\" gave %s",
                      path, what);
}

tegula_status tegula__plugin_add_without_file(tegula_plugin_builder *builder, tegula__part *part,
                                              tegula_error *err) {
  int64_t shape[TEGULA_MAX_DIMS], strides[TEGULA_MAX_DIMS], bytes;
  if (!tegula__dtype_valid(builder->out->dtype))
    return tegula__plugin_wrong(builder, "a part before its array", err);
  for (int32_t k = 0; k < builder->out->ndim; k++) {
    if (part->lo[k] < 0 || part->hi[k] < part->lo[k])
      return tegula__plugin_wrong(builder, "a part that ends before it begins", err);
    shape[k] = part->hi[k] - part->lo[k];
  }
  if (!tegula__shape_bytes(shape, builder->out->ndim, builder->out->dtype.item_size, &bytes))
    return tegula__fail(err, TEGULA_LIMIT_EXCEEDED, builder->source->path, -1,
                        "\"%s\": an array of more than 2^63 bytes", builder->source->path);
  tegula__dense_strides(shape, builder->out->ndim, builder->out->dtype.item_size, 'C', strides);
  part->strides = strides;
  part->order = builder->out->dtype.order;
  part->file = TEGULA__NO_FILE;
  return tegula__manifest_add_part(builder->out, part, err);
}
