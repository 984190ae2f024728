"""Saving arrays.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from . import _core
from ._arguments import (
    byte_order_text,
    choice,
    flag,
    lengths,
    number,
    settings_of,
    shown,
    text,
    text_or_none,
)
from ._array import Array
from ._attributes import attributes_of
from ._context import context, later, progress_of, timeout
from ._dtypes import descr_of, is_bfloat16
from ._memory import array_of, borrow, tiling
from ._numpy import NDArray, np
from ._parts import Parts
from ._sources import before_use, path_of, rooted


def _fill_bytes(fill: Any, dtype: np.dtype[Any]) -> bytes | None:
    """One item in native byte order; of records as they are."""
    if fill is None:
        return None
    kept = dtype.isnative or dtype.names is not None
    given, native = np.asarray(fill), dtype if kept else dtype.newbyteorder("=")
    if given.shape:
        raise ValueError(f"fill: expected one value, found an array of shape {given.shape}")
    # numpy's rules would refuse 0 for unsigned ones and cut off high bits
    integers = given.dtype.kind in "iu" and native.kind in "iu"
    try:
        with np.errstate(over="ignore"):
            made = given.astype(native, casting="unsafe" if integers else "same_kind")
    except (TypeError, ValueError, OverflowError):
        raise TypeError(
            f"fill: {shown(fill)} does not fit into elements of dtype {native}"
        ) from None
    if native.kind in "SU":
        same = bool(made == given)
    elif native.kind in "iufc" or is_bfloat16(native):
        same = (
            int(made) == int(given)
            if integers
            else bool(np.isfinite(made) or not np.isfinite(given))
        )
    else:
        same = native.kind != "V" or given.nbytes == made.nbytes
    if not same:
        raise ValueError(f"fill: {shown(fill)} does not fit into elements of dtype {native}")
    return made.tobytes()


def _wrap(array: Any) -> tuple[NDArray, _core.Array]:
    data = array_of(array)
    boxes = array.tiles if isinstance(array, Array) else []
    cut = tiling(data.shape)
    if len(boxes) > 1:  # tiles of a virtual dataset: the first is of full size
        cut = tiling(data.shape, tuple(side.stop - side.start for side in boxes[0][0]))
    return data, borrow(context(), data, cut)


def save(
    array: Any,
    path: str | os.PathLike[str] | bytes,
    dataset: str | None = None,
    *,
    format: str | None = None,
    layout: str | None = None,
    chunks: Sequence[int] | None = None,
    codec: str | None = None,
    fill: Any = None,
    attrs: Mapping[str, Any] | None = None,
    shards: int | None = None,
    order: str = "C",
    byte_order: str | None = None,
    record_markers: str | None = None,
    settings: Mapping[str, int | str] | None = None,
    overwrite: bool = False,
    durable: bool = False,
    whole_file: bool = False,
    block: bool = True,
    progress: Any = False,
    comm: Any = None,
) -> None:
    """Saves an array, or several into one file.  The target appears whole or not at all; after a
    failure the old one is as it was.

    Args:
        array: a numpy array (any strides, either byte order), :class:`tegula.Array`, an exporter of
            the buffer protocol or DLPack; memory is not copied.  Or a mapping from dataset names to
            such arrays: one HDF5 file with all of them, or none.
        path: a file, or with `shards` a folder; missing parents are made.  The suffix says the
            format where `format` does not.
        dataset: HDF5: the name in the file, "/data" by default;
            a file that is there keeps its other datasets.
        format: "npy", "raw" or "hdf5" (which takes no structured dtypes: save each field,
            or a view as items of bytes).
        layout: HDF5: "contiguous" (the default), "chunked" or "virtual" (each tile of a
            :class:`tegula.Array` in a file of its own).
        chunks: HDF5: the shape of chunks.  None: with `codec` or layout="chunked" one is chosen,
            whole rows of up to 4 MiB.
        codec: HDF5: what chunks go through, in that order: "shuffle,deflate:4" (docs/formats.md).
        fill: HDF5: what elements that were never written are to be: one value,
            which the dtype must be able to hold.
        attrs: HDF5: names and values (text, numbers, arrays or lists of them, None); with a mapping
            of arrays: {dataset: attrs}.
        shards: a folder of this many files, cut along axis 0.
        order: "C" or "F", of the elements in the file.
        byte_order: "<" or "little", ">" or "big"; None: the processor's.
        record_markers: raw: "fortran4" or "fortran8": each row becomes a record of a Fortran
            sequential file, with markers of 4 or 8 bytes.
        settings: of the format, by key (docs/formats.md).
        overwrite: replace what is there (in HDF5: the dataset of that name).
        durable: on the disk before the call returns.
        whole_file: with overwrite: replace the whole HDF5 file.
        block: False: return at once and save in the background; :func:`fence` waits.  Leave the
            memory alone until then.  Of an array of several ranks each writes its part in the
            background; the file appears when all ranks wait.
        progress: as for :func:`load`.
        comm: may be given for an array of several ranks (``load(..., comm=...)``), which all of
            them save together in any case: each writes its tiles.

    Raises:
        Error: when it cannot be saved (ExistsError: there is something, and not overwrite).
        KeyboardInterrupt: the save has stopped, nothing of it is left.
        ValueError, TypeError: for arguments that make no sense.
    """
    flags = flag("overwrite", overwrite), flag("durable", durable), flag("whole_file", whole_file)
    block = flag("block", block)
    if comm is not None and not isinstance(array, Parts):
        raise ValueError(
            "comm: only an array that tegula.load(..., comm=...) gave is saved by several ranks, "
            "expected None"
        )
    if not block and progress is not None and progress is not False:
        raise ValueError("progress: a save in the background has none, expected False")
    name = path_of(path)
    if not name:
        raise ValueError("path: it is empty")
    if not block and not isinstance(array, Parts):
        name = rooted(name)  # the program may go into another folder meanwhile
    dataset, format = text_or_none("dataset", dataset), text_or_none("format", format)
    ordered = choice("order", order, ("C", "F"))
    swapped = byte_order_text(byte_order)
    if shards is not None:
        number("shards", shards, 1)
    said = settings_of(settings, record_markers=record_markers)
    what = text_or_none("layout", layout), lengths("chunks", chunks), text_or_none("codec", codec)
    for wait in before_use:
        wait((name,))
    if isinstance(array, Mapping):
        _save_group(
            array,
            name,
            dataset,
            what,
            fill,
            attrs,
            (format, None, shards or 0, ordered, swapped, *flags, said),
            block,
            progress,
        )
        return
    if isinstance(array, Parts):
        described = dataset, *what, _fill_bytes(fill, array.dtype), attributes_of(attrs)
        array.save(
            name,
            (format, _descr(array, format, name), shards or 0, ordered, swapped, *flags, said),
            described,
            block,
            progress,
        )
        return
    data, memory = _wrap(array)
    target = format, _descr(data, format, name), shards or 0, ordered, swapped, *flags, said
    described = dataset, *what, _fill_bytes(fill, data.dtype), attributes_of(attrs)
    with progress_of(progress) as report:
        operation = _core.save(memory, name, target, described, block, report, timeout())
    if operation is not None:
        later(operation)


def _descr(data: NDArray | Array, format: str | None, name: bytes) -> str | None:
    """Field names of records: npy and HDF5 files hold them, raw ones are bytes in any case."""
    _, suffix = os.path.splitext(name)
    raw = format == "raw" or (
        format is None and suffix not in (b"", b".npy", b".h5", b".hdf5", b".he5", b".nxs")
    )
    return None if raw else descr_of(data.dtype)


def _save_group(
    arrays: Mapping[str, Any],
    name: bytes,
    dataset: Any,
    what: Any,
    fill: Any,
    attrs: Any,
    target: Any,
    block: bool,
    progress: Any,
) -> None:
    if not block:
        raise ValueError(
            "block: several arrays are saved at once in the foreground only, expected True"
        )
    if dataset is not None:
        raise ValueError(
            "dataset: the names of several arrays are the keys of the mapping, expected None"
        )
    if attrs is not None and not (
        isinstance(attrs, Mapping) and all(key in arrays for key in attrs)
    ):
        raise ValueError("attrs: with several arrays expected {dataset: attrs} for some of them")
    if not arrays:
        raise ValueError("array: there is none in the mapping")
    members = []
    for key, array in arrays.items():
        text("array: the name of a dataset", key)
        data, memory = (array, array._memory) if isinstance(array, Parts) else _wrap(array)
        members.append(
            (
                memory,
                (key, *what, _fill_bytes(fill, data.dtype), attributes_of((attrs or {}).get(key))),
                descr_of(data.dtype),
            )
        )
    ranks = next((array._ranks for array in arrays.values() if isinstance(array, Parts)), None)
    if ranks is not None and any(
        not isinstance(array, Parts) or array._ranks is not ranks for array in arrays.values()
    ):
        raise ValueError(
            "array: with an array of several ranks expected all of them on the same ones"
        )
    with ranks.together() if ranks is not None else nullcontext(), progress_of(progress) as report:
        _core.save_group(members, name, target, report, timeout())
