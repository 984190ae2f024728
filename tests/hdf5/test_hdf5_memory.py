# Large chunks: what a load takes beside its array, and what comes out where shuffled chunks are put
# into tiles strip by strip.
#
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import zlib

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes and judges these files")

import generate_arrays as gen  # noqa: E402

MIB = 1 << 20


def peak(probe):
    """The most memory that the probe ever had, in bytes."""
    status = pathlib.Path("/proc/%d/status" % probe.process.pid).read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) << 10


def write_alike(path, chunks, side):
    """A shuffled and deflated dataset of square chunks of f4, all of them alike;
    gives the bytes of a stored chunk."""
    rng = numpy.random.default_rng(7)
    chunk = (rng.standard_normal((side, side)) * 100).round(1).astype("<f4")
    stored = zlib.compress(chunk.view("u1").reshape(-1, 4).T.tobytes(), 1)
    with h5py.File(path, "w") as file:
        shape = (chunks[0] * side, chunks[1] * side)
        dataset = file.create_dataset(
            "x",
            shape,
            "<f4",
            chunks=(side, side),
            compression="gzip",
            compression_opts=1,
            shuffle=True,
        )
        for at in numpy.ndindex(*chunks):
            dataset.id.write_direct_chunk((at[0] * side, at[1] * side), stored)
    return len(stored)


def test_a_worker_holds_one_encoded_and_one_decoded_chunk(new_probe, sanitizer, tmp_path):
    if sanitizer:
        pytest.skip("a sanitizer takes memory of its own")
    threads, staging, array = 16, MIB, 160 * MIB
    encoded = write_alike(tmp_path / "a.h5", (5, 8), 1024)
    probe = new_probe()
    probe.call("context", threads=threads, staging_bytes=staging)
    info = probe.call("open", path=str(tmp_path / "a.h5"))
    probe.batch(
        [
            {"do": "tiling", "kind": "even", "shape": info["shape"]},
            {"do": "array", "dtype": info["dtype"]},
        ]
    )
    before = peak(probe)
    probe.call("load")
    limit = 1.05 * array + staging + threads * (encoded + 4 * MIB) + 8 * MIB
    assert peak(probe) - before <= limit, (peak(probe) - before, limit)


SHAPES = [
    ("<f4", (150, 90, 64), (100, 70, 40)),
    (">i2", (150, 90, 64), (100, 70, 40)),
    ("<c16", (60, 50, 33), (50, 33, 20)),
    ("<f8", (7, 30000), (3, 20000)),  # a row is more than a strip
    (">f8", (5, 3, 40000), (2, 3, 35000)),
    ("<i4", (300000,), (120000,)),
    ("V12", (90000,), (70000,)),
]


@pytest.mark.parametrize("number", range(len(SHAPES)))
def test_large_shuffled_chunks_equal_h5py(probe, tmp_path, number):
    dtype, shape, chunks = SHAPES[number]
    rng = numpy.random.default_rng(number)
    count = int(numpy.prod(shape))
    data = numpy.frombuffer(rng.bytes(count // 16 * numpy.dtype(dtype).itemsize) * 17, "u1")[
        : count * numpy.dtype(dtype).itemsize
    ]
    data = (
        data.view(dtype).reshape(shape)
        if dtype[1] not in "fc"
        else numpy.resize(rng.standard_normal(count // 16), shape).astype(dtype)
    )
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset(
            "x",
            data=data,
            chunks=chunks,
            compression="gzip",
            compression_opts=1,
            shuffle=True,
            fletcher32=bool(number % 2),
        )
    with h5py.File(path) as file:
        judged = file["x"][()]
    native = judged if judged.dtype.kind == "V" else judged.astype(judged.dtype.newbyteorder("="))
    probe.call("open", path=str(path))
    for _ in range(6):
        box = gen.random_box(rng, shape)
        part = native[tuple(slice(lo, hi) for lo, hi in box)]
        probe.call(
            "read",
            dtype=gen.dtype_text(part.dtype),
            box=box,
            layout=gen.random_layout(rng, len(shape)),
            path=str(path) + ".box",
        )
        assert open(str(path) + ".box", "rb").read() == gen.plain_bytes(part), box
    for _ in range(3):
        tiling, _ = gen.random_tiling(rng, list(shape), from_dataset=False)
        probe.batch([tiling, gen.array_command(rng, native), {"do": "load"}])
        dump, at = probe.call("dump", path=str(path) + ".tiles"), 0
        stored = open(str(path) + ".tiles", "rb").read()
        for tile in dump["tiles"]:
            assert stored[at : at + tile["bytes"]] == gen.plain_bytes(
                gen.in_box(native, tile["box"])
            ), tile["box"]
            at += tile["bytes"]
