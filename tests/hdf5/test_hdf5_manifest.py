# HDF5 datasets through a manifest as JSON: what is written can be read back, anything else is refused when it is written.
#
# SPDX-License-Identifier: Apache-2.0
import json
import os
import subprocess

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes these files")

from reference_hash import content_hash  # noqa: E402


def tegula(*arguments):
    return subprocess.run([os.environ["TEGULA_BIN"], *map(str, arguments)], capture_output=True, text=True, timeout=60)


def halves(along):
    """A virtual dataset whose parts follow each other along that axis."""
    layout = h5py.VirtualLayout((8, 8), "<i4")
    for k in range(2):
        to = (slice(4 * k, 4 * k + 4), slice(None)) if along == 0 else (slice(None), slice(4 * k, 4 * k + 4))
        source = h5py.VirtualSource(".", "group/square", shape=(8, 8), dtype="<i4")
        layout[to] = source[to]
    return layout


def write(path):
    with h5py.File(path, "w", userblock_size=512) as file:
        file["group/square"] = numpy.arange(64, dtype="<i4").reshape(8, 8)
        file["big"] = numpy.arange(20, dtype=">f8").reshape(4, 5)
        file["scalar"] = 2.5
        file["bool"] = numpy.array([True, False, True])
        file.create_dataset("zeros", (0, 3), "<f4")
        file.create_virtual_dataset("rows", halves(0))
        file.create_virtual_dataset("columns", halves(1))
        file.create_dataset("chunked", data=numpy.arange(6), chunks=(2,))


@pytest.mark.parametrize("name", ["group/square", "big", "scalar", "bool", "zeros", "rows"])
def test_what_is_written_is_read_back(tmp_path, name):
    write(tmp_path / "a.h5")
    made = tegula("info", tmp_path / "a.h5", "--dataset", name, "--manifest", tmp_path / "a.json")
    assert made.returncode == 0, made.stderr
    assert json.loads((tmp_path / "a.json").read_text())["name"] == "/" + name
    with h5py.File(tmp_path / "a.h5") as file:
        data = file[name][()]
    want = content_hash(numpy.asarray(data).astype(data.dtype.newbyteorder("=")))
    for options in ([], ["--dataset", name], ["--dataset", "/" + name]):
        loaded = tegula("load", tmp_path / "a.json", "--hash", "--json", *options)
        assert loaded.returncode == 0, loaded.stderr
        assert json.loads(loaded.stdout)["hash"] == want
    other = tegula("load", tmp_path / "a.json", "--dataset", "other")
    assert other.returncode == 1 and "say \"/%s\"" % name in other.stderr


@pytest.mark.parametrize("name, says", [("columns", "rows after rows"), ("chunked", "chunks")])
def test_what_the_text_cannot_hold_is_refused(tmp_path, name, says):
    write(tmp_path / "a.h5")
    made = tegula("info", tmp_path / "a.h5", "--dataset", name, "--manifest", tmp_path / "a.json")
    assert made.returncode == 1 and says in made.stderr and not (tmp_path / "a.json").exists()
