/* raw files: an array's bytes without any header, described by the caller's options.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The size of the file must fit the description exactly: bytes that are too many or missing are an
 * error that counts them, because that is the only way in which a wrong description shows. */
#include <stdio.h>
#include <string.h>

#include "base/frame.h"
#include "format/format_priv.h"
#include "format/record_fields.h"

/* One row of the file, and what lies around it. */
typedef struct row_layout {
  int64_t prefix; /* bytes before each row */
  int64_t bytes;
  int64_t suffix;   /* behind each row; the last one may lack it */
  int64_t period;   /* of all three */
  int64_t trailing; /* bytes behind the last row; -1: any number */
} row_layout;

static const tegula__setting_row raw_settings[] = {
    {"raw.row_prefix", true, NULL, TEGULA__SETTING_OPEN, "bytes before each row"},
    {"raw.row_suffix", true, NULL, TEGULA__SETTING_OPEN,
     "bytes after each row; behind the last one they may be missing"},
    {"raw.trailing_bytes", true, "any", TEGULA__SETTING_OPEN,
     "bytes behind the last row: a number, or any"},
    {"raw.record_markers", false, "fortran4|fortran8", TEGULA__SETTING_OPEN | TEGULA__SETTING_SAVE,
     "each row is a record of Fortran's sequential files, with markers of 4 or 8 bytes"},
    {"raw.subrecord_bytes", true, NULL, TEGULA__SETTING_SAVE,
     "with record markers: the most bytes of a sub-record"},
    {.key = NULL},
};

static tegula_status bad_option(const tegula__source *source, tegula_error *err, const char *what) {
  return tegula__fail(err, TEGULA_INVALID_ARGUMENT, source->path, -1,
                      "cannot read \"%s\" as raw: %s", source->path, what);
}

/* ---- options ---- */

static tegula_status check_lengths(const tegula__source *source, const int64_t *shape, int32_t ndim,
                                   tegula_error *err) {
  if (ndim > 0 && shape == NULL) return bad_option(source, err, "the shape is NULL");
  for (int32_t k = 0; k < ndim; k++) {
    if (shape[k] < 0) return bad_option(source, err, "the shape has a negative entry");
  }
  return TEGULA_OK;
}

/* The caller's word, else that of the side file. */
static const char *setting(const tegula__describe_options *options, const char *key) {
  const char *said = tegula__settings_find(&options->settings, key);
  return said != NULL ? said : tegula__settings_find(&options->besides, key);
}

static int64_t setting_number(const tegula__describe_options *options, const char *key) {
  int64_t value = 0;
  const char *said = setting(options, key);
  return said != NULL && tegula__setting_number(said, &value) ? value : 0;
}

static row_layout read_layout(const tegula__describe_options *options) {
  const char *trailing = setting(options, "raw.trailing_bytes");
  bool any = trailing != NULL && strcmp(trailing, "any") == 0;
  int64_t suffix = setting_number(options, "raw.row_suffix");
  return (row_layout){
      .prefix = setting_number(options, "raw.row_prefix"),
      .suffix = options->row_gap > 0 ? options->row_gap : suffix,
      .trailing = any ? -1 : setting_number(options, "raw.trailing_bytes"),
  };
}

