/* A plugin for tests: four bytes of the file, named by the dataset.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * `library` chooses how opening goes: "broken" fails, "other name" is the name of another plugin.
 * Texts and vectors that it gives are overwritten when it has given them, so that a borrowed one is
 * seen. */
#include <stdlib.h>
#include <string.h>
#include <tegula/tegula_plugin.h>

const tegula_plugin *tegula_plugin_entry(int32_t host_version);

typedef struct state {
  const tegula_plugin_host *host;
} state;

static tegula_status open_tiny(const tegula_plugin_host *host, const tegula_plugin_options *options,
                               void **plugin, tegula_error *err) {
  if (options->library != NULL && strcmp(options->library, "broken") == 0)
    return host->fail(err, TEGULA_UNSUPPORTED, NULL, -1, "the heavy library is broken");
  state *made = malloc(sizeof *made);
  if (made == NULL) return host->fail(err, TEGULA_OUT_OF_MEMORY, NULL, -1, "no memory");
  made->host = host;
  *plugin = made;
  return TEGULA_OK;
}

static tegula_status describe(void *plugin, tegula_plugin_builder *builder, const char *path,
                              const char *dataset, tegula_error *err) {
  const tegula_plugin_host *host = ((state *)plugin)->host;
  tegula_plugin_file *file = NULL;
  int64_t number = -1, lo[1] = {0}, hi[1] = {4}, strides[1] = {1};
  char name[] = "/four bytes";
  tegula_dtype dtype = {.kind = 'u', .order = '|', .item_size = 1};
  if (dataset != NULL && strcmp(dataset, "none") == 0)
    return host->fail(err, TEGULA_NOT_FOUND, path, -1, "there is no such dataset");
  tegula_status status = host->file_open(builder, path, &file, err);
  if (status == TEGULA_OK) status = host->add_file(builder, file, &number, err);
  if (status == TEGULA_OK) status = host->set_array(builder, name, dtype, 1, hi, err);
  if (status == TEGULA_OK) status = host->add_dense(builder, number, 2, lo, hi, strides, '|', err);
  host->file_close(file);
  memset(name, 'x', sizeof name - 1);
  lo[0] = hi[0] = strides[0] = -1;
  return status;
}

static tegula_status list(void *plugin, tegula_plugin_builder *builder, const char *path,
                          tegula_plugin_list_fn each, void *each_state, tegula_error *err) {
  (void)plugin, (void)builder, (void)path;
  const int64_t shape[1] = {4};
  tegula_plugin_entry_info entry = {.name = "/four bytes",
                                    .dtype = "|u1",
                                    .ndim = 1,
                                    .shape = shape,
                                    .codecs = "",
                                    .stored_bytes = 4};
  tegula_status status = each(each_state, &entry, err);
  entry.name = "/second";
  return status == TEGULA_OK ? each(each_state, &entry, err) : status;
}

const tegula_plugin *tegula_plugin_entry(int32_t host_version) {
  static const tegula_plugin plugin = {.struct_size = sizeof plugin,
                                       .version = TINY_VERSION,
                                       .name = "tiny",
                                       .open = open_tiny,
                                       .close = free,
                                       .describe = describe,
                                       .list = list};
  (void)host_version;
  return &plugin;
}
