"""Text of fixed length in HDF5 files, padded by zeros, blanks, or anything behind a zero: as h5py
gives it.

SPDX-License-Identifier: Apache-2.0
"""

import numpy
import pytest
import tegula

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes and judges these files")

TEXTS = [
    *(b"abc\0xyz ", b"abcdefgh", b"ab      ", b"a b \0   "),
    *(b"\0zzzzzzz", b"        ", b"ab\0\0\0\0\0\0", b"  ab  \0 "),
]
PADDINGS = {
    "zero": h5py.h5t.STR_NULLTERM,
    "zeros": h5py.h5t.STR_NULLPAD,
    "blanks": h5py.h5t.STR_SPACEPAD,
}
LAYOUTS = {"contiguous": None, "chunks": (7, 3), "gzip": (7, 3)}


def text(padding, size=8):
    made = h5py.h5t.C_S1.copy()
    made.set_size(size)
    made.set_strpad(PADDINGS[padding])
    return made


def write(path, name, kind, data, layout):
    """The bytes as they are."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if LAYOUTS[layout]:
        plist.set_chunk(LAYOUTS[layout][: data.ndim])
    if layout == "gzip":
        plist.set_deflate(3)
    with h5py.File(path, "a") as file:
        space = h5py.h5s.create_simple(data.shape)
        dataset = h5py.h5d.create(file.id, name.encode(), kind, space, plist)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, data, mtype=kind)


def judged(path, name):
    with h5py.File(path) as file:
        return file[name][()]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("padding", PADDINGS)
def test_text_is_what_h5py_gives(tmp_path, padding, layout):
    path = tmp_path / "x.h5"
    write(path, "x", text(padding), numpy.array(TEXTS * 50, "V8").reshape(50, 8), layout)
    want = judged(path, "x")
    ds = tegula.open(path, "x")
    assert ds.dtype == want.dtype
    assert ds[...].tobytes() == want.tobytes()
    assert numpy.asarray(ds.load(tiles=3)).tobytes() == want.tobytes()
    assert ds[3:40:7, ::-3].tobytes() == want[3:40:7, ::-3].tobytes()
    for _ in range(2):  # the second one from chunks that are kept
        assert [ds[1, j] for j in range(8)] == [want[1, j] for j in range(8)]
    pieces = [piece for piece, _ in ds.batches((9, 8))]
    assert numpy.concatenate(pieces).tobytes() == want.tobytes()
    numpy.save(tmp_path / "x.npy", want.astype(want.dtype.str))
    assert ds.hash() == tegula.open(tmp_path / "x.npy").hash()


@pytest.mark.parametrize("padding", PADDINGS)
def test_text_in_records(tmp_path, padding):
    inner = h5py.h5t.create(h5py.h5t.COMPOUND, 6)
    inner.insert(b"u", 0, h5py.h5t.STD_U8LE)
    inner.insert(b"t", 1, text(padding, 5))
    kind = h5py.h5t.create(h5py.h5t.COMPOUND, 29)
    kind.insert(b"i", 0, h5py.h5t.STD_I32LE)
    kind.insert(b"s", 4, text(padding))
    kind.insert(b"in", 12, h5py.h5t.array_create(inner, (2,)))
    kind.insert(b"many", 24, h5py.h5t.array_create(text(padding, 1), (5,)))
    letters = numpy.frombuffer(b"ab \0", "u1")
    data = numpy.random.default_rng(1).choice(letters, (40, 29)).view("V29")[:, 0]
    for layout in ("contiguous", "gzip"):
        path = tmp_path / f"{layout}.h5"
        write(path, "x", kind, data, layout)
        want = judged(path, "x")
        ds = tegula.open(path, "x")
        assert ds[...].tobytes() == want.tobytes()
        fields = {
            "s": want["s"],
            "in": want["in"],
            "in.t": want["in"]["t"],
            "in.u": want["in"]["u"],
            "many": want["many"],
        }
        for name, field in fields.items():
            assert ds.field(name)[...].tobytes() == numpy.ascontiguousarray(field).tobytes(), name


def test_text_of_very_many_sources(tmp_path):
    """They are described when they are wanted."""
    layout = h5py.VirtualLayout((300, 8), "S8")
    rows = numpy.array(TEXTS, "V8")
    for i in range(300):
        write(tmp_path / f"s{i}.h5", "x", text("blanks"), rows, "contiguous")
        layout[i] = h5py.VirtualSource(f"s{i}.h5", "x", (8,), "S8")
    with h5py.File(tmp_path / "v.h5", "w", libver="latest") as file:
        file.create_virtual_dataset("x", layout)
    want = judged(tmp_path / "v.h5", "x")
    ds = tegula.open(tmp_path / "v.h5", "x")
    assert ds[...].tobytes() == want.tobytes()
    assert ds[250].tobytes() == want[250].tobytes()


def test_shards_that_pad_differently(tmp_path):
    rows = numpy.array(TEXTS, "V8")
    (tmp_path / "set").mkdir()
    for i, padding in enumerate(PADDINGS):
        write(tmp_path / "set" / f"s_{i}.h5", "x", text(padding), rows, "contiguous")
    want = [judged(tmp_path / "set" / f"s_{i}.h5", "x") for i in range(3)]
    loaded = numpy.asarray(tegula.load(tmp_path / "set", "x", tiles=2))
    assert loaded.tobytes() == numpy.concatenate(want).tobytes()
    tegula.save(loaded, tmp_path / "out.h5", "x")
    assert judged(tmp_path / "out.h5", "x").tobytes() == loaded.tobytes()
