# Batches, loads and saves in the background on ranks: each does its part ahead, and they agree
# where the program waits.
#
# SPDX-License-Identifier: Apache-2.0
import numpy
import pytest

from launch import Ranks, within

h5py = pytest.importorskip("h5py")
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
    jobs = [
        Ranks(some_mpi, ranks, tmp_path / chunk, shards, "load=0", f"batches={chunk}")
        for chunk in ("30,40", "3,40", "64,17")
    ]
    for job in jobs:
        answers = job.answers()
        assert None not in answers and answers.one("status") == "ok", job.err
        assert (job.array(NUMBERS.shape, answers) == NUMBERS).all()


def test_loads_in_the_background(some_mpi, shards, tmp_path):
    """Waited for one by one, and by a fence."""
    for job in [
        Ranks(some_mpi, 3, tmp_path / str(way), shards, f"async={way}", "hash=1") for way in (1, 2)
    ]:
        answers = job.answers()
        assert None not in answers and answers.one("status") == "ok", job.err
        assert (job.array(NUMBERS.shape, answers) == NUMBERS).all() and answers.one(
            "hash"
        ).startswith("tegula1:")


def test_progress_is_that_of_all_ranks(some_mpi, tmp_path):
    """Rank 0 is told sums, also while it waits for a slower one;
    the others what they have done themselves."""
    array = numpy.arange(8 << 20, dtype="<f4").reshape(-1, 1024)  # 32 MB
    numpy.save(tmp_path / "x.npy", array)
    answers = Ranks(
        some_mpi, 2, tmp_path / "out", tmp_path / "x.npy", "progress=1", "threads=1"
    ).answers()
    assert answers.one("status") == "ok"
    told, own = answers[0]["told"], array.nbytes // 2
    assert told == sorted(told) and told[-1] == answers[0]["told_total"] == array.nbytes
    assert any(own < done < array.nbytes for done in told), told
    assert answers[1]["told"][-1] == answers[1]["told_total"] == own


def test_a_failure_of_one_rank_is_that_of_all(some_mpi, shards, tmp_path):
    """Rank 1's reads fail, in a piece and in a load;
    ranks that wait for different things are told so."""
    jobs = [
        Ranks(some_mpi, 3, tmp_path / str(i), shards, *words, faults=(1, "read:1:EIO"))
        for i, words in enumerate(
            (["load=0", "batches=30,40"], ["async=1", "@1:quiet=1"], ["async=2", "@1:quiet=1"])
        )
    ]
    for job in jobs:
        answers = job.answers()
        assert (
            None not in answers
            and answers.one("status") == "io"
            and answers.one("failed") == 1
            and "could not" in answers.one("message")
        ), (job.err, answers)
    other = Ranks(
        some_mpi, 3, tmp_path / "other", shards, "async=1", "@1:async=2", "missing=0"
    ).answers()
    assert other.one("message") == (
        "the ranks do not make the same call: rank 0 is in tegula_op_wait, rank 1 in tegula_fence"
    )
    other = Ranks(
        some_mpi, 3, tmp_path / "chunk", shards, "load=0", "batches=30,40", "@2:batches=31,40"
    ).answers()
    assert (
        other.one("message")
        == "the ranks were not called alike: the chunk of rank 0: (30, 40), of rank 2: (31, 40)"
    )


# ---- saves ----


def saved(path):
    if path.is_dir():
        return numpy.concatenate([numpy.load(part) for part in sorted(path.glob("*.npy"))])
    if path.suffix == ".npy":
        return numpy.load(path)
    if path.suffix == ".bin":
        return numpy.fromfile(path, "<i4").reshape(NUMBERS.shape)
    with h5py.File(path) as file:
        return file["data"][:]


LAYOUTS = {
    "s.npy": [],
    "s": ["shards=5", "grid=20,30"],
    "s.bin": ["format=raw"],
    "s.h5": ["durable=1", "axis=1"],
    "v.h5": ["layout=virtual"],
    "c.h5": ["chunk=30,7", "codec=shuffle,deflate:1", "axis=1"],
    "p.h5": ["chunk=25,40", "layout=chunked"],
}


