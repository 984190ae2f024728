/* Plugins: formats that need a heavy library are described by shared objects, opened when the first
 * file of that format is met.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * loader.c finds and opens them: begin there. host.c is the table of functions that they are given
 * (tegula_plugin.h) and turns what they say into a manifest: everything is copied, and checked by
 * tegula__manifest_finish like what any driver says. describe_calls.c and save_calls.c call them.
 * hdf5_format.c is the row of HDF5 in the table of formats. mpi_library.c finds the MPI of the
 * process. The folder includes base, manifest, codec and format. */
#ifndef TEGULA_PLUGIN_PLUGIN_H
#define TEGULA_PLUGIN_PLUGIN_H

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

#endif
