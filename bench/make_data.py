"""Makes the files that the benchmarks read, once, with numpy alone.

SPDX-License-Identifier: Apache-2.0

A data set is made under a temporary name and renamed when it is whole and on the disk, so that an
interrupted run leaves none behind that looks finished. The same call gives the same bytes on every
machine.
"""

import itertools
import os
import shutil

import numpy as np

ROWS, COLUMNS, SHARDS = 131072, 1024, 32


def walk():
    """512 MiB of float32: random walks along axis 1."""
    rng = np.random.default_rng(0)
    return np.cumsum(rng.integers(-3, 4, (ROWS, COLUMNS), dtype="i1"), axis=1, dtype="f4")


def uneven_cuts(rows, shards):
    """Row numbers at which shards begin and end; lengths differ by more than a factor of ten."""
    weights = np.random.default_rng(1).uniform(0.1, 2.0, shards).cumsum()
    return [0] + [int(rows * weight / weights[-1]) for weight in weights]


def write_shards(folder, array, cuts, convert):
    for index, (low, high) in enumerate(itertools.pairwise(cuts)):
        np.save(f"{folder}/shard_{index:04d}.npy", convert(array[low:high]))


def make_uneven(folder):
    write_shards(folder, walk(), uneven_cuts(ROWS, SHARDS), lambda part: part)


def make_big_endian(folder):
    write_shards(folder, walk(), uneven_cuts(ROWS, SHARDS), lambda part: part.astype(">f4"))


def make_fortran(folder):
    write_shards(folder, walk(), uneven_cuts(ROWS, SHARDS), np.asfortranarray)


def make_many(folder, count):
    """`count` shards of 16 KiB: 4 rows of 1024 float32."""
    part = np.arange(4096, dtype="f4").reshape(4, 1024)
    digits = len(str(count - 1))
    for index in range(count):
        np.save(f"{folder}/shard_{index:0{digits}d}.npy", part + np.float32(index))


MAKERS = {
    "uneven": make_uneven,
    "big_endian": make_big_endian,
    "fortran": make_fortran,
    "many_400": lambda folder: make_many(folder, 400),
    "many_10000": lambda folder: make_many(folder, 10_000),
    "many_100000": lambda folder: make_many(folder, 100_000),
    "small": lambda folder: make_many(folder, 4),
}


def ensure(root, name):
    """The folder of data set `name` under `root`, made when it is not there."""
    folder = os.path.join(root, name)
    if not os.path.isdir(folder):
        print(f"making {folder}", flush=True)
        unfinished = folder + ".unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        os.makedirs(unfinished)
        MAKERS[name](unfinished)
        os.sync()  # dirty pages could not be dropped from the cache
        os.rename(unfinished, folder)
    return folder
