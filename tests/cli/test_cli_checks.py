# plan, verify and compare: reports, messages, exit status 3, and everything that is wrong at once.
#
# SPDX-License-Identifier: Apache-2.0
#
# Shards are made by numpy; what a tile reads is computed here from the lengths of the shards.
import itertools
import json
import os

import numpy
import pytest

from command import ERROR_KEYS, TEXT, check_text, refused, report, tegula, usage_error

LENGTHS = [7, 0, 12, 1, 30]


def save(folder, array, cuts=LENGTHS, name="shard_%04d.npy"):
    folder.mkdir(exist_ok=True)
    borders = numpy.cumsum([0, *cuts])
    for number, (lo, hi) in enumerate(itertools.pairwise(borders)):
        numpy.save(folder / (name % number), array[lo:hi])
    return folder


def array():
    return numpy.random.default_rng(2).random((sum(LENGTHS), 6)).astype("f4")


# ---- plan ----------------------------------------------------------------------------------------


def sources(folder, lo, hi):
    found, start = [], 0
    for number, length in enumerate(LENGTHS):
        rows = [max(lo, start) - start, min(hi, start + length) - start]
        if rows[0] < rows[1]:
            found.append({"file": str(folder / ("shard_%04d.npy" % number)), "rows": rows})
        start += length
    return found


