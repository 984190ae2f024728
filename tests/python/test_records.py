# Records (compound types) and elements that are arrays in HDF5, judged by h5py.
#
# SPDX-License-Identifier: Apache-2.0
import json

import numpy
import pytest
import tegula

import property_runner

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes and judges these files")

try:
    import hdf5plugin
except ImportError:  # fewer filters
    hdf5plugin = None

NUMBERS = "i1 u1 <i2 >i2 <u4 >u4 <i8 >u8 <f2 >f2 <f4 >f4 <f8 >f8 <c8 >c16 ? S1 S7 V3".split()
NAMES = ["x", "y z", "it's", 'a "b"', "é", "\u4e2d", "tab\there", "back\\slash", "a.b", "_", "n\n"]


def fill(rng, data):
    """Any values in the fields, which padding is not."""
    for name in data.dtype.names:
        base = data[name].dtype
        if base.names:
            fill(rng, data[name])
        elif base.kind == "b":
            data[name] = rng.integers(0, 2, data[name].shape)
        elif base.kind == "S":
            text = rng.integers(97, 123, (*data[name].shape, base.itemsize), "u1")
            data[name] = text.view(base)[..., 0]
        elif base.kind == "V":
            raw = rng.integers(0, 256, (*data[name].shape, base.itemsize), "u1")
            data[name] = raw.view(base)[..., 0]
        else:
            data[name] = rng.integers(0, 100, data[name].shape)
    return data


def random_dtype(rng, depth=0):
    """Nested, with array members, big-endian ones, padding within and behind."""
    count = int(rng.integers(1, 6))
    names = [str(name) for name in rng.permutation(NAMES)[:count]]
    formats, offsets, at = [], [], 0
    for _ in names:
        inner = depth < 2 and rng.random() < 0.2
        base = random_dtype(rng, depth + 1) if inner else numpy.dtype(rng.choice(NUMBERS))
        shape = tuple(map(int, rng.integers(1, 4, rng.integers(1, 3))))
        formats.append(numpy.dtype((base, shape)) if rng.random() < 0.25 else base)
        at += int(rng.integers(0, 6)) if rng.random() < 0.3 else 0
        offsets.append(at)
        at += formats[-1].itemsize
    at += int(rng.integers(0, 6)) if rng.random() < 0.3 else 0
    return numpy.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": at})


def same_fields(got, want):
    """Element by element, field by field: padding is nobody's."""
    assert got.dtype == want.dtype and got.shape == want.shape
    if got.dtype.names is None:
        assert numpy.array_equal(got, want) or got.tobytes() == want.tobytes()
    else:
        for name in got.dtype.names:
            same_fields(got[name], want[name])


def random_box(rng, shape):
    lo = [int(rng.integers(0, n)) for n in shape]
    return tuple(slice(a, int(rng.integers(a, n)) + 1) for a, n in zip(lo, shape))


def check(path, name, rng=None):
    """Type, all values and some boxes are those of h5py."""
    got = tegula.open(path, name)
    with h5py.File(path) as file:
        whole, dtype = file[name][()], file[name].dtype
    if dtype.subdtype is None:
        assert got.dtype == dtype
    whole = numpy.asarray(whole, got.dtype)
    same_fields(got[...], whole)
    for _ in range(3 if rng is not None and whole.size else 0):
        box = random_box(rng, whole.shape)
        same_fields(got[box], whole[box])


@pytest.mark.parametrize("seed", range(max(40, property_runner.cases(0.02))))
def test_random_records_equal_h5py(tmp_path, seed):
    rng = numpy.random.default_rng(seed)
    path = tmp_path / "a.h5"
    dtype = random_dtype(rng)
    shape = tuple(map(int, rng.integers(1, 9, rng.integers(0, 4))))
    data = fill(rng, numpy.zeros(shape, dtype)) if shape else fill(rng, numpy.zeros(1, dtype))[0]
    how = {}
    if shape and rng.random() < 0.6:
        how = {"chunks": tuple(int(rng.integers(1, n + 1)) for n in shape)}
        if rng.random() < 0.7:
            how |= {"compression": str(rng.choice(["gzip", "lzf"])), "shuffle": True}
        how["fletcher32"] = bool(rng.random() < 0.3)
    with h5py.File(path, "w", libver=str(rng.choice(["earliest", "latest"]))) as file:
        file.create_dataset("x", data=data, **how)
    check(path, "x", rng)


RECORD = numpy.dtype(
    [("id", "<u8"), ("pos", "<f4", (3,)), ("tag", "S4"), ("in", [("ok", "?"), ("w", ">f8")], (2,))],
    align=True,
)


