/* The text of a side file -> its fields.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A field has one name in tegula and some that other people use; several may be there when they say
 * the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/raw/side_file.h"

/* ---- fields of one value ---- */

static tegula_status contradicts(const tegula__json *value, const char *field, const char *says,
                                 tegula_error *err) {
  return tegula__hint(err, tegula__json_wrong(value, err, "what %s says: %.100s", field, says),
                      "both speak of one thing; leave one of them out");
}

/* An integer of 0 or more under one of two names. */
static tegula_status read_bytes(const tegula__json *root, const char *name, const char *other,
                                bool *has, int64_t *out, tegula_error *err) {
  tegula__json first = tegula__json_member(root, name), second = tegula__json_member(root, other);
  int64_t again = 0;
  *has = first.value != NULL || second.value != NULL;
  if (first.value != NULL) FORWARD(tegula__json_integer(&first, 0, INT64_MAX, out, err));
  if (second.value == NULL) return TEGULA_OK;
  FORWARD(tegula__json_integer(&second, 0, INT64_MAX, &again, err));
  if (first.value != NULL && again != *out) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)*out);
    return contradicts(&second, name, text, err);
  }
  *out = again;
  return TEGULA_OK;
}

static tegula_status read_byte_order_of(const tegula__json *value, char *out, tegula_error *err) {
  static const struct {
    const char *text;
    char order;
  } words[] = {{"little", '<'},
               {"<", '<'},
               {"big", '>'},
               {">", '>'},
               {"native", TEGULA__NATIVE_ORDER},
               {"=", TEGULA__NATIVE_ORDER}};
  const char *text = NULL;
  FORWARD(tegula__json_text(value, &text, err));
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    if (strcmp(text, words[i].text) != 0) continue;
    *out = words[i].order;
    return TEGULA_OK;
  }
  return tegula__json_wrong(value, err, "little, big, <, > or native");
}

static tegula_status read_byte_order(const tegula__json *root, tegula__side_file *out,
                                     tegula_error *err) {
  tegula__json first = tegula__json_member(root, "byte_order"),
               second = tegula__json_member(root, "endianness");
  char again = 0;
  if (first.value != NULL) FORWARD(read_byte_order_of(&first, &out->byte_order, err));
  if (second.value == NULL) return TEGULA_OK;
  FORWARD(read_byte_order_of(&second, &again, err));
  if (first.value != NULL && again != out->byte_order)
    return contradicts(&second, "byte_order", out->byte_order == '<' ? "little" : "big", err);
  out->byte_order = again;
  return TEGULA_OK;
}

/* Behind byte_order: where both say an order it must be the same. */
static tegula_status read_dtype(const tegula__json *root, tegula__side_file *out,
                                tegula_error *err) {
  tegula__json value = tegula__json_member(root, "dtype");
  const char *text = NULL;
  tegula_error reason;
  if (value.value == NULL) return TEGULA_OK;
  FORWARD(tegula__json_text(&value, &text, err));
  if (tegula_dtype_parse(text, &out->dtype, &reason) != TEGULA_OK)
    return tegula__json_wrong(&value, err, "a dtype such as f4, >i2 or float64 (%.150s)",
                              reason.message);
  out->has_dtype = true;
  bool stated = (text[0] == '<' || text[0] == '>') && out->dtype.order != '|';
  if (stated && out->byte_order != 0 && out->byte_order != (char)out->dtype.order)
    return contradicts(&value, "byte_order", out->byte_order == '<' ? "little" : "big", err);
  if (stated) out->byte_order = (char)out->dtype.order;
  return TEGULA_OK;
}

static tegula_status read_order(const tegula__json *root, tegula__side_file *out,
                                tegula_error *err) {
  tegula__json value = tegula__json_member(root, "order");
  const char *text = NULL;
  if (value.value == NULL) return TEGULA_OK;
  FORWARD(tegula__json_text(&value, &text, err));
  if (strcmp(text, "C") != 0 && strcmp(text, "F") != 0)
    return tegula__json_wrong(&value, err, "C or F");
  out->order = text[0];
  return TEGULA_OK;
}

/* ---- shape ---- */

