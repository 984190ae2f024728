# verify after something happened to the files of an open dataset: each kind of damage, all of them
# at once, in the order of files; compare and explain at their edges.
#
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import shutil
import tempfile

import numpy
import pytest

from files import save_shards
from probe import check_error, check_style
from test_bad_input import can_run

SIZES, CHECKSUMS, DECODE = 0, 1, 2


def shards(tmp_path, count=8, rows=100):
    rng = numpy.random.default_rng(5)
    return save_shards(tmp_path / "s", [rng.random((rows, 16)) for _ in range(count)])


def make_short(path):
    os.truncate(path, path.stat().st_size - 8)


def make_long(path):
    with open(path, "ab") as file:
        file.write(b"x")


def write_over(path):
    """Same size, other content, later."""
    data = path.read_bytes()
    stat = path.stat()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000))


def put_another(path):
    new = path.with_name(".new")
    shutil.copy2(path, new)
    new.rename(path)


def put_folder(path):
    path.unlink()
    path.mkdir()


DAMAGE = {
    "missing": (lambda path: path.unlink(), "not_found", "could not open"),
    "short": (make_short, "changed", "now"),
    "long": (make_long, "changed", "now"),
    "written": (write_over, "changed", "written to"),
    "replaced": (put_another, "changed", "replaced"),
    "folder": (put_folder, ("unsupported", "changed"), "shard_"),
}


def check_problem(problem, path, status, says):
    assert problem["status"] in ((status,) if isinstance(status, str) else status), problem
    assert pathlib.Path(problem["path"]) == path
    assert path.name in problem["message"] and says in problem["message"]
    check_style({**problem, "hint": ""})


@pytest.mark.parametrize("level", [SIZES, CHECKSUMS, DECODE])
@pytest.mark.parametrize("kind", DAMAGE)
def test_verify_names_one_damaged_file(probe, tmp_path, kind, level):
    paths = shards(tmp_path)
    probe.call("open", path=str(tmp_path / "s"))
    damage, status, says = DAMAGE[kind]
    damage(paths[3])
    answer = probe.call("verify", level=level)
    assert (
        answer["files"] == answer["chunks"] == 8 and answer["count"] == len(answer["problems"]) == 1
    )
    check_problem(answer["problems"][0], paths[3], status, says)
    assert answer["status"] == answer["problems"][0]["status"]
    assert answer["bytes"] == (7 * 100 * 16 * 8 if level == DECODE else 0)


@pytest.mark.parametrize("level", [SIZES, DECODE])
@pytest.mark.parametrize("threads", [1, 4])
def test_verify_names_all_damage_in_the_order_of_files(probe, tmp_path, level, threads):
    paths = shards(tmp_path, count=1500, rows=3)
    probe.batch(
        [
            {"do": "context", "threads": threads, "max_open_files": 50},
            {"do": "open", "path": str(tmp_path / "s")},
        ]
    )
    damaged = {}
    for number, kind in zip((0, 7, 8, 512, 1023, 1024, 1499), [*DAMAGE, "missing"]):
        DAMAGE[kind][0](paths[number])
        damaged[number] = DAMAGE[kind][1:]
    answer = probe.call("verify", level=level)
    assert [problem["path"] for problem in answer["problems"]] == [
        str(paths[number]) for number in damaged
    ]
    for problem, number in zip(answer["problems"], damaged):
        check_problem(problem, paths[number], *damaged[number])
    assert (
        answer["status"] == "not_found"
        and answer["count"] == len(damaged)
        and answer["files"] == 1500
    )
    assert answer["bytes"] == ((1500 - len(damaged)) * 3 * 16 * 8 if level == DECODE else 0)


