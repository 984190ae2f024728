# Inputs that people really met, in their npy and raw form: right values,
# or an error that says what and where.
#
# SPDX-License-Identifier: Apache-2.0
#
# The numbers are those of the project's collection of public reports.
# Expected values come from numpy.
import re
import shutil
import subprocess

import numpy
import pytest

import generate_arrays as gen
from files import check_equal, load_all, save_shards
from probe import check_error


def test_case_01_long_headers(probe, tmp_path):
    """A version 1.0 header of about 5 kB and a version 2.0 header of about 74 kB parse."""
    for count, version, length in [(130, 1, 5000), (1800, 2, 70000)]:
        dtype = numpy.dtype([("a_field_with_a_name_%06d" % i, "<f4") for i in range(count)])
        array = gen.random_array(numpy.random.default_rng(1), (3,), dtype)
        path = tmp_path / ("header%d.npy" % version)
        numpy.save(path, array)
        start = path.read_bytes()[:12]
        assert (
            start[6] == version
            and int.from_bytes(start[8 : 10 if version == 1 else 12], "little") > length
        )
        got, info, _ = load_all(probe, tmp_path, path)
        assert info["shape"] == [3] and info["dtype"] == "|V%d" % (4 * count)
        assert info["descr"].count("a_field_with_a_name_") == count
        assert got.tobytes() == array.tobytes()


def test_case_03_fortran_order_across_a_tile_border(probe, tmp_path):
    full = numpy.arange(45, dtype="f8").reshape(15, 3)
    pieces = [full[:5], numpy.asfortranarray(full[5:10]), full[10:]]
    paths = save_shards(tmp_path / "s", pieces)
    assert b"'fortran_order': True" in paths[1].read_bytes()
    got, _, _ = load_all(probe, tmp_path, tmp_path / "s", tiles=2)
    check_equal(got, numpy.concatenate([numpy.load(p) for p in paths]))
    got, _, _ = load_all(probe, tmp_path, tmp_path / "s", tiles=2, axis=1)
    check_equal(got, full)


@pytest.mark.parametrize("dtype", ["f4", "i2", "u8", "c8", "c16", "f2", "M8[ms]", "U5"])
def test_case_04_big_endian_beside_little_endian(probe, tmp_path, dtype):
    native = gen.random_array(numpy.random.default_rng(4), (7, 5), numpy.dtype(dtype))
    save_shards(tmp_path / "s", [native, gen.swapped(native)])
    got, info, _ = load_all(probe, tmp_path, tmp_path / "s", tiles=3)
    assert info["dtype"] == native.dtype.str
    assert got[:7].tobytes() == native.tobytes()
    assert got[7:].tobytes() == native.tobytes()


def test_case_07_half_a_shard(probe, tmp_path):
    paths = save_shards(tmp_path / "s", [numpy.ones((100, 10), "f8")] * 3)
    header = len(paths[1].read_bytes()) - 8000
    with open(paths[1], "r+b") as file:
        file.truncate(header + 4000)
    error = probe.refused("open", path=str(tmp_path / "s"))
    check_error(error, "short_file", ["shard_0001.npy", "byte"], path=paths[1])
    numbers = {int(n) for n in re.findall(r"\d+", error["message"])}
    assert {8000, 4000} <= numbers or {header + 8000, header + 4000} <= numbers, error["message"]


def test_case_08_left_over_bytes(probe, tmp_path):
    path = tmp_path / "raw.bin"
    path.write_bytes(bytes(4097))
    error = check_error(
        probe.refused("open", path=str(path), dtype="<i4"),
        "corrupt",
        ["raw.bin", "byte"],
        path=path,
    )
    assert re.search(r"\b1 bytes? too many\b", error["message"]), error
    path.write_bytes(bytes(12 * 10 + 7))
    error = check_error(
        probe.refused("open", path=str(path), dtype="<i4", row_shape=[3]), "corrupt", path=path
    )
    assert re.search(r"\b7 bytes too many\b", error["message"]), error


@pytest.mark.parametrize(
    "size, status, number", [(396, "short_file", 4), (403, "corrupt", 3), (400 + 40, "corrupt", 40)]
)
def test_case_08_size_against_the_declared_shape(probe, tmp_path, size, status, number):
    path = tmp_path / "raw.bin"
    path.write_bytes(bytes(size))
    error = check_error(
        probe.refused("open", path=str(path), dtype="<f4", shape=[10, 10]),
        status,
        ["raw.bin"],
        path=path,
    )
    found = re.findall(r"\d+", error["message"])
    assert str(number) in found or {"400", str(size)} <= set(found), error