def records(count=50):
    return fill(numpy.random.default_rng(1), numpy.zeros(count, RECORD))


@pytest.mark.parametrize("how", ["compact", "external", "virtual", "late", "unwritten"])
def test_records_in_every_layout(tmp_path, how):
    path, data = tmp_path / "a.h5", records()
    kind = h5py.h5t.py_create(RECORD, logical=True)
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    space = h5py.h5s.create_simple((50,))
    value = records(7)[6:]
    if how == "compact":
        plist.set_layout(h5py.h5d.COMPACT)
    elif how == "external":
        plist.set_external(b"raw.bin", 0, 20 * RECORD.itemsize)
        plist.set_external(b"raw.bin", 30 * RECORD.itemsize, 30 * RECORD.itemsize)
        with open(tmp_path / "raw.bin", "wb") as file:
            file.write(data[:30].tobytes() + data[20:].tobytes())
    elif how == "unwritten":
        plist.set_chunk((8,))
        plist.set_fill_value(value)
    if how in ("virtual", "late"):
        count = 300 if how == "late" else 3
        layout = h5py.VirtualLayout((2 * count,), RECORD)
        for k in range(count):
            with h5py.File(tmp_path / f"s{k}.h5", "w") as file:
                file["x"] = numpy.roll(data, k)[:2]
            layout[2 * k : 2 * k + 2] = h5py.VirtualSource(f"s{k}.h5", "x", (2,), RECORD)
        with h5py.File(path, "w", libver="latest") as file:
            file.create_virtual_dataset("x", layout)
    else:
        with h5py.File(path, "w") as file:
            made = h5py.h5d.create(file.id, b"x", kind, space, plist)
            if how == "compact":
                made.write(h5py.h5s.ALL, h5py.h5s.ALL, data, kind)
            if how == "unwritten":
                h5py.Dataset(made)[8:20] = data[8:20]
    if how == "external":
        same_fields(tegula.open(path, "x")[...], data)
    else:
        check(path, "x", numpy.random.default_rng(2))


def test_a_source_with_other_records_is_no_source(tmp_path):
    other = numpy.dtype([("a", "<f4"), ("b", "<i4")])
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file["x"] = numpy.zeros(3, [("b", "<i4"), ("a", "<f4")])
    layout = h5py.VirtualLayout((3,), other)
    layout[:] = h5py.VirtualSource("s.h5", "x", (3,), other)
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        file.create_virtual_dataset("x", layout)
    with pytest.raises(tegula.MismatchError, match="records"):
        tegula.load(tmp_path / "a.h5", "x")


@pytest.mark.skipif(hdf5plugin is None, reason="hdf5plugin is not installed: it brings blosc")
def test_a_table_as_pytables_writes_it(tmp_path):
    """Chunked with shuffle and blosc, growing, with attributes; the index column and the values of
    pandas."""
    table = numpy.dtype([("index", "<i8"), ("values_block_0", "<f8", (3,)), ("s", "S10")])
    data = fill(numpy.random.default_rng(3), numpy.zeros(1000, table))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = file.create_dataset(
            "df/table",
            data=data,
            maxshape=(None,),
            chunks=(256,),
            **hdf5plugin.Blosc(cname="blosclz", shuffle=hdf5plugin.Blosc.SHUFFLE),
        )
        made.attrs["CLASS"] = numpy.bytes_("TABLE")
    check(tmp_path / "a.h5", "df/table", numpy.random.default_rng(4))


def test_enumerations_bitfields_and_pairs_in_records(tmp_path):
    """As their integers; {FALSE, TRUE} is bool, {r, i} complex where numpy has that number."""
    kind = h5py.h5t.create(h5py.h5t.COMPOUND, 40)
    pair = h5py.h5t.py_create(numpy.dtype([("r", "<i4"), ("i", "<i4")]))
    halves = h5py.h5t.py_create(numpy.dtype([("r", "<f2"), ("i", "<f2")]))
    color = h5py.h5t.py_create(h5py.enum_dtype({"RED": 1, "BLUE": 2}, ">i2"), logical=True)
    kind.insert(b"bits", 0, h5py.h5t.STD_B16LE)
    kind.insert(b"color", 2, color)
    kind.insert(b"flag", 4, h5py.h5t.py_create(numpy.dtype("?"), logical=True))
    kind.insert(b"c", 8, h5py.h5t.py_create(numpy.dtype("<c16")))
    kind.insert(b"pair", 24, pair)
    kind.insert(b"halves", 32, halves)
    want = numpy.dtype(
        {
            "names": ["bits", "color", "flag", "c", "pair", "halves"],
            "formats": [
                "<u2",
                ">i2",
                "?",
                "<c16",
                [("r", "<i4"), ("i", "<i4")],
                [("r", "<f2"), ("i", "<f2")],
            ],
            "offsets": [0, 2, 4, 8, 24, 32],
            "itemsize": 40,
        }
    )
    raw = numpy.random.default_rng(5).integers(0, 200, 400, "u1")
    raw.reshape(10, 40)[:, 4] &= 1
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple((10,)))
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, raw.view("V40"), kind)
    got = tegula.load(tmp_path / "a.h5", "x")
    assert got.dtype == want and numpy.asarray(got).tobytes() == raw.tobytes()


