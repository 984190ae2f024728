"""Files that belong together are replaced while they are read: what comes is all old, all new,
or the error `changed`.

SPDX-License-Identifier: Apache-2.0
"""

import collections
import contextlib
import os
import pathlib
import tempfile
import time

import h5py
import numpy
import pytest
import tegula

import replacing

ROUNDS = 2000 if os.environ.get("TEGULA_FAULT_ALL") == "1" else 100
FILES = 64


def write_npy(folder, value, files=FILES):
    for i in range(files):
        numpy.save(folder / f"part_{i:02}.npy", numpy.full((2 + (i + value) % 3, 5), value, "i4"))
    return folder.name


def write_raw(folder, value):
    rows = [value] * FILES
    for i in range(FILES):
        numpy.full((rows[i], 5), value, "i4").tofile(folder / f"part_{i:02}.bin")
    (folder / "shard_meta.json").write_text(f'{{"dtype": "<i4", "row_shape": [5], "rows": {rows}}}')
    return folder.name


def write_hdf5(folder, value, files=FILES):
    for i in range(files):
        with h5py.File(folder / f"part_{i:02}.h5", "w") as file:
            file["x"] = numpy.full((3, 5), value, "i4")
    return folder.name


def write_virtual(folder, value, files=FILES):
    layout = h5py.VirtualLayout((files, 5), "i4")
    for i in range(files):
        with h5py.File(folder / f"source_{i:03}.h5", "w") as file:
            file["x"] = numpy.full(5, value, "i4")
        layout[i] = h5py.VirtualSource(f"source_{i:03}.h5", "x", (5,))
    with h5py.File(folder / "main.h5", "w") as file:
        file.create_virtual_dataset("x", layout)
    return f"{folder.name}/main.h5"


def write_late(folder, value):
    return write_virtual(folder, value, 300)


def write_external(folder, value):
    parts = []
    for i in range(8):
        numpy.full(5, value, "i4").tofile(folder / f"data_{i}.bin")
        parts.append((f"data_{i}.bin", 0, 20))
    with h5py.File(folder / "main.h5", "w") as file:
        file.create_dataset("x", (8, 5), "i4", external=parts)
    return f"{folder.name}/main.h5"


def write_linked(folder, value):
    with h5py.File(folder / "data.h5", "w") as file:
        file["x"] = numpy.full((3, 5), value, "i4")
    with h5py.File(folder / "main.h5", "w") as file:
        file["x"] = h5py.ExternalLink("data.h5", "x")
    return f"{folder.name}/main.h5"


WRITERS = {
    "npy": write_npy,
    "raw": write_raw,
    "hdf5": write_hdf5,
    "virtual": write_virtual,
    "late": write_late,
    "external": write_external,
    "linked": write_linked,
}


@pytest.fixture(params=WRITERS)
def pair(request, tmp_path):
    """What to open in a folder, which can be exchanged with another: all its elements are 1,
    all those of the other 2."""
    for name, value in (("a", 1), ("b", 2)):
        (tmp_path / name).mkdir()
        opened = WRITERS[request.param](tmp_path / name, value)
    return tmp_path, tmp_path / opened.replace("b", "a", 1)


def values_of(read):
    """The set of values, or CHANGED."""
    try:
        array = numpy.asarray(read())
        return {int(array.min()), int(array.max())}
    except tegula.Error as error:
        if error.status != "changed":
            raise
        return {"changed"}


READS = {
    "load": lambda path: tegula.load(path),
    "index": lambda path: tegula.open(path)[:],
    "batches": lambda path: numpy.concatenate(
        [batch for batch, _ in tegula.open(path).batches((7, 5))]
    ),
}
# seconds between two exchanges: what is opened by its name when it is read
# needs a while without one
PAUSES = {"virtual": 0.02, "late": 0.5, "external": 0.004, "linked": 0.004}


