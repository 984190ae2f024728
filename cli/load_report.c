/* The report of `tegula load`, as JSON and as a few lines for people.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli_report.h"
#include "commands.h"

/* Highest resident memory of this process so far, or -1 where the system does not say. Needs no
 * memory itself: a lack of it must not look like a system that is silent. */
int64_t load_peak_memory(void) {
  char text[8192];
  long long kibibytes = -1;
  int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  ssize_t size = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
  if (fd >= 0) {
    close(fd);
  }
  text[size > 0 ? size : 0] = '\0';
  const char *line = strstr(text, "\nVmHWM:");
  int found = line != NULL && sscanf(line, " VmHWM: %lld kB", &kibibytes) == 1;
  return found ? kibibytes * 1024 : -1;
}

/* ---- which file each tile reads ---- */

/* The first file that ends behind `row`; files are in the order of rows. */
static tegula_status find_file(cli_job *job, const load_run *run, int64_t row, int64_t *out) {
  int64_t low = 0, high = run->info.files;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    tegula_file_info file;
    tegula_file_info_init(&file);
    tegula_status status = tegula_dataset_file(run->dataset, middle, &file, &job->error);
    if (status != TEGULA_OK) {
      return status;
    }
    if (file.row_hi > row) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  *out = low;
  return TEGULA_OK;
}

/* The files that hold rows [lo, hi), with the rows in each counted from its start. */
static tegula_status append_sources(cli_job *job, const load_run *run, int64_t lo, int64_t hi,
                                    json_t *sources) {
  int64_t index = 0;
  tegula_status status = find_file(job, run, lo, &index);
  for (; status == TEGULA_OK && index < run->info.files; index++) {
    tegula_file_info file;
    tegula_file_info_init(&file);
    status = tegula_dataset_file(run->dataset, index, &file, &job->error);
    if (status != TEGULA_OK || file.row_lo >= hi) {
      break;
    }
    int64_t from = (lo > file.row_lo ? lo : file.row_lo) - file.row_lo,
            to = (hi < file.row_hi ? hi : file.row_hi) - file.row_lo;
    json_t *source = from < to ? json_pack("{s:o, s:[I, I]}", "file", report_text(file.path),
                                           "rows", (json_int_t)from, (json_int_t)to)
                               : NULL;
    if (from < to && json_array_append_new(sources, source) != 0) {
      return report_no_memory(&job->error);
    }
  }
  return status;
}

static int is_empty(const tegula_box *box) {
  for (int32_t axis = 0; axis < box->ndim; axis++) {
    if (box->lo[axis] >= box->hi[axis]) {
      return 1;
    }
  }
  return 0;
}

static tegula_status make_tile_list(cli_job *job, const load_run *run, json_t *list) {
  for (int64_t tile = 0; tile < tegula_tiling_count(run->tiling); tile++) {
    tegula_box box;
    int32_t rank = 0;
    tegula_status status = tegula_tiling_tile(run->tiling, tile, &box, &rank, &job->error);
    json_t *sources = json_array();
    if (status == TEGULA_OK && !is_empty(&box)) {
      int64_t start = box.ndim > 0 ? run->box.lo[0] : 0;
      status = append_sources(job, run, box.ndim > 0 ? start + box.lo[0] : 0,
                              box.ndim > 0 ? start + box.hi[0] : 1, sources);
    }
    json_t *entry = status == TEGULA_OK ? json_pack("{s:o, s:i, s:O}", "box", report_box(&box),
                                                    "rank", (int)rank, "sources", sources)
                                        : NULL;
    json_decref(sources);
    if (status != TEGULA_OK || json_array_append_new(list, entry) != 0) {
      return status != TEGULA_OK ? status : report_no_memory(&job->error);
    }
  }
  return TEGULA_OK;
}

/* ---- JSON ---- */

static double gigabytes_per_second(int64_t bytes, double seconds) {
  return seconds > 0 ? (double)bytes / 1e9 / seconds : 0;
}

static void box_shape(const tegula_box *box, int64_t shape[TEGULA_MAX_DIMS]) {
  for (int32_t axis = 0; axis < box->ndim; axis++) {
    shape[axis] = box->hi[axis] - box->lo[axis];
  }
}

