/* Elements that have parts: records (compound types), arrays, and what is in them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of a record are those of the file, so its description says what stands where, as numpy
 * writes it. A member that has no dtype of numpy stands there as ('name', '|O16'), with its size in
 * the file, and is refused by name.
 *
 * libhdf5 tells types as they are in memory, where texts of variable length and references have
 * other sizes than in the file; members behind them are moved. Here they are moved back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "read/hdf5_read.h"
#include "read/record_text.h"

enum { DEEPEST = 24, MOST_NAMED = 8, MOST_TEXTS = 4096 };

/* numpy's own limit of an item */
#define MOST_BYTES ((size_t)INT32_MAX)

typedef struct walk {
  hdf5_library *library;
  size_t address_width;
  hdf5_words descr, refused;
  int64_t refusals;
  const char *wrong; /* why nothing of it can be loaded; NULL: something can */
  int depth;
  bool building; /* the type of what can be loaded; else only the description */
  size_t base;   /* where the record that is walked through begins in the outermost */
  tegula_plugin_text *texts;
  int64_t text_count, text_capacity;
} walk;

typedef struct member {
  unsigned index;
  size_t offset;
} member;

/* Where a member is: its name behind those of the records that it is in. */
typedef struct place {
  const struct place *outer;
  const char *name;
} place;

static bool fail(walk *w, const char *wrong) {
  if (!w->wrong) w->wrong = wrong;
  return false;
}

/* ---- sizes in the file ---- */

/* Of a member that is refused. */
static size_t stored_size(const walk *w, hid_t type) {
  const hdf5_functions *call = &w->library->call;
  size_t size = call->H5Tget_size(type), heap = w->address_width + 4;
  int class = call->H5Tget_class(type);
  if (class == HDF5_VLEN || (class == HDF5_STRING && call->H5Tis_variable_str(type) > 0))
    return 4 + heap;
  if (class != HDF5_REFERENCE) return size;
  /* to an object, to a region; else the form of 1.12 */
  return size == 8 ? w->address_width : size == 12 ? heap : 6 + heap;
}

/* ---- members ---- */

static void put_path(hdf5_words *out, const place *at) {
  if (at->outer) {
    put_path(out, at->outer);
    hdf5_words_put(out, ".");
  }
  hdf5_words_put(out, at->name);
}

/* Notes a member that cannot be loaded. */
static void refuse(walk *w, const place *at, const char *why) {
  w->refusals++;
  if (w->refusals > MOST_NAMED) return;
  hdf5_words_put(&w->refused, w->refusals > 1 ? ", \"" : "\"");
  put_path(&w->refused, at);
  hdf5_words_put(&w->refused, "\" (");
  hdf5_words_put(&w->refused, why);
  hdf5_words_put(&w->refused, ")");
}

/* True where numpy has a dtype with the bytes of the stored type. */
static bool is_plain(walk *w, hid_t type, hdf5_type *out, char *why, size_t room) {
  if (!hdf5_type_of(w->library, type, out, why, room)) return false;
  if (out->converted)
    snprintf(why, room, "numbers in a form that numpy has not");
  else if (out->dtype.kind == 'E')
    snprintf(why, room, "bfloat16, which numpy has not");
  return !out->converted && out->dtype.kind != 'E';
}

static bool put_record(walk *w, hid_t type, const place *at, size_t *size, hid_t *made);

/* `dims`: the lengths of array types, or none. */
static void put_lengths(walk *w, const hdf5_inner *dims) {
  if (dims->ndim == 0) return;
  hdf5_words_put(&w->descr, ", (");
  for (int k = 0; k < dims->ndim; k++)
    hdf5_words_print(&w->descr, k > 0 ? ", %lld" : "%lld", (long long)dims->shape[k]);
  hdf5_words_put(&w->descr, dims->ndim == 1 ? ",)" : ")");
}

/* Notes texts that are padded otherwise than by zeros. */
static bool add_text(walk *w, const tegula_plugin_text *text) {
  if (w->text_count == MOST_TEXTS) return fail(w, "records with more than 4096 texts");
  if (w->text_count == w->text_capacity) {
    int64_t capacity = 2 * w->text_capacity + 8;
    tegula_plugin_text *texts = realloc(w->texts, (size_t)capacity * sizeof *texts);
    w->descr.failed = w->descr.failed || !texts;
    if (!texts) return false;
    w->texts = texts;
    w->text_capacity = capacity;
  }
  w->texts[w->text_count++] = *text;
  return true;
}

