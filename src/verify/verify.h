/* verify: what tells whether data is right.
 *
 * hash.h has the content hash, comparison and demonstration values of memory: begin there. Above it
 * lie the operations on datasets: verify.c (every file there and readable), sum_dataset.c and
 * sums_check.c (digests of stored bytes; summing.h goes through files, sums.h is their text),
 * compare.c, and hash_dataset.c. The folder includes dataset and all that it includes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_VERIFY_VERIFY_H
#define TEGULA_VERIFY_VERIFY_H

#include "dataset/dataset.h"
#include "verify/hash.h"

/* hash_ranks.c: the XOR of all block hashes of an array that is spread over ranks, on all of
 * them. */
tegula_status tegula__hash_on_ranks(const tegula_array *array, tegula__hash128 *sum,
                                    tegula_error *err);

#endif
