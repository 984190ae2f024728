/* Side files of raw files: whatever text and caller say, the fields lie in their ranges, and what
 * comes of them fits both.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The input is eight bytes of what the caller says (dtype; order and byte order; offset; row gap;
 * axes of shape and row shape; lengths; number of the file in its folder, and whether it is alone
 * there; its size) and the text. A raw file is then described by the two. */
#include "format/raw/side_file.h"
#include "fuzz.h"

static const char *const dtypes[] = {"<f4", ">f8", "|V2", "bfloat16", "b1"};
#define DTYPES (sizeof dtypes / sizeof dtypes[0])

typedef struct said {
  tegula__describe_options options;
  int64_t lengths[8];
  int64_t place, size;
  bool alone;
} said;

static void take_said(const uint8_t **data, size_t *size, said *out) {
  size_t dtype = take_number(data, size, 1) % (DTYPES + 1), orders = take_number(data, size, 1);
  *out = (said){.options = {.has_dtype = dtype > 0,
                            .order = "\0CF\0"[orders & 3],
                            .byte_order = "\0<>\0"[orders >> 2 & 3]}};
  if (dtype > 0)
    MUST(tegula_dtype_parse(dtypes[dtype - 1], &out->options.dtype, NULL) == TEGULA_OK);
  out->options.offset = (int64_t)take_number(data, size, 1);
  out->options.row_gap = (int64_t)take_number(data, size, 1);
  size_t axes = take_number(data, size, 1), length = take_number(data, size, 1),
         file = take_number(data, size, 1);
  out->options.shape_ndim = (int32_t)(axes & 7) - 1;
  out->options.row_ndim = (int32_t)(axes >> 3 & 7) - 1;
  for (size_t k = 0; k < 8; k++)
    out->lengths[k] = (int64_t)(k % 2 == 0 ? length & 15 : length >> 4);
  out->options.shape = out->options.row_shape = out->lengths;
  out->place = (int64_t)(file & 127);
  out->alone = file >> 7 != 0;
  out->size = (int64_t)take_number(data, size, 1) * 4;
}

static void check_error(tegula_status status, const tegula_error *error) {
  MUST(status != TEGULA_INTERNAL && error->status == status && error->message[0] != '\0' &&
       strchr(error->message, '\n') == NULL);
}

static bool lengths_good(const int64_t *lengths, int32_t count) {
  for (int32_t k = 0; k < count; k++)
    if (lengths[k] < 0) return false;
  return true;
}

static void check_fields(const tegula__side_file *side) {
  bool listed =
      side->rows_kind == TEGULA__SIDE_ROWS_LIST || side->rows_kind == TEGULA__SIDE_ROWS_BY_NAME;
  MUST(side->offset >= 0 && side->row_gap >= 0 && side->length >= 0 && side->rows_count >= 0 &&
       side->files >= 0);
  MUST(side->row_ndim >= -1 && side->row_ndim < TEGULA_MAX_DIMS &&
       lengths_good(side->row_shape, side->row_ndim));
  MUST(!side->is_scalar || (!side->has_length && side->row_ndim < 0));
  MUST(!side->has_dtype || tegula__dtype_valid(side->dtype));
  for (int64_t i = 0; listed && i < side->rows_count; i++) {
    const char *name = side->rows[i].name;
    MUST(side->rows[i].rows >= 0 &&
         (name != NULL) == (side->rows_kind == TEGULA__SIDE_ROWS_BY_NAME));
    MUST(name == NULL || (name[0] != '\0' && strchr(name, '/') == NULL));
    MUST(name == NULL || i == 0 || strcmp(side->rows[i - 1].name, name) < 0);
  }
}

static tegula_status read_nothing(const tegula__source *source, int64_t offset, void *out,
                                  size_t size, tegula_error *err) {
  (void)offset, (void)out, (void)size;
  return tegula__fail(err, TEGULA_INTERNAL, source->path, -1, "raw files have no header to read");
}

/* What was described is what both said. */
static void check_described(const tegula__side_file *side, const said *word,
                            const tegula__manifest *shard) {
  MUST(!side->has_dtype || tegula_dtype_same(side->dtype, shard->dtype));
  MUST(!word->options.has_dtype || tegula_dtype_same(word->options.dtype, shard->dtype));
  MUST(!side->is_scalar || shard->ndim == 0);
  MUST(side->row_ndim < 0 || shard->ndim == side->row_ndim + 1);
  for (int32_t k = 0; k < side->row_ndim; k++) MUST(shard->shape[k + 1] == side->row_shape[k]);
  MUST(!side->has_offset || shard->parts[0].offset == side->offset);
  MUST(side->byte_order == 0 || shard->parts[0].order == '|' ||
       shard->parts[0].order == (uint8_t)side->byte_order);
}

static void describe(tegula__side_file *side, const said *word) {
  int64_t shape[TEGULA_MAX_DIMS];
  char path[] = "d/a.bin";
  tegula__describe_options options;
  tegula__file file = {.path = path};
  tegula__source source = {.path = path, .size = word->size, .read = read_nothing};
  tegula__manifest shard;
  tegula_error error;
  tegula_status status =
      tegula__side_file_check_names(side, &file, 1, word->alone, word->place + 1, &error);
  if (status != TEGULA_OK) check_error(status, &error);
  tegula__manifest_init(&shard);
  status = tegula__side_file_options(side, &word->options, path, word->place, word->alone, shape,
                                     &options, &error);
  if (status == TEGULA_OK) {
    MUST(options.shape_ndim <= TEGULA_MAX_DIMS && options.row_ndim < TEGULA_MAX_DIMS);
    MUST(lengths_good(options.shape, options.shape_ndim) &&
         lengths_good(options.row_shape, options.row_ndim));
    status = tegula__format_raw.describe(&source, &options, &shard, &error);
  }
  if (status == TEGULA_OK) {
    check_described(side, word, &shard);
    status = tegula__side_file_check(side, &shard, &file, &word->place, 1, word->alone, &error);
  }
  if (status != TEGULA_OK) check_error(status, &error);
  tegula__manifest_free(&shard);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  said word;
  take_said(&data, &size, &word);
  guarded text = guarded_copy(data, size, false);
  tegula__side_file side;
  tegula_error error;
  tegula_status status =
      tegula__side_file_parse(text.data, text.size, "d/shard_meta.json", &side, &error);
  guarded_free(&text); /* nothing of it is borrowed */
  if (status == TEGULA_OK) {
    check_fields(&side);
    describe(&side, &word);
  } else {
    check_error(status, &error);
  }
  tegula__side_file_free(&side);
  return 0;
}
