"""The small inputs of tools/record.py: good and bad files of every kind,
the same bytes in every run.

SPDX-License-Identifier: Apache-2.0
"""

import json
import os
import shutil
import struct

import h5py
import hdf5plugin
import numpy as np

RNG_SEED = 7
CODECS = {
    "gzip": {"compression": "gzip", "shuffle": True},
    "fletcher": {"fletcher32": True, "compression": "gzip"},
    "lzf": {"compression": "lzf"},
    "zstd": hdf5plugin.Zstd(clevel=3),
    "lz4": hdf5plugin.LZ4(),
    "blosc": hdf5plugin.Blosc(cname="lz4"),
    "blosc2": hdf5plugin.Blosc2(cname="lz4"),
    "bitshuffle": hdf5plugin.Bitshuffle(cname="lz4"),
    "plain": {},
    "unknown": {"compression": hdf5plugin.BZip2()},
}
DTYPES = {
    "f4": "<f4",
    "big": ">f4",
    "f2": "<f2",
    "i1": "i1",
    "u8": ">u8",
    "bool": "?",
    "c16": "<c16",
    "time": "<M8[ns]",
    "text": "S5",
    "unicode": "<U3",
}
HEADERS = {
    "huge": "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4), }",
    "negative": "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 3), }",
    "axes": "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }" % ("1, " * 65),
    "dtype": "{'descr': '<q4', 'fortran_order': False, 'shape': (3,), }",
    "object": "{'descr': '|O', 'fortran_order': False, 'shape': (3,), }",
    "code": "{'descr': __import__('os'), 'fortran_order': False, 'shape': (3,), }",
    "no_shape": "{'descr': '<f4', 'fortran_order': False, }",
    "not_closed": "{'descr': '<f4', 'fortran_order': False, 'shape': (3,",
}


def shards(folder, pieces, name="shard_%04d.npy"):
    os.makedirs(folder)
    for index, piece in enumerate(pieces):
        np.save(os.path.join(folder, name % index), piece)
    return folder


def damage(source, target, at=None, size=None):
    """A copy with eight bytes changed at `at`, or cut to `size`."""
    shutil.copy(source, target)
    with open(target, "r+b") as file:
        if at is not None:
            file.seek(at)
            file.write(b"\xa5" * 8)
        if size is not None:
            file.truncate(size)


