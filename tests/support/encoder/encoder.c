/* tegula_encoder: encodes chunks, so that other people's readers can judge them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Takes requests `KERNELS ITEM_SIZE SIZE CHAIN`, a line each, with SIZE bytes of a chunk behind it.
 * KERNELS is the index of a table (0: portable; -1: the best). Answers `ok MASK SIZE TEXT
 * NAME[:PARAMETER...]...` and SIZE bytes, TEXT being the chain as tegula writes it, or `error
 * MESSAGE`. Encoders are kept from chunk to chunk. It looks into the library: what it runs has no
 * public name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/codec.h"

enum { TABLES = 16 };
static tegula__encoder *encoders[TABLES + 1];

static _Noreturn void die(const char *what) {
  fprintf(stderr, "tegula_encoder: %s\n", what);
  exit(1);
}

static tegula__encoder *encoder_for(int table) {
  const tegula__kernels *kernels = table < 0        ? tegula__kernel_select()
                                   : table < TABLES ? tegula__kernel_at((size_t)table)
                                                    : NULL;
  tegula__encoder **place = &encoders[table < 0 ? TABLES : table % TABLES];
  if (kernels == NULL) return NULL;
  if (*place == NULL) *place = tegula__encoder_create(kernels);
  if (*place == NULL) die("no memory");
  return *place;
}

static void print_chain(const tegula__filter *filters, int32_t count) {
  tegula__buffer text;
  tegula__buffer_init(&text, 1 << 16);
  if (!tegula__chain_format(filters, count, &text) || !tegula__buffer_append(&text, "", 1))
    die("no memory");
  printf("%s", text.data);
  for (int32_t i = 0; i < count; i++) {
    printf(" %s", tegula__codec_name(filters[i].codec));
    for (int k = 0; k < filters[i].param_count; k++) printf(":%u", filters[i].params[k]);
  }
  tegula__buffer_free(&text);
}

/* The memory has exactly the size, so that a sanitizer sees what is beside it. */
static tegula_status encode(tegula__encoder *encoder, const tegula__filter *filters, int32_t count,
                            const char *in, size_t in_size, tegula_error *err) {
  uint32_t mask;
  size_t size;
  FORWARD(tegula__encode_check(filters, count, (int64_t)in_size, err));
  size_t room = (size_t)tegula__encode_bound(filters, count, (int64_t)in_size);
  char *out = malloc(room);
  if (out == NULL) die("no memory");
  tegula_status status =
      tegula__encode(encoder, filters, count, in, in_size, out, room, &size, &mask, err);
  if (status == TEGULA_OK) {
    printf("ok %u %zu ", mask, size);
    print_chain(filters, count);
    printf("\n");
    fwrite(out, 1, size, stdout);
  }
  free(out);
  return status;
}

static void answer(int table, uint32_t item_size, size_t size, const char *chain) {
  tegula__filter filters[TEGULA__CHAIN_MAX];
  tegula_error err;
  int32_t count;
  tegula__encoder *encoder = encoder_for(table);
  char *in = malloc(size);
  if (in == NULL) die("no memory");
  if (fread(in, 1, size, stdin) != size) die("the chunk ends early");
  tegula_status status = tegula__chain_parse(chain, item_size, filters, &count, &err);
  if (encoder == NULL)
    printf("error no such kernels\n");
  else if (status != TEGULA_OK || encode(encoder, filters, count, in, size, &err) != TEGULA_OK)
    printf("error %s\n", err.message);
  free(in);
}

int main(void) {
  char line[4096], chain[4096];
  while (fgets(line, sizeof line, stdin)) {
    int table;
    uint32_t item_size;
    size_t size;
    if (sscanf(line, "%d %u %zu %4095s", &table, &item_size, &size, chain) != 4)
      die("not a request");
    answer(table, item_size, size, chain);
    fflush(stdout);
  }
  for (int i = 0; i <= TABLES; i++) tegula__encoder_destroy(encoders[i]);
  return 0;
}
