# What test_ranks_python.py starts on ranks by mpi4py. Each rank appends what it saw to
# OUT/RANK.txt; a failed assertion ends the job.
#
# SPDX-License-Identifier: Apache-2.0
import itertools
import pathlib
import sys

import numpy
import tegula
from mpi4py import MPI

world = MPI.COMM_WORLD
folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
expected = numpy.load(folder / "whole.npy")


def covered(comm, a):
    """Every element is on exactly one rank, with its value."""
    count = numpy.zeros(a.shape, "i4")
    for box, tile in a.tiles:
        assert (tile == expected[box]).all() and tile.dtype == expected.dtype
        count[box] += 1
    total = numpy.zeros_like(count)
    comm.Allreduce(count, total)
    assert (total == 1).all()


def raised(call, *kinds):
    try:
        call()
    except kinds as error:
        return error
    raise AssertionError("nothing was raised")


# the whole group, and groups that are parts of it
for comm in (world, world.Split(world.rank % 2), world.Split(world.rank, 0)):
    a = tegula.load(folder / "shards", comm=comm, threads=1)
    assert a.shape == expected.shape and a.dtype == expected.dtype
    covered(comm, a)
    lo = sum(comm.allgather(len(a.local))[: comm.rank])
    assert (a.local == expected[lo : lo + len(a.local)]).all()
    assert a.hash() == sys.argv[3]
    for words in ({"axis": 1}, {"tile_shape": (30, 3)}, {"tiles": 2}, {"overdecompose": 5}):
        covered(comm, tegula.load(folder / "shards", comm=comm, threads=1, **words))

# an open dataset: its parts can be read on each rank alone
ds = tegula.open(folder / "shards", comm=world)
assert (ds[7:9, ::2] == expected[7:9, ::2]).all()
assert ds.hash() == sys.argv[3]
covered(world, ds.load(tiles=4))

# in pieces: of more rows than ranks, of fewer, of some columns; a piece is an array of all of them,
# and the next is read meanwhile
for comm in (world, world.Split(world.rank % 2)):
    ds = tegula.open(folder / "shards", comm=comm)
    for chunk in ((30, 10), (2, 10), (64, 3)):
        count = numpy.zeros(expected.shape, "i4")
        for piece, offset in ds.batches(chunk):
            assert piece.shape == tuple(
                min(n, end - low) for n, end, low in zip(chunk, expected.shape, offset)
            )
            for box, tile in piece.tiles:
                box = tuple(
                    slice(low + side.start, low + side.stop) for low, side in zip(offset, box)
                )
                assert (tile == expected[box]).all() and tile.dtype == expected.dtype
                count[box] += 1
            if offset == (30, 0) and comm is world:
                tegula.save(piece, out / f"piece{chunk}.npy")
                assert (
                    numpy.load(out / f"piece{chunk}.npy")
                    == expected[30 : 30 + chunk[0], : chunk[1]]
                ).all()
        assert (comm.allreduce(count) == 1).all()
walk = ds.batches((5, 10))
next(walk)
walk.close()  # no call of all
nothing = tegula.open(folder / "nothing.npy", comm=world)
assert [(piece.tiles, offset) for piece, offset in nothing.batches((3, 4))] == []
((scalar, offset),) = tegula.open(folder / "scalar.npy", comm=world).batches(())
assert offset == () and [
    *itertools.chain(*world.allgather([tile[()] for _, tile in scalar.tiles]))
] == [7]

# more ranks than rows; only one rank has everything
few = tegula.load(folder / "few.npy", comm=world)
assert world.allreduce(len(few.local)) == 2 and few.local.shape[1:] == (5,)
if world.size > 1:
    assert "take a.local" in str(raised(lambda: numpy.asarray(few), ValueError))

# saved by all of them
LAYOUTS = (
    ("saved.npy", {}),
    ("saved.h5", {"dataset": "/x"}),
    ("saved", {"shards": 4}),
    ("chunks.h5", {"dataset": "/x", "chunks": (7, 3), "codec": "shuffle,deflate:1"}),
)
for name, words in LAYOUTS:
    tegula.save(tegula.load(folder / "shards", comm=world, axis=1), out / name, **words)
    assert (tegula.load(out / name).local == expected).all()
one, other = (tegula.load(folder / "shards", comm=world, axis=axis) for axis in (0, 1))
tegula.save({"x": one, "g/y": other}, out / "group.h5", codec="shuffle,deflate:1")
for name in ("x", "g/y"):
    assert (tegula.load(out / "group.h5", name).local == expected).all()
# in the background: there when all have waited; a later load of it waits,
# and a failure is that of all
for name, words in LAYOUTS:
    tegula.save(one, out / f"later-{name}", block=False, **words)
assert world.size == 1 or not (out / "later-chunks.h5").exists()
covered(world, tegula.load(out / "later-saved.npy", comm=world))
assert (
    raised(
        lambda: (tegula.save(one, out / "saved.npy", block=False), tegula.fence()), FileExistsError
    ).status
    == "exists"
)
tegula.fence()
if world.size > 1:
    tegula.save(one, out / "taken.npy", block=False)
    if world.rank == 0:
        numpy.save(out / "taken.npy", expected[:1])
    assert raised(tegula.fence, FileExistsError).rank == 0
    tegula.fence()
    assert len(numpy.load(out / "taken.npy")) == 1
    tegula.save(one, out / "kept.npy", block=False)
    error = raised(
        lambda: tegula.open(folder / "few.npy", comm=world) if world.rank == 1 else tegula.fence(),
        tegula.Error,
    )
    assert (
        "the ranks do not make the same call: rank 0 is in tegula_op_wait, rank 1 in "
        "tegula_dataset_open" in str(error)
    )
    tegula.fence()  # the save was not lost by that
    assert (numpy.load(out / "kept.npy") == expected).all()
    tegula.save(few, out / "exit.npy", block=False)  # nobody waits for it before the end
for name, _ in LAYOUTS:
    assert (tegula.load(out / f"later-{name}").local == expected).all()
if world.size > 1:
    assert "all of them on the same ones" in str(
        raised(lambda: tegula.save({"x": one, "y": expected}, out / "no.h5"), ValueError)
    )
assert raised(lambda: tegula.save(few, out / "saved.npy"), FileExistsError).status == "exists"

# errors: the same on all
error = raised(lambda: tegula.load(folder / "nowhere", comm=world), FileNotFoundError)
assert error.rank == (0 if world.size > 1 else error.rank)
error = raised(
    lambda: tegula.load(
        folder / "shards", comm=world, tiles=-1 if world.rank == world.size - 1 else 3
    ),
    ValueError,
)
assert "tiles: expected a whole number" in str(error)
error = raised(
    lambda: next(
        tegula.open(folder / "shards", comm=world).batches(
            (0 if world.rank == world.size - 1 else 3, 4)
        )
    ),
    ValueError,
)
assert "chunk: expected lengths from 1 on" in str(error)
if world.size > 1:
    error = raised(
        lambda: tegula.open(folder / ("few.npy" if world.rank == 1 else "whole.npy"), comm=world),
        tegula.Error,
    )
    assert error.status == "mismatch" and "the paths of rank 0" in str(error), error
    assert "only an array that tegula.load" in str(
        raised(lambda: tegula.save(few.local, out / "x.npy", comm=world), ValueError)
    )
assert "mpi4py" in str(raised(lambda: tegula.load(folder / "few.npy", comm=3), TypeError))
(out / f"{world.rank}.txt").write_text("done")
