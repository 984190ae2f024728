/* Raw files: any options against any size; what is accepted lies inside the file and uses all of it
 * but one last gap.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The input is a row of numbers: file size, offset, gap (8 bytes each), dtype, order, byte order,
 * axes of shape and row shape (1 byte each), settings (1 byte of flags, then 8 bytes for each that
 * is given), then the lengths (8 bytes each). What is read of a file is the first marker of its
 * records, which is the value of that setting. */
#include <stdio.h>

#include "base/frame.h"
#include "format/format.h"
#include "fuzz.h"

static const char *const dtypes[] = {"b1",  "<f4", ">f8",      "<c16",
                                     "|V7", "<U3", "bfloat16", "|V2147483647"};

static tegula_status read_marker(const tegula__source *source, int64_t offset, void *out,
                                 size_t size, tegula_error *err) {
  (void)err;
  MUST(size <= 8 && offset >= 0 && offset <= source->size - (int64_t)size);
  memcpy(out, source->state, size);
  return TEGULA_OK;
}

/* Settings that are given, with their texts. */
typedef struct given {
  tegula_setting items[4];
  char texts[4][24];
  int32_t count;
  int64_t marker, around, trailing;
} given;

static void take_settings(const uint8_t **data, size_t *size, given *out) {
  static const char *const keys[] = {"raw.row_prefix", "raw.row_suffix", "raw.trailing_bytes",
                                     "raw.record_markers"};
  unsigned flags = (unsigned)take_number(data, size, 1);
  for (int i = 0; i < 4; i++) {
    if ((flags >> i & 1) == 0) continue;
    int64_t value = (int64_t)take_number(data, size, 8);
    char *text = out->texts[out->count];
    snprintf(text, sizeof out->texts[0], "%lld", (long long)(value & INT64_MAX));
    if (i < 2) out->around |= value & INT64_MAX;
    if (i == 2) out->trailing = (flags & 16) != 0 ? -1 : value & INT64_MAX;
    if (i == 2 && (flags & 16) != 0) strcpy(text, "any");
    if (i == 3) strcpy(text, (flags & 32) != 0 ? "fortran8" : "fortran4");
    if (i == 3) out->marker = value;
    out->items[out->count++] = (tegula_setting){keys[i], text};
  }
}

/* What is accepted has whole records up to the trailing bytes. */
static void check_records(const tegula__manifest *manifest, int64_t size, int64_t trailing) {
  const tegula__frame *frame = &manifest->frame;
  int64_t period;
  __int128 bytes = manifest->dtype.item_size;
  MUST(tegula__frame_valid(frame) && tegula__frame_period(frame, &period));
  for (int32_t k = 0; k < manifest->ndim; k++) bytes *= manifest->shape[k];
  MUST(bytes % frame->record == 0);
  __int128 end = frame->first + bytes / frame->record * period;
  MUST(end <= size && (trailing < 0 || end + trailing == size));
}

static void check_part(const tegula__manifest *manifest, const tegula__describe_options *options,
                       int64_t size, const given *said) {
  MUST(manifest->part_count == 1 && manifest->parts[0].offset >= options->offset);
  if (manifest->frame.record > 0) return check_records(manifest, size, said->trailing);
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
  MUST(end <= size);
  if (said->around == 0 && said->trailing == 0) MUST(end + options->row_gap >= size);
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
  given said = {0};
  take_settings(&data, &size, &said);
  options.settings = (tegula__settings){said.items, said.count};
  int64_t lengths[2 * 66] = {0};
  for (int i = 0; i < 2 * 66 && size > 0; i++) lengths[i] = (int64_t)take_number(&data, &size, 8);
  guarded shape =
      guarded_copy(lengths, (size_t)(options.shape_ndim > 0 ? options.shape_ndim : 0) * 8, false);
  guarded row =
      guarded_copy(lengths, (size_t)(options.row_ndim > 0 ? options.row_ndim : 0) * 8, false);
  options.shape = (const int64_t *)(void *)shape.data;
  options.row_shape = (const int64_t *)(void *)row.data;
  tegula__source source = {
      .path = "x.raw", .size = file_size, .read = read_marker, .state = &said.marker};
  tegula__manifest manifest;
  tegula_error error;
  tegula__manifest_init(&manifest);
  tegula_status status = tegula__format_raw.describe(&source, &options, &manifest, &error);
  if (status == TEGULA_OK)
    check_part(&manifest, &options, file_size, &said);
  else
    MUST(status != TEGULA_INTERNAL && error.status == status && error.message[0] != '\0');
  tegula__manifest_free(&manifest);
  guarded_free(&shape);
  guarded_free(&row);
  return 0;
}
