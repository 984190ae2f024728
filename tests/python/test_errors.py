# Errors: the class, the fields, the cause.
#
# SPDX-License-Identifier: Apache-2.0
import os
import pickle

import numpy
import pytest
import tegula


def failing(tmp_path, kind):
    """A call that fails in that way, and the path that the error must name."""
    path = tmp_path / "x.npy"
    numpy.save(path, numpy.arange(1000.0))
    if kind == "not_found":
        return lambda: tegula.open(tmp_path / "none.npy"), tmp_path / "none.npy"
    if kind == "short_file":
        os.truncate(path, 4000)
    if kind == "corrupt":
        path.write_bytes(b"\x93NUMPY\x01\x00\x10\x00{'descr': broken}")
    if kind == "unsupported":
        numpy.save(path, numpy.array([{}]), allow_pickle=True)
    if kind == "changed":
        ds = tegula.open(path)
        numpy.save(path, numpy.arange(1001.0))
        return lambda: ds[:], path
    if kind == "mismatch":
        numpy.save(tmp_path / "y.npy", numpy.arange(3, dtype="i2"))
        return lambda: tegula.open([path, tmp_path / "y.npy"]), tmp_path / "y.npy"
    if kind == "incomplete":
        (tmp_path / "set").mkdir()
        for i in (0, 2):
            numpy.save(tmp_path / "set" / f"part_{i}.npy", numpy.zeros(3))
        return lambda: tegula.load(tmp_path / "set"), None
    return lambda: tegula.load(path), path


@pytest.mark.parametrize(
    ("status", "kind", "builtin"),
    [
        ("not_found", tegula.NotFoundError, FileNotFoundError),
        ("short_file", tegula.ShortFileError, OSError),
        ("corrupt", tegula.CorruptError, ValueError),
        ("unsupported", tegula.UnsupportedError, ValueError),
        ("changed", tegula.ChangedError, OSError),
        ("mismatch", tegula.MismatchError, ValueError),
        ("incomplete", tegula.IncompleteError, ValueError),
    ],
)
def test_fields_and_classes(tmp_path, status, kind, builtin):
    call, path = failing(tmp_path, status)
    with pytest.raises(builtin) as caught:
        call()
    error = caught.value
    assert type(error) is kind
    assert isinstance(error, tegula.Error)
    assert error.status == status
    assert "\n" not in str(error) and str(error)
    assert error.rank in (None, 0)
    if path is not None:
        assert error.path == str(path)
        assert str(path) in str(error)
    if isinstance(error, OSError):
        assert error.filename == error.path
    if error.hint:
        assert error.__notes__ == [f"hint: {error.hint}"]
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again).keys()) == (kind, str(error), vars(error).keys())
    assert [getattr(again, name) for name in ("path", "offset", "hint", "rank", "errno")] == [
        getattr(error, name) for name in ("path", "offset", "hint", "rank", "errno")
    ]


def test_every_status_has_a_class():
    """The names and numbers are those of the header."""
    import pathlib
    import re

    from tegula import _errors

    header = (pathlib.Path(__file__).parents[2] / "include/tegula/tegula.h").read_text()
    rows = re.findall(r'^  X\((\w+), (\d+), "(\w+)"', header, re.M)
    statuses = {text: int(value) for _, value, text in rows if int(value) >= 10}
    assert len(statuses) > 15
    assert statuses == _errors._NUMBERS
    assert _errors._KINDS.keys() == statuses.keys()
    for kind in _errors._KINDS.values():
        assert kind.__name__ in tegula.__all__


def test_permission(run_python, tmp_path):
    (tmp_path / "x.npy").touch(mode=0)
    tmp_path.chmod(0o755)
    for folder in tmp_path.parents:
        if folder.name.startswith(("pytest-", "test_")):
            folder.chmod(0o755)
    program = """
import os, sys, tegula
if os.geteuid() == 0: os.setresuid(65534, 65534, 65534)
try: tegula.open(sys.argv[1])
except PermissionError as error: print(error.status, error.errno, error.path)
"""
    assert run_python(program, tmp_path / "x.npy") == f"permission 13 {tmp_path / 'x.npy'}\n"


def test_too_much_memory(tmp_path):
    path = tmp_path / "x.bin"
    with open(path, "wb") as file:
        file.truncate(1 << 43)
    with pytest.raises(MemoryError) as caught:
        tegula.load(path, format="raw", dtype="f8", row_shape=(1024,))
    assert isinstance(caught.value, tegula.OutOfMemoryError)


