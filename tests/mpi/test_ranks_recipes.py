# Recipes for several ranks, where Heat and torch are installed (scripts/test --long has them). What
# is asserted is in on_ranks_torch.py.
#
# SPDX-License-Identifier: Apache-2.0
import importlib.util
import os
import pathlib
import sys

import numpy
import pytest

from launch import BIN, Job, Mpi

HERE, PREFIX = pathlib.Path(__file__), pathlib.Path(sys.prefix)
PACKAGE = pathlib.Path(os.environ.get("TEGULA_PYTHON", BIN.parents[1] / "python"))


@pytest.mark.parametrize("ranks", [2, 3])
def test_heat_and_dtensor(ranks, tmp_path):
    if (
        not all(importlib.util.find_spec(name) for name in ("heat", "torch", "mpi4py"))
        or not (PREFIX / "bin/mpiexec").exists()
    ):
        pytest.skip(
            "Heat, torch, mpi4py and mpich are not in this environment: they are large (5 GB), so "
            "only --long gets them"
        )
    if not any((PACKAGE / "tegula").glob("_core*.so")):
        pytest.skip(f"the Python package was not built in {PACKAGE}")
    mpi = Mpi("mpich", str(PREFIX / "bin/mpiexec"), PREFIX / "lib/libmpi_abi.so.1")
    whole = numpy.random.default_rng(3).integers(0, 1000, (61, 10), dtype="i8")
    (tmp_path / "shards").mkdir()
    for i, part in enumerate(numpy.split(whole, [5, 40])):
        numpy.save(tmp_path / "shards" / f"s{i}.npy", part)
    numpy.save(tmp_path / "whole.npy", whole)
    numpy.save(tmp_path / "few.npy", whole[:1])
    job = Job(
        mpi,
        ranks,
        [sys.executable, HERE.with_name("on_ranks_torch.py"), tmp_path, tmp_path],
        env={"PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"},
    ).end(limit=300)
    assert job.code == 0, job.err[-3000:]
    assert len(list(tmp_path.glob("*.txt"))) == ranks
