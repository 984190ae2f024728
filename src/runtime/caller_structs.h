/* Structs of callers, who may have been compiled against another version of the header: they are
 * copied with the size that they say.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_RUNTIME_CALLER_STRUCTS_H
#define TEGULA_RUNTIME_CALLER_STRUCTS_H

#include <stddef.h>

#include "base/base.h"

/* Copies a caller's options over `local`, which holds the defaults: `known` bytes of struct are
 * understood, `first` were there in version 1. `given` may be NULL. `name` is for messages. */
tegula_status tegula__options_copy(void *local, size_t known, size_t first, const void *given,
                                   const char *name, tegula_error *err);
/* Those of loads, over `local`, which holds the defaults. */
tegula_status tegula__load_options_copy(tegula_load_options *local,
                                        const tegula_load_options *given, tegula_error *err);
/* The other way: fills a caller's struct of information, whose struct_size says how much it
 * holds. */
tegula_status tegula__info_copy(void *out, size_t known, size_t first, const void *local,
                                const char *name, tegula_error *err);

tegula_status tegula__argument(tegula_error *err, const char *what);
#define CHECK_ARGUMENT(condition, what) RETURN_IF(!(condition), tegula__argument(err, what))

/* Size of a struct in version 1 of the header: up to and with the member that was its last then.
 * Members that come later are behind it. */
#define FIRST_SIZE(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))
#define FIRST_CONTEXT_OPTIONS FIRST_SIZE(tegula_context_options, hdf5_candidates)
#define FIRST_OPEN_OPTIONS FIRST_SIZE(tegula_open_options, statistics)
#define FIRST_SELECTION FIRST_SIZE(tegula_selection, field)
#define FIRST_DATASET_INFO FIRST_SIZE(tegula_dataset_info_t, fill)
#define FIRST_FILE_INFO FIRST_SIZE(tegula_file_info, data_offset)
#define FIRST_READER FIRST_SIZE(tegula_reader, release)
#define FIRST_ARRAY_OPTIONS FIRST_SIZE(tegula_array_options, reserved)
#define FIRST_LOAD_OPTIONS FIRST_SIZE(tegula_load_options, missing)
#define FIRST_SAVE_OPTIONS FIRST_SIZE(tegula_save_options, attribute_count)
#define FIRST_SAVE_MEMBER FIRST_SIZE(tegula_save_member, attribute_count)
#define FIRST_COPY_OPTIONS FIRST_SIZE(tegula_copy_options, flags)
#define FIRST_COPY_REPORT FIRST_SIZE(tegula_copy_report, hash)
#define FIRST_DIFFERENCE FIRST_SIZE(tegula_difference, reason)
#define FIRST_VERIFY_REPORT FIRST_SIZE(tegula_verify_report, problems)
#define FIRST_SUMS_REPORT FIRST_SIZE(tegula_sums_report, reserved)
#define FIRST_STATISTICS FIRST_SIZE(tegula_statistics, fallback_reason)

/* The size that a caller's struct says, and that nothing is set in what lies beyond the known
 * part. */
tegula_status tegula__struct_check(const void *given, size_t known, size_t first, const char *name,
                                   size_t *size, tegula_error *err);

#endif
