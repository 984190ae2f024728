"""What Legate calls its arrays: ``LogicalArray`` up to 26.6; later there is only ``LogicalStore``.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any

import legate.core
from legate.core import LogicalStore

_Array: Any = getattr(legate.core, "LogicalArray", None)


def array_of(store: Any) -> Any:
    """What functions of Legate give."""
    return store if _Array is None else _Array.from_store(store)


def as_logical(given: Any) -> Any:
    """What `given` is, or has as Legate's data interface."""
    if isinstance(given, LogicalStore) or (_Array is not None and isinstance(given, _Array)):
        return given
    take = legate.core.as_logical_store if _Array is None else legate.core.as_logical_array
    return take(given)


def is_nested(logical: Any) -> bool:
    return not isinstance(logical, LogicalStore) and bool(logical.nested or logical.nullable)


def data_of(logical: Any) -> Any:
    """Its store."""
    return logical if isinstance(logical, LogicalStore) else logical.data
