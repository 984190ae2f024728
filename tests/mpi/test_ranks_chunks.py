# Chunked saves on ranks: each chunk is encoded by one rank, rank 0 finds its place,
# and the file is that of one process.
#
# SPDX-License-Identifier: Apache-2.0
import numpy
import pytest

from launch import MPIS, Ranks, felt, some_at_once, within

h5py = pytest.importorskip("h5py")
pytest.importorskip("hdf5plugin")

ARRAY = numpy.random.default_rng(8).integers(0, 50, (103, 41)).astype("f4")
# words, and what h5py must say of the dataset
CASES = [
    ("chunk=10,41 codec=shuffle,deflate:4", ((10, 41), ["shuffle", "gzip"])),
    # tiles and chunks cut each other
    ("grid=30,7 chunk=8,9 codec=shuffle,deflate:4", ((8, 9), ["shuffle", "gzip"])),
    # every rank has a piece of every chunk
    ("axis=1 chunk=16,41 codec=zstd:3", ((16, 41), ["32015"])),
    ("chunk=103,41 codec=deflate:1 tiles=7", ((103, 41), ["gzip"])),  # one chunk
    # ranks without a tile; no filter
    ("tiles=2 chunk=5,41", ((5, 41), [])),
    ("axis=1 tiles=5 chunk=20,3 separate=1", ((20, 3), [])),
    ("group=7 grid=50,20 chunk=16,16 codec=fletcher32", None),
    ("chunk=1,7 codec=deflate:1 durable=1", ((1, 7), ["gzip"])),
    # more ranks than rows
    ("layout=chunked box=2,3,2,9 chunk=1,4 codec=shuffle,deflate:1", ((1, 4), ["shuffle", "gzip"])),
    ("shards=5 grid=20,30 chunk=7,11 codec=shuffle,deflate:2", None),
]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "source.npy"
    numpy.save(path, ARRAY)
    return path


def save_all(mpi, ranks, folder, source, *words, cases=CASES):
    """All cases in one launch; one file or folder each."""
    folder.mkdir()
    lines = [f"save={folder / str(i)} format=hdf5 {line}\n" for i, (line, _) in enumerate(cases)]
    (folder / "lines.txt").write_text("".join(lines))
    job = Ranks(mpi, ranks, folder / "out", source, *words, f"saves={folder / 'lines.txt'}")
    answers = job.answers()
    assert answers.one("message") == "" and answers.one("status") == "ok" and job.code == 0, job.err
    return [files(folder / str(i)) for i in range(len(cases))]


def files(path):
    return sorted(path.iterdir()) if path.is_dir() else [path]


def read_bytes(found):
    return [path.read_bytes() for path in found]


def chunks(path):
    """Every chunk as it is stored."""
    found = {}

    def look(name, item):
        if isinstance(item, h5py.Dataset) and item.chunks:
            for i in range(item.id.get_num_chunks()):
                info = item.id.get_chunk_info(i)
                found[name, info.chunk_offset] = (
                    info.filter_mask,
                    item.id.read_direct_chunk(info.chunk_offset)[1],
                )

    with h5py.File(path) as file:
        file.visititems(look)
    return found


def leftovers(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".tegula-")]


@pytest.fixture(scope="module")
def alone(source, tmp_path_factory):
    if not MPIS:
        pytest.skip("no MPI")
    return save_all(MPIS[0], 1, tmp_path_factory.mktemp("alone") / "x", source)


def test_the_file_is_that_of_one_process(mpi, alone, source, tmp_path):
    ranks = 2 + MPIS.index(mpi)
    for count in {ranks, 7 if ranks == 2 else ranks}:
        together = save_all(mpi, count, tmp_path / str(count), source)
        for (line, _), one, other in zip(CASES, alone, together):
            assert [path.name for path in one] == [path.name for path in other] and read_bytes(
                one
            ) == read_bytes(other), (count, line)
        assert leftovers(tmp_path / str(count)) == []


def test_h5py_reads_what_was_saved(alone):
    """The files that those of ranks are the same as."""
    for (line, expected), found in zip(CASES, alone):
        if "shards" in line:
            assert (
                numpy.concatenate([h5py.File(path)["data"][:] for path in found]) == ARRAY
            ).all()
            continue
        with h5py.File(found[0]) as file:
            whole = ARRAY[2:4, 3:12] if "box" in line else ARRAY
            if expected is None:
                assert len(file["g"]) == 7 and all(
                    (item[:] == whole).all() for item in file["g"].values()
                )
                assert [item.chunks for item in file["g"].values()] == [
                    None,
                    (16, 16),
                    (16, 16),
                ] * 2 + [None]
                continue
            assert (file["data"][:] == whole).all() and (
                file["data"].chunks,
                list(file["data"]._filters),
            ) == expected, line


