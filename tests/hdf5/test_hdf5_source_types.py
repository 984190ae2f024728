# Sources of virtual datasets that have another type than the dataset: virtual ones, external files,
# types that no dtype has.
#
# SPDX-License-Identifier: Apache-2.0
#
# What libhdf5 does: numbers are converted once, from what is stored to what is asked for, whatever
# the datasets between are of; where a dataset between has nothing, its fill value is. h5py judges,
# and numpy where libhdf5 is wrong. TEGULA_OTHER_H5PY: a folder with another h5py.
import os
import pathlib

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes and judges these files")

import hdf5_files as h5  # noqa: E402

SHAPE = (12, 10)
OTHER = os.environ.get("TEGULA_OTHER_H5PY")
SYSTEM = sorted(pathlib.Path("/usr/lib/x86_64-linux-gnu").glob("libhdf5_serial.so.[0-9][0-9][0-9]"))
WHEELS = sorted((pathlib.Path(OTHER) / "h5py.libs").glob("libhdf5-*.so*")) if OTHER else []
LIBRARIES = [os.environ.get("TEGULA_HDF5_LIBRARY"), *map(str, SYSTEM + WHEELS)]
LAYOUTS = ["contiguous", "chunked", "compact", "external", "virtual"]


@pytest.fixture(
    params=[pytest.param(path, id=pathlib.Path(path or "default").name[:30]) for path in LIBRARIES]
)
def library(request, new_probe, sanitizer):
    if sanitizer and request.param != os.environ.get("TEGULA_HDF5_LIBRARY"):
        pytest.skip("sanitizers look at one libhdf5")
    probe = new_probe(environment={"TEGULA_HDF5_LIBRARY": request.param} if request.param else {})
    probe.call("context", threads=2)
    return probe


def numbers(dtype):
    rng = numpy.random.default_rng(6)
    out = (
        rng.integers(0, 100, SHAPE)
        if numpy.dtype(dtype).kind == "u"
        else rng.integers(-100, 100, SHAPE)
    )
    return (out + (rng.random(SHAPE) if numpy.dtype(dtype).kind == "f" else 0)).astype(dtype)


def write_leaf(folder, layout, dtype, typeid=None):
    """ "d" of leaf.h5."""
    path, data = folder / "leaf.h5", numbers(dtype)
    typeid = typeid or h5py.h5t.py_create(numpy.dtype(dtype))
    if layout == "virtual":
        h5.low_level(path, "inner", typeid, SHAPE, data=data, libver="v110")
        h5.virtual(
            path,
            "d",
            SHAPE,
            dtype,
            [(numpy.s_[2:], ".", "inner", SHAPE, numpy.s_[:10])],
            fill=7,
            libver="v110",
        )
    else:
        some = 5 * SHAPE[1] * typeid.get_size()  # in rows; the rest in a second file, at an offset
        segments = [(folder / "a.bin", 0, some), (folder / "b.bin", 3, h5py.h5s.UNLIMITED)]
        prepare = {
            "compact": h5.compact,
            "chunked": chunked,
            "external": h5.external(*segments),
            "contiguous": None,
        }[layout]
        (folder / "b.bin").write_bytes(b"\0" * (3 + 7 * SHAPE[1] * typeid.get_size()))
        h5.low_level(path, "d", typeid, SHAPE, prepare, data, libver="v110")
    return data


def chunked(plist):
    plist.set_chunk((5, 4))
    plist.set_deflate(3)


def write_levels(folder, between, top, fills=(-3, 5)):
    """ "v" of top.h5 over "v" of mid.h5, which has a gap,
    a transposed piece of leaf.h5 and a source that is lost."""
    pieces = [
        (numpy.s_[:8], "leaf.h5", "d", SHAPE, numpy.s_[4:]),
        (numpy.s_[8:9, ::2], "leaf.h5", "d", SHAPE, numpy.s_[0:10:2, 3:4]),
    ]
    h5.virtual(folder / "mid.h5", "v", (12, 10), between, pieces, fill=fills[0], libver="v110")
    h5.virtual(
        folder / "top.h5",
        "v",
        (10, 11),
        top,
        [(numpy.s_[:, 1:], "mid.h5", "v", (12, 10), numpy.s_[2:])],
        fill=fills[1],
        libver="v110",
    )


def check(probe, tmp_path, path, name="v", expected=None):
    """Everything, and boxes."""
    want = h5.read(path, name) if expected is None else expected
    h5.check_load(probe, tmp_path, path, name, want)
    rng = numpy.random.default_rng(7)
    for _ in range(4):
        ends = [sorted(rng.choice(n + 1, 2, replace=False).tolist()) for n in want.shape]
        probe.call("read", dtype=want.dtype.str, box=ends, path=str(tmp_path / "box"))
        assert (tmp_path / "box").read_bytes() == numpy.ascontiguousarray(
            want[tuple(slice(*end) for end in ends)]
        ).tobytes(), ends


