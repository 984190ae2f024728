# A file that changes between open and load is an error,
# also where libhdf5 reads it and remembers what it read.
#
# SPDX-License-Identifier: Apache-2.0
import os

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes these files")

import hdf5_files as h5  # noqa: E402
from probe import check_error  # noqa: E402
from reference_hash import content_hash  # noqa: E402

DATA = numpy.arange(6, dtype="<i4")
STORAGE = {
    "contiguous": {},
    "chunks": {"chunks": (2,)},
    "scaleoffset": {"chunks": (2,), "scaleoffset": 0},  # through libhdf5, as compact data
}


def write(path, storage, data):
    if storage == "compact":
        return h5.low_level(path, "x", "<i4", (6,), h5.compact, data)
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=data, **STORAGE[storage])


def rewrite(path, storage):
    with h5py.File(path, "r+") as file:
        file["x"][...] = DATA * 2


def replace(path, storage):
    write(path.with_suffix(".new"), storage, DATA * 2)
    os.rename(path.with_suffix(".new"), path)


def cut(path, storage):
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize("change", [rewrite, replace, cut])
@pytest.mark.parametrize("storage", [*STORAGE, "compact"])
def test_a_file_that_changed_after_open(probe, tmp_path, storage, change):
    path = tmp_path / "a.h5"
    write(path, storage, DATA)
    probe.call("open", path=str(path), dataset="x")
    assert probe.call("hash", of="dataset")["hash"] == content_hash(DATA)
    change(path, storage)
    assert probe.refused("hash", of="dataset")["status"] in ("changed", "short_file")
    if change is not cut:
        probe.call("open", path=str(path), dataset="x")
        assert probe.call("hash", of="dataset")["hash"] == content_hash(DATA * 2)


@pytest.mark.parametrize("width", [4, 40000])
def test_of_several_that_changed_the_first_file_is_named(probe, tmp_path, width):
    """The one of the first rows; few bytes, which need no plan, give the same error."""
    for name in "ab":
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["d"] = numpy.ones((2, width), "<i4")
    h5.virtual(
        tmp_path / "v.h5",
        "x",
        (4, width),
        "<i4",
        [
            (numpy.s_[:2], "b.h5", "d", (2, width), None),
            (numpy.s_[2:], "a.h5", "d", (2, width), None),
        ],
    )
    probe.call("open", path=str(tmp_path / "v.h5"), dataset="x")
    for name in "ab":
        with open(tmp_path / f"{name}.h5", "ab") as file:
            file.write(b"more")
    error = probe.refused("read", dtype="<i4", box=[[0, 4], [0, width]], path=str(tmp_path / "box"))
    assert check_error(error, "changed")["path"] == str(tmp_path / "b.h5")
