/* Walks a description and adds up sizes, printing its canonical text on the way.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The forms are those of numpy.lib.format.descr_to_dtype: text, or a list of (name, format) and
 * (name, format, shape), where name may be (title, name) and format again a list. Within a record
 * every scalar of a known size can be kept, as its bytes are opaque. */
#include "format/npy/descr.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* numpy's own limit of an item (int). */
#define MOST_ITEM_BYTES ((int64_t)INT32_MAX)
/* The text of a description: a header's greatest length with every character escaped. */
#define MOST_DESCR_BYTES ((size_t)80 << 20)

typedef struct name_text {
  size_t start;
  size_t size;
} name_text;

typedef struct walk {
  const tegula__literal *literal;
  tegula__buffer text;
  tegula_error *err;
} walk;

static tegula_status no_memory(walk *w) {
  return tegula__out_of_memory(w->err, (int64_t)w->text.size + 1);
}

static tegula_status put(walk *w, const char *text) {
  return tegula__buffer_append(&w->text, text, strlen(text)) ? TEGULA_OK : no_memory(w);
}

/* ---- scalars ---- */

static bool is_object(const char *body) {
  return (body[0] == 'O' && (body[1] == '\0' || (body[1] >= '0' && body[1] <= '9'))) ||
         strcmp(body, "object") == 0;
}

static tegula_status refuse_object(const tegula__literal *literal, uint32_t node,
                                   tegula_error *err) {
  return tegula__hint(
      err,
      tegula__literal_fail(
          literal, node, TEGULA_UNSUPPORTED, err,
          "it holds pickled Python objects (dtype object), which are never loaded"),
      "save the values as numbers, for example with numpy.asarray(a, dtype=\"f8\")");
}

static tegula_status refuse_scalar(const tegula__literal *literal, uint32_t node, const char *text,
                                   tegula_error *err) {
  tegula_error why;
  tegula_dtype ignored;
  tegula_status status = tegula_dtype_parse(text, &ignored, &why);
  (void)status;
  tegula__literal_fail(literal, node, TEGULA_UNSUPPORTED, err, "%s", why.message);
  return tegula__hint(
      err, TEGULA_UNSUPPORTED,
      "save it with a dtype of fixed size, such as f8, c16, S10 or a record of these");
}

/* Resolves the text and takes a byte order that means nothing off S and V (`*void_order` keeps
 * it). */
static tegula_status scalar_text(const tegula__literal *literal, uint32_t node,
                                 char text[TEGULA_DTYPE_TEXT], uint8_t *void_order,
                                 tegula_error *err) {
  *void_order = '|';
  if (!tegula__literal_ascii(literal, node, text, TEGULA_DTYPE_TEXT))
    return tegula__literal_fail(literal, node, TEGULA_UNSUPPORTED, err, "unknown dtype \"%.*s\"",
                                (int)tegula__min(literal->nodes[node].size, 60),
                                literal->text + literal->nodes[node].start);
  bool ordered = text[0] != '\0' && strchr("<>=|", text[0]) != NULL;
  if (is_object(text + ordered)) return refuse_object(literal, node, err);
  if (ordered && (text[1] == 'V' || text[1] == 'S' || text[1] == 'a')) {
    if (text[0] == '<' || text[0] == '>') *void_order = (uint8_t)text[0];
    text[0] = '|';
  }
  return TEGULA_OK;
}

/* Sizes that a field may have although an array of them cannot be held: nothing at all, and long
 * doubles of a stated size. */
static bool opaque_field(const char *text, int64_t *size) {
  static const struct {
    const char *body;
    int64_t size;
  } fields[] = {{"V0", 0},   {"S0", 0},   {"U0", 0},  {"f12", 12},
                {"f16", 16}, {"c24", 24}, {"c32", 32}};
  const char *body = text[0] != '\0' && strchr("<>|", text[0]) != NULL ? text + 1 : text;
  for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
    if (strcmp(body, fields[i].body) != 0) continue;
    *size = fields[i].size;
    return true;
  }
  return false;
}

static tegula_status walk_scalar(walk *w, uint32_t node, int64_t *size) {
  char text[TEGULA_DTYPE_TEXT];
  uint8_t void_order;
  FORWARD(scalar_text(w->literal, node, text, &void_order, w->err));
  tegula_dtype dtype;
  if (tegula_dtype_parse(text, &dtype, NULL) == TEGULA_OK) {
    *size = dtype.item_size;
    tegula_dtype_format(dtype, text);
  } else if (!opaque_field(text, size)) {
    return refuse_scalar(w->literal, node, text, w->err);
  }
  FORWARD(put(w, "'"));
  FORWARD(put(w, text));
  return put(w, "'");
}

/* ---- shapes of fields ---- */

