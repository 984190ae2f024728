# Batches and loads in the background on ranks: each reads its part ahead, and they agree where the program waits.
#
# SPDX-License-Identifier: Apache-2.0
import numpy
import pytest

from launch import Ranks

NUMBERS = numpy.arange(103 * 40, dtype="<i4").reshape(103, 40)


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("background") / "shards"
    folder.mkdir()
    for i, part in enumerate(numpy.split(NUMBERS, [20, 60])):
        numpy.save(folder / f"part_{i}.npy", part)
    return folder


@pytest.mark.parametrize("ranks", [2, 7])
def test_batches_give_every_rank_its_part(some_mpi, shards, tmp_path, ranks):
    """Pieces of more rows than ranks, of fewer, and of some columns."""
    jobs = [Ranks(some_mpi, ranks, tmp_path / chunk, shards, "load=0", f"batches={chunk}") for chunk in ("30,40", "3,40", "64,17")]
    for job in jobs:
        answers = job.answers()
        assert None not in answers and answers.one("status") == "ok", job.err
        assert (job.array(NUMBERS.shape, answers) == NUMBERS).all()


def test_loads_in_the_background(some_mpi, shards, tmp_path):
    """Waited for one by one, and by a fence."""
    for job in [Ranks(some_mpi, 3, tmp_path / str(way), shards, f"async={way}", "hash=1") for way in (1, 2)]:
        answers = job.answers()
        assert None not in answers and answers.one("status") == "ok", job.err
        assert (job.array(NUMBERS.shape, answers) == NUMBERS).all() and answers.one("hash").startswith("tegula1:")


def test_progress_is_that_of_all_ranks(some_mpi, tmp_path):
    """Rank 0 is told sums, also while it waits for a slower one; the others what they have done themselves."""
    array = numpy.arange(8 << 20, dtype="<f4").reshape(-1, 1024)  # 32 MB
    numpy.save(tmp_path / "x.npy", array)
    answers = Ranks(some_mpi, 2, tmp_path / "out", tmp_path / "x.npy", "progress=1", "threads=1").answers()
    assert answers.one("status") == "ok"
    told, own = answers[0]["told"], array.nbytes // 2
    assert told == sorted(told) and told[-1] == answers[0]["told_total"] == array.nbytes
    assert any(own < done < array.nbytes for done in told), told
    assert answers[1]["told"][-1] == answers[1]["told_total"] == own


def test_a_failure_of_one_rank_is_that_of_all(some_mpi, shards, tmp_path):
    """Rank 1's reads fail, in a piece and in a load; ranks that wait for different things are told so."""
    jobs = [Ranks(some_mpi, 3, tmp_path / str(i), shards, *words, faults=(1, "read:1:EIO"))
            for i, words in enumerate((["load=0", "batches=30,40"], ["async=1"], ["async=2"]))]
    for job in jobs:
        answers = job.answers()
        assert None not in answers and answers.one("status") == "io" and answers.one("failed") == 1, (job.err, answers)
    other = Ranks(some_mpi, 3, tmp_path / "other", shards, "async=1", "@1:async=2", "missing=0").answers()
    assert other.one("message") == "the ranks do not make the same call: rank 0 is in tegula_op_wait, rank 1 in tegula_fence"
    other = Ranks(some_mpi, 3, tmp_path / "chunk", shards, "load=0", "batches=30,40", "@2:batches=31,40").answers()
    assert other.one("message") == "the ranks were not called alike: the chunk of rank 0: (30, 40), of rank 2: (31, 40)"
