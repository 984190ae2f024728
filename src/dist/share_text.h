/* Long texts of rank 0 for all ranks.
 *
 * The folder is for calls on several ranks only. Begin reading at chunk_assignment.h: which rank
 * has which chunk. redistribute.h brings pieces of chunks to that rank. The folder includes base,
 * manifest, comm, memory, array, kernel, codec, plan, engine and runtime, and no operation.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_DIST_SHARE_TEXT_H
#define TEGULA_DIST_SHARE_TEXT_H

#include "codec/codec.h"
#include "runtime/context.h"

typedef struct tegula__parcel {
  int64_t size;  /* bytes; 0: there are none, each rank opens the files */
  int64_t sent;  /* bytes that travel */
  int64_t codec; /* tegula__codec_id; NONE: the text itself */
} tegula__parcel;

/* Every rank gets the text of rank 0, `size` bytes, packed on its way: to be freed in any case.
 * Collective; what fails at the end, on one rank, is still to be agreed. There is no zero at its
 * end. */
tegula_status tegula__share_text(tegula_context *context, char **text, size_t *size,
                                 tegula_error *err);

/* What is sent: the bytes, or in their place (they are freed then) a shorter form. Where that fails
 * they go as they are. */
void tegula__parcel_compress(const tegula_context *context, char **text, tegula__parcel *p);

tegula_status tegula__parcel_decompress(const tegula_context *context, char **text,
                                        const tegula__parcel *p, tegula_error *err);

/* The end of a phase, and what rank 0 has to send. `mine` is this rank's status. Small texts find
 * their memory there already. Where it fails with *text NULL the memory is kept: it may still be
 * written to. */
tegula_status tegula__parcel_send(tegula_context *context, char **text, tegula__parcel *p,
                                  tegula_status mine, tegula_error *err);

#endif
