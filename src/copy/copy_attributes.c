/* What goes along with a dataset that is copied, and what cannot.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "copy/copy.h"

void tegula__copying_drop(tegula__copying *c, uint32_t kind, const char *what, const char *name,
                          const char *reason) {
  if (c->report.dropped == 0)
    snprintf(c->first_dropped, sizeof c->first_dropped, "the %s%s%s%s of the dataset: %s", what,
             name != NULL ? " \"" : "", name != NULL ? name : "", name != NULL ? "\"" : "", reason);
  c->report.dropped |= kind;
  if (c->options.dropped != NULL) c->options.dropped(c->options.dropped_state, what, name, reason);
}

/* A tegula_plugin_dropped_fn. */
static void drop(void *state, const char *what, const char *name, const char *reason) {
  bool scale = strcmp(what, "dimension scale") == 0;
  tegula__copying_drop(state, scale ? TEGULA_DROPPED_SCALES : TEGULA_DROPPED_ATTRIBUTES, what, name,
                       reason);
}

static bool in_container(const tegula__manifest *manifest) {
  const tegula__format *format =
      manifest->format != NULL ? tegula__format_by_name(manifest->format) : NULL;
  return manifest->file_count > 0 && format != NULL && format->attributes != NULL;
}

/* Was it opened in its container, or in a manifest that speaks of that? */
static bool is_itself(const tegula__copying *c) {
  return c->dataset->opened != NULL &&
         strcmp(c->dataset->opened, c->dataset->manifest.files[0].path) == 0;
}

/* Does the dataset lie in a container that can be looked into? What a manifest speaks of has no
 * more than it says. */
static bool has_more(tegula__copying *c) {
  if ((c->options.flags & TEGULA_COPY_ALONG) == 0 || !in_container(&c->dataset->manifest))
    return false;
  if (!is_itself(c)) drop(c, "attributes", NULL, "the manifest does not hold them");
  return is_itself(c);
}

/* Opens the file of the dataset, of several the first. */
static tegula_status look_inside(tegula__copying *c, tegula__inside wanted, tegula_error *err) {
  const tegula_dataset *dataset = c->dataset;
  const tegula__file *file = &dataset->manifest.files[0];
  tegula__discover_options discover;
  tegula_open_options open;
  tegula_open_options_init(&open);
  open.dataset = dataset->asked;
  open.flags = dataset->locked ? TEGULA_OPEN_LOCKED : 0;
  FORWARD(tegula__discover_options_of(&open, &discover, err));
  discover.describe.plugins = dataset->context->plugins;
  wanted.expected = &file->stamp;
  return tegula__discover_list(dataset->context->handles, file->path, &discover, &wanted,
                               &c->reading.counts, err);
}

static tegula_status list_one(void *state, const tegula_attribute *attribute, tegula_error *err) {
  (void)err;
  /* of the file, not of its only dataset */
  if (strcmp(attribute->object, "/") == 0) return TEGULA_OK;
  if (attribute->name == NULL)
    drop(state, "comment", NULL, "the format has no comments");
  else
    drop(state, "attribute", attribute->name, "the format has no attributes");
  return TEGULA_OK;
}

tegula_status tegula__copying_list_attributes(tegula__copying *c, tegula_error *err) {
  return has_more(c) ? look_inside(c, (tegula__inside){.attribute = list_one, .state = c}, err)
                     : TEGULA_OK;
}

static tegula_status begin(tegula__copying *c, tegula_error *err) {
  c->begun = true;
  return tegula__saving_begin(&c->saving, c->dataset->context, c->path, c->wanted.options,
                              &c->wanted, 1, err);
}

/* A tegula__within_fn. */
static tegula_status begin_within(void *state, const tegula__source *source,
                                  const tegula__describe_options *options, tegula_error *err) {
  tegula__copying *c = state;
  tegula__origin origin = {.source = source,
                           .options = options,
                           .dropped = drop,
                           .state = c,
                           .reads_target =
                               tegula__copying_reads(&c->dataset->manifest, c->path) != NULL,
                           .bare = (c->options.flags & TEGULA_COPY_ALONG) == 0};
  c->wanted.origin = &origin;
  tegula_status status = begin(c, err);
  c->wanted.origin = NULL;
  return status;
}

tegula_status tegula__copying_begin(tegula__copying *c, const tegula_save_options *options,
                                    tegula_error *err) {
  const tegula__format *format;
  c->wanted.options = options;
  FORWARD(tegula__saving_format(c->path, options, &format, err));
  bool along = format->container != NULL && has_more(c);
  bool into_source = format->container != NULL && in_container(&c->dataset->manifest) &&
                     is_itself(c) && tegula__copying_reads(&c->dataset->manifest, c->path) != NULL;
  return along || into_source
             ? look_inside(c, (tegula__inside){.within = begin_within, .state = c}, err)
             : begin(c, err);
}
