/* The text with which other processes write to a save.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "save/saving.h"

#define MOST_JSON ((size_t)64 << 20)

tegula_status tegula__saving_write_text(const tegula__manifest *manifest, char **out,
                                        tegula_error *err) {
  const tegula__manifest_names names = {.codecs = tegula__codec_names()};
  return tegula__manifest_write(manifest, &names, NULL, out, err);
}

tegula_status tegula__saving_text(const tegula__member *m, char **out, tegula_error *err) {
  return tegula__saving_write_text(&m->manifest, out, err);
}

/* Files of a save that goes on lie in its workplace: nobody else's are written to. */
static tegula_status check_files(const tegula__manifest *manifest, tegula_error *err) {
  for (int64_t i = 0; i < manifest->file_count; i++) {
    const char *path = manifest->files[i].path;
    if (!tegula__publish_is_temporary(path))
      return tegula__fail(err, TEGULA_INVALID_ARGUMENT, path, -1,
                          "the text is of no save: \"%.500s\" is no file that is being made", path);
  }
  return TEGULA_OK;
}

/* A workplace goes when its save has ended. */
tegula_status tegula__saving_explain_ended(tegula_status status, tegula_error *err) {
  if (status != TEGULA_NOT_FOUND || err == NULL) return status;
  char path[sizeof err->path];
  memcpy(path, err->path, sizeof path);
  return tegula__hint(
      err,
      tegula__fail_errno(err, ENOENT, path, -1,
                         "the save that the text is of has ended: \"%.500s\" is not there any more",
                         path),
      "tiles are written before the save is committed or abandoned");
}

static bool is_to_be_written(const tegula__part *part, bool chunks) {
  return part->kind == TEGULA__PART_DENSE ||
         (chunks && part->kind == TEGULA__PART_CHUNKED && part->grid->count == 0);
}

static tegula_status finish_text(tegula__manifest *manifest, bool chunks, tegula_error *err) {
  FORWARD(tegula__manifest_finish(manifest, err));
  for (int64_t i = 0; i < manifest->part_count; i++)
    if (!is_to_be_written(&manifest->parts[i], chunks))
      return tegula__fail(err, TEGULA_CORRUPT, NULL, -1,
                          "the text is of no save: it describes pieces that are not plain bytes");
  return check_files(manifest, err);
}

tegula__move tegula__saving_move_by(const tegula__manifest *manifest, tegula__file_set *files,
                                    const tegula__tile *tiles, int64_t count,
                                    const tegula_save_options *options, tegula__tally *tally) {
  return (tegula__move){.manifest = manifest,
                        .files = files,
                        .tiles = tiles,
                        .tile_count = count,
                        .writing = true,
                        .durable = options->durable != 0,
                        .push = options->durable != 0,
                        .progress = options->progress,
                        .progress_state = options->progress_state,
                        .statistics = &tally->statistics,
                        .counts = &tally->counts};
}

tegula_status tegula__saving_read_text(const char *text, size_t size, bool chunks,
                                       tegula__manifest *out, tegula_error *err) {
  static const char *const formats[] = {"npy", "raw", "hdf5", NULL};
  const tegula__manifest_names names = {.formats = formats, .codecs = tegula__codec_names()};
  CHECK_ARGUMENT(size <= MOST_JSON, "the text is too long");
  FORWARD(tegula__manifest_read(text, size, "", &names, out, err));
  return finish_text(out, chunks, err);
}
