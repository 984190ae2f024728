# Wrong arguments, each in its turn, to everything public: an exception that names what is wrong,
# and nothing else happens.
#
# SPDX-License-Identifier: Apache-2.0
import decimal
import inspect
import io
import math
import os
import re

import numpy as np
import pytest
import tegula
from tegula.io import hdf5


class Thing:
    def __repr__(self):
        raise RuntimeError("it cannot say what it is")


class Mine(Exception):
    pass


class Raises:
    def __index__(self):
        raise Mine


class NoPath:
    def __fspath__(self):
        return 3


WRONG = [
    None, True, False, 0, 1, -1, 5, 2**31, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, -(10**30),
    10**5000, 0.5, 1.0, math.nan, math.inf, 1j, "", "x", "a\0b", "\ud800", "no", b"x", b"",
    bytearray(b"ab"), (), [], {}, (0,), (1,), (-1,), (2**63,), (10**30, 10**30), (2**62, 4), (6, 4),
    (1.5, 2), (None,), ("a",), (True, True), (1,) * 65, (Raises(), 1), np.int64(1), np.float64(2),
    np.array(3), np.array([6, 4]), np.zeros(3), np.dtype("f4"), Thing(), Raises(), NoPath(),
    lambda *_: None, int, {1, 2}, slice(2), ..., decimal.Decimal(1), ["a", 3], [None], {"a": 1},
    {"a": {"b": 1}}, range(3), [[1], [1, 2]], object,
]  # fmt: skip
KINDS = (TypeError, ValueError, IndexError, BufferError, tegula.Error, Mine)
# what Python, numpy or the extension say of their own arguments
MISLEADING = re.compile(
    r"argument \d|object is not|cannot be interpreted|not supported between|truth value|too "
    r"(big|large) to convert|codec can't"
    r"|embedded null|exceeds the limit|is ambiguous|has no len|not subscriptable|NULL|unexpected "
    r"keyword|tuple index|invalid keyword"
    r"|rule 'same_kind'"
)
# clear enough
NUMPYS = re.compile(
    r"only integer scalar arrays can be converted|slice indices must be integers|only integers, "
    r"slices"
)


def reader(box, out):
    out[...] = 1


def calls(folder):
    """(name, a call that takes the argument, names of arguments)"""
    array, number = np.arange(24.0).reshape(6, 4), iter(range(10**6))
    np.save(folder / "x.npy", array)
    array.tofile(folder / "x.bin")
    hdf5.to_file(array, folder / "x.h5", "/g/x")
    dataset, loaded = tegula.open(folder / "x.npy"), tegula.load(folder / "x.npy", tiles=2)

    def new(suffix):
        return folder / f"new{next(number)}{suffix}"

    def of(function, skip=("comm", "open_options", "_defer"), **fixed):
        names = [name for name in inspect.signature(function).parameters if name not in skip]
        return lambda **given: function(
            **{**{key: made() if callable(made) else made for key, made in fixed.items()}, **given}
        ), names

    raw = {"path": folder / "x.bin", "format": "raw", "dtype": "f8"}
    yield "open", *of(tegula.open, path=folder / "x.npy")
    yield "open hdf5", *of(tegula.open, path=folder / "x.h5")
    yield "open raw", *of(tegula.open, **raw, shape=(6, 4))
    yield "open raw rows", *of(tegula.open, **raw, row_shape=(4,))
    yield "load", *of(tegula.load, path=folder / "x.npy")
    yield "dataset.load", *of(dataset.load)
    yield "dataset.read", *of(dataset.read)
    yield "dataset[]", lambda key: dataset[key], ["key"]
    yield "dataset[:, ]", lambda key: dataset[:, key], ["key"]
    yield "dataset[:]", lambda key: dataset[key:], ["key"]
    yield "dataset[::]", lambda key: dataset[::key], ["key"]
    yield "dataset.explain", *of(dataset.explain)
    yield "dataset.hash", *of(dataset.hash)
    yield "dataset.batches", *of(dataset.batches, chunk=(6, 4))
    yield "array[]", lambda key: loaded[key], ["key"]
    yield "array.__dlpack__", *of(loaded.__dlpack__, skip=("copy",))
    yield "save npy", *of(tegula.save, array=lambda: array, path=lambda: new(".npy"))
    yield "save hdf5", *of(tegula.save, array=lambda: array, path=lambda: new(".h5"))
    yield (
        "save attribute",
        lambda value: tegula.save(array, new(".h5"), attrs={"a": value}),
        ["value"],
    )
    yield (
        "save attribute's name",
        lambda name: tegula.save(array, new(".h5"), attrs={name: 1}),
        ["name"],
    )
    yield "save mapping", lambda value: tegula.save({"a": value}, new(".h5")), ["value"]
    yield "save mapping's name", lambda name: tegula.save({name: array}, new(".h5")), ["name"]
    yield (
        "from_reader",
        *of(tegula.from_reader, skip=("read",), read=lambda: reader, shape=(6, 4), dtype="f4"),
    )
    yield "hdf5.from_file", *of(hdf5.from_file, path=folder / "x.h5", dataset_name="/g/x")
    yield (
        "hdf5.from_file_batched",
        *of(hdf5.from_file_batched, path=folder / "x.h5", dataset_name="/g/x", chunk_size=(6, 4)),
    )
    yield (
        "hdf5.to_file",
        *of(hdf5.to_file, array=lambda: array, path=lambda: new(".h5"), dataset_name="/x"),
    )


