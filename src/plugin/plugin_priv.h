/* What the files of this folder share: the builder of a manifest, and the functions of the host
 * table.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_PLUGIN_PLUGIN_PRIV_H
#define TEGULA_PLUGIN_PLUGIN_PRIV_H

#include "plugin/plugin.h"

/* plugin_files.c: what the host table has of files that are saved. */
int64_t tegula__plugin_sink_size(const tegula_plugin_sink *sink);
const char *tegula__plugin_sink_path(const tegula_plugin_sink *sink);
tegula_status tegula__plugin_sink_read(tegula_plugin_sink *sink, int64_t offset, void *out,
                                       size_t size, tegula_error *err);
tegula_status tegula__plugin_sink_write(tegula_plugin_sink *sink, int64_t offset, const void *data,
                                        size_t size, tegula_error *err);
tegula_status tegula__plugin_sink_resize(tegula_plugin_sink *sink, int64_t size, tegula_error *err);

/* What the plugin keeps open gets handles of its own: the builder ends. */
void tegula__plugin_detach(tegula_plugin_builder *builder);
/* late_parts.c: those of the host table. */
tegula_status tegula__plugin_new_late(tegula_plugin_builder *builder,
                                      const tegula_plugin_late *late, int64_t *number,
                                      tegula_error *err);
tegula_status tegula__plugin_new_late_of(tegula_plugin_builder *builder, int64_t file,
                                         const tegula_plugin_late *late, int64_t *number,
                                         tegula_error *err);
tegula_status tegula__plugin_add_late(tegula_plugin_builder *builder, int64_t number,
                                      const int64_t *lo, const int64_t *hi, tegula_error *err);

struct tegula_plugin_file {
  tegula_plugin_builder *builder;  /* NULL: the description is done */
  tegula_plugin_file *next, *last; /* of the builder's list */
  tegula__store store;
  void *handle; /* of the store; NULL: it is the file that is described, and open already */
  char *path;
  tegula__stamp stamp;
  bool changed; /* between its description and the handle of its own */
};

/* What host.c builds with. */
struct tegula_plugin_builder {
  const tegula__source *source;
  tegula__manifest *out;
  bool locked; /* files that others have locked are taken, too */
  bool late;   /* a late part is resolved: the described file is not open */
  int64_t file_capacity;
  tegula_plugin_file *open; /* a list: what is open still when the description is done stays so */
};

/* builder.c: what only a broken plugin says. */
tegula_status tegula__plugin_wrong(const tegula_plugin_builder *builder, const char *what,
                                   tegula_error *err);
/* A part without bytes in a file: its strides are those of C order, so that it is cut along
 * rows. */
tegula_status tegula__plugin_add_without_file(tegula_plugin_builder *builder, tegula__part *part,
                                              tegula_error *err);

tegula_status tegula__plugin_file_open(tegula_plugin_builder *builder, const char *path,
                                       tegula_plugin_file **out, tegula_error *err);

void tegula__plugin_file_close(tegula_plugin_file *file);

tegula_status tegula__plugin_file_read(tegula_plugin_file *file, int64_t offset, void *out,
                                       size_t size, tegula_error *err);

tegula_status tegula__plugin_file_check(tegula_plugin_file *file, tegula_error *err);

bool tegula__plugin_file_locked(const tegula_plugin_file *file);

int64_t tegula__plugin_file_size(const tegula_plugin_file *file);
const char *tegula__plugin_file_path(const tegula_plugin_file *file);

tegula_status tegula__plugin_append_file(tegula_plugin_builder *builder, const char *path,
                                         const tegula__stamp *stamp, tegula_error *err);

#endif
