# write, load, info, demo and bench on good input: reports, values, tiles, boxes;
# interruption and deadlines.
#
# SPDX-License-Identifier: Apache-2.0
#
# Values and hashes come from the independent definitions in tests/support;
# shards are read and made by numpy.
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import time

import numpy
import pytest

from command import (
    BIN,
    COUNT,
    NUMBER,
    SECONDS,
    TEXT,
    TIME_LIMIT,
    environment,
    refused,
    report,
    start,
    tegula,
    usage_error,
)
from reference_demo import demo_values
from reference_hash import content_hash

# ---- write ---------------------------------------------------------------------------------------


def shard_arrays(folder):
    return [numpy.load(path) for path in sorted(folder.glob("shard_*.npy"))]


def test_write_makes_the_defined_values(tmp_path):
    target = tmp_path / "deep" / "er" / "shards"
    answer = report(
        "write", target, "--num-shards", 5, "--shape", "1003,7", "--dtype", "f8", "--seed", 9
    )
    assert answer == {"dir": str(target), "files": 5, "shape": [1003, 7], "dtype": "<f8", "seed": 9}
    pieces = shard_arrays(target)
    assert len(pieces) == 5
    assert len({len(piece) for piece in pieces}) > 1, "the numbers of rows differ"
    numpy.testing.assert_array_equal(numpy.concatenate(pieces), demo_values((1003, 7), "f8", 9))


@pytest.mark.parametrize(
    "dtype", ["?", "i1", "u2", "<i4", ">i4", "u8", "f2", "f4", ">f8", "c8", "c16"]
)
@pytest.mark.parametrize("values", ["random", "ramp"])
def test_write_of_each_dtype(tmp_path, dtype, values):
    report(
        "write",
        tmp_path / "s",
        "--num-shards",
        3,
        "--shape",
        "50,3",
        "--dtype",
        dtype,
        "--values",
        values,
    )
    got = numpy.concatenate(shard_arrays(tmp_path / "s"))
    assert shard_arrays(tmp_path / "s")[0].dtype == numpy.dtype(dtype)
    expected = demo_values((50, 3), dtype, 0, values == "ramp")
    numpy.testing.assert_array_equal(got, expected)
    report("load", tmp_path / "s", "--check-seed", 0)


def test_write_array_does_not_depend_on_the_cuts(tmp_path):
    for number, shards in enumerate((1, 2, 8, 13)):
        report(
            "write", tmp_path / str(number), "--num-shards", shards, "--shape", "100,4", "--seed", 3
        )
    arrays = [numpy.concatenate(shard_arrays(tmp_path / str(number))) for number in range(4)]
    for array in arrays[1:]:
        numpy.testing.assert_array_equal(array, arrays[0])


def test_write_is_the_same_each_time(tmp_path):
    for name in ("a", "b"):
        report("write", tmp_path / name, "--shape", "999,2", "--seed", 5)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_write_uniform(tmp_path):
    report("write", tmp_path / "s", "--num-shards", 4, "--shape", "10,2", "--uniform")
    lengths = [len(piece) for piece in shard_arrays(tmp_path / "s")]
    assert sum(lengths) == 10 and max(lengths) - min(lengths) <= 1


def test_write_fewer_rows_than_shards(tmp_path):
    report("write", tmp_path / "s", "--num-shards", 8, "--shape", "3,2")
    pieces = shard_arrays(tmp_path / "s")
    assert len(pieces) == 8 and sum(len(piece) for piece in pieces) == 3
    assert report("load", tmp_path / "s", "--check-seed", 0)["shape"] == [3, 2]
    report("write", tmp_path / "none", "--num-shards", 2, "--shape", "0,2")
    assert report("load", tmp_path / "none", "--check-seed", 0)["shape"] == [0, 2]


def test_write_raw_is_bare_bytes(tmp_path):
    report(
        "write",
        tmp_path / "s",
        "--format",
        "raw",
        "--num-shards",
        3,
        "--shape",
        "40,6",
        "--dtype",
        ">i2",
    )
    data = b"".join(path.read_bytes() for path in sorted((tmp_path / "s").glob("*.raw")))
    numpy.testing.assert_array_equal(
        numpy.frombuffer(data, ">i2").reshape(40, 6), demo_values((40, 6), "i2")
    )
    answer = report(
        "load",
        tmp_path / "s",
        "--format",
        "raw",
        "--dtype",
        ">i2",
        "--row-shape",
        6,
        "--check-seed",
        0,
    )
    assert answer["format"] == "raw" and answer["shape"] == [40, 6] and answer["dtype"] == "<i2"