/* Those from `first` on are in an array of records: again in each of the others. */
static bool repeat_texts(walk *w, int64_t first, int64_t count, size_t size) {
  int64_t last = w->text_count;
  for (int64_t k = 1; k < count; k++)
    for (int64_t i = first; i < last; i++) {
      tegula_plugin_text text = w->texts[i];
      text.offset += k * (int64_t)size;
      if (!add_text(w, &text)) return false;
    }
  return true;
}

/* Refused ones are one item, however many they are. */
static bool put_scalar(walk *w, hid_t type, const hdf5_inner *dims, const place *at, size_t *size) {
  hdf5_type scalar;
  char why[256], text[TEGULA_DTYPE_TEXT];
  if (!is_plain(w, type, &scalar, why, sizeof why)) {
    *size = stored_size(w, type) * (size_t)dims->count;
    hdf5_words_print(&w->descr, "'|O%zu'", *size);
    refuse(w, at, why);
    return *size <= MOST_BYTES || fail(w, "records of more than 2 GiB");
  }
  scalar.dtype.order = (uint8_t)scalar.order;
  w->library->host->dtype_format(scalar.dtype, text);
  hdf5_words_print(&w->descr, "'%s'", text);
  put_lengths(w, dims);
  *size = scalar.dtype.item_size * (size_t)dims->count;
  const tegula_plugin_text padded = {.offset = (int64_t)w->base,
                                     .count = dims->count,
                                     .stride = scalar.dtype.item_size,
                                     .size = scalar.dtype.item_size,
                                     .padding = scalar.padding};
  return !scalar.padding || add_text(w, &padded);
}

static bool is_complex(walk *w, hid_t type) {
  hdf5_type scalar;
  char why[256];
  return is_plain(w, type, &scalar, why, sizeof why);
}

/* Takes `base`. */
static hid_t array_of(walk *w, hid_t base, const hdf5_inner *dims) {
  if (base < 0 || dims->ndim == 0) return base;
  hid_t out = hdf5_array_make(w->library, base, dims);
  w->library->call.H5Tclose(base);
  if (out < 0) fail(w, "an array type that libhdf5 cannot make");
  return out;
}

/* A format and, for arrays, a shape; `size` is that in the file. `made`: what can be loaded of it;
 * -1: nothing. */
static bool put_format(walk *w, hid_t type, const place *at, size_t *size, hid_t *made) {
  const hdf5_functions *call = &w->library->call;
  hdf5_inner dims;
  hid_t base;
  if (!hdf5_array_base(w->library, type, &base, &dims))
    return fail(w, "an array type that libhdf5 cannot read");
  bool record = call->H5Tget_class(base) == HDF5_COMPOUND && !is_complex(w, base), good;
  int64_t texts = w->text_count;
  if (record) {
    good = put_record(w, base, at, size, made) && repeat_texts(w, texts, dims.count, *size);
    *made = array_of(w, *made, &dims);
    put_lengths(w, &dims);
    if (good && __builtin_mul_overflow(*size, (size_t)dims.count, size))
      good = fail(w, "records of more than 2 GiB");
  } else {
    int64_t refusals = w->refusals;
    good = put_scalar(w, base, &dims, at, size);
    if (w->building && w->refusals == refusals) *made = call->H5Tcopy(type);
  }
  call->H5Tclose(base);
  return good;
}

/* `into`: the type that is built, in which the member stands at `offset`. */
static bool put_member(walk *w, hid_t type, unsigned index, const place *outer, hid_t into,
                       size_t offset, size_t *memory, size_t *size) {
  const hdf5_functions *call = &w->library->call;
  char *name = call->H5Tget_member_name(type, index);
  hid_t part = call->H5Tget_member_type(type, index), made = -1;
  bool good = name && part >= 0 && name[0];
  if (!good) fail(w, "records with a member without a name");
  if (good) {
    place at = {outer, name};
    *memory = call->H5Tget_size(part);
    hdf5_words_put(&w->descr, "(");
    hdf5_words_quote(&w->descr, name);
    hdf5_words_put(&w->descr, ", ");
    w->base += offset;
    good = put_format(w, part, &at, size, &made);
    w->base -= offset;
    hdf5_words_put(&w->descr, ")");
    if (good && made >= 0 && call->H5Tinsert(into, name, offset, made) < 0)
      good = fail(w, "records that libhdf5 cannot make");
  }
  if (made >= 0) call->H5Tclose(made);
  if (part >= 0) call->H5Tclose(part);
  if (name) call->H5free_memory(name);
  return good;
}

