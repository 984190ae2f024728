# Loads on ranks: the same array as numpy has, the same hash as one process,
# no file opened that is not needed.
#
# SPDX-License-Identifier: Apache-2.0
import ctypes
import json
import os
import struct

import numpy
import pytest

from launch import FAULTS, MPIS, RANK, RANKS, WHY, Job, Ranks
from reference_hash import content_hash

h5py = pytest.importorskip("h5py")
MACHINES = FAULTS.with_name("machines.so")


def make_sources(folder):
    """name -> (path, array, words): npy shards of uneven rows, raw big-endian, Fortran order,
    HDF5 in chunks, few rows, 0-d, empty."""
    rng = numpy.random.default_rng(8)
    sources = {}
    rows = rng.integers(-1000, 1000, (307, 37), dtype="i4")
    (folder / "shards").mkdir()
    for i, part in enumerate(numpy.split(rows, [10, 150, 151])):
        numpy.save(folder / "shards" / f"part_{i}.npy", part)
    sources["shards"] = folder / "shards", rows, []
    big = rng.standard_normal((64, 300, 5))  # 768 kB: blocks of the hash straddle tiles
    numpy.save(folder / "fortran.npy", numpy.asfortranarray(big.astype(">f8")))
    sources["fortran"] = folder / "fortran.npy", big, []
    with h5py.File(folder / "chunks.h5", "w") as file:
        file.create_dataset("x", data=big, chunks=(7, 40, 5), compression="gzip", shuffle=True)
        # a manifest of more than 64 KiB
        file.create_dataset("many", data=rows, chunks=(1, 2), compression="lzf")
        # only libhdf5 can decode it
        file.create_dataset("scaled", data=rows, chunks=(50, 10), scaleoffset=0)
    sources["chunks"] = folder / "chunks.h5", big, ["dataset=x"]
    with h5py.File(folder / "text.h5", "w") as file:
        kind = h5py.h5t.C_S1.copy()
        kind.set_size(6)
        kind.set_strpad(h5py.h5t.STR_SPACEPAD)
        space = h5py.h5s.create_simple((300, 2))
        dataset = h5py.h5d.create(file.id, b"x", kind, space)
        text = numpy.array([b"ab    ", b" a b  "] * 300, "V6").reshape(300, 2)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, text, mtype=kind)
    with h5py.File(folder / "text.h5") as file:
        sources["text"] = folder / "text.h5", file["x"][()], ["dataset=x"]
    sources["many"] = folder / "chunks.h5", rows, ["dataset=many"]
    sources["scaled"] = folder / "chunks.h5", rows, ["dataset=scaled"]
    (folder / "virtual").mkdir()
    layout = h5py.VirtualLayout((300, 4), "i8")
    parts = numpy.arange(1200).reshape(300, 1, 4)
    for i, part in enumerate(parts):  # so many that a source is looked at by the rank that wants it
        with h5py.File(folder / "virtual" / f"s{i}.h5", "w") as file:
            file["d"] = part
        layout[i : i + 1] = h5py.VirtualSource(f"s{i}.h5", "d", (1, 4))
    with h5py.File(folder / "virtual" / "v.h5", "w", libver="latest") as file:
        file.create_virtual_dataset("x", layout)
    sources["virtual"] = folder / "virtual" / "v.h5", parts.reshape(300, 4), []
    records = numpy.zeros((60, 9), [("a", "<i4"), ("p", [("x", ">f8"), ("y", "<f4", (2,))])])
    records["p"]["y"] = rng.standard_normal((60, 9, 2))
    numpy.save(folder / "records.npy", records)
    sources["field"] = folder / "records.npy", records["p"]["y"].copy(), ["field=p.y"]
    for name, array in (
        ("few", numpy.arange(10, dtype="<u2").reshape(2, 5)),
        ("scalar", numpy.float64(3.5).reshape(())),
        ("empty", numpy.zeros((0, 4), "f4")),
    ):
        numpy.save(folder / f"{name}.npy", array)
        sources[name] = folder / f"{name}.npy", array, []
    return sources


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return make_sources(tmp_path_factory.mktemp("sources"))