def test_write_names_have_one_width(tmp_path):
    report("write", tmp_path / "s", "--num-shards", 10001, "--shape", "10001", "--dtype", "u1")
    assert (tmp_path / "s" / "shard_00000.npy").exists() and (
        tmp_path / "s" / "shard_10000.npy"
    ).exists()
    assert report("load", tmp_path / "s", "--check-seed", 0)["files"] == 10001


def test_write_leaves_the_list(tmp_path):
    report(
        "write",
        tmp_path / "s",
        "--num-shards",
        2,
        "--shape",
        "4,3",
        "--dtype",
        "i2",
        "--values",
        "ramp",
        "--seed",
        8,
    )
    note = json.loads((tmp_path / "s" / ".tegula-write.json").read_text())
    files = note.pop("files")
    assert note == {"format": "npy", "values": "ramp", "shape": [4, 3], "dtype": "<i2", "seed": 8}
    names = ("shard_0000.npy", "shard_0001.npy")
    assert files == [
        {"name": name, "size": (tmp_path / "s" / name).stat().st_size} for name in names
    ]


def test_write_refuses_a_folder_that_has_anything(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / ".hidden").write_text("x")
    refused("write", tmp_path / "s", status="exists", says=[tmp_path / "s", ".hidden"])
    assert [path.name for path in (tmp_path / "s").iterdir()] == [".hidden"]
    (tmp_path / "file").write_text("x")
    refused("write", tmp_path / "file", status=("exists", "not_found"), says=[tmp_path / "file"])


def test_write_that_fails_leaves_nothing(tmp_path):
    refused("write", tmp_path / "a" / "b", "--dtype", "M8[s]", status="unsupported")
    too_big = ["--shape", "4611686018427387904", "--dtype", "i1", "--num-shards", 1]
    refused("write", tmp_path / "a" / "b", *too_big, status="out_of_memory")
    usage_error("write", tmp_path / "a" / "b", "--shape", "4611686018427387904,4", says=["--shape"])
    usage_error("write", tmp_path / "a" / "b", "--shape", "()", says=["--shape", "()"])
    assert list(tmp_path.iterdir()) == []


# ---- load ----------------------------------------------------------------------------------------


@pytest.fixture
def shards(tmp_path):
    """Twelve uneven shards of 'f4' made by numpy, with one empty one; the folder and the array."""
    folder = tmp_path / "shards"
    folder.mkdir()
    array = numpy.random.default_rng(1).random((101, 5), "f4")
    cuts = [0, 3, 20, 20, 21, 40, 41, 55, 60, 77, 80, 99, 101]
    for number in range(12):
        numpy.save(folder / ("part_%02d.npy" % number), array[cuts[number] : cuts[number + 1]])
    return folder, array


LOAD_REPORT = {
    "format": "npy",
    "shape": [101, 5],
    "dtype": "<f4",
    "files": 12,
    "sources": 0,
    "chunks": 12,
    "tiles": 1,
    "ranks": 1,
    "bytes": 2020,
    "seconds": SECONDS,
    "seconds_describe": SECONDS,
    "seconds_allocate": SECONDS,
    "seconds_move": SECONDS,
    "gb_per_s": NUMBER,
    "opens": 12,
    "reads": COUNT,
    "bytes_read": COUNT,
    "reader_bytes": 0,
    "missing": 0,
    "missing_list": [],
    "peak_rss_bytes": COUNT,
    "io_path": TEXT,
    "fallback_reason": None,
    "hash": None,
}


def test_load_report(shards):
    answer = report("load", shards[0])
    assert answer == LOAD_REPORT
    assert answer["bytes_read"] >= 2020 and answer["reads"] <= 24
    assert answer["gb_per_s"] == pytest.approx(2020 / 1e9 / answer["seconds"], rel=1e-5)
    assert answer["seconds"] >= answer["seconds_describe"] + answer["seconds_move"] - 1e-6


