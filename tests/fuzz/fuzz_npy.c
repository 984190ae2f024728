/* npy headers: whatever is described lies inside the file, and writing the same array again gives a
 * header that says the same.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The input is one byte of settings and the file. Bits 0 to 2: how many of the first bytes are
 * known already; bit 3: bfloat16 is asked for; bits 4 to 7: 2^(3n) bytes more than there are, which
 * a header may then claim (array data is never looked at). */
#include "format/format.h"
#include "format/npy/fields.h"
#include "format/record_fields.h"
#include "fuzz.h"

static const size_t head_sizes[8] = {0, 5, 8, 10, 12, 64, 128, 4096};

static tegula_status read_bytes(const tegula__source *source, int64_t offset, void *out,
                                size_t size, tegula_error *err) {
  const guarded *file = source->state;
  /* the driver's promise */
  MUST(offset >= 0 && size <= INT64_MAX && offset <= source->size - (int64_t)size);
  if ((size_t)offset + size > file->size)
    return tegula__fail(err, TEGULA_IO, source->path, offset, "could not read");
  memcpy(out, file->data + offset, size);
  return TEGULA_OK;
}

/* Independent of the library's own arithmetic: the last byte of the last element. */
static void check_inside(const tegula__manifest *manifest, int64_t file_size) {
  for (int64_t i = 0; i < manifest->part_count; i++) {
    const tegula__part *part = &manifest->parts[i];
    __int128 end = (__int128)part->offset + manifest->dtype.item_size;
    bool empty = false;
    for (int32_t k = 0; k < manifest->ndim; k++) {
      MUST(part->lo[k] >= 0 && part->lo[k] <= part->hi[k]);
      empty = empty || part->lo[k] == part->hi[k];
      end += (__int128)(part->hi[k] - part->lo[k] - 1) * part->strides[k];
    }
    MUST(part->offset >= 0 && (empty || end <= file_size));
  }
}

static tegula_status describe(const guarded *file, int64_t size, size_t head,
                              const tegula__describe_options *options, tegula__manifest *out,
                              tegula_error *err) {
  guarded first = guarded_copy(file->data, head < file->size ? head : file->size, false);
  tegula__source source = {.path = "x.npy",
                           .size = size,
                           .read = read_bytes,
                           .state = (void *)file,
                           .head = (const unsigned char *)first.data,
                           .head_size = first.size};
  tegula__manifest_init(out);
  tegula_status status = tegula__format_npy.describe(&source, options, out, err);
  guarded_free(&first);
  return status;
}

static void write_and_describe(const tegula__manifest *manifest) {
  const tegula__describe_options none = {.shape_ndim = -1, .row_ndim = -1};
  int64_t strides[TEGULA_MAX_DIMS], bytes = 0;
  tegula__layout_request request = {.dtype = manifest->dtype,
                                    .descr = manifest->descr,
                                    .ndim = manifest->ndim,
                                    .shape = manifest->shape,
                                    .order = 'C'};
  tegula__buffer header;
  tegula__manifest again;
  tegula_error error;
  tegula__buffer_init(&header, (size_t)64 << 20);
  tegula_status status = tegula__format_npy.lay_out(&request, &header, strides, &error);
  if (status == TEGULA_OK) {
    MUST(header.size % 64 == 0 &&
         tegula__shape_bytes(manifest->shape, manifest->ndim, manifest->dtype.item_size, &bytes));
    guarded file = guarded_copy(header.data, header.size, false);
    if (tegula__add(bytes, (int64_t)header.size, &bytes)) {
      MUST(describe(&file, bytes, 4096, &none, &again, &error) == TEGULA_OK);
      MUST(tegula_dtype_same(again.dtype, manifest->dtype) && again.ndim == manifest->ndim);
      MUST(memcmp(again.shape, manifest->shape, (size_t)manifest->ndim * sizeof again.shape[0]) ==
           0);
      MUST((again.descr == NULL) == (manifest->descr == NULL) &&
           (again.descr == NULL || strcmp(again.descr, manifest->descr) == 0));
      tegula__manifest_free(&again);
    }
    guarded_free(&file);
  } else {
    MUST(manifest->dtype.kind == 'E' || status == TEGULA_LIMIT_EXCEEDED);
  }
  tegula__buffer_free(&header);
}

