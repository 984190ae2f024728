"""Runs the benchmark rows, writes build/bench/NAME.json, prints the table of reached and wanted.

SPDX-License-Identifier: Apache-2.0

Method: 15 interleaved pairs (9 where a run takes over 2 s, 5 where over 8) in alternating order,
one warm-up each, the ratio of the medians. Beside each ratio stands A/A, the limit (or peer)
against itself measured in the same rounds; where that leaves 0.97 to 1.03 the comparison is
repeated, at most three times in all, and every attempt is kept and printed. Exit status 0 whatever
was reached: numbers depend on the machine; 1 when a row could not be measured. A row that this
machine does not allow is skipped and counted.
"""

import argparse
import importlib.util
import itertools
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time

import make_data
from scratch import Scratch

try:
    import make_hdf5
except ImportError:
    make_hdf5 = None  # its rows are skipped

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/support"))

from slowfs import SlowFolder, Unavailable

ATTEMPTS, LOW, HIGH = 3, 0.97, 1.03
STAGING = 64 << 20  # the library's default budget
HERE = pathlib.Path(__file__).resolve().parent
# storage that takes 1 ms for each request;
# attributes are cached as network file systems do, data is not
SLOW = {"delay": 1000, "direct_io": 1, "attr_cache": 60}
SLOW_THREADS = (64, 32, 16, 8, 4, 2, 1)


def newest_python():
    """Of the python3.N in PATH and in pyenv."""
    found = [
        path
        for folder in os.environ["PATH"].split(os.pathsep)
        for path in pathlib.Path(folder).glob("python3.*")
    ]
    found += pathlib.Path.home().glob(".pyenv/versions/3.*/bin/python3.*")
    named = {}
    for path in found:
        match = re.fullmatch(r"python3[.](\d+)", path.name)
        if match and os.access(path, os.X_OK):
            named[int(match[1])] = str(path)
    return named[max(named)] if named else sys.executable


class Bench:
    """Where things are, and how to run them."""

    def __init__(self, build):
        self.build = pathlib.Path(build).resolve()
        self.tegula = str(self.build / "bin/tegula")
        self.program = str(self.build / "bin/tegula_bench")
        self.results = self.build / "bench"
        self.results.mkdir(parents=True, exist_ok=True)
        self.hashes = {}
        self.scratch = {}

    def data(self, name):
        return make_data.ensure(str(self.results / "data"), name)

    def output(self, *command):
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            pass_fds=[one.fd for one in self.scratch.values()],
        )
        if done.returncode != 0:
            raise RuntimeError(
                f"{' '.join(command[:4])}: status {done.returncode}: {done.stderr.strip()}"
            )
        return done.stdout

    def place(self, disk=False):
        """A folder for what is saved, in shared memory or on disk."""
        parent = self.results if disk else pathlib.Path("/dev/shm")
        if parent not in self.scratch:
            try:
                self.scratch[parent] = Scratch(parent)
            except OSError as error:
                raise Unavailable(f"nothing can be saved in {parent}: {error}") from error
        return self.scratch[parent].path

    def tidy(self):
        """What a row has left, which may have failed."""
        for one in self.scratch.values():
            one.empty()

    def close(self):
        for one in self.scratch.values():
            one.close()

    def peer(self, *packages):
        """The Python of an environment of its own under build/, with these packages; the newest
        Python at hand makes it."""
        folder = self.build / "peers" / packages[0].partition("=")[0]
        python = folder / "bin/python"
        if not (folder / "whole").exists():
            newest = newest_python()
            subprocess.run(
                [newest, "-m", "venv", "--clear", str(folder)], check=True, capture_output=True
            )
            done = subprocess.run(
                [
                    str(python),
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    "--only-binary",
                    ":all:",
                    *packages,
                ],
                check=False,
                capture_output=True,
                text=True,
            )
            if done.returncode != 0:
                raise Unavailable(
                    f"{packages[0]} cannot be installed for {newest}: "
                    f"{done.stderr.strip().splitlines()[-1]}"
                )
            (folder / "whole").touch()
        return str(python)

    def once(self, folder):
        return json.loads(self.output(self.program, "once", folder))

    def slow(self, folder, *command):
        """One run of tegula_bench on a mount of its own, so that nothing is cached; `MOUNT`
        stands for it. What was told and asked."""
        with SlowFolder(folder, self.build / "bin/tegula_slowfs", **SLOW) as mount:
            found = json.loads(
                self.output(
                    self.program,
                    *[str(mount.path) if word == "MOUNT" else word for word in command],
                )
            )
            return {**found, "requests": mount.counts()}


def interleave(subject, peer):
    """Times of subject, peer, a, b (both the peer) as tegula_bench takes them,
    for sides that are whole processes."""
    slower = max(peer(), subject())
    pairs = 5 if slower > 8 else 9 if slower > 2 else 15
    times = {"subject": [], "limit": [], "a": [], "b": []}
    order = [("limit", peer), ("subject", subject), ("a", peer), ("b", peer)]
    for index in range(pairs):
        for name, run in order if index % 2 == 0 else [order[3], order[2], order[1], order[0]]:
            times[name].append(run())
    return times


def ratios(times):
    medians = {name: statistics.median(times[name]) for name in ("subject", "limit", "a", "b")}
    return medians["subject"] / medians["limit"], medians["a"] / medians["b"], medians


