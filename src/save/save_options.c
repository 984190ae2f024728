/* What a save is asked to make, looked at before anything is touched.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "save/saving.h"

#define LARGEST_CHUNK ((int64_t)4 << 20) /* bytes, when nobody says how large they are to be */

/* Behind the last dot of the file's name, "" for none: a dot in front hides a file. */
static const char *suffix_of(const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path,
             *dot = strrchr(name, '.');
  return dot == NULL || dot == name ? "" : dot;
}

static bool can_save(const tegula__format *format) {
  return format != NULL && (format->lay_out != NULL || format->container != NULL);
}

/* By name, or by suffix: one that is not known is refused, because what it means may become known.
 * The suffix of a folder says nothing. */
tegula_status tegula__saving_format(const char *path, const tegula_save_options *options,
                                    const tegula__format **out, tegula_error *err) {
  const char *suffix = options->shards > 0 ? "" : suffix_of(path);
  *out = options->format != NULL ? tegula__format_by_name(options->format)
         : *suffix != '\0'       ? tegula__format_by_suffix(path)
                                 : &tegula__format_npy;
  if (can_save(*out)) return TEGULA_OK;
  tegula_status status =
      options->format != NULL
          ? tegula__fail(err, TEGULA_UNSUPPORTED, path, -1, "cannot save format \"%.60s\"",
                         options->format)
          : tegula__fail(err, TEGULA_UNSUPPORTED, path, -1,
                         "cannot tell the format of \"%.500s\" from its suffix \"%.60s\"", path,
                         suffix);
  return tegula__hint(err, status, "say which format: npy, raw or hdf5");
}

static tegula_status check_common(const tegula_save_options *o, tegula_error *err) {
  CHECK_ARGUMENT(o->order == 0 || o->order == 'C' || o->order == 'F', "order must be 'C' or 'F'");
  CHECK_ARGUMENT(o->byte_order == 0 || o->byte_order == '<' || o->byte_order == '>',
                 "byte_order must be '<' or '>'");
  CHECK_ARGUMENT(o->shards >= 0, "the number of shards must not be negative");
  CHECK_ARGUMENT((o->flags & ~TEGULA_SAVE_WHOLE_FILE) == 0, "a flag is not known");
  CHECK_ARGUMENT(o->reserved == 0 && o->reserved_end == 0, "a reserved field is not zero");
  return TEGULA_OK;
}

static tegula_status refuse(const tegula__saving *s, const char *what, tegula_error *err) {
  return tegula__fail(err, TEGULA_UNSUPPORTED, s->path, -1, "cannot save \"%s\" as %s: %s", s->path,
                      s->format->name, what);
}

/* ---- containers ---- */

/* Whole rows of at most 4 MiB; where one row is longer, as much of it as fits. */
static void choose_chunk(tegula__member *m) {
  int64_t room = tegula__max(1, LARGEST_CHUNK / m->stored.item_size);
  for (int32_t k = m->tiling->ndim - 1; k >= 0; k--) {
    m->chunk[k] = tegula__max(1, tegula__min(m->tiling->shape[k], room));
    room /= m->chunk[k];
  }
}

static tegula_status take_chunk(tegula__member *m, const tegula_save_options *o,
                                tegula_error *err) {
  const tegula_tiling *tiling = m->tiling;
  if (o->chunk == NULL) {
    choose_chunk(m);
    return TEGULA_OK;
  }
  if (o->chunk_ndim != tiling->ndim)
    return tegula__hint(
        err,
        tegula__fail(err, TEGULA_INVALID_ARGUMENT, m->saving->path, -1,
                     "cannot save \"%s\": a chunk shape of %d axes for an array of %d",
                     m->saving->path, o->chunk_ndim, tiling->ndim),
        "one length for each axis: the chunk of an array (1000, 20) may be (100, 20)");
  for (int32_t k = 0; k < tiling->ndim; k++) {
    if (o->chunk[k] < 1)
      return tegula__fail(err, TEGULA_INVALID_ARGUMENT, m->saving->path, -1,
                          "cannot save \"%s\": chunk length %" PRId64
                          " of axis %d, expected 1 or more",
                          m->saving->path, o->chunk[k], k);
    /* an axis without elements may grow */
    m->chunk[k] = tiling->shape[k] > 0 ? tegula__min(o->chunk[k], tiling->shape[k]) : o->chunk[k];
  }
  return TEGULA_OK;
}