def test_verify_names_unreadable_files(new_probe):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tegula-unreadable-"))
    prefix = []
    try:
        folder.chmod(0o755)
        paths = save_shards(folder, [numpy.ones((2, 2))] * 5)
        for path in paths:
            path.chmod(0o644)
        if os.geteuid() == 0:
            if not shutil.which("setpriv"):
                pytest.skip(
                    "root may read everything, and setpriv is missing to become another user"
                )
            prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        if not can_run(prefix):
            pytest.skip("another user may not run the probe from where it was built")
        own = new_probe(prefix=prefix)
        own.batch([{"do": "context", "threads": 2}, {"do": "open", "path": str(folder)}])
        for number in (1, 4):
            paths[number].chmod(0)
        answer = own.call("verify", level=DECODE)
        assert [(problem["status"], problem["path"]) for problem in answer["problems"]] == [
            ("permission", str(paths[1])),
            ("permission", str(paths[4])),
        ]
    finally:
        shutil.rmtree(folder)


def test_verify_reads_in_the_order_of_the_file(probe, tmp_path):
    """A Fortran file of the other byte order: read once, straight, with nothing staged."""
    array = numpy.asfortranarray(numpy.arange(3000 * 700, dtype=">i4").reshape(3000, 700))
    numpy.save(tmp_path / "a.npy", array)
    probe.call("open", path=str(tmp_path / "a.npy"))
    answer = probe.call("verify", level=DECODE)
    assert answer["status"] == "ok" and answer["bytes"] == array.nbytes
    assert (
        answer["statistics"]["bytes_read"] == answer["statistics"]["direct_bytes"] == array.nbytes
    )


def test_verify_of_an_array_larger_than_a_window(probe, tmp_path):
    path = tmp_path / "a.bin"
    with open(path, "wb") as file:
        file.truncate(200_000_000)
    probe.call("open", path=str(path), dtype="f8", row_shape=[1000], row_gap=0)
    answer = probe.call("verify", level=DECODE)
    assert answer["bytes"] == answer["statistics"]["bytes_read"] == 200_000_000


def test_verify_can_be_stopped(probe, tmp_path):
    shards(tmp_path)
    probe.call("open", path=str(tmp_path / "s"))
    check_error(probe.refused("verify", level=DECODE, cancel_after=0), "cancelled")
    check_error(probe.refused("verify", level=SIZES, cancel_after=0), "cancelled")
    assert probe.call("verify", level=DECODE, cancel_after=1000)["status"] == "ok"


def test_verify_of_empty_and_scalar(probe, tmp_path):
    for name, array in (("empty", numpy.zeros((0, 3))), ("scalar", numpy.array(2.5))):
        numpy.save(tmp_path / (name + ".npy"), array)
        probe.call("open", path=str(tmp_path / (name + ".npy")))
        answer = probe.call("verify", level=DECODE)
        assert (answer["status"], answer["files"], answer["bytes"]) == ("ok", 1, array.nbytes)


def test_verify_refuses_a_level_that_there_is_not(probe, tmp_path):
    numpy.save(tmp_path / "a.npy", numpy.ones(3))
    probe.call("open", path=str(tmp_path / "a.npy"))
    check_error(probe.refused("verify", level=3), "invalid_argument", ["level"])


# ---- compare -------------------------------------------------------------------------------------


def compare(probe, a, b, flags=0):
    return probe.batch(
        [{"do": "open", **a}, {"do": "open", "other": True, **b}, {"do": "compare", "flags": flags}]
    )[-1]


def saved(tmp_path, name, array):
    numpy.save(tmp_path / name, array)
    return {"path": str(tmp_path / name)}


def test_compare_of_different_shapes_and_dtypes_reads_nothing(probe, tmp_path):
    a = saved(tmp_path, "a.npy", numpy.zeros((3, 4), "f4"))
    for array, texts in (
        (numpy.zeros((4, 3), "f4"), ("(3, 4)", "(4, 3)")),
        (numpy.zeros(12, "f4"), ("(3, 4)", "(12,)")),
        (numpy.zeros((3, 4), "f8"), ("<f4", "<f8")),
        (numpy.zeros((3, 4), "M8[s]"), ("<f4", "<M8[s]")),
    ):
        answer = compare(probe, a, saved(tmp_path, "b.npy", array))
        assert (answer["equal"], answer["index"]) == (False, None)
        assert (answer["a"], answer["b"]) == texts
        assert all(text in answer["reason"] for text in texts)
        assert answer["statistics"]["reads"] == 0


