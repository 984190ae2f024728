/* The groups of options that several commands share, and the defaults of all settings.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli_options.h"

#define FIELD(name) offsetof(cli_settings, name)

static const cli_option common_rows[] = {
    {"json", NULL, "print one JSON object on standard output; errors too", FIELD(json), 0, 0,
     OPTION_FLAG, 0},
    {"threads", "N", "threads to use (default: all granted; TEGULA_THREADS)", FIELD(threads), 1,
     MAX_THREADS, OPTION_INTEGER, 0},
    {"timeout", "SECONDS", "give up after this time (TEGULA_TIMEOUT)", FIELD(timeout), 0, 0,
     OPTION_SECONDS, 0},
    {"progress", "auto|always|never", "a bar on standard error; auto: on a terminal",
     FIELD(progress), 0, 0, OPTION_CHOICE, 0},
    {"quiet", NULL, "print nothing but errors (and what --json asks for)", FIELD(quiet), 0, 0,
     OPTION_FLAG, 'q'},
    {"verbose", NULL, "say more; with load: what each tile reads", FIELD(verbose), 0, 0,
     OPTION_FLAG, 'v'},
    {"help", NULL, "show this text", FIELD(help), 0, 0, OPTION_FLAG, 'h'},
};

const option_group options_common = {"Options of every command", common_rows,
                                     sizeof common_rows / sizeof common_rows[0]};

static const cli_option raw_rows[] = {
    {"dataset", "NAME",
     "the array to take, by its path in an HDF5 file, or several by a quoted pattern ('/shard_*')",
     FIELD(dataset), 0, 0, OPTION_TEXT, 0},
    {"field", "NAME", "one field of structured records, such as mass, or position.x within another",
     FIELD(field), 0, 0, OPTION_TEXT, 0},
    {"format", "npy|raw|hdf5|manifest", "default: found out from the content", FIELD(format), 0, 0,
     OPTION_CHOICE, 0},
    {"allow-locked", NULL, "read HDF5 files also while another program has them open for writing",
     FIELD(allow_locked), 0, 0, OPTION_FLAG, 0},
    {"dtype", "DTYPE",
     "what is stored: f4, <i8, >u2, bfloat16, \"[('x', '<f4'), ..]\" (raw: needed unless "
     "shard_meta.json says it)",
     FIELD(dtype), 0, 0, OPTION_DTYPE, 0},
    {"shape", "N,N,..", "raw: the shape of each file; () is a scalar", FIELD(shape), 0, 0,
     OPTION_SHAPE, 0},
    {"row-shape", "N,N,..", "raw: the shape of one row; the rows follow from the size",
     FIELD(row_shape), 0, 0, OPTION_SHAPE, 0},
    {"offset", "BYTES", "raw: bytes in front of the data", FIELD(offset), 0, INT64_MAX,
     OPTION_INTEGER, 0},
    {"order", "C|F", "raw: row-major or column-major (default C)", FIELD(order), 0, 0,
     OPTION_CHOICE, 0},
    {"byte-order", "little|big|<|>", "raw: byte order (default: as in --dtype)", FIELD(byte_order),
     0, 0, OPTION_CHOICE, 0},
    {"row-gap", "BYTES", "raw: bytes between two rows", FIELD(row_gap), 0, INT64_MAX,
     OPTION_INTEGER, 0},
    {"row-prefix", "BYTES", "raw: bytes before each row", FIELD(set), 0, 0, OPTION_KEY, 0},
    {"row-suffix", "BYTES", "raw: bytes after each row; behind the last they may be missing",
     FIELD(set), 0, 0, OPTION_KEY, 0},
    {"trailing-bytes", "BYTES|any", "raw: bytes behind the last row", FIELD(set), 0, 0, OPTION_KEY,
     0},
    {"record-markers", "fortran4|fortran8",
     "raw: each row is a record of a Fortran sequential file, with markers of 4 or 8 bytes",
     FIELD(set), 0, 0, OPTION_KEY, 0},
    {"set", "KEY=VALUE", "a setting of the format, such as raw.row_prefix=4; may be given again",
     FIELD(set), 0, 0, OPTION_SET, 0},
};

const option_group options_raw = {"What is stored", raw_rows, sizeof raw_rows / sizeof raw_rows[0]};

enum { NOT_RAW_ONLY = 3 }; /* rows in front */

const option_group options_raw_only = {"Raw files", raw_rows + NOT_RAW_ONLY,
                                       sizeof raw_rows / sizeof raw_rows[0] - NOT_RAW_ONLY};

static const cli_option files_rows[] = {
    {"expect-files", "N", "fail (status 3) unless there are N files", FIELD(expect_files), 0,
     INT64_MAX, OPTION_INTEGER, 0},
    {"expect-rows", "N", "fail (status 3) unless axis 0 has length N", FIELD(expect_rows), 0,
     INT64_MAX, OPTION_INTEGER, 0},
    {"as-given", NULL, "keep the order of the PATHs whatever their names say", FIELD(as_given), 0,
     0, OPTION_FLAG, 0},
};

const option_group options_files = {"Which files", files_rows,
                                    sizeof files_rows / sizeof files_rows[0]};

void options_init(cli_settings *values) {
  memset(values, 0, sizeof *values);
  values->progress = "auto";
  values->io = "auto";
  values->shape.ndim = -1;
  values->row_shape.ndim = -1;
  values->tile_shape.ndim = -1;
  values->chunk_shape.ndim = -1;
  values->box.ndim = -1;
  values->axis = -1;
  values->check_seed = -1;
  values->expect_files = -1;
  values->expect_rows = -1;
  values->num_shards = 8;
  values->values = "random";
}
