"""Makes the HDF5 files that the benchmarks read: dataset `x`, and beside each file NAME.h5 its
table of chunks NAME.chunks, as tegula_bench_decoder takes it.

SPDX-License-Identifier: Apache-2.0
"""

import h5py
import hdf5plugin

import make_data

CHUNKS = {"chunks": (1024, 1024)}
# name -> (what h5py is told, the chain as the library calls it)
KINDS = {
    "contiguous": (dict, []),
    "chunked": (lambda: CHUNKS, []),
    "gzip": (
        lambda: {**CHUNKS, "compression": "gzip", "compression_opts": 4, "shuffle": True},
        ["shuffle 4", "deflate"],
    ),
    "zstd": (lambda: {**CHUNKS, **hdf5plugin.Zstd(clevel=3)}, ["zstd"]),
    "lz4": (lambda: {**CHUNKS, **hdf5plugin.LZ4()}, ["lz4"]),
    "blosc2": (lambda: {**CHUNKS, **hdf5plugin.Blosc2(cname="lz4")}, ["blosc2"]),
    "bitshuffle": (lambda: {**CHUNKS, **hdf5plugin.Bitshuffle(cname="lz4")}, ["bitshuffle 4 0 2"]),
}


def write_table(path, dataset, chain):
    chunks = []
    if dataset.chunks is not None:
        dataset.id.chunk_iter(lambda chunk: chunks.append((chunk.byte_offset, chunk.size)))
        size = dataset.dtype.itemsize
        for length in dataset.chunks:
            size *= length
    else:
        size = 4 << 20
        chunks = [(dataset.id.get_offset() + at, size) for at in range(0, dataset.nbytes, size)]
    with open(path, "w", encoding="ascii") as file:
        print(
            size,
            *chain,
            "-",
            *[f"{offset} {length}" for offset, length in chunks],
            sep="\n",
            file=file,
        )


def make_kind(folder, name):
    options, chain = KINDS[name]
    with h5py.File(f"{folder}/x.h5", "w") as file:
        file.create_dataset("x", data=make_data.walk(), **options())
    with h5py.File(f"{folder}/x.h5") as file:
        write_table(f"{folder}/x.chunks", file["x"], chain)


def make_large(folder, times):
    """The array `times` times, one below the other, through shuffle and gzip 4:
    chunks are encoded once."""
    data, options = make_data.walk(), KINDS["gzip"][0]()
    rows = data.shape[0]
    with h5py.File(f"{folder}/x.h5", "w") as file:
        large = file.create_dataset("x", (times * rows, data.shape[1]), data.dtype, **options)
        large[:rows] = data
        step = options["chunks"][0]
        for row in range(0, rows, step):
            mask, chunk = large.id.read_direct_chunk((row, 0))
            for copy in range(1, times):
                large.id.write_direct_chunk((copy * rows + row, 0), chunk, mask)


def make_many(folder, libver, count):
    """`count` chunks of 256 bytes."""
    data = make_data.walk().ravel()[: count * 64].reshape(count, 64)
    with h5py.File(f"{folder}/x.h5", "w", libver=(libver, "latest")) as file:
        file.create_dataset("x", data=data, chunks=(1, 64))


def make_virtual(folder, count):
    """A virtual dataset over `count` files of one row of 64 KiB."""
    data = make_data.walk()[: count * 16].reshape(count, 16384)
    layout = h5py.VirtualLayout(data.shape, data.dtype)
    for index in range(count):
        with h5py.File(f"{folder}/source_{index:04d}.h5", "w") as file:
            file["x"] = data[index]
        layout[index] = h5py.VirtualSource(f"source_{index:04d}.h5", "x", shape=data.shape[1:])
    with h5py.File(f"{folder}/x.h5", "w") as file:
        file.create_virtual_dataset("x", layout)


make_data.MAKERS.update(
    {"hdf5_" + name: lambda folder, name=name: make_kind(folder, name) for name in KINDS}
)
make_data.MAKERS.update(
    {
        "hdf5_gzip_large": lambda folder: make_large(folder, 4),
        "hdf5_many_v1": lambda folder: make_many(folder, "earliest", 100_000),
        "hdf5_many_latest": lambda folder: make_many(folder, "latest", 100_000),
        "hdf5_virtual": lambda folder: make_virtual(folder, 1000),
    }
)
