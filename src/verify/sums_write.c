/* Sums as JSON text.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The text is written in one go; its last member is the digest of all that stands before it, so
 * that damage to the text is not taken for damage to the data. */
#include <stdlib.h>

#include "base/json.h"
#include "manifest/names.h"
#include "verify/sums.h"

static tegula_status too_long(const tegula__buffer *buffer, tegula_error *err) {
  if (buffer->size <= buffer->maximum / 2) return tegula__out_of_memory(err, (int64_t)buffer->size);
  return tegula__fail(err, TEGULA_LIMIT_EXCEEDED, NULL, -1,
                      "the sums are longer than %zu bytes of JSON", buffer->maximum);
}

static bool write_sum(tegula__buffer *buffer, tegula__hash128 sum) {
  char text[TEGULA__SUM_TEXT];
  tegula__sum_format(sum, text);
  return tegula__buffer_printf(buffer, "\"%s\"", text);
}

static bool write_head(tegula__buffer *buffer, const tegula__sums *sums) {
  char dtype[TEGULA_DTYPE_TEXT];
  tegula_dtype_format(sums->dtype, dtype);
  return tegula__buffer_printf(buffer, "{\"" TEGULA__SUMS_KEY "\": 1,\n \"format\": ") &&
         tegula__buffer_json_text(buffer, sums->format) &&
         tegula__buffer_printf(buffer, ",\n \"name\": ") &&
         tegula__buffer_json_text(buffer, sums->name) &&
         tegula__buffer_printf(buffer, ",\n \"dtype\": \"%s\",\n \"shape\": ", dtype) &&
         tegula__json_write_numbers(buffer, sums->shape, sums->ndim) &&
         tegula__buffer_printf(buffer, ",\n \"content\": ") &&
         tegula__buffer_json_text(buffer, sums->content[0] != '\0' ? sums->content : NULL) &&
         tegula__buffer_printf(buffer, ",\n \"block_bytes\": %lld,\n \"files\": [",
                               (long long)TEGULA__SUM_BLOCK);
}

static bool write_blocks(tegula__buffer *buffer, const tegula__sums *sums,
                         const tegula__file_sums *file) {
  int64_t count = tegula__sum_blocks(file->size);
  if (count == 1) return true;
  bool good = tegula__buffer_printf(buffer, ",\n   \"blocks\": [");
  for (int64_t i = 0; good && i < count; i++)
    good = (i == 0 || tegula__buffer_append(buffer, ", ", 2)) &&
           write_sum(buffer, sums->blocks[file->first_block + i]);
  return good && tegula__buffer_append(buffer, "]", 1);
}

static bool write_chunks(tegula__buffer *buffer, const tegula__sums *sums,
                         const tegula__file_sums *file) {
  if (file->chunk_count == 0) return true;
  bool good = tegula__buffer_printf(buffer, ",\n   \"chunks\": [");
  for (int64_t i = 0; good && i < file->chunk_count; i++) {
    const tegula__chunk_sum *chunk = &sums->chunks[file->first_chunk + i];
    good = tegula__buffer_printf(buffer, i > 0 ? ",\n    [" : "\n    [") &&
           tegula__json_write_numbers(buffer, sums->vectors + chunk->at, sums->ndim) &&
           tegula__buffer_printf(buffer, ", %lld, %lld, ", (long long)chunk->offset,
                                 (long long)chunk->length) &&
           write_sum(buffer, chunk->sum) && tegula__buffer_append(buffer, "]", 1);
  }
  return good && tegula__buffer_append(buffer, "]", 1);
}

static tegula_status write_file(tegula__buffer *buffer, const tegula__sums *sums,
                                const tegula__file_sums *file, tegula__namer *namer,
                                tegula_error *err) {
  char *name = NULL;
  FORWARD(tegula__namer_name(namer, file->path, &name, err));
  bool good = tegula__buffer_printf(buffer, file == sums->files ? "\n  {" : ",\n  {") &&
              tegula__json_write_name(buffer, name) &&
              tegula__buffer_printf(buffer, ", \"size\": %lld, \"sum\": ", (long long)file->size) &&
              write_sum(buffer, file->sum) && write_blocks(buffer, sums, file) &&
              write_chunks(buffer, sums, file) && tegula__buffer_append(buffer, "}", 1);
  free(name);
  return good ? TEGULA_OK : too_long(buffer, err);
}

static tegula_status write_all(tegula__buffer *buffer, const tegula__sums *sums,
                               tegula__namer *namer, tegula_error *err) {
  if (!write_head(buffer, sums)) return too_long(buffer, err);
  for (int64_t i = 0; i < sums->file_count; i++)
    FORWARD(write_file(buffer, sums, &sums->files[i], namer, err));
  if (!tegula__buffer_printf(buffer, "\n ]")) return too_long(buffer, err);
  tegula__hash128 self = tegula__sum_of(buffer->data, buffer->size);
  bool good = tegula__buffer_printf(buffer, ",\n \"self\": ") && write_sum(buffer, self) &&
              tegula__buffer_append(buffer, "}\n", sizeof "}\n"); /* with the zero */
  return good ? TEGULA_OK : too_long(buffer, err);
}

tegula_status tegula__sums_write(const tegula__sums *sums, const char *folder, char **out,
                                 tegula_error *err) {
  if (!tegula__json_is_text(sums->name))
    return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                        "the dataset's name is no UTF-8 and cannot be written as JSON");
  tegula__buffer buffer;
  tegula__buffer_init(&buffer, TEGULA__SUMS_BYTES);
  tegula__namer namer;
  tegula_status status = tegula__namer_init(&namer, folder, err);
  if (status == TEGULA_OK) status = write_all(&buffer, sums, &namer, err);
  tegula__namer_free(&namer);
  if (status == TEGULA_OK)
    *out = buffer.data;
  else
    tegula__buffer_free(&buffer);
  return status;
}
