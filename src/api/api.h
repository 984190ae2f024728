/* api: implements the public header: argument checks, handles, and the order of the phases. The
 * only folder that sees all others.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_API_API_H
#define TEGULA_API_API_H

#include "check/check.h"
#include "dataset/dataset.h"

/* hash_ranks.c: the XOR of all block hashes of an array that is spread over ranks, on all of
 * them. */
tegula_status tegula__hash_on_ranks(const tegula_array *array, tegula__hash128 *sum,
                                    tegula_error *err);

/* verify.c: does the status say something about this process rather than about the files? */
bool tegula__status_is_ours(tegula_status status);

#endif
