# Damaged HDF5 files through the probe: no crash, no hang, no memory that the file's size does not
# justify, and no number that h5py does not read from the same bytes.
#
# SPDX-License-Identifier: Apache-2.0
#
# usage: hdf5_mutations.py [--seconds N] [--seed N] [--workers N] [--only SEED]
#                          [--keep FOLDER] [--replay FILE...]
#
# Files are those of tests/support/hdf5_cases.py and virtual datasets over whole files beside them,
# damaged at random; in half of them the checksums of the metadata are made right again, or libhdf5
# would refuse nearly all at once. What is found lies in FOLDER, as NUMBER-KIND.h5 with the
# dataset's name in NUMBER-KIND.txt. libhdf5 itself is not built with a sanitizer and may well
# crash: such a crash counts as its own when its frames come first, is reported, and is no failure.
# Ends with status 1 when something of ours was found.
import argparse
import ast
import collections
import concurrent.futures
import contextlib
import ctypes
import json
import os
import pathlib
import random
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))

import h5py
import numpy

from hdf5_cases import CASES, VERSIONS

HANG = 10  # seconds
LARGEST = 1 << 22  # bytes of an array that is read whole; of larger ones a corner
MEMORY_MB = 256  # for one allocation, in a file of some kilobytes
OWN = ("libtegula", "tegula_probe", "/src/", "plugins/hdf5")

# ---- files ---------------------------------------------------------------------------------------

SIGNATURES = [
    b"\x89HDF\r\n\x1a\n",
    b"OHDR",
    b"OCHK",
    b"FRHP",
    b"FHDB",
    b"FHIB",
    b"FSHD",
    b"FSSE",
    b"BTHD",
    b"BTIN",
    b"BTLF",
    b"FAHD",
    b"FADB",
    b"EAHD",
    b"EAIB",
    b"EASB",
    b"EADB",
    b"SMTB",
]


def checksum():
    folder = pathlib.Path(h5py.__file__).parent.parent / "h5py.libs"
    function = ctypes.CDLL(str(next(folder.glob("libhdf5-*.so*")))).H5_checksum_lookup3
    function.restype = ctypes.c_uint32
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32]
    return lambda data: function(data, len(data), 0)


LOOKUP3 = checksum()
# both sides read with the same libhdf5
os.environ.setdefault(
    "TEGULA_HDF5_LIBRARY",
    str(next((pathlib.Path(h5py.__file__).parent.parent / "h5py.libs").glob("libhdf5-*.so*"))),
)


class Seed:
    """A good file: its bytes, its datasets, and the blocks of it that end with a checksum."""

    def __init__(self, name, data, datasets):
        self.name, self.data, self.datasets = name, data, datasets
        self.blocks = []
        self.places = []  # where metadata begins
        for signature in [*SIGNATURES, b"TREE", b"SNOD", b"HEAP", b"GCOL"]:
            at = data.find(signature)
            while at >= 0:
                self.places.append(at)
                if signature in SIGNATURES:
                    self.find_end(at)
                at = data.find(signature, at + 1)
        for at in self.places:
            if data[at : at + 4] == b"GCOL":
                self.find_lists(at + 16)

    def find_lists(self, at):
        """Objects of a global heap that end with a checksum: lists of mappings."""
        while at + 16 < len(self.data):
            index, size = (
                struct.unpack_from("<H", self.data, at)[0],
                struct.unpack_from("<Q", self.data, at + 8)[0],
            )
            at += 16
            if index == 0 or size > len(self.data) - at:
                return
            if (
                size > 8
                and LOOKUP3(self.data[at : at + size - 4])
                == struct.unpack_from("<I", self.data, at + size - 4)[0]
            ):
                self.blocks.append((at, size - 4))
                self.places.append(at)
            at += (size + 7) // 8 * 8

    def find_end(self, at):
        for size in range(8, min(4200, len(self.data) - at - 3)):
            stored = struct.unpack_from("<I", self.data, at + size)[0]
            if stored and LOOKUP3(self.data[at : at + size]) == stored:
                self.blocks.append((at, size))
                return