/* What a codec says, with the path and what it was asked for. */
static tegula_status codec_says(const tegula__saving *s, const tegula_save_options *o,
                                tegula_status status, const tegula_error *why, tegula_error *err) {
  if (status == TEGULA_OK) return TEGULA_OK;
  tegula__fail(err, status, s->path, -1, "cannot save with the codec \"%.100s\": %.300s",
               o->codec != NULL ? o->codec : "", why->message);
  return why->hint[0] != '\0' ? tegula__hint(err, status, "%s", why->hint) : status;
}

static tegula_status check_chunk(const tegula__member *m, const tegula_save_options *o,
                                 tegula_error *err) {
  const tegula__saving *s = m->saving;
  int64_t bytes, most = s->format->container->largest_chunk;
  char shape[TEGULA__SHAPE_TEXT];
  tegula__shape_format(m->chunk, m->tiling->ndim, shape);
  if (!tegula__shape_bytes(m->chunk, m->tiling->ndim, m->stored.item_size, &bytes) || bytes > most)
    return tegula__hint(err,
                        tegula__fail(err, TEGULA_LIMIT_EXCEEDED, s->path, -1,
                                     "chunks of %s elements have more than the %" PRId64
                                     " bytes that %s allows",
                                     shape, most, s->format->name),
                        "give a smaller chunk shape");
  tegula_error why;
  tegula_status status = tegula__encode_check(m->filters, m->filter_count, bytes, &why);
  return codec_says(s, o, status, &why, err);
}

static tegula_status take_codec(tegula__member *m, const tegula_save_options *o,
                                tegula_error *err) {
  tegula_error why;
  if (o->codec == NULL || o->codec[0] == '\0') return TEGULA_OK;
  tegula_status status =
      tegula__chain_parse(o->codec, m->stored.item_size, m->filters, &m->filter_count, &why);
  return codec_says(m->saving, o, status, &why, err);
}

static tegula_status choose_layout(tegula__member *m, const tegula_save_options *o,
                                   tegula_error *err) {
  const tegula__saving *s = m->saving;
  FORWARD(take_codec(m, o, err));
  bool wanted = o->chunk != NULL || m->filter_count > 0;
  const char *layout = o->layout != NULL ? o->layout : wanted ? "chunked" : "contiguous";
  if (strcmp(layout, "contiguous") == 0)
    m->layout = TEGULA__CONTIGUOUS;
  else if (strcmp(layout, "chunked") == 0)
    m->layout = TEGULA__CHUNKED;
  else if (strcmp(layout, "virtual") == 0)
    m->layout = TEGULA__VIRTUAL;
  else
    return tegula__hint(err,
                        tegula__fail(err, TEGULA_INVALID_ARGUMENT, s->path, -1,
                                     "there is no layout \"%.60s\"", layout),
                        "contiguous, chunked or virtual");
  if (wanted && m->layout != TEGULA__CHUNKED)
    return refuse(s, "only a chunked dataset has chunks and codecs", err);
  if (m->layout == TEGULA__VIRTUAL && s->options.shards > 0)
    return refuse(s, "a virtual dataset is one file over others, not shards", err);
  if (m->layout == TEGULA__CONTIGUOUS) return TEGULA_OK;
  if (m->tiling->ndim == 0) return refuse(s, "a scalar is contiguous", err);
  if (m->layout == TEGULA__VIRTUAL) return TEGULA_OK;
  FORWARD(take_chunk(m, o, err));
  return check_chunk(m, o, err);
}

