/* The limit that `tegula bench` compares with: plain parallel pread of the same bytes into fresh
 * huge-page memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * As simple as a fast loader can be: blocks of 4 MiB from a shared counter, each thread keeps the
 * file of its last block open. It knows in advance where the bytes are; the clock covers the
 * mapping, the threads, the opens and the reads. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli_report.h"
#include "commands.h"

#define BLOCK_BYTES (INT64_C(4) << 20)
#define HUGE_PAGE (INT64_C(2) << 20)
#define MAX_LIMIT_THREADS 4096

typedef struct limit_block {
  const char *path; /* borrowed from the dataset */
  int64_t offset, place;
  size_t bytes;
} limit_block;

struct limit_plan {
  limit_block *blocks;
  int64_t count, capacity;
  int64_t bytes;
};

/* One run, shared by its threads. */
typedef struct limit_work {
  const cli_job *job;
  const limit_plan *plan;
  char *memory;
  atomic_llong next;
  atomic_int failed_errno; /* 0: all is well; ENODATA: a file ended too soon */
  atomic_llong failed_block;
} limit_work;

/* ---- the plan ---- */

static int append_block(limit_plan *plan, limit_block block) {
  if (plan->count == plan->capacity) {
    int64_t capacity = plan->capacity > 0 ? plan->capacity * 2 : 64;
    limit_block *blocks = reallocarray(plan->blocks, (size_t)capacity, sizeof *blocks);
    if (blocks == NULL) {
      return 0;
    }
    plan->blocks = blocks;
    plan->capacity = capacity;
  }
  plan->blocks[plan->count++] = block;
  return 1;
}

/* Cuts `bytes` bytes of one file into blocks. */
static int append_file(limit_plan *plan, const tegula_file_info *file, int64_t bytes) {
  for (int64_t done = 0; done < bytes; done += BLOCK_BYTES) {
    int64_t length = bytes - done < BLOCK_BYTES ? bytes - done : BLOCK_BYTES;
    if (!append_block(plan, (limit_block){file->path, file->data_offset + done, plan->bytes + done,
                                          (size_t)length})) {
      return 0;
    }
  }
  plan->bytes += bytes;
  return 1;
}

/* Bytes of one row in the files; a 0-d file is one row. */
static int64_t stored_row_bytes(const tegula_dataset_info_t *info) {
  int64_t rows = info->ndim > 0 ? info->shape[0] : 1;
  return rows > 0 ? info->stored_bytes / rows : 0;
}

tegula_status limit_prepare(cli_job *job, const tegula_dataset *dataset, limit_plan **out) {
  tegula_dataset_info_t info;
  tegula_dataset_info_init(&info);
  tegula_status status = tegula_dataset_info(dataset, &info, &job->error);
  limit_plan *plan = calloc(1, sizeof *plan);
  int whole = plan != NULL;
  for (int64_t i = 0; whole && status == TEGULA_OK && i < info.files; i++) {
    tegula_file_info file;
    tegula_file_info_init(&file);
    status = tegula_dataset_file(dataset, i, &file, &job->error);
    if (status == TEGULA_OK) {
      whole = append_file(plan, &file, (file.row_hi - file.row_lo) * stored_row_bytes(&info));
    }
  }
  if (status == TEGULA_OK && !whole) {
    status = report_fail(&job->error, TEGULA_OUT_OF_MEMORY, NULL,
                         "could not plan the plain read: no memory");
  }
  if (status != TEGULA_OK) {
    limit_free(plan);
    return status;
  }
  *out = plan;
  return TEGULA_OK;
}

void limit_free(limit_plan *plan) {
  if (plan != NULL) {
    free(plan->blocks);
    free(plan);
  }
}

/* ---- one run ---- */

/* Returns 0 or an errno; ENODATA when the file ends inside the block. */
static int read_block(int fd, const limit_block *block, char *memory) {
  for (size_t done = 0; done < block->bytes;) {
    ssize_t got =
        pread(fd, memory + block->place + done, block->bytes - done, block->offset + (off_t)done);
    if (got == 0) {
      return ENODATA;
    }
    if (got < 0 && errno != EINTR) {
      return errno;
    }
    done += got > 0 ? (size_t)got : 0;
  }
  return 0;
}

static void note_failure(limit_work *work, int64_t index, int os_errno) {
  int none = 0;
  if (atomic_compare_exchange_strong(&work->failed_errno, &none, os_errno)) {
    atomic_store(&work->failed_block, index);
  }
}

static void *read_blocks(void *state) {
  limit_work *work = state;
  const char *path = NULL;
  int fd = -1;
  while (atomic_load(&work->failed_errno) == 0 && !job_stopped(work->job)) {
    int64_t index = atomic_fetch_add(&work->next, 1);
    if (index >= work->plan->count) {
      break;
    }
    const limit_block *block = &work->plan->blocks[index];
    if (block->path != path) {
      if (fd >= 0) {
        close(fd);
      }
      path = block->path;
      fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    int failure = fd < 0 ? errno : read_block(fd, block, work->memory);
    if (failure != 0) {
      note_failure(work, index, failure);
    }
  }
  if (fd >= 0) {
    close(fd);
  }
  return NULL;
}

/* The calling thread is one of them; threads that cannot be started are done without. */
static void run_threads(limit_work *work, int32_t threads) {
  pthread_t started[MAX_LIMIT_THREADS];
  int32_t count = 0;
  for (; count + 1 < threads && count < MAX_LIMIT_THREADS; count++) {
    if (pthread_create(&started[count], NULL, read_blocks, work) != 0) {
      break;
    }
  }
  read_blocks(work);
  for (int32_t i = 0; i < count; i++) {
    pthread_join(started[i], NULL);
  }
}

static tegula_status outcome(cli_job *job, limit_work *work) {
  int os_errno = atomic_load(&work->failed_errno);
  if (os_errno == 0) {
    return job_check(job);
  }
  const limit_block *block = &work->plan->blocks[atomic_load(&work->failed_block)];
  if (os_errno == ENODATA) {
    return report_fail(&job->error, TEGULA_SHORT_FILE, NULL,
                       "could not read %zu bytes at byte %" PRId64 " of %s: the file ends before",
                       block->bytes, block->offset, block->path);
  }
  return report_fail_os(&job->error, block->path, os_errno, NULL, "could not read %s", block->path);
}

tegula_status limit_run(cli_job *job, const limit_plan *plan, double *seconds) {
  size_t size = (size_t)plan->bytes + 2 * HUGE_PAGE;
  double began = job_now();
  char *mapping = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    return report_fail(&job->error, TEGULA_OUT_OF_MEMORY, NULL,
                       "could not get %zu bytes for the plain read", size);
  }
  uintptr_t past = (uintptr_t)mapping % (uintptr_t)HUGE_PAGE;
  limit_work work = {
      .job = job, .plan = plan, .memory = mapping + (past > 0 ? (uintptr_t)HUGE_PAGE - past : 0)};
  /* advice: works without, slower */
  (void)madvise(work.memory, (size_t)plan->bytes, MADV_HUGEPAGE);
  run_threads(&work, tegula_context_threads(job->context));
  *seconds = job_now() - began;
  tegula_status status = outcome(job, &work);
  munmap(mapping, size);
  return status;
}