def test_members_come_in_the_order_of_their_bytes(tmp_path):
    kind = h5py.h5t.create(h5py.h5t.COMPOUND, 12)
    kind.insert(b"second", 8, h5py.h5t.STD_I32LE)
    kind.insert(b"first", 0, h5py.h5t.IEEE_F32LE)
    raw = numpy.arange(6, dtype="<i4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple((2,)))
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, raw.view("V12"), kind)
        want = file["x"][()]
    got = tegula.open(tmp_path / "a.h5", "x")[...]
    assert got.dtype.names == ("first", "second")
    assert all(numpy.array_equal(got[name], want[name]) for name in want.dtype.names)


def test_a_name_that_is_no_utf8_keeps_its_bytes(tmp_path):
    kind = h5py.h5t.create(h5py.h5t.COMPOUND, 8)
    kind.insert(b"caf\xe9", 0, h5py.h5t.STD_I64LE)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple((2,)))
    (name,) = tegula.open(tmp_path / "a.h5", "x").dtype.names
    assert name.encode(errors="surrogateescape") == b"caf\xe9"


def test_what_cannot_be_loaded_is_named_with_what_can(tmp_path):
    dtype = numpy.dtype(
        [
            ("n", "<i4"),
            ("text", h5py.string_dtype()),
            ("p", [("ref", h5py.ref_dtype), ("q", "<f4")]),
            ("y", "<f8", (2,)),
        ]
    )
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", (4,), dtype)
        file.create_dataset("none", (4,), [("a", h5py.string_dtype())])
    with pytest.raises(tegula.UnsupportedError, match=r'"text".*"p.ref" .references') as refused:
        tegula.open(tmp_path / "a.h5", "x")
    assert ": n, p.q, y (" in refused.value.hint and "--field" in refused.value.hint
    with pytest.raises(tegula.UnsupportedError, match=r"nothing can be loaded.*variable length"):
        tegula.open(tmp_path / "a.h5", "none")


FIELDS = {
    "id": lambda a: a["id"],
    "pos": lambda a: a["pos"],
    "inner": lambda a: a["inner"],
    "inner.q": lambda a: a["inner"]["q"],
    "inner.name": lambda a: a["inner"]["name"],
    "flag": lambda a: a["flag"],
    "z": lambda a: a["z"],
}
NESTED = numpy.dtype(
    [
        ("id", "<i8"),
        ("pos", ">f4", (3,)),
        ("inner", [("q", "<f8"), ("name", "S4")], (2,)),
        ("flag", "?"),
        ("z", "<c16"),
    ]
)


def fill_nested(shape):
    rng = numpy.random.default_rng(12)
    array = numpy.zeros(shape, NESTED)
    for name in ("id", "pos", "inner.q", "flag", "z"):
        field = FIELDS[name](array)
        field[...] = rng.integers(0, 2 if name == "flag" else 999, field.shape)
    array["inner"]["name"] = b"ab"
    return array


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize(
    "options",
    [{}, {"chunks": (40, 3)}, {"chunks": (40, 3), "compression": "gzip", "shuffle": True}],
    ids=["contiguous", "chunks", "gzip"],
)
def test_one_field_of_compounds(tmp_path, name, options):
    array = fill_nested((500, 7))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=array, **options)
    with h5py.File(tmp_path / "a.h5") as file:
        want = FIELDS[name](file["x"][...])
    ds = tegula.open(tmp_path / "a.h5", "x", field=name)
    assert ds.shape == want.shape
    numpy.testing.assert_array_equal(ds[...], want)
    numpy.testing.assert_array_equal(ds[3::7, ::2], want[3::7, ::2])
    numpy.testing.assert_array_equal(numpy.asarray(ds.load(tiles=3)), want)


