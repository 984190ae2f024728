"""One read of dataset `x` of an HDF5 file with hidefix, index included,
in a fresh process: prints the seconds.

SPDX-License-Identifier: Apache-2.0
"""

import sys
import time

import hidefix

start = time.perf_counter()
array = hidefix.Index(sys.argv[1]).dataset("x")[:, :]
print(time.perf_counter() - start)
