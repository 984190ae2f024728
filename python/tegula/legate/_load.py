"""Loading.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import hashlib
import math
import os
import pickle
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from legate.core import (
    LEGATE_MAX_DIM,
    ExceptionMode,
    Scalar,
    Scope,
    TaskTarget,
    Type,
    VariantCode,
    get_legate_runtime,
    is_running_in_task,
)
from legate.core import types as ty

from .._arguments import Shape
from .._dataset import Dataset, tiling_of
from .._dtypes import is_bfloat16
from .._errors import Error, InternalError, UnsupportedError
from .._open import open
from .._sources import Manifest, Path
from . import _home, _tasks
from ._errors import TooManyAxesError
from ._held import Held, put_part, submit_held
from ._names import array_of
from ._stream import check_one_process, launching, strict
from ._wait import hearing, stop, wait_for


def processors() -> int:
    """How many of them run our tasks: GPUs, where there are any,
    else groups of cores, else cores."""
    machine = get_legate_runtime().get_machine()
    gpus = machine.count(TaskTarget.GPU) if VariantCode.GPU in _tasks.VARIANTS_OF_TILES else 0
    return max(1, int(gpus or machine.count(TaskTarget.OMP) or machine.count(TaskTarget.CPU)))


def room() -> int:
    """Bytes of the memory that Legate has for arrays."""
    config = get_legate_runtime().realm_config()
    gpus = get_legate_runtime().get_machine().count(TaskTarget.GPU)
    return (
        int(config.fbmem or 0) * gpus
        if gpus
        else int(config.sysmem or 0) + int(config.numamem or 0)
    )


def at_home() -> bool:
    """Legate ends a process that calls it from another thread than the one that started it."""
    return threading.current_thread() is _home


def not_in_a_task() -> None:
    if is_running_in_task():
        raise RuntimeError(
            "tasks cannot make arrays of Legate: use tegula.load and tegula.save in them"
        )
    if not at_home():
        raise RuntimeError(
            "this thread cannot use Legate, only the one that started it can: use tegula.load and "
            "tegula.save in others"
        )


def add_bytes(job: Any, data: bytes) -> None:
    job.add_scalar_arg(np.frombuffer(data, "u1"), (ty.uint8,))


def tile_of(
    shape: Shape, tiles: int | None, axis: int, tile_shape: Sequence[int] | None, overdecompose: int
) -> tuple[Shape, int]:
    """The shape of the first tile, and the number of all."""
    if tiles is None and tile_shape is None:
        tiles = processors()
    boxes = tiling_of(shape, tiles, axis, tile_shape, overdecompose).boxes()
    lo, hi = boxes[0]
    return tuple(max(1, high - low) for low, high in zip(lo, hi, strict=True)), len(boxes)


def check_axes(ndim: int, path: str | None = None) -> None:
    if ndim > LEGATE_MAX_DIM:
        raise TooManyAxesError(
            f"arrays of Legate have at most {LEGATE_MAX_DIM} axes, found {ndim}", path=path
        )


def _first(dataset: Dataset) -> str | None:
    return next(iter(dataset.files), None)


def _type_of(dataset: Dataset) -> Any:
    dtype = dataset.dtype
    if dtype.kind in "biufc" and not is_bfloat16(dtype):
        try:
            return Type.from_numpy_dtype(dtype)
        except (NotImplementedError, TypeError, ValueError):
            pass
    elif (
        dtype.kind == "V"
        and dtype.names is None
        and not is_bfloat16(dtype)
        and not dataset._text.endswith("bfloat16")
    ):
        return ty.binary_type(dtype.itemsize)
    hint = "tegula.load gives a numpy array"
    raise UnsupportedError(
        f"Legate has no type for elements of dtype {dtype}", path=_first(dataset), hint=hint
    )


class Launched(NamedTuple):
    """An array that is being read."""

    array: Any
    run: _tasks.Run | None


# interrupted ones whose tasks have not ended, and what they read
_stopping: list[tuple[_tasks.Run, bytes]] = []


def _sweep() -> None:
    for one in [one for one in _stopping if one[0].ended.is_set()]:
        _stopping.remove(one)
        _tasks.datasets.forget(one[1])


class Source:
    """An open dataset as tasks get it: as a manifest, with which each process opens it once more
    for its tasks; what has none that is short enough, and a reader, is lent to the tasks of this
    process as it is."""

    def __init__(self, dataset: Dataset) -> None:
        not_in_a_task()
        _sweep()
        check_axes(dataset.ndim, _first(dataset))
        self.dataset, self.type, self.lent = dataset, _type_of(dataset), False
        parts = dataset.__reduce__()[1]
        try:
            self.text = pickle.dumps(parts)
        except (pickle.PicklingError, AttributeError, TypeError):
            # a reader's function that is no function of a module
            if get_legate_runtime().node_count > 1:
                raise
            self.text = os.urandom(16)
        self.key = hashlib.blake2b(self.text, digest_size=16).digest()
        if not isinstance(parts[0], Manifest):
            self.lent = True
            _tasks.datasets.lend(self.key, dataset)

    def read(self, lo: Shape, hi: Shape, tile: Shape, tiles: int, flat: bool = False) -> Any:
        """A new array of that box, read by as many tasks as it has tiles; a 0-d one with `flat`
        as one axis of one element."""
        return self.finish(
            self.launch(lo, hi, tile, tiles, flat, Scope.exception_mode() == ExceptionMode.DEFERRED)
        )

    def launch(
        self, lo: Shape, hi: Shape, tile: Shape, tiles: int, flat: bool, deferred: bool = False
    ) -> Launched:
        """Begins to read that array.  With `deferred`, and where runs are not known, what fails
        is the runtime's to raise."""
        with launching():
            shape = tuple(high - low for low, high in zip(lo, hi, strict=True)) or (1,)
            store = get_legate_runtime().create_store(self.type, shape)
            array = array_of(store if self.dataset.shape or flat else store.project(0, 0))
            if math.prod(shape) == 0:
                kind = self.dataset.dtype.kind
                store.fill(
                    Scalar(
                        bytes(self.dataset.dtype.itemsize)
                        if kind == "V"
                        else False
                        if kind == "b"
                        else 0,
                        self.type,
                    )
                )
                return Launched(array, None)
            if strict():
                self._put(store, lo, hi)
                return Launched(array, None)
            return Launched(array, self._launch(store, lo, tile or (1,), tiles, deferred))

    def _put(self, store: Any, lo: Shape, hi: Shape) -> None:
        """Reads it here and now, because what fails in a task of a STRICT scope arrives nowhere;
        tasks put it into the array."""
        check_one_process("load")
        memory = np.empty(tuple(store.shape), self.dataset.dtype)
        with hearing():
            self.dataset._read_box(lo, hi, memory if self.dataset.shape else memory.reshape(()))
        submit_held(put_part, Held(next(_tasks.numbers), memory.size, memory), outputs=(store,))

    def _launch(
        self, store: Any, lo: Shape, tile: Shape, tiles: int, deferred: bool
    ) -> _tasks.Run | None:
        runtime, shape = get_legate_runtime(), tuple(store.shape)
        partition = store.partition_by_tiling(tile)
        if math.prod(partition.color_shape) != tiles:
            raise InternalError(
                f"Legate cuts the array into another number of tiles: expected {tiles}, found "
                f"{partition.color_shape}"
            )
        number = next(_tasks.numbers)
        run = None if deferred else _tasks.new_run(number, tiles)
        kind = _tasks.read_tile if run is None else _tasks.read_tile_of_run
        job = runtime.create_manual_task(kind.library, kind.task_id, partition.color_shape)
        job.add_output(partition)
        for data in (self.key, self.text, pickle.dumps((lo, shape, tile))):
            add_bytes(job, data)
        if run is None:
            self._submit(job)
        else:
            job.add_scalar_arg(number, ty.int64)
            runtime.submit(job)
        return run

    def _submit(self, job: Any) -> None:
        job.throws_exception(Exception)
        # the array would be there without its numbers
        ignored = Scope.exception_mode() == ExceptionMode.IGNORED
        try:
            with Scope(exception_mode=ExceptionMode.IMMEDIATE) if ignored else nullcontext():
                get_legate_runtime().submit(job)
        except Error as error:
            error.__cause__ = _tasks.causes.pop(str(error), None)
            raise

    def finish(self, launched: Launched) -> Any:
        """The array, once it is there."""
        run = launched.run
        try:
            wait_for(run)
        except BaseException:
            self.abandon(launched)
            raise
        if run is not None:
            run.raise_first()
        return launched.array

    def abandon(self, launched: Launched) -> None:
        """Nobody wants it any more."""
        stop(launched.run)
        if launched.run is not None and not launched.run.ended.is_set():
            _stopping.append((launched.run, self.key))

    def close(self) -> None:
        if self.lent and Scope.exception_mode() != ExceptionMode.IMMEDIATE and not strict():
            get_legate_runtime().issue_execution_fence(block=True)  # tasks may still want it
        if all(key != self.key for _, key in _stopping):
            _tasks.datasets.forget(self.key)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def load(
    path: Path | Dataset,
    dataset: str | None = None,
    *,
    tiles: int | None = None,
    axis: int = 0,
    tile_shape: Sequence[int] | None = None,
    overdecompose: int = 1,
    **open_options: Any,
) -> Any:
    """Loads an array of any format and layout into a new ``LogicalArray``, which
    ``cupynumeric.asarray`` takes without a copy.

    It is a ``LogicalStore`` where Legate has no other arrays.  The files are described here; then
    each tile is read by a task of its own, straight into its memory.  Returns when the array is
    there; within ``legate.core.Scope(exception_mode=ExceptionMode.DEFERRED)`` at once, and what
    failed is raised at the end of that scope.  Exceptions that a scope ignores are raised all the
    same.  Within a scope of ``StreamingMode.STRICT`` the caller reads (docs/legate.md).

    Only the thread that started Legate may call it.

    Args:
        path, dataset, open_options: as for :func:`tegula.open`; or an open dataset.
        tiles: cut `axis` into about this many even tiles; None: one for each processor.
        axis: the axis that is cut.
        tile_shape: a grid of tiles of this shape instead.
        overdecompose: this many times as many tiles.

    Raises:
        Error: as :func:`tegula.load`; also what failed in a task.  The runtime goes on.
        UnsupportedError: for dtypes that Legate has not, and more than 6 axes.
        ValueError, TypeError: for arguments that make no sense.
    """
    if isinstance(path, Dataset):
        if dataset is not None or open_options:
            raise ValueError("an open dataset was given: options of open() make no sense")
        found = path
    else:
        with hearing():
            found = open(path, dataset, **open_options)
    tile, count = tile_of(found.shape, tiles, axis, tile_shape, overdecompose)
    with Source(found) as source:
        return source.read((0,) * found.ndim, found.shape, tile, count)
