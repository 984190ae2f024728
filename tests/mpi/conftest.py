# MPIs as parameters: each test runs with every one that is here.
#
# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import launch


@pytest.fixture(params=launch.ONCE or [None], ids=str)
def mpi(request):
    """Every MPI, each with one of its interfaces."""
    if request.param is None:
        pytest.skip(launch.WHY)
    return request.param


@pytest.fixture(params=(launch.MPIS or [None])[:2], ids=str)
def some_mpi(request):
    """Two of them: what depends on us, not on the MPI."""
    if request.param is None:
        pytest.skip(launch.WHY)
    return request.param


@pytest.fixture
def quick_mpi():
    """One of them, whose launcher starts fast."""
    found = sorted(launch.ONCE, key=lambda mpi: "mpich" not in mpi.name)
    if not found:
        pytest.skip(launch.WHY)
    return found[0]