def test_load_hash_is_that_of_the_joined_array(shards):
    assert report("load", shards[0], "--hash", "--tiles", 3)["hash"] == content_hash(shards[1])


@pytest.mark.parametrize("way", ["auto", "pread", "io_uring", "direct"])
def test_load_by_each_way(shards, way):
    answer = report("load", shards[0], "--io", way, "--hash")
    assert answer["hash"] == content_hash(shards[1])
    wanted = "pread" if way == "auto" else way
    assert answer["io_path"] == wanted or (
        answer["io_path"] == "pread" and answer["fallback_reason"]
    )


def test_load_of_a_pattern_a_list_and_one_file(shards):
    folder, array = shards
    assert report("load", str(folder) + "/part_*.npy", "--hash")["hash"] == content_hash(array)
    files = sorted(folder.iterdir())
    assert report("load", *files, "--hash")["hash"] == content_hash(array)
    assert report("load", files[1], "--hash")["hash"] == content_hash(array[3:20])
    assert report("load", "--hash", "--", files[4], files[5])["hash"] == content_hash(array[21:41])


def test_load_shell_order(tmp_path):
    pieces = [numpy.full((2, 2), number) for number in range(11)]
    for number, piece in enumerate(pieces):
        numpy.save(tmp_path / ("part_%d.npy" % number), piece)
    expanded = sorted(tmp_path.iterdir())
    error = refused(
        "load", *expanded, status="invalid_argument", says=["part_10.npy"], exit_status=2
    )
    assert "quote" in error["hint"]
    assert report("load", tmp_path, "--hash")["hash"] == content_hash(numpy.concatenate(pieces))
    in_this_order = numpy.concatenate([numpy.load(path) for path in expanded])
    assert report("load", *expanded, "--as-given", "--hash")["hash"] == content_hash(in_this_order)


@pytest.mark.parametrize(
    "options,tiles",
    [
        ([], 1),
        (["--tiles", "4"], 4),
        (["--tiles", "4", "--overdecompose", "3"], 12),
        (["--overdecompose", "5"], 5),
        (["--tiles", "60"], 51),  # ceil(101 / 60) = 2 rows each, ceil(101 / 2) tiles
        (["--tiles", "2", "--axis", "1"], 2),
        (["--tiles=9", "--axis=1"], 5),
        (["--tile-shape", "30,2"], 12),  # 4 x 3
    ],
)
def test_load_tilings(shards, options, tiles):
    answer = report("load", shards[0], "--hash", *options)
    assert answer["tiles"] == tiles and answer["hash"] == content_hash(shards[1])


def test_load_tilings_that_do_not_fit(shards):
    usage_error("load", shards[0], "--axis", 2, "--tiles", 2, says=["--axis", "2"])
    usage_error(
        "load", shards[0], "--tile-shape", 30, says=["--tile-shape", "expected 2", "found 1"]
    )
    usage_error("load", shards[0], "--tiles", 2**62, "--overdecompose", 4, says=["--overdecompose"])


def test_load_tile_list(shards):
    folder, _ = shards
    answer = report("load", folder, "--tiles", 5, "-v")
    assert [tile["box"] for tile in answer["tile_list"]] == [
        [[lo, min(lo + 21, 101)], [0, 5]] for lo in range(0, 101, 21)
    ]
    assert answer["tile_list"][0] == {
        "box": [[0, 21], [0, 5]],
        "rank": 0,
        "sources": [
            {"file": str(folder / "part_00.npy"), "rows": [0, 3]},
            {"file": str(folder / "part_01.npy"), "rows": [0, 17]},
            {"file": str(folder / "part_03.npy"), "rows": [0, 1]},
        ],
    }
    assert answer["tile_list"][4]["sources"] == [
        {"file": str(folder / "part_10.npy"), "rows": [4, 19]},
        {"file": str(folder / "part_11.npy"), "rows": [0, 2]},
    ]
    assert "tile_list" not in report("load", folder)