def test_in_many_rounds_each_chunk_is_the_same(some_mpi, alone, source, tmp_path):
    """Too little memory for all chunks at once: their order in the file is another one, unless
    no filter changes their lengths."""
    together = save_all(some_mpi, 3, tmp_path / "x", source, "staging=6000", "threads=1")
    differ = 0
    for (line, _), one, other in zip(CASES, alone, together):
        assert [chunks(path) for path in one] == [chunks(path) for path in other], line
        differ += read_bytes(one) != read_bytes(other)
        assert "codec" in line or read_bytes(one) == read_bytes(other), line
    assert differ >= 3  # there were rounds


FAULTS = [
    (0, "write:3+:ENOSPC"),
    (1, "write:1:EIO"),
    (2, "write:2:EIO"),
    (1, "open:2:EACCES"),
    (0, "write:2:EIO"),
    (0, "sync:1:EIO"),
    (2, "sync:1:EIO"),
    (1, "memory:60+:ENOMEM"),
    (2, "memory:85+:ENOMEM"),
    (0, "memory:120+:ENOMEM"),
]
ROUNDS = [
    "grid=30,7",
    "chunk=8,9",
    "codec=shuffle,deflate:4",
    "threads=1",
    "staging=6000",
    "format=hdf5",
    "durable=1",
    "overwrite=1",
]


def into(folder):
    """A folder with a target."""
    folder.mkdir()
    (folder / "x.h5").write_bytes(b"what was there")
    return folder / "x.h5"


def test_one_rank_fails_and_all_get_the_error(some_mpi, source, tmp_path):
    """In the phases of a save; each MPI has every second one."""
    cases = [case for case in FAULTS[MPIS.index(some_mpi) :: 2] if felt(case[1])]
    start = [
        lambda i=i, case=case: Ranks(
            some_mpi,
            3,
            tmp_path / f"out{i}",
            source,
            *ROUNDS,
            f"save={into(tmp_path / str(i))}",
            faults=case,
        )
        for i, case in enumerate(cases)
    ]
    saves = 0
    for i, ((rank, plan), job) in enumerate(zip(cases, some_at_once(start))):
        answers = job.answers()
        assert (
            None not in answers
            and answers.one("status") != "ok"
            and answers.one("failed") == rank
            and answers.one("message")
        ), (plan, answers)
        assert ".tegula-" not in answers.one("message"), answers.one("message")
        assert (tmp_path / str(i) / "x.h5").read_bytes() == b"what was there" and leftovers(
            tmp_path / str(i)
        ) == [], plan
        saves += answers.one("step") == "save"
    assert saves >= len(cases) - 1


def test_a_rank_that_is_gone_or_stands_still(some_mpi, source, tmp_path):
    """In the middle of the rounds: the old target stays, the others end,
    and the next save takes away what is left."""
    within(2, lambda deadline: check_gone(some_mpi, source, tmp_path / str(deadline), deadline))


def check_gone(some_mpi, source, tmp_path, deadline):
    tmp_path.mkdir()
    first = MPIS.index(some_mpi) == 0
    killed, stopped = (0, 1) if first else (2, 0)
    target, other = into(tmp_path / "killed"), into(tmp_path / "stopped")
    stop = Ranks(
        some_mpi,
        3,
        tmp_path / "out",
        source,
        *ROUNDS,
        f"save={other}",
        f"deadline={deadline}",
        faults=(stopped, "write:2:STOP"),
    )
    kill = Ranks(
        some_mpi,
        3,
        tmp_path / "killing",
        source,
        *ROUNDS,
        f"save={target}",
        faults=(killed, "write:2:KILL"),
    ).end(limit=30)
    assert (
        kill.code != 0
        and target.read_bytes() == b"what was there"
        and leftovers(target.parent) != []
    )
    again = Ranks(some_mpi, 3, tmp_path / "again", source, *ROUNDS, f"save={target}")
    answers = stop.answers(limit=30 + deadline)
    assert (
        answers[stopped] is None
        and answers.one("status") == "timeout"
        and answers.one("failed") == stopped
    ), stop.err
    assert other.read_bytes() == b"what was there" and (
        stopped != 0 or leftovers(other.parent) != []
    )
    assert again.answers().one("status") == "ok"
    assert (h5py.File(target)["data"][:] == ARRAY).all() and leftovers(target.parent) == []
