"""Chunk tables, against what h5py reports of each chunk, and the values that come of them.

SPDX-License-Identifier: Apache-2.0
"""

import itertools
import json
import subprocess
import sys
import zlib

import h5py
import numpy as np
import pytest

from described import Refused, assemble, dump, same, values

LIBVERS = ["earliest", "v108", "v110", "v112", "v114", "latest"]
UNLIMITED = None

# name -> (shape, chunk, largest shape): which index libhdf5 takes in the newest format
GRIDS = {
    "single chunk": ((5, 6), (5, 6), (5, 6)),
    "fixed array": ((10, 9), (3, 4), (10, 9)),
    "fixed array of a larger shape": ((4, 6), (2, 2), (4, 20)),
    "fixed array in pages": ((1025,), (1,), (1025,)),
    "1024 chunks": ((1024,), (1,), (1024,)),
    "extensible array": ((10, 9), (3, 4), (10, UNLIMITED)),
    "extensible array along axis 0": ((700, 2), (1, 2), (UNLIMITED, 2)),
    "B-tree 2": ((10, 9, 2), (3, 4, 2), (UNLIMITED, UNLIMITED, 2)),
    "one element": ((1,), (1,), (UNLIMITED,)),
    "chunk beyond the shape": ((3, 3), (8, 8), (UNLIMITED, UNLIMITED)),
    "many": ((40, 50), (1, 2), (UNLIMITED, UNLIMITED)),
}


def turned(dataset):
    """An extensible array along another axis than the first: libhdf5 (to 2.0) names the wrong
    places for its chunks."""
    return None in dataset.maxshape[1:] and dataset.maxshape.count(None) == 1


