# Loads of random HDF5 files, virtual datasets and folders of HDF5 shards equal what
# h5py reads, byte by byte.
#
# SPDX-License-Identifier: Apache-2.0
#
# h5py is the judge of values; of places of chunks it is not (up to HDF5 2.0 they are
# wrong for some indices).
import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes and judges these files")

import generate_arrays as gen  # noqa: E402
import hdf5_files as h5  # noqa: E402
import property_runner  # noqa: E402
from reference_hash import content_hash  # noqa: E402
from selections import check_selection  # noqa: E402

try:
    import hdf5plugin
except ImportError:  # fewer filters
    hdf5plugin = None

DTYPES = [
    "i1",
    "u1",
    "<i2",
    ">i2",
    "<u4",
    ">i4",
    "<i8",
    ">u8",
    "<f2",
    ">f2",
    "<f4",
    ">f4",
    "<f8",
    ">f8",
    "<c8",
    ">c16",
    "?",
    "S5",
    "V3",
]
LIBVER = [
    ("earliest", "latest"),
    ("v108", "v108"),
    ("v110", "v110"),
    ("v112", "v112"),
    ("latest", "latest"),
]


def random_data(rng, shape, dtype, small=False):
    """`small`: libhdf5 cannot read back all numbers that it stores with scale-offset."""
    if small:
        return rng.integers(0, 50, shape).astype(dtype)
    data = gen.random_array(rng, shape, numpy.dtype(dtype).newbyteorder("="))
    if data.dtype.kind in "fc":  # h5py may change the payload of a NaN
        data = numpy.nan_to_num(data)
    return data.astype(dtype)


def random_filters(rng, dtype):
    """Options of create_dataset."""
    if rng.random() < 0.3:
        return {}
    options = {"shuffle": bool(rng.random() < 0.5), "fletcher32": bool(rng.random() < 0.3)}
    more = [
        {},
        {"compression": "gzip", "compression_opts": int(rng.integers(0, 10))},
        {"compression": "lzf"},
    ]
    if hdf5plugin is not None:
        more += [
            hdf5plugin.Zstd(),
            hdf5plugin.LZ4(nbytes=int(rng.choice([0, 64, 512]))),
            hdf5plugin.Blosc(cname="lz4"),
            hdf5plugin.Bitshuffle(cname=str(rng.choice(["none", "lz4", "zstd"]))),
        ]
    if numpy.dtype(dtype).kind in "iu" and rng.random() < 0.1:
        return {"scaleoffset": 0}
    return {**options, **dict(more[rng.integers(len(more))])}


def random_chunks(rng, shape):
    return tuple(int(rng.integers(1, max(2, n + 2))) for n in shape)


def write_dataset(rng, file, name, shape, dtype):
    """Contiguous or chunked, whole or in part, at once or after growing and shrinking."""
    data = random_data(rng, shape, dtype)
    if rng.random() < 0.25 or not shape:
        if rng.random() < 0.85:
            file[name] = data
        else:
            file.create_dataset(name, shape, dtype)
        return
    chunks = random_chunks(rng, shape)
    largest = [
        None if rng.random() < 0.4 else max(n, c) + int(rng.integers(0, 9))
        for n, c in zip(shape, chunks)
    ]
    fixed = all(c <= n for c, n in zip(chunks, shape)) and rng.random() < 0.3
    fill = None if numpy.dtype(dtype).kind in "SV?bc" or rng.random() < 0.5 else 7
    options = {
        "chunks": chunks,
        "maxshape": None if fixed else tuple(largest),
        "fillvalue": fill,
        **random_filters(rng, dtype),
    }
    small = "scaleoffset" in options
    if small:
        data = random_data(rng, shape, dtype, small)
    first = (
        shape
        if fixed
        else tuple(int(rng.integers(0, (m or n + 5) + 1)) for n, m in zip(shape, largest))
    )
    whole = rng.random() < 0.5
    dataset = file.create_dataset(name, shape if whole else first, dtype, **options)
    if not whole:
        box = tuple(slice(lo, hi) for lo, hi in gen.random_box(rng, first))
        dataset[box] = random_data(rng, dataset[box].shape, dtype, small)
        if not fixed:
            dataset.resize(shape)
    if whole or rng.random() < 0.5:
        box = tuple(
            slice(lo, hi)
            for lo, hi in (gen.random_box(rng, shape) if not whole else [[0, n] for n in shape])
        )
        dataset[box] = data[box]


def check(probe, rng, folder, where, want, **options):
    """Tiles, layouts, a box and both hashes against the array."""
    tiling, _ = gen.random_tiling(rng, list(want.shape), from_dataset=False)
    box = gen.random_box(rng, want.shape)
    dtype = gen.dtype_text(want.dtype)
    commands = [
        gen.context_command(rng),
        {"do": "open", **where, **options},
        tiling,
        gen.array_command(rng, want),
        {"do": "load", "progress": True},
        {"do": "dump", "path": str(folder / "dump")},
        {"do": "hash", "of": "array"},
        {"do": "hash", "of": "dataset"},
        {
            "do": "read",
            "dtype": dtype,
            "box": box,
            "layout": gen.random_layout(rng, want.ndim),
            "path": str(folder / "box"),
        },
    ]
    _, info, _, _, _, dump, of_array, of_dataset, read = probe.batch(commands)
    assert (info["shape"], info["dtype"]) == (list(want.shape), dtype)
    data, position = (folder / "dump").read_bytes(), 0
    for tile in dump["tiles"]:
        expected = gen.plain_bytes(gen.in_box(want, tile["box"]))
        assert data[position : position + tile["bytes"]] == expected, "tile %s" % tile["box"]
        position += tile["bytes"]
    assert position == len(data) == want.nbytes and dump["stray"] == read["stray"] == 0
    assert (folder / "box").read_bytes() == gen.plain_bytes(gen.in_box(want, box)), "box %s" % box
    assert of_array["hash"] == of_dataset["hash"] == content_hash(want)
    if rng.random() < 0.5:
        check_selection(probe, rng, folder, want)


