/* Where the bytes of a file of records are: places without markers, and those in the file.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A record of more than `most` bytes consists of sub-records, each with markers of its own. A
 * marker is the length of its sub-record, negative before one that another follows, and behind one
 * that follows another. Example, first 0, record 5, most 3, marker 4: bytes 0 to 2 are at 4, bytes
 * 3 and 4 at 15, the next record is at 25. */
#ifndef TEGULA_BASE_FRAME_H
#define TEGULA_BASE_FRAME_H

#include "base/base.h"

/* One sub-record. */
typedef struct tegula__subrecord {
  int64_t from;           /* place of its first byte, counted without markers */
  int64_t bytes;          /* without markers */
  int64_t at;             /* of the marker before it, in the file */
  int64_t before, behind; /* what its markers say */
} tegula__subrecord;

/* True where its numbers give each record a place. */
bool tegula__frame_valid(const tegula__frame *frame);
/* Bytes of a record with all of its markers; false: more than 2^63. */
bool tegula__frame_period(const tegula__frame *frame, int64_t *bytes);
/* The end of the whole records that a file of `size` bytes has, counted without markers. Of a file
 * without records its size. */
int64_t tegula__frame_end(const tegula__frame *frame, int64_t size);
/* The sub-record that holds place `at`, which is not in front of the first. */
void tegula__frame_find(const tegula__frame *frame, int64_t at, tegula__subrecord *out);
/* Where place `at` is in the file. */
int64_t tegula__frame_place(const tegula__frame *frame, int64_t at);
/* A marker as it is stored, and back. */
void tegula__marker_put(const tegula__frame *frame, int64_t value, void *out);
int64_t tegula__marker_get(const tegula__frame *frame, const void *stored);

#endif
