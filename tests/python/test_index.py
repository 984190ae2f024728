# What stands between brackets gives what numpy gives.
#
# SPDX-License-Identifier: Apache-2.0
import numpy
import pytest
import tegula

SHAPE = (23, 5, 17)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """(dataset, array) in several layouts."""
    import h5py

    folder = tmp_path_factory.mktemp("index")
    array = numpy.arange(numpy.prod(SHAPE), dtype="i4").reshape(SHAPE)
    numpy.save(folder / "c.npy", array)
    numpy.save(folder / "f.npy", numpy.asfortranarray(array))
    numpy.save(folder / "big.npy", array.astype(">i4"))
    (folder / "shards").mkdir()
    for i, part in enumerate(numpy.split(array, [1, 4, 5, 6, 20])):
        numpy.save(folder / f"shards/part_{i}.npy", part)
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("gzip", data=array, chunks=(4, 5, 6), compression="gzip")
        file.create_dataset("plain", data=array, chunks=(4, 5, 6))
        file.create_dataset("contiguous", data=array)
        some = file.create_dataset("some", SHAPE, "i4", chunks=(4, 5, 6), fillvalue=9)
        some[5:14, :, 3:9] = array[5:14, :, 3:9]
        held = some[()]
    opened = [
        (tegula.open(folder / name), array) for name in ("c.npy", "f.npy", "big.npy", "shards")
    ]
    opened += [
        (tegula.open(folder / "x.h5", name), array) for name in ("gzip", "plain", "contiguous")
    ]
    return [*opened, (tegula.open(folder / "x.h5", "some"), held)]


def random_key(rng):
    def part(length):
        kind = rng.integers(0, 4)
        if kind == 0:
            return int(rng.integers(-length, length))
        if kind == 1:
            return numpy.int64(rng.integers(-length, length))
        ends = [
            None if rng.random() < 0.3 else int(rng.integers(-length - 3, length + 4))
            for _ in range(2)
        ]
        step = None if kind == 2 else int(rng.choice([-7, -3, -2, -1, 1, 2, 3, 11]))
        return slice(*ends, step)

    count = rng.integers(0, 4)
    parts = [part(length) for length in SHAPE[:count]]
    if rng.random() < 0.5:
        at = int(rng.integers(0, count + 1))
        parts = (
            parts[:at]
            + [Ellipsis]
            + [part(length) for length in SHAPE[len(SHAPE) - (count - at) :]]
        )
    return tuple(parts)


def test_random_selections(pairs):
    rng = numpy.random.default_rng(20)
    for _ in range(300):
        key = random_key(rng)
        for ds, array in pairs:
            found, expected = ds[key], array[key]
            assert numpy.shape(found) == numpy.shape(expected), key
            # where numpy makes arrays without axes
            assert type(found) is type(expected) or any(part is Ellipsis for part in key), key
            numpy.testing.assert_array_equal(found, expected, err_msg=str(key))


def test_out_takes_the_same_selections(pairs):
    rng = numpy.random.default_rng(21)
    for _ in range(100):
        key = random_key(rng)
        for ds, array in pairs:
            expected = array[key]
            memory = numpy.full((3 * numpy.size(expected) + 1,), -1, "i4")
            out = (
                memory[1::3].reshape(numpy.shape(expected))
                if numpy.ndim(expected) <= 1
                else numpy.full(expected.T.shape, -1, "i4").T
            )
            assert ds.read(key, out) is out
            numpy.testing.assert_array_equal(out, expected, err_msg=str(key))
            if numpy.ndim(expected) == 1:
                assert (memory[0::3] == -1).all() and (memory[2::3] == -1).all()


@pytest.mark.parametrize(
    ("key", "error", "says"),
    [
        (numpy.newaxis, TypeError, "newaxis"),
        ((slice(None), None), TypeError, "newaxis"),
        ([1, 2], TypeError, "list"),
        (numpy.array([True]), TypeError, "ndarray"),
        (True, TypeError, "bool"),
        (numpy.True_, TypeError, "bool"),
        (1.0, TypeError, "float"),
        ("x", TypeError, "str"),
        (23, IndexError, "axis 0 of length 23"),
        ((0, -6), IndexError, "axis 1 of length 5"),
        ((0, 0, 0, 0), IndexError, "3 axes"),
        ((..., ...), IndexError, "ellipsis"),
        (slice(None, None, 0), ValueError, "zero"),
        (slice(1.5, None), TypeError, "slice"),
    ],
)
def test_what_is_no_selection(pairs, key, error, says):
    for ds, _ in pairs:
        with pytest.raises(error, match=says):
            ds[key]


@pytest.mark.parametrize(
    "dtype", ["?", "f2", "c16", "S3", "U2", "M8[s]", "m8[ns]", "V5", "i4,f8", ">f4", ">U2"]
)
def test_small_boxes_of_every_dtype(tmp_path, dtype):
    dtype = numpy.dtype(dtype)
    bytes_ = numpy.random.default_rng(22).integers(
        0, 2 if dtype.kind == "b" else 100, 6 * 4 * dtype.itemsize, dtype="u1"
    )
    array = (
        bytes_.view(dtype).reshape(6, 4)
        if dtype.kind != "U"
        else bytes_.astype("U2").ravel()[:24].astype(dtype).reshape(6, 4)
    )
    numpy.save(tmp_path / "x.npy", array)
    ds = tegula.open(tmp_path / "x.npy")
    for key in (
        2,
        (2, 3),
        slice(1, 5),
        (slice(2, 4), slice(0, 2)),
        (..., 1),
        slice(3, 3),
        (-1, slice(1, None)),
    ):
        found, expected = ds[key], array[key]
        assert type(found) is type(
            expected
        ) and found.dtype == ds.dtype == array.dtype.newbyteorder("=")
        assert found.tobytes() == expected.astype(ds.dtype).tobytes()


def test_keys_that_are_no_indices_are_refused_as_ever(pairs):
    for ds, array in pairs:
        for key in (
            (0, 0, 0, 0),
            (0, 0, 0, 0, 0),
            (..., ...),
            (0, ..., ...),
            23,
            -24,
            1 << 70,
            (0, slice(None, 1 << 70), 99),
        ):
            with pytest.raises(IndexError):
                array[key]
            with pytest.raises(IndexError):
                ds[key]
        for key in (True, 1.0, "a", slice("a"), slice(0.0, 1), None, [1, 2], numpy.True_):
            with pytest.raises(TypeError):
                ds[key]
        with pytest.raises(ValueError, match="slice step cannot be zero"):
            ds[::0]
        assert ds[-(1 << 70) : 1 << 70].shape == SHAPE


@pytest.mark.parametrize("change", ["longer", "written", "shorter"])
def test_a_small_box_of_a_file_that_changed_is_refused(tmp_path, change):
    path = tmp_path / "x.npy"
    numpy.save(path, numpy.arange(64.0).reshape(16, 4))
    ds = tegula.open(path)
    assert ds[1, 2] == 6
    with path.open("r+b") as file:
        if change == "shorter":
            file.truncate(200)
        else:
            file.seek(0, 2 if change == "longer" else 0)
            file.write(b"\x93NUMPY")
    for key in ((1, 2), slice(2, 3), (slice(1, 3), slice(1, 3)), (slice(None), 0)):
        for _ in range(2):
            with pytest.raises(
                (tegula.ChangedError, tegula.ShortFileError)
                if change == "shorter"
                else tegula.ChangedError
            ) as caught:
                ds[key]
            assert caught.value.path == str(path)
