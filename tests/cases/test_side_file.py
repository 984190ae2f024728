# shard_meta.json beside raw files: loaded as it says, and refused by name where it contradicts the
# files, itself or the user.
#
# SPDX-License-Identifier: Apache-2.0
#
# Expected values come from numpy, which also makes the bytes of the files.
import json

import numpy
import pytest

from files import check_equal, load_all, save_shards
from probe import check_error

FULL = numpy.arange(60, dtype="i4").reshape(15, 4) * 1000003


def write_raw(folder, pieces, header=b"", gap=b"", order="C", name="part_%02d.bin"):
    folder.mkdir(exist_ok=True)
    paths = []
    for number, piece in enumerate(pieces):
        paths.append(folder / (name % number))
        rows = [row.tobytes() for row in piece] if gap else [piece.tobytes(order)]
        paths[-1].write_bytes(header + gap.join(rows))
    return paths


def side_file(folder, **fields):
    (folder / "shard_meta.json").write_text(json.dumps(fields))


def pieces(lengths=(4, 0, 5, 6), dtype="<i4"):
    ends = numpy.cumsum(lengths)
    return [FULL[end - length : end].astype(dtype) for length, end in zip(lengths, ends)]


FORMS = [
    ("<i4", {"dtype": "<i4", "row_shape": [4]}),
    ("<i4", {"dtype": "<i4", "shape": [15, 4]}),
    (">i4", {"dtype": "int32", "byte_order": "big", "trailing_shape": [4]}),
    (">i4", {"dtype": "i4", "endianness": ">", "trailing_shape": 4, "rows": [4, 0, 5, 6]}),
    (
        "<i4",
        {"dtype": "i4", "endianness": "little", "row_shape": [4], "rows_per_shard": [4, 0, 5, 6]},
    ),
    (
        "<i4",
        {"num_shards": 4, "dtype": "int32", "trailing_axes": [4], "per_shard_rows": [4, 0, 5, 6]},
    ),
    (
        ">i4",
        {
            "dtype": ">i4",
            "shape": [15, 4],
            "rows": {"part_%02d.bin" % i: n for i, n in enumerate([4, 0, 5, 6])},
        },
    ),
    (
        "<i4",
        {
            "dtype": "<i4",
            "row_shape": [4],
            "comment": "made by hand",
            "_run": 42,
            "x-lab": {"a": [1]},
        },
    ),
]


@pytest.mark.parametrize("number", range(len(FORMS)))
def test_every_form_gives_the_array(probe, tmp_path, number):
    dtype, fields = FORMS[number]
    write_raw(tmp_path / "s", pieces(dtype=dtype))
    side_file(tmp_path / "s", **fields)
    got, info, _ = load_all(probe, tmp_path, tmp_path / "s", tiles=3)
    check_equal(got, FULL)
    assert info["format"] == "raw" and info["files"] == 4
    got, _, _ = load_all(probe, tmp_path, tmp_path / "s" / "part_*.bin")
    check_equal(got, FULL)
    got, _, _ = load_all(probe, tmp_path, sorted(str(p) for p in (tmp_path / "s").glob("*.bin")))
    check_equal(got, FULL)


@pytest.mark.parametrize("name", ["offset", "header_bytes"])
def test_headers_gaps_and_fortran_order(probe, tmp_path, name):
    write_raw(tmp_path / "gap", pieces((7, 8)), header=b"magic", gap=b"\xee" * 3)
    side_file(tmp_path / "gap", dtype="<i4", row_shape=[4], row_gap=3, **{name: 5})
    check_equal(load_all(probe, tmp_path, tmp_path / "gap")[0], FULL)
    write_raw(tmp_path / "f", pieces((7, 8)), header=b"magic", order="F")
    side_file(tmp_path / "f", dtype="<i4", row_shape=[4], order="F", **{name: 5})
    check_equal(load_all(probe, tmp_path, tmp_path / "f")[0], FULL)


