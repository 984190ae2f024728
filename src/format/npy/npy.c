/* npy files: numpy's format for one array, versions 1.0, 2.0 and 3.0.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source of the format: NEP 1 and numpy.lib.format. A file is a magic text, a version, the length
 * of the header, the header (a Python literal) and the data. Nothing in the header is believed
 * before it has been compared with the file's size. Headers that this file writes (write.c) equal
 * numpy's byte for byte. */
#include <stdlib.h>
#include <string.h>

#include "format/format_priv.h"
#include "format/npy/descr.h"
#include "format/npy/npy_priv.h"

typedef struct preamble {
  int major;
  int64_t header_offset;
  int64_t header_size;
} preamble;

typedef struct header_nodes {
  uint32_t descr;
  uint32_t fortran_order;
  uint32_t shape;
} header_nodes;

/* ---- options ---- */

static tegula_status check_options(const tegula__source *source,
                                   const tegula__describe_options *options, tegula_error *err) {
  FORWARD(tegula__format_check_dataset(options->dataset, TEGULA__FORMAT_ONLY_DATASET, source->path,
                                       err));
  return tegula__format_check_raw_only(source, options, "an npy file, whose header says it", "npy",
                                       err);
}

/* ---- the bytes in front of the header ---- */

static tegula_status read_version(const tegula__source *source, int *major, tegula_error *err) {
  unsigned char bytes[8];
  FORWARD(tegula__source_read(source, 0, bytes, sizeof bytes, err));
  if (memcmp(bytes, TEGULA__NPY_MAGIC, TEGULA__NPY_MAGIC_SIZE) != 0)
    return tegula__hint(err,
                        tegula__fail(err, TEGULA_CORRUPT, source->path, 0,
                                     "\"%s\" is not an npy file: it does not begin with \\x93NUMPY",
                                     source->path),
                        "for bytes without an npy header say format raw, and the dtype");
  bool known = bytes[6] >= 1 && bytes[6] <= 3 && bytes[7] == 0;
  if (!known)
    return tegula__fail(err, TEGULA_UNSUPPORTED, source->path, 6,
                        "\"%s\" has npy version %d.%d: expected 1.0, 2.0 or 3.0", source->path,
                        bytes[6], bytes[7]);
  *major = bytes[6];
  return TEGULA_OK;
}

static tegula_status read_preamble(const tegula__source *source, preamble *out, tegula_error *err) {
  unsigned char length[4] = {0};
  FORWARD(read_version(source, &out->major, err));
  size_t length_size = out->major == 1 ? 2 : 4;
  FORWARD(tegula__source_read(source, TEGULA__NPY_MAGIC_SIZE + 2, length, length_size, err));
  out->header_offset = TEGULA__NPY_MAGIC_SIZE + 2 + (int64_t)length_size;
  out->header_size =
      length[0] | (int64_t)length[1] << 8 | (int64_t)length[2] << 16 | (int64_t)length[3] << 24;
  if (out->header_size > TEGULA__NPY_MOST_HEADER)
    return tegula__fail(err, TEGULA_LIMIT_EXCEEDED, source->path, TEGULA__NPY_MAGIC_SIZE + 2,
                        "\"%s\" says that its header has %lld bytes: the limit is %lld",
                        source->path, (long long)out->header_size,
                        (long long)TEGULA__NPY_MOST_HEADER);
  int64_t end = out->header_offset + out->header_size;
  RETURN_IF(end <= source->size, TEGULA_OK);
  return tegula__hint(
      err,
      tegula__fail(err, TEGULA_SHORT_FILE, source->path, source->size,
                   "\"%s\" is cut within its header: expected at least %lld bytes, found %lld",
                   source->path, (long long)end, (long long)source->size),
      "write the file again; whatever made it did not finish");
}

/* ---- the header ---- */

static tegula_status note_key(const tegula__literal *literal, uint32_t key, uint32_t value,
                              header_nodes *out, tegula_error *err) {
  uint32_t *place = tegula__literal_is(literal, key, "descr")           ? &out->descr
                    : tegula__literal_is(literal, key, "fortran_order") ? &out->fortran_order
                    : tegula__literal_is(literal, key, "shape")         ? &out->shape
                                                                        : NULL;
  char text[64];
  if (!tegula__literal_ascii(literal, key, text, sizeof text)) strcpy(text, "?");
  if (place == NULL)
    return tegula__literal_fail(literal, key, TEGULA_CORRUPT, err, "unknown key \"%s\"", text);
  if (*place != 0)
    return tegula__literal_fail(literal, key, TEGULA_CORRUPT, err, "key \"%s\" is there twice",
                                text);
  *place = value;
  return TEGULA_OK;
}

