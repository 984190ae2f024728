/* Virtual datasets: mappings -> pieces -> what their sources say.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Where mappings overlap the later one wins, as in libhdf5, which copies them in order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "read/vds.h"

/* ---- pieces ---- */

static tegula_status make_pieces(hdf5_dataset *dataset, hdf5_pieces *pieces, tegula_error *err) {
  pieces->to = dataset->ndim;
  for (int64_t k = 0; k < dataset->mapping_count; k++)
    if (dataset->mappings[k].from.ndim > pieces->from)
      pieces->from = dataset->mappings[k].from.ndim;
  for (int64_t k = 0; k < dataset->mapping_count; k++) {
    const hdf5_mapping *mapping = &dataset->mappings[k];
    int64_t to = hdf5_selection_count(&mapping->to, dataset->shape),
            from = hdf5_selection_count(&mapping->from, mapping->from.extent);
    if (to == -2)
      return hdf5_fail_mapping(dataset, TEGULA_CORRUPT, k,
                               "reaches beyond the shape of the dataset", err);
    if (to < 0 || from == -1)
      return hdf5_fail_mapping(dataset, TEGULA_CORRUPT, k, "has more than 2^63 elements", err);
    if (from >= 0 && from != to)
      return hdf5_fail_mapping(
          dataset, TEGULA_MISMATCH, k,
          "selects another number of elements in its source than in the dataset", err);
    if (to == 0) continue;
    if (from == -2 && mapping->from.boxes)
      return hdf5_fail_mapping(dataset, TEGULA_CORRUPT, k, "reaches beyond its source", err);
    if (!hdf5_mapping_pieces(mapping, k, pieces))
      return dataset->call->library->host->fail(
          err, TEGULA_LIMIT_EXCEEDED, dataset->file->path, -1,
          "the virtual dataset \"%s\" in \"%s\" falls into more than 2^20 pieces", dataset->name,
          dataset->file->path);
  }
  return TEGULA_OK;
}

/* A piece as a place in its source, seen from the array; false: the place does not touch it. */
static bool compose(const hdf5_dataset *dataset, const hdf5_pieces *pieces, int64_t *piece,
                    int from_ndim, const hdf5_place *outer, hdf5_place *out) {
  hdf5_place seen;
  if (!hdf5_place_clip(outer, dataset->ndim, piece, piece + dataset->ndim, &seen)) return false;
  *out = seen;
  for (int k = 0; k < from_ndim; k++) {
    int64_t axis = hdf5_piece_axis(pieces, piece)[k];
    out->start[k] =
        hdf5_piece_start(pieces, piece)[k] + (axis < 0 ? 0 : seen.start[axis] - piece[axis]);
    out->axis[k] = axis < 0 ? -1 : seen.axis[axis];
  }
  return true;
}

/* Gives a place over the longer axes of a whole source the axes that are one long too; false: it
 * has another shape than is expected. */
static bool spread(const hdf5_selection *from, const hdf5_dataset *in, hdf5_place *place) {
  hdf5_place given = *place;
  int at = 0;
  for (int k = 0; k < in->ndim; k++) {
    bool longer = in->shape[k] != 1;
    if (longer && (at == from->ndim || from->extent[at] != in->shape[k])) return false;
    place->axis[k] = longer ? given.axis[at] : -1;
    place->start[k] = longer ? given.start[at] : 0;
    at += longer;
  }
  return at == from->ndim;
}

static tegula_status beyond(const hdf5_dataset *dataset, const hdf5_mapping *mapping,
                            const hdf5_source *s, tegula_error *err) {
  char want[128] = "", have[128] = "";
  for (int k = 0, used = 0; k < mapping->from.ndim && used < 100; k++)
    used += snprintf(want + used, sizeof want - (size_t)used, k ? ", %lld" : "%lld",
                     (long long)mapping->from.extent[k]);
  for (int k = 0, used = 0; k < s->dataset.ndim && used < 100; k++)
    used += snprintf(have + used, sizeof have - (size_t)used, k ? ", %lld" : "%lld",
                     (long long)s->dataset.shape[k]);
  return dataset->call->library->host->fail(err, TEGULA_MISMATCH, s->found.file->path, -1,
                                            "the virtual dataset \"%s\" in \"%s\" expects shape "
                                            "(%s) of its source \"%s\" in \"%s\", found (%s)",
                                            dataset->name, dataset->file->path, want, s->found.name,
                                            s->found.file->path, have);
}

