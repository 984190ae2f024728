/* `tegula plan`: what each tile of a load would read, without reading data.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli_report.h"
#include "commands.h"

#define MAX_RANKS 1000000

/* The library's plan, read back. */
static tegula_status explain(cli_job *job, const tegula_dataset *dataset,
                             const tegula_tiling *tiling, json_t **out) {
  char *text = NULL;
  tegula_status status = tegula_explain(dataset, tiling, &text, &job->error);
  if (status != TEGULA_OK) {
    return status;
  }
  *out = json_loads(text, 0, NULL);
  tegula_free(text);
  return *out != NULL ? TEGULA_OK
                      : report_fail(&job->error, TEGULA_OUT_OF_MEMORY, NULL,
                                    "could not read the plan: no memory");
}

static int64_t number(const json_t *object, const char *key) {
  return json_integer_value(json_object_get(object, key));
}

/* Quoted, so that no control character of a name reaches a terminal. */
static void print_value(const char *before, const json_t *value, const char *after) {
  char *text = json_dumps(value, JSON_ENCODE_ANY);
  printf("%s%s%s", before, text != NULL ? text : "?", after);
  free(text);
}

static void print_plan(const json_t *plan) {
  char bytes[32];
  size_t index, source_index;
  json_t *tile, *source;
  print_value("plan    shape ", json_object_get(plan, "shape"), ", ");
  printf("dtype %s, %" PRId64 " file%s, %zu tile%s, %" PRId64 " rank%s\n",
         json_string_value(json_object_get(plan, "dtype")), number(plan, "files"),
         number(plan, "files") == 1 ? "" : "s", json_array_size(json_object_get(plan, "tiles")),
         json_array_size(json_object_get(plan, "tiles")) == 1 ? "" : "s", number(plan, "ranks"),
         number(plan, "ranks") == 1 ? "" : "s");
  printf("reads   %s in %" PRId64 " request%s\n",
         report_bytes_text((double)number(plan, "bytes"), bytes), number(plan, "reads"),
         number(plan, "reads") == 1 ? "" : "s");
  json_array_foreach(json_object_get(plan, "tiles"), index, tile) {
    printf("tile %zu: rank %" PRId64 ", ", index, number(tile, "rank"));
    print_value("box ", json_object_get(tile, "box"), ", ");
    printf("%s, %" PRId64 " request%s\n", report_bytes_text((double)number(tile, "bytes"), bytes),
           number(tile, "reads"), number(tile, "reads") == 1 ? "" : "s");
    json_array_foreach(json_object_get(tile, "sources"), source_index, source) {
      print_value("  rows ", json_object_get(source, "rows"), " of ");
      print_value("", json_object_get(source, "file"), "\n");
    }
  }
}

static tegula_status plan_dataset(cli_job *job, const tegula_dataset *dataset) {
  tegula_dataset_info_t info;
  tegula_tiling *tiling = NULL;
  json_t *plan = NULL;
  tegula_dataset_info_init(&info);
  tegula_status status = tegula_dataset_info(dataset, &info, &job->error);
  if (status == TEGULA_OK) {
    int32_t ranks = job->settings.ranks > 0 ? (int32_t)job->settings.ranks : 1;
    status = tiling_make(job, info.shape, info.ndim, ranks, &tiling);
  }
  if (status == TEGULA_OK) {
    status = explain(job, dataset, tiling, &plan);
  }
  if (status == TEGULA_OK && job->settings.json) {
    job->report = json_incref(plan);
  } else if (status == TEGULA_OK && !job->settings.quiet) {
    print_plan(plan);
  }
  json_decref(plan);
  tegula_tiling_destroy(tiling);
  return status;
}

static tegula_status run_plan(cli_job *job) {
  tegula_dataset *dataset = NULL;
  tegula_status status = tiling_check_settings(job);
  if (status == TEGULA_OK) {
    status = open_check_settings(job);
  }
  if (status == TEGULA_OK) {
    status = open_dataset(job, 0, NULL, &dataset);
  }
  if (status == TEGULA_OK) {
    status = plan_dataset(job, dataset);
  }
  tegula_dataset_close(dataset);
  return status;
}

#define FIELD(name) offsetof(cli_settings, name)

static const cli_option plan_rows[] = {
    {"ranks", "N", "plan for N processes (default 1)", FIELD(ranks), 1, MAX_RANKS, OPTION_INTEGER,
     0},
};

static const option_group plan_group = {"Who loads", plan_rows,
                                        sizeof plan_rows / sizeof plan_rows[0]};

const cli_command plan_command = {
    .name = "plan",
    .summary = "say what each tile of a load would read, without reading data",
    .paths = "PATH...",
    .description = "Opens the PATHs as load does, makes the plan of the load and shows it: for "
                   "each tile its box, the rank that\n"
                   "owns it, the rows of each file that it comes from (counted from the start of "
                   "the file), its bytes and the\n"
                   "read requests that bring them. A request that brings bytes of several tiles is "
                   "counted for each of them,\n"
                   "and once in the total. With several ranks each plans its own tiles.\n\n"
                   "With --json: shape, dtype, files, ranks, bytes, reads, tiles [{box, rank, "
                   "sources [{file, rows}], bytes, reads}].\n",
    .examples =
        "  tegula plan shards --tiles 8                   eight tiles, and the files that each one "
        "needs\n"
        "  tegula plan shards --ranks 64                  what each of 64 processes would read\n"
        "  tegula plan big.npy --tile-shape 4096,1024     a grid of tiles\n"
        "  tegula plan shards --ranks 8 --json            the same as one JSON object\n",
    .min_paths = 1,
    .max_paths = SIZE_MAX,
    .groups = {&plan_group, &options_tiling, &options_files, &options_raw, &options_common, NULL},
    .run = run_plan,
};
