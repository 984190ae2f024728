/* What a copy made, read back before it gets its name.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "api/copy.h"

/* How the temporary file or folder is opened: raw ones have no header. */
static void open_options_of(const tegula__saving *s, char dtype[TEGULA_DTYPE_TEXT], tegula_open_options *o) {
  const tegula__member *m = &s->members[0];
  int32_t ndim = m->tiling->ndim;
  bool raw = strcmp(s->format->name, "raw") == 0;
  tegula_open_options_init(o);
  o->format = s->format->name;
  o->dataset = m->dataset;
  tegula_dtype_format(m->stored, dtype);
  if (raw || m->stored.kind == 'E') o->dtype = dtype;
  if (!raw) return;
  o->order = s->options.order;
  if (s->publish.folder) {
    o->row_shape = m->tiling->shape + 1;
    o->row_ndim = ndim - 1;
  } else {
    o->shape = m->tiling->shape;
    o->shape_ndim = ndim;
  }
}

static tegula_status hash_of(tegula_dataset *dataset, tegula__copying *c, char out[TEGULA_HASH_TEXT], tegula_error *err) {
  tegula_load_options options;
  tegula_load_options_init(&options);
  options.missing = c->options.missing;
  options.progress = tegula__copying_progress;
  options.progress_state = c;
  FORWARD(tegula_dataset_hash(dataset, out, &options, err));
  c->done += c->bytes;
  return TEGULA_OK;
}

tegula_status tegula__copying_check(void *state, const tegula__saving *s, tegula_error *err) {
  tegula__copying *c = state;
  char dtype[TEGULA_DTYPE_TEXT], copied[TEGULA_HASH_TEXT];
  tegula_open_options options;
  tegula_dataset *target = NULL;
  FORWARD(hash_of(c->dataset, c, c->report.hash, err));
  if (c->bytes == 0) return TEGULA_OK; /* there is nothing to read back */
  open_options_of(s, dtype, &options);
  char *view;
  FORWARD(tegula__publish_view(&s->publish, &view, err));
  tegula_status status = tegula_dataset_open(s->context, view, &options, &target, err);
  free(view);
  if (status == TEGULA_OK) status = hash_of(target, c, copied, err);
  tegula_dataset_close(target);
  FORWARD(status);
  if (strcmp(copied, c->report.hash) == 0) return TEGULA_OK;
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_MISMATCH, s->path, -1, "the copy \"%s\" is not what was read: its content hash is %s, expected %s",
                                   s->path, copied, c->report.hash),
                      "nothing was kept of it; check memory and storage of this machine");
}
