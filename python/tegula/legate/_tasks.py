"""What runs on Legate's processors.  Tasks have a variant for single cores and one for groups of
cores (OMP); those that hold a tile have one for GPUs, too, where Legate has some: their tile is
memory of the GPU, and is copied piece by piece (_device.py).

SPDX-License-Identifier: Apache-2.0

Saving: `begin` makes the files, `write_tile` writes one tile each, `publish` gives the name or
takes everything back.  What happened goes through small stores of records, which order the tasks;
no task of a save raises.
"""

import gc
import itertools
import os
import pickle
import stat
import threading
from collections import OrderedDict
from typing import Any

import numpy as np
from legate.core import (
    StoreTarget,
    TaskContext,
    TaskTarget,
    VariantCode,
    VariantOptions,
    get_legate_runtime,
    is_running_in_task,
)
from legate.core.task import InputStore, OutputStore, task

from .. import _core, _device
from .._context import context
from .._dataset import Dataset, _restore
from .._errors import CancelledError, Error, InternalError, UnsupportedError
from .._index import slices
from .._memory import address, tiling
from .._numpy import NDArray
from .._sources import remember
from ._errors import portable

_VARIANTS = (VariantCode.CPU, VariantCode.OMP)


def variants_of_tiles(gpus: int) -> tuple[VariantCode, ...]:
    return (*_VARIANTS, VariantCode.GPU) if gpus else _VARIANTS


VARIANTS_OF_TILES = variants_of_tiles(get_legate_runtime().get_machine().count(TaskTarget.GPU))
_MOST_OF_GPU = 8  # threads that read for one
_KEPT = 8

Shape = tuple[int, ...]


def _not_in_tasks(phase: str, info: dict[str, int]) -> None:
    """Keeps the garbage collector from working in tasks: the first array of Legate that it found
    there would end the process.

    What is frozen it does not look at; another thread's collection finds it later.
    """
    if is_running_in_task():
        if phase == "start":
            gc.freeze()
        else:
            gc.unfreeze()


gc.callbacks.append(_not_in_tasks)


class Datasets:
    """Datasets that tasks of this process have open, each once."""

    def __init__(self) -> None:
        self.lock, self.kept, self.opened = (
            threading.Lock(),
            OrderedDict[tuple[bytes, int], Dataset](),
            0,
        )
        self.lent = dict[bytes, Dataset]()

    def get(self, key: bytes, source: bytes, threads: int) -> Dataset:
        with self.lock:
            found = self.lent.get(key)
            if found is None:
                found = self.kept.get((key, threads))
            if found is None:
                options, missing, _, *rest = pickle.loads(source)
                found = self.kept[key, threads] = _restore(options, missing, threads, *rest)
                self.opened += 1
                if len(self.kept) > _KEPT:
                    self.kept.popitem(last=False)
            return found

    def lend(self, key: bytes, dataset: Dataset) -> None:
        with self.lock:
            self.lent[key] = dataset

    def forget(self, key: bytes) -> None:
        with self.lock:
            self.lent.pop(key, None)
            for found in [kept for kept in self.kept if kept[0] == key]:
                del self.kept[found]


datasets = Datasets()
# what readers raised, by the text of the error that it became
causes: dict[str, BaseException] = {}
pretend_elsewhere = False  # tests: as if tasks ran in other processes
savings: dict[int, tuple[_core.Saving, bytes]] = {}  # begun in this process, and their paths


class Run:
    """The tasks of a load or save in this process: how many have not ended yet, what failed, and
    whether it is still wanted."""

    def __init__(self, number: int, tasks: int) -> None:
        self.number, self.left, self.lock = number, tasks, threading.Lock()
        self.stop, self.ended, self.failures = (
            _core.Flag(),
            threading.Event(),
            list[tuple[Shape, Error]](),
        )

    def leave(self, done: int = 1) -> None:
        """One of them has ended."""
        with self.lock:
            self.left -= done
            if self.left:
                return
        self.end()

    def end(self) -> None:
        runs.pop(self.number, None)
        self.ended.set()

    def first(self) -> Error | None:
        """What failed, and is no longer kept here."""
        failures, self.failures = self.failures, []
        return min(failures, key=lambda failure: failure[0])[1] if failures else None

    def raise_first(self) -> None:
        first = self.first()
        try:
            if first is not None:
                raise first
        finally:
            del first  # or the exception would hold itself, and arrays with it