@pytest.mark.parametrize(
    "box,index",
    [
        ("0:101,0:5", numpy.s_[:, :]),
        ("10:70", numpy.s_[10:70]),
        (":3", numpy.s_[:3]),
        ("99:", numpy.s_[99:]),
        (":,2:4", numpy.s_[:, 2:4]),
        ("19:22,1:", numpy.s_[19:22, 1:]),
        ("50:50", numpy.s_[50:50]),
        ("101:", numpy.s_[101:]),
        ("::10", numpy.s_[::10]),
        ("7:90:3,1::2", numpy.s_[7:90:3, 1::2]),
        (":,::5", numpy.s_[:, ::5]),
        ("5:5:2", numpy.s_[5:5:2]),
    ],
)
@pytest.mark.parametrize("tiling", [[], ["--tiles", "3"], ["--tile-shape", "7,2"]])
def test_load_box(shards, box, index, tiling):
    folder, array = shards
    part = numpy.ascontiguousarray(array[index])
    answer = report("load", folder, "--box", box, "--hash", *tiling)
    assert answer["shape"] == list(part.shape) and answer["bytes"] == part.nbytes
    assert answer["hash"] == content_hash(part)


def test_load_box_in_column_tiles_reads_no_byte_more(tmp_path):
    report("write", tmp_path / "s", "--shape", "3000,64", "--num-shards", 3)
    tiles = ["--tiles", 16, "--axis", 1]
    whole = report("load", tmp_path / "s", "--hash", *tiles)
    box = report("load", tmp_path / "s", "--hash", "--box", ":,:", *tiles)
    assert whole["bytes_read"] < 3000 * 64 * 4 * 1.1
    assert box["bytes_read"] <= whole["bytes_read"] + 3 * 4096, (
        "for a box each header is read by itself"
    )
    assert [box[key] for key in ("hash", "tiles")] == [whole[key] for key in ("hash", "tiles")]


def test_load_box_reads_only_its_files(shards):
    answer = report("load", shards[0], "--box", "22:30", "-v")
    assert answer["tile_list"][0]["box"] == [[0, 8], [0, 5]]
    assert answer["tile_list"][0]["sources"] == [
        {"file": str(shards[0] / "part_04.npy"), "rows": [1, 9]}
    ]


def test_one_field(tmp_path):
    array = numpy.zeros((40, 3), [("a", "<i4"), ("p", [("x", ">f4"), ("y", "<f8", (2,))])])
    array["p"]["x"] = numpy.arange(120).reshape(40, 3)
    numpy.save(tmp_path / "x.npy", array)
    x = numpy.ascontiguousarray(array["p"]["x"].astype("<f4"))
    where = (tmp_path / "x.npy", "--field", "p.x")
    answer = report("load", *where, "--hash", "--tiles", 3)
    assert (answer["shape"], answer["dtype"]) == ([40, 3], "<f4")
    assert answer["hash"] == content_hash(x)
    stepped = report("load", *where, "--hash", "--box", "::3,1:")
    assert stepped["hash"] == content_hash(numpy.ascontiguousarray(x[::3, 1:]))
    (info,) = report("info", tmp_path / "x.npy", "--field", "p.y")["datasets"]
    assert (info["shape"], info["dtype"]) == ([40, 3, 2], "<f8")
    report("copy", *where[:1], tmp_path / "y.npy", *where[1:], "--verify")
    assert numpy.load(tmp_path / "y.npy").tobytes() == x.tobytes()
    refused("load", tmp_path / "x.npy", "--field", "p.z", status="not_found")
    array.tofile(tmp_path / "x.bin")
    said = [
        "--dtype",
        "[('a', '<i4'), ('p', [('x', '>f4'), ('y', '<f8', (2,))])]",
        "--row-shape",
        3,
    ]
    answer = report("load", tmp_path / "x.bin", *said, "--field", "p.x", "--hash")
    assert answer["hash"] == content_hash(x)
    refused("load", tmp_path / "x.bin", "--dtype", "[('a', 'O')]", status="unsupported")
    usage_error("load", tmp_path / "x.bin", "--dtype", "[('a'", says=["descr", "character 5"])


def test_load_box_with_steps_and_a_seed(shards):
    usage_error(
        "load", shards[0], "--box", "::2", "--check-seed", 1, says=["--check-seed", "--box"]
    )


