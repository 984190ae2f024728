# What is saved as HDF5, h5py (and other people's tools) read: every dtype, layout, chain of codecs,
# shape, name, attribute and tiling.
#
# SPDX-License-Identifier: Apache-2.0
#
# TEGULA_OTHER_H5PY: a folder with a newer h5py, which judges too; the system's own Python with an
# older one, where it has it.
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time

import h5py
import numpy
import pytest

pytest.importorskip("hdf5plugin")

import generate_arrays as gen
import hdf5_files as h5
from probe import check_error
from saving import attribute, check, check_file, even, grid, keep_all, left, put

DTYPES = [
    "?",
    "i1",
    "i2",
    "i4",
    "i8",
    "u1",
    "u2",
    "u4",
    "u8",
    "f2",
    "f4",
    "f8",
    "c8",
    "c16",
    "S1",
    "S7",
    "U3",
    "M8[s]",
    "M8[25us]",
    "m8[ns]",
    "m8[D]",
    "V1",
    "V12",
]
LAYOUTS = {
    "contiguous": {"layout": "contiguous"},
    "chunked": {"chunk": [5, 4]},
    "encoded": {"chunk": [5, 4], "codec": "shuffle,deflate"},
    "virtual": {"layout": "virtual"},
}


def numbers(seed, shape, dtype="<i4"):
    return gen.random_array(numpy.random.default_rng(seed), shape, numpy.dtype(dtype))


def walk(shape, dtype="<i4"):
    """Neighbours are alike: codecs make it shorter."""
    return numpy.cumsum(numpy.random.default_rng(3).integers(-3, 4, shape), axis=-1).astype(dtype)


# ---- dtypes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_dtypes(probe, tmp_path, layout, order):
    arrays = {}
    for dtype in DTYPES:
        array = numbers(len(arrays), (11, 9), dtype)
        path = tmp_path / ("%d.h5" % len(arrays))
        put(probe, tmp_path, array, *even(array.shape, 0, 3))
        probe.call("save", path=str(path), dataset="x", byte_order=order, **LAYOUTS[layout])
        with h5py.File(path) as file:
            check(file["x"], array, order)
            assert file["x"].is_virtual == (layout == "virtual")
        got, info = load(probe, tmp_path, path, "x")
        assert got.tobytes() == array.tobytes() and info["dtype"] == gen.dtype_text(array.dtype)
        arrays[dtype] = array


def load(probe, tmp_path, path, dataset):
    info = probe.call("open", path=str(path), dataset=dataset)
    dumped = probe.batch(
        [
            {"do": "tiling", "kind": "even", "shape": info["shape"], "axis": 0, "tiles": 2},
            {"do": "array", "dtype": info["dtype"]},
            {"do": "load"},
            {"do": "dump", "path": str(tmp_path / "dump")},
        ]
    )[-1]
    out = h5.array_of(tmp_path, dumped, info)
    (tmp_path / "dump").unlink()
    return out, info


@pytest.mark.parametrize("layout", LAYOUTS)
def test_bfloat16_loads_back_and_h5py_reads_its_values(probe, tmp_path, layout):
    # no NaN: its payload may change in a conversion
    bits = numpy.random.default_rng(1).integers(0, 0x7F80, (11, 9)).astype("<u2")
    for order in "<>":
        path = tmp_path / ("%s.h5" % ord(order))
        put(probe, tmp_path, bits, *even(bits.shape, 0, 2), dtype="bfloat16")
        probe.call("save", path=str(path), dataset="x", byte_order=order, **LAYOUTS[layout])
        got, info = load(probe, tmp_path, path, "x")
        assert info["dtype"] == "bfloat16" and got.tobytes() == bits.tobytes()
        with h5py.File(path) as file:
            values = numpy.zeros(bits.shape, "<f4")
            file["x"].read_direct(values)
        assert values.tobytes() == (bits.astype("<u4") << 16).view("<f4").tobytes()


# ---- codecs --------------------------------------------------------------------------------------