TYPES = [
    ("<f8", "<i2", "<f8"),
    ("<i8", "<f4", "<i2"),
    (">f4", "u1", "<f8"),
    ("<i2", ">i8", ">f4"),
    ("u1", "<i4", "<i4"),
    ("<f8", "<f4", "<i4"),
]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_level_has_its_type(library, tmp_path, layout):
    for stored, between, top in TYPES if layout == "external" else TYPES[:2]:
        folder = tmp_path / (stored + between + top).replace("<", "l").replace(">", "b")
        folder.mkdir()
        write_leaf(folder, layout, stored)
        write_levels(folder, between, top)
        check(library, tmp_path, folder / "top.h5")
        check(library, tmp_path, folder / "mid.h5")


def test_columns_of_an_external_file(library, tmp_path):
    """Far apart in the file, and in boxes of the host that do not fall together with its own."""
    data = numpy.random.default_rng(8).integers(-30000, 30000, (400, 3000)).astype("<i2")
    data.tofile(tmp_path / "raw.bin")
    h5.low_level(
        tmp_path / "leaf.h5",
        "d",
        "<i2",
        data.shape,
        h5.external((tmp_path / "raw.bin", 0, data.nbytes)),
    )
    h5.virtual(
        tmp_path / "a.h5",
        "v",
        (3, 400),
        "<f8",
        [(k, "leaf.h5", "d", data.shape, numpy.s_[:, 1000 * k + 1]) for k in range(3)],
        libver="v110",
    )
    h5.virtual(
        tmp_path / "a.h5",
        "all",
        data.shape,
        "<f4",
        [(numpy.s_[:], "leaf.h5", "d", data.shape, None)],
        libver="v110",
    )
    h5.check_load(
        library, tmp_path, tmp_path / "a.h5", "v", data[:, 1:3000:1000].T.astype("f8"), tiles=3
    )
    h5.check_load(library, tmp_path, tmp_path / "a.h5", "all", data.astype("f4"), tiles=4)


@pytest.mark.parametrize("cut", [2 * SHAPE[1] + 4, None])
def test_what_an_external_file_lacks_is_lost(library, tmp_path, cut):
    """The second file ends within an element, or is not there;
    the dataset's own fill value takes the place."""
    write_leaf(tmp_path, "external", "<i4")
    write_levels(tmp_path, "<i2", "<f8")
    want = h5.read(tmp_path / "top.h5", "v")
    os.truncate(tmp_path / "b.bin", 3 + 4 * cut + 2) if cut else (tmp_path / "b.bin").unlink()
    h5.load_refused(
        library, tmp_path / "top.h5", "v", "short_file" if cut else "not_found", ["b.bin"]
    )
    leaf, mid = (
        numpy.arange(120).reshape(SHAPE) >= 5 * SHAPE[1] + (cut or 0),
        numpy.zeros(SHAPE, bool),
    )
    mid[:8], mid[8, ::2] = leaf[4:], leaf[0:10:2, 3]
    want[:, 1:][mid[2:]] = 0
    assert (
        h5.check_load(library, tmp_path, tmp_path / "top.h5", "v", want, missing="fill")["missing"]
        > 0
    )


def test_the_file_may_not_change(library, tmp_path):
    write_leaf(tmp_path, "external", "<i4")
    write_levels(tmp_path, "<i2", "<f8")
    info = library.call("open", path=str(tmp_path / "top.h5"), dataset="v")
    with open(tmp_path / "b.bin", "r+b") as file:
        file.write(b"x")
    library.batch(
        [
            {"do": "tiling", "kind": "even", "shape": info["shape"]},
            {"do": "array", "dtype": info["dtype"]},
        ]
    )
    h5.check_error(library.refused("load"), "changed", ["b.bin"])


def odd(base, bits=None, order=None):
    out = base.copy()
    if bits:
        out.set_precision(bits)
    if order is not None:
        out.set_order(order)
    return out


def odd_float(order=h5py.h5t.ORDER_LE):
    """24 bits: 7 of exponent, 16 of mantissa."""
    out = h5py.h5t.IEEE_F32LE.copy()
    out.set_fields(23, 16, 7, 0, 16)
    out.set_size(3)
    out.set_ebias(63)
    out.set_order(order)
    return out


ODD = {
    "12 of 16 bits": lambda: odd(h5py.h5t.STD_I16LE, 12),
    "12 of 16 bits, big": lambda: odd(h5py.h5t.STD_I16BE, 12),
    "24 bits": odd_float,
    "24 bits, big": lambda: odd_float(h5py.h5t.ORDER_BE),
    "3 bytes": lambda: three_bytes(),
}