@pytest.mark.parametrize(
    "box,says",
    [("0:102", "0:102"), ("102:", "102:101"), (":,:,:", "at most 2 axes"), (":,0:6", "axis 1")],
)
def test_load_box_outside(shards, box, says):
    usage_error("load", shards[0], "--box", box, says=["--box", says, "(101, 5)"])


def test_load_a_scalar(tmp_path):
    numpy.save(tmp_path / "scalar.npy", numpy.float64(3.5))
    answer = report("load", tmp_path / "scalar.npy", "--hash", "-v")
    assert answer["shape"] == [] and answer["tiles"] == 1
    assert answer["hash"] == "tegula1:7c12c993b6b8c21ff93add91baf78844"
    assert answer["tile_list"][0]["sources"] == [
        {"file": str(tmp_path / "scalar.npy"), "rows": [0, 1]}
    ]


def test_load_check_seed(tmp_path):
    report("write", tmp_path / "s", "--num-shards", 5, "--shape", "1000,3", "--seed", 4)
    for options in ([], ["--tiles", 7], ["--tile-shape", "64,2"], ["--box", "100:300,1:"]):
        report("load", tmp_path / "s", "--check-seed", 4, *options)
    refused("load", tmp_path / "s", "--check-seed", 5, status="mismatch", exit_status=3)
    path = sorted((tmp_path / "s").glob("*.npy"))[2]
    piece = numpy.load(path)
    piece[1, 2] = 7
    numpy.save(path, piece)
    refused("load", tmp_path / "s", "--check-seed", 4, status="mismatch", exit_status=3)


def test_load_check_seed_of_a_ramp(tmp_path):
    report("write", tmp_path / "s", "--shape", "1000,3", "--values", "ramp")
    report("load", tmp_path / "s", "--check-seed", 0)
    (tmp_path / "s" / ".tegula-write.json").write_text("no JSON")
    refused(
        "load", tmp_path / "s", "--check-seed", 0, status="corrupt", says=[".tegula-write.json"]
    )
    (tmp_path / "s" / ".tegula-write.json").unlink()
    refused("load", tmp_path / "s", "--check-seed", 0, status="mismatch", exit_status=3)


def test_load_check_seed_sees_a_lost_last_shard(tmp_path):
    report("write", tmp_path / "s", "--num-shards", 3, "--shape", "100,3", "--uniform")
    sorted((tmp_path / "s").glob("*.npy"))[-1].unlink()
    error = refused(
        "load",
        tmp_path / "s",
        "--check-seed",
        0,
        status="mismatch",
        exit_status=3,
        says=["(100, 3)", "(66, 3)"],
    )
    assert str(tmp_path / "s") in error["message"]
    assert report("load", tmp_path / "s")["shape"] == [66, 3]


def test_load_check_seed_compares_the_note(tmp_path):
    folder = tmp_path / "s"
    report("write", folder, "--shape", "100,3", "--dtype", ">i4", "--seed", 7)
    report("load", folder, "--check-seed", 7)
    refused(
        "load", folder, "--check-seed", 8, status="mismatch", exit_status=3, says=["seed 7", "8"]
    )
    note = json.loads((folder / ".tegula-write.json").read_text())
    for key, value, says in (
        ("dtype", "<f4", ["<f4", "i4"]),
        ("shape", [100, 3, 1], ["(100, 3, 1)", "(100, 3)"]),
    ):
        (folder / ".tegula-write.json").write_text(json.dumps(dict(note, **{key: value})))
        refused("load", folder, "--check-seed", 7, status="mismatch", exit_status=3, says=says)
    shapes = [[100, "3"], [1] * 65, 3, None]
    for key, value in [("dtype", "what"), ("dtype", None), ("seed", None)] + [
        ("shape", shape) for shape in shapes
    ]:
        (folder / ".tegula-write.json").write_text(json.dumps(dict(note, **{key: value})))
        refused("load", folder, "--check-seed", 7, status="corrupt", says=[".tegula-write.json"])


def test_load_expectations(shards):
    report("load", shards[0], "--expect-files", 12, "--expect-rows", 101)
    refused(
        "load", shards[0], "--expect-files", 13, status="mismatch", says=["13", "12"], exit_status=3
    )
    refused(
        "load",
        shards[0],
        "--expect-rows",
        102,
        status="mismatch",
        says=["102", "101"],
        exit_status=3,
    )


