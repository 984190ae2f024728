# The rules that the public header states once for all: struct sizes, dtypes, statuses, tilings,
# ownership, destruction.
#
# SPDX-License-Identifier: Apache-2.0
import itertools
import shutil

import numpy
import pytest

from files import check_equal, load_all
from probe import check_error
from reference_hash import FIXTURES, content_hash


def ready(probe, tmp_path, shape=(6, 4), dtype="u1", tiles=2):
    full = numpy.arange(int(numpy.prod(shape)), dtype=dtype).reshape(shape)
    numpy.save(tmp_path / "a.npy", full)
    probe.batch(
        [
            {"do": "open", "path": str(tmp_path / "a.npy")},
            {"do": "tiling", "kind": "even", "shape": list(shape), "tiles": tiles},
            {"do": "array", "dtype": full.dtype.str},
        ]
    )
    return full


def test_struct_sizes(probe, tmp_path):
    """Own size works; 0 and one byte less than version 1 are refused; a longer struct works only
    when the tail it brings is zero."""
    ready(probe, tmp_path)
    rows = probe.call("sizes", path=str(tmp_path / "a.npy"), target=str(tmp_path / "saved.npy"))
    assert len(rows) == 8
    expected = ["ok", "invalid_argument", "invalid_argument", "ok", "unsupported"]
    assert {name: statuses for name, statuses in rows.items() if statuses != expected} == {}


def test_statuses_have_names_and_sentences(probe):
    answer = probe.call("statuses")
    assert answer["unknown"] == "unknown" and answer["version"] == "0.1.0"
    assert {name: row[0] for name, row in answer["statuses"].items()}["short_file"] == 24
    for name, (_, given, sentence) in answer["statuses"].items():
        assert given == name and sentence


NUMPY_TEXTS = [
    "?",
    "bool",
    "int8",
    "uint64",
    "float16",
    "float32",
    "complex64",
    "complex128",
    "<M8[25s]",
    ">m8[ns]",
    "M8",
    "m8[as]",
    "S7",
    "|S1",
    "U12",
    ">U3",
    "V16",
    ">f4",
    "<c16",
    "=i4",
    "|u1",
]


@pytest.mark.parametrize("text", NUMPY_TEXTS)
def test_dtype_text_is_numpys(probe, text):
    answer = probe.call("dtype", text=text)
    expected = numpy.dtype(text)
    assert answer["text"] == expected.str
    assert answer["item_size"] == expected.itemsize
    assert answer["native"] == (expected.newbyteorder("<").str)


@pytest.mark.parametrize(
    "text, status",
    [
        ("", "invalid_argument"),
        ("f3", "invalid_argument"),
        ("float", None),
        ("<f", "invalid_argument"),
        ("i16", "invalid_argument"),
        ("S-1", "invalid_argument"),
        ("<M8[]", "invalid_argument"),
        ("<M8[xs]", "invalid_argument"),
        ("<M8[0s]", "invalid_argument"),
        ("O", "unsupported"),
        ("|O", "unsupported"),
        ("object", "unsupported"),
        ("f16", "unsupported"),
        ("<c32", "unsupported"),
        ("S0", "unsupported"),
        ("U0", "unsupported"),
        ("V0", "unsupported"),
        ("longdouble", "unsupported"),
        ("S99999999999999999999", None),
        ("U4294967295", None),
        ("<f4 ", "invalid_argument"),
        ("<f4x", "invalid_argument"),
        ("bfloat17", "invalid_argument"),
        ("[('a', '<f4')]", None),
        ("f4\n", "invalid_argument"),
        ("M8[9999999999s]", None),
    ],
)
def test_dtype_text_that_is_none(probe, text, status):
    error = probe.refused("dtype", text=text)
    check_error(error, status or ("invalid_argument", "unsupported", "limit_exceeded"))


def test_dtypes_that_are_the_same(probe):
    for text, other, same in [
        ("<f4", ">f4", 1),
        ("<f4", "<i4", 0),
        ("<M8[s]", "<M8[ms]", 0),
        ("<M8[s]", "<m8[s]", 0),
        ("|V2", "bfloat16", 0),
        (">bfloat16", "bfloat16", 1),
        ("S3", "S4", 0),
        ("M8[25s]", ">M8[25s]", 1),
    ]:
        assert probe.call("dtype", text=text, other=other)["same"] == same, (text, other)


