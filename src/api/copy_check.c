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

static tegula_status compare(const tegula__copying *c, const char *copied, tegula_error *err) {
  if (strcmp(copied, c->report.hash) == 0) return TEGULA_OK;
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_MISMATCH, c->path, -1, "the copy \"%s\" is not what was read: its content hash is %s, expected %s",
                                   c->path, copied, c->report.hash),
                      "nothing was kept of it; check memory and storage of this machine");
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
  return status == TEGULA_OK ? compare(c, copied, err) : status;
}

/* ---- on several ranks ---- */

enum { VIEW, FORMAT, DATASET, DTYPE, ORDER, FOLDER, TEXTS };

#define BETWEEN "\x1e" /* in no name of a dataset, and in no path that is not asked for trouble */

/* Rank 0: how the others are to open it, which know of the array all that is the same. */
static tegula_status write_how(tegula__copying *c, char **out, tegula_error *err) {
  tegula__saving *s = &c->saving;
  char dtype[TEGULA_DTYPE_TEXT], *view = NULL;
  tegula_open_options o;
  FORWARD(tegula__saving_complete(s, err));
  open_options_of(s, dtype, &o);
  FORWARD(tegula__publish_view(&s->publish, &view, err));
  *out = tegula__strprintf("%s" BETWEEN "%s" BETWEEN "%s" BETWEEN "%s" BETWEEN "%c" BETWEEN "%d", view, o.format, o.dataset != NULL ? o.dataset : "",
                           o.dtype != NULL ? o.dtype : "", o.order != 0 ? o.order : '-', s->publish.folder);
  free(view);
  return *out != NULL ? TEGULA_OK : tegula__out_of_memory(err, 4096);
}

static tegula_status open_so(const tegula__copying *c, char *how, tegula_dataset **out, tegula_error *err) {
  const tegula__manifest *manifest = &c->dataset->manifest;
  const char *texts[TEXTS] = {0};
  tegula_open_options o;
  tegula_open_options_init(&o);
  char *rest = how;
  for (int i = 0; i < TEXTS && rest != NULL; i++) texts[i] = strsep(&rest, BETWEEN);
  if (texts[FOLDER] == NULL) return tegula__fail(err, TEGULA_INTERNAL, c->path, -1, "what rank 0 said of the copy was cut");
  bool raw = strcmp(texts[FORMAT], "raw") == 0, folder = texts[FOLDER][0] == '1';
  o.format = texts[FORMAT];
  if (texts[DATASET][0] != '\0') o.dataset = texts[DATASET];
  if (texts[DTYPE][0] != '\0') o.dtype = texts[DTYPE];
  if (texts[ORDER][0] != '-') o.order = texts[ORDER][0];
  if (raw && folder) {
    o.row_shape = manifest->shape + 1;
    o.row_ndim = manifest->ndim - 1;
  } else if (raw) {
    o.shape = manifest->shape;
    o.shape_ndim = manifest->ndim;
  }
  return tegula_dataset_open(c->dataset->context, texts[VIEW], &o, out, err);
}

/* All ranks have the text. */
static tegula_status read_back(tegula__copying *c, const char *text, size_t size, tegula_error *err) {
  tegula_comm *comm = c->dataset->context->comm;
  char copied[TEGULA_HASH_TEXT], *how = strndup(text, size);
  tegula_dataset *target = NULL;
  tegula_status status = tegula__comm_agree(comm, how != NULL ? TEGULA_OK : tegula__out_of_memory(err, (int64_t)size), err);
  if (status == TEGULA_OK) status = open_so(c, how, &target, err);
  if (status == TEGULA_OK) status = hash_of(target, c, copied, err);
  tegula_dataset_close(target);
  free(how);
  return status == TEGULA_OK ? compare(c, copied, err) : status;
}

tegula_status tegula__copying_check_on_ranks(tegula__copying *c, tegula_error *err) {
  tegula_context *context = c->dataset->context;
  char *text = NULL;
  size_t size = 0;
  FORWARD(hash_of(c->dataset, c, c->report.hash, err));
  if (c->bytes == 0) return TEGULA_OK;
  FORWARD(tegula__comm_agree(context->comm, context->comm->rank == 0 ? write_how(c, &text, err) : TEGULA_OK, err));
  if (text != NULL) size = strlen(text);
  tegula_status status = tegula__comm_agree(context->comm, tegula__share_text(context, &text, &size, err), err);
  if (status == TEGULA_OK) status = read_back(c, text, size, err);
  free(text);
  return status;
}