typedef struct field_shape {
  int32_t ndim;
  int64_t lengths[TEGULA_MAX_DIMS];
} field_shape;

static tegula_status add_length(walk *w, uint32_t node, field_shape *shape) {
  const tegula__literal_node *length = &w->literal->nodes[node];
  if (length->kind != TEGULA__LITERAL_INT || !length->fits || length->value < 0)
    return tegula__literal_fail(w->literal, node, TEGULA_CORRUPT, w->err,
                                "the shape of a field has an entry that is no size");
  if (shape->ndim == TEGULA_MAX_DIMS)
    return tegula__literal_fail(w->literal, node, TEGULA_LIMIT_EXCEEDED, w->err,
                                "a field has more than %d axes", TEGULA_MAX_DIMS);
  shape->lengths[shape->ndim++] = length->value;
  return TEGULA_OK;
}

static tegula_status add_shape(walk *w, uint32_t node, field_shape *shape) {
  const tegula__literal_node *entry = &w->literal->nodes[node];
  if (entry->kind != TEGULA__LITERAL_TUPLE) return add_length(w, node, shape);
  uint32_t length = node + 1;
  for (uint32_t i = 0; i < entry->count; i++) {
    FORWARD(add_length(w, length, shape));
    length = w->literal->nodes[length].end;
  }
  return TEGULA_OK;
}

static tegula_status put_shape(walk *w, const field_shape *shape) {
  RETURN_IF(shape->ndim == 0, TEGULA_OK);
  bool good = tegula__buffer_append(&w->text, ", (", 3);
  for (int32_t k = 0; good && k < shape->ndim; k++)
    good = tegula__buffer_printf(&w->text, k > 0 ? ", %lld" : "%lld", (long long)shape->lengths[k]);
  return good ? put(w, shape->ndim == 1 ? ",)" : ")") : no_memory(w);
}

/* ---- fields ---- */

static tegula_status walk_record(walk *w, uint32_t node, int64_t *size);

/* A format: text, a list of fields, or (format, shape); shapes add up from the outside to the
 * inside. */
static tegula_status walk_format(walk *w, uint32_t node, field_shape *shape, int64_t *size) {
  const tegula__literal_node *format = &w->literal->nodes[node];
  while (format->kind == TEGULA__LITERAL_TUPLE && format->count == 2) {
    FORWARD(add_shape(w, w->literal->nodes[node + 1].end, shape));
    format = &w->literal->nodes[++node];
  }
  if (format->kind == TEGULA__LITERAL_STRING) return walk_scalar(w, node, size);
  if (format->kind == TEGULA__LITERAL_LIST) return walk_record(w, node, size);
  return tegula__literal_fail(w->literal, node, TEGULA_CORRUPT, w->err,
                              "the format of a field is neither text nor a list of fields");
}

/* Prints one name and notes where. */
static tegula_status put_name(walk *w, uint32_t node, name_text *names, int64_t *count) {
  if (w->literal->nodes[node].kind != TEGULA__LITERAL_STRING)
    return tegula__literal_fail(w->literal, node, TEGULA_CORRUPT, w->err,
                                "the name of a field is not text");
  size_t start = w->text.size;
  if (!tegula__literal_print(w->literal, node, &w->text)) return no_memory(w);
  names[(*count)++] = (name_text){start, w->text.size - start};
  return TEGULA_OK;
}

static tegula_status walk_name(walk *w, uint32_t node, name_text *names, int64_t *count) {
  const tegula__literal_node *name = &w->literal->nodes[node];
  if (name->kind != TEGULA__LITERAL_TUPLE || name->count != 2)
    return put_name(w, node, names, count);
  FORWARD(put(w, "("));
  FORWARD(put_name(w, node + 1, names, count));
  FORWARD(put(w, ", "));
  FORWARD(put_name(w, w->literal->nodes[node + 1].end, names, count));
  return put(w, ")");
}

static tegula_status add_size(walk *w, uint32_t node, const field_shape *shape, int64_t item,
                              int64_t *size) {
  int64_t count = 0, bytes = 0;
  bool good = tegula__shape_count(shape->lengths, shape->ndim, &count) &&
              tegula__mul(count, item, &bytes) && tegula__add(*size, bytes, size) &&
              *size <= MOST_ITEM_BYTES;
  RETURN_IF(good, TEGULA_OK);
  return tegula__literal_fail(w->literal, node, TEGULA_LIMIT_EXCEEDED, w->err,
                              "a record has more than %lld bytes, which is the limit",
                              (long long)MOST_ITEM_BYTES);
}

