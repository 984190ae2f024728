# explain, verify and compare on random layouts: plans agree with a computation of their own and
# with what a load does; equal arrays compare equal whatever their files look like; a changed
# element is found where numpy finds it.
#
# SPDX-License-Identifier: Apache-2.0
import os

import numpy
import pytest

import generate_arrays as gen
import property_runner
from generate_arrays import context_command
from test_property_load import open_command, write_npy, write_raw

# so that a load makes more than were planned
CUTS_REQUESTS = os.environ.get("TEGULA_IO") in ("io_uring", "direct")
FLOATS = ["f2", "f4", "f8", "c8", "c16"]


def write_any(rng, folder, array):
    folder.mkdir()
    raw = array.dtype.names is None and rng.random() < 0.4
    return open_command(rng, folder, *(write_raw if raw else write_npy)(rng, folder, array))


def expected_sources(box, files):
    """Which rows of which files a box takes, by going through all files."""
    if any(lo == hi for lo, hi in box):
        return []
    lo, hi = box[0] if box else [0, 1]
    sources = []
    for file in files:
        start, end = file["rows"]
        rows = [max(lo, start) - start, min(hi, end) - start]
        if rows[0] < rows[1]:
            sources.append({"file": file["path"], "rows": rows})
    return sources


def explain_case(probe, rng, folder):
    dtype = gen.random_dtype(rng)
    array = gen.random_array(rng, gen.random_shape(rng, int(rng.choice([3000, 300000]))), dtype)
    command = write_any(rng, folder / "data", array)
    tiling, _ = gen.random_tiling(rng, list(array.shape))
    tiling["ranks"] = 1 if rng.random() < 0.5 else int(rng.integers(2, 6))
    alone = {**tiling, "ranks": 1}
    commands = [
        context_command(rng),
        command,
        {"do": "files", "count": 100},
        alone,
        {"do": "explain"},
        {"do": "array", "dtype": gen.dtype_text(dtype)},
        {"do": "load"},
        tiling,
        {"do": "explain"},
    ]
    commands[2]["count"] = probe.batch(commands[:2])[1]["files"]
    _, info, files, tiles, plan, _, moved, ranked, ranked_plan = probe.batch(commands)
    plan, ranked_plan = plan["plan"], ranked_plan["plan"]
    if not CUTS_REQUESTS:
        assert plan["reads"] == moved["statistics"]["reads"], "the plan says what the load does"
    for plan, ranks, tiles in ((plan, 1, tiles), (ranked_plan, tiling["ranks"], ranked)):  # noqa: B020
        assert (plan["shape"], plan["dtype"]) == (info["shape"], info["dtype"])
        assert (plan["files"], plan["bytes"], plan["ranks"]) == (info["files"], array.nbytes, ranks)
        assert [(tile["box"], tile["rank"]) for tile in plan["tiles"]] == [
            (tile["box"], tile["rank"]) for tile in tiles["tiles"]
        ]
        for tile in plan["tiles"]:
            assert tile["bytes"] == gen.in_box(array, tile["box"]).size * dtype.itemsize
            assert tile["sources"] == expected_sources(tile["box"], files["files"])
            assert (tile["reads"] > 0) == (tile["bytes"] > 0) and tile["reads"] <= plan["reads"]
        # a rank whose tiles lie apart may read a request between them
        assert ranks > 1 or sum(tile["reads"] for tile in plan["tiles"]) >= plan["reads"]
        assert len(plan["tiles"]) > 1 or plan["tiles"][0]["reads"] == plan["reads"]

    check_lone_tiles(probe, folder, ranked_plan, dtype)


def check_lone_tiles(probe, folder, plan, dtype):
    """A rank with one tile reads as a read of that box does."""
    ranks = [tile["rank"] for tile in plan["tiles"]]
    for tile in plan["tiles"]:
        if ranks.count(tile["rank"]) == 1 and tile["bytes"] > 0:
            layout = {"axes": list(range(len(tile["box"])))}
            read = probe.call(
                "read",
                dtype=gen.dtype_text(dtype),
                box=tile["box"],
                layout=layout,
                path=str(folder / "box"),
            )
            assert CUTS_REQUESTS or read["statistics"]["reads"] == tile["reads"]


@pytest.mark.parametrize("group", range(property_runner.GROUPS))
def test_explain_says_what_a_load_does(shared_probe, group):
    property_runner.run(
        21, group, 0.08, lambda rng, folder: explain_case(shared_probe, rng, folder)
    )


def bits(array):
    """Each element as a row of bytes."""
    return numpy.frombuffer(gen.plain_bytes(array), "u1").reshape(array.size, array.dtype.itemsize)


def first_difference(a, b, values):
    """Index in C order of the first element that numpy says is different, or None."""
    if values and a.dtype.kind in "fc":
        parts = (a.real, a.imag), (b.real, b.imag)
        different = numpy.zeros(a.shape, bool)
        for x, y in zip(*parts) if a.dtype.kind == "c" else [(a, b)]:
            different |= ~((x == y) | (numpy.isnan(x) & numpy.isnan(y)))
        different = different.reshape(-1)
    else:
        different = (bits(a) != bits(b)).any(axis=1)
    where = numpy.flatnonzero(different)
    return list(map(int, numpy.unravel_index(where[0], a.shape))) if len(where) else None


