/* Calls on several ranks: opening, and what must be the same on all.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Rank 0 opens what it is told, as a process alone would; the others are sent its manifest packed,
 * compressed where that is long, and open no file before they want its data. A dataset with parts
 * that only a reader of this process can give, or that are found out when they are wanted, cannot
 * be packed: each rank then opens it, and finds out for itself what its tiles want. */
#include <stdlib.h>

#include "api/save_later.h"
#include "codec/codec.h"

enum { COMPRESS_FROM = 64 << 10, SMALL = 16 << 10 }; /* bytes */
#define MOST_PACKED ((size_t)1 << 32)

/* ---- what must be the same ---- */

void tegula__call_tiling(tegula__call *call, const tegula_tiling *tiling, tegula_dtype dtype) {
  char shape[TEGULA__SHAPE_TEXT], tile[TEGULA__SHAPE_TEXT], text[TEGULA_DTYPE_TEXT];
  size_t axes = (size_t)tiling->ndim;
  tegula__shape_format(tiling->shape, tiling->ndim, shape);
  tegula_dtype_format(dtype, text);
  tegula__call_add(call, "the array", "%s %s", text, shape);
  tegula__call_mix(call, tiling->shape, axes * sizeof *tiling->shape);
  if (tiling->boxes == NULL) {
    tegula__shape_format(tiling->tile, tiling->ndim, tile);
    tegula__call_add(call, "the tiling", "%lld tiles of shape %s", (long long)tiling->count, tile);
    tegula__call_mix(call, tiling->tile, axes * sizeof *tiling->tile);
    return;
  }
  tegula__call_add(call, "the tiling", "%lld boxes", (long long)tiling->count);
  tegula__call_mix(call, tiling->boxes, (size_t)tiling->count * 2 * axes * sizeof *tiling->boxes);
  if (tiling->owners != NULL)
    tegula__call_mix(call, tiling->owners, (size_t)tiling->count * sizeof *tiling->owners);
}

void tegula__call_dataset(tegula__call *call, const tegula_dataset *dataset) {
  const tegula__manifest *manifest = &dataset->manifest;
  char shape[TEGULA__SHAPE_TEXT], text[TEGULA_DTYPE_TEXT];
  tegula__shape_format(manifest->shape, manifest->ndim, shape);
  tegula_dtype_format(manifest->dtype, text);
  tegula__call_add(call, "the dataset", "%.60s %s %s from %lld files",
                   manifest->name != NULL ? manifest->name : "", text, shape,
                   (long long)manifest->file_count);
  tegula__call_mix(call, manifest->shape, (size_t)manifest->ndim * sizeof *manifest->shape);
}

/* What each rank has found out for itself must be the same: how many steps a call has depends on
 * it. */
void tegula__call_view(tegula__call *call, const tegula_dataset *view) {
  const tegula__manifest *manifest = &view->manifest;
  int64_t chunks = 0;
  for (int64_t i = 0; i < manifest->grid_count; i++) chunks += manifest->grids[i]->count;
  tegula__call_add(call, "the files", "%lld files, %lld parts, %lld chunks",
                   (long long)manifest->file_count, (long long)manifest->part_count,
                   (long long)chunks);
  for (int64_t i = 0; i < manifest->file_count; i++)
    tegula__call_mix(call, &manifest->files[i].stamp.size, sizeof manifest->files[i].stamp.size);
}

static void mix_text(tegula__call *call, const char *text) {
  tegula__call_mix(call, text != NULL ? text : "", text != NULL ? strlen(text) + 1 : 1);
}

static void mix_lengths(tegula__call *call, const int64_t *lengths, int32_t ndim) {
  tegula__call_mix(call, &ndim, sizeof ndim);
  if (ndim > 0) tegula__call_mix(call, lengths, (size_t)ndim * sizeof *lengths);
}

static void describe_open(tegula__call *call, const char *const *paths, size_t count,
                          const tegula_open_options *options) {
  tegula__call_init(call, "tegula_dataset_open");
  tegula__call_add(call, "the paths", "%.150s%s", paths[0], count > 1 ? ", ..." : "");
  for (size_t i = 0; i < count; i++) mix_text(call, paths[i]);
  tegula__call_add(call, "the dataset", "%s",
                   options->dataset != NULL ? options->dataset : "not given");
  mix_text(call, options->dataset);
  tegula__call_add(call, "format and dtype", "%s, %s",
                   options->format != NULL ? options->format : "not given",
                   options->dtype != NULL ? options->dtype : "not given");
  tegula__call_add(call, "the layout of raw files",
                   "offset %lld, row gap %lld, order %d, byte order %d", (long long)options->offset,
                   (long long)options->row_gap, options->order, options->byte_order);
  mix_lengths(call, options->shape, options->shape_ndim);
  mix_lengths(call, options->row_shape, options->row_ndim);
  tegula__call_add(call, "what is expected", "%lld files, %lld rows, flags %u",
                   (long long)options->expect_files, (long long)options->expect_rows,
                   (unsigned)options->flags);
}

