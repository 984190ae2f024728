/* Which dtype a stored type is.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Only what has exactly numpy's bits is read as it is: sizes, bit fields, offsets and byte order
 * are compared. What numpy has a wider type for (integers with padding, odd floats) libhdf5
 * converts. Everything else is refused by its name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "read/hdf5_read.h"

typedef struct float_form {
  size_t size, sign, exponent, exponent_size, mantissa_size, bias;
} float_form;

/* size, position of sign and exponent, length of exponent and mantissa, bias (IEEE 754;
 * bfloat16) */
static const float_form HALF = {2, 15, 10, 5, 10, 15}, SINGLE = {4, 31, 23, 8, 23, 127},
                        DOUBLE = {8, 63, 52, 11, 52, 1023}, BRAIN = {2, 15, 7, 8, 7, 127};

static bool same_form(const float_form *a, const float_form *b) {
  return a->size == b->size && a->sign == b->sign && a->exponent == b->exponent &&
         a->exponent_size == b->exponent_size && a->mantissa_size == b->mantissa_size &&
         a->bias == b->bias;
}

static char order_of(hdf5_library *library, hid_t type) {
  int order = library->call.H5Tget_order(type);
  return order == HDF5_LITTLE ? '<' : order == HDF5_BIG ? '>' : 0;
}

/* Does the type fill all its bits? */
static bool whole_bits(hdf5_library *library, hid_t type) {
  return library->call.H5Tget_precision(type) == 8 * library->call.H5Tget_size(type) &&
         library->call.H5Tget_offset(type) == 0;
}

static void set(hdf5_type *out, uint8_t kind, size_t size, char order) {
  bool plain = size == 1 || kind == 'S' || kind == 'V' || kind == 'b';
  out->dtype = (tegula_dtype){
      .kind = kind, .order = plain ? '|' : (uint8_t)HDF5_NATIVE_ORDER, .item_size = (uint32_t)size};
  out->order = plain ? '|' : order;
}

static bool refuse(char *why, size_t size, const char *text) {
  snprintf(why, size, "%s", text);
  return false;
}

void hdf5_native_integer(uint8_t kind, size_t size, char out[HDF5_MEMORY_TEXT]) {
  snprintf(out, HDF5_MEMORY_TEXT, "H5T_NATIVE_%sINT%zu_g", kind == 'i' ? "" : "U", 8 * size);
}

static bool integer(hdf5_library *library, hid_t type, hdf5_type *out, char *why, size_t room) {
  size_t size = library->call.H5Tget_size(type);
  bool is_signed =
      library->call.H5Tget_class(type) == HDF5_INTEGER && library->call.H5Tget_sign(type) == 1;
  bool whole = whole_bits(library, type) && (size == 1 || size == 2 || size == 4 || size == 8);
  char order = order_of(library, type);
  if (whole && (order || size == 1)) {
    set(out, is_signed ? 'i' : 'u', size, order);
    return true;
  }
  size_t bits = library->call.H5Tget_precision(type);
  bool field = library->call.H5Tget_class(type) == HDF5_BITFIELD;
  if (bits > 64 || field) {
    snprintf(why, room, "%s of %zu bits in %zu bytes, which no dtype holds",
             field ? "bit fields" : "integers", bits, size);
    return false;
  }
  size_t wide = size <= 1 ? 1 : size <= 2 ? 2 : size <= 4 ? 4 : 8;
  set(out, is_signed ? 'i' : 'u', wide, HDF5_NATIVE_ORDER);
  out->converted = true;
  /* of integers of one size libhdf5 exchanges all bytes, those of the padding too, and is done: so
   * it converts within a byte order */
  out->swapped = order && order != HDF5_NATIVE_ORDER;
  hdf5_native_integer(out->dtype.kind, wide, out->memory);
  return true;
}