def change(rng, array):
    """A copy with a few changes: any bit, another NaN, another sign."""
    copy = numpy.frombuffer(bytearray(gen.plain_bytes(array)), array.dtype).reshape(array.shape)
    flat = copy.reshape(-1)
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(flat.size))
        if array.dtype.kind == "b":
            flat[place] = not flat[place]
        elif array.dtype.kind in "fc" and rng.random() < 0.7:
            flat[place] = -flat[place] if rng.random() < 0.5 else numpy.nan
        else:
            item = flat.view("u1").reshape(flat.size, -1) if array.dtype.names is None else None
            raw = (
                item
                if item is not None
                else flat.view("V%d" % array.dtype.itemsize).view("u1").reshape(flat.size, -1)
            )
            raw[place, rng.integers(raw.shape[1])] ^= 1 << int(rng.integers(8))
    return copy


def special(rng, array):
    """Zeros of both signs and NaNs in a float array."""
    out = array.copy()
    flat = out.reshape(-1)
    for value in (0.0, -0.0, numpy.nan):
        flat[rng.random(flat.size) < 0.3] = value
    return out


def compare_case(probe, rng, folder):
    dtype = numpy.dtype(FLOATS[rng.integers(5)]) if rng.random() < 0.5 else gen.random_dtype(rng)
    array = gen.random_array(
        rng, gen.random_shape(rng, int(rng.choice([3000, 300000], p=[0.9, 0.1]))), dtype
    )
    if dtype.kind in "fc":
        array = special(rng, array)
    same = array.size == 0 or rng.random() < 0.4
    other = array if same else change(rng, array)
    commands = [
        context_command(rng),
        write_any(rng, folder / "a", array),
        {**write_any(rng, folder / "b", other), "other": True},
        {"do": "compare"},
        {"do": "compare", "flags": 1},
    ]
    for values, answer in enumerate(probe.batch(commands)[-2:]):
        expected = first_difference(array, other, bool(values))
        assert answer["equal"] == (expected is None)
        assert answer["index"] == expected
        if expected is None:
            assert answer["a"] == answer["b"] == answer["reason"] == ""
            assert answer["statistics"]["bytes_read"] >= 2 * array.nbytes
        else:
            assert "differs" in answer["reason"] and "(" in answer["reason"]
            # numpy makes no text of numbers beyond Unicode, of which a changed bit makes some
            if dtype.kind != "U":
                check_texts(answer, array[tuple(expected)], other[tuple(expected)])


def check_texts(answer, a, b):
    for text, value in ((answer["a"], a), (answer["b"], b)):
        kind = value.dtype.kind
        if kind in "iu":
            assert int(text) == value
        elif kind == "b":
            assert text == str(bool(value))
        elif kind in "Mm":
            number = int(value.astype("i8"))
            assert text == ("NaT" if number == -(2**63) else str(number))
        elif kind == "f":
            with numpy.errstate(over="ignore"):
                read = (
                    numpy.array(text)
                    .astype("f4" if value.dtype.itemsize < 8 else "f8")
                    .astype(value.dtype)
                )
            assert read.tobytes() == value.tobytes() or (numpy.isnan(read) and numpy.isnan(value))
        elif kind == "c" and numpy.isfinite(value):
            assert numpy.array(complex(text)).astype(value.dtype) == value
        elif kind == "V":
            data = gen.plain_bytes(value.reshape(1)).hex()
            assert text == "0x" + data if len(data) < 100 else text.startswith("0x" + data[:100])


@pytest.mark.parametrize("group", range(property_runner.GROUPS))
def test_compare_finds_what_numpy_finds(shared_probe, group):
    property_runner.run(22, group, 0.2, lambda rng, folder: compare_case(shared_probe, rng, folder))


def verify_case(probe, rng, folder):
    dtype = gen.random_dtype(rng)
    array = gen.random_array(rng, gen.random_shape(rng, int(rng.choice([3000, 300000]))), dtype)
    command = write_any(rng, folder / "data", array)
    info = probe.batch([context_command(rng), command])[1]
    for level in (0, 1, 2):
        answer = probe.call("verify", level=level)
        assert (answer["status"], answer["problems"], answer["count"]) == ("ok", [], 0)
        assert (answer["files"], answer["chunks"]) == (info["files"], info["files"])
        assert answer["bytes"] == (array.nbytes if level == 2 else 0)
        assert answer["statistics"]["staged_bytes"] == 0 or level == 2
        assert answer["statistics"]["bytes_read"] >= answer["bytes"]


@pytest.mark.parametrize("group", range(property_runner.GROUPS))
def test_verify_reads_all_of_what_is_in_order(shared_probe, group):
    property_runner.run(23, group, 0.1, lambda rng, folder: verify_case(shared_probe, rng, folder))
