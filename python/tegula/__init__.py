"""tegula: big arrays between files and memory, in parallel.

    ds = tegula.open("shards/")            # headers only; ds[10:20, ::2] reads a part
    a = tegula.load("run.h5", "/x")        # everything; numpy.asarray(a) shares its memory
    tegula.save(array, "out.h5", "/x", codec="shuffle,deflate:4")

Settings of the environment: TEGULA_THREADS, TEGULA_TIMEOUT (seconds),
TEGULA_HDF5_LIBRARY, TEGULA_PLUGIN_PATH.

SPDX-License-Identifier: Apache-2.0
"""

from . import io
from ._array import Array
from ._attributes import Omitted
from ._context import fence
from ._core import version as _version
from ._dataset import Dataset
from ._errors import (
    AccessError,
    CancelledError,
    ChangedError,
    CommunicatorError,
    CorruptError,
    DeviceError,
    Error,
    ExistsError,
    IncompleteError,
    InternalError,
    InvalidArgumentError,
    LimitExceededError,
    MismatchError,
    NotFoundError,
    OutOfMemoryError,
    PeerFailedError,
    ShortFileError,
    StorageError,
    TimeLimitError,
    UnsupportedError,
)
from ._open import attributes, from_reader, load, open
from ._save import save

__version__ = _version()

__all__ = [
    "AccessError",
    "Array",
    "CancelledError",
    "ChangedError",
    "CommunicatorError",
    "CorruptError",
    "Dataset",
    "DeviceError",
    "Error",
    "ExistsError",
    "IncompleteError",
    "InternalError",
    "InvalidArgumentError",
    "LimitExceededError",
    "MismatchError",
    "NotFoundError",
    "Omitted",
    "OutOfMemoryError",
    "PeerFailedError",
    "ShortFileError",
    "StorageError",
    "TimeLimitError",
    "UnsupportedError",
    "__version__",
    "attributes",
    "fence",
    "from_reader",
    "io",
    "load",
    "open",
    "save",
]
