"""Functions of single formats.

SPDX-License-Identifier: Apache-2.0
"""

from . import hdf5

__all__ = ["hdf5"]
