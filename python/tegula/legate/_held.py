"""Tasks of a scope of ``StreamingMode.STRICT``,
which Legate cuts as it cuts all of that scope (_stream.py).

SPDX-License-Identifier: Apache-2.0
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from legate.core import TaskContext, get_legate_runtime
from legate.core import types as ty
from legate.core.task import InputStore, OutputStore, task

from .. import _core, _device
from .._arguments import Shape
from .._errors import Error, InternalError
from .._index import slices
from .._memory import address
from .._numpy import NDArray
from . import _tasks
from ._errors import portable


class Held(_tasks.Run):
    """Tasks of a STRICT scope, which Legate cuts as it likes: a run of so many elements.  They copy
    from memory that was read, or write what is saved; the last one gives the name."""

    def __init__(
        self,
        number: int,
        elements: int,
        memory: NDArray | None = None,
        saving: tuple[_core.Saving, bytes] | None = None,
    ) -> None:
        super().__init__(number, elements)
        self.memory, self.saving, self.begun = memory, saving, set[Shape]()

    def claim(self, box: Shape) -> bool:
        """Whether a task is the first with that box:
        along an axis that was broadcast all tasks see the same one."""
        with self.lock:
            first = box not in self.begun
            self.begun.add(box)
        return first

    def end(self) -> None:
        saving, self.saving, self.memory = self.saving, None, None
        try:
            if saving is not None and self.failures:
                saving[0].abandon()
            elif saving is not None:
                _tasks.wanted(self.number)
                _tasks.commit(*saving)
        except BaseException as error:
            self.failures.append(((), portable(error)))
        super().end()

    def lose(self, error: Error) -> None:
        """They will never run."""
        self.failures.append(((), error))
        self.end()


def _held_of(number: int, store: Any) -> Held | None:
    """None for a task that is not needed."""
    held = _tasks.runs.get(number)
    return (
        held
        if isinstance(held, Held) and held.claim((*store.domain.lo, *store.domain.hi))
        else None
    )


def _part(ctx: TaskContext, store: Any) -> tuple[Shape, Shape, NDArray | _device.Tile]:
    """The box of a task that Legate has cut, and its memory."""
    memory = _tasks.memory_of(ctx, store)
    lo = tuple(store.domain.lo)
    return lo, _tasks.sum_of(lo, memory.shape), memory


@task(variants=_tasks.VARIANTS_OF_TILES)
def put_part(ctx: TaskContext, out: OutputStore, number: int) -> None:
    """What the caller has read."""
    _put_part(ctx, out, number)


def _put_part(ctx: TaskContext, out: Any, number: int) -> None:
    held = _held_of(number, out)
    if held is None or held.memory is None:
        return
    lo, hi, local = _part(ctx, out)
    source = held.memory[slices(lo, hi)]
    if isinstance(local, _device.Tile):
        _device.fill(
            local, source.dtype, lambda low, high, part: np.copyto(part, source[slices(low, high)])
        )
    else:
        local.view(source.dtype)[...] = source
    held.leave(source.size)


@task(variants=_tasks.VARIANTS_OF_TILES, options=_tasks.SAVES)
def write_part(ctx: TaskContext, array: InputStore, number: int, scalar: int) -> None:
    """A save within a STRICT scope: one task is all that Legate streams, whatever else is in it."""
    _write_part(ctx, array, number, scalar)


def _write_part(ctx: TaskContext, array: Any, number: int, scalar: int) -> None:
    held = _held_of(number, array)
    if held is None or held.saving is None:
        return
    saving, _ = held.saving
    size = math.prod(
        high - low + 1 for low, high in zip(array.domain.lo, array.domain.hi, strict=True)
    )
    try:
        _tasks.wanted(number)
        lo, hi, local = _part(ctx, array)
        if scalar:
            lo, hi, local = (), (), _tasks.without_axes(local)

        def write(low: Shape, high: Shape, memory: NDArray) -> None:
            saving.tile(address(memory), low, high, memory.strides)

        if isinstance(local, _device.Tile):
            _device.drain(local, np.dtype(f"V{local.itemsize}"), _tasks.shifted(write, lo), None)
        else:
            write(lo, hi, local)
    except BaseException as error:
        held.failures.append((tuple(ctx.task_index), portable(error)))
    finally:
        held.leave(size)


def submit_held(
    kind: Any, held: Held, inputs: Sequence[Any] = (), outputs: Sequence[Any] = (), *arguments: int
) -> None:
    """One that Legate cuts, as it cuts what else is in the scope."""
    job = get_legate_runtime().create_auto_task(kind.library, kind.task_id)
    for store in inputs:
        job.add_input(store)
    for store in outputs:
        job.add_output(store)
    for value in (held.number, *arguments):
        job.add_scalar_arg(value, ty.int64)
    _tasks.runs[held.number] = held
    try:
        get_legate_runtime().submit(job)
    except BaseException:
        held.lose(InternalError("its tasks were not launched"))
        raise
