/* Manifests as JSON: what is read is a manifest that finish finds in place, and each element lies
 * in its file and nowhere twice.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The input is the text. Nothing is opened: the files it names need not be there. Small arrays are
 * planned, too. */
#include "fuzz_manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  guarded text = guarded_copy(data, size, false);
  tegula__manifest manifest;
  tegula_error error;
  tegula__manifest_init(&manifest);
  const tegula__manifest_names names = {.formats = formats, .codecs = tegula__codec_names()};
  tegula_status status =
      tegula__manifest_read(text.data, text.size, "dir/m.json", &names, &manifest, &error);
  guarded_free(&text); /* nothing of it is borrowed */
  for (int64_t i = 0; status == TEGULA_OK && i < manifest.file_count; i++)
    MUST(manifest.files[i].path[0] == '/' || strncmp(manifest.files[i].path, "dir/", 4) == 0);
  finish_and_check(status, &manifest, &error);
  return 0;
}
