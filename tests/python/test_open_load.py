# Opening and loading, against numpy and h5py.
#
# SPDX-License-Identifier: Apache-2.0
import pickle

import h5py
import ml_dtypes
import numpy
import pytest
import tegula


def test_shards_are_one_array(shards):
    folder, array = shards
    ds = tegula.open(folder)
    assert (ds.shape, ds.dtype, ds.ndim, ds.format, ds.chunks) == (
        (1000, 7),
        numpy.dtype("f4"),
        2,
        "npy",
        None,
    )
    assert (ds.size, ds.nbytes, ds.name, len(ds)) == (7000, 28000, "data", 1000)
    assert ds.files == [str(folder / f"part_{i}.npy") for i in range(5)]
    a = tegula.load(folder, tiles=4)
    numpy.testing.assert_array_equal(numpy.asarray(a), array)
    assert [(box[0].start, box[0].stop) for box, _ in a.tiles] == [
        (0, 250),
        (250, 500),
        (500, 750),
        (750, 1000),
    ]
    for box, view in a.tiles:
        numpy.testing.assert_array_equal(view, array[box])
        assert numpy.shares_memory(view, a.local)


@pytest.mark.parametrize(
    "path",
    [
        lambda f: str(f),
        lambda f: bytes(f),
        lambda f: str(f / "part_*.npy"),
        lambda f: sorted(f.iterdir()),
    ],
)
def test_every_way_to_say_a_path(shards, path):
    folder, array = shards
    numpy.testing.assert_array_equal(tegula.open(path(folder))[...], array)


def test_datasets_that_a_pattern_matches(tmp_path):
    """One array, whatever is done with it; its attributes are those of the first."""
    array = numpy.random.default_rng(2).integers(0, 99, (70, 6)).astype("i4")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for i in range(7):
            x = file.create_dataset(
                f"g/x_{i + 5}", data=array[10 * i : 10 * i + 10], chunks=(4, 6), compression="gzip"
            )
            x.attrs["number"] = i
        file["g/T [K]"] = array[:2]
    ds = tegula.open(tmp_path / "x.h5", "/g/x_*")
    assert (ds.shape, ds.name, ds.files, ds.attrs) == (
        (70, 6),
        "/g/x",
        [str(tmp_path / "x.h5")],
        {"number": 0},
    )
    numpy.testing.assert_array_equal(ds[...], array)
    numpy.testing.assert_array_equal(ds[8:33, ::2], array[8:33, ::2])
    numpy.testing.assert_array_equal(pickle.loads(pickle.dumps(ds))[9:11], array[9:11])
    numpy.testing.assert_array_equal(
        numpy.concatenate([numpy.asarray(piece) for piece, _ in ds.batches((9, 6))]), array
    )
    loaded = tegula.load(tmp_path / "x.h5", dataset="/g/x_*", tiles=3)
    numpy.testing.assert_array_equal(numpy.asarray(loaded), array)
    assert loaded.hash() == ds.hash() == tegula.load(tmp_path / "x.h5", "/g/x_[0-9]*").hash()
    numpy.testing.assert_array_equal(tegula.open(tmp_path / "x.h5", "/g/T [K]")[:], array[:2])
    with pytest.raises(tegula.NotFoundError, match=r"matches \"/g/y_\*\""):
        tegula.open(tmp_path / "x.h5", "/g/y_*")


def test_a_list_keeps_its_order(shards):
    folder, array = shards
    found = tegula.open([folder / "part_4.npy", folder / "part_0.npy"])[:]
    numpy.testing.assert_array_equal(found, numpy.concatenate([array[900:], array[:1]]))


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        ({}, 1),
        ({"tiles": 3}, 3),
        ({"tiles": 2, "overdecompose": 4}, 8),
        ({"tiles": 2, "axis": 1}, 2),
        ({"tiles": 2, "axis": -1}, 2),
        ({"tile_shape": (600, 4)}, 4),
    ],
)
def test_tiles_cover_the_array_once(shards, arguments, count):
    folder, array = shards
    a = tegula.load(folder, **arguments)
    seen = numpy.zeros(array.shape, int)
    for box, view in a.tiles:
        seen[box] += 1
        numpy.testing.assert_array_equal(view, array[box])
    assert len(a.tiles) == count
    assert (seen == 1).all()


