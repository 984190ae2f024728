"""numpy, imported when something of it is first needed: it takes five times as long as a small load
with all that this needs.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

__all__ = ["NDArray", "is_there", "np"]

if TYPE_CHECKING:
    import numpy as np

    NDArray = np.ndarray[Any, Any]
else:

    class _Later:
        def __getattr__(self, name: str) -> Any:
            import numpy

            found = getattr(numpy, name)
            setattr(self, name, found)
            return found

    np = _Later()
    NDArray = Any


def is_there() -> bool:
    """Has the program imported it?  Then nothing needs to be put off."""
    return "numpy" in sys.modules