@pytest.mark.parametrize("name", FIELDS)
def test_one_field_of_what_was_never_written(tmp_path, name):
    fill = fill_nested((1,))
    fill["pos"], fill["inner"]["q"] = 7, 9  # all elements of an array field are alike
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", (50, 4), NESTED, chunks=(8, 4), fillvalue=fill[0])
        file["x"][8:16] = fill_nested((8, 4))
        want = FIELDS[name](file["x"][...])
    numpy.testing.assert_array_equal(tegula.open(tmp_path / "a.h5", "x").field(name)[...], want)


def test_fields_beside_those_that_cannot_be_loaded(tmp_path):
    dtype = [
        ("a", "<i4"),
        ("text", h5py.string_dtype()),
        ("b", "<f8"),
        ("p", [("ref", h5py.ref_dtype), ("q", "<f2")]),
    ]
    array = numpy.zeros(30, dtype)
    array["p"]["ref"], array["text"] = h5py.Reference(), "words"
    array["a"], array["b"], array["p"]["q"] = range(30), numpy.arange(30) / 3, 2.5
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("plain", data=array)
        file.create_dataset("gzip", data=array, chunks=(7,), compression="gzip")
    for name in ("plain", "gzip"):
        for field, want in (("a", array["a"]), ("b", array["b"]), ("p.q", array["p"]["q"])):
            ds = tegula.open(tmp_path / "a.h5", name, field=field)
            numpy.testing.assert_array_equal(ds[...], want)
        for field in ("text", "p", "p.ref"):
            with pytest.raises(tegula.UnsupportedError, match=f'the field "{field}"') as refused:
                tegula.open(tmp_path / "a.h5", name, field=field)
            assert '"p.ref" (references' in refused.value.hint


def test_shards_need_the_same_records(tmp_path):
    for k, dtype in enumerate(["i4,f4", "i4,f4"]):
        with h5py.File(tmp_path / f"s_{k}.h5", "w") as file:
            file["x"] = numpy.full(3, k, dtype)
    got = tegula.load(tmp_path, "x")
    assert numpy.asarray(got)["f1"].tolist() == [0, 0, 0, 1, 1, 1]
    with h5py.File(tmp_path / "s_1.h5", "w") as file:
        file["x"] = numpy.zeros(3, "f4,i4")
    with pytest.raises(tegula.MismatchError, match="record description"):
        tegula.load(tmp_path, "x")


# ---- saved ----


def saved_equal(path, name, data):
    """What h5py reads has the type and the values, and so has what tegula reads."""
    with h5py.File(path) as file:
        assert file[name].dtype == data.dtype
        same_fields(file[name][()], data)
    same_fields(numpy.asarray(tegula.open(path, name)[...]), data)


@pytest.mark.parametrize("seed", range(max(40, property_runner.cases(0.02))))
def test_random_records_are_saved_as_h5py_has_them(tmp_path, seed):
    rng = numpy.random.default_rng(seed + 1000)
    dtype = random_dtype(rng)
    shape = tuple(map(int, rng.integers(1, 9, rng.integers(1, 4))))
    data = fill(rng, numpy.zeros(shape, dtype))
    how = {}
    if rng.random() < 0.6:
        how = {"chunks": tuple(int(rng.integers(1, n + 1)) for n in shape)}
        how["codec"] = str(rng.choice(["", "shuffle,deflate:2", "lzf", "fletcher32"]))
    elif rng.random() < 0.3:
        how = {"layout": "virtual"}
    tegula.save(data, tmp_path / "a.h5", "/g/x", **how)
    saved_equal(tmp_path / "a.h5", "/g/x", data)
    kept = tegula.open(tmp_path / "a.h5", "/g/x")[...]
    assert kept.tobytes() == data.tobytes()  # padding goes along


def test_the_types_in_the_file_are_those_of_h5py(tmp_path):
    """Bool as its enumeration, complex as {r, i}, arrays, nested records, times in their tag."""
    kind = numpy.dtype(
        [
            ("ok", "?"),
            ("c", "<c8"),
            ("s", "S3"),
            ("v", "V5"),
            ("h", ">f2"),
            ("m", "<f4", (2, 3)),
            ("in", [("x", ">i2"), ("y", "<u8")], (2,)),
        ],
        align=True,
    )
    data = fill(numpy.random.default_rng(6), numpy.zeros(5, kind))
    tegula.save(data, tmp_path / "a.h5", "x")
    with h5py.File(tmp_path / "a.h5", "a") as file:
        file["y"] = data
        assert file["x"].id.get_type() == file["y"].id.get_type()
    times = numpy.zeros(3, [("t", "<M8[ns]"), ("u", "<U4"), ("d", ">m8[s]")])
    times["t"], times["u"], times["d"] = numpy.datetime64(5, "ns"), "\u4e2d", 7
    tegula.save(times, tmp_path / "a.h5", "times")
    got = numpy.asarray(tegula.load(tmp_path / "a.h5", "times"))
    assert got.dtype == times.dtype and numpy.array_equal(got, times)


