#!/usr/bin/env python3
"""Makes the golden npy files beside this script, and expected.json,
which says what must come out of them.

SPDX-License-Identifier: Apache-2.0

usage: python generate.py [FOLDER]

Needs numpy; without FOLDER the files beside the script are made anew.
Good files: values and digests come from numpy's own reader. Hostile files: headers written by hand,
with the statuses of which one must come. Small on purpose; the same bytes come out on every run.
"""

import hashlib
import io
import json
import pathlib
import sys
import warnings

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from generate_arrays import dtype_text, npy_frame, npy_header, plain_bytes, random_array, swapped
from reference_hash import content_hash

PLAIN = [
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
    "M8[s]",
    "M8[25us]",
    "M8",
    "m8[ns]",
    "m8[D]",
    "S5",
    "U3",
    "V6",
]
RECORDS = {
    "plain": [("a", "<f4"), ("b", "<i8")],
    "nested": [("a", [("x", "<f4"), ("y", ">i2")]), ("b", "S3")],
    "subarray": [("a", "<f4", (2, 3)), ("b", "?")],
    "odd-names": [
        ("{'descr': '<f8'}", "<f4"),
        ("fortran_order': True,", "<i4"),
        ('"shape": (9,)', "u1"),
        ("a b\\n", "<f2"),
    ],
    "titles": [(("a title", "a"), "<f4"), ("b", "<i2")],
}


def digest(array):
    """SHA-256 of the elements in C order, in little-endian form (records: as stored)."""
    return hashlib.sha256(
        plain_bytes(swapped(array) if array.dtype.str[0] == ">" else array)
    ).hexdigest()


def good_row(array):
    return {
        "shape": list(array.shape),
        "dtype": dtype_text(array.dtype),
        "sha256": digest(array),
        "hash": content_hash(array),
    }


def numpy_files():
    """Written by numpy itself, in all versions."""
    rng = numpy.random.default_rng(20)
    for name in PLAIN:
        array = random_array(rng, (3, 4), numpy.dtype(name))
        label = "".join(c if c.isalnum() else "-" for c in array.dtype.str[1:])
        yield "dtype-little-%s.npy" % label, save(array)
        if array.dtype.str[0] != "|":
            yield "dtype-big-%s.npy" % label, save(swapped(array))
    for name, fields in RECORDS.items():
        yield "record-%s.npy" % name, save(random_array(rng, (5,), numpy.dtype(fields)))
    yield (
        "record-aligned.npy",
        save(random_array(rng, (5,), numpy.dtype([("a", "u1"), ("b", "<f8")], align=True))),
    )
    yield (
        "record-utf8-names.npy",
        save(random_array(rng, (5,), numpy.dtype([("\u6e29\u5ea6", "<f4"), ("\u00e9", "<i2")]))),
    )
    cube = random_array(rng, (4, 3, 5), numpy.dtype("i4"))
    for version in ((1, 0), (2, 0), (3, 0)):
        yield "version-%d.npy" % version[0], save(cube, version)
        yield "version-%d-fortran.npy" % version[0], save(numpy.asfortranarray(cube), version)
    yield (
        "fortran-big-complex.npy",
        save(numpy.asfortranarray(swapped(random_array(rng, (6, 5), numpy.dtype("c16"))))),
    )
    for shape in ((), (0,), (0, 4), (4, 0), (1,), (1, 1, 1), (1,) * 32, (2,) * 6):
        yield (
            "shape-%s.npy"
            % ("x".join(map(str, shape)) if len(shape) < 9 else "ones-%d" % len(shape)),
            save(random_array(rng, shape, numpy.dtype("f4"))),
        )


def save(array, version=None):
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy warns about versions that old readers cannot read
        numpy.lib.format.write_array(file, array, version=version)
    return file.getvalue()