def npy_files(array):
    for name, dtype in DTYPES.items():
        np.save("npy_%s.npy" % name, array.astype("i8").astype(dtype))
    np.save("fortran.npy", np.asfortranarray(array))
    np.save("scalar.npy", np.float64(3))
    np.save("empty.npy", np.zeros((0, 3), "f4"))
    np.save("record.npy", np.zeros(4, [("a", "<i4"), ("b", "<f8")]))
    for name, text in HEADERS.items():
        header = text.encode() + b" \n"
        with open("bad_%s.npy" % name, "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(64))
    damage("npy_f4.npy", "bad_magic.npy", at=0)
    damage("npy_f4.npy", "cut_header.npy", size=20)
    damage("npy_f4.npy", "cut_data.npy", size=os.path.getsize("npy_f4.npy") - 30)
    damage("npy_f4.npy", "other_value.npy", at=1000)
    open("empty_file.npy", "wb").close()


def folders(array):
    pieces = [array[:7], array[7:40], array[40:41], array[41:]]
    shards("shards", pieces)
    shards("shards_big", [piece.astype(">f4") for piece in pieces])
    os.remove(shards("hole", pieces) + "/shard_0002.npy")
    np.save(shards("duplicate", pieces) + "/shard_01.npy", pieces[0])
    open(shards("foreign", pieces) + "/notes.txt", "w").close()
    shards("mixed_dtype", [*pieces[:2], pieces[2].astype("f8")])
    shards("mixed_shape", [*pieces[:2], pieces[2][:, :3]])
    folder = shards("cut", pieces)
    damage(folder + "/shard_0001.npy", folder + "/shard_0001.npy.new", size=300)
    os.replace(folder + "/shard_0001.npy.new", folder + "/shard_0001.npy")
    os.makedirs("nothing")


def raw_files(array):
    array.astype(">f4").tofile("field.bin")
    with open("header.bin", "wb") as file:
        file.write(bytes(512) + array.tobytes())
    for folder, meta in {
        "raw": {},
        "raw_wrong": {"dtype": "q7"},
        "raw_long": {"shape": [9000, 6]},
    }.items():
        os.makedirs(folder)
        array[:32].tofile(folder + "/part_0.bin")
        array[32:].tofile(folder + "/part_1.bin")
        with open(folder + "/shard_meta.json", "w", encoding="ascii") as file:
            json.dump({"dtype": "<f4", "shape": [64, 6], **meta}, file)
    with open("bad.json", "w", encoding="ascii") as file:
        file.write('{"tegula_manifest": 1, "format": "npy", "name": ')
    with open("version.json", "w", encoding="ascii") as file:
        json.dump({"tegula_manifest": 99, "format": "npy"}, file)


def hdf5_files(array):
    for name, options in CODECS.items():
        with h5py.File("h5_%s.h5" % name, "w") as file:
            file.create_dataset("x", data=array, chunks=(16, 4), **options)
    with h5py.File("h5_many.h5", "w") as file:
        group = file.create_group("entry")
        data = group.create_dataset("data", data=array)
        data.attrs.update({"unit": "m", "scale": 2.5, "numbers": np.arange(3)})
        file.attrs["title"] = "many"
        file["axis"] = np.arange(64.0)
        file["axis"].make_scale("time")
        data.dims[0].attach_scale(file["axis"])
        file["scalar"], file["text"], file["empty"] = 3.5, "words", h5py.Empty("f4")
        file["fixed"] = np.array([b"ab", b"cde"])
        file["record"] = np.zeros(3, [("a", "<i4"), ("b", "<f8")])
        file["link"], file["lost"] = h5py.SoftLink("/entry/data"), h5py.SoftLink("/nowhere")
        group.create_dataset("holes", (64, 6), "f4", chunks=(16, 6), fillvalue=9)[20:30] = 1
        group.create_dataset("outside", (64, 6), "f4", external=[("header.bin", 512, 1536)])
    for name, files in {
        "virtual": ("h5_gzip.h5", "h5_lzf.h5"),
        "virtual_lost": ("h5_gzip.h5", "gone.h5"),
    }.items():
        layout = h5py.VirtualLayout((128, 6), "f4")
        for index, source in enumerate(files):
            layout[64 * index : 64 * index + 64] = h5py.VirtualSource(source, "x", shape=(64, 6))
        with h5py.File("h5_%s.h5" % name, "w") as file:
            file.create_virtual_dataset("x", layout, fillvalue=-1)
    with h5py.File("h5_latest.h5", "w", libver="latest") as file:
        file.create_dataset("x", data=array, chunks=(16, 4), maxshape=(None, 6))
    os.makedirs("h5_shards")
    for index in range(3):
        with h5py.File("h5_shards/part_%d.h5" % index, "w") as file:
            file["x"] = array[20 * index : 20 * index + 20]
    damage("h5_gzip.h5", "bad_superblock.h5", at=8)
    damage("h5_gzip.h5", "cut.h5", size=os.path.getsize("h5_gzip.h5") - 500)
    for name in ("gzip", "fletcher", "zstd", "plain"):
        with h5py.File("h5_%s.h5" % name) as file:
            chunk = file["x"].id.get_chunk_info(3)
        damage(
            "h5_%s.h5" % name,
            "bad_chunk_%s.h5" % name,
            at=chunk.byte_offset + min(20, chunk.size // 2),
        )


def make(folder):
    """Fills `folder`, which is made, and sets the times of all files to one moment."""
    os.makedirs(folder)
    before = os.getcwd()
    os.chdir(folder)
    try:
        array = np.random.default_rng(RNG_SEED).integers(-99, 99, (64, 6)).astype("f4")
        npy_files(array)
        folders(array)
        raw_files(array)
        hdf5_files(array)
    finally:
        os.chdir(before)
    for path, _, names in os.walk(folder):
        for name in names:
            os.utime(os.path.join(path, name), (1_600_000_000, 1_600_000_000))
