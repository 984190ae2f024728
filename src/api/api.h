/* api: the public face of the library: argument checks, handles, and the place of each call in the
 * order of operations.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * One file for each part of tegula.h; begin reading at api_load.c. The folder may include all
 * others, and none includes it. Some public functions lie below, since other folders call them or
 * they are one operation:
 *
 *   src/base      dtypes, statuses, the version
 *   src/runtime   defaults of structs (*_init), tegula_array_destroy
 *   src/dataset   tegula_dataset_close, tegula_dataset_chunks
 *   src/verify    tegula_dataset_verify, tegula_dataset_sums, tegula_sums_check, tegula_compare and
 *                 hashes
 *   src/copy      tegula_copy */
#ifndef TEGULA_API_API_H
#define TEGULA_API_API_H

#include "dataset/dataset.h"
#include "verify/hash.h"

#endif
