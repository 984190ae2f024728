/* The clock of a run, and the median of times.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli_job.h"
#include "cli_report.h"
#include "commands.h"

double job_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int compare_doubles(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

double median(const double *values, int64_t count, size_t stride) {
  double *sorted = report_allocate((size_t)count * sizeof *sorted);
  if (sorted == NULL) {
    return values[0]; /* never shown: the report fails */
  }
  for (int64_t i = 0; i < count; i++) {
    memcpy(&sorted[i], (const char *)values + (size_t)i * stride, sizeof *sorted);
  }
  qsort(sorted, (size_t)count, sizeof *sorted, compare_doubles);
  double middle =
      count % 2 != 0 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
  free(sorted);
  return middle;
}
