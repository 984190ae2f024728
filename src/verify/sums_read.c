/* JSON text -> sums. Nothing in the text is believed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "manifest/names.h"
#include "verify/sums.h"

/* ---- the text itself ---- */

static const char SELF[] = ",\n \"self\": \"";

/* The member "self" of a text that tegula wrote: the digest of what stands before it. A text
 * without it may come from another program. */
static tegula_status check_self(const char *text, size_t size, const tegula__json *root,
                                tegula_error *err) {
  tegula__json self = tegula__json_member(root, "self");
  if (self.value == NULL) return TEGULA_OK;
  const char *expected = NULL;
  char found[TEGULA__SUM_TEXT];
  FORWARD(tegula__json_text(&self, &expected, err));
  /* with the digits, the quote, the brace and the newline */
  size_t tail = sizeof SELF - 1 + TEGULA__SUM_TEXT + 2;
  if (size >= tail && memcmp(text + size - tail, SELF, sizeof SELF - 1) == 0) {
    tegula__sum_format(tegula__sum_of(text, size - tail), found);
    if (strcmp(expected, found) == 0) return TEGULA_OK;
  }
  return tegula__hint(
      err,
      tegula__fail(err, TEGULA_CORRUPT, root->file, -1,
                   "\"%s\" is damaged: it does not have the digest \"self\" that it ends with",
                   root->file),
      "take another copy of it, or remove the member \"self\" if the text was changed on purpose");
}

static tegula_status read_version(const tegula__json *root, tegula_error *err) {
  tegula__json version = tegula__json_member(root, TEGULA__SUMS_KEY),
               block = tegula__json_member(root, "block_bytes");
  int64_t number = 0;
  FORWARD(tegula__json_integer(&version, 1, INT64_MAX, &number, err));
  if (number != 1)
    return tegula__hint(err,
                        tegula__fail(err, TEGULA_UNSUPPORTED, root->file, -1,
                                     "\"%s\" holds sums of version %lld, known is version 1",
                                     root->file, (long long)number),
                        "a newer tegula wrote it; use that one");
  return tegula__json_integer(&block, TEGULA__SUM_BLOCK, TEGULA__SUM_BLOCK, &number, err);
}

/* ---- the array ---- */

static tegula_status read_text(const tegula__json *root, const char *key, char **out,
                               tegula_error *err) {
  tegula__json member = tegula__json_member(root, key);
  const char *text = NULL;
  FORWARD(tegula__json_text(&member, &text, err));
  *out = tegula__strdup(text);
  return *out != NULL ? TEGULA_OK : tegula__out_of_memory(err, (int64_t)strlen(text));
}

static tegula_status read_array(const tegula__json *root, tegula__sums *out, tegula_error *err) {
  tegula__json dtype = tegula__json_member(root, "dtype"),
               shape = tegula__json_member(root, "shape");
  const char *text = NULL;
  int64_t bytes;
  FORWARD(read_text(root, "format", &out->format, err));
  FORWARD(read_text(root, "name", &out->name, err));
  FORWARD(tegula__json_text(&dtype, &text, err));
  if (tegula_dtype_parse(text, &out->dtype, NULL) != TEGULA_OK)
    return tegula__json_wrong(&dtype, err, "a dtype such as <f4");
  FORWARD(tegula__json_lengths(&shape, 0, TEGULA_MAX_DIMS, false, out->shape, &out->ndim, err));
  if (tegula__shape_bytes(out->shape, out->ndim, out->dtype.item_size, &bytes)) return TEGULA_OK;
  return tegula__json_wrong(&shape, err, "a shape of at most 2^63 - 1 bytes");
}

static tegula_status read_content(const tegula__json *root, tegula__sums *out, tegula_error *err) {
  tegula__json content = tegula__json_member(root, "content");
  const char *text = NULL;
  if (tegula__json_kind_of(&content) == TEGULA__JSON_NULL) return TEGULA_OK;
  FORWARD(tegula__json_text(&content, &text, err));
  size_t digits = strlen("tegula1:"), length = strlen(text);
  bool good = strncmp(text, "tegula1:", digits) == 0 && length == digits + TEGULA__SUM_TEXT - 1;
  for (size_t i = digits; good && i < length; i++) good = tegula__json_hex_digit(text[i]) >= 0;
  if (!good)
    return tegula__json_wrong(&content, err,
                              "a content hash (tegula1: and 32 hexadecimal digits) or null");
  memcpy(out->content, text, length + 1);
  return TEGULA_OK;
}