CHAINS = [
    "",
    "shuffle",
    "fletcher32",
    "deflate:0",
    "deflate:1",
    "deflate",
    "gzip:9",
    "zstd",
    "zstd:19",
    "lz4",
    "lz4:64",
    "lzf",
    "bitshuffle",
    "bitshuffle:16",
    "bitshuffle-lz4",
    "bitshuffle-zstd:9:128",
    "blosc",
    "blosc:zstd:7:bitshuffle",
    "blosc:zlib:1:noshuffle",
    "blosc2",
    "blosc2:zstd:3:bitshuffle",
    "shuffle,deflate:4",
    "shuffle,deflate,fletcher32",
    "fletcher32,shuffle,deflate",
    "shuffle,lzf",
    "shuffle,zstd:9",
    "bitshuffle,deflate:1",
    "deflate,deflate:9",
    "lzf,deflate,lzf",
    "shuffle,fletcher32,lz4",
    "zstd,lzf,fletcher32",
    "shuffle,bitshuffle,zstd",
    "lzf,shuffle,bitshuffle-lz4",
]
CHUNKS = {
    "whole": [23, 17],
    "edges": [7, 5],
    "one": [1, 1],
    "larger": [100, 1000],
    "row": [1, 17],
    "default": None,
}


@pytest.mark.parametrize("chain", CHAINS)
def test_codecs(probe, tmp_path, chain):
    arrays = [walk((23, 17)), numbers(5, (23, 17), "<f8")]
    members, expected = [], {}
    keep_all(probe, tmp_path, arrays)
    for number, array in enumerate(arrays):
        for name, chunk in CHUNKS.items():
            chosen = {"chunk": chunk} if chunk else {"layout": "chunked"}
            members.append(
                {"array": number, "dataset": "%s%d" % (name, number), "codec": chain, **chosen}
            )
            expected["%s%d" % (name, number)] = array
    answer = probe.ask({"do": "save_group", "path": str(tmp_path / "x.h5"), "members": members})
    if (
        "error" in answer
        and answer["error"]["status"] == "unsupported"
        and "this build has no" in answer["error"]["message"]
    ):
        pytest.skip(answer["error"]["message"])
    assert "error" not in answer, answer
    check_file(tmp_path / "x.h5", expected)
    with h5py.File(tmp_path / "x.h5") as file:
        for name in expected:
            chunk = CHUNKS[name[:-1]]
            assert file[name].chunks == (
                (23, 17) if chunk is None else tuple(min(a, b) for a, b in zip(chunk, (23, 17)))
            )


def test_chosen_chunks_are_whole_rows_of_some_megabytes(probe, tmp_path):
    for shape, chunk in [
        ((3000, 1000), (1048, 1000)),
        ((2, 3000000), (1, 1048576)),
        ((7,), (7,)),
        ((4, 2, 1 << 19), (1, 2, 1 << 19)),
    ]:
        array = numpy.zeros(shape, "<i4")
        array[-1] = 7
        put(probe, tmp_path, array)
        probe.call("save", path=str(tmp_path / "x.h5"), codec="zstd:1", overwrite=True)
        check_file(tmp_path / "x.h5", {"data": array})
        with h5py.File(tmp_path / "x.h5") as file:
            assert file["data"].chunks == chunk


def test_filters_in_the_file_are_those_that_were_asked_for(probe, tmp_path):
    put(probe, tmp_path, walk((40, 6)))
    probe.call(
        "save", path=str(tmp_path / "x.h5"), chunk=[8, 6], codec="shuffle,deflate:6,fletcher32"
    )
    with h5py.File(tmp_path / "x.h5") as file:
        assert (
            file["data"].shuffle
            and file["data"].compression == "gzip"
            and file["data"].compression_opts == 6
            and file["data"].fletcher32
        )
        assert file["data"].id.get_storage_size() < 40 * 6 * 4


# ---- shapes --------------------------------------------------------------------------------------

