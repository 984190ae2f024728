# What all Python tests share: the probe, and where the modules of support/ are found.
#
# SPDX-License-Identifier: Apache-2.0
#
# One probe serves the whole run; when it is closed at the end, a leak or a bad exit fails the run
# as an error of the last test.
import importlib.util
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "support"))

from probe import Probe


def h5py_library():
    """The libhdf5 of the h5py that judges, so that both know the same files.
    Nothing is imported for it."""
    found = importlib.util.find_spec("h5py")
    folder = (
        pathlib.Path(found.origin).parent.parent / "h5py.libs" if found else pathlib.Path("nowhere")
    )
    return next((str(path) for path in folder.glob("libhdf5-*.so*")), None)


if h5py_library():
    os.environ.setdefault("TEGULA_HDF5_LIBRARY", h5py_library())


@pytest.fixture(scope="session")
def shared_probe():
    probe = Probe()
    yield probe
    probe.close()


@pytest.fixture
def probe(shared_probe):
    """The shared probe with a fresh context of two threads."""
    shared_probe.batch([{"do": "close"}, {"do": "context", "threads": 2}])
    yield shared_probe
    if shared_probe.process is not None:
        shared_probe.call("close")


@pytest.fixture(scope="session")
def sanitizer(shared_probe):
    """ "address", "thread" or None."""
    return shared_probe.call("build")["sanitizer"]


@pytest.fixture
def new_probe():
    """Makes probes of a test's own, under a limit or another user; they are closed, and so
    checked, at the end of the test."""
    made = []

    def make(**arguments):
        made.append(Probe(**arguments))
        return made[-1]

    yield make
    for own in made:
        own.close()
