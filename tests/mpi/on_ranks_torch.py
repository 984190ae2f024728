# What test_ranks_recipes.py starts on ranks: the recipes of examples/recipes.py for Heat and for
# torch's DTensor, against numpy. A failed assertion ends the job.
#
# SPDX-License-Identifier: Apache-2.0
import importlib.util
import pathlib
import sys

import heat
import numpy
import torch
from mpi4py import MPI
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard

folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
spec = importlib.util.spec_from_file_location(
    "recipes", pathlib.Path(__file__).parents[2] / "examples/recipes.py"
)
recipes = importlib.util.module_from_spec(spec)
spec.loader.exec_module(recipes)
world = MPI.COMM_WORLD
whole, few = numpy.load(folder / "whole.npy"), numpy.load(folder / "few.npy")

# Heat: whole and parts of the group, fewer rows than ranks
for comm in (world, world.Split(world.rank % 2)):
    x = recipes.heat_array(folder / "shards", comm)
    assert (x.shape, x.split, x.comm.size) == (whole.shape, 0, comm.size)
    before = sum(comm.allgather(x.lshape[0])[: comm.rank])
    assert (
        x.larray.numpy() == whole[before : before + x.lshape[0]]
    ).all() and x.larray.dtype == torch.int64
    assert (x.numpy() == whole).all() and int(x.sum()) == whole.sum()
    assert (heat.sum(x, axis=0).numpy() == whole.sum(axis=0)).all()
assert (recipes.heat_array(folder / "few.npy", world).numpy() == few).all()

# DTensor: the launcher's ranks are torch's; with and without MPI,
# rows that do not come out even, fewer rows than ranks
torch.distributed.init_process_group(
    "gloo", init_method=f"file://{out}/rendezvous", rank=world.rank, world_size=world.size
)
mesh = init_device_mesh("cpu", (world.size,))
for path, expected in ((folder / "shards", whole), (folder / "few.npy", few)):
    for comm in (world, None):
        x = recipes.torch_dtensor(path, mesh, comm)
        assert tuple(x.shape) == expected.shape and x.placements == (Shard(0),)
        assert (x.full_tensor().numpy() == expected).all()
        assert int(x.sum().full_tensor()) == expected.sum()
        # as torch itself cuts it
        like = torch.distributed.tensor.distribute_tensor(
            torch.from_numpy(expected.copy()), mesh, [Shard(0)]
        )
        assert torch.equal(x.to_local(), like.to_local())
world.Barrier()
torch.distributed.destroy_process_group()
(out / f"{world.rank}.txt").write_text("done")
