# Chunk indexes that are arrays of very many slots, few of them stored: what is not stored costs
# nothing, and what is is found where libhdf5 has it.
#
# SPDX-License-Identifier: Apache-2.0
#
# The files are sparse. h5py judges values, and places where it names them right (not where an axis
# behind the first has no end) and soon.
import ctypes
import json
import math
import os
import pathlib
import sys
import time

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes and judges these files")

import hdf5_files as h5  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from command import report  # noqa: E402

OTHER = os.environ.get("TEGULA_OTHER_H5PY")
SYSTEM = sorted(pathlib.Path("/usr/lib/x86_64-linux-gnu").glob("libhdf5_serial.so.[0-9][0-9][0-9]"))
WHEELS = sorted((pathlib.Path(OTHER) / "h5py.libs").glob("libhdf5-*.so*")) if OTHER else []
LIBRARIES = [os.environ.get("TEGULA_HDF5_LIBRARY"), *map(str, SYSTEM + WHEELS)]
GZIP, N = {"compression": "gzip"}, None

# shape, chunk, maxshape, how
KINDS = {
    "fixed": ((1 << 21,), (1,), (1 << 21,), {}),
    "fixed, may grow": ((2000, 1500), (2, 1), (2200, 1501), {}),
    "fixed, gzip": ((4001, 2101), (2, 3), (4001, 2101), GZIP),
    "fixed, 3-d": ((70, 300, 99), (1, 1, 2), (70, 310, 101), {"shuffle": True}),
    "endless": ((1 << 21,), (1,), (N,), {}),
    "endless, gzip": ((3 << 20,), (2,), (N,), GZIP),
    "endless rows": ((1 << 19, 7), (1, 2), (N, 9), {}),
    "endless columns": ((6, 1 << 20), (3, 1), (7, N), {}),
    "endless, 3-d": ((3, 300000, 5), (1, 1, 2), (3, N, 6), GZIP),
    "very large": (((1 << 28) + 5000,), (1,), ((1 << 28) + 5000,), {}),
    "very far": ((3 << 29,), (1,), (N,), {}),
}


MOST = ["fixed, gzip", "endless columns", "very far"]  # with every library; all with the first


def named(path):
    return pathlib.Path(path or "default").name[:30]


@pytest.fixture
def library(request, new_probe, sanitizer):
    if sanitizer and request.param != os.environ.get("TEGULA_HDF5_LIBRARY"):
        pytest.skip("sanitizers look at one libhdf5")
    probe = new_probe(environment={"TEGULA_HDF5_LIBRARY": request.param} if request.param else {})
    probe.call("context", threads=2)
    probe.uses = {"TEGULA_HDF5_LIBRARY": request.param} if request.param else {}
    return probe


def with_libraries(kinds, most):
    cases = [
        (path, kind) for path in LIBRARIES for kind in (kinds if path == LIBRARIES[0] else most)
    ]
    return pytest.mark.parametrize(
        "library, kind",
        cases,
        indirect=["library"],
        ids=["%s-%s" % (named(path), kind) for path, kind in cases],
    )


def some_chunks(rng, counts):
    """Numbers in C order: both ends, edges of blocks and pages, and what chance gives."""
    slots = int(numpy.prod(counts, dtype="i8"))
    edges = [
        0,
        1,
        3,
        4,
        19,
        20,
        35,
        36,
        99,
        1022,
        1023,
        1024,
        1025,
        4096,
        16384,
        65535,
        1 << 17,
        (1 << 20) - 1,
        slots - 1025,
        slots - 1024,
        slots - 2,
        slots - 1,
    ]
    far = rng.integers(0, slots, 40).tolist()
    return [numpy.unravel_index(k, counts) for k in sorted({*edges, *far, *range(5000, 5040)})]