/* numpy's name of bytes between members. */
static void put_padding(walk *w, size_t bytes, bool first) {
  if (bytes > 0) hdf5_words_print(&w->descr, first ? "('', '|V%zu')" : ", ('', '|V%zu')", bytes);
}

static int by_offset(const void *a, const void *b) {
  const member *x = a, *y = b;
  return (x->offset > y->offset) - (x->offset < y->offset);
}

/* All members in the order of their bytes. `moved`: how much longer those so far are in memory. */
static bool put_members(walk *w, hid_t type, const member *members, unsigned count, const place *at,
                        hid_t into, size_t *size) {
  size_t end = 0, whole = w->library->call.H5Tget_size(type);
  int64_t moved = 0;
  for (unsigned i = 0; i < count; i++) {
    size_t memory, stored, offset = members[i].offset;
    int64_t refusals = w->refusals;
    if (offset < end) return fail(w, "records whose members overlap");
    if (offset >= whole) return fail(w, "records with members behind their end");
    put_padding(w, offset - end, i == 0);
    if (i > 0 || offset > end) hdf5_words_put(&w->descr, ", ");
    if (!put_member(w, type, members[i].index, at, into, (size_t)((int64_t)offset - moved), &memory,
                    &stored))
      return false;
    if (memory > whole - offset) return fail(w, "records with members behind their end");
    if (memory != stored && refusals == w->refusals) return fail(w, "records that are damaged");
    end = offset + memory;
    moved += (int64_t)memory - (int64_t)stored;
  }
  put_padding(w, whole - end, false);
  *size = (size_t)((int64_t)whole - moved);
  return true;
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* False where two members have one name: a damaged file may say so, and numpy has no such
 * records. */
static bool names_differ(walk *w, hid_t type, unsigned count) {
  const hdf5_functions *call = &w->library->call;
  char **names = calloc(count, sizeof *names);
  bool good = names != NULL;
  if (!good) w->descr.failed = true;
  for (unsigned i = 0; good && i < count; i++)
    good = (names[i] = call->H5Tget_member_name(type, i)) || fail(w, "records that are damaged");
  if (good) qsort(names, count, sizeof *names, by_name);
  for (unsigned i = 1; good && i < count; i++)
    good = strcmp(names[i - 1], names[i]) != 0 || fail(w, "records with two members of one name");
  for (unsigned i = 0; names && i < count; i++)
    if (names[i]) call->H5free_memory(names[i]);
  free(names);
  return good;
}

/* An empty record in which there is room for `count` members, however long they are in the file. */
static hid_t start_type(walk *w, hid_t type, int count) {
  size_t room = 4 * w->library->call.H5Tget_size(type) + 32 * (size_t)count;
  return w->building ? w->library->call.H5Tcreate(HDF5_COMPOUND, room) : -1;
}

/* -1 where it has no members. Takes `type`. */
static hid_t end_type(walk *w, hid_t type, bool good, size_t size) {
  const hdf5_functions *call = &w->library->call;
  if (type < 0) return -1;
  if (good && call->H5Tget_nmembers(type) > 0 && call->H5Tset_size(type, size) >= 0) return type;
  call->H5Tclose(type);
  return -1;
}

static bool put_record(walk *w, hid_t type, const place *at, size_t *size, hid_t *made) {
  const hdf5_functions *call = &w->library->call;
  int count = call->H5Tget_nmembers(type);
  if (count <= 0) return fail(w, "records without members");
  if (w->depth == DEEPEST) return fail(w, "records within records, more than 24 deep");
  if (call->H5Tget_size(type) > MOST_BYTES) return fail(w, "records of more than 2 GiB");
  member *members = calloc((size_t)count, sizeof *members);
  if (!members) w->descr.failed = true;
  bool good = members && names_differ(w, type, (unsigned)count);
  for (unsigned i = 0; good && i < (unsigned)count; i++)
    members[i] = (member){i, call->H5Tget_member_offset(type, i)};
  hid_t into = start_type(w, type, count);
  w->depth++;
  hdf5_words_put(&w->descr, "[");
  if (good) {
    qsort(members, (size_t)count, sizeof *members, by_offset);
    good = put_members(w, type, members, (unsigned)count, at, into, size);
  }
  hdf5_words_put(&w->descr, "]");
  w->depth--;
  *made = end_type(w, into, good, *size);
  free(members);
  return good;
}

/* ---- the whole ---- */

/* A sentence about what cannot be loaded; NULL: nothing is refused. */
static char *refusal_of(walk *w) {
  if (w->refusals == 0) return NULL;
  hdf5_words text = {0};
  hdf5_words_put(&text, w->refusals == 1 ? "a member of its records cannot be loaded: "
                                         : "members of its records cannot be loaded: ");
  if (w->refused.data) hdf5_words_put(&text, w->refused.data);
  if (w->refusals > MOST_NAMED)
    hdf5_words_print(&text, " and %lld more", (long long)(w->refusals - MOST_NAMED));
  w->refused.failed = w->refused.failed || text.failed;
  return text.data;
}

/* The type of what can be loaded, where not all can. */
static hid_t readable(const walk *described, hid_t type) {
  walk w = {
      .library = described->library, .address_width = described->address_width, .building = true};
  size_t size = 0;
  hid_t made = -1;
  bool good = put_record(&w, type, NULL, &size, &made);
  free(w.descr.data);
  free(w.refused.data);
  free(w.texts);
  if (good || made < 0) return made;
  w.library->call.H5Tclose(made);
  return -1;
}

static bool keep_record(walk *w, hdf5_type *out, size_t size, char *refused, hid_t type) {
  hdf5_record *record = calloc(1, sizeof *record);
  if (!record) {
    w->descr.failed = true;
    return false;
  }
  *record = (hdf5_record){.references = 1, .library = w->library, .readable = type};
  record->texts = w->texts;
  record->text_count = w->text_count;
  w->texts = NULL;
  record->descr = w->descr.data;
  record->refused = refused;
  out->record = record;
  out->order = '|';
  out->dtype = (tegula_dtype){.kind = 'V', .order = '|', .item_size = (uint32_t)size};
  return true;
}

static bool record_of(walk *w, hid_t type, hdf5_type *out, char *why, size_t room) {
  size_t size = 0;
  hid_t made = -1;
  bool good = put_record(w, type, NULL, &size, &made);
  if (good && size > MOST_BYTES) good = fail(w, "records of more than 2 GiB");
  if (good && w->refusals > 0) {
    made = readable(w, type);
    good = made >= 0;
  }
  char *refused = good ? refusal_of(w) : NULL;
  good = good && !w->descr.failed && !w->refused.failed && keep_record(w, out, size, refused, made);
  if (!good) {
    if (w->descr.failed || w->refused.failed)
      snprintf(why, room, "records for whose description there is no memory");
    else if (!w->wrong)
      snprintf(why, room, "records of which nothing can be loaded: %s",
               w->refused.data ? w->refused.data : "they are damaged");
    else
      snprintf(why, room, "%s", w->wrong);
    if (made >= 0) w->library->call.H5Tclose(made);
    free(w->descr.data);
    free(refused);
  }
  free(w->refused.data);
  free(w->texts);
  return good;
}

hdf5_record *hdf5_record_retain(hdf5_record *record) {
  if (record) record->references++;
  return record;
}

void hdf5_record_release(hdf5_record *record) {
  if (!record || --record->references > 0) return;
  if (record->readable >= 0) record->library->call.H5Tclose(record->readable);
  free(record->descr);
  free(record->refused);
  free(record->texts);
  free(record);
}

/* The element of arrays, whose dtype is known. */
static bool set_inner(hdf5_type *out, const hdf5_inner *dims, char *why, size_t room) {
  out->inner = *dims;
  size_t bytes = 0;
  const char *wrong = NULL;
  if (dims->ndim > 0 && out->converted)
    wrong = "elements that are arrays of numbers in a form that numpy has not";
  else if (__builtin_mul_overflow((size_t)dims->count, (size_t)out->dtype.item_size, &bytes) ||
           bytes > MOST_BYTES)
    wrong = "elements of more than 2 GiB";
  if (wrong) snprintf(why, room, "%s", wrong);
  return !wrong;
}

bool hdf5_element_of(hdf5_library *library, size_t address_width, hid_t type, hdf5_type *out,
                     char *why, size_t room) {
  hdf5_inner dims;
  hid_t base;
  *out = (hdf5_type){0};
  if (!hdf5_array_base(library, type, &base, &dims)) {
    snprintf(why, room, "an array type that libhdf5 cannot read");
    return false;
  }
  walk w = {.library = library, .address_width = address_width};
  bool good = hdf5_type_of(library, base, out, why, room);
  if (!good && library->call.H5Tget_class(base) == HDF5_COMPOUND)
    good = record_of(&w, base, out, why, room);
  good = good && set_inner(out, &dims, why, room);
  library->call.H5Tclose(base);
  if (!good) {
    hdf5_record_release(out->record);
    out->record = NULL;
  }
  return good;
}
