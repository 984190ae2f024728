/* Batches: a dataset piece by piece, the next one read while the caller works on this one.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * On several ranks each piece has a tile for each of them. They read ahead by themselves, and agree
 * when a piece is given out. */
#include <stdlib.h>

#include "api/api.h"
#include "dataset/batch_window.h"

/* A piece on its way. */
typedef struct piece {
  tegula_op op;            /* first: the queue knows this part only */
  tegula_batches *batches; /* while this piece is the one ahead */
  tegula_dataset *dataset;
  tegula_array *array; /* of the piece's own shape */
  tegula_load_options options;
  tegula_box box;
} piece;

struct tegula_batches {
  tegula_dataset *dataset;
  tegula_tiling *grid;
  tegula_load_options options;
  int64_t next; /* number of the piece that is given out next */
  int64_t count;
  piece *ahead;                  /* that piece, on its way; NULL: not started */
  tegula__batches_window window; /* of the piece on its way */
};

/* What this rank does of it: no call of MPI in the background. */
static tegula_status run_piece(tegula_op *op, tegula_error *err) {
  piece *p = (piece *)op;
  p->options.origin = p->box.lo;
  p->options.origin_ndim = p->box.ndim;
  if (p->dataset->context->comm->size > 1)
    return tegula__load_here(p->dataset, p->array, &p->options, err);
  bool done;
  const int64_t *lengths = p->batches->grid->tile;
  FORWARD(tegula__batches_window_fill(&p->batches->window, p->dataset, lengths, &p->options,
                                      &p->box, p->array, &done, err));
  return done ? TEGULA_OK : tegula__load(p->dataset, p->array, &p->options, err);
}

static void release_piece(tegula_op *op) {
  piece *p = (piece *)op;
  tegula_dataset_close(p->dataset);
  tegula_array_destroy(p->array);
  free(p);
}

/* An array of the piece's shape. */
static tegula_status make_array(const tegula_batches *batches, const tegula_box *box,
                                tegula_array **out, tegula_error *err) {
  int64_t shape[TEGULA_MAX_DIMS];
  tegula_tiling *whole;
  tegula_context *context = batches->dataset->context;
  for (int32_t k = 0; k < box->ndim; k++) shape[k] = box->hi[k] - box->lo[k];
  FORWARD(tegula_tiling_even(shape, box->ndim, 0, context->comm->size, context->comm->size, &whole,
                             err));
  tegula_status status =
      tegula__array_create_here(context, batches->dataset->manifest.dtype, whole, out, err);
  tegula_tiling_destroy(whole);
  return status;
}

/* Starts piece `next` in the background. */
static tegula_status start_ahead(tegula_batches *batches, tegula_error *err) {
  if (batches->next == batches->count) return TEGULA_OK;
  piece *p = calloc(1, sizeof *p);
  if (p == NULL) return tegula__out_of_memory(err, sizeof *p);
  p->batches = batches;
  p->dataset = tegula__dataset_retain(batches->dataset);
  p->op.run = run_piece;
  p->op.release = release_piece;
  p->op.touch.places = &p->dataset->places;
  p->options = batches->options;
  tegula__queue_watch(&p->op, &p->options.progress, &p->options.progress_state);
  p->box.ndim = batches->grid->ndim;
  tegula__tiling_box(batches->grid, batches->next, p->box.lo, p->box.hi);
  tegula_status status = make_array(batches, &p->box, &p->array, err);
  if (status == TEGULA_OK)
    status = tegula__queue_submit(batches->dataset->context->queue, &p->op, err);
  if (status == TEGULA_OK)
    batches->ahead = p;
  else
    release_piece(&p->op);
  return status;
}

static tegula_status check_chunk(const tegula_dataset *dataset, const int64_t *chunk, int32_t ndim,
                                 tegula_error *err) {
  if (ndim != dataset->manifest.ndim)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "the chunk has %d entries, but the dataset has %d axes", ndim,
                        dataset->manifest.ndim);
  CHECK_ARGUMENT(ndim == 0 || chunk != NULL, "the chunk is NULL");
  for (int32_t k = 0; k < ndim; k++)
    if (chunk[k] <= 0)
      return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                          "entry %d of the chunk is %lld: it must be 1 or more", k,
                          (long long)chunk[k]);
  return TEGULA_OK;
}