/* ---- files ---- */

static tegula_status read_sum(const tegula__json *value, tegula__hash128 *out, tegula_error *err) {
  const char *text = NULL;
  FORWARD(tegula__json_text(value, &text, err));
  *out = (tegula__hash128){0};
  bool good = strlen(text) == TEGULA__SUM_TEXT - 1;
  for (int i = 0; good && i < TEGULA__SUM_TEXT - 1; i++) {
    int digit = tegula__json_hex_digit(text[i]);
    uint64_t *half = i < 16 ? &out->high : &out->low;
    good = digit >= 0;
    *half = *half << 4 | (uint64_t)(digit & 15);
  }
  return good ? TEGULA_OK : tegula__json_wrong(value, err, "32 hexadecimal digits (0-9, a-f)");
}

/* The sum of the file must be that of its blocks. */
static tegula_status read_blocks(const tegula__json *file, tegula__file_sums *out,
                                 tegula__sums *sums, tegula_error *err) {
  tegula__json list = tegula__json_member(file, "blocks"), sum = tegula__json_member(file, "sum");
  int64_t count = tegula__sum_blocks(out->size), found = tegula__json_count(&list);
  FORWARD(read_sum(&sum, &out->sum, err));
  bool listed = list.value != NULL;
  if (listed) FORWARD(tegula__json_expect(&list, TEGULA__JSON_LIST, err));
  /* before anything is allocated: the text then is as long as what it asks for */
  if (count > 1 ? found != count : listed)
    return count == 1 ? tegula__json_wrong(&list, err, "nothing, because the file is one block")
                      : tegula__json_wrong(&list, err, "a list of %lld sums", (long long)count);
  if (!tegula__vector_reserve((void **)&sums->blocks, &sums->block_capacity,
                              sums->block_count + count, sizeof *sums->blocks))
    return tegula__out_of_memory(err, count * (int64_t)sizeof *sums->blocks);
  out->first_block = sums->block_count;
  tegula__hash128 *blocks = sums->blocks + sums->block_count;
  sums->block_count += count;
  blocks[0] = out->sum;
  for (int64_t i = 0; count > 1 && i < count; i++) {
    tegula__json item = tegula__json_item(&list, i);
    FORWARD(read_sum(&item, &blocks[i], err));
  }
  tegula__hash128 whole;
  if (!tegula__sum_of_blocks(blocks, count, &whole))
    return tegula__out_of_memory(err, count * (int64_t)sizeof *blocks);
  return tegula__sum_same(whole, out->sum) ? TEGULA_OK
                                           : tegula__json_wrong(&sum, err, "the sum of its blocks");
}

/* [[3, 0], offset, length, "sum"] */
static tegula_status read_chunk(const tegula__json *value, const tegula__file_sums *file,
                                tegula__sums *sums, tegula_error *err) {
  tegula__json at = tegula__json_item(value, 0), offset = tegula__json_item(value, 1),
               length = tegula__json_item(value, 2), sum = tegula__json_item(value, 3);
  if (tegula__json_kind_of(value) != TEGULA__JSON_LIST || tegula__json_count(value) != 4)
    return tegula__json_wrong(value, err, "a list of place, offset, length and sum");
  if (!tegula__vector_reserve((void **)&sums->chunks, &sums->chunk_capacity, sums->chunk_count + 1,
                              sizeof *sums->chunks) ||
      !tegula__vector_reserve((void **)&sums->vectors, &sums->vector_capacity,
                              sums->vector_count + sums->ndim + 1, sizeof *sums->vectors))
    return tegula__out_of_memory(err, sums->chunk_count * (int64_t)sizeof *sums->chunks);
  tegula__chunk_sum *chunk = &sums->chunks[sums->chunk_count];
  *chunk = (tegula__chunk_sum){.file = file - sums->files, .at = sums->vector_count};
  int64_t *place = sums->vectors + chunk->at;
  int32_t axes;
  FORWARD(tegula__json_lengths(&at, sums->ndim, sums->ndim, false, place, &axes, err));
  for (int32_t k = 0; k < sums->ndim; k++)
    if (place[k] >= sums->shape[k]) return tegula__json_wrong(&at, err, "a place inside the shape");
  int64_t least = sums->chunk_count > file->first_chunk ? chunk[-1].offset : 0;
  FORWARD(tegula__json_integer(&offset, least, file->size, &chunk->offset, err));
  FORWARD(tegula__json_integer(&length, 1, file->size - chunk->offset, &chunk->length, err));
  FORWARD(read_sum(&sum, &chunk->sum, err));
  sums->vector_count += sums->ndim;
  sums->chunk_count++;
  return TEGULA_OK;
}

