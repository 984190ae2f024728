# tegula copy: every format and layout into every other, judged by numpy and h5py; memory, errors,
# what goes along and what does not.
#
# SPDX-License-Identifier: Apache-2.0
import itertools
import os
import pathlib
import resource
import signal
import subprocess
import time

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it judges the files")

from command import refused, report, start, tegula, usage_error  # noqa: E402
from reference_hash import content_hash  # noqa: E402

ENV = {
    key: value
    for key, value in os.environ.items()
    if key in ("TEGULA_HDF5_LIBRARY", "TEGULA_PLUGIN_PATH")
}
LOAD_KEYS = {
    "format",
    "shape",
    "dtype",
    "files",
    "sources",
    "chunks",
    "tiles",
    "ranks",
    "bytes",
    "seconds",
    "seconds_describe",
    "seconds_allocate",
    "seconds_move",
    "gb_per_s",
    "opens",
    "reads",
    "bytes_read",
    "reader_bytes",
    "missing",
    "peak_rss_bytes",
    "io_path",
    "fallback_reason",
    "hash",
    "missing_list",
}
SHAPE = (61, 7, 5)
data = numpy.random.default_rng(5).integers(-99, 99, SHAPE).astype("<i4")


def copy(*arguments, **options):
    return report("copy", *arguments, env=ENV, **options)


def no_copy(*arguments, **options):
    return refused("copy", *arguments, env=ENV, **options)


def leftovers(folder):
    """What is temporary; a folder of tiles keeps the record of whose it is, and a link to that."""
    return [
        path.name
        for path in pathlib.Path(folder).rglob(".tegula-*")
        if path.name not in (".tegula-companion", ".tegula-file")
    ]


# ---- every pair ----


def write_shards(folder, save):
    folder.mkdir()
    for number, rows in enumerate(numpy.split(data, [17, 18, 40])):
        save(folder / f"part_{number}", rows)


def write_hdf5(path, **options):
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=data, **options)


def write_virtual(path):
    layout = h5py.VirtualLayout(SHAPE, "<i4")
    for number, rows in enumerate(numpy.split(data, [30])):
        with h5py.File(f"{path}.{number}", "w") as file:
            file.create_dataset("part", data=rows, chunks=(8, 7, 2), compression="lzf")
        layout[30 * number : 30 * number + len(rows)] = h5py.VirtualSource(
            f"{path}.{number}", "part", rows.shape
        )
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("x", layout)


SOURCES = {
    "npy": lambda path: numpy.save(open(path, "wb"), data),
    "npy_fortran_big": lambda path: numpy.save(
        open(path, "wb"), numpy.asfortranarray(data.astype(">i4"))
    ),
    "npy_shards": lambda path: write_shards(
        path, lambda name, rows: numpy.save(f"{name}.npy", rows)
    ),
    "raw": lambda path: data.tofile(path),
    "raw_shards": lambda path: write_shards(path, lambda name, rows: rows.tofile(f"{name}.bin")),
    "hdf5_contiguous": write_hdf5,
    "hdf5_chunked": lambda path: write_hdf5(
        path, chunks=(10, 3, 5), compression="gzip", shuffle=True
    ),
    "hdf5_virtual": write_virtual,
}
TARGETS = {
    "npy": (),
    "npy_shards": ("--shards", 4),
    "raw": ("--format", "raw"),
    "raw_shards": ("--format", "raw", "--shards", 3),
    "hdf5_contiguous": ("--format", "hdf5", "--layout", "contiguous"),
    "hdf5_chunked": ("--format", "hdf5", "--chunks", "4,7,2", "--codec", "shuffle,deflate:1"),
    "hdf5_plain_chunks": ("--format", "hdf5", "--chunks", "61,2,3", "--codec", "none"),
    "hdf5_virtual": ("--format", "hdf5", "--layout", "virtual", "--tiles", 3),
    "hdf5_shards": ("--format", "hdf5", "--shards", 2),
}


def read_one(path):
    if str(path).endswith(".npy"):
        return numpy.load(path)
    if str(path).endswith(".h5"):
        with h5py.File(path) as file:
            (name,) = file
            return file[name][...]
    return numpy.fromfile(path, "<i4").reshape(-1, *SHAPE[1:])