static tegula_status check_layout_options(const tegula__source *source,
                                          const tegula__describe_options *options,
                                          tegula_error *err) {
  if (options->offset < 0) return bad_option(source, err, "the offset is negative");
  if (options->row_gap < 0) return bad_option(source, err, "the row gap is negative");
  if (options->order != 0 && options->order != 'C' && options->order != 'F')
    return bad_option(source, err, "the order is neither C nor F");
  if (options->byte_order != 0 && options->byte_order != '<' && options->byte_order != '>')
    return bad_option(source, err, "the byte order is neither < nor >");
  row_layout row = read_layout(options);
  if (setting(options, "raw.record_markers") != NULL) {
    if (row.prefix > 0 || row.suffix > 0)
      return bad_option(source, err, "record markers leave no room for bytes around rows");
    if (options->order == 'F' || options->shape_ndim == 0)
      return bad_option(source, err, "record markers need order C and at least one axis");
  }
  if (options->row_gap > 0 && setting_number(options, "raw.row_suffix") > 0)
    return bad_option(source, err, "both row_gap and raw.row_suffix are given");
  if ((row.prefix > 0 || row.suffix > 0) && options->order == 'F')
    return bad_option(source, err, "bytes around rows, or a gap between them, need order C");
  if ((row.prefix > 0 || row.suffix > 0) && options->shape_ndim == 0)
    return bad_option(source, err, "a scalar has no rows to put a gap between");
  if (row.trailing < 0 && options->shape_ndim < 0)
    return tegula__hint(
        err,
        bad_option(
            source, err,
            "raw.trailing_bytes is any, so the number of rows does not follow from its size"),
        "give the whole shape instead of row_shape, or the number of trailing bytes");
  return TEGULA_OK;
}

static tegula_status check_options(const tegula__source *source,
                                   const tegula__describe_options *options, tegula_error *err) {
  FORWARD(tegula__format_check_dataset(options->dataset, TEGULA__FORMAT_ONLY_DATASET, source->path,
                                       err));
  if (!options->has_dtype)
    return tegula__hint(err, bad_option(source, err, "its dtype is not given"),
                        "say what is stored, for example dtype f4, or describe it in "
                        "shard_meta.json beside the file");
  if (!tegula__dtype_valid(options->dtype))
    return bad_option(source, err, "the dtype is not valid");
  if (options->shape_ndim >= 0 && options->row_ndim >= 0)
    return tegula__hint(
        err, bad_option(source, err, "both shape and row_shape are given"),
        "shape is that of the whole file, row_shape that of one row; give one of them");
  if (options->shape_ndim > TEGULA_MAX_DIMS || options->row_ndim >= TEGULA_MAX_DIMS)
    return bad_option(source, err, "more than 64 axes");
  FORWARD(check_lengths(source, options->shape, options->shape_ndim, err));
  FORWARD(check_lengths(source, options->row_shape, options->row_ndim, err));
  return check_layout_options(source, options, err);
}

/* ---- sizes ---- */

static tegula_status missing(const tegula__source *source, int64_t expected, const char *what,
                             tegula_error *err) {
  return tegula__hint(
      err,
      tegula__fail(
          err, TEGULA_SHORT_FILE, source->path, source->size,
          "\"%s\" is too short for %s: expected %lld bytes, found %lld (%lld bytes missing)",
          source->path, what, (long long)expected, (long long)source->size,
          (long long)(expected - source->size)),
      "the file was cut, or shape, dtype or offset are not what was written");
}

static tegula_status too_many(const tegula__source *source, int64_t expected, const char *what,
                              tegula_error *err) {
  return tegula__hint(
      err,
      tegula__fail(
          err, TEGULA_CORRUPT, source->path, expected,
          "\"%s\" is too long for %s: expected %lld bytes, found %lld (%lld bytes too many)",
          source->path, what, (long long)expected, (long long)source->size,
          (long long)(source->size - expected)),
      "shape, dtype or offset are not what was written; for a header in front give its size as "
      "offset");
}

static tegula_status overflows(const tegula__source *source, tegula_error *err) {
  return bad_option(source, err,
                    "shape, dtype, offset and the bytes around rows are together larger than 2^63 "
                    "bytes");
}

/* Sizes of one row, whose axes are shape[0 .. ndim). */
static tegula_status measure_row(const tegula__source *source,
                                 const tegula__describe_options *options, const int64_t *shape,
                                 int32_t ndim, row_layout *row, tegula_error *err) {
  *row = read_layout(options);
  bool good = tegula__shape_bytes(shape, ndim, options->dtype.item_size, &row->bytes) &&
              tegula__add(row->bytes, row->prefix, &row->period) &&
              tegula__add(row->period, row->suffix, &row->period);
  return good ? TEGULA_OK : overflows(source, err);
}

/* ---- records ---- */

/* gfortran's longest sub-record: longer records have several. */
#define MOST_SUBRECORD INT64_C(2147483639)