static json_t *what_was_loaded(const load_summary *summary) {
  const load_run *run = summary->run;
  int64_t shape[TEGULA_MAX_DIMS];
  box_shape(&run->box, shape);
  return json_pack("{s:s, s:o, s:o, s:I, s:I, s:I, s:i, s:I}", "format", run->info.format, "shape",
                   report_shape(shape, run->box.ndim), "dtype", report_dtype(run->info.dtype),
                   "files", (json_int_t)run->info.files, "chunks", (json_int_t)run->info.chunks,
                   "tiles", (json_int_t)tegula_tiling_count(run->tiling), "ranks",
                   (int)summary->ranks, "bytes", (json_int_t)run->bytes);
}

static json_t *how_fast(const load_summary *summary) {
  const load_seconds *seconds = &summary->seconds;
  return json_pack("{s:f, s:f, s:f, s:f, s:f}", "seconds", seconds->total, "seconds_describe",
                   seconds->describe, "seconds_allocate", seconds->allocate, "seconds_move",
                   seconds->move, "gb_per_s",
                   gigabytes_per_second(summary->run->bytes, seconds->total));
}

static json_t *what_it_took(const load_summary *summary) {
  const tegula_statistics *statistics = &summary->run->statistics;
  return json_pack(
      "{s:I, s:I, s:I, s:I, s:I, s:o, s:s?, s:s?, s:s?}", "opens", (json_int_t)statistics->opens,
      "reads", (json_int_t)statistics->reads, "bytes_read", (json_int_t)statistics->bytes_read,
      "reader_bytes", (json_int_t)statistics->reader_bytes, "missing",
      (json_int_t)statistics->missing, "peak_rss_bytes",
      summary->peak_memory >= 0 ? json_integer(summary->peak_memory) : json_null(), "io_path",
      statistics->io_path, "fallback_reason", statistics->fallback_reason, "hash", summary->hash);
}

static json_t *run_list(const load_summary *summary) {
  json_t *list = json_array();
  for (int64_t i = 0; i < summary->repeat; i++) {
    if (json_array_append_new(list, json_real(summary->runs[i].total)) != 0) {
      json_decref(list);
      return NULL;
    }
  }
  return list;
}

/* Moves the members of `more` into `object`; NULL when either is. */
static json_t *joined(json_t *object, json_t *more) {
  int failed = more == NULL || json_object_update(object, more) != 0;
  json_decref(more);
  if (failed) {
    json_decref(object);
    return NULL;
  }
  return object;
}

/* The lost pieces in what was loaded, which --missing fill has filled: [{box, status, message,
 * path}]. */
static json_t *missing_list(const load_run *run) {
  json_t *list = json_array();
  tegula_box box;
  tegula_error why;
  /* else there are none, and all sources need not be looked at */
  int filled = run->statistics.missing > 0;
  for (int64_t i = 0; list != NULL && filled &&
                      tegula_dataset_lost(run->dataset, i, &box, &why, NULL) == TEGULA_OK;
       i++) {
    int touched = 1;
    for (int32_t axis = 0; axis < box.ndim; axis++) {
      touched = touched && box.lo[axis] < run->box.hi[axis] && box.hi[axis] > run->box.lo[axis];
    }
    json_t *one = touched
                      ? json_pack("{s:o, s:s, s:o, s:o}", "box", report_box(&box), "status",
                                  tegula_status_name(why.status), "message",
                                  report_text(why.message), "path", report_text_or_null(why.path))
                      : NULL;
    if (touched && (one == NULL || json_array_append_new(list, one) != 0)) {
      json_decref(list);
      return NULL;
    }
  }
  return list;
}

json_t *load_report_object(const load_summary *summary, json_t *tile_list) {
  json_t *object = joined(what_was_loaded(summary), how_fast(summary));
  object = joined(object, what_it_took(summary));
  int failed =
      json_object_set_new(object, "sources", json_integer(summary->run->info.sources)) != 0 ||
      json_object_set_new(object, "missing_list", missing_list(summary->run)) != 0 ||
      (summary->runs != NULL && json_object_set_new(object, "runs", run_list(summary)) != 0) ||
      (tile_list != NULL && json_object_set(object, "tile_list", tile_list) != 0);
  if (failed) {
    json_decref(object);
    return NULL;
  }
  return object;
}

