/* Two things timed in turn, so that what the machine does meanwhile meets both.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

static void print_times(const char *name, const double *times, int count) {
  printf(", \"%s\": [", name);
  for (int i = 0; i < count; i++) printf("%s%.9f", i > 0 ? ", " : "", times[i]);
  printf("]");
}

int print_pairs(int pairs, timed_run subject, timed_run limit, void *state) {
  double slower = limit(state), first = subject(state);
  if (first > slower) slower = first;
  if (pairs == 0) pairs = slower > 2 ? 9 : 15;
  double *times = must_allocate((size_t)pairs * 4, sizeof *times);
  double *ours = times, *theirs = times + pairs, *a = times + 2 * pairs, *b = times + 3 * pairs;
  for (int i = 0; i < pairs; i++) {
    if (i % 2 == 0) {
      theirs[i] = limit(state);
      ours[i] = subject(state);
      a[i] = limit(state);
      b[i] = limit(state);
    } else {
      b[i] = limit(state);
      a[i] = limit(state);
      ours[i] = subject(state);
      theirs[i] = limit(state);
    }
  }
  print_times("subject", ours, pairs);
  print_times("limit", theirs, pairs);
  print_times("a", a, pairs);
  print_times("b", b, pairs);
  free(times);
  return pairs + 1;
}