def hashable(value):
    try:
        return hash(value) is not None
    except TypeError:
        return False


def test_everything_wrong(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    refused, bad = 0, []
    for name, call, names in calls(tmp_path):
        for argument in names:
            for wrong in WRONG:
                if argument == "name" and not hashable(wrong):
                    continue
                try:
                    call(**{argument: wrong})
                except KINDS as error:
                    refused += 1
                    text = str(error)
                    if (
                        type(error) is UnicodeEncodeError
                        or (MISLEADING.search(text) and not NUMPYS.search(text))
                        or len(text) > 600
                    ):
                        bad.append((name, argument, type(error).__name__, text[:200]))
                except BaseException as error:
                    bad.append((name, argument, type(error).__name__, str(error)[:200]))
    tegula.fence()
    assert not bad, "\n".join(map(str, bad))
    assert refused > 3000
    assert not [left for left in os.listdir(tmp_path) if left.startswith(".")]  # temporary files


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: tegula.open(5), TypeError, "path: expected a path or a list of paths, found int"),
        (
            lambda: tegula.open(["x", 5]),
            TypeError,
            "path: expected a path or a list of paths, found int",
        ),
        (
            lambda: tegula.open(io.BytesIO(b"x\n\0")),
            TypeError,
            "path: expected a path or a list of paths, found BytesIO",
        ),
        (
            lambda: tegula.save(np.zeros(3), ["x.npy"]),
            TypeError,
            "path: expected a path, found list",
        ),
        (lambda: tegula.open("x", b"x"), TypeError, "dataset: expected text (str), found bytes"),
        (
            lambda: tegula.load("x", tiles=10**30),
            ValueError,
            "tiles: expected a whole number from 1 on, found 1000000000",
        ),
        (
            lambda: tegula.load("x", tile_shape=(10**30,)),
            ValueError,
            "tile_shape: expected lengths below 2^63",
        ),
        (lambda: tegula.load("x", axis="rows"), TypeError, "axis: expected a whole number"),
        (
            lambda: tegula.open("x", shape={6, 4}),
            TypeError,
            "shape: expected a tuple of integers, found set",
        ),
        (lambda: tegula.open("x", dtype="f9"), TypeError, "dtype: 'f9' is no dtype"),
        (
            lambda: tegula.save(np.zeros(3), "x.npy", overwrite="no"),
            TypeError,
            "overwrite: expected True or False, found 'no'",
        ),
        (lambda: tegula.save(np.zeros(3), ""), ValueError, "path: it is empty"),
        (lambda: tegula.save({}, "x.h5"), ValueError, "array: there is none in the mapping"),
        (
            lambda: tegula.save(np.zeros(3), "x.h5", fill="x"),
            TypeError,
            "fill: 'x' does not fit into elements of dtype float64",
        ),
        (
            lambda: tegula.save(np.zeros(3), "x.h5", attrs={"a": [[1], [1, 2]]}),
            TypeError,
            "lists of different lengths",
        ),
        (
            lambda: tegula.from_reader(reader, (2,), "f4")[10**30],
            IndexError,
            "is out of bounds for axis 0 of length 2",
        ),
        (
            lambda: tegula.from_reader(reader, None, "f4"),
            TypeError,
            "shape: expected a tuple of integers, found None",
        ),
    ],
)
def test_texts(tmp_path, monkeypatch, call, kind, words):
    monkeypatch.chdir(tmp_path)
    np.save("x", np.zeros(3))
    os.rename("x.npy", "x")
    with pytest.raises(kind, match=re.escape(words)):
        call()
    assert os.listdir(tmp_path) == ["x"]
