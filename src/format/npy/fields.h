/* The fields of structured records, from their description.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_FORMAT_NPY_FIELDS_H
#define TEGULA_FORMAT_NPY_FIELDS_H

#include <tegula/tegula_plugin.h>

#include "format/npy/descr.h"

/* All fields of `descr`, those of a record within behind its own; one block, to be freed, names and
 * shapes included. INVALID_ARGUMENT: it describes no records, or others than `dtype` has bytes for.
 * UNSUPPORTED names a field that cannot be stored as it is. */
tegula_status tegula__record_fields(const char *descr, tegula_dtype dtype,
                                    tegula_plugin_field **out, int64_t *count, tegula_error *err);

/* INVALID_ARGUMENT unless the description is one of records, of as many bytes as the dtype. */
tegula_status tegula__record_check(const tegula__descr *descr, tegula_dtype dtype,
                                   tegula_error *err);

#endif
