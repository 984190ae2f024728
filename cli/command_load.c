/* `tegula load`: discover, load into memory, report.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <tegula/tegula_mpi.h>

#include "cli_report.h"
#include "commands.h"
#include "launch_ranks.h"

#define MAX_REPEAT 1000000

static load_seconds median_seconds(const load_seconds *runs, int64_t count) {
  return (load_seconds){
      median(&runs->total, count, sizeof *runs),
      median(&runs->describe, count, sizeof *runs),
      median(&runs->allocate, count, sizeof *runs),
      median(&runs->move, count, sizeof *runs),
  };
}

static tegula_status check_settings(cli_job *job) {
  tegula_status status = tiling_check_settings(job);
  return status != TEGULA_OK ? status : open_check_settings(job);
}

/* Hash, check and report of the last run. */
static tegula_status conclude(cli_job *job, const load_run *run, const load_seconds *runs,
                              int64_t count, int64_t peak_memory) {
  char hash[TEGULA_HASH_TEXT];
  load_summary summary = {.run = run, .seconds = median_seconds(runs, count), .repeat = count};
  summary.runs = job->settings.repeat > 0 ? runs : NULL;
  summary.ranks = job->ranks;
  summary.peak_memory = peak_memory;
  if (job->settings.hash) {
    tegula_status status = tegula_array_hash(run->array, hash, &job->error);
    if (status != TEGULA_OK) {
      return status;
    }
    summary.hash = hash;
  }
  tegula_status status = job->settings.check_seed >= 0 ? load_check(job, run) : TEGULA_OK;
  if (job->ranks > 1 && job->settings.check_seed >= 0) {
    status = tegula_comm_agree(job->comm, status, &job->error);
    job->check_failed = status == TEGULA_MISMATCH;
  }
  return status != TEGULA_OK ? status : load_report(job, &summary);
}

static tegula_status run_load(cli_job *job) {
  int64_t count = job->settings.repeat > 0 ? job->settings.repeat : 1;
  tegula_status status = check_settings(job);
  if (status != TEGULA_OK) {
    return status;
  }
  load_seconds *runs = calloc((size_t)count, sizeof *runs);
  if (runs == NULL) {
    return report_fail(&job->error, TEGULA_OUT_OF_MEMORY, NULL,
                       "could not keep the times of %" PRId64 " runs: no memory", count);
  }
  load_run run;
  int64_t peak_memory = 0;
  memset(&run, 0, sizeof run);
  for (int64_t i = 0; i < count && status == TEGULA_OK; i++) {
    load_release(&run);
    status = load_once(job, &run, &runs[i]);
    if (status == TEGULA_OK) {
      status = ranks_longest(job, &runs[i].total, sizeof runs[i] / sizeof runs[i].total);
    }
  }
  if (status == TEGULA_OK) {
    peak_memory = load_peak_memory();
    status = ranks_sum(job, &run.statistics, &peak_memory);
  }
  if (status == TEGULA_OK) {
    /* of sources that the load met, too */
    status = tegula_dataset_info(run.dataset, &run.info, &job->error);
  }
  if (status == TEGULA_OK) {
    status = conclude(job, &run, runs, count, peak_memory);
  }
  load_release(&run);
  free(runs);
  return status;
}

#define FIELD(name) offsetof(cli_settings, name)

static const cli_option load_rows[] = {
    {"box", "LO:HI[:STEP],..", "read only this part, every STEP-th element; ends may be left out",
     FIELD(box), 0, 0, OPTION_BOX, 0},
    {"missing", "error|strict|fill",
     "pieces that were never written are filled and lost ones an error; both an error; both filled",
     FIELD(missing), 0, 0, OPTION_CHOICE, 0},
    {"check-seed", "S", "compare with what tegula write --seed S makes", FIELD(check_seed), 0,
     INT64_MAX, OPTION_INTEGER, 0},
    {"hash", NULL, "report the content hash", FIELD(hash), 0, 0, OPTION_FLAG, 0},
    {"io", "auto|pread|io_uring|direct", "how bytes are read (see above)", FIELD(io), 0, 0,
     OPTION_CHOICE, 0},
    {"repeat", "N", "load N times; times are medians", FIELD(repeat), 1, MAX_REPEAT, OPTION_INTEGER,
     0},
};

static const option_group load_group = {"What is loaded", load_rows,
                                        sizeof load_rows / sizeof load_rows[0]};

const cli_command load_command = {
    .name = "load",
    .summary = "load files into memory in parallel and report",
    .paths = "PATH...",
    .description =
        "Finds out what the PATHs hold, loads it into memory on all granted threads and reports "
        "what was found\n"
        "and how fast it was. A PATH is a file, a folder of shards, a quoted pattern, or a "
        "manifest (tegula info\n"
        "--manifest). Shards are joined along axis 0 in numeric order; a hole, a short file or "
        "shapes that differ are an error.\n"
        "Raw files may be described by shard_meta.json beside them instead of by options.\n"
        "With --check-seed, a folder that `tegula write` made must also have the shape, dtype and "
        "seed that are noted\n"
        "in it (" SIDE_FILE ").\n\n"
        "--io: pread; io_uring keeps many requests of each thread on their way; direct goes past "
        "the page cache;\n"
        "auto takes pread, and io_uring where separate requests wait for storage. A way that "
        "cannot be taken here\n"
        "falls back to pread, and the report says why.\n\n"
        "With --json: format, shape, dtype, files, sources (virtual datasets over more than 256 "
        "files, while not all\n"
        "of them were met: those of which files and chunks do not speak), chunks, tiles, ranks, "
        "bytes, seconds (from\n"
        "the first open to the last byte), seconds_describe, seconds_allocate, seconds_move, "
        "gb_per_s, opens, reads, bytes_read,\n"
        "reader_bytes, missing, missing_list (lost pieces that were filled), peak_rss_bytes, "
        "io_path, fallback_reason,\n"
        "hash; runs with --repeat; tile_list with -v\n"
        "(boxes count from the start of what is loaded, the rows of a source from the start of its "
        "file;\n"
        "with steps in --box, rows of a source are numbers of those that are selected in it).\n",
    .examples = "  tegula load shards                             a folder of shard_0000.npy, "
                "shard_0001.npy, ...\n"
                "  tegula load 'run42/part_*.npy' --tiles 8 -v    a pattern, eight tiles, and what "
                "each one reads\n"
                "  tegula load big.npy --box 0:1000,:             the first thousand rows\n"
                "  tegula load big.npy --box ::10,0:64            64 columns of every tenth row\n"
                "  tegula load run.h5 --dataset /entry/data       one array of an HDF5 file\n"
                "  tegula load data.bin --format raw --dtype '<f4' --row-shape 16 --offset 512\n"
                "                                                 raw rows of 16 numbers behind a "
                "header of 512 bytes\n"
                "  tegula load shards --expect-files 8 --hash     fail when a shard is lost; print "
                "the content hash\n",
    .min_paths = 1,
    .max_paths = SIZE_MAX,
    .groups = {&load_group, &options_tiling, &options_files, &options_raw, &options_common, NULL},
    .on_ranks = RANKS_ALL,
    .run = run_load,
};
