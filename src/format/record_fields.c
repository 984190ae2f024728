/* Walks a description and compares names on the way.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "format/record_fields.h"

#include <stdlib.h>
#include <string.h>

#include "format/npy/descr.h"
#include "format/npy/descr_entry.h"

#define MOST_NAMES 10
#define MOST_NAME_BYTES ((size_t)1 << 20)

typedef tegula__descr_entry entry;

/* ---- names ---- */

static bool put_name(const tegula__literal *literal, uint32_t node, tegula__buffer *out) {
  const tegula__literal_node *name = &literal->nodes[node];
  tegula__text text = {literal->text + name->start, literal->text + name->start + name->size,
                       literal->utf8};
  uint32_t character;
  while (tegula__text_next(&text, &character) > 0)
    if (!tegula__text_put(out, character)) return false;
  return true;
}

/* *size: the bytes of a node's text where `name` begins with it and ends there, or goes on with a
 * dot; else 0. */
static tegula_status match(const tegula__literal *literal, uint32_t node, const char *name,
                           size_t *size, tegula_error *err) {
  tegula__buffer text;
  tegula__buffer_init(&text, MOST_NAME_BYTES);
  bool good = put_name(literal, node, &text);
  bool begins = good && text.size > 0 && strncmp(name, text.data, text.size) == 0 &&
                (name[text.size] == '\0' || name[text.size] == '.');
  *size = begins ? text.size : 0;
  tegula__buffer_free(&text);
  return good ? TEGULA_OK : tegula__out_of_memory(err, (int64_t)text.size + 1);
}

static tegula_status match_entry(const tegula__literal *literal, const entry *e, const char *name,
                                 size_t *size, tegula_error *err) {
  FORWARD(match(literal, e->name, name, size, err));
  if (*size > 0 || e->title == e->name) return TEGULA_OK;
  return match(literal, e->title, name, size, err);
}

/* ---- finding one ---- */

/* The axes of an entry follow those of the records that it is in. */
static tegula_status enter(const tegula__literal *literal, const entry *e, tegula__field *field,
                           tegula_error *err) {
  if (field->ndim + e->ndim > TEGULA_MAX_DIMS)
    return tegula__literal_fail(literal, e->name, TEGULA_LIMIT_EXCEEDED, err,
                                "a field has more than %d axes", TEGULA_MAX_DIMS);
  field->offset += e->offset;
  int64_t stride = e->item_size;
  for (int32_t k = e->ndim - 1; k >= 0; k--) {
    field->shape[field->ndim + k] = e->shape[k];
    field->strides[field->ndim + k] = stride;
    if (e->shape[k] == 0) stride = 0; /* no elements: nothing is at a stride */
    if (!tegula__mul(stride, e->shape[k], &stride))
      return tegula__literal_fail(literal, e->name, TEGULA_LIMIT_EXCEEDED, err,
                                  "the shape of a field is too large");
  }
  field->ndim += e->ndim;
  return TEGULA_OK;
}

/* Without a dtype it cannot be loaded. */
static tegula_status take(const tegula__literal *literal, const entry *e, tegula__field *field,
                          tegula_error *err) {
  tegula__descr found;
  RETURN_IF(!e->loadable, TEGULA_OK);
  FORWARD(tegula__descr_read(literal, e->format, &found, err));
  field->dtype = found.dtype;
  field->descr = found.record;
  return TEGULA_OK;
}

/* Looks in the record at `node` for what is left of the name. *found: it is there, or err says what
 * is wrong with it. A field whose own name has a dot comes before one in a record. */
static tegula_status find(const tegula__literal *literal, uint32_t node, const char *name,
                          tegula__field *field, bool *found, tegula_error *err) {
  for (int inner = 0; inner < 2; inner++) {
    int64_t offset = 0;
    uint32_t at = node + 1;
    entry e;
    for (uint32_t i = 0; i < literal->nodes[node].count && !*found; i++, at = e.next) {
      FORWARD(tegula__descr_next(literal, at, &offset, &e, err));
      size_t size;
      FORWARD(match_entry(literal, &e, name, &size, err));
      if (size == 0 || (name[size] == '\0') == (inner == 1)) continue;
      if (inner == 1 && literal->nodes[e.format].kind != TEGULA__LITERAL_LIST) continue;
      tegula__field before = *field;
      FORWARD(enter(literal, &e, field, err));
      if (inner == 0) {
        *found = true;
        return take(literal, &e, field, err);
      }
      FORWARD(find(literal, e.format, name + size + 1, field, found, err));
      if (!*found) *field = before;
    }
  }
  return TEGULA_OK;
}

