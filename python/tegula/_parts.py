"""What :func:`tegula.load` gives back on several ranks.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import math
from typing import Any

from . import _core
from ._array import Array, Box
from ._context import later, progress_of, timeout
from ._index import slices
from ._numpy import NDArray, np
from ._ranks import Ranks

Corners = tuple[tuple[int, ...], tuple[int, ...]]


class Parts(Array):
    """An array of which each rank holds some tiles.

    :attr:`shape` is that of the whole; :attr:`local` and :attr:`tiles` are what this rank has.
    Nothing here is the whole array, so numpy, buffers and DLPack are refused: they take
    ``a.local``.
    """

    __slots__ = ("_dtype", "_memory", "_ranks", "_shape", "_tiles", "_together")

    def __init__(
        self,
        memory: _core.Array,
        cut: _core.Tiling,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        ranks: Ranks,
    ) -> None:
        super().__init__(np.empty(0, dtype), cut)
        self._memory, self._ranks, self._shape, self._dtype = memory, ranks, shape, dtype
        found = memory.tiles()
        lo = tuple(min(tile[0][k] for tile in found) for k in range(len(shape))) if found else ()
        hi = tuple(max(tile[1][k] for tile in found) for k in range(len(shape))) if found else ()
        self._together = not found or _count((lo, hi)) == sum(_count(tile[:2]) for tile in found)
        self._tiles: list[tuple[Box, NDArray]] = []
        if not found:
            self._made = np.empty((0, *shape[1:]), dtype)
        elif self._together:
            whole = self._made = np.ndarray(_lengths((lo, hi)), dtype, buffer=memoryview(memory))
            self._tiles = [(slices(a, b), whole[_within(a, b, lo)]) for a, b, _ in found]
        else:
            self._tiles = [
                (slices(a, b), np.ndarray(_lengths((a, b)), dtype, buffer=memoryview(own)))
                for a, b, own in found
            ]

    @property
    def local(self) -> NDArray:
        """What this rank holds as one numpy view; without elements when it has no tile.

        Raises:
            ValueError: when its tiles do not form a box: take :attr:`tiles`.
        """
        if not self._together:
            raise ValueError("the tiles of this rank do not form a box: take a.tiles")
        return self._local

    @property
    def tiles(self) -> list[tuple[Box, NDArray]]:
        """(box, view) of each tile of this rank: where it is in the whole array, as slices, and
        its memory, without a copy."""
        return list(self._tiles)

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements of the whole along each axis."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._dtype

    @property
    def ndim(self) -> int:
        return len(self._shape)

    @property
    def size(self) -> int:
        return math.prod(self._shape)

    @property
    def nbytes(self) -> int:
        return self.size * self._dtype.itemsize

    def hash(self) -> str:
        """The content hash of the whole, on all ranks; all of them call it."""
        with self._ranks.together():
            return self._memory.hash()

    def save(
        self,
        path: bytes,
        target: tuple[Any, ...],
        described: tuple[Any, ...],
        block: bool,
        progress: Any,
    ) -> None:
        """For :func:`tegula.save`, which all ranks call."""
        with self._ranks.together(), progress_of(progress) as report:
            operation = _core.save(self._memory, path, target, described, block, report, timeout())
        if operation is not None:
            later(operation, self._ranks)

    def _whole(self) -> NDArray:
        raise ValueError(
            f"rank {self._ranks.rank} holds a part of the array only: take a.local or a.tiles"
        )

    def __repr__(self) -> str:
        where = (
            f"{len(self._tiles)} of {len(self._boxes)} on rank {self._ranks.rank} of "
            f"{self._ranks.size}"
        )
        return f"<tegula.Array shape={self.shape} dtype={self.dtype} tiles={where}>"


def _lengths(box: Corners) -> tuple[int, ...]:
    return tuple(b - a for a, b in zip(*box, strict=True))


def _count(box: Corners) -> int:
    return math.prod(_lengths(box))


def _within(lo: tuple[int, ...], hi: tuple[int, ...], origin: tuple[int, ...]) -> Box:
    return tuple(slice(a - o, b - o) for a, b, o in zip(lo, hi, origin, strict=True))
