# No plan falls apart in silence: random sets of empty, one-row, small and huge parts, stored in
# every way and in every order, are loaded, copied, checked and walked over with no more requests
# than their sizes need, times a constant.
#
# SPDX-License-Identifier: Apache-2.0
#
# The bounds know sizes only: files, bytes, chunks, pieces, windows. A request for each element, or
# for each row of a few bytes, is far beyond them.
import itertools
import json
import math
import os
import pathlib
import sys

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes the files")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))

import generate_arrays as gen  # noqa: E402
import property_runner  # noqa: E402
from command import report  # noqa: E402
from reference_hash import content_hash  # noqa: E402

ENV = {
    key: value
    for key, value in os.environ.items()
    if key in ("TEGULA_HDF5_LIBRARY", "TEGULA_PLUGIN_PATH")
}
SLACK = 4
REQUEST = 16384  # bytes of a request, where as many follow one another in the file
GAP = 16384  # bytes that may be read over between two runs
STARTING = 300  # requests of a program that starts
TARGETS = ["npy", "npy shards", "raw", "raw shards", "contiguous", "chunked", "gzip", "kept"]


# ---- sets of parts ----


def random_rows(rng, rows):
    """Rows of the parts: one or two that are huge,
    and others that say nothing about them, in any order."""
    odd = []
    for _ in range(int(rng.integers(0, 6))):
        odd += [int(rng.choice([0, 0, 1, 1, 2, rng.integers(1, 10)]))] * int(
            rng.choice([1, 1, 2, 12])
        )
    huge = max(1, rows - sum(odd))
    cut = int(rng.integers(0, huge)) if rng.random() < 0.4 else 0
    return [int(n) for n in rng.permutation([*odd, cut, huge - cut])]


def random_shape(rng):
    """Some hundred thousand elements along one axis to three."""
    elements, behind = int(rng.integers(60_000, 400_000)), []
    for _ in range(int(rng.choice([0, 1, 1, 1, 2]))):
        behind.append(int(rng.integers(1, max(2, int(elements ** rng.uniform(0.05, 0.6))))))
        elements //= behind[-1]
    return (max(80, elements), *behind)


