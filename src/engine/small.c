/* Small reads: a box of few bytes, close together in the file, is read by the thread that wants it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * What the planner would make of it is known beforehand: one request for each part that is met,
 * straight into place or, where bytes change their order or have gaps, through memory on the stack.
 * So there is no plan, no worker and no memory to be had; what is looked at, counted and said is
 * the same. */
#include "engine/engine_priv.h"

#define SMALL_BYTES ((int64_t)64 << 10) /* of a box; more is worth a plan */
#define SMALL_SPAN ((int64_t)16 << 10)  /* in the file, of a request that is staged */
#define SMALL_PARTS 4

/* One request: the bytes are those of the file, gaps included. */
typedef struct small_read {
  int64_t file, offset, bytes;
  char *address;
  bool staged;
  uint32_t swap_size;
  const int64_t *strides; /* in the file */
  int64_t extents[TEGULA_MAX_DIMS];
} small_read;

/* The stored chunk that holds the whole box, as dense bytes: false where there is none, or it must
 * be decoded. */
static bool find_chunk(const tegula__part *part, int32_t ndim, const int64_t *lo, const int64_t *hi,
                       tegula__stored *out) {
  int64_t at[TEGULA_MAX_DIMS];
  for (int32_t k = 0; k < ndim; k++) {
    at[k] = tegula__part_number(part, k, lo[k]);
    if (tegula__part_number(part, k, hi[k] - 1) != at[k]) return false;
  }
  const tegula__chunk *entry = tegula__grid_find(
      part->grid, tegula__part_chunk(part, ndim, at, out->lo, out->hi, &out->part));
  if (entry == NULL || !tegula__chunk_plain(part->grid, entry)) return false;
  out->part.offset += (int64_t)entry->offset;
  return true;
}

/* The box as one request of the part; false where it is not. */
static bool plan_part(const tegula__move *move, const tegula__part *part, const int64_t *lo,
                      const int64_t *hi, small_read *out) {
  const tegula__manifest *manifest = move->manifest;
  const tegula__tile *tile = move->tiles;
  int32_t ndim = manifest->ndim, axes;
  uint32_t item = manifest->dtype.item_size;
  tegula__stored chunk;
  tegula__file_order order;
  if (part->kind == TEGULA__PART_CHUNKED && find_chunk(part, ndim, lo, hi, &chunk))
    part = &chunk.part;
  if (part->kind != TEGULA__PART_DENSE) return false;
  out->file = part->file;
  out->offset = tegula__part_offset(part, ndim, lo);
  out->address = tegula__tile_address(tile, ndim, lo);
  out->swap_size = part->order != tile->order ? tegula__dtype_swap_size(manifest->dtype) : 1;
  tegula__file_order_of(part, ndim, lo, hi, &order);
  out->bytes = tegula__common_run(&order, part->strides, tile->strides, lo, hi, item, &axes);
  out->staged = axes < order.count || out->swap_size > 1;
  if (!out->staged) return true;
  out->strides = part->strides;
  for (int32_t k = 0; k < ndim; k++) out->extents[k] = hi[k] - lo[k];
  return tegula__read_unit(&order, part->strides, lo, hi, item, TEGULA__GAP, &out->bytes) ==
             order.count &&
         out->bytes <= SMALL_SPAN;
}

/* Fewer than `most` bytes, and not none? */
static bool few_bytes(const tegula__manifest *manifest, const tegula__tile *tile, int64_t most) {
  int64_t bytes = manifest->dtype.item_size;
  for (int32_t k = 0; k < manifest->ndim && bytes <= most; k++)
    if (!tegula__mul(bytes, tile->hi[k] - tile->lo[k], &bytes)) return false;
  return bytes > 0 && bytes <= most;
}