def h5py_table(dataset):
    """slot -> [offset, length, mask], by the library that wrote the file."""
    counts = [-(-n // c) for n, c in zip(dataset.shape, dataset.chunks)]
    table = {}
    for index in range(dataset.id.get_num_chunks()):
        info = dataset.id.get_chunk_info(index)
        slot = np.ravel_multi_index(
            [o // c for o, c in zip(info.chunk_offset, dataset.chunks)], counts
        )
        table[int(slot)] = [info.byte_offset, info.size, info.filter_mask]
    return table


def plugin_table(out):
    (grid,) = out["grids"]
    slots = grid["coordinates"] if grid["coordinates"] is not None else range(grid["count"])
    return {slot: chunk for slot, chunk in zip(slots, grid["chunks"]) if chunk[1]}


@pytest.mark.parametrize("libver", LIBVERS)
@pytest.mark.parametrize(
    "filters", [{}, {"compression": "gzip", "shuffle": True}, {"fletcher32": True}]
)
def test_every_index_in_every_format(tmp_path, library, libver, filters):
    data = {}
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as f:
        for number, (name, (shape, chunk, largest)) in enumerate(GRIDS.items()):
            data[name] = (np.arange(np.prod(shape)).reshape(shape) * 7 % 1000).astype(
                "<i4" if number % 2 else ">f8"
            )
            f.create_dataset(name, data=data[name], chunks=chunk, maxshape=largest, **filters)
    with h5py.File(tmp_path / "a.h5") as f:
        tables = {name: None if turned(f[name]) else h5py_table(f[name]) for name in GRIDS}
        assert all(np.array_equal(f[name][()], data[name]) for name in GRIDS)
    for name in GRIDS:
        if name in ("1024 chunks", "fixed array in pages") and filters.get("compression"):
            continue  # the same index with filters: the next test
        out = dump(tmp_path / "a.h5", name, library=library)
        assert tables[name] in (None, plugin_table(out)), name
        assert same(assemble(out), data[name]), name


@pytest.mark.parametrize("count", [1024, 1025])
def test_case_25_paged_arrays_with_filters(tmp_path, library, count):
    data = np.arange(count, dtype="i2")
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as f:
        f.create_dataset("x", data=data, chunks=(1,), compression="gzip")
        table = h5py_table(f["x"])
    out = dump(tmp_path / "a.h5", library=library)
    assert plugin_table(out) == table and same(assemble(out), data)


@pytest.mark.parametrize("libver", LIBVERS)
@pytest.mark.parametrize("userblock", [0, 1024])
def test_some_chunks_stored_some_not(tmp_path, library, libver, userblock):
    with h5py.File(tmp_path / "a.h5", "w", libver=libver, userblock_size=userblock) as f:
        for name, (shape, chunk, largest) in GRIDS.items():
            dataset = f.create_dataset(
                name, shape, "i4", chunks=chunk, maxshape=largest, fillvalue=-3
            )
            if np.prod(shape) > 4:
                dataset[tuple(slice(n // 2, n // 2 + 1) for n in shape)] = 5
    with h5py.File(tmp_path / "a.h5") as f:
        for name in GRIDS:
            out = dump(tmp_path / "a.h5", name, library=library)
            assert len(plugin_table(out)) == f[name].id.get_num_chunks(), name
            assert same(assemble(out), f[name][()]), name


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_early_allocation_is_the_implicit_index(tmp_path, library, libver):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((3, 4))
    plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as f:
        h5py.h5d.create(f.id, b"x", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((10, 9)), plist)
        data = np.arange(90, dtype="i4").reshape(10, 9)
        f["x"][...] = data
        table = h5py_table(f["x"])
    out = dump(tmp_path / "a.h5", library=library)
    assert len(table) == 12 and plugin_table(out) == table and same(assemble(out), data)


def test_case_27_slots_are_counted_over_the_present_shape(tmp_path, library):
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as f:
        for number, largest in enumerate([(4, 20), (4, UNLIMITED), (UNLIMITED, UNLIMITED)]):
            dataset = f.create_dataset(
                f"x{number}", data=np.arange(24).reshape(4, 6), chunks=(2, 2), maxshape=largest
            )
            dataset.resize((4, 9))
            dataset[:, 6:] = 77
            dataset.resize((4, 7))
    with h5py.File(tmp_path / "a.h5") as f:
        for name in f:
            out = dump(tmp_path / "a.h5", name, library=library)
            assert out["grids"][0]["slots"] == 8 and same(assemble(out), f[name][()])


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_case_22_chunks_that_skipped_filters(tmp_path, library, libver):
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as f:
        x = f.create_dataset("x", (8,), "<i4", chunks=(4,), compression="gzip", shuffle=True)
        x[:4] = [1, 2, 3, 4]
        shuffled = np.arange(5, 9, dtype="<i4").view("u1").reshape(-1, 4).T.tobytes()
        x.id.write_direct_chunk((4,), shuffled, filter_mask=2)  # deflate was skipped
        y = f.create_dataset("y", (8,), "<i4", chunks=(4,), compression="gzip")
        y[:4] = [1, 2, 3, 4]
        y.id.write_direct_chunk((4,), np.arange(5, 9, dtype="<i4").tobytes(), filter_mask=1)
    for name in "xy":
        assert same(values(tmp_path / "a.h5", name, library=library), np.arange(1, 9, dtype="i4"))


def test_edge_chunks_without_filters(tmp_path, library):
    """H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS, which h5py cannot ask for:
    the option is a bit in the layout message."""
    data = np.arange(110, dtype="<i4").reshape(10, 11)
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as f:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((4, 4))
        plist.set_deflate(4)
        set_chunk_options(plist, 2)
        h5py.h5d.create(f.id, b"x", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((10, 11)), plist)
        f["x"][...] = data
    out = dump(tmp_path / "a.h5", library=library)
    masks = {slot: chunk[2] for slot, chunk in plugin_table(out).items()}
    assert masks == {slot: int(slot >= 6 or slot % 3 == 2) for slot in range(9)}
    assert same(assemble(out), data)


def set_chunk_options(plist, options):
    import ctypes

    loaded = [line.split()[-1] for line in open("/proc/self/maps") if "libhdf5-" in line]
    if not loaded:
        pytest.skip("h5py's libhdf5 is not found by its name")
    function = ctypes.CDLL(loaded[0]).H5Pset_chunk_opts
    function.argtypes = [ctypes.c_int64, ctypes.c_uint]
    assert function(plist.id, options) >= 0


@pytest.mark.parametrize("libver, length", [("earliest", 2**40), ("latest", 2**26)])
def test_a_file_that_claims_2_to_the_40_rows_takes_time_for_its_chunks_only(
    tmp_path, library, libver, length
):
    rows = (5, 2**10, length // 128, length - 1)
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as f:
        x = f.create_dataset("x", (length,), "i4", chunks=(16,), maxshape=(UNLIMITED,))
        for row in reversed(rows):
            x[row] = row % 1000
        f.create_dataset("none", (length, 3), "i4", chunks=(1024, 3))
    out = dump(tmp_path / "a.h5", "x", library=library)
    (grid,) = out["grids"]
    assert grid["slots"] == length // 16 and grid["coordinates"] == [row // 16 for row in rows]
    content = (tmp_path / "a.h5").read_bytes()
    for row, (offset, size, _) in zip(rows, grid["chunks"]):
        assert (
            size == 64
            and np.frombuffer(content[offset : offset + 64], "<i4")[row % 16] == row % 1000
        )
    assert dump(tmp_path / "a.h5", "none", library=library)["grids"][0]["count"] == 0
    assert out["seconds"] < 2


def test_an_index_that_libhdf5_would_walk_for_minutes(tmp_path, library):
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as f:
        f.create_dataset("x", (2**35,), "i4", chunks=(16,), maxshape=(UNLIMITED,))[2**35 - 1] = 1
    (grid,) = dump(tmp_path / "a.h5", "x", library=library)["grids"]
    assert (grid["slots"], grid["coordinates"]) == (2**31, [2**31 - 1])
    (entry,) = dump(tmp_path / "a.h5", library=library, list=1)["datasets"]
    assert entry["shape"] == [2**35] and entry["stored_bytes"] == -1


@pytest.mark.parametrize("libver", ["v110", "latest"])
def test_files_with_pages(tmp_path, library, libver):
    """A page buffer of libhdf5 would answer in place of the driver; the plugin asks for none."""
    data = np.arange(600).reshape(20, 30)
    with h5py.File(
        tmp_path / "a.h5",
        "w",
        libver=libver,
        fs_strategy="page",
        fs_page_size=4096,
        fs_persist=True,
    ) as f:
        f.create_dataset(
            "x", data=data, chunks=(3, 4), maxshape=(UNLIMITED, 30), compression="gzip"
        )
        f["y"] = data
    assert same(values(tmp_path / "a.h5", "x", library=library), data)
    assert same(values(tmp_path / "a.h5", "y", library=library), data)


def test_a_sparse_grid_has_the_right_values(tmp_path, library):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        x = f.create_dataset(
            "x", (300, 200), "<i2", chunks=(1, 2), maxshape=(UNLIMITED, UNLIMITED), fillvalue=4
        )
        for row, column in itertools.product((0, 7, 299), (0, 63, 199)):
            x[row, column] = row + column
        want = x[()]
    out = dump(tmp_path / "a.h5", library=library)
    assert out["grids"][0]["coordinates"] is not None and out["grids"][0]["count"] == 9
    assert same(assemble(out), want)


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_a_damaged_chunk_index_is_an_error_and_not_fill_values(tmp_path, library, libver):
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as f:
        f.create_dataset("x", data=np.arange(4000), chunks=(2,), maxshape=(UNLIMITED,))
    content = bytearray((tmp_path / "a.h5").read_bytes())
    signature = b"TREE\x01\x00" if libver == "earliest" else b"EADB"
    at, damaged = content.find(signature), 0
    while at >= 0:
        damaged += 1
        if damaged > 1 or libver == "latest":  # not the root node
            content[at : at + 4] = b"XXXX"
            break
        at = content.find(signature, at + 1)
    assert at >= 0
    (tmp_path / "a.h5").write_bytes(content)
    with pytest.raises(Refused) as refused:
        dump(tmp_path / "a.h5", library=library)
    assert refused.value.status == "corrupt"


def leaf_entries(content, leaf, ndim):
    """Where key and address of each entry of a version 1 leaf begin,
    with 8-byte addresses; and their length."""
    step, first = 8 + 8 * (ndim + 1) + 8, leaf + 24
    return [
        first + k * step for k in range(int.from_bytes(content[leaf + 6 : leaf + 8], "little"))
    ], step


@pytest.mark.parametrize("damage", ["swapped", "twice", "moved", "odd"])
def test_leaves_of_a_b_tree_that_libhdf5_could_not_search(tmp_path, library, damage):
    """What libhdf5 cannot find is not taken from a leaf either, in releases whose leaves are
    read on the way; never a wrong number."""
    data = np.arange(3000, dtype="<i4")
    with h5py.File(tmp_path / "a.h5", "w", libver="earliest") as f:
        f.create_dataset("x", data=data, chunks=(3,))
    content = bytearray((tmp_path / "a.h5").read_bytes())
    leaf = content.find(b"TREE\x01\x00", content.find(b"TREE\x01\x00") + 1)
    entries, step = leaf_entries(content, leaf, 1)
    a, b = (slice(at, at + step) for at in entries[10:12])
    if damage == "swapped":
        content[a], content[b] = content[b], content[a]
    elif damage == "twice":
        content[b] = content[a]
    else:
        # 1.10 divides by the length of a chunk and takes no notice of one
        content[entries[10] + 8] += 3 if damage == "moved" else 1
    (tmp_path / "a.h5").write_bytes(content)
    if damage in (("odd",) if "103" in library else ("swapped",)):
        assert same(values(tmp_path / "a.h5", library=library), data)
    else:
        with pytest.raises(Refused, match="corrupt"):
            dump(tmp_path / "a.h5", library=library)


def test_an_unfiltered_chunk_of_another_length_is_an_error(tmp_path, library):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        x = f.create_dataset("x", (8,), "<i4", chunks=(4,), compression="gzip")
        x.id.write_direct_chunk((0,), zlib.compress(bytes(16)))
        x.id.write_direct_chunk((4,), bytes(12), filter_mask=1)
    with pytest.raises(Refused, match=r"corrupt.*12 bytes: expected 16"):
        dump(tmp_path / "a.h5", library=library)


# ---- filters ----


def filtered(path, number, parameters):
    """In a process of its own: a plugin that other tests have imported would
    change the parameters."""
    words = [sys.executable, __file__, str(path), str(number), *map(str, parameters)]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def write_filtered(path, number, parameters, name="x"):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((4,))
    plist.set_filter(number, h5py.h5z.FLAG_OPTIONAL, parameters)
    with h5py.File(path, "a") as f:
        dataset = h5py.h5d.create(
            f.id, name.encode(), h5py.h5t.STD_I32LE, h5py.h5s.create_simple((8,)), plist
        )
        dataset.write_direct_chunk((0,), b"anything", 0)
        return [dataset.get_chunk_info(0).byte_offset, 8, 0]


@pytest.mark.parametrize(
    "number, parameters, stage",
    [
        (32001, (2, 2, 4, 16, 5, 1, 0), ["blosc", 4, 5, 1, 0]),
        (32001, (2, 2, 4, 16), ["blosc"]),
        (32004, (0,), ["lz4"]),
        (32008, (0, 4, 4, 16, 3, 7), ["bitshuffle", 4, 16, 3, 7]),
        (32008, (0, 4, 4), ["bitshuffle", 4, 0, 0]),
        (32015, (3,), ["zstd", 3]),
        (32026, (1, 4, 16, 0, 5, 1, 1), ["blosc2", 16, 5, 1, 1]),
        (32000, (4, 261, 16), ["lzf"]),
    ],
)
def test_case_33_filters_of_ours_need_no_plugin(tmp_path, library, number, parameters, stage):
    chunk = filtered(tmp_path / "a.h5", number, parameters)
    out = dump(tmp_path / "a.h5", library=library)
    assert out["grids"][0]["filters"] == [stage] and out["grids"][0]["chunks"] == [chunk, [0, 0, 0]]


@pytest.mark.parametrize("number, name", [(32013, "zfp"), (307, "bzip2"), (40000, "no name")])
def test_case_33_filters_that_nobody_has_are_named(tmp_path, library, number, name):
    filtered(tmp_path / "a.h5", number, (1, 2, 3))
    with pytest.raises(Refused) as refused:
        dump(tmp_path / "a.h5", library=library)
    assert (
        refused.value.status == "unsupported"
        and f"HDF5 filter {number} ({name})" in refused.value.message
    )
    assert "HDF5_PLUGIN_PATH" in refused.value.hint
    (entry,) = dump(tmp_path / "a.h5", library=library, list=1)["datasets"]
    assert entry["codecs"] == (name if name != "no name" else "filter-40000")


@pytest.mark.parametrize("dtype", ["<i4", ">u2"])
def test_scale_offset_and_n_bit_come_through_libhdf5(tmp_path, library, dtype):
    data = (np.arange(70).reshape(7, 10) % 50).astype(dtype)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("scaled", data=data, chunks=(3, 4), scaleoffset=0, shuffle=True)
    out = dump(tmp_path / "a.h5", "scaled", library=library)
    assert [part["kind"] for part in out["parts"]] == ["reader"]
    assert same(assemble(out), data)


def test_szip_has_its_four_parameters(tmp_path, library):
    if not h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP):
        pytest.skip("h5py's libhdf5 has no szip")
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset(
            "x",
            data=np.arange(4096, dtype="<i4"),
            chunks=(1024,),
            compression="szip",
            compression_opts=("nn", 16),
        )
        options = f["x"].id.get_create_plist().get_filter(0)[2]
    assert dump(tmp_path / "a.h5", library=library)["grids"][0]["filters"] == [["szip", *options]]


if __name__ == "__main__":
    print(json.dumps(write_filtered(sys.argv[1], int(sys.argv[2]), tuple(map(int, sys.argv[3:])))))
