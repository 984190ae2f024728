# Inputs that people really met, in their HDF5 form: right values,
# or an error that says what and where.
#
# SPDX-License-Identifier: Apache-2.0
#
# The numbers are those of the project's collection of public reports. `way`: by pread, io_uring and
# direct I/O. Expected values come from numpy, or from h5py where it is right.
import ctypes
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zlib

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes and judges these files")

import hdf5_cases  # noqa: E402
import hdf5_files as h5  # noqa: E402
from probe import check_error  # noqa: E402
from reference_hash import content_hash  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from command import BIN, refused, report  # noqa: E402

WAYS = ["pread", "io_uring", "direct"]
KEPT = {
    key: value
    for key, value in os.environ.items()
    if key in ("TEGULA_HDF5_LIBRARY", "TEGULA_PLUGIN_PATH")
}
rng = numpy.random.default_rng(20)


@pytest.fixture(params=WAYS)
def way(request, new_probe):
    probe = new_probe(environment={"TEGULA_IO": request.param})
    probe.call("context", threads=2)
    return probe


def write(path, **arrays):
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "a") as file:
        for name, data in arrays.items():
            file[name] = data


def rows_of(path, count, source_shape=(3,), **options):
    """The virtual dataset "v" in which row k is "d" of s{k}.h5."""
    h5.virtual(
        path,
        "v",
        (count, *source_shape),
        "<i8",
        [(k, f"s{k}.h5", "d", source_shape, None) for k in range(count)],
        **options,
    )


def hash_of(path, name, cwd, io="auto"):
    """The content hash that the command finds, started in another folder."""
    return report("load", path, "--dataset", name, "--hash", "--io", io, cwd=cwd, env=KEPT)["hash"]


# ---- empty and small ----


def test_case_10_no_rows(way, tmp_path):
    folder = tmp_path / "shards"
    folder.mkdir()
    full = rng.random((7, 4))
    for number, piece in enumerate([full[:3], full[:0], full[3:]]):
        with h5py.File(folder / f"part_{number}.h5", "w") as file:
            file.create_dataset(
                "x", data=piece, maxshape=(None, 4), chunks=(2, 4)
            ) if number == 1 else file.create_dataset("x", data=piece)
    h5.check_load(way, tmp_path, folder, "x", full, tiles=3)
    h5.check_load(way, tmp_path, folder / "part_1.h5", "x", full[:0])
    with h5py.File(tmp_path / "empty.h5", "w") as file:
        file.create_dataset("contiguous", (0, 4), "f8")
        file.create_dataset(
            "chunked", (0, 4), "f8", chunks=(2, 4), maxshape=(None, 4), compression="gzip"
        )
    h5.virtual(tmp_path / "empty.h5", "virtual", (0, 4), "f8", [])
    for name in ("contiguous", "chunked", "virtual"):
        h5.check_load(way, tmp_path, tmp_path / "empty.h5", name, full[:0], tiles=4)


@pytest.mark.parametrize("rows", [1, 3])
def test_case_40_fewer_rows_than_tiles(way, tmp_path, rows):
    data = rng.random((rows, 5))
    write(tmp_path / "s.h5", d=data)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("chunked", data=data, chunks=(1, 2), compression="gzip")
        file["contiguous"] = data
    h5.virtual(
        tmp_path / "a.h5",
        "virtual",
        data.shape,
        "<f8",
        [(k, "s.h5", "d", data.shape, k) for k in range(rows)],
    )
    for name in ("chunked", "contiguous", "virtual"):
        for tiles in (2, 4):
            h5.check_load(way, tmp_path, tmp_path / "a.h5", name, data, tiles=tiles)


@pytest.mark.parametrize("rows", [1, 3])
def test_case_40_fewer_rows_than_tiles_are_saved(new_probe, tmp_path, rows):
    """Saved from four tiles, of which some hold nothing; read by others, and loaded into two."""
    data = rng.random((rows, 5))
    probe = new_probe()
    probe.call("context", threads=2)
    numpy.save(tmp_path / "in.npy", data)
    for name, options in (
        ("v.h5", ["--layout", "virtual", "--tiles", "4"]),
        ("c.h5", ["--chunks", "1,2", "--codec", "deflate"]),
        ("n.npy", []),
        ("s", ["--format", "hdf5", "--shards", "4"]),
        ("d", ["--shards", "4"]),
    ):
        report("copy", tmp_path / "in.npy", tmp_path / name, *options, "--verify", env=KEPT)
        assert not [path for path in (tmp_path / name).rglob("*") if path.stat().st_size == 0]
    assert numpy.array_equal(numpy.load(tmp_path / "n.npy"), data)
    for name in ("v.h5", "c.h5"):
        h5.check_load(probe, tmp_path, tmp_path / name, "data", data, tiles=2)
        with h5py.File(tmp_path / name) as file:
            assert numpy.array_equal(file["data"][...], data)
    for name in ("s", "d"):
        assert (
            report("load", tmp_path / name, "--tiles", "2", env=KEPT)["shape"] == [rows, 5]
            and len(list((tmp_path / name).iterdir())) == rows
        )


