/* Opening on several ranks.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Rank 0 opens what it is told, as a process alone would; the others are sent its manifest packed,
 * compressed where that is long, and open no file before they want its data. A dataset with parts
 * that only a reader of this process can give, or that are found out when they are wanted, cannot
 * be packed: each rank then opens it, and finds out for itself what its tiles want. */
#include <stdlib.h>

#include "dataset/dataset.h"
#include "dist/share_text.h"

#define MOST_PACKED ((size_t)1 << 32)

static void mix_text(tegula__call *call, const char *text) {
  tegula__call_mix(call, text != NULL ? text : "", text != NULL ? strlen(text) + 1 : 1);
}

static void mix_lengths(tegula__call *call, const int64_t *lengths, int32_t ndim) {
  tegula__call_mix(call, &ndim, sizeof ndim);
  if (ndim > 0) tegula__call_mix(call, lengths, (size_t)ndim * sizeof *lengths);
}

void tegula__call_open(tegula__call *call, const char *const *paths, size_t count,
                       const tegula_open_options *options) {
  tegula__call_init(call, "tegula_dataset_open");
  tegula__call_add(call, "the paths", "%.150s%s", paths[0], count > 1 ? ", ..." : "");
  for (size_t i = 0; i < count; i++) mix_text(call, paths[i]);
  tegula__call_add(call, "the dataset", "%.100s%s%.60s",
                   options->dataset != NULL ? options->dataset : "not given",
                   options->field != NULL ? ", field " : "",
                   options->field != NULL ? options->field : "");
  mix_text(call, options->dataset);
  mix_text(call, options->field);
  tegula__call_add(call, "format and dtype", "%s, %s",
                   options->format != NULL ? options->format : "not given",
                   options->dtype != NULL ? options->dtype : "not given");
  tegula__call_add(call, "the layout of raw files",
                   "offset %lld, row gap %lld, order %d, byte order %d", (long long)options->offset,
                   (long long)options->row_gap, options->order, options->byte_order);
  mix_lengths(call, options->shape, options->shape_ndim);
  mix_lengths(call, options->row_shape, options->row_ndim);
  tegula__call_add(call, "the settings", "%d settings", options->setting_count);
  tegula__call_settings(call, options->settings, options->setting_count);
  tegula__call_add(call, "what is expected", "%lld files, %lld rows, flags %u",
                   (long long)options->expect_files, (long long)options->expect_rows,
                   (unsigned)options->flags);
}

/* Rank 0: what it has opened, packed; nothing for a dataset that only a process of its own can
 * read. */
static tegula_status pack(const tegula_dataset *dataset, char **packed, tegula__parcel *p,
                          tegula_error *err) {
  if (dataset->manifest.reader_count > 0 || dataset->manifest.late_count > 0) return TEGULA_OK;
  const tegula__manifest_names names = {.codecs = tegula__codec_names()};
  tegula__buffer buffer;
  tegula__buffer_init(&buffer, MOST_PACKED);
  tegula_status status = tegula__manifest_pack(&dataset->manifest, &names, &buffer, err);
  *packed = buffer.data; /* freed by the caller in any case */
  if (status != TEGULA_OK) return status;
  p->size = (int64_t)buffer.size;
  tegula__parcel_compress(dataset->context, packed, p);
  return TEGULA_OK;
}

static tegula_status read_manifest(tegula_context *context, const char *packed,
                                   const tegula__parcel *p, const char *path, tegula_dataset **out,
                                   tegula_error *err) {
  tegula__manifest manifest;
  tegula__manifest_init(&manifest);
  tegula_status status =
      tegula__format_manifest_packed(packed, (size_t)p->size, path, &manifest, err);
  if (status == TEGULA_OK) status = tegula__manifest_finish(&manifest, err);
  if (status == TEGULA_OK) return tegula__dataset_of_manifest(context, &manifest, out, err);
  tegula__manifest_free(&manifest);
  return status;
}

/* Every rank has what rank 0 has packed, or knows that there is nothing. */
static tegula_status open_by_packed(tegula_context *context, const char *const *paths, size_t count,
                                    const tegula_open_options *options, char **text,
                                    const tegula__parcel *p, tegula_dataset **out,
                                    tegula_error *err) {
  if (context->comm->rank == 0) return TEGULA_OK;
  if (p->size == 0) return tegula__open_here(context, paths, count, options, out, err);
  FORWARD(tegula__parcel_decompress(context, text, p, err));
  return read_manifest(context, *text, p, paths[0], out, err);
}

tegula_status tegula__open_from_root(tegula_context *context, const char *const *paths,
                                     size_t count, const tegula_open_options *options,
                                     tegula_dataset **made, tegula_error *err) {
  tegula_comm *comm = context->comm;
  tegula__parcel p = {0};
  char *text = NULL;
  tegula_status status =
      comm->rank == 0 ? tegula__open_here(context, paths, count, options, made, err) : TEGULA_OK;
  if (status == TEGULA_OK && comm->rank == 0) status = pack(*made, &text, &p, err);
  status = tegula__parcel_send(context, &text, &p, status, err);
  if (status == TEGULA_OK) {
    tegula__call call;
    status = open_by_packed(context, paths, count, options, &text, &p, made, err);
    tegula__call_init(&call, "the end of tegula_dataset_open");
    if (status == TEGULA_OK) tegula__call_dataset(&call, *made);
    status = tegula__comm_agree_call(comm, &call, status, err);
  }
  free(text);
  return status;
}