@pytest.mark.parametrize("how", READS)
def test_a_folder_that_is_exchanged_is_read_as_one_of_the_two(pair, how, request):
    folder, path = pair
    seen, kind = set(), request.node.callspec.params["pair"]
    with replacing.running("exchange", folder / "a", folder / "b", PAUSES.get(kind, 0.0007)):
        for _ in range(ROUNDS // 5 if kind == "late" else ROUNDS):
            values = values_of(lambda: READS[how](path))
            assert values in ({1}, {2}, {"changed"})
            seen |= values
    assert seen & {1, 2}, "no read has come through"


@pytest.mark.parametrize("writer", [write_npy, write_hdf5, write_virtual])
def test_files_that_are_renamed_over_one_by_one_are_read_as_they_were_at_one_moment(
    tmp_path, writer
):
    """The state between two renames is one that the folder had; any other mixture is wrong."""
    folder, spare, log = tmp_path / "a", tmp_path / "spare", tmp_path / "log"
    for path, value in ((folder, 1), (spare / "1", 1), (spare / "2", 2)):
        path.mkdir(parents=True)
        opened = tmp_path / writer(path, value, 24).replace(path.name, "a", 1)
    names = sorted(path.name for path in folder.iterdir() if path.name != "main.h5")
    rows = []
    for value in (1, 2):
        with contextlib.ExitStack() as stack:
            rows.append([rows_of(spare / str(value) / name, stack) for name in names])
    seen = set()
    log.touch()
    with replacing.running(
        "renew", folder, spare, ",".join(names), 0.001 if writer is write_npy else 0.05, log
    ):
        for _ in range(ROUNDS):
            begin = time.monotonic_ns()
            try:
                array = numpy.asarray(tegula.open(opened)[:])
            except tegula.Error as error:
                assert error.status == "changed"
                continue
            end = time.monotonic_ns()
            found = generations(array[:, 0], rows)
            renames = replacing.states(log)
            assert replacing.was_there(found, begin, end, renames), replacing.moments(
                found, begin, end, renames
            )
            seen.add(len(set(found)))
    assert seen, "no read has come through"


def rows_of(path, stack):
    """How many rows a file adds to the array."""
    if path.suffix == ".npy":
        return len(numpy.load(path))
    shape = stack.enter_context(h5py.File(path))["x"].shape
    return shape[0] if len(shape) == 2 else 1


def generations(values, rows):
    """Of each file in turn, the generation whose rows are found."""
    found, at = [], 0
    for older, newer in zip(*rows, strict=True):
        value = int(values[at])
        count = (older, newer)[value - 1]
        assert (values[at : at + count] == value).all()
        found.append(value)
        at += count
    assert at == len(values)
    return found


@pytest.mark.parametrize("folder", [None, "/dev/shm"])
def test_one_large_write_in_place_is_seen_whole_or_not_at_all(tmp_path, folder):
    with tempfile.TemporaryDirectory(dir=folder or tmp_path) as place:
        path = pathlib.Path(place) / "x.npy"
        numpy.save(path, numpy.full(16 << 20, 1, "u1"))
        seen = collections.Counter()
        with replacing.running("rewrite", path, path.stat().st_size - (16 << 20), 16 << 20, 0.01):
            for _ in range(2 * ROUNDS):
                values = values_of(lambda: tegula.load(path))
                assert values in ({1}, {2}, {"changed"})
                seen.update(values)
        assert seen[1] + seen[2] > 0, "no read has come through"


def test_small_writes_within_one_tick_of_the_clock_are_seen_whole_or_not_at_all(tmp_path):
    path = tmp_path / "x.npy"
    numpy.save(path, numpy.full(65536, 1, "u1"))
    seen = collections.Counter()
    with replacing.running("rewrite", path, path.stat().st_size - 65536, 65536, 0.0002):
        for _ in range(5 * ROUNDS):
            values = values_of(lambda: tegula.load(path))
            assert values in ({1}, {2}, {"changed"})
            seen.update(values)
    assert seen["changed"] > 0, "no write has met a read"
