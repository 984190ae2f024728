"""Selections: parts of datasets, and fields of their records, as datasets.

SPDX-License-Identifier: Apache-2.0
"""

import os
import pickle

import numpy
import pytest
import tegula

RECORD = numpy.dtype(
    [
        ("id", "<i4"),
        ("pos", "<f4", (3,)),
        ("inner", [("q", ">f8"), ("name", "S4"), ("deep", [("z", "<u2")], (2,))], (4,)),
        ("caf\u00e9", "?"),
        ("a.b", "<i2"),
    ],
    align=True,
)
FIELDS = {
    "id": lambda a: a["id"],
    "pos": lambda a: a["pos"],
    "inner": lambda a: a["inner"],
    "inner.q": lambda a: a["inner"]["q"],
    "inner.name": lambda a: a["inner"]["name"],
    "inner.deep": lambda a: a["inner"]["deep"],
    "inner.deep.z": lambda a: a["inner"]["deep"]["z"],
    "caf\u00e9": lambda a: a["caf\u00e9"],
    "a.b": lambda a: a["a.b"],
}


@pytest.fixture
def records():
    rng = numpy.random.default_rng(3)
    array = numpy.zeros((50, 6), RECORD)
    for take in FIELDS.values():
        field = take(array)
        if field.dtype.names is None and field.dtype.kind != "S":
            field[...] = rng.integers(0, 2 if field.dtype == bool else 99, field.shape)
    array["inner"]["name"] = b"xyz"
    return array


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_is_what_numpy_gives(tmp_path, records, name):
    for i, part in enumerate(numpy.split(records, [7, 20])):
        numpy.save(tmp_path / f"part_{i}.npy", part)
    want = FIELDS[name](records)
    for ds in (tegula.open(tmp_path).field(name), tegula.open(tmp_path, field=name)):
        assert ds.shape == want.shape
        assert ds.dtype.newbyteorder("=") == want.dtype.newbyteorder("=")
        assert ds.nbytes == want.nbytes
        numpy.testing.assert_array_equal(ds[...], want)
        numpy.testing.assert_array_equal(ds[3:40:7, ::-2], want[3:40:7, ::-2])
        numpy.testing.assert_array_equal(numpy.asarray(ds.load(tiles=4)), want)
    numpy.testing.assert_array_equal(numpy.asarray(tegula.load(tmp_path, field=name)), want)


def test_a_selection_of_a_selection(tmp_path, records):
    numpy.save(tmp_path / "x.npy", records)
    ds = tegula.open(tmp_path / "x.npy").select(numpy.s_[5:45:2]).field("inner")
    ds = ds.select(numpy.s_[::3, 1:, ::2], field="q")
    want = records[5:45:2]["inner"][::3, 1:, ::2]["q"]
    numpy.testing.assert_array_equal(ds[...], want)
    numpy.save(tmp_path / "y.npy", want.astype("<f8"))
    assert ds.hash() == tegula.open(tmp_path / "y.npy").hash()


def test_batches_of_a_selection(tmp_path):
    array = numpy.arange(1000 * 8).reshape(1000, 8)
    numpy.save(tmp_path / "x.npy", array)
    ds = tegula.open(tmp_path / "x.npy").select(numpy.s_[3::7, ::2])
    pieces = [piece for piece, _ in ds.batches((10, 4))]
    numpy.testing.assert_array_equal(numpy.concatenate(pieces), array[3::7, ::2])


def test_it_outlives_what_it_was_selected_from(tmp_path):
    array = numpy.arange(60.0).reshape(12, 5)
    numpy.save(tmp_path / "x.npy", array)
    ds = tegula.open(tmp_path / "x.npy")
    part = ds.select(numpy.s_[::5])
    del ds
    numpy.testing.assert_array_equal(part[...], array[::5])


