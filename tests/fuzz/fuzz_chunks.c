/* Manifests with chunks out of any numbers: what finish accepts can be planned, and all that the
 * plan reads lies in its place.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The input is a shape, then grids and parts, as a broken plugin or a file that lies would give
 * them. Numbers are small, near the limits of their type, or near each other, so that some get
 * through. */
#include "fuzz_plan.h"

enum { MOST_AXES = 4, MOST_GRIDS = 4, MOST_PARTS = 6 };

typedef struct input {
  const uint8_t *data;
  size_t left;
} input;

static int64_t number(input *in) {
  uint64_t kind = take_number(&in->data, &in->left, 1);
  int64_t small = (int64_t)(kind & 15);
  switch (kind >> 4) {
    case 12:
      return INT64_MAX - small;
    case 13:
      return (INT64_C(1) << (kind & 15) * 4) + (int64_t)take_number(&in->data, &in->left, 1);
    case 14:
      return -small;
    case 15:
      return (int64_t)take_number(&in->data, &in->left, 8);
    default:
      return kind < 0x60 ? small : (int64_t)(kind - 0x60);
  }
}

static void vector(input *in, int32_t ndim, int64_t *out) {
  for (int32_t k = 0; k < ndim; k++) out[k] = number(in);
}

static tegula_status never(void *state, const tegula_view *view, tegula_error *err) {
  (void)state, (void)view, (void)err;
  return TEGULA_INTERNAL;
}

static uint8_t order_of(uint64_t bits) { return (uint8_t) "<>|<"[bits & 3]; }

static void add_grid(input *in, tegula__manifest *m) {
  tegula__grid *grid = calloc(1, sizeof *grid);
  MUST(grid != NULL);
  uint64_t bits = take_number(&in->data, &in->left, 1);
  *grid = (tegula__grid){.file = bits & 1,
                         .order = order_of(bits >> 1),
                         .filter_count = bits >> 3 & 3,
                         .chunk_bytes = number(in)};
  grid->slots = number(in);
  grid->count = bits >> 5 & 1 ? number(in) & 31 : grid->slots;
  if (grid->count < 0 || grid->count > 64) grid->count = 64; /* as many as there is memory for */
  grid->filters = calloc(4, sizeof *grid->filters);
  grid->chunks = calloc((size_t)grid->count + 1, sizeof *grid->chunks);
  if (bits >> 5 & 1) grid->coordinates = calloc((size_t)grid->count + 1, sizeof *grid->coordinates);
  MUST(grid->filters != NULL && grid->chunks != NULL);
  for (int64_t i = 0; i < grid->count; i++) {
    uint64_t how = take_number(&in->data, &in->left, 1);
    int64_t regular = i * (grid->chunk_bytes & 0xffff);
    grid->chunks[i] = (tegula__chunk){.offset = (uint64_t)(how & 1 ? number(in) : regular),
                                      .length = (uint32_t)(how & 2   ? number(in)
                                                           : how & 4 ? 0
                                                                     : grid->chunk_bytes),
                                      .mask = (uint32_t)(how & 8 ? number(in) : -1)};
    if (grid->coordinates != NULL) grid->coordinates[i] = (uint64_t)(how & 16 ? number(in) : i);
  }
  MUST(tegula__manifest_add_grid(m, grid, NULL) == TEGULA_OK);
}

static void add_part(input *in, tegula__manifest *m, const tegula_error *lost,
                     const tegula__reader *reader) {
  uint64_t bits = take_number(&in->data, &in->left, 2);
  int64_t vectors[6][MOST_AXES], step[MOST_AXES], ndim = m->ndim;
  for (int i = 0; i < 6; i++) vector(in, m->ndim, vectors[i]);
  if (bits & 8) /* over the whole array */
    for (int64_t k = 0; k < ndim; k++) {
      vectors[0][k] = 0;
      vectors[1][k] = m->shape[k];
    }
  tegula__part part = {.kind = (tegula__part_kind)((bits & 7) > 5 ? 1 : bits & 7),
                       .order = order_of(bits >> 4),
                       .file = TEGULA__NO_FILE};
  part.lo = vectors[0], part.hi = vectors[1], part.strides = vectors[2];
  part.offset = number(in);
  if (part.kind == TEGULA__PART_DENSE || bits >> 6 & 1) part.file = number(in);
  if (part.kind == TEGULA__PART_CHUNKED || bits >> 7 & 1)
    part.start = vectors[3], part.chunk = vectors[4], part.slot_strides = vectors[5];
  if (part.kind == TEGULA__PART_CHUNKED && m->grid_count > 0)
    part.grid = m->grids[(int64_t)(bits >> 8 & 3) % m->grid_count];
  if (part.grid != NULL && bits >> 10 & 1) part.order = part.grid->order;
  if (part.kind == TEGULA__PART_CHUNKED && bits >> 11 & 1) {
    vector(in, m->ndim, step);
    part.step = step;
  }
  part.slot_base = part.kind == TEGULA__PART_CHUNKED ? number(in) : 0;
  part.lost = part.kind == TEGULA__PART_LOST ? lost : NULL;
  part.reader = part.kind == TEGULA__PART_READ ? reader : NULL;
  MUST(tegula__manifest_add_part(m, &part, NULL) == TEGULA_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const uint32_t items[] = {1, 4, 8, 3};
  tegula_error error, lost;
  tegula__reader reader = {.read = never};
  input in = {data, size};
  tegula__manifest m;
  tegula__manifest_init(&m);
  uint64_t bits = take_number(&in.data, &in.left, 2);
  uint32_t item = items[bits & 3];
  m.dtype = (tegula_dtype){.kind = item == 1   ? 'u'
                                   : item == 3 ? 'V'
                                               : 'f',
                           .order = item == 4 || item == 8 ? TEGULA__NATIVE_ORDER : '|',
                           .item_size = item};
  m.ndim = (int32_t)(bits >> 2 & 7) % (MOST_AXES + 1);
  vector(&in, m.ndim, m.shape);
  m.files = calloc(2, sizeof *m.files);
  MUST(m.files != NULL);
  m.file_count = 2;
  for (int i = 0; i < 2; i++)
    m.files[i] = (tegula__file){.path = strdup("f"),
                                .stamp = {.size = i == 0 ? 4000 : number(&in) & INT64_MAX}};
  tegula__fail(&lost, bits >> 5 & 1 ? TEGULA_OK : TEGULA_INCOMPLETE, NULL, -1, "gone");
  for (uint64_t i = 0; i <= (bits >> 6 & 3) && i < MOST_GRIDS; i++) add_grid(&in, &m);
  for (uint64_t i = 0; i <= (bits >> 8 & 7) && i < MOST_PARTS && (i == 0 || in.left > 0); i++)
    add_part(&in, &m, &lost, &reader);
  tegula_status status = tegula__manifest_finish(&m, &error);
  if (status == TEGULA_OK)
    plan_all(&m);
  else
    MUST(error.status == status && error.message[0] != '\0');
  tegula__manifest_free(&m);
  return 0;
}
