"""Errors that are also what ``legate.io.hdf5`` raises, and errors on their way out of a task.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
import pickle

from .._errors import (
    AccessError,
    CorruptError,
    Error,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OutOfMemoryError,
    ShortFileError,
    UnsupportedError,
)

# Legate ends the process when a task raises more than 4096,
# and it adds a traceback with the text once more
_MOST_BYTES = 2700


class MissingDatasetError(NotFoundError, ValueError, KeyError, RuntimeError):
    """The file is there, the dataset is not: KeyError of from_file_batched, ValueError of
    from_file, RuntimeError for a link to nowhere."""


class MissingFileError(NotFoundError, RuntimeError):
    """There is no such file."""


class NotAFileError(InvalidArgumentError, IsADirectoryError, RuntimeError):
    """The path is a folder, or empty: :func:`tegula.legate.load` takes folders of shards."""


class UnreadableFileError(CorruptError, OSError, RuntimeError):
    """The file is no HDF5 file, or damaged: RuntimeError of from_file,
    OSError of from_file_batched."""


class TruncatedFileError(ShortFileError, RuntimeError):
    """The file ends too early."""


class ForbiddenFileError(AccessError, RuntimeError):
    """The file may not be read."""


class TooManyAxesError(UnsupportedError, IndexError):
    """More axes than Legate's arrays have."""


def _as(kind: type[Error], error: Error) -> Error:
    return kind(
        str(error),
        path=error.path,
        offset=error.offset,
        hint=error.hint,
        rank=error.rank,
        errno=error.errno,
    )


def as_theirs(error: Error, path: str) -> Error:
    """What opening failed with, as a program written for ``legate.io.hdf5`` catches it."""
    if isinstance(error, NotFoundError):
        return _as(MissingDatasetError if os.path.exists(path) else MissingFileError, error)
    for kind, their in (
        (CorruptError, UnreadableFileError),
        (ShortFileError, TruncatedFileError),
        (AccessError, ForbiddenFileError),
    ):
        if isinstance(error, kind):
            return _as(their, error)
    return error


def _text(text: str, most: int) -> str:
    """Names that are no text are spelt out:
    the traceback that Legate makes must be UTF-8, or the process ends."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")[:most]


def portable(error: BaseException) -> Error:
    """What a task raises instead of `error`: one of our exceptions, fit for the way."""
    if isinstance(error, Error):
        found = error
    elif isinstance(error, MemoryError):
        found = OutOfMemoryError(str(error) or "there is not enough memory")
    else:
        found = InternalError(f"a task failed: {type(error).__name__}: {error}")
    most = 2000
    while True:
        # the name itself goes last
        path = found.path if found.path is None or most > 200 else "..." + found.path[-most:]
        message, hint = _text(str(found), most), _text(found.hint, most)
        made = type(found)(
            message, path=path, offset=found.offset, hint=hint, rank=found.rank, errno=found.errno
        )
        if len(pickle.dumps(made)) + len((message + hint).encode()) <= _MOST_BYTES or most < 10:
            return made
        most //= 2