static bool within(const hdf5_place *place, const hdf5_source *s) {
  for (int k = 0; k < s->dataset.ndim; k++)
    if (place->start[k] + hdf5_place_length(place, k) > s->dataset.shape[k]) return false;
  return true;
}

/* A group of pieces: those of one source. `order` holds their numbers. */
typedef struct group {
  hdf5_dataset *dataset;
  const hdf5_place *outer;
  const hdf5_pieces *pieces;
  const int64_t *order;
  int64_t count;
  hdf5_file **held; /* stays open for the next group */
} group;

static const hdf5_mapping *group_mapping(const group *g) {
  return &g->dataset->mappings[*hdf5_piece_mapping(g->pieces, hdf5_piece(g->pieces, g->order[0]))];
}

static tegula_status emit_lost(const group *g, tegula_status why, const tegula_error *failure,
                               tegula_error *err) {
  const hdf5_dataset *dataset = g->dataset;
  const hdf5_mapping *mapping = group_mapping(g);
  char *text = hdf5_text("source \"%s\" of the virtual dataset \"%s\" in \"%s\" %s: %s%s%s",
                         mapping->dataset, dataset->name, dataset->file->path,
                         why == TEGULA_NOT_FOUND ? "is not there" : "cannot be read",
                         failure->message, failure->hint[0] ? "; " : "", failure->hint);
  tegula_status status = text ? hdf5_tell_texts(dataset->call, &dataset->type, err)
                              : hdf5_out_of_memory(dataset->call->library, err);
  for (int64_t k = 0; status == TEGULA_OK && k < g->count; k++) {
    hdf5_place place;
    int64_t *piece = hdf5_piece(g->pieces, g->order[k]);
    if (compose(dataset, g->pieces, piece, 0, g->outer, &place))
      status = hdf5_tell_lost(dataset->call, &place, dataset->fill, why, failure->os_errno, text,
                              failure->path[0] ? failure->path : NULL, err);
  }
  free(text);
  return status;
}

static bool is_lost(tegula_status status) {
  return status == TEGULA_NOT_FOUND || status == TEGULA_PERMISSION || status == TEGULA_CORRUPT ||
         status == TEGULA_SHORT_FILE || status == TEGULA_INVALID_ARGUMENT /* a group */;
}

/* Piece k of the group as a place in its source. *fits: its source has the shape that is expected.
 * False: the outer place does not touch it. */
static bool find_place(const group *g, const hdf5_source *s, int64_t k, hdf5_place *place,
                       bool *fits) {
  int64_t *piece = hdf5_piece(g->pieces, g->order[k]);
  const hdf5_selection *from = &g->dataset->mappings[*hdf5_piece_mapping(g->pieces, piece)].from;
  if (!compose(g->dataset, g->pieces, piece, from->ndim, g->outer, place)) return false;
  *fits = from->whole ? spread(from, &s->dataset, place)
                      : from->ndim == s->dataset.ndim && within(place, s);
  return true;
}

/* A dense source, of whose range that they want the pieces would read more than half twice, each by
 * itself. */
static tegula_status prepare(const group *g, hdf5_source *s, tegula_error *err) {
  FORWARD(hdf5_prepare(&s->dataset, g->dataset->like, err));
  /* else there might be a grid for each piece of another dataset */
  bool outermost = g->dataset->call->ancestors->next == NULL;
  RETURN_IF(s->dataset.kind != HDF5_KIND_DENSE || s->dataset.ndim == 0 || g->count == 1 ||
                !outermost,
            TEGULA_OK);
  hdf5_reads all = {.first = INT64_MAX};
  for (int64_t k = 0; k < g->count; k++) {
    hdf5_place place;
    bool fits;
    if (find_place(g, s, k, &place, &fits) && fits) hdf5_reads_add(&all, &s->dataset, &place);
  }
  if (all.places > 1 && all.bytes / 3 > (all.last - all.first) / 2)
    hdf5_slice(&s->dataset, all.places);
  return TEGULA_OK;
}

