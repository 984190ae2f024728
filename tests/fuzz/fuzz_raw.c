/* Raw files: any options against any size; what is accepted lies inside the file and uses all of it
 * but one last gap.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The input is a row of numbers: file size, offset, gap (8 bytes each), dtype, order, byte order,
 * axes of shape and row shape (1 byte each), then the lengths (8 bytes each). No file is read: raw
 * files have no header. */
#include "format/format.h"
#include "fuzz.h"

static const char *const dtypes[] = {"b1",  "<f4", ">f8",      "<c16",
                                     "|V7", "<U3", "bfloat16", "|V2147483647"};

static tegula_status read_nothing(const tegula__source *source, int64_t offset, void *out,
                                  size_t size, tegula_error *err) {
  (void)offset, (void)out, (void)size;
  return tegula__fail(err, TEGULA_INTERNAL, source->path, -1, "raw files have no header to read");
}

static void check_part(const tegula__manifest *manifest, const tegula__describe_options *options,
                       int64_t size) {
  MUST(manifest->part_count == 1 && manifest->parts[0].offset == options->offset);
  const tegula__part *part = &manifest->parts[0];
  __int128 end = (__int128)part->offset + manifest->dtype.item_size,
           dense = manifest->dtype.item_size;
  bool empty = false;
  for (int32_t k = 0; k < manifest->ndim; k++) {
    MUST(part->lo[k] == 0 && part->hi[k] == manifest->shape[k]);
    empty = empty || manifest->shape[k] == 0;
    end += (__int128)(manifest->shape[k] - 1) * part->strides[k];
    dense *= manifest->shape[k];
  }
  if (empty) return;
  MUST(end <= size && end + options->row_gap >= size);
  MUST(dense <= size - options->offset);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int64_t file_size = (int64_t)(take_number(&data, &size, 8) & INT64_MAX);
  tegula__describe_options options = {.has_dtype = true};
  options.offset = (int64_t)take_number(&data, &size, 8);
  options.row_gap = (int64_t)take_number(&data, &size, 8);
  const char *dtype = dtypes[take_number(&data, &size, 1) % (sizeof dtypes / sizeof dtypes[0])];
  MUST(tegula_dtype_parse(dtype, &options.dtype, NULL) == TEGULA_OK);
  options.order = "\0CFx"[take_number(&data, &size, 1) & 3];
  options.byte_order = "\0<>x"[take_number(&data, &size, 1) & 3];
  options.shape_ndim = (int32_t)(take_number(&data, &size, 1) % 67) - 1;
  options.row_ndim = (int32_t)(take_number(&data, &size, 1) % 67) - 1;
  int64_t lengths[2 * 66] = {0};
  for (int i = 0; i < 2 * 66 && size > 0; i++) lengths[i] = (int64_t)take_number(&data, &size, 8);
  guarded shape =
      guarded_copy(lengths, (size_t)(options.shape_ndim > 0 ? options.shape_ndim : 0) * 8, false);
  guarded row =
      guarded_copy(lengths, (size_t)(options.row_ndim > 0 ? options.row_ndim : 0) * 8, false);
  options.shape = (const int64_t *)(void *)shape.data;
  options.row_shape = (const int64_t *)(void *)row.data;
  tegula__source source = {.path = "x.raw", .size = file_size, .read = read_nothing};
  tegula__manifest manifest;
  tegula_error error;
  tegula__manifest_init(&manifest);
  tegula_status status = tegula__format_raw.describe(&source, &options, &manifest, &error);
  if (status == TEGULA_OK)
    check_part(&manifest, &options, file_size);
  else
    MUST(status != TEGULA_INTERNAL && error.status == status && error.message[0] != '\0');
  tegula__manifest_free(&manifest);
  guarded_free(&shape);
  guarded_free(&row);
  return 0;
}