def repeated(measure):
    """Attempts until A/A is inside the bounds, at most three."""
    attempts = []
    for _ in range(ATTEMPTS):
        times = measure()
        ratio, same, medians = ratios(times)
        attempts.append({"ratio": ratio, "a_over_a": same, "medians": medians, "times": times})
        if LOW <= same <= HIGH:
            break
    return attempts


# ---- rows: each returns (attempts, lines about it) ----


def against_limit(data, *options):
    """Load against plain parallel pread, both in one process."""

    def row(bench):
        folder = bench.data(data)

        def measure():
            times = json.loads(bench.output(bench.program, "pairs", folder, *options))
            bench.hashes[data] = times["hash"]
            return times

        attempts = repeated(measure)
        if len(set(bench.hashes.values())) > 1:
            raise RuntimeError(f"the data sets hold different arrays: {bench.hashes}")
        return attempts, []

    return row


def against_numpy(data, subject=None):
    """A fresh process of each: `tegula load` (or the subject,
    which is given the folder) and numpy's loop."""

    def row(bench):
        folder = bench.data(data)
        if data == "uneven":
            cuts = make_data.uneven_cuts(make_data.ROWS, make_data.SHARDS)
            rows, lengths = make_data.ROWS, [high - low for low, high in itertools.pairwise(cuts)]
        else:
            rows, lengths = 40_000, [4]
        loop = [
            sys.executable,
            str(HERE / "numpy_loop.py"),
            folder,
            str(rows),
            "1024",
            *map(str, lengths),
        ]

        def numpy_run():
            return float(bench.output(*loop))

        def tegula_run():
            if subject is not None:
                return subject(folder)
            return json.loads(bench.output(bench.tegula, "load", folder, "--json"))["seconds"]

        return repeated(lambda: interleave(tegula_run, numpy_run)), []

    return row


def many_scale(bench):
    """100,000 shards against 10,000, a fresh process each, open to close."""
    few, many = bench.data("many_10000"), bench.data("many_100000")
    return repeated(
        lambda: interleave(lambda: bench.once(many)["seconds"], lambda: bench.once(few)["seconds"])
    ), []


def info_process(bench):
    """`tegula info` on a small folder against importing numpy: wall time of whole processes."""
    folder = bench.data("small")

    def wall(*command):
        def run():
            start = time.perf_counter()
            bench.output(*command)
            return time.perf_counter() - start

        return run

    return repeated(
        lambda: interleave(
            wall(bench.tegula, "info", folder), wall(sys.executable, "-c", "import numpy")
        )
    ), []


def wall_of(bench, *command):
    start = time.perf_counter()
    bench.output(bench.tegula, *command, "--quiet")
    return time.perf_counter() - start


def checks_against_loads(loads, *command):
    """Whole processes: a command on the uneven shards (UNEVEN in its words)
    against so many loads of them."""

    def row(bench):
        folder = bench.data("uneven")
        words = [folder if word == "UNEVEN" else word for word in command]
        return repeated(
            lambda: interleave(
                lambda: wall_of(bench, *words),
                lambda: sum(wall_of(bench, "load", folder) for _ in range(loads)),
            )
        ), []

    return row


def sums_row(bench):
    """verify --write against plain parallel pread of the same bytes,
    whole processes; and --against."""
    folder, sums = bench.data("uneven"), str(bench.results / "sums.json")

    def plain():
        started = time.monotonic()
        bench.output(bench.program, "limit", folder)
        return time.monotonic() - started

    attempts = repeated(
        lambda: interleave(
            lambda: wall_of(bench, "verify", folder, "--write", sums, "--overwrite"), plain
        )
    )
    checked = statistics.median(
        wall_of(bench, "verify", folder, "--against", sums) for _ in range(5)
    )
    return attempts, [f"verify --against: {checked:.3f} s"]


def count_row(key):
    """Opens, stats or reads per file of one load: 400 shards, which fit in the handle cache,
    and 10,000, which do not."""

    def row(bench):
        counts, more = bench.once(bench.data("many_400")), bench.once(bench.data("many_10000"))
        attempt = {"ratio": counts[key] / counts["files"], "counts": counts, "counts_10000": more}
        return [attempt], [f"10,000 shards: {more[key] / more['files']:.3f} per file"]

    return row


def background(data, command, *options):
    """A comparison that tegula_bench makes alone, in one process;
    `data` None: in an empty folder."""

    def row(bench):
        folder = bench.data(data) if data else str(bench.results / command)
        os.makedirs(folder, exist_ok=True)
        return repeated(
            lambda: json.loads(bench.output(bench.program, command, folder, *options))
        ), []

    return row


def best_threads(bench, folder):
    """The number of plain threads that is fastest;
    fewer are not tried once the time is twice the best one's."""
    seconds = {}
    for threads in SLOW_THREADS:
        seconds[threads] = min(
            bench.slow(folder, "limit", folder, "--at", "MOUNT", "--threads", str(threads))[
                "seconds"
            ]
            for _ in range(3)
        )
        if seconds[threads] > 2 * min(seconds.values()):
            break
    return min(seconds, key=seconds.get), seconds