static tegula_status emit_pieces(const group *g, hdf5_source *s, tegula_error *err) {
  hdf5_dataset *dataset = g->dataset;
  hdf5_ancestor self = {.next = dataset->call->ancestors,
                        .canonical = dataset->file->canonical,
                        .name = dataset->name};
  dataset->call->ancestors = &self;
  tegula_status status = TEGULA_OK;
  bool prepared = false;
  for (int64_t k = 0; status == TEGULA_OK && k < g->count; k++) {
    hdf5_place place;
    bool fits;
    if (!find_place(g, s, k, &place, &fits)) continue;
    if (!fits) {
      status = beyond(
          dataset,
          &dataset->mappings[*hdf5_piece_mapping(g->pieces, hdf5_piece(g->pieces, g->order[k]))], s,
          err);
      break;
    }
    if (!prepared) status = prepare(g, s, err);
    prepared = true;
    if (status == TEGULA_OK) status = hdf5_emit(&s->dataset, &place, err);
  }
  dataset->call->ancestors = self.next;
  return status;
}

static tegula_status emit_group(const group *g, tegula_error *err) {
  bool touched = false;
  hdf5_place place;
  for (int64_t k = 0; k < g->count && !touched; k++)
    touched =
        compose(g->dataset, g->pieces, hdf5_piece(g->pieces, g->order[k]), 0, g->outer, &place);
  RETURN_IF(!touched, TEGULA_OK);
  hdf5_source s;
  tegula_error failure = {.rank = -1, .offset = -1};
  tegula_status status = hdf5_source_find(g->dataset, group_mapping(g), &s, &failure);
  if (status != TEGULA_OK) {
    if (is_lost(status))
      return emit_lost(g, status == TEGULA_INVALID_ARGUMENT ? TEGULA_NOT_FOUND : status, &failure,
                       err);
    if (err) *err = failure;
    return status;
  }
  hdf5_file_release(g->dataset->call, *g->held);
  *g->held = s.file;
  s.file->references++;
  status = hdf5_source_read(g->dataset, &s, err);
  if (status == TEGULA_OK) status = emit_pieces(g, &s, err);
  hdf5_source_close(g->dataset->call, &s);
  return status;
}

bool hdf5_piece_seen(const hdf5_dataset *dataset, const hdf5_pieces *pieces, int64_t index,
                     const hdf5_place *outer, hdf5_place *out) {
  return compose(dataset, pieces, hdf5_piece(pieces, index), 0, outer, out);
}

static tegula_status emit_gap(hdf5_dataset *dataset, const hdf5_pieces *pieces, int64_t index,
                              const hdf5_place *outer, tegula_error *err) {
  hdf5_place place;
  if (!compose(dataset, pieces, hdf5_piece(pieces, index), 0, outer, &place)) return TEGULA_OK;
  FORWARD(hdf5_tell_texts(dataset->call, &dataset->type, err));
  return hdf5_tell_fill(dataset->call, &place, dataset->fill, err);
}

/* ---- pieces by source ---- */

static int compare_sources(const hdf5_mapping *a, const hdf5_mapping *b) {
  if (!a || !b) return (a != NULL) - (b != NULL);
  if (a == b) return 0;
  int files = strcmp(a->file, b->file);
  if (files) return files;
  return strcmp(a->dataset, b->dataset);
}

static int by_source(const void *a, const void *b) {
  const hdf5_sorted *x = a, *y = b;
  int sources = compare_sources(x->mapping, y->mapping);
  return sources ? sources : (x->piece > y->piece) - (x->piece < y->piece);
}

static bool same_file(const hdf5_sorted *a, const hdf5_sorted *b) {
  return a->mapping && b->mapping && strcmp(a->mapping->file, b->mapping->file) == 0;
}

