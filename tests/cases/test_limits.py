# Files that change under way, few file handles, too little memory, files larger than memory: right
# values or one clear error.
#
# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import time

import numpy
import pytest

from files import check_equal, load_all, save_shards
from probe import check_error


def opened(probe, folder, rows=1000, count=3):
    """A dataset that is open, with an array ready to be loaded."""
    full = numpy.arange(rows * count * 4, dtype="f4").reshape(-1, 4)
    paths = save_shards(folder, numpy.split(full, count))
    info = probe.call("open", path=str(folder))
    probe.batch(
        [
            {"do": "tiling", "kind": "even", "shape": info["shape"], "tiles": 2},
            {"do": "array", "dtype": info["dtype"]},
        ]
    )
    time.sleep(0.02)  # file times move on by whole ticks of the system's clock
    return paths, full


@pytest.mark.parametrize("keep_open", [0, 1])
@pytest.mark.parametrize("size", [0, 40, 128, 10000, -1])
def test_file_that_shrinks_between_open_and_load(probe, tmp_path, keep_open, size):
    probe.call("context", threads=2, max_open_files=keep_open)
    paths, _ = opened(probe, tmp_path / "s")
    os.truncate(paths[1], size if size >= 0 else os.path.getsize(paths[1]) - 1)
    check_error(probe.refused("load"), ("changed", "short_file"), ["shard_0001.npy"], path=paths[1])
    check_error(
        probe.refused("hash", of="dataset"),
        ("changed", "short_file"),
        ["shard_0001.npy"],
        path=paths[1],
    )
    check_error(
        probe.refused("read", box=[[1000, 2000], [0, 4]], dtype="<f4", path=str(tmp_path / "box")),
        ("changed", "short_file"),
        ["shard_0001.npy"],
        path=paths[1],
    )
    probe.call("read", box=[[0, 900], [0, 4]], dtype="<f4", path=str(tmp_path / "box"))


@pytest.mark.parametrize("keep_open", [0, 1])
def test_file_that_grows_or_is_written_to(probe, tmp_path, keep_open):
    probe.call("context", threads=2, max_open_files=keep_open)
    paths, _ = opened(probe, tmp_path / "a")
    with open(paths[2], "ab") as file:
        file.write(b"more")
    check_error(probe.refused("load"), "changed", ["shard_0002.npy"], path=paths[2])
    paths, _ = opened(probe, tmp_path / "b")
    with open(paths[0], "r+b") as file:
        file.seek(500)
        file.write(b"other bytes of the same length")
    check_error(probe.refused("load"), "changed", ["shard_0000.npy"], path=paths[0])


@pytest.mark.parametrize("keep_open", [0, 1])
def test_file_that_is_replaced_or_removed(probe, tmp_path, keep_open):
    """The old values are right while the old file is still held;
    values of the new file are never mixed in."""
    probe.call("context", threads=2, max_open_files=keep_open)
    for removed in (False, True):
        paths, full = opened(probe, tmp_path / ("removed" if removed else "replaced"))
        if removed:
            paths[1].unlink()
        else:
            numpy.save(tmp_path / "new.npy", numpy.full((1000, 4), 7, "f4"))
            os.replace(tmp_path / "new.npy", paths[1])
        answer = probe.ask({"do": "load"})
        if "error" in answer:
            check_error(
                answer["error"], ("changed", "not_found"), ["shard_0001.npy"], path=paths[1]
            )
        else:
            probe.call("dump", path=str(tmp_path / "dump"))
            assert (tmp_path / "dump").read_bytes() == full.tobytes()


def test_thousand_shards_with_64_file_handles(new_probe, tmp_path):
    full = numpy.arange(1000 * 3 * 5, dtype="i4").reshape(3000, 5)
    save_shards(tmp_path / "s", numpy.split(full, 1000))
    if not shutil.which("prlimit"):
        pytest.skip("needs prlimit")
    own = new_probe(prefix=["prlimit", "--nofile=64"])
    for threads in (1, 4):
        own.call("context", threads=threads)
        got, info, moved = load_all(own, tmp_path, tmp_path / "s", tiles=7)
        check_equal(got, full)
        both = {key: info["statistics"][key] + moved[key] for key in ("opens", "stats", "reads")}
        assert 1000 <= both["opens"] <= 2000, (
            "each file is opened at most once per phase: %s" % both
        )
        assert both["reads"] <= 2 * 1000, both


