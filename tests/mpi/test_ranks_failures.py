# One rank fails, is gone, stands still, or is called with something else: the same error
# everywhere, and never a hang.
#
# SPDX-License-Identifier: Apache-2.0
import numpy
import pytest

from launch import Ranks, felt, injected, some_at_once, within

h5py = pytest.importorskip("h5py")


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    for i in range(6):
        numpy.save(folder / f"s{i}.npy", numpy.full((400, 300), i, "f8"))
    return folder


@pytest.fixture(scope="module")
def chunks(tmp_path_factory):
    path = tmp_path_factory.mktemp("chunks") / "c.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset(
            "x",
            data=numpy.arange(120000, dtype="f4").reshape(300, 400),
            chunks=(20, 50),
            compression="gzip",
        )
    return path


def same_failure(job, **expected):
    """Every rank wrote down the same failure, and the job ended badly."""
    answers = job.answers()
    assert job.code != 0
    assert None not in answers, job.err
    for key, value in expected.items():
        assert answers.one(key) == value
    assert answers.one("status") != "ok"
    assert answers.one("message") and answers.one("failed") >= 0
    return answers


FAULTS = [
    # listing; where the folder cannot be held (open:1) it is listed by its path
    (0, "open:2:EIO", "open", "io"),
    (0, "read:1:EIO", "open", "io"),
    (0, "open:4:EACCES", "open", "permission"),
    (2, "open:1+:EACCES", "load", "permission"),
    (1, "read:2:EIO", "load", "io"),
    (2, "read:1+:ESTALE", "load", "changed"),
    (1, "stat:1:EIO", "load", "io"),
    (0, "map:1:ENOMEM", "array", "out_of_memory"),
    (2, "map:1:ENOMEM", "array", "out_of_memory"),
]


def test_a_rank_that_fails_tells_all(some_mpi, shards, tmp_path):
    """Without map where UCX takes mmap over, as in Debian's MPICH:
    no fault can be put in front of it."""
    cases = [case for case in FAULTS if case[1][:3] != "map" or "mpich" not in some_mpi.name]
    outcomes = injected(
        some_mpi, 3, tmp_path, shards, [f"{rank} {plan}" for rank, plan, *_ in cases], "threads=1"
    )
    for (rank, plan, step, status), answers in zip(cases, outcomes):
        assert (answers.one("failed"), answers.one("step"), answers.one("status")) == (
            rank,
            step,
            status,
        ), (plan, answers)
        assert answers.one("message")


@pytest.mark.skipif(not felt("memory"), reason="the sanitizer's allocator is not made to fail")
def test_a_rank_without_memory_tells_all(some_mpi, chunks, tmp_path):
    """An allocation of rank 1 fails, and all later ones, at places all over the call."""
    lines = [f"1 memory:{n}+:ENOMEM" for n in range(1, 62, 3)]
    steps = set()
    for answers in injected(
        some_mpi, 3, tmp_path, chunks, lines, "threads=1", "hash=1", "dataset=x"
    ):
        steps.add(answers.one("step") + " " + answers.one("status"))
        assert answers.one("status") == "ok" or (
            answers.one("failed") == 1 and answers.one("message")
        )
    assert {"open out_of_memory", "load out_of_memory"} <= steps, steps


def test_a_step_of_the_program_that_fails_tells_all(some_mpi, shards, tmp_path):
    """The others are in a call of the library by then, each time in another one."""
    jobs = [
        Ranks(some_mpi, 3, tmp_path / step, shards, "hash=1", f"@1:fail={step}")
        for step in ("open", "array", "load", "hash")
    ]
    for job in jobs:
        answers = same_failure(job, status="io", message="the program itself failed", failed=1)
        assert answers[1]["step"] == answers[0]["step"]


