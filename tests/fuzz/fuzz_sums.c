/* Sums as JSON: what is read has a digest for each block of each file, and chunks that lie in their
 * file and in the array, in order.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The input is the text. Nothing is opened. */
#include "fuzz.h"
#include "verify/sums.h"

static void check_file(const tegula__sums *sums, const tegula__file_sums *file, int64_t *block,
                       int64_t *chunk) {
  MUST(file->path != NULL && (file->path[0] == '/' || strncmp(file->path, "dir/", 4) == 0) &&
       file->size >= 0);
  MUST(file->first_block == *block && file->first_chunk == *chunk && file->chunk_count >= 0);
  *block += tegula__sum_blocks(file->size);
  *chunk += file->chunk_count;
  MUST(*block <= sums->block_count && *chunk <= sums->chunk_count);
  int64_t last = 0;
  for (int64_t i = file->first_chunk; i < *chunk; i++) {
    const tegula__chunk_sum *one = &sums->chunks[i];
    MUST(one->file == file - sums->files && one->offset >= last && one->length > 0 &&
         one->length <= file->size - one->offset);
    MUST(one->at >= 0 && one->at + sums->ndim <= sums->vector_count);
    for (int32_t k = 0; k < sums->ndim; k++)
      MUST(sums->vectors[one->at + k] >= 0 && sums->vectors[one->at + k] < sums->shape[k]);
    last = one->offset;
  }
}

static void check_sums(const tegula__sums *sums) {
  int64_t bytes, block = 0, chunk = 0;
  MUST(tegula__dtype_valid(sums->dtype) && sums->ndim >= 0 && sums->ndim <= TEGULA_MAX_DIMS);
  MUST(tegula__shape_bytes(sums->shape, sums->ndim, sums->dtype.item_size, &bytes));
  MUST(sums->format[0] != '\0' && sums->name[0] != '\0' &&
       (sums->content[0] == '\0' || strlen(sums->content) == 40));
  for (int64_t i = 0; i < sums->file_count; i++) check_file(sums, &sums->files[i], &block, &chunk);
  MUST(block == sums->block_count && chunk == sums->chunk_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  guarded text = guarded_copy(data, size, false);
  tegula__sums sums;
  tegula_error error;
  tegula_status status = tegula__sums_read(text.data, text.size, "dir/sums.json", &sums, &error);
  guarded_free(&text); /* nothing of it is borrowed */
  if (status == TEGULA_OK)
    check_sums(&sums);
  else
    MUST(status != TEGULA_INTERNAL && error.status == status && error.message[0] != '\0' &&
         strchr(error.message, '\n') == NULL);
  tegula__sums_free(&sums);
  return 0;
}
