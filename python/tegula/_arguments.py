"""Arguments of the public functions, looked at before anything is done: what is wrong, where,
and what was expected.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence, Set
from typing import Any

from ._numpy import is_there, np

Shape = tuple[int, ...]
MOST = (1 << 63) - 1
_MOST_AXES = 64


def shown(value: object) -> str:
    """For messages: short, whatever it is."""
    try:
        text = repr(value)
    except Exception:  # a number of too many digits, an object that cannot say what it is
        return f"a {type(value).__name__}"
    text = " ".join(text.encode("utf-8", "backslashreplace").decode("utf-8").split())
    return text if len(text) <= 80 else text[:77] + "..."


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool) or (is_there() and isinstance(value, np.bool_))


def _index(value: Any) -> int | None:
    if _is_bool(value):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def number(name: str, value: Any, low: int, high: int = MOST) -> int:
    """A whole number of Python or numpy."""
    found = _index(value)
    if found is None or not low <= found <= high:
        limits = f"from {low} on" if high == MOST else f"from {low} to {high}"
        numeric = isinstance(value, (int, float, np.generic)) or found is not None
        raise (ValueError if numeric else TypeError)(
            f"{name}: expected a whole number {limits}, found {shown(value)}"
        )
    return found


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected text (str), found {type(value).__name__}")
    if "\0" in value:
        raise ValueError(f"{name}: it contains a zero byte")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"{name}: {shown(value)} has no form in UTF-8") from None
    return value


def text_or_none(name: str, value: Any) -> str | None:
    return None if value is None else text(name, value)


def flag(name: str, value: Any) -> bool:
    """Words such as "no" would count as true."""
    if not _is_bool(value) and not (isinstance(value, int) and value in (0, 1)):
        raise TypeError(f"{name}: expected True or False, found {shown(value)}")
    return bool(value)


def choice(name: str, value: Any, choices: Any) -> Any:
    if not isinstance(value, str) or value not in choices:
        raise ValueError(
            f"{name}: expected one of {', '.join(map(repr, choices))}, found {shown(value)}"
        )
    return value


BYTE_ORDERS = {"<": "<", ">": ">", "little": "<", "big": ">"}


def byte_order_text(value: Any) -> str:
    """The sign of a byte order; empty where none is given."""
    return "" if value is None else BYTE_ORDERS[choice("byte_order", value, BYTE_ORDERS)]


def lengths(name: str, value: Any) -> Shape | None:
    """A tuple of whole numbers, or one for one axis;
    whether they make sense is for others to say."""
    if value is None:
        return None
    # bool is an int: h5py's chunks=True would be chunks of one element
    if isinstance(value, (bool, str, bytes, bytearray, Mapping, Set)):
        raise TypeError(f"{name}: expected a tuple of integers, found {type(value).__name__}")
    alone = _index(value)
    try:
        given = tuple(value) if alone is None else (alone,)
    except TypeError:
        raise TypeError(
            f"{name}: expected a tuple of integers, found {type(value).__name__}"
        ) from None
    found = tuple(map(_index, given))
    if None in found:
        raise TypeError(f"{name}: expected whole numbers, found {shown(given)}")
    if len(found) > _MOST_AXES:
        raise ValueError(f"{name}: expected at most {_MOST_AXES} axes, found {len(found)}")
    made = tuple(n for n in found if n is not None)
    if any(not -MOST <= n <= MOST for n in made):
        raise ValueError(f"{name}: expected lengths below 2^63, found {shown(given)}")
    return made


def dtype(name: str, value: Any) -> Any:
    """A dtype of numpy, or the text that said it; others have their own names for bfloat16."""
    if isinstance(value, str) and value.lstrip("<>=|") == "bfloat16":
        return value
    try:
        found = np.dtype(value)
    except Exception as error:
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"{name}: {shown(value)} is no dtype") from None
    return value if isinstance(value, str) else found


Settings = tuple[tuple[str, str], ...]


def settings_of(given: Any, **short: Any) -> Settings:
    """Keys and values as texts: those of a mapping, and short forms for keys of raw; what a key
    takes is for the library to say."""
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"settings: expected a mapping, found {type(given).__name__}")
    long = {f"raw.{key}": value for key, value in short.items() if value is not None}
    found = []
    for key, value in (*(given or {}).items(), *long.items()):
        whole = _index(value)
        found.append(
            (
                text("settings: a key", key),
                str(whole) if whole is not None else text(f"setting {key}", value),
            )
        )
    return tuple(found)


def version(name: str, value: Any) -> tuple[int, int]:
    """Two numbers, as DLPack has them for versions and devices."""
    found = (
        tuple(value) if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) else ()
    )
    if len(found) != 2 or any(_index(n) is None for n in found):
        raise TypeError(f"{name}: expected a pair of whole numbers, found {shown(value)}")
    return found[0], found[1]