def test_compare_of_bools_takes_any_byte_for_true(probe, tmp_path):
    a = saved(tmp_path, "a.npy", numpy.array([1, 0, 1], "?"))
    (tmp_path / "b.bin").write_bytes(bytes([7, 0, 255]))
    assert compare(probe, a, {"path": str(tmp_path / "b.bin"), "dtype": "?", "row_shape": []})[
        "equal"
    ]
    (tmp_path / "b.bin").write_bytes(bytes([7, 0, 0]))
    answer = compare(probe, a, {"path": str(tmp_path / "b.bin"), "dtype": "?", "row_shape": []})
    assert (answer["index"], answer["a"], answer["b"]) == ([2], "True", "False")


def test_compare_of_bfloat16_values(probe, tmp_path):
    for name, words in (
        ("a", [0x7FC0, 0x8000, 0x3F80]),
        ("b", [0xFFC1, 0x0000, 0x3F80]),
        ("c", [0x7FC0, 0x8000, 0x3F81]),
    ):
        (tmp_path / (name + ".bin")).write_bytes(numpy.array(words, "<u2").tobytes())
    a, b, c = (
        {"path": str(tmp_path / (name + ".bin")), "dtype": "bfloat16", "row_shape": []}
        for name in "abc"
    )
    assert compare(probe, a, b, 1)["equal"]
    assert compare(probe, a, b)["index"] == [0]
    answer = compare(probe, b, c, 1)
    assert (answer["index"], answer["a"], float(answer["b"])) == ([2], "1", 1.0078125)


def test_compare_of_records_with_other_descriptions(probe, tmp_path):
    a = saved(tmp_path, "a.npy", numpy.zeros(3, [("x", "<i4")]))
    answer = compare(probe, a, saved(tmp_path, "b.npy", numpy.zeros(3, [("x", ">i4")])))
    assert not answer["equal"] and answer["index"] is None and "description" in answer["reason"]
    (tmp_path / "c.bin").write_bytes(bytes(12))
    assert compare(probe, a, {"path": str(tmp_path / "c.bin"), "dtype": "V4", "row_shape": []})[
        "equal"
    ], "raw bytes have no description"


def test_compare_finds_the_first_of_many_in_a_large_array(probe, tmp_path):
    rng = numpy.random.default_rng(1)
    array = rng.integers(0, 100, (6000, 1003), "i4")
    a = saved(tmp_path, "a.npy", array)
    for place in (
        0,
        4_194_303,
        4_194_304,
        array.size - 1,
        *map(int, rng.integers(0, array.size, 4)),
    ):
        other = numpy.asfortranarray(array) if place % 2 else array.astype(">i4")
        for later in (place, min(array.size - 1, place + 999_999), array.size - 1):
            other[numpy.unravel_index(later, array.shape)] += 1
        answer = compare(probe, a, saved(tmp_path, "b.npy", other))
        index = numpy.unravel_index(place, array.shape)
        assert answer["index"] == list(map(int, index))
        assert (int(answer["a"]), int(answer["b"])) == (array[index], other[index])


def test_compare_says_what_could_not_be_read(probe, tmp_path):
    paths = shards(tmp_path)
    where = {"path": str(tmp_path / "s")}
    probe.batch([{"do": "open", **where}, {"do": "open", "other": True, **where}])
    make_short(paths[5])
    check_error(probe.refused("compare"), ("changed", "short_file"), [paths[5].name], paths[5])
    check_error(probe.refused("compare", cancel_after=0), "cancelled")
    check_error(probe.refused("compare", flags=2), "invalid_argument", ["flags"])


# ---- explain -------------------------------------------------------------------------------------


