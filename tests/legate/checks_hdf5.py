# The three functions of legate.io.hdf5 and ours, in all combinations; h5py and numpy judge.
# SPDX-License-Identifier: Apache-2.0
import inspect
import os
import sys

import cupynumeric
import h5py
import numpy
import tegula
import tegula.legate as ours
from legate.core import LogicalArray, get_legate_runtime
from legate.core import types as ty
from legate.io import hdf5 as theirs
from tegula import Dataset
from tegula.legate import _hdf5, _tasks
from tegula.legate._errors import as_theirs

from harness import Skip
from make_files import COLUMNS, SHAPES, name_of, of_shape

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]


def seen(array):
    assert isinstance(array, LogicalArray), type(array)
    return numpy.asarray(cupynumeric.asarray(array))


def same(array, expected):
    found = seen(array)
    assert (
        found.dtype == expected.dtype
        and found.shape == expected.shape
        and numpy.array_equal(found, expected)
    ), (found, expected)


def by_h5py(path, name):
    with h5py.File(path) as file:
        return file[name][()]


def values(dtype, shape=(13, 5)):
    return (
        (numpy.arange(numpy.prod(shape)) % 97 % (2 if dtype == "?" else 97))
        .reshape(shape)
        .astype(dtype)
    )


def wait():
    get_legate_runtime().issue_execution_fence(block=True)


def raises(kinds, call, *words):
    try:
        call()
    except kinds as error:
        if not isinstance(kinds, tuple):
            kinds = (kinds,)
        assert all(isinstance(error, kind) for kind in kinds), (type(error).__mro__, kinds)
        for word in words:
            assert word in str(error), error
        return error
    raise AssertionError(f"expected {kinds}")


def check_we_write_all_read(files, scratch):
    for dtype in DTYPES:
        expected = values(dtype)
        ours.to_file(cupynumeric.asarray(expected), scratch / "x.h5", "x")
        assert (
            numpy.array_equal(by_h5py(scratch / "x.h5", "x"), expected)
            and by_h5py(scratch / "x.h5", "x").dtype == expected.dtype
        )
        same(ours.from_file(scratch / "x.h5", "x"), expected)
        same(theirs.from_file(scratch / "x.h5", "x"), expected)


def check_they_write_all_read(files, scratch):
    for number, dtype in enumerate(DTYPES):
        expected, path = values(dtype), scratch / f"{number}.h5"
        theirs.to_file(cupynumeric.asarray(expected), path, "x")
        wait()
        assert by_h5py(path, "x").dtype == expected.dtype
        same(ours.from_file(path, "x"), expected)
        same(theirs.from_file(path, "x"), expected)


def check_complex(files, scratch):
    """They refuse to read it, and end the process when they write it."""
    for dtype in ("F", "D"):
        expected = (values("f8") - 1j * values("f8")[::-1]).astype(dtype)
        ours.to_file(cupynumeric.asarray(expected), scratch / "x.h5", "x")
        assert numpy.array_equal(by_h5py(scratch / "x.h5", "x"), expected)
        same(ours.from_file(scratch / "x.h5", "x"), expected)
    same(ours.from_file(files / "plain.h5", "complex"), by_h5py(files / "plain.h5", "complex"))


def check_shapes_in_batches_of_two(files, scratch):
    for shape in SHAPES:
        expected, chunk, path = of_shape(shape), (2,) * len(shape), scratch / f"{name_of(shape)}.h5"
        theirs.to_file(cupynumeric.asarray(expected), path, "x")
        ours.to_file(cupynumeric.asarray(expected), scratch / "x.h5", "x")
        wait()
        for file, name in (
            (path, "x"),
            (scratch / "x.h5", "x"),
            (files / "plain.h5", name_of(shape)),
        ):
            both = [
                [(seen(piece), at) for piece, at in module.from_file_batched(file, name, chunk)]
                for module in (ours, theirs)
            ]
            assert [at for _, at in both[0]] == [at for _, at in both[1]]
            for (a, at), (b, _) in zip(*both, strict=True):
                box = tuple(slice(lo, lo + 2) for lo in at)
                assert (
                    a.dtype == b.dtype
                    and numpy.array_equal(a, b)
                    and numpy.array_equal(a, expected[box])
                    and a.shape == b.shape
                )
            same(ours.from_file(file, name), expected)