CASES = [
    (1, "chunks", []),
    (1, "scalar", []),
    (2, "shards", []),
    (2, "fortran", ["axis=1"]),
    (2, "many", ["grid=100,7"]),
    (3, "shards", ["axis=1", "tiles=7"]),
    (3, "chunks", ["grid=10,33,2", "separate=1"]),
    (3, "empty", []),
    (3, "virtual", []),
    (4, "few", []),
    (4, "scaled", []),
    (4, "fortran", ["grid=9,50,5", "box=3,20,0,50,200,5"]),
    (7, "chunks", ["axis=2"]),
    (7, "scalar", []),
    (7, "shards", ["tiles=3"]),
    (7, "many", []),
]


# all cases with two MPIs, some with the others (TEGULA_MPI_ALL=1: all)
EVERY = os.environ.get("TEGULA_MPI_ALL") == "1"
PAIRS = [
    (mpi, *case)
    for k, mpi in enumerate(MPIS or [None])
    for i, case in enumerate(CASES)
    if k < 2 or EVERY or i % 6 == k
]


@pytest.mark.parametrize(
    "mpi, ranks, name, words",
    PAIRS,
    ids=lambda value: "-".join(value) if isinstance(value, list) else str(value),
)
def test_ranks_hold_what_numpy_has(mpi, ranks, name, words, sources, tmp_path):
    if mpi is None:
        pytest.skip(WHY)
    path, array, more = sources[name]
    box = [int(n) for word in words if word.startswith("box=") for n in word[4:].split(",")]
    if box:
        array = array[
            tuple(slice(lo, lo + n) for lo, n in zip(box[: array.ndim], box[array.ndim :]))
        ]
    job = Ranks(mpi, ranks, tmp_path, path, "hash=1", "dataset_hash=1", "threads=1", *more, *words)
    answers = job.answers()
    assert job.code == 0, (job.err, answers)
    assert answers.one("status") == "ok" and answers.one("ranks") == ranks
    found = job.array(array.shape, answers)
    assert found.dtype == array.dtype.newbyteorder("=") and (found == array).all()
    assert answers.one("hash") == content_hash(array)
    if not box:
        assert answers.one("dataset_hash") == content_hash(array)


class Opens:
    """How often each file of a folder is opened, by whatever process:
    the kernel says it (inotify)."""

    def __init__(self, folder):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK)
        # IN_OPEN
        assert self.fd >= 0 and self.libc.inotify_add_watch(self.fd, os.fsencode(folder), 0x20) >= 0

    def count(self):
        data, counts = b"", {}
        while True:
            try:
                data += os.read(self.fd, 1 << 20)
            except BlockingIOError:
                break
        os.close(self.fd)
        while data:
            size = struct.unpack_from("iIII", data)[3]
            name = data[16 : 16 + size].rstrip(b"\0").decode()
            counts[name] = counts.get(name, 0) + 1
            data = data[16 + size :]
        counts.pop("", None)  # the folder itself
        return counts


def test_no_rank_opens_a_file_that_it_does_not_need(some_mpi, tmp_path):
    """Three ranks, six files of equal rows: rank 0 describes all six and reads two of them with
    the same handles; the others open two each."""
    folder = tmp_path / "shards"
    folder.mkdir()
    for i in range(6):
        numpy.save(folder / f"s{i}.npy", numpy.full((4, 3), i, "f4"))
    opens = Opens(folder)
    answers = Ranks(some_mpi, 3, tmp_path / "out", folder).answers()
    assert opens.count() == {
        "s0.npy": 1,
        "s1.npy": 1,
        "s2.npy": 2,
        "s3.npy": 2,
        "s4.npy": 2,
        "s5.npy": 2,
    }
    assert [answer["opens"] for answer in answers] == [6, 2, 2]


def test_processors_are_shared_by_the_ranks_of_a_machine(some_mpi, tmp_path, sources):
    """Those of all its ranks together, by their number, but no more than a rank has; ranks of
    other machines do not count."""
    words = [
        "sh",
        "-c",
        f'case {RANK} in 0) m="a 0 3";; 1) m="b 0 4";; 2) m="a 2 9";; 3) m="a 900 901";; esac; '
        f'export LD_PRELOAD={MACHINES} TEGULA_MACHINE="$m"; exec "$@"',
        "sh",
        RANKS,
        tmp_path,
        sources["few"][0],
        "threads=0",
    ]
    job = Job(some_mpi, 4, words).end()
    assert job.code == 0, job.err
    assert [
        json.loads((tmp_path / f"{rank}.json").read_text())["threads"] for rank in range(4)
    ] == [4, 5, 4, 2]