@pytest.mark.parametrize("tiles,ranks", [(1, 1), (4, 1), (4, 2), (7, 3), (50, 50)])
def test_plan_says_which_rows_each_tile_reads(tmp_path, tiles, ranks):
    folder = save(tmp_path / "s", array())
    plan = report("plan", folder, "--tiles", tiles, "--ranks", ranks)
    step = -(-50 // tiles)
    count = -(-50 // step)
    boxes = [[[i * step, min((i + 1) * step, 50)], [0, 6]] for i in range(count)]
    assert set(plan) == {"shape", "dtype", "files", "ranks", "bytes", "reads", "tiles"}
    assert (plan["shape"], plan["dtype"], plan["files"], plan["ranks"], plan["bytes"]) == (
        [50, 6],
        "<f4",
        5,
        ranks,
        1200,
    )
    assert [tile["box"] for tile in plan["tiles"]] == boxes
    assert [tile["rank"] for tile in plan["tiles"]] == [i * ranks // count for i in range(count)]
    for tile, ((lo, hi), _) in zip(plan["tiles"], boxes):
        assert tile["sources"] == sources(folder, lo, hi)
        assert tile["bytes"] == (hi - lo) * 24
        assert tile["reads"] == len(tile["sources"]), "rows of a file lie together"


def test_plan_agrees_with_the_load(tmp_path):
    data = numpy.random.default_rng(0).random((3000, 400))
    folder = save(tmp_path / "s", data, [1000, 1500, 500])
    headers = 1  # that of the first file: the others are read together with their data
    for options in (
        ["--tiles", 3],
        ["--tiles", 3, "--axis", 1],
        ["--tile-shape", "700,150"],
        ["--overdecompose", 5],
    ):
        loaded = report("load", folder, *options, "-v")
        plan = report("plan", folder, *options)
        assert plan["reads"] == loaded["reads"] - headers
        assert [
            {key: tile[key] for key in ("box", "rank", "sources")} for tile in plan["tiles"]
        ] == loaded["tile_list"]


def test_plan_in_words(tmp_path):
    folder = save(tmp_path / "s", array())
    lines = tegula("plan", folder, "--tiles", 2).stdout.splitlines()
    assert lines[0] == "plan    shape [50, 6], dtype <f4, 5 files, 2 tiles, 1 rank"
    assert lines[1] == "reads   1.2 kB in 4 requests"
    assert lines[2] == "tile 0: rank 0, box [[0, 25], [0, 6]], 600 bytes, 4 requests"
    assert lines[3] == '  rows [0, 7] of "%s"' % (folder / "shard_0000.npy")
    assert len(lines) == 2 + 1 + 4 + 1 + 1
    assert tegula("plan", folder, "--quiet").stdout == ""


def test_plan_default_is_a_tile_per_rank(tmp_path):
    folder = save(tmp_path / "s", array())
    assert [tile["rank"] for tile in report("plan", folder, "--ranks", 5)["tiles"]] == [
        0,
        1,
        2,
        3,
        4,
    ]
    usage_error("plan", folder, "--tile-shape", "2", says=["--tile-shape", "2 lengths"])
    usage_error(
        "plan", folder, "--tile-shape", "2,2", "--tiles", 2, says=["--tile-shape", "--tiles"]
    )
    refused("plan", folder, "--expect-files", 6, status="mismatch", exit_status=3, says=["6"])


# ---- verify --------------------------------------------------------------------------------------


def problems(folder, *options):
    """The problems of a run that must find some; the error is the first of them."""
    answer = report("verify", folder, *options, status=3)
    assert set(answer) == {"level", "files", "chunks", "bytes", "problems", "error"}
    assert all(
        set(problem) == {"status", "path", "offset", "message"} for problem in answer["problems"]
    )
    first = answer["problems"][0]
    assert {key: answer["error"][key] for key in first} == first
    return answer["problems"]


@pytest.mark.parametrize("level,read", [("sizes", 0), ("checksums", 0), ("decode", 1200)])
def test_verify_of_good_files(tmp_path, level, read):
    folder = save(tmp_path / "s", array())
    answer = report("verify", folder, "--level", level)
    assert answer == {"level": level, "files": 5, "chunks": 5, "bytes": read, "problems": []}
    assert tegula("verify", folder, "--level", level).stdout.startswith(
        "checked 5 files (%s), " % level
    )
    assert report("verify", folder)["level"] == "decode"


def cut(path, size):
    os.truncate(path, path.stat().st_size - size)


@pytest.mark.parametrize("level", ["sizes", "decode"])
def test_verify_names_everything_that_is_wrong(tmp_path, level):
    folder = save(tmp_path / "s", numpy.zeros((60, 6)), [6] * 10)
    cut(folder / "shard_0001.npy", 1)
    (folder / "shard_0002.npy").write_bytes(b"\x93NUMPY\x01\x00\xff")
    (folder / "shard_0004.npy").unlink()
    (folder / "shard_0005.npy").write_bytes(b"")
    (folder / "shard_0007.npy").write_text("text")
    cut(folder / "shard_0009.npy", 100)
    found = problems(folder, "--level", level)
    names = [os.path.basename(problem["path"] or "") for problem in found]
    for name in (
        "shard_0001.npy",
        "shard_0002.npy",
        "shard_0005.npy",
        "shard_0007.npy",
        "shard_0009.npy",
    ):
        assert names.count(name) == 1, found
    assert found[0]["status"] == "incomplete" and "4" in found[0]["message"], "the hole comes first"
    statuses = {name: problem["status"] for name, problem in zip(names, found)}
    assert statuses["shard_0001.npy"] == statuses["shard_0009.npy"] == "short_file"
    assert len(found) == 6


def test_verify_of_a_link_to_nowhere(tmp_path):
    folder = save(tmp_path / "s", array())
    (folder / "shard_0002.npy").unlink()
    (folder / "shard_0002.npy").symlink_to("nowhere")
    cut(folder / "shard_0004.npy", 1)
    found = problems(folder)
    assert [problem["status"] for problem in found] == ["not_found", "short_file"]
    assert [os.path.basename(problem["path"]) for problem in found] == [
        "shard_0002.npy",
        "shard_0004.npy",
    ]


def test_verify_of_files_that_do_not_fit_together(tmp_path):
    folder = save(tmp_path / "s", array())
    numpy.save(folder / "shard_0005.npy", numpy.zeros((3, 7), "f4"))
    found = problems(folder)
    assert [problem["status"] for problem in found] == ["mismatch"] and "shard_0005.npy" in found[
        0
    ]["message"]


def test_verify_of_a_list_and_a_pattern(tmp_path):
    folder = save(tmp_path / "s", array())
    cut(folder / "shard_0000.npy", 1)
    cut(folder / "shard_0004.npy", 1)
    for paths in ([folder / ("shard_%04d.npy" % i) for i in range(5)], [folder / "shard_*.npy"]):
        answer = report("verify", *paths, status=3)
        assert sorted(os.path.basename(problem["path"]) for problem in answer["problems"]) == [
            "shard_0000.npy",
            "shard_0004.npy",
        ]
    missing = report("verify", folder / "shard_0001.npy", folder / "gone.npy", status=3)
    assert [problem["status"] for problem in missing["problems"]] == ["not_found"]


@pytest.mark.parametrize("pattern", ["shard_*.npy", "*/shard_000[0-4].npy", "*"])
def test_verify_of_a_pattern_names_everything_in_it(tmp_path, pattern):
    """With and without a pattern among the folders; what does not match is not looked at."""
    folder = save(tmp_path / "s", array())
    cut(folder / "shard_0001.npy", 1)
    cut(folder / "shard_0004.npy", 1)
    (folder / "other.txt").write_text("not asked for")
    where = tmp_path / pattern if "/" in pattern else folder / pattern
    names = [os.path.basename(problem["path"] or "") for problem in problems(where)]
    assert set(names) - {"other.txt"} >= {"shard_0001.npy", "shard_0004.npy"}
    assert ("other.txt" in names) == (pattern == "*")


def test_verify_goes_on_after_a_folder_that_cannot_be_seen(tmp_path):
    """Damage on both sides of it is named, and it is too."""
    for name in ("a_0", "a_2"):
        save(tmp_path / name, array())
        cut(tmp_path / name / "shard_0001.npy", 1)
    (tmp_path / "a_1").symlink_to("a_1")
    (tmp_path / "a_0" / "shard_meta.json").write_text("{}")
    where = tmp_path / "a_*" / "shard_0001.npy"
    names = [os.path.basename(problem["path"]) for problem in problems(where)]
    assert sorted(names) == ["a_1", "shard_0001.npy", "shard_0001.npy"]


def test_verify_does_not_take_a_side_file_for_a_shard(tmp_path):
    folder = save(tmp_path / "s", array())
    cut(folder / "shard_0002.npy", 1)
    (folder / "shard_meta.json").write_text('{"dtype": "<f4"}')
    assert [os.path.basename(problem["path"]) for problem in problems(folder)] == ["shard_0002.npy"]


@pytest.mark.parametrize("name", ["gone.npy", "gone/shard_*.npy", "gone/gone.npy", "a.npy/b*"])
def test_verify_of_what_is_not_there_is_one_problem(tmp_path, name):
    numpy.save(tmp_path / "a.npy", numpy.zeros(3))
    assert [problem["status"] for problem in problems(tmp_path / name)] == ["not_found"]


def test_verify_of_a_lost_last_file(tmp_path):
    folder = save(tmp_path / "s", array())
    (folder / "shard_0004.npy").unlink()
    assert report("verify", folder)["problems"] == []
    assert [problem["status"] for problem in problems(folder, "--expect-files", 5)] == ["mismatch"]
    assert [problem["status"] for problem in problems(folder, "--expect-rows", 50)] == ["mismatch"]


def test_verify_of_nothing(tmp_path):
    assert [problem["status"] for problem in problems(tmp_path / "gone")] == ["not_found"]
    assert [problem["status"] for problem in problems(tmp_path)] == ["not_found"]


def test_verify_of_raw_files(tmp_path):
    (tmp_path / "a_0.bin").write_bytes(bytes(100))
    (tmp_path / "a_1.bin").write_bytes(bytes(99))
    options = ("--format", "raw", "--dtype", "i2", "--row-shape", 5)
    found = problems(tmp_path, *options)
    assert len(found) == 1 and "a_1.bin" in found[0]["message"]
    (tmp_path / "a_1.bin").write_bytes(bytes(90))
    assert report("verify", tmp_path, *options)["bytes"] == 190


def test_verify_in_words(tmp_path):
    folder = save(tmp_path / "s", array())
    cut(folder / "shard_0003.npy", 1)
    run = tegula("verify", folder)
    lines = run.stdout.splitlines()
    assert run.returncode == 3
    assert lines[0].startswith(
        'problem short_file: "%s" is too short' % (folder / "shard_0003.npy")
    )
    assert lines[1].endswith("1 problem") and len(lines) == 2
    assert run.stderr.startswith("tegula: ") and "shard_0003.npy" in run.stderr
    assert tegula("verify", folder, "--quiet").stdout == ""


# ---- compare -------------------------------------------------------------------------------------


def test_compare_equal_whatever_the_layout(tmp_path):
    data = array()
    folder = save(tmp_path / "a", data)
    save(tmp_path / "cuts", data, [25, 25])
    numpy.save(tmp_path / "fortran.npy", numpy.asfortranarray(data))
    numpy.save(tmp_path / "big.npy", data.astype(">f4"))
    gaps = b"".join(bytes(13) + row.tobytes() for row in data.astype(">f4"))
    (tmp_path / "gaps.bin").write_bytes(gaps)
    (tmp_path / "columns.bin").write_bytes(data.tobytes("F"))
    equal = {"equal": True, "index": None, "a": None, "b": None, "reason": None}
    for other in ("a", "cuts", "fortran.npy", "big.npy"):
        assert report("compare", folder, tmp_path / other) == equal
    raw = ("--dtype", ">f4", "--row-shape", 6, "--offset", 13, "--row-gap", 13)
    assert report("compare", folder, tmp_path / "gaps.bin", *raw) == equal
    assert report("compare", tmp_path / "gaps.bin", folder, *raw) == equal
    assert report("compare", tmp_path / "gaps.bin", tmp_path / "gaps.bin", *raw) == equal
    assert (
        report(
            "compare",
            folder,
            tmp_path / "columns.bin",
            "--dtype",
            "f4",
            "--shape",
            "50,6",
            "--order",
            "F",
        )
        == equal
    )
    assert (
        tegula("compare", folder, tmp_path / "big.npy").stdout
        == "equal   shape (50, 6), dtype <f4, 1.2 kB each\n"
    )
    assert tegula("compare", folder, tmp_path / "big.npy", "--quiet").stdout == ""


def test_compare_names_the_first_difference(tmp_path):
    data = array()
    folder = save(tmp_path / "a", data)
    other = data.copy()
    other[31, 2] = 0.5
    other[40, 0] = 0.25
    numpy.save(tmp_path / "b.npy", other)
    answer = report("compare", folder, tmp_path / "b.npy", status=3)
    assert (answer["equal"], answer["index"], answer["b"]) == (False, [31, 2], "0.5")
    assert numpy.float32(answer["a"]) == data[31, 2]
    assert (
        answer["error"]["status"] == "mismatch" and answer["error"]["message"] == answer["reason"]
    )
    run = tegula("compare", tmp_path / "b.npy", folder)
    assert run.returncode == 3 and run.stdout == "" and "(31, 2)" in run.stderr


def test_compare_by_value(tmp_path):
    numpy.save(tmp_path / "a.npy", numpy.array([numpy.nan, 0.0, 1.0]))
    numpy.save(tmp_path / "b.npy", numpy.array([-numpy.nan, -0.0, 1.0]))
    assert report("compare", tmp_path / "a.npy", tmp_path / "b.npy", status=3)["index"] == [0]
    assert report("compare", tmp_path / "a.npy", tmp_path / "b.npy", "--values")["equal"]


def test_compare_of_other_shapes_and_dtypes(tmp_path):
    numpy.save(tmp_path / "a.npy", numpy.zeros((2, 3), "f4"))
    numpy.save(tmp_path / "b.npy", numpy.zeros((3, 2), "f4"))
    numpy.save(tmp_path / "c.npy", numpy.zeros((2, 3), "i4"))
    (tmp_path / "d.bin").write_bytes(bytes(24))
    answer = report("compare", tmp_path / "a.npy", tmp_path / "b.npy", status=3)
    assert (answer["index"], answer["a"], answer["b"], answer["reason"]) == (
        None,
        "(2, 3)",
        "(3, 2)",
        TEXT,
    )
    answer = report("compare", tmp_path / "a.npy", tmp_path / "c.npy", status=3)
    assert (answer["index"], answer["a"], answer["b"]) == (None, "<f4", "<i4")
    answer = report(
        "compare",
        tmp_path / "a.npy",
        tmp_path / "d.bin",
        "--dtype",
        "i4",
        "--row-shape",
        3,
        status=3,
    )
    assert (answer["a"], answer["b"]) == ("<f4", "<i4")


def test_compare_that_cannot_be_made(tmp_path):
    numpy.save(tmp_path / "a.npy", numpy.zeros(3))
    refused("compare", tmp_path / "a.npy", tmp_path / "gone", status="not_found", says=["gone"])
    refused("compare", tmp_path / "gone", tmp_path / "a.npy", status="not_found", says=["gone"])
    usage_error(
        "compare",
        tmp_path / "a.npy",
        tmp_path / "a.npy",
        "--row-shape",
        2,
        says=["row_shape", "npy"],
    )


# ---- load --missing ------------------------------------------------------------------------------


def test_missing_is_the_same_for_formats_without_absent_pieces(tmp_path):
    folder = save(tmp_path / "s", array())
    for how in ("error", "strict", "fill"):
        assert report("load", folder, "--missing", how)["missing"] == 0
    (folder / "shard_0002.npy").unlink()
    for how in ("error", "strict", "fill"):
        refused("load", folder, "--missing", how, status="incomplete", says=["2"])


def test_json_of_a_failed_check_has_report_and_error(tmp_path):
    numpy.save(tmp_path / "a.npy", numpy.zeros(3))
    numpy.save(tmp_path / "b.npy", numpy.ones(3))
    run = tegula("compare", "--json", tmp_path / "a.npy", tmp_path / "b.npy")
    answer = json.loads(run.stdout)
    assert (
        list(answer) == ["equal", "index", "a", "b", "reason", "error"]
        and set(answer["error"]) == ERROR_KEYS
    )
    check_text(answer["error"], run.stderr)