/* ---- text ---- */

static void print_tiles(const json_t *list) {
  size_t index, source_index;
  json_t *tile, *source;
  json_array_foreach(list, index, tile) {
    char *box = json_dumps(json_object_get(tile, "box"), JSON_COMPACT);
    printf("tile %zu: box %s\n", index, box != NULL ? box : "?");
    free(box);
    json_array_foreach(json_object_get(tile, "sources"), source_index, source) {
      char *rows = json_dumps(json_object_get(source, "rows"), JSON_COMPACT);
      char *file =
          /* quoted: no control character reaches a terminal */
          json_dumps(json_object_get(source, "file"), JSON_ENCODE_ANY);
      printf("  rows %s of %s\n", rows != NULL ? rows : "?", file != NULL ? file : "?");
      free(rows);
      free(file);
    }
  }
}

static void print_lost(const load_run *run) {
  json_t *list = missing_list(run), *one;
  size_t index;
  json_array_foreach(list, index, one) {
    report_line(stdout, "lost    ", json_string_value(json_object_get(one, "message")));
  }
  json_decref(list);
}

static void print_text(const cli_job *job, const load_summary *summary, const json_t *tile_list) {
  const load_run *run = summary->run;
  const load_seconds *seconds = &summary->seconds;
  char dtype[TEGULA_DTYPE_TEXT], shape_text[REPORT_TEXT], bytes_text[32];
  int64_t shape[TEGULA_MAX_DIMS], tiles = tegula_tiling_count(run->tiling);
  box_shape(&run->box, shape);
  tegula_dtype_format(run->info.dtype, dtype);
  char sources[64];
  printf("found   %" PRId64 " %s file%s%s: shape %s, dtype %s\n", run->info.files, run->info.format,
         run->info.files == 1 ? "" : "s", report_sources(run->info.sources, sources),
         report_shape_text(run->info.shape, run->info.ndim, shape_text), dtype);
  printf("loaded  %s of shape %s in %" PRId64 " tile%s, %d thread%s",
         report_bytes_text((double)run->bytes, bytes_text),
         report_shape_text(shape, run->box.ndim, shape_text), tiles, tiles == 1 ? "" : "s",
         (int)tegula_context_threads(job->context),
         tegula_context_threads(job->context) == 1 ? "" : "s");
  if (summary->ranks > 1) {
    printf(" on each of %d ranks", (int)summary->ranks);
  }
  putchar('\n');
  printf("time    %.4f s, %.2f GB/s (describe %.4f s, allocate %.4f s, move %.4f s)%s\n",
         seconds->total, gigabytes_per_second(run->bytes, seconds->total), seconds->describe,
         seconds->allocate, seconds->move, summary->runs != NULL ? ", medians" : "");
  if (run->statistics.missing > 0) {
    printf("missing %" PRId64 " piece%s filled\n", run->statistics.missing,
           run->statistics.missing == 1 ? "" : "s");
    print_lost(run);
  }
  if (run->statistics.fallback_reason != NULL) {
    printf("io      %s: %s\n", run->statistics.io_path, run->statistics.fallback_reason);
  }
  if (job->settings.check_seed >= 0) {
    printf("check   all values are those of seed %" PRId64 "\n", job->settings.check_seed);
  }
  if (summary->hash != NULL) {
    printf("hash    %s\n", summary->hash);
  }
  print_tiles(tile_list);
}

tegula_status load_report(cli_job *job, const load_summary *summary) {
  if (job->silent) {
    return TEGULA_OK;
  }
  json_t *tile_list = job->settings.verbose ? json_array() : NULL;
  if (job->settings.verbose && tile_list == NULL) {
    return report_no_memory(&job->error);
  }
  tegula_status status =
      tile_list != NULL ? make_tile_list(job, summary->run, tile_list) : TEGULA_OK;
  if (status == TEGULA_OK) {
    status = report_memory(&job->error);
  }
  if (status == TEGULA_OK && job->settings.json) {
    job->report = load_report_object(summary, tile_list);
    if (job->report == NULL) {
      status = report_no_memory(&job->error);
    }
  } else if (status == TEGULA_OK && !job->settings.quiet) {
    print_text(job, summary, tile_list);
  }
  json_decref(tile_list);
  return status;
}
