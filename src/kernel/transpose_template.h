/* transpose_template: the loops around a small in-register transpose; included once per item size
 * by each file of variants.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The includer defines
 *   TRANSPOSE(name)  the name of a function of this size, such as transpose4_##name
 *   SIZE             bytes of an item; EDGE = 64 / SIZE items fill a cache line
 *   TARGET           function attribute, may be empty
 *   MICRO            edge of the in-register transpose (1: none)
 *   MICRO_RUN(to, from, stride)
 *                    MICRO x MICRO items from rows `stride` bytes apart to lines of 64 bytes
 *   WRITE_LINE(dst, line, swap, stream)
 *                    64 bytes, bytes reversed in groups of `swap`; `stream`: past the caches where
 *                    dst is aligned
 *   WRITE_PART(dst, line, bytes, swap)
 *   STREAM_END()     makes streamed bytes visible like all others
 * and finds them undefined again.
 *
 * Squares of EDGE x EDGE items go through a buffer in L1: every source line is read once and every
 * destination line is written at once, also when rows lie 4096 bytes apart and so compete for the
 * same few places in the cache. */
#define EDGE (TEGULA__KERNEL_LINE / SIZE)

/* Fills lines [0, columns) of the buffer with `rows` items each; both are at most EDGE. */
TARGET static inline void TRANSPOSE(gather)(char *lines, const char *src, int64_t src_stride,
                                            int64_t rows, int64_t columns) {
  int64_t whole_rows = rows - rows % MICRO;
  int64_t whole_columns = columns - columns % MICRO;
  if (MICRO == 1) whole_rows = 0;
  for (int64_t r = 0; r < whole_rows; r += MICRO) {
    const char *from = src + r * src_stride;
    for (int64_t c = 0; c < whole_columns; c += MICRO)
      MICRO_RUN(lines + c * TEGULA__KERNEL_LINE + r * SIZE, from + c * SIZE, src_stride);
    for (int64_t c = whole_columns; c < columns; c++)
      for (int64_t k = 0; k < MICRO; k++)
        memcpy(lines + c * TEGULA__KERNEL_LINE + (r + k) * SIZE, from + k * src_stride + c * SIZE,
               SIZE);
  }
  for (int64_t r = whole_rows; r < rows; r++)
    for (int64_t c = 0; c < columns; c++)
      memcpy(lines + c * TEGULA__KERNEL_LINE + r * SIZE, src + r * src_stride + c * SIZE, SIZE);
}

TARGET static inline void TRANSPOSE(square)(char *dst, int64_t dst_stride, const char *src,
                                            int64_t src_stride, uint32_t swap_size, bool stream) {
  _Alignas(64) char lines[EDGE * TEGULA__KERNEL_LINE];
  TRANSPOSE(gather)(lines, src, src_stride, EDGE, EDGE);
  for (int64_t c = 0; c < EDGE; c++)
    WRITE_LINE(dst + c * dst_stride, lines + c * TEGULA__KERNEL_LINE, swap_size, stream);
}

TARGET static void TRANSPOSE(partial)(char *dst, int64_t dst_stride, const char *src,
                                      int64_t src_stride, int64_t rows, int64_t columns,
                                      uint32_t swap_size) {
  _Alignas(64) char lines[EDGE * TEGULA__KERNEL_LINE];
  TRANSPOSE(gather)(lines, src, src_stride, rows, columns);
  for (int64_t c = 0; c < columns; c++)
    WRITE_PART(dst + c * dst_stride, lines + c * TEGULA__KERNEL_LINE, (size_t)(rows * SIZE),
               swap_size);
}

/* Fewer rows than the in-register transpose takes, such as the three coordinates of many points:
 * long loops along the source. */
TARGET static void TRANSPOSE(strip)(char *dst, int64_t dst_stride, const char *src,
                                    int64_t src_stride, int64_t rows, int64_t columns,
                                    uint32_t swap_size) {
  enum { STRIP = 256 };
  for (int64_t c0 = 0; c0 < columns; c0 += STRIP) {
    int64_t end = tegula__min(columns, c0 + STRIP);
    for (int64_t r = 0; r < rows; r++)
      for (int64_t c = c0; c < end; c++)
        memcpy(dst + c * dst_stride + r * SIZE, src + r * src_stride + c * SIZE, SIZE);
    if (swap_size == 1) continue;
    char *written = dst + c0 * dst_stride;
    if (dst_stride == rows * SIZE)
      WRITE_PART(written, written, (size_t)((end - c0) * dst_stride), swap_size);
    else
      for (int64_t c = c0; c < end; c++)
        WRITE_PART(dst + c * dst_stride, dst + c * dst_stride, (size_t)(rows * SIZE), swap_size);
  }
}

/* Items to step over until `address` is at the start of a line, where a stride keeps it so; else a
 * whole line. */
static inline int64_t TRANSPOSE(first_step)(const char *address, int64_t stride) {
  uintptr_t past = (uintptr_t)address % TEGULA__KERNEL_LINE;
  if (past == 0 || past % SIZE || stride % TEGULA__KERNEL_LINE) return EDGE;
  return (int64_t)(TEGULA__KERNEL_LINE - past) / SIZE;
}

/* At most 512 source rows at a time, so that their pages stay known to the processor from one
 * column of squares to the next. */
TARGET static void TRANSPOSE(blocks)(char *dst, int64_t dst_stride, const char *src,
                                     int64_t src_stride, int64_t rows, int64_t columns,
                                     uint32_t swap_size, bool stream) {
  enum { ROWS = 512 };
  if (rows < MICRO) {
    TRANSPOSE(strip)(dst, dst_stride, src, src_stride, rows, columns, swap_size);
    return;
  }
  for (int64_t r0 = 0, r1; r0 < rows; r0 = r1) {
    int64_t first = TRANSPOSE(first_step)(dst + r0 * SIZE, dst_stride);
    r1 = tegula__min(rows, r0 + first + ROWS - EDGE);
    for (int64_t c0 = 0, c1; c0 < columns; c0 = c1) {
      c1 = tegula__min(columns, c0 + (c0 ? EDGE : TRANSPOSE(first_step)(src, src_stride)));
      for (int64_t r = r0, next; r < r1; r = next) {
        next = tegula__min(r1, r + (r == r0 ? first : EDGE));
        char *to = dst + c0 * dst_stride + r * SIZE;
        const char *from = src + r * src_stride + c0 * SIZE;
        if (next - r == EDGE && c1 - c0 == EDGE)
          TRANSPOSE(square)(to, dst_stride, from, src_stride, swap_size, stream);
        else
          TRANSPOSE(partial)(to, dst_stride, from, src_stride, next - r, c1 - c0, swap_size);
      }
    }
  }
  if (stream) STREAM_END();
}

#undef EDGE
#undef TRANSPOSE
#undef SIZE
#undef MICRO
#undef MICRO_RUN
