/* numpy's description of an element ("descr" in a header): a dtype's text, or a list of the fields
 * of a record.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Records become opaque items (kind V) of the sum of their fields' sizes; their description is kept
 * as text. */
#ifndef TEGULA_FORMAT_NPY_DESCR_H
#define TEGULA_FORMAT_NPY_DESCR_H

#include "format/npy/literal.h"

typedef struct tegula__descr {
  tegula_dtype dtype;
  /* '<' or '>' where an opaque dtype was written with one, as bfloat16 arrays are; else '|' */
  uint8_t void_order;
  /* the description of a record as Python's repr() writes it, in UTF-8; NULL for all others;
   * owned */
  char *record;
} tegula__descr;

/* UNSUPPORTED names what cannot be held: pickled objects, long double, items without bytes, unknown
 * texts. CORRUPT (INVALID_ARGUMENT where the text came from the caller): not the form of a
 * description. `out` is written on success only. */
tegula_status tegula__descr_read(const tegula__literal *literal, uint32_t node, tegula__descr *out,
                                 tegula_error *err);

#endif
