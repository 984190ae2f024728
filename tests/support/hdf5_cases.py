# HDF5 files of every kind: what h5py can write, one function a case.
#
# SPDX-License-Identifier: Apache-2.0
#
# Each case writes datasets into an open h5py file (or beside it) and gives {dataset name: status or
# None}: None is an array that must load as h5py reads it, a status is the refusal that is right.
# Random bytes come from the generator that is given.
import ctypes
import pathlib

import h5py
import numpy

VERSIONS = {
    "earliest": ("earliest", "latest"),
    "v108": ("v108", "v108"),
    "v110": ("v110", "v110"),
    "v112": ("v112", "v112"),
    "v114": ("v114", "v114"),
    "v200": ("v200", "v200"),
    "latest": ("latest", "latest"),
}
CASES = {}


def writable(version):
    """Has the h5py at hand files of this version?"""
    try:
        with h5py.File("probe", "w", driver="core", backing_store=False, libver=VERSIONS[version]):
            return True
    except (KeyError, ValueError):
        return False


def case(function):
    CASES[function.__name__] = function
    return function


def call(name, *arguments):
    """A function of h5py's own libhdf5 that h5py has no method for."""
    folder = pathlib.Path(h5py.__file__).parent.parent / "h5py.libs"
    library = ctypes.CDLL(str(next(folder.glob("libhdf5-*.so*"))))
    function = getattr(library, name)
    function.restype = ctypes.c_int
    result = function(*[ctypes.c_int64(value) for value in arguments])
    assert result >= 0, name


def values(rng, shape, dtype):
    """Random values without NaN (its payload may change in a conversion of h5py's)."""
    dtype = numpy.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        info = numpy.iinfo(dtype)
        return rng.integers(
            info.min, info.max, shape, dtype=dtype.newbyteorder("="), endpoint=True
        ).astype(dtype)
    if dtype.kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


NUMBERS = [
    "i1",
    "u1",
    "<i2",
    ">i2",
    "<u2",
    "<i4",
    ">i4",
    "<u4",
    "<i8",
    ">i8",
    "<u8",
    ">u8",
    "<f2",
    ">f2",
    "<f4",
    ">f4",
    "<f8",
    ">f8",
]


@case
def contiguous_dtypes(file, rng):
    for dtype in [*NUMBERS, "?", "<c8", ">c8", "<c16", ">c16"]:
        name = "d_" + dtype.replace("<", "le").replace(">", "be").replace("?", "bool")
        file.create_dataset(name, data=values(rng, (5, 7), dtype))
    return dict.fromkeys(file)


@case
def chunked_dtypes(file, rng):
    for dtype in [*NUMBERS, "?", "<c8", ">c16"]:
        name = "d_" + dtype.replace("<", "le").replace(">", "be").replace("?", "bool")
        file.create_dataset(
            name, data=values(rng, (11, 9), dtype), chunks=(4, 5), compression="gzip", shuffle=True
        )
    return dict.fromkeys(file)


@case
def strings_and_bytes(file, rng):
    text = numpy.array([b"a", b"", b"xyz", b"abcdefg"], "S7")
    file["fixed"] = text
    file.create_dataset("fixed_chunked", data=text, chunks=(3,), compression="gzip")
    file["opaque"] = numpy.frombuffer(rng.bytes(60), "V12")
    return {"fixed": None, "fixed_chunked": None, "opaque": None}


@case
def records(file, rng):
    kind = numpy.dtype(
        [("id", "<u8"), ("p", ">f4", (3,)), ("s", "S3"), ("in", [("a", "?"), ("b", "<i2")], (2,))]
    )
    raw = rng.integers(0, 2, (11, 9 * kind.itemsize), "u1")
    data = raw.view(kind)
    file["contiguous"] = data
    file.create_dataset(
        "chunked", data=data, chunks=(4, 5), compression="gzip", shuffle=True, fletcher32=True
    )
    file.create_dataset("unwritten", (5,), kind, chunks=(2,))
    return dict.fromkeys(file)


@case
def array_types(file, rng):
    for name, inner in (("three", (3,)), ("matrix", (2, 2))):
        for how, options in (("", {}), ("_chunked", {"chunks": (2, 3), "compression": "gzip"})):
            kind = numpy.dtype((">f4", inner))
            made = file.create_dataset(name + how, (5, 7), dtype=kind, **options)
            made[...] = rng.integers(0, 99, (5, 7, *inner))
    return dict.fromkeys(file)


@case
def refused_types(file, rng):
    file["vlen_text"] = ["a", "bc"]
    file.create_dataset("vlen_numbers", (3,), dtype=h5py.vlen_dtype("i4"))
    file.create_dataset("reference", (2,), dtype=h5py.ref_dtype)
    inner = [("p", ">f8"), ("to", h5py.ref_dtype)]
    mixed = [("n", "<i4"), ("t", h5py.string_dtype()), ("in", inner, (2,)), ("last", "<u2")]
    file.create_dataset("records_with_text", (3,), mixed)
    file["empty"] = h5py.Empty("f4")
    return dict.fromkeys(file, "unsupported")


