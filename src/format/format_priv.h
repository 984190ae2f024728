/* What the formats share among themselves.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Formats that hold one array know it by one name; asking for another one is answered here, with
 * the same words for all of them. */
#ifndef TEGULA_FORMAT_FORMAT_PRIV_H
#define TEGULA_FORMAT_FORMAT_PRIV_H

#include "format/format.h"

/* The name of the only dataset of npy and raw files. */
#define TEGULA__FORMAT_ONLY_DATASET "data"

/* NOT_FOUND unless `dataset` is NULL or names the only one there is, with or without a slash in
 * front. */
tegula_status tegula__format_check_dataset(const char *dataset, const char *only, const char *path,
                                           tegula_error *err);

#endif
