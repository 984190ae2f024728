/* demo_fill: demonstration values, written into a view or compared with it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * With i = index in C order of the whole array and z(i) = splitmix64's mix of (seed *
 * 0xD1342543DE82EF95 + (i+1) * 0x9E3779B97F4A7C15): integers are z's low bits, bool its top bit, f8
 * (z>>11) * 2^-53, f4 (z>>40) * 2^-24, f2 (z>>53) * 2^-11, bfloat16 (z>>56) * 2^-8; parts of
 * complex numbers are numbers 2i and 2i+1 of the float's sequence. A ramp is i mod 1000: integers
 * keep the low bits, bool is "not 0", bfloat16 rounds to nearest even, complex has imaginary part
 * 0. Values are compared as bytes, so a bool of 2 differs from 1. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "verify/demo_values.h"
#include "verify/hash.h"

enum { PIECE_ELEMENTS = 65536, MAX_ITEM = 16 };

/* ---- the view as a list of axes ---- */

typedef struct demo_axis {
  int64_t extent, index, stride; /* steps in the array's C order and in bytes */
} demo_axis;

typedef struct demo_job {
  const tegula__kernels *kernels;
  tegula__demo_generator maker;
  char *data;
  int64_t index; /* of the element at data */
  int64_t count;
  int32_t ndim; /* at least 1; axes in C order, joined where both steps allow it */
  demo_axis axes[TEGULA_MAX_DIMS + 1];
  bool checking;
  int64_t differs; /* position in the box of the first difference, `count` for none */
} demo_job;

static void job_add_axis(demo_job *job, demo_axis axis) {
  if (axis.extent == 1) return;
  demo_axis *last = job->ndim > 0 ? &job->axes[job->ndim - 1] : NULL;
  if (last && last->index == axis.index * axis.extent &&
      last->stride == axis.stride * axis.extent) {
    last->extent *= axis.extent;
    last->index = axis.index;
    last->stride = axis.stride;
  } else {
    job->axes[job->ndim++] = axis;
  }
}

/* Fills in data, index, count and axes. The box lies within the shape, whose product has been
 * checked. */
static void job_set_axes(demo_job *job, const tegula_view *view, const int64_t *shape) {
  int64_t index_steps[TEGULA_MAX_DIMS];
  tegula__dense_strides(shape, view->box.ndim, 1, 'C', index_steps);
  job->data = view->data;
  job->count = tegula__box_count(view->box.ndim, view->box.lo, view->box.hi);
  for (int32_t k = 0; k < view->box.ndim; k++) {
    job->index += view->box.lo[k] * index_steps[k];
    job_add_axis(
        job, (demo_axis){view->box.hi[k] - view->box.lo[k], index_steps[k], view->stride_bytes[k]});
  }
  if (job->ndim == 0) job->axes[job->ndim++] = (demo_axis){1, 1, job->maker.dtype.item_size};
}

/* ---- runs along the last axis ---- */

static void scatter(char *dst, int64_t stride, const char *values, int64_t count, uint32_t item) {
  if (stride == (int64_t)item) {
    memcpy(dst, values, (size_t)count * item);
    return;
  }
  for (int64_t k = 0; k < count; k++) memcpy(dst + k * stride, values + k * (int64_t)item, item);
}

/* Number of the first element that differs, `count` for none. */
static int64_t first_difference(const char *found, int64_t stride, const char *values,
                                int64_t count, uint32_t item) {
  if (stride == (int64_t)item && memcmp(found, values, (size_t)count * item) == 0) return count;
  for (int64_t k = 0; k < count; k++)
    if (memcmp(found + k * stride, values + k * (int64_t)item, item) != 0) return k;
  return count;
}

/* Writes or compares a run; returns the first that differs, `count` for none. */
static int64_t run_line(const demo_job *job, char *data, int64_t index, int64_t count) {
  const demo_axis *axis = &job->axes[job->ndim - 1];
  char values[TEGULA__DEMO_VALUES * MAX_ITEM];
  for (int64_t k = 0; k < count; k += TEGULA__DEMO_VALUES) {
    int64_t some = tegula__min(TEGULA__DEMO_VALUES, count - k);
    char *at = data + k * axis->stride;
    tegula__demo_generate(&job->maker, job->kernels, index + k * axis->index, axis->index, some,
                          values);
    if (!job->checking) {
      scatter(at, axis->stride, values, some, job->maker.dtype.item_size);
      continue;
    }
    int64_t differs = first_difference(at, axis->stride, values, some, job->maker.dtype.item_size);
    if (differs < some) return k + differs;
  }
  return count;
}

static void note_difference(demo_job *job, int64_t position) {
  int64_t known = __atomic_load_n(&job->differs, __ATOMIC_RELAXED);
  while (position < known)
    if (__atomic_compare_exchange_n(&job->differs, &known, position, true, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED))
      return;
}

