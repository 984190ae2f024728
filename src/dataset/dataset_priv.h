/* What a dataset holds that its files share among themselves.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_DATASET_DATASET_PRIV_H
#define TEGULA_DATASET_DATASET_PRIV_H

#include <pthread.h>

#include "dataset/dataset.h"

/* Of view.c. */
struct tegula__views {
  tegula__file *files;    /* of the dataset, with stamps that nobody changes; paths are borrowed */
  pthread_mutex_t lock;   /* of what follows */
  tegula_dataset *all;    /* NULL: not yet */
  tegula_dataset *recent; /* NULL: none */
  bool *in_recent;        /* which late parts are in it */
};

#endif
