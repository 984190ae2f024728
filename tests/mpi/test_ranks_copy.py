# Copies and saves in pieces on ranks: what comes out is what one process makes.
#
# SPDX-License-Identifier: Apache-2.0
import numpy
import pytest

from launch import MPIS, Ranks, felt, some_at_once

h5py = pytest.importorskip("h5py")
pytest.importorskip("hdf5plugin")

ARRAY = numpy.random.default_rng(8).integers(0, 50, (103, 41)).astype("i4")
COPIES = [
    "npy format=npy",
    "shards format=npy shards=4",
    "raw format=raw shards=3 readback=1",
    "a.h5 layout=chunked readback=1 durable=1",
    "b.h5 layout=contiguous readback=1",
    "v.h5 layout=virtual tiles=5 readback=1",
    "c.h5 chunk=10,41 codec=zstd:3 readback=1",
    "d.h5 chunk=20,20 codec=",
    "set format=hdf5 chunk=8,8 shards=3 readback=1",
]
PIECES = [
    "p.npy format=npy pieces=1 grid=30,7",
    "p.h5 pieces=1 token=1 axis=1",
    "few.npy pieces=1 tiles=2 format=npy",
    "pv.h5 pieces=1 layout=virtual tiles=2",
]
LITTLE = "memory=4000"  # many windows


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "source.h5"
    with h5py.File(path, "w") as file:
        data = file.create_dataset(
            "a/x", data=ARRAY, chunks=(9, 13), compression="gzip", shuffle=True
        )
        data.attrs["unit"] = "m"
        file.create_dataset("rows", data=numpy.arange(103.0)).make_scale("rows")
        data.dims[0].attach_scale(file["rows"])
    return path


def make(mpi, ranks, folder, source):
    folder.mkdir()
    lines = [f"copy={folder}/{line} {LITTLE}\n" for line in COPIES] + [
        f"save={folder}/{line}\n" for line in PIECES
    ]
    (folder / "lines.txt").write_text("".join(lines))
    job = Ranks(
        mpi,
        ranks,
        folder.parent / f"out-{folder.name}",
        source,
        "dataset=a/x",
        f"saves={folder}/lines.txt",
    )
    answers = job.answers()
    (folder / "lines.txt").unlink()
    assert answers.one("message") == "" and job.code == 0, job.err
    return answers.one("copied"), {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def alone(source, tmp_path_factory):
    if not MPIS:
        pytest.skip("no MPI")
    folder = tmp_path_factory.mktemp("alone") / "x"
    return (*make(MPIS[0], 1, folder, source), folder)


def test_a_copy_is_that_of_one_process(some_mpi, alone, source, tmp_path):
    copied, expected, _ = alone
    for ranks in (3,) if MPIS.index(some_mpi) else (2, 7):
        same, found = make(some_mpi, ranks, tmp_path / str(ranks), source)
        # a virtual dataset names its folder of tiles, whose name is new each time
        plain = {name for name in expected if "v.h5" not in name}
        assert same == copied and "windows 30" in same
        assert {name for name in found if "v.h5" not in name} == plain and [
            name for name in plain if found[name] != expected[name]
        ] == []
        for name, dataset in (("v.h5", "a/x"), ("pv.h5", "data")):
            with h5py.File(tmp_path / str(ranks) / name) as file:
                assert file[dataset].is_virtual and (file[dataset][:] == ARRAY).all()
        assert not [name for name in found if name.startswith(".tegula-")]


def test_h5py_and_numpy_read_the_copies(alone):
    folder = alone[2]
    for name in ("npy", "p.npy", "few.npy"):
        assert (numpy.load(folder / name) == ARRAY).all()
    for name, chunks in (
        ("a.h5", (9, 13)),
        ("b.h5", None),
        ("c.h5", (10, 41)),
        ("d.h5", (20, 20)),
        ("v.h5", None),
    ):
        with h5py.File(folder / name) as file:
            data = file["a/x"]
            assert (data[:] == ARRAY).all() and data.chunks == chunks and data.attrs["unit"] == "m"
            assert name == "v.h5" or (data.dims[0]["rows"][:] == numpy.arange(103)).all()
    for name in ("p.h5", "pv.h5"):
        assert (h5py.File(folder / name)["data"][:] == ARRAY).all()


FAULTS = [
    ((1, "read:1+:EIO"), "io"),
    ((2, "write:1:EIO"), "io"),
    ((0, "write:5:ENOSPC"), "io"),
    ((1, "memory:45+:ENOMEM"), "out_of_memory"),
]


def into(folder):
    folder.mkdir()
    return folder


def test_one_rank_fails_and_all_get_the_error(some_mpi, source, tmp_path):
    cases = [case for case in FAULTS[MPIS.index(some_mpi) :: 2] if felt(case[0][1])]
    words = [
        source,
        "dataset=a/x",
        "load=0",
        "threads=1",
        LITTLE,
        "chunk=10,41",
        "codec=deflate:1",
        "readback=1",
    ]
    start = [
        lambda i=i, fault=fault: Ranks(
            some_mpi,
            3,
            tmp_path / f"out{i}",
            *words,
            f"copy={into(tmp_path / str(i))}/x.h5",
            faults=fault,
        )
        for i, (fault, _) in enumerate(cases)
    ]
    for i, ((fault, status), job) in enumerate(zip(cases, some_at_once(start))):
        answers = job.answers()
        assert (
            None not in answers
            and answers.one("status") == status
            and answers.one("failed") == fault[0]
        ), answers
        assert status == "out_of_memory" or answers.one("step") == "save"
        assert (
            answers.one("message")
            and ".tegula-" not in answers.one("message")
            and list((tmp_path / str(i)).iterdir()) == []
        )


def test_what_is_called_differently_or_given_up(some_mpi, source, tmp_path):
    target = tmp_path / "x.h5"
    words = [source, "dataset=a/x"]
    jobs = [
        Ranks(some_mpi, 3, tmp_path / "copy", *words, f"copy={target}", "@2:memory=99"),
        Ranks(
            some_mpi, 3, tmp_path / "pieces", *words, f"save={target}", "pieces=1", "@1:abandon=1"
        ),
        Ranks(some_mpi, 3, tmp_path / "chunks", *words, f"save={target}", "pieces=1", "chunk=8,8"),
    ]
    messages = [job.answers().one("message") for job in jobs]
    assert messages[0].startswith(
        "the ranks were not called alike: the options of the copy of rank 0: memory 0"
    )
    assert messages[1:] == [
        "the save was given up",
        "cannot save in chunks piece by piece on 3 ranks",
    ]
    assert [
        path.name for path in tmp_path.iterdir() if path.name.startswith((".tegula-", "x.h5"))
    ] == []
