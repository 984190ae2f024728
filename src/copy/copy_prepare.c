/* What the options of a copy leave open is taken from the dataset; the save is begun.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "codec/codec.h"
#include "copy/copy.h"

/* Chunk shape and codec of a chunked dataset, where the target is to be chunked too. */
static tegula_status keep_chunks(const tegula__manifest *manifest, tegula__copy_wanted *w,
                                 tegula_error *err) {
  const tegula__part *part = tegula__storage_in_chunks(manifest);
  tegula_save_options *o = &w->save;
  if (part == NULL || (o->layout != NULL && strcmp(o->layout, "chunked") != 0)) return TEGULA_OK;
  if (o->chunk == NULL && part->step == NULL) {
    o->chunk = part->chunk;
    o->chunk_ndim = manifest->ndim;
  }
  if (o->codec != NULL) return TEGULA_OK;
  if (!tegula__chain_format(part->grid->filters, part->grid->filter_count, &w->codec) ||
      !tegula__buffer_append(&w->codec, "", 1))
    return tegula__out_of_memory(err, 4096);
  o->codec = w->codec.data;
  return TEGULA_OK;
}

static bool is_zero(const void *item, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (((const char *)item)[i] != 0) return false;
  return true;
}

static tegula_status inherit(tegula__copying *c, const char *path, tegula__copy_wanted *w,
                             tegula_error *err) {
  const tegula__manifest *manifest = &c->dataset->manifest;
  const tegula__format *format;
  tegula_save_options *o = &w->save;
  FORWARD(tegula__saving_format(path, o, &format, err));
  bool fill = manifest->fill != NULL && !is_zero(manifest->fill, manifest->dtype.item_size);
  if (manifest->descr != NULL && o->descr == NULL && format != &tegula__format_raw)
    o->descr = manifest->descr;
  if (manifest->descr != NULL && o->descr == NULL)
    tegula__copying_drop(c, TEGULA_DROPPED_DESCR, "fields", NULL,
                         "the format has no records: they are items of bytes");
  if (format->container == NULL) {
    FORWARD(tegula__copying_list_attributes(c, err));
    for (int64_t i = 0; i < o->attribute_count; i++)
      tegula__copying_drop(c, TEGULA_DROPPED_ATTRIBUTES, "attribute", o->attributes[i].name,
                           "the format has no attributes");
    if (fill || o->fill != NULL)
      tegula__copying_drop(c, TEGULA_DROPPED_FILL, "fill value", NULL,
                           "the format has no fill value");
    o->fill = NULL;
    o->attribute_count = 0;
    return TEGULA_OK;
  }
  if (o->dataset == NULL) o->dataset = manifest->name;
  if (o->fill == NULL && fill) o->fill = manifest->fill;
  return keep_chunks(manifest, w, err);
}

static tegula_status check_dropped(const tegula__copying *c, tegula_error *err) {
  if ((c->options.flags & TEGULA_COPY_STRICT) == 0 || c->report.dropped == 0) return TEGULA_OK;
  return tegula__fail(err, TEGULA_MISMATCH, c->path, -1, "\"%s\" cannot hold %s", c->path,
                      c->first_dropped);
}

/* May the target be replaced while the dataset is read, and afterwards? `adds`: its file stays what
 * it is but for one dataset. */
static tegula_status check_target(const tegula__manifest *manifest, const char *path, bool adds,
                                  tegula_error *err) {
  const char *read = adds ? NULL : tegula__copying_reads(manifest, path);
  if (read == NULL) return TEGULA_OK;
  return tegula__hint(
      err,
      tegula__fail(err, TEGULA_INVALID_ARGUMENT, path, -1,
                   "cannot copy \"%s\" to \"%s\": that would replace what is copied", read, path),
      "copy to another name, then rename");
}

void tegula__copying_note_target(tegula__copying *c) {
  const tegula__member *m = &c->saving.members[0];
  c->report.bytes = c->bytes;
  c->report.files = m->file_count;
  c->report.stored_bytes = m->layout == TEGULA__CHUNKED ? atomic_load(&m->placed) : c->bytes;
}

/* A codec that the options did not name, but the dataset has. */
static tegula_status explain_codec(const tegula__copy_wanted *w, tegula_status status,
                                   tegula_error *err) {
  bool kept = w->codec.size > 1 && w->save.codec == w->codec.data;
  bool about_it =
      status != TEGULA_OK && err != NULL && strstr(err->message, "with the codec") != NULL;
  return kept && about_it
             ? tegula__hint(err, status,
                            "the dataset's codec would be kept: say another one, or none")
             : status;
}

static tegula_status make_tiling(const tegula__copying *c, tegula_tiling **out, tegula_error *err) {
  const tegula__manifest *manifest = &c->dataset->manifest;
  tegula_context *context = c->dataset->context;
  int64_t tiles =
      c->options.tiles > 0 ? c->options.tiles : tegula__pool_threads(context->engine.pool);
  return tegula__tiling_even(manifest->shape, manifest->ndim, 0, tiles, context->comm->size, out,
                             err);
}

tegula_status tegula__copying_prepare(tegula__copying *c, tegula__copy_wanted *w,
                                      tegula_error *err) {
  FORWARD(inherit(c, c->path, w, err));
  FORWARD(check_dropped(c, err));
  FORWARD(make_tiling(c, &w->tiling, err));
  c->wanted = (tegula__wanted){.dtype = c->dataset->manifest.dtype, .tiling = w->tiling};
  FORWARD(explain_codec(w, tegula__copying_begin(c, &w->save, err), err));
  FORWARD(check_dropped(c, err));
  return check_target(&c->dataset->manifest, c->path, c->saving.adds, err);
}
