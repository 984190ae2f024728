/* The fields of structured records: walks a description that descr.c has found good.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Padding has no field; of a title and a name the name is taken. While the list grows, names and
 * shapes are places in memory that moves: pointers are made at the end. */
#include "format/npy/fields.h"

#include <stdlib.h>
#include <string.h>

#include "format/npy/descr.h"

typedef struct draft {
  tegula_plugin_field field;
  size_t name;   /* where it begins among the names */
  int64_t shape; /* and among the lengths */
} draft;

typedef struct fields {
  const tegula__literal *literal;
  draft *items;
  int64_t count, capacity;
  tegula__buffer names; /* each with its zero byte */
  int64_t *lengths;     /* of all shapes */
  int64_t length_count, length_capacity;
  tegula_error *err;
} fields;

static tegula_status no_memory(const fields *f) {
  return tegula__out_of_memory(f->err, (f->count + 1) * (int64_t)sizeof *f->items);
}

static tegula_status refuse(const fields *f, uint32_t node, const char *what) {
  return tegula__literal_fail(f->literal, node, TEGULA_UNSUPPORTED, f->err, "%s", what);
}

/* A byte that is no UTF-8 in a file is a character from U+DC80 on in Python. */
static tegula_status add_name(fields *f, uint32_t node) {
  const tegula__literal_node *name = &f->literal->nodes[node];
  tegula__text text = {f->literal->text + name->start, f->literal->text + name->start + name->size,
                       f->literal->utf8};
  uint32_t character;
  while (tegula__text_next(&text, &character) == 1) {
    bool escaped = character >= 0xDC80 && character <= 0xDCFF;
    if (character == 0 || (character >= 0xD800 && character <= 0xDFFF && !escaped))
      return refuse(f, node, "the name of a field has a character that no name in a file has");
    char byte = (char)(character & 0xFF);
    bool good = escaped ? tegula__buffer_append(&f->names, &byte, 1)
                        : tegula__text_put(&f->names, character);
    if (!good) return no_memory(f);
  }
  return tegula__buffer_append(&f->names, "", 1) ? TEGULA_OK : no_memory(f);
}

static tegula_status add_length(fields *f, draft *d, uint32_t node) {
  int64_t length = f->literal->nodes[node].value;
  if (length == 0) return refuse(f, node, "a field has no elements: its shape has a length of 0");
  if (!tegula__vector_reserve((void **)&f->lengths, &f->length_capacity, f->length_count + 1,
                              sizeof *f->lengths))
    return no_memory(f);
  f->lengths[f->length_count++] = length;
  d->field.ndim++;
  return TEGULA_OK;
}

static tegula_status add_shape(fields *f, draft *d, uint32_t node) {
  const tegula__literal_node *shape = &f->literal->nodes[node];
  if (shape->kind != TEGULA__LITERAL_TUPLE) return add_length(f, d, node);
  uint32_t length = node + 1;
  for (uint32_t i = 0; i < shape->count; i++, length = f->literal->nodes[length].end)
    FORWARD(add_length(f, d, length));
  return TEGULA_OK;
}

static tegula_status add_fields(fields *f, uint32_t node, int64_t *size);

/* A dtype, or a record whose fields follow. */
static tegula_status add_format(fields *f, tegula_plugin_field *field, uint32_t node) {
  char text[TEGULA_DTYPE_TEXT];
  if (f->literal->nodes[node].kind == TEGULA__LITERAL_LIST) {
    int64_t size, before = f->count;
    FORWARD(add_fields(f, node, &size));
    field->dtype = (tegula_dtype){.kind = 'V', .order = '|', .item_size = (uint32_t)size};
    field->fields = f->count - before;
    if (field->fields == 0) return refuse(f, node, "a record within records has no fields");
    return TEGULA_OK;
  }
  if (!tegula__literal_ascii(f->literal, node, text, sizeof text)) strcpy(text, "?");
  char *order = text[0] != '\0' && strchr("<>=", text[0]) != NULL ? text : NULL;
  if (order != NULL && strchr("VSa", text[1]) != NULL) *order = '|'; /* means nothing */
  tegula_error why;
  if (tegula_dtype_parse(text, &field->dtype, &why) == TEGULA_OK) return TEGULA_OK;
  return refuse(f, node, why.message);
}

static int64_t bytes_of(const fields *f, const draft *d) {
  int64_t bytes = d->field.dtype.item_size;
  for (int32_t k = 0; k < d->field.ndim; k++) bytes *= f->lengths[d->shape + k];
  return bytes;
}

/* Padding: a field of opaque bytes without a name, of whatever size. */
static bool is_padding(const fields *f, uint32_t name, uint32_t format, int64_t *bytes) {
  char text[TEGULA_DTYPE_TEXT];
  const char *at = text;
  if (!tegula__literal_is(f->literal, name, "") ||
      !tegula__literal_ascii(f->literal, format, text, sizeof text))
    return false;
  at += at[0] != '\0' && strchr("<>|=", at[0]) != NULL;
  if (at[0] != 'V') return false;
  *bytes = strtoll(at + 1, NULL, 10);
  return true;
}

