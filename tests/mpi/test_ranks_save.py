# Saves on ranks: each writes its tiles, the file is that of one process,
# and it appears whole or not at all.
#
# SPDX-License-Identifier: Apache-2.0
import subprocess

import numpy
import pytest

from launch import BIN, MPIS, Job, Ranks

h5py = pytest.importorskip("h5py")

ARRAY = numpy.random.default_rng(5).standard_normal((103, 41))
SHARDS = [
    ("npy", "a.npy", ["axis=1"], 4),
    ("npy", "b.npy", [], 7),
    ("npy", "c.npy", ["tiles=2", "durable=1"], 3),
    ("shards", "shards", ["shards=5", "grid=20,30"], 3),
    ("hdf5", "x.h5", ["grid=30,7"], 4),
    ("virtual", "v.h5", ["layout=virtual"], 3),
    ("raw", "r.bin", ["format=raw"], 2),
]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "source.npy"
    numpy.save(path, ARRAY)
    return path


def read(kind, path):
    if kind == "npy":
        return numpy.load(path)
    if kind == "shards":
        return numpy.concatenate([numpy.load(part) for part in sorted(path.glob("*.npy"))])
    if kind == "raw":
        return numpy.fromfile(path, ARRAY.dtype).reshape(ARRAY.shape)
    with h5py.File(path) as file:
        assert file["data"].is_virtual == (kind == "virtual")
        return file["data"][:]


def leftovers(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".tegula-")]


def test_the_file_is_that_of_one_process(some_mpi, source, tmp_path):
    for kind, name, words, ranks in SHARDS:
        alone, together = tmp_path / "alone", tmp_path / "together"
        for folder in (alone, together):
            folder.mkdir(exist_ok=True)
        job = Ranks(
            some_mpi, ranks, tmp_path / f"out-{name}", source, *words, f"save={together / name}"
        )
        assert job.answers().one("status") == "ok", (name, job.err)
        assert job.code == 0 and (read(kind, together / name) == ARRAY).all(), name
        if kind in ("npy", "raw", "hdf5"):
            one = Ranks(
                some_mpi, 1, tmp_path / f"one-{name}", source, *words, f"save={alone / name}"
            )
            assert (
                one.answers().one("status") == "ok"
                and (together / name).read_bytes() == (alone / name).read_bytes()
            ), name
    assert leftovers(together) == []


def test_what_is_there_stays_when_one_rank_fails(some_mpi, source, tmp_path):
    target = tmp_path / "x.npy"
    numpy.save(target, numpy.arange(3))
    for rank, plan in ((0, "write:1+:ENOSPC"), (1, "write:1:EIO"), (2, "write:1+:EDQUOT")):
        job = Ranks(
            some_mpi,
            3,
            tmp_path / f"out{rank}",
            source,
            "threads=1",
            "overwrite=1",
            f"save={target}",
            faults=(rank, plan),
        )
        answers = job.answers()
        assert job.code != 0 and answers.one("step") == "save" and answers.one("failed") == rank, (
            plan,
            answers,
        )
        assert ".tegula-" not in answers.one("message"), answers.one("message")
        assert numpy.load(target).tolist() == [0, 1, 2] and leftovers(tmp_path) == []
    job = Ranks(some_mpi, 3, tmp_path / "again", source, f"save={target}")
    assert job.answers().one("status") == "exists"
    job = Ranks(some_mpi, 3, tmp_path / "other", source, f"save={target}", f"@2:save={target}.npy")
    assert (
        job.answers()
        .one("message")
        .startswith("the ranks were not called alike: the path of rank 0")
    )


def test_a_rank_that_is_killed_leaves_nothing_under_the_name(some_mpi, source, tmp_path):
    target = tmp_path / "x.npy"
    job = Ranks(
        some_mpi,
        3,
        tmp_path / "out",
        source,
        "threads=1",
        f"save={target}",
        faults=(2, "write:1:KILL"),
    ).end()
    assert job.code != 0 and not target.exists()
    assert (
        Ranks(some_mpi, 3, tmp_path / "again", source, f"save={target}").answers().one("status")
        == "ok"
    )
    assert (numpy.load(target) == ARRAY).all() and leftovers(tmp_path) == []


def test_names_that_are_not_seen_yet_are_waited_for(some_mpi, source, tmp_path):
    """As on NFS: the first open of the file that rank 0 has made fail on another rank; one that
    never comes is an error."""
    never = (
        Ranks(
            some_mpi,
            3,
            tmp_path / "never",
            source,
            f"save={tmp_path / 'never.npy'}",
            faults=(1, "open:2+:ENOENT"),
        )
        if some_mpi is MPIS[0]
        else None
    )
    for plan in ("open:2:ENOENT", "open:2:ESTALE"):  # the first one is that of the load
        target = tmp_path / plan[-6:]
        job = Ranks(
            some_mpi,
            3,
            tmp_path / f"out-{plan}",
            source,
            "format=npy",
            f"save={target}.npy",
            faults=(1, plan),
        )
        assert job.answers().one("status") == "ok", (plan, job.err)
        assert (numpy.load(f"{target}.npy") == ARRAY).all()
    if never is None:
        return
    answers = never.answers()
    assert answers.one("status") == "not_found" and answers.one("failed") == 1
    assert not (tmp_path / "never.npy").exists() and leftovers(tmp_path) == []


@pytest.fixture(scope="module")
def mount_namespaces(tmp_path_factory):
    folder = tmp_path_factory.mktemp("elsewhere")
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs elsewhere "$0"', folder],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        pytest.skip(f"no mount namespaces here: {' '.join(done.stderr.split())}")


def test_a_rank_that_sees_another_file_system(some_mpi, source, tmp_path, mount_namespaces):
    """The message names the rank and the folder, for every way to write,
    and nothing is left of the save."""
    target = tmp_path / "target"
    target.mkdir()
    numpy.save(target / "x.npy", numpy.arange(3))
    cases = [
        ("x.npy", ["overwrite=1"]),
        ("x.h5", []),
        ("y.h5", ["chunk=7,9", "codec=deflate:1"]),
        ("z.h5", ["layout=virtual"]),
        ("shards", ["shards=5"]),
    ]
    jobs = [
        Ranks(
            some_mpi,
            3,
            tmp_path / f"out-{name}",
            source,
            *words,
            f"save={target / name}",
            elsewhere=(2, target),
        )
        for name, words in cases
    ]
    for (name, _), job in zip(cases, jobs):
        answers = job.answers()
        assert job.code != 0 and answers.one("step") == "save" and answers.one("failed") == 2, (
            name,
            answers,
            job.err,
        )
        assert answers.one("status") == "not_found" and answers.one("path") == str(target), (
            name,
            answers,
        )
        assert answers.one("message") == (
            f'rank 2 does not see what rank 0 has made in "{target}": another file system may '
            "be mounted there"
        ), (name, answers)
    numpy.save(tmp_path / "large.npy", numpy.arange(500_000.0))  # several windows
    copy = Job(
        some_mpi,
        3,
        [
            BIN,
            "copy",
            tmp_path / "large.npy",
            target / "copy.h5",
            "--memory",
            "1M",
            "--timeout",
            "60",
        ],
        elsewhere=(1, target),
    ).end()
    assert (
        copy.code != 0 and f'rank 1 does not see what rank 0 has made in "{target}"' in copy.err
    ), copy.err
    assert [path.name for path in target.iterdir()] == ["x.npy"] and numpy.load(
        target / "x.npy"
    ).tolist() == [0, 1, 2]
