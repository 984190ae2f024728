# Ranks on storage that is slow, gives short answers, fails, or does not answer: the same array, or
# the same error, within the deadline.
#
# SPDX-License-Identifier: Apache-2.0
import numpy
import pytest

from launch import BIN, ONCE, WHY, Job, Ranks, within
from reference_hash import content_hash
from slowfs import SlowFolder, Unavailable

ARRAY = numpy.arange(6 * 1000 * 50, dtype="f4").reshape(-1, 50)
MS = 1000  # microseconds


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    for i, part in enumerate(numpy.split(ARRAY, 6)):
        numpy.save(folder / f"s{i}.npy", part)
    return folder


class Mounts(list):
    def add(self, folder, **settings):
        try:
            self.append(SlowFolder(folder, direct_io=1, **settings))
        except Unavailable as why:
            pytest.skip(str(why))
        return self[-1]


@pytest.fixture
def mounts():
    mounts = Mounts()
    yield mounts
    for mount in mounts:
        mount.close()


def test_slow_storage_with_short_answers(some_mpi, mounts, shards, tmp_path):
    slow = mounts.add(shards, delay=2 * MS, short_read=1000 * 13)
    job = Ranks(some_mpi, 3, tmp_path, slow.path, "hash=1", "axis=1", "deadline=60")
    answers = job.answers()
    assert job.code == 0 and answers.one("hash") == content_hash(ARRAY), job.err
    assert (job.array(ARRAY.shape, answers) == ARRAY).all()
    assert slow.counts()["read"] > ARRAY.nbytes / 13000


def test_a_request_that_fails_is_the_same_error_everywhere(some_mpi, mounts, shards, tmp_path):
    """Of a file that rank 0 opens, of the header that it reads, of data that one of the ranks
    reads, and of a file that is opened for that."""
    cases = [
        ({"fail_open": 2}, "open"),
        ({"fail_read": 3}, "open"),
        ({"fail_read": 9}, "load"),
        ({"fail_open": 8}, "load"),
    ]
    jobs = [
        Ranks(
            some_mpi,
            3,
            tmp_path / str(i),
            mounts.add(shards, **case).path,
            "threads=1",
            "deadline=60",
        )
        for i, (case, _) in enumerate(cases)
    ]
    for (case, step), job in zip(cases, jobs):
        answers = job.answers()
        assert job.code != 0 and (answers.one("status"), answers.one("step")) == ("io", step), (
            case,
            answers,
            job.err,
        )
        assert (
            answers.one("message")
            and answers.one("failed") in range(3)
            and answers.one("path").endswith(".npy")
        )


def test_reads_that_do_not_end(mounts, shards):
    """Those of one rank: the others say so and end the job, whatever that rank waits for. Those of
    all ranks, which take twice as long: nobody waits for the others then, and a thread of each rank
    says it."""
    if not ONCE:
        pytest.skip(WHY)
    slow = mounts.add(shards, delay_read=400 * MS, max_read=4096)
    last = [*[shards / f"s{i}.npy" for i in range(5)], slow.path / "s5.npy"]
    within(4, lambda deadline: check_reads_that_do_not_end(slow, last, deadline))


def check_reads_that_do_not_end(slow, last, deadline):
    cases = [
        (
            [slow.path],
            f"load did not end within its deadline of {deadline} s: all ranks wait for storage",
        ),
        (last, "rank 2 did not come to an agreement of 3 ranks within the deadline"),
    ]
    jobs = [
        (Job(mpi, 3, [BIN, "load", *files, "--timeout", deadline, "--threads", "1"]), message)
        for mpi in ONCE[:2]
        for files, message in cases
    ]
    for job, message in jobs:
        job.end()
        assert job.code != 0 and f"tegula: {message}" in job.err, job.err
