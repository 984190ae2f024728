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
        dataset = h5py.h5d.create(
            f.id, name.encode(), datatype, h5py.h5s.create_simple(shape), plist
        )
        dataset.write(
            h5py.h5s.ALL,
            h5py.h5s.ALL,
            np.frombuffer(stored, f"V{datatype.get_size()}").reshape(shape).copy(),
            mtype=datatype,
        )


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
        assert (
            out["fill"]
            == out["grids"][0]["fill"]
            == data[1, 2].astype(data.dtype.newbyteorder("=")).tobytes().hex()
        )


def test_bfloat16_is_known_by_its_bit_fields(tmp_path, library):
    bits = np.array([0x3F80, 0xC000, 0x7F80, 1], "u2")
    for name, base, order in (
        ("little", h5py.h5t.IEEE_F32LE, "<"),
        ("big", h5py.h5t.IEEE_F32BE, ">"),
    ):
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


def ieee_like(bits, exponent, mantissa, bias):
    """The number, by its bits: the rules of IEEE 754 for any widths."""
    sign, power, rest = (
        bits >> (exponent + mantissa) & 1,
        bits >> mantissa & ((1 << exponent) - 1),
        bits & ((1 << mantissa) - 1),
    )
    if power == (1 << exponent) - 1:
        value = np.nan if rest else np.inf
    else:
        value = np.ldexp(rest + ((1 << mantissa) if power else 0), max(power, 1) - bias - mantissa)
    return -value if sign else value


FLOATS = [  # exponent, mantissa, bias, bytes, dtype
    (4, 3, 7, 1, "<f4"),
    (5, 2, 15, 1, "<f4"),
    (3, 4, 3, 1, "<f4"),
    (5, 2, 16, 2, "<f4"),
    (6, 9, 31, 2, "<f4"),
    (8, 15, 127, 3, "<f4"),
    (8, 22, 127, 4, "<f4"),
    (8, 15, 127, 6, "<f4"),
    (8, 24, 127, 5, "<f8"),
    (11, 20, 1023, 4, "<f8"),
    (9, 6, 255, 2, "<f8"),
    (11, 52, 1023, 12, "<f8"),
]


@pytest.mark.parametrize("order", [h5py.h5t.ORDER_LE, h5py.h5t.ORDER_BE])
@pytest.mark.parametrize("exponent, mantissa, bias, size, dtype", FLOATS)
def test_small_floats_are_exact(tmp_path, library, exponent, mantissa, bias, size, dtype, order):
    """Every number of up to 16 bits, and edges and others of longer ones: denormal,
    infinite and no number, too."""
    odd, width = h5py.h5t.IEEE_F64LE.copy(), 1 + exponent + mantissa
    at = 2 if 8 * size - width > 2 else 0
    odd.set_size(16)
    odd.set_precision(128)
    odd.set_fields(at + width - 1, at + mantissa, exponent, at, mantissa)
    odd.set_precision(at + width)
    odd.set_offset(at)
    odd.set_precision(width)
    odd.set_size(size)
    odd.set_ebias(bias)
    odd.set_order(order)
    if width <= 12:
        bits = list(range(1 << width))
    else:
        generator, top = np.random.default_rng(7), ((1 << exponent) - 1) << mantissa
        bits = [int(one) for one in generator.integers(0, 1 << width, 500, dtype="u8")] + [
            *range(40),
            top - 1,
            top,
            top + 1,
            top - (1 << mantissa),
        ]
        bits += [1 << (width - 1) | one for one in bits[-44:]]
    stored = b"".join(
        (one << at).to_bytes(size, "little" if order == h5py.h5t.ORDER_LE else "big")
        for one in bits
    )
    low_level(tmp_path / "a.h5", "x", odd, stored, (len(bits),))
    out = dump(tmp_path / "a.h5", library=library)
    assert out["dtype"] == dtype and out["parts"][0]["kind"] == "reader"
    got, want = assemble(out), np.array([ieee_like(one, exponent, mantissa, bias) for one in bits])
    assert (
        (got == want) & (np.signbit(got) == np.signbit(want)) | np.isnan(got) & np.isnan(want)
    ).all()
    if size <= 4:  # what h5py has a dtype for
        with h5py.File(tmp_path / "a.h5") as f:
            assert np.array_equal(f["x"][()], got, equal_nan=True)