/* ---- texts and packed manifests on their way ---- */

typedef struct parcel {
  int64_t size;  /* bytes; 0: there are none, each rank opens the files */
  int64_t sent;  /* bytes that travel */
  int64_t codec; /* tegula__codec_id; NONE: the text itself */
} parcel;

static const tegula__filter packers[] = {
    {.codec = TEGULA__CODEC_ZSTD, .param_count = 1, .params = {1}},
    {.codec = TEGULA__CODEC_DEFLATE, .param_count = 1, .params = {1}}};

static const tegula__filter *packer_of(int64_t codec) {
  for (size_t i = 0; i < sizeof packers / sizeof packers[0]; i++)
    if (packers[i].codec == codec && tegula__codec_available(packers[i].codec)) return &packers[i];
  return NULL;
}

/* What is sent: the bytes, or in their place (they are freed then) a shorter form. Where that fails
 * they go as they are. */
static void compress(const tegula_context *context, char **text, parcel *p) {
  const tegula__filter *packer = packer_of(TEGULA__CODEC_ZSTD) != NULL ? &packers[0] : &packers[1];
  p->sent = p->size;
  p->codec = TEGULA__CODEC_NONE;
  if (p->size < COMPRESS_FROM || tegula__encode_check(packer, 1, p->size, NULL) != TEGULA_OK)
    return;
  int64_t room = tegula__encode_bound(packer, 1, p->size);
  tegula__encoder *encoder = tegula__encoder_create(context->engine.kernels);
  char *packed = room < INT64_MAX ? malloc((size_t)room) : NULL;
  size_t size = 0;
  uint32_t mask = 0;
  bool good = encoder != NULL && packed != NULL &&
              tegula__encode(encoder, packer, 1, *text, (size_t)p->size, packed, (size_t)room,
                             &size, &mask, NULL) == TEGULA_OK &&
              mask == 0 && (int64_t)size < p->size;
  tegula__encoder_destroy(encoder);
  if (good) {
    free(*text);
    *text = packed;
    p->sent = (int64_t)size;
    p->codec = packer->codec;
  } else {
    free(packed);
  }
}

static tegula_status decompress(const tegula_context *context, char **text, const parcel *p,
                                tegula_error *err) {
  if (p->codec == TEGULA__CODEC_NONE) return TEGULA_OK;
  const tegula__filter *packer = packer_of(p->codec);
  if (packer == NULL)
    return tegula__fail(
        err, TEGULA_UNSUPPORTED, NULL, -1,
        "rank 0 has compressed what it sends by a codec that this rank does not have");
  tegula__decoder *decoder = tegula__decoder_create(context->engine.kernels);
  char *whole = malloc((size_t)p->size);
  tegula_status status = decoder != NULL && whole != NULL
                             ? tegula__decode(decoder, packer, 1, 0, *text, (size_t)p->sent, whole,
                                              (size_t)p->size, err)
                             : tegula__out_of_memory(err, p->size);
  tegula__decoder_destroy(decoder);
  free(*text);
  *text = whole;
  return status;
}

/* ---- opening ---- */

/* Rank 0: what it has opened, packed; nothing for a dataset that only a process of its own can
 * read. */
static tegula_status pack(const tegula_dataset *dataset, char **packed, parcel *p,
                          tegula_error *err) {
  if (dataset->manifest.reader_count > 0 || dataset->manifest.late_count > 0) return TEGULA_OK;
  const tegula__manifest_names names = {.codecs = tegula__codec_names()};
  tegula__buffer buffer;
  tegula__buffer_init(&buffer, MOST_PACKED);
  tegula_status status = tegula__manifest_pack(&dataset->manifest, &names, &buffer, err);
  *packed = buffer.data; /* freed by the caller in any case */
  if (status != TEGULA_OK) return status;
  p->size = (int64_t)buffer.size;
  compress(dataset->context, packed, p);
  return TEGULA_OK;
}

