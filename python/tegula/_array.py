"""What :func:`tegula.load` gives back.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _core
from ._arguments import shown, version
from ._context import context
from ._dtypes import is_bfloat16
from ._index import slices
from ._memory import address, borrow, tiling
from ._numpy import NDArray, np

Box = tuple[slice, ...]

_DL_CPU = (1, 0)
_DL_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_DL_BFLOAT = 4
_DL_READ_ONLY, _DL_COPIED = 1, 2


class Array(_core.Exporter):
    """An array in the memory of this process, cut into tiles.

    ``numpy.asarray(a)``, ``memoryview(a)``,
    ``numpy.from_dlpack(a)`` and ``torch.from_dlpack(a)`` share its memory.

    >>> import numpy, tegula, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> numpy.save(folder.name + "/x.npy", numpy.arange(12, dtype="i4").reshape(4, 3))
    >>> a = tegula.load(folder.name + "/x.npy", tiles=2)
    >>> a.shape, a.dtype
    ((4, 3), dtype('int32'))
    >>> [(box[0], tile.sum().item()) for box, tile in a.tiles]
    [(slice(0, 2, None), 15), (slice(2, 4, None), 51)]
    >>> numpy.shares_memory(numpy.asarray(a), a.local)
    True
    """

    __slots__ = ("_boxes", "_made", "_make")

    def __init__(self, local: NDArray | Callable[[], NDArray], cut: _core.Tiling) -> None:
        self._make: Callable[[], NDArray] | None = local if callable(local) else None
        self._made: NDArray | None = None if callable(local) else local
        self._boxes: list[Box] = [slices(lo, hi) for lo, hi in cut.boxes()]

    @property
    def _local(self) -> NDArray:
        """As a numpy array: made when it is first looked at, if numpy was not there before."""
        make = self._make
        if make is not None:
            self._made = make()
            self._make = None
        assert self._made is not None
        return self._made

    @property
    def local(self) -> NDArray:
        """The part that this process holds as a numpy array, without a copy; that is all of it
        where there is one process."""
        return self._local

    @property
    def tiles(self) -> list[tuple[Box, NDArray]]:
        """A pair (box, view) for each tile, where it is in the array, as slices,
        and its memory, without a copy."""
        return [(box, self._local[box]) for box in self._boxes]

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each axis."""
        return tuple(self._local.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """In the processor's byte order."""
        dtype: np.dtype[Any] = self._local.dtype
        return dtype

    @property
    def ndim(self) -> int:
        return self._local.ndim

    @property
    def size(self) -> int:
        """Elements."""
        return self._local.size

    @property
    def nbytes(self) -> int:
        """Bytes."""
        return self._local.nbytes

    def hash(self) -> str:
        """The content hash ``"tegula1:..."``: depends on shape, dtype and values only
        (docs/content-hash.md)."""
        return borrow(context(), self._local, tiling(self.shape)).hash()

    # ---- as seen by others ----

    def _whole(self) -> NDArray:
        return self._local

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        if copy:
            return np.array(self._whole(), dtype=dtype, copy=True)
        if copy is False and dtype is not None and np.dtype(dtype) != self.dtype:
            raise ValueError(f"dtype {np.dtype(dtype)} needs a copy of an array of {self.dtype}")
        return self._whole() if dtype is None else self._whole().astype(dtype, copy=False)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if is_bfloat16(self.dtype):  # it would arrive as V2
            raise AttributeError("__array_interface__ has no form for bfloat16")
        return self._whole().__array_interface__

    @property
    def _exported(self) -> NDArray:
        """What the buffer protocol shows. Opaque items have a format there that numpy itself
        reads back as something else."""
        if self.dtype.kind == "V" and self.dtype.names is None:
            raise BufferError(
                f"dtype {self.dtype} has no form in the buffer protocol: use numpy.asarray"
            )
        return self._whole()

    def __dlpack_device__(self) -> tuple[int, int]:
        return _DL_CPU

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if stream is not None:
            raise BufferError("stream: memory of the host has none, expected None")
        if dl_device is not None and version("dl_device", dl_device) != _DL_CPU:
            raise BufferError(
                f"dl_device: the array is on the host (1, 0), found {tuple(dl_device)}"
            )
        data = self._whole().copy() if copy else self._whole()
        versioned = max_version is not None and version("max_version", max_version)[0] >= 1
        if not versioned and not data.flags.writeable:
            raise BufferError(
                "read-only memory needs a consumer of DLPack 1.0 or newer (max_version)"
            )
        code, bits = _dlpack_type(data.dtype)
        if any(stride % data.itemsize for stride in data.strides):
            raise BufferError(
                "the strides are no multiples of the item size, which DLPack cannot say"
            )
        strides = tuple(stride // data.itemsize for stride in data.strides)
        flags = (0 if data.flags.writeable else _DL_READ_ONLY) | (_DL_COPIED if copy else 0)
        return _core.dlpack(data, address(data), data.shape, strides, code, bits, versioned, flags)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._whole(), self._boxes)

    def __len__(self) -> int:
        return len(self._whole())

    def __getitem__(self, key: Any) -> Any:
        try:
            return self._whole()[key]
        except OverflowError:
            raise IndexError(f"index {shown(key)} is out of bounds") from None

    def __repr__(self) -> str:
        return f"<tegula.Array shape={self.shape} dtype={self.dtype} tiles={len(self._boxes)}>"


def _again(local: NDArray, boxes: list[Box]) -> Array:
    """What was pickled, with the elements; or copied."""
    made = Array.__new__(Array)
    made._make, made._made, made._boxes = None, local, boxes
    return made


def _dlpack_type(dtype: np.dtype[Any]) -> tuple[int, int]:
    if is_bfloat16(dtype):
        return _DL_BFLOAT, 16
    if dtype.kind not in _DL_CODES or not dtype.isnative:
        raise BufferError(f"DLPack has no form for dtype {dtype}")
    return _DL_CODES[dtype.kind], 8 * dtype.itemsize