@pytest.mark.parametrize("kind", [np.longdouble, "more exponent", "more mantissa"])
def test_floats_that_no_dtype_holds_are_refused(tmp_path, library, kind):
    odd = (
        h5py.h5t.py_create(np.dtype(kind)) if kind is np.longdouble else h5py.h5t.IEEE_F64LE.copy()
    )
    if kind == "more exponent":
        odd.set_fields(63, 51, 12, 0, 51)
    elif kind == "more mantissa":
        odd.set_fields(63, 53, 10, 0, 53)
        odd.set_ebias(511)
    low_level(tmp_path / "a.h5", "x", odd, bytes(2 * odd.get_size()), (2,))
    with pytest.raises(
        Refused,
        match=f"unsupported.*floating-point numbers of {odd.get_size()} bytes.*no dtype holds",
    ):
        dump(tmp_path / "a.h5", library=library)


@pytest.mark.parametrize(
    "signed, order",
    [(True, h5py.h5t.ORDER_LE), (True, h5py.h5t.ORDER_BE), (False, h5py.h5t.ORDER_BE)],
)
@pytest.mark.parametrize(
    "precision, offset, size, dtype",
    [
        (12, 0, 2, "i2"),
        (12, 1, 2, "i2"),
        (4, 0, 1, "i1"),
        (20, 0, 4, "i4"),
        (20, 4, 4, "i4"),
        (20, 0, 3, "i4"),
        (48, 0, 6, "i8"),
        (63, 0, 8, "i8"),
        (63, 1, 8, "i8"),
        (64, 0, 16, "i8"),
    ],
)
def test_integers_in_part_of_their_bytes(
    tmp_path, library, precision, offset, size, dtype, signed, order
):
    """Whatever stands in the other bits."""
    odd = h5py.h5t.STD_I64LE.copy()
    odd.set_size(max(size, 8))
    odd.set_precision(precision)
    odd.set_offset(offset)
    odd.set_size(size)
    odd.set_sign(h5py.h5t.SGN_2 if signed else h5py.h5t.SGN_NONE)
    odd.set_order(order)
    least, most = (
        (-(1 << (precision - 1)), (1 << (precision - 1)) - 1)
        if signed
        else (0, (1 << precision) - 1)
    )
    generator = np.random.default_rng(precision)
    numbers = [least, most, 0, 1, most // 3, least // 3] + [
        int(one) for one in generator.integers(least, most, 20, dtype="i8" if signed else "u8")
    ]
    mask = ((1 << precision) - 1) << offset
    noise = [int.from_bytes(generator.bytes(size), "little") & ~mask for _ in numbers]
    stored = b"".join(
        ((one << offset & mask) | other).to_bytes(
            size, "little" if order == h5py.h5t.ORDER_LE else "big"
        )
        for one, other in zip(numbers, noise)
    )
    low_level(tmp_path / "a.h5", "x", odd, stored, (len(numbers),))
    want = np.array(numbers, dtype if signed else dtype.replace("i", "u"))
    assert same(values(tmp_path / "a.h5", library=library), want)
    # h5py takes the padding for digits of one byte, big-endian
    if size in (2, 4, 8) or (size == 1 and order == h5py.h5t.ORDER_LE):
        with h5py.File(tmp_path / "a.h5") as f:
            assert np.array_equal(f["x"][()], want)


def padded(order):
    """12 bits in two bytes."""
    odd = h5py.h5t.STD_I16LE.copy()
    odd.set_precision(12)
    odd.set_order(order)
    return odd


@pytest.mark.parametrize("order", [h5py.h5t.ORDER_LE, h5py.h5t.ORDER_BE])
def test_integers_with_padding_in_chunks_and_as_fill_value(tmp_path, library, order):
    def prepare(plist):
        plist.set_chunk((2,))
        plist.set_fill_value(np.array(-7, "i2"))
        plist.set_filter(h5py.h5z.FILTER_NBIT, h5py.h5z.FLAG_OPTIONAL, ())

    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    prepare(plist)
    data = np.array([-2048, 2047, -1, 5, 1, -2], "i2")
    with h5py.File(tmp_path / "a.h5", "w") as f:
        dataset = h5py.h5d.create(f.id, b"x", padded(order), h5py.h5s.create_simple((6,)), plist)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, data.astype("i4"))
        h5py.h5d.create(f.id, b"none", padded(order), h5py.h5s.create_simple((3,)), plist)
        assert np.array_equal(f["x"][()], data) and np.array_equal(f["none"][()], [-7] * 3)
    assert same(values(tmp_path / "a.h5", "x", library=library), data)
    none = dump(tmp_path / "a.h5", "none", library=library)
    assert none["fill"] == "f9ff" and same(assemble(none), np.full(3, -7, "i2"))