SHAPES = [
    (),
    (0,),
    (0, 4),
    (4, 0),
    (3, 0, 2),
    (1,),
    (1, 1, 1),
    (17,),
    (3, 5, 7),
    (2, 3, 2, 3, 2),
    *[(1,) * k + (2, 3) for k in range(6, 31, 4)],
]


@pytest.mark.parametrize("layout", ["contiguous", "chunked", "virtual"])
def test_shapes(probe, tmp_path, layout):
    for shape in SHAPES:
        array = numbers(len(shape), shape)
        path = tmp_path / ("s%d_%s.h5" % (len(shape), "_".join(map(str, shape))[-20:]))
        put(probe, tmp_path, array)
        command = {"path": str(path), "dataset": "x", "layout": layout}
        if shape == () and layout != "contiguous":
            check_error(probe.refused("save", **command), "unsupported", ["scalar"], path)
            assert not path.exists()
            continue
        probe.call("save", **command)
        check_file(path, {"x": array})
        got, info = load(probe, tmp_path, path, "x") if shape else (array, {"shape": []})
        assert info["shape"] == list(shape) and got.tobytes() == array.tobytes()


@pytest.mark.parametrize("layout", ["contiguous", "chunked", "virtual"])
def test_33_axes_are_refused(probe, tmp_path, layout):
    put(probe, tmp_path, numbers(1, (1,) * 31 + (2, 3)).reshape((1,) * 32 + (6,)))
    check_error(
        probe.refused("save", path=str(tmp_path / "x.h5"), layout=layout),
        "unsupported",
        ["33", "32"],
        tmp_path / "x.h5",
    )
    assert left(tmp_path) == []


def test_what_makes_no_sense_is_refused_before_anything_is_made(probe, tmp_path):
    put(probe, tmp_path, walk((23, 17)))
    path = str(tmp_path / "x.h5")
    for wrong, status, words in [
        ({"layout": "striped"}, "invalid_argument", ["striped"]),
        ({"order": "F"}, "unsupported", ["C order"]),
        ({"layout": "contiguous", "codec": "zstd"}, "unsupported", ["chunked"]),
        ({"layout": "virtual", "chunk": [1, 1]}, "unsupported", ["chunked"]),
        ({"layout": "virtual", "shards": 2, "format": "hdf5"}, "unsupported", ["shards"]),
        ({"chunk": [5]}, "invalid_argument", ["1 axes", "2"]),
        ({"chunk": [5, 0]}, "invalid_argument", ["0", "axis 1"]),
        ({"chunk": [-1, 5]}, "invalid_argument", ["-1", "axis 0"]),
        ({"codec": "lzma"}, "invalid_argument", ["lzma"]),
        ({"codec": "deflate:10"}, "invalid_argument", ["10"]),
        ({"dataset": ""}, "invalid_argument", []),
        ({"dataset": "/"}, "invalid_argument", []),
        ({"dataset": "a//b"}, "invalid_argument", ["a//b"]),
        ({"dataset": "a/"}, "invalid_argument", ["a/"]),
        ({"dataset": "./a"}, "invalid_argument", ["./a"]),
        ({"dataset": "a/../b"}, "invalid_argument", []),
        ({"dataset": ".."}, "invalid_argument", []),
        ({"dataset": "a/."}, "invalid_argument", []),
    ]:
        for more in ({}, {"overwrite": True}):
            error = probe.refused("save", path=path, **wrong, **more)
            assert error["status"] == status, (wrong, error)
            check_error(error, status, words)
            assert left(tmp_path) == [], wrong


# ---- names ---------------------------------------------------------------------------------------

NAMES = [
    "x",
    "/a/b/c",
    "a/b/d",
    "name with blanks",
    "%b",
    "%%",
    "100%d",
    "é/ü/日本語",
    "quote'\"",
    "tab\there",
    "a.b.",
    "..a",
    "-",
    "*",
    "a\\b",
    "$x",
    "long" * 200,
]


