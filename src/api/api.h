/* api: the public face of the library: argument checks, handles, and the place of each call in the
 * order of operations.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * One file for each part of tegula.h; begin reading at api_load.c. Calls whose whole work is one
 * operation lie with it: tegula_copy in src/copy, tegula_dataset_verify, tegula_dataset_sums,
 * tegula_sums_check, tegula_compare and hashes in src/verify, tegula_dataset_chunks in src/dataset.
 * The folder may include all others, and none includes it. */
#ifndef TEGULA_API_API_H
#define TEGULA_API_API_H

#include "dataset/dataset.h"
#include "verify/hash.h"

#endif