static tegula_status walk_field(walk *w, uint32_t node, name_text *names, int64_t *name_count,
                                int64_t *size) {
  const tegula__literal_node *field = &w->literal->nodes[node];
  if (field->kind != TEGULA__LITERAL_TUPLE || field->count < 2 || field->count > 3)
    return tegula__literal_fail(w->literal, node, TEGULA_CORRUPT, w->err,
                                "a field is not (name, format) or (name, format, shape)");
  uint32_t name = node + 1, format = w->literal->nodes[name].end;
  int64_t names_before = *name_count;
  FORWARD(put(w, "("));
  FORWARD(walk_name(w, name, names, name_count));
  FORWARD(put(w, ", "));
  field_shape shape = {0};
  if (field->count == 3) FORWARD(add_shape(w, w->literal->nodes[format].end, &shape));
  int64_t item = 0;
  FORWARD(walk_format(w, format, &shape, &item));
  FORWARD(put_shape(w, &shape));
  FORWARD(put(w, ")"));
  /* Padding has no name: numpy writes it as ('', '|V7'). */
  if (tegula__literal_is(w->literal, name, "")) *name_count = names_before;
  return add_size(w, node, &shape, item, size);
}

static int compare_names(const void *a, const void *b, void *text) {
  const name_text *x = a, *y = b;
  size_t least = x->size < y->size ? x->size : y->size;
  int order = memcmp((const char *)text + x->start, (const char *)text + y->start, least);
  return order != 0 ? order : (x->size > y->size) - (x->size < y->size);
}

/* numpy cannot read a record in which two fields have one name. */
static tegula_status check_names(walk *w, uint32_t node, name_text *names, int64_t count) {
  qsort_r(names, (size_t)count, sizeof *names, compare_names, w->text.data);
  for (int64_t i = 1; i < count; i++) {
    if (compare_names(&names[i - 1], &names[i], w->text.data) != 0) continue;
    return tegula__literal_fail(
        w->literal, node, TEGULA_CORRUPT, w->err, "two fields have the name %.*s",
        (int)tegula__min((int64_t)names[i].size, 80), w->text.data + names[i].start);
  }
  return TEGULA_OK;
}

static tegula_status walk_fields(walk *w, uint32_t node, name_text *names, int64_t *size) {
  int64_t name_count = 0;
  uint32_t field = node + 1;
  FORWARD(put(w, "["));
  for (uint32_t i = 0; i < w->literal->nodes[node].count; i++) {
    if (i > 0) FORWARD(put(w, ", "));
    FORWARD(walk_field(w, field, names, &name_count, size));
    field = w->literal->nodes[field].end;
  }
  FORWARD(put(w, "]"));
  return check_names(w, node, names, name_count);
}

static tegula_status walk_record(walk *w, uint32_t node, int64_t *size) {
  int64_t most = 2 * (int64_t)w->literal->nodes[node].count; /* a title and a name each */
  name_text *names = tegula__realloc_array(NULL, most, sizeof *names);
  if (names == NULL) return tegula__out_of_memory(w->err, most * (int64_t)sizeof *names);
  *size = 0;
  tegula_status status = walk_fields(w, node, names, size);
  free(names);
  return status;
}

/* ---- the whole ---- */

static tegula_status read_record(const tegula__literal *literal, uint32_t node, tegula__descr *out,
                                 tegula_error *err) {
  walk w = {.literal = literal, .err = err};
  tegula__buffer_init(&w.text, MOST_DESCR_BYTES);
  int64_t size = 0;
  tegula_status status = walk_record(&w, node, &size);
  if (status == TEGULA_OK && size == 0)
    status =
        tegula__literal_fail(literal, node, TEGULA_UNSUPPORTED, err, "its records have no bytes");
  if (status == TEGULA_OK && !tegula__buffer_append(&w.text, "", 1)) status = no_memory(&w);
  if (status != TEGULA_OK) {
    tegula__buffer_free(&w.text);
    return status;
  }
  *out = (tegula__descr){.dtype = {.kind = 'V', .order = '|', .item_size = (uint32_t)size},
                         .void_order = '|',
                         .record = w.text.data};
  return TEGULA_OK;
}

tegula_status tegula__descr_read(const tegula__literal *literal, uint32_t node, tegula__descr *out,
                                 tegula_error *err) {
  const tegula__literal_node *descr = &literal->nodes[node];
  if (descr->kind == TEGULA__LITERAL_LIST) return read_record(literal, node, out, err);
  if (descr->kind != TEGULA__LITERAL_STRING)
    return tegula__literal_fail(literal, node, TEGULA_CORRUPT, err,
                                "descr is neither text nor a list of fields");
  char text[TEGULA_DTYPE_TEXT];
  uint8_t void_order;
  FORWARD(scalar_text(literal, node, text, &void_order, err));
  tegula_dtype dtype;
  if (tegula_dtype_parse(text, &dtype, NULL) != TEGULA_OK)
    return refuse_scalar(literal, node, text, err);
  *out = (tegula__descr){.dtype = dtype, .void_order = void_order};
  return TEGULA_OK;
}