numbers = itertools.count(1)
runs: dict[int, Run] = {}


def new_run(number: int, tasks: int) -> Run | None:
    """None where tasks may be in other processes, or begin later than they are submitted."""
    runtime = get_legate_runtime()
    if runtime.node_count > 1 or int(runtime.config().window_size) > 1:
        return None
    return runs.setdefault(number, Run(number, tasks))


def wanted(number: int) -> _core.Flag | None:
    """The flag that stops the work of a task."""
    run = runs.get(number)
    if run is not None and run.stop.is_set():
        raise CancelledError("it was interrupted")
    return run.stop if run is not None else None


def threads_of(ctx: TaskContext) -> int:
    if ctx.get_variant_kind() == VariantCode.GPU:
        gpus = max(1, int(get_legate_runtime().get_machine().count(TaskTarget.GPU)))
        return min(_MOST_OF_GPU, max(1, len(os.sched_getaffinity(0)) // gpus))
    if ctx.get_variant_kind() != VariantCode.OMP:
        return 1
    return max(1, int(get_legate_runtime().config().num_omp_threads))


def memory_of(ctx: TaskContext, store: Any) -> NDArray | _device.Tile:
    if ctx.get_variant_kind() == VariantCode.GPU and store.target == StoreTarget.FBMEM:
        return _device.tile_of(store, ctx.task_stream)
    return np.asarray(store)


def _local(
    ctx: TaskContext, store: Any, shape: Shape, tile: Shape
) -> tuple[Shape, Shape, NDArray | _device.Tile]:
    """The box of this task, and its memory."""
    index = tuple(ctx.task_index)
    lo = tuple(i * t for i, t in zip(index, tile, strict=True))
    hi = tuple(min(low + t, n) for low, t, n in zip(lo, tile, shape, strict=True))
    memory = memory_of(ctx, store)
    first = tuple(store.domain.lo)  # of what is mapped, which may be more
    if any(
        low < f or high > f + n for low, high, f, n in zip(lo, hi, first, memory.shape, strict=True)
    ):
        raise InternalError(
            f"a task was given another part of the array than its own: expected {lo} to {hi}, "
            f"found {store.domain}"
        )
    at, end = (tuple(a - f for a, f in zip(side, first, strict=True)) for side in (lo, hi))
    return (
        lo,
        hi,
        memory.part(at, end) if isinstance(memory, _device.Tile) else memory[slices(at, end)],
    )


def without_axes(local: NDArray | _device.Tile) -> NDArray | _device.Tile:
    return local.scalar() if isinstance(local, _device.Tile) else local.reshape(())


def shifted(move: _device.Move, origin: Shape) -> _device.Move:
    """What moves boxes of the array, for boxes of a tile."""
    return lambda lo, hi, memory: move(sum_of(lo, origin), sum_of(hi, origin), memory)


def sum_of(a: Shape, b: Shape) -> Shape:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _read(
    ctx: TaskContext, out: Any, key: bytes, source: bytes, place: bytes, number: int
) -> Error | None:
    """What it failed with, fit for the way."""
    try:
        stop = wanted(number)
        origin, shape, tile = pickle.loads(place)
        dataset = datasets.get(key, source, threads_of(ctx))
        lo, hi, local = _local(ctx, out, shape, tile)
        if not dataset.shape:  # one element in a store of one axis
            lo, hi, local = (), (), without_axes(local)
        add = origin if dataset.shape else ()
        lo, hi = sum_of(lo, add), sum_of(hi, add)
        if local.itemsize != dataset.dtype.itemsize:
            raise InternalError(
                f"expected elements of {dataset.dtype}, found some of {local.itemsize} bytes"
            )

        def read(low: Shape, high: Shape, memory: NDArray) -> None:
            dataset._read_box(low, high, memory, None, stop)

        if isinstance(local, _device.Tile):
            _device.fill(local, dataset.dtype, shifted(read, lo))
        else:
            read(lo, hi, local)
    except BaseException as error:
        failure = portable(error)
        if error.__cause__ is not None:
            failure.__cause__ = error.__cause__
        return failure
    return None


@task(variants=VARIANTS_OF_TILES, options=VariantOptions(may_throw_exception=True))
def read_tile(ctx: TaskContext, out: OutputStore, key: bytes, source: bytes, place: bytes) -> None:
    failure = _read(ctx, out, key, source, place, 0)
    if failure is None:
        return
    if failure.__cause__ is not None:
        remember(causes, str(failure), failure.__cause__)
    try:
        raise failure.with_traceback(None) from None  # its frames would travel too
    finally:
        # or it would hold this frame, and the tile with it,
        # until a collection in who knows which thread or scope
        del failure


@task(variants=VARIANTS_OF_TILES)
def read_tile_of_run(
    ctx: TaskContext, out: OutputStore, key: bytes, source: bytes, place: bytes, number: int
) -> None:
    """For who waits for the run, and not for the runtime."""
    run = runs[number]
    failure = _read(ctx, out, key, source, place, number)
    if failure is not None:
        run.failures.append((tuple(ctx.task_index), failure))
    run.leave()


# ---- records: (0 or 1: it failed, a number, bytes that follow), then a text or the exception ----

RECORD = 4096
_HEAD = 24
_BIG = 32 << 20


def write_record(store: Any, value: int = 0, payload: bytes = b"", failed: bool = False) -> None:
    memory = np.asarray(store).reshape(-1)
    memory[:] = _record(memory.size, value, payload, failed)


def _record(size: int, value: int, payload: bytes, failed: bool) -> NDArray:
    if _HEAD + len(payload) > size:
        raise InternalError(f"a record of {len(payload)} bytes does not fit into {size}")
    memory = np.zeros(size, "u1")
    head = np.array([failed, value, len(payload)], "i8")
    memory[:_HEAD] = head.view("u1")
    memory[_HEAD : _HEAD + len(payload)] = np.frombuffer(payload, "u1")
    return memory


def read_record(memory: NDArray) -> tuple[bool, int, bytes]:
    failed, value, size = np.ascontiguousarray(memory[:_HEAD]).view("i8").tolist()
    return bool(failed), value, memory[_HEAD : _HEAD + size].tobytes()


def _write_failure(store: Any, error: BaseException) -> None:
    write_record(store, payload=pickle.dumps(portable(error)), failed=True)


SAVES = VariantOptions(has_side_effect=True)


@task(variants=_VARIANTS, options=SAVES)
def begin(ctx: TaskContext, token: OutputStore, number: int, what: bytes, elsewhere: int) -> None:
    try:
        path, dtype, shape, tile, target, described = pickle.loads(what)
        saving = _core.save_begin(
            context(threads_of(ctx)),
            dtype,
            tiling(shape, tile),
            path,
            target,
            described,
            wanted(number),
        )
        savings[number] = saving, path
        try:
            write_record(
                token,
                payload=saving.to_json().encode("utf-8", "surrogateescape") if elsewhere else b"",
            )
        except BaseException:
            savings.pop(number)[0].abandon()
            raise
    except BaseException as error:
        _write_failure(token, error)


@task(variants=VARIANTS_OF_TILES, options=SAVES)
def write_tile(
    ctx: TaskContext,
    array: InputStore,
    token: InputStore,
    status: OutputStore,
    number: int,
    place: bytes,
) -> None:
    if ctx.get_variant_kind() == VariantCode.GPU:
        _write_from_gpu(ctx, array, token, status, number, place)
    else:
        _write(ctx, array, token, status, number, place)


def _write_from_gpu(
    ctx: TaskContext, array: Any, token: Any, status: Any, number: int, place: bytes
) -> None:
    """The records are in its memory, too."""
    told, tell = (memory_of(ctx, store) for store in (token, status))
    if isinstance(told, _device.Tile):
        text = np.empty(told.shape, "u1")
        _device.drain(told, text.dtype, lambda lo, hi, part: np.copyto(text[slices(lo, hi)], part))
        told = text
    made: NDArray = np.empty(tell.shape, "u1")
    _write(ctx, array, told, made, number, place)
    if isinstance(tell, _device.Tile):
        _device.fill(tell, made.dtype, lambda lo, hi, part: np.copyto(part, made[slices(lo, hi)]))
    else:
        tell[...] = made


def _write(
    ctx: TaskContext, array: Any, token: Any, status: Any, number: int, place: bytes
) -> None:
    try:
        failed, _, text = read_record(np.asarray(token))
        written = 0
        if not failed:
            wanted(number)
            dtype, ndim, shape, tile, unit = pickle.loads(place)
            lo, hi, local = _local(ctx, array, shape, tile)
            if not ndim:
                lo, hi, local = (), (), without_axes(local)
            write = _writer(ctx, number, text, dtype)
            if isinstance(local, _device.Tile):
                _device.drain(local, np.dtype(f"V{local.itemsize}"), shifted(write, lo), unit)
            else:
                write(lo, hi, local)
            written = local.nbytes
        write_record(status, written)
    except BaseException as error:
        _write_failure(status, error)


def _writer(ctx: TaskContext, number: int, text: bytes, dtype: str) -> _device.Move:
    found, json = savings.get(number), text.decode("utf-8", "surrogateescape")
    if found is None and not text:
        raise UnsupportedError("only the process that began this save can write to it")

    def write(lo: Shape, hi: Shape, memory: NDArray) -> None:
        if found is not None:
            found[0].tile(address(memory), lo, hi, memory.strides)
        else:
            _core.save_tile_from(
                context(threads_of(ctx)), json, dtype, address(memory), lo, hi, memory.strides
            )

    return write


def _held(path: bytes) -> int | None:
    """The big file that will be replaced, open: giving its space back takes as long as writing
    half of it, and need not be waited for."""
    try:
        held = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    info = os.fstat(held)
    if stat.S_ISREG(info.st_mode) and info.st_size >= _BIG:
        return held
    os.close(held)
    return None


def commit(saving: _core.Saving, path: bytes) -> None:
    old = _held(path)
    try:
        saving.commit()
    finally:
        _let_go(old)


def _let_go(held: int | None) -> None:
    if held is None:
        return
    try:
        threading.Thread(target=os.close, args=(held,)).start()
    except RuntimeError:  # no more threads
        os.close(held)


@task(variants=_VARIANTS, options=SAVES)
def publish(
    ctx: TaskContext,
    token: InputStore,
    status: InputStore,
    result: OutputStore,
    number: int,
    expected: int,
) -> None:
    saving, path = savings.pop(number, (None, b""))
    outcome = b""
    try:
        failed, _, payload = read_record(np.asarray(token))
        records = (
            [(failed, 0, payload)]
            if failed
            else [read_record(one) for one in np.asarray(status).reshape(-1, RECORD)]
        )
        outcome = next((payload for failed, _, payload in records if failed), b"")
        written = sum(value for _, value, _ in records)
        if outcome:
            pass
        elif saving is None:
            raise InternalError("the save was begun in another process")
        elif written != expected:
            raise InternalError(
                f"tasks have written another number of bytes: expected {expected}, found {written}"
            )
        else:
            wanted(number)
            committed, saving = saving, None
            commit(committed, path)
    except BaseException as error:
        outcome = pickle.dumps(portable(error))
    if saving is not None:
        saving.abandon()
    try:
        write_record(result, payload=outcome, failed=bool(outcome))
    finally:
        _publish_ended(runs.get(number), outcome)


def _publish_ended(run: Run | None, outcome: bytes) -> None:
    """Who waits in this process does not look into the record: Legate would have to map it."""
    if run is not None:
        if outcome:
            run.failures.append(((), pickle.loads(outcome)))
        run.leave()
