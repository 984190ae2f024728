# Datasets whose elements are arrays (HDF5's array types): axes behind the dataset's own, judged by
# h5py.
#
# SPDX-License-Identifier: Apache-2.0
import numpy
import pytest
import tegula

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes and judges these files")

import hdf5_files  # noqa: E402

INNER = [
    ("(3,)<f4", (3,)),
    ("(2,2)>f4", (2, 2)),
    ("(2,)?", (2,)),
    ("(3,)S5", (3,)),
    ("(2,3)>i2", (2, 3)),
    ("(2,)<c8", (2,)),
    ("(2,)>f2", (2,)),
]


def values(dtype, shape):
    base = numpy.dtype(dtype).base
    numbers = numpy.arange(numpy.prod(shape + numpy.dtype(dtype).shape, dtype=int)) % 100
    data = numbers % 2 if base.kind == "b" else numbers
    return data.astype(base).reshape(shape + numpy.dtype(dtype).shape)


def write(file, name, dtype, data, prepare=None, shape=(7, 4)):
    """A dataset of that array type; `prepare` gets its creation list."""
    kind = h5py.h5t.py_create(numpy.dtype(dtype), logical=True)
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if prepare:
        prepare(plist)
    made = h5py.Dataset(
        h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple(shape), plist)
    )
    if data is not None:
        made[...] = data


def check(path, name):
    """The whole and boxes, those that cut elements too."""
    with h5py.File(path) as file:
        want = file[name][()]
    got = tegula.open(path, name)
    assert got.shape == want.shape and got.dtype == want.dtype.newbyteorder("=")
    assert numpy.array_equal(got[...], want)
    assert numpy.array_equal(tegula.load(path, name, tiles=3), want)
    for box in (
        (slice(1, 6), slice(2, 3), 1),
        (slice(0, 7, 2), slice(None), slice(1, 2)),
        (3, 2, slice(0, 1)),
        (slice(2, 5), slice(1, 4), slice(1, None)),
        (Ellipsis, 1),
    ):
        assert numpy.array_equal(got[box], want[box])


def chunked(plist):
    plist.set_chunk((3, 3))


def filtered(plist):
    plist.set_chunk((2, 4))
    plist.set_shuffle()
    plist.set_deflate(3)


def unusual(plist):
    """A filter that libhdf5 undoes."""
    plist.set_chunk((3, 4))
    plist.set_filter(h5py.h5z.FILTER_NBIT, 0)


@pytest.mark.parametrize("prepare", [None, chunked, filtered, unusual, "compact", "external"])
@pytest.mark.parametrize("dtype, inner", INNER)
def test_their_axes_follow(tmp_path, dtype, inner, prepare):
    data, path = values(dtype, (7, 4)), tmp_path / "a.h5"
    how = prepare
    if prepare == "compact":

        def how(plist):
            plist.set_layout(h5py.h5d.COMPACT)

    if prepare == "external":
        data.tofile(tmp_path / "raw")

        def how(plist):
            plist.set_external(b"raw", 0, data.nbytes)

    with h5py.File(path, "w") as file:
        write(file, "x", dtype, None if prepare == "external" else data, how)
    if prepare == "external":
        assert numpy.array_equal(tegula.open(path, "x")[...], data)
    else:
        check(path, "x")


@pytest.mark.parametrize("late", [False, True])
def test_virtual_datasets_of_them(tmp_path, late):
    dtype, count = numpy.dtype(("<f4", (3,))), 300 if late else 4
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    space = h5py.h5s.create_simple((count, 4))
    for k in range(count):
        with h5py.File(tmp_path / f"s{k}.h5", "w") as file:
            write(file, "x", dtype, values(dtype, (4,)) + k, shape=(4,))
        space.select_hyperslab((k, 0), (1, 4))
        plist.set_virtual(space, b"s%d.h5" % k, b"x", h5py.h5s.create_simple((4,)))
    space.select_all()
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="latest") as file:
        h5py.h5d.create(file.id, b"v", h5py.h5t.py_create(dtype), space, plist)
    want = values(dtype, (4,)) + numpy.arange(count).reshape(count, 1, 1)
    got = tegula.open(path, "v")
    assert got.shape == (count, 4, 3) and numpy.array_equal(got[...], want.astype("f4"))
    assert numpy.array_equal(got[1:3, 2, 1:], want[1:3, 2, 1:])


@pytest.mark.parametrize("order", "<>")
def test_what_was_never_written_is_the_fill_value(tmp_path, order):
    kind, path = numpy.dtype((order + "i4", (3,))), tmp_path / "a.h5"
    fills = {"same": [7, 7, 7], "other": [1, 2, 3]}
    with h5py.File(path, "w") as file:
        write(file, "zeros", kind, None)
        for name, fill in fills.items():

            def prepare(plist, fill=fill):
                plist.set_chunk((2, 2))
                hdf5_files.set_fill(
                    plist, h5py.h5t.py_create(kind), numpy.array(fill, kind.base).tobytes()
                )

            write(file, name, kind, None, prepare)
            file[name][:2, :2] = numpy.full((2, 2, 3), 5)
            assert file[name][6, 3].tolist() == fill
    check(path, "zeros")
    check(path, "same")
    with pytest.raises(tegula.UnsupportedError, match="fill value differs within an element"):
        tegula.open(path, "other")


def test_records_in_arrays_and_arrays_in_records(tmp_path):
    inner = numpy.dtype([("a", ">i2"), ("b", "<f8", (2, 2))])
    data = numpy.zeros((7, 4, 2), inner)
    data["a"] = numpy.arange(56).reshape(7, 4, 2)
    data["b"] = numpy.arange(7 * 4 * 2 * 4).reshape(7, 4, 2, 2, 2)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        kind = h5py.h5t.py_create(numpy.dtype((inner, (2,))))
        for name, prepare in (("x", None), ("z", filtered)):
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            if prepare:
                prepare(plist)
            space = h5py.h5s.create_simple((7, 4))
            made = h5py.h5d.create(file.id, name.encode(), kind, space, plist)
            made.write(h5py.h5s.ALL, h5py.h5s.ALL, data, kind)
    for name in "xz":
        got = tegula.open(tmp_path / "a.h5", name)
        assert got.dtype == inner and got.shape == (7, 4, 2)
        assert numpy.array_equal(got[...], data)
        assert numpy.array_equal(got[2:5, 1:, 1], data[2:5, 1:, 1])


def test_arrays_of_arrays_and_of_what_cannot_be_loaded(tmp_path):
    path = tmp_path / "a.h5"
    deep = h5py.h5t.array_create(h5py.h5t.array_create(h5py.h5t.STD_I16BE, (2,)), (3,))
    data = numpy.arange(24, dtype=">i2").reshape(4, 3, 2)
    odd = h5py.h5t.STD_I32LE.copy()
    odd.set_precision(20)
    with h5py.File(path, "w") as file:
        space = h5py.h5s.create_simple((4,))
        h5py.h5d.create(file.id, b"deep", deep, space).write(h5py.h5s.ALL, h5py.h5s.ALL, data, deep)
        for name, base in (("text", h5py.h5t.py_create(h5py.string_dtype(), True)), ("odd", odd)):
            h5py.h5d.create(file.id, name.encode(), h5py.h5t.array_create(base, (2,)), space)
    assert numpy.array_equal(tegula.open(path, "deep")[...], data)
    with pytest.raises(tegula.UnsupportedError, match="variable length"):
        tegula.open(path, "text")
    with pytest.raises(tegula.UnsupportedError, match="in a form that numpy has not"):
        tegula.open(path, "odd")
