# Saving: what numpy and h5py read is what was given.
#
# SPDX-License-Identifier: Apache-2.0
import array as arrays
import os
import time
import weakref

import h5py
import ml_dtypes
import numpy
import pytest
import tegula
from tegula import _context

ARRAY = numpy.arange(60 * 7, dtype="f8").reshape(60, 7)
LAYOUTS = {
    "C": ARRAY.copy(), "F": numpy.asfortranarray(ARRAY),
    "reversed": ARRAY[::-1, ::-1].copy()[::-1, ::-1],
    "strided": numpy.repeat(ARRAY, 2, axis=1)[:, ::2], "swapped": ARRAY.astype(">f8"),
    "read-only": numpy.frombuffer(ARRAY.tobytes()).reshape(60, 7),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize(
    "arguments", [{}, {"order": "F"}, {"byte_order": ">"}, {"byte_order": "big"}], ids=str
)
def test_layouts_of_memory(tmp_path, name, arguments):
    tegula.save(LAYOUTS[name], tmp_path / "x.npy", **arguments)
    found = numpy.load(tmp_path / "x.npy")
    numpy.testing.assert_array_equal(found, ARRAY)
    assert found.flags.f_contiguous is (arguments.get("order") == "F")
    assert (found.dtype.byteorder == ">") is ("byte_order" in arguments)
    tegula.save(LAYOUTS[name], tmp_path / "x.h5", codec="shuffle,deflate:1")
    with h5py.File(tmp_path / "x.h5") as file:
        numpy.testing.assert_array_equal(file["data"], ARRAY)


def test_nothing_is_copied(tmp_path, monkeypatch):
    """The address that the library gets is that of the memory."""
    from tegula import _core

    seen = []
    real = _core.Array

    class Spy:
        @staticmethod
        def wrap(context, dtype, tiling, owner, address, strides, read_only):
            seen.append((address, strides))
            return real.wrap(context, dtype, tiling, owner, address, strides, read_only)

    monkeypatch.setattr(_core, "Array", Spy)
    for array in LAYOUTS.values():
        tegula.save(array, tmp_path / "x.npy", overwrite=True)
        assert seen.pop() == (array.__array_interface__["data"][0], array.strides)


@pytest.mark.parametrize(
    "dtype",
    [
        "?",
        "i1",
        "u2",
        ">i4",
        "f2",
        "c8",
        "M8[ns]",
        "m8[5s]",
        "S5",
        "U3",
        "V3",
        [("a", ">f4"), ("b", "S2")],
    ],
    ids=str,
)
def test_dtypes(tmp_path, dtype):
    array = (
        numpy.frombuffer(bytes(range(1, 1 + 6 * numpy.dtype(dtype).itemsize)), dtype)
        if dtype not in ("?", "U3")
        else numpy.array(
            [True, False] * 3 if dtype == "?" else ["a", "äö", "", "x", "y", "z"], dtype
        )
    )
    tegula.save(array, tmp_path / "x.npy")
    found = numpy.load(tmp_path / "x.npy")
    assert found.dtype == (array.dtype if array.dtype.names else array.dtype.newbyteorder("="))
    assert found.tobytes() == array.astype(found.dtype).tobytes()
    numpy.testing.assert_array_equal(
        tegula.load(tmp_path / "x.npy").local.tobytes(), found.tobytes()
    )


def test_bfloat16(tmp_path):
    array = numpy.arange(10).astype(ml_dtypes.bfloat16)
    tegula.save(array, tmp_path / "x.bin", format="raw")
    assert (tmp_path / "x.bin").read_bytes() == array.tobytes()
    tegula.save(LikeJax(array), tmp_path / "y.bin", format="raw")
    assert (tmp_path / "y.bin").read_bytes() == array.tobytes()
    with pytest.raises(tegula.UnsupportedError, match="bfloat16"):  # numpy would read it as V2
        tegula.save(array, tmp_path / "x.npy")


class LikeJax:
    """bfloat16 by DLPack, which numpy refuses, and by __array__."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **arguments):
        raise BufferError("Unsupported dtype in DLTensor.")

    def __dlpack_device__(self):
        return (1, 0)

    def __array__(self, dtype=None, copy=None):
        return self.array


class Foreign:
    """Shows DLPack only."""

    def __dlpack__(self, **arguments):
        return ARRAY.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return (1, 0)


@pytest.mark.parametrize(
    ("thing", "expected"),
    [
        (Foreign(), ARRAY),
        (memoryview(ARRAY), ARRAY),
        (arrays.array("i", [1, 2, 3]), numpy.array([1, 2, 3], "i4")),
        (bytearray(b"abc"), numpy.frombuffer(b"abc", "u1")),
        (numpy.float32(2.5), numpy.float32(2.5)),
        (3, numpy.array(3)),
    ],
)
def test_exporters(tmp_path, thing, expected):
    tegula.save(thing, tmp_path / "x.npy")
    found = numpy.load(tmp_path / "x.npy")
    assert found.dtype == expected.dtype
    numpy.testing.assert_array_equal(found, expected)


def test_loaded_arrays_and_shards(tmp_path):
    tegula.save(ARRAY, tmp_path / "x.npy")
    a = tegula.load(tmp_path / "x.npy", tiles=4)
    tegula.save(a, tmp_path / "shards", shards=3)
    assert sorted(os.listdir(tmp_path / "shards")) == [f"shard_000{i}.npy" for i in range(3)]
    numpy.testing.assert_array_equal(
        numpy.concatenate([numpy.load(path) for path in sorted((tmp_path / "shards").iterdir())]),
        ARRAY,
    )
    tegula.save(a, tmp_path / "x.bin", format="raw")
    assert (tmp_path / "x.bin").read_bytes() == ARRAY.tobytes()


def test_virtual_datasets_have_the_tiles(tmp_path):
    tegula.save(ARRAY, tmp_path / "x.npy")
    for arguments in ({"tiles": 4}, {"tile_shape": (25, 3)}):
        a = tegula.load(tmp_path / "x.npy", **arguments)
        tegula.save(a, tmp_path / "v.h5", layout="virtual", overwrite=True)
        with h5py.File(tmp_path / "v.h5") as file:
            assert file["data"].is_virtual
            assert len(file["data"].virtual_sources()) == len(a.tiles)
            numpy.testing.assert_array_equal(file["data"], ARRAY)
        numpy.testing.assert_array_equal(tegula.open(tmp_path / "v.h5")[...], ARRAY)


ATTRS = {
    "text": "äö", "empty": "", "bytes": b"xyz", "int": 3, "float": 2.5, "complex": 1 + 2j,
    "bool": True, "list": [1, 2, 3], "matrix": numpy.eye(2), "texts": ["a", "bc"],
    "big": numpy.arange(3, dtype=">i2"), "none": None, "fixed": numpy.array([b"ab", b"c"]),
}  # fmt: skip


@pytest.mark.parametrize("chunks", [True, False])
def test_chunks_are_no_bool(tmp_path, chunks):
    with pytest.raises(TypeError, match=r"chunks: .*bool"):
        tegula.save(ARRAY[:, 0], tmp_path / "x.h5", chunks=chunks)
    assert list(tmp_path.iterdir()) == []


def test_hdf5(tmp_path):
    tegula.save(
        ARRAY,
        tmp_path / "x.h5",
        "/g/a",
        chunks=(7, 3),
        codec="shuffle,deflate:4",
        attrs=ATTRS,
        fill=1.5,
    )
    tegula.save(-ARRAY, tmp_path / "x.h5", "b")
    with h5py.File(tmp_path / "x.h5") as file:
        a, b = file["g/a"], file["b"]
        assert (a.chunks, a.compression, a.compression_opts, a.shuffle, a.fillvalue) == (
            (7, 3),
            "gzip",
            4,
            True,
            1.5,
        )
        assert b.chunks is None
        numpy.testing.assert_array_equal(a, ARRAY)
        numpy.testing.assert_array_equal(b, -ARRAY)
        assert a.attrs.keys() == ATTRS.keys()
        assert a.attrs["none"] == h5py.Empty("f8")
        for name in ATTRS.keys() - {"none"}:
            numpy.testing.assert_array_equal(a.attrs[name], ATTRS[name])
    ours = tegula.open(tmp_path / "x.h5", "g/a").attrs
    for name, value in ATTRS.items():
        numpy.testing.assert_array_equal(ours[name], value)


@pytest.mark.parametrize(
    "dtype, fill",
    [("u1", 255), ("u8", 2**64 - 1), ("i1", -128), ("f4", 0.1), ("f4", numpy.inf), ("c8", 1j)],
)
def test_fill_values(tmp_path, dtype, fill):
    tegula.save(numpy.zeros(4, dtype), tmp_path / "x.h5", chunks=(2,), fill=fill)
    with h5py.File(tmp_path / "x.h5") as file:
        assert file["data"].fillvalue == numpy.dtype(dtype).type(fill)


@pytest.mark.parametrize(
    "dtype, fill",
    [
        ("i1", 300),
        ("u1", -1),
        ("i4", 2**40),
        ("i8", 2**63),
        ("f4", 1e300),
        ("f2", 10**6),
        ("c8", 1e300j),
        (ml_dtypes.bfloat16, 1e300),
        ("S2", b"abc"),
        ("V3", numpy.void(b"abcd")),
        ("f8", []),
        ("i4", [1, 2, 3]),
    ],
)
def test_fill_values_that_do_not_fit(tmp_path, dtype, fill):
    with pytest.raises(ValueError, match="fill: "):
        tegula.save(numpy.zeros(4, dtype), tmp_path / "x.h5", fill=fill)
    assert os.listdir(tmp_path) == []


def test_several_arrays_in_one_file(tmp_path):
    group = {"/a": ARRAY, "/g/b": ARRAY.astype("i2"), "c": numpy.asfortranarray(ARRAY)}
    tegula.save(group, tmp_path / "x.h5", codec="deflate", attrs={"c": {"n": 1}})
    with h5py.File(tmp_path / "x.h5") as file:
        for name, array in group.items():
            assert file[name].dtype == array.dtype
            assert file[name].compression == "gzip"
            numpy.testing.assert_array_equal(file[name], array)
        assert dict(file["c"].attrs) == {"n": 1}
    with pytest.raises(tegula.Error):
        tegula.save({"d": ARRAY, "/a": ARRAY}, tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5") as file:
        assert "d" not in file


def test_hdf5_functions(tmp_path):
    from tegula.io import hdf5

    path = tmp_path / "x.h5"
    tegula.save({"old": ARRAY, "x": ARRAY}, path)
    hdf5.to_file(ARRAY, path, "x")
    with h5py.File(path) as file:
        assert list(file) == ["x"]
        assert file["x"].chunks is None
    numpy.testing.assert_array_equal(hdf5.from_file(path, "x"), ARRAY)
    for shape, chunk in (((5,), (2,)), ((5, 4, 3, 2), (2, 2, 2, 2)), ((4, 2), (9, 9)), ((), ())):
        array = numpy.arange(numpy.prod(shape), dtype="i8").reshape(shape)
        hdf5.to_file(array, path, "x")
        pieces = list(hdf5.from_file_batched(path, "x", chunk))
        seen = numpy.full(shape, -1)
        offsets = [offset for _, offset in pieces]
        assert offsets == sorted(offsets)
        for piece, offset in pieces:
            assert all(n <= most for n, most in zip(piece.shape, chunk, strict=True))
            box = tuple(slice(low, low + n) for low, n in zip(offset, piece.shape, strict=True))
            assert (seen[box] == -1).all()
            seen[box] = piece
        numpy.testing.assert_array_equal(seen, array)
    for wrong in ((2, 2), (0,), (-1,)):
        hdf5.to_file(ARRAY[0], path, "x")
        with pytest.raises(ValueError, match="chunk_size"):
            hdf5.from_file_batched(path, "x", wrong)
    with pytest.raises(FileNotFoundError):
        hdf5.from_file(path, "y")
    walk = hdf5.from_file_batched(path, "x", (3,))
    next(walk)
    walk.close()


def test_failures_of_what_is_read_ahead_come_in_their_turn(tmp_path):
    path, array = tmp_path / "x.h5", numpy.random.default_rng(1).random((200, 7))
    with h5py.File(path, "w") as file:
        chunk = file.create_dataset(
            "x", data=array, chunks=(20, 7), compression="gzip"
        ).id.get_chunk_info(6)
    with open(path, "r+b") as raw:
        raw.seek(chunk.byte_offset)
        raw.write(b"\xff" * 64)
    walk = tegula.io.hdf5.from_file_batched(path, "x", (60, 7))
    for at in (0, 60):
        piece, _ = next(walk)
        time.sleep(0.1)  # the next one is read meanwhile
        numpy.testing.assert_array_equal(piece, array[at : at + 60])
    with pytest.raises(tegula.CorruptError, match=r"\(120, 0\)"):
        next(walk)
    assert next(walk, None) is None


# ---- in the background ----


def test_background_saves(tmp_path):
    for i in range(8):
        tegula.save(ARRAY + i, tmp_path / f"{i}.npy", block=False)
    # waits for it
    numpy.testing.assert_array_equal(tegula.load(tmp_path / "7.npy").local, ARRAY + 7)
    tegula.save(numpy.zeros(1 << 23), tmp_path / "8.npy", block=False)
    assert tegula.open(tmp_path / "8.npy", threads=1).shape == (1 << 23,)  # with other threads too
    tegula.fence()
    for i in range(8):
        numpy.testing.assert_array_equal(numpy.load(tmp_path / f"{i}.npy"), ARRAY + i)


def test_background_saves_that_end_just_after_they_were_asked(tmp_path):
    """A wait that is over and a save that ends right behind it:
    the save has not failed for that."""
    for i in range(2000):
        tegula.save(ARRAY, tmp_path / f"{i % 4}.npy", overwrite=True, block=False)
        for operation in list(_context._background):
            while not operation.wait(0.0):
                pass
    tegula.fence()


def test_background_saves_have_their_attributes_and_fill_value(tmp_path):
    """They are written when the call that named them has long returned and its
    memory is used by others."""
    array = numpy.random.default_rng(0).integers(0, 1 << 14, 1 << 17).astype("i4")
    attrs = {
        "unit" * 10: "metre " * 20,
        "n" * 50: numpy.arange(100),
        "s": numpy.array([b"ab", b"c"]),
        "t": ["a", "bc"],
        "e": None,
        "z": [],
    }
    for number in range(5):
        tegula.save(
            array, tmp_path / f"slow_{number}.h5", codec="deflate:9", chunks=(1 << 12,), block=False
        )
        more = {**attrs, "number": number}
        tegula.save(
            numpy.zeros(8, "i4"),
            tmp_path / f"{number}.h5",
            chunks=(4,),
            fill=1234567 + number,
            attrs=more,
            block=False,
        )
        junk = [os.urandom(32 + i % 100) for i in range(5000)]
    tegula.fence()
    del junk
    for number in range(5):
        with h5py.File(tmp_path / f"{number}.h5") as file:
            assert file["data"].fillvalue == 1234567 + number
            found = dict(file["data"].attrs)
        assert (
            found.keys() == {*attrs, "number"}
            and found["number"] == number
            and found["unit" * 10] == "metre " * 20
        )
        assert (
            (found["n" * 50] == numpy.arange(100)).all()
            and found["s"].tolist() == [b"ab", b"c"]
            and found["t"].tolist() == ["a", "bc"]
        )


@pytest.mark.parametrize("name", ["x.npy", "x.h5"])
def test_background_saves_stay_in_the_folder_they_were_for(tmp_path, monkeypatch, name):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    tegula.save(numpy.zeros(1 << 20), name, block=False)
    monkeypatch.chdir(tmp_path / "b")
    tegula.fence()
    assert os.listdir(tmp_path / "a") == [name] and os.listdir(tmp_path / "b") == []
    (tmp_path / "b").rmdir()
    tegula.save(ARRAY, tmp_path / name, block=False)  # from a folder that is no more
    tegula.fence()


def test_a_virtual_file_waits_for_saves_to_its_sources(tmp_path):
    """That a file maps another one is known only when it has been opened."""
    shape = (2000, 5000)
    layout = h5py.VirtualLayout(shape, "f4")
    layout[:] = h5py.VirtualSource("s.h5", "data", shape)
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file.create_virtual_dataset("x", layout)
    tegula.save(numpy.zeros(shape, "f4"), tmp_path / "s.h5")
    for number in range(1, 4):
        tegula.save(numpy.full(shape, number, "f4"), tmp_path / "s.h5", overwrite=True, block=False)
        found = tegula.open(tmp_path / "v.h5")[::1999, ::2500]
        numpy.testing.assert_array_equal(found, numpy.full((2, 2), number, "f4"))
    tegula.fence()


def test_fence_raises_each_failure_once(tmp_path):
    (tmp_path / "file").write_text("")
    for name in ("a", "b"):
        tegula.save(ARRAY, tmp_path / "file" / f"{name}.npy", block=False)
    tegula.save(ARRAY, tmp_path / "good.npy", block=False)
    with pytest.raises(tegula.Error, match="file") as caught:
        tegula.fence()
    assert "1 more saves failed" in caught.value.__notes__[-1]
    numpy.testing.assert_array_equal(numpy.load(tmp_path / "good.npy"), ARRAY)  # all have ended
    with pytest.raises(tegula.Error, match="file"):
        tegula.fence()
    tegula.fence()
    numpy.testing.assert_array_equal(numpy.load(tmp_path / "good.npy"), ARRAY)


def test_two_threads_that_fence_do_not_hear_of_a_failure_twice(tmp_path):
    """Both wait for the same operation and see it fail."""
    from tegula import _context

    class Operation:
        def wait(self, seconds):
            if self in _context._background:
                _context._background.remove(self)  # the other thread was quicker
            raise tegula.StorageError("no")

    tegula.fence()
    tegula.save(ARRAY, tmp_path / "x.npy", block=False)  # the list is this process's
    _context._background.append(Operation())
    tegula.fence()


def test_saves_that_have_ended_hold_nothing(tmp_path):
    """Without a fence, too."""
    from tegula import _context

    for i in range(20):
        array = numpy.full(1000, i)
        alive = weakref.ref(array)
        tegula.save(array, tmp_path / "x.npy", overwrite=True, block=False)
        del array
        while numpy.load(tmp_path / "x.npy")[0] != i if (tmp_path / "x.npy").exists() else True:
            time.sleep(0.001)
    assert len(_context._background) < 5
    tegula.fence()
    assert alive() is None


def test_the_end_of_the_program_waits(run_python, tmp_path):
    run_python(
        "import numpy, tegula, sys; tegula.save(numpy.ones(1 << 20), sys.argv[1], block=False)",
        tmp_path / "x.npy",
    )
    assert numpy.load(tmp_path / "x.npy").sum() == 1 << 20


def test_the_end_of_the_program_says_what_failed(run_python, tmp_path):
    (tmp_path / "file").touch()
    program = """
import numpy, os, sys, tegula
os.dup2(1, 2)
tegula.save(numpy.ones(3), sys.argv[1] + "/x.npy", block=False)
"""
    assert run_python(program, tmp_path / "file").startswith(
        "tegula: a save in the background failed: "
    )


# ---- refusals ----


def test_the_old_file_stays(tmp_path):
    tegula.save(ARRAY, tmp_path / "x.npy")
    with pytest.raises(FileExistsError) as caught:
        tegula.save(-ARRAY, tmp_path / "x.npy")
    assert caught.value.status == "exists"
    numpy.testing.assert_array_equal(numpy.load(tmp_path / "x.npy"), ARRAY)
    tegula.save(-ARRAY, tmp_path / "x.npy", overwrite=True, durable=True)
    numpy.testing.assert_array_equal(numpy.load(tmp_path / "x.npy"), -ARRAY)
    assert os.listdir(tmp_path) == ["x.npy"]


@pytest.mark.parametrize(
    ("array", "arguments", "error", "says"),
    [
        ([1, 2], {}, TypeError, "list"),
        ("text", {}, TypeError, "str"),
        (numpy.array([{}]), {}, TypeError, "object"),
        (numpy.zeros(2, ml_dtypes.float8_e4m3fn), {}, TypeError, "float8"),
        (numpy.ma.masked_array([1, 2], [0, 1]), {}, TypeError, "masked"),
        (numpy.zeros(2, "g"), {}, ValueError, None),
        (ARRAY, {"order": "A"}, ValueError, "order"),
        (ARRAY, {"byte_order": "middle"}, ValueError, "byte_order"),
        (ARRAY, {"shards": 0}, ValueError, "shards"),
        (ARRAY, {"comm": 1}, ValueError, "comm"),
        (ARRAY, {"format": "tiff"}, ValueError, "tiff"),
        (ARRAY, {"codec": "zip", "format": "hdf5"}, ValueError, "zip"),
        (ARRAY, {"layout": "round", "format": "hdf5"}, ValueError, "round"),
        (numpy.zeros(2, "f4,g"), {"format": "hdf5"}, tegula.UnsupportedError, "long double"),
        (
            {"a": ARRAY, "b": numpy.zeros(2, "f4,g")},
            {"format": "hdf5"},
            tegula.UnsupportedError,
            "long double",
        ),
        (ARRAY, {"attrs": {"a": {}}, "format": "hdf5"}, TypeError, "'a'"),
        (ARRAY, {"attrs": {"a": 1}}, ValueError, "attributes"),
        (ARRAY, {"attrs": 3}, TypeError, "mapping"),
        (ARRAY, {"fill": "x", "format": "hdf5"}, TypeError, None),
        (ARRAY, {"block": False, "progress": True}, ValueError, "progress"),
        ({"a": ARRAY}, {"dataset": "b", "format": "hdf5"}, ValueError, "dataset"),
        ({"a": ARRAY}, {"block": False, "format": "hdf5"}, ValueError, "block"),
        ({"a": ARRAY}, {"attrs": {"b": {}}, "format": "hdf5"}, ValueError, "attrs"),
        ({"a": ARRAY}, {"format": "npy"}, ValueError, None),
        ({1: ARRAY}, {"format": "hdf5"}, TypeError, "the name of a dataset"),
    ],
)
def test_what_cannot_be_saved(tmp_path, array, arguments, error, says):
    with pytest.raises(error, match=says):
        tegula.save(array, tmp_path / "x", **arguments)
    assert os.listdir(tmp_path) == []
