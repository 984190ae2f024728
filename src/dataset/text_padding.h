/* text_padding: text of fixed length as numpy has it, whatever pads it in the file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_DATASET_TEXT_PADDING_H
#define TEGULA_DATASET_TEXT_PADDING_H

#include "engine/engine.h"

/* Fills with zeros what is not text in the elements of the tiles, which hold what is stored. */
tegula_status tegula__texts_pad(tegula__pool *pool, const tegula__manifest *manifest,
                                const tegula__tile *tiles, int64_t count, tegula_error *err);

#endif
