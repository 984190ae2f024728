/* What reading (npy.c) and writing (write.c) of npy headers share.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The limit holds both ways: what we write we can read. */
#ifndef TEGULA_FORMAT_NPY_NPY_PRIV_H
#define TEGULA_FORMAT_NPY_NPY_PRIV_H

#include "format/format.h"

#define TEGULA__NPY_MAGIC "\x93NUMPY"
#define TEGULA__NPY_MAGIC_SIZE 6
/* Bytes of a header: far above any real one (a record of 100,000 fields needs 3 MiB), far below
 * what could hurt. */
#define TEGULA__NPY_MOST_HEADER ((int64_t)16 << 20)

/* The header as numpy.save writes it. UNSUPPORTED for bfloat16, which npy has no name for;
 * INVALID_ARGUMENT for a description that is no description or has another size than the dtype. */
tegula_status tegula__npy_lay_out(const tegula__layout_request *request, tegula__buffer *header,
                                  int64_t *strides, tegula_error *err);

#endif
