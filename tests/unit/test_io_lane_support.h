/* What the tests of the ways of moving bytes share: a file with known bytes, and requests that move
 * parts of it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Requests ascend, do not touch each other, and are made of one to several vectors at any
 * alignment. */
#ifndef TEGULA_TEST_IO_LANE_SUPPORT_H
#define TEGULA_TEST_IO_LANE_SUPPORT_H

#include "support.h"

#include "io/io.h"

#define MOST_VECTORS 5

typedef struct lane_bed {
  folder dir;
  file_name path;
  int64_t size;
  unsigned char *content; /* of the file */
  unsigned char *memory;  /* as long: byte i of the file belongs at memory[i + slip] */
  int64_t slip;
  int fd;
  tegula__io_counts counts;
  struct iovec vectors[TEGULA__IO_DEPTH * MOST_VECTORS];
  tegula__request requests[TEGULA__IO_DEPTH];
  int64_t lo[TEGULA__IO_DEPTH], hi[TEGULA__IO_DEPTH];
  int count;
  int64_t bytes;
} lane_bed;

static inline void bed_make(lane_bed *bed, int64_t size, int64_t slip, uint64_t *seed) {
  memset(bed, 0, sizeof *bed);
  bed->dir = folder_make();
  snprintf(bed->path.text, sizeof bed->path.text, "%s/data", bed->dir.path);
  bed->size = size;
  bed->slip = slip;
  bed->content = malloc((size_t)size);
  bed->memory = aligned_alloc(4096, (size_t)(size + slip + 4096) / 4096 * 4096);
  assert_true(bed->content != NULL && bed->memory != NULL);
  random_bytes(seed, bed->content, (size_t)size);
  bed->fd = open(bed->path.text, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  assert_true(bed->fd >= 0);
  assert_int_equal(write(bed->fd, bed->content, (size_t)size), size);
}

static inline void bed_free(lane_bed *bed) {
  close(bed->fd);
  free(bed->content);
  free(bed->memory);
  folder_remove(&bed->dir);
}

static inline tegula__io_file bed_file(lane_bed *bed, int64_t index, bool writing) {
  return (tegula__io_file){.fd = bed->fd,
                           .index = index,
                           .path = bed->path.text,
                           .writing = writing,
                           .counts = &bed->counts};
}

/* One request of the bytes [lo, hi), cut into `parts` vectors. */
static inline void bed_request(lane_bed *bed, int64_t lo, int64_t hi, int parts, uint64_t *seed) {
  tegula__request *request = &bed->requests[bed->count];
  struct iovec *vectors = &bed->vectors[bed->count * MOST_VECTORS];
  int64_t at = lo;
  for (int i = 0; i < parts; i++) {
    int64_t end = i == parts - 1 ? hi : random_between(seed, at, hi);
    vectors[i] = (struct iovec){bed->memory + bed->slip + at, (size_t)(end - at)};
    at = end;
  }
  *request = (tegula__request){.offset = lo, .vectors = vectors, .count = parts};
  bed->lo[bed->count] = lo;
  bed->hi[bed->count++] = hi;
  bed->bytes += hi - lo;
}

/* `count` requests of up to `most` bytes all over the file, or less when it is full. */
static inline void bed_fill(lane_bed *bed, int count, int64_t most, uint64_t *seed) {
  bed->count = 0;
  bed->bytes = 0;
  int64_t at = 0;
  while (bed->count < count) {
    int64_t lo = at + random_between(seed, 0, most / 4), hi = lo + random_between(seed, 1, most);
    if (hi > bed->size) return;
    bed_request(bed, lo, hi, (int)random_between(seed, 1, 3) == 1 ? MOST_VECTORS : 1, seed);
    at = hi;
  }
}

/* Equal requests, next to each other. */
static inline void bed_rows(lane_bed *bed, int count, int64_t bytes, uint64_t *seed) {
  bed->count = 0;
  bed->bytes = 0;
  for (int i = 0; i < count; i++) bed_request(bed, i * bytes, (i + 1) * bytes, 1, seed);
}

/* Memory holds the file's bytes where requests are, and is untouched elsewhere. */
static inline void bed_check_read(const lane_bed *bed, unsigned char untouched) {
  int next = 0;
  for (int64_t i = 0; i < bed->size; i++) {
    while (next < bed->count && i >= bed->hi[next]) next++;
    bool wanted = next < bed->count && i >= bed->lo[next];
    unsigned char expected = wanted ? bed->content[i] : untouched;
    if (bed->memory[i + bed->slip] != expected)
      fail_msg("byte %lld of %lld", (long long)i, (long long)bed->size);
  }
}

/* The file holds the memory's bytes where requests are, and its own elsewhere. */
static inline void bed_check_written(const lane_bed *bed) {
  unsigned char *now = malloc((size_t)bed->size + 1);
  int fd = open(bed->path.text, O_RDONLY | O_CLOEXEC), next = 0;
  assert_int_equal(read(fd, now, (size_t)bed->size + 1), bed->size);
  close(fd);
  for (int64_t i = 0; i < bed->size; i++) {
    while (next < bed->count && i >= bed->hi[next]) next++;
    bool wanted = next < bed->count && i >= bed->lo[next];
    if (now[i] != (wanted ? bed->memory[i + bed->slip] : bed->content[i]))
      fail_msg("byte %lld of the file", (long long)i);
  }
  free(now);
}

#endif