@case
def shapes(file, rng):
    result = {}
    for shape in [(), (0,), (0, 4), (4, 0), (1,), (1, 1, 1), (17,), (3, 5, 7), (2, 3, 2, 3, 2)]:
        name = "s" + "_".join(map(str, shape))
        file[name] = values(rng, shape, "<i4")
        result[name] = None
        if shape:
            maximum = tuple(None for _ in shape)
            chunks = tuple(max(1, (n + 1) // 2) for n in shape)
            file.create_dataset(
                name + "_c", data=values(rng, shape, "<i4"), chunks=chunks, maxshape=maximum
            )
            result[name + "_c"] = None
    return result


@case
def compact(file, rng):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.COMPACT)
    data = values(rng, (6, 5), ">i4")
    space = h5py.h5s.create_simple(data.shape)
    dataset = h5py.h5d.create(file.id, b"compact", h5py.h5t.py_create(data.dtype), space, plist)
    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, data)
    return {"compact": None}


@case
def unallocated(file, rng):
    file.create_dataset("never", (10, 4), "i4")
    file.create_dataset("never_filled", (10, 4), "i4", fillvalue=7)
    part = file.create_dataset("chunks_seven", (20, 9), "f4", chunks=(4, 4), fillvalue=7)
    part[5:9, 2:3] = 1.5
    nan = file.create_dataset("chunks_nan", (8,), ">f8", chunks=(4,), fillvalue=numpy.nan)
    nan[:4] = 3
    none = file.create_dataset("chunks_none", (20, 9), "i2", chunks=(4, 4))
    none[0, 0] = -1
    big = file.create_dataset(
        "sparse", (1 << 20, 1 << 20), "u1", chunks=(64, 64), maxshape=(None, None), fillvalue=9
    )
    big[(1 << 20) - 1, 5] = 3
    return dict.fromkeys(file)


@case
def single_chunk(file, rng):
    file.create_dataset("plain", data=values(rng, (10, 3), "i4"), chunks=(10, 3))
    file.create_dataset("gzip", data=values(rng, (10, 3), "i4"), chunks=(10, 3), compression="gzip")
    file.create_dataset(
        "growing", data=values(rng, (10, 3), "i4"), chunks=(10, 3), maxshape=(None, 3)
    )
    return dict.fromkeys(file)


@case
def implicit_index(file, rng):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((3, 4))
    plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    plist.set_fill_value(numpy.array(5, "i4"))
    data = values(rng, (10, 10), "<i4")
    for name in (b"written", b"unwritten"):
        dataset = h5py.h5d.create(
            file.id, name, h5py.h5t.STD_I32LE, h5py.h5s.create_simple(data.shape), plist
        )
        if name == b"written":
            dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, data)
    return {"written": None, "unwritten": None}


@case
def index_kinds(file, rng):
    """Fixed array (paged too), extensible array, B-tree of version 2;
    B-tree of version 1 in old files."""
    result = {}
    for count in (1, 2, 1024, 1025, 5000):
        for kind, maximum in (("fixed", None), ("extensible", (None,)), ("tree2", (None, None))):
            for compression in (None, "gzip"):
                name = "%s_%d_%s" % (kind, count, compression)
                shape = (count,) if kind != "tree2" else (count, 2)
                chunks = (1,) if kind != "tree2" else (1, 2)
                file.create_dataset(
                    name,
                    data=values(rng, shape, "<i4"),
                    chunks=chunks,
                    maxshape=maximum,
                    compression=compression,
                )
                result[name] = None
    # slots count over the largest shape
    for number, maximum in enumerate([(4, 20), (4, None), (None, None)]):
        file.create_dataset(
            "wide_%d" % number, data=values(rng, (4, 6), "<i4"), chunks=(2, 2), maxshape=maximum
        )
        result["wide_%d" % number] = None
    shrunk = file.create_dataset(
        "shrunk", data=values(rng, (30, 7), "<i4"), chunks=(4, 3), maxshape=(None, None)
    )
    shrunk.resize((13, 5))
    shrunk.resize((22, 6))
    result["shrunk"] = None
    return result