def three_bytes():
    out = h5py.h5t.STD_I32LE.copy()
    out.set_precision(24)
    out.set_size(3)
    return out


def write_virtual(path, typeid, source, shape=SHAPE):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    space = h5py.h5s.create_simple(shape)
    plist.set_virtual(space, source.encode(), b"d", space)
    with h5py.File(path, "a", libver="v110") as file:
        h5py.h5d.create(file.id, b"v", typeid, space, plist)


@pytest.mark.parametrize(
    "kind, layout",
    [(kind, layout) for n, kind in enumerate(ODD) for layout in (LAYOUTS[n % 3], "external")],
)
def test_types_that_no_dtype_has(library, tmp_path, kind, layout):
    """As sources, external files themselves, and as what is over sources of another type."""
    is_float = kind.startswith("24")
    data = (numpy.arange(120) - 60).reshape(SHAPE) * (0.25 if is_float else 1)
    write_leaf(tmp_path, layout, "<f4" if is_float else "<i4", ODD[kind]())
    with h5py.File(tmp_path / "leaf.h5", "a") as file:
        file["d"].id.write(
            h5py.h5s.ALL,
            h5py.h5s.ALL,
            data,
            mtype=h5py.h5t.NATIVE_DOUBLE if is_float else h5py.h5t.NATIVE_INT64,
        )
    own = library.call("open", path=str(tmp_path / "leaf.h5"), dataset="d")["dtype"]
    h5.check_load(library, tmp_path, tmp_path / "leaf.h5", "d", data.astype(own))
    for dtype in ("<f8", "<i8", "<u2"):
        path = tmp_path / ("over%s.h5" % dtype[1:])
        h5.virtual(
            path, "v", SHAPE, dtype, [(numpy.s_[:], "leaf.h5", "d", SHAPE, None)], libver="v110"
        )
        # libhdf5 takes the nearest that there is
        want = numpy.where((data < 0) & (dtype == "<u2"), 0, data).astype(dtype)
        h5.check_load(library, tmp_path, path, "v", want)
    for dtype in (">i2", "<f8"):
        (tmp_path / "plain.h5").unlink(missing_ok=True)
        (tmp_path / "odd.h5").unlink(missing_ok=True)
        with h5py.File(tmp_path / "plain.h5", "w") as file:
            file["d"] = data.astype(dtype)
        write_virtual(tmp_path / "odd.h5", ODD[kind](), "plain.h5")
        h5.check_load(library, tmp_path, tmp_path / "odd.h5", "v", data.astype(dtype).astype(own))


NUMBERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
EDGES = [
    -0.25,
    0.25,
    -1e-30,
    -0.75,
    1.75,
    -1.5,
    127.5,
    -128.5,
    40000,
    -40000,
    3e9,
    -3e9,
    1e19,
    -1e19,
    1e30,
    -1e30,
    numpy.inf,
    -numpy.inf,
    0,
    -1,
    1,
]


def nearest(data, dtype):
    """What C has, but for what is too large: then the nearest there is."""
    if numpy.dtype(dtype).kind == "f":
        with numpy.errstate(over="ignore"):
            return data.astype(dtype)
    least, most = numpy.iinfo(dtype).min, numpy.iinfo(dtype).max
    return numpy.array(
        [
            least if x == -numpy.inf else most if x == numpy.inf else min(max(int(x), least), most)
            for x in data.tolist()
        ],
        dtype,
    )


def test_numbers_become_the_nearest(library, tmp_path):
    """libhdf5 up to 2.0 makes -128 of -0.25 in the other byte order, lets integers wrap there,
    and has its own ways with halves."""
    sources = [">i2", ">u4", ">i8", ">u8", "<f2", ">f2", ">f4", ">f8"]
    with h5py.File(tmp_path / "s.h5", "w", libver="v110") as file, numpy.errstate(all="ignore"):
        data = {}
        for name in sources:
            data[name] = (
                nearest(numpy.array(EDGES, "f8"), name)
                if name[1] != "f"
                else numpy.array(EDGES).astype(name)
            )
            file[name] = data[name]
    for target in NUMBERS:
        pieces = [
            (numpy.s_[k], "s.h5", name, (len(EDGES),), None) for k, name in enumerate(sources)
        ]
        h5.virtual(
            tmp_path / "v.h5",
            target,
            (len(sources), len(EDGES)),
            "<" + target,
            pieces,
            libver="v110",
        )
        want = numpy.stack(
            [
                nearest(data[name].astype(data[name].dtype.newbyteorder("=")), target)
                for name in sources
            ]
        )
        h5.check_load(library, tmp_path, tmp_path / "v.h5", target, want)