def test_a_mismatch_of_files_is_no_failed_expectation(shards):
    numpy.save(shards[0] / "part_05.npy", numpy.zeros((1, 6), "f4"))
    refused(
        "load",
        shards[0],
        "--expect-files",
        12,
        status="mismatch",
        says=["part_05.npy"],
        exit_status=1,
    )


def test_load_repeat(shards):
    answer = report("load", shards[0], "--repeat", 3)
    assert len(answer["runs"]) == 3
    assert answer["seconds"] == pytest.approx(sorted(answer["runs"])[1])
    assert answer["opens"] == 12, "counts are those of one run"


def test_load_for_people(shards):
    run = tegula("load", shards[0], "--tiles", 3)
    assert run.returncode == 0 and run.stderr == ""
    assert "12 npy files" in run.stdout and "(101, 5)" in run.stdout and "GB/s" in run.stdout
    run = tegula("load", shards[0], "--quiet")
    assert run.returncode == 0 and run.stdout == "" and run.stderr == ""
    assert "part_11.npy" in tegula("load", shards[0], "-v").stdout


def test_load_raw_options(tmp_path):
    rows = numpy.arange(60, dtype=">i4").reshape(5, 3, 4)
    for number, part in enumerate((rows[:2], rows[2:])):
        body = b"GAP!".join(row.tobytes() for row in part)
        (tmp_path / ("part_%d.bin" % number)).write_bytes(b"HEADER" + body)
    expected = content_hash(rows.astype("<i4"))
    common = ["--format", "raw", "--row-shape", "3,4", "--offset", 6, "--row-gap", 4, "--hash"]
    assert report("load", tmp_path, "--dtype", ">i4", *common)["hash"] == expected
    assert (
        report("load", tmp_path, "--dtype", "i4", "--byte-order", "big", *common)["hash"]
        == expected
    )
    assert report("load", tmp_path, "--dtype", "i4", "--byte-order=>", *common)["hash"] == expected


def test_load_raw_shape_and_order(tmp_path):
    array = numpy.arange(12, dtype="f8").reshape(3, 4)
    (tmp_path / "a.bin").write_bytes(array.T.tobytes())
    answer = report(
        "load", tmp_path / "a.bin", "--dtype", "f8", "--shape", "3,4", "--order", "F", "--hash"
    )
    assert answer["hash"] == content_hash(array)


def test_threads_from_option_and_environment(tmp_path):
    report("write", tmp_path / "s", "--shape", "100,4", "--threads", 3)
    assert (
        report("bench", tmp_path / "s", "--repeat", 1, env={"TEGULA_THREADS": "3"})["threads"] == 3
    )
    assert (
        report("bench", tmp_path / "s", "--repeat", 1, "--threads", 1, env={"TEGULA_THREADS": "3"})[
            "threads"
        ]
        == 1
    )


# ---- info, demo, bench ---------------------------------------------------------------------------


def test_info(shards):
    assert report("info", shards[0]) == {
        "format": "npy",
        "datasets": [
            {
                "name": "data",
                "shape": [101, 5],
                "dtype": "<f4",
                "chunks": None,
                "codecs": [],
                "files": 12,
                "sources": 0,
                "bytes": 2020,
                "stored_bytes": 2020,
            }
        ],
    }
    assert "part_03.npy" in tegula("info", shards[0], "-v").stdout


def test_info_of_records(tmp_path):
    numpy.save(tmp_path / "r.npy", numpy.zeros(3, [("a", "<f4"), ("b", "<i8")]))
    dataset = report("info", tmp_path / "r.npy")["datasets"][0]
    assert dataset["dtype"] == "|V12" and dataset["shape"] == [3]
    assert dataset["descr"] == "[('a', '<f4'), ('b', '<i8')]"


def test_info_of_raw(tmp_path):
    (tmp_path / "a.bin").write_bytes(bytes(96))
    answer = report(
        "info", tmp_path / "a.bin", "--format", "raw", "--dtype", "f4", "--row-shape", 3
    )
    assert answer["format"] == "raw" and answer["datasets"][0]["shape"] == [8, 3]