def test_files_beside_foreign_ones(probe, tmp_path):
    """The folder is no set of files: those that are opened are taken as the set."""
    tmp_path = tmp_path / "s"
    tmp_path.mkdir()
    path = tmp_path / "field.bin"
    path.write_bytes(FULL.tobytes())
    (tmp_path / "notes.txt").write_text("x")
    side_file(tmp_path, dtype="<i4", shape=[15, 4])
    check_equal(load_all(probe, tmp_path, path)[0], FULL)
    side_file(tmp_path, dtype="<i4", shape=[14, 4])
    check_error(
        probe.refused("open", path=str(path)),
        "corrupt",
        ["field.bin", "(14, 4)", 224, 240],
        path=path,
    )
    side_file(tmp_path, dtype="<i4", row_shape=[4], rows={"field.bin": 15, "other.bin": 3})
    check_equal(load_all(probe, tmp_path, path)[0], FULL)
    side_file(tmp_path, dtype="<i4", row_shape=[4], rows=[15])
    check_equal(load_all(probe, tmp_path, path)[0], FULL)
    side_file(tmp_path, dtype="<i4", shape=[])
    check_error(
        probe.refused("open", path=str(path)), "corrupt", ["field.bin", "()", 4, 240], path=path
    )
    paths = write_raw(tmp_path, pieces((4, 5, 6)))
    for fields in ({"shape": [15, 4]}, {"row_shape": [4], "rows": [4, 5, 6]}):
        side_file(tmp_path, dtype="<i4", **fields)
        for where in (tmp_path / "part_*.bin", paths):
            check_equal(load_all(probe, tmp_path / "..", where)[0], FULL)
    check_error(probe.refused("open", path=str(paths[1])), "mismatch", ["shard_meta.json", 3, 1])


def test_some_files_of_a_folder(probe, tmp_path):
    """A list in the side file speaks of the whole folder: each file finds its own entry."""
    paths = write_raw(tmp_path / "s", pieces((4, 5, 6)))
    for fields in (
        {"rows": [4, 5, 6]},
        {"rows": [4, 5, 6], "shape": [15, 4]},
        {"rows": {p.name: n for p, n in zip(paths, (4, 5, 6))}},
    ):
        side_file(tmp_path / "s", dtype="<i4", **{"row_shape": [4], **fields})
        check_equal(load_all(probe, tmp_path, paths[1])[0], FULL[4:9])
        check_equal(
            load_all(probe, tmp_path, [paths[2], paths[0]])[0],
            FULL[[9, 10, 11, 12, 13, 14, 0, 1, 2, 3]],
        )
        paths[1].write_bytes(FULL[4:8].tobytes())  # a whole row is gone
        for opened in (
            {"path": str(paths[1])},
            {"path": str(tmp_path / "s")},
            {"paths": [str(paths[1]), str(paths[0])]},
        ):
            error = check_error(
                probe.refused("open", **opened), "short_file", ["part_01.bin", "(5, 4)", 80, 64]
            )
            assert "shard_meta.json" in error["hint"]
        paths[1].write_bytes(FULL[4:9].tobytes())
    # of all together: one of three cannot be checked
    side_file(tmp_path / "s", dtype="<i4", shape=[15, 4])
    error = check_error(
        probe.refused("open", path=str(paths[1])), "mismatch", ["part_01.bin", 5, 15]
    )
    assert "whole folder" in error["hint"]


def test_the_number_of_files_shows_a_lost_last_one(probe, tmp_path):
    """No hole in the names shows it. A few of the files may still be opened by themselves:
    the folder is counted."""
    paths = write_raw(tmp_path / "s", pieces((4, 5, 6)))
    recipe = {"num_shards": 3, "dtype": "int32", "trailing_axes": [4]}
    every = (
        {"path": str(tmp_path / "s")},
        {"path": str(tmp_path / "s" / "part_*.bin")},
        {"path": str(paths[1])},
        {"paths": [str(paths[1]), str(paths[0])]},
    )
    for rows in ({}, {"per_shard_rows": [4, 5, 6]}):
        side_file(tmp_path / "s", **recipe, **rows)
        check_equal(load_all(probe, tmp_path, tmp_path / "s")[0], FULL)
        check_equal(load_all(probe, tmp_path, tmp_path / "s" / "part_*.bin")[0], FULL)
        check_equal(load_all(probe, tmp_path, paths[1])[0], FULL[4:9])
        check_equal(
            load_all(probe, tmp_path, [paths[1], paths[0]])[0], FULL[[4, 5, 6, 7, 8, 0, 1, 2, 3]]
        )
    side_file(tmp_path / "s", **recipe)
    paths[2].unlink()
    for opened in every:
        error = check_error(
            probe.refused("open", **opened),
            "mismatch",
            ["shard_meta.json", "num_shards says 3 files", "found 2"],
        )
        assert "missing" in error["hint"]
    side_file(tmp_path / "s", **{**recipe, "per_shard_rows": [4, 5]})
    for opened in every:
        check_error(
            probe.refused("open", **opened),
            "corrupt",
            ["shard_meta.json", "num_shards is 3", "2 files"],
        )


