/* What is in a container: its datasets and attributes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api.h"

typedef struct lister {
  tegula_entry_fn each;
  void *state;
} lister;

static tegula_status list_one(void *state, const tegula_plugin_entry_info *entry,
                              tegula_error *err) {
  const lister *l = state;
  tegula_entry told = {.struct_size = sizeof told,
                       .name = entry->name,
                       .dtype = entry->dtype,
                       .refused = entry->refused,
                       .codecs = entry->codecs,
                       .ndim = entry->ndim,
                       .shape = entry->shape,
                       .chunk = entry->chunk,
                       .stored_bytes = entry->stored_bytes,
                       .descr = entry->descr};
  if (l->each(l->state, &told) == 0) return TEGULA_OK;
  return tegula__fail(err, TEGULA_CANCELLED, NULL, -1,
                      "the list of datasets was not wanted any further");
}

typedef struct attribute_lister {
  tegula_attribute_fn each;
  void *state;
} attribute_lister;

static tegula_status tell_attribute(void *state, const tegula_attribute *attribute,
                                    tegula_error *err) {
  const attribute_lister *l = state;
  if (attribute->name == NULL) return TEGULA_OK; /* the comment */
  if (l->each(l->state, attribute) == 0) return TEGULA_OK;
  return tegula__fail(err, TEGULA_CANCELLED, NULL, -1,
                      "the list of attributes was not wanted any further");
}

static tegula_status look_inside(tegula_context *context, const char *path,
                                 const tegula_open_options *options, const tegula__inside *wanted,
                                 tegula_error *err) {
  tegula_open_options local;
  tegula__discover_options discover;
  tegula__tally tally;
  tegula__places places;
  tegula_op turn;
  tegula_open_options_init(&local);
  FORWARD(tegula__options_copy(&local, sizeof local, FIRST_OPEN_OPTIONS, options,
                               "tegula_open_options", err));
  FORWARD(tegula__discover_options_of(&local, &discover, err));
  discover.describe.plugins = context->plugins;
  FORWARD(tegula__tally_start(&tally, local.statistics, err));
  FORWARD(tegula__places_of_paths(&path, 1, &places, err));
  tegula__queue_enter(context->queue, &turn, &(tegula__touch){.places = &places});
  tegula_status status =
      tegula__discover_list(context->handles, path, &discover, wanted, &tally.counts, err);
  tegula__queue_leave(&turn);
  tegula__places_free(&places);
  tegula__tally_end(&tally, local.statistics, offsetof(tegula_statistics, seconds_describe));
  return status;
}

tegula_status tegula_list(tegula_context *context, const char *path,
                          const tegula_open_options *options, tegula_entry_fn each, void *state,
                          tegula_error *err) {
  CHECK_ARGUMENT(context != NULL && path != NULL && path[0] != '\0' && each != NULL,
                 "context, path or function is NULL");
  lister l = {each, state};
  return look_inside(context, path, options, &(tegula__inside){.entry = list_one, .state = &l},
                     err);
}

tegula_status tegula_attributes(tegula_context *context, const char *path,
                                const tegula_open_options *options, tegula_attribute_fn each,
                                void *state, tegula_error *err) {
  CHECK_ARGUMENT(context != NULL && path != NULL && path[0] != '\0' && each != NULL,
                 "context, path or function is NULL");
  attribute_lister l = {each, state};
  return look_inside(context, path, options,
                     &(tegula__inside){.attribute = tell_attribute, .state = &l}, err);
}
