# verify --write and --against: sums judged by xxhash, numpy and h5py,
# and every kind of damage named.
#
# SPDX-License-Identifier: Apache-2.0
#
# `expected` computes the whole text of sums again, from the rules in docs/checks.md.
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy
import pytest
import xxhash

from command import ROOT, report, start, tegula, usage_error

sys.path.insert(0, str(ROOT / "tests/support"))

try:
    import h5py
except ImportError:
    h5py = None

BLOCK = 16 << 20
needs_h5py = pytest.mark.skipif(h5py is None, reason="needs h5py")


def blocks_of(data):
    return [
        xxhash.xxh3_128(data[at : at + BLOCK]).digest() for at in range(0, max(1, len(data)), BLOCK)
    ]


def sum_of(data):
    blocks = blocks_of(data)
    return blocks[0].hex() if len(blocks) == 1 else xxhash.xxh3_128(b"".join(blocks)).hexdigest()


def content_of(array):
    """docs/content-hash.md, for little-endian numbers."""
    array = array.astype(array.dtype.newbyteorder("<"), order="C")
    block = max(1, 65536 // array.dtype.itemsize) * array.dtype.itemsize
    data, low_high = array.tobytes(), 0
    for index, at in enumerate(range(0, len(data), block)):
        low_high ^= xxhash.xxh3_128_intdigest(data[at : at + block], seed=index)
    head = "tegula-content-1 %s %s" % (array.dtype.str, ",".join(map(str, array.shape)))
    return "tegula1:" + xxhash.xxh3_128_hexdigest(
        head.encode() + b"\0" + low_high.to_bytes(16, "big")
    )


def expected(base, array, files, format="npy", name="data", chunks=None):
    """`chunks`: {file: [(place, offset, length)]}"""
    list_ = []
    for file in files:
        data = pathlib.Path(file).read_bytes()
        entry = {"path": os.path.relpath(file, base), "size": len(data), "sum": sum_of(data)}
        if len(data) > BLOCK:
            entry["blocks"] = [digest.hex() for digest in blocks_of(data)]
        if chunks and chunks.get(file):
            entry["chunks"] = [
                [
                    list(place),
                    offset,
                    length,
                    xxhash.xxh3_128_hexdigest(data[offset : offset + length]),
                ]
                for place, offset, length in sorted(chunks[file], key=lambda chunk: chunk[1])
            ]
        list_.append(entry)
    return {
        "tegula_sums": 1,
        "format": format,
        "name": name,
        "dtype": array.dtype.newbyteorder("<").str,
        "shape": list(array.shape),
        "content": content_of(array),
        "block_bytes": BLOCK,
        "files": list_,
    }


def written(path):
    """The text without its digest of itself, which must fit."""
    text = pathlib.Path(path).read_bytes()
    head, _, tail = text.rpartition(b',\n "self": "')
    assert tail == xxhash.xxh3_128_hexdigest(head).encode() + b'"}\n'
    return json.loads(head + b"}")


def write(sums, *paths, **options):
    return report("verify", *paths, "--write", sums, **options)


def against(sums, *paths, status=3, **options):
    return report("verify", *paths, "--against", sums, status=status, **options)


def fails(exit_status, says, *arguments):
    error = report(*arguments, status=exit_status)["error"]
    assert says in error["message"] and "\n" not in error["message"]


def problems(found):
    return [
        (problem["status"], os.path.basename(problem["path"] or ""))
        for problem in found["problems"]
    ]


def shards(folder, array, count, name="s_%04d.npy"):
    folder.mkdir()
    for number, part in enumerate(numpy.array_split(array, count)):
        numpy.save(folder / (name % number), part)
    return sorted(folder.iterdir())


def flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0x10]))


def small(rows=3000, columns=50, dtype="f4", seed=1):
    return numpy.random.default_rng(seed).integers(0, 200, (rows, columns)).astype(dtype)


