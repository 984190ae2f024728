# One rank meets a fault, at calls all over opening, array, load, hash and save: the same outcome on
# all ranks, never a hang, nothing left behind.
#
# SPDX-License-Identifier: Apache-2.0
#
# One job makes them all, one after the other, so that what a failure leaves in the communicator
# would be seen, too. A run without a fault counts the calls of each step first. TEGULA_MPI_ALL=1:
# many more of them, and with all MPIs.
import os

import numpy
import pytest

from launch import ONCE, WHY, injected
from reference_hash import content_hash

h5py = pytest.importorskip("h5py")

EVERY = os.environ.get("TEGULA_MPI_ALL") == "1"
RANKS = 3
STEPS = ["open", "array", "load", "hash", "save"]
KINDS = {
    "open": ["EACCES", "EIO", "EMFILE", "ESTALE"],
    "read": ["EIO", "short+", "ESTALE", "EINTR", "short"],
    "write": ["ENOSPC", "EIO+", "EDQUOT", "short"],
    "stat": ["EIO", "ENOMEM"],
    "size": ["ENOSPC", "EIO"],
    "sync": ["EIO", "ENOSPC"],
    "rename": ["EIO", "ENOSPC"],
    "mkdir": ["EACCES", "ENOSPC"],
    "list": ["EIO"],
    "map": ["ENOMEM"],
    "thread": ["EAGAIN", "EAGAIN+"],
    "memory": ["ENOMEM", "ENOMEM+"],
    "lock": ["ENOLCK"],
    "rights": ["EPERM"],
}
HARMLESS = {
    ("read", "short"),
    ("read", "short+"),
    ("read", "EINTR"),
    ("write", "short"),
    ("thread", "EAGAIN"),
    ("thread", "EAGAIN+"),
    ("lock", "ENOLCK"),
}
ARRAY = numpy.random.default_rng(13).standard_normal((90, 7))


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    (folder / "shards").mkdir()
    for i, part in enumerate(numpy.split(ARRAY, [7, 40, 41, 80])):
        numpy.save(folder / "shards" / f"s{i}.npy", part)
    with h5py.File(folder / "c.h5", "w") as file:
        file.create_dataset("x", data=ARRAY, chunks=(8, 4), compression="gzip", shuffle=True)
    return {
        "shards": (folder / "shards", ["axis=1"], "x.npy"),
        "chunks": (folder / "c.h5", ["durable=1", "chunk=9,5", "codec=shuffle,deflate:4"], "x.h5"),
    }


def run(mpi, source, folder, injections):
    """[(rank, plan)] -> for each of them the answers of all ranks and what is there afterwards."""
    path, words, name = source
    folder.mkdir()
    lines = []
    for i, (rank, plan) in enumerate(injections):
        (folder / str(i)).mkdir()
        # every other save in the background, which needs a thread
        later = " later=fence" if i % 2 and not plan.startswith("thread") else ""
        lines.append(f"{rank} {plan} save={folder / str(i) / name}{later}")
    answers = injected(
        mpi, RANKS, folder, path, lines, "hash=1", "threads=2", "deadline=100", *words, limit=110
    )
    return [(list(of), sorted((folder / str(i)).rglob("*"))) for i, of in enumerate(answers)]


def choose(clean, most):
    """(step, rank, plan) at the first, a middle and the last call of each family in each step,
    thinned out to about `most` of each step."""
    chosen = []
    for step, before in zip(STEPS, ["", "open", "array", "load", "hash"]):
        found = []
        for rank in (0, 1, RANKS - 1):
            counts = clean[rank]["counts"]
            for family, kinds in KINDS.items():
                last, first = counts[step][family], (counts[before][family] if before else 0) + 1
                for k, kind in enumerate(kinds if last >= first else []):
                    for n in sorted({first, (first + last + k) // 2, last}):
                        found.append(
                            (
                                step,
                                rank,
                                f"{family}:{n}{'+' * kind.endswith('+')}:{kind.rstrip('+')}",
                            )
                        )
        stride = max(1, len(found) // most)
        chosen += found[:: stride if stride % 2 or stride == 1 else stride - 1]
    return chosen


def right(path):
    if path.suffix == ".npy":
        return (numpy.load(path) == ARRAY).all()
    with h5py.File(path) as file:
        return (file["data"][:] == ARRAY).all()


def judge(injection, answers, left):
    """What is wrong with the outcome; None when nothing is."""
    _, rank, plan = injection
    outcomes = {(answer["status"], answer["message"], answer["failed"]) for answer in answers}
    if len(outcomes) != 1:
        return f"the ranks do not agree: {outcomes}"
    status, message, failed = outcomes.pop()
    family, _, kind = plan.split(":")
    if status == "ok":
        good = (
            len(left) == 1
            and right(left[0])
            and all(answer["hash"] == content_hash(ARRAY) for answer in answers)
        )
        return None if good else f"it worked, but: {left}, {answers}"
    if (family, kind + "+" * ("+" in plan)) in HARMLESS:
        return f"this is no reason to fail: {message}"
    if status in ("unknown", "internal") or not message or failed != rank:
        return f"an error that explains nothing: {status}, {message}, rank {failed}"
    if left and not (len(left) == 1 and answers[0]["step"] == "save" and right(left[0])):
        return f"left behind after {message}: {left}"
    return None


PAIRS = [
    (mpi, name)
    for k, mpi in enumerate(ONCE)
    if k < 2 or EVERY
    for name in ("shards", "chunks")
    if EVERY or (k == 0) == (name == "chunks")
]


@pytest.mark.parametrize("mpi, name", PAIRS or [(None, "shards")], ids=str)
def test_one_rank_that_fails_in_every_phase(mpi, name, sources, tmp_path):
    if mpi is None:
        pytest.skip(WHY)
    [(clean, left)] = run(mpi, sources[name], tmp_path / "clean", [(-1, "-")])
    assert judge(("", -1, "::"), clean, left) is None, judge(("", -1, "::"), clean, left)
    chosen = choose(clean, 200 if EVERY else 10)
    outcomes = run(mpi, sources[name], tmp_path / "all", [injection[1:] for injection in chosen])
    wrong = [
        (injection, judge(injection, *outcome)) for injection, outcome in zip(chosen, outcomes)
    ]
    wrong = [(injection, what) for injection, what in wrong if what is not None]
    assert not wrong, f"{len(wrong)} of {len(chosen)}: {wrong[:8]}"
    struck = {
        injection[0]
        for injection, (answers, _) in zip(chosen, outcomes)
        if answers[0]["status"] != "ok"
    }
    assert struck == set(STEPS) and len(chosen) >= (200 if EVERY else 20), (struck, len(chosen))
