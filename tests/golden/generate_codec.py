#!/usr/bin/env python3
"""Makes the golden chunks in codec/: what libhdf5 and the public filter plugins wrote, and the
bytes that must come out.

SPDX-License-Identifier: Apache-2.0

usage: python generate_codec.py [FOLDER]

Needs numpy, h5py, hdf5plugin and blosc2; without FOLDER codec/ beside the script is made anew.
Each dataset has one chunk; h5py must read it back before its stored bytes are taken. NAME.chunk is
a line of text `DATA MASK CODEC[:PARAMETER...] ...` (in the order of encoding) and then the stored
bytes; DATA.raw is what must come out.
"""

import pathlib
import sys

import blosc2
import h5py
import hdf5plugin
import numpy

DEFLATE, SHUFFLE, FLETCHER32, SZIP = 1, 2, 3, 4
LZF, BLOSC, LZ4, BITSHUFFLE, ZSTD, BLOSC2 = 32000, 32001, 32004, 32008, 32015, 32026
# filter -> our name, and where our parameters are among those of the file
CODECS = {
    DEFLATE: ("deflate", [0]),
    SHUFFLE: ("shuffle", [0]),
    FLETCHER32: ("fletcher32", []),
    SZIP: ("szip", [0, 1, 2, 3]),
    LZF: ("lzf", []),
    BLOSC: ("blosc", []),
    LZ4: ("lz4", [0]),
    BITSHUFFLE: ("bitshuffle", [2, 3, 4]),
    ZSTD: ("zstd", []),
    BLOSC2: ("blosc2", []),
}


def arrays():
    """Numbers that compress; noise that does not; lengths that are no multiple of anything;
    one of several blocks."""
    rng = numpy.random.default_rng(7)

    def walk(count, dtype):
        return numpy.cumsum(rng.integers(-3, 4, count)).astype(dtype)

    out = {
        "i1": walk(1003, "<i1"),
        "i2": walk(501, "<i2"),
        "f4": walk(301, "<f4"),
        "f8": walk(203, "<f8"),
        "c16": (walk(101, "<f8") + 1j * walk(101, "<f8")).astype("<c16"),
        "big": walk(301, ">i4"),
        "zeros": numpy.zeros(260, "<f4"),
        "noise": rng.integers(0, 256, 600).astype("u1"),
        "seven": walk(7, "<i4"),
        "one": walk(1, "<i8"),
        "long": walk(4499, "<i4"),
        "grid": numpy.cumsum(rng.integers(-3, 4, (33, 17)), axis=1, dtype="<f4"),
        "V3": walk(1002, "u1").view("V3"),
    }
    return out


