/* The text of a dtype: what is accepted is valid, and its own text gives the same dtype again.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The whole input is the text. */
#include "base/base.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  guarded text = guarded_copy(data, size, true);
  tegula_dtype dtype, again, swapped;
  tegula_error error;
  char formatted[TEGULA_DTYPE_TEXT];
  tegula_status status = tegula_dtype_parse(text.data, &dtype, &error);
  if (status == TEGULA_OK) {
    MUST(tegula__dtype_valid(dtype) && dtype.item_size > 0);
    MUST(dtype.item_size % tegula__dtype_swap_size(dtype) == 0);
    tegula_dtype_format(dtype, formatted);
    MUST(strlen(formatted) < TEGULA_DTYPE_TEXT);
    MUST(tegula_dtype_parse(formatted, &again, NULL) == TEGULA_OK &&
         memcmp(&dtype, &again, sizeof dtype) == 0);
    swapped = tegula_dtype_native(dtype);
    MUST(tegula__dtype_valid(swapped) && tegula_dtype_same(swapped, dtype));
  } else {
    MUST(status == TEGULA_INVALID_ARGUMENT || status == TEGULA_UNSUPPORTED);
    MUST(error.status == status && error.message[0] != '\0' && strchr(error.message, '\n') == NULL);
  }
  guarded_free(&text);
  return 0;
}
