/* Loads and saves in the background.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * An operation holds references to its dataset and array and copies of its options; cancelling
 * works through the progress function. On several ranks each does its part by itself, and they
 * agree where the program waits for it: no call of MPI comes from a thread of the queue. */
#include <stdlib.h>

#include "save/save_later.h"

typedef struct operation {
  tegula_op op; /* first: the queue knows this part only */
  tegula_dataset *dataset;
  tegula_array *array;
  tegula_load_options load;
  tegula_save_options save;
  char *path, *format, *descr, *target, *layout, *codec;
  const void *fill;
  tegula_attribute *attributes; /* save.attribute_count of them, or NULL */
  tegula_setting *settings;     /* save.setting_count of them, or NULL */
  int64_t chunk[TEGULA_MAX_DIMS];
  int64_t origin[TEGULA_MAX_DIMS];
  tegula__places places;
  tegula__call *call;   /* loads: what the ranks must have been called with alike; NULL: one rank */
  tegula__later *later; /* saves on several ranks; NULL: one rank */
  char *said;           /* their path as it was given */
} operation;

static tegula_status run_load(tegula_op *op, tegula_error *err) {
  const operation *o = (const operation *)op;
  return o->call != NULL ? tegula__load_here(o->dataset, o->array, &o->load, err)
                         : tegula__load(o->dataset, o->array, &o->load, err);
}

static tegula_status run_save(tegula_op *op, tegula_error *err) {
  const operation *o = (const operation *)op;
  if (o->later == NULL) return tegula__save(o->array, o->path, &o->save, err);
  tegula__later_write(o->later); /* how it went is said at the end */
  return TEGULA_OK;
}

static void free_attribute(const tegula_attribute *attribute) {
  for (int64_t i = 0; attribute->texts != NULL && i < attribute->count; i++)
    free((void *)(uintptr_t)attribute->texts[i]);
  free((void *)(uintptr_t)attribute->texts);
  free((void *)(uintptr_t)attribute->values);
  free((void *)(uintptr_t)attribute->shape);
  free((void *)(uintptr_t)attribute->omitted);
  free((void *)(uintptr_t)attribute->type);
  free((void *)(uintptr_t)attribute->name);
}

static void release_operation(tegula_op *op) {
  operation *o = (operation *)op;
  for (int64_t i = 0; o->attributes != NULL && i < o->save.attribute_count; i++)
    free_attribute(&o->attributes[i]);
  free(o->attributes);
  for (int32_t i = 0; o->settings != NULL && i < o->save.setting_count; i++) {
    free((void *)(uintptr_t)o->settings[i].key);
    free((void *)(uintptr_t)o->settings[i].value);
  }
  free(o->settings);
  free((void *)(uintptr_t)o->fill);
  tegula_dataset_close(o->dataset);
  tegula_array_destroy(o->array);
  tegula__places_free(&o->places);
  free(o->call);
  if (o->later != NULL) tegula__places_free(&o->later->places);
  free(o->later);
  free(o->said);
  free(o->path);
  free(o->format);
  free(o->descr);
  free(o->target);
  free(o->layout);
  free(o->codec);
  free(o);
}

static operation *new_operation(tegula_status (*run)(tegula_op *, tegula_error *),
                                const tegula_array *array) {
  operation *o = calloc(1, sizeof *o);
  if (o == NULL) return NULL;
  o->op.run = run;
  o->op.release = release_operation;
  o->op.touch.array = array;
  o->array = tegula__array_retain(array);
  return o;
}

/* Hands the caller's reference over, or gives it back. */
static void hand_over(operation *o, tegula_op **out) {
  if (out != NULL)
    *out = &o->op;
  else
    tegula__queue_forget(&o->op);
}

static tegula_status submit(tegula_context *context, operation *o, tegula_op **out,
                            tegula_error *err) {
  tegula_status status = tegula__queue_submit(context->queue, &o->op, err);
  if (status == TEGULA_OK)
    hand_over(o, out);
  else
    release_operation(&o->op);
  return status;
}

static tegula_status note_call(operation *o, tegula_error *err) {
  RETURN_IF(o->dataset->context->comm->size == 1, TEGULA_OK);
  o->call = malloc(sizeof *o->call);
  if (o->call == NULL) return tegula__out_of_memory(err, sizeof *o->call);
  tegula__call_init(o->call, "tegula_op_wait");
  tegula__call_load(o->call, o->dataset, o->array, &o->load);
  return TEGULA_OK;
}

