"""Attributes of any object of an HDF5 file, judged by h5py: in Python and in the shell.

SPDX-License-Identifier: Apache-2.0
"""

import json
import os
import subprocess

import numpy
import pytest
import tegula

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes and judges these files")

BIN = os.environ.get("TEGULA_BIN", "build/bin/tegula")


@pytest.fixture
def path(tmp_path):
    """openPMD's constant components, NeXus's classes, GADGET's header, links to groups."""
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.attrs["meshesPath"] = "meshes/"
        component = file.create_group("data/0/particles/e/charge")
        component.attrs["value"], component.attrs["shape"] = -1.6e-19, numpy.array([1000], "u8")
        entry = file.create_group("entry")
        entry.attrs["NX_class"] = "NXentry"
        entry["data"] = numpy.arange(6)
        entry["data"].attrs["units"] = numpy.bytes_(b"counts")
        header = file.create_group("Header")
        header.attrs["NumPart_Total"] = numpy.arange(6, dtype="u4")
        header.attrs["Time"] = 0.25
        file["soft"] = h5py.SoftLink("/entry")
    with h5py.File(tmp_path / "outer.h5", "w") as file:
        file["link"] = h5py.ExternalLink("x.h5", "/Header")
    return tmp_path / "x.h5"


OBJECTS = ["/", "/data/0", "/data/0/particles/e/charge", "entry", "/entry/data", "/Header", "/soft"]


@pytest.mark.parametrize("name", OBJECTS)
def test_of_a_group_or_dataset(path, name):
    found = tegula.attributes(path, name)
    with h5py.File(path) as file:
        attrs = dict(file[name].attrs)
    assert list(found) == sorted(attrs)
    assert all(numpy.array_equal(found[key], value) for key, value in attrs.items())


def test_behind_an_external_link(path):
    assert tegula.attributes(path.with_name("outer.h5"), "/link")["Time"] == 0.25


def test_what_is_not_there(path):
    with pytest.raises(tegula.NotFoundError, match="/entry/dat"):
        tegula.attributes(path, "/entry/dat")
    with pytest.raises(TypeError):
        tegula.attributes(path, 5)
    numpy.save(path.with_name("x.npy"), numpy.zeros(3))
    with pytest.raises(tegula.UnsupportedError):
        tegula.attributes(path.with_name("x.npy"))


def info(*words):
    run = subprocess.run([BIN, "info", "--json", *words], capture_output=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_the_shell_shows_those_of_all_groups(path):
    report = info(path, "--attributes")
    groups = {group["name"]: group["attributes"] for group in report["groups"]}
    assert set(groups) == {"/data/0/particles/e/charge", "/entry", "/Header"}
    assert groups["/entry"] == [
        {"name": "NX_class", "dtype": "str", "shape": [], "value": "NXentry"}
    ]
    assert [one["value"] for one in groups["/Header"]] == [[0, 1, 2, 3, 4, 5], 0.25]
    assert report["attributes"][0]["value"] == "meshes/"
    assert report["datasets"][0]["attributes"][0]["value"] == "counts"
    assert "groups" not in info(path)


def test_the_shell_shows_those_of_one_group(path):
    report = info(path, "--attributes", "--dataset", "/Header")
    assert report["datasets"] == [] and report["groups"][0]["name"] == "/Header"
    run = subprocess.run(
        [BIN, "info", path, "--attributes", "--dataset", "/entry"], capture_output=True, check=True
    )
    assert run.stdout.decode().splitlines() == [
        "group   /entry",
        'attr    "NX_class": str = "NXentry"',
    ]
    run = subprocess.run(
        [BIN, "info", path, "--dataset", "/entry"], capture_output=True, check=False
    )
    assert run.returncode != 0 and b"group" in run.stderr