def odd_headers():
    """Legal, but not as numpy writes it now: (name, header text, version, padded)."""
    yield (
        "spaces",
        "  {  'descr' :'<i2'  ,'fortran_order':   False,   'shape'  :  (  2 ,3  ) ,  }  ",
        (1, 0),
        True,
    )
    yield "no-spaces", "{'descr':'<i2','fortran_order':False,'shape':(2,3)}", (1, 0), True
    yield "double-quotes", '{"descr": "<i2", "fortran_order": False, "shape": (2, 3)}', (1, 0), True
    yield "other-order", "{'shape': (2, 3), 'fortran_order': True, 'descr': '>i2'}", (1, 0), True
    yield (
        "python2-long",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (2L, 3L), }",
        (1, 0),
        True,
    )
    yield (
        "newlines",
        "{'descr': '<i2',\n 'fortran_order': False,\n\t'shape': (2,\n 3), }",
        (1, 0),
        True,
    )
    yield (
        "trailing-comma",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3,), }",
        (1, 0),
        True,
    )
    yield "unpadded", "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }\n", (1, 0), False
    yield "no-newline", "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }", (1, 0), False
    yield (
        "one-axis-no-space",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (6,)}",
        (2, 0),
        True,
    )
    yield (
        "escapes",
        "{'de\\x73cr': '\\x3ci2', 'fortran_order': False, 'shape': (2, 3), }",
        (1, 0),
        True,
    )
    yield (
        "type-without-size-order",
        "{'descr': 'i2', 'fortran_order': False, 'shape': (2, 3), }",
        (1, 0),
        True,
    )
    yield (
        "equals-order",
        "{'descr': '=i2', 'fortran_order': False, 'shape': (2, 3), }",
        (1, 0),
        True,
    )
    yield (
        "much-padding",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }" + " " * 9000,
        (1, 0),
        True,
    )
    yield (
        "fortran-one-axis",
        "{'descr': '<i2', 'fortran_order': True, 'shape': (6,), }",
        (1, 0),
        True,
    )
    yield (
        "record-list",
        "{'descr': [('a', '<i2'), ], 'fortran_order': False, 'shape': (6,), }",
        (1, 0),
        True,
    )
    yield (
        "record-double-quotes",
        '{"descr": [("it\'s", "<i2")], "fortran_order": False, "shape": (6,), }',
        (1, 0),
        True,
    )


def descr_header(descr, shape="(2, 3)", order="False"):
    return "{'descr': %s, 'fortran_order': %s, 'shape': %s, }" % (descr, order, shape)


BAD = ["corrupt"]
BAD_OR_UNSUPPORTED = ["corrupt", "unsupported"]