def slow_storage(data):
    """Load from storage of 1 ms per request against plain pread with the best number of
    threads on the same storage."""

    def row(bench):
        folder = bench.data(data)
        threads, seconds = best_threads(bench, folder)
        last = {}

        def plain():
            last["plain pread"] = bench.slow(
                folder, "limit", folder, "--at", "MOUNT", "--threads", str(threads)
            )
            return last["plain pread"]["seconds"]

        def load():
            last["tegula"] = bench.slow(folder, "once", "MOUNT")
            return last["tegula"]["seconds"]

        attempts = repeated(lambda: interleave(load, plain))
        tried = ", ".join(f"{count}: {time:.3f} s" for count, time in sorted(seconds.items()))
        notes = [f"plain pread by threads: {tried}"]
        for side, found in last.items():
            requests = found["requests"]
            kinds = ", ".join(
                f"{requests[kind]} {kind}" for kind in ("list", "getattr", "open", "read")
            )
            notes.append(f"{side}: {kinds}; at most {requests['most_in_flight']} at once")
        return attempts, notes

    return row


# ---- HDF5: whole processes, each with its libraries loaded before its clock runs; with h5py's
# libhdf5 unless TEGULA_HDF5_LIBRARY or a row names another ----

# 1.10: the oldest that is supported, without H5Dchunk_iter
SYSTEM_LIBRARIES = "/usr/lib/*/libhdf5_serial.so.103"


def h5py_library():
    found = importlib.util.find_spec("h5py")
    folder = (
        pathlib.Path(found.origin).parent.parent / "h5py.libs" if found else pathlib.Path("nowhere")
    )
    return next((str(path) for path in folder.glob("libhdf5-*.so*")), None)


def system_library():
    found = sorted(pathlib.Path("/").glob(SYSTEM_LIBRARIES[1:]))
    if not found:
        raise Unavailable(f"there is no {SYSTEM_LIBRARIES}")
    return str(found[0])


def hdf5_file(bench, data):
    if make_hdf5 is None:
        raise Unavailable("h5py and hdf5plugin are not installed: they make the files")
    return bench.data(data) + "/x.h5"


def hdf5_load(bench, file, key="seconds", library=None):
    prefix = ("env", f"TEGULA_HDF5_LIBRARY={library}") if library else ()
    return lambda: json.loads(bench.output(*prefix, bench.program, "once", file, "--warm", "1"))[
        key
    ]


def hdf5_limit(bench, file):
    """The decoder limit: plain pread of the stored bytes, and the codecs alone."""

    def run():
        found = json.loads(
            bench.output(bench.program + "_decoder", file, file.removesuffix(".h5") + ".chunks")
        )
        return found["read"] + found["decode"]

    return run


def hdf5_h5py(bench, file, *options):
    return lambda: float(bench.output(sys.executable, str(HERE / "hdf5_peer.py"), file, *options))


def hdf5_hidefix(bench, file):
    python = bench.peer("hidefix==0.12.0", "numpy")
    return lambda: float(bench.output(python, str(HERE / "hidefix_peer.py"), file))


def hdf5_row(data, peer, key="seconds", *options, library=None):
    """Load (or describe) against a peer; `library`: a function that finds the libhdf5."""

    def row(bench):
        file, found = hdf5_file(bench, data), library() if library else None
        notes = (
            [found or os.environ.get("TEGULA_HDF5_LIBRARY", "the libhdf5 that is found")]
            if "many" in data
            else []
        )
        return repeated(
            lambda: interleave(hdf5_load(bench, file, key, found), peer(bench, file, *options))
        ), notes

    return row


def memory_row(bench):
    """Growth of VmHWM over open, create and load, in units of array + staging budget."""
    attempts = []
    for data in ("uneven", "fortran"):
        found = bench.once(bench.data(data))
        attempts.append(
            {
                "ratio": (found["peak_growth"] - STAGING) / found["bytes"],
                "data": data,
                "counts": found,
            }
        )
    attempts.sort(key=lambda attempt: attempt["ratio"])
    growth = ", ".join(
        f"{attempt['data']} {attempt['counts']['peak_growth'] / 2**20:.0f} MiB"
        for attempt in attempts
    )
    return attempts[-1:], [f"growth: {growth}"]


# ---- saving: from memory; in shared memory unless the row says disk ----


def save_limit(disk, *options):
    """A save against plain parallel pwrite of the same bytes, both in one process;
    on disk both end with a sync."""

    def row(bench):
        words = [
            bench.program,
            "save",
            bench.data("uneven"),
            "--at",
            bench.place(disk),
            *options,
            *(("--durable", "1") if disk else ()),
        ]
        return repeated(lambda: json.loads(bench.output(*words))), []

    return row


def save_peer(kind, *options):
    """A save against h5py: the second one of a process each, in shared memory."""

    def row(bench):
        if make_hdf5 is None:
            raise Unavailable("h5py and hdf5plugin are not installed")
        folder, data, last = bench.place(), bench.data("uneven"), {}
        ours = (
            ("group", folder)
            if kind == "group"
            else ("save", data, "--at", folder, "--once", "1", *options)
        )

        def run(side, *words):
            last[side] = json.loads(bench.output(*words))
            return last[side]["seconds"]

        attempts = repeated(
            lambda: interleave(
                lambda: run("tegula", bench.program, *ours),
                lambda: run(
                    "h5py", sys.executable, str(HERE / "hdf5_save_peer.py"), data, folder, kind
                ),
            )
        )
        sizes = {side: found["stored"] for side, found in last.items() if "stored" in found}
        return attempts, [
            f"bytes of the files: {sizes}, {sizes['tegula'] / sizes['h5py']:.4f} x"
        ] if len(sizes) == 2 else []

    return row


