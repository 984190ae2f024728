"""Loads on ranks, by tegula and by another way, in turn in one job of MPI:
rank 0 prints one JSON object.

SPDX-License-Identifier: Apache-2.0

usage: mpiexec -n N python ranks_pairs.py tegula|tegula_heat|plain h5py|heat_npy|heat_hdf5 PATH
[PAIRS] Each rank is bound to a processor of its own. The clock runs from a barrier to the end of
the last rank. `peak`: by how much the memory of all ranks together grows at most (VmHWM, set back
before), the largest of all runs but the first, which opens libraries; `processor`: seconds of a
run, over all ranks, the median. tegula_heat makes the same array of Heat as Heat itself; h5py: each
rank slices its rows. plain: what no loader can be faster than, one read of each rank's half of the
file into new memory.
"""

import gc
import importlib.util
import json
import os
import pathlib
import statistics
import sys
import time

rank = int(os.environ.get("PMI_RANK", "0"))
granted = sorted(os.sched_getaffinity(0))
os.sched_setaffinity(0, {granted[rank % len(granted)]})  # before libraries count processors

from mpi4py import MPI  # noqa: E402

comm = MPI.COMM_WORLD


def recipes():
    spec = importlib.util.spec_from_file_location(
        "recipes", pathlib.Path(__file__).parents[1] / "examples/recipes.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ways(path):
    """name -> what makes it: the libraries are imported before anything is timed."""

    def tegula():
        import tegula as module

        return lambda: module.load(path, comm=comm)

    def tegula_heat():
        heat_array = recipes().heat_array
        import heat  # noqa: F401

        return lambda: heat_array(path, comm)

    def by_h5py():
        import h5py

        def load():
            with h5py.File(path) as file:
                data = file["x"]
                rows = -(-data.shape[0] // comm.size)
                return data[comm.rank * rows : (comm.rank + 1) * rows]

        return load

    def plain():
        import numpy

        def load():
            size = os.path.getsize(path) // comm.size
            made, done = numpy.empty(size, "u1"), 0
            with open(path, "rb", buffering=0) as file:
                file.seek(comm.rank * size)
                while done < size:
                    done += file.readinto(made[done:])
            return made

        return load

    def heat_npy():
        import heat

        return lambda: heat.load_npy_from_path(path, dtype=heat.float32, split=0)

    def heat_hdf5():
        import heat

        return lambda: heat.load_hdf5(path, "x", dtype=heat.float32, split=0)

    return {
        "tegula": tegula,
        "tegula_heat": tegula_heat,
        "h5py": by_h5py,
        "plain": plain,
        "heat_npy": heat_npy,
        "heat_hdf5": heat_hdf5,
    }


def memory(field):
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field + ":"))


class Side:
    def __init__(self, load):
        self.load, self.peaks, self.processor = load, [], []

    def run(self):
        gc.collect()
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
        before = memory("VmRSS")
        comm.Barrier()
        start, processor = time.monotonic(), time.process_time()
        loaded = self.load()
        end, processor = time.monotonic(), time.process_time() - processor
        grown = memory("VmHWM") - before
        del loaded
        self.peaks.append(comm.allreduce(grown))
        self.processor.append(comm.allreduce(processor))
        return comm.allreduce(end, MPI.MAX) - comm.allreduce(start, MPI.MIN)


def main():
    subject, peer = (Side(ways(sys.argv[3])[name]()) for name in sys.argv[1:3])
    slower = max(peer.run(), subject.run())
    pairs = int(sys.argv[4]) if len(sys.argv) > 4 else 5 if slower > 8 else 9 if slower > 2 else 15
    times = {"subject": [], "limit": [], "a": [], "b": []}
    order = [("limit", peer), ("subject", subject), ("a", peer), ("b", peer)]
    for index in range(pairs):
        for name, side in order if index % 2 == 0 else [order[3], order[2], order[1], order[0]]:
            times[name].append(side.run())
    if rank == 0:
        peaks = [max(side.peaks[1:]) for side in (subject, peer)]
        print(
            json.dumps(
                {
                    **times,
                    "peak": peaks,
                    "processor": [statistics.median(side.processor) for side in (subject, peer)],
                }
            )
        )


main()