/* ---- listing ---- */

static bool put_names(const tegula__literal *literal, uint32_t node, const tegula__buffer *above,
                      int *count, tegula__buffer *out);

static bool put_entry(const tegula__literal *literal, const entry *e, const tegula__buffer *above,
                      int *count, tegula__buffer *out) {
  tegula__buffer path;
  tegula__buffer_init(&path, MOST_NAME_BYTES);
  bool good = above->size == 0 || (tegula__buffer_append(&path, above->data, above->size) &&
                                   tegula__buffer_append(&path, ".", 1));
  good = good && put_name(literal, e->name, &path);
  if (good && !e->loadable && literal->nodes[e->format].kind == TEGULA__LITERAL_LIST)
    good = put_names(literal, e->format, &path, count, out);
  else if (good && e->loadable && ++*count <= MOST_NAMES)
    good = (out->size == 0 || tegula__buffer_append(out, ", ", 2)) &&
           tegula__buffer_append(out, path.data, path.size);
  tegula__buffer_free(&path);
  return good;
}

/* Records that can be loaded are named whole, of others what is in them. */
static bool put_names(const tegula__literal *literal, uint32_t node, const tegula__buffer *above,
                      int *count, tegula__buffer *out) {
  uint32_t at = node + 1;
  int64_t offset = 0;
  entry e;
  for (uint32_t i = 0; i < literal->nodes[node].count && *count <= MOST_NAMES; i++, at = e.next) {
    if (tegula__descr_next(literal, at, &offset, &e, NULL) != TEGULA_OK) return true;
    if (literal->nodes[e.name].size > 0 && !put_entry(literal, &e, above, count, out)) return false;
  }
  return true;
}

bool tegula__record_names(const char *descr, tegula__buffer *out) {
  tegula__literal literal;
  const tegula__buffer nothing = {.size = 0};
  int count = 0;
  tegula_status status =
      tegula__literal_parse(&literal, descr, strlen(descr), true, NULL, -1, NULL);
  bool good = true;
  if (status == TEGULA_OK && literal.nodes[0].kind == TEGULA__LITERAL_LIST)
    good = put_names(&literal, 0, &nothing, &count, out);
  tegula__literal_free(&literal);
  if (good && count > MOST_NAMES) good = tegula__buffer_append(out, ", ...", 5);
  return good;
}

/* ---- the whole ---- */

tegula_status tegula__record_read(const char *text, tegula_dtype *dtype, char **descr,
                                  tegula_error *err) {
  tegula__literal literal;
  tegula__descr found = {.record = NULL};
  tegula_status status = tegula__literal_parse(&literal, text, strlen(text), true, NULL, -1, err);
  if (status == TEGULA_OK) status = tegula__descr_read(&literal, 0, &found, err);
  tegula__literal_free(&literal);
  if (status == TEGULA_OK) *dtype = found.dtype;
  if (status == TEGULA_OK && descr != NULL)
    *descr = found.record;
  else
    free(found.record);
  return status;
}

static tegula_status not_there(const char *path, const char *descr, const char *name,
                               tegula_error *err) {
  tegula__buffer names;
  tegula__buffer_init(&names, 4096);
  bool listed = tegula__record_names(descr, &names) && names.size > 0;
  tegula_status status =
      tegula__fail(err, TEGULA_NOT_FOUND, path, -1, "\"%s\": its records have no field \"%.80s\"",
                   path != NULL ? path : "", name);
  if (listed)
    status = tegula__hint(err, status, "the fields are: %.*s",
                          (int)tegula__min((int64_t)names.size, 400), names.data);
  tegula__buffer_free(&names);
  return status;
}

tegula_status tegula__record_field(const char *path, const char *descr, const char *name,
                                   tegula__field *out, tegula_error *err) {
  tegula__literal literal;
  tegula__field field = {.ndim = 0};
  bool found = false;
  tegula_status status = tegula__literal_parse(&literal, descr, strlen(descr), true, NULL, -1, err);
  if (status == TEGULA_OK && literal.nodes[0].kind == TEGULA__LITERAL_LIST)
    status = find(&literal, 0, name, &field, &found, err);
  tegula__literal_free(&literal);
  if (status == TEGULA_OK && !found) return not_there(path, descr, name, err);
  if (status == TEGULA_OK && field.dtype.kind == 0)
    return tegula__fail(err, TEGULA_UNSUPPORTED, path, -1,
                        "\"%s\": the field \"%.80s\" of its records cannot be loaded",
                        path != NULL ? path : "", name);
  if (status == TEGULA_OK) *out = field;
  return status;
}