/* The shape of a row under one of its names; it must be the one that is known already. */
static tegula_status read_row_shape(const tegula__json *root, const char *name,
                                    const char *known_from, tegula__side_file *out,
                                    tegula_error *err) {
  tegula__json value = tegula__json_member(root, name);
  int64_t lengths[TEGULA_MAX_DIMS];
  int32_t ndim = 0;
  if (value.value == NULL) return TEGULA_OK;
  FORWARD(tegula__json_lengths(&value, 0, TEGULA_MAX_DIMS - 1, true, lengths, &ndim, err));
  bool same =
      ndim == out->row_ndim && memcmp(lengths, out->row_shape, (size_t)ndim * sizeof *lengths) == 0;
  if ((out->row_ndim >= 0 || out->is_scalar) && !same) {
    char text[TEGULA__SHAPE_TEXT];
    tegula__shape_format(out->row_shape, out->is_scalar ? 0 : out->row_ndim, text);
    return contradicts(&value, known_from, text, err);
  }
  out->row_ndim = ndim;
  memcpy(out->row_shape, lengths, sizeof lengths);
  return TEGULA_OK;
}

static tegula_status read_shape(const tegula__json *root, tegula__side_file *out,
                                tegula_error *err) {
  tegula__json value = tegula__json_member(root, "shape");
  int64_t lengths[TEGULA_MAX_DIMS];
  int32_t ndim = 0;
  if (value.value != NULL) {
    FORWARD(tegula__json_lengths(&value, 0, TEGULA_MAX_DIMS, true, lengths, &ndim, err));
    out->is_scalar = ndim == 0;
    out->has_length = ndim > 0;
    out->row_ndim = ndim - 1;
    if (ndim > 0) out->length = lengths[0];
    if (ndim > 1) memcpy(out->row_shape, lengths + 1, (size_t)(ndim - 1) * sizeof *lengths);
  }
  static const char *const names[] = {"row_shape", "trailing_shape", "trailing_axes"};
  const char *known_from = value.value != NULL ? "shape" : NULL;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    FORWARD(read_row_shape(root, names[i], known_from, out, err));
    if (known_from == NULL && tegula__json_member(root, names[i]).value != NULL)
      known_from = names[i];
  }
  return TEGULA_OK;
}

/* ---- rows ---- */

typedef struct rows_text {
  tegula__side_rows kind;
  tegula__named_rows *items;
  int64_t count;
} rows_text;

static void free_rows(rows_text *rows) {
  /* EACH has a count and no items */
  for (int64_t i = 0; rows->items != NULL && i < rows->count; i++) free(rows->items[i].name);
  free(rows->items);
  *rows = (rows_text){0};
}

static int compare_names(const void *a, const void *b) {
  return strcmp(((const tegula__named_rows *)a)->name, ((const tegula__named_rows *)b)->name);
}

/* Fills one entry; a name must be that of a file in the folder itself. */
static tegula_status read_entry(const tegula__json *value, tegula__named_rows *out,
                                tegula_error *err) {
  FORWARD(tegula__json_integer(value, 0, INT64_MAX, &out->rows, err));
  if (value->key == NULL) return TEGULA_OK;
  if (value->key[0] == '\0' || strchr(value->key, '/') != NULL)
    return tegula__fail(err, TEGULA_CORRUPT, value->file, -1,
                        "\"%s\": \"%.200s\" is no name of a file beside it", value->file,
                        value->key);
  out->name = strdup(value->key);
  return out->name != NULL ? TEGULA_OK : tegula__out_of_memory(err, (int64_t)strlen(value->key));
}

static tegula_status read_entries(const tegula__json *value, rows_text *out, tegula_error *err) {
  tegula__json entry = {0};
  out->count = tegula__json_count(value);
  out->items = calloc((size_t)out->count + 1, sizeof *out->items);
  if (out->items == NULL)
    return tegula__out_of_memory(err, out->count * (int64_t)sizeof *out->items);
  for (int64_t i = 0; i < out->count; i++) {
    if (out->kind == TEGULA__SIDE_ROWS_LIST)
      entry = tegula__json_item(value, i);
    else if (!tegula__json_next(value, &entry))
      return tegula__fail(err, TEGULA_INTERNAL, value->file, -1,
                          "\"%s\" has fewer members than it says", value->file);
    FORWARD(read_entry(&entry, &out->items[i], err));
  }
  if (out->kind == TEGULA__SIDE_ROWS_BY_NAME)
    qsort(out->items, (size_t)out->count, sizeof *out->items, compare_names);
  return TEGULA_OK;
}

