"""Saves with h5py (hdf5plugin's filters at hand) from memory, twice, and prints one JSON object:
the seconds of the second time from the making of the file to its close, and the bytes of the file.

SPDX-License-Identifier: Apache-2.0

usage: hdf5_save_peer.py DATA FOLDER contiguous|gzip|zstd|group
DATA: the folder of shards that hold the array; chunks are 1024 x 1024. group: 100 arrays of 64 KiB.
"""

import json
import os
import pathlib
import sys
import time

import h5py
import numpy

try:
    import hdf5plugin
except ImportError:
    hdf5plugin = None

KINDS = {
    "contiguous": dict,
    "gzip": lambda: {
        "chunks": (1024, 1024),
        "compression": "gzip",
        "compression_opts": 4,
        "shuffle": True,
    },
    "zstd": lambda: {"chunks": (1024, 1024), **hdf5plugin.Zstd(clevel=3)},
}


def arrays(data, kind):
    if kind == "group":
        return {
            f"a{index:03d}": numpy.arange(index, index + 16384, dtype="<f4") for index in range(100)
        }
    return {
        "x": numpy.concatenate(
            [numpy.load(path) for path in sorted(pathlib.Path(data).glob("*.npy"))]
        )
    }


def save(path, content, kind):
    options = KINDS.get(kind, dict)()
    start = time.perf_counter()
    with h5py.File(path, "w") as file:
        for name, array in content.items():
            file.create_dataset(name, data=array, **options)
    seconds = time.perf_counter() - start
    size = os.path.getsize(path)
    os.remove(path)
    return {"seconds": seconds, "stored": size}


def main():
    _, data, folder, kind = sys.argv
    content = arrays(data, kind)
    save(f"{folder}/peer.h5", content, kind)
    print(json.dumps(save(f"{folder}/peer.h5", content, kind)))


main()
