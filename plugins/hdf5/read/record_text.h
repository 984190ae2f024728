/* Text that grows: numpy's description of a record while it is made.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_HDF5_RECORD_TEXT_H
#define TEGULA_HDF5_RECORD_TEXT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct hdf5_words {
  char *data; /* ends with a zero; NULL: nothing yet; owned */
  size_t size, capacity;
  bool failed; /* no memory: what is there is of no use */
} hdf5_words;

void hdf5_words_put(hdf5_words *words, const char *text);
void hdf5_words_print(hdf5_words *words, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A name as Python's repr() writes it. A byte that is no UTF-8 becomes '\udcXX', as Python's
 * surrogateescape has it. */
void hdf5_words_quote(hdf5_words *words, const char *name);

#endif