def shape_of(rng):
    return tuple(
        gen.random_shape(
            rng, 2000, axes=int(rng.choice([0, 1, 2, 3, 4], p=[0.04, 0.3, 0.36, 0.2, 0.1]))
        )
    )


def run_file(probe, rng, folder):
    path = folder / "a.h5"
    block = int(rng.choice([0, 0, 0, 512, 1024, 4096]))
    with h5py.File(
        path, "w", libver=LIBVER[rng.integers(len(LIBVER))], userblock_size=block
    ) as file:
        for number in range(int(rng.integers(1, 4))):
            write_dataset(
                rng, file, "g/d%d" % number, shape_of(rng), DTYPES[rng.integers(len(DTYPES))]
            )
        names = ["g/" + name for name in file["g"]]
    for name in names:
        check(probe, rng, folder, {"path": str(path)}, h5.read(path, name), dataset=name)


def random_slab(rng, length, count):
    """A slice of `count` elements; None where they do not fit."""
    step = int(rng.integers(1, 4))
    room = length - ((count - 1) * step + 1)
    if room < 0:
        step, room = 1, length - count
    return slice(lo := int(rng.integers(0, room + 1)), lo + (count - 1) * step + 1, step)


def run_virtual(probe, rng, folder):
    """Random hyperslabs over random sources, gaps, overlaps, one virtual dataset over another."""
    axes = int(rng.integers(1, 4))
    dtype = DTYPES[rng.integers(15)]
    shapes = [
        tuple(int(rng.integers(1, 12)) for _ in range(axes)) for _ in range(int(rng.integers(1, 5)))
    ]
    for number, shape in enumerate(shapes):
        with h5py.File(
            folder / ("s%d.h5" % number), "w", libver=LIBVER[rng.integers(len(LIBVER))]
        ) as file:
            write_dataset(rng, file, "d", shape, dtype)
    sources = [
        ("s%d.h5" % number, "d", h5.read(folder / ("s%d.h5" % number), "d"))
        for number in range(len(shapes))
    ]
    plain = True  # with overlaps libhdf5 does not fill gaps
    for name in ("inner", "outer"):
        shape = tuple(int(rng.integers(1, 16)) for _ in range(axes))
        fill = None if rng.random() < 0.5 or numpy.dtype(dtype).kind == "c" else 1
        want = numpy.full(shape, fill or 0, sources[0][2].dtype)
        times = numpy.zeros(shape, "i4")
        mappings = []
        for _ in range(int(rng.integers(0, 5))):
            file, dataset, values = sources[rng.integers(len(sources))]
            counts = [int(rng.integers(1, min(a, b) + 1)) for a, b in zip(shape, values.shape)]
            to, at = (
                tuple(random_slab(rng, n, c) for n, c in zip(one, counts))
                for one in (shape, values.shape)
            )
            mappings.append((to, file, dataset, values.shape, at))
            want[to] = values[at]  # the later one wins
            times[to] += 1
        plain = plain and (times <= 1).all()
        h5.virtual(folder / "v.h5", name, shape, dtype, mappings, fill=fill)
        if plain:
            assert h5.read(folder / "v.h5", name).tobytes() == want.tobytes()
        check(probe, rng, folder, {"path": str(folder / "v.h5")}, want, dataset=name)
        sources.append(("." if rng.random() < 0.5 else "v.h5", name, want))


def run_folder(probe, rng, folder):
    """Shards of one name in each, whose layouts, byte orders and filters differ."""
    data = folder / "shards"
    data.mkdir()
    trailing = tuple(int(rng.integers(1, 9)) for _ in range(int(rng.integers(0, 3))))
    dtype = numpy.dtype(DTYPES[rng.integers(len(DTYPES))])
    count = int(rng.integers(1, 6))
    pieces = []
    for number in range(count):
        path = data / ("part_%d.h5" % number)
        with h5py.File(path, "w", libver=LIBVER[rng.integers(len(LIBVER))]) as file:
            stored = dtype.newbyteorder() if rng.random() < 0.3 else dtype
            write_dataset(rng, file, "x", (int(rng.integers(0, 20)), *trailing), stored)
        pieces.append(h5.read(path, "x"))
    check(
        probe,
        rng,
        folder,
        {"path": str(data)},
        numpy.concatenate(pieces),
        dataset="x",
        expect_files=count,
    )


@pytest.mark.parametrize("group", range(property_runner.GROUPS))
def test_hdf5_files_equal_h5py(shared_probe, group):
    property_runner.run(20, group, 0.12, lambda rng, folder: run_file(shared_probe, rng, folder))


@pytest.mark.parametrize("group", range(property_runner.GROUPS))
def test_virtual_datasets_equal_h5py(shared_probe, group):
    property_runner.run(21, group, 0.06, lambda rng, folder: run_virtual(shared_probe, rng, folder))


@pytest.mark.parametrize("group", range(property_runner.GROUPS))
def test_folders_of_hdf5_shards_equal_h5py(shared_probe, group):
    property_runner.run(22, group, 0.04, lambda rng, folder: run_folder(shared_probe, rng, folder))