static bool read_form(hdf5_library *library, hid_t type, float_form *out) {
  size_t mantissa = 0;
  *out = (float_form){.size = library->call.H5Tget_size(type),
                      .bias = library->call.H5Tget_ebias(type)};
  if (library->call.H5Tget_fields(type, &out->sign, &out->exponent, &out->exponent_size, &mantissa,
                                  &out->mantissa_size) < 0)
    return false;
  return mantissa == 0 && library->call.H5Tget_norm(type) == 0 /* implied leading bit */ &&
         whole_bits(library, type);
}

/* Is every number of the one form, the smallest and the largest too, exactly one of the other? */
static bool fits_in(const float_form *form, const float_form *wide) {
  if (form->exponent_size > wide->exponent_size || form->mantissa_size > wide->mantissa_size ||
      form->bias > wide->bias)
    return false;
  return (1U << form->exponent_size) + wide->bias <= (1U << wide->exponent_size) + form->bias;
}

static bool floating(hdf5_library *library, hid_t type, hdf5_type *out, char *why, size_t room) {
  float_form form;
  char order = order_of(library, type);
  bool usual = read_form(library, type, &form) && order;
  bool brain = same_form(&form, &BRAIN);
  if (usual && (brain || same_form(&form, &HALF) || same_form(&form, &SINGLE) ||
                same_form(&form, &DOUBLE))) {
    set(out, brain ? 'E' : 'f', form.size, order);
    return true;
  }
  if (form.exponent_size == 0 || !fits_in(&form, &DOUBLE)) {
    snprintf(why, room,
             "floating-point numbers of %zu bytes with %zu bits of exponent (bias %zu) and %zu of "
             "mantissa, which no dtype holds",
             form.size, form.exponent_size, form.bias, form.mantissa_size);
    return false;
  }
  bool single = fits_in(&form, &SINGLE);
  set(out, 'f', single ? 4 : 8, HDF5_NATIVE_ORDER);
  out->converted = true;
  snprintf(out->memory, sizeof out->memory, "H5T_NATIVE_%s_g", single ? "FLOAT" : "DOUBLE");
  return true;
}

static bool member_is(hdf5_library *library, hid_t type, unsigned index, const char *a,
                      const char *b) {
  char *name = library->call.H5Tget_member_name(type, index);
  bool same = name && (strcmp(name, a) == 0 || (b && strcmp(name, b) == 0));
  if (name) library->call.H5free_memory(name);
  return same;
}

/* {FALSE = 0, TRUE = 1} of one byte is how h5py stores numpy's bool. */
static bool is_bool(hdf5_library *library, hid_t type, hid_t base) {
  const hdf5_functions *call = &library->call;
  unsigned char values[2] = {9, 9};
  return call->H5Tget_size(base) == 1 && call->H5Tget_nmembers(type) == 2 &&
         member_is(library, type, 0, "FALSE", NULL) && member_is(library, type, 1, "TRUE", NULL) &&
         call->H5Tget_member_value(type, 0, &values[0]) >= 0 &&
         call->H5Tget_member_value(type, 1, &values[1]) >= 0 && values[0] == 0 && values[1] == 1;
}

static bool enumeration(hdf5_library *library, hid_t type, hdf5_type *out, char *why, size_t room) {
  hid_t base = library->call.H5Tget_super(type);
  bool good = base >= 0 && integer(library, base, out, why, room);
  if (base < 0) refuse(why, room, "an enumeration without a base type");
  if (good && out->converted) good = refuse(why, room, "an enumeration of integers with padding");
  if (good && is_bool(library, type, base)) set(out, 'b', 1, '|');
  if (base >= 0) library->call.H5Tclose(base);
  return good;
}

/* `size` bytes hold two parts without gaps. Halves and odd floats are widened like single ones,
 * halves to float32. */
