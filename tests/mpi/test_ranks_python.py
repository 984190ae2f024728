# comm= of the Python package: communicators of mpi4py, split ones too.
# What is asserted is in on_ranks.py.
#
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import subprocess
import sys

import h5py
import numpy
import pytest

from launch import MPIS, Job, within
from reference_hash import content_hash

PACKAGE = pathlib.Path(
    os.environ.get(
        "TEGULA_PYTHON",
        pathlib.Path(os.environ.get("TEGULA_BIN", "build/bin/tegula")).resolve().parents[1]
        / "python",
    )
)
WHEELS = [mpi for mpi in MPIS if "wheel" in mpi.name and not mpi.name.endswith("-old")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("python")
    whole = numpy.random.default_rng(3).integers(0, 1000, (61, 10), dtype="i8")
    (folder / "shards").mkdir()
    for i, part in enumerate(numpy.split(whole, [5, 40])):
        numpy.save(folder / "shards" / f"s{i}.npy", part)
    numpy.save(folder / "whole.npy", whole)
    numpy.save(folder / "few.npy", whole[:2, :5])
    numpy.save(folder / "nothing.npy", whole[:0])
    numpy.save(folder / "scalar.npy", numpy.int16(7))
    return folder


def needs(mpi):
    if mpi is None:
        pytest.skip("no mpi4py: the wheels below TEGULA_MPI_FOLDER are not there")
    if not any((PACKAGE / "tegula").glob("_core*.so")):
        pytest.skip(f"the Python package was not built in {PACKAGE}")


@pytest.mark.parametrize("mpi", WHEELS or [None], ids=str)
@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_python_on_ranks(mpi, ranks, folder, tmp_path):
    needs(mpi)
    whole = numpy.load(folder / "whole.npy")
    job = Job(
        mpi,
        ranks,
        [
            mpi.python,
            pathlib.Path(__file__).with_name("on_ranks.py"),
            folder,
            tmp_path,
            content_hash(whole),
        ],
        env={"PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"},
    ).end()
    assert job.code == 0, job.err[-3000:]
    assert len(list(tmp_path.glob("*.txt"))) == ranks
    assert ranks == 1 or (numpy.load(tmp_path / "exit.npy") == whole[:2, :5]).all()


PIECES = """
import sys, tegula
from mpi4py import MPI
comm = MPI.COMM_WORLD
ds = tegula.open(sys.argv[1], "x", comm=comm)
walk, seen = ds.batches((60, 7)), []
try:
    for piece, offset in walk:
        seen.append(offset[0])
except tegula.CorruptError as error:
    assert seen == [0, 60] and error.rank == comm.size - 1, (seen, error)
    assert "(160, 0)" in str(error), error
assert next(walk, None) is None and len(seen) == 2
walk = ds.batches((60, 7))
next(walk)
try:
    tegula.open(sys.argv[1], "x", comm=comm) if comm.rank == 1 else next(walk)
except tegula.Error as error:
    said = "the ranks do not make the same call: rank 0 is in tegula_batches_next, rank 1 in"
    assert said in str(error), error
else:
    raise AssertionError("the ranks made different calls")
assert ds[:3].shape == (3, 7)
"""


@pytest.mark.parametrize("mpi", WHEELS or [None], ids=str)
def test_all_ranks_stop_at_the_same_piece(mpi, tmp_path):
    """The last rank's part of the third piece is damaged; then one rank leaves the walk."""
    needs(mpi)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        chunk = file.create_dataset(
            "x",
            data=numpy.random.default_rng(1).random((200, 7)),
            chunks=(20, 7),
            compression="gzip",
        ).id.get_chunk_info(8)
    with open(tmp_path / "x.h5", "r+b") as raw:
        raw.seek(chunk.byte_offset)
        raw.write(b"\xff" * 64)
    job = Job(
        mpi, 3, [mpi.python, "-c", PIECES, tmp_path / "x.h5"], env={"PYTHONPATH": str(PACKAGE)}
    ).end()
    assert job.code == 0, job.err[-3000:]


FUNNELED = """
import sys, mpi4py
mpi4py.rc.thread_level = "funneled"
from mpi4py import MPI
import tegula
a = tegula.load(sys.argv[1], comm=MPI.COMM_WORLD)
assert a.shape == (61, 10)
"""


@pytest.mark.parametrize("mpi", WHEELS or [None], ids=str)
def test_an_mpi_for_one_thread_is_called_from_it(mpi, folder, tmp_path):
    needs(mpi)
    job = Job(
        mpi, 2, [mpi.python, "-c", FUNNELED, folder / "whole.npy"], env={"PYTHONPATH": str(PACKAGE)}
    ).end()
    assert job.code == 0, job.err[-3000:]


STILL = """
import os, signal, sys
from mpi4py import MPI
import tegula
comm = MPI.COMM_WORLD
ds = tegula.open(sys.argv[1], comm=comm)
if comm.rank == 1:
    os.kill(os.getpid(), signal.SIGSTOP)
ds.load()
"""


@pytest.mark.parametrize("mpi", WHEELS or [None], ids=str)
def test_a_rank_that_stands_still_ends_the_job(mpi, folder):
    needs(mpi)
    within(1, lambda deadline: check_still(mpi, folder, deadline))


def check_still(mpi, folder, deadline):
    job = Job(
        mpi,
        3,
        [mpi.python, "-c", STILL, folder / "whole.npy"],
        env={"PYTHONPATH": str(PACKAGE), "TEGULA_TIMEOUT": str(deadline)},
    ).end()
    assert (
        job.code != 0
        and "tegula: rank 1 did not come to an agreement of 3 ranks within the deadline" in job.err
    )


LATE = """
import sys, time
from mpi4py import MPI
import tegula
if MPI.COMM_WORLD.rank == 1:
    time.sleep(60)
tegula.load(sys.argv[1], comm=MPI.COMM_WORLD)
"""


def test_a_rank_that_never_joins_ends_the_job(folder):
    mpi = (WHEELS or [None])[0]
    needs(mpi)
    job = Job(
        mpi,
        2,
        [mpi.python, "-c", LATE, folder / "whole.npy"],
        env={"PYTHONPATH": str(PACKAGE), "TEGULA_TIMEOUT": "0.5"},
    ).end(30)
    assert (
        job.code != 0
        and "tegula: not all ranks of the communicator came to join it within the deadline of 1 s"
        in job.err
    )


ALONE = """
import sys
from mpi4py import MPI
import tegula
comm = MPI.COMM_WORLD
tegula.save(tegula.load(sys.argv[1], comm=comm), sys.argv[2], block=False)
if comm.rank == 1:
    raise KeyError("of the program")
tegula.load(sys.argv[1], comm=comm)
"""


def test_a_rank_that_fails_by_itself_leaves_no_save_waiting(folder, tmp_path):
    """All end, each by its error, and what was being saved is saved at the end of all."""
    mpi = (WHEELS or [None])[0]
    needs(mpi)
    job = Job(
        mpi,
        3,
        [mpi.python, "-c", ALONE, folder / "whole.npy", tmp_path / "x.npy"],
        env={"PYTHONPATH": str(PACKAGE)},
    ).end(60)
    assert (
        job.code != 0
        and "of the program" in job.err
        and "the ranks do not make the same call: rank 0 is in" in job.err
    )
    assert (numpy.load(tmp_path / "x.npy") == numpy.load(folder / "whole.npy")).all()


def test_without_comm_mpi_is_not_touched(folder):
    needs(WHEELS)
    words = (
        "import sys, tegula; tegula.load(sys.argv[1]); assert 'libmpi' not in "
        "open('/proc/self/maps').read()"
    )
    run = subprocess.run(
        [sys.executable, "-c", words, folder / "whole.npy"],
        env=dict(os.environ, PYTHONPATH=str(PACKAGE)),
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