static uint8_t marker_bytes(const char *kind) { return strcmp(kind, "fortran8") == 0 ? 8 : 4; }

static uint8_t marker_order(tegula_dtype dtype, char byte_order) {
  if (byte_order != 0) return (uint8_t)byte_order;
  return dtype.order != '|' ? dtype.order : TEGULA__NATIVE_ORDER;
}

static tegula_status wrong_marker(const tegula__source *source, const tegula__frame *frame,
                                  int64_t found, tegula_error *err) {
  return tegula__hint(
      err,
      tegula__fail(err, TEGULA_CORRUPT, source->path, frame->first,
                   "\"%s\": the record marker at byte %lld is %lld, expected %lld", source->path,
                   (long long)frame->first, (long long)found, (long long)frame->record),
      "row_shape, dtype, byte order, offset or the size of markers are not what was written");
}

/* The first marker says whether records consist of sub-records, and how long these are; all others
 * are compared when data is read. `row` becomes that of the bytes with their markers. */
static tegula_status find_records(const tegula__source *source,
                                  const tegula__describe_options *options, row_layout *row,
                                  tegula__frame *frame, tegula_error *err) {
  const char *kind = setting(options, "raw.record_markers");
  char stored[8];
  if (kind == NULL) return TEGULA_OK;
  if (row->bytes == 0) return bad_option(source, err, "records without bytes are no rows");
  *frame = (tegula__frame){.first = options->offset,
                           .record = row->bytes,
                           .most = row->bytes,
                           .marker = marker_bytes(kind),
                           .order = marker_order(options->dtype, options->byte_order)};
  int64_t least = options->offset;
  if (!tegula__add(least, frame->marker, &least)) return overflows(source, err);
  if (source->size >= least) {
    FORWARD(tegula__source_read(source, options->offset, stored, (size_t)frame->marker, err));
    int64_t found = tegula__marker_get(frame, stored);
    if (found < 0 && found > -row->bytes) frame->most = -found;
    if (frame->most == row->bytes && found != row->bytes)
      return wrong_marker(source, frame, found, err);
  }
  if (!tegula__frame_period(frame, &row->bytes)) return overflows(source, err);
  row->period = row->bytes;
  return TEGULA_OK;
}

/* Bytes of `rows` rows with what is around them, but for the suffix of the last. */
static bool rows_bytes(const row_layout *row, int64_t rows, int64_t *bytes) {
  RETURN_IF(!tegula__mul(rows, row->period, bytes), false);
  if (rows > 0) *bytes -= row->suffix;
  return true;
}

/* The whole shape is given: the size must be what follows from it. */
static tegula_status check_given_shape(const tegula__source *source,
                                       const tegula__describe_options *options,
                                       const row_layout *row, const tegula__manifest *out,
                                       tegula_error *err) {
  int64_t rows = out->ndim > 0 ? out->shape[0] : 1, bytes = 0, expected = 0, with_suffix = 0,
          dense = 0, trailing = tegula__max(0, row->trailing);
  if (!tegula__shape_bytes(out->shape, out->ndim, options->dtype.item_size, &dense) ||
      !rows_bytes(row, rows, &bytes) || !tegula__add(options->offset, bytes, &expected) ||
      !tegula__add(expected, trailing, &expected) ||
      !tegula__add(expected, rows > 0 ? row->suffix : 0, &with_suffix))
    return overflows(source, err);
  char shape[TEGULA__SHAPE_TEXT], what[TEGULA__SHAPE_TEXT + 32];
  tegula__shape_format(out->shape, out->ndim, shape);
  snprintf(what, sizeof what, "the shape %s", shape);
  if (source->size < expected) return missing(source, expected, what, err);
  if (row->trailing >= 0 && source->size > expected && source->size != with_suffix)
    return too_many(source, expected, what, err);
  return TEGULA_OK;
}