static bool complex_pair(hdf5_library *library, hid_t part, size_t size, hdf5_type *out, char *why,
                         size_t room) {
  const hdf5_functions *call = &library->call;
  if (call->H5Tget_class(part) != HDF5_FLOAT)
    return refuse(why, room, "complex numbers whose parts are no floats");
  if (!floating(library, part, out, why, room)) return false;
  if (size != 2 * call->H5Tget_size(part)) {
    snprintf(why, room, "complex numbers of %zu bytes with parts of %zu", size,
             call->H5Tget_size(part));
    return false;
  }
  bool small = out->dtype.item_size < 4;
  if (small) snprintf(out->memory, sizeof out->memory, "H5T_NATIVE_FLOAT_g");
  out->converted = out->converted || small;
  set(out, 'c', small ? 8 : 2 * (size_t)out->dtype.item_size,
      out->converted ? HDF5_NATIVE_ORDER : out->order);
  return true;
}

static bool compound(hdf5_library *library, hid_t type, hdf5_type *out, char *why, size_t room) {
  const hdf5_functions *call = &library->call;
  size_t size = call->H5Tget_size(type);
  bool pair = call->H5Tget_nmembers(type) == 2 && member_is(library, type, 0, "r", "real") &&
              member_is(library, type, 1, "i", "imag");
  if (!pair) return refuse(why, room, "a compound type, which is no complex number");
  hid_t first = call->H5Tget_member_type(type, 0), second = call->H5Tget_member_type(type, 1);
  bool good = first >= 0 && second >= 0 && call->H5Tequal(first, second) > 0 &&
              call->H5Tget_member_offset(type, 0) == 0 &&
              call->H5Tget_member_offset(type, 1) == size / 2;
  if (!good)
    refuse(why, room,
           "a compound {r, i} whose parts differ or have gaps, which is no complex number");
  good = good && complex_pair(library, first, size, out, why, room);
  if (first >= 0) call->H5Tclose(first);
  if (second >= 0) call->H5Tclose(second);
  return good;
}

static bool native_complex(hdf5_library *library, hid_t type, hdf5_type *out, char *why,
                           size_t room) {
  hid_t part = library->call.H5Tget_super(type);
  bool good =
      part >= 0 && complex_pair(library, part, library->call.H5Tget_size(type), out, why, room);
  if (part < 0) refuse(why, room, "a complex type without parts");
  if (part >= 0) library->call.H5Tclose(part);
  return good;
}

static bool sized(hdf5_library *library, hid_t type, uint8_t kind, hdf5_type *out, char *why,
                  size_t room) {
  size_t size = library->call.H5Tget_size(type);
  if (size == 0 || size > INT32_MAX)
    return refuse(why, room, "elements of no bytes, or of more than 2 GiB");
  set(out, kind, size, '|');
  return true;
}

#define NUMPY_TAG "NUMPY:"

/* h5py stores what HDF5 has no type for (times, text in UCS-4) as opaque bytes, and notes numpy's
 * dtype in their tag. */
static bool opaque(hdf5_library *library, hid_t type, hdf5_type *out, char *why, size_t room) {
  if (!sized(library, type, 'V', out, why, room)) return false;
  char *tag = library->call.H5Tget_tag(type);
  tegula_dtype noted;
  bool numpy = tag && strncmp(tag, NUMPY_TAG, sizeof NUMPY_TAG - 1) == 0 &&
               library->host->dtype_parse(tag + sizeof NUMPY_TAG - 1, &noted, NULL) == TEGULA_OK;
  if (tag) library->call.H5free_memory(tag);
  if (!numpy || noted.item_size != out->dtype.item_size || !strchr("MmU", noted.kind)) return true;
  out->order = (char)noted.order;
  out->dtype = noted;
  out->dtype.order = HDF5_NATIVE_ORDER;
  return true;
}

/* H5T_str_t */
static char text_padding(int kind) { return kind == 0 ? '0' : kind == 2 ? ' ' : 0; }

