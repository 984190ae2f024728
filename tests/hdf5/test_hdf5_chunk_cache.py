# Small boxes in any order: the chunks around them are decoded once, and what is given is still what
# the file holds.
#
# SPDX-License-Identifier: Apache-2.0
import os

import h5py
import numpy
import pytest

import generate_arrays as gen
from probe import check_error

SHAPE = (90, 13, 8)


def make(path, data, **options):
    with h5py.File(path, "w") as file:
        file.create_dataset(
            "x", data=data, **{"chunks": (20, 13, 5), "compression": "gzip", **options}
        )


def row(probe, tmp_path, index, dtype="<i4", **options):
    box = [[index, index + 1], [0, 13], [0, 8]]
    answer = probe.call(
        "read",
        dtype=dtype,
        box=box,
        layout={"axes": [0, 1, 2]},
        path=str(tmp_path / "box"),
        **options,
    )
    return numpy.fromfile(tmp_path / "box", dtype).reshape(1, 13, 8), answer["statistics"]


@pytest.fixture
def data():
    return numpy.random.default_rng(4).integers(-99, 99, SHAPE).astype("<i4")


def test_a_walk_over_rows_decodes_each_chunk_once(probe, tmp_path, data):
    make(tmp_path / "x.h5", data)
    stored = (tmp_path / "x.h5").stat().st_size
    probe.call("open", path=str(tmp_path / "x.h5"), dataset="x")
    read = []
    for index in range(90):
        found, statistics = row(probe, tmp_path, index)
        assert (found[0] == data[index]).all()
        read.append(statistics["bytes_read"])
    assert sum(read) <= stored
    assert [at for at, size in enumerate(read) if size] == [0, 20, 40, 60, 80]


def test_single_elements_at_random_decode_each_chunk_once(probe, tmp_path, data):
    make(tmp_path / "x.h5", data)
    stored = (tmp_path / "x.h5").stat().st_size
    probe.call("open", path=str(tmp_path / "x.h5"), dataset="x")
    rng, read = numpy.random.default_rng(9), 0
    for _ in range(300):
        at = tuple(int(rng.integers(n)) for n in SHAPE)
        answer = probe.call(
            "read", dtype="<i4", box=[[i, i + 1] for i in at], path=str(tmp_path / "box")
        )
        assert numpy.fromfile(tmp_path / "box", "<i4") == data[at]
        read += answer["statistics"]["bytes_read"]
    assert read <= stored


def test_chunks_of_a_dataset_that_is_closed_are_not_given_to_another(probe, tmp_path, data):
    for number in range(3):
        make(tmp_path / "x.h5", data + number)
        probe.call("open", path=str(tmp_path / "x.h5"), dataset="x")
        for _ in range(2):
            assert (row(probe, tmp_path, 7)[0][0] == data[7] + number).all()


def test_a_small_buffer_limit_keeps_little(new_probe, tmp_path, data):
    """A chunk that is more than its share of the limit is decoded each time."""
    make(tmp_path / "x.h5", data)
    for staging, again in ((65536, True), (1 << 20, False)):
        probe = new_probe()
        probe.call("context", threads=1, staging_bytes=staging)
        probe.call("open", path=str(tmp_path / "x.h5"), dataset="x")
        row(probe, tmp_path, 7)
        assert (row(probe, tmp_path, 8)[1]["bytes_read"] > 0) == again


