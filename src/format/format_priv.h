/* What the formats share among themselves.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Formats that hold one array know it by one name; asking for another one is answered here, with
 * the same words for all of
 * them. */
#ifndef TEGULA_FORMAT_FORMAT_PRIV_H
#define TEGULA_FORMAT_FORMAT_PRIV_H

#include "format/format.h"

/* The name of the only dataset of npy and raw files. */
#define TEGULA__FORMAT_ONLY_DATASET "data"

/* NOT_FOUND unless `dataset` is NULL or names the only one there is, with or without a slash in
 * front. */
tegula_status tegula__format_check_dataset(const char *dataset, const char *only, const char *path,
                                           tegula_error *err);

/* INVALID_ARGUMENT when an option is given that only raw files need; `is`: "an npy file, whose
 * header says it". */
tegula_status tegula__format_check_raw_only(const tegula__source *source,
                                            const tegula__describe_options *options, const char *is,
                                            const char *format, tegula_error *err);
/* MISMATCH when a dtype is given and the file has another one; byte order aside. */
tegula_status tegula__format_check_dtype(const tegula__source *source,
                                         const tegula__describe_options *options,
                                         tegula_dtype dtype, const char *format, tegula_error *err);

#endif
