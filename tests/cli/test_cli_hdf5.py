# Containers on the command line: what info lists and refuses, names, batches of a dataset.
#
# SPDX-License-Identifier: Apache-2.0
import os

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes the files")

import hdf5_files as h5  # noqa: E402
from command import refused, report, tegula  # noqa: E402
from reference_hash import content_hash  # noqa: E402

ENV = {key: value for key, value in os.environ.items() if key in ("TEGULA_HDF5_LIBRARY", "TEGULA_PLUGIN_PATH")}
KEYS = {"name", "shape", "dtype", "chunks", "codecs", "files", "bytes", "stored_bytes"}
data = numpy.arange(42, dtype=">i4").reshape(7, 6)


@pytest.fixture
def container(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["run/temperature"] = data
        file.create_dataset("run/pressure", data=data, chunks=(3, 4), compression="gzip", compression_opts=6, shuffle=True)
        file.create_dataset("growing", (0, 5), "<f8", maxshape=(None, 5), chunks=(2, 5))
        file["scalar"] = 3.5
        file["texts"] = ["a", "bc"]
        file["alias"] = h5py.SoftLink("/run/temperature")
        file["loop"] = file["/"]
    h5.filtered(path, "odd", 40000)
    return path


def test_info_lists_every_dataset_once(container):
    answer = report("info", container, env=ENV)
    assert answer["format"] == "hdf5"
    listed = {entry["name"]: entry for entry in answer["datasets"]}
    assert list(listed) == sorted(listed) == ["/growing", "/odd", "/run/pressure", "/run/temperature", "/scalar", "/texts"]
    assert all(KEYS <= set(entry) for entry in listed.values())
    with h5py.File(container) as file:
        stored = {name: file[name].id.get_storage_size() for name in listed}
    for name, shape, dtype, chunks, codecs in [
        ("/run/temperature", [7, 6], "<i4", None, []), ("/run/pressure", [7, 6], "<i4", [3, 4], ["shuffle", "deflate:6"]),
        ("/growing", [0, 5], "<f8", [2, 5], []), ("/scalar", [], "<f8", None, []),
    ]:
        entry = listed[name]
        assert [entry[key] for key in ("shape", "dtype", "chunks", "codecs")] == [shape, dtype, chunks, codecs]
        assert entry["bytes"] == int(numpy.prod(shape)) * numpy.dtype(dtype).itemsize and entry["stored_bytes"] == stored[name]
        assert "refused" not in entry
    assert listed["/texts"]["dtype"] is None and "variable length" in listed["/texts"]["refused"]
    assert listed["/odd"]["codecs"] == ["filter-40000"]


def test_info_for_people(container):
    run = tegula("info", container, env=ENV)
    assert run.returncode == 0 and run.stderr == ""
    assert run.stdout.splitlines()[0] == "format  hdf5, 6 datasets"
    for text in ("/run/pressure: shape [7,6], dtype <i4, chunks [3,4], shuffle+deflate:6", "/texts", "cannot be loaded: "):
        assert text in run.stdout
    assert tegula("info", "--quiet", container, env=ENV).stdout == ""


@pytest.mark.parametrize("name", ["/run/pressure", "run/pressure"])
def test_info_of_one_dataset(container, name):
    entry, = report("info", container, "--dataset", name, env=ENV)["datasets"]
    assert KEYS <= set(entry) and entry["shape"] == [7, 6] and entry["chunks"] == [3, 4] and [codec.split(":")[0] for codec in entry["codecs"]] == ["shuffle", "deflate"]
    assert entry["bytes"] == data.nbytes


# ---- --chunks ----

def chunk_list(path, name):
    entry, = report("info", path, "--dataset", name, "--chunks", env=ENV)["datasets"]
    return entry, sorted(entry["chunk_list"], key=lambda piece: piece["box"])


def h5py_chunks(path, name):
    """The same, as h5py has it."""
    with h5py.File(path) as file:
        dataset, found = file[name], []
        dataset.id.chunk_iter(found.append)
        return sorted(({"box": [[at, min(at + length, end)] for at, length, end in zip(one.chunk_offset, dataset.chunks, dataset.shape)],
                        "offset": one.byte_offset, "length": one.size, "mask": one.filter_mask, "file": str(path)} for one in found),
                      key=lambda piece: piece["box"])


@pytest.mark.parametrize("libver", ["earliest", "v108", "latest"])
def test_chunks_are_those_of_h5py(tmp_path, libver):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        file.create_dataset("packed", data=numpy.arange(700, dtype="<i4").reshape(7, 10, 10), chunks=(3, 4, 10), compression="gzip", shuffle=True)
        growing = file.create_dataset("growing", (50, 40), "<f8", maxshape=(None, 40), chunks=(7, 9))
        growing[8:20, 10:30], growing[49, 39] = 1, 2
        tree = file.create_dataset("tree", (90, 90), "u1", maxshape=(None, None), chunks=(4, 4))
        tree[5, 5] = tree[89, 0] = tree[44:52, 13] = 1
        masked = file.create_dataset("masked", (8,), "<i4", chunks=(4,), compression="gzip", shuffle=True)
        masked[:] = 5
        masked.id.write_direct_chunk((4,), numpy.arange(4, dtype="<i4").tobytes(), 3)
        file.create_dataset("none", (8, 8), "<i4", chunks=(4, 4))
    for name, count in (("packed", 9), ("growing", 7), ("tree", 4), ("masked", 2), ("none", 0)):
        entry, found = chunk_list(path, name)
        assert found == h5py_chunks(path, name) and len(found) == count, name
        assert sum(piece["length"] for piece in found) == entry["stored_bytes"]
    assert [piece["mask"] for piece in chunk_list(path, "masked")[1]] == [0, 3]


def test_few_chunks_of_a_huge_array_are_listed_at_once(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        sparse = file.create_dataset("x", (2 ** 40, 2 ** 20), "u1", maxshape=(None, None), chunks=(8, 8))
        for row in (3, 2 ** 33, 2 ** 40 - 1):
            sparse[row, 2 ** 19 + row % 100] = 1
    found = chunk_list(path, "x")[1]
    assert len(found) == 3 and found == h5py_chunks(path, "x")


def test_chunks_without_chunks(tmp_path):
    values, path = numpy.arange(24, dtype="<u2").reshape(4, 6), tmp_path / "a.h5"
    with h5py.File(path, "w", userblock_size=1024) as file:
        file["dense"] = values
        file.create_dataset("gone", (3,), "<i4")
    h5.low_level(path, "compact", "<i4", (3,), h5.compact, numpy.arange(3))
    piece, = chunk_list(path, "dense")[1]
    assert piece == {"box": [[0, 4], [0, 6]], "offset": piece["offset"], "length": 48, "mask": 0, "file": str(path)}
    assert path.read_bytes()[piece["offset"]:][:48] == values.tobytes()
    assert chunk_list(path, "compact")[1] == [{"box": [[0, 3]], "offset": None, "length": None, "mask": 0, "file": None}]
    assert chunk_list(path, "gone")[1] == []
    for number in (0, 1):
        numpy.save(tmp_path / f"part_{number}.npy", values)
    entry, = report("info", tmp_path / "part_*.npy", "--chunks", env=ENV)["datasets"]
    assert [(piece["box"], piece["length"], piece["file"]) for piece in entry["chunk_list"]] == \
        [([[4 * number, 4 * number + 4], [0, 6]], 48, str(tmp_path / f"part_{number}.npy")) for number in (0, 1)]
    for piece in entry["chunk_list"]:
        with open(piece["file"], "rb") as file:
            assert file.read()[piece["offset"]:][:48] == values.tobytes()


def test_chunks_of_a_virtual_dataset(tmp_path):
    with h5py.File(tmp_path / "source.h5", "w") as file:
        file.create_dataset("x", data=numpy.arange(100, dtype="u1").reshape(10, 10), chunks=(4, 5))
    path = tmp_path / "v.h5"
    h5.virtual(path, "v", (6, 12), "u1", [(numpy.s_[:, 2:], "source.h5", "x", (10, 10), numpy.s_[3:9])])
    found = chunk_list(path, "v")[1]
    stored = {(piece["box"][0][0], piece["box"][1][0]): piece for piece in h5py_chunks(tmp_path / "source.h5", "x")}
    assert [piece["box"] for piece in found] == [[rows, columns] for rows in ([0, 1], [1, 5], [5, 6]) for columns in ([2, 7], [7, 12])]
    for piece in found:
        (row, _), (column, _) = piece["box"]
        source = stored[(row + 3) // 4 * 4, (column - 2) // 5 * 5]
        assert (piece["offset"], piece["length"]) == (source["offset"], source["length"]) and os.path.samefile(piece["file"], source["file"])


def test_chunks_for_people(container):
    run = tegula("info", container, "--dataset", "run/pressure", "--chunks", env=ENV)
    lines = [line for line in run.stdout.splitlines() if line.startswith("chunk ")]
    assert run.returncode == 0 and run.stderr == ""
    assert lines == ["chunk   [{}]: {} bytes at {} of \"{}\"".format(",".join(f"{lo}:{hi}" for lo, hi in piece["box"]), piece["length"],
                                                                   piece["offset"], container) for piece in h5py_chunks(container, "run/pressure")]
    assert tegula("info", container, "--dataset", "run/pressure", "--chunks", "--quiet", env=ENV).stdout == ""
    error = refused("info", container, "--chunks", status="invalid_argument", exit_status=2, env=ENV)
    assert "/run/pressure" in error["message"] + (error["hint"] or "")


@pytest.mark.parametrize("command", ["info", "load"])
def test_names_that_are_no_datasets(container, command):
    error = refused(command, container, "--dataset", "run/temprature", status="not_found", says=["run/temprature"], env=ENV)
    assert "/run/temperature" in error["message"] + (error["hint"] or "")
    error = refused(command, container, "--dataset", "run", status="invalid_argument", says=["group"], exit_status=2, env=ENV)
    assert "pressure" in error["message"] + (error["hint"] or "")
    refused(command, container, "--dataset", "texts", status="unsupported", says=["texts", "variable length"], env=ENV)
    refused(command, container, "--dataset", "odd", status="unsupported", says=["odd", "40000"], env=ENV)


def test_load_wants_a_name_where_there_are_several(container):
    error = refused("load", container, status="invalid_argument", exit_status=2, env=ENV)
    assert "/run/pressure" in error["message"] + (error["hint"] or "")


@pytest.mark.parametrize("name", ["run/temperature", "run/pressure", "alias", "loop/run/pressure"])
def test_load_by_name(container, name):
    answer = report("load", container, "--dataset", name, "--hash", "--tiles", "3", env=ENV)
    assert (answer["format"], answer["shape"], answer["dtype"], answer["hash"]) == ("hdf5", [7, 6], "<i4", content_hash(data))
    assert report("load", container, "--dataset", name, "--box", "2:5,1:", env=ENV)["bytes"] == 3 * 5 * 4


def test_batches_in_c_order_and_clipped(probe, container, tmp_path):
    for name in ("run/temperature", "run/pressure"):
        probe.call("open", path=str(container), dataset=name)
        probe.call("batches", chunk=[3, 4])
        boxes = probe.call("pieces", path=str(tmp_path / "pieces"))["boxes"]
        assert boxes == [[[i, min(i + 3, 7)], [j, min(j + 4, 6)]] for i in (0, 3, 6) for j in (0, 4)]
        want = b"".join(data[tuple(slice(lo, hi) for lo, hi in box)].astype("<i4").tobytes() for box in boxes)
        assert (tmp_path / "pieces").read_bytes() == want
    for chunk, says in (([3], ["1", "2"]), ([3, 4, 1], ["3", "2"]), ([3, 0], ["0"]), ([-1, 2], ["-1"])):
        error = probe.refused("batches", chunk=chunk)
        assert error["status"] == "invalid_argument" and all(text in error["message"] for text in says), error