@pytest.mark.parametrize("existing", [False, True], ids=["new", "added"])
@pytest.mark.parametrize(
    "how",
    [
        {"layout": "contiguous"},
        {"layout": "chunked", "chunk": [4]},
        {"chunk": [4], "codec": "deflate"},
        {"layout": "virtual"},
        {"shards": 2, "format": "hdf5"},
    ],
    ids=lambda how: "_".join(map(str, how)) + how.get("layout", ""),
)
def test_records_in_every_layout(probe, tmp_path, how, existing):
    """As compounds; what HDF5 has no type for is refused before anything is made."""
    if (existing and how.get("layout") == "virtual") or (how.get("shards") and existing):
        pytest.skip("these replace what is there as a whole")
    kind = numpy.dtype([("a", "<f4"), ("b", "<i4"), ("c", ">f8")])
    records = numpy.zeros(9, kind)
    records["a"], records["b"], records["c"] = numpy.arange(9), numpy.arange(9), numpy.arange(9) / 4
    path = tmp_path / "x.h5"
    if existing:
        with h5py.File(path, "w") as file:
            file["old"] = 1
    before = path.read_bytes() if existing else None
    put(probe, tmp_path, records.view("V16"))
    error = probe.refused("save", path=str(path), dataset="new", descr="[('a', '<f16')]", **how)
    check_error(error, "unsupported", ["long double"])
    assert left(tmp_path) == (["x.h5"] if existing else []) and (
        not existing or path.read_bytes() == before
    )
    wrong = probe.refused("save", path=str(path), dataset="new", descr="[('a', '<f4')]", **how)
    check_error(wrong, "invalid_argument", ["4 bytes", "|V16"])
    probe.call("save", path=str(path), dataset="new", descr=repr(kind.descr), **how)
    found = []
    for one in sorted(path.iterdir()) if how.get("shards") else [path]:
        with h5py.File(one) as file:
            assert file["new"].dtype == kind
            found.append(file["new"][()])
    assert numpy.array_equal(numpy.concatenate(found), records)


@pytest.mark.parametrize("chunked", [False, True])
def test_names_of_datasets(probe, tmp_path, chunked):
    put(probe, tmp_path, walk((5, 4)))
    for name in NAMES:
        probe.call(
            "save",
            path=str(tmp_path / "x.h5"),
            dataset=name,
            **({"chunk": [2, 2]} if chunked else {}),
        )
    check_file(tmp_path / "x.h5", {name: walk((5, 4)) for name in NAMES})
    with h5py.File(tmp_path / "x.h5") as file:
        found = []
        file.visititems(
            lambda name, item: found.append(name) if isinstance(item, h5py.Dataset) else None
        )
        assert sorted(found) == sorted(name.lstrip("/") for name in NAMES)


@pytest.mark.parametrize(
    "stem", ["x", "%b", "a%b%d%%c", "name with blanks", "é", "-x", "a.b.c", "quote'"]
)
def test_names_of_virtual_files(probe, tmp_path, stem):
    array = walk((6, 4))
    for number, dataset in enumerate(["x", "%b", "g/%b%%/%d", "é"]):
        path = tmp_path / ("%s%d.h5" % (stem, number))
        put(probe, tmp_path, array, *even(array.shape, 0, 3))
        probe.call("save", path=str(path), dataset=dataset, layout="virtual")
        check_file(path, {dataset: array})
        assert load(probe, tmp_path, path, dataset)[0].tobytes() == array.tobytes()


# ---- fill values and attributes ------------------------------------------------------------------


def test_fill_values(probe, tmp_path):
    for dtype, value in [
        ("?", True),
        ("i1", -7),
        ("<i4", -70000),
        ("<u8", 2**63 + 5),
        ("<f2", 1.5),
        ("<f8", -0.0),
        ("<c8", 1 - 2j),
        ("S5", b"ab"),
    ]:
        array = numbers(2, (6, 4), dtype)
        fill = numpy.array(value, dtype)
        put(probe, tmp_path, array)
        for order in "<>":
            for layout in ("contiguous", "chunked"):
                probe.call(
                    "save",
                    path=str(tmp_path / "x.h5"),
                    byte_order=order,
                    layout=layout,
                    fill=fill.tobytes().hex(),
                    overwrite=True,
                )
                check_file(tmp_path / "x.h5", {"data": array}, order)
                with h5py.File(tmp_path / "x.h5") as file:
                    assert numpy.array(file["data"].fillvalue, dtype).tobytes() == fill.tobytes(), (
                        dtype,
                        order,
                    )


