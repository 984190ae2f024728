"""Saving.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import math
import os
import pickle
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from legate.core import get_legate_runtime, is_running_in_task
from legate.core import types as ty

from .. import _core
from .._arguments import Shape, byte_order_text, choice, flag, lengths, number, text_or_none
from .._attributes import attributes_of
from .._context import context, fence_at_exit, raise_first
from .._dtypes import text_of
from .._errors import Error, UnsupportedError
from .._memory import tiling
from .._save import _fill_bytes
from .._sources import before_use, path_of, rooted
from . import _tasks
from ._held import Held, submit_held, write_part
from ._load import add_bytes, at_home, check_axes, not_in_a_task, tile_of
from ._names import as_logical, data_of, is_nested
from ._stream import check_may_wait, check_one_process, launching, settle, settle_all, strict
from ._wait import stop, wait_for

_CHUNK_BYTES = 4 << 20


class _Pending(NamedTuple):
    place: str
    run: _tasks.Run | None
    result: Any  # a store with one record, for who knows no run


_pending: list[_Pending] = []
_failed: list[Error] = []


# ---- the end of a save ----


def _outcome(saved: _Pending) -> Error | None:
    """Waits for it."""
    if isinstance(saved.run, Held):
        settle(saved.run)
    wait_for(saved.run)
    if saved.run is not None:
        return saved.run.first()
    check_may_wait()
    failed, _, payload = _tasks.read_record(np.asarray(saved.result.get_physical_store()))
    return pickle.loads(payload) if failed else None


def _end(saved: _Pending) -> None:
    error = _outcome(saved)
    if saved in _pending:
        _pending.remove(saved)
    interrupted = saved.run is not None and saved.run.stop.is_set()
    if error is not None and not interrupted:
        _failed.append(error)


def fence() -> None:
    """Waits until every ``save(..., block=False)`` has ended; so does
    ``get_legate_runtime().issue_execution_fence(block=True)``, without raising.

    Raises:
        Error: of the first save that failed; call it again for the next one.
        ValueError: within a scope of ``StreamingMode.STRICT`` that holds a save back.
        KeyboardInterrupt: when the user pressed Ctrl-C: the saves go on.
    """
    not_in_a_task()
    while _pending:
        _end(_pending[0])
    settle_all()
    raise_first(_failed)


def _within(a: str, b: str) -> bool:
    return a == b or a.startswith(b.rstrip("/") + "/")


def _wait_for(paths: Sequence[bytes]) -> None:
    """Before something is opened or saved to: saves to these paths, to what is in them,
    and to what they are in."""
    if not _pending or is_running_in_task():
        return
    names = [os.fsdecode(path) for path in paths]
    places = list(map(os.path.realpath, names))
    patterns = any(set("*?[") & set(name) for name in names)
    for saved in list(_pending):
        if patterns or any(
            _within(place, saved.place) or _within(saved.place, place) for place in places
        ):
            if at_home():
                _end(saved)
            elif saved.run is None or (
                isinstance(saved.run, Held) and not saved.run.ended.is_set()
            ):
                raise RuntimeError(
                    "this thread cannot wait for a save by Legate: call tegula.legate.fence() "
                    "before in the one that started it"
                )
            else:
                saved.run.ended.wait()


before_use.append(_wait_for)
get_legate_runtime().add_shutdown_callback(lambda: fence_at_exit(fence))


# ---- its beginning ----


def _store_of(array: Any) -> Any:
    logical = as_logical(array)
    if logical.unbound:
        raise ValueError("array: it has no shape yet (unbound), so it cannot be saved")
    if is_nested(logical):
        raise ValueError(
            "array: expected numbers, found an array with missing values, or of texts or records"
        )
    check_axes(logical.ndim)
    return data_of(logical)


def _dtype_of(store: Any) -> np.dtype[Any]:
    found: np.dtype[Any] = np.dtype(store.type.to_numpy_dtype())
    return np.dtype(f"V{found.itemsize}") if found.kind in "SV" else found  # opaque items


def _chunks_of(shape: Shape, dtype: np.dtype[Any], chunks: Shape | None) -> Shape:
    """Chunks of whole rows where none are given, as large as tegula's own choice."""
    if chunks is not None:
        return chunks
    row = max(1, math.prod(shape[1:]) * dtype.itemsize)
    if row > _CHUNK_BYTES:
        raise ValueError(
            f"chunks: rows of {row} bytes are too long for chunks of whole rows, say which"
        )
    return (max(1, min(shape[0] if shape else 1, _CHUNK_BYTES // row)), *shape[1:])


def _aligned(tile: Shape, shape: Shape, chunks: Shape) -> Shape:
    """Tiles that hold whole chunks."""
    if len(chunks) != len(shape):
        raise ValueError(
            f"chunks: expected {len(shape)} lengths, one per axis, found {len(chunks)}"
        )
    if any(c < 1 for c in chunks):
        raise ValueError(f"chunks: expected lengths from 1 on, found {chunks}")
    return tuple(
        max(1, min(-(-t // c) * c, n)) for t, c, n in zip(tile, chunks, shape, strict=True)
    )


def _job(
    kind: Any, shape: Shape, stores: Sequence[Any], outputs: Sequence[Any], arguments: Sequence[Any]
) -> Any:
    job = get_legate_runtime().create_manual_task(kind.library, kind.task_id, shape)
    for store in stores:
        job.add_input(store)
    for store in outputs:
        job.add_output(store)
    for value in arguments:
        if isinstance(value, bytes):
            add_bytes(job, value)
        else:
            job.add_scalar_arg(value, ty.int64)
    return job


def _launch(
    store: Any, path: bytes, tile: Shape, target: Any, described: Any, chunked: bool
) -> _Pending:
    runtime = get_legate_runtime()
    shape, ndim, dtype = tuple(store.shape), store.ndim, text_of(_dtype_of(store))
    elsewhere = runtime.node_count > 1 or _tasks.pretend_elsewhere
    if chunked and elsewhere:
        raise ValueError(
            "layout: only one process can write a chunked dataset, and Legate runs several: "
            "expected contiguous or virtual"
        )
    number = next(_tasks.numbers)
    # a 0-d store cannot be cut; a task sees it with one axis of one element
    part, colors, full = None if ndim else store.promote(0, 1), (1,), shape or (1,)
    if ndim and math.prod(shape):
        part = store.partition_by_tiling(tile)
        colors = tuple(part.color_shape)
    size = _tasks.RECORD + (
        (60 << 10) + math.prod(colors) * (2 * len(path) + 1024) if elsewhere else 0
    )
    token, result = (
        runtime.create_store(ty.uint8, (size,)),
        runtime.create_store(ty.uint8, (_tasks.RECORD,)),
    )
    what = pickle.dumps((path, dtype, shape, tile, target, described))
    jobs = [_job(_tasks.begin, (1,), (), (token,), (number, what, int(elsewhere)))]
    if math.prod(full):
        status = runtime.create_store(ty.uint8, (*colors[:-1], colors[-1] * _tasks.RECORD))
        each = status.partition_by_tiling((*(1,) * (len(colors) - 1), _tasks.RECORD))
        place = pickle.dumps(
            (dtype, ndim, full, tile or (1,), described[2] if chunked and ndim else None)
        )
        try:
            jobs.append(_job(_tasks.write_tile, colors, (part, token), (each,), (number, place)))
        except RuntimeError:
            # what was broadcast from no axes cannot be cut: every task sees its one element
            jobs.append(_job(_tasks.write_tile, colors, (store, token), (each,), (number, place)))
    else:
        status = runtime.create_store(ty.uint8, (_tasks.RECORD,))
        status.fill(0)
    expected = math.prod(full) * store.type.size
    jobs.append(_job(_tasks.publish, (1,), (token, status), (result,), (number, expected)))
    # which ends with the last task
    saved = _Pending(os.path.realpath(os.fsdecode(path)), _tasks.new_run(number, 1), result)
    for job in jobs:  # all of them are sound by now: what is begun is ended
        runtime.submit(job)
    return saved


def _launch_held(
    store: Any, path: bytes, tile: Shape, target: Any, described: Any, chunked: bool
) -> _Pending:
    """In a STRICT scope: the files are begun here and now,
    one task writes all that Legate cuts for it."""
    check_one_process("save")
    if chunked:
        hint = "save after the scope, or use RELAXED"
        raise UnsupportedError(
            "chunked datasets cannot be written within a scope of StreamingMode.STRICT, which cuts "
            "tiles",
            hint=hint,
        )
    shape = tuple(store.shape)
    begun = _core.save_begin(
        context(1), text_of(_dtype_of(store)), tiling(shape, tile), path, target, described, None
    )
    held = Held(next(_tasks.numbers), math.prod(shape), saving=(begun, path))
    if math.prod(shape) == 0:
        held.end()
    else:
        submit_held(
            write_part, held, (store if shape else store.promote(0, 1),), (), int(not shape)
        )
    return _Pending(os.path.realpath(os.fsdecode(path)), held, None)


def save(
    array: Any,
    path: str | os.PathLike[str] | bytes,
    dataset: str | None = None,
    *,
    tiles: int | None = None,
    axis: int = 0,
    tile_shape: Sequence[int] | None = None,
    overdecompose: int = 1,
    format: str | None = None,
    layout: str | None = None,
    chunks: Sequence[int] | None = None,
    codec: str | None = None,
    fill: Any = None,
    attrs: Mapping[str, Any] | None = None,
    shards: int | None = None,
    order: str = "C",
    byte_order: str | None = None,
    overwrite: bool = False,
    durable: bool = False,
    whole_file: bool = False,
    block: bool = True,
) -> None:
    """Saves an array of Legate.  The target appears whole or not at all; each tile is written by a
    task, from its own memory.

    Args:
        array: a ``LogicalArray``, a ``LogicalStore`` or what has its data interface,
            such as cuPyNumeric arrays.
        tiles, axis, tile_shape, overdecompose: the tiles, as in :func:`load`; of chunked datasets
            they grow to whole chunks.
        layout: HDF5: "contiguous" (the default), "virtual" (a file for each tile, and one that maps
            them) or "chunked" (default with `chunks` or `codec`; where all of Legate is one
            process).
        block: False: return at once; the runtime orders the save with what happens to the array
            before and after.  :func:`fence` waits and raises what failed; Legate's own
            ``issue_execution_fence(block=True)`` waits too.  Opening the path waits.  Within a
            scope of ``StreamingMode.STRICT`` nothing can be waited for: it is always False.
        path, dataset and the rest: as for :func:`tegula.save`.

    Raises:
        ValueError: for arrays without a shape yet (unbound), and arguments that make no sense.
        TypeError: for what has no data interface of Legate.
        Error: when it could not be saved; nothing of it is left then.
        KeyboardInterrupt: when the user pressed Ctrl-C: the save stops,
            and nothing of it is left (docs/legate.md).
    """
    not_in_a_task()
    store, name = _store_of(array), path_of(path)
    if not name:
        raise ValueError("path: it is empty")
    name = rooted(name)
    if shards is not None:
        number("shards", shards, 1)
    dataset, format, layout, codec = (
        text_or_none(*one)
        for one in (("dataset", dataset), ("format", format), ("layout", layout), ("codec", codec))
    )
    flags = flag("overwrite", overwrite), flag("durable", durable), flag("whole_file", whole_file)
    block = flag("block", block)
    shape, dtype = tuple(store.shape), _dtype_of(store)
    tile, _ = tile_of(shape, tiles, axis, tile_shape, overdecompose)
    given = lengths("chunks", chunks)
    chunked = layout == "chunked" or (layout is None and (given is not None or bool(codec)))
    if chunked:
        given = _chunks_of(shape, dtype, given)
        tile = _aligned(tile, shape, given)
    swapped = byte_order_text(byte_order)
    target = (format, None, shards or 0, choice("order", order, ("C", "F")), swapped, *flags)
    described = dataset, layout, given, codec, _fill_bytes(fill, dtype), attributes_of(attrs)
    _wait_for((name,))
    if strict():
        block, saved = False, _launch_held(store, name, tile, target, described, chunked)
    else:
        with launching():
            saved = _launch(store, name, tile, target, described, chunked)
    if not block:
        _pending.append(saved)
        return
    try:
        error = _outcome(saved)
    except BaseException:
        _pending.append(saved)
        stop(saved.run)
        raise
    try:
        if error is not None:
            raise error
    finally:
        del error  # or the exception would hold itself, and the array with it