def copy_row(bench):
    """`tegula copy --memory 256M` of 2 GiB, gzip to zstd, against the slower of decoding and
    encoding alone (in memory)."""
    folder, source = bench.place(), hdf5_file(bench, "hdf5_gzip_large")
    data, part = bench.data("uneven"), (2 << 30) / (512 << 20)
    target, peaks = f"{folder}/copy.h5", []

    def copy():
        words = (
            bench.tegula,
            "copy",
            source,
            target,
            "--codec",
            "zstd:3",
            "--memory",
            "256M",
            "--overwrite",
            "--json",
        )
        found = json.loads(bench.output(*words))
        peaks.append(found["peak_rss_bytes"])
        os.remove(target)
        return found["seconds"]

    def slower():
        words = (
            bench.program,
            "save",
            data,
            "--at",
            folder,
            "--once",
            "1",
            "--layout",
            "chunked",
            "--codec",
            "zstd:3",
        )
        return max(hdf5_load(bench, source)(), part * json.loads(bench.output(*words))["seconds"])

    attempts = repeated(lambda: interleave(copy, slower))
    return attempts, [
        f"peak memory of the process: {max(peaks) / 2**20:.0f} MiB, wanted at most 320"
    ]


# ---- the Python package ----


def python_side(bench, what, *words):
    return json.loads(bench.output(sys.executable, str(HERE / "python_side.py"), what, *words))


def need_package(bench):
    if (
        subprocess.run(
            [sys.executable, "-c", "import tegula"], check=False, capture_output=True
        ).returncode
        != 0
    ):
        raise Unavailable("the Python package is not built (scripts/build)")


def python_boxes(bench):
    """In one process; h5py keeps 64 KiB around the last place of a contiguous dataset."""
    need_package(bench)
    folder, again = bench.results / "boxes", {}
    folder.mkdir(exist_ok=True)

    def measure():
        times = python_side(bench, "boxes", str(folder))
        again.update(times.pop("again"))
        return times

    attempts = repeated(measure)
    return attempts, [
        f"the same box again and again: {again['subject'] * 1e6:.2f} us, h5py (from its buffer) "
        f"{again['limit'] * 1e6:.2f} us"
    ]


def python_pairs(what, *words):
    """Both sides in one process."""

    def row(bench):
        need_package(bench)
        folder = bench.results / what
        folder.mkdir(exist_ok=True)
        return repeated(lambda: python_side(bench, what, str(folder), *words)), []

    return row


def python_load(peer):
    """tegula.load in a fresh process that has imported it,
    against the same in C, or numpy's loop."""

    def row(bench):
        need_package(bench)
        if peer == "numpy":
            return against_numpy("uneven", lambda folder: python_side(bench, "load", folder))(bench)
        folder = bench.data("uneven")
        return repeated(
            lambda: interleave(
                lambda: python_side(bench, "load", folder), lambda: bench.once(folder)["seconds"]
            )
        ), []

    return row


def python_import(bench):
    need_package(bench)
    return repeated(
        lambda: interleave(
            lambda: python_side(bench, "import-tegula"), lambda: python_side(bench, "import-numpy")
        )
    ), []


# ---- Legate: both sides in one process of its environment; legate_pairs.py measures ----


def legate(bench):
    """The Python of that environment, and what Legate finds around it."""
    need_package(bench)
    folder, package = bench.build / "legate-venv", bench.build / "python"
    if not (folder / ".installed").exists():
        subprocess.run(
            ["bash", "-c", ". scripts/common.sh; want_legate"],
            cwd=HERE.parent,
            check=False,
            capture_output=True,
        )
    if not (folder / ".installed").exists():
        raise Unavailable("legate and nvidia-cupynumeric cannot be installed")
    stand_in = bench.results / "no_cuda"
    stand_in.mkdir(exist_ok=True)
    subprocess.run(
        [
            os.environ.get("CC", "cc"),
            "-shared",
            "-fPIC",
            "-Wl,-soname,libcuda.so.1",
            "-o",
            str(stand_in / "libcuda.so.1"),
            str(HERE.parent / "tests/legate/no_cuda.c"),
        ],
        check=True,
        capture_output=True,
    )
    around = {
        "PYTHONPATH": str(package),
        "LD_LIBRARY_PATH": str(stand_in),
        "LEGATE_AUTO_CONFIG": "0",
        "LEGATE_CONFIG": f"--cpus {len(os.sched_getaffinity(0))} --sysmem 2400",
    }
    return [
        "env",
        *(f"{name}={value}" for name, value in around.items()),
        str(folder / "bin/python"),
    ]


def legate_row(data, subject, peer, target=False, disk=False):
    def row(bench):
        path = hdf5_file(bench, data) if data.startswith("hdf5") else bench.data(data)
        words = [
            *legate(bench),
            str(HERE / "legate_pairs.py"),
            subject,
            peer,
            path,
            *([bench.place(disk)] if target else []),
        ]
        return repeated(lambda: json.loads(bench.output(*words).splitlines()[-1])), []

    return row