def read_target(path, target):
    if path.is_dir():
        return numpy.concatenate(
            [read_one(part) for part in sorted(path.iterdir()) if part.name != "shard_meta.json"]
        )
    if target.startswith("hdf5"):
        with h5py.File(path) as file:
            (name,) = file
            return file[name][...]
    return numpy.load(path) if target == "npy" else read_one(path)


def raw_options(source):
    return ("--dtype", "<i4", "--row-shape", "7,5") if source.startswith("raw") else ()


@pytest.mark.parametrize("source", SOURCES)
def test_every_target(tmp_path, source):
    SOURCES[source](tmp_path / "source")
    for target, options in TARGETS.items():
        path = tmp_path / f"to_{target}"
        answer = copy(tmp_path / "source", path, *options, *raw_options(source), "--verify")
        found = read_target(path, target)
        assert found.dtype == data.dtype and numpy.array_equal(found, data), target
        assert set(answer) == LOAD_KEYS | {"path", "stored_bytes", "dropped"}
        assert (
            answer["shape"] == list(SHAPE)
            and answer["bytes"] == data.nbytes
            and answer["path"] == str(path)
        )
        assert answer["hash"] == content_hash(data) and answer["dropped"] == []
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(
    "target", ["npy", "npy_shards", "hdf5_contiguous", "hdf5_chunked", "hdf5_virtual"]
)
def test_windows_do_not_show(tmp_path, target):
    """Many windows, with any number of threads: the array is the same, and what is not
    compressed is the same byte for byte."""
    rows = numpy.random.default_rng(1).integers(0, 50, (999, 1301), dtype="<i4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=rows, chunks=(64, 200), compression="lzf")
    options = (
        TARGETS[target]
        if target != "hdf5_chunked"
        else ("--format", "hdf5", "--chunks", "50,130", "--codec", "shuffle,lzf")
    )
    whole = tmp_path / "whole"
    copy(tmp_path / "a.h5", whole, *options)
    for threads, memory in itertools.product((1, 3), ("1M", "3M")):
        path = tmp_path / f"part_{threads}_{memory}"
        answer = copy(
            tmp_path / "a.h5", path, *options, "--threads", threads, "--memory", memory, "--verify"
        )
        assert answer["hash"] == content_hash(rows)
        names = [""] if path.is_file() else [part.name for part in sorted(whole.iterdir())]
        if target in ("npy", "npy_shards", "hdf5_contiguous"):
            assert all((path / name).read_bytes() == (whole / name).read_bytes() for name in names)
        else:
            with h5py.File(path) as file:
                assert numpy.array_equal(file["x"][...], rows)
    if target == "hdf5_chunked":
        again = tmp_path / "again"
        copy(tmp_path / "a.h5", again, *options, "--threads", 2, "--memory", "1M")
        assert again.read_bytes() == (tmp_path / "part_1_1M").read_bytes()


def test_no_chunk_is_decoded_twice(tmp_path):
    """Whole chunks of both sides fit in a window of 1 MiB: each stored byte is read once."""
    rows = numpy.random.default_rng(1).integers(0, 50, (1200, 900), dtype="<i4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=rows, chunks=(100, 90), compression="lzf")
        stored = file["x"].id.get_storage_size()
    small, large = (
        copy(tmp_path / "a.h5", tmp_path / f"{memory}.npy", "--memory", memory)
        for memory in ("2M", "1G")
    )
    assert small["bytes_read"] == large["bytes_read"] < stored + (1 << 20)
    with h5py.File(tmp_path / "a.h5") as file:
        assert numpy.array_equal(numpy.load(tmp_path / "2M.npy"), file["x"][...])


def test_raw_shards_load_without_options(tmp_path):
    """What lies beside them says all."""
    data = numpy.arange(5 * 4 * 3, dtype=">i2").reshape(5, 4, 3)
    numpy.save(tmp_path / "a.npy", data)
    copy(tmp_path / "a.npy", tmp_path / "raw", "--format", "raw", "--shards", 3)
    assert report("load", tmp_path / "raw", "--hash")["hash"] == content_hash(data)
    assert report("info", tmp_path / "raw")["datasets"][0]["shape"] == [5, 4, 3]


# ---- shapes and dtypes ----


@pytest.mark.parametrize(
    "array",
    [
        numpy.float64(3.5),
        numpy.zeros((0, 4), "<f4"),
        numpy.zeros((3, 0, 2), "<u2"),
        numpy.arange(7) > 3,
        numpy.arange(5) * (1 - 2j),
        numpy.array([b"ab", b"c"]),
        numpy.array(["2020-01-01", "1999-12-31"], "<M8[D]"),
        numpy.array(["ab", "cdé"]),
        numpy.float16([1.5, numpy.nan]),
    ],
    ids=["scalar", "no_rows", "empty_axis", "bool", "complex", "bytes", "dates", "text", "half"],
)
def test_odd_arrays(tmp_path, array):
    array = numpy.asarray(array)
    numpy.save(tmp_path / "a.npy", array)
    copy(tmp_path / "a.npy", tmp_path / "b.npy", "--verify")
    again = numpy.load(tmp_path / "b.npy")
    assert (
        again.dtype == array.dtype
        and again.shape == array.shape
        and again.tobytes() == array.tobytes()
    )
    copy(tmp_path / "a.npy", tmp_path / "b.h5", "--verify")
    copy(tmp_path / "b.h5", tmp_path / "c.npy", "--verify")
    assert numpy.load(tmp_path / "c.npy").tobytes() == array.tobytes()
    (listed,) = report("info", tmp_path / "b.h5", env=ENV)["datasets"]
    assert numpy.dtype(listed["dtype"]) == array.dtype
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["data"].shape == array.shape and file["data"][...].tobytes() == array.tobytes()
        if array.dtype.kind != "U":  # h5py gives opaque bytes
            assert file["data"].dtype == array.dtype


def test_records(tmp_path):
    records = numpy.zeros(9, [("a", "<f4"), ("b", "<i8")])
    records["b"] = range(9)
    numpy.save(tmp_path / "a.npy", records)
    assert copy(tmp_path / "a.npy", tmp_path / "b.npy", "--verify")["dropped"] == []
    again = numpy.load(tmp_path / "b.npy")
    assert again.dtype == records.dtype and numpy.array_equal(again, records)
    (dropped,) = copy(tmp_path / "a.npy", tmp_path / "b.raw")["dropped"]
    assert dropped["what"] == "fields" and (tmp_path / "b.raw").read_bytes() == records.tobytes()
    assert copy(tmp_path / "a.npy", tmp_path / "b.h5", "--verify")["dropped"] == []
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["data"].dtype == records.dtype
        assert numpy.array_equal(file["data"][...], records)
    no_copy(
        tmp_path / "a.npy",
        tmp_path / "c.raw",
        "--strict",
        status="mismatch",
        exit_status=3,
        says=["fields"],
    )
    assert not (tmp_path / "c.raw").exists()


# ---- HDF5: what is kept ----


def test_chunks_and_codec_are_kept_as_h5repack_does(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset(
            "g/x",
            data=data,
            chunks=(10, 3, 5),
            compression="gzip",
            compression_opts=7,
            shuffle=True,
            fletcher32=True,
        )
    cases = {
        (): ((10, 3, 5), "gzip", True),
        ("--codec", "lzf"): ((10, 3, 5), "lzf", False),
        ("--codec", "none"): ((10, 3, 5), None, False),
        ("--chunks", "5,7,5"): ((5, 7, 5), "gzip", True),
        ("--layout", "chunked"): ((10, 3, 5), "gzip", True),
        ("--layout", "contiguous"): (None, None, False),
    }
    for number, (options, (chunks, compression, shuffle)) in enumerate(cases.items()):
        answer = copy(tmp_path / "a.h5", tmp_path / f"{number}.h5", *options)
        with h5py.File(tmp_path / f"{number}.h5") as file:
            found = file["g/x"]
            assert (found.chunks, found.compression, found.shuffle) == (
                chunks,
                compression,
                shuffle,
            ), options
            assert found.compression_opts == (
                7 if compression == "gzip" else None
            ) and found.fletcher32 == (compression == "gzip")
            assert answer["stored_bytes"] == found.id.get_storage_size()
            assert numpy.array_equal(found[...], data)
    copy(tmp_path / "a.h5", tmp_path / "b.h5", "--to-dataset", "y/z")
    with h5py.File(tmp_path / "b.h5") as file:
        assert list(file) == ["y"] and list(file["y"]) == ["z"]


@pytest.mark.parametrize("first", [0, 1])
def test_what_is_kept_follows_the_bytes_and_not_the_first_shard(tmp_path, first):
    values = numpy.arange(20000 * 8, dtype="<i4").reshape(20000, 8)
    (tmp_path / "shards").mkdir()
    for number, (rows, chunks, codec) in enumerate(
        [(values[:first], (1, 8), "lzf"), (values[first:], (2000, 8), "gzip")]
    ):
        with h5py.File(tmp_path / "shards" / f"{number}.h5", "w") as file:
            file.create_dataset(
                "x", data=rows, chunks=chunks, maxshape=(None, 8), compression=codec
            )
    info = report("info", tmp_path / "shards", "--dataset", "x", env=ENV)
    assert [(found["chunks"], found["codecs"]) for found in info["datasets"]] == [
        ([2000, 8], ["deflate:4"])
    ]
    copy(tmp_path / "shards", tmp_path / "all.h5")
    with h5py.File(tmp_path / "all.h5") as file:
        assert (file["x"].chunks, file["x"].compression) == (
            (2000, 8),
            "gzip",
        ) and numpy.array_equal(file["x"][()], values)


def test_attributes_and_fill_value_go_along(tmp_path):
    values = {
        "unit": "K",
        "scale": numpy.float32(0.5),
        "names": numpy.array(["a", "bé"], object),
        "range": numpy.array([[1, 2], [3, 4]], "<i8"),
        "fixed": numpy.array([b"ab", b"c"]),
        "flag": numpy.bool_(True),
        "none": h5py.Empty("f4"),
    }
    day = numpy.array(["2020-01-01", "1999-12-31"], "M8[D]")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        found = file.create_dataset("x", data=data, chunks=(10, 3, 5), fillvalue=-7)
        found.attrs.update(values)
        found.attrs["day"] = day.astype(h5py.opaque_dtype(day.dtype))
        found.attrs["yad"] = day.astype(h5py.opaque_dtype(day.dtype.newbyteorder(">")))
        found.attrs["where"] = file.ref
        found.attrs["pairs"] = numpy.zeros(2, "f4,i4")
        found.dims[1].label = "y"
    answer = copy(tmp_path / "a.h5", tmp_path / "b.h5", "--dataset", "x")
    assert [(entry["what"], entry["name"]) for entry in answer["dropped"]] == [
        ("attribute", "where")
    ]
    with h5py.File(tmp_path / "b.h5") as file:
        found = file["x"]
        assert found.fillvalue == -7 and set(found.attrs) == set(values) | {
            "DIMENSION_LABELS",
            "day",
            "yad",
            "pairs",
        }
        assert all(numpy.array_equal(found.attrs[name], day) for name in ("day", "yad"))
        assert found.attrs["yad"].dtype == day.dtype.newbyteorder(">") and found.attrs[
            "pairs"
        ].dtype == numpy.dtype("f4,i4")
        for name, value in values.items():
            if name == "none":
                assert isinstance(found.attrs[name], h5py.Empty)
            else:
                assert numpy.array_equal(found.attrs[name], value) and type(
                    found.attrs[name]
                ) is type(value), name
        assert found.dims[1].label == "y"
    dropped = copy(tmp_path / "a.h5", tmp_path / "b.npy", "--dataset", "x")["dropped"]
    assert {entry["name"] for entry in dropped if entry["what"] == "attribute"} == {
        *values,
        "DIMENSION_LABELS",
        "day",
        "yad",
        "pairs",
        "where",
    }
    assert any(entry["what"] == "fill value" for entry in dropped) and all(
        entry["reason"] for entry in dropped
    )
    lines = tegula("copy", tmp_path / "a.h5", tmp_path / "c.h5", "--dataset", "x", env=ENV).stdout
    assert "dropped attribute where: " in lines


def test_strict_copies_nothing(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = data
        file["x"].attrs["unit"] = "K"
        file["r"] = data
        file["r"].attrs["where"] = file.ref
    copy(tmp_path / "a.h5", tmp_path / "b.h5", "--dataset", "x", "--strict")
    answer = report(
        "copy",
        tmp_path / "a.h5",
        tmp_path / "b.npy",
        "--dataset",
        "x",
        "--strict",
        status=3,
        env=ENV,
    )
    assert answer["error"]["status"] == "mismatch" and [
        entry["name"] for entry in answer["dropped"]
    ] == ["unit"]
    answer = report(
        "copy",
        tmp_path / "a.h5",
        tmp_path / "c.h5",
        "--dataset",
        "r",
        "--strict",
        status=3,
        env=ENV,
    )
    assert [entry["name"] for entry in answer["dropped"]] == ["where"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.h5", "b.h5"]


def test_into_a_file_that_is_there(tmp_path):
    numpy.save(tmp_path / "a.npy", data)
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["old"] = [1, 2]
    copy(tmp_path / "a.npy", tmp_path / "b.h5", "--to-dataset", "new", "--codec", "lzf")
    no_copy(tmp_path / "a.npy", tmp_path / "b.h5", "--to-dataset", "new", status="exists")
    copy(
        tmp_path / "a.npy",
        tmp_path / "b.h5",
        "--to-dataset",
        "new",
        "--overwrite",
        "--chunks",
        "61,7,5",
    )
    # a dataset beside itself, and in its own place
    copy(
        tmp_path / "b.h5",
        tmp_path / "b.h5",
        "--dataset",
        "new",
        "--to-dataset",
        "g/more",
        "--codec",
        "deflate",
    )
    copy(
        tmp_path / "b.h5",
        tmp_path / "b.h5",
        "--dataset",
        "new",
        "--overwrite",
        "--codec",
        "shuffle,deflate:9",
        "--verify",
    )
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["old"][...].tolist() == [1, 2]
        assert all(numpy.array_equal(file[name][...], data) for name in ("new", "g/more"))
        assert file["new"].compression_opts == 9 and file["new"].chunks == file[
            "g/more"
        ].chunks == (61, 7, 5)
    assert leftovers(tmp_path) == []


# ---- absent pieces ----


def test_missing_pieces(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        found = file.create_dataset("x", SHAPE, "<i4", chunks=(10, 7, 5), fillvalue=-3)
        found[10:20] = data[10:20]
    answer = copy(tmp_path / "a.h5", tmp_path / "b.npy", "--memory", "1M")
    assert answer["missing"] == 6
    wanted = numpy.full(SHAPE, -3, "<i4")
    wanted[10:20] = data[10:20]
    assert numpy.array_equal(numpy.load(tmp_path / "b.npy"), wanted)
    no_copy(tmp_path / "a.h5", tmp_path / "c.npy", "--missing", "strict", status="incomplete")
    write_virtual(tmp_path / "v.h5")
    os.remove(tmp_path / "v.h5.1")
    no_copy(tmp_path / "v.h5", tmp_path / "c.npy", status=("incomplete", "not_found"))
    answer = copy(tmp_path / "v.h5", tmp_path / "d.npy", "--missing", "fill", "--verify")
    assert answer["missing"] == len(answer["missing_list"]) == 1
    assert (
        numpy.array_equal(numpy.load(tmp_path / "d.npy")[:30], data[:30])
        and not numpy.load(tmp_path / "d.npy")[30:].any()
    )
    assert not (tmp_path / "c.npy").exists() and leftovers(tmp_path) == []


# ---- refusals ----


def test_source_and_target_are_the_same(tmp_path):
    numpy.save(tmp_path / "a.npy", data)
    before = (tmp_path / "a.npy").read_bytes()
    os.link(tmp_path / "a.npy", tmp_path / "hard.npy")
    os.symlink("a.npy", tmp_path / "soft.npy")
    no_copy(tmp_path / "a.npy", tmp_path / "a.npy", status="exists")
    for name in ("a.npy", "hard.npy", "soft.npy", "../" + tmp_path.name + "/a.npy"):
        usage_error(
            "copy",
            tmp_path / "a.npy",
            tmp_path / name,
            "--overwrite",
            says=["replace what is copied"],
            env=ENV,
        )
    write_hdf5(tmp_path / "a.h5")
    usage_error(
        "copy",
        tmp_path / "a.h5",
        tmp_path / "a.h5",
        "--overwrite",
        "--format",
        "npy",
        says=["replace what is copied"],
        env=ENV,
    )
    write_virtual(tmp_path / "v.h5")
    usage_error(
        "copy",
        tmp_path / "v.h5",
        tmp_path / "v.h5.0",
        "--overwrite",
        "--format",
        "npy",
        says=["replace what is copied"],
        env=ENV,
    )
    assert (tmp_path / "a.npy").read_bytes() == before and leftovers(tmp_path) == []


def test_target_in_the_source_and_around_it(tmp_path):
    SOURCES["npy_shards"](tmp_path / "shards")
    for target in ("shards/all.npy", "shards/deep/all.npy", "./shards/../shards/all.npy"):
        usage_error(
            "copy",
            tmp_path / "shards",
            tmp_path / target,
            says=["would lie in the folder"],
            env=ENV,
        )
    for source in ("shards", "shards/part_0.npy"):
        no_copy(tmp_path / source, tmp_path / "shards", "--shards", 2, status="exists")
    assert len(list((tmp_path / "shards").iterdir())) == 4
    # a pattern that does not take the new file in
    copy(tmp_path / "shards/part_*.npy", tmp_path / "shards/all.npy")


def test_a_folder_of_shards_is_not_replaced_by_a_copy_of_one(tmp_path):
    numpy.save(tmp_path / "a.npy", data)
    copy(tmp_path / "a.npy", tmp_path / "set", "--shards", 3)
    for source in ("set", "set/shard_0001.npy"):
        usage_error(
            "copy",
            tmp_path / source,
            tmp_path / "set",
            "--shards",
            2,
            "--overwrite",
            says=["replace what is copied"],
            env=ENV,
        )
    assert numpy.array_equal(read_target(tmp_path / "set", "npy_shards"), data)
    copy(tmp_path / "a.npy", tmp_path / "set", "--shards", 2, "--overwrite")
    assert len(list((tmp_path / "set").iterdir())) == 2


@pytest.mark.parametrize(
    "options, status, says",
    [
        (("--format", "npy", "--codec", "zstd"), "unsupported", ["neither layouts nor chunks"]),
        (("--format", "hdf5", "--codec", "zstd:99"), "invalid_argument", ["zstd:99"]),
        (("--format", "hdf5", "--chunks", "4,4"), "invalid_argument", ["/b", "2 axes", "3"]),
        (("--format", "hdf5", "--layout", "virtual", "--shards", "2"), "unsupported", ["virtual"]),
        (("--tiles", "3"), "invalid_argument", ["--layout virtual"]),
        (("--memory", "12X"), "invalid_argument", ["--memory", "12X"]),
        (("--memory", "9999999999T"), "invalid_argument", ["--memory"]),
        (("--format", "nope"), "invalid_argument", ["nope"]),
    ],
)
def test_refusals(tmp_path, options, status, says):
    numpy.save(tmp_path / "a.npy", data)
    no_copy(
        tmp_path / "a.npy",
        tmp_path / "b",
        *options,
        status=status,
        says=says,
        exit_status=2 if status == "invalid_argument" else 1,
    )
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]


def test_a_codec_that_cannot_be_kept(tmp_path):
    pytest.importorskip("hdf5plugin")
    import hdf5_files as h5

    h5.filtered(tmp_path / "a.h5", "odd", 40000)
    no_copy(tmp_path / "a.h5", tmp_path / "b.npy", status="unsupported", says=["40000"])
    assert [path.name for path in tmp_path.iterdir()] == ["a.h5"]


# ---- limits and interruptions ----


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """1 GiB of chunks of which few are stored."""
    path = tmp_path_factory.mktemp("large") / "a.h5"
    with h5py.File(path, "w") as file:
        found = file.create_dataset(
            "x", (65536, 2048), "<f8", chunks=(256, 2048), compression="gzip", compression_opts=1
        )
        found[4096:4100] = 1.5
        found[65535] = 2.5
    return path


@pytest.mark.skipif(
    bool(os.environ.get("TEGULA_SANITIZER")), reason="sanitizers need memory of their own"
)
@pytest.mark.parametrize(
    "options",
    [("--codec", "deflate:1"), ("--chunks", "100,300", "--codec", "lzf")],
    ids=["deflate", "other_chunks"],
)
def test_memory(large, tmp_path, options):
    answer = copy(large, tmp_path / "b.h5", "--memory", "64M", "--threads", 2, *options)
    assert answer["bytes"] == 1 << 30 and answer["peak_rss_bytes"] < (64 + 32) << 20
    with h5py.File(tmp_path / "b.h5") as file:
        found = file["x"]
        assert (
            (found[4096:4100] == 1.5).all()
            and (found[65535] == 2.5).all()
            and not found[4100:4400].any()
            and not found[:100].any()
        )


def test_interrupted_and_late(large, tmp_path):
    error = no_copy(large, tmp_path / "b.npy", "--timeout", "0.2", status="timeout")
    assert "deadline" in error["message"]
    for _ in range(3):  # it takes seconds; this process may stand still for longer
        run = start(
            "copy",
            large,
            tmp_path / "b.h5",
            "--codec",
            "deflate:9",
            "--threads",
            1,
            "--overwrite",
            "--json",
        )
        while not leftovers(tmp_path) and run.poll() is None:
            time.sleep(0.01)
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=60)
        if run.returncode != 0:
            break
        (tmp_path / "b.h5").unlink()
    assert run.returncode == 130 and list(tmp_path.iterdir()) == []


# ---- many files ----


@pytest.mark.parametrize("durable", [[], ["--durable"]], ids=["plain", "durable"])
@pytest.mark.parametrize("layout", ["contiguous", "virtual", "chunked"])
def test_more_files_than_may_be_open(tmp_path, layout, durable):
    """Only as many are open at a time as may be, also chunked shards,
    which get their places one by one."""
    rows = numpy.arange(200 * 3, dtype="<i2").reshape(200, 3)
    numpy.save(tmp_path / "a.npy", rows)
    target = tmp_path / "out" / "b.h5"
    how = (
        ["--layout", "virtual", "--tiles", "150"]
        if layout == "virtual"
        else ["--layout", layout, "--shards", "150", "--format", "hdf5"]
    )
    few = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))}
    how += ["--chunks", "1,2", "--codec", "shuffle,deflate"] if layout == "chunked" else []
    copy(tmp_path / "a.npy", target, *how, *durable, **few)
    parts = [target] if layout == "virtual" else sorted(target.iterdir())
    found = []
    for part in parts:
        with h5py.File(part) as file:
            found.append(file["data"][()])
    assert (
        len(parts) in (1, 150)
        and numpy.concatenate(found).tobytes() == rows.tobytes()
        and leftovers(tmp_path) == []
    )


# ---- --verify ----

FLIP = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>
ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
  static ssize_t (*real)(int, const void *, size_t, off_t);
  static char changed[1 << 16];
  if (!real) real = (ssize_t (*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
  if (size < 4096 || size > sizeof changed) return real(fd, data, size, offset);
  for (size_t i = 0; i < size; i++) changed[i] = ((const char *)data)[i];
  changed[size / 2] ^= 4;
  return real(fd, changed, size, offset);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off_t offset) {
  return pwrite(fd, data, size, offset);
}
"""


@pytest.mark.parametrize(
    "wrong", ["<f4", "<i8"], ids=["seen in the header only", "seen in the size"]
)
@pytest.mark.parametrize(
    "option", [(), ("--verify",), ("--strict",), ("--verify", "--strict")], ids=" ".join
)
def test_shards_that_do_not_fit_are_no_failed_check(tmp_path, option, wrong):
    """Status 1, as for a load; 3 is for a copy that is not what was read,
    or something that the target cannot hold."""
    (tmp_path / "s").mkdir()
    for number in range(20):
        numpy.save(
            tmp_path / "s" / f"{number:02}.npy", data.astype(wrong if number == 13 else data.dtype)
        )
    no_copy(
        tmp_path / "s",
        tmp_path / "b.npy",
        *option,
        status="mismatch",
        exit_status=1,
        says=["13.npy", wrong[1:]],
    )
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


@pytest.mark.skipif(
    bool(os.environ.get("TEGULA_SANITIZER")),
    reason="the sanitizer's runtime stands in front of the C library",
)
@pytest.mark.parametrize("target", ["npy", "hdf5_contiguous"])
def test_what_was_written_wrongly_gets_no_name(tmp_path, target):
    """A library in front of the C library changes one bit of a write: only --verify can see it."""
    (tmp_path / "flip.c").write_text(FLIP)
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-o", tmp_path / "flip.so", tmp_path / "flip.c", "-ldl"],
        check=True,
    )
    numpy.save(tmp_path / "a.npy", data)
    env = {**ENV, "LD_PRELOAD": str(tmp_path / "flip.so")}
    options = TARGETS[target]
    report("copy", tmp_path / "a.npy", tmp_path / "wrong", *options, env=env)
    assert not numpy.array_equal(read_target(tmp_path / "wrong", target), data), (
        "the test changes nothing"
    )
    error = refused(
        "copy",
        tmp_path / "a.npy",
        tmp_path / "b",
        *options,
        "--verify",
        env=env,
        status="mismatch",
        exit_status=3,
        says=["content hash", content_hash(data)],
    )
    assert error["hint"] and not (tmp_path / "b").exists() and leftovers(tmp_path) == []
    copy(tmp_path / "a.npy", tmp_path / "b", *options, "--verify")