@pytest.mark.parametrize("name", ["id", "inner.deep.z"])
def test_pickled_and_forked(tmp_path, records, name):
    numpy.save(tmp_path / "x.npy", records)
    part = tegula.open(tmp_path / "x.npy").select(numpy.s_[::4], field=name)
    want = FIELDS[name](records)[::4]
    numpy.testing.assert_array_equal(pickle.loads(pickle.dumps(part))[...], want)
    child = os.fork()
    if child == 0:
        os._exit(0 if (part[...] == want).all() else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_of_a_reader():
    ds = tegula.from_reader(
        lambda box, out: numpy.copyto(out, numpy.arange(100)[box[0]]), (100,), "i8"
    )
    part = ds.select(numpy.s_[2:90:9])
    numpy.testing.assert_array_equal(part[...], numpy.arange(100)[2:90:9])


def test_of_a_folder_that_was_left(tmp_path, monkeypatch):
    numpy.save(tmp_path / "x.npy", numpy.arange(10))
    monkeypatch.chdir(tmp_path)
    part = tegula.open("x.npy").select(numpy.s_[1::4])
    monkeypatch.chdir("/")
    assert pickle.loads(pickle.dumps(part))[...].tolist() == [1, 5, 9]


def test_a_changed_file_is_noticed(tmp_path):
    numpy.save(tmp_path / "x.npy", numpy.arange(100))
    part = tegula.open(tmp_path / "x.npy").select(numpy.s_[::2])
    numpy.save(tmp_path / "x.npy", numpy.arange(200))
    with pytest.raises(tegula.ChangedError):
        part[...]


@pytest.mark.parametrize(
    ("how", "error", "says"),
    [
        ({"field": "nothing"}, tegula.NotFoundError, 'no field "nothing"'),
        ({"field": "pos.x"}, tegula.NotFoundError, 'no field "pos.x"'),
        ({"field": 3}, TypeError, "field"),
        ({"box": 5}, ValueError, "slices"),
        ({"box": numpy.s_[::-1]}, ValueError, "negative"),
        ({"box": numpy.s_[:, :, :]}, IndexError, "2 axes"),
        ({"box": [1, 2]}, TypeError, "list"),
    ],
)
def test_what_cannot_be_selected(tmp_path, records, how, error, says):
    numpy.save(tmp_path / "x.npy", records)
    ds = tegula.open(tmp_path / "x.npy")
    with pytest.raises(error, match=says):
        ds.select(**how)
    with pytest.raises(TypeError):
        ds.field(None)


def test_a_hint_names_the_fields(tmp_path, records):
    numpy.save(tmp_path / "x.npy", records)
    with pytest.raises(tegula.NotFoundError) as caught:
        tegula.open(tmp_path / "x.npy", field="positions")
    assert caught.value.hint == "the fields are: id, pos, inner, caf\u00e9, a.b"
    numpy.save(tmp_path / "y.npy", numpy.zeros(3))
    with pytest.raises(tegula.InvalidArgumentError, match="its elements are <f8"):
        tegula.open(tmp_path / "y.npy", field="x")


def test_raw_records_have_fields(tmp_path, records):
    records.tofile(tmp_path / "x.bin")
    ds = tegula.open(tmp_path / "x.bin", dtype=RECORD, row_shape=(6,))
    assert ds.dtype == RECORD
    assert ds[...].tobytes() == records.tobytes()
    for name, take in FIELDS.items():
        numpy.testing.assert_array_equal(ds.field(name)[::3], take(records)[::3])
        loaded = tegula.load(tmp_path / "x.bin", dtype=RECORD, row_shape=(6,), field=name)
        numpy.testing.assert_array_equal(numpy.asarray(loaded), take(records))


def test_other_records_than_asked_for(tmp_path, records):
    numpy.save(tmp_path / "x.npy", records)
    assert tegula.open(tmp_path / "x.npy", dtype=RECORD).dtype == RECORD
    names = ["number", *RECORD.names[1:]]
    other = numpy.dtype(
        {
            "names": names,
            "formats": [RECORD[n] for n in RECORD.names],
            "offsets": [RECORD.fields[n][1] for n in RECORD.names],
            "itemsize": RECORD.itemsize,
        }
    )
    with pytest.raises(tegula.MismatchError, match="'number'"):
        tegula.open(tmp_path / "x.npy", dtype=other)
