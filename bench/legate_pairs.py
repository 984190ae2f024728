"""One comparison with Legate in one process, as tegula_bench makes them: JSON with the seconds of
subject, limit, a and b.

SPDX-License-Identifier: Apache-2.0

usage: legate_pairs.py SUBJECT PEER PATH [TARGET-FOLDER]
Subjects: load, from_file, to_file, durable (to_file that is on the disk when it ends). Peers: limit
(plain parallel pread into memory that is there), hand (a loader as people write it: a task with
np.load of a memory map), theirs (legate.io.hdf5), theirs_to_file, theirs_durable (and then
fdatasync of each of its files). A save replaces the one before: legate.io.hdf5 cuts its files first
and so gets their memory back at once, tegula keeps the old file until the new one is whole. In a
virtual machine that gives free memory back to its host, fresh memory costs many times as much, and
the time of tegula's save is then that of the memory; a durable save gives back that of the old file
first. Memory of arrays is re-used by the runtime, as in a program that runs; each side ends with a
fence. Afterwards the arrays are compared. Run in an environment with legate and nvidia-cupynumeric.
"""

import json
import os
import sys
import threading
import time

import cupynumeric
import numpy as np
import tegula.legate
from legate.core import LogicalArray, TaskContext, TaskTarget, VariantOptions, get_legate_runtime
from legate.core import types as ty
from legate.core.task import OutputStore, task

PAIRS = 15
CHUNK = 8 << 20
runtime = get_legate_runtime()
processors = runtime.get_machine().count(TaskTarget.CPU)


def headers(folder):
    """(path, rows before it, rows, shape of a row, dtype, offset, Fortran order) of each shard."""
    found, first = [], 0
    for name in sorted(os.listdir(folder)):
        if name.endswith(".npy"):
            with open(os.path.join(folder, name), "rb") as file:
                version = np.lib.format.read_magic(file)
                shape, fortran, dtype = (
                    np.lib.format.read_array_header_1_0
                    if version[0] == 1
                    else np.lib.format.read_array_header_2_0
                )(file)
                found.append(
                    (
                        os.path.join(folder, name),
                        first,
                        shape[0],
                        shape[1:],
                        dtype,
                        file.tell(),
                        fortran,
                    )
                )
                first += shape[0]
    return found, first


# ---- peers ----


def plain_limit(folder):
    """A function that reads all bytes with as many threads as there are processors."""
    shards, rows = headers(folder)
    row_bytes = int(np.prod(shards[0][3])) * shards[0][4].itemsize
    memory = np.ones(rows * row_bytes, "u1")
    pieces = [
        (path, first * row_bytes + at, offset + at, min(CHUNK, count * row_bytes - at))
        for path, first, count, _, _, offset, _ in shards
        for at in range(0, count * row_bytes, CHUNK)
    ]

    def read():
        left, lock, files = iter(pieces), threading.Lock(), {}

        def work():
            while True:
                with lock:
                    piece = next(left, None)
                    if piece is None:
                        return
                    path, at, offset, size = piece
                    if path not in files:
                        files[path] = os.open(path, os.O_RDONLY)
                view = memoryview(memory)[at : at + size]
                while view:
                    got = os.preadv(files[path], [view], offset)
                    view, offset = view[got:], offset + got

        threads = [threading.Thread(target=work) for _ in range(processors - 1)]
        for thread in threads:
            thread.start()
        work()
        for thread in threads:
            thread.join()
        for file in files.values():
            os.close(file)

    return read


@task(options=VariantOptions(may_throw_exception=True))
def hand_task(ctx: TaskContext, out: OutputStore, which: bytes) -> None:
    names, firsts = json.loads(which)
    tile, low = np.asarray(out), out.domain.lo[0]
    high = low + tile.shape[0]
    for name, first, last in zip(names, firsts, firsts[1:]):
        a, b = max(first, low), min(last, high)
        if a < b:
            tile[a - low : b - low] = np.ascontiguousarray(
                np.load(name, mmap_mode="r")[a - first : b - first]
            )


def by_hand(folder):
    def load():
        shards, rows = headers(folder)
        store = runtime.create_store(ty.float32, (rows, *shards[0][3]))
        part = store.partition_by_tiling((-(-rows // processors), *shards[0][3]))
        job = runtime.create_manual_task(hand_task.library, hand_task.task_id, part.color_shape)
        job.add_output(part)
        which = json.dumps(
            [[shard[0] for shard in shards], [shard[1] for shard in shards] + [rows]]
        ).encode()
        job.add_scalar_arg(np.frombuffer(which, "u1"), (ty.uint8,))
        job.throws_exception(Exception)
        runtime.submit(job)
        return LogicalArray.from_store(store)

    return load


# ---- pairs ----


def side(name, path, target):
    from legate.io import hdf5 as theirs

    if name == "limit":
        return plain_limit(path)
    if name == "hand":
        return by_hand(path)
    if name == "load":
        return lambda: tegula.legate.load(path)
    module = theirs if name.startswith("theirs") else tegula.legate
    if target is None:
        return lambda: module.from_file(path, dataset_of(path))
    array, file = cupynumeric.asarray(tegula.legate.load(path)), os.path.join(target, name + ".h5")
    if name == "durable":
        return lambda: tegula.legate.save(
            array, file, "x", overwrite=True, whole_file=True, durable=True
        )
    if name == "theirs_durable":
        return lambda: (
            module.to_file(array, file, "x"),
            runtime.issue_execution_fence(block=True),
            bring_to_disk(file),
        )
    return lambda: module.to_file(array, file, "x")


def bring_to_disk(file):
    """The file and its tiles, which lie in a folder beside it."""
    folder = file[: -len(".h5")] + "_legate_vds"
    for path in [file, *(os.path.join(folder, name) for name in os.listdir(folder))]:
        descriptor = os.open(path, os.O_RDWR)
        os.fdatasync(descriptor)
        os.close(descriptor)


def dataset_of(path):
    import h5py

    with h5py.File(path) as file:
        return next(iter(file))


def timed(run):
    runtime.issue_execution_fence(block=True)
    start = time.perf_counter()
    result = run()
    runtime.issue_execution_fence(block=True)
    seconds = time.perf_counter() - start
    del result
    return seconds


def check(subject, peer, target):
    """Both hold the same numbers."""
    if target is not None:
        import h5py

        first, second = (
            h5py.File(os.path.join(target, name + ".h5"))["x"][()] for name in (subject[0], peer[0])
        )
    else:
        first, second = (
            None if (made := run()) is None else np.array(cupynumeric.asarray(made))
            for _, run in (subject, peer)
        )
    if first is not None and second is not None and not np.array_equal(first, second):
        sys.exit("legate_pairs: the two sides hold different numbers")


def main():
    subject, peer, path = sys.argv[1:4]
    target = sys.argv[4] if len(sys.argv) > 4 else None
    ours, other = side(subject, path, target), side(peer, path, target)
    slower = max(timed(ours), timed(other), timed(ours), timed(other))
    pairs = 5 if slower > 8 else 9 if slower > 2 else PAIRS
    times = {"subject": [], "limit": [], "a": [], "b": []}
    order = [("limit", other), ("subject", ours), ("a", other), ("b", other)]
    for index in range(pairs):
        for name, run in order if index % 2 == 0 else [order[3], order[2], order[1], order[0]]:
            times[name].append(timed(run))
    check((subject, ours), (peer, other), target)
    print(json.dumps(times))


if __name__ == "__main__":
    main()