def make_seeds(folder):
    seeds = []
    for version in ("earliest", "latest"):
        for name, make in CASES.items():
            path = folder / "seed.h5"
            with h5py.File(path, "w", libver=VERSIONS[version]) as file:
                try:
                    datasets = make(file, numpy.random.default_rng(1))
                except ImportError:  # hdf5plugin
                    continue
            data = path.read_bytes()
            if len(data) < 1 << 20:
                seeds.append(Seed("%s-%s" % (name, version), data, list(datasets)))
    some = list(make_virtual(folder))
    return seeds + some[:1] * (len(seeds) // 8) + some[1:]


SOURCE, SOURCES = (6, 5), 260  # more than are opened at once


def make_sources(folder):
    """What virtual datasets are over: s0.h5, s1.h5, ..., all the same file, and a.bin."""
    data = numpy.arange(30, dtype="<i4").reshape(SOURCE)
    with h5py.File(folder / "s0.h5", "w") as file:
        file.create_dataset("d", data=data, chunks=(4, 3), maxshape=(None, 5), compression="gzip")
        file["plain"] = data
        file["narrow"] = data.astype(">i2")
        for k in range(3):
            file["n%d" % k] = data + k
    for k in range(1, SOURCES):
        os.link(folder / "s0.h5", folder / ("s%d.h5" % k))
    data.astype("<i2").tofile(folder / "a.bin")


def virtual(file, name, shape, dtype, mappings, maxshape=None):
    """mappings: (selection, file, dataset, selection in the source); selections are start,
    count, stride, block, or None for all."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_fill_value(numpy.array(7, dtype))
    for to, source, dataset, at in mappings:
        spaces = (
            h5py.h5s.create_simple(shape, maxshape or shape),
            h5py.h5s.create_simple(SOURCE, (h5py.h5s.UNLIMITED, 5)),
        )
        for space, selection in zip(spaces, (to, at)):
            if selection:
                space.select_hyperslab(*selection)
        plist.set_virtual(spaces[0], source.encode(), dataset.encode(), spaces[1])
    space = h5py.h5s.create_simple(shape, maxshape or shape)
    h5py.h5d.create(file.id, name.encode(), h5py.h5t.py_create(numpy.dtype(dtype)), space, plist)


def rows(k, count=6):
    return (k * count, 0), (1, 1), (1, 1), (count, 5)


def write_virtual(file):
    endless = h5py.h5s.UNLIMITED
    virtual(file, "fixed", (18, 5), "<i4", [(rows(k), "s%d.h5" % k, "d", None) for k in range(3)])
    odd = [("s0.h5", "plain"), (".", "inner"), ("s2.h5", "narrow")]
    virtual(
        file,
        "strides",
        (12, 5),
        "<f8",
        [
            (((k, 1), (4, 2), (3, 2), (1, 1)), *odd[k], ((0, 0), (4, 2), (1, 2), (1, 1)))
            for k in range(3)
        ],
    )
    virtual(
        file,
        "endless",
        (6, 5),
        "<i4",
        [
            (
                ((0, 0), (endless, 1), (1, 5), (1, 5)),
                "s1.h5",
                "d",
                ((0, 0), (endless, 1), (1, 5), (1, 5)),
            )
        ],
        (endless, 5),
    )
    virtual(
        file,
        "numbered",
        (6, 5),
        "<i4",
        [(((0, 0), (endless, 1), (6, 5), (6, 5)), "s%b.h5", "d", rows(0))],
        (endless, 5),
    )
    virtual(
        file,
        "numbered datasets",
        (6, 5),
        "<i2",
        [(((0, 0), (endless, 1), (6, 5), (6, 5)), "s3.h5", "n%b", rows(0))],
        (endless, 5),
    )
    virtual(file, "nested", (18, 5), "<f4", [(rows(0, 18), ".", "fixed", rows(0, 18))])
    file.create_dataset("inner", data=numpy.arange(30, dtype="<i8").reshape(SOURCE), chunks=(2, 5))
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_external(b"a.bin", 0, 22)
    plist.set_external(b"a.bin", 22, endless)
    h5py.h5d.create(file.id, b"external", h5py.h5t.STD_I16LE, h5py.h5s.create_simple(SOURCE), plist)
    virtual(file, "over external", SOURCE, "<f8", [(None, ".", "external", None)])
    return [
        "fixed",
        "strides",
        "endless",
        "numbered",
        "numbered datasets",
        "nested",
        "external",
        "over external",
    ]


def write_late(file):
    virtual(
        file,
        "late",
        (SOURCES * 6, 5),
        "<i4",
        [(rows(k), "s%d.h5" % k, "d", None) for k in range(SOURCES)],
    )
    virtual(file, "late nested", (60, 5), "<i4", [(rows(0, 60), ".", "late", rows(2, 60))])
    return ["late", "late nested"]


def write_arrays(file):
    """Indexes with so many slots that they are read without libhdf5."""
    for name, rows, options in (
        ("endless", (1 << 26) + 1000, {}),
        ("filtered", 1 << 27, {"compression": "gzip"}),
    ):
        dataset = file.create_dataset(
            name, (rows,), "u1", chunks=(64,), maxshape=(None,), **options
        )
        for at in (0, 3, 30, 1023, 5000, rows // 64 - 1):
            dataset[at * 64 + 5] = 7
    return ["endless", "filtered"]


def make_virtual(folder):
    """Whoever has a folder full of sources beside it."""
    make_sources(folder)
    for name, make in ("virtual", write_virtual), ("late", write_late), ("arrays", write_arrays):
        path = folder / "seed.h5"
        with h5py.File(path, "w", libver="v110") as file:
            datasets = make(file)
        yield Seed(name, path.read_bytes(), datasets)


VALUES = [
    0,
    1,
    2,
    3,
    7,
    8,
    0x10,
    0x7F,
    0x80,
    0xFF,
    0x100,
    0x7FFF,
    0x8000,
    0xFFFF,
    1 << 20,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    1 << 40,
    (1 << 62),
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 1,
]


def place(rng, seed, size):
    """Somewhere, mostly in metadata."""
    if seed.places and rng.random() < 0.85:
        return min(size - 1, rng.choice(seed.places) + int(rng.expovariate(1 / 120)))
    return rng.randrange(size)


def damage(rng, seed, data):
    """One change; gives the new bytes (of another length: checksums are left as they are)."""
    at, kind = place(rng, seed, len(data)), rng.random()
    if kind < 0.3:
        data[at] ^= 1 << rng.randrange(8)
    elif kind < 0.5:
        data[at] = rng.randrange(256)
    elif kind < 0.8:
        width = rng.choice((1, 2, 4, 8))
        value = rng.choice(VALUES) if rng.random() < 0.7 else rng.randrange(2 * len(data))
        data[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, "little")[
            : len(data) - at
        ]
    elif kind < 0.86:
        other, size = place(rng, seed, len(data)), rng.choice((1, 4, 8, 16, 64, 512))
        piece = bytes(data[at : at + size])
        data[at : at + len(piece)] = data[other : other + len(piece)].ljust(len(piece), b"\0")
        if rng.random() < 0.5:
            data[other : other + len(piece)] = piece[: len(data) - other]
    elif kind < 0.91:
        size = min(rng.choice((4, 8, 64, 512, 4096)), len(data) - at)
        data[at : at + size] = rng.choice((bytes(size), b"\xff" * size))
    elif kind < 0.95:
        del data[at:]
    elif kind < 0.97:
        del data[at : at + rng.choice((1, 8, 512))]
    else:
        data[at:at] = bytes(rng.choice((1, 8, 512)))
    return data


def mutate(rng, seed):
    data = bytearray(seed.data)
    for _ in range(1 + int(rng.expovariate(1))):
        if len(data) > 16:
            data = damage(rng, seed, data)
    if len(data) == len(seed.data) and rng.random() < 0.6:
        for at, size in seed.blocks:
            struct.pack_into("<I", data, at + size, LOOKUP3(bytes(data[at : at + size])))
    return bytes(data)


# ---- programs that are asked ---------------------------------------------------------------------


class Ended(Exception):
    """`hang`: it had to be stopped; else `text` is what it wrote to standard error."""

    def __init__(self, hang, status, text):
        super().__init__(text)
        self.hang, self.status, self.text = hang, status, text


class Asked:
    """A program that answers lines of JSON, started again when it has ended."""

    def __init__(self, words, environment):
        self.words, self.environment, self.process = words, environment, None

    def start(self):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            self.words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=self.environment,
        )

    def stop(self):
        if self.process is None:
            return None
        self.process.kill()
        status = self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process = None
        return status

    def ask(self, request, seconds=HANG):
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
            ready, _, _ = select.select([self.process.stdout], [], [], seconds)
            answer = self.process.stdout.readline() if ready else None
        except BrokenPipeError:
            answer = b""
        if answer:
            return json.loads(answer)
        if answer is None:
            self.stop()
            raise Ended(True, None, "")
        status = self.process.wait()
        self.errors.seek(0)
        text = self.errors.read().decode("utf-8", "replace")
        self.stop()
        raise Ended(False, status, text)


def plain_bytes(data):
    """The bytes of elements; of records those of their fields, one behind the other: padding is
    nobody's, and a pair (r, i) may be a complex number or two."""
    if data.dtype.names is None:
        parts = (data.real, data.imag) if data.dtype.kind == "c" else (data,)
        return b"".join(part.tobytes() for part in parts)
    names = sorted(data.dtype.names, key=lambda name: data.dtype.fields[name][1])
    return b"".join(plain_bytes(data[name]) for name in names)


def as_records(data, descr):
    """The bytes that the probe wrote, as the records that they are."""
    dtype = numpy.lib.format.descr_to_dtype(ast.literal_eval(descr))
    return plain_bytes(numpy.frombuffer(data, dtype))


def judge_loop():
    """h5py in a process of its own: for {"path", "dataset", "box"} what it reads, as hexadecimal
    bytes of a hash, or its error."""
    import hashlib

    with contextlib.suppress(ImportError):
        import hdf5plugin  # noqa: F401  (it brings filters)

    for line in sys.stdin:
        asked = json.loads(line)
        try:
            with h5py.File(asked["path"]) as file:
                dataset = file[asked["dataset"]]
                box = tuple(slice(lo, hi) for lo, hi in asked["box"])
                # elements that are arrays have their axes behind
                data = numpy.asarray(dataset[box[: dataset.ndim]], dataset.dtype.base)
                data = data[(slice(None),) * dataset.ndim + box[dataset.ndim :]]
                if data.dtype.kind not in "SV":
                    data = data.astype(data.dtype.newbyteorder("="))
                records = data.dtype.names is not None
                stored = plain_bytes(data) if records else data.tobytes()
                answer = {
                    "bytes": hashlib.sha1(stored).hexdigest(),
                    "shape": list(dataset.shape + dataset.dtype.shape),
                    "dtype": str(data.dtype),
                }
        except Exception as error:
            answer = {"failed": str(error)[:300]}
        print(json.dumps(answer), flush=True)


# ---- one case ------------------------------------------------------------------------------------


def corner(shape, item):
    box, left = [], LARGEST // max(1, item)
    for length in shape:
        box.append([0, min(length, max(1, left))])
        left //= max(1, min(length, max(1, left)))
    return box


class Runner:
    def __init__(self, folder):
        self.folder = folder
        limits = (
            "allocator_may_return_null=1:max_allocation_size_mb=%d:hard_rss_limit_mb=1500:"
            "exitcode=99:detect_leaks=0"
        ) % MEMORY_MB
        self.environment = {
            **os.environ,
            "ASAN_OPTIONS": limits,
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=99",
        }
        self.probe = Asked([os.environ["TEGULA_PROBE"]], self.environment)
        self.judge = Asked(
            [sys.executable, __file__, "--judge"],
            {**os.environ, "HDF5_EXTFILE_PREFIX": "${ORIGIN}"},
        )

    def stop(self):
        self.probe.stop()
        self.judge.stop()

    def use(self, path, dataset, seconds=HANG):
        """(kind, text): what became of it; kind is None when all is well,
        with the status as text."""
        import hashlib

        name = {} if dataset is None else {"dataset": dataset}
        opened = self.probe.ask(
            [
                {"do": "close"},
                {"do": "context", "threads": 2},
                {"do": "open", "path": str(path), **name},
            ],
            seconds,
        )[-1]
        if "error" in opened:
            return self.refused(opened["error"])
        if "shape" not in opened:
            return "odd", json.dumps(opened)
        box = corner(
            opened["shape"],
            int(opened["bytes"] / max(1, numpy.prod([float(n) for n in opened["shape"]]))) or 1,
        )
        out = path.with_suffix(".box")
        answer = self.probe.ask(
            {"do": "read", "dtype": opened["dtype"], "box": box, "path": str(out)}, seconds
        )
        if "error" in answer:
            return self.refused(answer["error"])
        try:
            expected = self.judge.ask(
                {"path": str(path), "dataset": opened["name"], "box": box}, seconds
            )
        except Ended:
            return None, "ok, h5py ended"
        stored = out.read_bytes()
        stored = as_records(stored, opened["descr"]) if opened["descr"] else stored
        got = hashlib.sha1(stored).hexdigest()
        self.last = {"dataset": opened["name"], "box": box}, got
        if "failed" in expected:
            return "only-we", "%s %s, h5py: %s" % (
                opened["dtype"],
                opened["shape"],
                expected["failed"],
            )
        if expected["bytes"] != got or expected["shape"] != opened["shape"]:
            return "differs", "%s %s, h5py: %s" % (opened["dtype"], opened["shape"], expected)
        return None, "ok"

    def as_undamaged(self, data):
        """Was it what the good file holds? libhdf5 refuses, for example, to inflate where the
        level to deflate with is damaged."""
        path = self.folder / ("good%d.h5" % id(self))
        path.write_bytes(data)
        asked, got = self.last
        return self.judge.ask({"path": str(path), **asked}).get("bytes") == got

    @staticmethod
    def refused(error):
        if error["status"] in ("internal", "unknown", "out_of_memory") or "\n" in error["message"]:
            return error["status"], error["message"]
        return None, error["status"]

    def run(self, path, dataset):
        try:
            return self.use(path, dataset)
        except Ended:
            self.probe.stop()
        try:  # once more, alone and with patience
            return self.use(path, dataset, 2 * HANG)
        except Ended as end:
            return ("hang", "") if end.hang else self.crash(end)

    @staticmethod
    def crash(end):
        """Whose it is: the first frame that is neither the sanitizer's nor the C library's."""
        for line in end.text.splitlines():
            frame = line.strip()
            if not frame.startswith("#") or any(
                word in frame for word in ("sanitizer", "libasan", "libc.so", "libubsan", "<null>)")
            ):
                continue
            if any(word in frame for word in OWN):
                return "crash", end.text[-6000:]
            return "libhdf5", end.text[-6000:]
        kind = (
            "libhdf5"
            if end.status in (-signal.SIGSEGV, -signal.SIGFPE) and "memfd" in end.text
            else "crash"
        )
        return kind, "status %s\n%s" % (end.status, end.text[-6000:])


def worker(arguments, number, folder, seeds, until, found):
    rng = random.Random(arguments.seed * 1000 + number)
    runner = Runner(folder)
    counts = collections.Counter()
    try:
        while time.monotonic() < until:
            seed = rng.choice(seeds)
            path = folder / ("case%d.h5" % number)
            data = mutate(rng, seed)
            path.write_bytes(data)
            dataset = rng.choice(seed.datasets) if rng.random() < 0.95 else None
            kind, text = runner.run(path, dataset)
            if kind == "only-we" and runner.as_undamaged(seed.data):
                kind, text = None, "ok, h5py refused"
            counts[text if kind is None else "! " + kind] += 1
            if kind is not None:
                found.append((kind, seed.name, dataset, data, text))
    finally:
        runner.stop()
    return counts


# ---- the program ---------------------------------------------------------------------------------

ACCEPTED = {"libhdf5"}


def keep(found, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for number, (kind, seed, dataset, data, text) in enumerate(found):
        stem = folder / ("%04d-%s" % (number, kind))
        stem.with_suffix(".h5").write_bytes(data)
        stem.with_suffix(".txt").write_text("%s\n%s\n%s\n" % (dataset, seed, text))


def replay(arguments, folder):
    bad = 0
    make_sources(folder)
    runner = Runner(folder)
    for name in arguments.replay:
        source = pathlib.Path(name)
        dataset = source.with_suffix(".txt").read_text().split("\n")[0]
        path = folder / "replayed.h5"
        path.write_bytes(source.read_bytes())
        kind, text = runner.run(path, None if dataset == "None" else dataset)
        bad += kind is not None and kind not in ACCEPTED
        print("%s: %s: %s" % (name, kind or "well", text))
    runner.stop()
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--only", help="the seeds whose names begin so")
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("build/fuzz/found/hdf5"))
    parser.add_argument("--replay", nargs="*")
    parser.add_argument("--judge", action="store_true")
    arguments = parser.parse_args()
    if arguments.judge:
        return judge_loop()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if arguments.replay:
            return replay(arguments, folder) > 0
        if arguments.seed is None:
            arguments.seed = int(time.time())
        seeds, found = (
            [seed for seed in make_seeds(folder) if seed.name.startswith(arguments.only or "")],
            [],
        )
        until = time.monotonic() + arguments.seconds
        with concurrent.futures.ThreadPoolExecutor(arguments.workers) as pool:
            jobs = [
                pool.submit(worker, arguments, k, folder, seeds, until, found)
                for k in range(arguments.workers)
            ]
            counts = sum((job.result() for job in jobs), collections.Counter())
    keep(found, arguments.keep)
    print(
        "seed %d, %d files: %s" % (arguments.seed, sum(counts.values()), dict(counts.most_common()))
    )
    bad = [entry for entry in found if entry[0] not in ACCEPTED]
    for kind, seed, dataset, _, text in bad[:20]:
        print("%s: %s, dataset %s: %s" % (kind, seed, dataset, text.strip().split("\n")[0][:300]))
    return len(bad) > 0


if __name__ == "__main__":
    sys.exit(main())