def legate_process(bench):
    """Whole processes on a small HDF5 file: tegula, and Legate with cuPyNumeric."""
    python, file = legate(bench), str(bench.results / "small.h5")
    bench.output(
        bench.tegula,
        "copy",
        bench.data("small"),
        file,
        "--to-dataset",
        "x",
        "--overwrite",
        "--quiet",
    )

    def wall(program):
        def run():
            start = time.perf_counter()
            bench.output(*python, "-c", program, file)
            return time.perf_counter() - start

        return run

    peer = (
        "import sys, cupynumeric; from legate.io.hdf5 import from_file; "
        "cupynumeric.asarray(from_file(sys.argv[1], 'x'))"
    )
    return repeated(
        lambda: interleave(wall("import sys, tegula; tegula.load(sys.argv[1])"), wall(peer))
    ), []


# ---- ranks: started by MPICH of the Python package of that name, each bound to a processor ----


def mpi(bench, *packages):
    """A Python with mpi4py and those packages, the launcher beside it, and its library."""
    python = bench.peer(*packages, "mpi4py==4.1.2", "mpich==5.0.2")
    folder = pathlib.Path(python).parent.parent
    return python, [str(folder / "bin/mpiexec"), "-n"], folder / "lib/libmpi_abi.so.1"


def processor_notes(found):
    return [
        f"processor time of a run: {found['processor'][0]:.4f} s against "
        f"{found['processor'][1]:.4f} s"
    ]


def ranks_threads(data):
    """Two ranks of one thread against one of two threads, both in one job."""

    def row(bench):
        path = hdf5_file(bench, data) if data.startswith("hdf5") else bench.data(data)
        _, launcher, library = mpi(bench, "h5py==3.15.1")
        last = {}

        def measure():
            last.update(
                json.loads(
                    bench.output(
                        "env",
                        f"TEGULA_MPI_LIBRARY={library}",
                        *launcher,
                        "2",
                        bench.program,
                        "ranks",
                        path,
                    )
                )
            )
            return last

        return repeated(measure), processor_notes(last)

    return row


def ranks_pairs(bench, data, subject, peer, *more):
    need_package(bench)
    path = hdf5_file(bench, data) if data.startswith("hdf5") else bench.data(data)
    python, launcher, _ = mpi(
        bench, *(("heat==1.8.0", "h5py==3.15.1") if "heat" in peer else ("h5py==3.15.1",))
    )
    around = {"PYTHONPATH": str(bench.build / "python"), "OMP_NUM_THREADS": "1"}
    return json.loads(
        bench.output(
            "env",
            *(f"{name}={value}" for name, value in around.items()),
            *launcher,
            "2",
            python,
            str(HERE / "ranks_pairs.py"),
            subject,
            peer,
            path,
            *more,
        ).splitlines()[-1]
    )


def ranks_peer(data, subject, peer):
    def row(bench):
        last = {}

        def measure():
            last.update(ranks_pairs(bench, data, subject, peer))
            return last

        return repeated(measure), processor_notes(last)

    return row


def ranks_memory(data, subject, peer):
    """Peaks of all ranks together. Half is wanted,
    which the array alone is where Heat holds it twice."""

    def row(bench):
        found = ranks_pairs(bench, data, subject, peer, "2")
        mine, theirs = found["peak"]
        return [{"ratio": mine / theirs, "counts": found}], [
            f"{mine / 2**20:.0f} MiB against {theirs / 2**20:.0f} MiB"
        ]

    return row


def ranks_start(kind):
    """Whole jobs of 8 ranks on however few processors: a load of a small dataset, and one that
    only starts MPI, meets at a barrier and ends it."""

    def row(bench):
        folder = bench.data("small")
        if kind == "mpich":
            _, launcher, library = mpi(bench, "h5py==3.15.1")
        else:
            launcher, library = (
                ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-n"],
                "libmpi.so.40",
            )
            if shutil.which(launcher[0]) is None:
                raise Unavailable("there is no mpirun.openmpi (openmpi-bin)")
        around = (
            "env",
            f"TEGULA_MPI_LIBRARY={library}",
            "OMPI_ALLOW_RUN_AS_ROOT=1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
        )

        def job(*words):
            def run():
                start = time.perf_counter()
                bench.output(*around, *launcher, "8", *words)
                return time.perf_counter() - start

            return run

        return repeated(
            lambda: interleave(
                job(bench.tegula, "load", folder, "--json"),
                job(bench.program + "_mpi", str(library)),
            )
        ), []

    return row


