"""The functions of ``legate.io.hdf5``: the same names, arguments, checks and results.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import itertools
import math
import operator
import os
from collections.abc import Iterator, Sequence
from typing import Any, overload

from .._arguments import Shape, shown
from .._dataset import Dataset
from .._errors import Error, UnsupportedError
from .._open import open
from .._sources import path_of
from ._errors import MissingDatasetError, NotAFileError, as_theirs
from ._load import Launched, Source, not_in_a_task, room, tile_of
from ._save import save
from ._stream import strict
from ._wait import hearing

_NOTHING: Any = object()
# pieces for which there must be room: given before, given, read ahead, and the program's own
_AHEAD_OF = 4


def _text(path: Any, dataset_name: Any) -> str:
    if not isinstance(dataset_name, str):
        raise TypeError(f"dataset_name: expected str, found {type(dataset_name).__name__}")
    return os.fsdecode(path_of(path))


def _not_a_folder(name: str) -> None:
    if not name:
        raise NotAFileError("the path is empty, expected the name of a file")
    if os.path.isdir(name) or name.endswith(os.sep):
        hint = "tegula.legate.load takes folders of shards"
        raise NotAFileError(
            f'"{name}" is a folder, expected the name of a file', path=name, hint=hint
        )


def _opened(name: str, dataset_name: str) -> Dataset:
    _not_a_folder(name)
    if not dataset_name:
        raise MissingDatasetError(f'the name of the dataset in "{name}" is empty', path=name)
    try:
        with hearing():
            return open([name], dataset_name, format="hdf5")  # in a list, names are no patterns
    except Error as error:
        raise as_theirs(error, name) from None


def from_file(path: Any, dataset_name: str) -> Any:
    """Reads a dataset of an HDF5 file; see :func:`tegula.legate.load`, which has options.

    Args:
        path: the file.
        dataset_name: the full name in the file.

    Returns:
        A ``LogicalArray``.  That of a scalar has one axis of one element, as that of
        ``legate.io.hdf5`` has.

    Raises:
        MissingFileError, UnreadableFileError, TruncatedFileError, ForbiddenFileError,
            NotAFileError: also RuntimeError, as ``legate.io.hdf5`` raises.
        MissingDatasetError, UnsupportedError: also ValueError, as there.
        Error: what failed in a task.
    """
    found = _opened(_text(path, dataset_name), dataset_name)
    tile, count = tile_of(found.shape, None, 0, None, 1)
    with Source(found) as source:
        return source.read((0,) * found.ndim, found.shape, tile, count, flat=True)


def from_file_batched(
    path: Any, dataset_name: str, chunk_size: Sequence[int]
) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """Walks over a dataset in pieces of `chunk_size` elements along each axis,
    from low to high, cut at the end.

    The next piece is read while the one that was given is used, where Legate's memory has room for
    four of them; what fails there is raised when that piece is asked for.

    Yields:
        A ``LogicalArray`` of the piece, and where it begins in the dataset.

    Raises:
        ValueError: for lengths that are not one per axis, or below 1; from the first step on, as
            all that is raised here.
        UnsupportedError: within a scope of ``StreamingMode.STRICT``, for pieces of several shapes.
        Error: as :func:`from_file`.
    """
    try:  # sums of numpy's small integers wrap around
        chunk = tuple(operator.index(n) if hasattr(n, "__index__") else n for n in chunk_size)
        nothing = math.prod(chunk) <= 0 or any(length <= 0 for length in chunk)
    except TypeError:
        raise TypeError(
            f"chunk_size: expected whole numbers, one per axis, found {shown(chunk_size)}"
        ) from None
    if nothing:
        raise ValueError(f"chunk_size: expected lengths from 1 on, found {chunk}")
    if not all(hasattr(length, "__index__") for length in chunk):
        raise TypeError(f"chunk_size: expected whole numbers, found {chunk}")
    found = _opened(_text(path, dataset_name), dataset_name)
    if len(chunk) != found.ndim:
        raise ValueError(
            f"chunk_size: expected {found.ndim} lengths, one per axis, found {len(chunk)}"
        )
    with Source(found) as source:
        yield from _pieces(source, chunk)


def _pieces(source: Source, chunk: Shape) -> Iterator[tuple[Any, Shape]]:
    shape, ahead = source.dataset.shape, list[tuple[Launched, Shape]]()
    most = 2 if _AHEAD_OF * math.prod(chunk) * source.dataset.dtype.itemsize <= room() else 1
    uneven = any(n > length and n % length for n, length in zip(shape, chunk, strict=True))
    origins = itertools.product(
        *(range(0, n, length) for n, length in zip(shape, chunk, strict=True))
    )
    try:
        while True:
            if uneven and strict():  # Legate would end the process
                hint = "use RELAXED, or a chunk_size that divides the shape"
                raise UnsupportedError(
                    "within a scope of StreamingMode.STRICT all pieces must have one shape",
                    hint=hint,
                )
            for lo in itertools.islice(origins, most - len(ahead)):
                hi = tuple(
                    min(low + length, n) for low, length, n in zip(lo, chunk, shape, strict=True)
                )
                tile, count = tile_of(
                    tuple(high - low for low, high in zip(lo, hi, strict=True)), None, 0, None, 1
                )
                ahead.append((source.launch(lo, hi, tile, count, False), lo))
            if not ahead:
                return
            launched, lo = ahead.pop(0)
            given = [source.finish(launched)]
            del launched  # the piece is the program's
            yield given.pop(), lo
            not_in_a_task()
    finally:
        for launched, _ in ahead:
            source.abandon(launched)


@overload
def to_file(array: Any, path: Any, dataset_name: str, *, layout: str | None = None) -> None: ...


@overload
def to_file(*, obj: Any, path: Any, dataset_name: str, layout: str | None = None) -> None: ...


def to_file(
    array: Any = _NOTHING,
    path: Any = _NOTHING,
    dataset_name: Any = _NOTHING,
    *,
    layout: str | None = None,
    obj: Any = _NOTHING,
) -> None:
    """Writes an HDF5 file that holds this one dataset;
    what was there is replaced, at once and whole.

    Missing folders are made.  Returns when the file is there; within a scope of
    ``StreamingMode.STRICT`` at once, see :func:`tegula.legate.save`, which has more options,
    ``block=False`` among them.

    Args:
        array: a ``LogicalArray``, a ``LogicalStore`` or what has its data interface,
            such as cuPyNumeric arrays.
        path: the file.
        dataset_name: the full name in the file; groups are made.
        layout: "contiguous" (the default): a plain dataset; "virtual":
            a file for each tile and one that maps them.
        obj: what newer versions of Legate call `array`.

    Raises:
        ValueError: for arrays without a shape yet (unbound), and where the path is a folder.
        TypeError: for what has no data interface of Legate.
        Error: when it could not be saved; nothing of it is left then.
    """
    if (array is _NOTHING) == (obj is _NOTHING):
        raise TypeError("to_file: expected one of array and obj")
    if path is _NOTHING or dataset_name is _NOTHING:
        raise TypeError("to_file: path and dataset_name are missing")
    name = _text(path, dataset_name)
    _not_a_folder(name)
    given = obj if array is _NOTHING else array
    save(given, name, dataset_name, format="hdf5", layout=layout, overwrite=True, whole_file=True)
