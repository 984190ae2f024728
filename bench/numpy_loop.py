"""The loop that people write by hand, timed in a fresh process: the seconds go to standard output.

SPDX-License-Identifier: Apache-2.0

usage: numpy_loop.py FOLDER ROWS COLUMNS ROWS-OF-SHARD...  (float32)
The shapes are given: reading them from the headers first is not on the clock of this loop.
ROWS-OF-SHARD may be one number for all.
"""

import os
import sys
import time

import numpy as np

folder, rows, columns = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
lengths = [int(text) for text in sys.argv[4:]]

start = time.perf_counter()
files = sorted(os.listdir(folder))
if len(lengths) == 1:
    lengths = lengths * len(files)
out = np.empty((rows, columns), "f4")
low = 0
for name, length in zip(files, lengths, strict=True):
    out[low : low + length] = np.load(os.path.join(folder, name), mmap_mode="r")
    low += length
seconds = time.perf_counter() - start
if low != rows:
    sys.exit("numpy_loop: not all rows were there")
print(seconds)
