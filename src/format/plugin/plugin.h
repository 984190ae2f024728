/* Plugins: formats that need a heavy library are described by shared objects, opened when the first
 * file of that format is met.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * load.c finds and opens them, host.c is the table of functions that they are given
 * (tegula_plugin.h) and turns what they say into a manifest: everything is copied, and checked by
 * tegula__manifest_finish like what any driver says. */
#ifndef TEGULA_FORMAT_PLUGIN_PLUGIN_H
#define TEGULA_FORMAT_PLUGIN_PLUGIN_H

#include <tegula/tegula_plugin.h>

#include "format/format.h"

/* `path`: folders to look in first, separated by ':'; NULL: beside the library, then where it is
 * installed. `hdf5_library`: see tegula_context_options. Texts are copied. */
tegula_status tegula__plugins_create(const char *path, const char *hdf5_library,
                                     const char *hdf5_candidates, tegula__plugins **out,
                                     tegula_error *err);
void tegula__plugins_destroy(tegula__plugins *plugins);

/* The plugin, opened; it stays so until the plugins are destroyed. UNSUPPORTED says why it is not
 * there. */
tegula_status tegula__plugins_open(tegula__plugins *plugins, const char *name,
                                   const tegula_plugin **plugin, void **state, tegula_error *err);

/* Describes a dataset of the source, as tegula__format.describe. */
tegula_status tegula__plugin_describe(const char *name, const tegula__source *source,
                                      const tegula__describe_options *options,
                                      tegula__manifest *out, tegula_error *err);
/* As tegula__format.describe_many and names. */
tegula_status tegula__plugin_describe_many(const char *name, const tegula__source *source,
                                           const tegula__describe_options *options,
                                           const char *const *datasets, int64_t count,
                                           tegula__manifest *out, tegula_error *err);
tegula_status tegula__plugin_names(const char *name, const tegula__source *source,
                                   const tegula__describe_options *options, const char *group,
                                   tegula_plugin_name_fn each, void *state, tegula_error *err);
/* Lists the datasets of the source. */
tegula_status tegula__plugin_list(const char *name, const tegula__source *source,
                                  const tegula__describe_options *options,
                                  tegula_plugin_list_fn each, void *state, tegula_error *err);
/* Attributes of the source and its datasets, or of options->dataset. */
tegula_status tegula__plugin_attributes(const char *name, const tegula__source *source,
                                        const tegula__describe_options *options,
                                        tegula_plugin_attribute_fn each, void *state,
                                        tegula_error *err);

/* Saving, as tegula__container. */
tegula_status tegula__plugin_save_open(const char *name, tegula__plugins *plugins,
                                       tegula__sink *sink, void **saving, tegula_error *err);
tegula_status tegula__plugin_save_add(void *saving, const tegula__layout_request *request,
                                      int64_t *number, int64_t *offset, tegula_error *err);
tegula_status tegula__plugin_save_place(void *saving, int64_t number, const int64_t *chunk,
                                        uint32_t length, uint32_t mask, uint64_t *offset,
                                        tegula_error *err);
tegula_status tegula__plugin_save_close(void *saving, tegula_error *err);
void tegula__plugin_save_abandon(void *saving);

extern const tegula_plugin_host tegula__plugin_host;
/* What the host table has of files that are saved: save.c. */
int64_t tegula__plugin_sink_size(const tegula_plugin_sink *sink);
const char *tegula__plugin_sink_path(const tegula_plugin_sink *sink);
tegula_status tegula__plugin_sink_read(tegula_plugin_sink *sink, int64_t offset, void *out,
                                       size_t size, tegula_error *err);
tegula_status tegula__plugin_sink_write(tegula_plugin_sink *sink, int64_t offset, const void *data,
                                        size_t size, tegula_error *err);
tegula_status tegula__plugin_sink_resize(tegula_plugin_sink *sink, int64_t size, tegula_error *err);

/* What the plugin keeps open gets handles of its own: the builder ends. */
void tegula__plugin_detach(tegula_plugin_builder *builder);
/* late.c: those of the host table. */
tegula_status tegula__plugin_new_late(tegula_plugin_builder *builder,
                                      const tegula_plugin_late *late, int64_t *number,
                                      tegula_error *err);
tegula_status tegula__plugin_new_late_of(tegula_plugin_builder *builder, int64_t file,
                                         const tegula_plugin_late *late, int64_t *number,
                                         tegula_error *err);
tegula_status tegula__plugin_add_late(tegula_plugin_builder *builder, int64_t number,
                                      const int64_t *lo, const int64_t *hi, tegula_error *err);

/* What host.c builds with. */
struct tegula_plugin_builder {
  const tegula__source *source;
  tegula__manifest *out;
  bool locked; /* files that others have locked are taken, too */
  bool late;   /* a late part is resolved: the described file is not open */
  int64_t file_capacity;
  tegula_plugin_file *open; /* a list: what is open still when the description is done stays so */
};

/* host.c, for late.c. What only a broken plugin says. */
tegula_status tegula__plugin_wrong(const tegula_plugin_builder *builder, const char *what,
                                   tegula_error *err);
/* A part without bytes in a file: its strides are those of C order, so that it is cut along
 * rows. */
tegula_status tegula__plugin_add_without_file(tegula_plugin_builder *builder, tegula__part *part,
                                              tegula_error *err);

#endif
