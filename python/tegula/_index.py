"""What stands between the brackets of ``dataset[...]``, as boxes.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

from ._numpy import np

Lengths = tuple[int, ...]


class Selection(NamedTuple):
    """Elements lo, lo + step, ... below hi of each axis."""

    lo: Lengths
    hi: Lengths
    step: Lengths | None  # None: all 1
    counts: Lengths  # elements taken of each axis
    dropped: tuple[int, ...]  # axes that an integer took away
    reversed: tuple[int, ...]  # axes that run from high to low


def whole(shape: Lengths) -> Selection:
    return Selection((0,) * len(shape), shape, None, shape, (), ())


def _expand(key: Any, ndim: int) -> list[Any]:
    """One entry per axis."""
    parts = list(key) if isinstance(key, tuple) else [key]
    dots = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    given = len(parts) - len(dots)
    if any(part is None for part in parts):
        raise TypeError(
            "numpy.newaxis is not supported: add the axis to the result, "
            "dataset[...][numpy.newaxis]"
        )
    if given > ndim:
        raise IndexError(f"too many indices: the dataset has {ndim} axes, but {given} were indexed")
    at = dots[0] if dots else len(parts)
    return parts[:at] + [slice(None)] * (ndim - given) + parts[at + 1 :]


def _integer(part: Any, axis: int, length: int) -> int:
    if isinstance(part, (bool, np.bool_)):
        raise TypeError("a bool is no index: masks are not supported, apply them to the result")
    try:
        index = operator.index(part)
    except TypeError:
        raise TypeError(
            f"expected integers, slices and an ellipsis, found {type(part).__name__}: apply lists "
            "and masks to the result"
        ) from None
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of bounds for axis {axis} of length {length}")
    return index + length if index < 0 else index


def parse(key: Any, shape: Lengths) -> Selection:
    if type(key) is slice and key.step is None and shape:  # the commonest, in a third of the time
        start, stop, _ = key.indices(shape[0])
        stop, rest = max(start, stop), shape[1:]
        return Selection(
            (start, *(0,) * len(rest)), (stop, *rest), None, (stop - start, *rest), (), ()
        )
    lo, hi, steps, counts = [], [], [], []
    dropped, flipped = [], []
    for axis, (part, length) in enumerate(zip(_expand(key, len(shape)), shape, strict=True)):
        if isinstance(part, slice):
            start, stop, step = part.indices(length)
            count = len(range(start, stop, step))
            if step < 0:
                flipped.append(axis)
                start, step = start + (count - 1) * step, -step
            if count == 0:
                start = min(max(start, 0), length)
        else:
            start, count, step = _integer(part, axis, length), 1, 1
            dropped.append(axis)
        lo.append(start)
        hi.append(start + (count - 1) * step + 1 if count else start)
        steps.append(step if count > 1 else 1)
        counts.append(count)
    strided = tuple(steps) if any(step > 1 for step in steps) else None
    return Selection(tuple(lo), tuple(hi), strided, tuple(counts), tuple(dropped), tuple(flipped))


def slices(lo: Lengths, hi: Lengths) -> tuple[slice, ...]:
    return tuple(map(slice, lo, hi))