static tegula_status read_rows_of(const tegula__json *value, bool number, rows_text *out,
                                  tegula_error *err) {
  *out = (rows_text){0};
  switch (tegula__json_kind_of(value)) {
    case TEGULA__JSON_ABSENT:
      return TEGULA_OK;
    case TEGULA__JSON_LIST:
      out->kind = TEGULA__SIDE_ROWS_LIST;
      break;
    case TEGULA__JSON_OBJECT:
      out->kind = TEGULA__SIDE_ROWS_BY_NAME;
      break;
    default:
      if (!number)
        return tegula__hint(
            err,
            tegula__json_wrong(value, err, "a list of rows, or an object of file names and rows"),
            "one number for all files is rows_per_shard");
      out->kind = TEGULA__SIDE_ROWS_EACH;
      return tegula__json_integer(value, 0, INT64_MAX, &out->count, err);
  }
  return read_entries(value, out, err);
}

static bool same_rows(const rows_text *a, const rows_text *b) {
  RETURN_IF(a->kind != b->kind || a->count != b->count, false);
  for (int64_t i = 0; a->kind >= TEGULA__SIDE_ROWS_LIST && i < a->count; i++) {
    const char *one = a->items[i].name, *other = b->items[i].name;
    RETURN_IF(a->items[i].rows != b->items[i].rows || (one != NULL && strcmp(one, other) != 0),
              false);
  }
  return true;
}

/* The rows under one of their names; they must be those that are known already. */
static tegula_status read_rows_named(const tegula__json *root, const char *name,
                                     const char **known_from, rows_text *known, tegula_error *err) {
  tegula__json value = tegula__json_member(root, name);
  rows_text again = {0};
  if (value.value == NULL) return TEGULA_OK;
  tegula_status status = read_rows_of(&value, strcmp(name, "rows") != 0, &again, err);
  if (status == TEGULA_OK && *known_from != NULL && !same_rows(known, &again))
    status = contradicts(&value, *known_from, "other numbers", err);
  if (status == TEGULA_OK && *known_from == NULL) {
    *known = again;
    *known_from = name;
  } else {
    free_rows(&again);
  }
  return status;
}

static tegula_status read_rows(const tegula__json *root, tegula__side_file *out,
                               tegula_error *err) {
  static const char *const names[] = {"rows", "rows_per_shard", "per_shard_rows"};
  const char *known_from = NULL;
  rows_text rows = {0};
  tegula_status status = TEGULA_OK;
  for (size_t i = 0; status == TEGULA_OK && i < sizeof names / sizeof names[0]; i++)
    status = read_rows_named(root, names[i], &known_from, &rows, err);
  out->rows_kind = rows.kind;
  out->rows = rows.items;
  out->rows_count = rows.count;
  return status;
}

/* Behind the rows: a list of them has one for each file. */
static tegula_status read_files(const tegula__json *root, tegula__side_file *out,
                                tegula_error *err) {
  tegula__json value = tegula__json_member(root, "num_shards");
  bool listed =
      out->rows_kind == TEGULA__SIDE_ROWS_LIST || out->rows_kind == TEGULA__SIDE_ROWS_BY_NAME;
  char text[64];
  if (value.value == NULL) return TEGULA_OK;
  FORWARD(tegula__json_integer(&value, 0, INT64_MAX, &out->files, err));
  out->has_files = true;
  if (!listed || out->rows_count == out->files) return TEGULA_OK;
  snprintf(text, sizeof text, "%lld files", (long long)out->rows_count);
  return contradicts(&value, "the list of rows", text, err);
}

/* ---- settings ---- */

