# The cases of docs/coverage.md: those of hdf5_cases.py, every layout and every codec with every
# dtype, files made with other options, and what must be refused. Writes them with the h5py at hand,
# and what that h5py reads of them.
#
# SPDX-License-Identifier: Apache-2.0
#
#     python3 hdf5_coverage.py FOLDER VERSION...
#
# writes FOLDER/CASE-VERSION/a.h5 and want.json for those of the versions of files that this h5py
# writes. A dataset comes with what must come out: {"digest", "shape"} of native bytes, {"open":
# shape} where it is too large to load, or {"status"} of the refusal.
import hashlib
import json
import os
import pathlib
import sys
import zlib

import h5py
import numpy

import hdf5_cases
import hdf5_files
from hdf5_cases import NUMBERS, values

# which is one of the others
VERSIONS = {name: bounds for name, bounds in hdf5_cases.VERSIONS.items() if name != "latest"}
CASES = dict(hdf5_cases.CASES)
TWO = ("earliest", "v114", "v200")  # of the large tables only these versions
ONLY = {}
OPTIONS = {}  # of the file
MARKED = {}  # as it lies there while it is written: SWMR or not


def add(name, function, only, **options):
    CASES[name], ONLY[name], OPTIONS[name] = function, only, options


def case(only):
    def note(function):
        add(function.__name__, function, only)
        return function

    return note


def names_of(file):
    found = []
    file.visititems(
        lambda name, item: found.append(name) if isinstance(item, h5py.Dataset) else None
    )
    return dict.fromkeys(found)


