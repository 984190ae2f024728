/* Selecting from a dataset.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dataset/selection.h"

#include <stdlib.h>

void tegula__subset_whole(const tegula__manifest *manifest, tegula__subset *out) {
  *out = (tegula__subset){.field = NULL};
  for (int32_t k = 0; k < manifest->ndim; k++) {
    out->hi[k] = manifest->shape[k];
    out->step[k] = 1;
  }
}

static tegula_status check_axis(const tegula__manifest *manifest, const tegula__subset *subset,
                                int32_t k, tegula_error *err) {
  if (subset->step[k] < 1)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "step[%d] is %lld: expected 1 or more", k, (long long)subset->step[k]);
  if (subset->lo[k] >= 0 && subset->lo[k] <= subset->hi[k] && subset->hi[k] <= manifest->shape[k])
    return TEGULA_OK;
  char shape[TEGULA__SHAPE_TEXT];
  tegula__shape_format(manifest->shape, manifest->ndim, shape);
  return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                      "the box %lld:%lld on axis %d is outside of the shape %s",
                      (long long)subset->lo[k], (long long)subset->hi[k], k, shape);
}

/* What the box needs of deferred headers and late parts is found out. */
static tegula_status find_source(const tegula_dataset *dataset, const tegula__subset *subset,
                                 tegula_dataset **out, tegula_error *err) {
  int64_t strides[TEGULA_MAX_DIMS] = {0};
  const tegula__tile bounds = {.lo = subset->lo, .hi = subset->hi, .strides = strides};
  FORWARD(tegula__dataset_confirm(dataset, NULL, err));
  return tegula__dataset_view(dataset, &bounds, 1, NULL, NULL, out, err);
}

/* How its files are found again. */
static tegula_status copy_names(const tegula_dataset *source, tegula_dataset *out,
                                tegula_error *err) {
  out->locked = source->locked;
  out->opened = tegula__strdup(source->opened);
  out->asked = tegula__strdup(source->asked);
  bool good = (out->opened != NULL || source->opened == NULL) &&
              (out->asked != NULL || source->asked == NULL);
  return good ? TEGULA_OK : tegula__out_of_memory(err, 64);
}

tegula_status tegula__dataset_select_field(const tegula_dataset *dataset, tegula__subset *subset,
                                           const char *name, tegula_dataset **out,
                                           tegula_error *err) {
  const tegula__manifest *manifest = &dataset->manifest;
  tegula__field field;
  char text[TEGULA_DTYPE_TEXT];
  tegula_dtype_format(manifest->dtype, text);
  if (manifest->descr == NULL)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, dataset->opened, -1,
                        "\"%s\": no field \"%.80s\": its elements are %s, expected records",
                        dataset->opened, name, text);
  tegula_status status = tegula__record_field(dataset->opened, manifest->descr, name, &field, err);
  if (status == TEGULA_UNSUPPORTED && manifest->refused != NULL)
    return tegula__hint(err, status, "%.400s", manifest->refused);
  FORWARD(status);
  subset->field = &field;
  status = tegula__dataset_select(dataset, subset, out, err);
  subset->field = NULL;
  free(field.descr);
  return status;
}

tegula_status tegula__dataset_select(const tegula_dataset *dataset, const tegula__subset *subset,
                                     tegula_dataset **out, tegula_error *err) {
  for (int32_t k = 0; k < dataset->manifest.ndim; k++)
    FORWARD(check_axis(&dataset->manifest, subset, k, err));
  tegula_dataset *made = calloc(1, sizeof *made);
  if (made == NULL) return tegula__out_of_memory(err, sizeof *made);
  atomic_init(&made->references, 1);
  made->context = tegula__context_retain(dataset->context);
  made->selected = tegula__dataset_retain(dataset);
  tegula_status status = find_source(dataset, subset, &made->source, err);
  if (status == TEGULA_OK)
    status = tegula__subset_manifest(&made->source->manifest, subset,
                                     dataset->context->engine.kernels, &made->manifest, err);
  if (status == TEGULA_OK) status = copy_names(dataset, made, err);
  if (status == TEGULA_OK) status = tegula__dataset_name_codecs(made, err);
  if (status != TEGULA_OK) {
    tegula_dataset_close(made);
    return status;
  }
  made->places = dataset->places;
  made->files = made->source->files;
  *out = made;
  return TEGULA_OK;
}
