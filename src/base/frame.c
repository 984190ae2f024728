/* Where the bytes of a file of records are.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/frame.h"

#include <string.h>

bool tegula__frame_valid(const tegula__frame *frame) {
  int64_t period;
  return frame->first >= 0 && frame->record > 0 && frame->most > 0 &&
         (frame->marker == 4 || frame->marker == 8) &&
         (frame->order == '<' || frame->order == '>') &&
         (frame->marker == 8 || tegula__min(frame->most, frame->record) <= INT32_MAX) &&
         tegula__frame_period(frame, &period);
}

bool tegula__frame_period(const tegula__frame *frame, int64_t *bytes) {
  int64_t markers;
  return tegula__mul(tegula__ceil_div(frame->record, frame->most), 2 * frame->marker, &markers) &&
         tegula__add(frame->record, markers, bytes);
}

int64_t tegula__frame_end(const tegula__frame *frame, int64_t size) {
  int64_t period;
  if (frame->record == 0) return size;
  if (size < frame->first || !tegula__frame_period(frame, &period)) return 0;
  /* without markers: less than the size */
  return frame->first + (size - frame->first) / period * frame->record;
}

void tegula__frame_find(const tegula__frame *frame, int64_t at, tegula__subrecord *out) {
  int64_t record = (at - frame->first) / frame->record,
          within = (at - frame->first) % frame->record, number = within / frame->most,
          count = tegula__ceil_div(frame->record, frame->most), start = number * frame->most;
  int64_t markers = 2 * frame->marker * (record * count + number);
  out->from = frame->first + record * frame->record + start;
  out->bytes = tegula__min(frame->most, frame->record - start);
  out->at = out->from + markers;
  out->before = number + 1 < count ? -out->bytes : out->bytes;
  out->behind = number > 0 ? -out->bytes : out->bytes;
}

int64_t tegula__frame_place(const tegula__frame *frame, int64_t at) {
  tegula__subrecord sub;
  if (frame->record == 0 || at < frame->first) return at;
  tegula__frame_find(frame, at, &sub);
  return sub.at + frame->marker + (at - sub.from);
}

void tegula__marker_put(const tegula__frame *frame, int64_t value, void *out) {
  unsigned char *bytes = out;
  for (int i = 0; i < frame->marker; i++) {
    int shift = 8 * (frame->order == '<' ? i : frame->marker - 1 - i);
    bytes[i] = (unsigned char)((uint64_t)value >> shift);
  }
}

int64_t tegula__marker_get(const tegula__frame *frame, const void *stored) {
  const unsigned char *bytes = stored;
  uint64_t value = 0;
  for (int i = 0; i < frame->marker; i++) {
    int shift = 8 * (frame->order == '<' ? i : frame->marker - 1 - i);
    value |= (uint64_t)bytes[i] << shift;
  }
  return frame->marker == 4 ? (int32_t)(uint32_t)value : (int64_t)value;
}