# name -> (what it says, wanted at most, row)
ROWS = {
    "uneven_fresh": (
        "32 uneven shards, 512 MiB, fresh memory / limit",
        1.10,
        against_limit("uneven"),
    ),
    "uneven_touched": (
        "32 uneven shards, touched memory / limit",
        1.10,
        against_limit("uneven", "--memory", "touched"),
    ),
    "uneven_cold": (
        "32 uneven shards, cold / limit",
        1.10,
        against_limit("uneven", "--memory", "cold"),
    ),
    "uneven_numpy": (
        "32 uneven shards, fresh process / numpy's loop",
        0.60,
        against_numpy("uneven"),
    ),
    "grid": ("4 x 4 grid, separate tiles / limit", 1.50, against_limit("uneven", "--grid", "4,4")),
    "big_endian": ("big-endian shards / limit", 1.60, against_limit("big_endian")),
    "fortran": ("Fortran-order shards / limit", 3.00, against_limit("fortran")),
    "hash": (
        "load --hash process / load process",
        1.30,
        checks_against_loads(1, "load", "UNEVEN", "--hash"),
    ),
    "compare": (
        "compare process / two load processes",
        1.30,
        checks_against_loads(2, "compare", "UNEVEN", "UNEVEN"),
    ),
    "verify": ("verify process / load process", 1.30, checks_against_loads(1, "verify", "UNEVEN")),
    "sums": ("verify --write process / plain pread process", 1.30, sums_row),
    "many_numpy": ("10,000 shards of 16 KiB / numpy's loop", 0.20, against_numpy("many_10000")),
    "many_scale": ("100,000 shards / 10,000 shards", 11.0, many_scale),
    "batches": (
        "batches, consumer asleep as long as a read / longer",
        1.15,
        background("uneven", "batches"),
    ),
    "fence": ("100 saves of 64 KiB and a fence / one by one", 1.10, background(None, "fence")),
    "opens": ("opens per file, 400 shards", 1.0, count_row("opens")),
    "stats": ("fstats per file, 400 shards", 1.0, count_row("stats")),
    "reads": ("reads per file, 400 shards", 1.01, count_row("reads")),
    "memory": ("(peak growth - 64 MiB staging) / array", 1.05, memory_row),
    "slow_large": ("1 ms storage, 32 shards, 512 MiB / best limit", 1.20, slow_storage("uneven")),
    "slow_small": (
        "1 ms storage, 10,000 shards of 16 KiB / best limit",
        1.20,
        slow_storage("many_10000"),
    ),
    "hdf5_contiguous": ("HDF5 contiguous / limit", 1.10, hdf5_row("hdf5_contiguous", hdf5_limit)),
    "hdf5_chunked": ("HDF5 chunks, no filter / limit", 1.25, hdf5_row("hdf5_chunked", hdf5_limit)),
    "hdf5_chunked_hidefix": (
        "HDF5 chunks, no filter / hidefix",
        0.80,
        hdf5_row("hdf5_chunked", hdf5_hidefix),
    ),
    "hdf5_gzip": ("HDF5 shuffle + gzip 4 / decoder limit", 1.10, hdf5_row("hdf5_gzip", hdf5_limit)),
    "hdf5_gzip_h5py": ("HDF5 shuffle + gzip 4 / h5py", 0.25, hdf5_row("hdf5_gzip", hdf5_h5py)),
    "hdf5_gzip_hidefix": (
        "HDF5 shuffle + gzip 4 / hidefix",
        0.90,
        hdf5_row("hdf5_gzip", hdf5_hidefix),
    ),
    "hdf5_zstd": ("HDF5 zstd 3 / decoder limit", 1.15, hdf5_row("hdf5_zstd", hdf5_limit)),
    "hdf5_zstd_h5py": ("HDF5 zstd 3 / h5py", 0.60, hdf5_row("hdf5_zstd", hdf5_h5py)),
    "hdf5_lz4": ("HDF5 lz4 / decoder limit", 1.15, hdf5_row("hdf5_lz4", hdf5_limit)),
    "hdf5_lz4_h5py": ("HDF5 lz4 / h5py", 0.60, hdf5_row("hdf5_lz4", hdf5_h5py)),
    "hdf5_blosc2": ("HDF5 blosc2-lz4 / decoder limit", 1.15, hdf5_row("hdf5_blosc2", hdf5_limit)),
    "hdf5_blosc2_h5py": ("HDF5 blosc2-lz4 / h5py", 0.60, hdf5_row("hdf5_blosc2", hdf5_h5py)),
    "hdf5_bitshuffle": (
        "HDF5 bitshuffle-lz4 / decoder limit",
        1.15,
        hdf5_row("hdf5_bitshuffle", hdf5_limit),
    ),
    "hdf5_bitshuffle_h5py": (
        "HDF5 bitshuffle-lz4 / h5py",
        0.60,
        hdf5_row("hdf5_bitshuffle", hdf5_h5py),
    ),
    "hdf5_index_v1": (
        "100,000 chunks, B-tree 1: describe / chunk_iter",
        1.00,
        hdf5_row("hdf5_many_v1", hdf5_h5py, "describe", "--index"),
    ),
    "hdf5_index_latest": (
        "100,000 chunks, fixed array: describe / chunk_iter",
        1.00,
        hdf5_row("hdf5_many_latest", hdf5_h5py, "describe", "--index"),
    ),
    "hdf5_many_h5py": (
        "100,000 chunks of 256 bytes / h5py",
        0.30,
        hdf5_row("hdf5_many_v1", hdf5_h5py),
    ),
    "hdf5_many_hidefix": (
        "100,000 chunks of 256 bytes / hidefix",
        0.80,
        hdf5_row("hdf5_many_v1", hdf5_hidefix),
    ),
    "hdf5_latest_hidefix": (
        "100,000 chunks, fixed array / hidefix",
        0.80,
        hdf5_row("hdf5_many_latest", hdf5_hidefix),
    ),
    "hdf5_many_1.10": (
        "100,000 chunks of 256 bytes, HDF5 1.10 / hidefix",
        0.80,
        hdf5_row("hdf5_many_v1", hdf5_hidefix, library=system_library),
    ),
    "hdf5_index_1.10": (
        "B-tree 1, HDF5 1.10: describe / chunk_iter",
        1.00,
        hdf5_row("hdf5_many_v1", hdf5_h5py, "describe", "--index", library=system_library),
    ),
    "hdf5_virtual": (
        "virtual dataset over 1,000 files / h5py",
        0.50,
        hdf5_row("hdf5_virtual", hdf5_h5py),
    ),
    "save_npy": ("save npy, shared memory / plain pwrite", 1.15, save_limit(False)),
    "save_npy_disk": ("save npy, disk / plain pwrite", 1.15, save_limit(True)),
    "save_hdf5_contiguous": (
        "save HDF5 contiguous, shared memory / plain pwrite",
        1.15,
        save_limit(False, "--layout", "contiguous"),
    ),
    "save_hdf5_contiguous_disk": (
        "save HDF5 contiguous, disk / plain pwrite",
        1.15,
        save_limit(True, "--layout", "contiguous"),
    ),
    "save_virtual": (
        "save HDF5 virtual, shared memory / plain pwrite",
        1.15,
        save_limit(False, "--layout", "virtual"),
    ),
    "save_virtual_disk": (
        "save HDF5 virtual, disk / plain pwrite",
        1.15,
        save_limit(True, "--layout", "virtual"),
    ),
    "save_contiguous_h5py": (
        "save HDF5 contiguous / h5py",
        0.90,
        save_peer("contiguous", "--layout", "contiguous"),
    ),
    "save_gzip": (
        "save shuffle + gzip 4 / h5py",
        0.25,
        save_peer("gzip", "--layout", "chunked", "--codec", "shuffle,deflate:4"),
    ),
    "save_zstd": (
        "save zstd 3 / h5py + hdf5plugin",
        0.60,
        save_peer("zstd", "--layout", "chunked", "--codec", "zstd:3"),
    ),
    "save_group": ("100 arrays of 64 KiB into one file / h5py", 0.50, save_peer("group")),
    "copy": ("copy of 2 GiB, gzip to zstd / the slower of both alone", 1.20, copy_row),
    "strided_2": (
        "Python: every 2nd column of rows of 500 / read all and cut",
        1.05,
        python_pairs("strided", "2"),
    ),
    "strided_10": (
        "Python: every 10th column of rows of 500 / read all and cut",
        1.05,
        python_pairs("strided", "10"),
    ),
    "strided_50": (
        "Python: every 50th column of rows of 500 / read all and cut",
        1.05,
        python_pairs("strided", "50"),
    ),
    "field": (
        "Python: one of 40 fields, npy / plain read of all bytes",
        1.20,
        python_pairs("field", "plain"),
    ),
    "field_h5py": ("Python: one of 40 fields, HDF5 / h5py", 0.30, python_pairs("field", "h5py")),
    "elements_h5py": (
        "Python: 5,000 single elements of chunks of 12 / h5py",
        1.00,
        python_pairs("elements"),
    ),
    "py_small_box": ("Python: 1,000 boxes of 1 KiB, contiguous, open / h5py", 0.30, python_boxes),
    "py_load_uneven": (
        "Python: tegula.load of 32 uneven shards / the C call",
        1.05,
        python_load("C"),
    ),
    "py_load_numpy": (
        "Python: tegula.load of 32 uneven shards / numpy's loop",
        0.60,
        python_load("numpy"),
    ),
    "py_import": ("import tegula beyond numpy / import numpy", 0.30, python_import),
    "legate_uneven": (
        "Legate: 32 uneven shards / limit, touched memory",
        1.10,
        legate_row("uneven", "load", "limit"),
    ),
    "legate_hand": (
        "Legate: 32 uneven shards / a loader by hand",
        0.95,
        legate_row("uneven", "load", "hand"),
    ),
    "legate_big_endian": (
        "Legate: big-endian shards / a loader by hand",
        0.60,
        legate_row("big_endian", "load", "hand"),
    ),
    "legate_fortran": (
        "Legate: Fortran-order shards / a loader by hand",
        0.60,
        legate_row("fortran", "load", "hand"),
    ),
    "legate_gzip": (
        "Legate: HDF5 shuffle + gzip 4 / legate.io.hdf5",
        0.20,
        legate_row("hdf5_gzip", "from_file", "theirs"),
    ),
    "legate_contiguous": (
        "Legate: HDF5 contiguous / legate.io.hdf5",
        1.10,
        legate_row("hdf5_contiguous", "from_file", "theirs"),
    ),
    "legate_to_file": (
        "Legate: to_file, shared memory / legate.io.hdf5",
        0.80,
        legate_row("uneven", "to_file", "theirs_to_file", True),
    ),
    "legate_to_file_disk": (
        "Legate: durable save, disk / legate.io.hdf5 + fdatasync",
        0.80,
        legate_row("uneven", "durable", "theirs_durable", True, True),
    ),
    "legate_process": ("small load, process / the same with Legate", 0.15, legate_process),
    "ranks_threads": (
        "2 ranks x 1 thread, 32 shards / 1 rank x 2 threads",
        1.15,
        ranks_threads("uneven"),
    ),
    "ranks_threads_gzip": (
        "2 ranks x 1 thread, gzip / 1 rank x 2 threads",
        1.15,
        ranks_threads("hdf5_gzip"),
    ),
    "ranks_h5py": (
        "2 ranks, HDF5 contiguous / mpi4py + h5py",
        0.90,
        ranks_peer("hdf5_contiguous", "tegula", "h5py"),
    ),
    "ranks_h5py_plain": (
        "2 ranks, one plain read each into new memory / mpi4py + h5py",
        0.90,
        ranks_peer("hdf5_contiguous", "plain", "h5py"),
    ),
    "ranks_h5py_gzip": (
        "2 ranks, HDF5 shuffle + gzip 4 / mpi4py + h5py",
        0.50,
        ranks_peer("hdf5_gzip", "tegula", "h5py"),
    ),
    "ranks_heat_npy": (
        "2 ranks, 32 shards / Heat's load_npy_from_path",
        0.40,
        ranks_peer("uneven", "tegula_heat", "heat_npy"),
    ),
    "ranks_heat_hdf5": (
        "2 ranks, HDF5 contiguous / Heat's load_hdf5",
        0.40,
        ranks_peer("hdf5_contiguous", "tegula_heat", "heat_hdf5"),
    ),
    "ranks_heat_npy_peak": (
        "peak memory / Heat's load_npy_from_path",
        0.51,
        ranks_memory("uneven", "tegula_heat", "heat_npy"),
    ),
    "ranks_heat_hdf5_peak": (
        "peak memory / Heat's load_hdf5",
        0.51,
        ranks_memory("hdf5_contiguous", "tegula_heat", "heat_hdf5"),
    ),
    "ranks_start_mpich": (
        "small load, job of 8 ranks / MPI alone, MPICH",
        1.15,
        ranks_start("mpich"),
    ),
    "ranks_start_openmpi": (
        "small load, job of 8 ranks / MPI alone, Open MPI",
        1.15,
        ranks_start("openmpi"),
    ),
    "info": ("tegula info process / python -c 'import numpy'", 0.20, info_process),
}


