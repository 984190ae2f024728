/* Transfers of files of records: the data goes without its markers, which are compared where it is
 * read, and written along where it is written.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Short records go through a buffer, many in one request. Of long ones the data goes straight into
 * place by vectored requests, in which the markers have vectors of their own. What is read of a
 * sub-record is only taken when both of its markers are right, so they are read, too, where a
 * request has but a part of it. A marker is written by the request that has the byte next to it. */
#include <stdlib.h>
#include <string.h>

#include "base/frame.h"
#include "io/io_priv.h"

enum {
  BUFFER_BYTES = 512 << 10,
  SHORT_BYTES = 16 << 10, /* sub-records up to this go through the buffer */
  BATCH_MARKERS = TEGULA__IO_VECTORS / 2,
  MARKER_BYTES = 8
};

/* A marker in a vector of its own, until the request is done. */
typedef struct batched_marker {
  char stored[MARKER_BYTES];
  int64_t at, expected;
} batched_marker;

typedef struct record_move {
  const tegula__io_file *file;
  const tegula__frame *frame;
  struct iovec *vectors; /* what is left of the request's */
  int64_t at, end;       /* places that are left */
  char *buffer;
  /* long sub-records: vectors that follow each other in the file from batch_at on */
  struct iovec *batch;
  batched_marker *markers;
  int batch_count, marker_count;
  int64_t batch_at;
} record_move;

static tegula_status check_marker(const record_move *m, const void *stored, int64_t at,
                                  int64_t expected, tegula_error *err) {
  int64_t found = tegula__marker_get(m->frame, stored);
  if (found == expected) return TEGULA_OK;
  return tegula__hint(
      err,
      tegula__fail(err, TEGULA_CORRUPT, m->file->path, at,
                   "\"%s\": the record marker at byte %lld is %lld, expected %lld", m->file->path,
                   (long long)at, (long long)found, (long long)expected),
      "the file is damaged, or row_shape, dtype, byte order or offset are not what was written");
}

/* ---- the request's memory ---- */

/* Copies to or from the request's vectors, and moves on in them. */
static void copy_data(record_move *m, char *data, int64_t size) {
  for (m->at += size; size > 0;) {
    size_t some = (size_t)tegula__min(size, (int64_t)m->vectors->iov_len);
    if (m->file->writing)
      memcpy(data, m->vectors->iov_base, some);
    else
      memcpy(m->vectors->iov_base, data, some);
    m->vectors += tegula__io_advance(m->vectors, 1, some);
    data += some;
    size -= (int64_t)some;
  }
}

/* ---- through a buffer ---- */

/* As many sub-records from the one of `first` on as the buffer holds and the request meets; returns
 * where the last one's marker ends. */
static int64_t fill_of(const record_move *m, const tegula__subrecord *first) {
  tegula__subrecord sub = *first;
  int64_t behind = first->at;
  for (;;) {
    int64_t next = sub.at + 2 * m->frame->marker + sub.bytes;
    if (next - first->at > BUFFER_BYTES) return behind;
    behind = next;
    if (sub.from + sub.bytes >= m->end) return behind;
    tegula__frame_find(m->frame, sub.from + sub.bytes, &sub);
  }
}

static tegula_status read_buffer(record_move *m, tegula_error *err) {
  tegula__subrecord sub;
  tegula__frame_find(m->frame, m->at, &sub);
  int64_t start = sub.at, behind = fill_of(m, &sub), marker = m->frame->marker;
  FORWARD(tegula__io_read(m->file->fd, m->file->path, start, m->buffer, (size_t)(behind - start),
                          m->file->counts, err));
  while (sub.at < behind) {
    char *stored = m->buffer + (sub.at - start), *data = stored + marker;
    FORWARD(check_marker(m, stored, sub.at, sub.before, err));
    FORWARD(check_marker(m, data + sub.bytes, sub.at + marker + sub.bytes, sub.behind, err));
    copy_data(m, data + (m->at - sub.from), tegula__min(m->end, sub.from + sub.bytes) - m->at);
    if (m->at >= m->end) return TEGULA_OK;
    tegula__frame_find(m->frame, m->at, &sub);
  }
  return TEGULA_OK;
}

static tegula_status write_buffer(record_move *m, tegula_error *err) {
  tegula__subrecord sub;
  tegula__frame_find(m->frame, m->at, &sub);
  int64_t marker = m->frame->marker, behind = fill_of(m, &sub),
          start = m->at == sub.from ? sub.at : sub.at + marker + (m->at - sub.from);
  char *to = m->buffer;
  while (m->at < m->end && sub.at < behind) {
    int64_t some = tegula__min(m->end, sub.from + sub.bytes) - m->at;
    if (m->at == sub.from) {
      tegula__marker_put(m->frame, sub.before, to);
      to += marker;
    }
    copy_data(m, to, some);
    to += some;
    if (m->at == sub.from + sub.bytes) {
      tegula__marker_put(m->frame, sub.behind, to);
      to += marker;
    }
    if (m->at < m->end) tegula__frame_find(m->frame, m->at, &sub);
  }
  return tegula__io_write(m->file->fd, m->file->path, start, m->buffer, (size_t)(to - m->buffer),
                          m->file->counts, err);
}