/* Where the element at `position` of the box is: its entries in `entry`, address and index. */
static char *locate(const demo_job *job, int64_t position, int64_t *entry, int64_t *index) {
  char *data = job->data;
  *index = job->index;
  for (int32_t k = job->ndim - 1; k >= 0; k--) {
    entry[k] = position % job->axes[k].extent;
    position /= job->axes[k].extent;
    data += entry[k] * job->axes[k].stride;
    *index += entry[k] * job->axes[k].index;
  }
  return data;
}

/* Goes on to the start of the next line. */
static void next_line(const demo_job *job, int64_t *entry, char **data, int64_t *index) {
  for (int32_t k = job->ndim - 1; k > 0; k--) {
    *data += job->axes[k - 1].stride - entry[k] * job->axes[k].stride;
    *index += job->axes[k - 1].index - entry[k] * job->axes[k].index;
    entry[k] = 0;
    if (++entry[k - 1] < job->axes[k - 1].extent) return;
  }
}

static void run_piece(void *opaque, int32_t worker, int64_t item) {
  (void)worker;
  demo_job *job = opaque;
  int64_t position = item * PIECE_ELEMENTS;
  int64_t end = tegula__min(job->count, position + PIECE_ELEMENTS);
  if (position >= __atomic_load_n(&job->differs, __ATOMIC_RELAXED)) return;
  int64_t entry[TEGULA_MAX_DIMS + 1], index;
  char *data = locate(job, position, entry, &index);
  int32_t last = job->ndim - 1;
  while (position < end) {
    int64_t count = tegula__min(job->axes[last].extent - entry[last], end - position);
    int64_t differs = run_line(job, data, index, count);
    if (differs < count) {
      note_difference(job, position + differs);
      return;
    }
    position += count;
    next_line(job, entry, &data, &index);
  }
}

/* ---- saying what differs ---- */

static double half_value(uint16_t bits) {
  int exponent = bits >> 10 & 31;
  double value = (double)(bits & 0x3ff) + (exponent ? 1024 : 0);
  if (exponent == 31) value = bits & 0x3ff ? __builtin_nan("") : __builtin_inf();
  for (int k = exponent ? exponent : 1; k < 25; k++) value /= 2; /* value * 2^(exponent - 25) */
  for (int k = exponent; k > 25; k--) value *= 2;
  return bits & 0x8000 ? -value : value;
}

static void float_text(const char *item, uint32_t size, bool bfloat, char *out, size_t room) {
  uint16_t bits;
  float single;
  double value;
  if (size == 8) {
    memcpy(&value, item, 8);
    snprintf(out, room, "%.17g", value);
  } else if (size == 4) {
    memcpy(&single, item, 4);
    snprintf(out, room, "%.9g", (double)single);
  } else {
    memcpy(&bits, item, 2);
    uint32_t wide = (uint32_t)bits << 16;
    memcpy(&single, &wide, 4);
    snprintf(out, room, "%.5g", bfloat ? (double)single : half_value(bits));
  }
}

static void integer_text(const char *item, uint32_t size, bool is_signed, char *out, size_t room) {
  uint64_t value = 0;
  for (uint32_t k = 0; k < size; k++) {
    uint32_t byte = TEGULA__NATIVE_ORDER == '<' ? k : size - 1 - k;
    value |= (uint64_t)(unsigned char)item[byte] << (8 * k);
  }
  int unused = (int)(64 - 8 * size);
  if (is_signed)
    snprintf(out, room, "%" PRId64, (int64_t)(value << unused) >> unused);
  else
    snprintf(out, room, "%" PRIu64, value);
}

enum { VALUE_TEXT = 80 };

/* One element in the byte order of the dtype, as text. */
static void value_text(const demo_job *job, const char *item, char out[VALUE_TEXT]) {
  tegula_dtype dtype = job->maker.dtype;
  char native[MAX_ITEM];
  tegula__swap_groups(job->kernels, native, item, dtype.item_size, tegula__demo_order_group(dtype));
  if (dtype.kind == 'c') {
    char real[VALUE_TEXT / 2], imaginary[VALUE_TEXT / 2];
    float_text(native, dtype.item_size / 2, false, real, sizeof real);
    float_text(native + dtype.item_size / 2, dtype.item_size / 2, false, imaginary,
               sizeof imaginary);
    snprintf(out, VALUE_TEXT, "(%.36s, %.36s)", real, imaginary);
  } else if (dtype.kind == 'f' || dtype.kind == 'E') {
    float_text(native, dtype.item_size, dtype.kind == 'E', out, VALUE_TEXT);
  } else {
    integer_text(native, dtype.item_size, dtype.kind == 'i', out, VALUE_TEXT);
  }
}