def test_the_user_may_complete_it_but_not_contradict_it(probe, tmp_path):
    write_raw(tmp_path / "s", pieces((7, 8)), header=b"12345678")
    side_file(tmp_path / "s", header_bytes=8)
    check_equal(load_all(probe, tmp_path, tmp_path / "s", dtype="<i4", row_shape=[4])[0], FULL)
    side_file(tmp_path / "s", header_bytes=8, dtype="<i4", row_shape=[4], order="C")
    check_equal(
        load_all(
            probe,
            tmp_path,
            tmp_path / "s",
            dtype="<i4",
            row_shape=[4],
            offset=8,
            order="C",
            byte_order="<",
        )[0],
        FULL,
    )
    rows = [
        ({"dtype": "<f4"}, ["dtype", "<i4", "<f4"]),
        ({"dtype": ">i4"}, ["byte_order", "little", "big"]),
        ({"byte_order": ">"}, ["byte_order", "little", "big"]),
        ({"row_shape": [2, 2]}, ["row_shape", "(4,)", "(2, 2)"]),
        ({"shape": [7, 2]}, ["row_shape", "(4,)", "(2,)"]),
        ({"offset": 4}, ["offset", 8, 4]),
        ({"order": "F"}, ["order", "C", "F"]),
    ]
    for said, names in rows:
        error = check_error(
            probe.refused("open", path=str(tmp_path / "s"), **said),
            "mismatch",
            ["shard_meta.json", *names],
        )
        assert error["path"].endswith("shard_meta.json")


def test_contradictions_with_the_files(probe, tmp_path):
    paths = write_raw(tmp_path / "s", pieces((4, 5, 6)))
    rows = [
        (
            {"dtype": "<i4", "row_shape": [4], "rows": [4, 5, 5]},
            "corrupt",
            ["part_02.bin", "(5, 4)", 80, 96],
        ),
        (
            {"dtype": "<i4", "row_shape": [4], "rows": [4, 5, 7]},
            "short_file",
            ["part_02.bin", "(7, 4)", 112, 96],
        ),
        (
            {"dtype": "<i4", "row_shape": [4], "rows": [4, 5]},
            "mismatch",
            ["shard_meta.json", "rows", 2, 3],
        ),
        (
            {"dtype": "<i4", "row_shape": [4], "rows": {"part_00.bin": 4, "part_01.bin": 5}},
            "mismatch",
            ["part_02.bin", "shard_meta.json"],
        ),
        (
            {
                "dtype": "<i4",
                "row_shape": [4],
                "rows": {"part_0%d.bin" % i: 4 + i for i in range(4)},
            },
            "incomplete",
            ["part_03.bin", "shard_meta.json"],
        ),
        (
            {"dtype": "<i4", "row_shape": [4], "rows_per_shard": 5},
            "short_file",
            ["part_00.bin", "(5, 4)", 80, 64],
        ),
        (
            {"dtype": "<i4", "shape": [16, 4]},
            "mismatch",
            ["part_00.bin", "shard_meta.json", 4, 15, 16],
        ),
        (
            {"dtype": "<i4", "shape": [5, 4]},
            "mismatch",
            ["part_00.bin", "shard_meta.json", 4, 15, 5],
        ),
        ({"dtype": "<i4", "row_shape": [5]}, "corrupt", ["part_00.bin", 20]),
        ({"dtype": "<i4", "trailing_axes": [5]}, "corrupt", ["part_00.bin", 20]),
        (
            {"dtype": "<i4", "trailing_axes": [4], "row_shape": [5]},
            "corrupt",
            ["shard_meta.json", "trailing_axes", "row_shape", "(5,)"],
        ),
        (
            {"dtype": "<i4", "trailing_axes": [4], "per_shard_rows": [4, 5, 7]},
            "short_file",
            ["part_02.bin", "(7, 4)", 112, 96],
        ),
        (
            {"dtype": "<i4", "trailing_axes": [4], "per_shard_rows": 5},
            "short_file",
            ["part_00.bin", "(5, 4)", 80, 64],
        ),
        (
            {"dtype": "<i4", "trailing_axes": [4], "num_shards": 2},
            "mismatch",
            ["shard_meta.json", "num_shards", 2, 3],
        ),
        ({"dtype": "<i4", "row_shape": [4], "offset": 3}, "corrupt", ["part_00.bin"]),
        (
            {"dtype": "<i4", "row_shape": [4], "header_byte": 3},
            "corrupt",
            ["shard_meta.json", "header_byte"],
        ),
        (
            {"dtype": "<i4", "row_shape": [4], "offset": 0, "header_bytes": 8},
            "corrupt",
            ["shard_meta.json", "offset", 0, 8],
        ),
        ({"row_shape": [4]}, "unsupported", ["part_00.bin"]),
    ]
    for fields, status, names in rows:
        side_file(tmp_path / "s", **fields)
        check_error(probe.refused("open", path=str(tmp_path / "s")), status, names)
    side_file(tmp_path / "s", dtype="<i4", row_shape=[4], rows=[4, 5, 6])
    paths[2].unlink()  # the last one: no hole shows it
    check_error(
        probe.refused("open", path=str(tmp_path / "s")), "mismatch", ["shard_meta.json", 3, 2]
    )


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b'{"dtype": "<i4", "dtype": "<i4"}', b"\xff\xfe", b"[" * 100000]
)
def test_text_that_is_no_side_file(probe, tmp_path, text):
    write_raw(tmp_path / "s", pieces())
    (tmp_path / "s" / "shard_meta.json").write_bytes(text)
    for said in ({}, {"dtype": "<i4", "row_shape": [4]}):
        error = check_error(
            probe.refused("open", path=str(tmp_path / "s"), **said), "corrupt", ["shard_meta.json"]
        )
        assert error["path"].endswith("shard_meta.json")