def write(file, name, array, filters):
    """A dataset of one chunk; filters are (id, parameters)."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk(array.shape)
    for code, values in filters:
        if code == SZIP:
            plist.set_szip(*values)
        else:
            plist.set_filter(code, h5py.h5z.FLAG_OPTIONAL, tuple(values))
    kind = h5py.h5t.py_create(array.dtype, logical=True)
    dataset = h5py.Dataset(
        h5py.h5d.create(
            file.id, name.encode(), kind, h5py.h5s.create_simple(array.shape), dcpl=plist
        )
    )
    dataset[...] = array
    return dataset


def described(dataset):
    plist = dataset.id.get_create_plist()
    words = []
    for i in range(plist.get_nfilters()):
        code, _, values, _ = plist.get_filter(i)
        name, places = CODECS[code]
        words.append(":".join([name] + [str(values[k]) for k in places if k < len(values)]))
    return " ".join(words)


class Writer:
    def __init__(self, folder):
        self.folder = folder
        self.arrays = arrays()
        self.file = h5py.File("golden", "w", driver="core", backing_store=False)
        for name, array in self.arrays.items():
            (folder / f"{name}.raw").write_bytes(array.tobytes())

    def save(self, name, data, dataset):
        """What is read through libhdf5 must be the array."""
        got = dataset[...]
        if got.tobytes() != self.arrays[data].tobytes():
            raise SystemExit(f"{name}: libhdf5 reads something else")
        mask, stored = dataset.id.read_direct_chunk((0,) * got.ndim)
        head = f"{data} {mask} {described(dataset)}\n".encode()
        (self.folder / f"{name}.chunk").write_bytes(head + bytes(stored))

    def put(self, name, data, *filters):
        dataset = write(self.file, name, self.arrays[data], filters)
        self.save(name, data, dataset)

    def change(self, name, data, change, *filters):
        """The stored bytes changed in a way that libhdf5 does not mind."""
        dataset = write(self.file, name, self.arrays[data], filters)
        start = (0,) * dataset.ndim
        mask, stored = dataset.id.read_direct_chunk(start)
        dataset.id.write_direct_chunk(start, change(bytes(stored)), mask)
        self.file.flush()
        dataset.id.refresh()
        self.save(name, data, dataset)


def bitshuffle(kind, block=0):
    # the filter moves what it is given behind three numbers of its own
    return (BITSHUFFLE, (block, kind) if kind else (block,))


def of(plugin):
    return (plugin.filter_id, plugin.filter_options)


def all_data(out):
    for data in out.arrays:
        item = out.arrays[data].dtype.itemsize
        large = data == "long"
        out.put(f"deflate-{data}", data, (DEFLATE, (4,)))
        if not large:
            out.put(f"shuffle-{data}", data, (SHUFFLE, ()))
        out.put(
            f"shuffle-deflate-fletcher32-{data}",
            data,
            (SHUFFLE, ()),
            (DEFLATE, (9,)),
            (FLETCHER32, ()),
        )
        out.put(f"bitshuffle-{data}", data, bitshuffle(0))
        out.put(f"bitshuffle-lz4-{data}", data, bitshuffle(2))
        out.put(f"lz4-{data}", data, (LZ4, (128,) if item == 2 else ()))
        out.put(f"lzf-{data}", data, (LZF, ()))
        out.put(f"zstd-{data}", data, (ZSTD, (3,)))


def some_data(out):
    for data in ("i1", "f4", "long", "noise", "seven"):
        out.put(f"bitshuffle-zstd-{data}", data, (BITSHUFFLE, (0, 3, 3)))
        out.put(f"fletcher32-{data}", data, (FLETCHER32, ()))
        for cname in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
            shuffle = ("i1", "f4", "long").index(data) if data in ("i1", "f4", "long") else 1
            out.put(
                f"blosc-{cname}-{data}", data, of(hdf5plugin.Blosc(cname=cname, shuffle=shuffle))
            )
    for block in (8, 72, 256):
        out.put(f"bitshuffle-block-{block}", "f4", bitshuffle(0, block))
        out.put(f"bitshuffle-lz4-block-{block}", "f4", bitshuffle(2, block))
    for data in ("i2", "grid", "f4", "noise"):
        for cname in ("blosclz", "zstd"):
            out.put(
                f"blosc2-{cname}-{data}",
                data,
                of(hdf5plugin.Blosc2(cname=cname, filters=hdf5plugin.Blosc2.SHUFFLE)),
            )
    out.put("lz4-blocks", "long", (LZ4, (4096,)))
    out.put("lz4-blocks-noise", "noise", (LZ4, (64,)))


def szip(out):
    nearest, entropy = h5py.h5z.SZIP_NN_OPTION_MASK, h5py.h5z.SZIP_EC_OPTION_MASK
    for data in ("i1", "i2", "f4", "f8", "big", "zeros", "noise", "long", "grid"):
        for option, word in ((nearest, "nn"), (entropy, "ec")):
            for block in (8, 32):
                out.put(f"szip-{word}-{block}-{data}", data, (SZIP, (option, block)))
    out.put("shuffle-szip", "f8", (SHUFFLE, ()), (SZIP, (nearest, 16)))
    out.put("szip-fletcher32", "i2", (SZIP, (nearest, 4)), (FLETCHER32, ()))


def chains(out):
    plain, shuffle, check, lzf, zstd = (
        (DEFLATE, (6,)),
        (SHUFFLE, ()),
        (FLETCHER32, ()),
        (LZF, ()),
        (ZSTD, (3,)),
    )
    out.put("fletcher32-shuffle", "f4", check, shuffle)
    out.put("fletcher32-shuffle-f8", "f8", check, shuffle)
    out.put("fletcher32-deflate", "f4", check, plain)
    out.put("fletcher32-shuffle-deflate-fletcher32", "c16", check, shuffle, plain, check)
    out.put("fletcher32-twice", "one", check, check)
    out.put("shuffle-twice", "f4", (SHUFFLE, (4,)), (SHUFFLE, (4,)))
    out.put("shuffle-thrice", "f8", (SHUFFLE, (8,)), (SHUFFLE, (3,)), (SHUFFLE, (16,)))
    out.put("shuffle-without-size-masked", "f4", shuffle, shuffle)
    out.put("deflate-twice", "zeros", plain, plain)
    out.put("deflate-shuffle-deflate", "zeros", plain, shuffle, plain)
    out.put("zstd-fletcher32-deflate", "long", zstd, check, plain)
    out.put("lzf-zstd", "zeros", lzf, zstd)
    out.put("lz4-deflate", "zeros", (LZ4, ()), plain)
    out.put("bitshuffle-lz4-deflate", "zeros", bitshuffle(2), plain)
    out.put("bitshuffle-deflate", "f4", bitshuffle(0), plain)
    out.put("bitshuffle-shuffle-deflate", "f4", bitshuffle(0), shuffle, plain)
    out.put(
        "shuffle-bitshuffle-shuffle-deflate-fletcher32",
        "f4",
        shuffle,
        bitshuffle(0),
        shuffle,
        plain,
        check,
    )
    out.put("shuffle-blosc", "f4", shuffle, of(hdf5plugin.Blosc(cname="lz4", shuffle=0)))
    out.put("blosc-deflate", "zeros", of(hdf5plugin.Blosc(cname="lz4")), plain)
    out.put("noise-masked", "noise", shuffle, plain, lzf, check)
    out.put("many", "i2", *([(SHUFFLE, (2,))] * 30 + [plain, check]))


def changed(out):
    def old_checksum(stored):
        return stored[:-4] + bytes([stored[-3], stored[-4], stored[-1], stored[-2]])

    out.change("fletcher32-of-1.6.2", "f4", old_checksum, (SHUFFLE, ()), (FLETCHER32, ()))
    out.change("deflate-bytes-behind", "f4", lambda stored: stored + b"behind", (DEFLATE, (4,)))
    out.change("lz4-bytes-behind", "f4", lambda stored: stored + b"behind", (LZ4, ()))
    out.change(
        "blosc-bytes-behind",
        "f4",
        lambda stored: stored + b"behind",
        of(hdf5plugin.Blosc(cname="lz4")),
    )
    out.change(
        "bitshuffle-lz4-bytes-behind", "f4", lambda stored: stored + b"behind", bitshuffle(2)
    )
    out.change(
        "szip-bytes-behind",
        "i2",
        lambda stored: stored + b"behind",
        (SZIP, (h5py.h5z.SZIP_NN_OPTION_MASK, 16)),
    )


def frames(out):
    """Frames that programs write as chunks by themselves: arrays of several chunks, special
    values, all that libblosc2 has in itself."""

    def put(name, data, frame):
        out.change(name, data, lambda stored: frame, of(hdf5plugin.Blosc2(cname="lz4")))

    def array(data, chunks, blocks, **params):
        return blosc2.asarray(
            out.arrays[data], chunks=chunks, blocks=blocks, cparams={"nthreads": 1, **params}
        ).to_cframe()

    zstd, none = blosc2.Codec.ZSTD, blosc2.Filter.NOFILTER
    put("blosc2-blocks", "grid", array("grid", (33, 17), (8, 5)))
    put("blosc2-chunks", "grid", array("grid", (10, 9), (4, 5)))
    put(
        "blosc2-frame",
        "f4",
        blosc2.SChunk(
            chunksize=out.arrays["f4"].nbytes, data=out.arrays["f4"], contiguous=True
        ).to_cframe(),
    )
    put(
        "blosc2-zeros",
        "zeros",
        blosc2.zeros((260,), dtype="<f4", chunks=(260,), blocks=(100,)).to_cframe(),
    )
    put(
        "blosc2-bytedelta",
        "grid",
        array(
            "grid",
            (33, 17),
            (8, 5),
            codec=zstd,
            filters=[blosc2.Filter.SHUFFLE, blosc2.Filter.BYTEDELTA],
            filters_meta=[0, 4],
        ),
    )
    put(
        "blosc2-ndcell",
        "grid",
        array(
            "grid", (33, 17), (8, 8), codec=zstd, filters=[blosc2.Filter.NDCELL], filters_meta=[4]
        ),
    )
    put("blosc2-dictionary", "grid", array("grid", (33, 17), (8, 5), codec=zstd, use_dict=True))
    put("blosc2-memcpyed", "noise", array("noise", (600,), (200,), clevel=0, filters=[none]))


def main():
    folder = (
        pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "codec"
    )
    folder.mkdir(parents=True, exist_ok=True)
    for old in [*folder.glob("*.chunk"), *folder.glob("*.raw")]:
        old.unlink()
    out = Writer(folder)
    for part in (all_data, some_data, szip, chains, changed, frames):
        part(out)
    files = sorted(folder.iterdir())
    print(f"{len(files)} files, {sum(path.stat().st_size for path in files)} bytes")


if __name__ == "__main__":
    main()
