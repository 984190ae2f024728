"""Compares the build in build/ with an older one: times of the main rows, and what ten operations
and the start of the command cost in instructions, system calls and allocations. Writes
build/bench/against.json, prints a table.

SPDX-License-Identifier: Apache-2.0

usage: scripts/bench --against BUILD [NAME...]; BUILD is the build folder of the older one, which is
not changed. Times: as run.py takes them, whole processes of both builds in turn; A/A is the older
build against itself. Costs: one thread, no randomised addresses, less those of a baseline
(`tegula --version`, or the same Python program without the reads): callgrind's instructions,
strace's calls, and memcheck's allocations. Saves look for what killed ones have left at random, so
the least of RUNS runs counts. A cost or time is worse when a repetition agrees: over LIMITS, and
for times also over what A/A varies. Exit status 1: something is worse, or was not measured.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

import make_data
from run import Bench, Unavailable, describe_machine, h5py_library, interleave, make_hdf5, repeated

LIMITS = {"instructions": 1.01, "calls": 1.0, "allocations": 1.0, "seconds": 1.05}
RUNS = {"instructions": 1, "calls": 4, "allocations": 1}
VARYING = ("futex", "brk")  # calls that depend on how threads meet and on the length of paths
WALLS = 20  # processes of a few milliseconds that make one time
READS = 100
PYTHON = """import sys, time
import tegula
ds = tegula.open(sys.argv[1])
ds[0:1]
start = time.perf_counter()
for index in range(int(sys.argv[2])):
    ds[0:1]
