/* HDF5: the row of the registry; the plugin describes.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * HDF5 File Format Specification 3.0, II.A: the signature stands at 0, 512, 1024, 2048, ... (a
 * block of the user in front of it). */
#include <string.h>

#include "plugin/plugin.h"

static const unsigned char signature[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

static bool recognise(const void *head, size_t size) {
  for (size_t at = 0; at + sizeof signature <= size; at = at == 0 ? 512 : 2 * at)
    if (memcmp((const char *)head + at, signature, sizeof signature) == 0) return true;
  return false;
}

/* A user block may be of any size: looks at each place of the signature that the head does not
 * hold. */
static tegula_status recognise_rest(const tegula__source *source, bool *found, tegula_error *err) {
  char bytes[sizeof signature];
  int64_t last = source->size - (int64_t)sizeof bytes; /* where one can stand */
  for (int64_t at = 512; !*found && at <= last; at *= 2) {
    if (at + (int64_t)sizeof bytes <= (int64_t)source->head_size) continue;
    FORWARD(tegula__source_read(source, at, bytes, sizeof bytes, err));
    *found = memcmp(bytes, signature, sizeof bytes) == 0;
    if (at > INT64_MAX / 2) break; /* the next place would overflow */
  }
  return TEGULA_OK;
}

static tegula_status describe(const tegula__source *source, const tegula__describe_options *options,
                              tegula__manifest *out, tegula_error *err) {
  FORWARD(tegula__format_check_raw_only(source, options, "an HDF5 file, which says it all", "HDF5",
                                        err));
  FORWARD(tegula__plugin_describe("hdf5", source, options, out, err));
  return tegula__format_check_dtype(source, options, out->dtype, out->descr, "HDF5", err);
}

static tegula_status names(const tegula__source *source, const tegula__describe_options *options,
                           const char *group, tegula__name_fn each, void *state,
                           tegula_error *err) {
  FORWARD(tegula__format_check_raw_only(source, options, "an HDF5 file, which says it all", "HDF5",
                                        err));
  return tegula__plugin_names("hdf5", source, options, group, each, state, err);
}

static tegula_status describe_many(const tegula__source *source,
                                   const tegula__describe_options *options,
                                   const char *const *datasets, int64_t count,
                                   tegula__manifest *out, tegula_error *err) {
  FORWARD(tegula__plugin_describe_many("hdf5", source, options, datasets, count, out, err));
  for (int64_t i = 0; i < count; i++)
    FORWARD(tegula__format_check_dtype(source, options, out[i].dtype, out[i].descr, "HDF5", err));
  return TEGULA_OK;
}

static tegula_status list(const tegula__source *source, const tegula__describe_options *options,
                          tegula__list_fn each, void *state, tegula_error *err) {
  return tegula__plugin_list("hdf5", source, options, each, state, err);
}

static tegula_status attributes(const tegula__source *source,
                                const tegula__describe_options *options, tegula__attribute_fn each,
                                void *state, tegula_error *err) {
  return tegula__plugin_attributes("hdf5", source, options, each, state, err);
}

static tegula_status save_open(tegula__plugins *plugins, tegula__sink *sink, void **saving,
                               tegula_error *err) {
  return tegula__plugin_save_open("hdf5", plugins, sink, saving, err);
}

static const tegula__container container = {.open = save_open,
                                            .add = tegula__plugin_save_add,
                                            .place = tegula__plugin_save_place,
                                            .close = tegula__plugin_save_close,
                                            .abandon = tegula__plugin_save_abandon,
                                            .largest_chunk = UINT32_MAX};

const tegula__format tegula__format_hdf5 = {
    .name = "hdf5",
    .suffixes = (const char *const[]){".h5", ".hdf5", ".he5", ".nxs", NULL},
    .recognise = recognise,
    .recognise_rest = recognise_rest,
    .describe = describe,
    .names = names,
    .describe_many = describe_many,
    .list = list,
    .attributes = attributes,
    .container = &container,
};
