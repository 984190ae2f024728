/* Datasets from a user's own format.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "api/api.h"

static tegula_status check_reader(const tegula_reader *reader, tegula_error *err) {
  CHECK_ARGUMENT(reader->read != NULL, "the reader has no read function");
  CHECK_ARGUMENT(reader->name != NULL && reader->name[0] != '\0', "the reader has no name");
  CHECK_ARGUMENT(tegula__dtype_valid(reader->dtype),
                 "the dtype is not one that tegula_dtype_parse gives");
  CHECK_ARGUMENT(reader->ndim >= 0 && reader->ndim <= TEGULA_MAX_DIMS, "ndim must be 0 to 64");
  CHECK_ARGUMENT(reader->ndim == 0 || reader->shape != NULL, "the shape is NULL");
  CHECK_ARGUMENT(reader->cost_bytes >= 0, "cost_bytes must not be negative");
  for (int32_t k = 0; k < reader->ndim; k++) {
    if (reader->shape[k] < 0)
      return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                          "axis %d has the negative length %lld", k, (long long)reader->shape[k]);
    if (reader->chunk != NULL && reader->chunk[k] < 1)
      return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                          "entry %d of the chunk is %lld: it must be 1 or more", k,
                          (long long)reader->chunk[k]);
  }
  return TEGULA_OK;
}

/* One part over the whole array, as if it lay densely in C order: so that the planner cuts it along
 * rows. */
static tegula_status fill_manifest(tegula__manifest *manifest, const tegula_reader *reader,
                                   tegula_error *err) {
  static const int64_t origin[TEGULA_MAX_DIMS];
  int64_t strides[TEGULA_MAX_DIMS], bytes;
  manifest->dtype = tegula_dtype_native(reader->dtype);
  manifest->ndim = reader->ndim;
  for (int32_t k = 0; k < reader->ndim; k++) manifest->shape[k] = reader->shape[k];
  if (!tegula__shape_bytes(manifest->shape, manifest->ndim, manifest->dtype.item_size, &bytes))
    return tegula__fail(err, TEGULA_LIMIT_EXCEEDED, NULL, -1,
                        "the array is larger than 2^63 bytes");
  tegula__reader *copy = calloc(1, sizeof *copy);
  if (copy == NULL) return tegula__out_of_memory(err, sizeof *copy);
  *copy = (tegula__reader){
      .read = reader->read, .state = reader->state, .cost = reader->cost_bytes, .local = true};
  copy->name = strdup(reader->name);
  tegula_status status = copy->name != NULL
                             ? tegula__manifest_add_reader(manifest, copy, err)
                             : tegula__out_of_memory(err, (int64_t)strlen(reader->name));
  if (status != TEGULA_OK) {
    free(copy->name);
    free(copy);
    return status;
  }
  manifest->format = copy->name;
  manifest->name = "data";
  tegula__dense_strides(manifest->shape, manifest->ndim, manifest->dtype.item_size, 'C', strides);
  tegula__part part = {.kind = TEGULA__PART_READ,
                       .order = manifest->dtype.order,
                       .file = TEGULA__NO_FILE,
                       .lo = origin,
                       .hi = manifest->shape,
                       .strides = strides,
                       .start = origin,
                       .chunk = reader->chunk,
                       .reader = copy};
  FORWARD(tegula__manifest_add_part(manifest, &part, err));
  return tegula__manifest_finish(manifest, err);
}

tegula_status tegula_dataset_from_reader(tegula_context *context, const tegula_reader *reader,
                                         tegula_dataset **out, tegula_error *err) {
  CHECK_ARGUMENT(context != NULL && reader != NULL && out != NULL,
                 "context, reader or the place for the dataset is NULL");
  tegula_reader local;
  tegula_reader_init(&local);
  FORWARD(tegula__options_copy(&local, sizeof local, FIRST_READER, reader, "tegula_reader", err));
  FORWARD(check_reader(&local, err));
  tegula_dataset *dataset = calloc(1, sizeof *dataset);
  if (dataset == NULL) return tegula__out_of_memory(err, sizeof *dataset);
  tegula__manifest_init(&dataset->manifest);
  tegula_status status = fill_manifest(&dataset->manifest, &local, err);
  status = tegula__comm_agree(context->comm, status, err);
  if (status != TEGULA_OK) {
    tegula__manifest_free(&dataset->manifest);
    free(dataset);
    return status;
  }
  dataset->manifest.readers[0]->release = local.release; /* now that nothing can fail any more */
  atomic_init(&dataset->references, 1);
  dataset->context = tegula__context_retain(context);
  *out = dataset;
  return TEGULA_OK;
}
