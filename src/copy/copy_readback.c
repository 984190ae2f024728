/* What a copy made, read back before it gets its name.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "copy/copy.h"
#include "dist/share_text.h"
#include "save/save_later.h"

enum { MOST_SETTINGS = 32 };

/* How the temporary file or folder is opened: raw ones have no header. */
static tegula_status open_options_of(const tegula__saving *s, char dtype[TEGULA_DTYPE_TEXT],
                                     tegula_setting settings[MOST_SETTINGS], tegula_open_options *o,
                                     tegula_error *err) {
  const tegula__settings said = {s->options.settings, s->options.setting_count};
  const tegula__member *m = &s->members[0];
  int32_t ndim = m->tiling->ndim;
  bool raw = strcmp(s->format->name, "raw") == 0;
  tegula_open_options_init(o);
  o->format = s->format->name;
  o->dataset = m->dataset;
  tegula_dtype_format(m->stored, dtype);
  if (raw || m->stored.kind == 'E') o->dtype = dtype;
  CHECK_ARGUMENT(said.count <= MOST_SETTINGS, "too many settings are given");
  o->settings = settings;
  o->setting_count = tegula__settings_for(&said, TEGULA__SETTING_OPEN, settings);
  if (!raw) return TEGULA_OK;
  o->order = s->options.order;
  o->byte_order = s->options.byte_order;
  if (s->publish.folder) {
    o->row_shape = m->tiling->shape + 1;
    o->row_ndim = ndim - 1;
  } else {
    o->shape = m->tiling->shape;
    o->shape_ndim = ndim;
  }
  return TEGULA_OK;
}

static tegula_status hash_of(tegula_dataset *dataset, tegula__copying *c,
                             char out[TEGULA_HASH_TEXT], tegula_error *err) {
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
  return tegula__hint(
      err,
      tegula__fail(err, TEGULA_MISMATCH, c->path, -1,
                   "the copy \"%s\" is not what was read: its content hash is %s, expected %s",
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
  tegula_setting settings[MOST_SETTINGS];
  FORWARD(open_options_of(s, dtype, settings, &options, err));
  char *view;
  FORWARD(tegula__publish_view(&s->publish, &view, err));
  tegula_status status =
      tegula__open_any(s->context, (const char *const[]){view}, 1, &options, &target, err);
  free(view);
  if (status == TEGULA_OK) status = hash_of(target, c, copied, err);
  tegula_dataset_close(target);
  return status == TEGULA_OK ? compare(c, copied, err) : status;
}

/* ---- on several ranks ---- */

/* Keys and values of settings follow the texts. */
enum { VIEW, FORMAT, DATASET, DTYPE, ORDER, ENDIANNESS, FOLDER, TEXTS, MOST_HOW = 1 << 24 };

/* Rank 0: how the others are to open it, which know of the array all that is the same. */
static tegula_status write_how(tegula__copying *c, tegula__buffer *out, tegula_error *err) {
  tegula__saving *s = &c->saving;
  char dtype[TEGULA_DTYPE_TEXT], order[2] = "", byte_order[2] = "", *view = NULL;
  tegula_setting settings[MOST_SETTINGS];
  tegula_open_options o;
  FORWARD(tegula__saving_complete(s, err));
  FORWARD(open_options_of(s, dtype, settings, &o, err));
  FORWARD(tegula__publish_view(&s->publish, &view, err));
  order[0] = (char)o.order;
  byte_order[0] = o.byte_order;
  const char *texts[TEXTS] = {[VIEW] = view,
                              [FORMAT] = o.format,
                              [DATASET] = o.dataset,
                              [DTYPE] = o.dtype,
                              [ORDER] = order,
                              [ENDIANNESS] = byte_order,
                              [FOLDER] = s->publish.folder ? "1" : ""};
  bool good = true;
  for (int i = 0; good && i < TEXTS; i++)
    good = tegula__texts_append(out, texts[i] != NULL ? texts[i] : "");
  for (int32_t i = 0; good && i < o.setting_count; i++)
    good =
        tegula__texts_append(out, settings[i].key) && tegula__texts_append(out, settings[i].value);
  free(view);
  return good ? TEGULA_OK : tegula__out_of_memory(err, (int64_t)out->size);
}

static const char *unless_empty(const char *text) { return text[0] != '\0' ? text : NULL; }

static tegula_status open_so(const tegula__copying *c, const char *how, size_t size,
                             tegula_dataset **out, tegula_error *err) {
  const tegula__manifest *manifest = &c->dataset->manifest;
  const char *texts[TEXTS], *at = how;
  tegula_open_options o;
  tegula_open_options_init(&o);
  for (int i = 0; i < TEXTS; i++)
    if ((texts[i] = tegula__texts_next(&at, how + size)) == NULL)
      return tegula__fail(err, TEGULA_INTERNAL, c->path, -1,
                          "what rank 0 said of the copy was cut");
  bool raw = strcmp(texts[FORMAT], "raw") == 0, folder = texts[FOLDER][0] != '\0';
  o.format = texts[FORMAT];
  o.dataset = unless_empty(texts[DATASET]);
  o.dtype = unless_empty(texts[DTYPE]);
  o.order = texts[ORDER][0];
  o.byte_order = texts[ENDIANNESS][0];
  tegula_setting settings[MOST_SETTINGS];
  o.settings = settings;
  for (; o.setting_count < MOST_SETTINGS; o.setting_count++) {
    tegula_setting *one = &settings[o.setting_count];
    one->key = tegula__texts_next(&at, how + size);
    one->value = one->key != NULL ? tegula__texts_next(&at, how + size) : NULL;
    if (one->value == NULL) break;
  }
  if (raw && folder) {
    o.row_shape = manifest->shape + 1;
    o.row_ndim = manifest->ndim - 1;
  } else if (raw) {
    o.shape = manifest->shape;
    o.shape_ndim = manifest->ndim;
  }
  return tegula__open_any(c->dataset->context, (const char *const[]){texts[VIEW]}, 1, &o, out, err);
}

/* All ranks have the text. */
static tegula_status read_back(tegula__copying *c, const char *how, size_t size,
                               tegula_error *err) {
  char copied[TEGULA_HASH_TEXT];
  tegula_dataset *target = NULL;
  tegula_status status = open_so(c, how, size, &target, err);
  if (status == TEGULA_OK) status = hash_of(target, c, copied, err);
  tegula_dataset_close(target);
  return status == TEGULA_OK ? compare(c, copied, err) : status;
}

tegula_status tegula__copying_check_on_ranks(tegula__copying *c, tegula_error *err) {
  tegula_context *context = c->dataset->context;
  tegula__buffer how;
  FORWARD(hash_of(c->dataset, c, c->report.hash, err));
  if (c->bytes == 0) return TEGULA_OK;
  tegula__buffer_init(&how, MOST_HOW);
  tegula_status status = context->comm->rank == 0 ? write_how(c, &how, err) : TEGULA_OK;
  status = tegula__comm_agree(context->comm, status, err);
  if (status == TEGULA_OK) {
    status = tegula__share_text(context, &how.data, &how.size, err);
    status = tegula__comm_agree(context->comm, status, err);
  }
  if (status == TEGULA_OK) status = read_back(c, how.data, how.size, err);
  free(how.data); /* not of the buffer any more */
  return status;
}