/* The requests, in the order of the parts; 0: it is not such a box. */
static int plan_small(const tegula__engine *engine, const tegula__move *move,
                      small_read reads[SMALL_PARTS]) {
  const tegula__manifest *manifest = move->manifest;
  const tegula__tile *tile = move->tiles;
  int64_t first, last, lo[TEGULA_MAX_DIMS], hi[TEGULA_MAX_DIMS];
  if (move->writing || move->tile_count != 1 || move->heads != NULL ||
      !few_bytes(manifest, tile, SMALL_BYTES))
    return 0;
  if (!tegula__transport_is_reference(engine->transport)) return 0;
  tegula__manifest_find(manifest, manifest->ndim > 0 ? tile->lo[0] : 0,
                        manifest->ndim > 0 ? tile->hi[0] : 1, &first, &last);
  if (last - first > SMALL_PARTS) return 0;
  int count = 0;
  for (int64_t i = first; i < last; i++) {
    const tegula__part *part = &manifest->parts[i];
    if (!tegula__box_intersect(manifest->ndim, part->lo, part->hi, tile->lo, tile->hi, lo, hi))
      continue;
    if (!plan_part(move, part, lo, hi, &reads[count++])) return 0;
  }
  return count;
}

/* To where it is wanted. */
static tegula_status read_bytes(const tegula__engine *engine, const tegula__move *move,
                                const small_read *read, int fd, tegula_error *err) {
  const tegula__manifest *manifest = move->manifest;
  const char *path = manifest->files[read->file].path;
  char slot[SMALL_SPAN];
  struct iovec vector = {read->staged ? slot : read->address, (size_t)read->bytes};
  tegula__request request = {read->offset, &vector, 1};
  const tegula__io_file file = {.fd = fd,
                                .index = read->file,
                                .path = path,
                                .counts = move->counts,
                                .frame = tegula__file_frame(&manifest->files[read->file])};
  FORWARD(tegula__lane_move(NULL, &file, &request, 1, err));
  if (read->staged)
    tegula__copy_strided(engine->kernels, read->address, move->tiles->strides, slot, read->strides,
                         read->extents, manifest->ndim, manifest->dtype.item_size, read->swap_size);
  return TEGULA_OK;
}

static tegula_status read_one(const tegula__engine *engine, const tegula__move *move,
                              const small_read *read, tegula_error *err) {
  int fd;
  FORWARD(tegula__file_set_acquire(move->files, read->file, move->counts, &fd, err));
  tegula_status status = read_bytes(engine, move, read, fd, err);
  if (status == TEGULA_OK)
    status = tegula__file_set_finish(move->files, read->file, fd, false, move->counts, err);
  tegula__file_set_release(move->files, read->file);
  return status;
}

/* Bytes that were wanted of it. */
static int64_t wanted_bytes(const small_read *read, const tegula__manifest *manifest) {
  int64_t bytes = manifest->dtype.item_size;
  if (!read->staged) return read->bytes;
  /* fewer than SMALL_BYTES */
  for (int32_t k = 0; k < manifest->ndim; k++) bytes *= read->extents[k];
  return bytes;
}

static void count_small(const tegula__manifest *manifest, const small_read *reads, int count,
                        tegula_statistics *statistics) {
  if (statistics == NULL) return;
  for (int i = 0; i < count; i++)
    *(reads[i].staged ? &statistics->staged_bytes : &statistics->direct_bytes) +=
        wanted_bytes(&reads[i], manifest);
  statistics->steps += count;
  statistics->workers = tegula__max(statistics->workers, 1);
  statistics->io_path = "pread";
}

bool tegula__small_run(const tegula__engine *engine, const tegula__move *move,
                       tegula_status *status, tegula_error *err) {
  small_read reads[SMALL_PARTS];
  int64_t bytes = 0;
  int count = plan_small(engine, move, reads);
  if (count == 0) return false;
  *status = TEGULA_OK;
  for (int i = 0; i < count && *status == TEGULA_OK; i++)
    *status = read_one(engine, move, &reads[i], err);
  if (*status != TEGULA_OK) return true;
  count_small(move->manifest, reads, count, move->statistics);
  for (int i = 0; i < count; i++) bytes += wanted_bytes(&reads[i], move->manifest);
  if (move->progress != NULL && move->progress(move->progress_state, bytes, bytes) != 0)
    *status = tegula__fail(err, TEGULA_CANCELLED, NULL, -1, "cancelled after %lld of %lld bytes",
                           (long long)bytes, (long long)bytes);
  return true;
}