tegula_status tegula_load_async(tegula_dataset *dataset, tegula_array *array,
                                const tegula_load_options *options, tegula_op **out,
                                tegula_error *err) {
  CHECK_ARGUMENT(dataset != NULL && array != NULL, "the dataset or the array is NULL");
  tegula_load_options local;
  tegula_load_options_init(&local);
  FORWARD(tegula__load_options_copy(&local, options, err));
  CHECK_ARGUMENT(local.origin == NULL ||
                     (local.origin_ndim >= 0 && local.origin_ndim <= TEGULA_MAX_DIMS),
                 "origin_ndim must be 0 to 64");
  FORWARD(tegula__later_end_of_array(array->context, array, "tegula_load_async", err));
  operation *o = new_operation(run_load, array);
  if (o == NULL) return tegula__out_of_memory(err, sizeof *o);
  o->dataset = tegula__dataset_retain(dataset);
  o->op.touch.array_changes = true;
  o->op.touch.places = &dataset->places;
  o->load = local;
  if (local.origin != NULL) {
    if (local.origin_ndim > 0)
      memcpy(o->origin, local.origin, (size_t)local.origin_ndim * sizeof *o->origin);
    o->load.origin = o->origin;
  }
  tegula__queue_watch(&o->op, &o->load.progress, &o->load.progress_state);
  tegula_status status = note_call(o, err);
  /* where the array's saves are */
  if (status == TEGULA_OK) return submit(array->context, o, out, err);
  release_operation(&o->op);
  return status;
}

/* A text of the options, kept until the operation has ended; false: no memory. */
static bool keep_text(const char **text, char **kept) {
  if (*text == NULL) return true;
  *kept = strdup(*text);
  *text = *kept;
  return *kept != NULL;
}

/* The same for `count` items. */
static bool keep_items(const void *from, int64_t count, size_t size, const void **kept) {
  if (from == NULL) return true;
  size_t items = count > 0 ? (size_t)count : 0;
  void *copy = calloc(items > 0 ? items : 1, size > 0 ? size : 1);
  if (copy != NULL && size > 0) memcpy(copy, from, items * size); /* calloc has seen that it fits */
  *kept = copy;
  return copy != NULL;
}

static bool keep_texts(const tegula_attribute *from, tegula_attribute *to) {
  if (from->texts == NULL) return true;
  const char **texts = calloc(from->count > 0 ? (size_t)from->count : 1, sizeof *texts);
  bool kept = texts != NULL;
  to->texts = texts;
  for (int64_t i = 0; kept && i < from->count; i++)
    if (from->texts[i] != NULL) kept = (texts[i] = strdup(from->texts[i])) != NULL;
  return kept;
}

static bool keep_attribute(const tegula_attribute *from, tegula_attribute *to) {
  tegula_dtype dtype = {0}; /* an unknown type is refused before a value is looked at */
  if (from->values != NULL && from->type != NULL &&
      tegula_dtype_parse(from->type, &dtype, NULL) != TEGULA_OK)
    dtype.item_size = 0;
  *to = (tegula_attribute){
      .struct_size = from->struct_size, .ndim = from->ndim, .count = from->count};
  return (from->name == NULL || (to->name = strdup(from->name)) != NULL) &&
         (from->type == NULL || (to->type = strdup(from->type)) != NULL) &&
         (from->omitted == NULL || (to->omitted = strdup(from->omitted)) != NULL) &&
         keep_items(from->shape, from->ndim, sizeof *from->shape, (const void **)&to->shape) &&
         keep_items(from->values, from->count, (size_t)dtype.item_size, &to->values) &&
         keep_texts(from, to);
}

static bool keep_attributes(operation *o) {
  const tegula_attribute *from = o->save.attributes;
  if (from == NULL || o->save.attribute_count <= 0) return true;
  o->attributes = calloc((size_t)o->save.attribute_count, sizeof *o->attributes);
  o->save.attributes = o->attributes;
  bool kept = o->attributes != NULL;
  for (int64_t i = 0; kept && i < o->save.attribute_count; i++)
    kept = keep_attribute(&from[i], &o->attributes[i]);
  return kept;
}

static bool keep_settings(operation *o) {
  const tegula_setting *from = o->save.settings;
  if (from == NULL || o->save.setting_count <= 0) return true;
  o->settings = calloc((size_t)o->save.setting_count, sizeof *o->settings);
  o->save.settings = o->settings;
  bool kept = o->settings != NULL;
  for (int32_t i = 0; kept && i < o->save.setting_count; i++)
    kept = (from[i].key == NULL || (o->settings[i].key = strdup(from[i].key)) != NULL) &&
           (from[i].value == NULL || (o->settings[i].value = strdup(from[i].value)) != NULL);
  return kept;
}

static bool keep_fill(operation *o) {
  if (!keep_items(o->save.fill, 1, (size_t)o->array->memory.dtype.item_size, &o->fill))
    return false;
  o->save.fill = o->fill;
  return true;
}

static bool keep_save_options(operation *o) {
  tegula_save_options *save = &o->save;
  if (save->chunk != NULL && save->chunk_ndim > 0) {
    memcpy(o->chunk, save->chunk, (size_t)save->chunk_ndim * sizeof *o->chunk);
    save->chunk = o->chunk;
  }
  return keep_text(&save->format, &o->format) && keep_text(&save->descr, &o->descr) &&
         keep_text(&save->dataset, &o->target) && keep_text(&save->layout, &o->layout) &&
         keep_text(&save->codec, &o->codec) && keep_fill(o) && keep_attributes(o) &&
         keep_settings(o);
}