def test_case_09_bfloat16_only_when_the_user_says_so(probe, tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="needs ml_dtypes to make bfloat16 files")
    values = numpy.arange(24, dtype="f4").reshape(4, 6).astype(ml_dtypes.bfloat16)
    path = tmp_path / "b.npy"
    numpy.save(path, values)
    got, info, _ = load_all(probe, tmp_path, path)
    assert info["dtype"] == "|V2" and got.tobytes() == values.tobytes()
    got, info, _ = load_all(probe, tmp_path, path, dtype="bfloat16")
    assert info["dtype"] == "bfloat16" and got.tobytes() == values.tobytes()
    numpy.save(path, values.view("u2").byteswap().view("V2"))
    got, info, _ = load_all(probe, tmp_path, path, dtype=">bfloat16")
    assert info["dtype"] == "bfloat16" and got.tobytes() == values.tobytes()


def test_case_09_saving_bfloat16_keeps_the_type_or_is_refused(probe, tmp_path):
    (tmp_path / "values").write_bytes(bytes(range(48)))
    probe.batch(
        [
            {"do": "tiling", "kind": "even", "shape": [4, 6], "tiles": 1},
            {"do": "array", "dtype": "bfloat16"},
            {"do": "fill", "path": str(tmp_path / "values")},
        ]
    )
    check_error(probe.refused("save", path=str(tmp_path / "b.npy")), "unsupported", ["bfloat16"])
    assert not (tmp_path / "b.npy").exists()
    probe.call("save", path=str(tmp_path / "b.raw"))
    assert (tmp_path / "b.raw").read_bytes() == bytes(range(48))
    got, info, _ = load_all(probe, tmp_path, tmp_path / "b.raw", dtype="bfloat16", shape=[4, 6])
    assert info["dtype"] == "bfloat16" and got.tobytes() == bytes(range(48))


def test_case_10_a_shard_without_rows(probe, tmp_path):
    full = numpy.arange(24, dtype="i4").reshape(6, 4)
    save_shards(tmp_path / "s", [full[:3], full[:0], full[3:]])
    got, info, statistics = load_all(probe, tmp_path, tmp_path / "s", tiles=4)
    check_equal(got, full)
    assert info["files"] == 3
    assert probe.call("files", first=1)["files"][0]["rows"] == [3, 3]
    assert statistics["reads"] <= 2 * 2, "at most two reads for each shard with data"


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0,), (3, 0, 2)])
def test_case_10_only_empty_shards(probe, tmp_path, shape):
    paths = save_shards(tmp_path / "s", [numpy.zeros(shape, "f4")] * 3)
    got, info, statistics = load_all(probe, tmp_path, tmp_path / "s", tiles=2)
    check_equal(got, numpy.concatenate([numpy.load(p) for p in paths]))
    assert statistics["reads"] == 0 and info["bytes"] == 0
    probe.call("read", box=[[0, n] for n in info["shape"]], dtype="<f4", path=str(tmp_path / "box"))


@pytest.mark.parametrize("name", ["part_%d.npy", "part_%02d.npy", "part_%05d.npy"])
def test_case_12_numeric_order(probe, tmp_path, name):
    pieces = [numpy.full((2, 3), number, "i4") for number in range(12)]
    save_shards(tmp_path / "s", pieces, name)
    for path in (tmp_path / "s", tmp_path / "s" / "part_*.npy"):
        got, _, _ = load_all(probe, tmp_path, path, tiles=5)
        check_equal(got, numpy.concatenate(pieces))


def test_case_12_a_gap_and_mixed_padding(probe, tmp_path):
    paths = save_shards(tmp_path / "s", [numpy.zeros((2, 3), "i4")] * 12, "part_%02d.npy")
    paths[7].unlink()
    check_error(probe.refused("open", path=str(tmp_path / "s")), "incomplete", ["7"])
    save_shards(tmp_path / "m", [numpy.zeros((2, 3), "i4")] * 12, "part_%02d.npy")
    (tmp_path / "m" / "part_07.npy").rename(tmp_path / "m" / "part_7.npy")
    check_error(
        probe.refused("open", path=str(tmp_path / "m")), "mismatch", ["part_7.npy", "part_0"]
    )


def test_case_12_the_order_of_a_shell(probe, tmp_path):
    pieces = [numpy.full((2, 3), number, "i4") for number in range(12)]
    paths = sorted(save_shards(tmp_path / "s", pieces, "part_%d.npy"), key=str)
    assert paths[2].name == "part_10.npy"
    error = probe.refused("open", paths=[str(p) for p in paths], flags=1)
    check_error(error, "invalid_argument", ["part_2.npy", "part_11.npy"])
    assert error["hint"]
    got, _, _ = load_all(probe, tmp_path, paths)
    check_equal(got, numpy.concatenate([numpy.load(p) for p in paths]))
    ordered = sorted(paths, key=lambda p: int(p.stem[5:]))
    got, _, _ = load_all(probe, tmp_path, ordered, flags=1)
    check_equal(got, numpy.concatenate(pieces))