static tegula_status leftover(const tegula__source *source, const row_layout *row, int64_t rows,
                              int64_t used, tegula_error *err) {
  int64_t many = source->size - row->trailing - used,
          one_more = (rows > 0 ? row->period : row->prefix + row->bytes) - many;
  return tegula__hint(
      err,
      tegula__fail(err, TEGULA_CORRUPT, source->path, used,
                   "\"%s\" has %lld bytes too many behind %lld whole rows of %lld bytes (%lld "
                   "bytes missing for one more)",
                   source->path, (long long)many, (long long)rows, (long long)row->bytes,
                   (long long)one_more),
      "the file was cut, or row_shape, dtype, offset, row_gap or the settings of raw are not what "
      "was written");
}

/* The number of rows from the size. Example: rows of 10 bytes with gaps of 2: 22 and 24 bytes are 2
 * rows, 23 is an error. */
static tegula_status count_rows(const tegula__source *source,
                                const tegula__describe_options *options, const row_layout *row,
                                int64_t *rows, tegula_error *err) {
  int64_t least = 0;
  if (!tegula__add(options->offset, row->trailing, &least)) return overflows(source, err);
  if (source->size < least)
    return missing(source, least, row->trailing > 0 ? "offset and trailing bytes" : "its offset",
                   err);
  if (row->bytes == 0)
    return tegula__hint(
        err,
        bad_option(source, err,
                   "its rows have no bytes, so their number does not follow from the file's size"),
        "give the whole shape instead of row_shape");
  int64_t data = source->size - least, padded = 0;
  if (!tegula__add(data, row->suffix, &padded)) return overflows(source, err);
  int64_t rest = padded % row->period;
  *rows = padded / row->period;
  /* without a row only an empty file gets here */
  if (rest == 0 || rest == row->suffix) return TEGULA_OK;
  /* at most `data`; with the offset in front of it, at most the size */
  int64_t whole = *rows > 0 ? *rows * row->period - row->suffix : 0;
  return leftover(source, row, *rows, options->offset + whole, err);
}

/* ---- describe ---- */

static tegula_status find_shape(const tegula__source *source,
                                const tegula__describe_options *options, row_layout *row,
                                tegula__manifest *out, tegula_error *err) {
  if (options->shape_ndim >= 0) {
    out->ndim = options->shape_ndim;
    if (out->ndim > 0) memcpy(out->shape, options->shape, (size_t)out->ndim * sizeof *out->shape);
    FORWARD(
        measure_row(source, options, out->shape + 1, out->ndim > 0 ? out->ndim - 1 : 0, row, err));
    FORWARD(find_records(source, options, row, &out->frame, err));
    return check_given_shape(source, options, row, out, err);
  }
  int32_t row_ndim = options->row_ndim > 0 ? options->row_ndim : 0;
  out->ndim = row_ndim + 1;
  if (row_ndim > 0)
    memcpy(out->shape + 1, options->row_shape, (size_t)row_ndim * sizeof *out->shape);
  FORWARD(measure_row(source, options, out->shape + 1, row_ndim, row, err));
  FORWARD(find_records(source, options, row, &out->frame, err));
  return count_rows(source, options, row, &out->shape[0], err);
}

static tegula_status raw_describe(const tegula__source *source,
                                  const tegula__describe_options *options, tegula__manifest *out,
                                  tegula_error *err) {
  static const int64_t origin[TEGULA_MAX_DIMS];
  int64_t strides[TEGULA_MAX_DIMS];
  row_layout row;
  FORWARD(check_options(source, options, err));
  FORWARD(find_shape(source, options, &row, out, err));
  tegula_dtype dtype = options->dtype;
  if (options->byte_order != 0 && dtype.order != '|') dtype.order = (uint8_t)options->byte_order;
  out->dtype = tegula_dtype_native(dtype);
  if (options->record != NULL)
    FORWARD(tegula__record_read(options->record, &dtype, &out->descr, err));
  out->name = TEGULA__FORMAT_ONLY_DATASET;
  tegula__dense_strides(out->shape, out->ndim, dtype.item_size, options->order == 'F' ? 'F' : 'C',
                        strides);
  if (row.prefix > 0 || row.suffix > 0) strides[0] = tegula__max(row.period, 1);
  int64_t first = 0;
  if (!tegula__add(options->offset, row.prefix, &first)) return overflows(source, err);
  return tegula__manifest_add(out, 0, first, origin, out->shape, strides, dtype.order, err);
}

