/* Digests of stored bytes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/sums.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef TEGULA_HAVE_XXHASH_DISPATCH
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

enum { DIGEST_BYTES = 16 };

struct tegula__sum_state {
  XXH3_state_t *xxh;
};

static tegula__hash128 hash_of(XXH128_hash_t hash) {
  return (tegula__hash128){.low = hash.low64, .high = hash.high64};
}

tegula__sum_state *tegula__sum_create(void) {
  tegula__sum_state *state = malloc(sizeof *state);
  RETURN_IF(state == NULL, NULL);
  state->xxh = XXH3_createState();
  if (state->xxh != NULL) return state;
  free(state);
  return NULL;
}

void tegula__sum_destroy(tegula__sum_state *state) {
  if (state == NULL) return;
  XXH3_freeState(state->xxh);
  free(state);
}

void tegula__sum_reset(tegula__sum_state *state, int64_t seed) {
  XXH3_128bits_reset_withSeed(state->xxh, (XXH64_hash_t)seed);
}

void tegula__sum_update(tegula__sum_state *state, const void *data, size_t size) {
  XXH3_128bits_update(state->xxh, data, size);
}

tegula__hash128 tegula__sum_digest(const tegula__sum_state *state) {
  return hash_of(XXH3_128bits_digest(state->xxh));
}

tegula__hash128 tegula__sum_of(const void *data, size_t size) {
  return hash_of(XXH3_128bits(data, size));
}

bool tegula__sum_of_blocks(const tegula__hash128 *blocks, int64_t count, tegula__hash128 *out) {
  *out = blocks[0];
  RETURN_IF(count == 1, true);
  tegula__sum_state *state = tegula__sum_create();
  RETURN_IF(state == NULL, false);
  tegula__sum_reset(state, 0);
  for (int64_t i = 0; i < count; i++) {
    unsigned char bytes[DIGEST_BYTES];
    for (int k = 0; k < 8; k++) {
      bytes[k] = (unsigned char)(blocks[i].high >> (56 - 8 * k));
      bytes[8 + k] = (unsigned char)(blocks[i].low >> (56 - 8 * k));
    }
    tegula__sum_update(state, bytes, sizeof bytes);
  }
  *out = tegula__sum_digest(state);
  tegula__sum_destroy(state);
  return true;
}

void tegula__sum_format(tegula__hash128 sum, char out[TEGULA__SUM_TEXT]) {
  snprintf(out, TEGULA__SUM_TEXT, "%016llx%016llx", (unsigned long long)sum.high,
           (unsigned long long)sum.low);
}

void tegula__sums_free(tegula__sums *sums) {
  for (int64_t i = 0; sums->files != NULL && i < sums->file_count; i++) free(sums->files[i].path);
  free(sums->format);
  free(sums->name);
  free(sums->files);
  free(sums->blocks);
  free(sums->chunks);
  free(sums->vectors);
  *sums = (tegula__sums){0};
}