def test_explain_of_more_than_there_is_memory_for(probe, tmp_path):
    path = tmp_path / "huge.bin"
    with open(path, "wb") as file:
        file.truncate(1 << 42)
    shape = [1 << 20, 1 << 20]
    open_it = {"do": "open", "path": str(path), "dtype": "f4", "shape": shape}
    tiling = {"do": "tiling", "kind": "even", "shape": shape, "tiles": 1000, "ranks": 1000}
    plan = probe.batch([open_it, tiling, {"do": "explain"}])[-1]["plan"]
    assert plan["bytes"] == sum(tile["bytes"] for tile in plan["tiles"]) == 1 << 42
    assert [tile["rank"] for tile in plan["tiles"]] == list(range(len(plan["tiles"])))
    assert plan["reads"] == sum(tile["reads"] for tile in plan["tiles"]) >= (1 << 42) // (8 << 20)


@pytest.mark.parametrize(
    "rows,columns,width", [(32768, 192, 128), (6000, 600, 200), (6000, 5000, 1700)]
)
def test_explain_of_columns(probe, tmp_path, rows, columns, width):
    """A part of each row: the gap behind it is read over, or skipped when it is long. One request
    scatters to at most 1024 places: with short gaps a step takes several."""
    path = tmp_path / "wide.bin"
    with open(path, "wb") as file:
        file.truncate(rows * columns * 8)
    probe.call("context", threads=1)
    probe.call("open", path=str(path), dtype="f8", row_shape=[columns])
    tiling = {
        "do": "tiling",
        "kind": "grid",
        "shape": [rows, columns],
        "tile": [rows, width],
        "ranks": -(-columns // width),
    }
    plan = probe.batch([tiling, {"do": "explain"}])[-1]["plan"]
    moved = []
    for tile in plan["tiles"]:
        read = probe.call(
            "read", dtype="f8", box=tile["box"], layout={"axes": [0, 1]}, path=str(tmp_path / "box")
        )
        moved.append(read["statistics"])
    assert [tile["reads"] for tile in plan["tiles"]] == [
        statistics["reads"] for statistics in moved
    ]
    assert plan["reads"] == sum(tile["reads"] for tile in plan["tiles"])
    first = moved[0]
    assert first["direct_bytes"] == rows * width * 8, "straight into place"
    assert {
        192: first["reads"] > first["steps"],
        600: first["reads"] == first["steps"],
        5000: first["reads"] == rows,
    }[columns]


@pytest.mark.parametrize(
    "shape,box,context,most",
    [
        # a component of a field: what lies between its elements is read over
        ((3, 128, 128, 64), [1, None, None, None], {"threads": 2}, 256),
        # 12 bytes of each column, but no more requests than columns
        ((3, 128, 128, 64), [None, 5, None, None], {"threads": 2}, 128 * 64),
        # too little for long requests and whole lines
        (
            (3, 121, 2, 2120),
            [None] * 4,
            {"threads": 4, "staging_bytes": 200_000},
            6_150_000 // 4096,
        ),
        # short axes at the end
        ((60_000, 5, 4, 3, 2), [None] * 5, {"threads": 2}, 30_000_000 // 16384),
        # cut: short gaps between requests are others'
        ((6_000, 5, 4, 3, 2), [None] * 5, {"threads": 2, "staging_bytes": 2_400_000}, 300),
        ((2, 3, 4, 5, 60_000), [None] * 5, {"threads": 2}, 30_000_000 // 16384),  # at the start
    ],
)
def test_reads_of_fortran_files(probe, tmp_path, shape, box, context, most):
    """In memory the axes lie the other way round,
    and there is more than a step holds: requests stay long."""
    array = numpy.arange(numpy.prod(shape), dtype="f4").reshape(shape)
    numpy.save(tmp_path / "a.npy", numpy.asfortranarray(array))
    box = [[0, n] if k is None else [k, k + 1] for k, n in zip(box, shape, strict=True)]
    probe.batch([{"do": "context", **context}, {"do": "open", "path": str(tmp_path / "a.npy")}])
    read = probe.call(
        "read",
        dtype="f4",
        box=box,
        layout={"axes": list(range(len(shape)))},
        path=str(tmp_path / "box"),
    )
    wanted = array[tuple(slice(*edges) for edges in box)]
    assert (numpy.fromfile(tmp_path / "box", "f4").reshape(wanted.shape) == wanted).all()
    assert read["statistics"]["reads"] <= most
    assert read["statistics"]["bytes_read"] <= array.nbytes + 4096, (
        "what other blocks want is not read twice"
    )


def test_reads_of_two_halves_of_fortran_components(probe, tmp_path):
    """Together they span all of the file, one by one half of it: between their elements lies
    nothing that is wanted."""
    rows = 200_000
    array = numpy.arange(2 * rows * 6, dtype="f4").reshape(2, rows, 6)
    numpy.save(tmp_path / "a.npy", numpy.asfortranarray(array))
    first, second, all_columns = [0, rows // 2], [rows // 2, rows], [0, 6]
    boxes = [
        [[0, 1], second, all_columns],
        [[1, 2], first, all_columns],
        [[0, 1], first, all_columns],
        [[1, 2], second, all_columns],
    ]
    tiling = {
        "do": "tiling",
        "kind": "custom",
        "list": True,
        "shape": list(array.shape),
        "boxes": boxes,
        "ranks": 2,
    }
    plan = probe.batch(
        [
            {"do": "context", "threads": 2},
            {"do": "open", "path": str(tmp_path / "a.npy")},
            tiling,
            {"do": "explain"},
        ]
    )[-1]["plan"]
    assert [tile["rank"] for tile in plan["tiles"]] == [0, 0, 1, 1] and plan["reads"] < 500
    numpy.save(tmp_path / "b.npy", array)
    hashes = [
        probe.batch([{"do": "open", "path": str(tmp_path / name)}, {"do": "hash"}])[-1]["hash"]
        for name in ("a.npy", "b.npy")
    ]
    assert hashes[0] == hashes[1]


def test_explain_of_many_tiles_that_lie_side_by_side(probe, tmp_path):
    """1500 tiles to a row, but one run in the file and in memory:
    they count as one place of a request."""
    path = tmp_path / "rows.bin"
    with open(path, "wb") as file:
        file.truncate(20 * 192_000 * 8)
    open_it = {"do": "open", "path": str(path), "dtype": "f8", "row_shape": [192_000]}
    tiling = {"do": "tiling", "kind": "grid", "shape": [20, 192_000], "tile": [20, 128]}
    commands = [
        {"do": "context", "threads": 1},
        open_it,
        tiling,
        {"do": "explain"},
        {"do": "array", "dtype": "f8"},
        {"do": "load"},
    ]
    plan, _, moved = probe.batch(commands)[-3:]
    assert plan["plan"]["reads"] == moved["statistics"]["reads"] == moved["statistics"]["steps"]
    assert moved["statistics"]["direct_bytes"] == 20 * 192_000 * 8
    assert {tile["reads"] for tile in plan["plan"]["tiles"]} == {10}, "two rows of 1.5 MB to a step"


def test_explain_needs_a_tiling_of_the_same_shape(probe, tmp_path):
    numpy.save(tmp_path / "a.npy", numpy.ones((3, 4)))
    probe.batch(
        [
            {"do": "open", "path": str(tmp_path / "a.npy")},
            {"do": "tiling", "kind": "even", "shape": [4, 3]},
        ]
    )
    check_error(probe.refused("explain"), "mismatch", ["(4, 3)", "(3, 4)"])


def test_explain_of_names_with_odd_characters(probe, tmp_path):
    folder = tmp_path / 'a "b"\\\n\t\x01é'
    folder.mkdir()
    numpy.save(folder / "x.npy", numpy.ones((3, 4)))
    probe.batch(
        [{"do": "open", "path": str(folder)}, {"do": "tiling", "kind": "even", "shape": [3, 4]}]
    )
    plan = probe.call("explain")["plan"]
    assert plan["tiles"][0]["sources"] == [{"file": str(folder / "x.npy"), "rows": [0, 3]}]