def write(path, kind, version="v110", **options):
    shape, chunk, maximum, filters = KINDS[kind]
    rng = numpy.random.default_rng(len(kind))
    counts = tuple(-(-n // c) for n, c in zip(shape, chunk))
    written = some_chunks(rng, counts)
    with h5py.File(path, "w", libver=version, **options) as file:
        x = file.create_dataset(
            "x", shape, "u1", chunks=chunk, maxshape=maximum, fillvalue=3, **filters
        )
        for at in written:
            box = tuple(
                slice(int(i) * c, min((int(i) + 1) * c, n)) for i, c, n in zip(at, chunk, shape)
            )
            x[box] = rng.integers(4, 255, [s.stop - s.start for s in box])
        file["y"] = numpy.arange(5)
    return counts, written


def check(probe, tmp_path, path, kind, counts, written):
    shape, chunk, _, _ = KINDS[kind]
    began = time.monotonic()
    info = probe.call("open", path=str(path), dataset="x")
    assert time.monotonic() - began < 60 and info["shape"] == list(shape)
    report("info", path, "--dataset", "x", "--manifest", tmp_path / "m.json", env=probe.uses)
    grid = json.loads((tmp_path / "m.json").read_text())["grids"][0]
    assert grid["coordinates"] == [int(numpy.ravel_multi_index(at, counts)) for at in written]
    rng = numpy.random.default_rng(1)
    places = not kind.startswith("very") and kind not in ("endless columns", "endless, 3-d")
    with h5py.File(path) as file:
        x = file["x"]
        for entry in rng.choice(len(written), 4, replace=False):
            first = [int(i) * c for i, c in zip(written[entry], chunk)]
            if places:
                stored = x.id.get_chunk_info_by_coord(tuple(first))
                assert (grid["offsets"][entry], grid["lengths"][entry]) == (
                    stored.byte_offset,
                    stored.size,
                )
            box = [[max(0, a - 3), min(n, a + c + 3)] for a, c, n in zip(first, chunk, shape)]
            probe.call("read", dtype="|u1", box=box, path=str(tmp_path / "box"))
            assert (tmp_path / "box").read_bytes() == x[
                tuple(slice(*ends) for ends in box)
            ].tobytes()


@with_libraries(KINDS, MOST)
def test_what_is_stored_is_found(library, tmp_path, kind):
    counts, written = write(tmp_path / "a.h5", kind)
    check(library, tmp_path, tmp_path / "a.h5", kind, counts, written)


@with_libraries(["very large", "endless columns"], [])
def test_behind_a_user_block(library, tmp_path, kind):
    counts, written = write(tmp_path / "a.h5", kind, userblock_size=1024)
    check(library, tmp_path, tmp_path / "a.h5", kind, counts, written)


@with_libraries(["endless", "very large", "very far"], ["very far"])
def test_nothing_is_stored(library, tmp_path, kind):
    shape, chunk, maximum, filters = KINDS[kind]
    with h5py.File(tmp_path / "a.h5", "w", libver="v110") as file:
        file.create_dataset(
            "x",
            (1 << 40,) if kind == "very far" else shape,
            "u1",
            chunks=chunk,
            maxshape=maximum,
            **filters,
        )
    info = library.call("open", path=str(tmp_path / "a.h5"), dataset="x")
    assert (tmp_path / "a.h5").stat().st_size < 8192 and info["chunks"] == 0
    assert (
        library.call(
            "read", dtype="|u1", box=[[1 << 20, (1 << 20) + 9]], path=str(tmp_path / "box")
        )["statistics"]["missing"]
        > 0
    )


@with_libraries(["small now"], ["small now"])
def test_it_may_become_very_large(library, tmp_path, kind):
    """A fixed array has slots for the largest shape that there can be."""
    data = numpy.arange(1, 4, dtype="u1")
    with h5py.File(tmp_path / "a.h5", "w", libver="v110") as file:
        x = file.create_dataset("x", (1000,), "u1", chunks=(1,), maxshape=(1 << 30,), fillvalue=9)
        x[4:7] = data
    began = time.monotonic()
    info = library.call("open", path=str(tmp_path / "a.h5"), dataset="x")
    assert time.monotonic() - began < 60 and info["shape"] == [1000]
    library.call("read", dtype="|u1", box=[[2, 9]], path=str(tmp_path / "box"))
    assert (tmp_path / "box").read_bytes() == bytes([9, 9, *data, 9, 9])


@with_libraries(["very large"], ["very large"])
def test_it_is_looked_at_twice(library, tmp_path, kind):
    """As a source of a virtual dataset in the same file: libhdf5 has read the header already."""
    write(tmp_path / "a.h5", kind)
    shape = KINDS[kind][0]
    at = numpy.s_[shape[0] - 3000 :]
    pieces = [(numpy.s_[k * 3000 : (k + 1) * 3000], ".", "x", shape, at) for k in range(2)]
    h5.virtual(tmp_path / "a.h5", "v", (6000,), "u1", pieces, libver="v110")
    h5.virtual(
        tmp_path / "a.h5",
        "w",
        (9000,),
        "u1",
        [(numpy.s_[:6000], ".", "v", (6000,), None), (numpy.s_[6000:], ".", "x", shape, at)],
        libver="v110",
    )
    h5.check_load(library, tmp_path, tmp_path / "a.h5", "w")


BLOCKS = {
    "FADB": "very large",
    "EAIB": "very far",
    "EASB": "very far",
    "EADB": "very far",
    "page": "very large",
    "FAHD": "very large",
}


@pytest.mark.parametrize("block", BLOCKS)
def test_a_damaged_block_is_an_error(probe, tmp_path, block):
    path = tmp_path / "a.h5"
    write(path, BLOCKS[block])
    with open(path, "r+b") as file:
        head = file.read(1 << 22)
        at = head.find(b"FADB" if block == "page" else block.encode())
        assert at > 0
        bitmap = -(-(-(-KINDS["very large"][0][0] // 1024)) // 8)  # noqa: B002
        at += 6 + 8 + bitmap + 4 + 8 if block == "page" else 7
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 1]))
    h5.open_refused(
        probe,
        path,
        "x",
        ("corrupt", "unsupported") if block == "FAHD" else "corrupt",
        ["x", "a.h5"],
    )


def test_a_filtered_chunk_without_bytes_is_an_error(probe, tmp_path):
    """Its length is 0 although filters make no such chunk; the checksum of its page fits."""
    path, kind = tmp_path / "a.h5", "fixed, gzip"
    write(path, kind)
    with h5py.File(path) as file:
        address = file["x"].id.get_chunk_info(0).byte_offset
    data = bytearray(path.read_bytes())
    head, block = data.find(b"FAHD"), data.find(b"FADB")
    item, page = data[head + 6], 1 << data[head + 7]
    pages = -(-int.from_bytes(data[head + 8 : head + 16], "little") // page)
    element = data.find(address.to_bytes(8, "little"), block)
    first = block + 6 + 8 + -(-pages // 8) + 4
    start = first + (element - first) // (page * item + 4) * (page * item + 4)
    assert (element - start) % item == 0
    data[element + 8 : element + item - 4] = bytes(item - 12)
    summed = ctypes.CDLL(LIBRARIES[0]).H5_checksum_lookup3
    summed.restype, summed.argtypes = (
        ctypes.c_uint32,
        [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint32],
    )
    rows = min(
        page,
        math.prod(-(-n // c) for n, c in zip(*KINDS[kind][:2]))
        - (start - first) // (page * item + 4) * page,
    )
    end = start + rows * item
    data[end : end + 4] = summed(bytes(data[start:end]), end - start, 0).to_bytes(4, "little")
    path.write_bytes(data)
    h5.open_refused(probe, path, "x", "corrupt", ["x", "a.h5"])