static tegula_status report_difference(const demo_job *job, const tegula_view *view,
                                       const int64_t *shape, tegula_error *err) {
  int64_t entry[TEGULA_MAX_DIMS + 1], index, left;
  const char *found = locate(job, job->differs, entry, &index);
  char expected[MAX_ITEM], place[TEGULA__SHAPE_TEXT], expected_text[VALUE_TEXT],
      found_text[VALUE_TEXT];
  tegula__demo_generate(&job->maker, job->kernels, index, 1, 1, expected);
  value_text(job, expected, expected_text);
  value_text(job, found, found_text);
  left = index;
  for (int32_t k = view->box.ndim - 1; k >= 0; k--) {
    entry[k] = left % shape[k];
    left /= shape[k];
  }
  tegula__shape_format(entry, view->box.ndim, place);
  if (job->maker.values == TEGULA_VALUES_RAMP)
    return tegula__fail(err, TEGULA_MISMATCH, NULL, -1,
                        "values differ from the ramp, first at index %s: expected %s, found %s",
                        place, expected_text, found_text);
  return tegula__fail(err, TEGULA_MISMATCH, NULL, -1,
                      "values differ from seed %" PRIu64
                      ", first at index %s: expected %s, found %s",
                      job->maker.seed, place, expected_text, found_text);
}

/* ---- the two calls ---- */

static tegula_status check_box(const tegula_view *view, const int64_t *shape, tegula_error *err) {
  int64_t count;
  int32_t ndim = view->box.ndim;
  if (ndim < 0 || ndim > TEGULA_MAX_DIMS)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "view has %d axes, expected 0 to %d", (int)ndim, TEGULA_MAX_DIMS);
  if (ndim > 0 && shape == NULL)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1, "shape is NULL");
  for (int32_t k = 0; k < ndim; k++) {
    int64_t lo = view->box.lo[k], hi = view->box.hi[k];
    if (lo < 0 || hi < lo || hi > shape[k])
      return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                          "box [%lld, %lld) of axis %d is not within [0, %lld)", (long long)lo,
                          (long long)hi, (int)k, (long long)shape[k]);
  }
  if (!tegula__shape_count(shape, ndim, &count))
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "shape has more than 2^63 - 1 elements");
  if (view->data == NULL && tegula__box_count(ndim, view->box.lo, view->box.hi) > 0)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1, "view has no memory: data is NULL");
  return TEGULA_OK;
}

static tegula_status check_arguments(const tegula_view *view, const int64_t *shape,
                                     tegula_values values, bool writes, tegula_error *err) {
  if (view == NULL) return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1, "view is NULL");
  if (values != TEGULA_VALUES_RANDOM && values != TEGULA_VALUES_RAMP)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "unknown kind of demonstration values: %d", (int)values);
  if (!tegula__dtype_valid(view->dtype))
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1, "dtype of the view is not valid");
  if (strchr("biufEc", view->dtype.kind) == NULL) {
    char name[TEGULA_DTYPE_TEXT];
    tegula_dtype_format(view->dtype, name);
    tegula_status status = tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                                        "no demonstration values exist for dtype \"%s\"", name);
    return tegula__hint(err, status, "use bool, an integer, float, bfloat16 or complex dtype");
  }
  if (view->device_type != 0 && view->device_type != TEGULA_DEVICE_HOST)
    return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                        "view is on device type %d, expected host memory", (int)view->device_type);
  if (writes && (view->flags & TEGULA_VIEW_READ_ONLY))
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1, "view is read-only");
  return check_box(view, shape, err);
}

static tegula_status demo_run(tegula__pool *pool, const tegula__kernels *kernels,
                              const tegula_view *view, const int64_t *shape, tegula_values values,
                              uint64_t seed, bool checking, tegula_error *err) {
  FORWARD(check_arguments(view, shape, values, !checking, err));
  demo_job job = {.kernels = kernels, .maker = {view->dtype, values, seed}, .checking = checking};
  if (tegula__box_count(view->box.ndim, view->box.lo, view->box.hi) == 0) return TEGULA_OK;
  job_set_axes(&job, view, shape);
  job.differs = job.count;
  tegula__pool_run(pool, tegula__ceil_div(job.count, PIECE_ELEMENTS), run_piece, &job);
  return job.differs < job.count ? report_difference(&job, view, shape, err) : TEGULA_OK;
}

tegula_status tegula__demo_fill(tegula__pool *pool, const tegula__kernels *kernels,
                                const tegula_view *view, const int64_t *shape, tegula_values values,
                                uint64_t seed, tegula_error *err) {
  return demo_run(pool, kernels, view, shape, values, seed, false, err);
}

tegula_status tegula__demo_check(tegula__pool *pool, const tegula__kernels *kernels,
                                 const tegula_view *view, const int64_t *shape,
                                 tegula_values values, uint64_t seed, tegula_error *err) {
  return demo_run(pool, kernels, view, shape, values, seed, true, err);
}