def test_a_name_that_is_no_text(tmp_path):
    name = os.fsencode(tmp_path) + b"/caf\xe9\n\x1b[31m.npy"
    numpy.save(name.decode("utf-8", "surrogateescape"), numpy.zeros(3, "f4"))
    answer = report("load", name, "-v")
    assert (
        answer["tile_list"][0]["sources"][0]["file"] == str(tmp_path) + "/caf\ufffd\n\x1b[31m.npy"
    )
    with open(name, "r+b") as file:
        file.truncate(130)
    run = tegula("info", name, "--json")
    assert run.returncode == 1 and json.loads(run.stdout)["error"]["status"] == "short_file"
    assert "\x1b" not in run.stderr and len(run.stderr.splitlines()) <= 2


def test_demo(tmp_path):
    run = tegula("demo", env={"TMPDIR": str(tmp_path)})
    assert run.returncode == 0 and run.stderr == ""
    assert run.stdout.splitlines()[-1] == "TEGULA DEMO OK"
    assert list(tmp_path.iterdir()) == []
    answer = report("demo", env={"TMPDIR": str(tmp_path)})
    assert answer["write"]["files"] == 8 and answer["load"]["tiles"] == 6
    assert list(tmp_path.iterdir()) == []


def test_demo_that_fails_leaves_nothing(tmp_path):
    refused("demo", env={"TMPDIR": str(tmp_path / "gone")}, status="not_found", says=["gone"])
    refused("demo", "--timeout", "0.001", env={"TMPDIR": str(tmp_path)}, status="timeout")
    assert list(tmp_path.iterdir()) == []


def test_bench(tmp_path):
    report("write", tmp_path / "s", "--shape", "20000,8")
    answer = report("bench", tmp_path / "s", "--repeat", 3)
    assert answer == {
        "seconds": SECONDS,
        "limit_seconds": SECONDS,
        "ratio": NUMBER,
        "runs": 3,
        "bytes": 640000,
        "threads": COUNT,
    }
    assert answer["ratio"] == pytest.approx(answer["seconds"] / answer["limit_seconds"], rel=1e-4)
    assert "ratio" in tegula("bench", tmp_path / "s", "--repeat", 1).stdout


def test_bench_of_an_empty_array(tmp_path):
    numpy.save(tmp_path / "e.npy", numpy.zeros((0, 3)))
    assert report("bench", tmp_path / "e.npy", "--repeat", 1)["bytes"] == 0


# ---- interruption, deadline, streams -------------------------------------------------------------


@pytest.fixture
def big_file(tmp_path):
    """256 MiB of nothing: a sparse file."""
    path = tmp_path / "big.npy"
    numpy.lib.format.open_memmap(path, "w+", "u1", (256 << 20,))
    return path


def catches(process, number):
    """Waits until the program has its own handler for the signal."""
    for _ in range(12000):
        mask = re.search(
            r"SigCgt:\s*([0-9a-f]+)", pathlib.Path("/proc/%d/status" % process.pid).read_text()
        )
        if mask and int(mask[1], 16) >> (number - 1) & 1:
            return
        time.sleep(0.005)
    raise AssertionError("the program never caught the signal")


def interrupted(number, *arguments):
    process = start(*arguments)
    catches(process, number)
    time.sleep(0.1)
    process.send_signal(number)
    out, err = process.communicate(timeout=TIME_LIMIT)
    return process.returncode, out, err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_a_load(big_file, number):
    code, out, err = interrupted(number, "load", big_file, "--repeat", 100000, "--json")
    assert code == 130, (code, out, err)
    assert json.loads(out)["error"]["status"] == "cancelled" and err == "tegula: interrupted\n"


def test_a_killed_write_leaves_no_part(tmp_path):
    whole, endings = 20 + 1, set()
    for number in range(24):
        target = tmp_path / str(number) / "s"
        if number % 2:
            target.mkdir(parents=True)
        process = start("write", target, "--num-shards", 20, "--shape", "20000,4", "--threads", 1)
        time.sleep(0.001 * number)
        process.kill()
        process.communicate(timeout=TIME_LIMIT)
        count = len(list(target.iterdir())) if target.exists() else 0
        assert count in (0, whole), (number, count)
        assert (process.returncode == 0) <= (count == whole)
        if count == whole:
            report("load", target, "--check-seed", 0)
        endings.add(count)
    assert 0 in endings, "no write was killed before it was done"


