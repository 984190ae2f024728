"""One side of a row about the Python package, in a fresh process: prints seconds.

SPDX-License-Identifier: Apache-2.0

usage: python_side.py load FOLDER | import-numpy | import-tegula
       python_side.py boxes FOLDER | strided FOLDER STEP | field FOLDER plain|h5py | elements FOLDER
The second line's: both sides of the row, in one process: a JSON object as of tegula_bench pairs.
"""

import json
import os
import random
import statistics
import sys
import time

BOXES, ROUNDS = 1000, 15


def seconds(work):
    start = time.perf_counter()
    kept = work()
    taken = time.perf_counter() - start
    del kept
    return taken


def load(folder):
    import tegula

    return seconds(lambda: tegula.load(folder))


def importing(name):
    """The time of `import tegula` is what it adds to numpy's."""
    numpy = seconds(lambda: __import__("numpy"))
    return numpy if name == "import-numpy" else seconds(lambda: __import__("tegula"))


def pairs(subject, peer):
    """Times of both, turn about, in this process; the peer once more as `a` and `b`."""
    sides = {"subject": subject, "limit": peer, "a": peer, "b": peer}
    times = {name: [] for name in sides}
    for turn in range(-1, ROUNDS):
        for name in sides if turn % 2 else reversed(sides):
            taken = seconds(sides[name])
            if turn >= 0:
                times[name].append(taken)
    return times


def read_boxes(dataset, places):
    for place in places:
        dataset[place : place + 1]


def boxes(folder):
    """1 KiB each, at random places of 64 MiB of a contiguous dataset in memory; and one place
    again and again, which h5py has in its buffer."""
    import h5py
    import numpy
    import tegula

    path = folder + "/boxes.h5"
    with h5py.File(path, "w") as file:
        file["x"] = numpy.arange(16 << 20, dtype="f4").reshape(-1, 256)
    with h5py.File(path) as file:
        ours, theirs = tegula.open(path, "x"), file["x"]
        scattered, same = random.Random(1).sample(range(len(theirs)), BOXES), [7] * BOXES
        times = pairs(lambda: read_boxes(ours, scattered), lambda: read_boxes(theirs, scattered))
        again = {}
        for name, dataset in (("subject", ours), ("limit", theirs)):
            taken = [seconds(lambda: read_boxes(dataset, same)) for _ in range(ROUNDS)]  # noqa: B023
            again[name] = statistics.median(taken) / BOXES
    return {**times, "again": again}


def strided(folder, step):
    """Every step-th column of 64 MiB of contiguous rows of 500 numbers, against reading all of them
    and cutting."""
    import numpy
    import tegula

    path, step = folder + "/strided.npy", int(step)
    numpy.save(path, numpy.arange((64 << 20) // 2000 * 500, dtype="f4").reshape(-1, 500))
    ours = tegula.open(path)
    return pairs(lambda: ours[:, ::step], lambda: ours[...][:, ::step].copy())


def table(folder):
    import h5py
    import numpy

    rows = numpy.zeros((64 << 20) // 320, [(f"f{k}", "f8") for k in range(40)])
    rows["f7"] = numpy.arange(len(rows))
    numpy.save(folder + "/table.npy", rows)
    with h5py.File(folder + "/table.h5", "w") as file:
        file["x"] = rows


def field(folder, peer):
    """One f8 of 40 in a table in memory, against a plain read of all bytes, or h5py's field."""
    import h5py
    import tegula

    table(folder)
    if peer == "h5py":
        with h5py.File(folder + "/table.h5") as file:
            theirs, ours = file["x"], tegula.open(folder + "/table.h5", "x", field="f7")
            return pairs(lambda: ours[...], lambda: theirs["f7"])
    ours = tegula.open(folder + "/table.npy", field="f7")
    size = os.path.getsize(folder + "/table.npy")
    buffer = bytearray(size)  # touched: the field alone needs little memory

    def plain():
        with open(folder + "/table.npy", "rb", buffering=0) as file:
            assert file.readinto(buffer) == size

    return pairs(lambda: ours[...], plain)


def read_elements(dataset, places):
    return sum(int(dataset[place]) for place in places)


def elements(folder):
    """5,000 single elements at random from chunks of 12, in a dataset that is opened anew."""
    import h5py
    import numpy
    import tegula

    path, rng = folder + "/elements.h5", numpy.random.default_rng(0)
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=rng.integers(0, 10, 5000), chunks=(12,), compression="gzip")
    places = rng.integers(0, 5000, 5000).tolist()

    def theirs():
        with h5py.File(path) as file:
            return read_elements(file["x"], places)

    return pairs(lambda: read_elements(tegula.open(path, "x"), places), theirs)


KINDS = {
    "load": load,
    "boxes": boxes,
    "strided": strided,
    "field": field,
    "elements": elements,
    "import-tegula": lambda: importing("import-tegula"),
    "import-numpy": lambda: importing("import-numpy"),
}

if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    print(json.dumps(KINDS[what](*rest)))
