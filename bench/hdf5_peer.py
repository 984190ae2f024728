"""One read of dataset `x` of an HDF5 file with h5py (hdf5plugin's filters at hand), in a fresh
process: prints the seconds from open to the last byte; with `--index`, the seconds that chunk_iter
needs to list all chunks.

SPDX-License-Identifier: Apache-2.0
"""

import sys
import time

import h5py

try:
    import hdf5plugin  # noqa: F401
except ImportError:
    pass

start = time.perf_counter()
with h5py.File(sys.argv[1]) as file:
    if "--index" in sys.argv:
        chunks = []
        file["x"].id.chunk_iter(chunks.append)
    else:
        array = file["x"][...]
    seconds = time.perf_counter() - start
print(seconds)
