/* api: implements the public header: argument checks, handles, and the order of the phases. The
 * only folder that sees all others.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEGULA_API_API_H
#define TEGULA_API_API_H

#include "dataset/dataset.h"
#include "verify/hash.h"

#endif
