/* What the user says of a file against what the file says of itself; nothing that was said is
 * passed over.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "format/format_priv.h"
#include "format/record_fields.h"

tegula_status tegula__format_check_dataset(const char *dataset, const char *only, const char *path,
                                           tegula_error *err) {
  RETURN_IF(dataset == NULL, TEGULA_OK);
  RETURN_IF(strcmp(dataset + (dataset[0] == '/'), only + (only[0] == '/')) == 0, TEGULA_OK);
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_NOT_FOUND, path, -1,
                                   "no dataset \"%s\" in \"%s\", which holds one array only",
                                   dataset, path),
                      "leave the dataset's name out, or say \"%s\"", only);
}

tegula_status tegula__format_check_raw_only(const tegula__source *source,
                                            const tegula__describe_options *options, const char *is,
                                            const char *format, tegula_error *err) {
  const char *which = options->shape_ndim >= 0   ? "shape"
                      : options->row_ndim >= 0   ? "row_shape"
                      : options->offset != 0     ? "offset"
                      : options->row_gap != 0    ? "row_gap"
                      : options->order != 0      ? "order"
                      : options->byte_order != 0 ? "byte_order"
                                                 : NULL;
  RETURN_IF(which == NULL, TEGULA_OK);
  return tegula__hint(
      err,
      tegula__fail(err, TEGULA_INVALID_ARGUMENT, source->path, -1,
                   "option %s is for raw files, but \"%s\" is %s", which, source->path, is),
      "leave %s out, or say format raw if the file is not to be read as %s", which, format);
}

/* MISMATCH where the records are not those that were asked for. */
static tegula_status check_record(const tegula__source *source, const char *record,
                                  const char *descr, tegula_error *err) {
  tegula_dtype ignored;
  char *asked;
  RETURN_IF(record == NULL, TEGULA_OK);
  FORWARD(tegula__record_read(record, &ignored, &asked, err));
  tegula_status status = TEGULA_OK;
  if (descr == NULL || strcmp(asked, descr) != 0)
    status = tegula__fail(err, TEGULA_MISMATCH, source->path, -1,
                          "the records of \"%s\" are %.200s, but %.200s was asked for",
                          source->path, descr != NULL ? descr : "not described", asked);
  free(asked);
  return status;
}

tegula_status tegula__format_check_dtype(const tegula__source *source,
                                         const tegula__describe_options *options,
                                         tegula_dtype dtype, const char *descr, const char *format,
                                         tegula_error *err) {
  if (!options->has_dtype) return TEGULA_OK;
  if (tegula_dtype_same(options->dtype, dtype))
    return check_record(source, options->record, descr, err);
  char expected[TEGULA_DTYPE_TEXT], found[TEGULA_DTYPE_TEXT];
  tegula_dtype_format(options->dtype, expected);
  tegula_dtype_format(dtype, found);
  return tegula__hint(
      err,
      tegula__fail(err, TEGULA_MISMATCH, source->path, -1,
                   "the dtype of \"%s\" is %s, but %s was asked for", source->path, found,
                   expected),
      "dtype says what is stored and converts nothing; for %s files it can be left out", format);
}