VALUES = {
    "bool": numpy.array(True),
    "bools": numpy.array([True, False]),
    "i1": numpy.array(-3, "i1"),
    "u8": numpy.array(2**63 + 1, "<u8"),
    "i4s": numpy.array([[1, -2, 3]], "<i4"),
    "f2": numpy.array(0.5, "<f2"),
    "f8": numpy.array([1.5, numpy.inf], "<f8"),
    "c16": numpy.array(1 + 2j, "<c16"),
    "none": numpy.zeros((0,), "<i4"),
    "big": numpy.arange(6000, dtype="<f8"),
    "fixed": numpy.array(b"abc", "S5"),
    "fixeds": numpy.array([b"a", b"", b"abcde"], "S5"),
}
TEXTS = {
    "text": "metre",
    "empty text": "",
    "utf8": "größer 日本",
    "texts": ["a", "", "größer"],
    "grid": [["a", "b"], ["c", "d"]],
}


@pytest.mark.parametrize("layout", ["contiguous", "chunked", "virtual"])
def test_attributes(probe, tmp_path, layout):
    put(probe, tmp_path, walk((6, 4)))
    given = [attribute(name, value) for name, value in VALUES.items() if name != "big"]
    given += [attribute(name, value, "str") for name, value in TEXTS.items()] + [
        attribute("null", None),
        attribute("größe", VALUES["f8"]),
    ]
    probe.call("save", path=str(tmp_path / "x.h5"), layout=layout, attributes=given)
    with h5py.File(tmp_path / "x.h5") as file:
        attributes = file["data"].attrs
        assert len(attributes) == len(given)
        for name, value in {
            **{k: v for k, v in VALUES.items() if k != "big"},
            "größe": VALUES["f8"],
        }.items():
            got = numpy.asarray(attributes[name], attributes.get_id(name).dtype)
            assert (got.dtype, got.shape, got.tobytes()) == (
                value.dtype,
                value.shape,
                value.tobytes(),
            ), name
        for name, value in TEXTS.items():
            assert numpy.asarray(attributes[name], object).tolist() == value, name
        assert isinstance(attributes["null"], h5py.Empty) and attributes["null"].dtype == "<f4"
        check(file["data"], walk((6, 4)))


def test_attributes_that_cannot_be(probe, tmp_path):
    put(probe, tmp_path, walk((6, 4)))
    for wrong in [
        {"name": "a", "type": "<f8", "shape": []},
        {"name": "a", "type": "compound", "shape": [1], "values": "00"},
        {"name": "a", "type": "str", "shape": [2]},
    ]:
        error = probe.refused("save", path=str(tmp_path / "x.h5"), attributes=[wrong])
        check_error(error, "unsupported", ['"a"'], tmp_path / "x.h5")
        assert left(tmp_path) == []


def test_large_attributes(probe, tmp_path):
    """Above 64 KiB they stand in dense storage, which files of the old kind have not: one or the
    other, and never half a file."""
    put(probe, tmp_path, walk((6, 4)))
    answer = probe.ask(
        {
            "do": "save",
            "path": str(tmp_path / "x.h5"),
            "attributes": [attribute("big", numpy.arange(20000, dtype="<f8"))],
        }
    )
    if "error" in answer:
        check_error(answer["error"], ("unsupported", "limit_exceeded"), ["big"], tmp_path / "x.h5")
        assert left(tmp_path) == []
    else:
        with h5py.File(tmp_path / "x.h5") as file:
            assert (file["data"].attrs["big"] == numpy.arange(20000)).all()