OTHERS = [
    (
        ["@2:path=/tmp"],
        "the ranks were not called alike: the paths of rank 0: {path}, of rank 2: /tmp",
    ),
    (["@1:dataset=y"], "the ranks were not called alike: the dataset of rank 0: x, of rank 1: y"),
    (
        ["@1:field=a"],
        "the ranks were not called alike: the dataset of rank 0: x, of rank 1: x, field a",
    ),
    (
        ["@2:tiles=7"],
        "the ranks were not called alike: the tiling of rank 0: 3 tiles of shape (100, 400), of "
        "rank 2: 7 tiles of shape (43, 400)",
    ),
    (["@1:missing=1"], "the ranks were not called alike: missing of rank 0: 0, of rank 1: 1"),
    (
        ["@2:dataset_hash=0", "@2:hash=1"],
        "the ranks do not make the same call: rank 0 is in tegula_dataset_hash, rank 2 in "
        "tegula_array_hash",
    ),
    (
        ["@1:dataset_hash=0"],
        "the ranks do not make the same call: rank 0 is in tegula_dataset_hash, rank 1 in "
        "tegula_comm_end",
    ),
]


def test_ranks_that_are_called_differently(some_mpi, chunks, tmp_path):
    start = [
        lambda i=i, words=words: Ranks(
            some_mpi, 3, tmp_path / str(i), chunks, "dataset=x", "dataset_hash=1", *words
        )
        for i, (words, _) in enumerate(OTHERS)
    ]
    for (_, message), job in zip(OTHERS, some_at_once(start)):
        same_failure(job, status="mismatch", message=message.format(path=chunks))


def stopped(mpi, shards, folder, rank, step, deadline):
    return Ranks(
        mpi, 3, folder, shards, "hash=1", f"deadline={deadline}", f"@{rank}:stop={step}"
    ), rank


def check_stopped(mpi, shards, folder, deadline):
    jobs = [
        stopped(mpi, shards, folder / f"{deadline}-{rank}{step}", rank, step, deadline)
        for rank, step in ((0, "load"), (1, "open"), (2, "hash"))
    ]
    for job, rank in jobs:
        answers = job.answers()
        late = answers.pop(rank)  # Open MPI lets it go on for a moment before it ends it
        assert late is None or late["status"] == "timeout"
        assert (
            None not in answers
            and answers.one("status") == "timeout"
            and answers.one("failed") == rank
        ), job.err
        assert (
            answers.one("message")
            == f"rank {rank} did not come to an agreement of 3 ranks within the deadline"
        )


def test_a_rank_that_stands_still_is_named(mpi, shards, tmp_path):
    """SIGSTOP, in several phases: all others end with its number within the deadline,
    and the job with them."""
    within(1, lambda deadline: check_stopped(mpi, shards, tmp_path, deadline))


def test_several_ranks_that_stand_still_are_named(some_mpi, shards, tmp_path):
    """Also one that has waited long before, and said so then."""
    within(1, lambda deadline: check_several(some_mpi, shards, tmp_path / str(deadline), deadline))


def check_several(some_mpi, shards, folder, deadline):
    early = Ranks(
        some_mpi,
        3,
        folder / "early",
        shards,
        f"deadline={deadline + 1}",
        "@1:pause=array",
        "@2:stop=load",
    )
    job = Ranks(
        some_mpi,
        4,
        folder / "late",
        shards,
        f"deadline={deadline}",
        "@2:stop=load",
        "@3:sleep=load",
    )
    assert (
        early.answers().one("message")
        == "rank 2 did not come to an agreement of 3 ranks within the deadline"
    )
    answers = job.answers()
    assert (
        answers[0]["message"]
        == answers[1]["message"]
        == "ranks 2 and 3 did not come to an agreement of 4 ranks within the deadline"
    )


def test_a_rank_that_is_killed_ends_the_job(mpi, shards, tmp_path):
    jobs = [
        Ranks(mpi, 3, tmp_path / f"{rank}{step}", shards, "hash=1", f"@{rank}:kill={step}")
        for rank, step in ((0, "array"), (2, "load"))
    ]
    for job in jobs:
        job.end()
        assert job.code != 0
