/* Fields of structured records, found by name in numpy's description of the record.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Descriptions are those of manifests: a list of (name, format) and (name, format, shape), where
 * format is a dtype's text or again a list. A format of kind O, which numpy never writes to files,
 * stands for bytes that cannot be loaded: '|O16' are 16 of them. */
#ifndef TEGULA_FORMAT_RECORD_FIELDS_H
#define TEGULA_FORMAT_RECORD_FIELDS_H

#include "base/base.h"

typedef struct tegula__field {
  tegula_dtype dtype; /* in the byte order in which it is stored */
  int64_t offset;     /* of its first element in the record */
  int32_t ndim;       /* axes of a field that is an array, or is in records that are one */
  int64_t shape[TEGULA_MAX_DIMS];
  int64_t strides[TEGULA_MAX_DIMS]; /* bytes */
  char *descr;                      /* of a field that is a record; NULL: it is none; owned */
} tegula__field;

/* Finds the field `name` of records of that description: "mass", or "position.x" for a field of a
 * record within the record. NOT_FOUND: there is none, the hint names those that there are;
 * UNSUPPORTED: it cannot be loaded. Messages name `path`. `out` is written on success only; free
 * out->descr. */
tegula_status tegula__record_field(const char *path, const char *descr, const char *name,
                                   tegula__field *out, tegula_error *err);

/* The dtype of records that a caller describes ("[('x', '<f4'), ('y', '<f8')]"), and the
 * description as manifests have it, which the caller frees; NULL: it is not wanted.
 * INVALID_ARGUMENT and UNSUPPORTED say what is wrong with the text. */
tegula_status tegula__record_read(const char *text, tegula_dtype *dtype, char **descr,
                                  tegula_error *err);

/* Appends the names of the fields that can be loaded, the first ten of them: "x, y, position.x";
 * false on lack of memory. A description that is none has no fields. */
bool tegula__record_names(const char *descr, tegula__buffer *out);

#endif
