/* `tegula info`: what is in a file, a folder or a pattern, from headers only.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli_report.h"
#include "commands.h"

static json_t *info_object(const tegula_dataset_info_t *info) {
  json_t *dataset =
      json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I}", "name", report_text(info->name),
                "shape", report_shape(info->shape, info->ndim), "dtype", report_dtype(info->dtype),
                "chunks", info->chunk != NULL ? report_shape(info->chunk, info->ndim) : json_null(),
                "codecs", info_codecs(info->codecs), "files", (json_int_t)info->files, "sources",
                (json_int_t)info->sources, "bytes", (json_int_t)info->bytes, "stored_bytes",
                (json_int_t)info->stored_bytes);
  if (info->descr != NULL && json_object_set_new(dataset, "descr", report_text(info->descr)) != 0) {
    json_decref(dataset);
    return NULL;
  }
  return json_pack("{s:s, s:[o]}", "format", info->format, "datasets", dataset);
}

static tegula_status print_files(cli_job *job, const tegula_dataset *dataset, int64_t files) {
  for (int64_t i = 0; i < files; i++) {
    tegula_file_info file;
    tegula_file_info_init(&file);
    tegula_status status = tegula_dataset_file(dataset, i, &file, &job->error);
    if (status != TEGULA_OK) {
      return status;
    }
    json_t *text = report_text(file.path);
    char *quoted = json_dumps(text, JSON_ENCODE_ANY);
    printf("file    %s: %" PRId64 " bytes, rows %" PRId64 " to %" PRId64 "\n",
           quoted != NULL ? quoted : "?", file.size, file.row_lo, file.row_hi);
    free(quoted);
    json_decref(text);
  }
  return TEGULA_OK;
}

static tegula_status print_info(cli_job *job, const tegula_dataset *dataset,
                                const tegula_dataset_info_t *info) {
  char shape[REPORT_TEXT], dtype[TEGULA_DTYPE_TEXT], bytes[32];
  tegula_dtype_format(info->dtype, dtype);
  char sources[64];
  printf("format  %s, %" PRId64 " file%s%s\n", info->format, info->files,
         info->files == 1 ? "" : "s", report_sources(info->sources, sources));
  fputs("dataset ", stdout);
  report_shown(stdout, info->name);
  printf(": shape %s, dtype %s, %s (%" PRId64 " bytes)\n",
         report_shape_text(info->shape, info->ndim, shape), dtype,
         report_bytes_text((double)info->bytes, bytes), info->bytes);
  if (info->chunk != NULL) {
    printf("chunks  %s, %s, %" PRId64 " stored, %s\n",
           report_shape_text(info->chunk, info->ndim, shape),
           info->codecs[0] != '\0' ? info->codecs : "as they are", info->chunks,
           report_bytes_text((double)info->stored_bytes, bytes));
  }
  if (info->descr != NULL) {
    report_line(stdout, "descr   ", info->descr);
  }
  return job->settings.verbose ? print_files(job, dataset, info->files) : TEGULA_OK;
}

static tegula_status describe(cli_job *job, const tegula_dataset *dataset) {
  tegula_dataset_info_t info;
  tegula_dataset_info_init(&info);
  tegula_status status = tegula_dataset_info(dataset, &info, &job->error);
  if (status == TEGULA_OK && job->settings.json) {
    job->report = info_object(&info);
    if (job->report == NULL) {
      return report_no_memory(&job->error);
    }
  } else if (status == TEGULA_OK && !job->settings.quiet) {
    status = print_info(job, dataset, &info);
  }
  return status;
}

static tegula_status describe_chunks(cli_job *job, const tegula_dataset *dataset) {
  if (!job->settings.chunks || (job->report == NULL && job->settings.quiet)) {
    return TEGULA_OK;
  }
  tegula_status status =
      info_chunks(job, dataset, json_array_get(json_object_get(job->report, "datasets"), 0));
  if (status != TEGULA_OK) {
    json_decref(job->report);
    job->report = NULL;
  }
  return status;
}

/* Of the dataset; read before anything is printed. */
static tegula_status read_attributes(cli_job *job, json_t *holder) {
  json_t *all = NULL;
  tegula_status status = info_attributes(job, &all);
  if (status == TEGULA_OK) {
    status = info_take_attributes(job, all, NULL, holder);
  }
  json_decref(all);
  return status;
}

static tegula_status describe_attributes(cli_job *job, const tegula_dataset *dataset) {
  json_t *holder = job->settings.attributes ? json_object() : NULL;
  tegula_status status = TEGULA_OK;
  if (job->settings.attributes) {
    status = holder != NULL ? read_attributes(job, holder) : report_no_memory(&job->error);
  }
  if (status == TEGULA_OK) {
    status = describe(job, dataset);
  }
  json_t *object = json_array_get(json_object_get(job->report, "datasets"), 0);
  if (status == TEGULA_OK && holder != NULL && object != NULL) {
    status = json_object_update(object, holder) == 0 ? TEGULA_OK : report_no_memory(&job->error);
  } else if (status == TEGULA_OK && holder != NULL && !job->settings.quiet) {
    info_print_attributes(holder);
  }
  json_decref(holder);
  return status;
}

static tegula_status write_manifest(cli_job *job, const tegula_dataset *dataset) {
  const char *path = job->settings.manifest;
  if (path == NULL) {
    return TEGULA_OK;
  }
  tegula_status status = manifest_save(job, dataset, path);
  if (status != TEGULA_OK) {
    json_decref(job->report);
    job->report = NULL;
  } else if (job->report != NULL) {
    return json_object_set_new(job->report, "manifest", report_text(path)) == 0
               ? status
               : report_no_memory(&job->error);
  } else if (!job->settings.quiet) {
    printf("wrote   %s\n", path);
  }
  return status;
}