def test_names_that_are_no_text(tmp_path):
    name = os.fsencode(tmp_path) + b"/\xff\xfe.npy"
    with pytest.raises(FileNotFoundError) as caught:
        tegula.open(name)
    assert os.fsencode(caught.value.path) == name
    with open(name, "wb") as file:
        numpy.save(file, numpy.arange(3))
    ds = tegula.open(name)
    assert os.fsencode(ds.files[0]) == name
    assert pickle.loads(pickle.dumps(ds))[:].tolist() == [0, 1, 2]
    assert tegula.open(os.fsdecode(name))[1] == 1


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"format": "tiff"}, ValueError, "tiff"),
        ({"dtype": "f3"}, TypeError, None),
        ({"dtype": object}, TypeError, "object"),
        ({"dtype": ("f4", (2,))}, TypeError, None),
        ({"order": "A"}, ValueError, "order"),
        ({"byte_order": "little"}, ValueError, "byte_order"),
        ({"missing": "maybe"}, ValueError, "missing"),
        ({"threads": 0}, ValueError, "threads"),
        ({"threads": 2.0}, ValueError, "threads"),
        ({"threads": True}, ValueError, "threads"),
        ({"threads": "2"}, TypeError, "threads"),
        ({"columns": ["a"]}, ValueError, "columns"),
        ({"null_value": 0}, ValueError, "null_value"),
        ({"comm": object()}, TypeError, "comm"),
        ({"shape": 1.5}, TypeError, "shape"),
        ({"shape": (2.0,), "format": "raw", "dtype": "f8"}, TypeError, None),
        ({"shape": (1,) * 65, "format": "raw", "dtype": "f8"}, ValueError, "64"),
        ({"shape": (-1,), "format": "raw", "dtype": "f8"}, ValueError, None),
        (
            {"shape": (1 << 70,), "format": "raw", "dtype": "f8"},
            ValueError,
            "shape: expected lengths below",
        ),
        ({"offset": -1, "format": "raw", "dtype": "f8", "row_shape": ()}, ValueError, None),
        ({"expect_files": 2}, tegula.MismatchError, "2"),
        ({"expect_rows": 2}, tegula.MismatchError, "2"),
        ({"dataset": "other"}, tegula.NotFoundError, "other"),
    ],
)
def test_wrong_arguments_of_open(tmp_path, arguments, error, says):
    numpy.save(tmp_path / "x.npy", numpy.arange(5.0))
    with pytest.raises(error, match=says):
        tegula.open(tmp_path / "x.npy", **arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"tiles": 0}, ValueError, "tiles"),
        ({"tiles": 1.5}, ValueError, "tiles"),
        ({"overdecompose": 0}, ValueError, "overdecompose"),
        ({"axis": 2}, ValueError, "axis"),
        ({"axis": -3}, ValueError, "axis"),
        ({"tile_shape": (1,)}, ValueError, "tile_shape"),
        ({"tile_shape": (0, 1)}, ValueError, None),
        ({"tile_shape": (1, 1), "tiles": 2}, ValueError, "tile_shape"),
        ({"device": "cuda:0"}, ValueError, "device"),
        ({"comm": 1}, TypeError, "comm"),
        ({"progress": 3}, TypeError, "progress"),
        ({"nonsense": 3}, TypeError, "nonsense"),
    ],
)
def test_wrong_arguments_of_load(shards, arguments, error, says):
    with pytest.raises(error, match=says):
        tegula.load(shards[0], **arguments)


@pytest.mark.parametrize("path", [None, 3, [None], object()])
def test_what_is_no_path(path):
    with pytest.raises(TypeError):
        tegula.open(path)


def test_empty_and_broken_paths():
    for path in ([], "a\0b"):
        with pytest.raises(ValueError):
            tegula.open(path)


# ---- readers ----


def test_what_a_reader_raises_is_the_cause(tmp_path):
    def broken(box, out):
        if box[0].start <= 70 < box[0].stop:
            raise KeyError("part 70")
        out[...] = 1

    ds = tegula.from_reader(broken, (100, 3), "f4", "mine", chunks=(10, 3))
    for call in (
        lambda: ds[...],
        lambda: tegula.load(ds),
        ds.hash,
        lambda: ds.read(out=numpy.zeros((100, 3), "f4")),
    ):
        with pytest.raises(tegula.StorageError, match="KeyError: 'part 70'") as caught:
            call()
        assert isinstance(caught.value.__cause__, KeyError)
    assert (ds[:70] == 1).all()
    assert (ds.format, ds.files, ds.chunks) == ("mine", [], (10, 3))


@pytest.mark.parametrize(
    ("raised", "status"),
    [
        (FileNotFoundError("x"), "not_found"),
        (MemoryError(), "out_of_memory"),
        (EOFError("x"), "short_file"),
        (tegula.CorruptError("bad part", path="/p", offset=7), "corrupt"),
        (ValueError("a\nb\0"), "io"),
    ],
)
def test_what_it_means(raised, status):
    def broken(box, out):
        raise raised

    with pytest.raises(tegula.Error) as caught:
        tegula.from_reader(broken, (4,), "f4")[:]
    assert caught.value.status == status
    assert caught.value.__cause__ is raised
    if status == "corrupt":
        assert (str(caught.value), caught.value.path, caught.value.offset) == ("bad part", "/p", 7)


def test_a_reader_must_not_keep_its_memory():
    kept = []
    ds = tegula.from_reader(lambda box, out: kept.append(out), (4,), "f4")
    with pytest.raises(tegula.Error, match="kept"):
        ds[:]


def test_readers_fill_any_memory():
    def fill(box, out):
        rows, columns = (numpy.arange(side.start, side.stop) for side in box)
        out[...] = rows[:, None] * 1000 + columns

    expected = numpy.add.outer(numpy.arange(60) * 1000, numpy.arange(40)).astype("i4")
    for chunks in (None, (7, 9)):
        ds = tegula.from_reader(fill, (60, 40), ">i4" if chunks else "i4", chunks=chunks)
        numpy.testing.assert_array_equal(ds[...], expected)
        numpy.testing.assert_array_equal(ds[5:50:3, ::-7], expected[5:50:3, ::-7])
        numpy.testing.assert_array_equal(tegula.load(ds, tile_shape=(13, 11)).local, expected)
        out = numpy.zeros((60, 40), "i4")[::-1, ::-1]
        numpy.testing.assert_array_equal(tegula.load(ds, out=out).local, expected)
    with pytest.raises(TypeError, match="function"):
        tegula.from_reader(3, (4,), "f4")