static tegula_status choose_container(tegula__member *m, const tegula_save_options *o,
                                      tegula_error *err) {
  const tegula__saving *s = m->saving;
  if (s->options.order == 'F') return refuse(s, "its datasets are in C order", err);
  const char *name = o->dataset != NULL ? o->dataset : "data";
  m->dataset = tegula__strprintf("%s%s", name[0] == '/' ? "" : "/", name);
  if (m->dataset == NULL) return tegula__out_of_memory(err, (int64_t)strlen(name));
  return choose_layout(m, o, err);
}

static tegula_status choose_plain(const tegula__saving *s, const tegula_save_options *o,
                                  tegula_error *err) {
  if (o->layout != NULL || o->chunk != NULL || (o->codec != NULL && o->codec[0] != '\0'))
    return refuse(s, "it has neither layouts nor chunks nor codecs", err);
  if (o->attribute_count > 0 || o->fill != NULL)
    return refuse(s, "it has neither attributes nor fill values", err);
  return o->dataset != NULL || s->member_count > 1
             ? refuse(s, "it holds one array, without a name", err)
             : TEGULA_OK;
}

static tegula_status choose_member(tegula__saving *s, tegula__member *m,
                                   const tegula__wanted *wanted, tegula_error *err) {
  const tegula_save_options *o = wanted->options;
  m->saving = s;
  m->dtype = m->stored = wanted->dtype;
  m->tiling = tegula__tiling_retain(wanted->tiling);
  m->descr = o->descr;
  m->fill = o->fill;
  m->attributes = o->attributes;
  m->attribute_count = o->attribute_count;
  m->origin = wanted->origin;
  tegula__manifest_init(&m->manifest);
  m->manifest.durable = m->saving->options.durable != 0;
  CHECK_ARGUMENT(o->byte_order == 0 || o->byte_order == '<' || o->byte_order == '>',
                 "byte_order must be '<' or '>'");
  CHECK_ARGUMENT(s->options.shards == 0 || m->tiling->ndim > 0,
                 "a scalar has no rows and cannot be cut into shards");
  if (m->stored.order != '|' && o->byte_order != 0) m->stored.order = (uint8_t)o->byte_order;
  m->file_count = s->options.shards == 0
                      ? 1
                      : tegula__min(s->options.shards, tegula__max(1, m->tiling->shape[0]));
  FORWARD(s->format->container != NULL ? choose_container(m, o, err) : choose_plain(s, o, err));
  if (m->layout != TEGULA__VIRTUAL) return TEGULA_OK;
  if (s->member_count > 1) return refuse(s, "a virtual dataset is saved alone", err);
  m->file_count = m->tiling->count;
  return TEGULA_OK;
}

static bool same_name_before(const tegula__saving *s, int64_t i) {
  for (int64_t k = 0; k < i; k++)
    if (s->members[k].dataset != NULL && strcmp(s->members[k].dataset, s->members[i].dataset) == 0)
      return true;
  return false;
}

tegula_status tegula__saving_choose(tegula__saving *s, const tegula__wanted *wanted, int64_t count,
                                    tegula_error *err) {
  FORWARD(tegula__saving_format(s->path, &s->options, &s->format, err));
  FORWARD(check_common(&s->options, err));
  const tegula__settings settings = {s->options.settings, s->options.setting_count};
  FORWARD(tegula__settings_check(&settings, TEGULA__SETTING_SAVE, err));
  FORWARD(tegula__settings_check_format(&settings, s->format->name, s->path, err));
  CHECK_ARGUMENT(count >= 1, "there is nothing to save");
  CHECK_ARGUMENT(count == 1 || s->options.shards == 0,
                 "several arrays go into one file, not into shards");
  s->members = calloc((size_t)count, sizeof *s->members);
  if (s->members == NULL) return tegula__out_of_memory(err, count * (int64_t)sizeof *s->members);
  s->member_count = count;
  for (int64_t i = 0; i < count; i++) {
    FORWARD(choose_member(s, &s->members[i], &wanted[i], err));
    if (count > 1 && same_name_before(s, i))
      return tegula__fail(err, TEGULA_INVALID_ARGUMENT, s->path, -1,
                          "two arrays are to be \"%s\" in \"%s\"", s->members[i].dataset, s->path);
  }
  return TEGULA_OK;
}
