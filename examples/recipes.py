"""tegula with other array libraries, a few lines each. docs/python.md says more.

SPDX-License-Identifier: Apache-2.0
"""

from typing import Any

import numpy as np
import tegula


def dask_array(path: str, rows: int) -> Any:
    """A dask array in blocks of `rows`; threads read the same dataset,
    other processes get it with its manifest."""
    import dask.array

    ds = tegula.open(path)
    return dask.array.from_array(ds, chunks=(rows, *ds.shape[1:]), name=ds.hash())


def dask_blocks(path: str, rows: int) -> Any:
    """The same by map_blocks: each task carries the plan (where every byte is) and reads its
    block in whatever process it runs."""
    import dask.array

    ds = tegula.open(path)

    def read(block_info: Any = None) -> Any:
        return ds[tuple(slice(*ends) for ends in block_info[None]["array-location"])]

    chunks = dask.array.core.normalize_chunks((rows, *ds.shape[1:]), ds.shape)
    return dask.array.map_blocks(
        read, chunks=chunks, dtype=ds.dtype, meta=np.empty((0,) * ds.ndim, ds.dtype)
    )


def xarray_array(path: str, dims: tuple[str, ...], rows: int) -> Any:
    """A DataArray that reads what is asked of it, with the attributes of the HDF5 dataset."""
    import xarray

    return xarray.DataArray(dask_array(path, rows), dims=dims, attrs=tegula.open(path).attrs)


def jax_array(path: str, sharding: Any) -> Any:
    """A sharded JAX array; each process reads the shards of its own devices only."""
    import jax

    ds = tegula.open(path)
    return jax.make_array_from_callback(ds.shape, sharding, lambda index: ds[index])


def torch_tensor(path: str) -> Any:
    """A tensor that shares the memory that was loaded."""
    import torch

    return torch.from_dlpack(tegula.load(path))


def numpy_in_tiles(path: str, tiles: int) -> list[np.ndarray[Any, Any]]:
    """One numpy view for each worker."""
    return [view for _, view in tegula.load(path, tiles=tiles).tiles]


def heat_array(path: str, comm: Any) -> Any:
    """A DNDarray of Heat on all ranks of an mpi4py communicator: each reads its rows and hands
    on the memory that they lie in."""
    import heat
    import torch

    a = tegula.load(path, comm=comm)
    return heat.array(torch.from_dlpack(a.local), is_split=0, comm=heat.MPICommunication(comm))


def torch_dtensor(path: str, mesh: Any, comm: Any = None) -> Any:
    """A DTensor cut along its first axis over a 1-d mesh, as torch.chunk cuts; each rank reads its
    own rows. With an mpi4py communicator rank 0 reads the headers for all, without one (torchrun)
    each rank does."""
    import torch
    from torch.distributed.tensor import DTensor, Shard

    ds = tegula.open(path, comm=comm)
    rows = -(-ds.shape[0] // mesh.size())
    first = min(mesh.get_local_rank() * rows, ds.shape[0])
    local = torch.from_dlpack(ds[first : min(first + rows, ds.shape[0])])
    whole = torch.empty(ds.shape, dtype=local.dtype, device="meta")
    return DTensor.from_local(
        local, mesh, [Shard(0)], run_check=False, shape=whole.shape, stride=whole.stride()
    )
