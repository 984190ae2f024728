/* Calling a plugin: to describe datasets, to list what is in a file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "plugin/plugin_priv.h"

/* Only the file that is described: its caller has it in a table. */
static void drop_own_file(tegula__manifest *out) {
  if (out->file_count != 1) return;
  free(out->files[0].path);
  free(out->files);
  out->files = NULL;
  out->file_count = 0;
}

static tegula_status start_builder(tegula_plugin_builder *builder, const tegula__source *source,
                                   const tegula__describe_options *options, tegula__manifest *out,
                                   tegula_error *err) {
  *builder = (tegula_plugin_builder){.source = source, .out = out, .locked = options->locked};
  if (source->stamp == NULL)
    return tegula__fail(err, TEGULA_UNSUPPORTED, source->path, -1, "\"%s\" is not opened as a file",
                        source->path);
  return tegula__plugin_append_file(builder, source->path, source->stamp, err);
}

tegula_status tegula__plugin_describe(const char *name, const tegula__source *source,
                                      const tegula__describe_options *options,
                                      tegula__manifest *out, tegula_error *err) {
  const tegula_plugin *plugin = NULL;
  void *state = NULL;
  tegula_plugin_builder builder;
  FORWARD(tegula__plugins_open(options->plugins, name, &plugin, &state, err));
  FORWARD(start_builder(&builder, source, options, out, err));
  tegula_status status = plugin->describe(state, &builder, source->path, options->dataset, err);
  tegula__plugin_detach(&builder);
  if (status == TEGULA_OK) drop_own_file(out);
  return status;
}

/* Files that one description has opened may be read for another: all end together. */
tegula_status tegula__plugin_describe_many(const char *name, const tegula__source *source,
                                           const tegula__describe_options *options,
                                           const char *const *datasets, int64_t count,
                                           tegula__manifest *out, tegula_error *err) {
  const tegula_plugin *plugin = NULL;
  void *state = NULL;
  FORWARD(tegula__plugins_open(options->plugins, name, &plugin, &state, err));
  tegula_plugin_builder *builders = tegula__realloc_array(NULL, count, sizeof *builders);
  tegula_plugin_builder **table = tegula__realloc_array(NULL, count, sizeof *table);
  tegula_status status = builders != NULL && table != NULL
                             ? TEGULA_OK
                             : tegula__out_of_memory(err, count * (int64_t)sizeof *builders);
  for (int64_t i = 0; status == TEGULA_OK && i < count; i++) {
    table[i] = &builders[i];
    status = start_builder(table[i], source, options, &out[i], err);
  }
  if (status == TEGULA_OK) {
    status = plugin->describe_many(state, table, source->path, datasets, count, err);
    for (int64_t i = 0; i < count; i++) tegula__plugin_detach(table[i]);
  }
  for (int64_t i = 0; status == TEGULA_OK && i < count; i++) drop_own_file(&out[i]);
  free(builders);
  free(table);
  return status;
}

/* A plugin and a builder for what makes no manifest. */
typedef struct visit {
  const tegula_plugin *plugin;
  void *opened;
  tegula__manifest none;
  tegula_plugin_builder builder;
} visit;

static tegula_status start_visit(const char *name, const tegula__source *source,
                                 const tegula__describe_options *options, visit *v,
                                 tegula_error *err) {
  FORWARD(tegula__plugins_open(options->plugins, name, &v->plugin, &v->opened, err));
  tegula__manifest_init(&v->none);
  v->builder =
      (tegula_plugin_builder){.source = source, .out = &v->none, .locked = options->locked};
  return TEGULA_OK;
}

static tegula_status end_visit(visit *v, tegula_status status) {
  tegula__plugin_detach(&v->builder);
  tegula__manifest_free(&v->none);
  return status;
}

tegula_status tegula__plugin_list(const char *name, const tegula__source *source,
                                  const tegula__describe_options *options,
                                  tegula_plugin_list_fn each, void *state, tegula_error *err) {
  visit v;
  FORWARD(start_visit(name, source, options, &v, err));
  if (v.plugin->list == NULL)
    return tegula__fail(err, TEGULA_UNSUPPORTED, source->path, -1,
                        "files of the format %s cannot be listed", name);
  return end_visit(&v, v.plugin->list(v.opened, &v.builder, source->path, each, state, err));
}

tegula_status tegula__plugin_attributes(const char *name, const tegula__source *source,
                                        const tegula__describe_options *options,
                                        tegula_plugin_attribute_fn each, void *state,
                                        tegula_error *err) {
  visit v;
  FORWARD(start_visit(name, source, options, &v, err));
  bool known =
      v.plugin->struct_size >= offsetof(tegula_plugin, attributes) + sizeof v.plugin->attributes;
  if (!known || v.plugin->attributes == NULL)
    return tegula__fail(err, TEGULA_UNSUPPORTED, source->path, -1,
                        "files of the format %s have no attributes", name);
  return end_visit(&v, v.plugin->attributes(v.opened, &v.builder, source->path, options->dataset,
                                            each, state, err));
}

tegula_status tegula__plugin_names(const char *name, const tegula__source *source,
                                   const tegula__describe_options *options, const char *group,
                                   tegula_plugin_name_fn each, void *state, tegula_error *err) {
  visit v;
  FORWARD(start_visit(name, source, options, &v, err));
  bool known = v.plugin->struct_size >=
               offsetof(tegula_plugin, describe_many) + sizeof v.plugin->describe_many;
  if (!known || v.plugin->names == NULL || v.plugin->describe_many == NULL)
    return tegula__fail(err, TEGULA_UNSUPPORTED, source->path, -1,
                        "files of the format %s know no patterns of datasets", name);
  return end_visit(&v,
                   v.plugin->names(v.opened, &v.builder, source->path, group, each, state, err));
}