@case
def filters(file, rng):
    data = values(rng, (37, 29), "<i4") // 100000
    options = {
        "gzip": {"compression": "gzip", "compression_opts": 4},
        "shuffle_gzip": {"compression": "gzip", "shuffle": True},
        "fletcher": {"fletcher32": True},
        "all": {"compression": "gzip", "shuffle": True, "fletcher32": True},
        "lzf": {"compression": "lzf"},
        "lzf_shuffle": {"compression": "lzf", "shuffle": True},
        "scaleoffset": {"scaleoffset": 0},
        "shuffle_only": {"shuffle": True},
    }
    for name, more in options.items():
        file.create_dataset(name, data=data, chunks=(10, 8), **more)
    file.create_dataset(
        "odd_item",
        data=numpy.frombuffer(rng.bytes(15 * 50), "V15"),
        chunks=(7,),
        compression="gzip",
        shuffle=True,
    )
    if h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP):
        file.create_dataset("szip", data=data, chunks=(16, 16), compression="szip")
        file.create_dataset(
            "szip_ec",
            data=data.astype("u2"),
            chunks=(16, 16),
            compression="szip",
            compression_opts=("ec", 8),
        )
    return dict.fromkeys(file)


@case
def plugin_filters(file, rng):
    import hdf5plugin

    data = numpy.cumsum(rng.integers(-3, 4, (70, 64)), axis=1).astype("<f4")
    options = {
        "zstd": hdf5plugin.Zstd(clevel=3),
        "lz4": hdf5plugin.LZ4(),
        "lz4_blocks": hdf5plugin.LZ4(nbytes=512),
        "bitshuffle": hdf5plugin.Bitshuffle(cname="none"),
        "bitshuffle_lz4": hdf5plugin.Bitshuffle(cname="lz4"),
        "bitshuffle_zstd": hdf5plugin.Bitshuffle(cname="zstd"),
        "bitshuffle_block": hdf5plugin.Bitshuffle(nelems=64, cname="lz4"),
        "blosc_lz4": hdf5plugin.Blosc(cname="lz4", shuffle=hdf5plugin.Blosc.SHUFFLE),
        "blosc_zstd_bit": hdf5plugin.Blosc(cname="zstd", shuffle=hdf5plugin.Blosc.BITSHUFFLE),
        "blosc_blosclz": hdf5plugin.Blosc(cname="blosclz", shuffle=hdf5plugin.Blosc.NOSHUFFLE),
        "blosc_zlib": hdf5plugin.Blosc(cname="zlib"),
        "blosc2_lz4": hdf5plugin.Blosc2(cname="lz4"),
        "blosc2_zstd": hdf5plugin.Blosc2(cname="zstd", filters=hdf5plugin.Blosc2.BITSHUFFLE),
    }
    for name, filter_options in options.items():
        file.create_dataset(name, data=data, chunks=(33, 30), **filter_options)
        file.create_dataset(
            name + "_i8", data=data.astype(">i8"), chunks=(33, 30), **filter_options
        )
    return dict.fromkeys(file)


@case
def masks(file, rng):
    """Chunks written directly with some filters skipped;
    chunks at the edge that are not filtered."""
    import zlib

    data = values(rng, (8, 4), "<i4")
    dataset = file.create_dataset("deflate", (8, 4), "<i4", chunks=(4, 4), compression="gzip")
    dataset.id.write_direct_chunk((0, 0), data[:4].tobytes(), filter_mask=1)
    dataset.id.write_direct_chunk((4, 0), zlib.compress(data[4:].tobytes()), filter_mask=0)
    both = file.create_dataset(
        "shuffle_deflate", (8, 4), "<i4", chunks=(4, 4), compression="gzip", shuffle=True
    )
    shuffled = data[:4].copy().view("u1").reshape(16, 4).T.tobytes()
    both.id.write_direct_chunk((0, 0), shuffled, filter_mask=2)
    both.id.write_direct_chunk((4, 0), zlib.compress(data[4:].tobytes()), filter_mask=1)
    return {"deflate": None, "shuffle_deflate": None}


@case
def edge_chunks_unfiltered(file, rng):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((4, 5))
    plist.set_deflate(4)
    call("H5Pset_chunk_opts", plist.id, 2)  # H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS
    data = values(rng, (10, 13), "<i4")
    for name, maximum in ((b"fixed", data.shape), (b"growing", (h5py.h5s.UNLIMITED, 13))):
        space = h5py.h5s.create_simple(data.shape, maximum)
        try:
            dataset = h5py.h5d.create(file.id, name, h5py.h5t.STD_I32LE, space, plist)
        except ValueError:  # not in files of version 1.8
            return {}
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, data)
    return {"fixed": None, "growing": None}


@case
def groups_and_links(file, rng):
    file["a/b/x"] = values(rng, (3, 4), "i4")
    file["soft"] = h5py.SoftLink("/a/b/x")
    file["hard"] = file["a/b/x"]
    file["a/loop"] = h5py.SoftLink("/a")
    file["a/b/up"] = file["a"]
    return {
        "a/b/x": None,
        "/a/b/x": None,
        "soft": None,
        "hard": None,
        "a/loop/b/up/b/x": None,
        "a/b": "invalid_argument",
        "a/b/y": "not_found",
    }