bool hdf5_type_of(hdf5_library *library, hid_t type, hdf5_type *out, char *why, size_t room) {
  *out = (hdf5_type){0};
  switch (library->call.H5Tget_class(type)) {
    case HDF5_INTEGER:
    case HDF5_BITFIELD:
      return integer(library, type, out, why, room);
    case HDF5_FLOAT:
      return floating(library, type, out, why, room);
    case HDF5_ENUM:
      return enumeration(library, type, out, why, room);
    case HDF5_COMPLEX:
      return native_complex(library, type, out, why, room);
    case HDF5_COMPOUND:
      return compound(library, type, out, why, room);
    case HDF5_OPAQUE:
      return opaque(library, type, out, why, room);
    case HDF5_STRING:
      if (library->call.H5Tis_variable_str(type) != 0)
        return refuse(why, room, "strings of variable length");
      if (!sized(library, type, 'S', out, why, room)) return false;
      out->padding = text_padding(library->call.H5Tget_strpad(type));
      return true;
    case HDF5_VLEN:
      return refuse(why, room, "sequences of variable length");
    case HDF5_REFERENCE:
      return refuse(why, room, "references to other objects");
    case HDF5_ARRAY:
      return refuse(why, room, "elements that are arrays themselves");
    case HDF5_TIME:
      return refuse(why, room, "the HDF5 time type");
    default:
      return refuse(why, room, "a type that this release does not know");
  }
}

bool hdf5_array_base(hdf5_library *library, hid_t type, hid_t *base, hdf5_inner *out) {
  const hdf5_functions *call = &library->call;
  hsize_t lengths[HDF5_MAX_RANK];
  *out = (hdf5_inner){.count = 1};
  *base = call->H5Tcopy(type);
  while (*base >= 0 && call->H5Tget_class(*base) == HDF5_ARRAY) {
    int ndim = call->H5Tget_array_ndims(*base);
    bool good = ndim > 0 && ndim <= HDF5_MAX_RANK - out->ndim &&
                call->H5Tget_array_dims2(*base, lengths) >= 0;
    for (int k = 0; good && k < ndim; k++) {
      good = lengths[k] > 0 && lengths[k] <= INT32_MAX &&
             !__builtin_mul_overflow(out->count, (int64_t)lengths[k], &out->count);
      out->shape[out->ndim++] = (int64_t)lengths[k];
    }
    hid_t inner = good ? call->H5Tget_super(*base) : -1;
    call->H5Tclose(*base);
    *base = inner;
  }
  return *base >= 0;
}

hid_t hdf5_array_make(hdf5_library *library, hid_t base, const hdf5_inner *dims) {
  hsize_t lengths[HDF5_MAX_RANK];
  for (int k = 0; k < dims->ndim; k++) lengths[k] = (hsize_t)dims->shape[k];
  return library->call.H5Tarray_create2(base, (unsigned)dims->ndim, lengths);
}

bool hdf5_type_agrees(hdf5_library *library, hid_t from, hid_t to) {
  const hdf5_functions *call = &library->call;
  if (call->H5Tget_class(to) != HDF5_ENUM) return true;
  if (call->H5Tget_class(from) != HDF5_ENUM) return false;
  hid_t a = call->H5Tget_native_type(from, 1 /* ascending */), b = call->H5Tget_native_type(to, 1);
  bool same = a >= 0 && b >= 0 && call->H5Tequal(a, b) > 0;
  if (a >= 0) call->H5Tclose(a);
  if (b >= 0) call->H5Tclose(b);
  return same;
}

void hdf5_type_swap(tegula_dtype dtype, unsigned char *element) {
  size_t group = dtype.kind == 'c' ? dtype.item_size / 2 : dtype.kind == 'U' ? 4 : dtype.item_size;
  for (size_t at = 0; at < dtype.item_size; at += group)
    for (size_t k = 0; k < group / 2; k++) {
      unsigned char byte = element[at + k];
      element[at + k] = element[at + group - 1 - k];
      element[at + group - 1 - k] = byte;
    }
}

void hdf5_type_swap_all(tegula_dtype dtype, void *elements, int64_t count) {
  unsigned char *bytes = elements;
  for (int64_t i = 0; i < count; i++) hdf5_type_swap(dtype, bytes + i * (int64_t)dtype.item_size);
}