DTYPES = [
    "?", "i1", "u1", "i2", ">i4", "<u8", "f2", ">f4", "f8", "c8", ">c16", "M8[ns]", ">m8[25s]",
    "S5", "U3", ">U3", "V3", [("a", ">f4"), ("b", "i8", (2,))],
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes_through_npy(tmp_path, dtype):
    raw = (
        numpy.random.default_rng(1)
        .integers(0, 100, 4 * 3 * numpy.dtype(dtype).itemsize, dtype="u1")
        .tobytes()
    )
    stored = (
        numpy.frombuffer(raw, dtype).reshape(4, 3) if dtype != "?" else numpy.eye(4, 3, dtype="?")
    )
    if numpy.dtype(dtype).kind == "U":
        stored = numpy.array([["a", "äö", ""], ["xyz", "b", "c"]] * 2, dtype)
    numpy.save(tmp_path / "x.npy", stored)
    expected = numpy.load(tmp_path / "x.npy")
    ds = tegula.open(tmp_path / "x.npy")
    native = expected.dtype if expected.dtype.names else expected.dtype.newbyteorder("=")
    assert ds.dtype == native
    for found in (
        ds[...],
        numpy.asarray(tegula.load(ds)),
        ds.read(out=numpy.empty((4, 3), native)),
    ):
        assert found.dtype == native
        assert found.tobytes() == expected.astype(native).tobytes()


def test_bfloat16(tmp_path):
    stored = numpy.arange(12).reshape(3, 4).astype(ml_dtypes.bfloat16)
    numpy.save(tmp_path / "x.npy", stored)
    assert tegula.open(tmp_path / "x.npy").dtype == numpy.dtype("V2")
    for dtype in ("bfloat16", ml_dtypes.bfloat16, stored.dtype):
        a = tegula.load(tmp_path / "x.npy", dtype=dtype)
        assert numpy.asarray(a).dtype == stored.dtype
        numpy.testing.assert_array_equal(numpy.asarray(a), stored)
        assert tegula.open(tmp_path / "x.npy", dtype=dtype)[1, 2] == 6


def test_raw(tmp_path):
    stored = numpy.arange(60, dtype=">f8").reshape(5, 3, 4)
    (tmp_path / "x.bin").write_bytes(b"header!!" + stored.tobytes())
    ds = tegula.open(tmp_path / "x.bin", dtype=">f8", row_shape=(3, 4), offset=8)
    numpy.testing.assert_array_equal(ds[...], stored)
    assert ds.dtype.isnative
    for spelling, expected in {">": stored, "big": stored, "<": stored.view("<f8")}.items():
        again = tegula.open(
            tmp_path / "x.bin",
            format="raw",
            dtype="f8",
            shape=[5, 3, 4],
            offset=8,
            byte_order=spelling,
        )
        numpy.testing.assert_array_equal(again[...], expected)
    records = tegula.open(
        tmp_path / "x.bin", dtype=[("a", ">f8"), ("b", ">f8")], row_shape=(), offset=8
    )
    numpy.testing.assert_array_equal(records[:]["b"], stored.ravel()[1::2])


def test_hdf5(tmp_path):
    import h5py

    data = numpy.random.default_rng(0).integers(0, 50, (100, 37)).astype("f4")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("/g/a", data=data, chunks=(16, 10), compression="gzip", shuffle=True)
        file["/g/b"] = data[::-1]
        file["/g/a"].attrs.update(
            {
                "units": "m",
                "n": 3,
                "v": [1.5, 2.5],
                "t": ["a", "ä"],
                "e": h5py.Empty("f4"),
                "y": numpy.True_,
            }
        )
        file["/g/a"].attrs["r"] = file["/g"].ref
        theirs = dict(file["/g/a"].attrs)
        file.flush()
        with pytest.raises(tegula.Error, match="lock"):
            tegula.open(tmp_path / "x.h5", "/g/a")
        numpy.testing.assert_array_equal(
            tegula.open(tmp_path / "x.h5", "/g/a", locked=True)[...], data
        )
    ours = tegula.open(tmp_path / "x.h5", "/g/a")
    assert (ours.format, ours.chunks, ours.codecs) == ("hdf5", (16, 10), "shuffle,deflate:4")
    attrs = ours.attrs
    assert isinstance(attrs.pop("r"), tegula.Omitted)
    assert attrs.pop("e") is None
    theirs.pop("r"), theirs.pop("e")
    assert attrs.keys() == theirs.keys()
    for name, value in theirs.items():
        numpy.testing.assert_array_equal(attrs[name], value)
        assert type(attrs[name]) is type(value)
    numpy.testing.assert_array_equal(ours[3:70:7, -1], data[3:70:7, -1])
    numpy.testing.assert_array_equal(tegula.load(tmp_path / "x.h5", "g/b").local, data[::-1])
    with pytest.raises(tegula.Error, match="/g/b"):
        tegula.open(tmp_path / "x.h5")


def test_scalars_and_empty_arrays(tmp_path):
    numpy.save(tmp_path / "s.npy", numpy.float64(3.5))
    numpy.save(tmp_path / "e.npy", numpy.empty((0, 4), "f4"))
    scalar, empty = tegula.open(tmp_path / "s.npy"), tegula.open(tmp_path / "e.npy")
    assert (scalar[()], scalar.shape, tegula.load(scalar).local.shape) == (3.5, (), ())
    assert (empty[:].shape, empty[:, 2:].shape, tegula.load(empty, tiles=3).local.shape) == (
        (0, 4),
        (0, 2),
        (0, 4),
    )
    assert tegula.load(scalar).hash() == scalar.hash() == "tegula1:7c12c993b6b8c21ff93add91baf78844"
    assert tegula.load(empty).hash() == empty.hash() == "tegula1:4c519d72ff89e088e13e8831d35f3a49"


def test_hash_is_the_published_one(tmp_path):
    numpy.save(tmp_path / "x.npy", numpy.arange(100000, dtype="<i4").reshape(1000, 100))
    ds = tegula.open(tmp_path / "x.npy")
    assert (
        ds.hash() == tegula.load(ds, tiles=7).hash() == "tegula1:d6d09fb0a9574ab84bb79cc39418d26d"
    )
    target = numpy.empty((1000, 100), "i4", order="F")
    assert tegula.load(ds, out=target).hash() == ds.hash()


def test_missing_chunks(tmp_path):
    import h5py

    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", (100,), "i4", chunks=(10,), fillvalue=7)[20:30] = 1
    expected = numpy.full(100, 7)
    expected[20:30] = 1
    numpy.testing.assert_array_equal(tegula.open(tmp_path / "x.h5")[:], expected)
    with pytest.raises(tegula.IncompleteError):
        tegula.open(tmp_path / "x.h5", missing="strict")[:]
    with pytest.raises(tegula.IncompleteError):
        tegula.load(tmp_path / "x.h5", missing="strict")


def test_explain_reads_nothing(shards):
    plan = tegula.open(shards[0]).explain(tiles=4)
    assert [tile["box"] for tile in plan["tiles"]] == [
        [[i, i + 250], [0, 7]] for i in range(0, 1000, 250)
    ]
    assert sum(tile["bytes"] for tile in plan["tiles"]) == 28000


def test_progress(tmp_path):
    array = numpy.zeros((1 << 21,), "f8")
    numpy.save(tmp_path / "x.npy", array)
    seen = []
    tegula.load(tmp_path / "x.npy", progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (array.nbytes, array.nbytes)
    assert seen == sorted(seen)

    class Bar:
        total, n, closed = 0, 0, False

        def __init__(self, **_):
            bars.append(self)

        def update(self, more):
            self.n += more

        def close(self):
            self.closed = True

    bars = []
    tegula.load(tmp_path / "x.npy", progress=Bar)
    assert (bars[0].n, bars[0].total, bars[0].closed) == (array.nbytes, array.nbytes, True)
    own = Bar()
    tegula.load(tmp_path / "x.npy", progress=own)
    assert (own.n, own.closed) == (array.nbytes, False)


def test_a_raising_progress_stops_the_load(tmp_path):
    numpy.save(tmp_path / "x.npy", numpy.zeros(1000))

    calls = []
    for kind in (KeyError, ValueError):

        def stop(done, total, kind=kind):
            calls.append(done)
            raise kind("enough")

        with pytest.raises(kind, match="enough"):
            tegula.load(tmp_path / "x.npy", progress=stop)
    assert len(calls) == 2, "once each"


def test_numbers_of_numpy_as_options(tmp_path):
    numpy.save(tmp_path / "x.npy", numpy.arange(7.0))
    assert tegula.open(tmp_path / "x.npy", threads=numpy.int64(2))[:].tolist() == list(range(7))
    assert (
        len(tegula.load(tmp_path / "x.npy", threads=numpy.uint8(1), tiles=numpy.int32(3)).tiles)
        == 3
    )


def test_settings_of_the_environment(run_python, tmp_path):
    numpy.save(tmp_path / "x.npy", numpy.zeros(3))
    program = (
        "import tegula, tegula._context as c, sys; tegula.open(sys.argv[1]); "
        "print(c.context().threads())"
    )
    assert run_python(program, tmp_path / "x.npy", TEGULA_THREADS="3") == "3\n"
    wrong = """
import sys, tegula
for name in ("TEGULA_THREADS", "TEGULA_TIMEOUT"):
    import os
    os.environ[name] = "many"
    try: tegula.load(sys.argv[1])
    except ValueError as error: print(error)
    del os.environ[name]
"""
    lines = run_python(wrong, tmp_path / "x.npy").splitlines()
    assert [line.split(":")[0] for line in lines] == ["TEGULA_THREADS", "TEGULA_TIMEOUT"]


def test_headers_that_come_with_the_data_may_differ(tmp_path):
    """What no header like the first one could have foretold is loaded, or refused, all the same."""
    parts = [numpy.arange(4000 + k, 4040 + k, dtype="<f4").reshape(10, 4) for k in range(3)]
    for i, part in enumerate(parts):
        numpy.save(tmp_path / f"part_{i}.npy", part)
    other = tmp_path / "part_1.npy"
    size = other.stat().st_size
    numpy.save(other, parts[1].astype(">f4"))
    swapped = other.read_bytes()
    text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (6, 4), }"
    shorter = (
        b"\x93NUMPY\x01\x00"
        + (64 + 118).to_bytes(2, "little")
        + text.ljust(64 + 117)
        + b"\n"
        + parts[1][:6].tobytes()
    )
    for content, expected in ((swapped, parts[1]), (shorter, parts[1][:6])):
        other.write_bytes(content)
        assert other.stat().st_size == size and (numpy.load(other) == expected).all()
        whole = numpy.concatenate([parts[0], expected, parts[2]])
        assert (numpy.asarray(tegula.load(tmp_path)) == whole).all()
        target = numpy.zeros(whole.shape, "f4")
        tegula.load(tmp_path, out=target, tiles=2)
        assert (target == whole).all()
        with pytest.raises(ValueError, match="out: expected shape"):
            tegula.load(tmp_path, out=numpy.zeros((31, 4), "f4"))
    other.write_bytes(swapped.replace(b">f4", b"<i4"))
    with pytest.raises(tegula.MismatchError) as loading:
        tegula.load(tmp_path)
    with pytest.raises(tegula.MismatchError) as opening:
        tegula.open(tmp_path)
    assert str(loading.value) == str(opening.value) and "<i4" in str(opening.value)


def test_a_load_is_one_request_for_each_small_file(tmp_path):
    from slowfs import SlowFolder, Unavailable

    for i in range(8):
        numpy.save(tmp_path / f"part_{i}.npy", numpy.full((5, 3), i))
    try:
        mount = SlowFolder(tmp_path, direct_io=1)
    except Unavailable as reason:
        pytest.skip(str(reason))
    with mount as slow:
        assert (numpy.asarray(tegula.load(slow.path))[:, 0] == numpy.arange(8).repeat(5)).all()
        counts = slow.counts()
    assert counts["open"] == 8 and counts["read"] <= 8 + 1, (
        "only the first file is looked at beforehand"
    )
