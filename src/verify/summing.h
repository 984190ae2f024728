/* summing: goes through files and finds the digests of their blocks and chunks, and the content
 * hash of a dataset beside them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each block of each file is one task, so that one large file keeps all workers busy. Where a part
 * of the array lies in a file as it is hashed (C order, whole rows, no other byte order), its bytes
 * are hashed for the content, too, while they are at hand, and so are chunks, decoded
 * (sum_chunks.c); what is left of the content (blocks of the hash that lie in several files or
 * tasks, other orders) is read through the engine afterwards. */
#ifndef TEGULA_VERIFY_SUMMING_H
#define TEGULA_VERIFY_SUMMING_H

#include <pthread.h>

#include "dataset/scan.h"
#include "verify/sums.h"
#include "verify/verify.h"

/* A file that is gone through. */
typedef struct tegula__sum_file {
  tegula__file_set *set; /* that it is opened by, */
  tegula__file *file;    /* its entry there, */
  int64_t index;         /* and the number of it */
  int64_t size;          /* as it must be */
  int64_t first_item;    /* of its blocks, over all files */
  int64_t first_chunk, chunk_count;
  int64_t first_segment, segment_count;
  int64_t failed;      /* the lowest of its items that could not be read; INT64_MAX: none */
  tegula_error *error; /* of that one; owned */
} tegula__sum_file;

/* Bytes of a file that are elements in C order, one after the other. */
typedef struct tegula__sum_segment {
  int64_t file, offset, bytes;
  int64_t content; /* of the first one: bytes of the array in front of it */
} tegula__sum_segment;

/* Blocks of the content hash that are done: [first, last). */
typedef struct tegula__sum_run {
  int64_t first, last;
} tegula__sum_run;

typedef struct tegula__assembly tegula__assembly;
typedef struct tegula__kept tegula__kept;

typedef struct tegula__summing {
  tegula_context *context;
  const tegula_dataset *dataset; /* NULL: files only */
  /* SIZES: sizes only; CHECKSUMS: blocks and chunks; DECODE: the content, too */
  tegula_verify_level level;
  tegula_comm *comm;  /* ranks that do it together; NULL: this process alone */
  bool checks;        /* on ranks: what is wrong with files is shared, and does not end it */
  tegula__news *news; /* gets the total; NULL: there is none */
  tegula__stream_call call;
  /* owned, like all lists here; the caller fills set, file, index, size and chunks */
  tegula__sum_file *files;
  int64_t file_count;
  const tegula__chunk_sum *chunks; /* by file and offset; borrowed */
  const int64_t *chunk_vectors;    /* of their first elements, where they have parts */
  int64_t chunk_count;
  /* what is found */
  tegula__hash128 *block_sums; /* by item */
  tegula__hash128 *chunk_sums;
  uint8_t *chunk_done;
  tegula__hash128 content;    /* XOR of all blocks of the content hash */
  tegula_error content_error; /* status OK: it was found */
  /* inside */
  int64_t items;
  int64_t own_item, own_items, own_chunk, own_chunks; /* this rank's */
  tegula__assembly *assembly; /* NULL: chunks are not hashed for the content in passing */
  tegula__sum_segment *segments;
  int64_t segment_count, segment_capacity;
  int64_t content_bytes, content_block; /* of the array; of a block of the hash */
  pthread_mutex_t lock;                 /* of what follows */
  tegula__sum_run *runs;
  int64_t run_count, run_capacity;
  /* status OK: go on; else it says something about this process, or it was cancelled */
  tegula_error stop;
  _Atomic bool stopped;
  _Atomic int64_t done;     /* bytes of files */
  _Atomic int64_t unpacked; /* bytes of the content, out of chunks */
} tegula__summing;

tegula_status tegula__summing_create(tegula__summing *summing, int64_t files, tegula_error *err);
void tegula__summing_free(tegula__summing *summing);
/* Part `part` of the dataset is in file `file`: adds it where its bytes are hashed as they are. */
tegula_status tegula__summing_part(tegula__summing *summing, const tegula__part *part, int64_t file,
                                   tegula_error *err);
/* Goes through all files, then the content. What is wrong with files is in `files` and
 * `content_error`; a failure here is another. On ranks it is collective, and what is wrong with
 * files fails here, unless it checks. */
tegula_status tegula__summing_run(tegula__summing *summing, tegula_error *err);

/* Bytes of files and of the content that are gone through, at most call.total. */
int64_t tegula__summing_done(tegula__summing *summing);

/* sum_ranks.c: what this rank goes through; an agreement, if there are ranks; what all found, on
 * all; the same for the content; and, of one that checks, for what is wrong with it. */
void tegula__summing_divide(tegula__summing *summing);
tegula_status tegula__summing_agree(tegula__summing *summing, tegula_status mine,
                                    tegula_error *err);
tegula_status tegula__summing_share(tegula__summing *summing, tegula_error *err);
tegula_status tegula__summing_join(tegula__summing *summing, tegula_error *err);
tegula_status tegula__summing_join_error(tegula__summing *summing, tegula_error *err);

/* The first problem of a file, or of the content; NULL: none. */
const tegula_error *tegula__summing_problem(const tegula__summing *summing);

/* sum_chunks.c: chunks in passing. NULL where there is no memory: then they are read again. */
tegula__assembly *tegula__assembly_create(tegula__summing *summing);
/* Takes what was hashed over into the summing. False: no memory. */
bool tegula__assembly_end(tegula__assembly *assembly);
void tegula__assembly_destroy(tegula__assembly *assembly);
/* What one task keeps; NULL without an assembly, or memory. */
tegula__kept *tegula__kept_create(tegula__assembly *assembly);
void tegula__kept_destroy(tegula__kept *kept);
bool tegula__kept_wants(const tegula__kept *kept, const tegula__chunk_sum *chunk);
/* `size` bytes of a wanted chunk, of which `done` went before; one chunk after the other, each
 * whole. */
void tegula__kept_add(tegula__kept *kept, const tegula__chunk_sum *chunk, int64_t done,
                      const char *data, int64_t size);
/* Decodes and hashes what is kept. */
void tegula__kept_flush(tegula__kept *kept);

/* sum_content.c: what was not hashed with the files. */
tegula_status tegula__sum_content(tegula__summing *summing, tegula_error *err);

/* ---- sum_blocks.c: one block, or chunk ---- */

/* read at once: it stays in the processor's cache while it is hashed */
#define TEGULA__SUM_BUFFER ((int64_t)512 << 10)

/* Tells the caller of progress, and asks whether to go on. */
tegula_status tegula__sum_ask(tegula__summing *s, int64_t bytes, tegula_error *err);

tegula_status tegula__sum_block(tegula__summing *s, tegula__sum_file *file, int64_t item,
                                tegula_error *err);

tegula_status tegula__sum_read_chunk(tegula__summing *s, tegula__sum_file *file, int64_t number,
                                     int fd, char *slot, tegula_error *err);

#endif