def test_names_of_fields(tmp_path):
    """Any text; a title is left out; bytes that are no UTF-8 stay those bytes."""
    data = numpy.zeros(2, [(("title", "é\n'\""), "<i4"), ("\udce9", "<i2")])
    tegula.save(data, tmp_path / "a.h5", "x")
    with h5py.File(tmp_path / "a.h5") as file:
        kind = file["x"].id.get_type()
        names = [kind.get_member_name(k) for k in range(2)]
    assert names == ["é\n'\"".encode(), b"\xe9"]
    assert tegula.open(tmp_path / "a.h5", "x").dtype.names == ("é\n'\"", "\udce9")


@pytest.mark.parametrize(
    "dtype, says",
    [
        ([("a", "g")], "long double"),
        ([("a", "<i4"), ("b", "V0")], "no bytes"),
        ([("a", "<i4", (0,)), ("b", "i1")], "length of 0"),
        ([("a\0b", "<i4")], "character that no name in a file has"),
        ([("\ud800", "<i4")], "character that no name in a file has"),
    ],
)
def test_records_that_hdf5_has_not_are_refused_and_nothing_is_left(tmp_path, dtype, says):
    with pytest.raises(tegula.UnsupportedError, match=says):
        tegula.save(numpy.zeros(3, dtype), tmp_path / "a.h5", "x")
    assert list(tmp_path.iterdir()) == []


def test_several_at_once_each_with_its_own_fields(tmp_path):
    a = fill(numpy.random.default_rng(7), numpy.zeros(4, RECORD))
    b = numpy.zeros(3, [("q", ">i8")])
    tegula.save({"a": a, "b": b, "c": numpy.arange(5)}, tmp_path / "a.h5")
    for name, data in (("a", a), ("b", b), ("c", numpy.arange(5))):
        saved_equal(tmp_path / "a.h5", name, data)


@pytest.mark.parametrize("how", [{}, {"chunks": (8,), "codec": "shuffle,deflate:1"}])
def test_what_was_never_written_of_a_save_is_the_fill_value(tmp_path, how):
    data = records()
    tegula.save(data, tmp_path / "a.h5", "x", fill=data[3], **how)
    with h5py.File(tmp_path / "a.h5") as file:
        same_fields(file["x"].fillvalue, data[3])
    saved_equal(tmp_path / "a.h5", "x", data)


def test_fields_in_another_order_than_their_bytes(tmp_path):
    kind = numpy.dtype({"names": ["b", "a"], "formats": ["<f4", "<i4"], "offsets": [4, 0]})
    data = numpy.array([(1.5, 2), (-3.5, 4)], kind)
    for name in ("a.h5", "a.npy"):
        tegula.save(data, tmp_path / name)
        got = numpy.asarray(tegula.load(tmp_path / name))
        assert got.dtype.names == ("a", "b")
        assert all(numpy.array_equal(got[field], data[field]) for field in "ab")
    with h5py.File(tmp_path / "a.h5") as file:
        assert all(numpy.array_equal(file["data"][field], data[field]) for field in "ab")
    overlap = numpy.dtype({"names": ["b", "a"], "formats": ["<f4", "<i4"], "offsets": [0, 2]})
    with pytest.raises(ValueError, match="overlapping"):
        tegula.save(numpy.zeros(2, overlap), tmp_path / "b.h5")


def test_objects_are_never_made_of_bytes(tmp_path):
    """A manifest that somebody wrote says so."""
    numpy.save(tmp_path / "a.npy", numpy.zeros(3, [("a", "<i8")]))
    data = {"path": "a.npy", "size": (tmp_path / "a.npy").stat().st_size}
    data["mtime_ns"] = (tmp_path / "a.npy").stat().st_mtime_ns
    part = {"file": 0, "offset": 128, "lo": [0], "hi": [3], "strides": [8], "order": "|"}
    manifest = {"tegula_manifest": 1, "format": "npy", "name": "data", "dtype": "|V8"}
    manifest |= {"descr": "[('a', '|O8')]", "shape": [3], "files": [data], "parts": [part]}
    (tmp_path / "m.json").write_text(json.dumps(manifest))
    with pytest.raises(tegula.UnsupportedError, match="cannot be loaded"):
        tegula.open(tmp_path / "m.json")