print(time.perf_counter() - start)
"""


def make_costs(folder):
    """Small files: the cost of a byte is not what is counted, that of an operation is."""
    part = make_data.walk()[:512]
    np.save(folder + "/small.npy", part[0])
    with open(folder + "/big.npy", "wb") as file:  # 4 GiB without storage
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f4", "fortran_order": False, "shape": (1 << 20, 1024)}
        )
        file.truncate(file.tell() + (1 << 32))
    os.mkdir(folder + "/many")
    make_data.make_many(folder + "/many", 1000)
    np.save(folder + "/part.npy", part)
    with make_hdf5.h5py.File(folder + "/gzip.h5", "w") as file:
        file.create_dataset("x", data=part, chunks=(64, 128), compression="gzip", shuffle=True)


def make_part(folder):
    """16 MiB, for saves through a codec."""
    np.save(folder + "/x.npy", make_data.walk()[:4096])


make_data.MAKERS.update({"costs": make_costs, "part": make_part})

# name -> words; COSTS, SAVE and data sets stand for folders
COSTS = {
    "start": ["--version"],
    "load_small": ["load", "COSTS/small.npy"],
    "box": ["load", "COSTS/big.npy", "--box", "5000:5001,0:256"],
    "load_many": ["load", "COSTS/many"],
    "load_gzip": ["load", "COSTS/gzip.h5"],
    "save_npy": ["copy", "COSTS/part.npy", "SAVE/x.npy"],
    "save_gzip": [
        "copy",
        "COSTS/part.npy",
        "SAVE/x.h5",
        "--chunks",
        "64,128",
        "--codec",
        "shuffle,deflate:4",
    ],
    "info_hdf5": ["info", "COSTS/gzip.h5"],
    "hash": ["load", "COSTS/part.npy", "--hash"],
    "verify": ["verify", "COSTS/many"],
    "python_box": [PYTHON, "COSTS/part.npy", str(READS)],
}
TIMES = {
    "load": ["load", "uneven", "--json"],
    "load_big_endian": ["load", "big_endian", "--json"],
    "load_fortran": ["load", "fortran", "--json"],
    "load_10000": ["load", "many_10000", "--json"],
    "load_contiguous": ["load", "hdf5_contiguous/x.h5", "--json"],
    "load_gzip": ["load", "hdf5_gzip/x.h5", "--json"],
    "load_zstd": ["load", "hdf5_zstd/x.h5", "--json"],
    "hash": ["load", "uneven", "--hash"],
    "verify": ["verify", "uneven"],
    "save_npy": ["copy", "uneven", "SAVE/x.npy"],
    "save_gzip": [
        "copy",
        "part/x.npy",
        "SAVE/x.h5",
        "--chunks",
        "1024,1024",
        "--codec",
        "shuffle,deflate:4",
    ],
    "info": ["info", "small"],
    "python_box": [PYTHON, "part/x.npy", str(20 * READS)],
}


class Side:
    """One of the two builds."""

    def __init__(self, bench, build):
        self.bench, self.build = bench, pathlib.Path(build).resolve()
        names = r"CMAKE_(?:BUILD_TYPE|C_COMPILER|C_FLAGS)|TEGULA_(?:SANITIZE|WITH_\w+|BLOSC2_ROOT)"
        self.kind = re.findall(
            rf"(?m)^(?:{names}):\w+=.*", (self.build / "CMakeCache.txt").read_text()
        )
        # compiled modules of both lie in build/bench, so that none is written into the older build
        compiled = bench.results / "pycache" / str(self.build).strip("/").replace("/", "_")
        self.variables = {
            **os.environ,
            "PYTHONPATH": str(self.build / "python"),
            "PYTHONPYCACHEPREFIX": str(compiled),
            "PYTHONHASHSEED": "0",
            "OPENBLAS_NUM_THREADS": "1",
        }

    def command(self, words):
        place = self.bench.place()
        made = []
        for word in words:
            first, slash, rest = word.partition("/")
            if first == "COSTS" or first in make_data.MAKERS:
                word = self.bench.data(first.lower()) + slash + rest
            made.append(word.replace("SAVE", place) if first == "SAVE" else word)
        return (
            [sys.executable, "-c", *made]
            if words[0] == PYTHON
            else [str(self.build / "bin/tegula"), *made]
        )

    def run(self, *command, **variables):
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            env={**self.variables, **variables},
            pass_fds=[one.fd for one in self.bench.scratch.values()],
        )
        if done.returncode != 0:
            raise RuntimeError(
                "%s: status %d: %s"
                % (" ".join(command)[:200], done.returncode, done.stderr.strip()[-300:])
            )
        return done

    def seconds(self, words):
        """As the program says, or of the whole process."""
        self.bench.tidy()  # each save makes its file
        command = self.command(words)
        if words[0] == PYTHON:
            return float(self.run(*command).stdout)
        if "--json" in words:
            return json.loads(self.run(*command).stdout)["seconds"]
        start = time.perf_counter()
        for _ in range(WALLS if words[0] == "info" else 1):
            self.run(*command)
        return time.perf_counter() - start

    def count(self, what, words):
        self.bench.tidy()
        command = self.command(words)
        with tempfile.NamedTemporaryFile("r", dir=self.bench.results) as log:
            valgrind = ["valgrind", "--log-file=" + log.name]
            tool = {
                "instructions": [*valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null"],
                "allocations": [
                    *valgrind,
                    "--tool=memcheck",
                    "--leak-check=no",
                    "--undef-value-errors=no",
                ],
                "calls": ["strace", "-f", "-c", "-o", log.name],
            }[what]
            self.run("setarch", "-R", *tool, *command, TEGULA_THREADS="1", PYTHONMALLOC="malloc")
            text = log.read()
        if what == "calls":
            found = {
                row[-1]: int(row[3])
                for row in map(str.split, text.splitlines())
                if len(row) > 4 and row[3].isdigit()
            }
            found["total"] -= sum(found.pop(name, 0) for name in VARYING)
            return found
        pattern = (
            r"Collected : (\d+)" if what == "instructions" else r"total heap usage: ([\d,]+) allocs"
        )
        return {"total": int(re.search(pattern, text)[1].replace(",", ""))}

    def cost(self, what, words):
        """The least of some runs less the least of the baseline."""
        without = (
            [*words[:-1], "0"]
            if words[0] == PYTHON
            else COSTS["start"]
            if words != COSTS["start"]
            else None
        )

        def least(words):
            return min(
                (self.count(what, words) for _ in range(RUNS[what])),
                key=lambda found: found["total"],
            )

        found, base = least(words), least(without) if without else {}
        return {name: found.get(name, 0) - base.get(name, 0) for name in {**found, **base}}


def worse(what, new, old):
    return new > old * LIMITS[what] if old > 0 else new > old


def compare_cost(what, words, new, old):
    """(worse?, attempts): a second attempt where the first is worse, and both must be."""
    attempts = []
    while len(attempts) < 2:
        attempts.append({"new": new.cost(what, words), "old": old.cost(what, words)})
        if not worse(what, attempts[-1]["new"]["total"], attempts[-1]["old"]["total"]):
            return False, attempts
    return True, attempts


def compare_time(words, new, old):
    """The same for times, where A/A says how far they vary."""
    rounds = []
    while len(rounds) < 2:
        rounds.append(
            repeated(lambda: interleave(lambda: new.seconds(words), lambda: old.seconds(words)))
        )
        same = rounds[-1][-1]["a_over_a"]
        if rounds[-1][-1]["ratio"] <= LIMITS["seconds"] * max(same, 1 / same):
            return False, rounds
    return True, rounds


def print_row(name, what, numbers, same, ratio, words):
    print("%-16s %-13s %s %6s %7s  %s" % (name, what, numbers, same, ratio, words), flush=True)


def print_cost(name, what, bad, attempts):
    new, old = attempts[-1]["new"], attempts[-1]["old"]
    difference = {each: new.get(each, 0) - old.get(each, 0) for each in sorted({**new, **old})}
    total = difference.pop("total")
    words = "worse" if bad else "less" if total < 0 else "within the limit" if total > 0 else ""
    changed = ", ".join("%s %+d" % item for item in difference.items() if item[1] != 0)
    ratio = "%.3f" % (new["total"] / old["total"]) if old["total"] > 0 else ""
    print_row(
        name,
        what,
        "%12d %12d" % (old["total"], new["total"]),
        "",
        ratio,
        words + (" (%s)" % changed if changed else ""),
    )


def print_time(name, what, bad, rounds):
    attempts = [attempt for each in rounds for attempt in each]
    for attempt in attempts:
        medians = attempt["medians"]
        print_row(
            name,
            what,
            "%12.4f %12.4f" % (medians["limit"], medians["subject"]),
            "%.3f" % attempt["a_over_a"],
            "%.3f" % attempt["ratio"],
            "worse" if bad and attempt is attempts[-1] else "",
        )
        name, what = "", "  again"


def rows(names):
    """The named rows, of the named kinds."""
    kinds = [what for what in LIMITS if what in names] or LIMITS
    chosen = [name for name in names if name not in LIMITS]
    for what in kinds:
        for name, words in (TIMES if what == "seconds" else COSTS).items():
            if not chosen or name in chosen:
                yield name, what, words


def measure(bench, names, new, old):
    records, count = [], {"worse": 0, "not worse": 0, "not measured": 0}
    for name, what, words in rows(names):
        try:
            timed = what == "seconds"
            bad, attempts = (
                compare_time(words, new, old) if timed else compare_cost(what, words, new, old)
            )
        except (RuntimeError, OSError, ValueError, TypeError, Unavailable) as error:
            count["not measured"] += 1
            print("%-16s %-13s not measured: %s" % (name, what, error), flush=True)
            continue
        finally:
            bench.tidy()
        count["worse" if bad else "not worse"] += 1
        (print_time if timed else print_cost)(name, what, bad, attempts)
        records.append({"name": name, "what": what, "worse": bad, "attempts": attempts})
    return records, count


def main():
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description="Compares build/ with an older build."
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="rows and kinds to run (default all): %s"
        % ", ".join(dict.fromkeys([*COSTS, *TIMES, *LIMITS])),
    )
    parser.add_argument(
        "--against", required=True, metavar="BUILD", help="build folder of the older build"
    )
    parser.add_argument("--build", default="build", help="build folder of the newer one")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - {*COSTS, *TIMES, *LIMITS}
    if unknown:
        parser.error("unknown row: %s" % ", ".join(sorted(unknown)))
    if h5py_library():
        os.environ.setdefault("TEGULA_HDF5_LIBRARY", h5py_library())
    bench = Bench(arguments.build)
    try:
        new, old = Side(bench, arguments.build), Side(bench, arguments.against)
        for line in sorted(set(new.kind) ^ set(old.kind)):
            print(
                "the builds are not configured alike: %s (%s)"
                % (line, "newer" if line in new.kind else "older")
            )
        print("%-16s %-13s %12s %12s %6s %7s" % ("row", "what", "older", "newer", "A/A", "ratio"))
        records, count = measure(bench, arguments.names, new, old)
    finally:
        bench.close()
    result = {
        "machine": describe_machine(),
        "older": str(old.build),
        "newer": str(new.build),
        "limits": LIMITS,
        "rows": records,
    }
    (bench.results / "against.json").write_text(json.dumps(result, indent=1) + "\n")
    print(", ".join("%d %s" % (number, what) for what, number in count.items()))
    return 1 if count["worse"] or count["not measured"] else 0


if __name__ == "__main__":
    sys.exit(main())