def tiles_of(probe, **arguments):
    answer = probe.call("tiling", list=True, **arguments)
    assert answer["count"] == len(answer["tiles"])
    return answer["tiles"]


@pytest.mark.parametrize(
    "length, tiles, lengths",
    [
        (10, 3, [4, 4, 2]),
        (10, 6, [2, 2, 2, 2, 2]),
        (10, 10, [1] * 10),
        (3, 8, [1, 1, 1]),
        (0, 4, [0]),
        (7, 1, [7]),
        (9, 4, [3, 3, 3]),
    ],
)
def test_even_tiling(probe, length, tiles, lengths):
    """t = ceil(n / tiles) elements each, the last one short,
    none empty but that of an empty array."""
    boxes = [
        tile["box"] for tile in tiles_of(probe, kind="even", shape=[2, length], axis=1, tiles=tiles)
    ]
    assert [hi - lo for _, (lo, hi) in boxes] == lengths
    assert all(box[0] == [0, 2] for box in boxes)


@pytest.mark.parametrize("count, ranks", list(itertools.product([1, 2, 5, 8], [1, 2, 3, 8, 20])))
def test_owner_of_a_tile(probe, count, ranks):
    tiles = tiles_of(probe, kind="even", shape=[count], tiles=count, ranks=ranks)
    assert [tile["rank"] for tile in tiles] == [i * ranks // count for i in range(count)]


def test_tilings_without_axes_or_elements(probe):
    assert [tile["box"] for tile in tiles_of(probe, kind="even", shape=[], axis=7, tiles=5)] == [[]]
    assert [tile["box"] for tile in tiles_of(probe, kind="grid", shape=[], tile=[])] == [[]]
    assert [tile["box"] for tile in tiles_of(probe, kind="custom", shape=[], boxes=[[]])] == [[]]
    assert [tile["box"] for tile in tiles_of(probe, kind="grid", shape=[0, 5], tile=[2, 2])] == [
        [[0, 0], [0, 5]]
    ]
    assert [
        tile["box"] for tile in tiles_of(probe, kind="even", shape=[0, 5], axis=1, tiles=3)
    ] == [[[0, 0], [0, 5]]]


@pytest.mark.parametrize(
    "arguments",
    [
        {"kind": "even", "shape": [4], "tiles": 0},
        {"kind": "even", "shape": [4], "tiles": -1},
        {"kind": "even", "shape": [4], "axis": 1},
        {"kind": "even", "shape": [4], "axis": -1},
        {"kind": "even", "shape": [-4]},
        {"kind": "even", "shape": [4], "ranks": 0},
        {"kind": "even", "shape": [2**62, 2**62]},
        {"kind": "even", "shape": [1] * 65},
        {"kind": "grid", "shape": [4], "tile": [0]},
        {"kind": "grid", "shape": [4], "tile": [-2]},
        {"kind": "custom", "shape": [4], "boxes": []},
        {"kind": "custom", "shape": [4], "boxes": [[[0, 3]]]},
        {"kind": "custom", "shape": [4], "boxes": [[[0, 3]], [[2, 4]]]},
        {"kind": "custom", "shape": [4], "boxes": [[[0, 5]]]},
        {"kind": "custom", "shape": [4], "boxes": [[[-1, 4]]]},
        {"kind": "custom", "shape": [4], "boxes": [[[3, 0]], [[0, 4]]]},
        {"kind": "custom", "shape": [4, 4], "boxes": [[[0, 4]]]},
        {"kind": "custom", "shape": [2, 2], "boxes": [[[0, 1], [0, 2]]] * 2},
        {"kind": "custom", "shape": [4], "boxes": [[[0, 4]]], "owners": [1]},
        {"kind": "custom", "shape": [4], "boxes": [[[0, 4]]], "owners": [-1]},
        {
            "kind": "custom",
            "shape": [3, 3],
            "boxes": [[[0, 2], [0, 1]], [[0, 1], [1, 3]], [[1, 3], [2, 3]], [[2, 3], [0, 2]]],
        },
    ],
)
def test_tilings_that_make_no_sense(probe, arguments):
    """Among them overlapping boxes whose sizes add up to the whole,
    and a pinwheel without its middle."""
    check_error(
        probe.refused("tiling", **arguments),
        ("invalid_argument", "limit_exceeded", "out_of_memory"),
    )


def test_tiling_of_more_tiles_than_memory_can_list(new_probe, sanitizer):
    """2^60 tiles are a valid tiling, of which no array can be made."""
    if sanitizer:
        pytest.skip("a sanitizer reserves more address space than the limit of this test")
    if not shutil.which("prlimit"):
        pytest.skip("needs prlimit")
    own = new_probe(prefix=["prlimit", "--as=%d" % (1 << 30), "--cpu=20"])
    own.call("context", threads=1)
    assert own.call("tiling", kind="grid", shape=[2**40, 2**20], tile=[1, 1])["count"] == 2**60
    for separate in (False, True):
        check_error(
            own.refused("array", dtype="|u1", separate=separate),
            ("out_of_memory", "limit_exceeded"),
        )


def test_custom_tiling_of_many_boxes(probe):
    """A pinwheel is whole; many boxes, side by side on any axis, are checked too."""
    wheel = [
        [[0, 2], [0, 1]],
        [[0, 1], [1, 3]],
        [[1, 3], [2, 3]],
        [[2, 3], [0, 2]],
        [[1, 2], [1, 2]],
    ]
    assert [
        tile["box"] for tile in tiles_of(probe, kind="custom", shape=[3, 3], boxes=wheel)
    ] == wheel
    boxes = [[[i, i + 1], [j, j + 1]] for i in range(300) for j in range(100)]
    assert probe.call("tiling", kind="custom", shape=[300, 100], boxes=boxes)["count"] == 30000
    row = [[[0, 1], [i, i + 1]] for i in range(5000)]
    assert probe.call("tiling", kind="custom", shape=[1, 5000], boxes=row)["count"] == 5000


def test_one_block_where_tiles_form_a_box(probe):
    probe.call("tiling", kind="grid", shape=[10, 10], tile=[3, 4])
    answer = probe.call("array", dtype="<f4")
    assert answer["block"] == "ok" and answer["block_box"] == [[0, 10], [0, 10]]
    assert probe.call("array", dtype="<f4", separate=True)["block"] == "unsupported"


def test_wrapped_memory_is_released_once_and_never_on_failure(probe):
    before = probe.call("close", what="array")["released"]
    probe.call("tiling", kind="even", shape=[6, 2], tiles=3)
    probe.call("array", dtype="<f4", wrap=True)
    for spoiled in ({"count": 2}, {"count": 4}, {"spoil_box": 1}, {"spoil_box": -1}):
        check_error(
            probe.refused("array", dtype="<f4", wrap=True, **spoiled),
            ("invalid_argument", "mismatch"),
        )
    assert probe.call("close", what="array")["released"] == before + 1


def test_read_only_memory_is_not_loaded_into(probe, tmp_path):
    ready(probe, tmp_path, tiles=1)
    answer = probe.ask({"do": "array", "dtype": "|u1", "wrap": True, "read_only": True})
    if "error" in answer:
        check_error(answer["error"], "invalid_argument")
    else:
        check_error(probe.refused("load"), "invalid_argument")
        probe.call("save", path=str(tmp_path / "saved.npy"))


def test_unknown_device_is_refused(probe):
    probe.call("tiling", kind="even", shape=[6], tiles=3)
    check_error(
        probe.refused("array", dtype="<f4", device_type=2), ("unsupported", "invalid_argument")
    )


@pytest.mark.parametrize(
    "order", list(itertools.permutations(["context", "dataset", "tiling", "array"]))[::5]
)
def test_any_order_of_destruction(probe, tmp_path, order):
    """Each object keeps what it needs of its context,
    and still works without the others' handles."""
    full = ready(probe, tmp_path)
    for what in order:
        if what in ("dataset", "array"):
            probe.batch(
                [{"do": "hash", "of": what}]
                if what == "dataset"
                else [{"do": "dump", "path": str(tmp_path / "dump")}]
            )
        probe.call("close", what=what)
    assert len((tmp_path / "dump").read_bytes()) == full.nbytes


def test_loading_after_the_context_was_let_go(probe, tmp_path):
    full = ready(probe, tmp_path)
    probe.call("close", what="context")
    probe.call("close", what="tiling")
    probe.batch([{"do": "load"}, {"do": "dump", "path": str(tmp_path / "dump")}])
    assert (tmp_path / "dump").read_bytes() == full.tobytes()


def test_defaults_and_missing_errors(probe, tmp_path):
    """NULL for options and for the error is always allowed."""
    full = ready(probe, tmp_path)
    probe.call("open", path=str(tmp_path / "a.npy"), defaults=True, null_error=True)
    probe.call("load", defaults=True, null_error=True)
    probe.call("save", path=str(tmp_path / "b.npy"), defaults=True, null_error=True)
    check_equal(numpy.load(tmp_path / "b.npy"), full)
    assert (
        probe.ask({"do": "save", "path": str(tmp_path / "b.npy"), "null_error": True})["error"][
            "status"
        ]
        == "exists"
    )
    assert probe.call("context", defaults=True)["threads"] >= 1
    for bad in ({"threads": -1}, {"max_open_files": -1}, {"staging_bytes": -1}):
        check_error(probe.refused("context", **bad), ("invalid_argument", "limit_exceeded"))


@pytest.mark.parametrize("number", range(len(FIXTURES)))
def test_hash_fixtures(probe, tmp_path, number):
    make, expected = FIXTURES[number]
    array = make()
    assert content_hash(array) == expected
    numpy.save(tmp_path / "a.npy", array)
    load_all(probe, tmp_path, tmp_path / "a.npy", tiles=7)
    assert probe.call("hash", of="array")["hash"] == expected
    assert probe.call("hash", of="dataset")["hash"] == expected


def test_hash_does_not_depend_on_layout(probe, tmp_path):
    """Big-endian, Fortran order, shards, tiles on another axis: one hash. A changed value,
    shape or dtype: another."""
    full = numpy.arange(50000, dtype="<i8").reshape(100, 500)
    numpy.save(tmp_path / "a.npy", numpy.asfortranarray(full.astype(">i8")))
    load_all(probe, tmp_path, tmp_path / "a.npy", tiles=3, axis=1)
    expected = content_hash(full)
    assert (
        probe.call("hash", of="array")["hash"]
        == expected
        == probe.call("hash", of="dataset")["hash"]
    )
    others = [full.reshape(500, 100), full.view("u8"), numpy.where(full == 49999, 0, full)]
    for other in others:
        numpy.save(tmp_path / "a.npy", other)
        probe.call("open", path=str(tmp_path / "a.npy"))
        assert probe.call("hash", of="dataset")["hash"] == content_hash(other) != expected


def test_saves_that_are_refused_leave_nothing(probe, tmp_path):
    ready(probe, tmp_path)
    before = sorted(p.name for p in tmp_path.iterdir())
    (tmp_path / "a_file").write_bytes(b"x")
    for arguments in (
        {"path": ""},
        {"path": "x.npy", "format": "hdf6"},
        {"path": "x.npy", "shards": -1},
        {"path": "x.npy", "order": "X"},
        {"path": "x.npy", "byte_order": "!"},
        {"path": "x.npy", "descr": "[('a', '<f4')]"},
        {"path": "x.npy", "descr": "no literal ("},
        {"path": "a_file/x.npy"},
    ):
        path = str(tmp_path / arguments["path"]) if arguments["path"] else ""
        check_error(
            probe.refused("save", **{**arguments, "path": path}),
            ("invalid_argument", "unsupported", "mismatch", "corrupt", "io", "exists", "not_found"),
        )
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*before, "a_file"])


def test_save_to_a_full_disk_leaves_nothing(new_probe, tmp_path):
    """A limit on the size of files stands for a full disk: EFBIG in the middle of the data."""
    full = numpy.zeros((1000, 1000), "f8")
    (tmp_path / "values").write_bytes(full.tobytes())
    own = new_probe(prefix=["bash", "-c", "trap '' XFSZ; ulimit -f 4000; exec \"$0\""])
    own.batch(
        [
            {"do": "context", "threads": 2},
            {"do": "tiling", "kind": "even", "shape": [1000, 1000], "tiles": 2},
            {"do": "array", "dtype": "<f8"},
            {"do": "fill", "path": str(tmp_path / "values")},
        ]
    )
    for arguments in ({"path": "a.npy"}, {"path": "b", "shards": 1}, {"path": "c/d/e.raw"}):
        check_error(
            own.refused("save", **{**arguments, "path": str(tmp_path / arguments["path"])}), "io"
        )
    assert (
        not list(tmp_path.rglob("*.npy"))
        and not list(tmp_path.rglob("*.raw"))
        and not (tmp_path / "b").exists()
    )
    assert {p.name for p in tmp_path.iterdir()} <= {"values", "c"}
