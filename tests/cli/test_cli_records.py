# Records in HDF5 through the shell: what info shows, what is refused, and that they load.
#
# SPDX-License-Identifier: Apache-2.0
import json
import os

import numpy
import pytest

from reference_hash import content_hash

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes these files")

from command import refused, report, tegula  # noqa: E402

ENV = {
    key: value
    for key, value in os.environ.items()
    if key in ("TEGULA_HDF5_LIBRARY", "TEGULA_PLUGIN_PATH")
}
KIND = numpy.dtype([("id", "<i4"), ("pos", ">f4", (2,)), ("name", "S3")])
DESCR = "[('id', '<i4'), ('pos', '>f4', (2,)), ('name', '|S3')]"


@pytest.fixture
def path(tmp_path):
    data = numpy.zeros(20, KIND)
    data["id"] = numpy.arange(20)
    data["name"] = b"abc"
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("records", data=data, chunks=(7,), compression="gzip")
        file.create_dataset("texts", (3,), [("n", "<i2"), ("t", h5py.string_dtype())])
    return tmp_path / "a.h5"


def test_info_shows_the_fields(path):
    listed = {one["name"]: one for one in report("info", path, env=ENV)["datasets"]}
    assert listed["/records"]["descr"] == DESCR and listed["/records"]["dtype"] == "|V15"
    assert listed["/texts"]["dtype"] is None and '"t" (strings' in listed["/texts"]["refused"]
    assert listed["/texts"]["descr"] == "[('n', '<i2'), ('t', '|O16')]"
    (one,) = report("info", path, "--dataset", "/records", env=ENV)["datasets"]
    assert one["descr"] == DESCR
    assert "descr   " + DESCR in tegula("info", path, env=ENV).stdout


def test_they_load_through_a_manifest_too(path, tmp_path):
    with h5py.File(path) as file:
        want = content_hash(file["records"][()].view("V15"))
    assert report("load", path, "--dataset", "/records", "--hash", env=ENV)["hash"] == want
    report("info", path, "--dataset", "/records", "--manifest", tmp_path / "m.json", env=ENV)
    assert json.loads((tmp_path / "m.json").read_text())["descr"] == DESCR
    assert report("load", tmp_path / "m.json", "--hash", env=ENV)["hash"] == want


def test_what_cannot_be_loaded_has_a_hint(path):
    error = refused("load", path, "--dataset", "/texts", status="unsupported", env=ENV)
    assert "a member of its records cannot be loaded" in error["message"]
    assert "fields that can be loaded: n (option --field NAME" in error["hint"]


def test_copies_between_npy_and_hdf5_keep_the_fields(tmp_path):
    inner = numpy.dtype([("ok", "?"), ("n", "<i2")])
    kind = numpy.dtype(
        {
            "names": ["id", "w", "in"],
            "formats": ["<i4", (">f8", (3,)), (inner, (2,))],
            "offsets": [0, 8, 32],
            "itemsize": 48,
        }
    )
    data = numpy.zeros(1000, kind)
    data["id"], data["w"] = numpy.arange(1000), numpy.arange(3000).reshape(1000, 3)
    data["in"]["ok"][::3] = True
    numpy.save(tmp_path / "a.npy", data)
    made = report("copy", tmp_path / "a.npy", tmp_path / "a.h5", "--codec", "deflate:1", env=ENV)
    assert made["dropped"] == []
    report("copy", tmp_path / "a.h5", tmp_path / "b.npy", env=ENV)
    report("copy", tmp_path / "a.h5", tmp_path / "b.h5", "--layout", "contiguous", env=ENV)
    assert numpy.array_equal(numpy.load(tmp_path / "b.npy"), data)
    for name in ("a.h5", "b.h5"):
        with h5py.File(tmp_path / name) as file:
            assert file["data"].dtype == kind and numpy.array_equal(file["data"][()], data)
    assert report("compare", tmp_path / "a.npy", tmp_path / "b.h5", env=ENV)["equal"]
