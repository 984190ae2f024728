# Reading leaves no trace in the times of a file where the system leaves that to us, and costs
# nothing where it does not.
#
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import shutil
import subprocess

import numpy
import pytest

BIN = pathlib.Path(os.environ.get("TEGULA_BIN", "build/bin/tegula")).resolve()
# root, but bound to the rules of owners
WITHOUT = ["setpriv", "--inh-caps=-fowner", "--bounding-set=-fowner"]
OLD = 1_000_000_000 * 10**9


def make(folder, owner=None):
    for i in range(3):
        path = folder / f"s_{i}.npy"
        numpy.save(path, numpy.arange(1000) + i)
        # older than the change: relatime would write it down
        os.utime(path, ns=(OLD, path.stat().st_mtime_ns))
        if owner is not None:
            os.chown(path, owner, owner)


def load(folder, *before):
    result = subprocess.run(
        [*before, BIN, "load", folder, "--json", "--hash"],
        capture_output=True,
        timeout=60,
        check=True,
    )
    return json.loads(result.stdout)


@pytest.fixture
def folder(tmp_path):
    probe = tmp_path / "probe"
    probe.write_bytes(b"x")
    os.utime(probe, ns=(OLD, probe.stat().st_mtime_ns))
    probe.read_bytes()
    if probe.stat().st_atime_ns == OLD:
        pytest.skip("this file system does not write down when files are read")
    (tmp_path / "shards").mkdir()
    return tmp_path / "shards"


def test_own_files_keep_their_time_of_access(folder):
    make(folder)
    report = load(folder)
    assert report["opens"] == 3
    assert [path.stat().st_atime_ns for path in folder.iterdir()] == [OLD] * 3


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None,
    reason="needs root and setpriv to read files of others",
)
def test_files_of_others_are_read_and_cost_one_open_more_in_all(folder):
    make(folder, owner=65534)
    report = load(folder, *WITHOUT)
    assert report["opens"] == 4  # not 6: once refused, it is not tried again
    assert report["hash"] == load(folder)["hash"]
