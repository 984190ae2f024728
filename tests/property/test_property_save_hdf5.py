# Random arrays saved as HDF5 in random layouts: h5py reads what numpy has.
#
# SPDX-License-Identifier: Apache-2.0
import h5py
import numpy
import pytest

pytest.importorskip("hdf5plugin")

import generate_arrays as gen
import property_runner
from generate_arrays import array_command, context_command
from saving import check, left, put

CODECS = [
    "shuffle",
    "bitshuffle",
    "deflate:1",
    "deflate:6",
    "deflate:9",
    "zstd:1",
    "zstd:7",
    "lz4",
    "lz4:1000",
    "lzf",
    "fletcher32",
    "bitshuffle-lz4",
    "bitshuffle-zstd:2",
    "blosc",
    "blosc:zstd:3:bitshuffle",
    "blosc:zlib:2:noshuffle",
]


def alike(rng, array):
    """Some arrays are nearly constant: codecs shrink them much, or skip nothing."""
    if array.size == 0 or array.dtype.names is not None or rng.random() < 0.5:
        return array
    out = array.copy()
    flat = out.reshape(-1).view("V%d" % out.dtype.itemsize)
    for _ in range(int(rng.integers(1, 4))):
        lo, hi = sorted(int(n) for n in rng.integers(0, flat.size + 1, 2))
        flat[lo:hi] = flat[lo % flat.size]
    return out


def save_command(rng, array, folder):
    command = {
        "do": "save",
        "path": str(folder / ("out/deep/x.h5" if rng.random() < 0.2 else "out/x.h5")),
        "dataset": ["x", "g/x", "/a/b/c", "%b é"][rng.integers(4)],
    }
    kind = rng.random()
    if array.ndim and kind < 0.6:
        if rng.random() < 0.8:
            command["chunk"] = [int(rng.integers(1, max(2, min(n + 2, 40)))) for n in array.shape]
        else:
            command["layout"] = "chunked"
        if rng.random() < 0.75:
            command["codec"] = ",".join(
                CODECS[k] for k in rng.integers(0, len(CODECS), rng.integers(1, 4))
            )
    elif array.ndim and kind < 0.75:
        command["layout"] = "virtual"
    if array.ndim and command.get("layout") != "virtual" and rng.random() < 0.15:
        command.update(
            path=str(folder / "out" / "shards"), format="hdf5", shards=int(rng.integers(1, 6))
        )
    if rng.random() < 0.5:
        command["byte_order"] = "<>"[rng.integers(2)]
    if rng.random() < 0.2 and array.size:
        command["fill"] = array.reshape(-1)[:1].tobytes().hex()
    return command


def files_of(command, folder):
    if not command.get("shards"):
        return [folder.parent / command["path"]]
    return sorted((folder.parent / command["path"]).iterdir())


def few_chunks(array, command):
    """One chunk for each element of a long array is no more of a test than some."""
    while (
        "chunk" in command
        and numpy.prod([-(-n // c) for n, c in zip(array.shape, command["chunk"])]) > 300
    ):
        command["chunk"] = [2 * c for c in command["chunk"]]


def check_files(array, command, folder):
    order = command.get("byte_order", "<")
    row, rows = 0, 0
    for path in files_of(command, folder):
        with h5py.File(path) as file:
            dataset = file[command["dataset"]]
            rows = dataset.shape[0] if array.ndim else 0
            check(dataset, array[row : row + rows] if array.ndim else array, order)
            assert dataset.is_virtual == (command.get("layout") == "virtual")
            row += rows
    assert array.ndim == 0 or row == array.shape[0]
    assert not [
        name
        for name in left(folder / "out")
        if ".tegula" in name and not name.endswith(("/.tegula-companion", "/.tegula-file"))
    ]


def second_save(probe, rng, array, command, folder):
    """Another dataset beside it, or the same replaced."""
    if command.get("shards") or command.get("layout") == "virtual":
        return
    again = {
        **save_command(rng, array, folder),
        "path": command["path"],
        "dataset": command["dataset"] + "2",
    }
    again.pop("shards", None)
    if again.get("layout") == "virtual":
        return
    few_chunks(array, again)
    probe.call(**again)
    check_files(array, again, folder)
    check_files(array, command, folder)


def run_case(probe, rng, folder):
    dtype = gen.random_dtype(rng, structured=False)
    array = alike(rng, gen.random_array(rng, gen.random_shape(rng), dtype))
    tiling, boxes = gen.random_tiling(rng, list(array.shape), from_dataset=False)
    probe.batch([{**context_command(rng), "threads": int(rng.integers(1, 9))}])
    put(probe, folder, array, tiling, boxes, array_command(rng, array))
    command = save_command(rng, array, folder)
    few_chunks(array, command)
    answer = probe.ask(command)
    if "error" in answer and "this build has no" in answer["error"]["message"]:
        return
    assert "error" not in answer, (command, answer)
    check_files(array, command, folder)
    if rng.random() < 0.3:
        second_save(probe, rng, array, command, folder)


@pytest.mark.parametrize("group", range(property_runner.GROUPS))
def test_hdf5_saves_are_read_back_by_h5py(shared_probe, group):
    property_runner.run(24, group, 0.04, lambda rng, folder: run_case(shared_probe, rng, folder))