@pytest.mark.parametrize("ranks", [2, 7])
def test_saves_in_the_background(some_mpi, shards, tmp_path, ranks):
    """Every layout, waited for in every way; one after the other in one job."""
    lines = []
    for way in ("wait", "fence", "poll", "open", "twice"):
        (tmp_path / way).mkdir()
        lines += [
            " ".join([f"save={tmp_path / way / name}", f"later={way}", *words])
            for name, words in LAYOUTS.items()
            if way != "open" or name not in ("s", "s.bin")
        ]
    (tmp_path / "lines").write_text("\n".join(lines) + "\n")
    job = Ranks(some_mpi, ranks, tmp_path / "out", shards, f"saves={tmp_path / 'lines'}")
    answers = job.answers()
    assert None not in answers and answers.one("status") == "ok", (job.err, answers)
    for line in lines:
        path = tmp_path.joinpath(line.split()[0].removeprefix("save="))
        assert (saved(path) == NUMBERS).all(), line
        assert not [
            other.name for other in path.parent.iterdir() if other.name.startswith(".tegula")
        ]


def test_a_save_in_the_background_has_its_turn(quick_mpi, shards, tmp_path):
    """It is seen when all have waited, or by who opens it; the array is saved as it was when the
    call was made; what is being loaded into it comes first."""
    numpy.save(tmp_path / "other.npy", NUMBERS[::-1])
    words = {
        "wait": ["later=wait", "slow=1"],
        "open": ["later=open", "slow=1"],
        "change": ["later=change", f"change={tmp_path / 'other.npy'}", "slow=1"],
        "chunks": [
            "later=change",
            f"change={tmp_path / 'other.npy'}",
            "chunk=10,10",
            "codec=deflate:1",
        ],
    }
    words |= {f"{name}-elsewhere": [*words[name], "elsewhere=1"] for name in ("change", "chunks")}
    for name, more in words.items():
        path = tmp_path / f"{name}.{'h5' if name.startswith('chunks') else 'npy'}"
        job = Ranks(quick_mpi, 3, tmp_path / f"out-{name}", shards, f"save={path}", *more)
        answers = job.answers()
        assert answers.one("status") == "ok" and answers.one("copied") == "not there", (
            name,
            job.err,
            answers,
        )
        assert (saved(path) == NUMBERS).all(), name
        if "change" in name:
            assert (job.array(NUMBERS.shape, answers) == NUMBERS[::-1]).all()
    # 8 MB, read in several steps, between which ranks but 0 sleep
    array = numpy.arange(2 << 20, dtype="<i4").reshape(-1, 1024)
    numpy.save(tmp_path / "large.npy", array)
    for more in (["later=wait"], []):
        path = tmp_path / f"loading{len(more)}.npy"
        answers = Ranks(
            quick_mpi,
            2,
            tmp_path / f"out{len(more)}",
            tmp_path / "large.npy",
            "async=3",
            "progress=1",
            "threads=1",
            f"save={path}",
            *more,
        ).answers()
        assert answers.one("status") == "ok" and (numpy.load(path) == array).all()


def test_an_open_ends_the_save_to_its_path_and_no_other(quick_mpi, shards, tmp_path):
    """By whatever name; also where ranks stand in other folders, of which that of rank 0 counts."""
    (tmp_path / "link").symlink_to(tmp_path)
    for i, words in enumerate(
        (
            [f"as={tmp_path / 'link' / 'x0.1'}"],
            [f"as={tmp_path / 'x1.1'}", "@1:folder=/"],
            [f"as={tmp_path / 'x2.1'}", "@0:folder=/"],
        )
    ):
        name = tmp_path / f"x{i}" if i == 2 else f"x{i}"
        answers = Ranks(
            quick_mpi,
            2,
            tmp_path / f"out{i}",
            shards,
            f"save={name}",
            "format=npy",
            f"folder={tmp_path}",
            "deadline=60",
            *words,
        ).answers()
        assert (
            answers.one("status") == "ok"
            and answers[0]["copied"] == "010"
            and answers.one("dataset_hash")
        ), answers
        assert all((numpy.load(tmp_path / f"x{i}.{k}") == NUMBERS).all() for k in range(3))