def check_batches_are_read_ahead(files, scratch):
    """One of them, unasked; where memory is short none."""
    real, room, begun = Dataset._read_box, _hdf5.room, []

    def noted(self, lo, *rest):
        begun.append(lo[0] // 50)
        return real(self, lo, *rest)

    Dataset._read_box = noted
    try:
        for most, expected in (
            (room, {0, 1}),
            (lambda: 4 * 50 * 7 * 4, {0, 1}),
            (lambda: 4 * 50 * 7 * 4 - 1, {0}),
        ):
            begun.clear()
            _hdf5.room = most
            pieces = ours.from_file_batched(files / "plain.h5", "rows", (50, 7))
            piece, at = next(pieces)
            wait()
            assert at == (0, 0) and set(begun) == expected, begun
            assert sys.getrefcount(piece) == 2  # nobody else keeps what is the program's
            assert [at for _, at in pieces] == [(50, 0), (100, 0), (150, 0)] and set(begun) == {
                0,
                1,
                2,
                3,
            }
    finally:
        Dataset._read_box, _hdf5.room = real, room


def check_failures_of_batches_that_are_read_ahead(files, scratch):
    """They come with the batch; the damage is in rows 120 to 139."""
    expected = numpy.load(files / "rows.npy")
    pieces = ours.from_file_batched(files / "damaged.h5", "x", (60, 7))
    for at in (0, 60):
        piece, _ = next(pieces)
        wait()
        same(piece, expected[at : at + 60])
    raises((tegula.CorruptError, ValueError), lambda: next(pieces), "(120, 0)", "damaged.h5")
    assert next(pieces, None) is None
    pieces = ours.from_file_batched(files / "damaged.h5", "x", (60, 7))
    next(pieces), next(pieces)
    pieces.close()  # nobody asks for it
    assert not _tasks.runs and not _tasks.datasets.kept
    same(ours.from_file(files / "plain.h5", "rows"), expected)


def check_groups(files, scratch):
    array = by_h5py(files / "plain.h5", "rows")
    for name in ("rows", "/rows", "a/b/rows", "/a/b/rows"):
        same(ours.from_file(files / "plain.h5", name), array)
        same(theirs.from_file(files / "plain.h5", name), array)
    ours.to_file(cupynumeric.asarray(array), scratch / "x.h5", "g/h/x")
    assert numpy.array_equal(by_h5py(scratch / "x.h5", "/g/h/x"), array)
    same(theirs.from_file(scratch / "x.h5", "g/h/x"), array)


def check_scalars(files, scratch):
    """Of one element on one axis, as theirs; load keeps the shape."""
    expected = seen(theirs.from_file(files / "plain.h5", "scalar"))
    same(ours.from_file(files / "plain.h5", "scalar"), expected)
    assert expected.shape == (1,)
    same(ours.load(files / "plain.h5", "scalar"), numpy.array(3.5))
    ours.to_file(cupynumeric.array(2.25), scratch / "x.h5", "x")
    with h5py.File(scratch / "x.h5") as file:
        assert file["x"].shape == () and file["x"][()] == 2.25
    same(theirs.from_file(scratch / "x.h5", "x"), numpy.array([2.25]))
    pieces = list(ours.from_file_batched(scratch / "x.h5", "x", ()))
    assert len(pieces) == 1 and pieces[0][1] == ()
    same(pieces[0][0], numpy.array(2.25))


def check_empty(files, scratch):
    same(ours.from_file(files / "plain.h5", "empty"), numpy.zeros((0, COLUMNS), "f4"))
    ours.to_file(cupynumeric.zeros((0, 4)), scratch / "x.h5", "x")
    assert by_h5py(scratch / "x.h5", "x").shape == (0, 4)
    assert list(ours.from_file_batched(scratch / "x.h5", "x", (2, 2))) == []


def check_empty_of_all_dtypes(files, scratch):
    for dtype in [*DTYPES, "F", "D"]:
        expected = numpy.zeros((3, 0), dtype)
        ours.to_file(cupynumeric.asarray(expected), scratch / "x.h5", "x")
        assert by_h5py(scratch / "x.h5", "x").dtype == dtype
        same(ours.from_file(scratch / "x.h5", "x"), expected)


def check_virtual(files, scratch):
    array = numpy.load(files / "rows.npy")
    ours.to_file(cupynumeric.asarray(array), scratch / "x.h5", "x", layout="virtual")
    with h5py.File(scratch / "x.h5") as file:
        assert file["x"].is_virtual and numpy.array_equal(file["x"][()], array)
    os.rename(scratch / "x.h5", scratch / "y.h5")  # its tiles are found from its own folder
    same(ours.from_file(scratch / "y.h5", "x"), array)
    same(theirs.from_file(scratch / "y.h5", "x"), array)
    theirs.to_file(cupynumeric.asarray(array), scratch / "t.h5", "x")
    wait()
    same(ours.from_file(scratch / "t.h5", "x"), array)


def check_contiguous_by_default(files, scratch):
    ours.to_file(cupynumeric.arange(10), scratch / "x.h5", "x")
    with h5py.File(scratch / "x.h5") as file:
        assert not file["x"].is_virtual and file["x"].chunks is None
    assert os.listdir(scratch) == ["x.h5"]


def check_the_whole_file_is_replaced(files, scratch):
    for module in (ours, theirs):
        ours.to_file(cupynumeric.arange(10), scratch / "x.h5", "old")
        module.to_file(cupynumeric.arange(5), scratch / "x.h5", "new")
        wait()
        with h5py.File(scratch / "x.h5") as file:
            assert list(file) == ["new"]


def check_gzip_and_opaque(files, scratch):
    same(ours.from_file(files / "plain.h5", "gzip"), numpy.load(files / "rows.npy"))
    mine, other = (
        seen(module.from_file(files / "plain.h5", "opaque")) for module in (ours, theirs)
    )
    assert mine.dtype == other.dtype and mine.tolist() == other.tolist()


def check_byte_order(files, scratch):
    """They give its bytes as they are."""
    same(ours.from_file(files / "plain.h5", "big"), numpy.load(files / "rows.npy"))


def check_bitshuffle(files, scratch):
    filtered(files, "bitshuffle")


def check_zstd(files, scratch):
    filtered(files, "zstd")


def check_blosc2(files, scratch):
    filtered(files, "blosc2")


def filtered(files, name):
    try:
        array = ours.from_file(files / "filters.h5", name)
    except tegula.UnsupportedError as error:
        if "built without" in str(error) or "no lib" in str(error):
            raise Skip(str(error)) from None
        raise
    same(array, numpy.load(files / "rows.npy"))


def check_missing(files, scratch):
    wait()
    raises(
        (RuntimeError, tegula.NotFoundError, FileNotFoundError),
        lambda: ours.from_file(scratch / "no.h5", "x"),
        "no.h5",
    )
    raises(RuntimeError, lambda: theirs.from_file(scratch / "no.h5", "x"))
    raises(
        (ValueError, tegula.NotFoundError),
        lambda: ours.from_file(files / "plain.h5", "no"),
        "plain.h5",
        "no",
    )
    raises(ValueError, lambda: theirs.from_file(files / "plain.h5", "no"))
    raises(FileNotFoundError, lambda: next(ours.from_file_batched(scratch / "no.h5", "x", (2,))))
    raises(FileNotFoundError, lambda: next(theirs.from_file_batched(scratch / "no.h5", "x", (2,))))
    raises(KeyError, lambda: next(ours.from_file_batched(files / "plain.h5", "no", (2,))))
    raises(KeyError, lambda: next(theirs.from_file_batched(files / "plain.h5", "no", (2,))))
    for module in (ours, theirs):
        raises(ValueError, lambda module=module: module.from_file(files / "plain.h5", "a"))


def check_unreadable(files, scratch):
    (scratch / "x.h5").write_text("no HDF5")
    for module in (ours, theirs):
        raises(RuntimeError, lambda module=module: module.from_file(scratch / "x.h5", "x"))
        raises(RuntimeError, lambda module=module: module.from_file(scratch, "x"))
        raises(ValueError, lambda module=module: module.from_file(files / "plain.h5", "records"))
        raises(IndexError, lambda module=module: module.from_file(files / "plain.h5", "seven"))
    raises(ValueError, lambda: ours.from_file(scratch, "x"), "folder")
    whole = (files / "plain.h5").read_bytes()
    (scratch / "short.h5").write_bytes(whole[: len(whole) // 2])
    for module in (ours, theirs):
        raises(RuntimeError, lambda module=module: module.from_file(scratch / "short.h5", "x"))
        raises(RuntimeError, lambda module=module: module.from_file("", "x"))
        for path in ("x.h5", "short.h5"):
            raises(
                OSError,
                lambda module=module, path=path: next(
                    module.from_file_batched(scratch / path, "x", (2,))
                ),
            )
        raises(
            IsADirectoryError,
            lambda module=module: next(module.from_file_batched(scratch, "x", (2,))),
        )
        raises(OSError, lambda module=module: next(module.from_file_batched("", "x", (2,))))
        raises(
            KeyError,
            lambda module=module: next(module.from_file_batched(files / "plain.h5", "", (2,))),
        )
        for name in ("dangling", "outside", "rows/x"):
            raises(
                RuntimeError,
                lambda module=module, name=name: module.from_file(files / "plain.h5", name),
            )
            raises(
                KeyError,
                lambda module=module, name=name: next(
                    module.from_file_batched(files / "plain.h5", name, (2,))
                ),
            )
    # what docs/legate.md says differs
    for name, their in (
        ("a", AttributeError),
        ("null", TypeError),
        ("records", NotImplementedError),
    ):
        raises(
            ValueError,
            lambda name=name: next(ours.from_file_batched(files / "plain.h5", name, (2,))),
        )
        raises(
            their,
            lambda name=name, their=their: next(
                theirs.from_file_batched(files / "plain.h5", name, (2,))
            ),
        )
    raises(ValueError, lambda: ours.from_file(files / "plain.h5", "null"))
    assert theirs.from_file(files / "plain.h5", "null").shape == (1,)
    # the superuser may read everything
    forbidden = as_theirs(tegula.AccessError("no", path="x.h5"), "x.h5")
    assert (
        isinstance(forbidden, RuntimeError)
        and isinstance(forbidden, PermissionError)
        and forbidden.path == "x.h5"
    )


def check_wrong_targets(files, scratch):
    array = cupynumeric.arange(10)
    for module in (ours, theirs):
        raises(ValueError, lambda module=module: module.to_file(array, scratch, "x"))
        raises(
            TypeError, lambda module=module: module.to_file(numpy.arange(3), scratch / "x.h5", "x")
        )
        raises(TypeError, lambda module=module: module.to_file(array, scratch / "x.h5", 3))
        unbound = get_legate_runtime().create_array(ty.float32, ndim=2)
        raises(
            ValueError,
            lambda module=module, unbound=unbound: module.to_file(unbound, scratch / "x.h5", "x"),
        )
    assert os.listdir(scratch) == []
    (scratch / "file").write_text("x")
    raises(tegula.Error, lambda: ours.to_file(array, scratch / "file/x.h5", "x"))
    raises(tegula.Error, lambda: ours.to_file(array, str(scratch) + "/new/", "x"))


def check_missing_parents(files, scratch):
    for number, module in enumerate((ours, theirs)):
        module.to_file(cupynumeric.arange(4), scratch / f"a{number}/b/x.h5", "x")
        wait()
        assert by_h5py(scratch / f"a{number}/b/x.h5", "x").tolist() == [0, 1, 2, 3]


def check_relative_paths(files, scratch):
    before = os.getcwd()
    os.chdir(scratch)
    try:
        ours.to_file(cupynumeric.arange(4), "x.h5", "x")
        same(ours.from_file("x.h5", "x"), numpy.arange(4))
    finally:
        os.chdir(before)
    assert (scratch / "x.h5").exists()


def check_lengths_of_batches(files, scratch):
    for module in (ours, theirs):
        for chunk in ((0,), (-1,), (2, 2), ()):
            raises(
                ValueError,
                lambda module=module, chunk=chunk: list(
                    module.from_file_batched(files / "plain.h5", "s5", chunk)
                ),
            )
        for chunk in (2, (2.5,)):
            raises(
                TypeError,
                lambda module=module, chunk=chunk: list(
                    module.from_file_batched(files / "plain.h5", "s5", chunk)
                ),
            )
        for chunk in (None, "ab", (None,), ([1],)):
            words = (
                ()
                if module is theirs
                else ("chunk_size: expected whole numbers, one per axis, found",)
            )
            raises(
                TypeError,
                lambda module=module, chunk=chunk: list(
                    module.from_file_batched(files / "plain.h5", "s5", chunk)
                ),
                *words,
            )
        # nothing is looked at before the first step
        module.from_file_batched(files / "no.h5", "s5", (0,))
        assert [at for _, at in module.from_file_batched(files / "plain.h5", "s5", [9])] == [(0,)]
    raises(ValueError, lambda: list(ours.from_file_batched(files / "plain.h5", "s4_2", (-1, -1))))
    # numbers whose products and sums wrap around
    for chunk in (numpy.array([100, 7], "i1"), numpy.array([128, 16], "u1")):
        pieces = list(ours.from_file_batched(files / "plain.h5", "rows", chunk))
        assert [at for _, at in pieces] == [(0, 0), (int(chunk[0]), 0)]
        assert numpy.array_equal(
            numpy.concatenate([seen(piece) for piece, _ in pieces]), numpy.load(files / "rows.npy")
        )


def check_signatures(files, scratch):
    """Theirs are compiled; what their stubs and docstrings say."""
    names = {
        "from_file": ["path", "dataset_name"],
        "to_file": ["array", "path", "dataset_name"],
        "from_file_batched": ["path", "dataset_name", "chunk_size"],
    }
    for name, expected in names.items():
        mine = inspect.signature(getattr(ours, name)).parameters
        assert [
            key for key, one in mine.items() if one.kind is one.POSITIONAL_OR_KEYWORD
        ] == expected
        assert all(
            one.default is not one.empty for one in mine.values() if one.kind is one.KEYWORD_ONLY
        )
    assert (
        list(inspect.signature(theirs.from_file_batched).parameters) == names["from_file_batched"]
    )
    for name in ("from_file", "to_file"):
        head = getattr(theirs, name).__doc__.partition(")")[0]
        assert [word.split()[-1] for word in head.partition("(")[2].split(",")] == names[name], head


def check_newer_names(files, scratch):
    """Newer versions of Legate say obj, and take stores."""
    array = get_legate_runtime().create_array(dtype=ty.int64, shape=(3, 4))
    get_legate_runtime().issue_fill(array, 7)
    for number, call in enumerate(
        (
            lambda path: ours.to_file(obj=array, path=path, dataset_name="foo"),
            lambda path: ours.to_file(obj=array.data, path=path, dataset_name="foo"),
            lambda path: ours.to_file(array.data, path, "foo"),
        )
    ):
        call(scratch / f"{number}.h5")
        assert numpy.array_equal(by_h5py(scratch / f"{number}.h5", "foo"), numpy.full((3, 4), 7))
    ours.save(array.data, scratch / "x.npy")
    assert numpy.array_equal(numpy.load(scratch / "x.npy"), numpy.full((3, 4), 7))
    path = scratch / "none.h5"
    for arguments in (
        {"path": path, "dataset_name": "foo"},
        {"array": array, "obj": array, "path": path, "dataset_name": "foo"},
        {"obj": array, "path": path},
        {"obj": array, "dataset_name": "foo"},
        {"obj": 3, "path": path, "dataset_name": "foo"},
    ):
        try:
            ours.to_file(**arguments)
        except TypeError:
            assert not path.exists()
        else:
            raise AssertionError(arguments)
