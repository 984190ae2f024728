/* A check of sums: what its files share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_VERIFY_SUMS_CHECK_H
#define TEGULA_VERIFY_SUMS_CHECK_H

#include "verify/summing.h"

typedef struct tegula__sums_checking {
  tegula_context *context;
  tegula_dataset *dataset; /* NULL: none */
  char *text;              /* of the sums */
  size_t text_size;
  tegula__sums sums;
  tegula__summing summing;
  tegula__file *files; /* of the sums, where they are not files of the dataset */
  tegula__file_set *set;
  char **names;     /* absolute, of the files of the sums */
  int64_t *by_name; /* numbers of the files of the sums in the order of their names */
  int64_t *number;  /* of the file of the sums for each of the dataset; -1: an extra one */
  int64_t *by_sum;  /* made when it is needed */
  tegula_sums_report report;
  tegula_problem_fn visit;
  void *visit_state;
  tegula_error first; /* problem */
} tegula__sums_checking;

tegula_status tegula__sums_name_files(tegula__sums_checking *c, tegula__namer *namer,
                                      tegula_error *err);

tegula_status tegula__sums_match_files(tegula__sums_checking *c, tegula__namer *namer,
                                       tegula_error *err);

#endif