/* `at`: its place in front of its own fields. */
static tegula_status fill_field(fields *f, uint32_t node, uint32_t name, int64_t at,
                                int64_t *size) {
  const tegula__literal_node *nodes = f->literal->nodes;
  uint32_t format = nodes[node + 1].end;
  draft d = {.field = {.offset = *size}, .name = f->names.size, .shape = f->length_count};
  FORWARD(add_name(f, name));
  if (nodes[node].count == 3) FORWARD(add_shape(f, &d, nodes[format].end));
  while (nodes[format].kind == TEGULA__LITERAL_TUPLE && nodes[format].count == 2) {
    FORWARD(add_shape(f, &d, nodes[format + 1].end));
    format++;
  }
  FORWARD(add_format(f, &d.field, format));
  *size += bytes_of(f, &d);
  f->items[at] = d;
  return TEGULA_OK;
}

static tegula_status add_field(fields *f, uint32_t node, int64_t *size) {
  const tegula__literal_node *nodes = f->literal->nodes;
  uint32_t name = node + 1;
  int64_t padding;
  if (nodes[node].count == 2 && is_padding(f, name, nodes[name].end, &padding)) {
    *size += padding;
    return TEGULA_OK;
  }
  if (nodes[name].kind == TEGULA__LITERAL_TUPLE) name = nodes[name + 1].end; /* behind its title */
  if (tegula__literal_is(f->literal, name, "")) return refuse(f, node, "a field has no name");
  if (!tegula__vector_reserve((void **)&f->items, &f->capacity, f->count + 1, sizeof *f->items))
    return no_memory(f);
  return fill_field(f, node, name, f->count++, size);
}

static tegula_status add_fields(fields *f, uint32_t node, int64_t *size) {
  uint32_t field = node + 1;
  *size = 0;
  for (uint32_t i = 0; i < f->literal->nodes[node].count; i++) {
    FORWARD(add_field(f, field, size));
    field = f->literal->nodes[field].end;
  }
  return TEGULA_OK;
}

/* ---- the whole ---- */

/* One block: fields, lengths, names. */
static tegula_plugin_field *pack(const fields *f) {
  size_t items = (size_t)f->count * sizeof(tegula_plugin_field),
         lengths = (size_t)f->length_count * sizeof *f->lengths;
  tegula_plugin_field *out = malloc(items + lengths + f->names.size);
  if (out == NULL) return NULL;
  int64_t *shapes = (int64_t *)(void *)((char *)out + items);
  char *names = (char *)out + items + lengths;
  if (lengths > 0) memcpy(shapes, f->lengths, lengths);
  memcpy(names, f->names.data, f->names.size);
  for (int64_t i = 0; i < f->count; i++) {
    out[i] = f->items[i].field;
    out[i].name = names + f->items[i].name;
    out[i].shape = shapes + f->items[i].shape;
  }
  return out;
}

tegula_status tegula__record_check(const tegula__descr *descr, tegula_dtype dtype,
                                   tegula_error *err) {
  if (descr->record == NULL)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "descr is a dtype: expected a list of fields");
  if (dtype.kind == 'V' && dtype.item_size == descr->dtype.item_size) return TEGULA_OK;
  char text[TEGULA_DTYPE_TEXT];
  tegula_dtype_format(dtype, text);
  return tegula__hint(
      err,
      tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                   "descr describes records of %u bytes, but the array's dtype is %s",
                   descr->dtype.item_size, text),
      "use the dtype |V%u", descr->dtype.item_size);
}

static tegula_status read_fields(fields *f, tegula_dtype dtype, tegula_plugin_field **out) {
  tegula__descr descr = {0};
  int64_t size;
  tegula_status status = tegula__descr_read(f->literal, 0, &descr, f->err);
  if (status == TEGULA_OK) status = tegula__record_check(&descr, dtype, f->err);
  free(descr.record);
  if (status == TEGULA_OK) status = add_fields(f, 0, &size);
  if (status == TEGULA_OK && f->count == 0) status = refuse(f, 0, "its records have no fields");
  if (status != TEGULA_OK) return status;
  *out = pack(f);
  return *out != NULL ? TEGULA_OK : no_memory(f);
}

tegula_status tegula__record_fields(const char *descr, tegula_dtype dtype,
                                    tegula_plugin_field **out, int64_t *count, tegula_error *err) {
  tegula__literal literal;
  fields f = {.literal = &literal, .err = err};
  tegula__buffer_init(&f.names, (size_t)80 << 20);
  tegula_status status = tegula__literal_parse(&literal, descr, strlen(descr), true, NULL, 0, err);
  if (status == TEGULA_OK) status = read_fields(&f, dtype, out);
  *count = f.count;
  tegula__literal_free(&literal);
  tegula__buffer_free(&f.names);
  free(f.lengths);
  free(f.items);
  return status;
}