# ---- shards --------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"chunk": [3, 4]}, {"codec": "shuffle,deflate"}])
def test_shards(probe, tmp_path, options):
    array = walk((23, 9))
    for shards in (1, 4, 23, 50):
        folder = tmp_path / ("s%d" % shards)
        put(probe, tmp_path, array, *grid(array.shape, (5, 4)))
        probe.call("save", path=str(folder), format="hdf5", dataset="g/x", shards=shards, **options)
        names = left(folder)
        assert names == ["shard_%04d.h5" % k for k in range(min(shards, 23))]
        pieces = []
        for name in names:
            with h5py.File(folder / name) as file:
                pieces.append(file["g/x"][()])
        assert numpy.concatenate(pieces).tobytes() == array.tobytes()
        assert max(map(len, pieces)) - min(map(len, pieces)) <= 1
        assert load(probe, tmp_path, folder, "g/x")[0].tobytes() == array.tobytes()


# ---- equality ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"chunk": [5, 4]},
        {"chunk": [1, 3], "codec": "shuffle,deflate:1"},
        {"chunk": [40, 3], "codec": "zstd"},
        {"chunk": [4, 4], "codec": "lzf,fletcher32"},
        {"shards": 3, "format": "hdf5", "chunk": [2, 2]},
    ],
)
def test_the_file_is_the_same_however_the_array_is_cut(probe, tmp_path, options):
    array = numbers(8, (37, 11), "<i2").copy()
    array[5:20] = 3
    rng = numpy.random.default_rng(11)
    first = None
    for turn in range(16):
        tiling, boxes = (
            gen.random_tiling(rng, list(array.shape), from_dataset=False) if turn else (None, None)
        )
        context = {**gen.context_command(rng), "threads": turn % 8 + 1}
        probe.batch([context])
        put(probe, tmp_path, array, tiling, boxes, gen.array_command(rng, array))
        path = tmp_path / ("x%d" % turn if "shards" in options else "x%d.h5" % turn)
        probe.call("save", path=str(path), **options)
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        content = [file.read_bytes() for file in files]
        first = first or content
        assert content == first, (turn, context, tiling)
    if "shards" not in options:
        check_file(path, {"data": array})


def test_the_file_does_not_tell_the_time(probe, tmp_path):
    """Neither of datasets nor of the groups above them."""
    content = set()
    for turn in range(2):
        put(probe, tmp_path, walk((12, 8)))
        for number, options in enumerate(({}, {"chunk": [5, 4], "codec": "deflate"})):
            path = tmp_path / "x.h5"
            probe.call("save", path=str(path), dataset="g/h/x%d" % number, **options)
        content.add(path.read_bytes())
        path.unlink()
        time.sleep(1.01 if turn == 0 else 0)  # times in files are whole seconds
    assert len(content) == 1


# ---- virtual files that move ---------------------------------------------------------------------

READ = """
import hashlib, json, sys
try:
    import h5py, numpy
except ImportError as error:
    print(json.dumps({"skip": str(error)})); sys.exit()
try:
    import hdf5plugin
except ImportError:
    pass
out = {"hdf5": h5py.version.hdf5_version}
with h5py.File(sys.argv[1], "r") as file:
    for name in sys.argv[2:]:
        data = file[name][()]
        digest = hashlib.sha256(numpy.ascontiguousarray(data).tobytes()).hexdigest()
        out[name] = [str(file[name].dtype.str), list(data.shape), digest]
print(json.dumps(out))
"""


def read_elsewhere(python, path, names, cwd, folder=""):
    """`folder`: where its modules are."""
    run = subprocess.run(
        [python, "-c", READ, str(path), *names],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": folder},
    )
    assert run.returncode == 0, run.stderr
    answer = json.loads(run.stdout)
    if "skip" in answer:
        pytest.skip("%s: %s" % (python, answer["skip"]))
    return answer


def digest(array):
    return [array.dtype.str, list(array.shape), hashlib.sha256(array.tobytes()).hexdigest()]