/* Exactly the three keys that the format has, once each. */
static tegula_status find_keys(const tegula__literal *literal, header_nodes *out,
                               tegula_error *err) {
  *out = (header_nodes){0};
  if (literal->nodes[0].kind != TEGULA__LITERAL_DICT)
    return tegula__literal_fail(literal, 0, TEGULA_CORRUPT, err, "it is no dictionary");
  for (uint32_t key = 1; key < literal->nodes[0].end;) {
    uint32_t value = literal->nodes[key].end;
    FORWARD(note_key(literal, key, value, out, err));
    key = literal->nodes[value].end;
  }
  const char *missing = out->descr == 0           ? "descr"
                        : out->fortran_order == 0 ? "fortran_order"
                        : out->shape == 0         ? "shape"
                                                  : NULL;
  RETURN_IF(missing == NULL, TEGULA_OK);
  return tegula__literal_fail(literal, 0, TEGULA_CORRUPT, err, "key \"%s\" is missing", missing);
}

static tegula_status read_order(const tegula__literal *literal, uint32_t node, char *order,
                                tegula_error *err) {
  tegula__literal_kind kind = literal->nodes[node].kind;
  if (kind != TEGULA__LITERAL_TRUE && kind != TEGULA__LITERAL_FALSE)
    return tegula__literal_fail(literal, node, TEGULA_CORRUPT, err,
                                "fortran_order is neither True nor False");
  *order = kind == TEGULA__LITERAL_TRUE ? 'F' : 'C';
  return TEGULA_OK;
}

static tegula_status read_length(const tegula__literal *literal, uint32_t node, int64_t *out,
                                 tegula_error *err) {
  const tegula__literal_node *length = &literal->nodes[node];
  if (length->kind != TEGULA__LITERAL_INT)
    return tegula__literal_fail(literal, node, TEGULA_CORRUPT, err,
                                "shape has an entry that is no integer");
  if (length->value < 0)
    return tegula__literal_fail(literal, node, TEGULA_CORRUPT, err, "shape has a negative entry");
  if (!length->fits)
    return tegula__literal_fail(literal, node, TEGULA_CORRUPT, err, "shape has an entry above %lld",
                                (long long)INT64_MAX);
  *out = length->value;
  return TEGULA_OK;
}

static tegula_status read_shape(const tegula__literal *literal, uint32_t node,
                                tegula__manifest *out, tegula_error *err) {
  const tegula__literal_node *shape = &literal->nodes[node];
  if (shape->kind != TEGULA__LITERAL_TUPLE)
    return tegula__literal_fail(literal, node, TEGULA_CORRUPT, err,
                                "shape is no tuple of integers");
  if (shape->count > TEGULA_MAX_DIMS)
    return tegula__literal_fail(literal, node, TEGULA_LIMIT_EXCEEDED, err,
                                "shape has %u axes: the limit is %d", shape->count,
                                TEGULA_MAX_DIMS);
  out->ndim = (int32_t)shape->count;
  uint32_t length = node + 1;
  for (int32_t k = 0; k < out->ndim; k++) {
    FORWARD(read_length(literal, length, &out->shape[k], err));
    length = literal->nodes[length].end;
  }
  return TEGULA_OK;
}

/* What the file says against what the user says. Two opaque bytes are bfloat16 on the user's word
 * only. */
static tegula_status agree_dtype(const tegula__source *source,
                                 const tegula__describe_options *options, tegula__descr *descr,
                                 tegula_error *err) {
  bool opaque_pair =
      descr->dtype.kind == 'V' && descr->dtype.item_size == 2 && descr->record == NULL;
  if (options->has_dtype && options->dtype.kind == 'E' && opaque_pair) {
    descr->dtype = options->dtype;
    if (descr->void_order != '|') descr->dtype.order = descr->void_order;
    return TEGULA_OK;
  }
  return tegula__format_check_dtype(source, options, descr->dtype, descr->record, "npy", err);
}