def describe_machine():
    def first(path, start):
        try:
            with open(path, encoding="utf-8") as file:
                return next(
                    (line.split(":", 1)[1].strip() for line in file if line.startswith(start)), None
                )
        except OSError:
            return None

    return {
        "processors": len(os.sched_getaffinity(0)),
        "model": first("/proc/cpuinfo", "model name"),
        "memory": first("/proc/meminfo", "MemTotal"),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def print_attempts(name, text, target, attempts, notes):
    for index, attempt in enumerate(attempts):
        medians = attempt.get("medians")
        seconds = f"{medians['subject']:10.4f} {medians['limit']:10.4f}" if medians else " " * 21
        same = f"{attempt['a_over_a']:6.3f}" if medians else " " * 6
        mark = "reached" if attempt["ratio"] <= target else "missed"
        if medians and not LOW <= attempt["a_over_a"] <= HIGH:
            mark += ", noisy"
        head = f"{name:15} {text:48}" if index == 0 else f"{'':15} {'  again':48}"
        print(
            f"{head} {seconds} {same} {attempt['ratio']:7.3f}  <= {target:5.2f}  {mark}", flush=True
        )
    for note in notes:
        print(f"{'':15} {note}", flush=True)


def measure(bench, names, machine, count):
    for name in names:
        text, target, row = ROWS[name]
        try:
            attempts, notes = row(bench)
        except Unavailable as reason:
            count["skipped"] += 1
            print(f"{name:15} skipped: {reason}", flush=True)
            continue
        except (RuntimeError, OSError, ValueError) as error:
            count["not measured"] += 1
            print(f"{name:15} not measured: {error}", flush=True)
            continue
        finally:
            bench.tidy()
        count["measured"] += 1
        print_attempts(name, text, target, attempts, notes)
        record = {
            "name": name,
            "what": text,
            "wanted_at_most": target,
            "machine": machine,
            "attempts": attempts,
        }
        (bench.results / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description="Measures tegula against its limits."
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"rows to run (default all): {', '.join(ROWS)}"
    )
    parser.add_argument("--build", default="build", help="build folder")
    parser.add_argument("--list", action="store_true", help="say what the rows measure, and stop")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in ROWS]
    if unknown:
        parser.error(f"unknown row: {', '.join(unknown)}; there are {', '.join(ROWS)}")
    if arguments.list:
        for name, (text, target, _) in ROWS.items():
            print(f"{name:15} {text:48} <= {target}")
        return 0
    if h5py_library():
        os.environ.setdefault("TEGULA_HDF5_LIBRARY", h5py_library())
    bench, count = Bench(arguments.build), {"measured": 0, "not measured": 0, "skipped": 0}
    machine = describe_machine()
    print(
        f"machine: {machine['processors']} processors ({machine['model']}), {machine['memory']}, "
        f"Linux {machine['kernel']}"
    )
    print(
        f"{'row':15} {'what':48} {'tegula s':>10} {'limit s':>10} {'A/A':>6} {'ratio':>7}  wanted  "
        "  "
    )
    try:
        measure(bench, arguments.names or ROWS, machine, count)
    finally:
        bench.close()
    print(", ".join(f"{number} {what}" for what, number in count.items()))
    return 1 if count["not measured"] else 0


if __name__ == "__main__":
    sys.exit(main())