def test_a_virtual_file_is_moved_with_its_tiles(probe, tmp_path):
    array = walk((12, 8))
    (tmp_path / "here").mkdir()
    put(probe, tmp_path, array, *grid(array.shape, (5, 3)))
    probe.call("save", path=str(tmp_path / "here" / "v.h5"), layout="virtual", dataset="g/v")
    assert sum(name.endswith(".h5") for name in left(tmp_path / "here")) == 1 + 9
    shutil.move(tmp_path / "here", tmp_path / "there")
    decoy = tmp_path / "decoy"
    shutil.copytree(tmp_path / "there", decoy)
    for tile in decoy.rglob("tile_*.h5"):
        with h5py.File(tile, "r+") as file:
            file["g/v"][...] = 0
    answer = read_elsewhere(sys.executable, tmp_path / "there" / "v.h5", ["g/v"], decoy)
    assert answer["g/v"] == digest(array)
    assert load(probe, tmp_path, tmp_path / "there" / "v.h5", "g/v")[0].tobytes() == array.tobytes()


def test_a_virtual_file_saved_by_a_relative_path(new_probe, tmp_path, monkeypatch):
    array = walk((12, 8))
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path)
    own = new_probe()
    own.call("context", threads=2)
    for path in ("v.h5", "deep/v.h5", "./deep/../w.h5", "new/folder/v.h5"):
        put(own, tmp_path, array, *even(array.shape, 0, 4))
        own.call("save", path=path, layout="virtual")
    monkeypatch.chdir("/")
    for path in ("v.h5", "deep/v.h5", "w.h5", "new/folder/v.h5"):
        check_file(tmp_path / path, {"data": array})


# ---- virtual files that are replaced while others read them --------------------------------------

KEEP_OPEN = """
import sys
import time
try:
    import h5py, numpy
except ImportError as error:
    print("skip", error, flush=True); sys.exit()
with h5py.File(sys.argv[1], "r") as file:
    data = file["data"]
    if sys.argv[2] == "read": data[0, 0]
    print("ready", h5py.version.hdf5_version, flush=True)
    for line in sys.stdin:
        print(data[()].tolist(), flush=True)
"""
PYTHONS = {
    "this": (sys.executable, os.environ.get("PYTHONPATH", "")),
    "newer": (sys.executable, os.environ.get("TEGULA_OTHER_H5PY")),
    "older": ("/usr/bin/python3", ""),
}


@pytest.mark.parametrize(
    "locking, before", [("", "nothing"), ("FALSE", "nothing"), ("FALSE", "read")]
)
@pytest.mark.parametrize("which", PYTHONS)
def test_a_reader_keeps_the_old_virtual_file_open(probe, tmp_path, which, locking, before):
    """Through two saves it sees its own values; through any number of them when it has locked
    the file, as HDF5 does if it may."""
    python, modules = PYTHONS[which]
    if modules is None or not os.path.exists(python):
        pytest.skip("no other h5py is at hand")
    path = tmp_path / "out" / "v.h5"
    put(probe, tmp_path, walk((12, 8)), *even((12, 8), 0, 4))
    probe.call("save", path=str(path), layout="virtual")
    env = {
        **os.environ,
        "PYTHONPATH": modules,
        **({"HDF5_USE_FILE_LOCKING": locking} if locking else {}),
    }
    with subprocess.Popen(
        [python, "-c", KEEP_OPEN, str(path), before],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=env,
    ) as reader:

        def ask():
            reader.stdin.write("\n")
            reader.stdin.flush()
            return json.loads(reader.stdout.readline())

        ready = reader.stdout.readline().split()
        if ready[0] == "skip":
            reader.stdin.close()
            pytest.skip(" ".join(ready[1:]))
        saves = 2 if locking else 5
        for number in range(1, saves + 1):
            put(probe, tmp_path, walk((12, 8)) + 1000 * number, *even((12, 8), 0, 4))
            probe.call("save", path=str(path), layout="virtual", overwrite=True)
            check_file(path, {"data": walk((12, 8)) + 1000 * number})
            if before == "read" or number == saves:
                assert ask() == walk((12, 8)).tolist(), number
        reader.stdin.close()
        assert reader.wait(timeout=60) == 0
    for _ in range(2):  # what nobody has open any more goes
        probe.call("save", path=str(path), layout="virtual", overwrite=True)
    assert len(list((tmp_path / "out").iterdir())) == 1 + 3
    check_file(path, {"data": walk((12, 8)) + 1000 * saves})