tegula_status hdf5_emit_sources(hdf5_dataset *dataset, const hdf5_pieces *pieces,
                                const hdf5_place *outer, const hdf5_sorted *sorted, int64_t count,
                                tegula_error *err) {
  int64_t *order = malloc((size_t)(count ? count : 1) * sizeof *order);
  tegula_status status = order ? TEGULA_OK : hdf5_out_of_memory(dataset->call->library, err);
  hdf5_file *held = NULL; /* the file of the last group, if the next one is of the same */
  for (int64_t from = 0, to; status == TEGULA_OK && from < count; from = to) {
    for (to = from; to < count && compare_sources(sorted[from].mapping, sorted[to].mapping) == 0;
         to++)
      order[to - from] = sorted[to].piece;
    group g = {.dataset = dataset,
               .outer = outer,
               .pieces = pieces,
               .order = order,
               .count = to - from,
               .held = &held};
    if (from > 0 && !same_file(&sorted[from - 1], &sorted[from])) {
      hdf5_file_release(dataset->call, held);
      held = NULL;
    }
    if (sorted[from].mapping) status = emit_group(&g, err);
    for (int64_t k = 0; !sorted[from].mapping && status == TEGULA_OK && k < g.count; k++)
      status = emit_gap(dataset, pieces, order[k], outer, err);
  }
  hdf5_file_release(dataset->call, held);
  free(order);
  return status;
}

/* Those of the file itself at once, others when they are wanted. */
static tegula_status emit_late(hdf5_dataset *dataset, const hdf5_pieces *pieces,
                               const hdf5_place *outer, const hdf5_sorted *sorted, int64_t count,
                               tegula_error *err) {
  for (int64_t from = 0, to; from < count; from = to) {
    for (to = from; to < count && hdf5_sorted_here(&sorted[to]); to++) continue;
    FORWARD(hdf5_emit_sources(dataset, pieces, outer, sorted + from, to - from, err));
    for (; to < count && !hdf5_sorted_here(&sorted[to]); to++) continue;
  }
  return hdf5_late_emit(dataset, outer, sorted, count, err);
}

static bool sort_parts(hdf5_dataset *dataset) {
  const hdf5_pieces *pieces = dataset->parts;
  hdf5_sorted *sorted = malloc((size_t)(pieces->count ? pieces->count : 1) * sizeof *sorted);
  if (!sorted) return false;
  for (int64_t k = 0; k < pieces->count; k++) {
    int64_t mapping = *hdf5_piece_mapping(pieces, hdf5_piece(pieces, k));
    sorted[k] = (hdf5_sorted){mapping < 0 ? NULL : &dataset->mappings[mapping], k};
  }
  qsort(sorted, (size_t)pieces->count, sizeof *sorted, by_source);
  dataset->sorted = sorted;
  return true;
}

/* Mappings to pieces that do not overlap; once, because each piece of a dataset over this one asks
 * for them. */
static tegula_status make_parts(hdf5_dataset *dataset, tegula_error *err) {
  RETURN_IF(dataset->sorted, TEGULA_OK);
  hdf5_pieces pieces = {0}, parts = {0};
  tegula_status status = make_pieces(dataset, &pieces, err);
  parts.to = pieces.to;
  parts.from = pieces.from;
  if (status == TEGULA_OK && !hdf5_pieces_partition(&pieces, dataset->shape, &parts))
    status = dataset->call->library->host->fail(
        err, TEGULA_LIMIT_EXCEEDED, dataset->file->path, -1,
        "the mappings of the virtual dataset \"%s\" in \"%s\" overlap in more than 2^20 pieces",
        dataset->name, dataset->file->path);
  if (status == TEGULA_OK && !(dataset->parts = malloc(sizeof parts)))
    status = hdf5_out_of_memory(dataset->call->library, err);
  if (status == TEGULA_OK)
    *dataset->parts = parts;
  else
    free(parts.data);
  free(pieces.data);
  return status != TEGULA_OK || sort_parts(dataset)
             ? status
             : hdf5_out_of_memory(dataset->call->library, err);
}

tegula_status hdf5_emit_virtual(hdf5_dataset *dataset, const hdf5_place *outer, tegula_error *err) {
  int64_t number;
  /* a file that is read, like any other */
  FORWARD(hdf5_file_number(dataset->call, dataset->file, &number, err));
  FORWARD(make_parts(dataset, err));
  const hdf5_pieces *pieces = dataset->parts;
  const hdf5_sorted *sorted = dataset->sorted;
  if (hdf5_late_wanted(dataset, sorted, pieces->count))
    return emit_late(dataset, pieces, outer, sorted, pieces->count, err);
  return hdf5_emit_sources(dataset, pieces, outer, sorted, pieces->count, err);
}
