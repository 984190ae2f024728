/* The work of tegula_save on one process.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "save/saving.h"

tegula_status tegula__save(const tegula_array *array, const char *path,
                           const tegula_save_options *options, tegula_error *err) {
  const tegula__array *memory = &array->memory;
  tegula__wanted wanted = {.dtype = memory->dtype, .tiling = memory->tiling, .options = options};
  tegula__saving s;
  tegula_status status = tegula__saving_begin(&s, array->context, path, options, &wanted, 1, err);
  if (status == TEGULA_OK) status = tegula__saving_move(&s, 0, memory->tiles, memory->count, err);
  return tegula__saving_end(&s, status, err);
}