def test_a_save_in_the_background_fails_on_all_ranks(quick_mpi, shards, tmp_path):
    """In one rank's part, at its beginning and at its end;
    the old target stays and nothing is left."""
    old = numpy.arange(5)
    cases = [
        (1, "write:1:EIO", "wait", [], "io"),
        (2, "write:1+:ENOSPC", "fence", [], "io"),
        (0, "rename:1:EIO", "wait", [], "io"),
        (0, "mkdir:1:EACCES", "poll", [], "permission"),
        (1, "sync:1:EIO", "wait", ["durable=1"], "io"),
        (2, "write:1+:EIO", "wait", ["shards=5"], "io"),
        (1, "thread:1+:EAGAIN", "fence", [], "io"),
    ]
    for i, (rank, plan, way, words, status) in enumerate(cases):
        folder = tmp_path / f"case{i}"
        folder.mkdir()
        target = folder / ("shards" if "shards=5" in words else "x.npy")
        if target.name == "x.npy":
            numpy.save(target, old)
        job = Ranks(
            quick_mpi,
            3,
            tmp_path / f"out{i}",
            shards,
            "threads=1",
            "overwrite=1",
            f"save={target}",
            f"later={way}",
            "deadline=60",
            *words,
            faults=(rank, plan),
        )
        answers = job.answers()
        assert (
            None not in answers
            and answers.one("status") == status
            and answers.one("failed") == rank
            and answers.one("step") == "save"
        ), (plan, job.err, answers)
        assert target.name == "shards" or (numpy.load(target) == old).all()
        assert [path.name for path in folder.iterdir()] == [
            path.name for path in [target] if path.suffix
        ], plan


def check_left(quick_mpi, shards, folder, seconds):
    """All ranks have written by then."""
    (folder / "x").mkdir(parents=True)
    answers = Ranks(
        quick_mpi,
        3,
        folder / "out",
        shards,
        f"save={folder / 'x' / 'x'}",
        "later=leave",
        f"linger={int(seconds * 1000)}",
    ).answers()
    assert answers.one("status") == "ok" and list((folder / "x").iterdir()) == [], answers


def test_a_save_that_is_cancelled_or_left(quick_mpi, shards, tmp_path):
    """By one rank; a context that goes away before the save is waited for; ranks that call it,
    or wait for it, differently."""
    within(0.2, lambda seconds: check_left(quick_mpi, shards, tmp_path / str(seconds), seconds))
    for way, words, status in (
        ("cancel", ["later=wait", "@1:later=cancel", "slow=1"], "cancelled"),
        (
            "chunks",
            ["later=wait", "@2:later=cancel", "chunk=10,10", "layout=chunked", "format=hdf5"],
            "cancelled",
        ),
    ):
        folder = tmp_path / way
        folder.mkdir()
        answers = Ranks(
            quick_mpi, 3, tmp_path / f"out-{way}", shards, f"save={folder / 'x'}", *words
        ).answers()
        assert answers.one("status") == status and list(folder.iterdir()) == [], (way, answers)
    answers = Ranks(
        quick_mpi,
        3,
        tmp_path / "out-1",
        shards,
        f"save={tmp_path / 'y.npy'}",
        "later=wait",
        "@1:later=fence",
    ).answers()
    assert answers.one("message") == (
        "the ranks do not make the same call: rank 0 is in tegula_op_wait, rank 1 in tegula_fence"
    )
    answers = Ranks(
        quick_mpi,
        3,
        tmp_path / "out-2",
        shards,
        f"save={tmp_path / 'y.npy'}",
        "later=wait",
        "@2:durable=1",
    ).answers()
    assert answers.one("message").startswith(
        "the ranks were not called alike: the options of rank 0: "
    )
    long = tmp_path / ("y" * 240)
    answers = Ranks(
        quick_mpi,
        3,
        tmp_path / "out-3",
        shards,
        f"save={long}a.npy",
        "later=wait",
        f"@1:save={long}b.npy",
    ).answers()
    assert answers.one("message").startswith(
        "the ranks were not called alike: the path of rank 0: "
    )
    assert not [path for path in tmp_path.iterdir() if path.name.startswith((".tegula", "y"))]