def random_chunk(rng, shape, item):
    """A chunk of 8 to 128 KiB, so that there are few of them."""
    chunk = [int(rng.integers(1, max(1, n) + 1)) for n in shape]
    while math.prod(chunk) * item < 8192 and any(c < n for c, n in zip(chunk, shape)):
        chunk = [max(1, min(2 * c, n)) for c, n in zip(chunk, shape)]
    while math.prod(chunk) * item > 131072:
        longest = chunk.index(max(chunk))
        chunk[longest] = -(-chunk[longest] // 2)
    return chunk


class Part:
    """Rows of the array in a file: dense in C or Fortran order, or in chunks."""

    def __init__(self, start, array, how="C", chunk=None):
        self.start, self.shape, self.how, self.chunk, self.item = (
            start,
            array.shape,
            how,
            chunk,
            array.itemsize,
        )
        self.chunks = (
            0 if chunk is None else math.prod(-(-n // c) for n, c in zip(array.shape, chunk))
        )
        self.nbytes = (
            array.nbytes if chunk is None else self.chunks * math.prod(chunk) * array.itemsize
        )

    def requests(self, box):
        """What the box needs of it, one by one: runs of bytes, cut at REQUEST, and chunks."""
        lo, hi = max(box[0][0], self.start), min(box[0][1], self.start + self.shape[0])
        lengths = [hi - lo, *(b - a for a, b in box[1:])]
        if min(lengths) <= 0:
            return 0
        if self.chunk is not None:
            return (
                math.prod(-(-n // c) + 1 for n, c in zip(lengths, self.chunk))
                + math.prod(lengths) * self.item // REQUEST
            )
        run = self.item
        for k in range(len(lengths))[:: 1 if self.how == "F" else -1]:
            run *= lengths[k]
            if lengths[k] < self.shape[k]:
                break
        return math.prod(lengths) * self.item // min(run, REQUEST) + 1


def write_npy(rng, folder, array, cuts, mixed):
    hows = ["CF"[rng.integers(2)] for _ in cuts] if mixed else ["CF"[rng.integers(2)]] * len(cuts)
    for number, (a, b) in enumerate(itertools.pairwise(cuts)):
        gen.npy_file(folder / ("p%d.npy" % number), array[a:b], hows[number])
    return folder, {}, [Part(a, array[a:b], how) for a, b, how in zip(cuts, cuts[1:], hows)]


def write_raw(rng, folder, array, cuts, mixed):
    how = "CF"[rng.integers(2)]
    for number, (a, b) in enumerate(itertools.pairwise(cuts)):
        gen.raw_file(folder / ("p%d.bin" % number), array[a:b], how)
    options = {
        "dtype": array.dtype.str,
        "row_shape": list(array.shape[1:]),
        "order": how,
        "format": "raw",
    }
    return folder, options, [Part(a, array[a:b], how) for a, b in itertools.pairwise(cuts)]


def random_storage(rng, shape, item):
    kind = rng.random()
    if kind < 0.3:
        return {}
    options = {"chunks": tuple(random_chunk(rng, shape, item)), "maxshape": (None,) * len(shape)}
    if kind < 0.6:
        return options
    return {
        **options,
        "compression": "gzip",
        "compression_opts": 1,
        "shuffle": bool(rng.random() < 0.5),
    }


def write_hdf5(rng, folder, array, cuts, mixed):
    parts, alike = [], random_storage(rng, array.shape, array.itemsize)
    for number, (a, b) in enumerate(itertools.pairwise(cuts)):
        options = random_storage(rng, (b - a, *array.shape[1:]), array.itemsize) if mixed else alike
        with h5py.File(folder / ("p%d.h5" % number), "w") as file:
            if not array[a:b].any():
                file.create_dataset("x", array[a:b].shape, array.dtype, **options)  # never written
            else:
                file.create_dataset("x", data=array[a:b], **options)
        parts.append(Part(a, array[a:b], "C", options.get("chunks")))
    return folder, {}, parts


def write_virtual(rng, folder, array, cuts, mixed):
    _, _, parts = write_hdf5(rng, folder, array, cuts, mixed)
    layout = h5py.VirtualLayout(array.shape, array.dtype)
    for number, (a, b) in enumerate(itertools.pairwise(cuts)):
        if a < b:
            layout[a:b] = h5py.VirtualSource(folder / ("p%d.h5" % number), "x", array[a:b].shape)
    with h5py.File(folder / "v.h5", "w") as file:
        file.create_virtual_dataset("x", layout)
    return folder / "v.h5", {}, parts


class Set:
    def __init__(self, rng, folder, array):
        folder.mkdir()
        write = [write_npy, write_npy, write_raw, write_hdf5, write_hdf5, write_virtual][
            rng.integers(6)
        ]
        rows, mixed = random_rows(rng, len(array)), bool(rng.random() < 0.6)
        self.path, self.options, self.parts = write(
            rng, folder, array, [0, *numpy.cumsum(rows).tolist()], mixed
        )
        hdf5, chunks = write in (write_hdf5, write_virtual), sum(part.chunks for part in self.parts)
        self.nbytes = sum(part.nbytes for part in self.parts)
        self.describing = 16 * (len(rows) + 1) + chunks // 8 if hdf5 else 2 * len(rows)
        self.describing_bytes = self.describing * (65536 if hdf5 else 4096)
        stored = [part.chunk or part.how for part in self.parts]
        self.story = "%s of %s, rows %s, %s" % (write.__name__, array.dtype, rows, stored)

    def open(self):
        return {"do": "open", "path": str(self.path), **self.options}

    def arguments(self, raw_format="--format"):
        words = []
        for key, value in self.options.items():
            words += [
                raw_format if key == "format" else "--" + key.replace("_", "-"),
                (",".join(map(str, value)) or "()") if isinstance(value, list) else value,
            ]
        return words

    def requests(self, boxes):
        return sum(part.requests(box) for part in self.parts for box in boxes)


def check(what, found, requests, data, *sets):
    """`found` is what was read; the headers of the sets are read besides."""
    most = SLACK * requests + 16 + sum(one.describing for one in sets)
    most_bytes = SLACK * data + 65536 + sum(one.describing_bytes for one in sets)
    story = "; ".join(one.story for one in sets)
    reads, read = found["reads"], found["bytes_read"]
    assert reads <= most, "%s: %d requests, expected at most %d: %s" % (what, reads, most, story)
    assert read <= most_bytes, "%s: %d bytes read, expected at most %d: %s" % (
        what,
        read,
        most_bytes,
        story,
    )


def random_values(rng, shape):
    """Random numbers; the first or last rows may be zeros, so that a part of HDF5 may be one
    that was never written."""
    array = gen.random_array(
        rng, shape, numpy.dtype(["u1", "<i2", "<i4", "<u8"][rng.integers(4)])
    ).copy()
    if rng.random() < 0.3:
        array[: int(rng.integers(1, 40))] = 0
    if rng.random() < 0.2:
        array[-int(rng.integers(1, 40)) :] = 0
    return array


# ---- load, hash, verify, compare, batches ----


def check_dump(dump, path, array):
    data, position = path.read_bytes(), 0
    for tile in dump["tiles"]:
        assert (
            data[position : position + tile["bytes"]] == gen.in_box(array, tile["box"]).tobytes()
        ), "tile %s" % tile["box"]
        position += tile["bytes"]
    assert position == len(data) == array.nbytes and dump["stray"] == 0


def random_piece(rng, shape):
    """Of batches; there are at most 48."""
    piece = [int(rng.integers(max(1, n // 6), n + 1)) for n in shape]
    while math.prod(-(-n // p) for n, p in zip(shape, piece)) > 48:
        piece = [min(n, 2 * p) for n, p in zip(shape, piece)]
    return piece


def read_case(probe, rng, folder):
    array = random_values(rng, random_shape(rng))
    first, second = Set(rng, folder / "a", array), Set(rng, folder / "b", array)
    dtype, whole, piece = (
        array.dtype.str,
        [[0, n] for n in array.shape],
        random_piece(rng, array.shape),
    )
    axis, tiles = int(rng.integers(array.ndim)), int(rng.integers(1, 9))
    dump, pieces = folder / "dump", folder / "pieces"
    answers = probe.batch(
        [
            {
                "do": "context",
                "threads": int(rng.integers(1, 5)),
                "staging_bytes": int(rng.choice([0, 1 << 20])),
            },
            first.open(),
            {
                "do": "tiling",
                "kind": "even",
                "list": True,
                "shape": list(array.shape),
                "axis": axis,
                "tiles": tiles,
            },
            {"do": "array", "dtype": dtype},
            {"do": "load"},
            {"do": "dump", "path": str(dump)},
            {"do": "hash", "of": "dataset"},
            {"do": "verify", "level": 2},
            {"do": "batches", "chunk": piece},
            {"do": "pieces", "path": str(pieces)},
            {**second.open(), "other": True},
            {"do": "compare"},
        ]
    )
    opened, load, hashed, verified, walked, other, compared = (
        answers[i] for i in (1, 4, 6, 7, 8, 10, 11)
    )
    for one, answer in ((first, opened), (second, other)):
        check("open", answer["statistics"], 0, 0, one)
    for what, answer in (("load", load), ("hash", hashed), ("verify", verified)):
        check(what, answer["statistics"], first.requests([whole]), first.nbytes, first)
    needed = first.requests([whole]) + second.requests([whole])
    check("compare", compared["statistics"], needed, first.nbytes + second.nbytes, first, second)
    boxes = gen.grid_boxes(array.shape, piece)
    needed = first.requests(boxes)
    data = first.nbytes + min(needed * GAP, first.nbytes * len(boxes))
    check("batches of %s" % piece, walked["statistics"], needed, data, first)
    check_dump(answers[5], dump, array)
    assert (
        hashed["hash"] == content_hash(array) and verified["problems"] == [] and compared["equal"]
    )
    assert answers[9]["boxes"] == boxes
    assert pieces.read_bytes() == b"".join(gen.in_box(array, box).tobytes() for box in boxes)
    deferred = report("load", first.path, "--tiles", tiles, "--hash", *first.arguments(), env=ENV)
    assert deferred["hash"] == content_hash(array)
    check("load with headers deferred", deferred, first.requests([whole]), first.nbytes, first)


@pytest.mark.parametrize("group", range(property_runner.GROUPS))
def test_reads_need_no_more_requests_than_sizes_say(shared_probe, group):
    property_runner.run(50, group, 0.015, lambda rng, folder: read_case(shared_probe, rng, folder))


# ---- sums ----


def read_so_far():
    """By this process and the children that have ended."""
    counts = dict(
        line.split(": ") for line in pathlib.Path("/proc/self/io").read_text().splitlines()
    )
    return numpy.array([int(counts["syscr"]), int(counts["rchar"])])


def sums_case(rng, folder):
    array = random_values(rng, random_shape(rng))
    source = Set(rng, folder / "s", array)
    before = read_so_far()
    report("verify", source.path, "--write", folder / "sums.json", *source.arguments(), env=ENV)
    reads, data = read_so_far() - before
    assert json.loads((folder / "sums.json").read_text())["content"] == content_hash(array)
    found = {"reads": max(0, reads - STARTING), "bytes_read": max(0, data - STARTING * 65536)}
    check("sums", found, source.requests([[[0, n] for n in array.shape]]), source.nbytes, source)


@pytest.mark.skipif(
    not os.path.exists("/proc/self/io"), reason="this kernel does not count what is read"
)
@pytest.mark.parametrize("group", range(property_runner.GROUPS))
def test_sums_need_no_more_requests_than_sizes_say(group):
    property_runner.run(52, group, 0.008, sums_case)


# ---- copies ----


def target_of(rng, folder, array, name):
    """Path, arguments, and files of the target."""
    shards = int(rng.integers(2, 6)) if "shards" in name else 1
    words = ["--shards", shards] if "shards" in name else []
    if "npy" in name or "raw" in name:
        kind = name.split()[0]
        return (
            folder / ("t" if shards > 1 else "t." + kind),
            ["--format", kind, *words],
            shards,
            None,
        )
    chunk = random_chunk(rng, array.shape, array.itemsize) if name in ("chunked", "gzip") else None
    words += ["--layout", "contiguous"] if name == "contiguous" else []
    words += (
        [
            "--chunks",
            ",".join(map(str, chunk)),
            "--codec",
            "deflate:1" if name == "gzip" else "none",
        ]
        if chunk
        else []
    )
    return folder / "t.h5", ["--to-dataset", "y", *words], shards, chunk


def read_target(path, name, array):
    if name in ("npy", "raw"):
        return (
            numpy.load(path)
            if name == "npy"
            else numpy.fromfile(path, array.dtype).reshape(array.shape)
        )
    if "shards" in name:
        files = sorted(file for file in path.iterdir() if file.suffix != ".json")
        read = (
            numpy.load if name.startswith("npy") else lambda file: numpy.fromfile(file, array.dtype)
        )
        return numpy.concatenate([read(file).reshape(-1, *array.shape[1:]) for file in files])
    with h5py.File(path) as file:
        return file["y"][()]


def copy_case(rng, folder):
    array = random_values(rng, random_shape(rng))
    source = Set(rng, folder / "s", array)
    memory = int(rng.choice([0, 4 << 20, 1 << 20, 1 << 20]))
    window = (memory or 256 << 20) // 4
    for name in rng.choice(TARGETS, 2, replace=False):
        path, words, shards, chunk = target_of(rng, folder, array, name)
        path = path.with_name(name.replace(" ", "_") + path.name)
        words += ["--memory", memory] if memory else []
        found = report(
            "copy", source.path, path, *source.arguments("--from-format"), *words, env=ENV
        )
        assert numpy.array_equal(read_target(path, name, array), array)
        boxes = gen.even_boxes(array.shape, 0, shards)
        windows = len(boxes) + SLACK * array.nbytes // window
        needed = source.requests(boxes)
        # a window has about as much of each axis, and runs as long as that in each file
        if windows > len(boxes):
            run = min(
                REQUEST, array.itemsize * max(8, int(math.sqrt(window // array.itemsize)) // SLACK)
            )
            needed += len(source.parts) * windows + source.nbytes // run
        data = source.nbytes + min(needed * GAP, source.nbytes * windows)
        check("copy to %s %s with %d" % (name, chunk, memory), found, needed, data, source)


@pytest.mark.parametrize("group", range(property_runner.GROUPS))
def test_copies_need_no_more_requests_than_sizes_say(group):
    property_runner.run(51, group, 0.025, copy_case)