/* The array must fit into the file; what follows it is left alone, as numpy does. */
static tegula_status check_size(const tegula__source *source, const tegula__manifest *manifest,
                                uint32_t item_size, int64_t offset, tegula_error *err) {
  int64_t bytes = 0, end = 0;
  if (!tegula__shape_bytes(manifest->shape, manifest->ndim, item_size, &bytes) ||
      !tegula__add(offset, bytes, &end)) {
    char text[TEGULA__SHAPE_TEXT];
    tegula__shape_format(manifest->shape, manifest->ndim, text);
    return tegula__fail(
        err, TEGULA_CORRUPT, source->path, -1,
        "header of \"%s\": an array of shape %s with items of %u bytes is larger than 2^63 bytes",
        source->path, text, item_size);
  }
  RETURN_IF(end <= source->size, TEGULA_OK);
  return tegula__hint(err,
                      tegula__fail(err, TEGULA_SHORT_FILE, source->path, source->size,
                                   "\"%s\" is too short: expected %lld bytes (%lld of data behind "
                                   "a header of %lld), found %lld",
                                   source->path, (long long)end, (long long)bytes,
                                   (long long)offset, (long long)source->size),
                      "the file was cut or is still being written; copy or write it again");
}

static tegula_status fill_manifest(const tegula__source *source, tegula__descr *descr, char order,
                                   int64_t offset, tegula__manifest *out, tegula_error *err) {
  static const int64_t origin[TEGULA_MAX_DIMS];
  int64_t strides[TEGULA_MAX_DIMS];
  FORWARD(check_size(source, out, descr->dtype.item_size, offset, err));
  out->dtype = tegula_dtype_native(descr->dtype);
  out->name = TEGULA__FORMAT_ONLY_DATASET;
  tegula__dense_strides(out->shape, out->ndim, descr->dtype.item_size, order, strides);
  FORWARD(
      tegula__manifest_add(out, 0, offset, origin, out->shape, strides, descr->dtype.order, err));
  out->descr = descr->record;
  descr->record = NULL;
  return TEGULA_OK;
}

static tegula_status describe_literal(const tegula__source *source, const tegula__literal *literal,
                                      const tegula__describe_options *options, int64_t offset,
                                      tegula__manifest *out, tegula_error *err) {
  header_nodes nodes;
  tegula__descr descr;
  char order = 'C';
  FORWARD(find_keys(literal, &nodes, err));
  FORWARD(read_order(literal, nodes.fortran_order, &order, err));
  FORWARD(read_shape(literal, nodes.shape, out, err));
  FORWARD(tegula__descr_read(literal, nodes.descr, &descr, err));
  tegula_status status = agree_dtype(source, options, &descr, err);
  if (status == TEGULA_OK) status = fill_manifest(source, &descr, order, offset, out, err);
  free(descr.record);
  return status;
}

/* The header's text: where the head already holds it nothing is copied; else `*owned` is to be
 * freed. */
static tegula_status get_header(const tegula__source *source, const preamble *pre,
                                const char **text, char **owned, tegula_error *err) {
  *owned = NULL;
  if ((uint64_t)(pre->header_offset + pre->header_size) <= source->head_size) {
    *text = (const char *)source->head + pre->header_offset;
    return TEGULA_OK;
  }
  char *copy = malloc((size_t)pre->header_size);
  if (copy == NULL) return tegula__out_of_memory(err, pre->header_size);
  tegula_status status =
      tegula__source_read(source, pre->header_offset, copy, (size_t)pre->header_size, err);
  if (status != TEGULA_OK) {
    free(copy);
    return status;
  }
  *text = *owned = copy;
  return TEGULA_OK;
}

static tegula_status npy_describe(const tegula__source *source,
                                  const tegula__describe_options *options, tegula__manifest *out,
                                  tegula_error *err) {
  preamble pre = {0};
  const char *text = NULL;
  char *owned = NULL;
  FORWARD(check_options(source, options, err));
  FORWARD(read_preamble(source, &pre, err));
  FORWARD(get_header(source, &pre, &text, &owned, err));
  tegula__literal literal;
  tegula_status status =
      tegula__literal_parse(&literal, text, (size_t)pre.header_size, pre.major == 3, source->path,
                            pre.header_offset, err);
  if (status == TEGULA_OK)
    status =
        describe_literal(source, &literal, options, pre.header_offset + pre.header_size, out, err);
  tegula__literal_free(&literal);
  free(owned);
  return status;
}

const tegula__format tegula__format_npy = {
    .name = "npy",
    .suffixes = (const char *const[]){".npy", NULL},
    .magic = TEGULA__NPY_MAGIC,
    .magic_size = TEGULA__NPY_MAGIC_SIZE,
    .alike = true,
    .describe = npy_describe,
    .lay_out = tegula__npy_lay_out,
};