def test_one_open_one_stat_two_reads_per_file_while_there_is_room(probe, tmp_path):
    full = numpy.arange(200 * 4 * 4096, dtype="u1").reshape(800, 4096)
    save_shards(tmp_path / "s", numpy.split(full, 200))
    probe.call("context", threads=4, max_open_files=400)
    got, info, moved = load_all(probe, tmp_path, tmp_path / "s", tiles=3)
    check_equal(got, full)
    assert info["statistics"]["opens"] == 200 and moved["opens"] == 0
    assert info["statistics"]["reads"] + moved["reads"] <= 400
    assert info["statistics"]["stats"] + moved["stats"] <= 400, (
        "one at the open, one after the last read"
    )


def sparse_npy(path, shape, dtype="<f8"):
    """A file that claims a shape and really has that size, without blocks behind it."""
    from generate_arrays import npy_header

    header = npy_header(dtype, False, shape)
    with open(path, "wb") as file:
        file.write(header)
        file.truncate(
            len(header) + int(numpy.dtype(dtype).itemsize) * int(numpy.prod(shape, dtype="object"))
        )
    return len(header)


def test_no_memory_for_the_array(probe, tmp_path):
    """200 TB in 14 sparse files: told when the array is made, before anything is read."""
    (tmp_path / "s").mkdir()
    try:
        for number in range(14):
            sparse_npy(tmp_path / "s" / ("shard_%02d.npy" % number), (1_880_000, 1_000_000))
    except OSError as error:
        pytest.skip("this file system takes no sparse files of 15 TB: %s" % error)
    info = probe.call("open", path=str(tmp_path / "s"))
    assert (
        info["shape"] == [14 * 1_880_000, 1_000_000] and info["bytes"] == 14 * 1_880_000 * 8_000_000
    )
    for tiles, separate in ((1, False), (16, False), (16, True)):
        probe.call("tiling", kind="even", shape=info["shape"], tiles=tiles)
        error = probe.refused("array", dtype="<f8", separate=separate)
        check_error(error, "out_of_memory", ["byte"])
    probe.call(
        "read",
        box=[[20_000_000, 20_000_001], [999_990, 1_000_000]],
        dtype="<f8",
        path=str(tmp_path / "box"),
    )
    assert (tmp_path / "box").read_bytes() == bytes(80)


def test_more_memory_than_the_process_may_have(new_probe, sanitizer, tmp_path):
    if sanitizer:
        pytest.skip("a sanitizer reserves more address space than the limit of this test")
    sparse_npy(tmp_path / "a.npy", (4_000_000, 1000), "<u1")
    if not shutil.which("prlimit"):
        pytest.skip("needs prlimit")
    own = new_probe(prefix=["prlimit", "--as=%d" % (2 << 30)])
    own.call("context", threads=2)
    info = own.call("open", path=str(tmp_path / "a.npy"))
    own.call("tiling", kind="even", shape=info["shape"], tiles=2)
    check_error(own.refused("array", dtype="|u1"), "out_of_memory", ["byte"])
    own.call("tiling", kind="even", shape=[1000, 1000], tiles=2)
    own.call("array", dtype="|u1")


