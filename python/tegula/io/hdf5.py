"""HDF5 in three functions, with the names and arguments of ``legate.io.hdf5``, for numpy arrays.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from .._numpy import NDArray
from .._open import load, open
from .._save import save

__all__ = ["from_file", "from_file_batched", "to_file"]


def to_file(array: Any, path: str | os.PathLike[str], dataset_name: str) -> None:
    """Writes a file that holds this one dataset; what was there is replaced, at once and whole.

    >>> import numpy, tegula.io.hdf5, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> tegula.io.hdf5.to_file(numpy.eye(3), folder.name + "/eye.h5", "/a/eye")
    >>> tegula.io.hdf5.from_file(folder.name + "/eye.h5", "/a/eye").trace()
    np.float64(3.0)
    """
    save(array, path, dataset_name, format="hdf5", overwrite=True, whole_file=True)


def from_file(path: str | os.PathLike[str], dataset_name: str) -> NDArray:
    """Reads a dataset, in parallel.

    Raises:
        tegula.Error: NotFoundError for a file or dataset that is not there; CorruptError,
            UnsupportedError for what is in it.
    """
    return load(path, dataset_name, format="hdf5").local


def from_file_batched(
    path: str | os.PathLike[str], dataset_name: str, chunk_size: Sequence[int]
) -> Iterator[tuple[NDArray, tuple[int, ...]]]:
    """Walks over a dataset in pieces of `chunk_size` elements along each axis, cut at the end; the
    next one is read ahead.

    Yields:
        The piece, an array of its own, and where it begins in the dataset.

    Raises:
        ValueError: for lengths that are not one per axis, or below 1.
    """
    return open(path, dataset_name, format="hdf5")._batches("chunk_size", chunk_size)
