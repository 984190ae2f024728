"""Errors as exceptions.  Every status of the library has a class; :class:`Error` catches them all.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """Something failed.  The text is one line; the fields are data, not to be parsed out of it.

    Attributes:
        status: what kind of failure, such as ``"short_file"`` (the names of docs/errors.md).
        path: the file, or None.
        offset: where in the file, in bytes, or None.
        hint: what to do, or "".
        rank: the process that failed, or None.
        errno: the number of the operating system, or None.
    """

    status: str = "internal"
    path: str | None
    offset: int | None
    hint: str
    rank: int | None
    errno: int | None

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        offset: int | None = None,
        hint: str = "",
        rank: int | None = None,
        errno: int | None = None,
    ) -> None:
        super().__init__(message)
        self.path, self.offset, self.hint, self.rank, self.errno = path, offset, hint, rank, errno
        if isinstance(self, OSError):
            object.__setattr__(self, "filename", path)
        if hint:
            self.add_note(f"hint: {hint}")

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        fields = {
            "path": self.path,
            "offset": self.offset,
            "hint": self.hint,
            "rank": self.rank,
            "errno": self.errno,
        }
        return _again, (type(self), self.args[0], fields)


def _again(kind: type[Error], message: str, fields: dict[str, Any]) -> Error:
    return kind(message, **fields)


class InvalidArgumentError(Error, ValueError):
    status = "invalid_argument"


class OutOfMemoryError(Error, MemoryError):
    status = "out_of_memory"


class LimitExceededError(Error, ValueError):
    status = "limit_exceeded"


class CancelledError(Error):
    status = "cancelled"


class TimeLimitError(Error, TimeoutError):
    status = "timeout"


class NotFoundError(Error, FileNotFoundError):
    status = "not_found"


class ExistsError(Error, FileExistsError):
    status = "exists"


class AccessError(Error, PermissionError):
    status = "permission"


class StorageError(Error, OSError):
    status = "io"


class ShortFileError(Error, OSError, ValueError):
    status = "short_file"


class ChangedError(Error, OSError):
    status = "changed"


class CorruptError(Error, ValueError):
    status = "corrupt"


class UnsupportedError(Error, ValueError):
    status = "unsupported"


class MismatchError(Error, ValueError):
    status = "mismatch"


class IncompleteError(Error, OSError, ValueError):
    status = "incomplete"


class CommunicatorError(Error, OSError):
    status = "comm"


class PeerFailedError(Error):
    status = "peer_failed"


class DeviceError(Error, OSError):
    status = "device"


class InternalError(Error, RuntimeError):
    status = "internal"


_KINDS: dict[str, type[Error]] = {
    kind.status: kind
    for kind in (
        InvalidArgumentError, OutOfMemoryError, LimitExceededError, CancelledError, TimeLimitError,
        NotFoundError, ExistsError, AccessError, StorageError, ShortFileError, ChangedError,
        CorruptError, UnsupportedError, MismatchError, IncompleteError, CommunicatorError,
        PeerFailedError, DeviceError, InternalError,
    )
}  # fmt: skip

# what a callback's exception means to the library; the most special first
_STATUS = {
    MemoryError: 11, TimeoutError: 14, FileNotFoundError: 20, FileExistsError: 21,
    PermissionError: 22, EOFError: 24, NotImplementedError: 31,
}  # fmt: skip
_IO = 23
_NUMBERS = {
    "invalid_argument": 10, "out_of_memory": 11, "limit_exceeded": 12, "cancelled": 13,
    "timeout": 14, "not_found": 20, "exists": 21, "permission": 22, "io": 23, "short_file": 24,
    "changed": 25, "corrupt": 30, "unsupported": 31, "mismatch": 32, "incomplete": 33, "comm": 40,
    "peer_failed": 41, "device": 50, "internal": 90,
}  # fmt: skip


def make(
    number: int,
    status: str,
    message: str,
    hint: str,
    path: str | None,
    offset: int,
    rank: int,
    errno: int,
) -> Error:
    """The exception for an error of the library (called by the extension)."""
    kind = _KINDS.get(status, InternalError)
    return kind(
        message,
        path=path,
        offset=None if offset < 0 else offset,
        hint=hint,
        rank=None if rank < 0 else rank,
        errno=errno or None,
    )


def describe(fill: Any, error: BaseException) -> tuple[int, str, str | None, int]:
    """What the library is told about an exception of a reader callback;
    the exception itself is kept as the cause."""
    status = next((number for kind, number in _STATUS.items() if isinstance(error, kind)), _IO)
    message, path, offset = f"the reader raised {type(error).__name__}: {error}", None, -1
    if isinstance(error, Error):
        status, message = _NUMBERS.get(error.status, _IO), str(error)
        path, offset = error.path, -1 if error.offset is None else error.offset
    message = _printable(message.replace("\n", " "))
    keep = getattr(fill, "keep", None)
    if keep is not None:
        keep(message, error)
    return status, message, None if path is None else _printable(path), offset


def _printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")