@pytest.mark.parametrize(
    "length, codec, status, says",
    [
        (3 << 30, "blosc", "invalid_argument", "2147483631"),
        ((1 << 31) - 1, "shuffle,blosc", "invalid_argument", "2147483631"),
        (1 << 32, "deflate", "limit_exceeded", "4294967295"),
        ((1 << 32) + 1, "none", "limit_exceeded", "4294967295"),
    ],
)
def test_case_43_a_chunk_beyond_the_limit(tmp_path, length, codec, status, says):
    """Refused before anything is made: gigabytes of which nothing is stored are never in memory."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", (length,), "u1", chunks=(1 << 20,))
    before = (tmp_path / "a.h5").read_bytes()
    for target in ("b.h5", "a.h5"):
        error = refused(
            "copy",
            tmp_path / "a.h5",
            tmp_path / target,
            "--to-dataset",
            "new",
            "--chunks",
            length,
            "--codec",
            codec,
            env=KEPT,
            status=status,
            says=[says],
            exit_status=2 if status == "invalid_argument" else 1,
        )
        assert error["path"] == str(tmp_path / target)
        assert (tmp_path / "a.h5").read_bytes() == before and [
            path.name for path in tmp_path.iterdir()
        ] == ["a.h5"]


# ---- sources of virtual datasets ----


def spoil_text(path):
    path.write_text("this is no HDF5 file\n")


def spoil_name(path):
    write(path, other=numpy.arange(3))


def spoil_end(path):
    write(path, d=numpy.arange(3))
    path.write_bytes(path.read_bytes()[:-8])


@pytest.mark.parametrize(
    "spoil, status, says",
    [
        (None, "not_found", "s1.h5"),
        (spoil_text, "corrupt", "not an HDF5 file"),
        (spoil_name, "not_found", "other"),
        (spoil_end, "short_file", "s1.h5"),
    ],
)
def test_case_14_a_source_that_is_lost(way, tmp_path, spoil, status, says):
    write(tmp_path / "s0.h5", d=numpy.arange(3))
    write(tmp_path / "s2.h5", d=numpy.arange(6, 9))
    rows_of(tmp_path / "v.h5", 3, fill=-7)
    if spoil:
        spoil(tmp_path / "s1.h5")
    for missing in ("error", "strict"):
        h5.load_refused(
            way, tmp_path / "v.h5", "v", status, ["s1.h5", '"d"', says, "(1, 0)"], missing=missing
        )
    want = numpy.array([[0, 1, 2], [-7] * 3, [6, 7, 8]])
    statistics = h5.check_load(way, tmp_path, tmp_path / "v.h5", "v", want, missing="fill")
    assert statistics["missing"] == 1
    for row in (0, 2):  # what is there can be had
        way.call("read", dtype="<i8", box=[[row, row + 1], [0, 3]], path=str(tmp_path / "row"))
        assert (tmp_path / "row").read_bytes() == want[row].tobytes()
    error = way.refused("read", dtype="<i8", box=[[1, 2], [2, 3]], path=str(tmp_path / "row"))
    assert error["status"] == status


def test_case_14_a_source_that_nobody_may_read(new_probe):
    """Absent is not unreadable, whatever is asked for."""
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("root may read everything, and setpriv is missing to become another user")
    prefix = (
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    )
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tegula-test-"))
    try:
        folder.chmod(0o777)
        write(folder / "s0.h5", d=numpy.arange(3))
        write(folder / "s1.h5", d=numpy.arange(3))
        rows_of(folder / "v.h5", 2)
        for name, mode in (("v.h5", 0o644), ("s0.h5", 0o644), ("s1.h5", 0)):
            (folder / name).chmod(mode)
        probe = new_probe(prefix=prefix)
        readable = all(
            can_read(prefix, path)
            for path in (probe.command_line[-1], os.environ.get("TEGULA_HDF5_LIBRARY", "/dev/null"))
        )
        if not readable:
            pytest.skip(
                "another user may not run the probe or read the library from where they are"
            )
        probe.call("context", threads=2)
        h5.load_refused(probe, folder / "v.h5", "v", "permission", ["s1.h5"])
        h5.check_load(
            probe, folder, folder / "v.h5", "v", numpy.array([[0, 1, 2], [0, 0, 0]]), missing="fill"
        )
    finally:
        shutil.rmtree(folder)


def can_read(prefix, path):
    return subprocess.run([*prefix, "test", "-r", path], check=False).returncode == 0


def source_compact(path, row):
    h5.low_level(path, "d", "<i8", row.shape, h5.compact, row)


SOURCES = {
    "contiguous": lambda path, row: write(path, d=row),
    "gzip": lambda path, row: h5.low_level(
        path,
        "d",
        "<i8",
        row.shape,
        lambda plist: (plist.set_chunk((1, 2)), plist.set_deflate(4)),
        row,
    ),
    "compact": source_compact,  # what libhdf5 must read
    "other_type": lambda path, row: write(path, d=row.astype("<i4")),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_case_15_more_sources_than_files_may_be_open(new_probe, tmp_path, kind):
    if not shutil.which("prlimit"):
        pytest.skip("needs prlimit")
    data = numpy.arange(400).reshape(200, 2)
    for k in range(200):
        SOURCES[kind](tmp_path / f"s{k}.h5", data[k : k + 1])
    h5.virtual(
        tmp_path / "v.h5",
        "v",
        (200, 2),
        "<i8",
        [(k, f"s{k}.h5", "d", (1, 2), 0) for k in range(200)],
        fill=-1,
    )
    for io in WAYS:
        probe = new_probe(prefix=["prlimit", "--nofile=64"], environment={"TEGULA_IO": io})
        probe.call("context", threads=4)
        statistics = h5.check_load(probe, tmp_path, tmp_path / "v.h5", "v", data, tiles=5)
        assert statistics["missing"] == 0


@pytest.mark.parametrize("io", WAYS)
def test_case_16_decoys_and_moved_trees(tmp_path, io):
    tree, cwd = tmp_path / "V", tmp_path / "cwd"
    right = content_hash(numpy.full(3, 1))
    write(tree / "tiles" / "s.h5", d=numpy.full(3, 1))
    for name, source in (
        ("relative", "tiles/s.h5"),
        ("absolute", tree / "tiles" / "s.h5"),
        ("dots", "../V/./tiles/s.h5"),
    ):
        h5.virtual(tree / f"{name}.h5", "v", (3,), "<i8", [(numpy.s_[:], source, "d", (3,), None)])
    write(tree / "s.h5", d=numpy.full(3, 2))  # beside the virtual dataset
    write(cwd / "tiles" / "s.h5", d=numpy.full(3, 3))  # under the working directory
    write(cwd / "s.h5", d=numpy.full(3, 4))
    for name in ("relative", "absolute", "dots"):
        assert hash_of(tree / f"{name}.h5", "v", cwd, io) == right
        assert hash_of(f"../V/{name}.h5", "v", cwd, io) == right
    moved = tmp_path / "W"
    tree.rename(moved)
    assert hash_of(moved / "relative.h5", "v", cwd, io) == right
    for name in ("absolute", "dots"):  # what it names is gone: never the decoy
        error = report(
            "load", moved / f"{name}.h5", "--dataset", "v", "--io", io, cwd=cwd, env=KEPT, status=1
        )["error"]
        assert error["status"] == "not_found" and "s.h5" in error["message"], error
    (moved / "tiles" / "s.h5").unlink()
    error = report(
        "load", moved / "relative.h5", "--dataset", "v", "--io", io, cwd=cwd, env=KEPT, status=1
    )["error"]
    assert error["status"] == "not_found" and "not taken" in error["message"], error


def test_case_16_environment_and_prefixes_have_no_say(new_probe, tmp_path):
    write(tmp_path / "V" / "s.h5", d=numpy.arange(3))
    write(tmp_path / "other" / "s.h5", d=numpy.arange(3) + 10)
    h5.virtual(tmp_path / "V" / "v.h5", "v", (3,), "<i8", [(numpy.s_[:], "s.h5", "d", (3,), None)])
    h5.low_level(tmp_path / "V" / "v.h5", "e", "<i8", (3,), h5.external(("payload.bin", 0, 24)))
    for folder, values in (("V", [1, 2, 3]), ("other", [4, 5, 6])):
        (tmp_path / folder / "payload.bin").write_bytes(numpy.array(values).tobytes())
    other = str(tmp_path / "other")
    probe = new_probe(
        environment={
            "HDF5_VDS_PREFIX": other,
            "HDF5_EXTFILE_PREFIX": other,
            "HDF5_EXT_PREFIX": other,
        }
    )
    probe.call("context", threads=2)
    h5.check_load(probe, tmp_path, tmp_path / "V" / "v.h5", "v", numpy.arange(3))
    h5.check_load(probe, tmp_path, tmp_path / "V" / "v.h5", "e", numpy.array([1, 2, 3]))


def test_case_18_mappings_that_do_not_fit_their_source(way, tmp_path):
    write(
        tmp_path / "s.h5",
        d=numpy.arange(4).reshape(2, 2),
        flat=numpy.arange(9),
        text=numpy.array([b"ab"] * 9).reshape(3, 3),
        small=numpy.arange(9, dtype=">i2").reshape(3, 3),
        narrow=numpy.arange(9, dtype="<f4").reshape(3, 3),
    )
    for name in ("d", "flat", "text", "small", "narrow"):
        h5.virtual(
            tmp_path / "v.h5", name, (3, 3), "<i8", [(numpy.s_[:, :], "s.h5", name, (3, 3), None)]
        )
    for name, says in (
        ("d", ["(2, 2)", "(3, 3)"]),
        ("flat", ["(9)", "(3, 3)"]),
        ("text", ["S2", "<i8"]),
    ):
        h5.open_refused(way, tmp_path / "v.h5", name, "mismatch", ["s.h5", *says])
    for name in ("small", "narrow"):  # what converts is converted
        h5.check_load(way, tmp_path, tmp_path / "v.h5", name, numpy.arange(9).reshape(3, 3))


# ---- places in the file ----


@pytest.mark.parametrize("size", [512, 1024, 2048, 8192])
def test_case_20_user_blocks(way, tmp_path, size):
    data = rng.integers(0, 99, (11, 6)).astype(">i4")
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", userblock_size=size, libver="latest") as file:
        file["contiguous"] = data
        file.create_dataset("unwritten", (11, 6), "i4", fillvalue=9)
        for name, more in (("chunked", {}), ("gzip", {"compression": "gzip", "shuffle": True})):
            file.create_dataset(name, data=data, chunks=(4, 5), maxshape=(None, 6), **more)
        file.create_dataset("scaled", data=data, chunks=(4, 5), scaleoffset=0)
        file.attrs["x"] = 1
    h5.low_level(path, "compact", data.dtype, data.shape, h5.compact, data)
    h5.virtual(
        path,
        "virtual",
        data.shape,
        data.dtype,
        [(k, ".", "gzip", data.shape, k) for k in range(0, 11, 2)],
        fill=3,
    )
    h5.virtual(
        tmp_path / "v.h5",
        "virtual",
        data.shape,
        data.dtype,
        [(numpy.s_[:, :3], "a.h5", "contiguous", data.shape, numpy.s_[:, 3:])],
    )
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(size, b" "))
    for name in ("contiguous", "chunked", "gzip", "scaled", "compact"):
        h5.check_load(way, tmp_path, path, name, data)
    for name in ("virtual", "unwritten"):
        h5.check_load(way, tmp_path, path, name)
    h5.check_load(way, tmp_path, tmp_path / "v.h5", "virtual")


@pytest.mark.parametrize("sizes", [(2, 2), (4, 4), (8, 8), (4, 8), (8, 4), (2, 8)])
def test_case_24_widths_of_addresses(way, tmp_path, sizes):
    data = numpy.arange(64, dtype="<i4")
    plist = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    plist.set_sizes(*sizes)
    path = tmp_path / "a.h5"
    with h5py.File(h5py.h5f.create(bytes(path), h5py.h5f.ACC_TRUNC, plist)) as file:
        file["contiguous"] = data
        for name, more in (
            ("chunked", {}),
            ("gzip", {"compression": "gzip"}),
            ("growing", {"maxshape": (None,)}),
        ):
            file.create_dataset(name, data=data, chunks=(8,), **more)
        part = file.create_dataset("part", (64,), "<i4", chunks=(8,), fillvalue=-1)
        part[16:24] = 5
    h5.virtual(
        tmp_path / "v.h5",
        "v",
        (2, 64),
        "<i4",
        [(0, "a.h5", "gzip", (64,), None), (1, "a.h5", "contiguous", (64,), None)],
    )
    for name in ("contiguous", "chunked", "gzip", "growing"):
        h5.check_load(way, tmp_path, path, name, data)
    h5.check_load(way, tmp_path, path, "part")
    h5.check_load(way, tmp_path, tmp_path / "v.h5", "v", numpy.stack([data, data]))


# ---- chunks ----


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_case_22_chunks_that_skipped_filters(way, tmp_path, libver):
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as file:
        names = hdf5_cases.masks(file, rng)
        data = rng.integers(0, 99, (12, 4)).astype("<i4")
        every = file.create_dataset(
            "every",
            (12, 4),
            "<i4",
            chunks=(4, 4),
            compression="gzip",
            shuffle=True,
            fletcher32=True,
        )
        every.id.write_direct_chunk((0, 0), data[:4].tobytes(), filter_mask=7)  # none of them
        # deflate only
        every.id.write_direct_chunk((4, 0), zlib.compress(data[4:8].tobytes()), filter_mask=5)
        every[8:] = data[8:]
    for name in names:
        h5.check_load(way, tmp_path, tmp_path / "a.h5", name)
    h5.check_load(way, tmp_path, tmp_path / "a.h5", "every", data)


@pytest.mark.parametrize("count", [1023, 1024, 1025, 2049])
def test_case_25_paged_indices(way, tmp_path, count):
    data = rng.integers(0, 1 << 30, count).astype("<i4")
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        for name, more in (("plain", {}), ("gzip", {"compression": "gzip"})):
            file.create_dataset(name, data=data, chunks=(1,), **more)
            file.create_dataset(name + "_growing", data=data, chunks=(1,), maxshape=(None,), **more)
            holes = file.create_dataset(
                name + "_holes", (count,), "<i4", chunks=(1,), fillvalue=8, **more
            )
            holes[0], holes[count - 1] = 1, 2
        names = list(file)
    for name in names:
        h5.check_load(way, tmp_path, tmp_path / "a.h5", name)


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_case_27_slots_and_the_largest_shape(way, tmp_path, libver):
    data = numpy.arange(24, dtype="<i4").reshape(4, 6)
    shapes = [(4, 20), (20, 6), (4, None), (None, 6), (None, None), (9, None), (None, 11), (5, 7)]
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as file:
        for number, largest in enumerate(shapes):
            file.create_dataset(f"d{number}", data=data, chunks=(2, 2), maxshape=largest)
            part = file.create_dataset(
                f"p{number}",
                (4, 6),
                "<i4",
                chunks=(2, 2),
                maxshape=largest,
                compression="gzip",
                fillvalue=3,
            )
            part[2:, 3:5] = data[2:, 3:5]
    want = numpy.full((4, 6), 3)
    want[2:, 3:5] = data[2:, 3:5]
    for number in range(len(shapes)):
        h5.check_load(way, tmp_path, tmp_path / "a.h5", f"d{number}", data)
        h5.check_load(way, tmp_path, tmp_path / "a.h5", f"p{number}", want.astype("<i4"))


def test_case_28_external_files(way, tmp_path):
    data = rng.integers(0, 99, 16).astype("<i4")
    (tmp_path / "payload.bin").write_bytes(data.tobytes())
    (tmp_path / "one.bin").write_bytes(b"junk" + data[:6].tobytes() + b"more junk")
    (tmp_path / "two.bin").write_bytes(data[6:].tobytes())
    path = tmp_path / "a.h5"
    h5.low_level(path, "one", "<i4", (16,), h5.external(("payload.bin", 0, 64)))
    h5.low_level(
        path,
        "two",
        "<i4",
        (4, 4),
        h5.external(("one.bin", 4, 24), ("two.bin", 0, h5py.h5f.UNLIMITED)),
    )
    h5.low_level(
        path, "absent", "<i4", (16,), h5.external(("payload.bin", 0, 32), ("gone.bin", 0, 32))
    )
    (tmp_path / "cwd").mkdir()
    # decoys under the working directory
    for name in ("payload.bin", "one.bin", "two.bin", "gone.bin"):
        (tmp_path / "cwd" / name).write_bytes(b"z" * 100)
    h5.check_load(way, tmp_path, path, "one", data)
    h5.check_load(way, tmp_path, path, "two", data.reshape(4, 4))
    assert hash_of(path, "one", tmp_path / "cwd") == content_hash(data)
    for missing in ("error", "strict"):
        h5.load_refused(way, path, "absent", "not_found", ["gone.bin"], missing=missing)
    error = report("load", path, "--dataset", "absent", cwd=tmp_path / "cwd", env=KEPT, status=1)[
        "error"
    ]
    assert error["status"] == "not_found"
    want = data.copy()
    want[8:] = 0
    assert h5.check_load(way, tmp_path, path, "absent", want, missing="fill")["missing"] == 1


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_case_31_nothing_written(new_probe, tmp_path, libver):
    """Every run gives the same: freed and fresh memory hold other bytes each time."""
    path = tmp_path / "a.h5"
    half = numpy.array([1.0, 2.0, 3.0, 4.0])
    want = {}
    with h5py.File(path, "w", libver=libver) as file:
        for name, fill in (("seven", 7), ("nan", numpy.nan), ("default", None)):
            for more in ({}, {"compression": "gzip"}):
                key = name + "_gzip" * bool(more)
                file.create_dataset(key, (8,), "<f8", chunks=(4,), fillvalue=fill, **more)[:4] = (
                    half
                )
                want[key] = numpy.r_[half, [fill or 0] * 4]
            file.create_dataset(name + "_late", (8,), ">f8", fillvalue=fill)
            want[name + "_late"] = numpy.full(8, float(fill or 0))
    undefined = [("none", lambda plist: plist.set_chunk((4,))), ("none_late", lambda plist: None)]
    for name, prepare in undefined:

        def undefine(plist, prepare=prepare):
            prepare(plist)
            plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
            hdf5_cases.call("H5Pset_fill_value", plist.id, h5py.h5t.IEEE_F64LE.id, 0)

        h5.low_level(path, name, "<f8", (8,), undefine)
        want[name] = numpy.zeros(8)
    for io, filler in zip(WAYS, ("85", "170", "255")):
        probe = new_probe(environment={"TEGULA_IO": io, "MALLOC_PERTURB_": filler})
        probe.call("context", threads=2)
        for name, data in want.items():
            for missing in ("error", "fill"):
                h5.check_load(probe, tmp_path, path, name, data, missing=missing)
            h5.load_refused(probe, path, name, "incomplete", [name], missing="strict")


def test_case_33_filters_without_a_plugin(way, tmp_path):
    for number, name in ((32013, "zfp"), (307, "bzip2"), (40000, "no name")):
        h5.filtered(tmp_path / "a.h5", f"d{number}", number, (1, 2, 3))
        error = h5.open_refused(
            way,
            tmp_path / "a.h5",
            f"d{number}",
            "unsupported",
            [f"d{number}", "a.h5", f"filter {number} ({name})"],
        )
        assert "plugin" in error["hint"]


def test_case_33_an_absent_filter_that_every_chunk_skipped(way, tmp_path):
    """What the writer did not have either was not applied:
    the chunks are as they are, and h5py reads them."""
    data = numpy.arange(8, dtype="<i4")
    data[4:] = 0
    h5.filtered(tmp_path / "a.h5", "d", 40000, (1,), data[:4].tobytes(), mask=1)
    assert numpy.array_equal(h5.read(tmp_path / "a.h5", "d"), data)
    h5.check_load(way, tmp_path, tmp_path / "a.h5", "d", data)


def test_case_33_codecs_that_need_no_plugin(way, tmp_path):
    pytest.importorskip("hdf5plugin", reason="hdf5plugin is not installed: it brings the filters")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        names = hdf5_cases.plugin_filters(file, rng)
    assert "HDF5_PLUGIN_PATH" not in os.environ
    for name in names:
        answer = way.ask({"do": "open", "path": str(tmp_path / "a.h5"), "dataset": name})
        # named, with the way to get it
        if "this build has no" in answer.get("error", {}).get("message", ""):
            check_error(answer["error"], "unsupported", [name, "a.h5", name.split("_")[0]])
            assert answer["error"]["hint"]
        else:
            assert h5.check_load(way, tmp_path, tmp_path / "a.h5", name)["reader_bytes"] == 0, name


# ---- types ----


def pair(first, second, part, other=None, **layout):
    return (
        numpy.dtype([(first, part), (second, other or part)])
        if not layout
        else numpy.dtype({"names": [first, second], "formats": [part] * 2, **layout})
    )


@pytest.mark.parametrize("names", [("r", "i"), ("real", "imag")])
@pytest.mark.parametrize(
    "part, dtype",
    [("<f2", "c8"), (">f2", "c8"), ("<f4", "c8"), (">f4", "c8"), ("<f8", "c16"), (">f8", "c16")],
)
def test_case_34_complex_pairs(way, tmp_path, names, part, dtype):
    stored = numpy.zeros((5, 3), pair(*names, part))
    data = (rng.standard_normal((5, 3)) + 1j * rng.standard_normal((5, 3))).astype(dtype)
    if part[1:] == "f2":
        data = data.real.astype("f2").astype("f4") + 1j * data.imag.astype("f2").astype("f4")
    stored[names[0]], stored[names[1]] = data.real, data.imag
    kind = h5py.h5t.py_create(stored.dtype)
    h5.low_level(tmp_path / "a.h5", "contiguous", kind, stored.shape, None, stored)
    h5.low_level(tmp_path / "a.h5", "compact", kind, stored.shape, h5.compact, stored)

    def gzip(plist):
        plist.set_chunk((2, 2))
        plist.set_shuffle()
        plist.set_deflate(4)

    h5.low_level(tmp_path / "a.h5", "gzip", kind, stored.shape, gzip, stored)
    for name in ("contiguous", "compact", "gzip"):
        h5.check_load(way, tmp_path, tmp_path / "a.h5", name, data)


@pytest.mark.parametrize(
    "dtype, fields",
    [
        (pair("i", "r", "<f4"), [("i", "<f4"), ("r", "<f4")]),
        (pair("r", "i", "<f4", "<f8"), [("r", "<f4"), ("i", "<f8")]),
        (pair("r", "i", "<f4", ">f4"), [("r", "<f4"), ("i", ">f4")]),
        (pair("r", "i", "<f4", offsets=[4, 0]), [("i", "<f4"), ("r", "<f4")]),
        (pair("r", "i", "<f4", offsets=[0, 8]), [("r", "<f4"), ("", "|V4"), ("i", "<f4")]),
        (pair("r", "i", "<i4"), [("r", "<i4"), ("i", "<i4")]),
        ([("r", "<f4"), ("i", "<f4"), ("x", "<f4")], [("r", "<f4"), ("i", "<f4"), ("x", "<f4")]),
    ],
)
def test_case_34_odd_pairs_are_records(probe, tmp_path, dtype, fields):
    kind = h5.compound(numpy.dtype(dtype))
    h5.low_level(tmp_path / "a.h5", "odd", kind, (2,))
    info = probe.call("open", path=str(tmp_path / "a.h5"), dataset="odd")
    assert info["descr"] == repr(fields)


@pytest.mark.skipif(
    h5py.version.hdf5_version_tuple < (2,),
    reason="h5py's libhdf5 is older than 2.0: it has no complex types",
)
@pytest.mark.parametrize(
    "base, dtype",
    [
        ("IEEE_F32LE", "c8"),
        ("IEEE_F64LE", "c16"),
        ("IEEE_F32BE", "c8"),
        ("IEEE_F64BE", "c16"),
        ("IEEE_F16LE", "c8"),
        ("IEEE_F16BE", "c8"),
    ],
)
def test_case_34_the_native_complex_class(way, tmp_path, base, dtype):
    library = ctypes.CDLL(
        str(next((pathlib.Path(h5py.__file__).parent.parent / "h5py.libs").glob("libhdf5-*.so*")))
    )
    for function, result in (
        ("H5Tcomplex_create", ctypes.c_int64),
        ("H5Dcreate2", ctypes.c_int64),
        ("H5Dwrite", ctypes.c_int),
    ):
        getattr(library, function).restype = result
    library.H5Tcomplex_create.argtypes = [ctypes.c_int64]
    library.H5Dcreate2.argtypes = [ctypes.c_int64, ctypes.c_char_p] + [ctypes.c_int64] * 5
    library.H5Dwrite.argtypes = [ctypes.c_int64] * 5 + [ctypes.c_void_p]
    part = getattr(h5py.h5t, base)
    data = numpy.array([1 + 2j, -3 + 0.5j, 4.25j], dtype)
    stored = data.view(data.real.dtype).astype(part.dtype)
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        kind, space = library.H5Tcomplex_create(part.id), h5py.h5s.create_simple((3,))
        dataset = library.H5Dcreate2(file.id.id, b"c", kind, space.id, 0, 0, 0)
        assert (
            kind > 0
            and dataset > 0
            and library.H5Dwrite(dataset, kind, 0, 0, 0, stored.tobytes()) >= 0
        )
        library.H5Dclose(ctypes.c_int64(dataset))
    h5.check_load(way, tmp_path, tmp_path / "a.h5", "c", data)


# ---- threads and locks ----


@pytest.mark.parametrize("threads", [1, 8])
def test_case_36_no_chunk_goes_through_the_lock_of_libhdf5(probe, tmp_path, threads):
    data = numpy.cumsum(rng.integers(-3, 4, (512, 512)), axis=1).astype("<f4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("d", data=data, chunks=(64, 64), compression="gzip", shuffle=True)
    probe.call("context", threads=threads)
    assert (
        h5.check_load(probe, tmp_path, tmp_path / "a.h5", "d", data, tiles=8)["reader_bytes"] == 0
    )


HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.flock(file, fcntl.LOCK_EX)
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_case_41_locks_that_others_hold(way, tmp_path):
    """As writers of HDF5 do; whoever wants such a file all the same says so."""
    data = numpy.arange(12).reshape(3, 4)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["contiguous"] = data
        file.create_dataset("gzip", data=data, chunks=(2, 2), compression="gzip")
        file.create_dataset("scaled", data=data, chunks=(2, 2), scaleoffset=0)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "a.h5")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout.readline() == b"held\n"
        for name in ("contiguous", "gzip", "scaled"):
            error = h5.open_refused(
                way, tmp_path / "a.h5", name, "unsupported", ["a.h5", "locked by another program"]
            )
            assert "--allow-locked" in error["hint"] and "TEGULA_OPEN_LOCKED" in error["hint"]
            h5.check_load(way, tmp_path, tmp_path / "a.h5", name, data, flags=4)
    finally:
        holder.communicate()
    h5.check_load(way, tmp_path, tmp_path / "a.h5", "gzip", data)


def test_case_41_reading_keeps_no_lock(tmp_path):
    if not shutil.which("strace"):
        pytest.skip("needs strace")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("scaled", data=numpy.arange(12), chunks=(4,), scaleoffset=0)
    trace = tmp_path / "trace"
    command = [
        "strace",
        "-f",
        "-qq",
        "-y",
        "-e",
        "trace=flock,fcntl,read,pread64",
        "-o",
        trace,
        BIN,
        "load",
        tmp_path / "a.h5",
        "--quiet",
    ]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0 and b"ptrace" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    calls = [
        line
        for line in trace.read_text().splitlines()
        if "a.h5>" in line and ("SETLK" in line or "fcntl(" not in line)
    ]
    locks = [k for k, line in enumerate(calls) if "flock(" in line or "SETLK" in line]
    assert len(locks) == 2 and locks[1] == locks[0] + 1, calls  # let go at once
    assert "LOCK_SH|LOCK_NB" in calls[locks[0]] and "LOCK_UN" in calls[locks[1]]


def test_case_41_a_reader_and_a_writer_that_comes(tmp_path, probe):
    """Other readers hold a shared lock and do not disturb;
    a dataset that is open here keeps no writer out."""
    data = numpy.arange(12).reshape(3, 4)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("scaled", data=data, chunks=(2, 2), scaleoffset=0)
    code = (
        "import h5py, sys\nfile = h5py.File(sys.argv[1], sys.argv[2])\nprint('open', "
        "flush=True)\nsys.stdin.read()"
    )
    for mode in ("r", "r+"):
        other = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "a.h5"), mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            # while the probe has it open, the second time
            assert other.stdout.readline() == b"open\n", mode
            if mode == "r":
                h5.check_load(probe, tmp_path, tmp_path / "a.h5", "scaled", data)
        finally:
            other.communicate()


@pytest.mark.parametrize("error", ["ENOLCK", "EOPNOTSUPP", "ENOSYS"])
def test_case_41_a_file_system_without_locks(tmp_path, error):
    if not shutil.which("strace"):
        pytest.skip("needs strace")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["d"] = numpy.arange(12)
    command = [
        "strace",
        "-f",
        "-qq",
        "-o",
        tmp_path / "trace",
        "-e",
        "trace=flock",
        "-e",
        f"inject=flock:error={error}",
        BIN,
        "load",
        "--json",
        "--hash",
    ]
    done = subprocess.run(
        [*command, tmp_path / "a.h5"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0 and "ptrace" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0 and content_hash(numpy.arange(12)) in done.stdout, done
    assert error in (tmp_path / "trace").read_text()


def test_case_41_a_mount_that_is_read_only(tmp_path):
    """In a mount namespace of its own; needs the right to make one."""
    data = numpy.arange(12).reshape(3, 4)
    folder = tmp_path / "ro"
    write(folder / "a.h5", d=data)
    script = (
        'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && ! touch "$1/x" 2>/dev/null && '
        'exec "$2" load --json --hash "$1/a.h5"'
    )
    if (
        not shutil.which("unshare")
        or subprocess.run(
            ["unshare", "-m", "sh", "-c", 'mount --bind "$0" "$0"', folder], capture_output=True
        ).returncode
    ):
        pytest.skip("may not mount here")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", folder, BIN], capture_output=True, text=True
    )
    assert done.returncode == 0 and content_hash(data) in done.stdout, done


def test_case_41_files_and_folders_that_may_not_be_written(way, tmp_path):
    data = numpy.arange(12).reshape(3, 4)
    write(tmp_path / "ro" / "a.h5", d=data)
    (tmp_path / "ro" / "a.h5").chmod(0o444)
    (tmp_path / "ro").chmod(0o555)
    try:
        h5.check_load(way, tmp_path, tmp_path / "ro" / "a.h5", "d", data)
    finally:
        (tmp_path / "ro").chmod(0o755)


def test_case_41_a_file_that_another_process_writes(way, tmp_path):
    """As SWMR, or refused with what to do."""
    code = """
