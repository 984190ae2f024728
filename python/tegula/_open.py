"""The functions that open and load.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import _arguments, _core
from ._arguments import (
    Settings,
    byte_order_text,
    choice,
    flag,
    lengths,
    number,
    settings_of,
    shown,
    text_or_none,
)
from ._array import Array
from ._attributes import value_of
from ._context import context
from ._dataset import MISSING, Dataset
from ._errors import (
    CancelledError,
    ChangedError,
    Error,
    MismatchError,
    OutOfMemoryError,
    TimeLimitError,
)
from ._ranks import ranks_of
from ._sources import Options, Path, Read, Reader, path_of, paths_of


def _options(
    path: Path,
    dataset: str | None,
    format: str | None,
    dtype: Any,
    shape: Sequence[int] | None,
    row_shape: Sequence[int] | None,
    offset: int,
    row_gap: int,
    order: str | None,
    byte_order: str | None,
    expect_files: int | None,
    expect_rows: int | None,
    locked: bool,
    field: str | None,
    settings: Settings,
    columns: None,
    null_value: None,
    defer: bool,
) -> Options:
    for name, value in (("columns", columns), ("null_value", null_value)):
        if value is not None:
            raise ValueError(f"{name}: not supported yet, expected None")
    return Options(
        paths_of(path), text_or_none("dataset", dataset), text_or_none("format", format),
        None if dtype is None else _arguments.dtype("dtype", dtype), lengths("shape", shape),
        lengths("row_shape", row_shape), number("offset", offset, 0), number("row_gap", row_gap, 0),
        "" if order is None else choice("order", order, ("C", "F")),
        byte_order_text(byte_order),
        -1 if expect_files is None else number("expect_files", expect_files, 0),
        -1 if expect_rows is None else number("expect_rows", expect_rows, 0),
        flag("locked", locked), text_or_none("field", field), settings, defer,
    )  # fmt: skip


def open(
    path: Path,
    dataset: str | None = None,
    *,
    field: str | None = None,
    format: str | None = None,
    dtype: Any = None,
    shape: Sequence[int] | None = None,
    row_shape: Sequence[int] | None = None,
    offset: int = 0,
    row_gap: int = 0,
    order: str | None = None,
    byte_order: str | None = None,
    row_prefix: int | None = None,
    row_suffix: int | None = None,
    trailing_bytes: int | str | None = None,
    record_markers: str | None = None,
    settings: Mapping[str, int | str] | None = None,
    columns: None = None,
    null_value: None = None,
    missing: str = "error",
    expect_files: int | None = None,
    expect_rows: int | None = None,
    locked: bool = False,
    comm: Any = None,
    threads: int | None = None,
    _defer: bool = False,
) -> Dataset:
    """Describes files as one array; headers are read, data is not.

    Args:
        path: a file, a folder of shards, a pattern in numeric order, or a list of files in the
            order given; shards are joined along axis 0.
        dataset: the name inside a container; None: the only one there is.  A pattern such as
            "/shard_*" takes the datasets that match it, in the order of their numbers, joined along
            axis 0.
        field: one field of structured records, such as "mass", or "position.x" of a record within
            the record; None: all.
        format: "npy", "raw", "hdf5" or "manifest"; None: found out from the content.
        dtype: what is stored (nothing is converted), also structured: needed for raw without a side
            file; "bfloat16"
            turns ``|V2`` of npy into bfloat16.
        shape: raw: the shape of each file.
        row_shape: raw: the shape of one row; the number of rows follows from the size.
        offset: raw: bytes in front of the data.
        row_gap: raw: bytes between two rows.
        row_prefix, row_suffix: raw: bytes before and after each row; behind the last row the
            suffix may be missing.
        trailing_bytes: raw: bytes behind the last row, or "any" (with `shape`).
        record_markers: raw: "fortran4" or "fortran8": each row is a record of a Fortran sequential
            file, with markers of 4 or 8 bytes, which are all compared.
        settings: of the format, by key: ``{"raw.row_prefix": 4}`` (docs/formats.md).
        order: raw: "C" (the default) or "F".
        byte_order: raw: "<" or "little", ">" or "big"; None: as dtype says.
        missing: what happens to pieces that are not there: "error" (absent by the rules of the
            format: filled; lost: an error), "strict" (all are errors), "fill".
        expect_files, expect_rows: another number of files or length of axis 0 is an error.
        locked: read HDF5 files also while another program has them open for writing;
            what it did not flush is missing.
        threads: workers; None: as many as granted (TEGULA_THREADS).
        comm: a communicator of mpi4py: all its ranks make the call, rank 0 reads headers, each gets
            the same dataset (docs/ranks.md).
        columns, null_value: for formats to come; only None.

    Raises:
        Error: for files that are missing, damaged, or do not fit together (the
            message names the file).
        ValueError, TypeError: for arguments that make no sense.
    """

    def options() -> Options:
        return _options(
            path, dataset, format, dtype, shape, row_shape, offset, row_gap, order, byte_order,
            expect_files, expect_rows, locked, field,
            settings_of(
                settings, row_prefix=row_prefix, row_suffix=row_suffix,
                trailing_bytes=trailing_bytes, record_markers=record_markers,
            ),
            columns, null_value, _defer,
        )  # fmt: skip

    if comm is not None:
        ranks = ranks_of(comm, threads)
        with ranks.checking():
            source = options()
            choice("missing", missing, MISSING)
        with ranks.together():
            return Dataset(source, missing, ranks)
    return Dataset(options(), missing, threads)


def attributes(path: str | os.PathLike[str] | bytes, name: str = "/") -> dict[str, Any]:
    """What is noted on an object of an HDF5 file: a group or a dataset, by its path.

    Values are those of :attr:`Dataset.attrs`.

    Raises:
        Error: no such object; the file is no HDF5 file, or damaged.
        ValueError, TypeError: for arguments that make no sense.

    >>> import numpy, tegula, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> tegula.save(numpy.zeros(3), folder.name + "/x.h5", "/run/data", attrs={"unit": "m"})
    >>> tegula.attributes(folder.name + "/x.h5", "/run/data")
    {'unit': 'm'}
    >>> tegula.attributes(folder.name + "/x.h5", "/run")
    {}
    """
    found = _core.attributes(context(), path_of(path), _arguments.text("name", name))
    return {name: value_of(*rest) for name, *rest in found}


def from_reader(
    read: Read,
    shape: Sequence[int],
    dtype: Any,
    name: str | None = None,
    *,
    chunks: Sequence[int] | None = None,
    threads: int | None = None,
) -> Dataset:
    """A dataset in a format of your own.

    Args:
        read: ``read(box, out)`` fills the numpy array `out` with the elements of `box` (slices).
            It is called from many threads at once, each time for other elements, and must not keep
            `out`.  What it raises is the cause of the :class:`Error` of the load.
        shape: elements along each axis.
        dtype: of the elements.
        name: of the format, for reports and messages; None: the function's name.
        chunks: no box crosses a multiple of these lengths.
        threads: as in :func:`open`.

    >>> import tegula
    >>> def squares(box, out):
    ...     out[:] = range(box[0].start, box[0].stop)
    ...     out *= out
    >>> tegula.from_reader(squares, (6,), "i8")[2:5]
    array([ 4,  9, 16])
    """
    if not callable(read):
        raise TypeError(f"read: expected a function read(box, out), found {type(read).__name__}")
    if shape is None:
        raise TypeError("shape: expected a tuple of integers, found None")
    source = Reader(
        read, text_or_none("name", name) or str(getattr(read, "__name__", "reader")),
        _arguments.dtype("dtype", dtype), lengths("shape", shape) or (), lengths("chunks", chunks),
    )  # fmt: skip
    return Dataset(source, "error", threads)


def load(
    path: Path | Dataset,
    dataset: str | None = None,
    *,
    tiles: int | None = None,
    axis: int = 0,
    tile_shape: Sequence[int] | None = None,
    overdecompose: int = 1,
    device: str = "cpu",
    out: Any = None,
    progress: Any = False,
    comm: Any = None,
    **open_options: Any,
) -> Array:
    """Loads an array in parallel.

    Args:
        path, dataset, open_options: as for :func:`open`; or an open dataset.
        tiles: cut `axis` into about this many even tiles; None: one.
        axis: the axis that is cut.
        tile_shape: a grid of tiles of this shape instead.
        overdecompose: this many times as many tiles.
        device: "cpu".
        out: memory that is filled instead of new memory: shape and dtype of the dataset,
            any strides, writable.
        progress: True, a function (bytes done, bytes in all), or tqdm (the class or a bar).
        comm: a communicator of mpi4py: each of its ranks gets its tiles (``a.local``, ``a.tiles``);
            `tiles` None is then one for each rank.

    Raises:
        Error: for files that are missing, damaged, changed, or do not fit together.
        KeyboardInterrupt: when the user pressed Ctrl-C:
            the load has stopped and its memory is free.
        ValueError, TypeError: for arguments that make no sense.
    """
    if not isinstance(device, str) or device != "cpu":
        raise ValueError(f'device: only "cpu" is supported, found {shown(device)}')
    how = tiles, axis, lengths("tile_shape", tile_shape), overdecompose, out
    if isinstance(path, Dataset):
        if dataset is not None or open_options:
            raise ValueError("an open dataset was given: options of open() make no sense")
        if comm is not None:
            raise ValueError("comm: give it to open(), where the dataset comes from")
        return path._load(how, progress)
    if comm is not None:  # ranks are told what rank 0 has read
        return open(path, dataset, **open_options, comm=comm)._load(how, progress)
    try:  # all headers are read anyway, so they may come with the data
        found = open(path, dataset, **open_options, _defer=True)
        memory = found._memory_for(*how)
    except (Error, ValueError) as error:
        if not _may_be_foretold(error):
            raise
    else:
        try:
            return found._fill_memory(*memory, progress)
        except MismatchError:
            del memory
    found = open(path, dataset, **open_options)
    return found._fill_memory(*found._memory_for(*how), progress)


def _may_be_foretold(error: Exception) -> bool:
    """Up to the array all that is known may be foretold: does the failure come from that?  Then
    all headers are read first."""
    other = isinstance(error, (ChangedError, CancelledError, TimeLimitError, OutOfMemoryError))
    return not other and getattr(error, "errno", None) in (None, 0)