/* ---- straight into place ---- */

static tegula_status flush(record_move *m, tegula_error *err) {
  if (m->batch_count > 0)
    FORWARD(tegula__reference_move(m->file, m->batch_at, m->batch, m->batch_count, err));
  for (int i = 0; i < m->marker_count && !m->file->writing; i++)
    FORWARD(check_marker(m, m->markers[i].stored, m->markers[i].at, m->markers[i].expected, err));
  m->batch_count = m->marker_count = 0;
  return TEGULA_OK;
}

/* `at`: where it is in the file. */
static tegula_status append(record_move *m, int64_t at, void *data, int64_t size,
                            tegula_error *err) {
  if (m->batch_count == TEGULA__IO_VECTORS) FORWARD(flush(m, err));
  if (m->batch_count == 0) m->batch_at = at;
  m->batch[m->batch_count++] = (struct iovec){data, (size_t)size};
  return TEGULA_OK;
}

static tegula_status append_marker(record_move *m, int64_t at, int64_t value, tegula_error *err) {
  if (m->marker_count == BATCH_MARKERS) FORWARD(flush(m, err));
  if (m->batch_count == TEGULA__IO_VECTORS) FORWARD(flush(m, err));
  batched_marker *marker = &m->markers[m->marker_count++];
  *marker = (batched_marker){.at = at, .expected = value};
  tegula__marker_put(m->frame, value, marker->stored);
  return append(m, at, marker->stored, m->frame->marker, err);
}

static tegula_status append_data(record_move *m, int64_t at, int64_t size, tegula_error *err) {
  for (int64_t some; size > 0; size -= some, at += some) {
    some = tegula__min(size, (int64_t)m->vectors->iov_len);
    if (some > 0) FORWARD(append(m, at, m->vectors->iov_base, some, err));
    m->vectors += tegula__io_advance(m->vectors, 1, (size_t)some);
    m->at += some;
  }
  return TEGULA_OK;
}

/* A marker that does not stand beside what is read. */
static tegula_status check_alone(const record_move *m, int64_t at, int64_t expected,
                                 tegula_error *err) {
  char stored[MARKER_BYTES];
  FORWARD(tegula__io_read(m->file->fd, m->file->path, at, stored, m->frame->marker, m->file->counts,
                          err));
  return check_marker(m, stored, at, expected, err);
}

static tegula_status move_long(record_move *m, tegula_error *err) {
  tegula__subrecord sub;
  tegula__frame_find(m->frame, m->at, &sub);
  int64_t data = sub.at + m->frame->marker, end = sub.from + sub.bytes;
  bool begins = m->at == sub.from, ends = m->end >= end;
  if (begins)
    FORWARD(append_marker(m, sub.at, sub.before, err));
  else if (!m->file->writing)
    FORWARD(check_alone(m, sub.at, sub.before, err));
  FORWARD(append_data(m, data + (m->at - sub.from), tegula__min(m->end, end) - m->at, err));
  if (ends) return append_marker(m, data + sub.bytes, sub.behind, err);
  return m->file->writing ? TEGULA_OK : check_alone(m, data + sub.bytes, sub.behind, err);
}

/* ---- one request ---- */

static tegula_status move_all(record_move *m, bool through_buffer, tegula_error *err) {
  while (m->at < m->end)
    FORWARD(!through_buffer    ? move_long(m, err)
            : m->file->writing ? write_buffer(m, err)
                               : read_buffer(m, err));
  return flush(m, err);
}

tegula_status tegula__records_move(const tegula__io_file *file, tegula__request *request,
                                   tegula_error *err) {
  const tegula__frame *frame = file->frame;
  bool through_buffer = tegula__min(frame->most, frame->record) <= SHORT_BYTES;
  if (request->offset < frame->first)
    return tegula__fail(err, TEGULA_INTERNAL, file->path, request->offset,
                        "\"%s\": a request begins in front of the records", file->path);
  record_move m = {.file = file,
                   .frame = frame,
                   .vectors = request->vectors,
                   .at = request->offset,
                   .end = request->offset + tegula__io_total(request->vectors, request->count)};
  size_t batch = TEGULA__IO_VECTORS * sizeof *m.batch,
         size = through_buffer ? BUFFER_BYTES : batch + BATCH_MARKERS * sizeof *m.markers;
  char *memory = malloc(size);
  if (memory == NULL) return tegula__out_of_memory(err, (int64_t)size);
  if (through_buffer)
    m.buffer = memory;
  else {
    m.batch = (struct iovec *)(void *)memory;
    m.markers = (batched_marker *)(void *)(memory + batch);
  }
  tegula_status status = move_all(&m, through_buffer, err);
  free(memory);
  return status;
}
