# Small steps that the HDF5 tests share: files that h5py's high-level calls cannot make, loads
# through the probe, what h5py reads.
#
# SPDX-License-Identifier: Apache-2.0
import ctypes
import pathlib

import h5py
import numpy
import pytest

import generate_arrays as gen
from probe import check_error
from reference_hash import content_hash


def native(data):
    """The values in native byte order."""
    data = numpy.asarray(data)
    return data if data.dtype.kind in "SV" else data.astype(data.dtype.newbyteorder("="))


def read(path, name):
    """What h5py reads."""
    with h5py.File(path) as file:
        return native(numpy.asarray(file[name][()], file[name].dtype))


def low_level(path, name, dtype, shape, prepare=None, data=None, maxshape=None, **options):
    """A dataset whose creation list `prepare` gets; opens the file with `options`."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if prepare:
        prepare(plist)
    dtype = (
        dtype
        if isinstance(dtype, h5py.h5t.TypeID)
        else h5py.h5t.py_create(numpy.dtype(dtype), logical=True)
    )
    space = (
        h5py.h5s.create_simple(shape, maxshape) if shape != () else h5py.h5s.create(h5py.h5s.SCALAR)
    )
    with h5py.File(path, "a", **options) as file:
        dataset = h5py.h5d.create(file.id, name.encode(), dtype, space, plist)
        if data is not None:
            dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, numpy.ascontiguousarray(data).reshape(shape))


def compound(dtype):
    """A compound type, which h5py makes of a pair (r, i) only where that is no complex number."""
    kind = h5py.h5t.create(h5py.h5t.COMPOUND, dtype.itemsize)
    for name, (base, offset) in dtype.fields.items():
        kind.insert(name.encode(), offset, h5py.h5t.py_create(base))
    return kind


def set_fill(plist, kind, value):
    """The fill value in the bytes of that type, for which h5py has no way: its libhdf5 is
    called."""
    folder = pathlib.Path(h5py.__file__).parent.parent / "h5py.libs"
    library = next(folder.glob("libhdf5-*.so*"), None)
    if library is None:
        pytest.skip("this h5py brings no libhdf5 of its own")
    call = ctypes.CDLL(str(library)).H5Pset_fill_value
    call.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_char_p]
    assert call(plist.id, kind.id, value) >= 0


def compact(plist):
    plist.set_layout(h5py.h5d.COMPACT)


def external(*segments):
    """For low_level: bytes in other files, (name, offset, bytes) each."""

    def prepare(plist):
        for name, offset, size in segments:
            plist.set_external(str(name).encode(), offset, size)

    return prepare


def filtered(path, name, number, parameters=(), stored=b"anything", mask=0):
    """Two chunks of four int32 through a filter that need not be at hand;
    the first is written as it is."""

    def prepare(plist):
        plist.set_chunk((4,))
        plist.set_filter(number, h5py.h5z.FLAG_OPTIONAL, parameters)

    low_level(path, name, "<i4", (8,), prepare)
    with h5py.File(path, "a") as file:
        file[name].id.write_direct_chunk((0,), stored, mask)


def virtual(path, name, shape, dtype, mappings, fill=None, libver="latest", **options):
    """mappings: (selection in the virtual dataset, file, dataset, shape of the source,
    selection in it or None)."""
    layout = h5py.VirtualLayout(shape, dtype)
    for to, file, dataset, source_shape, at in mappings:
        source = h5py.VirtualSource(str(file), dataset, shape=source_shape, dtype=dtype)
        layout[to] = source[at] if at is not None else source
    with h5py.File(path, "a", libver=libver, **options) as file:
        file.create_virtual_dataset(name, layout, fillvalue=fill)


def array_of(tmp_path, dumped, info):
    """The array whose tiles the probe dumped into tmp_path/dump."""
    dtype = "<u2" if info["dtype"] == "bfloat16" else info["dtype"]
    out = numpy.zeros(info["shape"], dtype)
    data = (tmp_path / "dump").read_bytes()
    position = 0
    for tile in dumped["tiles"]:
        shape = [hi - lo for lo, hi in tile["box"]]
        piece = numpy.frombuffer(data, dtype, int(numpy.prod(shape, dtype="i8")), position).reshape(
            shape
        )
        out[tuple(slice(lo, hi) for lo, hi in tile["box"])] = piece
        position += tile["bytes"]
    assert position == len(data)
    return out


def load(probe, tmp_path, path, name=None, tiles=2, missing="error", **options):
    """Opens and loads everything; gives the array and the statistics of the load."""
    info = probe.call("open", path=str(path), **({"dataset": name} if name else {}), **options)
    commands = [
        {"do": "tiling", "kind": "even", "shape": info["shape"], "tiles": tiles},
        {"do": "array", "dtype": info["dtype"]},
        {"do": "load", "missing": missing},
        {"do": "dump", "path": str(tmp_path / "dump")},
    ]
    _, _, moved, dumped = probe.batch(commands)
    return array_of(tmp_path, dumped, info), moved["statistics"]


def check_load(probe, tmp_path, path, name=None, expected=None, **options):
    """The load equals `expected`, or what h5py reads; gives the statistics."""
    want = read(path, name) if expected is None else native(expected)
    got, statistics = load(probe, tmp_path, path, name, **options)
    assert got.dtype.str == gen.dtype_text(want.dtype) and got.shape == want.shape, name
    assert got.tobytes() == want.tobytes(), name
    return statistics


def load_refused(probe, path, name, status, names=(), missing="error"):
    """Opening works and the load must not: gives the error."""
    info = probe.call("open", path=str(path), dataset=name)
    probe.batch(
        [
            {"do": "tiling", "kind": "even", "shape": info["shape"]},
            {"do": "array", "dtype": info["dtype"]},
        ]
    )
    return check_error(probe.refused("load", missing=missing), status, names)


def open_refused(probe, path, name, status, names=()):
    return check_error(probe.refused("open", path=str(path), dataset=name), status, names)


def values_of(dataset):
    """All values in native byte order; records are opaque items."""
    base = dataset.dtype.base  # elements that are arrays have their axes behind
    data = numpy.asarray(dataset[()], base)
    return native(data.view("V%d" % base.itemsize) if base.names else data)


def compare_opened(probe, info, path, name, dataset, rng):
    """Tiles, the hash and boxes of what the probe has open equal the dataset of h5py; files
    beside `path` hold what the probe gives."""
    inner = dataset.dtype.shape
    shape = dataset.shape + inner
    small = int(numpy.prod([max(1, n) for n in shape], dtype="f8")) < 1 << 20
    assert info["shape"] == list(shape), name
    if small:
        data = values_of(dataset)
        tiling, _ = gen.random_tiling(rng, list(shape), from_dataset=False)
        probe.batch([tiling, gen.array_command(rng, data)])
        moved = probe.call("load", progress=True)
        dump = probe.call("dump", path=str(path) + ".tiles")
        stored = open(str(path) + ".tiles", "rb").read()
        at = 0
        for tile in dump["tiles"]:
            expected = gen.plain_bytes(gen.in_box(data, tile["box"]))
            assert stored[at : at + tile["bytes"]] == expected, "%s: tile %s" % (name, tile["box"])
            at += tile["bytes"]
        assert at == data.nbytes and moved["statistics"]["bytes_read"] >= 0
        assert probe.call("hash", of="dataset")["hash"] == content_hash(data)
    for _ in range(3):
        box = gen.random_box(rng, shape)
        if not small:  # a corner and what was written
            box = [[n - min(n, 70), n] if k == 0 else [0, min(n, 70)] for k, n in enumerate(shape)]
        where = tuple(slice(lo, hi) for lo, hi in box)
        expected = data[where] if small else numpy.asarray(dataset[where])
        if expected.dtype.kind not in "SV":
            expected = expected.astype(expected.dtype.newbyteorder("="))
        probe.call(
            "read",
            dtype=gen.dtype_text(expected.dtype),
            box=box,
            layout=gen.random_layout(rng, len(shape)),
            path=str(path) + ".box",
        )
        assert open(str(path) + ".box", "rb").read() == gen.plain_bytes(expected), "%s: box %s" % (
            name,
            box,
        )


def without_blosc2(probe, path, name):
    """Is the library built without libblosc2 (Debian 12 has none)? Then the refusal names it."""
    answer = probe.ask({"do": "open", "path": str(path), "dataset": name})
    return (
        "error" in answer
        and answer["error"]["status"] == "unsupported"
        and "blosc2" in answer["error"]["message"]
    )