def test_case_12_own_saves_are_padded(probe, tmp_path):
    values = numpy.arange(36, dtype="i4").reshape(12, 3)
    (tmp_path / "values").write_bytes(values.tobytes())
    probe.batch(
        [
            {"do": "tiling", "kind": "even", "shape": [12, 3], "tiles": 5},
            {"do": "array", "dtype": "<i4"},
            {"do": "fill", "path": str(tmp_path / "values")},
            {"do": "save", "path": str(tmp_path / "s"), "shards": 12},
        ]
    )
    names = sorted(p.name for p in (tmp_path / "s").iterdir())
    assert names == ["shard_%04d.npy" % i for i in range(12)]
    check_equal(numpy.concatenate([numpy.load(tmp_path / "s" / n) for n in names]), values)


def test_case_19_opens_grow_with_shards(probe, tmp_path):
    full = numpy.arange(64 * 40 * 8, dtype="f4").reshape(64 * 40, 8)
    save_shards(tmp_path / "s", numpy.split(full, 64))
    got, info, moved = load_all(probe, tmp_path, tmp_path / "s", tiles=64)
    check_equal(got, full)
    assert info["statistics"]["opens"] == 64 and moved["opens"] == 0
    assert info["statistics"]["reads"] == 64 and moved["reads"] <= 64


def test_case_19_strace_counts_the_opens(new_probe, tmp_path):
    if not shutil.which("strace"):
        pytest.skip("needs strace")
    if (
        subprocess.run(
            ["strace", "-f", "-o", str(tmp_path / "try"), "true"], capture_output=True
        ).returncode
        != 0
    ):
        pytest.skip("strace is not allowed to trace here")
    full = numpy.arange(64 * 40 * 8, dtype="f4").reshape(64 * 40, 8)
    save_shards(tmp_path / "s", numpy.split(full, 64))
    log = tmp_path / "strace"
    # a leak check cannot run under a tracer
    own = new_probe(
        prefix=["strace", "-f", "-e", "trace=open,openat,openat2", "-o", str(log)],
        environment={"ASAN_OPTIONS": "detect_leaks=0"},
    )
    own.call("context", threads=4)
    got, _, _ = load_all(own, tmp_path, tmp_path / "s", tiles=64)
    check_equal(got, full)
    own.close()
    assert len(re.findall(r"shard_\d+\.npy", log.read_text())) == 64


def write_header_of(path, array, remainder):
    """A version 1.0 file without the usual padding,
    whose data starts `remainder` bytes behind a multiple of 4."""
    text = repr({"descr": array.dtype.str, "fortran_order": False, "shape": array.shape}).encode()
    text += b" " * ((remainder - (10 + len(text) + 1)) % 4) + b"\n"
    path.write_bytes(
        b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + array.tobytes()
    )
    return 10 + len(text)


UNALIGNED = {"shift": 3, "axes": [0, 1]}


@pytest.mark.parametrize(
    "memory",
    [
        {},
        {"wrap": True, "layouts": [UNALIGNED]},
        {"wrap": True, "layouts": [{**UNALIGNED, "axes": [1, 0], "pad": [1, 0]}]},
    ],
    ids=["own memory", "unaligned memory", "unaligned memory of columns"],
)
@pytest.mark.parametrize("format", ["npy", "raw"])
@pytest.mark.parametrize("dtype", ["<f4", "<f8", ">f4", ">f8"])
def test_case_54_data_at_an_address_that_is_not_aligned(probe, tmp_path, dtype, format, memory):
    """Little-endian rows (long enough) go straight into their place,
    big-endian ones and columns through staging."""
    full = (numpy.arange(31 * 300).reshape(31, 300) / 7).astype(dtype)
    path = tmp_path / ("a." + format)
    if format == "npy":
        start = write_header_of(path, full, 3)
        assert start % 4 == 3
        expected, options = numpy.load(path), {}
    else:
        path.write_bytes(b"abc" + full.tobytes())
        expected = numpy.frombuffer(path.read_bytes(), dtype, offset=3).reshape(31, 300)
        options = {"format": "raw", "dtype": dtype, "row_shape": [300], "offset": 3}
    got, _, statistics = load_all(probe, tmp_path, path, tiles=3, memory=memory, **options)
    check_equal(got, expected)
    staged = dtype[0] == ">" or memory.get("layouts", [UNALIGNED])[0]["axes"] == [1, 0]
    assert statistics["staged_bytes"] == (full.nbytes if staged else 0), statistics
    got, _, _ = load_all(probe, tmp_path, path, tiles=2, axis=1, memory=memory, **options)
    check_equal(got, expected)
