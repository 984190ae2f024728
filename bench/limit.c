/* Plain parallel pread: what the hardware and the kernel give, without any of the library.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A shared counter hands out blocks: 4 MiB, because two threads that fill one huge page for the
 * first time both clear it; 1 MiB on the slow mount. A thread that takes a block reads it and
 * nothing else. Threads are started inside the call, as in any plain loader. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"

#define MEMORY_BLOCK ((int64_t)4 << 20)
#define MOUNT_BLOCK ((int64_t)1 << 20)

limit_plan limit_plan_create(const tegula_dataset *dataset, int32_t threads) {
  tegula_error error;
  tegula_dataset_info_t info;
  tegula_file_info file;
  tegula_dataset_info_init(&info);
  must(tegula_dataset_info(dataset, &info, &error), &error);
  limit_plan plan = {.count = info.files,
                     .threads = threads,
                     .block = MEMORY_BLOCK,
                     .files = must_allocate((size_t)info.files, sizeof *plan.files)};
  for (int64_t i = 0; i < plan.count; i++) {
    tegula_file_info_init(&file);
    must(tegula_dataset_file(dataset, i, &file, &error), &error);
    plan.files[i] =
        (limit_file){strdup(file.path), file.data_offset, file.size - file.data_offset, plan.bytes};
    if (plan.files[i].path == NULL) die("no memory for a name");
    plan.bytes += plan.files[i].size;
  }
  if (plan.bytes != info.bytes)
    die("the files hold %lld bytes of data, the array %lld", (long long)plan.bytes,
        (long long)info.bytes);
  return plan;
}

void limit_plan_move(limit_plan *plan, const char *folder) {
  plan->block = MOUNT_BLOCK;
  for (int64_t i = 0; i < plan->count; i++) {
    char *old = plan->files[i].path, *slash = strrchr(old, '/');
    if (asprintf(&plan->files[i].path, "%s/%s", folder, slash != NULL ? slash + 1 : old) < 0)
      die("no memory for a name");
    free(old);
  }
}

void limit_plan_free(limit_plan *plan) {
  for (int64_t i = 0; i < plan->count; i++) free(plan->files[i].path);
  free(plan->files);
}

typedef struct limit_run {
  const limit_plan *plan;
  unsigned char *memory;
  int *fds;
  _Atomic int64_t next_file; /* to be opened */
  _Atomic int64_t next_block;
  int64_t *first_block; /* of each file; count + 1 entries */
  pthread_barrier_t all_open;
} limit_run;

static void read_block(const limit_run *run, int64_t index, int64_t within) {
  const limit_file *file = &run->plan->files[index];
  int64_t block = run->plan->block, done = within * block;
  int64_t end = done + block < file->size ? done + block : file->size;
  while (done < end) {
    ssize_t got = pread(run->fds[index], run->memory + file->target + done, (size_t)(end - done),
                        file->offset + done);
    if (got == 0 || (got < 0 && errno != EINTR)) die("could not read \"%s\"", file->path);
    if (got > 0) done += got;
  }
}

/* The file of a block, by bisection. */
static int64_t file_of_block(const limit_run *run, int64_t block) {
  int64_t low = 0, high = run->plan->count;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (run->first_block[middle] <= block)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static void *work(void *state) {
  limit_run *run = state;
  int64_t count = run->plan->count;
  for (int64_t i; (i = atomic_fetch_add(&run->next_file, 1)) < count;) {
    run->fds[i] = open(run->plan->files[i].path, O_RDONLY | O_CLOEXEC);
    if (run->fds[i] < 0) die("could not open \"%s\"", run->plan->files[i].path);
  }
  pthread_barrier_wait(&run->all_open);
  for (int64_t block; (block = atomic_fetch_add(&run->next_block, 1)) < run->first_block[count];) {
    int64_t index = file_of_block(run, block);
    read_block(run, index, block - run->first_block[index]);
  }
  return NULL;
}

void limit_read(const limit_plan *plan, unsigned char *memory, int *fds) {
  limit_run run = {.plan = plan, .memory = memory, .fds = fds};
  pthread_t *threads = must_allocate((size_t)plan->threads, sizeof *threads);
  run.first_block = must_allocate((size_t)plan->count + 1, sizeof *run.first_block);
  for (int64_t i = 0; i < plan->count; i++)
    run.first_block[i + 1] =
        run.first_block[i] + (plan->files[i].size + plan->block - 1) / plan->block;
  pthread_barrier_init(&run.all_open, NULL, (unsigned)plan->threads);
  for (int32_t i = 1; i < plan->threads; i++)
    if (pthread_create(&threads[i], NULL, work, &run) != 0) die("could not start a thread");
  work(&run);
  for (int32_t i = 1; i < plan->threads; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&run.all_open);
  free(run.first_block);
  free(threads);
}

/* Pages of an open file in the page cache. */
static int64_t resident_pages(int fd, int64_t size, int64_t page) {
  int64_t pages = (size + page - 1) / page, resident = 0;
  if (pages == 0) return 0;
  unsigned char *state = must_allocate((size_t)pages, 1);
  void *map = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED || mincore(map, (size_t)size, state) != 0)
    die("could not ask for cached pages");
  for (int64_t i = 0; i < pages; i++) resident += state[i] & 1;
  munmap(map, (size_t)size);
  free(state);
  return resident;
}

void limit_make_cold(const limit_plan *plan) {
  int64_t page = sysconf(_SC_PAGESIZE), resident = 0, pages = 0;
  for (int64_t i = 0; i < plan->count; i++) {
    struct stat status;
    int fd = open(plan->files[i].path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
      die("could not drop \"%s\" from the cache", plan->files[i].path);
    resident += resident_pages(fd, status.st_size, page);
    pages += (status.st_size + page - 1) / page;
    close(fd);
  }
  if (resident * 100 > pages)
    die("not cold: %lld of %lld pages are still cached", (long long)resident, (long long)pages);
}