def test_write_into_an_empty_folder_keeps_its_mode(tmp_path):
    folder = tmp_path / "s"
    folder.mkdir()
    folder.chmod(0o2750)
    mode = folder.stat().st_mode
    (tmp_path / "link").symlink_to(folder)
    for name in ("s/", "link", "s/."):
        report("write", tmp_path / name if name != "s/" else str(folder) + "/", "--shape", "20,4")
        assert folder.stat().st_mode == mode and len(list(folder.iterdir())) == 9
        assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "s"]
        for path in folder.iterdir():
            path.unlink()


def test_write_does_not_replace_the_working_folder(tmp_path):
    refused("write", ".", status="exists", says=["working folder"], cwd=tmp_path)
    refused("write", tmp_path, status="exists", says=[tmp_path, "working folder"], cwd=tmp_path)
    report("write", "new", "--shape", "20,4", cwd=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_a_signal_during_a_write_removes_what_was_written(tmp_path):
    code, _, err = interrupted(
        signal.SIGINT, "write", tmp_path / "a" / "b", "--num-shards", 200000, "--shape", "200000,4"
    )
    assert code == 130 and err == "tegula: interrupted\n"
    assert list(tmp_path.iterdir()) == []


def test_deadline(big_file, tmp_path):
    refused(
        "load", big_file, "--repeat", 100000, "--timeout", "0.3", status="timeout", says=["0.3 s"]
    )
    refused(
        "load",
        big_file,
        "--repeat",
        100000,
        env={"TEGULA_TIMEOUT": "0.3"},
        status="timeout",
        says=["0.3 s"],
    )
    refused("bench", big_file, "--repeat", 10000, "--timeout", "0.3", status="timeout")
    refused(
        "write",
        tmp_path / "w",
        "--num-shards",
        200000,
        "--shape",
        "200000,4",
        "--timeout",
        "0.3",
        status="timeout",
    )
    assert not (tmp_path / "w").exists()


def test_progress(big_file):
    assert tegula("load", big_file).stderr == ""
    always = tegula("load", big_file, "--progress", "always", "--threads", 1).stderr
    assert (
        "%" in always
        and "/s" in always
        and always.startswith("\r[")
        and always.endswith("\r\x1b[K")
    ), repr(always)
    assert tegula("load", big_file, "--progress", "never").stderr == ""


def test_progress_on_a_terminal(big_file):
    shown, seconds = {}, {}
    for option in ("auto", "never"):
        primary, secondary = pty.openpty()
        began = time.monotonic()
        process = subprocess.Popen(
            [BIN, "load", str(big_file), "--repeat", "6", "--threads", "1", "--progress", option],
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=secondary,
        )
        os.close(secondary)
        shown[option] = b""
        while True:
            try:
                data = os.read(primary, 65536)
            except OSError:
                break
            if not data:
                break
            shown[option] += data
        assert process.wait(TIME_LIMIT) == 0
        seconds[option] = time.monotonic() - began
        os.close(primary)
    assert shown["never"] == b""
    assert b"%" in shown["auto"] and shown["auto"].endswith(b"\r\x1b[K")
    assert shown["auto"].count(b"%") <= 10 * seconds["auto"] + 2 * 6, (
        "at most ten pictures a second"
    )


def test_a_report_to_a_full_device_is_an_error(shards):
    for arguments in (
        ["load", shards[0]],
        ["load", shards[0], "--json"],
        ["info", shards[0], "--json"],
    ):
        with open("/dev/full", "w") as full:
            run = tegula(*arguments, stdout=full)
        assert run.returncode == 1 and "standard output" in run.stderr


def test_closed_streams_do_not_end_up_in_data(tmp_path):
    script = 'exec "$0" write "$1" --shape 1000,4 --num-shards 3 --progress always <&- >&- 2>&-'
    run = subprocess.run(["sh", "-c", script, BIN, str(tmp_path / "s")], env=environment())
    assert run.returncode == 1, "the report could not be written"
    numpy.testing.assert_array_equal(
        numpy.concatenate(shard_arrays(tmp_path / "s")), demo_values((1000, 4), "f4")
    )