static tegula_status prepare(tegula_dataset *dataset, const int64_t *chunk, int32_t ndim,
                             const tegula_load_options *options, tegula_batches **out,
                             tegula_error *err) {
  tegula_load_options local;
  tegula_load_options_init(&local);
  CHECK_ARGUMENT(out != NULL, "the dataset or the place for the batches is NULL");
  FORWARD(tegula__load_options_copy(&local, options, err));
  FORWARD(check_chunk(dataset, chunk, ndim, err));
  FORWARD(tegula__dataset_confirm(dataset, NULL, err));
  tegula_batches *batches = calloc(1, sizeof *batches);
  if (batches == NULL) return tegula__out_of_memory(err, sizeof *batches);
  *out = batches;
  batches->dataset = tegula__dataset_retain(dataset);
  batches->options = local;
  FORWARD(tegula__tiling_grid(dataset->manifest.shape, chunk, ndim, 1, &batches->grid, err));
  int64_t elements;
  tegula__shape_count(dataset->manifest.shape, ndim, &elements);
  /* nothing to give out of an array without elements */
  batches->count = elements > 0 ? batches->grid->count : 0;
  return start_ahead(batches, err);
}

tegula_status tegula_batches_open(tegula_dataset *dataset, const int64_t *chunk, int32_t ndim,
                                  const tegula_load_options *options, tegula_batches **out,
                                  tegula_error *err) {
  CHECK_ARGUMENT(dataset != NULL, "the dataset or the place for the batches is NULL");
  tegula_batches *batches = NULL;
  tegula__call call;
  tegula__call_init(&call, "tegula_batches_open");
  tegula_status status = prepare(dataset, chunk, ndim, options, out != NULL ? &batches : NULL, err);
  if (status == TEGULA_OK) {
    char text[TEGULA__SHAPE_TEXT];
    tegula__shape_format(chunk, ndim, text);
    tegula__call_dataset(&call, dataset);
    tegula__call_add(&call, "the chunk", "%s", text);
    tegula__call_mix(&call, chunk, (size_t)ndim * sizeof *chunk);
    tegula__call_add(&call, "missing", "%u", batches->options.missing);
  }
  status = tegula__comm_agree_call(dataset->context->comm, &call, status, err);
  if (status == TEGULA_OK)
    *out = batches;
  else
    tegula_batches_close(batches);
  return status;
}

/* The end of a piece on all ranks: all have theirs, or none gets one. */
static tegula_status agree(const tegula_batches *batches, tegula_status mine, tegula_error *err) {
  tegula__call call;
  tegula__call_init(&call, "tegula_batches_next");
  tegula__call_add(&call, "the piece", "%lld of %lld", (long long)batches->next,
                   (long long)batches->count);
  return tegula__comm_agree_call(batches->dataset->context->comm, &call, mine, err);
}

tegula_status tegula_batches_next(tegula_batches *batches, tegula_array **out, tegula_box *box,
                                  tegula_error *err) {
  CHECK_ARGUMENT(batches != NULL && out != NULL, "the batches or the place for the array is NULL");
  if (batches->next == batches->count) return TEGULA_END;
  /* after a failure: the same piece again */
  tegula_status status = batches->ahead == NULL ? start_ahead(batches, err) : TEGULA_OK;
  piece *p = batches->ahead;
  batches->ahead = NULL;
  if (status == TEGULA_OK) status = tegula__queue_wait(&p->op, -1, err);
  status = agree(batches, status, err);
  if (status == TEGULA_OK) {
    *out = tegula__array_retain(p->array);
    if (box != NULL) *box = p->box;
    batches->next++;
    (void)start_ahead(batches, NULL); /* where that fails, the next call tries it, and says so */
  }
  if (p != NULL) tegula__queue_forget(&p->op);
  return status;
}

void tegula_batches_close(tegula_batches *batches) {
  if (batches == NULL) return;
  if (batches->ahead != NULL) {
    tegula__queue_cancel(&batches->ahead->op);
    /* a failure of what nobody asked for is not told */
    tegula__queue_wait(&batches->ahead->op, -1, NULL);
    tegula__queue_forget(&batches->ahead->op);
  }
  tegula__batches_window_release(&batches->window);
  tegula__tiling_release(batches->grid);
  tegula_dataset_close(batches->dataset);
  free(batches);
}