@pytest.mark.parametrize("order", [h5py.h5t.ORDER_LE, h5py.h5t.ORDER_BE])
def test_integers_with_padding_as_sources(tmp_path, library, order):
    """Of their own dtype and of another,
    which libhdf5 would read with the padding as digits in the other byte order."""
    data = np.array([-2, 2000], "<i2")
    low_level(
        tmp_path / "a.h5",
        "x",
        padded(order),
        b"".join((int(one) & 0xFFF).to_bytes(2, ["little", "big"][order]) for one in data),
        (2,),
    )
    with h5py.File(tmp_path / "a.h5", "a") as f:
        for name, dtype in (("same", "<i2"), ("other", "<u2")):
            layout = h5py.VirtualLayout((2,), dtype)
            layout[:] = h5py.VirtualSource(".", "x", (2,), dtype=dtype)
            f.create_virtual_dataset(name, layout)
    assert same(values(tmp_path / "a.h5", "same", library=library), data)
    assert same(values(tmp_path / "a.h5", "other", library=library), np.array([0, 2000], "u2"))


def test_integers_that_no_dtype_holds_are_refused(tmp_path, library):
    odd = h5py.h5t.STD_I64LE.copy()
    odd.set_size(16)
    odd.set_precision(65)
    low_level(tmp_path / "a.h5", "x", odd, bytes(32), (2,))
    with pytest.raises(Refused, match=r"unsupported.*integers of 65 bits in 16 bytes"):
        dump(tmp_path / "a.h5", library=library)


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
        h5py.h5d.create(f.id, b"x", h5py.h5t.py_create(pair), h5py.h5s.create_simple((2,))).write(
            h5py.h5s.ALL, h5py.h5s.ALL, data
        )
    assert same(values(tmp_path / "a.h5", library=library), np.array([1 + 2j, -3 + 0.5j], dtype))


@pytest.mark.parametrize("storage", ["contiguous", "compact", "gzip"])
@pytest.mark.parametrize("names, part", [(("r", "i"), "<f2"), (("real", "imag"), ">f2")])
def test_complex_pairs_of_halves_are_widened(tmp_path, library, names, part, storage):
    """Every half float, and a fill value."""
    halves = np.arange(1 << 16, dtype="u2").view("f2")
    pair = np.dtype([(names[0], part), (names[1], part)])
    if storage != "contiguous":
        halves = halves[::7].copy()
    data = np.zeros(len(halves), pair)
    data[names[0]], data[names[1]] = halves, halves[::-1]
    kind = h5py.h5t.py_create(pair)
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if storage == "compact":
        plist.set_layout(h5py.h5d.COMPACT)
    elif storage == "gzip":
        plist.set_chunk((1000,))
        plist.set_deflate(1)
    fill = np.array((1.5, -2), pair)
    plist.set_fill_value(fill)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        h5py.h5d.create(f.id, b"x", kind, h5py.h5s.create_simple(data.shape), plist).write(
            h5py.h5s.ALL, h5py.h5s.ALL, data
        )
        empty = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        empty.set_fill_value(fill)
        h5py.h5d.create(f.id, b"none", kind, h5py.h5s.create_simple((3,)), empty)
    out = dump(tmp_path / "a.h5", "x", library=library)
    got = assemble(out)
    with h5py.File(tmp_path / "a.h5") as f:
        want = f["x"][()]
    assert out["dtype"] == "<c8" and len(got) == len(want)
    for have, stored in ((got.real, want[names[0]]), (got.imag, want[names[1]])):
        assert (
            np.array_equal(have, stored.astype("f4"), equal_nan=True)
            and (np.signbit(have) == np.signbit(stored))[~np.isnan(have)].all()
        )
    none = dump(tmp_path / "a.h5", "none", library=library)
    assert (
        np.array([1.5 - 2j], "c8").tobytes().hex() == none["fill"]
        and (assemble(none) == 1.5 - 2j).all()
    )


def test_complex_pairs_of_odd_floats(tmp_path, library):
    brain = h5py.h5t.IEEE_F32BE.copy()
    brain.set_fields(15, 7, 8, 0, 7)
    brain.set_size(2)
    brain.set_ebias(127)
    long = h5py.h5t.IEEE_F64LE.copy()
    long.set_precision(70)
    long.set_size(9)
    for name, part, stored, dtype in (
        ("brain", brain, b"\x3f\x80\xc0\x00\x7f\x80\x3f\x00", "c8"),
        (
            "long",
            long,
            b"".join(np.float64(x).tobytes() + b"\0" for x in (1, -2, np.inf, 0.5)),
            "c16",
        ),
    ):
        kind = h5py.h5t.create(h5py.h5t.COMPOUND, 2 * part.get_size())
        kind.insert(b"r", 0, part)
        kind.insert(b"i", part.get_size(), part)
        low_level(tmp_path / "a.h5", name, kind, stored, (2,))
        assert same(
            values(tmp_path / "a.h5", name, library=library),
            np.array([1 - 2j, complex(np.inf, 0.5)], dtype),
        )


