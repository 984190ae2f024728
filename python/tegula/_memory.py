"""Memory of others: what numpy, DLPack and the buffer protocol show, as numpy arrays that share it.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any

from . import _core
from ._dtypes import text_of
from ._numpy import NDArray, np


def address(array: NDArray) -> int:
    return int(array.__array_interface__["data"][0])


def tiling(
    shape: tuple[int, ...], tile: Any = None, axis: int = 0, tiles: int = 1, ranks: int = 1
) -> _core.Tiling:
    return _core.Tiling(shape, tile, axis, tiles, ranks)


def borrow(context: _core.Context, array: NDArray, cut: _core.Tiling) -> _core.Array:
    """The memory of `array` as an array of the library, which keeps it alive; nothing is copied."""
    read_only = not array.flags.writeable
    return _core.Array.wrap(
        context, text_of(array.dtype), cut, array, address(array), array.strides, read_only
    )


def _by_buffer(thing: Any) -> NDArray | None:
    try:
        return np.asarray(memoryview(thing))
    except (TypeError, BufferError, ValueError):
        return None


def _by_dlpack(thing: Any) -> NDArray | None:
    device = thing.__dlpack_device__()[0] if hasattr(thing, "__dlpack_device__") else None
    if device is None:
        return None
    if device != 1:
        raise TypeError(
            f"memory of DLPack device type {int(device)} cannot be used: copy the array to the "
            "host first"
        )
    try:
        return np.from_dlpack(thing)
    except (BufferError, RuntimeError):
        # numpy knows no bfloat16 there; what it shows by __array__ may be used
        return None


def array_of(thing: Any) -> NDArray:
    """What is to be saved: without a copy where the memory can be reached.

    Takes numpy arrays and scalars, :class:`tegula.Array`, exporters of the buffer protocol, of
    ``__array_interface__``, of DLPack, and what has ``__array__``.  Raises TypeError for others,
    masked arrays and devices.
    """
    if isinstance(thing, np.ma.MaskedArray):
        raise TypeError(
            "a masked array has no form in a file: save its data and its mask, or "
            "array.filled(value)"
        )
    if isinstance(thing, np.ndarray):
        # what subclasses say of shape and strides is not where their memory is
        return np.asarray(thing)
    if hasattr(thing, "__array_interface__") or isinstance(
        thing, (np.generic, bool, int, float, complex)
    ):
        return np.asarray(thing)
    found = _by_buffer(thing)
    if found is None:
        found = _by_dlpack(thing)
    if found is None and hasattr(thing, "__array__"):
        found = np.asarray(thing)
    if found is None:
        raise TypeError(f"expected an array, found {type(thing).__name__}: use numpy.asarray")
    return found


def target_of(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray:
    """Memory to be filled, of exactly this shape and dtype."""
    if isinstance(out, np.ma.MaskedArray):
        raise TypeError("out: what is masked would stay masked: give its data (array.data)")
    found = np.asarray(out) if isinstance(out, np.ndarray) else _by_buffer(out)
    if found is None:
        found = _by_dlpack(out)
    if found is None:
        raise TypeError(
            "out: expected writable memory (a numpy array, a buffer or DLPack), found "
            f"{type(out).__name__}"
        )
    if not found.flags.writeable:
        raise ValueError("out: the memory is read-only")
    if found.dtype != dtype:
        raise ValueError(f"out: expected dtype {dtype}, found {found.dtype} (nothing is converted)")
    if found.shape != shape:
        raise ValueError(f"out: expected shape {shape}, found {found.shape}")
    return found
