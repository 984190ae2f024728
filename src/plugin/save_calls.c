/* Saving through a plugin: its functions as those of a container.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "codec/codec.h"
#include "format/npy/fields.h"
#include "plugin/plugin_priv.h"

/* A file on its way. */
typedef struct saving {
  const tegula_plugin *plugin;
  void *file;
} saving;

tegula_status tegula__plugin_save_open(const char *name, tegula__plugins *plugins,
                                       tegula__sink *sink, void **out, tegula_error *err) {
  void *state = NULL;
  saving *s = calloc(1, sizeof *s);
  if (s == NULL) return tegula__out_of_memory(err, sizeof *s);
  tegula_status status = tegula__plugins_open(plugins, name, &s->plugin, &state, err);
  bool known =
      status == TEGULA_OK && s->plugin->struct_size >= offsetof(tegula_plugin, save_abandon) +
                                                           sizeof s->plugin->save_abandon;
  if (status == TEGULA_OK && (!known || s->plugin->save_open == NULL))
    status = tegula__fail(err, TEGULA_UNSUPPORTED, sink->path, -1,
                          "the plugin of the format %s cannot save", name);
  if (status == TEGULA_OK) status = s->plugin->save_open(state, sink, &s->file, err);
  if (status != TEGULA_OK) {
    free(s);
    return status;
  }
  *out = s;
  return TEGULA_OK;
}

static tegula_status add_copy(saving *s, tegula_plugin_layout *layout, const tegula__origin *from,
                              int64_t *number, int64_t *offset, tegula_error *err) {
  tegula__manifest none;
  tegula__manifest_init(&none);
  tegula_plugin_builder builder = {
      .source = from->source, .out = &none, .locked = from->options->locked};
  tegula_plugin_origin origin = {.struct_size = sizeof origin,
                                 .builder = &builder,
                                 .path = from->source->path,
                                 .dataset = from->options->dataset,
                                 .others = (const char *const *)from->options->others,
                                 .other_count = from->options->other_count,
                                 .dropped = from->dropped,
                                 .state = from->state,
                                 .reads_target = from->reads_target,
                                 .bare = from->bare};
  layout->origin = &origin;
  tegula_status status = s->plugin->save_dataset(s->file, layout, number, offset, err);
  tegula__plugin_detach(&builder);
  tegula__manifest_free(&none);
  return status;
}

tegula_status tegula__plugin_save_add(void *state, const tegula__layout_request *request,
                                      int64_t *number, int64_t *offset, tegula_error *err) {
  saving *s = state;
  tegula_plugin_filter filters[TEGULA__CHAIN_MAX];
  for (int32_t i = 0; i < request->filter_count; i++) {
    filters[i] = (tegula_plugin_filter){.codec = tegula__codec_name(request->filters[i].codec),
                                        .param_count = request->filters[i].param_count};
    memcpy(filters[i].params, request->filters[i].params, sizeof filters[i].params);
  }
  tegula_plugin_layout layout = {.struct_size = sizeof layout,
                                 .dataset = request->dataset,
                                 .replace = request->replace,
                                 .ndim = request->ndim,
                                 .shape = request->shape,
                                 .dtype = request->dtype,
                                 .chunk = request->chunk,
                                 .filters = filters,
                                 .filter_count = request->filter_count,
                                 .mappings =
                                     (const tegula_plugin_mapping *)(const void *)request->mappings,
                                 .mapping_count = request->mapping_count,
                                 .fill = request->fill,
                                 .attributes = request->attributes,
                                 .attribute_count = request->attribute_count};
  _Static_assert(sizeof(tegula_plugin_mapping) == sizeof(tegula__mapping),
                 "mappings are handed over as they are");
  tegula_plugin_field *fields = NULL;
  if (request->descr != NULL)
    FORWARD(
        tegula__record_fields(request->descr, request->dtype, &fields, &layout.field_count, err));
  layout.descr = request->descr;
  layout.fields = fields;
  tegula_status status = request->origin != NULL
                             ? add_copy(s, &layout, request->origin, number, offset, err)
                             : s->plugin->save_dataset(s->file, &layout, number, offset, err);
  free(fields);
  return status;
}

tegula_status tegula__plugin_save_place(void *state, int64_t number, const int64_t *chunk,
                                        uint32_t length, uint32_t mask, uint64_t *offset,
                                        tegula_error *err) {
  saving *s = state;
  return s->plugin->save_place(s->file, number, chunk, length, mask, offset, err);
}

tegula_status tegula__plugin_save_close(void *state, tegula_error *err) {
  saving *s = state;
  tegula_status status = s->plugin->save_close(s->file, err);
  free(s);
  return status;
}

void tegula__plugin_save_abandon(void *state) {
  saving *s = state;
  s->plugin->save_abandon(s->file);
  free(s);
}