@pytest.mark.parametrize("dtype", ["<i4", ">i2", "<f8"])
@pytest.mark.parametrize("shards", [1, 4])
@pytest.mark.parametrize("threads", [1, 3])
def test_boxes_that_come_back(probe, tmp_path, dtype, shards, threads):
    """Of one file and of several, whose borders cut chunks; some chunks were never written."""
    rng = numpy.random.default_rng(7)
    data = rng.integers(0, 99, SHAPE).astype(dtype)
    (tmp_path / "set").mkdir()
    for k, part in enumerate(numpy.array_split(data, shards)):
        with h5py.File(tmp_path / "set" / f"{k}.h5", "w") as file:
            x = file.create_dataset(
                "x",
                part.shape,
                dtype,
                chunks=(7 + k, 6, 8),
                compression="lzf",
                shuffle=True,
                fillvalue=5,
            )
            x[: len(part) - 8] = part[: len(part) - 8]
            part[(len(part) - 8 + 6 + k) // (7 + k) * (7 + k) :] = 5
            part[len(part) - 8 :] = x[len(part) - 8 :]
    boxes = []
    while len(boxes) < 300:
        corner = [int(rng.integers(n)) for n in SHAPE]
        sizes = [int(rng.integers(1, n)) for n in (12, 7, 8)]
        for _ in range(int(rng.integers(1, 5))):
            boxes.append(
                [[lo, min(n, lo + size)] for lo, size, n in zip(corner, sizes, SHAPE, strict=True)]
            )
            corner[0] = min(corner[0] + int(rng.integers(2)), SHAPE[0] - 1)
    probe.call("open", path=str(tmp_path / "set"), dataset="x")
    native = dtype.replace(">", "<")
    for asked in (native, ">" + native[1:]):
        probe.call(
            "read_boxes", dtype=asked, boxes=boxes, threads=threads, path=str(tmp_path / "boxes")
        )
        want = b"".join(gen.in_box(data, box).astype(asked).tobytes() for box in boxes)
        assert (tmp_path / "boxes").read_bytes() == want


@pytest.mark.parametrize("how", ["in place", "shorter", "gone"])
def test_what_is_held_does_not_outlive_its_file(probe, tmp_path, data, how):
    path = tmp_path / "x.h5"
    make(path, data)
    probe.call("open", path=str(path), dataset="x")
    assert [row(probe, tmp_path, index)[1]["bytes_read"] > 0 for index in (3, 4)] == [True, False]
    if how == "in place":
        with h5py.File(path, "r+") as file:
            file["x"][6] = 7
        os.utime(path, ns=(1, 1))  # however coarse the clock of the file system is
    elif how == "shorter":
        os.truncate(path, path.stat().st_size - 1)
    else:
        path.unlink()
    for _ in range(2):
        refused = probe.refused(
            "read",
            dtype="<i4",
            box=[[6, 7], [0, 13], [0, 8]],
            layout={"axes": [0, 1, 2]},
            path=str(tmp_path / "box"),
        )
        check_error(refused, "changed", [], path)


def test_chunks_that_were_never_written_are_counted_each_time(probe, tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", SHAPE, "<i4", chunks=(20, 13, 5), compression="gzip", fillvalue=3)[
            :, :, :5
        ] = 1
    probe.call("open", path=str(tmp_path / "x.h5"), dataset="x")
    first = row(probe, tmp_path, 2)[1]
    for _ in range(3):
        found, statistics = row(probe, tmp_path, 2)
        assert (
            (found[:, :, :5] == 1).all()
            and (found[:, :, 5:] == 3).all()
            and statistics["missing"] == 1
        )
        assert (
            statistics["reads"] == first["reads"]
            and statistics["bytes_read"] == first["bytes_read"]
        )


def test_the_last_chunk_of_as_many_elements_as_there_can_be(probe, tmp_path):
    """The end of the chunk would be behind the largest number there is."""
    n = 2**63 - 1
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", (n,), "i1", chunks=(1000,), compression="gzip", maxshape=(None,))[
            n - 5 :
        ] = range(5, 10)
    probe.call("open", path=str(tmp_path / "x.h5"), dataset="x")
    for index in range(5):
        box = [[n - 5 + index, n - 4 + index]]
        probe.call("read", dtype="|i1", box=box, layout={"axes": [0]}, path=str(tmp_path / "box"))
        assert (tmp_path / "box").read_bytes() == bytes([5 + index])
