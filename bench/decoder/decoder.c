/* tegula_bench_decoder: the limit of a chunked load: plain pread of the stored bytes, and the
 * codecs alone from memory to memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   tegula_bench_decoder FILE TABLE [THREADS]
 * TABLE is text: the bytes of a decoded chunk; then a line for each stage of the chain in encoding
 * order, `codec param...`; then `-`; then `offset length` for each chunk. Prints {"read": seconds,
 * "decode": seconds}. Both go into fresh memory with huge pages, mapped inside the clock; without a
 * chain the read is into the final place, and nothing is decoded. The only program outside of tests
 * that looks into the library: what it measures has no public name. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "codec/codec.h"

typedef struct piece {
  int64_t offset, length, place;
} piece;

typedef struct work {
  int fd;
  tegula__filter filters[TEGULA__CHAIN_MAX];
  int32_t filter_count;
  int64_t chunk_bytes, count, stored;
  piece *pieces;
  char *encoded, *decoded;
  bool decoding;
  _Atomic int64_t next;
} work;

static _Noreturn void die(const char *what) {
  fprintf(stderr, "tegula_bench_decoder: %s\n", what);
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static char *fresh(int64_t bytes) {
  char *memory = mmap(NULL, (size_t)bytes + (2 << 20), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) die("no memory");
  memory += (2 << 20) - (uintptr_t)memory % (2 << 20);
  madvise(memory, (size_t)bytes, MADV_HUGEPAGE);
  return memory;
}

static void read_line(work *w, char *line) {
  tegula__filter *filter = &w->filters[w->filter_count++];
  char *word = strtok(line, " \n");
  for (uint16_t id = 1; id < TEGULA__CODEC_COUNT; id++)
    if (strcmp(tegula__codec_name(id), word) == 0) filter->codec = id;
  if (filter->codec == TEGULA__CODEC_NONE || w->filter_count == TEGULA__CHAIN_MAX)
    die("unknown codec");
  while ((word = strtok(NULL, " \n")) != NULL && filter->param_count < TEGULA__FILTER_PARAMS)
    filter->params[filter->param_count++] = (uint32_t)strtoul(word, NULL, 10);
}

static void read_table(work *w, const char *path) {
  FILE *file = fopen(path, "r");
  char line[256];
  long long offset, length;
  if (file == NULL || fscanf(file, "%lld\n", &length) != 1) die("no table");
  w->chunk_bytes = length;
  while (fgets(line, sizeof line, file) != NULL && line[0] != '-') read_line(w, line);
  for (int64_t room = 0; fscanf(file, "%lld %lld\n", &offset, &length) == 2; w->count++) {
    if (w->count == room && (w->pieces = realloc(w->pieces, (size_t)(room = 2 * room + 1024) *
                                                                sizeof *w->pieces)) == NULL)
      die("no memory");
    w->pieces[w->count] = (piece){offset, length, w->stored};
    w->stored += length;
  }
  fclose(file);
}

static void read_one(const work *w, const piece *p, char *place) {
  for (int64_t done = 0; done < p->length;) {
    ssize_t got = pread(w->fd, place + done, (size_t)(p->length - done), p->offset + done);
    if (got <= 0) die("could not read");
    done += got;
  }
}

static void *run(void *state) {
  work *w = state;
  tegula__decoder *decoder = w->decoding ? tegula__decoder_create(tegula__kernel_select()) : NULL;
  for (int64_t i; (i = atomic_fetch_add(&w->next, 1)) < w->count;) {
    const piece *p = &w->pieces[i];
    if (!w->decoding)
      read_one(w, p,
               w->filter_count == 0 ? w->decoded + i * w->chunk_bytes : w->encoded + p->place);
    else if (tegula__decode(decoder, w->filters, w->filter_count, 0, w->encoded + p->place,
                            (size_t)p->length, w->decoded + i * w->chunk_bytes,
                            (size_t)w->chunk_bytes, NULL) != TEGULA_OK)
      die("could not decode");
  }
  tegula__decoder_destroy(decoder);
  return NULL;
}

static double timed(work *w, int threads, bool decoding) {
  pthread_t ids[64];
  double start = now();
  w->decoding = decoding;
  atomic_store(&w->next, 0);
  if (decoding || w->filter_count == 0)
    w->decoded = fresh(w->count * w->chunk_bytes);
  else
    w->encoded = fresh(w->stored);
  for (int i = 1; i < threads; i++)
    if (pthread_create(&ids[i], NULL, run, w) != 0) die("no thread");
  run(w);
  for (int i = 1; i < threads; i++) pthread_join(ids[i], NULL);
  return now() - start;
}

int main(int argc, char **argv) {
  work w = {0};
  int threads = argc > 3 ? atoi(argv[3]) : tegula__granted_threads();
  if (argc < 3 || threads < 1 || threads > 64)
    die("usage: tegula_bench_decoder FILE TABLE [THREADS]");
  read_table(&w, argv[2]);
  w.fd = open(argv[1], O_RDONLY | O_CLOEXEC);
  if (w.fd < 0) die("could not open the file");
  double read = timed(&w, threads, false),
         decode = w.filter_count > 0 ? timed(&w, threads, true) : 0;
  printf("{\"read\": %.6f, \"decode\": %.6f}\n", read, decode);
  return 0;
}
