/* The side file shard_meta.json: what is stored in the raw files beside it (docs/formats.md).
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Parsed from memory, then asked three things: how to describe each file (with what the caller says
 * besides), whether its list of files is the one that was found, and whether what was described
 * agrees with it. */
#ifndef TEGULA_FORMAT_RAW_SIDE_FILE_H
#define TEGULA_FORMAT_RAW_SIDE_FILE_H

#include "base/json.h"
#include "format/format.h"

#define TEGULA__SIDE_FILE_NAME "shard_meta.json"
#define TEGULA__SIDE_FILE_BYTES ((int64_t)64 << 20)

typedef enum tegula__side_rows {
  TEGULA__SIDE_ROWS_NONE,
  TEGULA__SIDE_ROWS_EACH, /* one number for all files */
  TEGULA__SIDE_ROWS_LIST, /* one for each file of the folder, in order */
  TEGULA__SIDE_ROWS_BY_NAME
} tegula__side_rows;

typedef struct tegula__named_rows {
  char *name;
  int64_t rows;
  bool seen; /* among the files that are opened */
} tegula__named_rows;

typedef struct tegula__side_file {
  char *path;
  bool has_dtype;
  tegula_dtype dtype;
  char byte_order; /* '<', '>' where dtype or byte_order says it, else 0 */
  char order;      /* 'C', 'F', 0 */
  bool has_offset, has_row_gap;
  int64_t offset, row_gap;
  tegula_setting *settings; /* setting_count of them; values are owned, keys those of the table */
  int32_t setting_count;
  bool is_scalar;  /* shape [] */
  bool has_length; /* of axis 0: from shape */
  int64_t length;
  int32_t row_ndim; /* -1: not given */
  int64_t row_shape[TEGULA_MAX_DIMS];
  tegula__side_rows rows_kind;
  tegula__named_rows *rows; /* of the kinds LIST (without names) and BY_NAME (sorted by name) */
  int64_t rows_count;       /* entries; for EACH the number itself */
  bool has_files;
  int64_t files; /* of the folder */
  /* a key that is not known: said when the file is needed to describe something */
  tegula_error unknown;
} tegula__side_file;

/* `path` is copied. Free in any case. CORRUPT: no JSON, a value of the wrong kind, two spellings of
 * a field with different values. */
tegula_status tegula__side_file_parse(const void *text, size_t size, const char *path,
                                      tegula__side_file *out, tegula_error *err);
void tegula__side_file_free(tegula__side_file *side);

/* Is each file listed, and, with `whole` (they are all of the folder), each listed file there? Are
 * a list without names and the number of files that of the folder, which has `total`? */
tegula_status tegula__side_file_check_names(tegula__side_file *side, const tegula__file *files,
                                            int64_t count, bool whole, int64_t total,
                                            tegula_error *err);

/* What describes one raw file: what `said` says (the caller's options) completed by the side file.
 * A difference is MISMATCH. `place` is the file's number among all of the folder, `alone`: it is
 * the only one there. The result borrows `shape` (room for all axes), the side file and what `said`
 * borrows. */
tegula_status tegula__side_file_options(const tegula__side_file *side,
                                        const tegula__describe_options *said, const char *path,
                                        int64_t place, bool alone, int64_t *shape,
                                        tegula__describe_options *out, tegula_error *err);

/* Does what was described (one shard per file, whatever its format) agree with dtype, shape and
 * rows? File i has the number places[i] (NULL: i) in the folder; `whole`: they are all of the
 * folder. */
tegula_status tegula__side_file_check(const tegula__side_file *side, const tegula__manifest *shards,
                                      const tegula__file *files, const int64_t *places,
                                      int64_t count, bool whole, tegula_error *err);

#endif
