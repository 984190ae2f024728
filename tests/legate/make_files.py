# Files for the checks in processes with Legate, by h5py and numpy.
#
# SPDX-License-Identifier: Apache-2.0
import h5py
import numpy

CUTS = [1, 30, 33, 90, 91, 160]
ROWS, COLUMNS = 200, 7


def rows():
    return numpy.random.default_rng(5).random((ROWS, COLUMNS)).astype("f4")


def shards(folder, array):
    folder.mkdir()
    for i, part in enumerate(numpy.split(array, CUTS)):
        numpy.save(folder / f"part_{i}.npy", part)


def compressed():
    """Filters that legate.io.hdf5 ends the process on: name -> arguments of create_dataset."""
    import hdf5plugin

    return {
        "bitshuffle": hdf5plugin.Bitshuffle(cname="lz4"),
        "zstd": hdf5plugin.Zstd(3),
        "blosc2": hdf5plugin.Blosc2("lz4"),
    }


def make(folder):
    array = rows()
    numpy.save(folder / "rows.npy", array)
    shards(folder / "uneven", array)
    shards(folder / "big_endian", array.astype(">f4"))
    shards(folder / "fortran", numpy.asfortranarray(array))
    with h5py.File(folder / "plain.h5", "w", libver=("v108", "v110")) as file:
        file["rows"] = array
        file["a/b/rows"] = array
        file.create_dataset("gzip", data=array, chunks=(17, 3), compression="gzip", shuffle=True)
        file["scalar"] = 3.5
        file["empty"] = array[:0]
        file["big"] = array.astype(">f4")
        file["complex"] = (array + 1j).astype("F")
        file["opaque"] = numpy.array([b"ab", b"cde", b"f"], "V3")
        file["records"] = numpy.zeros(3, [("a", "i4"), ("b", "f4")])
        file["seven"] = numpy.zeros((1,) * 7)
        file["dangling"] = h5py.SoftLink("/nowhere")
        file["outside"] = h5py.ExternalLink("gone.h5", "/x")
        file["null"] = h5py.Empty("f4")
        for shape in SHAPES:
            file[name_of(shape)] = of_shape(shape)
    with h5py.File(folder / "filters.h5", "w", libver=("v108", "v110")) as file:
        for name, options in compressed().items():
            file.create_dataset(name, data=array, chunks=(50, 7), **options)
    with h5py.File(folder / "many.h5", "w", libver=("v108", "v110")) as file:
        for i, part in enumerate(numpy.split(array, CUTS)):
            file[f"shard_{i}"] = part
    damage(folder / "damaged.h5", array)


SHAPES = [(2,), (5,), (4, 2), (2, 4), (2, 3), (5, 4, 3, 2)]


def name_of(shape):
    return "s" + "_".join(map(str, shape))


def of_shape(shape):
    return numpy.arange(numpy.prod(shape), dtype="i8").reshape(shape) * 3 + 1


def damage(path, array):
    """A gzip chunk in the middle holds garbage: only a task that reads it can notice."""
    with h5py.File(path, "w") as file:
        chunk = file.create_dataset(
            "x", data=array, chunks=(20, 7), compression="gzip"
        ).id.get_chunk_info(6)
    with open(path, "r+b") as raw:
        raw.seek(chunk.byte_offset)
        raw.write(b"\xff" * 64)