@pytest.mark.parametrize(
    "fields, part",
    [
        ({"dtype": "f4", "row_shape": [2**40, 2**40]}, "larger than 2^63 bytes"),
        ({"dtype": "f4", "row_shape": [0]}, "its rows have no bytes"),
        ({"dtype": "f4", "row_shape": [4], "row_gap": 8, "order": "F"}, "order"),
        ({"dtype": "f4", "shape": [], "row_gap": 8}, "scalar"),
    ],
)
def test_what_makes_no_sense_is_the_side_file_s_fault(probe, tmp_path, fields, part):
    """Not the caller's, who said nothing wrong."""
    write_raw(tmp_path / "s", pieces())
    side_file(tmp_path / "s", **fields)
    error = check_error(
        probe.refused("open", path=str(tmp_path / "s")), "corrupt", ["shard_meta.json", part]
    )
    assert error["path"].endswith("shard_meta.json")


def test_a_side_file_that_cannot_be_read_is_not_passed_over(probe, tmp_path):
    write_raw(tmp_path / "s", pieces())
    (tmp_path / "s" / "shard_meta.json").mkdir()
    check_error(
        probe.refused("open", path=str(tmp_path / "s"), dtype="<i4", row_shape=[4]),
        "unsupported",
        ["shard_meta.json"],
    )


def test_npy_files_need_none_but_must_not_contradict_it(probe, tmp_path):
    paths = save_shards(tmp_path / "s", pieces((4, 5, 6)))
    for fields in (
        {"dtype": ">i4", "rows": [4, 5, 6]},
        {"shape": [15, 4], "offset": 3},
        {
            "num_shards": 3,
            "dtype": "int32",
            "trailing_axes": [4],
            "per_shard_rows": [4, 5, 6],
            "files_per_run": 2,
        },
        {"rows": {p.name: n for p, n in zip(paths, (4, 5, 6))}, "something": "of another program"},
    ):
        side_file(tmp_path / "s", **fields)
        check_equal(load_all(probe, tmp_path, tmp_path / "s")[0], FULL)
    for fields, names in (
        ({"dtype": "<f4"}, ["dtype", "shard_0000.npy", "<i4", "<f4"]),
        ({"rows": [4, 5, 7]}, ["rows", "shard_0002.npy", 6, 7]),
        ({"rows": [4, 5, 6, 7]}, ["rows", 4, 3]),
        ({"rows_per_shard": 4}, ["rows", "shard_0001.npy", 5, 4]),
        ({"num_shards": 4, "trailing_axes": [4]}, ["num_shards", 4, 3]),
        ({"trailing_axes": [5]}, ["shard_0000.npy", "(4,)", "(5,)"]),
        ({"row_shape": [5]}, ["shard_0000.npy", "(4,)", "(5,)"]),
        ({"shape": [16, 4]}, ["shard_0000.npy", 15, 16]),
    ):
        side_file(tmp_path / "s", **fields)
        check_error(
            probe.refused("open", path=str(tmp_path / "s")), "mismatch", ["shard_meta.json", *names]
        )
        # it speaks of the folder, not of a file that says itself what it is
        check_equal(load_all(probe, tmp_path, paths[0])[0], FULL[:4])


def test_a_side_file_costs_no_data_reads(probe, tmp_path):
    write_raw(tmp_path / "s", pieces((4, 5, 6)))
    side_file(tmp_path / "s", dtype="<i4", row_shape=[4])
    statistics = probe.call("open", path=str(tmp_path / "s"))["statistics"]
    assert statistics["opens"] == 3
