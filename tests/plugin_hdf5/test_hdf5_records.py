"""Records with members that cannot be loaded: where all others are in the file, by every libhdf5.

SPDX-License-Identifier: Apache-2.0
"""

import ast

import h5py
import numpy as np
import pytest
from numpy.lib.format import descr_to_dtype

from described import Refused, dump, undo
from hdf5_files import set_fill

INNER = np.dtype([("p", "i1"), ("text", h5py.string_dtype()), ("z", "<f4")])
RECORD = np.dtype(
    [
        ("i", "<i2"),
        ("text", h5py.string_dtype()),
        ("k", ">f8"),
        ("to", h5py.ref_dtype),
        ("some", h5py.vlen_dtype("i4")),
        ("l", "<u2"),
        ("inner", INNER, (2,)),
        ("part", h5py.regionref_dtype),
        ("last", "<f8"),
    ]
)
NUMBERS = ["i", "k", "l", "last"]


def records():
    data = np.zeros(6, RECORD)
    for name in NUMBERS:
        data[name] = np.arange(1, 7) * 1.5
    data["inner"]["p"] = np.arange(12).reshape(6, 2)
    data["inner"]["z"] = np.arange(12).reshape(6, 2) / 4
    data["inner"]["text"] = "xx"
    data["text"] = ["a", "bb", "", "dddd", "e", "f"]
    return data


def write(path, libver):
    data = records()
    with h5py.File(path, "w", libver=libver) as f:
        f["other"] = [1, 2, 3]
        for k in range(6):
            data["to"][k], data["part"][k] = f["other"].ref, f["other"].regionref[:2]
            data["some"][k] = np.arange(k, dtype="i4")
        f["plain"] = data
        f.create_dataset("chunked", data=data, chunks=(2,), compression="gzip", shuffle=True)
        f.create_dataset("odd", data=data, chunks=(4,), scaleoffset=None, fletcher32=True)
    return data


def in_file(path, out):
    """The records as they are stored, with bytes for what cannot be loaded."""
    dtype = descr_to_dtype(ast.literal_eval(out["descr"].replace("'|O", "'|V")))
    assert np.dtype(out["dtype"]).itemsize == dtype.itemsize
    raw = path.read_bytes()
    (part,) = out["parts"]
    if part["kind"] == "dense":
        return np.frombuffer(raw, dtype, 6, part["offset"])
    (grid,) = out["grids"]
    chunks = b"".join(
        undo(raw[offset : offset + length], grid["filters"], mask)
        for offset, length, mask in grid["chunks"]
    )
    return np.frombuffer(chunks, dtype, 6)


@pytest.mark.parametrize("libver", ["earliest", "v110"])
@pytest.mark.parametrize("name", ["plain", "chunked", "odd"])
def test_members_stand_where_the_description_says(tmp_path, library, name, libver):
    """Texts, sequences and references have other sizes in memory, which is what libhdf5 tells."""
    data = write(tmp_path / "a.h5", libver)
    out = dump(tmp_path / "a.h5", name, library=library)
    found = in_file(tmp_path / "a.h5", out)
    assert list(found.dtype.names) == list(RECORD.names)
    for field in NUMBERS:
        assert np.array_equal(found[field], data[field]), field
    for field in "pz":
        assert np.array_equal(found["inner"][field], data["inner"][field]), field
    for text in (
        '"text" (strings of variable length)',
        '"inner.text" (strings',
        '"to" (references to other objects)',
        '"some" (sequences of variable length)',
        '"part"',
    ):
        assert text in out["refused"]


def test_readers_and_fill_values_leave_out_what_cannot_be_loaded(tmp_path, library):
    """libhdf5 reads compact data and fill values: of all other members they have the values."""
    kind = np.dtype([("a", "<i4"), ("text", h5py.string_dtype()), ("b", ">f8")])
    data = np.array([(1, "x", 2.5), (3, "yy", -4.5)], kind)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        tid = h5py.h5t.py_create(kind, logical=True)
        made = h5py.h5d.create(f.id, b"compact", tid, h5py.h5s.create_simple((2,)), plist)
        h5py.Dataset(made)[...] = data
        to = np.dtype([("a", "<i4"), ("to", h5py.ref_dtype), ("b", ">f8")])
        value = np.array((3, b"", -4.5), [("a", "<i4"), ("to", "V8"), ("b", ">f8")])
        plist, tid = h5py.h5p.create(h5py.h5p.DATASET_CREATE), h5py.h5t.py_create(to, logical=True)
        plist.set_chunk((2,))
        set_fill(plist, tid, value.tobytes())
        h5py.h5d.create(f.id, b"fill", tid, h5py.h5s.create_simple((4,)), plist)
    out = dump(tmp_path / "a.h5", "compact", library=library)
    assert ast.literal_eval(out["descr"]) == [("a", "<i4"), ("text", "|O16"), ("b", ">f8")]
    stored = np.dtype([("a", "<i4"), ("text", "V16"), ("b", ">f8")])
    (part,) = out["parts"]
    found = np.frombuffer(bytes.fromhex(part["data"]), stored)
    assert found["a"].tolist() == [1, 3] and found["b"].tolist() == [2.5, -4.5]
    out = dump(tmp_path / "a.h5", "fill", library=library)
    fill = np.frombuffer(bytes.fromhex(out["fill"]), [("a", "<i4"), ("to", "V8"), ("b", ">f8")])
    assert fill["a"].tolist() == [3] and fill["b"].tolist() == [-4.5]


def test_records_of_which_nothing_can_be_loaded_are_refused(tmp_path, library):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("x", (2,), [("a", h5py.string_dtype()), ("b", h5py.ref_dtype)])
    with pytest.raises(Refused, match=r'nothing can be loaded: "a" .*, "b"') as refused:
        dump(tmp_path / "a.h5", library=library)
    assert refused.value.status == "unsupported"


DESCRIBED = [
    [("a", "<i4")],
    [("x", "|b1"), ("it's", ">f8", (3,)), ('a "b"', "|S5"), ("v", "|V3"), ("c", "<c8", (2, 2))],
    [("in", [("p", "|i1"), ("", "|V3"), ("q", "<u4")], (2,)), ("", "|V7"), ("\u00e9\n\x01", "<f2")],
]


@pytest.mark.parametrize("descr", DESCRIBED)
def test_the_description_is_that_of_numpy(tmp_path, library, descr):
    dtype = descr_to_dtype(descr)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("x", (2,), dtype)
    out = dump(tmp_path / "a.h5", library=library)
    assert out["descr"] == repr(np.lib.format.dtype_to_descr(dtype)) and out["refused"] is None