@pytest.mark.parametrize("other", [False, True])
def test_virtual_datasets_of_types_that_are_converted(tmp_path, library, other):
    """Sources of the same type, and of one with more bits, none of which gets lost: libhdf5
    converts to what is asked for."""
    odd = h5py.h5t.IEEE_F32LE.copy()
    odd.set_fields(23, 15, 8, 0, 15)
    odd.set_size(3)
    odd.set_ebias(127)
    data = np.array([1.5, -0.25, 96, 0], "<f4")
    stored = b"".join(bits.tobytes()[:3] for bits in data.view("<u4") >> np.uint32(8))
    low_level(tmp_path / "a.h5", "x", odd, stored, (4,))
    if other:
        data = np.array([np.pi, -0.1, 1e-3, 0], "<f4")
    with h5py.File(tmp_path / "a.h5", "a") as f:
        f["y"] = data
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        space, part = h5py.h5s.create_simple((6,)), h5py.h5s.create_simple((6,))
        part.select_hyperslab((1,), (4,))
        plist.set_virtual(part, b".", b"y" if other else b"x", h5py.h5s.create_simple((4,)))
        plist.set_fill_value(np.array(7, "f4"))
        h5py.h5d.create(f.id, b"v", odd, space, plist)
    with h5py.File(tmp_path / "a.h5") as f:
        assert f["v"][()].tolist() == [7, *data, 7]
    assert same(values(tmp_path / "a.h5", "v", library=library), np.array([7, *data, 7], "f4"))


REFUSED = {
    "long double": (np.dtype("g"), "floating-point numbers of 16 bytes with 15 bits of exponent"),
    "strings": (h5py.string_dtype(), "strings of variable length"),
    "sequences": (h5py.vlen_dtype("i4"), "sequences of variable length"),
    "references": (h5py.ref_dtype, "references"),
}

PAIRS = {
    "order": [("i", "<f4"), ("r", "<f4")],
    "parts": [("r", "<f4"), ("i", "<f8")],
    "gap": [("r", "<f4"), ("", "|V4"), ("i", "<f4")],
    "tail": [("r", "<f4"), ("i", "<f4"), ("", "|V4")],
    "integers": [("r", "<i4"), ("i", "<i4")],
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_that_are_no_complex_numbers_are_records(tmp_path, library, name):
    dtype = np.lib.format.descr_to_dtype(PAIRS[name])
    kind = h5py.h5t.create(h5py.h5t.COMPOUND, dtype.itemsize)
    for field, (base, offset) in dtype.fields.items():
        kind.insert(field.encode(), offset, h5py.h5t.py_create(base))
    low_level(tmp_path / "a.h5", "x", kind, bytes(range(2 * dtype.itemsize)), (2,))
    out = dump(tmp_path / "a.h5", library=library)
    assert out["descr"] == repr(PAIRS[name]) and out["dtype"] == f"|V{dtype.itemsize}"


@pytest.mark.parametrize("name", REFUSED)
def test_other_types_are_refused_by_name(tmp_path, library, name):
    dtype, text = REFUSED[name]
    with h5py.File(tmp_path / "a.h5", "w") as f:
        h5py.h5d.create(
            f.id, b"x", h5py.h5t.py_create(dtype, logical=True), h5py.h5s.create_simple((2,))
        )
    with pytest.raises(Refused) as refused:
        dump(tmp_path / "a.h5", library=library)
    assert (
        refused.value.status == "unsupported"
        and text in refused.value.message
        and '"/x"' in refused.value.message
    )


def test_texts_keep_their_bytes_whatever_their_padding(tmp_path, library):
    for name, padding in (
        ("term", h5py.h5t.STR_NULLTERM),
        ("pad", h5py.h5t.STR_NULLPAD),
        ("space", h5py.h5t.STR_SPACEPAD),
    ):
        text = h5py.h5t.C_S1.copy()
        text.set_size(4)
        text.set_strpad(padding)
        low_level(tmp_path / "a.h5", name, text, b"ab \0cde ", (2,))
        content = (tmp_path / "a.h5").read_bytes()
        (part,) = dump(tmp_path / "a.h5", name, library=library)["parts"]
        assert content[part["offset"] :][:8] == b"ab \0cde "