def test_boxes_of_a_sparse_file_of_20_gb(probe, tmp_path):
    path = tmp_path / "big.npy"
    rows, columns = 2_500_000, 1000
    try:
        start = sparse_npy(path, (rows, columns))
    except OSError as error:
        pytest.skip("this file system takes no sparse file of 20 GB: %s" % error)
    marks = {
        (0, 0): 1.5,
        (268_435, 456): 2.5,
        (536_870, 912): 3.5,
        (2_499_999, 999): 4.5,
        (1_250_000, 0): 5.5,
    }
    with open(path, "r+b") as file:
        for (row, column), value in marks.items():
            file.seek(start + 8 * (row * columns + column))
            file.write(numpy.float64(value).tobytes())
    info = probe.call("open", path=str(path))
    assert info["bytes"] == 20_000_000_000
    for (row, column), value in marks.items():
        box = [
            [max(0, row - 3), min(rows, row + 3)],
            [max(0, column - 5), min(columns, column + 5)],
        ]
        answer = probe.call("read", box=box, dtype="<f8", path=str(tmp_path / "box"))
        expected = numpy.zeros([hi - lo for lo, hi in box])
        expected[row - box[0][0], column - box[1][0]] = value
        assert (tmp_path / "box").read_bytes() == expected.tobytes()
        assert answer["statistics"]["bytes_read"] <= 6 * 8 * columns


def test_raw_offset_beyond_4_gib(probe, tmp_path):
    path = tmp_path / "raw.bin"
    offset = (1 << 32) + 12345
    with open(path, "wb") as file:
        file.seek(offset)
        file.write(numpy.arange(1000, dtype=">i4").tobytes())
    got, _, _ = load_all(probe, tmp_path, path, tiles=3, dtype=">i4", row_shape=[10], offset=offset)
    check_equal(got, numpy.arange(1000, dtype="i4").reshape(100, 10))


@pytest.mark.parametrize("staging_bytes", [65536, 200_000, 1 << 20, 0])
@pytest.mark.parametrize(
    "dtype, shape",
    [(">f8", (512, 512)), ("u1", (2000, 2000)), (">c16", (300, 700)), ("<f4", (100, 100, 50))],
)
def test_fortran_order_is_read_once_through_any_staging(
    probe, tmp_path, staging_bytes, dtype, shape
):
    """However little staging there is, no byte of the file is read again and again."""
    full = numpy.arange(int(numpy.prod(shape))).astype(dtype).reshape(shape)
    numpy.save(tmp_path / "a.npy", numpy.asfortranarray(full))
    probe.call("context", threads=2, staging_bytes=staging_bytes)
    got, _, moved = load_all(probe, tmp_path, tmp_path / "a.npy", tiles=3)
    check_equal(got, full)
    assert moved["staged_bytes"] >= full.nbytes and moved["direct_bytes"] == 0
    assert moved["bytes_read"] <= 1.5 * full.nbytes


def test_plain_shards_go_straight_to_their_place(probe, tmp_path):
    full = numpy.arange(1 << 18, dtype="f4").reshape(1024, 256)
    save_shards(tmp_path / "s", numpy.split(full, [10, 500, 900]))
    got, _, moved = load_all(probe, tmp_path, tmp_path / "s", tiles=5)
    check_equal(got, full)
    assert moved["direct_bytes"] == full.nbytes and moved["staged_bytes"] == 0
    assert moved["bytes_read"] == full.nbytes
    assert moved["io_path"]


def test_killed_save_leaves_the_old_file_or_the_new_one(new_probe, tmp_path):
    """SIGKILL at any moment of a save that overwrites: the target is one of the two, whole."""
    old = numpy.full((2000, 1000), 1.0)
    numpy.save(tmp_path / "a.npy", old)
    (tmp_path / "values").write_bytes(numpy.full((2000, 1000), 2.0).tobytes())
    seen = set()
    for wait in (0, 0.002, 0.005, 0.01, 0.02, 0.05):
        own = new_probe()
        own.batch(
            [
                {"do": "context", "threads": 2},
                {"do": "tiling", "kind": "even", "shape": [2000, 1000], "tiles": 2},
                {"do": "array", "dtype": "<f8"},
                {"do": "fill", "path": str(tmp_path / "values")},
            ]
        )
        own.send({"do": "save", "path": str(tmp_path / "a.npy"), "overwrite": True})
        time.sleep(wait)
        own.kill()
        found = numpy.load(tmp_path / "a.npy")
        assert found.shape == (2000, 1000) and (found == found[0, 0]).all()
        seen.add(float(found[0, 0]))
        numpy.save(tmp_path / "a.npy", old)
    assert seen <= {1.0, 2.0}
