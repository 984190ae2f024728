"""Errors that are also what ``legate.io.hdf5`` raises, and errors on their way out of a task.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
import pickle

from .._errors import CorruptError, Error, InternalError, InvalidArgumentError, NotFoundError, OutOfMemoryError, UnsupportedError

_MOST_BYTES = 2700  # Legate ends the process when a task raises more than 4096, and it adds a traceback with the text once more


class MissingDatasetError(NotFoundError, ValueError, KeyError):
    """The file is there, the dataset is not: ValueError of from_file, KeyError of from_file_batched."""


class MissingFileError(NotFoundError, RuntimeError):
    """There is no such file."""


class NotAFileError(InvalidArgumentError, RuntimeError):
    """The path is a folder: :func:`tegula.legate.load` takes folders of shards."""


class UnreadableFileError(CorruptError, RuntimeError):
    """The file is no HDF5 file, or damaged."""


class TooManyAxesError(UnsupportedError, IndexError):
    """More axes than Legate's arrays have."""


def _as(kind: type[Error], error: Error) -> Error:
    return kind(str(error), path=error.path, offset=error.offset, hint=error.hint, rank=error.rank, errno=error.errno)


def as_theirs(error: Error, path: str) -> Error:
    """What opening failed with, as a program written for ``legate.io.hdf5`` catches it."""
    if isinstance(error, NotFoundError):
        return _as(MissingDatasetError if os.path.exists(path) else MissingFileError, error)
    if isinstance(error, CorruptError):
        return _as(UnreadableFileError, error)
    return error


def portable(error: BaseException) -> Error:
    """What a task raises instead of `error`: one of our exceptions, short enough for the way."""
    if isinstance(error, Error):
        found = error
    elif isinstance(error, MemoryError):
        found = OutOfMemoryError(str(error) or "there is not enough memory")
    else:
        found = InternalError(f"a task failed: {type(error).__name__}: {error}")
    most = 1000
    while len(pickle.dumps(found)) + len(str(found).encode("utf-8", "replace") + found.hint.encode()) > _MOST_BYTES and most > 10:
        most //= 2
        path = found.path if found.path is None or most > 100 else "..." + found.path[-most:]  # the name itself goes last
        found = type(found)(str(found)[:most], path=path, offset=found.offset, hint=found.hint[:most], rank=found.rank, errno=found.errno)
    return found
