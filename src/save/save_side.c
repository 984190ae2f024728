/* The side file of shards that do not say themselves what they hold.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "save/saving.h"

#define LARGEST_SIDE_FILE ((size_t)64 << 20) /* what is read again is no longer */

static tegula_status write_text(tegula__saving *s, const tegula__buffer *text, tegula_error *err) {
  char *path = tegula__strprintf("%s/shard_meta.json", s->publish.temporary);
  if (path == NULL) return tegula__out_of_memory(err, 64);
  tegula_status status = tegula__io_create(path, (int64_t)text->size, text->data, text->size,
                                           s->options.durable != 0, 0666, &s->tally.counts, err);
  free(path);
  return status;
}

static tegula_status describe(tegula__saving *s, const char **names, int64_t *rows,
                              tegula_error *err) {
  const tegula__member *m = &s->members[0];
  tegula__layout_request request = {.dtype = m->stored,
                                    .ndim = m->tiling->ndim,
                                    .shape = m->tiling->shape,
                                    .order = s->options.order != 0 ? s->options.order : 'C',
                                    .byte_order = s->options.byte_order,
                                    .settings = {s->options.settings, s->options.setting_count}};
  for (int64_t i = 0; i < m->file_count; i++) {
    const char *path = s->targets[i].path;
    names[i] = strrchr(path, '/') + 1;
    rows[i] = tegula__saving_first_row(m, i + 1) - tegula__saving_first_row(m, i);
  }
  tegula__buffer text;
  tegula__buffer_init(&text, LARGEST_SIDE_FILE);
  tegula_status status = s->format->side_file(&request, names, rows, m->file_count, &text)
                             ? write_text(s, &text, err)
                             : tegula__out_of_memory(err, (int64_t)text.size);
  tegula__buffer_free(&text);
  return status;
}

tegula_status tegula__saving_side_file(tegula__saving *s, tegula_error *err) {
  if (s->format->side_file == NULL || !s->publish.folder) return TEGULA_OK;
  int64_t count = s->members[0].file_count;
  const char **names = calloc((size_t)count, sizeof *names);
  int64_t *rows = calloc((size_t)count, sizeof *rows);
  tegula_status status = names != NULL && rows != NULL ? describe(s, names, rows, err)
                                                       : tegula__out_of_memory(err, count * 16);
  free(names);
  free(rows);
  return status;
}