def hostile_headers():
    """(name, header text, statuses of which one must come); each with 12 bytes of data."""
    yield "empty", "", BAD
    yield "blank", "    ", BAD
    yield "not-a-dict", "('<i2', False, (2, 3))", BAD
    yield "unclosed-dict", "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3)", BAD
    yield "unclosed-string", "{'descr': '<i2, 'fortran_order': False, 'shape': (2, 3), }", BAD
    yield "unclosed-string-at-end", "{'descr': '<i2", BAD
    yield "unclosed-tuple", "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3 }", BAD
    yield "escape-at-end", "{'descr': '\\", BAD
    yield "text-behind", descr_header("'<i2'") + " and more", BAD
    yield "two-dicts", descr_header("'<i2'") * 2, BAD
    yield "missing-descr", "{'fortran_order': False, 'shape': (2, 3), }", BAD
    yield "missing-order", "{'descr': '<i2', 'shape': (2, 3), }", BAD
    yield "missing-shape", "{'descr': '<i2', 'fortran_order': False, }", BAD
    yield "extra-key", "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), 'more': 1}", BAD
    yield (
        "double-key",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (9, 9), 'shape': (2, 3)}",
        BAD,
    )
    yield "key-words-in-a-string", "{'descr': \"'shape': (2, 3), 'fortran_order': False\"}", BAD
    yield "order-is-a-number", descr_header("'<i2'", order="0"), BAD
    yield "order-is-a-string", descr_header("'<i2'", order="'False'"), BAD
    yield "order-is-none", descr_header("'<i2'", order="None"), BAD
    yield "shape-is-a-number", descr_header("'<i2'", "6"), BAD
    yield "shape-is-a-list", descr_header("'<i2'", "[2, 3]"), BAD
    yield "shape-in-parentheses", descr_header("'<i2'", "(6)"), BAD
    yield "shape-with-float", descr_header("'<i2'", "(2.0, 3)"), BAD
    yield "shape-with-string", descr_header("'<i2'", "('2', 3)"), BAD
    yield "shape-with-true", descr_header("'<i2'", "(True, 6)"), BAD
    yield "shape-with-expression", descr_header("'<i2'", "(1+1, 3)"), BAD
    yield "shape-with-call", descr_header("'<i2'", "(__import__('os').getpid(), 3)"), BAD
    yield "shape-negative", descr_header("'<i2'", "(-1, 3)"), BAD
    yield (
        "shape-2-63",
        descr_header("'<i2'", "(9223372036854775808,)"),
        [*BAD, "limit_exceeded", "short_file"],
    )
    yield (
        "shape-2-63-less-1",
        descr_header("'<i2'", "(9223372036854775807,)"),
        [*BAD, "limit_exceeded", "short_file"],
    )
    yield (
        "shape-2-64-and-6",
        descr_header("'<i2'", "(18446744073709551622,)"),
        [*BAD, "limit_exceeded"],
    )
    yield (
        "shape-100-digits",
        descr_header("'<i2'", "(1%s,)" % ("0" * 100)),
        [*BAD, "limit_exceeded"],
    )
    yield (
        "shape-product-overflow",
        descr_header("'<i2'", "(4294967296, 4294967296)"),
        [*BAD, "limit_exceeded", "short_file"],
    )
    yield (
        "shape-product-overflow-zero",
        descr_header("'<i2'", "(0, 4611686018427387904, 4611686018427387904)"),
        [*BAD, "limit_exceeded", "unsupported"],
    )
    yield (
        "shape-product-wraps-to-6",
        descr_header("'<i2'", "(6148914691236517206, 3)"),
        [*BAD, "limit_exceeded", "short_file"],
    )
    yield (
        "shape-65-axes",
        descr_header("'<i2'", "(%s6)" % ("1, " * 64)),
        [*BAD, "limit_exceeded", "unsupported"],
    )
    yield (
        "shape-10000-axes",
        descr_header("'<i2'", "(%s6)" % ("1, " * 9999)),
        [*BAD, "limit_exceeded", "unsupported"],
    )
    yield "deep-tuple", descr_header("'<i2'", "(" * 5000 + ")" * 5000), [*BAD, "limit_exceeded"]
    yield "deep-list", descr_header("[" * 20000), [*BAD, "limit_exceeded"]
    yield "unknown-type", descr_header("'<q2'"), BAD_OR_UNSUPPORTED
    yield "unknown-size", descr_header("'<f3'"), BAD_OR_UNSUPPORTED
    yield (
        "size-2-40",
        descr_header("'|S1099511627776'", "(1,)"),
        [*BAD_OR_UNSUPPORTED, "limit_exceeded", "short_file"],
    )
    yield (
        "size-2-32-and-2",
        descr_header("'|S4294967298'", "(6,)"),
        [*BAD_OR_UNSUPPORTED, "limit_exceeded", "short_file"],
    )
    yield "size-zero", descr_header("'|S0'"), ["unsupported"]
    yield "size-negative", descr_header("'|S-2'"), BAD_OR_UNSUPPORTED
    yield "long-double", descr_header("'<f16'", "(0,)"), ["unsupported"]
    yield "complex-long-double", descr_header("'<c32'", "(0,)"), ["unsupported"]
    yield "objects", descr_header("'|O'", "(1,)"), ["unsupported"]
    yield "objects-in-record", descr_header("[('a', '<i2'), ('b', '|O')]", "(1,)"), ["unsupported"]
    yield (
        "objects-deep-in-record",
        descr_header("[('a', [('x', '<i2'), ('y', 'O')])]", "(1,)"),
        ["unsupported"],
    )
    yield "descr-is-a-number", descr_header("2"), BAD_OR_UNSUPPORTED
    yield "descr-is-none", descr_header("None"), BAD_OR_UNSUPPORTED
    yield "descr-is-empty", descr_header("''"), BAD_OR_UNSUPPORTED
    yield "descr-with-zero-byte", descr_header("'<i2\\x00'"), BAD_OR_UNSUPPORTED
    yield "record-empty", descr_header("[]", "(1,)"), BAD_OR_UNSUPPORTED
    yield "record-of-strings", descr_header("['<i2']"), BAD
    yield "record-short-field", descr_header("[('a',)]"), BAD
    yield "record-long-field", descr_header("[('a', '<i2', (1,), 4)]"), BAD
    yield "record-name-is-number", descr_header("[(1, '<i2')]"), BAD
    yield "record-double-name", descr_header("[('a', '<i1'), ('a', '<i1')]"), BAD
    yield "record-negative-subarray", descr_header("[('a', '<i2', (-3,))]"), BAD
    yield (
        "record-huge-subarray",
        descr_header("[('a', '<i2', (4294967296, 4294967296))]", "(1,)"),
        [*BAD_OR_UNSUPPORTED, "limit_exceeded", "short_file"],
    )
    yield (
        "record-size-wraps",
        descr_header("[('a', '|S4294967295'), ('b', '|S3')]", "(6,)"),
        [*BAD_OR_UNSUPPORTED, "limit_exceeded", "short_file"],
    )
    yield "month-without-end", descr_header("'<M8[s'", "(1,)"), BAD_OR_UNSUPPORTED
    yield "unknown-unit", descr_header("'<M8[fortnight]'", "(1,)"), BAD_OR_UNSUPPORTED
    yield "data-too-short", descr_header("'<i2'", "(7,)"), ["short_file"]


