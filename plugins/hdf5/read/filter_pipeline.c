/* Filter pipelines: which of tegula's codecs they are, and what to say of those that are none.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "read/hdf5_read.h"

enum { DEFLATE = 1, SHUFFLE = 2, FLETCHER32 = 3, SZIP = 4, NBIT = 5, SCALEOFFSET = 6 };
enum { BLOSC = 32001, BITSHUFFLE = 32008, ZSTD = 32015, BLOSC2 = 32026 };
/* where blosc and blosc2 keep them */
enum { BLOSC_ITEM = 2, BLOSC_LEVEL = 4, BLOSC_SHUFFLE = 5, BLOSC_COMPRESSOR = 6 };

/* Registered numbers:
 * https://github.com/HDFGroup/hdf5_plugins/blob/master/docs/RegisteredFilterPlugins.md */
typedef struct known_filter {
  int number;
  const char *name;
  bool codec; /* one of tegula's */
} known_filter;

static const known_filter KNOWN[] = {
    {DEFLATE, "deflate", true}, {SHUFFLE, "shuffle", true}, {FLETCHER32, "fletcher32", true},
    {SZIP, "szip", true},       {NBIT, "nbit", false},      {SCALEOFFSET, "scaleoffset", false},
    {305, "lzo", false},        {307, "bzip2", false},      {32000, "lzf", true},
    {32001, "blosc", true},     {32004, "lz4", true},       {32008, "bitshuffle", true},
    {32013, "zfp", false},      {32015, "zstd", true},      {32017, "sz", false},
    {32024, "sz3", false},      {32026, "blosc2", true},    {32018, "fcidecomp", false},
    {32028, "sperr", false},
};

static const known_filter *known(int number) {
  for (size_t k = 0; k < sizeof KNOWN / sizeof KNOWN[0]; k++)
    if (KNOWN[k].number == number) return &KNOWN[k];
  return NULL;
}

tegula_status hdf5_filters_read(hdf5_dataset *dataset, tegula_error *err) {
  hdf5_library *library = dataset->call->library;
  const hdf5_functions *call = &library->call;
  int count = call->H5Pget_nfilters(dataset->plist);
  if (count < 0 || count > 32)
    return hdf5_failed(library, err, TEGULA_CORRUPT, dataset->file->path,
                       "read the filters of \"%s\" in \"%s\"", dataset->name, dataset->file->path);
  dataset->filters = calloc((size_t)count + 1, sizeof *dataset->filters);
  RETURN_IF(!dataset->filters, hdf5_out_of_memory(library, err));
  for (int k = 0; k < count; k++) {
    hdf5_filter *filter = &dataset->filters[k];
    size_t values = sizeof filter->values / sizeof filter->values[0];
    filter->number = call->H5Pget_filter2(dataset->plist, (unsigned)k, &filter->flags, &values,
                                          filter->values, sizeof filter->name, filter->name, NULL);
    filter->name[sizeof filter->name - 1] = 0;
    filter->count = (unsigned)(values < 32 ? values : 32);
    if (filter->number < 0)
      return hdf5_failed(library, err, TEGULA_CORRUPT, dataset->file->path,
                         "read filter %d of \"%s\" in \"%s\"", k, dataset->name,
                         dataset->file->path);
    dataset->filter_count = k + 1;
  }
  return TEGULA_OK;
}

tegula_status hdf5_filters_refuse(const hdf5_dataset *dataset, int index, tegula_error *err) {
  const hdf5_filter *filter = &dataset->filters[index];
  const tegula_plugin_host *host = dataset->call->library->host;
  const known_filter *entry = known(filter->number);
  const char *name = entry ? entry->name : filter->name[0] ? filter->name : "no name";
  tegula_status status = host->fail(err, TEGULA_UNSUPPORTED, dataset->file->path, -1,
                                    "cannot load \"%s\" of \"%s\": its chunks went through HDF5 "
                                    "filter %d (%s), which is not at hand",
                                    dataset->name, dataset->file->path, filter->number, name);
  return host->hint(err, status,
                    "install the filter as a plugin of HDF5 (pip install hdf5plugin has many; "
                    "HDF5_PLUGIN_PATH names its folder)");
}

/* Parameters as the host wants them. What lacks is no guess of ours: the codec refuses where a
 * chunk went through it. */
static void parameters(const hdf5_filter *from, tegula_plugin_filter *to) {
  int32_t count = 0;
  if (from->number == SHUFFLE && from->count >= 1) {
    to->params[count++] = from->values[0];
  } else if (from->number == SZIP && from->count >= 4) {
    for (; count < 4; count++) to->params[count] = from->values[count];
  } else if ((from->number == DEFLATE || from->number == ZSTD) && from->count >= 1) {
    to->params[count++] = from->values[0]; /* the level: for reports */
  } else if ((from->number == BLOSC || from->number == BLOSC2) &&
             from->count > BLOSC_COMPRESSOR) { /* for reports, too */
    to->params[count++] = from->values[BLOSC_ITEM];
    to->params[count++] = from->values[BLOSC_LEVEL];
    to->params[count++] = from->values[BLOSC_SHUFFLE];
    to->params[count++] = from->values[BLOSC_COMPRESSOR];
  } else if (from->number == BITSHUFFLE &&
             from->count >= 3) { /* version, version, item size, block, compressor */
    to->params[count++] = from->values[2];
    to->params[count++] = from->count >= 4 ? from->values[3] : 0;
    to->params[count++] = from->count >= 5 ? from->values[4] : 0;
    if (from->count >= 6) to->params[count++] = from->values[5]; /* the level: for reports */
  }
  to->param_count = count;
}

