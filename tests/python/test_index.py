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
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("x", data=array, chunks=(4, 5, 6), compression="gzip")
    return [(tegula.open(folder / name), array) for name in ("c.npy", "f.npy", "x.h5")]


def random_key(rng):
    def part(length):
        kind = rng.integers(0, 4)
        if kind == 0:
            return int(rng.integers(-length, length))
        if kind == 1:
            return numpy.int64(rng.integers(-length, length))
        ends = [None if rng.random() < 0.3 else int(rng.integers(-length - 3, length + 4)) for _ in range(2)]
        step = None if kind == 2 else int(rng.choice([-7, -3, -2, -1, 1, 2, 3, 11]))
        return slice(*ends, step)

    count = rng.integers(0, 4)
    parts = [part(length) for length in SHAPE[:count]]
    if rng.random() < 0.5:
        at = int(rng.integers(0, count + 1))
        parts = parts[:at] + [Ellipsis] + [part(length) for length in SHAPE[len(SHAPE) - (count - at) :]]
    return tuple(parts)


def test_random_selections(pairs):
    rng = numpy.random.default_rng(20)
    for _ in range(300):
        key = random_key(rng)
        for ds, array in pairs:
            found, expected = ds[key], array[key]
            assert numpy.shape(found) == numpy.shape(expected), key
            numpy.testing.assert_array_equal(found, expected, err_msg=str(key))


def test_out_takes_the_same_selections(pairs):
    rng = numpy.random.default_rng(21)
    for _ in range(100):
        key = random_key(rng)
        for ds, array in pairs:
            expected = array[key]
            memory = numpy.full((3 * numpy.size(expected) + 1,), -1, "i4")
            out = memory[1::3].reshape(numpy.shape(expected)) if numpy.ndim(expected) <= 1 else numpy.full(expected.T.shape, -1, "i4").T
            assert ds.read(key, out) is out
            numpy.testing.assert_array_equal(out, expected, err_msg=str(key))
            if numpy.ndim(expected) == 1:
                assert (memory[0::3] == -1).all() and (memory[2::3] == -1).all()


def test_steps_read_little(tmp_path, monkeypatch):
    """Far rows are read one by one, near ones together; the memory stays bounded."""
    from tegula import _dataset

    array = numpy.arange(4000 * 64, dtype="i4").reshape(4000, 64)
    numpy.save(tmp_path / "x.npy", array)
    ds = tegula.open(tmp_path / "x.npy")
    monkeypatch.setattr(_dataset, "_SMALL", 1024)
    monkeypatch.setattr(_dataset, "_WINDOW", 16384)
    sizes = []
    real = tegula.Dataset._read_box
    monkeypatch.setattr(tegula.Dataset, "_read_box", lambda self, lo, hi, target: (sizes.append(target.nbytes), real(self, lo, hi, target)))
    numpy.testing.assert_array_equal(ds[::100], array[::100])
    assert sizes == [256] * 40
    sizes.clear()
    numpy.testing.assert_array_equal(ds[::-2, 1::3], array[::-2, 1::3])
    assert max(sizes) <= 16384 and len(sizes) < 200


def test_steps_decode_a_chunk_once(tmp_path, monkeypatch):
    import h5py
    from tegula import _dataset

    array = numpy.arange(1000 * 32, dtype="i4").reshape(1000, 32)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=array, chunks=(100, 32), compression="gzip")
    ds = tegula.open(tmp_path / "x.h5")
    monkeypatch.setattr(_dataset, "_SMALL", 0)
    monkeypatch.setattr(_dataset, "_WASTE", 0)
    boxes = []
    real = tegula.Dataset._read_box
    monkeypatch.setattr(
        tegula.Dataset, "_read_box", lambda self, lo, hi, target: (boxes.append((lo[0], hi[0])), real(self, lo, hi, target))
    )
    numpy.testing.assert_array_equal(ds[::7], array[::7])
    assert len(boxes) == 10
    assert all(lo // 100 == (hi - 1) // 100 for lo, hi in boxes)


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