static tegula_status read_chunks(const tegula__json *value, tegula__file_sums *file,
                                 tegula__sums *sums, tegula_error *err) {
  tegula__json list = tegula__json_member(value, "chunks");
  file->first_chunk = sums->chunk_count;
  if (list.value == NULL) return TEGULA_OK;
  FORWARD(tegula__json_expect(&list, TEGULA__JSON_LIST, err));
  file->chunk_count = tegula__json_count(&list);
  for (int64_t i = 0; i < file->chunk_count; i++) {
    tegula__json item = tegula__json_item(&list, i);
    FORWARD(read_chunk(&item, file, sums, err));
  }
  return TEGULA_OK;
}

static tegula_status read_file(const tegula__json *value, tegula__file_sums *out,
                               tegula__sums *sums, tegula_error *err) {
  static const char *const keys[] = {"path", "path_hex", "size", "sum", "blocks", "chunks", NULL};
  FORWARD(tegula__json_expect(value, TEGULA__JSON_OBJECT, err));
  FORWARD(tegula__json_only(value, keys, err));
  tegula__json size = tegula__json_member(value, "size");
  FORWARD(tegula__json_read_name(value, &out->path, err));
  FORWARD(tegula__json_integer(&size, 0, INT64_MAX, &out->size, err));
  FORWARD(read_blocks(value, out, sums, err));
  return read_chunks(value, out, sums, err);
}

static tegula_status read_files(const tegula__json *root, tegula__sums *out, tegula_error *err) {
  tegula__json files = tegula__json_member(root, "files");
  FORWARD(tegula__json_expect(&files, TEGULA__JSON_LIST, err));
  int64_t count = tegula__json_count(&files);
  out->files = calloc((size_t)tegula__max(1, count), sizeof *out->files);
  if (out->files == NULL) return tegula__out_of_memory(err, count * (int64_t)sizeof *out->files);
  out->file_count = count;
  for (int64_t i = 0; i < count; i++) {
    tegula__json file = tegula__json_item(&files, i);
    FORWARD(read_file(&file, &out->files[i], out, err));
  }
  return TEGULA_OK;
}

static tegula_status read_root(const char *text, size_t size, const tegula__json *root,
                               tegula__sums *out, tegula_error *err) {
  static const char *const keys[] = {TEGULA__SUMS_KEY, "format",      "name",  "dtype", "shape",
                                     "content",        "block_bytes", "files", "self",  NULL};
  FORWARD(check_self(text, size, root, err));
  FORWARD(read_version(root, err));
  FORWARD(tegula__json_only(root, keys, err));
  FORWARD(read_array(root, out, err));
  FORWARD(read_content(root, out, err));
  return read_files(root, out, err);
}

tegula_status tegula__sums_read(const void *text, size_t size, const char *path, tegula__sums *out,
                                tegula_error *err) {
  tegula__json root;
  *out = (tegula__sums){0};
  FORWARD(tegula__json_parse(text, size, TEGULA__SUMS_BYTES, path, &root, err));
  tegula_status status = read_root(text, size, &root, out, err);
  tegula__json_free(&root);
  if (status != TEGULA_OK) tegula__sums_free(out);
  return status;
}
