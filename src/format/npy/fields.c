/* The fields of structured records: walks a description that descr.c has found good.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Padding has no field; of a title and a name the name is taken. While the list grows, names and
 * shapes are places in memory that moves: pointers are made at the end. */
#include "format/npy/fields.h"

#include <stdlib.h>
#include <string.h>

#include "format/npy/descr_entry.h"

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

static tegula_status add_shape(fields *f, draft *d, const tegula__descr_entry *entry) {
  if (!tegula__vector_reserve((void **)&f->lengths, &f->length_capacity,
                              f->length_count + entry->ndim, sizeof *f->lengths))
    return no_memory(f);
  for (int32_t k = 0; k < entry->ndim; k++) {
    if (entry->shape[k] == 0)
      return refuse(f, entry->name, "a field has no elements: its shape has a length of 0");
    f->lengths[f->length_count++] = entry->shape[k];
  }
  d->field.ndim = entry->ndim;
  return TEGULA_OK;
}

static tegula_status add_fields(fields *f, uint32_t node);

/* A dtype, or a record whose fields follow. */
static tegula_status add_format(fields *f, tegula_plugin_field *field,
                                const tegula__descr_entry *entry) {
  char text[TEGULA_DTYPE_TEXT];
  tegula_error why;
  if (f->literal->nodes[entry->format].kind == TEGULA__LITERAL_LIST) {
    int64_t before = f->count;
    FORWARD(add_fields(f, entry->format));
    field->dtype =
        (tegula_dtype){.kind = 'V', .order = '|', .item_size = (uint32_t)entry->item_size};
    field->fields = f->count - before;
    if (field->fields > 0) return TEGULA_OK;
    return refuse(f, entry->format, "a record within records has no fields");
  }
  if (!tegula__literal_ascii(f->literal, entry->format, text, sizeof text)) strcpy(text, "?");
  if (tegula_dtype_parse(text, &field->dtype, &why) == TEGULA_OK) return TEGULA_OK;
  return refuse(f, entry->format, why.message);
}

/* `at`: its place in front of its own fields. */
static tegula_status fill_field(fields *f, const tegula__descr_entry *entry, int64_t at) {
  draft d = {.field = {.offset = entry->offset}, .name = f->names.size, .shape = f->length_count};
  FORWARD(add_name(f, entry->name));
  FORWARD(add_shape(f, &d, entry));
  FORWARD(add_format(f, &d.field, entry));
  f->items[at] = d;
  return TEGULA_OK;
}

/* Bytes without a name between fields. */
static bool is_padding(const fields *f, const tegula__descr_entry *entry) {
  const tegula__literal_node *format = &f->literal->nodes[entry->format];
  return entry->ndim == 0 && tegula__literal_is(f->literal, entry->name, "") &&
         format->kind == TEGULA__LITERAL_STRING && format->size > 1 &&
         f->literal->text[format->start + 1] == 'V';
}

static tegula_status add_field(fields *f, const tegula__descr_entry *entry) {
  if (is_padding(f, entry)) return TEGULA_OK;
  if (tegula__literal_is(f->literal, entry->name, ""))
    return refuse(f, entry->name, "a field has no name");
  if (!tegula__vector_reserve((void **)&f->items, &f->capacity, f->count + 1, sizeof *f->items))
    return no_memory(f);
  return fill_field(f, entry, f->count++);
}

static tegula_status add_fields(fields *f, uint32_t node) {
  int64_t offset = 0;
  uint32_t at = node + 1;
  tegula__descr_entry entry;
  for (uint32_t i = 0; i < f->literal->nodes[node].count; i++, at = entry.next) {
    FORWARD(tegula__descr_next(f->literal, at, &offset, &entry, f->err));
    FORWARD(add_field(f, &entry));
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

/* The description as descr.c prints it; the caller frees it. */
static tegula_status canonical(const char *text, tegula_dtype dtype, char **out,
                               tegula_error *err) {
  tegula__literal literal;
  tegula__descr descr = {0};
  tegula_status status = tegula__literal_parse(&literal, text, strlen(text), true, NULL, 0, err);
  if (status == TEGULA_OK) status = tegula__descr_read(&literal, 0, &descr, err);
  tegula__literal_free(&literal);
  if (status == TEGULA_OK) status = tegula__record_check(&descr, dtype, err);
  *out = descr.record;
  return status;
}

static tegula_status read_fields(fields *f, tegula_plugin_field **out) {
  FORWARD(add_fields(f, 0));
  if (f->count == 0) return refuse(f, 0, "its records have no fields");
  *out = pack(f);
  return *out != NULL ? TEGULA_OK : no_memory(f);
}

tegula_status tegula__record_fields(const char *descr, tegula_dtype dtype,
                                    tegula_plugin_field **out, int64_t *count, tegula_error *err) {
  tegula__literal literal;
  fields f = {.literal = &literal, .err = err};
  char *text;
  *count = 0;
  tegula_status status = canonical(descr, dtype, &text, err);
  if (status == TEGULA_OK) {
    tegula__buffer_init(&f.names, (size_t)80 << 20);
    status = tegula__literal_parse(&literal, text, strlen(text), true, NULL, 0, err);
    if (status == TEGULA_OK) status = read_fields(&f, out);
    *count = f.count;
    tegula__literal_free(&literal);
    tegula__buffer_free(&f.names);
  }
  free(text);
  free(f.lengths);
  free(f.items);
  return status;
}