/* Each field that is named lies within the record, unless its name has a comma. */
static void check_named(const tegula__manifest *manifest) {
  tegula__buffer names;
  tegula__buffer_init(&names, (size_t)64 << 20);
  MUST(tegula__record_names(manifest->descr, &names) && tegula__buffer_append(&names, "", 1));
  for (char *name = names.data, *next; name != NULL; name = next) {
    tegula__field field;
    tegula_error error;
    next = strstr(name, ", ");
    if (next != NULL) {
      *next = '\0';
      next += 2;
    }
    if (tegula__record_field("x", manifest->descr, name, &field, &error) != TEGULA_OK) {
      MUST(error.message[0] != '\0');
      continue;
    }
    __int128 end = (__int128)field.offset + field.dtype.item_size;
    bool empty = false;
    for (int32_t k = 0; k < field.ndim; k++) {
      empty = empty || field.shape[k] == 0;
      end += (__int128)(field.shape[k] - 1) * field.strides[k];
    }
    MUST(field.offset >= 0 && (empty || end <= manifest->dtype.item_size));
    free(field.descr);
  }
  tegula__buffer_free(&names);
}

/* Independent of the library's own arithmetic: fields [first, last) lie in the record, one behind
 * the other. */
static void check_fields(const tegula_plugin_field *fields, int64_t first, int64_t last,
                         int64_t size) {
  int64_t end = 0;
  for (int64_t at = first; at < last; at += 1 + fields[at].fields) {
    __int128 bytes = fields[at].dtype.item_size;
    for (int32_t k = 0; k < fields[at].ndim; k++) bytes *= fields[at].shape[k];
    MUST(fields[at].name[0] != '\0' && tegula__dtype_valid(fields[at].dtype));
    MUST(fields[at].offset >= end && fields[at].offset + bytes <= size);
    MUST(fields[at].fields >= 0 && fields[at].fields < last - at);
    check_fields(fields, at + 1, at + 1 + fields[at].fields, fields[at].dtype.item_size);
    end = fields[at].offset + (int64_t)bytes;
  }
}

/* What can be loaded is described, or has something that no compound type has. */
static void read_fields(const tegula__manifest *manifest) {
  tegula_plugin_field *fields = NULL;
  tegula_error error;
  int64_t count;
  if (manifest->descr == NULL) return;
  tegula_status status =
      tegula__record_fields(manifest->descr, manifest->dtype, &fields, &count, &error);
  MUST(status == TEGULA_OK || status == TEGULA_UNSUPPORTED);
  if (status == TEGULA_OK) check_fields(fields, 0, count, manifest->dtype.item_size);
  free(fields);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t settings = size > 0 ? data[0] : 0;
  guarded file = guarded_copy(size > 0 ? data + 1 : data, size > 0 ? size - 1 : 0, false);
  int64_t more = settings >> 4 > 0 ? (int64_t)1 << 3 * (settings >> 4) : 0;
  tegula__describe_options options = {
      .shape_ndim = -1, .row_ndim = -1, .has_dtype = (settings & 8) != 0};
  MUST(tegula_dtype_parse("bfloat16", &options.dtype, NULL) == TEGULA_OK);
  tegula__manifest manifest;
  tegula_error error;
  int64_t claimed = (int64_t)file.size + more;
  tegula_status status =
      describe(&file, claimed, head_sizes[settings & 7], &options, &manifest, &error);
  if (status == TEGULA_OK) {
    check_inside(&manifest, claimed);
    MUST(tegula__dtype_valid(manifest.dtype));
    if (manifest.descr != NULL) check_named(&manifest);
    write_and_describe(&manifest);
    read_fields(&manifest);
  } else {
    MUST(error.status == status && error.message[0] != '\0' && strchr(error.message, '\n') == NULL);
  }
  tegula__manifest_free(&manifest);
  guarded_free(&file);
  return 0;
}
