"""Datasets: what is in files, read as numpy arrays.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from . import _core
from ._arguments import MOST, Shape, choice, lengths, number, text_or_none
from ._array import Array
from ._attributes import value_of
from ._context import context, place, progress_of, timeout
from ._dtypes import dtype_of
from ._errors import ChangedError, Error, UnsupportedError
from ._index import Selection, parse, whole
from ._memory import address, borrow, target_of, tiling
from ._numpy import NDArray, is_there, np
from ._parts import Parts
from ._ranks import Ranks
from ._sources import Manifest, Options, Reader, Selected, Source, root_of, said_of

MISSING = {"error": 0, "strict": 1, "fill": 2}
_JSON_MOST = 1 << 20  # bytes of a manifest that travel in a pickle
_SLOW = 1 << 20  # bytes from which a read is worth a look at the clock
_SMALL = 64 << 10  # bytes that are read as fast as one element
_SOME_AXES = 32  # older releases of numpy have no more


def tiling_of(
    shape: Shape,
    tiles: int | None,
    axis: int,
    tile_shape: Sequence[int] | None,
    overdecompose: int,
    ranks: int = 1,
) -> _core.Tiling:
    """The tiles of a load; arguments are checked."""
    tiles, overdecompose = (
        None if tiles is None else number("tiles", tiles, 1),
        number("overdecompose", overdecompose, 1),
    )
    axis = number("axis", axis, -MOST)
    if tile_shape is not None and (tiles is not None or axis != 0 or overdecompose != 1):
        raise ValueError("give tile_shape, or tiles, axis and overdecompose, not both")
    ndim = len(shape)
    if not -max(ndim, 1) <= axis < max(ndim, 1):
        raise ValueError(f"axis: expected an axis of {ndim}, found {axis}")
    count = (ranks if tiles is None else tiles) * overdecompose
    if count > MOST:
        raise ValueError(f"tiles: expected fewer than 2^63 in all, found {count}")
    return tiling(shape, lengths("tile_shape", tile_shape), axis % max(ndim, 1), count, ranks)


class Dataset:
    """An array in files; nothing of its data is read until it is asked for.
    Made by :func:`tegula.open`.

    Indexing reads: ``ds[10:20, ..., ::2]`` gives a numpy array.  Any number of threads may read at
    once.  A dataset can be pickled (its manifest goes along up to 1 MiB, else path and options) and
    used after a fork: the other process opens the files again.

    >>> import numpy, tegula, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> numpy.save(folder.name + "/x.npy", numpy.arange(12.0).reshape(4, 3))
    >>> ds = tegula.open(folder.name + "/x.npy")
    >>> ds.shape, ds.dtype, ds.format
    ((4, 3), dtype('float64'), 'npy')
    >>> ds[-1, ::2]
    array([ 9., 11.])
    """

    def __init__(
        self,
        source: Source,
        missing: str,
        threads: int | Ranks | None,
        _from: Dataset | None = None,
    ) -> None:
        self._source, self._missing, self._threads = (
            source,
            choice("missing", missing, MISSING),
            threads,
        )
        self._missing_number = MISSING[missing]
        self._place = place()
        self._folder: bytes | None = None  # where paths are relative to, if some are
        self._nested: dict[tuple[int, int], _core.Dataset] = {}
        root = root_of(source)
        self._fill = None
        if isinstance(root, Reader):
            self._fill = _from._fill if _from is not None else root.fill()
        if _from is not None and isinstance(source, Selected):
            self._core = source.take(_from._live())
            self._folder = _from._folder
        else:
            self._core = self._opened(source)
        if isinstance(source, Options):
            self._source = source.rooted()
            self._folder = None if self._source is source else os.getcwdb()
        (text, descr, self.shape, self.format, self.name, self._files, self.stored_chunks,
         self.nbytes, self.stored_bytes, self.chunks, self.codecs) = self._core.info()  # fmt: skip
        asked = said_of(source)
        self._text, self._said = text, (text, descr, asked)
        if isinstance(source, Reader):
            self.chunks = source.chunks
        self._attrs: dict[str, Any] | None = None
        self._prepared = False
        if is_there() or descr is not None or not (asked is None or isinstance(asked, str)):
            self._prepare(self._core)

    #: Elements along each axis.
    shape: Shape
    #: "npy", "raw", "hdf5", or the name of a reader.
    format: str
    #: The name inside a container; "data" for files that hold one array.
    name: str
    #: The shape of the stored chunks, or None.
    chunks: Shape | None
    #: What chunks went through, in that order, such as "shuffle,deflate".
    codecs: str
    #: Bytes of the array in memory.
    nbytes: int
    #: Bytes of the array in the files, without headers.
    stored_bytes: int
    #: Stored pieces (chunks; one per file of npy and raw).
    stored_chunks: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of arrays that are read, in the processor's byte order."""
        found: np.dtype[Any] | None = vars(self).get("_dtype")
        return (
            found if found is not None else vars(self).setdefault("_dtype", dtype_of(*self._said))
        )

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Elements."""
        return int(np.prod(self.shape, dtype=object)) if self.shape else 1

    @property
    def files(self) -> list[str]:
        """The files that hold it, in the order of rows."""
        live = self._live()
        return [live.file(i) for i in range(self._files)]

    @property
    def attrs(self) -> dict[str, Any]:
        """What is noted on it.

        Text is str, numbers are numpy arrays or scalars, None is an empty attribute; {} for formats
        without attributes.  Of a folder of HDF5 shards, and of several datasets, those of the
        first.  Attributes without a form in Python are :class:`Omitted`.
        """
        if self._attrs is None:
            self._attrs = self._read_attributes()
        return dict(self._attrs)

    def _read_attributes(self) -> dict[str, Any]:
        source = root_of(self._source)
        if self.format != "hdf5" or not source.paths:
            return {}
        path = source.paths[0]
        if not os.path.isfile(path):
            path = os.fsencode(self.files[0])
        try:
            # a pattern is no name of a dataset
            found = _core.attributes(context(self._threads), path, source.dataset or self.name)
        except UnsupportedError:
            return {}  # a manifest of HDF5 files
        return {name: value_of(*rest) for name, *rest in found}

    def _live(self) -> _core.Dataset:
        """The handle; in a forked child, and inside of readers, one of its own."""
        here = place()
        if here == self._place:
            return self._core
        if here[1] == self._place[1]:
            self._nested.clear()
            self._core, self._place = self._again(), here
            return self._core
        found = self._nested.get(here)
        return found if found is not None else self._nested.setdefault(here, self._again())

    def _opened(self, source: Source) -> _core.Dataset:
        if isinstance(source, Selected):
            return source.take(self._opened(source.of))
        if isinstance(source, Reader):
            assert self._fill is not None
            return source.open_with(self._fill, self._threads)
        return source.open(self._threads)

    def _again(self) -> _core.Dataset:
        made = self._opened(self._source)
        text, _, shape, *_ = made.info()
        if shape != self.shape or text != self._text:
            raise ChangedError(
                f"the files are not what they were: expected {self._text} {self.shape}, found "
                f"{text} {shape}",
                hint="open them again",
            )
        if self._prepared:
            self._prepare(made)
        return made

    def _prepare(self, handle: _core.Dataset) -> None:
        """For small reads, which make their array in C."""
        handle.prepare(np.empty, self.dtype, self._missing_number)
        self._prepared = True

    # ---- reading ----

    def __getitem__(self, key: Any) -> Any:
        try:
            found = self._core.quick(key)  # None: not one of the commonest keys, or much data
        except Error as error:
            self._explain(error)
            raise
        if found is not None:
            return found
        if not self._prepared:
            self._prepare(self._core)
            return self[key]
        out = self._read(parse(key, self.shape), None)
        return out if out.ndim or (not self.shape and key is Ellipsis) else out[()]

    def read(self, box: Any = None, out: Any = None) -> NDArray:
        """Reads a part, or all.

        Args:
            box: what would stand between brackets (integers, slices,
                an ellipsis); None: everything.
            out: writable memory of that shape and dtype, any strides,
                to be filled instead of new memory.

        Returns:
            The numpy array that was filled.

        Raises:
            Error: when a file cannot be read, is short or has changed.
            ValueError, TypeError, IndexError: for boxes and memory that do not fit.
        """
        return self._read(whole(self.shape) if box is None else parse(box, self.shape), out)

    def _read(self, chosen: Selection, out: Any) -> NDArray:
        if out is None:
            full: NDArray = np.empty(chosen.counts, self.dtype)
            result = full
        else:
            kept = tuple(n for axis, n in enumerate(chosen.counts) if axis not in chosen.dropped)
            result = target_of(out, kept, self.dtype)
            full = (
                result[
                    tuple(
                        None if axis in chosen.dropped else slice(None) for axis in range(self.ndim)
                    )
                ]
                if chosen.dropped
                else result
            )
        target = full
        if chosen.reversed:
            target = full[
                tuple(
                    slice(None, None, -1 if axis in chosen.reversed else 1)
                    for axis in range(self.ndim)
                )
            ]
        if chosen.step is not None and self._span(chosen) <= _SMALL:
            # chunks around small boxes are kept
            window = np.empty(_between(chosen.lo, chosen.hi), self.dtype)
            self._read_box(chosen.lo, chosen.hi, window)
            target[...] = window[tuple(slice(None, None, s) for s in chosen.step)]
        else:
            self._read_box(chosen.lo, chosen.hi, target, chosen.step)
        if out is None and chosen.dropped:
            return full.reshape(
                [n for axis, n in enumerate(chosen.counts) if axis not in chosen.dropped]
            )
        return out if isinstance(out, np.ndarray) else result

    def _span(self, chosen: Selection) -> int:
        """Bytes from the first to the last element."""
        span = self.dtype.itemsize
        for length in _between(chosen.lo, chosen.hi):
            span *= length
        return span

    def _read_box(
        self,
        lo: Shape,
        hi: Shape,
        target: NDArray,
        step: Shape | None = None,
        stop: _core.Flag | None = None,
    ) -> None:
        bytes_ = target.nbytes
        limit = timeout() if bytes_ >= _SLOW else 0.0
        try:
            self._live().read(
                address(target), lo, hi, step, target.strides, self._missing_number, bytes_, stop,
                limit,
            )  # fmt: skip
        except Error as error:
            self._explain(error)
            raise

    def _explain(self, error: Error) -> None:
        """Adds the exception that the user's reader raised as the cause; Ctrl-C and the like in
        it are raised as they are."""
        cause = self._fill.failures.pop(str(error), None) if self._fill is not None else None
        if cause is not None and not isinstance(cause, Exception):
            raise cause
        if cause is not None:
            error.__cause__ = cause

    def select(self, box: Any = None, field: str | None = None) -> Dataset:
        """A part as a dataset of its own, which reads, loads and cuts into batches like any other;
        nothing is read here.

        Args:
            box: slices with positive steps, as between brackets; None: everything.
            field: one field of structured records, such as "mass", or "position.x" of a record
                within the record; its own axes, if it has any, are the last.

        Raises:
            Error: no such field; the hint names those that there are.
            ValueError, TypeError, IndexError: for boxes that do not fit.

        >>> import numpy, tegula, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> numpy.save(folder.name + "/x.npy", numpy.arange(12.0).reshape(4, 3))
        >>> part = tegula.open(folder.name + "/x.npy").select(numpy.s_[::2, 1:])
        >>> numpy.asarray(part.load(tiles=2))
        array([[1., 2.],
               [7., 8.]])
        """
        chosen = whole(self.shape) if box is None else parse(box, self.shape)
        if chosen.dropped:
            raise ValueError("box: expected slices, found an integer: it would take an axis away")
        if chosen.reversed:
            raise ValueError("box: expected steps from 1 on, found a negative one")
        taken = Selected(
            self._source, chosen.lo, chosen.hi, chosen.step, text_or_none("field", field)
        )
        return Dataset(taken, self._missing, self._threads, self)

    def field(self, name: str) -> Dataset:
        """One field of structured records as a dataset: ``select(field=name)``."""
        if name is None:
            raise TypeError("name: expected the name of a field, found None")
        return self.select(field=name)

    def load(
        self,
        *,
        tiles: int | None = None,
        axis: int = 0,
        tile_shape: Sequence[int] | None = None,
        overdecompose: int = 1,
        out: Any = None,
        progress: Any = False,
    ) -> Array:
        """Everything, as :func:`tegula.load` does."""
        return self._load((tiles, axis, tile_shape, overdecompose, out), progress)

    def _load(
        self, how: tuple[int | None, int, Sequence[int] | None, int, Any], progress: Any
    ) -> Array:
        if isinstance(self._threads, Ranks) and self._threads.size > 1:
            return self._load_on(self._threads, *how, progress)
        return self._fill_memory(*self._memory_for(*how), progress)

    def _memory_for(
        self,
        tiles: int | None,
        axis: int,
        tile_shape: Sequence[int] | None,
        overdecompose: int,
        out: Any,
    ) -> tuple[_core.Tiling, NDArray | Callable[[], NDArray], _core.Array]:
        cut = self._tiling(tiles, axis, tile_shape, overdecompose)
        self._live()
        of = context(self._threads)
        if out is None:
            memory = _core.Array.create(of, self._text, cut)
            make = partial(_array_over, memoryview(memory), self.shape, self._said)
            return cut, make() if is_there() or self.ndim > _SOME_AXES else make, memory
        local = target_of(out, self.shape, self.dtype)
        return cut, local, borrow(of, local, cut)

    def _fill_memory(
        self,
        cut: _core.Tiling,
        local: NDArray | Callable[[], NDArray],
        memory: _core.Array,
        progress: Any,
    ) -> Array:
        with progress_of(progress) as report:
            try:
                self._live().load(memory, None, self._missing_number, report, timeout())
            except Error as error:
                self._explain(error)
                raise
        return Array(local, cut)

    def _load_on(
        self,
        ranks: Ranks,
        tiles: int | None,
        axis: int,
        tile_shape: Sequence[int] | None,
        overdecompose: int,
        out: Any,
        progress: Any,
    ) -> Array:
        """Each rank its tiles."""
        with ranks.checking():
            if out is not None:
                raise ValueError("out: not supported on several ranks, expected None")
            cut = self._tiling(tiles, axis, tile_shape, overdecompose, ranks.size)
        with ranks.together(), progress_of(progress) as report:
            memory = _core.Array.create(ranks.context, self._text, cut)
            self._live().load(memory, None, self._missing_number, report, timeout())
        return Parts(memory, cut, self.shape, self.dtype, ranks)

    def _tiling(
        self,
        tiles: int | None,
        axis: int,
        tile_shape: Sequence[int] | None,
        overdecompose: int,
        ranks: int = 1,
    ) -> _core.Tiling:
        return tiling_of(self.shape, tiles, axis, tile_shape, overdecompose, ranks)

    def explain(
        self, tiles: int = 1, *, axis: int = 0, tile_shape: Sequence[int] | None = None
    ) -> dict[str, Any]:
        """What a load would read for each tile, without reading: shape, dtype, and per tile box,
        bytes, reads, sources (docs/plan.md)."""
        import json

        given = None if tile_shape is not None and tiles == 1 else tiles
        plan: dict[str, Any] = json.loads(
            self._live().explain(self._tiling(given, axis, tile_shape, 1))
        )
        return plan

    def hash(self, *, progress: Any = False) -> str:
        """The content hash ``"tegula1:..."``; memory stays within 64 MiB (docs/content-hash.md).
        On ranks each reads its share."""
        if isinstance(self._threads, Ranks):
            with self._threads.together(), progress_of(progress) as report:
                return self._live().hash(self._missing_number, report, timeout())
        with progress_of(progress) as report:
            try:
                return self._live().hash(self._missing_number, report, timeout())
            except Error as error:
                self._explain(error)
                raise

    def batches(self, chunk: Sequence[int]) -> Iterator[tuple[Any, Shape]]:
        """Walks over it in pieces of `chunk` elements along each axis, cut at the end;
        the next one is read ahead.

        Yields:
            The piece, an array of its own, and where it begins.  Of a dataset that was opened with
            `comm` it is an :class:`Array` with rows on each rank, and all ranks take each step.

        Raises:
            ValueError: for lengths that are not one per axis, or below 1.

        >>> import numpy, tegula, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> numpy.save(folder.name + "/x.npy", numpy.arange(12).reshape(4, 3))
        >>> pieces = tegula.open(folder.name + "/x.npy").batches((3, 3))
        >>> [(piece.sum().item(), offset) for piece, offset in pieces]
        [(36, (0, 0)), (30, (3, 0))]
        """
        return self._batches("chunk", chunk)

    def _batches(self, name: str, chunk: Sequence[int]) -> Iterator[tuple[Any, Shape]]:
        ranks = self._threads if isinstance(self._threads, Ranks) else None
        with ranks.checking() if ranks is not None else nullcontext():
            pieces = self._chunk_of(name, chunk)
        return self._pieces(pieces) if ranks is None else self._pieces_on(ranks, pieces)

    def _chunk_of(self, name: str, chunk: Sequence[int]) -> Shape:
        taken = lengths(name, chunk) or ()
        if len(taken) != self.ndim:
            raise ValueError(
                f"{name}: expected {self.ndim} lengths, one per axis, found {len(taken)}"
            )
        if any(length < 1 for length in taken):
            raise ValueError(f"{name}: expected lengths from 1 on, found {taken}")
        return taken

    def _pieces(self, chunk: Shape) -> Iterator[tuple[NDArray, Shape]]:
        batches = _core.Batches(self._live(), chunk, self._missing_number)
        try:
            while (found := self._next_of(batches)) is not None:
                memory, lo, hi = found
                yield np.ndarray(_between(lo, hi), self.dtype, buffer=memoryview(memory)), lo
        finally:
            batches.close()

    def _next_of(self, batches: _core.Batches) -> tuple[_core.Array, Shape, Shape] | None:
        try:
            return batches.next(timeout())
        except Error as error:
            self._explain(error)
            raise

    def _pieces_on(self, ranks: Ranks, chunk: Shape) -> Iterator[tuple[Array, Shape]]:
        """Each rank reads its part of the next one ahead; they agree when it is given out."""
        with ranks.together():
            batches = _core.Batches(self._live(), chunk, self._missing_number)
        try:
            while True:
                with ranks.together():
                    found = self._next_of(batches)
                if found is None:
                    return
                memory, lo, hi = found
                shape = _between(lo, hi)
                cut = tiling_of(shape, None, 0, None, 1, ranks.size)
                if ranks.size > 1:
                    yield Parts(memory, cut, shape, self.dtype, ranks), lo
                else:
                    yield Array(np.ndarray(shape, self.dtype, buffer=memoryview(memory)), cut), lo
        finally:
            batches.close()

    # ---- the rest ----

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a dataset without axes has no length")
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        if copy is False:
            raise ValueError("a dataset is in files: an array of it is always a copy")
        found = self.read()
        return found if dtype is None else found.astype(dtype, copy=False)

    def __repr__(self) -> str:
        return (
            f"<tegula.Dataset {self.format} shape={self.shape} dtype={self.dtype} "
            f"files={self._files}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (
            self._portable(),
            self._missing,
            self._threads,
            self._text,
            self.shape,
            self.format,
        )

    def _portable(self) -> Source:
        root = root_of(self._source)
        if isinstance(self._source, (Manifest, Reader)) or isinstance(root, Reader):
            return self._source
        moved = self._folder is not None and os.getcwdb() != self._folder
        try:
            json = (
                (self._again() if moved else self._live())
                .to_json()
                .encode("utf-8", "surrogateescape")
            )
        except UnsupportedError:
            return self._source
        described = root._replace(dtype=said_of(self._source))
        return Manifest(json, described) if len(json) <= _JSON_MOST else self._source


def _between(lo: Shape, hi: Shape) -> Shape:
    return tuple(high - low for low, high in zip(lo, hi, strict=True))


def _array_over(memory: memoryview, shape: Shape, said: tuple[str, str | None, Any]) -> NDArray:
    return np.ndarray(shape, dtype_of(*said), buffer=memory)


def _restore(
    source: Any, missing: str, threads: int | None, text: str, shape: Shape, format: str
) -> Dataset:
    made = Dataset(source, missing, threads)
    if made._text != text or made.shape != shape:
        found = f"{made._text} {made.shape}"
        raise ChangedError(
            f"the files are not what they were: expected {text} {shape}, found {found}",
            hint="open them again",
        )
    made.format = format
    return made