/* Under its key without "raw.": a number or a word, as the table of the format says. */
static tegula_status read_setting(const tegula__json *root, const tegula__setting_row *row,
                                  tegula__side_file *out, tegula_error *err) {
  tegula__json value = tegula__json_member(root, row->key + strlen("raw."));
  const char *word = NULL;
  char digits[32];
  if (value.value == NULL) return TEGULA_OK;
  if (tegula__json_kind_of(&value) == TEGULA__JSON_TEXT) {
    FORWARD(tegula__json_text(&value, &word, err));
  } else {
    int64_t number = 0;
    FORWARD(tegula__json_integer(&value, 0, INT64_MAX, &number, err));
    snprintf(digits, sizeof digits, "%lld", (long long)number);
  }
  const tegula_setting one = {row->key, word != NULL ? word : digits};
  if ((word != NULL && row->choices == NULL) ||
      tegula__settings_check(&(tegula__settings){&one, 1}, TEGULA__SETTING_OPEN, NULL) != TEGULA_OK)
    return tegula__json_wrong(&value, err, "%s%s%s", row->number ? "a whole number" : "",
                              row->number && row->choices != NULL ? " or " : "",
                              row->choices != NULL ? row->choices : "");
  tegula_setting *kept = &out->settings[out->setting_count];
  *kept = (tegula_setting){row->key, strdup(one.value)};
  if (kept->value == NULL) return tegula__out_of_memory(err, (int64_t)strlen(one.value));
  out->setting_count++;
  return TEGULA_OK;
}

static tegula_status read_settings(const tegula__json *root, tegula__side_file *out,
                                   tegula_error *err) {
  const tegula__setting_row *rows = tegula__format_raw.settings;
  int64_t count = 0;
  while (rows[count].key != NULL) count++;
  out->settings = calloc((size_t)count + 1, sizeof *out->settings);
  if (out->settings == NULL)
    return tegula__out_of_memory(err, count * (int64_t)sizeof *out->settings);
  for (int64_t i = 0; i < count; i++)
    if ((rows[i].uses & TEGULA__SETTING_OPEN) != 0) FORWARD(read_setting(root, &rows[i], out, err));
  return TEGULA_OK;
}

/* ---- the whole ---- */

static tegula_status read_fields(const tegula__json *root, tegula__side_file *out,
                                 tegula_error *err) {
  static const char *const keys[] = {
      "dtype",        "shape",       "row_shape",      "trailing_shape", "trailing_axes",
      "byte_order",   "endianness",  "order",          "offset",         "rows",
      "header_bytes", "row_gap",     "rows_per_shard", "per_shard_rows", "num_shards",
      "comment",      "description", "version",        "name",           "created",
      "row_prefix",   "row_suffix",  "trailing_bytes", "record_markers", NULL};
  if (tegula__json_only(root, keys, &out->unknown) == TEGULA_OK) out->unknown.status = TEGULA_OK;
  FORWARD(read_bytes(root, "offset", "header_bytes", &out->has_offset, &out->offset, err));
  FORWARD(read_bytes(root, "row_gap", "row_gap", &out->has_row_gap, &out->row_gap, err));
  FORWARD(read_settings(root, out, err));
  FORWARD(read_byte_order(root, out, err));
  FORWARD(read_dtype(root, out, err));
  FORWARD(read_order(root, out, err));
  FORWARD(read_shape(root, out, err));
  FORWARD(read_rows(root, out, err));
  return read_files(root, out, err);
}

tegula_status tegula__side_file_parse(const void *text, size_t size, const char *path,
                                      tegula__side_file *out, tegula_error *err) {
  tegula__json root;
  *out = (tegula__side_file){.row_ndim = -1, .path = strdup(path)};
  if (out->path == NULL) return tegula__out_of_memory(err, (int64_t)strlen(path));
  FORWARD(tegula__json_parse(text, size, TEGULA__SIDE_FILE_BYTES, out->path, &root, err));
  tegula_status status = read_fields(&root, out, err);
  tegula__json_free(&root);
  return status;
}

void tegula__side_file_free(tegula__side_file *side) {
  rows_text rows = {side->rows_kind, side->rows, side->rows_count};
  free_rows(&rows);
  for (int32_t i = 0; i < side->setting_count; i++)
    free((void *)(uintptr_t)side->settings[i].value);
  free(side->settings);
  free(side->path);
  *side = (tegula__side_file){.row_ndim = -1};
}
