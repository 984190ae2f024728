/* npy headers as numpy.save writes them (numpy.lib.format, numpy 1.23 and later), byte for byte.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The version is the oldest that can hold the header: 1.0 for Latin-1 up to 65,535 bytes, 2.0 above
 * that, 3.0 for other names. Data starts at a multiple of 64 bytes, and there is room for the
 * length of the first stored axis to grow to 21 digits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/npy/fields.h"
#include "format/npy/npy_priv.h"

enum { ALIGNMENT = 64, GROWTH_DIGITS = 21 };

/* ---- descr ---- */

/* A description from the caller goes through the parser of headers, and into the file in numpy's
 * own spelling. */
static tegula_status put_record(const tegula__layout_request *request, tegula__buffer *text,
                                tegula_error *err) {
  tegula__literal literal;
  tegula__descr descr = {0};
  tegula_status status =
      tegula__literal_parse(&literal, request->descr, strlen(request->descr), true, NULL, 0, err);
  if (status == TEGULA_OK) status = tegula__descr_read(&literal, 0, &descr, err);
  if (status == TEGULA_OK) status = tegula__record_check(&descr, request->dtype, err);
  if (status == TEGULA_OK && !tegula__buffer_append(text, descr.record, strlen(descr.record)))
    status = tegula__out_of_memory(err, (int64_t)strlen(descr.record));
  free(descr.record);
  tegula__literal_free(&literal);
  return status;
}

static tegula_status put_dtype(const tegula__layout_request *request, tegula__buffer *text,
                               tegula_error *err) {
  if (request->dtype.kind == 'E')
    return tegula__hint(err,
                        tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                                     "cannot save bfloat16 as npy, which has no name for it"),
                        "save it as raw, or as its bytes with the dtype u2");
  if (request->descr != NULL) return put_record(request, text, err);
  char dtype[TEGULA_DTYPE_TEXT];
  tegula_dtype_format(request->dtype, dtype);
  return tegula__buffer_printf(text, "'%s'", dtype) ? TEGULA_OK
                                                    : tegula__out_of_memory(err, TEGULA_DTYPE_TEXT);
}

/* ---- the dictionary ---- */

/* numpy says fortran_order only where it makes a difference: two axes or more with more than one
 * element, and no empty one. */
static bool is_fortran(const tegula__layout_request *request) {
  RETURN_IF(request->order != 'F', false);
  int long_axes = 0;
  for (int32_t k = 0; k < request->ndim; k++) {
    RETURN_IF(request->shape[k] == 0, false);
    long_axes += request->shape[k] > 1;
  }
  return long_axes > 1;
}

/* Spaces that let a program change the length of the growing axis in place. */
static int growth_room(const tegula__layout_request *request, bool fortran) {
  RETURN_IF(request->ndim == 0, 0);
  int digits =
      snprintf(NULL, 0, "%lld", (long long)request->shape[fortran ? request->ndim - 1 : 0]);
  return GROWTH_DIGITS - digits;
}

static bool put_shape(const tegula__layout_request *request, tegula__buffer *text) {
  bool good = tegula__buffer_append(text, "(", 1);
  for (int32_t k = 0; good && k < request->ndim; k++)
    good = tegula__buffer_printf(text, k > 0 ? ", %lld" : "%lld", (long long)request->shape[k]);
  return good && tegula__buffer_printf(text, "%s", request->ndim == 1 ? ",)" : ")");
}

static tegula_status put_dictionary(const tegula__layout_request *request, bool fortran,
                                    tegula__buffer *text, tegula_error *err) {
  if (!tegula__buffer_printf(text, "{'descr': ")) return tegula__out_of_memory(err, 16);
  FORWARD(put_dtype(request, text, err));
  bool good =
      tegula__buffer_printf(text, ", 'fortran_order': %s, 'shape': ", fortran ? "True" : "False") &&
      put_shape(request, text) &&
      tegula__buffer_printf(text, ", }%*s", growth_room(request, fortran), "");
  return good ? TEGULA_OK : tegula__out_of_memory(err, (int64_t)text->size + 256);
}

/* ---- encoding and padding ---- */

/* UTF-8 to Latin-1 in place; false, and nothing changed, when a character has no place in it. */
static bool to_latin1(tegula__buffer *text) {
  for (size_t i = 0; i < text->size; i++) {
    if ((unsigned char)text->data[i] >= 0xC4) return false; /* the lead byte of U+0100 and above */
  }
  size_t used = 0;
  for (size_t i = 0; i < text->size; i++) {
    unsigned char byte = (unsigned char)text->data[i];
    if (byte >= 0xC2) byte = (unsigned char)(byte << 6 | ((unsigned char)text->data[++i] & 0x3F));
    text->data[used++] = (char)byte;
  }
  text->size = used;
  return true;
}

/* numpy always pads by 1 to 64 spaces, 64 where none was needed. */
static size_t padding(size_t prefix, size_t text) {
  return ALIGNMENT - (prefix + text + 1) % ALIGNMENT;
}

static tegula_status put_file_header(const tegula__buffer *text, bool latin1,
                                     tegula__buffer *header, tegula_error *err) {
  const size_t short_prefix = TEGULA__NPY_MAGIC_SIZE + 2 + 2,
               long_prefix = TEGULA__NPY_MAGIC_SIZE + 2 + 4;
  bool short_fits = latin1 && text->size + 1 + padding(short_prefix, text->size) <= UINT16_MAX;
  size_t prefix = short_fits ? short_prefix : long_prefix;
  size_t spaces = padding(prefix, text->size), length = text->size + spaces + 1;
  if (length > (size_t)TEGULA__NPY_MOST_HEADER)
    return tegula__fail(err, TEGULA_LIMIT_EXCEEDED, NULL, -1,
                        "the npy header would have %zu bytes: the limit is %lld", length,
                        (long long)TEGULA__NPY_MOST_HEADER);
  unsigned char start[12] = TEGULA__NPY_MAGIC;
  start[6] = short_fits ? 1 : latin1 ? 2 : 3;
  start[7] = 0;
  for (size_t i = 8; i < prefix; i++) start[i] = (unsigned char)(length >> 8 * (i - 8));
  bool good = tegula__buffer_append(header, start, prefix) &&
              tegula__buffer_append(header, text->data, text->size) &&
              tegula__buffer_printf(header, "%*s\n", (int)spaces, "");
  return good ? TEGULA_OK : tegula__out_of_memory(err, (int64_t)(prefix + length));
}

tegula_status tegula__npy_lay_out(const tegula__layout_request *request, tegula__buffer *header,
                                  int64_t *strides, tegula_error *err) {
  bool fortran = is_fortran(request);
  tegula__buffer text;
  tegula__buffer_init(&text, (size_t)8 * TEGULA__NPY_MOST_HEADER);
  tegula_status status;
  FORWARD_WITH(status, put_dictionary(request, fortran, &text, err));
  bool latin1 = to_latin1(&text);
  FORWARD_WITH(status, put_file_header(&text, latin1, header, err));
  tegula__dense_strides(request->shape, request->ndim, request->dtype.item_size,
                        fortran ? 'F' : 'C', strides);
done:
  tegula__buffer_free(&text);
  return status;
}
