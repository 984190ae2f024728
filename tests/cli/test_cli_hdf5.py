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