bool hdf5_filters_known(const hdf5_dataset *dataset) {
  for (int k = 0; k < dataset->filter_count; k++)
    if (!hdf5_filter_works(dataset->call->library, dataset->filters[k].number)) return false;
  return true;
}

const char *hdf5_filters_other(const hdf5_dataset *dataset) {
  for (int k = 0; k < dataset->filter_count; k++) {
    const known_filter *entry = known(dataset->filters[k].number);
    if (!entry || !entry->codec)
      return entry                         ? entry->name
             : dataset->filters[k].name[0] ? dataset->filters[k].name
                                           : "without a name";
  }
  return NULL;
}

/* Those that no codec undoes: libhdf5's to undo, or absent. */
static void find_others(const hdf5_dataset *dataset, hdf5_chain *chain) {
  for (int k = 0; k < dataset->filter_count; k++) {
    const known_filter *entry = known(dataset->filters[k].number);
    bool codec = entry && entry->codec && !chain->reader;
    if (codec) continue;
    if (hdf5_filter_works(dataset->call->library, dataset->filters[k].number))
      chain->reader = true;
    else
      chain->absent |= UINT32_C(1) << k;
  }
}

tegula_status hdf5_filters_map(const hdf5_dataset *dataset, hdf5_chain *chain, tegula_error *err) {
  find_others(dataset, chain);
  for (int k = 0; k < dataset->filter_count; k++) {
    const hdf5_filter *filter = &dataset->filters[k];
    bool absent = chain->reader && !hdf5_filter_works(dataset->call->library, filter->number);
    RETURN_IF(absent, hdf5_filters_refuse(dataset, k, err));
    if (chain->reader || chain->absent >> k & 1) continue;
    tegula_plugin_filter *to = &chain->filters[chain->count++];
    *to = (tegula_plugin_filter){.codec = known(filter->number)->name};
    parameters(filter, to);
  }
  return TEGULA_OK;
}

/* "blosc:zstd:5" or "blosc:zstd:5:bitshuffle" */
static void blosc_text(const known_filter *entry, const unsigned *values, char *out, size_t size) {
  static const char *const compressors[] = {"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"};
  static const char *const shuffles[] = {"noshuffle", "shuffle", "bitshuffle"};
  char compressor[16], shuffle[16];
  unsigned which = values[BLOSC_COMPRESSOR], how = values[BLOSC_SHUFFLE];
  snprintf(compressor, sizeof compressor, "%u", which);
  snprintf(shuffle, sizeof shuffle, "%u", how);
  snprintf(out, size, "%s:%s:%u%s%s", entry->name, which < 6 ? compressors[which] : compressor,
           values[BLOSC_LEVEL], how == 1 ? "" : ":",
           how == 1  ? ""
           : how < 3 ? shuffles[how]
                     : shuffle);
}

/* "bitshuffle", "bitshuffle-zstd:3", "bitshuffle-lz4:64" */
static void bitshuffle_text(const hdf5_filter *filter, char *out, size_t size) {
  unsigned block = filter->count > 3 ? filter->values[3] : 0,
           kind = filter->count > 4 ? filter->values[4] : 0;
  char level[16] = "";
  if (kind == 3 && (filter->count > 5 || block))
    snprintf(level, sizeof level, ":%u", filter->count > 5 ? filter->values[5] : 3);
  int used = snprintf(out, size, "bitshuffle%s%s",
                      kind == 2   ? "-lz4"
                      : kind == 3 ? "-zstd"
                                  : "",
                      level);
  if (block) snprintf(out + used, size - (size_t)used, ":%u", block);
}

/* As docs/formats.md says it, and tegula__chain_format in the host: a dataset's information and the
 * list of all agree. */
static void filter_text(const hdf5_filter *filter, char *out, size_t size) {
  const known_filter *entry = known(filter->number);
  if (!entry)
    snprintf(out, size, "filter-%d", filter->number);
  else if ((filter->number == DEFLATE || filter->number == ZSTD) && filter->count > 0)
    snprintf(out, size, "%s:%u", entry->name, filter->values[0]);
  else if (filter->number == BITSHUFFLE)
    bitshuffle_text(filter, out, size);
  else if ((filter->number == BLOSC || filter->number == BLOSC2) &&
           filter->count > BLOSC_COMPRESSOR)
    blosc_text(entry, filter->values, out, size);
  else
    snprintf(out, size, "%s", entry->name);
}

void hdf5_filters_text(const hdf5_dataset *dataset, char *out, size_t size) {
  size_t used = 0;
  out[0] = 0;
  for (int k = 0; k < dataset->filter_count && used + 1 < size; k++) {
    char text[64];
    filter_text(&dataset->filters[k], text, sizeof text);
    used += (size_t)snprintf(out + used, size - used, "%s%s", k ? "," : "", text);
  }
}
