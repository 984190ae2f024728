/* One file of a save that a container's driver writes: its bytes, and its life.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>

#include "save/saving.h"

static int64_t sink_size(const tegula__sink *sink) {
  return ((const tegula__target *)sink->state)->size;
}

/* Of a parked file for this once; nobody else uses it. */
static tegula_status open_parked(const tegula__target *target, int *fd, tegula_error *err) {
  *fd = target->fd;
  return *fd < 0 ? tegula__io_reopen(target->path, target->counts, fd, err) : TEGULA_OK;
}

static tegula_status close_parked(const tegula__target *target, int fd, tegula_status status,
                                  tegula_error *err) {
  if (target->fd >= 0) return status;
  if (status == TEGULA_OK) return tegula__io_complete(fd, target->path, false, err);
  close(fd);
  return status;
}

static tegula_status sink_read(tegula__sink *sink, int64_t offset, void *out, size_t size,
                               tegula_error *err) {
  const tegula__target *target = sink->state;
  int fd;
  FORWARD(open_parked(target, &fd, err));
  return close_parked(
      target, fd, tegula__io_read(fd, target->path, offset, out, size, target->counts, err), err);
}

static tegula_status sink_write(tegula__sink *sink, int64_t offset, const void *data, size_t size,
                                tegula_error *err) {
  tegula__target *target = sink->state;
  int fd;
  FORWARD(open_parked(target, &fd, err));
  FORWARD(close_parked(target, fd,
                       tegula__io_write(fd, target->path, offset, data, size, target->counts, err),
                       err));
  int64_t end = offset + (int64_t)size;
  if (offset <= target->reserved) target->reserved = tegula__max(target->reserved, end);
  target->size = tegula__max(target->size, end);
  return TEGULA_OK;
}

static tegula_status sink_resize(tegula__sink *sink, int64_t size, tegula_error *err) {
  tegula__target *target = sink->state;
  int fd;
  FORWARD(open_parked(target, &fd, err));
  FORWARD(close_parked(target, fd, tegula__io_resize(fd, target->path, target->reserved, size, err),
                       err));
  target->size = target->reserved = size;
  return TEGULA_OK;
}

/* A tegula__io_room's. */
static tegula_status room_for_copy(void *state, int64_t copied, tegula_error *err) {
  tegula__publish *publish = state;
  return tegula__publish_space(publish, publish->needed, copied, err);
}

tegula_status tegula__target_open(tegula__saving *s, tegula__target *target, tegula_error *err) {
  if (target->fd >= 0) return TEGULA_OK; /* another array goes into it too */
  target->counts = &s->tally.counts;
  /* the user knows the file that maps it */
  bool tile = s->publish.companion != NULL && target != &s->targets[s->target_count - 1];
  target->sink = (tegula__sink){.path = tile ? s->publish.target : target->shown,
                                .size = sink_size,
                                .read = sink_read,
                                .write = sink_write,
                                .resize = sink_resize,
                                .state = target};
  unsigned mode = s->publish.there && !s->publish.folder ? s->publish.mode | 0200 : 0666;
  FORWARD(tegula__io_make(target->path, mode, target->counts, &target->fd, err));
  tegula__io_room room = {room_for_copy, &s->publish};
  if (s->adds)
    FORWARD(tegula__io_copy(s->publish.target, target->fd, target->path, &room, target->counts,
                            &s->before, err));
  /* never asked of the system: a file that seems to be empty would be made anew */
  target->size = target->reserved = s->adds ? s->before.size : 0;
  return s->format->container->open(s->context->plugins, &target->sink, &target->saving, err);
}

tegula_status tegula__target_park(tegula__target *target, tegula_error *err) {
  int fd = target->fd;
  target->fd = -1;
  target->parked = true;
  return tegula__io_complete(fd, target->path, false, err);
}

tegula_status tegula__target_reserve(tegula__target *target, tegula_error *err) {
  return target->wanted > target->size ? sink_resize(&target->sink, target->wanted, err)
                                       : TEGULA_OK;
}

tegula_status tegula__target_complete(const tegula__saving *s, tegula__target *target, bool durable,
                                      tegula_error *err) {
  void *saving = target->saving;
  if (target->parked) FORWARD(tegula__io_reopen(target->path, target->counts, &target->fd, err));
  target->parked = false;
  target->saving = NULL;
  if (saving != NULL) FORWARD(s->format->container->close(saving, err));
  int fd = target->fd;
  target->fd = -1;
  return tegula__io_complete(fd, target->path, durable, err);
}

void tegula__target_free(tegula__saving *s, tegula__target *target) {
  if (target->saving != NULL) s->format->container->abandon(target->saving);
  if (target->fd >= 0) close(target->fd);
  tegula__buffer_free(&target->header);
  free(target->path);
  free(target->shown);
}