def create(file, name, kind, shape, data=None, prepare=None):
    """By the low-level calls: any type, any creation list. `data` as its bytes are stored."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if prepare:
        prepare(plist)
    group, _, leaf = name.rpartition("/")
    where = file.require_group(group) if group else file
    dataset = h5py.h5d.create(where.id, leaf.encode(), kind, h5py.h5s.create_simple(shape), plist)
    if data is not None:
        dataset.write(
            h5py.h5s.ALL,
            h5py.h5s.ALL,
            numpy.frombuffer(data, "V%d" % kind.get_size()).reshape(shape).copy(),
            mtype=kind,
        )
    return dataset


# ---- types ----


def brain(base):
    kind = base.copy()
    kind.set_fields(15, 7, 8, 0, 7)
    kind.set_size(2)
    kind.set_ebias(127)
    return kind


def narrow(base, size, precision, offset=0):
    kind = base.copy()
    kind.set_size(size)
    kind.set_precision(precision)
    kind.set_offset(offset)
    return kind


def small_float(size, mantissa, exponent):
    kind = h5py.h5t.IEEE_F32LE.copy()
    kind.set_fields(size * 8 - 1, mantissa, exponent, 0, mantissa)
    kind.set_size(size)
    kind.set_ebias((1 << exponent - 1) - 1)
    return kind


def enumeration(base, members):
    kind = h5py.h5t.enum_create(base)
    for name, value in members.items():
        kind.enum_insert(name.encode(), value)
    return kind


T = h5py.h5t
COUNT = 20
EXACT = ["?", "<c8", ">c8", "<c16", ">c16", "S1", "S7", "V5"]
# name: type, dtype of what comes out; all bytes are values
BITS = {
    "bits 8": (T.STD_B8LE, "u1"),
    "bits 16": (T.STD_B16BE, ">u2"),
    "bits 32": (T.STD_B32LE, "<u4"),
    "bits 64": (T.STD_B64BE, ">u8"),
    "bfloat16 little": (brain(T.IEEE_F32LE), "<u2"),
    "bfloat16 big": (brain(T.IEEE_F32BE), ">u2"),
    "enum of i2": (enumeration(T.STD_I16LE, {"A": 1, "B": -4}), "<i2"),
    "enum of u8": (enumeration(T.STD_U64BE, {"A": 1, "B": 4}), ">u8"),
}


def one_byte(bits):
    """4 bits of exponent (bias 7), 3 of mantissa."""
    power, rest = bits >> 3, bits & 7
    return numpy.ldexp(rest + numpy.where(power > 0, 8, 0), numpy.maximum(power, 1) - 10)


# through libhdf5; what comes out is worked out from the bytes, which are below 100
CONVERTED = {
    "3 bytes": (
        narrow(T.STD_U32LE, 3, 24),
        lambda b: b[:, 0] + (b[:, 1] << 8) + (b[:, 2] << 16),
        "<u4",
    ),
    "12 of 16 bits": (
        narrow(T.STD_U16LE, 2, 12),
        lambda b: (b[:, 0] + (b[:, 1] << 8)) & 0xFFF,
        "<u2",
    ),
    "12 of 16 bits, big": (
        narrow(T.STD_U16BE, 2, 12, 4),
        lambda b: ((b[:, 0] << 8) + b[:, 1]) >> 4,
        "<u2",
    ),
    "5 bytes": (
        narrow(T.STD_U64LE, 5, 40),
        lambda b: sum(b[:, k] << 8 * k for k in range(5)),
        "<u8",
    ),
    "float of 3 bytes": (
        small_float(3, 15, 8),
        lambda b: ((b[:, 0] << 8) + (b[:, 1] << 16) + (b[:, 2] << 24)).astype("<u4").view("<f4"),
        "<f4",
    ),
    "float of 1 byte": (small_float(1, 3, 4), lambda b: one_byte(b[:, 0]), "<f4"),
    "complex of halves": (
        T.py_create(numpy.dtype([("r", ">f2"), ("i", ">f2")])),
        lambda b: b.astype("u1").view(">f2").astype("<f4").view("<c8")[:, 0],
        "<c8",
    ),
}


def type_table():
    """{name: (type, bytes, what comes out)}"""
    rng = numpy.random.default_rng(3)
    table = {}
    for dtype in NUMBERS + EXACT:
        data = (
            numpy.frombuffer(rng.bytes(COUNT * numpy.dtype(dtype).itemsize), dtype)
            if dtype[0] in "SV"
            else values(rng, (COUNT,), dtype)
        )
        table[dtype] = h5py.h5t.py_create(numpy.dtype(dtype), logical=True), data.tobytes(), data
    for name, (kind, dtype) in BITS.items():
        data = rng.bytes(COUNT * kind.get_size())
        table[name] = kind, data, numpy.frombuffer(data, dtype)
    for name, (kind, decode, dtype) in CONVERTED.items():
        data = rng.integers(0, 100, (COUNT, kind.get_size())).astype("u1")
        table[name] = kind, data.tobytes(), decode(data.astype("i8")).astype(dtype)
    return table


def compact(plist):
    plist.set_layout(h5py.h5d.COMPACT)


def chunked(*filters):
    def prepare(plist):
        plist.set_chunk((4, 2))
        for number, parameters in filters:
            plist.set_filter(number, h5py.h5z.FLAG_OPTIONAL, parameters)

    return prepare


LAYOUTS = {
    "contiguous": None,
    "compact": compact,
    "chunked": chunked(),
    "shuffle, deflate": chunked((2, ()), (1, (4,))),
}


def native(data):
    return data if data.dtype.kind in "SVb" else data.astype(data.dtype.newbyteorder("="))


@case(TWO)
def layout_by_dtype(file, rng):
    folder = pathlib.Path(file.filename).parent
    found = {}
    shape = (5, 4)
    for number, (name, (kind, stored, data)) in enumerate(type_table().items()):
        for layout, prepare in LAYOUTS.items():
            create(file, layout + "/" + name, kind, shape, stored, prepare)
        half = len(stored) // 2 // kind.get_size() * kind.get_size()
        (folder / ("%d.bin" % number)).write_bytes(b"head" + stored[:half])
        (folder / ("%d.rest" % number)).write_bytes(stored[half:])

        def external(plist):
            plist.set_external(b"%d.bin" % number, 4, half)  # noqa: B023
            plist.set_external(b"%d.rest" % number, 0, h5py.h5f.UNLIMITED)  # noqa: B023

        create(file, "external/" + name, kind, shape, None, external)

        def virtual(plist):
            whole = h5py.h5s.create_simple(shape)
            source = ("/shuffle, deflate/" + name).encode()  # noqa: B023
            plist.set_virtual(whole, b".", source, whole)

        create(file, "virtual/" + name, kind, shape, None, virtual)
        for layout in [*LAYOUTS, "external", "virtual"]:
            found[layout + "/" + name] = native(data).reshape(shape)
    return found


def codec_options():
    import hdf5plugin as plugins

    return {
        "deflate": {"compression": "gzip"},
        "shuffle": {"shuffle": True},
        "shuffle, deflate": {"compression": "gzip", "shuffle": True},
        "fletcher32": {"fletcher32": True},
        "shuffle, deflate, fletcher32": {
            "compression": "gzip",
            "shuffle": True,
            "fletcher32": True,
        },
        "lzf": {"compression": "lzf"},
        "szip": {"compression": "szip"},
        "szip ec": {"compression": "szip", "compression_opts": ("ec", 8)},
        "scaleoffset": {"scaleoffset": 0},
        "zstd": plugins.Zstd(),
        "lz4": plugins.LZ4(),
        "bitshuffle": plugins.Bitshuffle(cname="none"),
        "bitshuffle lz4": plugins.Bitshuffle(cname="lz4"),
        "bitshuffle zstd": plugins.Bitshuffle(cname="zstd"),
        "blosc lz4": plugins.Blosc(cname="lz4"),
        "blosc zstd": plugins.Blosc(cname="zstd", shuffle=plugins.Blosc.BITSHUFFLE),
        "blosc2 lz4": plugins.Blosc2(cname="lz4"),
    }


@case(TWO)
def codec_by_dtype(file, rng):
    found = {}
    for codec, options in codec_options().items():
        for dtype in NUMBERS + EXACT:
            kind = numpy.dtype(dtype).kind
            if (codec == "scaleoffset" and kind not in "iu") or (
                codec.startswith("szip") and kind in "cSVb"
            ):
                continue
            data = (
                numpy.frombuffer(rng.bytes(70 * numpy.dtype(dtype).itemsize), dtype)
                if kind in "SV"
                else values(rng, 70, dtype)
            )
            if kind in "iu":
                data = data % 50
            file.create_dataset(
                codec + "/" + dtype,
                data=data.reshape(14, 5).astype(dtype),
                chunks=(8, 4),
                **options,
            )
            found[codec + "/" + dtype] = None
    return found


# ---- other files ----


def basics(file, rng):
    data = values(rng, (9, 7), ">i4")
    file["contiguous"] = data
    for name, more in (
        ("chunked", {}),
        ("gzip", {"compression": "gzip"}),
        ("growing", {"maxshape": (None, 7)}),
        ("free", {"maxshape": (None, None)}),
    ):
        file.create_dataset(name, data=data, chunks=(4, 3), **more)
    file.create_dataset("part", (9, 7), "<i4", chunks=(4, 3), fillvalue=-1)[4:, 3:5] = 5
    file.create_dataset("unwritten", (9, 7), "<i4", fillvalue=6)
    file.create_dataset("scaleoffset", data=data % 50, chunks=(4, 3), scaleoffset=0)
    create(file, "compact", h5py.h5t.STD_I32BE, data.shape, data.tobytes(), compact)
    return names_of(file)


for size in (512, 4096):
    add("user_block_of_%d_bytes" % size, basics, TWO, userblock_size=size)
for sizes in ((2, 2), (4, 4), (8, 4), (4, 8)):
    # later forms libhdf5 cannot read back itself
    add("offsets_of_%d_lengths_of_%d_bytes" % sizes, basics, ("earliest",), sizes=sizes)
add("paged_file_space", basics, TWO, fs_strategy="page", fs_page_size=4096)
add("persistent_free_space", basics, TWO, fs_strategy="fsm", fs_persist=True)
add("swmr_writer_at_work", basics, ("v110", "v114", "v200"))
add(
    "marked_as_open_for_writing",
    lambda file, rng: dict.fromkeys(basics(file, rng), "unsupported"),
    ("v110", "v114", "v200"),
)
MARKED.update(swmr_writer_at_work=True, marked_as_open_for_writing=False)


@case(TWO)
def external_files(file, rng):
    folder = pathlib.Path(file.filename).parent
    data = values(rng, (16,), "<i4")
    (folder / "whole.bin").write_bytes(data.tobytes())
    (folder / "cut.bin").write_bytes(data.tobytes()[:-4])

    def segments(*parts):
        return lambda plist: [
            plist.set_external(name, offset, size) for name, offset, size in parts
        ]

    for name, parts in {
        "one": [(b"whole.bin", 0, 64)],
        "two": [(b"whole.bin", 0, 32), (b"whole.bin", 16, 32)],
        "endless": [(b"whole.bin", 0, h5py.h5f.UNLIMITED)],
        "cut": [(b"cut.bin", 0, 64)],
        "absent": [(b"gone.bin", 0, 64)],
        "ends within an element": [(b"whole.bin", 0, 30), (b"whole.bin", 30, 34)],
    }.items():
        create(file, name, h5py.h5t.STD_I32LE, (16,), None, segments(*parts))
    # h5py looks for the files in the working directory
    two = numpy.concatenate([data[:8], data[4:12]])
    return {
        "one": data,
        "two": two,
        "endless": data,
        "cut": "short_file",
        "absent": "not_found",
        "ends within an element": "unsupported",
    }


@case(TWO)
def virtual_datasets(file, rng):
    folder = pathlib.Path(file.filename).parent
    data = values(rng, (6, 8), "<i4")
    for k in range(3):
        with h5py.File(folder / ("s%d.h5" % k), "w", libver=file.libver) as source:
            source.create_dataset(
                "d",
                data=data + k,
                chunks=(4, 4) if k else None,
                compression="gzip" if k == 2 else None,
            )
            source["narrow"] = (data % 100).astype(">i2")
            source["text"] = numpy.full((6, 8), b"ab")
            below = h5py.VirtualLayout((6, 8), ">i2")
            below[:] = h5py.VirtualSource(".", "narrow", (6, 8))
            source.create_virtual_dataset("virtual", below)
    s = numpy.s_
    kinds = {
        "stacked": ((18, 8), [(s[6 * k : 6 * k + 6], "s%d.h5" % k, "d", None) for k in range(3)]),
        "gaps": ((9, 9), [(s[2:8, 1:], "s1.h5", "d", None)]),
        "strides": ((6, 8), [(s[::2, ::4], "s2.h5", "d", s[3:, 6:])]),
        "overlaps": ((7, 8), [(s[:6], "s0.h5", "d", None), (s[1:], "s1.h5", "d", None)]),
        "other type": ((6, 8), [(s[:], "s0.h5", "narrow", None)]),
        "no mapping": ((3, 2), []),
        "virtual source of another type": ((6, 8), [(s[:], "s0.h5", "virtual", None)]),
        "source absent": ((6, 8), [(s[:], "gone.h5", "d", None)]),
        "dataset absent": ((6, 8), [(s[:], "s0.h5", "gone", None)]),
        "type that does not convert": ((6, 8), [(s[:], "s0.h5", "text", None)]),
        "source too small": ((7, 8), [(s[:], "s0.h5", "d", None)]),
    }
    for name, (shape, mappings) in kinds.items():
        layout = h5py.VirtualLayout(shape, "<i4")
        for to, path, dataset, at in mappings:
            source = h5py.VirtualSource(
                path, dataset, (7, 8) if name == "source too small" else (6, 8), "<i4"
            )
            layout[to] = source if at is None else source[at]
        file.create_virtual_dataset(name, layout, fillvalue=-2)
    file.create_dataset("inner", data=data, chunks=(4, 3))

    def points(plist):
        some = h5py.h5s.create_simple((6, 8))
        some.select_elements([(0, 1), (2, 3)])
        plist.set_virtual(some, b".", b"/inner", some)

    result = dict.fromkeys(kinds)
    result |= {"source absent": "not_found", "dataset absent": "not_found"}
    result |= {"type that does not convert": "mismatch", "source too small": "mismatch"}
    result["gaps"] = numpy.full((9, 9), -2, "<i4")
    result["gaps"][2:8, 1:] = data + 1
    result["overlaps"] = numpy.concatenate([data[:1], data + 1]).astype("<i4")
    try:
        create(file, "points", h5py.h5t.STD_I32LE, (6, 8), None, points)
        result["points"] = "unsupported"
    except (ValueError, RuntimeError, OSError):  # libhdf5 does not write them
        pass
    return result


@case(TWO)
def types_that_are_refused(file, rng):
    kinds = {
        "16 bytes": narrow(T.STD_I64LE, 16, 128),
        "long double": T.NATIVE_LDOUBLE,
        "time": T.UNIX_D32LE,
        "enum of 12 of 16 bits": enumeration(narrow(T.STD_U16LE, 2, 12), {"A": 1}),
    }
    result = {}
    for name, kind in kinds.items():
        try:
            create(file, name, kind, (3,))
            result[name] = "unsupported"
        except (TypeError, ValueError):  # this libhdf5 does not write it in this version
            pass
    return result


@case(TWO)
def names_that_are_refused(file, rng):
    file["a/x"] = values(rng, (3,), "<i4")
    file["type"] = numpy.dtype("<i4")
    file["circle"] = h5py.SoftLink("/circle")
    file["external"] = h5py.ExternalLink("gone.h5", "/x")
    file["nowhere"] = h5py.SoftLink("/gone")
    absent = dict.fromkeys(["external", "nowhere", "gone"], "not_found")
    return {
        "a/x": None,
        "a": "invalid_argument",
        "type": "invalid_argument",
        "circle": "corrupt",
        **absent,
    }


@case(TWO)
def filters_that_nobody_has(file, rng):
    data = values(rng, (4, 2), "<i4")
    for name, number, mask in (
        ("registered", 32013, 0),
        ("unknown", 40000, 0),
        ("skipped", 40000, 1),
    ):
        create(file, name, T.STD_I32LE, (4, 2), None, chunked((number, (1, 2)))).write_direct_chunk(
            (0, 0), data.tobytes(), mask
        )
    create(file, "nothing stored", T.STD_I32LE, (4, 2), None, chunked((40000, ())))
    return {
        "registered": "unsupported",
        "unknown": "unsupported",
        "skipped": data,
        "nothing stored": numpy.zeros((4, 2), "<i4"),
    }


# ---- writing ----


def open_file(path, name, version):
    options = dict(OPTIONS.get(name) or {})
    sizes = options.pop("sizes", None)
    low, high = VERSIONS[version]
    if not sizes:
        return h5py.File(path, "w", libver=(low, high), **options)
    plist, access = h5py.h5p.create(h5py.h5p.FILE_CREATE), h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    plist.set_sizes(*sizes)
    bounds = {"earliest": h5py.h5f.LIBVER_EARLIEST, "latest": h5py.h5f.LIBVER_LATEST}
    bounds |= {
        one: getattr(h5py.h5f, "LIBVER_" + one.upper(), None)
        for one in ("v108", "v110", "v112", "v114", "v200")
    }
    access.set_libver_bounds(bounds[low], bounds[high])
    return h5py.File(h5py.h5f.create(bytes(path), h5py.h5f.ACC_TRUNC, plist, access))


def wanted(file, name, status):
    if isinstance(status, str):
        return {"status": status}
    if isinstance(status, numpy.ndarray):
        data = native(status)
    elif file[name].size > 1 << 24:
        return {"open": file[name].shape}
    else:
        data = hdf5_files.values_of(file[name])
    return {"shape": data.shape, "digest": hashlib.sha256(data.tobytes()).hexdigest()[:16]}


def write_case(folder, name, version):
    """None: this h5py has no such version."""
    rng = numpy.random.default_rng(zlib.crc32((name + version).encode()))
    path = folder / ("%s-%s" % (name, version)) / "a.h5"
    path.parent.mkdir(parents=True)
    with open_file(path, name, version) as file:
        datasets = CASES[name](file, rng)
        if name in MARKED:
            if MARKED[name]:
                file.swmr_mode = True
            file.flush()
            path.with_suffix(".marked").write_bytes(path.read_bytes())
    with h5py.File(path) as file:
        want = {one: wanted(file, one, status) for one, status in datasets.items()}
    if name in MARKED:
        os.replace(path.with_suffix(".marked"), path)
    (path.parent / "want.json").write_text(json.dumps(want))


def write_all(folder, versions=VERSIONS):
    for version in filter(hdf5_cases.writable, versions):
        for name in CASES:
            if not ONLY.get(name) or version in ONLY[name]:
                write_case(pathlib.Path(folder), name, version)


if __name__ == "__main__":
    write_all(sys.argv[1], sys.argv[2:])