def hostile_frames():
    """Wrong before the header's text begins."""
    good = npy_frame(descr_header("'<i2'"))
    yield "frame-version-0", good[:6] + b"\x00\x00" + good[8:], ["unsupported", "corrupt"]
    yield "frame-version-4", good[:6] + b"\x04\x00" + good[8:], ["unsupported"]
    yield "frame-version-1-1", good[:6] + b"\x01\x01" + good[8:], ["unsupported"]
    yield "frame-magic-only", good[:6], ["short_file", "corrupt"]
    yield "frame-no-length", good[:9], ["short_file", "corrupt"]
    yield "frame-length-beyond-file", good[:8] + b"\xff\xff" + good[10:], ["short_file", "corrupt"]
    yield (
        "frame-length-2-32",
        good[:6] + b"\x02\x00\xff\xff\xff\xff" + good[10:],
        ["short_file", "limit_exceeded", "corrupt"],
    )
    yield "frame-length-cuts-header", good[:8] + b"\x20\x00" + good[10:], ["corrupt"]
    wrong = b"{'descr': [('\xff\xfe', '<i2')], 'fortran_order': False, 'shape': (6,), }"
    yield "frame-not-utf8", npy_frame(wrong, (3, 0)), ["corrupt"]
    yield "frame-zero-bytes", good[:10] + b"\0" * (len(good) - 10), ["corrupt"]


def files():
    data = numpy.arange(100, 106, dtype="<i2").tobytes()
    for name, content in numpy_files():
        yield name, content, good_row(numpy.load(io.BytesIO(content)))
    for name, text, version, padded in odd_headers():
        content = npy_frame(text, version, padded) + data
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield "odd-%s.npy" % name, content, good_row(numpy.load(io.BytesIO(content)))
    content = npy_header("<i2", False, (2, 3)) + data + b"bytes behind the array"
    yield "odd-bytes-behind.npy", content, good_row(numpy.load(io.BytesIO(content)))
    for name, text, statuses in hostile_headers():
        yield "hostile-%s.npy" % name, npy_frame(text) + data, {"status": statuses}
    for name, content, statuses in hostile_frames():
        yield "hostile-%s.npy" % name, content + data * (len(content) > 20), {"status": statuses}


def generate(folder):
    expected = {}
    for name, content, row in files():
        assert name not in expected, name
        (folder / name).write_bytes(content)
        expected[name] = row
    lines = ",\n".join(
        ' "%s": %s' % (name, json.dumps(row)) for name, row in sorted(expected.items())
    )
    (folder / "expected.json").write_text("{\n%s\n}\n" % lines)


if __name__ == "__main__":
    generate(
        pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent
    )
