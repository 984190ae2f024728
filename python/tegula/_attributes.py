"""Attributes of HDF5 datasets, as Python has them and as the library takes them.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ._arguments import shown, text
from ._numpy import np

Attribute = tuple[str, str, tuple[int, ...] | None, int, bytes | list[bytes]]


class Omitted(NamedTuple):
    """An attribute that has no form in Python: what it is, and why it was left out."""

    type: str
    why: str


def value_of(type_: str, shape: tuple[int, ...] | None, values: Any, omitted: str | None) -> Any:
    """An attribute as Python has it."""
    if omitted is not None:
        return Omitted(type_, omitted)
    if shape is None:
        return None
    if isinstance(values, list):
        texts = [
            text if type_ != "str" else text.decode("utf-8", "surrogateescape") for text in values
        ]
        found = np.array(texts, dtype=object if type_ == "str" else type_).reshape(shape)
    else:
        found = np.frombuffer(values, type_).reshape(shape) if values else np.zeros(shape, type_)
    return found[()] if not shape else found


def _texts(name: str, values: list[Any]) -> list[bytes]:
    try:
        encoded = [
            value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
            for value in values
        ]
    except UnicodeEncodeError:
        raise ValueError(f"attrs: {name!r} must hold texts that have a form in UTF-8") from None
    if any(not isinstance(text, bytes) or b"\0" in text for text in encoded):
        raise ValueError(f"attrs: {name!r} must hold texts without zero bytes")
    return encoded


def _attribute(name: Any, value: Any) -> Attribute:
    """A value as the library takes it: numbers as bytes, texts one by one."""
    if not isinstance(name, str) or not name or "\0" in name:
        raise TypeError(f"attrs: expected names that are not empty, found {shown(name)}")
    text("attrs: the name", name)
    if value is None:
        return name, "<f8", None, 0, b""
    if isinstance(value, (str, bytes)):
        return (
            name,
            "str" if isinstance(value, str) else f"|S{max(len(value), 1)}",
            (),
            1,
            _texts(name, [value]),
        )
    try:
        array = np.asarray(value)
    except ValueError:  # lists of several lengths
        raise TypeError(
            f"attrs: {name!r} holds lists of different lengths, expected arrays or lists of the "
            "same"
        ) from None
    flat = array.ravel()
    if array.dtype.kind == "U" or (
        array.dtype.kind == "O" and all(isinstance(item, str) for item in flat)
    ):
        return name, "str", array.shape, array.size, _texts(name, [str(item) for item in flat])
    if array.dtype.kind == "S":
        return name, array.dtype.str, array.shape, array.size, _texts(name, flat.tolist())
    if array.dtype.kind not in "biufc":
        raise TypeError(
            f"attrs: {name!r} is a {type(value).__name__}, expected text, numbers, bools, arrays "
            "or lists of them, or None"
        )
    native = flat.astype(array.dtype.newbyteorder("="), copy=False)
    return name, native.dtype.str, array.shape, array.size, native.tobytes()


def attributes_of(attrs: Mapping[str, Any] | None) -> list[Attribute]:
    if attrs is None:
        return []
    if not isinstance(attrs, Mapping):
        raise TypeError(
            f"attrs: expected a mapping from names to values, found {type(attrs).__name__}"
        )
    return [_attribute(name, value) for name, value in attrs.items()]
