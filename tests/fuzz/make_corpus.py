#!/usr/bin/env python3
"""Writes the first inputs of each fuzz target under corpus/;
what fuzzing finds is put beside them by hand.

SPDX-License-Identifier: Apache-2.0

usage: make_corpus.py. Names are numbers with what the input is for; files that it did not make
stay. Needs nothing but Python.
"""

import json
import pathlib
import struct

CORPUS = pathlib.Path(__file__).parent / "corpus"
GOLDEN = pathlib.Path(__file__).parent.parent / "golden"


def put(target, name, data):
    (CORPUS / target).mkdir(parents=True, exist_ok=True)
    (CORPUS / target / name).write_bytes(data)


def dtypes():
    texts = """
        b1 <f4 >f8 f2 bfloat16 >bfloat16 |V12 <U3 S5 <M8[ns] M8[25us] m8 <c16 float32 uint64 int8
        complex128 O g <f16 f3 M8[] M8[0s] V0 V4294967295 V4294967296 U1073741823 U1073741824
        M8[2147483647D] M8[4294967296D] =i4 @i4 ><f4 M8[ns] M8[ns/2]
    """.split()
    for number, text in enumerate(
        [*texts, "", " f4", "f4 ", "<", "M8[", "M8[generic]", "f" * 100, "V" + "9" * 40]
    ):
        put("dtype", "%02d" % number, text.encode())


def names():
    sets = {
        "plain": ["folder/shard_%04d.npy" % i for i in range(5)],
        "unordered": ["part_1", "part_10", "part_2"] + ["part_%d" % i for i in range(3, 10)],
        "hole": ["a0", "a1", "a3"],
        "carry": ["x%d" % i for i in range(98, 102)],
        "carry-padded": ["x%03d" % i for i in range(8, 12)],
        "duplicate": ["x1", "x01", "x2"],
        "foreign": ["x1", "x2", "y3"],
        "two-runs": ["a1b1", "a2b2", "a3b3"],
        "second-run": ["a1b1", "a1b2", "a1b3"],
        "huge": ["n9223372036854775807", "n9223372036854775808"],
        "long": ["9" * 300, "1" + "0" * 300],
        "same": ["a", "a"],
        "only-digits": ["0", "1", "2"],
        "empty-names": ["", "", "1"],
        "where": ["folder", "folder/", "folder/1"],
        "utf8": ["données_%d" % i for i in range(3)],
        "one": ["alone"],
        "zeros": ["0", "00", "000"],
    }
    for name, lines in sets.items():
        put("names", name, "\n".join(lines).encode())
    put("names", "zero-byte", b"a1\x00b\na2\x00c")
    put("names", "nothing", b"")


def npy():
    chosen = [path for path in sorted(GOLDEN.glob("*.npy")) if path.stat().st_size < 700]
    for number, path in enumerate(
        path
        for i, path in enumerate(chosen)
        if i % 2 == 0 or path.name.startswith(("record", "odd"))
    ):
        put(
            "npy",
            path.stem,
            bytes([(number % 8) | (3 << 4 if "short" in path.name else 0)]) + path.read_bytes(),
        )

    def header(text, major=1, settings=0x77):
        body = text.encode("utf8" if major == 3 else "latin1")
        size = struct.pack("<H" if major == 1 else "<I", len(body))
        return bytes([settings]) + b"\x93NUMPY" + bytes([major, 0]) + size + body

    put(
        "npy",
        "claims",
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (1024, 256), }", settings=0xF7),
    )
    put(
        "npy",
        "bfloat16",
        header("{'descr': '|V2', 'fortran_order': False, 'shape': (7,), }", settings=0x7F),
    )
    put(
        "npy",
        "record",
        header(
            "{'descr': [('a', '<f4'), ('b', '|V3', (2, 2)), (('t', 'c'), [('x', '>i2')])], "
            "'fortran_order': False, 'shape': (3,), }"
        ),
    )
    put(
        "npy",
        "utf8",
        header(
            "{'descr': [('\u00e9\u4e2d\U0001f600', '<f4')], 'fortran_order': True, 'shape': (2, "
            "3), }",
            major=3,
        ),
    )
    put(
        "npy",
        "escapes",
        header(
            r"{'descr': [('\x41\u00e9\'\"\\\n', '<f4')], 'fortran_order': False, 'shape': (), }",
            major=2,
        ),
    )
    put(
        "npy",
        "axes",
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (%s), }" % ("1, " * 64)),
    )


