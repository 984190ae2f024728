/* Manifests as JSON: what is read is a manifest that finish finds in place, and each element lies in its file and nowhere twice.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The input is the text. Nothing is opened: the files it names need not be there. */
#include "fuzz.h"
#include "manifest/manifest.h"

static const char *const formats[] = {"npy", "raw", NULL};

static void check_head(const tegula__manifest *manifest) {
  MUST(tegula__dtype_valid(manifest->dtype) && manifest->ndim >= 0 && manifest->ndim <= TEGULA_MAX_DIMS);
  MUST((manifest->format == formats[0] || manifest->format == formats[1]) && manifest->name[0] != '\0');
  MUST(manifest->descr == NULL || manifest->dtype.kind == 'V');
  MUST(manifest->reader_count == 0 && manifest->file_count > 0);
  for (int64_t i = 0; i < manifest->file_count; i++) {
    const char *path = manifest->files[i].path;
    MUST(path != NULL && (path[0] == '/' || strncmp(path, "dir/", 4) == 0));
    MUST(manifest->files[i].recorded && manifest->files[i].stamp.size >= 0);
  }
}

/* Independent of the library's own arithmetic: sorted by stride, each axis steps over all that lies inside it. */
static bool no_element_twice(const tegula__manifest *manifest, const tegula__part *part) {
  bool done[TEGULA_MAX_DIMS] = {false};
  __int128 inside = manifest->dtype.item_size;
  for (int32_t n = 0; n < manifest->ndim; n++) {
    int32_t next = -1;
    for (int32_t k = 0; k < manifest->ndim; k++) {
      if (part->hi[k] - part->lo[k] < 2) done[k] = true;
      if (!done[k] && (next < 0 || part->strides[k] < part->strides[next])) next = k;
    }
    if (next < 0) break;
    if (part->strides[next] < inside) return false;
    inside += (__int128)(part->hi[next] - part->lo[next] - 1) * part->strides[next];
    done[next] = true;
  }
  return true;
}

static void check_part(const tegula__manifest *manifest, const tegula__part *part, int64_t row) {
  MUST(part->file >= 0 && part->file < manifest->file_count && part->offset >= 0);
  MUST(manifest->dtype.order == '|' ? part->order == '|' : part->order == '<' || part->order == '>');
  __int128 end = (__int128)part->offset + manifest->dtype.item_size;
  bool empty = false;
  for (int32_t k = 0; k < manifest->ndim; k++) {
    MUST(part->lo[k] == (k == 0 ? row : 0) && part->hi[k] >= part->lo[k] && part->strides[k] > 0);
    MUST(k == 0 ? part->hi[k] <= manifest->shape[k] : part->hi[k] == manifest->shape[k]);
    empty = empty || part->lo[k] == part->hi[k];
    end += (__int128)(part->hi[k] - part->lo[k] - 1) * part->strides[k];
  }
  if (empty) return;
  MUST(end <= manifest->files[part->file].stamp.size);
  MUST(no_element_twice(manifest, part));
}

static void check_finished(const tegula__manifest *manifest) {
  int64_t row = 0, first, last;
  for (int64_t i = 0; i < manifest->part_count; i++) {
    check_part(manifest, &manifest->parts[i], row);
    if (manifest->ndim > 0) row = manifest->parts[i].hi[0];
  }
  MUST(manifest->ndim > 0 ? row == manifest->shape[0] : manifest->part_count == 1);
  tegula__manifest_find(manifest, 0, row, &first, &last);
  MUST(first >= 0 && last <= manifest->part_count && (row == 0 || first < last));
}

static void check_error(tegula_status status, const tegula_error *error) {
  MUST(status != TEGULA_INTERNAL && error->status == status && error->message[0] != '\0' && strchr(error->message, '\n') == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  guarded text = guarded_copy(data, size, false);
  tegula__manifest manifest;
  tegula_error error;
  tegula__manifest_init(&manifest);
  tegula_status status = tegula__manifest_read(text.data, text.size, "dir/m.json", formats, &manifest, &error);
  guarded_free(&text); /* nothing of it is borrowed */
  if (status == TEGULA_OK) {
    check_head(&manifest);
    status = tegula__manifest_finish(&manifest, &error);
    if (status == TEGULA_OK) check_finished(&manifest);
  }
  if (status != TEGULA_OK) check_error(status, &error);
  tegula__manifest_free(&manifest);
  return 0;
}
