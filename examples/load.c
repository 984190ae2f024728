/* Loads one array out of a folder of shards (or a single file) and prints its shape and the sum of
 * its first row.
 *
 *   cc load.c $(pkg-config --cflags --libs tegula) -o load && ./load shards/
 *
 * The files must hold float32 ("<f4" or ">f4"): change the one cast below for other types.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <tegula/tegula.h>

static int fail(const tegula_error *error) {
  fprintf(stderr, "load: %s\n", error->message);
  if (error->hint[0]) fprintf(stderr, "hint: %s\n", error->hint);
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 2) return fprintf(stderr, "usage: load PATH\n"), 2;
  tegula_error error;
  tegula_context *context = NULL;
  tegula_dataset *dataset = NULL;
  tegula_tiling *tiling = NULL;
  tegula_array *array = NULL;
  tegula_dataset_info_t info;
  tegula_view view;
  tegula_dataset_info_init(&info);

  /* headers only: what is there, and does it fit together? */
  if (tegula_context_create(NULL, NULL, &context, &error)) return fail(&error);
  if (tegula_dataset_open(context, argv[1], NULL, &dataset, &error)) return fail(&error);
  if (tegula_dataset_info(dataset, &info, &error)) return fail(&error);
  if (info.dtype.kind != 'f' || info.dtype.item_size != 4 || info.ndim < 1)
    return fprintf(stderr, "load: not float32\n"), 1;

  /* memory for four tiles along axis 0, then all the bytes, in parallel */
  if (tegula_tiling_even(info.shape, info.ndim, 0, 4, 1, &tiling, &error)) return fail(&error);
  if (tegula_array_create(context, info.dtype, tiling, NULL, &array, &error)) return fail(&error);
  if (tegula_load(dataset, array, NULL, &error)) return fail(&error);
  if (tegula_array_block(array, &view, &error)) return fail(&error);

  printf("shape");
  int64_t row = info.shape[0] > 0;
  for (int axis = 0; axis < info.ndim; axis++) {
    printf(" %lld", (long long)info.shape[axis]);
    if (axis > 0) row *= info.shape[axis];
  }
  double sum = 0;
  for (int64_t i = 0; i < row; i++) sum += ((const float *)view.data)[i];
  printf("\nfirst row sums to %.9g\n", sum);

  tegula_array_destroy(array); /* any order will do */
  tegula_tiling_destroy(tiling);
  tegula_dataset_close(dataset);
  tegula_context_destroy(context);
  return 0;
}
