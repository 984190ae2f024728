/* Host blocks: anonymous memory, huge pages where the kernel gives them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/mman.h>

#include "memory/memory.h"

#define HUGE_PAGE ((size_t)2 << 20)

tegula_status tegula__memory_check(int64_t bytes, tegula_error *err) {
  int64_t granted = tegula__granted_memory();
  if (bytes <= granted) return TEGULA_OK;
  return tegula__hint(
      err,
      tegula__fail(err, TEGULA_OUT_OF_MEMORY, NULL, -1,
                   "the array needs %lld bytes of memory, but this process can get about %lld",
                   (long long)bytes, (long long)granted),
      "load a box of it, or use more ranks");
}

/* Maps with room to align, then gives the surplus back. */
static char *map_aligned(size_t bytes) {
  char *map = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return NULL;
  size_t before = (HUGE_PAGE - (uintptr_t)map % HUGE_PAGE) % HUGE_PAGE, after = HUGE_PAGE - before;
  if (before > 0) munmap(map, before);
  if (after > 0) munmap(map + before + bytes, after);
  /* advice: without it pages are small, nothing else changes */
  madvise(map + before, bytes, MADV_HUGEPAGE);
  return map + before;
}

tegula_status tegula__block_create(int64_t bytes, tegula__block *out, tegula_error *err) {
  *out = (tegula__block){0};
  if (bytes == 0) return TEGULA_OK;
  size_t size = ((size_t)bytes + 4095) / 4096 * 4096;
  char *data = size >= HUGE_PAGE
                   ? map_aligned(size)
                   : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == NULL || data == MAP_FAILED)
    return tegula__fail_errno(err, ENOMEM, NULL, -1,
                              "could not get %lld bytes of memory for the array", (long long)bytes);
  *out = (tegula__block){.data = data, .mapped = size};
  return TEGULA_OK;
}

void tegula__block_free(tegula__block *block) {
  if (block->mapped > 0) munmap(block->data, block->mapped);
  *block = (tegula__block){0};
}