/* ---- save ---- */

static tegula_status cannot_save(tegula_error *err, const char *what) {
  return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1, "cannot save with record markers: %s",
                      what);
}

/* Records as gfortran writes them: longer ones than its limit have sub-records where markers have
 * 4 bytes. */
static tegula_status lay_out_records(const tegula__layout_request *request, const char *kind,
                                     tegula_error *err) {
  uint8_t marker = marker_bytes(kind);
  int64_t most = tegula__settings_number(&request->settings, "raw.subrecord_bytes",
                                         marker == 4 ? MOST_SUBRECORD : INT64_MAX),
          bytes = 0;
  if (most < 1 || (marker == 4 && most > MOST_SUBRECORD))
    return cannot_save(err, "raw.subrecord_bytes must be from 1 to 2147483639");
  if (request->order == 'F' || request->ndim == 0)
    return cannot_save(err, "order C and at least one axis are needed");
  if (!tegula__shape_bytes(request->shape + 1, request->ndim - 1, request->dtype.item_size,
                           &bytes) ||
      bytes == 0)
    return cannot_save(err, "rows without bytes are no records");
  *request->frame = (tegula__frame){.record = bytes,
                                    .most = tegula__min(most, bytes),
                                    .marker = marker,
                                    .order = marker_order(request->dtype, request->byte_order)};
  return TEGULA_OK;
}

static tegula_status raw_lay_out(const tegula__layout_request *request, tegula__buffer *header,
                                 int64_t *strides, tegula_error *err) {
  (void)header;
  const char *kind = tegula__settings_find(&request->settings, "raw.record_markers");
  if (kind != NULL)
    FORWARD(lay_out_records(request, kind, err));
  else if (tegula__settings_find(&request->settings, "raw.subrecord_bytes") != NULL)
    return cannot_save(err, "raw.subrecord_bytes is given without raw.record_markers");
  tegula__dense_strides(request->shape, request->ndim, request->dtype.item_size,
                        request->order == 'F' ? 'F' : 'C', strides);
  return TEGULA_OK;
}

/* docs/formats.md, shard_meta.json: what the files do not say themselves. */
static bool raw_side_file(const tegula__layout_request *request, const char *const *names,
                          const int64_t *rows, int64_t count, tegula__buffer *out) {
  char dtype[TEGULA_DTYPE_TEXT];
  tegula_dtype_format(request->dtype, dtype);
  const char *kind = tegula__settings_find(&request->settings, "raw.record_markers");
  bool good = tegula__buffer_printf(out, "{\"dtype\": ") && tegula__buffer_json_text(out, dtype) &&
              (kind == NULL ||
               tegula__buffer_printf(out, ", \"byte_order\": \"%c\", \"record_markers\": \"%s\"",
                                     marker_order(request->dtype, request->byte_order), kind)) &&
              tegula__buffer_printf(out, ", \"order\": \"%c\", \"row_shape\": [", request->order);
  for (int32_t k = 1; good && k < request->ndim; k++)
    good = tegula__buffer_printf(out, "%s%lld", k > 1 ? ", " : "", (long long)request->shape[k]);
  good = good && tegula__buffer_printf(out, "], \"rows\": {");
  for (int64_t i = 0; good && i < count; i++)
    good = tegula__buffer_printf(out, "%s\n  ", i > 0 ? "," : "") &&
           tegula__buffer_json_text(out, names[i]) &&
           tegula__buffer_printf(out, ": %lld", (long long)rows[i]);
  return good && tegula__buffer_printf(out, "}}\n");
}

const tegula__format tegula__format_raw = {
    .name = "raw",
    .settings = raw_settings,
    .suffixes = (const char *const[]){".raw", NULL},
    .magic = NULL,
    .magic_size = 0,
    .describe = raw_describe,
    .lay_out = raw_lay_out,
    .side_file = raw_side_file,
};