# ---- other people's tools ------------------------------------------------------------------------


@pytest.fixture
def mixed(probe, tmp_path):
    """One file of every layout and of the codecs that libhdf5 has, and what is in it."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    arrays = {
        "contiguous": walk((23, 17)),
        "plain": walk((23, 17), "<i8"),
        "packed": walk((23, 17), "<f4"),
        "summed": walk((23, 17), ">i2"),
        "deep/er": numbers(4, (3, 2, 2), "<u1"),
        "zero": numbers(4, (0, 3)),
        "scalar": numbers(3, ()),
        "bool": numbers(3, (7,), "?"),
        "complex": walk((5, 5), "<c16"),
        "half": walk((9,), "<f2"),
    }
    options = {
        "plain": {"chunk": [5, 5]},
        "packed": {"chunk": [5, 17], "codec": "shuffle,deflate:4"},
        "summed": {"chunk": [23, 3], "codec": "deflate,fletcher32", "byte_order": ">"},
        "zero": {"chunk": [1, 3]},
    }
    for name, array in arrays.items():
        put(probe, tmp_path, array)
        probe.call("save", path=str(folder / "x.h5"), dataset=name, **options.get(name, {}))
    put(probe, tmp_path, arrays["contiguous"], *grid((23, 17), (10, 9)))
    probe.call("save", path=str(folder / "v.h5"), dataset="v", layout="virtual")
    return folder, arrays


@pytest.mark.parametrize("which", ["newer", "older"])
def test_other_releases_of_h5py(mixed, tmp_path, which):
    folder, arrays = mixed
    modules = os.environ.get("TEGULA_OTHER_H5PY", "") if which == "newer" else ""
    python = sys.executable if which == "newer" else "/usr/bin/python3"
    if (which == "newer" and not modules) or not os.path.exists(python):
        pytest.skip("no other h5py is at hand")
    answer = read_elsewhere(python, folder / "x.h5", list(arrays), tmp_path, modules)
    assert answer["hdf5"] != h5py.version.hdf5_version or which == "older"
    for name, array in arrays.items():
        assert answer[name] == digest(array), name
    assert read_elsewhere(python, folder / "v.h5", ["v"], tmp_path, modules)["v"] == digest(
        arrays["contiguous"]
    )


def tool(name, *words):
    if not shutil.which(name):
        pytest.skip("%s is not installed" % name)
    run = subprocess.run([name, *map(str, words)], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and run.stderr == "", run.stdout + run.stderr
    return run.stdout


def test_h5dump_reads_the_values(mixed, tmp_path):
    folder, arrays = mixed
    for path, name, array in [
        ("x.h5", "contiguous", arrays["contiguous"]),
        ("x.h5", "plain", arrays["plain"]),
        ("x.h5", "packed", arrays["packed"]),
        ("x.h5", "summed", arrays["summed"]),
        ("v.h5", "v", arrays["contiguous"]),
    ]:
        tool("h5dump", "-d", name, "-b", "LE", "-o", tmp_path / "out", folder / path)
        assert (tmp_path / "out").read_bytes() == array.astype(
            array.dtype.newbyteorder("<")
        ).tobytes(), name
    assert tool("h5dump", "-H", folder / "x.h5").count("DATASET") == len(arrays)


def test_h5stat_finds_no_fault_and_no_space_lost(mixed):
    folder, arrays = mixed
    assert "datasets: %d" % len(arrays) in tool("h5stat", folder / "x.h5").replace(
        "Unique ", ""
    ).replace("# of unique ", "")
    tool("h5stat", folder / "v.h5")