static tegula_status take_save(operation *o, const char *path, const tegula_save_options *options,
                               tegula_error *err) {
  tegula_save_options_init(&o->save);
  FORWARD(tegula__options_copy(&o->save, sizeof o->save, FIRST_SAVE_OPTIONS, options,
                               "tegula_save_options", err));
  CHECK_ARGUMENT(o->save.chunk == NULL ||
                     (o->save.chunk_ndim >= 0 && o->save.chunk_ndim <= TEGULA_MAX_DIMS),
                 "chunk_ndim must be 0 to 64");
  o->path = tegula__io_rooted(path); /* the program may go into another folder before it is saved */
  tegula__queue_watch(&o->op, &o->save.progress, &o->save.progress_state);
  if (!keep_save_options(o) || o->path == NULL)
    return tegula__out_of_memory(err, (int64_t)strlen(path));
  return tegula__places_of(&path, 1, o->later != NULL ? &o->later->places : &o->places, err);
}

static bool is_on_ranks(const tegula_context *context) { return context->comm->size > 1; }

static operation *new_save(const tegula_array *array, const char *path) {
  operation *o = new_operation(run_save, array);
  if (o == NULL) return NULL;
  if (!is_on_ranks(array->context)) {
    o->op.touch.places = &o->places;
    o->op.touch.places_change = true;
    return o;
  }
  o->later = calloc(1, sizeof *o->later);
  o->said = strdup(path);
  if (o->later != NULL) *o->later = (tegula__later){.array = o->array, .said = o->said};
  if (o->later != NULL && o->said != NULL) return o;
  release_operation(&o->op);
  return NULL;
}

/* All ranks begin together. */
static tegula_status start_on_ranks(operation *o, tegula_status status, tegula_op **out,
                                    tegula_error *err) {
  bool queued = false;
  status = tegula__later_begin(o->later, o->path, &o->save, status, err);
  if (status == TEGULA_OK) {
    status = tegula__queue_submit(o->array->context->queue, &o->op, err);
    queued = status == TEGULA_OK;
    status = tegula__later_queued(o->later, &o->op, status, err);
  }
  if (status == TEGULA_OK)
    hand_over(o, out);
  else if (queued)
    tegula__queue_forget(&o->op);
  else
    release_operation(&o->op);
  return status;
}

tegula_status tegula_save_async(const tegula_array *array, const char *path,
                                const tegula_save_options *options, tegula_op **out,
                                tegula_error *err) {
  CHECK_ARGUMENT(array != NULL && path != NULL && path[0] != '\0',
                 "the array is NULL or the path is empty");
  tegula_error unwanted;
  if (err == NULL) err = &unwanted;
  operation *o = new_save(array, path);
  if (o == NULL)
    return tegula__comm_agree(array->context->comm, tegula__out_of_memory(err, sizeof *o), err);
  tegula_status status = take_save(o, path, options, err);
  if (o->later != NULL) return start_on_ranks(o, status, out, err);
  if (status == TEGULA_OK) return submit(array->context, o, out, err);
  release_operation(&o->op);
  return status;
}

tegula_status tegula_op_wait(tegula_op *op, int64_t timeout_ns, tegula_error *err) {
  CHECK_ARGUMENT(op != NULL, "the operation is NULL");
  tegula_error unwanted; /* by this rank */
  if (err == NULL) err = &unwanted;
  const operation *o = (const operation *)op; /* programs have no others */
  if (o->later != NULL) return tegula__later_wait(o->later, "tegula_op_wait", timeout_ns, err);
  tegula_status status = tegula__queue_wait(op, timeout_ns, err);
  return o->call != NULL ? tegula__comm_agree_call(o->dataset->context->comm, o->call, status, err)
                         : status;
}

void tegula_op_cancel(tegula_op *op) {
  if (op != NULL) tegula__queue_cancel(op);
}

int32_t tegula_op_ended(const tegula_op *op) {
  const operation *o = (const operation *)op;
  RETURN_IF(op == NULL, 1);
  return o->later != NULL ? o->later->ended : tegula__queue_ended(op);
}

void tegula_op_destroy(tegula_op *op) {
  if (op != NULL) tegula__queue_forget(op);
}

tegula_status tegula_fence(tegula_context *context, tegula_error *err) {
  CHECK_ARGUMENT(context != NULL, "the context is NULL");
  tegula__call call;
  tegula_error unwanted; /* by this rank */
  if (err == NULL) err = &unwanted;
  tegula__call_init(&call, "tegula_fence");
  FORWARD(tegula__later_end_all(context, call.name, err));
  tegula_status status = tegula__queue_fence(context->queue, err);
  return context->comm->size > 1 ? tegula__comm_agree_call(context->comm, &call, status, err)
                                 : status;
}
