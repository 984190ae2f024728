"""Which dtype a stored type is, and what is refused by its name.

SPDX-License-Identifier: Apache-2.0
"""
import h5py
import numpy as np
import pytest

from described import Refused, assemble, dump, same, values

NUMBERS = "i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split()
TYPES = [order + kind for order in "<>" for kind in NUMBERS] + ["S1", "S7", "V5", "?"]


def low_level(path, name, datatype, stored, shape, prepare=None):
    """A dataset of a type that h5py has no dtype for, with the bytes as given."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if prepare:
        prepare(plist)
    with h5py.File(path, "a") as f:
        dataset = h5py.h5d.create(f.id, name.encode(), datatype, h5py.h5s.create_simple(shape), plist)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.frombuffer(stored, f"V{datatype.get_size()}").reshape(shape).copy(), mtype=datatype)


@pytest.mark.parametrize("dtype", TYPES)
def test_types_of_numpy(tmp_path, library, dtype):
    raw = np.random.default_rng(1).integers(0, 200, 6 * np.dtype(dtype).itemsize).astype("u1")
    data = (raw[:6] % 2).astype("?") if dtype == "?" else raw.view(dtype)
    data = data.reshape(2, 3)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["x"] = data
        f.create_dataset("c", data=data, chunks=(1, 2))
        fill = {} if np.dtype(dtype).kind == "V" else {"fillvalue": data[1, 2]}
        f.create_dataset("fill", (2,), dtype, chunks=(1,), **fill)
    for name in ("x", "c"):
        out = dump(tmp_path / "a.h5", name, library=library)
        assert np.dtype(out["dtype"]) == data.dtype.newbyteorder("=")
        assert {part["kind"] for part in out["parts"]} == {"dense" if name == "x" else "chunked"}
        assert same(assemble(out), data)
    if fill:
        out = dump(tmp_path / "a.h5", "fill", library=library)
        assert out["fill"] == out["grids"][0]["fill"] == data[1, 2].astype(data.dtype.newbyteorder("=")).tobytes().hex()


def test_bfloat16_is_known_by_its_bit_fields(tmp_path, library):
    bits = np.array([0x3F80, 0xC000, 0x7F80, 1], "u2")
    for name, base, order in (("little", h5py.h5t.IEEE_F32LE, "<"), ("big", h5py.h5t.IEEE_F32BE, ">")):
        brain = base.copy()
        brain.set_fields(15, 7, 8, 0, 7)
        brain.set_size(2)
        brain.set_ebias(127)
        low_level(tmp_path / "a.h5", name, brain, bits.astype(order + "u2").tobytes(), (4,))
        out = dump(tmp_path / "a.h5", name, library=library)
        assert out["dtype"][1:] == "E2" and out["parts"][0]["order"] == order
        assert same(assemble(out), bits)


def test_odd_floats_are_widened_by_libhdf5(tmp_path, library):
    """1 sign, 8 exponent, 15 mantissa bits in 3 bytes: exact as f4."""
    odd = h5py.h5t.IEEE_F32LE.copy()
    odd.set_fields(23, 15, 8, 0, 15)
    odd.set_size(3)
    odd.set_ebias(127)
    data = np.array([1.5, -0.25, 96, 0], "<f4")
    stored = b"".join(bits.tobytes()[:3] for bits in data.view("<u4") >> np.uint32(8))
    low_level(tmp_path / "a.h5", "x", odd, stored, (4,))
    out = dump(tmp_path / "a.h5", library=library)
    assert out["dtype"] == "<f4" and out["parts"][0]["kind"] == "reader"
    assert same(assemble(out), data)


@pytest.mark.parametrize("bias", [7, 126, 128, 1000])
def test_an_exponent_with_another_bias_is_no_ieee_float(tmp_path, library, bias):
    """As float64, where the largest and the smallest of these numbers have their place too."""
    odd = h5py.h5t.IEEE_F32LE.copy()
    odd.set_ebias(bias)
    data = np.array([1.0, -3.0, 3e38, 2e-38], "<f4")
    low_level(tmp_path / "a.h5", "x", odd, data.tobytes(), (4,))
    out = dump(tmp_path / "a.h5", library=library)
    assert out["dtype"] == "<f8" and out["parts"][0]["kind"] == "reader"
    assert same(assemble(out), np.ldexp(data.astype("f8"), 127 - bias))


@pytest.mark.parametrize("bias", [900, 1024, 5000])
def test_an_exponent_that_no_dtype_reaches_is_refused(tmp_path, library, bias):
    odd = h5py.h5t.IEEE_F64LE.copy()
    odd.set_ebias(bias)
    low_level(tmp_path / "a.h5", "x", odd, np.array([1.0, 3.0]).tobytes(), (2,))
    with pytest.raises(Refused, match=f"bias {bias}") as caught:
        dump(tmp_path / "a.h5", library=library)
    assert caught.value.status == "unsupported"


def test_integers_with_padding_are_converted(tmp_path, library):
    odd = h5py.h5t.STD_I32BE.copy()
    odd.set_precision(20)
    odd.set_offset(4)
    data = np.array([-5, 7, 1000], "i4")
    low_level(tmp_path / "a.h5", "x", odd, ((data & 0xFFFFF) << 4).astype(">u4").tobytes(), (3,))
    three = h5py.h5t.STD_U32LE.copy()
    three.set_size(3)
    low_level(tmp_path / "a.h5", "three", three, b"\1\0\0" + b"\0\0\1", (2,))
    assert same(values(tmp_path / "a.h5", "x", library=library), data)
    assert same(values(tmp_path / "a.h5", "three", library=library), np.array([1, 65536], "u4"))


def test_enumerations_are_bool_or_their_integers(tmp_path, library):
    colours = h5py.enum_dtype({"RED": 0, "GREEN": 300}, basetype=">i2")
    no_bool = h5py.enum_dtype({"FALSE": 1, "TRUE": 0}, basetype="i1")
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["bool"] = np.array([True, False])
        f.create_dataset("colours", data=np.array([0, 300, 0], ">i2"), dtype=colours)
        f.create_dataset("swapped", data=np.array([0, 1], "i1"), dtype=no_bool)
    assert dump(tmp_path / "a.h5", "bool", library=library)["dtype"] == "|b1"
    assert same(values(tmp_path / "a.h5", "colours", library=library), np.array([0, 300, 0], "i2"))
    assert dump(tmp_path / "a.h5", "swapped", library=library)["dtype"] == "|i1"


@pytest.mark.parametrize("base", ["<i2", ">i2", ">u4", ">i8", "u1"])
@pytest.mark.parametrize("storage", ["compact", "nbit"])
def test_numbers_of_enumerations_that_have_no_name(tmp_path, library, storage, base):
    """libhdf5 makes -1 of them when it converts one enumeration into another."""
    def prepare(plist):
        if storage == "compact":
            plist.set_layout(h5py.h5d.COMPACT)
        else:
            plist.set_chunk((2,))
            plist.set_filter(h5py.h5z.FILTER_NBIT, h5py.h5z.FLAG_OPTIONAL, ())
    data = np.array([0, 30, 7, 100, 1], base)
    kind = h5py.h5t.py_create(h5py.enum_dtype({"RED": 0, "GREEN": 30}, basetype=base), logical=True)
    low_level(tmp_path / "a.h5", "x", kind, data.tobytes(), (5,), prepare)
    with h5py.File(tmp_path / "a.h5") as f:
        assert np.array_equal(f["x"][()], data)
    assert same(values(tmp_path / "a.h5", "x", library=library), data)


def test_bit_fields_are_unsigned_integers(tmp_path, library):
    low_level(tmp_path / "a.h5", "x", h5py.h5t.STD_B16BE, b"\1\2\3\4", (2,))
    assert same(values(tmp_path / "a.h5", "x", library=library), np.array([0x102, 0x304], "u2"))


@pytest.mark.parametrize("names", [("r", "i"), ("real", "imag")])
@pytest.mark.parametrize("part, dtype", [("<f4", "c8"), (">f8", "c16")])
def test_case_34_complex_pairs(tmp_path, library, names, part, dtype):
    pair = np.dtype([(names[0], part), (names[1], part)])
    data = np.array([(1, 2), (-3, 0.5)], pair)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        h5py.h5d.create(f.id, b"x", h5py.h5t.py_create(pair), h5py.h5s.create_simple((2,))).write(h5py.h5s.ALL, h5py.h5s.ALL, data)
    assert same(values(tmp_path / "a.h5", library=library), np.array([1 + 2j, -3 + 0.5j], dtype))


REFUSED = {
    "halves": (np.dtype([("r", "<f2"), ("i", "<f2")]), "complex numbers of 4 bytes"),
    "order": (np.dtype([("i", "<f4"), ("r", "<f4")]), "compound type"),
    "parts": (np.dtype([("r", "<f4"), ("i", "<f8")]), "parts differ or have gaps"),
    "gap": (np.dtype({"names": ["r", "i"], "formats": ["<f4", "<f4"], "offsets": [0, 8], "itemsize": 12}), "parts differ or have gaps"),
    "tail": (np.dtype({"names": ["r", "i"], "formats": ["<f4", "<f4"], "offsets": [0, 4], "itemsize": 12}), "parts differ or have gaps"),
    "integers": (np.dtype([("r", "<i4"), ("i", "<i4")]), "no floats of 4 or 8 bytes"),
    "records": (np.dtype([("a", "<i4"), ("b", "<f8")]), "compound type"),
    "long double": (np.dtype("g"), "floating-point numbers of 16 bytes with 15 bits of exponent"),
    "strings": (h5py.string_dtype(), "strings of variable length"),
    "sequences": (h5py.vlen_dtype("i4"), "sequences of variable length"),
    "references": (h5py.ref_dtype, "references"),
    "arrays": (np.dtype(("i4", (3,))), "elements that are arrays"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_types_are_refused_by_name(tmp_path, library, name):
    dtype, text = REFUSED[name]
    with h5py.File(tmp_path / "a.h5", "w") as f:
        h5py.h5d.create(f.id, b"x", h5py.h5t.py_create(dtype, logical=True), h5py.h5s.create_simple((2,)))
    with pytest.raises(Refused) as refused:
        dump(tmp_path / "a.h5", library=library)
    assert refused.value.status == "unsupported" and text in refused.value.message and '"/x"' in refused.value.message


def test_texts_keep_their_bytes_whatever_their_padding(tmp_path, library):
    for name, padding in (("term", h5py.h5t.STR_NULLTERM), ("pad", h5py.h5t.STR_NULLPAD), ("space", h5py.h5t.STR_SPACEPAD)):
        text = h5py.h5t.C_S1.copy()
        text.set_size(4)
        text.set_strpad(padding)
        low_level(tmp_path / "a.h5", name, text, b"ab \0cde ", (2,))
        content = (tmp_path / "a.h5").read_bytes()
        part, = dump(tmp_path / "a.h5", name, library=library)["parts"]
        assert content[part["offset"]:][:8] == b"ab \0cde "
