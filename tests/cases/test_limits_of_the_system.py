# Limits of the system that a program lives under: descriptors, memory, file sizes, permissions.
# Right values, or one clear error.
#
# SPDX-License-Identifier: Apache-2.0
import os
import shutil

import numpy
import pytest

from files import check_equal, load_all, save_shards
from probe import check_error

needs_prlimit = pytest.mark.skipif(not shutil.which("prlimit"), reason="needs prlimit")


@needs_prlimit
def test_more_threads_than_descriptors(new_probe, tmp_path):
    """A worker that finds no descriptor closes one that nobody uses, or waits for one."""
    own = new_probe(prefix=["prlimit", "--nofile=40"])
    own.call("context", threads=128)
    full = numpy.arange(800 * 16, dtype="f4").reshape(-1, 4)
    save_shards(tmp_path / "s", numpy.split(full, 800))
    for _ in range(3):
        got, _, _ = load_all(own, tmp_path, tmp_path / "s", tiles=3)
        check_equal(got, full)


def test_no_memory_for_all_tiles_together(probe, tmp_path):
    """Tiles that would each fit, but not together, are refused before anything is read, whether
    they lie apart or not."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    rows = memory // (1 << 20) * 5 // 4
    path = tmp_path / "big.npy"

    with open(path, "wb") as file:
        numpy.lib.format.write_array_header_1_0(
            file, {"descr": "|u1", "fortran_order": False, "shape": (rows, 1 << 20)}
        )
        file.truncate(file.tell() + (rows << 20))
    probe.call("open", path=str(path))
    probe.call("tiling", kind="even", shape=[rows, 1 << 20], tiles=16)
    for separate in (False, True):
        error = check_error(probe.refused("array", dtype="|u1", separate=separate), "out_of_memory")
        assert str(rows << 20) in error["message"]


@needs_prlimit
def test_save_beyond_the_limit_of_file_sizes(new_probe, tmp_path):
    """An error, not a signal that ends the process."""
    own = new_probe(prefix=["prlimit", "--fsize=100000"])
    values = tmp_path / "values"
    values.write_bytes(bytes(200000))
    own.batch(
        [
            {"do": "context", "threads": 2},
            {"do": "tiling", "kind": "even", "shape": [200000], "tiles": 1},
            {"do": "array", "dtype": "|u1"},
            {"do": "fill", "path": str(values)},
        ]
    )
    check_error(own.refused("save", path=str(tmp_path / "x.npy")), "io", ["x.npy"])
    assert sorted(os.listdir(tmp_path)) == ["values"]


def ready_to_save(probe, tmp_path):
    (tmp_path / "values").write_bytes(bytes(range(12)))
    probe.batch(
        [
            {"do": "tiling", "kind": "even", "shape": [12], "tiles": 1},
            {"do": "array", "dtype": "|u1"},
            {"do": "fill", "path": str(tmp_path / "values")},
        ]
    )


def test_overwriting_keeps_the_permissions(probe, tmp_path):
    ready_to_save(probe, tmp_path)
    for target, shards in (("private.npy", 0), ("folder", 3)):
        probe.call("save", path=str(tmp_path / target), shards=shards)
        os.chmod(tmp_path / target, 0o700 if shards else 0o600)
        probe.call("save", path=str(tmp_path / target), shards=shards, overwrite=True)
        assert os.stat(tmp_path / target).st_mode & 0o777 == (0o700 if shards else 0o600)
    assert numpy.load(tmp_path / "private.npy").tolist() == list(range(12))


def test_a_folder_with_other_files_is_not_replaced(probe, tmp_path):
    ready_to_save(probe, tmp_path)
    probe.call("save", path=str(tmp_path / "folder"), shards=3)
    (tmp_path / "folder" / "notes.txt").write_text("mine")
    check_error(
        probe.refused("save", path=str(tmp_path / "folder"), shards=2, overwrite=True),
        "exists",
        ["folder", "notes.txt"],
    )
    assert sorted(os.listdir(tmp_path / "folder")) == ["notes.txt"] + [
        "shard_%04d.npy" % i for i in range(3)
    ]


def test_an_unknown_suffix_is_refused(probe, tmp_path):
    ready_to_save(probe, tmp_path)
    check_error(
        probe.refused("save", path=str(tmp_path / "x.zarr9")), "unsupported", ["x.zarr9", ".zarr9"]
    )
    probe.call("save", path=str(tmp_path / "x.zarr9"), format="npy")
    assert numpy.load(tmp_path / "x.zarr9").tolist() == list(range(12))
    probe.call("save", path=str(tmp_path / ".hidden"))
    probe.call("save", path=str(tmp_path / "v1.2"), shards=2)


def test_two_byte_orders_for_one_file(probe, tmp_path):
    (tmp_path / "x.bin").write_bytes(numpy.arange(6, dtype=">i4").tobytes())
    for dtype, order in ((">i4", "<"), ("<i4", ">")):
        check_error(
            probe.refused("open", path=str(tmp_path / "x.bin"), dtype=dtype, byte_order=order),
            "invalid_argument",
            [dtype],
        )
    got, _, _ = load_all(probe, tmp_path, tmp_path / "x.bin", dtype="i4", byte_order=">")
    check_equal(got, numpy.arange(6, dtype="i4"))


def test_names_in_text_order_are_refused_in_any_list(probe, tmp_path):
    """What a shell makes of run*_part*: the order of the numbers is lost although the names
    are no single sequence."""
    paths = []
    for run in (1, 2):
        for part in range(1, 13):
            paths.append(tmp_path / ("run%d_part%d.npy" % (run, part)))
            numpy.save(paths[-1], numpy.full((1, 2), run * 100 + part))
    as_text = sorted(map(str, paths))
    check_error(
        probe.refused("open", paths=as_text, flags=1),
        "invalid_argument",
        ["part2.npy", "part12.npy"],
    )
    got, _, _ = load_all(probe, tmp_path, paths, flags=1)
    assert got[:, 0].tolist() == [run * 100 + part for run in (1, 2) for part in range(1, 13)]
    got, _, _ = load_all(probe, tmp_path, as_text)
    assert got[1, 0] == 110
