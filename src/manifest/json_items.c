/* Items as hexadecimal digits, byte orders and bounded numbers in a manifest's JSON text.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "manifest/manifest_priv.h"

int tegula__json_hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool from_hex(const char *hex, unsigned char *out, size_t size) {
  if (strlen(hex) != 2 * size) return false;
  for (size_t i = 0; i < size; i++) {
    int high = tegula__json_hex_digit(hex[2 * i]), low = tegula__json_hex_digit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    out[i] = (unsigned char)(high << 4 | low);
  }
  return true;
}

static void to_native(unsigned char *item, uint32_t size, uint32_t group) {
  if (TEGULA__NATIVE_ORDER == '<') return;
  for (uint32_t at = 0; at + group <= size; at += group)
    for (uint32_t i = 0; i < group / 2; i++) {
      unsigned char kept = item[at + i];
      item[at + i] = item[at + group - 1 - i];
      item[at + group - 1 - i] = kept;
    }
}

tegula_status tegula__json_read_item(const tegula__json *object, const char *key,
                                     tegula__manifest *out, const void **item, tegula_error *err) {
  tegula__json member = tegula__json_member(object, key);
  tegula__json_kind kind = tegula__json_kind_of(&member);
  const char *text = NULL;
  uint32_t size = out->dtype.item_size;
  *item = NULL;
  if (kind == TEGULA__JSON_ABSENT || kind == TEGULA__JSON_NULL) return TEGULA_OK;
  FORWARD(tegula__json_text(&member, &text, err));
  if (strlen(text) != 2 * (size_t)size)
    return tegula__json_wrong(&member, err, "%llu hexadecimal digits, or null", 2ULL * size);
  unsigned char *bytes = malloc(size);
  if (bytes != NULL && !from_hex(text, bytes, size)) {
    free(bytes);
    return tegula__json_wrong(&member, err, "%llu hexadecimal digits (0-9, a-f), or null",
                              2ULL * size);
  }
  if (bytes != NULL) to_native(bytes, size, tegula__dtype_swap_size(out->dtype));
  FORWARD(tegula__manifest_keep(out, bytes, err));
  *item = bytes;
  return TEGULA_OK;
}

tegula_status tegula__json_read_order(const tegula__json *object, tegula_dtype dtype, uint8_t *out,
                                      tegula_error *err) {
  tegula__json member = tegula__json_member(object, "order");
  const char *text = NULL;
  bool ordered = dtype.order != '|';
  FORWARD(tegula__json_text(&member, &text, err));
  bool good = text[1] == '\0' && (ordered ? text[0] == '<' || text[0] == '>' : text[0] == '|');
  if (!good)
    return tegula__json_wrong(&member, err, ordered ? "\"<\" or \">\"" : "\"|\" for this dtype");
  *out = (uint8_t)text[0];
  return TEGULA_OK;
}

tegula_status tegula__json_read_number(const tegula__json *object, const char *key, int64_t least,
                                       int64_t most, int64_t *out, tegula_error *err) {
  tegula__json member = tegula__json_member(object, key);
  return tegula__json_integer(&member, least, most, out, err);
}
