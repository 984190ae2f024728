# Tests of the Python package. They import it from build/python or where it is
# installed; numpy and h5py judge.
#
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import signal
import subprocess
import sys

import numpy
import pytest

from tested import PACKAGE

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
if str(PACKAGE) not in sys.path:
    sys.path.insert(0, str(PACKAGE))


@pytest.fixture(autouse=True)
def interruptible():
    """A shell starts what runs in the background with SIGINT ignored,
    and Python then leaves it so."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def shards(tmp_path):
    """A folder of uneven npy shards and the array that they hold."""
    array = numpy.arange(1000 * 7, dtype="<f4").reshape(1000, 7)
    folder = tmp_path / "shards"
    folder.mkdir()
    for i, part in enumerate(numpy.split(array, [1, 300, 333, 900])):
        numpy.save(folder / f"part_{i}.npy", part)
    return folder, array


@pytest.fixture
def run_python():
    """Runs a program in a Python of its own, with all warnings on; returns its output."""

    def run(program, *arguments, **environment):
        done = subprocess.run(
            [sys.executable, "-X", "dev", "-W", "error", "-c", program, *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(PACKAGE), **environment},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    return run