import h5py, numpy, sys
if sys.argv[3] in "ar+":
    with h5py.File(sys.argv[1], "w", libver=sys.argv[2]) as file:
        file.create_dataset("d", data=numpy.arange(12), chunks=(4,), maxshape=(None,))
    file = h5py.File(sys.argv[1], sys.argv[3], libver=sys.argv[2])
else:
    file = h5py.File(sys.argv[1], "w", libver=sys.argv[2])
    file.create_dataset("d", data=numpy.arange(12), chunks=(4,), maxshape=(None,))
if sys.argv[3] == "swmr":
    file.swmr_mode = True
file.flush()
print("open", flush=True)
sys.stdin.read()
"""
    for libver, mode in (
        ("latest", "swmr"),
        ("latest", "plain"),
        ("earliest", "plain"),
        ("earliest", "a"),
        ("earliest", "r+"),
    ):
        path = tmp_path / f"{libver}{mode}.h5"
        writer = subprocess.Popen(
            [sys.executable, "-c", code, str(path), libver, mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            assert writer.stdout.readline() == b"open\n"
            if mode == "swmr":
                h5.check_load(way, tmp_path, path, "d", numpy.arange(12))
            elif libver == "latest":
                error = h5.open_refused(way, path, "d", "unsupported", ["open for writing"])
                assert "h5clear" in error["hint"]
            else:  # old files have no mark, but there is the lock
                error = h5.open_refused(
                    way, path, "d", "unsupported", [str(path), "locked by another program"]
                )
                assert "--allow-locked" in error["hint"]
                h5.check_load(way, tmp_path, path, "d", numpy.arange(12), flags=4)
        finally:
            writer.communicate()


@pytest.mark.parametrize("count", [30, 9999, 10000, 10050])
def test_a_count_that_ended_early_says_so(probe, tmp_path, count):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", libver="latest") as file:
        for i in range(count):
            file.create_dataset("d%05d" % i, (), "i1")
    told = str(count) if count < 10000 else "10000 or more"
    error = probe.refused("open", path=str(path))
    check_error(error, "invalid_argument", ["holds %s datasets" % told])
    assert "(%s in all)" % told in error["hint"]
    error = probe.refused("open", path=str(path), dataset="quite_another_name")
    assert "(%s in all)" % told in error["hint"]