/* The attributes of a group, where that is what --dataset names. */
static tegula_status describe_group(cli_job *job) {
  json_t *all = NULL, *top = json_pack("{s:s, s:[]}", "format", "hdf5", "datasets");
  tegula_status status = info_attributes(job, &all);
  if (status == TEGULA_OK) {
    status = info_add_groups(job, all, top);
  }
  if (status == TEGULA_OK && job->settings.json) {
    job->report = json_incref(top);
  } else if (status == TEGULA_OK && !job->settings.quiet) {
    info_print_groups(top);
  }
  json_decref(all);
  json_decref(top);
  return status;
}

static tegula_status open_or_describe_group(cli_job *job, tegula_dataset **out) {
  tegula_status status = open_dataset(job, 0, NULL, out);
  if (status != TEGULA_INVALID_ARGUMENT || !job->settings.attributes ||
      job->settings.dataset == NULL) {
    return status;
  }
  tegula_error said = job->error;
  if (describe_group(job) == TEGULA_OK) {
    return TEGULA_OK;
  }
  job->error = said;
  return status;
}

static tegula_status run_info(cli_job *job) {
  tegula_dataset *dataset = NULL;
  tegula_status status = open_check_settings(job);
  if (status == TEGULA_OK && info_may_list(job)) {
    tegula_open_options options;
    open_fill_options(job, NULL, &options);
    status = info_list(job, &options);
    if (status != TEGULA_UNSUPPORTED && status != TEGULA_INVALID_ARGUMENT) {
      return status;
    }
    status = TEGULA_OK; /* one array, or several files; or what opening says about it */
  }
  if (status == TEGULA_OK) {
    status = open_or_describe_group(job, &dataset);
  }
  if (dataset == NULL) {
    return status;
  }
  if (status == TEGULA_OK) {
    status = describe_attributes(job, dataset);
  }
  if (status == TEGULA_OK) {
    status = describe_chunks(job, dataset);
  }
  if (status == TEGULA_OK) {
    status = write_manifest(job, dataset);
  }
  tegula_dataset_close(dataset);
  return status;
}

static const cli_option info_rows[] = {
    {"manifest", "OUT.json", "write where the bytes are to this file, which can then be opened",
     offsetof(cli_settings, manifest), 0, 0, OPTION_TEXT, 0},
    {"chunks", NULL, "every stored piece of one dataset: its box, file, place and length",
     offsetof(cli_settings, chunks), 0, 0, OPTION_FLAG, 0},
    {"attributes", NULL, "the attributes of an HDF5 file, its groups and datasets",
     offsetof(cli_settings, attributes), 0, 0, OPTION_FLAG, 0},
};

static const option_group info_options = {"Options of info", info_rows,
                                          sizeof info_rows / sizeof info_rows[0]};

const cli_command info_command = {
    .name = "info",
    .summary = "say what is in a file, a folder or a pattern",
    .paths = "PATH",
    .description =
        "Reads headers only: format, shape, dtype, number of files, bytes. With -v each file and "
        "its rows.\n\n"
        "The sources of a virtual dataset over more than 256 files are counted (sources), but not "
        "opened before a load, or\n"
        "--chunks or --manifest, meets them: files, chunks, codecs and stored_bytes do not speak "
        "of them.\n\n"
        "--manifest writes a small JSON file that stands for all the files: opening it reads no "
        "headers and lists no\n"
        "folder. The files must then stay as they are; one that changed is refused. Put it beside "
        "the folder of a set,\n"
        "not into it (or give it a name that begins with a dot).\n\n"
        "--chunks lists what is stored: each chunk (or the bytes of each file that has none), with "
        "the box of the array that\n"
        "it holds, clipped to the array, and the mask of codecs that were skipped (bit 0: the "
        "first). Chunks that were never\n"
        "written are left out. Of several datasets in a file, --dataset names one.\n\n"
        "--attributes shows what is noted on each dataset and group and on the file itself (with "
        "--dataset: on that dataset\n"
        "or group): numbers, bools and text, up to 1 MiB each; of other types their name.\n\n"
        "With --json: format, datasets [{name, shape, dtype, chunks (null: contiguous), codecs, "
        "files, sources,\n"
        "bytes, stored_bytes}], manifest (with --manifest), and descr for structured records. "
        "--chunks adds to the dataset\n"
        "chunk_list [{box, offset, length, mask, file}], where offset, length and file are null "
        "for what only a reader finds.\n"
        "--attributes adds attributes [{name, dtype, shape, value}] to each dataset and to the "
        "report, and groups [{name,\n"
        "attributes}] of those that have any: value is null, with omitted (why), where it is not "
        "shown, and null with shape null where there is none. "
        "Complex numbers are [real, imag];\n"
        "NaN, Infinity, -Infinity and integers over 2^63 are text.\n",
    .examples = "  tegula info shards\n"
                "  tegula info 'run42/part_*.npy' -v\n"
                "  tegula info run42 --manifest run42.json && tegula load run42.json\n"
                "  tegula info run.h5 --dataset /entry/data --chunks\n"
                "  tegula info run.h5 --attributes\n"
                "  tegula info data.bin --format raw --dtype f8 --row-shape 3\n",
    .min_paths = 1,
    .max_paths = 1,
    .groups = {&info_options, &options_raw, &options_common, NULL},
    .run = run_info,
};
