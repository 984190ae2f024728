"""One side of a row about the Python package, in a fresh process: prints seconds.

SPDX-License-Identifier: Apache-2.0

usage: python_side.py load FOLDER | import-numpy | import-tegula
       python_side.py boxes FOLDER
boxes: both sides of the row, in one process: a JSON object as of tegula_bench pairs.
"""

import json
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
        sides = {"subject": ours, "limit": theirs, "a": theirs, "b": theirs}
        times = {name: [] for name in sides}
        again = {name: [] for name in ("subject", "limit")}
        for turn in range(-1, ROUNDS):
            for name in sides if turn % 2 else reversed(sides):
                taken = seconds(lambda: read_boxes(sides[name], scattered))  # noqa: B023
                if turn >= 0:
                    times[name].append(taken)
            for name, kept in again.items():
                kept.append(seconds(lambda: read_boxes(sides[name], same)) / BOXES)  # noqa: B023
    return {**times, "again": {name: statistics.median(kept) for name, kept in again.items()}}


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    found = load(*rest) if what == "load" else boxes(*rest) if what == "boxes" else importing(what)
    print(json.dumps(found))
