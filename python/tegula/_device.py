"""Memory of GPUs, filled and read through bounded host memory by the CUDA driver, which is opened
when it is first needed.

SPDX-License-Identifier: Apache-2.0

Two buffers take turns: while one is copied the other is read into (or written from).  Only for
tasks of Legate, which have a current context and a stream; the library itself knows no devices yet.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ._errors import DeviceError, UnsupportedError
from ._memory import address
from ._numpy import NDArray

NAME = "libcuda.so.1"
STAGING = 16 << 20  # bytes of a buffer
_MOST_PITCH = (1 << 31) - 1  # of a copy of rows
_PORTABLE = 1
_HOST, _DEVICE = 1, 2

Shape = tuple[int, ...]
Move = Callable[[Shape, Shape, NDArray], object]


class Tile(NamedTuple):
    """Memory of a GPU."""

    address: int
    shape: Shape
    strides: Shape  # bytes
    itemsize: int
    stream: int

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.itemsize

    def part(self, lo: Shape, hi: Shape) -> Tile:
        offset = sum(low * stride for low, stride in zip(lo, self.strides, strict=True))
        shape = tuple(high - low for low, high in zip(lo, hi, strict=True))
        return self._replace(address=self.address + offset, shape=shape)

    def scalar(self) -> Tile:
        """Its one element, without axes."""
        return self._replace(shape=(), strides=())

    def axes(self) -> list[int]:
        """Those along which it has memory, from far steps to near ones:
        the order of a dense copy."""
        if any(stride < 0 for stride in self.strides):
            raise UnsupportedError("memory of a GPU with negative steps cannot be copied")
        found = [
            k
            for k, (n, stride) in enumerate(zip(self.shape, self.strides, strict=True))
            if n > 1 and stride != 0
        ]
        return sorted(found, key=lambda k: -self.strides[k])


def tile_of(store: Any, stream: int | None) -> Tile:
    """From ``__cuda_array_interface__``."""
    said = store.__cuda_array_interface__
    shape, dtype = tuple(said["shape"]), np.dtype(said["typestr"])
    strides = said.get("strides")
    if strides is None:
        strides = tuple(dtype.itemsize * math.prod(shape[k + 1 :]) for k in range(len(shape)))
    return Tile(int(said["data"][0]), shape, tuple(strides), dtype.itemsize, stream or 0)


# ---- the driver ----


class _Rectangle(ctypes.Structure):
    """CUDA_MEMCPY2D."""

    _fields_ = [
        (side + name, kind)
        for side in ("src", "dst")
        for name, kind in (
            ("XInBytes", ctypes.c_size_t),
            ("Y", ctypes.c_size_t),
            ("MemoryType", ctypes.c_int),
            ("Host", ctypes.c_void_p),
            ("Device", ctypes.c_uint64),
            ("Array", ctypes.c_void_p),
            ("Pitch", ctypes.c_size_t),
        )
    ] + [("WidthInBytes", ctypes.c_size_t), ("Height", ctypes.c_size_t)]


_ARGUMENTS = {
    "cuMemHostAlloc": [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t, ctypes.c_uint],
    "cuMemcpyHtoDAsync_v2": [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p],
    "cuMemcpyDtoHAsync_v2": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p],
    "cuMemcpy2DAsync_v2": [ctypes.POINTER(_Rectangle), ctypes.c_void_p],
    "cuStreamSynchronize": [ctypes.c_void_p],
}


class Driver:
    def __init__(self) -> None:
        try:
            library = ctypes.CDLL(NAME)
            self.functions = {name: getattr(library, name) for name in _ARGUMENTS}
            self.name_of = library.cuGetErrorName
        except (OSError, AttributeError) as error:
            raise DeviceError(f"the CUDA driver cannot be used: {error}") from None
        for name, function in self.functions.items():
            function.argtypes = _ARGUMENTS[name]
        self.name_of.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)]
        self.free = list[NDArray]()
        self.lock = threading.Lock()

    def call(self, name: str, *arguments: Any) -> None:
        status = self.functions[name](*arguments)
        if status != 0:
            text = ctypes.c_char_p()
            self.name_of(status, ctypes.byref(text))
            raise DeviceError(
                f"{name} failed: {(text.value or b'unknown error').decode()} ({status})"
            )

    def take(self, size: int) -> NDArray:
        """A buffer of at least `size` bytes: pinned, if it can be had."""
        if size > STAGING:
            return np.empty(size, "u1")
        with self.lock:
            if self.free:
                return self.free.pop()
        where = ctypes.c_void_p()
        try:
            self.call("cuMemHostAlloc", ctypes.byref(where), STAGING, _PORTABLE)
        except DeviceError:
            return np.empty(STAGING, "u1")
        return np.frombuffer(
            memoryview((ctypes.c_uint8 * STAGING).from_address(where.value or 0)), "u1"
        )

    def give(self, buffer: NDArray) -> None:
        with self.lock:
            if buffer.size == STAGING:
                self.free.append(buffer)

    def wait(self, tile: Tile) -> None:
        self.call("cuStreamSynchronize", tile.stream)

    def copy(self, tile: Tile, host: int, to_device: bool) -> None:
        """Begins to copy between `tile` and dense memory in the order of its axes."""
        axes = tile.axes()
        lengths, strides = [tile.shape[k] for k in axes], [tile.strides[k] for k in axes]
        width = tile.itemsize  # bytes that are dense on both sides
        while strides and strides[-1] == width:
            width *= lengths.pop()
            strides.pop()
        rows, pitch = (
            (lengths.pop(), strides.pop()) if strides and strides[-1] <= _MOST_PITCH else (1, width)
        )
        for step, at in enumerate(itertools.product(*map(range, lengths))):
            device = tile.address + sum(i * stride for i, stride in zip(at, strides, strict=True))
            self._rows(
                device, host + step * rows * width, width, rows, pitch, tile.stream, to_device
            )

    def _rows(
        self,
        device: int,
        host: int,
        width: int,
        rows: int,
        pitch: int,
        stream: int,
        to_device: bool,
    ) -> None:
        if rows == 1 and to_device:
            self.call("cuMemcpyHtoDAsync_v2", device, host, width, stream)
        elif rows == 1:
            self.call("cuMemcpyDtoHAsync_v2", host, device, width, stream)
        else:
            here, there = ("src", "dst") if to_device else ("dst", "src")
            what = _Rectangle(WidthInBytes=width, Height=rows)
            for name, value in (("MemoryType", _HOST), ("Host", host), ("Pitch", width)):
                setattr(what, here + name, value)
            for name, value in (("MemoryType", _DEVICE), ("Device", device), ("Pitch", pitch)):
                setattr(what, there + name, value)
            self.call("cuMemcpy2DAsync_v2", ctypes.byref(what), stream)


_driver: Driver | None = None
_driver_lock = threading.Lock()


def driver() -> Driver:
    global _driver
    with _driver_lock:
        if _driver is None:
            _driver = Driver()
        return _driver


# ---- tiles in slabs ----


def slabs(tile: Tile, unit: Shape | None = None) -> Iterator[tuple[Shape, Shape]]:
    """Boxes of it that fit into a buffer; cut at multiples of `unit` only,
    which may make them larger."""
    axes, steps = tile.axes(), unit or (1,) * len(tile.shape)

    def cut(lo: Shape, hi: Shape) -> Iterator[tuple[Shape, Shape]]:
        if math.prod(hi[k] - lo[k] for k in axes) * tile.itemsize > STAGING:
            for k in axes:
                middle = lo[k] + (hi[k] - lo[k] + steps[k]) // steps[k] // 2 * steps[k]
                if lo[k] < middle < hi[k]:
                    yield from cut(lo, (*hi[:k], middle, *hi[k + 1 :]))
                    yield from cut((*lo[:k], middle, *lo[k + 1 :]), hi)
                    return
        yield lo, hi

    if tile.nbytes:
        yield from cut((0,) * len(tile.shape), tile.shape)


def _dense(part: Tile, dtype: np.dtype[Any], buffer: NDArray) -> NDArray:
    """The elements of `part` in the buffer, in the order of its axes."""
    strides, step = [0] * len(part.shape), part.itemsize
    for k in reversed(part.axes()):
        strides[k], step = step, step * part.shape[k]
    return np.ndarray(part.shape, dtype, buffer=buffer, strides=strides)


def _size(part: Tile) -> int:
    return math.prod(part.shape[k] for k in part.axes()) * part.itemsize


def fill(tile: Tile, dtype: np.dtype[Any], read: Move) -> None:
    """Calls ``read(lo, hi, memory)`` for all of it, and copies what that has put there."""
    cuda, used = driver(), list[NDArray]()
    try:
        for number, (lo, hi) in enumerate(slabs(tile)):
            part = tile.part(lo, hi)
            if number < 2:
                used.append(cuda.take(_size(part)))
            buffer = used[number % 2]
            read(lo, hi, _dense(part, dtype, buffer))
            cuda.wait(tile)  # for the other buffer, which was copied meanwhile and comes next
            cuda.copy(part, address(buffer), True)
    finally:
        _end(cuda, tile, used)


def drain(tile: Tile, dtype: np.dtype[Any], write: Move, unit: Shape | None = None) -> None:
    """Calls ``write(lo, hi, memory)`` for all of it, with copies."""
    cuda, used = driver(), list[NDArray]()
    boxes = list(slabs(tile, unit))
    largest = max((_size(tile.part(*box)) for box in boxes), default=0)
    try:
        for number, box in enumerate(boxes):
            if number == 0:
                used.append(cuda.take(largest))
                cuda.copy(tile.part(*box), address(used[0]), False)
            cuda.wait(tile)
            if number + 1 < len(boxes):
                if number == 0:
                    used.append(cuda.take(largest))
                cuda.copy(tile.part(*boxes[number + 1]), address(used[(number + 1) % 2]), False)
            write(*box, _dense(tile.part(*box), dtype, used[number % 2]))
    finally:
        _end(cuda, tile, used)


def _end(cuda: Driver, tile: Tile, used: list[NDArray]) -> None:
    """Nothing is copied any more; after a failure to wait buffers are left
    to whom they may belong."""
    if used:
        cuda.wait(tile)
        for buffer in used:
            cuda.give(buffer)
