/* Reads entries; sizes add up to offsets.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "format/npy/descr_entry.h"

#include <string.h>

static tegula_status no_description(const tegula__literal *literal, uint32_t node,
                                    tegula_error *err) {
  return tegula__literal_fail(literal, node, TEGULA_CORRUPT, err,
                              "a field is not (name, format) or (name, format, shape)");
}

/* ---- sizes ---- */

static tegula_status read_entry(const tegula__literal *literal, uint32_t node,
                                tegula__descr_entry *out, tegula_error *err);

tegula_status tegula__descr_next(const tegula__literal *literal, uint32_t node, int64_t *offset,
                                 tegula__descr_entry *out, tegula_error *err) {
  int64_t count, bytes;
  FORWARD(read_entry(literal, node, out, err));
  out->offset = *offset;
  if (tegula__shape_count(out->shape, out->ndim, &count) &&
      tegula__mul(count, out->item_size, &bytes) && tegula__add(*offset, bytes, offset) &&
      *offset <= INT32_MAX)
    return TEGULA_OK;
  return tegula__literal_fail(literal, node, TEGULA_LIMIT_EXCEEDED, err,
                              "a record has more than %d bytes, which is the limit", INT32_MAX);
}

static tegula_status record_size(const tegula__literal *literal, uint32_t node,
                                 tegula__descr_entry *out, tegula_error *err) {
  uint32_t at = node + 1;
  tegula__descr_entry part;
  out->item_size = 0;
  for (uint32_t i = 0; i < literal->nodes[node].count; i++, at = part.next) {
    FORWARD(tegula__descr_next(literal, at, &out->item_size, &part, err));
    out->loadable = out->loadable && part.loadable;
  }
  return TEGULA_OK;
}

/* Fields of no bytes, long doubles and what stands for something else have a size, but no dtype. */
static bool opaque_size(const char *text, int64_t *size) {
  const char *body = text[0] != '\0' && strchr("<>|=", text[0]) != NULL ? text + 1 : text;
  int64_t number = 0;
  if (body[0] == '\0' || body[1] == '\0' || strchr("OVSUfc", body[0]) == NULL) return false;
  for (const char *digit = body + 1; *digit != '\0'; digit++) {
    if (*digit < '0' || *digit > '9' || number > INT32_MAX) return false;
    number = number * 10 + (*digit - '0');
  }
  *size = body[0] == 'U' ? number * 4 : number;
  return true;
}

static tegula_status text_size(const tegula__literal *literal, uint32_t node,
                               tegula__descr_entry *out, tegula_error *err) {
  char text[TEGULA_DTYPE_TEXT];
  tegula_dtype dtype;
  if (!tegula__literal_ascii(literal, node, text, sizeof text))
    return no_description(literal, node, err);
  if (tegula_dtype_parse(text, &dtype, NULL) == TEGULA_OK) {
    out->item_size = dtype.item_size;
    return TEGULA_OK;
  }
  out->loadable = false;
  return opaque_size(text, &out->item_size) ? TEGULA_OK : no_description(literal, node, err);
}

/* ---- entries ---- */

static tegula_status read_shape(const tegula__literal *literal, uint32_t node,
                                tegula__descr_entry *out, tegula_error *err) {
  const tegula__literal_node *shape = &literal->nodes[node];
  uint32_t at = node + 1;
  if (shape->kind != TEGULA__LITERAL_TUPLE || shape->count > TEGULA_MAX_DIMS)
    return no_description(literal, node, err);
  out->ndim = (int32_t)shape->count;
  for (int32_t k = 0; k < out->ndim; k++, at = literal->nodes[at].end) {
    const tegula__literal_node *length = &literal->nodes[at];
    if (length->kind != TEGULA__LITERAL_INT || !length->fits || length->value < 0)
      return no_description(literal, node, err);
    out->shape[k] = length->value;
  }
  return TEGULA_OK;
}

/* A name, or (title, name). */
static bool read_names(const tegula__literal *literal, tegula__descr_entry *out) {
  const tegula__literal_node *name = &literal->nodes[out->name];
  out->title = out->name;
  if (name->kind == TEGULA__LITERAL_TUPLE && name->count == 2) {
    out->title = out->name + 1;
    out->name = literal->nodes[out->title].end;
  }
  return literal->nodes[out->name].kind == TEGULA__LITERAL_STRING &&
         literal->nodes[out->title].kind == TEGULA__LITERAL_STRING;
}

static tegula_status read_entry(const tegula__literal *literal, uint32_t node,
                                tegula__descr_entry *out, tegula_error *err) {
  const tegula__literal_node *tuple = &literal->nodes[node];
  if (tuple->kind != TEGULA__LITERAL_TUPLE || tuple->count < 2 || tuple->count > 3)
    return no_description(literal, node, err);
  *out = (tegula__descr_entry){.name = node + 1, .next = tuple->end, .loadable = true};
  out->format = literal->nodes[out->name].end;
  if (!read_names(literal, out)) return no_description(literal, node, err);
  if (tuple->count == 3) FORWARD(read_shape(literal, literal->nodes[out->format].end, out, err));
  switch (literal->nodes[out->format].kind) {
    case TEGULA__LITERAL_STRING:
      return text_size(literal, out->format, out, err);
    case TEGULA__LITERAL_LIST:
      return record_size(literal, out->format, out, err);
    default:
      return no_description(literal, node, err);
  }
}