static tegula_status read_manifest(tegula_context *context, const char *packed, const parcel *p,
                                   const char *path, tegula_dataset **out, tegula_error *err) {
  tegula__manifest manifest;
  tegula__manifest_init(&manifest);
  tegula_status status =
      tegula__format_manifest_packed(packed, (size_t)p->size, path, &manifest, err);
  if (status == TEGULA_OK) status = tegula__manifest_finish(&manifest, err);
  if (status == TEGULA_OK) return tegula__dataset_of_manifest(context, &manifest, out, err);
  tegula__manifest_free(&manifest);
  return status;
}

/* The end of a phase, and what rank 0 has to send. `mine` is this rank's status. Small texts find
 * their memory there already. Where it fails with *text NULL the memory is kept: it may still be
 * written to. */
static tegula_status send_text(tegula_context *context, char **text, parcel *p, tegula_status mine,
                               tegula_error *err) {
  tegula_comm *comm = context->comm;
  bool receives = comm->rank != 0;
  int64_t words[3] = {p->size, p->sent, p->codec};
  if (mine == TEGULA_OK && receives && (*text = malloc(SMALL)) == NULL)
    mine = tegula__out_of_memory(err, SMALL);
  /* those of the others are 0 */
  FORWARD(tegula__comm_agree_values(comm, NULL, mine, words, 3, err));
  *p = (parcel){.size = words[0], .sent = words[1], .codec = words[2]};
  if (p->size == 0) return TEGULA_OK;
  if (p->sent > SMALL) {
    char *more = receives ? realloc(*text, (size_t)p->sent) : *text;
    if (more != NULL) *text = more;
    FORWARD(tegula__comm_agree(comm, more != NULL ? TEGULA_OK : tegula__out_of_memory(err, p->sent),
                               err));
  }
  tegula_status status = tegula__comm_broadcast(comm, *text, p->sent, 0, err);
  if (status != TEGULA_OK) *text = NULL; /* kept: a transfer that is not done may write to it */
  return status;
}

/* Every rank has what rank 0 has packed, or knows that there is nothing. */
static tegula_status open_by_packed(tegula_context *context, const char *const *paths, size_t count,
                                    const tegula_open_options *options, char **text,
                                    const parcel *p, tegula_dataset **out, tegula_error *err) {
  if (context->comm->rank == 0) return TEGULA_OK;
  if (p->size == 0) return tegula__open_here(context, paths, count, options, out, err);
  FORWARD(decompress(context, text, p, err));
  return read_manifest(context, *text, p, paths[0], out, err);
}

tegula_status tegula__share_text(tegula_context *context, char **text, size_t *size,
                                 tegula_error *err) {
  parcel p = {.size = *text != NULL ? (int64_t)*size : 0};
  if (*text != NULL) compress(context, text, &p);
  FORWARD(send_text(context, text, &p, TEGULA_OK, err));
  tegula_status status = decompress(context, text, &p, err);
  *size = (size_t)p.size;
  return status;
}

static tegula_status open_from_root(tegula_context *context, const char *const *paths, size_t count,
                                    const tegula_open_options *options, tegula_dataset **made,
                                    tegula_error *err) {
  tegula_comm *comm = context->comm;
  parcel p = {0};
  char *text = NULL;
  tegula_status status =
      comm->rank == 0 ? tegula__open_here(context, paths, count, options, made, err) : TEGULA_OK;
  if (status == TEGULA_OK && comm->rank == 0) status = pack(*made, &text, &p, err);
  status = send_text(context, &text, &p, status, err);
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

tegula_status tegula__open_on_ranks(tegula_context *context, const char *const *paths, size_t count,
                                    const tegula_open_options *options, tegula_dataset **out,
                                    tegula_error *err) {
  tegula_open_options local;
  tegula__discover_options discover;
  tegula__call call;
  tegula_error unwanted;
  if (err == NULL) err = &unwanted;
  tegula__call_init(&call, "tegula_dataset_open");
  tegula_status status = tegula__open_check(paths, count, options, &local, &discover, err);
  if (status == TEGULA_OK) describe_open(&call, paths, count, &local);
  if (status == TEGULA_OK)
    FORWARD(tegula__later_end_of_paths(context, paths, count, call.name, err));
  FORWARD(tegula__comm_agree_call(context->comm, &call, status, err));
  tegula_dataset *made = NULL;
  status = open_from_root(context, paths, count, options, &made, err);
  if (status == TEGULA_OK)
    *out = made;
  else
    tegula_dataset_close(made);
  return status;
}
