/* Manifests as packed bytes: as those in JSON, and what is accepted packs again to what unpacks
 * alike.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz_manifest.h"

static const tegula__manifest_names *names_of(void) {
  static tegula__manifest_names names = {.formats = formats};
  names.codecs = tegula__codec_names();
  return &names;
}

/* Packs a copy of it, which must be accepted, and packs that: the same bytes. */
static void pack_again(const uint8_t *data, size_t size) {
  tegula__manifest first, second;
  tegula__buffer one, other;
  tegula__manifest_init(&first);
  tegula__manifest_init(&second);
  tegula__buffer_init(&one, (size_t)1 << 30);
  tegula__buffer_init(&other, (size_t)1 << 30);
  MUST(tegula__manifest_unpack(data, size, "f", names_of(), &first, NULL) == TEGULA_OK);
  bool absolute = true; /* else names are looked up in the working folder */
  for (int64_t i = 0; i < first.file_count; i++)
    absolute = absolute && strrchr(first.files[i].path, '/') == first.files[i].path;
  if (absolute && tegula__manifest_finish(&first, NULL) == TEGULA_OK &&
      tegula__manifest_pack(&first, names_of(), &one, NULL) == TEGULA_OK) {
    MUST(tegula__manifest_unpack(one.data, one.size, "f", names_of(), &second, NULL) == TEGULA_OK);
    MUST(tegula__manifest_finish(&second, NULL) == TEGULA_OK);
    MUST(tegula__manifest_pack(&second, names_of(), &other, NULL) == TEGULA_OK);
    MUST(one.size == other.size && memcmp(one.data, other.data, one.size) == 0);
  }
  tegula__buffer_free(&one);
  tegula__buffer_free(&other);
  tegula__manifest_free(&first);
  tegula__manifest_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  guarded bytes = guarded_copy(data, size, false);
  tegula__manifest manifest;
  tegula_error error;
  tegula__manifest_init(&manifest);
  tegula_status status =
      tegula__manifest_unpack(bytes.data, bytes.size, "f", names_of(), &manifest, &error);
  guarded_free(&bytes); /* nothing of it is borrowed */
  finish_and_check(status, &manifest, &error);
  if (status == TEGULA_OK) pack_again(data, size);
  return 0;
}
