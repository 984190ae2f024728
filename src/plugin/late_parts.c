/* What a plugin finds out late: its function as that of a late part.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "plugin/plugin_priv.h"

typedef struct late_state {
  tegula_plugin_late given;
  bool locked;
} late_state;

static void release_state(void *state) {
  late_state *s = state;
  if (s->given.release != NULL) s->given.release(s->given.state);
  free(s);
}

static tegula_status resolve(const tegula__late *late, const tegula__store *store,
                             const tegula__file *from, tegula__manifest *out, tegula_error *err) {
  const late_state *s = late->state;
  tegula__source source = {
      .path = from->path, .size = from->stamp.size, .stamp = &from->stamp, .store = store};
  tegula_plugin_builder builder = {
      .source = &source, .out = out, .locked = s->locked, .late = true};
  tegula_status status = s->given.resolve(s->given.state, &builder, err);
  tegula__plugin_detach(&builder);
  return status;
}

/* Takes the state on success. */
static tegula_status take(tegula_plugin_builder *builder, int64_t file, late_state *state,
                          const char *path, tegula_error *err) {
  tegula__late *late = calloc(1, sizeof *late);
  if (late == NULL) return tegula__out_of_memory(err, sizeof *late);
  late->resolve = resolve;
  late->file = file;
  late->path = strdup(path);
  tegula_status status = late->path != NULL ? tegula__manifest_add_late(builder->out, late, err)
                                            : tegula__out_of_memory(err, (int64_t)strlen(path));
  if (status != TEGULA_OK) {
    free(late->path);
    free(late);
    return status;
  }
  pthread_mutex_init(&late->lock, NULL);
  late->state = state;
  late->release = release_state;
  return TEGULA_OK;
}

tegula_status tegula__plugin_new_late_of(tegula_plugin_builder *builder, int64_t file,
                                         const tegula_plugin_late *late, int64_t *number,
                                         tegula_error *err) {
  late_state *state = malloc(sizeof *state);
  tegula_status status = state != NULL ? TEGULA_OK : tegula__out_of_memory(err, sizeof *state);
  if (status == TEGULA_OK && builder->late)
    status = tegula__plugin_wrong(builder, "a late part within another", err);
  if (status == TEGULA_OK && (file < 0 || file >= builder->out->file_count))
    status = tegula__plugin_wrong(builder, "the number of a file that is not there", err);
  if (status == TEGULA_OK) {
    *state = (late_state){*late, builder->locked};
    status = take(builder, file, state, late->path, err);
  }
  if (status != TEGULA_OK) {
    if (late->release != NULL) late->release(late->state);
    free(state);
    return status;
  }
  *number = builder->out->late_count - 1;
  return TEGULA_OK;
}

tegula_status tegula__plugin_new_late(tegula_plugin_builder *builder,
                                      const tegula_plugin_late *late, int64_t *number,
                                      tegula_error *err) {
  return tegula__plugin_new_late_of(builder, 0, late, number, err);
}

tegula_status tegula__plugin_add_late(tegula_plugin_builder *builder, int64_t number,
                                      const int64_t *lo, const int64_t *hi, tegula_error *err) {
  bool there = number >= 0 && number < builder->out->late_count;
  if (!there)
    return tegula__plugin_wrong(builder, "the number of a late part that is not there", err);
  tegula__part part = {
      .kind = TEGULA__PART_LATE, .lo = lo, .hi = hi, .late = builder->out->lates[number]};
  return tegula__plugin_add_without_file(builder, &part, err);
}
