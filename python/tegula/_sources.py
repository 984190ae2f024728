"""What a dataset is opened from, so that it can be opened again in another process.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

from . import _core
from ._arguments import Settings, Shape, shown
from ._context import Group, context, reading, timeout, waiting
from ._dtypes import dtype_of, said_text, text_of
from ._errors import Error
from ._index import slices
from ._numpy import NDArray, np

Path = str | os.PathLike[str] | bytes | Sequence[str | os.PathLike[str] | bytes]
Read = Callable[[tuple[slice, ...], NDArray], object]

_PATHS = "a path or a list of paths"

# : Called with the paths before they are opened or saved to:
# who has saves on their way waits for those.
before_use: list[Callable[[tuple[bytes, ...]], None]] = []


def path_of(path: object, expected: str = "a path") -> bytes:
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"path: expected {expected}, found {type(path).__name__}")
    try:
        name = os.fsencode(path)
    except UnicodeEncodeError:
        raise ValueError(f"path: {shown(path)} cannot be the name of a file") from None
    if b"\0" in name:
        raise ValueError("path: it contains a zero byte")
    return name


def paths_of(path: Path) -> tuple[bytes, ...]:
    if isinstance(path, (str, bytes, os.PathLike)):
        return (path_of(path),)
    # a file that is open gives its lines
    odd = isinstance(path, (Mapping, Set)) or hasattr(path, "read")
    if odd or not isinstance(path, Iterable) or (isinstance(path, np.ndarray) and not path.ndim):
        raise TypeError(f"path: expected {_PATHS}, found {type(path).__name__}")
    return tuple(path_of(one, _PATHS) for one in path)


def rooted(path: bytes, is_pattern: bool = False) -> bytes:
    """The same file for a program that has gone into another folder;
    "link/../x" means what it says."""
    if path.startswith(b"/"):
        return path
    here = os.getcwdb()
    if is_pattern:  # the folder's name is none
        here = here.replace(b"[", b"[[]").replace(b"*", b"[*]").replace(b"?", b"[?]")
    return os.path.join(here, path)


def _looks_like_a_pattern(path: bytes) -> bool:
    return any(sign in path for sign in (b"*", b"?", b"[")) and not os.path.lexists(path)


class Options(NamedTuple):
    """Everything that opens the same dataset again, in another process too."""

    paths: tuple[bytes, ...]
    dataset: str | None
    format: str | None
    dtype: Any
    shape: Shape | None
    row_shape: Shape | None
    offset: int
    row_gap: int
    order: str
    byte_order: str
    expect_files: int
    expect_rows: int
    locked: bool
    field: str | None = None
    settings: Settings = ()
    defer: bool = False  # headers are read with the data

    def rooted(self) -> Options:
        """The same files for a program that has gone into another folder."""
        if all(path.startswith(b"/") for path in self.paths):
            return self
        return self._replace(
            paths=tuple(rooted(path, _looks_like_a_pattern(path)) for path in self.paths)
        )

    def open(self, threads: int | Group | None) -> _core.Dataset:
        for wait in before_use:
            wait(self.paths)
        found = context(threads)
        # saves are queued on the context without a number: let it wait for those of these paths
        if isinstance(threads, int) and waiting():
            try:
                self._open(context())
            except Error:
                pass
        return self._open(found)

    def _open(self, of: _core.Context) -> _core.Dataset:
        dtype = None if self.dtype is None else said_text(self.dtype)
        return _core.open(
            of, self.paths, self.format, self.dataset, self.field, dtype, self.shape,
            self.row_shape, self.offset, self.row_gap, self.order, self.byte_order,
            self.expect_files, self.expect_rows, self.locked, self.settings, self.defer, timeout(),
        )  # fmt: skip


class Reader(NamedTuple):
    """The same for a user's own format."""

    read: Read
    name: str
    dtype: Any
    shape: Shape
    chunks: Shape | None
    paths: tuple[bytes, ...] = ()
    dataset: str | None = None

    def fill(self) -> Fill:
        dtype = dtype_of(text_of(self.dtype), None, self.dtype)
        return Fill(self.read, dtype if dtype.isnative else dtype.newbyteorder("="))

    def open_with(self, fill: Fill, threads: int | Group | None) -> _core.Dataset:
        return _core.from_reader(
            context(threads), fill, self.name, text_of(self.dtype), self.shape, self.chunks, 0
        )


class Manifest(NamedTuple):
    """The same as the manifest of a dataset, whose files need not be looked for again."""

    json: bytes
    options: Options

    def open(self, threads: int | Group | None) -> _core.Dataset:
        descriptor = os.memfd_create("tegula-manifest")
        try:
            view = memoryview(self.json)
            while view:
                view = view[os.write(descriptor, view) :]
            plain = self.options._replace(
                paths=(b"/proc/self/fd/%d" % descriptor,), format="manifest", dataset=None,
                dtype=None, shape=None, row_shape=None, offset=0, row_gap=0, order="",
                byte_order="", expect_files=-1, expect_rows=-1, field=None, settings=(),
            )  # fmt: skip
            return plain.open(threads)
        finally:
            os.close(descriptor)


class Selected(NamedTuple):
    """Elements lo, lo + step, ... below hi of another one, or one field of them."""

    of: Source
    lo: Shape
    hi: Shape
    step: Shape | None
    field: str | None

    def take(self, dataset: _core.Dataset) -> _core.Dataset:
        return dataset.select(self.lo, self.hi, self.step, self.field, timeout())


Source = Options | Reader | Manifest | Selected


def root_of(source: Source) -> Options | Reader:
    """What the files were opened with."""
    while isinstance(source, Selected):
        source = source.of
    return source.options if isinstance(source, Manifest) else source


def said_of(source: Source) -> Any:
    """The dtype that the caller said is stored, which names the fields of opaque items."""
    while isinstance(source, Selected):
        if source.field is not None:
            return None
        source = source.of
    root = root_of(source)
    return None if isinstance(root, Options) and root.field is not None else root.dtype


def remember(failures: dict[str, BaseException], message: str, error: BaseException) -> None:
    """For who gets the error with this message. Of several workers' failures only one arrives:
    the oldest of the others are forgotten."""
    for old in list(failures)[:-63]:
        failures.pop(old, None)
    failures[message] = error


class Fill:
    """The callback of a reader: gives the user's function an array over the
    memory that it must fill."""

    def __init__(self, read: Read, dtype: np.dtype[Any]) -> None:
        self.read, self.dtype, self.failures = read, dtype, dict[str, BaseException]()

    def keep(self, message: str, error: BaseException) -> None:
        remember(self.failures, message, error)

    def __call__(
        self, memory: memoryview, offset: int, strides: Shape, lo: Shape, hi: Shape
    ) -> None:
        shape = tuple(high - low for low, high in zip(lo, hi, strict=True))
        out: NDArray = np.ndarray(shape, self.dtype, buffer=memory, offset=offset, strides=strides)
        try:
            with reading():
                self.read(slices(lo, hi), out)
        except BaseException as error:
            from traceback import clear_frames

            clear_frames(error.__traceback__)  # they hold `out`, whose memory is not theirs
            raise
        lent = weakref.ref(out)
        del out
        if lent() is not None:
            gc.collect()
        if lent() is not None:
            raise ValueError(
                "the reader kept the array that it was to fill: its memory is lent for the call "
                "only"
            )
