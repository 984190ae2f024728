"""Arrays of Legate (``LogicalArray``, and cuPyNumeric by ``cupynumeric.asarray``, which does not
copy): loaded and saved by tasks.

    from tegula.legate import from_file, to_file  # in place of legate.io.hdf5: nothing else changes
    x = cupynumeric.asarray(tegula.legate.load("shards/"))
    tegula.legate.save(x, "out.h5", "/x")

Every task reads or writes its own tile.  What fails in a task arrives here as the exception that
:func:`tegula.load` would raise, and the runtime goes on.  Needs the packages legate and, for the
arrays, nvidia-cupynumeric; importing it starts Legate.

SPDX-License-Identifier: Apache-2.0
"""

import sys
import threading
from importlib import import_module

try:
    # the thread that starts Legate is the only one that may use it
    _home = threading.main_thread() if "legate.core" in sys.modules else threading.current_thread()
    import_module("legate.core")
except ImportError as error:
    raise ImportError(
        f"tegula.legate needs Legate (pip install legate nvidia-cupynumeric): {error}",
        name=error.name,
    ) from error

from .._open import open
from ._errors import (
    ForbiddenFileError,
    MissingDatasetError,
    MissingFileError,
    NotAFileError,
    TooManyAxesError,
    TruncatedFileError,
    UnreadableFileError,
)
from ._hdf5 import from_file, from_file_batched, to_file
from ._load import load
from ._save import fence, save

__all__ = [
    "ForbiddenFileError",
    "MissingDatasetError",
    "MissingFileError",
    "NotAFileError",
    "TooManyAxesError",
    "TruncatedFileError",
    "UnreadableFileError",
    "fence",
    "from_file",
    "from_file_batched",
    "load",
    "open",
    "save",
    "to_file",
]
