"""dtypes of numpy as texts of the library, and back.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any

from ._errors import MismatchError, UnsupportedError
from ._numpy import np


def is_bfloat16(dtype: np.dtype[Any]) -> bool:
    """bfloat16 of ml_dtypes, which is a type of its own and not numpy's."""
    return dtype.name == "bfloat16"


def text_of(dtype: Any) -> str:
    """The library's text for what numpy calls a dtype; structured records are opaque items.

    Raises TypeError for dtypes that cannot be held: objects, variable-length text,
    foreign types, sub-arrays.
    """
    if isinstance(dtype, str) and dtype.lstrip("<>=|") == "bfloat16":
        return dtype.lstrip("=|")
    found = np.dtype(dtype)
    if is_bfloat16(found):
        return (">" if found.byteorder == ">" else "") + "bfloat16"
    if found.hasobject or found.kind in "OT" or found.subdtype is not None:
        raise TypeError(
            f"dtype {found} cannot be held: expected numbers, bool, dates, fixed-length text or "
            "records of them"
        )
    if found.names is not None:
        return f"|V{found.itemsize}"
    if found.kind == "V" and found.type is not np.void:
        raise TypeError(
            f"dtype {found} is not known: of the types of ml_dtypes only bfloat16 can be held"
        )
    said = isinstance(dtype, str) and dtype[:1] in "<>"
    # numpy says the order of this processor for none
    return str(found.str) if said or found.byteorder != "=" else str(found.str)[1:]


def said_text(dtype: Any) -> str:
    """The same for what files hold: records with their fields, if that can be said."""
    found = dtype if isinstance(dtype, str) else np.dtype(dtype)
    if isinstance(found, str) or found.names is None or found.hasobject:
        return text_of(dtype)
    from numpy.lib.format import descr_to_dtype, dtype_to_descr

    descr = dtype_to_descr(found)
    return repr(descr) if descr_to_dtype(descr) == found else text_of(dtype)


def _bfloat16() -> np.dtype[Any]:
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype("V2")  # as numpy stores it
    found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return found


def of_records(descr: str) -> np.dtype[Any]:
    import ast

    from numpy.lib.format import descr_to_dtype

    found = np.dtype(descr_to_dtype(ast.literal_eval(descr)))
    if found.hasobject:  # bytes of a file would be taken for addresses
        raise UnsupportedError(f"the records stored have fields that cannot be loaded: {descr}")
    return found


def dtype_of(text: str, descr: str | None, asked: Any) -> np.dtype[Any]:
    """The dtype of arrays in memory. `asked` is what the caller said is stored: it names the
    fields of opaque items."""
    if text.lstrip("<>") == "bfloat16":
        return _bfloat16()
    stored = of_records(descr) if descr is not None else np.dtype(text)
    if asked is None or isinstance(asked, str):
        return stored
    wanted: np.dtype[Any] = np.dtype(asked)
    if wanted.names is None:
        return stored
    if descr is not None and wanted != stored:
        hint = "dtype says what is stored and converts nothing"
        raise MismatchError(f"the records stored are {stored}, but dtype says {wanted}", hint=hint)
    return wanted


def descr_of(dtype: np.dtype[Any]) -> str | None:
    """numpy's description of records, for npy files."""
    if dtype.names is None:
        return None
    from numpy.lib.format import dtype_to_descr

    try:
        return repr(dtype_to_descr(dtype))
    except ValueError:  # overlapping fields have no description at all
        return repr(dtype_to_descr(_in_order(dtype)))


def _in_order(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The same records with their fields in the order of their bytes."""
    if dtype.subdtype is not None:
        return np.dtype((_in_order(dtype.base), dtype.shape))
    if dtype.names is None or dtype.fields is None:
        return dtype
    kept = {name: dtype.fields[name][:2] for name in dtype.names}
    names = sorted(dtype.names, key=lambda name: kept[name][1])
    return np.dtype(
        {
            "names": names,
            "formats": [_in_order(kept[name][0]) for name in names],
            "offsets": [kept[name][1] for name in names],
            "itemsize": dtype.itemsize,
        }
    )