# ---- what is written -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["<f4", ">i2", "|b1", "<c16", "|u1"])
def test_shards(tmp_path, dtype):
    array = small(dtype=dtype)
    if dtype == "|b1":
        array = small(dtype="u1") > 100
    files = shards(tmp_path / "s", array, 7)
    texts = set()
    for threads in range(1, 9):
        write(tmp_path / "sums.json", tmp_path / "s", "--overwrite", "--threads", threads)
        texts.add((tmp_path / "sums.json").read_bytes())
    assert len(texts) == 1, "the same for any number of threads"
    assert written(tmp_path / "sums.json") == expected(tmp_path, array, files)
    found = against(tmp_path / "sums.json", tmp_path / "s", status=0)
    assert (found["files"], found["problems"], found["content"]) == (7, [], "same")
    assert found["bytes"] == sum(file.stat().st_size for file in files)


def test_orders_raw_scalars_and_nothing(tmp_path):
    array = small(300, 40)
    for name, order in (("c", "C"), ("f", "F")):
        numpy.save(tmp_path / f"{name}.npy", numpy.asarray(array, order=order))
        write(tmp_path / "sums.json", tmp_path / f"{name}.npy", "--overwrite")
        assert written(tmp_path / "sums.json") == expected(
            tmp_path, array, [tmp_path / f"{name}.npy"]
        )
    array.tofile(tmp_path / "r.raw")
    write(tmp_path / "raw.json", tmp_path / "r.raw", "--dtype", "<f4", "--row-shape", 40)
    assert written(tmp_path / "raw.json") == expected(tmp_path, array, [tmp_path / "r.raw"], "raw")
    odd = numpy.arange(200000, dtype="u4").astype("u1")
    odd.tofile(tmp_path / "b.raw")  # any byte but 0 is true
    write(tmp_path / "odd.json", tmp_path / "b.raw", "--dtype", "|b1", "--row-shape", "()")
    text = written(tmp_path / "odd.json")
    assert (text["content"], text["files"][0]["sum"]) == (
        content_of(odd != 0),
        sum_of(odd.tobytes()),
    )
    for name, value in (("scalar", numpy.float32(3)), ("empty", numpy.zeros((0, 4), "f4"))):
        numpy.save(tmp_path / f"{name}.npy", value)
        write(tmp_path / f"{name}.json", tmp_path / f"{name}.npy")
        assert written(tmp_path / f"{name}.json") == expected(
            tmp_path, numpy.asarray(value), [tmp_path / f"{name}.npy"]
        )
        assert (
            against(tmp_path / f"{name}.json", tmp_path / f"{name}.npy", status=0)["content"]
            == "same"
        )


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """40 MiB and some: three blocks; the header of 128 bytes puts blocks of the content hash
    across those of the file."""
    base = tmp_path_factory.mktemp("large")
    array = numpy.random.default_rng(3).integers(0, 1 << 30, ((40 << 20) // 4000 + 7, 1000), "i4")
    numpy.save(base / "big.npy", array)
    write(base / "sums.json", base / "big.npy")
    return base, array


def test_blocks(large):
    base, array = large
    assert written(base / "sums.json") == expected(base, array, [base / "big.npy"])
    report("verify", base / "big.npy", "--write", base / "one.json", "--threads", 1)
    assert (base / "one.json").read_bytes() == (base / "sums.json").read_bytes()


def test_a_sum_that_is_not_that_of_its_blocks(large, tmp_path):
    base, _ = large
    text = written(base / "sums.json")
    text["files"][0]["blocks"][1] = "0" * 32
    (tmp_path / "sums.json").write_text(json.dumps(text))
    fails(
        1, "the sum of its blocks", "verify", base / "big.npy", "--against", tmp_path / "sums.json"
    )


def test_each_block_is_named(large):
    base, _ = large
    size = (base / "big.npy").stat().st_size
    for offset in (0, BLOCK - 1, BLOCK, 2 * BLOCK + 12345, size - 1):
        flip(base / "big.npy", offset)
        found = against(base / "sums.json", base / "big.npy", "--level", "checksums")
        flip(base / "big.npy", offset)
        named = [problem for problem in found["problems"] if "blocks" in problem["message"]]
        assert [(problem["offset"], problem["path"]) for problem in named] == [
            (offset // BLOCK * BLOCK, str(base / "big.npy"))
        ]
    assert against(base / "sums.json", base / "big.npy", status=0)["problems"] == []


@needs_h5py
def test_hdf5(tmp_path):
    array = small(400, 300)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["plain"] = array
        file.create_dataset(
            "chunked", data=array, chunks=(64, 100), compression="gzip", shuffle=True
        )
        sparse = file.create_dataset("sparse", array.shape, "f4", chunks=(50, 50), fillvalue=7)
        sparse[:60, 100:120] = array[:60, 100:120]
        places = {}
        for name in ("chunked", "sparse"):
            identity = file[name].id
            places[name] = [identity.get_chunk_info(i) for i in range(identity.get_num_chunks())]
        sparse_array = sparse[:]
    layout = h5py.VirtualLayout(array.shape, "f4")
    layout[:] = h5py.VirtualSource(tmp_path / "a.h5", "chunked", array.shape)
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file.create_virtual_dataset("virtual", layout)
    for name, data in (("plain", array), ("chunked", array), ("sparse", sparse_array)):
        write(tmp_path / f"{name}.json", tmp_path / "a.h5", "--dataset", name)
        chunks = {
            tmp_path / "a.h5": [
                (info.chunk_offset, info.byte_offset, info.size) for info in places.get(name, [])
            ]
        }
        assert written(tmp_path / f"{name}.json") == expected(
            tmp_path, data, [tmp_path / "a.h5"], "hdf5", "/" + name, chunks
        )
        found = against(tmp_path / f"{name}.json", tmp_path / "a.h5", "--dataset", name, status=0)
        assert (found["chunks"], found["content"]) == (len(places.get(name, [])), "same")
    write(tmp_path / "virtual.json", tmp_path / "v.h5")
    chunks = {
        tmp_path / "a.h5": [
            (info.chunk_offset, info.byte_offset, info.size) for info in places["chunked"]
        ]
    }
    text = written(tmp_path / "virtual.json")
    files = [tmp_path / file["path"] for file in text["files"]]
    assert sorted(file.name for file in files) == ["a.h5", "v.h5"]
    assert text == expected(tmp_path, array, files, "hdf5", "/virtual", chunks)
    assert against(tmp_path / "virtual.json", tmp_path / "v.h5", status=0)["content"] == "same"


@needs_h5py
def test_files_side_by_side(tmp_path):
    """Rows of the array are in two files, and in one of them twice."""
    left, right = small(500, 300), small(500, 200, seed=2)
    for name, part in (("left", left), ("right", right)):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["x"] = part
    layout = h5py.VirtualLayout((1000, 500), "f4")
    for row in (0, 500):
        layout[row : row + 500, :300] = h5py.VirtualSource(tmp_path / "left.h5", "x", (500, 300))
        layout[row : row + 500, 300:] = h5py.VirtualSource(tmp_path / "right.h5", "x", (500, 200))
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file.create_virtual_dataset("v", layout)
    whole = numpy.tile(numpy.hstack([left, right]), (2, 1))
    tall = h5py.VirtualLayout((1000, 300), "f4")
    for row in (0, 500):
        tall[row : row + 500] = h5py.VirtualSource(tmp_path / "left.h5", "x", (500, 300))
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file.create_virtual_dataset("t", tall)
    for name, array in (("v", whole), ("t", numpy.tile(left, (2, 1)))):
        write(tmp_path / "sums.json", tmp_path / f"{name}.h5", "--overwrite")
        text = written(tmp_path / "sums.json")
        assert text == expected(
            tmp_path, array, [tmp_path / file["path"] for file in text["files"]], "hdf5", "/" + name
        )
        assert (
            against(tmp_path / "sums.json", tmp_path / f"{name}.h5", status=0)["content"] == "same"
        )


@needs_h5py
def test_chunks_across_blocks(tmp_path):
    # 20 MiB in chunks of 3
    array = numpy.random.default_rng(4).integers(0, 1 << 30, (5 << 10, 1 << 10), "i4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=array, chunks=(768, 1024))
        infos = [file["x"].id.get_chunk_info(i) for i in range(7)]
    assert any(
        info.byte_offset // BLOCK != (info.byte_offset + info.size - 1) // BLOCK for info in infos
    )
    write(tmp_path / "sums.json", tmp_path / "a.h5")
    chunks = {
        tmp_path / "a.h5": [(info.chunk_offset, info.byte_offset, info.size) for info in infos]
    }
    assert written(tmp_path / "sums.json") == expected(
        tmp_path, array, [tmp_path / "a.h5"], "hdf5", "/x", chunks
    )


def random_chunked(seed, shape, dtype):
    array = numpy.random.default_rng(seed).integers(0, 50, shape)
    return array % 3 == 0 if dtype == "?" else array.astype(dtype)


CHUNKED = {  # shape, chunk, dtype, how
    "rows": (
        (900, 700),
        (128, 700),
        "<f4",
        {"compression": "gzip", "compression_opts": 1, "shuffle": True},
    ),
    "tiles": ((900, 700), (128, 90), "<i4", {"compression": "gzip", "compression_opts": 1}),
    "plain": ((900, 700), (100, 700), "<f8", {}),
    "checked": ((400, 333), (37, 50), "<u2", {"fletcher32": True, "compression": "lzf"}),
    "bool": ((1000, 700), (300, 111), "?", {"compression": "lzf"}),
    "big-endian": (
        (500, 700),
        (128, 90),
        ">f8",
        {"compression": "gzip", "compression_opts": 1, "shuffle": True},
    ),
    "complex": ((300, 200), (77, 200), ">c8", {"compression": "lzf"}),
    "line": ((300_003,), (1000,), "<i8", {"compression": "lzf"}),
    "images": ((9, 250, 260), (1, 250, 260), "<u2", {"compression": "lzf"}),
    "cubes": ((40, 61, 70), (7, 16, 33), "<i2", {"compression": "lzf"}),
    # all of it lies between the ends of each chunk
    "columns": ((2500, 3000), (2500, 11), "<f4", {}),
}


@needs_h5py
@pytest.mark.parametrize("name", CHUNKED)
def test_the_content_of_chunks(tmp_path, name):
    shape, chunk, dtype, how = CHUNKED[name]
    array = random_chunked(5, shape, dtype)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("whole", data=array, chunks=chunk, **how)
        holes = file.create_dataset(
            "holes", shape, dtype, chunks=chunk, fillvalue=None if "c" in dtype else 1, **how
        )
        for k in range(0, shape[0], 3 * chunk[0]):
            holes[k : k + chunk[0]] = array[k : k + chunk[0]]
        with_holes = holes[()]
    for dataset, values, threads in (("whole", array, "3"), ("holes", with_holes, "1")):
        write(
            tmp_path / "sums.json",
            tmp_path / "a.h5",
            "--dataset",
            dataset,
            "--threads",
            threads,
            "--overwrite",
        )
        assert written(tmp_path / "sums.json")["content"] == content_of(values), dataset
        found = against(
            tmp_path / "sums.json",
            tmp_path / "a.h5",
            "--dataset",
            dataset,
            "--threads",
            threads,
            status=0,
        )
        assert found["content"] == "same" and found["bytes"] == os.path.getsize(tmp_path / "a.h5")


@needs_h5py
def test_the_content_of_chunks_that_parts_share(tmp_path):
    """Rows dealt out, parts of chunks left out, and one chunk shown twice."""
    array = random_chunked(6, (600, 500), "<f4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=array, chunks=(64, 150), compression="lzf")
    layout = h5py.VirtualLayout((900, 480), "<f4")
    source = h5py.VirtualSource(tmp_path / "a.h5", "x", array.shape)
    layout[0:300] = source[0:600:2, 10:490]
    layout[300:600] = source[1:600:2, 10:490]
    layout[600:900] = source[0:300, 20:500]
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file.create_virtual_dataset("v", layout)
    write(tmp_path / "sums.json", tmp_path / "v.h5", "--dataset", "v")
    shown = numpy.concatenate([array[::2, 10:490], array[1::2, 10:490], array[:300, 20:]])
    assert written(tmp_path / "sums.json")["content"] == content_of(shown)


def bytes_read(*arguments):
    """By the command and all that it loads; the system counts what a process's children have
    read as its own when they have ended."""
    code = (
        "import subprocess, sys; subprocess.run(sys.argv[1:], check=True, "
        "stdout=subprocess.DEVNULL); "
        "print(open('/proc/self/io').read())"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        check=True,
        capture_output=True,
        text=True,
    )
    return int(run.stdout.split("rchar:")[1].split()[0])


@needs_h5py
@pytest.mark.skipif(
    not os.path.exists("/proc/self/io"), reason="the system does not count what is read"
)
def test_chunks_are_read_once(tmp_path):
    """The content costs no second reading of the file: nearly as much is read as for the sums of
    files and chunks alone."""
    array = numpy.random.default_rng(7).integers(0, 256, (40, 1024, 1024), "u1")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=array, chunks=(1, 512, 1024), compression="lzf")
    program, size = os.environ["TEGULA_BIN"], os.path.getsize(tmp_path / "a.h5")
    read = {}
    for level in ("checksums", "decode"):
        read[level] = bytes_read(
            program,
            "verify",
            tmp_path / "a.h5",
            "--write",
            tmp_path / (level + ".json"),
            "--level",
            level,
        )
    read["against"] = bytes_read(
        program, "verify", tmp_path / "a.h5", "--against", tmp_path / "decode.json"
    )
    assert read["checksums"] >= size > 2 * BLOCK
    assert max(read["decode"], read["against"]) < read["checksums"] + size // 10, (read, size)
    assert written(tmp_path / "decode.json")["content"] == content_of(array)


def test_a_level_without_the_content(tmp_path):
    files = shards(tmp_path / "s", small(), 3)
    write(tmp_path / "sums.json", tmp_path / "s", "--level", "checksums")
    assert written(tmp_path / "sums.json") == {
        **expected(tmp_path, small(), files),
        "content": None,
    }
    assert against(tmp_path / "sums.json", tmp_path / "s", status=0)["content"] is None
    flip(files[1], 300)
    found = against(tmp_path / "sums.json", tmp_path / "s")
    assert problems(found) == [("mismatch", "s_0001.npy")]
    assert (
        against(tmp_path / "sums.json", tmp_path / "s", "--level", "sizes", status=0)["problems"]
        == []
    )


def test_many_small_shards(tmp_path):
    folder = tmp_path / "s"
    folder.mkdir()
    header = (
        b"\x93NUMPY\x01\x00\x76\x00{'descr': '<i4', 'fortran_order': False, 'shape': (30,), }"
    ).ljust(127) + b"\n"
    array = numpy.arange(300000, dtype="i4")
    for number in range(10000):
        (folder / f"s_{number:05d}.npy").write_bytes(
            header + array[30 * number : 30 * number + 30].tobytes()
        )
    write(tmp_path / "sums.json", folder)
    text = written(tmp_path / "sums.json")
    assert text["content"] == content_of(array)
    assert [file["sum"] for file in text["files"]] == [
        sum_of((folder / f"s_{i:05d}.npy").read_bytes()) for i in range(10000)
    ]
    for number in (1, 5000, 9999):
        flip(folder / f"s_{number:05d}.npy", 200)
    found = against(tmp_path / "sums.json", folder)
    assert problems(found)[:3] == [
        ("mismatch", f"s_{number:05d}.npy") for number in (1, 5000, 9999)
    ]
    assert (problems(found)[3:], found["content"]) == ([("mismatch", "")], "different")


# ---- damage --------------------------------------------------------------------------------------


def test_every_flipped_byte_is_found(tmp_path):
    files = shards(tmp_path / "s", small(), 5)
    write(tmp_path / "sums.json", tmp_path / "s")
    random = numpy.random.default_rng(5)
    for threads in range(1, 9):
        file = files[random.integers(5)]
        flip(file, offset := int(random.integers(file.stat().st_size)))
        found = against(tmp_path / "sums.json", tmp_path / "s", "--threads", threads)
        flip(file, offset)
        assert ("mismatch", file.name) in problems(found), offset
        assert {name for _, name in problems(found)} <= {file.name, ""}
    assert against(tmp_path / "sums.json", tmp_path / "s", status=0)["content"] == "same"


@needs_h5py
def test_every_flipped_byte_of_a_chunk_is_found(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=small(400, 300), chunks=(64, 100), compression="gzip")
        infos = [file["x"].id.get_chunk_info(i) for i in range(file["x"].id.get_num_chunks())]
    write(tmp_path / "sums.json", path)
    random = numpy.random.default_rng(6)
    for info in random.permutation(
        numpy.array([(i.byte_offset, i.size, *i.chunk_offset) for i in infos])
    )[:6]:
        start_, size, row, column = map(int, info)
        offset = start_ + int(random.integers(size))
        flip(path, offset)
        found = against(tmp_path / "sums.json", path)
        flip(path, offset)
        named = [
            problem
            for problem in found["problems"]
            if problem["message"].startswith("the chunk at")
        ]
        assert [(problem["offset"], problem["path"]) for problem in named] == [(start_, str(path))]
        assert (
            f"the chunk at ({row}, {column}), bytes {start_} to {start_ + size} of"
            in named[0]["message"]
        )
        assert "1 of 1 blocks differs" in found["problems"][0]["message"]
    assert against(tmp_path / "sums.json", path, status=0)["problems"] == []


def test_lost_short_long_and_new_files(tmp_path):
    files = shards(tmp_path / "s", small(), 8)
    write(tmp_path / "sums.json", tmp_path / "s")
    os.truncate(files[2], files[2].stat().st_size - 1)
    with open(files[4], "ab") as file:
        file.write(b"x")
    files[7].unlink()
    found = problems(against(tmp_path / "sums.json", tmp_path / "s", "--level", "sizes"))
    assert (
        ("short_file", "s_0002.npy") in found
        and ("mismatch", "s_0004.npy") in found
        and ("not_found", "s_0007.npy") in found
    )
    found = problems(against(tmp_path / "sums.json", tmp_path / "s"))
    assert (
        ("short_file", "s_0002.npy") in found
        and ("mismatch", "s_0004.npy") in found
        and ("not_found", "s_0007.npy") in found
    )


def test_an_extra_file(tmp_path):
    files = shards(tmp_path / "s", small(), 3)
    write(tmp_path / "sums.json", tmp_path / "s")
    numpy.save(tmp_path / "s" / "s_0003.npy", numpy.load(files[0]))
    found = against(tmp_path / "sums.json", tmp_path / "s")
    assert problems(found) == [("mismatch", "s_0003.npy"), ("mismatch", "")]
    assert (
        "is not in the sums" in found["problems"][0]["message"]
        and "(4000, 50)" in found["problems"][1]["message"]
    )


def test_renamed_and_swapped_files(tmp_path):
    files = shards(tmp_path / "s", small(), 4)
    write(tmp_path / "sums.json", tmp_path / "s")
    os.rename(files[1], tmp_path / "t")
    os.rename(files[2], files[1])
    os.rename(tmp_path / "t", files[2])
    found = against(tmp_path / "sums.json", tmp_path / "s")
    assert problems(found) == [
        ("mismatch", "s_0001.npy"),
        ("mismatch", "s_0002.npy"),
        ("mismatch", ""),
    ]
    assert found["content"] == "different"
    run = tegula("verify", tmp_path / "s", "--against", tmp_path / "sums.json")
    assert run.returncode == 3 and 'it holds what "%s" held' % files[2] in run.stderr
    os.rename(files[1], tmp_path / "t")
    os.rename(files[2], files[1])
    os.rename(tmp_path / "t", files[2])
    for number, file in enumerate(files):
        os.rename(file, tmp_path / "s" / f"t_{number}.npy")
    found = against(tmp_path / "sums.json", tmp_path / "s")
    assert problems(found) == [("not_found", file.name) for file in files] + [
        ("mismatch", f"t_{i}.npy") for i in range(4)
    ]
    assert found["content"] == "same"


def test_another_layout_of_the_same_content(tmp_path):
    array = small()
    numpy.save(tmp_path / "a.npy", array)
    write(tmp_path / "sums.json", tmp_path / "a.npy")
    numpy.save(tmp_path / "a.npy", numpy.asfortranarray(array))
    run = tegula("verify", tmp_path / "a.npy", "--against", tmp_path / "sums.json")
    assert (
        run.returncode == 3
        and "content same" in run.stdout
        and "the content of the array is the same" in run.stderr
    )
    found = against(tmp_path / "sums.json", tmp_path / "a.npy")
    assert (problems(found), found["content"]) == ([("mismatch", "a.npy")], "same")


def test_both_can_be_moved(tmp_path):
    shards(tmp_path / "s", small(), 3)
    write(tmp_path / "s.json", tmp_path / "s")
    (tmp_path / "elsewhere").mkdir()
    for name in ("s", "s.json"):
        os.rename(tmp_path / name, tmp_path / "elsewhere" / name)
    assert (
        against(tmp_path / "elsewhere/s.json", tmp_path / "elsewhere/s", status=0)["content"]
        == "same"
    )


# ---- the file with the sums ----------------------------------------------------------------------


def test_what_may_be_written(tmp_path):
    files = shards(tmp_path / "s", small(), 3)
    fails(2, "among the shards", "verify", tmp_path / "s", "--write", tmp_path / "s" / "sums.json")
    write(tmp_path / "s" / "_sums.json", tmp_path / "s")
    assert against(tmp_path / "s" / "_sums.json", tmp_path / "s", status=0)["problems"] == []
    fails(1, "is there already", "verify", tmp_path / "s", "--write", tmp_path / "s" / "_sums.json")
    write(tmp_path / "s" / "_sums.json", tmp_path / "s", "--overwrite")
    before = files[0].read_bytes()
    fails(1, "holds no sums", "verify", tmp_path / "s", "--write", files[0], "--overwrite")
    assert files[0].read_bytes() == before
    fails(
        1,
        "could not find the folder",
        "verify",
        tmp_path / "s",
        "--write",
        tmp_path / "no" / "sums.json",
    )
    usage_error("verify", tmp_path / "s", "--write", "a", "--against", "b")
    usage_error("verify", tmp_path / "s", "--write", "a", "--level", "sizes")
    usage_error("verify", tmp_path / "s", "--overwrite")


def test_nothing_is_written_beside_a_problem(tmp_path):
    files = shards(tmp_path / "s", small(), 3)
    os.truncate(files[1], 200)
    found = write(tmp_path / "sums.json", tmp_path / "s", status=3)
    assert ("short_file", "s_0001.npy") in problems(found) and sorted(tmp_path.iterdir()) == [
        tmp_path / "s"
    ]


def test_damaged_sums(tmp_path):
    shards(tmp_path / "s", small(), 3)
    path = tmp_path / "sums.json"
    write(path, tmp_path / "s")
    whole = path.read_bytes()
    random = numpy.random.default_rng(7)
    for _ in range(25):
        at = int(random.integers(len(whole) - 1))
        path.write_bytes(
            whole[:at] + bytes([whole[at] ^ 1 << int(random.integers(8))]) + whole[at + 1 :]
        )
        run = tegula("verify", tmp_path / "s", "--against", path, "--quiet")
        assert run.returncode == 1, (at, run.stdout, run.stderr)
    for at in (0, 1, 100, len(whole) // 2, len(whole) - 3):
        path.write_bytes(whole[:at])
        fails(1, "sums.json", "verify", tmp_path / "s", "--against", path)
    fails(1, "could not open", "verify", tmp_path / "s", "--against", tmp_path / "none.json")


def edited(**changes):
    def change(text):
        file = text["files"][0]
        for key, value in changes.items():
            (file if key in ("size", "sum", "blocks", "chunks", "path") else text)[key] = value

    return change


@pytest.mark.parametrize(
    "change, message",
    [
        (edited(tegula_sums=2), "known is version 1"),
        (edited(block_bytes=1 << 20), "block_bytes"),
        (edited(size=-1), "size"),
        (edited(size=1 << 62), "blocks"),
        (edited(sum="00"), "32 hexadecimal"),
        (edited(blocks=["0" * 32]), "one block"),
        (edited(chunks=[[[0, 0], 0, 1]]), "place, offset, length and sum"),
        (edited(chunks=[[[0, 0], 0, 1 << 40, "0" * 32]]), "chunks"),
        (edited(chunks=[[[0, 50], 0, 1, "0" * 32]]), "inside the shape"),
        (edited(chunks=[[[0, 0], 9, 1, "0" * 32], [[0, 1], 8, 1, "0" * 32]]), "chunks[1]"),
        (edited(dtype="O"), "dtype"),
        (edited(shape=[1 << 62, 8]), "2^63"),
        (edited(content="tegula1:0"), "content hash"),
        (edited(more=1), "no key that is known"),
        (edited(files=5), "a list"),
    ],
)
def test_sums_that_make_no_sense(tmp_path, change, message):
    shards(tmp_path / "s", small(), 2)
    write(tmp_path / "sums.json", tmp_path / "s")
    text = written(tmp_path / "sums.json")
    (tmp_path / "sums.json").write_text(json.dumps(text))
    assert against(tmp_path / "sums.json", tmp_path / "s", status=0)["content"] == "same", (
        "a text without its own digest is taken"
    )
    change(text)
    (tmp_path / "sums.json").write_text(json.dumps(text))
    fails(1, message, "verify", tmp_path / "s", "--against", tmp_path / "sums.json")


# ---- storage that fails, and an end before the end -----------------------------------------------


@pytest.mark.skipif(
    bool(os.environ.get("TEGULA_SANITIZER")),
    reason="the sanitizer's runtime stands in front of the C library",
)
def test_a_read_error_in_the_middle(tmp_path):
    faults = (
        pathlib.Path(os.environ.get("TEGULA_LIB", ROOT / "build/lib/libtegula.so")).parents[1]
        / "tests/faults.so"
    )
    if not faults.exists():
        pytest.skip("faults.so is not there")
    files = shards(tmp_path / "s", small(), 6)
    write(tmp_path / "sums.json", tmp_path / "s")
    named, unread = set(), set()
    for number in range(1, 40):
        env = {"LD_PRELOAD": str(faults), "TEGULA_FAULT": f"read:{number}:EIO"}
        run = tegula(
            "verify",
            tmp_path / "s",
            "--against",
            tmp_path / "sums.json",
            "--threads",
            1,
            "--json",
            env=env,
        )
        for problem in json.loads(run.stdout).get("problems", []):
            assert run.returncode == 3 and problem["status"] == "io", run.stdout
            named.add(os.path.basename(problem["path"]))
        run = tegula(
            "verify",
            tmp_path / "s",
            "--write",
            tmp_path / f"{number}.json",
            "--threads",
            1,
            "--json",
            env=env,
        )
        assert run.returncode in (0, 3), run.stdout
        unread |= {
            (problem["status"], run.returncode)
            for problem in json.loads(run.stdout).get("problems", [])
        }
        assert (run.returncode == 0) == (tmp_path / f"{number}.json").exists()
        if run.returncode == 0:
            assert (tmp_path / f"{number}.json").read_bytes() == (
                tmp_path / "sums.json"
            ).read_bytes()
    assert unread == {("io", 3)}
    assert named >= {file.name for file in files}, "each file was the one that failed"


def test_cancel_and_timeout(large):
    base, _ = large
    fails(
        1,
        "deadline",
        "verify",
        base / "big.npy",
        "--write",
        base / "late.json",
        "--timeout",
        "0.000001",
    )
    fails(
        1,
        "deadline",
        "verify",
        base / "big.npy",
        "--against",
        base / "sums.json",
        "--timeout",
        "0.000001",
    )
    run = start("verify", base / "big.npy", "--write", base / "late.json")
    time.sleep(0.002)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=60)
    assert run.returncode in (130, -signal.SIGINT, 0)
    assert not list(base.glob(".late*"))
    if run.returncode != 0:
        assert not (base / "late.json").exists()