def codec():
    """One golden chunk of each chain: the largest of up to 400 bytes."""
    ids = "none deflate shuffle fletcher32 szip zstd lz4 blosc blosc2 bitshuffle lzf".split()
    chosen = set()
    for path in sorted(
        GOLDEN.glob("codec/*.chunk"), key=lambda path: (-path.stat().st_size, path.name)
    ):
        head, stored = path.read_bytes().split(b"\n", 1)
        data, mask, *filters = head.decode().split(" ")
        chain = tuple(
            word.split(":")[0] + (word[-2:] if word.startswith("bitshuffle") else "")
            for word in filters
        )
        if len(chain) > 4 or len(stored) > 400 or chain in chosen:
            continue
        size = (GOLDEN / "codec" / f"{data}.raw").stat().st_size
        parts = [struct.pack("<BI", len(filters), int(mask)), struct.pack("<I", size)[:3]]
        for word in filters:
            name, *numbers = word.split(":")
            parts.append(
                struct.pack(
                    "<B4I", ids.index(name), *([int(number) for number in numbers] + [0] * 4)[:4]
                )
            )
        chosen.add(chain)
        put("codec", path.stem, b"".join(parts) + stored)


def encode():
    """Chains of every codec over data that compress, that do not, and that are no whole items."""
    ids = "none deflate shuffle fletcher32 szip zstd lz4 blosc blosc2 bitshuffle lzf".split()
    rows = [
        "shuffle:4 deflate:4",
        "shuffle:8 deflate:9 fletcher32",
        "fletcher32 shuffle:3 deflate:1",
        "bitshuffle:4:0:0 lzf",
        "lzf lzf lzf",
        "bitshuffle:4:0:2",
        "bitshuffle:2:16:3:1",
        "lz4:100",
        "zstd:1 lz4:1073741824",
        "blosc:4:5:1:1",
        "blosc:2:9:2:5 fletcher32",
        "blosc2:4:5:1:0",
        "deflate:6 bitshuffle:8:8:2 shuffle:16",
        "shuffle:300 bitshuffle:300:0:0",
        "lzf",
        "fletcher32 fletcher32",
        "",
    ]
    for number, row in enumerate(rows):
        words = row.split()
        parts = [struct.pack("<B", len(words)), struct.pack("<I", 700 + 333 * number)[:3]]
        for word in words:
            name, *numbers = word.split(":")
            parts.append(
                struct.pack(
                    "<B4I", ids.index(name), *([int(text) for text in numbers] + [0] * 4)[:4]
                )
            )
        noise = bytes((k * k * 31 + k // 7) % 251 for k in range(37 + 40 * (number % 3)))
        put(
            "encode",
            "%02d-%s" % (number, "-".join(word.split(":")[0] for word in words) or "nothing"),
            b"".join(parts) + (noise if number % 2 else noise[:8] * 5),
        )


def raw():
    def row(
        name,
        size,
        offset,
        gap,
        dtype,
        order,
        byte_order,
        shape=None,
        row_shape=None,
        flags=0,
        said=(),
    ):
        lengths = shape if shape is not None else row_shape or []
        put(
            "raw",
            name,
            struct.pack(
                "<qqqBBBBBB",
                size,
                offset,
                gap,
                dtype,
                order,
                byte_order,
                0 if shape is None else len(shape) + 1,
                0 if row_shape is None else len(row_shape) + 1,
                flags,
            )
            + struct.pack("<%dq" % len(said), *said)
            + struct.pack("<%dq" % len(lengths), *lengths),
        )

    row("shape", 408, 0, 0, 1, 0, 0, shape=[17, 6])
    row("offset", 416, 8, 0, 2, 1, 2, shape=[17, 3])
    row("rows", 480, 0, 0, 1, 0, 1, row_shape=[6, 2])
    row("gap", 22, 0, 2, 0, 1, 0, row_shape=[10])
    row("last-gap", 24, 0, 2, 0, 1, 0, row_shape=[10])
    row("gap-off", 23, 0, 2, 0, 1, 0, row_shape=[10])
    row("fortran", 96, 0, 0, 2, 2, 0, shape=[3, 4])
    row("scalar", 8, 0, 0, 2, 0, 0, shape=[])
    row("nothing-given", 64, 0, 0, 3, 0, 0)
    row("both", 64, 0, 0, 1, 0, 0, shape=[4], row_shape=[4])
    row("around", 3 * 36 - 8, 0, 0, 1, 0, 0, row_shape=[6], flags=3, said=[4, 8])
    row("trailing", 100, 0, 0, 1, 0, 0, row_shape=[6], flags=4, said=[4])
    row("any", 100, 0, 0, 1, 0, 0, shape=[4, 6], flags=20, said=[0])
    row("records", 4 + 3 * 32, 4, 0, 1, 0, 1, row_shape=[6], flags=8, said=[24])
    row("records-8", 3 * 40, 0, 0, 1, 0, 1, row_shape=[6], flags=40, said=[24])
    row("subrecords", 3 * 48, 0, 0, 1, 0, 1, row_shape=[6], flags=8, said=[-10])
    row("overflow", 2**62, 0, 0, 7, 0, 0, shape=[2**31, 2**31, 4])
    row("overflow-gap", 2**62, 2**61, 2**62, 1, 1, 0, shape=[2**40, 2])
    row("zero-rows", 0, 0, 4, 1, 1, 0, shape=[0, 5])
    row("zero-columns", 4, 0, 4, 1, 1, 0, shape=[2, 0])
    row("zero-and-huge", 0, 0, 0, 1, 0, 0, shape=[0, 2**62, 2**62])
    row("negative", 64, -8, -1, 1, 0, 0, shape=[-4])
    row("axes", 4, 0, 0, 1, 0, 0, shape=[1] * 64)
    row("too-many-axes", 4, 0, 0, 1, 0, 0, shape=[1] * 65)
    row("row-axes", 4, 0, 0, 1, 0, 0, row_shape=[1] * 63)


def side_file():
    def side(name, text, dtype=0, orders=0, offset=0, gap=0, axes=0, length=0, file=0x80, size=60):
        text = (
            text
            if isinstance(text, bytes)
            else (text if isinstance(text, str) else json.dumps(text)).encode()
        )
        put("side_file", name, bytes([dtype, orders, offset, gap, axes, length, file, size]) + text)

    side("plain", {"dtype": "<i4", "row_shape": [4]})
    side("shape", {"dtype": "<i4", "shape": [15, 4]})
    side(
        "other-names",
        {
            "dtype": "float64",
            "endianness": "big",
            "trailing_shape": 3,
            "header_bytes": 24,
            "rows_per_shard": 9,
        },
    )
    side(
        "both-names",
        {
            "dtype": ">i4",
            "byte_order": ">",
            "endianness": "big",
            "offset": 4,
            "header_bytes": 4,
            "row_shape": [2],
            "trailing_shape": [2],
            "shape": [4, 2],
            "rows": [4],
            "rows_per_shard": [4],
        },
        size=9,
    )
    side(
        "recipe",
        {"num_shards": 4, "dtype": "float32", "trailing_axes": [4], "per_shard_rows": [4, 0, 5, 6]},
        file=3,
        size=24,
    )
    side(
        "recipe-one-number",
        {"num_shards": 1, "dtype": "<f4", "trailing_axes": 3, "per_shard_rows": 20},
    )
    side(
        "recipe-contradicts",
        {"num_shards": 3, "rows_per_shard": [4, 5], "per_shard_rows": [4, 5], "trailing_axes": []},
    )
    side(
        "recipe-too-many",
        {
            "num_shards": 9223372036854775807,
            "dtype": "b1",
            "trailing_axes": [],
            "trailing_shape": [],
        },
        size=9,
    )
    side("rows-list", {"dtype": "f4", "row_shape": [4], "rows": [4, 0, 5, 6]}, file=3, size=24)
    side(
        "rows-by-name",
        {"dtype": "<f4", "rows": {"b.bin": 3, "a.bin": 60, "c.bin": 2**63 - 1}},
        file=1,
    )
    side("rows-too-few", {"dtype": "<f4", "rows": [60]}, file=2)
    side("rows-empty", {"dtype": "<f4", "rows": {}, "rows_per_shard": {}}, file=0)
    side("name-empty", {"rows": {"": 1, "..": 3}})
    side("name-of-another-folder", {"rows": {"a/b": 2}})
    side("scalar", {"dtype": "f8", "shape": []}, size=2)
    side("scalar-and-row", {"dtype": "f8", "shape": [], "row_shape": []}, size=2)
    side("axes", {"dtype": "b1", "shape": [1] * 64}, size=0)
    side("too-many-axes", {"dtype": "b1", "row_shape": [1] * 64})
    side("gap", {"dtype": "b1", "row_shape": [10], "row_gap": 2, "order": "C"}, size=15)
    side(
        "fortran", {"dtype": "<f8", "shape": [3, 4], "order": "F", "byte_order": "native"}, size=24
    )
    side(
        "huge",
        {
            "dtype": "V2147483647",
            "shape": [2**62, 2**62],
            "offset": 2**63 - 1,
            "row_gap": 2**63 - 1,
        },
    )
    side("too-large", '{"offset": 9223372036854775808, "shape": [1e3, -1, 1.5]}')
    side(
        "said-the-same",
        {"dtype": "<f4", "row_shape": [2], "offset": 8, "row_gap": 4},
        dtype=1,
        offset=8,
        gap=4,
        axes=0x10,
        length=2,
    )
    side(
        "said-other",
        {"dtype": "<f4", "row_shape": [2], "offset": 8},
        dtype=2,
        orders=10,
        offset=16,
        axes=0x11,
        length=0x31,
    )
    side("only-said", {"_note": None}, dtype=2, orders=6, axes=3, length=0x35)
    side("unknown-key", {"dtype": "f4", "of\nset": 4, "x-lab": {"a": [1]}})
    side("twice", '{"dtype": "f4", "dtype": "f4"}')
    side("zero-in-text", '{"dtype": "f4\\u0000"}')
    side("deep", '{"x-a": ' + "[" * 20 + "]" * 20 + "}")
    side("cut", '{"dtype": "f')
    side("not-utf8", b'{"rows": {"a\xff.bin": 1}}')
    side("list", "[]")
    side("nothing", "")


def sums():
    """A file of one block and one of two with chunks; then each member as it must not be."""
    zero, of_zeros = "0" * 32, "9a026d96b3c0f0fca057271c9071c99d"  # blocks; XXH3-128 of two of them
    one = {"path": "a.npy", "size": 200, "sum": zero}
    chunked = {
        "path": "b.h5",
        "size": 4096,
        "sum": zero,
        "chunks": [[[0, 0], 8, 100, zero], [[2, 0], 200, 3896, zero]],
    }
    good = {
        "tegula_sums": 1,
        "format": "npy",
        "name": "data",
        "dtype": "<i2",
        "shape": [5, 4],
        "content": "tegula1:" + zero,
        "block_bytes": 16 << 20,
        "files": [one, chunked],
    }

    def text(name, **changes):
        put("sums", name, json.dumps({**good, **changes}).encode())

    text("good")
    text("nothing-kept", content=None, files=[])
    text("hex-name", files=[{"path_hex": "ff61", "size": 0, "sum": zero}])
    text("version-2", tegula_sums=2)
    text("other-blocks", block_bytes=1)
    text(
        "two-blocks",
        files=[{**one, "size": (16 << 20) + 1, "blocks": [zero, zero], "sum": of_zeros}],
    )
    text("too-few-blocks", files=[{**one, "size": 1 << 62, "blocks": [zero]}])
    text("short-sum", files=[{**one, "sum": "12"}])
    text("chunk-behind-the-end", files=[{**chunked, "chunks": [[[0, 0], 4000, 97, zero]]}])
    text(
        "chunk-out-of-order",
        files=[{**chunked, "chunks": [[[0, 0], 9, 1, zero], [[1, 0], 8, 1, zero]]}],
    )
    text("chunk-outside", files=[{**chunked, "chunks": [[[5, 0], 9, 1, zero]]}])
    text("chunk-of-one-axis", files=[{**chunked, "chunks": [[[0], 9, 1, zero]]}])
    text("self", self=zero)
    put("sums", "cut", json.dumps(good).encode()[:200])
    put("sums", "nothing", b"")


def manifest():
    file = {"path": "a.npy", "size": 100, "mtime_ns": 7}
    part = {"file": 0, "offset": 10, "lo": [0, 0], "hi": [3, 4], "strides": [8, 2], "order": ">"}
    good = {
        "tegula_manifest": 1,
        "format": "npy",
        "name": "data",
        "dtype": "<i2",
        "shape": [5, 4],
        "files": [file, {"path": "/abs/b.npy", "size": 32, "mtime_ns": -8}],
        "parts": [
            part,
            {"file": 1, "offset": 16, "lo": [3, 0], "hi": [5, 4], "strides": [2, 4], "order": "<"},
        ],
    }
    whole = {**part, "hi": [5, 4]}

    def text(name, **changes):
        put("manifest", name, json.dumps({**good, **changes}).encode())

    text("good")
    text("version-2", tegula_manifest=2)
    framed = {"first": 4, "bytes": 8, "most": 5, "marker": 4, "order": ">"}
    inside = {**part, "offset": 4, "hi": [5, 4]}
    for name, change, place in (
        ("records", {}, inside),
        ("records-8", {"marker": 8, "most": 8}, inside),
        ("records-marker", {"marker": 6}, inside),
        ("records-huge", {"bytes": 2**63 - 1}, inside),
        ("records-most", {"most": 0}, inside),
        ("records-in-front", {}, {**inside, "offset": 3}),
    ):
        records = {**framed, **change}
        text(name, files=[{**file, "size": 124, "records": records}], parts=[place])
    text("hex", files=[{"path_hex": "61ff62", "size": 100, "mtime_ns": 7}], parts=[whole])
    text("hex-zero", files=[{"path_hex": "6100", "size": 100, "mtime_ns": 7}], parts=[whole])
    text("both-paths", files=[{**file, "path_hex": "61"}])
    text(
        "records",
        dtype="|V12",
        descr="[('a', '<f4'), ('b', '<f8')]",
        shape=[3],
        files=[{**file, "size": 36}],
        parts=[{**part, "offset": 0, "lo": [0], "hi": [3], "strides": [12], "order": "|"}],
    )
    text("descr-of-numbers", descr="[('a', '<i2')]")
    text("scalar", shape=[], parts=[{**part, "lo": [], "hi": [], "strides": []}])
    text("scalar-twice", shape=[], parts=[{**part, "lo": [], "hi": [], "strides": []}] * 2)
    text("gap", parts=[{**whole, "strides": [20, 2]}])
    text("overlap", parts=[{**whole, "strides": [4, 2]}])
    text("hole", parts=[part, {**part, "lo": [4, 0], "hi": [5, 4]}])
    text("not-all-rows", parts=[part])
    text("short", files=[{**file, "size": 49}], parts=[whole])
    text("no-rows", shape=[0, 4], parts=[])
    text("no-rows-one-part", shape=[0, 4], parts=[{**part, "hi": [0, 4]}])
    text("no-columns", shape=[5, 0], parts=[{**part, "hi": [5, 0], "strides": [2, 2]}])
    text(
        "zero-and-huge",
        shape=[0, 2**62, 2**62],
        parts=[{**part, "lo": [0] * 3, "hi": [0, 2**62, 2**62], "strides": [1, 1, 1]}],
    )
    text("overflow", shape=[2**62, 4])
    text("overflow-stride", shape=[2, 1], parts=[{**part, "hi": [2, 1], "strides": [2**63 - 1, 2]}])
    text("overflow-offset", parts=[{**whole, "offset": 2**63 - 1}])
    text(
        "axes",
        dtype="b1",
        shape=[1] * 64,
        parts=[{**part, "lo": [0] * 64, "hi": [1] * 64, "strides": [1] * 64, "order": "|"}],
    )
    text("file-beyond", parts=[{**whole, "file": 2}])
    text("no-files", files=[])
    text("unknown-key", more=1)
    text("remark", **{"_more": [[1]], "x-lab": {}})
    grid = {
        "file": 0,
        "chunk_bytes": 24,
        "order": ">",
        "codecs": [],
        "fill": "0100",
        "slots": 4,
        "offsets": [0, 24, 48, 72],
        "lengths": [24, 24, 0, 24],
    }
    chunked = {
        "grid": 0,
        "offset": 0,
        "lo": [0, 0],
        "hi": [5, 4],
        "strides": [8, 2],
        "start": [0, 0],
        "chunk": [3, 4],
        "slot": 0,
        "slot_strides": [1, 0],
    }
    packed = {
        **grid,
        "codecs": [["shuffle", 2], ["deflate", 4], ["fletcher32"]],
        "lengths": [20, 24, 0, 21],
    }
    lost = {"status": "not_found", "message": "gone", "hint": "look", "path": "x.h5", "errno": 2}

    def grids(name, *tables, **changes):
        put(
            "manifest",
            name,
            json.dumps(
                {
                    **good,
                    "format": "hdf5",
                    "fill": "0100",
                    "grids": list(tables),
                    "parts": [{**chunked, **changes}],
                }
            ).encode(),
        )

    grids("chunks", grid)
    grids("chunks-packed", packed)
    grids("chunks-masked", {**packed, "masks": [0, 7, 0, 1]})
    grids("chunks-sparse", {**grid, "slots": 2**40, "coordinates": [0, 1, 3, 2**39]})
    grids("chunks-not-ascending", {**grid, "coordinates": [0, 2, 1, 3]})
    grids("chunks-inside", grid, lo=[0, 0], start=[1, 0], offset=0)
    grids("chunks-behind-their-grid", grid, slot=3)
    grids("chunks-not-in-the-file", {**grid, "offsets": [0, 24, 48, 90]})
    grids("chunks-of-no-length", grid, chunk=[0, 4])
    grids("chunks-start-overflows", grid, start=[2**63 - 1, 0])
    grids(
        "chunks-steps",
        {**grid, "slots": 10, "offsets": [i * 24 for i in range(10)], "lengths": [24] * 10},
        step=[2, 1],
        strides=[16, 2],
    )
    grids(
        "chunks-long-steps",
        {**grid, "slots": 20, "offsets": [i % 4 * 24 for i in range(20)], "lengths": [24] * 20},
        step=[7, 1],
        strides=[56, 2],
    )
    grids("chunks-no-step", grid, step=[0, 1])
    grids("chunks-steps-overflow", grid, step=[2**62, 1], strides=[2**62, 2])
    grids("chunks-texts", grid, texts=[[0, 1, 0, 2, 0], [0, 2, 1, 1, 1]])
    grids("chunks-texts-outside", grid, texts=[[1, 1, 0, 2, 0]])
    grids("chunks-texts-overflow", grid, texts=[[1, 2**62, 2**62, 1, 1]])
    grids("chunks-unknown-codec", {**grid, "codecs": [["gzip"]]})
    grids("chunks-codec-parameters", {**grid, "codecs": [["szip", 1, 2, 3]]})
    grids("chunks-too-few-lengths", {**grid, "lengths": [24]})
    text(
        "fill",
        parts=[
            {"fill": "0a0b", "lo": [0, 0], "hi": [3, 4]},
            {"fill": None, "lo": [3, 0], "hi": [5, 4]},
        ],
    )
    text("fill-odd", parts=[{"fill": "0a0", "lo": [0, 0], "hi": [5, 4]}])
    text("lost", parts=[{"lost": lost, "fill": None, "lo": [0, 0], "hi": [5, 4]}])
    text("lost-ok", parts=[{"lost": {**lost, "status": "ok"}, "lo": [0, 0], "hi": [5, 4]}])
    text(
        "boxes",
        grids=[grid],
        parts=[
            {**part, "hi": [3, 2]},
            {"fill": None, "lo": [0, 2], "hi": [3, 4]},
            {**chunked, "lo": [3, 0], "start": [1, 0]},
        ],
    )
    text(
        "boxes-meet",
        parts=[
            {**part, "hi": [3, 3]},
            {"fill": None, "lo": [0, 2], "hi": [3, 4]},
            {"fill": None, "lo": [3, 0], "hi": [5, 4]},
        ],
    )
    put("manifest", "cut", json.dumps(good).encode()[:150])
    put("manifest", "nothing", b"")


class Packed:
    """Bytes as src/manifest/packed.c writes them, from the JSON of a manifest."""

    def __init__(self, m):
        self.out, self.last = bytearray(b"tegula1\0<"), {}
        for key in ("format", "name", "dtype"):
            self.text(m[key])
        self.text(m.get("descr", ""))
        for number in [len(m["shape"]), *m["shape"]]:
            self.number(number)
        self.item(m.get("fill"))
        self.number(len(m["files"]))
        for file in m["files"]:
            self.text(file["path"])
            self.next("size", file["size"])
            self.next("mtime", file["mtime_ns"])
            self.records(file.get("records", {"bytes": 0}))
        self.number(len(m.get("grids", [])))
        for grid in m.get("grids", []):
            self.grid(grid)
        self.number(len(m["parts"]))
        for part in m["parts"]:
            self.part(part)

    def number(self, n):
        n %= 2**64
        while n >= 0x80:
            self.out.append(n & 0x7F | 0x80)
            n >>= 7
        self.out.append(n)

    def next(self, key, n):
        difference = (n - self.last.get(key, 0) + 2**63) % 2**64 - 2**63
        self.last[key] = n
        self.number(difference * 2 if difference >= 0 else -difference * 2 - 1)

    def records(self, records):
        self.number(records["bytes"])
        if records["bytes"] != 0:
            self.number(records["first"])
            self.number(records["most"])
            self.out.append(records["marker"])
            self.out += records["order"].encode()

    def text(self, text):
        self.number(len(text))
        self.out += text.encode()

    def item(self, item):
        self.out += b"\0" if item is None else b"\1" + bytes.fromhex(item)

    def grid(self, grid):
        self.out.append(("coordinates" in grid) | 2 * ("masks" in grid) | 4 * ("slices" in grid))
        self.next("grid file", grid["file"])
        self.number(grid["chunk_bytes"])
        self.out += grid["order"].encode()
        self.number(len(grid["codecs"]))
        for name, *parameters in grid["codecs"]:
            self.text(name)
            for number in [len(parameters), *parameters]:
                self.number(number)
        self.item(grid.get("fill"))
        self.number(grid["slots"])
        self.number(len(grid["lengths"]))
        self.last.update(length=0, place=0)
        for length in grid["lengths"]:
            self.next("length", length)
        for i, length in enumerate(grid["lengths"]):
            if length:
                self.next("place", grid["offsets"][i])
                self.last["place"] += length
                if "masks" in grid:
                    self.number(grid["masks"][i])
        before = -1
        for slot in grid.get("coordinates", []):
            self.number(slot - before - 1)
            before = slot

    def vectors(self, part, *keys):
        for key in keys:
            for k, n in enumerate(part[key]):
                self.next((key, k), n)

    def part(self, part):
        kind = 0 if "file" in part else 1 if "grid" in part else 3 if "lost" in part else 2
        self.out.append(kind)
        self.vectors(part, "lo", "hi")
        texts = part.get("texts")
        self.number(2 + len(texts) if texts else 0)
        for *numbers, padding in texts or []:
            for number in numbers:
                self.number(number)
            self.out += b" " if padding else b"0"
        if kind == 0:
            self.out += part["order"].encode()
            self.next("file", part["file"])
            self.next("offset", part["offset"])
            self.vectors(part, "strides")
        elif kind == 1:
            for key in ("grid", "offset", "slot"):
                self.next(key, part[key])
            self.vectors(part, "strides", "start", "chunk", "slot_strides")
            self.out.append("step" in part)
            if "step" in part:
                self.vectors(part, "step")
        else:
            self.item(part.get("fill"))
            if kind == 3:
                for key in ("status", "message", "hint", "path"):
                    self.text(part["lost"][key])
                self.number(part["lost"]["errno"])


def packed():
    """Manifests of the corpus beside it, where they can be said in this form."""
    for path in sorted((CORPUS / "manifest").iterdir()):
        try:
            text = json.loads(path.read_bytes())
            put(
                "packed",
                path.name,
                bytes(
                    Packed(
                        {
                            **text,
                            "files": [
                                {**file, "path": "/" + file["path"].strip("/").replace("/", "_")}
                                for file in text["files"]
                            ],
                        }
                    ).out
                ),
            )
        except (ValueError, KeyError, IndexError, TypeError):
            continue
    good = (CORPUS / "packed" / "chunks-masked").read_bytes()
    put("packed", "cut", good[:-3])
    put("packed", "more", good + b"\0")
    put("packed", "long-number", good[:9] + b"\xff" * 9 + b"\x02" + good[9:])


def chunks():
    """Bytes as fuzz_chunks.c takes them: an array (6, 5) of f4 in chunks (4, 3)
    of 48 bytes, and changes of it."""
    shape, table = [6, 5], [0x90, 4, 0, 0, 0, 0]
    vectors = [0, 0, 6, 5, 12, 4, 0, 0, 4, 3, 2, 1]

    def whole(name, head=9, grid=0, table=table, kind=0x09, flags=4, vectors=vectors, rest=(0, 0)):
        put("chunks", name, bytes([head, 0, *shape, 0, grid, *table, kind, flags, *vectors, *rest]))

    whole("plain")
    whole("starts-inside", vectors=[0, 0, 6, 5, 12, 4, 2, 1, 4, 3, 2, 1])
    whole("absent", table=[0x90, 4, 0, 4, 0, 4])
    whole("sparse", grid=0x20, table=[0x90, 4, 2, 16, 1, 16, 3])
    whole("filtered", grid=0x08, table=[0x90, 4, 0, 10, 7, 0, 0, 0])
    whole("one-inside-another", grid=0x08, table=[0x90, 4, 0, 0, 4, 11, 0x92, 3, 0])
    whole("start-at-limit", vectors=[0, 0, 6, 5, 12, 4, 0xC5, 0, 4, 3, 2, 1])
    whole("huge-chunk", vectors=[0, 0, 6, 5, 12, 4, 0, 0, 0xC0, 3, 2, 1])
    whole("steps", flags=12, vectors=[0, 0, 3, 5, 24, 4, 0, 0, 4, 3, 2, 1], rest=(0, 0, 2, 1))
    whole(
        "steps-over-chunks",
        head=9,
        flags=12,
        vectors=[0, 0, 6, 5, 60, 4, 0, 0, 4, 3, 2, 1],
        rest=(0, 0, 5, 1),
    )
    whole(
        "steps-do-not-fit",
        flags=12,
        vectors=[0, 0, 6, 5, 12, 4, 0, 0, 4, 3, 2, 1],
        rest=(0, 0, 5, 1),
    )
    whole("fill", kind=0x0A, flags=0)
    whole("lost", kind=0x0B, flags=0)
    whole("reader", kind=0x8C, flags=0)
    whole("reader-no-chunk", kind=0x8C, flags=0, vectors=[0, 0, 6, 5, 20, 4, 0, 0, 0, 0, 0, 0])
    whole("dense", kind=0x08, flags=0, vectors=[0, 0, 6, 5, 20, 4, 0, 0, 0, 0, 0, 0])


if __name__ == "__main__":
    for make in (dtypes, names, npy, codec, encode, raw, side_file, manifest, packed, sums, chunks):
        make()
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    print(f"{len(files)} files, {sum(path.stat().st_size for path in files)} bytes")
